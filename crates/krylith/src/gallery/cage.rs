//! A random walk with drift on words of the digits 0, 1 and 2: I − 0.95 P.
//!
//! A state is the number of a word in base 3. In a step one digit, each as likely, goes up with probability 0.6 and down with 0.4; a step that would leave the digits or the
//! numbers of states stays where it is. P holds the steps to other states, so rows of P sum to at most 1 and A is dominated by its diagonal. Numbers, not positions, are neighbours, so
//! rows are far from their columns, as in a model of polymers that creep through a gel. 667 x 667 states are near cage13 (n = 445,315, nnz = 7,479,343), with 16.1 entries per row for 16.8. The numbers are
//! others: BiCGStab with ILU(0) takes 4 iterations to 1e-7, on cage13 2.5 (benchmarks/runs/2026-11-18-nvidia).
//! Reference: van Heukelum, Barkema & Bisseling 2002, doi:10.1006/jcph.2002.7095.

use super::grid::Grid;
use crate::error::MatrixError;
use crate::matrix::Csr;

const UP: f64 = 0.6;
const DOWN: f64 = 0.4;
const DAMPING: f64 = 0.95;

/// At most: every digit goes both ways in half of the words.
pub(super) fn cage_nnz(grid: &Grid) -> u64 {
    let n = grid.len() as u64;
    n + powers(n).map(|power| 2 * up(n, power)).sum::<u64>()
}

/// The powers of 3 below the number of states: what a digit counts.
fn powers(n: u64) -> impl DoubleEndedIterator<Item = u64> {
    let count = (0..).take_while(|&k| 3u64.pow(k) < n).count() as u32;
    (0..count).map(|k| 3u64.pow(k))
}

/// States whose digit for this power can go up to another state.
fn up(n: u64, power: u64) -> u64 {
    // States from 0 to n - power - 1 whose digit is below 2.
    let states = n.saturating_sub(power);
    let (whole, rest) = (states / (3 * power), states % (3 * power));
    2 * power * whole + rest.min(2 * power)
}

pub(super) fn cage(grid: &Grid) -> Result<Csr<f64>, MatrixError> {
    let n = grid.len() as u64;
    let digits = powers(n).count().max(1) as f64;
    let down = |i: u64, power: u64| (!(i / power).is_multiple_of(3)).then(|| i - power);
    let raised = |i: u64, power: u64| (i / power % 3 < 2 && i + power < n).then(|| i + power);
    Csr::from_rows(
        n as usize,
        n as usize,
        |i| {
            let i = i as u64;
            1 + powers(n).map(|p| down(i, p).iter().count() + raised(i, p).iter().count()).sum::<usize>()
        },
        |i, columns, values| {
            let i = i as u64;
            let lower = powers(n).rev().filter_map(|power| Some((down(i, power)?, -DAMPING * DOWN / digits)));
            let upper = powers(n).filter_map(|power| Some((raised(i, power)?, -DAMPING * UP / digits)));
            for (k, (j, value)) in lower.chain([(i, 1.0)]).chain(upper).enumerate() {
                (columns[k], values[k]) = (j as u32, value);
            }
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Five states: words 00, 01, 02, 10, 11.
    #[test]
    fn five_states_by_hand() {
        let a = cage(&Grid { n: [5, 1, 1] }).unwrap();
        let (up, down) = (-DAMPING * UP / 2.0, -DAMPING * DOWN / 2.0);
        let rows: Vec<(&[u32], &[f64])> = (0..5).map(|i| a.row(i)).collect();
        assert_eq!(rows[0], (&[0, 1, 3][..], &[1.0, up, up][..]));
        assert_eq!(rows[1], (&[0, 1, 2, 4][..], &[down, 1.0, up, up][..]));
        assert_eq!(rows[2], (&[1, 2][..], &[down, 1.0][..]));
        assert_eq!(rows[3], (&[0, 3, 4][..], &[down, 1.0, up][..]));
        assert_eq!(rows[4], (&[1, 3, 4][..], &[down, down, 1.0][..]));
        assert_eq!(cage_nnz(&Grid { n: [5, 1, 1] }), a.nnz() as u64);
    }
}
