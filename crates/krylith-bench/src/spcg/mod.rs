//! Wavefront-aware sparsification (Ma, Ahmad, Cheshmi, Sundar & Hall 2025).
//!
//! `solves`: every ratio, the paper's choice, `auto` and the best of them, measured and modelled, by our protocol or the paper's.
//! `report`: its tables and pictures again. `check`: Algorithm 2 beside an independent one.

mod check;
mod pictures;
mod protocol;
mod record;
mod report;
mod speedup;
mod study;

use crate::Failure;
use crate::catalogue::{self, Entry};
use crate::run::{Drawn, Kept, Output, Run};
use clap::{Args, ValueEnum};
use krylith::PrecondSpec;
use krylith::plan::{Machine, Machines};
use protocol::Protocol;
use record::{Case, Record, Setting};
use serde_json::Value;
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
    /// How systems are solved
    #[arg(long, value_enum, default_value = "ours")]
    protocol: Protocol,
    /// The preconditioner of our protocol: ic0 or ilu0
    #[arg(long, default_value = "ic0")]
    precond: PrecondSpec,
    /// The machine that `auto` decides for where several threads are timed: a name or a file that `calibrate` writes
    #[arg(long, default_value = "many-core")]
    machine: String,
    /// Matrices with more entries are left out
    #[arg(long, default_value_t = usize::MAX)]
    largest: usize,
    /// Numbers of threads that solves are timed on; 0 for none
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2])]
    threads: Vec<usize>,
    /// Rounds at most; the least seconds count
    #[arg(long, default_value_t = 9)]
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
    /// Tables and pictures of a run again, from the figures in the folder of --output
    Report,
    /// Algorithm 2 beside an independent one
    Check,
}

/// Runs a study.
pub fn run(options: &Options) -> Result<(), Failure> {
    match options.study {
        Part::Solves => study::run(options),
        Part::Report => again(options),
        Part::Check => check::run(options),
    }
}

/// The name of the record.
const NAME: &str = "spcg";

fn again(options: &Options) -> Result<(), Failure> {
    let folder = options.output.as_deref().ok_or("--output is the folder with the figures, spcg.json.zst")?;
    Record::again(Output::at(folder, NAME))
}

impl Kept for Case {
    type Facts = Setting;

    fn text(run: &Run<Case>) -> String {
        report::markdown(run)
    }

    fn pictures(run: &Run<Case>, folder: &Path) -> Result<Vec<Drawn>, Failure> {
        pictures::draw(run, folder)
    }

    fn renewed(record: Value) -> Value {
        record::renewed(record)
    }
}

impl Options {
    fn machine(&self) -> Result<Machine, Failure> {
        match Machine::preset(&self.machine) {
            Some(machine) => Ok(machine),
            None => {
                let profile: Machines = serde_json::from_str(&std::fs::read_to_string(&self.machine)?)?;
                Ok(profile.machine_for(None).ok_or("the file has no figures of threads")?)
            }
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
    let entries = catalogue::read(folder)?;
    let suits = |entry: &Entry| entry.n >= LEAST_ROWS && entry.file.starts_with("spd/");
    Ok(entries.into_iter().filter(suits).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::tests::run;
    use clap::Parser;
    use krylith::gallery::Problem;

    #[derive(Parser)]
    struct Typed {
        #[command(flatten)]
        options: Options,
    }

    fn small(protocol: &str) -> String {
        let options =
            Typed::parse_from(["spcg", "--matrices", ".", "--quick", "--protocol", protocol]).options;
        let cases = ["fem2d:12", "jump3d:6"].map(|name| {
            let a = name.parse::<Problem>().unwrap().generate().unwrap();
            study::study(&options, (name, "test"), &a).unwrap()
        });
        for case in &cases {
            // Too small to be timed.
            assert!(case.trials.iter().flat_map(|trial| &trial.timings).all(|timing| timing.is_modelled));
            let left =
                ["off", "0.5", "1", "5", "10", "15", "20", "50"].map(|s| case.trial(s, "").unwrap().left);
            assert!(left.is_sorted_by(|a, b| a >= b), "{left:?}");
            assert!(case.off().has_converged);
            // The recurrence in f32 goes on falling where the residual does not.
            let bound = if protocol == "ours" { 0.0..=1e-8 } else { 1e-9..=1e-3 };
            assert!(bound.contains(&case.off().residual.unwrap()), "{:?}", case.off().residual);
        }
        let setting = Setting { protocol: protocol.to_owned(), all_converge: false, refused: Vec::new() };
        Case::text(&run(setting, cases.into()))
    }

    #[test]
    fn a_small_study_has_its_tables() {
        let text = small("ours");
        for part in
            ["## device (modelled), end to end\n\n2 matrices.", "Of 2 matrices 2 converge", "| test | 2 |"]
        {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    /// In `f32`, without and with fill.
    #[test]
    fn the_paper_s_protocol_runs() {
        for protocol in ["paper", "paper-fill"] {
            let text = small(protocol);
            assert!(text.contains("Of 2 matrices 2 converge"), "{text}");
        }
    }
}
