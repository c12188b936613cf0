//! The time that a set-up takes, and what goes wrong on the way.

use super::recover::find_shift;
use crate::error::SetupError;
use crate::operator::Preconditioner;
use crate::outcome::{Recovery, Seconds};
use crate::precond::PrecondSpec;
use crate::setup::Considered;
use crate::space::{Space, agree};
use std::time::Instant;

/// The seconds of each phase of a set-up, and what was recovered from.
#[derive(Debug, Clone, Default)]
pub struct SetupRecorder {
    pub(crate) seconds: Seconds,
    pub(crate) recovery: Vec<Recovery>,
    /// The stores that were asked, in order.
    pub(crate) considered: Vec<Considered>,
    /// Floating-point operations of the complete factor that was analyzed last.
    pub(crate) operations: Option<f64>,
}

/// How a factor is attempted.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Attempts<'a> {
    /// What is factored.
    pub kind: &'a PrecondSpec,
    /// Whether a bad pivot is followed by a shift.
    pub recover: bool,
    /// The shift of the first attempt.
    pub begin: f64,
    /// The row of A at each place, where what is factored is permuted.
    pub rows: Option<&'a [u32]>,
}

impl<'a> Attempts<'a> {
    /// Without a shift, of rows in the order of A.
    pub fn new(kind: &'a PrecondSpec, recover: bool) -> Self {
        Attempts { kind, recover, begin: 0.0, rows: None }
    }

    /// The same without another attempt after a bad pivot.
    pub fn once(self) -> Self {
        Attempts { recover: false, ..self }
    }
}

impl SetupRecorder {
    /// Factors, if need be with a shift that `attempt` is given; the shift. Processes of a space go on alike: what fails for one
    /// has failed for all.
    pub fn factor<S: Space<Real = f64>>(
        &mut self,
        space: &S,
        attempts: Attempts<'_>,
        mut attempt: impl FnMut(f64) -> Result<(), SetupError>,
    ) -> Result<f64, SetupError> {
        let Attempts { kind, recover, begin, rows } = attempts;
        let mut attempt = |shift| {
            let result = attempt(shift).map_err(|error| error.in_order_of_a(rows));
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
        attempts: Attempts<'_>,
        source: &K,
        m: &mut impl Preconditioner<S, K>,
    ) -> Result<f64, SetupError> {
        self.factor(space, attempts, |shift| {
            m.set_shift(shift);
            m.refactor(space, source)
        })
    }

    /// Why the last store that was asked refused.
    pub(crate) fn refusal(&self) -> String {
        let refused = self.considered.iter().rev().find(|considered| !considered.taken);
        refused.map_or(String::new(), |considered| considered.reason.clone())
    }

    /// Work on the pattern, in a span, its seconds added up.
    pub fn analyzing<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let phase = Phase::begin(tracing::info_span!("analyze"));
        let result = work();
        self.seconds.analyze += phase.end();
        result
    }

    /// Copies to a device, in a span, their seconds added up.
    pub fn copying<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let phase = Phase::begin(tracing::info_span!("copy"));
        let result = work();
        self.seconds.copy += phase.end();
        result
    }

    /// Work on the values, in a span, its seconds added up.
    pub fn factoring<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let phase = Phase::begin(tracing::info_span!("factor"));
        let result = work();
        self.seconds.factor += phase.end();
        result
    }
}

/// A phase that is being measured, in its span.
struct Phase {
    _span: tracing::span::EnteredSpan,
    started: Instant,
}

impl Phase {
    fn begin(span: tracing::Span) -> Self {
        Phase { _span: span.entered(), started: Instant::now() }
    }

    /// Its seconds.
    fn end(self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }
}
