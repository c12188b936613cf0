//! `krylith solve`: an answer, checked; a report for people and for programs.

use crate::Failure;
use crate::args::{Input, Solve, Structured, is_standard};
use crate::explain;
use crate::failure;
use crate::input::{Loaded, load, read_vector};
use crate::interrupt::{INTERRUPTED, Phase};
use crate::outputs::{self, Output};
use crate::place::{Place, Ready};
use crate::plot;
use crate::progress::{ResidualBar, spinner};
use crate::report::{complain, print, print_aside, print_vector, write_json};
use crate::residual_plot;
use crate::rhs::{self, RightHandSide};
use crate::solve_report;
use krylith::matrix::Triangle;
use krylith::observe::Iteration;
use krylith::schedule::Wavefronts;
use krylith::{Method, NullSpace, Outcome, Report, SetupError, SolveError, Solver, io};
use serde_json::{Value, json};
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

pub fn run(options: &Solve, threads: Option<NonZeroUsize>) -> Result<ExitCode, Failure> {
    check_streams(options)?;
    check_outputs(options)?;
    options.plot.as_deref().map_or(Ok(()), plot::check_ending)?;
    options.x.as_deref().filter(|x| !is_standard(x)).map_or(Ok(()), io::check_vector_name)?;
    let plan = options.plan.as_deref().map(explain::read).transpose()?;
    // Before the matrix is read: what is missing shows at once.
    let place = Place::open(options)?;
    let known = Arc::new(Mutex::new(json!({ "source": options.input.name() })));
    let phase = listen(options, &known)?;
    let started = Instant::now();
    let loaded = load(&options.input)?;
    *known.lock().unwrap_or_else(PoisonError::into_inner) = failure::matrix(options, &loaded.matrix);
    // No right-hand side is read or made for a matrix that cannot be solved with.
    if let Err(error) = loaded.matrix.pattern().require_square() {
        return failed(options, &loaded, "setup_failed", &SetupError::from(error).into());
    }
    let mut solver = solver(options, threads, &place)?;
    if let Some(plan) = &plan {
        solver = solver.with_plan(plan);
    }
    let source = options.precond_input().map(|input| load_source(&input)).transpose()?;
    let source_or_a = source.as_ref().map_or(&loaded.matrix, |source| &source.matrix);
    if options.explain {
        return match place.plan(solver, &loaded.matrix, source_or_a) {
            Ok(plan) => {
                explain::explain(options, &plan, &loaded, source.as_ref()).map(|()| ExitCode::SUCCESS)
            }
            Err(error) => failed(options, &loaded, "setup_failed", &error),
        };
    }
    let rhs = RightHandSide::new(options, &loaded.matrix)?;
    let read = started.elapsed().as_secs_f64();
    let preparing = spinner("analyzing and factoring");
    let prepared = place.prepare(solver, &loaded.matrix, source_or_a);
    drop(preparing);
    let mut x = vec![0.0; loaded.matrix.ncols()];
    let report = match prepared {
        Ok(mut prepared) => {
            prepared.warnings().iter().for_each(|warning| complain(format_args!("warning: {warning}")));
            iterate(options, &mut prepared, &loaded, &rhs.values, &mut x, &phase)
        }
        Err(error) => return failed(options, &loaded, "setup_failed", &error),
    };
    let total = started.elapsed().as_secs_f64();
    let source = source.as_ref();
    let done = Done { options, loaded: &loaded, source, rhs: &rhs, read, total, place: &place };
    match report {
        Ok(report) if done.write_all(&x, &report) => Ok(status(&report)),
        Ok(_) => Ok(ExitCode::from(2)),
        Err(error) => failed(options, &loaded, "solve_failed", &error),
    }
}

/// The matrix of the preconditioner. The library calls every matrix with a number that is not finite A.
fn load_source(input: &Input) -> Result<Loaded, Failure> {
    let loaded = load(input)?;
    let not_finite = (0..loaded.matrix.nrows()).find_map(|row| {
        let (columns, values) = loaded.matrix.row(row);
        columns
            .iter()
            .zip(values)
            .find(|(_, value)| !value.is_finite())
            .map(|(column, value)| (row, column, value))
    });
    match not_finite {
        None => Ok(loaded),
        Some((row, column, value)) => Err(format!(
            "--precond-matrix {} has {value} in row {row}, column {column} (both counted from 0); every number must be finite",
            loaded.name
        )
        .into()),
    }
}

/// The exit status of an answer that was written.
fn status(report: &Report) -> ExitCode {
    match report.outcome {
        _ if report.is_answer() => ExitCode::SUCCESS,
        Outcome::Interrupted => ExitCode::from(INTERRUPTED),
        _ => ExitCode::from(3),
    }
}

/// Reports a solve that could not be done. There is no answer to write.
fn failed(options: &Solve, loaded: &Loaded, outcome: &str, error: &SolveError) -> Result<ExitCode, Failure> {
    complain(failure::message(options, error));
    if let Some(path) = &options.json {
        write_json(path, &failure::report(options, &loaded.matrix, outcome, error))?;
    }
    Ok(ExitCode::from(2))
}

/// An error where two things would come from, or go to, one stream.
fn check_streams(options: &Solve) -> Result<(), Failure> {
    let standard = |path: &Option<PathBuf>| path.as_deref().is_some_and(is_standard);
    let null_spaces = options.null_space.iter().map(|name| ("--null-space", is_standard(Path::new(name))));
    let inputs = [
        ("the matrix", options.input.is_standard()),
        ("-b", standard(&options.b)),
        ("--precond-matrix", options.precond_input().is_some_and(|input| input.is_standard())),
    ];
    let mut from_standard = inputs.into_iter().chain(null_spaces).filter(|(_, standard)| *standard);
    if let (Some((first, _)), Some((second, _))) = (from_standard.next(), from_standard.next()) {
        return Err(format!(
            "{first} and {second} cannot both be read from standard input; give one of them a file"
        )
        .into());
    }
    if standard(&options.x) && standard(&options.json) {
        return Err("-x and --json cannot both be written to standard output; give one of them a file".into());
    }
    Ok(())
}

fn check_outputs(options: &Solve) -> Result<(), Failure> {
    let x = options.x.as_deref().map(|path| Output::moved("-x", path));
    let plot = options.plot.as_deref().map(|path| Output::in_place("--plot", path));
    let json = options.json.as_deref().map(|path| Output::in_place("--json", path));
    let mut inputs = options.input.file();
    inputs.extend(options.b.as_deref().filter(|b| !is_standard(b)));
    inputs.extend(options.plan.as_deref());
    let source = options.precond_input();
    inputs.extend(source.iter().flat_map(Input::file));
    outputs::check(&Vec::from_iter([x, plot, json].into_iter().flatten()), &inputs)
}

/// Ctrl-C ends a solve with its best answer, anything before and a solve that takes too long to end at once. `known` is the matrix as far as it
/// is known.
fn listen(options: &Solve, known: &Arc<Mutex<Value>>) -> Result<Phase, Failure> {
    let (name, report) = (options.input.name().to_owned(), failure::interrupted(options));
    let (known, path) = (Arc::clone(known), options.json.clone().filter(|_| !options.explain));
    Phase::listen(None, move || {
        complain(format_args!("{name}: {}", failure::NO_ANSWER));
        if let Some(path) = &path {
            let mut report = report.clone();
            report["matrix"] = known.lock().unwrap_or_else(PoisonError::into_inner).clone();
            write_json(path, &report).unwrap_or_else(complain);
        }
    })
}

/// The options in the library's words.
fn solver(options: &Solve, threads: Option<NonZeroUsize>, place: &Place) -> Result<Solver, Failure> {
    let method = match options.solver {
        Method::Gmres(_) => Method::Gmres(options.restart.get()),
        Method::Fgmres(_) => Method::Fgmres(options.restart.get()),
        other => other,
    };
    let layout = if options.structured == Structured::Off && options.layout == "auto" {
        "slices"
    } else {
        &options.layout
    };
    let mut solver = Solver::new()
        .method(method)
        .preconditioner(options.precond.clone())
        .reorder(options.reorder)
        .shift(options.shift)
        .profile(options.profile)
        .expect_solves(options.expect_solves.get())
        .expect_refactors(options.expect_refactors)
        .rtol(options.rtol)
        .atol(options.atol)
        .max_iterations(options.max_iterations);
    for (name, value) in [
        ("schedule", options.schedule.as_str()),
        ("layout", layout),
        ("precision", &options.precision),
        ("matching", &options.matching),
        ("recovery", &options.recovery),
    ] {
        solver = solver.set(name, value)?;
    }
    if let Some(sparsify) = options.sparsify {
        solver = solver.sparsify(sparsify);
    }
    if let Some(threads) = threads {
        solver = solver.threads(threads.get());
    }
    if let Some(gigabytes) = options.input.limits.max_memory {
        solver = solver.max_memory((gigabytes * 1e9) as u64);
    }
    solver = solver.null_space(null_space(options)?);
    if let Some(path) = &options.machine {
        let (device, file) = (place.device_name(), path.display());
        match explain::read_machine(path, device)? {
            Some(machine) => solver = solver.machine(machine),
            // Threads in the place of a device are no reason not to solve.
            None if place.choice().is_some() && device.is_none() => {
                complain(format_args!(
                    "warning: {file} has no figures of threads; the reference's are taken"
                ));
            }
            None => {
                let place = device.map_or("threads".into(), |device| format!("the device {device}"));
                let measures = explain::MEASURES;
                return Err(format!("{file} has no figures of {place}; `{measures}` measures them").into());
            }
        }
    }
    Ok(solver)
}

/// The null space that was asked for: a name, or vectors in files.
fn null_space(options: &Solve) -> Result<NullSpace, Failure> {
    let names: Vec<&str> = options.null_space.iter().map(String::as_str).collect();
    match names[..] {
        ["auto"] => Ok(NullSpace::Auto),
        ["none"] => Ok(NullSpace::Ignore),
        ["constant"] => Ok(NullSpace::Constant),
        _ => {
            let read = |name: &&str| read_vector(Path::new(name), &options.input.read_options());
            Ok(NullSpace::vectors(names.iter().map(read).collect::<Result<Vec<_>, _>>()?))
        }
    }
}

/// Solves, with a progress bar and an ear for Ctrl-C; x is the last iterate.
fn iterate(
    options: &Solve,
    prepared: &mut Ready,
    loaded: &Loaded,
    b: &[f64],
    x: &mut [f64],
    phase: &Phase,
) -> Result<Report, SolveError> {
    let mut bar = ResidualBar::new(options.rtol);
    phase.run();
    let mut observer = |i: &Iteration<f64>| {
        bar.at(i.index, i.residual_norm / i.rhs_norm);
        if phase.is_ending() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let report = prepared.solve_observed(&loaded.matrix, b, x, &mut observer);
    phase.write();
    report
}

/// What a report needs besides the library's.
pub struct Done<'a> {
    pub options: &'a Solve,
    pub loaded: &'a Loaded,
    /// The matrix of the preconditioner, where that is not A.
    pub source: Option<&'a Loaded>,
    pub rhs: &'a RightHandSide,
    /// Seconds of reading, and of everything.
    pub read: f64,
    pub total: f64,
    /// Where it was solved.
    pub place: &'a Place,
}

impl Done<'_> {
    /// Writes every output, also after one of them failed: an answer that took long is not lost to a full disk elsewhere.
    /// Whether all of them were written.
    fn write_all(&self, x: &[f64], report: &Report) -> bool {
        let options = self.options;
        let mut all = true;
        let mut keep = |written: Result<(), Failure>| {
            if let Err(error) = written {
                complain(error);
                all = false;
            }
        };
        let standard = |path: &Option<PathBuf>| path.as_deref().is_some_and(is_standard);
        match &options.x {
            Some(path) if is_standard(path) => keep(print_vector(x)),
            Some(path) => keep(io::write_vector(path, x).map_err(Failure::from)),
            None => {}
        }
        if let Some(path) = &options.plot {
            keep(residual_plot::residuals(path, &self.loaded.name, report, options.rtol));
        }
        if let Some(path) = &options.json {
            keep(self.json(report).and_then(|value| write_json(path, &value)));
        }
        match (standard(&options.json), standard(&options.x)) {
            (true, _) => {}
            (false, true) => keep(print_aside(&solve_report::text(self, report))),
            (false, false) => keep(print(&solve_report::text(self, report))),
        }
        all
    }

    /// What speaks against the right-hand side or the method that was asked for.
    pub fn warnings(&self, report: &Report) -> Vec<String> {
        self.rhs.warning.map(str::to_owned).into_iter().chain(report.plan.warnings.clone()).collect()
    }

    fn json(&self, report: &Report) -> Result<Value, Failure> {
        let a = &self.loaded.matrix;
        let wavefronts = |triangle| Wavefronts::new(a.pattern(), triangle).map(|w| w.count());
        let mut value = serde_json::to_value(report)?;
        value["matrix"] = json!({
            "source": self.loaded.name,
            "rows": a.nrows(),
            "nnz": a.nnz(),
            "symmetric": a.symmetry().symmetric,
            "asymmetry": a.asymmetry(),
        });
        value["preconditioner_matrix"] = json!(self.source.map(|source| &source.name));
        value["rhs"] = json!(rhs::name(self.options));
        value["warnings"] = json!(self.warnings(report));
        value["wavefronts"] =
            json!({ "lower": wavefronts(Triangle::Lower)?, "upper": wavefronts(Triangle::Upper)? });
        value["device_choice"] = json!(self.place.choice());
        value["seconds"]["read"] = json!(self.read);
        value["seconds"]["total"] = json!(self.total);
        Ok(value)
    }
}
