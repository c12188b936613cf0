//! What of a triangular solve may run at the same time.

mod wavefront;

pub use wavefront::Wavefronts;
