//! What follows a failure of a driver: a typed error, and nothing that is not given back.

mod common;

use common::selectors;
use krylith::space::Space;
use krylith::{BackendError, Method, PrecondSpec, SetupError, SolveError, Solver};
use krylith_gpu::{Device, DeviceOptions, DeviceSpace, Faults, OnDevice};
use std::sync::Arc;
use std::sync::atomic::AtomicI64;

fn device(faults: Faults) -> Vec<Device> {
    let faults = Arc::new(faults);
    let open = |selector| Device::open_with_faults(selector, DeviceOptions::default(), Arc::clone(&faults));
    selectors().iter().map(|selector| open(selector).unwrap()).collect()
}

/// Some work; the error that ends it.
fn work(device: &Device) -> Result<f64, BackendError> {
    let space = DeviceSpace::<f64>::new(device)?;
    let (mut x, mut y) = (space.zeros(&5000)?, space.zeros(&5000)?);
    space.fill(2.0, &mut x)?;
    space.axpby(1.0, &x, 1.0, &mut y)?;
    let norm = space.update_norm(3.0, &x, &mut y)?;
    space.copy(&x, &mut y)?;
    Ok(norm + space.dot(&x, &y)?)
}

#[test]
fn kernels_that_do_not_compile() {
    // An empty folder, so that nothing is found there.
    let empty = tempfile::tempdir().unwrap();
    // SAFETY: no other thread of this process reads the environment: tests are processes of their own.
    #[allow(unsafe_code)]
    unsafe {
        std::env::set_var("KRYLITH_CACHE_DIR", empty.path());
    }
    for device in device(Faults { compile: AtomicI64::new(0), ..Faults::default() }) {
        let error = work(&device).unwrap_err();
        assert!(matches!(&error, BackendError::Compile { log, .. } if log.contains("injected")), "{error}");
        assert_eq!(device.live_buffers(), 0);
    }
    assert_eq!(std::fs::read_dir(empty.path()).unwrap().count(), 0);
}

#[test]
fn memory_that_is_not_there() {
    for k in 0..3 {
        for device in device(Faults { allocate: AtomicI64::new(k), ..Faults::default() }) {
            let error = work(&device).unwrap_err();
            assert!(matches!(error, BackendError::OutOfMemory { bytes, .. } if bytes > 0), "{k}: {error}");
            assert_eq!((device.live_buffers(), device.live_bytes()), (0, 0), "{k}");
        }
    }
}

#[test]
fn a_device_that_is_lost_at_any_launch() {
    let mut ended_well = false;
    for k in 0..20 {
        for device in device(Faults { launch: AtomicI64::new(k), ..Faults::default() }) {
            match work(&device) {
                Err(error) => assert!(matches!(error, BackendError::DeviceLost { .. }), "{k}: {error}"),
                Ok(value) => {
                    assert_eq!(value, 20_000.0 + (64.0f64 * 5000.0).sqrt());
                    ended_well = true;
                }
            }
            assert_eq!((device.live_buffers(), device.live_bytes()), (0, 0), "{k}");
        }
        if ended_well {
            return;
        }
    }
    assert!(selectors().is_empty(), "the work takes fewer than 20 launches");
}

/// The fault of a whole solve, wherever it strikes; everything is given back.
fn solve(device: &Device) -> Option<BackendError> {
    let problem: krylith::gallery::Problem = "poisson3d:12".parse().unwrap();
    let a = problem.generate().unwrap();
    let solver = Solver::new().method(Method::Cg).preconditioner(PrecondSpec::ic(0));
    let ended = solver.on(device).solve(&a, &vec![1.0; a.nrows()]);
    assert_eq!((device.live_buffers(), device.live_bytes()), (0, 0));
    match ended {
        Ok(solution) => {
            solution.report.require_converged().unwrap();
            None
        }
        Err(SolveError::Backend(error) | SolveError::Setup(SetupError::Backend(error))) => Some(error),
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn faults_in_a_whole_solve() {
    for k in [0, 1, 3, 6, 10, 15, 20, 50, 100] {
        for device in device(Faults { launch: AtomicI64::new(k), ..Faults::default() }) {
            let error = solve(&device).expect("a solve takes more launches");
            assert!(matches!(error, BackendError::DeviceLost { .. }), "{k}: {error}");
        }
    }
    for k in 0..20 {
        for device in device(Faults { allocate: AtomicI64::new(k), ..Faults::default() }) {
            let error = solve(&device).expect("a solve takes more buffers");
            assert!(matches!(error, BackendError::OutOfMemory { bytes, .. } if bytes > 0), "{k}: {error}");
        }
    }
    assert!(device(Faults::default()).iter().all(|device| solve(device).is_none()));
}
