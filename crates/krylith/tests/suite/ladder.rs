//! `auto` goes on where its first choice does not get far, says why, and does so alike on any number of threads.

use krylith::gallery::Problem;
use krylith::plan::{Failure, Remedy};
use krylith::report::advice::Advice;
use krylith::{Csr, Method, Outcome, Permutation, Precision, PrecondSpec, Solver, TripletBuilder};

/// The biharmonic operator on m x m points, clamped: symmetric positive definite with a condition of about m⁴, and 13 entries per row.
fn plate(m: usize) -> Csr<f64> {
    let mut builder = TripletBuilder::new(m * m, m * m);
    let weights = [(0i64, 0i64, 20.0), (1, 0, -8.0), (1, 1, 2.0), (2, 0, 1.0)];
    for (y, x) in (0..m as i64).flat_map(|y| (0..m as i64).map(move |x| (y, x))) {
        for (a, b, value) in weights {
            let mut offsets = vec![(a, b), (-a, b), (a, -b), (-a, -b), (b, a), (-b, a), (b, -a), (-b, -a)];
            offsets.sort_unstable();
            offsets.dedup();
            for (dy, dx) in offsets {
                let (row, column) = (y + dy, x + dx);
                if (0..m as i64).contains(&row) && (0..m as i64).contains(&column) {
                    builder.push(y as usize * m + x as usize, row as usize * m + column as usize, value);
                }
            }
        }
    }
    builder.build().unwrap()
}

/// A Laplacian minus a multiple of the identity: symmetric, with eigenvalues of both signs.
fn helmholtz(m: usize, shift: f64) -> Csr<f64> {
    let mut a = format!("poisson2d:{m}").parse::<Problem>().unwrap().generate().unwrap();
    let places: Vec<usize> = (0..a.nrows()).map(|i| a.pattern().find(i, i).unwrap()).collect();
    places.into_iter().for_each(|place| a.values_mut()[place] -= shift);
    a
}

fn rhs(n: usize) -> Vec<f64> {
    (0..n).map(|i| ((i * 7919 % 1009) as f64 - 504.0) / 504.0).collect()
}

/// Numbers in [-1, 1) of all frequencies (splitmix64).
fn noise(n: usize) -> Vec<f64> {
    let number = |i: usize| {
        let mut z = (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    };
    (0..n).map(number).collect()
}

/// A plate, some of its points exchanged, so that it is no grid in the plane.
fn large_plate() -> Csr<f64> {
    let a = plate(260);
    let mut rows: Vec<u32> = (0..a.nrows() as u32).collect();
    (0..a.nrows() - 1).step_by(97).for_each(|i| rows.swap(i, i + 1));
    a.view().permute_symmetric(&Permutation::new(rows).unwrap()).unwrap()
}

/// The plan for another matrix, on which conjugate gradients are fast, with IC(2).
fn begins_with_ic() -> Solver {
    let fast = "poisson2d:260".parse::<Problem>().unwrap().generate().unwrap();
    let mut plan = Solver::new().plan(&fast).unwrap();
    plan.preconditioner = PrecondSpec::ic(2);
    Solver::new().with_plan(&plan)
}

#[test]
fn a_complete_factor_comes_first_where_it_is_cheap() {
    let a = plate(90);
    let report = Solver::new().solve(&a, &rhs(a.nrows())).unwrap().report;
    report.require_converged().unwrap();
    let because =
        "cg with cholesky: most rows are not diagonally dominant, and a complete factor is predicted";
    assert!(report.choice.starts_with(because), "{}", report.choice);
    assert_eq!((report.rungs.len(), report.iterations), (1, 1));
}

#[test]
fn a_slow_method_is_left_for_a_complete_factor() {
    let a = large_plate();
    let b = noise(a.nrows());
    let report = begins_with_ic().solve(&a, &b).unwrap().report;
    assert_eq!(report.outcome, Outcome::Converged);
    assert_eq!((report.solver.as_str(), report.preconditioner.as_str()), ("cg", "cholesky"), "{report}");
    let step = report.recovery.last().unwrap();
    assert!(step.failed.starts_with("cg with ic(2): what is left is predicted to take longer"), "{step:?}");
    // Predicted for the matrix itself, the complete factor comes first, whatever the size.
    for a in [&a, &plate(260)] {
        let plan = Solver::new().plan(a).unwrap();
        assert_eq!(plan.preconditioner, PrecondSpec::cholesky(), "{plan}");
    }
    // A preconditioner asked for by name is not left.
    let a = plate(90);
    let b = rhs(a.nrows());
    let report = Solver::new().preconditioner(PrecondSpec::ic(0)).solve(&a, &b).unwrap().report;
    assert_eq!(report.preconditioner, "ic0");
    let report = Solver::new().method(Method::Cg).solve(&a, &b).unwrap().report;
    assert_eq!((report.solver.as_str(), report.preconditioner.as_str()), ("cg", "ic(1)"));
}

#[test]
fn an_indefinite_matrix_ends_with_an_answer() {
    let a = helmholtz(60, 0.3);
    let b = rhs(a.nrows());
    let solution = Solver::new().solve(&a, &b).unwrap();
    solution.report.require_converged().unwrap();
    let actions: Vec<&str> = solution.report.recovery.iter().map(|step| step.action.as_str()).collect();
    assert!(actions.contains(&"minres with none"), "{actions:?}");
    assert_eq!(solution.report.preconditioner, "ldlt", "{actions:?}");
}

/// Zeros on the diagonal: an incomplete factor is not tried, and the reason says so.
#[test]
fn a_saddle_point_gets_a_complete_factor_at_once() {
    let n = 200;
    let mut builder = TripletBuilder::new(n + n / 2, n + n / 2);
    for i in 0..n {
        builder.extend([(i, i, 2.0), (i, n + i / 2, 1.0), (n + i / 2, i, 1.0)]);
        if i + 1 < n {
            builder.extend([(i, i + 1, -1.0), (i + 1, i, -1.0)]);
        }
    }
    let a = builder.build().unwrap();
    let report = Solver::new().solve(&a, &rhs(a.nrows())).unwrap().report;
    report.require_converged().unwrap();
    assert!(
        report.choice.starts_with("gmres with ldlt: the diagonal has entries that are zero"),
        "{}",
        report.choice
    );
    assert!(report.iterations < 10 && report.recovery.is_empty(), "{report}");
}

#[test]
fn the_same_bits_on_any_number_of_threads_and_from_a_plan() {
    for a in [plate(90), helmholtz(60, 0.3)] {
        let b = rhs(a.nrows());
        let one = Solver::new().threads(1).solve(&a, &b).unwrap();
        let plan = Solver::new().threads(1).plan(&a).unwrap();
        for threads in [2, 3] {
            assert_eq!(Solver::new().threads(threads).plan(&a).unwrap(), plan);
            let many = Solver::new().threads(threads).solve(&a, &b).unwrap();
            assert_eq!((many.x == one.x, many.report.iterations), (true, one.report.iterations));
        }
        let again = Solver::new().with_plan(&plan).threads(2).solve(&a, &b).unwrap();
        assert_eq!((again.x == one.x, again.report.iterations), (true, one.report.iterations));
    }
}

/// A row and a column of zeros in a matrix that is not symmetric: by LSMR, an answer where there is one, and the least squares where not.
#[test]
fn singular_systems_by_lsmr() {
    let n = 60;
    let entries =
        (0..n - 1).flat_map(|i| [(i, i, 3.0), (i, (i + 7) % (n - 1), -1.0), ((2 * i) % (n - 1), i, 0.5)]);
    let a = Csr::from_entries(n, n, entries).unwrap();
    let solver = Solver::new().method(Method::Lsmr);
    assert_eq!(solver.plan(&a).unwrap().preconditioner, PrecondSpec::column_norms());
    let ones: Vec<f64> = (0..n).map(|i| a.row(i).1.iter().sum()).collect();
    let solution = solver.solve(&a, &ones).unwrap();
    solution.report.require_converged().unwrap();
    assert_eq!(solution.x[n - 1], 0.0, "the column of zeros adds nothing to the answer of least norm");
    let report = solver.solve(&a, &rhs(n)).unwrap().report;
    assert_eq!(report.outcome, Outcome::LeastSquares, "{report}");
    assert!(report.projected_residual.unwrap() <= 1e-8, "{report}");
}

/// The report has every method that ran, and its last one can be repeated without the others.
#[test]
fn rungs_are_recorded_and_the_last_is_replayed() {
    let a = large_plate();
    let b = noise(a.nrows());
    let report = begins_with_ic().solve(&a, &b).unwrap().report;
    assert!(report.rungs.len() > 1, "{:?}", report.rungs);
    let (last, before) = report.rungs.split_last().unwrap();
    assert!(last.left.is_none() && before.iter().all(|rung| rung.left.is_some()));
    assert_eq!(report.rungs.iter().map(|rung| rung.iterations).sum::<usize>(), report.iterations);
    assert_eq!((last.method, &last.preconditioner), (Method::Cg, &PrecondSpec::cholesky()));
    assert!(report.rungs.iter().all(|rung| rung.seconds > 0.0));
    assert!(last.predicted_seconds.is_some());
    assert!(last.relative_residual <= 1e-8 && before[0].relative_residual > 1e-8);
    let again = Solver::new().with_plan(&report.replay()).solve(&a, &b).unwrap().report;
    again.require_converged().unwrap();
    assert_eq!((again.rungs.len(), again.preconditioner.as_str()), (1, "cholesky"));
    assert!(report.advice().is_empty());
}

/// The stores that were asked are those of the plan, also where the planned factor has a bad pivot and another takes its place.
#[test]
fn a_factor_that_fails_leaves_the_stores_of_the_plan() {
    let (a, b) = (helmholtz(20, 1.0), rhs(400));
    let solver = Solver::new().method(Method::Gmres(50)).preconditioner(PrecondSpec::cholesky());
    let (plan, report) = (solver.plan(&a).unwrap(), solver.solve(&a, &b).unwrap().report);
    assert_eq!(report.preconditioner, "jacobi");
    assert_eq!(plan.considered, report.plan.considered);
    assert!(plan.considered.last().unwrap().reason.ends_with("operations predicted"));
}

/// Whatever the end, there is something to do about it.
#[test]
fn advice_follows_the_outcome() {
    let a = plate(30);
    let b = rhs(a.nrows());
    let named = Solver::new().method(Method::Cg).preconditioner(PrecondSpec::jacobi());
    let report = named.clone().max_iterations(20).solve(&a, &b).unwrap().report;
    let advice = report.advice();
    assert!(advice.contains(&Advice::LetChoose), "{advice:?}");
    let error = report.require_converged().unwrap_err();
    assert!(error.to_string().contains("leave out method and preconditioner: auto goes on"), "{error}");
    assert_eq!(error.advice, advice);
    let report = named.solve(&helmholtz(20, 1.0), &rhs(400)).unwrap().report;
    assert_eq!(report.outcome, Outcome::IndefiniteOperator);
    assert_eq!(report.advice()[0], Advice::IndefiniteMethod);
    assert_eq!(
        report.advice()[0].to_string(),
        "try method(minres) preconditioner(none): it needs no positive definite matrix"
    );
    let singular = Csr::from_entries(3, 3, [(0, 0, 1.0), (1, 1, 1.0), (2, 0, 1.0)]).unwrap();
    let report = Solver::new().solve(&singular, &[1.0, 1.0, 5.0]).unwrap().report;
    assert_eq!(report.outcome, Outcome::LeastSquares);
    assert_eq!(report.advice()[0], Advice::CheckMatrix { rank: 2, rows: 3 });
    assert!(report.advice()[0].to_string().contains("of rank 2 of 3 at most"));
    let report = Solver::new().rtol(1e-300).solve(&a, &b).unwrap().report;
    assert_eq!(report.outcome, Outcome::AttainableAccuracy);
    assert!(matches!(report.advice()[0], Advice::LooserTolerance { rtol, .. } if rtol < 1e-12));
    assert!(report.advice()[0].to_string().starts_with("try rtol("), "{}", report.advice()[0]);
}

/// Convection and diffusion on n × n points, a step of time implicit; rows of the boundary are those of the identity.
fn time_step(n: usize) -> Csr<f64> {
    let mut builder = TripletBuilder::new(n * n, n * n);
    let h = 1.0 / (n - 1) as f64;
    let (diffusion, [vx, vy]) = (0.02 / (h * h), [1.0 / (2.0 * h), 0.5 / (2.0 * h)]);
    for (row, (y, x)) in (0..n).flat_map(|y| (0..n).map(move |x| (y, x))).enumerate() {
        if x == 0 || y == 0 || x == n - 1 || y == n - 1 {
            builder.push(row, row, 1.0);
            continue;
        }
        let sides = [(row - 1, -vx), (row + 1, vx), (row - n, -vy), (row + n, vy)];
        builder.extend(sides.map(|(column, v)| (row, column, v - diffusion)));
        builder.push(row, row, 4.0 * diffusion + 50.0);
    }
    builder.build().unwrap()
}

/// With zero initial values and data on the boundary, r is zero after the first iteration wherever the shadow residual is not. BiCGStab begins again.
#[test]
fn data_on_the_boundary_do_not_break_bicgstab() {
    let n = 101;
    let a = time_step(n);
    let b: Vec<f64> = (0..n * n).map(|i| if i < n { 1.0 + (i as f64 * 0.1).sin() } else { 0.0 }).collect();
    for solver in [Solver::new(), Solver::new().preconditioner(PrecondSpec::ilu(0))] {
        let report = solver.solve(&a, &b).unwrap().report;
        report.require_converged().unwrap();
        assert_eq!((report.solver.as_str(), report.rungs.len()), ("bicgstab", 1), "{report}");
        assert!(report.iterations < 30, "{report}");
    }
}

/// A breakdown, or divergence, is followed by another method with the factor that is there, before a complete factor.
#[test]
fn gmres_with_the_same_factor_comes_before_complete_factors() {
    let plan = Solver::new().plan(&time_step(60)).unwrap();
    assert_eq!((plan.method, plan.preconditioner.is_complete()), (Method::BiCgStab, false), "{plan}");
    for failure in [Failure::Breakdown, Failure::Diverged] {
        let next = plan.fallbacks.iter().find(|fallback| fallback.after.contains(&failure)).unwrap();
        assert_eq!(next.then, Remedy::on_first(Method::Gmres(30)));
    }
}

/// The right-hand sides b₀, b₁, … of an indefinite matrix, each of which CG fails for.
fn hard_right_hand_sides(n: usize, count: usize) -> Vec<Vec<f64>> {
    (0..count)
        .map(|k| (0..n).map(|i| ((i * (7919 + 2 * k) % 1009) as f64 - 504.0) / 504.0).collect())
        .collect()
}

/// Where the planned method has failed for two right-hand sides, later solves begin with the rung that won, on the factor it had; one is not enough.
#[test]
fn later_solves_begin_with_the_rung_that_won() {
    let a = helmholtz(60, 0.3);
    let n = a.nrows();
    let bs = hard_right_hand_sides(n, 4);
    let mut prepared = Solver::new().prepare(&a).unwrap();
    let solve = |prepared: &krylith::Prepared<Csr<f64>>, b: &[f64]| {
        let report = prepared.solve(&a, b, &mut vec![0.0; n]).unwrap();
        report.require_converged().unwrap();
        report
    };
    let begins = |report: &krylith::Report| {
        report.recovery.iter().any(|step| step.action.starts_with("the solve begins with"))
    };
    let first = solve(&prepared, &bs[0]);
    assert!(first.rungs.len() > 1 && !begins(&first), "{first}");
    // The right-hand side that was hard begins where it ended.
    let again = solve(&prepared, &bs[0]);
    assert!(again.rungs.len() == 1 && begins(&again), "{again}");
    assert_eq!((&again.solver, &again.preconditioner), (&first.solver, &first.preconditioner));
    // Another one is tried as planned, and takes the factor that is there.
    let second = solve(&prepared, &bs[1]);
    assert!(second.rungs.len() > 1 && !begins(&second), "{second}");
    for b in &bs[2..] {
        let report = solve(&prepared, b);
        assert!(report.rungs.len() == 1 && begins(&report), "{report}");
        assert_eq!(report.preconditioner, first.preconditioner);
    }
    // Other values: nothing is known of them.
    prepared.refactor(&a).unwrap();
    let report = solve(&prepared, &bs[3]);
    assert!(report.rungs.len() > 1 && !begins(&report), "{report}");
}

/// Columns of one call begin alike, whichever thread solves them.
#[test]
fn what_columns_find_out_does_not_depend_on_threads() {
    let a = helmholtz(40, 0.3);
    let n = a.nrows();
    let b = hard_right_hand_sides(n, 6).concat();
    let run = |threads: usize| {
        let prepared = Solver::new().threads(threads).prepare(&a).unwrap();
        let mut all = Vec::new();
        for _ in 0..2 {
            let mut x = vec![0.0; b.len()];
            let reports = prepared.solve_many(&a, &b, &mut x).unwrap();
            all.push((x, reports.iter().map(|report| report.rungs.len()).collect::<Vec<_>>()));
        }
        all
    };
    let one = run(1);
    assert!(one[0].1.iter().all(|&rungs| rungs > 1), "{:?}", one[0].1);
    assert!(one[1].1.iter().all(|&rungs| rungs == 1), "{:?}", one[1].1);
    for threads in [2, 3] {
        assert!(run(threads) == one, "{threads} threads");
    }
}

/// Both sides of the comparison are predicted, for all the solves that are expected.
#[test]
fn expected_solves_decide_between_factors() {
    let plan = |solver: Solver, name: &str| {
        let a = name.parse::<Problem>().unwrap().generate().unwrap();
        solver.plan(&a).unwrap().preconditioner
    };
    assert!(!plan(Solver::new(), "poisson2d:200").is_complete());
    assert!(plan(Solver::new().expect_solves(100), "poisson2d:200").is_complete());
    // As many factors as solves: as for one solve.
    assert!(!plan(Solver::new().expect_solves(100).expect_refactors(99), "poisson2d:200").is_complete());
    assert!(!plan(Solver::new().expect_solves(100), "poisson3d:60").is_complete());
    let a = time_step(101);
    assert!(!Solver::new().plan(&a).unwrap().preconditioner.is_complete());
}

/// What is said of a factor that a later solve begins with is what was said when it was made: here that the diagonal took the place of ILU(0).
#[test]
fn a_kept_factor_is_explained_again() {
    let entries = [
        (0, 0, -1.786751413249877e-36),
        (0, 1, -2.2334392665623463e-36),
        (1, 0, -1.5153199151948041e38),
        (1, 1, -1.894149893993505e38),
    ];
    let a = Csr::from_entries(2, 2, entries).unwrap();
    let bs = [[1e300, 2.756334938752584e299], [-1.1791248800555616e226, -1e300]];
    let solver = Solver::new().method(Method::Minres).preconditioner(PrecondSpec::ilu(0));
    let solver = solver.precision(Precision::F32).rtol(1e-4).max_iterations(300).threads(1);
    let prepared = solver.prepare(&a).unwrap();
    let mut x = [0.84, 0.75];
    let mut begun = 0;
    for (b, is_fresh) in [(0, true), (1, false), (1, true), (0, true)] {
        if is_fresh {
            x = [0.84, 0.75];
        }
        let report = prepared.solve(&a, &bs[b], &mut x).unwrap();
        begun += usize::from(report.recovery.iter().any(|step| step.action.contains("was kept")));
        let explained = report.recovery.iter().any(|step| step.action.starts_with("the diagonal, or"));
        assert_eq!(report.preconditioner == "jacobi", explained, "{report} {:?}", report.recovery);
    }
    assert!(begun > 0);
}
