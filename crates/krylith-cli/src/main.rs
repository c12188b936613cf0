//! The `krylith` command: generate, inspect, draw and convert sparse matrices.
//!
//! Results go to standard output, progress and errors to standard error. Exit status: 0 done, 2 wrong usage or input.

mod args;
mod convert;
mod generate;
mod info;
mod input;
mod plot;
mod progress;
mod report;
mod spy;

use args::{Arguments, Command};
use clap::Parser;
use std::error::Error;
use std::process::ExitCode;

/// Any error: what the user did or gave.
type Failure = Box<dyn Error>;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("krylith: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), Failure> {
    if let Some(threads) = arguments.threads {
        rayon::ThreadPoolBuilder::new().num_threads(threads.get()).build_global()?;
    }
    match &arguments.command {
        Command::Gen(options) => generate::run(options),
        Command::Info(options) => info::run(options),
        Command::Spy(options) => spy::run(options),
        Command::Convert(options) => convert::run(options),
    }
}
