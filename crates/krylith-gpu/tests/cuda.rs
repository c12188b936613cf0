//! CUDA without a device: every kernel compiles for NVIDIA's generations, and the host's side makes the calls that OpenCL's makes.

mod common;

use krylith::gallery::Problem;
use krylith::operator::LinearOperator;
use krylith::space::Space;
use krylith::{Csr, Method, Solver};
use krylith_gpu::{
    Device, DeviceMatrix, DeviceOptions, DeviceSpace, DeviceStorage, KernelShape, Launch, OnDevice,
    compile_for_cuda,
};
use std::path::Path;
use std::process::Command;

/// Ampere, Hopper, and the two of Blackwell.
const ARCHITECTURES: [i32; 4] = [80, 90, 100, 120];

/// NVRTC is there. Where it is not installed there is nothing to test, unless somebody relies on it.
fn has_nvrtc() -> bool {
    let missing = compile_for_cuda(80, true, false).is_err_and(|why| why.contains("is not there"));
    assert!(!missing || std::env::var_os("KRYLITH_REQUIRE_NVRTC").is_none(), "NVRTC is not there");
    if missing {
        eprintln!("no NVRTC: nothing is tested");
    }
    !missing
}

#[test]
fn kernels_compile_for_every_architecture() {
    if !has_nvrtc() {
        return;
    }
    for architecture in ARCHITECTURES {
        for (double, reproducible) in [(true, false), (true, true), (false, false)] {
            let binary = compile_for_cuda(architecture, double, reproducible).unwrap();
            assert!(binary.starts_with(b"\x7fELF"), "sm_{architecture}");
        }
    }
}

fn problem(name: &str) -> Csr<f64> {
    name.parse::<Problem>().unwrap().generate().unwrap()
}

/// Work whose launches do not depend on results: a stub computes nothing.
fn script(selector: &str) -> Vec<Launch> {
    let options =
        DeviceOptions { shape: Some(KernelShape::Gpu), reproducible: true, ..DeviceOptions::default() };
    let (device, launches) = Device::open_recorded(&selector.parse().unwrap(), options).unwrap();
    let space = DeviceSpace::<f64>::new(&device).unwrap();
    let n = 5000;
    let [mut x, mut y, mut z] = [(); 3].map(|()| space.zeros(&n).unwrap());
    space.upload(&vec![1.5; n], &mut x).unwrap();
    space.copy(&x, &mut z).unwrap();
    space.axpby(0.5, &x, -2.0, &mut y).unwrap();
    space.scale(3.0, &mut y).unwrap();
    space.dots(&[(&x, &y), (&y, &z), (&x, &x), (&z, &z), (&x, &z)], &mut [0.0; 5]).unwrap();
    space.update_norm(0.25, &x, &mut y).unwrap();
    space.update_dots(0.25, &x, &mut y, &z).unwrap();
    space.cg_direction(1.0, &x, 2.0, &mut y, &mut z).unwrap();
    space.bicgstab_direction(&x, 1.0, 2.0, &y, &mut z).unwrap();
    let basis: Vec<_> = (0..40).map(|_| space.zeros(&n).unwrap()).collect();
    space.combine_dots(&[0.5; 40], &basis, &mut z, &mut [0.0; 41]).unwrap();
    space.combine(&[0.5; 2], &basis[..2], &mut z).unwrap();
    space.extremes(&x).unwrap();
    let a = problem("elasticity2d:12");
    let (mut from, mut to) = (space.zeros(&a.ncols()).unwrap(), space.zeros(&a.nrows()).unwrap());
    for storage in
        [DeviceStorage::Rows, DeviceStorage::Lanes, DeviceStorage::Slices, DeviceStorage::Blocks(2)]
    {
        let matrix = DeviceMatrix::in_storage(&space, &a, storage).unwrap();
        matrix.apply(&space, &from, &mut to, &mut ()).unwrap();
        matrix.apply_dot(&space, &from, &mut to, &mut ()).unwrap();
        space.fill(1.0, &mut from).unwrap();
    }
    // Elimination, and one application of each factor: what comes back from a stub ends the iteration.
    let a = problem("poisson3d:40");
    for (method, name) in
        [(Method::Cg, "ic0"), (Method::BiCgStab, "ilu0"), (Method::Cg, "jacobi"), (Method::Cg, "ic(1)")]
    {
        let solver = Solver::new().method(method).preconditioner(name.parse().unwrap()).max_iterations(1);
        drop(solver.on(&device).prepare(&a).unwrap());
    }
    let launches = launches.lock().unwrap();
    launches.clone()
}

/// What a child of the test below does: the script on CUDA, whose library is the stub.
#[test]
#[ignore = "run by the test of the stub"]
fn child() {
    let out = std::env::var_os("KRYLITH_STUB_OUT").expect("somebody wants to see it");
    let lines: Vec<String> = script("cuda").iter().map(|launch| format!("{launch:?}\n")).collect();
    std::fs::write(out, lines.concat()).unwrap();
}

/// Compiles the stub as libcuda.so.
fn build_stub(folder: &Path) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stub/libcuda.rs");
    let rustc = Command::new("rustc")
        .args(["--edition", "2024", "--crate-type", "cdylib", "-A", "warnings", "-C", "debuginfo=0", "-o"])
        .arg(folder.join("libcuda.so"))
        .arg(source)
        .output()
        .unwrap();
    assert!(rustc.status.success(), "{}", String::from_utf8_lossy(&rustc.stderr));
}

#[test]
fn launches_are_those_of_opencl_and_reach_the_driver() {
    let Some(opencl) = common::selectors().first().copied() else { return };
    if !has_nvrtc() {
        return;
    }
    let expected = script(&opencl.to_string());
    assert!(expected.len() > 150, "{}", expected.len());
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    build_stub(folder);
    let counts: std::collections::BTreeMap<_, _> =
        expected.iter().map(|launch| (launch.kernel, launch.arguments.len())).collect();
    let list: String = counts.iter().map(|(kernel, count)| format!("{kernel} {count}\n")).collect();
    std::fs::write(folder.join("kernels"), list).unwrap();
    let path = std::env::var("LD_LIBRARY_PATH").unwrap_or_default();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--ignored", "--nocapture"])
        .env("LD_LIBRARY_PATH", format!("{}:{path}", folder.display()))
        .env("KRYLITH_STUB_LOG", folder.join("log"))
        .env("KRYLITH_STUB_KERNELS", folder.join("kernels"))
        .env("KRYLITH_STUB_OUT", folder.join("out"))
        .env("KRYLITH_CACHE_DIR", folder)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // The same kernels, shapes and arguments in the same order.
    let own = std::fs::read_to_string(folder.join("out")).unwrap();
    let theirs: Vec<String> = expected.iter().map(|launch| format!("{launch:?}")).collect();
    assert_eq!(own.lines().count(), theirs.len());
    for (k, (own, theirs)) in own.lines().zip(&theirs).enumerate() {
        assert_eq!(own, theirs, "launch {k}");
    }
    // And what reached the driver is what was sent.
    let log = std::fs::read_to_string(folder.join("log")).unwrap();
    assert_eq!(log.lines().count(), expected.len());
    for (line, launch) in log.lines().zip(&expected) {
        let words: Vec<&str> = line.split(' ').collect();
        assert_eq!(words[0], launch.kernel);
        assert_eq!(words[1..3], launch.shape.map(|n| n.to_string()));
        for (word, argument) in words[3..].iter().zip(&launch.arguments) {
            let sent = match argument.split_once(' ').unwrap() {
                ("u32", value) => value.parse::<u32>().unwrap(),
                ("u64", value) => value.parse::<u64>().unwrap() as u32,
                ("f64", value) => value.parse::<f64>().unwrap().to_bits() as u32,
                ("f32", value) => value.parse::<f32>().unwrap().to_bits(),
                _ => continue,
            };
            assert_eq!(word.parse::<u32>().unwrap(), sent, "{line}: {argument}");
        }
    }
}
