//! The rows of G on a pattern: gather A[P,P], solve, scatter.
//!
//! Rows are sorted by the size of their systems, so that eight of one size make a batch ([`batch`](super::batch)); the last batch of a size repeats its
//! last row. Larger systems than [`LARGEST`] are one at a time, by the blocked kernels of complete factors. Members of the team take some batches at
//! a time, the largest systems first, so that none waits long for another.
#![allow(unsafe_code)]

use super::batch::{ROUNDING, SYSTEMS, diagonal_alone, last_rows_of_inverses, triangle};
use crate::disjoint::DisjointSlice;
use crate::matrix::{Csr, Pattern};
use crate::precond::direct::{Copies, Pivot, eliminate_cholesky};
use crate::space::Threads;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Rows of a system that is solved in a batch, at most: the triangles of eight fit into a cache of 1 MB.
pub const LARGEST: usize = 128;

/// Rows of a system at most, however dense a row of A or a power is: the triangles of eight are 34 MB, one system 0.4 billion operations.
pub const MOST_INDICES: usize = 1024;

/// An index is not in the pattern of a row.
pub(super) const ABSENT: u32 = u32::MAX;

/// Batches that a member takes at a time.
const BATCHES_AT_A_TIME: usize = 16;

/// Rows in the order in which they are solved.
#[derive(Debug, Clone)]
pub struct Batches {
    /// Rows by the sizes of their systems, the largest first, and by number among equals.
    rows: Vec<u32>,
    /// Where batches begin in `rows`, and the end.
    begin: Vec<u32>,
}

impl Batches {
    /// Of some rows of a pattern.
    pub fn of(pattern: &Pattern, is_among: impl Fn(usize) -> bool) -> Self {
        let size = |i: usize| pattern.row_range(i).len();
        let all = || (0..pattern.nrows()).filter(|&i| is_among(i));
        let largest = all().map(size).max().unwrap_or(0);
        let mut counts = vec![0u32; largest + 1];
        all().for_each(|i| counts[size(i)] += 1);
        let (mut next, mut begin, mut at) = (vec![0u32; largest + 1], vec![0], 0);
        for m in (0..=largest).rev() {
            next[m] = at;
            let end = at + counts[m];
            let most = if m <= LARGEST { SYSTEMS as u32 } else { 1 };
            while at < end {
                at = end.min(at + most);
                begin.push(at);
            }
        }
        let mut rows = vec![0; at as usize];
        for i in all() {
            let next = &mut next[size(i)];
            rows[*next as usize] = i as u32;
            *next += 1;
        }
        Batches { rows, begin }
    }

    /// Number of batches.
    pub fn count(&self) -> usize {
        self.begin.len() - 1
    }

    /// The rows of a batch, whose systems have one size.
    pub fn rows(&self, batch: usize) -> &[u32] {
        &self.rows[self.begin[batch] as usize..self.begin[batch + 1] as usize]
    }
}

/// What a member writes while it solves systems.
pub(crate) struct Buffers {
    /// Where an index is in the pattern of a row.
    places: Vec<u32>,
    l: Vec<[f64; SYSTEMS]>,
    g: Vec<[f64; SYSTEMS]>,
    panel: Vec<f64>,
    /// That of the matrix, while L is in its place.
    diagonal: Vec<f64>,
    copies: Copies,
}

impl Buffers {
    /// For a matrix of n rows.
    pub(crate) fn new(n: usize) -> Self {
        Buffers {
            places: vec![ABSENT; n],
            l: Vec::new(),
            g: Vec::new(),
            panel: Vec::new(),
            diagonal: Vec::new(),
            copies: Copies::default(),
        }
    }
}

/// G on the rows of a pattern that are in batches, each with its diagonal at its end: `values` in the order of the pattern.
pub fn solve_rows(
    space: &Threads<f64>,
    a: &Csr<f64>,
    pattern: &Pattern,
    batches: &Batches,
    values: &mut [f64],
) {
    assert_eq!(values.len(), pattern.nnz());
    let values = DisjointSlice::new(values);
    for_each_batch(space, batches, &|| Buffers::new(pattern.nrows()), &|rows, buffers| {
        // SAFETY: every row is in one batch, and every batch is taken once.
        let own = |i: u32| unsafe { values.get(pattern.row_range(i as usize)) };
        let indices = pattern.row(rows[0] as usize);
        if indices.len() > LARGEST {
            return solve_large(a, indices, buffers, own(rows[0]));
        }
        let of = |k: usize| pattern.row(rows[k] as usize);
        let g = solve_batch(a, rows.len(), of, buffers);
        for (lane, &row) in rows.iter().enumerate() {
            own(row).iter_mut().zip(g).for_each(|(value, g)| *value = g[lane]);
        }
    });
}

/// Calls a function with the rows of every batch, on all members of the team.
pub(crate) fn for_each_batch<M>(
    space: &Threads<f64>,
    batches: &Batches,
    buffers: &(dyn Fn() -> M + Sync),
    solve: &(dyn Fn(&[u32], &mut M) + Sync),
) {
    let next = AtomicUsize::new(0);
    space.team().run(|_| {
        let mut buffers = buffers();
        loop {
            let first = next.fetch_add(BATCHES_AT_A_TIME, Ordering::Relaxed);
            if first >= batches.count() {
                break;
            }
            for batch in first..(first + BATCHES_AT_A_TIME).min(batches.count()) {
                solve(batches.rows(batch), &mut buffers);
            }
        }
    });
}

/// Up to eight rows of one size, by their indices: the numbers of row k are those of lane k.
pub(crate) fn solve_batch<'b, 'p>(
    a: &Csr<f64>,
    count: usize,
    indices: impl Fn(usize) -> &'p [u32],
    buffers: &'b mut Buffers,
) -> &'b [[f64; SYSTEMS]] {
    let Buffers { places, l, g, .. } = buffers;
    let m = indices(0).len();
    l.clear();
    l.resize(triangle(m), [0.0; SYSTEMS]);
    g.resize(m.max(g.len()), [0.0; SYSTEMS]);
    for lane in 0..count {
        gather::<false>(a, indices(lane), places, |i, j, value| l[triangle(i) + j][lane] = value);
    }
    // Lanes that are left repeat the last system, so that no pivot is zero.
    for numbers in l.iter_mut().filter(|_| count < SYSTEMS) {
        let last = numbers[count - 1];
        numbers[count..].fill(last);
    }
    last_rows_of_inverses::<f64>(m, l, g);
    &g[..m]
}

/// One row by blocked kernels.
fn solve_large(a: &Csr<f64>, indices: &[u32], buffers: &mut Buffers, g: &mut [f64]) {
    let Buffers { places, panel, diagonal, copies, .. } = buffers;
    let m = indices.len();
    panel.clear();
    panel.resize(m * m, 0.0);
    gather::<false>(a, indices, places, |i, j, value| panel[i + j * m] = value);
    diagonal.clear();
    diagonal.extend((0..m).map(|j| panel[j * (m + 1)]));
    last_row_of_inverse(panel, diagonal, g, copies);
}

/// g of one system by blocked kernels, from the lower triangle of its matrix by columns, which is overwritten by L. Indices are left out as in a batch.
fn last_row_of_inverse(panel: &mut [f64], diagonal: &[f64], g: &mut [f64], copies: &mut Copies) {
    let m = g.len();
    let judge = |j: usize, pivot: f64| {
        let is_usable = pivot > ROUNDING * diagonal[j].abs() && pivot.is_finite();
        if is_usable { Pivot::Taken } else { Pivot::LeftOut }
    };
    // No pivot is refused.
    let _ = eliminate_cholesky(panel, m, m, copies, judge);
    for j in (0..m).rev() {
        let column = &panel[j * m..(j + 1) * m];
        let right = if j == m - 1 { 1.0 } else { 0.0 };
        let sum = column[j + 1..].iter().zip(&g[j + 1..]).fold(right, |sum, (l, g)| sum - l * g);
        g[j] = if column[j] > 0.0 { sum / column[j] } else { 0.0 };
    }
    if g[m - 1] == 0.0 || !g.iter().all(|g| g.is_finite()) {
        g.fill(0.0);
        g[m - 1] = diagonal_alone(diagonal[m - 1]);
    }
}

/// The lower triangle of A[P,P] for sorted indices P, or all of it. `places` are all absent before and after.
#[inline(always)]
pub(super) fn gather<const WHOLE: bool>(
    a: &Csr<f64>,
    indices: &[u32],
    places: &mut [u32],
    mut put: impl FnMut(usize, usize, f64),
) {
    indices.iter().zip(0..).for_each(|(&index, place)| places[index as usize] = place);
    for (i, &index) in indices.iter().enumerate() {
        let (columns, values) = a.row(index as usize);
        for (&column, &value) in columns.iter().zip(values) {
            if !WHOLE && column > index {
                break;
            }
            let place = places[column as usize];
            if place != ABSENT {
                put(i, place as usize, value);
            }
        }
    }
    indices.iter().for_each(|&index| places[index as usize] = ABSENT);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gallery::random_vector;

    /// The rows of a dense matrix of `m` rows: an identity with noise, and an entry of its diagonal that may be negative.
    fn dense(m: usize, negative: Option<usize>) -> Csr<f64> {
        let noise = random_vector(m * m);
        let value = |i: usize, j: usize| match i == j {
            true if negative == Some(i) => -3.0,
            true => 2.0,
            false => noise[i.max(j) * m + i.min(j)] / m as f64,
        };
        Csr::from_entries(m, m, (0..m * m).map(|k| (k / m, k % m, value(k / m, k % m)))).unwrap()
    }

    #[test]
    fn large_systems_leave_out_the_indices_that_batches_leave_out() {
        let m = LARGEST + 37;
        let indices: Vec<u32> = (0..m as u32).collect();
        for negative in [None, Some(0), Some(70), Some(m - 1)] {
            let a = dense(m, negative);
            let (mut buffers, mut large) = (Buffers::new(m), vec![0.0; m]);
            solve_large(&a, &indices, &mut buffers, &mut large);
            let batch = solve_batch(&a, 1, |_| &indices, &mut buffers);
            let distance = large.iter().zip(batch).map(|(x, y)| (x - y[0]).abs()).fold(0.0, f64::max);
            assert!(distance < 1e-13, "{negative:?}: {distance:e}");
            let left_out = large.iter().position(|&g| g == 0.0);
            let expected = match negative {
                Some(i) if i == m - 1 => Some(0),
                other => other,
            };
            assert_eq!(left_out, expected);
        }
    }

    #[test]
    fn a_large_system_out_of_range_has_the_diagonal_alone() {
        let m = LARGEST + 1;
        let indices: Vec<u32> = (0..m as u32).collect();
        let mut a = dense(m, None);
        a.values_mut().iter_mut().for_each(|v| *v *= 1e300);
        a.values_mut()[m * m - 1] = 4e-300;
        let mut g = vec![0.0; m];
        solve_large(&a, &indices, &mut Buffers::new(m), &mut g);
        assert_eq!((g[0], g[m - 1]), (0.0, 0.5e150));
    }
}
