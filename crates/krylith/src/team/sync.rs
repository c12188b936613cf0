//! The atomics of the team: the standard ones, or `loom`'s when a model of them is checked.

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Two lines of cache: what one thread writes does not slow down what another one reads.
#[repr(align(128))]
#[derive(Debug, Default)]
pub(crate) struct Padded<T>(pub(crate) T);

/// Waiting: first spin, since what is waited for is usually a fraction of a microsecond away; then give way, so that more
/// threads than cores still make progress.
pub(crate) struct Backoff {
    spins: u32,
}

/// Rounds of spinning.
const SPINS: u32 = 256;

impl Backoff {
    pub(crate) fn new() -> Self {
        Backoff { spins: 0 }
    }

    /// How often this has waited.
    pub(crate) fn rounds(&self) -> u32 {
        self.spins
    }

    #[cfg(not(loom))]
    #[inline]
    pub(crate) fn wait(&mut self) {
        self.spins = self.spins.saturating_add(1);
        if self.spins < SPINS {
            std::hint::spin_loop();
        } else {
            std::thread::yield_now();
        }
    }

    #[cfg(loom)]
    pub(crate) fn wait(&mut self) {
        let _ = SPINS;
        self.spins += 1;
        loom::thread::yield_now();
    }
}
