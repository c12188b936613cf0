//! Preconditioners for matrices by rows on threads: none, Jacobi, incomplete and complete factors.
//!
//! Each is a [`Recipe`](crate::operator::Recipe) that analyzes a pattern once, factors any matrix of that pattern, and refactors
//! in place without allocating. A bad pivot is an error that names the smallest such row.

pub mod direct;
pub mod fsai;
mod jacobi;
pub mod registry;
pub mod threshold;

pub use crate::elimination::{
    Factor, FactorScratch, Form, Incomplete, IncompleteFactor, IncompleteSymbolic, Kind, PreservedSums,
    SMALLEST_PIVOT, Update, require_symmetric, starting_pivots, strict,
};
pub(crate) use jacobi::multiply_by_diagonal;
pub use jacobi::{ColumnNorms, Jacobi, JacobiFactor, JacobiSymbolic};
pub(crate) use registry::PrecondSpec;
