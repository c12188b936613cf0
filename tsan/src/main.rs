//! The gate, the barrier and the progress counters of the team under ThreadSanitizer, on real threads.
//!
//! `just tsan` builds this with `-Zsanitizer=thread`. Two choices keep its verdicts true where the standard library is not built
//! with the sanitizer: threads come from `pthread_create` and end in `pthread_join`, which the sanitizer watches, and
//! nothing else synchronises. What members hand to each other is plain memory, so an ordering that is too weak is a data race,
//! which the sanitizer reports even where this processor would hide it. Every check runs with members that spin, and with
//! members that sleep as soon as they may: then the standard library's locks synchronise too, but seen or not they must not be
//! needed.
//!
//! `tsan/weaken` shows that it finds what it looks for: it weakens the orderings one after the other and expects a report.
//!
//! Unlike the models of `loom` this takes any number of threads, but only the interleavings that happen.

#[allow(dead_code)]
#[path = "../../crates/krylith/src/team/barrier.rs"]
mod barrier;
#[allow(dead_code)]
#[path = "../../crates/krylith/src/team/gate.rs"]
mod gate;
#[path = "../../crates/krylith/src/team/progress.rs"]
mod progress;
#[allow(dead_code, unused_imports)]
#[path = "../../crates/krylith/src/team/sync.rs"]
mod sync;
#[path = "../../crates/krylith/src/team/wait.rs"]
mod wait;

use barrier::Barrier;
use gate::{Gate, Job};
use progress::Progress;
use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use wait::{Spin, Waiting};

/// How members wait.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Wait {
    Spin,
    Sleep,
}

impl Waiting for Wait {
    fn spins_on(&self, _: Duration) -> bool {
        // More threads than cores make progress if they give way.
        std::thread::yield_now();
        *self == Wait::Spin
    }

    fn failed(&self) -> bool {
        false
    }

    fn sleep(&self, sleep: impl FnOnce()) {
        sleep();
    }

    fn waited(&self, _: &mut Spin) {}
}

/// Numbers that the synchronisation under test must protect.
struct Plain(Vec<UnsafeCell<usize>>);

// SAFETY: no promise is made; whether accesses are ordered is what the sanitizer finds out.
unsafe impl Sync for Plain {}

impl Plain {
    fn new(n: usize) -> Self {
        Plain((0..n).map(|_| UnsafeCell::new(0)).collect())
    }

    fn get(&self, i: usize) -> usize {
        // SAFETY: ordered after the write by the synchronisation under test; the sanitizer checks it.
        unsafe { *self.0[i].get() }
    }

    fn set(&self, i: usize, value: usize) {
        // SAFETY: as above, and ordered after all reads of the value before.
        unsafe { *self.0[i].get() = value }
    }
}

/// Runs `job` on threads of ranks 0 to `size − 1` and waits for all.
fn run<F: Fn(usize) + Sync>(size: usize, job: F) {
    struct Start<'a, F>(&'a F, usize);

    extern "C" fn begin<F: Fn(usize) + Sync>(start: *mut c_void) -> *mut c_void {
        // SAFETY: `run` passes one `Start` a thread and keeps it until the thread is joined.
        let Start(job, rank) = unsafe { &*start.cast::<Start<'_, F>>() };
        job(*rank);
        std::ptr::null_mut()
    }

    let mut starts: Vec<Start<'_, F>> = (0..size).map(|rank| Start(&job, rank)).collect();
    let threads: Vec<libc::pthread_t> = starts
        .iter_mut()
        .map(|start| {
            let mut thread = 0;
            let argument = std::ptr::from_mut(start).cast();
            // SAFETY: the argument lives until the thread is joined below; a panic in a job ends the process.
            let error = unsafe { libc::pthread_create(&mut thread, std::ptr::null(), begin::<F>, argument) };
            assert_eq!(error, 0, "pthread_create");
            thread
        })
        .collect();
    for thread in threads {
        // SAFETY: created above, joined once.
        assert_eq!(unsafe { libc::pthread_join(thread, std::ptr::null_mut()) }, 0);
    }
}

/// Everybody writes its own number, and after the barrier reads everybody's.
fn all_meet(size: usize, rounds: usize, wait: Wait) {
    let (barrier, numbers) = (Barrier::default(), Plain::new(size));
    run(size, |rank| {
        for round in 1..=rounds {
            numbers.set(rank, round * size + rank);
            assert!(barrier.wait(size, &wait));
            for other in 0..size {
                assert_eq!(numbers.get(other), round * size + other);
            }
            assert!(barrier.wait(size, &wait));
        }
    });
}

/// A triangular sweep, xᵢ = 1 + xᵢ₋₁ mod 7 + xᵢ₋₃ mod 5, its rows dealt out in turn: row i waits for rows i − 1 and i − 3.
fn rows_wait(size: usize, rows: usize, wait: Wait) {
    let formula = |at: &dyn Fn(usize) -> usize, i: usize| {
        1 + if i > 0 { at(i - 1) % 7 } else { 0 } + if i > 2 { at(i - 3) % 5 } else { 0 }
    };
    let mut expected = Vec::new();
    for i in 0..rows {
        let next = formula(&|k| expected[k], i);
        expected.push(next);
    }
    let (progress, x) = (Progress::new(size), Plain::new(rows));
    run(size, |rank| {
        for i in (rank..rows).step_by(size) {
            for needed in [i.checked_sub(1), i.checked_sub(3)].into_iter().flatten() {
                assert!(progress.wait(needed % size, needed / size + 1, &wait));
            }
            x.set(i, formula(&|k| x.get(k), i));
            progress.announce(rank, i / size + 1);
        }
    });
    assert!((0..rows).all(|i| x.get(i) == expected[i]));
}

/// One member is ahead and nobody comes back to it: what it wrote is taken over by each of the others.
fn one_hands_over(size: usize, rounds: usize, wait: Wait) {
    let (progress, given) = (Progress::new(size), Plain::new(rounds));
    run(size, |rank| {
        for round in 0..rounds {
            if rank == 0 {
                given.set(round, round + 7);
                progress.announce(0, round + 1);
            } else {
                assert!(progress.wait(0, round + 1, &wait));
                assert_eq!(given.get(round), round + 7);
            }
        }
    });
}

/// Rank 0 hands out jobs and closes the gate when it likes; whoever came in reads the job and leaves an answer.
fn who_comes_works(size: usize, jobs: usize, wait: Wait) {
    let (gate, given, answers) = (Gate::default(), Plain::new(1), Plain::new(size));
    let over = AtomicBool::new(false);
    run(size, |rank| {
        if rank > 0 {
            let mut seen = Job::default();
            while !over.load(Ordering::Relaxed) {
                if wait == Wait::Sleep {
                    gate.sleep_until_job(seen);
                }
                let job = gate.job();
                if job == seen {
                    std::hint::spin_loop();
                    continue;
                }
                seen = job;
                if let Some(before) = gate.enter(job) {
                    let come = gate.wait_until_closed(&wait);
                    assert!(come > before);
                    answers.set(before, given.get(0) + before);
                    gate.leave(come);
                }
            }
            return;
        }
        for job in 1..=jobs {
            given.set(0, job);
            gate.open();
            for _ in 0..job % 500 {
                std::hint::spin_loop();
            }
            if wait == Wait::Sleep && job % 10 == 0 {
                gate.wait_until_come(1, None, &wait);
            }
            let come = gate.close();
            gate.wait_until_left(come, &wait);
            assert!((0..come).all(|before| answers.get(before) == job + before));
        }
        over.store(true, Ordering::Relaxed);
        gate.open();
        gate.wait_until_left(gate.close(), &wait);
    });
}

fn main() {
    for size in [2, 3, 8] {
        for wait in [Wait::Spin, Wait::Sleep] {
            all_meet(size, 300, wait);
            rows_wait(size, 2000, wait);
            one_hands_over(size, 2000, wait);
            who_comes_works(size, 5000, wait);
            println!("{size} threads, {wait:?}: done");
        }
    }
}
