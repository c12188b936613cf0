//! The facts of rows, put together in parts, and how entries compare with their partners across the diagonal.
//!
//! A row that repeats the one before, in columns and values, has its facts, and where the rows of all its partners do so too it compares with them as
//! that one did: on a grid with constant coefficients only the rows at the ends of lines are looked at entry by entry. Sums are taken in
//! the order of rows all the same, part by part, so that they have the same bits on any number of threads.

use crate::matrix::{Compared, Csr, RowBits, WORD, are_same};
use crate::parallel;
use crate::space::Extremes;
use std::ops::Range;

/// A diagonal entry of at most this multiple of the largest in its row is tiny.
pub(crate) const TINY: f64 = 1e-8;
/// Rows whose facts are summed up one after the other.
pub(super) const ROWS_PER_PART: usize = 64 * WORD;
/// A sum of a row of at most this multiple of its diagonal entry is small.
const SMALL_SUM: f64 = 1e-3;
/// Rows are few where they are at most one in 16.
const FEW: usize = 16;
/// Shares of sums up to this one do not shorten the way across any mesh that large matrices have.
const SMALL_SHARE: f64 = 1e-2;

/// Numbers of [`RowFacts`].
const WORDS: usize = 15;

/// How many rows have what.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowFacts {
    pub(super) positive: usize,
    pub(super) zero: usize,
    pub(super) tiny: usize,
    pub(super) m_matrix: usize,
    pub(super) nearly_m: usize,
    pub(super) dominant: usize,
    pub(super) zero_sum: usize,
    /// Rows whose sum is small.
    small: usize,
    /// Of all entries, and of their sizes.
    sum: f64,
    size: f64,
    /// Of the diagonal.
    trace: f64,
    /// Of the rows whose sum is small, and of their diagonal.
    small_sum: f64,
    small_trace: f64,
    pub(super) least: f64,
    pub(super) largest: f64,
}

impl RowFacts {
    pub(super) const NONE: RowFacts = RowFacts {
        positive: 0,
        zero: 0,
        tiny: 0,
        m_matrix: 0,
        nearly_m: 0,
        dominant: 0,
        zero_sum: 0,
        small: 0,
        sum: 0.0,
        size: 0.0,
        trace: 0.0,
        small_sum: 0.0,
        small_trace: 0.0,
        least: f64::INFINITY,
        largest: 0.0,
    };

    /// Those of one row, whose diagonal entry is in this column; not inlined, so that its sums stay in registers.
    #[inline(never)]
    pub(super) fn of(a: &Csr<f64>, i: usize, on_diagonal: usize) -> Self {
        let (columns, values) = a.row(i);
        let (mut diagonal, mut largest, mut others, mut sum) = (0.0, 0.0f64, 0.0, 0.0);
        let (mut positive, mut least) = (0.0, f64::INFINITY);
        for (&j, &v) in columns.iter().zip(values) {
            // Comparisons are false for what is not a number.
            let size = v.abs();
            largest = if size > largest { size } else { largest };
            least = if size > 0.0 && size < least { size } else { least };
            sum += v;
            if j as usize == on_diagonal {
                diagonal = v;
            } else {
                others += size;
                positive += if v > 0.0 { v } else { 0.0 };
            }
        }
        let rounding = columns.len() as f64 * f64::EPSILON;
        let size = others + diagonal.abs();
        let is_small = sum.abs() <= SMALL_SUM * diagonal;
        RowFacts {
            positive: usize::from(diagonal > 0.0),
            zero: usize::from(diagonal == 0.0),
            tiny: usize::from(diagonal.abs() <= TINY * largest || diagonal.is_nan()),
            m_matrix: usize::from(positive == 0.0 && diagonal > 0.0),
            nearly_m: usize::from(positive <= 0.1 * others && diagonal > 0.0),
            dominant: usize::from(diagonal.abs() >= others * (1.0 - rounding)),
            zero_sum: usize::from(sum.is_finite() && sum.abs() <= rounding * size.min(f64::MAX)),
            small: usize::from(is_small),
            sum,
            size,
            trace: diagonal,
            small_sum: if is_small { sum } else { 0.0 },
            small_trace: if is_small { diagonal } else { 0.0 },
            least,
            largest,
        }
    }

    #[inline]
    pub(super) fn and(self, o: Self) -> Self {
        RowFacts {
            positive: self.positive + o.positive,
            zero: self.zero + o.zero,
            tiny: self.tiny + o.tiny,
            m_matrix: self.m_matrix + o.m_matrix,
            nearly_m: self.nearly_m + o.nearly_m,
            dominant: self.dominant + o.dominant,
            zero_sum: self.zero_sum + o.zero_sum,
            small: self.small + o.small,
            sum: self.sum + o.sum,
            size: self.size + o.size,
            trace: self.trace + o.trace,
            small_sum: self.small_sum + o.small_sum,
            small_trace: self.small_trace + o.small_trace,
            least: self.least.min(o.least),
            largest: self.largest.max(o.largest),
        }
    }

    pub(super) fn to_words(self) -> [u64; WORDS] {
        let counts = [
            self.positive,
            self.zero,
            self.tiny,
            self.m_matrix,
            self.nearly_m,
            self.dominant,
            self.zero_sum,
            self.small,
        ];
        let sums =
            [self.sum, self.size, self.trace, self.small_sum, self.small_trace, self.least, self.largest];
        let mut words = [0; WORDS];
        let all = counts.into_iter().map(|count| count as u64).chain(sums.map(f64::to_bits));
        words.iter_mut().zip(all).for_each(|(word, value)| *word = value);
        words
    }

    pub(super) fn from_words(words: [u64; WORDS]) -> Self {
        let (count, sum) = (|k: usize| words[k] as usize, |k: usize| f64::from_bits(words[k]));
        RowFacts {
            positive: count(0),
            zero: count(1),
            tiny: count(2),
            m_matrix: count(3),
            nearly_m: count(4),
            dominant: count(5),
            zero_sum: count(6),
            small: count(7),
            sum: sum(8),
            size: sum(9),
            trace: sum(10),
            small_sum: sum(11),
            small_trace: sum(12),
            least: sum(13),
            largest: sum(14),
        }
    }

    pub(super) fn share(&self) -> f64 {
        let share = (self.sum / self.trace).abs();
        if share.is_finite() { share } else { 0.0 }
    }

    /// Whether the sum of this row is not small.
    pub(super) fn is_large(&self) -> bool {
        self.small == 0
    }

    /// Whether [`share_without`](Self::share_without) says more than [`share`](Self::share), the matrix having `rows` rows.
    pub(super) fn asks_without_large(&self, rows: usize, symmetric: bool) -> bool {
        symmetric && self.share() > SMALL_SHARE && FEW * (rows - self.small) <= rows
    }

    /// The Rayleigh quotient of D⁻¹A, for symmetric A, for the vector of ones in the rows whose sum is small: a few rows with large sums, as those of the
    /// sources of a circuit, say nothing about the others. `between` is what the others have in the columns of these.
    pub(super) fn share_without(&self, between: f64) -> f64 {
        let share = ((self.small_sum - between) / self.small_trace).abs();
        if share.is_finite() { share } else { f64::INFINITY }
    }

    /// The sizes of entries; none unless the sum of all sizes shows that they are finite.
    pub(super) fn sizes(&self) -> Option<Extremes<f64>> {
        let RowFacts { least, largest, size, .. } = *self;
        size.is_finite().then_some(Extremes { least, largest, not_finite: None })
    }

    /// Whether the sum of all entries is 0 up to rounding: if it is not, some column does not sum up to 0.
    pub(super) fn may_be_zero(&self, entries: usize) -> bool {
        let rounding = entries as f64 * f64::EPSILON * self.size.min(f64::MAX);
        !self.sum.is_finite() || self.sum.abs() <= rounding
    }
}

/// The sum of a row without the columns that are left out.
pub(super) fn sum_without(a: &Csr<f64>, i: usize, is_left_out: impl Fn(usize) -> bool) -> f64 {
    let (columns, values) = a.row(i);
    columns.iter().zip(values).filter(|(j, _)| !is_left_out(**j as usize)).fold(0.0, |sum, (_, v)| sum + v)
}

/// What the rows with large sums have in the columns of the others, in parts of rows. By symmetry it is what couples both.
pub(super) fn sum_between(a: &Csr<f64>, large: &[u32]) -> f64 {
    let is_large = |j: usize| large.binary_search(&(j as u32)).is_ok();
    let of_part = |part: &[u32]| part.iter().fold(0.0, |sum, &i| sum + sum_without(a, i as usize, is_large));
    let parts = large.chunk_by(|i, j| *i as usize / ROWS_PER_PART == *j as usize / ROWS_PER_PART);
    parts.fold(0.0, |sum, part| sum + of_part(part))
}

/// The facts of all rows, how entries compare with their partners across the diagonal, and the rows whose sum is not small.
pub(super) fn of_all(a: &Csr<f64>) -> (RowFacts, Compared, Vec<u32>) {
    let n = a.nrows();
    let rows = |k: usize| k * ROWS_PER_PART..n.min((k + 1) * ROWS_PER_PART);
    let repeats = a.pattern().repeats();
    let parts = parallel::map(n.div_ceil(ROWS_PER_PART), |k| Part::of(a, repeats, rows(k)));
    let same = RowBits::new(parts.iter().flat_map(|part| part.same).collect());
    let compared = parallel::map(parts.len(), |k| {
        parts[k].compared.unwrap_or_else(|| {
            let mut compared = Compared::NONE;
            a.view().compare_rows(rows(k), &same, &mut compared);
            compared
        })
    });
    let (mut sums, mut large) = (RowFacts::NONE, Vec::new());
    for part in parts {
        sums = sums.and(part.sums);
        large.extend(part.large);
    }
    (sums, compared.into_iter().fold(Compared::NONE, Compared::and), large)
}

/// What some rows come to.
struct Part {
    sums: RowFacts,
    /// The rows whose sum is not small.
    large: Vec<u32>,
    /// The rows that repeat the one before, in columns and values; not the first, so that a part stands for itself.
    same: [u64; ROWS_PER_PART / WORD],
    /// How entries compare with their partners: known at once where no row repeats another; of a matrix that is not square there are none.
    compared: Option<Compared>,
}

impl Part {
    fn of(a: &Csr<f64>, repeats: &RowBits, rows: Range<usize>) -> Self {
        let (mut sums, mut large, mut row) = (RowFacts::NONE, Vec::new(), RowFacts::NONE);
        let mut same = [0; ROWS_PER_PART / WORD];
        for (k, word) in same.iter_mut().enumerate() {
            let own = rows.end.min(rows.start + k * WORD)..rows.end.min(rows.start + (k + 1) * WORD);
            *word = same_rows(a, repeats, own.clone()) & if k == 0 { !1 } else { u64::MAX };
            for i in own.clone() {
                if *word >> (i - own.start) & 1 == 0 {
                    row = RowFacts::of(a, i, i);
                }
                sums = sums.and(row);
                if row.small == 0 {
                    large.push(i as u32);
                }
            }
        }
        let compare = || {
            let mut compared = Compared::NONE;
            rows.for_each(|i| a.view().compare_row(i, &mut compared));
            compared
        };
        let compared = match a.pattern().is_square() {
            false => Some(Compared::NONE),
            true => same.iter().all(|&word| word == 0).then(compare),
        };
        Part { sums, large, same, compared }
    }
}

/// The rows that repeat the one before, of at most 64.
fn same_rows(a: &Csr<f64>, repeats: &RowBits, rows: Range<usize>) -> u64 {
    let (pattern, values) = (a.pattern(), a.values());
    let repeats = repeats.word(rows.start);
    if repeats == u64::MAX && rows.len() == WORD {
        let own = pattern.row_ptr()[rows.start]..pattern.row_ptr()[rows.end];
        let length = own.len() / WORD;
        if are_same(&values[own.clone()], &values[own.start - length..own.end - length]) {
            return u64::MAX;
        }
    }
    let is_same = |i: usize| are_same(a.row(i).1, a.row(i - 1).1);
    let repeating = rows.clone().filter(|i| repeats >> (i - rows.start) & 1 == 1);
    repeating.filter(|&i| is_same(i)).fold(0, |word, i| word | 1 << (i - rows.start))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gallery::Problem;
    use crate::matrix::Pattern;
    use std::sync::Arc;

    /// Row by row, without any that repeats another.
    fn one_by_one(a: &Csr<f64>) -> (RowFacts, Compared, Vec<u32>) {
        let (mut sums, mut compared, mut large) = (RowFacts::NONE, Compared::NONE, Vec::new());
        for first in (0..a.nrows()).step_by(ROWS_PER_PART) {
            let mut part = RowFacts::NONE;
            for i in first..a.nrows().min(first + ROWS_PER_PART) {
                let row = RowFacts::of(a, i, i);
                part = part.and(row);
                a.view().compare_row(i, &mut compared);
                if row.small == 0 {
                    large.push(i as u32);
                }
            }
            sums = sums.and(part);
        }
        (sums, compared, large)
    }

    /// With an entry that differs, one that has no partner, and one that is not a number.
    #[test]
    fn rows_that_repeat_others_change_nothing() {
        for name in [
            "poisson2d:150x60",
            "hpcg:18",
            "convection3d:40x12x9",
            "jump3d:20",
            "circuit:60",
            "elasticity2d:50",
        ] {
            let a = name.parse::<Problem>().unwrap().generate().unwrap();
            let middle = a.pattern().row_range(a.nrows() / 2);
            let values = [1.5, -3.0, f64::NAN].map(|v| {
                let mut other = a.clone();
                other.values_mut()[middle.start] = v;
                other
            });
            let entries = (0..a.nrows())
                .flat_map(|i| a.row(i).0.iter().zip(a.row(i).1).map(move |(&j, &v)| (i, j as usize, v)));
            let one_sided = entries.enumerate().filter(|(k, _)| *k != middle.start).map(|(_, entry)| entry);
            let one_sided = Csr::from_entries(a.nrows(), a.ncols(), one_sided).unwrap();
            for matrix in values.iter().chain([&a, &one_sided]) {
                let (found, expected) = (of_all(matrix), one_by_one(matrix));
                assert_eq!(format!("{found:?}"), format!("{expected:?}"), "{name}");
            }
        }
    }

    /// With more threads than processors, all of which ask for the rows that repeat at the same time.
    #[test]
    fn many_threads_ask_at_the_same_time() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(8).build().unwrap();
        let a = "poisson2d:500x250".parse::<Problem>().unwrap().generate().unwrap();
        let expected = format!("{:?}", of_all(&a));
        for _ in 0..20 {
            let fresh = Csr::trusted(Arc::new(fresh(a.pattern())), a.values().to_vec());
            let found = pool.install(|| {
                let together = parallel::map(8, |_| format!("{:?}", of_all(&fresh)));
                assert!(together.iter().all(|facts| *facts == together[0]));
                together[0].clone()
            });
            assert_eq!(found, expected);
        }
    }

    /// The same pattern, of which nothing has been found out.
    fn fresh(pattern: &Pattern) -> Pattern {
        Pattern::trusted(
            pattern.nrows(),
            pattern.ncols(),
            pattern.row_ptr().to_vec(),
            pattern.col_idx().to_vec(),
        )
    }
}
