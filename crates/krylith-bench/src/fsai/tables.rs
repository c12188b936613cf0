//! Density, iterations, phases of the set-up and seconds on stand-ins for the five matrices of the paper: its tables 5 to 7 and figure 5.
//!
//! b = A·1, x₀ = 0, CG until ‖r‖₂ / ‖b‖₂ ≤ 1e-8, at most 10,000 iterations, as there. The contestants:
//!
//! * Jacobi;
//! * `fsai` with the paper's own τ, k and δ, but with our filter, which compares in units of the diagonal of A where the paper compares |gⱼ| with δ ‖g‖₂;
//! * `fsai` with its k and δ, and the least of some τ with which G is at most as dense before the filter as the paper's;
//! * `fsai` and `afsai` as they are without numbers.
//!
//! The stand-ins are of the same kinds and, but for Cube3D's, sizes as the paper's matrices, with other numbers and another difficulty, so that one τ keeps more or less of them. What would take more
//! than [`MOST_OPERATIONS`] for its systems is left out, and the report says so. Contestants take turns in every round; the least total counts, with its phases.

use super::Options;
use super::spans::{self, Seconds};
use super::tables_report::markdown;
use crate::Failure;
use crate::folder::{self, Head};
use crate::rhs::Rhs;
use krylith::gallery::Problem;
use krylith::operator::Recipe;
use krylith::precond::fsai::phases::{MOST_INDICES, Most, Rows, large_entries, powers};
use krylith::precond::fsai::{Fsai, PatternRule};
use krylith::precond::registry::Construction;
use krylith::space::Threads;
use krylith::{Csr, Method, Outcome, PrecondSpec, Solver};
use serde::Serialize;
use std::time::Instant;

const RTOL: f64 = 1e-8;
const MAX_ITERATIONS: usize = 10_000;

/// Operations on the dense systems of a set-up: some minutes.
const MOST_OPERATIONS: f64 = 4e12;

/// Those that are tried for a density, rising.
const TAUS: [f64; 19] = [
    1e-3, 1.5e-3, 2e-3, 3e-3, 5e-3, 7e-3, 1e-2, 1.5e-2, 2e-2, 2.5e-2, 3e-2, 5e-2, 7e-2, 0.1, 0.15, 0.2, 0.3,
    0.5, 0.7,
];

/// A matrix of the paper and what stands in for it.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Case {
    /// The paper's name for the matrix.
    pub name: &'static str,
    pub kind: &'static str,
    pub rows: u64,
    pub entries: u64,
    /// The problem of the gallery.
    pub problem: &'static str,
    /// The same, small.
    quick: &'static str,
    /// τ, k and δ.
    pub parameters: (f64, usize, f64),
    /// μ before and after filtration.
    pub density: [f64; 2],
    /// With FSAI and with Jacobi, if that converged.
    pub iterations: (usize, Option<usize>),
    /// Set-up and solve on a K80, and on a Xeon E5645 with six cores.
    pub gpu: [f64; 2],
    pub cpu: [f64; 2],
}

/// Tables 4 to 7.
pub const CASES: [Case; 5] = [
    Case {
        name: "Apache2",
        kind: "structural",
        rows: 715_176,
        entries: 4_817_870,
        problem: "apache",
        quick: "apache:12x10x5",
        parameters: (1e-2, 9, 5e-2),
        density: [6.774, 0.998],
        iterations: (853, Some(2834)),
        gpu: [1.49, 2.46],
        cpu: [15.66, 15.33],
    },
    Case {
        name: "Cube3D",
        kind: "structural",
        rows: 190_581,
        entries: 7_531_389,
        problem: "elasticity3d:40",
        quick: "elasticity3d:5",
        parameters: (2.5e-2, 6, 1e-2),
        density: [0.594, 0.284],
        iterations: (993, Some(2005)),
        gpu: [0.33, 2.01],
        cpu: [2.41, 9.45],
    },
    Case {
        name: "G3_circuit",
        kind: "circuit",
        rows: 1_585_478,
        entries: 7_660_826,
        problem: "circuit",
        quick: "circuit:20",
        parameters: (2e-2, 7, 7e-2),
        density: [4.207, 1.465],
        iterations: (390, Some(2054)),
        gpu: [1.65, 2.49],
        cpu: [15.64, 16.75],
    },
    Case {
        name: "Thermal2",
        kind: "thermal",
        rows: 1_228_045,
        entries: 8_580_313,
        problem: "thermal",
        quick: "thermal:20",
        parameters: (2e-2, 6, 7e-2),
        density: [5.586, 1.737],
        iterations: (1221, Some(4056)),
        gpu: [1.72, 7.05],
        cpu: [22.54, 51.19],
    },
    Case {
        name: "PFlow_742",
        kind: "porous flow",
        rows: 742_793,
        entries: 37_138_461,
        problem: "pflow",
        quick: "pflow:8x8x4",
        parameters: (5e-2, 5, 3.5e-3),
        density: [1.818, 1.168],
        iterations: (1529, None),
        gpu: [5.07, 21.59],
        cpu: [49.15, 151.35],
    },
];

#[derive(Debug, Serialize)]
pub struct Record {
    pub head: Head,
    pub matrices: Vec<Matrix>,
}

/// A stand-in and how it was solved.
#[derive(Debug, Serialize)]
pub struct Matrix {
    pub case: Case,
    /// The problem of the gallery, with its size.
    pub problem: String,
    pub rows: u64,
    pub entries: u64,
    pub solves: Vec<Solve>,
    pub left_out: Vec<LeftOut>,
}

/// A contestant whose systems take too many operations.
#[derive(Debug, Clone, Serialize)]
pub struct LeftOut {
    pub preconditioner: String,
    /// Entries of G before filtration by those of A.
    pub density: f64,
    pub operations: f64,
}

/// A preconditioner on some threads.
#[derive(Debug, Clone, Serialize)]
pub struct Solve {
    pub way: Way,
    /// The preconditioner, with its numbers.
    pub preconditioner: String,
    pub threads: usize,
    /// Entries of G before and after filtration by those of A.
    pub density: Option<[f64; 2]>,
    pub iterations: usize,
    pub outcome: String,
    pub has_converged: bool,
    pub relative_residual: f64,
    /// Wall time of the whole set-up, and of its phases as `spans` names them.
    pub setup: f64,
    pub phases: Seconds,
    pub solve: f64,
    /// How A and G were stored.
    pub layout: String,
}

/// The contestants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    Jacobi,
    /// `fsai` with the paper's numbers.
    Paper,
    /// `fsai` with the paper's density before filtration.
    Density,
    Fsai,
    Afsai,
}

impl Way {
    pub const ALL: [Way; 5] = [Way::Jacobi, Way::Paper, Way::Density, Way::Fsai, Way::Afsai];

    fn preconditioner(self, case: &Case, a: &Csr<f64>) -> Result<PrecondSpec, Failure> {
        let (tau, k, delta) = case.parameters;
        Ok(match self {
            Way::Jacobi => PrecondSpec::jacobi(),
            Way::Paper => PrecondSpec::fsai(tau, k, delta),
            Way::Density => PrecondSpec::fsai(tau_for(case.density[0], k, a), k, delta),
            Way::Fsai => "fsai".parse()?,
            Way::Afsai => "afsai".parse()?,
        })
    }
}

/// The smallest listed τ for which the k-th power has at most this density; the largest one if all powers are denser.
fn tau_for(density: f64, k: usize, a: &Csr<f64>) -> f64 {
    let space = Threads::new(1);
    let most = Most { of_a_row: MOST_INDICES, in_all: (density * a.nnz() as f64) as u64 };
    let is_too_dense =
        |tau: &f64| powers(&space, &large_entries(&space, a, *tau), k, Rows::all(a.nrows()), most).is_err();
    let place = TAUS.partition_point(is_too_dense);
    TAUS[place.min(TAUS.len() - 1)]
}

/// A way to solve a matrix, and what is known of it beforehand.
struct Contestant {
    way: Way,
    kind: PrecondSpec,
    /// Entries of G before the filter; `None` where there is no G.
    entries: Option<usize>,
    /// Those on the dense systems, m³/3 each; where the pattern grows they are few.
    operations: f64,
}

impl Contestant {
    fn new(way: Way, case: &Case, a: &Csr<f64>) -> Result<Self, Failure> {
        let kind = way.preconditioner(case, a)?;
        let space = Threads::new(1);
        let (entries, operations) = match kind.construct() {
            Construction::Inverse(Fsai {
                pattern: PatternRule::Powers { tau: Some(tau), power: Some(power) },
                ..
            }) => {
                let most = Most { of_a_row: MOST_INDICES, in_all: u32::MAX.into() };
                let pattern =
                    powers(&space, &large_entries(&space, a, tau), power, Rows::all(a.nrows()), most)?;
                let cube = |i: usize| (pattern.row(i).len() as f64).powi(3) / 3.0;
                (Some(pattern.nnz()), (0..pattern.nrows()).map(cube).sum())
            }
            Construction::Inverse(recipe) => (Some(recipe.analyze(&space, a)?.entries()), 0.0),
            _ => (None, 0.0),
        };
        Ok(Contestant { way, kind, entries, operations })
    }
}

impl Solve {
    pub fn total(&self) -> f64 {
        self.setup + self.solve
    }
}

impl Matrix {
    /// How a contestant did on some threads.
    pub fn solve(&self, way: Way, threads: usize) -> Option<&Solve> {
        self.solves.iter().find(|s| s.way == way && s.threads == threads)
    }
}

/// Runs the study and writes its folder.
pub fn run(options: &Options) -> Result<(), Failure> {
    let cases = cases(options)?;
    let head = Head::of_run(options.rounds(), &options.threads)?;
    let folder = folder::of_results(options.output.as_deref(), &head, "fsai-tables")?;
    let mut record = Record { head, matrices: Vec::new() };
    for (case, problem) in cases {
        record.matrices.push(measure(options, case, &problem)?);
        folder::write(&folder, "tables", &record, &markdown(&record))?;
    }
    println!("{}\nwritten to {}", markdown(&record), folder.display());
    Ok(())
}

/// The cases whose problems are asked for, with their sizes; all of them unless some are.
fn cases(options: &Options) -> Result<Vec<(Case, String)>, Failure> {
    let name = |problem: &str| problem.split(':').next().unwrap_or_default().to_owned();
    let usual = |case: &Case| if options.quick { case.quick } else { case.problem }.to_owned();
    if options.problems.is_empty() {
        return Ok(CASES.map(|case| (case, usual(&case))).to_vec());
    }
    let find = |asked: &String| {
        let found = CASES.into_iter().find(|case| name(case.problem) == name(asked));
        let case = found.ok_or_else(|| {
            let known = CASES.map(|case| name(case.problem)).join(", ");
            format!("`{asked}` stands in for none of the paper's matrices; problems: {known}")
        })?;
        Ok((case, if asked.contains(':') { asked.clone() } else { usual(&case) }))
    };
    options.problems.iter().map(find).collect()
}

/// All contestants on one matrix, taking turns.
fn measure(options: &Options, case: Case, problem: &str) -> Result<Matrix, Failure> {
    let a = problem.parse::<Problem>()?.generate()?;
    let b = Rhs::Ones.vector(&a);
    let (rows, entries) = (a.nrows() as u64, a.nnz() as u64);
    let problem_name = problem.to_owned();
    let mut matrix =
        Matrix { case, problem: problem_name, rows, entries, solves: Vec::new(), left_out: Vec::new() };
    let all = Way::ALL.map(|way| Contestant::new(way, &case, &a));
    let all = all.into_iter().collect::<Result<Vec<_>, _>>()?;
    let (run, left_out): (Vec<_>, Vec<_>) = all.into_iter().partition(|c| c.operations <= MOST_OPERATIONS);
    matrix.left_out.extend(left_out.iter().map(|c| LeftOut {
        preconditioner: c.kind.to_string(),
        density: c.entries.unwrap_or(0) as f64 / a.nnz() as f64,
        operations: c.operations,
    }));
    for &threads in &options.threads {
        let mut least: Vec<Option<Solve>> = vec![None; run.len()];
        for round in 1..=options.rounds() {
            for (contestant, least) in run.iter().zip(&mut least) {
                let solve = solve(contestant, threads, &a, &b)?;
                eprintln!("{problem} {threads} threads, round {round}: {}", described(&solve));
                if least.as_ref().is_none_or(|least| solve.total() < least.total()) {
                    *least = Some(solve);
                }
            }
        }
        matrix.solves.extend(least.into_iter().flatten());
    }
    Ok(matrix)
}

/// One set-up and one solve.
fn solve(contestant: &Contestant, threads: usize, a: &Csr<f64>, b: &[f64]) -> Result<Solve, Failure> {
    let kind = contestant.kind;
    let solver = Solver::new().method(Method::Cg).preconditioner(kind).threads(threads).recover(false);
    let solver = solver.rtol(RTOL).max_iterations(MAX_ITERATIONS);
    let mut x = vec![0.0; b.len()];
    let started = Instant::now();
    let (prepared, phases) = spans::timed(|| solver.prepare(a));
    let prepared = prepared?;
    let setup = started.elapsed().as_secs_f64();
    let report = prepared.solve(a, b, &mut x)?;
    let total = started.elapsed().as_secs_f64();
    let share = |entries: usize| entries as f64 / a.nnz() as f64;
    Ok(Solve {
        way: contestant.way,
        preconditioner: report.preconditioner.clone(),
        threads,
        density: contestant.entries.map(|before| [share(before), share(report.preconditioner_nnz)]),
        iterations: report.iterations,
        outcome: report.outcome.name().to_owned(),
        has_converged: report.outcome == Outcome::Converged,
        relative_residual: report.relative_residual,
        setup,
        phases,
        solve: total - setup,
        layout: report.layout,
    })
}

/// A line of progress.
fn described(solve: &Solve) -> String {
    let Solve { preconditioner, setup, solve: seconds, iterations, outcome, .. } = solve;
    format!("{preconditioner}: {setup:.3} + {seconds:.3} s, {iterations} iterations, {outcome}")
}

#[cfg(test)]
pub mod tests {
    use super::super::spans::PHASES;
    use super::super::tests::options;
    use super::*;

    /// All contestants on a small stand-in.
    pub fn small() -> Matrix {
        measure(&options(&["--quick", "--threads", "1"]), CASES[4], CASES[4].quick).unwrap()
    }

    #[test]
    fn every_contestant_solves_and_has_phases() {
        let matrix = small();
        assert!(matrix.solves.len() == 5 && matrix.left_out.is_empty());
        for solve in &matrix.solves {
            assert!(solve.has_converged && solve.relative_residual <= RTOL, "{solve:?}");
            let phases: f64 = solve.phases.iter().sum();
            assert!(phases <= solve.setup && (phases > 0.0) == (solve.way != Way::Jacobi), "{solve:?}");
        }
        let phase = |name: &str| PHASES.iter().position(|&phase| phase == name).unwrap();
        let [paper, grown] = [Way::Paper, Way::Afsai].map(|way| matrix.solve(way, 1).unwrap());
        assert!(
            ["powers", "solve", "filter", "transpose"].iter().all(|name| paper.phases[phase(name)] > 0.0)
        );
        assert!(grown.phases[phase("grow")] > 0.0 && grown.phases[phase("powers")] == 0.0);
        let [before, after] = paper.density.unwrap();
        assert!(after <= before && after > 0.0);
    }

    /// On a chain the k-th power has k + 1 entries per row; with |−1| ≤ τ √(2 · 2) only the diagonal is left.
    #[test]
    fn a_density_has_its_threshold() {
        let a = "poisson2d:300x1".parse::<Problem>().unwrap().generate().unwrap();
        assert_eq!(tau_for(2.0, 3, &a), TAUS[0]);
        assert_eq!(tau_for(1.0, 3, &a), 0.3);
    }

    #[test]
    fn cases_are_chosen_by_their_problems() {
        let chosen = |words: &[&str]| cases(&options(words));
        assert_eq!(chosen(&["--quick"]).unwrap().len(), 5);
        let two = chosen(&["--problems", "pflow:10x10x4,apache"]).unwrap();
        assert_eq!([two[0].1.as_str(), two[1].1.as_str()], ["pflow:10x10x4", "apache"]);
        assert!(chosen(&["--problems", "hpcg"]).unwrap_err().to_string().contains("apache, elasticity3d"));
    }
}
