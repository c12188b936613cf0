//! One implicit step of coupled Cahn–Hilliard equations for a mixture of copolymer and homopolymer: 25-point, 2
//! unknowns per point.
//!
//!   ∂u/∂t = ∇·(m ∇μ),               μ = −ε² Δu + ∂W/∂u      u: copolymer against homopolymer
//!   ∂v/∂t = ∇·(m ∇ν) − σ (v − v̄),   ν = −ε² Δv + ∂W/∂v      v: the two blocks of the copolymer
//!   W = (u² − 1)²/4 + (v² − 1)²/4 + α u v + β u v² + γ u² v
//!
//! The matrix is the Jacobian of a backward Euler step with the mobility m of the step before,
//!
//!   A = 1/Δt + diag(0, σ) + K (ε² L + H),   H = ( 3u² − 1 + 2γv     α + 2βv + 2γu )
//!                                               ( α + 2βv + 2γu     3v² − 1 + 2βu )
//!
//! L is −Δ and K is −∇·(m ∇) by 7-point differences of spacing 1, with the mean of m on a face; H is the Hessian of W at
//! each point. K L reaches all points within two steps. Blocks two steps away are diagonal, their zeros stored.
//! Nothing flows through the boundary, of u and v or of their potentials: a face on it carries nothing, so no coupling
//! leaves the grid and the columns of A sum to 1/Δt, and to 1/Δt + σ for v.
//!
//! ε = 1, σ = 0.1, Δt = 0.7, (α, β, γ) = (0.1, −0.3, 0.2). The state is a gyroid of period 16: with S(X, Y, Z) =
//! sin X cos Y + sin Y cos Z + sin Z cos X and X = 2πx/16 and so on, u = tanh(3/2 S(X, Y, Z)),
//! v = tanh(3/2 S(Y + 1, X + 2, Z + 3)) and m = 1 − (u² + v²)/4.
//!
//! A is nonsymmetric, since K commutes with neither L nor H. H is indefinite between the phases, with eigenvalues above
//! −η, η = 1.68. A is regular all the same, as Δt η² < 4ε²: were A x = 0, then x = K'½ w for K' = K/(1/Δt + diag(0, σ))
//! with w ≠ 0 and |w|² = −wᵀK'½ (ε²L + H) K'½ w ≤ η |w| |K'w| − ε² |K'w|²/Δt ≤ Δt η²/(4ε²) |w|², for K' ≤ Δt K ≤ Δt L.
//!
//! References: Martini & Sodini 2019, arXiv:1905.01482 (the model); Li, Zhang, Xia, Yu & Kim 2021,
//! doi:10.1016/j.commatsci.2021.110809 (implicit steps). Deviations: m varies, and the step is of first order.

use super::blocks::{NEAREST, Points, Row};
use super::grid::Grid;
use crate::error::MatrixError;
use crate::matrix::Csr;
use std::f64::consts::TAU;

const TIME_STEP: f64 = 0.7;
/// ε²: the square of the width of the interfaces.
const WIDTH_SQUARED: f64 = 1.0;
/// σ: how strongly v is drawn to its mean.
const SIGMA: f64 = 0.1;
/// α, β, γ of the potential.
const ALPHA: f64 = 0.1;
const BETA: f64 = -0.3;
const GAMMA: f64 = 0.2;
/// Period of the state, in steps of the grid.
const PERIOD: f64 = 16.0;

/// What a point of the last step adds to the matrix.
#[derive(Clone, Copy)]
struct State {
    mobility: f64,
    hessian: [[f64; 2]; 2],
}

pub(super) fn cahn_hilliard_nnz(grid: &Grid) -> u64 {
    Points::diamond25().nnz(grid, 2)
}

pub(super) fn cahn_hilliard(grid: &Grid) -> Result<Csr<f64>, MatrixError> {
    assemble(grid, &grid.field(|_, cell| State::at(cell)))
}

fn assemble(grid: &Grid, states: &[State]) -> Result<Csr<f64>, MatrixError> {
    Points::diamond25().matrix(grid, |cell, c, row: &mut Row<'_, 2>| {
        let own = &states[grid.index(cell)];
        row.at([0; 3])[c] = 1.0 / TIME_STEP + if c == 1 { SIGMA } else { 0.0 };
        for out in NEAREST {
            let Some(next) = grid.step(cell, out) else { continue };
            let other = &states[grid.index(next)];
            let face = 0.5 * (own.mobility + other.mobility);
            // The row of K: `face` at the point, −`face` beyond; each times a row of ε² L + H.
            for (from, at, state, factor) in [([0; 3], cell, own, face), (out, next, other, -face)] {
                for e in 0..2 {
                    row.at(from)[e] += factor * state.hessian[c][e];
                }
                let bend = factor * WIDTH_SQUARED;
                for step in NEAREST.into_iter().filter(|&step| grid.step(at, step).is_some()) {
                    row.at(from)[c] += bend;
                    row.at(std::array::from_fn(|a| from[a] + step[a]))[c] -= bend;
                }
            }
        }
    })
}

impl State {
    fn at(cell: [usize; 3]) -> State {
        let [x, y, z] = cell.map(|s| TAU / PERIOD * s as f64);
        State::new(libm::tanh(1.5 * gyroid(x, y, z)), libm::tanh(1.5 * gyroid(y + 1.0, x + 2.0, z + 3.0)))
    }

    fn new(u: f64, v: f64) -> State {
        let mixed = ALPHA + 2.0 * BETA * v + 2.0 * GAMMA * u;
        let hessian =
            [[3.0 * u * u - 1.0 + 2.0 * GAMMA * v, mixed], [mixed, 3.0 * v * v - 1.0 + 2.0 * BETA * u]];
        State { mobility: 1.0 - 0.25 * (u * u + v * v), hessian }
    }
}

fn gyroid(x: f64, y: f64, z: f64) -> f64 {
    libm::sin(x) * libm::cos(y) + libm::sin(y) * libm::cos(z) + libm::sin(z) * libm::cos(x)
}

#[cfg(test)]
mod tests {
    use super::super::blocks::apply;
    use super::*;

    fn close(found: [f64; 2], expected: [f64; 2]) {
        for (f, e) in found.into_iter().zip(expected) {
            assert!((f - e).abs() < 1e-10, "{found:?} {expected:?}");
        }
    }

    /// Two points: K = m (1, −1; −1, 1), L likewise with 1, K L = 2 m (1, −1; −1, 1).
    #[test]
    fn two_points_by_hand() {
        let states = [State::new(0.5, -0.5), State::new(0.0, 1.0)];
        let a = assemble(&Grid { n: [1, 1, 2] }, &states).unwrap();
        // Mobilities 7/8 and 3/4; Hessians (-0.45, 0.6; 0.6, -0.55) and (-0.6, -0.5; -0.5, 2).
        let m = 0.8125;
        let t = 1.0 / TIME_STEP;
        let expected = [
            [t + 2.0 * m - 0.45 * m, 0.6 * m, -2.0 * m + 0.6 * m, 0.5 * m],
            [0.6 * m, t + SIGMA + 2.0 * m - 0.55 * m, 0.5 * m, -2.0 * m - 2.0 * m],
            [-2.0 * m + 0.45 * m, -0.6 * m, t + 2.0 * m - 0.6 * m, -0.5 * m],
            [-0.6 * m, -2.0 * m + 0.55 * m, -0.5 * m, t + SIGMA + 2.0 * m + 2.0 * m],
        ];
        for (i, row) in expected.iter().enumerate() {
            for (j, value) in row.iter().enumerate() {
                assert!((a.get(i, j) - value).abs() < 1e-14, "({i}, {j})");
            }
        }
    }

    /// Nothing flows out: the columns sum to 1/Δt, those of v to 1/Δt + σ, at the boundary too.
    #[test]
    fn mass_is_conserved() {
        let a = cahn_hilliard(&Grid { n: [5, 4, 6] }).unwrap();
        let mut sums = vec![0.0; a.ncols()];
        for i in 0..a.nrows() {
            let (columns, values) = a.row(i);
            for (&j, v) in columns.iter().zip(values) {
                sums[j as usize] += v;
            }
        }
        for (j, sum) in sums.into_iter().enumerate() {
            let expected = 1.0 / TIME_STEP + if j % 2 == 1 { SIGMA } else { 0.0 };
            assert!((sum - expected).abs() < 1e-12, "{j}: {sum}");
        }
    }

    /// In a uniform state A U = U/Δt + σ v + m (ε² Δ²U − H ΔU). Second and fourth differences of x⁴ are 12x² + 2 and 24,
    /// those of x²y² by both axes 2 (x² + y²) and, as Δ² holds ∂²∂² of every two axes twice, 8.
    #[test]
    fn polynomials_in_a_uniform_state() {
        let state = State::new(0.3, -0.6);
        let (grid, m, h) = (Grid { n: [6, 6, 5] }, state.mobility, state.hessian);
        let a = assemble(&grid, &vec![state; grid.len()]).unwrap();
        let (x, y, t) = (2.0f64, 3.0f64, 1.0 / TIME_STEP);
        let (fourth, mixed) = (x.powi(4), x * x * y * y);
        let (d_fourth, d_mixed) = (12.0 * x * x + 2.0, 2.0 * (x * x + y * y));
        let found = apply(&a, &grid, [2, 3, 2], |[x, y, _]| [x.powi(4), x * x * y * y]);
        let u = t * fourth + m * (24.0 * WIDTH_SQUARED - h[0][0] * d_fourth - h[0][1] * d_mixed);
        let v = (t + SIGMA) * mixed + m * (8.0 * WIDTH_SQUARED - h[1][0] * d_fourth - h[1][1] * d_mixed);
        close(found, [u, v]);
    }

    /// In the varying state, a constant (p, q) gives (p, q)/Δt + σ q + K H (p, q).
    #[test]
    fn a_constant_in_the_varying_state() {
        let grid = Grid { n: [5, 5, 5] };
        let found = apply(&cahn_hilliard(&grid).unwrap(), &grid, [2, 1, 3], |_| [2.0, -1.0]);
        let potential = |s: &State, c: usize| 2.0 * s.hessian[c][0] - s.hessian[c][1];
        let own = State::at([2, 1, 3]);
        let near = [[1, 1, 3], [3, 1, 3], [2, 0, 3], [2, 2, 3], [2, 1, 2], [2, 1, 4]].map(State::at);
        let flow = |c: usize| -> f64 {
            let through =
                |s: &State| (own.mobility + s.mobility) / 2.0 * (potential(&own, c) - potential(s, c));
            near.iter().map(through).sum()
        };
        close(found, [2.0 / TIME_STEP + flow(0), -1.0 / TIME_STEP - SIGMA + flow(1)]);
    }

    /// H against second differences of W, exact for cubics and off by h²/2 for (u² − 1)²/4.
    #[test]
    fn the_hessian_is_that_of_the_potential() {
        let w = |u: f64, v: f64| {
            let well = |s: f64| (s * s - 1.0) * (s * s - 1.0) / 4.0;
            well(u) + well(v) + ALPHA * u * v + BETA * u * v * v + GAMMA * u * u * v
        };
        let (u, v, s) = (0.4, -0.7, 1e-3);
        let uu = (w(u + s, v) - 2.0 * w(u, v) + w(u - s, v)) / (s * s) - s * s / 2.0;
        let vv = (w(u, v + s) - 2.0 * w(u, v) + w(u, v - s)) / (s * s) - s * s / 2.0;
        let uv = (w(u + s, v + s) - w(u + s, v - s) - w(u - s, v + s) + w(u - s, v - s)) / (4.0 * s * s);
        let [[a, b], [c, d]] = State::new(u, v).hessian;
        for (found, expected) in [(a, uu), (b, uv), (c, uv), (d, vv)] {
            assert!((found - expected).abs() < 1e-8, "{found} {expected}");
        }
    }

    /// What regularity rests on: Δt η² < 4ε² with all eigenvalues of H above −η, and m at most 1.
    #[test]
    fn the_step_is_short_enough() {
        let eta = 1.68;
        assert!(TIME_STEP * eta * eta < 4.0 * WIDTH_SQUARED);
        for k in 0..=200 {
            for l in 0..=200 {
                let [u, v] = [k, l].map(|s| f64::from(s) / 100.0 - 1.0);
                let State { mobility, hessian: [[a, b], [_, d]] } = State::new(u, v);
                assert!(a + eta > 0.0 && (a + eta) * (d + eta) > b * b && mobility <= 1.0, "{u} {v}");
            }
        }
    }
}
