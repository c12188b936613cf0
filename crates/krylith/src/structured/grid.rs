//! Grids of one to three dimensions: how points are numbered.
//!
//! Point (x, y, z) has number x + nx (y + ny z): the first axis runs fastest. A grid of fewer dimensions has extents 1 for the
//! others. Which axis of the user's problem is called x does not matter; a matrix numbered in another order of axes is the matrix
//! of another [`Grid`].

use thiserror::Error;

/// The most points of a grid: what column indices of a matrix can count.
const MOST_POINTS: usize = u32::MAX as usize;

/// Extents of a grid along x, y, z.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Grid {
    n: [usize; 3],
}

/// Extents that make no grid.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum GridError {
    /// Not one to three extents, or an extent of zero.
    #[error("a grid has one to three extents, each at least 1; {extents:?} given")]
    Extents {
        /// As given.
        extents: Vec<usize>,
    },
    /// More points than a matrix can have rows.
    #[error("a grid of {extents:?} has more than 2^32 - 1 points")]
    TooLarge {
        /// As given.
        extents: Vec<usize>,
    },
}

impl Grid {
    /// The grid of these extents.
    ///
    /// ```
    /// use krylith::structured::Grid;
    /// let grid = Grid::new(&[30, 20])?;
    /// assert_eq!((grid.points(), grid.dims(), grid.to_string().as_str()), (600, 2, "30 x 20"));
    /// assert!(Grid::new(&[30, 0]).is_err());
    /// # Ok::<(), krylith::structured::GridError>(())
    /// ```
    pub fn new(extents: &[usize]) -> Result<Self, GridError> {
        if !(1..=3).contains(&extents.len()) || extents.contains(&0) {
            return Err(GridError::Extents { extents: extents.to_vec() });
        }
        let mut n = [1; 3];
        n[..extents.len()].copy_from_slice(extents);
        let points = n.iter().try_fold(1usize, |product, &m| product.checked_mul(m));
        match points {
            Some(points) if points <= MOST_POINTS => Ok(Grid { n }),
            _ => Err(GridError::TooLarge { extents: extents.to_vec() }),
        }
    }

    /// Extents along x, y, z; 1 where there is no such axis.
    pub fn extents(&self) -> [usize; 3] {
        self.n
    }

    /// Number of points.
    pub fn points(&self) -> usize {
        self.n.iter().product()
    }

    /// Axes up to the last of more than one point; at least 1.
    pub fn dims(&self) -> usize {
        self.n.iter().rposition(|&m| m > 1).map_or(1, |last| last + 1)
    }

    /// The point of a number.
    #[inline]
    pub fn point(&self, number: usize) -> [usize; 3] {
        let [nx, ny, _] = self.n;
        [number % nx, number / nx % ny, number / nx / ny]
    }

    /// The number of a point.
    #[inline]
    pub fn number(&self, [x, y, z]: [usize; 3]) -> usize {
        x + self.n[0] * (y + self.n[1] * z)
    }

    /// Points from which an offset stays in the grid.
    pub fn places(&self, offset: [i32; 3]) -> usize {
        (0..3).map(|axis| self.n[axis].saturating_sub(offset[axis].unsigned_abs() as usize)).product()
    }

    /// The point at an offset, if the grid has it.
    #[inline]
    pub fn at(&self, point: [usize; 3], offset: [i32; 3]) -> Option<[usize; 3]> {
        let mut there = point;
        for axis in 0..3 {
            there[axis] = point[axis].checked_add_signed(offset[axis] as isize)?;
            if there[axis] >= self.n[axis] {
                return None;
            }
        }
        Some(there)
    }
}

impl std::fmt::Display for Grid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let extents: Vec<String> = self.n[..self.dims()].iter().map(usize::to_string).collect();
        f.write_str(&extents.join(" x "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_points_agree() {
        let grid = Grid::new(&[3, 4, 5]).unwrap();
        for number in 0..grid.points() {
            assert_eq!(grid.number(grid.point(number)), number);
        }
        assert_eq!(grid.number([1, 2, 3]), 1 + 3 * (2 + 4 * 3));
        assert_eq!(grid.at([1, 2, 3], [1, -2, 1]), Some([2, 0, 4]));
        assert_eq!(grid.at([1, 2, 3], [2, 0, 0]), None);
        assert_eq!(grid.at([1, 2, 3], [0, -3, 0]), None);
        assert_eq!([[0, 0, 0], [1, -2, 0], [0, 0, 7]].map(|o| grid.places(o)), [60, 2 * 2 * 5, 0]);
    }

    #[test]
    fn wrong_extents_are_refused() {
        assert!(matches!(Grid::new(&[]), Err(GridError::Extents { .. })));
        assert!(matches!(Grid::new(&[1, 2, 3, 4]), Err(GridError::Extents { .. })));
        assert!(matches!(Grid::new(&[usize::MAX, 2]), Err(GridError::TooLarge { .. })));
        assert!(matches!(Grid::new(&[1 << 16, 1 << 16]), Err(GridError::TooLarge { .. })));
    }
}
