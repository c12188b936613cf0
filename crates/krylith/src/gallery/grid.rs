//! Uniform grids: cell (x, y, z) has index x + nx (y + ny z); a grid of two dimensions has nz = 1.

use crate::error::MatrixError;
use crate::matrix::Csr;
use crate::parallel;
use std::ops::RangeInclusive;

/// Cells along x, y, z.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Grid {
    pub(super) n: [usize; 3],
}

/// A row that couples a cell with its neighbours along each axis, the lower and the upper one.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Stencil {
    pub(super) diagonal: f64,
    pub(super) low: [f64; 3],
    pub(super) high: [f64; 3],
}

impl Grid {
    /// Number of cells.
    pub(super) fn len(&self) -> usize {
        self.n.iter().product()
    }

    /// The cell of an index.
    #[inline]
    pub(super) fn cell(&self, i: usize) -> [usize; 3] {
        let [nx, ny, _] = self.n;
        [i % nx, i / nx % ny, i / nx / ny]
    }

    /// The index of a cell.
    #[inline]
    pub(super) fn index(&self, [x, y, z]: [usize; 3]) -> usize {
        x + self.n[0] * (y + self.n[1] * z)
    }

    /// The distance in index of neighbours along each axis.
    pub(super) fn strides(&self) -> [usize; 3] {
        [1, self.n[0], self.n[0] * self.n[1]]
    }

    /// One value per cell, in parallel.
    pub(super) fn field<T: Send>(&self, value: impl Fn(usize, [usize; 3]) -> T + Sync) -> Vec<T> {
        parallel::map_rows(self.len(), |i| value(i, self.cell(i)))
    }

    /// The cells that differ by at most one along `axis`.
    #[inline]
    pub(super) fn near(&self, cell: [usize; 3], axis: usize) -> RangeInclusive<usize> {
        cell[axis].saturating_sub(1)..=(cell[axis] + 1).min(self.n[axis] - 1)
    }

    /// The cell that lies `steps` away, if it is one of the grid.
    #[inline]
    pub(super) fn step(&self, cell: [usize; 3], steps: [isize; 3]) -> Option<[usize; 3]> {
        let mut to = [0; 3];
        for a in 0..3 {
            to[a] = cell[a].checked_add_signed(steps[a]).filter(|&at| at < self.n[a])?;
        }
        Some(to)
    }

    /// The matrix of a 5- or 7-point stencil. Couplings that leave the grid are dropped.
    pub(super) fn star_matrix(
        &self,
        row: impl Fn(usize, [usize; 3]) -> Stencil + Sync,
    ) -> Result<Csr<f64>, MatrixError> {
        self.punctured_star_matrix(self.len(), row)
    }

    /// The same without the row and the column of the cell of index `hole`; of none, if that is past the last cell.
    pub(super) fn punctured_star_matrix(
        &self,
        hole: usize,
        row: impl Fn(usize, [usize; 3]) -> Stencil + Sync,
    ) -> Result<Csr<f64>, MatrixError> {
        let rows = self.len() - usize::from(hole < self.len());
        let index = |r: usize| r + usize::from(r >= hole);
        Csr::from_rows(
            rows,
            rows,
            |r| {
                let i = index(r);
                1 + self.neighbours(i, self.cell(i)).into_iter().flatten().filter(|&j| j != hole).count()
            },
            |r, columns, values| {
                let i = index(r);
                let cell = self.cell(i);
                let star = row(i, cell);
                let [x0, y0, z0, x1, y1, z1] = self.neighbours(i, cell);
                let ([lx, ly, lz], [hx, hy, hz]) = (star.low, star.high);
                let centre = (Some(i), star.diagonal);
                let entries = [(z0, lz), (y0, ly), (x0, lx), centre, (x1, hx), (y1, hy), (z1, hz)];
                let mut k = 0;
                for (j, value) in entries {
                    if let Some(j) = j.filter(|&j| j != hole) {
                        (columns[k], values[k]) = ((j - usize::from(j > hole)) as u32, value);
                        k += 1;
                    }
                }
            },
        )
    }

    /// The lower neighbours along x, y, z, then the upper ones.
    #[inline]
    fn neighbours(&self, i: usize, cell: [usize; 3]) -> [Option<usize>; 6] {
        let strides = self.strides();
        std::array::from_fn(|k| {
            let a = k % 3;
            if k < 3 {
                (cell[a] > 0).then(|| i - strides[a])
            } else {
                (cell[a] + 1 < self.n[a]).then(|| i + strides[a])
            }
        })
    }

    /// Entries of a 5- or 7-point matrix.
    pub(super) fn star_nnz(&self) -> u64 {
        let n = self.len() as u64;
        n + self.n.iter().map(|&m| 2 * (n - n / m as u64)).sum::<u64>()
    }

    /// Entries of a 9- or 27-point matrix.
    pub(super) fn box_nnz(&self) -> u64 {
        self.n.iter().map(|&m| 3 * m as u64 - 2).product()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_and_indices_agree() {
        let grid = Grid { n: [3, 4, 5] };
        for i in 0..grid.len() {
            assert_eq!(grid.index(grid.cell(i)), i);
        }
        assert_eq!(grid.cell(1 + 3 * (2 + 4 * 3)), [1, 2, 3]);
    }

    #[test]
    fn steps_end_at_the_boundary() {
        let grid = Grid { n: [3, 4, 5] };
        assert_eq!(grid.step([1, 2, 3], [1, -2, 1]), Some([2, 0, 4]));
        for steps in [[-2, 0, 0], [2, 0, 0], [0, 2, 0], [0, 0, 2], [isize::MIN, 0, 0], [0, isize::MAX, 0]] {
            assert_eq!(grid.step([1, 2, 3], steps), None);
        }
    }

    #[test]
    fn counts_of_entries() {
        assert_eq!(Grid { n: [10, 10, 10] }.star_nnz(), 7 * 1000 - 6 * 100);
        assert_eq!(Grid { n: [10, 10, 10] }.box_nnz(), 28 * 28 * 28);
        assert_eq!(Grid { n: [1, 1, 1] }.star_nnz(), 1);
    }
}
