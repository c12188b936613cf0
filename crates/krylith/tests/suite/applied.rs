//! The preconditioner alone, and preconditioners from closures: z = M⁻¹ r in the order of A, wherever M is stored.

use krylith::gallery::{Problem, random_vector};
use krylith::observe::Iteration;
use krylith::operator::{FnOperator, FnPreconditioner};
use krylith::transform::Ordering;
use krylith::{Csr, Layout, Method, Outcome, Precision, PrecondSpec, SolveError, Solver};
use std::ops::ControlFlow;

fn problem(name: &str) -> Csr<f64> {
    name.parse::<Problem>().unwrap().generate().unwrap()
}

fn mapped(a: &Csr<f64>, f: impl Fn(f64) -> f64) -> Csr<f64> {
    let mut other = a.clone();
    other.values_mut().iter_mut().for_each(|v| *v = f(*v));
    other
}

fn product(a: &Csr<f64>, x: &[f64]) -> Vec<f64> {
    let mut y = vec![0.0; a.nrows()];
    a.mul_vec(x, &mut y).unwrap();
    y
}

/// ‖x − y‖∞ / ‖y‖∞.
fn difference(x: &[f64], y: &[f64]) -> f64 {
    let largest = |v: &mut dyn Iterator<Item = f64>| v.fold(0.0, |a: f64, b| a.max(b.abs()));
    largest(&mut x.iter().zip(y).map(|(x, y)| x - y)) / largest(&mut y.iter().copied())
}

fn applied(solver: &Solver, a: &Csr<f64>, r: &[f64]) -> Vec<f64> {
    let mut z = vec![f64::NAN; a.nrows()];
    solver.prepare(a).unwrap().precondition(r, &mut z).unwrap();
    z
}

/// A complete factor undoes A: on grids, in slices, by rows, permuted, matched and scaled, beyond the range of products.
#[test]
fn a_complete_factor_is_the_inverse() {
    for name in
        ["poisson2d:20", "elasticity3d:5", "fem2d:20", "convection3d:9", "circuit:30", "cahnhilliard3d:5"]
    {
        let a = problem(name);
        let x: Vec<f64> = random_vector(a.nrows());
        for power in [1.0, 2f64.powi(-300), 2f64.powi(300)] {
            let scaled = mapped(&a, |v| v * power);
            let r = product(&scaled, &x);
            for ordering in [Ordering::Natural, Ordering::Rcm, Ordering::Amd] {
                let solver = Solver::new().preconditioner(PrecondSpec::lu()).method(Method::Gmres(10));
                let z = applied(&solver.reorder(ordering), &scaled, &r);
                assert!(difference(&z, &x) < 1e-6, "{name} {ordering:?} {power:e}: {}", difference(&z, &x));
            }
        }
    }
}

/// One M, whatever keeps it.
#[test]
fn every_storage_applies_the_same_preconditioner() {
    for (name, members) in [
        (
            "poisson3d:9",
            &["none", "jacobi", "ic0", "ic(1)", "mic(0,0.9)", "ssor(1.2)", "fsai(0,1,0)", "cholesky"][..],
        ),
        ("fem2d:24", &["jacobi", "ic0", "ict(0.01)", "fsai(0.1,2,0)"]),
        ("navierstokes3d:4", &["jacobi", "ilu0", "bilu0", "ilut(5,1e-3)", "lu"]),
    ] {
        let a = problem(name);
        let r: Vec<f64> = random_vector(a.nrows());
        for member in members {
            let method = if a.symmetry().symmetric { Method::Cg } else { Method::BiCgStab };
            let solver = Solver::new().method(method).preconditioner(member.parse().unwrap());
            let by_rows = applied(&solver.clone().layout(Layout::Rows).threads(1), &a, &r);
            if *member == "none" {
                assert_eq!(by_rows, r);
                assert_eq!(applied(&solver, &mapped(&a, |v| 2f64.powi(-300) * v), &r), r);
            }
            for layout in [Layout::Auto, Layout::Slices] {
                let z = applied(&solver.clone().layout(layout).threads(3), &a, &r);
                assert!(difference(&z, &by_rows) < 1e-12, "{name} {member} {layout:?}");
            }
            for precision in [Precision::Mixed, Precision::F32] {
                let z = applied(&solver.clone().precision(precision), &a, &r);
                assert!(difference(&z, &by_rows) < 1e-4, "{name} {member} {precision:?}");
            }
        }
    }
}

/// Of IC(0) of a tridiagonal matrix, which is complete: by hand.
#[test]
fn by_hand() {
    let a = Csr::from_entries(
        3,
        3,
        [(0, 0, 2.0), (0, 1, -1.0), (1, 0, -1.0), (1, 1, 2.0), (1, 2, -1.0), (2, 1, -1.0), (2, 2, 2.0)],
    );
    let z = applied(
        &Solver::new().preconditioner(PrecondSpec::ic(0)).method(Method::Cg),
        &a.unwrap(),
        &[0.0, 0.0, 4.0],
    );
    assert!(difference(&z, &[1.0, 2.0, 3.0]) < 1e-15, "{z:?}");
}

/// From several threads, from within a solve, and after new values.
#[test]
fn applications_and_solves_at_the_same_time() {
    let a = problem("poisson2d:40");
    let (r, b): (Vec<f64>, Vec<f64>) = (random_vector(a.nrows()), vec![1.0; a.nrows()]);
    let mut prepared =
        Solver::new().preconditioner(PrecondSpec::ic(0)).method(Method::Cg).threads(2).prepare(&a).unwrap();
    let mut expected = vec![0.0; a.nrows()];
    prepared.precondition(&r, &mut expected).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..20 {
                    let mut z = vec![0.0; r.len()];
                    prepared.precondition(&r, &mut z).unwrap();
                    assert_eq!(z, expected);
                    let mut x = vec![0.0; b.len()];
                    prepared.solve(&a, &b, &mut x).unwrap().require_converged().unwrap();
                }
            });
        }
    });
    let mut seen = 0;
    let mut within = |_: &Iteration<f64>| {
        let mut z = vec![0.0; r.len()];
        prepared.precondition(&r, &mut z).unwrap();
        seen += usize::from(z == expected);
        ControlFlow::Continue(())
    };
    let mut x = vec![0.0; b.len()];
    let report = prepared.solve_observed(&a, &b, &mut x, &mut within).unwrap();
    assert!(seen >= report.iterations && seen > 3);
    prepared.refactor(&mapped(&a, |v| 4.0 * v)).unwrap();
    let mut z = vec![0.0; r.len()];
    prepared.precondition(&r, &mut z).unwrap();
    assert!(z.iter().zip(&expected).all(|(z, expected)| *z == expected / 4.0));
    assert!(
        prepared.precondition(&r[1..], &mut z).is_err() && prepared.precondition(&r, &mut z[1..]).is_err()
    );
    let zero = mapped(&a, |_| 0.0);
    if prepared.refactor(&zero).is_err() {
        assert!(matches!(prepared.precondition(&r, &mut z), Err(SolveError::StaleFactor)));
    }
}

/// An operator without a matrix with the factor of a matrix: the iterations of that matrix.
#[test]
fn an_operator_with_a_preconditioner_of_its_own() {
    let a = problem("poisson2d:50");
    let n = a.nrows();
    let b: Vec<f64> = random_vector(n);
    let solver =
        Solver::new().method(Method::Cg).preconditioner(PrecondSpec::ic(0)).threads(1).layout(Layout::Rows);
    let prepared = solver.prepare(&a).unwrap();
    let mut x = vec![0.0; n];
    let of_matrix = prepared.solve(&a, &b, &mut x).unwrap();
    let operator = FnOperator::new(n, |x: &[f64], y: &mut [f64]| a.mul_vec(x, y).unwrap());
    let m = std::sync::Arc::new(solver.prepare(&a).unwrap());
    let apply = move |r: &[f64], z: &mut [f64]| m.precondition(r, z).unwrap();
    let m = FnPreconditioner::new(n, apply);
    let with_own =
        Solver::new().method(Method::Cg).prepare_operator_with(&operator, "ic0 of a matrix", m).unwrap();
    x.fill(0.0);
    let report = with_own.solve(&operator, &b, &mut x).unwrap();
    assert_eq!((report.outcome, report.preconditioner.as_str()), (Outcome::Converged, "ic0 of a matrix"));
    assert!(
        report.iterations.abs_diff(of_matrix.iterations) <= 1,
        "{} {}",
        report.iterations,
        of_matrix.iterations
    );
    let mut z = vec![0.0; n];
    with_own.precondition(&b, &mut z).unwrap();
    let mut expected = vec![0.0; n];
    prepared.precondition(&b, &mut expected).unwrap();
    assert_eq!(z, expected);
    let short = FnPreconditioner::new(3, |r: &[f64], z: &mut [f64]| z.copy_from_slice(r));
    assert!(Solver::new().prepare_operator_with(&operator, "short", short).is_err());
    // Names of the registry mean something else, and one preconditioner is enough.
    for (solver, name) in [
        (Solver::new(), "ic0"),
        (Solver::new(), ""),
        (Solver::new().preconditioner(PrecondSpec::jacobi()), "own"),
    ] {
        let copy = FnPreconditioner::new(n, |r: &[f64], z: &mut [f64]| z.copy_from_slice(r));
        assert!(solver.prepare_operator_with(&operator, name, copy).is_err(), "{name}");
    }
}
