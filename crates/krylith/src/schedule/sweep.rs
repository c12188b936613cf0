//! What all plans of sweeps have in common.

use crate::team::Member;
use std::fmt::Debug;

/// How a team goes through the units of a triangle, each after those that it needs.
pub trait SweepPlan: Sync {
    /// What is computed as one piece.
    type Unit;
    /// Progress of one user of the plan.
    type Scratch: Debug + Send;
    /// One run, shared by the members.
    type Run<'r>: Copy + Sync
    where
        Self: 'r;

    fn scratch(&self) -> Self::Scratch;

    /// Before every run, on a team of `threads`.
    fn begin<'r>(&'r self, scratch: &'r mut Self::Scratch, threads: usize) -> Self::Run<'r>;

    /// A member's part: calls `visit` on its units, each after the units it needs have been visited, here or by other members. When a
    /// member returns, others may still be at work: what needs all units comes after a barrier.
    fn for_each_ready(run: Self::Run<'_>, member: &Member<'_>, visit: impl FnMut(Self::Unit));

    /// Bytes that the plan holds.
    fn bytes(&self) -> usize;

    /// Which plan this is on a team of `threads`, and why.
    fn reason(&self, threads: usize) -> String;
}
