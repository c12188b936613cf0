//! A driver that records what is launched, for tests that compare drivers.
#![allow(unsafe_code)]

use super::{Arg, Driver, Memory, Module, Shape, Stream};
use crate::info::DeviceInfo;
use crate::program::{KERNELS, Program};
use krylith::BackendError;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// A launch: the kernel, its groups and items, and its arguments in words. Buffers are numbered in the order in which they are allocated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    /// The name of the kernel.
    pub kernel: &'static str,
    /// Groups, and items of each.
    pub shape: [usize; 2],
    /// Such as `buffer 3` and `u64 5000`.
    pub arguments: Vec<String>,
}

/// The launches of a device so far.
pub type Launches = Arc<Mutex<Vec<Launch>>>;

/// The number of each buffer, and how many there were.
type Numbers = Arc<Mutex<(HashMap<u64, usize>, usize)>>;

/// A driver that records.
pub(crate) struct Recorded {
    inner: Box<dyn Driver>,
    launches: Launches,
    numbers: Numbers,
}

impl Recorded {
    pub(crate) fn new(inner: Box<dyn Driver>, launches: Launches) -> Self {
        Recorded { inner, launches, numbers: Numbers::default() }
    }
}

impl Driver for Recorded {
    fn info(&self) -> &DeviceInfo {
        self.inner.info()
    }

    fn allocate(&self, bytes: usize) -> Result<Memory, BackendError> {
        let memory = self.inner.allocate(bytes)?;
        let mut numbers = self.numbers.lock().unwrap_or_else(PoisonError::into_inner);
        let (known, count) = &mut *numbers;
        known.insert(memory.0, *count);
        *count += 1;
        Ok(memory)
    }

    unsafe fn free(&self, memory: Memory) {
        // SAFETY: by the caller's promise.
        unsafe { self.inner.free(memory) };
    }

    fn compile(&self, program: &Program) -> Result<(Module, Vec<u8>), BackendError> {
        self.inner.compile(program)
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
        let (launches, numbers) = (Arc::clone(&self.launches), Arc::clone(&self.numbers));
        Ok(Box::new(RecordedStream { inner, launches, numbers }))
    }
}

struct RecordedStream {
    inner: Box<dyn Stream>,
    launches: Launches,
    numbers: Numbers,
}

impl Stream for RecordedStream {
    unsafe fn write(&mut self, to: Memory, offset: usize, from: &[u8]) -> Result<(), BackendError> {
        // SAFETY: by the caller's promise.
        unsafe { self.inner.write(to, offset, from) }
    }

    unsafe fn read(&mut self, from: Memory, offset: usize, to: &mut [u8]) -> Result<(), BackendError> {
        // SAFETY: by the caller's promise.
        unsafe { self.inner.read(from, offset, to) }
    }

    unsafe fn copy(&mut self, from: Memory, to: Memory, bytes: usize) -> Result<(), BackendError> {
        // SAFETY: by the caller's promise.
        unsafe { self.inner.copy(from, to, bytes) }
    }

    unsafe fn launch(&mut self, kernel: usize, shape: Shape, args: &[Arg]) -> Result<(), BackendError> {
        let numbers = self.numbers.lock().unwrap_or_else(PoisonError::into_inner);
        let arguments = args.iter().map(|arg| match arg {
            Arg::Buffer(memory) => format!("buffer {:?}", numbers.0.get(&memory.0)),
            Arg::U32(v) => format!("u32 {v}"),
            Arg::U64(v) => format!("u64 {v}"),
            Arg::F32(v) => format!("f32 {v}"),
            Arg::F64(v) => format!("f64 {v}"),
        });
        let launch = Launch {
            kernel: KERNELS[kernel],
            shape: [shape.groups, shape.items],
            arguments: arguments.collect(),
        };
        drop(numbers);
        self.launches.lock().unwrap_or_else(PoisonError::into_inner).push(launch);
        // SAFETY: by the caller's promise.
        unsafe { self.inner.launch(kernel, shape, args) }
    }

    fn finish(&mut self) -> Result<(), BackendError> {
        self.inner.finish()
    }

    fn times(&mut self) -> Result<Vec<(usize, u64)>, BackendError> {
        self.inner.times()
    }
}
