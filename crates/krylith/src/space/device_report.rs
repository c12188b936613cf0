//! What a device did in a solve, for reports.

use serde::{Deserialize, Serialize};

/// What a device did in a solve.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DeviceReport {
    /// By what name it is asked for, such as `opencl:0`.
    pub device: String,
    /// Its own name.
    pub name: String,
    /// Its driver.
    pub driver: String,
    /// Answers have the bits of threads by rows.
    pub reproducible: bool,
    /// Kernels launched.
    pub launches: u64,
    /// Bytes copied to the device.
    pub bytes_to_device: u64,
    /// Bytes copied from the device.
    pub bytes_from_device: u64,
    /// How often the host waited for the device.
    pub synchronisations: u64,
    /// Buffers that were allocated.
    pub allocations: u64,
    /// Launches and seconds of each kernel, where they were timed.
    pub kernels: Vec<KernelTime>,
}

impl DeviceReport {
    /// With nothing counted.
    pub fn new(device: String, name: String, driver: String, reproducible: bool) -> Self {
        DeviceReport {
            device,
            name,
            driver,
            reproducible,
            launches: 0,
            bytes_to_device: 0,
            bytes_from_device: 0,
            synchronisations: 0,
            allocations: 0,
            kernels: Vec::new(),
        }
    }
}

/// How often a kernel ran, and how long in all.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KernelTime {
    /// Its name.
    pub kernel: String,
    /// How often.
    pub launches: u64,
    /// How long.
    pub seconds: f64,
}
