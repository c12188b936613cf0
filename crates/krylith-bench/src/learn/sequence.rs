//! Wall time of long sequences: learning, its training included, against the best fixed member of the IC and MIC family in its fast storage.
//!
//! Every member solves a few systems; the fastest then solves the whole sequence, in turns with the one that learns, each with the same right-hand sides.

use super::{Options, matrix, rhs};
use crate::Failure;
use crate::run::table::{digits, grouped, table};
use crate::run::{Kept, Output, Run};
use krylith::learn::{Learned, Learning};
use krylith::{Csr, Method, Solver};
use serde::{Deserialize, Serialize};
use std::time::Instant;

const MEMBERS: [&str; 8] = ["jacobi", "dic", "ic0", "ic(1)", "ic(2)", "mic0", "mic(1)", "mic(2)"];
/// Solves of every member before the fastest is taken.
const TRIAL: usize = 3;
/// Seconds of the solves that it is tried with, at least: a short one is timed often.
const TRIAL_SECONDS: f64 = 0.5;

#[derive(Debug, Serialize, Deserialize)]
struct Solves {
    /// Of each sequence.
    solves: usize,
}

#[derive(Debug, Serialize, Deserialize)]
struct Row {
    problem: String,
    rows: usize,
    /// Seconds of set-up, of a solve in the trial, and iterations of the last, by member.
    members: Vec<(String, Result<[f64; 3], String>)>,
    fixed: Total,
    learned: Total,
    training_seconds: f64,
    report: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct Total {
    name: String,
    seconds: f64,
    iterations: usize,
    last_iterations: usize,
}

pub(super) fn run(options: &Options) -> Result<(), Failure> {
    let output = Output::folder(options.output.as_deref(), "learn-sequence", "sequence");
    let mut run = Run::<Row>::begin(output, Solves { solves: options.solves }, 1, &[options.threads])?;
    let mut names = options.problems.clone();
    if names.is_empty() {
        names.extend(["poisson2d:200", "fem2d:316", "thermal:100", "ecology:300"].map(String::from));
    }
    for name in names {
        if run.has(|row| row.problem == name) {
            continue;
        }
        let a = matrix(options.catalogue.as_deref(), &name)?;
        let row = compare(options, name, &a)?;
        eprintln!("{row:?}");
        run.add([row])?;
    }
    run.end()
}

fn trial(solver: &Solver, a: &Csr<f64>) -> Result<[f64; 3], Failure> {
    let started = Instant::now();
    let prepared = solver.prepare(a)?;
    let set_up = started.elapsed().as_secs_f64();
    let (mut least, mut iterations) = (f64::INFINITY, 0);
    let solving = Instant::now();
    let mut k = 0;
    while k < TRIAL || solving.elapsed().as_secs_f64() < TRIAL_SECONDS {
        k += 1;
        let (b, mut x) = (rhs(a.nrows(), k), vec![0.0; a.nrows()]);
        let started = Instant::now();
        iterations = prepared.solve(a, &b, &mut x)?.require_converged()?.iterations;
        least = least.min(started.elapsed().as_secs_f64());
    }
    Ok([set_up, least, iterations as f64])
}

fn compare(options: &Options, problem: String, a: &Csr<f64>) -> Result<Row, Failure> {
    let solver = Solver::new().method(Method::Cg).threads(options.threads);
    let mut members = Vec::new();
    for name in MEMBERS {
        let found = trial(&solver.clone().preconditioner(name.parse()?), a).map_err(|e| e.to_string());
        members.push((name.to_string(), found));
    }
    let seconds = |(_, found): &(String, Result<[f64; 3], String>)| {
        found.as_ref().map_or(f64::INFINITY, |[set_up, solve, _]| set_up + options.solves as f64 * solve)
    };
    let best = members.iter().min_by(|x, y| seconds(x).total_cmp(&seconds(y))).ok_or("no member")?.0.clone();
    let started = Instant::now();
    let prepared = solver.clone().preconditioner(best.parse()?).prepare(a)?;
    let mut fixed =
        Total { name: best, seconds: started.elapsed().as_secs_f64(), iterations: 0, last_iterations: 0 };
    let started = Instant::now();
    let solver = solver.preconditioner(options.precond.parse()?);
    let mut sequence = Learned::new(&solver, a, Learning::default())?;
    let name = format!("learned from {}", options.precond);
    let mut learned =
        Total { name, seconds: started.elapsed().as_secs_f64(), iterations: 0, last_iterations: 0 };
    let mut x = vec![0.0; a.nrows()];
    for k in 1..=options.solves {
        let b = rhs(a.nrows(), k);
        for is_fixed in [true, false] {
            x.fill(0.0);
            let started = Instant::now();
            let report =
                if is_fixed { prepared.solve(a, &b, &mut x)? } else { sequence.solve(a, &b, &mut x)? };
            let total = if is_fixed { &mut fixed } else { &mut learned };
            total.seconds += started.elapsed().as_secs_f64();
            total.last_iterations = report.require_converged()?.iterations;
            total.iterations += total.last_iterations;
        }
    }
    let (report, training_seconds) = (sequence.report().to_string(), sequence.report().seconds);
    Ok(Row { problem, rows: a.nrows(), members, fixed, learned, training_seconds, report })
}

impl Kept for Row {
    type Facts = Solves;

    fn text(run: &Run<Row>) -> String {
        let columns = [
            "problem",
            "rows",
            "best fixed",
            "its seconds",
            "its iterations, last",
            "learned, seconds",
            "of them training",
            "iterations, last",
            "learned / fixed",
        ];
        let cells = |row: &Row| {
            let Row { problem, fixed, learned, .. } = row;
            vec![
                problem.clone(),
                grouped(row.rows),
                fixed.name.clone(),
                digits(Some(fixed.seconds)),
                fixed.last_iterations.to_string(),
                digits(Some(learned.seconds)),
                digits(Some(row.training_seconds)),
                learned.last_iterations.to_string(),
                digits(Some(learned.seconds / fixed.seconds)),
            ]
        };
        let members = |row: &Row| {
            let mut cells = vec![row.problem.clone()];
            cells.extend(row.members.iter().map(|(_, found)| match found {
                Ok([set_up, solve, iterations]) => format!("{set_up:.3} + {solve:.3}, {iterations}"),
                Err(why) => why.clone(),
            }));
            cells
        };
        let mut names = vec!["problem"];
        names.extend(MEMBERS);
        format!(
            "{}\n{} solves with random right-hand sides, 1e-8, set-up and training included, both in turns.\n\n{}\nSeconds of set-up and of a solve, and iterations, of every member, the least of {TRIAL} solves, or of as many as take {TRIAL_SECONDS} s:\n\n{}",
            run.head.markdown("Sequences that learn against fixed factors"),
            run.facts.solves,
            table(&columns, run.rows.iter().map(cells)),
            table(&names, run.rows.iter().map(members))
        )
    }
}
