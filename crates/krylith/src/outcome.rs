//! How a solve ends, what it recovers from, and the seconds of its phases.

use crate::error::SetupError;
use serde::{Deserialize, Serialize};

/// How a solve ended. [`Converged`](Outcome::Converged) is said of the recomputed residual only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Outcome {
    /// ‖b − A x‖₂ ≤ max(rtol ‖b‖₂, atol), recomputed from A, x and b.
    Converged,
    /// The limit of iterations is reached.
    MaxIterations,
    /// The answer is at the limit of the arithmetic: its backward error is that of rounding, but the tolerance asks for more. Or A is nearly
    /// singular ([`Certificate::null_vector`](crate::report::Certificate::null_vector)): an x within the tolerance would be so large that rounding its entries alone changes A x by more.
    AttainableAccuracy,
    /// x is the least squares of a singular A, up to rounding of its entries: b has a part y outside of its range, larger than the tolerance, with Aᵀy zero up to rounding
    /// ([`Certificate::null_vector`](crate::report::Certificate::null_vector), whose level says whether any rounding is left), and ‖b − y − A x‖₂ ≤ max(rtol ‖b − y‖₂, atol) + 4 ε ‖b‖₂. Of least norm where the null
    /// space of A is known as a whole.
    LeastSquares,
    /// A is singular and b is not in its range: a vector y with Aᵀy = 0, without any rounding, and yᵀb ≠ 0 ([`Certificate::null_vector`](crate::report::Certificate::null_vector)) proves that no x meets the tolerance. x is the best that was found.
    Singular,
    /// The residual has grown beyond 1/ε times the least one, or the iteration came to numbers that are not finite.
    Diverged,
    /// The method cannot go on.
    Breakdown,
    /// A is not positive definite, as the method needs it.
    IndefiniteOperator,
    /// The preconditioner is not positive definite, as the method needs it.
    IndefinitePreconditioner,
    /// An infinite number or NaN came up in the first iteration.
    NotFinite,
    /// The observer ended it.
    Interrupted,
}

impl Outcome {
    /// The name in reports, such as `max_iterations`.
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Converged => "converged",
            Outcome::MaxIterations => "max_iterations",
            Outcome::AttainableAccuracy => "attainable_accuracy",
            Outcome::LeastSquares => "least_squares",
            Outcome::Singular => "singular",
            Outcome::Diverged => "diverged",
            Outcome::Breakdown => "breakdown",
            Outcome::IndefiniteOperator => "indefinite_operator",
            Outcome::IndefinitePreconditioner => "indefinite_preconditioner",
            Outcome::NotFinite => "not_finite",
            Outcome::Interrupted => "interrupted",
        }
    }
}

/// A step that was taken because another one failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Recovery {
    /// What failed.
    pub failed: String,
    /// The row concerned, counted from 0, where there is one.
    pub row: Option<usize>,
    /// The value found there.
    pub value: Option<f64>,
    /// What was done instead.
    pub action: String,
}

impl Recovery {
    /// What was done after an error of a set-up, with the place that the error names.
    pub(crate) fn after(failed: String, error: &SetupError, action: String) -> Self {
        let (row, value) = match *error {
            SetupError::BadPivot { row, value } => (Some(row), Some(value)),
            SetupError::MissingDiagonal { row } => (Some(row), None),
            _ => (None, None),
        };
        Recovery { failed, row, value, action }
    }
}

/// Seconds by phase.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Seconds {
    /// Everything that depends on the pattern alone.
    pub analyze: f64,
    /// The numbers of the preconditioner.
    pub factor: f64,
    /// Copying A and the factor to a device.
    #[serde(default)]
    pub copy: f64,
    /// Iterating, and recomputing residuals.
    pub solve: f64,
}
