//! `faer::sparse::SparseRowMat`. Its index arrays are of one type, so columns are widened.

use super::indices::{narrow, widen};
use crate::error::MatrixError;
use crate::matrix::Csr;
use crate::scalar::Scalar;
use faer::sparse::{SparseRowMat, SymbolicSparseRowMat};

impl<T: Scalar> From<Csr<T>> for SparseRowMat<usize, T> {
    fn from(a: Csr<T>) -> Self {
        let (pattern, values) = a.into_parts();
        let (row_ptr, col_idx) = (pattern.row_ptr().to_vec(), widen(pattern.col_idx()));
        let symbolic =
            SymbolicSparseRowMat::new_checked(pattern.nrows(), pattern.ncols(), row_ptr, None, col_idx);
        SparseRowMat::new(symbolic, values)
    }
}

impl<T: Scalar> TryFrom<&SparseRowMat<usize, T>> for Csr<T> {
    type Error = MatrixError;

    fn try_from(a: &SparseRowMat<usize, T>) -> Result<Self, MatrixError> {
        let (pattern, values) = (a.symbolic(), a.val());
        // Rows may have slack behind them: gather what is in use.
        let mut row_ptr = vec![0];
        let (mut columns, mut kept) = (Vec::new(), Vec::new());
        for i in 0..a.nrows() {
            columns.extend_from_slice(pattern.col_idx_of_row_raw(i));
            kept.extend_from_slice(&values[pattern.row_range(i)]);
            row_ptr.push(columns.len());
        }
        Csr::from_unsorted(a.nrows(), a.ncols(), row_ptr, narrow((a.nrows(), a.ncols()), &columns)?, kept)
    }
}
