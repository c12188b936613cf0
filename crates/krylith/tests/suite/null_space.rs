//! Singular systems with a known null space: right answers of least norm, or the right refusal.

use krylith::gallery::{Problem, random_vector};
use krylith::report::NullLevel;
use krylith::{Csr, Method, NullSpace, Outcome, Precision, PrecondSpec, Solution, SolveError, Solver};

fn problem(name: &str) -> Csr<f64> {
    name.parse::<Problem>().unwrap().generate().unwrap()
}

fn times(a: &Csr<f64>, x: &[f64]) -> Vec<f64> {
    let mut y = vec![0.0; a.nrows()];
    a.mul_vec(x, &mut y).unwrap();
    y
}

fn norm(x: &[f64]) -> f64 {
    x.iter().map(|x| x * x).sum::<f64>().sqrt()
}

fn dot(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| x * y).sum()
}

fn residual(a: &Csr<f64>, x: &[f64], b: &[f64]) -> f64 {
    let r: Vec<f64> = times(a, x).iter().zip(b).map(|(ax, b)| b - ax).collect();
    norm(&r) / norm(b)
}

/// b = A y has the answer y − mean(y), up to the condition of A.
fn check_consistent(a: &Csr<f64>, solution: &Solution, b: &[f64], name: &str) {
    let Solution { x, report } = solution;
    assert_eq!(report.outcome, Outcome::Converged, "{name}: {report}");
    assert!(residual(a, x, b) <= 1.0000001e-8, "{name}");
    let mean = x.iter().sum::<f64>() / x.len() as f64;
    assert!(mean.abs() <= 1e-12 * norm(x), "{name}: {mean:e}");
}

#[test]
fn constants_are_recognised() {
    for name in ["neumann2d:40", "neumann3d:14", "graph-laplacian:30", "neumann2d:300"] {
        let a = problem(name);
        let y = random_vector(a.nrows());
        let b = times(&a, &y);
        let solution = Solver::new().threads(2).solve(&a, &b).unwrap();
        check_consistent(&a, &solution, &b, name);
        let mean = y.iter().sum::<f64>() / y.len() as f64;
        let error: Vec<f64> = solution.x.iter().zip(&y).map(|(x, y)| x - (y - mean)).collect();
        assert!(norm(&error) < 1e-4 * norm(&y), "{name}: {:e}", norm(&error));
        assert!(solution.report.plan.facts.as_ref().unwrap().constant_null_vector);
    }
}

#[test]
fn any_method_takes_them() {
    let a = problem("neumann2d:30");
    let b = times(&a, &random_vector(a.nrows()));
    for (method, kind) in [
        (Method::Cg, PrecondSpec::ic(0)),
        (Method::Cg, PrecondSpec::jacobi()),
        (Method::BiCgStab, PrecondSpec::ilu(0)),
        (Method::Gmres(30), PrecondSpec::ilu(0)),
        (Method::Minres, PrecondSpec::none()),
    ] {
        for precision in [Precision::F64, Precision::Mixed] {
            let solver = Solver::new().method(method).preconditioner(kind.clone()).precision(precision);
            check_consistent(&a, &solver.solve(&a, &b).unwrap(), &b, &format!("{method} {kind}"));
        }
    }
}

/// A component of b outside of the range that is within the tolerance stays in the residual; a larger one makes x the least squares. The report says so.
#[test]
fn nearly_and_not_at_all() {
    let a = problem("neumann3d:12");
    let n = a.nrows() as f64;
    let good = times(&a, &random_vector(a.nrows()));
    for (share, outcome) in [
        (9e-9, Outcome::Converged),
        (1e-7, Outcome::LeastSquares),
        (1e-3, Outcome::LeastSquares),
        (1.0, Outcome::LeastSquares),
    ] {
        let b: Vec<f64> = good.iter().map(|b| b + share * norm(&good) / n.sqrt()).collect();
        let Solution { x, report } = Solver::new().solve(&a, &b).unwrap();
        assert_eq!(report.outcome, outcome, "{share:e}: {report}");
        let step = &report.recovery[0];
        assert!(step.failed.contains("null space of Aᵀ"), "{step:?}");
        let removed = share / (1.0 + share * share).sqrt();
        assert!((step.value.unwrap() / removed - 1.0).abs() < 1e-3, "{step:?} {removed:e}");
        assert!(x.iter().all(|x| x.abs() < 1e3));
        if outcome == Outcome::LeastSquares {
            // What is left is what no A x can be, and the report is about b as it was given.
            let most = removed.hypot(1e-8) / removed - 1.0 + 1e-9;
            assert!((report.relative_residual / removed - 1.0).abs() < most, "{report}");
            assert!((residual(&a, &x, &b) / removed - 1.0).abs() < most);
            assert!(report.projected_residual.unwrap() <= 1e-8, "{report}");
            assert_eq!(report.certificate.null_vector.unwrap().level, NullLevel::Exact);
        }
    }
}

/// Translations and linearised rotations of the nodes of a grid.
fn rigid_motions(m: usize) -> Vec<Vec<f64>> {
    let mut modes = vec![vec![0.0; 3 * m * m * m]; 6];
    for node in 0..m * m * m {
        let [x, y, z] = [node % m, node / m % m, node / (m * m)].map(|c| c as f64);
        let values =
            [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [-y, x, 0.0], [z, 0.0, -x], [0.0, -z, y]];
        for (mode, value) in modes.iter_mut().zip(values) {
            mode[3 * node..3 * node + 3].copy_from_slice(&value);
        }
    }
    modes
}

#[test]
fn motions_of_a_rigid_body() {
    let m = 6;
    let a = problem(&format!("elasticity3d-free:{m}"));
    let modes = rigid_motions(m);
    let b = times(&a, &random_vector(a.nrows()));
    let solver = Solver::new().null_space(NullSpace::vectors(modes.clone()));
    let Solution { x, report } = solver.solve(&a, &b).unwrap();
    report.require_converged().unwrap();
    assert!(residual(&a, &x, &b) <= 1.0000001e-8);
    for mode in &modes {
        assert!(dot(mode, &x).abs() < 1e-9 * norm(mode) * norm(&x));
    }
    // A force that moves the body has no answer.
    let pushed: Vec<f64> = b.iter().zip(&modes[0]).map(|(b, mode)| b + mode).collect();
    let Solution { x, report } = solver.solve(&a, &pushed).unwrap();
    assert_eq!(report.outcome, Outcome::LeastSquares);
    report.require_converged().unwrap();
    assert!(x.iter().all(|x| x.abs() < 1e3));
    // Nobody says what the null space is: constants are recognised, and nothing grows without bound.
    for b in [b, pushed, random_vector(a.nrows())] {
        let Solution { x, report } = Solver::new().solve(&a, &b).unwrap();
        assert!(matches!(report.outcome, Outcome::Converged | Outcome::LeastSquares), "{report}");
        assert!(x.iter().all(|x| x.abs() < 1e6), "{report}");
        if report.outcome == Outcome::Converged {
            assert!(residual(&a, &x, &b) <= 1.0000001e-8);
        }
    }
}

#[test]
fn what_is_not_a_null_space_is_an_error() {
    let a = problem("poisson2d:12");
    let n = a.nrows();
    let b = vec![1.0; n];
    for (space, words) in [
        (NullSpace::Constant, "A z = 0 is needed"),
        (NullSpace::vectors([random_vector(n)]), "A z = 0 is needed"),
        (NullSpace::vectors([vec![1.0; 3]]), "vector 1 of 3 numbers"),
        (NullSpace::vectors([vec![0.0; n]]), "not all zero"),
        (NullSpace::vectors([vec![f64::NAN; n]]), "finite"),
    ] {
        let error = Solver::new().null_space(space).solve(&a, &b).unwrap_err();
        assert!(matches!(error, SolveError::Option { name: "null_space", .. }), "{error}");
        assert!(error.to_string().contains(words), "{error}");
    }
    // Dependent vectors span what they span.
    let a = problem("neumann2d:12");
    let b = times(&a, &random_vector(n));
    let space = NullSpace::vectors([vec![1.0; n], vec![-3.0; n]]);
    check_consistent(&a, &Solver::new().null_space(space).solve(&a, &b).unwrap(), &b, "twice");
    let ignored = Solver::new().null_space(NullSpace::Ignore).solve(&a, &b).unwrap().report;
    assert!(ignored.recovery.iter().all(|step| !step.failed.contains("null space")));
}

/// What is known of one matrix is not used for another.
#[test]
fn null_spaces_follow_the_values() {
    let mut a = problem("neumann2d:16");
    let b = vec![1.0; a.nrows()];
    let mut x = vec![0.0; a.nrows()];
    let mut prepared = Solver::new().allow_stale_factor(true).prepare(&a).unwrap();
    assert_eq!(prepared.solve(&a, &b, &mut x).unwrap().outcome, Outcome::LeastSquares);
    for i in 0..a.nrows() {
        let place = a.pattern().find(i, i).unwrap();
        a.values_mut()[place] += 1.0;
    }
    for stale in [true, false] {
        if !stale {
            prepared.refactor(&a).unwrap();
        }
        x.fill(0.0);
        prepared.solve(&a, &b, &mut x).unwrap().require_converged().unwrap();
        assert!(x.iter().all(|x| (x - 1.0).abs() < 1e-6));
    }
    // And back.
    for i in 0..a.nrows() {
        let place = a.pattern().find(i, i).unwrap();
        a.values_mut()[place] -= 1.0;
    }
    prepared.refactor(&a).unwrap();
    assert_eq!(prepared.solve(&a, &b, &mut x).unwrap().outcome, Outcome::LeastSquares);
}

/// Rows of a generator of a Markov chain sum up to 0, columns do not: x is of least norm, b is left alone.
#[test]
fn one_side_only() {
    let a = Csr::from_entries(
        3,
        3,
        [(0, 0, -1.0), (0, 1, 1.0), (1, 0, 2.0), (1, 1, -3.0), (1, 2, 1.0), (2, 1, 1.0), (2, 2, -1.0)],
    )
    .unwrap();
    let b = times(&a, &[1.0, 2.0, 6.0]);
    let Solution { x, report } = Solver::new().solve(&a, &b).unwrap();
    report.require_converged().unwrap();
    let expected = [-2.0, -1.0, 3.0];
    assert!(x.iter().zip(expected).all(|(x, e)| (x - e).abs() < 1e-6), "{x:?}");
}
