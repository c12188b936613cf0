//! Â: a matrix without some of its entries off the diagonal.

use crate::error::SetupError;
use crate::matrix::{Csr, Pattern, require_pattern};
use std::sync::Arc;

/// Â, and where in A its entries are, so that it can follow the values of A.
#[derive(Debug, Clone)]
pub struct Sparsified {
    source: Arc<Pattern>,
    /// For every entry of A, whether Â has it.
    pub(super) kept: Vec<bool>,
    matrix: Csr<f64>,
}

impl Sparsified {
    /// A without the entries that are not `kept`, of which there is one mark for each entry of A. A factor needs the diagonal.
    ///
    /// # Panics
    ///
    /// If there are not as many marks as entries.
    pub fn new(a: &Csr<f64>, kept: Vec<bool>) -> Self {
        assert_eq!(kept.len(), a.nnz(), "a mark for each entry");
        let (n, source) = (a.nrows(), a.pattern());
        let count = kept.iter().filter(|&&kept| kept).count();
        let (mut row_ptr, mut col_idx) = (Vec::with_capacity(n + 1), Vec::with_capacity(count));
        row_ptr.push(0);
        for i in 0..n {
            for (&j, &kept) in source.row(i).iter().zip(&kept[source.row_range(i)]) {
                if kept {
                    col_idx.push(j);
                }
            }
            row_ptr.push(col_idx.len());
        }
        let pattern = Arc::new(Pattern::trusted(n, a.ncols(), row_ptr, col_idx));
        let matrix = Csr::trusted(pattern, vec![0.0; count]);
        let mut sparsified = Sparsified { source: Arc::clone(source), kept, matrix };
        sparsified.fill(a);
        sparsified
    }

    /// Â.
    pub fn matrix(&self) -> &Csr<f64> {
        &self.matrix
    }

    /// Takes over the values of a matrix of the same pattern, without the entries that were dropped from the first; allocates nothing.
    pub fn set(&mut self, a: &Csr<f64>) -> Result<(), SetupError> {
        self.require(a)?;
        self.fill(a);
        Ok(())
    }

    /// An error unless a matrix has the pattern of A.
    pub(super) fn require(&self, a: &Csr<f64>) -> Result<(), SetupError> {
        require_pattern(&self.source, a.pattern())
    }

    /// Bytes of Â and of the marks.
    pub fn bytes(&self) -> usize {
        self.matrix.bytes() + self.kept.len()
    }

    fn fill(&mut self, a: &Csr<f64>) {
        let mut own = self.matrix.values_mut().iter_mut();
        for (&v, &kept) in a.values().iter().zip(&self.kept) {
            if kept && let Some(own) = own.next() {
                *own = v;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// [ 4 -1 -2 ]        [ 4  0 -2 ]
    /// [-1  5  0 ]  ->    [ 0  5  0 ]
    /// [-2  0  6 ]        [-2  0  6 ]
    #[test]
    fn entries_are_left_out() {
        let entries =
            [(0, 0, 4.0), (0, 1, -1.0), (0, 2, -2.0), (1, 0, -1.0), (1, 1, 5.0), (2, 0, -2.0), (2, 2, 6.0)];
        let a = Csr::from_entries(3, 3, entries).unwrap();
        let mut s = Sparsified::new(&a, vec![true, false, true, false, true, true, true]);
        let expected = [(0, 0, 4.0), (0, 2, -2.0), (1, 1, 5.0), (2, 0, -2.0), (2, 2, 6.0)];
        assert_eq!(*s.matrix(), Csr::from_entries(3, 3, expected).unwrap());
        let mut twice = a.clone();
        twice.values_mut().iter_mut().for_each(|v| *v *= 2.0);
        s.set(&twice).unwrap();
        assert_eq!(s.matrix().diagonal().unwrap(), [8.0, 10.0, 12.0]);
        assert_eq!(s.set(&Csr::identity(3).unwrap()), Err(SetupError::PatternChanged));
    }
}
