//! What iterates: A, M and the workspace of a method, by rows or in slices.
//!
//! By rows, the method runs on the user's operator and vectors. In slices (see `sliced`), A is a matrix with an incomplete factor
//! whose rows are reordered by wavefront; b and x are brought into that order before the method runs and x back after it. Which
//! one depends on the pattern alone, never on the number of threads, so results do not either.

use super::Solver;
use super::choice::{Method, Precision, Preconditioning};
use super::in_blocks::Blocks;
use super::in_slices::Slices;
use super::log::Log;
use super::memory::Memory;
use super::on_grid::OnGrid;
use super::reorder::Reordered;
use crate::error::{BackendError, SetupError, SolveError};
use crate::krylov::{BiCgStab, Cg, Fgmres, Finish, Gmres, Minres, System};
use crate::matrix::{Csr, Pattern};
use crate::observe::Observer;
use crate::operator::{DynPreconditioner, Identity, LinearOperator, Preconditioner, Recipe, Symbolic};
use crate::precond::threshold::Triangles;
use crate::precond::{Form, Incomplete, IncompleteFactor, IncompleteSymbolic, Jacobi, bytes_by_rows};
use crate::report::Recovery;
use crate::scalar::Real;
use crate::space::Threads;
use crate::stop::StoppingCriterion;
use std::any::Any;
use std::sync::Arc;

/// A factor that nobody set a limit for may be this many times as large as one without fill.
const PROPORTION: u64 = 100;
/// And as large as this in any case.
const SMALL: u64 = 64 << 20;

/// Numbers below this, and their inverses, are well within the range of `f32`.
const LARGEST_NARROW: f64 = 1e30;

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
    /// Of rows and columns, before that.
    pub(super) ordering: String,
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
    pub(super) fn new(method: Method, system: System<'_, Space, A, M>) -> Result<Self, SolveError> {
        Ok(match method {
            Method::Cg => Workspace::Cg(Cg::new(system)?),
            Method::Gmres(restart) => Workspace::Gmres(Gmres::new(system, restart)?),
            Method::Fgmres(restart) => Workspace::Fgmres(Fgmres::new(system, restart)?),
            Method::Minres => Workspace::Minres(Minres::new(system)?),
            Method::BiCgStab | Method::Auto => Workspace::BiCgStab(BiCgStab::new(system)?),
        })
    }

    /// Runs the method; `again` after the residual was found to have drifted.
    pub(super) fn run(
        &mut self,
        again: bool,
        system: System<'_, Space, A, M>,
        b: &Vec<f64>,
        x: &mut Vec<f64>,
        stop: &mut impl StoppingCriterion<f64>,
        observer: &mut impl Observer<f64>,
    ) -> Result<Finish<f64>, BackendError> {
        match self {
            Workspace::Cg(w) if again => w.resume(system, b, x, stop, observer),
            Workspace::Cg(w) => w.solve(system, b, x, stop, observer),
            Workspace::BiCgStab(w) => w.solve(system, b, x, stop, observer),
            Workspace::Gmres(w) => w.solve(system, b, x, stop, observer),
            Workspace::Fgmres(w) => w.solve(system, b, x, stop, observer),
            Workspace::Minres(w) => w.solve(system, b, x, stop, observer),
        }
    }

    /// The best iterate that the last run left for a worse one.
    pub(super) fn kept(&self) -> Option<&Vec<f64>> {
        let kept = match self {
            Workspace::Cg(w) => w.kept(),
            Workspace::BiCgStab(w) => w.kept(),
            Workspace::Gmres(w) => w.kept(),
            Workspace::Fgmres(w) => w.kept(),
            Workspace::Minres(w) => w.kept(),
        };
        kept.map(|(x, _)| x)
    }
}

/// A, M and workspace.
pub(super) enum Engine<A: LinearOperator<Space>> {
    /// In the order of the user's rows.
    Rows(Box<Rows<A>>),
    /// Reordered by wavefront.
    Slices(Box<Slices>),
    /// In dense blocks, in the user's order.
    Blocks(Box<Blocks>),
    /// On the grid that the matrix is of.
    Grid(Box<OnGrid>),
    /// Rows and columns in another order, and in that order any of these.
    Reordered(Box<Reordered>),
}

pub(super) struct Rows<A: LinearOperator<Space>> {
    m: Factor,
    workspace: Workspace<A, Factor>,
}

/// Everything that building an engine needs to know.
pub(super) struct Site<'a, A> {
    pub(super) options: &'a Solver,
    pub(super) space: &'a Space,
    pub(super) a: &'a A,
    pub(super) matrix: &'a Csr<f64>,
    pub(super) method: Method,
    /// The power of two that brings A into range.
    pub(super) scale: f64,
    /// Bytes that are taken already, besides A and vectors.
    pub(super) reserved: u64,
}

impl<A: 'static> Site<'_, A> {
    /// A, where it is a matrix of another pattern than the one that the preconditioner is made from.
    pub(super) fn other_matrix(&self) -> Option<&Csr<f64>> {
        let a = as_matrix(self.a)?;
        let same = Arc::ptr_eq(a.pattern(), self.matrix.pattern()) || a.pattern() == self.matrix.pattern();
        (!same).then_some(a)
    }
}

impl<A> Site<'_, A> {
    /// Entries of A pass through `f32` while they are eliminated; where that is too narrow for them, `f64` is kept, and told.
    fn fits_narrow(&self, kind: Preconditioning, log: &mut Log) -> bool {
        let fits = |v: f64| v == 0.0 || (1.0 / LARGEST_NARROW..LARGEST_NARROW).contains(&v.abs());
        let Some(k) = self.matrix.values().iter().position(|&v| !fits(v)) else { return true };
        if kind.incomplete().is_some() {
            let row = self.matrix.pattern().row_ptr().partition_point(|&first| first <= k) - 1;
            log.recovery.push(Recovery {
                failed: format!("mixed precision: an entry of row {row} is out of the range of f32"),
                row: Some(row),
                value: Some(self.matrix.values()[k]),
                action: "factors in f64".into(),
            });
        }
        false
    }

    /// Bytes that a factor, and a copy of A made for it, may take: the caller's limit, and what the vectors leave of the memory that
    /// there is. Without a limit of the caller's, not out of all proportion to A.
    pub(super) fn limit(&self) -> u64 {
        let Solver { max_bytes, max_memory, .. } = *self.options;
        let left = self.memory().saturating_sub(self.vector_bytes()).saturating_sub(self.reserved);
        let a = self.matrix;
        match (max_bytes, max_memory) {
            (Some(bytes), _) => left.min(bytes),
            (None, Some(_)) => left,
            (None, None) => left.min((PROPORTION * bytes_by_rows(a.nrows(), a.nnz() as u64)).max(SMALL)),
        }
    }

    /// Bytes that the whole solve may take.
    fn memory(&self) -> u64 {
        self.options.max_memory.or_else(super::available_memory).unwrap_or(u64::MAX)
    }

    /// Whether a limit of the caller's on the whole solve leaves room for a copy of A with its factor; by rows there is no copy.
    pub(super) fn has_room_for(&self, bytes: usize) -> bool {
        self.options.max_memory.is_none() || bytes as u64 <= self.limit()
    }

    /// Bytes of the method's workspace, and of the vectors around it.
    pub(super) fn vector_bytes(&self) -> u64 {
        let rows = self.matrix.nrows();
        self.method.workspace_bytes(rows).saturating_add(24 * rows as u64)
    }

    /// `Err(MemoryLimit)` if vectors, what is taken already, and the least that a factor takes, are more than there is.
    pub(super) fn require_room(&self, kind: Preconditioning) -> Result<(), SetupError> {
        let (a, limit) = (self.matrix, self.memory());
        let factor = match kind.incomplete() {
            Some(_) => bytes_by_rows(a.nrows(), a.nnz().saturating_sub(a.nrows()) as u64),
            None => 0,
        };
        let predicted = self.vector_bytes().saturating_add(self.reserved).saturating_add(factor);
        if predicted > limit { Err(SetupError::MemoryLimit { predicted, limit }) } else { Ok(()) }
    }
}

impl<A: LinearOperator<Space> + 'static> Engine<A> {
    /// Analyzes and factors, adding up the seconds; what fails on the way and is recovered from is recorded.
    pub(super) fn new(
        site: &Site<'_, A>,
        kind: Preconditioning,
        log: &mut Log,
    ) -> Result<(Self, Told), SolveError> {
        site.require_room(kind)?;
        match site.reorder(kind, log)? {
            Some(front) => Reordered::build(site, front, kind, log),
            None => Self::in_order(site, kind, log),
        }
    }

    /// The same with rows and columns as they are.
    pub(super) fn in_order(
        site: &Site<'_, A>,
        kind: Preconditioning,
        log: &mut Log,
    ) -> Result<(Self, Told), SolveError> {
        let narrow = site.options.precision == Precision::Mixed && site.fits_narrow(kind, log);
        if let Some(threshold) = kind.threshold() {
            let triangles = threshold.triangles(site, kind, None, log)?;
            return Self::with_triangles(site, kind, triangles, log);
        }
        match log.analyzing(|| site.grid(kind, narrow)).filter(|found| site.has_room_for(found.bytes())) {
            Some(found) if narrow => return OnGrid::build::<f32, A>(site, found, kind, log),
            Some(found) => return OnGrid::build::<f64, A>(site, found, kind, log),
            None => {}
        }
        if let Some(blocks) = log.analyzing(|| site.blocks(kind))? {
            return Blocks::build(site, blocks, kind, log);
        }
        let Some(recipe) = kind.incomplete() else { return Self::diagonal(site, kind, log) };
        let recipe = Incomplete { schedule: site.options.schedule, max_bytes: Some(site.limit()), ..recipe };
        let pattern = log.analyzing(|| recipe.pattern(site.matrix.pattern()))?;
        match log.analyzing(|| site.slices(recipe.form, &pattern))? {
            Ok(found) if narrow => Slices::build::<f32, A>(site, found, recipe.form, kind, log),
            Ok(found) => Slices::build::<f64, A>(site, found, recipe.form, kind, log),
            Err(why) if narrow => Self::rows::<f32>(site, &recipe, &pattern, kind, &why, log),
            Err(why) => Self::rows::<f64>(site, &recipe, &pattern, kind, &why, log),
        }
    }

    /// Factors whose pattern followed the values.
    pub(super) fn with_triangles(
        site: &Site<'_, A>,
        kind: Preconditioning,
        (triangles, shift): (Triangles<f64>, f64),
        log: &mut Log,
    ) -> Result<(Self, Told), SolveError> {
        let values = || triangles.lower.values().iter().chain(triangles.upper.values());
        let narrow = site.options.precision == Precision::Mixed && values().all(|v| v.abs() < LARGEST_NARROW);
        match narrow {
            true => Self::frozen::<f32>(site, kind, triangles, shift, log),
            false => Self::frozen::<f64>(site, kind, triangles, shift, log),
        }
    }

    fn frozen<S: Real>(
        site: &Site<'_, A>,
        kind: Preconditioning,
        triangles: Triangles<f64>,
        shift: f64,
        log: &mut Log,
    ) -> Result<(Self, Told), SolveError> {
        let Site { space, matrix, options, .. } = *site;
        let form = if kind.is_symmetric() { Form::CHOLESKY } else { Form::LU };
        let mut f = log.analyzing(|| {
            IncompleteFactor::<f64, S>::frozen(
                form,
                matrix.pattern(),
                triangles,
                space.threads(),
                options.schedule,
            )
        })?;
        f.set_shift(shift);
        Self::with_factor(site, kind, f, shift, "rows as given: the pattern follows the values".into(), None)
    }

    /// By rows with this factor; `predicted` bytes of it if they were told before.
    fn with_factor<S: Real>(
        site: &Site<'_, A>,
        kind: Preconditioning,
        f: IncompleteFactor<f64, S>,
        shift: f64,
        layout: String,
        predicted: Option<usize>,
    ) -> Result<(Self, Told), SolveError> {
        let Site { space, matrix, method, .. } = *site;
        let (nnz, bytes) = (f.nnz(), f.bytes());
        let (down, up) = f.plans();
        let schedule = Some([down.why().to_owned(), up.why().to_owned()]);
        let m = Factor::new(f);
        let workspace = Workspace::new(method, System { space, a: site.a, m: &m })?;
        let vectors = (method.workspace_bytes(matrix.nrows()) as usize).saturating_add(24 * matrix.nrows());
        let (predicted, held) = (predicted.unwrap_or(bytes) + vectors, bytes + vectors);
        let told =
            Told { kind, nnz, bytes, shift, schedule, layout, ordering: String::new(), predicted, held };
        Ok((Engine::Rows(Box::new(Rows { m, workspace })), told))
    }

    /// No preconditioner.
    pub(super) fn without(space: &Space, a: &A, method: Method) -> Result<(Self, Told), SolveError> {
        let m = Factor::new(Identity::new(a.domain()));
        let workspace = Workspace::new(method, System { space, a, m: &m })?;
        let bytes = (method.workspace_bytes(a.domain()) as usize).saturating_add(16 * a.domain());
        let told = Told {
            kind: Preconditioning::None,
            nnz: 0,
            bytes: 0,
            shift: 0.0,
            schedule: None,
            layout: "rows as given".into(),
            ordering: String::new(),
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
        match kind {
            Preconditioning::None => return Self::without(space, site.a, site.method),
            Preconditioning::Jacobi => {}
            // A kind that nothing above has built must not run without a preconditioner.
            _ => return Err(BackendError::Unsupported { what: "this preconditioner" }.into()),
        }
        let forgiving = log.forgiving;
        let symbolic = log.analyzing(|| Jacobi { forgiving }.analyze(space, matrix))?;
        let f = log.factoring(|| symbolic.factor(space, matrix))?;
        let (bytes, m) = (f.bytes(), Factor::new(f));
        let workspace = Workspace::new(site.method, System { space, a: site.a, m: &m })?;
        let n = matrix.nrows();
        let vectors = (site.method.workspace_bytes(n) as usize).saturating_add(16 * n);
        let told = Told {
            kind,
            nnz: n,
            bytes,
            shift: 0.0,
            schedule: None,
            layout: "rows as given".into(),
            ordering: String::new(),
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
        let symbolic =
            log.analyzing(|| IncompleteSymbolic::on(recipe.form, source, pattern, threads, recipe.schedule))?;
        let mut f: IncompleteFactor<f64, S> = symbolic.allocate();
        let attempt = |shift| {
            f.set_shift(shift);
            f.refactor(space, matrix)
        };
        let shift = log.factor(options.recover, kind, 0.0, attempt)?;
        let memory = Memory::by_rows(pattern, why, size_of::<S>());
        // Sums of columns take Aᵀ and its factor besides.
        let twice = if recipe.form.transposed() { memory.factor + matrix.bytes() } else { 0 };
        Self::with_factor(site, kind, f, shift, memory.layout, Some(memory.factor + twice))
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
            Engine::Slices(slices) => slices.refactor(space, matrix, shift),
            Engine::Blocks(blocks) => blocks.refactor(space, matrix, shift),
            Engine::Grid(grid) => grid.refactor(space, matrix, shift),
            Engine::Reordered(r) => r.refactor(space, matrix, shift),
        }
    }

    /// Another method with the same M.
    pub(super) fn change_method(&mut self, space: &Space, a: &A, method: Method) -> Result<(), SolveError> {
        match self {
            Engine::Rows(r) => r.workspace = Workspace::new(method, System { space, a, m: &r.m })?,
            Engine::Slices(s) => {
                s.workspace = Workspace::new(method, System { space, a: &s.a, m: &s.m })?;
            }
            Engine::Blocks(s) => s.workspace = Workspace::new(method, System { space, a: &s.a, m: &s.m })?,
            Engine::Grid(grid) => grid.change_method(space, method)?,
            Engine::Reordered(r) => r.change_method(space, method)?,
        }
        Ok(())
    }

    /// Before a solve: takes over A's values, which may have changed while M's are kept, b and the guess.
    pub(super) fn begin(&mut self, space: &Space, a: &A, b: &[f64], x: &[f64]) -> Result<(), SolveError> {
        if matches!(self, Engine::Rows(_)) {
            return Ok(());
        }
        crate::space::require_same("x and the columns of A", &x.len(), &b.len())?;
        let a = as_matrix(a).expect("made of a matrix");
        match self {
            Engine::Rows(_) => Ok(()),
            Engine::Slices(slices) => {
                slices.a.set(space, a)?;
                slices.pattern.gather(b, &mut slices.b);
                slices.pattern.gather(x, &mut slices.x);
                Ok(())
            }
            Engine::Blocks(blocks) => Ok(blocks.a.set(space, a)?),
            Engine::Grid(grid) => grid.begin(space, a, b, x),
            Engine::Reordered(r) => r.begin(space, a, b, x),
        }
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
    ) -> Result<Finish<f64>, BackendError> {
        match self {
            Engine::Rows(r) => r.workspace.run(again, System { space, a, m: &r.m }, b, x, stop, observer),
            Engine::Slices(s) => {
                let system = System { space, a: &s.a, m: &s.m };
                let finish = s.workspace.run(again, system, &s.b, &mut s.x, stop, observer)?;
                s.pattern.scatter(&s.x, x);
                Ok(finish)
            }
            Engine::Blocks(s) => {
                s.workspace.run(again, System { space, a: &s.a, m: &s.m }, b, x, stop, observer)
            }
            Engine::Grid(grid) => grid.run(again, space, x, stop, observer),
            Engine::Reordered(r) => r.run(again, space, x, stop, observer),
        }
    }

    /// Whether the matrix is multiplied by a power of two.
    pub(super) fn is_scaled(&self) -> bool {
        matches!(self, Engine::Reordered(r) if r.is_scaled())
    }

    /// Puts the best iterate that the last run left for a worse one into `x`; `false` if there is none.
    pub(super) fn restore_kept(&self, space: &Space, x: &mut [f64]) -> Result<bool, BackendError> {
        match self {
            Engine::Rows(rows) => Ok(copy_kept(rows.workspace.kept(), x)),
            Engine::Blocks(blocks) => Ok(copy_kept(blocks.workspace.kept(), x)),
            Engine::Slices(slices) => {
                let kept = slices.workspace.kept();
                if let Some(kept) = kept {
                    slices.pattern.scatter(kept, x);
                }
                Ok(kept.is_some())
            }
            Engine::Grid(grid) => grid.restore_kept(space, x),
            Engine::Reordered(r) => r.restore_kept(space, x),
        }
    }
}

fn copy_kept(kept: Option<&Vec<f64>>, x: &mut [f64]) -> bool {
    if let Some(kept) = kept {
        x.copy_from_slice(kept);
    }
    kept.is_some()
}

/// The operator as a matrix, if it is one.
pub(super) fn as_matrix<A: 'static>(a: &A) -> Option<&Csr<f64>> {
    (a as &dyn Any).downcast_ref::<Csr<f64>>()
}
