//! An incomplete factor by its arrays.

use crate::matrix::{Csr, Permutation};
use crate::scalar::Real;

/// Strict triangles and the inverse of D in M = (I + L) D (I + U).
#[derive(Debug, Clone, PartialEq)]
pub struct Triangles<T> {
    /// L, strictly lower.
    pub lower: Csr<T>,
    /// 1 / dᵢ.
    pub inverse: Vec<T>,
    /// U, strictly upper, scaled by D.
    pub upper: Csr<T>,
    /// With column pivoting, Q: M approximates A Q, whose column j is column `q[j]` of A.
    pub columns: Option<Permutation>,
    /// Pivots that were replaced.
    pub repairs: Repairs,
}

/// Pivots that were too small to divide by, and were replaced.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Repairs {
    /// How many.
    pub count: usize,
    /// The first: its row, and its value before it was replaced.
    pub first: Option<(usize, f64)>,
}

impl Repairs {
    pub(crate) fn note(&mut self, row: usize, value: f64) {
        self.count += 1;
        self.first.get_or_insert((row, value));
    }
}

impl<T: Real> Triangles<T> {
    /// Entries of L, D and U.
    pub fn nnz(&self) -> usize {
        self.lower.nnz() + self.inverse.len() + self.upper.nnz()
    }

    /// Bytes held by the arrays.
    pub fn bytes(&self) -> usize {
        let columns = self.columns.as_ref().map_or(0, |q| 8 * q.len());
        self.lower.bytes() + self.upper.bytes() + size_of_val(self.inverse.as_slice()) + columns
    }
}
