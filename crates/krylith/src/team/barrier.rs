//! All members meet: nobody goes on before everybody has come.
//!
//! A count of those who have come, and a number of the meeting. The last to come resets the count and then raises the number;
//! the others wait for the number to change. The count is reset before the number is raised, so a member that is early for the
//! next meeting finds it at zero. What a member wrote before the meeting, every member sees after it: each arrival releases
//! (and, by `AcqRel`, the last arrival acquires them all), the raised number releases, those who wait acquire.

use super::sync::{AtomicUsize, Backoff, Ordering, Padded};

#[derive(Debug, Default)]
pub(crate) struct Barrier {
    come: Padded<AtomicUsize>,
    meeting: Padded<AtomicUsize>,
}

impl Barrier {
    /// Waits for all `size` members. `failed` is asked now and then; once it says yes, the wait ends with `false`.
    pub(crate) fn wait(&self, size: usize, failed: impl Fn() -> bool) -> bool {
        let meeting = self.meeting.0.load(Ordering::Relaxed);
        if self.come.0.fetch_add(1, Ordering::AcqRel) + 1 == size {
            self.come.0.store(0, Ordering::Relaxed);
            self.meeting.0.store(meeting.wrapping_add(1), Ordering::Release);
            return true;
        }
        let mut backoff = Backoff::new();
        while self.meeting.0.load(Ordering::Acquire) == meeting {
            if failed() {
                return false;
            }
            backoff.wait();
        }
        true
    }
}

impl Barrier {
    /// Forgets who has come; for after a meeting that was abandoned, when nobody waits any more.
    pub(crate) fn reset(&self) {
        self.come.0.store(0, Ordering::Relaxed);
    }
}
