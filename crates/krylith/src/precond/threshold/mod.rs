//! Incomplete factors whose pattern follows the values: small entries are dropped, and a row keeps only its largest.
//!
//! | function | of | M | dropping |
//! |---|---|---|---|
//! | [`ilut`] | a square matrix | (I + L) D (I + U) ≈ A | one of three [`Rule`]s |
//! | [`ilut`] with `permtol` | a square matrix | (I + L) D (I + U) ≈ A Q, columns exchanged for larger pivots | the same |
//! | [`ict`] | a symmetric positive definite matrix | (I + L) D (I + L)ᵀ ≈ A | relative to the scaled column |
//!
//! All run in one thread, in one order: the result is a function of the matrix and the options. Of equal entries the one with
//! the smaller column is kept. Exact zeros are never stored.
//!
//! Memory: 4 bytes and a number for each entry kept, 16 bytes and a number for each row; the work needs another few numbers a
//! row. `max_bytes` is checked before each row is stored.

mod by_name;
mod columns;
mod ict;
mod ilut;
mod norm;
mod rows;
mod rule;
mod select;

pub use by_name::ByThreshold;
pub(crate) use by_name::Scale;
pub use ict::{IctOptions, ict};
pub use ilut::{IlutOptions, ilut};
pub use rule::Rule;

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
    fn note(&mut self, row: usize, value: f64) {
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

#[cfg(test)]
mod tests;
