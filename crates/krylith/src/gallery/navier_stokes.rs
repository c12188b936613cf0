//! One implicit step of incompressible flow, linearised about a wind (Oseen's equations): 27-point, 4 unknowns per node.
//!
//!   u/Δt + b·∇u − ∇·(2ν ε(u)) + ∇p = f,   ∇·u = g;      unknowns of a node (u, v, w, p)
//!
//! Trilinear elements of side 1 for velocity and pressure alike, stabilised: for test functions v and q
//!
//!   ∫ (u/Δt + b·∇u)·v + 2ν ε(u):ε(v) − p ∇·v + q ∇·u + τ (u/Δt + b·∇u + ∇p)·(b·∇v + ∇q) + δ (∇·u)(∇·v),
//!   τ = ((2/Δt)² + (2|b|)² + (4ν)²)^(−1/2),   δ = |b|/2 · min(1, |b|/(6ν)).
//!
//! Δt = 1, so an element is crossed in about a step. The wind (sin Z + cos Y, sin X + cos Z, sin Y + cos X), where X runs
//! from 0 to 2π along the side of the grid and so on, is taken in the middle of an element; ν = 0.1 exp(N(0, 1)/2) an
//! element. All integrals are exact, products of those along the axes. Velocity and pressure are zero on a layer of
//! nodes around the grid, which is eliminated.
//!
//! A is nonsymmetric, and regular: xᵀA x > 0. The terms −p ∇·u and p ∇·u cancel; b·∇u adds nothing, since no component
//! of b varies along its own axis; and τ ≤ Δt/2 leaves at least 7/8 |u|²/Δt, or τ |∇p|² where u = 0.
//!
//! Reference: Tezduyar, Mittal, Ray & Shih 1992, doi:10.1016/0045-7825(92)90141-6. Deviations: τ blends its limits
//! smoothly; the residual in the stabilisation leaves out the viscous term, of which trilinear functions have only the
//! mixed second derivatives.

use super::blocks::{Points, Row};
use super::grid::Grid;
use super::random::{SEED, normal};
use crate::error::MatrixError;
use crate::matrix::Csr;
use std::f64::consts::TAU;

const TIME_STEP: f64 = 1.0;
const VISCOSITY: f64 = 0.1;

pub(super) fn navier_stokes_nnz(grid: &Grid) -> u64 {
    Points::box27().nnz(grid, 4)
}

pub(super) fn navier_stokes(grid: &Grid) -> Result<Csr<f64>, MatrixError> {
    let mesh = mesh(grid);
    let elements = mesh.field(|i, cell| {
        let middle = std::array::from_fn(|a| (cell[a] as f64 + 0.5) / mesh.n[a] as f64);
        Element::new(wind(middle), VISCOSITY * libm::exp(0.5 * normal(SEED, i as u64)))
    });
    assemble(grid, &elements)
}

/// The elements: one more than nodes along each axis, those on the boundary holding on to the eliminated layer.
fn mesh(grid: &Grid) -> Grid {
    Grid { n: grid.n.map(|m| m + 1) }
}

fn assemble(grid: &Grid, elements: &[Element]) -> Result<Csr<f64>, MatrixError> {
    let (mesh, integrals) = (mesh(grid), Integrals::table());
    Points::box27().matrix(grid, |cell, c, row: &mut Row<'_, 4>| {
        for i in 0..8 {
            // The element whose corner i is the node.
            let element = &elements[mesh.index(std::array::from_fn(|a| cell[a] + 1 - corner(i, a)))];
            for j in 0..8 {
                let to = std::array::from_fn(|a| corner(j, a) as isize - corner(i, a) as isize);
                let couplings = element.couplings(&integrals[8 * i + j], c);
                for (value, coupling) in row.at(to).iter_mut().zip(couplings) {
                    *value += coupling;
                }
            }
        }
    })
}

/// The wind at a position in the unit cube. Free of divergence.
fn wind(position: [f64; 3]) -> [f64; 3] {
    let [x, y, z] = position.map(|s| TAU * s);
    let (sin, cos) = (libm::sin, libm::cos);
    [sin(z) + cos(y), sin(x) + cos(z), sin(y) + cos(x)]
}

/// Flow and stabilisation in an element.
#[derive(Clone, Copy)]
struct Element {
    wind: [f64; 3],
    viscosity: f64,
    tau: f64,
    delta: f64,
}

impl Element {
    fn new(wind: [f64; 3], viscosity: f64) -> Element {
        let speed = libm::sqrt(dot(wind, wind));
        let rates = [2.0 / TIME_STEP, 2.0 * speed, 4.0 * viscosity];
        let tau = 1.0 / libm::sqrt(dot(rates, rates));
        let delta = 0.5 * speed * (speed / (6.0 * viscosity)).min(1.0);
        Element { wind, viscosity, tau, delta }
    }

    /// What the four unknowns of one corner add to equation `c` of another.
    fn couplings(&self, integrals: &Integrals, c: usize) -> [f64; 4] {
        let Element { wind, viscosity, tau, delta } = *self;
        let Integrals { mass, test, trial, both } = *integrals;
        // b·∇ of the one function times ∂ of the other.
        let test_along: [f64; 3] =
            std::array::from_fn(|e| wind[0] * both[0][e] + wind[1] * both[1][e] + wind[2] * both[2][e]);
        let trial_along = both.map(|row| dot(row, wind));
        let laplace = both[0][0] + both[1][1] + both[2][2];
        if c == 3 {
            let velocity = |e: usize| trial[e] + tau * (test[e] / TIME_STEP + trial_along[e]);
            return [velocity(0), velocity(1), velocity(2), tau * laplace];
        }
        let mut row = [0.0; 4];
        for e in 0..3 {
            row[e] = viscosity * both[e][c] + delta * both[c][e];
        }
        let inertia = mass / TIME_STEP + dot(wind, trial);
        let streamline = dot(wind, test) / TIME_STEP + dot(test_along, wind);
        row[c] += inertia + viscosity * laplace + tau * streamline;
        row[3] = tau * test_along[c] - test[c];
        row
    }
}

/// Integrals over an element of the functions of two corners, φ of the test and ψ of the trial.
#[derive(Clone, Copy)]
struct Integrals {
    /// ∫ φ ψ
    mass: f64,
    /// ∫ ∂ₐφ ψ
    test: [f64; 3],
    /// ∫ φ ∂ₐψ
    trial: [f64; 3],
    /// ∫ ∂ₐφ ∂ₑψ
    both: [[f64; 3]; 3],
}

impl Integrals {
    /// Of every two corners, the one of the test function first.
    fn table() -> [Integrals; 64] {
        std::array::from_fn(|pair| Integrals::new(pair / 8, pair % 8))
    }

    /// Along an axis, ∫ φψ = 1/3 or 1/6, ∫ φ'ψ = ±1/2, ∫ φ'ψ' = ±1.
    fn new(i: usize, j: usize) -> Integrals {
        let product = |a: usize| if corner(i, a) == corner(j, a) { 1.0 / 3.0 } else { 1.0 / 6.0 };
        let slope = |number: usize, a: usize| corner(number, a) as f64 - 0.5;
        // The factors of the axes other than one, or than two.
        let but = |a: usize| product((a + 1) % 3) * product((a + 2) % 3);
        let both = |a: usize, e: usize| {
            let slopes = slope(i, a) * slope(j, e);
            if a == e { 4.0 * slopes * but(a) } else { slopes * product(3 - a - e) }
        };
        Integrals {
            mass: product(0) * but(0),
            test: std::array::from_fn(|a| slope(i, a) * but(a)),
            trial: std::array::from_fn(|a| slope(j, a) * but(a)),
            both: std::array::from_fn(|a| std::array::from_fn(|e| both(a, e))),
        }
    }
}

/// On which side of an element its corner lies along an axis: 0 or 1.
#[inline]
fn corner(number: usize, axis: usize) -> usize {
    number >> axis & 1
}

fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

#[cfg(test)]
mod tests {
    use super::super::blocks::apply;
    use super::*;

    const B: [f64; 3] = [0.7, -0.4, 1.1];

    /// The equations of the middle node for a field, the flow being the same everywhere.
    fn middle(field: impl Fn([f64; 3]) -> [f64; 4]) -> [f64; 4] {
        let grid = Grid { n: [3, 4, 5] };
        let a = assemble(&grid, &vec![Element::new(B, 0.3); 4 * 5 * 6]).unwrap();
        apply(&a, &grid, [1, 2, 2], field)
    }

    fn close(found: [f64; 4], expected: [f64; 4]) {
        for (f, e) in found.into_iter().zip(expected) {
            assert!((f - e).abs() < 1e-13, "{found:?} {expected:?}");
        }
    }

    /// Velocities and pressure linear: with r = u/Δt + b·∇u + ∇p, the momentum is r − τ b·∇r, the mass ∇·u − τ ∇·r.
    #[test]
    fn linear_fields() {
        let gradients = [[1.0, 2.0, -1.0], [0.5, -3.0, 0.25], [2.0, 1.0, 4.0], [-2.0, 0.5, 3.0]];
        let at = |x: [f64; 3]| gradients.map(|g| 1.0 + dot(g, x));
        let tau = Element::new(B, 0.3).tau;
        let node = [1.0, 2.0, 2.0];
        let momentum = |c: usize| {
            let convection = dot(B, gradients[c]);
            at(node)[c] / TIME_STEP + convection + gradients[3][c] - tau * convection / TIME_STEP
        };
        let divergence = gradients[0][0] + gradients[1][1] + gradients[2][2];
        let mass = divergence - tau * divergence / TIME_STEP;
        close(middle(at), [momentum(0), momentum(1), momentum(2), mass]);
    }

    /// u = (x², 0, 0), whose nodal mean ∫ φ u is x² + 1/3: viscosity −2ν·2, divergence −2δ.
    #[test]
    fn a_quadratic_velocity() {
        let Element { viscosity, tau, delta, .. } = Element::new(B, 0.3);
        let stress = -4.0 * viscosity - 2.0 * delta;
        let x = 1.0;
        let inertia = (x * x + 1.0 / 3.0) / TIME_STEP + B[0] * 2.0 * x;
        let streamline = tau * (-B[0] * 2.0 * x / TIME_STEP - 2.0 * B[0] * B[0]);
        let mass = 2.0 * x - tau * (2.0 * x / TIME_STEP + 2.0 * B[0]);
        close(middle(|[x, ..]| [x * x, 0.0, 0.0, 0.0]), [inertia + stress + streamline, 0.0, 0.0, mass]);
    }

    /// p = x y: the gradient (y, x, 0), and the stabilisation −τ b·∇∇p; its Laplacian is zero. p = z² has −2τ.
    #[test]
    fn quadratic_pressures() {
        let tau = Element::new(B, 0.3).tau;
        close(middle(|[x, y, _]| [0.0, 0.0, 0.0, x * y]), [2.0 - tau * B[1], 1.0 - tau * B[0], 0.0, 0.0]);
        close(middle(|[_, _, z]| [0.0, 0.0, 0.0, z * z]), [0.0, 0.0, 4.0 - 2.0 * tau * B[2], -2.0 * tau]);
    }

    /// Where the flow varies, a constant velocity leaves u/Δt and what the elements disagree about.
    #[test]
    fn a_constant_in_the_varying_flow() {
        let grid = Grid { n: [4, 3, 5] };
        let found = apply(&navier_stokes(&grid).unwrap(), &grid, [2, 1, 3], |_| [0.0, 1.0, 0.0, 0.0]);
        let (mut momentum, mut mass) = (1.0 / TIME_STEP, 0.0);
        for i in 0..8 {
            let at: [usize; 3] = std::array::from_fn(|a| [3, 2, 4][a] - corner(i, a));
            let b = wind(std::array::from_fn(|a| (at[a] as f64 + 0.5) / (grid.n[a] as f64 + 1.0)));
            let number = at[0] + 5 * (at[1] + 4 * at[2]);
            let element = Element::new(b, VISCOSITY * libm::exp(0.5 * normal(SEED, number as u64)));
            // ∫ ∂ₐφ over an element is ±1/4.
            let slopes: [f64; 3] = std::array::from_fn(|a| 0.25 * (2.0 * corner(i, a) as f64 - 1.0));
            momentum += element.tau * dot(b, slopes) / TIME_STEP;
            mass += element.tau * slopes[1] / TIME_STEP;
        }
        close(found, [0.0, momentum, 0.0, mass]);
    }

    /// What makes the convection skew.
    #[test]
    fn no_component_of_the_wind_varies_along_its_axis() {
        for a in 0..3 {
            let mut position = [0.3, 0.6, 0.9];
            let before = wind(position)[a];
            position[a] = 0.05;
            assert_eq!(wind(position)[a], before);
        }
    }

    /// By hand: one node, eight equal elements. ∫φφ = 8/27, ∫∂φ∂φ = 8/9 along each axis.
    #[test]
    fn one_node_by_hand() {
        let Element { viscosity, tau, delta, .. } = Element::new(B, 0.3);
        let a = assemble(&Grid { n: [1; 3] }, &[Element::new(B, 0.3); 8]).unwrap();
        assert_eq!(a.nnz(), 16);
        for c in 0..3 {
            let stiffness = 4.0 * viscosity + delta + tau * dot(B, B);
            let expected = 8.0 / 27.0 / TIME_STEP + 8.0 / 9.0 * stiffness;
            assert!((a.get(c, c) - expected).abs() < 1e-14);
            assert!((a.get(c, 3) - 8.0 / 9.0 * tau * B[c]).abs() < 1e-14);
            assert!((a.get(3, c) - 8.0 / 9.0 * tau * B[c]).abs() < 1e-14);
        }
        assert!((a.get(3, 3) - 8.0 / 3.0 * tau).abs() < 1e-14);
    }
}
