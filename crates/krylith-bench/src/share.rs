//! What sharing a factor gains: one-thread solves one after the other beside the same solves at the same time, in turns.
//!
//! The answers must have the same bits. The least of all rounds counts.

use crate::Failure;
use clap::Args;
use krylith::Solver;
use krylith::gallery::{Problem, random_vector};
use std::time::Instant;

#[derive(Args)]
pub struct Options {
    /// Problems, as `krylith gen` names them
    #[arg(default_value = "jump3d:60")]
    problems: Vec<String>,
    /// Solves
    #[arg(long, default_value_t = 4)]
    solves: usize,
    /// Threads that solve at the same time, each alone
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// Rounds
    #[arg(long, default_value_t = 5)]
    rounds: usize,
}

/// Prints a table.
pub fn run(options: &Options) -> Result<(), Failure> {
    println!("| problem | layout | one after the other, s | at the same time, s | throughput |");
    println!("|---|---|---|---|---|");
    for problem in &options.problems {
        let a = problem.parse::<Problem>()?.generate()?;
        let n = a.nrows();
        let b: Vec<f64> = random_vector(n * options.solves);
        let prepared = Solver::new().threads(1).prepare(&a)?;
        let (mut expected, mut found) = (vec![0.0; b.len()], vec![0.0; b.len()]);
        let (mut apart, mut together) = (f64::INFINITY, f64::INFINITY);
        let mut layout = String::new();
        for _ in 0..options.rounds {
            expected.fill(0.0);
            let started = Instant::now();
            for (b, x) in b.chunks(n).zip(expected.chunks_mut(n)) {
                layout = prepared.solve(&a, b, x)?.require_converged()?.layout.clone();
            }
            apart = apart.min(started.elapsed().as_secs_f64());
            found.fill(0.0);
            let started = Instant::now();
            at_the_same_time(options.threads, n, &b, &mut found, |b, x| {
                prepared.solve(&a, b, x).map_err(|error| error.to_string()).map(drop)
            })?;
            together = together.min(started.elapsed().as_secs_f64());
            if found != expected {
                return Err(format!("{problem}: the answers differ").into());
            }
        }
        let layout = layout.split(':').next().unwrap_or_default();
        println!("| {problem} | {layout} | {apart:.3} | {together:.3} | {:.2} x |", apart / together);
    }
    Ok(())
}

/// Each thread takes the columns of its share.
fn at_the_same_time(
    threads: usize,
    n: usize,
    b: &[f64],
    x: &mut [f64],
    solve: impl Fn(&[f64], &mut [f64]) -> Result<(), String> + Sync,
) -> Result<(), Failure> {
    let mut shares: Vec<Vec<(&[f64], &mut [f64])>> = (0..threads).map(|_| Vec::new()).collect();
    for (k, pair) in b.chunks(n).zip(x.chunks_mut(n)).enumerate() {
        shares[k % threads].push(pair);
    }
    std::thread::scope(|scope| {
        let solve = &solve;
        let running: Vec<_> = shares
            .into_iter()
            .map(|share| scope.spawn(move || share.into_iter().try_for_each(|(b, x)| solve(b, x))))
            .collect();
        running
            .into_iter()
            .try_for_each(|thread| thread.join().map_err(|_| "a thread panicked".to_string())?)
    })
    .map_err(Failure::from)
}
