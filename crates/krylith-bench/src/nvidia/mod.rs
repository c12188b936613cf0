//! NVIDIA's study of incomplete factors (Tables 2 to 5 of its paper) with Krylith on threads and on devices and with MKL.
//!
//! Its protocol: b = A·1, the guess 0, CG for definite matrices and BiCGStab for the others, ‖r‖ ≤ 1e-7 ‖b‖, at most 2000 iterations; seconds
//! of factorization, copying to the device, analysis and solve. The matrices cannot be had: the gallery's stand-ins have their sizes and
//! families, neither their numbers nor their difficulty. Iterations are shown beside the paper's and are not theirs: in the kept run three of twelve are within 25 %
//! with ILU(0) (ecology2, thermal2, atmosmodd), while `apache` takes 8 for 713.
//!
//! Everybody solves with the same factor by the same definition; for definite matrices `ilut` is made [symmetric]. Krylith on threads has the storage that it chooses for that factor.

mod paper;
mod report;
mod symmetric;

use crate::Failure;
use crate::compare::{Call, Contestant};
use crate::device::{contestants, rhs};
use crate::driver::{outcome, system};
use crate::rhs::Rhs;
use crate::run::record::number;
use crate::run::{Kept, Nothing, Output, Run};
use clap::Args;
use krylith::gallery::Problem;
use krylith::{Csr, Method, Precision, PrecondSpec, Report, SolveError, Solver};
use krylith_gpu::{Device, KernelShape, OnDevice};
use paper::{MATRICES, PRECONDITIONERS, PaperMatrix};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The paper's stopping criterion.
const RTOL: f64 = 1e-7;
const MAX_ITERATIONS: usize = 2000;

#[derive(Args)]
pub struct Options {
    /// Only these of the paper's matrices
    matrices: Vec<String>,
    /// Points along each side of the stand-ins, instead of the paper's sizes
    #[arg(long)]
    size: Option<usize>,
    /// Only these of the paper's preconditioners
    #[arg(long, value_delimiter = ';')]
    preconditioners: Vec<String>,
    /// Rounds, of which the fastest counts
    #[arg(long, default_value_t = 1)]
    rounds: usize,
    /// Threads
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// Seconds that MKL may take for a matrix and a preconditioner
    #[arg(long, default_value_t = 600)]
    limit: u64,
    /// The folder that `just bench-setup` fills
    #[arg(long, default_value = "target/peers")]
    peers: PathBuf,
    /// Where the results go; otherwise a folder of today in benchmarks/runs. What a run that was ended has left there is kept
    #[arg(long)]
    output: Option<PathBuf>,
}

/// A matrix solved with a preconditioner in one place.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Row {
    /// As the paper calls it.
    matrix: String,
    problem: String,
    rows: usize,
    entries: usize,
    preconditioner: String,
    place: String,
    result: Result<Solved, String>,
}

/// The round that took the least time.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Solved {
    outcome: String,
    iterations: usize,
    #[serde(deserialize_with = "number")]
    relative_residual: f64,
    factor: f64,
    copy: f64,
    analyze: f64,
    solve: f64,
    /// Seconds in products, in the preconditioner and on vectors, within the iterations. On devices, those of kernels.
    split: [f64; 3],
}

impl Solved {
    fn total(&self) -> f64 {
        self.factor + self.copy + self.analyze + self.solve
    }

    fn of(report: &Report) -> Self {
        let seconds = report.seconds;
        let split = report.profile.map(|p| [p.products.seconds, p.preconditioner.seconds, p.vectors]);
        Solved {
            outcome: report.outcome.name().into(),
            iterations: report.iterations,
            relative_residual: report.relative_residual,
            factor: seconds.factor,
            copy: seconds.copy,
            analyze: seconds.analyze,
            solve: seconds.solve,
            split: split.unwrap_or_default(),
        }
    }
}

/// Where a system is solved.
enum Place {
    Threads,
    Device(Device),
    Mkl,
}

/// A matrix of the paper, as its stand-in.
struct Case<'a> {
    paper: &'a PaperMatrix,
    problem: String,
    a: Csr<f64>,
    b: Vec<f64>,
    /// A for MKL.
    file: PathBuf,
}

/// Runs the study and writes its folder.
pub fn run(options: &Options) -> Result<(), Failure> {
    let output = Output::folder(options.output.as_deref(), "nvidia", "nvidia");
    let mut run = Run::<Row>::begin(output, Nothing {}, options.rounds, &[options.threads])?;
    let mut places = vec![("threads".to_string(), Place::Threads)];
    let found = contestants(&[KernelShape::Cpu], false, true)?;
    places.extend(found.into_iter().map(|c| (c.name, Place::Device(c.device))));
    places.push(("MKL".into(), Place::Mkl));
    let scratch = tempfile::tempdir()?;
    let chosen = |list: &[String], name: &str| list.is_empty() || list.iter().any(|one| one == name);
    for paper in MATRICES.iter().filter(|m| chosen(&options.matrices, m.name)) {
        let Some(stand_in) = paper.stand_in else { continue };
        let problem = options.size.map_or(stand_in.to_string(), |size| format!("{stand_in}:{size}"));
        let a = problem.parse::<Problem>()?.generate()?;
        let (b, file) = (rhs(&a)?, scratch.path().join("a.csr"));
        system::write(&file, &a, None)?;
        let case = Case { paper, problem, a, b, file };
        for preconditioner in PRECONDITIONERS.into_iter().filter(|p| chosen(&options.preconditioners, p)) {
            let done = |row: &Row| row.problem == case.problem && row.preconditioner == preconditioner;
            if !run.has(done) {
                run.add(measure(options, &case, preconditioner, &places)?)?;
            }
        }
    }
    run.end()
}

impl Kept for Row {
    type Facts = Nothing;

    fn text(run: &Run<Row>) -> String {
        report::markdown(run)
    }
}

/// All places in turns.
fn measure(
    options: &Options,
    case: &Case<'_>,
    preconditioner: &str,
    places: &[(String, Place)],
) -> Result<Vec<Row>, Failure> {
    let mut rows: Vec<Row> = Vec::new();
    for round in 0..options.rounds.max(1) {
        for (k, (name, place)) in places.iter().enumerate() {
            let result = solve(options, case, preconditioner, place)?;
            if let Ok(solved) = &result {
                let Solved { outcome, iterations, factor, copy, analyze, solve, .. } = solved;
                eprintln!(
                    "{} {preconditioner} {name}: {outcome}, {iterations} iterations, {factor:.2} + {copy:.2} + {analyze:.2} + {solve:.2} s",
                    case.problem
                );
            }
            if round == 0 {
                rows.push(Row {
                    matrix: case.paper.name.into(),
                    problem: case.problem.clone(),
                    rows: case.a.nrows(),
                    entries: case.a.nnz(),
                    preconditioner: preconditioner.into(),
                    place: name.clone(),
                    result,
                });
            } else if let (Ok(new), Ok(old)) = (result, &mut rows[k].result)
                && new.total() < old.total()
            {
                *old = new;
            }
        }
    }
    Ok(rows)
}

fn solve(
    options: &Options,
    case: &Case<'_>,
    preconditioner: &str,
    place: &Place,
) -> Result<Result<Solved, String>, Failure> {
    let method = if case.paper.definite { Method::Cg } else { Method::BiCgStab };
    if let Place::Mkl = place {
        return mkl(options, case, &format!("{method}+{preconditioner}"));
    }
    let (mut spec, mut matrix, mut seconds) = (preconditioner.parse()?, None, 0.0);
    if case.paper.definite
        && let Some((p, tau)) = paper::ilut(preconditioner)
    {
        match symmetric::from_ilut(&case.a, p, tau)? {
            Ok((found, taken)) => (spec, matrix, seconds) = (PrecondSpec::ssor(1.0), Some(found), taken),
            Err(why) => return Ok(Err(why)),
        }
    }
    let solver = Solver::new().method(method).preconditioner(spec).precision(Precision::F64).profile(true);
    let solver = solver.threads(options.threads).rtol(RTOL).max_iterations(MAX_ITERATIONS);
    Ok(match solve_with(solver, case, matrix.as_ref().unwrap_or(&case.a), place) {
        Ok(report) => {
            let solved = Solved::of(&report);
            Ok(Solved { factor: solved.factor + seconds, ..solved })
        }
        Err(error) => Err(error.to_string()),
    })
}

fn solve_with(
    solver: Solver,
    case: &Case<'_>,
    matrix: &Csr<f64>,
    place: &Place,
) -> Result<Report, SolveError> {
    let (a, b, mut x) = (&case.a, &case.b, vec![0.0; case.a.nrows()]);
    match place {
        Place::Device(device) => solver.on(device).prepare_with(a, matrix)?.solve(a, b, &mut x),
        _ => solver.prepare_with(a, matrix)?.solve(a, b, &mut x),
    }
}

/// One solve by MKL, in a process of its own.
fn mkl(options: &Options, case: &Case<'_>, config: &str) -> Result<Result<Solved, String>, Failure> {
    let peer = Contestant::named("mkl", config).ok_or("MKL is no peer")?;
    let call = Call {
        peers: Path::new(&options.peers),
        file: &case.file,
        spec: &case.problem,
        rhs: Rhs::Ones,
        kernels: false,
        threads: options.threads,
        rtol: RTOL,
        max_iterations: MAX_ITERATIONS,
        limit: options.limit,
    };
    let line = match outcome(&mut peer.command(&call)?, options.limit)? {
        Ok(line) => line,
        Err(why) => return Ok(Err(why)),
    };
    let part = |name: &str| {
        line.kernels.get(name).copied().flatten().ok_or(format!("MKL's driver reports no {name}"))
    };
    let solve = line.solve_seconds.ok_or("MKL's driver reports no solve")?;
    let (products, preconditioner) = (part("products")?, part("preconditioner")?);
    Ok(Ok(Solved {
        outcome: line.status.clone(),
        iterations: line.iterations.unwrap_or(0) as usize,
        relative_residual: line.relative_residual.unwrap_or(f64::NAN),
        factor: part("factor")?,
        copy: 0.0,
        analyze: part("analyze")?,
        solve,
        split: [products, preconditioner, solve - products - preconditioner],
    }))
}
