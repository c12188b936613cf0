//! `auto` beside SciPy's `spsolve`, its `spilu` with GMRES, and PyAMG on every square matrix of a catalogue: who solves what, how fast, and
//! which system has an answer at all.
//!
//! Default options. The clock runs from the matrix in memory to x, analysis of the matrix and set-up included; contestants take turns,
//! the least of some rounds counts. An answer counts if its residual, recomputed in extended precision by the driver or by the library's
//! certificate, is at most 1e-8 ‖b‖. A performance profile (Dolan and Moré, *Mathematical Programming* 91, 2002) shows for each
//! contestant the share of matrices that it solves within a factor of the fastest one's seconds.

mod picture;
mod report;

use crate::Failure;
use crate::catalogue::{self, Entry};
use crate::rhs::{Choice, Rhs};
use crate::run::{Kept, Nothing, Output, Run};
use clap::Args;
use krylith::observe::Iteration;
use krylith::{Csr, Outcome, Report, Solver, io};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

#[derive(Args)]
pub struct Options {
    /// The folder with CATALOGUE.tsv
    folder: PathBuf,
    /// Python with numpy, scipy and pyamg
    #[arg(long)]
    python: PathBuf,
    /// Smallest matrix
    #[arg(long, default_value_t = 100)]
    least_rows: u64,
    /// Only files whose names contain this
    #[arg(long, default_value = "")]
    only: String,
    /// Seconds per solve at most
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Threads of Krylith; peers have one
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// Rounds; the least seconds count
    #[arg(long, default_value_t = 2)]
    rounds: usize,
    /// Right-hand sides
    #[arg(long, default_value = "random")]
    rhs: Choice,
    /// Keep every result here
    #[arg(long)]
    output: Option<PathBuf>,
    /// Draw the performance profile here, as SVG or PNG
    #[arg(long)]
    plot: Option<PathBuf>,
}

const RTOL: f64 = 1e-8;
/// Who runs against `auto`.
const PEERS: [&str; 4] = ["spsolve", "spilu", "pyamg-sa", "pyamg-rs"];
/// Who is asked whether there is an answer.
const REFERENCE: &str = "extended";

/// What a contestant did.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Attempt {
    #[serde(default)]
    seconds: Option<f64>,
    #[serde(default)]
    residual: Option<f64>,
    #[serde(default)]
    error: Option<String>,
}

impl Attempt {
    /// Its seconds if it has an answer.
    fn solved(&self) -> Option<f64> {
        self.seconds.filter(|_| self.residual.is_some_and(|residual| residual <= 1.001 * RTOL))
    }
}

/// All that was found for a matrix and a right-hand side.
#[derive(Debug, Serialize, Deserialize)]
struct Race {
    file: String,
    rhs: Rhs,
    rows: usize,
    entries: usize,
    outcome: String,
    /// The report says why there is no answer, or there is one.
    certified: bool,
    method: String,
    runs: BTreeMap<String, Attempt>,
}

impl Race {
    fn auto(&self) -> Option<f64> {
        self.runs["auto"].solved()
    }

    fn best_peer(&self) -> Option<f64> {
        PEERS.iter().filter_map(|&peer| self.runs[peer].solved()).min_by(f64::total_cmp)
    }

    fn name(&self) -> String {
        format!("{} ({})", self.file, self.rhs.name())
    }
}

pub fn run(options: &Options) -> Result<(), Failure> {
    let output = Output::file(options.output.as_deref());
    let mut run = Run::<Race>::begin(output, Nothing {}, options.rounds, &[])?;
    let entries = catalogue::read(&options.folder)?;
    let mut peers = Peers::start(options)?;
    let wanted = |entry: &&Entry| entry.n >= options.least_rows && entry.file.contains(&options.only);
    for entry in entries.iter().filter(wanted) {
        let a = io::read_matrix(options.folder.join(&entry.file))?;
        for &rhs in options.rhs.sides() {
            if a.nrows() == a.ncols() && !run.has(|race| race.file == entry.file && race.rhs == rhs) {
                run.add([peers.race(options, &entry.file, &a, rhs)?])?;
            }
        }
    }
    run.end()?;
    let Some(path) = &options.plot else { return Ok(()) };
    let contestants = ["auto"].into_iter().chain(PEERS);
    let seconds = |name: &str| run.rows.iter().map(|race| race.runs[name].solved()).collect();
    let curves = contestants.map(|name| (name, seconds(name))).collect();
    krylith_plot::save(path, (760, 520), &picture::Profile::new(curves))
}

impl Kept for Race {
    type Facts = Nothing;

    fn text(run: &Run<Race>) -> String {
        report::markdown(&run.rows)
    }
}

/// The Python process that runs everybody else.
struct Peers {
    child: Child,
    ask: ChildStdin,
    answers: BufReader<ChildStdout>,
    scratch: tempfile::TempDir,
}

impl Peers {
    fn start(options: &Options) -> Result<Peers, Failure> {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/peers/race.py");
        let mut child = Command::new(&options.python)
            .arg(script)
            .args([options.seconds.to_string(), RTOL.to_string()])
            .env("OPENBLAS_NUM_THREADS", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (Some(ask), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("Python has no pipes".into());
        };
        Ok(Peers { child, ask, answers: BufReader::new(answers), scratch: tempfile::tempdir()? })
    }

    fn race(&mut self, options: &Options, file: &str, a: &Csr<f64>, rhs: Rhs) -> Result<Race, Failure> {
        let b = &rhs.vector(a);
        let folder = self.scratch.path().to_owned();
        io::write_matrix(folder.join("A.npz"), a)?;
        io::write_vector(folder.join("b.npy"), b)?;
        let (first, report) = own(options, a, b)?;
        let mut runs = self.ask(&folder, PEERS.into_iter().chain([REFERENCE]))?;
        runs.insert("auto".into(), first);
        for _ in 1..options.rounds {
            let (again, _) = own(options, a, b)?;
            let fastest =
                PEERS.into_iter().filter_map(|peer| runs[peer].solved()).fold(f64::INFINITY, f64::min);
            // Who is far behind once is not asked again.
            let close = |peer: &&str| runs[*peer].solved().is_some_and(|seconds| seconds < 3.0 * fastest);
            let mut round = self.ask(&folder, PEERS.into_iter().filter(close).collect::<Vec<_>>())?;
            round.insert("auto".into(), again);
            for (name, run) in round {
                let least = runs.entry(name).or_default();
                least.seconds = least.seconds.into_iter().chain(run.seconds).min_by(f64::total_cmp);
            }
        }
        let race = Race {
            file: file.into(),
            rhs,
            rows: a.nrows(),
            entries: a.nnz(),
            outcome: report.outcome.name().into(),
            certified: certified(&report, a.nrows()),
            method: format!("{}+{}", report.solver, report.preconditioner),
            runs,
        };
        println!("{}", report::line(&race));
        Ok(race)
    }

    fn ask<'a>(
        &mut self,
        folder: &Path,
        names: impl IntoIterator<Item = &'a str>,
    ) -> Result<BTreeMap<String, Attempt>, Failure> {
        let folder = folder.to_str().ok_or("the temporary folder's name is not UTF-8")?;
        let names: Vec<&str> = names.into_iter().collect();
        writeln!(self.ask, "{folder}\t{}", names.join("\t"))?;
        let mut answer = String::new();
        match self.answers.read_line(&mut answer)? {
            0 => Err("Python ended".into()),
            _ => Ok(serde_json::from_str(&answer)?),
        }
    }
}

impl Drop for Peers {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `auto` once, everything from the matrix on under the clock.
fn own(options: &Options, a: &Csr<f64>, b: &[f64]) -> Result<(Attempt, Report), Failure> {
    let start = Instant::now();
    let end = start + Duration::from_secs(options.seconds);
    let mut x = vec![0.0; a.nrows()];
    let mut clock = |_: &Iteration<f64>| match Instant::now() > end {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    };
    let prepared = Solver::new().rtol(RTOL).threads(options.threads).prepare(a)?;
    let report = prepared.solve_observed(a, b, &mut x, &mut clock)?;
    let seconds = start.elapsed().as_secs_f64();
    let residual = (report.outcome == Outcome::Converged).then_some(report.relative_residual);
    Ok((Attempt { seconds: Some(seconds), residual, error: None }, report))
}

/// An answer, a proof that the system has none, or the least residual that numbers of this length have.
fn certified(report: &Report, rows: usize) -> bool {
    match report.outcome {
        Outcome::Converged | Outcome::Singular => true,
        Outcome::AttainableAccuracy => {
            report.backward_error.is_some_and(|error| error <= rows as f64 * f64::EPSILON)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_answers_are_solved() {
        let run = |seconds, residual| Attempt { seconds, residual, error: None };
        assert_eq!(run(Some(2.0), Some(1e-9)).solved(), Some(2.0));
        assert_eq!(run(Some(2.0), Some(1e-7)).solved(), None);
        assert_eq!(run(Some(2.0), None).solved(), None);
        assert_eq!(run(None, Some(1e-9)).solved(), None);
    }
}
