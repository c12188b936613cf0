//! Seconds of the phases of a set-up, and of applications, from the spans that the library opens around them.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::with_default;
use tracing::{Event, Metadata, Subscriber};

/// The spans of an approximate inverse, in the order of the set-up.
pub const PHASES: [&str; 10] =
    ["choose", "compare", "prefilter", "powers", "grow", "copy", "solve", "filter", "transpose", "store"];

/// The span of an application, behind the phases.
const APPLY: (usize, &str) = (PHASES.len(), "apply");

/// The part of the library whose spans are counted.
const TARGET: &str = "krylith::precond::fsai";

/// Seconds by phase, as [`PHASES`] has them.
pub type Seconds = [f64; PHASES.len()];

/// Calls a function and adds up the seconds of the phases in it, on this thread.
pub fn timed<R>(call: impl FnOnce() -> R) -> (R, Seconds) {
    let (result, seconds, _) = clocked(call);
    (result, seconds)
}

/// Applications of an approximate inverse.
#[derive(Debug, Clone, Copy, Default)]
pub struct Applications {
    pub count: usize,
    /// Of all of them.
    pub seconds: f64,
    /// That one of them reads and writes.
    pub bytes: u64,
}

/// Calls a function and adds up the applications in it, on this thread.
pub fn applications<R>(call: impl FnOnce() -> R) -> (R, Applications) {
    let (result, _, applied) = clocked(call);
    (result, applied)
}

fn clocked<R>(call: impl FnOnce() -> R) -> (R, Seconds, Applications) {
    let state = Arc::new(Mutex::new(State::default()));
    let result = with_default(Clock(Arc::clone(&state)), call);
    let state = state.lock().unwrap_or_else(PoisonError::into_inner);
    (result, state.seconds, state.applied)
}

#[derive(Default)]
struct State {
    /// The phase of each span, and when it was entered.
    spans: Vec<(usize, Option<Instant>)>,
    seconds: Seconds,
    applied: Applications,
}

/// Takes the bytes of an application.
impl Visit for Applications {
    fn record_u64(&mut self, field: &Field, value: u64) {
        if field.name() == "bytes" {
            self.bytes = value;
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn std::fmt::Debug) {}
}

struct Clock(Arc<Mutex<State>>);

impl Clock {
    fn with<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn phase(metadata: &Metadata<'_>) -> Option<usize> {
    let known = PHASES.iter().position(|&name| name == metadata.name());
    let known = known.or((metadata.name() == APPLY.1).then_some(APPLY.0));
    known.filter(|_| metadata.target().starts_with(TARGET))
}

impl Subscriber for Clock {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_span() && phase(metadata).is_some()
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        self.with(|state| {
            span.record(&mut state.applied);
            state.spans.push((phase(span.metadata()).unwrap_or(0), None));
            Id::from_u64(state.spans.len() as u64)
        })
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {}

    fn enter(&self, id: &Id) {
        self.with(|state| state.spans[id.into_u64() as usize - 1].1 = Some(Instant::now()));
    }

    fn exit(&self, id: &Id) {
        self.with(|state| {
            let (phase, entered) = state.spans[id.into_u64() as usize - 1];
            let seconds = entered.map_or(0.0, |at| at.elapsed().as_secs_f64());
            match phase == APPLY.0 {
                true => {
                    state.applied.count += 1;
                    state.applied.seconds += seconds;
                }
                false => state.seconds[phase] += seconds,
            }
        });
    }
}
