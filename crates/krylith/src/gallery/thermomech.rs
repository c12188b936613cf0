//! One step of temperature T and deformation u that act on each other, with linear elements on triangles, two unknowns per node.
//!
//!   [ M/10 + K_κ   0.05 K ] [T]
//!   [ 0.4 C        2 K    ] [u]
//!
//! K is the stiffness of right triangles (for edges along the axes −1, for diagonals 0, diagonal 4), K_κ the same with conductivities κ = 10^(2 U(0, 1)) by blocks of 16 x 16
//! cells, M the lumped mass, and C the central difference along x and half of that along diagonals: temperature expands the body, and no heat of deformation balances it, so A is not symmetric. Nodes
//! outside are zero.
//! Diagonals of K are stored zeros. 320 x 319 nodes are near thermomech_dK (n = 204,316, nnz = 2,846,228) in size, not in difficulty: BiCGStab with ILU(0) takes
//! 175 iterations to 1e-7, and does not converge in 2000 there (benchmarks/runs/2026-11-18-nvidia).

use super::blocks::{Offset, Points, Row};
use super::grid::Grid;
use super::random::{SEED, hash, power_of_ten, uniform};
use crate::error::MatrixError;
use crate::matrix::Csr;

/// Side of the blocks of one material, in cells.
const BLOCK: i64 = 16;

/// The neighbours of a node that K couples it to.
const NEIGHBOURS: [Offset; 4] = [[0, -1, 0], [-1, 0, 0], [1, 0, 0], [0, 1, 0]];

pub(super) fn thermomech_nnz(grid: &Grid) -> u64 {
    Points::triangles7().nnz(grid, 2)
}

pub(super) fn thermomech(grid: &Grid) -> Result<Csr<f64>, MatrixError> {
    Points::triangles7().matrix(grid, |[x, y, _], c, row: &mut Row<'_, 2>| {
        let node = [x as i64, y as i64];
        match c {
            0 => temperature(node, row),
            _ => deformation(row),
        }
    })
}

/// M/10 + K_κ and 0.05 K.
fn temperature(node: [i64; 2], row: &mut Row<'_, 2>) {
    let mut sum = 0.1;
    for d in NEIGHBOURS {
        let kappa = edge(node, [node[0] + d[0] as i64, node[1] + d[1] as i64]);
        *row.at(d) = [-kappa, -0.05];
        sum += kappa;
    }
    *row.at([0; 3]) = [sum, 0.2];
}

/// 0.4 C and 2 K.
fn deformation(row: &mut Row<'_, 2>) {
    for d in NEIGHBOURS {
        row.at(d)[1] = -2.0;
    }
    *row.at([0; 3]) = [0.0, 8.0];
    for (d, c) in [([1, 0, 0], 1.0), ([-1, 0, 0], -1.0), ([1, 1, 0], 0.5), ([-1, -1, 0], -0.5)] {
        row.at(d)[0] = 0.4 * c / 2.0;
    }
}

/// The conductivity of an edge: the mean of its ends' materials.
fn edge(a: [i64; 2], b: [i64; 2]) -> f64 {
    let material = |node: [i64; 2]| {
        let block = node.map(|s| s.div_euclid(BLOCK) as u64);
        power_of_ten(2.0 * uniform(hash(hash(SEED, block[0]), block[1])))
    };
    0.5 * (material(a) + material(b))
}

#[cfg(test)]
mod tests {
    use super::super::blocks::apply;
    use super::*;

    /// On T = x and u = 0: the second row is 0.4 times the derivative, 1.5 with the diagonals; on constants it is zero.
    #[test]
    fn coupling_by_hand() {
        let grid = Grid { n: [9, 8, 1] };
        let a = thermomech(&grid).unwrap();
        let out = apply(&a, &grid, [4, 4, 0], |[x, ..]| [x, 0.0]);
        assert!((out[1] - 0.4 * 1.5).abs() < 1e-14, "{out:?}");
        assert!(apply(&a, &grid, [4, 4, 0], |_| [1.0, 1.0])[1].abs() < 1e-14);
        // The mass alone is left of the first row on constants, and K of u = x² is -2.
        assert!((apply(&a, &grid, [4, 4, 0], |_| [1.0, 1.0])[0] - 0.1).abs() < 1e-10);
        let out = apply(&a, &grid, [4, 4, 0], |[x, ..]| [0.0, x * x]);
        assert!((out[1] + 4.0).abs() < 1e-12 && (out[0] + 0.1).abs() < 1e-12, "{out:?}");
        assert!(!a.symmetry().symmetric && a.symmetry().pattern);
    }
}
