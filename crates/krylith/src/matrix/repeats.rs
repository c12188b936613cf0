//! Rows that repeat the row before: the same columns, each one further.
//!
//! On a structured grid nearly all rows do. They are found once per pattern, in one pass over the columns, and kept as a bit per row. Who goes through the
//! rows after that need not look at the columns of such a row: what was found about the columns of the row before holds for it as well, and where the values are the
//! same too, everything does.

use super::Pattern;
use crate::parallel;
use std::ops::Range;
use std::sync::OnceLock;

/// Bits of a word.
pub(crate) const WORD: usize = 64;
/// Words of a piece of rows.
const WORDS_PER_PIECE: usize = 64;

/// A bit per row.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct RowBits(Vec<u64>);

impl RowBits {
    /// From words of 64 rows each.
    pub(crate) fn new(words: Vec<u64>) -> Self {
        RowBits(words)
    }

    /// The bits that `mark` sets. It is called once for each piece of rows.
    pub(crate) fn of_pieces(rows: usize, mark: impl Fn(Range<usize>, &mut dyn FnMut(usize)) + Sync) -> Self {
        let mut words = vec![0; rows.div_ceil(WORD)];
        parallel::for_each_piece_mut(&mut words, WORDS_PER_PIECE, |first, piece| {
            let begin = first * WORD;
            let own = begin..rows.min(begin + piece.len() * WORD);
            mark(own, &mut |row| piece[(row - begin) / WORD] |= 1 << (row % WORD));
        });
        RowBits(words)
    }

    /// Whether it has no rows.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The bit of a row; `false` past the last one.
    #[inline]
    pub(crate) fn has(&self, row: usize) -> bool {
        self.0.get(row / WORD).is_some_and(|word| word >> (row % WORD) & 1 == 1)
    }

    /// The bits of 64 rows from this one on.
    #[inline]
    pub(crate) fn word(&self, first: usize) -> u64 {
        let (at, shift) = (first / WORD, first % WORD);
        let word = |at: usize| self.0.get(at).copied().unwrap_or(0);
        if shift == 0 { word(at) } else { word(at) >> shift | word(at + 1) << (WORD - shift) }
    }

    /// How many rows at the start of a range have their bits set, without a gap.
    #[inline]
    pub(crate) fn run(&self, rows: Range<usize>) -> usize {
        let mut at = rows.start;
        while at < rows.end {
            let ones = self.word(at).trailing_ones() as usize;
            at += ones;
            if ones < WORD {
                break;
            }
        }
        at.min(rows.end) - rows.start
    }
}

/// The rows of a pattern that repeat the row before, once somebody has asked; patterns are equal whether or not somebody has.
#[derive(Debug, Clone, Default)]
pub(super) struct Repeats(OnceLock<RowBits>);

impl PartialEq for Repeats {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Repeats {}

impl Pattern {
    /// The rows that have the columns of the row before, each one further. Threads that ask at the same time may all find them: a thread of rayon that waited for
    /// another here might have to wait for itself.
    pub(crate) fn repeats(&self) -> &RowBits {
        if let Some(known) = self.repeats.0.get() {
            return known;
        }
        // Where the number behind a column may not fit, no row is said to repeat another.
        let rows = if self.ncols() <= u32::MAX as usize { self.nrows() } else { 0 };
        let mut words = vec![0; rows.div_ceil(WORD)];
        parallel::for_each_piece_mut(&mut words, WORDS_PER_PIECE, |first, piece| {
            for (k, word) in (first..).zip(piece) {
                *word = self.repeats_in(k * WORD..self.nrows().min((k + 1) * WORD));
            }
        });
        self.repeats.0.get_or_init(|| RowBits(words))
    }

    /// Those of at most 64 rows.
    fn repeats_in(&self, rows: Range<usize>) -> u64 {
        let (row_ptr, columns) = (self.row_ptr(), self.col_idx());
        let Some(before) = rows.start.checked_sub(1) else {
            return self.repeats_in(1..rows.end) << 1;
        };
        let all = u64::MAX >> (WORD - rows.len().max(1));
        let own = row_ptr[rows.start]..row_ptr[rows.end];
        let length = row_ptr[rows.start] - row_ptr[before];
        if own.len() == rows.len() * length
            && rows.clone().all(|i| row_ptr[i + 1] - row_ptr[i] == length)
            && are_further(&columns[own.clone()], &columns[own.start - length..own.end - length])
        {
            return if rows.is_empty() { 0 } else { all };
        }
        let repeats = |i: usize| {
            let (row, before) = (self.row(i), self.row(i - 1));
            row.len() == before.len() && are_further(row, before)
        };
        rows.clone().filter(|&i| repeats(i)).fold(0, |word, i| word | 1 << (i - rows.start))
    }
}

/// Whether each column is one more than the other; none is the last of 2³².
#[inline]
fn are_further(columns: &[u32], before: &[u32]) -> bool {
    agree(columns, before, |&column, &before| column ^ before.wrapping_add(1))
}

/// Whether numbers have the same bits.
#[inline]
pub(crate) fn are_same(values: &[f64], others: &[f64]) -> bool {
    agree(values, others, |value, other| value.to_bits() ^ other.to_bits())
}

/// Whether there is no difference, looked at in chunks for which there are vector instructions.
#[inline(always)]
fn agree<T, U: Copy + Default + PartialEq + std::ops::BitOr<Output = U>>(
    all: &[T],
    others: &[T],
    difference: impl Fn(&T, &T) -> U,
) -> bool {
    const CHUNK: usize = 32;
    let whole = |a: &[T], b: &[T]| {
        a.iter().zip(b).fold(U::default(), |so_far, (a, b)| so_far | difference(a, b)) == U::default()
    };
    let (chunks, rest) = all.as_chunks::<CHUNK>();
    let (other_chunks, other_rest) = others.as_chunks::<CHUNK>();
    chunks.iter().zip(other_chunks).all(|(a, b)| whole(a, b)) && whole(rest, other_rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gallery::Problem;

    #[test]
    fn runs_and_words() {
        let bits = RowBits::new(vec![u64::MAX << 3, u64::MAX, 0b111]);
        assert!(!bits.has(2) && bits.has(3) && bits.has(130) && !bits.has(131) && !bits.has(1000));
        assert_eq!((bits.run(0..200), bits.run(3..200), bits.run(3..100)), (0, 128, 97));
        assert_eq!((bits.word(3), bits.word(70), bits.word(130)), (u64::MAX, (1 << 61) - 1, 1));
    }

    /// Against the definition, where lengths change and where blocks of 64 rows are alike.
    #[test]
    fn rows_that_repeat_the_one_before() {
        for name in
            ["poisson2d:70x9", "poisson3d:13x5x4", "hpcg:9", "circuit:12", "elasticity2d:9", "jump3d:70x3x2"]
        {
            let a = name.parse::<Problem>().unwrap().generate().unwrap();
            let repeats = |i: usize| {
                i > 0
                    && a.row(i).0.len() == a.row(i - 1).0.len()
                    && a.row(i).0.iter().zip(a.row(i - 1).0).all(|(&c, &b)| c == b + 1)
            };
            let found = a.pattern().repeats();
            assert!((0..a.nrows() + 70).all(|i| found.has(i) == (i < a.nrows() && repeats(i))), "{name}");
        }
    }
}
