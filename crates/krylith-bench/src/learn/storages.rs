//! Time per iteration of plain, collecting and trained solves in every storage.
//!
//! On star-shaped grids IC(0) keeps only a diagonal, and CG needs no products with A; a trained factor has triangles of its own and loses both.

use super::{Options, matrix};
use crate::Failure;
use crate::folder::{self, Head, digits, grouped, table};
use krylith::gallery::random_vector;
use krylith::learn::train_by_solving;
use krylith::observe::{Direction, Iteration, Observer};
use krylith::solver::{Layout, Prepared, Watch};
use krylith::{Csr, Method, PrecondSpec, Solver};
use serde::Serialize;
use std::ops::ControlFlow;
use std::time::Instant;

#[derive(Debug, Serialize)]
struct Record {
    head: Head,
    rows: Vec<Row>,
}

#[derive(Debug, Serialize)]
struct Row {
    problem: String,
    rows: usize,
    layout: String,
    /// Milliseconds of an iteration: IC(0), IC(0) whose directions are copied, trained, trained whose directions are copied.
    milliseconds: [f64; 4],
    iterations: [usize; 2],
    /// As the guard predicts them: IC(0), trained.
    predicted: [f64; 2],
}

/// Copies every direction, as a sequence that learns does while it has room.
struct Copying([Vec<f32>; 2]);

impl Observer<f64> for Copying {
    fn iterated(&mut self, _: &Iteration<f64>) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn wants_directions(&self) -> bool {
        true
    }

    fn direction(&mut self, direction: &Direction<'_, f64, [f64]>) {
        for (to, from) in self.0.iter_mut().zip([direction.p, direction.a_p]) {
            to.clear();
            to.extend(from.iter().map(|&v| v as f32));
        }
    }
}

pub(super) fn run(options: &Options) -> Result<(), Failure> {
    let head = Head::of_run(ROUNDS, &[options.threads])?;
    let folder = folder::of_results(options.output.as_deref(), &head, "learn-storages")?;
    let mut record = Record { head, rows: Vec::new() };
    let mut names = options.problems.clone();
    if names.is_empty() {
        names.extend(["poisson2d:1000", "poisson3d:100", "hpcg:64", "fem2d:316"].map(String::from));
    }
    for name in names {
        let a = matrix(options.catalogue.as_deref(), &name)?;
        // Its numbers do not matter for the time.
        let solver = Solver::new().method(Method::Cg).threads(options.threads).rtol(1e-3);
        let (p, _) = train_by_solving(&solver, &a, 1, |_| ())?;
        for layout in [Layout::Auto, Layout::Slices, Layout::Rows] {
            let row = measure(&solver.clone().rtol(1e-8).layout(layout), &name, layout, (&a, &p))?;
            eprintln!("{row:?}");
            record.rows.push(row);
            folder::write(&folder, "storages", &record, &markdown(&record))?;
        }
    }
    println!("{}", markdown(&record));
    Ok(())
}

const ROUNDS: usize = 3;

fn measure(
    solver: &Solver,
    problem: &str,
    layout: Layout,
    (a, p): (&Csr<f64>, &Csr<f64>),
) -> Result<Row, Failure> {
    let plain = solver.clone().preconditioner(PrecondSpec::ic(0)).prepare(a)?;
    let trained = solver.clone().preconditioner(PrecondSpec::ssor(1.0)).prepare_with(a, p)?;
    let mut milliseconds = [f64::INFINITY; 4];
    let mut iterations = [0; 2];
    for _ in 0..ROUNDS {
        for (k, least) in milliseconds.iter_mut().enumerate() {
            let prepared = [&plain, &trained][k / 2];
            let (seconds, count) = timed(prepared, a, k % 2 == 1)?;
            *least = least.min(1e3 * seconds / count as f64);
            iterations[k / 2] = count;
        }
    }
    let predicted =
        [&plain, &trained].map(|prepared| 1e3 * prepared.predicted_iteration(a).unwrap_or(f64::NAN));
    let layout = format!("{layout:?}").to_lowercase();
    Ok(Row { problem: problem.into(), rows: a.nrows(), layout, milliseconds, iterations, predicted })
}

fn timed(prepared: &Prepared<Csr<f64>>, a: &Csr<f64>, collecting: bool) -> Result<(f64, usize), Failure> {
    let (b, mut x) = (random_vector(a.nrows()), vec![0.0; a.nrows()]);
    let mut copying = Copying(Default::default());
    let watch = Watch { observer: collecting.then_some(&mut copying as &mut dyn Observer<f64>), stop: None };
    let started = Instant::now();
    let report = prepared.solve_watched(a, &b, &mut x, watch)?;
    Ok((started.elapsed().as_secs_f64(), report.iterations.max(1)))
}

fn markdown(record: &Record) -> String {
    let columns = [
        "problem",
        "rows",
        "layout",
        "IC(0), ms",
        "collecting, ms",
        "trained, ms",
        "trained, collecting, ms",
        "trained / IC(0)",
        "the same, predicted",
    ];
    let cells = |row: &Row| {
        let mut cells = vec![row.problem.clone(), grouped(row.rows as u64), row.layout.clone()];
        cells.extend(row.milliseconds.map(|ms| digits(Some(ms))));
        cells.push(digits(Some(row.milliseconds[2] / row.milliseconds[0])));
        cells.push(digits(Some(row.predicted[1] / row.predicted[0])));
        cells
    };
    format!(
        "{}\nMilliseconds per iteration of CG, set-up apart, the certificate included; the least of {ROUNDS} rounds in turns. Collecting: every direction and its product are copied in f32.\n\n{}",
        record.head.markdown("Time per iteration of trained factors"),
        table(&columns, record.rows.iter().map(cells))
    )
}
