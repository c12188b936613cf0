//! OpenCL 1.2 and later, through its C interface.
//!
//! A stream has kernel objects of its own: arguments are set on an object before it is queued, which two threads may not do to one
//! object at the same time.
#![allow(unsafe_code)]

use super::{Arg, Driver, Memory, Module, Shape, Stream};
use crate::info::{Backend, DeviceInfo, DeviceKind};
use crate::program::Program;
use cl3::command_queue as queue;
use cl3::device::{self as dev, cl_device_id};
use cl3::error_codes as codes;
use cl3::info_type::InfoType;
use cl3::memory::{self as mem, cl_mem};
use cl3::types::{cl_command_queue, cl_context, cl_event, cl_kernel, cl_program};
use cl3::{context, event, kernel, platform, program};
use krylith::BackendError;
use std::ffi::{CString, c_void};
use std::ptr;
use std::sync::Arc;

/// Words for every compiler: the dialect needs no more than this version.
const OPTIONS: &str = "-cl-std=CL1.2";

/// A device and its context.
struct Context {
    info: DeviceInfo,
    device: cl_device_id,
    context: cl_context,
}

// SAFETY: OpenCL's objects may be used from any thread, kernels excepted, which this does not hold.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

impl Context {
    fn error(&self, call: &'static str, code: i32) -> BackendError {
        let device = self.info.name.clone();
        let lost = [
            codes::CL_DEVICE_NOT_AVAILABLE,
            codes::CL_OUT_OF_RESOURCES,
            codes::CL_INVALID_DEVICE,
            codes::CL_INVALID_CONTEXT,
            codes::CL_INVALID_COMMAND_QUEUE,
            codes::CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST,
        ];
        match lost.contains(&code) {
            true => BackendError::DeviceLost { device, call, code },
            false => BackendError::Failed { what: format!("{device}: {call} ended with code {code}") },
        }
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: the context is this one's, and nothing made in it is left: everything holds an Arc of it. An error says nothing useful.
        let _ = unsafe { context::release_context(self.context) };
    }
}

/// A device of OpenCL.
pub(crate) struct OpenCl(Arc<Context>);

fn text(info: Result<InfoType, i32>) -> String {
    match info {
        Ok(InfoType::VecUchar(bytes)) => {
            String::from_utf8_lossy(&bytes).trim_matches(['\0', ' ']).to_string()
        }
        _ => String::new(),
    }
}

fn number(info: Result<InfoType, i32>) -> u64 {
    match info {
        Ok(InfoType::Uint(n)) => n.into(),
        Ok(InfoType::Ulong(n)) => n,
        Ok(InfoType::Size(n)) => n as u64,
        _ => 0,
    }
}

/// The devices of all platforms, or why there are none.
pub(crate) fn devices() -> Result<Vec<(cl_device_id, DeviceInfo)>, String> {
    if !cl3::is_opencl_runtime_available() {
        return Err("the library libOpenCL.so.1 is not there (Debian: ocl-icd-libopencl1)".into());
    }
    let none =
        "no OpenCL driver is registered (the driver of the GPU brings one; for processors: pocl-opencl-icd)";
    let platforms = platform::get_platform_ids().map_err(|_| none.to_string())?;
    let mut found = Vec::new();
    for id in platforms {
        let vendor = text(platform::get_platform_info(id, platform::CL_PLATFORM_NAME));
        // A platform without devices has none to add.
        for device in dev::get_device_ids(id, dev::CL_DEVICE_TYPE_ALL).unwrap_or_default() {
            let info = describe(device, found.len(), &vendor);
            found.push((device, info));
        }
    }
    if found.is_empty() { Err(none.into()) } else { Ok(found) }
}

fn describe(device: cl_device_id, index: usize, platform: &str) -> DeviceInfo {
    let get = |what| dev::get_device_info(device, what);
    let types = number(get(dev::CL_DEVICE_TYPE));
    let kind = match types {
        t if t & dev::CL_DEVICE_TYPE_CPU != 0 => DeviceKind::Cpu,
        t if t & dev::CL_DEVICE_TYPE_GPU != 0 => DeviceKind::Gpu,
        _ => DeviceKind::Accelerator,
    };
    let version = text(get(dev::CL_DEVICE_VERSION));
    let acquire_release = match version.split([' ', '.']).nth(1) {
        Some("2") => true,
        Some("3") => {
            let needed = dev::CL_DEVICE_ATOMIC_ORDER_ACQ_REL | dev::CL_DEVICE_ATOMIC_SCOPE_DEVICE;
            number(get(dev::CL_DEVICE_ATOMIC_MEMORY_CAPABILITIES)) & needed == needed
        }
        _ => false,
    };
    DeviceInfo {
        backend: Backend::OpenCl,
        index,
        name: text(get(dev::CL_DEVICE_NAME)),
        driver: format!("{platform}, {}, driver {}", version, text(get(dev::CL_DRIVER_VERSION))),
        kind,
        compute_units: number(get(dev::CL_DEVICE_MAX_COMPUTE_UNITS)) as u32,
        max_group_items: number(get(dev::CL_DEVICE_MAX_WORK_GROUP_SIZE)) as usize,
        local_bytes: number(get(dev::CL_DEVICE_LOCAL_MEM_SIZE)),
        memory_bytes: number(get(dev::CL_DEVICE_GLOBAL_MEM_SIZE)),
        max_buffer_bytes: number(get(dev::CL_DEVICE_MAX_MEM_ALLOC_SIZE)),
        f64: number(get(dev::CL_DEVICE_DOUBLE_FP_CONFIG)) != 0,
        acquire_release,
        forward_progress: kind == DeviceKind::Cpu
            || number(get(dev::CL_DEVICE_SUB_GROUP_INDEPENDENT_FORWARD_PROGRESS)) != 0,
    }
}

impl OpenCl {
    pub(crate) fn open(device: cl_device_id, info: DeviceInfo) -> Result<Self, BackendError> {
        let failed = |code| BackendError::Failed {
            what: format!("{}: clCreateContext ended with code {code}", info.name),
        };
        let context =
            context::create_context(&[device], ptr::null(), None, ptr::null_mut()).map_err(failed)?;
        Ok(OpenCl(Arc::new(Context { info, device, context })))
    }

    /// Builds a program for the device; `Compile` with the compiler's log if that fails.
    fn build(&self, built: cl_program) -> Result<Module, BackendError> {
        let Context { info, device, .. } = &*self.0;
        let options = CString::new(OPTIONS).expect("no zero byte");
        let result = program::build_program(built, &[*device], &options, None, ptr::null_mut());
        if let Err(code) = result {
            let log = text(program::get_program_build_info(built, *device, program::CL_PROGRAM_BUILD_LOG));
            // SAFETY: made by the caller, and given to nobody.
            let _ = unsafe { program::release_program(built) };
            // The first lines name the cause.
            let log: String = log.chars().take(2000).collect();
            let log = format!("clBuildProgram ended with code {code}: {log}");
            return Err(BackendError::Compile { device: info.name.clone(), log });
        }
        Ok(Module(built as u64))
    }
}

impl Driver for OpenCl {
    fn info(&self) -> &DeviceInfo {
        &self.0.info
    }

    fn allocate(&self, bytes: usize) -> Result<Memory, BackendError> {
        // SAFETY: the context is alive, and no memory of the host is given.
        let made = unsafe {
            mem::create_buffer(self.0.context, mem::CL_MEM_READ_WRITE, bytes.max(1), ptr::null_mut())
        };
        made.map(|memory| Memory(memory as u64)).map_err(|code| match code {
            codes::CL_MEM_OBJECT_ALLOCATION_FAILURE
            | codes::CL_OUT_OF_RESOURCES
            | codes::CL_OUT_OF_HOST_MEMORY
            | codes::CL_INVALID_BUFFER_SIZE => {
                BackendError::OutOfMemory { device: self.0.info.name.clone(), bytes: bytes as u64 }
            }
            other => self.0.error("clCreateBuffer", other),
        })
    }

    unsafe fn free(&self, memory: Memory) {
        // SAFETY: by the caller's promise. An error says nothing useful.
        let _ = unsafe { mem::release_mem_object(memory.0 as cl_mem) };
    }

    fn compile(&self, source: &Program) -> Result<(Module, Vec<u8>), BackendError> {
        let text = source.source();
        let made = program::create_program_with_source(self.0.context, &[&text])
            .map_err(|code| self.0.error("clCreateProgramWithSource", code))?;
        let module = self.build(made)?;
        let binary = match program::get_program_info(made, program::CL_PROGRAM_BINARIES) {
            Ok(InfoType::VecVecUchar(mut binaries)) => binaries.pop().unwrap_or_default(),
            _ => Vec::new(),
        };
        Ok((module, binary))
    }

    fn load(&self, binary: &[u8]) -> Result<Module, BackendError> {
        // SAFETY: one device of this context, and one binary, which the driver checks.
        let made =
            unsafe { program::create_program_with_binary(self.0.context, &[self.0.device], &[binary]) };
        self.build(made.map_err(|code| self.0.error("clCreateProgramWithBinary", code))?)
    }

    unsafe fn unload(&self, module: Module) {
        // SAFETY: by the caller's promise.
        let _ = unsafe { program::release_program(module.0 as cl_program) };
    }

    fn stream(
        &self,
        module: Module,
        names: &[&'static str],
        timed: bool,
    ) -> Result<Box<dyn Stream>, BackendError> {
        let properties = if timed { queue::CL_QUEUE_PROFILING_ENABLE } else { 0 };
        // SAFETY: the device is that of the context.
        let made = unsafe { queue::create_command_queue(self.0.context, self.0.device, properties) };
        let queue = made.map_err(|code| self.0.error("clCreateCommandQueue", code))?;
        let mut stream =
            Queue { context: Arc::clone(&self.0), queue, kernels: Vec::new(), timed, events: Vec::new() };
        for &name in names {
            let name = CString::new(name).expect("no zero byte");
            let made = kernel::create_kernel(module.0 as cl_program, &name);
            stream.kernels.push(made.map_err(|code| self.0.error("clCreateKernel", code))?);
        }
        Ok(Box::new(stream))
    }
}

/// An in-order queue with its kernel objects.
struct Queue {
    context: Arc<Context>,
    queue: cl_command_queue,
    kernels: Vec<cl_kernel>,
    timed: bool,
    /// Of launches, where times are wanted.
    events: Vec<(usize, cl_event)>,
}

// SAFETY: a queue and its kernels may be used from any thread, one at a time, which `&mut self` ensures.
unsafe impl Send for Queue {}

impl Queue {
    fn check<T>(&self, call: &'static str, result: Result<T, i32>) -> Result<T, BackendError> {
        result.map_err(|code| self.context.error(call, code))
    }

    /// Releases an event that nobody waits for.
    fn drop_event(&self, call: &'static str, made: Result<cl_event, i32>) -> Result<(), BackendError> {
        let event = self.check(call, made)?;
        // SAFETY: made by the call before, and kept by nobody.
        let released = unsafe { event::release_event(event) };
        self.check("clReleaseEvent", released)
    }
}

impl Stream for Queue {
    unsafe fn write(&mut self, to: Memory, offset: usize, from: &[u8]) -> Result<(), BackendError> {
        // SAFETY: by the caller's promise; the call returns when `from` has been read.
        let made = unsafe {
            let (data, size) = (from.as_ptr().cast::<c_void>(), from.len());
            queue::enqueue_write_buffer(self.queue, to.0 as cl_mem, 1, offset, size, data, 0, ptr::null())
        };
        self.drop_event("clEnqueueWriteBuffer", made)
    }

    unsafe fn read(&mut self, from: Memory, offset: usize, to: &mut [u8]) -> Result<(), BackendError> {
        // SAFETY: by the caller's promise; the call returns when `to` has been written.
        let made = unsafe {
            let (data, size) = (to.as_mut_ptr().cast::<c_void>(), to.len());
            queue::enqueue_read_buffer(self.queue, from.0 as cl_mem, 1, offset, size, data, 0, ptr::null())
        };
        self.drop_event("clEnqueueReadBuffer", made)
    }

    unsafe fn copy(&mut self, from: Memory, to: Memory, bytes: usize) -> Result<(), BackendError> {
        // SAFETY: by the caller's promise.
        let made = unsafe {
            let (from, to) = (from.0 as cl_mem, to.0 as cl_mem);
            queue::enqueue_copy_buffer(self.queue, from, to, 0, 0, bytes, 0, ptr::null())
        };
        self.drop_event("clEnqueueCopyBuffer", made)
    }

    unsafe fn launch(&mut self, kernel: usize, shape: Shape, args: &[Arg]) -> Result<(), BackendError> {
        let object = self.kernels[kernel];
        for (k, arg) in args.iter().enumerate() {
            let set = |size: usize, value: *const c_void| {
                // SAFETY: `value` points to an argument of `size` bytes, which is copied; its type is right by the caller's promise.
                unsafe { kernel::set_kernel_arg(object, k as u32, size, value) }
            };
            let result = match arg {
                Arg::Buffer(memory) => {
                    let memory = memory.0 as cl_mem;
                    set(size_of::<cl_mem>(), (&raw const memory).cast())
                }
                Arg::U32(v) => set(4, ptr::from_ref(v).cast()),
                Arg::U64(v) => set(8, ptr::from_ref(v).cast()),
                Arg::F32(v) => set(4, ptr::from_ref(v).cast()),
                Arg::F64(v) => set(8, ptr::from_ref(v).cast()),
            };
            self.check("clSetKernelArg", result)?;
        }
        let (global, local) = (shape.groups * shape.items, shape.items);
        // SAFETY: one dimension; buffers are large enough by the caller's promise.
        let made = unsafe {
            let (global, local) = (&raw const global, &raw const local);
            queue::enqueue_nd_range_kernel(self.queue, object, 1, ptr::null(), global, local, 0, ptr::null())
        };
        if !self.timed {
            return self.drop_event("clEnqueueNDRangeKernel", made);
        }
        let event = self.check("clEnqueueNDRangeKernel", made)?;
        self.events.push((kernel, event));
        Ok(())
    }

    fn finish(&mut self) -> Result<(), BackendError> {
        self.check("clFinish", queue::finish(self.queue))
    }

    fn times(&mut self) -> Result<Vec<(usize, u64)>, BackendError> {
        self.finish()?;
        let mut times = Vec::with_capacity(self.events.len());
        for (kernel, event) in std::mem::take(&mut self.events) {
            let at = |what| number(event::get_event_profiling_info(event, what));
            let (start, end) = (at(event::CL_PROFILING_COMMAND_START), at(event::CL_PROFILING_COMMAND_END));
            times.push((kernel, end.saturating_sub(start)));
            // SAFETY: kept by nobody else.
            let _ = unsafe { event::release_event(event) };
        }
        Ok(times)
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // Errors say nothing useful any more.
        let _ = queue::finish(self.queue);
        for (_, event) in self.events.drain(..) {
            // SAFETY: kept by nobody else.
            let _ = unsafe { event::release_event(event) };
        }
        for &kernel in &self.kernels {
            // SAFETY: as above.
            let _ = unsafe { kernel::release_kernel(kernel) };
        }
        // SAFETY: as above; its work is done.
        let _ = unsafe { queue::release_command_queue(self.queue) };
    }
}
