//! Wavefronts (levels) of a triangular solve.
//!
//! Row i of a lower triangular solve needs every x_j with j < i in row i of the pattern. Its level is
//!
//!   level(i) = 1 + max { level(j) : j < i, (i, j) in the pattern },  1 where there is no such j;
//!
//! rows of one level do not need each other, so the number of levels is the number of steps a solve takes however many
//! threads it has. The upper triangle is the same from the last row to the first. Reference: Anderson & Saad 1989,
//! doi:10.1142/S0129053389000056. Cost: one pass over the pattern, 4 bytes per row.

use super::plan::Rows;
use crate::error::MatrixError;
use crate::matrix::{Pattern, Triangle};

/// The levels of one triangle of a square pattern.
///
/// ```
/// use krylith::{gallery::Problem, matrix::Triangle, schedule::Wavefronts};
/// let a = "poisson2d:4".parse::<Problem>()?.generate()?;
/// let w = Wavefronts::new(a.pattern(), Triangle::Lower)?;
/// assert_eq!(w.sizes(), [1, 2, 3, 4, 3, 2, 1]); // the diagonals of the grid
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wavefronts {
    level: Vec<u32>,
    sizes: Vec<usize>,
}

impl Wavefronts {
    /// Levels of the given triangle; entries of the other one, and the diagonal, do not count.
    pub fn new(pattern: &Pattern, triangle: Triangle) -> Result<Self, MatrixError> {
        pattern.require_square()?;
        let (level, sizes) = level_of_rows(pattern, triangle);
        Ok(Wavefronts { level, sizes })
    }

    /// Number of wavefronts: the length of the longest chain of rows that need each other.
    pub fn count(&self) -> usize {
        self.sizes.len()
    }

    /// Rows in each wavefront, in the order in which they run.
    pub fn sizes(&self) -> &[usize] {
        &self.sizes
    }

    /// The wavefront of each row, counted from 0.
    pub fn levels(&self) -> &[u32] {
        &self.level
    }

    /// Rows that can run at the same time, on average.
    pub fn mean_size(&self) -> f64 {
        if self.sizes.is_empty() { 0.0 } else { self.level.len() as f64 / self.sizes.len() as f64 }
    }
}

/// The level of each row of a square pattern, from 0, and the number of rows in each.
pub(super) fn level_of_rows(pattern: &Pattern, triangle: Triangle) -> (Vec<u32>, Vec<usize>) {
    let rows = Rows { n: pattern.nrows(), triangle };
    let mut level = vec![0u32; rows.n];
    let mut sizes = Vec::new();
    for position in 0..rows.n {
        let i = rows.at(position);
        let l = rows.needs(pattern, i).iter().map(|&j| level[j as usize] + 1).max().unwrap_or(0);
        level[i] = l;
        if l as usize == sizes.len() {
            sizes.push(0);
        }
        sizes[l as usize] += 1;
    }
    (level, sizes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ```text
    /// x . . .      lower: rows 0 1 free, 2 needs 0, 3 needs 2
    /// . x . x      upper: row 1 needs 3
    /// x . x .
    /// . . x x
    /// ```
    #[test]
    fn by_hand() {
        let p = Pattern::new(4, 4, vec![0, 1, 3, 5, 7], vec![0, 1, 3, 0, 2, 2, 3]).unwrap();
        let lower = Wavefronts::new(&p, Triangle::Lower).unwrap();
        assert_eq!((lower.levels(), lower.sizes()), (&[0, 0, 1, 2][..], &[2, 1, 1][..]));
        let upper = Wavefronts::new(&p, Triangle::Upper).unwrap();
        assert_eq!((upper.levels(), upper.sizes()), (&[0, 1, 0, 0][..], &[3, 1][..]));
    }

    #[test]
    fn a_diagonal_matrix_is_one_wavefront_and_an_empty_one_none() {
        let p = Pattern::new(3, 3, vec![0, 1, 2, 3], vec![0, 1, 2]).unwrap();
        assert_eq!(Wavefronts::new(&p, Triangle::Upper).unwrap().count(), 1);
        let p = Pattern::new(0, 0, vec![0], vec![]).unwrap();
        assert_eq!(Wavefronts::new(&p, Triangle::Lower).unwrap().count(), 0);
    }

    #[test]
    fn a_rectangle_has_no_triangles() {
        let p = Pattern::new(1, 2, vec![0, 0], vec![]).unwrap();
        assert_eq!(Wavefronts::new(&p, Triangle::Lower), Err(MatrixError::NotSquare { nrows: 1, ncols: 2 }));
    }
}
