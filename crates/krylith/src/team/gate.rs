//! Who takes part in a job: those who come before the caller closes the gate.
//!
//! One word holds the number of the job, whether the gate is closed, and how many have come in. The caller opens the gate with
//! the next number; a worker comes in by adding one to the count, as long as the number is the one it saw and the gate is open;
//! the caller closes it and so fixes the count. Whoever came in leaves after its work, and the caller waits until all have left.
//!
//! What the caller wrote before it opened the gate, those who came in may read until they leave: opening releases and coming in
//! acquires; leaving releases and the caller's last look acquires. A worker that finds the gate closed has missed the job; it
//! says so, and is expected again at the next one.

use super::sync::{AtomicU64, AtomicUsize, Backoff, Ordering, Padded};

const CLOSED: u64 = 1 << 31;
const COUNT: u64 = CLOSED - 1;

#[derive(Debug)]
pub(crate) struct Gate {
    word: Padded<AtomicU64>,
    left: Padded<AtomicUsize>,
    late: Padded<AtomicUsize>,
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
        Gate { word: Padded(AtomicU64::new(CLOSED)), left: Padded::default(), late: Padded::default() }
    }
}

impl Gate {
    /// The job that was announced last.
    pub(crate) fn job(&self, order: Ordering) -> Job {
        Job(self.word.0.load(order) >> 32)
    }

    /// The caller: announces the next job. In one order with the flags of workers that park.
    pub(crate) fn open(&self) {
        self.left.0.store(0, Ordering::Relaxed);
        let next = Job((self.word.0.load(Ordering::Relaxed) >> 32).wrapping_add(1));
        self.word.0.store(next.0 << 32, Ordering::SeqCst);
    }

    /// The caller: how many have come in so far.
    pub(crate) fn come(&self) -> usize {
        (self.word.0.load(Ordering::Relaxed) & COUNT) as usize
    }

    /// The caller: nobody comes in any more; how many have.
    pub(crate) fn close(&self) -> usize {
        (self.word.0.fetch_or(CLOSED, Ordering::Relaxed) & COUNT) as usize
    }

    /// The caller: waits until `come` workers have left.
    pub(crate) fn wait_until_left(&self, come: usize) {
        let mut backoff = Backoff::new();
        while self.left.0.load(Ordering::Acquire) < come {
            backoff.wait();
        }
    }

    /// The caller: workers that came too late since this was last asked.
    pub(crate) fn late(&self) -> usize {
        // A look first: usually nobody was, and looking does not take the line from the others.
        if self.late.0.load(Ordering::Relaxed) == 0 { 0 } else { self.late.0.swap(0, Ordering::Relaxed) }
    }

    /// A worker: comes in, and learns how many came before it; `None` if it is too late.
    pub(crate) fn enter(&self, job: Job) -> Option<usize> {
        let mut word = self.word.0.load(Ordering::Relaxed);
        while Job(word >> 32) == job && word & CLOSED == 0 {
            match self.word.0.compare_exchange_weak(word, word + 1, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return Some((word & COUNT) as usize),
                Err(changed) => word = changed,
            }
        }
        self.late.0.fetch_add(1, Ordering::Relaxed);
        None
    }

    /// A worker that has come in: waits until the gate is closed; how many have come in.
    pub(crate) fn wait_until_closed(&self) -> usize {
        let mut backoff = Backoff::new();
        loop {
            let word = self.word.0.load(Ordering::Relaxed);
            if word & CLOSED != 0 {
                return (word & COUNT) as usize;
            }
            backoff.wait();
        }
    }

    /// A worker that has come in: its work is done.
    pub(crate) fn leave(&self) {
        self.left.0.fetch_add(1, Ordering::Release);
    }
}
