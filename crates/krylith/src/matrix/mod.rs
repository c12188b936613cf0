//! Sparse matrices: patterns, compressed rows, views, permutations, symmetry.

mod assemble;
pub(crate) mod builder;
#[cfg(any(feature = "faer", feature = "sprs", feature = "nalgebra-sparse"))]
mod convert;
pub(crate) mod csr;
mod magnitude;
pub(crate) mod pattern;
pub(crate) mod permutation;
mod repeats;
mod require;
mod rows;
mod summary;
mod symmetry;
mod transpose;
mod version;

pub(crate) use assemble::{Entries, ROWS_PER_TASK, assemble};
pub(crate) use csr::check_length;
pub(crate) use csr::{Csr, CsrRef};
pub(crate) use magnitude::{exact_scale, sizes_of_matrix};
pub(crate) use pattern::Pattern;
pub(crate) use pattern::check_dimensions;
pub(crate) use permutation::Permutation;
pub(crate) use repeats::{RowBits, WORD, are_same};
pub use require::{require_diagonal, require_pattern};
pub(crate) use rows::{OwnUnits, Rows, ValuedRows, all_hold};
pub use summary::{Bin, Diagonal, Summary};
pub(crate) use symmetry::{Compared, Comparison};
pub use symmetry::{Mirror, Symmetry, Triangle};
pub use version::SeenValues;
pub(crate) use version::{Stamp, mix};
