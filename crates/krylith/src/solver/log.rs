//! What setting up takes, and what goes wrong on the way.

use super::choice::Preconditioning;
use super::recover::find_shift;
use crate::error::SetupError;
use crate::report::{Recovery, Seconds};
use std::time::Instant;

/// What setting up has taken and what went wrong on the way.
#[derive(Debug, Clone, Default)]
pub(super) struct Log {
    pub(super) seconds: Seconds,
    pub(super) recovery: Vec<Recovery>,
    /// The diagonal is taken in its form that cannot fail.
    pub(super) forgiving: bool,
    /// The row of A at each place, if what is factored now is permuted.
    pub(super) rows: Option<Vec<u32>>,
}

impl Log {
    /// Factors, if need be with a shift that `attempt` is told; the shift.
    pub(super) fn factor(
        &mut self,
        recover: bool,
        kind: Preconditioning,
        begin: f64,
        mut attempt: impl FnMut(f64) -> Result<(), SetupError>,
    ) -> Result<f64, SetupError> {
        let rows = self.rows.clone();
        let mut attempt = |shift| attempt(shift).map_err(|error| in_order_of_a(error, rows.as_deref()));
        let mut recovery = std::mem::take(&mut self.recovery);
        let shift = self.factoring(|| match recover {
            true => find_shift(kind, begin, attempt, &mut recovery),
            false => attempt(begin).map(|()| begin),
        });
        self.recovery = recovery;
        shift
    }

    /// Work on the pattern, in a span, its seconds added up.
    pub(super) fn analyzing<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let _span = tracing::info_span!("analyze").entered();
        let started = Instant::now();
        let result = work();
        self.seconds.analyze += started.elapsed().as_secs_f64();
        result
    }

    /// Work on the values, in a span, its seconds added up.
    pub(super) fn factoring<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let _span = tracing::info_span!("factor").entered();
        let started = Instant::now();
        let result = work();
        self.seconds.factor += started.elapsed().as_secs_f64();
        result
    }
}

/// An error that names the row of A, not that of a permuted matrix.
pub(super) fn in_order_of_a(error: SetupError, rows: Option<&[u32]>) -> SetupError {
    match (error, rows) {
        (SetupError::BadPivot { row, value }, Some(rows)) => {
            SetupError::BadPivot { row: rows[row] as usize, value }
        }
        (other, _) => other,
    }
}
