//! One implicit step of the compressible Euler equations, linearised about a smooth flow: 13-point, 5 unknowns per point.
//!
//!   ∂U/∂t + Σₐ ∂(Aₐ U)/∂xₐ = 0,   U = (ρ, ρu, ρv, ρw, ρE),   Aₐ = ∂Fₐ/∂U at the background, γ = 1.4
//!
//! Each Jacobian is split by the signs of its eigenvalues, A = A⁺ + A⁻. With λ = vₐ, threefold, and vₐ ± c,
//!
//!   A± = λ± I + ((vₐ + c)± − λ±) r₊l₊ᵀ + ((vₐ − c)± − λ±) r₋l₋ᵀ,   s± = (s ± |s|)/2,
//!   r± = (1, v ± c nₐ, H ± c vₐ),   l± = ½ (β|v|²/2 ∓ vₐ/c, −β v ± nₐ/c, β),   β = (γ − 1)/c²,  H = 1/β + |v|²/2.
//!
//! A⁺U is differenced backwards and A⁻U forwards, to second order and with spacing 1,
//!
//!   (3/2) A⁺ᵢUᵢ − 2 A⁺ᵢ₋₁Uᵢ₋₁ + ½ A⁺ᵢ₋₂Uᵢ₋₂   and   −(3/2) A⁻ᵢUᵢ + 2 A⁻ᵢ₊₁Uᵢ₊₁ − ½ A⁻ᵢ₊₂Uᵢ₊₂,
//!
//! so A = 1/Δt + Σₐ (D⁻ₐ A⁺ₐ + D⁺ₐ A⁻ₐ) reaches two points along each axis. Time steps are local, Δt = 3/(|v| + c).
//! Outside the grid the perturbation U is zero: waves leave freely, and none come in.
//!
//! The background is v = 0.3 (sin Z + cos Y, sin X + cos Z, sin Y + cos X), c = 1 + 0.1 sin(X + Y) cos Z, where X is
//! 2π(x + 1)/(nx + 1) and so on; subsonic along every axis, so that both parts of every Jacobian differ from zero. The
//! Jacobians do not depend on the density. A is nonsymmetric, and its rows are not diagonally dominant.
//!
//! Reference: Steger & Warming 1981, doi:10.1016/0021-9991(81)90210-2. Deviation: they split fluxes and linearise,
//! here the flux is linearised and then split; A± is what they call the split of A.

use super::blocks::{Points, Row};
use super::grid::Grid;
use crate::error::MatrixError;
use crate::matrix::Csr;
use std::f64::consts::TAU;

/// γ, the ratio of the specific heats.
const GAMMA: f64 = 1.4;
/// How many steps of the grid the fastest wave goes in a step of time.
const COURANT: f64 = 3.0;
const MACH: f64 = 0.3;

/// A part of a Jacobian.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    Positive,
    Negative,
}

/// The background at a point.
#[derive(Clone, Copy)]
struct Flow {
    velocity: [f64; 3],
    /// Speed of sound.
    sound: f64,
}

pub(super) fn euler_nnz(grid: &Grid) -> u64 {
    Points::star13().nnz(grid, 5)
}

pub(super) fn euler(grid: &Grid) -> Result<Csr<f64>, MatrixError> {
    assemble(grid, &background(grid))
}

fn background(grid: &Grid) -> Vec<Flow> {
    grid.field(|_, cell| Flow::at(std::array::from_fn(|a| (cell[a] as f64 + 1.0) / (grid.n[a] as f64 + 1.0))))
}

fn assemble(grid: &Grid, flows: &[Flow]) -> Result<Csr<f64>, MatrixError> {
    Points::star13().matrix(grid, |cell, c, row: &mut Row<'_, 5>| {
        row.at([0; 3])[c] = flows[grid.index(cell)].fastest() / COURANT;
        for axis in 0..3 {
            for (part, upwind) in [(Part::Positive, -1), (Part::Negative, 1)] {
                for (steps, weight) in [(0, 1.5), (1, -2.0), (2, 0.5)] {
                    let mut to = [0; 3];
                    to[axis] = upwind * steps;
                    let Some(neighbour) = grid.step(cell, to) else { continue };
                    let jacobian = flows[grid.index(neighbour)].split(axis, part, c);
                    let weight = -weight * upwind as f64;
                    for (value, entry) in row.at(to).iter_mut().zip(jacobian) {
                        *value += weight * entry;
                    }
                }
            }
        }
    })
}

impl Flow {
    /// At a position in the unit cube.
    fn at(position: [f64; 3]) -> Flow {
        let [x, y, z] = position.map(|s| TAU * s);
        let (sin, cos) = (libm::sin, libm::cos);
        let velocity = [sin(z) + cos(y), sin(x) + cos(z), sin(y) + cos(x)].map(|v| MACH * v);
        Flow { velocity, sound: 1.0 + 0.1 * sin(x + y) * cos(z) }
    }

    /// |v|²/2
    fn kinetic(&self) -> f64 {
        let [u, v, w] = self.velocity;
        0.5 * (u * u + v * v + w * w)
    }

    /// The speed of the fastest wave, |v| + c.
    fn fastest(&self) -> f64 {
        libm::sqrt(2.0 * self.kinetic()) + self.sound
    }

    /// Row `c` of A⁺ or A⁻ along an axis.
    fn split(&self, axis: usize, part: Part, c: usize) -> [f64; 5] {
        let ([u, v, w], sound, kinetic) = (self.velocity, self.sound, self.kinetic());
        let speed = self.velocity[axis];
        let of = |s: f64| if part == Part::Positive { s.max(0.0) } else { s.min(0.0) };
        let beta = (GAMMA - 1.0) / (sound * sound);
        let mut row = [0.0; 5];
        row[c] = of(speed);
        for signed in [sound, -sound] {
            let mut right = [1.0, u, v, w, 1.0 / beta + kinetic + signed * speed];
            right[1 + axis] += signed;
            let mut left = [beta * kinetic - speed / signed, -beta * u, -beta * v, -beta * w, beta];
            left[1 + axis] += 1.0 / signed;
            let factor = 0.5 * (of(speed + signed) - of(speed)) * right[c];
            for (value, l) in row.iter_mut().zip(left) {
                *value += factor * l;
            }
        }
        row
    }
}

#[cfg(test)]
mod tests {
    use super::super::blocks::apply;
    use super::*;

    type State = [f64; 5];

    const FLOW: Flow = Flow { velocity: [0.4, -0.25, 0.1], sound: 1.1 };

    fn times(flow: &Flow, axis: usize, part: Part, u: &State) -> State {
        std::array::from_fn(|c| flow.split(axis, part, c).iter().zip(u).map(|(a, u)| a * u).sum())
    }

    /// A U, both parts.
    fn whole(flow: &Flow, axis: usize, u: &State) -> State {
        let (p, n) = (times(flow, axis, Part::Positive, u), times(flow, axis, Part::Negative, u));
        std::array::from_fn(|c| p[c] + n[c])
    }

    /// Density, momentum and energy of a flow of density 1: p = ρc²/γ.
    fn state(flow: &Flow) -> State {
        let [u, v, w] = flow.velocity;
        [1.0, u, v, w, flow.sound * flow.sound / (GAMMA * (GAMMA - 1.0)) + flow.kinetic()]
    }

    /// F(U) along an axis.
    fn flux(axis: usize, u: &State) -> State {
        let momentum = [u[1], u[2], u[3]];
        let kinetic = 0.5 * momentum.iter().map(|m| m * m).sum::<f64>() / u[0];
        let (speed, pressure) = (momentum[axis] / u[0], (GAMMA - 1.0) * (u[4] - kinetic));
        let mut f = u.map(|value| speed * value);
        f[1 + axis] += pressure;
        f[4] += speed * pressure;
        f
    }

    fn close(found: State, expected: State, tolerance: f64) {
        for (f, e) in found.into_iter().zip(expected) {
            assert!((f - e).abs() < tolerance, "{found:?} {expected:?}");
        }
    }

    /// A⁺ + A⁻ against central differences of the flux, and A U = F(U): the flux is homogeneous.
    #[test]
    fn the_parts_sum_to_the_jacobian_of_the_flux() {
        let (u, h) = (state(&FLOW), 1e-5);
        for axis in 0..3 {
            close(whole(&FLOW, axis, &u), flux(axis, &u), 1e-14);
            for k in 0..5 {
                let moved =
                    |by: f64| flux(axis, &std::array::from_fn(|c| u[c] + if c == k { by } else { 0.0 }));
                let (up, down) = (moved(h), moved(-h));
                let unit = std::array::from_fn(|c| f64::from(u8::from(c == k)));
                close(
                    whole(&FLOW, axis, &unit),
                    std::array::from_fn(|c| (up[c] - down[c]) / (2.0 * h)),
                    1e-9,
                );
            }
        }
    }

    /// A± U in the closed form of Steger and Warming, for flow against and along the axis, and faster than sound.
    #[test]
    fn split_fluxes_have_their_closed_form() {
        for (u, sound) in [(0.4, 1.1), (-0.4, 1.1), (1.5, 1.0)] {
            let flow = Flow { velocity: [u, -0.25, 0.1], sound };
            let [_, v, w] = flow.velocity;
            for (part, of) in [(Part::Positive, f64::max as fn(f64, f64) -> f64), (Part::Negative, f64::min)]
            {
                let [l1, l3, l4] = [u, u + sound, u - sound].map(|s| of(s, 0.0));
                let weight = 2.0 * (GAMMA - 1.0) * l1 + l3 + l4;
                let energy = (GAMMA - 1.0) * l1 * (u * u + v * v + w * w)
                    + 0.5 * l3 * ((u + sound) * (u + sound) + v * v + w * w)
                    + 0.5 * l4 * ((u - sound) * (u - sound) + v * v + w * w)
                    + (3.0 - GAMMA) * (l3 + l4) * sound * sound / (2.0 * (GAMMA - 1.0));
                let along = 2.0 * (GAMMA - 1.0) * l1 * u + l3 * (u + sound) + l4 * (u - sound);
                let expected = [weight, along, weight * v, weight * w, energy].map(|f| f / (2.0 * GAMMA));
                close(times(&flow, 0, part, &state(&flow)), expected, 1e-14);
            }
        }
    }

    /// Second-order differences are exact for quadratics: in a uniform flow A U = U/Δt + Σ Aₐ ∂U/∂xₐ.
    #[test]
    fn quadratic_fields_in_a_uniform_flow() {
        let grid = Grid { n: [5, 6, 7] };
        let a = assemble(&grid, &vec![FLOW; grid.len()]).unwrap();
        let coefficients = |a: usize| -> State { std::array::from_fn(|c| 0.5 * (c as f64) - a as f64) };
        let field = |x: [f64; 3]| -> State {
            std::array::from_fn(|c| (0..3).map(|a| coefficients(a)[c] * (x[a] * x[a] + x[a])).sum())
        };
        let point = [2.0, 3.0, 4.0];
        let mut expected = field(point).map(|u| u * FLOW.fastest() / COURANT);
        for a in 0..3 {
            let slope = coefficients(a).map(|k| k * (2.0 * point[a] + 1.0));
            for (e, f) in expected.iter_mut().zip(whole(&FLOW, a, &slope)) {
                *e += f;
            }
        }
        close(apply(&a, &grid, [2, 3, 4], field), expected, 1e-11);
    }

    /// In the varying flow, A applied to the background differences its split fluxes.
    #[test]
    fn the_background_has_its_fluxes_differenced() {
        let grid = Grid { n: [5, 5, 6] };
        let flows = background(&grid);
        let at = |x: usize, y: usize, z: usize| &flows[grid.index([x, y, z])];
        let found = apply(&euler(&grid).unwrap(), &grid, [2, 2, 3], |x| {
            let [x, y, z] = x.map(|s| s as usize);
            state(at(x, y, z))
        });
        let mut expected = state(at(2, 2, 3)).map(|u| u * at(2, 2, 3).fastest() / COURANT);
        let lines: [[&Flow; 5]; 3] = [
            std::array::from_fn(|k| at(k, 2, 3)),
            std::array::from_fn(|k| at(2, k, 3)),
            std::array::from_fn(|k| at(2, 2, k + 1)),
        ];
        for (axis, line) in lines.into_iter().enumerate() {
            let backward = [0.5, -2.0, 1.5, 0.0, 0.0];
            let forward = [0.0, 0.0, -1.5, 2.0, -0.5];
            for (k, flow) in line.into_iter().enumerate() {
                let (p, n) = (
                    times(flow, axis, Part::Positive, &state(flow)),
                    times(flow, axis, Part::Negative, &state(flow)),
                );
                for c in 0..5 {
                    expected[c] += backward[k] * p[c] + forward[k] * n[c];
                }
            }
        }
        close(found, expected, 1e-13);
    }

    #[test]
    fn the_background_is_subsonic() {
        for flow in background(&Grid { n: [9, 10, 11] }) {
            assert!(flow.velocity.iter().all(|v| v.abs() < 0.7 * flow.sound));
        }
    }
}
