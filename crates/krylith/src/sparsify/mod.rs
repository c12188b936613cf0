//! Wavefront-aware sparsification: the preconditioner is made from Â, which is A without some small entries, so that the chains of rows that need each other in
//! sweeps are shorter.
//!
//! The Krylov method iterates on A, always, and the answer is certified on A; only M is made from Â. The placement follows Â, so that slices and schedules
//! have its longer wavefronts. [`Sparsify`] is what a solve can be asked for, [`Sparsification`] what was decided, [`Sparsified`] the matrix.
//!
//! ```
//! use krylith::{Solver, gallery::Problem, sparsify::Sparsify};
//! let a = "fem2d:40".parse::<Problem>()?.generate()?;
//! let b = vec![1.0; a.nrows()];
//! let report = Solver::new().sparsify(Sparsify::paper()).solve(&a, &b)?.report;
//! let found = report.plan.sparsification.as_ref().unwrap();
//! assert!(found.chosen().unwrap().wavefronts <= found.wavefronts.unwrap());
//! report.require_converged()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Reference: Ma, Ahmad, Cheshmi, Sundar & Hall 2025, Sparsified Preconditioned Conjugate Gradient Solver on GPUs, and how its Algorithm 2 is read here in
//! `paper`.

mod paper;
mod ranking;
mod sparsified;

pub use paper::Paper;
pub use sparsified::{Compensation, Sparsified};

use crate::error::SolveError;
use crate::matrix::Csr;
use crate::names;
use crate::precond::registry::NameError;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt::{Display, Formatter};
use std::str::FromStr;

/// Whether the preconditioner is made from a sparser matrix than A, and which.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub enum Sparsify {
    /// From A.
    #[default]
    Off,
    /// By Algorithm 2 of the paper.
    Paper(Paper),
    /// Without so many percent of the lower triangle, the smallest ones.
    Percent(f64),
}

impl Sparsify {
    /// Algorithm 2 with τ = 1 and ω = 10 %.
    pub fn paper() -> Self {
        Sparsify::Paper(Paper::default())
    }

    /// `Err(Option)` for a number that means nothing.
    pub(crate) fn validate(self) -> Result<(), SolveError> {
        let sound = match self {
            Sparsify::Off => true,
            Sparsify::Paper(Paper { tau, omega }) => tau >= 0.0 && (0.0..=100.0).contains(&omega),
            Sparsify::Percent(percent) => (0.0..=100.0).contains(&percent),
        };
        match sound {
            true => Ok(()),
            false => Err(SolveError::Option {
                name: "sparsify",
                value: self.to_string(),
                needed: "percentages are from 0 to 100, and TAU is not negative".into(),
            }),
        }
    }

    /// Decides what to drop from a matrix, and drops it; nothing where that is off.
    pub fn apply(self, a: &Csr<f64>) -> Option<(Sparsification, Sparsified)> {
        let (found, kept) = match self {
            Sparsify::Off => return None,
            Sparsify::Paper(paper) => paper.choose(a),
            Sparsify::Percent(percent) => paper::by_percent(a, percent),
        };
        Some((found, Sparsified::new(a, kept, Compensation::None)))
    }
}

/// What was decided, and by which figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Sparsification {
    /// Wavefronts of the lower triangle of A, where they were counted.
    pub wavefronts: Option<usize>,
    /// What was tried, in order.
    pub candidates: Vec<Candidate>,
    /// Which of them is taken; none if A stays as it is.
    pub taken: Option<usize>,
    /// Why.
    pub reason: String,
}

/// A matrix without some of its entries.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Candidate {
    /// The percentage of the lower triangle with its diagonal that may be dropped.
    pub percent: f64,
    /// Entries that are dropped, of both triangles.
    pub dropped: usize,
    /// ‖S‖∞ / min aᵢᵢ, S being what is dropped: a bound of ‖Â⁻¹ S‖ if the least eigenvalue were the least entry of the diagonal.
    #[serde(with = "infinite")]
    pub indicator: f64,
    /// Wavefronts that are left.
    pub wavefronts: usize,
}

impl Candidate {
    /// By how many percent of these wavefronts there are fewer.
    pub fn reduction(&self, before: usize) -> f64 {
        100.0 * (before as f64 - self.wavefronts as f64) / before.max(1) as f64
    }
}

impl Sparsification {
    /// A is not sparsified, for this reason.
    pub(crate) fn refused(reason: String) -> Self {
        Sparsification { wavefronts: None, candidates: Vec::new(), taken: None, reason }
    }

    /// What is taken.
    pub fn chosen(&self) -> Option<&Candidate> {
        self.candidates.get(self.taken?)
    }
}

impl Display for Sparsification {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self.chosen() {
            None => write!(f, "nothing is dropped: {}", self.reason),
            Some(taken) => write!(
                f,
                "{} entries are dropped, {} of {} wavefronts are left: {}",
                taken.dropped,
                taken.wavefronts,
                self.wavefronts.unwrap_or(0),
                self.reason
            ),
        }
    }
}

/// JSON has no infinity: it is `null`.
mod infinite {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
        value.is_finite().then_some(*value).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
        Ok(Option::deserialize(deserializer)?.unwrap_or(f64::INFINITY))
    }
}

impl Display for Sparsify {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match *self {
            Sparsify::Off => f.write_str("off"),
            Sparsify::Paper(paper) if paper == Paper::default() => f.write_str("paper"),
            Sparsify::Paper(Paper { tau, omega }) => write!(f, "paper({tau},{omega})"),
            Sparsify::Percent(percent) => write!(f, "{percent}"),
        }
    }
}

/// `off`, `paper`, `paper(TAU,OMEGA)` or a percentage.
impl FromStr for Sparsify {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let name = text.trim().to_ascii_lowercase();
        let number = |text: &str, most: f64| {
            text.trim().parse().ok().filter(|value: &f64| (0.0..=most).contains(value))
        };
        let thresholds = |text: &str| {
            let (tau, omega) = text.strip_prefix("paper(")?.strip_suffix(')')?.split_once(',')?;
            Some(Sparsify::Paper(Paper { tau: number(tau, f64::MAX)?, omega: number(omega, 100.0)? }))
        };
        match name.as_str() {
            "off" => Ok(Sparsify::Off),
            "paper" => Ok(Sparsify::paper()),
            other => thresholds(other)
                .or_else(|| number(other.trim_end_matches('%'), 100.0).map(Sparsify::Percent))
                .ok_or_else(|| NameError::Unknown {
                    what: "sparsification",
                    name: text.to_owned(),
                    hint: names::hint(
                        text,
                        &["off", "paper", "paper(TAU,OMEGA)", "a percentage from 0 to 100"],
                    ),
                }),
        }
    }
}

impl Serialize for Sparsify {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Sparsify {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Cow::<str>::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}
