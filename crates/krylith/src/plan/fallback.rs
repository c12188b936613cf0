//! What follows a failure.

use crate::error::{BackendError, SetupError};
use crate::options::Method;
use crate::outcome::Outcome;
use crate::precond::PrecondSpec;
use crate::transform::Ordering;
use serde::{Deserialize, Serialize};
use std::fmt::{Display, Formatter};

/// A kind of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Failure {
    /// A pivot of the factor cannot be divided by.
    BadPivot,
    /// A row has no diagonal entry.
    MissingDiagonal,
    /// The factor would take more memory than there is, or out of proportion to A.
    MemoryLimit,
    /// A is not positive definite.
    IndefiniteOperator,
    /// M is not positive definite.
    IndefinitePreconditioner,
    /// The method cannot go on.
    Breakdown,
    /// The residual has grown without bound.
    Diverged,
    /// Numbers that are not finite came up in the first iteration.
    NotFinite,
    /// What is left of the run is predicted to cost more than what follows.
    Slow,
    /// It is proven that no x meets the tolerance.
    Singular,
    /// An x that meets the tolerance, if there is one, is larger than `f64` has digits for.
    NearlySingular,
}

impl Failure {
    /// Of a set-up, if there may be something to do about it.
    pub(crate) fn of_setup(error: &SetupError) -> Option<Self> {
        match error {
            SetupError::BadPivot { .. } => Some(Failure::BadPivot),
            SetupError::MissingDiagonal { .. } => Some(Failure::MissingDiagonal),
            SetupError::MemoryLimit { .. } | SetupError::Backend(BackendError::OutOfMemory { .. }) => {
                Some(Failure::MemoryLimit)
            }
            _ => None,
        }
    }

    /// Of a method, if there may be something to do about it.
    pub(crate) fn of_method(outcome: Outcome, slow: bool) -> Option<Self> {
        match outcome {
            _ if slow => Some(Failure::Slow),
            Outcome::IndefiniteOperator => Some(Failure::IndefiniteOperator),
            Outcome::IndefinitePreconditioner => Some(Failure::IndefinitePreconditioner),
            Outcome::Breakdown => Some(Failure::Breakdown),
            Outcome::Diverged => Some(Failure::Diverged),
            Outcome::NotFinite => Some(Failure::NotFinite),
            _ => None,
        }
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Failure::BadPivot => "a bad pivot",
            Failure::MissingDiagonal => "a missing diagonal entry",
            Failure::MemoryLimit => "a factor that is too large",
            Failure::IndefiniteOperator => "an indefinite A",
            Failure::IndefinitePreconditioner => "an indefinite M",
            Failure::Breakdown => "a breakdown of the method",
            Failure::Diverged => "divergence",
            Failure::NotFinite => "numbers that are not finite",
            Failure::Slow => "slow progress",
            Failure::Singular => "a proof that no x meets the tolerance",
            Failure::NearlySingular => "a nearly singular A",
        })
    }
}

/// What is done about a failure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Remedy {
    /// The diagonal of A is enlarged for the factor, by as little as works.
    ShiftDiagonal,
    /// A weaker preconditioner that takes less memory ([`PrecondSpec::weaker`]); as often as there is one.
    LessFill,
    /// The diagonal alone, in a form that cannot fail.
    Diagonal,
    /// The same in `f64`, for this right-hand side alone.
    DoublePrecision,
    /// Another method, for this right-hand side alone.
    Method {
        /// The method.
        method: Method,
        /// Its preconditioner; the prepared one if not given.
        preconditioner: Option<PrecondSpec>,
        /// The order of rows and columns; that of the plan if not given.
        #[serde(default)]
        ordering: Option<Ordering>,
    },
}

impl Remedy {
    /// This method with this preconditioner.
    pub fn with(method: Method, preconditioner: PrecondSpec) -> Self {
        Remedy::Method { method, preconditioner: Some(preconditioner), ordering: None }
    }

    /// The preconditioner that it sets up, if it does.
    pub(crate) fn preconditioner(&self) -> Option<&PrecondSpec> {
        match self {
            Remedy::Method { preconditioner, .. } => preconditioner.as_ref(),
            _ => None,
        }
    }

    /// This method with the prepared preconditioner.
    pub fn on_first(method: Method) -> Self {
        Remedy::Method { method, preconditioner: None, ordering: None }
    }
}

impl Display for Remedy {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Remedy::ShiftDiagonal => f.write_str("the diagonal is shifted, by as little as works"),
            Remedy::LessFill => f.write_str("less fill"),
            Remedy::Diagonal => f.write_str("the diagonal, or the largest entry of a row where it has none"),
            Remedy::DoublePrecision => f.write_str("the same in f64"),
            Remedy::Method { method, preconditioner: Some(preconditioner), ordering } => {
                write!(f, "{method} with {preconditioner}")?;
                ordering.map_or(Ok(()), |ordering| write!(f, ", rows and columns by {ordering}"))
            }
            Remedy::Method { method, preconditioner: None, .. } => {
                write!(f, "{method} with the first preconditioner")
            }
        }
    }
}

/// What is done after these failures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Fallback {
    /// The failures.
    pub after: Vec<Failure>,
    /// What is done.
    pub then: Remedy,
}

impl Fallback {
    /// This remedy after these failures.
    pub fn new(after: impl Into<Vec<Failure>>, then: Remedy) -> Self {
        Fallback { after: after.into(), then }
    }
}

impl Display for Fallback {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let after = Vec::from_iter(self.after.iter().map(Failure::to_string)).join(" or ");
        write!(f, "after {after}: {}", self.then)
    }
}
