//! Blocks of a size that is known at run time only: one of eight types behind each of two.

use super::factor::{BlockFactor, BlockKind, BlockRecipe};
use super::matrix::Bsr;
use crate::elimination::driver::FactorScratch;
use crate::error::{BackendError, SetupError};
use crate::matrix::{Csr, Pattern, SeenValues};
use crate::operator::{LinearOperator, Preconditioner};
use crate::placement::storage;
use crate::schedule::Plan;
use crate::space::Threads;
use std::sync::Arc;

/// Runs the same code on whichever size it is.
macro_rules! with {
    ($any:expr, $own:ident => $work:expr) => {
        match $any {
            Size::B1($own) => $work,
            Size::B2($own) => $work,
            Size::B3($own) => $work,
            Size::B4($own) => $work,
            Size::B5($own) => $work,
            Size::B6($own) => $work,
            Size::B7($own) => $work,
            Size::B8($own) => $work,
        }
    };
}

/// One of eight types.
#[derive(Debug, Clone)]
enum Size<B1, B2, B3, B4, B5, B6, B7, B8> {
    B1(B1),
    B2(B2),
    B3(B3),
    B4(B4),
    B5(B5),
    B6(B6),
    B7(B7),
    B8(B8),
}

type Matrices = Size<Bsr<1>, Bsr<2>, Bsr<3>, Bsr<4>, Bsr<5>, Bsr<6>, Bsr<7>, Bsr<8>>;
type Factors = Size<
    BlockFactor<1>,
    BlockFactor<2>,
    BlockFactor<3>,
    BlockFactor<4>,
    BlockFactor<5>,
    BlockFactor<6>,
    BlockFactor<7>,
    BlockFactor<8>,
>;

/// A matrix of blocks of 1 to 8 rows: [`Bsr`] of a size chosen at run time.
#[derive(Debug, Clone)]
pub struct BlockMatrix {
    blocks: Matrices,
    /// The values that were taken over last.
    seen: Option<SeenValues>,
}

/// A block preconditioner of a size chosen at run time: [`BlockFactor`] for a [`BlockMatrix`].
#[derive(Debug)]
pub struct BlockPreconditioner(Factors);

impl BlockMatrix {
    /// The blocks of a matrix whose rows and columns are multiples of `size`, which is 1 to 8.
    pub fn new(space: &Threads<f64>, a: &Csr<f64>, size: usize) -> Result<Self, SetupError> {
        let p = a.pattern();
        let blocks = match size {
            1 => Size::B1(Bsr::zeros(p)?),
            2 => Size::B2(Bsr::zeros(p)?),
            3 => Size::B3(Bsr::zeros(p)?),
            4 => Size::B4(Bsr::zeros(p)?),
            5 => Size::B5(Bsr::zeros(p)?),
            6 => Size::B6(Bsr::zeros(p)?),
            7 => Size::B7(Bsr::zeros(p)?),
            8 => Size::B8(Bsr::zeros(p)?),
            _ => return Err(crate::error::MatrixError::BlockSize { size }.into()),
        };
        let mut matrix = BlockMatrix { blocks, seen: None };
        matrix.set(space, a)?;
        Ok(matrix)
    }

    fn require(&self, a: &Csr<f64>) -> Result<(), SetupError> {
        with!(&self.blocks, own => own.require(a))
    }

    /// Whether the values are those of this matrix, which has the pattern that was blocked.
    fn holds(&self, space: &Threads<f64>, a: &Csr<f64>) -> bool {
        self.seen.is_some_and(|seen| seen.are_those_of(space, a))
    }

    /// Takes over the values of a matrix of the pattern that was blocked; allocates nothing. Values that are here already are left
    /// where they are.
    pub fn set(&mut self, space: &Threads<f64>, a: &Csr<f64>) -> Result<(), SetupError> {
        self.require(a)?;
        if self.holds(space, a) {
            return Ok(());
        }
        with!(&mut self.blocks, own => own.set(space, a))?;
        self.seen = Some(SeenValues::of(space, a));
        Ok(())
    }

    /// The same matrix by rows.
    pub fn to_csr(&self) -> Csr<f64> {
        with!(&self.blocks, own => own.to_csr())
    }

    /// Rows of a block.
    pub fn size(&self) -> usize {
        match self.blocks {
            Size::B1(_) => 1,
            Size::B2(_) => 2,
            Size::B3(_) => 3,
            Size::B4(_) => 4,
            Size::B5(_) => 5,
            Size::B6(_) => 6,
            Size::B7(_) => 7,
            Size::B8(_) => 8,
        }
    }

    /// Where the blocks are.
    pub fn pattern(&self) -> &Arc<Pattern> {
        with!(&self.blocks, own => own.pattern())
    }

    /// Number of scalar rows.
    pub fn nrows(&self) -> usize {
        with!(&self.blocks, own => own.nrows())
    }

    /// Bytes of blocks and their pattern.
    pub fn bytes(&self) -> usize {
        with!(&self.blocks, own => own.bytes())
    }
}

storage!(BlockMatrix);

impl LinearOperator<Threads<f64>> for BlockMatrix {
    type Scratch = ();

    fn domain(&self) -> usize {
        with!(&self.blocks, own => own.domain())
    }

    fn range(&self) -> usize {
        with!(&self.blocks, own => own.range())
    }

    fn scratch(&self, _: &Threads<f64>) -> Result<(), BackendError> {
        Ok(())
    }

    fn apply(
        &self,
        space: &Threads<f64>,
        x: &Vec<f64>,
        y: &mut Vec<f64>,
        scratch: &mut (),
    ) -> Result<(), BackendError> {
        with!(&self.blocks, own => own.apply(space, x, y, scratch))
    }

    fn apply_dot(
        &self,
        space: &Threads<f64>,
        x: &Vec<f64>,
        y: &mut Vec<f64>,
        scratch: &mut (),
    ) -> Result<f64, BackendError> {
        with!(&self.blocks, own => own.apply_dot(space, x, y, scratch))
    }
}

impl BlockPreconditioner {
    /// Analyzes the block pattern and makes room for the factor: `refactor` comes before its use.
    pub fn new(space: &Threads<f64>, a: &BlockMatrix, recipe: &BlockRecipe) -> Result<Self, SetupError> {
        fn room<const B: usize>(
            space: &Threads<f64>,
            a: &Bsr<B>,
            recipe: &BlockRecipe,
        ) -> Result<BlockFactor<B>, SetupError> {
            Ok(recipe.analyze_pattern::<B>(a.pattern(), space.threads())?.allocate())
        }
        let factor = match &a.blocks {
            Size::B1(a) => Size::B1(room(space, a, recipe)?),
            Size::B2(a) => Size::B2(room(space, a, recipe)?),
            Size::B3(a) => Size::B3(room(space, a, recipe)?),
            Size::B4(a) => Size::B4(room(space, a, recipe)?),
            Size::B5(a) => Size::B5(room(space, a, recipe)?),
            Size::B6(a) => Size::B6(room(space, a, recipe)?),
            Size::B7(a) => Size::B7(room(space, a, recipe)?),
            Size::B8(a) => Size::B8(room(space, a, recipe)?),
        };
        Ok(BlockPreconditioner(factor))
    }

    /// Which preconditioner this is.
    pub fn kind(&self) -> BlockKind {
        with!(&self.0, own => own.kind())
    }

    /// Entries of the factor; of a symmetric one those of L and the lower triangle of D.
    pub fn nnz(&self) -> usize {
        with!(&self.0, own => own.nnz())
    }

    /// Bytes of the factor, its patterns and its plans.
    pub fn bytes(&self) -> usize {
        with!(&self.0, own => own.bytes())
    }

    /// How the forward and the backward sweep are divided on a team of `threads`, and why.
    pub fn schedule(&self, threads: usize) -> [String; 2] {
        with!(&self.0, own => own.schedule(threads))
    }
}

impl LinearOperator<Threads<f64>> for BlockPreconditioner {
    type Scratch = FactorScratch<Plan>;

    fn domain(&self) -> usize {
        with!(&self.0, own => own.domain())
    }

    fn range(&self) -> usize {
        with!(&self.0, own => own.range())
    }

    fn scratch(&self, space: &Threads<f64>) -> Result<FactorScratch<Plan>, BackendError> {
        with!(&self.0, own => own.scratch(space))
    }

    fn apply(
        &self,
        space: &Threads<f64>,
        x: &Vec<f64>,
        z: &mut Vec<f64>,
        scratch: &mut FactorScratch<Plan>,
    ) -> Result<(), BackendError> {
        with!(&self.0, own => own.apply(space, x, z, scratch))
    }
}

impl Preconditioner<Threads<f64>, BlockMatrix> for BlockPreconditioner {
    fn set_shift(&mut self, shift: f64) -> bool {
        with!(&mut self.0, own => own.set_shift(shift))
    }

    fn release(&mut self) {
        with!(&mut self.0, own => own.release());
    }

    fn refactor(&mut self, space: &Threads<f64>, a: &BlockMatrix) -> Result<(), SetupError> {
        match (&mut self.0, &a.blocks) {
            (Size::B1(m), Size::B1(a)) => m.refactor(space, a),
            (Size::B2(m), Size::B2(a)) => m.refactor(space, a),
            (Size::B3(m), Size::B3(a)) => m.refactor(space, a),
            (Size::B4(m), Size::B4(a)) => m.refactor(space, a),
            (Size::B5(m), Size::B5(a)) => m.refactor(space, a),
            (Size::B6(m), Size::B6(a)) => m.refactor(space, a),
            (Size::B7(m), Size::B7(a)) => m.refactor(space, a),
            (Size::B8(m), Size::B8(a)) => m.refactor(space, a),
            _ => Err(SetupError::PatternChanged),
        }
    }
}
