//! The calls of CUDA's driver that krylith-gpu makes, without a device: memory is the host's, copies are real, launches are written to the file
//! `KRYLITH_STUB_LOG`, one line each: the kernel, groups, items, and the first four bytes of every argument. Compiled by a test as libcuda.so.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::io::Write;

/// Arguments of each kernel, from the file `KRYLITH_STUB_KERNELS`: lines of a name and a count.
fn arguments(kernel: &str) -> usize {
    let path = std::env::var_os("KRYLITH_STUB_KERNELS").expect("a list of kernels");
    let list = std::fs::read_to_string(path).expect("a list of kernels");
    let line = list.lines().find(|line| line.split(' ').next() == Some(kernel)).expect("a known kernel");
    line.split(' ').nth(1).expect("a count").parse().expect("a number")
}

#[unsafe(no_mangle)]
extern "C" fn cuInit(_: c_uint) -> c_int {
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDriverGetVersion(version: *mut c_int) -> c_int {
    unsafe { *version = 12090 };
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetCount(count: *mut c_int) -> c_int {
    unsafe { *count = 1 };
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGet(device: *mut c_int, index: c_int) -> c_int {
    unsafe { *device = index };
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetName(name: *mut c_char, _: c_int, _: c_int) -> c_int {
    unsafe { std::ptr::copy_nonoverlapping(c"a stub".as_ptr(), name, 7) };
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceTotalMem_v2(bytes: *mut usize, _: c_int) -> c_int {
    unsafe { *bytes = 1 << 32 };
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetAttribute(value: *mut c_int, what: c_int, _: c_int) -> c_int {
    // Threads of a block, shared memory, multiprocessors, compute capability 8.0.
    let known = [(1, 1024), (8, 49152), (16, 108), (75, 8), (76, 0)];
    unsafe { *value = known.iter().find(|(code, _)| *code == what).map_or(0, |(_, value)| *value) };
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDevicePrimaryCtxRetain(context: *mut *mut c_void, _: c_int) -> c_int {
    unsafe { *context = 8 as *mut c_void };
    0
}

#[unsafe(no_mangle)]
extern "C" fn cuDevicePrimaryCtxRelease_v2(_: c_int) -> c_int {
    0
}

#[unsafe(no_mangle)]
extern "C" fn cuCtxSetCurrent(_: *mut c_void) -> c_int {
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemAlloc_v2(pointer: *mut u64, bytes: usize) -> c_int {
    // With its size in front, for the one who frees it.
    let mut memory = vec![0u64; bytes.div_ceil(8) + 1].into_boxed_slice();
    memory[0] = memory.len() as u64;
    unsafe { *pointer = (Box::into_raw(memory) as *mut u64).add(1) as u64 };
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemFree_v2(pointer: u64) -> c_int {
    unsafe {
        let start = (pointer as *mut u64).sub(1);
        drop(Box::from_raw(std::ptr::slice_from_raw_parts_mut(start, *start as usize)));
    }
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuModuleLoadData(module: *mut *mut c_void, image: *const c_void) -> c_int {
    let elf = unsafe { std::slice::from_raw_parts(image.cast::<u8>(), 4) };
    unsafe { *module = 16 as *mut c_void };
    if elf == b"\x7fELF" { 0 } else { 200 }
}

#[unsafe(no_mangle)]
extern "C" fn cuModuleUnload(_: *mut c_void) -> c_int {
    0
}

/// A function is its name.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuModuleGetFunction(to: *mut *mut c_void, _: *mut c_void, name: *const c_char) -> c_int {
    unsafe { *to = CStr::from_ptr(name).to_owned().into_raw().cast() };
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuStreamCreate(stream: *mut *mut c_void, _: c_uint) -> c_int {
    unsafe { *stream = 24 as *mut c_void };
    0
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamDestroy_v2(_: *mut c_void) -> c_int {
    0
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamSynchronize(_: *mut c_void) -> c_int {
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemcpyHtoDAsync_v2(to: u64, from: *const c_void, bytes: usize, _: *mut c_void) -> c_int {
    unsafe { std::ptr::copy_nonoverlapping(from.cast::<u8>(), to as *mut u8, bytes) };
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemcpyDtoHAsync_v2(to: *mut c_void, from: u64, bytes: usize, _: *mut c_void) -> c_int {
    unsafe { std::ptr::copy_nonoverlapping(from as *const u8, to.cast::<u8>(), bytes) };
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemcpyDtoDAsync_v2(to: u64, from: u64, bytes: usize, _: *mut c_void) -> c_int {
    unsafe { std::ptr::copy(from as *const u8, to as *mut u8, bytes) };
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuLaunchKernel(
    function: *mut c_void,
    groups: c_uint,
    _: c_uint,
    _: c_uint,
    items: c_uint,
    _: c_uint,
    _: c_uint,
    _: c_uint,
    _: *mut c_void,
    values: *mut *mut c_void,
    _: *mut *mut c_void,
) -> c_int {
    let name = unsafe { CStr::from_ptr(function.cast()) }.to_str().expect("a name");
    let mut line = format!("{name} {groups} {items}");
    for k in 0..arguments(name) {
        let word = unsafe { (*values.add(k)).cast::<u32>().read() };
        line += &format!(" {word}");
    }
    let path = std::env::var_os("KRYLITH_STUB_LOG").expect("a log");
    let mut log = std::fs::OpenOptions::new().append(true).create(true).open(path).expect("a log");
    writeln!(log, "{line}").expect("a log");
    0
}
