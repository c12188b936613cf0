//! How a team goes through the units of a layout: block-to-block waiting on progress counters.
//!
//! Unit u (a plane; in two dimensions a group of lines) is computed by member u mod size, piece after piece in the order of steps.
//! Before a piece it waits until the unit before is so many steps ahead that all lower neighbours are there; that one has waited
//! for the one before it, so nobody needs to look further. Dependencies go from a unit to the one before only: there is no cycle
//! to wait in. The backward sweep is the same seen from the other end.

use super::layout::{Layout, Piece};
use super::stencil::{Offset, Stencil};
use crate::team::{Member, Progress};

/// In which direction units and their steps are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Up,
    Down,
}

/// How far ahead the unit before must be, for lower and for upper neighbours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pipeline {
    lower: usize,
    upper: usize,
}

/// Counters of the members, kept from run to run.
#[derive(Debug)]
pub(super) struct PipelineScratch {
    progress: Progress,
    base: usize,
}

impl PipelineScratch {
    pub(super) fn new(threads: usize) -> Self {
        PipelineScratch { progress: Progress::new(threads), base: 0 }
    }

    /// Counters for so many runs, each from a base that all counts before are below.
    pub(super) fn begin(&mut self, layout: &Layout, runs: usize) -> Counters<'_> {
        let base = self.base;
        let counts = layout.units() * layout.unit_steps() + 1;
        self.base += runs * counts;
        Counters { progress: &self.progress, base, counts }
    }
}

/// The counters of a few runs, shared by the members.
#[derive(Clone, Copy)]
pub(super) struct Counters<'s> {
    progress: &'s Progress,
    base: usize,
    counts: usize,
}

impl Pipeline {
    pub(super) fn new(layout: &Layout, stencil: &Stencil) -> Self {
        let turned: Vec<Offset> = stencil.upper().iter().map(|o| o.map(|c| -c)).collect();
        Pipeline { lower: layout.ahead(stencil.lower()), upper: layout.ahead(&turned) }
    }

    /// A member's part of run number `run`: each piece after what it needs. When a member returns others may still be at work.
    pub(super) fn go(
        &self,
        member: &Member<'_>,
        layout: &Layout,
        direction: Direction,
        counters: Counters<'_>,
        run: usize,
        mut piece: impl FnMut(&Piece),
    ) {
        let (units, len) = (layout.units(), layout.unit_steps());
        let base = counters.base + run * counters.counts;
        let ahead = if direction == Direction::Up { self.lower } else { self.upper };
        for turn in (member.rank()..units).step_by(member.size()) {
            let unit = if direction == Direction::Up { turn } else { units - 1 - turn };
            let start = layout.unit_start(unit);
            let mut one = |p: &Piece| {
                // Steps of this unit that are done after this piece.
                let done = match direction {
                    Direction::Up => p.steps.end - start,
                    Direction::Down => start + len - p.steps.start,
                };
                if turn > 0 && member.size() > 1 {
                    let need = (done - 1 + ahead).min(len);
                    let owner = (turn - 1) % member.size();
                    member.wait_for(counters.progress, owner, base + (turn - 1) * len + need);
                }
                piece(p);
                counters.progress.announce(member.rank(), base + turn * len + done);
            };
            match direction {
                Direction::Up => layout.pieces_of(unit).for_each(|p| one(&p)),
                Direction::Down => layout.pieces_back(unit).for_each(|p| one(&p)),
            }
        }
    }
}
