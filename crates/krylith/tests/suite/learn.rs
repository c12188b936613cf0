//! Trained factors: the same bits on any number of threads, never worse than what was there, usable on every definite matrix.

use krylith::gallery::{Problem, random_vector};
use krylith::learn::{Learned, Learning, Samples, Start, Training, train, train_by_solving, train_lu};
use krylith::space::Threads;
use krylith::transform::Ordering;
use krylith::{Csr, Layout, Method, Pattern, PrecondSpec, Report, Solver};
use std::ops::ControlFlow;
use std::sync::Arc;

fn problem(name: &str) -> Csr<f64> {
    name.parse::<Problem>().unwrap().generate().unwrap()
}

fn go_on<T>(_: &T) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// CG with a preconditioner made from a matrix.
fn solve(a: &Csr<f64>, kind: PrecondSpec, source: &Csr<f64>) -> Report {
    let solver = Solver::new().method(Method::Cg).preconditioner(kind).rtol(1e-7).threads(2);
    let (b, mut x) = (random_vector(a.nrows()), vec![0.0; a.nrows()]);
    solver.prepare_with(a, source).unwrap().solve(a, &b, &mut x).unwrap()
}

/// The paper's two trainings on the problem that its authors' method was tried on before: fewer iterations than Jacobi by far, some more than IC(0).
#[test]
fn the_papers_factors_are_between_jacobi_and_ic0() {
    let a = problem("poisson2d:64");
    let jacobi = solve(&a, PrecondSpec::jacobi(), &a).iterations;
    let ic0 = solve(&a, PrecondSpec::ic(0), &a).iterations;
    for training in [Training::paper(a.nrows()), Training::paper_normalised(a.nrows())] {
        let mut losses = Vec::new();
        let trained = train::<f64>(&Threads::new(2), &a, a.pattern(), &training, |progress| {
            losses.push(progress.loss);
            go_on(progress)
        })
        .unwrap();
        let report = solve(&a, PrecondSpec::ssor(1.0), &trained.matrix());
        report.require_converged().unwrap();
        assert_eq!(losses.len(), 64);
        assert!(losses[63] < 0.2 * losses[0], "{losses:?}");
        let found = report.iterations;
        assert!(found < jacobi / 2 && found < ic0 * 3 / 2 && found > ic0, "{jacobi} {found} {ic0}");
    }
}

#[test]
fn training_has_the_same_bits_on_any_number_of_threads() {
    let a = problem("fem2d:30");
    let training = Training::paper(a.nrows());
    let of = |threads| {
        let space = Threads::new(threads);
        let f64s = train::<f64>(&space, &a, a.pattern(), &training, go_on).unwrap().matrix();
        let f32s = train::<f32>(&space, &a, a.pattern(), &training, go_on).unwrap().matrix();
        [f64s, f32s]
    };
    let alone = of(1);
    for threads in [2, 3, 8] {
        assert!(of(threads).iter().zip(&alone).all(|(x, y)| x.values() == y.values()), "{threads}");
    }
    assert_ne!(alone[0].values(), alone[1].values());
    let other = Training { seed: 1, ..training };
    let other = train::<f64>(&Threads::new(1), &a, a.pattern(), &other, go_on).unwrap().matrix();
    assert_ne!(other.values(), alone[0].values());
}

/// Without a step the factor is what it begins with.
#[test]
fn a_training_begins_with_jacobi_or_ic0() {
    let a = problem("thermal:20");
    let of = |start| {
        let training = Training { start, steps: 0, ..Training::paper(a.nrows()) };
        let trained = train::<f64>(&Threads::new(1), &a, a.pattern(), &training, go_on).unwrap();
        solve(&a, PrecondSpec::ssor(1.0), &trained.matrix()).iterations
    };
    let by_name = |kind| solve(&a, kind, &a).iterations;
    // The same M up to rounding.
    assert!(of(Start::Identity).abs_diff(by_name(PrecondSpec::jacobi())) <= 1);
    assert!(of(Start::Incomplete).abs_diff(by_name(PrecondSpec::ic(0))) <= 1);
}

/// Where A² has entries.
fn squared_pattern(a: &Csr<f64>) -> Arc<Pattern> {
    let (mut row_ptr, mut columns) = (vec![0], Vec::new());
    for i in 0..a.nrows() {
        let near = a.pattern().row(i);
        let mut row: Vec<u32> = near.iter().flat_map(|&j| a.pattern().row(j as usize).to_vec()).collect();
        row.sort_unstable();
        row.dedup();
        columns.extend(row);
        row_ptr.push(columns.len());
    }
    Arc::new(Pattern::new(a.nrows(), a.nrows(), row_ptr, columns).unwrap())
}

/// A pattern with fill has more entries to learn.
#[test]
fn any_symmetric_pattern_can_be_trained_on() {
    let a = problem("poisson2d:24");
    let wide = squared_pattern(&a);
    let training = Training { steps: 200, start: Start::Incomplete, ..Training::paper(a.nrows()) };
    let trained = train::<f64>(&Threads::new(2), &a, &wide, &training, go_on).unwrap();
    let report = solve(&a, PrecondSpec::ssor(1.0), &trained.matrix());
    report.require_converged().unwrap();
    assert!(report.iterations < solve(&a, PrecondSpec::ic(0), &a).iterations);
}

#[test]
fn an_observer_ends_a_training() {
    let a = problem("poisson2d:16");
    let training = Training { samples: Samples::Gaussian, ..Training::paper(a.nrows()) };
    let mut seen = 0;
    let stopped = train::<f64>(&Threads::new(1), &a, a.pattern(), &training, |progress| {
        seen = progress.step;
        if progress.step == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    let short = Training { steps: 3, ..training };
    let whole = train::<f64>(&Threads::new(1), &a, a.pattern(), &short, go_on).unwrap();
    assert_eq!((seen, stopped.unwrap().matrix().values()), (3, whole.matrix().values()));
}

/// Iterations of a sequence of solves with right-hand sides of their own.
fn sequence(
    a: &mut Csr<f64>,
    solver: &Solver,
    solves: usize,
    change: impl Fn(usize, &mut Csr<f64>),
) -> (Vec<usize>, Vec<f64>) {
    sequence_with(Learning::default(), a, solver, solves, change)
}

fn sequence_with(
    learning: Learning,
    a: &mut Csr<f64>,
    solver: &Solver,
    solves: usize,
    change: impl Fn(usize, &mut Csr<f64>),
) -> (Vec<usize>, Vec<f64>) {
    let mut learned = Learned::new(solver, a, learning).unwrap();
    let n = a.nrows();
    let numbers = random_vector(n + solves);
    let mut iterations = Vec::new();
    let mut x = vec![0.0; n];
    for k in 0..solves {
        let b: Vec<f64> = (0..n).map(|i| (numbers[i + k] * 13.0 * (k + 1) as f64).sin()).collect();
        x.fill(0.0);
        let report = learned.solve(a, &b, &mut x).unwrap();
        report.require_converged().unwrap();
        iterations.push(report.iterations);
        change(k, a);
        learned.refactor(a).unwrap();
    }
    learned.finish().unwrap();
    let report = learned.report();
    assert_eq!((report.solves, learned.factor().is_some()), (solves, report.break_even.is_some()));
    assert!(report.accepted <= report.rounds && report.rounds < solves);
    (iterations, x)
}

/// In a grid's storage too, where IC(0) is cheap: solves earn less, and a trained factor has to be much better before it is used.
#[test]
fn a_sequence_learns_in_every_storage() {
    for layout in [Layout::Auto, Layout::Slices, Layout::Rows] {
        let solver = Solver::new().preconditioner(PrecondSpec::ic(0)).layout(layout).threads(2);
        let (iterations, _) = sequence(&mut problem("poisson2d:200"), &solver, 11, |_, _| ());
        assert!(18 * iterations[10] <= 10 * iterations[0], "{layout:?}: {iterations:?}");
    }
}

#[test]
fn a_sequence_has_the_same_bits_on_any_number_of_threads() {
    let of = |threads| {
        let solver = Solver::new().preconditioner(PrecondSpec::ic(0)).threads(threads);
        sequence(&mut problem("fem2d:40"), &solver, 5, |_, _| ())
    };
    let alone = of(1);
    assert_eq!(of(2), alone);
    assert_eq!(of(5), alone);
}

/// What is learned carries over to a matrix that changes slowly, its scale included.
#[test]
fn a_sequence_of_changing_matrices_learns() {
    let solver = Solver::new().preconditioner(PrecondSpec::ic(0)).threads(2);
    let (iterations, _) = sequence(&mut problem("thermal:48"), &solver, 10, |k, a| {
        let n = a.nrows();
        let factor = |i: usize| 1.0 + 0.02 * ((i + k) as f64 / n as f64 * 6.0).sin();
        for i in 0..n {
            for place in a.pattern().row_range(i) {
                let j = a.pattern().col_idx()[place] as usize;
                a.values_mut()[place] *= 1.5 * factor(i) * factor(j);
            }
        }
    });
    assert!(14 * iterations[9] <= 10 * iterations[0], "{iterations:?}");
}

/// Where training has nothing to learn from, the factor that was given stays; and it ends where it has no gain.
#[test]
fn what_cannot_be_improved_is_kept() {
    let mut a = Csr::<f64>::identity(1000).unwrap();
    a.values_mut().iter_mut().enumerate().for_each(|(i, v)| *v += i as f64);
    let solver = Solver::new().preconditioner(PrecondSpec::ic(0));
    let (iterations, _) = sequence(&mut a, &solver, 4, |_, _| ());
    assert_eq!(iterations, [1; 4]);

    // IC(0) of a tridiagonal matrix is complete, that of a few more entries nearly so.
    let a = problem("poisson2d:2000x2");
    let mut learned = Learned::new(&solver, &a, Learning::default()).unwrap();
    let (b, mut x) = (random_vector(a.nrows()), vec![0.0; a.nrows()]);
    let mut counts = Vec::new();
    while !learned.report().finished {
        x.fill(0.0);
        counts.push(learned.solve(&a, &b, &mut x).unwrap().iterations);
    }
    assert!(counts.len() <= 31 && counts.iter().all(|&count| count <= counts[0]), "{counts:?}");
    println!("{}", learned.report());
}

/// Training on a thread of its own changes nothing but where the time goes.
#[test]
fn training_beside_has_the_same_bits() {
    let solver = Solver::new().preconditioner(PrecondSpec::ic(0)).threads(2);
    let of = |beside| {
        let mut learning = Learning::default();
        learning.beside = beside;
        let keep = |_: usize, _: &mut Csr<f64>| ();
        sequence_with(learning, &mut problem("fem2d:40"), &solver, 6, keep)
    };
    assert_eq!(of(true), of(false));
}

#[test]
fn training_takes_no_more_than_its_share() {
    let solver = Solver::new().preconditioner(PrecondSpec::ic(0)).threads(1);
    let a = problem("poisson2d:48");
    let rounds = |share: f64| {
        let mut learning = Learning::default();
        learning.share = share;
        // It does not end where it has no gain.
        learning.patience = 100;
        let mut learned = Learned::new(&solver, &a, learning).unwrap();
        let (b, mut x) = (random_vector(a.nrows()), vec![0.0; a.nrows()]);
        for _ in 0..8 {
            x.fill(0.0);
            learned.solve(&a, &b, &mut x).unwrap().require_converged().unwrap();
        }
        learned.report().rounds
    };
    let (none, some, all) = (rounds(0.0), rounds(3.0), rounds(f64::INFINITY));
    assert_eq!((none, all), (0, 7));
    assert!(0 < some && some < all, "{some}");
}

/// By name: trained in the set-up, on any number of threads alike, and carried over to other values.
#[test]
fn a_factor_is_learned_by_name() {
    let mut a = problem("fem2d:40");
    let b = random_vector(a.nrows());
    let solver = |kind| Solver::new().method(Method::Cg).preconditioner(kind);
    let plain = solver(PrecondSpec::ic(0)).solve(&a, &b).unwrap().report.iterations;
    let of = |threads| {
        let mut prepared = solver(PrecondSpec::learned(6)).threads(threads).prepare(&a).unwrap();
        let mut x = vec![0.0; a.nrows()];
        let report = prepared.solve(&a, &b, &mut x).unwrap();
        report.require_converged().unwrap();
        assert!(10 * report.iterations < 8 * plain, "{} {plain}", report.iterations);
        assert_eq!(report.preconditioner.to_string(), "learned(6)");
        (prepared.refactor(&a).is_ok(), report.iterations, x)
    };
    assert_eq!(of(1), of(3));
    let mut prepared = solver(PrecondSpec::learned(6)).prepare(&a).unwrap();
    let before = prepared.solve(&a, &b, &mut vec![0.0; b.len()]).unwrap().iterations;
    for i in 0..a.nrows() {
        for place in a.pattern().row_range(i) {
            let j = a.pattern().col_idx()[place] as usize;
            a.values_mut()[place] *= 2.0f64.powi((i % 3) as i32 + (j % 3) as i32);
        }
    }
    prepared.refactor(&a).unwrap();
    let scaled: Vec<f64> = b.iter().enumerate().map(|(i, b)| b * 2.0f64.powi((i % 3) as i32)).collect();
    let report = prepared.solve(&a, &scaled, &mut vec![0.0; b.len()]).unwrap();
    report.require_converged().unwrap();
    assert!(report.iterations.abs_diff(before) <= 4, "{} {before}", report.iterations);
}

/// In another order the factor is trained for that order.
#[test]
fn a_factor_is_learned_in_the_order_of_the_rows() {
    let a = problem("thermal:32");
    let b = random_vector(a.nrows());
    let iterations = |kind| {
        let solver = Solver::new().method(Method::Cg).preconditioner(kind).reorder(Ordering::Rcm);
        let report = solver.solve(&a, &b).unwrap().report;
        report.require_converged().unwrap();
        report.iterations
    };
    let (learned, plain) = (iterations(PrecondSpec::learned(6)), iterations(PrecondSpec::ic(0)));
    assert!(10 * learned < 8 * plain, "{learned} {plain}");
}

/// A matrix that cannot be trained on is solved all the same.
#[test]
fn what_cannot_be_trained_falls_back() {
    let mut a = problem("poisson2d:20");
    let place = a.pattern().find(7, 7).unwrap();
    a.values_mut()[place] = -4.0;
    let solver = Solver::new().method(Method::Minres).preconditioner(PrecondSpec::learned(3));
    let report = solver.solve(&a, &random_vector(400)).unwrap().report;
    report.require_converged().unwrap();
    assert_eq!(report.recovery[0].row, Some(7), "{:?}", report.recovery);
    let refused = solver.recover(false).solve(&a, &random_vector(400));
    assert!(refused.is_err());
}

/// Where IC(0) needs a shift, a training begins with what is better, and never ends with more iterations than Jacobi.
#[test]
fn a_factor_is_never_worse_than_jacobi() {
    for name in ["shell:16", "jump3d:10", "poisson2d:2000x2"] {
        let a = problem(name);
        let (p, report) =
            train_by_solving(&Solver::new().threads(2).rtol(1e-7), &a, 4, |_| ControlFlow::Continue(()))
                .unwrap();
        let jacobi = solve(&a, PrecondSpec::jacobi(), &a).iterations;
        let trained = solve(&a, PrecondSpec::ssor(1.0), &p).iterations;
        assert!(trained <= jacobi && report.rounds <= 4, "{name}: {trained} {jacobi}");
    }
}

/// GMRES needs fewer iterations with trained L and U than without, and L Lᵀ serves too.
#[test]
fn factors_of_unsymmetric_matrices_are_trained() {
    let a = problem("convection3d:12");
    let (space, n) = (Threads::new(2), a.nrows());
    let gmres = |kind: PrecondSpec, source: &Csr<f64>| {
        let solver = Solver::new().method(Method::Gmres(100)).preconditioner(kind).rtol(1e-7);
        let report = solver.prepare_with(&a, source).unwrap();
        let report = report.solve(&a, &random_vector(n), &mut vec![0.0; n]).unwrap();
        report.require_converged().unwrap();
        report.iterations
    };
    let plain = gmres(PrecondSpec::jacobi(), &a);
    let lu = train_lu::<f32>(&space, &a, &Training::paper_lu(n), go_on).unwrap();
    let ll = train::<f32>(&space, &a, a.pattern(), &Training::paper(n), go_on).unwrap();
    let found = [lu.matrix(), ll.matrix()].map(|p| gmres(PrecondSpec::ssor(1.0), &p));
    assert!(found.iter().all(|&count| count < plain), "{found:?} {plain}");
}

/// A training ends where it is asked to, with the best factor so far: that of the rounds before.
#[test]
fn a_training_can_be_ended() {
    let (a, solver) = (problem("fem2d:40"), Solver::new().threads(1));
    let (expected, _) = train_by_solving(&solver, &a, 2, |_| ControlFlow::Continue(())).unwrap();
    let ended = |mut ends: Box<dyn FnMut(usize, usize) -> bool>| {
        let mut asked = 0;
        let (p, report) = train_by_solving(&solver, &a, 20, |report| {
            asked += 1;
            if ends(report.rounds, asked) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
        .unwrap();
        (p, report.rounds)
    };
    // Behind the second round, and in the middle of the solve that follows it.
    assert_eq!(ended(Box::new(|rounds, _| rounds == 2)), (expected.clone(), 2));
    let mut later = 0;
    let in_a_solve = move |rounds: usize, _| {
        later += usize::from(rounds == 2);
        later == 5
    };
    assert_eq!(ended(Box::new(in_a_solve)), (expected, 2));
    // Before anything was trained.
    assert_eq!(ended(Box::new(|_, asked| asked == 3)).1, 0);
}
