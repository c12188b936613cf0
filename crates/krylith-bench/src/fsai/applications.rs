//! An application of an approximate inverse beside the time of its bytes at the speed of the triad.
//!
//! CG runs a fixed number of iterations, and the library's span around each application is timed. Bytes are those of both factors as they are stored, of x, of G x
//! twice, and of the result; the triad has arrays of the same bytes, in the same run. Equal slices of G are stored once, so of those products hardly more
//! than the vectors is left. Contestants take turns, the least seconds of some rounds count.

use super::Options;
use super::spans::{Applications, applications};
use crate::Failure;
use crate::folder::{self, Head, digits, grouped, rate_of_triad, table};
use krylith::gallery::{Problem, random_vector};
use krylith::solver::Precision;
use krylith::{Csr, Method, Solver};
use serde::Serialize;

const PROBLEMS: [&str; 4] = ["poisson2d:1000", "poisson3d:100", "hpcg:80", "jump3d:100"];
const QUICK: [&str; 1] = ["jump3d:20"];
/// A pattern that grids have stencils for, ParaSails' usual one, and hypre FSAI's.
const MEMBERS: [&str; 3] = ["fsai(0,1,0)", "fsai(0.1,2,0.05)", "afsai(5,3,0.001,0)"];
/// Long enough for a clock, and for caches to hold what they will.
const ITERATIONS: usize = 60;

#[derive(Debug, Serialize)]
struct Record {
    head: Head,
    rows: Vec<Row>,
}

/// One preconditioner on some threads.
#[derive(Debug, Serialize)]
struct Row {
    problem: String,
    member: String,
    precision: String,
    threads: usize,
    /// How G is stored.
    layout: String,
    bytes: u64,
    /// Of an application.
    seconds: f64,
    /// Of as many bytes by the triad.
    triad: f64,
}

impl Row {
    fn ratio(&self) -> f64 {
        self.seconds / self.triad
    }

    /// Up to where an application is counted as fast as its bytes: stencils have no indices.
    fn aim(&self) -> f64 {
        if self.layout.starts_with("structured") { 1.15 } else { 1.35 }
    }
}

/// Runs the study and writes its folder.
pub fn run(options: &Options) -> Result<(), Failure> {
    let head = Head::of_run(options.rounds(), &options.threads)?;
    let folder = folder::of_results(options.output.as_deref(), &head, "fsai-applications")?;
    let mut record = Record { head, rows: Vec::new() };
    for problem in &options.problems_or(if options.quick { &QUICK } else { &PROBLEMS }) {
        let a = problem.parse::<Problem>()?.generate()?;
        for &threads in &options.threads {
            record.rows.extend(measure(options, problem, &a, threads)?);
            folder::write(&folder, "applications", &record, &markdown(&record))?;
        }
    }
    println!("{}\nwritten to {}", markdown(&record), folder.display());
    Ok(())
}

/// All members and precisions, one after the other in every round.
fn measure(options: &Options, problem: &str, a: &Csr<f64>, threads: usize) -> Result<Vec<Row>, Failure> {
    let b: Vec<f64> = random_vector(a.nrows());
    let mut rows: Vec<Row> = Vec::new();
    for round in 0..options.rounds() {
        let ways = MEMBERS.iter().flat_map(|&member| [(member, Precision::F64), (member, Precision::Mixed)]);
        for (k, (member, precision)) in ways.enumerate() {
            let solver =
                Solver::new().method(Method::Cg).preconditioner(member.parse()?).precision(precision);
            let solver = solver.threads(threads).rtol(0.0).max_iterations(ITERATIONS);
            let (solution, Applications { count, seconds, bytes }) = applications(|| solver.solve(a, &b));
            let (report, seconds) = (solution?.report, seconds / count.max(1) as f64);
            let triad = bytes as f64 / (1e9 * rate_of_triad(bytes, threads)?);
            if round == 0 {
                eprintln!(
                    "{problem} {member} {precision:?}, {threads} threads: {seconds:.5} s, triad {triad:.5} s"
                );
                let (precision, layout) = (format!("{precision:?}").to_lowercase(), report.layout);
                let (problem, member) = (problem.to_owned(), member.to_owned());
                rows.push(Row { problem, member, precision, threads, layout, bytes, seconds, triad });
            } else {
                rows[k].seconds = rows[k].seconds.min(seconds);
                rows[k].triad = rows[k].triad.min(triad);
            }
        }
    }
    Ok(rows)
}

fn markdown(record: &Record) -> String {
    let cells = |row: &Row| {
        let stored = row.layout.split(';').next().unwrap_or_default().to_owned();
        vec![
            row.problem.clone(),
            row.member.clone(),
            row.precision.clone(),
            row.threads.to_string(),
            stored,
            grouped(row.bytes),
            digits(Some(1e3 * row.seconds)),
            digits(Some(row.ratio())),
            if row.ratio() <= row.aim() { "yes".into() } else { format!("no, aim {}", row.aim()) },
        ]
    };
    let columns =
        ["problem", "preconditioner", "precision", "threads", "stored", "bytes", "ms", "over triad", "met"];
    let text = "An application of GᵀG: milliseconds, and their ratio to those of as many bytes by the triad of the same footprint in the same run.";
    let met = record.rows.iter().filter(|row| row.ratio() <= row.aim()).count();
    format!(
        "{}\n{text} {met} of {} within their aim.\n\n{}",
        record.head.markdown("Applications of approximate inverses"),
        record.rows.len(),
        table(&columns, record.rows.iter().map(cells))
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::folder::tests::head;

    fn row(layout: &str, seconds: f64) -> Row {
        Row {
            problem: "jump3d:20".into(),
            member: "fsai".into(),
            precision: "f64".into(),
            threads: 1,
            layout: layout.into(),
            bytes: 1000,
            seconds,
            triad: 1e-3,
        }
    }

    #[test]
    fn stencils_have_the_smaller_aim() {
        let rows =
            vec![row("structured: G on Star-7P; power 1", 1.2e-3), row("slices of eight rows", 1.2e-3)];
        let text = markdown(&Record { head: head(), rows });
        assert!(text.contains("1 of 2 within their aim"), "{text}");
        assert!(text.contains("| structured: G on Star-7P | 1,000 | 1.20 | 1.20 | no, aim 1.15 |"), "{text}");
    }

    /// One per iteration of CG and one at its beginning, of at least 32 bytes per row.
    #[test]
    fn applications_are_counted() {
        let a = "poisson2d:30".parse::<Problem>().unwrap().generate().unwrap();
        let b: Vec<f64> = random_vector(a.nrows());
        let solver = Solver::new().method(Method::Cg).preconditioner("fsai".parse().unwrap()).threads(1);
        let (solution, seen) = applications(|| solver.solve(&a, &b).unwrap());
        let iterations = solution.report.iterations;
        assert!((iterations..=iterations + 1).contains(&seen.count), "{seen:?} in {iterations}");
        assert!(seen.bytes > 32 * 900 && seen.seconds > 0.0);
    }
}
