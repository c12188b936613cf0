//! IC(0) and ILU(0) in slices: M = (I + L) D (I + U) on the strips of A.
//!
//! The mathematics is that of `precond::ic0` and `precond::ilu0`, eight rows at a time: entry (k, m) of the row that a strip
//! points to meets entry (i, m) of this row where the strips' columns agree, which is decided once for eight rows. Sums run in
//! the order of positions, not of rows, so the factor equals the other one up to rounding.
//!
//! The backward sweep overwrites what the forward sweep left. Bytes of both: 69 a strip off the diagonal, and 40 a row.
#![allow(unsafe_code)]

use super::kernels::{self, Values, ValuesMut, Vector};
use super::matrix::Sliced;
use super::strips::SlicedPattern;
use crate::error::{BackendError, SetupError};
use crate::matrix::Triangle;
use crate::operator::LinearOperator;
use crate::schedule::{PlanScratch, Schedule, SlicePlan};
use crate::space::{Threads, require_same};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

/// Which factor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Incomplete {
    /// Incomplete Cholesky; the upper triangle of A is not read.
    Ic0,
    /// Incomplete LU.
    Ilu0,
}

/// The factor.
#[derive(Debug)]
pub struct SlicedFactor {
    kind: Incomplete,
    /// L, 1 / D and U.
    values: Sliced,
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

impl SlicedFactor {
    /// Plans for the sweeps on a team of `threads`, and room for the factor. IC(0) needs a symmetric pattern.
    pub fn new(
        pattern: &Arc<SlicedPattern>,
        kind: Incomplete,
        threads: usize,
        schedule: Schedule,
    ) -> Result<Self, SetupError> {
        if kind == Incomplete::Ic0 && !pattern.is_symmetric() {
            return Err(SetupError::PatternNotSymmetric);
        }
        let plan = |triangle: Triangle| {
            let strips = match triangle {
                Triangle::Lower => &pattern.lower,
                Triangle::Upper => &pattern.upper,
            };
            SlicePlan::new(&pattern.order.levels, triangle, threads, schedule, |slice| strips.needs(slice))
        };
        let (down, up) = (plan(Triangle::Lower), plan(Triangle::Upper));
        Ok(SlicedFactor { kind, values: Sliced::for_factor(pattern), refactoring: down.scratch(), down, up })
    }

    /// The factor of a matrix of the same pattern object, in place; allocates nothing.
    pub fn refactor(&mut self, space: &Threads<f64>, a: &Sliced) -> Result<(), SetupError> {
        if !Arc::ptr_eq(&a.pattern, &self.values.pattern) {
            return Err(SetupError::PatternChanged);
        }
        let run = self.down.begin(&mut self.refactoring);
        let pattern = &*a.pattern;
        let a = a.values();
        let f = ValuesMut {
            lower: self.values.lower.as_mut_ptr(),
            diagonal: self.values.diagonal.as_mut_ptr(),
            upper: self.values.upper.as_mut_ptr(),
        };
        let (kind, bad) = (self.kind, AtomicUsize::new(usize::MAX));
        space.team().run(|member| {
            let (a, f): (Values, ValuesMut) = (a, f);
            run.go(&member, |slices| {
                // SAFETY: the plan calls each slice once, after the slices its lower strips point to.
                unsafe {
                    match kind {
                        Incomplete::Ic0 => kernels::eliminate_ic(pattern, a, f, slices, &bad),
                        Incomplete::Ilu0 => kernels::eliminate_ilu(pattern, a, f, slices, &bad),
                    }
                }
            });
            if kind == Incomplete::Ic0 {
                member.barrier();
                // SAFETY: every slice of U has one member; L is finished since the barrier.
                unsafe { kernels::mirror(pattern, f, member.part(pattern.order.slices(), 64)) };
            }
        });
        match bad.into_inner() {
            usize::MAX => Ok(()),
            row => {
                let value = self.values.diagonal[pattern.order.positions[row] as usize];
                Err(SetupError::BadPivot { row, value })
            }
        }
    }

    /// Entries of the factor, as those of the other form count them.
    pub fn nnz(&self) -> usize {
        let p = &self.values.pattern;
        let n = p.source.nrows();
        match self.kind {
            Incomplete::Ic0 => n + (p.source.nnz() - n) / 2,
            Incomplete::Ilu0 => p.source.nnz(),
        }
    }

    /// Bytes of the factor and its plans; the pattern is shared with A.
    pub fn bytes(&self) -> usize {
        self.values.bytes() + self.down.bytes() + self.up.bytes()
    }

    /// The plans of the forward and the backward sweep.
    pub(crate) fn plans(&self) -> [&SlicePlan; 2] {
        [&self.down, &self.up]
    }
}

impl LinearOperator<Threads<f64>> for SlicedFactor {
    type Scratch = SlicedScratch;

    fn domain(&self) -> usize {
        self.values.diagonal.len()
    }

    fn range(&self) -> usize {
        self.values.diagonal.len()
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
        let z = Vector::new(z);
        let (pattern, f) = (&*self.values.pattern, self.values.values());
        space.team().run(|member| {
            let f: Values = f;
            down.go(&member, |slices| {
                // SAFETY: lengths were checked; the plan calls each slice once, after the slices its lower strips point to.
                unsafe { kernels::forward(&pattern.lower, f.lower, slices, x.as_ptr(), z.get()) };
            });
            member.barrier();
            up.go(&member, |slices| {
                // SAFETY: as above for the upper strips; the forward sweep ended at the barrier.
                unsafe { kernels::backward(&pattern.upper, f.upper, f.diagonal, slices, z.get()) };
            });
        });
        Ok(())
    }
}
