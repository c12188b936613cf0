//! All members meet: nobody goes on before everybody has come.
//!
//! A count of those who have come, and the number of the meeting. The last to come resets the count and then raises the number;
//! the others wait for the number to change. The count is reset before the number is raised, so a member that is early for the
//! next meeting finds it at zero. What a member wrote before the meeting, every member sees after it: each arrival releases
//! (and, by `AcqRel`, the last arrival acquires them all), the raised number releases, those who wait acquire.
//!
//! The word of the count also holds the number of its meeting and whether somebody sleeps. A member marks its sleep there as long
//! as somebody is missing at its own meeting; so the last arrival, which adds itself to that word, learns of every sleeper.

use super::sync::{AtomicU64, Ordering, Padded};
use super::wait::{Rest, Spin, Waiting};

const SLEEPER: u64 = 1 << 31;
const COUNT: u64 = SLEEPER - 1;

#[derive(Debug, Default)]
pub(crate) struct Barrier {
    /// The number of the meeting, whether somebody sleeps, and how many have come.
    come: Padded<AtomicU64>,
    /// The number of the meeting, which members wait on.
    meeting: Padded<AtomicU64>,
    rest: Rest,
}

impl Barrier {
    /// Waits for all `size` members; `false` if another one has failed.
    pub(crate) fn wait(&self, size: usize, waiting: &impl Waiting) -> bool {
        let before = self.come.0.fetch_add(1, Ordering::AcqRel);
        let meeting = before >> 32;
        if (before & COUNT) + 1 == size as u64 {
            let next = (meeting + 1) & (u64::MAX >> 32);
            self.come.0.store(next << 32, Ordering::Relaxed);
            self.meeting.0.store(next, Ordering::Release);
            if before & SLEEPER != 0 {
                self.rest.wake();
            }
            return true;
        }
        let mut spin = Spin::default();
        while self.meeting.0.load(Ordering::Acquire) == meeting {
            if waiting.failed() {
                return false;
            }
            if !spin.again(|elapsed| waiting.spins_on(elapsed)) && self.mark_sleeper(meeting, size) {
                let over = || self.meeting.0.load(Ordering::Acquire) != meeting || waiting.failed();
                waiting.sleep(|| self.rest.sleep_until(over));
            }
        }
        if spin.is_long() {
            waiting.waited(&mut spin);
        }
        true
    }

    /// Marks that somebody sleeps at this meeting; `false` if all have come to it.
    fn mark_sleeper(&self, meeting: u64, size: usize) -> bool {
        let mut word = self.come.0.load(Ordering::Relaxed);
        while word >> 32 == meeting && word & COUNT < size as u64 {
            let marked = word | SLEEPER;
            match self.come.0.compare_exchange_weak(word, marked, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(changed) => word = changed,
            }
        }
        false
    }

    /// Wakes those who sleep, after a member has failed.
    pub(crate) fn wake(&self) {
        self.rest.wake();
    }

    /// Forgets who has come; for after a meeting that was abandoned, when nobody waits any more.
    pub(crate) fn reset(&self) {
        self.come.0.store(self.meeting.0.load(Ordering::Relaxed) << 32, Ordering::Relaxed);
    }
}
