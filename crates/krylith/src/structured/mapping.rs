//! The order of points in time: which of them can be computed together.
//!
//! A sweep goes through the grid so that a point comes after its lower neighbours. Points of one *level*
//!
//!   level = x + a y + b z
//!
//! do not need each other if every lower offset lowers the level. Along z = 0 this asks a y + x < 0 for each lower (x, y), so a
//! is one more than the largest ⌊x / −y⌋ of those with y < 0; then b is one more than the largest ⌊(x + a y) / −z⌋ of those
//! with z < 0; neither is below 1. For the stencils that have a name in the paper these are the levels of
//! its affine transformation (equations 1 and 2): x + y + z for Star-7P, x + 2y + 3z for Diamond-13P, x + 2y + 4z for Box-27P. For other sets of offsets they need not
//! be: the paper takes an offset of the stencil itself as an axis, here weights are the least integers. Acyclic by construction: a dependency always comes from a
//! smaller level. The upper offsets, turned around, give the same weights where the stencil is symmetric; otherwise the larger ones
//! serve both sweeps.
//!
//! No sweep runs by these levels. Sweeps go along lines that lag (`arrangement`, `pipeline`); the arrangement takes the weight of y for the least lag, and the number of
//! levels is what is reported and priced.
//!
//! Reference: Luo et al. 2025, section 4.1, doi:10.1145/3721145.3725745.

use super::grid::Grid;
use super::stencil::{Offset, Stencil};

/// Weights of y and z in the level of a point; that of x is 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mapping {
    /// Of y.
    pub y: usize,
    /// Of z.
    pub z: usize,
}

impl Mapping {
    /// The least weights for a stencil.
    ///
    /// ```
    /// use krylith::structured::{Mapping, Stencil};
    /// assert_eq!(Mapping::new(&Stencil::star(3, 1)?), Mapping { y: 1, z: 1 });
    /// assert_eq!(Mapping::new(&Stencil::filled_star(3)?), Mapping { y: 2, z: 3 });
    /// assert_eq!(Mapping::new(&Stencil::cube(3, 1)?), Mapping { y: 2, z: 4 });
    /// # Ok::<(), krylith::structured::StencilError>(())
    /// ```
    pub fn new(stencil: &Stencil) -> Self {
        let turned = stencil.upper().iter().map(|o| o.map(|c| -c));
        let lower: Vec<Offset> = stencil.lower().iter().copied().chain(turned).collect();
        let least = |found: Option<i32>| found.map_or(1, |quotient| (quotient + 1).max(1));
        let y = least(lower.iter().filter(|o| o[2] == 0 && o[1] < 0).map(|o| o[0].div_euclid(-o[1])).max());
        let z = least(lower.iter().filter(|o| o[2] < 0).map(|o| (o[0] + y * o[1]).div_euclid(-o[2])).max());
        Mapping { y: y as usize, z: z as usize }
    }

    /// The level of a point.
    pub fn level(&self, [x, y, z]: [usize; 3]) -> usize {
        x + self.y * y + self.z * z
    }

    /// Levels of a grid.
    pub fn levels(&self, grid: &Grid) -> usize {
        self.level(grid.extents().map(|m| m - 1)) + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_lower_neighbour_has_a_smaller_level() {
        let odd =
            Stencil::new(vec![[0; 3], [5, -2, 0], [-1, 0, 0], [7, 3, -2], [1, 0, 0], [-4, 1, 0]]).unwrap();
        for stencil in
            [Stencil::star(3, 2).unwrap(), Stencil::diamond(3, 2).unwrap(), Stencil::cube(3, 2).unwrap(), odd]
        {
            let m = Mapping::new(&stencil);
            let level = |o: &Offset| o[0] as i64 + m.y as i64 * o[1] as i64 + m.z as i64 * o[2] as i64;
            assert!(stencil.lower().iter().all(|o| level(o) < 0), "{stencil} {m:?}");
            assert!(stencil.upper().iter().all(|o| level(o) > 0), "{stencil} {m:?}");
        }
    }

    /// The counts of the paper's section 4.1.
    #[test]
    fn counts_of_levels() {
        let grid = Grid::new(&[10, 10, 10]).unwrap();
        assert_eq!(Mapping::new(&Stencil::star(3, 1).unwrap()).levels(&grid), 3 * 10 - 2);
        assert_eq!(Mapping::new(&Stencil::star(3, 2).unwrap()).levels(&grid), 3 * 10 - 2);
        assert_eq!(Mapping::new(&Stencil::filled_star(3).unwrap()).levels(&grid), 6 * 10 - 5);
        assert_eq!(Mapping::new(&Stencil::cube(3, 1).unwrap()).levels(&grid), 7 * 10 - 6);
    }
}
