//! A thin cylindrical shell as a lattice of beams, five unknowns per node: displacements along x, y, z, and rotations about two tangents.
//!
//! Nodes lie on a cylinder of radius R along y, one unit apart; beams are the edges of triangles. A beam from node i to node j with direction e, length
//! ℓ, mean normal n, and m = n × e has the energy
//!
//!   ½ [ (Δu·e)² + 0.3 (Δu·m)² + 0.4 (Δu·n + ½ ℓ (θᵢ + θⱼ)·ê)² + t²/12 |Δθ|² ],   Δu = uⱼ − uᵢ,
//!
//! with ê the components of e along the mean tangents and t = 0.1: sheets, shear and bending of unlike stiffness. Nodes next to x = 0 have a beam to a clamped
//! one; the other edges are free. Each term is k g gᵀ for a vector g over the ten unknowns of a beam, so A is positive definite and, with every beam
//! taken from its lower to its upper node, symmetric to the bit. 318 x 318 nodes are near af_shell3 (n = 504,855, nnz = 17,562,051) in size,
//! not in difficulty: ILU(0) of it is not definite, and with that of af_shell3 CG takes 571 iterations to 1e-7 (benchmarks/runs/2026-11-18-nvidia).

use super::blocks::{Offset, Points, Row};
use super::grid::Grid;
use crate::error::MatrixError;
use crate::matrix::Csr;

const RADIUS: f64 = 60.0;
const THICKNESS: f64 = 0.1;

/// Beams that leave a node upwards, in the order of columns.
const UPWARDS: [Offset; 3] = [[1, 0, 0], [0, 1, 0], [1, 1, 0]];

/// Unknowns of a node.
const D: usize = 5;

/// A term of the energy: its weight, and what the unknowns of the lower and of the upper node are multiplied by.
type Term = (f64, [[f64; D]; 2]);

type Vector = [f64; 3];

pub(super) fn shell_nnz(grid: &Grid) -> u64 {
    Points::triangles7().nnz(grid, (D) as u64)
}

pub(super) fn shell(grid: &Grid) -> Result<Csr<f64>, MatrixError> {
    Points::triangles7().matrix(grid, |[x, y, _], c, row: &mut Row<'_, D>| {
        let node = [x as i64, y as i64];
        for steps in UPWARDS {
            let (dx, dy) = (steps[0] as i64, steps[1] as i64);
            let upper = [node[0] + dx, node[1] + dy];
            if exists(grid, upper) {
                add(row, c, &beam(node, upper), [0, 1], steps);
            }
            let lower = [node[0] - dx, node[1] - dy];
            // A node at x = -1 is clamped.
            if exists(grid, lower) || lower[0] == -1 && lower[1] >= 0 {
                add(row, c, &beam(lower, node), [1, 0], steps.map(|s| -s));
            }
        }
    })
}

fn exists(grid: &Grid, node: [i64; 2]) -> bool {
    (0..2).all(|a| u64::try_from(node[a]).is_ok_and(|s| s < grid.n[a] as u64))
}

/// Adds row `c` of the terms of a beam: this node is its end `ends[0]`, the other one lies at `offset`.
fn add(row: &mut Row<'_, D>, c: usize, terms: &[Term; 5], ends: [usize; 2], offset: Offset) {
    for (k, g) in terms {
        for (end, at) in [(ends[0], [0; 3]), (ends[1], offset)] {
            let values = row.at(at);
            for e in 0..D {
                values[e] += k * (g[ends[0]][c] * g[end][e]);
            }
        }
    }
}

/// The terms of the energy of a beam.
fn beam(lower: [i64; 2], upper: [i64; 2]) -> [Term; 5] {
    let angle = |node: [i64; 2]| node[0] as f64 / RADIUS;
    let middle = 0.5 * (angle(lower) + angle(upper));
    let (sin, cos) = (libm::sin(middle), libm::cos(middle));
    let (normal, along, across): (Vector, Vector, Vector) =
        ([sin, 0.0, cos], [cos, 0.0, -sin], [0.0, 1.0, 0.0]);
    let point =
        |node: [i64; 2]| [RADIUS * libm::sin(angle(node)), node[1] as f64, RADIUS * libm::cos(angle(node))];
    let (from, to) = (point(lower), point(upper));
    let step: Vector = std::array::from_fn(|k| to[k] - from[k]);
    let length = libm::sqrt(dot(step, step));
    let e = step.map(|s| s / length);
    let sideways = cross(normal, e);
    let turned = [dot(e, along), dot(e, across)];
    let displacement = |v: Vector| {
        let g = |sign: f64| [sign * v[0], sign * v[1], sign * v[2], 0.0, 0.0];
        [g(-1.0), g(1.0)]
    };
    let mut shear = displacement(normal);
    for g in &mut shear {
        (g[3], g[4]) = (0.5 * length * turned[0], 0.5 * length * turned[1]);
    }
    let rotation = |k: usize| {
        let mut g = [[0.0; D]; 2];
        (g[0][3 + k], g[1][3 + k]) = (-1.0, 1.0);
        g
    };
    let bending = THICKNESS * THICKNESS / 12.0;
    [
        (1.0, displacement(e)),
        (0.3, displacement(sideways)),
        (0.4, shear),
        (bending, rotation(0)),
        (bending, rotation(1)),
    ]
}

fn dot(a: Vector, b: Vector) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

fn cross(a: Vector, b: Vector) -> Vector {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A motion of all nodes along an axis stretches nothing: away from the clamped side, rows for displacements sum to zero.
    #[test]
    fn translations_have_no_energy() {
        let grid = Grid { n: [8, 6, 1] };
        let a = shell(&grid).unwrap();
        for axis in 0..3 {
            for node in grid.n[0]..grid.len() {
                if grid.cell(node)[0] == 0 {
                    continue;
                }
                for c in 0..D {
                    let (columns, values) = a.row(D * node + c);
                    let entries = columns.iter().zip(values).filter(|(j, _)| **j as usize % D == axis);
                    let sum: f64 = entries.map(|(_, v)| v).sum();
                    assert!(sum.abs() < 1e-14, "{node} {c} {axis}: {sum}");
                }
            }
        }
        assert!(a.symmetry().symmetric);
    }

    /// The diagonal of an inner node is the sum of the squares of its beams' terms.
    #[test]
    fn a_beam_by_hand() {
        // Along y: e = (0, 1, 0); stretching acts on y alone, shear on the normal and the second rotation.
        let terms = beam([3, 2], [3, 3]);
        assert_eq!(terms[0].1[1], [0.0, 1.0, 0.0, 0.0, 0.0]);
        let shear = terms[2].1;
        assert_eq!((shear[0][4], shear[1][4], shear[0][3]), (0.5, 0.5, 0.0));
        assert_eq!(shear[1][2], libm::cos(0.05));
        assert_eq!(terms[3].0, 0.1 * 0.1 / 12.0);
    }
}
