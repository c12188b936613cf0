//! From compressed rows to stencils: values, and whether they are constant.
//!
//! Rows are read eight lines at a time, so that what is written stays near. An entry belongs to the offset whose distance in numbers
//! of points it has, if that offset stays in the grid from there.
#![allow(unsafe_code)]

use super::arrangement::Arrangement;
use super::grid::Grid;
use super::matrix::{StencilMatrix, Values};
use super::stencil::{Offset, Stencil};
use crate::disjoint::DisjointSlice;
use crate::error::SetupError;
use crate::matrix::{Csr, Pattern, RowBits, SeenValues, are_same, require_pattern};
use crate::simd::LANES;
use crate::space::Threads;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Points that one thread looks at before it asks whether another has found a difference.
const PIECE: usize = 4096;

impl StencilMatrix {
    /// `Err(PatternChanged)` unless the matrix has the size of the grid and the pattern of the first one whose values were taken.
    pub(crate) fn require(&self, matrix: &Csr<f64>) -> Result<(), SetupError> {
        let rows = self.arrangement.grid.points() * self.dof;
        if matrix.nrows() != rows || matrix.ncols() != rows {
            return Err(SetupError::PatternChanged);
        }
        match &self.source {
            Some(source) => require_pattern(source, matrix.pattern()),
            None => Ok(()),
        }
    }

    /// Whether the values are those of this matrix, which has the pattern that was stored.
    pub(crate) fn holds(&self, space: &Threads<f64>, matrix: &Csr<f64>) -> bool {
        self.source.is_some() && self.seen.is_some_and(|seen| seen.are_those_of(space, matrix))
    }

    /// Takes over the values of a matrix on the stencil; the next one must have the same pattern. Values that are here already
    /// are left where they are. Allocates the first time, when coefficients begin or cease to be constant, and while a factor still
    /// reads the old ones.
    pub fn set(&mut self, space: &Threads<f64>, matrix: &Csr<f64>) -> Result<(), SetupError> {
        self.require(matrix)?;
        if self.source.is_none() {
            // Whatever was here did not come from rows.
            self.values = Arc::new(Values::Constant { values: Vec::new(), present: Vec::new() });
            self.present = Vec::new();
            self.whole = RowBits::default();
        }
        if self.holds(space, matrix) {
            return Ok(());
        }
        self.seen = None;
        let complete = matrix.nnz() == self.places(self.stencil.offsets()) * self.dof * self.dof;
        if complete && self.dof == 1 && self.set_constant(space, matrix) {
            return self.took(space, matrix);
        }
        // A factor that still reads the old values keeps them.
        if self.is_constant() || Arc::get_mut(&mut self.values).is_none() {
            self.values = Arc::new(self.room()?);
        }
        if !complete && self.present.is_empty() {
            self.present = vec![0; self.arrangement.steps * self.stencil.len()];
        }
        self.scatter_rows(space, matrix)?;
        self.took(space, matrix)
    }

    fn took(&mut self, space: &Threads<f64>, matrix: &Csr<f64>) -> Result<(), SetupError> {
        self.seen = Some(SeenValues::of(space, matrix));
        self.source.get_or_insert_with(|| Arc::clone(matrix.pattern()));
        Ok(())
    }

    /// Blocks at these offsets that stay in the grid.
    pub(super) fn places(&self, offsets: &[Offset]) -> usize {
        offsets.iter().map(|&o| self.arrangement.grid.places(o)).sum()
    }

    /// One number per offset, if the entries of each are equal and finite; `false` leaves everything as it was.
    fn set_constant(&mut self, space: &Threads<f64>, matrix: &Csr<f64>) -> bool {
        let (arrangement, stencil) = (&*self.arrangement, &self.stencil);
        let grid = arrangement.grid;
        let n = grid.extents();
        // A point from which the offset stays in the grid.
        let sample = |o: &Offset| {
            let point: [usize; 3] = std::array::from_fn(|a| if o[a] < 0 { n[a] - 1 } else { 0 });
            let there = grid.at(point, *o)?;
            Some(matrix.get(grid.number(point), grid.number(there)))
        };
        for (value, o) in self.samples.iter_mut().zip(stencil.offsets()) {
            *value = sample(o).unwrap_or(0.0);
        }
        let (values, rows) = (&self.samples, Rows::new(grid, stencil, &self.distances, 1));
        if !values.iter().all(|v| v.is_finite()) {
            return false;
        }
        let repeats = self.source.as_ref().unwrap_or(matrix.pattern()).repeats();
        let same = AtomicBool::new(true);
        space.team().run(|member| {
            let own = member.part(grid.points(), PIECE);
            for first in own.clone().step_by(PIECE) {
                let piece = first..own.end.min(first + PIECE);
                if !same.load(Ordering::Relaxed) || !rows.are_all_constant(matrix, repeats, piece, values) {
                    return same.store(false, Ordering::Relaxed);
                }
            }
        });
        if !same.into_inner() {
            return false;
        }
        if let Some(Values::Constant { values: old, present }) = Arc::get_mut(&mut self.values)
            && !present.is_empty()
        {
            old.copy_from_slice(values);
            return true;
        }
        let (values, present) = (values.clone(), presence(space, arrangement, stencil));
        self.values = Arc::new(Values::Constant { values, present });
        true
    }

    fn scatter_rows(&mut self, space: &Threads<f64>, matrix: &Csr<f64>) -> Result<(), SetupError> {
        let (arrangement, stencil, dof) = (&*self.arrangement, &self.stencil, self.dof);
        let rows = Rows::new(arrangement.grid, stencil, &self.distances, dof);
        if dof == 1 && self.whole.is_empty() {
            self.whole = rows.whole(self.source.as_ref().unwrap_or(matrix.pattern()));
        }
        let whole = &self.whole;
        let values = Arc::get_mut(&mut self.values).expect("nobody else reads them");
        let parts = values.parts(dof);
        let present = DisjointSlice::new(&mut self.present);
        let mark = |step: usize, lane: usize, offset: usize| {
            let at = step * stencil.len() + offset;
            // SAFETY: every unit has one member, and a byte belongs to a step.
            unsafe { present.write(at, present.read(at) | 1 << lane) };
        };
        let masked = !present.is_empty();
        let wrong = AtomicBool::new(false);
        space.team().run(|member| {
            for unit in member.part(arrangement.units(), 1) {
                arrangement.for_points(unit, |point, step, lane| {
                    let number = arrangement.grid.number(point);
                    if whole.has(number) {
                        // SAFETY: every unit has one member, every point its own lane of a step; the row has an entry at each offset, `whole` being
                        // that of this pattern.
                        unsafe { parts.write_row(stencil, (step, lane), matrix.row(number).1) };
                        if masked {
                            (0..stencil.len()).for_each(|offset| mark(step, lane, offset));
                        }
                        return;
                    }
                    for r in 0..dof {
                        let (columns, values) = matrix.row(number * dof + r);
                        let put = |offset: usize, c: usize, values: &[f64]| {
                            // SAFETY: every unit has one member, every point its own lane of a step.
                            unsafe { parts.write(stencil, (step, lane), offset, (r, c), values) };
                            if masked {
                                mark(step, lane, offset);
                            }
                        };
                        if dof > 1 && rows.is_whole(point, number, columns) {
                            values
                                .chunks_exact(dof)
                                .enumerate()
                                .for_each(|(offset, row)| put(offset, 0, row));
                            continue;
                        }
                        let mut index = 0;
                        for (&column, value) in columns.iter().zip(values) {
                            let (target, c) = (column as usize / dof, column as usize % dof);
                            let found = rows.find(point, number, target, index);
                            let Some(offset) = found else { return wrong.store(true, Ordering::Relaxed) };
                            index = offset;
                            put(offset, c, std::slice::from_ref(value));
                        }
                    }
                });
            }
        });
        if wrong.into_inner() { Err(SetupError::PatternChanged) } else { Ok(()) }
    }
}

/// Coefficients that threads write point by point.
pub(super) struct ValueParts<'a> {
    lower: DisjointSlice<'a, f64>,
    diagonal: DisjointSlice<'a, f64>,
    upper: DisjointSlice<'a, f64>,
    dof: usize,
}

impl Values {
    pub(super) fn parts(&mut self, dof: usize) -> ValueParts<'_> {
        match self {
            Values::Full { lower, diagonal, upper } => ValueParts {
                lower: DisjointSlice::new(lower),
                diagonal: DisjointSlice::new(diagonal),
                upper: DisjointSlice::new(upper),
                dof,
            },
            Values::Constant { .. } => unreachable!("room was made"),
        }
    }
}

impl ValueParts<'_> {
    /// The entries of a row at all offsets, with one unknown per point.
    ///
    /// # Safety
    /// Step and lane are a point's that no other thread writes; there are as many values as offsets.
    #[inline]
    unsafe fn write_row(&self, s: &Stencil, (step, lane): (usize, usize), values: &[f64]) {
        let (below, above) = (s.centre(), s.len() - s.centre() - 1);
        let place = |count: usize, index: usize| (step * count + index) * LANES + lane;
        // SAFETY: by the caller's promise.
        unsafe {
            for (k, &value) in values[..below].iter().enumerate() {
                self.lower.write(place(below, k), value);
            }
            self.diagonal.write(place(1, 0), values[below]);
            for (k, &value) in values[below + 1..s.len()].iter().enumerate() {
                self.upper.write(place(above, k), value);
            }
        }
    }

    /// Entries (r, c), (r, c + 1) … of the block at an offset.
    ///
    /// # Safety
    /// Step and lane are a point's that no other thread writes; the block has these entries.
    #[inline]
    pub(super) unsafe fn write(
        &self,
        s: &Stencil,
        (step, lane): (usize, usize),
        offset: usize,
        (r, c): (usize, usize),
        values: &[f64],
    ) {
        let (dof, centre) = (self.dof, s.centre());
        let (side, index, count) = match offset {
            o if o < centre => (&self.lower, o, centre),
            o if o == centre => (&self.diagonal, 0, 1),
            o => (&self.upper, o - centre - 1, s.len() - centre - 1),
        };
        let first = (((step * count + index) * dof + c) * dof + r) * LANES + lane;
        for (k, &value) in values.iter().enumerate() {
            // SAFETY: by the caller's promise.
            unsafe { side.write(first + k * dof * LANES, value) };
        }
    }
}

/// What each offset adds to the number of a point.
pub(super) fn distances(grid: &Grid, stencil: &Stencil) -> Vec<isize> {
    let [nx, ny, _] = grid.extents().map(|m| m as isize);
    stencil.offsets().iter().map(|o| o[0] as isize + nx * (o[1] as isize + ny * o[2] as isize)).collect()
}

/// Where the entries of compressed rows belong.
struct Rows<'a> {
    grid: Grid,
    stencil: &'a Stencil,
    distances: &'a [isize],
    dof: usize,
    reach: [usize; 3],
}

impl<'a> Rows<'a> {
    fn new(grid: Grid, stencil: &'a Stencil, distances: &'a [isize], dof: usize) -> Self {
        Rows { grid, stencil, distances, dof, reach: stencil.reach() }
    }

    /// Whether this is the row of a point inside, with every entry of the stencil in the order of columns: most rows are.
    #[inline]
    fn is_whole(&self, point: [usize; 3], number: usize, columns: &[u32]) -> bool {
        let (n, reach, dof) = (self.grid.extents(), self.reach, self.dof);
        let inside = (0..3).all(|a| point[a] >= reach[a] && point[a] + reach[a] < n[a]);
        inside
            && columns.len() == self.distances.len() * dof
            && columns.chunks_exact(dof).zip(self.distances).all(|(columns, &distance)| {
                let first = number.wrapping_add_signed(distance) * dof;
                columns.iter().enumerate().all(|(c, &column)| column as usize == first + c)
            })
    }

    /// The offset from a point to the point of number `target`, looked for from `first` on and then from the start.
    #[inline]
    fn find(&self, point: [usize; 3], number: usize, target: usize, first: usize) -> Option<usize> {
        let fits = |o: &usize| {
            number.checked_add_signed(self.distances[*o]) == Some(target)
                && self.grid.at(point, self.stencil.offsets()[*o]).is_some()
        };
        (first..self.distances.len()).chain(0..first).find(fits)
    }

    /// The points whose offsets, as far as they are along x, all stay on the line.
    fn inner(&self) -> Range<usize> {
        let (nx, reach) = (self.grid.extents()[0], self.reach[0]);
        reach..nx.saturating_sub(reach).max(reach)
    }

    /// Visits points one by one, or several that have the columns of the point before them, each one further, on the inner part of a
    /// line: their entries are at its offsets. Ends with the first `false`.
    fn walk(
        &self,
        repeats: &RowBits,
        points: Range<usize>,
        mut visit: impl FnMut(Range<usize>, bool) -> bool,
    ) -> bool {
        let (nx, inner) = (self.grid.extents()[0], self.inner());
        let mut number = points.start;
        while number < points.end {
            let x = number % nx;
            let run = match number > points.start && inner.contains(&x) && x > inner.start {
                true => repeats.run(number..points.end.min(number - x + inner.end)),
                false => 0,
            };
            if !visit(number..number + run.max(1), run > 0) {
                return false;
            }
            number += run.max(1);
        }
        true
    }

    /// Whether each entry of these rows is the number of its offset.
    fn are_all_constant(
        &self,
        matrix: &Csr<f64>,
        repeats: &RowBits,
        points: Range<usize>,
        expected: &[f64],
    ) -> bool {
        let (row_ptr, values) = (matrix.pattern().row_ptr(), matrix.values());
        self.walk(repeats, points, |run, repeat| {
            if !repeat {
                let (columns, row) = matrix.row(run.start);
                return self.are_constant(run.start, columns, row, expected);
            }
            let own = row_ptr[run.start]..row_ptr[run.end];
            let length = row_ptr[run.start] - row_ptr[run.start - 1];
            are_same(&values[own.clone()], &values[own.start - length..own.end - length])
        })
    }

    /// The rows that have every entry of the stencil, with one unknown per point.
    fn whole(&self, pattern: &Pattern) -> RowBits {
        let repeats = pattern.repeats();
        RowBits::of_pieces(self.grid.points(), |piece, mark| {
            let mut whole = false;
            self.walk(repeats, piece, |run, repeat| {
                if !repeat {
                    whole = self.is_whole(self.grid.point(run.start), run.start, pattern.row(run.start));
                }
                if whole {
                    run.for_each(&mut *mark);
                }
                true
            });
        })
    }

    /// Whether each entry of a row is the number of its offset.
    fn are_constant(&self, number: usize, columns: &[u32], row: &[f64], values: &[f64]) -> bool {
        let point = self.grid.point(number);
        if self.is_whole(point, number, columns) {
            return row.iter().zip(values).all(|(v, expected)| v.to_bits() == expected.to_bits());
        }
        let mut index = 0;
        columns.iter().zip(row).all(|(&column, v)| {
            self.find(point, number, column as usize, index).is_some_and(|offset| {
                index = offset;
                v.to_bits() == values[offset].to_bits()
            })
        })
    }
}

/// Which of the eight points of each step have which neighbours.
fn presence(space: &Threads<f64>, arrangement: &Arrangement, stencil: &Stencil) -> Vec<u8> {
    let width = stencil.len();
    let mut present = vec![0u8; arrangement.steps * width];
    let parts = DisjointSlice::new(&mut present);
    space.team().run(|member| {
        for unit in member.part(arrangement.units(), 1) {
            for (lines, z) in arrangement.lines_of(unit) {
                for (k, &offset) in stencil.offsets().iter().enumerate() {
                    arrangement.steps_with(offset, lines.clone(), z, |steps, lanes| {
                        for step in steps {
                            let at = step * width + k;
                            // SAFETY: the steps of a unit have one member.
                            unsafe { parts.write(at, parts.read(at) | lanes) };
                        }
                    });
                }
            }
        }
    });
    present
}
