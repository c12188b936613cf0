//! What is done to a matrix before it is factored: rows and columns in another order, and scaled.
//!
//! * [`order`] and [`Ordering`]: symmetric reorderings P A Pᵀ of a square matrix, from its pattern alone;
//! * [`OrderingQuality`]: what an ordering does to bandwidth, wavefronts and fill;
//! * [`Matching`]: columns permuted and rows and columns scaled, so that large entries come to the diagonal.
//!
//! Everything here runs on one thread, with ties broken by index, so the results do not depend on the number of threads.

mod colouring;
mod dissection;
pub(crate) mod elimination;
mod error;
pub(crate) mod graph;
mod matching;
mod minimum_degree;
mod ordering;
mod quality;
mod rank;
mod rcm;

pub use error::{MatchingError, OrderingError};
pub use matching::Matching;
pub(crate) use matching::scaled;
pub use ordering::{Ordering, order};
pub use quality::OrderingQuality;
pub(crate) use rank::{complete_matching, structural_rank};
