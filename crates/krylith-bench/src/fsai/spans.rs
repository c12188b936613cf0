//! Seconds of the phases of a set-up, from the spans that the library opens around them.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::with_default;
use tracing::{Event, Metadata, Subscriber};

/// The spans of an approximate inverse, in the order of the set-up.
pub const PHASES: [&str; 9] =
    ["compare", "prefilter", "powers", "grow", "copy", "solve", "filter", "transpose", "store"];

/// The part of the library whose spans are counted.
const TARGET: &str = "krylith::precond::fsai";

/// Seconds by phase, as [`PHASES`] has them.
pub type Seconds = [f64; PHASES.len()];

/// Calls a function and adds up the seconds of the phases in it, on this thread.
pub fn timed<R>(call: impl FnOnce() -> R) -> (R, Seconds) {
    let state = Arc::new(Mutex::new(State::default()));
    let result = with_default(Clock(Arc::clone(&state)), call);
    let seconds = state.lock().unwrap_or_else(PoisonError::into_inner).seconds;
    (result, seconds)
}

#[derive(Default)]
struct State {
    /// The phase of each span, and when it was entered.
    spans: Vec<(usize, Option<Instant>)>,
    seconds: Seconds,
}

struct Clock(Arc<Mutex<State>>);

impl Clock {
    fn with<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn phase(metadata: &Metadata<'_>) -> Option<usize> {
    PHASES.iter().position(|&name| name == metadata.name()).filter(|_| metadata.target().starts_with(TARGET))
}

impl Subscriber for Clock {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_span() && phase(metadata).is_some()
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        self.with(|state| {
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
            state.seconds[phase] += entered.map_or(0.0, |at| at.elapsed().as_secs_f64());
        });
    }
}
