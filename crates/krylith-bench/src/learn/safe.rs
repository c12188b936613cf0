//! Whether every definite matrix gets a preconditioner that needs no more iterations than Jacobi: `learned` as a user asks for it. Where neither converges,
//! residuals are compared.

use super::{Options, matrix, names};
use crate::Failure;
use crate::run::record::number;
use crate::run::table::{grouped, table};
use crate::run::{Kept, Nothing, Output, Run};
use krylith::gallery::random_vector;
use krylith::{Csr, Method, Outcome, PrecondSpec, Solver};
use serde::{Deserialize, Serialize};

const ROUNDS: usize = 10;
const MAX_ITERATIONS: usize = 10_000;

#[derive(Debug, Serialize, Deserialize)]
struct Row {
    name: String,
    rows: usize,
    jacobi: Ended,
    learned: Ended,
}

#[derive(Debug, Serialize, Deserialize)]
struct Ended {
    outcome: String,
    iterations: usize,
    #[serde(deserialize_with = "number")]
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
    let output = Output::folder(options.output.as_deref(), "learn-safe", "safe");
    let mut run = Run::<Row>::begin(output, Nothing {}, 1, &[])?;
    for name in names(options, "spd/", 1)? {
        if run.has(|row| row.name == name) {
            continue;
        }
        let a = matrix(options.catalogue.as_deref(), &name)?;
        let row = compare(options, name, &a)?;
        eprintln!("{}: {:?} {:?}", row.name, row.jacobi, row.learned);
        run.add([row])?;
    }
    run.end()
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

impl Kept for Row {
    type Facts = Nothing;

    fn text(run: &Run<Row>) -> String {
        let good = run.rows.iter().filter(|row| row.is_no_worse()).count();
        let cell = |ended: &Ended| match ended.outcome == Outcome::Converged.name() {
            true => ended.iterations.to_string(),
            false => format!("{}: {:.1e}", ended.outcome.replace('_', " "), ended.relative_residual),
        };
        let cells = |row: &Row| {
            let verdict = if row.is_no_worse() { "" } else { "more" };
            vec![row.name.clone(), grouped(row.rows), cell(&row.jacobi), cell(&row.learned), verdict.into()]
        };
        format!(
            "{}\nIterations of CG to 1e-8, random b, at most 10,000, with Jacobi and with `learned({ROUNDS})`. `learned` needs no more iterations, or leaves no larger residual where neither converges, on {good} of {} matrices.\n\n{}",
            run.head.markdown("Trained factors never fail"),
            run.rows.len(),
            table(&["matrix", "rows", "Jacobi", "learned", ""], run.rows.iter().map(cells))
        )
    }
}
