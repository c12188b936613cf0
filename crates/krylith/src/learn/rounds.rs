//! Rounds of training between the solves of a sequence: what they may take, and whether a factor is taken.
//!
//! A round trains on the pairs of the last solve and measures the result by a probe: conjugate gradients on a fixed random right-hand side, whose
//! iterations, times the predicted seconds of one in the storage that the factor has, are compared. A round that has no gain is repeated from where it
//! began with smaller steps.
//!
//! Solves earn a share of their own predicted seconds; training and probes spend it, and wait where there is not enough. So what may be spent is counted from
//! iterations, not by the clock: the same sequence of systems gives the same bits.

use super::kernels::Lanes;
use super::model::{StepVectors, Trained};
use super::online::{Learning, LearningReport};
use super::optimizer::Optimizer;
use super::pairs::{Collector, Pairs};
use super::train::{Start, start};
use crate::choice::Method;
use crate::error::{SetupError, SolveError};
use crate::gallery::normal;
use crate::matrix::{Csr, SeenValues};
use crate::observe::Observer;
use crate::precond::{Incomplete, Kind, PrecondSpec};
use crate::report::{Outcome, Report};
use crate::solver::{Prepared, Solver, Watch};
use crate::space::Threads;
use crate::sparsify::Sparsify;
use crate::stop::{IterationLimit, Residual};
use crate::transform::Ordering;
use std::sync::Arc;
use std::time::Instant;

/// Samples side by side in a step.
const BATCH: usize = 4;
/// A factor that makes the probe no faster than by this is not taken: so much may be chance.
const GAIN: f64 = 0.99;
/// The size of steps after a gain, relative to before.
const DECAY: f64 = 0.9;
/// Trainings without a gain, each with smaller steps, after which a round is given up.
const ATTEMPTS: usize = 3;
/// How much smaller.
const SMALLER: f64 = 0.3;
/// Fewer pairs are not worth a probe.
const LEAST_PAIRS: usize = 64;
/// Bytes that pairs may take.
const BYTES: usize = 1 << 28;
/// A solve with a changed matrix that takes so many times the iterations of those before opens learning again.
const LOST: f64 = 1.25;
/// Of the probe; no right-hand side of a training has it.
const SEED: u64 = u64::MAX;
/// Seconds of a step per entry of L and per row: a rough figure, which only decides how soon a round is affordable.
const STEP: [f64; 2] = [6e-9, 12e-9];
/// Seconds of copying a pair, per row: rough likewise.
const COPY: f64 = 8e-9;

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
    /// IC(0) exists only with a shift, so the diagonal may be the better beginning.
    shifted: bool,
    pairs: Pairs<f32>,
    vectors: StepVectors<f32, BATCH>,
    samples: [Vec<Lanes<f32, BATCH>>; 2],
    probe: Vec<f64>,
    /// Predicted seconds of the probe with the factor that was given.
    cost: f64,
    /// With the best trained one.
    trained_cost: f64,
    alpha: f64,
    /// Trainings since the last gain.
    failed: usize,
    /// Predicted seconds that training may still take.
    credit: f64,
    /// Predicted seconds of the last solve, without collecting.
    last: f64,
    /// Iterations of the last solve.
    iterations: usize,
    /// The trained factor is the one in use.
    uses_trained: bool,
    /// The values of the matrix.
    seen: SeenValues,
    /// The matrix has changed since the probe was solved.
    changed: bool,
    /// Iterations of the last solve before that.
    usual: usize,
    /// A change has lost much of what was learned.
    lost: bool,
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
            probe: (0..n as u64).map(|i| normal(SEED, i)).collect(),
            cost: 0.0,
            trained_cost: f64::INFINITY,
            alpha: learning.alpha,
            failed: 0,
            credit: 0.0,
            last: 0.0,
            iterations: 0,
            uses_trained: false,
            seen,
            changed: false,
            usual: 0,
            lost: false,
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
        let solved = if !collects {
            prepared.solve_watched(a, b, x, Watch { observer: Some(observer), stop: None })
        } else {
            let mut collector =
                Collector { space: prepared.space(), pairs: &mut *pairs, scale: best.scale(), observer };
            prepared.solve_watched(a, b, x, Watch { observer: Some(&mut collector), stop: None })
        };
        let mut solved = solved.inspect_err(|_| pairs.clear())?;
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

    /// What a solve of so many seconds earned and saved; collecting took so many of its predicted seconds.
    fn account(&mut self, mut spent: f64, collecting: f64) {
        let report = &mut self.report;
        report.solves += 1;
        report.solve_seconds += spent;
        if self.last > 0.0 {
            self.credit += self.learning.share * self.last - collecting;
            let seconds = spent * collecting / (self.last + collecting);
            report.collecting_seconds += seconds;
            spent -= seconds;
        }
        if self.uses_trained {
            // A solve with the given factor would have taken as much longer as the probe does.
            let saved = spent * (self.cost / self.trained_cost - 1.0);
            report.saved_seconds += saved;
            let paid = report.seconds + report.collecting_seconds;
            let left = (paid - report.saved_seconds).max(0.0) / saved.max(f64::MIN_POSITIVE);
            if report.break_even.is_none_or(|solve| solve >= report.solves) {
                report.break_even = Some(report.solves + left.min(1e9).ceil() as usize);
            }
        }
    }

    /// How many pairs a round can be paid for if the next solve is like the last one; 0 where they are not worth collecting.
    fn affordable_pairs(&self, a: &Csr<f64>) -> usize {
        let rows = self.model.nrows();
        let most = self.learning.pairs.min(BYTES / (8 * rows.max(1))).max(2 * BATCH);
        if self.report.finished {
            return 0;
        }
        if self.learning.share.is_infinite() {
            return most;
        }
        let prepared = self.trained.as_ref().filter(|_| self.uses_trained).unwrap_or(&self.base);
        let earned = self.credit + self.learning.share * self.last - products(prepared, a, self.iterations);
        let pair = self.training(BATCH) / BATCH as f64 + COPY * rows as f64;
        let found = (earned - self.price_of(0)) / pair;
        if found < LEAST_PAIRS.min(most) as f64 { 0 } else { most.min(found as usize) }
    }

    /// Whether there is less to learn than it seemed, or more.
    fn judge(&mut self, collects: bool) {
        let Learning { rounds, patience, .. } = self.learning;
        if collects && self.pairs.len() < BATCH {
            self.failed += ATTEMPTS;
            self.report.finished = self.failed >= ATTEMPTS * patience;
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
        self.changed = true;
        Ok(())
    }

    /// Whether there is something to learn, and enough was earned for it.
    pub(super) fn is_due(&self) -> bool {
        !self.report.finished
            && (self.trained.is_none() && self.report.solves > 0 || self.pairs.len() >= BATCH)
            && self.credit >= self.price_of(self.pairs.len())
    }

    /// Trains on the pairs of the last solve, with smaller steps until a probe is faster.
    pub(super) fn learn(&mut self, a: &Csr<f64>) -> Result<(), SolveError> {
        let started = Instant::now();
        if self.trained.is_none() {
            self.begin(a)?;
        } else if self.changed {
            let (cost, iterations) = self.measure(a, Which::Best, f64::INFINITY)?;
            // What the given factor takes has changed likewise, unless there is reason to doubt it.
            self.cost = match std::mem::take(&mut self.lost) {
                true => self.measure(a, Which::Given, f64::INFINITY)?.0,
                false => self.cost * cost / self.trained_cost,
            };
            self.trained_cost = cost;
            self.report.probe_iterations[1] = iterations;
        }
        self.changed = false;
        let mut is_first = true;
        while self.pairs.len() >= BATCH && self.is_due() {
            if std::mem::take(&mut is_first) {
                self.report.rounds += 1;
            }
            if self.attempt(a)? || self.failed.is_multiple_of(ATTEMPTS) {
                break;
            }
        }
        self.uses_trained = self.report.accepted > 0 && self.trained_cost < GAIN * self.cost;
        let Learning { rounds, patience, .. } = self.learning;
        self.report.finished = self.report.rounds >= rounds || self.failed >= ATTEMPTS * patience;
        self.report.seconds += started.elapsed().as_secs_f64();
        // They have taught what they can.
        self.pairs.clear();
        Ok(())
    }

    /// Predicted seconds of a round on so many pairs with its probe; of the first probes, where nothing has been trained yet.
    fn price_of(&self, pairs: usize) -> f64 {
        if self.trained.is_none() {
            return self.last * if self.shifted { 3.0 } else { 2.0 };
        }
        let probe = if self.trained_cost.is_finite() { self.trained_cost } else { self.last };
        self.training(pairs) + probe * if self.changed { 2.0 } else { 1.0 }
    }

    /// Predicted seconds of a training on so many pairs.
    fn training(&self, pairs: usize) -> f64 {
        let [entry, row] = STEP;
        let step = entry * self.model.nnz() as f64 + row * self.model.nrows() as f64;
        (pairs / BATCH * self.learning.passes) as f64 * step
    }

    /// Trains, and measures what came out. Whether it is better than what there was.
    fn attempt(&mut self, a: &Csr<f64>) -> Result<bool, SolveError> {
        let before = self.trained_cost;
        self.credit -= self.training(self.pairs.len());
        self.step_through_pairs();
        // Numbers that are not finite are a factor like any other that is not taken.
        let (cost, iterations) = match self.put(a, Which::New) {
            Err(SolveError::Setup(_)) => (f64::INFINITY, f64::INFINITY),
            other => {
                other?;
                self.measure(a, Which::New, before)?
            }
        };
        let (round, alpha) = (self.report.rounds, self.alpha);
        tracing::debug!(round, alpha, iterations, cost, best = before, "probe");
        if cost < GAIN * before {
            self.trained_cost = cost;
            self.best.clone_from(&self.model);
            self.report.accepted += 1;
            self.report.probe_iterations[1] = iterations;
            self.alpha *= DECAY;
            self.failed = 0;
            return Ok(true);
        }
        self.failed += 1;
        self.alpha *= SMALLER;
        self.model.clone_from(&self.best);
        self.model.forget(&Optimizer::Adam { alpha: self.alpha });
        self.put(a, Which::Best)?;
        Ok(false)
    }

    /// What the factor that was given, and the one that training begins with, take for the probe.
    fn begin(&mut self, a: &Csr<f64>) -> Result<(), SolveError> {
        // Both within what was earned: a guess may have made solves much shorter than a probe.
        let limit = self.credit / if self.shifted { 3.0 } else { 2.0 };
        let (cost, iterations) = self.measure(a, Which::Given, limit)?;
        (self.cost, self.report.probe_iterations) = (cost, [iterations; 2]);
        self.put(a, Which::Best)?;
        self.trained_cost = self.measure(a, Which::Best, limit)?.0;
        if self.shifted {
            let diagonal = a.diagonal().map_err(SetupError::from)?;
            let optimizer = Optimizer::Adam { alpha: self.alpha };
            self.model = Trained::identity(self.best.pattern(), &diagonal)?;
            self.model.forget(&optimizer);
            self.put(a, Which::New)?;
            let (cost, _) = self.measure(a, Which::New, limit.min(self.trained_cost))?;
            if cost < self.trained_cost {
                self.trained_cost = cost;
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

    fn step_through_pairs(&mut self) {
        let (pairs, [x, y]) = (&self.pairs, &mut self.samples);
        let batches = pairs.len() / BATCH;
        let steps = batches * self.learning.passes;
        let optimizer = Optimizer::Adam { alpha: self.alpha };
        for k in 0..steps {
            // Pairs of a batch are spread over the solve.
            let which = std::array::from_fn(|lane| lane * batches + k % batches);
            pairs.gather(which, x, y);
            self.model.step(&self.space, [&*x, &*y], (&optimizer, k, steps), &mut self.vectors);
        }
    }

    /// Predicted seconds, and iterations, of conjugate gradients on the probe; extrapolated where they would be more than `limit` seconds.
    fn measure(&mut self, a: &Csr<f64>, which: Which, limit: f64) -> Result<(f64, f64), SolveError> {
        let started = Instant::now();
        let prepared = match &self.trained {
            Some(prepared) if which != Which::Given => prepared,
            _ => &self.base,
        };
        let mut x = vec![0.0; self.probe.len()];
        let goal = self.solver.tolerance().max(f64::EPSILON);
        let seconds = prepared.predicted_iteration(a).unwrap_or(1.0);
        let most = (limit / seconds).ceil() as usize;
        let mut stop = (Residual { rtol: goal, atol: 0.0 }, IterationLimit(most));
        let watch = Watch { observer: None, stop: Some(&mut stop) };
        let report = prepared.solve_watched(a, &self.probe, &mut x, watch)?;
        // What broke down would not have gone on as it began.
        let goes_on = matches!(report.outcome, Outcome::Converged | Outcome::MaxIterations);
        let iterations = if goes_on { crossing(&report.history, goal) } else { f64::INFINITY };
        self.credit -= report.iterations as f64 * seconds;
        self.report.probe_seconds += started.elapsed().as_secs_f64();
        Ok((iterations * seconds, iterations))
    }
}

/// Predicted seconds of products that so many iterations form only because somebody wants directions.
fn products(prepared: &Prepared<Csr<f64>>, a: &Csr<f64>, iterations: usize) -> f64 {
    let with = prepared.predicted_iteration_with_directions(a);
    let without = prepared.predicted_iteration(a);
    iterations as f64 * with.zip(without).map_or(0.0, |(with, without)| with - without)
}

/// Which factor training begins with: IC(k) with the level of the one that was given, or 0. Not the modified factor: its sums of rows are right already,
/// and steps that spoil them make it worse before anything else makes it better, while IC(k) has ended with fewer iterations on most matrices.
fn beginning(given: PrecondSpec) -> Incomplete {
    let cholesky = given.incomplete().filter(|kind| kind.form.kind == Kind::Cholesky);
    Incomplete::ic(cholesky.map_or(0, |kind| kind.level))
}

/// At which iteration a history falls below a goal, between two of them as the logarithm does. Where it never does, that at which it would with the mean
/// reduction to its least; infinite where it was never reduced.
fn crossing(history: &[f64], goal: f64) -> f64 {
    let Some(k) = history.iter().position(|&r| r <= goal) else {
        let least = history.iter().fold(1.0, |least: f64, &r| least.min(r));
        let taken = history.len().saturating_sub(1) as f64;
        return if least < 1.0 { taken * goal.ln() / least.ln() } else { f64::INFINITY };
    };
    if k == 0 {
        return 0.0;
    }
    let (before, after) = (history[k - 1].ln(), history[k].max(f64::MIN_POSITIVE).ln());
    (k - 1) as f64 + (before - goal.ln()) / (before - after)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_history_crosses_a_goal_between_iterations() {
        assert_eq!(crossing(&[1.0, 0.1, 1e-3], 1e-2), 1.5);
        assert_eq!(crossing(&[0.0], 1e-2), 0.0);
        // A tenth in one iteration, so two for a hundredth, though it went up in between.
        assert!((crossing(&[1.0, 0.1], 1e-2) - 2.0).abs() < 1e-12);
        for history in [&[1.0, 2.0][..], &[1.0], &[]] {
            assert_eq!(crossing(history, 1e-2), f64::INFINITY);
        }
    }
}
