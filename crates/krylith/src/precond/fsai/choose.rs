//! τ, k and δ where the caller leaves them to the matrix.
//!
//! The cost of a set-up grows faster than the entries of S, that of an iteration follows from those of A and G. So k is the largest power up to
//! [`MOST_POWER`] with which rows of S have at most [`ENTRIES`] entries, as the root mean square over a sample: matrices with few strong couplings get a
//! high power, those with many unknowns per point the first. τ is 0.1, or less where hardly any coupling is so strong, so that something is left. δ is τ: it brings G back to
//! fewer entries than A has. The first power is not filtered.
//!
//! The figures come from trials that are not kept; the kept run compares 17 settings of approximate inverses on 12 problems (`docs/inverses.md`).

use super::pattern::roots_of_diagonal;
use super::rows::MOST_INDICES;
use super::{Fsai, PatternRule};
use crate::facts::Facts;
use crate::matrix::Csr;
use std::collections::HashSet;

/// Entries of a row of S at most, as a root mean square.
const ENTRIES: f64 = 16.0;

/// Powers at most.
pub(super) const MOST_POWER: usize = 8;

/// Values of τ that are tried, falling.
const TAUS: [f64; 4] = [0.1, 0.05, 0.02, 0.01];

/// Entries per row of Low(Ã) below which a smaller τ is tried: one row in two has something besides its diagonal.
const FEW: f64 = 1.5;

/// Rows of a sample.
const SAMPLE: usize = 256;

/// Entries of A that are looked at for a row.
const MOST_LOOKED_AT: usize = 1 << 14;

/// What an approximate inverse is likely to have.
pub(crate) struct LikelySize {
    /// Entries of S.
    pub(crate) pattern: f64,
    /// Entries of G after the filter.
    pub(crate) entries: f64,
    /// S grows by values.
    pub(crate) grows: bool,
}

impl Fsai {
    /// What it is likely to have for a matrix with these facts, from runs of the default settings: the entries of a few rows are not looked at for a
    /// proposal.
    pub(crate) fn predicted(&self, facts: &Facts) -> LikelySize {
        let rows = facts.rows.max(1) as f64;
        let of_a_row = facts.entries as f64 / rows;
        let grows = matches!(self.pattern, PatternRule::Adaptive(_));
        let (pattern, entries) = if grows {
            (15.0, (1.1 * of_a_row).min(12.0))
        } else {
            (0.8 * ENTRIES, (0.7 * of_a_row).min(10.0))
        };
        LikelySize { pattern: rows * pattern, entries: rows * entries, grows }
    }
}

/// τ and k for a matrix, where they are not `given`.
pub(super) fn tau_and_power(a: &Csr<f64>, given: (Option<f64>, Option<usize>)) -> (f64, usize) {
    let roots = std::cell::OnceCell::new();
    let count = |tau| Ok(Counts::of(a, roots.get_or_init(|| roots_of_diagonal(a)), tau));
    tau_and_power_by(given, count).unwrap_or_else(|never: std::convert::Infallible| match never {})
}

/// The same for a matrix whose rows are counted by `count`.
pub(super) fn tau_and_power_by<E>(
    given: (Option<f64>, Option<usize>),
    mut count: impl FnMut(f64) -> Result<Counts, E>,
) -> Result<(f64, usize), E> {
    if let (Some(tau), Some(power)) = given {
        return Ok((tau, power.max(1)));
    }
    let has_few = |counts: &Counts| counts.0[0] < FEW;
    let fits = |(_, counts): &(f64, Counts)| !has_few(counts) && counts.0[0] <= ENTRIES;
    let tau = given.0.unwrap_or(TAUS[0]);
    let first = (tau, count(tau)?);
    let mut chosen = first;
    if given.0.is_none() && has_few(&first.1) {
        // Where no other fits, the matrix is dominated by its diagonal, or has many couplings that are all weak.
        for &tau in &TAUS[1..] {
            let other = (tau, count(tau)?);
            if fits(&other) {
                chosen = other;
                break;
            }
        }
    }
    let (tau, counts) = chosen;
    let largest = counts.0.iter().take_while(|&&of_a_row| of_a_row <= ENTRIES).count().max(1);
    Ok((tau, given.1.map_or(largest, |power| power.max(1))))
}

/// Entries per row of the first powers: the root mean square over a sample.
#[derive(Debug, Clone, Copy)]
pub(super) struct Counts([f64; MOST_POWER]);

impl Counts {
    fn of(a: &Csr<f64>, roots: &[f64], tau: f64) -> Self {
        Self::of_sample(a.nrows(), Self::sample(a.nrows()).map(|row| Self::reached(a, roots, tau, row)))
    }

    /// The sampled rows of a matrix of `n` rows, in order: one from each of equal parts, not always the first, since meshes are periodic.
    pub(super) fn sample(n: usize) -> impl Iterator<Item = usize> {
        let sampled = n.min(SAMPLE);
        (0..sampled).map(move |k| (k * n + (k * 7919) % n) / sampled)
    }

    /// Of what the rows of a sample reach.
    pub(super) fn of_sample(n: usize, rows: impl Iterator<Item = [usize; MOST_POWER]>) -> Self {
        let (sampled, mut counts) = (n.min(SAMPLE), [0.0; MOST_POWER]);
        for row in rows {
            for (sum, found) in counts.iter_mut().zip(row) {
                *sum += (found as f64).powi(2) / sampled as f64;
            }
        }
        Counts(counts.map(f64::sqrt))
    }

    /// Entries of row i after each step.
    pub(super) fn reached(a: &Csr<f64>, roots: &[f64], tau: f64, i: usize) -> [usize; MOST_POWER] {
        let (mut found, mut seen) = (vec![i as u32], HashSet::from([i as u32]));
        let (mut last, mut looked_at) = (0, 0);
        let mut counts = [0; MOST_POWER];
        for count in &mut counts {
            let end = found.len();
            for at in last..end {
                let row = found[at] as usize;
                let (columns, values) = a.row(row);
                for (&j, v) in columns.iter().zip(values).take_while(|&(&j, _)| j as usize <= i) {
                    looked_at += 1;
                    if looked_at > MOST_LOOKED_AT || found.len() >= MOST_INDICES {
                        break;
                    }
                    if v.abs() > tau * roots[row] * roots[j as usize] && seen.insert(j) {
                        found.push(j);
                    }
                }
            }
            last = end;
            *count = found.len();
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gallery::Problem;

    fn chosen(name: &str) -> (f64, usize) {
        let a = name.parse::<Problem>().unwrap().generate().unwrap();
        tau_and_power(&a, (None, None))
    }

    /// 7 entries in the second power of five points, 13 in the third, 22 in the fourth; 13 in the second of seven; weak couplings of 27 points are kept.
    #[test]
    fn the_power_follows_from_the_entries_of_rows() {
        assert_eq!(chosen("poisson2d:60"), (0.1, 3));
        assert_eq!(chosen("poisson3d:20"), (0.1, 2));
        assert_eq!(chosen("hpcg:20"), (0.02, 1));
        assert_eq!(chosen("elasticity3d:8"), (0.1, 1));
        assert_eq!(chosen("apache:40x40x8"), (0.1, MOST_POWER));
    }

    #[test]
    fn what_is_given_is_kept() {
        let a = "poisson2d:60".parse::<Problem>().unwrap().generate().unwrap();
        assert_eq!(tau_and_power(&a, (None, Some(5))), (0.1, 5));
        // A coupling of this matrix is a quarter of the diagonal.
        assert_eq!(tau_and_power(&a, (Some(0.3), None)), (0.3, MOST_POWER));
    }

    /// One row in sixteen has a hub within two steps: the mean of rows would not see it.
    #[test]
    fn few_long_rows_count() {
        let n = 4096;
        let hub = n - n / 16;
        let chain = (0..n).map(|i| (i, i, 2.0));
        let star = (hub..n).flat_map(|i| [(i, 0, -1.0), (0, i, -1.0)]);
        let rest = (1..n / 2).flat_map(|i| [(hub, i, -1.0), (i, hub, -1.0)]);
        let a = Csr::from_entries(n, n, chain.chain(star).chain(rest)).unwrap();
        assert_eq!(tau_and_power(&a, (None, None)), (0.1, 1));
    }

    #[test]
    fn a_matrix_without_rows_has_a_choice() {
        let a = Csr::from_entries(0, 0, std::iter::empty::<(usize, usize, f64)>()).unwrap();
        assert_eq!(tau_and_power(&a, (None, None)).0, 0.1);
    }
}
