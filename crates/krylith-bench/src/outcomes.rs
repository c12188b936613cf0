//! Every square matrix of a catalogue, solved in several ways: what converges, what does not and why, and whether anything that
//! is called converged is not.
//!
//! b = A·1 or, with `--rhs`, a random one; x₀ = 0, rtol 1e-8. Symmetric matrices: CG with IC(0); others: BiCGStab and GMRES(30) with ILU(0); all: `auto`. The
//! residual of every answer is computed once more here, row by row in the order of the entries. With `--answers` everything
//! that is called converged is kept for another program to judge: `peers/check_answers.py` reads the matrix files itself.

use crate::Failure;
use crate::catalogue::{self, Entry};
use crate::rhs::{Choice, Rhs, relative_residual};
use crate::run::table::table;
use crate::run::{Kept, Nothing, Output, Run};
use clap::Args;
use krylith::observe::Iteration;
use krylith::{Csr, Method, Outcome, PrecondSpec, Report, Solver, io};
use serde::{Deserialize, Serialize};
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

/// A matrix solved in one way.
#[derive(Debug, Serialize, Deserialize)]
struct Row {
    file: String,
    rows: usize,
    nnz: usize,
    /// METHOD+PRECONDITIONER, or `auto`.
    way: String,
    rhs: Rhs,
    /// As the report has it, or `setup_failed`, or `time_limit`.
    outcome: String,
    error: Option<String>,
    iterations: Option<usize>,
    relative_residual: Option<f64>,
    /// The residual as it was computed here.
    checked_residual: Option<f64>,
    report: Option<Report>,
}

impl Row {
    /// It is called converged and is not.
    fn is_wrong(&self) -> bool {
        let converged = self.outcome == Outcome::Converged.name();
        converged && self.checked_residual.is_none_or(|residual| residual > 1.001 * RTOL)
    }
}

pub fn run(options: &Options) -> Result<(), Failure> {
    let mut run = Run::<Row>::begin(Output::file(options.output.as_deref()), Nothing {}, 1, &[])?;
    let entries = catalogue::read(&options.folder)?;
    for entry in entries.iter().filter(|e| e.n >= options.least_rows) {
        if run.has(|row| row.file == entry.file) {
            continue;
        }
        let a = io::read_matrix(options.folder.join(&entry.file))?;
        if a.nrows() != a.ncols() {
            continue;
        }
        let solve = |(rhs, method, kind)| solve(options, entry, &a, rhs, method, kind);
        let rows = ways(&a, options.rhs).into_iter().map(solve).collect::<Result<Vec<_>, _>>()?;
        for row in rows.iter().filter(|row| row.is_wrong()) {
            println!("WRONG: {} {}: {:?}", row.file, row.way, row.checked_residual);
        }
        run.add(rows)?;
    }
    run.end()?;
    let wrong = run.rows.iter().filter(|row| row.is_wrong()).count();
    if wrong > 0 { Err(format!("{wrong} answers are called converged and are not").into()) } else { Ok(()) }
}

impl Kept for Row {
    type Facts = Nothing;

    fn text(run: &Run<Row>) -> String {
        let mut outcomes: BTreeMap<[&str; 3], usize> = BTreeMap::new();
        for row in &run.rows {
            *outcomes.entry([&row.way, row.rhs.name(), &row.outcome]).or_default() += 1;
        }
        let cells = |(names, count): (&[&str; 3], &usize)| {
            names.iter().map(|name| name.to_string()).chain([count.to_string()]).collect()
        };
        table(&["way", "right-hand side", "outcome", "matrices"], outcomes.iter().map(cells))
    }
}

fn ways(a: &Csr<f64>, rhs: Choice) -> Vec<(Rhs, Method, PrecondSpec)> {
    let mut ways = match a.symmetry().symmetric {
        true => vec![(Method::Cg, PrecondSpec::ic(0))],
        false => {
            vec![(Method::BiCgStab, PrecondSpec::ilu(0)), (Method::Gmres(30), PrecondSpec::ilu(0))]
        }
    };
    ways.push((Method::Auto, PrecondSpec::auto()));
    let with = |&rhs| ways.iter().map(move |(method, preconditioner)| (rhs, *method, preconditioner.clone()));
    rhs.sides().iter().flat_map(with).collect()
}

fn solve(
    options: &Options,
    entry: &Entry,
    a: &Csr<f64>,
    rhs: Rhs,
    method: Method,
    preconditioner: PrecondSpec,
) -> Result<Row, Failure> {
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
    let ended = solver.prepare(a).and_then(|prepared| prepared.solve_observed(a, &b, &mut x, &mut observer));
    let outcome = match &ended {
        Err(_) => "setup_failed",
        // A solve that the clock ended is not the user's interruption.
        Ok(report) if report.outcome == Outcome::Interrupted => "time_limit",
        Ok(report) => report.outcome.name(),
    };
    if let (Some(folder), "converged") = (&options.answers, outcome) {
        let file = if rhs == Rhs::Ones { entry.file.clone() } else { format!("{}.random", entry.file) };
        keep(folder, &format!("{file}.b.npy"), &b)?;
        keep(folder, &format!("{file}.{way}.npy"), &x)?;
    }
    let checked = ended.is_ok().then(|| relative_residual(a, &x, &b));
    let (report, error) = match ended {
        Ok(report) => (Some(report), None),
        Err(error) => (None, Some(error.to_string())),
    };
    Ok(Row {
        file: entry.file.clone(),
        rows: a.nrows(),
        nnz: a.nnz(),
        way,
        rhs,
        outcome: outcome.into(),
        error,
        iterations: report.as_ref().map(|report| report.iterations),
        relative_residual: report.as_ref().map(|report| report.relative_residual),
        checked_residual: checked,
        report,
    })
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::record;
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
        let results: Run<Row> = record::load(&output).unwrap();
        let found: Vec<[&str; 3]> =
            results.rows.iter().map(|row| [row.rhs.name(), &row.way, &row.outcome]).collect();
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
        assert!(relative_residual(&a, &kept("a.mtx.random.auto.npy"), &random_vector(144)) <= 1e-8);
    }
}
