//! A factor M = (I + L) D (I + U) with strict triangles by rows, and its application.
//!
//!   forward:  yᵢ = xᵢ − Σ lᵢⱼ yⱼ (j < i);   backward:  zᵢ = yᵢ / dᵢ − Σ uᵢⱼ zⱼ (j > i)
//!
//! Each row sums from left to right in the forward sweep; in the backward sweep from right to left: the entry that was
//! computed last comes last, so that a row waits for it as late as possible. Both sweeps are handed to the team at once.
//!
//! L and U may be stored narrower (`S`) than the vectors (`T`); sums run in the wider one.
//!
//! Bytes: 12 an entry of L and U (8 if they are `f32`), 16 a row for pointers, 8 for D; x, y and z pass once more: 12 nnz + 56 n.
#![allow(unsafe_code)]

use crate::disjoint::DisjointSlice;
use crate::error::BackendError;
use crate::matrix::{Csr, Pattern, Triangle};
use crate::scalar::Real;
use crate::schedule::{Plan, PlanScratch, Schedule};
use crate::space::{Threads, require_same};
use std::sync::Arc;

/// The patterns of the strict triangles, and how to go through them.
#[derive(Debug)]
pub(super) struct LduSymbolic {
    pub(super) lower: Arc<Pattern>,
    pub(super) upper: Arc<Pattern>,
    pub(super) down: Plan,
    pub(super) up: Plan,
}

impl LduSymbolic {
    /// From the patterns of the strict triangles.
    pub(super) fn new(
        lower: Arc<Pattern>,
        upper: Arc<Pattern>,
        threads: usize,
        schedule: Schedule,
    ) -> Result<Self, crate::MatrixError> {
        let down = Plan::new(&lower, Triangle::Lower, threads, schedule)?;
        let up = Plan::new(&upper, Triangle::Upper, threads, schedule)?;
        Ok(LduSymbolic { lower, upper, down, up })
    }

    /// A factor of this pattern, its values to be computed.
    pub(super) fn allocate<T: Real, S: Real>(self: &Arc<Self>) -> Ldu<T, S> {
        Ldu {
            lower: Csr::trusted(Arc::clone(&self.lower), vec![S::ZERO; self.lower.nnz()]),
            upper: Csr::trusted(Arc::clone(&self.upper), vec![S::ZERO; self.upper.nnz()]),
            inverse: vec![T::ZERO; self.lower.nrows()],
            symbolic: Arc::clone(self),
            refactoring: self.down.scratch(),
        }
    }
}

/// The factor.
#[derive(Debug)]
pub(super) struct Ldu<T, S> {
    pub(super) symbolic: Arc<LduSymbolic>,
    pub(super) lower: Csr<S>,
    pub(super) upper: Csr<S>,
    /// 1 / dᵢ.
    pub(super) inverse: Vec<T>,
    /// Progress of `refactor`, which runs along the plan of the forward sweep.
    pub(super) refactoring: PlanScratch,
}

/// Progress of both sweeps, and the vector between them.
#[derive(Debug)]
pub struct SweepScratch<T> {
    down: PlanScratch,
    up: PlanScratch,
    between: Vec<T>,
}

impl<T: Real, S: Real> Ldu<T, S> {
    pub(super) fn scratch(&self) -> SweepScratch<T> {
        SweepScratch {
            down: self.symbolic.down.scratch(),
            up: self.symbolic.up.scratch(),
            between: vec![T::ZERO; self.inverse.len()],
        }
    }

    /// Entries of L, D and U.
    pub(super) fn nnz(&self) -> usize {
        self.lower.nnz() + self.inverse.len() + self.upper.nnz()
    }

    /// Bytes of the factor and its plans.
    pub(super) fn bytes(&self) -> usize {
        let plans = self.symbolic.down.bytes() + self.symbolic.up.bytes();
        self.lower.bytes() + self.upper.bytes() + size_of_val(self.inverse.as_slice()) + plans
    }

    /// z = M⁻¹ x.
    pub(super) fn apply(
        &self,
        space: &Threads<T>,
        x: &[T],
        z: &mut [T],
        scratch: &mut SweepScratch<T>,
    ) -> Result<(), BackendError> {
        let n = self.inverse.len();
        require_same("x and the factor", &x.len(), &n)?;
        require_same("z and the factor", &z.len(), &n)?;
        require_same("the scratch and the factor", &scratch.between.len(), &n)?;
        let (down, up) =
            (self.symbolic.down.begin(&mut scratch.down), self.symbolic.up.begin(&mut scratch.up));
        let (y, z) = (DisjointSlice::new(&mut scratch.between), DisjointSlice::new(z));
        let (lower, upper) = (self.lower.view(), self.upper.view());
        space.team().run(|member| {
            down.go(&member, |i| {
                let (columns, values) = lower.row(i);
                let mut sum = x[i];
                for (&j, &l) in columns.iter().zip(values) {
                    // SAFETY: j < n by the pattern; the plan calls row j before row i.
                    sum -= T::from_f64(l.to_f64()) * unsafe { y.read(j as usize) };
                }
                // SAFETY: i < n; row i is called once, and whoever needs it is called later.
                unsafe { y.write(i, sum) };
            });
            member.barrier();
            up.go(&member, |i| {
                let (columns, values) = upper.row(i);
                // SAFETY: i < n; the forward sweep ended at the barrier.
                let mut sum = unsafe { y.read(i) } * self.inverse[i];
                for (&j, &u) in columns.iter().zip(values).rev() {
                    // SAFETY: j < n by the pattern; the plan calls row j before row i.
                    sum -= T::from_f64(u.to_f64()) * unsafe { z.read(j as usize) };
                }
                // SAFETY: i < n; row i is called once, and whoever needs it is called later.
                unsafe { z.write(i, sum) };
            });
        });
        Ok(())
    }
}
