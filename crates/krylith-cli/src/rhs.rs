//! The right-hand side of a solve, and whether it can show anything.

use crate::Failure;
use crate::args::{Rhs, STANDARD_INPUT, Solve, is_standard};
use crate::input::read_vector;
use krylith::Csr;
use krylith::gallery::random_vector;
use rayon::prelude::*;

/// b, and where it came from.
pub struct RightHandSide {
    pub values: Vec<f64>,
    /// For people.
    pub origin: String,
    /// Why a solve with this b shows nothing, and what to do; `None` for a b that is not zero.
    pub warning: Option<&'static str>,
}

/// `ones`, `random`, `product` or `file`, by the options.
pub fn name(options: &Solve) -> &'static str {
    match (&options.b, options.rhs) {
        (Some(_), _) => "file",
        (None, Rhs::Ones) => "ones",
        (None, Rhs::Random) => "random",
        (None, Rhs::Product) => "product",
    }
}

impl RightHandSide {
    pub fn new(options: &Solve, a: &Csr<f64>) -> Result<Self, Failure> {
        if let Some(path) = &options.b {
            let values = read_vector(path, &options.input.read_options())?;
            let origin = if is_standard(path) { STANDARD_INPUT.into() } else { path.display().to_string() };
            if values.len() != a.nrows() {
                let (found, rows) = (values.len(), a.nrows());
                return Err(format!("{origin}: {found} entries, the matrix has {rows} rows").into());
            }
            let warning = is_zero(&values).then_some("b is zero, and x = 0 is the answer without a solve");
            return Ok(RightHandSide { values, origin, warning });
        }
        match options.rhs {
            Rhs::Ones => {
                let mut values = vec![0.0; a.nrows()];
                a.mul_vec(&vec![1.0; a.ncols()], &mut values)?;
                let warning = if is_zero(&values) {
                    Some(
                        "A times ones is zero: x = 0 is the answer at once, and this solve shows nothing; \
                         try --rhs product, --rhs random or -b FILE",
                    )
                } else if is_rounding(a, &values) {
                    Some(
                        "A times ones is zero but for rounding: b is noise, and this solve shows nothing; \
                         try --rhs product, --rhs random or -b FILE",
                    )
                } else {
                    None
                };
                let origin =
                    "A times a vector of ones, which then solves the system (others: --rhs random, -b FILE)";
                Ok(RightHandSide { values, origin: origin.into(), warning })
            }
            Rhs::Random => {
                let origin = "pseudo-random numbers in [-1, 1), the same on every machine";
                let values = random_vector(a.nrows());
                Ok(RightHandSide { values, origin: origin.into(), warning: None })
            }
            Rhs::Product => {
                let origin = "A times pseudo-random numbers in [-1, 1), the same on every machine";
                let mut values = vec![0.0; a.nrows()];
                a.mul_vec(&random_vector(a.ncols()), &mut values)?;
                Ok(RightHandSide { values, origin: origin.into(), warning: None })
            }
        }
    }
}

/// Whether there is a b, and every entry of it is zero.
fn is_zero(b: &[f64]) -> bool {
    !b.is_empty() && b.par_iter().all(|&v| v == 0.0)
}

/// Whether every entry of b = A 1 is within the bound of its own rounding: (entries of the row) · ε · Σ|aᵢⱼ|.
fn is_rounding(a: &Csr<f64>, b: &[f64]) -> bool {
    !b.is_empty()
        && b.par_iter().enumerate().all(|(i, &v)| {
            let (_, row) = a.row(i);
            v.abs() <= row.len() as f64 * f64::EPSILON * row.iter().map(|v| v.abs()).sum::<f64>()
        })
}
