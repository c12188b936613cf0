//! ILU(0): M = (I + L) D (I + U) with the pattern of A, equal to A on that pattern.
//!
//! Row i, from the first row down; w holds the row of A and is eliminated from left to right:
//!
//!   for k < i in the pattern:  wₖ;  lᵢₖ = wₖ / dₖ;  wⱼ −= wₖ uₖⱼ for j > k in both patterns
//!   dᵢ = wᵢ;  uᵢⱼ = wⱼ / dᵢ for j > i
//!
//! U is scaled by D, unlike in the usual (I + L)(D U): both triangles then have a unit diagonal and one code applies ILU(0)
//! and IC(0). Row i needs the rows k < i of its pattern, which is what the forward sweep needs too: factorization runs along
//! the same plan. Of several bad pivots the smallest row is found on any plan, because nothing before it is bad.
//! Reference: Meijerink & van der Vorst 1977, doi:10.1090/S0025-5718-1977-0438681-4; Saad, Iterative Methods for Sparse
//! Linear Systems, 2nd ed., algorithm 10.4.
#![allow(unsafe_code)]

use super::ldu::{Ldu, LduSymbolic, SweepScratch};
use super::{require_diagonal, require_pattern};
use crate::error::{BackendError, SetupError};
use crate::matrix::{Csr, Parts, Pattern};
use crate::operator::{LinearOperator, Preconditioner, Recipe, Symbolic};
use crate::scalar::Scalar;
use crate::schedule::{Plan, Schedule};
use crate::space::Threads;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The recipe.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ilu0 {
    /// How sweeps and factorization are divided.
    pub schedule: Schedule,
}

/// An analyzed pattern.
#[derive(Debug, Clone)]
pub struct Ilu0Symbolic {
    pattern: Arc<Pattern>,
    ldu: Arc<LduSymbolic>,
}

/// The factor.
#[derive(Debug)]
pub struct Ilu0Factor<T> {
    pattern: Arc<Pattern>,
    ldu: Ldu<T>,
}

impl<T: Scalar> Recipe<Threads<T>, Csr<T>> for Ilu0 {
    type Symbolic = Ilu0Symbolic;

    fn analyze(&self, space: &Threads<T>, a: &Csr<T>) -> Result<Ilu0Symbolic, SetupError> {
        let pattern = a.pattern();
        require_diagonal(pattern)?;
        let (lower, upper) = (strict(pattern, true), strict(pattern, false));
        let ldu = LduSymbolic::new(lower, upper, space.threads(), self.schedule)?;
        Ok(Ilu0Symbolic { pattern: Arc::clone(pattern), ldu: Arc::new(ldu) })
    }
}

/// The entries below (or above) the diagonal.
pub(super) fn strict(pattern: &Pattern, below: bool) -> Pattern {
    let piece = |i: usize| {
        let columns = pattern.row(i);
        let split = columns.partition_point(|&j| (j as usize) < i);
        let skip = usize::from(columns.get(split) == Some(&(i as u32)));
        if below { &columns[..split] } else { &columns[split + skip..] }
    };
    let n = pattern.nrows();
    let mut row_ptr = vec![0usize; n + 1];
    for i in 0..n {
        row_ptr[i + 1] = row_ptr[i] + piece(i).len();
    }
    let mut col_idx = Vec::with_capacity(row_ptr[n]);
    for i in 0..n {
        col_idx.extend_from_slice(piece(i));
    }
    Pattern::trusted(n, n, row_ptr, col_idx)
}

impl<T: Scalar> Symbolic<Threads<T>, Csr<T>> for Ilu0Symbolic {
    type Factor = Ilu0Factor<T>;

    fn factor(&self, space: &Threads<T>, a: &Csr<T>) -> Result<Ilu0Factor<T>, SetupError> {
        let mut factor = Ilu0Factor { pattern: Arc::clone(&self.pattern), ldu: self.ldu.allocate() };
        factor.refactor(space, a)?;
        Ok(factor)
    }
}

impl<T: Scalar> Preconditioner<Threads<T>, Csr<T>> for Ilu0Factor<T> {
    fn refactor(&mut self, space: &Threads<T>, a: &Csr<T>) -> Result<(), SetupError> {
        require_pattern(&self.pattern, a.pattern())?;
        let Ldu { symbolic, lower, upper, inverse, refactoring } = &mut self.ldu;
        let run = symbolic.down.begin(refactoring);
        let bad = AtomicUsize::new(usize::MAX);
        let rows = Rows {
            a,
            lower: &symbolic.lower,
            upper: &symbolic.upper,
            l: Parts::new(lower.values_mut()),
            u: Parts::new(upper.values_mut()),
            inverse: Parts::new(inverse),
        };
        space.team().run(|member| {
            run.go(&member, |i| {
                // SAFETY: the plan calls each row once, after the rows of its lower pattern.
                if !unsafe { rows.eliminate(i) } {
                    bad.fetch_min(i, Ordering::Relaxed);
                }
            });
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
    upper: &'a Pattern,
    l: Parts<'a, T>,
    u: Parts<'a, T>,
    inverse: Parts<'a, T>,
}

impl<T: Scalar> Rows<'_, T> {
    /// Computes row i; `false` for a bad pivot, which is then left in the place of its inverse.
    ///
    /// # Safety
    /// Each row is computed once; the rows of its lower pattern are finished and visible to this thread.
    unsafe fn eliminate(&self, i: usize) -> bool {
        let (l_range, u_range) = (self.lower.row_range(i), self.upper.row_range(i));
        // SAFETY: these are the places of row i, which nobody else touches before it is finished.
        let (l, u) = unsafe { (self.l.get(l_range.clone()), self.u.get(u_range)) };
        let (_, values) = self.a.row(i);
        l.copy_from_slice(&values[..l.len()]);
        let mut pivot = values[l.len()];
        u.copy_from_slice(&values[l.len() + 1..]);
        let (l_columns, u_columns) = (self.lower.row(i), self.upper.row(i));
        for k in 0..l.len() {
            let row = l_columns[k] as usize;
            let w = l[k];
            // SAFETY: row k of the lower pattern is finished.
            let (above, inverse) =
                unsafe { (self.upper_row(self.upper.row_range(row)), self.inverse.read(row)) };
            let columns = self.upper.row(row);
            // w −= wₖ uₖ: first left of the diagonal, then on it, then right of it.
            let mut rest = columns.iter().zip(above).peekable();
            let mut place = k + 1;
            while let Some(&(&j, &v)) = rest.peek()
                && (j as usize) < i
            {
                place += l_columns[place..].iter().take_while(|&&c| c < j).count();
                if l_columns.get(place) == Some(&j) {
                    l[place] -= w * v;
                }
                rest.next();
            }
            if let Some(&(&j, &v)) = rest.peek()
                && j as usize == i
            {
                pivot -= w * v;
                rest.next();
            }
            let mut place = 0;
            for (&j, &v) in rest {
                place += u_columns[place..].iter().take_while(|&&c| c < j).count();
                if u_columns.get(place) == Some(&j) {
                    u[place] -= w * v;
                }
            }
            l[k] = w * inverse;
        }
        let inverse = T::ONE / pivot;
        let good = pivot != T::ZERO && pivot.is_finite() && inverse.is_finite();
        for v in u {
            *v *= inverse;
        }
        // SAFETY: the place of row i.
        unsafe { self.inverse.write(i, if good { inverse } else { pivot }) };
        good
    }

    /// # Safety
    /// The row at these places is finished and visible to this thread.
    unsafe fn upper_row(&self, range: Range<usize>) -> &[T] {
        // SAFETY: nobody writes a finished row.
        unsafe { self.u.get_shared(range) }
    }
}

impl<T: Scalar> Ilu0Factor<T> {
    /// Entries of L, D and U.
    pub fn nnz(&self) -> usize {
        self.ldu.nnz()
    }

    /// Bytes of the factor and its plans.
    pub fn bytes(&self) -> usize {
        self.ldu.bytes()
    }

    /// The plans of the forward and the backward sweep.
    pub fn plans(&self) -> (&Plan, &Plan) {
        (&self.ldu.symbolic.down, &self.ldu.symbolic.up)
    }

    /// The strict triangles and the inverse of D in M = (I + L) D (I + U).
    pub fn parts(&self) -> (&Csr<T>, &[T], &Csr<T>) {
        (&self.ldu.lower, &self.ldu.inverse, &self.ldu.upper)
    }
}

impl<T: Scalar> LinearOperator<Threads<T>> for Ilu0Factor<T> {
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
