//! IC(0): M = (I + L) D (I + L)ᵀ with the pattern of A's lower triangle, equal to A on that pattern.
//!
//! Row i, from the first row down, with wₖ = lᵢₖ dₖ:
//!
//!   for k < i in the pattern:  wₖ = aᵢₖ − Σ wₘ lₖₘ (m < k in both rows);  lᵢₖ = wₖ / dₖ
//!   dᵢ = aᵢᵢ − Σ wₖ lᵢₖ
//!
//! Only the lower triangle of A is read; A is taken to be symmetric. U = Lᵀ is copied entry by entry, so that M is symmetric to
//! the bit and its application too. dᵢ must be positive. Row i needs the rows k < i of its pattern: factorization runs along
//! the plan of the forward sweep. Of several bad pivots the smallest row is found on any plan.
//! Reference: Meijerink & van der Vorst 1977, doi:10.1090/S0025-5718-1977-0438681-4, in the square-root-free form.
#![allow(unsafe_code)]

use super::ilu0::strict;
use super::ldu::{Ldu, LduSymbolic, SweepScratch};
use super::{require_diagonal, require_pattern};
use crate::error::{BackendError, SetupError};
use crate::matrix::{Csr, Parts, Pattern};
use crate::operator::{LinearOperator, Preconditioner, Recipe, Symbolic};
use crate::scalar::Real;
use crate::schedule::{Plan, Schedule};
use crate::space::Threads;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The recipe.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ic0 {
    /// How sweeps and factorization are divided.
    pub schedule: Schedule,
}

/// An analyzed pattern.
#[derive(Debug, Clone)]
pub struct Ic0Symbolic {
    pattern: Arc<Pattern>,
    ldu: Arc<LduSymbolic>,
}

/// The factor.
#[derive(Debug)]
pub struct Ic0Factor<T> {
    pattern: Arc<Pattern>,
    ldu: Ldu<T>,
}

impl<T: Real> Recipe<Threads<T>, Csr<T>> for Ic0 {
    type Symbolic = Ic0Symbolic;

    fn analyze(&self, space: &Threads<T>, a: &Csr<T>) -> Result<Ic0Symbolic, SetupError> {
        let pattern = a.pattern();
        require_diagonal(pattern)?;
        let lower = strict(pattern, true);
        let upper = lower.transpose();
        let ldu = LduSymbolic::new(lower, upper, space.threads(), self.schedule)?;
        Ok(Ic0Symbolic { pattern: Arc::clone(pattern), ldu: Arc::new(ldu) })
    }
}

impl<T: Real> Symbolic<Threads<T>, Csr<T>> for Ic0Symbolic {
    type Factor = Ic0Factor<T>;

    fn factor(&self, space: &Threads<T>, a: &Csr<T>) -> Result<Ic0Factor<T>, SetupError> {
        let mut factor = Ic0Factor { pattern: Arc::clone(&self.pattern), ldu: self.ldu.allocate() };
        factor.refactor(space, a)?;
        Ok(factor)
    }
}

impl<T: Real> Preconditioner<Threads<T>, Csr<T>> for Ic0Factor<T> {
    fn refactor(&mut self, space: &Threads<T>, a: &Csr<T>) -> Result<(), SetupError> {
        require_pattern(&self.pattern, a.pattern())?;
        let Ldu { symbolic, lower, upper, inverse, refactoring } = &mut self.ldu;
        let run = symbolic.down.begin(refactoring);
        let bad = AtomicUsize::new(usize::MAX);
        let rows = Rows {
            a,
            lower: &symbolic.lower,
            l: Parts::new(lower.values_mut()),
            inverse: Parts::new(inverse),
        };
        let u = Parts::new(upper.values_mut());
        space.team().run(|member| {
            run.go(&member, |i| {
                // SAFETY: the plan calls each row once, after the rows of its lower pattern.
                if !unsafe { rows.eliminate(i) } {
                    bad.fetch_min(i, Ordering::Relaxed);
                }
            });
            member.barrier();
            for j in member.part(symbolic.upper.nrows(), 256) {
                // SAFETY: every row of U has one member; L is finished since the barrier.
                unsafe { rows.mirror(j, symbolic.upper.row(j), u.get(symbolic.upper.row_range(j))) };
            }
        });
        match bad.into_inner() {
            usize::MAX => Ok(()),
            row => Err(SetupError::BadPivot { row, value: inverse[row].to_f64() }),
        }
    }
}

/// The matrix and the factor in the making.
struct Rows<'a, T> {
    a: &'a Csr<T>,
    lower: &'a Pattern,
    l: Parts<'a, T>,
    inverse: Parts<'a, T>,
}

impl<T: Real> Rows<'_, T> {
    /// Computes row i; `false` for a bad pivot, which is then left in the place of its inverse.
    ///
    /// # Safety
    /// Each row is computed once; the rows of its lower pattern are finished and visible to this thread.
    unsafe fn eliminate(&self, i: usize) -> bool {
        let columns = self.lower.row(i);
        // SAFETY: these are the places of row i, which nobody else touches before it is finished.
        let w = unsafe { self.l.get(self.lower.row_range(i)) };
        let (_, values) = self.a.row(i);
        w.copy_from_slice(&values[..w.len()]);
        let mut pivot = values[w.len()];
        for k in 0..w.len() {
            let row = columns[k] as usize;
            // SAFETY: row k of the lower pattern is finished.
            let finished = unsafe { self.l.get_shared(self.lower.row_range(row)) };
            // Σ wₘ lₖₘ over the columns m < k of both rows, from left to right.
            let (mut m, mut sum) = (0, w[k]);
            for (&j, &l) in self.lower.row(row).iter().zip(finished) {
                while m < k && columns[m] < j {
                    m += 1;
                }
                if m < k && columns[m] == j {
                    sum -= w[m] * l;
                }
            }
            w[k] = sum;
        }
        for (w, &k) in w.iter_mut().zip(columns) {
            // SAFETY: row k of the lower pattern is finished.
            let l = *w * unsafe { self.inverse.read(k as usize) };
            pivot -= *w * l;
            *w = l;
        }
        let inverse = T::ONE / pivot;
        let good = pivot > T::ZERO && pivot.is_finite() && inverse.is_finite();
        // SAFETY: the place of row i.
        unsafe { self.inverse.write(i, if good { inverse } else { pivot }) };
        good
    }

    /// Copies row j of U = Lᵀ: entry (i, j) of L for every i in `columns`.
    ///
    /// # Safety
    /// L is finished and visible to this thread.
    unsafe fn mirror(&self, j: usize, columns: &[u32], u: &mut [T]) {
        for (u, &i) in u.iter_mut().zip(columns) {
            let place = self.lower.find(i as usize, j).expect("the pattern of U is that of L transposed");
            // SAFETY: L is finished.
            *u = unsafe { self.l.read(place) };
        }
    }
}

impl<T: Real> Ic0Factor<T> {
    /// Entries of L and D: what is stored twice is counted once.
    pub fn nnz(&self) -> usize {
        self.ldu.lower.nnz() + self.ldu.inverse.len()
    }

    /// Bytes of the factor, its transpose and its plans.
    pub fn bytes(&self) -> usize {
        self.ldu.bytes()
    }

    /// The plans of the forward and the backward sweep.
    pub fn plans(&self) -> (&Plan, &Plan) {
        (&self.ldu.symbolic.down, &self.ldu.symbolic.up)
    }

    /// The strict triangle and the inverse of D in M = (I + L) D (I + L)ᵀ.
    pub fn parts(&self) -> (&Csr<T>, &[T]) {
        (&self.ldu.lower, &self.ldu.inverse)
    }
}

impl<T: Real> LinearOperator<Threads<T>> for Ic0Factor<T> {
    type Scratch = SweepScratch<T>;

    fn domain(&self) -> usize {
        self.ldu.inverse.len()
    }

    fn range(&self) -> usize {
        self.ldu.inverse.len()
    }

    fn scratch(&self, _: &Threads<T>) -> Result<SweepScratch<T>, BackendError> {
        Ok(self.ldu.scratch())
    }

    fn apply(
        &self,
        space: &Threads<T>,
        x: &Vec<T>,
        z: &mut Vec<T>,
        scratch: &mut SweepScratch<T>,
    ) -> Result<(), BackendError> {
        self.ldu.apply(space, x, z, scratch)
    }
}
