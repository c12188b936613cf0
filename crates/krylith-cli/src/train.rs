//! `krylith train`: a preconditioner that is trained once and used for many solves.

use crate::Failure;
use crate::args::Train;
use crate::input::{Loaded, load};
use crate::interrupt::{INTERRUPTED, Phase};
use crate::outputs::{self, Output};
use crate::progress::spinner;
use crate::report::{bytes, complain, count, print, print_aside};
use krylith::learn::{LearningReport, train_by_solving};
use krylith::plan::Facts;
use krylith::{Csr, Outcome, SetupError, SolveError, Solver, io};
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::process::ExitCode;
use std::time::Instant;

pub fn run(options: &Train, threads: Option<NonZeroUsize>) -> Result<ExitCode, Failure> {
    let path = &options.output;
    outputs::check(&[Output::moved("-o", path)], &options.input.file())?;
    io::check_matrix_name(path)?;
    let ending = "interrupted: the training ends, and the best factor so far is saved; Ctrl-C again ends at once, and saves nothing";
    let name = options.input.name().to_owned();
    let phase = Phase::listen(Some(ending), move || {
        complain(format_args!("{name}: interrupted before a factor was saved"));
    })?;
    let loaded = load(&options.input)?;
    let mut solver = Solver::new().rtol(options.rtol);
    if let Some(threads) = threads {
        solver = solver.threads(threads.get());
    }
    if let Some(gigabytes) = options.input.limits.max_memory {
        solver = solver.max_memory((gigabytes * 1e9) as u64);
    }
    let started = Instant::now();
    phase.run();
    let (p, report) = train(options, &solver, &loaded, &phase)?;
    let was_interrupted = phase.is_ending();
    phase.write();
    if was_interrupted && report.accepted == 0 {
        complain(format_args!("{}: interrupted before a factor was trained; nothing is saved", loaded.name));
        return Ok(ExitCode::from(INTERRUPTED));
    }
    require_convergence(&loaded.name, &report)?;
    save(options, &loaded, &p, &report, started.elapsed().as_secs_f64())?;
    Ok(if was_interrupted { ExitCode::from(INTERRUPTED) } else { ExitCode::SUCCESS })
}

/// Trains, and shows every round.
fn train(
    options: &Train,
    solver: &Solver,
    loaded: &Loaded,
    phase: &Phase,
) -> Result<(Csr<f64>, LearningReport), Failure> {
    let mut shown = 0;
    let trained = train_by_solving(solver, &loaded.matrix, options.rounds.get(), |report| {
        if report.rounds > shown {
            shown = report.rounds;
            let [before, now] = report.probe_iterations.map(number);
            // What cannot be shown is no reason to end.
            let _ = print_aside(&format!("round {:3}: {now} iterations, {before} before\n", report.rounds));
        }
        if phase.is_ending() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    trained.map_err(|error| untrainable(loaded, &error).into())
}

/// Writes the factor, and says what it is worth and how it is used.
fn save(
    options: &Train,
    loaded: &Loaded,
    p: &Csr<f64>,
    report: &LearningReport,
    seconds: f64,
) -> Result<(), Failure> {
    let path = &options.output;
    let spinner = spinner(&format!("writing {}", path.display()));
    io::write_matrix(path, p)?;
    drop(spinner);
    let [before, now] = report.probe_iterations.map(number);
    let (name, file, size) = (&loaded.name, path.display(), bytes(std::fs::metadata(path)?.len()));
    let a = &loaded.matrix;
    print(&format!(
        "{name}: {} rows, {} entries\n\
         trained in {seconds:.2} s and {} rounds: a random right-hand side takes {now} iterations of CG, IC(0) {before}\n\
         {file}: {size}\n\
         use it: krylith solve {} --solver cg --precond ssor --precond-matrix {file}\n",
        count(a.nrows()),
        count(a.nnz()),
        report.rounds,
        options.input.matrix,
    ))
}

/// Iterations of a probe, of which no number is enough where it does not converge.
fn number(found: f64) -> String {
    if found.is_finite() { format!("{found:.0}") } else { "no number of".into() }
}

/// An error if conjugate gradients do not converge with the factor: it is of no use, whoever asks.
fn require_convergence(name: &str, report: &LearningReport) -> Result<(), Failure> {
    if report.probe_iterations[1].is_finite() {
        return Ok(());
    }
    let what = match report.outcome {
        Some(Outcome::IndefiniteOperator) => {
            "the matrix is not positive definite: conjugate gradients met a p with pᵀA p <= 0, and no factor can be trained"
        }
        _ => "conjugate gradients do not converge with any factor that was trained",
    };
    Err(format!("{name}: {what}; nothing is saved; `krylith solve {name}` chooses a method and a preconditioner for it").into())
}

/// Why there is no training, and what to do.
fn untrainable(Loaded { name, matrix, .. }: &Loaded, error: &SolveError) -> String {
    let next = format!("`krylith solve {name}` chooses a method and a preconditioner for it");
    match error {
        SolveError::Backend(_) if matrix.asymmetry() > Facts::ROUNDING => format!(
            "{name}: the matrix is not symmetric, and only factors of symmetric positive definite matrices are trained; {next}"
        ),
        SolveError::Setup(SetupError::BadPivot { .. } | SetupError::MissingDiagonal { .. }) => {
            format!("{name}: the matrix is not positive definite: {error}; {next}")
        }
        other => format!("{name}: {other}; `krylith info {name}` shows what the matrix is like"),
    }
}
