//! Where a solve runs: on threads, or on a device.

use crate::Failure;
use crate::args;
use crate::args::Solve;
use krylith::observe::Observer;
use krylith::plan::SolvePlan;
use krylith::{BackendError, Csr, Prepared, Report, SolveError, Solver, Watch};
use krylith_gpu::{Device, DeviceOptions, DevicePrepared, DeviceSpace, OnDevice, Selector, devices};

/// Threads, or a device that is open.
pub enum Place {
    /// Threads. If a device was asked for, the reason why none is used.
    Threads(Option<String>),
    Device(Device),
}

impl Place {
    /// Opens what was asked for.
    pub fn open(options: &Solve) -> Result<Self, Failure> {
        let device_options = DeviceOptions {
            reproducible: options.reproducible,
            timed: options.profile,
            ..DeviceOptions::default()
        };
        if options.device == args::Place::Cpu && options.reproducible {
            return Err("--reproducible is about devices: give one with --device".into());
        }
        match options.device {
            args::Place::Cpu => Ok(Place::Threads(None)),
            args::Place::Device(selector) => match Device::open(&selector, device_options) {
                Ok(device) => Ok(Place::Device(device)),
                Err(error) => Err(unusable(&selector, &error).into()),
            },
            // A device that does not open, or has no kernels, is no reason not to solve.
            args::Place::Auto => Ok(match devices().choose() {
                Err(why) => Place::Threads(Some(why)),
                Ok(selector) => {
                    let opened = Device::open(&selector, device_options);
                    match opened.and_then(|device| DeviceSpace::<f64>::new(&device).map(|_| device)) {
                        Ok(device) => Place::Device(device),
                        Err(error) => Place::Threads(Some(format!("{selector}: {error}"))),
                    }
                }
            }),
        }
    }

    /// Which device was taken, or why none was, where somebody asked.
    pub fn choice(&self) -> Option<String> {
        match self {
            Place::Threads(why) => why.as_ref().map(|why| format!("none, threads instead: {why}")),
            Place::Device(device) => {
                let (info, bits) = (device.info(), device.is_reproducible());
                let bits = if bits { ", the bits of threads by rows" } else { "" };
                Some(format!("{}, {}{bits}", info.selector(), info.name))
            }
        }
    }

    /// The name of the device, as profiles of machines have it.
    pub fn device_name(&self) -> Option<&str> {
        match self {
            Place::Threads(_) => None,
            Place::Device(device) => Some(&device.info().name),
        }
    }

    /// What a solve will do there, with a preconditioner made from `source`, which may be A.
    pub fn plan(&self, solver: Solver, a: &Csr<f64>, source: &Csr<f64>) -> Result<SolvePlan, SolveError> {
        match self {
            Place::Threads(_) => solver.plan_with(a, source),
            Place::Device(device) => solver.on(device).plan_with(a, source),
        }
    }

    /// Sets up a system whose preconditioner is made from `source`, which may be A.
    pub fn prepare(&self, solver: Solver, a: &Csr<f64>, source: &Csr<f64>) -> Result<Ready, SolveError> {
        Ok(match self {
            Place::Threads(_) => Ready::Threads(Box::new(solver.prepare_with(a, source)?)),
            Place::Device(device) => Ready::Device(Box::new(solver.on(device).prepare_with(a, source)?)),
        })
    }
}

/// Why a device that was asked for is not taken, and what to do next.
fn unusable(selector: &Selector, error: &BackendError) -> String {
    let why = match error {
        BackendError::NoDevice { why, .. } => why.clone(),
        other => other.to_string(),
    };
    format!("--device {selector}: {why}; `krylith devices` lists what there is, --device cpu needs none")
}

/// A system that is set up.
pub enum Ready {
    Threads(Box<Prepared<Csr<f64>>>),
    Device(Box<DevicePrepared>),
}

impl Ready {
    pub fn warnings(&self) -> &[String] {
        match self {
            Ready::Threads(prepared) => &prepared.plan().warnings,
            Ready::Device(prepared) => &prepared.plan().warnings,
        }
    }

    pub fn solve_observed(
        &self,
        a: &Csr<f64>,
        b: &[f64],
        x: &mut [f64],
        observer: &mut dyn Observer<f64>,
    ) -> Result<Report, SolveError> {
        let watch = Watch { observer: Some(observer), stop: None };
        match self {
            Ready::Threads(prepared) => prepared.solve_watched(a, b, x, watch),
            Ready::Device(prepared) => prepared.solve_watched(a, b, x, watch),
        }
    }
}
