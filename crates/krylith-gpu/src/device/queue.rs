//! Queues of work on a device, and what kernels are given.
#![allow(unsafe_code)]

use super::{Buffer, Device, DeviceId, Element, GUARD, GUARD_BYTE, bytes_of, bytes_of_mut};
use crate::driver::{Arg, Shape, Stream};
use crate::program::{KERNELS, Kernel};
use krylith::BackendError;
use krylith::space::{Activity, Profile, require_same};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

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
    /// Seconds by activity of iterations, where the device is timed.
    #[serde(skip)]
    pub profile: Profile,
}

/// A number, or a buffer with how many elements it has and whose it is.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub struct Value(Arg, Option<(u64, DeviceId)>);

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
    /// What the next launches are for, where that is known.
    activity: Option<Activity>,
    /// What those were for whose times have not been asked for, where the device is timed.
    untimed: Vec<Option<Activity>>,
}

impl Queue {
    pub(crate) fn new(device: &Device, double: bool) -> Result<Self, BackendError> {
        let module = device.module(double)?;
        let stream = device.0.driver.stream(module, KERNELS, device.0.options.timed)?;
        let counts = Counts::default();
        let work = Work { stream, fault: None, counts, activity: None, untimed: Vec::new() };
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
            let times = work.stream.times()?;
            let activities = std::mem::take(&mut work.untimed);
            for ((kernel, nanoseconds), activity) in times.into_iter().zip(activities) {
                let entry = work.counts.kernels.entry(KERNELS[kernel]).or_default();
                let seconds = nanoseconds as f64 * 1e-9;
                entry.0 += 1;
                entry.1 += seconds;
                if let Some(activity) = activity {
                    work.counts.profile.add(activity, 0, seconds);
                }
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
        require_same("a copy to the device", &from.len(), &to.len)?;
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
            return require_same("a copy from the device", &from.len, &to.len());
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
        require_same("a copy on the device", &from.len, &to.len)?;
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
        unsafe { work.stream.launch(kernel as usize, shape, &args[..count])? };
        if self.device.0.options.timed {
            let activity = work.activity;
            work.untimed.push(activity);
        }
        Ok(())
    }

    /// Queues some work, whose launches are then those of this activity.
    pub(crate) fn during<R>(&self, activity: Activity, work: impl FnOnce() -> R) -> R {
        if !self.device.0.options.timed {
            return work();
        }
        let around = self.work().activity.replace(activity);
        let result = work();
        let mut own = self.work();
        own.counts.profile.add(activity, 1, 0.0);
        own.activity = around;
        result
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::DeviceOptions;
    use crate::info::{Backend, DeviceInfo};
    use crate::program::KernelShape;

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
