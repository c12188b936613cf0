//! Factored sparse approximate inverses beside hypre's: adaptive beside its FSAI, static beside ParaSails, whole solves in one run.
//!
//! Powers, steps and thresholds of Krylith's are those with which G has about as many entries as hypre's; `PEER_VERBOSE=1` in front of hypre's driver
//! prints how many that are. Times and iterations as in `compare`.

use crate::Failure;
use crate::compare::{self, Fixed};
use crate::rhs::Choice;
use clap::Args;
use std::path::PathBuf;

/// Options of `krylith-bench fsai`.
#[derive(Args)]
pub struct Options {
    /// Problems of the gallery
    #[arg(long, value_delimiter = ',', default_values = PROBLEMS)]
    problems: Vec<String>,
    /// Numbers of threads or ranks
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2])]
    threads: Vec<usize>,
    /// Rounds; the least time of each contestant counts
    #[arg(long, default_value_t = 3)]
    repetitions: usize,
    /// Right-hand sides
    #[arg(long, default_value = "ones")]
    rhs: Choice,
    /// Preconditioners of Krylith, with `;` between them
    #[arg(long, value_delimiter = ';', default_values = OWN)]
    own: Vec<String>,
    /// The drivers' folder; the one that `just bench-setup` fills, unless given
    #[arg(long)]
    peers: Option<PathBuf>,
    /// Keep the matrix files here; a temporary folder unless given
    #[arg(long)]
    work: Option<PathBuf>,
    /// Results go to this folder instead of benchmarks/runs/DATE-fsai
    #[arg(long)]
    output: Option<PathBuf>,
}

const PROBLEMS: [&str; 4] = ["poisson2d:1000", "poisson3d:100", "hpcg:80", "jump3d:100"];
const OWN: [&str; 2] = ["fsai", "afsai"];
/// The settings of both that their manuals begin with.
const HYPRE: [&str; 2] = ["cg+fsai:5:3:1e-3", "cg+parasails:0.1:1:0.05"];

/// Runs the solves and writes their folder.
pub fn run(options: &Options) -> Result<(), Failure> {
    let own = || options.own.iter().map(|name| ("krylith", format!("--solver cg --precond {name}")));
    let hypre = || HYPRE.iter().map(|&config| ("hypre", config.to_owned()));
    let fixed = |spec: &String| Fixed { spec: spec.clone(), contestants: own().chain(hypre()).collect() };
    compare::run(&compare::Options {
        problems: Vec::new(),
        threads: options.threads.clone(),
        repetitions: options.repetitions,
        only: Vec::new(),
        own: Vec::new(),
        rhs: options.rhs,
        kernels_only: false,
        solves_only: true,
        quick: false,
        time_limit: 300,
        max_iterations: 10_000,
        rtol: 1e-7,
        peers: options.peers.clone(),
        work: options.work.clone(),
        name: "fsai".into(),
        output: options.output.clone(),
        render: None,
        fixed: options.problems.iter().map(fixed).collect(),
    })
}
