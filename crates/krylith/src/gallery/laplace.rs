//! Constant stencils on a grid, Dirichlet conditions eliminated but where it says otherwise.
//!
//!   poisson2d, poisson3d   −Δu by second differences: diagonal 2 per axis, neighbours −1
//!   neumann2d, neumann3d   the same with insulated sides: the diagonal counts the neighbours, and constants are in the null space
//!   hpcg                   27-point: diagonal 26, the other cells of the 3 x 3 x 3 box −1
//!   convection3d           −Δu + v·∇u, upwind, times h²: along each axis −(1 + v h), 2 + v h, −1 with h = 1/(n + 1),
//!                          v = 200 (1, 0.7, 0.4)
//!
//! The 27-point matrix is the one of the HPCG benchmark: Dongarra, Heroux & Luszczek 2016, doi:10.1177/1094342015593158.

use super::grid::{Grid, Stencil};
use crate::error::MatrixError;
use crate::matrix::Csr;

const VELOCITY: [f64; 3] = [200.0, 140.0, 80.0];

pub(super) fn poisson2d(grid: &Grid) -> Result<Csr<f64>, MatrixError> {
    grid.star_matrix(|_, _| Stencil { diagonal: 4.0, low: [-1.0; 3], high: [-1.0; 3] })
}

pub(super) fn poisson3d(grid: &Grid) -> Result<Csr<f64>, MatrixError> {
    grid.star_matrix(|_, _| Stencil { diagonal: 6.0, low: [-1.0; 3], high: [-1.0; 3] })
}

pub(super) fn neumann(grid: &Grid) -> Result<Csr<f64>, MatrixError> {
    grid.star_matrix(|_, cell| {
        let neighbours =
            |axis: usize| usize::from(cell[axis] > 0) + usize::from(cell[axis] + 1 < grid.n[axis]);
        let diagonal = (0..3).map(neighbours).sum::<usize>() as f64;
        Stencil { diagonal, low: [-1.0; 3], high: [-1.0; 3] }
    })
}

pub(super) fn convection3d(grid: &Grid) -> Result<Csr<f64>, MatrixError> {
    let vh: [f64; 3] = std::array::from_fn(|a| VELOCITY[a] * (1.0 / (grid.n[a] as f64 + 1.0)));
    let star =
        Stencil { diagonal: vh.iter().map(|c| 2.0 + c).sum(), low: vh.map(|c| -(1.0 + c)), high: [-1.0; 3] };
    grid.star_matrix(|_, _| star)
}

pub(super) fn hpcg(grid: &Grid) -> Result<Csr<f64>, MatrixError> {
    let n = grid.len();
    Csr::from_rows(
        n,
        n,
        |i| (0..3).map(|axis| grid.near(grid.cell(i), axis).count()).product(),
        |i, columns, values| {
            let cell = grid.cell(i);
            let mut k = 0;
            for z in grid.near(cell, 2) {
                for y in grid.near(cell, 1) {
                    for x in grid.near(cell, 0) {
                        let j = grid.index([x, y, z]);
                        (columns[k], values[k]) = (j as u32, if i == j { 26.0 } else { -1.0 });
                        k += 1;
                    }
                }
            }
        },
    )
}
