//! −∇·(k ∇u) with one coefficient a cell, by finite volumes.
//!
//! The face between cells i and j along an axis of anisotropy a carries
//!
//!   f = a · 2 kᵢ kⱼ / (kᵢ + kⱼ),   aᵢⱼ = −f,   aᵢᵢ = Σ f over the faces of i;
//!
//! a face on the boundary carries 2 a kᵢ (Dirichlet) or nothing (insulated). kᵢ kⱼ is formed first, so that f has the
//! same bits from both sides.
//!
//!   jump3d    a = (1, 1, 10⁻²), k = exp(2 N(0, 1)), Dirichlet
//!   apache    a = (1, 10⁻¹, 10²), k = 10^(2 U(0, 1)), Dirichlet; 301 x 297 x 8 is of the size of apache2
//!             (n = 715,176, nnz = 4,817,870), not of its difficulty: CG with ILU(0) takes 8 iterations to 1e-7, there 713
//!   ecology   a = (1, 1), k = exp(3 p + N(0, 1)/2) with p a landscape of patches 24 cells wide, insulated; the middle
//!             cell is grounded, that is eliminated; 1000 x 1000 is of the size of ecology2 (n = 999,999,
//!             nnz = 4,995,991); CG with ILU(0) takes 1895 iterations to 1e-7, there 1746
//!
//! Iterations are those of benchmarks/runs/2026-11-18-nvidia and of NVIDIA's paper.

use super::grid::{Grid, Stencil};
use super::random::{SEED, hash, normal, power_of_ten, uniform};
use crate::error::MatrixError;
use crate::matrix::Csr;

/// What the faces on the boundary carry.
#[derive(Clone, Copy, PartialEq)]
enum Boundary {
    Dirichlet,
    Insulated,
}

/// Width of the patches of `ecology`, in cells.
const PATCH: usize = 24;

pub(super) fn jump3d(grid: &Grid) -> Result<Csr<f64>, MatrixError> {
    let k = grid.field(|i, _| libm::exp(2.0 * normal(SEED, i as u64)));
    grid.star_matrix(|i, cell| flow(grid, [1.0, 1.0, 1e-2], &k, Boundary::Dirichlet, i, cell))
}

pub(super) fn apache(grid: &Grid) -> Result<Csr<f64>, MatrixError> {
    let k = grid.field(|i, _| power_of_ten(2.0 * uniform(hash(SEED, i as u64))));
    grid.star_matrix(|i, cell| flow(grid, [1.0, 0.1, 100.0], &k, Boundary::Dirichlet, i, cell))
}

pub(super) fn ecology(grid: &Grid) -> Result<Csr<f64>, MatrixError> {
    let k = grid.field(|i, cell| libm::exp(3.0 * patches(cell) + 0.5 * normal(SEED, i as u64)));
    let middle = grid.index(grid.n.map(|m| m / 2));
    grid.punctured_star_matrix(middle, |i, cell| flow(grid, [1.0; 3], &k, Boundary::Insulated, i, cell))
}

/// Entries of `ecology`: those of the grid but for the row and the column of the middle cell.
pub(super) fn ecology_nnz(grid: &Grid) -> u64 {
    let neighbours = grid.n.iter().map(|&m| (m > 1) as u64 + (m > 2) as u64).sum::<u64>();
    grid.star_nnz() - 1 - 2 * neighbours
}

fn flow(grid: &Grid, a: [f64; 3], k: &[f64], boundary: Boundary, i: usize, cell: [usize; 3]) -> Stencil {
    let strides = grid.strides();
    let face = |axis: usize, neighbour: Option<usize>| match neighbour {
        Some(j) => a[axis] * (2.0 * (k[i] * k[j]) / (k[i] + k[j])),
        None if boundary == Boundary::Dirichlet => 2.0 * a[axis] * k[i],
        None => 0.0,
    };
    let mut star = Stencil::default();
    for axis in 0..3 {
        let low = face(axis, (cell[axis] > 0).then(|| i - strides[axis]));
        let high = face(axis, (cell[axis] + 1 < grid.n[axis]).then(|| i + strides[axis]));
        (star.low[axis], star.high[axis]) = (-low, -high);
        star.diagonal += low + high;
    }
    star
}

/// A landscape in [0, 1): random heights on a lattice of spacing `PATCH`, bilinear in between.
fn patches([x, y, _]: [usize; 3]) -> f64 {
    let height = |x: usize, y: usize| uniform(hash(hash(!SEED, x as u64), y as u64));
    let (px, py) = (x / PATCH, y / PATCH);
    let (s, t) = ((x % PATCH) as f64 / PATCH as f64, (y % PATCH) as f64 / PATCH as f64);
    let along = |y: usize| height(px, y) * (1.0 - s) + height(px + 1, y) * s;
    along(py) * (1.0 - t) + along(py + 1) * t
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_cells_by_hand() {
        let a = jump3d(&Grid { n: [1, 2, 1] }).unwrap();
        let k = [0, 1].map(|i| libm::exp(2.0 * normal(SEED, i)));
        let f = 2.0 * k[0] * k[1] / (k[0] + k[1]);
        // Cell 0: two x faces, two z faces and one y face on the boundary.
        let diagonal = 2.0 * 2.0 * k[0] + 2.0 * 2.0 * 1e-2 * k[0] + 2.0 * k[0] + f;
        assert!((a.get(0, 1) + f).abs() <= 1e-15 * f);
        assert!((a.get(0, 0) - diagonal).abs() <= 1e-14 * diagonal);
    }

    #[test]
    fn rows_of_ecology_sum_to_zero_away_from_the_ground() {
        let grid = Grid { n: [9, 8, 1] };
        let a = ecology(&grid).unwrap();
        assert_eq!((a.nrows(), a.nnz() as u64), (71, ecology_nnz(&grid)));
        let grounded = (0..a.nrows())
            .filter(|&i| {
                let (sum, size) =
                    a.row(i).1.iter().fold((0.0, 0.0), |(s, m): (f64, f64), v| (s + v, m + v.abs()));
                sum > 1e-12 * size
            })
            .count();
        assert_eq!(grounded, 4);
    }
}
