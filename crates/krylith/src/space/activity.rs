//! What the time of an iteration goes into.

use serde::{Deserialize, Serialize};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// What a part of an iteration is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Activity {
    /// The iteration itself: what no other activity takes of it is work on vectors.
    Iteration,
    /// A product with A.
    Product,
    /// An application of the preconditioner.
    Preconditioner,
}

/// How often something was done, and how long it took in all.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Spent {
    /// How often.
    pub calls: u64,
    /// How long.
    pub seconds: f64,
}

/// Where the seconds of the iterations of a solve went. An operation that is fused with a product or with the preconditioner, such as an
/// inner product, counts there. Set-up and certification are not part of it.
///
/// On threads these are seconds of the clock; on a device those of its kernels, without what the host does between them.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Profile {
    /// Products with A. With Eisenstat's trick only the first residual takes one.
    pub products: Spent,
    /// Applications of the preconditioner; triangular sweeps, if it has any.
    pub preconditioner: Spent,
    /// Seconds of everything else: updates and inner products of vectors, looking at the residual.
    pub vectors: f64,
}

impl Profile {
    /// One activity has begun this often, and has taken so long.
    pub fn add(&mut self, activity: Activity, calls: u64, seconds: f64) {
        let spent = match activity {
            Activity::Iteration => {
                self.vectors += seconds;
                return;
            }
            Activity::Product => &mut self.products,
            Activity::Preconditioner => &mut self.preconditioner,
        };
        spent.calls += calls;
        spent.seconds += seconds;
    }

    /// Seconds of the iterations in all.
    pub fn seconds(&self) -> f64 {
        self.products.seconds + self.preconditioner.seconds + self.vectors
    }
}

/// Measures activities where it was told to. Those of one solve begin and end on one thread.
#[derive(Debug, Default)]
pub(super) struct Clock(Mutex<Measured>);

#[derive(Debug, Default)]
struct Measured {
    profile: Option<Profile>,
    current: Option<Activity>,
}

impl Clock {
    fn measured(&self) -> MutexGuard<'_, Measured> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins from zero, or stops to measure.
    pub(super) fn restart(&self, on: bool) {
        *self.measured() = Measured { profile: on.then(Profile::default), current: None };
    }

    pub(super) fn profile(&self) -> Option<Profile> {
        self.measured().profile
    }

    /// Does some work, whose seconds are then those of this activity and not of the one around it.
    pub(super) fn during<R>(&self, activity: Activity, work: impl FnOnce() -> R) -> R {
        let begun = self.begin(activity);
        let result = work();
        self.end(activity, begun);
        result
    }

    /// What to end with, where something is measured.
    fn begin(&self, activity: Activity) -> Option<Begun> {
        let mut measured = self.measured();
        measured.profile?;
        let around = measured.current.replace(activity);
        Some(Begun { around, at: Instant::now() })
    }

    fn end(&self, activity: Activity, begun: Option<Begun>) {
        let Some(Begun { around, at }) = begun else { return };
        let seconds = at.elapsed().as_secs_f64();
        let mut measured = self.measured();
        measured.current = around;
        if let Some(profile) = &mut measured.profile {
            profile.add(activity, 1, seconds);
            if let Some(around) = around {
                profile.add(around, 0, -seconds);
            }
        }
    }
}

/// An activity that is being measured.
struct Begun {
    /// The activity that it interrupts.
    around: Option<Activity>,
    at: Instant,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn seconds_belong_to_the_innermost_activity() {
        let clock = Clock::default();
        let wait = |milliseconds| std::thread::sleep(Duration::from_millis(milliseconds));
        clock.during(Activity::Product, || wait(1));
        assert_eq!(clock.profile(), None, "nobody has asked");
        clock.restart(true);
        clock.during(Activity::Iteration, || {
            wait(10);
            clock.during(Activity::Product, || {
                wait(20);
                clock.during(Activity::Preconditioner, || wait(30));
            });
            clock.during(Activity::Preconditioner, || wait(30));
        });
        let profile = clock.profile().unwrap();
        assert_eq!((profile.products.calls, profile.preconditioner.calls), (1, 2));
        // A sleep lasts at least as long as it was asked to.
        assert!(profile.vectors >= 0.01 && profile.products.seconds >= 0.02);
        assert!(profile.preconditioner.seconds >= 0.06 && profile.seconds() >= 0.09);
        clock.restart(false);
        assert_eq!(clock.profile(), None);
    }
}
