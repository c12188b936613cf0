//! The time that a set-up takes, and what goes wrong on the way.

use super::recover::find_shift;
use crate::choice::PrecondSpec;
use crate::error::{BackendError, SetupError};
use crate::operator::Preconditioner;
use crate::report::{Recovery, Seconds};
use crate::space::Space;
use std::time::Instant;

/// The seconds of each phase of a set-up, and what was recovered from.
#[derive(Debug, Clone, Default)]
pub struct SetupRecorder {
    pub(crate) seconds: Seconds,
    pub(crate) recovery: Vec<Recovery>,
    /// The diagonal is taken in its form that cannot fail.
    pub(crate) robust: bool,
    /// The row of A at each place, if what is factored now is permuted.
    pub(crate) rows: Option<Vec<u32>>,
}

impl SetupRecorder {
    /// Factors, if need be with a shift that `attempt` is given; the shift. Processes of a space go on alike: what fails for one
    /// has failed for all.
    pub fn factor<S: Space<Real = f64>>(
        &mut self,
        space: &S,
        (recover, kind): (bool, PrecondSpec),
        begin: f64,
        mut attempt: impl FnMut(f64) -> Result<(), SetupError>,
    ) -> Result<f64, SetupError> {
        let rows = self.rows.clone();
        let mut attempt = |shift| {
            let result = attempt(shift).map_err(|error| error.in_order_of_a(rows.as_deref()));
            agree(space, result)
        };
        let mut recovery = std::mem::take(&mut self.recovery);
        let shift = self.factoring(|| match recover {
            true => find_shift(kind, begin, attempt, &mut recovery),
            false => attempt(begin).map(|()| begin),
        });
        self.recovery = recovery;
        shift
    }

    /// The same for a preconditioner that there is room for.
    pub fn factor_with<S: Space<Real = f64>, K: ?Sized>(
        &mut self,
        space: &S,
        options: (bool, PrecondSpec),
        source: &K,
        m: &mut impl Preconditioner<S, K>,
    ) -> Result<f64, SetupError> {
        self.factor(space, options, 0.0, |shift| {
            m.set_shift(shift);
            m.refactor(space, source)
        })
    }

    /// Work on the pattern, in a span, its seconds added up.
    pub fn analyzing<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let _span = tracing::info_span!("analyze").entered();
        let started = Instant::now();
        let result = work();
        self.seconds.analyze += started.elapsed().as_secs_f64();
        result
    }

    /// Work on the values, in a span, its seconds added up.
    pub fn factoring<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let _span = tracing::info_span!("factor").entered();
        let started = Instant::now();
        let result = work();
        self.seconds.factor += started.elapsed().as_secs_f64();
        result
    }
}

/// The result of all processes of a space: the bad pivot of the smallest row, if one of them has one.
fn agree<S: Space<Real = f64>>(space: &S, own: Result<(), SetupError>) -> Result<(), SetupError> {
    let mine = match &own {
        Ok(()) => None,
        Err(SetupError::BadPivot { row, value }) => Some((*row, *value)),
        Err(_) => Some((usize::MAX, f64::NAN)),
    };
    match (space.first(mine)?, own) {
        (None, own) => own,
        (Some((usize::MAX, _)), Ok(())) => {
            Err(BackendError::Failed { what: "another process could not factor its part".into() }.into())
        }
        (Some((row, value)), Ok(()) | Err(SetupError::BadPivot { .. })) if row < usize::MAX => {
            Err(SetupError::BadPivot { row, value })
        }
        (_, own) => own,
    }
}
