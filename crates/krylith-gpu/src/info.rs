//! What a device is and what it can do.

use serde::Serialize;
use std::fmt;

/// Which driver reaches a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    /// OpenCL 1.2 or later.
    OpenCl,
    /// CUDA.
    Cuda,
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Backend::OpenCl => "opencl",
            Backend::Cuda => "cuda",
        })
    }
}

/// What a device is made of; kernels have a shape for processors and one for everything else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DeviceKind {
    /// The cores of a processor.
    Cpu,
    /// A GPU.
    Gpu,
    /// Something else.
    Accelerator,
}

/// A device and its capabilities.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DeviceInfo {
    /// The driver.
    pub backend: Backend,
    /// Its number among the devices of the backend, from 0.
    pub index: usize,
    /// Its name.
    pub name: String,
    /// Who made the driver, and of which version it is.
    pub driver: String,
    /// What it is made of.
    pub kind: DeviceKind,
    /// Compute units (OpenCL) or multiprocessors (CUDA).
    pub compute_units: u32,
    /// The most items of a group.
    pub max_group_items: usize,
    /// Bytes that a group shares.
    pub local_bytes: u64,
    /// Bytes of its memory.
    pub memory_bytes: u64,
    /// The most bytes of one buffer.
    pub max_buffer_bytes: u64,
    /// It computes in `f64`.
    pub f64: bool,
    /// Atomic operations with acquire and release order between groups.
    pub acquire_release: bool,
    /// A group that waits for an earlier one does not keep it from running.
    pub forward_progress: bool,
}

impl DeviceInfo {
    /// The name by which the device is asked for, such as `opencl:0`.
    pub fn selector(&self) -> String {
        format!("{}:{}", self.backend, self.index)
    }

    /// Why Krylith cannot run on it; `None` if it can.
    pub fn lacks(&self) -> Option<&'static str> {
        if !self.f64 {
            Some("it does not compute in f64")
        } else if self.kind != DeviceKind::Cpu && self.max_group_items < crate::program::GROUP_SIZE {
            Some("its groups have fewer than 256 items")
        } else {
            None
        }
    }
}
