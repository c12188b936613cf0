//! `nalgebra_sparse::CsrMatrix`.

use super::indices::{narrow, widen};
use crate::error::MatrixError;
use crate::matrix::Csr;
use crate::scalar::Scalar;
use nalgebra_sparse::CsrMatrix;

impl<T: Scalar> From<Csr<T>> for CsrMatrix<T> {
    fn from(a: Csr<T>) -> Self {
        let (pattern, values) = a.into_parts();
        let (row_ptr, col_idx) = (pattern.row_ptr().to_vec(), widen(pattern.col_idx()));
        CsrMatrix::try_from_csr_data(pattern.nrows(), pattern.ncols(), row_ptr, col_idx, values)
            .expect("a Pattern has what nalgebra checks: sorted columns within range")
    }
}

impl<T: Scalar> TryFrom<CsrMatrix<T>> for Csr<T> {
    type Error = MatrixError;

    fn try_from(a: CsrMatrix<T>) -> Result<Self, MatrixError> {
        let (nrows, ncols) = (a.nrows(), a.ncols());
        let (row_ptr, col_idx, values) = a.disassemble();
        Csr::new(nrows, ncols, row_ptr, narrow((nrows, ncols), &col_idx)?, values)
    }
}
