//! Krylith on devices: GPUs through OpenCL or CUDA, and processors through their OpenCL drivers.
//!
//! No GPU has run it yet. OpenCL has run on processors, with PoCL and Intel's runtime; for CUDA the kernels are compiled, and the host's side runs against a stub.
//!
//! The kernels are one source in a small dialect of C (`kernels/`), compiled when a program runs: by OpenCL, or by NVRTC for CUDA. Both are
//! loaded dynamically, so nothing is needed to build, and a machine without a driver gets an error that says what to install.
//!
//! [`devices`] lists what there is; [`Device::open`] opens one; a [`DeviceSpace`] is where vectors of a solve live.

mod bench;
mod cache;
mod device;
mod discover;
mod driver;
mod factor;
mod info;
mod matrix;
mod program;
mod solver;
mod space;
mod store;
mod sweeps;

pub use bench::{DeviceFigures, SolveFigures, measure};
pub use device::{Buffer, Counts, Device, DeviceOptions, DeviceScalar, Element};
pub use discover::{Devices, Selector, devices};
#[doc(hidden)]
pub use driver::{faults::Faults, recorded::Launch};
pub use info::{Backend, DeviceInfo, DeviceKind};
pub use matrix::{DeviceMatrix, DeviceStorage};
pub use program::KernelShape;
pub use solver::{DevicePrepared, DeviceSolver, HostVectors, OnDevice};
pub use space::{DeviceSpace, DeviceVector};

/// The kernels in the shape for GPUs, compiled by NVRTC for an architecture such as 80 for sm_80: a cubin, or what the compiler said.
/// Needs no device.
pub fn compile_for_cuda(architecture: i32, double: bool, reproducible: bool) -> Result<Vec<u8>, String> {
    let shape = KernelShape::Gpu;
    let program = program::Program { double, shape, exact: reproducible, checked: false };
    driver::cuda::compile_for(architecture, &program)
}

/// The example of the page on devices.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/devices.md")]
struct Page;
