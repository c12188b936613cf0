//! What parts of a solve will cost on a machine, predicted from counts.

mod machine;
mod predict;
mod presets;

pub use machine::{Machine, Machines, REFERENCE, Rates};
pub(crate) use predict::LAUNCHES_OF_M;
pub use predict::{Applied, Expected, Operations, Work, operations};
pub use presets::{DEVICE, MANY_CORE, PROCESSOR_DEVICE};
