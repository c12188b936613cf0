//! A system in dense blocks of a few unknowns each, in the user's order.
//!
//! IC(0) and ILU(0) of a matrix whose natural blocks are all full are block IC(0) and ILU(0): the same factor, with an index for a
//! block instead of one for each of its entries. So these are taken by themselves there.

use super::choice::{Layout, Precision, Preconditioning};
use super::engine::{Engine, Site, Told, Workspace, as_matrix};
use super::log::Log;
use crate::block::{
    BlockKind, BlockMatrix, BlockPreconditioner, BlockRecipe, count_blocks, full_block, natural_block,
};
use crate::error::{BackendError, SetupError, SolveError};
use crate::krylov::System;
use crate::matrix::{Csr, Pattern};
use crate::operator::LinearOperator;
use crate::space::Threads;

type Space = Threads<f64>;

/// A, M and workspace in blocks.
pub(super) struct Blocks {
    pub(super) a: BlockMatrix,
    /// What the factor is made from, unless it has the pattern of A.
    source: Option<BlockMatrix>,
    pub(super) m: BlockPreconditioner,
    pub(super) workspace: Workspace<BlockMatrix, BlockPreconditioner>,
}

impl<A: 'static> Site<'_, A> {
    /// The blocks to take, if any. Those that were asked for by name, of size 1 included; or those of a scalar factor that is the
    /// same in blocks.
    pub(super) fn blocks(&self, kind: Preconditioning) -> Result<Option<(BlockKind, usize)>, SetupError> {
        let is_matrix = as_matrix(self.a).is_some();
        let natural = || natural_block(self.matrix.pattern());
        let scalar = match kind {
            Preconditioning::Block(kind, size) if is_matrix => {
                return Ok(Some((kind, size.unwrap_or_else(|| natural().size))));
            }
            Preconditioning::Block(..) => {
                let what = "blocks for an A that is not a matrix";
                return Err(BackendError::Unsupported { what }.into());
            }
            Preconditioning::Ic(0) => BlockKind::Ic0,
            Preconditioning::Ilu(0) => BlockKind::Ilu0,
            _ => return Ok(None),
        };
        let plain = self.options.layout != Layout::Rows && self.options.precision == Precision::F64;
        if !plain || !is_matrix {
            return Ok(None);
        }
        let fits =
            |&size: &usize| self.has_room_for(block_bytes(self.matrix.pattern(), scalar, size) as usize);
        Ok(full_block(self.matrix.pattern()).filter(fits).map(|size| (scalar, size)))
    }
}

impl Blocks {
    pub(super) fn build<A: LinearOperator<Space> + 'static>(
        site: &Site<'_, A>,
        (block, size): (BlockKind, usize),
        kind: Preconditioning,
        log: &mut Log,
    ) -> Result<(Engine<A>, Told), SolveError> {
        let Site { space, options, matrix, method, .. } = *site;
        let foreseen = block_bytes(matrix.pattern(), block, size)
            + site.other_matrix().map_or(0, |a| matrix_bytes(a.pattern(), size));
        if foreseen > site.limit() {
            return Err(SetupError::MemoryLimit { predicted: foreseen, limit: site.limit() }.into());
        }
        let recipe = BlockRecipe { schedule: options.schedule, ..BlockRecipe::new(block) };
        let (a, source, mut m) = log.analyzing(|| {
            let from = BlockMatrix::new(space, matrix, size)?;
            let m = BlockPreconditioner::new(space, &from, &recipe)?;
            Ok::<_, SetupError>(match site.other_matrix() {
                Some(a) => (BlockMatrix::new(space, a, size)?, Some(from), m),
                None => (from, None, m),
            })
        })?;
        let from = source.as_ref().unwrap_or(&a);
        let shift = log.factor(options.recover, kind, 0.0, |shift| refactor(&mut m, space, from, shift))?;
        let workspace = Workspace::new(method, System { space, a: &a, m: &m })?;
        let n = matrix.nrows();
        let vectors = (method.workspace_bytes(n) as usize).saturating_add(24 * n);
        let (down, up) = m.plans();
        let told = Told {
            kind,
            nnz: m.nnz(),
            bytes: m.bytes(),
            shift,
            schedule: Some([down.why().to_owned(), up.why().to_owned()]),
            layout: format!("dense blocks of {size} x {size}, rows as given"),
            ordering: String::new(),
            predicted: foreseen as usize + vectors,
            held: a.bytes() + source.as_ref().map_or(0, BlockMatrix::bytes) + m.bytes() + vectors,
        };
        Ok((Engine::Blocks(Box::new(Blocks { a, source, m, workspace })), told))
    }

    pub(super) fn refactor(
        &mut self,
        space: &Space,
        matrix: &Csr<f64>,
        shift: f64,
    ) -> Result<(), SetupError> {
        let from = self.source.as_mut().unwrap_or(&mut self.a);
        from.set(space, matrix)?;
        refactor(&mut self.m, space, from, shift)
    }
}

fn refactor(
    m: &mut BlockPreconditioner,
    space: &Space,
    a: &BlockMatrix,
    shift: f64,
) -> Result<(), SetupError> {
    use crate::operator::Preconditioner;
    m.shift = shift;
    m.refactor(space, a)
}

/// Bytes of a matrix in blocks.
fn matrix_bytes(pattern: &Pattern, size: usize) -> u64 {
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
