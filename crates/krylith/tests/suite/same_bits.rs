//! Real matrices, solved: the same x to the bit on any number of threads, whichever way triangular sweeps are divided.
//!
//! The matrices are not part of this repository: `just same-bits FOLDER` runs this on a folder that holds them as
//! `spd/NAME.mtx.xz` and `general/NAME.mtx.xz`. Otherwise it is listed as ignored.

use krylith::schedule::Schedule;
use krylith::{Csr, Method, Solver, io};
use std::path::PathBuf;

const CASES: [(&str, Method, &str); 6] = [
    ("spd/1138_bus", Method::Cg, "ic0"),
    ("spd/bcsstk16", Method::Cg, "ic0"),
    ("spd/nos5", Method::Cg, "ic0"),
    ("general/add32", Method::BiCgStab, "ilu0"),
    ("general/orsirr_1", Method::Gmres(30), "ilu0"),
    ("general/sherman5", Method::Gmres(30), "ilu0"),
];

const SCHEDULES: [Schedule; 2] = [Schedule::Levels, Schedule::PointToPoint];

/// The bits of x, and the iterations.
fn solve(a: &Csr<f64>, solver: &Solver, threads: usize, schedule: Schedule) -> (Vec<u64>, usize) {
    let b: Vec<f64> = (0..a.nrows()).map(|i| 1.0 + ((i * 37) as f64).sin()).collect();
    let solution = solver.clone().threads(threads).schedule(schedule).solve(a, &b).unwrap();
    solution.report.require_converged().unwrap();
    assert_eq!(solution.report.threads, threads);
    (solution.x.iter().map(|x| x.to_bits()).collect(), solution.report.iterations)
}

#[test]
#[ignore = "needs a folder of matrices: just same-bits FOLDER"]
fn answers_have_the_same_bits() {
    let folder = std::env::var_os("KRYLITH_MATRICES").map(PathBuf::from);
    let folder = folder.expect("KRYLITH_MATRICES names the folder of matrices");
    for (name, method, preconditioner) in CASES {
        let a = io::read_matrix(folder.join(format!("{name}.mtx.xz"))).unwrap();
        let solver = Solver::new().method(method).preconditioner(preconditioner.parse().unwrap());
        let (alone, iterations) = solve(&a, &solver, 1, Schedule::Levels);
        for threads in [1, 2, 3, 4, 8] {
            for schedule in SCHEDULES {
                let (x, _) = solve(&a, &solver, threads, schedule);
                assert!(x == alone, "{name}: {schedule:?} on {threads} threads gives other bits");
            }
        }
        println!("{name}: {method} with {preconditioner}, {iterations} iterations, same bits in 10 ways");
    }
}
