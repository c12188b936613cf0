//! Matrices of structured grids: stencils instead of index arrays.
//!
//! A matrix of a grid of one to three dimensions, whose entries join points at a few fixed offsets, needs no column indices, and
//! what incomplete factorization does to it follows from the offsets. Products, sweeps and factors here take eight points at a time
//! and read memory from one end to the other. The preconditioners are those of [`precond`](crate::precond) and
//! [`block`](crate::block), up to rounding; results are the same bits on any number of threads.
//!
//! # By itself
//!
//! [`Solver`](crate::Solver) looks for a grid ([`Structure::detect`]) in every [`Csr`](crate::Csr) that gets an incomplete factor without
//! threshold, in its own order of rows. It solves on the grid if the factor can be had there and the arrangement does not waste
//! places; `report.layout` then begins with `structured`. [`Layout::Slices`](crate::Layout) turns it off. What is refused, and
//! why, is in docs/structured.md.
//!
//! # By hand
//!
//! A [`StencilMatrix`] is made from a function, from one array per offset, or from compressed rows; its vectors have an order of their
//! own, which [`gather`](StencilMatrix::gather) and [`scatter`](StencilMatrix::scatter) know. Any method of [`krylov`](crate::krylov) runs
//! on it, with a [`StencilFactor`] as M⁻¹. Where the factor has A's triangles, [`EisenstatCg`](crate::krylov::EisenstatCg) is conjugate
//! gradients without a product.
//!
//! ```
//! use krylith::krylov::{Cg, EisenstatCg, SplitSystem, System};
//! use krylith::operator::{Recipe, Symbolic};
//! use krylith::precond::Incomplete;
//! use krylith::space::Threads;
//! use krylith::stop::{IterationLimit, Residual};
//! use krylith::structured::{Grid, Stencil, StencilMatrix};
//!
//! // Diffusion in a box, faster along z in its upper half.
//! let space = Threads::new(2);
//! let (grid, star) = (Grid::new(&[40, 30, 20])?, Stencil::star(3, 1)?);
//! let along_z = |z: usize| if z < 10 { 1.0 } else { 5.0 };
//! let a = StencilMatrix::from_fn(&space, grid, &star, 1, |[_, _, z], offset, block| {
//!     block[0] = match offset {
//!         [0, 0, 0] => 4.0 + along_z(z) + along_z(z + 1),
//!         [0, 0, step] => -along_z(z + usize::from(step > 0)),
//!         _ => -1.0,
//!     };
//! })?;
//! let ic0 = Incomplete::ic(0).analyze(&space, &a)?.factor(&space, &a)?;
//!
//! let mut b = a.vector();
//! a.gather(&space, &vec![1.0; grid.points()], &mut b)?;
//! let mut stop = (Residual { rtol: 1e-10, atol: 0.0 }, IterationLimit(500));
//!
//! let system = System { space: &space, a: &a, m: &ic0 };
//! let mut x = a.vector();
//! let usual = Cg::new(system)?.solve(system, &b, &mut x, &mut stop, &mut ())?;
//!
//! // The same iterates without a product.
//! let system = SplitSystem { space: &space, a: &a, m: &ic0 };
//! let mut cg = EisenstatCg::new(system)?.expect("a star of reach 1 leaves A's triangles alone");
//! let mut y = a.vector();
//! let trick = cg.solve(system, &b, &mut y, &mut stop, &mut ())?;
//! assert_eq!(usual.iterations, trick.iterations);
//!
//! let mut answer = vec![0.0; grid.points()];
//! a.scatter(&space, &y, &mut answer)?;
//! assert!(answer.iter().all(|&u| u > 0.0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Stencils
//!
//! The usual ones, with the level of a point: points of one level do not need each other in a sweep. *Updates* are the products of a
//! lower and an upper entry that the elimination of a row adds to an entry of the stencil; where all of them go to the diagonal, the
//! factor without fill has A's own triangles.
//!
//! | stencil | constructor | lower offsets | updates | off the diagonal | level | levels of a grid |
//! |---|---|---|---|---|---|---|
//! | Star-5P | `star(2, 1)` | 2 | 2 | 0 | x + y | nx + ny − 1 |
//! | Box-9P | `cube(2, 1)` | 4 | 12 | 8 | x + 2y | nx + 2ny − 2 |
//! | Star-7P | `star(3, 1)` | 3 | 3 | 0 | x + y + z | nx + ny + nz − 2 |
//! | Star-13P | `star(3, 2)` | 6 | 12 | 6 | x + y + z | nx + ny + nz − 2 |
//! | Diamond-13P | `filled_star(3)` | 6 | 22 | 16 | x + 2y + 3z | nx + 2ny + 3nz − 5 |
//! | Diamond-25P | `diamond(3, 2)` | 12 | 82 | 70 | x + 2y + 3z | nx + 2ny + 3nz − 5 |
//! | Box-27P | `cube(3, 1)` | 13 | 101 | 88 | x + 2y + 4z | nx + 2ny + 4nz − 6 |
//!
//! Any other set of offsets that reaches at most 7 lines and 7 planes is as good ([`Stencil::new`]); [`Mapping`] gives its levels, which
//! are those of the paper for the stencils that it names. No sweep runs by levels: lines lag instead.
//!
//! # Files
//!
//! `grid`, `stencil` and `mapping` say what a point, its neighbours and its level are; `detect` finds them in a matrix. `arrangement` has
//! the places of points in memory, `pipeline` the order in which threads take them. `matrix`, `factor` and `eisenstat` are what users
//! hold; `kernels` and `eliminate` are the loops under them.
//!
//! References: Luo et al. 2025, doi:10.1145/3721145.3725745, for stencils, levels and waiting from block to block, there on GPUs;
//! Eisenstat 1981, doi:10.1137/0902001. The arrangement is not the paper's: see docs/decisions/0009-structured-grids.md.

mod arrangement;
mod convert;
mod detect;
mod eisenstat;
mod eliminate;
mod factor;
mod grid;
mod invert;
mod kernels;
mod mapping;
mod matrix;
mod pipeline;
mod stencil;

pub use arrangement::ArrangementError;
pub use detect::{NotStructured, Structure};
pub use factor::{StencilFactor, StencilSymbolic};
pub use grid::{Grid, GridError};
pub use mapping::Mapping;
pub use matrix::{MOST_UNKNOWNS, StencilMatrix};
pub use stencil::{Elimination, LONGEST_REACH, MOST_OFFSETS, Offset, Stencil, StencilError};

#[cfg(test)]
mod picture;
#[cfg(test)]
mod tests;
