//! Ordinary matrices that are solved on the grid inside of them, beside the same without it.

use krylith::gallery::Problem;
use krylith::operator::LinearOperator;
use krylith::space::{Space, Threads};
use krylith::structured::{StencilMatrix, Structure};
use krylith::{Csr, Layout, Method, Precision, PrecondSpec, Report, Solver};

fn problem(name: &str) -> Csr<f64> {
    name.parse::<Problem>().unwrap().generate().unwrap()
}

fn right_hand_side(n: usize) -> Vec<f64> {
    (0..n).map(|i| 1.0 + ((i * 37) as f64).sin()).collect()
}

fn solve(solver: &Solver, a: &Csr<f64>) -> (Vec<f64>, Report) {
    let solution = solver.solve(a, &right_hand_side(a.nrows())).unwrap();
    solution.report.require_converged().unwrap();
    (solution.x, solution.report)
}

/// The same preconditioner: as many iterations, one more or one less, whatever the method and the kind of factor.
#[test]
fn iterations_are_those_without_the_grid() {
    let cases: [(&str, &[&str]); 9] = [
        ("poisson2d:150x64", &["ic0", "ic(1)", "mic(0,0.95)", "dic"]),
        ("poisson3d:30x24x20", &["ic0", "ic(1)", "mic(0,0.95)", "mic(1,0.95)"]),
        ("hpcg:24", &["ic0", "mic(0,0.9)", "dic"]),
        ("convection3d:24", &["ilu0", "ilu(1)", "milu(0,0.9)", "dilu"]),
        ("jump3d:24", &["ic0", "ic(1)", "mic(0,0.9)", "mic(1,0.9)"]),
        ("apache:40x30x9", &["ic0"]),
        ("navierstokes3d:48x16x8", &["ilu0", "bilu0", "bdilu"]),
        ("euler3d:24", &["ilu0", "bilu0", "bdilu"]),
        ("cahnhilliard3d:64x32x6", &["ilu0", "bilu0"]),
    ];
    for (name, preconditioners) in cases {
        let a = problem(name);
        for p in preconditioners {
            let solver = Solver::new().threads(2).rtol(1e-7).preconditioner(p.parse().unwrap());
            let (_, on_grid) = solve(&solver, &a);
            let (_, without) = solve(&solver.clone().layout(Layout::Slices), &a);
            assert!(on_grid.layout.starts_with("structured"), "{name} {p}: {}", on_grid.layout);
            assert!(!without.layout.starts_with("structured"), "{name} {p}: {}", without.layout);
            let counts = (on_grid.iterations, without.iterations);
            assert!(counts.0.abs_diff(counts.1) <= 1, "{name} {p}: {counts:?}");
            assert_eq!(on_grid.preconditioner_nnz, without.preconditioner_nnz, "{name} {p}");
        }
    }
}

#[test]
fn the_same_bits_on_any_number_of_threads() {
    let cases = [
        ("poisson2d:150x40", Method::Cg, "ic0", Precision::F64),
        ("jump3d:24", Method::Cg, "ic0", Precision::F64),
        ("jump3d:24", Method::Cg, "mic(1,0.9)", Precision::Mixed),
        ("hpcg:20", Method::Cg, "ic0", Precision::F64),
        ("convection3d:24", Method::BiCgStab, "ilu0", Precision::F64),
        ("convection3d:24", Method::Gmres(20), "ilu(1)", Precision::F64),
        ("euler3d:24x16x8", Method::Gmres(20), "ilu0", Precision::F64),
    ];
    for (name, method, p, precision) in cases {
        let a = problem(name);
        let solver = Solver::new().method(method).preconditioner(p.parse().unwrap()).precision(precision);
        let (expected, report) = solve(&solver.clone().threads(1), &a);
        assert!(report.layout.starts_with("structured"), "{name} {p}: {}", report.layout);
        for threads in 2..=8 {
            let (x, other) = solve(&solver.clone().threads(threads), &a);
            assert_eq!(other.history, report.history, "{name} {p} {threads}");
            assert!(x == expected, "{name} {p} {threads}");
        }
    }
}

/// Eisenstat's residuals are the true ones: as those of the usual way, step by step.
#[test]
fn residuals_are_those_of_the_usual_way() {
    for name in ["poisson2d:150x64", "poisson3d:32", "jump3d:24"] {
        let a = problem(name);
        let solver = Solver::new().threads(2).method(Method::Cg).preconditioner(PrecondSpec::ic(0));
        let (x, on_grid) = solve(&solver, &a);
        assert!(on_grid.layout.contains("Eisenstat"), "{}", on_grid.layout);
        let (expected, rows) = solve(&solver.layout(Layout::Rows), &a);
        for (k, (own, other)) in on_grid.history.iter().zip(&rows.history).enumerate().take(30) {
            assert!((own - other).abs() <= 1e-6 * other, "{name}: {own} and {other} after {k}");
        }
        let scale = expected.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
        assert!(x.iter().zip(&expected).all(|(a, b)| (a - b).abs() <= 1e-5 * scale));
    }
}

/// Chunks of the sum do not begin where the threads' units do.
#[test]
fn a_product_with_its_sum_has_the_bits_of_two_passes() {
    for name in ["poisson2d:150x64", "poisson2d:7x900", "hpcg:17", "euler3d:9", "jump3d:21"] {
        let a = problem(name);
        for threads in [1, 2, 3, 7] {
            let space = Threads::new(threads);
            let found = Structure::detect(a.pattern()).unwrap();
            let on_grid = StencilMatrix::from_csr(&space, found.grid, &found.stencil, found.dof, &a).unwrap();
            let (mut x, mut y, mut y2) = (on_grid.vector(), on_grid.vector(), on_grid.vector());
            on_grid.gather(&space, &right_hand_side(a.nrows()), &mut x).unwrap();
            y2.fill(f64::NAN);
            on_grid.apply(&space, &x, &mut y, &mut ()).unwrap();
            let sum = on_grid.apply_dot(&space, &x, &mut y2, &mut ()).unwrap();
            assert_eq!(sum.to_bits(), space.dot(&x, &y).unwrap().to_bits(), "{name}, {threads} threads");
            assert_eq!(y, y2, "{name}, {threads} threads");
        }
    }
}

/// Values change: constant coefficients become others and come back; a factor may be kept on purpose.
#[test]
fn values_may_change() {
    let mut a = problem("poisson3d:32");
    let b = right_hand_side(a.nrows());
    let mut x = vec![0.0; a.nrows()];
    let mut prepared = Solver::new().threads(2).allow_stale_factor(true).prepare(&a).unwrap();
    let first = prepared.solve(&a, &b, &mut x).unwrap();
    first.require_converged().unwrap();
    for i in (0..a.nrows()).step_by(3) {
        let place = a.pattern().find(i, i).unwrap();
        a.values_mut()[place] += 1.0;
    }
    x.fill(0.0);
    prepared.solve(&a, &b, &mut x).unwrap().require_converged().unwrap();
    prepared.refactor(&a).unwrap();
    x.fill(0.0);
    let second = prepared.solve(&a, &b, &mut x).unwrap();
    second.require_converged().unwrap();
    assert!(second.iterations < first.iterations);
    let fresh = Solver::new().threads(2).solve(&a, &b).unwrap();
    assert_eq!(fresh.report.iterations, second.iterations);
    assert!(fresh.x == x, "what was solved before changes nothing");
}

/// A pivot that goes wrong is fixed by a shift, as by rows.
#[test]
fn bad_pivots_are_shifted() {
    let mut a = problem("hpcg:20");
    for i in (0..a.nrows()).step_by(11) {
        let place = a.pattern().find(i, i).unwrap();
        a.values_mut()[place] = 1.0;
    }
    let solver = Solver::new().threads(2).method(Method::Gmres(50)).preconditioner(PrecondSpec::ic(0));
    let reports = [Layout::Auto, Layout::Slices].map(|layout| {
        let report = solver.clone().layout(layout).max_iterations(50).solve(&a, &right_hand_side(a.nrows()));
        report.unwrap().report
    });
    assert!(reports[0].layout.starts_with("structured"), "{}", reports[0].layout);
    assert!(reports[0].shift > 0.0);
    assert_eq!(reports[0].shift, reports[1].shift);
    assert_eq!(reports[0].recovery[0].row, reports[1].recovery[0].row);
}

/// Scalar DIC and DILU update numbers, not blocks: where a point has several unknowns they are not those of the grid's blocks, and the
/// layout does not change the preconditioner.
#[test]
fn scalar_diagonal_factors_of_several_unknowns_are_not_taken_on_the_grid() {
    let a = problem("euler3d:24");
    let run = |name: &str, layout| {
        let solver = Solver::new().threads(2).rtol(1e-7).preconditioner(name.parse().unwrap());
        solve(&solver.layout(layout), &a).1
    };
    let [scalar, slices, rows] = [Layout::Auto, Layout::Slices, Layout::Rows].map(|l| run("dilu", l));
    assert!(!scalar.layout.starts_with("structured"), "{}", scalar.layout);
    assert!(scalar.iterations.abs_diff(rows.iterations) <= 1 && slices.iterations == scalar.iterations);
    assert_eq!(scalar.preconditioner_nnz, rows.preconditioner_nnz);
    let block = run("bdilu", Layout::Auto);
    assert!(block.layout.starts_with("structured"), "{}", block.layout);
    assert!(2 * block.iterations < scalar.iterations, "{} {}", block.iterations, scalar.iterations);
}

/// Blocks are stored in `f64` whatever is asked for: by blocks as without the grid, not an error.
#[test]
fn blocks_have_no_narrow_factor() {
    let a = problem("cahnhilliard3d:64x32x6");
    let p: PrecondSpec = "bilu0".parse().unwrap();
    let solver = Solver::new().threads(2).preconditioner(p);
    let (_, wide) = solve(&solver, &a);
    assert!(wide.layout.starts_with("structured"), "{}", wide.layout);
    let (x, narrow) = solve(&solver.clone().precision(Precision::Mixed), &a);
    let (expected, _) = solve(&solver.layout(Layout::Slices), &a);
    assert!(narrow.layout.starts_with("dense blocks"), "{}", narrow.layout);
    assert!(x == expected);
}

/// Without a grid, or where one would not pay, everything is as before.
#[test]
fn other_matrices_are_left_alone() {
    for name in ["fem2d:30", "circuit:30", "poisson3d:5x4x400", "ecology:30", "navierstokes3d:16"] {
        let a = problem(name);
        let (_, report) = solve(&Solver::new().threads(2), &a);
        assert!(!report.layout.starts_with("structured"), "{name}: {}", report.layout);
    }
}

/// A factor that is kept while A is scaled is a factor still: Eisenstat's trick would mix the old pivots with new triangles.
#[test]
fn a_stale_factor_serves_a_scaled_matrix() {
    for name in ["poisson2d:150x64", "jump3d:24"] {
        let mut a = problem(name);
        let b = right_hand_side(a.nrows());
        let mut x = vec![0.0; a.nrows()];
        let prepared = Solver::new().threads(2).allow_stale_factor(true).prepare(&a).unwrap();
        let first = prepared.solve(&a, &b, &mut x).unwrap();
        first.require_converged().unwrap();
        a.values_mut().iter_mut().for_each(|v| *v *= 10.0);
        x.fill(0.0);
        let scaled = prepared.solve(&a, &b, &mut x).unwrap();
        scaled.require_converged().unwrap();
        assert!(scaled.iterations.abs_diff(first.iterations) <= 1, "{name}: {}", scaled.iterations);
    }
}

/// A matrix of another pattern is refused, and leaves the factor as it was.
#[test]
fn another_pattern_is_refused() {
    let a = problem("convection3d:24");
    let b = right_hand_side(a.nrows());
    let mut prepared = Solver::new().threads(2).preconditioner(PrecondSpec::ilu(0)).prepare(&a).unwrap();
    let mut x = vec![0.0; a.nrows()];
    // One entry less, and another size.
    let holey = Csr::from_rows(
        a.nrows(),
        a.nrows(),
        |i| a.row(i).0.len() - usize::from(i == 700),
        |i, columns, values| {
            let kept = a.row(i).0.iter().zip(a.row(i).1).filter(|&(&j, _)| i != 700 || j as usize != 701);
            for (k, (&j, &v)) in kept.enumerate() {
                (columns[k], values[k]) = (j, v);
            }
        },
    )
    .unwrap();
    for wrong in [holey, problem("convection3d:25")] {
        assert!(matches!(prepared.refactor(&wrong), Err(krylith::SetupError::PatternChanged)));
        x.fill(0.0);
        prepared.solve(&a, &b, &mut x).unwrap().require_converged().unwrap();
    }
}
