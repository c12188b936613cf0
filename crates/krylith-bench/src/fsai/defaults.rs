//! Settings of approximate inverses beside each other: what the defaults were chosen by.
//!
//! CG, random right-hand sides, a residual of 1e-8 of its beginning, from x₀ = 0. Every setting is run on every problem, one after the other in each round; the least seconds of
//! set-up and of solve count. A setting is judged by its total over that of the best setting on the same problem: by the geometric mean over all problems,
//! and by the worst. One that does not converge is given [`FAILED`] there. Jacobi and IC(0) are run for comparison, and are no settings.

use super::Options;
use crate::Failure;
use crate::folder::{self, Head, digits, rounds, table};
use krylith::gallery::{Problem, random_vector};
use krylith::{Csr, Method, Outcome, PrecondSpec, Solver};
use serde::Serialize;

const PROBLEMS: [&str; 12] = [
    "apache:160x160x16",
    "circuit:500",
    "ecology:500",
    "elasticity2d:120",
    "elasticity3d:24",
    "fem2d:400",
    "hpcg:50",
    "jump3d:64",
    "parabolic:700x350",
    "pflow:40x40x14",
    "poisson2d:500",
    "thermal:350",
];
const QUICK: [&str; 2] = ["jump3d:8", "fem2d:12"];
const SETTINGS: [&str; 17] = [
    "fsai",
    "fsai(0,1,0)",
    "fsai(0.1,1,0)",
    "fsai(0.05,2,0.05)",
    "fsai(0.1,2,0.05)",
    "fsai(0.1,2,0.1)",
    "fsai(0.05,3,0.05)",
    "fsai(0.1,3,0.05)",
    "fsai(0.1,3,0.1)",
    "fsai(0.1,4,0.1)",
    "afsai",
    "afsai(3,3,0.001,0.05)",
    "afsai(10,3,0.001,0.05)",
    "afsai(5,5,0.001,0.05)",
    "afsai(5,3,0.01,0.05)",
    "afsai(5,3,0.001,0)",
    "afsai(5,3,0.001,0.1)",
];
const BESIDE: [&str; 2] = ["jacobi", "ic0"];
const MAX_ITERATIONS: usize = 20_000;
/// The total over the best that counts for a run which did not converge.
const FAILED: f64 = 4.0;

#[derive(Debug, Serialize)]
struct Record {
    head: Head,
    runs: Vec<Run>,
}

/// A setting on a problem.
#[derive(Debug, Clone, Serialize)]
struct Run {
    problem: String,
    setting: String,
    threads: usize,
    has_converged: bool,
    iterations: usize,
    /// Entries of G per row.
    per_row: f64,
    set_up: f64,
    solve: f64,
    layout: String,
}

impl Run {
    fn total(&self) -> Option<f64> {
        self.has_converged.then_some(self.set_up + self.solve)
    }
}

/// Runs the study and writes its folder.
pub fn run(options: &Options) -> Result<(), Failure> {
    let head = Head::of_run(options.rounds(), &[])?;
    let folder = folder::of_results(options.output.as_deref(), &head, "fsai-defaults")?;
    let mut record = Record { head, runs: Vec::new() };
    for problem in &options.problems_or(if options.quick { &QUICK } else { &PROBLEMS }) {
        let a = problem.parse::<Problem>()?.generate()?;
        for &threads in &options.threads {
            eprintln!("{problem} on {}", folder::counted(threads));
            record.runs.extend(measure(options, problem, &a, threads)?);
            folder::write(&folder, "defaults", &record, &markdown(&record, &options.threads))?;
        }
    }
    println!("{}\nwritten to {}", markdown(&record, &options.threads), folder.display());
    Ok(())
}

/// All settings, one after the other in every round.
fn measure(options: &Options, problem: &str, a: &Csr<f64>, threads: usize) -> Result<Vec<Run>, Failure> {
    let b: Vec<f64> = random_vector(a.nrows());
    let mut runs: Vec<Run> = Vec::new();
    for round in 0..options.rounds() {
        for (k, &setting) in SETTINGS.iter().chain(&BESIDE).enumerate() {
            let kind: PrecondSpec = setting.parse()?;
            let solver = Solver::new().method(Method::Cg).preconditioner(kind).threads(threads);
            let report = solver.max_iterations(MAX_ITERATIONS).solve(a, &b)?.report;
            let seconds = &report.seconds;
            let (set_up, solve) = (seconds.analyze + seconds.factor, seconds.solve);
            if round > 0 {
                (runs[k].set_up, runs[k].solve) = (runs[k].set_up.min(set_up), runs[k].solve.min(solve));
                continue;
            }
            runs.push(Run {
                problem: problem.to_owned(),
                setting: setting.to_owned(),
                threads,
                // Another preconditioner than the one asked for is a failure too.
                has_converged: report.outcome == Outcome::Converged
                    && report.preconditioner == kind.to_string(),
                iterations: report.iterations,
                per_row: report.preconditioner_nnz as f64 / a.nrows().max(1) as f64,
                set_up,
                solve,
                layout: report.layout,
            });
        }
    }
    Ok(runs)
}

fn markdown(record: &Record, threads: &[usize]) -> String {
    let text = format!(
        "Set-up and solve of each setting over the best setting's on the same problem, {}; a run that does not converge counts {FAILED}.",
        rounds(record.head.rounds)
    );
    let mut all = format!("{}\n{text}\n", record.head.markdown("Settings of approximate inverses"));
    for &threads in threads {
        let runs: Vec<&Run> = record.runs.iter().filter(|run| run.threads == threads).collect();
        if !runs.is_empty() {
            let counted = folder::counted(threads);
            all += &format!("\n## {counted}\n\n{}\n{}", of_settings(&runs), of_problems(&runs));
        }
    }
    all
}

/// The problems that were run, in their order.
fn problems<'a>(runs: &[&'a Run]) -> Vec<&'a str> {
    let mut names: Vec<&str> = runs.iter().map(|run| run.problem.as_str()).collect();
    names.dedup();
    names
}

/// The best setting of a problem and its total.
fn best<'a>(runs: &[&'a Run], problem: &str) -> Option<(&'a str, f64)> {
    let own = runs.iter().filter(|run| run.problem == problem && SETTINGS.contains(&run.setting.as_str()));
    own.filter_map(|run| Some((run.setting.as_str(), run.total()?))).min_by(|a, b| a.1.total_cmp(&b.1))
}

/// Ratios of every setting to the best on every problem, the setting of the least mean first.
fn of_settings(runs: &[&Run]) -> String {
    let problems = problems(runs);
    let of_setting = |setting: &'static str| {
        let ratio = |problem: &&str| {
            let run = runs.iter().find(|run| run.problem == *problem && run.setting == setting);
            let total = run.and_then(|run| run.total());
            total.zip(best(runs, problem)).map_or(FAILED, |(total, (_, least))| total / least)
        };
        let ratios: Vec<f64> = problems.iter().map(ratio).collect();
        let mean = (ratios.iter().map(|r| r.ln()).sum::<f64>() / ratios.len().max(1) as f64).exp();
        (mean, setting, ratios)
    };
    let mut means: Vec<_> = SETTINGS.iter().chain(&BESIDE).map(|&setting| of_setting(setting)).collect();
    means.sort_by(|a, b| a.0.total_cmp(&b.0));
    let columns: Vec<&str> = ["setting", "mean", "worst"].into_iter().chain(problems).collect();
    let rows = means.into_iter().map(|(mean, setting, ratios)| {
        let worst = ratios.iter().copied().fold(0.0, f64::max);
        let numbers = [mean, worst].into_iter().chain(ratios).map(|ratio| digits(Some(ratio)));
        [format!("`{setting}`")].into_iter().chain(numbers).collect()
    });
    table(&columns, rows)
}

/// What the best setting of each problem is, beside the two defaults.
fn of_problems(runs: &[&Run]) -> String {
    let columns = ["problem", "setting", "entries per row", "iterations", "set-up, s", "solve, s"];
    let named = |problem: &str| {
        let best = best(runs, problem).map_or("fsai", |(setting, _)| setting);
        let mut names = vec![best, "fsai", "afsai", "ic0"];
        names.dedup();
        names
    };
    let rows = problems(runs).into_iter().flat_map(|problem| {
        let of = move |name: &str| runs.iter().find(|run| run.problem == problem && run.setting == name);
        named(problem).into_iter().filter_map(of).map(|run| {
            let iterations = if run.has_converged { run.iterations.to_string() } else { "–".into() };
            let [set_up, solve] = [run.set_up, run.solve].map(|seconds| format!("{seconds:.3}"));
            let per_row = format!("{:.1}", run.per_row);
            vec![run.problem.clone(), format!("`{}`", run.setting), per_row, iterations, set_up, solve]
        })
    });
    table(&columns, rows)
}

#[cfg(test)]
mod tests {
    use super::super::tests::options;
    use super::*;
    use crate::folder::tests::head;

    fn run_of(setting: &str, has_converged: bool, solve: f64) -> Run {
        Run {
            problem: "p".into(),
            setting: setting.into(),
            threads: 1,
            has_converged,
            iterations: 10,
            per_row: 2.0,
            set_up: 1.0,
            solve,
            layout: String::new(),
        }
    }

    /// The best is a setting; IC(0) is faster, and only beside it.
    #[test]
    fn ratios_to_the_best_setting() {
        let runs = vec![
            run_of("fsai", true, 2.0),
            run_of("afsai", true, 1.0),
            run_of("fsai(0,1,0)", false, 0.1),
            run_of("ic0", true, 0.0),
        ];
        let text = markdown(&Record { head: head(), runs }, &[1]);
        assert!(text.contains("| `afsai` | 1.00 | 1.00 | 1.00 |"), "{text}");
        assert!(text.contains("| `fsai` | 1.50 | 1.50 | 1.50 |"), "{text}");
        assert!(text.contains("| `ic0` | 0.50 | 0.50 | 0.50 |"), "{text}");
        assert!(text.contains("| `fsai(0,1,0)` | 4.00 | 4.00 | 4.00 |"), "{text}");
        assert!(text.contains("| p | `afsai` | 2.0 | 10 | 1.000 | 1.000 |"), "{text}");
    }

    #[test]
    fn every_setting_runs() {
        let a = "jump3d:6".parse::<Problem>().unwrap().generate().unwrap();
        let runs = measure(&options(&["--quick"]), "jump3d:6", &a, 1).unwrap();
        assert_eq!(runs.len(), SETTINGS.len() + BESIDE.len());
        assert!(runs.iter().all(|run| run.has_converged), "{runs:?}");
    }
}
