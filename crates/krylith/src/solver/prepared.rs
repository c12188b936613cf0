//! Analysis, factor and workspace of one matrix pattern, for any number of solves.

use super::Solver;
use super::certify::{Certifier, Ended};
use super::choice::{Method, Preconditioning};
use super::engine::{Engine, Site, Told, as_matrix};
use super::log::Log;
use crate::error::{SetupError, SolveError};
use crate::matrix::Csr;
use crate::observe::Observer;
use crate::operator::LinearOperator;
use crate::report::{Outcome, Recovery, Report, Seconds};
use crate::space::{Threads, fingerprint};
use std::sync::Arc;
use std::time::Instant;

type Space = Threads<f64>;

/// Everything a solve needs but A, b and x.
///
/// ```
/// use krylith::{Solver, gallery::Problem};
/// let mut a = "poisson2d:20".parse::<Problem>()?.generate()?;
/// let b = vec![1.0; a.nrows()];
/// let mut prepared = Solver::new().threads(2).prepare(&a)?;
/// let mut x = vec![0.0; a.nrows()];
/// for _ in 0..3 {
///     prepared.solve(&a, &b, &mut x, &mut ())?.require_converged()?;
///     a.values_mut().iter_mut().for_each(|v| *v *= 1.1);
///     prepared.refactor(&a)?; // the pattern is the same: nothing is analyzed or allocated
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Prepared<A: LinearOperator<Space>> {
    options: Solver,
    space: Arc<Space>,
    method: Method,
    engine: Engine<A>,
    told: Told,
    choice: String,
    recovery: Vec<Recovery>,
    seconds: Seconds,
    /// Of the values that were factored, if A is the matrix that was.
    factored: Option<u64>,
    /// The last `refactor` failed, and left no factor.
    broken: bool,
    /// Vectors of the method whose bytes were told.
    told_vectors: usize,
    /// How many steps of `recovery` belong to the preparation, not to a later matrix.
    steps: usize,
}

impl Solver {
    /// The same for an A that is only applied (`LinearOperator`), with a matrix for the preconditioner and the choices.
    pub fn prepare_with<A: LinearOperator<Threads<f64>> + 'static>(
        &self,
        a: &A,
        matrix: &Csr<f64>,
    ) -> Result<Prepared<A>, SolveError> {
        matrix.pattern().require_square().map_err(SetupError::from)?;
        let space = match self.threads {
            Some(threads) => Threads::new(threads),
            None => Threads::all_cores(),
        };
        let started = Instant::now();
        let (method, wanted, choice) = self.choose(matrix);
        let mut log = Log::default();
        log.seconds.analyze = started.elapsed().as_secs_f64();
        let site = Site { options: self, space: &space, a, matrix, method };
        let (engine, told) = build(&site, wanted, &mut log)?;
        let same = as_matrix(a).is_some_and(|a| std::ptr::eq(a, matrix) || a == matrix);
        let factored = same.then(|| fingerprint(&space, matrix.values()));
        Ok(Prepared {
            factored,
            broken: false,
            steps: log.recovery.len(),
            told_vectors: method.vectors(),
            options: self.clone(),
            space: Arc::new(space),
            method,
            engine,
            told,
            choice,
            recovery: log.recovery,
            seconds: log.seconds,
        })
    }

    /// The rule of the module's head.
    fn choose(&self, matrix: &Csr<f64>) -> (Method, Preconditioning, String) {
        if self.method != Method::Auto && self.preconditioner != Preconditioning::Auto {
            return (self.method, self.preconditioner, "as asked".into());
        }
        let symmetric = matrix.view().symmetry().symmetric;
        let definite = symmetric && has_positive_diagonal(matrix);
        let why = match (definite, symmetric) {
            (true, _) => "symmetric with a positive diagonal",
            (false, true) => "symmetric, but the diagonal is not all positive",
            (false, false) => "not symmetric",
        };
        let method = match self.method {
            Method::Auto if definite => Method::Cg,
            Method::Auto => Method::BiCgStab,
            asked => asked,
        };
        // IC(0) goes with the methods that need a positive definite M, and with a matrix that can have one.
        let symmetric_method = matches!(method, Method::Cg | Method::Minres);
        let preconditioner = match self.preconditioner {
            Preconditioning::Auto if definite && symmetric_method => Preconditioning::Ic(0),
            Preconditioning::Auto if symmetric_method => Preconditioning::None,
            Preconditioning::Auto => Preconditioning::Ilu(0),
            asked => asked,
        };
        (method, preconditioner, format!("{method} with {preconditioner}: the matrix is {why}"))
    }
}

/// Builds the preconditioner. A pivot that no shift mends is followed by the diagonal in a form that cannot fail, fill that is out
/// of proportion by less of it, unless it was the caller who set the limit.
fn build<A: LinearOperator<Space> + 'static>(
    site: &Site<'_, A>,
    mut wanted: Preconditioning,
    log: &mut Log,
) -> Result<(Engine<A>, Told), SolveError> {
    loop {
        let error = match Engine::new(site, wanted, log) {
            Err(SolveError::Setup(error)) if site.options.recover => error,
            done => return done,
        };
        let (row, value, next) = match error {
            SetupError::BadPivot { row, value } => (Some(row), Some(value), Preconditioning::Jacobi),
            SetupError::MissingDiagonal { row } => (Some(row), None, Preconditioning::Jacobi),
            SetupError::MemoryLimit { .. } if site.options.max_bytes.is_none() => {
                match wanted.with_less_fill() {
                    Some(next) => (None, None, next),
                    None => return Err(error.into()),
                }
            }
            other => return Err(other.into()),
        };
        let action = match next {
            Preconditioning::Jacobi => "the diagonal, or the largest entry of a row where it has none".into(),
            other => format!("{other} instead"),
        };
        log.recovery.push(Recovery { failed: format!("{wanted}: {error}"), row, value, action });
        if next == Preconditioning::Jacobi && log.forgiving {
            return Err(error.into());
        }
        log.forgiving |= next == Preconditioning::Jacobi;
        wanted = next;
    }
}

fn has_positive_diagonal(a: &Csr<f64>) -> bool {
    use rayon::prelude::*;
    (0..a.nrows()).into_par_iter().with_min_len(1 << 12).all(|i| a.get(i, i) > 0.0)
}

fn infinity_norm(a: &Csr<f64>) -> f64 {
    use rayon::prelude::*;
    let row = |i| a.row(i).1.iter().map(|v: &f64| v.abs()).sum::<f64>();
    (0..a.nrows()).into_par_iter().map(row).reduce(|| 0.0, f64::max)
}

impl<A: LinearOperator<Space> + 'static> Prepared<A> {
    /// Takes over the values of a matrix of the same pattern; allocates nothing unless a pivot is bad. A shift that the last
    /// matrix needed is kept; a larger one is looked for if that is not enough. After an error there is no factor, and solves are
    /// refused, until a matrix has one. A pattern that followed the values stays that of the first matrix.
    pub fn refactor(&mut self, matrix: &Csr<f64>) -> Result<(), SetupError> {
        let _span = tracing::info_span!("factor").entered();
        let mut log = Log::default();
        let (engine, space) = (&mut self.engine, &self.space);
        let attempt = |shift| engine.refactor(space, matrix, shift);
        let recover = self.options.recover && self.told.kind.can_shift();
        let result = log.factor(recover, self.told.kind, self.told.shift, attempt);
        self.broken = match result {
            Ok(_) => false,
            Err(SetupError::PatternChanged) => self.broken,
            Err(_) => true,
        };
        self.told.shift = result?;
        self.recovery.truncate(self.steps);
        self.recovery.extend(log.recovery);
        self.seconds = log.seconds;
        self.factored = self.factored.map(|_| fingerprint(&self.space, matrix.values()));
        Ok(())
    }

    /// Solves A x = b from the guess in `x`. The answer is judged by the residual recomputed from A, x and b. A matrix with other
    /// values than those factored is refused, unless [`Solver::allow_stale_factor`] says otherwise.
    pub fn solve(
        &mut self,
        a: &A,
        b: &[f64],
        x: &mut Vec<f64>,
        observer: &mut impl Observer<f64>,
    ) -> Result<Report, SolveError> {
        let _span = tracing::info_span!("solve", rows = b.len()).entered();
        let started = Instant::now();
        self.refuse_stale(a)?;
        let b = b.to_vec();
        let mut certifier = Certifier::new(&self.space, a, &b, &self.options)?;
        let mut recovery = self.recovery.clone();
        if certifier.is_zero() {
            // Nothing to find out: A 0 = 0, whatever the guess.
            x.fill(0.0);
        }
        let mut ended = self.iterate(a, &b, x, &mut certifier, observer)?;
        // The rule of `auto` goes on with a more patient method from where this one ended.
        if self.options.method == Method::Auto
            && let Some((next, none)) = successor(self.method, ended.outcome)
            && certifier.iterations() < self.options.max_iterations
        {
            let failed = format!("{}: {}", self.method, ended.what);
            let with = if none { "none" } else { "the same preconditioner" };
            recovery.push(Recovery { failed, row: None, value: None, action: format!("{next} with {with}") });
            // What is worse than nothing is no place to go on from.
            if !x.iter().all(|x| x.is_finite()) || certifier.relative_residual() > 1.0 {
                x.fill(0.0);
            }
            self.method = next;
            if none {
                (self.engine, self.told) = Engine::without(&self.space, a, next)?;
            } else {
                self.engine.change_method(&self.space, a, next)?;
                let before = 8 * a.domain() * self.told_vectors;
                let after = 8 * a.domain() * next.vectors();
                self.told.held = self.told.held + after - before;
                self.told.predicted = self.told.predicted + after - before;
                self.told_vectors = next.vectors();
            }
            ended = self.iterate(a, &b, x, &mut certifier, observer)?;
        }
        let seconds = Seconds { solve: started.elapsed().as_secs_f64(), ..self.seconds };
        let backward_error = as_matrix(a).map(|a| certifier.backward_error(infinity_norm(a), x, &b));
        Ok(self.report(ended, certifier, recovery, seconds, backward_error))
    }

    fn refuse_stale(&self, a: &A) -> Result<(), SolveError> {
        if self.broken {
            return Err(SolveError::StaleFactor);
        }
        if self.told.kind == Preconditioning::None {
            return Ok(());
        }
        let (Some(factored), Some(a)) = (self.factored, as_matrix(a)) else { return Ok(()) };
        let stale = !self.options.allow_stale && fingerprint(&self.space, a.values()) != factored;
        if stale { Err(SolveError::StaleFactor) } else { Ok(()) }
    }

    /// Runs the method until the recomputed residual meets the tolerance or nothing more can be done.
    fn iterate(
        &mut self,
        a: &A,
        b: &Vec<f64>,
        x: &mut Vec<f64>,
        certifier: &mut Certifier<'_, A>,
        observer: &mut impl Observer<f64>,
    ) -> Result<Ended, SolveError> {
        self.engine.begin(&self.space, a, b, x)?;
        let mut again = false;
        loop {
            let finish = certifier.watch(observer, |stop, observer| {
                self.engine.run(again, &self.space, a, b, x, stop, observer)
            })?;
            match certifier.judge(finish, b, x)? {
                Some(ended) => return Ok(ended),
                None => again = true,
            }
        }
    }

    fn report(
        &self,
        ended: Ended,
        certifier: Certifier<'_, A>,
        recovery: Vec<Recovery>,
        seconds: Seconds,
        backward_error: Option<f64>,
    ) -> Report {
        Report {
            outcome: ended.outcome,
            solver: self.method.to_string(),
            preconditioner: self.told.kind.to_string(),
            choice: self.choice.clone(),
            threads: self.space.threads(),
            iterations: certifier.iterations(),
            relative_residual: certifier.relative_residual(),
            backward_error,
            residual_replacements: certifier.replacements(),
            history: certifier.into_history(),
            preconditioner_nnz: self.told.nnz,
            preconditioner_bytes: self.told.bytes,
            shift: self.told.shift,
            predicted_bytes: self.told.predicted,
            bytes: self.told.held,
            layout: self.told.layout.clone(),
            ordering: self.told.ordering.clone(),
            schedule: self.told.schedule.clone(),
            recovery,
            seconds,
        }
    }
}

/// What `auto` goes on with, and whether the preconditioner is left out.
fn successor(method: Method, outcome: Outcome) -> Option<(Method, bool)> {
    match (method, outcome) {
        (Method::Cg, Outcome::IndefiniteOperator | Outcome::IndefinitePreconditioner) => {
            Some((Method::Minres, true))
        }
        (Method::BiCgStab, Outcome::Breakdown | Outcome::NotFinite) => Some((Method::Gmres(30), false)),
        _ => None,
    }
}
