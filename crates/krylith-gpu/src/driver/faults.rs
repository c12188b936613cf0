//! A driver that fails where it is asked to, for tests of what follows a failure.
#![allow(unsafe_code)]

use super::{Arg, Driver, Memory, Module, Shape, Stream};
use crate::info::DeviceInfo;
use crate::program::Program;
use krylith::BackendError;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// Which call fails; each counts down and fails at 0. Negative: never.
#[derive(Debug)]
pub struct Faults {
    /// Compiling.
    pub compile: AtomicI64,
    /// Allocating memory.
    pub allocate: AtomicI64,
    /// Launching a kernel; the device is lost from then on.
    pub launch: AtomicI64,
}

impl Default for Faults {
    fn default() -> Self {
        let never = || AtomicI64::new(-1);
        Faults { compile: never(), allocate: never(), launch: never() }
    }
}

impl Faults {
    /// Whether this call is the one.
    fn strikes(counter: &AtomicI64) -> bool {
        let count = counter.load(Ordering::Relaxed);
        if count > 0 {
            counter.store(count - 1, Ordering::Relaxed);
        }
        count == 0
    }

    fn lost(&self, info: &DeviceInfo) -> Result<(), BackendError> {
        match self.launch.load(Ordering::Relaxed) {
            0 => Err(BackendError::DeviceLost {
                device: info.name.clone(),
                call: "an injected fault",
                code: -1,
            }),
            _ => Ok(()),
        }
    }
}

/// A driver with faults.
pub(crate) struct Faulty {
    pub(crate) inner: Box<dyn Driver>,
    pub(crate) faults: Arc<Faults>,
}

impl Driver for Faulty {
    fn info(&self) -> &DeviceInfo {
        self.inner.info()
    }

    fn allocate(&self, bytes: usize) -> Result<Memory, BackendError> {
        match Faults::strikes(&self.faults.allocate) {
            true => {
                let device = self.info().name.clone();
                Err(BackendError::OutOfMemory { device, bytes: bytes as u64 })
            }
            false => self.inner.allocate(bytes),
        }
    }

    unsafe fn free(&self, memory: Memory) {
        // SAFETY: by the caller's promise.
        unsafe { self.inner.free(memory) };
    }

    fn compile(&self, program: &Program) -> Result<(Module, Vec<u8>), BackendError> {
        match Faults::strikes(&self.faults.compile) {
            true => {
                let device = self.info().name.clone();
                Err(BackendError::Compile { device, log: "an injected fault".into() })
            }
            false => self.inner.compile(program),
        }
    }

    fn load(&self, binary: &[u8]) -> Result<Module, BackendError> {
        self.inner.load(binary)
    }

    unsafe fn unload(&self, module: Module) {
        // SAFETY: by the caller's promise.
        unsafe { self.inner.unload(module) };
    }

    fn stream(
        &self,
        module: Module,
        kernels: &[&'static str],
        timed: bool,
    ) -> Result<Box<dyn Stream>, BackendError> {
        let inner = self.inner.stream(module, kernels, timed)?;
        Ok(Box::new(FaultyStream { inner, faults: Arc::clone(&self.faults), info: self.info().clone() }))
    }
}

struct FaultyStream {
    inner: Box<dyn Stream>,
    faults: Arc<Faults>,
    info: DeviceInfo,
}

impl Stream for FaultyStream {
    unsafe fn write(&mut self, to: Memory, offset: usize, from: &[u8]) -> Result<(), BackendError> {
        self.faults.lost(&self.info)?;
        // SAFETY: by the caller's promise.
        unsafe { self.inner.write(to, offset, from) }
    }

    unsafe fn read(&mut self, from: Memory, offset: usize, to: &mut [u8]) -> Result<(), BackendError> {
        self.faults.lost(&self.info)?;
        // SAFETY: by the caller's promise.
        unsafe { self.inner.read(from, offset, to) }
    }

    unsafe fn copy(&mut self, from: Memory, to: Memory, bytes: usize) -> Result<(), BackendError> {
        self.faults.lost(&self.info)?;
        // SAFETY: by the caller's promise.
        unsafe { self.inner.copy(from, to, bytes) }
    }

    unsafe fn launch(&mut self, kernel: usize, shape: Shape, args: &[Arg]) -> Result<(), BackendError> {
        if !Faults::strikes(&self.faults.launch) {
            // SAFETY: by the caller's promise.
            return unsafe { self.inner.launch(kernel, shape, args) };
        }
        self.faults.lost(&self.info)
    }

    fn finish(&mut self) -> Result<(), BackendError> {
        self.faults.lost(&self.info)?;
        self.inner.finish()
    }

    fn times(&mut self) -> Result<Vec<(usize, u64)>, BackendError> {
        self.inner.times()
    }
}
