//! The `krylith` command: solve sparse linear systems; generate, inspect, draw and convert sparse matrices.
//!
//! Results go to standard output, progress and errors to standard error. Exit status: 0 done (solve: converged), 2 wrong usage
//! or input, 3 not converged, 130 interrupted.

mod args;
mod convert;
mod devices;
mod explain;
mod failure;
mod generate;
mod info;
mod input;
mod interrupt;
mod orderings;
mod outputs;
mod place;
mod plot;
mod progress;
mod report;
mod residual_plot;
mod rhs;
mod solve;
mod solve_report;
mod spy;
mod trade;
mod train;

use args::{Arguments, Command};
use clap::Parser;
use krylith::space::most_threads;
use report::{complain, printed};
use std::error::Error;
use std::io::Write;
use std::process::ExitCode;

/// Any error: what the user did or gave.
type Failure = Box<dyn Error>;

fn main() -> ExitCode {
    let ended = match Arguments::try_parse() {
        Ok(arguments) => run(&arguments),
        Err(reply) => answer(&reply),
    };
    ended.unwrap_or_else(|error| {
        complain(error);
        ExitCode::from(2)
    })
}

/// Prints the help or the version that was asked for, or what is wrong with the arguments.
fn answer(reply: &clap::Error) -> Result<ExitCode, Failure> {
    if reply.use_stderr() {
        // Where standard error is full or closed, the exit status has to do.
        let _ = reply.print();
        return Ok(ExitCode::from(2));
    }
    printed(reply.print().and_then(|()| std::io::stdout().flush()))?;
    Ok(ExitCode::SUCCESS)
}

fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    if let Some(threads) = arguments.threads {
        let threads = threads.get().min(most_threads());
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
        pool.build_global().map_err(|error| {
            let threads = report::counted(threads, "thread");
            format!("{threads} cannot be started: {error}; ask for fewer with --threads")
        })?;
    }
    match &arguments.command {
        Command::Solve(options) => return solve::run(options, arguments.threads),
        Command::Info(options) => info::run(options)?,
        Command::Gen(options) => generate::run(options)?,
        Command::Convert(options) => convert::run(options)?,
        Command::Spy(options) => spy::run(options)?,
        Command::Train(options) => return train::run(options, arguments.threads),
        Command::Devices(options) => devices::run(options)?,
    }
    Ok(ExitCode::SUCCESS)
}
