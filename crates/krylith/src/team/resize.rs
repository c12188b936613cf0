//! The team shrinks and grows, between operations.

use super::adapt::{Account, Policy};
use super::clock::ThreadClock;
use super::watch::Slot;
use super::{Team, lock};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The caller's account of waits and work.
#[derive(Debug, Default)]
pub(super) struct Books {
    policy: Policy,
    /// The caller's clock, and what it showed at the last account.
    ran: Option<(ThreadClock, Duration)>,
}

impl Books {
    /// Processor time of the caller since this was last called; none if another thread was the caller then.
    fn worked(&mut self) -> Duration {
        let now = ThreadClock::current().and_then(|clock| Some((clock, clock.read()?)));
        let before = std::mem::replace(&mut self.ran, now);
        match (before, now) {
            (Some((before, then)), Some((clock, now))) if before == clock => now.saturating_sub(then),
            _ => Duration::ZERO,
        }
    }
}

impl Team {
    /// Enters the waits of the last operation into the account, and sends away those who cost more than they gain.
    #[cold]
    pub(super) fn settle(&self) {
        let watch = &self.shared.watch;
        let (waited, unshared) = watch.take_waited();
        let members = self.present().count() + 1;
        let lost = self.present().filter(|slot| slot.has_lost_core()).count();
        if members == 1 {
            return;
        }
        let fewer = members - lost.max(1);
        let mut books = lock(&self.books);
        let worked = books.worked().saturating_sub(unshared);
        let shrinks = books.policy.enter(Account { waited, worked, members, fewer }, watch.now());
        drop(books);
        if shrinks {
            // Where nobody is known to have lost its core, it is as good to do without one as without another.
            let last = self.present().last().filter(|_| lost == 0);
            self.present().filter(|slot| slot.has_lost_core()).chain(last).for_each(|slot| slot.bench.send());
            self.benched.store(self.size() - fewer, Ordering::Relaxed);
            self.history.shrank();
        }
        self.shared.slots.iter().for_each(|slot| slot.0.forget_lost_core());
    }

    /// While workers are on the bench: calls them back if the pause is over; whether the caller is still without any.
    #[cold]
    pub(super) fn stays_alone(&self) -> bool {
        let mut books = lock(&self.books);
        if books.policy.resumes(self.shared.watch.now()) {
            // Work done alone is no gain of the others.
            books.worked();
            self.shared.slots.iter().for_each(|slot| slot.0.bench.call_back());
            self.benched.store(0, Ordering::Relaxed);
            self.came.store(self.workers.len(), Ordering::Relaxed);
        }
        self.benched.load(Ordering::Relaxed) == self.workers.len()
    }

    /// Workers that take part.
    fn present(&self) -> impl Iterator<Item = &Slot> {
        let slots = self.shared.slots[..self.workers.len()].iter().map(|slot| &slot.0);
        slots.filter(|slot| !slot.bench.is_taken())
    }
}
