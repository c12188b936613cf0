//! Learning while solving: a factor that is trained between the solves of a sequence, on what they compute anyway.
//!
//! A solve by conjugate gradients leaves pairs (p, A p). Before the next one, or on a thread of its own meanwhile, L takes a step of Adam for every four of
//! them, several times over where that is paid for. The new factor replaces the old one only if a probe is faster with it, in the storage that each has: what a trained factor loses where the
//! untrained one has a faster storage counts. After a few trainings without a gain that pays learning ends, and with it collecting.

use super::rounds::Learner;
use crate::error::SolveError;
use crate::matrix::Csr;
use crate::observe::Observer;
use crate::outcome::Outcome;
use crate::report::Report;
use crate::solver::Solver;
use crate::training::Trained;
use std::fmt::{Display, Formatter};
use std::thread::JoinHandle;

/// What comes back from a training beside.
type Away = (Box<Learner>, Result<(), SolveError>);

/// How a sequence learns.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Learning {
    /// Pairs that are kept of a solve, at most; fewer where a round on them would take more than is earned, or where they would take more than 256 MB; 8 at least.
    pub pairs: usize,
    /// Rounds of training at most.
    pub rounds: usize,
    /// Learning ends after three times as many trainings in succession without a gain that pays. One pays that saves in a hundred solves what its training took.
    pub patience: usize,
    /// The size of the first steps where a round goes through its pairs once; less by the root of how often it does.
    pub alpha: f64,
    /// How often a round goes through its pairs, at most; as often as is earned.
    pub passes: usize,
    /// What training, probes and collecting may take, relative to the solves so far, in predicted seconds. They wait until enough is earned.
    pub share: f64,
    /// Train on a thread of its own after a solve; the next one, or a change of the matrix, waits for it. As long as the matrix does not change, bits are the same.
    pub beside: bool,
}

impl Default for Learning {
    fn default() -> Self {
        Learning { pairs: 128, rounds: 30, patience: 3, alpha: 2e-2, passes: 4, share: 2.0, beside: false }
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
    /// Rounds whose factor was better than the one before.
    pub accepted: usize,
    /// Iterations of the probe with the factor that was given, and with the best trained one.
    pub probe_iterations: [f64; 2],
    /// Seconds of training, probes included.
    pub seconds: f64,
    /// Seconds of probes.
    pub probe_seconds: f64,
    /// Seconds of solves that collecting is predicted to have taken: copies, and products that are not needed otherwise.
    pub collecting_seconds: f64,
    /// Seconds that all solves took.
    pub solve_seconds: f64,
    /// Seconds that solves with trained factors saved: they would have taken longer by as much as the probe is predicted to.
    pub saved_seconds: f64,
    /// After which solve that is more than training and collecting took, reached or predicted; none where no trained factor is in use.
    pub break_even: Option<usize>,
    /// Whether it is over.
    pub finished: bool,
    /// How the last solve ended; none before the first.
    pub outcome: Option<Outcome>,
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
/// use krylith::{PrecondSpec, Solver, gallery::Problem};
/// let a = "fem2d:60".parse::<Problem>()?.generate()?;
/// let solver = Solver::new().preconditioner(PrecondSpec::ic(0));
/// let mut sequence = Learned::new(&solver, &a, Learning::default())?;
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
    /// Here, unless it trains on another thread.
    learner: Option<Box<Learner>>,
    away: Option<JoinHandle<Away>>,
    beside: bool,
    /// As of the last solve.
    report: LearningReport,
}

impl Learned {
    /// Prepares for a sequence of systems of the pattern of A, symmetric and positive definite. The solver's preconditioner is used until
    /// something better is learned; conjugate gradients are always used.
    pub fn new(solver: &Solver, a: &Csr<f64>, learning: Learning) -> Result<Self, SolveError> {
        let learner = Box::new(Learner::new(solver, a, learning)?);
        let (beside, report) = (learning.beside, learner.report);
        Ok(Learned { learner: Some(learner), away: None, beside, report })
    }

    /// What was learned until the last solve.
    pub fn report(&self) -> &LearningReport {
        &self.report
    }

    /// The factor in use, where it is a trained one. [`finish`](Self::finish) first where training runs beside.
    pub fn factor(&self) -> Option<&Trained<f32>> {
        self.learner.as_ref()?.factor()
    }

    /// The best trained factor so far, even where the one that was given is predicted to be faster.
    pub fn best(&self) -> Option<&Trained<f32>> {
        self.learner.as_ref().map(|learner| learner.best())
    }

    /// Waits for a training that runs beside.
    pub fn finish(&mut self) -> Result<(), SolveError> {
        self.back()?;
        Ok(())
    }

    /// The learner, after what it does elsewhere.
    fn back(&mut self) -> Result<&mut Learner, SolveError> {
        if let Some(away) = self.away.take() {
            let (learner, result) = away.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            self.report = learner.report;
            self.learner = Some(learner);
            result?;
        }
        Ok(self.learner.as_mut().expect("it is here or away"))
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
        let beside = self.beside;
        if !beside {
            self.learn(a)?;
        }
        let learner = self.back()?;
        let solved = learner.solve(a, b, x, observer);
        self.report = learner.report;
        if beside
            && solved.is_ok()
            && let Some(mut learner) = self.learner.take_if(|learner| learner.is_due())
        {
            let a = a.clone();
            self.away = Some(std::thread::spawn(move || {
                let result = learner.learn(&a);
                (learner, result)
            }));
        }
        solved
    }

    /// Learns from the last solve now instead of before the next, where that is due.
    pub fn learn(&mut self, a: &Csr<f64>) -> Result<(), SolveError> {
        let learner = self.back()?;
        if learner.is_due() {
            learner.learn(a)?;
        }
        self.report = learner.report;
        Ok(())
    }

    /// Takes over the values of a matrix of the same pattern. What was learned is kept, in the units of the new diagonal.
    pub fn refactor(&mut self, a: &Csr<f64>) -> Result<(), SolveError> {
        self.back()?.refactor(a)
    }
}

impl Drop for Learned {
    fn drop(&mut self) {
        if let Some(away) = self.away.take() {
            // Nobody is left to hear of its errors.
            let _ = away.join();
        }
    }
}
