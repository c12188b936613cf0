//! Right-hand sides of the studies, and residuals of answers.
//!
//! A·1 is the usual one and an easy one: where the rows of A sum to nearly zero it is small, its answer is smooth, and some
//! preconditioners reach it in a few iterations that need thousands for another b. A random one favours nobody.

use clap::ValueEnum;
use krylith::Csr;
use krylith::gallery::random_vector;
use serde::{Deserialize, Serialize};

/// Which right-hand sides a study takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Choice {
    /// b = A·1
    #[default]
    Ones,
    /// Fixed pseudo-random numbers, uniform in [-1, 1)
    Random,
    /// Both, one after the other
    Both,
}

impl Choice {
    /// In the order of the tables.
    pub fn sides(self) -> &'static [Rhs] {
        match self {
            Choice::Ones => &[Rhs::Ones],
            Choice::Random => &[Rhs::Random],
            Choice::Both => &[Rhs::Ones, Rhs::Random],
        }
    }
}

/// A right-hand side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rhs {
    /// A·1; what records have that were kept before there was another.
    #[default]
    Ones,
    /// `krylith::gallery::random_vector`.
    Random,
}

impl Rhs {
    /// b; A·1 is summed row by row from left to right.
    pub fn vector(self, a: &Csr<f64>) -> Vec<f64> {
        match self {
            Rhs::Ones => (0..a.nrows()).map(|i| a.row(i).1.iter().sum()).collect(),
            Rhs::Random => random_vector(a.nrows()),
        }
    }

    /// The name in records.
    pub fn name(self) -> &'static str {
        match self {
            Rhs::Ones => "ones",
            Rhs::Random => "random",
        }
    }

    /// The formula in reports.
    pub fn formula(self) -> &'static str {
        match self {
            Rhs::Ones => "b = A·1",
            Rhs::Random => "b random, uniform in [−1, 1) from a fixed seed",
        }
    }
}

/// ‖b − A x‖₂ / ‖b‖₂, or ‖b − A x‖₂ for b = 0, summed from left to right.
pub fn relative_residual(a: &Csr<f64>, x: &[f64], b: &[f64]) -> f64 {
    let residual = |i: usize| {
        let (columns, values) = a.row(i);
        b[i] - columns.iter().zip(values).map(|(&j, v)| v * x[j as usize]).sum::<f64>()
    };
    let square: f64 = (0..a.nrows()).map(|i| residual(i).powi(2)).sum();
    let size: f64 = b.iter().map(|b| b * b).sum();
    if size > 0.0 { (square / size).sqrt() } else { square.sqrt() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn right_hand_sides() {
        let a = Csr::new(2, 2, vec![0, 1, 3], vec![0, 0, 1], vec![3.0, 1.0, 3.0]).unwrap();
        assert_eq!(Rhs::Ones.vector(&a), [3.0, 4.0]);
        assert_eq!(Rhs::Random.vector(&a), random_vector(2));
        assert_eq!(relative_residual(&a, &[1.0, 0.0], &[3.0, 4.0]), 3.0 / 5.0);
        assert_eq!(Choice::Both.sides(), [Choice::Ones.sides(), Choice::Random.sides()].concat());
    }
}
