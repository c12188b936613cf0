//! A device that is open, its memory, and queues of work on it.
//!
//! In a checked device every buffer has guard words on both sides, kernels compare every access with the size of its buffer, and
//! [`DeviceSpace::verify`](crate::DeviceSpace::verify) reports what was wrong.
#![allow(unsafe_code)]

mod queue;

pub use queue::{Argument, Counts, Value};
pub(crate) use queue::{Queue, values};

use crate::cache;
use crate::discover::Selector;
use crate::driver::faults::{Faults, Faulty};
use crate::driver::recorded::{Launches, Recorded};
use crate::driver::{Driver, Memory, Module};
use crate::info::{Backend, DeviceInfo, DeviceKind};
use crate::program::{KernelShape, Program};
use krylith::{BackendError, Scalar};
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes before and after a buffer of a checked device.
const GUARD: usize = 64;
const GUARD_BYTE: u8 = 0xA5;

/// A number for each device that is open.
type DeviceId = usize;

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

    /// Whether kernels are timed.
    pub fn is_timed(&self) -> bool {
        self.0.options.timed
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

    /// Tells devices apart.
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
