//! How a thread of the team waits: it spins, and when that has taken long it sleeps until it is woken.
//!
//! What a member waits for is usually a fraction of a microsecond away, so it first looks again and again without any system
//! call, and for the first rounds without a clock. A wait that lasts longer has one of two reasons. The work may be uneven: then
//! spinning on is right, since waking up a sleeper takes tens of microseconds. Or the operating system has given the core of the
//! awaited member to another program, for some milliseconds: then a thread that spins uses up its own share of processor time,
//! which it lacks when the awaited member is back, and one that yields gives its core away for a whole time slice. A sleeping
//! thread keeps its share and is woken the moment it can go on. [`Waiting::spins_on`] decides how long a thread spins.
//!
//! A thread that goes to sleep leaves a mark, and whoever brings what it waits for looks for the mark and wakes it. The mark is in
//! a word that the other side changes by an atomic read-modify-write anyway (the barrier's count, the gate's word), so one of
//! the two sees the other and no wake-up is lost; a side that finds no mark pays nothing. Only the progress counters are
//! stored, not exchanged; see there.

use super::sync::{Condvar, Mutex, MutexGuard};
use std::sync::PoisonError;
use std::time::Duration;
#[cfg(not(loom))]
use std::time::Instant;

/// What a thread does while it waits inside an operation.
pub(crate) trait Waiting {
    /// Whether to spin on in a wait that has lasted so long; otherwise it sleeps.
    fn spins_on(&self, elapsed: Duration) -> bool;

    /// Whether another member has panicked, so that the wait is over.
    fn failed(&self) -> bool;

    /// Runs `sleep`, which blocks the thread.
    fn sleep(&self, sleep: impl FnOnce());

    /// At the end of a wait that has taken longer than the first rounds.
    fn waited(&self, spin: &mut Spin);
}

/// Rounds of spinning without a look at the clock: some microseconds.
#[cfg(not(loom))]
const FREE_ROUNDS: u32 = 256;
/// Rounds from one look at the clock to the next.
#[cfg(not(loom))]
const CLOCK_ROUNDS: u32 = 16;

/// One wait.
#[cfg(not(loom))]
#[derive(Debug, Default)]
pub(crate) struct Spin {
    rounds: u32,
    began: Option<Instant>,
}

#[cfg(not(loom))]
impl Spin {
    /// Spins one round; `false` when it is time to sleep. `spins_on` is asked now and then, after the first rounds.
    #[inline]
    pub(crate) fn again(&mut self, spins_on: impl FnOnce(Duration) -> bool) -> bool {
        std::hint::spin_loop();
        self.rounds = self.rounds.wrapping_add(1);
        self.rounds < FREE_ROUNDS || !self.rounds.is_multiple_of(CLOCK_ROUNDS) || spins_on(self.elapsed())
    }

    /// Whether the wait has lasted longer than the first rounds.
    #[inline]
    pub(crate) fn is_long(&self) -> bool {
        self.began.is_some()
    }

    /// How long the wait has lasted, the first rounds not counted.
    #[cold]
    pub(crate) fn elapsed(&mut self) -> Duration {
        self.began.get_or_insert_with(Instant::now).elapsed()
    }
}

/// One wait in a model. There is no time: every wait may be long.
#[cfg(loom)]
#[derive(Debug, Default)]
pub(crate) struct Spin;

#[cfg(loom)]
impl Spin {
    pub(crate) fn again(&mut self, spins_on: impl FnOnce(Duration) -> bool) -> bool {
        loom::thread::yield_now();
        spins_on(Duration::ZERO)
    }

    pub(crate) fn is_long(&self) -> bool {
        true
    }

    pub(crate) fn elapsed(&mut self) -> Duration {
        Duration::ZERO
    }
}

/// Where threads sleep until what they wait for has come.
#[derive(Debug, Default)]
pub(crate) struct Rest {
    lock: Mutex<()>,
    changed: Condvar,
}

impl Rest {
    /// Sleeps until `ready`. Whoever makes it so calls [`wake`](Self::wake) afterwards.
    #[cold]
    pub(crate) fn sleep_until(&self, ready: impl Fn() -> bool) {
        let mut guard = self.lock();
        while !ready() {
            guard = self.changed.wait(guard).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Sleeps until it is woken or the time is over; not at all if `ready`, which is asked after `mark`.
    #[cold]
    pub(crate) fn sleep_at_most(&self, limit: Duration, mark: impl FnOnce(), ready: impl Fn() -> bool) {
        let guard = self.lock();
        mark();
        if ready() {
            return;
        }
        #[cfg(not(loom))]
        drop(self.changed.wait_timeout(guard, limit).unwrap_or_else(PoisonError::into_inner));
        // In a model the time may be over at any moment.
        #[cfg(loom)]
        {
            let _ = limit;
            drop(guard);
            loom::thread::yield_now();
        }
    }

    /// Wakes all who sleep here.
    #[cold]
    pub(crate) fn wake(&self) {
        self.wake_after(|| ());
    }

    /// Wakes all who sleep here, after `unmark`, which no sleeper's `mark` comes between.
    #[cold]
    pub(crate) fn wake_after(&self, unmark: impl FnOnce()) {
        let guard = self.lock();
        unmark();
        drop(guard);
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, ()> {
        self.lock.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
