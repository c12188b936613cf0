//! What handing an operation to the threads costs: the time of an operation on a vector of one entry.

use crate::Failure;
use clap::Args;
use krylith::space::{Space, Threads};
use std::time::Instant;

#[derive(Args)]
pub struct Options {
    /// Numbers of threads
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2])]
    threads: Vec<usize>,
    /// Repetitions; the least time counts
    #[arg(long, default_value_t = 20)]
    runs: usize,
}

/// Operations timed at once.
const OPERATIONS: u32 = 20_000;

pub fn run(options: &Options) -> Result<(), Failure> {
    println!("| threads | nanoseconds an operation |");
    println!("|---|---|");
    for &threads in &options.threads {
        let space = Threads::<f64>::new(threads);
        let (x, mut y) = (vec![1.0], vec![1.0]);
        let mut least = f64::INFINITY;
        for _ in 0..options.runs {
            let started = Instant::now();
            for _ in 0..OPERATIONS {
                space.axpby(0.5, &x, 0.5, &mut y)?;
            }
            least = least.min(started.elapsed().as_secs_f64() / f64::from(OPERATIONS));
        }
        println!("| {threads} | {:.0} |", least * 1e9);
    }
    Ok(())
}
