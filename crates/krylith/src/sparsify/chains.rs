//! Dropping aimed at the longest chains of rows that need each other.
//!
//! Of the entries (i, j), i > j, some are small: their sizes are at most θ. Let h(i) be the length of the longest chain from row i on that has no small entry, and
//! T = max h(i), the wavefronts that are left if all small entries are dropped. Fewer than T cannot be reached with this θ, and T can be reached with
//! far fewer drops: rows are taken in order, and a small entry (i, j) is dropped only if
//!
//!   level(j) + h(i) > T,
//!
//! level being that of what is kept so far. Every row then has level(i) + h(i) − 1 ≤ T: for a kept small entry by the test, and for a large one because
//! h(j) ≥ h(i) + 1. So at most T wavefronts are left. Entries that are on no chain too long are kept, however small they are. Two passes over the
//! pattern for each θ.

use crate::matrix::Pattern;

/// What is left after dropping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cut {
    /// A mark for each entry of the pattern, of both triangles: whether it is kept.
    pub kept: Vec<bool>,
    /// Entries that are not.
    pub dropped: usize,
    /// Wavefronts of the lower triangle that are left.
    pub wavefronts: usize,
}

/// Drops entries of sizes up to `theta` where that shortens the longest chains. Sizes are those of places in the pattern; only those below the diagonal count.
pub(crate) fn cut(pattern: &Pattern, sizes: &[f64], theta: f64) -> Cut {
    let n = pattern.nrows();
    let below = |i: usize| {
        let range = pattern.row_range(i);
        let count = pattern.row(i).partition_point(|&j| (j as usize) < i);
        range.start..range.start + count
    };
    let column = |place: usize| pattern.col_idx()[place] as usize;
    let mut height = vec![1u32; n];
    for i in (0..n).rev() {
        for place in below(i).filter(|&place| sizes[place] > theta) {
            let j = column(place);
            height[j] = height[j].max(height[i] + 1);
        }
    }
    let target = height.iter().copied().max().unwrap_or(0);
    let mut level = vec![0u32; n];
    let (mut kept, mut dropped) = (vec![true; pattern.nnz()], 0);
    for i in 0..n {
        let mut own = 1;
        for place in below(i) {
            let j = column(place);
            if sizes[place] <= theta && level[j] + height[i] > target {
                let mirrored = pattern.find(j, i);
                kept[place] = false;
                mirrored.inspect(|&other| kept[other] = false);
                dropped += 1 + usize::from(mirrored.is_some());
            } else {
                own = own.max(level[j] + 1);
            }
        }
        level[i] = own;
    }
    let wavefronts = level.iter().copied().max().unwrap_or(0) as usize;
    debug_assert!(wavefronts <= target as usize);
    Cut { kept, dropped, wavefronts }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gallery::Problem;
    use crate::matrix::{Csr, Triangle};
    use crate::schedule::Wavefronts;
    use crate::sparsify::Sparsified;

    fn symmetric(n: usize, below: &[(usize, usize, f64)]) -> Csr<f64> {
        let off = below.iter().flat_map(|&(i, j, v)| [(i, j, v), (j, i, v)]);
        Csr::from_entries(n, n, off.chain((0..n).map(|i| (i, i, 1.0)))).unwrap()
    }

    fn sizes(a: &Csr<f64>) -> Vec<f64> {
        a.values().iter().map(|v| v.abs()).collect()
    }

    /// 0 - 1 = 2 - 3 = 4 with weak links 0-1, 2-3, and a weak 0-4 that is on no long chain. Two large links are chains of two, so T = 2.
    #[test]
    fn weak_links_of_long_chains_are_cut_and_others_stay() {
        let a = symmetric(5, &[(1, 0, 0.1), (2, 1, 1.0), (3, 2, 0.1), (4, 3, 1.0), (4, 0, 0.1)]);
        let found = cut(a.pattern(), &sizes(&a), 0.5);
        assert_eq!((found.wavefronts, found.dropped), (2, 4));
        let sparser = Sparsified::new(&a, found.kept);
        let entries = |i: usize| sparser.matrix().row(i).0.to_vec();
        assert_eq!((entries(1), entries(3), entries(4)), (vec![1, 2], vec![3, 4], vec![0, 3, 4]));
        // Nothing is as small as this.
        let none = cut(a.pattern(), &sizes(&a), 0.01);
        assert_eq!((none.wavefronts, none.dropped), (5, 0));
    }

    /// As few wavefronts as if all small entries were dropped, with fewer drops.
    #[test]
    fn as_few_wavefronts_as_dropping_all_leaves() {
        for name in ["jump3d:9", "fem2d:14", "circuit:15", "apache:8"] {
            let a = name.parse::<Problem>().unwrap().generate().unwrap();
            let scales: Vec<f64> = a.diagonal().unwrap().iter().map(|d| d.sqrt()).collect();
            let mut sizes = sizes(&a);
            for i in 0..a.nrows() {
                for place in a.pattern().row_range(i) {
                    sizes[place] /= scales[i] * scales[a.pattern().col_idx()[place] as usize];
                }
            }
            for theta in [0.0, 0.003, 0.03, 0.1, 0.3] {
                let found = cut(a.pattern(), &sizes, theta);
                let count = |kept: Vec<bool>| {
                    let sparser = Sparsified::new(&a, kept);
                    Wavefronts::new(sparser.matrix().pattern(), Triangle::Lower).unwrap().count()
                };
                let diagonal = |i: usize, place: usize| a.pattern().col_idx()[place] as usize == i;
                let all: Vec<bool> = (0..a.nrows())
                    .flat_map(|i| a.pattern().row_range(i).map(move |place| (i, place)))
                    .map(|(i, place)| diagonal(i, place) || sizes[place] > theta)
                    .collect();
                let fewest = all.iter().filter(|&&kept| !kept).count();
                assert_eq!(found.wavefronts, count(all), "{name} {theta}");
                assert_eq!(found.wavefronts, count(found.kept), "{name} {theta}");
                assert!(found.dropped <= fewest);
            }
        }
    }
}
