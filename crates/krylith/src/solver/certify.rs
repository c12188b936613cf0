//! What a recurrence claims is checked: the residual is recomputed from A, x and b, with a bound of its own rounding.
//!
//! The recurrence of a Krylov method drifts away from b − A x in finite precision, so that it may say "met" where the answer is
//! not good enough. Then the residual is replaced by the recomputed one (CG keeps its search direction, see `Cg::resume`) and
//! the iteration goes on, at most [`REPLACEMENTS`] times; after that the accuracy is what can be attained.
//!
//! "Converged" is said where ‖r̂‖ and a bound of ‖r̂ − (b − A x)‖ together meet the tolerance. The bound of `f64` is tried first, in
//! the pass that computes r̂ (`matrix::residual`); only where it leaves the question open r̂ is computed in double-double. An
//! operator without a matrix gives no bound, and the report says so.
//!
//! b and x are held multiplied by a power of two where b is out of range (`magnitude`); norms here are those of the scaled b.
//! Reference: van der Vorst & Ye 2000, doi:10.1137/S1064827599353865.

use super::Solver;
use super::engine::as_matrix;
use super::magnitude::Magnitude;
use crate::error::{BackendError, SolveError};
use crate::krylov::{Finish, Status};
use crate::matrix::{
    Arithmetic, Chunk, Csr, ResidualNorms, chunk_count, norm_roundoff, normal_residual, residual,
};
use crate::observe::{Iteration, Observer};
use crate::operator::LinearOperator;
use crate::report::{Certificate, Outcome};
use crate::space::{Space, Threads, require_same};
use crate::stop::{IterationLimit, Residual, StopReason, StoppingCriterion};
use std::ops::ControlFlow;
use std::sync::Arc;

/// How often a residual may be replaced.
const REPLACEMENTS: usize = 3;
/// A recurrence below this part of ‖b‖ is stopped, whatever the tolerance: no x in `f64` has such a residual but by chance.
const FLOOR: f64 = f64::EPSILON / 16.0;
/// ‖Aᵀr‖ up to this part of ‖|A|ᵀ|r|‖ says that r cannot be made smaller.
const SINGULAR: f64 = 1e-8;
/// A backward error at rounding level with a relative residual above this: x has grown without bound.
const LARGE_RESIDUAL: f64 = 1e-3;
/// What is said where replacements have not helped.
const DRIFTED: &str = "the residual of the recurrence is not that of x";
/// Why a guess is not started from.
const WORTHLESS_GUESS: &str = "the guess has no digit in common with an answer";

/// Judges the ends of iterations of one solve.
pub(super) struct Certifier<'a, A: LinearOperator<Threads<f64>>> {
    space: Arc<Threads<f64>>,
    a: &'a A,
    matrix: Option<&'a Csr<f64>>,
    scratch: A::Scratch,
    /// b, multiplied by `scale`.
    pub(super) b: Vec<f64>,
    scale: f64,
    r: Vec<f64>,
    chunks: Vec<Chunk>,
    rhs_norm: f64,
    largest_rhs: f64,
    /// ‖x‖∞ of the x that was measured last.
    largest_x: f64,
    tolerance: Residual<f64>,
    max_iterations: usize,
    iterations: usize,
    replacements: usize,
    history: Vec<f64>,
    /// Of the x that was measured last.
    norms: ResidualNorms,
    arithmetic: Option<Arithmetic>,
    normal_residual: Option<f64>,
}

/// How a run of a method ended, and in a few words what it said.
pub(super) struct Ended {
    pub(super) outcome: Outcome,
    pub(super) what: &'static str,
}

/// What follows the end of a run.
pub(super) enum Verdict {
    Ended(Ended),
    /// The residual of the recurrence has drifted: go on from the recomputed one.
    Replace,
    /// The guess is worse than nothing: begin from zero.
    FromZero,
}

impl<'a, A: LinearOperator<Threads<f64>> + 'static> Certifier<'a, A> {
    pub(super) fn new(
        space: &Arc<Threads<f64>>,
        a: &'a A,
        b: &[f64],
        options: &Solver,
    ) -> Result<Self, SolveError> {
        require_same("b and the range of A", &b.len(), &a.range())?;
        let size = Magnitude::of_vector(space, "b", b)?;
        let scale = size.scale();
        let b: Vec<f64> = b.iter().map(|b| b * scale).collect();
        Ok(Certifier {
            space: Arc::clone(space),
            a,
            matrix: as_matrix(a),
            scratch: a.scratch(space)?,
            r: space.zeros(&b.len())?,
            chunks: vec![Chunk::default(); chunk_count(b.len())],
            rhs_norm: space.norm(&b)?,
            largest_rhs: size.largest * scale,
            largest_x: 0.0,
            b,
            scale,
            tolerance: Residual { rtol: options.rtol, atol: options.atol * scale },
            max_iterations: options.max_iterations,
            iterations: 0,
            replacements: 0,
            // Room for every iteration, so that none allocates, up to 8 MB of them.
            history: Vec::with_capacity(options.max_iterations.min(1 << 20) + 1),
            norms: ResidualNorms::default(),
            arithmetic: None,
            normal_residual: None,
        })
    }

    /// The power of two that b and x are multiplied by.
    pub(super) fn scale(&self) -> f64 {
        self.scale
    }

    /// Runs a method with the criterion for what is left, numbering its iterations on from those before.
    pub(super) fn watch<O: Observer<f64>>(
        &mut self,
        observer: &mut O,
        run: impl FnOnce(&Vec<f64>, &mut Remaining, &mut Watched<'_, O>) -> Result<Finish<f64>, BackendError>,
    ) -> Result<Finish<f64>, BackendError> {
        let mut stop = Remaining {
            tolerance: Residual { rtol: self.tolerance.rtol.max(FLOOR), ..self.tolerance },
            limit: IterationLimit(self.max_iterations - self.iterations),
        };
        let mut watched = Watched {
            observer,
            before: self.iterations,
            history: &mut self.history,
            rhs_norm: self.rhs_norm,
            scale: self.scale,
        };
        let finish = run(&self.b, &mut stop, &mut watched)?;
        self.iterations += finish.iterations;
        Ok(finish)
    }

    /// What the end of a run means for `x`.
    pub(super) fn judge(&mut self, finish: Finish<f64>, x: &Vec<f64>) -> Result<Verdict, BackendError> {
        let ended = |outcome, what| Ok(Verdict::Ended(Ended { outcome, what }));
        let begun = finish.iterations > 0;
        if finish.status == Status::Stopped(StopReason::Other(WORTHLESS_GUESS)) {
            return Ok(Verdict::FromZero);
        }
        if finish.status == Status::NotFinite && !begun && x.iter().any(|&x| x != 0.0) {
            return Ok(Verdict::FromZero);
        }
        if self.measure(x)? {
            return ended(Outcome::Converged, "met");
        }
        match finish.status {
            Status::Stopped(StopReason::ResidualMet)
                if self.replacements < REPLACEMENTS && self.iterations < self.max_iterations =>
            {
                self.replacements += 1;
                Ok(Verdict::Replace)
            }
            Status::Stopped(StopReason::ResidualMet) => ended(Outcome::Breakdown, DRIFTED),
            Status::Stopped(_) => ended(Outcome::MaxIterations, "limit of iterations"),
            Status::Interrupted => ended(Outcome::Interrupted, "interrupted"),
            Status::IndefiniteOperator => ended(Outcome::IndefiniteOperator, "A is not positive definite"),
            Status::IndefinitePreconditioner => {
                ended(Outcome::IndefinitePreconditioner, "M is not positive definite")
            }
            Status::Breakdown { what } => ended(Outcome::Breakdown, what),
            Status::NotFinite if begun => ended(Outcome::Diverged, "a number that is not finite"),
            Status::NotFinite => ended(Outcome::NotFinite, "a number that is not finite"),
            Status::Diverged => ended(Outcome::Diverged, "the residual has grown beyond 1/ε of its least"),
        }
    }

    /// Recomputes the residual of `x`; whether it meets the tolerance, its rounding included.
    pub(super) fn measure(&mut self, x: &Vec<f64>) -> Result<bool, BackendError> {
        let _span = tracing::info_span!("verify").entered();
        self.largest_x = Magnitude::of(&self.space, x).map_or(f64::NAN, |size| size.largest);
        if self.largest_x.is_nan() {
            // An entry that is not finite may meet an empty column and leave the residual as it is.
            self.norms = ResidualNorms { norm: f64::NAN, largest: f64::NAN, ..self.norms };
            return Ok(false);
        }
        let Some(matrix) = self.matrix else {
            self.a.apply(&self.space, x, &mut self.r, &mut self.scratch)?;
            self.space.axpby(1.0, &self.b, -1.0, &mut self.r)?;
            let largest = self.r.iter().fold(0.0, |m: f64, r| m.max(r.abs()));
            let norm = self.space.norm(&self.r)?;
            self.norms = ResidualNorms { norm, largest, ..ResidualNorms::default() };
            let at = Iteration { index: 0, residual_norm: norm, rhs_norm: self.rhs_norm };
            return Ok(self.tolerance.check(&at).is_some());
        };
        self.compute(matrix, x, Arithmetic::Double);
        let tolerance = self.certain_tolerance();
        if self.norms.upper() <= tolerance {
            return Ok(true);
        }
        // Certainly not met, and the figure is good to a tenth: no need to know more.
        let open = self.norms.norm - self.norms.rounding <= tolerance;
        if open || self.norms.rounding > 0.1 * self.norms.norm {
            self.compute(matrix, x, Arithmetic::DoubleDouble);
        }
        Ok(self.norms.upper() <= tolerance)
    }

    fn compute(&mut self, matrix: &Csr<f64>, x: &[f64], arithmetic: Arithmetic) {
        let vectors = (x, self.b.as_slice());
        self.norms = residual(&self.space, matrix, vectors, arithmetic, &mut self.r, &mut self.chunks);
        self.arithmetic = Some(arithmetic);
    }

    /// No larger than max(rtol ‖b‖, atol), whatever the rounding of ‖b‖.
    fn certain_tolerance(&self) -> f64 {
        let relative = self.tolerance.rtol * self.rhs_norm * (1.0 - 2.0 * norm_roundoff(self.b.len()));
        f64::max(relative, self.tolerance.atol)
    }

    /// The outcome of a solve that has not converged, for the x that was measured last: what its residual says is put before what
    /// the method said.
    pub(super) fn classify(&mut self, ended: &Ended) -> Outcome {
        let outcome = ended.outcome;
        if matches!(outcome, Outcome::Converged | Outcome::Interrupted) {
            return outcome;
        }
        let small = self.relative_residual() <= LARGE_RESIDUAL;
        let Some(matrix) = self.matrix else {
            return if small && ended.what == DRIFTED { Outcome::AttainableAccuracy } else { outcome };
        };
        let backward_error = self.backward_error().unwrap_or(f64::NAN);
        // While iterations are left to be had, only an error that cannot be smaller is at the limit.
        let terms = if outcome == Outcome::MaxIterations { 1 } else { self.b.len().clamp(4, 1000) };
        let at_limit = backward_error <= terms as f64 * f64::EPSILON;
        if at_limit && small {
            return Outcome::AttainableAccuracy;
        }
        let ratio = normal_residual(matrix.view(), &self.r);
        self.normal_residual = Some(ratio);
        match at_limit || ratio <= SINGULAR || self.has_part_outside_of_range(matrix) {
            true => Outcome::Singular,
            false => outcome,
        }
    }

    /// Whether Aᵀ1 = 0 to rounding, as for a pure Neumann problem, and b has a mean: then no residual is smaller than |1ᵀb| / √n.
    fn has_part_outside_of_range(&mut self, matrix: &Csr<f64>) -> bool {
        let n = self.b.len();
        let ratio = normal_residual(matrix.view(), &vec![1.0; n]);
        let (sum, size) = self.b.iter().fold((0.0, 0.0), |(sum, size), b| (sum + b, size + b.abs()));
        let certain = f64::abs(sum) - n as f64 * f64::EPSILON * size;
        let outside = ratio <= 8.0 * f64::EPSILON && certain > (n as f64).sqrt() * self.certain_tolerance();
        if outside {
            self.normal_residual = Some(ratio);
        }
        outside
    }

    pub(super) fn iterations(&self) -> usize {
        self.iterations
    }

    pub(super) fn replacements(&self) -> usize {
        self.replacements
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

    /// How the residual was computed, and what it may be at most.
    pub(super) fn certificate(&self) -> Certificate {
        Certificate {
            arithmetic: match self.arithmetic {
                Some(Arithmetic::Double) => "f64",
                Some(Arithmetic::DoubleDouble) => "double-double",
                None => "f64 without a bound",
            },
            residual_bound: self.arithmetic.map(|_| self.relative(self.norms.upper())),
        }
    }

    /// ‖Aᵀr‖ / ‖|A|ᵀ|r|‖, where the outcome depended on it.
    pub(super) fn normal_residual(&self) -> Option<f64> {
        self.normal_residual
    }

    fn relative(&self, norm: f64) -> f64 {
        if self.rhs_norm > 0.0 { norm / self.rhs_norm } else { norm }
    }

    /// ‖r‖∞ / (‖A‖∞ ‖x‖∞ + ‖b‖∞); none for an operator without a matrix.
    pub(super) fn backward_error(&self) -> Option<f64> {
        self.matrix?;
        let scale = self.norms.row_sum * self.largest_x + self.largest_rhs;
        Some(if scale > 0.0 { self.norms.largest / scale } else { self.norms.largest })
    }

    pub(super) fn into_history(self) -> Vec<f64> {
        self.history
    }
}

/// The user's tolerance, and what is left of the iterations.
pub(super) struct Remaining {
    tolerance: Residual<f64>,
    limit: IterationLimit,
}

impl StoppingCriterion<f64> for Remaining {
    fn check(&mut self, at: &Iteration<f64>) -> Option<StopReason> {
        if at.index == 0 && at.residual_norm * f64::EPSILON > at.rhs_norm {
            return Some(StopReason::Other(WORTHLESS_GUESS));
        }
        self.tolerance.check(at).or_else(|| self.limit.check(at))
    }
}

/// Passes iterations on to the user's observer, numbered through and in the user's units, and keeps the history.
pub(super) struct Watched<'a, O> {
    observer: &'a mut O,
    before: usize,
    history: &'a mut Vec<f64>,
    rhs_norm: f64,
    scale: f64,
}

impl<O: Observer<f64>> Observer<f64> for Watched<'_, O> {
    fn iterated(&mut self, iteration: &Iteration<f64>) -> ControlFlow<()> {
        // After a replacement iteration 0 is the last one again, with its true residual.
        let index = self.before + iteration.index;
        let relative = if self.rhs_norm > 0.0 { self.rhs_norm } else { 1.0 };
        self.history.truncate(index);
        self.history.push(iteration.residual_norm / relative);
        self.observer.iterated(&Iteration {
            index,
            residual_norm: iteration.residual_norm / self.scale,
            rhs_norm: iteration.rhs_norm / self.scale,
        })
    }
}
