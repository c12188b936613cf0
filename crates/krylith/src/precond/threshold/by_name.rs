//! The factors by threshold that have names.

use crate::precond::registry::Threshold;

/// A factor whose pattern follows the values.
#[derive(Debug, Clone, Copy)]
pub enum ByThreshold {
    /// Incomplete Cholesky with this tolerance.
    Ict(f64),
    /// Incomplete LU.
    Ilut(Threshold),
}

impl ByThreshold {
    /// Columns are exchanged for larger pivots.
    pub(crate) fn exchanges_columns(self) -> bool {
        matches!(self, ByThreshold::Ilut(threshold) if threshold.pivoting)
    }
}
