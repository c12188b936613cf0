//! Analysis, factor and workspace of one matrix pattern, for any number of solves.

use super::build::{SetUp, System, set_up_permuted, without};
use super::certify::{Certifier, Ended, Verdict, is_zero, sizes_of};
use super::options::Solver;
use crate::choice::Method;
use crate::engine::{DefaultSpace, Engine, OfMatrix, Run, SolverSpace};
use crate::error::{BackendError, SetupError, SolveError};
use crate::krylov::Start;
use crate::matrix::{Csr, Pattern, SeenValues, exact_scale, sizes_of_matrix};
use crate::observe::Observer;
use crate::operator::LinearOperator;
use crate::plan::{Failure, Remedy, SolvePlan};
use crate::precond::PrecondSpec;
use crate::report::{Outcome, Recovery, Report, Seconds};
use crate::setup::{LayoutBuilder, SetupContext, SetupRecorder, SetupSummary, agree};
use crate::space::require_same;
use std::sync::Arc;
use std::time::Instant;

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
pub struct Prepared<A: LinearOperator<S>, S: SolverSpace = DefaultSpace> {
    options: Solver,
    space: Arc<S>,
    layouts: &'static [&'static dyn LayoutBuilder<S>],
    layout: S::Layout,
    method: Method,
    engine: Box<dyn Engine<S, A>>,
    summary: SetupSummary,
    plan: SolvePlan,
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
    fn new<S: SolverSpace>(space: &S, a: &Csr<f64>) -> Self {
        Factored { pattern: Arc::clone(a.pattern()), values: SeenValues::of(space.host(), a) }
    }

    fn is<S: SolverSpace>(&self, space: &S, a: &Csr<f64>) -> bool {
        let same_pattern = || Arc::ptr_eq(&self.pattern, a.pattern()) || self.pattern == *a.pattern();
        self.values.has_stamp_of(a) || same_pattern() && self.values.are_those_of(space.host(), a)
    }
}

impl Solver {
    /// Analyzes and factors on any space. `matrix`, of as many rows as this process holds unknowns, is what the preconditioner is made
    /// from and what choices depend on; `layouts` are the ways to store it, tried in order.
    pub fn prepare_on<S: SolverSpace, A: LinearOperator<S, Scratch: Send> + 'static>(
        &self,
        space: S,
        layouts: &'static [&'static dyn LayoutBuilder<S>],
        a: &A,
        matrix: &Csr<f64>,
    ) -> Result<Prepared<A, S>, SolveError> {
        self.validate()?;
        matrix.pattern().require_square().map_err(SetupError::from)?;
        let unknowns = space.len(&a.domain());
        require_same("A and the matrix of the preconditioner", &unknowns, &matrix.ncols())?;
        let started = Instant::now();
        let mut scale = 1.0;
        agree(&space, exact_scale(space.host(), matrix).map(|found| scale = found))?;
        let plan = self.plan_for(&space, matrix)?;
        let method = plan.method.limited(space.total(&a.domain()), self.max_iterations);
        let mut recorder = SetupRecorder::default();
        recorder.seconds.analyze = started.elapsed().as_secs_f64();
        let system =
            System { solver: self, space: &space, layouts, a, source: matrix, scale, method, plan: &plan };
        let (engine, summary) = system.set_up(&mut recorder)?;
        let same = a.matrix().is_some_and(|a| std::ptr::eq(a, matrix) || a == matrix);
        Ok(Prepared {
            factored: same.then(|| Factored::new(&space, matrix)),
            finite: same.then(|| SeenValues::of(space.host(), matrix)),
            broken: false,
            steps: recorder.recovery.len(),
            options: self.clone(),
            space: Arc::new(space),
            layouts,
            layout: a.domain(),
            method,
            engine,
            summary,
            plan,
            recovery: recorder.recovery,
            seconds: recorder.seconds,
        })
    }
}

/// The engine of one run after another in a solve: the prepared one, or another for this right-hand side alone.
struct Stage<S: SolverSpace, A> {
    method: Method,
    /// Instead of the prepared one.
    engine: Option<SetUp<S, A>>,
}

impl<S: SolverSpace, A: LinearOperator<S, Scratch: Send> + 'static> Prepared<A, S> {
    /// Takes over the values of a matrix of the same pattern; allocates nothing unless a pivot is bad. A shift that the last
    /// matrix needed is kept; a larger one is looked for if that is not enough. After an error there is no factor, and solves are
    /// refused, until a matrix has one. A pattern that followed the values stays that of the first matrix.
    pub fn refactor(&mut self, matrix: &Csr<f64>) -> Result<(), SetupError> {
        let _span = tracing::info_span!("factor").entered();
        let mut recorder = SetupRecorder::default();
        let result = self.refactor_engine(matrix, &mut recorder);
        self.broken = match result {
            Ok(_) => false,
            // Whether anybody's factor is gone.
            Err(ref error) => {
                let gone = *error != SetupError::PatternChanged;
                self.broken || self.space.first(gone.then_some((0, 0.0)))?.is_some()
            }
        };
        self.summary.shift = result?;
        self.recovery.truncate(self.steps);
        self.recovery.extend(recorder.recovery);
        self.seconds = recorder.seconds;
        self.factored = self.factored.take().map(|_| Factored::new(&*self.space, matrix));
        Ok(())
    }

    fn refactor_engine(
        &mut self,
        matrix: &Csr<f64>,
        recorder: &mut SetupRecorder,
    ) -> Result<f64, SetupError> {
        let mut scale = 1.0;
        agree(&*self.space, exact_scale(self.space.host(), matrix).map(|found| scale = found))?;
        if self.factored.is_some() && scale != 1.0 && !self.engine.is_scaled() {
            // Values that left the range since the preparation: everything is prepared anew, on the scaled matrix.
            let Prepared { options, space, layouts, method, layout, plan, .. } = self;
            let mut setup = SetupContext::new(
                options.setup_options(plan),
                &**space,
                layout.clone(),
                Some(matrix),
                matrix,
                (*method, scale),
            );
            setup.own = options.own.as_ref();
            let built = set_up_permuted(options, &setup, layouts, self.summary.kind, recorder);
            let built = built.map_err(|error| match error {
                SolveError::Setup(error) => error,
                other => BackendError::Failed { what: other.to_string() }.into(),
            })?;
            if let Some((engine, summary)) = built {
                (self.engine, self.summary) = (Box::new(OfMatrix(engine)), summary);
                return Ok(self.summary.shift);
            }
        }
        let (engine, space) = (&mut self.engine, &*self.space);
        let attempt = |shift| engine.refactor(space, matrix, shift);
        let recover = self.plan.shifts() && self.summary.kind.info().can_shift;
        recorder.factor(space, (recover, self.summary.kind), self.summary.shift, attempt)
    }

    /// Solves A x = b from the guess in `x`, vectors of the space. The answer is judged by the residual recomputed from A, x and b. A
    /// matrix with other values than those factored is refused, unless [`Solver::allow_stale_factor`] says otherwise. Where the solve
    /// does not converge, `x` is that one of the last iterate, the best one kept, the guess and 0 which has the least residual.
    pub fn solve_vectors(
        &mut self,
        a: &A,
        b: &S::Vector,
        x: &mut S::Vector,
        observer: &mut dyn Observer<f64>,
    ) -> Result<Report, SolveError> {
        let b = copy_of(&*self.space, b)?;
        self.solve_owned(a, b, x, observer)
    }

    /// The same with a copy of b.
    pub(super) fn solve_owned(
        &mut self,
        a: &A,
        b: S::Vector,
        x: &mut S::Vector,
        observer: &mut dyn Observer<f64>,
    ) -> Result<Report, SolveError> {
        let space = Arc::clone(&self.space);
        let _span = tracing::info_span!("solve", rows = space.len(&self.layout)).entered();
        let started = Instant::now();
        space.host().reset_statistics();
        self.refuse_stale(a)?;
        self.require_finite(a)?;
        require_same("x and the domain of A", &space.layout(x), &a.domain())?;
        let guess = sizes_of(&*space, "the guess x", x)?;
        let mut certifier = Certifier::new(&space, a, b, &self.options)?;
        if certifier.rhs_norm() == 0.0 || guess.largest == 0.0 {
            // With b = 0 nothing is to be found out: A 0 = 0, whatever the guess. A zero with a sign is as good as any.
            space.fill(0.0, x)?;
        }
        let mut recovery = self.recovery.clone();
        let mut stage = Stage { method: self.method, engine: None };
        multiply(&*space, x, certifier.scale())?;
        let ended = self.run_stages(a, x, &mut certifier, &mut stage, &mut recovery, observer);
        multiply(&*space, x, 1.0 / certifier.scale())?;
        if stage.method != self.method && stage.engine.is_none() {
            // The fallback was for this right-hand side.
            self.engine.use_method(&space, a, self.method)?;
        }
        let (outcome, backward_error) = ended?;
        let seconds = Seconds { solve: started.elapsed().as_secs_f64(), ..self.seconds };
        Ok(self.report(outcome, &stage, certifier, recovery, seconds, backward_error))
    }

    /// Runs the method and, where the rule of `auto` has one, the next; `x` is then the best that was found.
    fn run_stages(
        &mut self,
        a: &A,
        x: &mut S::Vector,
        certifier: &mut Certifier<'_, S, A>,
        stage: &mut Stage<S, A>,
        recovery: &mut Vec<Recovery>,
        observer: &mut dyn Observer<f64>,
    ) -> Result<(Outcome, Option<f64>), SolveError> {
        let space = Arc::clone(&self.space);
        loop {
            let start = if is_zero(&*space, x)? { None } else { Some(copy_of(&*space, x)?) };
            let engine = stage.engine.as_mut().map_or(&mut self.engine, |(engine, _)| engine);
            let mut ended = iterate(&mut **engine, &*space, a, x, certifier, recovery, observer)?;
            if ended.outcome != Outcome::Converged && take_best(&**engine, &*space, x, start, certifier)? {
                ended = Ended { outcome: Outcome::Converged, what: "met" };
            }
            let next = self.next_method(stage, &ended);
            let Some(next) = next.filter(|_| certifier.iterations() < self.options.max_iterations) else {
                let outcome = certifier.classify(&ended)?;
                return Ok((outcome, certifier.backward_error()));
            };
            let failed = format!("{}: {}", stage.method, ended.what);
            recovery.push(Recovery { failed, row: None, value: None, action: next.to_string() });
            self.enter(a, next, stage)?;
        }
    }

    /// What the plan goes on with after the planned method has failed.
    fn next_method(&self, stage: &Stage<S, A>, ended: &Ended) -> Option<Remedy> {
        let first = stage.method == self.method && stage.engine.is_none();
        let failure = Failure::of_method(ended.outcome).filter(|_| first)?;
        self.plan.remedy(failure, &[])
    }

    /// Prepares the next run: another method on the prepared factor, or an engine for this solve alone.
    fn enter(&mut self, a: &A, next: Remedy, stage: &mut Stage<S, A>) -> Result<(), SolveError> {
        let Remedy::Method { method, preconditioner } = next else { return Ok(()) };
        let Prepared { options, space, layouts, plan, layout, .. } = self;
        stage.method = method.limited(space.total(layout), options.max_iterations);
        let Some(kind) = preconditioner else {
            return self.engine.use_method(space, a, stage.method);
        };
        // What comes after a failure must not fail.
        let kind = if kind == PrecondSpec::jacobi() { PrecondSpec::robust_jacobi() } else { kind };
        let mut recorder = SetupRecorder::default();
        stage.engine = Some(match a.matrix() {
            Some(source) => {
                let (scale, method) = (exact_scale(space.host(), source)?, stage.method);
                let system =
                    System { solver: options, space: &**space, layouts, a, source, scale, method, plan };
                system.set_up_one(kind, &mut recorder)?
            }
            None => without(&**space, a, stage.method)?,
        });
        Ok(())
    }

    fn refuse_stale(&self, a: &A) -> Result<(), SolveError> {
        if self.broken {
            return Err(SolveError::StaleFactor);
        }
        if self.summary.kind.is_none() || self.options.allow_stale {
            return Ok(());
        }
        match (&self.factored, a.matrix()) {
            (Some(factored), Some(a)) if !factored.is(&*self.space, a) => Err(SolveError::StaleFactor),
            _ => Ok(()),
        }
    }

    /// Looks at the values of a matrix that were not seen before.
    fn require_finite(&mut self, a: &A) -> Result<(), SetupError> {
        let Some(a) = a.matrix() else { return Ok(()) };
        if !self.finite.is_some_and(|seen| seen.has_stamp_of(a)) {
            sizes_of_matrix(self.space.host(), a)?;
            self.finite = Some(SeenValues::of(self.space.host(), a));
        }
        Ok(())
    }

    fn report(
        &self,
        outcome: Outcome,
        stage: &Stage<S, A>,
        certifier: Certifier<'_, S, A>,
        recovery: Vec<Recovery>,
        seconds: Seconds,
        backward_error: Option<f64>,
    ) -> Report {
        let (engine, summary) = match &stage.engine {
            Some((engine, summary)) => (engine, summary),
            None => (&self.engine, &self.summary),
        };
        let trick = if engine.is_without_product() { ", Eisenstat's trick" } else { "" };
        // A method on the prepared factor may have another workspace than the prepared one.
        let workspace = |method: Method| method.workspace_bytes(self.space.len(&self.layout)) as usize;
        let (after, before) = match stage.engine {
            Some(_) => (0, 0),
            None => (workspace(stage.method), workspace(self.method)),
        };
        Report {
            outcome,
            solver: stage.method.to_string(),
            preconditioner: summary.kind.to_string(),
            choice: self.plan.to_string(),
            plan: self.plan.clone(),
            threads: self.space.host().threads(),
            team: self.space.host().statistics(),
            iterations: certifier.iterations(),
            relative_residual: certifier.relative_residual(),
            backward_error,
            certificate: certifier.certificate(),
            normal_residual: certifier.normal_residual(),
            residual_replacements: certifier.replacements(),
            history: certifier.into_history(),
            preconditioner_nnz: summary.nnz,
            preconditioner_bytes: summary.bytes,
            shift: summary.shift,
            predicted_bytes: summary.predicted + after - before,
            bytes: summary.held + after - before,
            layout: format!("{}{trick}", summary.layout),
            ordering: summary.ordering.clone(),
            schedule: summary.schedule.clone(),
            recovery,
            seconds,
        }
    }
}

/// Runs the method until the recomputed residual meets the tolerance or nothing more can be done.
fn iterate<S: SolverSpace, A: LinearOperator<S>>(
    engine: &mut dyn Engine<S, A>,
    space: &S,
    a: &A,
    x: &mut S::Vector,
    certifier: &mut Certifier<'_, S, A>,
    recovery: &mut Vec<Recovery>,
    observer: &mut dyn Observer<f64>,
) -> Result<Ended, SolveError> {
    let directions = observer.wants_directions();
    engine.begin(space, a, &certifier.b, x, directions)?;
    let mut start = Start::Fresh;
    loop {
        let finish = certifier.watch(observer, |b, stop, observer| {
            engine.run(Run { start, space, a, b, x: &mut *x, stop, observer })
        })?;
        round_as_returned(space, x, certifier.scale())?;
        match certifier.judge(finish, x)? {
            Verdict::Ended(ended) => return Ok(ended),
            Verdict::Replace => start = Start::KeepDirection,
            Verdict::FromZero => {
                recovery.push(Recovery {
                    failed: "the guess: its residual is larger than that of 0 by more than 1/ε".into(),
                    row: None,
                    value: None,
                    action: "the iteration begins at 0".into(),
                });
                space.fill(0.0, x)?;
                engine.begin(space, a, &certifier.b, x, directions)?;
                start = Start::Fresh;
            }
        }
    }
}

/// Leaves in `x` that one of the last iterate, the one kept, the start and 0 which has the least residual, measured last. Whether
/// it meets the tolerance.
fn take_best<S: SolverSpace, A: LinearOperator<S>>(
    engine: &dyn Engine<S, A>,
    space: &S,
    x: &mut S::Vector,
    start: Option<S::Vector>,
    certifier: &mut Certifier<'_, S, A>,
) -> Result<bool, SolveError> {
    let comparable = |norm: f64| if norm.is_nan() { f64::INFINITY } else { norm };
    let mut least = comparable(certifier.residual_norm());
    let (mut measured, mut met) = (true, false);
    let mut kept = space.zeros(&space.layout(x))?;
    let found = engine.restore_kept(space, &mut kept)?;
    round_as_returned(space, &mut kept, certifier.scale())?;
    for candidate in found.then_some(kept).into_iter().chain(start) {
        let meets = certifier.measure(&candidate)?;
        measured = comparable(certifier.residual_norm()) < least;
        if measured {
            least = certifier.residual_norm();
            space.copy(&candidate, x)?;
            met = meets;
        }
    }
    if least > certifier.rhs_norm() {
        space.fill(0.0, x)?;
        measured = false;
    }
    // The report is about the x that is returned.
    if measured { Ok(met) } else { Ok(certifier.measure(x)?) }
}

fn copy_of<S: SolverSpace>(space: &S, x: &S::Vector) -> Result<S::Vector, BackendError> {
    let mut copy = space.zeros(&space.layout(x))?;
    space.copy(x, &mut copy).map(|()| copy)
}

/// What is judged is what the caller gets: multiplied back, numbers beyond the ends of the range are rounded.
fn round_as_returned<S: SolverSpace>(space: &S, x: &mut S::Vector, scale: f64) -> Result<(), BackendError> {
    multiply(space, x, 1.0 / scale)?;
    multiply(space, x, scale)
}

/// Multiplies every number by a power of two.
fn multiply<S: SolverSpace>(space: &S, x: &mut S::Vector, factor: f64) -> Result<(), BackendError> {
    if factor == 1.0 { Ok(()) } else { space.scale(factor, x) }
}
