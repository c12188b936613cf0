//! Analysis, factor and workspace of one matrix pattern, for any number of solves.

use super::Solver;
use super::build::build;
use super::certify::{Certifier, Ended, Verdict};
use super::choice::{Method, Preconditioning};
use super::engine::{Engine, Site, Told, as_matrix};
use super::log::Log;
use super::magnitude::Magnitude;
use crate::error::{SetupError, SolveError};
use crate::matrix::{Csr, Pattern, SeenValues};
use crate::observe::Observer;
use crate::operator::LinearOperator;
use crate::report::{Outcome, Recovery, Report, Seconds};
use crate::space::{Threads, cores, require_same};
use std::any::Any;
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
    /// What was factored, if A is the matrix that was.
    factored: Option<Factored>,
    /// The values of A that were last found to be finite.
    finite: Option<SeenValues>,
    /// The last `refactor` failed, and left no factor.
    broken: bool,
    /// How many steps of `recovery` belong to the preparation, not to a later matrix.
    steps: usize,
}

/// The matrix that a factor was made from.
struct Factored {
    pattern: Arc<Pattern>,
    values: SeenValues,
}

impl Factored {
    fn new(space: &Space, a: &Csr<f64>) -> Self {
        Factored { pattern: Arc::clone(a.pattern()), values: SeenValues::of(space, a) }
    }

    fn is(&self, space: &Space, a: &Csr<f64>) -> bool {
        let same_pattern = || Arc::ptr_eq(&self.pattern, a.pattern()) || self.pattern == *a.pattern();
        self.values.has_stamp_of(a) || same_pattern() && self.values.are_those_of(space, a)
    }
}

impl Solver {
    /// Analyzes and factors for an A that is only applied (`LinearOperator`), with a matrix for the preconditioner and the choices. Where
    /// A is a matrix too, of any other pattern, both are stored in the order that suits the factor.
    pub fn prepare_with<A: LinearOperator<Threads<f64>> + 'static>(
        &self,
        a: &A,
        matrix: &Csr<f64>,
    ) -> Result<Prepared<A>, SolveError> {
        self.validate()?;
        matrix.pattern().require_square().map_err(SetupError::from)?;
        require_same("A and the matrix of the preconditioner", &a.domain(), &matrix.ncols())?;
        let threads = self.threads.unwrap_or_else(cores);
        let space = Threads::for_rows(threads, matrix.nrows());
        let started = Instant::now();
        let scale = Magnitude::of_matrix(&space, matrix)?.exact_scale();
        let (method, wanted, choice) = self.choose(matrix);
        let method = method.limited(matrix.nrows(), self.max_iterations);
        let mut log = Log::default();
        log.seconds.analyze = started.elapsed().as_secs_f64();
        let site = Site { options: self, space: &space, a, matrix, method, scale, reserved: 0 };
        let (engine, told) = build(&site, wanted, &mut log)?;
        let same = as_matrix(a).is_some_and(|a| std::ptr::eq(a, matrix) || a == matrix);
        Ok(Prepared {
            factored: same.then(|| Factored::new(&space, matrix)),
            finite: same.then(|| SeenValues::of(&space, matrix)),
            broken: false,
            steps: log.recovery.len(),
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
}

/// The engine of one run after another in a solve: the prepared one, or another for this right-hand side alone.
struct Stage<A: LinearOperator<Space>> {
    method: Method,
    /// Instead of the prepared one.
    engine: Option<(Engine<A>, Told)>,
}

impl<A: LinearOperator<Space> + 'static> Prepared<A> {
    /// Takes over the values of a matrix of the same pattern; allocates nothing unless a pivot is bad. A shift that the last
    /// matrix needed is kept; a larger one is looked for if that is not enough. After an error there is no factor, and solves are
    /// refused, until a matrix has one. A pattern that followed the values stays that of the first matrix.
    pub fn refactor(&mut self, matrix: &Csr<f64>) -> Result<(), SetupError> {
        let _span = tracing::info_span!("factor").entered();
        let mut log = Log::default();
        let result = self.refactor_engine(matrix, &mut log);
        self.broken = match result {
            Ok(_) => false,
            Err(SetupError::PatternChanged) => self.broken,
            Err(_) => true,
        };
        self.told.shift = result?;
        self.recovery.truncate(self.steps);
        self.recovery.extend(log.recovery);
        self.seconds = log.seconds;
        self.factored = self.factored.take().map(|_| Factored::new(&self.space, matrix));
        Ok(())
    }

    fn refactor_engine(&mut self, matrix: &Csr<f64>, log: &mut Log) -> Result<f64, SetupError> {
        let scale = Magnitude::of_matrix(&self.space, matrix)?.exact_scale();
        if let Some(a) = (matrix as &dyn Any).downcast_ref::<A>()
            && scale != 1.0
            && !self.engine.is_scaled()
        {
            // Values that left the range since the preparation: everything is prepared anew, on the scaled matrix.
            let options = &self.options;
            let (space, method) = (&*self.space, self.method);
            let site = Site { options, space, a, matrix, method, scale, reserved: 0 };
            let built = Engine::new(&site, self.told.kind, log);
            (self.engine, self.told) = built.map_err(|error| match error {
                SolveError::Setup(error) => error,
                other => crate::BackendError::Failed { what: other.to_string() }.into(),
            })?;
            return Ok(self.told.shift);
        }
        let (engine, space) = (&mut self.engine, &self.space);
        let attempt = |shift| engine.refactor(space, matrix, shift);
        let recover = self.options.recover && self.told.kind.can_shift();
        log.factor(recover, self.told.kind, self.told.shift, attempt)
    }

    /// Solves A x = b from the guess in `x`. The answer is judged by the residual recomputed from A, x and b. A matrix with other
    /// values than those factored is refused, unless [`Solver::allow_stale_factor`] says otherwise. Where the solve does not
    /// converge, `x` is that one of the last iterate, the best one kept, the guess and 0 which has the least residual.
    pub fn solve(
        &mut self,
        a: &A,
        b: &[f64],
        x: &mut Vec<f64>,
        observer: &mut impl Observer<f64>,
    ) -> Result<Report, SolveError> {
        let _span = tracing::info_span!("solve", rows = b.len()).entered();
        let started = Instant::now();
        self.space.reset_statistics();
        self.refuse_stale(a)?;
        self.require_finite(a)?;
        require_same("x and the domain of A", &x.len(), &a.domain())?;
        let guess = Magnitude::of_vector(&self.space, "the guess x", x)?;
        let mut certifier = Certifier::new(&self.space, a, b, &self.options)?;
        if certifier.rhs_norm() == 0.0 || guess.largest == 0.0 {
            // With b = 0 nothing is to be found out: A 0 = 0, whatever the guess. A zero with a sign is as good as any.
            x.fill(0.0);
        }
        let mut recovery = self.recovery.clone();
        let mut stage = Stage { method: self.method, engine: None };
        multiply(x, certifier.scale());
        let ended = self.run_stages(a, x, &mut certifier, &mut stage, &mut recovery, observer);
        multiply(x, 1.0 / certifier.scale());
        if stage.method != self.method && stage.engine.is_none() {
            // The fallback was for this right-hand side.
            self.engine.change_method(&self.space, a, self.method)?;
        }
        let (outcome, backward_error) = ended?;
        let seconds = Seconds { solve: started.elapsed().as_secs_f64(), ..self.seconds };
        Ok(self.report(outcome, &stage, certifier, recovery, seconds, backward_error))
    }

    /// Runs the method and, where the rule of `auto` has one, the next; `x` is then the best that was found.
    fn run_stages(
        &mut self,
        a: &A,
        x: &mut Vec<f64>,
        certifier: &mut Certifier<'_, A>,
        stage: &mut Stage<A>,
        recovery: &mut Vec<Recovery>,
        observer: &mut impl Observer<f64>,
    ) -> Result<(Outcome, Option<f64>), SolveError> {
        loop {
            let start = x.iter().any(|&x| x != 0.0).then(|| x.clone());
            let space = Arc::clone(&self.space);
            let engine = stage.engine.as_mut().map_or(&mut self.engine, |(engine, _)| engine);
            let mut ended = iterate(engine, &space, a, x, certifier, recovery, observer)?;
            if ended.outcome != Outcome::Converged && take_best(engine, &space, x, start, certifier)? {
                ended = Ended { outcome: Outcome::Converged, what: "met" };
            }
            let next = self.successor(a, stage, &ended);
            let Some(next) = next.filter(|_| certifier.iterations() < self.options.max_iterations) else {
                let outcome = certifier.classify(&ended);
                return Ok((outcome, certifier.backward_error()));
            };
            let failed = format!("{}: {}", stage.method, ended.what);
            recovery.push(Recovery { failed, row: None, value: None, action: next.describe() });
            self.enter(a, next, stage)?;
        }
    }

    /// What `auto` goes on with.
    fn successor(&self, a: &A, stage: &Stage<A>, ended: &Ended) -> Option<Next> {
        use Outcome::{Breakdown, Diverged, IndefiniteOperator, IndefinitePreconditioner, NotFinite};
        if self.options.method != Method::Auto || stage.method != self.method {
            return None;
        }
        let gmres = Method::Gmres(30).limited(a.domain(), self.options.max_iterations);
        match (stage.method, ended.outcome) {
            (Method::Cg, IndefiniteOperator | IndefinitePreconditioner | NotFinite | Diverged) => {
                Some(Next { method: Method::Minres, instead: Some(Preconditioning::None) })
            }
            // A factor that gave numbers that are not finite at once is of no use to another method.
            (Method::BiCgStab, NotFinite) => Some(Next {
                method: gmres,
                instead: Some(as_matrix(a).map_or(Preconditioning::None, |_| Preconditioning::Jacobi)),
            }),
            (Method::BiCgStab, Breakdown | Diverged) => Some(Next { method: gmres, instead: None }),
            _ => None,
        }
    }

    /// Prepares the next run: another method on the prepared factor, or an engine for this solve alone.
    fn enter(&mut self, a: &A, next: Next, stage: &mut Stage<A>) -> Result<(), SolveError> {
        stage.method = next.method;
        let Some(kind) = next.instead else {
            return self.engine.change_method(&self.space, a, next.method);
        };
        let engine = match as_matrix(a) {
            Some(matrix) => {
                let scale = Magnitude::of_matrix(&self.space, matrix)?.exact_scale();
                let (options, space) = (&self.options, &*self.space);
                let method = next.method;
                let site = Site { options, space, a, matrix, method, scale, reserved: 0 };
                Engine::new(&site, kind, &mut Log { forgiving: true, ..Log::default() })?
            }
            None => Engine::without(&self.space, a, next.method)?,
        };
        stage.engine = Some(engine);
        Ok(())
    }

    fn refuse_stale(&self, a: &A) -> Result<(), SolveError> {
        if self.broken {
            return Err(SolveError::StaleFactor);
        }
        if self.told.kind == Preconditioning::None || self.options.allow_stale {
            return Ok(());
        }
        match (&self.factored, as_matrix(a)) {
            (Some(factored), Some(a)) if !factored.is(&self.space, a) => Err(SolveError::StaleFactor),
            _ => Ok(()),
        }
    }

    /// Looks at the values of a matrix that were not seen before.
    fn require_finite(&mut self, a: &A) -> Result<(), SetupError> {
        let Some(a) = as_matrix(a) else { return Ok(()) };
        if !self.finite.is_some_and(|seen| seen.has_stamp_of(a)) {
            Magnitude::of_matrix(&self.space, a)?;
            self.finite = Some(SeenValues::of(&self.space, a));
        }
        Ok(())
    }

    fn report(
        &self,
        outcome: Outcome,
        stage: &Stage<A>,
        certifier: Certifier<'_, A>,
        recovery: Vec<Recovery>,
        seconds: Seconds,
        backward_error: Option<f64>,
    ) -> Report {
        let told = stage.engine.as_ref().map_or(&self.told, |(_, told)| told);
        // A method on the prepared factor may have another workspace than the prepared one.
        let workspace = |method: Method| method.workspace_bytes(certifier.b.len()) as usize;
        let (after, before) = match stage.engine {
            Some(_) => (0, 0),
            None => (workspace(stage.method), workspace(self.method)),
        };
        Report {
            outcome,
            solver: stage.method.to_string(),
            preconditioner: told.kind.to_string(),
            choice: self.choice.clone(),
            threads: self.space.threads(),
            team: self.space.statistics(),
            iterations: certifier.iterations(),
            relative_residual: certifier.relative_residual(),
            backward_error,
            certificate: certifier.certificate(),
            normal_residual: certifier.normal_residual(),
            residual_replacements: certifier.replacements(),
            history: certifier.into_history(),
            preconditioner_nnz: told.nnz,
            preconditioner_bytes: told.bytes,
            shift: told.shift,
            predicted_bytes: told.predicted + after - before,
            bytes: told.held + after - before,
            layout: told.layout.clone(),
            ordering: told.ordering.clone(),
            schedule: told.schedule.clone(),
            recovery,
            seconds,
        }
    }
}

/// A method that takes over from one that failed, and what preconditions it instead of the prepared factor.
struct Next {
    method: Method,
    instead: Option<Preconditioning>,
}

impl Next {
    fn describe(&self) -> String {
        match self.instead {
            Some(kind) => format!("{} with {kind}", self.method),
            None => format!("{} with the same preconditioner", self.method),
        }
    }
}

/// Runs the method until the recomputed residual meets the tolerance or nothing more can be done.
fn iterate<A: LinearOperator<Space> + 'static>(
    engine: &mut Engine<A>,
    space: &Space,
    a: &A,
    x: &mut Vec<f64>,
    certifier: &mut Certifier<'_, A>,
    recovery: &mut Vec<Recovery>,
    observer: &mut impl Observer<f64>,
) -> Result<Ended, SolveError> {
    engine.begin(space, a, &certifier.b, x)?;
    let mut again = false;
    loop {
        let finish = certifier
            .watch(observer, |b, stop, observer| engine.run(again, space, a, b, x, stop, observer))?;
        round_as_returned(x, certifier.scale());
        match certifier.judge(finish, x)? {
            Verdict::Ended(ended) => return Ok(ended),
            Verdict::Replace => again = true,
            Verdict::FromZero => {
                recovery.push(Recovery {
                    failed: "the guess: its residual is larger than that of 0 by more than 1/ε".into(),
                    row: None,
                    value: None,
                    action: "the iteration begins at 0".into(),
                });
                x.fill(0.0);
                engine.begin(space, a, &certifier.b, x)?;
                again = false;
            }
        }
    }
}

/// Leaves in `x` that one of the last iterate, the one kept, the start and 0 which has the least residual, measured last. Whether
/// it meets the tolerance.
fn take_best<A: LinearOperator<Space> + 'static>(
    engine: &Engine<A>,
    space: &Space,
    x: &mut Vec<f64>,
    start: Option<Vec<f64>>,
    certifier: &mut Certifier<'_, A>,
) -> Result<bool, SolveError> {
    let comparable = |norm: f64| if norm.is_nan() { f64::INFINITY } else { norm };
    let mut least = comparable(certifier.residual_norm());
    let (mut measured, mut met) = (true, false);
    let mut other = vec![0.0; x.len()];
    let kept = engine.restore_kept(space, &mut other)?.then_some(other);
    let kept = kept.map(|mut kept| {
        round_as_returned(&mut kept, certifier.scale());
        kept
    });
    for candidate in kept.into_iter().chain(start) {
        let meets = certifier.measure(&candidate)?;
        measured = comparable(certifier.residual_norm()) < least;
        if measured {
            least = certifier.residual_norm();
            *x = candidate;
            met = meets;
        }
    }
    if least > certifier.rhs_norm() {
        x.fill(0.0);
        measured = false;
    }
    // The report is about the x that is returned.
    if measured { Ok(met) } else { Ok(certifier.measure(x)?) }
}

/// What is judged is what the caller gets: multiplied back, numbers beyond the ends of the range are rounded.
fn round_as_returned(x: &mut [f64], scale: f64) {
    multiply(x, 1.0 / scale);
    multiply(x, scale);
}

/// Multiplies every number by a power of two.
fn multiply(x: &mut [f64], factor: f64) {
    if factor != 1.0 {
        x.iter_mut().for_each(|x| *x *= factor);
    }
}
