//! Rows by wavefront.
//!
//!   level(i) = 1 + max { level(j) : j < i, (i, j) or (j, i) in the pattern },  0 where there is no such j
//!
//! Both triangles count, so that one order serves the forward sweep, and backwards the backward sweep, also where the pattern is
//! not symmetric. Within a level rows keep their order. Levels begin at multiples of [`LANES`]; positions in between are empty.
//! Cost: one pass over the pattern, in order.
#![allow(unsafe_code)]

use super::LANES;
use crate::matrix::Pattern;
use crate::memory::large_pages;
use crate::placement::Order;
use std::ops::Range;

/// An empty position.
pub(super) const EMPTY: u32 = u32::MAX;

/// Where each row stands.
#[derive(Debug)]
pub(crate) struct LevelOrder {
    /// The position of each row.
    pub(super) positions: Vec<u32>,
    /// The row at each position, or [`EMPTY`].
    pub(super) rows: Vec<u32>,
    /// The first slice of each level, and the end.
    pub(super) levels: Vec<u32>,
}

impl LevelOrder {
    /// Rows as they are: for products, which have no order.
    pub(crate) fn natural(n: usize) -> Self {
        let slices = n.div_ceil(LANES);
        let rows = (0..slices * LANES).map(|k| if k < n { k as u32 } else { EMPTY }).collect();
        LevelOrder { positions: (0..n as u32).collect(), rows, levels: vec![0, slices as u32] }
    }

    /// `None` if there are more than `most` positions.
    pub(super) fn new(pattern: &Pattern, most: usize) -> Option<Self> {
        let level = levels(pattern);
        let count = level.iter().max().map_or(0, |&l| l as usize + 1);
        let mut sizes = vec![0usize; count];
        for &l in &level {
            sizes[l as usize] += 1;
        }
        let mut levels = vec![0u32; count + 1];
        let mut slices = 0;
        for (l, size) in sizes.iter().enumerate() {
            slices += size.div_ceil(LANES);
            if slices * LANES > most {
                return None;
            }
            levels[l + 1] = slices as u32;
        }
        let mut next: Vec<u32> = levels.iter().map(|&s| s * LANES as u32).collect();
        let mut rows: Vec<u32> = large_pages::zeros(slices * LANES);
        rows.fill(EMPTY);
        // Levels become positions in place.
        let mut positions = level;
        for (i, position) in positions.iter_mut().enumerate() {
            let next = &mut next[*position as usize];
            rows[*next as usize] = i as u32;
            *position = *next;
            *next += 1;
        }
        Some(LevelOrder { positions, rows, levels })
    }

    pub(crate) fn positions(&self) -> usize {
        self.rows.len()
    }

    pub(crate) fn slices(&self) -> usize {
        self.rows.len() / LANES
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of_val(self.positions.as_slice())
            + size_of_val(self.rows.as_slice())
            + size_of_val(self.levels.as_slice())
    }
}

/// Slices of one unit.
const SLICES_A_UNIT: usize = 512;

// SAFETY: units are consecutive ranges of slices; `rows` holds each row once.
unsafe impl Order for LevelOrder {
    fn rows(&self) -> usize {
        self.positions.len()
    }

    fn places(&self) -> usize {
        self.positions()
    }

    fn units(&self) -> usize {
        self.slices().div_ceil(SLICES_A_UNIT)
    }

    fn span(&self, unit: usize) -> Range<usize> {
        let places = SLICES_A_UNIT * LANES;
        unit * places..((unit + 1) * places).min(self.places())
    }

    fn for_each_row(&self, unit: usize, mut visit: impl FnMut(usize, usize)) {
        let span = self.span(unit);
        for (&row, place) in self.rows[span.clone()].iter().zip(span) {
            if row != EMPTY {
                visit(row as usize, place);
            }
        }
    }

    fn row_at(&self, place: usize) -> Option<usize> {
        self.rows.get(place).filter(|&&row| row != EMPTY).map(|&row| row as usize)
    }
}

fn levels(pattern: &Pattern) -> Vec<u32> {
    let mut level: Vec<u32> = large_pages::zeros(pattern.nrows());
    for i in 0..pattern.nrows() {
        let columns = pattern.row(i);
        let split = columns.partition_point(|&j| (j as usize) < i);
        let own = columns[..split].iter().map(|&j| level[j as usize] + 1).max().unwrap_or(0).max(level[i]);
        level[i] = own;
        for &j in &columns[split..] {
            if j as usize > i {
                level[j as usize] = level[j as usize].max(own + 1);
            }
        }
    }
    level
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both triangles count: (2, 0) and (1, 3) make 2 follow 0 and 3 follow 1.
    #[test]
    fn by_hand() {
        let p = Pattern::new(4, 4, vec![0, 1, 3, 5, 6], vec![0, 1, 3, 0, 2, 3]).unwrap();
        let order = LevelOrder::new(&p, 16).unwrap();
        assert_eq!(order.positions, [0, 1, 8, 9]);
        assert_eq!(order.levels, [0, 1, 2]);
        let e = EMPTY;
        assert_eq!(order.rows, [0, 1, e, e, e, e, e, e, 2, 3, e, e, e, e, e, e]);
        assert!(LevelOrder::new(&p, 15).is_none());
    }
}
