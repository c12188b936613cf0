//! Whether the team is worth its members: when it shrinks, and when it grows again.
//!
//! Beside other programs a member loses its core for milliseconds, in the middle of an operation that takes a tenth of one, and
//! the others wait. Then fewer members are faster. The caller decides from its own account. Let it have spent *u* of processor
//! time on work and *w* waiting for the others, in a team of *n*. Without those who made it wait, in a team of *m*, it would have
//! worked *u n / m* and not waited. So the members that made it wait gained *u (n / m − 1)*, or a part of that where
//! memory is the limit, and cost *w*. The balance of cost and gain, never below zero, shrinks the team when it reaches
//! [`TOLERATED`]. Processor time does not pass while the caller itself has lost its core, which it would have alone as well.
//!
//! Waits are counted only after a worker was seen to lose its core (see `watch`). So on an idle machine nothing is counted, and uneven
//! work alone does not shrink a team. After a pause the team is complete again. A team that has to shrink soon after that has come
//! back too early, and the next pause is twice as long.

use std::time::Duration;

/// Balance at which the team shrinks: a time slice of the operating system is 3 to 4 ms, and one lost slice is no pattern.
pub(super) const TOLERATED: Duration = Duration::from_millis(5);

/// What of the gain is counted: two members of a team that share a memory bus are not twice as fast as one.
const EFFICIENCY: f64 = 0.6;

/// Work for which the gain is counted against one wait: a long time without waits does not make up for what comes after it.
const LONGEST_CREDIT: Duration = Duration::from_millis(10);

/// How long the team stays small.
const FIRST_PAUSE: Duration = Duration::from_millis(16);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// A team that shrinks within so many pauses after it grew has grown too early.
const EARLY: u32 = 4;

/// Times are counted from when the team was made.
#[derive(Debug, Default)]
pub(super) struct Policy {
    balance: Duration,
    pause: Duration,
    grown: Duration,
    resume: Duration,
}

/// What the caller has seen since its last account.
#[derive(Debug, Clone, Copy)]
pub(super) struct Account {
    pub(super) waited: Duration,
    pub(super) worked: Duration,
    /// Members now, and without those who made it wait.
    pub(super) members: usize,
    pub(super) fewer: usize,
}

impl Policy {
    /// Enters an account; whether the team is to shrink.
    pub(super) fn enter(&mut self, account: Account, now: Duration) -> bool {
        let ratio = account.members as f64 / account.fewer as f64 - 1.0;
        let gain = account.worked.min(LONGEST_CREDIT).mul_f64(EFFICIENCY * ratio);
        self.balance = (self.balance + account.waited).saturating_sub(gain);
        if self.balance < TOLERATED {
            return false;
        }
        let early = now.saturating_sub(self.grown) < self.pause * EARLY;
        self.pause = if early { (self.pause * 2).min(LONGEST_PAUSE) } else { FIRST_PAUSE };
        self.resume = now + self.pause;
        self.balance = Duration::ZERO;
        true
    }

    /// Whether the pause is over, so that the team grows.
    pub(super) fn resumes(&mut self, now: Duration) -> bool {
        let over = now >= self.resume;
        if over {
            self.grown = now;
            self.balance = Duration::ZERO;
        }
        over
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn pair(waited: Duration, worked: Duration) -> Account {
        Account { waited, worked, members: 2, fewer: 1 }
    }

    #[test]
    fn waiting_that_the_gain_outweighs_is_tolerated_for_ever() {
        let mut policy = Policy::default();
        for k in 0..10_000u32 {
            assert!(!policy.enter(pair(4 * MS, 8 * MS), 12 * MS * k));
        }
    }

    #[test]
    fn one_lost_slice_is_tolerated_and_slice_after_slice_is_not() {
        let mut policy = Policy::default();
        assert!(!policy.enter(pair(4 * MS, MS), 100 * MS));
        assert!(policy.enter(pair(4 * MS, MS), 110 * MS));
        assert!(!policy.resumes(120 * MS));
        assert!(policy.resumes(127 * MS));
    }

    /// Of eight members one is dropped for an eighth of the loss that drops the other of two.
    #[test]
    fn the_larger_the_team_the_less_a_member_is_worth() {
        let one_of_eight = Account { waited: 6 * MS, worked: 10 * MS, members: 8, fewer: 7 };
        assert!(Policy::default().enter(one_of_eight, MS));
        assert!(!Policy::default().enter(pair(6 * MS, 10 * MS), MS));
        let seven_of_eight = Account { waited: 40 * MS, worked: 10 * MS, members: 8, fewer: 1 };
        assert!(!Policy::default().enter(seven_of_eight, MS));
    }

    #[test]
    fn pauses_double_up_to_a_second_and_begin_anew_after_a_good_while() {
        let mut policy = Policy::default();
        let mut now = 100 * MS;
        for pause in [16, 32, 64, 128, 256, 512, 1000, 1000] {
            now += 10 * MS;
            assert!(policy.enter(pair(8 * MS, MS), now));
            assert!(!policy.resumes(now + MS * (pause - 1)), "{pause}");
            now += pause * MS;
            assert!(policy.resumes(now), "{pause}");
        }
        now += 5000 * MS;
        assert!(policy.enter(pair(8 * MS, MS), now));
        assert!(policy.resumes(now + 16 * MS));
    }
}
