//! Preconditioners that learn from solves ([`learn`](crate::learn)): before a solve, from random right-hand sides, and in a sequence of solves.

mod by_solving;
mod online;
mod rounds;

pub(super) use by_solving::TrainedMatrix;
pub use by_solving::{paired, train_by_solving};
pub use online::{Learned, Learning, LearningReport};
