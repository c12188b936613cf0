//! The life of a worker: it waits for a job, comes in if the gate is open, does its part, and leaves.

use super::gate::Job;
use super::wait::Spin;
use super::watch::Slot;
use super::{Member, Shared};
use std::sync::atomic::Ordering;

pub(super) fn serve(shared: &Shared, worker: usize) {
    let slot = &shared.slots[worker].0;
    slot.start();
    let mut seen = Job::default();
    loop {
        seen = wait_for_job(shared, slot, seen);
        if shared.stop.load(Ordering::Relaxed) {
            return;
        }
        let Some(before) = shared.gate.enter(seen) else { continue };
        let waiting = Member { rank: before + 1, size: 1, shared: Some(shared), worker: Some(worker) };
        let come = shared.gate.wait_until_closed(&waiting);
        // In a full team every worker always has the same rank: what it computed last is still in its cache.
        let full = come == shared.workers.load(Ordering::Relaxed);
        let rank = if full { worker + 1 } else { before + 1 };
        // SAFETY: this worker has come in and not left, so nobody writes the cell, and `run_together` keeps the closure alive.
        let job = unsafe { &*(*shared.closure.0.get()).expect("a closure is set before the gate opens") };
        shared.work(Member { rank, size: come + 1, ..waiting }, job);
        shared.gate.leave(come);
    }
}

fn wait_for_job(shared: &Shared, slot: &Slot, seen: Job) -> Job {
    let mut spin = Spin::default();
    loop {
        if slot.bench.is_taken() {
            slot.asleep(|| slot.bench.sleep());
        }
        let job = shared.gate.job();
        if job != seen {
            return job;
        }
        if !spin.again(|elapsed| shared.spins_on(elapsed)) {
            slot.asleep(|| shared.gate.sleep_until_job(seen));
        }
    }
}
