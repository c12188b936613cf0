//! The sweeps of Eisenstat's trick (`krylov::eisenstat`) on a grid, each fused with the vector updates before it.
//!
//! Bytes per point: 152, and 56 for the coefficients of a 7-point star unless they are constant; the usual way takes 168 and 104.
//! Each piece of the arrangement has a sum of its own, in eight lanes; the sum of the pieces has no order.
#![allow(unsafe_code)]

use super::arrangement::Piece;
use super::factor::StencilFactor;
use super::kernels::{self, Coefficients, Sides, Source, for_each_size, neighbour};
use super::matrix::{StencilMatrix, with_sides};
use super::pipeline::{Direction, PipelineScratch};
use crate::disjoint::DisjointSlice;
use crate::error::BackendError;
use crate::operator::{SplitSweeps, SplitVectors};
use crate::simd::{self, LANES, Lanes};
use crate::space::{BinnedSum, Threads, require_same};
use std::any::Any;
use std::sync::Arc;

/// Progress of the sweeps, and the sums of the pieces: two numbers each.
struct Scratch {
    pipeline: PipelineScratch,
    sums: Vec<f64>,
}

impl Scratch {
    fn of(scratch: &mut dyn Any) -> Result<&mut Scratch, BackendError> {
        let wrong = || BackendError::Failed { what: "the scratch belongs to another operator".into() };
        scratch.downcast_mut().ok_or_else(wrong)
    }
}

fn sum_of(pieces: &[f64]) -> f64 {
    let mut sum = BinnedSum::new();
    sum.add_terms(pieces);
    sum.value()
}

impl<S: simd::StorageScalar> StencilFactor<S> {
    /// The sweeps read A and D⁻¹ by the arrangement of the factor.
    fn check_split(&self, v: &SplitVectors<Vec<f64>>) -> Result<(), BackendError> {
        self.require_ready()?;
        let n = self.kernels().arrangement().positions(1);
        [&v.r, &v.p, &v.t, &v.w]
            .into_iter()
            .try_for_each(|v| require_same("the vector and the arrangement", &v.len(), &n))
    }

    fn check_matrix(&self, a: &StencilMatrix) -> Result<(), BackendError> {
        match SplitSweeps::has_triangles_of(self, a) {
            true => Ok(()),
            false => Err(BackendError::Unsupported { what: "sweeps with the triangles of another matrix" }),
        }
    }

    /// D⁻¹ as a diagonal.
    fn stored_inverse(&self) -> Coefficients<f64> {
        Coefficients { values: self.kernels().inverse().as_ptr(), width: 1 }
    }
}

impl<S: simd::StorageScalar> SplitSweeps<Threads<f64>, StencilMatrix> for StencilFactor<S> {
    fn has_triangles_of(&self, a: &StencilMatrix) -> bool {
        self.require_ready().is_ok()
            && self.kernels().has_triangles_of(a)
            && a.dof == 1
            && Arc::ptr_eq(&a.arrangement, self.kernels().arrangement())
    }

    fn scratch(&self, space: &Threads<f64>) -> Result<Box<dyn Any + Send>, BackendError> {
        let sums = vec![0.0; 2 * self.kernels().arrangement().pieces()];
        Ok(Box::new(Scratch { pipeline: PipelineScratch::new(space.threads()), sums }))
    }

    fn enter(
        &self,
        space: &Threads<f64>,
        a: &StencilMatrix,
        v: &mut SplitVectors<Vec<f64>>,
        scratch: &mut dyn Any,
    ) -> Result<(), BackendError> {
        self.check_matrix(a)?;
        self.check_split(v)?;
        let (arrangement, pipeline, diagonal) =
            (&**self.kernels().arrangement(), self.kernels().pipeline(), self.stored_inverse());
        let counters = Scratch::of(scratch)?.pipeline.begin(arrangement, 1, space.threads());
        let (t, r) = (&v.t, DisjointSlice::new(&mut v.r));
        with_sides!(a, sides => {
            let Sides { lower, upper, below, above, .. } = sides;
            let sides = Sides { lower, diagonal, upper, below, above };
            space.team().run(|member| {
                let sides = &sides;
                pipeline.for_each_ready(&member, arrangement, Direction::Up, counters, 0, |piece| {
                    // SAFETY: vectors of the arrangement's size; each piece once, after what its lower offsets lead to.
                    unsafe { kernels::forward(1, sides, &piece, t.as_ptr(), r.as_mut_ptr()) };
                });
            });
        });
        Ok(())
    }

    fn sweep(
        &self,
        space: &Threads<f64>,
        a: &StencilMatrix,
        beta: f64,
        v: &mut SplitVectors<Vec<f64>>,
        scratch: &mut dyn Any,
    ) -> Result<[f64; 2], BackendError> {
        self.check_matrix(a)?;
        self.check_split(v)?;
        let Scratch { pipeline: progress, sums } = Scratch::of(scratch)?;
        require_same(
            "the scratch and the arrangement",
            &sums.len(),
            &(2 * self.kernels().arrangement().pieces()),
        )?;
        let (arrangement, pipeline) = (&**self.kernels().arrangement(), self.kernels().pipeline());
        let counters = progress.begin(arrangement, 2, space.threads());
        let pieces = arrangement.pieces();
        let vectors = Vectors {
            inverse: self.kernels().inverse().as_ptr(),
            real: arrangement.real.as_ptr(),
            r: v.r.as_ptr(),
            p: v.p.as_mut_ptr(),
            t: v.t.as_mut_ptr(),
            w: v.w.as_mut_ptr(),
        };
        {
            let sums = DisjointSlice::new(sums);
            with_sides!(a, sides => space.team().run(|member| {
                let (sides, vectors, sums) = (&sides, &vectors, &sums);
                pipeline.for_each_ready(&member, arrangement, Direction::Down, counters, 0, |piece| {
                    // SAFETY: vectors of the arrangement's size; each piece once, after what its upper offsets lead to.
                    unsafe { descend(1, sides, &piece, vectors, beta) };
                });
                member.barrier();
                pipeline.for_each_ready(&member, arrangement, Direction::Up, counters, 1, |piece| {
                    // SAFETY: as above for the lower offsets; t is finished since the barrier, every piece has sums of its own.
                    unsafe { ascend(1, sides, &piece, vectors, sums.as_mut_ptr(), pieces) };
                });
            }));
        }
        Ok([sum_of(&sums[..pieces]), sum_of(&sums[pieces..])])
    }

    fn advance(
        &self,
        space: &Threads<f64>,
        alpha: f64,
        v: &mut SplitVectors<Vec<f64>>,
        x: &mut Vec<f64>,
        scratch: &mut dyn Any,
    ) -> Result<f64, BackendError> {
        self.check_split(v)?;
        require_same("x and the arrangement", &x.len(), &v.r.len())?;
        let arrangement = &**self.kernels().arrangement();
        let sums = &mut Scratch::of(scratch)?.sums;
        require_same("the scratch and the arrangement", &sums.len(), &(2 * arrangement.pieces()))?;
        let vectors = Vectors {
            inverse: self.kernels().inverse().as_ptr(),
            real: arrangement.real.as_ptr(),
            r: std::ptr::null(),
            p: std::ptr::null_mut(),
            t: v.t.as_mut_ptr(),
            w: v.w.as_mut_ptr(),
        };
        {
            let (x, r, sums) =
                (DisjointSlice::new(x), DisjointSlice::new(&mut v.r), DisjointSlice::new(sums));
            space.team().run(|member| {
                let vectors = &vectors;
                for unit in member.part(arrangement.units(), 1) {
                    for piece in arrangement.pieces_of(unit) {
                        // SAFETY: vectors of the arrangement's size; every unit has one member, every piece a sum of its own.
                        unsafe {
                            step(1, &piece, vectors, alpha, x.as_mut_ptr(), r.as_mut_ptr(), sums.as_mut_ptr())
                        };
                    }
                }
            });
        }
        Ok(sum_of(&sums[..arrangement.pieces()]))
    }
}

/// Vectors of an iteration, as addresses.
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
