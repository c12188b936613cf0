//! Every ratio beside the paper's choice, what `off` takes and the best of them: wavefronts, entries, set-ups, iterations and seconds.
//!
//! CG with random right-hand sides, x₀ = 0, a residual of 1e-8. Settings take turns in every round, and the least seconds count. Solves that take less than
//! [`LEAST_SECONDS`] without sparsification are not timed, only counted and modelled. A speedup is the time without sparsification over the time with it; of a solve
//! that ends without an answer it is that of the time until then.
//!
//! `auto` decides for the machine that is named, `many-core` unless another is.
//!
//! Models: an iteration takes `rate` per byte and `wavefront` per wavefront of both sweeps, and a set-up what [`Machine::set_up`] says of the entries
//! that are left ([`krylith::plan::MANY_CORE`], [`krylith::plan::DEVICE`]). They are models, and labelled so.

use super::report::markdown;
use super::{Options, definite};
use crate::Failure;
use crate::folder::{self, Head};
use krylith::gallery::{Problem, random_vector};
use krylith::matrix::Triangle;
use krylith::plan::{Applied, DEVICE, MANY_CORE, Machine, StorageKind, Work};
use krylith::schedule::Wavefronts;
use krylith::solver::Precision;
use krylith::{Csr, Method, Outcome, PrecondSpec, Solver, io};
use serde::Serialize;

/// Problems of the gallery whose coefficients vary.
const PROBLEMS: [&str; 6] =
    ["circuit:500", "thermal:350", "fem2d:400", "jump3d:60", "apache:160x160x16", "pflow:40x40x14"];
const QUICK: [&str; 2] = ["fem2d:12", "jump3d:6"];
/// Without sparsification first.
pub const SETTINGS: [&str; 6] = ["off", "1", "5", "10", "paper", "auto"];
/// The ratios that the oracle of the paper chooses from.
pub const RATIOS: [&str; 3] = ["1", "5", "10"];
/// What a clock says about less is noise.
const LEAST_SECONDS: f64 = 0.1;
const MAX_ITERATIONS: usize = 5000;

#[derive(Debug, Serialize)]
pub struct Record {
    pub head: Head,
    pub preconditioner: String,
    pub threads: Vec<usize>,
    pub cases: Vec<Case>,
    /// Matrices that the preconditioner cannot be made from, and why.
    pub refused: Vec<(String, String)>,
}

/// A matrix.
#[derive(Debug, Serialize)]
pub struct Case {
    pub name: String,
    pub rows: usize,
    pub entries: usize,
    /// As many as there are settings.
    pub trials: Vec<Trial>,
}

/// A setting on a matrix.
#[derive(Debug, Clone, Serialize)]
pub struct Trial {
    pub setting: String,
    /// What was dropped of the lower triangle, in percent; of the paper's choice too.
    pub percent: f64,
    pub wavefronts: usize,
    /// Entries that are left.
    pub left: usize,
    pub has_converged: bool,
    pub iterations: usize,
    pub measured: Vec<Timing>,
    pub modelled: Vec<Timing>,
}

/// Seconds on some machine.
#[derive(Debug, Clone, Serialize)]
pub struct Timing {
    /// `1 thread`, or the name of a model.
    pub machine: String,
    pub set_up: f64,
    pub iteration: f64,
    pub total: f64,
}

/// Runs the study and writes its folder.
pub fn run(options: &Options) -> Result<(), Failure> {
    let head = Head::of_run(options.rounds(), &[])?;
    let folder = folder::of_results(options.output.as_deref(), &head, "spcg")?;
    let (preconditioner, threads) = (options.precond.to_string(), options.threads.clone());
    let mut record = Record { head, preconditioner, threads, cases: Vec::new(), refused: Vec::new() };
    let mut sources: Vec<(String, Source)> = Vec::new();
    if !options.quick {
        let entries = definite(&options.matrices)?;
        sources.extend(entries.into_iter().map(|entry| (entry.file.clone(), Source::File(entry.file))));
    }
    let problems: &[&str] = if options.quick { &QUICK } else { &PROBLEMS };
    sources.extend(problems.iter().map(|&name| (name.to_owned(), Source::Gallery(name))));
    for (name, source) in sources {
        let a = match source {
            Source::File(file) => io::read_matrix(options.matrices.join(file))?,
            Source::Gallery(name) => name.parse::<Problem>()?.generate()?,
        };
        // A diagonal has nothing to drop.
        if a.nnz() > a.nrows() {
            eprintln!("{name}");
            match study(options, name.clone(), &a) {
                Ok(case) => record.cases.push(case),
                Err(error) => record.refused.push((name, error.to_string())),
            }
            folder::write(&folder, "spcg", &record, &markdown(&record))?;
        }
    }
    super::pictures::write(&folder, &record)?;
    println!("{}\nwritten to {}", markdown(&record), folder.display());
    Ok(())
}

enum Source {
    File(String),
    Gallery(&'static str),
}

/// All settings on a matrix.
pub fn study(options: &Options, name: String, a: &Csr<f64>) -> Result<Case, Failure> {
    let b: Vec<f64> = random_vector(a.nrows());
    let mut trials = Vec::new();
    for setting in SETTINGS {
        trials.push(count(options, a, &b, setting)?);
    }
    for &threads in &options.threads {
        let machine = folder::counted(threads);
        for round in 0..options.rounds() {
            for trial in &mut trials {
                let Timed { set_up, iteration, total } = time(options, a, &b, &trial.setting, threads)?;
                let fresh = Timing { machine: machine.clone(), set_up, iteration, total };
                match trial.measured.last_mut() {
                    Some(known) if round > 0 => {
                        known.set_up = known.set_up.min(set_up);
                        known.iteration = known.iteration.min(iteration);
                        known.total = known.total.min(total);
                    }
                    _ => trial.measured.push(fresh),
                }
            }
            if round == 0 && trials[0].measured.last().is_some_and(|known| known.total < LEAST_SECONDS) {
                trials.iter_mut().for_each(|trial| drop(trial.measured.pop()));
                break;
            }
        }
    }
    Ok(Case { name, rows: a.nrows(), entries: a.nnz(), trials })
}

fn solver(options: &Options, setting: &str, threads: usize) -> Result<Solver, Failure> {
    let solver = Solver::new().method(Method::Cg).preconditioner(options.precond).threads(threads);
    let solver = solver.max_iterations(MAX_ITERATIONS).precision(Precision::F64).machine(options.machine()?);
    Ok(solver.sparsify(setting.parse()?))
}

/// Iterations and the models.
fn count(options: &Options, a: &Csr<f64>, b: &[f64], setting: &str) -> Result<Trial, Failure> {
    let threads = options.threads.iter().copied().max().unwrap_or(1);
    let report = solver(options, setting, threads)?.solve(a, b)?.report;
    let before = Wavefronts::new(a.pattern(), Triangle::Lower)?.count();
    let taken = report.plan.sparsification.as_ref().and_then(|found| found.chosen());
    let (percent, wavefronts, left) = match taken {
        Some(taken) => (taken.percent, taken.wavefronts, a.nnz() - taken.dropped),
        None => (0.0, before, a.nnz()),
    };
    // To see what is small `auto` makes a factor of A, unless it refuses by rule.
    let sees = setting == "auto"
        && report.plan.sparsification.as_ref().is_some_and(|found| !found.candidates.is_empty());
    let modelled = [MANY_CORE, DEVICE].map(|machine| {
        let (set_up, iteration) = modelled(&machine, a, options.precond, (left, wavefronts));
        let decision = modelled_set_up(&machine, a, a.nnz());
        let set_up = set_up + if sees { decision } else { 0.0 };
        let total = set_up + report.iterations as f64 * iteration;
        Timing { machine: machine.name.to_string(), set_up, iteration, total }
    });
    Ok(Trial {
        setting: setting.to_owned(),
        percent,
        wavefronts,
        left,
        has_converged: report.outcome == Outcome::Converged,
        iterations: report.iterations,
        measured: Vec::new(),
        modelled: modelled.to_vec(),
    })
}

/// Seconds of a set-up and of an iteration, as a model has them: rows, and no fill.
fn modelled(
    machine: &Machine,
    a: &Csr<f64>,
    kind: PrecondSpec,
    (left, wavefronts): (usize, usize),
) -> (f64, f64) {
    let symmetric = kind.info().symmetric;
    let work = Work {
        method: Method::Cg,
        storage: StorageKind::Rows,
        precision: Precision::F64,
        rows: a.nrows(),
        entries: a.nnz(),
        swept: (left + if symmetric { a.nrows() } else { 0 }) as f64,
        applied: Applied::Sweeps { wavefronts: wavefronts as f64 },
        without_product: false,
        constant: false,
        constant_factor: false,
    };
    (modelled_set_up(machine, a, left), 1e-9 * machine.iteration(&work))
}

fn modelled_set_up(machine: &Machine, a: &Csr<f64>, left: usize) -> f64 {
    1e-9 * machine.set_up(StorageKind::Rows, (a.nrows(), a.nnz()), left as f64, 1.0)
}

struct Timed {
    set_up: f64,
    iteration: f64,
    total: f64,
}

fn time(options: &Options, a: &Csr<f64>, b: &[f64], setting: &str, threads: usize) -> Result<Timed, Failure> {
    let report = solver(options, setting, threads)?.solve(a, b)?.report;
    let set_up = report.seconds.analyze + report.seconds.factor;
    let solve = report.seconds.solve;
    Ok(Timed { set_up, iteration: solve / report.iterations.max(1) as f64, total: set_up + solve })
}
