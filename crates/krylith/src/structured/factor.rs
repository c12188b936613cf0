//! Incomplete factors of stencil matrices: M = (D + L) D⁻¹ (D + U) on the stencil of A or one with fill.
//!
//! The preconditioners are those of `precond`: IC(0), ILU(0), IC(k) and ILU(k) as a wider stencil, modified and diagonal-only ones,
//! equal up to rounding. Of a Cholesky factor both triangles are computed, from both of A's; by rows the upper one is not read, so the two
//! differ for values that are not symmetric. With several unknowns per point the factors are those of `block`, with its inverses of the
//! diagonal's blocks. Where elimination changes the blocks on the diagonal alone (5- and 7-point stars, and always for the diagonal-only
//! ones), L and U are A's own coefficients and not stored again.
//!
//! Bytes of both sweeps: 8 per entry off the diagonal (4 in `f32`), 16 dof² per point for D⁻¹, and 40 per row.
#![allow(unsafe_code)]

use super::arrangement::{Arrangement, NeighbourShifts, Piece};
use super::eliminate::{EliminationTask, FactorWriter, Steps, eliminate};
use super::kernels::{self, Coefficients, Constant, Sides};
use super::matrix::{StencilMatrix, Values, with_sides};
use super::pipeline::{Direction, GridPlan, Pipeline};
use super::stencil::{Offset, Stencil};
use crate::elimination::driver::{Factor, Plans, Triangular};
use crate::elimination::{FirstBadPivot, Form, Incomplete, Kind};
use crate::error::{BackendError, SetupError};
use crate::memory::large_pages;
use crate::operator::{Preconditioner, Recipe, SplitSweeps, Symbolic};
use crate::schedule::require_threads;
use crate::simd::{LANES, StorageScalar};
use crate::space::Threads;
use std::sync::Arc;

/// The factor, its triangles stored in `S`.
pub type StencilFactor<S = f64> = Factor<StencilKernels<S>>;

/// What does not depend on values.
#[derive(Debug)]
struct Shape {
    arrangement: Arc<Arrangement>,
    stencil: Stencil,
    dof: usize,
    form: Form,
    below: NeighbourShifts,
    above: NeighbourShifts,
    /// Where A has the factor's lower and upper offsets.
    of_a: [Vec<Option<usize>>; 2],
    a_stencil: Stencil,
    steps: Steps,
    pipeline: Pipeline,
    /// Places of the lower and the upper offsets that A does not have.
    missing: [usize; 2],
}

/// Values of a factor on a grid.
#[derive(Debug)]
pub struct StencilKernels<S> {
    shape: Arc<Shape>,
    triangles: Triangles<S>,
    /// D⁻¹.
    inverse: Vec<f64>,
}

/// L and U.
#[derive(Debug)]
enum Triangles<S> {
    Own {
        lower: Vec<S>,
        upper: Vec<S>,
    },
    /// Those of A; `None` before the first factorization and after `release`.
    OfA(Option<Arc<Values>>),
}

/// An analyzed stencil: plans for the sweeps, and what elimination does.
#[derive(Debug, Clone)]
pub struct StencilSymbolic {
    shape: Arc<Shape>,
    plans: Arc<Plans<GridPlan>>,
}

impl StencilSymbolic {
    /// A factor of matrices on this stencil with `level` levels of fill, for a team of `threads`. Fill needs a matrix that has every
    /// entry of its stencil.
    pub fn new(a: &StencilMatrix, form: Form, level: usize, threads: usize) -> Result<Self, SetupError> {
        require_threads(threads)?;
        let unsupported = |what| SetupError::from(BackendError::Unsupported { what });
        if form.kind == Kind::Cholesky && !a.has_symmetric_pattern() {
            return Err(SetupError::PatternNotSymmetric);
        }
        if form.transposed() || (form.omega() != 0.0 && a.dof > 1) {
            return Err(unsupported("these modifications on a grid"));
        }
        if level > 0 && !a.present.is_empty() {
            return Err(unsupported("fill where entries of the stencil are missing"));
        }
        let stencil = a.stencil.with_fill(level).ok_or_else(|| unsupported("fill on this stencil"))?;
        let arrangement = &a.arrangement;
        if !arrangement.fits(&stencil) {
            return Err(unsupported("fill in this arrangement"));
        }
        let place = |side: &[Offset], o: &Offset| side.iter().position(|known| known == o);
        let pipeline = Pipeline::new(arrangement, &stencil);
        let plan =
            |direction| GridPlan { arrangement: Arc::clone(arrangement), pipeline, direction, threads };
        let plans = Plans { down: plan(Direction::Up), up: plan(Direction::Down) };
        let shape = Shape {
            of_a: [
                stencil.lower().iter().map(|o| place(a.stencil.lower(), o)).collect(),
                stencil.upper().iter().map(|o| place(a.stencil.upper(), o)).collect(),
            ],
            below: NeighbourShifts::new(arrangement, stencil.lower()),
            above: NeighbourShifts::new(arrangement, stencil.upper()),
            pipeline,
            arrangement: Arc::clone(arrangement),
            a_stencil: a.stencil.clone(),
            dof: a.dof,
            form,
            steps: Steps::new(&stencil, form.update),
            stencil,
            missing: a.missing(),
        };
        Ok(StencilSymbolic { shape: Arc::new(shape), plans: Arc::new(plans) })
    }

    /// Whether the triangles of a factor can be those of A, which are stored in `f64`.
    fn shares<S>(&self) -> bool {
        let Shape { steps, stencil, a_stencil, .. } = &*self.shape;
        steps.keep_off_diagonals() && size_of::<S>() == size_of::<f64>() && stencil == a_stencil
    }

    /// Numbers of one offset.
    fn numbers(&self) -> usize {
        self.shape.arrangement.steps * self.shape.dof * self.shape.dof * LANES
    }

    /// Bytes that a factor stored in `S` takes.
    pub fn predicted_bytes<S: StorageScalar>(&self) -> usize {
        let own = if self.shares::<S>() { 0 } else { (self.shape.stencil.len() - 1) * size_of::<S>() };
        self.numbers() * (own + size_of::<f64>())
    }

    /// Room for a factor stored in `S`: `refactor` comes before its use.
    pub fn allocate<S: StorageScalar>(&self) -> Result<StencilFactor<S>, SetupError> {
        let Shape { stencil, dof, .. } = &*self.shape;
        if *dof > 1 && size_of::<S>() < size_of::<f64>() {
            let what = "narrow factors of several unknowns per point";
            return Err(BackendError::Unsupported { what }.into());
        }
        let room = |offsets: usize| large_pages::zeros_or_error(offsets * self.numbers());
        let triangles = match self.shares::<S>() {
            true => Triangles::OfA(None),
            false => {
                Triangles::Own { lower: room(stencil.lower().len())?, upper: room(stencil.upper().len())? }
            }
        };
        let inverse = large_pages::zeros_or_error(self.numbers())?;
        let kernels = StencilKernels { shape: Arc::clone(&self.shape), triangles, inverse };
        Ok(Factor::with_room(kernels, Arc::clone(&self.plans)))
    }
}

impl Recipe<Threads<f64>, StencilMatrix> for Incomplete {
    type Symbolic = StencilSymbolic;

    fn analyze(&self, space: &Threads<f64>, a: &StencilMatrix) -> Result<StencilSymbolic, SetupError> {
        StencilSymbolic::new(a, self.form, self.level, space.threads())
    }
}

impl Symbolic<Threads<f64>, StencilMatrix> for StencilSymbolic {
    type Factor = StencilFactor;

    fn factor(&self, space: &Threads<f64>, a: &StencilMatrix) -> Result<StencilFactor, SetupError> {
        let mut factor = self.allocate()?;
        factor.refactor(space, a)?;
        Ok(factor)
    }
}

impl<S: StorageScalar> StencilFactor<S> {
    /// The stencil, with its fill.
    pub fn stencil(&self) -> &Stencil {
        &self.kernels().shape.stencil
    }

    /// Whether L and U are A's own coefficients.
    pub fn shares_off_diagonals(&self) -> bool {
        matches!(self.kernels().triangles, Triangles::OfA(_))
    }
}

impl<S: StorageScalar> StencilKernels<S> {
    /// Whether L and U are the coefficients that A has now.
    pub(super) fn has_triangles_of(&self, a: &StencilMatrix) -> bool {
        matches!(&self.triangles, Triangles::OfA(Some(values)) if Arc::ptr_eq(values, &a.values))
    }

    /// D⁻¹, zero where there is no point.
    pub(super) fn inverse(&self) -> &[f64] {
        &self.inverse
    }

    pub(super) fn pipeline(&self) -> Pipeline {
        self.shape.pipeline
    }

    pub(super) fn arrangement(&self) -> &Arc<Arrangement> {
        &self.shape.arrangement
    }
}

/// What members share while they eliminate.
pub struct Elimination<'e, S> {
    shape: &'e Shape,
    a: &'e StencilMatrix,
    shift: f64,
    bad: &'e FirstBadPivot,
    /// Null where triangles stay those of A.
    writer: FactorWriter<S>,
}

/// Calls an expression with the `Sides` of a factor, of whichever kind its triangles are.
macro_rules! with_own_sides {
    ($kernels:expr, $sides:ident => $body:expr) => {{
        let StencilKernels { shape, triangles, inverse } = $kernels;
        let squared = shape.dof * shape.dof;
        let [nl, nu] = [shape.stencil.lower().len(), shape.stencil.upper().len()];
        let diagonal = Coefficients { values: inverse.as_ptr(), width: squared };
        let (below, above) = (&shape.below, &shape.above);
        match triangles {
            Triangles::Own { lower, upper } => {
                let lower = Coefficients { values: lower.as_ptr(), width: nl * squared };
                let upper = Coefficients { values: upper.as_ptr(), width: nu * squared };
                let $sides = &Sides { lower, diagonal, upper, below, above };
                $body
            }
            Triangles::OfA(Some(values)) => match &**values {
                Values::Full { lower, upper, .. } => {
                    let lower = Coefficients { values: lower.as_ptr(), width: nl * squared };
                    let upper = Coefficients { values: upper.as_ptr(), width: nu * squared };
                    let $sides = &Sides { lower, diagonal, upper, below, above };
                    $body
                }
                Values::Constant { values, present } => {
                    let from = |first: usize| Constant {
                        values: values.as_ptr().wrapping_add(first),
                        present: present.as_ptr().wrapping_add(first),
                        width: nl + 1 + nu,
                    };
                    let (lower, upper) = (from(0), from(nl + 1));
                    let $sides = &Sides { lower, diagonal, upper, below, above };
                    $body
                }
            },
            Triangles::OfA(None) => unreachable!("a factor that is ready has its triangles"),
        }
    }};
}

impl<S: StorageScalar> Triangular for StencilKernels<S> {
    type Scalar = f64;
    type Source = StencilMatrix;
    type Plan = GridPlan;
    type Elimination<'e> = Elimination<'e, S>;

    fn len(&self) -> usize {
        self.shape.arrangement.positions(self.shape.dof)
    }

    fn require(&self, a: &StencilMatrix) -> Result<(), SetupError> {
        a.require_values()?;
        let Shape { arrangement, stencil, a_stencil, dof, .. } = &*self.shape;
        let fits = Arc::ptr_eq(&a.arrangement, arrangement)
            && a.stencil == *a_stencil
            && a.dof == *dof
            && (a.present.is_empty() || stencil == a_stencil);
        if fits { Ok(()) } else { Err(SetupError::PatternChanged) }
    }

    fn begin<'e>(
        &'e mut self,
        a: &'e StencilMatrix,
        shift: f64,
        bad: &'e FirstBadPivot,
    ) -> Elimination<'e, S> {
        let (shape, inverse) = (&*self.shape, self.inverse.as_mut_ptr());
        let counts = [shape.stencil.lower().len(), shape.stencil.upper().len()];
        let (lower, upper) = match &mut self.triangles {
            Triangles::Own { lower, upper } => (lower.as_mut_ptr(), upper.as_mut_ptr()),
            Triangles::OfA(_) => (std::ptr::null_mut(), std::ptr::null_mut()),
        };
        Elimination { shape, a, shift, bad, writer: FactorWriter { lower, inverse, upper, counts } }
    }

    unsafe fn eliminate(e: &Elimination<'_, S>, piece: Piece) {
        let Shape { arrangement, dof, form, below, of_a, steps, .. } = e.shape;
        let (dof, form, of_a) = (*dof, *form, [of_a[0].as_slice(), of_a[1].as_slice()]);
        let present = (!e.a.present.is_empty()).then_some(e.a.present.as_slice());
        let (shift, bad, writer) = (e.shift, e.bad, &e.writer);
        with_sides!(e.a, a => {
            // SAFETY: arrays are of the arrangement's size; the rest by the caller's promise.
            unsafe {
                match writer.keeps_triangles() {
                    true => {
                        let triangles = [a.lower, a.upper];
                        let task = EliminationTask { arrangement, a, triangles, of_a, present, below, steps, form, shift, bad };
                        eliminate(dof, &task, writer, &piece);
                    }
                    false => {
                        let triangles = writer.triangles(dof);
                        let task = EliminationTask { arrangement, a, triangles, of_a, present, below, steps, form, shift, bad };
                        eliminate(dof, &task, writer, &piece);
                    }
                }
            }
        });
    }

    fn finished(&mut self, a: &StencilMatrix) {
        if let Triangles::OfA(values) = &mut self.triangles {
            *values = Some(Arc::clone(&a.values));
        }
    }

    fn release(&mut self) {
        if let Triangles::OfA(values) = &mut self.triangles {
            *values = None;
        }
    }

    /// What elimination left in the place of the inverse of a row's pivot.
    fn pivot(&self, row: usize) -> f64 {
        let Shape { arrangement, dof, .. } = &*self.shape;
        let (number, k) = (row / dof, row % dof);
        let (step, lane) = arrangement.place(arrangement.grid.point(number));
        self.inverse[((step * dof + k) * dof + k) * LANES + lane]
    }

    unsafe fn forward(&self, piece: Piece, x: *const f64, z: *mut f64) {
        // SAFETY: by the caller's promise.
        with_own_sides!(self, sides => unsafe { kernels::forward(self.shape.dof, sides, &piece, x, z) });
    }

    unsafe fn backward(&self, piece: Piece, z: *mut f64) {
        // SAFETY: by the caller's promise.
        with_own_sides!(self, sides => unsafe { kernels::backward(self.shape.dof, sides, &piece, z) });
    }

    fn nnz(&self) -> usize {
        let Shape { arrangement, stencil, dof, form, missing, .. } = &*self.shape;
        let (grid, squared) = (arrangement.grid, dof * dof);
        let blocks = |offsets: &[Offset]| offsets.iter().map(|&o| grid.places(o)).sum::<usize>() * squared;
        let [below, above] = missing.map(|count| count * squared);
        match form.kind {
            Kind::Cholesky => blocks(stencil.lower()) - below + grid.points() * dof * (dof + 1) / 2,
            Kind::Lu => blocks(stencil.offsets()) - below - above,
        }
    }

    /// A's coefficients are not counted.
    fn bytes(&self) -> usize {
        let own = match &self.triangles {
            Triangles::Own { lower, upper } => size_of_val(lower.as_slice()) + size_of_val(upper.as_slice()),
            Triangles::OfA(_) => 0,
        };
        own + size_of_val(self.inverse.as_slice())
    }

    fn split_sweeps(factor: &Factor<Self>) -> Option<&dyn SplitSweeps<Threads<f64>, StencilMatrix>> {
        Some(factor)
    }
}
