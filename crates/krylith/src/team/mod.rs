//! The thread team: a few threads of one's own for the length of a solve.
//!
//! A Krylov method hands some ten short operations an iteration to its threads. A fork and join through a general pool costs
//! more than some of them take, and workers that spin inside a shared pool starve everybody else. So a team keeps its own
//! threads: hot while operations follow each other (they spin, then give way), parked when none has come for a while.
//!
//! [`Team::run`] hands one closure to the members and returns when all that run it have finished; the caller is member 0.
//! Inside, members meet at a barrier or wait for each other's progress. Every kernel computes the same bits on any number of
//! members, which leaves two freedoms:
//!
//! * A team that is busy, because `run` is called from inside `run` or by two threads at once, does not wait: the caller runs
//!   the closure alone, as a team of one.
//! * A worker that the operating system holds back, because other programs want its core, is not waited for: the members that
//!   have come within a few microseconds run the closure, see [`gate`]. A team larger than the machine waits for all, since
//!   there some worker would always be late.
//!
//! A panic in one member ends the waiting of the others and comes out of `run`.
#![allow(unsafe_code)]

mod barrier;
mod gate;
mod progress;
mod sync;

#[cfg(all(test, loom))]
mod model;

pub(crate) use barrier::Barrier;
pub(crate) use progress::Progress;

use crate::matrix::share;
use gate::{Gate, Job};
use std::any::Any;
use std::cell::UnsafeCell;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{JoinHandle, Thread};
use std::time::{Duration, Instant};
use sync::{Backoff, Padded};

/// Rounds of waiting, spinning and giving way, before an idle worker parks.
const ROUNDS_BEFORE_PARKING: u32 = 2_000;

/// How long a job waits for workers that were at the last one: a hot one comes in a fraction of a microsecond. After a job that
/// somebody missed, a quarter of what it took is worth waiting too, up to a limit.
const PATIENCE: Duration = Duration::from_micros(20);
const LONGEST_PATIENCE: Duration = Duration::from_millis(10);

/// The least if one of them is parked and must be woken.
const PATIENCE_WITH_PARKED: Duration = Duration::from_millis(1);

/// Idle teams that are kept for the next solve.
const IDLE_TEAMS: usize = 8;

/// One member of a team at work, as the closure given to [`Team::run`] sees it.
#[derive(Clone, Copy)]
pub(crate) struct Member<'a> {
    rank: usize,
    size: usize,
    shared: Option<&'a Shared>,
}

impl Member<'_> {
    /// 0 to `size − 1`; 0 is the caller of `run`.
    pub(crate) fn rank(&self) -> usize {
        self.rank
    }

    /// Members that run the closure.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// This member's part of `n` items, cut at multiples of `grain`.
    #[inline]
    pub(crate) fn part(&self, n: usize, grain: usize) -> Range<usize> {
        let grains = share(n.div_ceil(grain), self.rank, self.size);
        (grains.start * grain).min(n)..(grains.end * grain).min(n)
    }

    /// Nobody goes on before everybody has come.
    #[inline]
    pub(crate) fn barrier(&self) {
        if let Some(shared) = self.shared
            && !shared.barrier.wait(self.size, || shared.failed())
        {
            Self::abandon();
        }
    }

    /// Waits until another member has announced `count`.
    #[inline]
    pub(crate) fn wait_for(&self, progress: &Progress, member: usize, count: usize) {
        let failed = || self.shared.is_some_and(Shared::failed);
        if !progress.wait(member, count, failed) {
            Self::abandon();
        }
    }

    /// Leaves the closure because another member has panicked; `run` passes on that member's panic, not this one.
    #[cold]
    fn abandon() -> ! {
        resume_unwind(Box::new(Abandoned))
    }
}

struct Abandoned;

/// A closure that outlives the call of `run`, which is the only time that workers use it.
type Closure = *const (dyn Fn(Member<'_>) + Sync);

struct Shared {
    /// Workers, set before the first job.
    workers: AtomicUsize,
    gate: Gate,
    closure: Handed,
    barrier: Barrier,
    /// Which workers are parked, or about to be.
    parked: Box<[Padded<AtomicBool>]>,
    stop: AtomicBool,
    failed: AtomicBool,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

/// The closure of the present job.
struct Handed(UnsafeCell<Option<Closure>>);

// SAFETY: the closure is `Sync`. The cell is written by the caller alone, before it opens the gate and after everybody has left;
// it is read by workers that have come in and not left.
unsafe impl Sync for Handed {}
// SAFETY: as above.
unsafe impl Send for Handed {}

impl Shared {
    fn failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// Runs a job as one member; a panic is kept for the caller.
    fn work(&self, member: Member<'_>, job: &(dyn Fn(Member<'_>) + Sync)) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| job(member))) {
            self.failed.store(true, Ordering::Relaxed);
            if !panic.is::<Abandoned>() {
                lock(&self.panic).get_or_insert(panic);
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A caller and its worker threads.
pub(crate) struct Team {
    shared: Arc<Shared>,
    workers: Vec<(JoinHandle<()>, Thread)>,
    busy: AtomicBool,
    /// Workers that came to the last job.
    came: AtomicUsize,
    /// Nanoseconds that the next job waits for workers.
    patience: AtomicU64,
    /// Whether every job waits for all workers.
    patient: bool,
}

impl Team {
    /// A team of `size` members: the caller and `size − 1` threads. Where the system refuses more threads, the team is smaller.
    fn new(size: usize) -> Self {
        let count = size.max(1) - 1;
        let shared = Arc::new(Shared {
            workers: AtomicUsize::new(0),
            gate: Gate::default(),
            closure: Handed(UnsafeCell::new(None)),
            barrier: Barrier::default(),
            parked: (0..count).map(|_| Padded::default()).collect(),
            stop: AtomicBool::new(false),
            failed: AtomicBool::new(false),
            panic: Mutex::new(None),
        });
        let mut workers = Vec::with_capacity(count);
        for worker in 0..count {
            let shared = Arc::clone(&shared);
            let thread = std::thread::Builder::new().name(format!("krylith-{}", worker + 1));
            let Ok(handle) = thread.spawn(move || serve(&shared, worker)) else { break };
            let thread = handle.thread().clone();
            workers.push((handle, thread));
        }
        shared.workers.store(workers.len(), Ordering::Relaxed);
        let patient = std::thread::available_parallelism().is_ok_and(|cores| workers.len() >= cores.get());
        let patience = AtomicU64::new(PATIENCE.as_nanos() as u64);
        let came = AtomicUsize::new(workers.len());
        Team { shared, workers, busy: AtomicBool::new(false), came, patience, patient }
    }

    /// Members, the caller included.
    pub(crate) fn size(&self) -> usize {
        self.workers.len() + 1
    }

    /// Runs `job` on the members that come, and returns when all of them have finished; alone if the team is busy.
    #[inline]
    pub(crate) fn run(&self, job: impl Fn(Member<'_>) + Sync) {
        let alone = Member { rank: 0, size: 1, shared: None };
        if self.workers.is_empty() || self.busy.swap(true, Ordering::Acquire) {
            return job(alone);
        }
        self.run_together(&job);
    }

    fn run_together(&self, job: &(dyn Fn(Member<'_>) + Sync)) {
        let shared = &*self.shared;
        let pointer: *const (dyn Fn(Member<'_>) + Sync + '_) = job;
        // SAFETY: only the lifetime changes. Workers use the pointer between coming in and leaving; this function does not
        // return, nor unwind, before all that came in have left.
        let pointer: Closure = unsafe { std::mem::transmute(pointer) };
        // SAFETY: `busy` makes this the only caller, and the gate is closed and everybody has left.
        unsafe { *shared.closure.0.get() = Some(pointer) };
        let come = self.gather();
        let missed = (come < self.workers.len()).then(Instant::now);
        shared.work(Member { rank: 0, size: come + 1, shared: Some(shared) }, job);
        shared.gate.wait_until_left(come);
        let patience =
            missed.map_or(PATIENCE, |began| (began.elapsed() / 4).clamp(PATIENCE, LONGEST_PATIENCE));
        self.patience.store(patience.as_nanos() as u64, Ordering::Relaxed);
        let failed = shared.failed.swap(false, Ordering::Relaxed);
        let panic = if failed { lock(&shared.panic).take() } else { None };
        if failed {
            // Some members never came to the barrier they were to meet at.
            shared.barrier.reset();
        }
        self.busy.store(false, Ordering::Release);
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
    }

    /// Opens the gate, waits a little for those who can be expected, and closes it; how many workers have come.
    fn gather(&self) -> usize {
        let shared = &*self.shared;
        let all = self.workers.len();
        let expected = (self.came.load(Ordering::Relaxed) + shared.gate.late()).min(all);
        shared.gate.open();
        let mut patience = Duration::from_nanos(self.patience.load(Ordering::Relaxed));
        for ((_, thread), parked) in self.workers.iter().zip(&shared.parked) {
            if parked.0.load(Ordering::SeqCst) {
                thread.unpark();
                patience = patience.max(PATIENCE_WITH_PARKED);
            }
        }
        if self.patient {
            let mut backoff = Backoff::new();
            while shared.gate.come() < all {
                backoff.wait();
            }
        } else if shared.gate.come() < expected {
            // Giving way lets in a worker that the system has put on the caller's own core.
            let (started, mut backoff) = (Instant::now(), Backoff::new());
            while shared.gate.come() < expected && started.elapsed() < patience {
                backoff.wait();
            }
        }
        let come = shared.gate.close();
        self.came.store(come, Ordering::Relaxed);
        come
    }
}

/// The life of a worker.
fn serve(shared: &Shared, worker: usize) {
    let mut seen = Job::default();
    loop {
        seen = wait_for_job(shared, worker, seen);
        if shared.stop.load(Ordering::Relaxed) {
            return;
        }
        let Some(before) = shared.gate.enter(seen) else { continue };
        let come = shared.gate.wait_until_closed();
        // In a full team every worker always has the same rank: what it computed last is still in its cache.
        let full = come == shared.workers.load(Ordering::Relaxed);
        let rank = if full { worker + 1 } else { before + 1 };
        // SAFETY: this worker has come in and not left, so nobody writes the cell, and `run_together` keeps the closure alive.
        let job = unsafe { &*(*shared.closure.0.get()).expect("a closure is set before the gate opens") };
        shared.work(Member { rank, size: come + 1, shared: Some(shared) }, job);
        shared.gate.leave();
    }
}

fn wait_for_job(shared: &Shared, worker: usize, seen: Job) -> Job {
    let parked = &shared.parked[worker].0;
    let mut backoff = Backoff::new();
    loop {
        let job = shared.gate.job(Ordering::Acquire);
        if job != seen {
            return job;
        }
        if backoff.rounds() < ROUNDS_BEFORE_PARKING {
            backoff.wait();
            continue;
        }
        parked.store(true, Ordering::SeqCst);
        if shared.gate.job(Ordering::SeqCst) == seen {
            std::thread::park();
        }
        parked.store(false, Ordering::SeqCst);
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        self.shared.gate.open();
        for (handle, thread) in self.workers.drain(..) {
            thread.unpark();
            // A worker catches panics; there is nothing to pass on.
            let _ = handle.join();
        }
    }
}

static IDLE: Mutex<Vec<Team>> = Mutex::new(Vec::new());

/// A team on loan; it goes back to the idle ones when dropped.
pub(crate) struct Lease {
    team: Option<Team>,
}

impl Lease {
    /// An idle team of this size, or a new one.
    pub(crate) fn new(size: usize) -> Self {
        let mut idle = lock(&IDLE);
        let found = idle.iter().position(|team| team.size() == size.max(1));
        let team = found.map(|k| idle.swap_remove(k));
        drop(idle);
        Lease { team: Some(team.unwrap_or_else(|| Team::new(size))) }
    }
}

impl std::ops::Deref for Lease {
    type Target = Team;

    fn deref(&self) -> &Team {
        self.team.as_ref().expect("a lease holds its team until it is dropped")
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let mut idle = lock(&IDLE);
        if idle.len() < IDLE_TEAMS {
            idle.extend(self.team.take());
        }
        // Otherwise the team ends after the lock is released: fields are dropped last.
        drop(idle);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// A team that waits for all its workers, on any machine.
    fn patient(size: usize) -> Team {
        let mut team = Team::new(size);
        team.patient = true;
        team
    }

    #[test]
    fn every_member_runs_once() {
        for size in [1, 2, 3, 8] {
            let team = patient(size);
            let runs: Vec<AtomicUsize> = (0..size).map(|_| AtomicUsize::new(0)).collect();
            for _ in 0..1000 {
                team.run(|member| {
                    assert_eq!(member.size(), size);
                    runs[member.rank()].fetch_add(1, Ordering::Relaxed);
                });
            }
            assert!(runs.iter().all(|r| r.load(Ordering::Relaxed) == 1000));
        }
    }

    /// However many come: ranks 0 to size − 1, each once.
    #[test]
    fn those_who_come_share_the_work() {
        let size = 8;
        let mut team = Team::new(size);
        team.patient = false;
        let mut sizes = [0; 9];
        for _ in 0..2000 {
            let runs: Vec<AtomicUsize> = (0..size).map(|_| AtomicUsize::new(0)).collect();
            let seen = AtomicUsize::new(0);
            team.run(|member| {
                member.barrier();
                runs[member.rank()].fetch_add(1, Ordering::Relaxed);
                seen.store(member.size(), Ordering::Relaxed);
            });
            let seen = seen.into_inner();
            assert!((1..=size).contains(&seen));
            let counts: Vec<usize> = runs.into_iter().map(AtomicUsize::into_inner).collect();
            assert!((0..size).all(|rank| counts[rank] == usize::from(rank < seen)), "{counts:?}");
            sizes[seen] += 1;
        }
        println!("jobs by size of the team: {sizes:?}");
    }

    /// Each round every member writes its own cell and, after the barrier, reads everybody's.
    #[test]
    fn nobody_passes_a_barrier_early() {
        let size = 4;
        let team = patient(size);
        let cells: Vec<AtomicUsize> = (0..size).map(|_| AtomicUsize::new(0)).collect();
        team.run(|member| {
            for round in 1..=500 {
                cells[member.rank()].store(round, Ordering::Relaxed);
                member.barrier();
                assert!(cells.iter().all(|c| c.load(Ordering::Relaxed) == round));
                member.barrier();
            }
        });
    }

    /// A chain: member k adds one to what member k − 1 left, round after round.
    #[test]
    fn progress_is_waited_for() {
        let (size, rounds) = (8, 200);
        let team = patient(size);
        let progress = Progress::new(size);
        let value = AtomicUsize::new(0);
        team.run(|member| {
            let before = (member.rank() + size - 1) % size;
            for round in 1..=rounds {
                let needed = if member.rank() == 0 { round - 1 } else { round };
                member.wait_for(&progress, before, needed);
                value.store(value.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
                progress.announce(member.rank(), round);
            }
        });
        assert_eq!(value.load(Ordering::Relaxed), size * rounds);
    }

    #[test]
    fn parts_cover_everything_once() {
        for (n, grain, size) in [(0, 4, 3), (1, 4, 3), (100, 8, 3), (1000, 64, 7), (5, 1, 8)] {
            let part = |rank| Member { rank, size, shared: None }.part(n, grain);
            assert_eq!(part(0).start, 0);
            assert_eq!(part(size - 1).end, n);
            for rank in 1..size {
                assert_eq!(part(rank).start, part(rank - 1).end);
                assert!(part(rank).start.is_multiple_of(grain) || part(rank).start == n);
            }
        }
    }

    #[test]
    fn nested_and_shared_use_run_alone() {
        let team = patient(3);
        let inner = AtomicUsize::new(0);
        team.run(|_| {
            team.run(|member| {
                assert_eq!((member.rank(), member.size()), (0, 1));
                member.barrier();
                inner.fetch_add(1, Ordering::Relaxed);
            });
        });
        assert_eq!(inner.load(Ordering::Relaxed), 3);
    }

    #[test]
    fn a_panic_comes_out_and_the_team_lives_on() {
        let team = patient(4);
        for culprit in 0..4 {
            let result = catch_unwind(AssertUnwindSafe(|| {
                team.run(|member| {
                    member.barrier();
                    assert!(member.rank() != culprit, "member {culprit} fails");
                    // The others wait for one that never comes.
                    member.barrier();
                });
            }));
            let message = *result.unwrap_err().downcast::<String>().unwrap();
            assert!(message.contains("fails"), "{message}");
        }
        let count = AtomicUsize::new(0);
        team.run(|member| {
            member.barrier();
            count.fetch_add(1, Ordering::Relaxed);
        });
        assert_eq!(count.load(Ordering::Relaxed), 4);
    }

    #[test]
    fn inside_rayon_and_side_by_side() {
        use rayon::prelude::*;
        let total: usize = (0..32)
            .into_par_iter()
            .map(|_| {
                let team = patient(3);
                let sum = AtomicUsize::new(0);
                for _ in 0..20 {
                    team.run(|member| {
                        member.barrier();
                        sum.fetch_add(member.rank() + 1, Ordering::Relaxed);
                    });
                }
                sum.into_inner()
            })
            .sum();
        assert_eq!(total, 32 * 20 * 6);
    }

    #[test]
    fn parked_workers_wake_up() {
        let team = patient(2);
        for _ in 0..5 {
            std::thread::sleep(std::time::Duration::from_millis(20));
            let ranks = AtomicUsize::new(0);
            team.run(|member| {
                ranks.fetch_or(1 << member.rank(), Ordering::Relaxed);
            });
            assert_eq!(ranks.into_inner(), 3);
        }
    }
}
