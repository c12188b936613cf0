//! Matrices of structured grids, without index arrays.
//!
//! The coefficients of a step stand together, offset by offset in the order of columns, each block column by column, each entry for
//! eight points: numbers [step][offset][column][row][lane], lower offsets, diagonal and upper offsets in arrays of their own. A
//! product reads each array once from one end to the other.
//!
//! A matrix of constant coefficients with one unknown per point needs none of them: one number per offset, and a byte for each offset
//! of a step that says which of the eight points have that neighbour.
//!
//! Bytes of a product: 8 per entry and 16 per row, and the share of padding (see `arrangement`); with constant coefficients 1/8 per entry.
#![allow(unsafe_code)]

use super::arrangement::{Arrangement, ArrangementError, NeighbourShifts};
use super::convert::distances;
use super::grid::Grid;
use super::kernels::{self};
use super::stencil::{Offset, Stencil};
use crate::disjoint::DisjointSlice;
use crate::error::{BackendError, MatrixError, SetupError};
use crate::matrix::{Csr, Pattern, RowBits, SeenValues};
use crate::memory::large_pages;
use crate::operator::LinearOperator;
use crate::placement::{self, Order, storage};
use crate::simd::LANES;
use crate::space::{Threads, require_same};
use std::ops::Range;
use std::sync::Arc;

/// The most unknowns per point.
pub const MOST_UNKNOWNS: usize = 8;

/// A matrix of a grid: a dense block for each offset of the stencil at each point.
///
/// ```
/// use krylith::operator::LinearOperator;
/// use krylith::space::Threads;
/// use krylith::structured::{Grid, Stencil, StencilMatrix};
///
/// // Poisson's equation on a square.
/// let space = Threads::new(2);
/// let (grid, star) = (Grid::new(&[30, 20])?, Stencil::star(2, 1)?);
/// let a = StencilMatrix::from_fn(&space, grid, &star, 1, |_point, offset, block| {
///     block[0] = if offset == [0, 0, 0] { 4.0 } else { -1.0 };
/// })?;
/// // Vectors have an order of their own.
/// let (mut x, mut y) = (a.vector(), a.vector());
/// a.gather(&space, &vec![1.0; 600], &mut x)?;
/// a.apply(&space, &x, &mut y, &mut ())?;
/// let mut sums = vec![0.0; 600];
/// a.scatter(&space, &y, &mut sums)?;
/// assert_eq!(sums[..3], [2.0, 1.0, 1.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct StencilMatrix {
    pub(super) arrangement: Arc<Arrangement>,
    pub(super) stencil: Stencil,
    pub(super) dof: usize,
    /// Shared with a factor whose triangles are those of A.
    pub(super) values: Arc<Values>,
    pub(super) below: NeighbourShifts,
    pub(super) above: NeighbourShifts,
    /// Which points of a step have which offset, a byte each; empty if all have that could.
    pub(super) present: Vec<u8>,
    /// What each offset adds to the number of a point.
    pub(super) distances: Vec<isize>,
    /// One entry of each offset, while looking whether all are equal.
    pub(super) samples: Vec<f64>,
    pub(super) seen: Option<SeenValues>,
    /// Of the rows that values were taken from.
    pub(super) source: Option<Arc<Pattern>>,
    /// Which of these rows have every entry of the stencil, with one unknown per point; empty until values are taken one by one.
    pub(super) whole: RowBits,
}

/// Coefficients.
#[derive(Debug)]
pub(super) enum Values {
    Full { lower: Vec<f64>, diagonal: Vec<f64>, upper: Vec<f64> },
    Constant { values: Vec<f64>, present: Vec<u8> },
}

/// Calls an expression with `Sides` of either kind.
macro_rules! with_sides {
    ($matrix:expr, $sides:ident => $body:expr) => {{
        let a: &StencilMatrix = $matrix;
        let (below, above) = (&a.below, &a.above);
        match &*a.values {
            $crate::structured::matrix::Values::Full { lower, diagonal, upper } => {
                let squared = a.dof * a.dof;
                let of = |values: &Vec<f64>, count: usize| $crate::structured::kernels::Coefficients {
                    values: values.as_ptr(),
                    width: count * squared,
                };
                let $sides = $crate::structured::kernels::Sides {
                    lower: of(lower, a.stencil.lower().len()),
                    diagonal: of(diagonal, 1),
                    upper: of(upper, a.stencil.upper().len()),
                    below,
                    above,
                };
                $body
            }
            $crate::structured::matrix::Values::Constant { values, present } => {
                let (width, centre) = (a.stencil.len(), a.stencil.centre());
                let from = |first: usize| $crate::structured::kernels::Constant {
                    values: values[first..].as_ptr(),
                    present: present[first..].as_ptr(),
                    width,
                };
                let $sides = $crate::structured::kernels::Sides {
                    lower: from(0),
                    diagonal: from(centre),
                    upper: if centre + 1 < width { from(centre + 1) } else { from(centre) },
                    below,
                    above,
                };
                $body
            }
        }
    }};
}

pub(super) use with_sides;

impl StencilMatrix {
    /// The matrix whose block at a point and an offset a function writes, row by row into `dof²` zeros; it is called for the offsets
    /// that stay in the grid.
    pub fn from_fn(
        space: &Threads<f64>,
        grid: Grid,
        stencil: &Stencil,
        dof: usize,
        block: impl Fn([usize; 3], Offset, &mut [f64]) + Sync,
    ) -> Result<Self, SetupError> {
        let arrangement = Arc::new(Arrangement::new(grid, &[stencil], dof)?);
        let mut a = Self::zeros(&arrangement, stencil, dof)?;
        let mut values = a.room()?;
        let parts = values.parts(dof);
        let units = arrangement.units();
        space.team().run(|member| {
            let mut room = [0.0; MOST_UNKNOWNS * MOST_UNKNOWNS];
            let room = &mut room[..dof * dof];
            for unit in member.part(units, 1) {
                arrangement.for_points(unit, |point, step, lane| {
                    for (index, &offset) in stencil.offsets().iter().enumerate() {
                        if grid.at(point, offset).is_none() {
                            continue;
                        }
                        room.fill(0.0);
                        block(point, offset, room);
                        for (r, row) in room.chunks_exact(dof).enumerate() {
                            // SAFETY: every unit has one member, every point its own lane of a step.
                            unsafe { parts.write(stencil, (step, lane), index, (r, 0), row) };
                        }
                    }
                });
            }
        });
        a.values = Arc::new(values);
        Ok(a)
    }

    /// The matrix of one array per offset, in the stencil's order: `dof²` numbers per point, blocks row by row. What leaves the grid
    /// is not read.
    pub fn from_arrays(
        space: &Threads<f64>,
        grid: Grid,
        stencil: &Stencil,
        dof: usize,
        arrays: &[&[f64]],
    ) -> Result<Self, SetupError> {
        let length = |what, found, expected| match found == expected {
            true => Ok(()),
            false => Err(MatrixError::Length { what, found, expected }),
        };
        require_unknowns(dof)?;
        length("arrays of a stencil", arrays.len(), stencil.len())?;
        for array in arrays {
            length("the array of an offset", array.len(), grid.points().saturating_mul(dof * dof))?;
        }
        Self::from_fn(space, grid, stencil, dof, |point, offset, block| {
            let index = stencil.find(offset).expect("an offset of the stencil");
            let first = grid.number(point) * dof * dof;
            block.copy_from_slice(&arrays[index][first..first + dof * dof]);
        })
    }

    /// The matrix of compressed rows, the unknowns of a point one after the other. Every entry must be on the stencil:
    /// [`Structure::detect`](super::Structure::detect) finds one where there is.
    pub fn from_csr(
        space: &Threads<f64>,
        grid: Grid,
        stencil: &Stencil,
        dof: usize,
        matrix: &Csr<f64>,
    ) -> Result<Self, SetupError> {
        let arrangement = Arc::new(Arrangement::new(grid, &[stencil], dof)?);
        let mut a = Self::zeros(&arrangement, stencil, dof)?;
        a.set(space, matrix)?;
        Ok(a)
    }

    /// A arrangement in which matrices and factors on all of these stencils have their place.
    pub(crate) fn arrangement_for(
        grid: Grid,
        stencils: &[&Stencil],
        dof: usize,
    ) -> Result<Arc<Arrangement>, SetupError> {
        Ok(Arc::new(Arrangement::new(grid, stencils, dof)?))
    }

    /// Places that are computed for each point.
    pub(crate) fn padding(&self) -> f64 {
        self.arrangement.padding()
    }

    /// Whether every entry has one across the diagonal.
    pub(super) fn has_symmetric_pattern(&self) -> bool {
        if self.present.is_empty() || !self.stencil.is_symmetric() {
            return self.stencil.is_symmetric();
        }
        let (grid, width) = (self.arrangement.grid, self.stencil.len());
        let has = |point: [usize; 3], offset: usize| {
            let (step, lane) = self.arrangement.place(point);
            self.present[step * width + offset] >> lane & 1 == 1
        };
        crate::parallel::all(grid.points(), |number| {
            let point = grid.point(number);
            self.stencil.lower().iter().enumerate().all(|(k, &offset)| match grid.at(point, offset) {
                // Offsets are sorted: the opposite one stands as far from the end.
                Some(other) => has(point, k) == has(other, width - 1 - k),
                None => true,
            })
        })
    }

    /// Lower and upper places of the stencil in the grid that the matrix does not have.
    pub(super) fn missing(&self) -> [usize; 2] {
        if self.present.is_empty() {
            return [0; 2];
        }
        let centre = self.stencil.centre();
        let mut there = [0; 2];
        for step in self.present.chunks(self.stencil.len()) {
            let count = |side: &[u8]| side.iter().map(|lanes| lanes.count_ones() as usize).sum::<usize>();
            there[0] += count(&step[..centre]);
            there[1] += count(&step[centre + 1..]);
        }
        [self.places(self.stencil.lower()) - there[0], self.places(self.stencil.upper()) - there[1]]
    }

    /// No coefficients yet.
    pub(crate) fn zeros(
        arrangement: &Arc<Arrangement>,
        stencil: &Stencil,
        dof: usize,
    ) -> Result<Self, SetupError> {
        require_unknowns(dof)?;
        Ok(StencilMatrix {
            arrangement: Arc::clone(arrangement),
            stencil: stencil.clone(),
            dof,
            values: Arc::new(Values::Constant { values: Vec::new(), present: Vec::new() }),
            below: NeighbourShifts::new(arrangement, stencil.lower()),
            above: NeighbourShifts::new(arrangement, stencil.upper()),
            present: Vec::new(),
            distances: distances(&arrangement.grid, stencil),
            samples: vec![0.0; stencil.len()],
            seen: None,
            source: None,
            whole: RowBits::default(),
        })
    }

    /// Room for a number per entry.
    pub(super) fn room(&self) -> Result<Values, MatrixError> {
        let squared = self.dof * self.dof;
        let zeros =
            |count: usize| large_pages::zeros_or_error(self.arrangement.steps * count * squared * LANES);
        Ok(Values::Full {
            lower: zeros(self.stencil.lower().len())?,
            diagonal: zeros(1)?,
            upper: zeros(self.stencil.upper().len())?,
        })
    }

    /// The grid.
    pub fn grid(&self) -> Grid {
        self.arrangement.grid
    }

    /// The stencil.
    pub fn stencil(&self) -> &Stencil {
        &self.stencil
    }

    /// Unknowns per point.
    pub fn unknowns(&self) -> usize {
        self.dof
    }

    /// An error unless there are coefficients: setting them may have failed.
    pub(super) fn require_values(&self) -> Result<(), BackendError> {
        match &*self.values {
            Values::Constant { values, .. } if values.len() != self.stencil.len() => {
                Err(BackendError::Failed { what: "the matrix has no coefficients".into() })
            }
            _ => Ok(()),
        }
    }

    /// Whether one number per offset is stored, not one per entry.
    pub fn is_constant(&self) -> bool {
        matches!(*self.values, Values::Constant { .. })
    }

    /// Numbers of a vector, padding included.
    pub fn positions(&self) -> usize {
        self.arrangement.positions(self.dof)
    }

    /// A vector of zeros.
    ///
    /// Places that belong to no point hold zeros and must: operators rely on them and leave them so, as do sums of vectors.
    pub fn vector(&self) -> Vec<f64> {
        large_pages::zeros(self.positions())
    }

    /// Bytes of the coefficients and the arrangement.
    pub fn bytes(&self) -> usize {
        let values = match &*self.values {
            Values::Full { lower, diagonal, upper } => 8 * (lower.len() + diagonal.len() + upper.len()),
            Values::Constant { values, present } => 8 * values.len() + present.len(),
        };
        values + self.present.len() + self.arrangement.real.len()
    }

    /// Bytes with a number for every entry.
    pub(crate) fn predicted_bytes(&self) -> usize {
        let entries = self.stencil.len() * self.dof * self.dof;
        self.arrangement.steps * (8 * LANES * entries + 1)
    }

    /// Brings a vector, one number per unknown in the order of rows, into the order of the arrangement.
    pub fn gather(&self, space: &Threads<f64>, x: &[f64], laid_out: &mut [f64]) -> Result<(), BackendError> {
        placement::gather(space, &self.order(), x, laid_out)
    }

    /// Brings a vector back into the order of rows.
    pub fn scatter(&self, space: &Threads<f64>, laid_out: &[f64], x: &mut [f64]) -> Result<(), BackendError> {
        placement::scatter(space, &self.order(), laid_out, x)
    }

    /// Where unknowns stand.
    pub(crate) fn order(&self) -> GridOrder {
        GridOrder { arrangement: Arc::clone(&self.arrangement), dof: self.dof }
    }
}

/// The places of the unknowns of a grid.
#[derive(Debug, Clone)]
pub(crate) struct GridOrder {
    arrangement: Arc<Arrangement>,
    dof: usize,
}

impl GridOrder {
    /// Calls a function with the rows of a unit and their places, eight lines at a time: both numbers grow evenly along a line and from
    /// line to line.
    #[inline(always)]
    fn rows_of(&self, unit: usize, dof: usize, mut visit: impl FnMut(usize, usize)) {
        let Arrangement { grid, lag, .. } = *self.arrangement;
        let nx = grid.extents()[0];
        for (lines, z) in self.arrangement.lines_of(unit) {
            let first = [0, lines.start, z];
            let (number, step) = (grid.number(first), self.arrangement.place(first).0);
            let mut point = |x: usize, lane: usize| {
                let row = (number + lane * nx + x) * dof;
                let place = (step + lane * lag + x) * dof * LANES + lane;
                (0..dof).for_each(|c| visit(row + c, place + c * LANES));
            };
            // The usual number of lines as a constant, so that the loop over them is unrolled.
            match lines.len() {
                LANES => (0..nx).for_each(|x| (0..LANES).for_each(|lane| point(x, lane))),
                few => (0..nx).for_each(|x| (0..few).for_each(|lane| point(x, lane))),
            }
        }
    }
}

// SAFETY: a unit has its own planes or groups of lines, and the gap after it; a point has one step and lane.
unsafe impl Order for GridOrder {
    fn rows(&self) -> usize {
        self.arrangement.grid.points() * self.dof
    }

    fn places(&self) -> usize {
        self.arrangement.positions(self.dof)
    }

    fn units(&self) -> usize {
        self.arrangement.units()
    }

    /// The steps of a unit and the gap after it; the first one has what is before it, too.
    fn span(&self, unit: usize) -> Range<usize> {
        let (from, width) = (if unit == 0 { 0 } else { self.arrangement.unit_start(unit) }, self.dof * LANES);
        from * width..self.arrangement.gap_after(unit).end * width
    }

    fn for_each_row(&self, unit: usize, visit: impl FnMut(usize, usize)) {
        match self.dof {
            1 => self.rows_of(unit, 1, visit),
            dof => self.rows_of(unit, dof, visit),
        }
    }

    fn row_at(&self, place: usize) -> Option<usize> {
        let (lane, rest) = (place % LANES, place / LANES);
        let point = self.arrangement.point(rest / self.dof, lane)?;
        Some(self.arrangement.grid.number(point) * self.dof + rest % self.dof)
    }
}

/// Zeros in these steps.
///
/// # Safety
/// Nobody else uses them meanwhile.
unsafe fn clear(x: &DisjointSlice<'_, f64>, steps: Range<usize>, dof: usize) {
    let width = dof * LANES;
    // SAFETY: by the caller's promise.
    unsafe { x.get(steps.start * width..steps.end * width) }.fill(0.0);
}

fn require_unknowns(dof: usize) -> Result<(), MatrixError> {
    if (1..=MOST_UNKNOWNS).contains(&dof) { Ok(()) } else { Err(MatrixError::BlockSize { size: dof }) }
}

impl LinearOperator<Threads<f64>> for StencilMatrix {
    type Scratch = ();

    fn domain(&self) -> usize {
        self.positions()
    }

    fn range(&self) -> usize {
        self.positions()
    }

    fn scratch(&self, _: &Threads<f64>) -> Result<(), BackendError> {
        Ok(())
    }

    fn apply(
        &self,
        space: &Threads<f64>,
        x: &Vec<f64>,
        y: &mut Vec<f64>,
        _: &mut (),
    ) -> Result<(), BackendError> {
        self.check(x, y)?;
        let y = DisjointSlice::new(y);
        // SAFETY: the lengths were checked; a unit has one member.
        space
            .team()
            .run(|member| unsafe { self.multiply(member.part(self.arrangement.units(), 1), x, &y, |_| ()) });
        Ok(())
    }

    /// Products are summed while what they are of is in cache.
    fn apply_dot(
        &self,
        space: &Threads<f64>,
        x: &Vec<f64>,
        y: &mut Vec<f64>,
        _: &mut (),
    ) -> Result<f64, BackendError> {
        self.check(x, y)?;
        let y = DisjointSlice::new(y);
        // SAFETY: the lengths were checked; a unit has one member, which says of each piece that it is written, and reads it again.
        Ok(unsafe {
            space.sum_written(
                |member, written| self.multiply(member.part(self.arrangement.units(), 1), x, &y, written),
                |range, sum| sum.add_products(&x[range.clone()], y.get(range)),
            )
        })
    }
}

impl StencilMatrix {
    fn check(&self, x: &[f64], y: &[f64]) -> Result<(), BackendError> {
        self.require_values()?;
        require_same("x and the columns of A", &x.len(), &self.positions())?;
        require_same("y and the rows of A", &y.len(), &self.positions())
    }

    /// y = A x in these units and the gaps beside them; says of each piece of y when it is written.
    ///
    /// # Safety
    /// There are coefficients, x and y are as long as [`positions`](Self::positions) says, and nobody else uses these units of y meanwhile.
    unsafe fn multiply(
        &self,
        units: Range<usize>,
        x: &[f64],
        y: &DisjointSlice<'_, f64>,
        mut written: impl FnMut(Range<usize>),
    ) {
        let (arrangement, dof) = (&*self.arrangement, self.dof);
        let width = dof * LANES;
        let places = |steps: Range<usize>| steps.start * width..steps.end * width;
        with_sides!(self, sides => for unit in units {
            // SAFETY: by the caller's promise.
            unsafe {
                if unit == 0 {
                    clear(y, 0..arrangement.first, dof);
                    written(places(0..arrangement.first));
                }
                for piece in arrangement.pieces_of(unit) {
                    kernels::multiply(dof, &sides, &piece, x.as_ptr(), y.as_mut_ptr());
                    written(places(piece.steps));
                }
                clear(y, arrangement.gap_after(unit), dof);
                written(places(arrangement.gap_after(unit)));
            }
        });
    }
}

storage!(StencilMatrix);

impl From<ArrangementError> for SetupError {
    fn from(error: ArrangementError) -> Self {
        BackendError::Failed { what: error.to_string() }.into()
    }
}
