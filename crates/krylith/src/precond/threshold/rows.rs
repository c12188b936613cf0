//! Compressed rows that grow one by one, within a limit of bytes for the whole factor.

use super::select::Entry;
use crate::error::SetupError;
use crate::matrix::{Csr, Pattern};
use crate::scalar::Scalar;
use std::sync::Arc;

/// How many bytes a factor may take, and takes so far.
#[derive(Debug)]
pub(super) struct Budget {
    limit: u64,
    taken: u64,
    per_entry: u64,
}

impl Budget {
    /// For two triangles and a diagonal of order n, `copies` of each entry and `per_row` bytes per row besides;
    /// fails if there is no room for even the diagonal.
    pub(super) fn new<T>(n: usize, copies: u64, per_row: u64, limit: u64) -> Result<Self, SetupError> {
        let number = size_of::<T>() as u64;
        let mut budget = Budget { limit, taken: 0, per_entry: copies * (4 + number) };
        budget.add(16 + (n as u64).saturating_mul(16 + number + per_row))?;
        Ok(budget)
    }

    /// Room for so many entries more.
    pub(super) fn take(&mut self, entries: usize) -> Result<(), SetupError> {
        self.add((entries as u64).saturating_mul(self.per_entry))
    }

    fn add(&mut self, bytes: u64) -> Result<(), SetupError> {
        let predicted = self.taken.saturating_add(bytes);
        if predicted > self.limit {
            return Err(SetupError::MemoryLimit { predicted, limit: self.limit });
        }
        self.taken = predicted;
        Ok(())
    }

    /// Entries for which there is room still.
    fn left(&self) -> usize {
        usize::try_from((self.limit - self.taken) / self.per_entry).unwrap_or(usize::MAX)
    }
}

/// The rows so far.
#[derive(Debug)]
pub(super) struct Rows<T> {
    row_ptr: Vec<usize>,
    pub(super) col_idx: Vec<u32>,
    pub(super) values: Vec<T>,
}

impl<T: Scalar> Rows<T> {
    /// No rows, of n to come.
    pub(super) fn new(n: usize) -> Self {
        let mut row_ptr = Vec::with_capacity(n + 1);
        row_ptr.push(0);
        Rows { row_ptr, col_idx: Vec::new(), values: Vec::new() }
    }

    pub(super) fn nnz(&self) -> usize {
        self.col_idx.len()
    }

    pub(super) fn range(&self, i: usize) -> std::ops::Range<usize> {
        self.row_ptr[i]..self.row_ptr[i + 1]
    }

    pub(super) fn row(&self, i: usize) -> (&[u32], &[T]) {
        (&self.col_idx[self.range(i)], &self.values[self.range(i)])
    }

    /// Appends a row. The arrays grow by half, but not past what the budget allows.
    pub(super) fn push(
        &mut self,
        entries: impl ExactSizeIterator<Item = Entry<T>>,
        budget: &mut Budget,
    ) -> Result<(), SetupError> {
        let (len, more) = (self.nnz(), entries.len());
        budget.take(more)?;
        if self.col_idx.capacity() - len < more {
            let room = more.max((len / 2).min(budget.left()));
            self.col_idx.reserve_exact(room);
            self.values.reserve_exact(room);
        }
        for (column, value) in entries {
            self.col_idx.push(column);
            self.values.push(value);
        }
        self.row_ptr.push(self.nnz());
        Ok(())
    }

    /// The finished matrix; columns are increasing in each row.
    pub(super) fn finish(mut self) -> Csr<T> {
        let n = self.row_ptr.len() - 1;
        self.col_idx.shrink_to_fit();
        self.values.shrink_to_fit();
        Csr::trusted(Arc::new(Pattern::trusted(n, n, self.row_ptr, self.col_idx)), self.values)
    }
}
