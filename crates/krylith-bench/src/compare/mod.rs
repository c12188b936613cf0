//! Krylith beside other systems: whole solves and single operations, all contestants in one run.
//!
//! b = A·1, or with `--rhs` a random one, and x₀ = 0, until ‖r‖₂ / ‖r₀‖₂ < 1e-7 in the unpreconditioned norm, for everyone. Every contestant runs in a process
//! of its own and prints one line (`peers/README.md`); contestants take turns within a round, and rounds are repeated. The
//! residual of every answer is recomputed by its driver, and checked here. The triad runs in the same rounds as the single
//! operations that are compared to it.

mod command;
mod contestants;
mod once;
mod plot;
mod record;
mod report;

pub use command::{CommandOptions, once as command_once};
pub use once::{OnceOptions, run as once};

use crate::Failure;
use crate::driver::{Line, default_folder, limited, outcome, system};
use crate::rhs::{Choice, Rhs};
use crate::run::{Drawn, Kept, Output, Run};
use clap::{Args, FromArgMatches};
pub(crate) use contestants::{Call, Contestant};
use krylith::gallery::Problem;
use krylith::{Csr, io};
use record::{Entry, Matrix, Mode, Record, Setting};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Options of `krylith-bench compare`.
#[derive(Args)]
pub struct Options {
    /// Problems: gallery problems, or matrix files
    #[arg(long, value_delimiter = ',')]
    pub(crate) problems: Vec<String>,
    /// Numbers of threads or ranks
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2])]
    pub(crate) threads: Vec<usize>,
    /// Rounds; the least time of each contestant counts
    #[arg(long, default_value_t = 5)]
    pub(crate) repetitions: usize,
    /// Only these peers, such as `petsc,krylith`
    #[arg(long, value_delimiter = ',')]
    pub(crate) only: Vec<String>,
    /// Krylith's configurations, such as `cg+ic0`, instead of the usual ones; `every`: all preconditioners that suit the matrix
    #[arg(long, value_delimiter = ',')]
    pub(crate) own: Vec<String>,
    /// Right-hand sides of whole solves; a problem with the random one has an `r` behind its name
    #[arg(long, default_value = "ones")]
    pub(crate) rhs: Choice,
    /// No whole solves
    #[arg(long, conflicts_with = "solves_only")]
    pub(crate) kernels_only: bool,
    /// No single operations and no triad
    #[arg(long)]
    pub(crate) solves_only: bool,
    /// For tuning: two rounds, two problems unless some are named, and no triad on three arrays of 1 GB
    #[arg(long)]
    pub(crate) quick: bool,
    /// Seconds a run of a contestant at most
    #[arg(long, default_value_t = 300)]
    pub(crate) time_limit: u64,
    /// Iterations at most
    #[arg(long, default_value_t = 10_000)]
    pub(crate) max_iterations: usize,
    /// Tolerance
    #[arg(long, default_value_t = 1e-7)]
    pub(crate) rtol: f64,
    /// The drivers' folder; the one that `just bench-setup` fills, unless given
    #[arg(long)]
    pub(crate) peers: Option<PathBuf>,
    /// Keep the matrix files here; a temporary folder unless given
    #[arg(long)]
    pub(crate) work: Option<PathBuf>,
    /// Name of the run: its results go to benchmarks/runs/DATE-NAME
    #[arg(long, default_value = "compare")]
    pub(crate) name: String,
    /// Results go to this folder instead
    #[arg(long)]
    pub(crate) output: Option<PathBuf>,
    /// Write tables and plots of a finished run again, from its compare.json.zst in this folder
    #[arg(long)]
    pub(crate) render: Option<PathBuf>,
    /// Problems with the contestants that solve each, in place of all the others; what other studies ask for.
    #[arg(skip)]
    pub(crate) fixed: Vec<Fixed>,
}

impl Default for Options {
    /// What an empty command line asks for.
    fn default() -> Self {
        let command = Self::augment_args(clap::Command::new("compare"));
        Self::from_arg_matches(&command.get_matches_from(["compare"])).expect("every option has a default")
    }
}

/// A problem of the gallery and who solves it.
#[derive(Debug, Clone)]
pub(crate) struct Fixed {
    pub spec: String,
    /// Peers with their configurations. Those of Krylith are options of `krylith solve`.
    pub contestants: Vec<(&'static str, String)>,
}

const PROBLEMS: [&str; 5] = ["poisson2d:1000", "poisson3d:100", "hpcg:80", "convection3d:100", "jump3d:100"];
const QUICK: [&str; 2] = ["poisson3d:100", "hpcg:80"];
/// The name of the record.
const NAME: &str = "compare";
/// Bytes of the triad that no cache holds.
const BIG_TRIAD: u64 = 3 << 30;

/// Runs the comparison and writes its folder.
pub fn run(options: &Options) -> Result<(), Failure> {
    if let Some(folder) = &options.render {
        return Record::again(Output::at(folder, NAME));
    }
    if let Some(name) = options.only.iter().find(|name| !contestants::names().any(|n| n == *name)) {
        let known: Vec<&str> = contestants::names().collect();
        return Err(format!("there is no peer `{name}`; peers: {}", known.join(", ")).into());
    }
    let temporary = tempfile::tempdir()?;
    let work = options.work.as_deref().unwrap_or(temporary.path());
    std::fs::create_dir_all(work)?;
    let peers = options.peers.clone().map_or_else(default_folder, Ok)?;
    let (names, absent) = contestants::present(&peers, &options.only);
    for gone in &absent {
        eprintln!("absent: {} ({})", gone.peer, gone.install);
    }
    let matrices = prepare(&problems(options), options.rhs, work)?;
    let output = Output::folder(options.output.as_deref(), &options.name, NAME);
    let setting = Setting { rtol: options.rtol, matrices, absent };
    let record = Run::begin(output, setting, repetitions(options), &[])?;
    let mut comparison = Comparison { options, work, peers: &peers, names, record };
    comparison.run()?;
    comparison.record.end()
}

impl Kept for Entry {
    type Facts = Setting;

    fn text(record: &Record) -> String {
        report::markdown(record)
    }

    fn pictures(record: &Record, folder: &Path) -> Result<Vec<Drawn>, Failure> {
        plot::draw(record, folder)
    }

    fn renewed(record: Value) -> Value {
        record::renewed(record)
    }
}

fn repetitions(options: &Options) -> usize {
    if options.quick { options.repetitions.min(2) } else { options.repetitions.max(1) }
}

fn problems(options: &Options) -> Vec<(String, String)> {
    if !options.fixed.is_empty() {
        let named = |(k, fixed): (usize, &Fixed)| (format!("A{}", k + 1), fixed.spec.clone());
        return options.fixed.iter().enumerate().map(named).collect();
    }
    let listed = |list: &[&str]| list.iter().map(|&p| p.to_owned()).collect();
    let specs: Vec<String> = match (options.problems.is_empty(), options.quick) {
        (false, _) => options.problems.clone(),
        (true, true) => listed(&QUICK),
        (true, false) => listed(&PROBLEMS),
    };
    // The usual problems keep their names whatever is left out.
    let name = |(k, spec): (usize, &String)| match PROBLEMS.iter().position(|p| p == spec) {
        Some(k) => format!("P{}", k + 1),
        None => format!("Q{}", k + 1),
    };
    specs.iter().enumerate().map(|(k, spec)| (name((k, spec)), spec.clone())).collect()
}

/// Generates or reads every problem and writes the file that all drivers read.
fn prepare(problems: &[(String, String)], rhs: Choice, work: &Path) -> Result<Vec<Matrix>, Failure> {
    let mut matrices = Vec::new();
    for (name, spec) in problems {
        eprintln!("{name}: {spec}");
        let a: Csr<f64> = match Path::new(spec).exists() {
            true => io::read_matrix(spec)?,
            false => spec.parse::<Problem>()?.generate()?,
        };
        a.pattern().require_square()?;
        let definite = a.symmetry().symmetric && a.diagonal()?.iter().all(|&d| d > 0.0);
        let shown = Path::new(spec).file_name().map_or(spec.clone(), |f| f.to_string_lossy().into_owned());
        for &rhs in rhs.sides() {
            let name = if rhs == Rhs::Ones { name.clone() } else { format!("{name}r") };
            let b = (rhs != Rhs::Ones).then(|| rhs.vector(&a));
            system::write(&work.join(format!("{name}.csr")), &a, b.as_deref())?;
            matrices.push(Matrix {
                name,
                spec: shown.clone(),
                rows: a.nrows() as u64,
                nnz: a.nnz() as u64,
                symmetric: definite,
                rhs,
            });
        }
    }
    Ok(matrices)
}

struct Comparison<'a> {
    options: &'a Options,
    work: &'a Path,
    peers: &'a Path,
    names: Vec<&'static str>,
    record: Record,
}

/// One place in a round.
enum Turn {
    Contestant(Contestant, bool),
    /// Bytes of the three arrays.
    Triad(u64, Mode),
}

impl Comparison<'_> {
    fn run(&mut self) -> Result<(), Failure> {
        for &threads in &self.options.threads {
            for (k, matrix) in self.record.facts.matrices.clone().into_iter().enumerate() {
                if self.record.has(|entry| entry.problem == matrix.name && entry.threads == threads) {
                    continue;
                }
                // The matrices of a problem, one a right-hand side, follow each other.
                let (problem, side) = (k / self.sides(), k % self.sides());
                let turns = match self.options.fixed.get(problem) {
                    Some(fixed) => self.fixed_turns(fixed),
                    None => self.turns(&matrix, threads, k == 0, side > 0),
                };
                self.rounds(&turns, &matrix, threads)?;
            }
        }
        Ok(())
    }

    /// Right-hand sides of each problem.
    fn sides(&self) -> usize {
        self.options.rhs.sides().len()
    }

    /// Who takes turns on a matrix. Single operations are those of the matrix, whatever b is: they are measured once.
    fn turns(&self, matrix: &Matrix, threads: usize, first: bool, measured: bool) -> Vec<Turn> {
        let list = |kernels| {
            let list = contestants::contestants(&self.names, &self.options.own, matrix, kernels, threads);
            list.into_iter().map(move |c| Turn::Contestant(c, kernels))
        };
        let mut turns = Vec::new();
        if !self.options.solves_only && !measured {
            turns.push(Turn::Triad(record::spmv_bytes(matrix.rows, matrix.nnz), Mode::Triad));
            if first && !self.options.quick {
                turns.push(Turn::Triad(BIG_TRIAD, Mode::BigTriad));
            }
            turns.extend(list(true));
        }
        if !self.options.kernels_only {
            turns.extend(list(false));
        }
        turns
    }

    /// Those who are there of a problem's own contestants.
    fn fixed_turns(&self, fixed: &Fixed) -> Vec<Turn> {
        let present = fixed.contestants.iter().filter(|(peer, _)| self.names.contains(peer));
        let named = present.filter_map(|(peer, config)| Contestant::named(peer, config));
        named.map(|contestant| Turn::Contestant(contestant, false)).collect()
    }

    fn rounds(&mut self, turns: &[Turn], matrix: &Matrix, threads: usize) -> Result<(), Failure> {
        let mut entries: Vec<Entry> = turns.iter().map(|turn| turn.entry(matrix, threads)).collect();
        for round in 1..=self.record.head.rounds {
            for (turn, entry) in turns.iter().zip(&mut entries) {
                // Who failed once is not asked again.
                if entry.failure.is_some() {
                    continue;
                }
                match self.take(turn, matrix, threads)? {
                    Ok(line) => {
                        if entry.mode == Mode::Solve {
                            let shortfall = || line.shortfall(self.record.facts.rtol);
                            entry.failure = matrix.mismatch(&line).or_else(shortfall);
                        }
                        entry.runs.push(line);
                    }
                    Err(reason) => entry.failure = Some(reason),
                }
                eprintln!("{} {threads} threads, round {round}: {}", matrix.name, described(entry));
            }
        }
        self.record.add(entries)
    }

    /// Runs a driver once; the inner error is the contestant's failure.
    fn take(&self, turn: &Turn, matrix: &Matrix, threads: usize) -> Result<Result<Line, String>, Failure> {
        let limit = self.options.time_limit;
        let mut command = match turn {
            Turn::Triad(bytes, _) => {
                let mut command = limited(limit);
                command.arg(std::env::current_exe()?).arg("compare-triad").arg(bytes.to_string());
                command.args(["--threads", &threads.to_string()]);
                command
            }
            Turn::Contestant(contestant, kernels) => contestant.command(&Call {
                peers: self.peers,
                file: &self.work.join(format!("{}.csr", matrix.name)),
                spec: &matrix.spec,
                rhs: matrix.rhs,
                kernels: *kernels,
                threads,
                rtol: self.record.facts.rtol,
                max_iterations: self.options.max_iterations,
                limit,
            })?,
        };
        Ok(outcome(&mut command, limit)?.map_err(|reason| self.without_paths(&reason)))
    }

    /// A reason without the folders of this machine.
    fn without_paths(&self, reason: &str) -> String {
        let text = |p: &Path| format!("{}/", p.display());
        reason.replace(&text(self.work), "").replace(&text(self.peers), "")
    }
}

impl Turn {
    fn entry(&self, matrix: &Matrix, threads: usize) -> Entry {
        let (mode, peer, config) = match self {
            Turn::Contestant(c, true) => (Mode::Kernels, c.peer.clone(), c.config.clone()),
            Turn::Contestant(c, false) => (Mode::Solve, c.peer.clone(), c.config.clone()),
            Turn::Triad(bytes, mode) => (*mode, "triad".into(), format!("{:.0} MB", *bytes as f64 / 1e6)),
        };
        Entry { mode, problem: matrix.name.clone(), threads, peer, config, runs: Vec::new(), failure: None }
    }
}

/// A line of progress.
fn described(entry: &Entry) -> String {
    let title = entry.title();
    match (&entry.failure, entry.mode, entry.runs.last()) {
        (Some(reason), ..) => format!("{title}: {reason}"),
        (None, Mode::Solve, Some(line)) => format!(
            "{title}: {:.3} + {:.3} s, {} iterations",
            line.setup_seconds.unwrap_or(f64::NAN),
            line.solve_seconds.unwrap_or(f64::NAN),
            line.iterations.unwrap_or(0)
        ),
        _ => format!("{title}: measured"),
    }
}
