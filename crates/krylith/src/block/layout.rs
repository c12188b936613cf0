//! Systems in dense blocks of a few unknowns each, in the user's order.
//!
//! IC(0) and ILU(0) of a matrix whose natural blocks are all full are block IC(0) and ILU(0): the same factor, with an index for a
//! block instead of one for each of its entries. So these are taken by themselves there.

use super::{
    BlockKind, BlockMatrix, BlockPreconditioner, BlockRecipe, count_blocks, full_block, natural_block,
};
use crate::choice::{Layout, Precision};
use crate::engine::{DynEngine, Matrices, PlacedEngine};
use crate::error::{BackendError, SetupError, SolveError};
use crate::matrix::Pattern;
use crate::operator::DynPreconditioner;
use crate::placement::{AsGiven, Storage};
use crate::plan::StorageKind;
use crate::precond::PrecondSpec;
use crate::precond::registry::Construction;
use crate::precond::{Form, Incomplete, Kind, require_symmetric};
use crate::setup::{
    Attempt, Built, LayoutBuilder, Prospect, SetupContext, SetupRecorder, SetupSummary, Storing,
};
use crate::space::Threads;

type Context<'a> = SetupContext<'a, Threads<f64>>;

/// Dense blocks.
pub(crate) struct InBlocks;

impl LayoutBuilder<Threads<f64>> for InBlocks {
    fn build(
        &self,
        setup: &Context<'_>,
        kind: PrecondSpec,
        recorder: &mut SetupRecorder,
    ) -> Result<Attempt<Threads<f64>>, SolveError> {
        match recorder.analyzing(|| blocks(setup, kind))? {
            Some((block, size)) => build(setup, block, size, kind, recorder),
            None => Ok(Attempt::Refused("there are no full blocks".into())),
        }
    }

    fn name(&self) -> &'static str {
        "blocks"
    }

    fn kind(&self) -> StorageKind {
        StorageKind::Blocks
    }

    fn predict(
        &self,
        setup: &Context<'_>,
        kind: PrecondSpec,
        recorder: &mut SetupRecorder,
    ) -> Result<Prospect, SolveError> {
        let Some((block, size)) = recorder.analyzing(|| blocks(setup, kind))? else {
            return Ok(Prospect::Refuses("there are no full blocks".into()));
        };
        let bytes = Some(predicted_bytes(setup, block, size) as u64 + setup.vector_bytes());
        Ok(Prospect::Takes { layout: describe(size), bytes })
    }
}

fn describe(size: usize) -> String {
    format!("dense blocks of {size} x {size}, rows as given")
}

/// Bytes of the matrices in blocks and of the factor.
fn predicted_bytes(setup: &Context<'_>, block: BlockKind, size: usize) -> usize {
    let other = setup.other_matrix().map_or(0, |a| matrix_bytes(a.pattern(), size));
    (block_bytes(setup.source.pattern(), block, size) + other) as usize
}

/// The blocks to take, if any. Those that were asked for by name, of size 1 included; or those of a scalar factor that is the
/// same in blocks.
fn blocks(setup: &Context<'_>, kind: PrecondSpec) -> Result<Option<(BlockKind, usize)>, SetupError> {
    let is_matrix = setup.a.is_some();
    let pattern = setup.source.pattern();
    let scalar = match kind.construct() {
        Construction::Blocks(kind, size) if is_matrix => {
            if kind.form().is_some_and(|form| form.kind == Kind::Cholesky) {
                require_symmetric(pattern)?;
            }
            return Ok(Some((kind, size.unwrap_or_else(|| natural_block(pattern).size))));
        }
        Construction::Blocks(..) => {
            let what = "blocks for an A that is not a matrix";
            return Err(BackendError::Unsupported { what }.into());
        }
        Construction::Incomplete(Incomplete { form: Form::CHOLESKY, level: 0, .. }) => BlockKind::Ic0,
        Construction::Incomplete(Incomplete { form: Form::LU, level: 0, .. }) => BlockKind::Ilu0,
        _ => return Ok(None),
    };
    let plain = setup.options.layout != Layout::Rows && setup.options.precision == Precision::F64;
    if !plain || !is_matrix {
        return Ok(None);
    }
    let fits = |&size: &usize| setup.has_room_for(predicted_bytes(setup, scalar, size));
    Ok(full_block(pattern).filter(fits).map(|size| (scalar, size)))
}

fn build(
    setup: &Context<'_>,
    block: BlockKind,
    size: usize,
    kind: PrecondSpec,
    recorder: &mut SetupRecorder,
) -> Result<Attempt<Threads<f64>>, SolveError> {
    let SetupContext { space, options, source, .. } = *setup;
    let other = setup.other_matrix();
    let predicted = predicted_bytes(setup, block, size);
    setup.require_within_limit(predicted)?;
    let recipe = BlockRecipe { schedule: options.schedule, ..BlockRecipe::new(block) };
    let (matrices, mut m) = recorder.analyzing(|| {
        let source = BlockMatrix::new(space, source, size)?;
        let m = BlockPreconditioner::new(space, &source, &recipe)?;
        let other = other.map(|a| BlockMatrix::new(space, a, size)).transpose()?;
        Ok::<_, SetupError>((Matrices::new(source, other), m))
    })?;
    let shift = recorder.factor_with(space, (options.recover, kind), matrices.source(), &mut m)?;
    let vectors = setup.vector_bytes() as usize;
    let summary = SetupSummary {
        kind,
        nnz: m.nnz(),
        bytes: m.bytes(),
        shift,
        schedule: Some(m.schedule(space.threads())),
        layout: describe(size),
        ordering: String::new(),
        predicted: predicted + vectors,
        held: matrices.bytes(Storage::bytes) + m.bytes() + vectors,
        storing: Storing::BY_ROWS,
    };
    let placement = Box::new(AsGiven(setup.layout));
    let engine = PlacedEngine::new(placement, matrices, DynPreconditioner::new(m));
    Ok(Attempt::Built(Built::Placed(DynEngine::new(engine)), summary))
}

/// Bytes of a matrix in blocks.
pub(crate) fn matrix_bytes(pattern: &Pattern, size: usize) -> u64 {
    let (rows, blocks) = (pattern.nrows() as u64 / size as u64, count_blocks(pattern, size) as u64);
    blocks * (8 * (size * size) as u64 + 4) + 8 * (rows + 1)
}

/// Bytes of A in blocks, and of a factor on its pattern: the off-diagonal blocks with an index each, two row pointers and the
/// diagonal.
fn block_bytes(pattern: &Pattern, block: BlockKind, size: usize) -> u64 {
    let (rows, blocks) = (pattern.nrows() as u64 / size as u64, count_blocks(pattern, size) as u64);
    let numbers = 8 * (size * size) as u64;
    let a = matrix_bytes(pattern, size);
    let factor = match block {
        BlockKind::Jacobi => 0,
        _ => blocks.saturating_sub(rows) * (numbers + 4) + 16 * (rows + 1),
    };
    a + rows * numbers + factor
}
