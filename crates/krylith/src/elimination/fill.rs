//! Patterns with levels of fill: where IC(k) and ILU(k) have their entries, exactly, before any number is computed.
//!
//! Entry (i, j) has level 0 if A has it; eliminating through h gives it level lev(i, h) + lev(h, j) + 1 if that is smaller;
//! entries of level k at most are kept. Equivalently: i and j are joined by a path of at most k + 1 edges whose inner vertices
//! are smaller than both (Hysom & Pothen 2001, doi:10.1137/S1064827500376193). So row i of U comes from a breadth-first search
//! through smaller vertices, column j of L from the same search in the graph of Aᵀ, each by itself: rows are searched in
//! parallel, and no levels are stored.
//!
//! Entries are counted as they are found. Once the factor they make would exceed the limit, no more are stored, only counted, so
//! that the error reports what it would take. Before that a few rows are searched; if they predict more than four times the limit,
//! their estimate is the answer, since counting itself may take long for a large k.

use crate::error::SetupError;
use crate::matrix::Pattern;
use crate::memory::large_pages;
use crate::parallel;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// Rows that the estimate looks at.
const SAMPLE: usize = 64;

/// Bytes of strict triangles by rows with this many entries, and the diagonal.
pub(crate) fn bytes_by_rows(rows: usize, entries: u64) -> u64 {
    (entries.saturating_mul(12)).saturating_add(24 * rows as u64 + 16)
}

/// The pattern of A with its diagonal filled.
pub(super) fn with_diagonal(a: &Pattern) -> Pattern {
    assemble(a.nrows(), |i| split(a, i))
}

/// The columns of a row before and after the diagonal.
pub(super) fn split(a: &Pattern, i: usize) -> [&[u32]; 2] {
    let columns = a.row(i);
    let before = columns.partition_point(|&j| (j as usize) < i);
    let after = before + usize::from(columns.get(before) == Some(&(i as u32)));
    [&columns[..before], &columns[after..]]
}

/// The entries below (or above) the diagonal.
pub fn strict(pattern: &Pattern, below: bool) -> Pattern {
    let n = pattern.nrows();
    let piece = |i: usize| split(pattern, i)[usize::from(!below)];
    let mut row_ptr = vec![0usize; n + 1];
    for i in 0..n {
        row_ptr[i + 1] = row_ptr[i] + piece(i).len();
    }
    let mut col_idx = Vec::with_capacity(row_ptr[n]);
    for i in 0..n {
        col_idx.extend_from_slice(piece(i));
    }
    Pattern::trusted(n, n, row_ptr, col_idx)
}

/// Lower triangle, full diagonal, upper triangle.
fn assemble<'a>(n: usize, row: impl Fn(usize) -> [&'a [u32]; 2]) -> Pattern {
    let mut row_ptr = vec![0usize; n + 1];
    for i in 0..n {
        let [below, above] = row(i);
        row_ptr[i + 1] = row_ptr[i] + below.len() + 1 + above.len();
    }
    let mut col_idx = Vec::with_capacity(row_ptr[n]);
    for i in 0..n {
        let [below, above] = row(i);
        col_idx.extend_from_slice(below);
        col_idx.push(i as u32);
        col_idx.extend_from_slice(above);
    }
    Pattern::trusted(n, n, row_ptr, col_idx)
}

/// As many entries above the diagonal as below it, and for each of them one across.
pub(crate) fn is_symmetric(a: &Pattern) -> bool {
    let n = a.nrows();
    let excess = |i: usize| {
        let [below, above] = split(a, i);
        above.len() as isize - below.len() as isize
    };
    let of_piece = |rows: Range<usize>| rows.map(excess).sum::<isize>();
    let has_partners = |i: usize| split(a, i)[1].iter().all(|&j| a.find(j as usize, i).is_some());
    parallel::fold(n, of_piece, |a, b| a + b).unwrap_or(0) == 0 && parallel::all(n, has_partners)
}

/// An error unless the pattern is square and symmetric, as incomplete Cholesky needs it.
pub fn require_symmetric(a: &Pattern) -> Result<(), SetupError> {
    a.require_square()?;
    if is_symmetric(a) { Ok(()) } else { Err(SetupError::PatternNotSymmetric) }
}

/// A square pattern with all entries of level `k` at most and a full diagonal; `symmetric` says that it equals its transpose.
/// `limit` bounds the bytes of the factor.
pub(super) fn levels(a: &Pattern, k: usize, symmetric: bool, limit: u64) -> Result<Pattern, SetupError> {
    let n = a.nrows();
    if k == 0 {
        within(bytes_by_rows(n, a.nnz() as u64), limit)?;
        return Ok(with_diagonal(a));
    }
    let sides = if symmetric { 2 } else { 1 };
    let room = Room { entries: AtomicU64::new(0), sides, rows: n, limit };
    let transposed = (!symmetric).then(|| a.transpose());
    let estimate = sample(a, k, 2, &room);
    if estimate > limit.saturating_mul(4) {
        return Err(SetupError::MemoryLimit { predicted: estimate, limit });
    }
    let upper = above(a, k, &room);
    let lower = transposed.map(|t| above(&t, k, &room));
    within(room.bytes(), limit)?;
    Ok(join(n, &upper, lower.as_deref().unwrap_or(&upper)))
}

/// Rows of U as `upper` has them, columns of L as `lower` has them, and the diagonal.
fn join(n: usize, upper: &[FilledRows], lower: &[FilledRows]) -> Pattern {
    let mut below = vec![0u32; n];
    lower.iter().flat_map(|found| &found.columns).for_each(|&i| below[i as usize] += 1);
    let mut row_ptr = Vec::with_capacity(n + 1);
    row_ptr.push(0);
    for found in upper {
        let mut first = 0;
        for &end in &found.ends {
            let i = row_ptr.len() - 1;
            row_ptr.push(row_ptr[i] + below[i] as usize + 1 + (end - first));
            first = end;
        }
    }
    let mut col_idx: Vec<u32> = large_pages::zeros(row_ptr[n]);
    // From the diagonal on, the rows of each piece by themselves.
    let (mut rest, mut pieces, mut row) = (col_idx.as_mut_slice(), Vec::new(), 0);
    for found in upper {
        let end = row + found.ends.len();
        let (own, others) = rest.split_at_mut(row_ptr[end] - row_ptr[row]);
        pieces.push((row, found, own));
        (rest, row) = (others, end);
    }
    parallel::for_each_of(pieces, |(row, found, own)| {
        let mut first = 0;
        for (i, &end) in (row..).zip(&found.ends) {
            let diagonal = row_ptr[i] - row_ptr[row] + below[i] as usize;
            own[diagonal] = i as u32;
            own[diagonal + 1..][..end - first].copy_from_slice(&found.columns[first..end]);
            first = end;
        }
    });
    // Column after column, so that rows of L come out in order.
    let mut next = row_ptr.clone();
    let mut column = 0u32;
    for found in lower {
        let mut first = 0;
        for &end in &found.ends {
            for &i in &found.columns[first..end] {
                col_idx[next[i as usize]] = column;
                next[i as usize] += 1;
            }
            first = end;
            column = column.wrapping_add(1);
        }
    }
    Pattern::trusted(n, n, row_ptr, col_idx)
}

fn within(predicted: u64, limit: u64) -> Result<(), SetupError> {
    if predicted > limit { Err(SetupError::MemoryLimit { predicted, limit }) } else { Ok(()) }
}

/// How many entries there are so far, and what they may become.
struct Room {
    entries: AtomicU64,
    /// How often each entry found is stored.
    sides: u64,
    rows: usize,
    limit: u64,
}

impl Room {
    fn bytes(&self) -> u64 {
        bytes_by_rows(self.rows, self.entries.load(Ordering::Relaxed).saturating_mul(self.sides))
    }

    /// Counts entries; whether they may be stored.
    fn take(&self, entries: usize) -> bool {
        self.entries.fetch_add(entries as u64, Ordering::Relaxed);
        self.bytes() <= self.limit
    }
}

/// Bytes that a few rows foretell, the longest of them left out, if each entry above the diagonal is one of `sides`.
fn sample(a: &Pattern, k: usize, sides: u64, room: &Room) -> u64 {
    let n = a.nrows();
    let mut search = Search::new(a);
    let mut counts: Vec<u64> = Vec::with_capacity(SAMPLE);
    let mut bytes = 0;
    // Rows all over the matrix from the beginning on: multiples of an odd number near the golden section.
    let step = ((n as f64 * 0.618) as usize) | 1;
    for s in 0..SAMPLE.min(n) {
        counts.push(search.row(s.wrapping_mul(step) % n, k).len() as u64);
        counts.sort_unstable();
        // A few very long rows tell nothing about the others.
        let usual = &counts[..counts.len() - counts.len() / 8];
        let found: u64 = usual.iter().sum();
        let entries = u128::from(found) * u128::from(sides) * n as u128 / usual.len() as u128;
        bytes = bytes_by_rows(n, u64::try_from(entries).unwrap_or(u64::MAX));
        if s >= 8 && bytes > room.limit.saturating_mul(64) {
            break;
        }
    }
    bytes
}

/// The columns of consecutive rows, and where each row ends.
struct FilledRows {
    ends: Vec<usize>,
    columns: Vec<u32>,
}

/// The strict upper triangle in pieces; empty rows once there is no more room.
fn above(a: &Pattern, k: usize, room: &Room) -> Vec<FilledRows> {
    let n = a.nrows();
    let rows_a_task = n.div_ceil(8 * rayon::current_num_threads()).max(1 << 10);
    parallel::map(n.div_ceil(rows_a_task), |task| {
        let mut search = Search::new(a);
        let (mut ends, mut columns) = (Vec::with_capacity(rows_a_task), Vec::new());
        for i in task * rows_a_task..((task + 1) * rows_a_task).min(n) {
            let row = search.row(i, k);
            if room.take(row.len()) {
                row.sort_unstable();
                columns.extend_from_slice(row);
            }
            ends.push(columns.len());
        }
        FilledRows { ends, columns }
    })
}

/// Breadth-first searches in one graph.
struct Search<'a> {
    graph: &'a Pattern,
    /// The row that saw a vertex last.
    seen: Vec<u32>,
    frontier: Vec<u32>,
    next: Vec<u32>,
    found: Vec<u32>,
}

impl<'a> Search<'a> {
    fn new(graph: &'a Pattern) -> Self {
        let seen = vec![u32::MAX; graph.nrows()];
        Search { graph, seen, frontier: Vec::new(), next: Vec::new(), found: Vec::new() }
    }

    /// The vertices above i at the end of a path of at most k + 1 edges through vertices below i, in no order.
    fn row(&mut self, i: usize, k: usize) -> &mut Vec<u32> {
        let me = i as u32;
        self.found.clear();
        self.frontier.clear();
        self.frontier.push(me);
        self.seen[i] = me;
        for edges in 0..=k {
            for &h in &self.frontier {
                for &t in self.graph.row(h as usize) {
                    if self.seen[t as usize] == me {
                        continue;
                    }
                    self.seen[t as usize] = me;
                    if t > me {
                        self.found.push(t);
                    } else if edges < k {
                        self.next.push(t);
                    }
                }
            }
            self.frontier.clear();
            std::mem::swap(&mut self.frontier, &mut self.next);
            if self.frontier.is_empty() {
                break;
            }
        }
        &mut self.found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gallery::Problem;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// Levels by elimination, as defined.
    fn by_elimination(a: &Pattern, k: usize) -> Pattern {
        let n = a.nrows();
        let mut rows: Vec<BTreeMap<u32, usize>> =
            (0..n).map(|i| a.row(i).iter().map(|&j| (j, 0)).chain([(i as u32, 0)]).collect()).collect();
        for i in 0..n {
            let mut h = 0;
            while let Some((&next, &level)) = rows[i].range(h..i as u32).next() {
                h = next + 1;
                if level > k {
                    continue;
                }
                let above: Vec<(u32, usize)> =
                    rows[next as usize].range(next + 1..).map(|(&j, &l)| (j, l)).collect();
                for (j, l) in above.into_iter().filter(|&(_, l)| l <= k) {
                    let level = level + l + 1;
                    let entry = rows[i].entry(j).or_insert(level);
                    *entry = (*entry).min(level);
                }
            }
            rows[i].retain(|_, &mut level| level <= k);
        }
        let mut row_ptr = vec![0];
        let mut col_idx = Vec::new();
        for row in rows {
            col_idx.extend(row.keys());
            row_ptr.push(col_idx.len());
        }
        Pattern::new(n, n, row_ptr, col_idx).unwrap()
    }

    fn random(n: usize, picks: &[(usize, usize)]) -> Pattern {
        let triplets = picks.iter().map(|&(i, j)| (i % n, j % n));
        let mut rows = vec![std::collections::BTreeSet::new(); n];
        triplets.for_each(|(i, j)| {
            rows[i].insert(j as u32);
        });
        let mut row_ptr = vec![0];
        let mut col_idx = Vec::new();
        for row in rows {
            col_idx.extend(row);
            row_ptr.push(col_idx.len());
        }
        Pattern::new(n, n, row_ptr, col_idx).unwrap()
    }

    proptest! {
        #[test]
        fn paths_are_levels(
            n in 1usize..40,
            picks in proptest::collection::vec((0usize..40, 0usize..40), 0..160),
            k in 0usize..6,
        ) {
            let a = random(n, &picks);
            prop_assert_eq!(levels(&a, k, false, u64::MAX).unwrap(), by_elimination(&a, k));
            let lower = strict(&a, true);
            let upper = lower.transpose();
            let s = assemble(n, |i| [lower.row(i), upper.row(i)]);
            prop_assert_eq!(require_symmetric(&a).is_ok(), is_symmetric(&a));
            prop_assert!(is_symmetric(&s) && crate::matrix::require_diagonal(&s).is_ok());
            prop_assert_eq!(is_symmetric(&a), a.transpose() == a);
            prop_assert_eq!(levels(&s, k, true, u64::MAX).unwrap(), by_elimination(&s, k));
        }
    }

    /// The five-point star with level 1 has one more diagonal on each side: (i + 1, j − 1).
    #[test]
    fn a_grid_gets_one_more_diagonal() {
        let a = "poisson2d:5".parse::<Problem>().unwrap().generate().unwrap();
        let s = levels(a.pattern(), 1, true, u64::MAX).unwrap();
        assert_eq!(s.row(12), [7, 8, 11, 12, 13, 16, 17]);
    }

    #[test]
    fn too_much_is_foretold() {
        let a = "poisson3d:12".parse::<Problem>().unwrap().generate().unwrap();
        let exact = levels(a.pattern(), 3, true, u64::MAX).unwrap();
        let bytes = bytes_by_rows(a.nrows(), (exact.nnz() - a.nrows()) as u64);
        let error = levels(a.pattern(), 3, true, bytes - 1).unwrap_err();
        assert_eq!(error, SetupError::MemoryLimit { predicted: bytes, limit: bytes - 1 });
        assert_eq!(levels(a.pattern(), 3, true, bytes).unwrap(), exact);
        // Far beyond the limit an estimate will do.
        let SetupError::MemoryLimit { predicted, .. } = levels(a.pattern(), 3, true, 1000).unwrap_err()
        else {
            panic!("another error");
        };
        assert!((predicted as f64 / bytes as f64 - 1.0).abs() < 0.3, "{predicted} for {bytes}");
    }
}
