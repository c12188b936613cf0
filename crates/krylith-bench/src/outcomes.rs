//! Every square matrix of a catalogue, solved in several ways: what converges, what does not and why, and whether anything that
//! is called converged is not.
//!
//! b = A·1 or, with `--rhs`, a random one; x₀ = 0, rtol 1e-8. Symmetric matrices: CG with IC(0); others: BiCGStab and GMRES(30) with ILU(0); all: `auto`. The
//! residual of every answer is computed once more here, row by row in the order of the entries. With `--answers` everything
//! that is called converged is kept for another program to judge: `peers/check_answers.py` reads the matrix files itself.

use crate::catalogue::{Entry, parse};
use crate::rhs::{Choice, Rhs};
use crate::{Failure, record};
use clap::Args;
use krylith::observe::Iteration;
use krylith::solver::{Method, PrecondSpec};
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
    /// Right-hand sides
    #[arg(long, default_value = "ones")]
    rhs: Choice,
    /// Keep every result here
    #[arg(long)]
    output: Option<PathBuf>,
    /// Keep b as FILE.b.npy and every x that is called converged as FILE.WAY.npy in this folder; those of the random
    /// right-hand side as FILE.random.b.npy and FILE.random.WAY.npy
    #[arg(long)]
    answers: Option<PathBuf>,
}

const RTOL: f64 = 1e-8;

pub fn run(options: &Options) -> Result<(), Failure> {
    let entries = parse(&std::fs::read_to_string(options.folder.join("CATALOGUE.tsv"))?)?;
    let mut results = Vec::new();
    let mut outcomes: BTreeMap<(String, &str, String), usize> = BTreeMap::new();
    let mut wrong = 0;
    for entry in entries.iter().filter(|e| e.n >= options.least_rows) {
        let a = io::read_matrix(options.folder.join(&entry.file))?;
        if a.nrows() != a.ncols() {
            continue;
        }
        for (rhs, method, preconditioner) in ways(&a, options.rhs) {
            let result = solve(options, entry, &a, rhs, method, preconditioner)?;
            let way = result["way"].as_str().unwrap_or_default().to_owned();
            let outcome = result["outcome"].as_str().unwrap_or_default().to_owned();
            if outcome == "converged" && result["checked_residual"].as_f64().is_none_or(|r| r > 1.001 * RTOL)
            {
                println!("WRONG: {} {way}: {result}", entry.file);
                wrong += 1;
            }
            *outcomes.entry((way, rhs.name(), outcome)).or_default() += 1;
            results.push(result);
        }
    }
    println!("| way | right-hand side | outcome | matrices |");
    println!("|---|---|---|---|");
    for ((way, rhs, outcome), count) in outcomes {
        println!("| {way} | {rhs} | {outcome} | {count} |");
    }
    if let Some(path) = &options.output {
        record::save(path, &results)?;
    }
    if wrong > 0 { Err(format!("{wrong} answers are called converged and are not").into()) } else { Ok(()) }
}

fn ways(a: &Csr<f64>, rhs: Choice) -> Vec<(Rhs, Method, PrecondSpec)> {
    let mut ways = match a.symmetry().symmetric {
        true => vec![(Method::Cg, PrecondSpec::ic(0))],
        false => {
            vec![(Method::BiCgStab, PrecondSpec::ilu(0)), (Method::Gmres(30), PrecondSpec::ilu(0))]
        }
    };
    ways.push((Method::Auto, PrecondSpec::auto()));
    let with = |&rhs| ways.iter().map(move |&(method, preconditioner)| (rhs, method, preconditioner));
    rhs.sides().iter().flat_map(with).collect()
}

fn solve(
    options: &Options,
    entry: &Entry,
    a: &Csr<f64>,
    rhs: Rhs,
    method: Method,
    preconditioner: PrecondSpec,
) -> Result<Value, Failure> {
    let way = if method == Method::Auto { "auto".into() } else { format!("{method}+{preconditioner}") };
    let b = right_hand_side(a, rhs)?;
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
    let base =
        json!({ "file": entry.file, "rows": a.nrows(), "nnz": a.nnz(), "way": way, "rhs": rhs.name() });
    let with = |more: Value| {
        let mut all = base.clone();
        if let (Value::Object(all), Value::Object(more)) = (&mut all, more) {
            all.extend(more);
        }
        all
    };
    match solver.prepare(a).and_then(|prepared| prepared.solve_observed(a, &b, &mut x, &mut observer)) {
        Err(error) => Ok(with(json!({ "outcome": "setup_failed", "error": error.to_string() }))),
        Ok(report) => {
            if report.outcome == Outcome::Converged
                && let Some(folder) = &options.answers
            {
                let file =
                    if rhs == Rhs::Ones { entry.file.clone() } else { format!("{}.random", entry.file) };
                keep(folder, &format!("{file}.b.npy"), &b)?;
                keep(folder, &format!("{file}.{way}.npy"), &x)?;
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

/// As the command makes it: A·1 by the library's product.
fn right_hand_side(a: &Csr<f64>, rhs: Rhs) -> Result<Vec<f64>, Failure> {
    let mut b = vec![0.0; a.nrows()];
    match rhs {
        Rhs::Ones => a.mul_vec(&vec![1.0; a.ncols()], &mut b)?,
        Rhs::Random => b = rhs.vector(a),
    }
    Ok(b)
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

#[cfg(test)]
mod tests {
    use super::*;
    use krylith::gallery::{Problem, random_vector};

    #[test]
    fn both_right_hand_sides_are_solved_and_kept() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let a = "poisson2d:12".parse::<Problem>().unwrap().generate().unwrap();
        io::write_matrix(folder.join("a.mtx"), &a).unwrap();
        std::fs::write(folder.join("CATALOGUE.tsv"), "file\tn\tnnz\na.mtx\t144\t672\n").unwrap();
        let output = folder.join("outcomes.json");
        let options = Options {
            folder: folder.into(),
            least_rows: 1,
            max_iterations: 100,
            seconds: 60,
            threads: 1,
            rhs: Choice::Both,
            output: Some(output.clone()),
            answers: Some(folder.join("answers")),
        };
        run(&options).unwrap();
        let results: Value = record::load(&output).unwrap();
        let found: Vec<[&str; 3]> = results
            .as_array()
            .unwrap()
            .iter()
            .map(|r| ["rhs", "way", "outcome"].map(|field| r[field].as_str().unwrap()))
            .collect();
        let converged = |rhs, way| [rhs, way, "converged"];
        assert_eq!(
            found,
            [
                converged("ones", "cg+ic0"),
                converged("ones", "auto"),
                converged("random", "cg+ic0"),
                converged("random", "auto"),
            ]
        );
        let kept = |name: &str| io::read_vector(folder.join("answers").join(name)).unwrap();
        assert_eq!(kept("a.mtx.random.b.npy"), random_vector(144));
        assert!(kept("a.mtx.auto.npy").iter().all(|x| (x - 1.0).abs() < 1e-6));
        assert!(residual(&a, &kept("a.mtx.random.auto.npy"), &random_vector(144)) <= 1e-8);
    }
}
