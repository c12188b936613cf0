//! Every entry of a pattern against a candidate: the exact set of offsets.
//!
//! Points are passed in the order of their numbers. A line of points has one list of offsets that stay inside the grid along y and z.
//! Away from its ends, a row that repeats the one of the point before has the same offsets: nothing more to look at, and with one unknown per point
//! not even the row (`repeats`). Other
//! rows go through the list beside their columns, and only a column that is not in it is taken apart into coordinates.

use super::super::grid::Grid;
use super::super::stencil::{MOST_OFFSETS, Offset};
use super::NotStructured;
use super::candidates::{self, Candidate};
use crate::matrix::{OwnUnits, Rows};
use crate::parallel;
use std::collections::BTreeSet;
use std::ops::Range;

/// Points that one thread takes at a time.
const PIECE: usize = 4096;

/// The offsets that entries have, and the centre.
pub(super) fn offsets(rows: &impl Rows, candidate: &Candidate) -> Result<Vec<Offset>, NotStructured> {
    let lines = Lines::new(candidate);
    let own = rows.own(candidate.dof);
    let (first, points) = (own.units.start, own.units.len());
    if candidate.dof == 1 {
        own.find_repeating();
    }
    let look = |piece: usize| {
        let piece = piece * PIECE..((piece + 1) * PIECE).min(points);
        lines.look(&own, first + piece.start..first + piece.end)
    };
    let seen = parallel::try_map(points.div_ceil(PIECE), look)
        .map(|seen| seen.into_iter().fold(Seen::default(), Seen::with));
    let mut all = Seen::default();
    for theirs in rows.everyones(to_words(&seen)) {
        all = all.with(from_words(&theirs, candidate.grid)?);
    }
    let known = candidate.used.iter().enumerate();
    let mut offsets: Vec<Offset> =
        known.filter(|(k, u)| all.has(*k) || u.offset == [0; 3]).map(|(_, u)| u.offset).collect();
    offsets.extend(all.others);
    if offsets.len() > MOST_OFFSETS {
        return Err(NotStructured::TooManyOffsets { grid: candidate.grid });
    }
    Ok(offsets)
}

/// What was seen, or the first fault, to be sent to other processes: a number that says which, and then what it has.
fn to_words(seen: &Result<Seen, NotStructured>) -> Vec<u64> {
    match seen {
        Ok(seen) => {
            let others = seen.others.iter().flatten().map(|&c| i64::from(c) as u64);
            [0].into_iter().chain(seen.known).chain(others).collect()
        }
        Err(NotStructured::Outside { row, column, apart, extent, .. }) => {
            [1].into_iter().chain([row, column, apart, extent].map(|&number| number as u64)).collect()
        }
        Err(_) => vec![2],
    }
}

fn from_words(words: &[u64], grid: Grid) -> Result<Seen, NotStructured> {
    match words {
        [0, seen @ ..] if seen.len() >= KNOWN_WORDS => {
            let (known, others) = seen.split_at(KNOWN_WORDS);
            let offset = |o: &[u64]| [o[0], o[1], o[2]].map(|c| c as i64 as i32);
            let others = others.chunks_exact(3).map(offset).collect();
            Ok(Seen { known: std::array::from_fn(|k| known[k]), others })
        }
        &[1, row, column, apart, extent] => {
            let [row, column, apart, extent] = [row, column, apart, extent].map(|number| number as usize);
            Err(NotStructured::Outside { grid, row, column, apart, extent })
        }
        _ => Err(NotStructured::TooManyOffsets { grid }),
    }
}

/// Words of a bit for each offset of a candidate.
const KNOWN_WORDS: usize = MOST_OFFSETS.div_ceil(64);

/// Offsets that were met.
#[derive(Debug, Clone, Default)]
struct Seen {
    /// Of the candidate's, a bit each.
    known: [u64; KNOWN_WORDS],
    /// That the candidate does not have.
    others: BTreeSet<Offset>,
}

impl Seen {
    fn has(&self, k: usize) -> bool {
        self.known[k / 64] >> (k % 64) & 1 == 1
    }

    fn insert(&mut self, k: usize) {
        self.known[k / 64] |= 1 << (k % 64);
    }

    fn with(mut self, other: Self) -> Self {
        self.known.iter_mut().zip(other.known).for_each(|(a, b)| *a |= b);
        self.others.extend(other.others);
        self
    }
}

/// A line's list: offsets that stay inside along y and z.
#[derive(Debug, Default)]
struct Line {
    /// By distance.
    places: Vec<Place>,
    /// Where offsets stay inside along x too.
    inner: Range<usize>,
}

#[derive(Debug, Clone, Copy)]
struct Place {
    /// From the first column of the point itself to the first of the other one.
    distance: i64,
    /// Along x.
    x: i32,
    /// Among the candidate's.
    index: usize,
}

/// Coordinates along one axis that have the same offsets inside.
#[derive(Debug)]
struct Classes {
    extent: usize,
    /// Offsets reach so far down and up.
    down: usize,
    up: usize,
}

impl Classes {
    fn new(candidate: &Candidate, axis: usize) -> Self {
        let along =
            |sign: i32| candidate.used.iter().map(|u| (sign * u.offset[axis]).max(0)).max().unwrap_or(0);
        Classes { extent: candidate.grid.extents()[axis], down: along(-1) as usize, up: along(1) as usize }
    }

    fn count(&self) -> usize {
        (self.down + self.up + 1).min(self.extent)
    }

    /// Near either end a class of its own, between one for all.
    fn of(&self, at: usize) -> usize {
        if self.extent <= self.count() || at < self.down {
            at
        } else {
            self.down + (at + self.up + 1).saturating_sub(self.extent)
        }
    }

    /// A coordinate of a class.
    fn member(&self, class: usize) -> usize {
        if self.extent <= self.count() || class <= self.down {
            class
        } else {
            self.extent + class - self.down - self.up - 1
        }
    }
}

/// The lists of every class of lines.
struct Lines {
    grid: Grid,
    dof: usize,
    y: Classes,
    z: Classes,
    lines: Vec<Line>,
}

impl Lines {
    fn new(candidate: &Candidate) -> Self {
        let (y, z) = (Classes::new(candidate, 1), Classes::new(candidate, 2));
        let line = |k: usize| Line::new(candidate, y.member(k % y.count()), z.member(k / y.count()));
        let lines = (0..y.count() * z.count()).map(line).collect();
        Lines { grid: candidate.grid, dof: candidate.dof, y, z, lines }
    }

    /// Goes through the rows of points.
    fn look(&self, rows: &OwnUnits<'_>, points: Range<usize>) -> Result<Seen, NotStructured> {
        let mut seen = Seen::default();
        let nx = self.grid.extents()[0];
        let mut first = points.start;
        while first < points.end {
            let point = self.grid.point(first);
            let line = &self.lines[self.z.of(point[2]) * self.y.count() + self.y.of(point[1])];
            let end = (first + nx - point[0]).min(points.end);
            // A bit for each component whose last row had offsets of the list alone.
            let mut listed = 0u32;
            let mut number = first;
            while number < end {
                let at = [point[0] + number - first, point[1], point[2]];
                let inner = line.inner.contains(&at[0]);
                if self.dof == 1 && inner && listed == 1 {
                    let alike = rows.repeating(number..end.min(first + line.inner.end - point[0]));
                    number += alike;
                    if alike > 0 {
                        continue;
                    }
                }
                for component in 0..self.dof {
                    let known = inner && listed >> component & 1 == 1;
                    if known && repeats(rows, self.dof * number + component, self.dof) {
                        continue;
                    }
                    let all = self.look_closely(rows, number, component, at, line, &mut seen)?;
                    listed = listed & !(1 << component) | u32::from(all) << component;
                }
                number += 1;
            }
            first = end;
        }
        Ok(seen)
    }

    /// A row entry by entry, beside the list of its line; whether the list had all of them.
    fn look_closely(
        &self,
        rows: &OwnUnits<'_>,
        number: usize,
        component: usize,
        point: [usize; 3],
        line: &Line,
        seen: &mut Seen,
    ) -> Result<bool, NotStructured> {
        let (dof, nx) = (self.dof as i64, self.grid.extents()[0]);
        let (row, base) = (self.dof * number + component, dof * number as i64);
        let (mut places, mut all) = (line.places.as_slice(), true);
        for &column in rows.row(row) {
            let distance = i64::from(column) - base;
            while places.first().is_some_and(|p| p.distance + dof <= distance) {
                places = &places[1..];
            }
            // On an axis of two points, two offsets can have the same distance; one of them stays inside.
            let met = places
                .iter()
                .take_while(|p| p.distance <= distance)
                .find(|p| point[0].checked_add_signed(p.x as isize).is_some_and(|x| x < nx));
            match met {
                Some(place) => seen.insert(place.index),
                None => {
                    let column = column as usize;
                    let other = candidates::offset(&self.grid, point, row, column, column / self.dof)?;
                    all = false;
                    // One more than a stencil may have is too many; a fault that stands further on comes first all the same.
                    if seen.others.len() <= MOST_OFFSETS {
                        seen.others.insert(other);
                    }
                }
            }
        }
        Ok(all)
    }
}

impl Line {
    fn new(candidate: &Candidate, y: usize, z: usize) -> Self {
        let (grid, dof) = (&candidate.grid, candidate.dof as i64);
        let [nx, ny, _] = grid.extents().map(|m| m as i64);
        let mut line = Line { inner: 0..nx as usize, ..Line::default() };
        for (index, used) in candidate.used.iter().enumerate() {
            let o = used.offset;
            if grid.at([0, y, z], [0, o[1], o[2]]).is_none() {
                continue;
            }
            let distance = dof * (i64::from(o[0]) + nx * (i64::from(o[1]) + ny * i64::from(o[2])));
            line.places.push(Place { distance, x: o[0], index });
            line.inner.start = line.inner.start.max((-o[0]).max(0) as usize);
            line.inner.end = line.inner.end.min((nx - i64::from(o[0])).max(0) as usize);
        }
        line.places.sort_by_key(|p| p.distance);
        line
    }
}

/// Whether a row has the columns of the one `step` rows before, each `step` further.
///
/// Modulo 2³², which loses nothing: columns are below the number of rows, at most 2³², and steps at most 8.
#[inline]
fn repeats(rows: &OwnUnits<'_>, row: usize, step: usize) -> bool {
    let (columns, before) = (rows.row(row), rows.row(row - step));
    let differ = |differ: bool, (&column, &before): (&u32, &u32)| {
        differ | (column != before.wrapping_add(step as u32))
    };
    columns.len() == before.len() && !columns.iter().zip(before).fold(false, differ)
}
