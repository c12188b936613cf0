//! A device that is open, its memory, and queues of work on it.
//!
//! In a checked device every buffer has guard words on both sides, kernels compare every access with the size of its buffer, and
//! [`DeviceSpace::verify`](crate::DeviceSpace::verify) reports what was wrong.
#![allow(unsafe_code)]

use crate::cache;
use crate::discover::Selector;
use crate::driver::faults::{Faults, Faulty};
use crate::driver::recorded::{Launches, Recorded};
use crate::driver::{Arg, Driver, Memory, Module, Shape, Stream};
use crate::info::{Backend, DeviceInfo, DeviceKind};
use crate::program::{KERNELS, Kernel, KernelShape, Program};
use krylith::{BackendError, Scalar};
use serde::Serialize;
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes before and after a buffer of a checked device.
const GUARD: usize = 64;
const GUARD_BYTE: u8 = 0xA5;

/// How a device is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeviceOptions {
    /// The shape of kernels; by default that of the device.
    pub shape: Option<KernelShape>,
    /// Results have the bits of krylith's threads. Always so in the shape for processors, where it costs nothing.
    pub reproducible: bool,
    /// Every access of a kernel is checked. Slow; for tests.
    pub checked: bool,
    /// Times of kernels are kept.
    pub timed: bool,
}

/// A device that is open. Clones are the same device.
#[derive(Clone)]
pub struct Device(Arc<Inner>);

struct Inner {
    driver: Box<dyn Driver>,
    options: DeviceOptions,
    modules: Mutex<Vec<(Program, Module)>>,
    live_buffers: AtomicUsize,
    live_bytes: AtomicU64,
    allocations: AtomicUsize,
}

impl Device {
    /// Opens the device that is asked for.
    ///
    /// ```no_run
    /// use krylith_gpu::{Device, DeviceOptions};
    /// let device = Device::open(&"opencl:0".parse()?, DeviceOptions::default())?;
    /// println!("{}", device.info().name);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn open(selector: &Selector, options: DeviceOptions) -> Result<Self, BackendError> {
        if selector.backend == Backend::Cuda && options.shape == Some(KernelShape::Cpu) {
            return Err(BackendError::Unsupported { what: "the shape for processors on CUDA" });
        }
        Ok(Self::with_driver(crate::discover::open(selector)?, options))
    }

    /// The same, with a record of what is launched, for tests.
    #[doc(hidden)]
    pub fn open_recorded(
        selector: &Selector,
        options: DeviceOptions,
    ) -> Result<(Self, Launches), BackendError> {
        let (inner, launches) = (crate::discover::open(selector)?, Launches::default());
        let driver = Box::new(Recorded::new(inner, Arc::clone(&launches)));
        Ok((Self::with_driver(driver, options), launches))
    }

    /// The same, with faults that tests inject.
    #[doc(hidden)]
    pub fn open_with_faults(
        selector: &Selector,
        options: DeviceOptions,
        faults: Arc<Faults>,
    ) -> Result<Self, BackendError> {
        let inner = crate::discover::open(selector)?;
        Ok(Self::with_driver(Box::new(Faulty { inner, faults }), options))
    }

    fn with_driver(driver: Box<dyn Driver>, options: DeviceOptions) -> Self {
        Device(Arc::new(Inner {
            driver,
            options,
            modules: Mutex::default(),
            live_buffers: AtomicUsize::new(0),
            live_bytes: AtomicU64::new(0),
            allocations: AtomicUsize::new(0),
        }))
    }

    /// What it is and can do.
    pub fn info(&self) -> &DeviceInfo {
        self.0.driver.info()
    }

    /// How it is used.
    pub fn options(&self) -> DeviceOptions {
        self.0.options
    }

    /// The shape of its kernels.
    pub fn shape(&self) -> KernelShape {
        self.0.options.shape.unwrap_or(match self.info().kind {
            DeviceKind::Cpu => KernelShape::Cpu,
            _ => KernelShape::Gpu,
        })
    }

    /// Whether results have the bits of krylith's threads.
    pub fn is_reproducible(&self) -> bool {
        self.0.options.reproducible || self.shape() == KernelShape::Cpu
    }

    /// Buffers that are allocated now.
    pub fn live_buffers(&self) -> usize {
        self.0.live_buffers.load(Ordering::Relaxed)
    }

    /// Bytes that are allocated now.
    pub fn live_bytes(&self) -> u64 {
        self.0.live_bytes.load(Ordering::Relaxed)
    }

    /// Buffers that were ever allocated.
    pub fn allocations(&self) -> usize {
        self.0.allocations.load(Ordering::Relaxed)
    }

    fn program(&self, double: bool) -> Program {
        let Inner { options, .. } = &*self.0;
        Program { double, shape: self.shape(), exact: self.is_reproducible(), checked: options.checked }
    }

    /// The kernels for this type of numbers: compiled before, found on disk, or compiled now.
    fn module(&self, double: bool) -> Result<Module, BackendError> {
        let program = self.program(double);
        let mut modules = self.0.modules.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, module)) = modules.iter().find(|(known, _)| *known == program) {
            return Ok(*module);
        }
        let _span = tracing::info_span!("compile kernels", device = self.info().name).entered();
        let (driver, info, folder) = (&self.0.driver, self.info(), cache::folder());
        let key = format!("{}\n{}\n{}\n{}", info.backend, info.name, info.driver, program.source());
        let found = folder.as_deref().and_then(|folder| cache::find(folder, &key));
        // A binary that the driver refuses is compiled anew.
        let module = match found.and_then(|binary| driver.load(&binary).ok()) {
            Some(module) => module,
            None => {
                let (module, binary) = driver.compile(&program)?;
                if let Some(folder) = folder.filter(|_| !binary.is_empty())
                    && let Err(error) = cache::store(&folder, &key, &binary)
                {
                    tracing::debug!(%error, folder = %folder.display(), "kernels are not kept on disk");
                }
                module
            }
        };
        modules.push((program, module));
        Ok(module)
    }

    /// Memory for `len` elements, whose content is anything.
    fn allocate<T: Element>(&self, len: usize) -> Result<Buffer<T>, BackendError> {
        let info = self.info();
        let too_large = || BackendError::OutOfMemory { device: info.name.clone(), bytes: u64::MAX };
        let bytes = len.checked_mul(size_of::<T>()).ok_or_else(too_large)?;
        if bytes as u64 > info.max_buffer_bytes {
            return Err(BackendError::OutOfMemory { device: info.name.clone(), bytes: bytes as u64 });
        }
        let whole = bytes + 2 * self.guard();
        let memory = self.0.driver.allocate(whole)?;
        self.0.live_buffers.fetch_add(1, Ordering::Relaxed);
        self.0.live_bytes.fetch_add(whole as u64, Ordering::Relaxed);
        self.0.allocations.fetch_add(1, Ordering::Relaxed);
        Ok(Buffer { device: self.clone(), memory, len, element: PhantomData })
    }

    fn id(&self) -> DeviceId {
        Arc::as_ptr(&self.0) as usize
    }

    fn guard(&self) -> usize {
        if self.0.options.checked { GUARD } else { 0 }
    }
}

impl std::fmt::Debug for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Device").field("info", self.info()).field("options", &self.0.options).finish()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        for (_, module) in self.modules.get_mut().unwrap_or_else(PoisonError::into_inner).drain(..) {
            // SAFETY: streams hold the device, so none is left.
            unsafe { self.driver.unload(module) };
        }
    }
}

/// Types of which any bytes are a value, and which have no padding.
///
/// # Safety
/// As said.
pub unsafe trait Element: Copy + Default + Send + Sync + 'static {}
// SAFETY: numbers.
unsafe impl Element for f32 {}
// SAFETY: as above.
unsafe impl Element for f64 {}
// SAFETY: as above.
unsafe impl Element for u32 {}
// SAFETY: as above.
unsafe impl Element for u64 {}

/// What vectors on a device may hold.
pub trait DeviceScalar: Scalar<Real = Self> + krylith::Real + Element + Argument {
    /// It is `f64`.
    const DOUBLE: bool;
}

impl DeviceScalar for f32 {
    const DOUBLE: bool = false;
}

impl DeviceScalar for f64 {
    const DOUBLE: bool = true;
}

/// Memory of a device that holds `len` elements.
pub struct Buffer<T> {
    device: Device,
    memory: Memory,
    len: usize,
    element: PhantomData<T>,
}

impl<T> Buffer<T> {
    /// Elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// No elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    fn bytes(&self) -> usize {
        self.len * size_of::<T>()
    }
}

impl<T> std::fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} elements on {}", self.len, self.device.info().name)
    }
}

impl<T> Drop for Buffer<T> {
    fn drop(&mut self) {
        let inner = &self.device.0;
        // SAFETY: allocated by this driver and freed once.
        unsafe { inner.driver.free(self.memory) };
        inner.live_buffers.fetch_sub(1, Ordering::Relaxed);
        inner.live_bytes.fetch_sub((self.bytes() + 2 * self.device.guard()) as u64, Ordering::Relaxed);
    }
}

fn bytes_of<T: Element>(x: &[T]) -> &[u8] {
    // SAFETY: elements have no padding, so every byte is initialised.
    unsafe { std::slice::from_raw_parts(x.as_ptr().cast(), size_of_val(x)) }
}

fn bytes_of_mut<T: Element>(x: &mut [T]) -> &mut [u8] {
    // SAFETY: as above, and any bytes are elements.
    unsafe { std::slice::from_raw_parts_mut(x.as_mut_ptr().cast(), size_of_val(x)) }
}

/// What a queue has done.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Counts {
    /// Kernels launched.
    pub launches: u64,
    /// Bytes copied to the device.
    pub bytes_up: u64,
    /// Bytes copied from the device.
    pub bytes_down: u64,
    /// How often the host waited for the device.
    pub synchronisations: u64,
    /// Buffers allocated through this queue.
    pub allocations: u64,
    /// Launches and seconds by kernel, where the device is timed.
    pub kernels: BTreeMap<&'static str, (u64, f64)>,
}

/// A number, or a buffer with how many elements it has and whose it is.
#[doc(hidden)]
pub struct Value(Arg, Option<(u64, DeviceId)>);

/// Tells devices apart.
type DeviceId = usize;

/// What a kernel can be given.
pub trait Argument {
    /// As a value of a launch.
    #[doc(hidden)]
    fn value(self) -> Value;
}

macro_rules! plain {
    ($($t:ty: $variant:ident),*) => {$(
        impl Argument for $t {
            fn value(self) -> Value {
                Value(Arg::$variant(self), None)
            }
        }
    )*};
}

plain! { u32: U32, u64: U64, f32: F32, f64: F64 }

impl<T> Argument for &Buffer<T> {
    fn value(self) -> Value {
        Value(Arg::Buffer(self.memory), Some((self.len as u64, self.device.id())))
    }
}

/// Values of a launch from numbers and buffers.
macro_rules! values {
    ($($value:expr),* $(,)?) => { [$($crate::device::Argument::value($value)),*] };
}

pub(crate) use values;

/// The most arguments of a launch.
const MOST: usize = 128;

/// An in-order queue of work, with the kernels for one type of numbers.
pub(crate) struct Queue {
    /// Dropped before the device, whose module its kernels are from.
    work: Mutex<Work>,
    device: Device,
}

struct Work {
    stream: Box<dyn Stream>,
    /// Set by a kernel that has touched what is not its own.
    fault: Option<Buffer<u32>>,
    counts: Counts,
}

impl Queue {
    pub(crate) fn new(device: &Device, double: bool) -> Result<Self, BackendError> {
        let module = device.module(double)?;
        let stream = device.0.driver.stream(module, KERNELS, device.0.options.timed)?;
        let work = Work { stream, fault: None, counts: Counts::default() };
        let queue = Queue { device: device.clone(), work: Mutex::new(work) };
        if device.0.options.checked {
            let fault = queue.upload_new(&[0u32])?;
            queue.work().fault = Some(fault);
        }
        Ok(queue)
    }

    pub(crate) fn device(&self) -> &Device {
        &self.device
    }

    fn work(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was done since the last [`reset_counts`](Self::reset_counts); waits for all work where the device is timed.
    pub(crate) fn counts(&self) -> Result<Counts, BackendError> {
        let mut work = self.work();
        if self.device.0.options.timed {
            for (kernel, nanoseconds) in work.stream.times()? {
                let entry = work.counts.kernels.entry(KERNELS[kernel]).or_default();
                entry.0 += 1;
                entry.1 += nanoseconds as f64 * 1e-9;
            }
        }
        Ok(work.counts.clone())
    }

    pub(crate) fn reset_counts(&self) -> Result<(), BackendError> {
        self.counts()?;
        self.work().counts = Counts::default();
        Ok(())
    }

    /// A new buffer with these elements.
    pub(crate) fn upload_new<T: Element>(&self, from: &[T]) -> Result<Buffer<T>, BackendError> {
        let buffer = self.allocate(from.len())?;
        self.upload(from, &buffer)?;
        Ok(buffer)
    }

    /// A new buffer whose content is anything.
    pub(crate) fn allocate<T: Element>(&self, len: usize) -> Result<Buffer<T>, BackendError> {
        let (buffer, guard) = (self.device.allocate(len)?, self.device.guard());
        self.work().counts.allocations += 1;
        for offset in [0, guard + buffer.bytes()].into_iter().filter(|_| guard > 0) {
            // SAFETY: a checked buffer has guards before and after its elements.
            unsafe { self.work().stream.write(buffer.memory, offset, &[GUARD_BYTE; GUARD])? };
        }
        if guard > 0 {
            // Another queue may see these writes only after this one has finished.
            self.work().stream.finish()?;
        }
        Ok(buffer)
    }

    /// An error for a buffer of another device.
    fn own<T>(&self, buffer: &Buffer<T>) -> Result<(), BackendError> {
        if buffer.device.id() == self.device.id() { Ok(()) } else { Err(foreign()) }
    }

    /// Copies elements into a buffer of as many.
    pub(crate) fn upload<T: Element>(&self, from: &[T], to: &Buffer<T>) -> Result<(), BackendError> {
        same_length(from.len(), to.len)?;
        self.own(to)?;
        let mut work = self.work();
        work.counts.synchronisations += 1;
        work.counts.bytes_up += to.bytes() as u64;
        if from.is_empty() {
            return Ok(());
        }
        // SAFETY: the lengths agree.
        unsafe { work.stream.write(to.memory, self.device.guard(), bytes_of(from)) }
    }

    /// Copies the first elements of a buffer, when all work before is done.
    pub(crate) fn download<T: Element>(&self, from: &Buffer<T>, to: &mut [T]) -> Result<(), BackendError> {
        if to.len() > from.len {
            return same_length(from.len, to.len());
        }
        self.own(from)?;
        let mut work = self.work();
        work.counts.synchronisations += 1;
        work.counts.bytes_down += size_of_val(to) as u64;
        if to.is_empty() {
            return Ok(());
        }
        // SAFETY: no more than there is.
        unsafe { work.stream.read(from.memory, self.device.guard(), bytes_of_mut(to))? };
        drop(work);
        if self.device.0.options.timed {
            // All work is done: the events of its launches need not be kept.
            self.counts()?;
        }
        self.verify_accesses()
    }

    /// Queues a copy, guards included.
    pub(crate) fn copy<T: Element>(&self, from: &Buffer<T>, to: &Buffer<T>) -> Result<(), BackendError> {
        same_length(from.len, to.len)?;
        self.own(from)?;
        self.own(to)?;
        if from.is_empty() {
            return Ok(());
        }
        let bytes = from.bytes() + 2 * self.device.guard();
        // SAFETY: both have as many bytes; drivers keep memory until queued work is done.
        unsafe { self.work().stream.copy(from.memory, to.memory, bytes) }
    }

    /// Queues a kernel; none where there are no groups.
    ///
    /// # Safety
    /// The values are those of the kernel's parameters, in their order, and its buffers hold what it reads and writes.
    pub(crate) unsafe fn launch(
        &self,
        kernel: Kernel,
        shape: Shape,
        values: &[Value],
    ) -> Result<(), BackendError> {
        if shape.groups == 0 {
            return Ok(());
        }
        let mut work = self.work();
        let mut args = [Arg::U32(0); MOST];
        let (mut count, checked) = (0, work.fault.is_some());
        let mut push = |arg| {
            args[count] = arg;
            count += 1;
        };
        for Value(arg, buffer) in values {
            push(*arg);
            let Some((elements, device)) = *buffer else { continue };
            if device != self.device.id() {
                return Err(foreign());
            }
            if checked {
                push(Arg::U64(elements));
            }
        }
        if let Some(fault) = &work.fault {
            push(Arg::Buffer(fault.memory));
        }
        work.counts.launches += 1;
        // SAFETY: by the caller's promise.
        unsafe { work.stream.launch(kernel as usize, shape, &args[..count]) }
    }

    /// Waits for all work.
    pub(crate) fn finish(&self) -> Result<(), BackendError> {
        let mut work = self.work();
        work.counts.synchronisations += 1;
        work.stream.finish()
    }

    /// On a checked device: an error if a kernel has touched what is not its own.
    pub(crate) fn verify_accesses(&self) -> Result<(), BackendError> {
        let mut flag = [0u8; 4];
        let mut work = self.work();
        let Some(memory) = work.fault.as_ref().map(|fault| fault.memory) else { return Ok(()) };
        // SAFETY: the flag stands behind the guard.
        unsafe { work.stream.read(memory, self.device.guard(), &mut flag)? };
        match flag {
            [0, 0, 0, 0] => Ok(()),
            _ => {
                Err(BackendError::Failed { what: "a kernel has touched what is outside of a buffer".into() })
            }
        }
    }

    /// On a checked device: an error if the guard words around a buffer have changed.
    pub(crate) fn verify_guards<T: Element>(&self, buffer: &Buffer<T>) -> Result<(), BackendError> {
        let guard = self.device.guard();
        let mut found = vec![0u8; guard];
        for offset in [0, guard + buffer.bytes()].into_iter().filter(|_| guard > 0) {
            // SAFETY: a checked buffer has guards before and after its elements.
            unsafe { self.work().stream.read(buffer.memory, offset, &mut found)? };
            if found.iter().any(|&byte| byte != GUARD_BYTE) {
                return Err(BackendError::Failed { what: "the guard words of a buffer have changed".into() });
            }
        }
        Ok(())
    }
}

fn foreign() -> BackendError {
    BackendError::Failed { what: "a vector or matrix belongs to another device".into() }
}

fn same_length(left: usize, right: usize) -> Result<(), BackendError> {
    match left == right {
        true => Ok(()),
        false => Err(BackendError::Layout {
            what: "a copy between host and device",
            left: left.to_string(),
            right: right.to_string(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every device, checked, in both shapes.
    fn checked() -> Vec<Device> {
        let shapes = [KernelShape::Cpu, KernelShape::Gpu];
        let found = crate::devices().found;
        let usable = found.iter().filter(|info| info.backend == Backend::OpenCl && info.lacks().is_none());
        let open = |info: &DeviceInfo, shape| {
            let options = DeviceOptions { shape: Some(shape), checked: true, ..DeviceOptions::default() };
            Device::open(&info.selector().parse().unwrap(), options).unwrap()
        };
        usable.flat_map(|info| shapes.map(|shape| open(info, shape))).collect()
    }

    /// A kernel that is given a buffer too small for it does not write behind its end, and is found out.
    #[test]
    fn an_access_outside_of_a_buffer_is_found_and_not_made() {
        for device in checked() {
            let queue = Queue::new(&device, true).unwrap();
            let (small, other) =
                (queue.allocate::<f64>(5000).unwrap(), queue.upload_new(&[7.0f64; 100]).unwrap());
            let shape = Shape { groups: 3, items: if device.shape() == KernelShape::Cpu { 1 } else { 256 } };
            // SAFETY: the kernel's parameters; on a checked device it stays within its buffers.
            unsafe { queue.launch(Kernel::Fill, shape, &values![&small, 1.0, 5000u64]).unwrap() };
            queue.verify_accesses().unwrap();
            queue.verify_guards(&small).unwrap();
            // SAFETY: as above.
            unsafe { queue.launch(Kernel::Fill, shape, &values![&other, 1.0, 5001u64]).unwrap() };
            assert!(queue.verify_accesses().is_err(), "{device:?}");
            queue.verify_guards(&other).unwrap();
            assert!(queue.download(&other, &mut [0.0; 100]).is_err(), "a read reports it too");
        }
    }
}
