//! What a device does in a second: a few figures that people with one can send.
//!
//! Every figure is the least of five repetitions after one to warm up. Bytes are counted, not measured: 24 per entry of y = a x + b y, 16 per entry of a
//! dot product, 12 per entry and 24 per row of a product.

use crate::device::{Buffer, Device};
use crate::matrix::DeviceMatrix;
use crate::solver::OnDevice;
use crate::space::DeviceSpace;
use krylith::calibrate::{MeasuredPlace, Overhead};
use krylith::gallery::Problem;
use krylith::operator::LinearOperator;
use krylith::space::Space;
use krylith::{Csr, Method, PrecondSpec, Report, SolveError, Solver};
use serde::Serialize;
use std::time::Instant;

const REPETITIONS: usize = 5;
/// Operations that are timed together.
const TOGETHER: usize = 20;

/// The figures of a device.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DeviceFigures {
    /// The problem, as `krylith gen` names it.
    pub problem: String,
    /// Its rows.
    pub rows: usize,
    /// Its entries.
    pub entries: usize,
    /// Gigabytes per second of y = a x + b y.
    pub update_gigabytes_per_second: f64,
    /// Of a dot product, its result read.
    pub dot_gigabytes_per_second: f64,
    /// Of a product with the matrix.
    pub product_gigabytes_per_second: f64,
    /// Microseconds of a launch without work, in a queue of many.
    pub launch_microseconds: f64,
    /// Microseconds until the result of a launch without work is read.
    pub read_microseconds: f64,
    /// Whole solves.
    pub solves: Vec<SolveFigures>,
}

/// A solve to 1e-8 with b = A·1, certified.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SolveFigures {
    /// Of conjugate gradients.
    pub preconditioner: String,
    /// How it ended.
    pub outcome: String,
    /// Iterations.
    pub iterations: usize,
    /// The recomputed residual over the norm of b.
    pub relative_residual: f64,
    /// Seconds of the analysis, of the factor, of copies, and of the solve.
    pub analyze: f64,
    /// Of the factor.
    pub factor: f64,
    /// Of copies.
    pub copy: f64,
    /// Of the solve.
    pub solve: f64,
    /// Launches in the solve.
    pub launches: u64,
    /// How often the host waited for the device.
    pub synchronisations: u64,
}

/// The least seconds of one of several operations that are queued together.
fn least(
    space: &DeviceSpace<f64>,
    mut operation: impl FnMut() -> Result<(), SolveError>,
) -> Result<f64, SolveError> {
    let mut least = f64::INFINITY;
    for repetition in 0..=REPETITIONS {
        let started = Instant::now();
        (0..TOGETHER).try_for_each(|_| operation())?;
        space.finish()?;
        if repetition > 0 {
            least = least.min(started.elapsed().as_secs_f64() / TOGETHER as f64);
        }
    }
    Ok(least)
}

/// Of y = a x + b y.
fn update_seconds(space: &DeviceSpace<f64>, x: &Buffer<f64>, y: &mut Buffer<f64>) -> Result<f64, SolveError> {
    least(space, || Ok(space.axpby(0.5, x, 0.5, y)?))
}

/// Of a launch without work, and of a dot product without work, its result read.
fn waits(space: &DeviceSpace<f64>) -> Result<[f64; 2], SolveError> {
    let (mut small, one) = (space.zeros(&1)?, space.zeros(&1)?);
    let launch = least(space, || Ok(space.fill(1.0, &mut small)?))?;
    Ok([launch, least(space, || Ok(space.dot(&one, &one).map(drop)?))?])
}

/// Numbers of the vectors that are measured for a machine's figures.
const NUMBERS: usize = 1_000_000;

impl MeasuredPlace for Device {
    fn solve(&self, solver: &Solver, a: &Csr<f64>, b: &[f64]) -> Result<Report, SolveError> {
        Ok(solver.clone().on(self).solve(a, b)?.report)
    }

    fn overhead(&self) -> Result<Option<Overhead>, SolveError> {
        let space = DeviceSpace::<f64>::new(self)?;
        let (x, mut y) = (space.zeros(&NUMBERS)?, space.zeros(&NUMBERS)?);
        let update = update_seconds(&space, &x, &mut y)?;
        let [launch, reduction] = waits(&space)?;
        Ok(Some(Overhead {
            device: self.info().name.clone(),
            launch: 1e9 * launch,
            reduction: 1e9 * reduction,
            vector: 1e9 * update / (3 * NUMBERS) as f64,
        }))
    }
}

/// Measures a device on the 7-point Laplacian of a cube with `side` points per edge.
pub fn measure(device: &Device, side: usize) -> Result<DeviceFigures, SolveError> {
    let problem = format!("poisson3d:{side}");
    let unknown = |what: String| krylith::BackendError::Failed { what };
    let parsed: Problem =
        problem.parse().map_err(|error: krylith::gallery::GalleryError| unknown(error.to_string()))?;
    let a = parsed.generate().map_err(|error| unknown(error.to_string()))?;
    let (rows, entries) = (a.nrows(), a.nnz());
    let space = DeviceSpace::<f64>::new(device)?;
    let matrix = DeviceMatrix::new(&space, &a)?;
    let (mut x, mut y) = (space.zeros(&rows)?, space.zeros(&rows)?);
    space.fill(1.0, &mut x)?;
    let gigabytes = |bytes: usize, seconds: f64| 1e-9 * bytes as f64 / seconds;
    let update = update_seconds(&space, &x, &mut y)?;
    let dot = least(&space, || Ok(space.dot(&x, &y).map(drop)?))?;
    let product = least(&space, || Ok(matrix.apply(&space, &x, &mut y, &mut ())?))?;
    let [launch, read] = waits(&space)?;
    let solves = [PrecondSpec::jacobi(), PrecondSpec::ic(0)].map(|kind| solve(device, &a, kind));
    Ok(DeviceFigures {
        problem,
        rows,
        entries,
        update_gigabytes_per_second: gigabytes(24 * rows, update),
        dot_gigabytes_per_second: gigabytes(16 * rows, dot),
        product_gigabytes_per_second: gigabytes(12 * entries + 24 * rows, product),
        launch_microseconds: 1e6 * launch,
        read_microseconds: 1e6 * read,
        solves: solves.into_iter().collect::<Result<_, _>>()?,
    })
}

fn solve(device: &Device, a: &Csr<f64>, preconditioner: PrecondSpec) -> Result<SolveFigures, SolveError> {
    let solver = Solver::new().method(Method::Cg).preconditioner(preconditioner.clone());
    let mut b = vec![0.0; a.nrows()];
    a.mul_vec(&vec![1.0; a.ncols()], &mut b).map_err(krylith::SetupError::from)?;
    let prepared = solver.on(device).prepare(a)?;
    let mut best: Option<Report> = None;
    for _ in 0..2 {
        let mut x = vec![0.0; a.ncols()];
        let report = prepared.solve(a, &b, &mut x)?;
        if best.as_ref().is_none_or(|best| report.seconds.solve < best.seconds.solve) {
            best = Some(report);
        }
    }
    let report = best.expect("two solves");
    let device = report.device.as_ref();
    Ok(SolveFigures {
        preconditioner: preconditioner.to_string(),
        outcome: report.outcome.name().into(),
        iterations: report.iterations,
        relative_residual: report.relative_residual,
        analyze: report.seconds.analyze,
        factor: report.seconds.factor,
        copy: report.seconds.copy,
        solve: report.seconds.solve,
        launches: device.map_or(0, |device| device.launches),
        synchronisations: device.map_or(0, |device| device.synchronisations),
    })
}
