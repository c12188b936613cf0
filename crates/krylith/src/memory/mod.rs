//! Memory of the machine: what is left of it, and large pages for large arrays.

mod available;
pub(crate) mod large_pages;

pub use available::available_memory;
