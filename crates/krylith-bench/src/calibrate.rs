//! The figures of this machine, of its threads or of a device, for predicting what members of the registry cost (`krylith solve --machine FILE`).

use crate::Failure;
use clap::Args;
use krylith::calibrate::{Calibration, OnThreads, calibrate};
use krylith_gpu::{Device, DeviceOptions, Selector};
use std::path::PathBuf;

#[derive(Args)]
pub struct Options {
    /// The name of the machine, which plans will show
    #[arg(long, default_value = "mine")]
    name: String,
    /// Threads to measure with; plans for the machine then weigh what sweeps wait for
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Measure a device, such as opencl:0, in the place of threads
    #[arg(long)]
    device: Option<Selector>,
    /// Rounds; the least seconds count
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Write the machine here; to standard output if not given
    #[arg(long)]
    output: Option<PathBuf>,
}

pub fn run(options: &Options) -> Result<(), Failure> {
    // Facts are collected on this pool.
    rayon::ThreadPoolBuilder::new().num_threads(options.threads.max(1)).build_global()?;
    let calibration = Calibration::new(&options.name).threads(options.threads).rounds(options.rounds);
    let mut progress = |line: &str| eprintln!("{line}");
    let machine = match &options.device {
        None => calibrate(&OnThreads, &calibration, &mut progress)?,
        Some(selector) => {
            let device = Device::open(selector, DeviceOptions::default())?;
            calibrate(&device, &calibration, &mut progress)?
        }
    };
    let text = serde_json::to_string_pretty(&machine)? + "\n";
    match &options.output {
        Some(path) => std::fs::write(path, text)?,
        None => print!("{text}"),
    }
    Ok(())
}
