//! What a matrix has to have before it is factored or its values are exchanged.

use super::Pattern;
use crate::error::SetupError;
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
