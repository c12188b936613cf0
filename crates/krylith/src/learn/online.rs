//! Learning while solving: a factor that is trained between the solves of a sequence, on what they compute anyway.
//!
//! A solve by conjugate gradients leaves pairs (p, A p). Before the next one, L takes a step of Adam for every four of them. The new factor replaces
//! the old one only if a probe is faster with it: conjugate gradients on a fixed random right-hand side, whose iterations, times
//! the predicted seconds of one in the storage that each factor has, are compared. So what a trained factor loses where the untrained one has a
//! faster storage counts. After a few rounds without a gain learning ends, and with it collecting.
//!
//! Steps of a round are counted in advance from the iterations of the solve before, not by the clock: the same sequence of systems gives
//! the same bits.

use super::kernels::Lanes;
use super::model::{StepVectors, Trained};
use super::optimizer::Optimizer;
use super::pairs::{Collector, Pairs};
use super::train::{Start, start};
use crate::choice::Method;
use crate::error::SolveError;
use crate::gallery::random_vector;
use crate::matrix::Csr;
use crate::observe::Observer;
use crate::precond::PrecondSpec;
use crate::report::Report;
use crate::solver::{Prepared, Solver, Watch};
use crate::space::Threads;
use crate::stop::{IterationLimit, Residual};
use std::fmt::{Display, Formatter};
use std::time::Instant;

/// Samples side by side in a step.
const BATCH: usize = 4;
/// A factor that makes the probe no faster than by this is not taken: so much may be chance.
const GAIN: f64 = 0.99;
/// Steps of each round, relative to those of the round before.
const DECAY: f64 = 0.9;
/// Trainings of a round, each with smaller steps than the one before.
const ATTEMPTS: usize = 3;
/// How much smaller.
const SMALLER: f64 = 0.3;
/// Bytes that pairs may take.
const BYTES: usize = 1 << 28;

/// How a sequence learns.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Learning {
    /// Pairs that are kept of a solve, at most; fewer where they would take more than 256 MB.
    pub pairs: usize,
    /// Rounds of training at most.
    pub rounds: usize,
    /// Rounds without a gain after which learning ends.
    pub patience: usize,
    /// The size of the first steps.
    pub alpha: f64,
    /// How often a round goes through its pairs.
    pub passes: usize,
}

impl Default for Learning {
    fn default() -> Self {
        Learning { pairs: 256, rounds: 30, patience: 3, alpha: 2e-2, passes: 1 }
    }
}

/// What a sequence has learned, and what that took.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct LearningReport {
    /// Solves so far.
    pub solves: usize,
    /// Rounds of training.
    pub rounds: usize,
    /// Rounds whose factor was taken.
    pub accepted: usize,
    /// Iterations of the probe with the factor that was given, and with the one in use.
    pub probe_iterations: [f64; 2],
    /// Seconds of training, probes included.
    pub seconds: f64,
    /// Seconds that all solves took.
    pub solve_seconds: f64,
    /// Seconds that solves with trained factors saved: they would have taken longer by as much as the probe is predicted to.
    pub saved_seconds: f64,
    /// After which solve that is more than the training took, reached or foreseen; none where no trained factor is in use.
    pub break_even: Option<usize>,
    /// Whether it is over.
    pub finished: bool,
}

impl Display for LearningReport {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let LearningReport { solves, rounds, accepted, probe_iterations: [before, after], seconds, .. } =
            self;
        write!(
            f,
            "{rounds} rounds of training in {seconds:.3} s, {accepted} of them with a gain; the probe takes {after:.0} iterations, \
             {before:.0} in the beginning; "
        )?;
        match self.break_even {
            Some(solve) => {
                write!(f, "{:.3} s saved in {solves} solves, even after {solve}", self.saved_seconds)
            }
            None => write!(f, "nothing trained is in use after {solves} solves"),
        }
    }
}

/// A sequence of systems whose preconditioner learns from every solve.
///
/// ```
/// use krylith::learn::{Learned, Learning};
/// use krylith::{Solver, gallery::Problem};
/// let a = "fem2d:60".parse::<Problem>()?.generate()?;
/// let mut sequence = Learned::new(&Solver::new().threads(2), &a, Learning::default())?;
/// let mut x = vec![0.0; a.nrows()];
/// let mut iterations = Vec::new();
/// for k in 0..8 {
///     let b: Vec<f64> = (0..a.nrows()).map(|i| ((i * (k + 1)) as f64).sin()).collect();
///     x.fill(0.0);
///     let report = sequence.solve(&a, &b, &mut x)?;
///     report.require_converged()?;
///     iterations.push(report.iterations);
/// }
/// assert!(iterations[7] < iterations[0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Learned {
    /// What the solver chose: used until something trained is faster.
    base: Prepared<Csr<f64>>,
    /// Symmetric Gauss–Seidel on the trained factor's matrix.
    trained: Option<Prepared<Csr<f64>>>,
    solver: Solver,
    space: Threads<f64>,
    learning: Learning,
    model: Trained<f32>,
    /// The factor in use, to go back to.
    best: Trained<f32>,
    pairs: Pairs<f32>,
    vectors: StepVectors<f32, BATCH>,
    samples: [Vec<Lanes<f32, BATCH>>; 2],
    probe: Vec<f64>,
    /// Predicted seconds of the probe with the factor that was given.
    cost: f64,
    /// With the best trained one.
    trained_cost: f64,
    alpha: f64,
    without_gain: usize,
    /// The trained factor is the one in use.
    uses_trained: bool,
    report: LearningReport,
}

impl Learned {
    /// Prepares for a sequence of systems of the pattern of A, symmetric and positive definite. The solver's preconditioner is used until
    /// something better is learned; conjugate gradients are always used.
    pub fn new(solver: &Solver, a: &Csr<f64>, learning: Learning) -> Result<Self, SolveError> {
        let solver = solver.clone().method(Method::Cg);
        let base = solver.prepare(a)?;
        let space =
            Threads::for_rows(solver.threads_asked_for().unwrap_or_else(crate::space::cores), a.nrows());
        let mut model = start(&space, a, a.pattern(), Start::Incomplete)?;
        model.forget(&Optimizer::Adam { alpha: learning.alpha });
        let n = a.nrows();
        let most = learning.pairs.min(BYTES / (8 * n.max(1))).max(2 * BATCH);
        let lanes = || vec![[0.0; BATCH]; n];
        let mut sequence = Learned {
            base,
            trained: None,
            solver,
            space,
            learning,
            best: model.clone(),
            model,
            pairs: Pairs::new(most),
            vectors: StepVectors::new(n),
            samples: [lanes(), lanes()],
            probe: random_vector(n),
            cost: 0.0,
            trained_cost: f64::INFINITY,
            alpha: learning.alpha,
            without_gain: 0,
            uses_trained: false,
            report: LearningReport::default(),
        };
        sequence.report.finished = learning.rounds == 0;
        Ok(sequence)
    }

    /// What was learned so far.
    pub fn report(&self) -> &LearningReport {
        &self.report
    }

    /// The factor in use, where it is a trained one.
    pub fn factor(&self) -> Option<&Trained<f32>> {
        self.uses_trained.then_some(&self.best)
    }

    /// Solves A x = b from the guess in `x`, after learning from the solve before.
    pub fn solve(&mut self, a: &Csr<f64>, b: &[f64], x: &mut [f64]) -> Result<Report, SolveError> {
        self.solve_observed(a, b, x, &mut ())
    }

    /// The same, watched.
    pub fn solve_observed(
        &mut self,
        a: &Csr<f64>,
        b: &[f64],
        x: &mut [f64],
        observer: &mut dyn Observer<f64>,
    ) -> Result<Report, SolveError> {
        let started = Instant::now();
        if self.pairs.len() >= BATCH && !self.report.finished {
            self.learn(a)?;
            self.report.seconds += started.elapsed().as_secs_f64();
        }
        let started = Instant::now();
        let Learned { base, trained, pairs, best, report, .. } = self;
        let prepared = match trained {
            Some(trained) if self.uses_trained => trained,
            _ => base,
        };
        let mut solved = if report.finished {
            prepared.solve_watched(a, b, x, Watch { observer: Some(observer), stop: None })?
        } else {
            pairs.clear();
            let mut collector = Collector { pairs, scale: best.scale(), observer };
            prepared.solve_watched(a, b, x, Watch { observer: Some(&mut collector), stop: None })?
        };
        report.solves += 1;
        let spent = started.elapsed().as_secs_f64();
        report.solve_seconds += spent;
        if self.uses_trained {
            // A solve with the given factor would have taken as much longer as the probe does.
            let saved = spent * (self.cost / self.trained_cost - 1.0);
            report.saved_seconds += saved;
            let left = (report.seconds - report.saved_seconds).max(0.0) / saved.max(f64::MIN_POSITIVE);
            if report.break_even.is_none_or(|solve| solve >= report.solves) {
                report.break_even = Some(report.solves + left.min(1e9).ceil() as usize);
            }
        }
        if self.uses_trained {
            solved.preconditioner = "learned".into();
        }
        Ok(solved)
    }

    /// Takes over the values of a matrix of the same pattern. What was learned is kept, in the units of the new diagonal.
    pub fn refactor(&mut self, a: &Csr<f64>) -> Result<(), SolveError> {
        self.base.refactor(a)?;
        let diagonal = a.diagonal().map_err(crate::error::SetupError::from)?;
        self.model.rescale(&diagonal)?;
        self.best.rescale(&diagonal)?;
        if let Some(trained) = &mut self.trained {
            trained.refactor(&self.best.matrix())?;
        }
        Ok(())
    }

    /// One round: trains on the pairs of the last solve, with smaller steps until a probe is faster.
    fn learn(&mut self, a: &Csr<f64>) -> Result<(), SolveError> {
        if self.report.rounds == 0 {
            self.begin(a)?;
        }
        self.report.rounds += 1;
        let before = self.trained_cost;
        for _ in 0..ATTEMPTS {
            self.step_through_pairs();
            self.set_trained(a, false)?;
            let (cost, iterations) = self.measure(a, true, before)?;
            tracing::debug!(
                round = self.report.rounds,
                alpha = self.alpha,
                iterations,
                cost,
                best = before,
                "probe"
            );
            if cost < GAIN * before {
                self.trained_cost = cost;
                self.best.clone_from(&self.model);
                self.report.accepted += 1;
                self.report.probe_iterations[1] = iterations;
                self.alpha *= DECAY;
                break;
            }
            self.alpha *= SMALLER;
            self.model.clone_from(&self.best);
            self.model.forget(&Optimizer::Adam { alpha: self.alpha });
        }
        let gained = self.trained_cost < before;
        if !gained {
            self.set_trained(a, true)?;
        }
        self.uses_trained = self.report.accepted > 0 && self.trained_cost < GAIN * self.cost;
        self.without_gain = if gained { 0 } else { self.without_gain + 1 };
        let Learning { rounds, patience, .. } = self.learning;
        self.report.finished = self.report.rounds >= rounds || self.without_gain >= patience;
        Ok(())
    }

    /// What the factor that was given, and the one that training begins with, take for the probe.
    fn begin(&mut self, a: &Csr<f64>) -> Result<(), SolveError> {
        let (cost, iterations) = self.measure(a, false, f64::INFINITY)?;
        self.set_trained(a, true)?;
        (self.cost, self.report.probe_iterations) = (cost, [iterations; 2]);
        self.trained_cost = self.measure(a, true, f64::INFINITY)?.0;
        Ok(())
    }

    /// Puts the best factor, or the one that is trained, into its storage.
    fn set_trained(&mut self, a: &Csr<f64>, best: bool) -> Result<(), SolveError> {
        let p = if best { self.best.matrix() } else { self.model.matrix() };
        match &mut self.trained {
            Some(trained) => trained.refactor(&p)?,
            none => {
                let solver = self.solver.clone().preconditioner(PrecondSpec::ssor(1.0));
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

    /// Predicted seconds, and iterations, of conjugate gradients on the probe; infinite where they would be
    /// more than `limit` seconds.
    fn measure(&self, a: &Csr<f64>, trained: bool, limit: f64) -> Result<(f64, f64), SolveError> {
        let prepared = match &self.trained {
            Some(prepared) if trained => prepared,
            _ => &self.base,
        };
        let mut x = vec![0.0; self.probe.len()];
        let goal = self.solver.tolerance().max(f64::EPSILON);
        let seconds = prepared.predicted_iteration(a).unwrap_or(1.0);
        let most = (limit / seconds).ceil() as usize;
        let mut stop = (Residual { rtol: goal, atol: 0.0 }, IterationLimit(most));
        let watch = Watch { observer: None, stop: Some(&mut stop) };
        let report = prepared.solve_watched(a, &self.probe, &mut x, watch)?;
        let iterations = crossing(&report.history, goal);
        Ok((iterations * seconds, iterations))
    }
}

/// At which iteration a history falls below a goal, between two of them as the logarithm does; infinite where it never does.
fn crossing(history: &[f64], goal: f64) -> f64 {
    let Some(k) = history.iter().position(|&r| r <= goal) else { return f64::INFINITY };
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
        assert_eq!(crossing(&[1.0, 0.1], 1e-2), f64::INFINITY);
        assert_eq!(crossing(&[0.0], 1e-2), 0.0);
    }
}
