//! What a recurrence claims is checked: the residual is recomputed from A, x and b.
//!
//! The recurrence of a Krylov method drifts away from b − A x in finite precision, so that it may say "met" where the answer is
//! not good enough. Then the residual is replaced by the recomputed one (CG keeps its search direction, see `Cg::resume`) and
//! the iteration goes on, at most [`REPLACEMENTS`] times; after that the accuracy is what can be attained.
//! Reference: van der Vorst & Ye 2000, doi:10.1137/S1064827599353865.

use super::Solver;
use crate::error::BackendError;
use crate::krylov::{Finish, Status};
use crate::observe::{Iteration, Observer};
use crate::operator::LinearOperator;
use crate::report::Outcome;
use crate::space::{Space, Threads, require_same};
use crate::stop::{IterationLimit, Residual, StopReason, StoppingCriterion};
use std::ops::ControlFlow;
use std::sync::Arc;

/// How often a residual may be replaced.
const REPLACEMENTS: usize = 3;

/// Judges the ends of iterations of one solve.
pub(super) struct Certifier<'a, A: LinearOperator<Threads<f64>>> {
    space: Arc<Threads<f64>>,
    a: &'a A,
    scratch: A::Scratch,
    r: Vec<f64>,
    rhs_norm: f64,
    tolerance: Residual<f64>,
    max_iterations: usize,
    iterations: usize,
    replacements: usize,
    history: Vec<f64>,
    residual_norm: f64,
}

/// How a solve ended, and in a few words what the method said.
pub(super) struct Ended {
    pub(super) outcome: Outcome,
    pub(super) what: &'static str,
}

impl<'a, A: LinearOperator<Threads<f64>>> Certifier<'a, A> {
    pub(super) fn new(
        space: &Arc<Threads<f64>>,
        a: &'a A,
        b: &Vec<f64>,
        options: &Solver,
    ) -> Result<Self, BackendError> {
        require_same("b and the range of A", &b.len(), &a.range())?;
        Ok(Certifier {
            space: Arc::clone(space),
            a,
            scratch: a.scratch(space)?,
            r: space.zeros(&b.len())?,
            rhs_norm: space.norm(b)?,
            tolerance: Residual { rtol: options.rtol, atol: options.atol },
            max_iterations: options.max_iterations,
            iterations: 0,
            replacements: 0,
            // Room for every iteration, so that none allocates, up to 8 MB of them.
            history: Vec::with_capacity(options.max_iterations.min(1 << 20) + 1),
            residual_norm: f64::NAN,
        })
    }

    /// Runs a method with the criterion for what is left, numbering its iterations on from those before.
    pub(super) fn watch<O: Observer<f64>>(
        &mut self,
        observer: &mut O,
        run: impl FnOnce(&mut Remaining, &mut Watched<'_, O>) -> Result<Finish<f64>, BackendError>,
    ) -> Result<Finish<f64>, BackendError> {
        let mut stop = (self.tolerance, IterationLimit(self.max_iterations - self.iterations));
        let mut watched = Watched {
            observer,
            before: self.iterations,
            history: &mut self.history,
            rhs_norm: self.rhs_norm,
        };
        let finish = run(&mut stop, &mut watched)?;
        self.iterations += finish.iterations;
        Ok(finish)
    }

    /// The outcome, or none if the residual is to be replaced and the iteration to go on.
    pub(super) fn judge(
        &mut self,
        finish: Finish<f64>,
        b: &Vec<f64>,
        x: &Vec<f64>,
    ) -> Result<Option<Ended>, BackendError> {
        let _span = tracing::info_span!("verify").entered();
        self.a.apply(&self.space, x, &mut self.r, &mut self.scratch)?;
        self.space.axpby(1.0, b, -1.0, &mut self.r)?;
        self.residual_norm = self.space.norm(&self.r)?;
        let at = Iteration { index: 0, residual_norm: self.residual_norm, rhs_norm: self.rhs_norm };
        let met = self.tolerance.check(&at).is_some();
        let ended = |outcome, what| Ok(Some(Ended { outcome, what }));
        match finish.status {
            _ if met => ended(Outcome::Converged, "met"),
            Status::Stopped(StopReason::ResidualMet)
                if self.replacements < REPLACEMENTS && self.iterations < self.max_iterations =>
            {
                self.replacements += 1;
                Ok(None)
            }
            Status::Stopped(StopReason::ResidualMet) => ended(Outcome::AttainableAccuracy, "drifted"),
            Status::Stopped(_) => ended(Outcome::MaxIterations, "limit of iterations"),
            Status::Interrupted => ended(Outcome::Interrupted, "interrupted"),
            Status::IndefiniteOperator => ended(Outcome::IndefiniteOperator, "A is not positive definite"),
            Status::IndefinitePreconditioner => {
                ended(Outcome::IndefinitePreconditioner, "M is not positive definite")
            }
            Status::Breakdown { what } => ended(Outcome::Breakdown, what),
            Status::NotFinite => ended(Outcome::NotFinite, "a number that is not finite"),
        }
    }

    /// b = 0.
    pub(super) fn is_zero(&self) -> bool {
        self.rhs_norm == 0.0
    }

    pub(super) fn iterations(&self) -> usize {
        self.iterations
    }

    pub(super) fn replacements(&self) -> usize {
        self.replacements
    }

    pub(super) fn relative_residual(&self) -> f64 {
        if self.rhs_norm > 0.0 { self.residual_norm / self.rhs_norm } else { self.residual_norm }
    }

    /// ‖r‖∞ / (‖A‖∞ ‖x‖∞ + ‖b‖∞).
    pub(super) fn backward_error(&self, norm: f64, x: &[f64], b: &[f64]) -> f64 {
        let largest = |v: &[f64]| v.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
        let scale = norm * largest(x) + largest(b);
        if scale > 0.0 { largest(&self.r) / scale } else { largest(&self.r) }
    }

    pub(super) fn into_history(self) -> Vec<f64> {
        self.history
    }
}

/// The user's tolerance, and what is left of the iterations.
pub(super) type Remaining = (Residual<f64>, IterationLimit);

/// Passes iterations on to the user's observer, numbered through, and keeps the history.
pub(super) struct Watched<'a, O> {
    observer: &'a mut O,
    before: usize,
    history: &'a mut Vec<f64>,
    rhs_norm: f64,
}

impl<O: Observer<f64>> Observer<f64> for Watched<'_, O> {
    fn iterated(&mut self, iteration: &Iteration<f64>) -> ControlFlow<()> {
        // After a replacement iteration 0 is the last one again, with its true residual.
        let index = self.before + iteration.index;
        let scale = if self.rhs_norm > 0.0 { self.rhs_norm } else { 1.0 };
        self.history.truncate(index);
        self.history.push(iteration.residual_norm / scale);
        self.observer.iterated(&Iteration { index, ..*iteration })
    }
}
