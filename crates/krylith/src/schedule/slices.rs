//! A plan for slices that stand wavefront after wavefront.
//!
//! Each level is divided into consecutive shares, one per member, so that a member mostly needs what it computed itself. By levels
//! all meet after each; point to point, a share is cut into a few blocks, and a block waits only for the blocks of other members
//! that it needs, which are those next to where shares meet: while these are on their way, a member computes the others.
//! Levels too small to share are member 0's.

use super::SweepPlan;
use super::blocks::{Blocks, Graph};
use super::plan::{PlanId, PlanScratch, Schedule, cost};
use crate::matrix::Triangle;
use crate::parallel;
use crate::parallel::share;
use crate::team::{Member, Progress};
use std::ops::Range;

/// Slices a member below which a level is not shared.
const SLICES_A_MEMBER: usize = 4;

/// Slices a block should have at least, and blocks that a share is cut into at most.
const SLICES_A_BLOCK: usize = 16;
const BLOCKS_A_SHARE: usize = 4;
/// Blocks whose needs are found one after the other.
const BLOCKS_A_TASK: usize = 64;

/// How a team goes through slices.
#[derive(Debug)]
pub struct SlicePlan {
    id: PlanId,
    triangle: Triangle,
    slices: usize,
    threads: usize,
    form: Form,
    reason: String,
}

#[derive(Debug)]
enum Form {
    Sequential,
    /// Where steps end; all members meet between them.
    Levels(Vec<u32>),
    Blocks(Blocks),
}

impl SlicePlan {
    /// A plan for a team of `threads`. `levels` holds the first slice of each level and the end; `needs` gives two slices for
    /// every strip of a slice: the first and the last that it points to.
    pub(crate) fn new<I: Iterator<Item = u32>>(
        levels: &[u32],
        triangle: Triangle,
        threads: usize,
        schedule: Schedule,
        needs: impl Fn(usize) -> I + Sync,
    ) -> Self {
        let slices = levels.last().map_or(0, |&end| end as usize);
        let plan = |form, reason| SlicePlan { id: PlanId::new(), triangle, slices, threads, form, reason };
        if threads <= 1 {
            return plan(Form::Sequential, "sequential: one thread".into());
        }
        // Ends of levels in the order of the sweep.
        let ends: Vec<u32> = match triangle {
            Triangle::Lower => levels[1..].to_vec(),
            Triangle::Upper => levels[..levels.len() - 1].iter().rev().map(|&s| slices as u32 - s).collect(),
        };
        let at = |position: usize| match triangle {
            Triangle::Lower => position,
            Triangle::Upper => slices - 1 - position,
        };
        let work = parallel::map_rows(slices, |position| {
            cost::SLICE + cost::STRIP * needs(at(position)).count() as f64 / 2.0
        });
        let alone: f64 = work.iter().sum();
        let by_levels = || {
            let time = time_by_levels(&ends, &work, threads);
            (Form::Levels(ends.clone()), time, format!("{} levels", ends.len()))
        };
        let by_blocks = || {
            let blocks =
                blocks(&ends, &work, threads, |position| needs(at(position)).map(|s| at(s as usize)));
            let (time, what) = (blocks.time(), blocks.describe());
            (Form::Blocks(blocks), time, what)
        };
        let gain = |time: f64| alone / time.max(1.0);
        match schedule {
            Schedule::Levels => {
                let (form, _, what) = by_levels();
                plan(form, format!("{what} as asked"))
            }
            Schedule::PointToPoint => {
                let (form, _, what) = by_blocks();
                plan(form, format!("{what} as asked"))
            }
            Schedule::Auto => {
                let ((l, l_time, l_what), (b, b_time, b_what)) = (by_levels(), by_blocks());
                let why = format!(
                    "predicted {:.2}x with {b_what}, {:.2}x with {l_what}",
                    gain(b_time),
                    gain(l_time)
                );
                if b_time.min(l_time) > 0.9 * alone {
                    plan(Form::Sequential, format!("sequential: {why}"))
                } else if b_time <= l_time {
                    plan(b, format!("point to point: {why}"))
                } else {
                    plan(l, format!("levels: {why}"))
                }
            }
        }
    }

    /// The slices at these positions of the sweep.
    fn slices(&self, positions: Range<usize>) -> Range<usize> {
        match self.triangle {
            Triangle::Lower => positions,
            Triangle::Upper => self.slices - positions.end..self.slices - positions.start,
        }
    }
}

/// One run through a plan, shared by the members.
#[derive(Clone, Copy)]
pub struct SliceRun<'r> {
    plan: &'r SlicePlan,
    progress: &'r Progress,
    base: usize,
}

/// Units are ranges of slices, within which slices go up for a lower triangle and down for an upper one.
impl SweepPlan for SlicePlan {
    type Unit = Range<usize>;
    type Scratch = PlanScratch;
    type Run<'r> = SliceRun<'r>;

    fn scratch(&self) -> PlanScratch {
        PlanScratch::new(self.id, if matches!(self.form, Form::Blocks(_)) { self.threads } else { 0 })
    }

    fn begin<'r>(&'r self, scratch: &'r mut PlanScratch, _: usize) -> SliceRun<'r> {
        let blocks = if let Form::Blocks(b) = &self.form { b.longest_list() } else { 0 };
        let (progress, base) = scratch.advance(self.id, blocks);
        SliceRun { plan: self, progress, base }
    }

    #[inline]
    fn for_each_ready(run: SliceRun<'_>, member: &Member<'_>, mut visit: impl FnMut(Range<usize>)) {
        let plan = run.plan;
        match &plan.form {
            Form::Levels(ends) if member.size() > 1 => {
                let mut start = 0;
                for &end in ends {
                    let level = start..end as usize;
                    start = end as usize;
                    if let Some(own) = share_of(level, member.rank(), member.size()) {
                        visit(plan.slices(own));
                    }
                    member.barrier();
                }
            }
            Form::Blocks(blocks) if member.size() == plan.threads => {
                blocks
                    .for_each_ready_block(member, run.progress, run.base, |block| visit(plan.slices(block)));
            }
            _ if member.rank() == 0 => visit(0..plan.slices),
            _ => {}
        }
    }

    fn bytes(&self) -> usize {
        match &self.form {
            Form::Sequential => 0,
            Form::Levels(ends) => size_of_val(ends.as_slice()),
            Form::Blocks(blocks) => blocks.bytes(),
        }
    }

    fn reason(&self, _: usize) -> String {
        self.reason.clone()
    }
}

/// A member's share of a level, if it has one.
fn share_of(level: Range<usize>, rank: usize, size: usize) -> Option<Range<usize>> {
    let count = level.len();
    let own = match (count >= SLICES_A_MEMBER * size, rank) {
        (true, _) => share(count, rank, size),
        (false, 0) => 0..count,
        (false, _) => 0..0,
    };
    (!own.is_empty()).then_some(level.start + own.start..level.start + own.end)
}

fn time_by_levels(ends: &[u32], work: &[f64], threads: usize) -> f64 {
    let (mut time, mut start) = (0.0, 0);
    for &end in ends {
        let level = start..end as usize;
        start = end as usize;
        let of = |rank| share_of(level.clone(), rank, threads).map_or(0.0, |own| work[own].iter().sum());
        time += (0..threads).map(of).fold(0.0, f64::max) + cost::BARRIER * threads as f64;
    }
    time
}

fn blocks<I: Iterator<Item = usize>>(
    ends: &[u32],
    work: &[f64],
    threads: usize,
    needs: impl Fn(usize) -> I + Sync,
) -> Blocks {
    let (mut starts, mut owner) = (Vec::new(), Vec::new());
    let mut start = 0;
    for &end in ends {
        let level = start..end as usize;
        start = end as usize;
        for rank in 0..threads {
            let Some(own) = share_of(level.clone(), rank, threads) else { continue };
            let pieces = (own.len() / SLICES_A_BLOCK).clamp(1, BLOCKS_A_SHARE);
            for piece in 0..pieces {
                starts.push(own.start + share(own.len(), piece, pieces).start);
                owner.push(rank as u32);
            }
        }
    }
    starts.push(work.len());
    let mut block_of = vec![0u32; work.len()];
    for (b, range) in starts.windows(2).enumerate() {
        block_of[range[0]..range[1]].fill(b as u32);
    }
    let found = parallel::map_by(starts.len() - 1, BLOCKS_A_TASK, |block| {
        let range = starts[block]..starts[block + 1];
        let mut needed: Vec<u32> = Vec::new();
        for position in range.clone() {
            for other in needs(position) {
                let block = block_of[other];
                if !needed.contains(&block) {
                    needed.push(block);
                }
            }
        }
        needed.sort_unstable();
        (work[range].iter().sum(), needed)
    });
    let order: Vec<u32> = (0..owner.len() as u32).collect();
    Blocks::connect(&starts, &Graph::from_needs(found), &owner, &order, threads)
}
