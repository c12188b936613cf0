//! What will be done about a system, and why: decided before anything is factored.
//!
//! [`Facts`] about the matrix lead to a [`SolvePlan`]: a method, a preconditioner, a layout, an order, and what follows each kind of
//! failure ([`Fallback`]). A plan is plain data: it can be printed, written as JSON, changed, and given to another solve
//! ([`Solver::with_plan`](crate::Solver::with_plan)). `Prepared` keeps the plan it was made by; a fallback for one right-hand
//! side does not change it.
//!
//! How a plan is chosen is described in the [module `solver`](crate::solver).

mod fallback;
mod proposal;

pub use crate::cost::{
    Applied, DEVICE, Expected, MANY_CORE, Machine, Machines, Operations, PROCESSOR_DEVICE, REFERENCE, Rates,
    Work, operations,
};
pub use crate::facts::{Facts, GridFacts, Mesh, wavefronts};
pub use crate::options::StorageKind;
pub use crate::setup::considered::Considered;
pub use fallback::{Failure, Fallback, Remedy};
pub(crate) use proposal::Asked;
pub use proposal::{Outlook, Proposal};

use crate::options::{Layout, MatchingMode, Method, Precision};
use crate::precond::PrecondSpec;
use crate::sparsify::{Sparsification, Sparsify};
use crate::transform::Ordering;
use serde::{Deserialize, Serialize};
use std::fmt::{Display, Formatter};

/// What a solve will do, and why.
///
/// ```
/// use krylith::{Solver, gallery::Problem, plan::{ReasonCode, SolvePlan}};
/// let a = "poisson2d:60".parse::<Problem>()?.generate()?;
/// let plan = Solver::new().plan(&a)?;
/// assert_eq!(plan.to_string(), "cg with ic0: the matrix is symmetric with a positive diagonal");
/// assert_eq!(plan.reasons[0].code, ReasonCode::SymmetricPositiveDiagonal);
/// assert!(plan.considered[0].taken && plan.considered[0].layout == "grid");
/// // The same solve again, without any choice left to make.
/// let report = Solver::new().with_plan(&plan).solve(&a, &vec![1.0; a.nrows()])?.report;
/// assert_eq!((report.solver.as_str(), report.preconditioner.as_str()), ("cg", "ic0"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SolvePlan {
    /// The facts of A that choices depend on; not looked for where all choices were the caller's. Where A is not a matrix, those of the
    /// matrix of the preconditioner.
    pub facts: Option<Facts>,
    /// The facts of the matrix that the preconditioner is made from, where that matrix is not A.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preconditioner_facts: Option<Facts>,
    /// The method.
    pub method: Method,
    /// The preconditioner.
    pub preconditioner: PrecondSpec,
    /// Which orders of rows may be taken.
    pub layout: Layout,
    /// In which numbers the iteration runs and factors are stored.
    pub precision: Precision,
    /// The order of rows and columns before anything else.
    pub ordering: Ordering,
    /// Whether columns are permuted for a large diagonal.
    pub matching: MatchingMode,
    /// Whether the preconditioner is made from a sparser matrix than A.
    #[serde(default)]
    pub sparsify: Sparsify,
    /// What that came to; none where it is off.
    #[serde(default)]
    pub sparsification: Option<Sparsification>,
    /// Why this method and this preconditioner.
    pub reasons: Vec<Reason>,
    /// What speaks against a choice of the caller's, which is followed all the same.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// What follows a failure, in order.
    pub fallbacks: Vec<Fallback>,
    /// The machine whose figures predict costs ([`Machine::name`]).
    #[serde(default)]
    pub machine: String,
    /// What was proposed, the cheapest first; empty where the choice was the caller's or a rule's.
    #[serde(default)]
    pub proposals: Vec<Proposal>,
    /// The storages that were looked at, in order, up to the one that is taken; empty where that was not asked for.
    #[serde(default)]
    pub considered: Vec<Considered>,
    /// Entries of the preconditioner, where they are known before it is made.
    #[serde(default)]
    pub predicted_entries: Option<u64>,
    /// Bytes of everything that a solve will hold besides A, b and x, where they are known before.
    #[serde(default)]
    pub predicted_bytes: Option<u64>,
    /// What the chosen method is predicted to cost, where that was looked at.
    #[serde(default)]
    pub predicted: Option<Predicted>,
}

/// Seconds of the plan's machine.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Predicted {
    /// Facts, the analysis of a complete factor if one was weighed, and the set-up.
    pub set_up: f64,
    /// All that, and the iterations.
    pub total: f64,
}

/// A reason for a choice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Reason {
    /// For programs.
    pub code: ReasonCode,
    /// For people.
    pub text: String,
}

/// Why a method and a preconditioner were chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ReasonCode {
    /// The caller asked for both.
    AsAsked,
    /// A plan was given.
    AsPlanned,
    /// The matrix is symmetric with a positive diagonal, so that it may be positive definite.
    SymmetricPositiveDiagonal,
    /// The same up to rounding.
    NearlySymmetricPositiveDiagonal,
    /// The same, but entries on one side of the diagonal, small ones that are no rounding errors, keep IC(0) from it.
    OneSidedZeros,
    /// The matrix is symmetric, but its diagonal is not positive.
    SymmetricIndefinite,
    /// The matrix is not symmetric.
    NotSymmetric,
    /// What the matrix of the preconditioner is like, where that matrix is not A.
    PreconditionerMatrix,
    /// Of the members of the registry that suit the matrix, it is predicted to cost the least.
    LeastPredicted,
    /// An incomplete factor is not to be trusted, and a complete one is cheap.
    DirectIsCheap,
    /// There is no matrix, only products with it.
    NoMatrix,
}

impl ReasonCode {
    /// What the facts say.
    pub(crate) fn of(facts: &Facts) -> Self {
        match (facts.positive_diagonal, facts.nearly_symmetric, facts.suits_cholesky()) {
            (true, true, true) if !facts.symmetric => ReasonCode::NearlySymmetricPositiveDiagonal,
            (true, true, true) => ReasonCode::SymmetricPositiveDiagonal,
            (true, true, false) => ReasonCode::OneSidedZeros,
            (false, true, _) => ReasonCode::SymmetricIndefinite,
            (_, false, _) => ReasonCode::NotSymmetric,
        }
    }

    /// The reason in words, about a matrix of this name.
    fn words(self, matrix: &str) -> String {
        let about = |fact: &str| format!("{matrix} {fact}");
        match self {
            ReasonCode::AsAsked => "as asked".into(),
            ReasonCode::AsPlanned => "as planned".into(),
            ReasonCode::SymmetricPositiveDiagonal => about("is symmetric with a positive diagonal"),
            ReasonCode::NearlySymmetricPositiveDiagonal => {
                about("is symmetric up to rounding, with a positive diagonal")
            }
            ReasonCode::OneSidedZeros => about(
                "is symmetric up to rounding, with a positive diagonal, but entries on one side keep IC(0) from it",
            ),
            ReasonCode::SymmetricIndefinite => about("is symmetric, but the diagonal is not all positive"),
            ReasonCode::NotSymmetric => about("is not symmetric"),
            ReasonCode::PreconditionerMatrix => about("is another matrix than A"),
            ReasonCode::LeastPredicted => "predicted to cost the least".into(),
            ReasonCode::DirectIsCheap => {
                "a complete factor is predicted to cost no more than some iterations".into()
            }
            ReasonCode::NoMatrix => "there is no matrix, only products with it".into(),
        }
    }
}

impl From<ReasonCode> for Reason {
    fn from(code: ReasonCode) -> Self {
        Reason { code, text: code.words("the matrix") }
    }
}

impl Reason {
    /// What A is like, and what the matrix of its preconditioner is like.
    pub(crate) fn of_both(a: &Facts, source: &Facts) -> Vec<Self> {
        let code = ReasonCode::of(a);
        let text = ReasonCode::of(source).words("the matrix of the preconditioner");
        vec![Reason { code, text: code.words("A") }, Reason { code: ReasonCode::PreconditionerMatrix, text }]
    }
}

/// The choice and its reasons in one line.
impl Display for SolvePlan {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let words = Vec::from_iter(self.reasons.iter().map(|reason| reason.text.as_str())).join("; ");
        match self.reasons.first().map(|reason| reason.code) {
            Some(ReasonCode::AsAsked | ReasonCode::AsPlanned) => f.write_str(&words),
            _ => write!(f, "{} with {}: {words}", self.method, self.preconditioner),
        }
    }
}

impl SolvePlan {
    /// The facts of the matrix that a factor was made from: fallbacks are made from A.
    pub(crate) fn facts_of_factor(&self, kind: &PrecondSpec) -> Option<&Facts> {
        let other = self.preconditioner_facts.as_ref().filter(|_| *kind == self.preconditioner);
        other.or(self.facts.as_ref())
    }

    /// What repeats the decision about a sparser matrix: what was decided for the machine of this plan is not decided again for another.
    pub(crate) fn decided_sparsify(&self) -> Sparsify {
        match (self.sparsify, &self.sparsification) {
            (Sparsify::Auto, Some(found)) => found.taken.map_or(Sparsify::Off, |_| Sparsify::chains()),
            (asked, _) => asked,
        }
    }

    /// What follows a failure: the first remedy for it that is not among those `tried`. A shift of the diagonal is looked for where
    /// the factor is made, before any of these.
    pub(crate) fn remedy(&self, failure: Failure, tried: &[Remedy]) -> Option<Remedy> {
        let fits = |fallback: &&Fallback| {
            fallback.after.contains(&failure)
                && fallback.then != Remedy::ShiftDiagonal
                && (fallback.then == Remedy::LessFill || !tried.contains(&fallback.then))
        };
        self.fallbacks.iter().find(fits).map(|fallback| fallback.then.clone())
    }

    /// The next method, or precision, after a failure of the one before: the first that is not among those `tried`.
    pub(crate) fn next_method(&self, failure: Failure, tried: &[Remedy]) -> Option<Remedy> {
        let runs = |then: &Remedy| matches!(then, Remedy::Method { .. } | Remedy::DoublePrecision);
        let fits = |fallback: &&Fallback| {
            fallback.after.contains(&failure) && runs(&fallback.then) && !tried.contains(&fallback.then)
        };
        self.fallbacks.iter().find(fits).map(|fallback| fallback.then.clone())
    }

    /// Whether the diagonal is shifted after a bad pivot.
    pub(crate) fn shifts(&self) -> bool {
        self.fallbacks.iter().any(|fallback| fallback.then == Remedy::ShiftDiagonal)
    }
}

#[cfg(test)]
mod tests;
