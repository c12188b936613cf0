//! The traits, proven: one conjugate-gradient method runs unchanged on four places and kinds of matrix that have little in
//! common, each small but whole.
//!
//! * `threads`: compressed rows on threads, reductions in fixed chunks;
//! * `stencil`: a matrix without index arrays on the same space;
//! * `ranks`: a matrix in two parts, each owned by a thread that shares nothing and exchanges messages, as processes would;
//! * `whole`: what is found out about a matrix in parts, which is what one process finds out;
//! * `cuts`: the bits of a solve in parts, which are those of one process;
//! * `prepared`: the whole of `Solver` on those two parts, with certification, recovery and report;
//! * `narrow`: an incomplete Cholesky factor stored in `f32` under an `f64` solver.

pub(crate) mod conformance;
mod cuts;
mod narrow;
mod prepared;
mod ranks;
mod stencil;
mod threads;
mod whole;

use krylith::krylov::{Cg, Finish, Status, System};
use krylith::observe::History;
use krylith::operator::LinearOperator;
use krylith::space::Space;
use krylith::stop::{IterationLimit, Residual, StopReason};
use krylith::{BackendError, Csr, Scalar};

/// The side of the grid of the test problem: −Δu on a square, 5-point, Dirichlet.
const N: usize = 24;

/// Its matrix as compressed rows.
fn poisson() -> Csr<f64> {
    let mut entries = Vec::new();
    for i in 0..N * N {
        let (x, y) = (i % N, i / N);
        entries.push((i, i, 4.0));
        for (inside, j) in
            [(x > 0, i.wrapping_sub(1)), (x + 1 < N, i + 1), (y > 0, i.wrapping_sub(N)), (y + 1 < N, i + N)]
        {
            if inside {
                entries.push((i, j, -1.0));
            }
        }
    }
    let rows: Vec<u32> = entries.iter().map(|e| e.0 as u32).collect();
    let columns: Vec<u32> = entries.iter().map(|e| e.1 as u32).collect();
    let values: Vec<f64> = entries.iter().map(|e| e.2).collect();
    Csr::from_triplets(N * N, N * N, &rows, &columns, &values).unwrap()
}

/// x, how the iteration ended, and its residual norms.
type Solved<S> = (<S as Space>::Vector, Finish<<S as Space>::Real>, Vec<<S as Space>::Real>);

/// Solves A x = A·1 from x = 0 to ‖r‖ ≤ 1e-10 ‖b‖.
fn solve<S, A, M>(space: &S, a: &A, m: &M) -> Result<Solved<S>, BackendError>
where
    S: Space,
    A: LinearOperator<S>,
    M: LinearOperator<S>,
{
    let system = System { space, a, m };
    let layout = a.domain();
    let (mut x, mut b) = (space.zeros(&layout)?, space.zeros(&layout)?);
    space.fill(S::Scalar::ONE, &mut x)?;
    a.apply(space, &x, &mut b, &mut a.scratch(space)?)?;
    space.fill(S::Scalar::ZERO, &mut x)?;
    let mut stop = (Residual { rtol: S::Real::from_f64(1e-10), atol: S::Real::ZERO }, IterationLimit(500));
    let mut history = History::with_capacity(500);
    let finish = Cg::new(system)?.solve(system, &b, &mut x, &mut stop, &mut history)?;
    Ok((x, finish, history.residual_norms))
}

/// Converged, every entry of x near 1, a history from iteration 0 on.
fn check(x: &[f64], finish: Finish<f64>, history: &[f64]) {
    assert_eq!(finish.status, Status::Stopped(StopReason::ResidualMet));
    assert_eq!(history.len(), finish.iterations + 1);
    assert_eq!(history.last(), Some(&finish.residual_norm));
    let worst = x.iter().map(|x| (x - 1.0).abs()).fold(0.0, f64::max);
    assert!(worst < 1e-8, "error {worst:e}");
}
