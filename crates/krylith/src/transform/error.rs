//! What can go wrong when a matrix is reordered or matched.

use crate::error::{MatrixError, place_in_words, row_in_words};
use thiserror::Error;

/// An ordering could not be computed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum OrderingError {
    /// The matrix is not square.
    #[error(transparent)]
    Matrix(#[from] MatrixError),
    /// The ordering comes with a cargo feature that this build does not have.
    #[error("the ordering `{ordering}` is not in this build; enable the cargo feature `{feature}`")]
    FeatureMissing {
        /// Its name.
        ordering: &'static str,
        /// The feature to enable.
        feature: &'static str,
    },
    /// More rows or entries than the indices of this ordering's library can name.
    #[error("{rows} rows and {entries} entries are more than the ordering `{ordering}` can number")]
    TooLarge {
        /// Its name.
        ordering: &'static str,
        /// Rows.
        rows: usize,
        /// Entries of A + Aᵀ off the diagonal.
        entries: usize,
    },
    /// The library behind this ordering gave up, for want of memory or by a fault of its own.
    #[error("the ordering `{ordering}` failed: {why}")]
    Failed {
        /// Its name.
        ordering: &'static str,
        /// What is known.
        why: &'static str,
    },
}

/// Large entries could not be brought to the diagonal.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MatchingError {
    /// The matrix is not square.
    #[error(transparent)]
    Matrix(#[from] MatrixError),
    /// An entry that is infinite or NaN.
    #[error("the entry in {} is not finite", place_in_words(*row, *column))]
    NotFinite {
        /// The smallest such row (counted from 0).
        row: usize,
        /// Its first such column (counted from 0).
        column: usize,
    },
    /// Every permutation leaves a zero on the diagonal, whatever the values of the entries are.
    #[error(
        "structurally singular: rank {rank} of {size} at most; {} is one that cannot be matched",
        row_in_words(*row)
    )]
    StructurallySingular {
        /// The most rows that can have columns of their own.
        rank: usize,
        /// Rows of the matrix.
        size: usize,
        /// The first row (counted from 0) that could not be given a column besides those that have one.
        row: usize,
    },
    /// The magnitudes spread so far that the scale factor of a row or of its column is outside of the range of `f64`.
    #[error(
        "{}: no scaling within the range of f64 brings the matched entries to 1 and the others below",
        row_in_words(*row)
    )]
    ScaleOutOfRange {
        /// The smallest such row (counted from 0).
        row: usize,
    },
}
