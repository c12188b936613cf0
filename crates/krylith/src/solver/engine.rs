//! What iterates: A, M and the workspace of a method, by rows or in slices.
//!
//! By rows, the method runs on the user's operator and vectors. In slices (see `sliced`), A is a matrix with an incomplete factor
//! whose rows are reordered by wavefront; b and x are brought into that order before the method runs and x back after it. Which
//! one depends on the pattern alone, never on the number of threads, so results do not either.

use super::Solver;
use super::choice::{Layout, Method, Preconditioning};
use super::memory::Memory;
use crate::error::{SetupError, SolveError};
use crate::krylov::{BiCgStab, Cg, Fgmres, Finish, Gmres, Minres, System};
use crate::matrix::Csr;
use crate::observe::Observer;
use crate::operator::{DynPreconditioner, Identity, LinearOperator, Preconditioner, Recipe, Symbolic};
use crate::precond::{Ic0, Ilu0, Jacobi};
use crate::report::Seconds;
use crate::schedule::Plan;
use crate::sliced::{Incomplete, NotSliced, Sliced, SlicedFactor, SlicedPattern};
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
    m: SlicedFactor,
    workspace: Workspace<Sliced, SlicedFactor>,
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
    /// Analyzes and factors, adding up the seconds.
    pub(super) fn new(
        site: &Site<'_, A>,
        kind: Preconditioning,
        seconds: &mut Seconds,
    ) -> Result<(Self, Told), SolveError> {
        let incomplete = match kind {
            Preconditioning::Ic0 => Incomplete::Ic0,
            Preconditioning::Ilu0 => Incomplete::Ilu0,
            _ => return Self::rows(site, kind, "", seconds),
        };
        match analyzing(seconds, || site.slices(incomplete))? {
            Ok(pattern) => Slices::build(site, Arc::new(pattern), incomplete, kind, seconds),
            Err(why) => Self::rows(site, kind, &why, seconds),
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
            schedule: None,
            layout: "rows as given".into(),
            predicted: bytes,
            held: bytes,
        };
        Ok((Engine::Rows(Box::new(Rows { m, workspace })), told))
    }

    fn rows(
        site: &Site<'_, A>,
        kind: Preconditioning,
        why_rows: &str,
        seconds: &mut Seconds,
    ) -> Result<(Self, Told), SolveError> {
        let Site { space, matrix, .. } = *site;
        let schedule = site.options.schedule;
        let why = |(down, up): (&Plan, &Plan)| Some([down.why().to_owned(), up.why().to_owned()]);
        let n = matrix.nrows();
        let memory = Memory::by_rows(matrix.pattern(), why_rows);
        let (m, nnz, bytes, schedule) = match kind {
            Preconditioning::None | Preconditioning::Auto => {
                return Self::without(space, site.a, site.method);
            }
            Preconditioning::Jacobi => {
                let f = timed(&Jacobi, space, matrix, seconds)?;
                let bytes = f.bytes();
                (Factor::new(f), n, bytes, None)
            }
            Preconditioning::Ic0 => {
                let f = timed(&Ic0 { schedule }, space, matrix, seconds)?;
                let (nnz, bytes, plans) = (f.nnz(), f.bytes(), why(f.plans()));
                (Factor::new(f), nnz, bytes, plans)
            }
            Preconditioning::Ilu0 => {
                let f = timed(&Ilu0 { schedule }, space, matrix, seconds)?;
                let (nnz, bytes, plans) = (f.nnz(), f.bytes(), why(f.plans()));
                (Factor::new(f), nnz, bytes, plans)
            }
        };
        let workspace = Workspace::new(site.method, System { space, a: site.a, m: &m })?;
        let (layout, factor, vectors) = match kind {
            Preconditioning::Jacobi => ("rows as given".into(), 8 * n, 8 * n * (site.method.vectors() + 2)),
            _ => (memory.layout.clone(), memory.factor, memory.vectors(site.method)),
        };
        let (predicted, held) = (factor + vectors, bytes + vectors);
        let told = Told { kind, nnz, bytes, schedule, layout, predicted, held };
        Ok((Engine::Rows(Box::new(Rows { m, workspace })), told))
    }

    /// Takes over the values of a matrix of the same pattern; allocates nothing.
    pub(super) fn refactor(&mut self, space: &Space, matrix: &Csr<f64>) -> Result<(), SetupError> {
        match self {
            Engine::Rows(rows) => rows.m.refactor(space, matrix),
            Engine::Slices(slices) => {
                slices.a.set(space, matrix)?;
                slices.m.refactor(space, &slices.a)
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

impl<A: 'static> Site<'_, A> {
    /// Slices for this factor of this matrix, or why not.
    fn slices(&self, incomplete: Incomplete) -> Result<Result<SlicedPattern, String>, SetupError> {
        let no = |why: &str| Ok(Err(why.into()));
        if self.options.layout == Layout::Rows {
            return no("as asked");
        }
        let Some(a) = as_matrix(self.a) else { return no("A is not a matrix") };
        if !Arc::ptr_eq(a.pattern(), self.matrix.pattern()) {
            return no("the preconditioner is made from another matrix");
        }
        match SlicedPattern::find(a.pattern()) {
            Ok(pattern) if incomplete == Incomplete::Ic0 && !pattern.is_symmetric() => {
                no("the pattern is not symmetric")
            }
            Err(NotSliced::Unfit(error)) => Err(error),
            found => Ok(found.map_err(|why| why.to_string())),
        }
    }
}

impl Slices {
    fn build<A: LinearOperator<Space>>(
        site: &Site<'_, A>,
        pattern: Arc<SlicedPattern>,
        incomplete: Incomplete,
        kind: Preconditioning,
        seconds: &mut Seconds,
    ) -> Result<(Engine<A>, Told), SolveError> {
        let Site { space, options, .. } = *site;
        let plan = || SlicedFactor::new(&pattern, incomplete, space.threads(), options.schedule);
        let mut m = analyzing(seconds, plan)?;
        let a = factoring(seconds, || {
            let mut a = Sliced::zeros(&pattern);
            a.set(space, site.matrix)?;
            m.refactor(space, &a).map(|()| a)
        })?;
        let n = pattern.positions();
        let workspace = Workspace::new(site.method, System { space, a: &a, m: &m })?;
        let (b, x) = (space.zeros(&n)?, space.zeros(&n)?);
        let memory = Memory::in_slices(&pattern);
        let vectors = memory.vectors(site.method);
        let told = Told {
            kind,
            nnz: m.nnz(),
            bytes: m.bytes(),
            schedule: Some(m.plans().map(|plan| plan.why().to_owned())),
            predicted: memory.copy + memory.factor + vectors,
            held: pattern.bytes() + a.bytes() + m.bytes() + vectors,
            layout: memory.layout,
        };
        Ok((Engine::Slices(Box::new(Slices { pattern, a, m, workspace, b, x })), told))
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

/// Analyzes and factors, adding up the seconds.
fn timed<R: Recipe<Space, Csr<f64>>>(
    recipe: &R,
    space: &Space,
    matrix: &Csr<f64>,
    seconds: &mut Seconds,
) -> Result<<R::Symbolic as Symbolic<Space, Csr<f64>>>::Factor, SetupError> {
    let symbolic = analyzing(seconds, || recipe.analyze(space, matrix))?;
    factoring(seconds, || symbolic.factor(space, matrix))
}
