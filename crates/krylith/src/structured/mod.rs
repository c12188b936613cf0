//! Matrices of structured grids: stencils instead of index arrays.

mod detect;
mod grid;
mod mapping;
mod stencil;

pub use detect::{NotStructured, Structure};
pub use grid::{Grid, GridError};
pub use mapping::Mapping;
pub use stencil::{Elimination, LONGEST_REACH, MOST_OFFSETS, Offset, Stencil, StencilError};
