//! Preconditioners that learn while solving.

mod online;
mod safe;
mod sequence;
mod storages;

use crate::Failure;
use crate::catalogue;
use clap::{Args, ValueEnum};
use krylith::gallery::Problem;
use krylith::{Csr, io};
use std::path::{Path, PathBuf};

#[derive(Args)]
pub struct Options {
    /// What is studied
    #[arg(long, default_value = "online")]
    study: Study,
    /// Problems as `krylith gen` names them, or matrices of the catalogue such as spd/nos3; each study has its own
    problems: Vec<String>,
    /// A folder with CATALOGUE.tsv
    #[arg(long)]
    catalogue: Option<PathBuf>,
    /// The fewest rows of a matrix of the catalogue
    #[arg(long)]
    least: Option<usize>,
    /// The most entries of a matrix of the catalogue
    #[arg(long)]
    most_entries: Option<usize>,
    /// Solves of a sequence
    #[arg(long, default_value_t = 11)]
    solves: usize,
    /// The size of the first steps, for `online`
    #[arg(long)]
    alpha: Option<f64>,
    /// How often a round goes through its pairs, for `online`
    #[arg(long)]
    passes: Option<usize>,
    /// Pairs of a solve, for `online`
    #[arg(long)]
    pairs: Option<usize>,
    /// The preconditioner to begin with, for `online`
    #[arg(long, default_value = "ic0")]
    precond: String,
    /// Threads
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// Where the results go; otherwise a folder of today in benchmarks/runs
    #[arg(long)]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Study {
    /// Iterations of a sequence of solves that learns
    Online,
    /// Whether `learned` ever needs more iterations than Jacobi
    Safe,
    /// Seconds of a long sequence that learns, and of the best fixed factor
    Sequence,
    /// Milliseconds of an iteration in every storage
    Storages,
}

/// Runs a study.
pub fn run(options: &Options) -> Result<(), Failure> {
    match options.study {
        Study::Online => online::run(options),
        Study::Safe => safe::run(options),
        Study::Sequence => sequence::run(options),
        Study::Storages => storages::run(options),
    }
}

/// A problem of the gallery, or a matrix of the catalogue.
fn matrix(catalogue: Option<&Path>, name: &str) -> Result<Csr<f64>, Failure> {
    match (name.contains('/'), catalogue) {
        (true, Some(folder)) => Ok(io::read_matrix(folder.join(format!("{name}.mtx.xz")))?),
        (true, None) => Err(format!("{name}: --catalogue is needed").into()),
        (false, _) => Ok(name.parse::<Problem>()?.generate()?),
    }
}

/// Right-hand side `k` of a sequence, counted from 1: a stretch of one long sequence of random numbers, each with a phase of its own.
fn rhs(n: usize, k: usize) -> Vec<f64> {
    let numbers = krylith::gallery::random_vector(n + k);
    (0..n).map(|i| (numbers[i + k] * (k as f64 * 12.9898)).sin()).collect()
}

/// The problems that were named, or the matrices of a folder of the catalogue with so many rows.
fn names(options: &Options, folder: &str, least: usize) -> Result<Vec<String>, Failure> {
    let Some(catalogue) = options.catalogue.as_deref().filter(|_| options.problems.is_empty()) else {
        return Ok(options.problems.clone());
    };
    let entries = catalogue::read(catalogue)?;
    let least = options.least.unwrap_or(least) as u64;
    let most = options.most_entries.unwrap_or(usize::MAX) as u64;
    let wanted = entries.iter().filter(|e| e.file.starts_with(folder) && e.n >= least && e.nnz <= most);
    Ok(wanted.map(|e| e.file.trim_end_matches(".mtx.xz").to_string()).collect())
}
