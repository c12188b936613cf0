//! What is said of a system is true of the matrix and the right-hand side of this call: nothing that was found for an earlier matrix decides, and no b is
//! changed. Answers are judged by arithmetic without rounding errors.

use crate::exact::{Random, norm, relative_residual, residual};
use krylith::gallery::Problem;
use krylith::report::NullLevel;
use krylith::report::advice::Advice;
use krylith::{
    Csr, Method, NullSpace, Outcome, Precision, PrecondSpec, Report, Solution, SolveError, Solver,
};

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
    let is_met = reached <= rtol / 2.0;
    assert!(!is_met || matches!(report.outcome, Outcome::Converged | Outcome::Interrupted), "{report}");
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

/// A ring of n points, with these values on the diagonal and beside it.
fn ring(n: usize, [d, off]: [f64; 2]) -> Csr<f64> {
    let entries = (0..n).flat_map(|i| [(i, i, d), (i, (i + 1) % n, off), (i, (i + n - 1) % n, off)]);
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
        // The second of each pair is the first with every other unknown and equation negated.
        let pair = |off: f64| dense([[1.0 + e, off], [off, 1.0 + e]]);
        for (a, sign) in [
            (pair(-1.0), 1.0),
            (pair(1.0), -1.0),
            (ring(50, [2.0 + e, -1.0]), 1.0),
            (ring(50, [2.0 + e, 1.0]), -1.0),
        ] {
            let b: Vec<f64> = (0..a.nrows()).map(|i| if i % 2 == 0 { 1.0 } else { sign }).collect();
            let singular = times(&a, &b).iter().all(|v| *v == 0.0);
            for (method, preconditioner) in named.clone() {
                let solver = Solver::new().method(method).preconditioner(preconditioner.clone());
                let Solution { x, report } = solver.solve(&a, &b).unwrap();
                let expected = if singular { Outcome::LeastSquares } else { Outcome::Converged };
                // Constants are tried by all methods, other vectors where a proof was looked for.
                let may_end = sign < 0.0 && !singular && method != Method::Auto && method != Method::Cg;
                let at_limit = may_end && report.outcome == Outcome::AttainableAccuracy;
                assert!(at_limit || report.outcome == expected, "2^-{k} {method} {preconditioner}: {report}");
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

/// The method ends beside the answer, because a multiple of the null vector takes the digits of x; without it x is exact.
#[test]
fn an_answer_that_its_null_vectors_had_hidden() {
    // u vᵀ, its zeros among the entries.
    let (u, v) = ([3.0, 2.0, 1.0, 0.0], [-3.0, 2.0, 2.0, -1.0]);
    let a = Csr::from_entries(4, 4, (0..16).map(|k| (k / 4, k % 4, u[k / 4] * v[k % 4]))).unwrap();
    let b = [-24.0, -16.0, -8.0, 0.0];
    let start = [9.052570219496164e9, 4.834057349372211e9, 7.333181718198055e9, -9.46301239324895e9];
    let solver = Solver::new()
        .method(Method::Gmres(1))
        .preconditioner(PrecondSpec::ldlt())
        .precision(Precision::F32)
        .null_space(NullSpace::Constant)
        .rtol(1e-14)
        .max_iterations(300);
    // How much of the residual is the rounding of large null vectors is chance.
    let mut answers = 0;
    for k in 0..40 {
        let mut x = start.iter().map(|v| v * (1.0 + 1e-5 * f64::from(k))).collect::<Vec<_>>();
        let report = solver.solve_from(&a, &b, &mut x).unwrap();
        check(&a, &b, &x, &report, 1e-14);
        answers += usize::from(report.outcome == Outcome::Converged);
    }
    assert!(answers > 4, "{answers}");
}

/// Products that underflow are no proof: A is regular, and well-conditioned.
#[test]
fn underflow_is_no_proof() {
    let v = 2f64.powi(-900);
    let a = dense([[2.0 * v, v], [v, 3.0 * v]]);
    let b = [2f64.powi(-190), 0.0];
    let solver = Solver::new().method(Method::BiCgStab).preconditioner(PrecondSpec::none());
    for iterations in [1, 2, 100] {
        let report = solver.clone().max_iterations(iterations).solve(&a, &b).unwrap().report;
        assert!(!matches!(report.outcome, Outcome::LeastSquares | Outcome::Singular), "{report}");
    }
}

/// The outcome of a Neumann problem does not depend on the power of ten in front of b.
#[test]
fn scales_of_b_do_not_matter() {
    let a = problem("neumann2d:12");
    let n = a.nrows();
    let range = times(&a, &rhs(n));
    for (part, outcome) in [(0.9e-6, Outcome::Converged), (1.0, Outcome::LeastSquares)] {
        let constant = part * norm(&range) / (n as f64).sqrt();
        let b: Vec<f64> = range.iter().map(|b| b + constant).collect();
        for exponent in [-540, -520, -500, 0, 300, 530] {
            let power = 2f64.powi(exponent);
            let b: Vec<f64> = b.iter().map(|b| power * b).collect();
            let solver = Solver::new().method(Method::Cg).preconditioner(PrecondSpec::jacobi()).rtol(1e-6);
            let Solution { x, report } = solver.solve(&a, &b).unwrap();
            assert_eq!(report.outcome, outcome, "2^{exponent} {part}: {report}");
            let back: Vec<f64> = x.iter().map(|x| x / power).collect();
            assert!(back.iter().any(|&x| x.abs() > 0.1), "2^{exponent} {part}: {report}");
        }
    }
}

/// x = (½, −½) meets this tolerance exactly: r = (½, ½), ‖r‖² = ½ ≤ rtol² ‖b‖² by rational arithmetic.
#[test]
fn a_tolerance_that_is_just_met_is_no_proof() {
    let a = dense([[1.0, -1.0], [-1.0, 1.0]]);
    let solver = Solver::new().rtol(0.447_213_595_499_958_04);
    for named in [NullSpace::Auto, NullSpace::Constant, NullSpace::Ignore] {
        let report = solver.clone().null_space(named).solve(&a, &[1.5, -0.5]).unwrap().report;
        assert!(!matches!(report.outcome, Outcome::LeastSquares | Outcome::Singular), "{report}");
    }
}

/// The columns (1, 1, 0) and (1, 1 + 10⁻⁹, 0) are independent: x₁ and x₂ of the least squares are 0 and 1.
#[test]
fn least_norm_takes_null_vectors_only() {
    let e = 1.0 + 1e-9;
    let a = dense([[1.0, 1.0, 0.0], [1.0, e, 0.0], [0.0, 0.0, 0.0]]);
    let b = [1.0, e, 1.0];
    let Solution { x, report } = Solver::new().rtol(1e-14).solve(&a, &b).unwrap();
    check(&a, &b, &x, &report, 1e-14);
    assert_eq!(report.outcome, Outcome::LeastSquares);
    assert!(x[0].abs() < 1e-4 && (x[1] - 1.0).abs() < 1e-4, "{x:?}");
    let report = Solver::new().solve(&a, &b).unwrap().report;
    assert!(report.projected_residual.unwrap() < 1e-10, "{report}");
}

/// A criterion of the caller's that the component of b outside of the range of A exceeds is neither met nor at the accuracy of the arithmetic.
#[test]
fn own_criteria_of_singular_systems() {
    let a = dense([[1.0, -1.0], [-1.0, 1.0]]);
    let b = [1.0 + 1e-10, -1.0 + 1e-10];
    let prepared = Solver::new().prepare(&a).unwrap();
    let mut tight = |at: &krylith::observe::Iteration<f64>| at.residual_norm < 1e-12 * at.rhs_norm;
    let report = prepared.solve_until(&a, &b, &mut [0.0; 2], &mut tight).unwrap();
    assert!(!matches!(report.outcome, Outcome::Converged | Outcome::AttainableAccuracy), "{report}");
    let mut loose = |at: &krylith::observe::Iteration<f64>| at.residual_norm < 1e-9 * at.rhs_norm;
    let report = prepared.solve_until(&a, &b, &mut [0.0; 2], &mut loose).unwrap();
    assert_eq!(report.outcome, Outcome::Converged, "{report}");
}

/// The null space that is named is that of A, in solves with Aᵀ too: it is what Aᵀx is orthogonal to.
#[test]
fn named_null_spaces_and_transposed_solves() {
    let a = dense([[1.0, -1.0], [2.0, -2.0]]);
    let prepared = Solver::new().null_space(NullSpace::Constant).prepare(&a).unwrap();
    let transposed = a.transpose();
    // Aᵀ(x₁, x₂) = (x₁ + 2 x₂) (1, −1)
    for (b, outcome) in [([1.0, -1.0], Outcome::Converged), ([1.0, 0.0], Outcome::LeastSquares)] {
        let mut x = [0.0; 2];
        let report = prepared.solve_transposed(&a, &b, &mut x).unwrap();
        check(&transposed, &b, &x, &report, 1e-8);
        assert_eq!(report.outcome, outcome, "{report}");
        assert!(report.is_answer(), "{report}");
    }
    let mut x = [0.0; 2];
    assert!(prepared.solve(&a, &[1.0, 2.0], &mut x).unwrap().is_answer());
    // Constants are no null vectors of this A, though they are of its transpose.
    let other = Solver::new().null_space(NullSpace::Constant).prepare(&transposed);
    assert!(matches!(other, Err(SolveError::Option { name: "null_space", .. })));
}

/// What the report says of facts is about the A that was solved with.
#[test]
fn facts_of_another_matrix_are_not_reported() {
    let a = dense([[1.0, 1.0], [0.0, 0.0]]);
    let other = dense([[1.0, -1.0], [-1.0, 1.0]]);
    let prepared = Solver::new().preconditioner(PrecondSpec::none()).prepare(&a).unwrap();
    let ones = [1.0, 1.0];
    let own = prepared.solve(&a, &ones, &mut [0.0; 2]).unwrap();
    assert!(own.plan.facts.is_some() && own.advice()[0] == Advice::CheckMatrix { rank: 1, rows: 2 });
    let report = prepared.solve(&other, &ones, &mut [0.0; 2]).unwrap();
    assert_eq!(report.outcome, Outcome::LeastSquares, "{report}");
    assert!(report.plan.facts.is_none() && report.advice().contains(&Advice::CheckRhs));
}

/// A shifted factor of a matrix with an empty column gives an x whose entry there is huge. Making x orthogonal to constants, which A annihilates as well, spreads that entry over
/// the others, and then x is no longer the least squares.
#[test]
fn least_squares_beside_an_empty_column() {
    let v = 2.037035976334486e90;
    let row = [v, v, 0.0, -v, -v];
    let minus = row.map(|v| -v);
    let a = dense([row, [0.0; 5], minus, minus, minus]);
    let b =
        [-0.603871652461941, 0.6401017997314935, 0.7662732747809211, 0.9795709189503191, -0.2904802311025047];
    let solver = Solver::new().method(Method::Gmres(30)).preconditioner("dilu".parse().unwrap()).rtol(1e-10);
    for precision in [Precision::F64, Precision::Mixed] {
        let Solution { x, report } = solver.clone().precision(precision).solve(&a, &b).unwrap();
        check(&a, &b, &x, &report, 1e-10);
        assert_eq!(report.outcome, Outcome::LeastSquares, "{report}");
        assert!(report.projected_residual.unwrap() <= 1e-10, "{report}");
    }
}

/// An entry of the guess that only zeros meet is huge. Spread over the other entries, to make x orthogonal to constants, it hides their residual behind its rounding.
#[test]
fn a_guess_that_is_huge_beside_zeros() {
    let (t, v) = (7.841544414492233e-36, 8.143125285885869e-2);
    let entries = [(0, 0, 0.0), (1, 1, -t), (1, 2, t), (2, 0, 0.0), (2, 1, v), (2, 2, -v), (3, 3, 0.0)];
    let a = Csr::from_entries(4, 4, entries).unwrap();
    let b = [-8.330873371625134e-1, 5.825380798958216e-1, 8.610034475452738e-1, 3.4066072e-1];
    let mut x =
        [3.968633979727894e149, -4.351285437631603e-22, -5.119324502681728e-52, 9.713076173205028e-12];
    let solver = Solver::new().method(Method::Gmres(1)).preconditioner("fsai".parse().unwrap()).rtol(1e-14);
    let prepared = solver.prepare(&a).unwrap();
    let report = prepared.solve(&a, &b, &mut x).unwrap();
    let reached = relative_residual(&a, &x, &b);
    assert!((reached - report.relative_residual).abs() < 1e-10, "{x:?} {reached:e} {report:?}");
}
