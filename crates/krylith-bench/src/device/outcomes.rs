//! Every preconditioner that devices have, on gallery problems and on matrices of a catalogue: outcomes, iterations and bits beside
//! those of threads by rows, in the mode with the order of operations of threads.
//!
//! An outcome counts as equal within a tenth of the limit of iterations. Iterations may differ by 1 below 100 and by 5 % above, with BiCGStab by
//! 20 %. Bits are those of x; approximate inverses and complete factors have other orders of operations on threads.

use super::{Contestant, Options, by_rows, contestants, rhs};
use crate::Failure;
use crate::catalogue;
use crate::run::table::table;
use crate::run::{Kept, Nothing, Output, Run};
use krylith::gallery::Problem;
use krylith::precond::registry::preconditioners;
use krylith::{Csr, Method, Outcome, Report, SolveError, io};
use krylith_gpu::{KernelShape, OnDevice};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A tenth of the rows of the usual problems.
const PROBLEMS: [&str; 5] = ["poisson2d:316", "poisson3d:46", "hpcg:37", "convection3d:46", "jump3d:46"];
/// Rows of matrices of the catalogue.
const ROWS: std::ops::RangeInclusive<usize> = 200..=3000;
const LIMIT: usize = 500;

/// One preconditioner on one matrix on one device.
#[derive(Debug, Serialize, Deserialize)]
struct Row {
    matrix: String,
    method: String,
    preconditioner: String,
    place: String,
    outcomes: [String; 2],
    iterations: [usize; 2],
    same_outcome: bool,
    same_iterations: bool,
    same_bits: bool,
}

pub(super) fn run(options: &Options) -> Result<(), Failure> {
    let output = Output::folder(options.output.as_deref(), "device-outcomes", "device");
    let mut run = Run::<Row>::begin(output, Nothing {}, 1, &[])?;
    let all = contestants(&[KernelShape::Cpu, KernelShape::Gpu], true, false)?;
    for (name, a) in matrices(options)? {
        if !run.has(|row| row.matrix == name) {
            run.add(compare(options, &all, &name, &a)?)?;
            eprintln!("{name}: {} solves compared so far", run.rows.len());
        }
    }
    run.end()?;
    let wrong = run.rows.iter().filter(|row| !row.same_outcome).count();
    if wrong > 0 { Err(format!("{wrong} outcomes differ from those of threads").into()) } else { Ok(()) }
}

fn matrices(options: &Options) -> Result<Vec<(String, Csr<f64>)>, Failure> {
    let problems = match options.problems.is_empty() {
        true => PROBLEMS.map(String::from).to_vec(),
        false => options.problems.clone(),
    };
    let generated = |name: &String| Ok((name.clone(), name.parse::<Problem>()?.generate()?));
    let mut all = problems.iter().map(generated).collect::<Result<Vec<_>, Failure>>()?;
    if let Some(folder) = &options.catalogue {
        let mut found = 0;
        for entry in catalogue::read(folder)? {
            if found < options.matrices && ROWS.contains(&(entry.n as usize)) {
                let a = io::read_matrix(folder.join(&entry.file))?;
                if a.nrows() == a.ncols() {
                    all.push((entry.file, a));
                    found += 1;
                }
            }
        }
    }
    Ok(all)
}

/// A solve that has ended, or why it could not be done.
type Ended = Result<(Vec<f64>, Report), SolveError>;

fn compare(options: &Options, all: &[Contestant], matrix: &str, a: &Csr<f64>) -> Result<Vec<Row>, Failure> {
    let b = rhs(a)?;
    let definite = a.symmetry().symmetric
        && (0..a.nrows()).all(|i| a.pattern().find(i, i).is_some_and(|k| a.values()[k] > 0.0));
    let mut rows = Vec::new();
    for info in preconditioners() {
        // Blocks have no form on devices, least squares no transposed product.
        if info.name.starts_with('b') || info.name == "auto" || info.name == "column-norms" {
            continue;
        }
        let Some(name) = info.examples.first() else { continue };
        let method = match info.symmetric {
            true if !definite => continue,
            true => Method::Cg,
            false => Method::BiCgStab,
        };
        let solver = by_rows(method, name, options.threads)?.max_iterations(LIMIT);
        let run = |ended: Result<krylith::Solution, SolveError>| ended.map(|s| (s.x, s.report));
        let expected: Ended = run(solver.solve(a, &b));
        for Contestant { name: place, device } in all {
            let own: Ended = run(solver.clone().on(device).solve(a, &b));
            rows.push(judge(matrix, method, (name, place), &expected, &own));
        }
    }
    Ok(rows)
}

fn judge(
    matrix: &str,
    method: Method,
    (preconditioner, place): (&str, &str),
    expected: &Ended,
    own: &Ended,
) -> Row {
    let outcome = |ended: &Ended| match ended {
        Ok((_, report)) => report.outcome.name().to_string(),
        Err(error) => error.to_string(),
    };
    let count = |ended: &Ended| ended.as_ref().map_or(0, |(_, report)| report.iterations);
    let (outcomes, iterations) = ([outcome(expected), outcome(own)], [count(expected), count(own)]);
    let at_limit = iterations.iter().all(|&k| k >= LIMIT - LIMIT / 10);
    let most = match (method, iterations[0]) {
        (Method::BiCgStab, k) => 1 + k / 5,
        (_, k) if k < 100 => 1,
        (_, k) => k / 20,
    };
    let converged = outcomes[0] == Outcome::Converged.name();
    Row {
        matrix: matrix.into(),
        method: method.to_string(),
        preconditioner: preconditioner.into(),
        place: place.into(),
        same_outcome: outcomes[0] == outcomes[1] || at_limit,
        same_iterations: !converged || iterations[0].abs_diff(iterations[1]) <= most,
        same_bits: match (expected, own) {
            (Ok((x, _)), Ok((y, _))) => x.iter().zip(y).all(|(x, y)| x.to_bits() == y.to_bits()),
            (Err(one), Err(other)) => one == other,
            _ => false,
        },
        outcomes,
        iterations,
    }
}

impl Kept for Row {
    type Facts = Nothing;

    fn text(run: &Run<Row>) -> String {
        let mut groups: BTreeMap<(&str, &str), Vec<&Row>> = BTreeMap::new();
        for row in &run.rows {
            groups.entry((&row.preconditioner, &row.place)).or_default().push(row);
        }
        let cells = |((preconditioner, place), rows): (&(&str, &str), &Vec<&Row>)| {
            let of = |is: fn(&Row) -> bool| rows.iter().filter(|row| is(row)).count().to_string();
            vec![
                preconditioner.to_string(),
                place.to_string(),
                rows.len().to_string(),
                of(|row| row.outcomes[0] == Outcome::Converged.name()),
                of(|row| row.same_outcome),
                of(|row| row.same_iterations),
                of(|row| row.same_bits),
            ]
        };
        let columns = [
            "preconditioner",
            "place",
            "solves",
            "converged on threads",
            "same outcome",
            "iterations within bounds",
            "same bits",
        ];
        let mut text = format!(
            "{}\nEach device beside threads by rows, rtol 1e-7, at most {LIMIT} iterations, b = A·1, the reproducible mode.\n\n{}",
            run.head.markdown("Outcomes on devices"),
            table(&columns, groups.iter().map(cells))
        );
        let differing: Vec<&Row> =
            run.rows.iter().filter(|row| !row.same_outcome || !row.same_iterations).collect();
        if !differing.is_empty() {
            text += "\nOutside of the bounds:\n\n";
            let cells = |row: &&Row| {
                vec![
                    row.matrix.clone(),
                    format!("{} with {}", row.method, row.preconditioner),
                    row.place.clone(),
                    row.outcomes.join(" / "),
                    format!("{} / {}", row.iterations[0], row.iterations[1]),
                ]
            };
            let columns = ["matrix", "solve", "place", "outcome on threads / device", "iterations"];
            text += &table(&columns, differing.iter().map(cells));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A solve of one's own, by threads, as both sides.
    #[test]
    fn a_solve_equals_itself_and_not_another() {
        let a = "poisson2d:12".parse::<Problem>().unwrap().generate().unwrap();
        let b = rhs(&a).unwrap();
        let solve = |name: &str| -> Ended {
            let solution = by_rows(Method::Cg, name, 1).unwrap().solve(&a, &b).unwrap();
            Ok((solution.x, solution.report))
        };
        let (one, other) = (solve("ic0"), solve("none"));
        let row = judge("m", Method::Cg, ("ic0", "d"), &one, &one);
        assert!(row.same_outcome && row.same_iterations && row.same_bits);
        let row = judge("m", Method::Cg, ("ic0", "d"), &one, &other);
        assert!(row.same_outcome && !row.same_iterations && !row.same_bits);
        let failed = Err(SolveError::StaleFactor);
        assert!(!judge("m", Method::Cg, ("ic0", "d"), &one, &failed).same_outcome);
    }
}
