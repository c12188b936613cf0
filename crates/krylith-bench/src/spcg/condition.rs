//! The condition number of a symmetric matrix in the 2-norm: Lanczos on A and on A⁻¹, by a complete factor.
//!
//!   β_{k+1} v_{k+1} = A v_k − α_k v_k − β_k v_{k−1},  orthogonalized against all v once more; the extreme eigenvalue of the tridiagonal matrix is that of A from within
//!
//! It ends when the largest magnitude has changed by less than 1e-4 of itself in five steps, which leaves two digits or more; after [`STEPS`] without there is no answer. max |λ| of A and of A⁻¹ are what is asked for, so the matrix may be indefinite.

use crate::Failure;
use krylith::gallery::random_vector;
use krylith::{Csr, PrecondSpec, Solver};

const STEPS: usize = 300;
/// Of a factor: larger ones take minutes.
const BYTES: u64 = 100 << 20;
const TOLERANCE: f64 = 1e-4;

/// max |λ| / min |λ|; none where no complete factor is good enough, as of a singular matrix, or small enough.
pub fn condition(a: &Csr<f64>) -> Option<f64> {
    let product = |x: &[f64]| -> Result<Vec<f64>, Failure> {
        let mut y = vec![0.0; x.len()];
        a.mul_vec(x, &mut y)?;
        Ok(y)
    };
    let solver = Solver::new().preconditioner(PrecondSpec::ldlt()).recover(false).threads(1);
    let prepared = solver.max_factor_bytes(BYTES).prepare(a).ok()?;
    let inverse = |x: &[f64]| -> Result<Vec<f64>, Failure> {
        let mut y = vec![0.0; x.len()];
        prepared.solve(a, x, &mut y)?.require_converged()?;
        Ok(y)
    };
    let largest = largest(a.nrows(), product).ok()?;
    Some(largest * self::largest(a.nrows(), inverse).ok()?)
}

/// The largest |λ| of a symmetric operator of n rows.
fn largest(n: usize, mut apply: impl FnMut(&[f64]) -> Result<Vec<f64>, Failure>) -> Result<f64, Failure> {
    let dot = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
    let mut v: Vec<f64> = random_vector(n);
    let norm = dot(&v, &v).sqrt();
    v.iter_mut().for_each(|x| *x /= norm);
    let (mut basis, mut diagonal, mut below) = (vec![v], Vec::new(), Vec::new());
    let mut found: Vec<f64> = Vec::new();
    for k in 0..STEPS {
        let mut w = apply(&basis[k])?;
        diagonal.push(dot(&w, &basis[k]));
        for _ in 0..2 {
            for v in &basis {
                let part = dot(&w, v);
                w.iter_mut().zip(v).for_each(|(w, v)| *w -= part * v);
            }
        }
        found.push(extreme(&diagonal, &below));
        let (now, norm) = (found[k], dot(&w, &w).sqrt());
        if !now.is_finite() {
            return Err("the operator has no finite values".into());
        }
        if norm <= f64::EPSILON * now || k >= 5 && (now - found[k - 5]).abs() <= TOLERANCE * now {
            return Ok(now);
        }
        below.push(norm);
        w.iter_mut().for_each(|w| *w /= norm);
        basis.push(w);
    }
    Err("the largest eigenvalue has not settled".into())
}

/// The largest |λ| of a tridiagonal matrix: bisection by Sturm's count of eigenvalues below a number.
fn extreme(diagonal: &[f64], below: &[f64]) -> f64 {
    let n = diagonal.len();
    let beside = |k: usize| below.get(k).filter(|_| k + 1 < n).copied().unwrap_or(0.0);
    let radius = |k: usize| if k == 0 { beside(0) } else { below[k - 1] + beside(k) };
    let bound = (0..n).map(|k| diagonal[k].abs() + radius(k)).fold(0.0, f64::max);
    let count_below = |x: f64| {
        let (mut count, mut pivot) = (0, 1.0);
        for k in 0..n {
            let square = if k == 0 { 0.0 } else { below[k - 1] * below[k - 1] };
            pivot = diagonal[k] - x - if k == 0 { 0.0 } else { square / pivot };
            if pivot == 0.0 {
                pivot = -f64::MIN_POSITIVE;
            }
            count += usize::from(pivot < 0.0);
        }
        count
    };
    // All eigenvalues are in (−x, x).
    let within = |x: f64| count_below(x) == n && count_below(-x) == 0;
    let (mut low, mut high) = (0.0, bound * (1.0 + 1e-12));
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if within(middle) { high = middle } else { low = middle }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;
    use krylith::gallery::Problem;

    /// Eigenvalues of tridiag(−1, 2, −1) are 2 − 2 cos(kπ / (n + 1)).
    #[test]
    fn of_a_chain_it_is_known() {
        let n = 30;
        let entries =
            (0..n).map(|i| (i, i, 2.0)).chain((1..n).flat_map(|i| [(i, i - 1, -1.0), (i - 1, i, -1.0)]));
        let a = Csr::from_entries(n, n, entries).unwrap();
        let of = |k: usize| 2.0 - 2.0 * (k as f64 * std::f64::consts::PI / (n + 1) as f64).cos();
        let found = condition(&a).unwrap();
        assert!((found / (of(n) / of(1)) - 1.0).abs() < 1e-3, "{found}");
    }

    /// An indefinite matrix: eigenvalues −3, 1 and 2.
    #[test]
    fn magnitudes_count() {
        let a = Csr::from_entries(3, 3, [(0, 0, -3.0), (1, 1, 1.0), (2, 2, 2.0)]).unwrap();
        assert!((condition(&a).unwrap() - 3.0).abs() < 1e-8);
    }

    /// The five-point matrix of a square: κ = cot²(π / 2(n + 1)).
    #[test]
    fn of_a_grid_it_is_known() {
        let a = "poisson2d:20".parse::<Problem>().unwrap().generate().unwrap();
        let angle = std::f64::consts::PI / 42.0;
        assert!((condition(&a).unwrap() * angle.tan().powi(2) - 1.0).abs() < 1e-2);
    }
}
