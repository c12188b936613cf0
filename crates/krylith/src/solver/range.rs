//! Whether b is outside of the range of A.
//!
//! A vector y with Aᵀy = 0 and yᵀb ≠ 0 proves that: ‖b − A x‖ ≥ |yᵀb| / ‖y‖ for every x. With Aᵀy = 0 to rounding only, every x with a smaller residual is
//! larger than ‖b‖ / ‖A‖ by a factor of the order of 1 / ε.
//!
//! y comes from a complete factor M = A + E, E the change of the pivots that were too small. y := y − M⁻ᵀ(Aᵀy) = M⁻ᵀEᵀy leaves left null vectors as
//! they are and reduces everything else, at once where each of those pivots belongs to a null vector: this is inverse iteration for the eigenvalue 0. The
//! residual that no method could reduce is where it begins.

use crate::error::BackendError;
use crate::matrix::Csr;
use crate::operator::{LinearOperator, Preconditioner};
use crate::precond::direct::{DirectFactor, DirectSymbolic, SmallPivots};
use crate::space::Threads;
use std::sync::Arc;

/// Steps of the iteration at most.
const STEPS: usize = 20;
/// ‖Aᵀy‖ up to this part of ‖|A|ᵀ|y|‖ is zero.
const ZERO: f64 = 1e-14;

/// A left null vector of A with its ‖Aᵀy‖ / ‖|A|ᵀ|y|‖, if the iteration from `start` finds one.
pub(super) fn left_null_vector(
    space: &Threads<f64>,
    a: &Csr<f64>,
    symbolic: &Arc<DirectSymbolic>,
    start: &[f64],
) -> Result<Option<(Vec<f64>, f64)>, BackendError> {
    let Ok(mut m) = symbolic.allocate() else { return Ok(None) };
    // Small singular values besides those that are zero need the first; pivots that are small for want of exchanges the second.
    for small in [SmallPivots::FOR_NULL_VECTORS, SmallPivots::DEFAULT] {
        m.set_small_pivots(small);
        if m.refactor(space, a).is_err() {
            return Ok(None);
        }
        if let Some(found) = iterate(space, a, &m, start.to_vec())? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

fn iterate(
    space: &Threads<f64>,
    a: &Csr<f64>,
    m: &DirectFactor,
    mut y: Vec<f64>,
) -> Result<Option<(Vec<f64>, f64)>, BackendError> {
    let (mut solved, mut scratch) = (vec![0.0; y.len()], m.scratch(space)?);
    for _ in 0..STEPS {
        let largest = y.iter().fold(0.0, |largest: f64, v| largest.max(v.abs()));
        if !(largest > 0.0 && largest.is_finite()) {
            return Ok(None);
        }
        y.iter_mut().for_each(|v| *v /= largest);
        let (product, size) = transposed_product(a, &y);
        let ratio = norm(&product) / norm(&size);
        if ratio <= ZERO {
            return Ok(Some((y, ratio)));
        }
        m.apply_transpose(space, &product, &mut solved, &mut scratch)?;
        y.iter_mut().zip(&solved).for_each(|(y, s)| *y -= s);
    }
    Ok(None)
}

/// Aᵀy and |A|ᵀ|y|.
fn transposed_product(a: &Csr<f64>, y: &[f64]) -> (Vec<f64>, Vec<f64>) {
    let (mut product, mut size) = (vec![0.0; a.ncols()], vec![0.0; a.ncols()]);
    for (i, y) in y.iter().enumerate() {
        for (&j, v) in a.row(i).0.iter().zip(a.row(i).1) {
            product[j as usize] += v * y;
            size[j as usize] += (v * y).abs();
        }
    }
    (product, size)
}

fn norm(x: &[f64]) -> f64 {
    x.iter().map(|v| v * v).sum::<f64>().sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::precond::direct::{Direct, DirectKind};

    fn found(a: &Csr<f64>) -> Option<(Vec<f64>, f64)> {
        let space = Threads::new(1);
        let symbolic = Direct { kind: DirectKind::Lu, max_bytes: None }.symbolic(a).unwrap();
        let start: Vec<f64> = (0..a.nrows()).map(|i| 1.0 + i as f64).collect();
        left_null_vector(&space, a, &symbolic, &start).unwrap()
    }

    /// Row 2 is row 0 plus twice row 1.
    /// [ 1 2 0 ]
    /// [ 0 1 3 ]
    /// [ 1 4 6 ]
    #[test]
    fn rows_that_depend_on_each_other() {
        let rows = [[1.0, 2.0, 0.0], [0.0, 1.0, 3.0], [1.0, 4.0, 6.0]];
        let entries = (0..9).map(|e| (e / 3, e % 3, rows[e / 3][e % 3]));
        let (y, ratio) = found(&Csr::from_entries(3, 3, entries).unwrap()).unwrap();
        assert!(ratio <= ZERO);
        assert!((y[0] + y[2]).abs() < 1e-12 && (y[1] + 2.0 * y[2]).abs() < 1e-12, "{y:?}");
    }

    #[test]
    fn none_where_there_is_none() {
        assert!(found(&Csr::from_entries(2, 2, [(0, 0, 1.0), (0, 1, 3.0), (1, 0, 2.0)]).unwrap()).is_none());
    }
}
