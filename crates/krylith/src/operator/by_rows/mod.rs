//! Matrices by rows as operators on threads: products, residuals with bounds of their rounding, products with the transpose in twice the digits.

mod normal;
mod residual;
mod row_products;
mod spmv;

pub(crate) use normal::{dot as precise_dot, transposed_product};
pub(crate) use residual::{norm_roundoff, two_sum};
pub(crate) use spmv::part_by_work;
