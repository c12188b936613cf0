//! A matrix without index arrays: the coefficients of a 5-point stencil, one array per offset.

use super::threads::{Rows, Threads};
use super::{N, check, poisson, solve};
use krylith::BackendError;
use krylith::operator::{Identity, LinearOperator};

/// Coefficients at the offsets (0, −1), (−1, 0), (0, 0), (1, 0), (0, 1) of an N × N grid; zero across the boundary.
struct Stencil {
    coefficients: [Vec<f64>; 5],
}

const OFFSETS: [isize; 5] = [-(N as isize), -1, 0, 1, N as isize];

impl Stencil {
    fn poisson() -> Self {
        let inside = |i: usize, offset: usize| match offset {
            0 => i >= N,
            1 => !i.is_multiple_of(N),
            3 => i % N + 1 < N,
            4 => i + N < N * N,
            _ => true,
        };
        let value = |i, o| if o == 2 { 4.0 } else { -f64::from(u8::from(inside(i, o))) };
        Stencil { coefficients: std::array::from_fn(|o| (0..N * N).map(|i| value(i, o)).collect()) }
    }
}

impl LinearOperator<Threads> for Stencil {
    /// x with a margin of N zeros on either side, so that no point needs a branch.
    type Scratch = Vec<f64>;

    fn domain(&self) -> usize {
        N * N
    }

    fn range(&self) -> usize {
        N * N
    }

    fn scratch(&self, _: &Threads) -> Result<Vec<f64>, BackendError> {
        Ok(vec![0.0; N * N + 2 * N])
    }

    fn apply(
        &self,
        _: &Threads,
        x: &Vec<f64>,
        y: &mut Vec<f64>,
        padded: &mut Vec<f64>,
    ) -> Result<(), BackendError> {
        padded[N..N + N * N].copy_from_slice(x);
        for (i, y) in y.iter_mut().enumerate() {
            let term = |o: usize| self.coefficients[o][i] * padded[(i + N).wrapping_add_signed(OFFSETS[o])];
            *y = (0..5).map(term).sum();
        }
        Ok(())
    }
}

#[test]
fn cg_without_index_arrays() {
    let a = Stencil::poisson();
    let m = Identity::new(a.domain());
    let (x, finish, history) = solve(&Threads, &a, &m).unwrap();
    check(&x, finish, &history);
    // The same sums in the same order as compressed rows, but for added zeros: the same iterates.
    assert_eq!(x, solve(&Threads, &Rows(poisson()), &m).unwrap().0);
}
