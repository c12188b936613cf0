//! The bits of answers, kept: preconditioners by name, storages, precisions and numbers of threads on small systems.
//!
//! A change of shape, of a kernel or of a schedule changes none of them. Where bits are to change, because an order of operations does, the change says so
//! and renews the files in `data/bits`:
//!
//!   just renew-bits
//!
//! There is a file for each system. Each line is a way to solve it, then eight hexadecimal digits for each storage and precision: of a hash (FNV-1a) of the outcome, the iterations
//! and every bit of x. A solve that ends with an error has dashes there.

use krylith::gallery::{Problem, random_vector};
use krylith::precond::registry::preconditioners;
use krylith::{Csr, Layout, Method, Precision, Solver};
use std::fmt::Write;

const LAYOUTS: [Layout; 3] = [Layout::Auto, Layout::Slices, Layout::Rows];
const PRECISIONS: [Precision; 3] = [Precision::F64, Precision::Mixed, Precision::F32];
const THREADS: [usize; 2] = [1, 3];
/// Enough for the recurrences to show a difference.
const MOST_ITERATIONS: usize = 40;

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

fn system(name: &str) -> Csr<f64> {
    match name.split_once(" of ") {
        Some((flow, unknowns)) => with_unknowns(&problem(flow), unknowns.parse().unwrap()),
        None => problem(name),
    }
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

/// The line of a way to solve a system.
fn line(a: &Csr<f64>, way: &str, solver: &Solver) -> String {
    let b = random_vector(a.nrows());
    let mut line = format!("{way:<20}");
    for layout in LAYOUTS {
        for precision in PRECISIONS {
            let solver = solver.clone().layout(layout).precision(precision).max_iterations(MOST_ITERATIONS);
            let each = THREADS.map(|threads| digits(&solver.clone().threads(threads), a, &b));
            let case = format!("{way}, {layout:?}, {precision:?}");
            assert!(each.iter().all(|digits| *digits == each[0]), "{case}, on {THREADS:?} threads: {each:?}");
            write!(line, " {}", each[0]).unwrap();
        }
    }
    line
}

/// Compares the lines of a system with those that are kept, or renews them.
fn bits_are_what_they_were(name: &str) {
    let file =
        concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/bits/").to_owned() + &name.replace([':', ' '], "-");
    let a = system(name);
    let lines: Vec<String> = ways().iter().map(|(way, solver)| line(&a, way, solver)).collect();
    let text = lines.join("\n") + "\n";
    if std::env::var_os("KRYLITH_RENEW_BITS").is_some() {
        return std::fs::write(file, text).unwrap();
    }
    let kept = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{file}: {error}"));
    let changed: Vec<_> = lines.iter().filter(|line| !kept.lines().any(|kept| kept == *line)).collect();
    assert!(changed.is_empty(), "{name}, other bits: {changed:#?}");
    assert_eq!(text, kept, "{name}: lines of ways to solve it that are no longer there");
}

/// A test for each system: grids with one unknown per point and with several, constant coefficients and others, blocks, meshes, graphs, and a singular one.
macro_rules! systems {
    ($($test:ident: $name:literal,)*) => {$(
        #[test]
        fn $test() {
            bits_are_what_they_were($name);
        }
    )*};
}

systems! {
    poisson: "poisson2d:23",
    jump: "jump3d:8",
    hpcg: "hpcg:7",
    convection: "convection3d:8",
    fem: "fem2d:18",
    circuit: "circuit:20",
    elasticity2d: "elasticity2d:9",
    elasticity3d: "elasticity3d:4",
    navierstokes: "navierstokes3d:3",
    euler: "euler3d:4",
    neumann: "neumann2d:16",
    six_unknowns: "convection3d:4x3x3 of 6",
    seven_unknowns: "convection3d:4x3x3 of 7",
    eight_unknowns: "convection3d:4x3x3 of 8",
}
