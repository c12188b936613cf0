//! Incomplete factors of stencil matrices: M = (D + L) D⁻¹ (D + U) on the stencil of A or one with fill.
//!
//! The preconditioners are those of `precond`: IC(0), ILU(0), IC(k) and ILU(k) as a wider stencil, modified and diagonal-only ones,
//! equal up to rounding. Of a Cholesky factor both triangles are computed, from both of A's; by rows the upper one is not read, so the two
//! differ for values that are not symmetric. With several unknowns a point the factors are those of `block`, with its inverses of the
//! diagonal's blocks. Where elimination changes the blocks on the diagonal alone (5- and 7-point stars, and always for the diagonal-only
//! ones), L and U are A's own coefficients and not stored again.
//!
//! Bytes of both sweeps: 8 an entry off the diagonal (4 in `f32`), 16 dof² a point for D⁻¹, and 40 a row.
#![allow(unsafe_code)]

use super::eliminate::{self, Making, Steps, Task};
use super::kernels::{self, Constant, Sides, Source, Stored as InMemory};
use super::layout::{Layout, Piece, Reaches};
use super::matrix::{StencilMatrix, Values, with_sides};
use super::pipeline::{Direction, Pipeline, PipelineScratch};
use super::stencil::{Offset, Stencil};
use crate::disjoint::DisjointSlice;
use crate::error::{BackendError, SetupError};
use crate::huge;
use crate::operator::{LinearOperator, Preconditioner, SplitSweeps};
use crate::precond::{FirstBadPivot, Form, Kind};
use crate::schedule::require_threads;
use crate::simd::{LANES, Stored};
use crate::space::{Threads, require_same};
use std::sync::Arc;

/// The factor, its triangles stored in `S`.
#[derive(Debug)]
pub struct StencilFactor<S = f64> {
    layout: Arc<Layout>,
    stencil: Stencil,
    dof: usize,
    form: Form,
    triangles: Triangles<S>,
    /// D⁻¹.
    inverse: Vec<f64>,
    below: Reaches,
    above: Reaches,
    /// Where A has the factor's lower and upper offsets.
    of_a: [Vec<Option<usize>>; 2],
    a_stencil: Stencil,
    steps: Steps,
    pipeline: Pipeline,
    shift: f64,
    /// There is a factor.
    ready: bool,
    /// Places of the lower and the upper offsets that A does not have.
    missing: [usize; 2],
    refactoring: PipelineScratch,
}

/// L and U.
#[derive(Debug)]
enum Triangles<S> {
    Own {
        lower: Vec<S>,
        upper: Vec<S>,
    },
    /// Those of A; `None` before the first factorization and after [`StencilFactor::release`].
    OfA(Option<Arc<Values>>),
}

/// Progress of the sweeps.
#[derive(Debug)]
pub struct StencilScratch {
    pipeline: PipelineScratch,
}

impl<S: Stored> StencilFactor<S> {
    /// The stencil of a factor, or why there is none.
    fn plan(a: &StencilMatrix, form: Form, level: usize) -> Result<Stencil, SetupError> {
        let unsupported = |what| SetupError::from(BackendError::Unsupported { what });
        if form.kind == Kind::Cholesky && !a.has_symmetric_pattern() {
            return Err(SetupError::PatternNotSymmetric);
        }
        if a.dof > 1 && size_of::<S>() < size_of::<f64>() {
            return Err(unsupported("narrow factors of several unknowns a point"));
        }
        if form.transposed() || (form.omega() != 0.0 && a.dof > 1) {
            return Err(unsupported("these modifications on a grid"));
        }
        if level > 0 && !a.present.is_empty() {
            return Err(unsupported("fill where entries of the stencil are missing"));
        }
        let stencil = a.stencil.with_fill(level).ok_or_else(|| unsupported("fill on this stencil"))?;
        if !a.layout.fits(&stencil) {
            return Err(unsupported("fill in this layout"));
        }
        Ok(stencil)
    }

    /// Whether the triangles of a factor can be those of A, which are stored in `f64`.
    fn shares(a: &StencilMatrix, stencil: &Stencil, steps: &Steps) -> bool {
        steps.keep_off_diagonals() && size_of::<S>() == size_of::<f64>() && *stencil == a.stencil
    }

    /// Bytes that a factor would take.
    pub fn predict(a: &StencilMatrix, form: Form, level: usize) -> Result<usize, SetupError> {
        let stencil = Self::plan(a, form, level)?;
        let blocks = a.layout.steps * a.dof * a.dof * LANES;
        let shared = Self::shares(a, &stencil, &Steps::new(&stencil, form.update));
        let own = if shared { 0 } else { blocks * (stencil.len() - 1) * size_of::<S>() };
        Ok(own + blocks * size_of::<f64>())
    }

    /// Room for the factor of a matrix on a stencil with `level` levels of fill, for a team of `threads`. Fill needs a matrix that
    /// has every entry of its stencil.
    pub fn new(a: &StencilMatrix, form: Form, level: usize, threads: usize) -> Result<Self, SetupError> {
        require_threads(threads)?;
        let (stencil, layout) = (Self::plan(a, form, level)?, &a.layout);
        let steps = Steps::new(&stencil, form.update);
        let squared = a.dof * a.dof;
        let triangles = if Self::shares(a, &stencil, &steps) {
            Triangles::OfA(None)
        } else {
            let room = |count: usize| huge::zeros_or_error(layout.steps * count * squared * LANES);
            Triangles::Own { lower: room(stencil.lower().len())?, upper: room(stencil.upper().len())? }
        };
        let place = |side: &[Offset], o: &Offset| side.iter().position(|known| known == o);
        Ok(StencilFactor {
            of_a: [
                stencil.lower().iter().map(|o| place(a.stencil.lower(), o)).collect(),
                stencil.upper().iter().map(|o| place(a.stencil.upper(), o)).collect(),
            ],
            below: Reaches::new(layout, stencil.lower()),
            above: Reaches::new(layout, stencil.upper()),
            pipeline: Pipeline::new(layout, &stencil),
            inverse: huge::zeros_or_error(layout.steps * squared * LANES)?,
            layout: Arc::clone(layout),
            a_stencil: a.stencil.clone(),
            dof: a.dof,
            form,
            triangles,
            steps,
            stencil,
            shift: 0.0,
            ready: false,
            missing: a.missing(),
            refactoring: PipelineScratch::new(threads),
        })
    }

    /// The factor of a matrix on the same stencil and layout, in place; allocates nothing unless the team is larger than was said. After
    /// an error there is no factor.
    fn refactor_from(&mut self, space: &Threads<f64>, a: &StencilMatrix) -> Result<(), SetupError> {
        if !Arc::ptr_eq(&a.layout, &self.layout) || a.stencil != self.a_stencil || a.dof != self.dof {
            return Err(SetupError::PatternChanged);
        }
        if !a.present.is_empty() && self.stencil != self.a_stencil {
            return Err(SetupError::PatternChanged);
        }
        self.ready = false;
        let bad = FirstBadPivot::default();
        with_sides!(a, sides => self.eliminate(space, a, sides, &bad));
        if let Triangles::OfA(values) = &mut self.triangles {
            *values = Some(Arc::clone(&a.values));
        }
        self.ready = bad.is_none();
        bad.into_result(|row| self.pivot_at(row))
    }

    fn eliminate<C: Source + Sync, E: Source + Sync>(
        &mut self,
        space: &Threads<f64>,
        a: &StencilMatrix,
        sides: Sides<'_, C, E>,
        bad: &FirstBadPivot,
    ) {
        let (layout, dof) = (&*self.layout, self.dof);
        let counts = [self.stencil.lower().len(), self.stencil.upper().len()];
        let inverse = self.inverse.as_mut_ptr();
        let task = Task {
            layout,
            a: sides,
            of_a: [&self.of_a[0], &self.of_a[1]],
            present: (!a.present.is_empty()).then_some(a.present.as_slice()),
            below: &self.below,
            steps: &self.steps,
            form: self.form,
            shift: self.shift,
            bad,
        };
        let counters = self.refactoring.begin(layout, 1, space.threads());
        let pipeline = self.pipeline;
        let go = |run: &(dyn Fn(&Piece) + Sync)| {
            space.team().run(|member| pipeline.go(&member, layout, Direction::Up, counters, 0, run));
        };
        // SAFETY of both: arrays are of the layout's size; the pipeline calls each piece once, after what its lower offsets lead to.
        match &mut self.triangles {
            Triangles::Own { lower, upper } => {
                let (lower, upper) = (lower.as_mut_ptr(), upper.as_mut_ptr());
                let making = Making { lower, inverse, upper, counts };
                // SAFETY: as above.
                go(&|piece| unsafe { eliminate::eliminate(dof, &task, &making, piece) });
            }
            Triangles::OfA(_) => {
                let none = std::ptr::null_mut();
                let making = Making::<f64> { lower: none, inverse, upper: none, counts };
                // SAFETY: as above; triangles are not written.
                go(&|piece| unsafe { eliminate::eliminate_diagonal(dof, &task, &making, piece) });
            }
        }
    }

    /// What elimination left in the place of the inverse of a row's pivot.
    fn pivot_at(&self, row: usize) -> f64 {
        let (number, k) = (row / self.dof, row % self.dof);
        let (step, lane) = self.layout.place(self.layout.grid.point(number));
        self.inverse[((step * self.dof + k) * self.dof + k) * LANES + lane]
    }

    /// Entries of the factor, as those of the other forms count them.
    pub fn nnz(&self) -> usize {
        let squared = self.dof * self.dof;
        let grid = self.layout.grid;
        let blocks = |offsets: &[Offset]| offsets.iter().map(|&o| grid.places(o)).sum::<usize>() * squared;
        let points = grid.points();
        let [below, above] = self.missing.map(|count| count * squared);
        match self.form.kind {
            Kind::Cholesky => blocks(self.stencil.lower()) - below + points * self.dof * (self.dof + 1) / 2,
            Kind::Lu => blocks(self.stencil.offsets()) - below - above,
        }
    }

    /// Bytes of the factor, A's coefficients not counted.
    pub fn bytes(&self) -> usize {
        let own = match &self.triangles {
            Triangles::Own { lower, upper } => size_of_val(lower.as_slice()) + size_of_val(upper.as_slice()),
            Triangles::OfA(_) => 0,
        };
        own + size_of_val(self.inverse.as_slice())
    }

    pub(super) fn require_ready(&self) -> Result<(), BackendError> {
        match self.ready {
            true => Ok(()),
            false => Err(BackendError::Failed { what: "there is no factor".into() }),
        }
    }

    /// Whether L and U are the coefficients that A has now.
    pub fn has_triangles_of(&self, a: &StencilMatrix) -> bool {
        matches!(&self.triangles, Triangles::OfA(Some(values)) if Arc::ptr_eq(values, &a.values))
    }

    /// D⁻¹, zero where there is no point.
    pub(super) fn inverse(&self) -> &[f64] {
        &self.inverse
    }

    pub(super) fn pipeline(&self) -> Pipeline {
        self.pipeline
    }

    pub(super) fn layout(&self) -> &Arc<Layout> {
        &self.layout
    }

    /// The stencil, with its fill.
    pub fn stencil(&self) -> &Stencil {
        &self.stencil
    }

    /// Whether L and U are A's own coefficients.
    pub fn shares_off_diagonals(&self) -> bool {
        matches!(self.triangles, Triangles::OfA(_))
    }

    fn sweep<C: Source + Sync, E: Source + Sync>(
        &self,
        space: &Threads<f64>,
        sides: Sides<'_, C, E>,
        x: &[f64],
        z: &mut [f64],
        scratch: &mut StencilScratch,
    ) {
        let (layout, dof, pipeline) = (&*self.layout, self.dof, self.pipeline);
        let counters = scratch.pipeline.begin(layout, 2, space.threads());
        let z = DisjointSlice::new(z);
        space.team().run(|member| {
            let sides = &sides;
            pipeline.go(&member, layout, Direction::Up, counters, 0, |piece| {
                // SAFETY: lengths were checked; the pipeline calls each piece once, after what its lower offsets lead to.
                unsafe { kernels::forward(dof, sides, piece, x.as_ptr(), z.as_mut_ptr()) };
            });
            member.barrier();
            pipeline.go(&member, layout, Direction::Down, counters, 1, |piece| {
                // SAFETY: as above for the upper offsets; the forward sweep ended at the barrier.
                unsafe { kernels::backward(dof, sides, piece, z.as_mut_ptr()) };
            });
        });
    }
}

impl<S: Stored> LinearOperator<Threads<f64>> for StencilFactor<S> {
    type Scratch = StencilScratch;

    fn domain(&self) -> usize {
        self.layout.positions(self.dof)
    }

    fn range(&self) -> usize {
        self.domain()
    }

    fn scratch(&self, space: &Threads<f64>) -> Result<StencilScratch, BackendError> {
        Ok(StencilScratch { pipeline: PipelineScratch::new(space.threads()) })
    }

    fn apply(
        &self,
        space: &Threads<f64>,
        x: &Vec<f64>,
        z: &mut Vec<f64>,
        scratch: &mut StencilScratch,
    ) -> Result<(), BackendError> {
        self.require_ready()?;
        let n = self.domain();
        require_same("x and the factor", &x.len(), &n)?;
        require_same("z and the factor", &z.len(), &n)?;
        let squared = self.dof * self.dof;
        let [nl, nu] = [self.stencil.lower().len(), self.stencil.upper().len()];
        let diagonal = InMemory { values: self.inverse.as_ptr(), width: squared };
        let (below, above) = (&self.below, &self.above);
        match &self.triangles {
            Triangles::Own { lower, upper } => {
                let lower = InMemory { values: lower.as_ptr(), width: nl * squared };
                let upper = InMemory { values: upper.as_ptr(), width: nu * squared };
                self.sweep(space, Sides { lower, diagonal, upper, below, above }, x, z, scratch);
            }
            Triangles::OfA(Some(values)) => match &**values {
                Values::Full { lower, upper, .. } => {
                    let lower = InMemory { values: lower.as_ptr(), width: nl * squared };
                    let upper = InMemory { values: upper.as_ptr(), width: nu * squared };
                    self.sweep(space, Sides { lower, diagonal, upper, below, above }, x, z, scratch);
                }
                Values::Constant { values, present } => {
                    let from = |first: usize| Constant {
                        values: values.as_ptr().wrapping_add(first),
                        present: present.as_ptr().wrapping_add(first),
                        width: nl + 1 + nu,
                    };
                    let (lower, upper) = (from(0), from(nl + 1));
                    self.sweep(space, Sides { lower, diagonal, upper, below, above }, x, z, scratch);
                }
            },
            Triangles::OfA(None) => unreachable!("a factor that is ready has its triangles"),
        }
        Ok(())
    }
}

impl<S: Stored> Preconditioner<Threads<f64>, StencilMatrix> for StencilFactor<S> {
    fn refactor(&mut self, space: &Threads<f64>, a: &StencilMatrix) -> Result<(), SetupError> {
        self.refactor_from(space, a)
    }

    fn set_shift(&mut self, shift: f64) -> bool {
        self.shift = shift;
        true
    }

    fn release(&mut self) {
        self.ready = false;
        if let Triangles::OfA(values) = &mut self.triangles {
            *values = None;
        }
    }

    fn split_sweeps(&self) -> Option<&dyn SplitSweeps<Threads<f64>, StencilMatrix>> {
        Some(self)
    }
}
