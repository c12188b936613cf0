//! Incomplete Cholesky of a pattern that is not symmetric: one error in every storage, and never chosen by `auto`.

use krylith::block::{BlockKind, BlockRecipe};
use krylith::gallery::Problem;
use krylith::operator::Recipe;
use krylith::precond::threshold::{IctOptions, ict};
use krylith::precond::{Form, Incomplete};
use krylith::schedule::Schedule;
use krylith::sliced::{SlicedPattern, SlicedSymbolic};
use krylith::solver::{Layout, Method, Precision};
use krylith::space::Threads;
use krylith::structured::{Grid, Stencil, StencilMatrix, StencilSymbolic};
use krylith::{Csr, SetupError, SolveError, Solver};
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

/// The same matrix without entry (row, column), or with a zero there if it has none.
fn one_sided(a: &Csr<f64>, row: usize, column: usize) -> Csr<f64> {
    let entries = |i: usize| {
        let mut entries: Vec<(u32, f64)> =
            a.row(i).0.iter().copied().zip(a.row(i).1.iter().copied()).collect();
        if i == row {
            match entries.iter().position(|e| e.0 as usize == column) {
                Some(k) => drop(entries.remove(k)),
                None => entries.push((column as u32, 0.0)),
            }
            entries.sort_by_key(|e| e.0);
        }
        entries
    };
    let fill = |i, columns: &mut [u32], values: &mut [f64]| {
        for (k, (j, v)) in entries(i).into_iter().enumerate() {
            (columns[k], values[k]) = (j, v);
        }
    };
    Csr::from_rows(a.nrows(), a.ncols(), |i| entries(i).len(), fill).unwrap()
}

#[test]
fn every_symmetric_member_refuses_it_in_every_layout() {
    let grid = problem("poisson2d:60");
    // An explicit zero that the grid's stencil does not have, above and below the diagonal; a hole in the stencil; blocks.
    let solid = problem("elasticity3d:4");
    let cases = [
        one_sided(&grid, 7, 3000),
        one_sided(&grid, 3000, 7),
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

/// Symmetric in its values, an explicit zero standing on one side: solved without incomplete Cholesky.
#[test]
fn auto_takes_another_factor() {
    let whole = problem("poisson2d:60");
    let b = vec![1.0; whole.nrows()];
    let auto = Solver::new().threads(2);
    assert_eq!(auto.solve(&whole, &b).unwrap().report.preconditioner, "ic0");
    let a = one_sided(&whole, 7, 3000);
    assert!(a.symmetry().symmetric && !a.symmetry().pattern);
    let report = auto.solve(&a, &b).unwrap().report;
    report.require_converged().unwrap();
    assert_eq!((report.solver.as_str(), report.preconditioner.as_str()), ("bicgstab", "ilu0"));
    assert!(report.choice.contains("explicit zeros on one side"), "{}", report.choice);
    // What was asked for is kept.
    for method in [Method::Cg, Method::Minres] {
        let report = auto.clone().method(method).solve(&a, &b).unwrap().report;
        report.require_converged().unwrap();
        assert_eq!((report.solver, report.preconditioner.as_str()), (method.to_string(), "jacobi"));
    }
    let report = auto.preconditioner("jacobi".parse().unwrap()).solve(&a, &b).unwrap().report;
    report.require_converged().unwrap();
    assert_eq!((report.solver.as_str(), report.preconditioner.as_str()), ("cg", "jacobi"));
}
