//! Facts about a matrix: symmetry, signs, sizes, ranks, its mesh; those of the whole matrix where processes have parts of it.

mod found;
mod likely;
mod mesh;
mod neighbours;
mod row_facts;
mod whole;

pub use found::Facts;
pub(crate) use found::has_constant_null_vectors;
pub use mesh::{GridFacts, Mesh, wavefronts};
pub(crate) use neighbours::Neighbourhood;
pub(crate) use row_facts::TINY;
pub(crate) use whole::Whole;
