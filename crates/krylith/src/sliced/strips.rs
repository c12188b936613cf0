//! The entries of reordered rows as strips.
//!
//! A strip belongs to a slice of eight rows and holds, for each lane l in its mask, the entry of row 8 s + l in column
//! start + l, all in positions of the reordered matrix. Strips of a slice are ordered by `start`; those below the diagonal and
//! those above are kept apart, and the diagonal is a vector of its own. Values of lanes that are not in the mask are zero.

#![allow(unsafe_code)]

use super::LANES;
use super::eliminate;
use super::order::{EMPTY, LevelOrder};
use crate::disjoint::DisjointSlice;
use crate::error::{BackendError, SetupError};
use crate::matrix::{Pattern, require_diagonal};
use crate::memory::large_pages;
use crate::parallel;
use crate::placement;
use crate::space::Threads;
use std::ops::Range;
use std::sync::Arc;
use thiserror::Error;

/// Positions may exceed rows by this factor: levels of about thirty rows on average.
const MOST_POSITIONS: f64 = 1.125;

/// Places of strips may exceed entries by this factor. At two, strips are still fewer bytes than compressed rows for one sweep
/// in natural order, and have no chains.
const MOST_PLACES: f64 = 2.0;

/// The same for A in the order of its factor: the sweeps gain more than the product loses.
const MOST_PLACES_OF_A: f64 = 3.0;

/// Rows with more entries than this are not looked at: finding their strips would take time quadratic in it.
const LONGEST_ROW: usize = 512;

/// Slices that one task makes strips of.
const SLICES_A_TASK: usize = 1024;

/// Positions whose places are counted from the same base.
pub(super) const POSITIONS_A_BASE: usize = SLICES_A_TASK * LANES;

/// Strips of all slices on one side of the diagonal.
#[derive(Debug, Default)]
pub(crate) struct Strips {
    /// The first strip of each slice, and the end.
    pub(super) first: Vec<u32>,
    /// The column of lane 0, which need not exist if the lane is not in the mask: modulo 2³².
    pub(super) start: Vec<u32>,
    pub(super) mask: Vec<u8>,
}

impl Strips {
    pub(super) fn of(&self, slice: usize) -> Range<usize> {
        self.first[slice] as usize..self.first[slice + 1] as usize
    }

    /// The slices that the strips of a slice point to, some of them twice.
    pub(super) fn needs(&self, slice: usize) -> impl Iterator<Item = u32> {
        self.of(slice).flat_map(|k| {
            let (start, mask) = (self.start[k] as i32, self.mask[k]);
            let first = start + mask.trailing_zeros() as i32;
            let last = start + 7 - mask.leading_zeros() as i32;
            [first / LANES as i32, last / LANES as i32].map(|s| s as u32)
        })
    }

    /// Entries: lanes in masks.
    pub(super) fn len_of_entries(&self) -> usize {
        let lanes = |m: &u8| m.count_ones() as usize;
        let count = |strips: Range<usize>| self.mask[strips].iter().map(lanes).sum::<usize>();
        parallel::fold(self.mask.len(), count, |a, b| a + b).unwrap_or(0)
    }

    pub(crate) fn len(&self) -> usize {
        self.start.len()
    }

    fn bytes(&self) -> usize {
        size_of_val(self.first.as_slice())
            + size_of_val(self.start.as_slice())
            + size_of_val(self.mask.as_slice())
    }
}

/// Why slices would not pay.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum NotSliced {
    /// Not square, or without a full diagonal.
    #[error(transparent)]
    Unfit(SetupError),
    /// Fewer rows than are worth it.
    #[error("{0} rows are few")]
    Few(usize),
    /// Positions or places of entries do not fit 32 bits.
    #[error("too large for 32-bit places")]
    TooLarge,
    /// A row with very many entries.
    #[error("a row has more than {LONGEST_ROW} entries")]
    LongRow,
    /// Wavefronts with few rows.
    #[error("wavefronts are too small to fill slices")]
    SmallWavefronts,
    /// Neighbouring rows of a wavefront have their entries in unrelated places.
    #[error("neighbouring rows differ: strips would have too many empty places")]
    Scattered,
}

/// A pattern in slices, and how it came from compressed rows.
#[derive(Debug)]
pub struct SlicedPattern {
    pub(super) source: Arc<Pattern>,
    pub(crate) order: Arc<LevelOrder>,
    pub(super) lower: Strips,
    pub(super) upper: Strips,
    /// For every entry of the source its place among the values of its side, counted from `bases` of its position; unused for
    /// the diagonal. Empty for a factor's own pattern.
    pub(super) places: Vec<u32>,
    /// The first place, below and above the diagonal, for every [`POSITIONS_A_BASE`] positions.
    pub(super) bases: Vec<[usize; 2]>,
    symmetric: bool,
    keeps_sides: bool,
}

impl SlicedPattern {
    /// Slices of a square pattern with a full diagonal; if they would not pay, the reason. The answer depends on the pattern alone.
    pub fn find(source: &Arc<Pattern>) -> Result<Self, NotSliced> {
        Self::find_with(source, MOST_POSITIONS, MOST_PLACES)
    }

    /// The same for a factor alone: no matrix of this very pattern is set.
    pub(crate) fn find_for_factor(source: &Arc<Pattern>) -> Result<Self, NotSliced> {
        Self::find_order(source, MOST_POSITIONS)
            .and_then(|order| Self::cut_along(source, order, MOST_PLACES, false))
            .map(Self::with_symmetry)
    }

    /// The same with other bounds.
    pub(super) fn find_with(
        source: &Arc<Pattern>,
        most_positions: f64,
        most_places: f64,
    ) -> Result<Self, NotSliced> {
        Self::find_order(source, most_positions)
            .and_then(|order| Self::cut_along(source, order, most_places, true))
            .map(Self::with_symmetry)
    }

    /// Entries off the diagonal over places of strips.
    pub(crate) fn fullness(&self) -> f64 {
        let places = (self.lower.len() + self.upper.len()) * LANES;
        if places > 0 { (self.source.nnz() - self.source.nrows()) as f64 / places as f64 } else { 1.0 }
    }

    fn with_symmetry(mut self) -> Self {
        self.symmetric = self.finds_symmetry();
        self
    }

    fn find_order(source: &Pattern, most_positions: f64) -> Result<Arc<LevelOrder>, NotSliced> {
        require_diagonal(source).map_err(NotSliced::Unfit)?;
        let n = source.nrows();
        if n < 4 * LANES {
            return Err(NotSliced::Few(n));
        }
        if n as f64 * most_positions >= (i32::MAX - 16) as f64
            || source.nnz() as f64 * MOST_PLACES >= u32::MAX as f64
        {
            return Err(NotSliced::TooLarge);
        }
        if parallel::any(n, |i| source.row_range(i).len() > LONGEST_ROW) {
            return Err(NotSliced::LongRow);
        }
        match LevelOrder::new(source, (n as f64 * most_positions) as usize) {
            Some(order) => Ok(Arc::new(order)),
            None => Err(NotSliced::SmallWavefronts),
        }
    }

    /// Any pattern of the same size with a full diagonal in the order of this one: that of A where this one is its factor's, or a
    /// factor's of another matrix. Entries may change the side of the diagonal, so a factor cannot be made on it unless
    /// [`keeps_sides`](Self::keeps_sides). Whether it is symmetric is not looked for.
    pub(crate) fn in_same_order(&self, source: &Arc<Pattern>) -> Result<Self, NotSliced> {
        self.in_same_order_with(source, MOST_PLACES_OF_A)
    }

    pub(super) fn in_same_order_with(
        &self,
        source: &Arc<Pattern>,
        most_places: f64,
    ) -> Result<Self, NotSliced> {
        require_diagonal(source).map_err(NotSliced::Unfit)?;
        debug_assert_eq!(source.nrows(), self.rows());
        Self::cut_along(source, Arc::clone(&self.order), most_places, true)
    }

    /// Every entry is on the side of the diagonal that it has in the source.
    pub(crate) fn keeps_sides(&self) -> bool {
        self.keeps_sides
    }

    fn cut_along(
        source: &Arc<Pattern>,
        order: Arc<LevelOrder>,
        most_places: f64,
        with_places: bool,
    ) -> Result<Self, NotSliced> {
        let entries = source.nnz() - source.nrows();
        let mut places: Vec<u32> = large_pages::zeros(if with_places { source.nnz() } else { 0 });
        let tasks = cut(source, &order, &mut places, 2.0 * most_places).ok_or(NotSliced::Scattered)?;
        let strips: usize = tasks.iter().map(|t| t.lower.len() + t.upper.len()).sum();
        let fill = (strips * LANES) as f64 / entries.max(1) as f64;
        if fill > most_places {
            return Err(NotSliced::Scattered);
        }
        let keeps_sides = tasks.iter().all(|t| t.keeps_sides);
        let ([lower, upper], bases) = join(tasks);
        let source = Arc::clone(source);
        Ok(SlicedPattern { source, order, lower, upper, places, bases, symmetric: false, keeps_sides })
    }

    /// Length of reordered vectors: rows, and the empty positions between levels.
    pub fn positions(&self) -> usize {
        self.order.positions()
    }

    fn finds_symmetry(&self) -> bool {
        let slices = self.order.slices();
        self.lower.len_of_entries() == self.upper.len_of_entries()
            && parallel::try_map(slices.div_ceil(SLICES_A_TASK), |task| {
                let own = task * SLICES_A_TASK..((task + 1) * SLICES_A_TASK).min(slices);
                eliminate::is_mirrored(self, own).then_some(()).ok_or(())
            })
            .is_ok()
    }

    /// Every entry has a partner across the diagonal.
    pub fn is_symmetric(&self) -> bool {
        self.symmetric
    }

    pub(crate) fn rows(&self) -> usize {
        self.source.nrows()
    }

    /// Bytes held, the source not counted.
    pub fn bytes(&self) -> usize {
        self.order.bytes()
            + self.lower.bytes()
            + self.upper.bytes()
            + size_of_val(self.places.as_slice())
            + size_of_val(self.bases.as_slice())
    }

    /// Bytes of one value per strip, which a matrix keeps besides its values.
    pub(crate) fn bytes_of_uniform(&self) -> usize {
        8 * (self.lower.len() + self.upper.len())
    }

    /// Bytes that the values of a factor on this pattern take, if those off the diagonal have this many each.
    pub fn bytes_of_values(&self, number: usize) -> usize {
        number * (self.lower.len() + self.upper.len()) * LANES + 8 * self.positions()
    }

    /// Bytes held besides another one in the same order.
    pub(crate) fn bytes_besides(&self, other: &Self) -> usize {
        debug_assert!(Arc::ptr_eq(&self.order, &other.order));
        self.bytes() - self.order.bytes()
    }

    /// In a few words, for reports.
    pub fn describe(&self) -> String {
        let full = 100.0 * self.fullness();
        let (levels, slices) = (self.order.levels.len() - 1, self.order.slices());
        format!("{levels} wavefronts, {slices} slices, strips {full:.0} % full")
    }

    /// Takes b to the reordered system: `to` has [`positions`](Self::positions) entries, `b` one per row.
    pub fn gather(&self, space: &Threads<f64>, b: &[f64], to: &mut [f64]) -> Result<(), BackendError> {
        placement::gather(space, &*self.order, b, to)
    }

    /// Brings x back to the order of the rows.
    pub fn scatter(&self, space: &Threads<f64>, from: &[f64], x: &mut [f64]) -> Result<(), BackendError> {
        placement::scatter(space, &*self.order, from, x)
    }
}

/// Strips of a run of slices, places counted from the first.
struct Task {
    lower: Side,
    upper: Side,
    /// Every entry is on the side of the diagonal that it has in the source.
    keeps_sides: bool,
}

#[derive(Default)]
struct Side {
    /// Strips of each slice.
    counts: Vec<u32>,
    start: Vec<u32>,
    mask: Vec<u8>,
}

impl Side {
    fn len(&self) -> usize {
        self.start.len()
    }
}

/// A strip in the making: its offset from the diagonal, its lanes, and its number in order of discovery.
#[derive(Clone, Copy)]
struct StripCandidate {
    offset: i32,
    mask: u8,
    number: u16,
}

fn rows_of(order: &LevelOrder, slice: usize) -> impl Iterator<Item = (usize, u32)> + '_ {
    let rows = &order.rows[slice * LANES..(slice + 1) * LANES];
    rows.iter().enumerate().filter(|&(_, &row)| row != EMPTY).map(|(lane, &row)| (lane, row))
}

/// The strips of all slices; `places` count from the first strip of each task. None if some task's strips have more than
/// `most_places` places per entry: finding the strips of such rows takes long, and they are not worth it.
fn cut(source: &Pattern, order: &LevelOrder, places: &mut [u32], most_places: f64) -> Option<Vec<Task>> {
    let slices = order.slices();
    let places = (!places.is_empty()).then(|| DisjointSlice::new(places));
    let tasks = parallel::try_map(slices.div_ceil(SLICES_A_TASK), |task| {
        let mut made = Task { lower: Side::default(), upper: Side::default(), keeps_sides: true };
        let (mut found, mut rank) = (Vec::new(), Vec::new());
        let mut entries = 0;
        for slice in task * SLICES_A_TASK..((task + 1) * SLICES_A_TASK).min(slices) {
            made.keeps_sides &= find(source, order, places.as_ref(), slice, &mut found);
            made.push(slice, &mut found, &mut rank);
            for (lane, row) in rows_of(order, slice) {
                entries += source.row_range(row as usize).len() - 1;
                let Some(places) = &places else { continue };
                // SAFETY: every row is in one slice.
                let own = unsafe { places.get(source.row_range(row as usize)) };
                for (place, &j) in own.iter_mut().zip(source.row(row as usize)) {
                    if j != row {
                        *place = rank[*place as usize] * LANES as u32 + lane as u32;
                    }
                }
            }
            // A few slices at the end of a wavefront may well be nearly empty.
            let room = most_places * (entries + 64 * LANES) as f64;
            if ((made.lower.len() + made.upper.len()) * LANES) as f64 > room {
                return Err(());
            }
        }
        Ok(made)
    });
    tasks.ok()
}

/// The distinct offsets of a slice; `places` hold the number of each entry's strip. Whether every entry keeps its side of the
/// diagonal in this order.
fn find(
    source: &Pattern,
    order: &LevelOrder,
    places: Option<&DisjointSlice<'_, u32>>,
    slice: usize,
    found: &mut Vec<StripCandidate>,
) -> bool {
    found.clear();
    let mut keeps_sides = true;
    for (lane, row) in rows_of(order, slice) {
        // SAFETY: every row is in one slice.
        let mut own = places.map(|places| unsafe { places.get(source.row_range(row as usize)) });
        // Rows of a slice mostly have the same offsets in the same order.
        let mut guess = 0;
        for (k, &j) in source.row(row as usize).iter().enumerate() {
            if j == row {
                continue;
            }
            let offset = order.positions[j as usize].wrapping_sub((slice * LANES + lane) as u32) as i32;
            keeps_sides &= (j < row) == (offset < 0);
            if found.get(guess).is_none_or(|f| f.offset != offset) {
                guess = found.iter().position(|f| f.offset == offset).unwrap_or(found.len());
            }
            match found.get_mut(guess) {
                Some(f) => f.mask |= 1 << lane,
                None => found.push(StripCandidate { offset, mask: 1 << lane, number: found.len() as u16 }),
            }
            if let Some(own) = &mut own {
                own[k] = guess as u32;
            }
            guess += 1;
        }
    }
    keeps_sides
}

impl Task {
    /// Appends a slice's strips in order; `rank` becomes the strip of each number, counted on its side from the task's first.
    fn push(&mut self, slice: usize, found: &mut [StripCandidate], rank: &mut Vec<u32>) {
        found.sort_unstable_by_key(|f| f.offset);
        rank.resize(found.len(), 0);
        let before = [self.lower.len(), self.upper.len()];
        for f in found {
            let side = if f.offset < 0 { &mut self.lower } else { &mut self.upper };
            rank[f.number as usize] = side.len() as u32;
            side.start.push(((slice * LANES) as u32).wrapping_add(f.offset as u32));
            side.mask.push(f.mask);
        }
        self.lower.counts.push((self.lower.len() - before[0]) as u32);
        self.upper.counts.push((self.upper.len() - before[1]) as u32);
    }
}

/// All tasks' strips after each other, and the first place of each task.
fn join(tasks: Vec<Task>) -> ([Strips; 2], Vec<[usize; 2]>) {
    let mut sides = [Strips::default(), Strips::default()];
    let mut bases = Vec::with_capacity(tasks.len());
    for strips in &mut sides {
        strips.first.push(0);
    }
    for task in tasks {
        bases.push([sides[0].len() * LANES, sides[1].len() * LANES]);
        for (strips, side) in sides.iter_mut().zip([task.lower, task.upper]) {
            for count in side.counts {
                strips.first.push(strips.first.last().expect("begins with 0") + count);
            }
            strips.start.extend(side.start);
            strips.mask.extend(side.mask);
        }
    }
    (sides, bases)
}
