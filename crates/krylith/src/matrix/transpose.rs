//! Aᵀ, by the stable counting sort of `assemble` with rows and columns exchanged.
#![allow(unsafe_code)]

use super::assemble::{Entries, assemble};
use super::{Csr, CsrRef};
use crate::matrix::Pattern;
use crate::parallel::share;
use crate::scalar::Scalar;

struct Exchanged<'a, T>(CsrRef<'a, T>);

// SAFETY: the matrix cannot change while it is borrowed.
unsafe impl<T: Scalar> Entries<T> for Exchanged<'_, T> {
    fn len(&self) -> usize {
        self.0.nnz()
    }

    fn for_each(&self, k: usize, shares: usize, mut visit: impl FnMut(u32, u32, T)) {
        for i in share(self.0.nrows(), k, shares) {
            let (columns, values) = self.0.row(i);
            for (&j, &v) in columns.iter().zip(values) {
                visit(j, i as u32, v);
            }
        }
    }
}

impl<T: Scalar> CsrRef<'_, T> {
    /// Aᵀ. Rows are visited in order, so the rows of the result come out sorted.
    ///
    /// # Panics
    /// If there is no memory for it: 8 bytes per column, 12 per entry.
    pub fn transpose(&self) -> Csr<T> {
        assemble(self.ncols(), self.nrows(), &Exchanged(*self)).expect("memory for the transpose")
    }
}

impl Pattern {
    /// The pattern of the transpose.
    pub fn transpose(&self) -> Pattern {
        let (nrows, ncols) = (self.nrows(), self.ncols());
        let mut row_ptr = vec![0usize; ncols + 1];
        for &j in self.col_idx() {
            row_ptr[j as usize + 1] += 1;
        }
        for j in 0..ncols {
            row_ptr[j + 1] += row_ptr[j];
        }
        let mut next = row_ptr.clone();
        let mut col_idx = vec![0u32; self.nnz()];
        for i in 0..nrows {
            for &j in self.row(i) {
                col_idx[next[j as usize]] = i as u32;
                next[j as usize] += 1;
            }
        }
        Pattern::trusted(ncols, nrows, row_ptr, col_idx)
    }
}
