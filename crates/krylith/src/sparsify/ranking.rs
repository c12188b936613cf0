//! Pairs of entries (i, j) and (j, i) by magnitude.

use crate::matrix::Csr;

/// Pairs off the diagonal from the smallest on; equal ones by row, then by column of the lower triangle.
///
/// The magnitude of a pair is the larger one of its two. That of an entry without a partner is its own.
#[derive(Debug)]
pub(crate) struct Ranking<'a> {
    a: &'a Csr<f64>,
    /// Places in A of both entries of each pair, the smallest pair first, as far as it was asked for.
    pairs: Vec<[usize; 2]>,
    /// Entries of the lower triangle and the diagonal.
    triangle: usize,
}

impl<'a> Ranking<'a> {
    /// The pairs that may be dropped with up to so many percent.
    pub(crate) fn new(a: &'a Csr<f64>, percent: f64) -> Self {
        let pattern = a.pattern();
        let (mut candidates, mut triangle) = (Vec::new(), 0);
        for i in 0..a.nrows() {
            for place in pattern.row_range(i) {
                let j = pattern.col_idx()[place] as usize;
                triangle += usize::from(j <= i);
                let mirrored = if j == i { None } else { pattern.find(j, i) };
                let (size, other) = (a.values()[place].abs(), mirrored.unwrap_or(place));
                // An entry above the diagonal stands for itself if it has no partner below.
                if j < i || j > i && mirrored.is_none() {
                    let size = size.max(a.values()[other].abs());
                    let (row, column) = (i.max(j) as u32, i.min(j) as u32);
                    candidates.push(Candidate { size: size.to_bits(), row, column, places: [place, other] });
                }
            }
        }
        let most = count(triangle, percent).min(candidates.len());
        if most < candidates.len() && most > 0 {
            candidates.select_nth_unstable(most - 1);
        }
        candidates.truncate(most);
        candidates.sort_unstable();
        Ranking { a, pairs: candidates.into_iter().map(|c| c.places).collect(), triangle }
    }

    /// The pairs that so many percent of the lower triangle with the diagonal are, rounded down: at most as many as there are.
    pub(crate) fn dropped(&self, percent: f64) -> &[[usize; 2]] {
        &self.pairs[..count(self.triangle, percent).min(self.pairs.len())]
    }

    /// A mark for each entry of A: whether it is kept without these.
    pub(crate) fn kept(&self, dropped: &[[usize; 2]]) -> Vec<bool> {
        let mut kept = vec![true; self.a.nnz()];
        for &[one, other] in dropped {
            (kept[one], kept[other]) = (false, false);
        }
        kept
    }
}

/// Magnitudes are bits of a number that is not negative, whose order is that of the numbers.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    size: u64,
    row: u32,
    column: u32,
    places: [usize; 2],
}

fn count(triangle: usize, percent: f64) -> usize {
    (triangle as f64 * percent / 100.0) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    /// [ 9 2 1 0 ]
    /// [ 2 9 0 1 ]    below the diagonal: 2, 1, 1, 3
    /// [ 1 0 9 3 ]
    /// [ 0 1 3 9 ]
    #[test]
    fn the_smallest_pairs_come_first_and_ties_by_row_and_column() {
        let below = [(1, 0, 2.0), (2, 0, 1.0), (3, 1, -1.0), (3, 2, 3.0)];
        let entries =
            below.into_iter().flat_map(|(i, j, v)| [(i, j, v), (j, i, v)]).chain((0..4).map(|i| (i, i, 9.0)));
        let a = Csr::from_entries(4, 4, entries).unwrap();
        let ranking = Ranking::new(&a, 50.0);
        let places = |pairs: &[[usize; 2]]| -> Vec<(usize, u32)> {
            let row = |place| a.pattern().row_ptr().partition_point(|&first| first <= place) - 1;
            pairs.iter().map(|&[one, _]| (row(one), a.pattern().col_idx()[one])).collect()
        };
        // 8 entries in the triangle: half are 4, a quarter 2, and 24 % 1.
        assert_eq!(places(ranking.dropped(50.0)), [(2, 0), (3, 1), (1, 0), (3, 2)]);
        assert_eq!(places(ranking.dropped(25.0)), [(2, 0), (3, 1)]);
        assert_eq!(places(ranking.dropped(24.0)), [(2, 0)]);
        assert!(ranking.dropped(0.0).is_empty());
        let kept = ranking.kept(ranking.dropped(24.0));
        assert_eq!(kept.iter().filter(|&&kept| !kept).count(), 2);
        // All that is off the diagonal goes at most.
        assert_eq!(Ranking::new(&a, 100.0).dropped(100.0).len(), 4);
    }

    /// [ 1 5 ]
    /// [ 0 1 ]
    #[test]
    fn an_entry_without_a_partner_is_a_pair() {
        let a = Csr::from_entries(2, 2, [(0, 0, 1.0), (0, 1, 5.0), (1, 1, 1.0)]).unwrap();
        let ranking = Ranking::new(&a, 50.0);
        assert_eq!(ranking.dropped(50.0), [[1, 1]]);
    }
}
