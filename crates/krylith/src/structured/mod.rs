//! Matrices of structured grids: stencils instead of index arrays.

mod detect;
mod eisenstat;
mod eliminate;
mod factor;
mod grid;
mod kernels;
mod layout;
mod mapping;
mod matrix;
mod pipeline;
mod stencil;

pub use detect::{NotStructured, Structure};
pub use eisenstat::EisenstatCg;
pub use factor::{StencilFactor, StencilScratch};
pub use grid::{Grid, GridError};
pub use layout::LayoutError;
pub use mapping::Mapping;
pub use matrix::{MOST_UNKNOWNS, StencilMatrix};
pub use stencil::{Elimination, LONGEST_REACH, MOST_OFFSETS, Offset, Stencil, StencilError};

#[cfg(test)]
mod tests;
