//! What a set-up looked at, for plans.

use serde::{Deserialize, Serialize};

/// A storage that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Considered {
    /// Its name: `f32`, `grid`, `blocks`, `slices` or `rows`.
    pub layout: String,
    /// Whether it is taken.
    pub taken: bool,
    /// How, or why not.
    pub reason: String,
}
