//! Conjugate gradients without the product: Eisenstat's trick.
//!
//! Where the factor has A's own triangles, A = L + E + U and M = (D + L) D⁻¹ (D + U), the method runs on
//!
//!   Â = (D + L)⁻¹ A (D + U)⁻¹   with   A = (D + L) + (D + U) + (E − 2D)
//!
//! so that applying Â takes the two sweeps and nothing else. With r̂ = (D + L)⁻¹ r:
//!
//!   p = D r̂ + β p;  t = (D + U)⁻¹ p
//!   w = (D + L)⁻¹ (p + (E − 2D) t);  then t + w = (D + L)⁻¹ A t
//!   α = r̂ᵀD r̂ / pᵀ(t + w);  x += α t;  r̂ −= α (t + w);  β = r̂ᵀD r̂ new / old
//!
//! These are the iterates of conjugate gradients with M, up to rounding; x needs no map back, because t is the direction in x. The
//! sweep upwards reads r̂ and L anyway and forms ‖r‖₂ = ‖(D + L) r̂‖₂ of the iterate that it starts from: so the true residual
//! decides when to stop, one operator later than x is there, and the last direction is not used.
//!
//! Per iteration: 2 sweeps, each fused with the vector updates before it, and 1 update; 3 synchronisations. Stores r̂ p t w and the
//! best x. When ‖r‖ of an iterate is known its direction is gone, so x is not copied before a rise, as in `krylov`, but whenever ‖r‖
//! has fallen to a tenth.
//! Bytes a point: 152, and 56 for the coefficients of a 7-point star unless they are constant; the usual way takes 168 and 104.
//! Breakdown: as CG. After the residual was replaced the direction is begun anew.
//! Sums run over the pieces of the layout, in their order, each in eight lanes.
//!
//! Reference: Eisenstat 1981, doi:10.1137/0902001.
#![allow(unsafe_code)]

use super::factor::StencilFactor;
use super::kernels::{self, Sides, Source, Stored, for_each_size, neighbour};
use super::layout::{Layout, Piece};
use super::matrix::{StencilMatrix, with_sides};
use super::pipeline::{Direction, Pipeline, PipelineScratch};
use crate::disjoint::DisjointSlice;
use crate::error::BackendError;
use crate::krylov::{Best, Finish, Status, finish};
use crate::observe::{Iteration, Observer};
use crate::operator::LinearOperator;
use crate::simd::{LANES, Lanes};
use crate::space::{Space, Threads, require_same, sum_lanes};
use crate::stop::StoppingCriterion;
use std::sync::Arc;

/// An iterate is kept when its ‖r‖ is this part of that of the one kept before.
const KEEP: f64 = 0.1;

/// The workspace of conjugate gradients with Eisenstat's trick.
#[derive(Debug)]
pub struct EisenstatCg {
    layout: Arc<Layout>,
    r: Vec<f64>,
    p: Vec<f64>,
    t: Vec<f64>,
    w: Vec<f64>,
    best: Best<Threads<f64>>,
    /// Of the pieces: two numbers each.
    sums: Vec<f64>,
    pipeline: Pipeline,
    scratch: PipelineScratch,
}

impl EisenstatCg {
    /// Allocates everything; `None` if the factor's triangles are not those of A, or there are several unknowns a point.
    pub fn new(
        space: &Threads<f64>,
        a: &StencilMatrix,
        m: &StencilFactor<f64>,
    ) -> Option<Result<Self, BackendError>> {
        if !m.shares_off_diagonals() || a.dof > 1 || !Arc::ptr_eq(&a.layout, m.layout()) {
            return None;
        }
        let zeros = || space.zeros(&a.positions());
        let build = || {
            Ok(EisenstatCg {
                r: zeros()?,
                p: zeros()?,
                t: zeros()?,
                w: zeros()?,
                best: Best::new(space, &a.positions())?,
                sums: vec![0.0; 2 * a.layout.pieces()],
                pipeline: Pipeline::new(&a.layout, &a.stencil),
                scratch: PipelineScratch::new(space.threads()),
                layout: Arc::clone(&a.layout),
            })
        };
        Some(build())
    }

    /// The best iterate of the last solve, and its residual norm by the recurrence.
    pub fn kept(&self) -> Option<(&Vec<f64>, f64)> {
        self.best.kept()
    }

    /// Bytes besides those of vectors that every method stores.
    pub fn bytes(&self) -> usize {
        8 * self.sums.len()
    }

    /// Improves the guess in `x` until the criterion or the observer ends it, or the method breaks down. Allocates nothing. An error if
    /// A's coefficients are no longer those that were factored: the trick needs L and U of both to be the same.
    pub fn solve(
        &mut self,
        (space, a, m): (&Threads<f64>, &StencilMatrix, &StencilFactor<f64>),
        b: &Vec<f64>,
        x: &mut Vec<f64>,
        stop: &mut impl StoppingCriterion<f64>,
        observer: &mut impl Observer<f64>,
    ) -> Result<Finish<f64>, BackendError> {
        m.require_ready()?;
        if !Arc::ptr_eq(&a.layout, &self.layout) || !Arc::ptr_eq(m.layout(), &self.layout) || a.dof > 1 {
            return Err(BackendError::Failed { what: "the workspace is that of another layout".into() });
        }
        if !m.has_triangles_of(a) {
            let what = "Eisenstat's trick with a factor whose triangles are not those of A";
            return Err(BackendError::Unsupported { what });
        }
        require_same("b and the layout", &b.len(), &self.r.len())?;
        require_same("x and the layout", &x.len(), &self.r.len())?;
        let inverse = Stored { values: m.inverse().as_ptr(), width: 1 };
        with_sides!(a, sides => self.iterate(space, a, sides, inverse, b, x, stop, observer))
    }

    #[expect(clippy::too_many_arguments, reason = "a system, what it runs on and who watches")]
    fn iterate<C: Source + Sync, E: Source + Sync>(
        &mut self,
        space: &Threads<f64>,
        a: &StencilMatrix,
        sides: Sides<'_, C, E>,
        inverse: Stored<f64>,
        b: &Vec<f64>,
        x: &mut Vec<f64>,
        stop: &mut impl StoppingCriterion<f64>,
        observer: &mut impl Observer<f64>,
    ) -> Result<Finish<f64>, BackendError> {
        // r = b − A x, for a moment in t
        a.apply(space, x, &mut self.t, &mut ())?;
        space.axpby(1.0, b, -1.0, &mut self.t)?;
        let mut now = Iteration { index: 0, residual_norm: space.norm(&self.t)?, rhs_norm: space.norm(b)? };
        self.best.start();
        if let Some(status) = self.best.judge(&now, stop, observer) {
            return Ok(finish(&now, status));
        }
        // r̂ = (D + L)⁻¹ r
        self.enter(space, &sides, inverse);
        space.fill(0.0, &mut self.p)?;
        space.fill(0.0, &mut self.t)?;
        space.fill(0.0, &mut self.w)?;
        let mut rho = self.advance(space, inverse, 0.0, x);
        let mut beta = 0.0;
        loop {
            // p = D r̂ + β p;  t = (D + U)⁻¹ p;  w = (D + L)⁻¹ (p + (E − 2D) t)
            let [pq, square] = self.sweep(space, &sides, inverse, beta);
            if now.index > 0 {
                now.residual_norm = square.sqrt();
                if let Some(status) = self.best.judge(&now, stop, observer) {
                    return Ok(finish(&now, status));
                }
                self.best.keep(space, x, now.residual_norm, KEEP)?;
            }
            if let Some(status) = not_positive(rho, Status::IndefinitePreconditioner) {
                return Ok(finish(&now, status));
            }
            if let Some(status) = not_positive(pq, Status::IndefiniteOperator) {
                return Ok(finish(&now, status));
            }
            let alpha = rho / pq;
            if !alpha.is_finite() {
                return Ok(finish(&now, Status::NotFinite));
            }
            // x += α t;  r̂ −= α (t + w);  β = r̂ᵀD r̂ new / old
            let new = self.advance(space, inverse, alpha, x);
            beta = new / rho;
            rho = new;
            now.index += 1;
        }
    }

    /// r̂ = (D + L)⁻¹ t.
    fn enter<C: Source + Sync, E: Source + Sync>(
        &mut self,
        space: &Threads<f64>,
        sides: &Sides<'_, C, E>,
        diagonal: Stored<f64>,
    ) {
        let counters = self.scratch.begin(&self.layout, 1, space.threads());
        let (layout, pipeline) = (&*self.layout, self.pipeline);
        let (t, r) = (&self.t, DisjointSlice::new(&mut self.r));
        let Sides { lower, upper, below, above, .. } = *sides;
        let sides = Sides { lower, diagonal, upper, below, above };
        space.team().run(|member| {
            let sides = &sides;
            pipeline.go(&member, layout, Direction::Up, counters, 0, |piece| {
                // SAFETY: vectors of the layout's size; each piece once, after what its lower offsets lead to.
                unsafe { kernels::forward(1, sides, piece, t.as_ptr(), r.as_mut_ptr()) };
            });
        });
    }

    /// The two sweeps: pᵀ(t + w), and the square of ‖(D + L) r̂‖.
    fn sweep<C: Source + Sync, E: Source + Sync>(
        &mut self,
        space: &Threads<f64>,
        sides: &Sides<'_, C, E>,
        inverse: Stored<f64>,
        beta: f64,
    ) -> [f64; 2] {
        let counters = self.scratch.begin(&self.layout, 2, space.threads());
        let (layout, pipeline) = (&*self.layout, self.pipeline);
        let pieces = layout.pieces();
        let sums = DisjointSlice::new(&mut self.sums);
        let vectors = Vectors {
            inverse: inverse.values,
            real: layout.real.as_ptr(),
            r: self.r.as_ptr(),
            p: self.p.as_mut_ptr(),
            t: self.t.as_mut_ptr(),
            w: self.w.as_mut_ptr(),
        };
        space.team().run(|member| {
            let (vectors, sums) = (&vectors, &sums);
            pipeline.go(&member, layout, Direction::Down, counters, 0, |piece| {
                // SAFETY: vectors of the layout's size; each piece once, after what its upper offsets lead to.
                unsafe { descend(1, sides, piece, vectors, beta) };
            });
            member.barrier();
            pipeline.go(&member, layout, Direction::Up, counters, 1, |piece| {
                // SAFETY: as above for the lower offsets; t is finished since the barrier, every piece has sums of its own.
                unsafe { ascend(1, sides, piece, vectors, sums.as_mut_ptr(), pieces) };
            });
        });
        [sum_lanes(&self.sums[..pieces]), sum_lanes(&self.sums[pieces..])]
    }

    /// x += α t;  r̂ −= α (t + w);  r̂ᵀD r̂.
    fn advance(&mut self, space: &Threads<f64>, inverse: Stored<f64>, alpha: f64, x: &mut [f64]) -> f64 {
        let layout = &*self.layout;
        let pieces = layout.pieces();
        let sums = DisjointSlice::new(&mut self.sums);
        let (x, r) = (DisjointSlice::new(x), DisjointSlice::new(&mut self.r));
        let vectors = Vectors {
            inverse: inverse.values,
            real: layout.real.as_ptr(),
            r: std::ptr::null(),
            p: std::ptr::null_mut(),
            t: self.t.as_mut_ptr(),
            w: self.w.as_mut_ptr(),
        };
        space.team().run(|member| {
            let vectors = &vectors;
            for unit in member.part(layout.units(), 1) {
                for piece in layout.pieces_of(unit) {
                    // SAFETY: vectors of the layout's size; every unit has one member, every piece a sum of its own.
                    unsafe {
                        step(1, &piece, vectors, alpha, x.as_mut_ptr(), r.as_mut_ptr(), sums.as_mut_ptr())
                    };
                }
            }
        });
        sum_lanes(&self.sums[..pieces])
    }
}

/// The breakdown that a form which should be positive shows.
fn not_positive(form: f64, indefinite: Status) -> Option<Status> {
    match form {
        form if !form.is_finite() => Some(Status::NotFinite),
        form if form <= 0.0 => Some(indefinite),
        _ => None,
    }
}

/// Vectors of an iteration.
pub(super) struct Vectors {
    /// D⁻¹, zero where there is no point, and which lanes of a step are points.
    inverse: *const f64,
    real: *const u8,
    r: *const f64,
    p: *mut f64,
    t: *mut f64,
    w: *mut f64,
}

// SAFETY: pointers to numbers that members of a team write at places that the pipeline keeps apart.
unsafe impl Sync for Vectors {}

impl Vectors {
    /// D⁻¹ and D of a step, zero where there is no point.
    #[inline(always)]
    unsafe fn pivots<L: Lanes>(&self, step: usize) -> (L::Pack, L::Pack) {
        // SAFETY: as `kernels` says.
        unsafe {
            let inverse = L::load(self.inverse.add(step * LANES));
            (inverse, L::keep(*self.real.add(step), L::div(L::splat(1.0), inverse)))
        }
    }
}

/// p = D r̂ + β p;  t = D⁻¹ (p − U t), downwards.
#[inline(always)]
unsafe fn descend_with<L: Lanes, C: Source, E: Source, const D: usize>(
    sides: &Sides<'_, C, E>,
    piece: &Piece,
    v: &Vectors,
    beta: f64,
) {
    let (above, ahead) = (sides.above.of(piece), sides.upper.ahead::<D, true>());
    // SAFETY: as `kernels` says.
    unsafe {
        let beta = L::splat(beta);
        for step in piece.steps.clone().rev() {
            let at = step * LANES;
            let (inverse, d) = v.pivots::<L>(step);
            let p = L::add(L::mul(d, L::load(v.r.add(at))), L::mul(beta, L::load(v.p.add(at))));
            L::store(v.p.add(at), p);
            let mut acc = p;
            for reach in above.iter().rev() {
                let t = neighbour::<L, f64>(v.t.add(at), 1, reach);
                acc = L::sub(acc, L::mul(sides.upper.next_entry::<L>(step, reach.index, ahead), t));
            }
            L::store(v.t.add(at), L::mul(inverse, acc));
        }
    }
}

/// w = D⁻¹ (p + (E − 2D) t − L w), upwards; the sums of pᵀ(t + w) and of the squares of (D + L) r̂.
#[inline(always)]
unsafe fn ascend_with<L: Lanes, C: Source, E: Source, const D: usize>(
    sides: &Sides<'_, C, E>,
    piece: &Piece,
    v: &Vectors,
    sums: *mut f64,
    pieces: usize,
) {
    let (below, ahead) = (sides.below.of(piece), sides.lower.ahead::<D, false>());
    // SAFETY: as `kernels` says; both sums of this piece are this member's.
    unsafe {
        let (mut pq, mut rr) = (L::splat(0.0), L::splat(0.0));
        for step in piece.steps.clone() {
            let at = step * LANES;
            let (inverse, d) = v.pivots::<L>(step);
            let (p, t) = (L::load(v.p.add(at)), L::load(v.t.add(at)));
            let e = sides.diagonal.entry::<L>(step, 0);
            let mut acc = L::add(p, L::mul(L::sub(e, L::add(d, d)), t));
            let mut residual = L::mul(d, L::load(v.r.add(at)));
            for reach in below {
                let l = sides.lower.next_entry::<L>(step, reach.index, ahead);
                residual = L::add(residual, L::mul(l, neighbour::<L, f64>(v.r.add(at), 1, reach)));
                acc = L::sub(acc, L::mul(l, neighbour::<L, f64>(v.w.add(at), 1, reach)));
            }
            let w = L::mul(inverse, acc);
            L::store(v.w.add(at), w);
            pq = L::add(pq, L::mul(p, L::add(t, w)));
            rr = L::add(rr, L::mul(residual, residual));
        }
        *sums.add(piece.number) = L::sum(pq);
        *sums.add(pieces + piece.number) = L::sum(rr);
    }
}

/// x += α t;  r̂ −= α (t + w);  the sum of D r̂².
#[inline(always)]
unsafe fn step_with<L: Lanes, const D: usize>(
    piece: &Piece,
    v: &Vectors,
    alpha: f64,
    x: *mut f64,
    r: *mut f64,
    sums: *mut f64,
) {
    // SAFETY: as `kernels` says; the sum of this piece is this member's.
    unsafe {
        let (alpha, mut sum) = (L::splat(alpha), L::splat(0.0));
        for step in piece.steps.clone() {
            let at = step * LANES;
            let (t, w) = (L::load(v.t.add(at)), L::load(v.w.add(at)));
            L::store(x.add(at), L::add(L::load(x.add(at)), L::mul(alpha, t)));
            let new = L::sub(L::load(r.add(at)), L::mul(alpha, L::add(t, w)));
            L::store(r.add(at), new);
            let (_, d) = v.pivots::<L>(step);
            sum = L::add(sum, L::mul(d, L::mul(new, new)));
        }
        *sums.add(piece.number) = L::sum(sum);
    }
}

for_each_size! {
    descend = descend_with<C: Source, E: Source>(
        sides: &Sides<'_, C, E>, piece: &Piece, v: &Vectors, beta: f64,
    ) if false
}
for_each_size! {
    ascend = ascend_with<C: Source, E: Source>(
        sides: &Sides<'_, C, E>, piece: &Piece, v: &Vectors, sums: *mut f64, pieces: usize,
    ) if false
}
for_each_size! {
    step = step_with<>(
        piece: &Piece, v: &Vectors, alpha: f64, x: *mut f64, r: *mut f64, sums: *mut f64,
    ) if false
}
