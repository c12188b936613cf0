//! The short way: what is promised of an answer is checked against A, x and b.

use krylith::gallery::Problem;
use krylith::observe::Iteration;
use krylith::operator::LinearOperator;
use krylith::space::Threads;
use krylith::{
    BackendError, Csr, Layout, Method, Outcome, PrecondSpec, Report, SetupError, SolveError, Solver, solve,
};
use std::ops::ControlFlow;

fn problem(name: &str) -> Csr<f64> {
    name.parse::<Problem>().unwrap().generate().unwrap()
}

/// ‖b − A x‖₂ / ‖b‖₂, computed here.
fn residual(a: &Csr<f64>, x: &[f64], b: &[f64]) -> f64 {
    let mut r = vec![0.0; b.len()];
    a.mul_vec(x, &mut r).unwrap();
    let square = |v: &mut dyn Iterator<Item = f64>| v.map(|v| v * v).sum::<f64>().sqrt();
    square(&mut b.iter().zip(&r).map(|(b, r)| b - r)) / square(&mut b.iter().copied())
}

fn right_hand_side(n: usize) -> Vec<f64> {
    (0..n).map(|i| ((i * 37) as f64).sin()).collect()
}

#[test]
fn auto_chooses_and_says_why() {
    for (name, solver, preconditioner) in [
        ("poisson3d:12", "cg", "ic0"),
        ("fem2d:30", "cg", "ic0"),
        ("convection3d:12", "bicgstab", "ilu0"),
        ("atmosmod:12", "bicgstab", "ilu0"),
        ("poisson3d:40", "cg", "mic(0,0.987)"),
        ("atmosmod:20", "bicgstab", "milu(0,0.9)"),
    ] {
        let a = problem(name);
        let b = right_hand_side(a.nrows());
        let solution = solve(&a, &b).unwrap();
        let report = solution.report.require_converged().unwrap();
        assert_eq!(
            (report.solver.as_str(), report.preconditioner.as_str()),
            (solver, preconditioner),
            "{name}"
        );
        let recomputed = residual(&a, &solution.x, &b);
        assert!(recomputed <= 1.0000001e-8, "{name}: {recomputed:e}");
        // Both were rounded, each by at most what the certificate allows for.
        let rounding = report.certificate.residual_bound.unwrap() - report.relative_residual;
        let difference = (report.relative_residual - recomputed).abs();
        assert!(difference <= 2.0 * rounding, "{name}: {difference:e}, rounding {rounding:e}");
        assert!(rounding < 1e-13, "{name}: {rounding:e}");
        assert!(report.backward_error.unwrap() < 1e-8);
        assert_eq!(report.history.len(), report.iterations + 1);
        assert!(report.choice.contains("symmetric"), "{}", report.choice);
        assert!(report.recovery.is_empty());
    }
}

#[test]
fn a_bad_pivot_is_shifted_away_or_an_error() {
    let a = problem("elasticity2d:20");
    let b = right_hand_side(a.nrows());
    let ic0 = Solver::new().method(Method::Cg).preconditioner(PrecondSpec::ic(0));
    let asked = ic0.clone().recover(false).solve(&a, &b);
    let Err(SolveError::Setup(SetupError::BadPivot { row, value })) = asked else { panic!("{asked:?}") };
    assert!(value <= 0.0);
    let jacobi = ic0.clone().preconditioner(PrecondSpec::jacobi()).solve(&a, &b).unwrap();
    for solver in [ic0, Solver::new()] {
        let solution = solver.solve(&a, &b).unwrap();
        let report = solution.report.require_converged().unwrap();
        assert_eq!(report.preconditioner, "ic0");
        assert_eq!((report.recovery[0].row, report.recovery[0].value), (Some(row), Some(value)));
        assert!(report.recovery[0].action.contains("shifted by 1.0e-3"), "{:?}", report.recovery);
        assert!(report.shift > 0.0 && report.iterations < jacobi.report.iterations / 2);
        assert!(residual(&a, &solution.x, &b) <= 1.0000001e-8);
    }
}

/// Where no shift helps, because the matrix is not positive definite at all, the diagonal alone cannot fail.
#[test]
fn the_last_resort_cannot_fail() {
    // A thousand times the diagonal is still nothing beside the other entries.
    let a = Csr::from_triplets(2, 2, &[0, 0, 1, 1], &[0, 1, 0, 1], &[1e-9, 1.0, 1.0, 1e-9]).unwrap();
    let ic = Solver::new().method(Method::Gmres(5)).preconditioner(PrecondSpec::ic(0));
    let report = ic.solve(&a, &[1.0, 2.0]).unwrap().report;
    assert_eq!(report.preconditioner, "jacobi");
    let last = report.recovery.last().unwrap();
    assert!(last.row.is_some() && last.action.contains("the diagonal"), "{:?}", report.recovery);
    report.require_converged().unwrap();
}

/// The memory of a factor is foretold, and a limit ends in an error with the figure.
#[test]
fn fill_beyond_the_limit_is_refused_with_its_size() {
    let a = problem("poisson3d:20");
    let b = right_hand_side(a.nrows());
    let on_grid = |k| Solver::new().method(Method::Cg).preconditioner(PrecondSpec::ic(k));
    let ic = |k| on_grid(k).layout(Layout::Slices);
    let mut iterations = usize::MAX;
    for k in 0..=5 {
        let report = ic(k).layout(Layout::Rows).solve(&a, &b).unwrap().report;
        assert!(report.require_converged().is_ok() && report.iterations <= iterations, "level {k}");
        iterations = report.iterations;
        let bytes = 12 * 2 * (report.preconditioner_nnz - a.nrows()) + 24 * a.nrows() + 16;
        let refused = ic(k).max_factor_bytes(bytes as u64 - 1).solve(&a, &b);
        if k > 0 {
            let Err(SolveError::Setup(SetupError::MemoryLimit { predicted, .. })) = refused else {
                panic!("{refused:?}")
            };
            assert_eq!(predicted, bytes as u64);
        }
        assert!(ic(k).max_factor_bytes(bytes as u64).solve(&a, &b).is_ok());
    }
    assert!(iterations <= 8, "{iterations}");
    for k in 0..=1 {
        let report = on_grid(k).solve(&a, &b).unwrap().report;
        assert!(report.layout.starts_with("structured"), "{}", report.layout);
        let bytes = report.preconditioner_bytes as u64;
        let refused = on_grid(k).max_factor_bytes(bytes - 1).solve(&a, &b);
        let Err(SolveError::Setup(SetupError::MemoryLimit { predicted, .. })) = refused else {
            panic!("{refused:?}")
        };
        assert_eq!(predicted, bytes);
        assert!(on_grid(k).max_factor_bytes(bytes).solve(&a, &b).is_ok());
    }
    let refused = ic(usize::MAX).max_factor_bytes(1 << 20).solve(&a, &b);
    assert!(matches!(refused, Err(SolveError::Setup(SetupError::MemoryLimit { .. }))));
}

#[test]
fn an_indefinite_matrix_goes_on_with_minres() {
    // −Δ − 20 on a square: symmetric with a positive diagonal, but indefinite.
    let mut a = problem("poisson2d:20");
    let shift = 20.0 / 21.0f64.powi(2);
    for i in 0..a.nrows() {
        let place = a.pattern().find(i, i).unwrap();
        a.values_mut()[place] -= shift * 3.0;
    }
    let b = right_hand_side(a.nrows());
    let solution = solve(&a, &b).unwrap();
    let report = solution.report.require_converged().unwrap();
    assert!(residual(&a, &solution.x, &b) <= 1.0000001e-8);
    assert_eq!(report.solver, "minres");
    assert!(report.recovery.iter().any(|r| r.failed.starts_with("cg")), "{:?}", report.recovery);
}

#[test]
fn no_outcome_is_called_converged_but_a_checked_one() {
    let a = problem("poisson2d:30");
    let b = right_hand_side(a.nrows());
    let limited = Solver::new().max_iterations(3).solve(&a, &b).unwrap();
    assert_eq!((limited.report.outcome, limited.report.iterations), (Outcome::MaxIterations, 3));
    assert!(limited.report.require_converged().unwrap_err().to_string().contains("after 3 iterations"));
    assert!((limited.report.relative_residual - residual(&a, &limited.x, &b)).abs() < 1e-12);

    // No x in f64 has such a residual: the recurrence says yes, the recomputed residual no.
    let impossible = Solver::new().rtol(1e-17).solve(&a, &b).unwrap();
    assert_eq!(impossible.report.outcome, Outcome::AttainableAccuracy);
    assert_eq!(impossible.report.residual_replacements, 3);
    assert!(impossible.report.relative_residual > 1e-17 && impossible.report.relative_residual < 1e-13);
    assert!(impossible.report.backward_error.unwrap() < 1e-15);

    let nan = Solver::new().solve(&a, &vec![f64::NAN; a.nrows()]).unwrap_err();
    assert!(matches!(nan, SolveError::NotFinite { what: "b", row: 0, .. }), "{nan}");
}

#[test]
fn a_zero_right_hand_side_has_a_zero_answer() {
    let a = problem("convection3d:6");
    let solution = solve(&a, &vec![0.0; a.nrows()]).unwrap();
    assert_eq!((solution.report.outcome, solution.report.iterations), (Outcome::Converged, 0));
    assert!(solution.x.iter().all(|&x| x == 0.0));
    // Whatever the guess.
    let mut x = vec![1.0; a.nrows()];
    let report = Solver::new().solve_from(&a, &vec![0.0; a.nrows()], &mut x).unwrap();
    assert_eq!((report.outcome, report.iterations), (Outcome::Converged, 0));
    assert!(x.iter().all(|&x| x == 0.0));
}

#[test]
fn every_method_with_every_preconditioner() {
    let (spd, general) = (problem("jump3d:7"), problem("convection3d:7"));
    let [none, jacobi] = [PrecondSpec::none(), PrecondSpec::jacobi()];
    let (symmetric, lu) =
        ([none.clone(), jacobi.clone(), PrecondSpec::ic(0)], [none, jacobi, PrecondSpec::ilu(0)]);
    for (method, a, preconditioners) in [
        (Method::Cg, &spd, &symmetric),
        (Method::Minres, &spd, &symmetric),
        (Method::BiCgStab, &general, &lu),
        (Method::Gmres(20), &general, &lu),
        (Method::Fgmres(20), &general, &lu),
    ] {
        for preconditioner in preconditioners {
            let b = right_hand_side(a.nrows());
            let solver = Solver::new().method(method).preconditioner(preconditioner.clone()).threads(3);
            let solution = solver.solve(a, &b).unwrap();
            solution.report.require_converged().unwrap_or_else(|e| panic!("{method} {preconditioner}: {e}"));
            assert!(residual(a, &solution.x, &b) <= 1.0000001e-8, "{method} {preconditioner}");
            assert_eq!(solution.report.choice, "as asked");
        }
    }
}

#[test]
fn guesses_observers_and_sequences() {
    let mut a = problem("poisson3d:10");
    let b = right_hand_side(a.nrows());
    let mut prepared = Solver::new().threads(2).prepare(&a).unwrap();
    let mut x = vec![0.0; a.nrows()];
    let first = prepared.solve(&a, &b, &mut x).unwrap();
    // From the answer itself nothing is left to do.
    let again = prepared.solve(&a, &b, &mut x).unwrap();
    assert_eq!((again.outcome, again.iterations), (Outcome::Converged, 0));
    // Another matrix of the same pattern, from the old answer.
    a.values_mut().iter_mut().for_each(|v| *v *= 1.5);
    prepared.refactor(&a).unwrap();
    let third = prepared.solve(&a, &b, &mut x).unwrap();
    third.require_converged().unwrap();
    assert!(third.iterations <= first.iterations);
    assert!(residual(&a, &x, &b) <= 1.0000001e-8);

    let mut seen = Vec::new();
    let mut observer = |i: &Iteration<f64>| {
        seen.push(i.index);
        if i.index == 4 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    x.fill(0.0);
    let report: Report = prepared.solve_observed(&a, &b, &mut x, &mut observer).unwrap();
    assert_eq!(report.outcome, Outcome::Interrupted);
    assert_eq!(seen, [0, 1, 2, 3, 4]);
    let error = prepared.refactor(&problem("poisson3d:11"));
    assert_eq!(error, Err(SetupError::PatternChanged));
}

/// The 7-point Laplacian without a matrix.
struct Laplacian(usize);

impl LinearOperator<Threads<f64>> for Laplacian {
    type Scratch = ();

    fn domain(&self) -> usize {
        self.0.pow(3)
    }

    fn range(&self) -> usize {
        self.0.pow(3)
    }

    fn scratch(&self, _: &Threads<f64>) -> Result<(), BackendError> {
        Ok(())
    }

    fn apply(
        &self,
        _: &Threads<f64>,
        x: &Vec<f64>,
        y: &mut Vec<f64>,
        _: &mut (),
    ) -> Result<(), BackendError> {
        let n = self.0;
        for i in 0..x.len() {
            let (u, v, w) = (i % n, i / n % n, i / (n * n));
            let mut sum = 6.0 * x[i];
            for (inside, j) in [
                (u > 0, i.wrapping_sub(1)),
                (u + 1 < n, i + 1),
                (v > 0, i.wrapping_sub(n)),
                (v + 1 < n, i + n),
                (w > 0, i.wrapping_sub(n * n)),
                (w + 1 < n, i + n * n),
            ] {
                if inside {
                    sum -= x[j];
                }
            }
            y[i] = sum;
        }
        Ok(())
    }
}

#[test]
fn an_operator_with_a_matrix_for_the_preconditioner() {
    let (operator, matrix) = (Laplacian(9), problem("poisson3d:9"));
    let b = right_hand_side(matrix.nrows());
    let mut x = vec![0.0; b.len()];
    let report =
        Solver::new().prepare_with(&operator, &matrix).unwrap().solve(&operator, &b, &mut x).unwrap();
    report.require_converged().unwrap();
    assert_eq!((report.preconditioner.as_str(), report.backward_error), ("ic0", None));
    assert!(residual(&matrix, &x, &b) <= 1.0000001e-8);
}

#[test]
fn dimensions_must_agree() {
    let a = problem("poisson2d:5");
    assert!(matches!(solve(&a, &[1.0; 24]), Err(SolveError::Backend(BackendError::Size { .. }))));
    let rectangle = Csr::from_triplets(2, 3, &[0], &[0], &[1.0]).unwrap();
    assert!(matches!(solve(&rectangle, &[1.0; 2]), Err(SolveError::Setup(SetupError::Matrix(_)))));
}

#[test]
fn two_solves_at_once_and_inside_rayon() {
    use rayon::prelude::*;
    let a = problem("poisson3d:10");
    let b = right_hand_side(a.nrows());
    let alone = Solver::new().threads(1).solve(&a, &b).unwrap().x;
    let all: Vec<Vec<f64>> =
        (0..6).into_par_iter().map(|_| Solver::new().threads(3).solve(&a, &b).unwrap().x).collect();
    assert!(all.iter().all(|x| *x == alone));
}

/// A's values may change while the factor is kept: the answer is that of the new A.
#[test]
fn an_old_factor_serves_a_new_matrix() {
    for name in ["poisson3d:14", "convection3d:12"] {
        let mut a = problem(name);
        let b = right_hand_side(a.nrows());
        let prepared =
            Solver::new().threads(2).allow_stale_factor(true).layout(Layout::Slices).prepare(&a).unwrap();
        let mut x = vec![0.0; a.nrows()];
        for step in 0..3 {
            let report = prepared.solve(&a, &b, &mut x).unwrap();
            assert!(report.layout.contains("slices"), "{}", report.layout);
            report.require_converged().unwrap();
            assert_eq!(report.residual_replacements, 0, "{name}, step {step}");
            assert!(residual(&a, &x, &b) <= 1.0000001e-8, "{name}, step {step}");
            for i in 0..a.nrows() {
                let k = a.pattern().find(i, i).unwrap();
                a.values_mut()[k] *= 1.05;
            }
        }
    }
}

/// A factor remembers the values it was made from.
#[test]
fn a_stale_factor_is_refused_unless_allowed() {
    for layout in [Layout::Auto, Layout::Rows] {
        let mut a = problem("poisson3d:12");
        let b = right_hand_side(a.nrows());
        let mut x = vec![0.0; a.nrows()];
        let solver = Solver::new().threads(2).layout(layout);
        let mut prepared = solver.prepare(&a).unwrap();
        prepared.solve(&a, &b, &mut x).unwrap().require_converged().unwrap();
        a.values_mut()[77] *= 1.0 + f64::EPSILON;
        let before = x.clone();
        let refused = prepared.solve(&a, &b, &mut x);
        assert_eq!(refused.map(|_| ()), Err(SolveError::StaleFactor));
        assert_eq!(x, before);
        prepared.refactor(&a).unwrap();
        assert!(prepared.solve(&a, &b, &mut x).is_ok());
        // Once allowed, the answer is that of the matrix given, whatever was factored.
        let kept = solver.allow_stale_factor(true).prepare(&a).unwrap();
        for i in 0..a.nrows() {
            let place = a.pattern().find(i, i).unwrap();
            a.values_mut()[place] *= 2.0;
        }
        let report = kept.solve(&a, &b, &mut x).unwrap();
        report.require_converged().unwrap();
        assert!(residual(&a, &x, &b) <= 1.0000001e-8);
    }
}

/// Where one method ends far from the answer, the next one does not begin there.
#[test]
fn the_next_method_does_not_begin_with_something_worse_than_nothing() {
    // BiCGStab breaks down at once: r̂ᵀ A r̂ = 0 for a rotation. The guess is far off.
    let a = Csr::from_triplets(2, 2, &[0, 0, 1, 1], &[0, 1, 0, 1], &[1e-300, 1.0, -1.0, 1e-300]).unwrap();
    let solver = Solver::new().preconditioner(PrecondSpec::none());
    let mut x = vec![1e200, -1e200];
    let report = solver.solve_from(&a, &[1.0, 2.0], &mut x).unwrap();
    report.require_converged().unwrap();
    assert!((x[0] + 2.0).abs() < 1e-7 && (x[1] - 1.0).abs() < 1e-7, "{x:?}");
    assert!(report.recovery.iter().any(|step| step.action.contains("gmres")), "{:?}", report.recovery);
}

#[test]
fn a_prepared_solve_moves_to_another_thread() {
    for name in ["poisson3d:20", "elasticity3d:4", "fem2d:30"] {
        let a = problem(name);
        let b = vec![1.0; a.nrows()];
        let prepared = Solver::new().threads(2).prepare(&a).unwrap();
        let (mut here, mut there) = (vec![0.0; a.nrows()], vec![0.0; a.nrows()]);
        let _ = prepared.solve(&a, &b, &mut here).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let prepared = prepared;
                prepared.solve(&a, &b, &mut there).unwrap()
            });
        });
        assert_eq!(here, there, "{name}");
    }
}
