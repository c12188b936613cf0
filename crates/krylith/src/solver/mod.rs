//! The short way: hand over A and b, get an answer whose residual is checked.
//!
//! ```
//! let a = "poisson3d:20".parse::<krylith::gallery::Problem>()?.generate()?;
//! let b = vec![1.0; a.nrows()];
//! let solution = krylith::solve(&a, &b)?;
//! solution.report.require_converged()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`Solver`] has the choices; [`Solver::prepare`] keeps analysis, factor and workspace for many right-hand sides or for
//! matrices whose values change.
//!
//! `auto` follows this rule. A matrix with symmetric values, a symmetric pattern and a positive diagonal gets CG with IC(0). Every other
//! matrix, also a symmetric one whose diagonal is not positive, gets BiCGStab with ILU(0). If CG finds A or M indefinite, diverges or meets
//! numbers that are not finite, MINRES goes on without a preconditioner. If BiCGStab breaks down or diverges, GMRES(30) goes on from its
//! best x; if the factor gave numbers that are not finite, with the diagonal as preconditioner. A method that the caller chose is not
//! replaced. A fallback lasts for one solve: the next right-hand side begins with the prepared method again.
//!
//! A bad pivot, of any factor, is followed by a shift of the diagonal, as small as one can be found quickly, and if none works by
//! the diagonal alone, in a form that cannot fail ([`Solver::recover`] turns this off). Every such step is in `report.recovery`.

mod build;
mod certify;
mod options;
mod plan;
mod prepared;
mod reorder;
mod stages;
mod threads;
mod workspace;

pub use crate::choice::{Layout, MatchingMode, Method, Precision};
pub use crate::precond::registry::{
    FillRule, NameError, Parameter, PrecondInfo, PrecondSpec, Suits, Threshold, Value, preconditioners,
};
pub use crate::setup::{Memory, available_memory};
pub use options::Solver;
pub use prepared::Prepared;
pub use stages::Watch;
pub use threads::{LAYOUTS, Solution, solve};
