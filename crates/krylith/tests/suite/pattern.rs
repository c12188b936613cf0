//! Incomplete Cholesky of a pattern that is not symmetric: one error in every storage, and never chosen by `auto`; unless the entries that have none across the
//! diagonal are zeros or rounding errors.

use krylith::block::{BlockKind, BlockRecipe};
use krylith::gallery::Problem;
use krylith::operator::Recipe;
use krylith::precond::threshold::{IctOptions, ict};
use krylith::precond::{Form, Incomplete};
use krylith::schedule::Schedule;
use krylith::sliced::{SlicedPattern, SlicedSymbolic};
use krylith::space::Threads;
use krylith::sparsify::Sparsify;
use krylith::structured::{Grid, Stencil, StencilMatrix, StencilSymbolic};
use krylith::transform::Ordering;
use krylith::{Csr, Layout, Method, Precision, PrecondSpec, SetupError, SolveError, Solver};
use std::collections::BTreeMap;
use std::sync::Arc;

const CHOLESKY: [&str; 12] = [
    "ic0",
    "ic(1)",
    "mic0",
    "mic(1,0.9)",
    "dic",
    "ict(0.01)",
    "bic0",
    "bic0(1)",
    "bic0(2)",
    "bdic",
    "bdic(1)",
    "bdic(2)",
];

fn problem(name: &str) -> Csr<f64> {
    name.parse::<Problem>().unwrap().generate().unwrap()
}

/// The same matrix without the entries at these places, or with these values there if it has none.
fn with(a: &Csr<f64>, changes: &[(usize, usize, f64)]) -> Csr<f64> {
    let own = (0..a.nrows())
        .flat_map(|i| a.row(i).0.iter().zip(a.row(i).1).map(move |(&j, &v)| (i, j as usize, v)));
    let mut entries: BTreeMap<_, _> = own.map(|(i, j, v)| ((i, j), v)).collect();
    for &(i, j, v) in changes {
        if entries.remove(&(i, j)).is_none() {
            entries.insert((i, j), v);
        }
    }
    Csr::from_entries(a.nrows(), a.ncols(), entries.into_iter().map(|((i, j), v)| (i, j, v))).unwrap()
}

/// The same matrix without entry (row, column), or with a zero there if it has none.
fn one_sided(a: &Csr<f64>, row: usize, column: usize) -> Csr<f64> {
    with(a, &[(row, column, 0.0)])
}

/// Zeros at places all over the matrix, none of them across from an entry.
fn with_random_zeros(a: &Csr<f64>, count: usize) -> Csr<f64> {
    let n = a.nrows();
    let (mut state, mut added) = (1u64, BTreeMap::new());
    let mut draw = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as usize % n
    };
    while added.len() < count {
        let (i, j) = (draw(), draw());
        if i != j && a.pattern().find(i, j).is_none() && !added.contains_key(&(j, i)) {
            added.insert((i, j), 0.0);
        }
    }
    with(a, &Vec::from_iter(added.into_iter().map(|((i, j), v)| (i, j, v))))
}

#[test]
fn every_symmetric_member_refuses_it_in_every_layout() {
    let grid = problem("poisson2d:60");
    // A number that the grid's stencil does not have, above and below the diagonal; a hole in the stencil; blocks.
    let solid = problem("elasticity3d:4");
    let cases = [
        with(&grid, &[(7, 3000, 1e-3)]),
        with(&grid, &[(3000, 7, 1e-3)]),
        one_sided(&grid, 1000, 1001),
        one_sided(&solid, 3, 0),
        one_sided(&solid, 0, 3),
    ];
    for (which, a) in cases.iter().enumerate() {
        for name in CHOLESKY.iter().filter(|name| !name.ends_with("(2)") || a.nrows() % 2 == 0) {
            for layout in [Layout::Auto, Layout::Slices, Layout::Rows] {
                for (precision, recover) in [(Precision::F64, true), (Precision::Mixed, false)] {
                    let solver = Solver::new().preconditioner(name.parse().unwrap()).layout(layout);
                    let solver =
                        solver.method(Method::BiCgStab).precision(precision).recover(recover).threads(2);
                    let error = solver.solve(a, &vec![1.0; a.nrows()]).map(|s| s.report.layout);
                    let expected = Err(SolveError::Setup(SetupError::PatternNotSymmetric));
                    assert_eq!(error, expected, "{which} {name} {layout:?}");
                }
            }
        }
        let lu = Solver::new().preconditioner("ilu0".parse().unwrap()).method(Method::BiCgStab).threads(2);
        lu.solve(a, &vec![1.0; a.nrows()]).unwrap().report.require_converged().unwrap();
    }
    let message = SetupError::PatternNotSymmetric.to_string();
    assert!(message.contains("incomplete LU") && message.contains("across the diagonal"), "{message}");
}

#[test]
fn every_storage_refuses_it() {
    let space = Threads::new(2);
    let expected = Err(SetupError::PatternNotSymmetric);
    let whole = problem("poisson2d:60");
    for (row, column) in [(1000, 1001), (1001, 1000)] {
        let a = one_sided(&whole, row, column);
        for recipe in [
            Incomplete::ic(0),
            Incomplete::ic(2),
            Incomplete::mic(0, 1.0),
            Incomplete::mic(1, 1.0),
            Incomplete::dic(),
        ] {
            assert_eq!(recipe.analyze(&space, &a).map(|_| ()), expected, "{recipe:?}");
            recipe.analyze(&space, &whole).unwrap();
        }
        let options = IctOptions { tau: 0.01, p: None, shift: 0.0, max_bytes: u64::MAX };
        assert_eq!(ict(a.view(), &options).map(|_| ()), expected);
        for kind in [BlockKind::Ic0, BlockKind::Dic] {
            let refused = BlockRecipe::new(kind).analyze_pattern::<1>(a.pattern(), 2);
            assert_eq!(refused.map(|_| ()), expected, "{kind:?}");
        }
        for kind in [BlockKind::Jacobi, BlockKind::Ilu0, BlockKind::Dilu] {
            BlockRecipe::new(kind).analyze_pattern::<1>(a.pattern(), 2).unwrap();
        }
        let sliced = Arc::new(SlicedPattern::find(a.pattern()).unwrap());
        let refused = SlicedSymbolic::new(&sliced, Form::CHOLESKY, 2, Schedule::Auto);
        assert_eq!(refused.map(|_| ()), expected);
        let (grid, star) = (Grid::new(&[60, 60]).unwrap(), Stencil::star(2, 1).unwrap());
        for (a, expected) in [(&a, expected.clone()), (&whole, Ok(())), (&one_sided(&a, column, row), Ok(()))]
        {
            let a = StencilMatrix::from_csr(&space, grid, &star, 1, a).unwrap();
            assert_eq!(
                StencilSymbolic::new(&a, Form::CHOLESKY, 0, 2).and_then(|s| s.allocate::<f64>()).map(|_| ()),
                expected
            );
            StencilSymbolic::new(&a, Form::LU, 0, 2).and_then(|s| s.allocate::<f64>()).unwrap();
        }
    }
}

/// Symmetric in its values, explicit zeros standing on one side: the preconditioner is made without them, in every storage.
#[test]
fn zeros_on_one_side_are_left_out_in_every_storage() {
    let solid = problem("elasticity3d:4");
    let n = solid.nrows();
    let block: Vec<_> = (0..9).map(|k| (k / 3, n - 3 + k % 3, 0.0)).collect();
    // Two points to the right, everywhere: a grid whose stencil is full, and not symmetric.
    let plane = problem("poisson2d:60");
    let right: Vec<_> = (0..3600).filter(|i| i % 60 < 58).map(|i| (i, i + 2, 0.0)).collect();
    let cases = [
        with_random_zeros(&plane, 400),
        one_sided(&solid, 3, n - 1),
        with(&solid, &block),
        with(&plane, &right),
    ];
    let others = ["cholesky", "ldlt", "ssor", "fsai", "afsai", "learned(1)"];
    for (which, a) in cases.iter().enumerate() {
        assert!(a.symmetry().symmetric && !a.symmetry().pattern);
        let b = vec![1.0; a.nrows()];
        for name in CHOLESKY.iter().filter(|name| !name.ends_with("(2)") || a.nrows() % 2 == 0).chain(&others)
        {
            for layout in [Layout::Auto, Layout::Slices, Layout::Rows] {
                for precision in [Precision::F64, Precision::Mixed] {
                    let solver = Solver::new().preconditioner(name.parse().unwrap()).layout(layout);
                    let solver = solver.method(Method::Cg).precision(precision).threads(2);
                    let report = solver.solve(a, &b).unwrap().report;
                    report.require_converged().unwrap();
                    assert!(report.preconditioner.starts_with(&name[..2]), "{which} {name} {layout:?}");
                }
            }
        }
    }
    // Blocks stay full where whole ones are left out, and a grid stays one.
    let cg = Solver::new().method(Method::Cg).preconditioner(PrecondSpec::ic(0)).threads(2);
    let layout = |a: &Csr<f64>| cg.solve(a, &vec![1.0; a.nrows()]).unwrap().report.layout;
    assert!(layout(&cases[2]).contains("blocks"), "{}", layout(&cases[2]));
}

/// The factor is that of the matrix without the zeros, and what the plan predicts is what is held.
#[test]
fn the_factor_is_that_of_the_matrix_without_the_zeros() {
    let whole = problem("poisson2d:60");
    let a = with_random_zeros(&whole, 400);
    let b: Vec<f64> = (0..a.nrows()).map(|i| (i as f64).sin()).collect();
    let cg = Solver::new().method(Method::Cg).preconditioner(PrecondSpec::ic(1)).threads(2);
    for layout in [Layout::Slices, Layout::Rows] {
        let cg = cg.clone().layout(layout);
        let (prepared, other) = (cg.prepare(&a).unwrap(), cg.prepare(&whole).unwrap());
        assert_eq!(prepared.sparsified(), Some(&whole));
        assert!(other.sparsified().is_none());
        let solve = |prepared: &krylith::Prepared<Csr<f64>>, a| {
            prepared.solve(a, &b, &mut vec![0.0; b.len()]).unwrap()
        };
        let (report, expected) = (solve(&prepared, &a), solve(&other, &whole));
        report.require_converged().unwrap();
        assert_eq!(report.preconditioner_nnz, expected.preconditioner_nnz);
        assert!(report.iterations.abs_diff(expected.iterations) <= 1);
        let plan = cg.plan(&a).unwrap();
        assert_eq!(plan.predicted_bytes, Some(report.predicted_bytes as u64));
        assert_eq!(plan.considered.iter().filter(|considered| considered.taken).count(), 1);
        assert!(report.recovery.is_empty() && report.bytes <= report.predicted_bytes);
    }
    for ordering in [Ordering::Rcm, Ordering::Amd] {
        let report = cg.clone().reorder(ordering).solve(&a, &b).unwrap().report;
        report.require_converged().unwrap();
        assert_eq!(report.preconditioner, "ic(1)");
    }
    let report = cg.clone().sparsify(Sparsify::Percent(5.0)).solve(&a, &b).unwrap().report;
    report.require_converged().unwrap();
    // Made for one matrix from another.
    let mut x = vec![0.0; b.len()];
    cg.prepare_with(&whole, &a).unwrap().solve(&whole, &b, &mut x).unwrap().require_converged().unwrap();
}

/// Rounding errors that have nothing across the diagonal, as assembly leaves them, are left out, too; what is not small in its rows is not.
#[test]
fn rounding_errors_on_one_side_are_left_out() {
    let whole = problem("poisson2d:60");
    let b = vec![1.0; whole.nrows()];
    let auto = Solver::new().threads(2);
    let a = with(&whole, &[(7, 3000, 4e-19), (2000, 9, -9e-18)]);
    let report = auto.solve(&a, &b).unwrap().report;
    report.require_converged().unwrap();
    assert_eq!((report.solver.as_str(), report.preconditioner.as_str()), ("cg", "ic0"));
    assert!(!a.symmetry().symmetric && report.choice.contains("symmetric up to rounding"));
    // The entry is a rounding error of the largest, and not of its own row, whose diagonal is small.
    let mut graded = with(&whole, &[(7, 3000, 1e-15)]);
    let at = graded.pattern().find(7, 7).unwrap();
    graded.values_mut()[at] = 1e-7;
    let report = auto.solve(&graded, &b).unwrap().report;
    assert!(report.choice.contains("entries on one side"), "{}", report.choice);
    assert_eq!(report.plan.preconditioner.to_string(), "ilu0");
}

/// New values are taken over; one that has nothing across the diagonal is refused until it is gone.
#[test]
fn other_values_follow_as_long_as_they_are_zero_on_one_side() {
    let a = one_sided(&problem("poisson2d:60"), 7, 3000);
    let b = vec![1.0; a.nrows()];
    let cg = Solver::new().method(Method::Cg).preconditioner(PrecondSpec::ic(0)).threads(2);
    let mut prepared = cg.prepare(&a).unwrap();
    let mut twice = a.clone();
    twice.values_mut().iter_mut().for_each(|v| *v *= 2.0);
    let solve = |prepared: &krylith::Prepared<Csr<f64>>, a: &Csr<f64>| {
        prepared
            .solve(a, &b, &mut vec![0.0; b.len()])
            .map(|report| report.require_converged().unwrap().iterations)
    };
    let iterations = solve(&prepared, &a).unwrap();
    prepared.refactor(&twice).unwrap();
    assert_eq!(solve(&prepared, &twice), Ok(iterations));
    let at = a.pattern().find(7, 3000).unwrap();
    let mut wrong = twice.clone();
    wrong.values_mut()[at] = 0.5;
    assert_eq!(prepared.refactor(&wrong), Err(SetupError::PatternNotSymmetric));
    assert_eq!(solve(&prepared, &wrong), Err(SolveError::StaleFactor));
    assert_eq!(prepared.refactor(&problem("poisson2d:60")), Err(SetupError::PatternChanged));
    prepared.refactor(&a).unwrap();
    assert_eq!(solve(&prepared, &a), Ok(iterations));
    // Out of range, so that everything is set up anew on the scaled matrix.
    let mut huge = a.clone();
    huge.values_mut().iter_mut().for_each(|v| *v *= 2f64.powi(900));
    prepared.refactor(&huge).unwrap();
    let report = prepared.solve(&huge, &b, &mut vec![0.0; b.len()]).unwrap();
    report.require_converged().unwrap();
}

/// `auto` takes what it takes without the zeros.
#[test]
fn auto_takes_the_factor_of_the_pairs() {
    let whole = problem("poisson2d:60");
    let b = vec![1.0; whole.nrows()];
    let auto = Solver::new().threads(2);
    assert_eq!(auto.solve(&whole, &b).unwrap().report.preconditioner, "ic0");
    for a in [one_sided(&whole, 7, 3000), one_sided(&whole, 3000, 7), with_random_zeros(&whole, 400)] {
        let report = auto.solve(&a, &b).unwrap().report;
        report.require_converged().unwrap();
        assert_eq!((report.solver.as_str(), report.preconditioner.as_str()), ("cg", "ic0"));
        assert!(report.recovery.is_empty());
        let facts = report.plan.facts.as_ref().unwrap();
        assert!(facts.paired && !facts.symmetric_pattern && facts.suits_cholesky());
        let report = auto.clone().method(Method::Minres).solve(&a, &b).unwrap().report;
        report.require_converged().unwrap();
        assert_eq!(report.preconditioner, "ic0");
    }
    // An indefinite or a nonsymmetric matrix has no such factor.
    let report = auto.solve(&with(&whole, &[(7, 3000, 0.1)]), &b).unwrap().report;
    report.require_converged().unwrap();
    assert_eq!((report.solver.as_str(), report.preconditioner.as_str()), ("bicgstab", "ilu0"));
}
