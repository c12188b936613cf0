//! `sprs::CsMatI<T, u32, usize>`, whose arrays are ours: converting moves them.

use super::indices::narrow;
use crate::error::MatrixError;
use crate::matrix::Csr;
use crate::scalar::Scalar;
use sprs::{CsMat, CsMatI};
use std::sync::Arc;

impl<T: Scalar> From<Csr<T>> for CsMatI<T, u32, usize> {
    fn from(a: Csr<T>) -> Self {
        let (pattern, values) = a.into_parts();
        let shape = (pattern.nrows(), pattern.ncols());
        let (row_ptr, col_idx) = Arc::unwrap_or_clone(pattern).into_parts();
        CsMatI::new(shape, row_ptr, col_idx, values)
    }
}

impl<T: Scalar> TryFrom<CsMatI<T, u32, usize>> for Csr<T> {
    type Error = MatrixError;

    /// Compressed columns are turned into rows first.
    fn try_from(a: CsMatI<T, u32, usize>) -> Result<Self, MatrixError> {
        let a = if a.is_csr() { a } else { a.to_csr() };
        let (nrows, ncols) = a.shape();
        let (row_ptr, col_idx, values) = a.into_raw_storage();
        Csr::from_unsorted(nrows, ncols, row_ptr, col_idx, values)
    }
}

impl<T: Scalar> TryFrom<CsMat<T>> for Csr<T> {
    type Error = MatrixError;

    /// From sprs's default index type; compressed columns are turned into rows first.
    fn try_from(a: CsMat<T>) -> Result<Self, MatrixError> {
        let a = if a.is_csr() { a } else { a.to_csr() };
        let (nrows, ncols) = a.shape();
        let (row_ptr, col_idx, values) = a.into_raw_storage();
        Csr::from_unsorted(nrows, ncols, row_ptr, narrow((nrows, ncols), &col_idx)?, values)
    }
}
