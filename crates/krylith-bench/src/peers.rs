//! Factors, iterates and answers beside those of ilupp and SciPy, number by number.
//!
//! For some generated problems and some matrices of a catalogue this writes the factors of ILU(0) and, for a symmetric matrix,
//! IC(0), the iterates of CG, BiCGStab and GMRES after a few steps, and the answer of `krylith::solve`. `peers/check_factors.py`
//! computes the same by other means, compares, and fails where a difference is more than rounding.

use crate::Failure;
use clap::Args;
use krylith::gallery::Problem;
use krylith::operator::{Recipe, Symbolic};
use krylith::precond::Incomplete;
use krylith::space::Threads;
use krylith::{Csr, Method, PrecondSpec, Solver, io};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;

#[derive(Args)]
pub struct Options {
    /// The folder with CATALOGUE.tsv; without it only generated problems are compared
    folder: Option<PathBuf>,
    /// Python with numpy, scipy and ilupp
    #[arg(long)]
    python: PathBuf,
    /// Threads
    #[arg(long, default_value_t = 3)]
    threads: usize,
    /// Keep the files that are compared in this folder
    #[arg(long)]
    keep: Option<PathBuf>,
}

const GENERATED: [&str; 5] = ["poisson2d:40", "poisson3d:12", "convection3d:12", "jump3d:12", "hpcg:10"];

/// Those on which both factors, or for a matrix that is not symmetric ILU(0), exist.
const CATALOGUE: [&str; 10] = [
    "spd/1138_bus",
    "spd/bcsstk08",
    "spd/bcsstk16",
    "spd/nos3",
    "spd/nos5",
    "general/add32",
    "general/orsirr_1",
    "general/pores_2",
    "general/sherman2",
    "general/sherman5",
];

/// Iterations after which iterates are compared.
const STEPS: [usize; 3] = [1, 5, 10];

pub fn run(options: &Options) -> Result<(), Failure> {
    let scratch = tempfile::tempdir()?;
    let out = options.keep.as_deref().unwrap_or(scratch.path());
    let mut cases = Vec::new();
    for name in GENERATED {
        let a = name.parse::<Problem>()?.generate()?;
        let file = out.join(format!("{}.npz", name.replace(':', "-")));
        std::fs::create_dir_all(out)?;
        io::write_matrix(&file, &a)?;
        cases.push(write(options, name, &file, &a, out)?);
    }
    for name in options.folder.iter().flat_map(|_| CATALOGUE) {
        // SciPy reads the catalogue's file by itself.
        let file = options.folder.as_deref().unwrap_or(Path::new("")).join(format!("{name}.mtx.xz"));
        cases.push(write(options, name, &file, &io::read_matrix(&file)?, out)?);
    }
    let list = out.join("cases.json");
    std::fs::write(&list, format!("{:#}\n", Value::Array(cases)))?;
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/peers/check_factors.py");
    match Command::new(&options.python).arg(script).arg(&list).status()?.success() {
        true => Ok(()),
        false => Err("a peer finds other numbers".into()),
    }
}

/// Writes what Krylith computes for a matrix; the case as the script reads it.
fn write(options: &Options, name: &str, file: &Path, a: &Csr<f64>, out: &Path) -> Result<Value, Failure> {
    let folder = out.join(name.replace([':', '/'], "-"));
    std::fs::create_dir_all(&folder)?;
    let space = Threads::new(options.threads);
    let ilu = Incomplete::ilu(0).analyze(&space, a)?.factor(&space, a)?;
    let (l, inverse, u) = ilu.parts();
    io::write_matrix(folder.join("ilu0-l.npz"), l)?;
    io::write_matrix(folder.join("ilu0-u.npz"), u)?;
    io::write_vector(folder.join("ilu0-inverse.npy"), inverse)?;
    let mut methods = vec![(Method::BiCgStab, PrecondSpec::ilu(0)), (Method::Gmres(30), PrecondSpec::ilu(0))];
    let symmetric = a.symmetry().symmetric;
    if symmetric {
        let ic = Incomplete::ic(0).analyze(&space, a)?.factor(&space, a)?;
        let (l, inverse, _) = ic.parts();
        io::write_matrix(folder.join("ic0-l.npz"), l)?;
        io::write_vector(folder.join("ic0-inverse.npy"), inverse)?;
        methods.insert(0, (Method::Cg, PrecondSpec::ic(0)));
    }
    let b: Vec<f64> = (0..a.nrows()).map(|i| 1.0 + ((i * 37) as f64).sin()).collect();
    io::write_vector(folder.join("b.npy"), &b)?;
    for (method, preconditioner) in methods {
        for steps in STEPS {
            let solver =
                Solver::new().method(method).preconditioner(preconditioner.clone()).threads(options.threads);
            let x = solver.rtol(0.0).max_iterations(steps).solve(a, &b)?.x;
            io::write_vector(folder.join(format!("{method}-{steps}.npy")), &x)?;
        }
    }
    let solution = krylith::solve(a, &b)?;
    io::write_vector(folder.join("answer.npy"), &solution.x)?;
    let outcome = solution.report.outcome.name();
    Ok(json!({ "name": name, "matrix": file, "folder": folder, "symmetric": symmetric, "steps": STEPS,
        "outcome": outcome }))
}
