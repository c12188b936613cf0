//! Reordering of rows and columns.

use super::csr::check_length;
use super::{Csr, CsrRef};
use crate::error::MatrixError;
use crate::scalar::Scalar;

/// A permutation: `new → old`. Row `i` of the reordered matrix is row `p[i]` of the original one.
///
/// ```
/// use krylith::Permutation;
/// let p = Permutation::new(vec![2, 0, 1])?;
/// assert_eq!(p.gather(&["a", "b", "c"])?, ["c", "a", "b"]);
/// assert_eq!(p.inverse().gather(&["c", "a", "b"])?, ["a", "b", "c"]);
/// # Ok::<(), krylith::MatrixError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Permutation {
    old: Vec<u32>,
    new: Vec<u32>,
}

impl Permutation {
    /// From the list of old indices in their new order, checked.
    pub fn new(old: Vec<u32>) -> Result<Self, MatrixError> {
        super::pattern::check_dimensions(old.len() as u64, 0)?;
        const UNSEEN: u32 = u32::MAX;
        // Only the last of 2³² positions equals the mark, and nothing is looked up after it.
        let mut new = super::assemble::filled(UNSEEN, old.len())?;
        for (position, &index) in old.iter().enumerate() {
            let fault = |why| MatrixError::NotAPermutation { position, index, why };
            let place = new.get_mut(index as usize).ok_or_else(|| fault("outside of the range"))?;
            if *place != UNSEEN {
                return Err(fault("seen before"));
            }
            *place = position as u32;
        }
        Ok(Permutation { old, new })
    }

    /// The permutation that changes nothing.
    pub fn identity(n: usize) -> Result<Self, MatrixError> {
        super::pattern::check_dimensions(n as u64, 0)?;
        let mut old = super::assemble::filled(0u32, n)?;
        old.iter_mut().zip(0..).for_each(|(old, i)| *old = i);
        Self::new(old)
    }

    /// Number of indices.
    pub fn len(&self) -> usize {
        self.old.len()
    }

    /// No index at all.
    pub fn is_empty(&self) -> bool {
        self.old.is_empty()
    }

    /// The old index at each new position.
    pub fn old(&self) -> &[u32] {
        &self.old
    }

    /// The new position of each old index.
    pub fn new_positions(&self) -> &[u32] {
        &self.new
    }

    /// The permutation that undoes this one.
    pub fn inverse(&self) -> Self {
        Permutation { old: self.new.clone(), new: self.old.clone() }
    }

    /// A vector in the new order.
    pub fn gather<T: Clone>(&self, x: &[T]) -> Result<Vec<T>, MatrixError> {
        check_length("x", self.len(), x.len())?;
        Ok(self.old.iter().map(|&i| x[i as usize].clone()).collect())
    }
}

impl<T: Scalar> CsrRef<'_, T> {
    /// P A Qᵀ: entry (i, j) of the result is entry (`p[i]`, `q[j]`) of A.
    pub fn permute(&self, rows: &Permutation, columns: &Permutation) -> Result<Csr<T>, MatrixError> {
        check_length("row permutation", self.nrows(), rows.len())?;
        check_length("column permutation", self.ncols(), columns.len())?;
        let old_row = |i: usize| self.row(rows.old()[i] as usize);
        Csr::from_rows(
            self.nrows(),
            self.ncols(),
            |i| old_row(i).0.len(),
            |i, new_columns, new_values| {
                let (c, v) = old_row(i);
                let mut order: Vec<(u32, T)> =
                    c.iter().zip(v).map(|(&j, &v)| (columns.new_positions()[j as usize], v)).collect();
                order.sort_unstable_by_key(|&(j, _)| j);
                for (k, (j, v)) in order.into_iter().enumerate() {
                    (new_columns[k], new_values[k]) = (j, v);
                }
            },
        )
    }

    /// P A Pᵀ, the symmetric reordering of a square matrix.
    pub fn permute_symmetric(&self, p: &Permutation) -> Result<Csr<T>, MatrixError> {
        self.require_square()?;
        self.permute(p, p)
    }
}
