//! Factored sparse approximate inverses, in six studies.
//!
//! `solves`: beside hypre's, adaptive beside its FSAI, static beside ParaSails, whole solves in one run. Powers, steps and thresholds of Krylith's are those
//! with which G has about as many entries as hypre's; `PEER_VERBOSE=1` in front of hypre's driver prints how many that are. Times and iterations as in
//! `compare`.
//!
//! The others repeat tables of Bernaschi, Bisson, Fantozzi & Janna 2016, doi:10.1137/15M1027826: `cholesky` its table 3, `powers` its table 1, `tables` its
//! tables 5 to 7 and figure 5. `applications` times products with G and its transpose beside the triad, `defaults` compares settings on problems of the
//! gallery.

mod applications;
mod cholesky;
mod defaults;
mod potrf;
mod powers;
mod spans;
mod tables;
mod tables_report;

use crate::Failure;
use crate::compare::{self, Fixed};
use crate::rhs::Choice;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Options of `krylith-bench fsai`.
#[derive(Args)]
pub struct Options {
    /// What is studied
    #[arg(long, value_enum, default_value = "solves")]
    study: Part,
    /// Problems of the gallery; those of the study unless given
    #[arg(long, value_delimiter = ',')]
    problems: Vec<String>,
    /// Numbers of threads or ranks; `cholesky` has one
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2])]
    threads: Vec<usize>,
    /// Rounds; the least time of each contestant counts
    #[arg(long, default_value_t = 3)]
    repetitions: usize,
    /// Small problems and one round, to see that a study runs; `solves`: two rounds
    #[arg(long)]
    quick: bool,
    /// Right-hand sides of `solves`; the others take A·1
    #[arg(long, default_value = "ones")]
    rhs: Choice,
    /// Preconditioners of Krylith in `solves`, with `;` between them
    #[arg(long, value_delimiter = ';', default_values = OWN)]
    own: Vec<String>,
    /// The drivers' folder; the one that `just bench-setup` fills, unless given
    #[arg(long)]
    peers: Option<PathBuf>,
    /// Keep the files that drivers read here; a temporary folder unless given
    #[arg(long)]
    work: Option<PathBuf>,
    /// Results go to this folder instead of benchmarks/runs/DATE-fsai, or DATE-fsai-STUDY
    #[arg(long)]
    output: Option<PathBuf>,
}

/// The studies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Whole solves beside hypre's FSAI and ParaSails
    Solves,
    /// Many small dense systems beside MKL's Cholesky
    Cholesky,
    /// Powers of the pattern of a matrix of elasticity
    Powers,
    /// Density, iterations and seconds on stand-ins for the paper's five matrices
    Tables,
    /// Applications beside the time of their bytes
    Applications,
    /// Settings beside each other
    Defaults,
}

const PROBLEMS: [&str; 4] = ["poisson2d:1000", "poisson3d:100", "hpcg:80", "jump3d:100"];
/// Those of as many entries as theirs, and ours without numbers.
const OWN: [&str; 4] = ["fsai(0.1,2,0.05)", "afsai(5,3,0.001,0)", "fsai", "afsai"];
/// The settings of both that their manuals begin with.
const HYPRE: [&str; 2] = ["cg+fsai:5:3:1e-3", "cg+parasails:0.1:1:0.05"];

/// Runs a study and writes its folder.
pub fn run(options: &Options) -> Result<(), Failure> {
    match options.study {
        Part::Solves => solves(options),
        Part::Cholesky => cholesky::run(options),
        Part::Powers => powers::run(options),
        Part::Tables => tables::run(options),
        Part::Applications => applications::run(options),
        Part::Defaults => defaults::run(options),
    }
}

impl Options {
    /// The problems that were asked for, or these.
    fn problems_or(&self, usual: &[&str]) -> Vec<String> {
        match self.problems.is_empty() {
            true => usual.iter().map(|&name| name.to_owned()).collect(),
            false => self.problems.clone(),
        }
    }

    /// Rounds: at least one, and one only where it is quick.
    fn rounds(&self) -> usize {
        if self.quick { 1 } else { self.repetitions.max(1) }
    }
}

fn solves(options: &Options) -> Result<(), Failure> {
    let own = || options.own.iter().map(|name| ("krylith", format!("--solver cg --precond {name}")));
    let hypre = || HYPRE.iter().map(|&config| ("hypre", config.to_owned()));
    let fixed = |spec: &String| Fixed { spec: spec.clone(), contestants: own().chain(hypre()).collect() };
    let problems = options.problems_or(&PROBLEMS);
    compare::run(&compare::Options {
        problems: Vec::new(),
        threads: options.threads.clone(),
        repetitions: options.repetitions,
        only: Vec::new(),
        own: Vec::new(),
        rhs: options.rhs,
        kernels_only: false,
        solves_only: true,
        quick: options.quick,
        time_limit: 300,
        max_iterations: 10_000,
        rtol: 1e-7,
        peers: options.peers.clone(),
        work: options.work.clone(),
        name: "fsai".into(),
        output: options.output.clone(),
        render: None,
        fixed: problems.iter().map(fixed).collect(),
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Typed {
        #[command(flatten)]
        options: Options,
    }

    /// Options as a command line gives them.
    pub fn options(words: &[&str]) -> Options {
        Typed::parse_from(["fsai"].iter().chain(words)).options
    }

    #[test]
    fn a_study_is_named() {
        assert_eq!(options(&[]).study, Part::Solves);
        let quick = options(&["--study", "powers", "--quick"]);
        assert_eq!((quick.study, quick.rounds()), (Part::Powers, 1));
        assert!(Typed::try_parse_from(["fsai", "--study", "lu"]).is_err());
    }
}
