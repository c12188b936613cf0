//! What iterates: A, M and the workspace of a method, by rows or in slices.
//!
//! By rows, the method runs on the user's operator and vectors. In slices (see `sliced`), A is a matrix with an incomplete factor
//! whose rows are reordered by wavefront; b and x are brought into that order before the method runs and x back after it. Which
//! one depends on the pattern alone, never on the number of threads, so results do not either.

use super::Solver;
use super::choice::{Layout, Method, Precision, Preconditioning};
use super::memory::Memory;
use super::recover::find_shift;
use crate::error::{BackendError, SetupError, SolveError};
use crate::krylov::{BiCgStab, Cg, Fgmres, Finish, Gmres, Minres, System};
use crate::matrix::{Csr, Pattern};
use crate::observe::Observer;
use crate::operator::{DynPreconditioner, Identity, LinearOperator, Preconditioner, Recipe, Symbolic};
use crate::precond::{Form, Incomplete, IncompleteFactor, IncompleteSymbolic, Jacobi, Kind};
use crate::report::{Recovery, Seconds};
use crate::scalar::Real;
use crate::schedule::SlicePlan;
use crate::sliced::{NotSliced, Sliced, SlicedFactor, SlicedPattern, SlicedScratch, Stored};
use crate::space::{Space as _, Threads};
use crate::stop::StoppingCriterion;
use std::any::Any;
use std::sync::Arc;
use std::time::Instant;

type Space = Threads<f64>;
type Factor = DynPreconditioner<Space, Csr<f64>>;

/// What is told of a preconditioner and of the order of rows.
#[derive(Debug, Clone)]
pub(super) struct Told {
    pub(super) kind: Preconditioning,
    pub(super) nnz: usize,
    pub(super) bytes: usize,
    /// What the diagonal was enlarged by.
    pub(super) shift: f64,
    pub(super) schedule: Option<[String; 2]>,
    pub(super) layout: String,
    /// Bytes of everything that a solve holds besides A, b and x: foreseen from the pattern, and held.
    pub(super) predicted: usize,
    pub(super) held: usize,
}

/// A method with its workspace.
pub(super) enum Workspace<A: LinearOperator<Space>, M: LinearOperator<Space>> {
    Cg(Cg<Space, A, M>),
    BiCgStab(BiCgStab<Space, A, M>),
    Gmres(Gmres<Space, A, M>),
    Fgmres(Fgmres<Space, A, M>),
    Minres(Minres<Space, A, M>),
}

impl<A: LinearOperator<Space>, M: LinearOperator<Space>> Workspace<A, M> {
    fn new(method: Method, system: System<'_, Space, A, M>) -> Result<Self, SolveError> {
        Ok(match method {
            Method::Cg => Workspace::Cg(Cg::new(system)?),
            Method::Gmres(restart) => Workspace::Gmres(Gmres::new(system, restart)?),
            Method::Fgmres(restart) => Workspace::Fgmres(Fgmres::new(system, restart)?),
            Method::Minres => Workspace::Minres(Minres::new(system)?),
            Method::BiCgStab | Method::Auto => Workspace::BiCgStab(BiCgStab::new(system)?),
        })
    }

    /// Runs the method; `again` after the residual was found to have drifted.
    fn run(
        &mut self,
        again: bool,
        system: System<'_, Space, A, M>,
        b: &Vec<f64>,
        x: &mut Vec<f64>,
        stop: &mut impl StoppingCriterion<f64>,
        observer: &mut impl Observer<f64>,
    ) -> Result<Finish<f64>, crate::BackendError> {
        match self {
            Workspace::Cg(w) if again => w.resume(system, b, x, stop, observer),
            Workspace::Cg(w) => w.solve(system, b, x, stop, observer),
            Workspace::BiCgStab(w) => w.solve(system, b, x, stop, observer),
            Workspace::Gmres(w) => w.solve(system, b, x, stop, observer),
            Workspace::Fgmres(w) => w.solve(system, b, x, stop, observer),
            Workspace::Minres(w) => w.solve(system, b, x, stop, observer),
        }
    }
}

/// A, M and workspace.
pub(super) enum Engine<A: LinearOperator<Space>> {
    /// In the order of the user's rows.
    Rows(Box<Rows<A>>),
    /// Reordered by wavefront.
    Slices(Box<Slices>),
}

pub(super) struct Rows<A: LinearOperator<Space>> {
    m: Factor,
    workspace: Workspace<A, Factor>,
}

pub(super) struct Slices {
    pattern: Arc<SlicedPattern>,
    a: Sliced,
    m: AnySliced,
    workspace: Workspace<Sliced, AnySliced>,
    b: Vec<f64>,
    x: Vec<f64>,
}

/// Everything that building an engine needs to know.
pub(super) struct Site<'a, A> {
    pub(super) options: &'a Solver,
    pub(super) space: &'a Space,
    pub(super) a: &'a A,
    pub(super) matrix: &'a Csr<f64>,
    pub(super) method: Method,
}

impl<A: LinearOperator<Space> + 'static> Engine<A> {
    /// Analyzes and factors, adding up the seconds; what fails on the way and is mended is told.
    pub(super) fn new(
        site: &Site<'_, A>,
        kind: Preconditioning,
        log: &mut Log,
    ) -> Result<(Self, Told), SolveError> {
        let Some(recipe) = kind.incomplete() else { return Self::diagonal(site, kind, log) };
        let recipe =
            Incomplete { schedule: site.options.schedule, max_bytes: site.options.max_bytes, ..recipe };
        let pattern = analyzing(&mut log.seconds, || recipe.pattern(site.matrix.pattern()))?;
        let narrow = site.options.precision == Precision::Mixed;
        match analyzing(&mut log.seconds, || site.slices(recipe.form, &pattern))? {
            Ok(found) if narrow => Slices::build::<f32, A>(site, found, recipe.form, kind, log),
            Ok(found) => Slices::build::<f64, A>(site, found, recipe.form, kind, log),
            Err(why) if narrow => Self::rows::<f32>(site, &recipe, &pattern, kind, &why, log),
            Err(why) => Self::rows::<f64>(site, &recipe, &pattern, kind, &why, log),
        }
    }

    /// No preconditioner.
    pub(super) fn without(space: &Space, a: &A, method: Method) -> Result<(Self, Told), SolveError> {
        let m = Factor::new(Identity::new(a.domain()));
        let workspace = Workspace::new(method, System { space, a, m: &m })?;
        let bytes = 8 * a.domain() * (method.vectors() + 2);
        let told = Told {
            kind: Preconditioning::None,
            nnz: 0,
            bytes: 0,
            shift: 0.0,
            schedule: None,
            layout: "rows as given".into(),
            predicted: bytes,
            held: bytes,
        };
        Ok((Engine::Rows(Box::new(Rows { m, workspace })), told))
    }

    /// None or the diagonal.
    fn diagonal(
        site: &Site<'_, A>,
        kind: Preconditioning,
        log: &mut Log,
    ) -> Result<(Self, Told), SolveError> {
        let Site { space, matrix, .. } = *site;
        if kind != Preconditioning::Jacobi {
            return Self::without(space, site.a, site.method);
        }
        let forgiving = log.forgiving;
        let symbolic = analyzing(&mut log.seconds, || Jacobi { forgiving }.analyze(space, matrix))?;
        let f = factoring(&mut log.seconds, || symbolic.factor(space, matrix))?;
        let (bytes, m) = (f.bytes(), Factor::new(f));
        let workspace = Workspace::new(site.method, System { space, a: site.a, m: &m })?;
        let n = matrix.nrows();
        let vectors = 8 * n * (site.method.vectors() + 2);
        let told = Told {
            kind,
            nnz: n,
            bytes,
            shift: 0.0,
            schedule: None,
            layout: "rows as given".into(),
            predicted: 8 * n + vectors,
            held: bytes + vectors,
        };
        Ok((Engine::Rows(Box::new(Rows { m, workspace })), told))
    }

    /// An incomplete factor by rows, stored in `S`.
    fn rows<S: Real>(
        site: &Site<'_, A>,
        recipe: &Incomplete,
        pattern: &Arc<Pattern>,
        kind: Preconditioning,
        why: &str,
        log: &mut Log,
    ) -> Result<(Self, Told), SolveError> {
        let Site { space, matrix, options, .. } = *site;
        let (threads, source) = (space.threads(), matrix.pattern());
        let symbolic = analyzing(&mut log.seconds, || {
            IncompleteSymbolic::on(recipe.form, source, pattern, threads, recipe.schedule)
        })?;
        let mut f: IncompleteFactor<f64, S> = symbolic.allocate();
        let attempt = |shift| {
            f.set_shift(shift);
            f.refactor(space, matrix)
        };
        let shift = log.factor(options.recover, kind, 0.0, attempt)?;
        let (nnz, bytes) = (f.nnz(), f.bytes());
        let (down, up) = f.plans();
        let schedule = Some([down.why().to_owned(), up.why().to_owned()]);
        let m = Factor::new(f);
        let workspace = Workspace::new(site.method, System { space, a: site.a, m: &m })?;
        let memory = Memory::by_rows(pattern, why, size_of::<S>());
        let vectors = memory.vectors(site.method);
        let (predicted, held) = (memory.factor + vectors, bytes + vectors);
        let told = Told { kind, nnz, bytes, shift, schedule, layout: memory.layout, predicted, held };
        Ok((Engine::Rows(Box::new(Rows { m, workspace })), told))
    }

    /// Takes over the values of a matrix of the same pattern, with this shift; allocates nothing.
    pub(super) fn refactor(
        &mut self,
        space: &Space,
        matrix: &Csr<f64>,
        shift: f64,
    ) -> Result<(), SetupError> {
        match self {
            Engine::Rows(rows) => {
                rows.m.set_shift(shift);
                rows.m.refactor(space, matrix)
            }
            Engine::Slices(slices) => {
                slices.a.set(space, matrix)?;
                slices.m.refactor(space, &slices.a, shift)
            }
        }
    }

    /// Another method with the same M.
    pub(super) fn change_method(&mut self, space: &Space, a: &A, method: Method) -> Result<(), SolveError> {
        match self {
            Engine::Rows(r) => r.workspace = Workspace::new(method, System { space, a, m: &r.m })?,
            Engine::Slices(s) => {
                s.workspace = Workspace::new(method, System { space, a: &s.a, m: &s.m })?;
            }
        }
        Ok(())
    }

    /// Before a solve: takes over A's values, which may have changed while M's are kept, b and the guess.
    pub(super) fn begin(&mut self, space: &Space, a: &A, b: &[f64], x: &[f64]) -> Result<(), SolveError> {
        if let Engine::Slices(slices) = self {
            crate::space::require_same("x and the columns of A", &x.len(), &b.len())?;
            let a = as_matrix(a).expect("slices are made of a matrix");
            slices.a.set(space, a)?;
            slices.pattern.gather(b, &mut slices.b);
            slices.pattern.gather(x, &mut slices.x);
        }
        Ok(())
    }

    /// Runs the method; `again` after the residual was found to have drifted.
    #[expect(clippy::too_many_arguments, reason = "a system, what it runs on and who watches")]
    pub(super) fn run(
        &mut self,
        again: bool,
        space: &Space,
        a: &A,
        b: &Vec<f64>,
        x: &mut Vec<f64>,
        stop: &mut impl StoppingCriterion<f64>,
        observer: &mut impl Observer<f64>,
    ) -> Result<Finish<f64>, crate::BackendError> {
        match self {
            Engine::Rows(r) => r.workspace.run(again, System { space, a, m: &r.m }, b, x, stop, observer),
            Engine::Slices(s) => {
                let system = System { space, a: &s.a, m: &s.m };
                let finish = s.workspace.run(again, system, &s.b, &mut s.x, stop, observer)?;
                s.pattern.scatter(&s.x, x);
                Ok(finish)
            }
        }
    }
}

/// A in slices, and where its factor has its entries: the same, unless there is fill.
pub(super) struct InSlices {
    of_a: Arc<SlicedPattern>,
    of_factor: Arc<SlicedPattern>,
}

impl<A: 'static> Site<'_, A> {
    /// Slices for a factor of this form on this pattern, or why not.
    fn slices(&self, form: Form, pattern: &Arc<Pattern>) -> Result<Result<InSlices, String>, SetupError> {
        let no = |why: &str| Ok(Err(why.into()));
        if self.options.layout == Layout::Rows {
            return no("as asked");
        }
        if form.transposed() {
            return no("sums of columns are kept");
        }
        let Some(a) = as_matrix(self.a) else { return no("A is not a matrix") };
        if !Arc::ptr_eq(a.pattern(), self.matrix.pattern()) {
            return no("the preconditioner is made from another matrix");
        }
        let found = match SlicedPattern::find(pattern) {
            Ok(found) if form.kind == Kind::Cholesky && !found.is_symmetric() => {
                return no("the pattern is not symmetric");
            }
            Ok(found) => Arc::new(found),
            Err(NotSliced::Unfit(error)) => return Err(error),
            Err(why) => return Ok(Err(why.to_string())),
        };
        if Arc::ptr_eq(a.pattern(), pattern) {
            return Ok(Ok(InSlices { of_a: Arc::clone(&found), of_factor: found }));
        }
        match found.part(a.pattern()) {
            Ok(of_a) => Ok(Ok(InSlices { of_a: Arc::new(of_a), of_factor: found })),
            Err(NotSliced::Unfit(SetupError::MissingDiagonal { .. })) => no("the diagonal is not full"),
            Err(why) => no(&format!("of A in the order of its factor {why}")),
        }
    }
}

impl Slices {
    fn build<S: Stored, A: LinearOperator<Space>>(
        site: &Site<'_, A>,
        found: InSlices,
        form: Form,
        kind: Preconditioning,
        log: &mut Log,
    ) -> Result<(Engine<A>, Told), SolveError>
    where
        AnySliced: From<SlicedFactor<S>>,
    {
        let Site { space, options, .. } = *site;
        let InSlices { of_a, of_factor } = found;
        let plan = || SlicedFactor::<S>::new(&of_factor, form, space.threads(), options.schedule);
        let mut m = AnySliced::from(analyzing(&mut log.seconds, plan)?);
        let a = factoring(&mut log.seconds, || {
            let mut a = Sliced::zeros(&of_a);
            a.set(space, site.matrix).map(|()| a)
        })?;
        let shift = log.factor(options.recover, kind, 0.0, |shift| m.refactor(space, &a, shift))?;
        let n = of_a.positions();
        let workspace = Workspace::new(site.method, System { space, a: &a, m: &m })?;
        let (b, x) = (space.zeros(&n)?, space.zeros(&n)?);
        let memory = Memory::in_slices(&of_a, &of_factor, size_of::<S>());
        let vectors = memory.vectors(site.method);
        let extra = if Arc::ptr_eq(&of_a, &of_factor) { 0 } else { of_factor.bytes_besides(&of_a) };
        let told = Told {
            kind,
            nnz: m.nnz(),
            bytes: m.bytes() + extra,
            shift,
            schedule: Some(m.plans().map(|plan| plan.why().to_owned())),
            predicted: memory.copy + memory.factor + vectors,
            held: of_a.bytes() + extra + a.bytes() + m.bytes() + vectors,
            layout: memory.layout,
        };
        Ok((Engine::Slices(Box::new(Slices { pattern: of_a, a, m, workspace, b, x })), told))
    }
}

/// A factor in slices, wide or narrow.
pub(super) enum AnySliced {
    Wide(SlicedFactor<f64>),
    Narrow(SlicedFactor<f32>),
}

impl From<SlicedFactor<f64>> for AnySliced {
    fn from(m: SlicedFactor<f64>) -> Self {
        AnySliced::Wide(m)
    }
}

impl From<SlicedFactor<f32>> for AnySliced {
    fn from(m: SlicedFactor<f32>) -> Self {
        AnySliced::Narrow(m)
    }
}

/// The same for either.
macro_rules! either {
    ($self:expr, $m:ident => $body:expr) => {
        match $self {
            AnySliced::Wide($m) => $body,
            AnySliced::Narrow($m) => $body,
        }
    };
}

impl AnySliced {
    fn refactor(&mut self, space: &Space, a: &Sliced, shift: f64) -> Result<(), SetupError> {
        either!(self, m => {
            m.set_shift(shift);
            m.refactor(space, a)
        })
    }

    fn nnz(&self) -> usize {
        either!(self, m => m.nnz())
    }

    fn bytes(&self) -> usize {
        either!(self, m => m.bytes())
    }

    fn plans(&self) -> [&SlicePlan; 2] {
        either!(self, m => m.plans())
    }
}

impl LinearOperator<Space> for AnySliced {
    type Scratch = SlicedScratch;

    fn domain(&self) -> usize {
        either!(self, m => m.domain())
    }

    fn range(&self) -> usize {
        either!(self, m => m.range())
    }

    fn scratch(&self, space: &Space) -> Result<SlicedScratch, BackendError> {
        either!(self, m => m.scratch(space))
    }

    fn apply(
        &self,
        space: &Space,
        x: &Vec<f64>,
        z: &mut Vec<f64>,
        scratch: &mut SlicedScratch,
    ) -> Result<(), BackendError> {
        either!(self, m => m.apply(space, x, z, scratch))
    }
}

/// What setting up has taken and what went wrong on the way.
#[derive(Debug, Clone, Default)]
pub(super) struct Log {
    pub(super) seconds: Seconds,
    pub(super) recovery: Vec<Recovery>,
    /// The diagonal is taken in its form that cannot fail.
    pub(super) forgiving: bool,
}

impl Log {
    /// Factors, if need be with a shift that `attempt` is told; the shift.
    pub(super) fn factor(
        &mut self,
        recover: bool,
        kind: Preconditioning,
        begin: f64,
        mut attempt: impl FnMut(f64) -> Result<(), SetupError>,
    ) -> Result<f64, SetupError> {
        factoring(&mut self.seconds, || {
            if recover {
                find_shift(kind, begin, attempt, &mut self.recovery)
            } else {
                attempt(begin).map(|()| begin)
            }
        })
    }
}

/// The operator as a matrix, if it is one.
pub(super) fn as_matrix<A: 'static>(a: &A) -> Option<&Csr<f64>> {
    (a as &dyn Any).downcast_ref::<Csr<f64>>()
}

/// Work on the pattern, in a span, its seconds added up.
fn analyzing<T>(seconds: &mut Seconds, work: impl FnOnce() -> T) -> T {
    let _span = tracing::info_span!("analyze").entered();
    let started = Instant::now();
    let result = work();
    seconds.analyze += started.elapsed().as_secs_f64();
    result
}

/// Work on the values, in a span, its seconds added up.
fn factoring<T>(seconds: &mut Seconds, work: impl FnOnce() -> T) -> T {
    let _span = tracing::info_span!("factor").entered();
    let started = Instant::now();
    let result = work();
    seconds.factor += started.elapsed().as_secs_f64();
    result
}
