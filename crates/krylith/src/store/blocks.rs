//! The store of systems in dense blocks of a few unknowns each, in the order of A.
//!
//! IC(0) and ILU(0) of a matrix whose natural blocks are all full are block IC(0) and ILU(0): the same factor, with an index for a
//! block instead of one for each of its entries. So these are taken by themselves there.

use crate::block::{
    BlockKind, BlockMatrix, BlockPreconditioner, BlockRecipe, count_blocks, full_block, natural_block,
};
use crate::elimination::{Form, Incomplete, Kind, require_symmetric};
use crate::error::{BackendError, SetupError, SolveError};
use crate::matrix::{Csr, Pattern};
use crate::options::{Layout, Precision, StorageKind};
use crate::placement::{AsGiven, KeptMatrix, SharedPlacement};
use crate::plan::Outlook;
use crate::setup::{Memory, SetupContext, SetupRecorder};
use crate::space::Threads;
use crate::store::{FindStore, Found, Made, Needs, OverStore, Request, Role, Store, no_sweeps};
use std::sync::Arc;

type Context<'a> = SetupContext<'a, Threads<f64>>;

/// Dense blocks.
pub(crate) struct InBlocks;

/// Dense blocks of a size, and the factor of them that was needed.
struct BlockStore {
    size: usize,
    factor: Option<BlockKind>,
    rows: usize,
    memory: Memory,
}

impl FindStore<Threads<f64>> for InBlocks {
    fn name(&self) -> &'static str {
        "blocks"
    }

    fn kind(&self) -> StorageKind {
        StorageKind::Blocks
    }

    fn is_likely(&self, outlook: &Outlook<'_>) -> bool {
        let full = outlook.mesh.unknowns() > 1 && outlook.precision == Precision::F64;
        outlook.layout != Layout::Rows && outlook.level == Some(0) && full
    }

    fn find(
        &self,
        setup: &Context<'_>,
        request: &Request<'_>,
        recorder: &mut SetupRecorder,
    ) -> Result<Found<Threads<f64>>, SolveError> {
        Ok(match recorder.analyzing(|| find(setup, &request.needs))? {
            Ok(store) => Found::Store(Box::new(store)),
            Err(reason) => Found::Refused(reason),
        })
    }
}

/// The blocks to take, if any, or why not. Those that were asked for by name, of size 1 included; or those of a scalar factor that is the
/// same in blocks, and for matrices that are only multiplied by.
fn find(setup: &Context<'_>, needs: &Needs<'_>) -> Result<Result<BlockStore, String>, SetupError> {
    let is_matrix = setup.a.is_some();
    let pattern = setup.source.pattern();
    let no = |reason: &str| Ok(Err(reason.into()));
    let factor = match *needs {
        Needs::Blocks(kind, size) if is_matrix => {
            if kind.form().is_some_and(|form| form.kind == Kind::Cholesky) {
                require_symmetric(pattern)?;
            }
            let size = size.unwrap_or_else(|| natural_block(pattern).size);
            return Ok(Ok(BlockStore::new(setup, size, Some(kind), needs)));
        }
        Needs::Blocks(..) => {
            let what = "blocks for an A that is not a matrix";
            return Err(BackendError::Unsupported { what }.into());
        }
        Needs::Triangles(Incomplete { form: Form::CHOLESKY, level: 0, .. }) => Some(BlockKind::Ic0),
        Needs::Triangles(Incomplete { form: Form::LU, level: 0, .. }) => Some(BlockKind::Ilu0),
        Needs::Triangles(_) => return no("there are no full blocks"),
        Needs::Products(products) if products.narrow => return no("blocks are in f64 only"),
        Needs::Products(_) | Needs::Nothing => None,
        Needs::OrderOfA => return no("the preconditioner is applied in the order of A"),
    };
    let is_narrow = factor.is_some() && setup.options.precision != Precision::F64;
    if setup.options.layout == Layout::Rows || is_narrow || !is_matrix {
        return no("there are no full blocks");
    }
    let Some(size) = full_block(pattern) else { return no("there are no full blocks") };
    let store = BlockStore::new(setup, size, factor, needs);
    match setup.has_room_for(store.memory.copy + store.memory.factor) {
        true => Ok(Ok(store)),
        false => no("there are no full blocks that there is room for"),
    }
}

impl BlockStore {
    fn new(setup: &Context<'_>, size: usize, factor: Option<BlockKind>, needs: &Needs<'_>) -> Self {
        let pattern = setup.source.pattern();
        let other = setup.other_matrix().map_or(0, |a| matrix_bytes(a.pattern(), size));
        let products = match needs {
            Needs::Products(products) => {
                products.matrices.map(|a| matrix_bytes(a.pattern(), size)).iter().sum()
            }
            _ => 0,
        };
        let copy = matrix_bytes(pattern, size) + other;
        let bytes = factor.map_or(0, |block| factor_bytes(pattern, block, size)) + products;
        let layout = format!("dense blocks of {size} x {size}, rows as given");
        let memory = Memory::in_order(layout, pattern.nrows(), copy as usize, bytes as usize);
        BlockStore { size, factor, rows: pattern.nrows(), memory }
    }
}

impl Store<Threads<f64>> for BlockStore {
    fn kind(&self) -> StorageKind {
        StorageKind::Blocks
    }

    fn memory(&self) -> Memory {
        self.memory.clone()
    }

    fn placement(&self) -> Option<SharedPlacement<Threads<f64>>> {
        Some(Arc::new(AsGiven(self.rows)))
    }

    fn keep(
        &self,
        setup: &Context<'_>,
        _: Role,
        matrix: &Csr<f64>,
        recorder: &mut SetupRecorder,
    ) -> Result<KeptMatrix<Threads<f64>>, SetupError> {
        if self.factor.is_some() {
            setup.require_within_limit(self.memory.copy + self.memory.factor)?;
        }
        let kept = recorder.analyzing(|| BlockMatrix::new(setup.space, matrix, self.size))?;
        Ok(KeptMatrix::new(kept))
    }

    fn has_sweeps(&self) -> bool {
        self.factor.is_some()
    }

    fn triangles(
        &self,
        setup: &Context<'_>,
        request: &Request<'_>,
        source: Option<&KeptMatrix<Threads<f64>>>,
        recorder: &mut SetupRecorder,
    ) -> Result<Made<Threads<f64>>, SolveError> {
        let source = source.and_then(KeptMatrix::get::<BlockMatrix>);
        let (Some(source), Some(block)) = (source, self.factor) else { return Err(no_sweeps()) };
        let SetupContext { space, options, .. } = *setup;
        let recipe = BlockRecipe { schedule: options.schedule, ..BlockRecipe::new(block) };
        let mut m = recorder.analyzing(|| BlockPreconditioner::new(space, source, &recipe))?;
        let shift = recorder.factor_with(space, setup.attempts(request.kind), source, &mut m)?;
        let (nnz, bytes, schedule) = (m.nnz(), m.bytes(), Some(m.schedule(space.threads())));
        Ok(Made { shift, schedule, ..Made::new(OverStore::new::<BlockMatrix>(m), nnz, bytes) })
    }

    fn adopt(
        &self,
        setup: &Context<'_>,
        made: Made<Threads<f64>>,
        _: &mut SetupRecorder,
    ) -> Result<Made<Threads<f64>>, SolveError> {
        Ok(made.placed(setup.space, self.placement())?)
    }
}

/// Bytes of a matrix in blocks.
fn matrix_bytes(pattern: &Pattern, size: usize) -> u64 {
    let (rows, blocks) = (pattern.nrows() as u64 / size as u64, count_blocks(pattern, size) as u64);
    blocks * (8 * (size * size) as u64 + 4) + 8 * (rows + 1)
}

/// Bytes of a factor on a pattern: the off-diagonal blocks with an index each, two row pointers and the diagonal.
fn factor_bytes(pattern: &Pattern, block: BlockKind, size: usize) -> u64 {
    let (rows, blocks) = (pattern.nrows() as u64 / size as u64, count_blocks(pattern, size) as u64);
    let numbers = 8 * (size * size) as u64;
    let off_diagonal = match block {
        BlockKind::Jacobi => 0,
        _ => blocks.saturating_sub(rows) * (numbers + 4) + 16 * (rows + 1),
    };
    off_diagonal + rows * numbers
}
