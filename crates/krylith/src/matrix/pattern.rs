//! Where the entries of a sparse matrix are: compressed rows, 64-bit row pointers, 32-bit columns.

use super::repeats::Repeats;
use crate::error::MatrixError;
use crate::parallel;
use std::ops::Range;

/// The largest number of rows or columns that 32-bit indices name.
pub(crate) const MAX_DIMENSION: u64 = 1 << 32;

/// The positions of a sparse matrix's entries.
///
/// Row `i` has its entries at the columns `col_idx[row_ptr[i]..row_ptr[i + 1]]`, strictly increasing.
/// Every constructor establishes these facts, so whoever holds a `Pattern` may rely on them:
/// `row_ptr` starts at 0, never decreases and ends at `nnz`; every column is below `ncols`.
///
/// A pattern is shared by [`Arc`](std::sync::Arc) between the matrices of a sequence and whatever was analyzed from it.
///
/// ```
/// use krylith::Pattern;
/// let p = Pattern::new(2, 3, vec![0, 2, 3], vec![0, 2, 1]).unwrap();
/// assert_eq!(p.row(0), [0, 2]);
/// assert!(Pattern::new(1, 2, vec![0, 2], vec![1, 0]).is_err()); // out of order
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    nrows: usize,
    ncols: usize,
    row_ptr: Vec<usize>,
    col_idx: Vec<u32>,
    pub(super) repeats: Repeats,
}

impl Pattern {
    /// A pattern from raw parts, every property checked. Of several faults the one in the smallest row is reported.
    pub fn new(
        nrows: usize,
        ncols: usize,
        row_ptr: Vec<usize>,
        col_idx: Vec<u32>,
    ) -> Result<Self, MatrixError> {
        check_rows(nrows, ncols, &row_ptr, col_idx.len())?;
        check_columns(ncols, &row_ptr, &col_idx, Order::Strict)?;
        Ok(Pattern { nrows, ncols, row_ptr, col_idx, repeats: Repeats::default() })
    }

    /// A pattern whose properties the caller has established.
    pub(crate) fn trusted(nrows: usize, ncols: usize, row_ptr: Vec<usize>, col_idx: Vec<u32>) -> Self {
        debug_assert_eq!(check_rows(nrows, ncols, &row_ptr, col_idx.len()), Ok(()));
        debug_assert_eq!(check_columns(ncols, &row_ptr, &col_idx, Order::Strict), Ok(()));
        Pattern { nrows, ncols, row_ptr, col_idx, repeats: Repeats::default() }
    }

    /// Number of rows.
    pub fn nrows(&self) -> usize {
        self.nrows
    }

    /// Number of columns.
    pub fn ncols(&self) -> usize {
        self.ncols
    }

    /// Number of entries, explicit zeros included.
    pub fn nnz(&self) -> usize {
        self.col_idx.len()
    }

    /// Where each row starts; `nrows + 1` entries.
    pub fn row_ptr(&self) -> &[usize] {
        &self.row_ptr
    }

    /// The columns, row by row.
    pub fn col_idx(&self) -> &[u32] {
        &self.col_idx
    }

    /// The positions of row `i` in `col_idx` and in a matrix's values.
    pub fn row_range(&self, i: usize) -> Range<usize> {
        self.row_ptr[i]..self.row_ptr[i + 1]
    }

    /// The columns of row `i`, increasing.
    pub fn row(&self, i: usize) -> &[u32] {
        &self.col_idx[self.row_range(i)]
    }

    /// The position of entry (i, j), if the pattern has it.
    pub fn find(&self, i: usize, j: usize) -> Option<usize> {
        let start = self.row_ptr[i];
        let j = u32::try_from(j).ok()?;
        self.row(i).binary_search(&j).ok().map(|k| start + k)
    }

    /// Rows = columns.
    pub fn is_square(&self) -> bool {
        self.nrows == self.ncols
    }

    /// `Err(NotSquare)` unless rows = columns.
    pub fn require_square(&self) -> Result<(), MatrixError> {
        if self.is_square() {
            Ok(())
        } else {
            Err(MatrixError::NotSquare { nrows: self.nrows, ncols: self.ncols })
        }
    }

    /// Bytes held by the index arrays.
    pub fn bytes(&self) -> usize {
        size_of_val(self.row_ptr.as_slice()) + size_of_val(self.col_idx.as_slice())
    }

    /// The raw parts: row pointer and columns.
    pub fn into_parts(self) -> (Vec<usize>, Vec<u32>) {
        (self.row_ptr, self.col_idx)
    }
}

/// What a row's columns must satisfy.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Order {
    /// Any order, duplicates allowed.
    Any,
    /// Strictly increasing.
    Strict,
}

pub(crate) fn check_dimensions(nrows: u64, ncols: u64) -> Result<(), MatrixError> {
    for (what, count) in [("rows", nrows), ("columns", ncols)] {
        if count > MAX_DIMENSION {
            return Err(MatrixError::TooLarge { what, count });
        }
    }
    Ok(())
}

pub(crate) fn check_rows(
    nrows: usize,
    ncols: usize,
    row_ptr: &[usize],
    nnz: usize,
) -> Result<(), MatrixError> {
    check_dimensions(nrows as u64, ncols as u64)?;
    if row_ptr.len() != nrows + 1 {
        return Err(MatrixError::RowPtrLength { expected: nrows + 1, found: row_ptr.len() });
    }
    if row_ptr[0] != 0 {
        return Err(MatrixError::RowPtrStart { first: row_ptr[0] });
    }
    if let Some(row) = parallel::first(nrows, |row| row_ptr[row + 1] < row_ptr[row]) {
        return Err(MatrixError::RowPtrDecreases { row });
    }
    if row_ptr[nrows] != nnz {
        return Err(MatrixError::RowPtrEnd { end: row_ptr[nrows], nnz });
    }
    Ok(())
}

/// Needs a row pointer that `check_rows` has accepted.
pub(crate) fn check_columns(
    ncols: usize,
    row_ptr: &[usize],
    col_idx: &[u32],
    order: Order,
) -> Result<(), MatrixError> {
    let fault = |row: usize| {
        let columns = &col_idx[row_ptr[row]..row_ptr[row + 1]];
        if let Some(&column) = columns.iter().find(|&&c| c as usize >= ncols) {
            return Some(MatrixError::ColumnOutOfRange { row, column, ncols });
        }
        if order == Order::Strict
            && let Some(w) = columns.windows(2).find(|w| w[1] <= w[0])
        {
            return Some(MatrixError::ColumnsUnsorted { row, column: w[1] });
        }
        None
    };
    let faulty = parallel::first(row_ptr.len() - 1, |row| fault(row).is_some());
    faulty.and_then(fault).map_or(Ok(()), Err)
}
