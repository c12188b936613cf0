//! CUDA: its driver, and NVRTC, which compiles the kernels to the device's own code when a program runs.
//!
//! cudarc's raw functions load the libraries at their first call and panic where they are missing, so both are looked for before anything is
//! called. A call belongs to the context that is current on its thread: every call here makes its own current first.
#![allow(unsafe_code)]

use super::{Arg, Driver, Memory, Module, Shape, Stream};
use crate::info::{Backend, DeviceInfo, DeviceKind};
use crate::program::Program;
use cudarc::driver::sys::{self as cu, CUdevice_attribute as Attribute, CUresult};
use cudarc::nvrtc::{result as nvrtc, sys as nvrtc_sys};
use krylith::BackendError;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr;
use std::sync::Arc;

/// Arguments that a launch may have; the most that a kernel has is 101, with the sizes of its buffers.
const MOST_ARGUMENTS: usize = 128;

/// A device and its primary context.
struct Context {
    info: DeviceInfo,
    device: cu::CUdevice,
    context: cu::CUcontext,
    /// Such as 80 for 8.0.
    architecture: i32,
}

// SAFETY: a context may be current on any thread, and on several.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

/// What a code says about the device.
fn error_of(device: &str, call: &'static str, code: CUresult) -> BackendError {
    use CUresult::*;
    let (device, number) = (device.to_string(), code as i32);
    match code {
        CUDA_ERROR_DEINITIALIZED
        | CUDA_ERROR_DEVICE_UNAVAILABLE
        | CUDA_ERROR_ECC_UNCORRECTABLE
        | CUDA_ERROR_ILLEGAL_ADDRESS
        | CUDA_ERROR_LAUNCH_FAILED
        | CUDA_ERROR_LAUNCH_TIMEOUT
        | CUDA_ERROR_CONTEXT_IS_DESTROYED
        | CUDA_ERROR_HARDWARE_STACK_ERROR
        | CUDA_ERROR_SYSTEM_NOT_READY => BackendError::DeviceLost { device, call, code: number },
        _ => BackendError::Failed { what: format!("{device}: {call} ended with code {number}") },
    }
}

impl Context {
    fn check(&self, call: &'static str, code: CUresult) -> Result<(), BackendError> {
        match code {
            CUresult::CUDA_SUCCESS => Ok(()),
            code => Err(error_of(&self.info.name, call, code)),
        }
    }

    fn enter(&self) -> Result<(), BackendError> {
        // SAFETY: the context is retained as long as this lives.
        self.check("cuCtxSetCurrent", unsafe { cu::cuCtxSetCurrent(self.context) })
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: retained once, when this was made; everything made in it holds an Arc of it.
        unsafe { cu::cuDevicePrimaryCtxRelease_v2(self.device) };
    }
}

/// A device of CUDA.
pub(crate) struct Cuda(Arc<Context>);

/// The devices, or why there are none.
pub(crate) fn devices() -> Result<Vec<DeviceInfo>, String> {
    // SAFETY: looks for a library; NVIDIA's own, whose loading has no side effects.
    if !unsafe { cu::is_culib_present() } {
        return Err("the library libcuda is not there: NVIDIA's driver brings it".into());
    }
    let said = |call: &str, code: CUresult| format!("{call} ended with code {}", code as i32);
    // SAFETY: the library is there; the first call, as it must be.
    match unsafe { cu::cuInit(0) } {
        CUresult::CUDA_SUCCESS => {}
        code => return Err(said("cuInit", code)),
    }
    // SAFETY: looks for a library.
    if !unsafe { nvrtc_sys::is_culib_present() } {
        let hint = "pip install nvidia-cuda-nvrtc-cu12, and its folder in LD_LIBRARY_PATH";
        return Err(format!("the compiler libnvrtc is not there: the CUDA toolkit brings it ({hint})"));
    }
    let mut count = 0;
    // SAFETY: writes the count.
    match unsafe { cu::cuDeviceGetCount(&raw mut count) } {
        CUresult::CUDA_SUCCESS if count > 0 => {}
        CUresult::CUDA_SUCCESS => return Err("the driver knows no device".into()),
        code => return Err(said("cuDeviceGetCount", code)),
    }
    Ok((0..count).filter_map(describe).collect())
}

fn attribute(device: cu::CUdevice, what: Attribute) -> i32 {
    let mut value = 0;
    // SAFETY: writes the value; the device exists.
    match unsafe { cu::cuDeviceGetAttribute(&raw mut value, what, device) } {
        CUresult::CUDA_SUCCESS => value,
        _ => 0,
    }
}

fn architecture(device: cu::CUdevice) -> i32 {
    10 * attribute(device, Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)
        + attribute(device, Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)
}

fn device_at(index: i32) -> Option<cu::CUdevice> {
    let mut device = 0;
    // SAFETY: writes the device.
    let code = unsafe { cu::cuDeviceGet(&raw mut device, index) };
    (code == CUresult::CUDA_SUCCESS).then_some(device)
}

fn describe(index: i32) -> Option<DeviceInfo> {
    let device = device_at(index)?;
    let mut name = [0 as c_char; 256];
    let (mut bytes, mut version) = (0usize, 0 as c_int);
    // SAFETY: each call writes its own result, the name at most as long as the array, ended by a zero.
    let name = unsafe {
        cu::cuDeviceGetName(name.as_mut_ptr(), name.len() as c_int - 1, device);
        cu::cuDeviceTotalMem_v2(&raw mut bytes, device);
        cu::cuDriverGetVersion(&raw mut version);
        CStr::from_ptr(name.as_ptr()).to_string_lossy().into_owned()
    };
    let architecture = architecture(device);
    Some(DeviceInfo {
        backend: Backend::Cuda,
        index: index as usize,
        name,
        driver: format!("CUDA {}.{}, sm_{architecture}", version / 1000, version % 1000 / 10),
        kind: DeviceKind::Gpu,
        compute_units: attribute(device, Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) as u32,
        max_group_items: attribute(device, Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK) as usize,
        local_bytes: attribute(device, Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK) as u64,
        memory_bytes: bytes as u64,
        max_buffer_bytes: bytes as u64,
        f64: true,
        acquire_release: architecture >= 70,
        forward_progress: architecture >= 70,
    })
}

impl Cuda {
    pub(crate) fn open(info: DeviceInfo) -> Result<Self, BackendError> {
        let gone = || BackendError::Failed { what: format!("{} is not there any more", info.name) };
        let device = device_at(info.index as i32).ok_or_else(gone)?;
        let mut context = ptr::null_mut();
        // SAFETY: writes the context.
        match unsafe { cu::cuDevicePrimaryCtxRetain(&raw mut context, device) } {
            CUresult::CUDA_SUCCESS => {}
            code => return Err(error_of(&info.name, "cuDevicePrimaryCtxRetain", code)),
        }
        let architecture = architecture(device);
        Ok(Cuda(Arc::new(Context { info, device, context, architecture })))
    }
}

/// The device's own code for an architecture such as 80, or the compiler's log. Needs no device, only NVRTC.
pub(crate) fn compile_for(architecture: i32, program: &Program) -> Result<Vec<u8>, String> {
    // SAFETY: looks for a library.
    if !unsafe { nvrtc_sys::is_culib_present() } {
        return Err("the compiler libnvrtc is not there".into());
    }
    let said = |error: nvrtc::NvrtcError| format!("NVRTC: {error:?}");
    let source = CString::new(program.source()).expect("no zero byte");
    let made = nvrtc::create_program(&source, Some(c"krylith.cu")).map_err(said)?;
    let mut options = vec![format!("--gpu-architecture=sm_{architecture}"), "-std=c++17".into()];
    if program.exact {
        options.push("--fmad=false".into());
    }
    // SAFETY: the program was made above and is destroyed below; buffers have the sizes that NVRTC gives.
    unsafe {
        let compiled = match nvrtc::compile_program(made, &options) {
            Ok(()) => {
                let mut size = 0;
                let mut asked = nvrtc_sys::nvrtcGetCUBINSize(made, &raw mut size).result();
                let mut code = vec![0u8; size];
                if asked.is_ok() {
                    asked = nvrtc_sys::nvrtcGetCUBIN(made, code.as_mut_ptr().cast()).result();
                }
                asked.map(|()| code).map_err(said)
            }
            Err(error) => {
                let log = nvrtc::get_program_log(made).unwrap_or_default();
                let log: Vec<u8> = log.iter().map(|&c| c as u8).take_while(|&c| c != 0).collect();
                Err(format!("{}: {}", said(error), String::from_utf8_lossy(&log)))
            }
        };
        nvrtc::destroy_program(made).map_err(said)?;
        compiled
    }
}

impl Driver for Cuda {
    fn info(&self) -> &DeviceInfo {
        &self.0.info
    }

    fn allocate(&self, bytes: usize) -> Result<Memory, BackendError> {
        self.0.enter()?;
        let mut pointer = 0;
        // SAFETY: writes the pointer.
        match unsafe { cu::cuMemAlloc_v2(&raw mut pointer, bytes.max(1)) } {
            CUresult::CUDA_ERROR_OUT_OF_MEMORY => {
                Err(BackendError::OutOfMemory { device: self.0.info.name.clone(), bytes: bytes as u64 })
            }
            code => self.0.check("cuMemAlloc", code).map(|()| Memory(pointer)),
        }
    }

    unsafe fn free(&self, memory: Memory) {
        if self.0.enter().is_ok() {
            // SAFETY: by the caller's promise. An error says nothing useful.
            unsafe { cu::cuMemFree_v2(memory.0) };
        }
    }

    fn compile(&self, program: &Program) -> Result<(Module, Vec<u8>), BackendError> {
        let failed = |log| BackendError::Compile { device: self.0.info.name.clone(), log };
        let binary = compile_for(self.0.architecture, program).map_err(failed)?;
        Ok((self.load(&binary)?, binary))
    }

    fn load(&self, binary: &[u8]) -> Result<Module, BackendError> {
        self.0.enter()?;
        let mut module = ptr::null_mut();
        // SAFETY: a whole image, which the driver checks.
        let code = unsafe { cu::cuModuleLoadData(&raw mut module, binary.as_ptr().cast()) };
        self.0.check("cuModuleLoadData", code).map(|()| Module(module as u64))
    }

    unsafe fn unload(&self, module: Module) {
        if self.0.enter().is_ok() {
            // SAFETY: by the caller's promise.
            unsafe { cu::cuModuleUnload(module.0 as cu::CUmodule) };
        }
    }

    fn stream(
        &self,
        module: Module,
        names: &[&'static str],
        timed: bool,
    ) -> Result<Box<dyn Stream>, BackendError> {
        self.0.enter()?;
        let mut kernels = Vec::with_capacity(names.len());
        for &name in names {
            let (mut function, name) = (ptr::null_mut(), CString::new(name).expect("no zero byte"));
            let module = module.0 as cu::CUmodule;
            // SAFETY: writes the function; the module is loaded.
            let code = unsafe { cu::cuModuleGetFunction(&raw mut function, module, name.as_ptr()) };
            self.0.check("cuModuleGetFunction", code)?;
            kernels.push(function);
        }
        let mut stream = ptr::null_mut();
        // CU_STREAM_NON_BLOCKING: it does not wait for the default stream.
        // SAFETY: writes the stream.
        self.0.check("cuStreamCreate", unsafe { cu::cuStreamCreate(&raw mut stream, 1) })?;
        Ok(Box::new(Queue { context: Arc::clone(&self.0), stream, kernels, timed, events: Vec::new() }))
    }
}

/// A stream and the functions that run on it.
struct Queue {
    context: Arc<Context>,
    stream: cu::CUstream,
    kernels: Vec<cu::CUfunction>,
    timed: bool,
    /// Before and after launches, where times are wanted.
    events: Vec<(usize, [cu::CUevent; 2])>,
}

// SAFETY: a stream may be used from any thread, one at a time, which `&mut self` ensures.
unsafe impl Send for Queue {}

impl Queue {
    fn record(&self) -> Result<cu::CUevent, BackendError> {
        let mut event = ptr::null_mut();
        // SAFETY: writes the event, which is then recorded.
        unsafe {
            self.context.check("cuEventCreate", cu::cuEventCreate(&raw mut event, 0))?;
            self.context.check("cuEventRecord", cu::cuEventRecord(event, self.stream))?;
        }
        Ok(event)
    }

    fn wait(&self) -> Result<(), BackendError> {
        // SAFETY: the stream is this one's.
        self.context.check("cuStreamSynchronize", unsafe { cu::cuStreamSynchronize(self.stream) })
    }
}

impl Stream for Queue {
    unsafe fn write(&mut self, to: Memory, offset: usize, from: &[u8]) -> Result<(), BackendError> {
        self.context.enter()?;
        // SAFETY: by the caller's promise; `from` has been read when the stream is done.
        let code = unsafe {
            cu::cuMemcpyHtoDAsync_v2(to.0 + offset as u64, from.as_ptr().cast(), from.len(), self.stream)
        };
        self.context.check("cuMemcpyHtoDAsync", code)?;
        self.wait()
    }

    unsafe fn read(&mut self, from: Memory, offset: usize, to: &mut [u8]) -> Result<(), BackendError> {
        self.context.enter()?;
        // SAFETY: by the caller's promise; `to` has been written when the stream is done.
        let code = unsafe {
            let (to, size) = (to.as_mut_ptr().cast(), to.len());
            cu::cuMemcpyDtoHAsync_v2(to, from.0 + offset as u64, size, self.stream)
        };
        self.context.check("cuMemcpyDtoHAsync", code)?;
        self.wait()
    }

    unsafe fn copy(&mut self, from: Memory, to: Memory, bytes: usize) -> Result<(), BackendError> {
        self.context.enter()?;
        // SAFETY: by the caller's promise.
        let code = unsafe { cu::cuMemcpyDtoDAsync_v2(to.0, from.0, bytes, self.stream) };
        self.context.check("cuMemcpyDtoDAsync", code)
    }

    unsafe fn launch(&mut self, kernel: usize, shape: Shape, args: &[Arg]) -> Result<(), BackendError> {
        self.context.enter()?;
        let value = |arg: &Arg| -> *mut c_void {
            match arg {
                Arg::Buffer(memory) => (&raw const memory.0).cast_mut().cast(),
                Arg::U32(v) => ptr::from_ref(v).cast_mut().cast(),
                Arg::U64(v) => ptr::from_ref(v).cast_mut().cast(),
                Arg::F32(v) => ptr::from_ref(v).cast_mut().cast(),
                Arg::F64(v) => ptr::from_ref(v).cast_mut().cast(),
            }
        };
        let mut values = [ptr::null_mut(); MOST_ARGUMENTS];
        values[..args.len()].iter_mut().zip(args).for_each(|(to, arg)| *to = value(arg));
        let before = if self.timed { Some(self.record()?) } else { None };
        let (groups, items) = (shape.groups as u32, shape.items as u32);
        // SAFETY: arguments are those of the kernel by the caller's promise, and are copied by the call.
        let code = unsafe {
            let (function, values) = (self.kernels[kernel], values.as_mut_ptr());
            cu::cuLaunchKernel(function, groups, 1, 1, items, 1, 1, 0, self.stream, values, ptr::null_mut())
        };
        self.context.check("cuLaunchKernel", code)?;
        if let Some(before) = before {
            let after = self.record()?;
            self.events.push((kernel, [before, after]));
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), BackendError> {
        self.context.enter()?;
        self.wait()
    }

    fn times(&mut self) -> Result<Vec<(usize, u64)>, BackendError> {
        self.finish()?;
        let mut times = Vec::with_capacity(self.events.len());
        for (kernel, [before, after]) in std::mem::take(&mut self.events) {
            let mut milliseconds = 0.0f32;
            // SAFETY: both have been recorded, and nobody else has them.
            unsafe {
                cu::cuEventElapsedTime(&raw mut milliseconds, before, after);
                cu::cuEventDestroy_v2(before);
                cu::cuEventDestroy_v2(after);
            }
            times.push((kernel, (f64::from(milliseconds) * 1e6) as u64));
        }
        Ok(times)
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // Errors say nothing useful any more.
        if self.finish().is_ok() {
            for (_, [before, after]) in self.events.drain(..) {
                // SAFETY: nobody else has them.
                unsafe {
                    cu::cuEventDestroy_v2(before);
                    cu::cuEventDestroy_v2(after);
                }
            }
        }
        // SAFETY: the stream is this one's, and idle or dead.
        unsafe { cu::cuStreamDestroy_v2(self.stream) };
    }
}
