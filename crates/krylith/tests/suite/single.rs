//! Whole iterations in `f32`, refined in `f64`: as accurate as asked, the same bits on any number of threads, and a way out where `f32`
//! does not reach.

use krylith::gallery::Problem;
use krylith::transform::Ordering;
use krylith::{Csr, Method, Precision, PrecondSpec, Report, Solver};

fn problem(name: &str) -> Csr<f64> {
    name.parse::<Problem>().unwrap().generate().unwrap()
}

fn solve(solver: &Solver, a: &Csr<f64>) -> (Vec<f64>, Report) {
    let b: Vec<f64> = (0..a.nrows()).map(|i| 1.0 + (i as f64 * 0.7).sin()).collect();
    let solution = solver.solve(a, &b).unwrap();
    let mut r = vec![0.0; b.len()];
    a.mul_vec(&solution.x, &mut r).unwrap();
    let norm = |v: &mut dyn Iterator<Item = f64>| v.map(|v| v * v).sum::<f64>().sqrt();
    let relative = norm(&mut r.iter().zip(&b).map(|(r, b)| b - r)) / norm(&mut b.iter().copied());
    assert!((relative - solution.report.relative_residual).abs() < 1e-3 * relative + 1e-15);
    (solution.x, solution.report)
}

#[test]
fn answers_are_as_accurate_as_asked() {
    for (name, method, preconditioner) in [
        ("jump3d:12", Method::Cg, "ic0"),
        ("poisson2d:40", Method::Cg, "jacobi"),
        ("poisson2d:40", Method::Minres, "mic(1,0.95)"),
        ("convection3d:10", Method::BiCgStab, "ilu(1)"),
        ("convection3d:10", Method::Gmres(30), "ssor"),
        ("convection3d:10", Method::Fgmres(30), "dilu"),
    ] {
        let a = problem(name);
        let solver = Solver::new().method(method).preconditioner(preconditioner.parse().unwrap()).rtol(1e-11);
        let (_, double) = solve(&solver, &a);
        for ordering in [Ordering::Natural, Ordering::Rcm] {
            let solver = solver.clone().precision(Precision::F32).reorder(ordering);
            let (x, report) = solve(&solver.clone().threads(1), &a);
            report.require_converged().unwrap();
            assert!(report.layout.contains("refined in f64"), "{}", report.layout);
            assert!(
                report.relative_residual <= 1e-11 && report.recovery.is_empty(),
                "{name} {preconditioner}"
            );
            assert!(report.preconditioner_bytes < double.preconditioner_bytes || preconditioner == "jacobi");
            assert!(
                report.iterations <= 2 * double.iterations + 10,
                "{} {}",
                report.iterations,
                double.iterations
            );
            let near = report.predicted_bytes.abs_diff(report.bytes) < report.bytes / 10;
            assert!(near, "{} predicted, {} held", report.predicted_bytes, report.bytes);
            assert_eq!(report.history.len(), report.iterations + 1);
            for threads in [2, 3] {
                assert!(solve(&solver.clone().threads(threads), &a).0 == x, "{name} {threads}");
            }
        }
    }
}

/// Values that change, with and without a new factor.
#[test]
fn sequences() {
    let mut a = problem("jump3d:10");
    let b = vec![1.0; a.nrows()];
    let mut x = vec![0.0; b.len()];
    let solver = Solver::new().precision(Precision::F32).allow_stale_factor(true).rtol(1e-10);
    let mut prepared = solver.prepare(&a).unwrap();
    for step in 0..4 {
        a.values_mut().iter_mut().for_each(|v| *v *= 1.2);
        if step % 2 == 0 {
            prepared.refactor(&a).unwrap();
        }
        x.fill(0.0);
        prepared.solve(&a, &b, &mut x).unwrap().require_converged().unwrap();
    }
}

/// Where f32 is at its end f64 goes on, and the report says so.
#[test]
fn f64_goes_on_where_f32_ends() {
    // A condition of 1e9: no refinement in f32 converges.
    let n = 400;
    let (mut rows, mut columns, mut values) = (vec![], vec![], vec![]);
    for i in 0..n {
        let size = 10f64.powf(-9.0 * f64::from(i) / f64::from(n));
        for (j, v) in [(i, 2.1 * size), (i + 1, -size)] {
            if j < n {
                rows.push(i);
                columns.push(j);
                values.push(v);
                if j != i {
                    rows.push(j);
                    columns.push(i);
                    values.push(v * 0.999_999);
                }
            }
        }
    }
    let a = Csr::from_triplets(n as usize, n as usize, &rows, &columns, &values).unwrap();
    let solver = Solver::new().precision(Precision::F32).method(Method::Gmres(30));
    let (_, report) = solve(&solver.clone().preconditioner(PrecondSpec::jacobi()), &a);
    report.require_converged().unwrap();
    // Entries beyond the range of f32 are noticed before.
    let mut small = problem("poisson2d:20");
    let place = small.pattern().find(7, 7).unwrap();
    small.values_mut()[place] = 1e35;
    let (_, report) = solve(&solver.preconditioner(PrecondSpec::ilu(0)), &small);
    report.require_converged().unwrap();
    assert!(
        report.recovery[0].failed.contains("row 7 (counted from 0) is out of the range of f32"),
        "{:?}",
        report.recovery
    );
    assert!(!report.layout.contains("refined"), "{}", report.layout);
}

/// The factor that f32 had may not exist in f64: then what follows a bad pivot follows it there, too.
#[test]
fn a_bad_pivot_in_f64_is_recovered_from_after_f32() {
    let values = [
        8.589934592e9,
        -9.223372036854776e18,
        -0.5,
        2.7670116110564327e19,
        1.9807040628566084e28,
        -1.610612736e9,
        -0.5,
        -5.36870912e8,
        2.9103830456733704e-11,
    ];
    let a = Csr::from_triplets(3, 3, &[0, 0, 0, 1, 1, 1, 2, 2, 2], &[0, 1, 2, 0, 1, 2, 0, 1, 2], &values)
        .unwrap();
    let solver =
        Solver::new().precision(Precision::F32).method(Method::Gmres(30)).preconditioner(PrecondSpec::ic(0));
    let report = solver.rtol(1e-10).solve(&a, &[-0.19, -0.62, -0.56]).unwrap().report;
    assert!(report.recovery.iter().any(|step| step.action == "the same in f64"), "{:?}", report.recovery);
    assert!(
        report.recovery.iter().any(|step| step.action.starts_with("the diagonal")),
        "{:?}",
        report.recovery
    );
}
