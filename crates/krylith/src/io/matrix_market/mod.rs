//! Matrix Market text, the exchange format of the field.
//!
//! A first line of five words, comments, a line of sizes, then one entry per line (`coordinate`) or one number per line, column
//! after column (`array`). Indices count from 1. `symmetric` and `skew-symmetric` files list one triangle.
//! Reference: Boisvert, Pozo, Remington 1996, NISTIR 5935.
//!
//! Deviations from the text of the standard: either triangle of a symmetric matrix is accepted (but not both); comments and
//! empty lines may stand anywhere; Fortran's exponent letter `D` is understood; infinite values and NaN are refused;
//! integers become the nearest `f64`.

mod header;
mod read;
mod write;

pub(crate) use read::{number, read_matrix, read_vector};
pub use read::{parse_matrix, parse_vector};
pub(crate) use write::{push_number, write_blocks, write_matrix, write_vector};

pub(crate) const BANNER: &[u8] = b"%%MatrixMarket";
