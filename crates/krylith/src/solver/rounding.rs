//! x on the grid of `f64` with a small residual.
//!
//! Where x is much larger than ‖b‖ / ‖A‖, rounding its entries is what the residual consists of: an exact answer, each entry rounded to the nearest
//! number, has a residual of about ε/4 ‖D x‖, D the norms of the columns of A. Other numbers nearby have less: an error in one entry may undo that in another. They are found by
//! coordinate descent for ‖b − A x‖² on the grid: entry j moves by the multiple of its spacing that is nearest to aⱼᵀr / aⱼᵀaⱼ, and r follows. No step
//! increases the norm, and the sweeps end where none changes anything. This is the rounding of Babai's nearest-plane method without its reduction of
//! the lattice: doi:10.1007/BF02579403.
//!
//! One thread, and only for an x that misses the tolerance by little with a backward error at rounding level. Cost: a transpose and a pass over A per sweep.

use super::certify::Certifier;
use crate::error::BackendError;
use crate::matrix::Csr;
use crate::operator::{LinearOperator, SolverSpace};

/// Sweeps over all entries at most.
const SWEEPS: usize = 30;
/// A residual larger than this many tolerances is not tried.
const TOO_LARGE: f64 = 100.0;

impl<S: SolverSpace, A: LinearOperator<S>> Certifier<'_, S, A> {
    /// Whether the x that was measured last misses the tolerance by little, with a backward error at rounding level.
    pub(super) fn is_near_rounding(&self) -> bool {
        let near = self.residual_norm() <= TOO_LARGE * self.certain_tolerance();
        near && self.is_at_limit() && !self.has_own_criterion()
    }

    /// Moves the entries of the x that was measured last to numbers nearby that make its residual smaller, where rounding is all that is left of it.
    /// Whether it meets the tolerance then; if not, x is as it was.
    pub(super) fn meets_by_rounding(&mut self, x: &mut S::Vector) -> Result<bool, BackendError> {
        let (space, a) = (self.space(), self.a());
        let alone = space.total(&a.domain()) == space.len(&a.domain());
        let Some(matrix) = a.matrix().filter(|_| alone && self.is_near_rounding()) else { return Ok(false) };
        let (mut numbers, mut r) = (vec![0.0; matrix.ncols()], vec![0.0; matrix.nrows()]);
        space.download(x, &mut numbers)?;
        space.download(self.residual(), &mut r)?;
        let columns = matrix.transpose();
        let mut moved = space.zeros(&space.size(x))?;
        for _ in 0..SWEEPS {
            if !sweep(&columns, &mut numbers, &mut r) {
                break;
            }
            if norm(&r) <= self.certain_tolerance() {
                space.upload(&numbers, &mut moved)?;
                self.round_as_returned(&mut moved)?;
                if self.measure(&moved)? {
                    space.copy(&moved, x)?;
                    return Ok(true);
                }
            }
        }
        self.measure(x)
    }
}

/// One step for every entry of x; whether one has moved.
fn sweep(columns: &Csr<f64>, x: &mut [f64], r: &mut [f64]) -> bool {
    let mut moved = false;
    for (j, x) in x.iter_mut().enumerate() {
        let (rows, values) = columns.row(j);
        let (mut along, mut square) = (0.0, 0.0);
        for (&i, v) in rows.iter().zip(values) {
            along += v * r[i as usize];
            square += v * v;
        }
        let spacing = x.abs().next_up() - x.abs();
        let steps = (along / square / spacing).round();
        let next = *x + steps * spacing;
        // What was added is the difference, whatever was rounded.
        let step = next - *x;
        if step == 0.0 || !step.is_finite() {
            continue;
        }
        *x = next;
        moved = true;
        rows.iter().zip(values).for_each(|(&i, v)| r[i as usize] -= v * step);
    }
    moved
}

fn norm(r: &[f64]) -> f64 {
    r.iter().map(|v| v * v).sum::<f64>().sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A = [1 1], x = (8, 1): what is left of b, 3 · 2⁻⁵², is less than half a spacing of x₀, 8 · 2⁻⁵², and three spacings of x₁.
    #[test]
    fn a_small_entry_undoes_the_rounding_of_a_large_one() {
        let columns = Csr::from_entries(2, 1, [(0, 0, 1.0), (1, 0, 1.0)]).unwrap();
        let spacing = f64::EPSILON;
        let (mut x, mut r) = ([8.0, 1.0], [3.0 * spacing]);
        assert!(sweep(&columns, &mut x, &mut r));
        assert_eq!(r, [0.0]);
        assert_eq!(x, [8.0, 1.0 + 3.0 * spacing]);
        assert!(!sweep(&columns, &mut x, &mut r));
    }
}
