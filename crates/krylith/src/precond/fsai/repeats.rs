//! Slices of eight rows whose rows of G are the same, but for a shift.
//!
//! A row of G depends on the rows of A that it reaches in as many steps as its pattern takes. Two slices are equal in d steps if their rows have the same
//! entries at the same offsets, and if all slices that they reach are equal in d − 1 steps. Where coefficients are constant most slices are equal to a few, so
//! those few are computed and the others copied, bit by bit what they would have been. Nothing is supposed about a grid.
//!
//! Contents are compared by bits, what is reached by a hash of 128 bits.
#![allow(unsafe_code)]

use crate::disjoint::DisjointSlice;
use crate::error::SetupError;
use crate::matrix::{Csr, Pattern, mix};
use crate::memory::large_pages;
use crate::placement::Storage;
use crate::simd::LANES;
use crate::sliced::SharedSlices;
use crate::space::{CHUNK, Threads};
use std::collections::HashMap;

/// At most this part of the slices may differ: what is copied has been looked at, too.
const MOST_DIFFERENT: f64 = 0.25;

/// Where hashes begin: no word makes it zero.
const FIRST: u128 = u128::MAX;

/// Slices to compute, and which of them each slice is a copy of.
#[derive(Debug)]
pub(crate) struct Repeats {
    /// Rows.
    n: usize,
    /// Slices that differ, in order.
    different: Vec<u32>,
    /// For every slice its place in `different`.
    which: Vec<u32>,
    /// The matrix that was looked at.
    slices: SharedSlices,
}

impl Repeats {
    /// Slices of A that are equal in `steps` steps; `None` if too few are.
    pub(crate) fn find(space: &Threads<f64>, a: &Csr<f64>, steps: usize) -> Option<Self> {
        if a.nrows() < 64 * LANES || a.nrows() != a.ncols() || !SharedSlices::<f64>::repeats(a) {
            return None;
        }
        let slices = SharedSlices::of(space, a);
        let most = (MOST_DIFFERENT * slices.len() as f64) as usize;
        let mut classes: Vec<u32> = slices.numbers();
        let mut different = Vec::new();
        for step in 0..=steps {
            let (mut known, mut next) = (HashMap::new(), Vec::with_capacity(classes.len()));
            different.clear();
            for (slice, &class) in classes.iter().enumerate() {
                let mut hash = mix(FIRST, class.into());
                if step > 0 {
                    for [first, last] in slices.reached(slice) {
                        hash = [first, last].iter().fold(hash, |h, &s| mix(h, classes[s as usize].into()));
                    }
                }
                let number = known.len() as u32;
                next.push(*known.entry(hash).or_insert_with(|| {
                    different.push(slice as u32);
                    number
                }));
            }
            if different.len() > most {
                return None;
            }
            classes = next;
        }
        Some(Repeats { n: a.nrows(), different, which: classes, slices })
    }

    /// Whether this is about the values of a matrix.
    pub(crate) fn are_of(&self, a: &Csr<f64>) -> bool {
        self.slices.has_stamp_of(a)
    }

    /// The matrix that was looked at, in slices.
    pub(crate) fn slices(&self) -> &SharedSlices {
        &self.slices
    }

    /// Rows that are computed.
    pub(crate) fn rows(&self) -> Rows<'_> {
        Rows { n: self.n, slices: Some(&self.different) }
    }

    /// Whether a row is computed.
    pub(crate) fn has(&self, row: usize) -> bool {
        self.original(row) == row
    }

    /// The row that a row is a copy of.
    fn original(&self, row: usize) -> usize {
        self.different[self.which[row / LANES] as usize] as usize * LANES + row % LANES
    }

    pub(crate) fn bytes(&self) -> usize {
        4 * (self.different.len() + self.which.len()) + self.slices.bytes()
    }

    /// All rows of a pattern, from those that were computed, one after the other.
    pub(crate) fn expand(
        &self,
        space: &Threads<f64>,
        computed: &Pattern,
        most: u64,
        bytes_per_entry: u64,
    ) -> Result<Pattern, SetupError> {
        let place = |i: usize| self.which[i / LANES] as usize * LANES + i % LANES;
        let mut row_ptr = Vec::with_capacity(self.n + 1);
        row_ptr.push(0);
        let mut end = 0;
        for i in 0..self.n {
            end += computed.row_range(place(i)).len();
            row_ptr.push(end);
        }
        if end as u64 > most {
            let bytes = |entries: u64| entries.saturating_mul(bytes_per_entry);
            return Err(SetupError::MemoryLimit { predicted: bytes(end as u64), limit: bytes(most) });
        }
        let mut col_idx: Vec<u32> = large_pages::zeros_or_error(end)?;
        let parts = DisjointSlice::new(&mut col_idx);
        space.team().run(|member| {
            for i in member.part(self.n, CHUNK) {
                let shift = (i - self.original(i)) as u32;
                // SAFETY: rows of members do not overlap.
                let own = unsafe { parts.get(row_ptr[i]..row_ptr[i + 1]) };
                own.iter_mut().zip(computed.row(place(i))).for_each(|(to, &from)| *to = from + shift);
            }
        });
        Ok(Pattern::trusted(self.n, self.n, row_ptr, col_idx))
    }

    /// Copies the values of rows that were computed to all others.
    pub(crate) fn copy(&self, space: &Threads<f64>, pattern: &Pattern, values: &mut [f64]) {
        let values = DisjointSlice::new(values);
        space.team().run(|member| {
            for i in member.part(self.n, CHUNK) {
                let original = self.original(i);
                if original != i {
                    // SAFETY: rows that are written are no originals, and rows of members do not overlap.
                    let [from, to] = unsafe { [original, i].map(|row| values.get(pattern.row_range(row))) };
                    to.copy_from_slice(from);
                }
            }
        });
    }
}

/// Rows that a phase works on.
#[derive(Debug, Clone, Copy)]
pub struct Rows<'a> {
    n: usize,
    slices: Option<&'a [u32]>,
}

impl Rows<'_> {
    /// All of them.
    pub fn all(n: usize) -> Self {
        Rows { n, slices: None }
    }

    /// How many. The last slice may have fewer than eight; it is the last here, too.
    pub fn len(&self) -> usize {
        match self.slices {
            None => self.n,
            Some(slices) => {
                let last =
                    slices.last().map_or(0, |&s| self.n.min((s as usize + 1) * LANES) - s as usize * LANES);
                slices.len().saturating_sub(1) * LANES + last
            }
        }
    }

    /// Row number k.
    pub fn row(&self, k: usize) -> usize {
        match self.slices {
            None => k,
            Some(slices) => slices[k / LANES] as usize * LANES + k % LANES,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::adaptive::{Growth, grow};
    use super::super::pattern::{Most, large_entries, powers};
    use super::super::rows::MOST_INDICES;
    use super::super::rows::{Batches, solve_rows};
    use super::*;
    use crate::gallery::Problem;

    fn problem(name: &str) -> Csr<f64> {
        name.parse::<Problem>().unwrap().generate().unwrap()
    }

    /// Copied rows are bit by bit those that would have been computed.
    #[test]
    fn copies_are_what_would_be_computed() {
        let space = Threads::new(2);
        for (name, steps) in
            [("poisson2d:90", 3), ("poisson3d:44", 3), ("hpcg:40", 2), ("elasticity2d:90", 3)]
        {
            let growth = Growth { steps, entries: 2, tolerance: 0.0 };
            let a = problem(name);
            let repeats = Repeats::find(&space, &a, steps).unwrap_or_else(|| panic!("{name}"));
            let large = large_entries(&space, &a, 0.0);
            let most = Most { of_a_row: MOST_INDICES, in_all: u64::MAX };
            let patterns = |rows: Rows<'_>| {
                let grown = grow(&space, &a, growth, rows, u64::MAX).unwrap();
                [powers(&space, &large, steps, rows, most).unwrap(), grown]
            };
            for (all, some) in patterns(Rows::all(a.nrows())).into_iter().zip(patterns(repeats.rows())) {
                assert!(4 * some.nrows() <= a.nrows(), "{name}");
                assert_eq!(repeats.expand(&space, &some, u64::MAX, 1).unwrap(), all, "{name}");
                let [mut every, mut copied] = [0, 1].map(|_| vec![0.0; all.nnz()]);
                solve_rows(&space, &a, &all, &Batches::of(&all, |_| true), &mut every);
                solve_rows(&space, &a, &all, &Batches::of(&all, |i| repeats.has(i)), &mut copied);
                assert_ne!(every, copied, "{name}");
                repeats.copy(&space, &all, &mut copied);
                assert_eq!(every, copied, "{name}");
            }
        }
    }

    /// A number that differs is seen by the rows that reach it, and by no others.
    #[test]
    fn one_number_separates_what_reaches_it() {
        let (space, mut a) = (Threads::new(1), problem("poisson2d:80"));
        let of = |a: &Csr<f64>, steps| Repeats::find(&space, a, steps).unwrap();
        let before = of(&a, 2);
        let row = 40 * 80 + 40;
        let diagonal = a.row(row).0.iter().position(|&j| j as usize == row).unwrap();
        let at = a.pattern().row_range(row).start + diagonal;
        a.values_mut()[at] = 5.0;
        assert!(!before.are_of(&a));
        let after = of(&a, 2);
        for i in [row, row + 80, row - 160, row + 2 * 80] {
            assert_ne!(after.original(i), before.original(i), "{i}");
        }
        assert_eq!(after.original(row + 5 * 80), before.original(row + 5 * 80));
    }

    #[test]
    fn what_does_not_repeat_is_not_compared() {
        let space = Threads::new(1);
        assert!(
            ["jump3d:20", "fem2d:40", "poisson2d:5"].iter().all(|name| Repeats::find(
                &space,
                &problem(name),
                1
            )
            .is_none())
        );
    }
}
