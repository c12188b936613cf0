//! What is said of a system is true of the matrix and the right-hand side of this call: nothing that was found for an earlier matrix decides, and no b is
//! changed. Answers are judged by arithmetic without rounding errors.

mod exact;

use exact::{Random, norm, relative_residual, residual};
use krylith::gallery::Problem;
use krylith::report::NullLevel;
use krylith::solver::NullSpace;
use krylith::{Csr, Method, Outcome, PrecondSpec, Report, Solution, SolveError, Solver};

fn problem(name: &str) -> Csr<f64> {
    name.parse::<Problem>().unwrap().generate().unwrap()
}

fn dense<const N: usize>(rows: [[f64; N]; N]) -> Csr<f64> {
    let entries = (0..N * N).map(|k| (k / N, k % N, rows[k / N][k % N]));
    Csr::from_entries(N, N, entries.filter(|&(_, _, v)| v != 0.0)).unwrap()
}

/// A + shift I.
fn shifted(a: &Csr<f64>, shift: f64) -> Csr<f64> {
    let mut a = a.clone();
    for i in 0..a.nrows() {
        let place = a.pattern().find(i, i).unwrap();
        a.values_mut()[place] += shift;
    }
    a
}

/// The pattern of A with other values above and below the diagonal.
fn skewed(a: &Csr<f64>, above: f64, below: f64) -> Csr<f64> {
    let mut skewed = a.clone();
    let pattern = a.pattern().clone();
    for i in 0..a.nrows() {
        for k in pattern.row_range(i) {
            let j = pattern.col_idx()[k] as usize;
            if i != j {
                skewed.values_mut()[k] = if j > i { above } else { below };
            }
        }
    }
    skewed
}

fn times(a: &Csr<f64>, x: &[f64]) -> Vec<f64> {
    let mut y = vec![0.0; a.nrows()];
    a.mul_vec(x, &mut y).unwrap();
    y
}

fn rhs(n: usize) -> Vec<f64> {
    (0..n).map(|i| ((i * 7919 % 1009) as f64 - 504.0) / 504.0).collect()
}

/// Whatever the report says is true of A, x and b.
fn check(a: &Csr<f64>, b: &[f64], x: &[f64], report: &Report, rtol: f64) {
    let reached = relative_residual(a, x, b);
    let bound = report.certificate.residual_bound.unwrap();
    let close = (reached - report.relative_residual).abs() <= bound - report.relative_residual;
    assert!(close, "{reached:e} {report}");
    if report.outcome == Outcome::Converged {
        assert!(reached <= rtol * (1.0 + 1e-12), "{reached:e} {report}");
    }
    let needs_proof = matches!(report.outcome, Outcome::Singular | Outcome::LeastSquares);
    assert!(!needs_proof || report.certificate.null_vector.is_some(), "{report}");
    if let Some(null) = &report.certificate.null_vector {
        // Aᵀy, each entry rounded once, against what rounding may leave of it.
        let transposed = a.transpose();
        let minus: Vec<f64> = null.y.iter().map(|y| -y).collect();
        let low = if null.y_low.is_empty() { vec![0.0; null.y.len()] } else { null.y_low.clone() };
        let high = residual(&transposed, &minus, &vec![0.0; a.ncols()]);
        let product: Vec<f64> = residual(&transposed, &low.iter().map(|y| -y).collect::<Vec<_>>(), &high);
        let (mut products, mut bounds) = (Vec::new(), Vec::new());
        for j in 0..a.ncols() {
            let (rows, values) = transposed.row(j);
            let size: f64 = rows.iter().zip(values).map(|(&i, v)| (v * null.y[i as usize]).abs()).sum();
            let gamma = (2 * rows.len() + 6) as f64 * f64::EPSILON;
            let largest = values.iter().fold(0.0, |largest: f64, v| largest.max(v.abs())).max(1e-300);
            products.push(product[j] / largest);
            bounds.push(gamma * size / largest);
        }
        match null.level {
            NullLevel::Exact => assert!(product.iter().all(|&v| v == 0.0), "{product:?}: {report}"),
            NullLevel::Rounding => assert!(norm(&products) <= norm(&bounds), "{products:?}: {report}"),
            _ => {}
        }
        let along: f64 =
            null.y.iter().zip(b).map(|(y, b)| y * b).sum::<f64>().abs() / norm(&null.y) / norm(b);
        assert!((along / null.least_residual - 1.0).abs() < 1e-6, "{along:e} {:e}", null.least_residual);
        assert!(report.outcome != Outcome::Singular || null.level == NullLevel::Exact);
    }
}

/// A transposed solve is judged by Aᵀ, whatever the symmetry of the matrix that was prepared.
#[test]
fn transposed_solves_of_another_matrix() {
    let a = problem("poisson2d:8");
    let c = skewed(&a, -1.9, -0.1);
    let (b, n) = (rhs(a.nrows()), a.nrows());
    for stale in [false, true] {
        let mut prepared = Solver::new().allow_stale_factor(stale).prepare(&a).unwrap();
        if !stale {
            prepared.refactor(&c).unwrap();
        }
        for matrix in [&c, &c, &a, &c] {
            if !stale && matrix == &a {
                continue;
            }
            let mut x = vec![0.0; n];
            let report = prepared.solve_transposed(matrix, &b, &mut x).unwrap();
            report.require_converged().unwrap();
            check(&matrix.transpose(), &b, &x, &report, 1e-8);
        }
    }
    let (a, m) = (problem("convection3d:6"), problem("poisson3d:6"));
    let b = rhs(a.nrows());
    let mut x = vec![0.0; a.nrows()];
    let prepared = Solver::new().method(Method::Gmres(50)).prepare_with(&a, &m).unwrap();
    let report = prepared.solve_transposed(&a, &b, &mut x).unwrap();
    report.require_converged().unwrap();
    check(&a.transpose(), &b, &x, &report, 1e-8);
}

/// The null space of one matrix is not that of another.
#[test]
fn null_spaces_of_another_matrix() {
    let a = problem("neumann2d:8");
    let n = a.nrows();
    let regular = shifted(&a, 1.0);
    let range = times(&a, &rhs(n));
    let part = 1.4e-7 * norm(&range) / (n as f64).sqrt();
    let nearly: Vec<f64> = range.iter().map(|b| b + part).collect();
    let prepared = Solver::new().preconditioner(PrecondSpec::none()).prepare(&a).unwrap();
    for b in [vec![1.0; n], nearly] {
        let mut x = vec![0.0; n];
        let report = prepared.solve(&regular, &b, &mut x).unwrap();
        report.require_converged().unwrap();
        check(&regular, &b, &x, &report, 1e-8);
        // And back.
        let mut x = vec![0.0; n];
        let report = prepared.solve(&a, &b, &mut x).unwrap();
        assert_eq!(report.outcome, Outcome::LeastSquares, "{report}");
        check(&a, &b, &x, &report, 1e-8);
    }
    for named in [NullSpace::Constant, NullSpace::vectors([vec![1.0; n]])] {
        let mut prepared = Solver::new().null_space(named).prepare(&a).unwrap();
        prepared.refactor(&regular).unwrap();
        let error = prepared.solve(&regular, &vec![1.0; n], &mut vec![0.0; n]).unwrap_err();
        assert!(matches!(error, SolveError::Option { name: "null_space", .. }), "{error}");
        prepared.refactor(&a).unwrap();
        let report = prepared.solve(&a, &vec![1.0; n], &mut vec![0.0; n]).unwrap();
        assert_eq!(report.outcome, Outcome::LeastSquares);
        report.require_converged().unwrap();
    }
}

/// `converged` is said of the caller's b. A part of b outside of the range that is larger than the tolerance makes x the least squares.
#[test]
fn b_is_not_changed() {
    let a = dense([[1.0, -1.0], [-1.0, 1.0]]);
    for (part, rtol, outcome) in [
        (9e-7, 1e-12, Outcome::LeastSquares),
        (9e-7, 1e-6, Outcome::Converged),
        (9e-7, 9.1e-7, Outcome::Converged),
        (9e-7, 8.9e-7, Outcome::LeastSquares),
        (1e-13, 1e-12, Outcome::Converged),
        (0.5, 1e-8, Outcome::LeastSquares),
    ] {
        let b = [1.0 + part, -1.0 + part];
        for named in [NullSpace::Auto, NullSpace::Constant] {
            let Solution { x, report } =
                Solver::new().rtol(rtol).null_space(named.clone()).solve(&a, &b).unwrap();
            assert_eq!(report.outcome, outcome, "{part:e} {rtol:e} {report}");
            check(&a, &b, &x, &report, rtol);
            assert!((x[0] - 0.5).abs() < 1e-6 && (x[1] + 0.5).abs() < 1e-6, "{x:?}");
            let is_answer = outcome == Outcome::Converged || named == NullSpace::Constant;
            assert_eq!(report.require_converged().is_ok(), is_answer);
            assert_eq!(report.is_answer(), is_answer);
            if outcome == Outcome::LeastSquares {
                assert!(report.projected_residual.unwrap() <= rtol.max(4e-16), "{report:?}");
            }
        }
    }
}

/// A ring of n points, with d on the diagonal.
fn ring(n: usize, d: f64) -> Csr<f64> {
    let entries = (0..n).flat_map(|i| [(i, i, d), (i, (i + 1) % n, -1.0), (i, (i + n - 1) % n, -1.0)]);
    Csr::from_entries(n, n, entries).unwrap()
}

/// x = 2⁴⁸ (1, 1) is exact, and so is x = 2^k 1 on a ring.
#[test]
fn solvable_systems_are_not_called_singular() {
    let named: [(Method, PrecondSpec); 7] = [
        (Method::Auto, PrecondSpec::auto()),
        (Method::Gmres(50), PrecondSpec::none()),
        (Method::Auto, PrecondSpec::lu()),
        (Method::Auto, PrecondSpec::ldlt()),
        (Method::BiCgStab, PrecondSpec::ilu(0)),
        (Method::Minres, PrecondSpec::none()),
        (Method::Cg, PrecondSpec::none()),
    ];
    for k in 20..=53 {
        let e = 2f64.powi(-k);
        for a in [dense([[1.0 + e, -1.0], [-1.0, 1.0 + e]]), ring(50, 2.0 + e)] {
            let b = vec![1.0; a.nrows()];
            let singular = times(&a, &b).iter().all(|v| *v == 0.0);
            for (method, preconditioner) in named {
                let solver = Solver::new().method(method).preconditioner(preconditioner);
                let Solution { x, report } = solver.solve(&a, &b).unwrap();
                let expected = if singular { Outcome::LeastSquares } else { Outcome::Converged };
                assert_eq!(report.outcome, expected, "2^-{k} {method} {preconditioner}: {report}");
                check(&a, &b, &x, &report, 1e-8);
            }
        }
    }
}

/// The least squares of small singular systems, beside their exact residual.
#[test]
fn least_squares_are_the_least() {
    let a = dense([[0.0, 0.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]);
    let Solution { x, report } = Solver::new().solve(&a, &[1.0; 3]).unwrap();
    assert_eq!(report.outcome, Outcome::LeastSquares, "{report}");
    check(&a, &[1.0; 3], &x, &report, 1e-8);
    assert!((report.relative_residual - 1.0 / 3f64.sqrt()).abs() < 1e-12, "{report}");
    // The first row empty, ones on the diagonal and before it.
    let n = 50;
    let entries = (1..n).flat_map(|i| [(i, i, 1.0), (i, i - 1, 1.0)]);
    let a = Csr::from_entries(n, n, entries).unwrap();
    let b = vec![1.0; n];
    let Solution { x, report } = Solver::new().solve(&a, &b).unwrap();
    assert_eq!(report.outcome, Outcome::LeastSquares, "{report}");
    check(&a, &b, &x, &report, 1e-8);
    assert!((report.relative_residual - 1.0 / 50f64.sqrt()).abs() < 1e-12, "{report}");
    // y = (1, 2, −1): the least residual is |yᵀb| / ‖y‖.
    let a = dense([[1.0, 2.0, 0.0], [0.0, 1.0, 3.0], [1.0, 4.0, 6.0]]);
    let b = [1.0, 1.0, 1.0];
    let Solution { x, report } = Solver::new().solve(&a, &b).unwrap();
    assert_eq!(report.outcome, Outcome::LeastSquares, "{report}");
    check(&a, &b, &x, &report, 1e-8);
    let least = 2.0 / 6f64.sqrt() / 3f64.sqrt();
    assert!((report.relative_residual / least - 1.0).abs() < 1e-12, "{report}");
}

/// A vector is a null vector only where A z is rounding.
#[test]
fn what_is_nearly_a_null_vector_is_refused() {
    let n = 60;
    let neumann = |shift: f64| {
        let degree = |i: usize| if i == 0 || i == n - 1 { 1.0 } else { 2.0 };
        let off = |i: usize| [i.checked_sub(1), Some(i + 1).filter(|&j| j < n)].into_iter().flatten();
        let entries = (0..n).flat_map(|i| {
            off(i).map(move |j| (i, j, -1.0)).chain([(i, i, degree(i) + shift)]).collect::<Vec<_>>()
        });
        Csr::from_entries(n, n, entries).unwrap()
    };
    for shift in [1e-9, 1e-10, 4e-9] {
        let (a, b) = (neumann(shift), rhs(n));
        let solver = Solver::new().null_space(NullSpace::vectors([vec![1.0; n]]));
        let error = solver.solve(&a, &b).unwrap_err();
        assert!(error.to_string().contains("where rounding leaves"), "{error}");
        let Solution { x, report } = Solver::new().solve(&a, &b).unwrap();
        check(&a, &b, &x, &report, 1e-8);
    }
    let solver = Solver::new().null_space(NullSpace::vectors([vec![1.0; n]]));
    assert_eq!(solver.solve(&neumann(0.0), &rhs(n)).unwrap().report.outcome, Outcome::LeastSquares);
}

/// A = u vᵀ with small integers: the least squares have the residual b − u (uᵀb) / (uᵀu), and the least of them is along v.
#[test]
fn least_squares_of_rank_one() {
    let mut random = Random(7);
    for _ in 0..200 {
        let n = 2 + random.below(5);
        let mut integers = |zero: bool| -> Vec<f64> {
            let mut v: Vec<f64> = (0..n).map(|_| (3.0 * random.number()).round()).collect();
            if zero && v.iter().all(|&v| v == 0.0) {
                v[0] = 1.0;
            }
            v
        };
        let (u, v, b) = (integers(true), integers(true), integers(true));
        let entries = (0..n * n).map(|k| (k / n, k % n, u[k / n] * v[k % n]));
        let a = Csr::from_entries(n, n, entries.filter(|&(_, _, v)| v != 0.0)).unwrap();
        let along = |y: &[f64], z: &[f64]| y.iter().zip(z).map(|(y, z)| y * z).sum::<f64>();
        let factor = along(&u, &b) / along(&u, &u);
        let square = along(&v, &v);
        let least: Vec<f64> = b.iter().zip(&u).map(|(b, u)| b - factor * u).collect();
        let least = norm(&least) / norm(&b);
        let Solution { x, report } = Solver::new().solve(&a, &b).unwrap();
        check(&a, &b, &x, &report, 1e-8);
        let expected = if least < 1e-8 { Outcome::Converged } else { Outcome::LeastSquares };
        assert_eq!(report.outcome, expected, "{u:?} {v:?} {b:?}: {report}");
        assert!(report.relative_residual <= least + 1e-8, "{u:?} {v:?} {b:?}: {report} {least}");
        // x = v (uᵀb) / (uᵀu) / (vᵀv)
        let shortest: Vec<f64> = v.iter().map(|v| v * factor / square).collect();
        let off: Vec<f64> = x.iter().zip(&shortest).map(|(x, s)| x - s).collect();
        let is_shortest = norm(&off) <= 1e-6 * (1.0 + norm(&shortest));
        assert!(expected == Outcome::Converged || is_shortest, "{u:?} {v:?} {b:?}: {x:?} {shortest:?}");
    }
}
