//! Kernels by rows: M = (I + L) D (I + U) with strict triangles.
//!
//!   forward:  zᵢ = xᵢ − Σ lᵢⱼ zⱼ (j < i);   backward:  zᵢ = zᵢ / dᵢ − Σ uᵢⱼ zⱼ (j > i), in place
//!
//! Each row sums from left to right in the forward sweep; in the backward sweep from right to left: the entry that was
//! computed last comes last, so that a row waits for it as late as possible.
//!
//! L and U may be stored narrower (`S`) than the vectors (`T`); sums run in the wider one.
//!
//! Bytes: 12 per entry of L and U (8 if they are `f32`), 16 per row for pointers, 8 for D; x and z pass once more: 12 nnz + 56 n.
#![allow(unsafe_code)]

use super::driver::{Plans, Triangular};
use super::eliminate::{Rows, transpose_row};
use super::form::{Form, Kind};
use super::pivot::FirstBadPivot;
use crate::disjoint::DisjointSlice;
use crate::error::SetupError;
use crate::matrix::require_pattern;
use crate::matrix::{Csr, Pattern, Triangle};
use crate::scalar::Real;
use crate::schedule::{Plan, Schedule};
use std::ops::Range;
use std::sync::Arc;

/// The patterns of the strict triangles, and how to go through them.
#[derive(Debug)]
pub(super) struct LduSymbolic {
    /// Of the matrices that are factored.
    pub(super) source: Arc<Pattern>,
    pub(super) lower: Arc<Pattern>,
    pub(super) upper: Arc<Pattern>,
    pub(super) plans: Arc<Plans<Plan>>,
}

impl LduSymbolic {
    /// From the patterns of the strict triangles.
    pub(super) fn new(
        source: &Arc<Pattern>,
        lower: Arc<Pattern>,
        upper: Arc<Pattern>,
        threads: usize,
        schedule: Schedule,
    ) -> Result<Self, crate::error::MatrixError> {
        let down = Plan::new(&lower, Triangle::Lower, threads, schedule)?;
        let up = Plan::new(&upper, Triangle::Upper, threads, schedule)?;
        Ok(LduSymbolic { source: Arc::clone(source), lower, upper, plans: Arc::new(Plans { down, up }) })
    }

    /// A factor of this pattern, its values to be computed.
    pub(super) fn allocate<T: Real, S: Real>(&self, form: Form) -> Ldu<T, S> {
        Ldu {
            form,
            source: Arc::clone(&self.source),
            lower: Csr::trusted(Arc::clone(&self.lower), vec![S::ZERO; self.lower.nnz()]),
            upper: Csr::trusted(Arc::clone(&self.upper), vec![S::ZERO; self.upper.nnz()]),
            inverse: vec![T::ZERO; self.lower.nrows()],
        }
    }
}

/// The factor.
#[derive(Debug)]
pub struct Ldu<T, S> {
    pub(super) form: Form,
    source: Arc<Pattern>,
    pub(super) lower: Csr<S>,
    pub(super) upper: Csr<S>,
    /// 1 / dᵢ.
    pub(super) inverse: Vec<T>,
}

impl<T: Real, S: Real> Triangular for Ldu<T, S> {
    type Scalar = T;
    type Source = Csr<T>;
    type Plan = Plan;
    type Elimination<'e> = Rows<'e, T, S>;

    fn len(&self) -> usize {
        self.inverse.len()
    }

    fn require(&self, source: &Csr<T>) -> Result<(), SetupError> {
        require_pattern(&self.source, source.pattern())
    }

    fn begin<'e>(&'e mut self, source: &'e Csr<T>, shift: f64, bad: &'e FirstBadPivot) -> Rows<'e, T, S> {
        let (lower, l) = self.lower.parts_mut();
        let (upper, u) = self.upper.parts_mut();
        Rows {
            a: source,
            form: self.form,
            shift,
            lower,
            upper,
            l: DisjointSlice::new(l),
            u: DisjointSlice::new(u),
            inverse: DisjointSlice::new(&mut self.inverse),
            bad,
        }
    }

    #[inline]
    unsafe fn eliminate(rows: &Rows<'_, T, S>, row: usize) {
        // SAFETY: by the caller's promise.
        unsafe { rows.eliminate(row) };
    }

    fn mirror_parts(&self) -> Option<(usize, usize)> {
        (self.form.kind == Kind::Cholesky).then_some((self.inverse.len(), 256))
    }

    unsafe fn mirror(rows: &Rows<'_, T, S>, parts: Range<usize>) {
        for j in parts {
            // SAFETY: every row of U has one caller; L is finished.
            unsafe {
                let to = rows.u.get(rows.upper.row_range(j));
                transpose_row(&rows.l, rows.lower, j, rows.upper.row(j), to);
            }
        }
    }

    fn pivot(&self, row: usize) -> f64 {
        self.inverse[row].to_f64()
    }

    #[inline]
    unsafe fn forward(&self, i: usize, x: *const T, z: *mut T) {
        let (columns, values) = self.lower.row(i);
        // SAFETY: rows and columns are below the length of x and z; the rows needed are finished.
        unsafe {
            let mut sum = *x.add(i);
            for (&j, &l) in columns.iter().zip(values) {
                sum -= T::from_f64(l.to_f64()) * *z.add(j as usize);
            }
            *z.add(i) = sum;
        }
    }

    #[inline]
    unsafe fn backward(&self, i: usize, z: *mut T) {
        let (columns, values) = self.upper.row(i);
        // SAFETY: as above.
        unsafe {
            let mut sum = *z.add(i) * self.inverse[i];
            for (&j, &u) in columns.iter().zip(values).rev() {
                sum -= T::from_f64(u.to_f64()) * *z.add(j as usize);
            }
            *z.add(i) = sum;
        }
    }

    fn nnz(&self) -> usize {
        let above = if self.form.kind == Kind::Cholesky { 0 } else { self.upper.nnz() };
        self.lower.nnz() + self.inverse.len() + above
    }

    fn bytes(&self) -> usize {
        self.lower.bytes() + self.upper.bytes() + size_of_val(self.inverse.as_slice())
    }
}
