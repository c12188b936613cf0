//! The devices that tests run on: every one of OpenCL, each in both shapes of kernels.
#![allow(dead_code, reason = "each test binary uses a part")]

use krylith_gpu::{Backend, Device, DeviceOptions, DeviceSpace, KernelShape, Selector, devices};

/// The selectors of all devices that Krylith can run on. Where `KRYLITH_REQUIRE_DEVICE` is set, there must be one.
pub fn selectors() -> Vec<Selector> {
    let found: Vec<Selector> = devices()
        .found
        .iter()
        .filter(|info| info.lacks().is_none() && info.backend == Backend::OpenCl)
        .map(|info| info.selector().parse().unwrap())
        .collect();
    if found.is_empty() {
        assert!(std::env::var_os("KRYLITH_REQUIRE_DEVICE").is_none(), "{:?}", devices().missing);
        eprintln!("no device: nothing is tested");
    }
    found
}

/// Every device, with these options in both shapes.
pub fn opened(options: DeviceOptions) -> Vec<Device> {
    let shapes = [KernelShape::Cpu, KernelShape::Gpu];
    let open = |selector: &Selector, shape| {
        Device::open(selector, DeviceOptions { shape: Some(shape), ..options }).unwrap()
    };
    selectors().iter().flat_map(|selector| shapes.map(|shape| open(selector, shape))).collect()
}

/// A space of `f64` on every device, reproducible or not.
pub fn spaces() -> Vec<DeviceSpace<f64>> {
    let mut all = Vec::new();
    for reproducible in [false, true] {
        let options = DeviceOptions { reproducible, ..DeviceOptions::default() };
        all.extend(opened(options).iter().map(|device| DeviceSpace::new(device).unwrap()));
    }
    all
}

/// Its name in messages.
pub fn label(device: &Device) -> String {
    let exact = if device.is_reproducible() { ", reproducible" } else { "" };
    format!("{}, {:?} shape{exact}", device.info().name, device.shape())
}
