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
//! `auto` follows this rule. A matrix with symmetric values (up to rounding), a positive diagonal and a symmetric pattern, apart from entries that are zeros or rounding errors on
//! one side, gets CG; any other
//! matrix BiCGStab. A complete factor comes first, Cholesky's with CG, LDLᵀ or LU with GMRES(50), where it is predicted to cost less than the incomplete one for the
//! solves that are expected ([`Solver::expect_solves`]). Iterations of an incomplete factor are predicted from the mesh; where most rows are not diagonally dominant they are taken to be 100 at least
//! (60 if A is not definite), and 1000 where the diagonal has zero or tiny entries. The preconditioner of CG and BiCGStab is IC(0) or ILU(0) for matrices
//! of fewer than 20,000 entries; for others that which is predicted to cost the least, of modified and plain factors with levels
//! of fill, in `f64` and in `f32` ([`plan::Proposal`](crate::plan::Proposal)).
//!
//! Where the preconditioner is made from another matrix ([`Solver::prepare_with`]), the facts of A choose the method and those of the other matrix the
//! preconditioner; CG is then chosen only if that matrix has an IC(0) as well, and no complete factor comes first. Fallbacks are made from A.
//!
//! A method that `auto` chose is left when it fails, or when the rest of it is predicted to cost twice as much as what follows: from CG to
//! a complete Cholesky factor, or to MINRES if A is indefinite; from a BiCGStab that breaks down to GMRES(30) with its factor; then to GMRES(50) with a complete LDLᵀ and LU; then to an incomplete LU by threshold with
//! columns exchanged; then to LSMR, which gives the least squares of a singular system; then to the first choice again. Each goes on from the best x so far. What a complete factor cannot
//! improve is final. Costs are predicted from counts ([`plan::Machine`](crate::cost::Machine)), and no clock decides, so a plan is
//! the same on any number of threads. A method or preconditioner that the caller chose is not left for being slow. A fallback lasts for one solve: the next
//! right-hand side begins with the prepared method again, until that has failed for two of them. From then on solves with this A begin with the rung that gave the
//! answer, whose factor is kept (`winner`).
//!
//! Constants in the null space of A are recognised, and the caller may name others ([`NullSpace`](crate::NullSpace)): of many answers x is that of least norm.
//! `converged` is said of b as it was given. Where the component of b outside of the range of A is larger than the tolerance, no x converges; x is then the least squares
//! (`least_squares`), or there is a proof that no x meets the tolerance (`singular`).
//!
//! A bad pivot, of any factor, is followed by a shift of the diagonal, as small as one can be found quickly, and if none works by
//! the diagonal alone, in a form that cannot fail ([`Solver::recover`] turns this off). Every such step is in `report.recovery`.

mod apply;
mod build;
mod by_name;
mod certify;
mod end;
mod iterate;
pub(crate) mod learning;
mod least_norm;
pub(crate) mod null_space;
pub(crate) mod options;
mod outside_range;
mod plan;
mod planned;
pub(crate) mod prepared;
mod refactor;
mod reorder;
mod rounding;
pub(crate) mod runs;
mod slow_progress;
mod snap;
mod stage;
pub(crate) mod threads;
mod winner;
mod workspace;

pub use by_name::{SolverOption, options};
pub(crate) use options::Solver;
pub(crate) use prepared::Prepared;
pub(crate) use runs::Watch;
pub use threads::STORES;
