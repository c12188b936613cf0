//! Structured grids inside ordinary matrices: extents, stencil and unknowns per point, from the pattern alone.
//!
//! A pattern is that of a grid of P = nx ny nz points with d unknowns each, row = d · point + component, if every entry joins points
//! whose difference is an offset of a small stencil. An offset is always the same distance between row and column, and which
//! distances there are says which extents to try:
//!
//! 1. Sizes: d = 1 to 8 that divide the rows and whose blocks, in a few sampled rows, are not mostly empty.
//! 2. Distances of 256 sampled rows; if they are more than a stencil has offsets, there is no grid.
//! 3. Extents: P itself; divisors s of P with every distance within reach of a multiple of s, for s x P/s; divisors t of P/s
//!    with those multiples within reach of multiples of t, for s x t x P/(s t).
//! 4. Offsets of rows at the ends of lines and of the sampled rows in each candidate; a far one ends it.
//! 5. Every entry of the matrix against the best candidate, in parallel, which gives the exact set of offsets.
//!
//! Choice. The same pattern is many grids: a band is also a thin grid, a grid in three dimensions also a band with long offsets.
//! The best stores least, points · offsets · d²; then it has most dimensions, then the shortest reach. A tridiagonal matrix
//! as 2 x m would need 5 offsets, so it is a line; a 5-point star needs 5 as a plane or a line, so it is a plane. A grid in
//! which two offsets are the same distance is folded and never taken: a band wound up in short lines. More unknowns per point
//! may store up to a quarter more, if they explain why places are empty: if the pairs of components that occur, points · pairs
//! summed over the offsets, are a tenth fewer. So elasticity without its zeros keeps its 2 or 3 unknowns, which could as well be
//! a short axis, and a Box-27P three points thick along x comes out as 3 unknowns.
//!
//! Refused: an offset further than 16 points or half an axis (2 on the shortest), which is how grids closed on themselves or with
//! points left out look; neighbours along an axis with more than 3 points left out between them, a second axis that the points do
//! not fill; a grid of which less than 0.7 is filled, since values with indices take 12 bytes and without 8.
//!
//! Cost: the sample, and one look at each entry where the best candidate passes, as nearly all do; at most three candidates
//! are verified. Memory: a table for each kind of line (inside, at an end along y, along z), nothing that grows with the matrix.
//! Positions are hashes, and of several faults the first by position is reported: the same result on any number of threads.

mod candidates;
mod verify;

use super::grid::Grid;
use super::mapping::Mapping;
use super::matrix::MOST_UNKNOWNS;
use super::stencil::{MOST_OFFSETS, Offset, Stencil};
use crate::error::{place_in_words, row_in_words};
use crate::matrix::{Pattern, Rows};
use candidates::Candidate;
use std::fmt;
use thiserror::Error;

/// How far an offset may reach along an axis.
const REACH: usize = 16;

/// The longest step from one neighbour along an axis to the next.
const LONGEST_STEP: usize = 4;

/// The least part of a grid's places that must be filled.
const LEAST_FULLNESS: f64 = 0.7;

/// Candidates that may be verified.
const MOST_TRIALS: usize = 3;

/// What a pattern has in common with a grid.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Structure {
    /// The points.
    pub grid: Grid,
    /// Offsets that entries have, and the centre.
    pub stencil: Stencil,
    /// Unknowns per point, 1 to 8: row = `dof` · point + component.
    pub dof: usize,
    /// Entries of the pattern / places of the stencil inside the grid, each of `dof`² entries.
    pub fullness: f64,
}

/// Why a pattern is not that of a structured grid.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum NotStructured {
    /// Rows and columns differ.
    #[error("not square")]
    NotSquare,
    /// Nothing to go by.
    #[error("no entries")]
    Empty,
    /// A row longer than stencils are.
    #[error("{} has {entries} entries, more than a stencil", row_in_words(*row))]
    LongRow {
        /// The row, from 0.
        row: usize,
        /// Its entries.
        entries: usize,
    },
    /// Too many distances between row and column.
    #[error(
        "columns do not repeat: after {rows} sampled rows more than {MOST_OFFSETS} distances from the diagonal"
    )]
    NoPeriod {
        /// Sampled rows when it was clear.
        rows: usize,
    },
    /// No extents bring the distances near.
    #[error("no grid of {points} points has its neighbours at these {distances} distances from the diagonal")]
    NoExtents {
        /// Points that were to be a grid.
        points: usize,
        /// Distances in the sample.
        distances: usize,
    },
    /// An entry joins points too far apart.
    #[error(
        "as {grid}, the entry in {} joins points {apart} apart along an axis of {extent}",
        place_in_words(*row, *column)
    )]
    Outside {
        /// The best grid.
        grid: Grid,
        /// The row, from 0.
        row: usize,
        /// The column, from 0.
        column: usize,
        /// How far along the axis.
        apart: usize,
        /// Points of that axis.
        extent: usize,
    },
    /// More offsets than a stencil may have.
    #[error("as {grid}, more than {MOST_OFFSETS} offsets")]
    TooManyOffsets {
        /// The best grid.
        grid: Grid,
    },
    /// Neighbours along an axis leave a gap.
    #[error("as {grid}, neighbours along an axis are {from} and {to} points away and none between")]
    Gap {
        /// The best grid.
        grid: Grid,
        /// Before the gap.
        from: usize,
        /// After the gap.
        to: usize,
    },
    /// Too many places are empty.
    #[error("as {grid} with {offsets} offsets, {:.0} % of the places are filled", 100.0 * fullness)]
    Sparse {
        /// The best grid.
        grid: Grid,
        /// Offsets in the sample or, if it came so far, in the matrix.
        offsets: usize,
        /// Entries / places.
        fullness: f64,
    },
}

impl NotStructured {
    /// How near to a grid the pattern was; the nearest reason, or the fullest grid, is reported.
    fn rank(&self) -> usize {
        match self {
            NotStructured::NotSquare | NotStructured::Empty => 0,
            NotStructured::LongRow { .. } => 1,
            NotStructured::NoPeriod { .. } => 2,
            NotStructured::NoExtents { .. } => 3,
            NotStructured::TooManyOffsets { .. } => 4,
            NotStructured::Gap { .. } => 5,
            NotStructured::Outside { .. } => 6,
            NotStructured::Sparse { fullness, .. } => 7 + (100.0 * fullness) as usize,
        }
    }

    /// The nearer of two reasons; the earlier of two alike.
    fn nearer(known: Option<Self>, other: Self) -> Option<Self> {
        Some(match known {
            Some(known) if known.rank() >= other.rank() => known,
            _ => other,
        })
    }
}

impl Structure {
    /// Finds the grid of a pattern, if it has one.
    ///
    /// ```
    /// use krylith::{gallery::Problem, structured::Structure};
    /// let a = "poisson3d:30x20x10".parse::<Problem>()?.generate()?;
    /// let found = Structure::detect(a.pattern())?;
    /// assert_eq!(found.to_string(), "30 x 20 x 10 grid, Star-7P, 1 unknown per point");
    /// assert_eq!((found.fullness, found.levels()), (1.0, 58));
    ///
    /// let a = "circuit:40".parse::<Problem>()?.generate()?;
    /// assert!(Structure::detect(a.pattern()).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn detect(pattern: &Pattern) -> Result<Self, NotStructured> {
        if !pattern.is_square() {
            return Err(NotStructured::NotSquare);
        }
        Self::of_rows(pattern)
    }

    /// The same of a square matrix, wherever its rows are.
    pub(crate) fn of_rows(rows: &impl Rows) -> Result<Self, NotStructured> {
        if rows.entries() == 0 {
            return Err(NotStructured::Empty);
        }
        let (mut found, mut reason) = (Vec::new(), None);
        for dof in (1..=MOST_UNKNOWNS).filter(|&dof| candidates::worth_trying(rows, dof)) {
            match candidates::find(rows, dof) {
                Ok(mut some) => found.append(&mut some),
                Err(why) => reason = NotStructured::nearer(reason, why),
            }
        }
        choose(rows, in_order(found), reason)
    }

    /// Levels of the grid: how many steps a sweep would take with the points of one level at once. Sweeps here go along lines instead.
    pub fn levels(&self) -> usize {
        Mapping::new(&self.stencil).levels(&self.grid)
    }

    fn new(entries: usize, grid: Grid, dof: usize, offsets: Vec<Offset>) -> Result<Self, NotStructured> {
        let fullness = check(entries, &grid, dof, &offsets)?;
        let stencil = Stencil::new(offsets).map_err(|_| NotStructured::TooManyOffsets { grid })?;
        Ok(Structure { grid, stencil, dof, fullness })
    }
}

impl fmt::Display for Structure {
    /// Such as `100 x 100 x 100 grid, Star-7P, 1 unknown per point`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.dof == 1 { "" } else { "s" };
        write!(f, "{} grid, {}, {} unknown{plural} per point", self.grid, self.stencil, self.dof)
    }
}

/// Fullness, if these offsets are those of a grid.
fn check(entries: usize, grid: &Grid, dof: usize, offsets: &[Offset]) -> Result<f64, NotStructured> {
    for axis in 0..3 {
        let mut away: Vec<usize> = offsets.iter().map(|o| o[axis].unsigned_abs() as usize).collect();
        away.sort_unstable();
        if let Some(w) = away.windows(2).find(|w| w[1] - w[0] > LONGEST_STEP) {
            return Err(NotStructured::Gap { grid: *grid, from: w[0], to: w[1] });
        }
    }
    let places: usize = offsets.iter().map(|&o| grid.places(o)).sum();
    let fullness = entries as f64 / (places * dof * dof) as f64;
    if fullness < LEAST_FULLNESS {
        return Err(NotStructured::Sparse { grid: *grid, offsets: offsets.len(), fullness });
    }
    Ok(fullness)
}

/// How far an offset may reach along an axis of so many points: a longer one is a grid closed on itself.
fn reach_along(extent: usize) -> usize {
    (extent / 2).clamp(2, REACH)
}

/// Candidates, the best first, as the head of the file has it.
fn in_order(mut found: Vec<Candidate>) -> Vec<Candidate> {
    found.sort_by_key(|c| (c.stored(), std::cmp::Reverse(c.grid.dims()), c.total_reach()));
    let explains = |c: &Candidate| {
        let least = &found[0];
        c.dof > least.dof && 4 * c.stored() <= 5 * least.stored() && 10 * c.occupied() <= 9 * least.occupied()
    };
    if let Some(better) = found.iter().position(explains) {
        found[..=better].rotate_right(1);
    }
    found
}

/// Verifies candidates in turn until one holds and the next would not store less.
fn choose(
    rows: &impl Rows,
    candidates: Vec<Candidate>,
    mut reason: Option<NotStructured>,
) -> Result<Structure, NotStructured> {
    let mut best: Option<(usize, Structure)> = None;
    for candidate in candidates.iter().take(MOST_TRIALS) {
        if best.as_ref().is_some_and(|(stored, _)| *stored <= candidate.stored()) {
            break;
        }
        let exact = verify::offsets(rows, candidate)
            .and_then(|offsets| Structure::new(rows.entries(), candidate.grid, candidate.dof, offsets));
        match exact {
            Ok(found) => {
                let stored = found.grid.points() * found.stencil.len() * found.dof * found.dof;
                let as_foreseen = stored == candidate.stored();
                if best.as_ref().is_none_or(|(known, _)| stored < *known) {
                    best = Some((stored, found));
                }
                if as_foreseen {
                    break;
                }
            }
            Err(why) => reason = NotStructured::nearer(reason, why),
        }
    }
    match best {
        Some((_, found)) => Ok(found),
        None => Err(reason.unwrap_or(NotStructured::Empty)),
    }
}
