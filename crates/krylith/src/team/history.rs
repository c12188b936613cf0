//! What a team has done: how many members its operations had.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Counts since the last reset. The caller of `run` writes them; an operation of the full team only adds one to `operations`.
#[derive(Debug)]
pub(crate) struct History {
    size: usize,
    operations: AtomicU64,
    with_fewer: AtomicU64,
    least: AtomicUsize,
    shrinks: AtomicU64,
}

impl History {
    pub(super) fn new(size: usize) -> Self {
        History {
            size,
            operations: AtomicU64::new(0),
            with_fewer: AtomicU64::new(0),
            least: AtomicUsize::new(size),
            shrinks: AtomicU64::new(0),
        }
    }

    /// An operation that so many members run. One thread at a time, so there is nothing to exchange.
    #[inline]
    pub(super) fn ran(&self, members: usize) {
        let add = |count: &AtomicU64| count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        add(&self.operations);
        if members < self.size {
            add(&self.with_fewer);
            self.least.fetch_min(members, Ordering::Relaxed);
        }
    }

    pub(super) fn shrank(&self) {
        self.shrinks.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn reset(&self) {
        self.operations.store(0, Ordering::Relaxed);
        self.with_fewer.store(0, Ordering::Relaxed);
        self.least.store(self.size, Ordering::Relaxed);
        self.shrinks.store(0, Ordering::Relaxed);
    }

    /// Operations that the team ran.
    pub(crate) fn operations(&self) -> u64 {
        self.operations.load(Ordering::Relaxed)
    }

    /// Operations that fewer than all members ran.
    pub(crate) fn with_fewer(&self) -> u64 {
        self.with_fewer.load(Ordering::Relaxed)
    }

    /// Members of the operation that had the fewest.
    pub(crate) fn least_members(&self) -> usize {
        self.least.load(Ordering::Relaxed)
    }

    /// How often the team became smaller because members waited too long.
    pub(crate) fn shrinks(&self) -> u64 {
        self.shrinks.load(Ordering::Relaxed)
    }
}
