//! −∇·(K ∇p): pressure in a layered porous rock, by elements that are quadratic along x and y and linear across the layers.
//!
//!   ∫ k (∂x p ∂x q + ∂y p ∂y q + A ∂z p ∂z q),   A = 10,   elements of side 1,
//!
//! with one permeability k per element. A is that of layers a tenth as thick as they are wide whose vertical permeability is a tenth of the horizontal one.
//! The matrix of an element is a sum of Kronecker products of
//!
//!   K = 1/3 [7 −8 1; −8 16 −8; 1 −8 7],   M = 1/30 [4 2 −1; 2 16 2; −1 2 4]   along x and y,
//!   K = [1 −1; −1 1],                     M = 1/6 [2 1; 1 2]                  along z.
//!
//! Permeabilities, log₁₀ k = 2 L + 3 B + N(0, 1)/2: L uniform in [0, 1), one per layer; B the same, one per bed of 6 x 6 elements of a layer, as of
//! channels in a flood plain. They span six orders of magnitude and jump from bed to bed.
//!
//! Along x and y the nodes are numbered from a fixed one, which is eliminated: corners of elements are even, middles are odd. With an even number of
//! nodes the far side is closed, with an odd one a further node is fixed and eliminated. Bottom and top are closed. A corner is coupled
//! with 5 x 5 x 3 nodes, a middle along both axes with 3 x 3 x 3: 48 in the mean of a plane, half of them 45.
//!
//! The matrix is symmetric positive definite, being the Galerkin matrix of a positive form, and no M-matrix. 150 x 150 x 33 nodes are near PFlow_742
//! (n = 742,793, nnz = 37,138,461, 50 entries per row), which is of the same kind: 742,500 rows with 46.4 entries. It is easier: CG with Jacobi takes 1274 iterations
//! to 1e-8, there more than 10,000 (benchmarks/runs/2026-11-17-fsai-tables-large).
//! Reference: Hughes, The Finite Element Method, 2000, chapter 3.
//!
//! Same bits from both sides: K and M are symmetric, and both sides sum the shared elements in the same order.

use super::grid::Grid;
use super::random::{SEED, hash, normal, power_of_ten, uniform};
use crate::error::MatrixError;
use crate::matrix::Csr;

/// Side of a bed, in elements.
const BED: usize = 6;
/// The factor of the vertical term.
const VERTICAL: f64 = 10.0;

/// ∫ φₐ′ φ_b′ and ∫ φₐ φ_b of the quadratic and the linear element.
const QUADRATIC: [[[f64; 3]; 3]; 2] = [
    [
        [7.0 / 3.0, -8.0 / 3.0, 1.0 / 3.0],
        [-8.0 / 3.0, 16.0 / 3.0, -8.0 / 3.0],
        [1.0 / 3.0, -8.0 / 3.0, 7.0 / 3.0],
    ],
    [
        [4.0 / 30.0, 2.0 / 30.0, -1.0 / 30.0],
        [2.0 / 30.0, 16.0 / 30.0, 2.0 / 30.0],
        [-1.0 / 30.0, 2.0 / 30.0, 4.0 / 30.0],
    ],
];
const LINEAR: [[[f64; 2]; 2]; 2] =
    [[[1.0, -1.0], [-1.0, 1.0]], [[1.0 / 3.0, 1.0 / 6.0], [1.0 / 6.0, 1.0 / 3.0]]];

pub(super) fn pflow(grid: &Grid) -> Result<Csr<f64>, MatrixError> {
    let rock = Rock::new(grid);
    let n = grid.len();
    Csr::from_rows(
        n,
        n,
        |i| (0..3).map(|axis| near(grid, grid.cell(i), axis).len()).product(),
        |i, columns, values| {
            let cell = grid.cell(i);
            let [along_x, along_y, along_z]: [Vec<(usize, Shared)>; 3] = std::array::from_fn(|axis| {
                near(grid, cell, axis).map(|to| (to, shared(grid, axis, cell[axis], to))).collect()
            });
            let mut k = 0;
            for (z, in_z) in &along_z {
                for (y, in_y) in &along_y {
                    for (x, in_x) in &along_x {
                        columns[k] = grid.index([*x, *y, *z]) as u32;
                        values[k] = rock.coupling([in_x, in_y, in_z]);
                        k += 1;
                    }
                }
            }
        },
    )
}

/// Entries: those of three matrices of one dimension, multiplied.
pub(super) fn pflow_nnz(grid: &Grid) -> u64 {
    let [nx, ny, nz] = grid.n.map(|n| n as u64);
    let quadratic = |n: u64| 4 * n - 4 - n % 2;
    quadratic(nx) * quadratic(ny) * (3 * nz - 2)
}

/// The nodes along an axis that share an element with one of a cell. Corners along x and y have odd indices, since the node before the first is fixed.
fn near(grid: &Grid, cell: [usize; 3], axis: usize) -> std::ops::Range<usize> {
    let reach = if axis < 2 && cell[axis] % 2 == 1 { 2 } else { 1 };
    cell[axis].saturating_sub(reach)..(cell[axis] + reach + 1).min(grid.n[axis])
}

/// The elements along an axis that two nodes share, at most two, each with its ∫ φ′ φ′ and ∫ φ φ of the two.
type Shared = [Option<(usize, [f64; 2])>; 2];

fn shared(grid: &Grid, axis: usize, a: usize, b: usize) -> Shared {
    let (low, high) = (a.min(b), a.max(b));
    if axis == 2 {
        // Element e has the nodes e and e + 1.
        let elements = [high.checked_sub(1), (high + 1 < grid.n[2]).then_some(high)];
        return elements.map(|e| {
            let e = e.filter(|&e| e <= low)?;
            Some((e, LINEAR.map(|table| table[low - e][high - e])))
        });
    }
    // Element e has the nodes 2 e, 2 e + 1 and 2 e + 2, counted from the fixed one.
    let (low, high) = (low + 1, high + 1);
    let last = high / 2;
    let elements = [(high % 2 == 0).then(|| last - 1), (last < grid.n[axis].div_ceil(2)).then_some(last)];
    elements.map(|e| {
        let e = e.filter(|&e| 2 * e <= low)?;
        Some((e, QUADRATIC.map(|table| table[low - 2 * e][high - 2 * e])))
    })
}

/// Permeabilities of elements.
struct Rock {
    elements: Grid,
    k: Vec<f64>,
}

impl Rock {
    fn new(grid: &Grid) -> Self {
        let [nx, ny, nz] = grid.n;
        let elements = Grid { n: [nx.div_ceil(2), ny.div_ceil(2), nz - 1] };
        let k = elements.field(|i, [x, y, z]| {
            let layer = hash(!SEED, z as u64);
            let bed = hash(hash(layer, (x / BED) as u64), (y / BED) as u64);
            power_of_ten(2.0 * uniform(layer) + 3.0 * uniform(bed) + 0.5 * normal(SEED, i as u64))
        });
        Rock { elements, k }
    }

    /// The entry of two nodes, from what they share along each axis.
    fn coupling(&self, [in_x, in_y, in_z]: [&Shared; 3]) -> f64 {
        let mut sum = 0.0;
        for &(z, [kz, mz]) in in_z.iter().flatten() {
            for &(y, [ky, my]) in in_y.iter().flatten() {
                for &(x, [kx, mx]) in in_x.iter().flatten() {
                    let k = self.k[self.elements.index([x, y, z])];
                    sum += k * ((kx * my + mx * ky) * mz + VERTICAL * ((mx * my) * kz));
                }
            }
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Integrals of polynomials by hand: Σ K = 0, Σ M = 1, and the energy of x² is ∫ 4 x² = 4/3.
    #[test]
    fn elements_integrate_exactly() {
        let [k, m] = QUADRATIC;
        assert!(k.iter().all(|row| row.iter().sum::<f64>().abs() < 1e-15));
        assert!((m.as_flattened().iter().sum::<f64>() - 1.0).abs() < 1e-15);
        let u = [0.0, 0.25, 1.0];
        let energy: f64 =
            (0..3).flat_map(|a| (0..3).map(move |b| (a, b))).map(|(a, b)| u[a] * k[a][b] * u[b]).sum();
        assert!((energy - 4.0 / 3.0).abs() < 1e-14);
    }

    /// Constants have no flow: rows that are coupled with no fixed node sum to zero.
    #[test]
    fn inner_rows_sum_to_zero() {
        let grid = Grid { n: [8, 9, 4] };
        let a = pflow(&grid).unwrap();
        for i in 0..a.nrows() {
            let values = a.row(i).1;
            let (sum, size) = values.iter().fold((0.0, 0.0), |(s, m): (f64, f64), v| (s + v, m + v.abs()));
            let [x, y, _] = grid.cell(i);
            // Node 0 is the middle of the first element, node 1 its far corner; of nine along y the last two are beside a fixed one.
            let is_inner = x > 1 && y > 1 && y < 7;
            assert_eq!(sum.abs() < 1e-12 * size, is_inner, "{i}");
        }
    }

    #[test]
    fn corners_and_middles_have_their_neighbours() {
        let grid = Grid { n: [8, 8, 5] };
        let a = pflow(&grid).unwrap();
        let entries = |cell| a.row(grid.index(cell)).0.len();
        assert_eq!([entries([3, 3, 2]), entries([4, 3, 2]), entries([4, 4, 2])], [75, 45, 27]);
        assert_eq!([entries([7, 3, 2]), entries([7, 7, 0])], [45, 18]);
        assert_eq!(a.nnz() as u64, pflow_nnz(&grid));
    }
}
