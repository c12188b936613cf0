//! Incomplete factors in slices: M = (I + L) D (I + U) on strips.
//!
//! The mathematics is that of `precond::eliminate`, eight rows at a time: entry (k, m) of the row that a strip
//! points to meets entry (i, m) of this row where the strips' columns agree, which is decided once for eight rows. Sums run in
//! the order of positions, not of rows, so the factor equals the other one up to rounding.
//!
//! L and U may be stored in `f32`, also while a row is eliminated; D, pivots and the sums of sweeps are `f64`. The backward sweep overwrites what the forward sweep left. Bytes of
//! both: 69 per strip off the diagonal (37 in `f32`), and 40 per row.
#![allow(unsafe_code)]

use super::LANES;
use super::kernels::{self, EliminationTask, FactorWriter};
use super::matrix::Sliced;
use super::strips::SlicedPattern;
use crate::elimination::driver::{Factor, Plans, Triangular};
use crate::elimination::{FirstBadPivot, Form, Incomplete, Kind};
use crate::error::{BackendError, SetupError};
use crate::matrix::Triangle;
use crate::memory::large_pages;
use crate::operator::{Preconditioner, Recipe, Symbolic};
use crate::schedule::{Schedule, SlicePlan, require_threads};
use crate::simd::StorageScalar;
use crate::space::Threads;
use std::ops::Range;
use std::sync::Arc;

/// The factor, its triangles stored in `S`.
pub type SlicedFactor<S = f64> = Factor<SliceKernels<S>>;

/// Values of a factor in slices.
#[derive(Debug)]
pub struct SliceKernels<S> {
    form: Form,
    pattern: Arc<SlicedPattern>,
    lower: Vec<S>,
    /// 1 / D.
    diagonal: Vec<f64>,
    upper: Vec<S>,
}

/// An analyzed pattern: plans for the sweeps.
#[derive(Debug, Clone)]
pub struct SlicedSymbolic {
    form: Form,
    pattern: Arc<SlicedPattern>,
    plans: Arc<Plans<SlicePlan>>,
}

impl SlicedSymbolic {
    /// Plans for a factor on this pattern, which may have more entries than the matrices that are factored, on a team of `threads`. A
    /// symmetric factor needs a symmetric pattern; one that keeps sums of columns is made by rows only.
    pub fn new(
        pattern: &Arc<SlicedPattern>,
        form: Form,
        threads: usize,
        schedule: Schedule,
    ) -> Result<Self, SetupError> {
        require_threads(threads)?;
        if form.kind == Kind::Cholesky && !pattern.is_symmetric() {
            return Err(SetupError::PatternNotSymmetric);
        }
        if form.transposed() {
            return Err(BackendError::Unsupported { what: "sums of columns in slices" }.into());
        }
        if !pattern.keeps_sides() {
            return Err(BackendError::Unsupported { what: "a factor in the order of another pattern" }.into());
        }
        let plan = |triangle: Triangle| {
            let strips = match triangle {
                Triangle::Lower => &pattern.lower,
                Triangle::Upper => &pattern.upper,
            };
            SlicePlan::new(&pattern.order.levels, triangle, threads, schedule, |slice| strips.needs(slice))
        };
        let plans = Arc::new(Plans { down: plan(Triangle::Lower), up: plan(Triangle::Upper) });
        Ok(SlicedSymbolic { form, pattern: Arc::clone(pattern), plans })
    }

    /// Room for a factor stored in `S`: `refactor` comes before its use.
    pub fn allocate<S: StorageScalar>(&self) -> SlicedFactor<S> {
        let pattern = &self.pattern;
        let kernels = SliceKernels {
            form: self.form,
            pattern: Arc::clone(pattern),
            lower: large_pages::zeros(pattern.lower.len() * LANES),
            diagonal: large_pages::zeros(pattern.positions()),
            upper: large_pages::zeros(pattern.upper.len() * LANES),
        };
        Factor::with_room(kernels, Arc::clone(&self.plans))
    }
}

impl Recipe<Threads<f64>, Sliced> for Incomplete {
    type Symbolic = SlicedSymbolic;

    /// For a factor without fill; one with fill has slices of its own ([`SlicedSymbolic::new`]).
    fn analyze(&self, space: &Threads<f64>, a: &Sliced) -> Result<SlicedSymbolic, SetupError> {
        if self.level > 0 {
            return Err(BackendError::Unsupported { what: "fill in the slices of A" }.into());
        }
        SlicedSymbolic::new(&a.pattern, self.form, space.threads(), self.schedule)
    }
}

impl Symbolic<Threads<f64>, Sliced> for SlicedSymbolic {
    type Factor = SlicedFactor;

    fn factor(&self, space: &Threads<f64>, a: &Sliced) -> Result<SlicedFactor, SetupError> {
        let mut factor = self.allocate();
        factor.refactor(space, a)?;
        Ok(factor)
    }
}

impl<S: StorageScalar> Triangular for SliceKernels<S> {
    type Scalar = f64;
    type Source = Sliced;
    type Plan = SlicePlan;
    type Elimination<'e> = (EliminationTask<'e>, FactorWriter<S>);

    fn len(&self) -> usize {
        self.diagonal.len()
    }

    /// A matrix in the same order, whose pattern is part of the factor's.
    fn require(&self, source: &Sliced) -> Result<(), SetupError> {
        let same = Arc::ptr_eq(&source.pattern.order, &self.pattern.order);
        if same { Ok(()) } else { Err(SetupError::PatternChanged) }
    }

    fn begin<'e>(
        &'e mut self,
        source: &'e Sliced,
        shift: f64,
        bad: &'e FirstBadPivot,
    ) -> Self::Elimination<'e> {
        let (pattern, form) = (&*self.pattern, self.form);
        let task =
            EliminationTask { pattern, a_pattern: &source.pattern, a: source.values(), form, shift, bad };
        let values = FactorWriter {
            lower: self.lower.as_mut_ptr(),
            diagonal: self.diagonal.as_mut_ptr(),
            upper: self.upper.as_mut_ptr(),
        };
        (task, values)
    }

    unsafe fn eliminate((task, values): &Self::Elimination<'_>, slices: Range<usize>) {
        // SAFETY: by the caller's promise.
        unsafe {
            match task.form.computes_both() {
                true => kernels::eliminate_both(task, *values, slices),
                false => kernels::eliminate_cholesky(task, *values, slices),
            }
        }
    }

    fn mirror_parts(&self) -> Option<(usize, usize)> {
        (self.form.kind == Kind::Cholesky).then_some((self.pattern.order.slices(), 64))
    }

    unsafe fn mirror((task, values): &Self::Elimination<'_>, slices: Range<usize>) {
        // SAFETY: by the caller's promise.
        unsafe { kernels::mirror(task.pattern, *values, slices) };
    }

    fn pivot(&self, row: usize) -> f64 {
        self.diagonal[self.pattern.order.positions[row] as usize]
    }

    #[inline]
    unsafe fn forward(&self, slices: Range<usize>, x: *const f64, z: *mut f64) {
        // SAFETY: by the caller's promise.
        unsafe { kernels::forward(&self.pattern.lower, self.lower.as_ptr(), slices, x, z) };
    }

    #[inline]
    unsafe fn backward(&self, slices: Range<usize>, z: *mut f64) {
        let (upper, inverse) = (self.upper.as_ptr(), self.diagonal.as_ptr());
        // SAFETY: by the caller's promise.
        unsafe { kernels::backward(&self.pattern.upper, upper, inverse, slices, z) };
    }

    fn nnz(&self) -> usize {
        let source = &self.pattern.source;
        match self.form.kind {
            Kind::Cholesky => source.nrows() + (source.nnz() - source.nrows()) / 2,
            Kind::Lu => source.nnz(),
        }
    }

    /// The pattern is not counted.
    fn bytes(&self) -> usize {
        size_of_val(self.lower.as_slice())
            + size_of_val(self.diagonal.as_slice())
            + size_of_val(self.upper.as_slice())
    }
}
