//! The shift of the diagonal that follows a bad pivot: the same rule for every member, in every layout.
//!
//! A diagonal entry is enlarged by a multiple of the size of its row. Where it is negative, or zero, a multiple of the entry itself
//! would move it away from where a pivot is good, or not at all.

use krylith::gallery::Problem;
use krylith::{Csr, Layout, MatchingMode, Method, PrecondSpec, Report, Solver};

const SYMMETRIC: [&str; 9] =
    ["ic0", "ic(1)", "mic0", "dic", "ict(0.001)", "bic0(1)", "bic0(2)", "bdic(1)", "bdic(2)"];
const LAYOUTS: [Layout; 3] = [Layout::Auto, Layout::Slices, Layout::Rows];

fn problem(name: &str) -> Csr<f64> {
    name.parse::<Problem>().unwrap().generate().unwrap()
}

/// tridiag(−1, 4, −1).
fn tridiagonal(n: usize) -> Csr<f64> {
    let entries =
        |i: usize| [(i.wrapping_sub(1), -1.0), (i, 4.0), (i + 1, -1.0)].into_iter().filter(move |e| e.0 < n);
    let fill = |i, columns: &mut [u32], values: &mut [f64]| {
        for (k, (j, v)) in entries(i).enumerate() {
            (columns[k], values[k]) = (j as u32, v);
        }
    };
    Csr::from_rows(n, n, |i| entries(i).count(), fill).unwrap()
}

fn set_diagonal(a: &mut Csr<f64>, row: usize, value: f64) {
    let place = a.pattern().find(row, row).unwrap();
    a.values_mut()[place] = value;
}

fn solve(a: &Csr<f64>, name: &str, method: Method, layout: Layout) -> Report {
    let b: Vec<f64> = (0..a.nrows()).map(|i| 1.0 + (i % 7) as f64).collect();
    let solver = Solver::new().method(method).preconditioner(name.parse::<PrecondSpec>().unwrap());
    solver.layout(layout).matching(MatchingMode::Off).threads(2).solve(a, &b).unwrap().report
}

/// MINRES needs a positive definite factor and solves the system with it, though the matrix is indefinite.
#[test]
fn a_negative_diagonal_entry_is_shifted_by_every_symmetric_member() {
    let mut line = tridiagonal(40);
    set_diagonal(&mut line, 7, -3.0);
    let mut grid = problem("poisson3d:20");
    let centre = grid.get(3333, 3333);
    set_diagonal(&mut grid, 3333, -3.0 * centre);
    for (what, a) in [("line", &line), ("grid", &grid)] {
        for name in SYMMETRIC {
            for layout in LAYOUTS {
                let report = solve(a, name, Method::Minres, layout);
                assert_eq!(report.preconditioner, name, "{what} {layout:?}: {:?}", report.recovery);
                assert!(report.shift > 0.0, "{what} {name} {layout:?}");
                assert!(report.require_converged().is_ok(), "{what} {name} {layout:?}: {:?}", report.outcome);
            }
        }
    }
    let report = solve(&grid, "ic0", Method::Minres, Layout::Auto);
    assert!(report.layout.starts_with("structured"), "{}", report.layout);
}

/// The size of a row does not depend on the layout, nor on the triangle in which its entries are: the first row has none below the
/// diagonal.
#[test]
fn a_diagonal_of_zero_is_shifted_alike_in_every_layout() {
    let mut a = problem("poisson3d:20");
    a.values_mut().iter_mut().for_each(|v| *v *= 1e-6);
    set_diagonal(&mut a, 0, 0.0);
    for name in ["ic0", "ic(1)", "dic", "bic0(1)", "bdic(1)"] {
        let reports = LAYOUTS.map(|layout| solve(&a, name, Method::Minres, layout));
        for (report, layout) in reports.iter().zip(LAYOUTS) {
            assert_eq!(report.preconditioner, name, "{layout:?}");
            assert!(report.shift > 0.0, "{name} {layout:?}");
            let difference = (report.shift - reports[2].shift).abs();
            assert!(
                difference <= 1e-12 * report.shift,
                "{name} {layout:?}: {} {}",
                report.shift,
                reports[2].shift
            );
        }
    }
    let report = solve(&a, "ic0", Method::Minres, Layout::Slices);
    assert!(report.layout.starts_with("rows by wavefront in slices"), "{}", report.layout);
}

/// Block ILU(0) and DILU of blocks of one row are ILU(0) and DILU, with the same shift.
#[test]
fn a_diagonal_of_zero_is_shifted_by_block_ilu() {
    let mut a = problem("convection3d:6");
    for row in [0, 3, 100] {
        set_diagonal(&mut a, row, 0.0);
    }
    for (scalar, names) in [("ilu0", ["bilu0(1)", "bilu0(2)"]), ("dilu", ["bdilu(1)", "bdilu(2)"])] {
        let expected = solve(&a, scalar, Method::Gmres(60), Layout::Rows);
        assert!(expected.shift > 0.0 && expected.preconditioner == scalar);
        for name in names {
            let report = solve(&a, name, Method::Gmres(60), Layout::Auto);
            assert_eq!(report.preconditioner, name, "{:?}", report.recovery);
            if name.ends_with("(1)") {
                assert!((report.shift - expected.shift).abs() <= 1e-12 * expected.shift, "{}", report.shift);
                // With pivots that are next to nothing, rounding alone changes the number of iterations.
                assert!(report.iterations.abs_diff(expected.iterations) <= expected.iterations / 4);
            }
        }
    }
    // A diagonal block of zeros: blocks of two rows break down as well.
    let a =
        Csr::from_triplets(4, 4, &[0, 0, 1, 2, 2, 3], &[0, 2, 3, 0, 2, 1], &[0.0, 1.0, 1.0, 1.0, 0.0, 1.0])
            .unwrap();
    for name in ["bilu0(2)", "bdilu(2)", "bjacobi(2)"] {
        let report = solve(&a, name, Method::Gmres(4), Layout::Auto);
        assert_eq!(report.preconditioner, name, "{:?}", report.recovery);
        assert!(report.shift > 0.0);
    }
}

/// A frozen threshold factor is shifted as it was made: refactoring with the same values needs no other shift.
#[test]
fn refactoring_keeps_the_shift() {
    let mut a = tridiagonal(40);
    set_diagonal(&mut a, 7, -3.0);
    let b = vec![1.0; 40];
    for name in SYMMETRIC {
        let solver = Solver::new().method(Method::Minres).preconditioner(name.parse().unwrap()).threads(1);
        let mut prepared = solver.prepare(&a).unwrap();
        let mut x = vec![0.0; 40];
        let first = prepared.solve(&a, &b, &mut x).unwrap();
        prepared.refactor(&a).unwrap();
        x.fill(0.0);
        let second = prepared.solve(&a, &b, &mut x).unwrap();
        assert!(first.shift > 0.0 && first.shift == second.shift, "{name}: {} {}", first.shift, second.shift);
        assert_eq!(first.iterations, second.iterations, "{name}");
    }
}
