//! The library from outside, one module per subject, all in one binary: linked once instead of forty times.
//!
//! Tests that count allocations or measure beside a busy machine have binaries of their own.

/// Residuals without rounding errors.
mod exact;
/// The plainest space.
mod sequential;

mod applied;
mod at_the_limit;
mod bits;
mod builder;
mod changing_files;
mod engine;
mod fsai;
mod gallery;
mod hierarchy;
mod hostile;
mod incomplete;
mod interface;
mod io;
mod krylov;
mod ladder;
mod layers;
mod learn;
mod limits;
mod matrix;
mod members;
mod null_space;
mod other_matrix;
mod pattern;
mod placement;
mod readme;
mod registry;
mod same_bits;
mod shift;
mod single;
mod solver;
mod sparsify;
mod structured;
mod structured_detect;
mod threads;
mod traits;
mod transform;
mod verdicts;
