//! A system on a structured grid that was found inside the matrix.
//!
//! Taken wherever the matrix is that of a grid and the factor one that `structured` has: the preconditioner is the same as by rows,
//! up to rounding. Several unknowns a point need whole blocks, where the scalar factor and that of blocks are one; a block factor
//! asked for by name takes them as they are.

use super::choice::{Layout, Method, Preconditioning};
use super::either::{Either, either};
use super::engine::{Engine, Site, Told, Workspace, as_matrix};
use super::log::Log;
use super::memory::Memory;
use crate::block::BlockKind;
use crate::error::{BackendError, SetupError, SolveError};
use crate::krylov::{Finish, System};
use crate::matrix::{Csr, Pattern};
use crate::observe::Observer;
use crate::operator::LinearOperator;
use crate::precond::{Form, Kind, is_symmetric, require_diagonal};
use crate::sliced::Stored;
use crate::space::{Space as _, Threads};
use crate::stop::StoppingCriterion;
use crate::structured::{EisenstatCg, StencilFactor, StencilMatrix, Structure};

type Space = Threads<f64>;

/// Places that a layout may have for each point. By slices an entry takes 12 bytes with its index, on the grid 8.
const MOST_PADDING: f64 = 1.5;

/// The same for several unknowns a point, where blocks do with hardly any indices.
const MOST_PADDING_OF_BLOCKS: f64 = 1.15;

/// A, M and workspace on the grid.
pub(super) struct OnGrid {
    pub(super) a: StencilMatrix,
    /// What the factor is made from, unless it has the pattern of A.
    source: Option<StencilMatrix>,
    pub(super) m: AnyStencil,
    pub(super) workspace: Iterating,
    pub(super) b: Vec<f64>,
    pub(super) x: Vec<f64>,
    /// Eisenstat's trick was left for a factor that is kept while A changes.
    left_trick: bool,
}

/// A method with its workspace: where the factor has A's triangles, conjugate gradients without a product.
pub(super) enum Iterating {
    Usual(Box<Workspace<StencilMatrix, AnyStencil>>),
    Eisenstat(Box<EisenstatCg>),
}

impl Iterating {
    /// `own`: the factor is made from A.
    fn new(
        method: Method,
        system: System<'_, Space, StencilMatrix, AnyStencil>,
        own: bool,
    ) -> Result<Self, SolveError> {
        if let (true, Method::Cg, Either::Wide(m)) = (own, method, system.m)
            && let Some(built) = EisenstatCg::new(system.space, system.a, m)
        {
            return Ok(Iterating::Eisenstat(Box::new(built?)));
        }
        Ok(Iterating::Usual(Box::new(Workspace::new(method, system)?)))
    }

    fn bytes_besides_vectors(&self) -> usize {
        match self {
            Iterating::Usual(_) => 0,
            Iterating::Eisenstat(cg) => cg.bytes(),
        }
    }
}

/// A grid, and what is factored there.
pub(super) struct Found {
    structure: Structure,
    /// Of the matrix that is factored, without coefficients yet.
    source: StencilMatrix,
    /// Of A, if that is another one.
    other: Option<StencilMatrix>,
    form: Form,
    level: usize,
}

impl<A: 'static> Site<'_, A> {
    /// The grid in the matrix, if there is one and this preconditioner can be had there.
    pub(super) fn grid(&self, kind: Preconditioning, narrow: bool) -> Option<Found> {
        if self.options.layout != Layout::Auto {
            return None;
        }
        as_matrix(self.a)?;
        let (form, level, size) = match kind {
            Preconditioning::Block(BlockKind::Ic0, size) => (Form::CHOLESKY, 0, Some(size)),
            Preconditioning::Block(BlockKind::Ilu0, size) => (Form::LU, 0, Some(size)),
            _ => {
                let recipe = kind.incomplete()?;
                (recipe.form, recipe.level, None)
            }
        };
        let other = self.other_matrix().map(|a| &**a.pattern());
        Found::new(self.matrix.pattern(), other, form, level, size, narrow)
    }
}

impl Found {
    /// The grid of the matrix that is factored; `other` is the pattern of A, if that is another one. `size` is that of the blocks a
    /// block factor was asked for, `None` inside for any.
    pub(super) fn new(
        pattern: &Pattern,
        other: Option<&Pattern>,
        form: Form,
        level: usize,
        size: Option<Option<usize>>,
        narrow: bool,
    ) -> Option<Self> {
        if form.transposed() {
            return None;
        }
        let structure = Structure::detect(pattern).ok()?;
        let dof = structure.dof;
        let whole = structure.fullness >= 1.0;
        let fits = match size {
            Some(size) => size.unwrap_or(dof) == dof && (dof > 1 || whole) && !narrow,
            None if dof > 1 => whole && level == 0 && !narrow && form.omega() == 0.0,
            None => whole || level == 0,
        };
        // By rows these are told as errors.
        let unfit = !whole
            && (require_diagonal(pattern).is_err() || form.kind == Kind::Cholesky && !is_symmetric(pattern));
        if !fits || unfit {
            return None;
        }
        let filled = structure.stencil.with_fill(level)?;
        let (grid, mut stencils) = (structure.grid, vec![&structure.stencil, &filled]);
        let of_a = other.map(Structure::detect).transpose().ok()?;
        if let Some(of_a) = &of_a {
            if of_a.grid != grid || of_a.dof != dof {
                return None;
            }
            stencils.push(&of_a.stencil);
        }
        let layout = StencilMatrix::layout_for(grid, &stencils, dof).ok()?;
        let source = StencilMatrix::zeros(&layout, &structure.stencil, dof).ok()?;
        let other = of_a.map(|of_a| StencilMatrix::zeros(&layout, &of_a.stencil, dof)).transpose().ok()?;
        let most = if dof == 1 { MOST_PADDING } else { MOST_PADDING_OF_BLOCKS };
        (source.padding() <= most).then_some(Found { structure, source, other, form, level })
    }

    /// Bytes of A on the grid and of its factor, at most.
    pub(super) fn bytes(&self) -> usize {
        self.memory::<f64>().map_or(usize::MAX, |memory| memory.copy + memory.factor)
    }

    /// What it will take, if every entry is a number of its own.
    pub(super) fn memory<S: Stored>(&self) -> Result<Memory, SetupError> {
        let factor = StencilFactor::<S>::foresee(&self.source, self.form, self.level)?;
        let mut memory = Memory::on_grid(format!("structured: {}", self.structure), &self.source, factor);
        memory.copy += self.other.as_ref().map_or(0, StencilMatrix::foreseen_bytes);
        Ok(memory)
    }
}

impl OnGrid {
    pub(super) fn build<S: Stored, A: LinearOperator<Space> + 'static>(
        site: &Site<'_, A>,
        found: Found,
        kind: Preconditioning,
        log: &mut Log,
    ) -> Result<(Engine<A>, Told), SolveError>
    where
        AnyStencil: From<StencilFactor<S>>,
    {
        let Site { space, options, matrix, method, .. } = *site;
        let memory = found.memory::<S>()?;
        let Found { structure, mut source, mut other, form, level } = found;
        log.factoring(|| {
            if let (Some(other), Some(a)) = (&mut other, site.other_matrix()) {
                other.set(space, a)?;
            }
            source.set(space, matrix)
        })?;
        let mut factor = log.analyzing(|| match (memory.factor as u64, site.limit()) {
            (predicted, limit) if predicted > limit => Err(SetupError::MemoryLimit { predicted, limit }),
            _ => StencilFactor::<S>::new(&source, form, level, space.threads()),
        })?;
        let shift = log.factor(options.recover, kind, 0.0, |shift| {
            factor.set_shift(shift);
            factor.refactor(space, &source)
        })?;
        let (a, source) = match other {
            Some(other) => (other, Some(source)),
            None => (source, None),
        };
        let mut layout = format!(
            "structured: {structure}{}{}{}",
            if a.is_constant() { ", constant coefficients" } else { "" },
            if level > 0 { format!(", factor on {}", factor.stencil()) } else { String::new() },
            match (factor.shares_off_diagonals(), &source) {
                (true, None) => ", off-diagonals of the factor are those of A",
                (true, Some(_)) => ", off-diagonals of the factor are those of the matrix it is made from",
                (false, _) => "",
            },
        );
        let (nnz, bytes) = (factor.nnz(), factor.bytes());
        let m = AnyStencil::from(factor);
        let n = a.positions();
        let workspace = Iterating::new(method, System { space, a: &a, m: &m }, source.is_none())?;
        if matches!(workspace, Iterating::Eisenstat(_)) {
            layout.push_str(", Eisenstat's trick");
        }
        let (b, x) = (space.zeros(&n)?, space.zeros(&n)?);
        let vectors = memory.vectors(method);
        let told = Told {
            kind,
            nnz,
            bytes,
            shift,
            schedule: Some([a.describe_schedule(space.threads()), a.describe_schedule(space.threads())]),
            layout,
            ordering: String::new(),
            predicted: memory.copy + memory.factor + vectors,
            held: a.bytes()
                + source.as_ref().map_or(0, StencilMatrix::bytes)
                + bytes
                + workspace.bytes_besides_vectors()
                + vectors,
        };
        Ok((Engine::Grid(Box::new(OnGrid { a, source, m, workspace, b, x, left_trick: false })), told))
    }

    pub(super) fn refactor(
        &mut self,
        space: &Space,
        matrix: &Csr<f64>,
        shift: f64,
    ) -> Result<(), SetupError> {
        let from = self.source.as_mut().unwrap_or(&mut self.a);
        from.require(matrix)?;
        self.m.release();
        from.set(space, matrix)?;
        self.m.refactor(space, from, shift)?;
        if let (true, Either::Wide(m)) = (self.left_trick, &self.m)
            && let Some(built) = EisenstatCg::new(space, &self.a, m)
        {
            self.workspace = Iterating::Eisenstat(Box::new(built?));
            self.left_trick = false;
        }
        Ok(())
    }

    /// Puts the best iterate that the last run left for a worse one into `x`; `false` if there is none.
    pub(super) fn restore_kept(&self, space: &Space, x: &mut [f64]) -> Result<bool, BackendError> {
        let kept = match &self.workspace {
            Iterating::Usual(w) => w.kept(),
            Iterating::Eisenstat(cg) => cg.kept().map(|(x, _)| x),
        };
        if let Some(kept) = kept {
            self.a.scatter(space, kept, x)?;
        }
        Ok(kept.is_some())
    }

    /// Another method with the same M.
    pub(super) fn change_method(&mut self, space: &Space, method: Method) -> Result<(), SolveError> {
        let own = self.source.is_none();
        self.workspace = Iterating::new(method, System { space, a: &self.a, m: &self.m }, own)?;
        self.left_trick = false;
        Ok(())
    }

    /// Before a solve: takes over A's values, which may have changed while M's are kept, b and the guess.
    pub(super) fn begin(
        &mut self,
        space: &Space,
        a: &Csr<f64>,
        b: &[f64],
        x: &[f64],
    ) -> Result<(), SolveError> {
        self.a.set(space, a)?;
        self.leave_trick(space)?;
        self.a.gather(space, b, &mut self.b)?;
        self.a.gather(space, x, &mut self.x)?;
        Ok(())
    }

    /// With a factor that is kept while A changes, M has other triangles than A: the usual way until the next factor.
    fn leave_trick(&mut self, space: &Space) -> Result<(), SolveError> {
        if let (Iterating::Eisenstat(_), Either::Wide(m)) = (&self.workspace, &self.m)
            && !m.has_triangles_of(&self.a)
        {
            let system = System { space, a: &self.a, m: &self.m };
            self.workspace = Iterating::Usual(Box::new(Workspace::new(Method::Cg, system)?));
            self.left_trick = true;
        }
        Ok(())
    }

    /// Runs the method; `again` after the residual was found to have drifted.
    pub(super) fn run(
        &mut self,
        again: bool,
        space: &Space,
        x: &mut [f64],
        stop: &mut impl StoppingCriterion<f64>,
        observer: &mut impl Observer<f64>,
    ) -> Result<Finish<f64>, BackendError> {
        let system = System { space, a: &self.a, m: &self.m };
        let finish = match &mut self.workspace {
            Iterating::Usual(w) => w.run(again, system, &self.b, &mut self.x, stop, observer)?,
            Iterating::Eisenstat(cg) => {
                let Either::Wide(m) = &self.m else { unreachable!("Eisenstat's trick is for a wide factor") };
                cg.solve((space, &self.a, m), &self.b, &mut self.x, stop, observer)?
            }
        };
        self.a.scatter(space, &self.x, x)?;
        Ok(finish)
    }
}

/// A factor on a grid, wide or narrow.
pub(super) type AnyStencil = Either<StencilFactor<f64>, StencilFactor<f32>>;

impl AnyStencil {
    fn release(&mut self) {
        either!(self, m => m.release());
    }

    fn refactor(&mut self, space: &Space, a: &StencilMatrix, shift: f64) -> Result<(), SetupError> {
        either!(self, m => {
            m.set_shift(shift);
            m.refactor(space, a)
        })
    }
}

impl From<StencilFactor<f64>> for AnyStencil {
    fn from(m: StencilFactor<f64>) -> Self {
        Either::Wide(m)
    }
}

impl From<StencilFactor<f32>> for AnyStencil {
    fn from(m: StencilFactor<f32>) -> Self {
        Either::Narrow(m)
    }
}
