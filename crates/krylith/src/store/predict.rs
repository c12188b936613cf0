//! How much memory a solve will take, from the pattern alone.

use super::grid::predict_memory;
use crate::matrix::Pattern;
use crate::setup::Memory;
use crate::sliced::SlicedPattern;
use std::sync::Arc;

impl Memory {
    /// What the pattern of a square matrix predicts: on a grid, if it is that of one, with a number for every entry. Of one without a
    /// full diagonal, what it would take by rows.
    pub fn predict(pattern: &Arc<Pattern>) -> Self {
        if let Some(memory) = predict_memory(pattern) {
            return memory;
        }
        match SlicedPattern::find(pattern) {
            Ok(sliced) => {
                let sliced = Arc::new(sliced);
                Self::in_slices(&sliced, &sliced, size_of::<f64>())
            }
            Err(reason) => Self::by_rows(pattern, &reason.to_string(), size_of::<f64>()),
        }
    }
}
