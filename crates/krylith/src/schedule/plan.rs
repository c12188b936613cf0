//! A plan: how a team goes through the rows of a triangle, each row after those it needs.
//!
//! Three ways behind one interface:
//!
//! * *levels*: one wavefront after the other, its rows divided among the members, a barrier in between;
//! * *point to point*: contiguous blocks of rows, each member its own list of them, waiting only for the blocks of other
//!   members that it needs and has not already heard of;
//! * *sequential*, where neither would gain.
//!
//! Rows are computed by the same code whatever the plan, so a plan changes the speed and never a bit of the result.
//! The choice comes from counts (rows, entries, blocks, levels) and the rough costs below, never from a stopwatch.

use super::SweepPlan;
use super::blocks::Blocks;
use super::levels::Levels;
use crate::error::MatrixError;
use crate::matrix::{Pattern, Triangle};
use crate::team::{Member, Progress};
use std::sync::atomic::{AtomicU64, Ordering};

/// Which plan to make.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Schedule {
    /// The one with the smallest predicted time.
    #[default]
    Auto,
    /// Wavefront after wavefront.
    Levels,
    /// Blocks that wait for each other.
    PointToPoint,
}

/// Nanoseconds that a prediction assumes. They are estimates, not yet calibrated against measurements: a predicted speed-up tells
/// plans apart, it is not what a solve gains.
pub(super) mod cost {
    /// An entry of the triangle, streamed from memory.
    pub(in crate::schedule) const ENTRY: f64 = 1.2;
    /// A row.
    pub(in crate::schedule) const ROW: f64 = 2.0;
    /// A row out of the order in which memory holds it.
    pub(in crate::schedule) const ROW_OUT_OF_ORDER: f64 = 8.0;
    /// A meeting of all members, for each of them.
    pub(in crate::schedule) const BARRIER: f64 = 150.0;
    /// A strip of eight entries in a slice, streamed from memory.
    pub(in crate::schedule) const STRIP: f64 = 5.0;
    /// A slice of eight rows.
    pub(in crate::schedule) const SLICE: f64 = 2.0;
    /// Waiting for one other member.
    pub(in crate::schedule) const WAIT: f64 = 120.0;
}

/// How a team goes through the rows of a triangle.
#[derive(Debug)]
pub struct Plan {
    id: PlanId,
    rows: Rows,
    threads: usize,
    form: Form,
    reason: String,
}

#[derive(Debug)]
enum Form {
    Sequential,
    Levels(Levels),
    Blocks(Blocks),
}

/// Positions of rows in the order of the triangle: from the first row down, or from the last one up.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rows {
    pub(super) n: usize,
    pub(super) triangle: Triangle,
}

impl Rows {
    /// The row at a position, and the position of a row.
    #[inline]
    pub(super) fn at(self, position: usize) -> usize {
        match self.triangle {
            Triangle::Lower => position,
            Triangle::Upper => self.n - 1 - position,
        }
    }

    /// The columns that row `i` needs.
    #[inline]
    pub(super) fn needs(self, pattern: &Pattern, i: usize) -> &[u32] {
        let columns = pattern.row(i);
        match self.triangle {
            Triangle::Lower => &columns[..columns.partition_point(|&j| (j as usize) < i)],
            Triangle::Upper => &columns[columns.partition_point(|&j| j as usize <= i)..],
        }
    }
}

/// The counters that one user of a plan waits on.
#[derive(Debug)]
pub struct PlanScratch {
    plan: PlanId,
    progress: Progress,
    base: usize,
}

/// Tells plans apart: counters of one would let rows of another run too early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlanId(u64);

impl PlanId {
    pub(super) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        PlanId(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

impl PlanScratch {
    pub(super) fn new(plan: PlanId, members: usize) -> Self {
        PlanScratch { plan, progress: Progress::new(members), base: 0 }
    }

    /// The counters, and the count from which a run of `plan` that raises them by `count` begins.
    pub(super) fn advance(&mut self, plan: PlanId, count: usize) -> (&Progress, usize) {
        assert_eq!(self.plan, plan, "a scratch belongs to the factor that made it");
        let base = self.base;
        self.base += count;
        (&self.progress, base)
    }
}

/// The most threads of a team that a plan is made for.
const MOST_THREADS: usize = 1 << 16;

/// An error if no team can have so many threads.
pub(crate) fn require_threads(threads: usize) -> Result<(), MatrixError> {
    if threads <= MOST_THREADS {
        Ok(())
    } else {
        Err(MatrixError::TooManyThreads { threads, most: MOST_THREADS })
    }
}

impl Plan {
    /// A plan for a team of `threads`. Entries of the other triangle and the diagonal do not count.
    pub fn new(
        pattern: &Pattern,
        triangle: Triangle,
        threads: usize,
        schedule: Schedule,
    ) -> Result<Self, MatrixError> {
        pattern.require_square()?;
        require_threads(threads)?;
        let rows = Rows { n: pattern.nrows(), triangle };
        let plan = |form, reason| Ok(Plan { id: PlanId::new(), rows, threads, form, reason });
        if threads <= 1 {
            return plan(Form::Sequential, "sequential: one thread".into());
        }
        let levels = || Levels::new(pattern, rows, threads);
        let blocks = || Blocks::best(pattern, rows, threads);
        match schedule {
            Schedule::Levels => {
                let l = levels();
                let reason = format!("{} as asked", l.describe());
                plan(Form::Levels(l), reason)
            }
            Schedule::PointToPoint => {
                let b = blocks();
                let reason = format!("{} as asked", b.describe());
                plan(Form::Blocks(b), reason)
            }
            Schedule::Auto => {
                let entries = (0..rows.n).map(|i| rows.needs(pattern, i).len()).sum::<usize>();
                let alone = entries as f64 * cost::ENTRY + rows.n as f64 * cost::ROW;
                let (b, l) = (blocks(), levels());
                let speedups = format!(
                    "predicted {:.2}x with {}, {:.2}x with {}",
                    alone / b.time(),
                    b.describe(),
                    alone / l.time(),
                    l.describe()
                );
                if b.time().min(l.time()) > 0.9 * alone {
                    plan(Form::Sequential, format!("sequential: {speedups}"))
                } else if b.time() <= l.time() {
                    plan(Form::Blocks(b), format!("point to point: {speedups}"))
                } else {
                    plan(Form::Levels(l), format!("levels: {speedups}"))
                }
            }
        }
    }

    /// Which plan this is, and why.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// `"sequential"`, `"levels"` or `"p2p"`.
    pub fn name(&self) -> &'static str {
        match self.form {
            Form::Sequential => "sequential",
            Form::Levels(_) => "levels",
            Form::Blocks(_) => "p2p",
        }
    }
}

/// One run through a plan, shared by the members.
#[derive(Clone, Copy)]
pub struct Run<'r> {
    plan: &'r Plan,
    progress: &'r Progress,
    base: usize,
}

impl SweepPlan for Plan {
    type Unit = usize;
    type Scratch = PlanScratch;
    type Run<'r> = Run<'r>;

    fn scratch(&self) -> PlanScratch {
        let members = if matches!(self.form, Form::Blocks(_)) { self.threads } else { 0 };
        PlanScratch::new(self.id, members)
    }

    fn begin<'r>(&'r self, scratch: &'r mut PlanScratch, _: usize) -> Run<'r> {
        let blocks = if let Form::Blocks(b) = &self.form { b.longest_list() } else { 0 };
        let (progress, base) = scratch.advance(self.id, blocks);
        Run { plan: self, progress, base }
    }

    #[inline]
    fn for_each_ready(run: Run<'_>, member: &Member<'_>, mut visit: impl FnMut(usize)) {
        let rows = run.plan.rows;
        match &run.plan.form {
            Form::Levels(levels) if member.size() > 1 => levels.for_each_ready(rows, member, visit),
            Form::Blocks(blocks) if member.size() == run.plan.threads => {
                blocks.for_each_ready(rows, member, run.progress, run.base, visit);
            }
            _ if member.rank() == 0 => match rows.triangle {
                Triangle::Lower => (0..rows.n).for_each(visit),
                Triangle::Upper => (0..rows.n).rev().for_each(visit),
            },
            _ => (0..0).for_each(&mut visit),
        }
    }

    fn bytes(&self) -> usize {
        match &self.form {
            Form::Sequential => 0,
            Form::Levels(l) => l.bytes(),
            Form::Blocks(b) => b.bytes(),
        }
    }

    fn reason(&self, _: usize) -> String {
        self.reason.clone()
    }
}
