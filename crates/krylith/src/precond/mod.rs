//! Preconditioners for matrices by rows on threads: none, Jacobi, incomplete and complete factors.
//!
//! Each is a [`Recipe`](crate::operator::Recipe) that analyzes a pattern once, factors any matrix of that pattern, and refactors
//! in place without allocating. A bad pivot is an error that names the smallest such row.

mod by_rows;
pub mod direct;
pub(crate) mod driver;
mod eliminate;
mod fill;
pub(crate) mod form;
pub mod fsai;
mod incomplete;
mod jacobi;
mod ldu;
mod pivot;
pub mod registry;
mod single;
pub mod threshold;

pub(crate) use by_rows::{ByRows, make_by_rows};
pub use driver::{Factor, FactorScratch};
pub(crate) use fill::{bytes_by_rows, is_symmetric};
pub use fill::{require_symmetric, strict};
pub use form::{Form, Kind, PreservedSums, SMALLEST_PIVOT, Update, starting_pivots};
pub use incomplete::{Incomplete, IncompleteFactor, IncompleteSymbolic};
pub(crate) use jacobi::multiply_by_diagonal;
pub use jacobi::{ColumnNorms, Jacobi, JacobiFactor, JacobiSymbolic};
pub(crate) use pivot::FirstBadPivot;
pub use registry::PrecondSpec;
pub(crate) use single::InSingle;

use crate::error::SetupError;
use crate::matrix::Pattern;
use crate::parallel;
use std::sync::Arc;

/// `Err(PatternChanged)` unless both are the same pattern; the same allocation is recognised at once.
pub fn require_pattern(analyzed: &Arc<Pattern>, given: &Arc<Pattern>) -> Result<(), SetupError> {
    if Arc::ptr_eq(analyzed, given) || analyzed == given { Ok(()) } else { Err(SetupError::PatternChanged) }
}

/// `Err(MissingDiagonal)` with the smallest row that has no diagonal entry.
pub fn require_diagonal(pattern: &Pattern) -> Result<(), SetupError> {
    pattern.require_square()?;
    match parallel::first(pattern.nrows(), |i| pattern.find(i, i).is_none()) {
        Some(row) => Err(SetupError::MissingDiagonal { row }),
        None => Ok(()),
    }
}
