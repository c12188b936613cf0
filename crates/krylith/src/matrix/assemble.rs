//! From entries in any order to compressed rows.
//!
//! A stable counting sort by row, in parallel: the entries come in consecutive groups; each group counts its entries per
//! row, a scan over (row, group) gives every group its own positions, and each group writes its entries there. The result
//! does not depend on the number of groups: within a row, entries keep the order in which they came.
//!
//! Rows are then sorted (stably) where they need it, entries at the same place are summed in the order in which they came, and
//! what is left of a row is written right behind what is left of the row before it, in blocks of rows in parallel; the blocks are
//! moved together at the end. A short row, as finite elements give them, is sorted by counting for each of its n entries
//! those of smaller columns: n² comparisons without a branch, several at a time, against n log n with branches that the processor cannot predict.
//!
//! Cost: three passes over the entries. Where the rows come in no order, most of it is the pass that writes the entries by rows, with
//! two misses of the cache for each run of entries of one row. Storage: a cursor per row and group, and the entries by rows, in which
//! the result stays.
//!
//! Transposition is the same sort with rows and columns exchanged.
//!
//! Reference: D. E. Knuth, The Art of Computer Programming 3, Addison-Wesley 1998, section 5.2 (comparison counting, distribution
//! counting).
#![allow(unsafe_code)]

use super::{Csr, Pattern};
use crate::disjoint::DisjointSlice;
use crate::error::MatrixError;
use crate::memory::large_pages;
use crate::parallel;
use crate::parallel::share;
use crate::scalar::Scalar;
use std::sync::Arc;

/// Entries in consecutive groups that can be visited independently and repeatedly.
///
/// # Safety
/// `for_each` visits the same entries in the same order whenever it is called with the same share, so that those counted are
/// those written; all shares together have `len` entries, so that counts which hold `len` do not overflow.
pub(crate) unsafe trait Entries<T>: Sync {
    /// Number of entries altogether.
    fn len(&self) -> usize;
    /// Visits the entries of share `share` of `shares`, in order, as (row, column, value); always the same ones.
    fn for_each(&self, share: usize, shares: usize, visit: impl FnMut(u32, u32, T));
}

/// row_ptr, col_idx, values.
type ByRows<T> = (Vec<usize>, Vec<u32>, Vec<T>);

/// The entries as compressed rows, in the order in which they came within each row.
/// Every row index visited must be below `nrows`.
fn distribute<T: Scalar>(nrows: usize, entries: &impl Entries<T>) -> Result<ByRows<T>, MatrixError> {
    // Where the entries of a row come from everywhere, cursors are read from everywhere: short ones are in a cache more often.
    if u32::try_from(entries.len()).is_ok() {
        distribute_by::<T, u32>(nrows, entries)
    } else {
        distribute_by::<T, usize>(nrows, entries)
    }
}

/// [`distribute`] with cursors of type `P`, which must be able to hold the number of entries.
fn distribute_by<T: Scalar, P: Position>(
    nrows: usize,
    entries: &impl Entries<T>,
) -> Result<ByRows<T>, MatrixError> {
    let nnz = entries.len();
    // A cursor per row and share: no more shares than keep the cursors below the size of the entries themselves.
    let shares = rayon::current_num_threads().min(nnz / nrows.max(1)).max(1);
    let mut cursors = parallel::try_map(shares, |s| {
        let mut count = filled(P::ZERO, nrows)?;
        let counts = count.as_mut_slice();
        entries.for_each(s, shares, |row, _, _| counts[row as usize].increase());
        Ok::<_, MatrixError>(count)
    })?;
    let mut row_ptr = filled(0usize, nrows + 1)?;
    let mut position = 0;
    for row in 0..nrows {
        row_ptr[row] = position;
        for cursor in &mut cursors {
            let count = cursor[row].get();
            cursor[row] = P::new(position);
            position += count;
        }
    }
    row_ptr[nrows] = position;
    assert_eq!(position, nnz, "entries were visited differently than announced");

    let (mut col_idx, mut values) = (filled(0u32, nnz)?, filled(T::ZERO, nnz)?);
    let (columns, numbers) = (DisjointSlice::new(&mut col_idx), DisjointSlice::new(&mut values));
    parallel::for_each_piece_mut(&mut cursors, 1, |s, cursor| {
        // In registers: behind references they would be read again after every store.
        let (cursor, columns, numbers) =
            (cursor[0].as_mut_slice(), columns.as_mut_ptr(), numbers.as_mut_ptr());
        entries.for_each(s, shares, move |row, column, value| {
            let position = cursor[row as usize].get();
            cursor[row as usize].increase();
            assert!(position < nnz);
            // SAFETY: in bounds by the line above. `for_each` visits the same entries as when they were counted, so
            // the positions from a share's cursor for a row end before those of the next share or row begin.
            unsafe {
                columns.add(position).write(column);
                numbers.add(position).write(value);
            }
        });
    });
    Ok((row_ptr, col_idx, values))
}

/// A count of entries, or the position of one.
trait Position: Copy + Send + Sync {
    const ZERO: Self;
    /// `position`, which must be within the range of the type.
    fn new(position: usize) -> Self;
    fn get(self) -> usize;
    fn increase(&mut self);
}

macro_rules! position {
    ($t:ty) => {
        impl Position for $t {
            const ZERO: $t = 0;
            fn new(position: usize) -> $t {
                position as $t
            }
            fn get(self) -> usize {
                self as usize
            }
            fn increase(&mut self) {
                *self += 1;
            }
        }
    };
}

position!(u32);
position!(usize);

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
    if !large_pages::has_room::<T>(n) {
        return Err(MatrixError::OutOfMemory { bytes: (n as u64).saturating_mul(size_of::<T>() as u64) });
    }
    let mut x = vec![value; n];
    large_pages::advise_huge_pages(&mut x);
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
    // A thread alone takes all rows as one block, and there is nothing to move together.
    let alone = rayon::current_num_threads() == 1;
    let rows_per_block = if alone { nrows.max(1) } else { ROWS_PER_TASK };
    let mut blocks = Vec::with_capacity(nrows.div_ceil(rows_per_block));
    let (mut start, mut columns, mut numbers) = (0, col_idx.as_mut_slice(), values.as_mut_slice());
    for ends in row_ptr[1..].chunks_mut(rows_per_block) {
        let size = ends[ends.len() - 1] - start;
        let (c, v);
        (c, columns) = columns.split_at_mut(size);
        (v, numbers) = numbers.split_at_mut(size);
        blocks.push(Block { start, ends, columns: c, values: v });
        start += size;
    }
    let mut sizes = vec![(0, 0); blocks.len()];
    parallel::for_each_of(blocks.into_iter().zip(&mut sizes).collect(), |(block, size)| {
        *size = (block.start, block.sort_and_sum());
    });
    let mut kept = 0;
    for (ends, (start, size)) in row_ptr[1..].chunks_mut(rows_per_block).zip(sizes) {
        if kept < start {
            col_idx.copy_within(start..start + size, kept);
            values.copy_within(start..start + size, kept);
            ends.iter_mut().for_each(|end| *end -= start - kept);
        }
        kept += size;
    }
    col_idx.truncate(kept);
    values.truncate(kept);
    Csr::trusted(Arc::new(Pattern::trusted(nrows, ncols, row_ptr, col_idx)), values)
}

/// Consecutive rows: where the first one starts, where each of them ends, and what they hold.
struct Block<'a, T> {
    start: usize,
    ends: &'a mut [usize],
    columns: &'a mut [u32],
    values: &'a mut [T],
}

impl<T: Scalar> Block<'_, T> {
    /// Sorts and sums each row, and writes it behind the row before it; how many entries are left.
    fn sort_and_sum(self) -> usize {
        let Block { start, ends, columns, values } = self;
        let mut scratch = Vec::new();
        let (mut kept, mut next) = (0, 0);
        for end in ends {
            let row = next..*end - start;
            next = row.end;
            let n = row.len();
            if columns[row.clone()].is_sorted_by(|a, b| a < b) {
                if kept < row.start {
                    columns.copy_within(row.clone(), kept);
                    values.copy_within(row, kept);
                }
                kept += n;
            } else {
                let (columns, values) = (&mut columns[kept..next], &mut values[kept..next]);
                kept += match n {
                    0..=16 => sort_short::<T, 16>(columns, values, n),
                    17..=32 => sort_short::<T, 32>(columns, values, n),
                    33..=64 => sort_short::<T, 64>(columns, values, n),
                    _ => sort_long(columns, values, n, &mut scratch),
                };
            }
            *end = start + kept;
        }
        kept
    }
}

/// Sorts the last `n` ≤ `N` ≤ 64 entries by column, sums those of equal column in their order, and writes the result to the
/// front; how many entries it has.
fn sort_short<T: Scalar, const N: usize>(columns: &mut [u32], values: &mut [T], n: usize) -> usize {
    let first = columns.len() - n;
    // In the order of signed numbers, for which every processor has a vector comparison. The padding is larger than every column, and counts for none of them.
    let mut keys = [i32::MAX; N];
    for (key, &column) in keys.iter_mut().zip(&columns[first..]) {
        *key = (column ^ 1 << 31) as i32;
    }
    // The rank of an entry: how many have smaller columns.
    let mut ranks = [0u32; N];
    for &key in &keys[..n] {
        for k in 0..N {
            ranks[k] += u32::from(key < keys[k]);
        }
    }
    // −0 + v has the bits of v.
    let (mut sorted, mut sums, mut taken) = ([0u32; N], [-T::ZERO; N], 0u64);
    for (k, (&column, &value)) in columns[first..].iter().zip(&values[first..]).enumerate() {
        let rank = ranks[k] as usize;
        sorted[rank] = column;
        sums[rank] += value;
        taken |= 1 << rank;
    }
    let mut kept = 0;
    while taken != 0 {
        let rank = taken.trailing_zeros() as usize;
        (columns[kept], values[kept]) = (sorted[rank], sums[rank]);
        kept += 1;
        taken &= taken - 1;
    }
    kept
}

/// As [`sort_short`], for any number of entries.
fn sort_long<T: Scalar>(
    columns: &mut [u32],
    values: &mut [T],
    n: usize,
    scratch: &mut Vec<(u32, T)>,
) -> usize {
    let first = columns.len() - n;
    scratch.clear();
    scratch.extend(columns[first..].iter().copied().zip(values[first..].iter().copied()));
    scratch.sort_by_key(|&(column, _)| column);
    let mut kept = 0;
    for &(column, value) in scratch.iter() {
        if kept > 0 && columns[kept - 1] == column {
            values[kept - 1] += value;
        } else {
            (columns[kept], values[kept]) = (column, value);
            kept += 1;
        }
    }
    kept
}

/// What is called with the first row of a block, the row pointer of the block, its columns and its values.
pub(crate) type FillRows<'a, T> = dyn Fn(usize, &[usize], &mut [u32], &mut [T]) + Sync + 'a;

/// Calls `f` on blocks of rows in parallel.
pub(crate) fn for_each_row_block_mut<T: Scalar>(
    row_ptr: &[usize],
    col_idx: &mut [u32],
    values: &mut [T],
    f: &FillRows<'_, T>,
) {
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
    parallel::for_each_of(blocks, |(first, ptr, columns, values)| f(first, ptr, columns, values));
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
        let own = share(self.rows.len(), k, shares);
        let (rows, columns) = (&self.rows[own.clone()], &self.columns[own.clone()]);
        for ((&row, &column), &value) in rows.iter().zip(columns).zip(&self.values[own]) {
            visit(row, column, value);
        }
    }
}
