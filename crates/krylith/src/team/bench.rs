//! A worker that the caller has sent to the bench sleeps until it is called back: it takes part in no job and uses no processor
//! time.

use super::sync::{AtomicBool, Ordering};
use super::wait::Rest;

/// The place of one worker.
#[derive(Debug, Default)]
pub(crate) struct Bench {
    taken: AtomicBool,
    rest: Rest,
}

impl Bench {
    /// The caller: the worker takes no part from now on, apart from a job that it has already seen.
    pub(crate) fn send(&self) {
        self.taken.store(true, Ordering::Relaxed);
    }

    /// The caller: the worker takes part again.
    pub(crate) fn call_back(&self) {
        if self.is_taken() {
            self.rest.wake_after(|| self.taken.store(false, Ordering::Relaxed));
        }
    }

    /// Whether the worker is to stay away.
    #[inline]
    pub(crate) fn is_taken(&self) -> bool {
        self.taken.load(Ordering::Relaxed)
    }

    /// The worker: sleeps until it is called back.
    pub(crate) fn sleep(&self) {
        self.rest.sleep_until(|| !self.is_taken());
    }
}
