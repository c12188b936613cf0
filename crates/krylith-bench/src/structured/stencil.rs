//! The five stencils of the study, and what can be counted on them without a matrix.
//!
//! A stencil is a set of offsets (x, y, z) with the centre, symmetric about it. In natural order, x fastest, an offset is lower
//! if (z, y, x) comes before (0, 0, 0).
//!
//! | stencil | offsets |
//! |---|---|
//! | Star-7P, Star-13P | up to 1 or 2 along one axis |
//! | Diamond-13P | Star-7P and the six (±1, ∓1) in two axes: Star-7P with the first level of fill |
//! | Diamond-25P | \|x\| + \|y\| + \|z\| ≤ 2 |
//! | Box-27P | \|x\|, \|y\|, \|z\| ≤ 1 |
//!
//! Reference: Luo et al. 2025, doi:10.1145/3721145.3725745, tables 2 and 3.

use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// One coupling: along x, y and z.
pub type Offset = [i32; 3];

/// A shape of couplings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stencil {
    #[serde(rename = "Star-7P")]
    Star7,
    #[serde(rename = "Star-13P")]
    Star13,
    #[serde(rename = "Diamond-13P")]
    Diamond13,
    #[serde(rename = "Diamond-25P")]
    Diamond25,
    #[serde(rename = "Box-27P")]
    Box27,
}

impl Stencil {
    /// All of them, in the order of the tables.
    pub const ALL: [Stencil; 5] =
        [Stencil::Star7, Stencil::Star13, Stencil::Diamond13, Stencil::Diamond25, Stencil::Box27];

    pub fn name(self) -> &'static str {
        match self {
            Stencil::Star7 => "Star-7P",
            Stencil::Star13 => "Star-13P",
            Stencil::Diamond13 => "Diamond-13P",
            Stencil::Diamond25 => "Diamond-25P",
            Stencil::Box27 => "Box-27P",
        }
    }

    /// Every offset, by rising index of the neighbour.
    pub fn offsets(self) -> Vec<Offset> {
        let mut offsets = Vec::new();
        for z in -2..=2i32 {
            for y in -2..=2i32 {
                for x in -2..=2i32 {
                    if self.has([x, y, z]) {
                        offsets.push([x, y, z]);
                    }
                }
            }
        }
        offsets
    }

    /// Whether an offset couples.
    pub fn has(self, offset: Offset) -> bool {
        let distance: i32 = offset.iter().map(|o| o.abs()).sum();
        let farthest = offset.iter().map(|o| o.abs()).max().unwrap_or(0);
        match self {
            Stencil::Star7 => distance <= 1,
            Stencil::Star13 => distance == farthest && farthest <= 2,
            // Two axes that cancel.
            Stencil::Diamond13 => {
                distance <= 1 || distance == 2 && farthest == 1 && offset.iter().sum::<i32>() == 0
            }
            Stencil::Diamond25 => distance <= 2,
            Stencil::Box27 => farthest <= 1,
        }
    }

    /// Pairs of a lower offset l and an upper one u with l + u in the stencil: the updates of ILU(0) in a row far from the
    /// boundary.
    pub fn updates(self) -> Vec<(Offset, Offset)> {
        let offsets = self.offsets();
        let mut pairs = Vec::new();
        for &l in offsets.iter().filter(|o| is_lower(o)) {
            for &u in offsets.iter().filter(|o| is_upper(o)) {
                if self.has(sum(l, u)) {
                    pairs.push((l, u));
                }
            }
        }
        pairs
    }
}

impl FromStr for Stencil {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = || Stencil::ALL.map(Stencil::name).join(", ");
        let found = Stencil::ALL.into_iter().find(|s| s.name().eq_ignore_ascii_case(text));
        found.ok_or_else(|| format!("there is no stencil `{text}`; stencils: {}", known()))
    }
}

pub fn is_lower([x, y, z]: &Offset) -> bool {
    [*z, *y, *x] < [0, 0, 0]
}

pub fn is_upper([x, y, z]: &Offset) -> bool {
    [*z, *y, *x] > [0, 0, 0]
}

pub fn sum(a: Offset, b: Offset) -> Offset {
    std::array::from_fn(|axis| a[axis] + b[axis])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_the_number_of_points() {
        for stencil in Stencil::ALL {
            let offsets = stencil.offsets();
            let points: usize =
                stencil.name().split('-').nth(1).unwrap().trim_end_matches('P').parse().unwrap();
            assert_eq!(offsets.len(), points, "{stencil:?}");
            assert!(offsets.iter().all(|&o| stencil.has(o.map(|x| -x))), "{stencil:?} is not symmetric");
            assert!(offsets.is_sorted_by_key(|&[x, y, z]| [z, y, x]));
            assert_eq!(stencil.name().to_lowercase().parse(), Ok(stencil));
        }
        assert!("star-9p".parse::<Stencil>().unwrap_err().contains("Diamond-13P"));
    }

    /// Table 2 of the paper: an update, a multiple by the pivot's inverse and an inverse cost 1 each.
    #[test]
    fn a_row_costs_what_the_paper_says() {
        let expected = [("Star-13P", 19), ("Diamond-13P", 29), ("Diamond-25P", 95), ("Box-27P", 115)];
        for (name, cost) in expected {
            let stencil: Stencil = name.parse().unwrap();
            let lower = stencil.offsets().iter().filter(|o| is_lower(o)).count();
            assert_eq!(stencil.updates().len() + lower + 1, cost, "{name}");
        }
    }

    /// ILU(1) of Star-7P: its offsets and all sums of a lower and an upper one.
    #[test]
    fn diamond_13_is_the_first_fill_of_star_7() {
        let star = Stencil::Star7.offsets();
        for l in star.iter().filter(|o| is_lower(o)) {
            for u in star.iter().filter(|o| is_upper(o)) {
                assert!(Stencil::Diamond13.has(sum(*l, *u)), "{l:?} + {u:?}");
            }
        }
    }
}
