//! Ratios beside the paper's choice, `auto` and what `off` takes: wavefronts, entries, set-ups, iterations and seconds.
//!
//! Settings take turns in every round, and the least seconds count; rounds end early after [`BUDGET`] seconds, but not before the second. Solves that take less than [`LEAST_SECONDS`] without sparsification are not timed, only counted and
//! modelled. A speedup is the time without sparsification over the time with it.
//!
//! `auto` decides for each machine apart: for the models, and for the one that was measured (`--machine`) where seconds are. On one thread that is the reference.
//!
//! Models: an iteration takes `rate` per byte and `wavefront` per wavefront of both sweeps, and a set-up what [`Machine::set_up`] says of the entries
//! of the factor ([`krylith::plan::MANY_CORE`], [`krylith::plan::DEVICE`]); where `auto` makes a factor to decide, that is a set-up more. Sorting entries, counting wavefronts and attempts that fail have no price. They are models, and labelled so.

use super::protocol::{Asked, Protocol, Ran, Solving, Sweeps};
use super::record::{COUNTED, Case, Record, Setting, TIMED, Timing, Trial};
use super::{NAME, Options, definite};
use crate::Failure;
use crate::run::{Output, Run, table};
use krylith::gallery::Problem;
use krylith::matrix::Triangle;
use krylith::plan::{DEVICE, MANY_CORE, Machine, REFERENCE};
use krylith::schedule::{Schedule, Wavefronts};
use krylith::sparsify::Sparsification;
use krylith::{Csr, io};
use std::time::Instant;

/// Problems of the gallery whose coefficients vary; two are small enough for their condition numbers.
const PROBLEMS: [&str; 8] = [
    "circuit:500",
    "thermal:350",
    "fem2d:400",
    "jump3d:60",
    "apache:160x160x16",
    "pflow:40x40x14",
    "ecology:150",
    "thermal:150",
];
const QUICK: [&str; 2] = ["fem2d:12", "jump3d:6"];
/// What a clock says about less is noise.
const LEAST_SECONDS: f64 = 0.1;
/// For the rounds of a matrix on a machine.
const BUDGET: f64 = 6.0;

/// Runs the study and writes its folder.
pub fn run(options: &Options) -> Result<(), Failure> {
    let setting = Setting {
        protocol: options.protocol.words(options.precond.clone()),
        all_converge: options.protocol != Protocol::Ours,
        refused: Vec::new(),
    };
    let output = Output::folder(options.output.as_deref(), "spcg", NAME);
    let mut run: Record = Run::begin(output, setting, options.rounds(), &[])?;
    for source in sources(options)? {
        let is_refused = run.facts.refused.iter().any(|(name, _)| *name == source.name);
        if is_refused || run.has(|case| case.name == source.name) {
            continue;
        }
        eprintln!("{}", source.name);
        let a = match source.is_file {
            true => io::read_matrix(options.matrices.join(&source.name))?,
            false => source.name.parse::<Problem>()?.generate()?,
        };
        let case = match a.nnz() {
            nnz if nnz <= a.nrows() => Err("a diagonal has nothing to drop".into()),
            nnz if nnz > options.largest => Err(format!("more than {} entries", options.largest).into()),
            _ => study(options, (&source.name, &source.kind), &a),
        };
        match case {
            Ok(case) => run.add([case])?,
            Err(error) => {
                run.facts.refused.push((source.name, error.to_string()));
                run.keep()?;
            }
        }
    }
    run.end()
}

/// A matrix to be studied: a file of the catalogue or a problem of the gallery.
struct Source {
    name: String,
    kind: String,
    is_file: bool,
}

fn sources(options: &Options) -> Result<Vec<Source>, Failure> {
    // The paper's protocol ends after 1000 iterations, so that `ecology` may have the size of the paper's.
    let largest = if options.protocol == Protocol::Ours { "ecology:400" } else { "ecology" };
    let problems = match options.quick {
        true => QUICK.to_vec(),
        false => PROBLEMS.into_iter().chain([largest]).collect(),
    };
    let entries = if options.quick { Vec::new() } else { definite(&options.matrices)? };
    let files = entries.into_iter().map(|entry| Source { name: entry.file, kind: entry.kind, is_file: true });
    let gallery = problems.into_iter().map(|name| {
        let kind = format!("gallery: {}", name.split(':').next().unwrap_or(name));
        Source { name: name.into(), kind, is_file: false }
    });
    Ok(files.chain(gallery).collect())
}

/// Something to be timed on.
struct Measured {
    label: String,
    threads: usize,
    schedule: Schedule,
    /// That `auto` decides for.
    machine: Machine,
}

fn measured(options: &Options) -> Result<Vec<Measured>, Failure> {
    let mut all = Vec::new();
    for &threads in options.threads.iter().filter(|threads| **threads > 0) {
        let schedules = match threads {
            1 => &[(Schedule::Auto, "")][..],
            _ => &[
                (Schedule::Auto, ""),
                (Schedule::Levels, ", levels"),
                (Schedule::PointToPoint, ", point to point"),
            ],
        };
        let machine = if threads > 1 { options.machine()? } else { REFERENCE };
        all.extend(schedules.iter().map(|&(schedule, words)| Measured {
            label: format!("{}{words}", table::threads(threads)),
            threads,
            schedule,
            machine: machine.clone(),
        }));
    }
    Ok(all)
}

/// All settings on a matrix.
pub fn study(options: &Options, (name, kind): (&str, &str), a: &Csr<f64>) -> Result<Case, Failure> {
    let solving = options.protocol.for_matrix(options.precond.clone(), a)?;
    let counting =
        Counting { solving, a, wavefronts: Wavefronts::new(a.pattern(), Triangle::Lower)?.count() };
    let mut trials = Vec::new();
    for setting in TIMED.into_iter().chain(COUNTED) {
        let mut trial = counting.count(setting, &REFERENCE)?;
        trial.timings = counting.modelled(&trial, &[MANY_CORE, DEVICE]);
        trials.push(trial);
    }
    for machine in [MANY_CORE, DEVICE] {
        trials.push(counting.auto(&machine)?);
    }
    for measured in measured(options)? {
        time(options, &counting, &measured, &mut trials)?;
    }
    let fill = match counting.solving {
        Solving::Single(fill) => fill,
        Solving::Ours(_) => None,
    };
    let (name, kind) = (name.to_owned(), kind.to_owned());
    let (rows, entries, wavefronts) = (a.nrows(), a.nnz(), counting.wavefronts);
    Ok(Case { name, kind, rows, entries, wavefronts, fill, trials })
}

/// What is counted on a matrix.
struct Counting<'a> {
    solving: Solving,
    a: &'a Csr<f64>,
    wavefronts: usize,
}

impl Counting<'_> {
    /// A setting without timings.
    fn count(&self, setting: &str, machine: &Machine) -> Result<Trial, Failure> {
        let (sparsify, machine) = (setting.parse()?, machine.clone());
        let asked = Asked { sparsify, machine, threads: 1, schedule: Schedule::Auto };
        let Ran { found, left, sweeps, has_converged, iterations, residual, .. } =
            self.solving.run(self.a, &asked)?;
        let taken = found.as_ref().and_then(Sparsification::chosen).copied();
        let tried = found.as_ref().and_then(|found| found.candidates.last()).copied();
        Ok(Trial {
            setting: setting.to_owned(),
            decided_for: None,
            // To see what is small `auto` makes a factor of A, unless it refuses by rule.
            has_decided_by_factor: setting == "auto"
                && found.is_some_and(|found| !found.candidates.is_empty()),
            tried,
            taken,
            wavefronts: taken.map_or(self.wavefronts, |taken| taken.wavefronts),
            left,
            sweeps,
            has_converged,
            iterations,
            residual: Some(residual).filter(|residual| residual.is_finite()),
            timings: Vec::new(),
        })
    }

    /// `auto` as decided for a model.
    fn auto(&self, machine: &Machine) -> Result<Trial, Failure> {
        let mut trial = self.count("auto", machine)?;
        trial.decided_for = Some(machine.name.to_string());
        trial.timings = self.modelled(&trial, std::slice::from_ref(machine));
        Ok(trial)
    }

    fn modelled(&self, trial: &Trial, machines: &[Machine]) -> Vec<Timing> {
        let of = |machine: &Machine| {
            let (set_up, iteration) = self.solving.model(machine, self.a, &trial.sweeps);
            let whole = Sweeps { entries: self.a.nnz(), wavefronts: self.wavefronts };
            let decision = match trial.has_decided_by_factor {
                true => self.solving.model_set_up(machine, self.a, &whole),
                false => 0.0,
            };
            let (machine, set_up) = (machine.name.to_string(), set_up + decision);
            let total = set_up + trial.iterations as f64 * iteration;
            Timing { machine, is_modelled: true, set_up, iteration, total }
        };
        machines.iter().map(of).collect()
    }
}

/// Times the settings in turns, if `off` takes long enough.
fn time(
    options: &Options,
    counting: &Counting<'_>,
    measured: &Measured,
    trials: &mut Vec<Trial>,
) -> Result<(), Failure> {
    let Measured { label, threads, schedule, machine } = measured;
    let run = |setting: &str| -> Result<Timing, Failure> {
        let (machine, threads, schedule) = (machine.clone(), *threads, *schedule);
        let asked = Asked { sparsify: setting.parse()?, machine, threads, schedule };
        let Ran { set_up, solve, iterations, .. } = counting.solving.run(counting.a, &asked)?;
        let (iteration, total) = (solve / iterations.max(1) as f64, set_up + solve);
        Ok(Timing { machine: label.clone(), is_modelled: false, set_up, iteration, total })
    };
    // Of a solve without an answer only the seconds of an iteration would mean something.
    if !trials[0].has_converged || run("off")?.total < LEAST_SECONDS {
        return Ok(());
    }
    let name = Some(machine.name.to_string());
    let auto = match trials.iter().position(|trial| trial.setting == "auto" && trial.decided_for == name) {
        Some(place) => place,
        None => {
            let counted = counting.count("auto", machine)?;
            trials.push(Trial { decided_for: name, ..counted });
            trials.len() - 1
        }
    };
    let started = Instant::now();
    for round in 0..options.rounds() {
        if round > 1 && started.elapsed().as_secs_f64() > BUDGET {
            break;
        }
        for place in (0..TIMED.len()).chain([auto]) {
            let trial = &mut trials[place];
            let fresh = run(&trial.setting)?;
            match trial.timings.iter_mut().find(|timing| timing.machine == *label) {
                Some(known) => {
                    known.set_up = known.set_up.min(fresh.set_up);
                    known.iteration = known.iteration.min(fresh.iteration);
                    known.total = known.total.min(fresh.total);
                }
                None => trial.timings.push(fresh),
            }
        }
    }
    Ok(())
}
