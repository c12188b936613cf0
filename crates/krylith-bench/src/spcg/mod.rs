//! Wavefront-aware sparsification (Ma, Ahmad, Cheshmi, Sundar & Hall 2025).
//!
//! `solves`: every ratio, the paper's choice and the best of them, measured and modelled. `check`: Algorithm 2 beside an independent one.

mod check;
mod pictures;
mod report;
mod study;

use crate::Failure;
use crate::catalogue::{self, Entry};
use clap::{Args, ValueEnum};
use krylith::PrecondSpec;
use krylith::plan::Machine;
use std::path::{Path, PathBuf};

/// Options of `krylith-bench spcg`.
#[derive(Args)]
pub struct Options {
    /// The folder with CATALOGUE.tsv
    #[arg(long)]
    matrices: PathBuf,
    /// What is studied
    #[arg(long, value_enum, default_value = "solves")]
    study: Part,
    /// The preconditioner that is made from the sparser matrix
    #[arg(long, default_value = "ic0")]
    precond: PrecondSpec,
    /// The machine that `auto` decides for: a name or a file that `calibrate` writes
    #[arg(long, default_value = "many-core")]
    machine: String,
    /// Numbers of threads
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2])]
    threads: Vec<usize>,
    /// Rounds; the least seconds count
    #[arg(long, default_value_t = 3)]
    repetitions: usize,
    /// Two small problems and one round, to see that it runs
    #[arg(long)]
    quick: bool,
    /// Results go to this folder instead of benchmarks/runs/DATE-spcg
    #[arg(long)]
    output: Option<PathBuf>,
    /// Python for `check`; nothing else is needed
    #[arg(long, default_value = "python3")]
    python: PathBuf,
}

/// The studies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Ratios, the paper's choice and oracles
    Solves,
    /// Algorithm 2 beside an independent one
    Check,
}

/// Runs a study.
pub fn run(options: &Options) -> Result<(), Failure> {
    match options.study {
        Part::Solves => study::run(options),
        Part::Check => check::run(options),
    }
}

impl Options {
    fn machine(&self) -> Result<Machine, Failure> {
        match Machine::preset(&self.machine) {
            Some(machine) => Ok(machine),
            None => Ok(serde_json::from_str(&std::fs::read_to_string(&self.machine)?)?),
        }
    }

    /// Rounds: at least one, and one only where it is quick.
    fn rounds(&self) -> usize {
        if self.quick { 1 } else { self.repetitions.max(1) }
    }
}

/// The fewest rows of a matrix, as in the paper.
const LEAST_ROWS: u64 = 1000;

/// The positive definite matrices of a catalogue that are large enough: those in its folder `spd`.
fn definite(folder: &Path) -> Result<Vec<Entry>, Failure> {
    let entries = catalogue::parse(&std::fs::read_to_string(folder.join("CATALOGUE.tsv"))?)?;
    let suits = |entry: &Entry| entry.n >= LEAST_ROWS && entry.file.starts_with("spd/");
    Ok(entries.into_iter().filter(suits).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::folder::tests::head;
    use clap::Parser;
    use krylith::gallery::Problem;

    #[derive(Parser)]
    struct Typed {
        #[command(flatten)]
        options: Options,
    }

    #[test]
    fn a_small_study_has_its_tables() {
        let options = Typed::parse_from(["spcg", "--matrices", ".", "--quick"]).options;
        let cases = ["fem2d:12", "jump3d:6"].map(|name| {
            let a = name.parse::<Problem>().unwrap().generate().unwrap();
            study::study(&options, name.into(), &a).unwrap()
        });
        for case in &cases {
            assert!(case.trials.iter().all(|trial| trial.has_converged && trial.measured.is_empty()));
            assert!(
                case.trials
                    .iter()
                    .is_sorted_by(|a, b| !["1", "5", "10"].contains(&b.setting.as_str()) || a.left >= b.left)
            );
        }
        let record = study::Record {
            head: head(),
            preconditioner: "ic0".into(),
            threads: vec![1],
            cases: cases.into(),
            refused: Vec::new(),
        };
        let text = report::markdown(&record);
        assert!(text.contains("## device (modelled), end to end\n\n2 matrices."), "{text}");
        assert!(text.contains("Of 2 matrices 2 converge"), "{text}");
    }
}
