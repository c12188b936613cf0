//! What to try after a solve that has not converged, from its outcome, the facts about the matrix and the methods that ran.
//!
//! Advice is data: what it is, with its numbers, the options that it changes, and why. Each front end has names of its own for options
//! ([`Advice::worded`]); here they are those of [`Solver`](crate::Solver).

use crate::options::Method;
use crate::outcome::Outcome;
use crate::plan::ReasonCode;
use crate::report::Report;
use serde::Serialize;
use std::fmt::{Display, Formatter};

/// Pieces of advice at most.
const MOST: usize = 2;

/// What to try next.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "code", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Advice {
    /// No x has a much smaller residual.
    LooserTolerance {
        /// A tolerance that x meets.
        rtol: f64,
        /// The backward error of x.
        backward_error: Option<f64>,
        /// A is nearly singular.
        nearly_singular: bool,
    },
    /// Every matrix of this pattern is singular.
    CheckMatrix {
        /// The largest rank that such a matrix can have.
        rank: usize,
        /// The rows of the matrix.
        rows: usize,
    },
    /// b has a part outside of the range of A.
    CheckRhs,
    /// The least squares are an answer where the null space is named.
    NameNullSpace,
    /// A method that minimises the residual of any system.
    LeastSquares,
    /// The residual was still falling.
    MoreIterations {
        /// A limit that may do.
        max_iterations: usize,
    },
    /// A method that needs no definite matrix.
    IndefiniteMethod,
    /// Method and preconditioner are left to the solver.
    LetChoose,
    /// A complete factor.
    CompleteFactor,
    /// An incomplete factor with more fill, of rows in another order.
    MoreFill,
}

/// An option that advice changes, by the name that [`Solver`](crate::Solver) has for it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Change {
    /// The option.
    pub option: &'static str,
    /// What it is to be; `None` for its default.
    pub value: Option<String>,
}

impl Advice {
    /// The options that it changes; none where something is to be checked.
    pub fn changes(&self) -> Vec<Change> {
        let set = |option, value: &str| Change { option, value: Some(value.into()) };
        let unset = |option| Change { option, value: None };
        match self {
            Advice::CheckMatrix { .. } | Advice::CheckRhs => Vec::new(),
            Advice::LooserTolerance { rtol, .. } => vec![set("rtol", &format!("{rtol:.0e}"))],
            Advice::NameNullSpace => vec![set("null_space", "constant")],
            Advice::LeastSquares => vec![set("method", "lsmr")],
            Advice::MoreIterations { max_iterations } => {
                vec![set("max_iterations", &max_iterations.to_string())]
            }
            Advice::IndefiniteMethod => vec![set("method", "minres"), set("preconditioner", "none")],
            Advice::LetChoose => vec![unset("method"), unset("preconditioner")],
            Advice::CompleteFactor => vec![set("method", "gmres"), set("preconditioner", "lu")],
            Advice::MoreFill => {
                vec![set("reorder", "amd"), set("matching", "on"), set("preconditioner", "ilutp(50,1e-8)")]
            }
        }
    }

    /// Why, or what to check.
    pub fn reason(&self) -> String {
        match self {
            Advice::LooserTolerance { backward_error, nearly_singular, .. } => {
                let why = match nearly_singular {
                    true => "A is nearly singular, and nothing that was tried has a smaller residual",
                    false => "no x in f64 has a much smaller residual",
                };
                format!("{why} (backward error {:.1e})", backward_error.unwrap_or(f64::NAN))
            }
            Advice::CheckMatrix { rank, rows } => format!(
                "check the matrix: with these entries other than zero every matrix is singular, of rank {rank} of {rows} at most"
            ),
            Advice::CheckRhs => "check b: it has a part outside of the range of A".into(),
            Advice::NameNullSpace => "if the least squares are wanted, name the null space".into(),
            Advice::LeastSquares => "it minimises the residual of any system".into(),
            Advice::MoreIterations { .. } => "the residual was still falling".into(),
            Advice::IndefiniteMethod => "it needs no positive definite matrix".into(),
            Advice::LetChoose => "auto goes on with others where one fails".into(),
            Advice::CompleteFactor => "a complete factor needs few iterations".into(),
            Advice::MoreFill => "a factor with more fill".into(),
        }
    }

    /// In words, with what a front end writes for each change.
    pub fn worded(&self, change: impl Fn(&Change) -> String) -> String {
        let changes: Vec<String> = self.changes().iter().map(change).collect();
        let reason = self.reason();
        match self {
            Advice::CheckMatrix { .. } | Advice::CheckRhs => reason,
            Advice::NameNullSpace => format!("{reason} ({})", changes.join(" ")),
            Advice::LetChoose => format!("leave out {}: {reason}", changes.join(" and ")),
            _ => format!("try {}: {reason}", changes.join(" ")),
        }
    }
}

/// With the names that options have in Rust.
impl Display for Advice {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.worded(|Change { option, value }| match value {
            Some(value) => format!("{option}({value})"),
            None => (*option).into(),
        }))
    }
}

impl Report {
    /// What to try next, the best first; nothing for a converged solve.
    ///
    /// ```
    /// use krylith::{Method, Solver, gallery::Problem, report::advice::Advice};
    /// let a = "jump3d:12".parse::<Problem>()?.generate()?;
    /// let b = vec![1.0; a.nrows()];
    /// let report = Solver::new().method(Method::Cg).max_iterations(3).solve(&a, &b)?.report;
    /// assert_eq!(report.advice()[0], Advice::MoreIterations { max_iterations: 30 });
    /// let error = report.require_converged().unwrap_err();
    /// assert!(error.to_string().contains("try max_iterations(30): the residual was still falling"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn advice(&self) -> Vec<Advice> {
        let mut advice = match self.outcome {
            Outcome::Converged | Outcome::Interrupted => Vec::new(),
            _ if self.is_answer() => Vec::new(),
            Outcome::AttainableAccuracy => vec![Advice::LooserTolerance {
                rtol: 2.0 * self.relative_residual,
                backward_error: self.backward_error,
                nearly_singular: self.certificate.null_vector.is_some(),
            }],
            Outcome::LeastSquares => self.of_least_squares(),
            Outcome::Singular => self.of_singular(),
            Outcome::MaxIterations => self.of_too_few_iterations(),
            _ => self.of_failed_method(),
        };
        advice.truncate(MOST);
        advice
    }

    fn of_singular(&self) -> Vec<Advice> {
        let mut advice = self.of_least_squares();
        if self.solver != Method::Lsmr.to_string() {
            advice.insert(1, Advice::LeastSquares);
        }
        advice
    }

    fn of_least_squares(&self) -> Vec<Advice> {
        let facts = self.plan.facts.as_ref();
        let by_pattern = facts.filter(|facts| facts.structural_rank < facts.rows);
        let check = by_pattern.map_or(Advice::CheckRhs, |facts| Advice::CheckMatrix {
            rank: facts.structural_rank,
            rows: facts.rows,
        });
        vec![check, Advice::NameNullSpace]
    }

    fn of_too_few_iterations(&self) -> Vec<Advice> {
        let more = Advice::MoreIterations { max_iterations: 10 * self.iterations };
        let first = self.is_falling().then_some(more);
        first.into_iter().chain(self.of_failed_method()).collect()
    }

    fn of_failed_method(&self) -> Vec<Advice> {
        let indefinite =
            matches!(self.outcome, Outcome::IndefiniteOperator | Outcome::IndefinitePreconditioner);
        let complete = self.rungs.iter().any(|rung| rung.preconditioner.is_complete());
        let fitting = [
            (indefinite && self.solver == Method::Cg.to_string(), Advice::IndefiniteMethod),
            (self.was_asked_for(), Advice::LetChoose),
            (!complete, Advice::CompleteFactor),
        ];
        let advice: Vec<_> =
            fitting.into_iter().filter(|(fits, _)| *fits).map(|(_, advice)| advice).collect();
        if advice.is_empty() { vec![Advice::MoreFill] } else { advice }
    }

    fn was_asked_for(&self) -> bool {
        let code = self.plan.reasons.first().map(|reason| reason.code);
        matches!(code, Some(ReasonCode::AsAsked | ReasonCode::AsPlanned))
    }

    /// Whether the last third of the iterations has reduced the residual by a tenth or more.
    fn is_falling(&self) -> bool {
        let least = |part: &[f64]| part.iter().copied().fold(f64::INFINITY, f64::min);
        let (before, last) = self.history.split_at(self.history.len() - self.history.len() / 3);
        !last.is_empty() && least(last) < 0.9 * least(before)
    }
}
