//! The engine on threads: the space, plans, incomplete factors, and solves that are the same to the bit on any number of
//! threads and any plan.

use crate::traits::conformance;
use krylith::gallery::Problem;
use krylith::krylov::{BiCgStab, Cg, Gmres, Status, System};
use krylith::matrix::Triangle;
use krylith::operator::{Identity, LinearOperator, Preconditioner, Recipe, Symbolic, UpdateForm};
use krylith::precond::{Incomplete, Jacobi};
use krylith::schedule::{Plan, Schedule};
use krylith::space::{Space, Threads};
use krylith::stop::{IterationLimit, Residual, StopReason};
use krylith::{Csr, SetupError};

const SCHEDULES: [Schedule; 3] = [Schedule::Auto, Schedule::Levels, Schedule::PointToPoint];

fn problem(name: &str) -> Csr<f64> {
    name.parse::<Problem>().unwrap().generate().unwrap()
}

/// A matrix without any order to it: entries anywhere, diagonally dominant.
fn scattered(n: usize, symmetric: bool) -> Csr<f64> {
    let hash = |k: usize| ((k as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize;
    let (mut rows, mut columns, mut values) = (vec![], vec![], vec![]);
    for i in 0..n {
        rows.push(i as u32);
        columns.push(i as u32);
        values.push(10.0);
        for k in 0..3 {
            let (j, v) = (hash(3 * i + k) % n, -1.0 + (hash(7 * i + k) % 100) as f64 / 200.0);
            rows.push(i as u32);
            columns.push(j as u32);
            values.push(v);
            if symmetric {
                rows.push(j as u32);
                columns.push(i as u32);
                values.push(v);
            }
        }
    }
    Csr::from_triplets(n, n, &rows, &columns, &values).unwrap()
}

#[test]
fn the_space_conforms() {
    for threads in [1, 2, 3] {
        conformance::check(&Threads::new(threads), &5000, &5001, Vec::clone, |k, x| x[k]);
    }
}

/// Sums that depend on their order.
#[test]
fn dots_are_the_same_on_any_number_of_threads() {
    let x: Vec<f64> = (0..100_003u64).map(|k| ((k * 7919) as f64).sin()).collect();
    let y: Vec<f64> = (0..100_003u64).map(|k| ((k * 104_729) as f64).cos() * 1e3).collect();
    let run = |threads| {
        let space = Threads::new(threads);
        let mut out = [0.0; 2];
        space.dots(&[(&x, &y), (&y, &y)], &mut out).unwrap();
        (out.map(f64::to_bits), space.norm(&x).unwrap().to_bits())
    };
    let alone = run(1);
    for threads in [2, 3, 4, 8] {
        assert_eq!(run(threads), alone, "{threads} threads");
    }
}

/// The dense matrix (I + L) D (I + U).
fn product(l: &Csr<f64>, inverse: &[f64], u: &Csr<f64>) -> Vec<Vec<f64>> {
    let n = inverse.len();
    let unit = |a: &Csr<f64>, i: usize, j: usize| if i == j { 1.0 } else { a.get(i, j) };
    let entry = |i, j| (0..n).map(|k| unit(l, i, k) / inverse[k] * unit(u, k, j)).sum();
    (0..n).map(|i| (0..n).map(|j| entry(i, j)).collect()).collect()
}

#[test]
fn factors_equal_the_matrix_on_its_pattern() {
    let space = Threads::new(2);
    for a in [problem("poisson2d:7x9"), problem("hpcg:4"), problem("convection3d:5"), scattered(90, false)] {
        let factor = Incomplete::ilu(0).analyze(&space, &a).unwrap().factor(&space, &a).unwrap();
        let (l, inverse, u) = factor.parts();
        let m = product(l, inverse, u);
        for i in 0..a.nrows() {
            for (&j, &v) in a.row(i).0.iter().zip(a.row(i).1) {
                assert!((m[i][j as usize] - v).abs() < 1e-13 * 26.0, "({i}, {j})");
            }
        }
        assert_eq!(factor.nnz(), a.nnz());
    }
    for a in [problem("poisson2d:7x9"), problem("hpcg:4"), scattered(90, true)] {
        let factor = Incomplete::ic(0).analyze(&space, &a).unwrap().factor(&space, &a).unwrap();
        let (l, inverse, _) = factor.parts();
        let m = product(l, inverse, &l.transpose());
        for i in 0..a.nrows() {
            for (&j, &v) in a.row(i).0.iter().zip(a.row(i).1) {
                assert!((m[i][j as usize] - v).abs() < 1e-13 * 26.0, "({i}, {j})");
            }
        }
    }
}

/// A = [4 2 0; 2 5 2; 0 2 5] has no fill: D = (4, 4, 4), L = [1/2; 0 1/2].
#[test]
fn a_factor_by_hand() {
    let space = Threads::new(1);
    let values = [4.0, 2.0, 2.0, 5.0, 2.0, 2.0, 5.0];
    let a = Csr::from_triplets(3, 3, &[0, 0, 1, 1, 1, 2, 2], &[0, 1, 0, 1, 2, 1, 2], &values).unwrap();
    let ic = Incomplete::ic(0).analyze(&space, &a).unwrap().factor(&space, &a).unwrap();
    assert_eq!((ic.parts().0.values(), ic.parts().1), (&[0.5, 0.5][..], &[0.25; 3][..]));
    let ilu = Incomplete::ilu(0).analyze(&space, &a).unwrap().factor(&space, &a).unwrap();
    assert_eq!((ilu.parts().0.values(), ilu.parts().2.values()), (&[0.5, 0.5][..], &[0.5, 0.5][..]));
    let mut z = vec![0.0; 3];
    // M = A, so M⁻¹ (6, 9, 7) = (1, 1, 1).
    ic.apply(&space, &vec![6.0, 9.0, 7.0], &mut z, &mut ic.scratch(&space).unwrap()).unwrap();
    assert_eq!(z, [1.0; 3]);
}

/// The application is that of the dense factors, and the same to the bit on every plan and number of threads.
#[test]
fn sweeps_are_the_same_on_every_plan_and_number_of_threads() {
    for a in [problem("poisson3d:13"), problem("hpcg:9"), problem("fem2d:40"), scattered(3000, false)] {
        let x: Vec<f64> = (0..a.nrows()).map(|i| ((i * 31) as f64).sin()).collect();
        let run = |threads, schedule| {
            let space = Threads::new(threads);
            let factor = Incomplete::ilu(0)
                .schedule(schedule)
                .analyze(&space, &a)
                .unwrap()
                .factor(&space, &a)
                .unwrap();
            let mut scratch = factor.scratch(&space).unwrap();
            let mut z = vec![0.0; a.nrows()];
            // Twice: counters of progress go on from one run to the next.
            for _ in 0..2 {
                z.fill(f64::NAN);
                factor.apply(&space, &x, &mut z, &mut scratch).unwrap();
            }
            z
        };
        let alone = run(1, Schedule::Auto);
        assert!(alone.iter().all(|z| z.is_finite()));
        for threads in [2, 3, 4, 8] {
            for schedule in SCHEDULES {
                assert_eq!(run(threads, schedule), alone, "{threads} threads, {schedule:?}");
            }
        }
    }
}

#[test]
fn plans_say_what_they_are() {
    let a = problem("poisson3d:20");
    let name = |threads, schedule| {
        let plan = Plan::new(a.pattern(), Triangle::Lower, threads, schedule).unwrap();
        assert!(plan.reason().len() > 10);
        plan.name()
    };
    assert_eq!(name(1, Schedule::Levels), "sequential");
    assert_eq!(name(2, Schedule::Levels), "levels");
    assert_eq!(name(2, Schedule::PointToPoint), "p2p");
    // A chain has nothing to divide.
    let chain = Csr::from_rows(
        50_000,
        50_000,
        |i| 1 + usize::from(i > 0),
        |i, c, v: &mut [f64]| {
            v.fill(1.0);
            c[c.len() - 1] = i as u32;
            c[0] = i.saturating_sub(1) as u32;
        },
    );
    let plan = Plan::new(chain.unwrap().pattern(), Triangle::Lower, 4, Schedule::Auto).unwrap();
    assert_eq!(plan.name(), "sequential", "{}", plan.reason());
}

#[test]
fn refactoring_is_factoring_anew() {
    let space = Threads::new(3);
    let (mut a, b) = (problem("jump3d:8"), problem("jump3d:8"));
    a.values_mut().iter_mut().enumerate().for_each(|(k, v)| *v *= 1.0 + 1e-3 * ((k % 7) as f64));
    let symbolic = Incomplete::ilu(0).analyze(&space, &b).unwrap();
    let mut factor = symbolic.factor(&space, &b).unwrap();
    // The pattern is equal, not the same allocation.
    factor.refactor(&space, &a).unwrap();
    let anew = symbolic.factor(&space, &a).unwrap();
    assert_eq!(factor.parts().0, anew.parts().0);
    assert_eq!(factor.parts().1, anew.parts().1);
    let other = problem("poisson3d:8");
    let smaller = problem("poisson3d:7");
    assert!(factor.refactor(&space, &other).is_ok(), "the same stencil on the same grid");
    assert_eq!(factor.refactor(&space, &smaller), Err(SetupError::PatternChanged));
}

#[test]
fn of_several_bad_pivots_the_smallest_row_is_told() {
    let mut a = problem("poisson3d:12");
    for row in [1000, 321, 1500] {
        let place = a.pattern().find(row, row).unwrap();
        a.values_mut()[place] = -50.0;
    }
    for threads in [1, 2, 4] {
        for schedule in SCHEDULES {
            let space = Threads::new(threads);
            let error = Incomplete::ic(0)
                .schedule(schedule)
                .analyze(&space, &a)
                .unwrap()
                .factor(&space, &a)
                .map(|_| ())
                .unwrap_err();
            let SetupError::BadPivot { row, value } = error else { panic!("{error}") };
            assert!(row == 321 && value < -50.0, "{row} {value}");
        }
    }
    let space = Threads::new(2);
    let zero = Csr::from_triplets(2, 2, &[0, 0, 1, 1], &[0, 1, 0, 1], &[0.0, 1.0, 1.0, 1.0]).unwrap();
    let error = Incomplete::ilu(0).analyze(&space, &zero).unwrap().factor(&space, &zero).map(|_| ());
    assert_eq!(error, Err(SetupError::BadPivot { row: 0, value: 0.0 }));
    let error = Jacobi::default().analyze(&space, &zero).unwrap().factor(&space, &zero).map(|_| ());
    assert_eq!(error, Err(SetupError::BadPivot { row: 0, value: 0.0 }));
    let hole = Csr::from_triplets(2, 2, &[0, 1], &[0, 0], &[1.0, 1.0]).unwrap();
    let error = Jacobi::default().analyze(&space, &hole).map(|_| ());
    assert_eq!(error, Err(SetupError::MissingDiagonal { row: 1 }));
    // A missing diagonal is a zero that elimination may fill: here it becomes 0 − 1 · 1.
    let corner = Csr::from_triplets(2, 2, &[0, 0, 1], &[0, 1, 0], &[1.0, 1.0, 1.0]).unwrap();
    let error = Incomplete::ic(0).analyze(&space, &corner).unwrap().factor(&space, &corner).map(|_| ());
    assert_eq!(error, Err(SetupError::BadPivot { row: 1, value: -1.0 }));
    let ilu = Incomplete::ilu(0).analyze(&space, &corner).unwrap().factor(&space, &corner).unwrap();
    assert_eq!(ilu.parts().1, [1.0, -1.0]);
    let robust = Jacobi { robust: true }.analyze(&space, &hole).unwrap().factor(&space, &hole).unwrap();
    let mut z = vec![0.0; 2];
    robust.apply(&space, &vec![3.0, 4.0], &mut z, &mut ()).unwrap();
    assert_eq!(z, [3.0, 4.0]);
}

/// x, iterations and status of a solve of A x = A·1 to 1e-7 from zero.
fn solve<M: LinearOperator<Threads>>(
    space: &Threads,
    a: &Csr<f64>,
    m: &M,
    method: &str,
) -> (Vec<f64>, usize, Status) {
    let system = System { space, a, m };
    let mut b = vec![0.0; a.nrows()];
    a.apply(space, &vec![1.0; a.nrows()], &mut b, &mut ()).unwrap();
    let mut x = vec![0.0; a.nrows()];
    let mut stop = (Residual { rtol: 1e-7, atol: 0.0 }, IterationLimit(2000));
    let finish = match method {
        "cg" => Cg::new(system).unwrap().solve(system, &b, &mut x, &mut stop, &mut ()),
        "bicgstab" => BiCgStab::new(system).unwrap().solve(system, &b, &mut x, &mut stop, &mut ()),
        _ => Gmres::new(system, 30).unwrap().solve(system, &b, &mut x, &mut stop, &mut ()),
    };
    let finish = finish.unwrap();
    (x, finish.iterations, finish.status)
}

#[test]
fn solves_are_the_same_on_every_plan_and_number_of_threads() {
    let met = Status::Stopped(StopReason::ResidualMet);
    for (name, method) in [
        ("poisson3d:16", "cg"),
        ("fem2d:50", "cg"),
        ("convection3d:15", "bicgstab"),
        ("convection3d:15", "gmres"),
    ] {
        let a = problem(name);
        let run = |threads, schedule| {
            let space = Threads::new(threads);
            if method == "cg" {
                let m = Incomplete::ic(0)
                    .schedule(schedule)
                    .analyze(&space, &a)
                    .unwrap()
                    .factor(&space, &a)
                    .unwrap();
                solve(&space, &a, &m, method)
            } else {
                let m = Incomplete::ilu(0)
                    .schedule(schedule)
                    .analyze(&space, &a)
                    .unwrap()
                    .factor(&space, &a)
                    .unwrap();
                solve(&space, &a, &m, method)
            }
        };
        let alone = run(1, Schedule::Auto);
        assert_eq!(alone.2, met, "{name} {method}");
        assert!(alone.0.iter().all(|x| (x - 1.0).abs() < 1e-4), "{name} {method}");
        for threads in [2, 3, 4, 8] {
            for schedule in [Schedule::Levels, Schedule::PointToPoint] {
                assert_eq!(run(threads, schedule), alone, "{name} {method}, {threads} threads, {schedule:?}");
            }
        }
    }
}

#[test]
fn single_precision_solves_to_its_own_accuracy() {
    let a = problem("poisson3d:10").cast::<f32>();
    let space = Threads::<f32>::new(2);
    let m = Incomplete::ic(0).analyze(&space, &a).unwrap().factor(&space, &a).unwrap();
    let system = System { space: &space, a: &a, m: &m };
    let mut b = vec![0.0f32; a.nrows()];
    a.apply(&space, &vec![1.0; a.nrows()], &mut b, &mut ()).unwrap();
    let mut x = vec![0.0f32; a.nrows()];
    let mut stop = (Residual { rtol: 1e-5, atol: 0.0 }, IterationLimit(100));
    let finish = Cg::new(system).unwrap().solve(system, &b, &mut x, &mut stop, &mut ()).unwrap();
    assert_eq!(finish.status, Status::Stopped(StopReason::ResidualMet));
    assert!(x.iter().all(|x| (x - 1.0).abs() < 1e-3));
}

/// An update of r with M⁻¹ r and two products in one pass has the bits of its parts, for M = I and for a diagonal.
#[test]
fn updates_with_a_diagonal_are_those_in_parts() {
    let a = problem("jump3d:20");
    let n = a.nrows();
    let vector = |k: usize| (0..n).map(|i| ((i * k) as f64).sin()).collect::<Vec<_>>();
    for threads in [1, 2, 3] {
        let space = Threads::new(threads);
        let jacobi = Jacobi::default().analyze(&space, &a).unwrap().factor(&space, &a).unwrap();
        let (q, mut r, mut z) = (vector(3), vector(5), vector(7));
        let (mut r2, mut z2) = (r.clone(), z.clone());
        assert_eq!(jacobi.update_form(), UpdateForm::OnePass);
        let sums = jacobi.update_apply_dots(&space, (-0.3, &q), &mut r, &mut z, &mut ()).unwrap();
        space.axpby(-0.3, &q, 1.0, &mut r2).unwrap();
        jacobi.apply(&space, &r2, &mut z2, &mut ()).unwrap();
        assert_eq!(sums, [space.dot(&r2, &r2).unwrap(), space.dot(&r2, &z2).unwrap()]);
        assert_eq!((&r, &z), (&r2, &z2));

        let none = Identity::<Threads<f64>>::new(n);
        assert_eq!(none.update_form(), UpdateForm::Identity);
        let sums = none.update_apply_dots(&space, (0.7, &q), &mut r, &mut z, &mut ()).unwrap();
        space.axpby(0.7, &q, 1.0, &mut r2).unwrap();
        assert_eq!((sums, &r), ([space.dot(&r2, &r2).unwrap(); 2], &r2));
    }
}
