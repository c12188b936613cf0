//! The paper's comparison for matrices that are not symmetric (Booth, Sun & Garnett 2024, Section 7, Figure 9).
//!
//! GMRES alone, with ILU(0), with those that preserve the sums of rows and of columns, with trained L U and with a trained L Lᵀ, though A is not symmetric. Columns are
//! matched with rows, rows have the sign that makes the diagonal positive, and both are in RCM order of A + Aᵀ. Right-hand sides are random, GMRES restarts
//! after 100 steps, a solve that does not converge to 1e-7 in 2000 iterations, or has no factor, failed at it.

use super::{Options, matrix, names};
use crate::Failure;
use crate::folder::{self, Head, grouped, table};
use krylith::gallery::random_vector;
use krylith::learn::{Training, train, train_lu};
use krylith::space::Threads;
use krylith::transform::{Matching, Ordering, order};
use krylith::{Csr, Method, Pattern, PrecondSpec, Report, SolveError, Solver};
use serde::Serialize;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

const TOLERANCES: [f64; 2] = [1e-5, 1e-7];
const MAX_ITERATIONS: usize = 2000;
const RESTART: usize = 100;
const METHODS: [&str; 6] = ["GMRES", "ILU(0)", "row sums", "column sums", "NN-LU", "NN-LL"];

#[derive(Debug, Serialize)]
struct Record {
    head: Head,
    rows: Vec<Row>,
}

#[derive(Debug, Serialize)]
struct Row {
    name: String,
    rows: usize,
    entries: usize,
    /// Why nothing was compared.
    skipped: Option<String>,
    /// Iterations to each tolerance by method; none where it is not reached.
    iterations: Vec<[Option<usize>; 2]>,
    /// Seconds of the trainings.
    seconds: [f64; 2],
}

pub(super) fn run(options: &Options) -> Result<(), Failure> {
    let head = Head::of_run(1, &[])?;
    let folder = folder::of_results(options.output.as_deref(), &head, "learn-gmres")?;
    let mut record = Record { head, rows: Vec::new() };
    for name in names(options, "general/", 1000)? {
        let a = matrix(options.catalogue.as_deref(), &name)?;
        let row = match prepared(&a) {
            Ok(a) => compare(options, &name, &a)?,
            Err(why) => Row {
                name,
                rows: a.nrows(),
                entries: a.nnz(),
                skipped: Some(why.to_string()),
                iterations: Vec::new(),
                seconds: [0.0; 2],
            },
        };
        eprintln!("{}: {:?} {:.1?} {:?}", row.name, row.iterations, row.seconds, row.skipped);
        record.rows.push(row);
        folder::write(&folder, "gmres", &record, &markdown(&record))?;
    }
    println!("{}", markdown(&record));
    Ok(())
}

/// Matched, with a positive diagonal, in RCM order.
fn prepared(a: &Csr<f64>) -> Result<Csr<f64>, Failure> {
    let rows = krylith::Permutation::identity(a.nrows())?;
    let mut b = a.view().permute(&rows, &Matching::find(a.view())?.columns)?;
    let diagonal = b.diagonal()?;
    for i in 0..b.nrows() {
        let range = b.pattern().row_range(i);
        if diagonal[i] < 0.0 {
            b.values_mut()[range].iter_mut().for_each(|v| *v = -*v);
        }
    }
    Ok(b.view().permute_symmetric(&order(b.pattern(), Ordering::Rcm)?)?)
}

/// Where A + Aᵀ has entries.
fn symmetrised(a: &Csr<f64>) -> Result<Arc<Pattern>, Failure> {
    let transposed = a.transpose();
    let (mut row_ptr, mut columns) = (vec![0], Vec::new());
    for i in 0..a.nrows() {
        let mut row = [a.pattern().row(i), transposed.pattern().row(i)].concat();
        row.sort_unstable();
        row.dedup();
        columns.extend(row);
        row_ptr.push(columns.len());
    }
    Ok(Arc::new(Pattern::new(a.nrows(), a.nrows(), row_ptr, columns)?))
}

fn compare(options: &Options, name: &str, a: &Csr<f64>) -> Result<Row, Failure> {
    let (n, b) = (a.nrows(), random_vector(a.nrows()));
    let solver = Solver::new().method(Method::Gmres(RESTART)).recover(false).threads(options.threads);
    let solver = solver.matching(krylith::solver::MatchingMode::Off);
    let solver = solver.rtol(TOLERANCES[1]).max_iterations(MAX_ITERATIONS);
    let with = |kind: PrecondSpec, source: &Csr<f64>| {
        let mut x = vec![0.0; n];
        let solver = solver.clone().preconditioner(kind);
        reached(solver.prepare_with(a, source).and_then(|prepared| prepared.solve(a, &b, &mut x)))
    };
    let named = ["none", "ilu0", "milu0", "milu0-columns"];
    let mut iterations = Vec::new();
    for kind in named {
        iterations.push(with(kind.parse()?, a));
    }
    let space = Threads::new(options.threads);
    let mut seconds = [0.0; 2];
    let started = Instant::now();
    let lu = train_lu::<f64>(&space, a, &Training::paper_lu(n), |_| ControlFlow::Continue(()))?;
    seconds[0] = started.elapsed().as_secs_f64();
    iterations.push(with(PrecondSpec::ssor(1.0), &lu.matrix()));
    let started = Instant::now();
    let (pattern, training) = (symmetrised(a)?, Training::paper(n));
    let ll = train::<f64>(&space, a, &pattern, &training, |_| ControlFlow::Continue(()))?;
    seconds[1] = started.elapsed().as_secs_f64();
    iterations.push(with(PrecondSpec::ssor(1.0), &ll.matrix()));
    Ok(Row { name: name.into(), rows: n, entries: a.nnz(), skipped: None, iterations, seconds })
}

/// Iterations to both tolerances.
fn reached(solved: Result<Report, SolveError>) -> [Option<usize>; 2] {
    let Ok(report) = solved else { return [None; 2] };
    TOLERANCES.map(|tolerance| report.history.iter().position(|&r| r <= tolerance))
}

fn markdown(record: &Record) -> String {
    let compared: Vec<&Row> = record.rows.iter().filter(|row| row.skipped.is_none()).collect();
    format!(
        "{}\nIterations of GMRES(100) to 1e-5 and to 1e-7, random b, at most 2000; – where that is not reached or there is no factor. Columns are matched, rows signed for a positive diagonal, both in RCM order of A + Aᵀ. NN-LU: trained L and U, 100 √n samples, α = 0.001; NN-LL: trained L Lᵀ on the pattern of A + Aᵀ, √n samples, α = 0.1. {} matrices are compared; {} have no complete matching.\n\n{}\n{}",
        record.head.markdown("Trained factors for GMRES"),
        compared.len(),
        record.rows.len() - compared.len(),
        summary(&compared),
        of_matrices(&compared)
    )
}

fn summary(rows: &[&Row]) -> String {
    let columns =
        ["method", "to 1e-5", "to 1e-7", "fewest to 1e-7", "alone to 1e-7", "fewer than GMRES alone to 1e-7"];
    let cells = |(m, name): (usize, &&str)| {
        let count = |which: &dyn Fn(&&&Row) -> bool| rows.iter().filter(which).count().to_string();
        let fewest = |row: &&&Row| {
            row.iterations[m][1]
                .is_some_and(|own| row.iterations.iter().all(|f| f[1].is_none_or(|f| own <= f)))
        };
        let alone = |row: &&&Row| {
            row.iterations[m][1].is_some() && row.iterations.iter().filter(|f| f[1].is_some()).count() == 1
        };
        let fewer = |row: &&&Row| {
            row.iterations[m][1].is_some_and(|own| row.iterations[0][1].is_none_or(|plain| own < plain))
        };
        vec![
            name.to_string(),
            count(&|row| row.iterations[m][0].is_some()),
            count(&|row| row.iterations[m][1].is_some()),
            count(&fewest),
            count(&alone),
            if m == 0 { "–".into() } else { count(&fewer) },
        ]
    };
    table(&columns, METHODS.iter().enumerate().map(cells))
}

fn of_matrices(rows: &[&Row]) -> String {
    let mut columns = vec!["matrix", "rows", "entries"];
    columns.extend(METHODS);
    columns.push("seconds of training, LU and LL");
    let cells = |row: &&Row| {
        let mut cells = vec![row.name.clone(), grouped(row.rows as u64), grouped(row.entries as u64)];
        let number = |found: Option<usize>| found.map_or("–".into(), |count| count.to_string());
        cells.extend(row.iterations.iter().map(|found| found.map(number).join(", ")));
        cells.push(row.seconds.map(|s| format!("{s:.2}")).join(", "));
        cells
    };
    table(&columns, rows.iter().map(cells))
}
