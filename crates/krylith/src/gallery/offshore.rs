//! −∇·(κ ∇u) in layered ground below the sea, with linear elements on tetrahedra.
//!
//! Points of a lattice are moved by up to 0.1 cells along each axis. Every cell is cut into six tetrahedra (Kuhn): the corners of one are
//! c, c + e_a, c + e_a + e_b, c + (1, 1, 1) for an order a, b, c of the axes. With the normals nᵢ of its faces, as long as twice their areas, and its
//! volume V,
//!
//!   kᵢⱼ = κ nᵢ·nⱼ / (36 V).
//!
//! κ is 3.3 in water, 0.5 in sediment and 0.01 in rock, by the height of a cell relative to two wavy interfaces. Unknowns are the points of the
//! grid; those outside are Dirichlet nodes, which enter the diagonal alone. The elements of an edge are added in the order of their cells from
//! both of its ends, so the matrix is symmetric to the bit. 64 x 64 x 64 is near offshore (n = 259,789, nnz = 4,242,673) in size, not in
//! difficulty: CG with ILU(0) takes 80 iterations to 1e-7, there 25 (benchmarks/runs/2026-11-18-nvidia).
//! Reference: Kuhn 1960, doi:10.1147/rd.45.0518.

use super::blocks::{Offset, Points, Row};
use super::grid::Grid;
use super::random::{SEED, hash, uniform};
use crate::error::MatrixError;
use crate::matrix::Csr;

/// How far a point is moved along an axis at most, in cells.
const JITTER: f64 = 0.1;

/// The orders of the axes, one for each tetrahedron.
const ORDERS: [[usize; 3]; 6] = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];

type Vector = [f64; 3];

pub(super) fn offshore_nnz(grid: &Grid) -> u64 {
    Points::kuhn15().nnz(grid, 1)
}

pub(super) fn offshore(grid: &Grid) -> Result<Csr<f64>, MatrixError> {
    Points::kuhn15().matrix(grid, |point, _, row: &mut Row<'_, 1>| {
        let centre = point.map(|s| s as i64);
        for z in -1..=0 {
            for y in -1..=0 {
                for x in -1..=0 {
                    let cell = [centre[0] + x, centre[1] + y, centre[2] + z];
                    add_cell(grid, cell, [x, y, z].map(|s| -s as usize), row);
                }
            }
        }
    })
}

/// Adds the tetrahedra of a cell that have the corner `own` of it.
fn add_cell(grid: &Grid, cell: [i64; 3], own: [usize; 3], row: &mut Row<'_, 1>) {
    let kappa = conductivity(grid, cell);
    for order in ORDERS {
        let mut corners = [[0usize; 3]; 4];
        for k in 0..3 {
            corners[k + 1] = corners[k];
            corners[k + 1][order[k]] = 1;
        }
        let Some(i) = corners.iter().position(|&corner| corner == own) else { continue };
        let at = corners.map(|corner| position([0, 1, 2].map(|a| cell[a] + corner[a] as i64)));
        let (normals, volume) = normals(&at);
        for (j, corner) in corners.iter().enumerate() {
            let offset: Offset = [0, 1, 2].map(|a| corner[a] as isize - own[a] as isize);
            row.at(offset)[0] += kappa * dot(normals[i], normals[j]) / (36.0 * volume);
        }
    }
}

/// Where a point of the lattice is.
fn position(point: [i64; 3]) -> Vector {
    let key = point.iter().fold(SEED, |key, &s| hash(key, s as u64));
    std::array::from_fn(|a| point[a] as f64 + JITTER * (2.0 * uniform(hash(key, a as u64)) - 1.0))
}

fn minus(a: Vector, b: Vector) -> Vector {
    std::array::from_fn(|k| a[k] - b[k])
}

fn dot(a: Vector, b: Vector) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

fn cross(a: Vector, b: Vector) -> Vector {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

/// For every corner the normal of the face across from it, pointing at the corner and as long as twice the area; and the volume.
fn normals(at: &[Vector; 4]) -> ([Vector; 4], f64) {
    let [a, b, c] = [1, 2, 3].map(|k| minus(at[k], at[0]));
    let turn = dot(a, cross(b, c));
    let sign = if turn < 0.0 { -1.0 } else { 1.0 };
    let of = |u: Vector, v: Vector| cross(u, v).map(|s| sign * s);
    let (n1, n2, n3) = (of(b, c), of(c, a), of(a, b));
    let n0 = std::array::from_fn(|k| -(n1[k] + n2[k] + n3[k]));
    ([n0, n1, n2, n3], turn.abs() / 6.0)
}

/// Of water, sediment or rock.
fn conductivity(grid: &Grid, cell: [i64; 3]) -> f64 {
    let part = |a: usize| (cell[a] as f64 + 0.5) / grid.n[a] as f64;
    let wave = libm::sin(6.0 * part(0)) * libm::cos(5.0 * part(1));
    match part(2) {
        depth if depth > 0.7 + 0.05 * wave => 3.3,
        depth if depth > 0.35 + 0.1 * wave => 0.5,
        _ => 0.01,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One tetrahedron by hand: the corner of a unit cube.
    #[test]
    fn a_tetrahedron_by_hand() {
        let at = [[0.0; 3], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
        let (normals, volume) = normals(&at);
        assert_eq!(volume, 1.0 / 6.0);
        // Gradients of barycentric coordinates are normals over 6 V, which is 1 here.
        assert_eq!(normals[0], [-1.0; 3]);
        assert_eq!(normals[1], [1.0, 0.0, 0.0]);
        assert_eq!(dot(normals[0], normals[0]) / (36.0 * volume), 0.5);
    }

    /// Constants and linear functions of position are harmonic where κ is constant.
    #[test]
    fn linear_functions_are_harmonic_inside_a_layer() {
        let grid = Grid { n: [6, 7, 40] };
        let a = offshore(&grid).unwrap();
        for axis in [None, Some(0), Some(1), Some(2)] {
            let value = |i: usize| axis.map_or(1.0, |axis| position(grid.cell(i).map(|s| s as i64))[axis]);
            for cell in [[2, 3, 3], [3, 3, 37], [2, 2, 20]] {
                let (columns, values) = a.row(grid.index(cell));
                let sum: f64 = columns.iter().zip(values).map(|(&j, v)| v * value(j as usize)).sum();
                assert!(sum.abs() < 1e-11, "{axis:?} {cell:?}: {sum}");
            }
        }
        assert!(a.symmetry().symmetric);
    }

    /// No tetrahedron is turned over by moving its corners.
    #[test]
    fn every_volume_is_near_a_sixth() {
        for k in 0..2000u64 {
            let cell = [0, 1, 2].map(|a| (hash(k, a) % 1000) as i64);
            for order in ORDERS {
                let mut corners = [cell; 4];
                for k in 0..3 {
                    corners[k + 1] = corners[k];
                    corners[k + 1][order[k]] += 1;
                }
                let volume = normals(&corners.map(position)).1;
                assert!((0.04..0.4).contains(&volume), "{volume}");
            }
        }
    }
}
