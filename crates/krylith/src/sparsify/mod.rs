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

mod auto;
mod chains;
mod paired;
mod paper;
mod ranking;
mod sparsified;

pub(crate) use auto::{LEAST_GAIN, LEAST_GAIN_OF_DEFAULT, Setting};
pub(crate) use paired::{Paired, with_partner};
pub use paper::{Paper, Selection};
pub use sparsified::Sparsified;

use crate::error::SolveError;
use crate::matrix::{Csr, Pattern};
use crate::names;
use crate::names::NameError;
use crate::outcome::Recovery;
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
    /// Small entries of the factor on the longest chains, where that is predicted to be faster on the plan's machine.
    Auto,
    /// Entries of the factor up to this size on the longest chains, whatever that gains: what `Auto` takes if it takes something.
    Chains(f64),
    /// By Algorithm 2 of the paper.
    Paper(Paper),
    /// Without so many percent of the lower triangle, the smallest ones.
    Percent(f64),
}

impl Sparsify {
    /// Small entries of the factor on the longest chains.
    pub fn auto() -> Self {
        Sparsify::Auto
    }

    /// What [`auto`](Self::auto) drops where it does.
    pub fn chains() -> Self {
        Sparsify::Chains(auto::THETA)
    }

    /// Algorithm 2 with τ = 1 and ω = 10 %.
    pub fn paper() -> Self {
        Sparsify::Paper(Paper::default())
    }

    /// `Err(Option)` for a number that means nothing.
    pub(crate) fn validate(self) -> Result<(), SolveError> {
        let sound = match self {
            Sparsify::Off | Sparsify::Auto => true,
            Sparsify::Chains(theta) => (0.0..=1.0).contains(&theta),
            Sparsify::Paper(Paper { tau, omega }) => {
                (0.0..=f64::MAX).contains(&tau) && (0.0..=100.0).contains(&omega)
            }
            Sparsify::Percent(percent) => (0.0..=100.0).contains(&percent),
        };
        match sound {
            true => Ok(()),
            false => Err(SolveError::Option {
                name: "sparsify",
                value: self.to_string(),
                needed: "percentages are from 0 to 100, THETA is from 0 to 1, and TAU is not negative".into(),
            }),
        }
    }

    /// What is dropped where only the entries of A decide, and the matrix without it; none where it is off, up to a machine or a factor, or A is not square.
    pub fn apply(self, a: &Csr<f64>) -> Option<(Sparsification, Sparsified)> {
        let (found, kept) = match self {
            _ if a.nrows() != a.ncols() => return None,
            Sparsify::Off | Sparsify::Auto | Sparsify::Chains(_) => return None,
            Sparsify::Paper(paper) => paper.choose(a),
            Sparsify::Percent(percent) => paper::by_percent(a, percent),
        };
        Some((found, Sparsified::new(a, kept)))
    }

    /// The same, with all that a decision may depend on; no matrix if A stays as it is.
    pub(crate) fn decide(
        self,
        a: &Csr<f64>,
        setting: &Setting<'_>,
    ) -> Option<(Sparsification, Option<Sparsified>)> {
        match self {
            Sparsify::Off => None,
            _ if !setting.kind.construct().sweeps() => {
                let reason = format!("{} is applied without sweeps", setting.kind);
                Some((Sparsification::refused(reason), None))
            }
            Sparsify::Auto => {
                let (found, kept) = auto::choose(a, setting);
                Some((found, kept.map(|kept| Sparsified::new(a, kept))))
            }
            Sparsify::Chains(theta) => {
                let (found, kept) = auto::by_factor(a, setting, theta);
                Some(unless_nothing(a, found, kept.map(|kept| Sparsified::new(a, kept))))
            }
            _ => {
                let (found, sparsified) = self.apply(a)?;
                Some(unless_nothing(a, found, Some(sparsified)))
            }
        }
    }
}

/// No copy of A where nothing is dropped.
fn unless_nothing(
    a: &Csr<f64>,
    mut found: Sparsification,
    sparsified: Option<Sparsified>,
) -> (Sparsification, Option<Sparsified>) {
    let sparsified = sparsified.filter(|sparser| sparser.matrix().nnz() < a.nnz());
    found.taken = found.taken.filter(|_| sparsified.is_some());
    (found, sparsified)
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
    /// What the diagonal was shifted by for the factor of A that says what is small.
    #[serde(default)]
    pub shift: f64,
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
        Sparsification { wavefronts: None, candidates: Vec::new(), taken: None, reason, shift: 0.0 }
    }

    /// A stays as it is after all, for this reason. The step for the report.
    pub(crate) fn withdraw(&mut self, reason: &str) -> Recovery {
        self.taken = None;
        self.reason = reason.into();
        let failed = format!("sparsification: {reason}");
        Recovery { failed, row: None, value: None, action: "the preconditioner is made from A".into() }
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

/// Wavefronts of the lower triangle, of the entries at places that count.
fn count_wavefronts(pattern: &Pattern, counts: impl Fn(usize) -> bool) -> usize {
    let mut level = vec![0u32; pattern.nrows()];
    let mut most = 0;
    for i in 0..pattern.nrows() {
        let below = pattern.row_range(i).filter(|&place| counts(place));
        let needs = below.map(|place| pattern.col_idx()[place] as usize).filter(|&j| j < i);
        level[i] = needs.map(|j| level[j]).max().unwrap_or(0) + 1;
        most = most.max(level[i]);
    }
    most as usize
}

/// ‖S‖∞ / min aᵢᵢ, S being what is not kept; infinite if the diagonal is not positive.
fn indicator(a: &Csr<f64>, kept: &[bool]) -> f64 {
    let least = (0..a.nrows()).map(|i| a.get(i, i)).fold(f64::INFINITY, f64::min);
    let dropped = |i: usize| {
        let range = a.pattern().row_range(i);
        let entries = a.values()[range.clone()].iter().zip(&kept[range]);
        entries.filter(|&(_, &kept)| !kept).map(|(v, _)| v.abs()).sum::<f64>()
    };
    let norm = (0..a.nrows()).map(dropped).fold(0.0, f64::max);
    if least > 0.0 { norm / least } else { f64::INFINITY }
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
            Sparsify::Auto => f.write_str("auto"),
            Sparsify::Chains(theta) => write!(f, "chains({theta})"),
            Sparsify::Paper(paper) if paper == Paper::default() => f.write_str("paper"),
            Sparsify::Paper(Paper { tau, omega }) => write!(f, "paper({tau},{omega})"),
            Sparsify::Percent(percent) => write!(f, "{percent}"),
        }
    }
}

/// `off`, `auto`, `chains(THETA)`, `paper`, `paper(TAU,OMEGA)` or a percentage.
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
        let chains = |text: &str| {
            let theta = number(text.strip_prefix("chains(")?.strip_suffix(')')?, 1.0)?;
            Some(Sparsify::Chains(theta))
        };
        match name.as_str() {
            "chains" => Ok(Sparsify::chains()),
            "off" => Ok(Sparsify::Off),
            "auto" => Ok(Sparsify::Auto),
            "paper" => Ok(Sparsify::paper()),
            other => thresholds(other)
                .or_else(|| chains(other))
                .or_else(|| number(other.trim_end_matches('%'), 100.0).map(Sparsify::Percent))
                .ok_or_else(|| NameError::Unknown {
                    what: "sparsification",
                    name: text.to_owned(),
                    hint: names::hint(
                        text,
                        &[
                            "off",
                            "auto",
                            "chains(THETA)",
                            "paper",
                            "paper(TAU,OMEGA)",
                            "a percentage from 0 to 100",
                        ],
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
