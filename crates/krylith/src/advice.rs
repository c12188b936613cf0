//! What to try after a solve that has not converged, from its outcome, the facts about the matrix and the methods that ran.

use crate::choice::Method;
use crate::plan::ReasonCode;
use crate::report::{Outcome, Report};

/// Pieces of advice at most.
const MOST: usize = 2;

impl Report {
    /// What to try next, the best first; nothing for a converged solve. Options are those of the command; builders have the same names.
    ///
    /// ```
    /// use krylith::{Method, Solver, gallery::Problem};
    /// let a = "jump3d:12".parse::<Problem>()?.generate()?;
    /// let b = vec![1.0; a.nrows()];
    /// let report = Solver::new().method(Method::Cg).max_iterations(3).solve(&a, &b)?.report;
    /// assert!(report.advice()[0].starts_with("try --max-iterations 30"));
    /// assert!(report.require_converged().unwrap_err().to_string().contains("--max-iterations 30"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn advice(&self) -> Vec<String> {
        let mut advice = match self.outcome {
            Outcome::Converged | Outcome::Interrupted => Vec::new(),
            _ if self.is_answer() => Vec::new(),
            Outcome::AttainableAccuracy => vec![self.looser_tolerance()],
            Outcome::LeastSquares => self.of_least_squares(),
            Outcome::Singular => self.of_singular(),
            Outcome::MaxIterations => self.of_too_few_iterations(),
            _ => self.of_failed_method(),
        };
        advice.truncate(MOST);
        advice
    }

    fn looser_tolerance(&self) -> String {
        format!(
            "try --rtol {:.0e}: {} (backward error {:.1e})",
            2.0 * self.relative_residual,
            match self.certificate.null_vector {
                Some(_) => "A is nearly singular, and nothing that was tried has a smaller residual",
                None => "no x in f64 has a much smaller residual",
            },
            self.backward_error.unwrap_or(f64::NAN)
        )
    }

    fn of_singular(&self) -> Vec<String> {
        let mut advice = self.of_least_squares();
        if self.solver != Method::Lsmr.to_string() {
            advice.insert(1, "try --solver lsmr: it minimises the residual of any system".into());
        }
        advice
    }

    fn of_least_squares(&self) -> Vec<String> {
        let facts = self.plan.facts.as_ref();
        let by_pattern = facts.filter(|facts| facts.structural_rank < facts.rows);
        let check = match by_pattern {
            Some(facts) => format!(
                "check the matrix: with these entries other than zero every matrix is singular, of rank {} of {} at most",
                facts.structural_rank, facts.rows
            ),
            None => "check b: it has a part outside of the range of A".into(),
        };
        let named = "if the least squares are wanted, name the null space (--null-space constant or FILE)";
        vec![check, named.into()]
    }

    fn of_too_few_iterations(&self) -> Vec<String> {
        let mut advice = Vec::new();
        if self.is_falling() {
            advice.push(format!(
                "try --max-iterations {}: the residual was still falling",
                10 * self.iterations
            ));
        }
        advice.extend(self.of_failed_method());
        advice
    }

    fn of_failed_method(&self) -> Vec<String> {
        let mut advice = Vec::new();
        let indefinite =
            matches!(self.outcome, Outcome::IndefiniteOperator | Outcome::IndefinitePreconditioner);
        if indefinite && self.solver == Method::Cg.to_string() {
            advice.push("try --solver minres --precond none: it needs no positive definite matrix".into());
        }
        if self.was_asked_for() {
            advice.push("leave out --solver and --precond: auto goes on with others where one fails".into());
        }
        if !self.rungs.iter().any(|rung| rung.preconditioner.is_complete()) {
            advice.push("try --solver gmres --precond lu: a complete factor needs few iterations".into());
        }
        if advice.is_empty() {
            advice.push(
                "try --reorder amd --matching on --precond ilutp(50,1e-8): a factor with more fill".into(),
            );
        }
        advice
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
