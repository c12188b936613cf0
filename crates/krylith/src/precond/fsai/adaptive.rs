//! A pattern that grows where the Kaporin number falls the most.
//!
//! Row i of G on the pattern P minimises ψ(g̃) = g̃ᵀA g̃ with g̃ᵢ = 1; the least is 1 / gᵢᵢ², and the product of all of them is what the Kaporin number of
//! G A Gᵀ is a root of. A new entry k < i that moves alone decreases ψ by (A g̃)ₖ² / aₖₖ. Each step adds the entries of a row for which that is
//! the most, and solves for all entries again. A row is left as it is once a step has decreased its ψ by less than a tolerance times aᵢᵢ.
//!
//! Rows depend on A alone, so some hundred rows take all of their steps together, and what they write stays in a cache.
//!
//! Reference: Janna & Ferronato 2011, doi:10.1137/100810368. Deviation: they add the largest entries of the gradient 2 A g̃; divided by the
//! roots of the diagonal, the choice does not depend on the scales of rows.

use super::batch::SYSTEMS;
use super::pattern::by_blocks_up_to;
use super::rows::{Buffers, MOST_INDICES, solve_batch};
use crate::error::SetupError;
use crate::matrix::{Csr, Pattern};
use crate::space::Threads;
use std::ops::Range;

/// How a pattern grows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Growth {
    /// Steps at most.
    pub steps: usize,
    /// Entries that a step adds to a row at most.
    pub entries: usize,
    /// A row that a step has improved by less than this is left as it is.
    pub tolerance: f64,
}

/// The pattern after all steps, each row in order and with its diagonal at its end. An error if it has more than `most` entries.
pub(crate) fn grow(
    space: &Threads<f64>,
    a: &Csr<f64>,
    growth: Growth,
    most: u64,
) -> Result<Pattern, SetupError> {
    let diagonal: Vec<f64> = (0..a.nrows()).map(|i| a.get(i, i).abs()).collect();
    let inverses: Vec<f64> = diagonal.iter().map(|d| 1.0 / d).collect();
    let marks = || Marks::new(a.nrows());
    by_blocks_up_to(most, space, a.nrows(), &marks, &|rows, marks: &mut Marks, columns, lengths| {
        marks.grow(a, rows, (&diagonal, &inverses), growth);
        for row in &marks.rows {
            columns.extend(&row.indices);
            lengths.push(row.indices.len() as u32);
        }
    })
}

/// A row that grows.
#[derive(Default)]
struct Row {
    /// In order, the diagonal at the end.
    indices: Vec<u32>,
    g: Vec<f64>,
    psi: f64,
    /// Nothing is added any more.
    is_done: bool,
}

/// What a member writes while rows grow.
struct Marks {
    rows: Vec<Row>,
    buffers: Buffers,
    /// Sizes of systems, and their rows.
    order: Vec<(usize, usize)>,
    /// A g, and the search in which an index was reached last.
    products: Vec<(f64, u64)>,
    searches: u64,
    reached: Vec<u32>,
    /// The largest decreases of ψ and their indices, the largest first.
    chosen: Vec<(f64, u32)>,
}

impl Marks {
    fn new(n: usize) -> Self {
        Marks {
            rows: Vec::new(),
            buffers: Buffers::new(n),
            order: Vec::new(),
            products: vec![(0.0, 0); n],
            searches: 0,
            reached: Vec::new(),
            chosen: Vec::new(),
        }
    }

    /// All steps of some rows.
    fn grow(
        &mut self,
        a: &Csr<f64>,
        rows: Range<usize>,
        (diagonal, inverses): (&[f64], &[f64]),
        growth: Growth,
    ) {
        self.rows.resize_with(rows.len(), Row::default);
        for (row, i) in self.rows.iter_mut().zip(rows.clone()) {
            row.indices.clear();
            row.indices.push(i as u32);
            row.g.clear();
            row.g.push(1.0);
            (row.psi, row.is_done) = (diagonal[i], false);
        }
        for step in 0..growth.steps {
            if step > 0 {
                self.solve(a);
                for (row, i) in self.rows.iter_mut().zip(rows.clone()).filter(|(row, _)| !row.is_done) {
                    let last = row.g[row.g.len() - 1];
                    let least = 1.0 / (last * last);
                    row.is_done = least.is_nan() || row.psi - least <= growth.tolerance * diagonal[i];
                    row.psi = least;
                }
            }
            for (k, i) in rows.clone().enumerate() {
                if !self.rows[k].is_done {
                    self.find_largest(a, (i, k), inverses, growth.entries);
                    let Row { indices, is_done, .. } = &mut self.rows[k];
                    self.chosen.truncate(MOST_INDICES - indices.len());
                    *is_done = self.chosen.is_empty();
                    indices.extend(self.chosen.iter().map(|&(_, index)| index));
                    indices.sort_unstable();
                }
            }
        }
    }

    /// g of all rows that are not done.
    fn solve(&mut self, a: &Csr<f64>) {
        let Marks { rows, buffers, order, .. } = self;
        order.clear();
        let growing = (0..).zip(&*rows).filter(|(_, row)| !row.is_done);
        order.extend(growing.map(|(k, row)| (row.indices.len(), k)));
        order.sort_unstable();
        for same in order.chunk_by(|a, b| a.0 == b.0) {
            for batch in same.chunks(SYSTEMS) {
                let g = solve_batch(a, batch.len(), |lane| &rows[batch[lane].1].indices[..], buffers);
                for (lane, &(_, k)) in batch.iter().enumerate() {
                    rows[k].g.clear();
                    rows[k].g.extend(g.iter().map(|g| g[lane]));
                }
            }
        }
    }

    /// The `most` entries of row i, number k of the rows here, for which (A g)ₖ² / aₖₖ is the largest, those that it has apart.
    fn find_largest(&mut self, a: &Csr<f64>, (i, k): (usize, usize), inverses: &[f64], most: usize) {
        let Marks { rows, products, searches, reached, chosen, .. } = self;
        let Row { indices: own, g, .. } = &rows[k];
        reached.clear();
        *searches += 1;
        for (&j, &g) in own.iter().zip(g) {
            let (columns, values) = a.row(j as usize);
            for (&k, &v) in columns.iter().zip(values) {
                if k as usize >= i {
                    break;
                }
                let (product, search) = &mut products[k as usize];
                if *search == *searches {
                    *product += v * g;
                } else {
                    (*product, *search) = (v * g, *searches);
                    reached.push(k);
                }
            }
        }
        // Those of the row itself are not to be added.
        own.iter().for_each(|&j| products[j as usize].0 = 0.0);
        chosen.clear();
        let mut least = 0.0;
        for &k in &*reached {
            let product = products[k as usize].0;
            let decrease = product * product * inverses[k as usize];
            if decrease > 0.0 && decrease >= least && decrease.is_finite() {
                let is_before =
                    |&(other, index): &(f64, u32)| other > decrease || other == decrease && index < k;
                let place = chosen.partition_point(is_before);
                if place < most {
                    chosen.truncate(most - 1);
                    chosen.insert(place, (decrease, k));
                }
                least = if chosen.len() == most { chosen[most - 1].0 } else { 0.0 };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gallery::Problem;

    /// [ 4 1 2 ]
    /// [ 1 4 0 ]
    /// [ 2 0 4 ]: row 2 has its largest entry in column 0, and then none, A g̃ at 1 being 1 · (−1/2).
    #[test]
    fn the_largest_first() {
        let entries =
            [(0, 0, 4.0), (0, 1, 1.0), (0, 2, 2.0), (1, 0, 1.0), (1, 1, 4.0), (2, 0, 2.0), (2, 2, 4.0)];
        let a = Csr::from_entries(3, 3, entries).unwrap();
        let grown = |steps, tolerance| {
            grow(&Threads::new(1), &a, Growth { steps, entries: 1, tolerance }, u64::MAX).unwrap()
        };
        assert_eq!(grown(1, 0.0).row(2), [0, 2]);
        assert_eq!(grown(2, 0.0).row(2), [0, 1, 2]);
        // The first step has decreased ψ from 4 to 3.
        assert_eq!(grown(2, 0.3).row(2), [0, 2]);
        assert_eq!(grown(2, 0.2).row(2), [0, 1, 2]);
    }

    #[test]
    fn the_same_on_any_number_of_threads() {
        let a = "jump3d:12".parse::<Problem>().unwrap().generate().unwrap();
        let grown = |threads| {
            let growth = Growth { steps: 4, entries: 3, tolerance: 1e-3 };
            grow(&Threads::new(threads), &a, growth, u64::MAX).unwrap()
        };
        let one = grown(1);
        assert!((2..=8).all(|threads| grown(threads) == one));
        assert!(one.nnz() > 4 * a.nrows() && one.nnz() <= 13 * a.nrows());
    }
}
