//! Systems on a structured grid that was found inside the matrix.
//!
//! Taken wherever the matrix is that of a grid and the factor one that `structured` has: the preconditioner is the same as by rows,
//! up to rounding. Several unknowns per point need whole blocks, where scalar IC(0) and ILU(0) and those of blocks are one; a block
//! factor asked for by name takes them as they are. Scalar DIC, DILU and SSOR are not those of blocks, and left to slices and rows.

use super::{StencilFactor, StencilMatrix, StencilSymbolic, Structure};
use crate::choice::Layout;
use crate::engine::{DynEngine, Matrices, PlacedEngine};
use crate::error::{SetupError, SolveError};
use crate::matrix::Pattern;
use crate::operator::DynPreconditioner;
use crate::placement::{Placed, Storage};
use crate::plan::StorageKind;
use crate::precond::PrecondSpec;
use crate::precond::registry::Construction;
use crate::precond::{Form, Kind, is_symmetric, require_diagonal};
use crate::setup::{
    Attempt, Built, LayoutBuilder, Memory, Prospect, SetupContext, SetupRecorder, SetupSummary, Storing,
};
use crate::simd::StorageScalar;
use crate::space::Threads;
use std::sync::Arc;

type Context<'a> = SetupContext<'a, Threads<f64>>;

/// Places that a layout may have for each point. By slices an entry takes 12 bytes with its index, on the grid 8.
const MOST_PADDING: f64 = 1.5;

/// The same for several unknowns per point, where blocks do with hardly any indices.
const MOST_PADDING_OF_BLOCKS: f64 = 1.15;

/// The grid that the matrix is of.
pub(crate) struct OnGrid;

impl LayoutBuilder<Threads<f64>> for OnGrid {
    fn build(
        &self,
        setup: &Context<'_>,
        kind: PrecondSpec,
        recorder: &mut SetupRecorder,
    ) -> Result<Attempt<Threads<f64>>, SolveError> {
        match recorder.analyzing(|| find(setup, kind)) {
            Ok(found) if setup.narrow => build::<f32>(setup, found, kind, recorder),
            Ok(found) => build::<f64>(setup, found, kind, recorder),
            Err(reason) => Ok(Attempt::Refused(reason)),
        }
    }

    fn name(&self) -> &'static str {
        "grid"
    }

    fn kind(&self) -> StorageKind {
        StorageKind::Grid
    }

    fn predict(
        &self,
        setup: &Context<'_>,
        kind: PrecondSpec,
        recorder: &mut SetupRecorder,
    ) -> Result<Prospect, SolveError> {
        let found = match recorder.analyzing(|| find(setup, kind)) {
            Ok(found) => found,
            Err(reason) => return Ok(Prospect::Refuses(reason)),
        };
        let memory = if setup.narrow { found.memory::<f32>()? } else { found.memory::<f64>()? };
        Ok(memory.prospect(setup.method))
    }
}

/// The grid in the matrix, if there is one and this preconditioner can be had there.
fn find(setup: &Context<'_>, kind: PrecondSpec) -> Result<GridCandidate, String> {
    if setup.options.layout != Layout::Auto {
        return Err("as asked".into());
    }
    if setup.a.is_none() {
        return Err("A is not a matrix".into());
    }
    let wanted = Wanted::of(kind).ok_or("this preconditioner has no form on grids")?;
    let wanted = Wanted { narrow: setup.narrow, ..wanted };
    let other = setup.other_matrix().map(|a| &**a.pattern());
    let structure = setup.findings.structure(setup.source.pattern()).map_err(|reason| reason.to_string())?;
    let found = GridCandidate::find((setup.source.pattern(), structure), other, wanted)?;
    match setup.has_room_for(found.bytes()) {
        true => Ok(found),
        false => Err("a copy of A on the grid would exceed the limit of memory".into()),
    }
}

/// A factor that is to be had on a grid.
#[derive(Clone, Copy)]
struct Wanted {
    form: Form,
    level: usize,
    /// The size of the blocks that a block factor was asked for, `None` inside for any.
    blocks: Option<Option<usize>>,
    narrow: bool,
}

impl Wanted {
    fn of(kind: PrecondSpec) -> Option<Self> {
        let (form, level, blocks) = match kind.construct() {
            Construction::Blocks(block, size) => (block.form()?, 0, Some(size)),
            Construction::Incomplete(recipe) => (recipe.form, recipe.level, None),
            _ => return None,
        };
        Some(Wanted { form, level, blocks, narrow: false })
    }
}

/// A grid, and what is factored there.
struct GridCandidate {
    structure: Structure,
    /// Of the matrix that is factored, without coefficients yet.
    source: StencilMatrix,
    /// Of A, if that is another one.
    other: Option<StencilMatrix>,
    form: Form,
    level: usize,
}

impl GridCandidate {
    /// The grid of the matrix that is factored; `other` is the pattern of A, if that is another one.
    fn find(
        (pattern, structure): (&Pattern, Structure),
        other: Option<&Pattern>,
        wanted: Wanted,
    ) -> Result<Self, String> {
        let Wanted { form, level, blocks, narrow } = wanted;
        if form.transposed() {
            return Err("sums of columns are kept".into());
        }
        let dof = structure.dof;
        let whole = structure.fullness >= 1.0;
        let fits = match blocks {
            Some(size) => size.unwrap_or(dof) == dof && (dof > 1 || whole) && !narrow,
            None if dof > 1 => {
                whole && level == 0 && !narrow && form.omega() == 0.0 && !form.keeps_triangles()
            }
            None => whole || level == 0,
        };
        // By rows these are errors.
        let unfit = !whole
            && (require_diagonal(pattern).is_err() || form.kind == Kind::Cholesky && !is_symmetric(pattern));
        if !fits || unfit {
            return Err(format!("on the grid of {structure} this factor is another one"));
        }
        let filled = structure.stencil.with_fill(level).ok_or("the fill has too many offsets")?;
        let (grid, mut stencils) = (structure.grid, vec![&structure.stencil, &filled]);
        let of_a =
            other.map(Structure::detect).transpose().map_err(|reason| format!("A itself: {reason}"))?;
        if let Some(of_a) = &of_a {
            if of_a.grid != grid || of_a.dof != dof {
                return Err("A is on another grid than the matrix of its preconditioner".into());
            }
            stencils.push(&of_a.stencil);
        }
        let words = |error: SetupError| error.to_string();
        let layout = StencilMatrix::layout_for(grid, &stencils, dof).map_err(words)?;
        let source = StencilMatrix::zeros(&layout, &structure.stencil, dof).map_err(words)?;
        let other = of_a.map(|of_a| StencilMatrix::zeros(&layout, &of_a.stencil, dof));
        let other = other.transpose().map_err(words)?;
        let most = if dof == 1 { MOST_PADDING } else { MOST_PADDING_OF_BLOCKS };
        match source.padding() <= most {
            true => Ok(GridCandidate { structure, source, other, form, level }),
            false => Err(format!("the grid needs {:.2} places per point, at most {most}", source.padding())),
        }
    }

    /// Bytes of A on the grid and of its factor, at most.
    fn bytes(&self) -> usize {
        self.memory::<f64>().map_or(usize::MAX, |memory| memory.copy + memory.factor)
    }

    /// What it will take, if every entry is a number of its own.
    fn memory<S: StorageScalar>(&self) -> Result<Memory, SetupError> {
        let symbolic = StencilSymbolic::new(&self.source, self.form, self.level, 1)?;
        let factor = symbolic.predicted_bytes::<S>();
        let other = self.other.as_ref().map_or(0, StencilMatrix::predicted_bytes);
        let rows = self.source.grid().points() * self.source.unknowns();
        let copy = self.source.predicted_bytes() + other;
        let layout = format!("structured: {}", self.structure);
        Ok(Memory::placed(layout, rows, self.source.positions(), copy, factor))
    }
}

/// What ILU(0) of a matrix with this pattern takes on a grid, if it is that of one.
pub(crate) fn predict_memory(pattern: &Pattern) -> Option<Memory> {
    let wanted = Wanted { form: Form::LU, level: 0, blocks: None, narrow: false };
    let structure = Structure::detect(pattern).ok()?;
    GridCandidate::find((pattern, structure), None, wanted).ok()?.memory::<f64>().ok()
}

fn build<S: StorageScalar>(
    setup: &Context<'_>,
    found: GridCandidate,
    kind: PrecondSpec,
    recorder: &mut SetupRecorder,
) -> Result<Attempt<Threads<f64>>, SolveError> {
    let SetupContext { space, options, method, .. } = *setup;
    let memory = found.memory::<S>()?;
    let GridCandidate { structure, mut source, mut other, form, level } = found;
    recorder.factoring(|| {
        if let (Some(other), Some(a)) = (&mut other, setup.other_matrix()) {
            other.set(space, a)?;
        }
        source.set(space, setup.source)
    })?;
    let mut m = recorder.analyzing(|| {
        setup.require_within_limit(memory.factor)?;
        StencilSymbolic::new(&source, form, level, space.threads()).and_then(|s| s.allocate::<S>())
    })?;
    let shift = recorder.factor_with(space, (options.recover, kind), &source, &mut m)?;
    let matrices = Matrices::new(source, other);
    let layout = describe(&structure, &matrices, (&m, setup.is_from_a()), level);
    let (nnz, bytes, vectors) = (m.nnz(), m.bytes(), memory.vectors(method));
    let schedule = m.schedule(space.threads());
    let without_product = m.shares_off_diagonals() && matrices.are_one() && setup.is_from_a();
    let constant = matrices.a.is_constant();
    let constant_factor = constant && m.shares_off_diagonals();
    let held = matrices.bytes(Storage::bytes) + bytes + vectors;
    let placement = Box::new(Placed(Arc::new(matrices.a.order())));
    let engine = PlacedEngine::new(placement, matrices, DynPreconditioner::new(m));
    let summary = SetupSummary {
        kind,
        nnz,
        bytes,
        shift,
        schedule: Some(schedule),
        layout,
        ordering: String::new(),
        predicted: memory.copy + memory.factor + vectors,
        held,
        storing: Storing { without_product, constant, constant_factor, ..Storing::BY_ROWS },
    };
    Ok(Attempt::Built(Built::Placed(DynEngine::new(engine)), summary))
}

fn describe<S: StorageScalar>(
    structure: &Structure,
    matrices: &Matrices<StencilMatrix>,
    (m, is_from_a): (&StencilFactor<S>, bool),
    level: usize,
) -> String {
    format!(
        "structured: {structure}{}{}{}",
        if matrices.a.is_constant() { ", constant coefficients" } else { "" },
        if level > 0 { format!(", factor on {}", m.stencil()) } else { String::new() },
        match (m.shares_off_diagonals(), matrices.are_one() && is_from_a) {
            (true, true) => ", off-diagonals of the factor are those of A",
            (true, false) => ", off-diagonals of the factor are those of the matrix it is made from",
            (false, _) => "",
        },
    )
}
