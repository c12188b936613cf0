//! Hashes of answers, so that a change of shape shows which bits it changed.
//!
//! A line per case: system, preconditioner, method, layout, precision and ordering; then outcome, iterations, where it ran, and a hash of
//! the bits of x, or the error. Every case runs on 1, 2 and 3 threads, which must agree. Hashes are those of one kind of machine
//! only as far as the systems' generation depends on its mathematics library.

use crate::Failure;
use krylith::gallery::{Problem, random_vector};
use krylith::solver::{Layout, Method, Precision, PrecondSpec};
use krylith::transform::Ordering;
use krylith::{Csr, Solver};
use std::collections::BTreeMap;
use std::path::PathBuf;

#[derive(clap::Args)]
pub struct Options {
    /// Keep today's hashes instead of comparing with those kept
    #[arg(long)]
    write: bool,
    /// Where they are kept
    #[arg(long, default_value = "benchmarks/pinned-bits.tsv")]
    file: PathBuf,
}

/// Small systems with a method each: stencils that share A's triangles and that do not, several unknowns, no grid, bad pivots.
const SYSTEMS: [(&str, &str); 14] = [
    ("poisson2d:20", "cg"),
    ("poisson3d:8", "cg"),
    ("hpcg:7", "cg"),
    ("jump3d:8", "cg"),
    ("elasticity2d:12", "cg"),
    ("elasticity3d:5", "cg"),
    ("fem2d:20", "cg"),
    ("ecology:20", "minres"),
    ("convection3d:8", "bicgstab"),
    ("atmosmod:8", "gmres"),
    ("euler3d:5", "bicgstab"),
    ("navierstokes3d:4", "fgmres"),
    ("circuit:400", "bicgstab"),
    ("indefinite", "bicgstab"),
];

const PRECONDITIONERS: [&str; 22] = [
    "auto",
    "none",
    "jacobi",
    "ic0",
    "ic(1)",
    "mic0",
    "mic(1,0.9)",
    "dic",
    "ilu0",
    "ilu(1)",
    "milu0",
    "milu0-columns",
    "dilu",
    "ict(0.01)",
    "ilut(5,0.01)",
    "ilutp-fill(2,0.01)",
    "bjacobi",
    "bic0",
    "bilu0",
    "bilu0(2)",
    "bdic",
    "bdilu",
];

const THREADS: [usize; 3] = [1, 2, 3];

pub fn run(options: &Options) -> Result<(), Failure> {
    let now = cases()?;
    if options.write {
        let lines: String = now.iter().map(|(case, result)| format!("{case}\t{result}\n")).collect();
        std::fs::write(&options.file, lines)?;
        println!("{} cases kept in {}", now.len(), options.file.display());
        return Ok(());
    }
    let kept = std::fs::read_to_string(&options.file)?;
    let kept: BTreeMap<&str, &str> = kept.lines().filter_map(|line| line.split_once('\t')).collect();
    let mut different = 0;
    for (case, result) in &now {
        let before = kept.get(case.as_str()).copied().unwrap_or("(not there)");
        if before != result {
            different += 1;
            println!("{case}\n  before {before}\n  now    {result}");
        }
    }
    let gone = kept.keys().filter(|case| !now.contains_key(**case)).count();
    println!("{} cases, {different} different, {gone} gone", now.len());
    if different + gone > 0 { Err("bits differ from those kept".into()) } else { Ok(()) }
}

fn cases() -> Result<BTreeMap<String, String>, Failure> {
    let mut results = BTreeMap::new();
    for (name, method) in SYSTEMS {
        let a = system(name)?;
        let b = random_vector(a.nrows());
        for kind in PRECONDITIONERS {
            for (layout_name, layout) in
                [("auto", Layout::Auto), ("slices", Layout::Slices), ("rows", Layout::Rows)]
            {
                for (precision_name, precision) in [("f64", Precision::F64), ("mixed", Precision::Mixed)] {
                    let mut orderings = vec![Ordering::Natural];
                    if layout == Layout::Auto && ["ic0", "ilu0"].contains(&kind) {
                        orderings.extend([Ordering::Rcm, Ordering::Colouring]);
                    }
                    for ordering in orderings {
                        let case =
                            format!("{name} {kind} {method} {layout_name} {precision_name} {ordering}");
                        let solver = Solver::new()
                            .method(method.parse::<Method>()?)
                            .preconditioner(kind.parse::<PrecondSpec>()?)
                            .layout(layout)
                            .precision(precision)
                            .reorder(ordering)
                            .max_iterations(50);
                        results.insert(case.clone(), result(&case, &solver, &a, &b)?);
                    }
                }
            }
        }
    }
    Ok(results)
}

/// A problem of the gallery, or convection with a diagonal of mixed signs, where factors need shifts.
fn system(name: &str) -> Result<Csr<f64>, Failure> {
    if name != "indefinite" {
        return Ok(name.parse::<Problem>()?.generate()?);
    }
    let mut a = "convection3d:7".parse::<Problem>()?.generate()?;
    let diagonal: Vec<usize> = (0..a.nrows()).filter_map(|i| a.pattern().find(i, i)).collect();
    for (i, k) in diagonal.into_iter().enumerate().filter(|(i, _)| i % 11 == 3) {
        a.values_mut()[k] *= if i % 2 == 0 { -0.5 } else { 0.0 };
    }
    Ok(a)
}

/// What comes out, on any number of threads.
fn result(case: &str, solver: &Solver, a: &Csr<f64>, b: &[f64]) -> Result<String, Failure> {
    let mut found: Option<String> = None;
    for threads in THREADS {
        let this = match solver.clone().threads(threads).solve(a, b) {
            Ok(solution) => {
                let report = solution.report;
                let hash = solution.x.iter().flat_map(|x| x.to_bits().to_le_bytes()).fold(FNV_START, fnv);
                let (outcome, shift) = (report.outcome.name(), report.shift);
                format!(
                    "{outcome} {} {} shift {shift:e} {hash:016x}",
                    report.iterations, report.preconditioner
                )
            }
            Err(error) => format!("error: {error}"),
        };
        match &found {
            None => found = Some(this),
            Some(first) if *first == this => {}
            Some(first) => return Err(format!("{case}: {first} on 1 thread, {this} on {threads}").into()),
        }
    }
    Ok(found.unwrap_or_default())
}

const FNV_START: u64 = 0xcbf2_9ce4_8422_2325;

fn fnv(hash: u64, byte: u8) -> u64 {
    (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
}
