//! Who takes part in a job: those who come before the caller closes the gate.
//!
//! One word holds the number of the job, whether the gate is closed, and how many have come in. The caller opens the gate with
//! the next number; a worker comes in by adding one to the count, as long as the number is the one it saw and the gate is open;
//! the caller closes it and so fixes the count. Whoever came in leaves after its work, and the caller waits until all have left.
//!
//! What the caller wrote before it opened the gate, those who came in may read until they leave: opening releases and coming in
//! acquires; leaving releases and the caller's last look acquires. A worker that finds the gate closed has missed the job; it
//! says so, and is expected again at the next one.
//!
//! The word also has a mark for each of the three reasons to sleep at a gate: the caller until enough have come in, those who
//! have come in until the gate is closed, workers until the next job. The count of those who left has one for the caller. Each
//! side changes the word by an atomic exchange and looks at the marks it finds: no sleeper is missed.

use super::sync::{AtomicU64, AtomicUsize, Ordering, Padded};
use super::wait::{Rest, Spin, Waiting};
use std::time::Duration;

const CLOSED: u64 = 1 << 31;
/// The caller sleeps until enough have come in.
const CALLER_SLEEPS: u64 = 1 << 30;
/// Somebody who has come in sleeps until the gate is closed.
const INSIDE_SLEEPS: u64 = 1 << 29;
/// A worker sleeps until the next job.
const OUTSIDE_SLEEPS: u64 = 1 << 28;
const COUNT: u64 = OUTSIDE_SLEEPS - 1;

/// In the count of those who left: the caller sleeps until all have.
const AWAITED: usize = 1 << 31;

#[derive(Debug)]
pub(crate) struct Gate {
    word: Padded<AtomicU64>,
    left: Padded<AtomicUsize>,
    late: Padded<AtomicUsize>,
    /// How many the caller wants to see come in before it is woken.
    expected: AtomicUsize,
    /// Where the caller sleeps, and those who have come in.
    inside: Rest,
    /// Where workers sleep between jobs.
    outside: Rest,
}

/// The number of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Job(u64);

#[cfg(loom)]
impl Job {
    pub(crate) fn number(self) -> u64 {
        self.0
    }
}

impl Default for Gate {
    fn default() -> Self {
        Gate {
            word: Padded(AtomicU64::new(CLOSED)),
            left: Padded::default(),
            late: Padded::default(),
            expected: AtomicUsize::new(0),
            inside: Rest::default(),
            outside: Rest::default(),
        }
    }
}

/// What only the caller does.
impl Gate {
    /// Announces the next job; whether somebody slept.
    pub(crate) fn open(&self) -> bool {
        self.left.0.store(0, Ordering::Relaxed);
        let next = ((self.word.0.load(Ordering::Relaxed) >> 32) + 1) << 32;
        let slept = self.word.0.swap(next, Ordering::AcqRel) & OUTSIDE_SLEEPS != 0;
        if slept {
            self.outside.wake();
        }
        slept
    }

    /// How many have come in so far.
    pub(crate) fn come(&self) -> usize {
        (self.word.0.load(Ordering::Relaxed) & COUNT) as usize
    }

    /// Waits until so many have come in, at most for a time.
    pub(crate) fn wait_until_come(&self, expected: usize, limit: Option<Duration>, waiting: &impl Waiting) {
        let mut spin = Spin::default();
        while self.come() < expected {
            if spin.again(|elapsed| waiting.spins_on(elapsed) && limit.is_none_or(|limit| elapsed < limit)) {
                continue;
            }
            let remaining = limit.map(|limit| limit.saturating_sub(spin.elapsed()));
            if remaining == Some(Duration::ZERO) {
                break;
            }
            waiting.sleep(|| self.sleep_until_come(expected, remaining));
        }
        if spin.is_long() {
            waiting.waited(&mut spin);
        }
    }

    fn sleep_until_come(&self, expected: usize, limit: Option<Duration>) {
        self.expected.store(expected, Ordering::Relaxed);
        let mark = || _ = self.word.0.fetch_or(CALLER_SLEEPS, Ordering::Release);
        let enough = || self.come() >= expected;
        match limit {
            Some(limit) => self.inside.sleep_at_most(limit, mark, enough),
            None => {
                mark();
                self.inside.sleep_until(enough);
            }
        }
    }

    /// Nobody comes in any more; how many have.
    pub(crate) fn close(&self) -> usize {
        let word = self.word.0.fetch_or(CLOSED, Ordering::Relaxed);
        if word & INSIDE_SLEEPS != 0 {
            self.inside.wake();
        }
        (word & COUNT) as usize
    }

    /// Waits until `come` workers have left.
    pub(crate) fn wait_until_left(&self, come: usize, waiting: &impl Waiting) {
        let mut spin = Spin::default();
        let left = || self.left.0.load(Ordering::Acquire) & !AWAITED >= come;
        while !left() {
            if !spin.again(|elapsed| waiting.spins_on(elapsed)) {
                self.left.0.fetch_or(AWAITED, Ordering::Relaxed);
                waiting.sleep(|| self.inside.sleep_until(left));
            }
        }
        if spin.is_long() {
            waiting.waited(&mut spin);
        }
    }

    /// Workers that came too late since this was last called.
    pub(crate) fn late(&self) -> usize {
        // A look first: usually nobody was, and looking does not take the line from the others.
        if self.late.0.load(Ordering::Relaxed) == 0 { 0 } else { self.late.0.swap(0, Ordering::Relaxed) }
    }
}

/// What workers do.
impl Gate {
    /// The job that was announced last.
    pub(crate) fn job(&self) -> Job {
        Job(self.word.0.load(Ordering::Acquire) >> 32)
    }

    /// Sleeps until there is another job than the one seen last.
    pub(crate) fn sleep_until_job(&self, seen: Job) {
        let mut word = self.word.0.load(Ordering::Relaxed);
        while Job(word >> 32) == seen {
            let marked = word | OUTSIDE_SLEEPS;
            match self.word.0.compare_exchange_weak(word, marked, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return self.outside.sleep_until(|| self.job() != seen),
                Err(changed) => word = changed,
            }
        }
    }

    /// Comes in; how many came before, or `None` if it is too late.
    pub(crate) fn enter(&self, job: Job) -> Option<usize> {
        let mut word = self.word.0.load(Ordering::Relaxed);
        while Job(word >> 32) == job && word & CLOSED == 0 {
            match self.word.0.compare_exchange_weak(word, word + 1, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => {
                    let before = (word & COUNT) as usize;
                    if word & CALLER_SLEEPS != 0 && before + 1 >= self.expected.load(Ordering::Relaxed) {
                        self.inside.wake();
                    }
                    return Some(before);
                }
                Err(changed) => word = changed,
            }
        }
        self.late.0.fetch_add(1, Ordering::Relaxed);
        None
    }

    /// After coming in: waits until the gate is closed; how many have come in.
    pub(crate) fn wait_until_closed(&self, waiting: &impl Waiting) -> usize {
        let mut spin = Spin::default();
        let closed = || self.word.0.load(Ordering::Relaxed) & CLOSED != 0;
        while !closed() {
            if !spin.again(|elapsed| waiting.spins_on(elapsed)) {
                self.word.0.fetch_or(INSIDE_SLEEPS, Ordering::Relaxed);
                waiting.sleep(|| self.inside.sleep_until(closed));
            }
        }
        self.come()
    }

    /// After the work, of `come` workers: the caller may take back what it gave.
    pub(crate) fn leave(&self, come: usize) {
        let before = self.left.0.fetch_add(1, Ordering::Release);
        if before & AWAITED != 0 && before - AWAITED + 1 >= come {
            self.inside.wake();
        }
    }
}
