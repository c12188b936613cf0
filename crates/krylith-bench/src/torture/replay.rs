//! Everything about one case, for whoever looks for the cause of a failure.

use super::check::short;
use super::exact::judge;
use super::run::{Ended, Made, What};
use super::system::System;
use crate::Failure;
use krylith::{Csr, io};
use std::path::Path;

/// Vectors and matrices are printed whole up to this many numbers.
const WHOLE: usize = 400;

/// What the library is given.
pub fn print_system(system: &System) {
    println!("{}", system.choice.describe());
    println!("{:?}", system.options);
    print_matrix(&format!("A ({})", system.origin), &system.a);
    if system.calls.len() > 1 {
        print_matrix("other matrix", &system.other);
    }
    print_vector("b", &system.rhs[0]);
    if system.calls.len() > 1 {
        print_vector("second b", &system.rhs[1]);
    }
    print_vector("guess", &system.guess);
    println!("calls: {:?} {:?}", system.preparation, system.calls);
}

/// What came back.
pub fn print_runs(system: &System, runs: &[(usize, Vec<Made>)]) {
    for (threads, calls) in runs {
        for (number, made) in calls.iter().enumerate() {
            println!("\ncall {}, threads {threads}, {:?}: {}", number + 1, made.what, short(&made.ended));
            let (Ended::Solved(report, x), What::Solve { matrix, transposed, rhs, .. }) =
                (&made.ended, made.what)
            else {
                continue;
            };
            println!("{report:#?}");
            print_vector("x", x);
            let other = transposed.then(|| system.matrix(matrix).transpose());
            let (a, b) = (other.as_ref().unwrap_or(system.matrix(matrix)), &system.rhs[rhs]);
            for (name, x) in [("x", x), ("guess", &made.guess)] {
                let fits = x.len() == a.ncols() && b.len() == a.nrows();
                if let Some(truth) = fits.then(|| judge(a, x, b)).flatten() {
                    let bound = truth.bound(system.options.rtol, system.options.atol);
                    println!(
                        "{name}: exact ‖b − A x‖ = {}, tolerance {bound}, ‖b‖ = {}, rounding of an f64 residual {}",
                        truth.residual,
                        truth.rhs,
                        truth.rounding()
                    );
                }
            }
        }
    }
    println!();
}

fn print_vector(name: &str, v: &[f64]) {
    let shown: Vec<String> = v.iter().take(WHOLE).map(|v| format!("{v:e}")).collect();
    let rest = if v.len() > WHOLE { format!(" and {} more", v.len() - WHOLE) } else { String::new() };
    println!("{name}, {} numbers: {}{rest}", v.len(), shown.join(" "));
}

fn print_matrix(name: &str, a: &Csr<f64>) {
    println!("{name}, {} x {}, {} entries", a.nrows(), a.ncols(), a.nnz());
    if a.nnz() > WHOLE {
        println!("    too many to print; --save FOLDER writes them");
        return;
    }
    for i in 0..a.nrows() {
        let (columns, values) = a.row(i);
        let entries: Vec<String> = columns.iter().zip(values).map(|(j, v)| format!("{j}: {v:e}")).collect();
        println!("    row {i}: {}", entries.join(", "));
    }
}

/// Writes matrices and vectors for other programs.
pub fn save(system: &System, folder: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(folder)?;
    io::write_matrix(folder.join("a.mtx"), &system.a)?;
    io::write_matrix(folder.join("other.mtx"), &system.other)?;
    io::write_vector(folder.join("b.npy"), &system.rhs[0])?;
    io::write_vector(folder.join("b2.npy"), &system.rhs[1])?;
    io::write_vector(folder.join("guess.npy"), &system.guess)?;
    println!("written into {}", folder.display());
    Ok(())
}
