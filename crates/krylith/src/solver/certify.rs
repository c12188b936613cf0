//! What a recurrence claims is checked: the residual is recomputed from A, x and b, with a bound of its own rounding.
//!
//! The recurrence of a Krylov method drifts away from b − A x in finite precision, so that it may say "met" where the answer is
//! not good enough. Then the residual is replaced by the recomputed one (CG keeps its search direction, see `Cg::resume`) and
//! the iteration goes on, at most [`REPLACEMENTS`] times; after that the accuracy is what can be attained.
//!
//! "Converged" is said where ‖r̂‖ and a bound of ‖r̂ − (b − A x)‖ together meet the tolerance. The bound of `f64` is tried first, in
//! the pass that computes r̂ (`operator::by_rows::residual`); only where it leaves the question open r̂ is computed in double-double. An
//! operator without a matrix gives no bound, and the report says so.
//!
//! b and x are held multiplied by a power of two where b is out of range (`magnitude`); norms here are those of the scaled b.
//! Reference: van der Vorst & Ye 2000, doi:10.1137/S1064827599353865.

use super::iterate::multiply;
use super::options::Solver;
use super::outside_range::{Finding, Witness};
use super::slow_progress::Watcher;
use super::workspace::Vectors;
use crate::error::{BackendError, SolveError};
use crate::krylov::{Finish, Status};
use crate::observe::{Direction, Iteration, Observer};
use crate::operator::{LinearOperator, ResidualBounds, ResidualNorms, SolverSpace, norm_roundoff};
use crate::outcome::Outcome;
use crate::report::Certificate;
use crate::space::{Extremes, require_same};
use crate::stop::{IterationLimit, Residual, StopReason, StoppingCriterion};
use std::fmt::{Display, Formatter};
use std::ops::ControlFlow;

/// How often a residual may be replaced.
const REPLACEMENTS: usize = 3;
/// A recurrence below this part of ‖b‖ is stopped, whatever the tolerance: no x in `f64` has such a residual but by chance.
const FLOOR: f64 = f64::EPSILON / 16.0;
/// A backward error at rounding level with a relative residual above this is that of an x that has grown without bound.
const LARGE_RESIDUAL: f64 = 1e-3;
/// ‖Aᵀr‖ up to this part of ‖|A|ᵀ|r|‖ makes r a candidate for a left null vector.
const LOOKS_SINGULAR: f64 = 1e-6;

/// What was reached.
pub(super) struct Figures {
    pub(super) iterations: usize,
    pub(super) relative_residual: f64,
    pub(super) projected_residual: Option<f64>,
    pub(super) backward_error: Option<f64>,
    pub(super) certificate: Certificate,
    pub(super) normal_residual: Option<f64>,
    pub(super) replacements: usize,
    pub(super) history: Vec<f64>,
}

/// Judges the ends of iterations of one solve.
pub(super) struct Certifier<'a, S: SolverSpace, A: LinearOperator<S>> {
    space: &'a S,
    a: &'a A,
    /// b, multiplied by `scale`, r and what computing r needs.
    v: &'a mut Vectors<S, A>,
    scale: f64,
    /// Unknowns of all processes together, on which all decide alike.
    unknowns: usize,
    rhs_norm: f64,
    largest_rhs: f64,
    /// ‖x‖∞ of the x that was measured last.
    largest_x: f64,
    tolerance: Residual<f64>,
    /// The caller's criterion, in the place of the tolerance.
    own: Option<&'a mut dyn StoppingCriterion<f64>>,
    max_iterations: usize,
    /// The iteration with which this run ends at the latest.
    end: usize,
    iterations: usize,
    replacements: usize,
    /// Replacements that the run may still have.
    left: usize,
    history: Vec<f64>,
    /// Of the x that was measured last.
    norms: ResidualNorms<f64>,
    normal_residual: Option<f64>,
    /// Why no x has a small residual, as far as that is known.
    pub(super) witness: Option<Witness<S::Vector>>,
}

/// How a run of a method ended.
#[derive(Clone, Copy)]
pub(super) struct Ended {
    pub(super) outcome: Outcome,
    pub(super) why: Why,
}

impl Ended {
    /// The residual is small enough.
    pub(super) const MET: Ended = Ended { outcome: Outcome::Converged, why: Why::Met };
}

/// Why a run ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    Met,
    /// Replacements have not helped.
    Drifted,
    /// What follows is predicted to be faster.
    Slow,
    IterationLimit,
    Interrupted,
    IndefiniteOperator,
    IndefinitePreconditioner,
    NotFinite,
    Diverged,
    /// What another place says in a few words.
    Other(&'static str),
}

impl Display for Why {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Why::Met => "met",
            Why::Drifted => "the residual of the recurrence is not that of x",
            Why::Slow => "what is left is predicted to take longer than what follows",
            Why::IterationLimit => "limit of iterations",
            Why::Interrupted => "interrupted",
            Why::IndefiniteOperator => "A is not positive definite",
            Why::IndefinitePreconditioner => "M is not positive definite",
            Why::NotFinite => "a number that is not finite",
            Why::Diverged => "the residual has grown beyond 1/ε of its least",
            Why::Other(what) => what,
        })
    }
}

/// What follows the end of a run.
pub(super) enum Verdict {
    Ended(Ended),
    /// The residual of the recurrence has drifted: go on from the recomputed one.
    Replace,
    /// The guess is worse than nothing: begin from zero.
    FromZero,
}

/// The sizes of a vector, or an error that names it and the place of a number that is not finite.
pub(super) fn sizes_of<S: SolverSpace>(
    space: &S,
    what: &'static str,
    x: &S::Vector,
) -> Result<Extremes<f64>, SolveError> {
    let sizes = space.extremes(x)?;
    match sizes.not_finite {
        None => Ok(sizes),
        Some((row, value)) => Err(SolveError::NotFinite { what, row, value }),
    }
}

impl<'a, S: SolverSpace, A: LinearOperator<S>> Certifier<'a, S, A> {
    /// For the right-hand side in `v` and a guess of which `guess` is the largest entry.
    pub(super) fn new(
        space: &'a S,
        a: &'a A,
        (v, guess): (&'a mut Vectors<S, A>, f64),
        options: &Solver,
        own: Option<&'a mut dyn StoppingCriterion<f64>>,
    ) -> Result<Self, SolveError> {
        let size = space.size(&v.b);
        require_same("b and the range of A", &size, &a.range())?;
        let sizes = sizes_of(space, "b", &v.b)?;
        let scale = sizes.scale_beside(guess);
        if scale != 1.0 {
            space.scale(scale, &mut v.b)?;
        }
        Ok(Certifier {
            space,
            a,
            unknowns: space.total(&size),
            rhs_norm: space.norm(&v.b)?,
            largest_rhs: sizes.largest * scale,
            largest_x: 0.0,
            v,
            scale,
            tolerance: Residual { rtol: options.rtol, atol: options.atol * scale },
            own,
            max_iterations: options.max_iterations,
            end: options.max_iterations,
            iterations: 0,
            replacements: 0,
            left: REPLACEMENTS,
            // Room for every iteration, so that none allocates, up to 8 MB of them.
            history: Vec::with_capacity(options.max_iterations.min(1 << 20) + 1),
            norms: ResidualNorms::default(),
            normal_residual: None,
            witness: None,
        })
    }

    pub(super) fn space(&self) -> &'a S {
        self.space
    }

    pub(super) fn a(&self) -> &'a A {
        self.a
    }

    /// Begins another run of at most so many iterations: it may replace residuals as often as the one before, and is judged anew.
    pub(super) fn next_run(&mut self, iterations: usize) {
        self.end = self.max_iterations.min(self.iterations.saturating_add(iterations));
        self.left = REPLACEMENTS;
        self.normal_residual = None;
    }

    /// Whether the caller's criterion takes the place of the tolerance.
    pub(super) fn has_own_criterion(&self) -> bool {
        self.own.is_some()
    }

    /// Whether this process has all of A, b and x.
    pub(super) fn is_alone(&self) -> bool {
        let size = self.a.domain();
        self.space.total(&size) == self.space.len(&size)
    }

    /// Takes another right-hand side, in the scale of the caller's, and this residual norm in the place of the tolerance, if one is given.
    pub(super) fn iterate_for(&mut self, b: &S::Vector, aim: Option<f64>) -> Result<(), BackendError> {
        self.space.copy(b, &mut self.v.b)?;
        self.rhs_norm = self.space.norm(b)?;
        self.largest_rhs = self.space.extremes(b)?.largest;
        self.tolerance = aim.map_or(self.tolerance, |atol| Residual { rtol: 0.0, atol });
        Ok(())
    }

    /// Judges by the caller's b, multiplied by the scale, and tolerance from here on, and measures x by them; whether they are met.
    pub(super) fn judge_by(
        &mut self,
        given: &S::Vector,
        options: &Solver,
        x: &S::Vector,
    ) -> Result<bool, BackendError> {
        self.iterate_for(given, None)?;
        self.tolerance = Residual { rtol: options.rtol, atol: options.atol * self.scale };
        match self.measure(x)? {
            true => Ok(true),
            false => self.measure_precisely(x),
        }
    }

    /// Recomputes the residual of `x` in double-double; whether it meets the tolerance.
    pub(super) fn measure_precisely(&mut self, x: &S::Vector) -> Result<bool, BackendError> {
        let meets = self.measure(x)?;
        self.make_precise(x)?;
        Ok(meets)
    }

    /// Recomputes the residual of `x`, which was measured last, in double-double if it was not.
    pub(super) fn make_precise(&mut self, x: &S::Vector) -> Result<(), BackendError> {
        if self.norms.certain.is_some_and(|bounds| !bounds.precise) && !self.largest_x.is_nan() {
            self.compute(x, true)?;
        }
        Ok(())
    }

    pub(super) fn tolerance(&self) -> Residual<f64> {
        self.tolerance
    }

    /// A bound of ‖r̂ − r‖ for the residual that was measured last, without the rounding of the norm in it.
    pub(super) fn rounding_of_residual(&self) -> f64 {
        let of_norm = self.norms.norm * norm_roundoff(self.unknowns);
        self.norms.certain.map_or(0.0, |bounds| match bounds.precise {
            true => f64::max(bounds.rounding - of_norm, 0.5 * f64::EPSILON * self.norms.norm),
            false => bounds.rounding,
        })
    }

    /// What the residual that was measured last is at most.
    pub(super) fn residual_at_most(&self) -> f64 {
        self.norms.upper().unwrap_or(self.norms.norm)
    }

    /// b − A x in double-double for any two vectors, beside what is judged.
    pub(super) fn residual_of(
        &mut self,
        x: &S::Vector,
        b: &S::Vector,
        r: &mut S::Vector,
    ) -> Result<ResidualNorms<f64>, BackendError> {
        self.a.residual(self.space, (x, b), true, r, &mut self.v.scratch)
    }

    /// b, multiplied by the scale.
    pub(super) fn b(&self) -> &S::Vector {
        &self.v.b
    }

    /// Unknowns of all processes together.
    pub(super) fn unknowns(&self) -> usize {
        self.unknowns
    }

    /// The power of two that b and x are multiplied by.
    pub(super) fn scale(&self) -> f64 {
        self.scale
    }

    /// Runs a method with the criterion for what is left, numbering its iterations on from those before.
    pub(super) fn watch(
        &mut self,
        (observer, watcher): (&mut dyn Observer<f64>, Option<&mut Watcher<'_>>),
        run: impl FnOnce(
            &S::Vector,
            &mut Remaining<'_, '_>,
            &mut Watched<'_, S>,
        ) -> Result<Finish<f64>, BackendError>,
    ) -> Result<Finish<f64>, BackendError> {
        let tolerance = match self.own {
            Some(_) => Residual { rtol: FLOOR, atol: 0.0 },
            None => Residual { rtol: self.tolerance.rtol.max(FLOOR), ..self.tolerance },
        };
        let mut stop = Remaining {
            tolerance,
            own: self.own.as_deref_mut().map(|own| own as &mut dyn StoppingCriterion<f64>),
            before: self.iterations,
            scale: self.scale,
            limit: IterationLimit(self.end.saturating_sub(self.iterations)),
            watcher,
        };
        let own = self.space.len(&self.space.size(&self.v.b));
        let room = if observer.wants_directions() { own } else { 0 };
        let mut watched = Watched {
            observer,
            space: self.space,
            before: self.iterations,
            history: &mut self.history,
            rhs_norm: self.rhs_norm,
            scale: self.scale,
            directions: [vec![0.0; room], vec![0.0; room]],
            failed: None,
        };
        let finish = run(&self.v.b, &mut stop, &mut watched)?;
        if let Some(error) = watched.failed {
            return Err(error);
        }
        self.iterations += finish.iterations;
        Ok(finish)
    }

    /// What the end of a run means for `x`.
    pub(super) fn judge(&mut self, finish: Finish<f64>, x: &S::Vector) -> Result<Verdict, BackendError> {
        let ended = |outcome, why| Ok(Verdict::Ended(Ended { outcome, why }));
        let begun = finish.iterations > 0;
        if finish.status == Status::Stopped(StopReason::WorthlessGuess) {
            return Ok(Verdict::FromZero);
        }
        if finish.status == Status::NotFinite && !begun && !is_zero(self.space, x)? {
            return Ok(Verdict::FromZero);
        }
        if self.measure(x)? {
            return Ok(Verdict::Ended(Ended::MET));
        }
        match finish.status {
            Status::Stopped(StopReason::ResidualMet) if self.left > 0 && self.iterations < self.end => {
                self.replacements += 1;
                self.left -= 1;
                Ok(Verdict::Replace)
            }
            Status::Stopped(StopReason::ResidualMet) => ended(Outcome::Breakdown, Why::Drifted),
            Status::Stopped(StopReason::Slow) => ended(Outcome::MaxIterations, Why::Slow),
            Status::Stopped(_) => ended(Outcome::MaxIterations, Why::IterationLimit),
            Status::Interrupted => ended(Outcome::Interrupted, Why::Interrupted),
            Status::IndefiniteOperator => ended(Outcome::IndefiniteOperator, Why::IndefiniteOperator),
            Status::IndefinitePreconditioner => {
                ended(Outcome::IndefinitePreconditioner, Why::IndefinitePreconditioner)
            }
            Status::Breakdown { what } => ended(Outcome::Breakdown, Why::Other(what)),
            Status::NotFinite if begun => ended(Outcome::Diverged, Why::NotFinite),
            Status::NotFinite => ended(Outcome::NotFinite, Why::NotFinite),
            Status::Diverged => ended(Outcome::Diverged, Why::Diverged),
        }
    }

    /// What is judged is what the caller gets: multiplied back, numbers beyond the ends of the range are rounded.
    pub(super) fn round_as_returned(&self, x: &mut S::Vector) -> Result<(), BackendError> {
        multiply(self.space, x, 1.0 / self.scale)?;
        multiply(self.space, x, self.scale)
    }

    /// Recomputes the residual of `x`; whether it meets the tolerance, its rounding included.
    pub(super) fn measure(&mut self, x: &S::Vector) -> Result<bool, BackendError> {
        let _span = tracing::info_span!("verify").entered();
        let sizes = self.space.extremes(x)?;
        self.largest_x = if sizes.not_finite.is_none() { sizes.largest } else { f64::NAN };
        if self.largest_x.is_nan() {
            // An entry that is not finite may meet an empty column and leave the residual as it is.
            self.norms = ResidualNorms { norm: f64::NAN, largest: f64::NAN, ..self.norms };
            return Ok(false);
        }
        self.compute(x, false)?;
        if self.own.is_some() {
            if self.meets_own() {
                return Ok(true);
            }
            let unclear = |bounds: ResidualBounds<f64>| bounds.rounding > 0.1 * self.norms.norm;
            if self.norms.certain.is_some_and(unclear) {
                self.compute(x, true)?;
            }
            return Ok(self.meets_own());
        }
        let (Some(upper), Some(bounds)) = (self.norms.upper(), self.norms.certain) else {
            let at = Iteration { index: 0, residual_norm: self.norms.norm, rhs_norm: self.rhs_norm };
            return Ok(self.tolerance.check(&at).is_some());
        };
        let tolerance = self.certain_tolerance();
        if upper <= tolerance {
            return Ok(true);
        }
        // Certainly not met, and the figure is good to a tenth: no need to know more.
        let open = self.norms.norm - bounds.rounding <= tolerance;
        if open || bounds.rounding > 0.1 * self.norms.norm {
            self.compute(x, true)?;
        }
        Ok(self.norms.upper().is_some_and(|upper| upper <= tolerance))
    }

    /// Whether the caller's criterion is met by the recomputed residual, its rounding included.
    fn meets_own(&mut self) -> bool {
        let at = Iteration {
            index: self.iterations,
            residual_norm: self.residual_at_most() / self.scale,
            rhs_norm: self.rhs_norm / self.scale,
        };
        self.own.as_mut().is_some_and(|own| own.check(&at).is_some())
    }

    fn compute(&mut self, x: &S::Vector, precise: bool) -> Result<(), BackendError> {
        let Vectors { b, r, scratch } = &mut *self.v;
        self.norms = self.a.residual(self.space, (x, b), precise, r, scratch)?;
        Ok(())
    }

    /// No larger than max(rtol ‖b‖, atol), whatever the rounding of ‖b‖.
    pub(super) fn certain_tolerance(&self) -> f64 {
        let relative = self.tolerance.rtol * self.rhs_norm * (1.0 - 2.0 * norm_roundoff(self.unknowns));
        f64::max(relative, self.tolerance.atol)
    }

    /// No less than max(rtol ‖b‖, atol), whatever the rounding of ‖b‖.
    pub(super) fn largest_tolerance(&self) -> f64 {
        let relative = self.tolerance.rtol * self.rhs_norm * (1.0 + 4.0 * norm_roundoff(self.unknowns));
        f64::max(relative, self.tolerance.atol)
    }

    /// The outcome of a solve that has not converged, for the `x` that was measured last: what its residual says is put before what
    /// the method said.
    pub(super) fn classify(&mut self, ended: &Ended, x: &S::Vector) -> Result<Outcome, BackendError> {
        let outcome = ended.outcome;
        if matches!(outcome, Outcome::Converged | Outcome::Interrupted) {
            return Ok(outcome);
        }
        self.measure_precisely(x)?;
        let small = self.relative_residual_at_most() <= LARGE_RESIDUAL;
        // While iterations are left to be had, only an error that cannot be smaller is at the limit.
        let at_limit = match outcome {
            Outcome::MaxIterations => self.backward_error().is_some_and(|error| error <= f64::EPSILON),
            _ => self.is_at_limit(),
        };
        if small && (at_limit || self.backward_error().is_none() && ended.why == Why::Drifted) {
            return Ok(Outcome::AttainableAccuracy);
        }
        Ok(match self.find_witness()? {
            Finding::Nothing => outcome,
            finding => finding.outcome(),
        })
    }

    /// The residual that was computed last.
    pub(super) fn residual(&self) -> &S::Vector {
        &self.v.r
    }

    /// Whether the residual looks like a left null vector, without being a proof.
    pub(super) fn looks_singular(&self) -> bool {
        let explained = self.finding() == Finding::LeastSquares;
        explained || self.normal_residual.is_some_and(|ratio| ratio <= LOOKS_SINGULAR)
    }

    /// Keeps ‖Aᵀy‖ / ‖|A|ᵀ|y|‖ of what says why the solve failed.
    pub(super) fn keep_normal_residual(&mut self, ratio: f64) {
        self.normal_residual = Some(ratio);
    }

    pub(super) fn iterations(&self) -> usize {
        self.iterations
    }

    pub(super) fn residual_norm(&self) -> f64 {
        self.norms.norm
    }

    /// ‖b‖, which is the residual of x = 0.
    pub(super) fn rhs_norm(&self) -> f64 {
        self.rhs_norm
    }

    pub(super) fn relative_residual(&self) -> f64 {
        self.relative(self.norms.norm)
    }

    /// With its rounding.
    pub(super) fn relative_residual_at_most(&self) -> f64 {
        self.relative(self.residual_at_most())
    }

    /// How the residual was computed, what it may be at most, and why it is no smaller.
    fn certificate(&self, outcome: Outcome) -> Result<Certificate, BackendError> {
        let explained = [Outcome::LeastSquares, Outcome::Singular, Outcome::AttainableAccuracy];
        Ok(Certificate {
            arithmetic: match self.norms.certain {
                Some(bounds) if bounds.precise => "double-double".into(),
                Some(_) => "f64".into(),
                None => "f64 without a bound".into(),
            },
            criterion: if self.own.is_some() { "the caller's" } else { "tolerance" }.into(),
            residual_bound: self.norms.upper().map(|upper| self.relative(upper)),
            null_vector: if explained.contains(&outcome) { self.null_vector()? } else { None },
        })
    }

    fn relative(&self, norm: f64) -> f64 {
        if self.rhs_norm > 0.0 { norm / self.rhs_norm } else { norm }
    }

    /// ‖r‖∞ / (‖A‖∞ ‖x‖∞ + ‖b‖∞); none for an operator without a matrix.
    fn backward_error(&self) -> Option<f64> {
        let scale = self.norms.certain?.row_sum * self.largest_x + self.largest_rhs;
        Some(if scale > 0.0 { self.norms.largest / scale } else { self.norms.largest })
    }

    /// Whether the backward error of the x that was measured last is that of rounding.
    pub(super) fn is_at_limit(&self) -> bool {
        let terms = self.unknowns.clamp(4, 1000) as f64;
        self.backward_error().is_some_and(|error| error <= terms * f64::EPSILON)
    }

    /// Whether the x that was measured last is so large that rounding hides what is left of its residual, which is not small.
    pub(super) fn is_lost(&self) -> bool {
        let rounding = self.backward_error().is_some_and(|error| error <= 4.0 * f64::EPSILON);
        rounding && self.relative_residual_at_most() > LARGE_RESIDUAL
    }

    /// What the report says of the x that was measured last, with this outcome.
    pub(super) fn into_figures(self, outcome: Outcome) -> Result<Figures, BackendError> {
        let least_squares = outcome == Outcome::LeastSquares;
        Ok(Figures {
            iterations: self.iterations,
            relative_residual: self.relative(self.norms.norm),
            projected_residual: if least_squares { self.projected_residual() } else { None },
            backward_error: self.backward_error(),
            certificate: self.certificate(outcome)?,
            normal_residual: self.normal_residual,
            replacements: self.replacements,
            history: self.history,
        })
    }
}

/// The user's tolerance or criterion, and what is left of the iterations.
pub(super) struct Remaining<'c, 'p> {
    tolerance: Residual<f64>,
    own: Option<&'c mut dyn StoppingCriterion<f64>>,
    before: usize,
    scale: f64,
    limit: IterationLimit,
    /// Whether to leave for what follows.
    watcher: Option<&'c mut Watcher<'p>>,
}

impl StoppingCriterion<f64> for Remaining<'_, '_> {
    fn check(&mut self, at: &Iteration<f64>) -> Option<StopReason> {
        if at.index == 0 && at.residual_norm * f64::EPSILON > at.rhs_norm {
            return Some(StopReason::WorthlessGuess);
        }
        let given = Iteration {
            index: self.before + at.index,
            residual_norm: at.residual_norm / self.scale,
            rhs_norm: at.rhs_norm / self.scale,
        };
        if self.own.as_mut().is_some_and(|own| own.check(&given).is_some()) {
            // What it says is checked with the recomputed residual.
            return Some(StopReason::ResidualMet);
        }
        self.tolerance.check(at).or_else(|| self.limit.check(at)).or_else(|| {
            let bound = f64::max(self.tolerance.rtol * at.rhs_norm, self.tolerance.atol);
            let spent = self.watcher.as_mut().is_some_and(|watcher| watcher.is_spent(at, bound));
            spent.then_some(StopReason::Slow)
        })
    }
}

/// Passes iterations on to the user's observer, numbered through and in the user's units, and keeps the history.
pub(super) struct Watched<'a, S: SolverSpace> {
    observer: &'a mut dyn Observer<f64>,
    space: &'a S,
    before: usize,
    history: &'a mut Vec<f64>,
    rhs_norm: f64,
    scale: f64,
    /// p and A p in this process's memory, where somebody wants them.
    directions: [Vec<f64>; 2],
    failed: Option<BackendError>,
}

impl<S: SolverSpace> Observer<f64, S::Vector> for Watched<'_, S> {
    fn iterated(&mut self, iteration: &Iteration<f64>) -> ControlFlow<()> {
        // After a replacement iteration 0 is the last one again, with its true residual.
        let index = self.before + iteration.index;
        let relative = if self.rhs_norm > 0.0 { self.rhs_norm } else { 1.0 };
        self.history.truncate(index);
        self.history.push(iteration.residual_norm / relative);
        let next = self.observer.iterated(&Iteration {
            index,
            residual_norm: iteration.residual_norm / self.scale,
            rhs_norm: iteration.rhs_norm / self.scale,
        });
        if self.failed.is_some() { ControlFlow::Break(()) } else { next }
    }

    fn wants_directions(&self) -> bool {
        self.observer.wants_directions()
    }

    fn wants_direction(&self, index: usize) -> bool {
        self.observer.wants_direction(self.before + index)
    }

    fn direction(&mut self, direction: &Direction<'_, f64, S::Vector>) {
        let [p, a_p] = &mut self.directions;
        let here = self.space.download(direction.p, p).and_then(|()| self.space.download(direction.a_p, a_p));
        match here {
            Ok(()) => self.observer.direction(&Direction {
                index: self.before + direction.index,
                p,
                a_p,
                curvature: direction.curvature,
            }),
            Err(error) => self.failed = Some(error),
        }
    }
}

/// Whether all entries are 0.
pub(super) fn is_zero<S: SolverSpace>(space: &S, x: &S::Vector) -> Result<bool, BackendError> {
    let sizes = space.extremes(x)?;
    Ok(sizes.not_finite.is_none() && sizes.largest == 0.0)
}
