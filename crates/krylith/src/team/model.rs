//! Models of the gate, the barrier and the progress counters for two members, run through every interleaving by `loom` (with three,
//! two that wait give way to each other without end, which `loom` cannot tell from a deadlock):
//! `RUSTFLAGS="--cfg loom" cargo test --release -p krylith --lib team::model`.

use super::gate::{Gate, Job};
use super::{Barrier, Progress};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::Ordering;
use loom::thread;

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
    loom::model(|| {
        let shared = Arc::new((Barrier::default(), [Cell::new(), Cell::new()]));
        let other = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let (barrier, cells) = &*shared;
                for round in 1..=2 {
                    cells[1].set(round);
                    assert!(barrier.wait(2, || false));
                    assert_eq!(cells[0].get(), round);
                    assert!(barrier.wait(2, || false));
                }
            })
        };
        let (barrier, cells) = &*shared;
        for round in 1..=2 {
            cells[0].set(round);
            assert!(barrier.wait(2, || false));
            assert_eq!(cells[1].get(), round);
            assert!(barrier.wait(2, || false));
        }
        other.join().unwrap();
    });
}

#[test]
fn what_was_written_before_an_announcement_is_seen_by_who_waits_for_it() {
    loom::model(|| {
        let shared = Arc::new((Progress::new(2), [Cell::new(), Cell::new()]));
        let other = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let (progress, cells) = &*shared;
                cells[0].set(7);
                progress.announce(1, 1);
                assert!(progress.wait(0, 1, || false));
                assert_eq!(cells[1].get(), 9);
            })
        };
        let (progress, cells) = &*shared;
        assert!(progress.wait(1, 1, || false));
        assert_eq!(cells[0].get(), 7);
        cells[1].set(9);
        progress.announce(0, 1);
        other.join().unwrap();
    });
}

/// A caller that does not wait at all: the worker comes in or is late, and never touches what the caller has taken back.
#[test]
fn who_comes_in_reads_what_the_caller_wrote_and_the_caller_what_it_left() {
    loom::model(|| {
        let shared = Arc::new((Gate::default(), [Cell::new(), Cell::new()]));
        let worker = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let (gate, cells) = &*shared;
                let mut seen = Job::default();
                let mut done = 0;
                while done < 2 {
                    let job = gate.job(Ordering::Acquire);
                    if job == seen {
                        thread::yield_now();
                        continue;
                    }
                    done = job.number();
                    seen = job;
                    if gate.enter(job).is_some() {
                        assert_eq!(gate.wait_until_closed(), 1);
                        cells[1].set(cells[0].get());
                        gate.leave();
                    }
                }
            })
        };
        let (gate, cells) = &*shared;
        for round in 1..=2 {
            cells[0].set(round);
            gate.open();
            let come = gate.close();
            gate.wait_until_left(come);
            if come == 1 {
                assert_eq!(cells[1].get(), round);
            }
        }
        worker.join().unwrap();
    });
}
