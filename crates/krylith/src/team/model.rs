//! Models of the gate, the barrier, the progress counters and the bench, run through every interleaving by `loom`:
//! `RUSTFLAGS="--cfg loom" cargo test --release -p krylith --lib team::model`.
//!
//! Members that spin go through every interleaving. Members that sleep do so at the first look that finds nothing, and then a
//! wake-up that is lost leaves all threads asleep, which `loom` reports as a deadlock; locks multiply the interleavings, so a
//! thread is interrupted at most three times there. Sleep at a progress counter is bounded by a time; in the models it may end
//! at any moment.
//!
//! There are two members: with three, two that wait give way to each other without end, which `loom` cannot tell from a deadlock.

use super::bench::Bench;
use super::gate::{Gate, Job};
use super::wait::{Spin, Waiting};
use super::{Barrier, Progress};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;
use std::time::Duration;

/// How a member waits; another one may fail.
struct Wait {
    sleeps: bool,
    failed: AtomicBool,
}

fn wait(sleeps: bool) -> Wait {
    Wait { sleeps, failed: AtomicBool::new(false) }
}

impl Waiting for Wait {
    fn spins_on(&self, _: Duration) -> bool {
        !self.sleeps
    }

    fn failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    fn sleep(&self, sleep: impl FnOnce()) {
        sleep();
    }

    fn waited(&self, _: &mut Spin) {}
}

/// Runs a model with members that spin, and with members that sleep.
fn check(model: impl Fn(bool) + Sync + Send + Copy + 'static) {
    loom::model(move || model(false));
    check_sleep(move || model(true));
}

fn check_sleep(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

/// Data that the synchronisation under test must protect: loom reports any access that is not ordered.
struct Cell(UnsafeCell<usize>);

// SAFETY: loom checks every access to the cell; that is the point of the model.
unsafe impl Sync for Cell {}
// SAFETY: as above.
unsafe impl Send for Cell {}

impl Cell {
    fn new() -> Self {
        Cell(UnsafeCell::new(0))
    }

    fn set(&self, value: usize) {
        // SAFETY: loom fails the test if this access can coincide with another.
        self.0.with_mut(|p| unsafe { *p = value });
    }

    fn get(&self) -> usize {
        // SAFETY: as above.
        self.0.with(|p| unsafe { *p })
    }
}

#[test]
fn what_was_written_before_the_barrier_is_seen_after_it() {
    check(|sleeps| {
        let shared = Arc::new((Barrier::default(), [Cell::new(), Cell::new()]));
        let other = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let (barrier, cells) = &*shared;
                for round in 1..=2 {
                    cells[1].set(round);
                    assert!(barrier.wait(2, &wait(sleeps)));
                    assert_eq!(cells[0].get(), round);
                    assert!(barrier.wait(2, &wait(sleeps)));
                }
            })
        };
        let (barrier, cells) = &*shared;
        for round in 1..=2 {
            cells[0].set(round);
            assert!(barrier.wait(2, &wait(sleeps)));
            assert_eq!(cells[1].get(), round);
            assert!(barrier.wait(2, &wait(sleeps)));
        }
        other.join().unwrap();
    });
}

#[test]
fn what_was_written_before_an_announcement_is_seen_by_who_waits_for_it() {
    check(|sleeps| {
        let shared = Arc::new((Progress::new(2), [Cell::new(), Cell::new()]));
        let other = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let (progress, cells) = &*shared;
                cells[0].set(7);
                progress.announce(1, 1);
                assert!(progress.wait(0, 1, &wait(sleeps)));
                assert_eq!(cells[1].get(), 9);
            })
        };
        let (progress, cells) = &*shared;
        assert!(progress.wait(1, 1, &wait(sleeps)));
        assert_eq!(cells[0].get(), 7);
        cells[1].set(9);
        progress.announce(0, 1);
        other.join().unwrap();
    });
}

/// One member waits at the barrier and the other fails instead of coming.
#[test]
fn a_failure_ends_the_wait_at_a_barrier() {
    check(|sleeps| {
        let shared = Arc::new((Barrier::default(), wait(sleeps)));
        let other = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let (barrier, waiting) = &*shared;
                assert!(!barrier.wait(2, waiting));
            })
        };
        let (barrier, waiting) = &*shared;
        waiting.failed.store(true, Ordering::Relaxed);
        barrier.wake();
        other.join().unwrap();
        waiting.failed.store(false, Ordering::Relaxed);
        barrier.reset();
        let other = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || assert!(shared.0.wait(2, &shared.1)))
        };
        assert!(barrier.wait(2, waiting));
        other.join().unwrap();
    });
}

/// A worker that takes part in jobs up to number `last`, and copies one cell to another.
fn work(gate: &Gate, cells: &[Cell; 2], last: u64, sleeps: bool) {
    let mut seen = Job::default();
    while seen.number() < last {
        if sleeps {
            gate.sleep_until_job(seen);
        }
        let job = gate.job();
        if job == seen {
            thread::yield_now();
            continue;
        }
        seen = job;
        if gate.enter(seen).is_some() {
            let come = gate.wait_until_closed(&wait(sleeps));
            assert_eq!(come, 1);
            cells[1].set(cells[0].get());
            gate.leave(come);
        }
    }
}

/// Two jobs for one worker; `call` does what the caller does once the gate is open.
fn with_worker(sleeps: bool, call: impl Fn(usize, &Gate, &[Cell; 2])) {
    let shared = Arc::new((Gate::default(), [Cell::new(), Cell::new()]));
    let worker = {
        let shared = Arc::clone(&shared);
        thread::spawn(move || work(&shared.0, &shared.1, 2, sleeps))
    };
    let (gate, cells) = &*shared;
    for round in 1..=2 {
        cells[0].set(round);
        gate.open();
        call(round, gate, cells);
    }
    worker.join().unwrap();
}

/// A caller that does not wait for the worker to come: the worker comes in or is late, and never touches what the caller has
/// taken back.
#[test]
fn who_comes_in_reads_what_the_caller_wrote_and_the_caller_what_it_left() {
    check(|sleeps| {
        with_worker(sleeps, |round, gate, cells| {
            let come = gate.close();
            gate.wait_until_left(come, &wait(sleeps));
            if come == 1 {
                assert_eq!(cells[1].get(), round);
            }
        });
    });
}

/// A patient caller: it sleeps until the worker has come in, and until it has left.
#[test]
fn who_is_waited_for_wakes_the_caller() {
    check(|sleeps| {
        with_worker(sleeps, |round, gate, cells| {
            gate.wait_until_come(1, None, &wait(sleeps));
            assert_eq!(gate.close(), 1);
            gate.wait_until_left(1, &wait(sleeps));
            assert_eq!(cells[1].get(), round);
        });
    });
}

/// A worker is sent away, called back, and comes to the next job, wherever it was meanwhile.
#[test]
fn a_worker_that_is_called_back_comes_to_the_next_job() {
    check_sleep(|| {
        let shared = Arc::new((Gate::default(), [Cell::new(), Cell::new()], Bench::default()));
        let worker = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let (gate, cells, bench) = &*shared;
                if bench.is_taken() {
                    bench.sleep();
                }
                work(gate, cells, 1, true);
            })
        };
        let (gate, cells, bench) = &*shared;
        bench.send();
        cells[0].set(7);
        bench.call_back();
        gate.open();
        gate.wait_until_come(1, None, &wait(true));
        assert_eq!(gate.close(), 1);
        gate.wait_until_left(1, &wait(true));
        assert_eq!(cells[1].get(), 7);
        worker.join().unwrap();
    });
}
