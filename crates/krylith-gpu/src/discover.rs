//! Which devices there are, and which one is meant.

use crate::driver::Driver;
use crate::driver::cuda::{self, Cuda};
use crate::driver::opencl::{self, OpenCl};
use crate::info::{Backend, DeviceInfo, DeviceKind};
use krylith::BackendError;
use std::fmt;
use std::str::FromStr;

/// A device by backend and number: `opencl`, `opencl:1`, `cuda`, `cuda:0`. Without a number it is the first GPU that Krylith can run on,
/// or the first device of any kind that it can run on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Selector {
    /// The driver.
    pub backend: Backend,
    /// The number among its devices.
    pub index: Option<usize>,
}

impl FromStr for Selector {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "{text:?} is no device: opencl, opencl:N, cuda or cuda:N, as `krylith devices` lists them"
            )
        };
        let (backend, index) = match text.split_once(':') {
            Some((backend, index)) => (backend, Some(index.parse().map_err(|_| wrong())?)),
            None => (text, None),
        };
        let backend = match backend {
            "opencl" => Backend::OpenCl,
            "cuda" => Backend::Cuda,
            _ => return Err(wrong()),
        };
        Ok(Selector { backend, index })
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.index {
            Some(index) => write!(f, "{}:{index}", self.backend),
            None => write!(f, "{}", self.backend),
        }
    }
}

/// The devices of this machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Devices {
    /// All that were found.
    pub found: Vec<DeviceInfo>,
    /// Backends without devices: why, and what to install.
    pub missing: Vec<(Backend, String)>,
}

/// Looks for devices. Loads the drivers that are installed, and nothing else.
pub fn devices() -> Devices {
    let (mut found, mut missing) = (Vec::new(), Vec::new());
    match cuda::devices() {
        Ok(devices) => found.extend(devices),
        Err(why) => missing.push((Backend::Cuda, why)),
    }
    match opencl::devices() {
        Ok(devices) => found.extend(devices.into_iter().map(|(_, info)| info)),
        Err(why) => missing.push((Backend::OpenCl, why)),
    }
    Devices { found, missing }
}

impl Devices {
    /// The device that `auto` takes: the first GPU that Krylith can run on, NVIDIA's by CUDA. The error is the reason why each other device is
    /// not taken: a processor that is reached through OpenCL has threads without a driver between.
    pub fn choose(&self) -> Result<Selector, String> {
        let usable = |info: &&DeviceInfo| info.kind == DeviceKind::Gpu && info.lacks().is_none();
        if let Some(info) = self.found.iter().find(usable) {
            return Ok(Selector { backend: info.backend, index: Some(info.index) });
        }
        let mut reasons: Vec<String> = self.found.iter().map(why_not).collect();
        reasons.extend(self.missing.iter().map(|(backend, why)| format!("{backend}: {why}")));
        Err(reasons.join("; "))
    }
}

fn why_not(info: &DeviceInfo) -> String {
    let why = info.lacks().unwrap_or("it is no GPU; a processor has threads without a driver between");
    format!("{} ({}): {why}", info.selector(), info.name)
}

/// The one of several that is meant.
fn pick(selector: &Selector, infos: &[DeviceInfo]) -> Result<usize, String> {
    let index = match selector.index {
        Some(index) => index,
        None => {
            let usable = |info: &DeviceInfo| info.lacks().is_none();
            let gpu = infos.iter().position(|info| info.kind == DeviceKind::Gpu && usable(info));
            gpu.or_else(|| infos.iter().position(usable)).unwrap_or(0)
        }
    };
    match infos.get(index) {
        None => Err(format!("there are {} devices, counted from 0", infos.len())),
        Some(info) => match info.lacks() {
            Some(lacks) => Err(format!("{}: {lacks}", info.name)),
            None => Ok(index),
        },
    }
}

/// Opens a device.
pub(crate) fn open(selector: &Selector) -> Result<Box<dyn Driver>, BackendError> {
    let none = |why: String| BackendError::NoDevice { wanted: selector.to_string(), why };
    match selector.backend {
        Backend::OpenCl => {
            let mut devices = opencl::devices().map_err(none)?;
            let infos: Vec<DeviceInfo> = devices.iter().map(|(_, info)| info.clone()).collect();
            let (id, info) = devices.swap_remove(pick(selector, &infos).map_err(none)?);
            Ok(Box::new(OpenCl::open(id, info)?))
        }
        Backend::Cuda => {
            let mut devices = cuda::devices().map_err(none)?;
            let index = pick(selector, &devices).map_err(none)?;
            Ok(Box::new(Cuda::open(devices.swap_remove(index))?))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(backend: Backend, index: usize, kind: DeviceKind, f64: bool) -> DeviceInfo {
        DeviceInfo {
            backend,
            index,
            name: "d".into(),
            driver: String::new(),
            kind,
            compute_units: 1,
            max_group_items: 1024,
            local_bytes: 1 << 15,
            memory_bytes: 1 << 30,
            max_buffer_bytes: 1 << 28,
            f64,
            acquire_release: true,
            forward_progress: true,
        }
    }

    #[test]
    fn names_are_read_and_written() {
        for name in ["opencl", "opencl:0", "cuda:3"] {
            assert_eq!(name.parse::<Selector>().unwrap().to_string(), name);
        }
        for name in ["", "gpu", "opencl:", "cuda:-1", "cuda:1:2", "opencl:x"] {
            let error = name.parse::<Selector>().unwrap_err();
            assert!(error.contains("krylith devices"), "{error}");
        }
    }

    #[test]
    fn a_gpu_that_computes_in_f64_is_chosen_and_a_processor_is_not() {
        let cpu = device(Backend::OpenCl, 0, DeviceKind::Cpu, true);
        let small = device(Backend::OpenCl, 1, DeviceKind::Gpu, false);
        let gpu = device(Backend::OpenCl, 2, DeviceKind::Gpu, true);
        let missing = vec![(Backend::Cuda, "no library".to_string())];
        let devices = Devices { found: vec![cpu.clone(), small.clone()], missing };
        let why = devices.choose().unwrap_err();
        assert!(why.contains("opencl:0") && why.contains("f64") && why.contains("no library"), "{why}");
        let all = vec![cpu, small, gpu];
        assert_eq!(pick(&"opencl".parse().unwrap(), &all), Ok(2));
        assert_eq!(pick(&"opencl:0".parse().unwrap(), &all), Ok(0));
        assert!(pick(&"opencl:1".parse().unwrap(), &all).unwrap_err().contains("f64"));
        assert!(pick(&"opencl:9".parse().unwrap(), &all).unwrap_err().contains("3 devices"));
        let chosen = Devices { found: all, missing: Vec::new() }.choose().unwrap();
        assert_eq!(chosen.to_string(), "opencl:2");
    }
}
