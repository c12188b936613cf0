//! One implicit step of the heat equation, linear elements on right triangles, insulated boundary.
//!
//!   A = M + Δt K,  Δt = 0.1,  h = 1/(ny − 1);
//!
//! each square of the grid is cut along its diagonal from lower left to upper right. An edge of t triangles (1 on the
//! boundary, 2 inside) and a node of t triangles have
//!
//!   mᵢⱼ = t h²/24,  mᵢᵢ = t h²/12;   kᵢⱼ = −t/2 along an axis, 0 along a diagonal;   kᵢᵢ = −Σ kᵢⱼ.
//!
//! The mass matrix is the consistent one, so the coupling along the diagonals is not zero. 1025 x 513 is of the size of
//! parabolic_fem (n = 525,825, nnz = 3,674,625), not of its difficulty: CG with ILU(0) takes 569 iterations to 1e-7, there 1044
//! (benchmarks/runs/2026-11-18-nvidia).

use super::grid::Grid;
use crate::error::MatrixError;
use crate::matrix::Csr;

const TIME_STEP: f64 = 0.1;

/// One entry of a row, as the triangles tell it.
#[derive(Clone, Copy)]
struct Entry {
    /// Distance in index.
    offset: isize,
    /// Triangles that share the edge; none where the edge leaves the grid.
    triangles: u32,
    /// Of the stiffness, for one triangle.
    stiffness: f64,
}

pub(super) fn parabolic(grid: &Grid) -> Result<Csr<f64>, MatrixError> {
    let n = grid.len();
    let h = 1.0 / (grid.n[1] as f64 - 1.0);
    let mass = h * h / 24.0;
    let value = |e: &Entry| f64::from(e.triangles) * (mass + TIME_STEP * e.stiffness);
    Csr::from_rows(
        n,
        n,
        |i| 1 + edges(grid, i).iter().filter(|e| e.triangles > 0).count(),
        |i, columns, values| {
            let edges = edges(grid, i);
            // A triangle at a node contributes to two edges.
            let at_node: u32 = edges.iter().map(|e| e.triangles).sum::<u32>() / 2;
            let stiffness: f64 = edges.iter().map(|e| f64::from(e.triangles) * e.stiffness).sum();
            let diagonal = 2.0 * mass * f64::from(at_node) - TIME_STEP * stiffness;
            let (below, above) = edges.split_at(3);
            let entry = |e: &Entry| (i.wrapping_add_signed(e.offset) as u32, value(e));
            let present = |e: &&Entry| e.triangles > 0;
            let row = below.iter().filter(present).map(entry);
            let row = row.chain([(i as u32, diagonal)]);
            for (k, e) in row.chain(above.iter().filter(present).map(entry)).enumerate() {
                (columns[k], values[k]) = e;
            }
        },
    )
}

pub(super) fn parabolic_nnz(grid: &Grid) -> u64 {
    let [nx, ny, _] = grid.n.map(|m| m as u64);
    grid.star_nnz() + 2 * (nx - 1) * (ny - 1)
}

/// The edges of node `i` in the order of their columns: south-west, south, west, east, north, north-east.
fn edges(grid: &Grid, i: usize) -> [Entry; 6] {
    let [x, y, _] = grid.cell(i);
    let [nx, ny, _] = grid.n;
    let [west, south, east, north] = [x > 0, y > 0, x + 1 < nx, y + 1 < ny].map(u32::from);
    let row = nx as isize;
    [
        Entry { offset: -row - 1, triangles: 2 * west * south, stiffness: 0.0 },
        Entry { offset: -row, triangles: south * (west + east), stiffness: -0.5 },
        Entry { offset: -1, triangles: west * (south + north), stiffness: -0.5 },
        Entry { offset: 1, triangles: east * (south + north), stiffness: -0.5 },
        Entry { offset: row, triangles: north * (west + east), stiffness: -0.5 },
        Entry { offset: row + 1, triangles: 2 * east * north, stiffness: 0.0 },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One square, two triangles: nodes 0 and 3 belong to both, 1 and 2 to one.
    #[test]
    fn one_square_by_hand() {
        let a = parabolic(&Grid { n: [2, 2, 1] }).unwrap();
        let m = 1.0 / 24.0;
        let close = |i, j, v: f64| assert!((a.get(i, j) - v).abs() < 1e-15, "({i}, {j})");
        close(0, 0, 4.0 * m + TIME_STEP);
        close(1, 1, 2.0 * m + TIME_STEP);
        close(0, 1, m - 0.5 * TIME_STEP);
        close(0, 3, 2.0 * m);
        assert_eq!((a.nnz(), a.get(1, 2)), (14, 0.0));
    }

    /// Σ aᵢⱼ = ∫ 1 = the area: the stiffness of a constant is zero.
    #[test]
    fn the_entries_sum_to_the_area() {
        let a = parabolic(&Grid { n: [9, 5, 1] }).unwrap();
        assert!((a.values().iter().sum::<f64>() - 2.0).abs() < 1e-12);
    }
}
