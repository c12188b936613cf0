//! Whether every definite matrix gets a preconditioner that needs no more iterations than Jacobi: `learned` as a user asks for it. Where neither converges,
//! residuals are compared.

use super::{Options, matrix, names};
use crate::Failure;
use crate::folder::{self, Head, grouped, table};
use krylith::gallery::random_vector;
use krylith::{Csr, Method, Outcome, PrecondSpec, Solver};
use serde::Serialize;

const ROUNDS: usize = 10;
const MAX_ITERATIONS: usize = 10_000;

#[derive(Debug, Serialize)]
struct Record {
    head: Head,
    rows: Vec<Row>,
}

#[derive(Debug, Serialize)]
struct Row {
    name: String,
    rows: usize,
    jacobi: Ended,
    learned: Ended,
}

#[derive(Debug, Serialize)]
struct Ended {
    outcome: String,
    iterations: usize,
    relative_residual: f64,
}

impl Row {
    /// Fewer iterations, or as many; a smaller residual where neither converges.
    fn is_no_worse(&self) -> bool {
        let converged = |ended: &Ended| ended.outcome == Outcome::Converged.name();
        match (converged(&self.jacobi), converged(&self.learned)) {
            (true, true) => self.learned.iterations <= self.jacobi.iterations,
            (false, false) => self.learned.relative_residual <= self.jacobi.relative_residual,
            (jacobi, _) => !jacobi,
        }
    }
}

pub(super) fn run(options: &Options) -> Result<(), Failure> {
    let head = Head::of_run(1, &[])?;
    let folder = folder::of_results(options.output.as_deref(), &head, "learn-safe")?;
    let mut record = Record { head, rows: Vec::new() };
    for name in names(options, "spd/", 1)? {
        let a = matrix(options.catalogue.as_deref(), &name)?;
        let row = compare(options, name, &a)?;
        eprintln!("{}: {:?} {:?}", row.name, row.jacobi, row.learned);
        record.rows.push(row);
        folder::write(&folder, "safe", &record, &markdown(&record))?;
    }
    println!("{}", markdown(&record));
    Ok(())
}

fn compare(options: &Options, name: String, a: &Csr<f64>) -> Result<Row, Failure> {
    let b = random_vector(a.nrows());
    // CG alone: no complete factor where it is slow.
    let solver = Solver::new().method(Method::Cg).threads(options.threads).max_iterations(MAX_ITERATIONS);
    let with = |kind: PrecondSpec| -> Result<Ended, Failure> {
        let report = solver.clone().preconditioner(kind).solve(a, &b)?.report;
        let (outcome, iterations) = (report.outcome.name().into(), report.iterations);
        Ok(Ended { outcome, iterations, relative_residual: report.relative_residual })
    };
    let (jacobi, learned) = (with(PrecondSpec::jacobi())?, with(PrecondSpec::learned(ROUNDS))?);
    Ok(Row { name, rows: a.nrows(), jacobi, learned })
}

fn markdown(record: &Record) -> String {
    let good = record.rows.iter().filter(|row| row.is_no_worse()).count();
    let cell = |ended: &Ended| match ended.outcome == Outcome::Converged.name() {
        true => ended.iterations.to_string(),
        false => format!("{}: {:.1e}", ended.outcome.replace('_', " "), ended.relative_residual),
    };
    let cells = |row: &Row| {
        let verdict = if row.is_no_worse() { "" } else { "more" };
        vec![
            row.name.clone(),
            grouped(row.rows as u64),
            cell(&row.jacobi),
            cell(&row.learned),
            verdict.into(),
        ]
    };
    format!(
        "{}\nIterations of CG to 1e-8, random b, at most 10,000, with Jacobi and with `learned({ROUNDS})`. `learned` needs no more iterations, or leaves no larger residual where neither converges, on {good} of {} matrices.\n\n{}",
        record.head.markdown("Trained factors never fail"),
        record.rows.len(),
        table(&["matrix", "rows", "Jacobi", "learned", ""], record.rows.iter().map(cells))
    )
}
