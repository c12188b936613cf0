//! What of a triangular solve or factorization may run at the same time, and in which order it does.

mod blocks;
mod levels;
mod plan;
mod slices;
mod wavefront;

pub use plan::{Plan, Schedule};
pub(crate) use plan::{PlanScratch, require_threads};
pub(crate) use slices::SlicePlan;
pub use wavefront::Wavefronts;
