//! A sequence of solves with one matrix and random right-hand sides, that learns.

use super::{Options, matrix, names, rhs};
use crate::Failure;
use crate::run::table::{digits, geometric_mean, table};
use crate::run::{Kept, Nothing, Output, Run};
use krylith::learn::{Learned, Learning, LearningReport};
use krylith::{Method, Solver};
use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize, Deserialize)]
struct Row {
    problem: String,
    rows: usize,
    result: Result<Sequence, String>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Sequence {
    iterations: Vec<usize>,
    /// Of the last solve, with the preconditioner that was given.
    without: usize,
    rounds: usize,
    accepted: usize,
    probe_iterations: [Option<f64>; 2],
    training_seconds: f64,
    solve_seconds: f64,
}

pub(super) fn run(options: &Options) -> Result<(), Failure> {
    let output = Output::folder(options.output.as_deref(), "learn-online", "online");
    let mut run = Run::<Row>::begin(output, Nothing {}, 1, &[])?;
    let mut names = names(options, "spd/", 2000)?;
    if names.is_empty() {
        names.extend(["poisson2d:200", "poisson2d:1000", "fem2d:316"].map(String::from));
    }
    for name in names {
        if run.has(|row| row.problem == name) {
            continue;
        }
        let a = matrix(options.catalogue.as_deref(), &name)?;
        let result = sequence(options, &a).map_err(|error| error.to_string());
        match &result {
            Ok(sequence) => eprintln!("{name}: {:?}", sequence.iterations),
            Err(why) => eprintln!("{name}: {why}"),
        }
        run.add([Row { problem: name, rows: a.nrows(), result }])?;
    }
    run.end()
}

fn sequence(options: &Options, a: &krylith::Csr<f64>) -> Result<Sequence, Failure> {
    let solver = Solver::new().method(Method::Cg).preconditioner(options.precond.parse()?);
    let mut learning = Learning::default();
    learning.alpha = options.alpha.unwrap_or(learning.alpha);
    learning.passes = options.passes.unwrap_or(learning.passes);
    learning.pairs = options.pairs.unwrap_or(learning.pairs);
    let fixed = solver.clone().threads(options.threads).prepare(a)?;
    let mut without = 0;
    let mut learned = Learned::new(&solver.threads(options.threads), a, learning)?;
    let n = a.nrows();
    let mut iterations = Vec::new();
    for k in 1..=options.solves {
        let b = rhs(n, k);
        let mut x = vec![0.0; n];
        let report = learned.solve(a, &b, &mut x)?;
        report.require_converged()?;
        iterations.push(report.iterations);
        if k == options.solves {
            x.fill(0.0);
            without = fixed.solve(a, &b, &mut x)?.require_converged()?.iterations;
        }
    }
    let LearningReport { rounds, accepted, probe_iterations, seconds, solve_seconds, .. } = *learned.report();
    Ok(Sequence {
        iterations,
        without,
        rounds,
        accepted,
        probe_iterations: probe_iterations.map(|k| Some(k).filter(|k| k.is_finite())),
        training_seconds: seconds,
        solve_seconds,
    })
}

impl Kept for Row {
    type Facts = Nothing;

    fn text(run: &Run<Row>) -> String {
        let columns = [
            "problem",
            "rows",
            "iterations",
            "the last without learning",
            "ratio",
            "rounds",
            "accepted",
            "training, s",
            "solves, s",
        ];
        let cells = |row: &Row| {
            let mut cells = vec![row.problem.clone(), row.rows.to_string()];
            match &row.result {
                Ok(s) => {
                    let text: Vec<String> = s.iterations.iter().map(usize::to_string).collect();
                    let last = s.iterations[s.iterations.len() - 1];
                    cells.extend([
                        text.join(" "),
                        s.without.to_string(),
                        digits(Some(s.without as f64 / last as f64)),
                        s.rounds.to_string(),
                    ]);
                    cells.extend([
                        s.accepted.to_string(),
                        digits(Some(s.training_seconds)),
                        digits(Some(s.solve_seconds)),
                    ]);
                }
                Err(why) => cells.push(why.clone()),
            }
            cells
        };
        let text = "A sequence of solves with one matrix and random right-hand sides, 1e-8. The factor is trained on the pairs (p, A p) of the solve before, and taken where a probe is faster with it.";
        format!(
            "{}\n{text}\n\n{}\n{}",
            run.head.markdown("Learning while solving"),
            summary(&run.rows),
            table(&columns, run.rows.iter().map(cells))
        )
    }
}

/// Iterations below which a sequence has little to learn.
const LEAST: usize = 20;

/// How many of the matrices that need some iterations gain, and the worst that happens to any.
fn summary(rows: &[Row]) -> String {
    let ratio = |row: &Row| {
        let found = row.result.as_ref().ok()?;
        Some((found.iterations[0], found.without as f64 / *found.iterations.last()? as f64))
    };
    let all: Vec<(usize, f64)> = rows.iter().filter_map(ratio).collect();
    let long: Vec<f64> = all.iter().filter(|(first, _)| *first >= LEAST).map(|(_, ratio)| *ratio).collect();
    let share = |least: f64| {
        100.0 * long.iter().filter(|&&ratio| ratio >= least).count() as f64 / long.len().max(1) as f64
    };
    let worst = all.iter().map(|(_, ratio)| *ratio).fold(f64::INFINITY, f64::min);
    format!(
        "{} sequences end, of {}. Of the {} whose first solve takes {LEAST} iterations or more, {:.0} % take 1.2 times fewer in the last than without learning, {:.0} % 1.8 times; {} in the geometric mean. The least ratio of any is {}.\n",
        all.len(),
        rows.len(),
        long.len(),
        share(1.2),
        share(1.8),
        digits(geometric_mean(&long).or(Some(1.0))),
        digits(Some(worst))
    )
}
