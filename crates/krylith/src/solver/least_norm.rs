//! The least squares of least norm, where nobody knows the null space of A.
//!
//! Let M = A + E be a complete factor in which small pivots were replaced by 1. z := z − M⁻¹(A z) leaves null vectors of A as they are and reduces everything
//! else, at once where each of those pivots belongs to a null vector. Applied to x and then to vectors of random numbers, it gives null vectors until a new one
//! depends on those before. With their orthonormal basis Q, x − Q Qᵀx is the shortest of all vectors with the product A x.
//!
//! Cost: a factor, and a few solves for each null vector; up to [`MOST`] of them, and x stays what it is where there are more.

use super::certify::Certifier;
use super::null_space::{is_null_vector, orthonormal, project};
use super::outside_range::Finding;
use crate::error::BackendError;
use crate::gallery::random_vector;
use crate::matrix::Csr;
use crate::operator::{LinearOperator, Preconditioner, SolverSpace};
use crate::precond::direct::{DirectSymbolic, SmallPivots};
use std::sync::Arc;

/// Null vectors at most.
const MOST: usize = 32;
/// Steps for each.
const STEPS: usize = 4;
/// Corrections of x at most.
const CORRECTIONS: usize = 3;
/// ‖A z‖ of a null vector that was computed, as a multiple of the rounding of that product.
const ROUNDINGS: f64 = 8.0;
/// What is left of a vector that depends on others, relative to it.
const DEPENDENT: f64 = 1e-6;

impl<S: SolverSpace, A: LinearOperator<S>> Certifier<'_, S, A> {
    /// Makes the least squares in x the shortest ones, if they stay the least squares.
    pub(super) fn shorten(
        &mut self,
        matrix: &Csr<f64>,
        symbolic: &Arc<DirectSymbolic>,
        x: &mut S::Vector,
    ) -> Result<(), BackendError> {
        let space = self.space();
        let Ok(mut m) = symbolic.allocate() else { return Ok(()) };
        m.set_small_pivots(SmallPivots::FOR_LEAST_SQUARES);
        if m.refactor(space.host(), matrix).is_err() {
            return Ok(());
        }
        let n = matrix.ncols();
        let (mut product, mut solved, mut scratch) = (vec![0.0; n], vec![0.0; n], m.scratch(space.host())?);
        let mut own = vec![0.0; n];
        space.download(x, &mut own)?;
        let random = random_vector(n + MOST);
        let starts = std::iter::once(&own[..]).chain((0..MOST).map(|k| &random[k..k + n]));
        let (mut basis, mut is_whole) = (Vec::<S::Vector>::new(), false);
        for start in starts {
            let mut z = start.to_vec();
            let mut refine = |z: &mut Vec<f64>, steps: usize| -> Result<(), BackendError> {
                for _ in 0..steps {
                    matrix.apply(space.host(), z, &mut product, &mut ())?;
                    m.apply(space.host(), &product, &mut solved, &mut scratch)?;
                    z.iter_mut().zip(&solved).for_each(|(z, s)| *z -= s);
                }
                Ok(())
            };
            refine(&mut z, STEPS)?;
            let mut next = space.zeros(&space.size(x))?;
            space.upload(&z, &mut next)?;
            let before = start.iter().map(|v| v * v).sum::<f64>().sqrt();
            project(space, &basis, &mut next)?;
            let left = space.norm(&next)?;
            // x may have no part in the null space; a random vector has one in every direction that is left.
            is_whole = left <= DEPENDENT * before && !std::ptr::eq(start, &own[..]);
            if is_whole || left.is_nan() {
                break;
            }
            // Division by what is left enlarges rounding errors.
            let Some(unit) = orthonormal(space, [&next])?.pop() else { continue };
            space.download(&unit, &mut z)?;
            refine(&mut z, 1)?;
            space.upload(&z, &mut next)?;
            project(space, &basis, &mut next)?;
            let unit = orthonormal(space, [&next])?;
            // What A is only close to annihilating belongs to x.
            for q in &unit {
                if !is_null_vector(space, self.a(), q, ROUNDINGS)? {
                    return Ok(());
                }
            }
            basis.extend(unit);
        }
        if !is_whole {
            return Ok(());
        }
        let size = space.size(x);
        let (mut before, mut rest) = (space.zeros(&size)?, space.zeros(&size)?);
        space.copy(x, &mut before)?;
        // Where x was large, its rounding is what the shortest x is wrong by: it is corrected by what is left of the residual besides y.
        let Some((y, low)) = self.take_witness() else { return Ok(()) };
        self.consider(&y, low.as_ref())?;
        for _ in 0..CORRECTIONS {
            project(space, &basis, x)?;
            self.round_as_returned(x)?;
            self.measure_precisely(x)?;
            if self.find_witness()? == Finding::LeastSquares {
                return Ok(());
            }
            space.copy(self.residual(), &mut rest)?;
            let along = space.dot(&y, &rest)? / space.dot(&y, &y)?;
            space.axpby(-along, &y, 1.0, &mut rest)?;
            space.download(&rest, &mut product)?;
            m.apply(space.host(), &product, &mut solved, &mut scratch)?;
            space.upload(&solved, &mut rest)?;
            space.axpby(1.0, &rest, 1.0, x)?;
        }
        space.copy(&before, x)?;
        self.measure_precisely(x)?;
        self.consider(&y, low.as_ref())?;
        Ok(())
    }
}
