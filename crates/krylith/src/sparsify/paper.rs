//! Algorithm 2 of Ma, Ahmad, Cheshmi, Sundar & Hall 2025, Sparsified Preconditioned Conjugate Gradient Solver on GPUs.
//!
//! For t = 10, 5, 1 percent, S_t has the entries of A of least magnitude off the diagonal, and Â = A − S_t. The first t is taken with ‖Â⁻¹‖ ‖S‖ ≤ τ and at
//! least ω percent fewer wavefronts; 1 % if ω is never reached; 10 % if not even 1 % passes the test of τ.
//!
//! Where the text leaves a choice, it was read so:
//!
//! * t percent are those of the stored entries of the lower triangle with its diagonal, rounded down. The diagonal is never dropped, (i, j) and (j, i) go
//!   together. Ties are broken by row, then by column.
//! * ‖Â⁻¹‖ is κ(Â) / ‖Â‖ with κ = ‖Â‖∞ / min âᵢᵢ. Line 4 has ‖Â‖₂ there; with the infinity norm throughout, as in the text, it is 1 / min âᵢᵢ, and
//!   the indicator is ‖S‖∞ / min aᵢᵢ.
//! * The reduction of wavefronts is relative to w_A, by equation 7. Line 10 divides by w_Â.
//! * Wavefronts are those of the lower triangle of the matrix, also where the factor has fill.
//! * A diagonal that is not positive fails the test.
//!
//! In the test of τ S_1 ⊂ S_5 ⊂ S_10, so what 1 % fails, the others do.

use super::ranking::Ranking;
use super::{Candidate, Sparsification, count_wavefronts, indicator};
use crate::matrix::Csr;

/// The numbers of Algorithm 2.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Paper {
    /// τ: the indicator is at most this.
    pub tau: f64,
    /// ω: wavefronts are fewer by at least so many percent.
    pub omega: f64,
}

/// t, in the order in which they are tried.
const PERCENT: [f64; 3] = [10.0, 5.0, 1.0];

impl Default for Paper {
    fn default() -> Self {
        Paper { tau: 1.0, omega: 10.0 }
    }
}

/// What Algorithm 2 takes.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Selection {
    /// Those that were looked at, in order.
    pub candidates: Vec<Candidate>,
    /// Which of them is taken.
    pub taken: usize,
    /// Why.
    pub reason: String,
}

impl Paper {
    /// Looks at candidates, the sparsest first, and takes the first that is safe and has at least ω percent fewer wavefronts than `before`; else the last if that is safe, else the first.
    /// Those after the one that is taken are not asked for.
    ///
    /// # Panics
    ///
    /// If there are none.
    pub fn select(self, before: usize, candidates: impl IntoIterator<Item = Candidate>) -> Selection {
        let mut all: Vec<Candidate> = Vec::new();
        for candidate in candidates {
            all.push(candidate);
            let (percent, gain) = (candidate.percent, candidate.reduction(before));
            if candidate.indicator <= self.tau && gain >= self.omega {
                let reason = format!("{percent} % is safe, with {gain:.1} % fewer wavefronts");
                return Selection { taken: all.len() - 1, candidates: all, reason };
            }
        }
        let last = all.last().expect("a candidate at least");
        let (taken, reason) = match last.indicator <= self.tau {
            true => (all.len() - 1, format!("no safe ratio has {} % fewer wavefronts", self.omega)),
            false => {
                (0, format!("no ratio is safe: not even the last has an indicator of {} or less", self.tau))
            }
        };
        Selection { candidates: all, taken, reason }
    }

    /// Decides what is dropped.
    pub(super) fn choose(self, a: &Csr<f64>) -> (Sparsification, Vec<bool>) {
        let trial = Trial::new(a, PERCENT[0]);
        let found = self.select(trial.wavefronts, PERCENT.into_iter().map(|percent| trial.of(percent)));
        trial.conclude(found)
    }
}

/// Decides nothing: so many percent.
pub(super) fn by_percent(a: &Csr<f64>, percent: f64) -> (Sparsification, Vec<bool>) {
    let trial = Trial::new(a, percent);
    let candidates = vec![trial.of(percent)];
    trial.conclude(Selection { candidates, taken: 0, reason: "as asked".into() })
}

/// Ratios of one matrix.
struct Trial<'a> {
    a: &'a Csr<f64>,
    ranking: Ranking<'a>,
    wavefronts: usize,
}

impl<'a> Trial<'a> {
    fn new(a: &'a Csr<f64>, most: f64) -> Self {
        Trial { a, ranking: Ranking::new(a, most), wavefronts: count_wavefronts(a.pattern(), |_| true) }
    }

    fn of(&self, percent: f64) -> Candidate {
        let dropped = self.ranking.dropped(percent);
        let kept = self.ranking.kept(dropped);
        Candidate {
            percent,
            dropped: kept.iter().filter(|&&kept| !kept).count(),
            indicator: indicator(self.a, &kept),
            wavefronts: count_wavefronts(self.a.pattern(), |place| kept[place]),
        }
    }

    fn conclude(self, found: Selection) -> (Sparsification, Vec<bool>) {
        let Selection { candidates, taken, reason } = found;
        let kept = self.ranking.kept(self.ranking.dropped(candidates[taken].percent));
        let (wavefronts, taken) = (Some(self.wavefronts), Some(taken));
        (Sparsification { wavefronts, candidates, taken, reason, shift: 0.0 }, kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gallery::Problem;
    use crate::matrix::Triangle;
    use crate::schedule::Wavefronts;

    /// A chain of weights w: row i needs row i − 1.
    fn chain(weights: &[f64]) -> Csr<f64> {
        let n = weights.len() + 1;
        let off = weights.iter().enumerate().flat_map(|(i, &w)| [(i, i + 1, -w), (i + 1, i, -w)]);
        Csr::from_entries(n, n, off.chain((0..n).map(|i| (i, i, 2.0)))).unwrap()
    }

    #[test]
    fn wavefronts_are_those_of_the_schedule() {
        for name in ["poisson2d:9", "fem2d:12", "jump3d:6"] {
            let a = name.parse::<Problem>().unwrap().generate().unwrap();
            let expected = Wavefronts::new(a.pattern(), Triangle::Lower).unwrap().count();
            assert_eq!(count_wavefronts(a.pattern(), |_| true), expected);
        }
    }

    /// Ten rows, 19 entries in the triangle: 10 % is one pair. The weak link in the middle halves the chain, and ‖S‖∞ / min aᵢᵢ = 0.01 / 2.
    #[test]
    fn a_weak_link_is_dropped() {
        let a = chain(&[1.0, 1.0, 1.0, 1.0, 0.01, 1.0, 1.0, 1.0, 1.0]);
        let (found, kept) = Paper::default().choose(&a);
        assert_eq!((found.wavefronts, found.taken), (Some(10), Some(0)));
        let Candidate { percent, dropped, indicator, wavefronts } = found.candidates[0];
        assert_eq!((percent, dropped, wavefronts), (10.0, 2, 5));
        assert!((indicator - 0.005).abs() < 1e-15);
        assert_eq!(kept.iter().filter(|&&kept| !kept).count(), 2);
    }

    /// Dropping (2, 1) of a chain of ones costs 1 / 2 of the diagonal: not safe for τ = 0.1. 5 % and 1 % of 19 are none, which is safe and gains nothing.
    #[test]
    fn what_is_not_safe_is_not_dropped_and_one_percent_is_the_end() {
        let a = chain(&[1.0; 9]);
        let (found, kept) = Paper { tau: 0.1, omega: 10.0 }.choose(&a);
        assert_eq!((found.taken, found.candidates.len()), (Some(2), 3));
        assert!(kept.iter().all(|&kept| kept) && found.reason.starts_with("no safe ratio"), "{found:?}");
    }

    /// With a diagonal that is not positive nothing is safe, and then the algorithm takes 10 %.
    #[test]
    fn where_nothing_is_safe_the_most_is_dropped() {
        let mut a = chain(&[1.0; 9]);
        let last = a.nnz() - 1;
        a.values_mut()[last] = -2.0;
        let (found, kept) = Paper::default().choose(&a);
        assert_eq!(found.taken, Some(0));
        assert!(found.reason.starts_with("no ratio is safe") && kept.iter().any(|&kept| !kept));
    }
}
