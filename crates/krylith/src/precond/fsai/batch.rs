//! Rows of G from small dense systems, eight of the same size at a time.
//!
//! Let A[P,P] = L Lᵀ, i the last of the m indices in P. A[P,P] w = e_m (eq. 3.6) and g = w / √w_m (eq. 3.7) are, in one, Lᵀ g = e_m: g is the last row of
//! L⁻¹, and g A[P,P] gᵀ = 1. So each system is a Cholesky factorization, m³/3 operations, and one solve with Lᵀ.
//!
//! A pivot that is not positive, beyond rounding, leaves its index out of P: L without that row and column is the factor of the matrix without them,
//! so its reciprocal pivot is set to zero and everything goes on. If that is the last one, i itself, the row is the diagonal alone.
//!
//! Lane l of every number belongs to system l. Lanes never meet, so a row has the same bits in whatever company it is computed.
#![allow(unsafe_code)]

use crate::scalar::Real;
use crate::simd::dispatch;

/// Systems of one batch.
pub const SYSTEMS: usize = 8;

/// Numbers of the lower triangle of m rows, row after row.
pub const fn triangle(m: usize) -> usize {
    m * (m + 1) / 2
}

/// The row of a system of which only the last index is taken: 1 / √|aᵢᵢ|, or 1 where that is no number.
pub(super) fn diagonal_alone<T: Real>(entry: T) -> T {
    let root = entry.abs().sqrt();
    let usable = root > T::ZERO && root.is_finite();
    if usable { T::ONE / root } else { T::ONE }
}

/// A pivot below this part of its diagonal entry is rounding.
pub(super) const ROUNDING: f64 = 8.0 * f64::EPSILON;

dispatch! {
    /// g of eight systems of `m` rows, from the lower triangles of their matrices, which are overwritten by L with reciprocal pivots: entry
    /// (i, j) is at [`triangle`]`(i) + j`, that of system s in lane s.
    ///
    /// # Panics
    /// If there are no rows, or fewer numbers than they take.
    pub fn last_rows_of_inverses<T: Real>(m: usize, l: &mut [[T; SYSTEMS]], g: &mut [[T; SYSTEMS]]) {
        let corner = l[triangle(m) - 1];
        for i in 0..m {
            let (above, rest) = l.split_at_mut(triangle(i));
            eliminate_row::<T>(i, above, &mut rest[..=i]);
        }
        let g = &mut g[..m];
        g.fill([T::ZERO; SYSTEMS]);
        g[m - 1] = [T::ONE; SYSTEMS];
        backward::<T>(l, g);
        for s in 0..SYSTEMS {
            if g[m - 1][s] == T::ZERO {
                for g in g.iter_mut() {
                    g[s] = T::ZERO;
                }
                g[m - 1][s] = diagonal_alone(corner[s]);
            }
        }
    }
}

dispatch! {
    /// Appends rows to L and y = L⁻¹ b: rows `from..to` of `l` hold those of the matrix, y from there on b.
    pub(crate) fn append_rows<T: Real>(from: usize, to: usize, l: &mut [[T; SYSTEMS]], y: &mut [[T; SYSTEMS]]) {
        for i in from..to {
            let (above, rest) = l.split_at_mut(triangle(i));
            eliminate_row::<T>(i, above, &mut rest[..=i]);
            let (known, rest_of_y) = y.split_at_mut(i);
            let mut sum = rest_of_y[0];
            for k in 0..i {
                subtract::<T>(&mut sum, &rest[k], &known[k]);
            }
            for s in 0..SYSTEMS {
                rest_of_y[0][s] = sum[s] * rest[i][s];
            }
        }
    }
}

dispatch! {
    /// L⁻ᵀ g in place, for L of `m` rows with reciprocal pivots.
    pub(crate) fn solve_transposed<T: Real>(m: usize, l: &[[T; SYSTEMS]], g: &mut [[T; SYSTEMS]]) {
        backward::<T>(l, &mut g[..m]);
    }
}

/// L⁻ᵀ g in place, row of L after row, the last first.
#[inline(always)]
fn backward<T: Real>(l: &[[T; SYSTEMS]], g: &mut [[T; SYSTEMS]]) {
    for i in (0..g.len()).rev() {
        let row = &l[triangle(i)..][..=i];
        let (above, rest) = g.split_at_mut(i);
        for s in 0..SYSTEMS {
            rest[0][s] *= row[i][s];
        }
        for j in 0..i {
            subtract::<T>(&mut above[j], &row[j], &rest[0]);
        }
    }
}

/// sum −= x y, each lane by itself.
#[inline(always)]
pub(super) fn subtract<T: Real>(sum: &mut [T; SYSTEMS], x: &[T; SYSTEMS], y: &[T; SYSTEMS]) {
    for s in 0..SYSTEMS {
        sum[s] -= x[s] * y[s];
    }
}

/// Columns that are eliminated at a time: as many sums stay in registers.
const COLUMNS: usize = 4;

/// Row i of L, from that of the matrix and the rows above.
#[inline(always)]
fn eliminate_row<T: Real>(i: usize, above: &[[T; SYSTEMS]], row: &mut [[T; SYSTEMS]]) {
    let whole = i / COLUMNS * COLUMNS;
    for first in (0..whole).step_by(COLUMNS) {
        let rows: [&[[T; SYSTEMS]]; COLUMNS] =
            std::array::from_fn(|q| &above[triangle(first + q)..][..first + q + 1]);
        let (done, sums) = row.split_at_mut(first);
        let sums = &mut sums[..COLUMNS];
        let mut held: [[T; SYSTEMS]; COLUMNS] = std::array::from_fn(|q| sums[q]);
        for (k, x) in done.iter().enumerate() {
            for q in 0..COLUMNS {
                subtract::<T>(&mut held[q], x, &rows[q][k]);
            }
        }
        for q in 0..COLUMNS {
            for p in 0..q {
                let x = held[p];
                subtract::<T>(&mut held[q], &x, &rows[q][first + p]);
            }
            for s in 0..SYSTEMS {
                held[q][s] *= rows[q][first + q][s];
            }
        }
        sums.copy_from_slice(&held);
    }
    for j in whole..i {
        let other = &above[triangle(j)..][..=j];
        let mut sum = row[j];
        for k in 0..j {
            subtract::<T>(&mut sum, &row[k], &other[k]);
        }
        for s in 0..SYSTEMS {
            sum[s] *= other[j][s];
        }
        row[j] = sum;
    }
    let mut pivot = row[i];
    for x in &row[..i] {
        subtract::<T>(&mut pivot, x, x);
    }
    for s in 0..SYSTEMS {
        let positive = pivot[s] > T::from_f64(ROUNDING) * row[i][s] && pivot[s].is_finite();
        row[i][s] = if positive { T::ONE / pivot[s].sqrt() } else { T::ZERO };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// [4 2; 2 5]: L = [2 0; 1 2], L⁻¹ = [½ 0; −¼ ½].
    #[test]
    fn two_by_hand() {
        let mut l = [[4.0; SYSTEMS], [2.0; SYSTEMS], [5.0; SYSTEMS]];
        let mut g = [[0.0; SYSTEMS]; 2];
        last_rows_of_inverses::<f64>(2, &mut l, &mut g);
        assert_eq!(g, [[-0.25; SYSTEMS], [0.5; SYSTEMS]]);
    }

    /// gᵀ A g = 1 and A g is zero but for its last entry, in systems of all sizes, each lane another.
    #[test]
    fn each_lane_is_a_row_of_its_own() {
        for m in 1..40 {
            let entry = |s: usize, i: usize, j: usize| match i == j {
                true => 2.0 + m as f64 / 3.0,
                false => (((i * 31 + j * 17 + s * 7) % 13) as f64 - 6.0) / 20.0,
            };
            let value = |s, i, j| if i >= j { entry(s, i, j) } else { entry(s, j, i) };
            let mut l = vec![[0.0; SYSTEMS]; triangle(m)];
            for (i, j) in (0..m).flat_map(|i| (0..=i).map(move |j| (i, j))) {
                l[triangle(i) + j] = std::array::from_fn(|s| value(s, i, j));
            }
            let mut g = vec![[0.0; SYSTEMS]; m];
            last_rows_of_inverses::<f64>(m, &mut l, &mut g);
            for s in 0..SYSTEMS {
                let product = |i: usize| (0..m).map(|j| value(s, i, j) * g[j][s]).sum::<f64>();
                assert!((0..m - 1).all(|i| product(i).abs() < 1e-14), "{m}");
                assert!((product(m - 1) * g[m - 1][s] - 1.0).abs() < 1e-14, "{m}");
            }
        }
    }

    /// Index 1 equals index 0, so it is left out: g is that of [4 2; 2 5] with a zero between.
    #[test]
    fn a_pivot_of_zero_leaves_its_index_out() {
        let rows = [[4.0, 0.0, 0.0], [4.0, 4.0, 0.0], [2.0, 2.0, 5.0]];
        let mut l: Vec<[f64; SYSTEMS]> =
            (0..3).flat_map(|i| (0..=i).map(move |j| [rows[i][j]; SYSTEMS])).collect();
        let mut g = [[1.0; SYSTEMS]; 3];
        last_rows_of_inverses::<f64>(3, &mut l, &mut g);
        assert_eq!(g.map(|g| g[3]), [-0.25, 0.0, 0.5]);
        // and the last one leaves the diagonal alone
        let mut l = [[1.0; SYSTEMS], [2.0; SYSTEMS], [4.0; SYSTEMS]];
        let mut g = [[1.0; SYSTEMS]; 2];
        last_rows_of_inverses::<f64>(2, &mut l, &mut g);
        assert_eq!(g.map(|g| g[0]), [0.0, 0.5]);
    }
}
