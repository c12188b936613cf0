//! Grids that a sample of a pattern's rows could come from.

use super::super::grid::Grid;
use super::super::stencil::{MOST_OFFSETS, Offset};
use super::{LEAST_FULLNESS, NotStructured, check, reach_along};
use crate::matrix::Rows;

/// Rows of a sample.
const ROWS: usize = 256;

/// Points in which blocks are counted.
const BLOCK_POINTS: usize = 16;

/// Ends of lines, and of planes, that are looked at in each candidate.
const ENDS: usize = 16;

/// Extents that are tried, at most: those with the shortest offsets. Nearly all fail at the first end of a line.
const MOST_EXTENTS: usize = 4096;

/// A grid, and what a sample uses of it.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    pub(super) grid: Grid,
    pub(super) dof: usize,
    /// Offsets in the order of columns, the centre among them.
    pub(super) used: Vec<Used>,
}

/// An offset, and which pairs of components it has: bit `dof` · row + column.
#[derive(Debug, Clone, Copy)]
pub(super) struct Used {
    pub(super) offset: Offset,
    pub(super) pairs: u64,
}

impl Candidate {
    /// Entries that are stored for the whole grid.
    pub(super) fn stored(&self) -> usize {
        self.grid.points() * self.used.len() * self.dof * self.dof
    }

    /// Those of them whose components occur together.
    pub(super) fn occupied(&self) -> usize {
        self.grid.points() * self.used.iter().map(|u| u.pairs.count_ones() as usize).sum::<usize>()
    }

    pub(super) fn total_reach(&self) -> usize {
        self.used.iter().flat_map(|u| u.offset).map(|c| c.unsigned_abs() as usize).sum()
    }

    /// Adds the entries of a point's rows.
    fn add(&mut self, rows: &impl Rows, number: usize) -> Result<(), NotStructured> {
        let (dof, point) = (self.dof, self.grid.point(number));
        for component in 0..dof {
            let (row, mut next) = (dof * number + component, 0);
            for &column in &*rows.columns(row) {
                let column = column as usize;
                let offset = offset(&self.grid, point, row, column, column / dof)?;
                let pairs = 1 << (dof * component + column % dof);
                let same = |u: &Used| u.offset == offset;
                let at = if self.used.get(next).is_some_and(same) { next } else { self.place_of(offset)? };
                self.used[at].pairs |= pairs;
                // Where the next column stands if this row is like the others.
                next = if column % dof + 1 == dof { at + 1 } else { at };
            }
        }
        Ok(())
    }

    /// Where an offset stands, which may be new.
    ///
    /// Two offsets that are the same distance between row and column are a fold: an axis fewer would need fewer of them.
    fn place_of(&mut self, offset: Offset) -> Result<usize, NotStructured> {
        let order = |o: &Offset| (o[2], o[1], o[0]);
        let at = match self.used.binary_search_by_key(&order(&offset), |u| order(&u.offset)) {
            Ok(at) => return Ok(at),
            Err(at) => at,
        };
        if self.used.len() == MOST_OFFSETS {
            return Err(NotStructured::TooManyOffsets { grid: self.grid });
        }
        let [nx, ny, _] = self.grid.extents().map(|m| m as i64);
        let distance = |o: Offset| i64::from(o[0]) + nx * (i64::from(o[1]) + ny * i64::from(o[2]));
        if self.used.iter().any(|u| distance(u.offset) == distance(offset)) {
            return Err(NotStructured::NoExtents { points: self.grid.points(), distances: self.used.len() });
        }
        self.used.insert(at, Used { offset, pairs: 0 });
        Ok(at)
    }
}

/// The offset from a point to that of a number, if it is near enough.
pub(super) fn offset(
    grid: &Grid,
    point: [usize; 3],
    row: usize,
    column: usize,
    number: usize,
) -> Result<Offset, NotStructured> {
    let there = grid.point(number);
    let mut offset = [0; 3];
    for (axis, extent) in grid.extents().into_iter().enumerate() {
        let apart = there[axis].abs_diff(point[axis]);
        if apart > reach_along(extent) {
            return Err(NotStructured::Outside { grid: *grid, row, column, apart, extent });
        }
        offset[axis] = if there[axis] < point[axis] { -(apart as i32) } else { apart as i32 };
    }
    Ok(offset)
}

/// Whether the rows divide into points of so many unknowns, and their blocks are not mostly empty.
///
/// Places of a stencil are at least the blocks that have an entry. The sample may be somewhat emptier than the matrix.
pub(super) fn worth_trying(rows: &impl Rows, dof: usize) -> bool {
    let n = rows.count();
    if dof == 1 {
        return true;
    }
    if !n.is_multiple_of(dof) || n / dof < 2 {
        return false;
    }
    let (mut blocks, mut entries, mut columns) = (0, 0, Vec::new());
    let sampled = sample(n / dof, BLOCK_POINTS);
    rows.announce(rows_of(&sampled, dof));
    for point in sampled {
        columns.clear();
        for row in dof * point..dof * (point + 1) {
            let row = rows.columns(row);
            if row.len() > MOST_OFFSETS * dof {
                return false;
            }
            columns.extend(row.iter().map(|&column| column as usize / dof));
        }
        entries += columns.len();
        columns.sort_unstable();
        columns.dedup();
        blocks += columns.len();
    }
    0.8 * LEAST_FULLNESS * (blocks * dof * dof) as f64 <= entries as f64
}

/// The candidates of a number of unknowns per point; at least one.
pub(super) fn find(rows: &impl Rows, dof: usize) -> Result<Vec<Candidate>, NotStructured> {
    let points = rows.count() / dof;
    let sampled = sample(points, ROWS.div_ceil(dof));
    rows.announce(rows_of(&sampled, dof));
    let distances = distances(rows, dof, &sampled)?;
    let none = NotStructured::NoExtents { points, distances: distances.len() };
    let (mut found, mut nearest) = (Vec::new(), (none, 0));
    for extents in extents(points, &distances) {
        let Ok(grid) = Grid::new(&extents) else { continue };
        let mut candidate = Candidate { grid, dof, used: vec![Used { offset: [0; 3], pairs: 0 }] };
        let looked_at = ends(&grid).into_iter().chain(sampled.iter().copied());
        let fault = looked_at
            .enumerate()
            .find_map(|(passed, point)| Some((candidate.add(rows, point).err()?, passed)));
        match fault.or_else(|| Some((unlike_a_grid(rows.entries(), &candidate)?, usize::MAX))) {
            None => found.push(candidate),
            Some((why, passed)) if (why.rank(), passed) > (nearest.0.rank(), nearest.1) => {
                nearest = (why, passed)
            }
            Some(_) => {}
        }
    }
    if found.is_empty() { Err(nearest.0) } else { Ok(found) }
}

/// What speaks against a candidate as a whole. A sample uses at most what the matrix uses, so fullness can only be less.
fn unlike_a_grid(entries: usize, candidate: &Candidate) -> Option<NotStructured> {
    let offsets: Vec<Offset> = candidate.used.iter().map(|u| u.offset).collect();
    check(entries, &candidate.grid, candidate.dof, &offsets).err()
}

/// Distances between points that entries of the sample join, increasing.
fn distances(rows: &impl Rows, dof: usize, sampled: &[usize]) -> Result<Vec<i64>, NotStructured> {
    let mut known: Vec<i64> = Vec::new();
    for (k, &point) in sampled.iter().enumerate() {
        for row in dof * point..dof * (point + 1) {
            let columns = rows.columns(row);
            if columns.len() > MOST_OFFSETS * dof {
                return Err(NotStructured::LongRow { row, entries: columns.len() });
            }
            let mut last = None;
            for &column in &*columns {
                let distance = (column as usize / dof) as i64 - point as i64;
                if last.replace(distance) != Some(distance)
                    && let Err(at) = known.binary_search(&distance)
                {
                    known.insert(at, distance);
                }
            }
        }
        if known.len() > MOST_OFFSETS {
            return Err(NotStructured::NoPeriod { rows: dof * (k + 1) });
        }
    }
    Ok(known)
}

/// The rows of points.
fn rows_of(points: &[usize], dof: usize) -> impl Iterator<Item = usize> {
    points.iter().flat_map(move |point| dof * point..dof * (point + 1))
}

/// Extents of so many points that bring every distance near, those with the shortest offsets first.
///
/// A number of points with many divisors has many thin grids, which come before the right one by size: 216,000 points have 112 divisors.
fn extents(points: usize, distances: &[i64]) -> Vec<[usize; 3]> {
    let mut all = Vec::new();
    if near(distances, points, 0) {
        all.push([points, 1, 1]);
    }
    let divisors = divisors(points);
    for &nx in &divisors {
        let rest = points / nx;
        let Some(lines) = quotients(distances, nx, rest) else { continue };
        if near(&lines, rest, 1) {
            all.push([nx, rest, 1]);
        }
        for &ny in divisors.iter().filter(|&&ny| rest.is_multiple_of(ny)) {
            let Some(planes) = quotients(&lines, ny, rest / ny) else { continue };
            if near(&planes, rest / ny, 1) {
                all.push([nx, ny, rest / ny]);
            }
        }
    }
    all.sort_by_cached_key(|extents| total_reach(distances, extents));
    all.truncate(MOST_EXTENTS);
    all
}

/// How far distances reach along the axes, all together.
fn total_reach(distances: &[i64], &[nx, ny, _]: &[usize; 3]) -> u64 {
    let split = |distance: i64, extent: usize| {
        let extent = extent as i64;
        let multiple = if extent < 2 { distance } else { (distance + extent / 2).div_euclid(extent) };
        (distance - multiple * extent, multiple)
    };
    let reach = |&distance: &i64| {
        let (x, lines) = split(distance, nx);
        let (y, planes) = split(lines, ny);
        x.unsigned_abs() + y.unsigned_abs() + planes.unsigned_abs()
    };
    distances.iter().map(reach).sum()
}

/// Whether distances are within reach along an axis, or `more` beyond: on a short axis the nearest multiple may be the wrong one.
fn near(distances: &[i64], extent: usize, more: u64) -> bool {
    distances.iter().all(|d| d.unsigned_abs() <= reach_along(extent) as u64 + more)
}

/// The nearest multiples of `extent`, if every distance is within reach of one, and `rest` of them are an axis that is used.
fn quotients(distances: &[i64], extent: usize, rest: usize) -> Option<Vec<i64>> {
    if extent < 2 || rest < 2 {
        return None;
    }
    let (modulus, reach) = (extent as i64, reach_along(extent) as i64 + 1);
    let mut quotients = Vec::with_capacity(distances.len());
    for distance in distances {
        let quotient = (distance + modulus / 2).div_euclid(modulus);
        if (distance - quotient * modulus).abs() > reach {
            return None;
        }
        if quotients.last() != Some(&quotient) {
            quotients.push(quotient);
        }
    }
    quotients.iter().any(|&q| q != 0).then_some(quotients)
}

/// Divisors, increasing.
fn divisors(number: usize) -> Vec<usize> {
    let mut small: Vec<usize> =
        (1..=number.isqrt()).filter(|&candidate| number.is_multiple_of(candidate)).collect();
    let large: Vec<usize> =
        small.iter().rev().map(|small| number / small).filter(|large| large * large > number).collect();
    small.extend(large);
    small
}

/// Points on both sides of some ends of lines and of planes.
fn ends(grid: &Grid) -> Vec<usize> {
    let ([nx, ny, _], points) = (grid.extents(), grid.points());
    [nx, nx * ny]
        .into_iter()
        .filter(|&period| period < points)
        .flat_map(|period| sample(points / period - 1, ENDS).into_iter().map(move |line| period * (line + 1)))
        .flat_map(|start| [start - 1, start])
        .collect()
}

/// Up to `count` of the numbers below `end`, one from each part of equal length.
fn sample(end: usize, count: usize) -> Vec<usize> {
    if end <= count {
        return (0..end).collect();
    }
    let bound = |k: usize| (k as u128 * end as u128 / count as u128) as usize;
    (0..count).map(|k| bound(k) + (hash(k as u64) % (bound(k + 1) - bound(k)) as u64) as usize).collect()
}

/// SplitMix64's finalizer: numbers without a period that a grid could share.
fn hash(number: u64) -> u64 {
    let mut h = number.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    h = (h ^ (h >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    h = (h ^ (h >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    h ^ (h >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn divisors_by_hand() {
        assert_eq!(divisors(1), [1]);
        assert_eq!(divisors(36), [1, 2, 3, 4, 6, 9, 12, 18, 36]);
        assert_eq!(divisors(97), [1, 97]);
    }

    #[test]
    fn samples_are_increasing_and_within() {
        for end in [0, 1, 5, 63, 64, 65, 1000, u32::MAX as usize] {
            let points = sample(end, 64);
            assert_eq!(points.len(), end.min(64));
            assert!(points.windows(2).all(|w| w[0] < w[1]) && points.iter().all(|&p| p < end));
        }
    }

    /// The 7-point star on 60 x 60 x 60, whose 216,000 points are also many thin grids.
    #[test]
    fn the_shortest_offsets_come_first() {
        let found = extents(216_000, &[-3600, -60, -1, 0, 1, 60, 3600]);
        assert_eq!(found[0], [60, 60, 60]);
        assert!(found.len() > 256 && found.len() <= MOST_EXTENTS);
        // By hand: 3600 is 10 planes of 12 x 30 and 60 is 5 lines.
        assert_eq!(total_reach(&[-3600, -60, -1, 0, 1, 60, 3600], &[12, 30, 600]), 2 * (1 + 5 + 10));
        assert_eq!(total_reach(&[-12, 0, 13], &[12, 10, 1]), 1 + 2);
    }

    /// The 5-point star on 12 x 10: distances 1 and 12; as 6 x 20 the longer one is two lines up.
    #[test]
    fn extents_by_hand() {
        let found = extents(120, &[-12, -1, 0, 1, 12]);
        assert!(found.contains(&[12, 10, 1]) && found.contains(&[6, 20, 1]) && found.contains(&[120, 1, 1]));
        assert!(!found.contains(&[40, 3, 1]));
        assert_eq!(quotients(&[-13, -12, -1, 0, 1, 12, 14], 12, 10), Some(vec![-1, 0, 1]));
        assert_eq!(quotients(&[0, 1], 12, 10), None);
    }
}
