//! Small entries of G are dropped, and its rows scaled so that G A Gᵀ keeps its unit diagonal.
//!
//! A row g = z + ε, ε its entries with |gⱼ| √aⱼⱼ ≤ δ ‖D½ g‖₂ (D is the diagonal of A; the diagonal entry of g is always kept), becomes z / √(zᵀA z). The paper compares |gⱼ| with
//! δ ‖g‖₂, which is the same where the diagonal of A is constant; otherwise which entries count would depend on the units of unknowns, and matrices of
//! shells, with displacements beside rotations, lost their strongest couplings. The paper scales by 1 / √(1 + εᵀA ε) (eq. 3.13), which is the
//! same in exact arithmetic: zᵀA z = gᵀA g − 2 εᵀA g + εᵀA ε, where gᵀA g = 1, and εᵀA g = 0 because A g is zero at all indices of g but its diagonal. zᵀA z
//! also holds where rounding or an index that was left out makes that untrue.

#![allow(unsafe_code)]

use super::pattern::by_rows;
use crate::disjoint::DisjointSlice;
use crate::matrix::{Csr, Pattern};
use crate::space::{CHUNK, Threads};

/// Which entries of G are kept; `roots` are the √aⱼⱼ of [`roots_of_diagonal`](super::pattern::roots_of_diagonal).
pub fn kept_entries(
    space: &Threads<f64>,
    roots: &[f64],
    (pattern, values): (&Pattern, &[f64]),
    delta: f64,
) -> Pattern {
    by_rows(space, pattern.nrows(), &|| (), &|i, (), found| {
        let (columns, g) = (pattern.row(i), &values[pattern.row_range(i)]);
        // An unknown without a diagonal entry has no unit.
        let unit = |root: f64| if root > 0.0 { root } else { 1.0 };
        let size = |k: usize| (g[k] * unit(roots[columns[k] as usize])).abs();
        let bound = delta * (0..g.len()).map(|k| size(k) * size(k)).sum::<f64>().sqrt();
        let kept = (0..g.len()).filter(|&k| k + 1 == g.len() || size(k) > bound);
        found.extend(kept.map(|k| columns[k]));
    })
}

/// z / √(zᵀA z), from G on its whole pattern and the entries that are kept.
pub fn scale_rows(
    space: &Threads<f64>,
    a: &Csr<f64>,
    (pattern, values): (&Pattern, &[f64]),
    kept: &Pattern,
    scaled: &mut [f64],
) {
    assert_eq!(scaled.len(), kept.nnz());
    let scaled = DisjointSlice::new(scaled);
    space.team().run(|member| {
        // z by index; 0 elsewhere.
        let mut numbers = vec![0.0; a.nrows()];
        for i in member.part(kept.nrows(), CHUNK) {
            let columns = kept.row(i);
            // SAFETY: rows of members do not overlap.
            let z = unsafe { scaled.get(kept.row_range(i)) };
            let mut whole = pattern.row(i).iter().zip(&values[pattern.row_range(i)]);
            for (z, &j) in z.iter_mut().zip(columns) {
                *z = whole.find(|&(&k, _)| k == j).map_or(0.0, |(_, &v)| v);
                numbers[j as usize] = *z;
            }
            let square: f64 = columns.iter().map(|&j| numbers[j as usize] * below(a, j, &numbers)).sum();
            if square > 0.0 && square.is_finite() {
                let inverse = 1.0 / square.sqrt();
                z.iter_mut().for_each(|z| *z *= inverse);
            }
            columns.iter().for_each(|&j| numbers[j as usize] = 0.0);
        }
    });
}

/// aⱼⱼ zⱼ + 2 Σ aⱼₖ zₖ over k < j.
fn below(a: &Csr<f64>, j: u32, z: &[f64]) -> f64 {
    let (columns, values) = a.row(j as usize);
    let mut sum = 0.0;
    for (&k, v) in columns.iter().zip(values) {
        if k >= j {
            return 2.0 * sum + if k == j { v * z[j as usize] } else { 0.0 };
        }
        sum += v * z[k as usize];
    }
    2.0 * sum
}
