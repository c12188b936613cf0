//! Matrices of small dense blocks: several unknowns at a node, coupled with all of those at another.
//!
//! Elasticity has two or three displacements a node, a flow several quantities. The matrix then consists of dense B x B blocks. A
//! block ([`Bsr`]) needs one column index where its entries need B², its rows fit vector registers, and a sweep through an
//! incomplete factor on the block pattern ([`BlockRecipe`]) has a B-th of the rows to wait for.
//!
//! Where all blocks are full, block IC(0) and ILU(0) are the scalar IC(0) and ILU(0) of the same matrix, up to rounding: what
//! elimination within full blocks fills is in the pattern already. They break down where the scalar ones do and take as many
//! iterations; only ILU(0) passes a zero pivot that an exchange within its block avoids. Where blocks are not full, the
//! block factor keeps more than the scalar one.
//!
//! The inverses of diagonal blocks (`dense`) are also those of grids with several unknowns per point
//! ([`structured`](crate::structured)): the same exchanges, and the same blocks are bad.
//!
//! [`natural_block`] finds the size in a pattern; [`BlockMatrix`] and [`BlockPreconditioner`] take one at run time:
//!
//! ```
//! use krylith::block::{BlockKind, BlockMatrix, BlockPreconditioner, BlockRecipe, natural_block};
//! use krylith::operator::Preconditioner;
//! use krylith::{gallery::Problem, krylov::{Cg, System}, space::Threads, stop::{IterationLimit, Residual}};
//!
//! let a = "elasticity3d:6".parse::<Problem>()?.generate()?;
//! let space = Threads::new(2);
//! let a = BlockMatrix::new(&space, &a, natural_block(a.pattern()).size)?;
//! let mut m = BlockPreconditioner::new(&space, &a, &BlockRecipe::new(BlockKind::Ic0))?;
//! m.set_shift(1.0); // so close to incompressible, no factor without a shift exists
//! m.refactor(&space, &a)?;
//! let system = System { space: &space, a: &a, m: &m };
//! let (b, mut x) = (vec![1.0; a.nrows()], vec![0.0; a.nrows()]);
//! let mut stop = (Residual { rtol: 1e-8, atol: 0.0 }, IterationLimit(500));
//! let finish = Cg::new(system)?.solve(system, &b, &mut x, &mut stop, &mut ())?;
//! assert!(finish.iterations < 500);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod any;
pub(crate) mod dense;
mod factor;
mod kernels;
mod matrix;
mod natural;

pub use any::{BlockMatrix, BlockPreconditioner};
pub use factor::{BlockFactor, BlockKind, BlockRecipe, BlockSymbolic};
pub use matrix::Bsr;
pub use natural::{BlockSize, natural_block};
pub(crate) use natural::{count_blocks, full_block, full_block_of};

#[cfg(test)]
mod tests;
