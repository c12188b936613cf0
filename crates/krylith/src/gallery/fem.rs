//! −∇·(κ ∇u) with linear elements on an unstructured mesh: the Delaunay triangulation of a jittered lattice.
//!
//!   aᵢⱼ = −(κ cot α + κ′ cot β)/2,   aᵢᵢ = −Σ aᵢⱼ over all neighbours,
//!
//! with α and β the angles opposite to the edge i j in its two triangles, κ and κ′ their conductivities. The unknowns are
//! the points of nx x ny cells; points outside of them are Dirichlet nodes, which enter the diagonal alone.
//!
//!   fem2d     κ = 1. Then every aᵢⱼ ≤ 0: α + β ≤ π in a Delaunay triangulation, and rounding keeps the order of
//!             cot β ≥ −cot α.
//!   thermal   κ = 10^(3 U(0, 1)) by blocks of 32 x 32 cells; a triangle belongs to the block of its centroid.
//!             1108 x 1108 is near thermal2 (n = 1,228,045, nnz = 8,580,313) in size; CG with ILU(0) takes 1775 iterations to 1e-7,
//!             there 1656 (benchmarks/runs/2026-11-18-nvidia).
//!
//! Same bits from both ends of an edge: a cotangent is the quotient of two exact integers, and a sum of two commutes.
//! The stars are found once, 8 bytes per point, and then serve to count and to fill the rows.
//! Reference: Pinkall & Polthier 1993, doi:10.1080/10586458.1993.10504266.

use super::delaunay::{CELL, CENTRE, Points, Star, WINDOW, Window};
use super::grid::Grid;
use super::random::{SEED, hash, power_of_ten, uniform};
use crate::error::MatrixError;
use crate::matrix::Csr;
use crate::parallel;

/// Side of the blocks of one material in `thermal`, in cells.
const BLOCK: i64 = 32;

pub(super) fn fem2d(grid: &Grid) -> Result<Csr<f64>, MatrixError> {
    assemble(grid, |_| 1.0)
}

pub(super) fn thermal(grid: &Grid) -> Result<Csr<f64>, MatrixError> {
    assemble(grid, |corners| {
        let block = corners.map(|sum| sum.div_euclid(3 * BLOCK * CELL) as u64);
        power_of_ten(3.0 * uniform(hash(hash(!SEED, block[0]), block[1])))
    })
}

/// Entries at most: a planar graph of n ≥ 3 vertices has at most 3 n − 6 edges.
pub(super) fn nnz_bound(grid: &Grid) -> u64 {
    7 * grid.len() as u64
}

/// The matrix for a conductivity that depends on the sum of the corners of a triangle, three times its centroid.
fn assemble(grid: &Grid, conductivity: impl Fn([i64; 2]) -> f64 + Sync) -> Result<Csr<f64>, MatrixError> {
    let n = grid.len();
    let place = |i: usize| {
        let [x, y, _] = grid.cell(i);
        (x as i64, y as i64)
    };
    let star = |i: usize| {
        let (x, y) = place(i);
        Points::JITTERED.star(x, y)
    };
    let stars: Vec<Star> = parallel::map_rows(n, star);
    let unknown = |[x, y]: [i64; 2]| {
        let inside = |v: i64, n: usize| u64::try_from(v).is_ok_and(|v| v < n as u64);
        (inside(x, grid.n[0]) && inside(y, grid.n[1])).then(|| grid.index([x as usize, y as usize, 0]))
    };
    Csr::from_rows(
        n,
        n,
        |i| {
            let (x, y) = place(i);
            stars[i].with_centre().cells(x, y).filter(|&(_, cell)| unknown(cell).is_some()).count()
        },
        |i, columns, values| {
            let (x, y) = place(i);
            let entries = row(&Points::JITTERED.window(x, y, stars[i]), stars[i], &conductivity);
            let cells = stars[i].with_centre().cells(x, y);
            let known = cells.filter_map(|(member, cell)| Some((unknown(cell)?, entries[member])));
            for (k, (j, value)) in known.enumerate() {
                (columns[k], values[k]) = (j as u32, value);
            }
        },
    )
}

/// The entries of a row by their index in the window, Dirichlet nodes included.
fn row(window: &Window, star: Star, conductivity: &impl Fn([i64; 2]) -> f64) -> [f64; WINDOW] {
    let mut ring = [0; WINDOW];
    let count = window.ring(star, &mut ring);
    let mut entries = [0.0; WINDOW];
    for k in 0..count {
        // The triangle 0 q r adds to the edge 0 q the angle at r, and to 0 r that at q.
        let (q, r) = (ring[k], ring[(k + 1) % count]);
        let (u, v) = (window.at(q), window.at(r));
        let corners = [0, 1].map(|a| 3 * window.origin[a] + (u[a] + v[a]) as i64);
        let kappa = conductivity(corners);
        let double_area = u[0] * v[1] - u[1] * v[0];
        let cotangent = |at: [f64; 2], other: [f64; 2]| {
            (at[0] * (at[0] - other[0]) + at[1] * (at[1] - other[1])) / double_area
        };
        entries[q] -= 0.5 * (kappa * cotangent(v, u));
        entries[r] -= 0.5 * (kappa * cotangent(u, v));
    }
    entries[CENTRE] = -star.members().map(|k| entries[k]).sum::<f64>();
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_m_matrix_whose_inner_rows_sum_to_zero() {
        let grid = Grid { n: [40, 30, 1] };
        let a = fem2d(&grid).unwrap();
        for i in 0..a.nrows() {
            let (columns, values) = a.row(i);
            let mut sum = 0.0;
            for (&j, &v) in columns.iter().zip(values) {
                assert!(if i == j as usize { v > 0.0 } else { v <= 0.0 });
                sum += v;
            }
            let [x, y, _] = grid.cell(i);
            let inner = (3..37).contains(&x) && (3..27).contains(&y);
            assert!(if inner { sum.abs() < 1e-12 } else { sum > -1e-12 });
        }
    }

    /// Linear functions are harmonic and linear elements hold them exactly: Σⱼ aᵢⱼ xⱼ = 0 at inner points.
    #[test]
    fn linear_functions_are_in_the_kernel() {
        let grid = Grid { n: [20, 20, 1] };
        let a = fem2d(&grid).unwrap();
        let point = |i: usize| {
            let [x, y, _] = grid.cell(i);
            Points::JITTERED.window(x as i64, y as i64, Star(0)).origin.map(|v| v as f64 / CELL as f64)
        };
        for axis in [0, 1] {
            let u: Vec<f64> = (0..400).map(|i| point(i)[axis]).collect();
            let mut f = vec![0.0; 400];
            a.mul_vec(&u, &mut f).unwrap();
            for i in 0..400 {
                let [x, y, _] = grid.cell(i);
                if (3..17).contains(&x) && (3..17).contains(&y) {
                    assert!(f[i].abs() < 1e-11, "{i} {}", f[i]);
                }
            }
        }
    }

    #[test]
    fn thermal_has_the_pattern_of_the_mesh_and_other_values() {
        let grid = Grid { n: [50, 40, 1] };
        let (a, b) = (fem2d(&grid).unwrap(), thermal(&grid).unwrap());
        assert_eq!(a.pattern(), b.pattern());
        assert!(a.nnz() as u64 <= nnz_bound(&grid));
        let ratios = (0..2000).map(|i| b.get(i, i) / a.get(i, i));
        let (least, most) = ratios.fold((f64::MAX, 0.0), |(l, m), r: f64| (r.min(l), r.max(m)));
        assert!(least >= 0.999 && most <= 1001.0 && most > 2.0 * least);
    }
}
