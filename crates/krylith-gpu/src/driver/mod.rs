//! The few calls of a driver that this crate needs, for OpenCL and for CUDA.
//!
//! Memory, modules and kernels are handles: what they are is the driver's affair. A [`Driver`] is shared; a [`Stream`] is an in-order
//! queue of work that belongs to one solve at a time.
//!
//! Nothing here checks sizes: [`Buffer`](crate::Buffer) and the operations of the space do.
#![allow(unsafe_code)]

pub(crate) mod cuda;
pub(crate) mod faults;
pub(crate) mod opencl;
pub(crate) mod recorded;

use crate::info::DeviceInfo;
use crate::program::Program;
use krylith::BackendError;

/// Memory of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Memory(pub(crate) u64);

/// Compiled kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Module(pub(crate) u64);

/// An argument of a kernel.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Arg {
    Buffer(Memory),
    U32(u32),
    U64(u64),
    F32(f32),
    F64(f64),
}

/// How many groups of how many items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) groups: usize,
    pub(crate) items: usize,
}

/// A device.
pub(crate) trait Driver: Send + Sync {
    fn info(&self) -> &DeviceInfo;

    /// At least one byte.
    fn allocate(&self, bytes: usize) -> Result<Memory, BackendError>;

    /// Frees memory when the work that is queued and uses it is done: OpenCL keeps it until then, and CUDA waits.
    ///
    /// # Safety
    /// The memory came from [`allocate`](Self::allocate), is not freed, and is given to no work from now on.
    unsafe fn free(&self, memory: Memory);

    /// Compiles; gives the binary as well, which [`load`](Self::load) takes.
    fn compile(&self, program: &Program) -> Result<(Module, Vec<u8>), BackendError>;

    /// Takes a binary of this device and driver.
    fn load(&self, binary: &[u8]) -> Result<Module, BackendError>;

    /// # Safety
    /// The module came from this driver, is not unloaded, and no stream has its kernels.
    unsafe fn unload(&self, module: Module);

    /// A queue with kernels of this module, by these names; with times of kernels if `timed`.
    fn stream(
        &self,
        module: Module,
        kernels: &[&'static str],
        timed: bool,
    ) -> Result<Box<dyn Stream>, BackendError>;
}

/// An in-order queue.
pub(crate) trait Stream: Send {
    /// Copies to the device; has been done on return.
    ///
    /// # Safety
    /// The memory has room for `from` at `offset`.
    unsafe fn write(&mut self, to: Memory, offset: usize, from: &[u8]) -> Result<(), BackendError>;

    /// Copies from the device what all work queued before leaves there.
    ///
    /// # Safety
    /// The memory holds `to.len()` bytes at `offset`.
    unsafe fn read(&mut self, from: Memory, offset: usize, to: &mut [u8]) -> Result<(), BackendError>;

    /// Queues a copy.
    ///
    /// # Safety
    /// Both hold as many bytes, and stay until the work is done.
    unsafe fn copy(&mut self, from: Memory, to: Memory, bytes: usize) -> Result<(), BackendError>;

    /// Queues a kernel, by its index in the list of names.
    ///
    /// # Safety
    /// Arguments are those of the kernel, and buffers hold what it reads and writes, until the work is done.
    unsafe fn launch(&mut self, kernel: usize, shape: Shape, args: &[Arg]) -> Result<(), BackendError>;

    /// Waits for all work.
    fn finish(&mut self) -> Result<(), BackendError>;

    /// Nanoseconds of each kernel that was launched since the last call, where the stream is timed; waits for all work.
    fn times(&mut self) -> Result<Vec<(usize, u64)>, BackendError>;
}
