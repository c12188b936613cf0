//! The kernels: one source in a small dialect of C, and the options it is compiled with.

use std::fmt::Write;

/// Items of a group, in the shape for GPUs.
pub(crate) const GROUP_SIZE: usize = 256;

/// Vectors that one launch takes of a basis.
pub(crate) const MANY: usize = 32;

/// Pairs that one launch takes of a list.
pub(crate) const PAIRS: usize = 4;

const HEADERS: [&str; 2] = [include_str!("../kernels/dialect.h"), include_str!("../kernels/bins.h")];
const FILES: &[&str] = &[
    include_str!("../kernels/vectors.c"),
    include_str!("../kernels/sums.c"),
    include_str!("../kernels/products.c"),
    include_str!("../kernels/sweeps.c"),
];

/// Names the kernels, and numbers them.
macro_rules! kernels {
    ($($variant:ident $name:literal),* $(,)?) => {
        /// A kernel.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Kernel { $($variant),* }

        /// The names of all kernels, in the order of [`Kernel`].
        pub(crate) const KERNELS: &[&str] = &[$($name),*];
    };
}

kernels! {
    Fill "fill", Scale "scale", Axpby "axpby", CgDirection "cg_direction", BicgstabDirection "bicgstab_direction",
    CombineTwo "combine_two", CombineMany "combine_many",
    Dots "dots", BasisDots "basis_dots", UpdateNorm "update_norm", UpdateDots "update_dots", Extremes "extremes",
    ProductRows "product_rows", ProductRowsDot "product_rows_dot", ProductLanes "product_lanes",
    ProductSlices "product_slices", ProductSlicesDot "product_slices_dot",
    ProductBlocks "product_blocks", ProductBlocksDot "product_blocks_dot",
    Forward "forward", ForwardLevels "forward_levels", Backward "backward", BackwardLevels "backward_levels",
    Cholesky "cholesky", CholeskyLevels "cholesky_levels", Lu "lu", LuLevels "lu_levels", Mirror "mirror",
    Multiply "multiply", UpdateMultiply "update_multiply",
}

/// Who a kernel is shaped for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KernelShape {
    /// One item works on a chunk of entries: for processors.
    Cpu,
    /// A group of 256 items works together: for GPUs.
    Gpu,
}

impl std::fmt::Display for KernelShape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            KernelShape::Cpu => "processor",
            KernelShape::Gpu => "GPU",
        })
    }
}

/// What the source is compiled with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Program {
    /// `f64` rather than `f32`.
    pub(crate) double: bool,
    pub(crate) shape: KernelShape,
    /// Products are rounded before they are added, as on threads.
    pub(crate) exact: bool,
    /// Every access is compared with the size of its buffer.
    pub(crate) checked: bool,
}

impl Program {
    /// The whole text: options, dialect, kernels.
    pub(crate) fn source(&self) -> String {
        let cpu = self.shape == KernelShape::Cpu;
        let mut text = String::new();
        for (name, on) in
            [("DOUBLE", self.double), ("SHAPE_CPU", cpu), ("EXACT", self.exact), ("CHECKED", self.checked)]
        {
            writeln!(text, "#define {name} {}", u8::from(on)).expect("a string takes every text");
        }
        HEADERS.iter().chain(FILES).for_each(|file| text.push_str(file));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kernel_is_in_the_source_once() {
        let whole: String = FILES.concat();
        // Slices have one kernel of a name for each shape.
        let versions = |name: &str| if name.starts_with("product_slices") { 2 } else { 1 };
        for name in KERNELS {
            assert_eq!(whole.matches(&format!("KERNEL {name}(")).count(), versions(name), "{name}");
        }
        let expected: usize = KERNELS.iter().map(|name| versions(name)).sum();
        assert_eq!(whole.matches("\nKERNEL ").count(), expected);
        assert_eq!(KERNELS[Kernel::Extremes as usize], "extremes");
    }
}
