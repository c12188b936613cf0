//! Every Krylov method on small systems whose answers are known: against a dense factorization, against each other, and
//! where they must give up.

use crate::sequential::{Alternating, Diagonal, Rows, SYNCHRONISATIONS, Sequential, ilu0, jacobi};
use krylith::gallery::Problem;
use krylith::krylov::{
    BiCgStab, Cg, Fgmres, Finish, Gmres, KrylovMethod, Minres, Start, Status, System, for_method,
};
use krylith::observe::{History, Iteration, Observer};
use krylith::operator::{AnyScratch, Identity, LinearOperator};
use krylith::space::Space;
use krylith::stop::{IterationLimit, Residual, StopReason, StoppingCriterion};
use krylith::{BackendError, Csr};
use std::cell::Cell;
use std::ops::ControlFlow;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Method {
    Cg,
    BiCgStab,
    Minres,
    Gmres(usize),
    Fgmres(usize),
}

use Method as By;

const ALL: [Method; 7] =
    [By::Cg, By::BiCgStab, By::Minres, By::Gmres(7), By::Gmres(60), By::Fgmres(7), By::Fgmres(60)];

impl Method {
    fn solve<A: LinearOperator<Sequential>, M: LinearOperator<Sequential>>(
        self,
        a: &A,
        m: &M,
        b: &Vec<f64>,
        x: &mut Vec<f64>,
        stop: &mut impl StoppingCriterion<f64>,
        observer: &mut impl Observer<f64, Vec<f64>>,
    ) -> Result<Finish<f64>, BackendError> {
        let system = System { space: &Sequential, a, m };
        match self {
            By::Cg => Cg::new(system)?.solve(system, b, x, stop, observer),
            By::BiCgStab => BiCgStab::new(system)?.solve(system, b, x, stop, observer),
            By::Minres => Minres::new(system)?.solve(system, b, x, stop, observer),
            By::Gmres(restart) => Gmres::new(system, restart)?.solve(system, b, x, stop, observer),
            By::Fgmres(restart) => Fgmres::new(system, restart)?.solve(system, b, x, stop, observer),
        }
    }

    /// A matrix of the class that the method is for, and one whose ILU(0) may precondition it.
    fn matrices(self) -> (Csr<f64>, Csr<f64>) {
        match self {
            By::Cg => (definite(), definite()),
            By::Minres => (indefinite(), definite()),
            _ => (nonsymmetric(), nonsymmetric()),
        }
    }
}

/// Unknowns of the small systems.
const N: usize = 40;

/// Numbers in [−1, 1), the same every time.
fn random(seed: u64) -> impl FnMut() -> f64 {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
}

fn matrix(n: usize, entry: impl Fn(usize, usize) -> f64) -> Csr<f64> {
    let places = (0..n).flat_map(|i| (0..n).map(move |j| (i, j))).filter(|&(i, j)| entry(i, j) != 0.0);
    let (rows, columns): (Vec<u32>, Vec<u32>) = places.clone().map(|(i, j)| (i as u32, j as u32)).unzip();
    let values: Vec<f64> = places.map(|(i, j)| entry(i, j)).collect();
    Csr::from_triplets(n, n, &rows, &columns, &values).unwrap()
}

/// About five random entries per row beside the diagonal, which exceeds their sum by a little.
fn nonsymmetric() -> Csr<f64> {
    let mut next = random(1);
    let mut dense = vec![vec![0.0; N]; N];
    for i in 0..N {
        for _ in 0..5 {
            let j = ((next() + 1.0) / 2.0 * N as f64) as usize;
            dense[i][j] = next();
        }
        dense[i][i] = 0.0;
        dense[i][i] = dense[i].iter().map(|v| v.abs()).sum::<f64>() * 0.8 + 0.2;
    }
    matrix(N, |i, j| dense[i][j])
}

/// Symmetric, its diagonal larger than the rest of the row.
fn definite() -> Csr<f64> {
    let a = nonsymmetric();
    matrix(N, |i, j| {
        let off = |i, j| a.get(i, j) + a.get(j, i);
        if i != j {
            off(i, j)
        } else {
            0.05 + (0..N).filter(|&k| k != i).map(|k| off(i, k).abs()).sum::<f64>()
        }
    })
}

/// The same with a third of the signs on the diagonal turned.
fn indefinite() -> Csr<f64> {
    let a = definite();
    matrix(N, |i, j| if i == j && i % 3 == 0 { -a.get(i, i) } else { a.get(i, j) })
}

fn rhs(n: usize) -> Vec<f64> {
    let mut next = random(7);
    (0..n).map(|_| next()).collect()
}

/// Gauss with pivoting.
fn dense_solve(a: &Csr<f64>, b: &[f64]) -> Vec<f64> {
    let n = b.len();
    let mut rows: Vec<Vec<f64>> =
        (0..n).map(|i| (0..n).map(|j| a.get(i, j)).chain([b[i]]).collect()).collect();
    for k in 0..n {
        let pivot = (k..n).max_by(|&i, &j| rows[i][k].abs().total_cmp(&rows[j][k].abs())).unwrap();
        rows.swap(k, pivot);
        for i in k + 1..n {
            let factor = rows[i][k] / rows[k][k];
            for j in k..=n {
                rows[i][j] -= factor * rows[k][j];
            }
        }
    }
    let mut x = vec![0.0; n];
    for i in (0..n).rev() {
        x[i] = (rows[i][n] - (i + 1..n).map(|j| rows[i][j] * x[j]).sum::<f64>()) / rows[i][i];
    }
    x
}

fn norm(x: &[f64]) -> f64 {
    x.iter().map(|x| x * x).sum::<f64>().sqrt()
}

fn true_residual(a: &Csr<f64>, b: &[f64], x: &[f64]) -> f64 {
    let mut r = vec![0.0; b.len()];
    a.mul_vec(x, &mut r).unwrap();
    norm(&r.iter().zip(b).map(|(ax, b)| b - ax).collect::<Vec<_>>())
}

/// To ‖r‖ ≤ 1e-12 ‖b‖.
fn tight() -> (Residual<f64>, IterationLimit) {
    (Residual { rtol: 1e-12, atol: 0.0 }, IterationLimit(2000))
}

/// Residual norms of at most `iterations` iterations from zero.
fn history<M: LinearOperator<Sequential>>(by: Method, a: &Rows, m: &M, iterations: usize) -> Vec<f64> {
    let b = rhs(a.0.nrows());
    let mut history = History::with_capacity(iterations);
    let mut x = vec![0.0; b.len()];
    by.solve(a, m, &b, &mut x, &mut IterationLimit(iterations), &mut history).unwrap();
    history.residual_norms
}

/// Converges from two guesses to the dense answer, and reports at every iteration the norm of the true residual.
fn check<M: LinearOperator<Sequential>>(by: Method, a: &Rows, m: &M) {
    let b = rhs(N);
    let exact = dense_solve(&a.0, &b);
    let mut far = random(3);
    for guess in [vec![0.0; N], (0..N).map(|_| far()).collect()] {
        let mut x = guess.clone();
        let mut full = History::default();
        let finish = by.solve(a, m, &b, &mut x, &mut tight(), &mut full).unwrap();
        assert_eq!(finish.status, Status::Stopped(StopReason::ResidualMet), "{by:?}");
        assert_eq!(full.residual_norms.len(), finish.iterations + 1);
        assert_eq!(full.residual_norms.last(), Some(&finish.residual_norm));
        let error = norm(&x.iter().zip(&exact).map(|(x, e)| x - e).collect::<Vec<_>>());
        assert!(error < 1e-9 * norm(&exact), "{by:?}: error {error:e}");

        let largest = full.residual_norms.iter().copied().fold(0.0, f64::max);
        for k in 0..=finish.iterations.min(20) {
            let mut x = guess.clone();
            let finish = by.solve(a, m, &b, &mut x, &mut IterationLimit(k), &mut ()).unwrap();
            assert_eq!((finish.status, finish.iterations), (Status::Stopped(StopReason::IterationLimit), k));
            let difference = finish.residual_norm - true_residual(&a.0, &b, &x);
            assert!(difference.abs() < 1e-13 * largest, "{by:?} at {k}: off by {difference:e}");
            // at the end of a cycle GMRES reports the true residual, which a limit in its middle does not change
            assert!((finish.residual_norm - full.residual_norms[k]).abs() < 1e-13 * largest);
        }
    }
}

#[test]
fn every_method_with_every_preconditioner() {
    for by in ALL {
        let (a, near) = by.matrices();
        let a = Rows(a);
        check(by, &a, &Identity::new(N));
        check(by, &a, &jacobi(&a.0));
        check(by, &a, &ilu0(&near));
    }
}

#[test]
fn preconditioners_help() {
    let a = Rows("convection3d:8".parse::<Problem>().unwrap().generate().unwrap());
    let m = ilu0(&a.0);
    let b = rhs(a.0.nrows());
    for by in [By::BiCgStab, By::Gmres(30), By::Fgmres(30)] {
        let mut x = vec![0.0; b.len()];
        let plain = by.solve(&a, &Identity::new(b.len()), &b, &mut x, &mut tight(), &mut ()).unwrap();
        x.fill(0.0);
        let helped = by.solve(&a, &m, &b, &mut x, &mut tight(), &mut ()).unwrap();
        assert!(2 * helped.iterations < plain.iterations, "{by:?}: {helped:?} {plain:?}");
        assert!(true_residual(&a.0, &b, &x) < 2e-12 * norm(&b));
    }
}

#[test]
fn gmres_residuals_never_rise_and_end_after_n_steps() {
    let a = Rows(nonsymmetric());
    for restart in [1, 3, 7, 100] {
        let norms = history(By::Gmres(restart), &a, &Identity::new(N), 60);
        assert!(norms.windows(2).all(|w| w[1] <= w[0] * (1.0 + 1e-12) + 1e-14), "{restart}: {norms:?}");
    }
    let b = rhs(N);
    for by in [By::Gmres(N), By::Gmres(3 * N), By::Fgmres(3 * N)] {
        let mut x = vec![0.0; N];
        let finish = by.solve(&a, &Identity::new(N), &b, &mut x, &mut tight(), &mut ()).unwrap();
        assert_eq!(finish.status, Status::Stopped(StopReason::ResidualMet));
        assert!(finish.iterations <= N, "{}", finish.iterations);
    }
}

#[test]
fn flexible_gmres_equals_gmres_for_a_fixed_preconditioner() {
    let a = Rows(nonsymmetric());
    for restart in [4, 9, 40] {
        let fixed = history(By::Gmres(restart), &a, &jacobi(&a.0), 25);
        let flexible = history(By::Fgmres(restart), &a, &jacobi(&a.0), 25);
        assert_eq!(fixed.len(), flexible.len());
        for (f, g) in fixed.iter().zip(&flexible) {
            assert!((f - g).abs() <= 1e-12 * fixed[0], "{f:e} {g:e}");
        }
    }
}

#[test]
fn flexible_gmres_with_a_preconditioner_that_changes() {
    let a = Rows(nonsymmetric());
    let b = rhs(N);
    for restart in [5, 40] {
        let m = Alternating(jacobi(&a.0), ilu0(&a.0), Cell::new(false));
        let mut x = vec![0.0; N];
        let finish = By::Fgmres(restart).solve(&a, &m, &b, &mut x, &mut tight(), &mut ()).unwrap();
        assert_eq!(finish.status, Status::Stopped(StopReason::ResidualMet));
        assert!(true_residual(&a.0, &b, &x) < 2e-12 * norm(&b));
        assert!(finish.iterations < 40, "{}", finish.iterations);
    }
}

#[test]
fn minres_equals_gmres_on_a_symmetric_indefinite_matrix() {
    let a = Rows(indefinite());
    let short = history(By::Minres, &a, &Identity::new(N), 15);
    let long = history(By::Gmres(50), &a, &Identity::new(N), 15);
    assert_eq!((short.len(), long.len()), (16, 16));
    for (s, l) in short.iter().zip(&long) {
        assert!((s - l).abs() < 1e-8 * l, "{s:e} {l:e}");
    }
}

#[test]
fn observers_interrupt_and_keep_what_was_reached() {
    for by in ALL {
        let a = Rows(by.matrices().0);
        let b = rhs(N);
        let mut x = vec![0.0; N];
        let mut third = |i: &Iteration<f64>| match i.index {
            3 => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        };
        let finish = by.solve(&a, &Identity::new(N), &b, &mut x, &mut tight(), &mut third).unwrap();
        assert_eq!((finish.status, finish.iterations), (Status::Interrupted, 3), "{by:?}");
        assert!((true_residual(&a.0, &b, &x) - finish.residual_norm).abs() < 1e-12 * norm(&b));
    }
}

#[test]
fn a_zero_right_hand_side_and_an_exact_guess_need_no_iteration() {
    for by in ALL {
        let a = Rows(by.matrices().0);
        let mut x = vec![0.0; N];
        let finish = by.solve(&a, &Identity::new(N), &vec![0.0; N], &mut x, &mut tight(), &mut ()).unwrap();
        assert_eq!((finish.status, finish.iterations), (Status::Stopped(StopReason::ResidualMet), 0));
        assert_eq!(x, vec![0.0; N]);
        // a residual of zero ends it, whatever the criterion
        let (one, mut b) = (vec![1.0; N], vec![0.0; N]);
        a.apply(&Sequential, &one, &mut b, &mut ()).unwrap();
        x.fill(1.0);
        let finish = by.solve(&a, &Identity::new(N), &b, &mut x, &mut IterationLimit(9), &mut ()).unwrap();
        assert_eq!((finish.status, finish.iterations), (Status::Stopped(StopReason::ResidualMet), 0));
        assert_eq!(x, one);
    }
}

#[test]
fn numbers_that_are_not_finite_are_named_and_kept_out_of_x() {
    for by in ALL {
        let a = by.matrices().0;
        let mut b = rhs(N);
        let mut x = vec![0.0; N];
        // in the preconditioner: x stays
        let m = Diagonal((0..N).map(|i| if i == 4 { f64::INFINITY } else { 1.0 }).collect());
        let finish = by.solve(&Rows(a.clone()), &m, &b, &mut x, &mut tight(), &mut ()).unwrap();
        assert_eq!((finish.status, finish.iterations), (Status::NotFinite, 0), "{by:?}");
        assert_eq!(x, vec![0.0; N]);
        // in b
        b[5] = f64::NAN;
        let finish = by.solve(&Rows(a), &Identity::new(N), &b, &mut x, &mut tight(), &mut ()).unwrap();
        assert_eq!((finish.status, finish.iterations), (Status::NotFinite, 0));
        assert_eq!(x, vec![0.0; N]);
    }
}

/// Solves from zero to the end of 50 iterations, checks that x is finite and its residual the reported one.
fn ends(by: Method, a: Csr<f64>, b: &Vec<f64>) -> (Finish<f64>, Vec<f64>) {
    let mut x = vec![0.0; b.len()];
    let mut stop = (Residual { rtol: 1e-10, atol: 0.0 }, IterationLimit(50));
    let a = Rows(a);
    let finish = by.solve(&a, &Identity::new(b.len()), b, &mut x, &mut stop, &mut ()).unwrap();
    assert!(x.iter().all(|x| x.is_finite()), "{by:?}: {x:?}");
    let difference = finish.residual_norm - true_residual(&a.0, b, &x);
    assert!(difference.abs() < 1e-12 * norm(b), "{by:?}: {difference:e}");
    (finish, x)
}

fn breakdown(what: &'static str) -> Status {
    Status::Breakdown { what }
}

#[test]
fn bicgstab_breaks_down() {
    // v = A e₁ is orthogonal to r̂ = e₁
    let turn = || matrix(2, |i, j| [[0.0, 1.0], [-1.0, 0.0]][i][j]);
    let (finish, x) = ends(By::BiCgStab, turn(), &vec![1.0, 0.0]);
    assert_eq!((finish.status, finish.iterations), (breakdown("r̂ᴴv = 0"), 0));
    assert_eq!(x, [0.0, 0.0]);
    // α = 1 and s = (0, −1): t = A s is orthogonal to s, and the half step is kept
    let a = || matrix(2, |i, j| [[1.0, -1.0], [1.0, 0.0]][i][j]);
    let (finish, x) = ends(By::BiCgStab, a(), &vec![1.0, 0.0]);
    assert_eq!((finish.status, finish.iterations), (breakdown("ω = 0"), 1));
    assert_eq!((finish.residual_norm, x), (1.0, vec![1.0, 0.0]));
    // s = 0: the half step is the whole solution
    let (finish, x) = ends(By::BiCgStab, matrix(2, |i, j| if i == j { 4.0 } else { 0.0 }), &vec![1.0, 2.0]);
    assert_eq!((finish.status, finish.iterations), (Status::Stopped(StopReason::ResidualMet), 1));
    assert_eq!(x, [0.25, 0.5]);
    // GMRES needs two steps for each of the matrices, and stagnates where it restarts after one
    for by in [By::Gmres(2), By::Gmres(10), By::Fgmres(2)] {
        for a in [turn(), a()] {
            let (finish, _) = ends(by, a, &vec![1.0, 0.0]);
            assert_eq!((finish.status, finish.iterations), (Status::Stopped(StopReason::ResidualMet), 2));
        }
    }
    let (finish, _) = ends(By::Gmres(1), turn(), &vec![1.0, 0.0]);
    assert_eq!((finish.status, finish.residual_norm), (Status::Stopped(StopReason::IterationLimit), 1.0));
}

#[test]
fn bicgstab_loses_its_shadow() {
    // r̂ᴴv = 1, α = 1, s = (0, −1, 0), t = A s with tᴴs = 1; then r = s − ω t = (0, −½, ½) is orthogonal to r̂ = e₁.
    // Begun again in the plane of the last two coordinates, which A maps to itself, two more iterations reach the answer.
    let a = matrix(3, |i, j| [[1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [0.0, 1.0, 1.0]][i][j]);
    let (finish, x) = ends(By::BiCgStab, a, &vec![1.0, 0.0, 0.0]);
    assert_eq!((finish.status, finish.iterations), (Status::Stopped(StopReason::ResidualMet), 3));
    assert!((x[0] - 1.0).abs() + (x[1] + 1.0).abs() + (x[2] - 1.0).abs() < 1e-9, "{x:?}");
    // Without any rounding ρ = 0 after both of the first iterations, and ‖r‖ is not halved by the second.
    let a = matrix(3, |i, j| [[-2.0, -2.0, 2.0], [2.0, 2.0, -2.0], [2.0, -2.0, 0.0]][i][j]);
    let (finish, _) = ends(By::BiCgStab, a, &vec![1.0, 0.0, 0.0]);
    assert_eq!((finish.status, finish.iterations), (breakdown("ρ = 0"), 2));
}

#[test]
fn singular_matrices() {
    // consistent: found; b not in the range: the least squares, then the end
    let a = || matrix(4, |i, j| if i == j { [1.0, 2.0, -3.0, 0.0][i] } else { 0.0 });
    for by in [By::Minres, By::Gmres(3), By::Gmres(10), By::Fgmres(10)] {
        let (finish, x) = ends(by, a(), &vec![1.0, 1.0, 1.0, 0.0]);
        assert_eq!(
            (finish.status, finish.iterations),
            (Status::Stopped(StopReason::ResidualMet), 3),
            "{by:?}"
        );
        assert!((x[1] - 0.5).abs() < 1e-12);
    }
    for by in [By::Minres, By::Gmres(10), By::Fgmres(10)] {
        let (finish, _) = ends(by, a(), &vec![1.0, 1.0, 1.0, 0.5]);
        let what = if by == By::Minres { "A M⁻¹ r = 0" } else { "H is singular" };
        assert_eq!(finish.status, breakdown(what), "{by:?}");
        assert!((finish.residual_norm - 0.5).abs() < 1e-10, "{by:?}: {finish:?}");
    }
    // A b = 0: nothing can be done
    let nilpotent = || matrix(2, |i, j| if (i, j) == (0, 1) { 1.0 } else { 0.0 });
    for by in [By::BiCgStab, By::Gmres(5), By::Fgmres(5)] {
        let (finish, x) = ends(by, nilpotent(), &vec![1.0, 0.0]);
        assert!(matches!(finish.status, Status::Breakdown { .. }), "{by:?}: {finish:?}");
        assert_eq!((finish.iterations, x), (0, vec![0.0, 0.0]));
    }
    let zero = || matrix(2, |i, j| if (i, j) == (0, 0) { 1.0 } else { 0.0 });
    let (finish, _) = ends(By::Minres, zero(), &vec![0.0, 1.0]);
    assert_eq!((finish.status, finish.iterations), (breakdown("A M⁻¹ r = 0"), 0));
    let (finish, _) = ends(By::Cg, zero(), &vec![0.0, 1.0]);
    assert_eq!((finish.status, finish.iterations), (Status::IndefiniteOperator, 0));
}

#[test]
fn a_singular_laplacian() {
    // free ends: A 1 = 0
    let n = 30;
    let a = Rows(matrix(n, |i, j| match i.abs_diff(j) {
        0 => {
            if i == 0 || i == n - 1 {
                1.0
            } else {
                2.0
            }
        }
        1 => -1.0,
        _ => 0.0,
    }));
    let m = Identity::new(n);
    let mut consistent = vec![0.0; n];
    a.apply(&Sequential, &rhs(n), &mut consistent, &mut ()).unwrap();
    for by in [By::Cg, By::BiCgStab, By::Minres, By::Gmres(60), By::Fgmres(60)] {
        let mut x = vec![0.0; n];
        let mut stop = (Residual { rtol: 1e-8, atol: 0.0 }, IterationLimit(300));
        let finish = by.solve(&a, &m, &consistent, &mut x, &mut stop, &mut ()).unwrap();
        assert_eq!(finish.status, Status::Stopped(StopReason::ResidualMet), "{by:?}");
        assert!(true_residual(&a.0, &consistent, &x) < 2e-8 * norm(&consistent), "{by:?}");
    }
    // no solution: nobody claims one, nobody leaves a NaN
    let b = vec![1.0; n].into_iter().enumerate().map(|(i, v)| v + consistent[i]).collect();
    for by in ALL {
        let mut x = vec![0.0; n];
        let mut stop = (Residual { rtol: 1e-8, atol: 0.0 }, IterationLimit(300));
        let finish = by.solve(&a, &m, &b, &mut x, &mut stop, &mut ()).unwrap();
        assert_ne!(finish.status, Status::Stopped(StopReason::ResidualMet), "{by:?}");
        assert!(x.iter().all(|x| x.is_finite()), "{by:?}: {finish:?}");
        // GMRES knows the least squares for what they are
        if let By::Gmres(_) | By::Fgmres(_) = by {
            let least = (n as f64).sqrt();
            assert!((true_residual(&a.0, &b, &x) - least).abs() < 1e-8, "{by:?}: {finish:?}");
            assert!((finish.residual_norm - least).abs() < 1e-8, "{by:?}: {finish:?}");
        }
        if let By::Gmres(60) | By::Fgmres(60) = by {
            assert_eq!(finish.status, breakdown("H is singular"));
        }
    }
}

#[test]
fn going_on_after_the_space_is_exhausted_does_no_harm() {
    // three different eigenvalues: exhausted after three steps; a limit alone asks for more
    let a = Rows(matrix(9, |i, j| if i == j { [1.0, -2.0, 4.0][i % 3] } else { 0.0 }));
    for by in [By::Minres, By::Gmres(3), By::Gmres(20), By::Fgmres(20)] {
        let mut x = vec![0.0; 9];
        let limit = &mut IterationLimit(60);
        let finish = by.solve(&a, &Identity::new(9), &vec![1.0; 9], &mut x, limit, &mut ()).unwrap();
        assert!(finish.iterations >= 3, "{by:?}: {finish:?}");
        assert!(finish.residual_norm < 1e-14, "{by:?}: {finish:?}");
        assert_ne!(finish.status, breakdown("H is singular"));
        for i in 0..9 {
            assert!((x[i] - [1.0, -0.5, 0.25][i % 3]).abs() < 1e-14, "{by:?}");
        }
    }
}

#[test]
fn going_on_after_convergence_does_no_harm() {
    // the residual is rounding long before the limit, and the space of all 40 dimensions is used up more than once
    let a = Rows(nonsymmetric());
    let b = rhs(N);
    for by in [By::Gmres(7), By::Gmres(60), By::Fgmres(60)] {
        let mut x = vec![0.0; N];
        let finish = by.solve(&a, &jacobi(&a.0), &b, &mut x, &mut IterationLimit(150), &mut ()).unwrap();
        assert!(matches!(finish.status, Status::Stopped(_)), "{by:?}: {finish:?}");
        assert!(true_residual(&a.0, &b, &x) < 1e-14 * norm(&b), "{by:?}: {finish:?}");
    }
}

#[test]
fn an_indefinite_preconditioner_is_named() {
    let b = rhs(N);
    let m = Diagonal((0..N).map(|i| if i == 0 { -100.0 } else { 1e-3 }).collect());
    for by in [By::Cg, By::Minres] {
        let mut x = vec![0.0; N];
        let a = Rows(by.matrices().0);
        let finish = by.solve(&a, &m, &b, &mut x, &mut tight(), &mut ()).unwrap();
        assert_eq!((finish.status, finish.iterations), (Status::IndefinitePreconditioner, 0));
    }
}

#[test]
fn a_workspace_serves_again_after_a_failure() {
    let a = Rows(indefinite());
    let m = Identity::new(N);
    let system = System { space: &Sequential, a: &a, m: &m };
    let b = rhs(N);
    let mut bad = b.clone();
    bad[3] = f64::NAN;
    macro_rules! again {
        ($workspace:expr) => {
            let mut used = $workspace.unwrap();
            let (mut x, mut y) = (vec![0.0; N], vec![0.0; N]);
            used.solve(system, &bad, &mut x, &mut tight(), &mut ()).unwrap();
            x.fill(f64::NAN);
            used.solve(system, &b, &mut x, &mut tight(), &mut ()).unwrap();
            x.fill(0.0);
            used.solve(system, &b, &mut x, &mut IterationLimit(12), &mut ()).unwrap();
            $workspace.unwrap().solve(system, &b, &mut y, &mut IterationLimit(12), &mut ()).unwrap();
            assert_eq!(x, y);
            let short = vec![1.0; 3];
            let error = used.solve(system, &short, &mut x, &mut tight(), &mut ());
            assert!(matches!(error, Err(BackendError::Size { .. })));
        };
    }
    again!(Cg::new(system));
    again!(BiCgStab::new(system));
    again!(Minres::new(system));
    again!(Gmres::new(system, 5));
    again!(Fgmres::new(system, 5));
}

/// Counts its applications.
struct Counted<'a, O>(&'a O, Cell<usize>);

impl<O: LinearOperator<Sequential>> LinearOperator<Sequential> for Counted<'_, O> {
    type Scratch = O::Scratch;

    fn domain(&self) -> usize {
        self.0.domain()
    }

    fn range(&self) -> usize {
        self.0.range()
    }

    fn scratch(&self, space: &Sequential) -> Result<O::Scratch, BackendError> {
        self.0.scratch(space)
    }

    fn apply(
        &self,
        space: &Sequential,
        x: &Vec<f64>,
        y: &mut Vec<f64>,
        scratch: &mut O::Scratch,
    ) -> Result<(), BackendError> {
        self.1.set(self.1.get() + 1);
        self.0.apply(space, x, y, scratch)
    }
}

#[test]
fn an_iteration_costs_what_the_table_says() {
    // the difference between 9 and 4 iterations, none of them the last of a cycle
    for (by, a_each, m_each, synchronisations) in [
        (By::Cg, 1, 1, 3),
        (By::Minres, 1, 1, 3),
        (By::BiCgStab, 2, 2, 3),
        (By::Gmres(12), 1, 1, 2),
        (By::Fgmres(12), 1, 1, 2),
    ] {
        let costs = [4, 9].map(|limit| {
            let rows = Rows(by.matrices().0);
            let m = jacobi(&rows.0);
            let (a, m) = (Counted(&rows, Cell::new(0)), Counted(&m, Cell::new(0)));
            let before = SYNCHRONISATIONS.get();
            let mut x = vec![0.0; N];
            by.solve(&a, &m, &rhs(N), &mut x, &mut IterationLimit(limit), &mut ()).unwrap();
            [a.1.get(), m.1.get(), SYNCHRONISATIONS.get() - before]
        });
        let each = [0, 1, 2].map(|k| costs[1][k] - costs[0][k]);
        assert_eq!(each, [5 * a_each, 5 * m_each, 5 * synchronisations], "{by:?}");
    }
}

/// A method from outside the crate: x += M⁻¹ (b − A x).
struct Richardson {
    r: Vec<f64>,
    z: Vec<f64>,
    of_a: AnyScratch,
    of_m: AnyScratch,
}

impl Richardson {
    fn new(System { space, a, m }: System<'_, Sequential>) -> Result<Self, BackendError> {
        let layout = a.domain();
        let (r, z) = (space.zeros(&layout)?, space.zeros(&layout)?);
        Ok(Richardson { r, z, of_a: a.scratch(space)?, of_m: m.scratch(space)? })
    }
}

impl KrylovMethod<Sequential> for Richardson {
    fn run(
        &mut self,
        _: Start,
        System { space, a, m }: System<'_, Sequential>,
        b: &Vec<f64>,
        x: &mut Vec<f64>,
        stop: &mut dyn StoppingCriterion<f64>,
        observer: &mut dyn Observer<f64, Vec<f64>>,
    ) -> Result<Finish<f64>, BackendError> {
        let Richardson { r, z, of_a, of_m } = self;
        let rhs_norm = space.norm(b)?;
        for index in 0.. {
            a.apply(space, x, r, of_a)?;
            space.axpby(1.0, b, -1.0, r)?;
            let residual_norm = space.norm(r)?;
            let at = Iteration { index, residual_norm, rhs_norm };
            let observed = observer.iterated(&at);
            let status = stop.check(&at).map(Status::Stopped);
            if let Some(status) = status.or(observed.is_break().then_some(Status::Interrupted)) {
                return Ok(Finish { status, iterations: index, residual_norm });
            }
            m.apply(space, r, z, of_m)?;
            space.axpby(1.0, z, 1.0, x)?;
        }
        unreachable!("a criterion ends it")
    }

    fn kept(&self) -> Option<(&Vec<f64>, f64)> {
        None
    }
}

/// It runs wherever one of the library's does, and takes more iterations than conjugate gradients.
#[test]
fn a_method_from_outside() {
    let a = definite();
    let (m, rows, b) = (ilu0(&a), Rows(a.clone()), vec![1.0; N]);
    let system = System { space: &Sequential, a: &rows, m: &m };
    let mut counts = Vec::new();
    let methods: [Box<dyn KrylovMethod<Sequential>>; 2] =
        [Box::new(Richardson::new(system).unwrap()), for_method(krylith::Method::Cg, system).unwrap()];
    for mut method in methods {
        let (mut x, mut history) = (vec![0.0; N], History::default());
        let mut stop = (Residual { rtol: 1e-10, atol: 0.0 }, IterationLimit(500));
        let finish = method.run(Start::Fresh, system, &b, &mut x, &mut stop, &mut history).unwrap();
        assert_eq!(finish.status, Status::Stopped(StopReason::ResidualMet));
        let mut product = vec![0.0; N];
        a.mul_vec(&x, &mut product).unwrap();
        assert!(product.iter().zip(&b).all(|(p, b)| (p - b).abs() < 1e-8));
        counts.push(finish.iterations);
    }
    assert!(counts[0] > counts[1] && counts[1] > 1, "{counts:?}");
}
