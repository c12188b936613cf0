//! Transport of a tracer in a rotating atmosphere: nonsymmetric, 7-point.
//!
//!   u/T + v·∇u − ∇·(κ ∇u) on the unit cube, h = 1/(n + 1) per axis, Dirichlet conditions eliminated,
//!   v = (−(y − ½), x − ½, w),  w = x (1 − x) y (1 − y),  κ = 10⁻³ (1, 1, exp(−3 z)),  T = 1.
//!
//! First-order upwind for the transport; κ is taken on the faces. Along each axis
//!
//!   low = −(κ₋/h² + max(v, 0)/h),  high = −(κ₊/h² + max(−v, 0)/h),  diagonal = 1/T − Σ (low + high),
//!
//! so every row is strictly diagonally dominant. 148 x 148 x 58 is of the size of atmosmodd (n = 1,270,432,
//! nnz = 8,814,880), and of its family, with other numbers; BiCGStab with ILU(0) takes 74 iterations to 1e-7, on atmosmodd 74.5 (benchmarks/runs/2026-11-18-nvidia).

use super::grid::{Grid, Stencil};
use crate::error::MatrixError;
use crate::matrix::Csr;

const KAPPA: f64 = 1e-3;

pub(super) fn atmosmod(grid: &Grid) -> Result<Csr<f64>, MatrixError> {
    let h = grid.n.map(|m| 1.0 / (m as f64 + 1.0));
    // Vertical diffusion on the face below each layer, and above the last.
    let vertical: Vec<f64> =
        (0..=grid.n[2]).map(|z| KAPPA * libm::exp(-3.0 * (z as f64 + 0.5) * h[2])).collect();
    grid.star_matrix(|_, cell| {
        let [x, y] = [0, 1].map(|a| (cell[a] as f64 + 1.0) * h[a]);
        let velocity = [0.5 - y, x - 0.5, x * (1.0 - x) * y * (1.0 - y)];
        let kappa = [[KAPPA; 2], [KAPPA; 2], [vertical[cell[2]], vertical[cell[2] + 1]]];
        let mut star = Stencil { diagonal: 1.0, ..Stencil::default() };
        for a in 0..3 {
            let low = kappa[a][0] / (h[a] * h[a]) + velocity[a].max(0.0) / h[a];
            let high = kappa[a][1] / (h[a] * h[a]) + (-velocity[a]).max(0.0) / h[a];
            (star.low[a], star.high[a]) = (-low, -high);
            star.diagonal += low + high;
        }
        star
    })
}
