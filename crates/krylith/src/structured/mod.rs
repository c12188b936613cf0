//! Matrices of structured grids: stencils instead of index arrays.

mod grid;
mod mapping;
mod stencil;

pub use grid::{Grid, GridError};
pub use mapping::Mapping;
pub use stencil::{Elimination, LONGEST_REACH, MOST_OFFSETS, Offset, Stencil, StencilError};
