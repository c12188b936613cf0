//! What the caller learns while it waits: whether workers have lost their cores, and what the waiting costs.
//!
//! Nothing is measured in a wait of some microseconds. When one has lasted [`ALARMED_SPIN`], the caller reads the processor times
//! of the workers, and again when it is over. A worker that ran for less than half of that time, and did not sleep by its own
//! will, has lost its core. That raises an alarm for a while, in which all members spin only shortly before they sleep, and the
//! caller keeps account of its waits. Without an alarm members spin long: what they wait for is at work.
//!
//! The caller alone writes here, apart from the count of a worker's sleeps; orderings are relaxed because nothing depends on the
//! numbers but speed.

use super::bench::Bench;
use super::clock::ThreadClock;
use super::sync::Padded;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How long members spin before they sleep.
const CALM_SPIN: Duration = Duration::from_millis(1);
const ALARMED_SPIN: Duration = Duration::from_micros(40);

/// How long the caller has waited when it begins to watch the workers, unless it sleeps before.
const UNWATCHED: Duration = Duration::from_micros(200);

/// The least that an operation waits for workers that were asleep.
const CALM_PATIENCE: Duration = Duration::from_millis(1);
const ALARMED_PATIENCE: Duration = Duration::from_micros(200);

/// How long an alarm lasts.
const ALARM: Duration = Duration::from_secs(2);

/// The shortest time for which a lost core counts.
const LEAST_LOSS: Duration = Duration::from_micros(500);

/// What is known of a worker.
#[derive(Debug, Default)]
pub(super) struct Slot {
    pub(super) bench: Bench,
    /// Goes up when the worker falls asleep and when it wakes up.
    sleeps: AtomicUsize,
    clock: OnceLock<Option<ThreadClock>>,
    /// At the beginning of the caller's wait: the nanoseconds that the worker had run, and its sleeps.
    ran_before: AtomicU64,
    sleeps_before: AtomicUsize,
    /// Whether it has lost its core since the last account.
    lost_core: AtomicBool,
}

impl Slot {
    /// The worker's first act.
    pub(super) fn start(&self) {
        let _ = self.clock.set(ThreadClock::current());
    }

    /// The worker sleeps by its own will.
    pub(super) fn asleep(&self, sleep: impl FnOnce()) {
        self.sleeps.fetch_add(1, Ordering::Relaxed);
        sleep();
        self.sleeps.fetch_add(1, Ordering::Relaxed);
    }

    fn ran(&self) -> Option<u64> {
        Some(nanoseconds(self.clock.get()?.as_ref()?.read()?))
    }

    fn begin(&self) {
        self.sleeps_before.store(self.sleeps.load(Ordering::Relaxed), Ordering::Relaxed);
        self.ran_before.store(self.ran().unwrap_or(0), Ordering::Relaxed);
    }

    /// Whether the worker has lost its core for most of the time since `begin`. Where threads have no clocks, it has.
    fn end(&self, time: Duration) -> bool {
        let before = self.sleeps_before.load(Ordering::Relaxed);
        let slept = before % 2 == 1 || self.sleeps.load(Ordering::Relaxed) != before;
        let ran = self.ran().map_or(0, |ran| ran.saturating_sub(self.ran_before.load(Ordering::Relaxed)));
        let lost = !slept && 2 * ran < nanoseconds(time);
        if lost {
            self.lost_core.store(true, Ordering::Relaxed);
        }
        lost
    }

    /// Whether the worker has lost its core since the last account.
    pub(super) fn has_lost_core(&self) -> bool {
        self.lost_core.load(Ordering::Relaxed)
    }

    pub(super) fn forget_lost_core(&self) {
        self.lost_core.store(false, Ordering::Relaxed);
    }
}

pub(super) struct Watch {
    epoch: Instant,
    /// Until when members are alarmed: nanoseconds, 0 if never yet.
    alarm: AtomicU64,
    /// In the present wait: when the processor times were read, 0 if they were not, and how long the caller has slept.
    began: AtomicU64,
    slept: AtomicU64,
    /// Since the last account: waits, and work that the others had no part in.
    waited: AtomicU64,
    unshared: AtomicU64,
    /// The last operation that a worker missed, and how long it and those just before it took that a worker missed too.
    last_missed: AtomicU64,
    missed: AtomicU64,
}

impl Watch {
    pub(super) fn new() -> Self {
        let zero = || AtomicU64::new(0);
        Watch {
            epoch: Instant::now(),
            alarm: zero(),
            began: zero(),
            slept: zero(),
            waited: zero(),
            unshared: zero(),
            last_missed: zero(),
            missed: zero(),
        }
    }

    /// Time since the team was made.
    pub(super) fn now(&self) -> Duration {
        self.epoch.elapsed()
    }

    fn alarmed(&self) -> bool {
        let until = self.alarm.load(Ordering::Relaxed);
        until != 0 && nanoseconds(self.now()) < until
    }

    /// Whether a member spins on.
    pub(super) fn spins_on(&self, elapsed: Duration) -> bool {
        elapsed < ALARMED_SPIN || (elapsed < CALM_SPIN && !self.alarmed())
    }

    /// Whether the caller spins on.
    pub(super) fn caller_spins_on(&self, elapsed: Duration, slots: &[Padded<Slot>]) -> bool {
        let spins_on = self.spins_on(elapsed);
        if (!spins_on || elapsed >= UNWATCHED) && self.began.load(Ordering::Relaxed) == 0 {
            slots.iter().for_each(|slot| slot.0.begin());
            self.began.store(nanoseconds(self.now()), Ordering::Relaxed);
        }
        spins_on
    }

    /// The caller sleeps.
    pub(super) fn caller_sleeps(&self, sleep: impl FnOnce()) {
        let began = Instant::now();
        sleep();
        self.slept.fetch_add(nanoseconds(began.elapsed()), Ordering::Relaxed);
    }

    /// The end of a long wait of the caller.
    pub(super) fn caller_waited(&self, elapsed: impl FnOnce() -> Duration, slots: &[Padded<Slot>]) {
        let began = self.began.swap(0, Ordering::Relaxed);
        let slept = Duration::from_nanos(self.slept.swap(0, Ordering::Relaxed));
        if began != 0 {
            let now = self.now();
            let time = now.saturating_sub(Duration::from_nanos(began));
            let lost = slots.iter().filter(|slot| time >= LEAST_LOSS && slot.0.end(time)).count();
            if lost > 0 {
                self.alarm.store(nanoseconds(now + ALARM), Ordering::Relaxed);
            }
        }
        if self.alarmed() {
            // The caller may have lost its own core while it spun.
            let spun = elapsed().saturating_sub(slept).min(ALARMED_SPIN);
            self.waited.fetch_add(nanoseconds(spun + slept), Ordering::Relaxed);
            self.unshared.fetch_add(nanoseconds(spun), Ordering::Relaxed);
        }
    }

    /// Operation number `operation` took so long and a worker that could have come did not; perhaps the caller was `alone`.
    /// Several in a row mean that the worker has no core.
    pub(super) fn missed(&self, operation: u64, took: Duration, alone: bool) {
        let again = self.last_missed.swap(operation, Ordering::Relaxed) + 1 == operation;
        let before = if again { self.missed.load(Ordering::Relaxed) } else { 0 };
        self.missed.store(before + nanoseconds(took), Ordering::Relaxed);
        if before >= nanoseconds(LEAST_LOSS) {
            self.alarm.store(nanoseconds(self.now() + ALARM), Ordering::Relaxed);
        }
        if alone && self.alarmed() {
            self.unshared.fetch_add(nanoseconds(took), Ordering::Relaxed);
        }
    }

    /// The least that an operation waits for workers that were asleep.
    pub(super) fn patience_with_sleepers(&self) -> Duration {
        if self.alarmed() { ALARMED_PATIENCE } else { CALM_PATIENCE }
    }

    /// Whether there is anything to enter into the account.
    #[inline]
    pub(super) fn has_waited(&self) -> bool {
        self.waited.load(Ordering::Relaxed) != 0
    }

    /// Since this was last called: what the caller has waited, and its work that the others had no part in, spinning included.
    pub(super) fn take_waited(&self) -> (Duration, Duration) {
        let take = |count: &AtomicU64| Duration::from_nanos(count.swap(0, Ordering::Relaxed));
        (take(&self.waited), take(&self.unshared))
    }

    /// Ends a wait that was abandoned.
    pub(super) fn reset(&self) {
        self.began.store(0, Ordering::Relaxed);
        self.slept.store(0, Ordering::Relaxed);
    }
}

fn nanoseconds(time: Duration) -> u64 {
    time.as_nanos() as u64
}
