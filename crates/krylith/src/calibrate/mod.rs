//! The figures of the machine at hand, for predicting what a solve costs there.
//!
//! Each problem is solved in the [`MeasuredPlace`] with a fixed number of iterations, with several storages, levels of fill and precisions, in rounds; the least seconds
//! of each count. The nanoseconds per entry of a [`Machine`] are those that fit the iterations and set-ups of all of them best, in the sense of least squares of relative
//! errors, none of them below zero. Those of complete factors are fitted in the same way.
//! On more than one thread, small problems are added, whose sweeps mostly wait: they say what a wavefront costs.
//!
//! A device keeps matrices in its own way, so there is one storage, and approximate inverses say what a product takes. Its launches, sums and vectors are measured
//! by themselves ([`Overhead`]) and taken off before the fit.
//!
//! ```no_run
//! use krylith::calibrate::{Calibration, OnThreads, calibrate};
//! let machine = calibrate(&OnThreads, &Calibration::new("mine").threads(4), &mut |line| eprintln!("{line}"))?;
//! let solver = krylith::Solver::new().machine(machine).threads(4);
//! # Ok::<(), krylith::calibrate::CalibrationError>(())
//! ```

mod fit;
mod trials;

use crate::cost::{LAUNCHES_OF_M, Machine, Operations, REFERENCE, Rates, operations};
use crate::error::SolveError;
use crate::facts::{Facts, wavefronts};
use crate::gallery::{GalleryError, Problem, random_vector};
use crate::matrix::Csr;
use crate::options::{Layout, Method, Precision, StorageKind};
use crate::precond::PrecondSpec;
use crate::precond::direct::{Direct, DirectKind};
use crate::precond::registry::Construction;
use crate::report::Report;
use crate::solver::Solver;
use fit::Equations;
use std::time::Instant;
use trials::{DIRECT, INVERSES, ON_DEVICE, REPEATED, SMALL, TRIALS, Trial};

/// Where solves are measured.
pub trait MeasuredPlace {
    /// Solves A x = b from x = 0 there.
    fn solve(&self, solver: &Solver, a: &Csr<f64>, b: &[f64]) -> Result<Report, SolveError>;

    /// What a device takes besides the work of a solve; none for threads.
    fn overhead(&self) -> Result<Option<Overhead>, SolveError> {
        Ok(None)
    }
}

/// What a device takes besides products and sweeps, in nanoseconds.
#[derive(Debug, Clone, PartialEq)]
pub struct Overhead {
    /// The name of the device.
    pub device: String,
    /// A launch without work, in a queue of many.
    pub launch: f64,
    /// Until the host has a sum.
    pub reduction: f64,
    /// A number of a vector that is read or written.
    pub vector: f64,
}

/// The threads of this process.
#[derive(Debug, Clone, Copy)]
pub struct OnThreads;

impl MeasuredPlace for OnThreads {
    fn solve(&self, solver: &Solver, a: &Csr<f64>, b: &[f64]) -> Result<Report, SolveError> {
        Ok(solver.solve(a, b)?.report)
    }
}

/// How a machine is measured.
#[derive(Debug, Clone)]
pub struct Calibration {
    name: String,
    threads: usize,
    rounds: usize,
}

impl Calibration {
    /// One thread and three rounds, for a machine of this name.
    pub fn new(name: impl Into<String>) -> Self {
        Calibration { name: name.into(), threads: 1, rounds: 3 }
    }

    /// Threads to measure with, at least one: plans then weigh what sweeps wait for.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads.max(1);
        self
    }

    /// Rounds, at least one; the least seconds count.
    #[must_use]
    pub fn rounds(mut self, rounds: usize) -> Self {
        self.rounds = rounds.max(1);
        self
    }
}

/// Why a machine could not be measured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CalibrationError {
    /// A problem could not be generated.
    #[error("a problem to measure with could not be made: {0}")]
    Problem(#[from] GalleryError),
    /// A solve failed.
    #[error("a solve to measure with failed: {0}")]
    Solve(#[from] SolveError),
    /// The runs say too little.
    #[error("{0}: no solver takes this machine; measure again, with more rounds")]
    Unclear(SolveError),
}

/// Figures of a storage: product, sweep, sweep in `f32`; then a copy and a set-up, and behind those of all storages an elimination.
const PER_ITERATION: usize = 3;
const STORAGES: usize = 4;
/// The place of what numbers of vectors cost, and behind it product and sweep with constant coefficients, and a wavefront in each storage.
const VECTOR: usize = PER_ITERATION * STORAGES;
const WAVEFRONT: usize = VECTOR + 3;
const TERMS: usize = WAVEFRONT + STORAGES;
/// As many as leave the beginning and the end of a solve a small part of it.
const ITERATIONS: usize = 80;

/// Measures a machine; `progress` gets a line for each run.
pub fn calibrate(
    place: &dyn MeasuredPlace,
    calibration: &Calibration,
    progress: &mut dyn FnMut(&str),
) -> Result<Machine, CalibrationError> {
    let overhead = place.overhead()?;
    let mut bench = Bench { place, calibration, overhead: overhead.as_ref(), progress };
    let machine = bench.machine()?;
    machine.validate().map_err(CalibrationError::Unclear)?;
    Ok(machine)
}

/// The runs of a calibration.
struct Bench<'c> {
    place: &'c dyn MeasuredPlace,
    calibration: &'c Calibration,
    overhead: Option<&'c Overhead>,
    progress: &'c mut dyn FnMut(&str),
}

fn generated(name: &str) -> Result<Csr<f64>, GalleryError> {
    name.parse::<Problem>()?.generate()
}

impl Bench<'_> {
    fn machine(&mut self) -> Result<Machine, CalibrationError> {
        let (per_iteration, per_set_up) = self.iterations_and_set_ups()?;
        let kinds = [REFERENCE.grid, REFERENCE.blocks, REFERENCE.slices, REFERENCE.rows];
        let rates = |storage: usize| {
            let (own, reference) = (PER_ITERATION * storage, kinds[storage]);
            let sweep = found_or(per_iteration[own + 1], reference.sweep);
            Rates {
                product: found_or(per_iteration[own], reference.product),
                sweep,
                // Blocks are in `f64` only.
                sweep_f32: found_or(per_iteration[own + 2], sweep),
                copy: found_or(per_set_up[2 * storage], reference.copy),
                set_up: found_or(per_set_up[2 * storage + 1], reference.set_up),
                wavefront: round(per_iteration[WAVEFRONT + storage]),
            }
        };
        let mut machine = REFERENCE;
        machine.name = self.calibration.name.clone().into();
        machine.threads = self.calibration.threads;
        (machine.grid, machine.blocks, machine.slices, machine.rows) =
            (rates(0), rates(1), rates(2), rates(3));
        machine.vector = found_or(per_iteration[VECTOR], REFERENCE.vector);
        (machine.constant_product, machine.constant_sweep) = (
            found_or(per_iteration[VECTOR + 1], REFERENCE.constant_product),
            found_or(per_iteration[VECTOR + 2], REFERENCE.constant_sweep),
        );
        let [analysis, row, matching, flop, factor] = self.direct()?;
        (machine.analysis_row, machine.matching) = (round(row), round(matching));
        machine.analysis = found_or(analysis, REFERENCE.analysis);
        (machine.flop, machine.factor) = (found_or(flop, REFERENCE.flop), found_or(factor, REFERENCE.factor));
        (machine.eliminate, machine.facts) = (round(per_set_up[2 * STORAGES]), round(self.facts()?));
        match self.overhead {
            None => {
                machine.repeated = found_or(self.repeated(machine.vector)?, REFERENCE.repeated);
                machine.complete_solve = round(2.0 * machine.slices.product);
            }
            Some(overhead) => of_device(&mut machine, overhead),
        }
        let [inverse, grow] = self.inverses(machine.slices.copy)?;
        (machine.inverse, machine.grow) = (found_or(inverse, REFERENCE.inverse), round(grow));
        Ok(machine)
    }

    /// What fits iterations, and what fits set-ups.
    fn iterations_and_set_ups(&mut self) -> Result<(Vec<f64>, Vec<f64>), CalibrationError> {
        let (mut iterations, mut set_ups) = (Equations::default(), Equations::default());
        let trials = match (self.overhead, self.calibration.threads > 1) {
            (Some(_), _) => [ON_DEVICE, &[]],
            (None, true) => [TRIALS, SMALL],
            (None, false) => [TRIALS, &[]],
        };
        for trial in trials.into_iter().flatten() {
            let (a, storage) = (generated(trial.problem)?, trial.storage as usize);
            for member in trial.members {
                let precisions: &[Precision] = match (self.overhead, trial.storage) {
                    (Some(_), _) | (None, StorageKind::Blocks) => &[Precision::F64],
                    _ => &[Precision::F64, Precision::Mixed],
                };
                for &precision in precisions {
                    if let Some(seen) = self.measure(&a, trial, &named(member)?, precision)? {
                        (self.progress)(&format!("{} {member} {precision:?}: {seen:?}", trial.problem));
                        iterations.add(seen.iteration_terms(storage, &a), seen.iteration);
                        // An approximate inverse is made in another way.
                        if !seen.multiplies {
                            set_ups.add(seen.set_up_terms(storage, &a), seen.set_up);
                        }
                    }
                }
            }
        }
        for storage in 0..STORAGES {
            iterations.add_weakly(product_of(storage), 0.0);
        }
        let mut vector = vec![0.0; TERMS];
        vector[VECTOR] = 1.0;
        match self.overhead {
            Some(overhead) => iterations.add(vector, overhead.vector),
            // Where rows have about the same number of entries, runs cannot separate vectors from entries. A number is 8 bytes, at 20 GB/s.
            None => iterations.add_weakly(vector, 0.4),
        }
        Ok((iterations.solve(), set_ups.solve()))
    }

    /// The least seconds of a member; none where the run says nothing.
    fn measure(
        &self,
        a: &Csr<f64>,
        trial: &Trial,
        kind: &PrecondSpec,
        precision: Precision,
    ) -> Result<Option<Seen>, SolveError> {
        let b: Vec<f64> = random_vector(a.nrows());
        let symmetric = a.symmetry().symmetric;
        let method = if symmetric { Method::Cg } else { Method::BiCgStab };
        let layout = match trial.storage {
            StorageKind::Grid | StorageKind::Blocks => Layout::Auto,
            StorageKind::Slices => Layout::Slices,
            StorageKind::Rows => Layout::Rows,
        };
        let solver = Solver::new()
            .method(method)
            .preconditioner(kind.clone())
            .precision(precision)
            .layout(layout)
            .threads(self.calibration.threads)
            .rtol(0.0)
            .max_iterations(ITERATIONS);
        let (mut iteration, mut set_up) = (f64::INFINITY, f64::INFINITY);
        let mut last = None;
        for _ in 0..self.calibration.rounds {
            let report = self.place.solve(&solver, a, &b)?;
            if !report.recovery.is_empty() || report.iterations == 0 {
                return Ok(None);
            }
            iteration = iteration.min(1e9 * report.seconds.solve / report.iterations as f64);
            set_up = set_up.min(1e9 * set_up_seconds(&report));
            last = Some(report);
        }
        let Some(report) = last else { return Ok(None) };
        let multiplies = matches!(kind.construct(), Construction::Inverse(_));
        let (n, stored) = (a.nrows() as f64, report.preconditioner_nnz as f64);
        let (swept, made) = match symmetric {
            true => (2.0 * stored, 2.0 * stored - n),
            // The entries of an approximate inverse are those of one of its two matrices.
            false if multiplies => (2.0 * stored, stored),
            false => (stored, stored),
        };
        let growth = if trial.storage == StorageKind::Grid { 1.0 } else { (made - n) / (a.nnz() as f64 - n) };
        let operations = operations(method);
        let waits = self.overhead.map_or(0.0, |overhead| {
            let launches = operations.launches + operations.products * LAUNCHES_OF_M;
            launches * overhead.launch + operations.reductions * overhead.reduction
        });
        Ok(Some(Seen {
            // A launch takes less time where the one before has work to do.
            iteration: (iteration - waits).max(iteration / 4.0),
            set_up,
            operations,
            swept: if kind.is_none() { 0.0 } else { swept },
            multiplies,
            wavefronts: match self.overhead.is_some() || self.calibration.threads > 1 {
                true if kind.incomplete().is_some() => wavefronts(a, kind.level()),
                _ => 0.0,
            },
            filled: made.max(0.0),
            made: made.max(0.0) * growth.max(1.0),
            narrow: precision != Precision::F64 && kind.info().can_shift,
            without_product: report.layout.contains("Eisenstat"),
            constant: report.layout.contains("constant coefficients"),
        }))
    }

    /// The facts per entry.
    fn facts(&self) -> Result<f64, CalibrationError> {
        let mut all = Equations::default();
        for trial in TRIALS {
            let a = generated(trial.problem)?;
            let mut least = f64::INFINITY;
            for _ in 0..self.calibration.rounds {
                let started = Instant::now();
                std::hint::black_box(Facts::of_matrix(&a));
                least = least.min(1e9 * started.elapsed().as_secs_f64());
            }
            all.add(vec![a.nnz() as f64], least);
        }
        Ok(all.solve()[0])
    }

    /// An entry of the pattern of an approximate inverse, and what its growth takes besides, as `Machine::inverse` adds them up.
    fn inverses(&mut self, copy: f64) -> Result<[f64; 2], CalibrationError> {
        let mut all = Equations::default();
        for (problem, members) in INVERSES {
            let a = generated(problem)?;
            let (b, rows): (Vec<f64>, _) = (random_vector(a.nrows()), a.nrows() as f64);
            for member in *members {
                let solver = Solver::new()
                    .method(Method::Cg)
                    .preconditioner(named(member)?)
                    .threads(self.calibration.threads);
                let solver = solver.max_iterations(1);
                let (mut set_up, mut entries) = (f64::INFINITY, 0.0);
                for _ in 0..self.calibration.rounds {
                    let report = self.place.solve(&solver, &a, &b)?;
                    set_up = set_up.min(1e9 * set_up_seconds(&report));
                    entries = report.preconditioner_nnz as f64;
                }
                (self.progress)(&format!("{problem} {member}: set-up {set_up:.0} ns, {entries} entries"));
                let grows = if member.starts_with("afsai") { entries * a.nnz() as f64 / rows } else { 0.0 };
                let remains = set_up - copy * a.nnz() as f64;
                // The price of a copy is a fit: where it exceeds the whole set-up, the run says nothing.
                if remains <= 0.0 {
                    continue;
                }
                all.add(vec![entries * (1.0 + entries / rows / 32.0), grows], remains);
            }
        }
        let found = all.solve();
        Ok([found[0], found[1]])
    }

    /// An entry in a product with slices of which one is stored for many, a number of a vector being known.
    fn repeated(&mut self, vector: f64) -> Result<f64, CalibrationError> {
        let mut all = Equations::default();
        for (problem, member) in REPEATED {
            let a = generated(problem)?;
            let trial = Trial { storage: StorageKind::Slices, problem, members: &[] };
            if let Some(seen) = self.measure(&a, &trial, &named(member)?, Precision::F64)? {
                let remains = seen.iteration - vector * seen.operations.vectors * a.nrows() as f64;
                let entries = a.nnz() as f64 + seen.swept;
                (self.progress)(&format!("{problem} {member}: {seen:?}, {:.3} per entry", remains / entries));
                // The price of a vector is a fit, too.
                if remains > 0.0 {
                    all.add(vec![entries], remains);
                }
            }
        }
        Ok(all.solve()[0])
    }

    /// Analysis per entry and per row, a matching per entry, a flop, a number of the factor.
    fn direct(&mut self) -> Result<[f64; 5], CalibrationError> {
        let (mut analyses, mut factors) = (Equations::default(), Equations::default());
        for (problem, member) in DIRECT {
            let a = generated(problem)?;
            let b: Vec<f64> = random_vector(a.nrows());
            let solver = Solver::new()
                .method(Method::Gmres(10))
                .preconditioner(named(member)?)
                .threads(self.calibration.threads);
            let kind = if *member == "lu" { DirectKind::Lu } else { DirectKind::Cholesky };
            let flops = Direct { kind, max_bytes: None }.symbolic(&a).map_err(SolveError::from)?.cost().flops;
            let (mut analyze, mut factor) = (f64::INFINITY, f64::INFINITY);
            let mut entries = 0;
            for _ in 0..self.calibration.rounds {
                let report = self.place.solve(&solver, &a, &b)?;
                analyze = analyze.min(1e9 * report.seconds.analyze);
                factor = factor.min(1e9 * (report.seconds.factor + report.seconds.solve));
                entries = report.preconditioner_nnz;
            }
            (self.progress)(&format!(
                "{problem} {member}: analysis {analyze:.0} ns, factor {factor:.0} ns, {flops:.2e} flops, {entries} entries"
            ));
            let matched = if kind == DirectKind::Cholesky { 0.0 } else { a.nnz() as f64 };
            analyses.add(vec![a.nnz() as f64, a.nrows() as f64, matched], analyze);
            factors.add(vec![flops, entries as f64], factor);
        }
        let (analyses, factors) = (analyses.solve(), factors.solve());
        Ok([analyses[0], analyses[1], analyses[2], factors[0], factors[1]])
    }
}

/// On a device all storages have the same figures, and nothing is stored once for many.
fn of_device(machine: &mut Machine, overhead: &Overhead) {
    machine.rows.sweep_f32 = machine.rows.sweep;
    let rows = machine.rows;
    (machine.grid, machine.blocks, machine.slices) = (rows, rows, rows);
    (machine.constant_product, machine.constant_sweep, machine.repeated) =
        (rows.product, rows.sweep, rows.product);
    machine.device = Some(overhead.device.clone().into());
    (machine.launch, machine.reduction) = (round(overhead.launch), round(overhead.reduction));
}

fn named(member: &str) -> Result<PrecondSpec, CalibrationError> {
    let needed = || SolveError::Option {
        name: "preconditioner",
        value: member.into(),
        needed: "a name of the registry".into(),
    };
    member.parse().map_err(|_| needed().into())
}

/// Analysis, factor and copies to a device.
fn set_up_seconds(report: &Report) -> f64 {
    report.seconds.analyze + report.seconds.factor + report.seconds.copy
}

/// Nanoseconds, and what they were spent on.
#[derive(Debug)]
struct Seen {
    iteration: f64,
    set_up: f64,
    /// Products and solves in an iteration, and vectors that are read or written besides.
    operations: Operations,
    /// Entries of the factor that are swept or multiplied by in a solve.
    swept: f64,
    /// M is applied by products.
    multiplies: bool,
    /// Wavefronts of a sweep, as plans predict them; 0 on one thread, which does not wait.
    wavefronts: f64,
    /// Entries of the factor with both triangles.
    filled: f64,
    /// The same, times the search for fill.
    made: f64,
    narrow: bool,
    without_product: bool,
    constant: bool,
}

impl Seen {
    fn iteration_terms(&self, storage: usize, a: &Csr<f64>) -> Vec<f64> {
        let mut terms = vec![0.0; TERMS];
        let Operations { products, vectors, .. } = self.operations;
        let own = PER_ITERATION * storage;
        let product = if self.constant { VECTOR + 1 } else { own };
        let sweep = match self.narrow {
            // Where the product is part of the sweeps, the factor has the off-diagonals of A.
            _ if self.multiplies => product,
            _ if self.constant && self.without_product => VECTOR + 2,
            true => own + 2,
            false => own + 1,
        };
        terms[product] = if self.without_product { 0.0 } else { products * a.nnz() as f64 };
        terms[sweep] += products * self.swept;
        terms[VECTOR] = vectors * a.nrows() as f64;
        terms[WAVEFRONT + storage] = products * 2.0 * self.wavefronts;
        terms
    }

    fn set_up_terms(&self, storage: usize, a: &Csr<f64>) -> Vec<f64> {
        let mut terms = vec![0.0; 2 * STORAGES + 1];
        (terms[2 * storage], terms[2 * storage + 1]) = (a.nnz() as f64, self.made);
        if storage >= 2 {
            terms[2 * STORAGES] = self.filled * self.filled / a.nrows() as f64;
        }
        terms
    }
}

/// Products and sweeps have nearly the same entries, and runs can hardly tell them apart. Where they cannot, a product is taken to cost half a
/// sweep, which waits for the rows before.
fn product_of(storage: usize) -> Vec<f64> {
    let mut terms = vec![0.0; TERMS];
    (terms[PER_ITERATION * storage], terms[PER_ITERATION * storage + 1]) = (1.0, -0.5);
    terms
}

/// Two digits say what is known.
fn round(x: f64) -> f64 {
    format!("{x:.1e}").parse().unwrap_or(x)
}

/// Where runs cannot tell two figures apart, a fit may give one of them everything; then the other is that of the reference.
fn found_or(found: f64, reference: f64) -> f64 {
    if found > 0.0 { round(found) } else { reference }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::{Applied, Work};

    /// Iterations that take what a machine says are fitted by the figures of that machine.
    #[test]
    fn a_fit_inverts_the_prediction() {
        let mut machine = REFERENCE;
        machine.rows = Rates { product: 0.9, sweep: 2.5, wavefront: 1500.0, ..machine.rows };
        machine.vector = 0.4;
        let mut equations = Equations::default();
        for (n, per_row, fronts) in
            [(1_000_000, 7, 300.0), (250_000, 5, 900.0), (20_000, 40, 500.0), (8_000, 7, 60.0)]
        {
            let a = Csr::from_entries(
                n,
                n,
                (0..n).flat_map(|i| (0..per_row).map(move |k| (i, (i + k) % n, 1.0))),
            );
            let a = a.unwrap();
            for (method, swept, multiplies, wavefronts) in [
                (Method::Cg, 0.0, false, 0.0),
                (Method::Cg, a.nnz() as f64, false, fronts),
                (Method::BiCgStab, 1.5 * a.nnz() as f64, false, fronts),
                (Method::Cg, a.nnz() as f64, true, 0.0),
            ] {
                let applied = if multiplies { Applied::Products } else { Applied::Sweeps { wavefronts } };
                let work = Work {
                    method,
                    storage: StorageKind::Rows,
                    precision: Precision::F64,
                    rows: n,
                    entries: a.nnz(),
                    swept,
                    applied,
                    without_product: false,
                    constant: false,
                    constant_factor: false,
                };
                let seen = Seen {
                    iteration: machine.iteration(&work),
                    set_up: 0.0,
                    operations: operations(method),
                    swept,
                    multiplies,
                    wavefronts,
                    filled: 0.0,
                    made: 0.0,
                    narrow: false,
                    without_product: false,
                    constant: false,
                };
                equations.add(seen.iteration_terms(3, &a), seen.iteration);
            }
        }
        let found = equations.solve();
        let near =
            |place: usize, figure: f64| assert!((found[place] / figure - 1.0).abs() < 1e-3, "{found:?}");
        near(PER_ITERATION * 3, 0.9);
        near(PER_ITERATION * 3 + 1, 2.5);
        near(WAVEFRONT + 3, 1500.0);
        near(VECTOR, 0.4);
    }

    #[test]
    fn two_digits() {
        assert_eq!([0.0, 0.123_4, 98.7, 1234.0].map(round), [0.0, 0.12, 99.0, 1200.0]);
    }
}
