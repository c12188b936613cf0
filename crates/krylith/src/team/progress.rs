//! How far each member has come: point-to-point waiting.
//!
//! One counter a member, written by that member alone and only upwards. What a member wrote before it announced a count, whoever
//! waits for that count sees.

use super::sync::{AtomicUsize, Backoff, Ordering, Padded};

/// The counters of a team.
#[derive(Debug)]
pub(crate) struct Progress {
    done: Box<[Padded<AtomicUsize>]>,
}

impl Progress {
    pub(crate) fn new(members: usize) -> Self {
        Progress { done: (0..members).map(|_| Padded(AtomicUsize::new(0))).collect() }
    }

    /// Members that there are counters for.
    pub(crate) fn members(&self) -> usize {
        self.done.len()
    }

    /// Announces that `member` has come to `count`.
    #[inline]
    pub(crate) fn announce(&self, member: usize, count: usize) {
        self.done[member].0.store(count, Ordering::Release);
    }

    /// Waits until `member` has come to `count`. `failed` is asked now and then; once it says yes, the wait ends with `false`.
    #[inline]
    pub(crate) fn wait(&self, member: usize, count: usize, failed: impl Fn() -> bool) -> bool {
        let counter = &self.done[member].0;
        let mut backoff = Backoff::new();
        while counter.load(Ordering::Acquire) < count {
            if failed() {
                return false;
            }
            backoff.wait();
        }
        true
    }
}

impl Default for Progress {
    fn default() -> Self {
        Progress::new(0)
    }
}
