//! Triangular factors M = (I + L) D (I + U): which of them is computed on a pattern ([`Form`]), its elimination and its sweeps.
//!
//! Kernels by rows are here; those of blocks, slices and grids, in modules of their own, have the same forms and one driver ([`Factor`]).

pub(crate) mod driver;
mod eliminate;
mod fill;
pub(crate) mod form;
mod incomplete;
mod ldu;
mod pivot;
mod triangles;

pub use driver::{Factor, FactorScratch};
pub(crate) use fill::{bytes_by_rows, is_symmetric};
pub use fill::{require_symmetric, strict};
pub use form::{Form, Kind, PreservedSums, SMALLEST_PIVOT, Update, starting_pivots};
pub use incomplete::{Incomplete, IncompleteFactor, IncompleteSymbolic};
pub(crate) use pivot::FirstBadPivot;
pub use triangles::{Repairs, Triangles};
