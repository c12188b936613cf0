//! The first bad pivot of an elimination that runs on several threads.
//!
//! Of several bad pivots the one of the smallest row is reported, whatever the order in which members of a team meet them: a row is
//! computed as long as no smaller one is known to be bad, and what a bad row leaves behind changes only rows after it.

use crate::error::SetupError;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The smallest row with a bad pivot so far.
#[derive(Debug)]
pub struct FirstBadPivot(AtomicUsize);

const NONE: usize = usize::MAX;

impl Default for FirstBadPivot {
    fn default() -> Self {
        FirstBadPivot(AtomicUsize::new(NONE))
    }
}

impl FirstBadPivot {
    /// The pivot of a row is bad.
    pub(crate) fn report(&self, row: usize) {
        self.0.fetch_min(row, Ordering::Relaxed);
    }

    /// Whether a row before this one has a bad pivot: then this one need not be computed.
    #[inline]
    pub(crate) fn is_before(&self, row: usize) -> bool {
        self.0.load(Ordering::Relaxed) < row
    }

    /// `Err(BadPivot)` with the first bad row and its pivot, after everybody has finished.
    pub(crate) fn into_result(self, pivot: impl FnOnce(usize) -> f64) -> Result<(), SetupError> {
        match self.0.into_inner() {
            NONE => Ok(()),
            row => Err(SetupError::BadPivot { row, value: pivot(row) }),
        }
    }
}
