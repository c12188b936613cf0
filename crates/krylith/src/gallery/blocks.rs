//! Matrices with several unknowns per point of a grid: a dense block at every point of a stencil.
//!
//!   row = D · point + component,   column = D · neighbour + component,   point = x + nx (y + ny z)
//!
//! A neighbour that leaves the grid is dropped; one in the grid has all of its D x D entries, zeros included, so the
//! number of entries is D² Σ over the offsets d of Π max(n − |d|, 0) over the axes.

use super::grid::Grid;
use crate::error::MatrixError;
use crate::matrix::Csr;

/// Where a neighbour lies: steps along x, y, z.
pub(super) type Offset = [isize; 3];

/// The farthest step along an axis, the offsets within it, and the most that a stencil here takes of them.
const REACH: isize = 2;
const WINDOW: usize = 125;
const MOST: usize = 27;

/// The points of a stencil.
pub(super) struct Points {
    /// In the order of their columns: by z, then y, then x.
    offsets: Vec<Offset>,
    /// The number of an offset in that list, by its place in the window.
    numbers: [usize; WINDOW],
}

/// One row of blocks: D values for each point of a stencil.
pub(super) struct Row<'p, const D: usize> {
    points: &'p Points,
    values: [[f64; D]; MOST],
}

impl<const D: usize> Row<'_, D> {
    /// The values at a point of the stencil, zero to begin with. What is written at one off the grid is dropped.
    #[inline]
    pub(super) fn at(&mut self, offset: Offset) -> &mut [f64; D] {
        &mut self.values[self.points.numbers[place(offset)]]
    }
}

impl Points {
    /// The 27 points of the box around a point.
    pub(super) fn box27() -> Points {
        Points::within(|d| d.iter().all(|s| s.abs() <= 1))
    }

    /// The 13 points up to two steps along one axis.
    pub(super) fn star13() -> Points {
        Points::within(|d| d.iter().filter(|&&s| s != 0).count() <= 1)
    }

    /// The 25 points within two steps along any axes.
    pub(super) fn diamond25() -> Points {
        Points::within(|d| d.iter().map(|s| s.abs()).sum::<isize>() <= 2)
    }

    /// The 15 points of Kuhn's tetrahedra around a point: steps that are all forwards or all backwards.
    pub(super) fn kuhn15() -> Points {
        Points::within(|d| d.iter().all(|s| (0..=1).contains(s)) || d.iter().all(|s| (-1..=0).contains(s)))
    }

    /// The 7 points of the triangles around a point in a plane: those of [`kuhn15`](Self::kuhn15) with z = 0.
    pub(super) fn triangles7() -> Points {
        Points::within(|[x, y, z]| z == 0 && x.abs() <= 1 && y.abs() <= 1 && x * y >= 0)
    }

    fn within(keep: impl Fn(Offset) -> bool) -> Points {
        let (mut offsets, mut numbers) = (Vec::new(), [0; WINDOW]);
        for z in -REACH..=REACH {
            for y in -REACH..=REACH {
                for x in -REACH..=REACH {
                    if keep([x, y, z]) {
                        numbers[place([x, y, z])] = offsets.len();
                        offsets.push([x, y, z]);
                    }
                }
            }
        }
        Points { offsets, numbers }
    }

    /// Entries of a matrix with `unknowns` a point.
    pub(super) fn nnz(&self, grid: &Grid, unknowns: u64) -> u64 {
        let along = |n: usize, step: isize| n.saturating_sub(step.unsigned_abs()) as u64;
        let pairs = self.offsets.iter().map(|d| (0..3).map(|a| along(grid.n[a], d[a])).product::<u64>());
        unknowns * unknowns * pairs.sum::<u64>()
    }

    /// The matrix whose rows `fill` writes, given a point and the component.
    pub(super) fn matrix<const D: usize>(
        &self,
        grid: &Grid,
        fill: impl Fn([usize; 3], usize, &mut Row<'_, D>) + Sync,
    ) -> Result<Csr<f64>, MatrixError> {
        let n = D * grid.len();
        Csr::from_rows(
            n,
            n,
            |i| {
                let cell = grid.cell(i / D);
                D * self.offsets.iter().filter(|&&d| grid.step(cell, d).is_some()).count()
            },
            |i, columns, values| {
                let cell = grid.cell(i / D);
                let mut row = Row { points: self, values: [[0.0; D]; MOST] };
                fill(cell, i % D, &mut row);
                let inside = self.offsets.iter().zip(&row.values);
                let inside = inside.filter_map(|(&d, block)| Some((grid.step(cell, d)?, block)));
                let slots = columns.chunks_exact_mut(D).zip(values.chunks_exact_mut(D));
                for ((neighbour, block), (columns, values)) in inside.zip(slots) {
                    let first = D * grid.index(neighbour);
                    for (e, column) in columns.iter_mut().enumerate() {
                        *column = (first + e) as u32;
                    }
                    values.copy_from_slice(block);
                }
            },
        )
    }
}

/// The place of an offset in the window of all within reach.
#[inline]
fn place([x, y, z]: Offset) -> usize {
    let side = 2 * REACH + 1;
    (x + REACH + side * (y + REACH + side * (z + REACH))) as usize
}

/// The six points one step away.
pub(super) const NEAREST: [Offset; 6] = [[0, 0, -1], [0, -1, 0], [-1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]];

/// The rows of a point of A U, for a field U given by position.
#[cfg(test)]
pub(super) fn apply<const D: usize>(
    a: &Csr<f64>,
    grid: &Grid,
    point: [usize; 3],
    field: impl Fn([f64; 3]) -> [f64; D],
) -> [f64; D] {
    let row = |c: usize| {
        let (columns, values) = a.row(D * grid.index(point) + c);
        let term = |(&j, v): (&u32, &f64)| {
            let j = j as usize;
            v * field(grid.cell(j / D).map(|s| s as f64))[j % D]
        };
        columns.iter().zip(values).map(term).sum()
    };
    std::array::from_fn(row)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stencils_have_their_points() {
        for (points, count) in [
            (Points::box27(), 27),
            (Points::star13(), 13),
            (Points::diamond25(), 25),
            (Points::kuhn15(), 15),
            (Points::triangles7(), 7),
        ] {
            assert_eq!(points.offsets.len(), count);
            // Symmetric about the middle, which is the point itself.
            assert_eq!(points.offsets[count / 2], [0; 3]);
            let turned: Vec<Offset> = points.offsets.iter().rev().map(|d| d.map(|s| -s)).collect();
            assert_eq!(points.offsets, turned);
        }
    }

    #[test]
    fn counts_of_entries() {
        let grid = Grid { n: [6, 5, 4] };
        assert_eq!(Points::box27().nnz(&grid, 1), grid.box_nnz());
        // Pairs one and two steps apart along each axis, both ways.
        let (n, pairs) = (120, |m: u64| 2 * (120 - 120 / m) + 2 * (120 - 2 * 120 / m));
        assert_eq!(Points::star13().nnz(&grid, 5), 25 * (n + pairs(6) + pairs(5) + pairs(4)));
        // The diamond has the pairs one step apart along two axes besides.
        let corners = 4 * (5 * 4 * 4 + 5 * 5 * 3 + 6 * 4 * 3);
        assert_eq!(Points::diamond25().nnz(&grid, 2), 4 * (n + pairs(6) + pairs(5) + pairs(4) + corners));
        assert_eq!(Points::diamond25().nnz(&Grid { n: [1; 3] }, 2), 4);
    }

    /// Two points of two unknowns: whole blocks, columns in order, what leaves the grid dropped.
    #[test]
    fn two_points_by_hand() {
        let fill = |cell: [usize; 3], c: usize, row: &mut Row<'_, 2>| {
            *row.at([0; 3]) = [10.0, c as f64];
            *row.at([0, 1, 0]) = [1.0, 2.0];
            *row.at([0, -1, 0]) = [3.0, cell[1] as f64];
            *row.at([2, 0, 0]) = [99.0; 2];
        };
        let a = Points::star13().matrix::<2>(&Grid { n: [1, 2, 1] }, fill).unwrap();
        assert_eq!(a.pattern().col_idx(), [0, 1, 2, 3].repeat(4));
        let rows =
            [[10.0, 0.0, 1.0, 2.0], [10.0, 1.0, 1.0, 2.0], [3.0, 1.0, 10.0, 0.0], [3.0, 1.0, 10.0, 1.0]];
        assert_eq!(a.values(), rows.concat());
    }
}
