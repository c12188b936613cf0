//! Time per iteration of plain, collecting and trained solves in every storage.
//!
//! On star-shaped grids IC(0) keeps only a diagonal, and CG needs no products with A; a trained factor has triangles of its own and loses both.

use super::{Options, matrix};
use crate::Failure;
use crate::run::table::{digits, grouped, table};
use crate::run::{Kept, Nothing, Output, Run};
use krylith::gallery::random_vector;
use krylith::learn::{Learned, Learning, train_by_solving};
use krylith::{Csr, Layout, Method, PrecondSpec, Report, SolveError, Solver};
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;
use std::time::Instant;

#[derive(Debug, Serialize, Deserialize)]
struct Row {
    problem: String,
    rows: usize,
    layout: String,
    /// Milliseconds of an iteration: IC(0), IC(0) while pairs are collected, trained.
    milliseconds: [f64; 3],
    iterations: [usize; 2],
    /// As the guard predicts them: IC(0), trained.
    predicted: [Option<f64>; 2],
}

pub(super) fn run(options: &Options) -> Result<(), Failure> {
    let output = Output::folder(options.output.as_deref(), "learn-storages", "storages");
    let mut run = Run::<Row>::begin(output, Nothing {}, ROUNDS, &[options.threads])?;
    let mut names = options.problems.clone();
    if names.is_empty() {
        names.extend(["poisson2d:1000", "poisson3d:100", "hpcg:64", "fem2d:316"].map(String::from));
    }
    for name in names {
        let a = matrix(options.catalogue.as_deref(), &name)?;
        // Its numbers do not matter for the time.
        let solver = Solver::new().method(Method::Cg).threads(options.threads).rtol(1e-3);
        let (p, _) = train_by_solving(&solver, &a, 1, |_| ControlFlow::Continue(()))?;
        for (layout, word) in LAYOUTS {
            if run.has(|row| row.problem == name && row.layout == word) {
                continue;
            }
            let solver = solver.clone().rtol(1e-8).layout(layout);
            let row = measure(&solver, (&name, word), (&a, &p))?;
            eprintln!("{row:?}");
            run.add([row])?;
        }
    }
    run.end()
}

const ROUNDS: usize = 3;
const LAYOUTS: [(Layout, &str); 3] =
    [(Layout::Auto, "auto"), (Layout::Slices, "slices"), (Layout::Rows, "rows")];

/// Solves from the guess in x.
type Solve<'a> = dyn FnMut(&mut [f64]) -> Result<Report, SolveError> + 'a;

fn measure(
    solver: &Solver,
    (problem, layout): (&str, &str),
    (a, p): (&Csr<f64>, &Csr<f64>),
) -> Result<Row, Failure> {
    let ic0 = solver.clone().preconditioner(PrecondSpec::ic(0));
    let plain = ic0.prepare(a)?;
    let trained = solver.clone().preconditioner(PrecondSpec::ssor(1.0)).prepare_with(a, p)?;
    let mut learning = Learning::default();
    learning.share = f64::INFINITY;
    let mut milliseconds = [f64::INFINITY; 3];
    let mut iterations = [0; 2];
    let b = random_vector(a.nrows());
    for _ in 0..ROUNDS {
        // The first solve of a sequence collects; it has nothing to learn from yet.
        let mut sequence = Learned::new(&ic0, a, learning)?;
        let solves: [&mut Solve<'_>; 3] =
            [&mut |x| plain.solve(a, &b, x), &mut |x| sequence.solve(a, &b, x), &mut |x| {
                trained.solve(a, &b, x)
            }];
        for (k, solve) in solves.into_iter().enumerate() {
            let mut x = vec![0.0; a.nrows()];
            let started = Instant::now();
            let count = solve(&mut x)?.require_converged()?.iterations.max(1);
            milliseconds[k] = milliseconds[k].min(1e3 * started.elapsed().as_secs_f64() / count as f64);
            iterations[k / 2] = count;
        }
    }
    let predicted = [&plain, &trained].map(|prepared| Some(1e3 * prepared.predicted_iteration(a)?));
    let (problem, layout) = (problem.into(), layout.into());
    Ok(Row { problem, rows: a.nrows(), layout, milliseconds, iterations, predicted })
}

impl Kept for Row {
    type Facts = Nothing;

    fn text(run: &Run<Row>) -> String {
        let columns = [
            "problem",
            "rows",
            "layout",
            "IC(0), ms",
            "collecting, ms",
            "trained, ms",
            "trained / IC(0)",
            "the same, predicted",
        ];
        let cells = |row: &Row| {
            let mut cells = vec![row.problem.clone(), grouped(row.rows), row.layout.clone()];
            cells.extend(row.milliseconds.map(|ms| digits(Some(ms))));
            cells.push(digits(Some(row.milliseconds[2] / row.milliseconds[0])));
            cells.push(digits((|| Some(row.predicted[1]? / row.predicted[0]?))()));
            cells
        };
        format!(
            "{}\nMilliseconds per iteration of CG, set-up apart, the certificate included; the least of {ROUNDS} rounds in turns. Collecting: the first solve of a sequence that learns, which keeps up to 128 pairs and always forms A p.\n\n{}",
            run.head.markdown("Time per iteration of trained factors"),
            table(&columns, run.rows.iter().map(cells))
        )
    }
}
