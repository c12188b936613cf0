//! Krylith solves large sparse linear systems A x = b with preconditioned Krylov methods.
//!
//! ```
//! let a = "poisson2d:30".parse::<krylith::gallery::Problem>()?.generate()?;
//! let b = vec![1.0; a.nrows()];
//! let solution = krylith::solve(&a, &b)?;
//! solution.report.require_converged()?; // the residual has been recomputed from a, x and b
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The modules, roughly in the order in which data passes through them:
//!
//! * [`matrix`]: sparse matrices by rows, checked once and then relied on;
//! * [`io`]: Matrix Market, SciPy `.npz`, PETSc binary;
//! * [`gallery`]: generated problems, each a name and a formula;
//! * [`transform`]: orderings, and large entries brought to the diagonal;
//! * [`schedule`]: what of a triangular solve may run at the same time, and in which order it does;
//! * [`precond`]: Jacobi and incomplete factors;
//! * [`block`]: matrices of small dense blocks, and the same preconditioners for them;
//! * [`structured`]: matrices of structured grids, found in others or made by hand, without index arrays;
//! * [`sliced`]: rows in slices of eight, by wavefront;
//! * [`space`], [`operator`], [`krylov`]: Krylov methods, written once for every place where vectors may live;
//! * [`stop`], [`observe`]: when an iteration ends, and who watches it;
//! * [`plan`]: what will be done about a system, and why;
//! * [`store`], [`placement`], [`setup`], [`engine`]: how the matrices of a system are kept and in which order, and what iterates;
//! * [`solver`], [`report`]: the short way, with certified answers.

pub mod block;
pub mod calibrate;
mod cost;
mod disjoint;
mod elimination;
pub mod engine;
pub mod error;
mod facts;
pub mod gallery;
pub mod io;
pub mod krylov;
pub mod learn;
pub mod matrix;
mod memory;
mod names;
pub mod observe;
pub mod operator;
mod options;
mod outcome;
mod parallel;
pub mod placement;
pub mod plan;
pub mod precond;
pub mod report;
pub mod scalar;
pub mod schedule;
pub mod setup;
mod simd;
pub mod sliced;
pub mod solver;
pub mod space;
pub mod sparsify;
pub mod stop;
pub mod store;
pub mod structured;
mod team;
mod training;
pub mod transform;

pub use error::{BackendError, MatrixError, SetupError, SolveError};
pub use matrix::{Csr, CsrRef, Pattern, Permutation, TripletBuilder};
pub use report::{Outcome, Report};
pub use scalar::{Real, Scalar};
pub use solver::{Method, PrecondSpec, Solution, Solver, solve};

/// The README's example, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// The example of the page on structured grids.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/structured.md")]
struct StructuredGrids;
