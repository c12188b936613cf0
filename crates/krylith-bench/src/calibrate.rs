//! The figures of this machine, for predicting what members of the registry cost (`krylith solve --machine FILE`).
//!
//! Each problem is solved on one thread, or as many as are asked for, with a fixed number of iterations, in several storages, levels of fill and precisions, in
//! rounds; the least seconds of each count. The nanoseconds per entry of `Machine` are those that fit the iterations and set-ups of all of them best, in
//! the sense of least squares of relative errors, none of them below zero. Those of complete factors are fitted in the same way.
//! On more than one thread, small problems are added, whose sweeps mostly wait: they say what a wavefront costs.

use crate::Failure;
use crate::fit::fit;
use clap::Args;
use krylith::gallery::{Problem, random_vector};
use krylith::plan::{Facts, REFERENCE, Rates};
use krylith::precond::direct::{Direct, DirectKind};
use krylith::solver::{Layout, Precision};
use krylith::{Csr, Method, PrecondSpec, Solver};
use std::path::PathBuf;
use std::time::Instant;

#[derive(Args)]
pub struct Options {
    /// The name of the machine, which plans will show
    #[arg(long, default_value = "mine")]
    name: String,
    /// Threads to measure with; plans for the machine then weigh what sweeps wait for
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Rounds; the least seconds count
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Write the machine here; to standard output if not given
    #[arg(long)]
    output: Option<PathBuf>,
}

/// Storages: on a grid, in blocks, in slices, by rows.
const STORAGES: usize = 4;
/// Figures of a storage: product, sweep, sweep in `f32`; then a copy and a set-up, and behind those of all storages an elimination.
const PER_ITERATION: usize = 3;
/// The place of what numbers of vectors cost, and behind it product and sweep with constant coefficients, and a wavefront in each storage.
const VECTOR: usize = PER_ITERATION * STORAGES;
const WAVEFRONT: usize = VECTOR + 3;
const TERMS: usize = WAVEFRONT + STORAGES;
/// As many as leave the beginning and the end of a solve a small part of it.
const ITERATIONS: usize = 80;

/// A problem, the storage that it runs in, and its members.
struct Trial {
    storage: usize,
    layout: Layout,
    problem: &'static str,
    members: &'static [&'static str],
}

const TRIALS: &[Trial] = &[
    Trial { storage: 0, layout: Layout::Auto, problem: "poisson3d:80", members: &["ic0", "ic(1)"] },
    Trial { storage: 0, layout: Layout::Auto, problem: "poisson2d:700", members: &["ic0", "ic(1)"] },
    Trial { storage: 0, layout: Layout::Auto, problem: "jump3d:70", members: &["ic0", "ic(1)", "ic(2)"] },
    Trial { storage: 0, layout: Layout::Auto, problem: "parabolic:500", members: &["ic0", "ic(1)"] },
    Trial { storage: 1, layout: Layout::Auto, problem: "navierstokes3d:16", members: &["jacobi", "ilu0"] },
    Trial { storage: 1, layout: Layout::Auto, problem: "cahnhilliard3d:24", members: &["jacobi", "ilu0"] },
    Trial { storage: 2, layout: Layout::Slices, problem: "jump3d:70", members: &["ic0", "ic(1)"] },
    Trial { storage: 2, layout: Layout::Slices, problem: "fem2d:400", members: &["ic0", "ic(1)", "ic(2)"] },
    Trial { storage: 3, layout: Layout::Rows, problem: "fem2d:400", members: &["ic0", "ic(1)"] },
    Trial { storage: 3, layout: Layout::Rows, problem: "jump3d:60", members: &["ic0", "ic(1)"] },
    Trial { storage: 3, layout: Layout::Rows, problem: "elasticity3d:22", members: &["ic0"] },
    Trial { storage: 2, layout: Layout::Slices, problem: "elasticity3d:22", members: &["ic0"] },
    Trial { storage: 3, layout: Layout::Rows, problem: "circuit:350", members: &["ic0", "ic(1)", "ic(2)"] },
];

/// Those with many wavefronts for their size.
const SMALL: &[Trial] = &[
    Trial { storage: 0, layout: Layout::Auto, problem: "poisson2d:120", members: &["ic0", "ic(1)"] },
    Trial { storage: 0, layout: Layout::Auto, problem: "jump3d:20", members: &["ic0", "ic(1)"] },
    Trial { storage: 1, layout: Layout::Auto, problem: "navierstokes3d:6", members: &["ilu0"] },
    Trial { storage: 2, layout: Layout::Slices, problem: "fem2d:100", members: &["ic0", "ic(1)"] },
    Trial { storage: 3, layout: Layout::Rows, problem: "fem2d:100", members: &["ic0", "ic(1)"] },
];

/// Approximate inverses, unfiltered so that their entries are those of the pattern, of matrices whose rows differ.
const INVERSES: &[(&str, &[&str])] = &[
    ("fem2d:300", &["fsai(0.1,2,0)", "fsai(0.05,3,0)", "afsai(5,3,0.001,0)"]),
    ("jump3d:50", &["fsai(0.1,3,0)", "fsai(0,2,0)", "afsai(5,3,0.001,0)"]),
    ("pflow:30x30x12", &["fsai(0.05,2,0)", "fsai(0,1,0)", "afsai(5,3,0.001,0)"]),
];

/// The same of constant coefficients: what differs between slices is hardly read.
const REPEATED: &[(&str, &str)] = &[
    ("elasticity3d:24", "fsai(0,1,0)"),
    ("hpcg:50", "fsai(0,1,0)"),
    ("poisson3d:80", "fsai(0,2,0)"),
    ("poisson2d:700", "fsai(0,3,0)"),
];

/// Complete factors.
const DIRECT: &[(&str, &str)] = &[
    ("poisson2d:200", "cholesky"),
    ("fem2d:250", "cholesky"),
    ("poisson3d:24", "cholesky"),
    ("poisson2d:150", "lu"),
    ("convection3d:20", "lu"),
    ("circuit:150", "lu"),
];

pub fn run(options: &Options) -> Result<(), Failure> {
    // Facts are collected on this pool.
    rayon::ThreadPoolBuilder::new().num_threads(options.threads.max(1)).build_global()?;
    let (mut iterations, mut set_ups) = (Equations::default(), Equations::default());
    let small = if options.threads > 1 { SMALL } else { &[] };
    for trial in TRIALS.iter().chain(small) {
        let a = trial.problem.parse::<Problem>()?.generate()?;
        for member in trial.members {
            // Blocks are in f64 only.
            let precisions = [Precision::F64, Precision::Mixed];
            for precision in precisions.into_iter().take(if trial.storage == 1 { 1 } else { 2 }) {
                if let Some(seen) = measure(options, &a, trial, member.parse()?, precision)? {
                    eprintln!("{} {member} {precision:?}: {seen:?}", trial.problem);
                    iterations.add(seen.iteration_terms(trial.storage, &a), seen.iteration);
                    set_ups.add(seen.set_up_terms(trial.storage, &a), seen.set_up);
                }
            }
        }
    }
    for storage in 0..STORAGES {
        iterations.add_weakly(product_of(storage), 0.0);
    }
    // Where rows have about the same number of entries, runs cannot separate vectors from entries. A number is 8 bytes, at 20 GB/s.
    let mut vector = vec![0.0; TERMS];
    vector[VECTOR] = 1.0;
    iterations.add_weakly(vector, 0.4);
    let (per_iteration, per_set_up) = (iterations.solve(), set_ups.solve());
    let rates = |storage: usize| Rates {
        product: round(per_iteration[PER_ITERATION * storage]),
        sweep: round(per_iteration[PER_ITERATION * storage + 1]),
        sweep_f32: round(per_iteration[PER_ITERATION * storage + 2]),
        copy: round(per_set_up[2 * storage]),
        set_up: round(per_set_up[2 * storage + 1]),
        wavefront: round(per_iteration[WAVEFRONT + storage]),
    };
    let direct = direct(options)?;
    let mut machine = REFERENCE;
    machine.name = options.name.clone().into();
    (machine.grid, machine.blocks, machine.slices, machine.rows) = (rates(0), rates(1), rates(2), rates(3));
    machine.vector = round(per_iteration[VECTOR]);
    (machine.constant_product, machine.constant_sweep) =
        (round(per_iteration[VECTOR + 1]), round(per_iteration[VECTOR + 2]));
    [machine.analysis, machine.analysis_row, machine.matching, machine.flop, machine.factor] =
        direct.map(round);
    (machine.eliminate, machine.facts) = (round(per_set_up[2 * STORAGES]), round(facts(options)?));
    machine.threads = options.threads;
    machine.repeated = round(repeated(options, machine.vector)?);
    [machine.inverse, machine.grow] = inverses(options, machine.slices.copy)?.map(round);
    let text = serde_json::to_string_pretty(&machine)? + "\n";
    match &options.output {
        Some(path) => std::fs::write(path, text)?,
        None => print!("{text}"),
    }
    // A fit may be 0 where the runs say too little.
    machine
        .validate()
        .map_err(|error| format!("{error}: no solver takes this machine; measure again, with more rounds"))?;
    Ok(())
}

/// Nanoseconds, and what they were spent on.
#[derive(Debug)]
struct Seen {
    iteration: f64,
    set_up: f64,
    /// Products and solves in an iteration, and vectors that are read or written besides.
    operations: (f64, f64),
    /// Entries of the factor that are swept by a solve.
    swept: f64,
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
        let (products, vectors) = self.operations;
        let own = PER_ITERATION * storage;
        let product = if self.constant { VECTOR + 1 } else { own };
        let sweep = match self.narrow {
            // Where the product is part of the sweeps, the factor has the off-diagonals of A.
            _ if self.constant && self.without_product => VECTOR + 2,
            true => own + 2,
            false => own + 1,
        };
        terms[product] = if self.without_product { 0.0 } else { products * a.nnz() as f64 };
        terms[sweep] = products * self.swept;
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

fn measure(
    options: &Options,
    a: &Csr<f64>,
    trial: &Trial,
    kind: PrecondSpec,
    precision: Precision,
) -> Result<Option<Seen>, Failure> {
    let b: Vec<f64> = random_vector(a.nrows());
    let symmetric = a.symmetry().symmetric;
    let method = if symmetric { Method::Cg } else { Method::BiCgStab };
    let solver = Solver::new()
        .method(method)
        .preconditioner(kind.clone())
        .precision(precision)
        .layout(trial.layout)
        .threads(options.threads)
        .rtol(0.0)
        .max_iterations(ITERATIONS);
    let (mut iteration, mut set_up) = (f64::INFINITY, f64::INFINITY);
    let mut last = None;
    for _ in 0..options.rounds {
        let report = solver.solve(a, &b)?.report;
        if !report.recovery.is_empty() || report.iterations == 0 {
            return Ok(None);
        }
        iteration = iteration.min(1e9 * report.seconds.solve / report.iterations as f64);
        set_up = set_up.min(1e9 * (report.seconds.analyze + report.seconds.factor));
        last = Some(report);
    }
    let Some(report) = last else { return Ok(None) };
    let (n, stored) = (a.nrows() as f64, report.preconditioner_nnz as f64);
    let (swept, made) = if symmetric { (2.0 * stored, 2.0 * stored - n) } else { (stored, stored) };
    let growth = if trial.storage == 0 { 1.0 } else { (made - n) / (a.nnz() as f64 - n) };
    Ok(Some(Seen {
        iteration,
        set_up,
        operations: krylith::plan::operations(method),
        swept,
        wavefronts: match options.threads > 1 {
            true => krylith::plan::wavefronts(a, kind.level()),
            false => 0.0,
        },
        filled: made,
        made: made * growth.max(1.0),
        narrow: precision != Precision::F64 && kind.info().can_shift,
        without_product: report.layout.contains("Eisenstat"),
        constant: report.layout.contains("constant coefficients"),
    }))
}

/// The facts per entry.
fn facts(options: &Options) -> Result<f64, Failure> {
    let mut all = Equations::default();
    for trial in TRIALS {
        let a = trial.problem.parse::<Problem>()?.generate()?;
        let mut least = f64::INFINITY;
        for _ in 0..options.rounds {
            let started = Instant::now();
            std::hint::black_box(Facts::of_matrix(&a));
            least = least.min(1e9 * started.elapsed().as_secs_f64());
        }
        all.add(vec![a.nnz() as f64], least);
    }
    Ok(all.solve()[0])
}

/// An entry of the pattern of an approximate inverse, and what its growth takes besides, as `Machine::inverse` adds them up.
fn inverses(options: &Options, copy: f64) -> Result<[f64; 2], Failure> {
    let mut all = Equations::default();
    for (problem, members) in INVERSES {
        let a = problem.parse::<Problem>()?.generate()?;
        let (b, rows): (Vec<f64>, _) = (random_vector(a.nrows()), a.nrows() as f64);
        for member in *members {
            let solver =
                Solver::new().method(Method::Cg).preconditioner(member.parse()?).threads(options.threads);
            let solver = solver.max_iterations(1);
            let (mut set_up, mut entries) = (f64::INFINITY, 0.0);
            for _ in 0..options.rounds {
                let report = solver.solve(&a, &b)?.report;
                set_up = set_up.min(1e9 * (report.seconds.analyze + report.seconds.factor));
                entries = report.preconditioner_nnz as f64;
            }
            eprintln!("{problem} {member}: set-up {set_up:.0} ns, {entries} entries");
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
fn repeated(options: &Options, vector: f64) -> Result<f64, Failure> {
    let mut all = Equations::default();
    for (problem, member) in REPEATED {
        let a = problem.parse::<Problem>()?.generate()?;
        let trial = Trial { storage: 2, layout: Layout::Slices, problem, members: &[] };
        if let Some(seen) = measure(options, &a, &trial, member.parse()?, Precision::F64)? {
            let remains = seen.iteration - vector * seen.operations.1 * a.nrows() as f64;
            let entries = a.nnz() as f64 + seen.swept;
            eprintln!("{problem} {member}: {seen:?}, {:.3} per entry", remains / entries);
            all.add(vec![entries], remains.max(f64::MIN_POSITIVE));
        }
    }
    Ok(all.solve()[0])
}

/// Analysis per entry and per row, a matching per entry, a flop, a number of the factor.
fn direct(options: &Options) -> Result<[f64; 5], Failure> {
    let (mut analyses, mut factors) = (Equations::default(), Equations::default());
    for (problem, member) in DIRECT {
        let a = problem.parse::<Problem>()?.generate()?;
        let b: Vec<f64> = random_vector(a.nrows());
        let solver =
            Solver::new().method(Method::Gmres(10)).preconditioner(member.parse()?).threads(options.threads);
        let kind = if *member == "lu" { DirectKind::Lu } else { DirectKind::Cholesky };
        let flops = Direct { kind, max_bytes: None }.symbolic(&a)?.cost().flops;
        let (mut analyze, mut factor) = (f64::INFINITY, f64::INFINITY);
        let mut entries = 0;
        for _ in 0..options.rounds {
            let report = solver.solve(&a, &b)?.report;
            analyze = analyze.min(1e9 * report.seconds.analyze);
            factor = factor.min(1e9 * (report.seconds.factor + report.seconds.solve));
            entries = report.preconditioner_nnz;
        }
        eprintln!(
            "{problem} {member}: analysis {analyze:.0} ns, factor {factor:.0} ns, {flops:.2e} flops, {entries} entries"
        );
        let matched = if kind == DirectKind::Cholesky { 0.0 } else { a.nnz() as f64 };
        analyses.add(vec![a.nnz() as f64, a.nrows() as f64, matched], analyze);
        factors.add(vec![flops, entries as f64], factor);
    }
    let (analyses, factors) = (analyses.solve(), factors.solve());
    Ok([analyses[0], analyses[1], analyses[2], factors[0], factors[1]])
}

/// Terms and what they add up to.
#[derive(Default)]
struct Equations(Vec<(Vec<f64>, f64)>);

impl Equations {
    /// Divided by the sum, so that errors are relative.
    fn add(&mut self, terms: Vec<f64>, sum: f64) {
        self.0.push((terms.into_iter().map(|term| term / sum).collect(), 1.0));
    }

    /// The terms are about this, which decides only what nothing else does.
    fn add_weakly(&mut self, terms: Vec<f64>, sum: f64) {
        self.0.push((terms.into_iter().map(|term| term * WEAK).collect(), sum * WEAK));
    }

    fn solve(&self) -> Vec<f64> {
        fit(&self.0)
    }
}

/// The weight of what is believed, beside 1 of what is measured: relative errors are about a tenth.
const WEAK: f64 = 0.5;

/// Two digits say what is known.
fn round(x: f64) -> f64 {
    if x == 0.0 {
        return 0.0;
    }
    let unit = 10f64.powf(x.abs().log10().floor() - 1.0);
    let rounded = (x / unit).round() * unit;
    format!("{rounded:.6}").parse().unwrap_or(rounded)
}
