//! How a system is solved in the study, and what a sweep of its factor has to do.
//!
//! `ours`: as the library does it, CG in `f64` for a random b to a certified residual of 1e-8.
//!
//! `paper`: as far as Ma, Ahmad, Cheshmi, Sundar & Hall 2025 describe it. A, M, b and x are in `f32`, and CG ends when ‖r‖₂ of its recurrence is at most 1e-12, not
//! relative to b, or after 1000 iterations; ILU(0) without a shift: with a bad pivot a solve ends without an answer. The recurrence in `f32` goes on falling when the residual does not, so a solve that ends
//! so is not an answer to 12 digits: the residual that is recomputed in `f64` is kept beside. Which b was used is not said; it is 1 here.
//!
//! `paper-fill`: the same with the text's ILU(K), where K is no level but SuperLU's fill factor: the factor has at most K times the entries of A
//! ([`Rule::FillFactor`], entries below 1e-4 dropped, in the order as given, without exchanges of columns, with which CG would make no sense, and pivots that are too small replaced). K is that of 10, 20, 30 and 40
//! whose solve without sparsification converges in the least time on the modelled device; 10 if none converges. It is kept for Â.
//!
//! `auto` knows chains of factors without fill only, so it refuses there.

use crate::Failure;
use clap::ValueEnum;
use krylith::gallery::random_vector;
use krylith::krylov::{Cg, Status, System};
use krylith::matrix::Triangle;
use krylith::operator::{Recipe, Symbolic};
use krylith::plan::{Applied, DEVICE, Machine, StorageKind, Work};
use krylith::precond::threshold::{IlutOptions, Rule, ilut};
use krylith::precond::{Form, Incomplete, IncompleteFactor};
use krylith::schedule::{Schedule, Wavefronts};
use krylith::space::Threads;
use krylith::sparsify::{Sparsification, Sparsify};
use krylith::stop::{IterationLimit, Residual, StopReason};
use krylith::{Csr, Method, Outcome, Precision, PrecondSpec, SetupError, Solver};
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// How systems are solved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Protocol {
    /// CG in f64 to a certified residual of 1e-8, at most 5000 iterations
    Ours,
    /// CG in f32 with ILU(0) until the recurrence has 1e-12, at most 1000 iterations
    Paper,
    /// The same with a fill factor of 10, 20, 30 or 40
    PaperFill,
}

/// What is asked for besides the system.
#[derive(Debug, Clone)]
pub struct Asked {
    pub sparsify: Sparsify,
    /// That `auto` decides for.
    pub machine: Machine,
    pub threads: usize,
    pub schedule: Schedule,
}

/// What an iteration sweeps, and how often it waits.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Sweeps {
    /// Entries of both triangles and the diagonal.
    pub entries: usize,
    /// Of one triangle.
    pub wavefronts: usize,
}

/// A solve.
#[derive(Debug, Clone)]
pub struct Ran {
    pub found: Option<Sparsification>,
    /// Entries of the matrix that M is made from.
    pub left: usize,
    pub sweeps: Sweeps,
    pub has_converged: bool,
    pub iterations: usize,
    /// ‖b − A x‖₂ / ‖b‖₂, computed in `f64`.
    pub residual: f64,
    /// Seconds.
    pub set_up: f64,
    pub solve: f64,
}

/// A protocol with the numbers that it has for one matrix.
#[derive(Debug, Clone)]
pub enum Solving {
    Ours(PrecondSpec),
    /// The fill factor; none for ILU(0).
    Single(Option<f64>),
}

const OURS: usize = 5000;
const PAPER: usize = 1000;
const RESIDUAL: f32 = 1e-12;
const FILL: [f64; 4] = [10.0, 20.0, 30.0, 40.0];
/// SuperLU's default.
const TAU: f64 = 1e-4;
/// Bytes that a factor with fill may take.
const MOST: u64 = 8 << 30;

impl Protocol {
    /// In words, for tables.
    pub fn words(self, precond: PrecondSpec) -> String {
        match self {
            Protocol::Ours => format!("CG with {precond}, random b, a certified residual of 1e-8"),
            Protocol::Paper => {
                "CG in f32 with ilu0, b = 1, ‖r‖ ≤ 1e-12 by the recurrence within 1000 iterations".into()
            }
            Protocol::PaperFill => {
                "CG in f32 with ilut of a fill factor of 10 to 40, b = 1, ‖r‖ ≤ 1e-12 by the recurrence within 1000 iterations".into()
            }
        }
    }

    /// What is the same for all settings of a matrix.
    pub fn for_matrix(self, precond: PrecondSpec, a: &Csr<f64>) -> Result<Solving, Failure> {
        Ok(match self {
            Protocol::Ours => Solving::Ours(precond),
            Protocol::Paper => Solving::Single(None),
            Protocol::PaperFill => {
                let asked =
                    Asked { sparsify: Sparsify::Off, machine: DEVICE, threads: 1, schedule: Schedule::Auto };
                let mut best = (f64::INFINITY, FILL[0]);
                for factor in FILL {
                    let solving = Solving::Single(Some(factor));
                    let ran = solving.run(a, &asked)?;
                    let (set_up, iteration) = solving.model(&DEVICE, a, &ran.sweeps);
                    let total = set_up + ran.iterations as f64 * iteration;
                    if ran.has_converged && total < best.0 {
                        best = (total, factor);
                    }
                }
                Solving::Single(Some(best.1))
            }
        })
    }
}

impl Solving {
    pub fn run(&self, a: &Csr<f64>, asked: &Asked) -> Result<Ran, Failure> {
        match self {
            Solving::Ours(precond) => ours(a, precond.clone(), asked),
            Solving::Single(fill) => single(a, *fill, asked),
        }
    }

    /// Seconds of a set-up and of an iteration, as a model has them: by rows.
    pub fn model(&self, machine: &Machine, a: &Csr<f64>, sweeps: &Sweeps) -> (f64, f64) {
        let mut machine = machine.clone();
        if let Solving::Single(_) = self {
            let rows = &mut machine.rows;
            (rows.product, rows.sweep) = (rows.sweep_f32, rows.sweep_f32);
            machine.vector /= 2.0;
        }
        let work = Work {
            method: Method::Cg,
            storage: StorageKind::Rows,
            precision: Precision::F64,
            rows: a.nrows(),
            entries: a.nnz(),
            swept: (sweeps.entries + if self.is_symmetric() { a.nrows() } else { 0 }) as f64,
            applied: Applied::Sweeps { wavefronts: sweeps.wavefronts as f64 },
            without_product: false,
            constant: false,
            constant_factor: false,
        };
        (self.model_set_up(&machine, a, sweeps), 1e-9 * machine.iteration(&work))
    }

    /// Seconds of a set-up; that of a factor by threshold is taken to cost as much per entry as one on a pattern.
    pub fn model_set_up(&self, machine: &Machine, a: &Csr<f64>, sweeps: &Sweeps) -> f64 {
        1e-9 * machine.set_up(StorageKind::Rows, (a.nrows(), a.nnz()), sweeps.entries as f64, 1.0)
    }

    /// The diagonal of a symmetric factor is swept twice.
    fn is_symmetric(&self) -> bool {
        matches!(self, Solving::Ours(precond) if precond.info().symmetric)
    }
}

fn ours(a: &Csr<f64>, precond: PrecondSpec, asked: &Asked) -> Result<Ran, Failure> {
    let b: Vec<f64> = random_vector(a.nrows());
    let solver = Solver::new().method(Method::Cg).preconditioner(precond).threads(asked.threads);
    let solver = solver.max_iterations(OURS).precision(Precision::F64).schedule(asked.schedule);
    let solver = solver.machine(asked.machine.clone()).sparsify(asked.sparsify);
    let report = solver.solve(a, &b)?.report;
    let found = report.plan.sparsification;
    let (left, wavefronts) = match found.as_ref().and_then(Sparsification::chosen) {
        Some(taken) => (a.nnz() - taken.dropped, taken.wavefronts),
        None => (a.nnz(), Wavefronts::new(a.pattern(), Triangle::Lower)?.count()),
    };
    Ok(Ran {
        found,
        left,
        sweeps: Sweeps { entries: left, wavefronts },
        has_converged: report.outcome == Outcome::Converged,
        iterations: report.iterations,
        residual: report.relative_residual,
        set_up: report.seconds.analyze + report.seconds.factor,
        solve: report.seconds.solve,
    })
}

/// CG in `f32`.
fn single(a: &Csr<f64>, fill: Option<f64>, asked: &Asked) -> Result<Ran, Failure> {
    let started = Instant::now();
    let (found, sparser) = sparser(a, fill, asked)?;
    let narrow: Csr<f32> = a.cast();
    let source = sparser.map_or_else(|| narrow.clone(), |sparser| sparser.cast());
    let space = Threads::<f32>::for_rows(asked.threads, a.nrows());
    let factor = factored(&space, &source, fill, asked.schedule);
    let set_up = started.elapsed().as_secs_f64();
    let factor = match factor {
        Ok(factor) => factor,
        Err(_) => {
            let wavefronts = Wavefronts::new(source.pattern(), Triangle::Lower)?.count();
            let (left, sweeps) = (source.nnz(), Sweeps { entries: source.nnz(), wavefronts });
            let (has_converged, iterations, residual, solve) = (false, 0, 1.0, 0.0);
            return Ok(Ran { found, left, sweeps, has_converged, iterations, residual, set_up, solve });
        }
    };
    let started = Instant::now();
    let system = System { space: &space, a: &narrow, m: &factor };
    let (b, mut x) = (vec![1f32; a.nrows()], vec![0f32; a.nrows()]);
    let mut stop = (Residual { rtol: 0.0, atol: RESIDUAL }, IterationLimit(PAPER));
    let finish = Cg::new(system)?.solve(system, &b, &mut x, &mut stop, &mut ())?;
    let solve = started.elapsed().as_secs_f64();
    let (lower, _, upper) = factor.parts();
    Ok(Ran {
        found,
        left: source.nnz(),
        sweeps: Sweeps {
            entries: lower.nnz() + upper.nnz() + a.nrows(),
            wavefronts: Wavefronts::new(lower.pattern(), Triangle::Lower)?.count(),
        },
        has_converged: finish.status == Status::Stopped(StopReason::ResidualMet),
        iterations: finish.iterations,
        residual: relative_residual(a, &x)?,
        set_up,
        solve,
    })
}

fn factored(
    space: &Threads<f32>,
    source: &Csr<f32>,
    fill: Option<f64>,
    schedule: Schedule,
) -> Result<IncompleteFactor<f32>, SetupError> {
    let Some(factor) = fill else {
        return Incomplete::ilu(0).schedule(schedule).analyze(space, source)?.factor(space, source);
    };
    let rule = Rule::FillFactor { factor };
    let triangles = ilut(source.view(), &IlutOptions { rule, tau: TAU, permtol: None, max_bytes: MOST })?;
    IncompleteFactor::frozen(Form::LU, source.pattern(), triangles, space.threads(), schedule)
}

/// What is dropped, and the matrix without it. `auto` is asked for by a set-up of ours, so its seconds are too many by a factor in `f64`.
fn sparser(
    a: &Csr<f64>,
    fill: Option<f64>,
    asked: &Asked,
) -> Result<(Option<Sparsification>, Option<Csr<f64>>), Failure> {
    if asked.sparsify != Sparsify::Auto {
        let (found, sparser) = asked.sparsify.apply(a).unzip();
        return Ok((found, sparser.map(|sparser| sparser.matrix().clone())));
    }
    if fill.is_some() {
        return Ok((None, None));
    }
    let solver = Solver::new().method(Method::Cg).preconditioner(PrecondSpec::ilu(0)).threads(asked.threads);
    let solver = solver.machine(asked.machine.clone()).precision(Precision::F64).sparsify(Sparsify::Auto);
    let prepared = solver.prepare(a)?;
    Ok((prepared.plan().sparsification.clone(), prepared.sparsified().cloned()))
}

/// ‖b − A x‖₂ / ‖b‖₂ for b = 1.
fn relative_residual(a: &Csr<f64>, x: &[f32]) -> Result<f64, Failure> {
    let x: Vec<f64> = x.iter().map(|&x| x.into()).collect();
    let mut product = vec![0.0; a.nrows()];
    a.mul_vec(&x, &mut product)?;
    Ok((product.iter().map(|v| (1.0 - v).powi(2)).sum::<f64>() / a.nrows() as f64).sqrt())
}
