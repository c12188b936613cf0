//! How a team goes through the units of a arrangement: block-to-block waiting on progress counters.
//!
//! The steps of every unit (a plane; in two dimensions a group of lines) are divided into consecutive parts, one per member, the same
//! in all units: a member needs mostly what it computed itself, in this unit and in the one before. It enters its part of a unit when
//! the member of the part before has finished that one. Near the end of its part it may need the unit before further than its own part
//! goes, and waits for the member there, who has waited for those in between. Both lead to a part before, or a unit before: there
//! is no cycle to wait in. The backward sweep is the same seen from the other end.

use super::arrangement::{Arrangement, Piece};
use super::stencil::{Offset, Stencil};
use crate::parallel::share;
use crate::schedule::SweepPlan;
use crate::team::{Member, Progress};
use std::sync::Arc;

/// In which direction units and their steps are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    Up,
    Down,
}

/// How far ahead the unit before must be, for lower and for upper neighbours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pipeline {
    lower: usize,
    upper: usize,
}

/// Counters of the members, kept from run to run.
#[derive(Debug)]
pub struct PipelineScratch {
    progress: Progress,
    base: usize,
}

impl PipelineScratch {
    pub(super) fn new(threads: usize) -> Self {
        PipelineScratch { progress: Progress::new(threads), base: 0 }
    }

    /// Counters of a team for so many runs, each from a base that all counts before are below.
    pub(super) fn begin(&mut self, arrangement: &Arrangement, runs: usize, threads: usize) -> Counters<'_> {
        if self.progress.members() < threads {
            self.progress = Progress::new(threads);
        }
        let base = self.base;
        let counts = arrangement.units() * arrangement.unit_steps() + 1;
        self.base += runs * counts;
        Counters { progress: &self.progress, base, counts }
    }
}

/// The counters of a few runs, shared by the members.
#[derive(Clone, Copy)]
pub struct Counters<'s> {
    progress: &'s Progress,
    base: usize,
    counts: usize,
}

impl Pipeline {
    pub(super) fn new(arrangement: &Arrangement, stencil: &Stencil) -> Self {
        let turned: Vec<Offset> = stencil.upper().iter().map(|o| o.map(|c| -c)).collect();
        Pipeline { lower: arrangement.ahead(stencil.lower()), upper: arrangement.ahead(&turned) }
    }

    /// A member's part of run number `run`: each piece after what it needs. When a member returns others may still be at work.
    pub(super) fn for_each_ready(
        &self,
        member: &Member<'_>,
        arrangement: &Arrangement,
        direction: Direction,
        counters: Counters<'_>,
        run: usize,
        mut visit: impl FnMut(Piece),
    ) {
        let (units, len) = (arrangement.units(), arrangement.unit_steps());
        let (rank, size, pieces) = (member.rank(), member.size(), arrangement.pieces_a_unit());
        let base = counters.base + run * counters.counts;
        let up = direction == Direction::Up;
        let ahead = if up { self.lower } else { self.upper };
        // Parts, pieces and steps are counted in the direction of the sweep.
        let of_part = |part: usize| if up { part } else { size - 1 - part };
        let done_before =
            |k: usize| if up { arrangement.cuts[k] } else { len - arrangement.cuts[pieces - k] };
        let part = of_part(rank);
        let own = share(pieces, part, size);
        let end = done_before(own.end);
        for turn in 0..units {
            let unit = if up { turn } else { units - 1 - turn };
            if part > 0 {
                let before = base + turn * len + done_before(own.start);
                member.wait_for(counters.progress, of_part(part - 1), before);
            }
            for k in own.clone() {
                let done = done_before(k + 1);
                let need = (done - 1 + ahead).min(len);
                if turn > 0 && need > end {
                    let there = (part + 1..size).find(|&p| done_before(share(pieces, p, size).end) >= need);
                    let there = of_part(there.expect("the last part ends with the unit"));
                    member.wait_for(counters.progress, there, base + (turn - 1) * len + need);
                }
                visit(arrangement.piece(unit, if up { k } else { pieces - 1 - k }));
                counters.progress.announce(rank, base + turn * len + done);
            }
            if own.is_empty() {
                counters.progress.announce(rank, base + turn * len + done_before(own.start));
            }
        }
    }
}

/// A sweep through a arrangement in one direction.
#[derive(Debug)]
pub struct GridPlan {
    pub(super) arrangement: Arc<Arrangement>,
    pub(super) pipeline: Pipeline,
    pub(super) direction: Direction,
    pub(super) threads: usize,
}

/// One run of a sweep, shared by the members.
#[derive(Clone, Copy)]
pub struct GridRun<'r> {
    plan: &'r GridPlan,
    counters: Counters<'r>,
}

impl SweepPlan for GridPlan {
    type Unit = Piece;
    type Scratch = PipelineScratch;
    type Run<'r> = GridRun<'r>;

    fn scratch(&self) -> PipelineScratch {
        PipelineScratch::new(self.threads)
    }

    fn begin<'r>(&'r self, scratch: &'r mut PipelineScratch, threads: usize) -> GridRun<'r> {
        GridRun { plan: self, counters: scratch.begin(&self.arrangement, 1, threads) }
    }

    #[inline]
    fn for_each_ready(run: GridRun<'_>, member: &Member<'_>, visit: impl FnMut(Piece)) {
        let GridPlan { arrangement, pipeline, direction, .. } = run.plan;
        pipeline.for_each_ready(member, arrangement, *direction, run.counters, 0, visit);
    }

    fn bytes(&self) -> usize {
        0
    }

    fn reason(&self, threads: usize) -> String {
        let units = if self.arrangement.grid.extents()[2] > 1 { "planes" } else { "groups of eight lines" };
        match threads {
            1 => "sequential: one thread".into(),
            _ => format!("pipelined: {} {units}, a part of each to every thread", self.arrangement.units()),
        }
    }
}
