//! From entries in any order to compressed rows.
//!
//! A stable counting sort by row, in parallel: the entries come in consecutive groups; each group counts its entries a
//! row, a scan over (row, group) gives every group its own positions, and each group writes its entries there. The result
//! does not depend on the number of groups: within a row, entries keep the order in which they came. Rows are then sorted
//! (stably) where they need it, and entries at the same place are summed in the order in which they came (one thread compacts the rows where there are any).
//!
//! Transposition is the same sort with rows and columns exchanged.
#![allow(unsafe_code)]

use super::{Csr, Pattern};
use crate::disjoint::DisjointSlice;
use crate::error::MatrixError;
use crate::huge;
use crate::scalar::Scalar;
use rayon::prelude::*;
use std::sync::Arc;

/// Entries in consecutive groups that can be visited independently and repeatedly.
///
/// # Safety
/// `for_each` visits the same entries in the same order whenever it is called with the same share, so that those counted are
/// those written.
pub(crate) unsafe trait Entries<T>: Sync {
    /// Number of entries altogether.
    fn len(&self) -> usize;
    /// Visits the entries of share `share` of `shares`, in order, as (row, column, value); always the same ones.
    fn for_each(&self, share: usize, shares: usize, visit: impl FnMut(u32, u32, T));
}

/// The bounds of share `k` of `shares` consecutive shares of `n` items.
pub(crate) fn share(n: usize, k: usize, shares: usize) -> std::ops::Range<usize> {
    let bound = |k: usize| (n as u128 * k as u128 / shares as u128) as usize;
    bound(k)..bound(k + 1)
}

/// row_ptr, col_idx, values.
type ByRows<T> = (Vec<usize>, Vec<u32>, Vec<T>);

/// The entries as compressed rows, in the order in which they came within each row.
/// Every row index visited must be below `nrows`.
fn distribute<T: Scalar>(nrows: usize, entries: &impl Entries<T>) -> Result<ByRows<T>, MatrixError> {
    let nnz = entries.len();
    // A cursor a row and share: no more shares than keep the cursors below the size of the entries themselves.
    let shares = rayon::current_num_threads().min(nnz / nrows.max(1)).max(1);
    let mut cursors: Vec<Vec<usize>> = (0..shares)
        .into_par_iter()
        .map(|s| {
            let mut count = filled(0usize, nrows)?;
            entries.for_each(s, shares, |row, _, _| count[row as usize] += 1);
            Ok(count)
        })
        .collect::<Result<_, MatrixError>>()?;
    let mut row_ptr = filled(0usize, nrows + 1)?;
    let mut position = 0;
    for row in 0..nrows {
        row_ptr[row] = position;
        for cursor in &mut cursors {
            let count = cursor[row];
            cursor[row] = position;
            position += count;
        }
    }
    row_ptr[nrows] = position;
    assert_eq!(position, nnz, "entries were visited differently than announced");

    let (mut col_idx, mut values) = (filled(0u32, nnz)?, filled(T::ZERO, nnz)?);
    let (columns, numbers) = (DisjointSlice::new(&mut col_idx), DisjointSlice::new(&mut values));
    cursors.par_iter_mut().enumerate().for_each(|(s, cursor)| {
        entries.for_each(s, shares, |row, column, value| {
            let position = cursor[row as usize];
            cursor[row as usize] += 1;
            assert!(position < nnz);
            // SAFETY: in bounds by the line above. `for_each` visits the same entries as when they were counted, so
            // the positions from a share's cursor for a row end before those of the next share or row begin.
            unsafe {
                columns.write(position, column);
                numbers.write(position, value);
            }
        });
    });
    Ok((row_ptr, col_idx, values))
}

/// A matrix from entries in any order; duplicates are summed. Indices must be within the dimensions.
pub(crate) fn assemble<T: Scalar>(
    nrows: usize,
    ncols: usize,
    entries: &impl Entries<T>,
) -> Result<Csr<T>, MatrixError> {
    let (row_ptr, col_idx, values) = distribute(nrows, entries)?;
    Ok(sort_and_sum(nrows, ncols, row_ptr, col_idx, values))
}

/// `n` times the same value on large pages, or an error if there is no memory for them. Of zeros no page is touched yet: the threads
/// that fill an array are the first to write it.
pub(crate) fn filled<T: Copy>(value: T, n: usize) -> Result<Vec<T>, MatrixError> {
    if !huge::has_room::<T>(n) {
        return Err(MatrixError::OutOfMemory { bytes: (n as u64).saturating_mul(size_of::<T>() as u64) });
    }
    let mut x = vec![value; n];
    huge::advise_huge_pages(&mut x);
    Ok(x)
}

/// Sorts the columns of each row and sums duplicates. The row pointer and the column range must be valid.
pub(crate) fn sort_and_sum<T: Scalar>(
    nrows: usize,
    ncols: usize,
    mut row_ptr: Vec<usize>,
    mut col_idx: Vec<u32>,
    mut values: Vec<T>,
) -> Csr<T> {
    let duplicates =
        for_each_row_block_mut(&row_ptr, &mut col_idx, &mut values, |_, ptr, columns, values| {
            let mut scratch = Vec::new();
            let ranges = ptr.windows(2).map(|w| w[0] - ptr[0]..w[1] - ptr[0]);
            ranges.map(|r| sort_row(&mut columns[r.clone()], &mut values[r], &mut scratch)).sum()
        });
    if duplicates > 0 {
        sum_duplicates(&mut row_ptr, &mut col_idx, &mut values);
    }
    Csr::trusted(Arc::new(Pattern::trusted(nrows, ncols, row_ptr, col_idx)), values)
}

/// Sorts one row stably by column; the number of entries that repeat a column.
fn sort_row<T: Scalar>(columns: &mut [u32], values: &mut [T], scratch: &mut Vec<(u32, T)>) -> usize {
    if !columns.is_sorted() {
        scratch.clear();
        scratch.extend(columns.iter().copied().zip(values.iter().copied()));
        scratch.sort_by_key(|&(column, _)| column);
        for (k, &(column, value)) in scratch.iter().enumerate() {
            columns[k] = column;
            values[k] = value;
        }
    }
    columns.windows(2).filter(|w| w[0] == w[1]).count()
}

/// Sums entries of equal column in sorted rows, in place.
fn sum_duplicates<T: Scalar>(row_ptr: &mut [usize], col_idx: &mut Vec<u32>, values: &mut Vec<T>) {
    let mut kept = 0;
    let mut start = 0;
    for i in 0..row_ptr.len() - 1 {
        let end = row_ptr[i + 1];
        let first = kept;
        for k in start..end {
            if kept > first && col_idx[kept - 1] == col_idx[k] {
                let value = values[k];
                values[kept - 1] += value;
            } else {
                col_idx[kept] = col_idx[k];
                values[kept] = values[k];
                kept += 1;
            }
        }
        start = end;
        row_ptr[i + 1] = kept;
    }
    col_idx.truncate(kept);
    values.truncate(kept);
}

/// Calls `f(first row, row_ptr of the block, its columns, its values)` on blocks of rows in parallel; the sum of what it
/// returns.
pub(crate) fn for_each_row_block_mut<T: Scalar>(
    row_ptr: &[usize],
    col_idx: &mut [u32],
    values: &mut [T],
    f: impl Fn(usize, &[usize], &mut [u32], &mut [T]) -> usize + Sync,
) -> usize {
    let nrows = row_ptr.len() - 1;
    let mut blocks = Vec::with_capacity(nrows.div_ceil(ROWS_PER_TASK));
    let (mut columns, mut numbers) = (col_idx, values);
    for first in (0..nrows).step_by(ROWS_PER_TASK) {
        let last = (first + ROWS_PER_TASK).min(nrows);
        let size = row_ptr[last] - row_ptr[first];
        let (c, rest) = columns.split_at_mut(size);
        columns = rest;
        let (v, rest) = numbers.split_at_mut(size);
        numbers = rest;
        blocks.push((first, &row_ptr[first..=last], c, v));
    }
    blocks.into_par_iter().map(|(first, ptr, columns, values)| f(first, ptr, columns, values)).sum()
}

/// Rows handled as one piece of parallel work: enough to hide its cost, few enough to balance.
pub(crate) const ROWS_PER_TASK: usize = 4096;

/// Entries given as three arrays of equal length, visited one after the other.
pub(crate) struct Triplets<'a, T> {
    pub(crate) rows: &'a [u32],
    pub(crate) columns: &'a [u32],
    pub(crate) values: &'a [T],
}

// SAFETY: the arrays cannot change while they are borrowed.
unsafe impl<T: Scalar> Entries<T> for Triplets<'_, T> {
    fn len(&self) -> usize {
        self.rows.len()
    }

    fn for_each(&self, k: usize, shares: usize, mut visit: impl FnMut(u32, u32, T)) {
        for e in share(self.rows.len(), k, shares) {
            visit(self.rows[e], self.columns[e], self.values[e]);
        }
    }
}
