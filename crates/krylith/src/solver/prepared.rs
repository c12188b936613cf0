//! Analysis, factor and workspace of one matrix pattern, for any number of solves.

use super::apply::Application;
use super::build::{SetUp, without};
use super::certify::sizes_of;
use super::learning::TrainedMatrix;
use super::null_space::{NullSpace, NullSpaces};
use super::options::Solver;
use super::planned::{Place, Planned};
use super::runs::{self, Solved, Watch};
use super::stage::work;
use super::threads::Transposed;
use super::winner::{Memory, Winner};
use super::workspace::{Lease, Pool, Workspace};
use crate::cost::Work;
use crate::engine::{DynEngine, InOrder};
use crate::error::{BackendError, SetupError, SolveError};
use crate::matrix::{Csr, Pattern, SeenValues, sizes_of_matrix};
use crate::operator::{
    DefaultSpace, DynPreconditioner, LinearOperator, OwnRows, Preconditioner, SolverSpace, rows_of,
};
use crate::options::Method;
use crate::outcome::{Recovery, Seconds};
use crate::plan::SolvePlan;
use crate::precond::PrecondSpec;
use crate::report::Report;
use crate::setup::SetupSummary;
use crate::space::{agree, holds_everywhere, require_same};
use crate::sparsify::{Paired, Sparsified};
use crate::store::FindStore;
use crate::transform::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
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
///     prepared.solve(&a, &b, &mut x)?.require_converged()?;
///     a.values_mut().iter_mut().for_each(|v| *v *= 1.1);
///     prepared.refactor(&a)?; // the pattern is the same: nothing is analyzed or allocated
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Prepared<A: LinearOperator<S>, S: SolverSpace = DefaultSpace> {
    pub(super) options: Solver,
    pub(super) space: Arc<S>,
    pub(super) stores: &'static [&'static dyn FindStore<S>],
    pub(super) size: S::Size,
    pub(super) method: Method,
    pub(super) engine: DynEngine<S>,
    pub(super) pool: Pool<S, A>,
    pub(super) applications: Mutex<Vec<Application<S>>>,
    pub(super) summary: SetupSummary,
    pub(super) plan: SolvePlan,
    /// The matrix that the factor is made from, if that is not the one that was given.
    pub(super) sparsified: Option<Sparsified>,
    /// That or A without entries on one side of the diagonal, if the factor is made from it.
    pub(super) paired: Option<Paired>,
    pub(super) recovery: Vec<Recovery>,
    pub(super) seconds: Seconds,
    /// What was factored, if A is the matrix that was.
    pub(super) factored: Option<Seen>,
    /// Those of the last A, with the matrix that it was, if it was one.
    null_spaces: Mutex<KnownNullSpaces<S>>,
    /// The A that the facts and warnings of the plan are about, if it is a matrix.
    planned_for: Option<Seen>,
    /// The rung that later solves begin with.
    pub(super) memory: Memory<S>,
    /// The values of A that were last found to be finite.
    finite: Mutex<Option<SeenValues>>,
    /// The last `refactor` failed, and left no factor.
    pub(super) broken: bool,
    /// What the preconditioner is made from, where it is trained.
    pub(super) trained: Option<Arc<TrainedMatrix>>,
    /// How many steps of `recovery` belong to the preparation, not to a later matrix.
    pub(super) steps: usize,
    /// Aᵀ, once a solve has needed it.
    pub(super) transposed: Mutex<Option<Arc<Transposed>>>,
}

/// What was found about a matrix.
struct KnownNullSpaces<S: SolverSpace> {
    of: Option<Seen>,
    spaces: Option<Arc<NullSpaces<S>>>,
}

/// A matrix that something was made from.
pub(super) struct Seen {
    pattern: Arc<Pattern>,
    values: SeenValues,
}

impl Seen {
    pub(super) fn new<S: SolverSpace>(space: &S, a: &Csr<f64>) -> Self {
        Seen { pattern: Arc::clone(a.pattern()), values: SeenValues::of(space.host(), a) }
    }

    pub(super) fn is<S: SolverSpace>(&self, space: &S, a: &Csr<f64>) -> bool {
        let same_pattern = || Arc::ptr_eq(&self.pattern, a.pattern()) || self.pattern == *a.pattern();
        self.values.has_stamp_of(a) || same_pattern() && self.values.are_those_of(space.host(), a)
    }
}

/// Whether A is still that matrix, on all processes. An operator without rows counts as unchanged.
fn is_still<S: SolverSpace, A: LinearOperator<S>>(
    space: &S,
    a: &A,
    known: Option<&Seen>,
) -> Result<bool, BackendError> {
    let same = |own: OwnRows<'_>| known.is_some_and(|known| known.is(space, own.rows));
    holds_everywhere(space, rows_of(space, a).is_none_or(same))
}

impl Solver {
    /// Analyzes and factors on any space. `matrix`, of as many rows as this process holds unknowns, is what the preconditioner is made
    /// from; `stores` are the ways to keep it, asked in order. The method depends on A where that is a matrix, and on `matrix` where it is not.
    pub fn prepare_on<S: SolverSpace, A: LinearOperator<S>>(
        &self,
        space: S,
        stores: &'static [&'static dyn FindStore<S>],
        a: &A,
        matrix: &Csr<f64>,
    ) -> Result<Prepared<A, S>, SolveError> {
        let place = Place { space: &space, stores };
        let mut planned = self.planned_on(place, a, matrix)?;
        let SetUp { engine, summary, paired, trained } = planned.build(self, place, a, matrix)?;
        let Planned { plan, other, method, sparsified, recorder, .. } = planned;
        let same = a.matrix().is_some() && other.is_none();
        let of_a = || rows_of(&space, a).map(|own| Seen::new(&space, own.rows));
        let null_spaces = Mutex::new(KnownNullSpaces {
            of: of_a(),
            spaces: NullSpaces::find(self, &space, a, plan.facts.as_ref())?.map(Arc::new),
        });
        let planned_for = of_a();
        let space = Arc::new(space);
        let first = Workspace::new(Arc::clone(&space), &engine, a, method)?;
        space.publish()?;
        Ok(Prepared {
            null_spaces,
            planned_for,
            memory: Memory::default(),
            factored: same.then(|| Seen::new(&*space, matrix)),
            finite: Mutex::new(same.then(|| SeenValues::of(space.host(), matrix))),
            broken: false,
            steps: recorder.recovery.len(),
            trained,
            paired,
            transposed: Mutex::default(),
            options: self.clone(),
            space,
            pool: Pool::new(first),
            applications: Mutex::default(),
            stores,
            size: a.domain(),
            method,
            engine,
            summary,
            plan,
            sparsified,
            recovery: recorder.recovery,
            seconds: recorder.seconds,
        })
    }

    /// Prepares on any space for an operator without a matrix, with a preconditioner of the caller's under this name: z = M⁻¹ r. What it is made of, and when that
    /// changes, is the caller's affair; a method that needs a symmetric M takes it to be one.
    pub fn prepare_operator_with_on<S: SolverSpace, A: LinearOperator<S>>(
        &self,
        space: S,
        stores: &'static [&'static dyn FindStore<S>],
        a: &A,
        (name, m): (&str, DynPreconditioner<S, Csr<f64>>),
    ) -> Result<Prepared<A, S>, SolveError> {
        self.validate()?;
        self.refuse_other_preconditioner("the preconditioner that is given is the only one")?;
        if name.is_empty() || name.parse::<PrecondSpec>().is_ok() {
            let needed = "a name is needed that no preconditioner of the registry has".into();
            return Err(SolveError::Option { name: "preconditioner", value: name.into(), needed });
        }
        require_same("the domain and the range of A", &a.domain(), &a.range())?;
        require_same("M and the domain of A", &m.domain(), &a.domain())?;
        require_same("M and the range of A", &m.range(), &a.range())?;
        let mut plan = self.plan_without_matrix();
        let method = plan.method.limited(space.total(&a.domain()), self.max_iterations);
        let mut set_up = without(&space, a.domain(), method);
        plan.preconditioner = PrecondSpec::given(name);
        let (nnz, bytes) = (m.entries(), m.bytes());
        let SetupSummary { predicted, held, .. } = set_up.summary;
        set_up.summary = SetupSummary {
            kind: plan.preconditioner.clone(),
            nnz,
            bytes,
            predicted: predicted + bytes,
            held: held + bytes,
            ..set_up.summary
        };
        set_up.engine = Box::new(InOrder::new(m));
        self.prepared_operator(space, stores, a, (plan, method, set_up))
    }

    /// Prepares on any space for an operator without a matrix, so without a preconditioner.
    pub fn prepare_operator_on<S: SolverSpace, A: LinearOperator<S>>(
        &self,
        space: S,
        stores: &'static [&'static dyn FindStore<S>],
        a: &A,
    ) -> Result<Prepared<A, S>, SolveError> {
        self.validate()?;
        self.refuse_other_preconditioner(
            "a preconditioner without a matrix to make it from: `prepare_with` takes one",
        )?;
        require_same("the domain and the range of A", &a.domain(), &a.range())?;
        let plan = self.plan_without_matrix();
        let method = plan.method.limited(space.total(&a.domain()), self.max_iterations);
        let set_up = without(&space, a.domain(), method);
        self.prepared_operator(space, stores, a, (plan, method, set_up))
    }

    fn refuse_other_preconditioner(&self, what: &'static str) -> Result<(), SolveError> {
        match self.preconditioner.is_auto() || self.preconditioner.is_none() {
            true => Ok(()),
            false => Err(BackendError::Unsupported { what }.into()),
        }
    }

    fn prepared_operator<S: SolverSpace, A: LinearOperator<S>>(
        &self,
        space: S,
        stores: &'static [&'static dyn FindStore<S>],
        a: &A,
        (plan, method, SetUp { engine, summary, .. }): (SolvePlan, Method, SetUp<S>),
    ) -> Result<Prepared<A, S>, SolveError> {
        let of = rows_of(&space, a).map(|own| Seen::new(&space, own.rows));
        let spaces = NullSpaces::find(self, &space, a, None)?.map(Arc::new);
        let null_spaces = Mutex::new(KnownNullSpaces { of, spaces });
        let space = Arc::new(space);
        Ok(Prepared {
            null_spaces,
            planned_for: None,
            memory: Memory::default(),
            factored: None,
            finite: Mutex::default(),
            broken: false,
            steps: 0,
            trained: None,
            transposed: Mutex::default(),
            options: self.clone(),
            pool: Pool::new(Workspace::new(Arc::clone(&space), &engine, a, method)?),
            applications: Mutex::default(),
            space,
            stores,
            size: a.domain(),
            method,
            engine,
            summary,
            plan,
            sparsified: None,
            paired: None,
            recovery: Vec::new(),
            seconds: Seconds::default(),
        })
    }
}

impl<S: SolverSpace, A: LinearOperator<S>> Prepared<A, S> {
    /// The matrix without some entries that the preconditioner is made from; none if it is made from A.
    pub fn sparsified(&self) -> Option<&Csr<f64>> {
        let paired = self.paired.as_ref().map(Paired::sparsified);
        paired.or(self.sparsified.as_ref()).map(Sparsified::matrix)
    }

    /// Whether the prepared factor is made from A, or from what the caller gave for an operator without a matrix.
    pub(super) fn factors_a(&self, a: &A) -> bool {
        self.factored.is_some() || a.matrix().is_none()
    }

    /// What is done, and why.
    pub fn plan(&self) -> &SolvePlan {
        &self.plan
    }

    /// Seconds of an iteration as the solver's machine is predicted to take them; `None` where A is not a matrix.
    pub fn predicted_iteration(&self, a: &A) -> Option<f64> {
        let work = work(self.method, (a.matrix()?, &self.plan), &self.summary);
        Some(1e-9 * self.options.machine.iteration(&work))
    }

    /// The same for an iteration that somebody wants directions of: it always forms A p.
    pub(crate) fn predicted_iteration_with_directions(&self, a: &A) -> Option<f64> {
        let work = work(self.method, (a.matrix()?, &self.plan), &self.summary);
        Some(1e-9 * self.options.machine.iteration(&Work { without_product: false, ..work }))
    }

    /// The preconditioner that was set up.
    pub(crate) fn kind(&self) -> &PrecondSpec {
        &self.summary.kind
    }

    /// Whether it was set up for A as it is: in its order, all of its entries, no shift.
    pub(crate) fn is_of_a_as_given(&self) -> bool {
        let as_given = self.plan.ordering == Ordering::Natural && self.options.shift == 0.0;
        as_given && self.sparsified().is_none() && self.recovery.is_empty()
    }

    /// Where it solves.
    pub(crate) fn space(&self) -> &Arc<S> {
        &self.space
    }

    /// Solves A x = b from the guess in `x`, vectors of the space. The answer is judged by the residual recomputed from A, x and b. A
    /// matrix with other values than those factored is refused, unless [`Solver::allow_stale_factor`] says otherwise. Where the solve
    /// does not converge, `x` is that one of the last iterate, the best one kept, the guess and 0 which has the least residual.
    pub fn solve_vectors(
        &self,
        a: &A,
        b: &S::Vector,
        x: &mut S::Vector,
        watch: Watch<'_>,
    ) -> Result<Report, SolveError> {
        let mut workspace = self.pool.take(self, a, false)?;
        require_same("b and the range of A", &self.space.size(b), &a.range())?;
        let Workspace { space, vectors, .. } = &mut *workspace;
        space.begin_report(self.options.profile);
        space.copy(b, &mut vectors.b)?;
        let known = self.memory.of(&self.space, a.matrix());
        let (report, found) = self.solve_in(a, &mut workspace, x, (watch, known))?;
        self.memory.note(&self.space, a.matrix(), found);
        Ok(report)
    }

    /// The same for numbers in this process's memory, as many as it holds of b and of x, with an observer and a criterion if there are any.
    pub fn solve_watched(
        &self,
        a: &A,
        b: &[f64],
        x: &mut [f64],
        watch: Watch<'_>,
    ) -> Result<Report, SolveError> {
        let known = self.memory.of(&self.space, a.matrix());
        let (report, found) =
            self.solve_leased(self.pool.take(self, a, false)?, a, (b, x), (watch, known))?;
        self.memory.note(&self.space, a.matrix(), found);
        Ok(report)
    }

    /// The same in a workspace on loan, with what is known from solves before; and what this one has found out.
    pub(super) fn solve_leased(
        &self,
        mut workspace: Lease<'_, S, A>,
        a: &A,
        (b, x): (&[f64], &mut [f64]),
        watch: (Watch<'_>, Option<Arc<Winner<S>>>),
    ) -> Result<(Report, Option<Winner<S>>), SolveError> {
        let space = Arc::clone(&workspace.space);
        require_same("b and the range of A", &b.len(), &space.len(&a.range()))?;
        require_same("x and the domain of A", &x.len(), &space.len(&a.domain()))?;
        space.begin_report(self.options.profile);
        space.upload(b, &mut workspace.vectors.b)?;
        let mut own = match workspace.x.take() {
            Some(own) => own,
            None => space.zeros(&a.domain())?,
        };
        let report = space.upload(x, &mut own).map_err(SolveError::from);
        let report = report.and_then(|()| self.solve_in(a, &mut workspace, &mut own, watch));
        let copied = match report.is_ok() {
            true => space.download(&own, x),
            false => Ok(()),
        };
        workspace.x = Some(own);
        copied?;
        report
    }

    /// The same for the b that is in the workspace.
    pub(super) fn solve_in(
        &self,
        a: &A,
        workspace: &mut Workspace<S, A>,
        x: &mut S::Vector,
        watch: (Watch<'_>, Option<Arc<Winner<S>>>),
    ) -> Result<(Report, Option<Winner<S>>), SolveError> {
        let space = Arc::clone(&workspace.space);
        let _span = tracing::info_span!("solve", rows = space.len(&self.size)).entered();
        let started = Instant::now();
        space.host().reset_statistics();
        self.refuse_stale(a)?;
        self.require_finite(a)?;
        require_same("x and the domain of A", &space.size(x), &a.domain())?;
        let guess = sizes_of(&*space, "the guess x", x)?;
        let mut solved = runs::solve(self, a, workspace, x, guess.largest, watch)?;
        let (found, seconds) =
            (solved.found.take(), Seconds { solve: started.elapsed().as_secs_f64(), ..self.seconds });
        Ok((self.report(&space, solved, seconds), found))
    }

    /// The null spaces of A as far as they are known. Those of another matrix say nothing about this one, and are looked for again.
    pub(super) fn null_spaces_of(&self, space: &S, a: &A) -> Result<Option<Arc<NullSpaces<S>>>, SolveError> {
        let mut known = self.null_spaces.lock().unwrap_or_else(PoisonError::into_inner);
        // All processes look for them if one of them has another matrix.
        if !is_still(space, a, known.of.as_ref())? {
            let spaces = NullSpaces::find(&self.options, space, a, None)?.map(Arc::new);
            let of = rows_of(space, a).map(|own| Seen::new(space, own.rows));
            *known = KnownNullSpaces { of, spaces };
        }
        Ok(known.spaces.clone())
    }

    /// Whether the facts of the plan are those of this A, on all processes.
    pub(super) fn is_planned_for(&self, space: &S, a: &A) -> Result<bool, BackendError> {
        is_still(space, a, self.planned_for.as_ref())
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

    /// Looks at the values of a matrix that were not seen before; all processes end alike.
    fn require_finite(&self, a: &A) -> Result<(), SetupError> {
        agree(&*self.space, rows_of(&*self.space, a).map_or(Ok(()), |own| self.look_at(own)))
    }

    fn look_at(&self, OwnRows { rows, first }: OwnRows<'_>) -> Result<(), SetupError> {
        let seen = *self.finite.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.is_some_and(|seen| seen.has_stamp_of(rows)) {
            return Ok(());
        }
        sizes_of_matrix(self.space.host(), rows).map_err(|error| error.of_part([first, 0]))?;
        let seen = SeenValues::of(self.space.host(), rows);
        *self.finite.lock().unwrap_or_else(PoisonError::into_inner) = Some(seen);
        Ok(())
    }

    fn report(&self, space: &S, solved: Solved<S>, seconds: Seconds) -> Report {
        let Solved {
            outcome, method, engine, without_product, is_planned_for, recovery, rungs, figures, ..
        } = solved;
        let summary = engine.as_ref().map_or(&self.summary, |set_up| &set_up.summary);
        let mut plan = self.plan.clone();
        if !is_planned_for {
            // They are those of another matrix.
            plan.facts = None;
            plan.warnings.clear();
        }
        let trick = if without_product { ", Eisenstat's trick" } else { "" };
        // A method on the prepared factor may have another workspace than the prepared one.
        let workspace = |method: Method| method.workspace_bytes(self.space.len(&self.size)) as usize;
        let (after, before) = match engine {
            Some(_) => (0, 0),
            None => (workspace(method), workspace(self.method)),
        };
        Report {
            outcome,
            solver: method.to_string(),
            preconditioner: summary.kind.to_string(),
            choice: self.plan.to_string(),
            plan,
            threads: space.host().threads(),
            team: space.host().statistics(),
            iterations: figures.iterations,
            relative_residual: figures.relative_residual,
            projected_residual: figures.projected_residual,
            null_space_named: !matches!(self.options.null_space, NullSpace::Auto | NullSpace::Ignore),
            backward_error: figures.backward_error,
            certificate: figures.certificate,
            normal_residual: figures.normal_residual,
            residual_replacements: figures.replacements,
            history: figures.history,
            preconditioner_nnz: summary.nnz,
            preconditioner_bytes: summary.bytes,
            shift: summary.shift,
            predicted_bytes: summary.predicted + after - before,
            bytes: summary.held + after - before,
            layout: format!("{}{trick}", summary.layout),
            ordering: summary.ordering.clone(),
            schedule: summary.schedule.clone(),
            rungs,
            recovery,
            seconds,
            device: space.device_report(),
            profile: space.profile(),
        }
    }
}
