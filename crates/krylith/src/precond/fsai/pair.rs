//! Two factors for matrices that are not symmetric: M⁻¹ = G_U G_L, G_L lower and G_U upper triangular, with the diagonal of G_L A G_U one.
//!
//! Row i of G_L and column i of G_U have the same indices P, i the last of them. With A[P,P] = L U, L with a unit diagonal, the last row of the inverse of A[P,P]
//! is that of L⁻¹ over u, and its last column is that of U⁻¹, u being the last pivot; the row times A[P,P] times the column, each with 1 at its end, is u. Both
//! are scaled by 1 / √|u|, the column also by the sign of u. If A is symmetric positive definite, G_U is the transpose of G_L, which is the G of one factor.
//!
//! P comes from the sizes of entries, whatever their signs: from the symmetric matrix with |aᵢᵢ| on and −(|aᵢⱼ| + |aⱼᵢ|) / 2 off the diagonal. A pivot that
//! is rounding leaves its index out, as with one factor.
//!
//! Reference: Kolotilina & Yeremin 1993, doi:10.1137/0614004. Deviation: a growing pattern follows the Kaporin number of that symmetric matrix, since A
//! itself has none.
#![allow(unsafe_code)]

use super::batch::{ROUNDING, SYSTEMS, subtract, triangle};
use super::rows::{ABSENT, Batches, for_each_batch, gather};
use crate::disjoint::DisjointSlice;
use crate::matrix::{Csr, Pattern};
use crate::scalar::Real;
use crate::simd::dispatch;
use crate::space::{CHUNK, Threads};

/// |aᵢᵢ| and −(|aᵢⱼ| + |aⱼᵢ|) / 2.
pub(crate) fn sizes(a: &Csr<f64>) -> Csr<f64> {
    let transposed = a.transpose();
    let (mut row_ptr, mut col_idx, mut values) = (vec![0], Vec::new(), Vec::new());
    for i in 0..a.nrows() {
        let [mut own, mut other] = [a, &transposed].map(|matrix| {
            let (columns, values) = matrix.row(i);
            columns.iter().zip(values).peekable()
        });
        loop {
            let next = [own.peek(), other.peek()].into_iter().flatten().map(|&(&j, _)| j).min();
            let Some(j) = next else { break };
            let mut sum = 0.0;
            for entries in [&mut own, &mut other] {
                if let Some((_, v)) = entries.next_if(|&(&k, _)| k == j) {
                    sum += v.abs() / 2.0;
                }
            }
            col_idx.push(j);
            values.push(if j as usize == i { sum } else { -sum });
        }
        row_ptr.push(col_idx.len());
    }
    Csr::trusted(Pattern::trusted(a.nrows(), a.ncols(), row_ptr, col_idx).into(), values).without_hash()
}

/// Rows of G_L and columns of G_U on a pattern, both in its order.
pub(crate) fn solve_pairs(
    space: &Threads<f64>,
    a: &Csr<f64>,
    pattern: &Pattern,
    [lower, upper]: [&mut [f64]; 2],
) {
    let (lower, upper) = (DisjointSlice::new(lower), DisjointSlice::new(upper));
    let batches = Batches::of(pattern, |_| true);
    for_each_batch(space, &batches, &|| Buffers::new(a.nrows()), &|rows, buffers: &mut Buffers| {
        let Buffers { places, l, u, g, h } = buffers;
        let m = pattern.row(rows[0] as usize).len();
        for side in [&mut *l, &mut *u] {
            side.clear();
            side.resize(triangle(m), [0.0; SYSTEMS]);
        }
        for side in [&mut *g, &mut *h] {
            side.resize(m.max(side.len()), [0.0; SYSTEMS]);
        }
        for (lane, &row) in rows.iter().enumerate() {
            gather::<true>(a, pattern.row(row as usize), places, |i, j, value| match j <= i {
                true => l[triangle(i) + j][lane] = value,
                false => u[triangle(j) + i][lane] = value,
            });
        }
        last_row_and_column::<f64>(m, l, u, &mut g[..m], &mut h[..m]);
        for (lane, &row) in rows.iter().enumerate() {
            let range = pattern.row_range(row as usize);
            // SAFETY: every row is in one batch, and every batch is taken once.
            let own = unsafe { [lower.get(range.clone()), upper.get(range)] };
            for (values, side) in own.into_iter().zip([&*g, &*h]) {
                values.iter_mut().zip(side).for_each(|(value, numbers)| *value = numbers[lane]);
            }
        }
    });
}

struct Buffers {
    places: Vec<u32>,
    l: Vec<[f64; SYSTEMS]>,
    u: Vec<[f64; SYSTEMS]>,
    g: Vec<[f64; SYSTEMS]>,
    h: Vec<[f64; SYSTEMS]>,
}

impl Buffers {
    fn new(n: usize) -> Self {
        Buffers { places: vec![ABSENT; n], l: Vec::new(), u: Vec::new(), g: Vec::new(), h: Vec::new() }
    }
}

dispatch! {
    /// Last rows of L⁻¹ and last columns of U⁻¹, scaled, of eight systems of `m` rows: `l` has the lower triangles row by row, `u` the upper ones column by
    /// column. Both are overwritten, the diagonal of `l` by reciprocal pivots.
    fn last_row_and_column<T: Real>(m: usize, l: &mut [[T; SYSTEMS]], u: &mut [[T; SYSTEMS]], g: &mut [[T; SYSTEMS]], h: &mut [[T; SYSTEMS]]) {
        let corner = l[triangle(m) - 1];
        for i in 0..m {
            let (above_l, own_l) = l.split_at_mut(triangle(i));
            let (above_u, own_u) = u.split_at_mut(triangle(i));
            for j in 0..i {
                let (row, column) = (&above_l[triangle(j)..][..=j], &above_u[triangle(j)..][..=j]);
                let (mut of_l, mut of_u) = (own_l[j], own_u[j]);
                for k in 0..j {
                    subtract::<T>(&mut of_l, &own_l[k], &column[k]);
                    subtract::<T>(&mut of_u, &row[k], &own_u[k]);
                }
                for s in 0..SYSTEMS {
                    own_l[j][s] = of_l[s] * row[j][s];
                }
                own_u[j] = of_u;
            }
            let mut pivot = own_l[i];
            for k in 0..i {
                subtract::<T>(&mut pivot, &own_l[k], &own_u[k]);
            }
            for s in 0..SYSTEMS {
                let usable = pivot[s].abs() > T::from_f64(ROUNDING) * own_l[i][s].abs() && pivot[s].is_finite();
                own_l[i][s] = if usable { T::ONE / pivot[s] } else { T::ZERO };
            }
        }
        for side in [&mut *g, &mut *h] {
            side.fill([T::ZERO; SYSTEMS]);
            side[m - 1] = [T::ONE; SYSTEMS];
        }
        for i in (0..m).rev() {
            let (row, column) = (&l[triangle(i)..][..=i], &u[triangle(i)..][..=i]);
            if i < m - 1 {
                for s in 0..SYSTEMS {
                    h[i][s] *= row[i][s];
                }
            }
            let (of_g, of_h) = (g[i], h[i]);
            for j in 0..i {
                subtract::<T>(&mut g[j], &row[j], &of_g);
                subtract::<T>(&mut h[j], &column[j], &of_h);
            }
        }
        let inverse = l[triangle(m) - 1];
        for s in 0..SYSTEMS {
            let left_out = inverse[s] == T::ZERO;
            let pivot = if left_out { T::ONE / corner[s] } else { inverse[s] };
            let usable = pivot != T::ZERO && pivot.is_finite();
            let root = if usable { pivot.abs().sqrt() } else { T::ONE };
            let signed = if usable && pivot < T::ZERO { T::ZERO - root } else { root };
            for i in 0..m {
                let keep = if left_out && i < m - 1 { T::ZERO } else { T::ONE };
                g[i][s] *= root * keep;
                h[i][s] *= signed * keep;
            }
        }
    }
}

/// Both sides on the entries that are kept, scaled so that the diagonal of G_L A G_U is one again.
pub(crate) fn scale_pairs(
    space: &Threads<f64>,
    a: &Csr<f64>,
    (pattern, whole): (&Pattern, [&[f64]; 2]),
    kept: [&Pattern; 2],
    [lower, upper]: [&mut [f64]; 2],
) {
    let (lower, upper) = (DisjointSlice::new(lower), DisjointSlice::new(upper));
    space.team().run(|member| {
        // The column by index; 0 elsewhere.
        let mut numbers = vec![0.0; a.nrows()];
        for i in member.part(pattern.nrows(), CHUNK) {
            // SAFETY: rows of members do not overlap.
            let own = unsafe { [lower.get(kept[0].row_range(i)), upper.get(kept[1].row_range(i))] };
            for side in 0..2 {
                let mut all = pattern.row(i).iter().zip(&whole[side][pattern.row_range(i)]);
                for (z, &j) in own[side].iter_mut().zip(kept[side].row(i)) {
                    *z = all.find(|&(&k, _)| k == j).map_or(0.0, |(_, &v)| v);
                }
            }
            kept[1].row(i).iter().zip(&*own[1]).for_each(|(&j, &z)| numbers[j as usize] = z);
            let times = |j: u32| -> f64 {
                let (columns, values) = a.row(j as usize);
                columns.iter().zip(values).map(|(&k, v)| v * numbers[k as usize]).sum()
            };
            let form: f64 = kept[0].row(i).iter().zip(&*own[0]).map(|(&j, z)| z * times(j)).sum();
            kept[1].row(i).iter().for_each(|&j| numbers[j as usize] = 0.0);
            if form != 0.0 && form.is_finite() {
                let root = 1.0 / form.abs().sqrt();
                let [of_l, of_u] = own;
                of_l.iter_mut().for_each(|z| *z *= root);
                of_u.iter_mut().for_each(|z| *z *= root * form.signum());
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// [2 1; 4 −1] = [1 0; 2 1] [2 1; 0 −3]: the last row of L⁻¹ is (−2, 1), the last column of U⁻¹ times −3 is (−1/2, 1), and the pivot −3.
    #[test]
    fn two_by_hand() {
        let mut l = [[2.0; SYSTEMS], [4.0; SYSTEMS], [-1.0; SYSTEMS]];
        let mut u = [[0.0; SYSTEMS], [1.0; SYSTEMS], [0.0; SYSTEMS]];
        let [mut g, mut h] = [[[0.0; SYSTEMS]; 2]; 2];
        last_row_and_column::<f64>(2, &mut l, &mut u, &mut g, &mut h);
        let root = 3f64.sqrt();
        for s in 0..SYSTEMS {
            assert!((g[0][s] + 2.0 / root).abs() < 1e-15 && (g[1][s] - 1.0 / root).abs() < 1e-15);
            assert!((h[0][s] - 0.5 / root).abs() < 1e-15 && (h[1][s] + 1.0 / root).abs() < 1e-15);
        }
    }

    /// [1 2; 3 4]: off the diagonal −(2 + 3) / 2.
    #[test]
    fn sizes_are_symmetric() {
        let a = Csr::from_entries(3, 3, [(0, 0, 1.0), (0, 1, 2.0), (1, 0, -3.0), (1, 1, -4.0), (0, 2, 8.0)]);
        let s = sizes(&a.unwrap());
        assert_eq!(s.pattern().col_idx(), [0, 1, 2, 0, 1, 0]);
        assert_eq!(s.values(), [1.0, -2.5, -4.0, -2.5, 4.0, -4.0]);
    }
}
