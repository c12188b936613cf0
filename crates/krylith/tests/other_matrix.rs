//! A preconditioner made from another matrix than A, here from A without its smallest entries: in every storage it is the one by
//! rows.

use krylith::block::BlockKind;
use krylith::gallery::Problem;
use krylith::solver::{Layout, Method, Precision, PrecondSpec};
use krylith::transform::Ordering;
use krylith::{Csr, Report, Solver};

fn problem(name: &str) -> Csr<f64> {
    name.parse::<Problem>().unwrap().generate().unwrap()
}

/// A without its smallest off-diagonal blocks, one in twenty, each with its mirror image; `size` is that of the blocks.
fn sparsified(a: &Csr<f64>, size: usize) -> Csr<f64> {
    let norm = |i: usize, j: usize| {
        let entries = (0..size).flat_map(|r| (0..size).map(move |c| (i * size + r, j * size + c)));
        entries.map(|(r, c)| a.get(r, c).powi(2) + a.get(c, r).powi(2)).sum::<f64>()
    };
    let mut pairs: Vec<(usize, usize)> = Vec::new();
    for i in 0..a.nrows() / size {
        let row = a.row(i * size).0.iter().map(|&j| j as usize / size).filter(|&j| j < i);
        pairs.extend(row.map(|j| (i, j)));
    }
    pairs.sort();
    pairs.dedup();
    // Equal ones in an order that is not that of the rows.
    let key = |&(i, j): &(usize, usize)| {
        (norm(i, j), i.wrapping_mul(2_654_435_761).wrapping_add(j * 40_503) % 65_536)
    };
    pairs.sort_by(|p, q| key(p).partial_cmp(&key(q)).unwrap());
    let dropped: std::collections::HashSet<_> = pairs[..pairs.len() / 20].iter().copied().collect();
    let is_kept = |i: usize, j: usize| {
        let (i, j) = (i / size, j / size);
        !dropped.contains(&(i.max(j), i.min(j)))
    };
    let (mut rows, mut columns, mut values) = (Vec::new(), Vec::new(), Vec::new());
    for i in 0..a.nrows() {
        for (&j, &v) in a.row(i).0.iter().zip(a.row(i).1).filter(|&(&j, _)| is_kept(i, j as usize)) {
            rows.push(i as u32);
            columns.push(j);
            values.push(v);
        }
    }
    Csr::from_triplets(a.nrows(), a.ncols(), &rows, &columns, &values).unwrap()
}

/// P ⊗ K with a full positive definite 2 x 2 block K: full blocks, positive definite if P is.
fn in_pairs(p: &Csr<f64>) -> Csr<f64> {
    let (mut rows, mut columns, mut values) = (Vec::new(), Vec::new(), Vec::new());
    for i in 0..p.nrows() {
        for (&j, &v) in p.row(i).0.iter().zip(p.row(i).1) {
            for (r, c, k) in [(0, 0, 2.0), (0, 1, 0.6), (1, 0, 0.6), (1, 1, 1.0)] {
                rows.push(2 * i as u32 + r);
                columns.push(2 * j + c);
                values.push(v * k);
            }
        }
    }
    Csr::from_triplets(2 * p.nrows(), 2 * p.ncols(), &rows, &columns, &values).unwrap()
}

fn solve(solver: &Solver, a: &Csr<f64>, from: &Csr<f64>) -> (Vec<f64>, Report) {
    let b: Vec<f64> = (0..a.nrows()).map(|i| ((i * 37) as f64).sin()).collect();
    let mut x = vec![0.0; a.nrows()];
    let report = solver.prepare_with(a, from).unwrap().solve(a, &b, &mut x).unwrap();
    report.require_converged().unwrap();
    assert!(report.recovery.is_empty(), "{:?}", report.recovery);
    (x, report)
}

/// The same in every storage that `layouts` names: iterations of the solve by rows, give or take one; the same bits on two threads.
fn same_everywhere(solver: &Solver, a: &Csr<f64>, from: &Csr<f64>, layouts: &[(Layout, &str)]) {
    assert!(from.nnz() < a.nnz());
    let (expected, by_rows) = solve(&solver.clone().threads(1).layout(Layout::Rows), a, from);
    assert!(by_rows.layout.contains("rows as given") && by_rows.iterations < 100, "{}", by_rows.layout);
    for &(layout, name) in layouts {
        let solver = solver.clone().layout(layout);
        let (x, report) = solve(&solver.clone().threads(1), a, from);
        assert!(report.layout.contains(name), "{name}: {}", report.layout);
        assert!(report.iterations.abs_diff(by_rows.iterations) <= 1, "{name}: {}", report.iterations);
        assert_eq!(report.preconditioner_nnz, by_rows.preconditioner_nnz, "{name}");
        let largest = expected.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
        assert!(x.iter().zip(&expected).all(|(x, e)| (x - e).abs() < 1e-6 * largest), "{name}");
        let (again, _) = solve(&solver.threads(2), a, from);
        assert!(again == x, "{name}: bits on two threads");
    }
}

const GRID_AND_SLICES: [(Layout, &str); 2] =
    [(Layout::Auto, "structured"), (Layout::Slices, "slices of eight")];

#[test]
fn a_symmetric_factor_of_a_sparsified_matrix() {
    let a = problem("jump3d:14");
    let from = sparsified(&a, 1);
    for kind in [PrecondSpec::ic(0), PrecondSpec::mic(0, 0.9), PrecondSpec::dic()] {
        let solver = Solver::new().method(Method::Cg).preconditioner(kind);
        same_everywhere(&solver, &a, &from, &GRID_AND_SLICES);
        same_everywhere(&solver.precision(Precision::Mixed), &a, &from, &GRID_AND_SLICES);
    }
}

#[test]
fn an_unsymmetric_factor_of_a_sparsified_matrix() {
    let a = problem("convection3d:14");
    let from = sparsified(&a, 1);
    for kind in [PrecondSpec::ilu(0), PrecondSpec::dilu()] {
        let solver = Solver::new().method(Method::Gmres(100)).preconditioner(kind);
        same_everywhere(&solver, &a, &from, &GRID_AND_SLICES);
    }
}

/// The other way round: the factor has entries that A does not have.
#[test]
fn a_factor_with_more_entries_than_a() {
    let full = problem("jump3d:14");
    let a = sparsified(&full, 1);
    let solver = Solver::new().method(Method::Cg).preconditioner(PrecondSpec::ic(0));
    let (_, by_rows) = solve(&solver.clone().layout(Layout::Rows), &a, &full);
    for (layout, name) in GRID_AND_SLICES {
        let (_, report) = solve(&solver.clone().layout(layout), &a, &full);
        assert!(report.layout.contains(name), "{}", report.layout);
        assert!(report.iterations.abs_diff(by_rows.iterations) <= 1);
    }
}

/// With fill the factor's source has fewer entries than the factor, and A others than both.
#[test]
fn fill_on_a_sparsified_matrix_in_slices() {
    let a = problem("jump3d:14");
    let from = sparsified(&a, 1);
    let solver = Solver::new().method(Method::Cg).preconditioner(PrecondSpec::ic(1));
    let (_, by_rows) = solve(&solver.clone().layout(Layout::Rows), &a, &from);
    let (_, report) = solve(&solver.clone().layout(Layout::Slices), &a, &from);
    assert!(report.iterations.abs_diff(by_rows.iterations) <= 1, "{}", report.iterations);
    assert!(by_rows.iterations < solve(&solver.preconditioner(PrecondSpec::ic(0)), &a, &from).1.iterations);
}

#[test]
fn blocks_of_a_sparsified_matrix() {
    let a = in_pairs(&problem("jump3d:9"));
    let from = sparsified(&a, 2);
    for (scalar, block) in [(PrecondSpec::ic(0), BlockKind::Ic0), (PrecondSpec::ilu(0), BlockKind::Ilu0)] {
        let solver = Solver::new().method(Method::Cg);
        let (_, by_rows) = solve(&solver.clone().preconditioner(scalar).layout(Layout::Rows), &a, &from);
        assert!(by_rows.iterations < 100);
        let solver = solver.layout(Layout::Slices).preconditioner(PrecondSpec::block(block, Some(2)));
        let (x, report) = solve(&solver.clone().threads(1), &a, &from);
        assert!(report.layout.contains("dense blocks of 2 x 2"), "{}", report.layout);
        assert!(report.iterations.abs_diff(by_rows.iterations) <= 1, "{}", report.iterations);
        assert!(solve(&solver.threads(2), &a, &from).0 == x);
    }
}

/// Permuted before anything else, both matrices are.
#[test]
fn both_matrices_are_reordered() {
    let a = problem("jump3d:14");
    let from = sparsified(&a, 1);
    let solver = Solver::new().method(Method::Cg).preconditioner(PrecondSpec::ic(0)).reorder(Ordering::Rcm);
    let (_, report) = solve(&solver.clone().layout(Layout::Rows), &a, &from);
    assert!(report.ordering.contains("rcm"), "{}", report.ordering);
    let (_, in_slices) = solve(&solver, &a, &from);
    assert!(in_slices.iterations.abs_diff(report.iterations) <= 1);
}

/// New values of both: the factor follows the matrix it is made from, products follow A.
#[test]
fn values_of_both_change() {
    let (mut a, b) = (problem("jump3d:14"), vec![1.0; 14 * 14 * 14]);
    let mut from = sparsified(&a, 1);
    for layout in [Layout::Auto, Layout::Slices, Layout::Rows] {
        let solver = Solver::new().method(Method::Cg).preconditioner(PrecondSpec::ic(0)).layout(layout);
        let mut prepared = solver.prepare_with(&a, &from).unwrap();
        let mut x = vec![0.0; b.len()];
        let first = prepared.solve(&a, &b, &mut x).unwrap();
        first.require_converged().unwrap();
        let before = x.clone();
        for matrix in [&mut a, &mut from] {
            matrix.values_mut().iter_mut().for_each(|v| *v *= 3.0);
        }
        prepared.refactor(&from).unwrap();
        x.fill(0.0);
        let second = prepared.solve(&a, &b, &mut x).unwrap();
        second.require_converged().unwrap();
        assert_eq!(second.iterations, first.iterations);
        assert!(x.iter().zip(&before).all(|(x, y)| (3.0 * x - y).abs() <= 1e-6 * y.abs().max(1e-3)));
    }
}
