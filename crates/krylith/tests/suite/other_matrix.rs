//! A preconditioner made from another matrix than A, here from A without its smallest entries: in every storage it is the one by
//! rows.

use krylith::block::BlockKind;
use krylith::gallery::Problem;
use krylith::plan::{ReasonCode, Remedy};
use krylith::transform::Ordering;
use krylith::{Csr, Layout, Method, Precision, PrecondSpec, Report, Solver};

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

/// What a solve with a preconditioner from another matrix will do, which is what it does then.
fn planned(solver: &Solver, a: &Csr<f64>, from: &Csr<f64>) -> krylith::plan::SolvePlan {
    let plan = solver.plan_with(a, from).unwrap();
    let prepared = solver.prepare_with(a, from).unwrap();
    let done = prepared.plan();
    assert_eq!((plan.method, &plan.preconditioner), (done.method, &done.preconditioner));
    assert_eq!(
        (plan.precision, &plan.reasons, &plan.warnings),
        (done.precision, &done.reasons, &done.warnings)
    );
    assert_eq!((&plan.fallbacks, &plan.proposals), (&done.fallbacks, &done.proposals));
    let mut x = vec![0.0; a.nrows()];
    let report = prepared.solve(a, &vec![1.0; a.nrows()], &mut x).unwrap();
    report.require_converged().unwrap();
    assert!(report.rungs.len() == 1 && report.iterations < 150, "{report}");
    plan
}

/// A symmetric definite matrix for the preconditioner says nothing about A.
#[test]
fn facts_of_a_choose_the_method() {
    let solver = Solver::new().threads(1);
    for size in [4, 20] {
        let (a, from) = (problem(&format!("convection3d:{size}")), problem(&format!("poisson3d:{size}")));
        let plan = planned(&solver, &a, &from);
        assert_eq!(plan.method, Method::BiCgStab);
        assert!(!plan.preconditioner.info().symmetric, "{}", plan.preconditioner);
        let codes: Vec<_> = plan.reasons.iter().map(|reason| reason.code).collect();
        assert_eq!(codes[..2], [ReasonCode::NotSymmetric, ReasonCode::PreconditionerMatrix]);
        let words =
            "A is not symmetric; the matrix of the preconditioner is symmetric with a positive diagonal";
        assert!(plan.to_string().contains(words), "{plan}");
        assert!(!plan.facts.as_ref().unwrap().symmetric && plan.preconditioner_facts.unwrap().symmetric);
        // Complete factors among the fallbacks are of A, which has no LDLᵀ.
        let ldlt = Remedy::with(Method::Gmres(50), PrecondSpec::ldlt());
        assert!(plan.fallbacks.iter().all(|fallback| fallback.then != ldlt));
        // The other way round no factor of that matrix suits conjugate gradients.
        let plan = planned(&solver, &from, &a);
        assert_eq!(plan.method, Method::BiCgStab);
        let words =
            "A is symmetric with a positive diagonal; the matrix of the preconditioner is not symmetric";
        assert!(plan.to_string().contains(words), "{plan}");
        let plan = planned(&solver, &from, &sparsified(&from, 1));
        assert_eq!(plan.method, Method::Cg);
    }
}

#[test]
fn warnings_of_symmetry_are_about_a() {
    let (convection, poisson) = (problem("convection3d:6"), problem("poisson3d:6"));
    for asked in [PrecondSpec::auto(), PrecondSpec::jacobi()] {
        let solver = Solver::new().method(Method::Cg).preconditioner(asked);
        let warnings = |a, from| solver.plan_with(a, from).unwrap().warnings;
        assert!(warnings(&convection, &poisson)[0].contains("cg needs a symmetric matrix, and A is not"));
        assert!(warnings(&poisson, &convection).is_empty());
    }
}

/// An equal matrix is A.
#[test]
fn a_copy_of_a_is_no_other_matrix() {
    let (a, solver) = (problem("convection3d:12"), Solver::new().threads(1));
    let copy = Csr::new(
        a.nrows(),
        a.ncols(),
        a.pattern().row_ptr().to_vec(),
        a.pattern().col_idx().to_vec(),
        a.values().to_vec(),
    )
    .unwrap();
    assert_eq!(solver.plan_with(&a, &copy).unwrap(), solver.plan(&a).unwrap());
}

/// A complete factor of another matrix does not prove that nothing else solves the system.
#[test]
fn a_complete_factor_of_another_matrix_is_left_when_it_fails() {
    let entries = (0..40).flat_map(|i| [(i, i, 1.0), (i, i ^ 1, 2.0)]);
    let a = Csr::from_entries(40, 40, entries).unwrap();
    let one = Csr::from_entries(40, 40, (0..40).map(|i| (i, i, 1.0))).unwrap();
    let b: Vec<f64> = (0..40).map(|i| if i % 2 == 0 { 1.0 } else { -1.0 }).collect();
    let solver = Solver::new().preconditioner(PrecondSpec::cholesky());
    let report = solver.prepare_with(&a, &one).unwrap().solve(&a, &b, &mut vec![0.0; 40]).unwrap();
    report.require_converged().unwrap();
    assert_eq!((report.rungs[0].method, report.rungs.len()), (Method::Cg, 2));
}
