//! The paper's comparison (Booth, Sun & Garnett 2024, Figures 4 to 8) on the positive definite matrices of a catalogue.
//!
//! CG alone; IC(0), which may break down; IC(0) of the matrix scaled to a unit diagonal, which breaks down where IC(0) does; Jacobi, the other reading of "scaled";
//! scaled and shifted by 0.2; the trained factors NN and NNN. Right-hand sides are random. Iterations are those after which the residual of the
//! recurrence is below 1e-5 and 1e-7; a solve that does not converge to 1e-7 in 10,000 iterations, or has no factor, failed. The cost of training is in
//! factorizations: its seconds over those of the shifted IC(0) (NFacts).
//!
//! Beside the paper's: the best of nine shifts of IC(0), found by solving with each, and the factor trained by solving (`learned`).

use super::{Options, matrix, names};
use crate::Failure;
use crate::folder::{self, Head, digits, grouped, table};
use crate::record::{earlier, path};
use krylith::gallery::random_vector;
use krylith::learn::{Training, paired, train, train_by_solving};
use krylith::space::Threads;
use krylith::transform::{Ordering, order};
use krylith::{Csr, Method, Outcome, PrecondSpec, Report, SolveError, Solver};
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;
use std::time::Instant;

const TOLERANCES: [f64; 2] = [1e-5, 1e-7];
const MAX_ITERATIONS: usize = 10_000;
/// The paper's shift.
const SHIFT: f64 = 0.2;
const METHODS: [&str; 9] =
    ["CG", "IC(0)", "scaled IC(0)", "Jacobi", "scaled, shifted", "NN", "NNN", "best shift", "by solving"];
/// What the best shift is looked for among.
const SHIFTS: [f64; 9] = [0.0, 1e-4, 1e-3, 0.01, 0.03, 0.1, 0.2, 0.5, 1.0];
/// Of the training by solving.
const ROUNDS: usize = 10;
/// What the paper has at 1e-5 in the natural order, on its matrices.
const PAPER: &str = "CG 1874, scaled 333, scaled and shifted 72, NNN 95, NN 110 at 1e-5 in the natural order; CG 1889, 330, 69, 93, 106 in RCM order";

#[derive(Debug, Serialize, Deserialize)]
struct Record {
    head: Head,
    rows: Vec<Row>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Row {
    name: String,
    ordering: String,
    rows: usize,
    entries: usize,
    /// Iterations to each tolerance by method; none where it failed.
    iterations: Vec<Option<[usize; 2]>>,
    /// Seconds of training over those of a factorization, for NN, NNN and by solving.
    factorizations: [f64; 3],
}

pub(super) fn run(options: &Options) -> Result<(), Failure> {
    let head = Head::of_run(1, &[])?;
    let folder = folder::of_results(options.output.as_deref(), &head, "learn-paper")?;
    // What a run into this folder that was ended has left.
    let mut record = earlier(&path(&folder, "paper"))?.unwrap_or(Record { head, rows: Vec::new() });
    for name in names(options, "spd/", 1000)? {
        if record.rows.iter().any(|row| row.name == name) {
            continue;
        }
        let given = paired(&matrix(options.catalogue.as_deref(), &name)?)?;
        for ordering in [Ordering::Natural, Ordering::Rcm] {
            let a = given.view().permute_symmetric(&order(given.pattern(), ordering)?)?;
            let row = compare(options, &name, ordering, &a)?;
            eprintln!("{name} {ordering}: {:?} {:.1?}", row.iterations, row.factorizations);
            record.rows.push(row);
        }
        folder::write(&folder, "paper", &record, &markdown(&record))?;
    }
    println!("{}", markdown(&record));
    Ok(())
}

fn compare(options: &Options, name: &str, ordering: Ordering, a: &Csr<f64>) -> Result<Row, Failure> {
    let b = random_vector(a.nrows());
    let plain = Solver::new().method(Method::Cg).recover(false).threads(options.threads);
    let solver = plain.rtol(TOLERANCES[1]).max_iterations(MAX_ITERATIONS);
    let with = |solver: &Solver, kind: PrecondSpec, source: &Csr<f64>| {
        let mut x = vec![0.0; a.nrows()];
        let solver = solver.clone().preconditioner(kind);
        solver.prepare_with(a, source).and_then(|prepared| prepared.solve(a, &b, &mut x))
    };
    let mut iterations = Vec::new();
    for kind in [PrecondSpec::none(), PrecondSpec::ic(0)] {
        iterations.push(reached(with(&solver, kind, a)));
    }
    iterations.push(reached(scaled(&solver, a, &b)?));
    iterations.push(reached(with(&solver, PrecondSpec::jacobi(), a)));
    let shifted = with(&solver.clone().shift(SHIFT), PrecondSpec::ic(0), a);
    let factorization = factorization_seconds(&solver, a)?;
    iterations.push(reached(shifted));
    let space = Threads::new(options.threads);
    let mut factorizations = [0.0; 3];
    let n = a.nrows();
    for (training, cost) in
        [Training::paper(n), Training::paper_normalised(n)].iter().zip(&mut factorizations)
    {
        let started = Instant::now();
        let trained = train::<f64>(&space, a, a.pattern(), training, |_| ControlFlow::Continue(()))?;
        *cost = started.elapsed().as_secs_f64() / factorization;
        iterations.push(reached(with(&solver, PrecondSpec::ssor(1.0), &trained.matrix())));
    }
    let shifts =
        SHIFTS.iter().map(|&shift| reached(with(&solver.clone().shift(shift), PrecondSpec::ic(0), a)));
    iterations.push(shifts.flatten().min_by_key(|found| found[1]));
    let started = Instant::now();
    let (p, _) = train_by_solving(&solver.clone().recover(true), a, ROUNDS, |_| ControlFlow::Continue(()))?;
    factorizations[2] = started.elapsed().as_secs_f64() / factorization;
    iterations.push(reached(with(&solver, PrecondSpec::ssor(1.0), &p)));
    let (name, ordering) = (name.to_string(), ordering.to_string());
    Ok(Row { name, ordering, rows: n, entries: a.nnz(), iterations, factorizations })
}

/// The system scaled to a unit diagonal, with IC(0).
fn scaled(solver: &Solver, a: &Csr<f64>, b: &[f64]) -> Result<Result<Report, SolveError>, Failure> {
    let scale: Vec<f64> = a.diagonal()?.iter().map(|d| d.sqrt()).collect();
    let mut scaled = a.clone();
    let mut k = 0;
    for i in 0..a.nrows() {
        for &j in a.pattern().row(i) {
            scaled.values_mut()[k] /= scale[i] * scale[j as usize];
            k += 1;
        }
    }
    let b: Vec<f64> = b.iter().zip(&scale).map(|(b, s)| b / s).collect();
    let solver = solver.clone().preconditioner(PrecondSpec::ic(0));
    Ok(solver.solve(&scaled, &b).map(|solution| solution.report))
}

/// Of the shifted IC(0): the least of three.
fn factorization_seconds(solver: &Solver, a: &Csr<f64>) -> Result<f64, Failure> {
    let solver = solver.clone().recover(true).shift(SHIFT).preconditioner(PrecondSpec::ic(0));
    let mut prepared = solver.prepare(a)?;
    let mut least = f64::INFINITY;
    for _ in 0..3 {
        let started = Instant::now();
        prepared.refactor(a)?;
        least = least.min(started.elapsed().as_secs_f64());
    }
    Ok(least)
}

/// Iterations to both tolerances, of a solve that converged.
fn reached(solved: Result<Report, SolveError>) -> Option<[usize; 2]> {
    let report = solved.ok().filter(|report| report.outcome == Outcome::Converged)?;
    let at =
        |tolerance: f64| report.history.iter().position(|&r| r <= tolerance).unwrap_or(report.iterations);
    Some(TOLERANCES.map(at))
}

fn markdown(record: &Record) -> String {
    let mut text = format!(
        "{}\nIterations of conjugate gradients to 1e-5 and to 1e-7, random b, at most 10,000; – where there is no factor or no convergence. Scaled: to a unit diagonal; shifted: by 0.2. NN and NNN are the paper's trained factors, seed 0. Best shift: the fewest iterations of IC(0) with nine shifts from 0 to 1. By solving: trained in at most ten rounds on CG's own directions (`learned`). NFacts: seconds of training over those of the shifted IC(0). The paper's averages, on other matrices: {PAPER}.\n",
        record.head.markdown("Trained factors by the paper's method")
    );
    let mut orderings: Vec<&str> = record.rows.iter().map(|row| row.ordering.as_str()).collect();
    orderings.dedup();
    orderings.sort_unstable();
    orderings.dedup();
    for ordering in orderings {
        let rows: Vec<&Row> = record.rows.iter().filter(|row| row.ordering == ordering).collect();
        text += &format!("\n## Order: {ordering}\n\n{}\n{}", summary(&rows), of_matrices(&rows));
    }
    text
}

/// Averages over the matrices where all but CG and the two that break down converge, and failures of each.
fn summary(rows: &[&Row]) -> String {
    let compared = [0, 3, 4, 5, 6, 7, 8];
    let all: Vec<&&Row> =
        rows.iter().filter(|row| compared.iter().all(|&m| row.iterations[m].is_some())).collect();
    let cells = |(m, name): (usize, &&str)| {
        let mean = |t: usize| {
            let found: Vec<f64> = all.iter().filter_map(|row| Some(row.iterations[m]?[t] as f64)).collect();
            (found.len() == all.len() && !all.is_empty())
                .then(|| found.iter().sum::<f64>() / found.len() as f64)
        };
        let failed = rows.iter().filter(|row| row.iterations[m].is_none()).count();
        let best = |row: &&&Row| {
            let own = row.iterations[m].map_or(usize::MAX, |found| found[1]);
            own < usize::MAX && row.iterations.iter().flatten().all(|found| own <= found[1])
        };
        let wins = rows.iter().filter(best).count();
        vec![name.to_string(), digits(mean(0)), digits(mean(1)), failed.to_string(), wins.to_string()]
    };
    let columns = ["method", "mean to 1e-5", "mean to 1e-7", "failures", "fewest iterations"];
    let mean =
        |k: usize| rows.iter().map(|row| row.factorizations[k]).sum::<f64>() / rows.len().max(1) as f64;
    format!(
        "{}\nMeans over the {} of {} matrices where CG, Jacobi, shifted, NN, NNN, the best shift and the factor trained by solving converge. NFacts in the mean: NN {}, NNN {} (the paper's 69.3), by solving {}.\n",
        table(&columns, METHODS.iter().enumerate().map(cells)),
        all.len(),
        rows.len(),
        digits(Some(mean(0))),
        digits(Some(mean(1))),
        digits(Some(mean(2)))
    )
}

fn of_matrices(rows: &[&Row]) -> String {
    let mut columns = vec!["matrix", "rows", "entries"];
    columns.extend(METHODS);
    columns.push("NFacts NN, NNN, by solving");
    let cells = |row: &&Row| {
        let mut cells = vec![row.name.clone(), grouped(row.rows as u64), grouped(row.entries as u64)];
        cells.extend(row.iterations.iter().map(|found| match found {
            Some([first, second]) => format!("{first}, {second}"),
            None => "–".into(),
        }));
        cells.push(row.factorizations.map(|f| digits(Some(f))).join(", "));
        cells
    };
    table(&columns, rows.iter().map(cells))
}
