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
//! What most programs need is at the root, and in the [`prelude`]. Besides, for those who solve systems:
//!
//! * [`io`]: Matrix Market, SciPy `.npz`, PETSc binary; [`gallery`]: generated problems, each a name and a formula;
//! * [`matrix`]: symmetry and summaries; [`transform`]: orderings, and large entries brought to the diagonal; [`sparsify`]: which entries a preconditioner does without;
//! * [`precond`]: preconditioners by hand, and the registry of all of them by name; [`learn`]: preconditioners that learn;
//! * [`solver`]: how a plan is chosen; [`plan`]: what will be done about a system, and why; [`report`]: what was done; [`calibrate`]: what the machine at hand takes;
//! * [`stop`], [`observe`]: when an iteration ends, and who watches it.
//!
//! For those who add something of their own:
//!
//! * [`operator`]: operators and preconditioners; [`krylov`]: methods, written once for every place where vectors may live; [`space`]: such places;
//! * [`store`], [`placement`], [`setup`], [`engine`]: how the matrices of a system are kept and in which order, and what iterates.
//!
//! The storages of factors (`block`, `sliced`, `structured`, `schedule`) can be reached and may change at any time.

#[doc(hidden)]
pub mod block;
pub mod calibrate;
mod cost;
mod disjoint;
mod elimination;
pub mod engine;
mod error;
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
mod scalar;
#[doc(hidden)]
pub mod schedule;
pub mod setup;
mod simd;
#[doc(hidden)]
pub mod sliced;
pub mod solver;
pub mod space;
pub mod sparsify;
pub mod stop;
pub mod store;
#[doc(hidden)]
pub mod structured;
mod team;
mod training;
pub mod transform;

pub use error::{BackendError, MatrixError, SetupError, SolveError};
pub use matrix::builder::TripletBuilder;
pub use matrix::csr::{Csr, CsrRef};
pub use matrix::pattern::Pattern;
pub use matrix::permutation::Permutation;
pub use names::NameError;
pub use options::{Layout, MatchingMode, Method, Precision};
pub use outcome::Outcome;
pub use precond::registry::spec::PrecondSpec;
pub use report::of_solve::Report;
pub use scalar::{Real, Scalar};
pub use schedule::Schedule;
pub use solver::null_space::NullSpace;
pub use solver::options::Solver;
pub use solver::prepared::Prepared;
pub use solver::runs::Watch;
pub use solver::threads::{Solution, solve};

/// What most programs need: `use krylith::prelude::*;`.
///
/// ```
/// use krylith::prelude::*;
/// let a = Csr::from_entries(2, 2, [(0, 0, 4.0), (0, 1, 1.0), (1, 0, 1.0), (1, 1, 3.0)])?;
/// let solution = Solver::new().method(Method::Cg).solve(&a, &[1.0, 2.0])?;
/// assert_eq!(solution.report.outcome, Outcome::Converged);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub mod prelude {
    #[doc(no_inline)]
    pub use crate::{
        Csr, CsrRef, Method, Outcome, Precision, PrecondSpec, Prepared, Report, Solution, SolveError, Solver,
        TripletBuilder, solve,
    };
}

/// The README's example, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// The example of the page on structured grids.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/structured.md")]
struct StructuredGrids;
