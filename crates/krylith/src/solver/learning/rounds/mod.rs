//! Rounds of training between the solves of a sequence: what they may take, and whether a factor is taken.
//!
//! A round trains on the pairs of the last solve and measures the result by a probe: conjugate gradients on a fixed random right-hand side, whose
//! iterations, times the predicted seconds of one in the storage that the factor has, are compared. A round that has no gain is repeated from where it
//! began with smaller steps and pairs in other [units](super::pairs::Unit).
//!
//! Before a trained factor is used instead of the one that was given, a probe with another right-hand side has to confirm it: the first one was the measure by which it was chosen, and the
//! iterations of an ill-conditioned matrix differ so much from one right-hand side to the next that among several factors the one that is best for it is so by chance.
//!
//! Solves earn a share of their own predicted seconds; training and probes spend it, and wait where there is not enough, or not enough to train for longer than the probe takes. So what may be spent is counted from
//! iterations, not by the clock: the same sequence of systems gives the same bits.

mod credit;

use self::credit::{COPY, products};
use super::online::{Learning, LearningReport};
use crate::elimination::{Incomplete, Kind};
use crate::error::{SetupError, SolveError};
use crate::gallery::normal;
use crate::matrix::{Csr, SeenValues};
use crate::observe::Observer;
use crate::options::Method;
use crate::outcome::{Outcome, Recovery};
use crate::precond::PrecondSpec;
use crate::report::Report;
use crate::solver::{Prepared, Solver, Watch};
use crate::space::Threads;
use crate::sparsify::Sparsify;
use crate::stop::{IterationLimit, Residual};
use crate::training::kernels::Lanes;
use crate::training::model::{StepVectors, Trained};
use crate::training::optimizer::Optimizer;
use crate::training::pairs::{Collector, Pairs, Unit};
use crate::training::probe::{ProgressGuard, iterations_to};
use crate::training::train::{Start, start};
use crate::transform::Ordering;
use std::sync::Arc;
use std::time::Instant;

/// Samples side by side in a step.
const BATCH: usize = 4;
/// A factor that makes the probe no faster than by this is not taken: so much may be chance.
const GAIN: f64 = 0.99;
/// A second probe confirms a factor that makes it faster than the given one by this.
const CONFIRMED: f64 = 0.95;
/// A gain pays if it saves in so many solves what its training took.
const HORIZON: f64 = 100.0;
/// The size of steps after a gain, relative to before.
const DECAY: f64 = 0.9;
/// Trainings without a gain, each with smaller steps, after which a round is given up.
const ATTEMPTS: usize = 3;
/// How much smaller.
const SMALLER: f64 = 0.3;
/// Steps smaller than the first ones by this change nothing: they begin anew with the first, and pairs in the other units.
const SMALLEST: f64 = 5e-3;
/// Solves that fail with a trained factor, after which learning ends.
const SETBACKS: usize = 2;
/// A solve with a changed matrix that takes so many times the iterations of those before opens learning again.
const LOST: f64 = 1.25;
/// Of the probe, and of the one that confirms it; no right-hand side of a training has them.
const SEEDS: [u64; 2] = [u64::MAX, u64::MAX - 1];

/// A factor that a probe is solved with.
#[derive(Clone, Copy, PartialEq)]
enum Which {
    /// The one that the solver was asked for.
    Given,
    /// The best trained one.
    Best,
    /// The one that was trained last.
    New,
}

/// A sequence of systems, its preconditioner, and what it learns from.
pub(super) struct Learner {
    /// What the solver chose: used until something trained is faster.
    base: Prepared<Csr<f64>>,
    /// Symmetric Gauss–Seidel on the trained factor's matrix.
    trained: Option<Prepared<Csr<f64>>>,
    solver: Solver,
    space: Arc<Threads<f64>>,
    learning: Learning,
    model: Trained<f32>,
    /// The factor in use, to go back to.
    best: Trained<f32>,
    /// The factor that training begins with exists only with a shift, so the diagonal may be the better beginning.
    shifted: bool,
    pairs: Pairs<f32>,
    vectors: StepVectors<f32, BATCH>,
    samples: [Vec<Lanes<f32, BATCH>>; 2],
    /// Right-hand sides of the probe, and of the one that confirms it.
    probes: [Vec<f64>; 2],
    /// Predicted seconds of the probe with the factor that was given.
    cost: f64,
    /// Of the one that confirms it, once that was solved.
    second_cost: Option<f64>,
    /// With the best trained one.
    trained_cost: f64,
    alpha: f64,
    unit: Unit,
    /// Trainings since the last gain that pays.
    failed: usize,
    /// Predicted seconds that training may still take.
    credit: f64,
    /// Predicted seconds that training and probes took.
    spent: f64,
    /// Predicted seconds of the last solve, without collecting.
    last: f64,
    /// Iterations of the last solve.
    iterations: usize,
    /// The most iterations of a solve with the given factor.
    given_iterations: usize,
    /// The trained factor is the one in use.
    uses_trained: bool,
    /// The best trained factor is faster than the given one, and that is not confirmed yet.
    unconfirmed: bool,
    /// The values of the matrix.
    seen: SeenValues,
    /// The matrix has changed since the probe was solved.
    changed: bool,
    /// Iterations of the last solve before that.
    usual: usize,
    /// A change has lost much of what was learned.
    lost: bool,
    /// Solves that have failed with a trained factor.
    setbacks: usize,
    pub(super) report: LearningReport,
}

impl Learner {
    pub(super) fn new(solver: &Solver, a: &Csr<f64>, learning: Learning) -> Result<Self, SolveError> {
        let solver = solver.clone().method(Method::Cg);
        let base = solver.prepare(a)?;
        let space = Arc::clone(base.space());
        let kind = beginning(base.kind());
        let (mut model, shift) = start(&space, a, &kind.pattern(a.pattern())?, Start::Incomplete)?;
        model.forget(&Optimizer::Adam { alpha: learning.alpha });
        let n = a.nrows();
        let lanes = || vec![[0.0; BATCH]; n];
        let seen = SeenValues::of(&space, a);
        let report = LearningReport {
            finished: learning.rounds == 0 || learning.share <= 0.0,
            ..LearningReport::default()
        };
        Ok(Learner {
            base,
            trained: None,
            solver,
            space,
            learning,
            best: model.clone(),
            model,
            shifted: shift > 0.0,
            pairs: Pairs::new(),
            vectors: StepVectors::new(n),
            samples: [lanes(), lanes()],
            probes: SEEDS.map(|seed| (0..n as u64).map(|i| normal(seed, i)).collect()),
            cost: 0.0,
            second_cost: None,
            trained_cost: f64::INFINITY,
            alpha: learning.alpha,
            unit: Unit::Length,
            failed: 0,
            credit: 0.0,
            spent: 0.0,
            last: 0.0,
            iterations: 0,
            given_iterations: 0,
            uses_trained: false,
            unconfirmed: false,
            seen,
            changed: false,
            usual: 0,
            lost: false,
            setbacks: 0,
            report,
        })
    }

    /// The factor in use, where it is a trained one.
    pub(super) fn factor(&self) -> Option<&Trained<f32>> {
        self.uses_trained.then_some(&self.best)
    }

    /// The best factor so far, whether or not it is faster than the one that was given.
    pub(super) fn best(&self) -> &Trained<f32> {
        &self.best
    }

    /// Solves with the factor in use, and collects pairs as long as something is to be learned.
    pub(super) fn solve(
        &mut self,
        a: &Csr<f64>,
        b: &[f64],
        x: &mut [f64],
        observer: &mut dyn Observer<f64>,
    ) -> Result<Report, SolveError> {
        let started = Instant::now();
        let most = self.affordable_pairs(a);
        let collects = most > 0;
        let Learner { base, trained, pairs, best, .. } = self;
        let prepared = trained.as_ref().filter(|_| self.uses_trained).unwrap_or(base);
        // It may take fewer iterations than the last.
        pairs.begin(self.iterations / 2, most);
        let patience = if self.uses_trained { self.given_iterations } else { usize::MAX };
        let mut progress = ProgressGuard::new(observer, patience);
        let solved = if !collects {
            prepared.solve_watched(a, b, x, Watch { observer: Some(&mut progress), stop: None })
        } else {
            let (space, scale) = (prepared.space(), best.scale());
            let mut collector = Collector { space, pairs: &mut *pairs, scale, observer: &mut progress };
            prepared.solve_watched(a, b, x, Watch { observer: Some(&mut collector), stop: None })
        };
        let mut solved = solved.inspect_err(|_| pairs.clear())?;
        self.report.outcome = Some(solved.outcome);
        let ended =
            progress.has_ended || !matches!(solved.outcome, Outcome::Converged | Outcome::Interrupted);
        if self.uses_trained && ended {
            return self.solve_with_given(a, b, x, observer, &solved);
        }
        if !self.uses_trained {
            self.given_iterations = self.given_iterations.max(solved.iterations);
        }
        self.iterations = solved.iterations;
        self.last = solved.iterations as f64 * prepared.predicted_iteration(a).unwrap_or(1.0);
        let collecting = match collects {
            true => products(prepared, a, solved.iterations) + COPY * (pairs.copied() * best.nrows()) as f64,
            false => 0.0,
        };
        self.account(started.elapsed().as_secs_f64(), collecting);
        if self.uses_trained {
            solved.preconditioner = "learned".into();
        }
        self.judge(collects);
        Ok(solved)
    }

    /// Goes on with the given factor after a solve with the trained one has failed, which is not used until it is better.
    fn solve_with_given(
        &mut self,
        a: &Csr<f64>,
        b: &[f64],
        x: &mut [f64],
        observer: &mut dyn Observer<f64>,
        failed: &Report,
    ) -> Result<Report, SolveError> {
        self.pairs.clear();
        (self.uses_trained, self.unconfirmed, self.report.break_even) = (false, false, None);
        self.setbacks += 1;
        self.report.finished |= self.setbacks >= SETBACKS;
        let started = Instant::now();
        let mut solved = self.base.solve_watched(a, b, x, Watch { observer: Some(observer), stop: None })?;
        let seconds = started.elapsed().as_secs_f64() + failed.seconds.solve;
        self.report.solves += 1;
        self.report.outcome = Some(solved.outcome);
        self.report.solve_seconds += seconds;
        solved.iterations += failed.iterations;
        solved.seconds.solve += failed.seconds.solve;
        solved.rungs.splice(..0, failed.rungs.iter().cloned());
        let ended = format!("learned: no convergence in {} iterations", failed.iterations);
        let action = format!("{} instead, as given", self.base.kind());
        solved.recovery.push(Recovery { failed: ended, row: None, value: None, action });
        Ok(solved)
    }

    /// Whether there is less to learn than it seemed, or more.
    fn judge(&mut self, collects: bool) {
        let Learning { rounds, patience, .. } = self.learning;
        if collects && self.pairs.len() < BATCH {
            self.failed += ATTEMPTS;
            self.report.finished = self.failed >= ATTEMPTS.saturating_mul(patience);
        }
        if !self.changed {
            self.usual = self.iterations;
        } else if self.report.finished
            && self.uses_trained
            && self.report.rounds < rounds
            && self.iterations as f64 > LOST * self.usual as f64
        {
            (self.failed, self.lost, self.report.finished) = (0, true, false);
        }
    }

    /// Takes over the values of a matrix of the same pattern.
    pub(super) fn refactor(&mut self, a: &Csr<f64>) -> Result<(), SolveError> {
        if self.seen.are_those_of(&self.space, a) {
            return Ok(());
        }
        self.base.refactor(a)?;
        let diagonal = a.diagonal().map_err(SetupError::from)?;
        self.model.rescale(&diagonal)?;
        self.best.rescale(&diagonal)?;
        if let Some(trained) = &mut self.trained {
            trained.refactor(&self.best.matrix())?;
        }
        self.seen = SeenValues::of(&self.space, a);
        (self.changed, self.second_cost) = (true, None);
        Ok(())
    }

    /// Trains on the pairs of the last solve, with smaller steps until a probe is faster.
    pub(super) fn learn(&mut self, a: &Csr<f64>) -> Result<(), SolveError> {
        let started = Instant::now();
        self.confirm(a)?;
        if self.trained.is_none() {
            self.begin(a)?;
            self.changed = false;
        } else if self.changed && self.can_train() {
            let (cost, iterations) = self.measure(a, Which::Best, 0, f64::INFINITY)?;
            // What the given factor takes has changed likewise, unless there is reason to doubt it.
            let (change, lost) = (cost / self.trained_cost, std::mem::take(&mut self.lost));
            self.cost = match change > 0.0 && change.is_finite() && !lost {
                true => self.cost * change,
                false => self.measure(a, Which::Given, 0, f64::INFINITY)?.0,
            };
            self.trained_cost = cost;
            self.report.probe_iterations[1] = iterations;
            self.changed = false;
        }
        let mut is_first = true;
        while self.pairs.len() >= BATCH && self.can_train() {
            if std::mem::take(&mut is_first) {
                self.report.rounds += 1;
            }
            if self.attempt(a)? || self.failed.is_multiple_of(ATTEMPTS) {
                break;
            }
        }
        self.confirm(a)?;
        self.uses_trained &= self.trained_cost < GAIN * self.cost;
        self.report.break_even = self.report.break_even.filter(|_| self.uses_trained);
        let Learning { rounds, patience, .. } = self.learning;
        self.report.finished |=
            self.report.rounds >= rounds || self.failed >= ATTEMPTS.saturating_mul(patience);
        self.report.seconds += started.elapsed().as_secs_f64();
        // They have taught what they can.
        self.pairs.clear();
        Ok(())
    }

    /// Whether a trained factor is used from now on, where that can be asked and paid for.
    fn confirm(&mut self, a: &Csr<f64>) -> Result<(), SolveError> {
        if !self.can_confirm() {
            return Ok(());
        }
        let cost = match self.second_cost {
            Some(cost) => cost,
            None if self.cost.is_infinite() => self.cost,
            None => self.measure(a, Which::Given, 1, f64::INFINITY)?.0,
        };
        self.second_cost = Some(cost);
        let (trained, iterations) = self.measure(a, Which::Best, 1, cost)?;
        tracing::debug!(iterations, trained, cost, "second probe");
        (self.uses_trained, self.unconfirmed) = (trained < CONFIRMED * cost, false);
        Ok(())
    }

    /// How many probes are solved before the first round.
    fn first_probes(&self) -> usize {
        if self.shifted { 3 } else { 2 - usize::from(self.begins_with_given()) }
    }

    /// The given factor is the one that training begins with.
    fn begins_with_given(&self) -> bool {
        let kind = self.base.kind();
        !self.shifted && self.base.is_of_a_as_given() && *kind == PrecondSpec::ic(beginning(kind).level)
    }

    /// Trains, and measures what came out. Whether it is better than what there was.
    fn attempt(&mut self, a: &Csr<f64>) -> Result<bool, SolveError> {
        let (before, spent) = (self.trained_cost, self.spent);
        let passes = self.affordable_passes();
        self.spend(passes as f64 * self.training(self.pairs.len()));
        self.step_through_pairs(passes);
        // Numbers that are not finite are a factor like any other that is not taken.
        let (cost, iterations) = match self.put(a, Which::New) {
            Err(SolveError::Setup(_)) => (f64::INFINITY, f64::INFINITY),
            other => {
                other?;
                self.measure(a, Which::New, 0, before)?
            }
        };
        let (round, alpha) = (self.report.rounds, self.alpha);
        tracing::debug!(round, passes, alpha, unit = ?self.unit, iterations, cost, best = before, "probe");
        if cost < GAIN * before {
            self.trained_cost = cost;
            self.best.clone_from(&self.model);
            self.report.accepted += 1;
            self.report.probe_iterations[1] = iterations;
            self.alpha *= DECAY;
            let pays = HORIZON * (before - cost) >= self.spent - spent;
            self.failed = if pays { 0 } else { self.failed + 1 };
            self.unconfirmed = !self.uses_trained && cost < GAIN * self.cost;
            return Ok(true);
        }
        self.failed += 1;
        self.alpha *= SMALLER;
        if self.alpha < SMALLEST * self.learning.alpha {
            self.alpha = self.learning.alpha;
        }
        self.unit = self.unit.other();
        self.model.clone_from(&self.best);
        self.model.forget(&Optimizer::Adam { alpha: self.alpha });
        self.put(a, Which::Best)?;
        Ok(false)
    }

    /// What the factor that was given, and the one that training begins with, take for the probe.
    fn begin(&mut self, a: &Csr<f64>) -> Result<(), SolveError> {
        // All within what was earned: a guess may have made solves much shorter than a probe.
        let limit = self.credit / self.first_probes() as f64;
        let (cost, iterations) = self.measure(a, Which::Given, 0, limit)?;
        (self.cost, self.report.probe_iterations) = (cost, [iterations; 2]);
        self.put(a, Which::Best)?;
        self.trained_cost = match &self.trained {
            Some(trained) if self.begins_with_given() => {
                iterations * trained.predicted_iteration(a).unwrap_or(1.0)
            }
            _ => {
                let (cost, iterations) = self.measure(a, Which::Best, 0, limit)?;
                self.report.probe_iterations[1] = iterations;
                cost
            }
        };
        // Breakdown without a shift: A is hardly definite, and the diagonal may go further.
        if self.shifted || self.trained_cost.is_infinite() {
            let diagonal = a.diagonal().map_err(SetupError::from)?;
            let optimizer = Optimizer::Adam { alpha: self.alpha };
            self.model = Trained::identity(self.best.pattern(), &diagonal)?;
            self.model.forget(&optimizer);
            self.put(a, Which::New)?;
            let limit = limit.min(self.trained_cost).min(self.credit);
            let (cost, iterations) = self.measure(a, Which::New, 0, limit)?;
            if cost < self.trained_cost {
                (self.trained_cost, self.report.probe_iterations[1]) = (cost, iterations);
                self.best.clone_from(&self.model);
            } else {
                self.model.clone_from(&self.best);
                self.put(a, Which::Best)?;
            }
        }
        Ok(())
    }

    /// Puts a trained factor into its storage.
    fn put(&mut self, a: &Csr<f64>, which: Which) -> Result<(), SolveError> {
        let p = if which == Which::New { self.model.matrix() } else { self.best.matrix() };
        match &mut self.trained {
            Some(trained) => trained.refactor(&p)?,
            none => {
                // Of P as it is: a shift, fewer entries or another order would make another M.
                let solver = self.solver.clone().preconditioner(PrecondSpec::ssor(1.0)).shift(0.0);
                let solver = solver.sparsify(Sparsify::Off).reorder(Ordering::Natural);
                *none = Some(solver.prepare_with(a, &p)?);
            }
        }
        Ok(())
    }

    fn step_through_pairs(&mut self, passes: usize) {
        let (pairs, [x, y]) = (&self.pairs, &mut self.samples);
        let batches = pairs.len() / BATCH;
        let steps = batches * passes;
        // More steps, each of them smaller: entries move as far.
        let optimizer = Optimizer::Adam { alpha: self.alpha / (passes as f64).sqrt() };
        for k in 0..steps {
            // Pairs of a batch are spread over the solve.
            let which = std::array::from_fn(|lane| lane * batches + k % batches);
            pairs.gather(&self.space, which, self.unit, [&mut *x, &mut *y]);
            self.model.step(&self.space, [&*x, &*y], (&optimizer, k, steps), &mut self.vectors);
        }
    }

    /// Predicted seconds, and iterations, of conjugate gradients on a probe; extrapolated where they would be more than `limit` seconds.
    fn measure(
        &mut self,
        a: &Csr<f64>,
        which: Which,
        probe: usize,
        limit: f64,
    ) -> Result<(f64, f64), SolveError> {
        let started = Instant::now();
        let prepared = match &self.trained {
            Some(prepared) if which != Which::Given => prepared,
            _ => &self.base,
        };
        let b = &self.probes[probe];
        let mut x = vec![0.0; b.len()];
        let goal = self.solver.tolerance().max(f64::EPSILON);
        let seconds = prepared.predicted_iteration(a).unwrap_or(1.0);
        let most = (limit / seconds).ceil() as usize;
        let mut stop = (Residual { rtol: goal, atol: 0.0 }, IterationLimit(most));
        let watch = Watch { observer: None, stop: Some(&mut stop) };
        let report = prepared.solve_watched(a, b, &mut x, watch)?;
        let iterations = iterations_to(goal, &report);
        self.spend(report.iterations as f64 * seconds);
        self.report.probe_seconds += started.elapsed().as_secs_f64();
        Ok((iterations * seconds, iterations))
    }
}

/// Which factor training begins with: IC(k) with the level of the one that was given, or 0. Not the modified factor: its sums of rows are right already,
/// and steps that spoil them make it worse before anything else makes it better, while IC(k) has ended with fewer iterations on most matrices.
fn beginning(given: &PrecondSpec) -> Incomplete {
    let cholesky = given.incomplete().filter(|kind| kind.form.kind == Kind::Cholesky);
    Incomplete::ic(cholesky.map_or(0, |kind| kind.level))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gallery::{Problem, random_vector};

    /// The diagonal as the trained factor takes more iterations than are allowed; IC(0) goes on from there.
    #[test]
    fn a_solve_that_fails_goes_on_with_the_given_factor() {
        let a = "poisson2d:30".parse::<Problem>().unwrap().generate().unwrap();
        let (b, mut x) = (random_vector(900), vec![0.0; 900]);
        let solver = Solver::new().preconditioner(PrecondSpec::ic(0)).max_iterations(50).rtol(1e-10);
        let mut learner = Learner::new(&solver, &a, Learning::default()).unwrap();
        learner.best = Trained::identity(a.pattern(), &a.diagonal().unwrap()).unwrap();
        learner.put(&a, Which::Best).unwrap();
        (learner.uses_trained, learner.given_iterations) = (true, 50);
        learner.report.break_even = Some(1);
        let report = learner.solve(&a, &b, &mut x, &mut ()).unwrap();
        report.require_converged().unwrap();
        assert!(report.iterations > 50 && report.iterations < 100, "{}", report.iterations);
        assert!(
            report.recovery.iter().any(|step| step.failed.starts_with("learned")),
            "{:?}",
            report.recovery
        );
        assert!(report.rungs.len() >= 2 && report.preconditioner == "ic0");
        assert_eq!(learner.report.break_even, None);
        assert!(!learner.report.finished && learner.factor().is_none() && learner.report.solves == 1);
        x.fill(0.0);
        learner.uses_trained = true;
        learner.solve(&a, &b, &mut x, &mut ()).unwrap().require_converged().unwrap();
        assert!(learner.report.finished);
    }
}
