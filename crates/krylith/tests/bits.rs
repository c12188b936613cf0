//! The bits of answers, kept: preconditioners by name, storages, precisions and numbers of threads on small systems.
//!
//! A change of shape, of a kernel or of a schedule changes none of them. Where bits are to change, because an order of operations does, the change says so
//! and renews the file `data/bits.txt`:
//!
//!   just renew-bits
//!
//! Each line is a system and what solved it, then eight hexadecimal digits for each storage and precision: of a hash (FNV-1a) of the outcome, the iterations
//! and every bit of x. A solve that ends with an error has dashes there.

use krylith::gallery::{Problem, random_vector};
use krylith::solver::{Layout, Method, Precision, preconditioners};
use krylith::{Csr, Solver};
use std::fmt::Write;

/// Grids with one unknown per point and with several, constant coefficients and others, blocks, meshes, graphs, and a singular system.
const SYSTEMS: [&str; 11] = [
    "poisson2d:23",
    "jump3d:8",
    "hpcg:7",
    "convection3d:8",
    "fem2d:18",
    "circuit:20",
    "elasticity2d:9",
    "elasticity3d:4",
    "navierstokes3d:3",
    "euler3d:4",
    "neumann2d:16",
];
/// Unknowns per point of systems that are made here: the gallery has up to five.
const MANY_UNKNOWNS: [usize; 3] = [6, 7, 8];
const LAYOUTS: [Layout; 3] = [Layout::Auto, Layout::Slices, Layout::Rows];
const PRECISIONS: [Precision; 3] = [Precision::F64, Precision::Mixed, Precision::F32];
const THREADS: [usize; 2] = [1, 3];
const KEPT: &str = include_str!("data/bits.txt");

fn problem(name: &str) -> Csr<f64> {
    name.parse::<Problem>().unwrap().generate().unwrap()
}

/// A dense block of `unknowns` x `unknowns` for every entry, near a multiple of the identity.
fn with_unknowns(a: &Csr<f64>, unknowns: usize) -> Csr<f64> {
    let n = a.nrows() * unknowns;
    let noise = random_vector(a.nnz() * unknowns * unknowns);
    let mut entries = Vec::new();
    for i in 0..a.nrows() {
        let first = a.pattern().row_range(i).start;
        for (k, (&j, v)) in a.row(i).0.iter().zip(a.row(i).1).enumerate() {
            for place in 0..unknowns * unknowns {
                let (r, c) = (place / unknowns, place % unknowns);
                let share = noise[(first + k) * unknowns * unknowns + place] / 8.0;
                let value = v * if r == c { 1.0 + share } else { share / unknowns as f64 };
                entries.push((i * unknowns + r, j as usize * unknowns + c, value));
            }
        }
    }
    Csr::from_entries(n, n, entries).unwrap()
}

fn systems() -> Vec<(String, Csr<f64>)> {
    let named = SYSTEMS.iter().map(|name| (name.to_string(), problem(name)));
    let flow = problem("convection3d:4x3x3");
    let made = MANY_UNKNOWNS
        .iter()
        .map(|&unknowns| (format!("convection3d:4x3x3 of {unknowns}"), with_unknowns(&flow, unknowns)));
    named.chain(made).collect()
}

/// Every name of the registry with the method that the library chooses for it, and every method with the simplest of them.
fn ways() -> Vec<(String, Solver)> {
    let names = preconditioners().iter().flat_map(|info| info.examples.iter().copied());
    let by_name = names.map(|name| (name.to_string(), Solver::new().preconditioner(name.parse().unwrap())));
    let methods =
        [Method::Cg, Method::BiCgStab, Method::Gmres(20), Method::Fgmres(20), Method::Minres, Method::Lsmr];
    let by_method = methods.into_iter().flat_map(|method| {
        ["none", "jacobi"].map(|name| {
            let solver = Solver::new().method(method).preconditioner(name.parse().unwrap());
            (format!("{method} with {name}"), solver)
        })
    });
    by_name.chain(by_method).collect()
}

/// A hash of how a solve ended and of its answer; dashes after an error.
fn digits(solver: &Solver, a: &Csr<f64>, b: &[f64]) -> String {
    let Ok(solution) = solver.solve(a, b) else { return "-".repeat(8) };
    let report = &solution.report;
    let head = format!("{} {} ", report.outcome.name(), report.iterations);
    let bytes = head.bytes().chain(solution.x.iter().flat_map(|x| x.to_bits().to_le_bytes()));
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    format!("{:08x}", hash >> 32 ^ hash & 0xffff_ffff)
}

/// The line of a system and a way to solve it.
fn line(system: &str, a: &Csr<f64>, way: &str, solver: &Solver) -> String {
    let b = random_vector(a.nrows());
    let mut line = format!("{system:<24} {way:<20}");
    for layout in LAYOUTS {
        for precision in PRECISIONS {
            let solver = solver.clone().layout(layout).precision(precision).max_iterations(200);
            let each = THREADS.map(|threads| digits(&solver.clone().threads(threads), a, &b));
            let case = format!("{system}, {way}, {layout:?}, {precision:?}");
            assert!(each.iter().all(|digits| *digits == each[0]), "{case}, on {THREADS:?} threads: {each:?}");
            write!(line, " {}", each[0]).unwrap();
        }
    }
    line
}

#[test]
fn bits_are_what_they_were() {
    let renewed = std::env::var_os("KRYLITH_RENEW_BITS");
    let mut kept = KEPT.lines();
    let (mut lines, mut changed) = (String::new(), Vec::new());
    for (system, a) in systems() {
        for (way, solver) in ways() {
            let line = line(&system, &a, &way, &solver);
            if kept.next() != Some(line.as_str()) {
                changed.push(format!("{system}, {way}"));
            }
            writeln!(lines, "{line}").unwrap();
        }
    }
    match renewed {
        Some(_) => {
            let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/bits.txt");
            std::fs::write(file, lines).unwrap();
        }
        None => {
            assert!(changed.is_empty(), "other bits ({}): {changed:#?}", changed.len());
            assert_eq!(kept.next(), None, "lines of systems that are no longer there");
        }
    }
}
