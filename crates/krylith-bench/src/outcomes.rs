//! Every square matrix of a catalogue, solved in several ways: what converges, what does not and why, and whether anything that
//! is called converged is not.
//!
//! b = A·1, x₀ = 0, rtol 1e-8. Symmetric matrices: CG with IC(0); others: BiCGStab and GMRES(30) with ILU(0); all: `auto`. The
//! residual of every answer is computed once more here, row by row in the order of the entries. With `--answers` everything
//! that is called converged is kept for another program to judge: `peers/check_answers.py` reads the matrix files itself.

use crate::Failure;
use crate::catalogue::{Entry, parse};
use clap::Args;
use krylith::observe::Iteration;
use krylith::solver::{Method, Preconditioning};
use krylith::{Csr, Outcome, Solver, io};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

#[derive(Args)]
pub struct Options {
    /// The folder with CATALOGUE.tsv
    folder: PathBuf,
    /// Smallest matrix
    #[arg(long, default_value_t = 100)]
    least_rows: u64,
    /// Iterations at most
    #[arg(long, default_value_t = 10_000)]
    max_iterations: usize,
    /// Seconds a solve at most
    #[arg(long, default_value_t = 20)]
    seconds: u64,
    /// Threads
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Keep every result here
    #[arg(long)]
    output: Option<PathBuf>,
    /// Keep b as FILE.b.npy and every x that is called converged as FILE.WAY.npy in this folder
    #[arg(long)]
    answers: Option<PathBuf>,
}

const RTOL: f64 = 1e-8;

pub fn run(options: &Options) -> Result<(), Failure> {
    let entries = parse(&std::fs::read_to_string(options.folder.join("CATALOGUE.tsv"))?)?;
    let mut results = Vec::new();
    let mut outcomes: BTreeMap<(String, String), usize> = BTreeMap::new();
    let mut wrong = 0;
    for entry in entries.iter().filter(|e| e.n >= options.least_rows) {
        let a = io::read_matrix(options.folder.join(&entry.file))?;
        if a.nrows() != a.ncols() {
            continue;
        }
        for (method, preconditioner) in ways(&a) {
            let result = solve(options, entry, &a, method, preconditioner)?;
            let way = result["way"].as_str().unwrap_or_default().to_owned();
            let outcome = result["outcome"].as_str().unwrap_or_default().to_owned();
            if outcome == "converged" && result["checked_residual"].as_f64().is_none_or(|r| r > 1.001 * RTOL)
            {
                println!("WRONG: {} {way}: {result}", entry.file);
                wrong += 1;
            }
            *outcomes.entry((way, outcome)).or_default() += 1;
            results.push(result);
        }
    }
    println!("| way | outcome | matrices |");
    println!("|---|---|---|");
    for ((way, outcome), count) in outcomes {
        println!("| {way} | {outcome} | {count} |");
    }
    if let Some(path) = &options.output {
        std::fs::write(path, format!("{:#}\n", Value::Array(results)))?;
    }
    if wrong > 0 { Err(format!("{wrong} answers are called converged and are not").into()) } else { Ok(()) }
}

fn ways(a: &Csr<f64>) -> Vec<(Method, Preconditioning)> {
    let mut ways = match a.symmetry().symmetric {
        true => vec![(Method::Cg, Preconditioning::Ic(0))],
        false => {
            vec![(Method::BiCgStab, Preconditioning::Ilu(0)), (Method::Gmres(30), Preconditioning::Ilu(0))]
        }
    };
    ways.push((Method::Auto, Preconditioning::Auto));
    ways
}

fn solve(
    options: &Options,
    entry: &Entry,
    a: &Csr<f64>,
    method: Method,
    preconditioner: Preconditioning,
) -> Result<Value, Failure> {
    let way = if method == Method::Auto { "auto".into() } else { format!("{method}+{preconditioner}") };
    let mut b = vec![0.0; a.nrows()];
    a.mul_vec(&vec![1.0; a.ncols()], &mut b)?;
    let mut x = vec![0.0; a.nrows()];
    let end = Instant::now() + Duration::from_secs(options.seconds);
    let mut observer = |_: &Iteration<f64>| match Instant::now() > end {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    };
    let solver = Solver::new()
        .method(method)
        .preconditioner(preconditioner)
        .rtol(RTOL)
        .max_iterations(options.max_iterations)
        .threads(options.threads);
    let base = json!({ "file": entry.file, "rows": a.nrows(), "nnz": a.nnz(), "way": way });
    let with = |more: Value| {
        let mut all = base.clone();
        if let (Value::Object(all), Value::Object(more)) = (&mut all, more) {
            all.extend(more);
        }
        all
    };
    match solver.solve_from(a, &b, &mut x, &mut observer) {
        Err(error) => Ok(with(json!({ "outcome": "setup_failed", "error": error.to_string() }))),
        Ok(report) => {
            if report.outcome == Outcome::Converged
                && let Some(folder) = &options.answers
            {
                keep(folder, &format!("{}.b.npy", entry.file), &b)?;
                keep(folder, &format!("{}.{way}.npy", entry.file), &x)?;
            }
            // A solve that the clock ended is not the user's interruption.
            let outcome =
                if report.outcome == Outcome::Interrupted { "time_limit" } else { report.outcome.name() };
            Ok(with(json!({
                "outcome": outcome,
                "solver": report.solver,
                "preconditioner": report.preconditioner,
                "iterations": report.iterations,
                "relative_residual": report.relative_residual,
                "checked_residual": residual(a, &x, &b),
                "backward_error": report.backward_error,
                "recovery": report.recovery,
                "seconds": report.seconds,
            })))
        }
    }
}

fn keep(folder: &Path, name: &str, x: &[f64]) -> Result<(), Failure> {
    let path = folder.join(name);
    path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
    Ok(io::write_vector(path, x)?)
}

/// ‖b − A x‖₂ / ‖b‖₂, summed from left to right.
fn residual(a: &Csr<f64>, x: &[f64], b: &[f64]) -> f64 {
    let (mut r2, mut b2) = (0.0, 0.0);
    for i in 0..a.nrows() {
        let (columns, values) = a.row(i);
        let ax: f64 = columns.iter().zip(values).map(|(&j, v)| v * x[j as usize]).sum();
        r2 += (b[i] - ax) * (b[i] - ax);
        b2 += b[i] * b[i];
    }
    if b2 > 0.0 { (r2 / b2).sqrt() } else { r2.sqrt() }
}
