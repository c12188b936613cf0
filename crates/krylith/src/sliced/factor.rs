//! Incomplete factors in slices: M = (I + L) D (I + U) on strips.
//!
//! The mathematics is that of `precond::eliminate`, eight rows at a time: entry (k, m) of the row that a strip
//! points to meets entry (i, m) of this row where the strips' columns agree, which is decided once for eight rows. Sums run in
//! the order of positions, not of rows, so the factor equals the other one up to rounding.
//!
//! L and U may be stored in `f32`, also while a row is eliminated; D, pivots and the sums of sweeps are `f64`. The backward sweep overwrites what the forward sweep left. Bytes of
//! both: 69 a strip off the diagonal (37 in `f32`), and 40 a row.
#![allow(unsafe_code)]

use super::LANES;
use super::kernels::{self, Task, ValuesMut};
use super::matrix::Sliced;
use super::strips::SlicedPattern;
use crate::disjoint::DisjointSlice;
use crate::error::{BackendError, SetupError};
use crate::huge;
use crate::matrix::Triangle;
use crate::operator::{LinearOperator, Preconditioner};
use crate::precond::{FirstBadPivot, Form, Kind};
use crate::schedule::{PlanScratch, Schedule, SlicePlan, require_threads};
use crate::simd::Stored;
use crate::space::{Threads, require_same};
use std::sync::Arc;

/// The factor, its triangles stored in `S`.
#[derive(Debug)]
pub struct SlicedFactor<S = f64> {
    form: Form,
    pattern: Arc<SlicedPattern>,
    lower: Vec<S>,
    /// 1 / D.
    diagonal: Vec<f64>,
    upper: Vec<S>,
    shift: f64,
    down: SlicePlan,
    up: SlicePlan,
    refactoring: PlanScratch,
}

/// Progress of both sweeps.
#[derive(Debug)]
pub struct SlicedScratch {
    down: PlanScratch,
    up: PlanScratch,
}

impl<S: Stored> SlicedFactor<S> {
    /// Plans for the sweeps on a team of `threads`, and room for the factor. A symmetric one needs a symmetric pattern; one that
    /// keeps sums of columns is made by rows only.
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
        let (down, up) = (plan(Triangle::Lower), plan(Triangle::Upper));
        Ok(SlicedFactor {
            form,
            pattern: Arc::clone(pattern),
            lower: huge::zeros(pattern.lower.len() * LANES),
            diagonal: huge::zeros(pattern.positions()),
            upper: huge::zeros(pattern.upper.len() * LANES),
            shift: 0.0,
            refactoring: down.scratch(),
            down,
            up,
        })
    }

    /// The factor of a matrix in the same order whose pattern is part of the factor's, in place; allocates nothing.
    fn refactor_from(&mut self, space: &Threads<f64>, a: &Sliced) -> Result<(), SetupError> {
        if !Arc::ptr_eq(&a.pattern.order, &self.pattern.order) {
            return Err(SetupError::PatternChanged);
        }
        let run = self.down.begin(&mut self.refactoring);
        let (form, bad) = (self.form, FirstBadPivot::default());
        let pattern = &*self.pattern;
        let task = Task { pattern, a_pattern: &a.pattern, a: a.values(), form, shift: self.shift, bad: &bad };
        let f = ValuesMut {
            lower: self.lower.as_mut_ptr(),
            diagonal: self.diagonal.as_mut_ptr(),
            upper: self.upper.as_mut_ptr(),
        };
        space.team().run(|member| {
            let (task, f): (&Task<'_>, &ValuesMut<S>) = (&task, &f);
            run.go(&member, |slices| {
                // SAFETY: the plan calls each slice once, after the slices its lower strips point to.
                unsafe {
                    match form.computes_both() {
                        true => kernels::eliminate_both(task, *f, slices),
                        false => kernels::eliminate_cholesky(task, *f, slices),
                    }
                }
            });
            if form.kind == Kind::Cholesky {
                member.barrier();
                // SAFETY: every slice of U has one member; L is finished since the barrier.
                unsafe { kernels::mirror(pattern, *f, member.part(pattern.order.slices(), 64)) };
            }
        });
        bad.into_result(|row| self.diagonal[pattern.order.positions[row] as usize])
    }

    /// Entries of the factor, as those of the other form count them.
    pub fn nnz(&self) -> usize {
        let source = &self.pattern.source;
        match self.form.kind {
            Kind::Cholesky => source.nrows() + (source.nnz() - source.nrows()) / 2,
            Kind::Lu => source.nnz(),
        }
    }

    /// Bytes of the factor and its plans, the pattern not counted.
    pub fn bytes(&self) -> usize {
        size_of_val(self.lower.as_slice())
            + size_of_val(self.diagonal.as_slice())
            + size_of_val(self.upper.as_slice())
            + self.down.bytes()
            + self.up.bytes()
    }

    /// The plans of the forward and the backward sweep.
    pub(crate) fn plans(&self) -> [&SlicePlan; 2] {
        [&self.down, &self.up]
    }
}

impl<S: Stored> LinearOperator<Threads<f64>> for SlicedFactor<S> {
    type Scratch = SlicedScratch;

    fn domain(&self) -> usize {
        self.diagonal.len()
    }

    fn range(&self) -> usize {
        self.diagonal.len()
    }

    fn scratch(&self, _: &Threads<f64>) -> Result<SlicedScratch, BackendError> {
        Ok(SlicedScratch { down: self.down.scratch(), up: self.up.scratch() })
    }

    fn apply(
        &self,
        space: &Threads<f64>,
        x: &Vec<f64>,
        z: &mut Vec<f64>,
        scratch: &mut SlicedScratch,
    ) -> Result<(), BackendError> {
        let n = self.domain();
        require_same("x and the factor", &x.len(), &n)?;
        require_same("z and the factor", &z.len(), &n)?;
        let (down, up) = (self.down.begin(&mut scratch.down), self.up.begin(&mut scratch.up));
        let z = DisjointSlice::new(z);
        let pattern = &*self.pattern;
        space.team().run(|member| {
            down.go(&member, |slices| {
                // SAFETY: lengths were checked; the plan calls each slice once, after the slices its lower strips point to.
                unsafe {
                    kernels::forward(&pattern.lower, self.lower.as_ptr(), slices, x.as_ptr(), z.as_mut_ptr())
                };
            });
            member.barrier();
            up.go(&member, |slices| {
                // SAFETY: as above for the upper strips; the forward sweep ended at the barrier.
                unsafe {
                    let (upper, inverse) = (self.upper.as_ptr(), self.diagonal.as_ptr());
                    kernels::backward(&pattern.upper, upper, inverse, slices, z.as_mut_ptr());
                }
            });
        });
        Ok(())
    }
}

impl<S: Stored> Preconditioner<Threads<f64>, Sliced> for SlicedFactor<S> {
    fn refactor(&mut self, space: &Threads<f64>, a: &Sliced) -> Result<(), SetupError> {
        self.refactor_from(space, a)
    }

    fn set_shift(&mut self, shift: f64) -> bool {
        self.shift = shift;
        true
    }
}
