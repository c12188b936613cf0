//! What a matrix of a known pattern saves: seconds of preparing from nothing beside those of `refactor`, in turns.
//!
//! The values change before every call, so that nothing is recognised as seen before. The least of all rounds counts.

use crate::Failure;
use clap::Args;
use krylith::Solver;
use krylith::gallery::Problem;
use krylith::solver::PrecondSpec;
use std::time::Instant;

#[derive(Args)]
pub struct Options {
    /// Problems, as `krylith gen` names them
    #[arg(default_value = "poisson3d:100")]
    problems: Vec<String>,
    /// Preconditioners, as `krylith solve` names them, apart by spaces
    #[arg(long, default_value = "ic0 ic(1) mic0")]
    precond: String,
    /// Numbers of threads
    #[arg(long, value_delimiter = ',', default_value = "1,2")]
    threads: Vec<usize>,
    /// Rounds
    #[arg(long, default_value_t = 5)]
    rounds: usize,
}

/// Prints a table.
pub fn run(options: &Options) -> Result<(), Failure> {
    println!("| problem | preconditioner | threads | prepare, s | refactor, s | refactor / prepare |");
    println!("|---|---|---|---|---|---|");
    for problem in &options.problems {
        let mut a = problem.parse::<Problem>()?.generate()?;
        for name in options.precond.split_whitespace() {
            let preconditioner: PrecondSpec = name.parse()?;
            for &threads in &options.threads {
                let solver = Solver::new().threads(threads).preconditioner(preconditioner);
                let mut prepared = solver.prepare(&a)?;
                let (mut anew, mut again) = (f64::INFINITY, f64::INFINITY);
                for _ in 0..options.rounds {
                    a.values_mut().iter_mut().for_each(|v| *v *= 1.001);
                    let started = Instant::now();
                    drop(solver.prepare(&a)?);
                    anew = anew.min(started.elapsed().as_secs_f64());
                    a.values_mut().iter_mut().for_each(|v| *v *= 1.001);
                    let started = Instant::now();
                    prepared.refactor(&a)?;
                    again = again.min(started.elapsed().as_secs_f64());
                }
                let ratio = again / anew;
                println!("| {problem} | {name} | {threads} | {anew:.3} | {again:.3} | {ratio:.2} |");
            }
        }
    }
    Ok(())
}
