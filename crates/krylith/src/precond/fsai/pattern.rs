//! The pattern of G: powers of the large entries of A.
//!
//! Ã has the entries of A with |aᵢⱼ| > τ √(aᵢᵢ aⱼⱼ) and the whole diagonal (eq. 3.8). B₀ = I, and k times Bₚ₊₁ = Low(Bₚ Ã) (eq. 3.9), symbolically: row i
//! of Bₚ₊₁ has the columns up to i of the rows of Ã that row i of Bₚ names. Algorithm 3.1 of the paper takes k − 1 steps; its equation and its results
//! take k.

use super::repeats::Rows;
use crate::error::SetupError;
use crate::matrix::{Csr, Pattern};
use crate::parallel;
use crate::space::Threads;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Rows that a member takes at a time.
const GRAIN: usize = 256;

/// Ã: the pattern of the entries above `tau`, and the diagonal.
pub fn large_entries(space: &Threads<f64>, a: &Csr<f64>, tau: f64) -> Pattern {
    let roots = roots_of_diagonal(a);
    let rows = |i: usize, found: &mut Vec<u32>| {
        let (columns, values) = a.row(i);
        let mut diagonal = false;
        for (&j, v) in columns.iter().zip(values) {
            if j as usize > i && !diagonal {
                found.push(i as u32);
                diagonal = true;
            }
            if j as usize == i {
                diagonal = true;
            }
            if j as usize == i || v.abs() > tau * roots[i] * roots[j as usize] {
                found.push(j);
            }
        }
        if !diagonal {
            found.push(i as u32);
        }
    };
    by_rows(space, a.nrows(), &|| (), &|i, (), found| rows(i, found))
}

/// √|aᵢᵢ|.
pub fn roots_of_diagonal(a: &Csr<f64>) -> Vec<f64> {
    parallel::map_rows(a.nrows(), |i| a.get(i, i).abs().sqrt())
}

/// Entries that a pattern may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Most {
    /// In a row, at least 1: what is found later is left out.
    pub of_a_row: usize,
    /// In all: more are an error.
    pub in_all: u64,
}

/// Low(Low(Ã) Ã …): the pattern after `power` steps, each row in order and with its diagonal at its end. An error if it has more than `most.in_all` entries.
/// Row i of a power depends on row i of the one before and on Ã, so every row takes all of its steps at once. It keeps the `most.of_a_row` that were found
/// first: the diagonal, and what the fewest steps reach.
pub fn powers(
    space: &Threads<f64>,
    large: &Pattern,
    power: usize,
    rows: Rows<'_>,
    most: Most,
) -> Result<Pattern, SetupError> {
    let n = large.nrows();
    let row = |i: usize, seen: &mut Vec<u32>, found: &mut Vec<u32>| {
        let begin = found.len();
        found.push(i as u32);
        // Marks are rows, so that none is to be removed.
        seen[i] = i as u32;
        let mut last = begin;
        'steps: for _ in 0..power {
            // What the last step has found is all that the next can add to.
            let end = found.len();
            if last == end {
                break;
            }
            for at in last..end {
                for &k in large.row(found[at] as usize) {
                    if k as usize > i {
                        break;
                    }
                    if seen[k as usize] != i as u32 {
                        if found.len() - begin >= most.of_a_row {
                            break 'steps;
                        }
                        seen[k as usize] = i as u32;
                        found.push(k);
                    }
                }
            }
            last = end;
        }
        found[begin..].sort_unstable();
    };
    by_rows_up_to(most.in_all, space, n, rows, &|| vec![u32::MAX; n], &row)
}

/// A pattern whose rows are found one by one, by all members of the team.
pub(crate) fn by_rows<M>(
    space: &Threads<f64>,
    n: usize,
    marks: &(dyn Fn() -> M + Sync),
    row: &(dyn Fn(usize, &mut M, &mut Vec<u32>) + Sync),
) -> Pattern {
    by_rows_up_to(u64::MAX, space, n, Rows::all(n), marks, row)
        .unwrap_or_else(|_| unreachable!("there is no limit"))
}

/// The same, or an error if it has more than `most` entries.
fn by_rows_up_to<M>(
    most: u64,
    space: &Threads<f64>,
    n: usize,
    rows: Rows<'_>,
    marks: &(dyn Fn() -> M + Sync),
    row: &(dyn Fn(usize, &mut M, &mut Vec<u32>) + Sync),
) -> Result<Pattern, SetupError> {
    by_blocks_up_to((most, GRAIN), space, [rows.len(), n], marks, &|block, marks, columns, lengths| {
        for k in block {
            let begin = columns.len();
            row(rows.row(k), marks, columns);
            lengths.push((columns.len() - begin) as u32);
        }
    })
}

/// Columns and lengths of some rows.
type Block<'a, M> = &'a (dyn Fn(Range<usize>, &mut M, &mut Vec<u32>, &mut Vec<u32>) + Sync);

/// The error for a pattern that is predicted to have so many entries, more than it may.
pub(super) fn too_many(predicted: u64, most: u64) -> SetupError {
    let bytes = |entries: u64| entries.saturating_mul(super::BYTES_PER_ENTRY);
    SetupError::MemoryLimit { predicted: bytes(predicted), limit: bytes(most) }
}

/// Entries of so many rows if they are like those that were found.
pub(super) fn extrapolated(found: u64, of_rows: usize, rows: usize) -> u64 {
    u64::try_from(u128::from(found) * rows as u128 / of_rows.max(1) as u128).unwrap_or(u64::MAX)
}

/// A pattern whose rows are found `grain` at a time, by all members of the team. An error if it has more than `most` entries: what it would have is
/// extrapolated from the first blocks that have more.
pub(crate) fn by_blocks_up_to<M>(
    (most, grain): (u64, usize),
    space: &Threads<f64>,
    [n, columns]: [usize; 2],
    marks: &(dyn Fn() -> M + Sync),
    block_of: Block<'_, M>,
) -> Result<Pattern, SetupError> {
    let blocks = n.div_ceil(grain);
    let (next, total, stop) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
    // Columns and lengths of rows, block after block.
    let found: Vec<Mutex<(Vec<u32>, Vec<u32>)>> = (0..blocks).map(|_| Mutex::default()).collect();
    space.team().run(|_| {
        let mut marks = marks();
        // A block that was taken is finished, so that none is missing before the last.
        while !stop.load(Ordering::Relaxed) {
            let block = next.fetch_add(1, Ordering::Relaxed) as usize;
            if block >= blocks {
                break;
            }
            let (mut own, mut lengths) = (Vec::new(), Vec::with_capacity(grain));
            block_of(block * grain..((block + 1) * grain).min(n), &mut marks, &mut own, &mut lengths);
            let all = total.fetch_add(own.len() as u64, Ordering::Relaxed) + own.len() as u64;
            if all > most {
                stop.store(true, Ordering::Relaxed);
            }
            *found[block].lock().unwrap_or_else(PoisonError::into_inner) = (own, lengths);
        }
    });
    let found = found.into_iter().map(|block| block.into_inner().unwrap_or_else(PoisonError::into_inner));
    if stop.into_inner() {
        let (mut entries, mut rows) = (0, 0);
        for (own, lengths) in found {
            (entries, rows) = (entries + own.len() as u64, rows + lengths.len());
            if entries > most {
                break;
            }
        }
        return Err(too_many(extrapolated(entries, rows, columns), most));
    }
    let (mut row_ptr, mut col_idx) =
        (Vec::with_capacity(n + 1), Vec::with_capacity(total.into_inner() as usize));
    row_ptr.push(0);
    for (own, lengths) in found {
        let mut end = col_idx.len();
        for length in lengths {
            end += length as usize;
            row_ptr.push(end);
        }
        col_idx.extend(own);
    }
    Ok(Pattern::trusted(n, columns, row_ptr, col_idx))
}

#[cfg(test)]
mod tests {
    use super::super::rows::MOST_INDICES;
    use super::*;

    fn most(in_all: u64) -> Most {
        Most { of_a_row: MOST_INDICES, in_all }
    }

    fn chain(n: usize) -> Csr<f64> {
        let entries = (0..n).flat_map(|i| {
            let left = (i > 0).then(|| (i, i - 1, -1.0));
            let right = (i + 1 < n).then(|| (i, i + 1, -1.0));
            left.into_iter().chain([(i, i, 2.0)]).chain(right)
        });
        Csr::from_entries(n, n, entries).unwrap()
    }

    /// On a chain the k-th power reaches k points back.
    #[test]
    fn powers_of_a_chain() {
        let (a, space) = (chain(600), Threads::new(2));
        let large = large_entries(&space, &a, 0.0);
        assert_eq!(large.row(5), [4, 5, 6]);
        for k in 1..4 {
            let rows = powers(&space, &large, k, Rows::all(600), most(u64::MAX)).unwrap();
            for i in [0, 1, 7, 599] {
                let expected: Vec<u32> = (i.max(k) - k..=i).map(|j| j as u32).collect();
                assert_eq!(rows.row(i), expected, "{k} {i}");
            }
        }
    }

    /// |−1| ≤ 0.5 √(2 · 2): everything off the diagonal is dropped, and a diagonal that is not there is added.
    #[test]
    fn what_is_not_above_the_threshold_is_dropped() {
        let space = Threads::new(1);
        assert_eq!(large_entries(&space, &chain(3), 0.5).col_idx(), [0, 1, 2]);
        let a = Csr::from_entries(2, 2, [(0, 1, 1.0), (1, 0, 1.0)]).unwrap();
        assert_eq!(large_entries(&space, &a, 0.0).col_idx(), [0, 1, 0, 1]);
    }

    /// A row that is coupled to all others has a system of bounded size.
    #[test]
    fn a_dense_row_keeps_what_is_found_first() {
        let n = 3 * MOST_INDICES;
        let entries = (0..n).flat_map(|i| [(i, i, n as f64), (n - 1, i, 1.0), (i, n - 1, 1.0)]);
        let a = Csr::from_entries(n, n, entries).unwrap();
        let space = Threads::new(1);
        for power in [1, 2] {
            let large = large_entries(&space, &a, 0.0);
            let rows = powers(&space, &large, power, Rows::all(n), most(u64::MAX)).unwrap();
            let last = rows.row(n - 1);
            assert_eq!((last.len(), last[0], last[MOST_INDICES - 1]), (MOST_INDICES, 0, n as u32 - 1));
        }
    }

    /// Rows have four entries, but for the first three: 1018 in the first block, 2042 in the first two, and 8188 · 8192 / 2048 predicted where eight are needed.
    #[test]
    fn a_limit_is_kept_and_the_prediction_is_the_same_on_any_number_of_threads() {
        let n = 8192;
        let large = large_entries(&Threads::new(1), &chain(n), 0.0);
        for (limit, predicted) in [(1000, 1018 * 32), (2000, 2042 * 16), (8000, 8186 * 4)] {
            for threads in 1..=8 {
                let found = powers(&Threads::new(threads), &large, 3, Rows::all(n), most(limit));
                let bytes = |entries| entries * super::super::BYTES_PER_ENTRY;
                let expected = SetupError::MemoryLimit { predicted: bytes(predicted), limit: bytes(limit) };
                assert_eq!(found, Err(expected), "{limit} {threads}");
            }
        }
    }

    /// Each member finishes the block that it has, and takes no other.
    #[test]
    fn nothing_is_computed_beyond_the_limit() {
        for threads in [1, 2, 4] {
            let computed = AtomicU64::new(0);
            let space = Threads::new(threads);
            let rows = |block: Range<usize>, (): &mut (), columns: &mut Vec<u32>, lengths: &mut Vec<u32>| {
                computed.fetch_add(block.len() as u64, Ordering::Relaxed);
                columns.extend(block.clone().map(|i| i as u32));
                lengths.extend(block.map(|_| 1));
            };
            let found = by_blocks_up_to((100, 8), &space, [10_000, 10_000], &|| (), &rows);
            assert_eq!(found, Err(too_many(10_000, 100)));
            assert!(computed.into_inner() < 104 + 8 * threads as u64);
        }
    }

    /// As many steps as there are numbers end where nothing more is reached.
    #[test]
    fn steps_that_find_nothing_are_not_taken() {
        let space = Threads::new(1);
        let large = large_entries(&space, &chain(100), 0.0);
        let all = powers(&space, &large, usize::MAX, Rows::all(100), most(u64::MAX)).unwrap();
        assert_eq!(all.nnz(), 100 * 101 / 2);
    }
}
