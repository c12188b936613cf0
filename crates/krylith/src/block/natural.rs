//! The block size that a pattern has by nature: how many unknowns stand together at a node.
//!
//! Rule: of the sizes 8 to 2 that divide the number of rows, the largest whose blocks, stored whole, hold at most 1.1 times the
//! entries of the pattern. Otherwise 1. A size is given up as soon as its blocks exceed that: at most one pass over the
//! entries for each candidate, no memory. A matrix with several unknowns per node passes for their number; one whose rows have
//! nothing in common with their neighbours is far off: a diagonal of ones has fill B.

use super::matrix::BlockColumns;
use crate::matrix::{Pattern, Rows, all_hold};
use crate::parallel;
use std::borrow::Cow;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Entries that blocks may store for each entry of the pattern.
const LARGEST_FILL: f64 = 1.1;

/// Block rows that are counted as one piece.
const PIECE: usize = 256;

/// A block size, and what it costs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BlockSize {
    /// Rows of a block, 1 to 8.
    pub size: usize,
    /// Entries that blocks of this size store for each entry of the pattern.
    pub fill: f64,
}

/// The natural block size of a square pattern; 1 for one that is not square or has no entries.
///
/// ```
/// use krylith::{block::natural_block, gallery::Problem};
/// let a = "elasticity3d:6".parse::<Problem>()?.generate()?;
/// assert_eq!(natural_block(a.pattern()).size, 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn natural_block(pattern: &Pattern) -> BlockSize {
    let scalar = BlockSize { size: 1, fill: 1.0 };
    if !pattern.is_square() || pattern.nnz() == 0 {
        return scalar;
    }
    let fits = |&size: &usize| pattern.nrows().is_multiple_of(size);
    (2..=8).rev().filter(fits).find_map(|size| with_size(pattern, size)).unwrap_or(scalar)
}

/// The largest size from 2 on whose blocks are all full: a cheaper question than that for [`natural_block`], since a row or two
/// mostly answer it.
pub(crate) fn full_block(pattern: &Pattern) -> Option<usize> {
    if pattern.is_square() { full_block_of(pattern) } else { None }
}

/// The same of a square matrix, wherever its rows are.
pub(crate) fn full_block_of(rows: &impl Rows) -> Option<usize> {
    let n = rows.count();
    if rows.entries() == 0 {
        return None;
    }
    (2..=8).rev().filter(|&size| n.is_multiple_of(size)).find(|&size| {
        let units = n / size;
        let some = (0..units).step_by(units.div_ceil(16));
        rows.announce(some.clone().flat_map(|i| i * size..(i + 1) * size));
        let is_sampled = |i: usize| is_full(size, |r| rows.columns(i * size + r));
        some.clone().all(is_sampled) && {
            let own = rows.own(size);
            let first = own.units.start;
            let is_own = |i: usize| is_full(size, |r| Cow::Borrowed(own.row((first + i) * size + r)));
            all_hold(rows, parallel::all(own.units.len(), is_own))
        }
    })
}

/// Whether the rows of a block row have the same columns, in whole blocks.
fn is_full<'a>(size: usize, row: impl Fn(usize) -> Cow<'a, [u32]>) -> bool {
    let columns = row(0);
    let whole = |block: &[u32]| {
        (block[0] as usize).is_multiple_of(size)
            && block.iter().zip(block[0]..).all(|(&column, expected)| column == expected)
    };
    columns.len().is_multiple_of(size)
        && columns.chunks_exact(size).all(whole)
        && (1..size).all(|r| row(r) == columns)
}

/// Blocks of this size that have an entry; rows past the last whole block are left out.
pub(crate) fn count_blocks(pattern: &Pattern, size: usize) -> usize {
    let rows = pattern.nrows() / size;
    parallel::map(rows.div_ceil(PIECE), |piece| count_piece(pattern, size, piece)).into_iter().sum()
}

/// The same of one piece of block rows.
fn count_piece(pattern: &Pattern, size: usize, piece: usize) -> usize {
    let rows = piece * PIECE..((piece + 1) * PIECE).min(pattern.nrows() / size);
    rows.map(|i| BlockColumns::new(pattern, size, i).count()).sum()
}

/// The fill of blocks of this size, unless it exceeds [`LARGEST_FILL`].
fn with_size(pattern: &Pattern, size: usize) -> Option<BlockSize> {
    let nnz = pattern.nnz() as f64;
    let most = (LARGEST_FILL * nnz / (size * size) as f64) as usize;
    let (rows, blocks) = (pattern.nrows() / size, AtomicUsize::new(0));
    // Pieces differ in who counts them; that they exceed the limit together does not.
    parallel::for_each(rows.div_ceil(PIECE), |piece| {
        if blocks.load(Ordering::Relaxed) <= most {
            blocks.fetch_add(count_piece(pattern, size, piece), Ordering::Relaxed);
        }
    });
    let blocks = blocks.into_inner();
    (blocks <= most).then(|| BlockSize { size, fill: (blocks * size * size) as f64 / nnz })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::tests::{blocky, problem};
    use crate::matrix::Csr;

    fn natural(a: &Csr<f64>) -> BlockSize {
        natural_block(a.pattern())
    }

    #[test]
    fn several_unknowns_a_node_are_found() {
        assert_eq!(natural(&problem("elasticity3d:7")), BlockSize { size: 3, fill: 1.0 });
        assert_eq!(natural(&problem("elasticity2d:12")), BlockSize { size: 2, fill: 1.0 });
        assert_eq!(full_block(problem("elasticity3d:7").pattern()), Some(3));
        assert_eq!(full_block(problem("elasticity2d:12").pattern()), Some(2));
        for size in 2..=8 {
            assert_eq!(natural(&blocky(size, 601, 5)).size, size);
        }
    }

    #[test]
    fn scalar_problems_have_none() {
        for name in ["poisson2d:24", "poisson3d:12", "hpcg:8", "convection3d:12", "fem2d:30", "jump3d:12"] {
            assert_eq!(natural(&problem(name)), BlockSize { size: 1, fill: 1.0 }, "{name}");
            assert_eq!(full_block(problem(name).pattern()), None, "{name}");
        }
        assert_eq!(natural(&Csr::identity(840).unwrap()).size, 1);
        assert_eq!(natural(&Csr::from_triplets(0, 0, &[], &[], &[]).unwrap()).size, 1);
        assert_eq!(natural(&Csr::from_triplets(2, 4, &[0], &[0], &[1.0]).unwrap()).size, 1);
    }

    /// 601 nodes of 2 x 2 blocks lose entries: fill 1.1 is accepted, more is not.
    #[test]
    fn the_limit_is_a_tenth() {
        let a = blocky(2, 601, 5);
        let without = |lost: usize| {
            let kept = a.nnz() - lost;
            let (mut rows, mut columns) = (Vec::new(), Vec::new());
            for i in 0..a.nrows() {
                for &j in a.row(i).0 {
                    rows.push(i as u32);
                    columns.push(j);
                }
            }
            // One entry of each of the first blocks: those at even rows and columns of different nodes.
            let mut left = lost;
            let (rows, columns): (Vec<u32>, Vec<u32>) = rows
                .into_iter()
                .zip(columns)
                .filter(|&(i, j)| {
                    let drop = left > 0 && i % 2 == 0 && j % 2 == 0 && i != j;
                    left -= usize::from(drop);
                    !drop
                })
                .unzip();
            natural(&Csr::from_triplets(1202, 1202, &rows, &columns, &vec![1.0; kept]).unwrap())
        };
        // stored / (stored − lost) ≤ 1.1 means lost ≤ stored / 11.
        let most = a.nnz() / 11;
        let found = without(most);
        assert_eq!(found, BlockSize { size: 2, fill: a.nnz() as f64 / (a.nnz() - most) as f64 });
        assert_eq!(without(most + 1).size, 1);
    }
}
