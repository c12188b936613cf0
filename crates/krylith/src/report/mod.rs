//! What a solve did, what it reached and why it did it that way.

pub mod advice;

pub(crate) mod of_solve;

pub use crate::error::counted_from_one;
pub use crate::outcome::{Recovery, Seconds};
pub use crate::space::device_report::{DeviceReport, KernelTime};
pub use of_solve::NotConverged;
pub(crate) use of_solve::Report;

use crate::options::{Method, Precision};
use crate::precond::PrecondSpec;
use crate::transform::Ordering;
use serde::{Deserialize, Deserializer, Serialize};
use std::borrow::Cow;

/// A method that ran, in the order in which they did: the planned one, and after it what the plan has for how that ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Rung {
    /// The method.
    pub method: Method,
    /// Its preconditioner.
    pub preconditioner: PrecondSpec,
    /// In which numbers factors were asked for.
    pub precision: Precision,
    /// The order of rows and columns.
    pub ordering: Ordering,
    /// Its iterations.
    pub iterations: usize,
    /// Seconds of its set-up and iterations.
    pub seconds: f64,
    /// What was predicted: seconds of the plan's machine; none where nothing was.
    pub predicted_seconds: Option<f64>,
    /// ‖b − A x‖₂ / ‖b‖₂ of the best x when it ended, recomputed.
    #[serde(deserialize_with = "number")]
    pub relative_residual: f64,
    /// Why it was left; none for the last.
    pub left: Option<String>,
}

/// How the residual of an answer was recomputed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Certificate {
    /// `f64`, `double-double` where the rounding of `f64` left the question open, or `f64 without a bound` for an operator without a
    /// matrix.
    pub arithmetic: Cow<'static, str>,
    /// What the residual met or did not: `tolerance`, or `the caller's` criterion.
    pub criterion: Cow<'static, str>,
    /// What ‖b − A x‖₂ / ‖b‖₂ is at most, the rounding of the recomputed residual included.
    pub residual_bound: Option<f64>,
    /// Why no x has a small residual, where that was found.
    #[serde(default)]
    pub null_vector: Option<NullVector>,
}

/// A vector y with Aᵀy ≈ 0. For every x, yᵀ(b − A x) = yᵀb − (Aᵀy)ᵀx, so that a residual much smaller than |yᵀb| / ‖y‖ needs a large x, and
/// cannot be had where Aᵀy = 0. Anyone can check it: [`Csr::transpose`](crate::Csr::transpose) and a product.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct NullVector {
    /// How close Aᵀy is to zero.
    pub level: NullLevel,
    /// y; of several processes, this one's part.
    pub y: Vec<f64>,
    /// The digits of y that `y` has no room for; empty where they are zero.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub y_low: Vec<f64>,
    /// ‖Aᵀy‖₂ / ‖|A|ᵀ|y|‖₂, evaluated in double-double.
    pub product: f64,
    /// |yᵀb| / (‖y‖₂ ‖b‖₂): with Aᵀy = 0, no x has a smaller relative residual.
    pub least_residual: f64,
}

/// How close Aᵀy is to zero, from the weakest statement to the strongest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum NullLevel {
    /// So close that an x within the tolerance is larger than `f64` has digits for: A is nearly singular.
    Nearly,
    /// Zero up to the rounding of y and of the products in `f64`, columns scaled to a largest entry of 1.
    Rounding,
    /// Zero without any rounding: A is singular.
    Exact,
}

/// A number that JSON has as `null` because it is not finite.
fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::<f64>::deserialize(deserializer)?.unwrap_or(f64::NAN))
}

fn numbers<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<f64>, D::Error> {
    let numbers = Vec::<Option<f64>>::deserialize(deserializer)?;
    Ok(numbers.into_iter().map(|number| number.unwrap_or(f64::NAN)).collect())
}
