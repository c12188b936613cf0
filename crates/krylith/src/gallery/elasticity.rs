//! Linear elasticity on a uniform grid: bilinear squares or trilinear cubes, 2 or 3 unknowns per node.
//!
//!   ∫ λ (∇·u)(∇·v) + 2 μ ε(u):ε(v),   λ = E ν/((1+ν)(1−2ν)),   μ = E/(2(1+ν)),   E = 1,  ν = 0.49
//!
//! (plane strain in two dimensions), elements of side 1, Gauss quadrature with 2 points a direction. There is a layer of
//! nodes at x = 0 that is clamped and eliminated; the grid counts the free nodes. The other sides are free. All couplings
//! of nodes that share an element are kept, zeros included, so a full row has 18 or 81 entries.
//!
//! `elasticity3d-free` is clamped nowhere: translations and rotations, six in all, are its null space.
//!
//! The matrix is symmetric positive definite. A material this close to incompressible (λ/μ = 49) is no M-matrix by far,
//! and IC(0) without a shift meets a negative pivot in the first rows of nodes; with ν = 0.45 it still passes at
//! 20 x 20 nodes. Breakdown: Kershaw 1978, doi:10.1016/0021-9991(78)90098-0.
//! Elements: Hughes, The Finite Element Method, 2000, chapters 2 and 3.
//!
//! Same bits from both sides: the element matrix is mirrored, and both sides sum the shared elements in the same order.

use super::grid::Grid;
use crate::error::MatrixError;
use crate::matrix::Csr;

const POISSON_RATIO: f64 = 0.49;

/// Corners of an element and neighbours of a node, by the bits and the digits to base 3 of their number.
const CORNERS: usize = 8;
const NEIGHBOURS: usize = 27;

pub(super) fn elasticity2d(grid: &Grid) -> Result<Csr<f64>, MatrixError> {
    generate::<2>(grid, true)
}

pub(super) fn elasticity3d(grid: &Grid) -> Result<Csr<f64>, MatrixError> {
    generate::<3>(grid, true)
}

pub(super) fn elasticity3d_free(grid: &Grid) -> Result<Csr<f64>, MatrixError> {
    generate::<3>(grid, false)
}

/// A coupling of two nodes: entry (c, e) couples component c of the one with component e of the other.
type Block<const D: usize> = [[f64; D]; D];

fn generate<const D: usize>(grid: &Grid, clamped: bool) -> Result<Csr<f64>, MatrixError> {
    let couplings = Couplings::<D>::new();
    let n = D * grid.len();
    Csr::from_rows(
        n,
        n,
        |i| D * (0..D).map(|axis| grid.near(grid.cell(i / D), axis).count()).product::<usize>(),
        |i, columns, values| {
            let (node, component) = (i / D, i % D);
            let cell = grid.cell(node);
            let row = couplings.of(Around::new(grid, cell, clamped));
            let mut k = 0;
            for z in grid.near(cell, 2) {
                for y in grid.near(cell, 1) {
                    for x in grid.near(cell, 0) {
                        let digit = |at: usize, axis: usize| at + 1 - cell[axis];
                        let neighbour = digit(x, 0) + 3 * (digit(y, 1) + 3 * digit(z, 2));
                        let first = D * grid.index([x, y, z]);
                        for e in 0..D {
                            columns[k] = (first + e) as u32;
                            values[k] = row[neighbour][component][e];
                            k += 1;
                        }
                    }
                }
            }
        },
    )
}

/// Which elements surround a node: bit 2a says that there are some on its lower side along axis a, bit 2a + 1 on its
/// upper side.
#[derive(Clone, Copy)]
struct Around(usize);

impl Around {
    fn new(grid: &Grid, cell: [usize; 3], clamped: bool) -> Around {
        let sides = (0..3).map(|a| {
            // Below x = 0 come the elements that hold on to the clamped nodes.
            let low = clamped && a == 0 || cell[a] > 0;
            let high = cell[a] + 1 < grid.n[a];
            (usize::from(low) | usize::from(high) << 1) << (2 * a)
        });
        Around(sides.sum())
    }

    fn has(self, side: usize, axis: usize) -> bool {
        self.0 >> (2 * axis + side) & 1 == 1
    }
}

/// The couplings of a node with its neighbours, for each of the ways in which elements can surround it.
struct Couplings<const D: usize> {
    blocks: Vec<[Block<D>; NEIGHBOURS]>,
}

impl<const D: usize> Couplings<D> {
    fn new() -> Self {
        let element = element_matrix::<D>();
        let blocks = (0..1 << (2 * D))
            .map(|around| std::array::from_fn(|neighbour| sum_elements(&element, Around(around), neighbour)));
        Couplings { blocks: blocks.collect() }
    }

    fn of(&self, around: Around) -> &[Block<D>; NEIGHBOURS] {
        // A grid of two dimensions has no elements along z.
        &self.blocks[around.0 & ((1 << (2 * D)) - 1)]
    }
}

/// The sum over the elements that hold both a node and its neighbour. An element is named by the side of the node on
/// which it lies along each axis; the order is by position in the grid, the same for both nodes.
fn sum_elements<const D: usize>(
    element: &[[Block<D>; CORNERS]; CORNERS],
    around: Around,
    neighbour: usize,
) -> Block<D> {
    let mut sum = [[0.0; D]; D];
    'elements: for sides in 0..1usize << D {
        let (mut own, mut other) = (0, 0);
        for axis in 0..D {
            let side = sides >> axis & 1;
            // Seen from the lower corner of the element, the node is at 1 - side, its neighbour `step` further.
            let step = neighbour / 3usize.pow(axis as u32) % 3;
            let (corner, next) = (1 - side, (1 - side + step).wrapping_sub(1));
            if !around.has(side, axis) || next > 1 {
                continue 'elements;
            }
            own |= corner << axis;
            other |= next << axis;
        }
        for c in 0..D {
            for e in 0..D {
                sum[c][e] += element[own][other][c][e];
            }
        }
    }
    sum
}

/// The stiffness of the element of side 1 between its corners.
fn element_matrix<const D: usize>() -> [[Block<D>; CORNERS]; CORNERS] {
    let nu = POISSON_RATIO;
    let (lambda, mu) = (nu / ((1.0 + nu) * (1.0 - 2.0 * nu)), 0.5 / (1.0 + nu));
    let weight = 0.5f64.powi(D as i32);
    let mut matrix = [[[[0.0; D]; D]; CORNERS]; CORNERS];
    for point in 0..1usize << D {
        let gradients: [[f64; D]; CORNERS] = std::array::from_fn(|corner| gradient(corner, point));
        for a in 0..1 << D {
            for b in 0..=a {
                let (g, h) = (gradients[a], gradients[b]);
                let dot: f64 = (0..D).map(|c| g[c] * h[c]).sum();
                for c in 0..D {
                    for e in 0..D {
                        let shear = g[e] * h[c] + if c == e { dot } else { 0.0 };
                        matrix[a][b][c][e] += weight * (lambda * (g[c] * h[e]) + mu * shear);
                    }
                }
            }
        }
    }
    for a in 0..1 << D {
        for b in a..1 << D {
            // Above the diagonal, the mirror image; on it, products commute and the block is symmetric already.
            if a != b {
                matrix[a][b] = std::array::from_fn(|c| std::array::from_fn(|e| matrix[b][a][e][c]));
            }
        }
    }
    matrix
}

/// The gradient at a quadrature point of the function that is 1 at a corner and 0 at the others.
fn gradient<const D: usize>(corner: usize, point: usize) -> [f64; D] {
    let bit = |number: usize, axis: usize| number >> axis & 1 == 1;
    // The points lie at (1 ± 1/√3)/2 along each axis.
    let offset = 1.0 / libm::sqrt(3.0);
    let position = |axis: usize| 0.5 * if bit(point, axis) { 1.0 + offset } else { 1.0 - offset };
    std::array::from_fn(|c| {
        let factors = (0..D).map(|axis| match (axis == c, bit(corner, axis)) {
            (true, true) => 1.0,
            (true, false) => -1.0,
            (false, true) => position(axis),
            (false, false) => 1.0 - position(axis),
        });
        factors.product()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// K u for a field u of displacements at the corners.
    fn forces<const D: usize>(u: impl Fn([f64; D]) -> [f64; D]) -> Vec<f64> {
        let element = element_matrix::<D>();
        let at = |corner: usize| std::array::from_fn(|a| (corner >> a & 1) as f64);
        let force = |a: usize, c: usize| -> f64 {
            (0..1 << D).map(|b| (0..D).map(|e| element[a][b][c][e] * u(at(b))[e]).sum::<f64>()).sum()
        };
        (0..1 << D).flat_map(|a| (0..D).map(move |c| (a, c))).map(|(a, c)| force(a, c)).collect()
    }

    #[test]
    fn rigid_motions_need_no_force() {
        for f in [forces::<2>(|_| [1.0, 2.0]), forces::<2>(|[x, y]| [-y, x])] {
            assert!(f.iter().all(|v| v.abs() < 1e-13));
        }
        for f in
            [forces::<3>(|_| [1.0, 2.0, 3.0]), forces::<3>(|[x, y, z]| [y - z, 2.0 * z - x, x - 2.0 * y])]
        {
            assert!(f.iter().all(|v| v.abs() < 1e-13));
        }
    }

    /// u = (x, 0) strains the square uniformly: the energy uᵀ K u is λ + 2 μ.
    #[test]
    fn a_uniform_strain_has_its_energy() {
        let f = forces::<2>(|[x, _]| [x, 0.0]);
        let energy: f64 = f[2] + f[6];
        let nu = POISSON_RATIO;
        let expected = nu / ((1.0 + nu) * (1.0 - 2.0 * nu)) + 1.0 / (1.0 + nu);
        assert!((energy - expected).abs() < 1e-13 * expected);
    }

    #[test]
    fn the_pattern_keeps_all_couplings() {
        let grid = Grid { n: [4, 5, 3] };
        assert_eq!(elasticity3d(&grid).unwrap().nnz() as u64, 9 * grid.box_nnz());
        let grid = Grid { n: [4, 5, 1] };
        assert_eq!(elasticity2d(&grid).unwrap().nnz() as u64, 4 * grid.box_nnz());
    }
}
