//! How far each member has come: point-to-point waiting.
//!
//! One counter a member, written by that member alone and only upwards. What a member wrote before it announced a count, whoever
//! waits for that count sees.
//!
//! Whoever sleeps leaves the count that it waits for beside the counter; an announcement that reaches this count wakes it. An
//! announcement is a plain store: to order it before the look at that count takes a fence, and announcements are too many for
//! that. So an announcement at the very moment at which another member falls asleep may not see it, and a sleeper looks for
//! itself every millisecond. That is also how it learns that a member has failed.

use super::sync::{AtomicUsize, Ordering, Padded};
use super::wait::{Rest, Spin, Waiting};
use std::time::Duration;

/// How long a member sleeps without looking for itself.
const LONGEST_SLEEP: Duration = Duration::from_millis(1);

/// Nobody sleeps.
const NOBODY: usize = usize::MAX;

/// The counters of a team.
#[derive(Debug)]
pub(crate) struct Progress {
    counters: Box<[Padded<Counter>]>,
}

/// The counter of one member, on cache lines of its own.
#[derive(Debug)]
struct Counter {
    done: AtomicUsize,
    /// The least count that somebody sleeps for.
    wanted: AtomicUsize,
    rest: Rest,
}

impl Progress {
    pub(crate) fn new(members: usize) -> Self {
        let counter =
            || Counter { done: AtomicUsize::new(0), wanted: AtomicUsize::new(NOBODY), rest: Rest::default() };
        Progress { counters: (0..members).map(|_| Padded(counter())).collect() }
    }

    /// Members that there are counters for.
    pub(crate) fn members(&self) -> usize {
        self.counters.len()
    }

    /// Announces that `member` has come to `count`.
    #[inline]
    pub(crate) fn announce(&self, member: usize, count: usize) {
        let counter = &self.counters[member].0;
        counter.done.store(count, Ordering::Release);
        if count >= counter.wanted.load(Ordering::Relaxed) {
            counter.rest.wake_after(|| counter.wanted.store(NOBODY, Ordering::Relaxed));
        }
    }

    /// Waits until `member` has come to `count`; `false` if another one has failed.
    #[inline]
    pub(crate) fn wait(&self, member: usize, count: usize, waiting: &impl Waiting) -> bool {
        let counter = &self.counters[member].0;
        let mut spin = Spin::default();
        while counter.done.load(Ordering::Acquire) < count {
            if waiting.failed() {
                return false;
            }
            if !spin.again(|elapsed| waiting.spins_on(elapsed)) {
                waiting.sleep(|| counter.sleep_until(count));
            }
        }
        if spin.is_long() {
            waiting.waited(&mut spin);
        }
        true
    }
}

impl Counter {
    /// Sleeps a while; until the counter has come to `count` at the longest.
    fn sleep_until(&self, count: usize) {
        let mark = || _ = self.wanted.fetch_min(count, Ordering::SeqCst);
        self.rest.sleep_at_most(LONGEST_SLEEP, mark, || self.done.load(Ordering::SeqCst) >= count);
    }
}

impl Default for Progress {
    fn default() -> Self {
        Progress::new(0)
    }
}
