//! Every preconditioner by name, in every order: the answer is that of A, the same bits on any number of threads, and a sequence
//! of matrices keeps what was analyzed.

use krylith::gallery::Problem;
use krylith::precond::registry::{Construction, Suits, preconditioners};
use krylith::transform::Ordering;
use krylith::{Csr, Layout, MatchingMode, Method, Permutation, Precision, PrecondSpec, Report, Solver};

fn problem(name: &str) -> Csr<f64> {
    name.parse::<Problem>().unwrap().generate().unwrap()
}

fn right_hand_side(n: usize) -> Vec<f64> {
    (0..n).map(|i| 1.0 + (i as f64 * 0.7).sin()).collect()
}

fn residual(a: &Csr<f64>, x: &[f64], b: &[f64]) -> f64 {
    let mut r = vec![0.0; b.len()];
    a.mul_vec(x, &mut r).unwrap();
    let norm = |v: &mut dyn Iterator<Item = f64>| v.map(|v| v * v).sum::<f64>().sqrt();
    norm(&mut r.iter().zip(b).map(|(r, b)| b - r)) / norm(&mut b.iter().copied())
}

/// Every preconditioner of the registry by the names to try it with.
fn names() -> impl Iterator<Item = &'static str> {
    let real = preconditioners().iter().filter(|info| info.name != "auto" && info.name != "none");
    real.flat_map(|info| info.examples.iter().copied())
}

fn spec(name: &str) -> PrecondSpec {
    name.parse().unwrap()
}

/// A factor of any matrix.
fn is_lu(name: &str) -> bool {
    let info = spec(name).info();
    info.matrices == Suits::Any && !info.symmetric
}

fn is_in_blocks(name: &str) -> bool {
    matches!(spec(name).construct(), Construction::Blocks(..))
}

/// All names with the method and the matrix they are for.
fn members() -> Vec<(&'static str, Method, Csr<f64>)> {
    let (spd, general) = (problem("jump3d:7"), problem("convection3d:7"));
    let (solid, flow) = (problem("elasticity3d:3"), problem("euler3d:4"));
    let member = |name| match (is_lu(name), is_in_blocks(name)) {
        (false, false) => (name, Method::Cg, spd.clone()),
        (true, false) => (name, Method::Gmres(30), general.clone()),
        (false, true) => (name, Method::Cg, solid.clone()),
        (true, true) if name.contains("(3)") => (name, Method::Gmres(30), solid.clone()),
        (true, true) => (name, Method::Gmres(30), flow.clone()),
    };
    names().map(member).collect()
}

fn solver(name: &str, method: Method) -> Solver {
    Solver::new().method(method).preconditioner(name.parse().unwrap())
}

fn solve(solver: &Solver, a: &Csr<f64>) -> (Vec<f64>, Report) {
    let b = right_hand_side(a.nrows());
    let solution = solver.solve(a, &b).unwrap();
    let report = solution.report;
    assert!(report.require_converged().is_ok(), "{} {:?}", report.preconditioner, report.outcome);
    assert!(residual(a, &solution.x, &b) <= 1.0000001e-8, "{}", report.preconditioner);
    (solution.x, report)
}

#[test]
fn every_member_has_the_same_bits_on_any_number_of_threads() {
    for (name, method, a) in members() {
        for precision in [Precision::F64, Precision::Mixed] {
            let solver = solver(name, method).precision(precision).reorder(Ordering::Rcm);
            let (expected, report) = solve(&solver.clone().threads(1), &a);
            assert_eq!(report.preconditioner, name);
            for threads in [2, 3, 8] {
                let (x, again) = solve(&solver.clone().threads(threads), &a);
                assert_eq!((x == expected, again.iterations), (true, report.iterations), "{name} {threads}");
            }
        }
    }
}

/// Whatever the outcome: a preconditioner that was asked for is there, or an entry of `recovery` says why not.
#[test]
fn every_method_runs_with_the_preconditioner_that_was_asked_for() {
    let a = problem("elasticity3d:2");
    let b = right_hand_side(a.nrows());
    let methods =
        [Method::Auto, Method::Cg, Method::BiCgStab, Method::Gmres(9), Method::Fgmres(9), Method::Minres];
    // Blocks of five unknowns do not fit this matrix.
    for name in names().filter(|name| !name.contains("(5)")).chain(["none"]) {
        for method in methods {
            for layout in [Layout::Auto, Layout::Slices, Layout::Rows] {
                let solver = solver(name, method).layout(layout).max_iterations(3).threads(2);
                let report = solver.solve(&a, &b).unwrap().report;
                let replaced = report.recovery.iter().any(|r| r.action.ends_with("with none"));
                let expected = if replaced { "none" } else { name };
                assert_eq!(report.preconditioner, expected, "{method} {:?}", report.recovery);
                assert_eq!(report.preconditioner_nnz > 0, expected != "none", "{method} {name}");
                assert!(method == Method::Auto || !replaced, "{method} {name}");
                assert!(method == Method::Auto || report.solver == method.to_string());
            }
        }
    }
}

/// Factors in f32 cost a few iterations at most and half of the bytes of entries.
#[test]
fn narrow_factors_are_smaller_and_as_good() {
    for (name, method, a) in members() {
        for layout in [Layout::Auto, Layout::Rows] {
            let solver = solver(name, method).layout(layout).threads(2);
            let (_, wide) = solve(&solver, &a);
            let (_, narrow) = solve(&solver.clone().precision(Precision::Mixed), &a);
            assert!(narrow.iterations <= wide.iterations + 1 + wide.iterations / 20, "{name}");
            // Blocks are stored in f64 so far.
            if spec(name).incomplete().is_some()
                || matches!(spec(name).construct(), Construction::Threshold(_))
            {
                assert!(narrow.preconditioner_bytes < wide.preconditioner_bytes, "{name}");
            }
        }
    }
}

#[test]
fn any_order_gives_the_answer_of_the_matrix() {
    for (name, method, a) in members() {
        let expected = solve(&solver(name, method).rtol(1e-12).threads(2), &a).0;
        for ordering in [Ordering::Rcm, Ordering::Amd, Ordering::Colouring] {
            for matching in [MatchingMode::Off, MatchingMode::On] {
                let solver = solver(name, method).rtol(1e-12).threads(2).reorder(ordering).matching(matching);
                let (x, report) = solve(&solver, &a);
                assert!(report.ordering.contains(&ordering.to_string()), "{}", report.ordering);
                for (x, expected) in x.iter().zip(&expected) {
                    assert!((x - expected).abs() <= 1e-8 * expected.abs().max(1.0), "{name} {ordering}");
                }
            }
        }
    }
}

/// A matrix whose large entries are far from the diagonal is solved because they are brought there.
#[test]
fn a_matching_finds_the_diagonal() {
    let a = problem("convection3d:8");
    let n = a.nrows();
    let shuffle = Permutation::new((0..n as u32).map(|i| (i * 389 + 17) % n as u32).collect()).unwrap();
    let shuffled = a.view().permute(&Permutation::identity(n).unwrap(), &shuffle).unwrap();
    for name in names().filter(|name| is_lu(name) && !is_in_blocks(name)) {
        let (_, report) = solve(&solver(name, Method::Gmres(50)).threads(2), &shuffled);
        // A complete factor matches columns itself.
        let matched = report.ordering.starts_with("columns by a maximum-product matching");
        assert_eq!(matched, name != "lu", "{name}: {}", report.ordering);
        assert!(report.iterations < 60 && report.recovery.is_empty(), "{name}: {:?}", report.recovery);
    }
    let b = right_hand_side(n);
    let without = solver("ilu0", Method::Gmres(50)).matching(MatchingMode::Off).max_iterations(100);
    assert!(without.solve(&shuffled, &b).unwrap().report.require_converged().is_err());
    // A structurally singular matrix keeps its columns, and says so.
    let hole = Csr::from_triplets(3, 3, &[0, 1, 1, 2], &[0, 0, 1, 1], &[1.0, 1.0, 2.0, 1.0]).unwrap();
    let report = solver("ilu0", Method::Gmres(3)).solve(&hole, &[1.0, 3.0, 1.0]).unwrap().report;
    assert!(report.recovery[0].failed.contains("structurally singular"), "{:?}", report.recovery);
    assert_eq!(report.recovery[0].row, Some(2));
}

/// Patterns found from the first matrix serve all matrices of a sequence, in any order.
#[test]
fn a_sequence_keeps_what_was_analyzed() {
    for (name, method, a) in members() {
        for ordering in [Ordering::Natural, Ordering::Rcm] {
            let mut a = a.clone();
            let b = right_hand_side(a.nrows());
            let mut x = vec![0.0; a.nrows()];
            let mut prepared = solver(name, method).threads(2).reorder(ordering).prepare(&a).unwrap();
            let first = prepared.solve(&a, &b, &mut x).unwrap();
            for step in 1..4 {
                for i in 0..a.nrows() {
                    let place = a.pattern().find(i, i).unwrap();
                    a.values_mut()[place] *= 1.0 + 0.1 * f64::from(step) * (1.0 + (i as f64).sin());
                }
                prepared.refactor(&a).unwrap();
                x.fill(0.0);
                let report = prepared.solve(&a, &b, &mut x).unwrap();
                assert!(report.require_converged().is_ok() && residual(&a, &x, &b) < 1.0000001e-8, "{name}");
                assert!(
                    report.iterations <= first.iterations + 3,
                    "{name}: {} {}",
                    report.iterations,
                    first.iterations
                );
            }
        }
    }
}

/// IC(0) of a matrix of full blocks is taken in blocks by itself: the same factor.
#[test]
fn full_blocks_are_found() {
    let a = problem("elasticity3d:5");
    let ic0 = solver("ic0", Method::Cg).threads(2);
    let (_, blocks) = solve(&ic0, &a);
    let (_, rows) = solve(&ic0.clone().layout(Layout::Rows), &a);
    assert!(blocks.layout.starts_with("dense blocks of 3 x 3"), "{}", blocks.layout);
    assert_eq!(blocks.preconditioner, "ic0");
    assert!(blocks.iterations.abs_diff(rows.iterations) <= 1);
    assert!((blocks.shift - rows.shift).abs() < 1e-12, "{} {}", blocks.shift, rows.shift);
    let wrong = solver("bic0(2)", Method::Cg).solve(&a, &right_hand_side(a.nrows()));
    let why = wrong.unwrap_err().to_string();
    assert!(why.contains("375 rows") && why.contains("block size 2"), "{why}");
}

/// A matrix of another pattern is refused in any order, also if it has as many entries.
#[test]
fn another_pattern_is_refused() {
    let a = problem("poisson2d:6");
    let n = a.nrows();
    let shift = Permutation::new((0..n as u32).map(|i| (i + 1) % n as u32).collect()).unwrap();
    let other = a.view().permute_symmetric(&shift).unwrap();
    for (ordering, name) in [
        (Ordering::Natural, "ic0"),
        (Ordering::Natural, "learned(1)"),
        (Ordering::Rcm, "ic0"),
        (Ordering::Rcm, "ict(0.01)"),
    ] {
        let mut prepared = solver(name, Method::Cg).threads(1).reorder(ordering).prepare(&a).unwrap();
        assert_eq!(prepared.refactor(&other), Err(krylith::SetupError::PatternChanged), "{ordering} {name}");
    }
}

/// Entries of A that have no partner across the diagonal stay in the product.
#[test]
fn a_pattern_that_is_not_symmetric_is_multiplied_as_it_is() {
    let spd = problem("poisson2d:60");
    let n = spd.nrows();
    let (mut rows, mut columns, mut values) = (vec![59], vec![60], vec![0.125]);
    for i in 0..n {
        for (&j, &v) in spd.row(i).0.iter().zip(spd.row(i).1).filter(|(j, _)| **j as usize <= i) {
            rows.push(i as u32);
            columns.push(j);
            values.push(v);
        }
    }
    let a = Csr::from_triplets(n, n, &rows, &columns, &values).unwrap();
    for name in ["ilu0", "ilu(1)", "milu(1,0.9)", "jacobi"] {
        let _ = solve(&solver(name, Method::BiCgStab).threads(2), &a);
    }
}

#[test]
fn rows_in_recovery_are_those_of_the_matrix() {
    let mut a = problem("poisson2d:8");
    let place = a.pattern().find(40, 40).unwrap();
    a.values_mut()[place] = -5.0;
    for ordering in [Ordering::Natural, Ordering::Rcm, Ordering::Amd] {
        let options = solver("ic0", Method::Minres).reorder(ordering).threads(1);
        let report = options.solve(&a, &right_hand_side(a.nrows())).unwrap().report;
        let row = report.recovery[0].row.unwrap();
        assert_eq!(row, 40, "{ordering}");
        assert!(report.recovery[0].failed.contains(&format!("row {row}")));
        let refused = options.recover(false).solve(&a, &right_hand_side(a.nrows()));
        assert!(refused.unwrap_err().to_string().contains("in row 40"));
    }
}

#[test]
fn after_a_failed_refactor_there_is_no_factor() {
    let good = problem("poisson2d:8");
    let mut bad = good.clone();
    bad.values_mut().fill(f64::NAN);
    let b = right_hand_side(good.nrows());
    let mut x = vec![0.0; b.len()];
    let mut prepared = solver("ic0", Method::Cg).threads(1).prepare(&good).unwrap();
    for _ in 0..2 {
        assert!(prepared.refactor(&bad).is_err());
        let refused = prepared.solve(&good, &b, &mut x);
        assert_eq!(refused.map(|_| ()), Err(krylith::SolveError::StaleFactor));
    }
    prepared.refactor(&good).unwrap();
    prepared.solve(&good, &b, &mut x).unwrap().require_converged().unwrap();
}

/// What does not fit f32 stays in f64.
#[test]
fn very_small_and_very_large_matrices_keep_wide_factors() {
    for size in [1e-46, 1e39] {
        let mut a = problem("poisson3d:8");
        a.values_mut().iter_mut().for_each(|v| *v *= size);
        for name in ["ic0", "ict(0.01)"] {
            let wide = solve(&solver(name, Method::Cg).threads(1), &a).1;
            let narrow = solve(&solver(name, Method::Cg).threads(1).precision(Precision::Mixed), &a).1;
            assert_eq!(wide.iterations, narrow.iterations);
            assert_eq!(narrow.recovery.len(), usize::from(name == "ic0"));
        }
    }
}

/// Levels beyond all bounds end soon, whatever they end in.
#[test]
fn levels_beyond_all_bounds_end() {
    let a = problem("poisson3d:20");
    let (_, report) = solve(&solver("ic(1000000000000)", Method::Cg), &a);
    assert!(report.recovery.len() <= 40, "{}", report.recovery.len());
    let refused =
        solver("bilu0(8)", Method::BiCgStab).max_factor_bytes(1 << 20).solve(&a, &right_hand_side(8000));
    assert!(refused.unwrap_err().to_string().contains("more than the limit"));
}
