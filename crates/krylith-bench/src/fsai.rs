//! Whole solves with factored sparse approximate inverses beside hypre's: adaptive beside its FSAI, static beside ParaSails.
//!
//! Powers, steps and thresholds of Krylith's are those with which G has about as many entries as hypre's; `PEER_VERBOSE=1` in front of
//! hypre's driver prints how many that are. `compare` does the work.

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
    /// Problems of the gallery; the usual four unless given
    #[arg(long, value_delimiter = ',')]
    problems: Vec<String>,
    /// Numbers of threads or ranks
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2])]
    threads: Vec<usize>,
    /// Rounds; the least time of each contestant counts
    #[arg(long, default_value_t = 3)]
    repetitions: usize,
    /// Two rounds
    #[arg(long)]
    quick: bool,
    /// Right-hand sides
    #[arg(long, default_value = "ones")]
    rhs: Choice,
    /// Preconditioners of Krylith, with `;` between them
    #[arg(long, value_delimiter = ';', default_values = OWN)]
    own: Vec<String>,
    /// The drivers' folder; the one that `just bench-setup` fills, unless given
    #[arg(long)]
    peers: Option<PathBuf>,
    /// Keep the files that drivers read here; a temporary folder unless given
    #[arg(long)]
    work: Option<PathBuf>,
    /// Results go to this folder instead of benchmarks/runs/DATE-fsai
    #[arg(long)]
    output: Option<PathBuf>,
}

/// The studies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Whole solves beside hypre's FSAI and ParaSails
    Solves,
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
    }
}

fn solves(options: &Options) -> Result<(), Failure> {
    compare::run(&compare::Options {
        threads: options.threads.clone(),
        repetitions: options.repetitions,
        rhs: options.rhs,
        solves_only: true,
        quick: options.quick,
        peers: options.peers.clone(),
        work: options.work.clone(),
        name: "fsai".into(),
        output: options.output.clone(),
        fixed: fixed(options),
        ..compare::Options::default()
    })
}

/// The problems, each with everyone who solves it.
fn fixed(options: &Options) -> Vec<Fixed> {
    let own = || options.own.iter().map(|name| ("krylith", format!("--solver cg --precond {name}")));
    let hypre = || HYPRE.iter().map(|&config| ("hypre", config.to_owned()));
    let problems = match options.problems.is_empty() {
        true => PROBLEMS.map(String::from).to_vec(),
        false => options.problems.clone(),
    };
    problems.into_iter().map(|spec| Fixed { spec, contestants: own().chain(hypre()).collect() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Typed {
        #[command(flatten)]
        options: Options,
    }

    #[test]
    fn every_problem_has_ours_and_hypre_s() {
        let options = Typed::parse_from(["fsai", "--study", "solves", "--problems", "jump3d:9"]).options;
        let fixed = fixed(&options);
        assert_eq!((fixed.len(), fixed[0].spec.as_str()), (1, "jump3d:9"));
        let first = ("krylith", "--solver cg --precond fsai(0.1,2,0.05)".to_owned());
        assert_eq!(fixed[0].contestants[0], first);
        assert_eq!(fixed[0].contestants.len(), OWN.len() + HYPRE.len());
        assert!(Typed::try_parse_from(["fsai", "--study", "lu"]).is_err());
    }
}
