//! The report of a solve.

use super::advice::Advice;
use super::{Certificate, DeviceReport, Recovery, Rung, Seconds, number, numbers};
use crate::outcome::Outcome;
use crate::plan::{ReasonCode, Remedy, SolvePlan};
use crate::space::{Profile, TeamStatistics};
use crate::sparsify::Sparsify;
use serde::{Deserialize, Serialize};
use std::fmt::{Display, Formatter};
use thiserror::Error;

/// What a solve did and reached. It displays as one line, and JSON keeps all of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[must_use = "a solve may not have converged: `require_converged` says so"]
#[non_exhaustive]
pub struct Report {
    /// How it ended.
    pub outcome: Outcome,
    /// The method, such as `cg`.
    pub solver: String,
    /// The preconditioner, such as `ic0`.
    pub preconditioner: String,
    /// Why these were taken.
    pub choice: String,
    /// The plan that was followed: facts, choices, typed reasons, fallbacks.
    pub plan: SolvePlan,
    /// Threads of the team.
    pub threads: usize,
    /// Why the team has that many, and how many of them ran the operations of the solve.
    pub team: TeamStatistics,
    /// Iterations in all.
    pub iterations: usize,
    /// ‖b − A x‖₂ / ‖b‖₂, recomputed from A, x and b.
    #[serde(deserialize_with = "number")]
    pub relative_residual: f64,
    /// ‖b − y − A x‖₂ / ‖b‖₂ with the part y of b that is outside of the range of A ([`Certificate::null_vector`]), where that part is known and x is
    /// the least squares.
    #[serde(default)]
    pub projected_residual: Option<f64>,
    /// Whether the caller named the null space of A, so that the least squares are an answer.
    #[serde(default)]
    pub null_space_named: bool,
    /// ‖b − A x‖∞ / (‖A‖∞ ‖x‖∞ + ‖b‖∞): x solves exactly a system whose A and b differ by this much, relatively. Not there
    /// for an A that is not a matrix. It bounds the residual, not the error of x.
    pub backward_error: Option<f64>,
    /// How the residual was recomputed, and what it is at most.
    pub certificate: Certificate,
    /// ‖Aᵀr‖₂ / ‖|A|ᵀ|r|‖₂ where it was needed to say why a solve failed: near 0, r cannot be made smaller.
    pub normal_residual: Option<f64>,
    /// How often the residual of the recurrence was replaced by the recomputed one.
    pub residual_replacements: usize,
    /// ‖r‖₂ / ‖b‖₂ by iteration, from number 0 on, as the recurrence had it.
    #[serde(deserialize_with = "numbers")]
    pub history: Vec<f64>,
    /// Entries of the preconditioner.
    pub preconditioner_nnz: usize,
    /// Bytes of the preconditioner.
    pub preconditioner_bytes: usize,
    /// What the diagonal was enlarged by for the preconditioner, in units of its size; 0 where no pivot was bad.
    pub shift: f64,
    /// Bytes of everything that the solve holds besides A, b and x, as predicted from the pattern, plans not counted.
    pub predicted_bytes: usize,
    /// Bytes that it held.
    pub bytes: usize,
    /// How rows and columns were permuted before anything else; empty if they were not.
    pub ordering: String,
    /// In which order the rows were taken then, and why.
    pub layout: String,
    /// How triangular sweeps are divided, and why: forward and backward.
    pub schedule: Option<[String; 2]>,
    /// The methods that ran, in order; the last is [`solver`](Self::solver) with [`preconditioner`](Self::preconditioner).
    #[serde(default)]
    pub rungs: Vec<Rung>,
    /// What was tried and failed, in order.
    pub recovery: Vec<Recovery>,
    /// Seconds by phase.
    pub seconds: Seconds,
    /// What a device did in the solve, where one was used.
    #[serde(default)]
    pub device: Option<DeviceReport>,
    /// Where the seconds of the iterations went, where that was asked for.
    #[serde(default)]
    pub profile: Option<Profile>,
}

impl Display for Report {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let Report { outcome, solver, preconditioner, iterations, relative_residual, .. } = self;
        let Seconds { analyze, factor, solve, .. } = self.seconds;
        let outcome = outcome.name().replace('_', " ");
        let plural = if *iterations == 1 { "" } else { "s" };
        write!(
            f,
            "{outcome}: {iterations} iteration{plural} of {solver} with {preconditioner}, relative residual \
             {relative_residual:.2e} recomputed, {:.3} s",
            analyze + factor + solve
        )
    }
}

/// The answer does not meet the tolerance.
#[derive(Debug, Clone, PartialEq, Error)]
#[error(
    "not converged ({}): relative residual {relative_residual:.3e} after {iterations} iterations{}",
    outcome.name(),
    advice.iter().map(|advice| format!("; {advice}")).collect::<String>()
)]
#[non_exhaustive]
pub struct NotConverged {
    /// How the solve ended.
    pub outcome: Outcome,
    /// Iterations in all.
    pub iterations: usize,
    /// The recomputed relative residual.
    pub relative_residual: f64,
    /// What to try next ([`Report::advice`]).
    pub advice: Vec<Advice>,
}

impl Report {
    /// Whether x is what was asked for: the recomputed residual meets the tolerance, or x is the least squares of a system whose null space the
    /// caller has named.
    pub fn is_answer(&self) -> bool {
        self.outcome == Outcome::Converged || self.outcome == Outcome::LeastSquares && self.null_space_named
    }

    /// An error unless x is what was asked for ([`is_answer`](Self::is_answer)).
    pub fn require_converged(&self) -> Result<&Self, NotConverged> {
        match self.outcome {
            _ if self.is_answer() => Ok(self),
            outcome => Err(NotConverged {
                outcome,
                iterations: self.iterations,
                relative_residual: self.relative_residual,
                advice: self.advice(),
            }),
        }
    }

    /// The plan that repeats the last method, without the search before it.
    ///
    /// ```
    /// use krylith::{Solver, gallery::Problem};
    /// let a = "poisson2d:100".parse::<Problem>()?.generate()?;
    /// let b = vec![1.0; a.nrows()];
    /// let first = Solver::new().solve(&a, &b)?;
    /// let again = Solver::new().with_plan(&first.report.replay()).solve(&a, &b)?;
    /// assert_eq!(again.x, first.x);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn replay(&self) -> SolvePlan {
        let mut plan = self.plan.clone();
        plan.sparsify = plan.decided_sparsify();
        if let (Some(first), Some(last)) = (self.rungs.first(), self.rungs.last()) {
            let factor = |rung: &Rung| (rung.preconditioner.clone(), rung.precision, rung.ordering);
            if factor(first) != factor(last) {
                // Another factor than the planned one is made from A.
                plan.sparsify = Sparsify::Off;
            }
        }
        if let Some(last) = self.rungs.last() {
            (plan.method, plan.preconditioner) = (last.method, last.preconditioner.clone());
            (plan.precision, plan.ordering) = (last.precision, last.ordering);
        }
        plan.reasons = vec![ReasonCode::AsPlanned.into()];
        plan.proposals.clear();
        plan.considered.clear();
        (plan.predicted_entries, plan.predicted_bytes, plan.predicted) = (None, None, None);
        plan.fallbacks.retain(|fallback| !matches!(fallback.then, Remedy::Method { .. }));
        plan
    }
}
