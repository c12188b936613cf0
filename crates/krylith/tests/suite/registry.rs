//! Preconditioners through the registry: SSOR, the worked example of CONTRIBUTING, in every storage; and a recipe of the caller's.

use krylith::gallery::Problem;
use krylith::operator::{Given, LinearOperator, Recipe, Symbolic};
use krylith::precond::{Incomplete, IncompleteSymbolic};
use krylith::schedule::Schedule;
use krylith::space::Threads;
use krylith::transform::Ordering;
use krylith::{Csr, Layout, MatchingMode, Method, Precision, PrecondSpec, SetupError, SolveError, Solver};
use std::sync::{Arc, Mutex};

fn problem(name: &str) -> Csr<f64> {
    name.parse::<Problem>().unwrap().generate().unwrap()
}

/// A = [4 1; 2 3] and ω = 3/2: (D/ω + L) (D/ω)⁻¹ (D/ω + U) = [8/3 1; 2 11/4] by hand.
#[test]
fn ssor_by_hand() {
    let a = Csr::from_triplets(2, 2, &[0, 0, 1, 1], &[0, 1, 0, 1], &[4.0, 1.0, 2.0, 3.0]).unwrap();
    let space = Threads::new(1);
    let recipe = PrecondSpec::ssor(1.5).incomplete().unwrap();
    let m = recipe.analyze(&space, &a).unwrap().factor(&space, &a).unwrap();
    for (column, image) in [([1.0, 0.0], [8.0 / 3.0, 2.0]), ([0.0, 1.0], [1.0, 2.75])] {
        let mut z: Vec<f64> = vec![0.0; 2];
        m.apply(&space, &image.to_vec(), &mut z, &mut m.scratch(&space).unwrap()).unwrap();
        assert!((z[0] - column[0]).abs() < 1e-15 && (z[1] - column[1]).abs() < 1e-15, "{z:?}");
    }
}

/// One name, one algorithm: on the grid, in slices and by rows the iterations are those of the same M.
#[test]
fn ssor_runs_in_every_storage() {
    let a = problem("jump3d:20");
    let b = vec![1.0; a.nrows()];
    let mut found = Vec::new();
    for (layout, words) in [
        (Layout::Auto, "structured: "),
        (Layout::Slices, "rows by wavefront in slices"),
        (Layout::Rows, "rows as given"),
    ] {
        for precision in [Precision::F64, Precision::Mixed] {
            let solver = Solver::new().method(Method::Cg).preconditioner(PrecondSpec::ssor(1.3));
            let solver = solver.layout(layout).precision(precision);
            let one = solver.clone().threads(1).solve(&a, &b).unwrap();
            let two = solver.threads(2).solve(&a, &b).unwrap();
            one.report.require_converged().unwrap();
            assert!(one.report.layout.starts_with(words), "{}", one.report.layout);
            assert!(one.x == two.x, "{words}");
            assert_eq!(one.report.recovery, []);
            let trick = one.report.layout.contains("Eisenstat's trick");
            assert_eq!(trick, (layout, precision) == (Layout::Auto, Precision::F64));
            found.push(one.report.iterations);
        }
    }
    assert!(found.iter().max().unwrap() - found.iter().min().unwrap() <= 1, "{found:?}");
    let jacobi =
        Solver::new().method(Method::Cg).preconditioner(PrecondSpec::jacobi()).solve(&a, &b).unwrap();
    assert!(2 * found[0] < jacobi.report.iterations, "{} {}", found[0], jacobi.report.iterations);
}

/// A zero on the diagonal is a bad pivot here as for every factor, and is shifted.
#[test]
fn ssor_recovers_from_a_zero_on_the_diagonal() {
    let mut a = problem("poisson2d:20");
    let place = a.pattern().find(7, 7).unwrap();
    a.values_mut()[place] = 0.0;
    let solver = Solver::new().method(Method::Gmres(50)).preconditioner(PrecondSpec::ssor(1.0));
    for layout in [Layout::Auto, Layout::Slices, Layout::Rows] {
        let report = solver.clone().layout(layout).solve(&a, &vec![1.0; a.nrows()]).unwrap().report;
        report.require_converged().unwrap();
        assert_eq!((report.recovery[0].row, report.preconditioner.as_str()), (Some(7), "ssor"));
        assert!(report.shift > 0.0);
    }
}

#[path = "../../examples/own_preconditioner.rs"]
#[allow(dead_code, reason = "the example's `main` runs elsewhere")]
mod example;

use example::Neumann;

#[test]
fn a_recipe_of_the_callers_goes_the_same_way() {
    let mut a = problem("poisson2d:30");
    let b = vec![1.0; a.nrows()];
    let jacobi = Solver::new().preconditioner(PrecondSpec::jacobi()).solve(&a, &b).unwrap().report;
    for ordering in [Ordering::Natural, Ordering::Rcm] {
        let solver = Solver::new().own_preconditioner("neumann", Neumann).reorder(ordering);
        let mut prepared = solver.prepare(&a).unwrap();
        let mut x = vec![0.0; b.len()];
        for _ in 0..2 {
            x.fill(0.0);
            let report = prepared.solve(&a, &b, &mut x).unwrap();
            report.require_converged().unwrap();
            assert_eq!((report.preconditioner.as_str(), report.solver.as_str()), ("neumann", "cg"));
            assert!(report.iterations < jacobi.iterations && report.preconditioner_bytes > 0);
            a.values_mut().iter_mut().for_each(|v| *v *= 1.1);
            assert!(prepared.solve(&a, &b, &mut x).is_err());
            prepared.refactor(&a).unwrap();
        }
        let place = a.pattern().find(40, 40).unwrap();
        let mut bad = a.clone();
        bad.values_mut()[place] = 0.0;
        let solver = solver.method(Method::Gmres(30)).matching(MatchingMode::Off);
        let report = solver.solve(&bad, &b).unwrap().report;
        assert_eq!((report.recovery[0].row, report.preconditioner.as_str()), (Some(40), "jacobi"));
        assert!(report.recovery[0].failed.starts_with("neumann: bad pivot"), "{:?}", report.recovery);
    }
}

/// IC(0) as a recipe of the caller's that keeps what it is given.
struct Watched(Arc<Mutex<Vec<(f64, Schedule)>>>);

impl Recipe<Threads<f64>, Csr<f64>> for Watched {
    type Symbolic = IncompleteSymbolic;

    fn analyze(&self, space: &Threads<f64>, a: &Csr<f64>) -> Result<IncompleteSymbolic, SetupError> {
        Incomplete::ic(0).analyze(space, a)
    }

    fn analyze_given(
        &self,
        space: &Threads<f64>,
        a: &Csr<f64>,
        given: &Given<'_>,
    ) -> Result<IncompleteSymbolic, SetupError> {
        let product = |z: &Vec<f64>| {
            let row =
                |i: usize| a.row(i).0.iter().zip(a.row(i).1).map(|(&j, v)| v * z[j as usize]).sum::<f64>();
            (0..a.nrows()).map(|i| row(i).powi(2)).sum::<f64>().sqrt()
        };
        let norms = given.near_null.iter().map(|z| (product(z), given.schedule));
        self.0.lock().unwrap().extend(norms);
        Incomplete { schedule: given.schedule, ..Incomplete::ic(0) }.analyze(space, a)
    }

    fn is_symmetric(&self) -> bool {
        true
    }

    fn can_shift(&self) -> bool {
        true
    }
}

/// Constants are annihilated but for the rows at the boundary: ‖A 1‖² on a square of m x m points is 4 (m − 2) + 4 · 2² there.
#[test]
fn a_recipe_of_the_callers_is_given_vectors_a_schedule_and_a_shift() {
    let m = 20.0f64;
    let mut a = problem("poisson2d:20");
    let b = vec![1.0; a.nrows()];
    let expected = (4.0 * (m - 2.0) + 16.0).sqrt();
    for ordering in [Ordering::Natural, Ordering::Rcm] {
        let seen: Arc<Mutex<Vec<(f64, Schedule)>>> = Arc::default();
        let solver =
            Solver::new().own_preconditioner("watched", Watched(Arc::clone(&seen))).reorder(ordering);
        let solver =
            solver.near_null_vectors([vec![1.0; a.nrows()], vec![0.0; a.nrows()]]).schedule(Schedule::Levels);
        let report = solver.solve(&a, &b).unwrap().report;
        report.require_converged().unwrap();
        assert_eq!(
            (report.preconditioner.as_str(), report.solver.as_str(), report.shift),
            ("watched", "cg", 0.0)
        );
        let seen = seen.lock().unwrap();
        assert!((seen[0].0 - expected).abs() < 1e-12 && seen[1].0 == 0.0 && seen[0].1 == Schedule::Levels);
        let wrong = solver.clone().near_null_vectors([vec![1.0; 3]]).solve(&a, &b);
        assert!(matches!(wrong, Err(SolveError::Option { name: "near-null vectors", .. })), "{wrong:?}");
    }
    // A pivot that is not positive is followed by a shift.
    let place = a.pattern().find(45, 45).unwrap();
    a.values_mut()[place] = 0.5;
    let solver = Solver::new().method(Method::Minres).own_preconditioner("watched", Watched(Arc::default()));
    let report = solver.solve(&a, &b).unwrap().report;
    report.require_converged().unwrap();
    assert!(report.preconditioner == "watched" && report.shift > 0.0 && !report.recovery.is_empty());
}
