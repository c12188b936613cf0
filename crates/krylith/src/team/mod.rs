//! The thread team: a few threads of one's own for the length of a solve.
//!
//! A Krylov method hands some ten short operations per iteration to its threads. A fork and join through a general pool costs
//! more than some of them take, and workers that spin inside a shared pool starve everybody else. So a team keeps its own
//! threads: hot while operations follow each other, asleep when none has come for a while.
//!
//! [`Team::run`] hands one closure to the members and returns when all that run it have finished; the caller is member 0.
//! Inside, members meet at a barrier or wait for each other's progress. Every kernel computes the same bits on any number of
//! members. So the number may depend on what else runs on the machine, and on the clock:
//!
//! * A team that is busy, because `run` is called from inside `run` or by two threads at once, does not wait: the caller runs
//!   the closure alone, as a team of one.
//! * A worker that is late, because the operating system has given its core to another program, is not waited for: the members
//!   that have come within a few microseconds run the closure, see [`gate`].
//! * A worker that loses its core inside an operation keeps the others waiting. They spin, and after a while sleep, see
//!   [`wait`]. The caller measures what that costs, see [`watch`]. If it is more than the worker gains, the team goes on
//!   without it for a pause, see [`adapt`]; the worker sleeps meanwhile, see [`bench`].
//!
//! On an idle machine nobody is late or waits long, and none of this takes a system call or reads a clock.
//!
//! A team larger than the machine is *patient*: it waits for all its workers and never shrinks, since there some worker always
//! waits for a core. Its members sleep as soon as they have spun for some microseconds.
//!
//! A panic in one member ends the waiting of the others and comes out of `run`.
#![allow(unsafe_code)]

mod adapt;
mod barrier;
mod bench;
mod clock;
mod gate;
mod history;
mod lease;
mod progress;
mod resize;
mod statistics;
mod sync;
mod wait;
mod watch;
mod worker;

#[cfg(all(test, loom))]
mod model;
#[cfg(all(test, not(loom)))]
mod tests;

pub(crate) use barrier::Barrier;
pub(crate) use history::History;
pub(crate) use lease::Lease;
pub(crate) use progress::Progress;
pub use statistics::{TeamStatistics, ThreadLimit, most_threads};
pub(crate) use statistics::{cores, limit_threads};

use crate::parallel::share;
use gate::Gate;
use resize::Books;
use std::any::Any;
use std::cell::UnsafeCell;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use sync::Padded;
use wait::{Spin, Waiting};
use watch::{Slot, Watch};

/// How long a job waits for workers that were at the last one: a hot one comes in a fraction of a microsecond. After a job that
/// somebody missed, a quarter of what it took is worth waiting too, up to a limit.
const PATIENCE: Duration = Duration::from_micros(20);
const LONGEST_PATIENCE: Duration = Duration::from_millis(10);

/// One member of a team at work, as the closure given to [`Team::run`] sees it.
#[derive(Clone, Copy)]
pub struct Member<'a> {
    rank: usize,
    size: usize,
    /// `None` for a caller that works alone.
    shared: Option<&'a Shared>,
    /// Which worker this is; `None` for the caller.
    worker: Option<usize>,
}

impl Member<'_> {
    /// A caller that works alone.
    const ALONE: Member<'static> = Member { rank: 0, size: 1, shared: None, worker: None };

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
            && !shared.barrier.wait(self.size, self)
        {
            Self::abandon();
        }
    }

    /// Waits until another member has announced `count`.
    #[inline]
    pub(crate) fn wait_for(&self, progress: &Progress, member: usize, count: usize) {
        if !progress.wait(member, count, self) {
            Self::abandon();
        }
    }

    /// Leaves the closure because another member has panicked; `run` passes on that member's panic, not this one.
    #[cold]
    fn abandon() -> ! {
        resume_unwind(Box::new(Abandoned))
    }
}

impl Waiting for Member<'_> {
    #[cold]
    fn spins_on(&self, elapsed: Duration) -> bool {
        match (self.shared, self.worker) {
            (Some(shared), Some(_)) => shared.spins_on(elapsed),
            (Some(shared), None) if !shared.patient() => shared.watch.caller_spins_on(elapsed, &shared.slots),
            _ => false,
        }
    }

    fn failed(&self) -> bool {
        self.shared.is_some_and(Shared::failed)
    }

    #[cold]
    fn sleep(&self, sleep: impl FnOnce()) {
        match (self.shared, self.worker) {
            (Some(shared), Some(worker)) => shared.slots[worker].0.asleep(sleep),
            (Some(shared), None) => shared.watch.caller_sleeps(sleep),
            (None, _) => sleep(),
        }
    }

    #[cold]
    fn waited(&self, spin: &mut Spin) {
        if let (Some(shared), None) = (self.shared, self.worker) {
            shared.watch.caller_waited(|| spin.elapsed(), &shared.slots);
        }
    }
}

struct Abandoned;

/// A closure that outlives the call of `run`, which is the only time that workers use it.
type Closure = *const (dyn Fn(Member<'_>) + Sync);

struct Shared {
    /// Workers, set before the first job.
    workers: AtomicUsize,
    /// Whether every job waits for all workers.
    patient: AtomicBool,
    gate: Gate,
    closure: Handed,
    barrier: Barrier,
    slots: Box<[Padded<Slot>]>,
    watch: Watch,
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

    fn patient(&self) -> bool {
        self.patient.load(Ordering::Relaxed)
    }

    /// Whether a worker spins on in a wait that has lasted so long.
    fn spins_on(&self, elapsed: Duration) -> bool {
        !self.patient() && self.watch.spins_on(elapsed)
    }

    /// Runs a job as one member; a panic is kept for the caller.
    fn work(&self, member: Member<'_>, job: &(dyn Fn(Member<'_>) + Sync)) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| job(member))) {
            if !panic.is::<Abandoned>() {
                lock(&self.panic).get_or_insert(panic);
            }
            self.failed.store(true, Ordering::Relaxed);
            self.barrier.wake();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A caller and its worker threads.
pub(crate) struct Team {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
    busy: AtomicBool,
    /// Workers that came to the last job.
    came: AtomicUsize,
    /// Nanoseconds that the next job waits for workers.
    patience: AtomicU64,
    /// Workers that take no part for now.
    benched: AtomicUsize,
    books: Mutex<Books>,
    history: History,
}

impl Team {
    /// A team of `size` members: the caller and `size − 1` threads. Where the system refuses more threads, the team is smaller.
    fn new(size: usize) -> Self {
        let count = size.max(1) - 1;
        let shared = Arc::new(Shared {
            workers: AtomicUsize::new(0),
            patient: AtomicBool::new(false),
            gate: Gate::default(),
            closure: Handed(UnsafeCell::new(None)),
            barrier: Barrier::default(),
            slots: (0..count).map(|_| Padded::default()).collect(),
            watch: Watch::new(),
            stop: AtomicBool::new(false),
            failed: AtomicBool::new(false),
            panic: Mutex::new(None),
        });
        let mut workers = Vec::with_capacity(count);
        for worker in 0..count {
            let shared = Arc::clone(&shared);
            let thread = std::thread::Builder::new().name(format!("krylith-{}", worker + 1));
            let Ok(handle) = thread.spawn(move || worker::serve(&shared, worker)) else { break };
            workers.push(handle);
        }
        shared.workers.store(workers.len(), Ordering::Relaxed);
        let patient = workers.len() >= cores();
        shared.patient.store(patient, Ordering::Relaxed);
        Team {
            shared,
            busy: AtomicBool::new(false),
            came: AtomicUsize::new(workers.len()),
            patience: AtomicU64::new(PATIENCE.as_nanos() as u64),
            benched: AtomicUsize::new(0),
            books: Mutex::default(),
            history: History::new(workers.len() + 1),
            workers,
        }
    }

    /// Members, the caller included.
    pub(crate) fn size(&self) -> usize {
        self.workers.len() + 1
    }

    /// What the team has done.
    pub(crate) fn history(&self) -> &History {
        &self.history
    }

    /// Runs `job` on the members that come, and returns when all of them have finished; alone if the team is busy.
    #[inline]
    pub(crate) fn run(&self, job: impl Fn(Member<'_>) + Sync) {
        if self.workers.is_empty() || self.busy.swap(true, Ordering::Acquire) {
            return job(Member::ALONE);
        }
        self.run_together(&job);
    }

    fn run_together(&self, job: &(dyn Fn(Member<'_>) + Sync)) {
        if self.benched.load(Ordering::Relaxed) > 0 && self.stays_alone() {
            self.history.ran(1);
            self.busy.store(false, Ordering::Release);
            return job(Member::ALONE);
        }
        let shared = &*self.shared;
        let pointer: *const (dyn Fn(Member<'_>) + Sync + '_) = job;
        // SAFETY: only the lifetime changes. Workers use the pointer between coming in and leaving; this function does not
        // return, nor unwind, before all that came in have left.
        let pointer: Closure = unsafe { std::mem::transmute(pointer) };
        // SAFETY: `busy` makes this the only caller, and the gate is closed and everybody has left.
        unsafe { *shared.closure.0.get() = Some(pointer) };
        let come = self.gather();
        self.history.ran(come + 1);
        let missed = (come < self.workers.len()).then(Instant::now);
        let caller = Member { rank: 0, size: come + 1, shared: Some(shared), worker: None };
        shared.work(caller, job);
        shared.gate.wait_until_left(come, &caller);
        match missed {
            None => self.patience.store(PATIENCE.as_nanos() as u64, Ordering::Relaxed),
            Some(began) => self.incomplete(come, began.elapsed()),
        }
        if shared.watch.has_waited() {
            self.settle();
        }
        let panic = if shared.failed() { self.recover() } else { None };
        self.busy.store(false, Ordering::Release);
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
    }

    /// After an operation that only `come` workers have come to.
    #[cold]
    fn incomplete(&self, come: usize, took: Duration) {
        let patience = (took / 4).clamp(PATIENCE, LONGEST_PATIENCE);
        self.patience.store(patience.as_nanos() as u64, Ordering::Relaxed);
        if come + self.benched.load(Ordering::Relaxed) < self.workers.len() {
            self.shared.watch.missed(self.history.operations(), took, come == 0);
        }
    }

    /// Opens the gate, waits a little for those who can be expected, and closes it; how many workers have come.
    fn gather(&self) -> usize {
        let shared = &*self.shared;
        let (all, patient) = (self.workers.len(), shared.patient());
        let present = all - self.benched.load(Ordering::Relaxed);
        let expected = if patient { all } else { self.came.load(Ordering::Relaxed) + shared.gate.late() };
        let expected = expected.min(present);
        let woken = shared.gate.open();
        if shared.gate.come() < expected {
            let patience = Duration::from_nanos(self.patience.load(Ordering::Relaxed));
            let patience = if woken { patience.max(shared.watch.patience_with_sleepers()) } else { patience };
            let caller = Member { shared: Some(shared), ..Member::ALONE };
            shared.gate.wait_until_come(expected, (!patient).then_some(patience), &caller);
        }
        let come = shared.gate.close();
        self.came.store(come, Ordering::Relaxed);
        come
    }

    /// After a panic, when everybody has left: the panic to pass on.
    #[cold]
    fn recover(&self) -> Option<Box<dyn Any + Send>> {
        let shared = &*self.shared;
        shared.failed.store(false, Ordering::Relaxed);
        // Some members never came to the barrier they were to meet at, and the caller may have left a wait.
        shared.barrier.reset();
        shared.watch.reset();
        lock(&shared.panic).take()
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        self.shared.slots.iter().for_each(|slot| slot.0.bench.call_back());
        self.shared.gate.open();
        for handle in self.workers.drain(..) {
            // A worker catches panics; there is nothing to pass on.
            let _ = handle.join();
        }
    }
}
