//! Stencils: which neighbours of a grid point its row of a matrix has.
//!
//! A stencil is a set of offsets (x, y, z) with the centre among them. Sorted by z, then y, then x, they stand in the order of a
//! row's columns; those before the centre are the *lower* ones. What incomplete factorization does to a row follows from the
//! stencil alone: eliminating the lower neighbour l by its row, which has the offsets u, changes the entries l + u.
//!
//! Reference: Luo et al. 2025, doi:10.1145/3721145.3725745, where the names come from.

use std::collections::BTreeMap;
use std::fmt;
use thiserror::Error;

/// The most offsets of a stencil.
pub const MOST_OFFSETS: usize = 343;

/// How far an offset may reach along an axis.
pub const LONGEST_REACH: i32 = 1 << 10;

/// An offset along x, y, z.
pub type Offset = [i32; 3];

/// A set of offsets, in the order of columns, the centre among them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Stencil {
    offsets: Vec<Offset>,
    centre: usize,
}

/// Offsets that make no stencil.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum StencilError {
    /// The offset (0, 0, 0) is missing.
    #[error("a stencil needs its centre, the offset (0, 0, 0)")]
    NoCentre,
    /// An offset twice.
    #[error("the offset {offset:?} is given twice")]
    Twice {
        /// That offset.
        offset: Offset,
    },
    /// An offset out of reach.
    #[error("the offset {offset:?} reaches further than {LONGEST_REACH} points")]
    TooFar {
        /// That offset.
        offset: Offset,
    },
    /// A stencil by name of too many axes, or that reaches too far or not at all.
    #[error("a stencil by name has 1 to 3 axes and reaches 1 to 3 points along them, not {dims} and {reach}")]
    Shape {
        /// Axes.
        dims: usize,
        /// Points along each of them.
        reach: i32,
    },
    /// More offsets than are allowed.
    #[error("{count} offsets; a stencil has at most {MOST_OFFSETS}")]
    TooMany {
        /// How many were given.
        count: usize,
    },
}

/// One step of an elimination: offset `lower` times offset `upper` of the neighbour's row changes `target`, which is dropped if the
/// stencil does not have it. All are indices into [`Stencil::offsets`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Elimination {
    /// The neighbour that is eliminated.
    pub lower: usize,
    /// The offset in that neighbour's row.
    pub upper: usize,
    /// What it changes.
    pub target: Option<usize>,
}

impl Stencil {
    /// The stencil of these offsets, in any order.
    pub fn new(mut offsets: Vec<Offset>) -> Result<Self, StencilError> {
        if offsets.len() > MOST_OFFSETS {
            return Err(StencilError::TooMany { count: offsets.len() });
        }
        if let Some(&offset) =
            offsets.iter().find(|o| o.iter().any(|c| !(-LONGEST_REACH..=LONGEST_REACH).contains(c)))
        {
            return Err(StencilError::TooFar { offset });
        }
        offsets.sort_unstable_by_key(order);
        if let Some(pair) = offsets.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(StencilError::Twice { offset: pair[0] });
        }
        let centre = offsets.iter().position(|o| *o == [0; 3]).ok_or(StencilError::NoCentre)?;
        Ok(Stencil { offsets, centre })
    }

    /// Up to `reach` points, 1 to 3, along each of `dims` axes: Star-5P, Star-7P, with reach 2 Star-9P, Star-13P.
    ///
    /// ```
    /// use krylith::structured::Stencil;
    /// let star = Stencil::star(3, 1)?;
    /// assert_eq!((star.len(), star.lower().len(), star.to_string().as_str()), (7, 3, "Star-7P"));
    /// assert!(Stencil::star(3, -1).is_err());
    /// # Ok::<(), krylith::structured::StencilError>(())
    /// ```
    pub fn star(dims: usize, reach: i32) -> Result<Self, StencilError> {
        Self::where_offset(dims, reach, |o| o.iter().filter(|&&c| c != 0).count() <= 1)
    }

    /// |x| + |y| + |z| ≤ `reach`, 1 to 3: with reach 2 in three dimensions Diamond-25P.
    pub fn diamond(dims: usize, reach: i32) -> Result<Self, StencilError> {
        Self::where_offset(dims, reach, |o| o.iter().map(|c| c.abs()).sum::<i32>() <= reach)
    }

    /// What IC(1) makes of the star of reach 1, its neighbours joined by one lower and one upper step: Diamond-13P in three
    /// dimensions.
    pub fn filled_star(dims: usize) -> Result<Self, StencilError> {
        Ok(Self::star(dims, 1)?.with_fill(1).expect("the point between is in the box of the two"))
    }

    /// All offsets up to `reach`, 1 to 3, along each axis: Box-9P, Box-27P.
    pub fn cube(dims: usize, reach: i32) -> Result<Self, StencilError> {
        Self::where_offset(dims, reach, |_| true)
    }

    fn where_offset(dims: usize, reach: i32, has: impl Fn(&Offset) -> bool) -> Result<Self, StencilError> {
        if !(1..=3).contains(&dims) || !(1..=3).contains(&reach) {
            return Err(StencilError::Shape { dims, reach });
        }
        let along = |axis: usize| if axis < dims { -reach..=reach } else { 0..=0 };
        let mut offsets = Vec::new();
        for z in along(2) {
            for y in along(1) {
                offsets.extend(along(0).map(|x| [x, y, z]).filter(|o| has(o)));
            }
        }
        Self::new(offsets)
    }

    /// Offsets in the order of columns.
    pub fn offsets(&self) -> &[Offset] {
        &self.offsets
    }

    /// Number of offsets, the centre included.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.offsets.len()
    }

    /// Where the centre stands among the offsets.
    pub fn centre(&self) -> usize {
        self.centre
    }

    /// Offsets before the centre.
    pub fn lower(&self) -> &[Offset] {
        &self.offsets[..self.centre]
    }

    /// Offsets after the centre.
    pub fn upper(&self) -> &[Offset] {
        &self.offsets[self.centre + 1..]
    }

    /// Where an offset stands.
    pub fn find(&self, offset: Offset) -> Option<usize> {
        self.offsets.binary_search_by_key(&order(&offset), order).ok()
    }

    /// Whether every offset has its opposite.
    pub fn is_symmetric(&self) -> bool {
        self.offsets.iter().all(|o| self.find(o.map(|c| -c)).is_some())
    }

    /// The elimination of a row, step by step in the order of its columns.
    pub fn eliminations(&self) -> Vec<Elimination> {
        let mut steps = Vec::new();
        for (lower, l) in self.lower().iter().enumerate() {
            for (u, o) in self.upper().iter().enumerate() {
                let upper = self.centre + 1 + u;
                steps.push(Elimination { lower, upper, target: self.find(add(l, o)) });
            }
        }
        steps
    }

    /// Whether elimination changes the diagonal alone, so that the off-diagonal parts of ILU(0) are those of A: no two offsets
    /// of a row, one lower and one upper, add to a third but the centre.
    ///
    /// ```
    /// use krylith::structured::Stencil;
    /// assert!(Stencil::star(3, 1)?.keeps_off_diagonals());
    /// assert!(!Stencil::star(3, 2)?.keeps_off_diagonals()); // (-2, 0, 0) + (1, 0, 0)
    /// assert!(!Stencil::cube(2, 1)?.keeps_off_diagonals());
    /// # Ok::<(), krylith::structured::StencilError>(())
    /// ```
    pub fn keeps_off_diagonals(&self) -> bool {
        self.eliminations().iter().all(|step| step.target.is_none_or(|target| target == self.centre))
    }

    /// The stencil of ILU(`level`): one lower and one upper offset add to a new one, `level` times. `None` if near the
    /// boundary a matrix would have less fill than the stencil says, or if there are too many offsets.
    ///
    /// The new offset joins two points of the grid; the fill is there if the point between them is in the grid too, which
    /// is certain if that point is in the box that the two span.
    pub fn with_fill(&self, level: usize) -> Option<Self> {
        let levels = self.fill_levels(level)?;
        let certain = |(&sum, &m): (&Offset, &usize)| {
            let between = |l: &Offset| (0..3).all(|a| (0.min(sum[a])..=0.max(sum[a])).contains(&l[a]));
            m == 0
                || levels.iter().any(|(l, &a)| {
                    let u = [sum[0] - l[0], sum[1] - l[1], sum[2] - l[2]];
                    is_lower(l) && is_upper(&u) && between(l) && levels.get(&u).is_some_and(|&b| a + b < m)
                })
        };
        if !levels.iter().all(certain) {
            return None;
        }
        Self::new(levels.into_keys().collect()).ok()
    }

    /// Levels of fill up to `level`: that of l + u is the sum of those of l and u and 1. `None` if there are too many offsets.
    fn fill_levels(&self, level: usize) -> Option<BTreeMap<Offset, usize>> {
        let mut levels: BTreeMap<Offset, usize> = self.offsets.iter().map(|&o| (o, 0)).collect();
        loop {
            let before = levels.clone();
            for (l, a) in before.iter().filter(|(l, _)| is_lower(l)) {
                for (u, b) in before.iter().filter(|(u, _)| is_upper(u)) {
                    if a + b < level {
                        let known = levels.entry(add(l, u)).or_insert(usize::MAX);
                        *known = (*known).min(a + b + 1);
                    }
                }
            }
            if levels.len() > MOST_OFFSETS {
                return None;
            }
            if levels == before {
                return Some(levels);
            }
        }
    }

    /// The opposite offsets: the stencil of the transpose.
    pub fn mirrored(&self) -> Self {
        let offsets: Vec<Offset> = self.offsets.iter().rev().map(|o| o.map(|c| -c)).collect();
        let centre = offsets.len() - 1 - self.centre;
        Stencil { offsets, centre }
    }

    /// How far offsets reach along each axis.
    pub fn reach(&self) -> [usize; 3] {
        std::array::from_fn(|axis| {
            self.offsets.iter().map(|o| o[axis].unsigned_abs() as usize).max().unwrap_or(0)
        })
    }

    /// Axes that offsets use.
    pub fn dims(&self) -> usize {
        self.reach().iter().rposition(|&r| r > 0).map_or(1, |last| last + 1)
    }
}

fn order(o: &Offset) -> (i32, i32, i32) {
    (o[2], o[1], o[0])
}

fn is_lower(o: &Offset) -> bool {
    order(o) < (0, 0, 0)
}

fn is_upper(o: &Offset) -> bool {
    order(o) > (0, 0, 0)
}

fn add(a: &Offset, b: &Offset) -> Offset {
    [a[0] + b[0], a[1] + b[1], a[2] + b[2]]
}

impl fmt::Display for Stencil {
    /// The name, if it has one: Star-7P, Box-27P; otherwise the number of offsets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (dims, count) = (self.dims(), self.len());
        let reach = self.reach().into_iter().max().unwrap_or(0) as i32;
        let is = |other: Result<Self, StencilError>| other.is_ok_and(|other| *self == other);
        let name = match reach {
            _ if is(Self::star(dims, reach)) => "Star",
            _ if is(Self::cube(dims, reach)) => "Box",
            2 if is(Self::diamond(dims, 2)) => "Diamond",
            1 if is(Self::filled_star(dims)) => "Diamond",
            _ => "Stencil",
        };
        write!(f, "{name}-{count}P")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_stencils() {
        for (stencil, count, name) in [
            (Stencil::star(1, 1).unwrap(), 3, "Star-3P"),
            (Stencil::star(2, 1).unwrap(), 5, "Star-5P"),
            (Stencil::star(3, 1).unwrap(), 7, "Star-7P"),
            (Stencil::star(3, 2).unwrap(), 13, "Star-13P"),
            (Stencil::filled_star(3).unwrap(), 13, "Diamond-13P"),
            (Stencil::diamond(3, 2).unwrap(), 25, "Diamond-25P"),
            (Stencil::cube(2, 1).unwrap(), 9, "Box-9P"),
            (Stencil::cube(3, 1).unwrap(), 27, "Box-27P"),
        ] {
            assert_eq!((stencil.len(), stencil.to_string().as_str()), (count, name));
            assert!(stencil.is_symmetric());
            assert_eq!(stencil.centre(), count / 2);
        }
        let own = Stencil::new(vec![[0, 0, 0], [1, 0, 0], [0, -1, 0], [3, 2, 0]]).unwrap();
        assert_eq!(own.offsets(), [[0, -1, 0], [0, 0, 0], [1, 0, 0], [3, 2, 0]]);
        assert_eq!(own.to_string(), "Stencil-4P");
    }

    /// IC(1) of the 7-point star is the 13-point diamond, as the paper has it; of the 5-point star a hexagon.
    #[test]
    fn fill_of_stars() {
        let diamond = Stencil::filled_star(3).unwrap();
        let lower = [[0, 0, -1], [1, 0, -1], [0, 1, -1], [0, -1, 0], [1, -1, 0], [-1, 0, 0]];
        assert_eq!(diamond.lower(), lower);
        let hexagon = Stencil::star(2, 1).unwrap().with_fill(1).unwrap();
        assert_eq!(hexagon.offsets()[..3], [[0, -1, 0], [1, -1, 0], [-1, 0, 0]]);
        assert_eq!(Stencil::star(3, 1).unwrap().with_fill(0), Some(Stencil::star(3, 1).unwrap()));
        let second = Stencil::star(2, 1).unwrap().with_fill(2).unwrap();
        assert!(second.find([2, -1, 0]).is_some() && second.find([2, -2, 0]).is_none());
    }

    #[test]
    fn wrong_offsets_are_refused() {
        assert_eq!(Stencil::new(vec![[1, 0, 0]]), Err(StencilError::NoCentre));
        assert_eq!(Stencil::new(vec![[0; 3], [0; 3]]), Err(StencilError::Twice { offset: [0; 3] }));
        assert!(matches!(Stencil::new(vec![[0; 3], [5000, 0, 0]]), Err(StencilError::TooFar { .. })));
        assert!(matches!(Stencil::new(vec![[0; 3]; 400]), Err(StencilError::TooMany { count: 400 })));
    }

    #[test]
    fn stencils_by_name_have_one_to_three_axes_and_reach_one_to_three_points() {
        for make in [Stencil::star, Stencil::diamond, Stencil::cube] {
            for dims in 1..=3 {
                assert!((1..=3).all(|reach| make(dims, reach).is_ok_and(|s| s.dims() == dims)));
                for reach in [i32::MIN, -1, 0, 4, LONGEST_REACH, i32::MAX] {
                    assert_eq!(make(dims, reach), Err(StencilError::Shape { dims, reach }));
                }
            }
            for dims in [0, 4, usize::MAX] {
                assert_eq!(make(dims, 1), Err(StencilError::Shape { dims, reach: 1 }));
                assert!(Stencil::filled_star(dims).is_err());
            }
        }
    }

    /// A row of the 5-point star: the two lower neighbours change the diagonal, and drop two entries.
    #[test]
    fn eliminations_by_hand() {
        let star = Stencil::star(2, 1).unwrap();
        let steps = star.eliminations();
        let kept: Vec<_> = steps.iter().filter_map(|s| s.target.map(|t| (s.lower, s.upper, t))).collect();
        // (0, -1) + (0, 1) and (-1, 0) + (1, 0).
        assert_eq!((kept, steps.len()), (vec![(0, 4, 2), (1, 3, 2)], 4));
    }
}
