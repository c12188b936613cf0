//! What of a triangular solve or factorization may run at the same time, and in which order it does.

mod blocks;
mod levels;
mod plan;
mod slices;
mod sweep;
mod wavefront;

pub(crate) use plan::require_threads;
pub use plan::{Plan, Schedule};
pub(crate) use slices::SlicePlan;
pub(crate) use sweep::SweepPlan;
pub use wavefront::Wavefronts;
