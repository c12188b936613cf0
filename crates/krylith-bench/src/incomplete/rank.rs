//! The structural rank: the most entries other than zero of which no two share a row or a column.
//!
//! A matching between rows and columns grows by shortest augmenting paths, many at once: a breadth-first search from the free
//! rows lays rows in layers up to the first free column, and depth-first searches along the layers take disjoint paths.
//! O(nnz √n). SciPy's `structural_rank` gives the same number, but does not end on some matrices of a few thousand rows.
//! Reference: Hopcroft & Karp 1973, doi:10.1137/0202019.

use krylith::Csr;
use std::collections::VecDeque;

const FREE: u32 = u32::MAX;
const UNREACHED: u32 = u32::MAX;

/// Entries that are zero do not count.
pub fn structural_rank(a: &Csr<f64>) -> usize {
    let mut matching = Matching {
        a,
        column_of: vec![FREE; a.nrows()],
        row_of: vec![FREE; a.ncols()],
        layer: vec![UNREACHED; a.nrows()],
        next: vec![0; a.nrows()],
    };
    let mut rank = 0;
    while matching.layers() {
        matching.next.fill(0);
        rank += (0..a.nrows()).filter(|&row| matching.is_free(row) && matching.augment(row)).count();
    }
    rank
}

struct Matching<'a> {
    a: &'a Csr<f64>,
    column_of: Vec<u32>,
    row_of: Vec<u32>,
    /// Distance of a row from the free rows, in rows.
    layer: Vec<u32>,
    /// The entry of a row to try next.
    next: Vec<usize>,
}

impl Matching<'_> {
    fn is_free(&self, row: usize) -> bool {
        self.column_of[row] == FREE
    }

    /// Lays rows in layers; whether a free column is reached.
    fn layers(&mut self) -> bool {
        let mut queue = VecDeque::new();
        for row in 0..self.column_of.len() {
            let free = self.is_free(row);
            self.layer[row] = if free { 0 } else { UNREACHED };
            if free {
                queue.push_back(row);
            }
        }
        let mut last = UNREACHED;
        while let Some(row) = queue.pop_front() {
            if self.layer[row] >= last {
                break;
            }
            let (columns, values) = self.a.row(row);
            for (&column, _) in columns.iter().zip(values).filter(|(_, v)| **v != 0.0) {
                match self.row_of[column as usize] {
                    FREE => last = self.layer[row] + 1,
                    other if self.layer[other as usize] == UNREACHED => {
                        self.layer[other as usize] = self.layer[row] + 1;
                        queue.push_back(other as usize);
                    }
                    _ => {}
                }
            }
        }
        last != UNREACHED
    }

    /// Finds a path from a free row along the layers to a free column, and swaps what is matched on it. The path is a stack,
    /// because it may be as long as the matrix.
    fn augment(&mut self, start: usize) -> bool {
        let mut path = vec![start];
        while let Some(&row) = path.last() {
            let (columns, values) = self.a.row(row);
            let Some(&column) = columns.get(self.next[row]) else {
                // Nothing more from here; the row before goes on with its next entry.
                self.layer[row] = UNREACHED;
                path.pop();
                continue;
            };
            let value = values[self.next[row]];
            self.next[row] += 1;
            if value == 0.0 {
                continue;
            }
            match self.row_of[column as usize] {
                FREE => {
                    self.swap(&path);
                    return true;
                }
                other if self.layer[other as usize] == self.layer[row].saturating_add(1) => {
                    path.push(other as usize);
                }
                _ => {}
            }
        }
        false
    }

    /// Gives each row of the path the column that it tried last, which belonged to the row after it.
    fn swap(&mut self, path: &[usize]) {
        for &row in path {
            let column = self.a.row(row).0[self.next[row] - 1];
            self.column_of[row] = column;
            self.row_of[column as usize] = row as u32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rank by trying every choice of a column, row by row.
    fn by_trying(a: &Csr<f64>, row: usize, taken: u32) -> usize {
        if row == a.nrows() {
            return 0;
        }
        let (columns, values) = a.row(row);
        let open = columns.iter().zip(values).filter(|(j, v)| **v != 0.0 && taken & (1 << **j) == 0);
        let with = open.map(|(j, _)| 1 + by_trying(a, row + 1, taken | (1 << j))).max().unwrap_or(0);
        with.max(by_trying(a, row + 1, taken))
    }

    #[test]
    fn zeros_do_not_count() {
        let full = Csr::new(2, 2, vec![0, 2, 3], vec![0, 1, 0], vec![1.0, 2.0, 3.0]).unwrap();
        assert_eq!(structural_rank(&full), 2);
        let zero = Csr::new(2, 2, vec![0, 2, 3], vec![0, 1, 0], vec![1.0, 0.0, 3.0]).unwrap();
        assert_eq!(structural_rank(&zero), 1);
        assert_eq!(structural_rank(&Csr::new(0, 0, vec![0], vec![], vec![]).unwrap()), 0);
    }

    #[test]
    fn small_patterns_by_trying() {
        let mut seed: u64 = 1;
        let mut random = |most: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % most
        };
        let mut deficient = 0;
        for _ in 0..2_000 {
            let n = 1 + random(7) as usize;
            let entries = random(2 * n as u64 + 1) as usize;
            let mut rows = vec![vec![]; n];
            for _ in 0..entries {
                rows[random(n as u64) as usize].push(random(n as u64) as u32);
            }
            let (mut row_ptr, mut col_idx) = (vec![0], Vec::new());
            for row in &mut rows {
                row.sort_unstable();
                row.dedup();
                col_idx.extend_from_slice(row);
                row_ptr.push(col_idx.len());
            }
            let values = col_idx.iter().map(|_| random(4) as f64).collect();
            let a = Csr::new(n, n, row_ptr, col_idx, values).unwrap();
            let rank = structural_rank(&a);
            assert_eq!(rank, by_trying(&a, 0, 0), "{a:?}");
            deficient += usize::from(rank < n);
        }
        assert!((100..1_900).contains(&deficient), "both kinds are tried: {deficient}");
    }

    #[test]
    fn a_path_as_long_as_the_matrix() {
        // Row i has columns i and i + 1, the last row column 0 only: everyone must move.
        let n = 100_000u32;
        let row_ptr = (0..=n).map(|i| if i < n { 2 * i as usize } else { 2 * n as usize - 1 }).collect();
        let mut col_idx: Vec<u32> = (0..n - 1).flat_map(|i| [i, i + 1]).collect();
        col_idx.push(0);
        let values = vec![1.0; col_idx.len()];
        let a = Csr::new(n as usize, n as usize, row_ptr, col_idx, values).unwrap();
        assert_eq!(structural_rank(&a), n as usize);
    }
}
