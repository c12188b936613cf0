//! `krylith solve`: an answer, checked; a report for people and for programs.

use crate::Failure;
use crate::args::{Division, Matching, Numbers, Order, Solve, Structured, Switch};
use crate::explain;
use crate::failure;
use crate::input::{Loaded, load};
use crate::outputs::{self, Output};
use crate::plot;
use crate::progress::{ResidualBar, spinner};
use crate::report::{bytes, complain, count, print, write_json};
use crate::rhs::{self, RightHandSide};
use krylith::matrix::Triangle;
use krylith::observe::Iteration;
use krylith::schedule::{Schedule, Wavefronts};
use krylith::solver::{Layout, MatchingMode, Method, Precision, Prepared};
use krylith::space::TeamStatistics;
use krylith::{Csr, Outcome, Report, SetupError, SolveError, Solver, io};
use serde_json::{Value, json};
use std::fmt::Write;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Instant;

/// Where the command is, for whoever presses Ctrl-C: not yet solving, solving, told to end.
const BEFORE: u8 = 0;
const SOLVING: u8 = 1;
const ENDING: u8 = 2;

const INTERRUPTED: u8 = 130;

pub fn run(options: &Solve, threads: Option<NonZeroUsize>) -> Result<ExitCode, Failure> {
    check_outputs(options)?;
    options.plot.as_deref().map_or(Ok(()), plot::check_ending)?;
    options.x.as_deref().map_or(Ok(()), io::check_vector_name)?;
    let plan = options.plan.as_deref().map(explain::read).transpose()?;
    let phase = Arc::new(AtomicU8::new(BEFORE));
    interrupt(&phase)?;
    let started = Instant::now();
    let loaded = load(&options.input)?;
    // No right-hand side is read or made for a matrix that cannot be solved with.
    if let Err(error) = loaded.matrix.pattern().require_square() {
        return failed(options, &loaded, "setup_failed", &SetupError::from(error).into());
    }
    let mut solver = solver(options, threads);
    if let Some(plan) = &plan {
        solver = solver.with_plan(plan);
    }
    if options.explain {
        explain::explain(options, &solver, &loaded)?;
        return Ok(ExitCode::SUCCESS);
    }
    let rhs = RightHandSide::new(options, &loaded.matrix)?;
    let read = started.elapsed().as_secs_f64();
    let preparing = spinner("analyzing and factoring");
    let prepared = solver.prepare(&loaded.matrix);
    drop(preparing);
    let mut x = vec![0.0; loaded.matrix.ncols()];
    let report = match prepared {
        Ok(mut prepared) => iterate(options, &mut prepared, &loaded, &rhs.values, &mut x, &phase),
        Err(error) => return failed(options, &loaded, "setup_failed", &error),
    };
    let total = started.elapsed().as_secs_f64();
    let done = Done { options, loaded: &loaded, rhs: &rhs, read, total };
    match report {
        Ok(report) if done.write_all(&x, &report) => Ok(status(report.outcome)),
        Ok(_) => Ok(ExitCode::from(2)),
        Err(error) => failed(options, &loaded, "solve_failed", &error),
    }
}

/// The exit status of an answer that was written.
fn status(outcome: Outcome) -> ExitCode {
    match outcome {
        Outcome::Converged => ExitCode::SUCCESS,
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

fn check_outputs(options: &Solve) -> Result<(), Failure> {
    let x = options.x.as_deref().map(|path| Output::moved("-x", path));
    let plot = options.plot.as_deref().map(|path| Output::in_place("--plot", path));
    let json = options.json.as_deref().map(|path| Output::in_place("--json", path));
    let mut inputs = options.input.file();
    inputs.extend(options.b.as_deref());
    inputs.extend(options.plan.as_deref());
    outputs::check(&Vec::from_iter([x, plot, json].into_iter().flatten()), &inputs)
}

/// Ctrl-C ends a solve with its best answer, anything else at once.
fn interrupt(phase: &Arc<AtomicU8>) -> Result<(), Failure> {
    let phase = Arc::clone(phase);
    ctrlc::set_handler(move || {
        if phase.compare_exchange(SOLVING, ENDING, Ordering::Relaxed, Ordering::Relaxed).is_err() {
            std::process::exit(i32::from(INTERRUPTED));
        }
    })?;
    Ok(())
}

/// The options in the library's words.
fn solver(options: &Solve, threads: Option<NonZeroUsize>) -> Solver {
    let method = match options.solver {
        Method::Gmres(_) => Method::Gmres(options.restart.get()),
        Method::Fgmres(_) => Method::Fgmres(options.restart.get()),
        other => other,
    };
    let schedule = match options.schedule {
        Division::Auto => Schedule::Auto,
        Division::Levels => Schedule::Levels,
        Division::P2p => Schedule::PointToPoint,
    };
    let layout = match (options.layout, options.structured) {
        (Order::Rows, _) => Layout::Rows,
        (Order::Auto, Structured::Auto) => Layout::Auto,
        (Order::Auto, Structured::Off) => Layout::Slices,
    };
    let precision = match options.precision {
        Numbers::F64 => Precision::F64,
        Numbers::Mixed => Precision::Mixed,
        Numbers::F32 => Precision::F32,
    };
    let matching = match options.matching {
        Matching::Auto => MatchingMode::Auto,
        Matching::On => MatchingMode::On,
        Matching::Off => MatchingMode::Off,
    };
    let mut solver = Solver::new()
        .method(method)
        .preconditioner(options.precond)
        .schedule(schedule)
        .layout(layout)
        .precision(precision)
        .reorder(options.reorder)
        .matching(matching)
        .recover(options.recovery == Switch::On)
        .rtol(options.rtol)
        .atol(options.atol)
        .max_iterations(options.max_iterations);
    if let Some(threads) = threads {
        solver = solver.threads(threads.get());
    }
    if let Some(gigabytes) = options.input.limits.max_memory {
        solver = solver.max_memory((gigabytes * 1e9) as u64);
    }
    solver
}

/// Solves, with a progress bar and an ear for Ctrl-C; x is the last iterate.
fn iterate(
    options: &Solve,
    prepared: &mut Prepared<Csr<f64>>,
    loaded: &Loaded,
    b: &[f64],
    x: &mut [f64],
    phase: &AtomicU8,
) -> Result<Report, SolveError> {
    let mut bar = ResidualBar::new(options.rtol);
    phase.store(SOLVING, Ordering::Relaxed);
    let mut observer = |i: &Iteration<f64>| {
        bar.at(i.index, i.residual_norm / i.rhs_norm);
        if phase.load(Ordering::Relaxed) == ENDING {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    let report = prepared.solve_observed(&loaded.matrix, b, x, &mut observer);
    // From here on Ctrl-C would lose the answer: let it be written.
    phase.store(SOLVING, Ordering::Relaxed);
    report
}

/// What a report needs besides the library's.
struct Done<'a> {
    options: &'a Solve,
    loaded: &'a Loaded,
    rhs: &'a RightHandSide,
    /// Seconds of reading, and of everything.
    read: f64,
    total: f64,
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
        if let Some(path) = &options.x {
            keep(io::write_vector(path, x).map_err(Failure::from));
        }
        if let Some(path) = &options.plot {
            let title = format!("{} with {}", report.solver, report.preconditioner);
            keep(plot::residuals(path, title, &report.history, options.rtol));
        }
        if let Some(path) = &options.json {
            keep(self.json(report).and_then(|value| write_json(path, &value)));
        }
        if options.json.as_deref() != Some(Path::new("-")) {
            keep(print(&self.text(report)));
        }
        all
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
        });
        value["rhs"] = json!(rhs::name(self.options));
        value["warnings"] = json!(Vec::from_iter(self.rhs.warning));
        value["wavefronts"] =
            json!({ "lower": wavefronts(Triangle::Lower)?, "upper": wavefronts(Triangle::Upper)? });
        value["seconds"]["read"] = json!(self.read);
        value["seconds"]["total"] = json!(self.total);
        Ok(value)
    }

    fn text(&self, r: &Report) -> String {
        let Done { loaded, rhs, read, total, .. } = *self;
        let mut text = format!("{}\n", loaded.name);
        let mut line = |label: &str, value: String| {
            writeln!(text, "  {label:18}{value}").expect("writing to a string");
        };
        let a = &loaded.matrix;
        line("matrix", format!("{} rows, {} entries", count(a.nrows()), count(a.nnz())));
        line("right-hand side", rhs.origin.clone());
        if let Some(warning) = rhs.warning {
            line("warning", warning.into());
        }
        line("method", format!("{} with {}, {}", r.solver, r.preconditioner, threads(&r.team)));
        line("because", r.choice.clone());
        if !r.ordering.is_empty() {
            line("ordering", r.ordering.clone());
        }
        line("layout", r.layout.clone());
        if let Some([down, up]) = &r.schedule {
            line("sweeps", format!("down {down}"));
            line("", format!("up {up}"));
        }
        if let Some(share) = short_of_cores(&r.team) {
            line("cores", share);
        }
        for step in &r.recovery {
            line("recovery", format!("{}; {}", step.failed, step.action));
        }
        if r.shift > 0.0 {
            line("shift", format!("{:.2e} of the diagonal's size", r.shift));
        }
        line("outcome", r.outcome.name().replace('_', " "));
        line("iterations", count(r.iterations));
        let backward = r.backward_error.map_or(String::new(), |e| format!(", backward error {e:.2e}"));
        line("residual", format!("{:.3e} relative, recomputed{backward}", r.relative_residual));
        if r.preconditioner_bytes > 0 {
            let (nnz, size) = (count(r.preconditioner_nnz), bytes(r.preconditioner_bytes as u64));
            line("preconditioner", format!("{nnz} entries, {size}"));
        }
        line(
            "memory",
            format!(
                "{} besides A, b and x; {} predicted",
                bytes(r.bytes as u64),
                bytes(r.predicted_bytes as u64)
            ),
        );
        let s = r.seconds;
        let (analyze, factor, solve) = (s.analyze, s.factor, s.solve);
        line(
            "seconds",
            format!(
                "read {read:.3}, analyze {analyze:.3}, factor {factor:.3}, solve {solve:.3}, total {total:.3}"
            ),
        );
        text
    }
}

/// How many threads there are, and why not as many as were requested.
fn threads(team: &TeamStatistics) -> String {
    let started = match team.started {
        1 => "1 thread".into(),
        started => format!("{started} threads"),
    };
    match team.limit {
        Some(limit) => format!("{started} of {} requested ({limit})", count(team.requested)),
        None => started,
    }
}

/// What part of the operations had fewer threads than the team has, where that is worth a line.
fn short_of_cores(team: &TeamStatistics) -> Option<String> {
    let share = team.operations_with_fewer as f64 / team.operations.max(1) as f64;
    (share >= 0.01).then(|| {
        let least = team.least_members;
        format!(
            "{:.0} % of the operations ran on fewer threads, at least {least}, beside other programs",
            100.0 * share
        )
    })
}
