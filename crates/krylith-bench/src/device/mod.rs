//! Devices beside threads of this machine, by rows in `f64` on both.

mod kernels;
mod outcomes;
mod speed;

use crate::Failure;
use clap::{Args, ValueEnum};
use krylith::{Csr, Layout, Method, Precision, Solver};
use krylith_gpu::{Device, DeviceOptions, Devices, KernelShape, Selector, devices};
use std::path::PathBuf;

#[derive(Args)]
pub struct Options {
    /// What is compared
    #[arg(long, default_value = "speed")]
    study: Study,
    /// Problems, as `krylith gen` names them; each study has its own
    problems: Vec<String>,
    /// A folder with CATALOGUE.tsv, for `outcomes`
    #[arg(long)]
    catalogue: Option<PathBuf>,
    /// Matrices of the catalogue
    #[arg(long, default_value_t = 60)]
    matrices: usize,
    /// The program cuobjdump, for `kernels`
    #[arg(long, default_value = "cuobjdump")]
    cuobjdump: PathBuf,
    /// Rounds, of which the median counts
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Threads
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// Where the results go; otherwise a folder of today in benchmarks/runs
    #[arg(long)]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Study {
    /// Seconds of a product and of conjugate gradients with Jacobi
    Speed,
    /// Outcomes, iterations and bits of every preconditioner
    Outcomes,
    /// Registers, memory and occupancy of every kernel on NVIDIA's GPUs, by NVRTC and cuobjdump; needs no device
    Kernels,
}

/// Runs a study and writes its folder.
pub fn run(options: &Options) -> Result<(), Failure> {
    match options.study {
        Study::Speed => speed::run(options),
        Study::Outcomes => outcomes::run(options),
        Study::Kernels => kernels::run(options),
    }
}

/// By rows in `f64`, the order of operations that devices have too.
fn by_rows(method: Method, preconditioner: &str, threads: usize) -> Result<Solver, Failure> {
    let solver = Solver::new().method(method).preconditioner(preconditioner.parse()?);
    Ok(solver.layout(Layout::Rows).precision(Precision::F64).threads(threads).rtol(1e-7).max_iterations(2000))
}

/// b = A·1.
pub(crate) fn rhs(a: &Csr<f64>) -> Result<Vec<f64>, Failure> {
    let mut b = vec![0.0; a.nrows()];
    a.mul_vec(&vec![1.0; a.ncols()], &mut b)?;
    Ok(b)
}

/// A device and what it is called in tables.
pub(crate) struct Contestant {
    pub(crate) name: String,
    pub(crate) device: Device,
}

/// Every device that Krylith can run on, in these shapes.
pub(crate) fn contestants(
    shapes: &[KernelShape],
    reproducible: bool,
    timed: bool,
) -> Result<Vec<Contestant>, Failure> {
    let Devices { found, missing } = devices();
    let mut all = Vec::new();
    for info in found.iter().filter(|info| info.lacks().is_none()) {
        for &shape in shapes {
            let options =
                DeviceOptions { shape: Some(shape), reproducible, timed, ..DeviceOptions::default() };
            let selector: Selector = info.selector().parse()?;
            let driver = info.driver.split(',').next().unwrap_or_default();
            let name = format!("{driver}, {shape} shape");
            all.push(Contestant { name, device: Device::open(&selector, options)? });
        }
    }
    match all.is_empty() {
        true => Err(format!("no device: {missing:?}").into()),
        false => Ok(all),
    }
}

/// The middle one.
fn median(seconds: &mut [f64]) -> f64 {
    seconds.sort_by(f64::total_cmp);
    seconds[seconds.len() / 2]
}
