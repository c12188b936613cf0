//! Incomplete factors whose pattern follows the values: small entries are dropped, and a row keeps only its largest.
//!
//! | function | of | M | dropping |
//! |---|---|---|---|
//! | [`ilut`] | a square matrix | (I + L) D (I + U) ≈ A | one of three [`Rule`]s |
//! | [`ilut`] with `permtol` | a square matrix | (I + L) D (I + U) ≈ A Q, columns exchanged for larger pivots | the same |
//! | [`ict`] | a symmetric positive definite matrix | (I + L) D (I + L)ᵀ ≈ A | relative to the scaled column |
//!
//! All run in one thread, in one order: the result is a function of the matrix and the options. Of equal entries the one with
//! the smaller column is kept. Exact zeros are never stored.
//!
//! Memory: 4 bytes and a number for each entry kept, 16 bytes and a number for each row; the work needs another few numbers a
//! row. `max_bytes` is checked before each row is stored.

mod by_name;
mod columns;
mod ict;
mod ilut;
mod norm;
mod rows;
mod rule;
mod select;

pub use by_name::ByThreshold;
pub use ict::{IctOptions, ict};
pub use ilut::{IlutOptions, ilut};
pub use rule::Rule;

pub use crate::elimination::{Repairs, Triangles};

#[cfg(test)]
mod tests;
