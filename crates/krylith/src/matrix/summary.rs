//! What is known of a matrix by looking at every entry: the facts from which choices are made and explained.

use super::{Csr, Symmetry};
use crate::parallel;
use std::collections::BTreeMap;
use std::ops::Range;

/// Facts about a matrix, counted and compared row by row: the same on any number of threads.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// How it compares with its transpose.
    pub symmetry: Symmetry,
    /// Entries that are stored and zero.
    pub explicit_zeros: usize,
    /// Entries that are infinite or NaN.
    pub not_finite: usize,
    /// Rows without any entry.
    pub empty_rows: usize,
    /// The diagonal.
    pub diagonal: Diagonal,
    /// Largest i − j of an entry.
    pub lower_bandwidth: usize,
    /// Largest j − i of an entry.
    pub upper_bandwidth: usize,
    /// Smallest |a| of a finite entry that is not zero; infinite where there is none.
    pub smallest: f64,
    /// Largest |a| of a finite entry.
    pub largest: f64,
    /// How many rows have how many entries, by number of entries.
    pub row_lengths: BTreeMap<usize, usize>,
}

/// Counts over the diagonal, min(rows, columns) long.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Diagonal {
    /// No entry is stored.
    pub missing: usize,
    /// The smallest row without a stored diagonal entry.
    pub first_missing: Option<usize>,
    /// A zero is stored.
    pub zero: usize,
    /// Above zero.
    pub positive: usize,
    /// Below zero.
    pub negative: usize,
    /// Rows with |aᵢᵢ| > Σ |aᵢⱼ|, j ≠ i, beyond the rounding of the sum.
    pub strictly_dominant: usize,
    /// Rows with |aᵢᵢ| ≥ Σ |aᵢⱼ|, j ≠ i, up to the rounding of the sum.
    pub dominant: usize,
}

/// A range of row lengths, and how many rows fall into it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bin {
    /// Smallest length.
    pub from: usize,
    /// Largest length.
    pub to: usize,
    /// Rows.
    pub rows: usize,
}

/// More different row lengths than this are counted in bins that double.
const DIFFERENT_LENGTHS: usize = 24;

impl Summary {
    /// Looks at every entry and at its partner across the diagonal.
    ///
    /// ```
    /// use krylith::{gallery::Problem, matrix::Summary};
    /// let s = Summary::new(&"poisson2d:10".parse::<Problem>()?.generate()?);
    /// assert_eq!((s.lower_bandwidth, s.diagonal.dominant, s.row_lengths[&5]), (10, 100, 64));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(a: &Csr<f64>) -> Self {
        let block = |rows: Range<usize>| {
            rows.fold(Summary::none(), |mut s, i| {
                s.add_row(a, i);
                s
            })
        };
        let summary = parallel::fold(a.nrows(), block, Summary::and).unwrap_or_else(Summary::none);
        Summary { symmetry: a.symmetry(), ..summary }
    }

    fn none() -> Self {
        Summary {
            symmetry: Symmetry { pattern: true, symmetric: true, skew: true },
            explicit_zeros: 0,
            not_finite: 0,
            empty_rows: 0,
            diagonal: Diagonal::default(),
            lower_bandwidth: 0,
            upper_bandwidth: 0,
            smallest: f64::INFINITY,
            largest: 0.0,
            row_lengths: BTreeMap::new(),
        }
    }

    fn add_row(&mut self, a: &Csr<f64>, i: usize) {
        let (columns, values) = a.row(i);
        *self.row_lengths.entry(columns.len()).or_default() += 1;
        self.empty_rows += usize::from(columns.is_empty());
        if let (Some(&first), Some(&last)) = (columns.first(), columns.last()) {
            self.lower_bandwidth = self.lower_bandwidth.max(i.saturating_sub(first as usize));
            self.upper_bandwidth = self.upper_bandwidth.max((last as usize).saturating_sub(i));
        }
        let (mut diagonal, mut others) = (None, 0.0);
        for (&j, &v) in columns.iter().zip(values) {
            if j as usize == i {
                diagonal = Some(v);
            } else {
                others += v.abs();
            }
            self.not_finite += usize::from(!v.is_finite());
            self.explicit_zeros += usize::from(v == 0.0);
            if v != 0.0 && v.is_finite() {
                self.smallest = self.smallest.min(v.abs());
                self.largest = self.largest.max(v.abs());
            }
        }
        if i < a.ncols() {
            self.diagonal.add(i, diagonal, others, columns.len());
        }
    }

    fn and(mut self, o: Summary) -> Summary {
        self.explicit_zeros += o.explicit_zeros;
        self.not_finite += o.not_finite;
        self.empty_rows += o.empty_rows;
        self.diagonal = self.diagonal.and(o.diagonal);
        self.lower_bandwidth = self.lower_bandwidth.max(o.lower_bandwidth);
        self.upper_bandwidth = self.upper_bandwidth.max(o.upper_bandwidth);
        self.smallest = self.smallest.min(o.smallest);
        self.largest = self.largest.max(o.largest);
        for (length, rows) in o.row_lengths {
            *self.row_lengths.entry(length).or_default() += rows;
        }
        self
    }

    /// Row lengths one by one where there are few different ones, otherwise in bins 0, 1, 2–3, 4–7, …
    pub fn row_length_bins(&self) -> Vec<Bin> {
        if self.row_lengths.len() <= DIFFERENT_LENGTHS {
            return self.row_lengths.iter().map(|(&n, &rows)| Bin { from: n, to: n, rows }).collect();
        }
        let mut bins: Vec<Bin> = Vec::new();
        for (&length, &rows) in &self.row_lengths {
            let from = if length == 0 { 0 } else { 1 << length.ilog2() };
            match bins.last_mut() {
                Some(bin) if bin.from == from => bin.rows += rows,
                _ => bins.push(Bin { from, to: (2 * from).saturating_sub(1).max(from), rows }),
            }
        }
        bins
    }
}

impl Diagonal {
    fn add(&mut self, row: usize, value: Option<f64>, others: f64, entries: usize) {
        let Some(value) = value else {
            self.missing += 1;
            self.first_missing = self.first_missing.or(Some(row));
            return;
        };
        self.zero += usize::from(value == 0.0);
        self.positive += usize::from(value > 0.0);
        self.negative += usize::from(value < 0.0);
        let rounding = entries as f64 * f64::EPSILON * others;
        self.strictly_dominant += usize::from(value.abs() > others + rounding);
        self.dominant += usize::from(value.abs() >= others - rounding);
    }

    fn and(self, o: Diagonal) -> Diagonal {
        Diagonal {
            missing: self.missing + o.missing,
            first_missing: self.first_missing.into_iter().chain(o.first_missing).min(),
            zero: self.zero + o.zero,
            positive: self.positive + o.positive,
            negative: self.negative + o.negative,
            strictly_dominant: self.strictly_dominant + o.strictly_dominant,
            dominant: self.dominant + o.dominant,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ```text
    ///  2 -2  .  0
    ///  .  .  .  .
    ///  1  . -3  1
    /// ```
    #[test]
    fn by_hand() {
        let a =
            Csr::new(3, 4, vec![0, 3, 3, 6], vec![0, 1, 3, 0, 2, 3], vec![2.0, -2.0, 0.0, 1.0, -3.0, 1.0])
                .unwrap();
        let s = Summary::new(&a);
        let diagonal = Diagonal {
            missing: 1,
            first_missing: Some(1),
            zero: 0,
            positive: 1,
            negative: 1,
            strictly_dominant: 1,
            dominant: 2,
        };
        assert_eq!(s.diagonal, diagonal);
        assert_eq!((s.explicit_zeros, s.empty_rows, s.not_finite), (1, 1, 0));
        assert_eq!((s.lower_bandwidth, s.upper_bandwidth), (2, 3));
        assert_eq!((s.smallest, s.largest), (1.0, 3.0));
        assert_eq!(s.row_length_bins(), [Bin { from: 0, to: 0, rows: 1 }, Bin { from: 3, to: 3, rows: 2 }]);
    }

    #[test]
    fn many_lengths_are_told_in_doubling_bins() {
        // Row i has i entries.
        let a = Csr::<f64>::from_rows(
            40,
            40,
            |i| i,
            |_, columns, _| columns.iter_mut().enumerate().for_each(|(j, c)| *c = j as u32),
        );
        let bins = Summary::new(&a.unwrap()).row_length_bins();
        let expected = [(0, 0, 1), (1, 1, 1), (2, 3, 2), (4, 7, 4), (8, 15, 8), (16, 31, 16), (32, 63, 8)];
        assert_eq!(bins, expected.map(|(from, to, rows)| Bin { from, to, rows }));
    }
}
