//! A matrix for products alone: slices of eight rows as they are, equal ones stored once.
//!
//! A product has no order, so rows keep theirs, and nothing distinguishes the sides of the diagonal. A slice is a list of strips, each an offset from the
//! diagonal, a mask of the rows that have an entry there, and eight values. Where coefficients are constant, or constant in parts, slices repeat, at
//! boundaries too: a slice is then the number of one in a table that stays in a cache, and a product reads no more than its vectors. That needs no grid
//! and no knowledge of one; equal means the same bits.
//!
//! Slices are found in runs, each by itself. A run in which few slices repeat stops looking for them and has a table of its own. Values may be `f32`.
//!
//! Bytes of a product: 69 per strip (37 in `f32`) of slices that do not repeat, 4 per slice, and 16 per row.
#![allow(unsafe_code)]

use super::LANES;
use super::kernels::{self, SharedTable};
use super::order::LevelOrder;
use crate::disjoint::DisjointSlice;
use crate::error::{BackendError, SetupError};
use crate::matrix::{Csr, Pattern, SeenValues, ValuedRows, require_pattern};
use crate::operator::{LinearOperator, part_by_work};
use crate::parallel;
use crate::placement::Storage;
use crate::simd::StorageScalar;
use crate::space::{BinnedSum, Threads, require_same};
use crate::team::Member;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// Slices of one run.
const RUN: usize = 1024;
/// Runs that are looked at to see whether slices repeat.
const RUNS_OF_SAMPLE: usize = 2;

/// A run goes on looking for equal slices while it has found no more than this many different ones, and a quarter of all.
const MANY: usize = 64;

/// Places of strips may exceed entries by this factor.
const MOST_PLACES: f64 = 2.0;

/// Offsets are 32 bits with a sign.
const MOST_ROWS: usize = i32::MAX as usize;

/// Values in slices of rows as they are.
#[derive(Debug, Clone)]
pub(crate) struct SharedSlices<S = f64> {
    order: Arc<LevelOrder>,
    source: Arc<Pattern>,
    tables: Vec<Table<S>>,
    runs: Vec<Run>,
    seen: Option<SeenValues>,
}

/// Slices one after the other.
#[derive(Debug, Clone)]
struct Table<S> {
    /// The first strip of each slice, and the end.
    first: Vec<u32>,
    offset: Vec<i32>,
    mask: Vec<u8>,
    values: Vec<[S; LANES]>,
}

/// Which slices of which table.
#[derive(Debug, Clone)]
struct Run {
    table: usize,
    which: Vec<u32>,
}

impl<S: StorageScalar> SharedSlices<S> {
    /// No values yet.
    pub(crate) fn empty(order: &Arc<LevelOrder>, source: &Arc<Pattern>) -> Self {
        SharedSlices {
            order: Arc::clone(order),
            source: Arc::clone(source),
            tables: Vec::new(),
            runs: Vec::new(),
            seen: None,
        }
    }

    /// Bytes for each row in a sample of the slices; `None` if strips would be too empty.
    pub(crate) fn sampled_bytes(a: &Csr<f64>) -> Option<f64> {
        const RUNS: usize = 8;
        if a.nrows() > MOST_ROWS {
            return None;
        }
        let runs = a.nrows().div_ceil(RUN * LANES);
        let every = runs.div_ceil(RUNS).max(1);
        let sampled = parallel::map(runs.div_ceil(every), |k| {
            let run = k * every;
            let (table, which) = Table::<S>::cut(a, run);
            let strips: usize = which.iter().map(|&w| table.of(w as usize).len()).sum();
            [table.bytes(), strips, rows_of(a.nrows(), run)]
        });
        let [bytes, strips, rows] = [0, 1, 2].map(|k| sampled.iter().map(|s| s[k]).sum::<usize>() as f64);
        let entries = a.nnz() as f64 / a.nrows().max(1) as f64 * rows;
        ((LANES as f64) * strips <= MOST_PLACES * entries + 64.0 * LANES as f64)
            .then(|| bytes / rows.max(1.0))
    }

    /// Whether slices repeat in a sample of the first runs.
    pub(crate) fn repeats(rows: &impl ValuedRows) -> bool {
        if rows.count() > MOST_ROWS {
            return false;
        }
        let a = &*rows.first_rows(RUNS_OF_SAMPLE * RUN * LANES);
        let sampled = a.nrows().div_ceil(RUN * LANES).min(RUNS_OF_SAMPLE);
        (0..sampled).all(|run| {
            let (table, which) = Table::<S>::cut(a, run);
            table.len() <= MANY + which.len() / 4
        })
    }

    /// A matrix in an order of its own.
    pub(crate) fn of(space: &Threads<f64>, a: &Csr<f64>) -> Self {
        let mut slices = Self::empty(&Arc::new(LevelOrder::natural(a.nrows())), a.pattern());
        slices.store(a);
        slices.seen = Some(SeenValues::of(space, a));
        slices
    }

    /// Where rows stand.
    pub(crate) fn order(&self) -> &Arc<LevelOrder> {
        &self.order
    }

    /// Whether this is known to be that very matrix, without a look at its values.
    pub(crate) fn has_stamp_of(&self, a: &Csr<f64>) -> bool {
        self.seen.is_some_and(|seen| seen.has_stamp_of(a))
    }

    /// Slices.
    pub(crate) fn len(&self) -> usize {
        self.order.slices()
    }

    /// Numbers of slices, the same for equal ones: those that are stored in one table, others a number of their own.
    pub(crate) fn numbers(&self) -> Vec<u32> {
        let mut own = self.tables[0].len() as u32;
        let mut numbers = Vec::with_capacity(self.len());
        for run in &self.runs {
            match run.table {
                0 => numbers.extend(&run.which),
                _ => {
                    numbers.extend((own..).take(run.which.len()));
                    own += run.which.len() as u32;
                }
            }
        }
        numbers
    }

    /// The slices of the first and last column of each strip of a slice.
    pub(crate) fn reached(&self, slice: usize) -> impl Iterator<Item = [u32; 2]> {
        let run = &self.runs[slice / RUN];
        let table = &self.tables[run.table];
        let (offsets, masks, _) = table.slice(run.which[slice % RUN] as usize);
        let first = (slice * LANES) as i64;
        offsets.iter().zip(masks).map(move |(&offset, mask)| {
            let lanes = [mask.trailing_zeros(), 7 - mask.leading_zeros()];
            lanes.map(|lane| ((first + i64::from(offset) + i64::from(lane)) / LANES as i64) as u32)
        })
    }

    /// Cuts all runs; slices of those that repeat go to the first table.
    fn store(&mut self, a: &Csr<f64>) {
        let count = a.nrows().div_ceil(RUN * LANES);
        let made: Vec<(Table<S>, Vec<u32>)> = parallel::map(count, |run| Table::cut(a, run));
        let (mut common, mut known) = (Table::new(), HashMap::new());
        (self.tables, self.runs) = (vec![Table::new()], Vec::with_capacity(count));
        for (table, mut which) in made {
            if table.len() > MANY + which.len() / 4 {
                self.runs.push(Run { table: self.tables.len(), which });
                self.tables.push(table);
                continue;
            }
            let places: Vec<u32> =
                (0..table.len()).map(|slice| common.place(&mut known, table.slice(slice))).collect();
            which.iter_mut().for_each(|w| *w = places[*w as usize]);
            self.runs.push(Run { table: 0, which });
        }
        self.tables[0] = common;
    }

    /// Slices that are stored, and all.
    pub(crate) fn different(&self) -> [usize; 2] {
        [self.tables.iter().map(Table::len).sum(), self.order.slices()]
    }

    /// A member's rows: a share of entries and rows, cut at multiples of a chunk of sums.
    fn part(&self, member: &Member<'_>) -> Range<usize> {
        let (n, pointers) = (self.source.nrows(), self.source.row_ptr());
        part_by_work(self.order.positions(), member, |position| pointers[position.min(n)] + 3 * position)
    }

    /// # Safety
    /// x and y have the length of the order, and y of these positions is the caller's alone.
    unsafe fn multiply(&self, positions: Range<usize>, x: &[f64], y: &DisjointSlice<'_, f64>) {
        let mut slice = positions.start / LANES;
        let end = positions.end / LANES;
        while slice < end {
            let (run, from) = (&self.runs[slice / RUN], slice % RUN);
            let count = (end - slice).min(RUN - from);
            let Table { first, offset, mask, values } = &self.tables[run.table];
            let table = SharedTable { first, offset, mask, values };
            // SAFETY: numbers in `which` are slices of the table; offsets lead to columns where the mask has a lane.
            unsafe {
                let (x, y) = (x.as_ptr(), y.as_mut_ptr());
                kernels::multiply_shared(table, &run.which[from..from + count], slice, x, y);
            }
            slice += count;
        }
    }

    fn check(&self, x: &[f64], y: &[f64]) -> Result<(), BackendError> {
        if self.runs.len() != self.order.slices().div_ceil(RUN) {
            return Err(BackendError::Failed { what: "the matrix has no values".into() });
        }
        require_same("x and the columns of A", &x.len(), &self.order.positions())?;
        require_same("y and the rows of A", &y.len(), &self.order.positions())
    }

    /// y = A x, and a sum to which `add` adds what it makes of pieces of x and y.
    fn apply_sum(
        &self,
        space: &Threads<f64>,
        x: &[f64],
        y: &mut [f64],
        add: impl Fn(&mut BinnedSum, &[f64], &[f64]) + Sync,
    ) -> Result<f64, BackendError> {
        self.check(x, y)?;
        let n = y.len();
        let y = DisjointSlice::new(y);
        let [sum] = space.sums_over(
            n,
            |member| self.part(member),
            |positions, [sum]| {
                // SAFETY: lengths were checked; every chunk is visited once, by one member.
                let y = unsafe {
                    self.multiply(positions.clone(), x, &y);
                    std::slice::from_raw_parts(y.as_mut_ptr().add(positions.start), positions.len())
                };
                add(sum, &x[positions], y);
            },
        );
        Ok(sum)
    }
}

/// Rows of a run.
fn rows_of(n: usize, run: usize) -> usize {
    (n - run * RUN * LANES).min(RUN * LANES)
}

/// One slice.
type Slice<'a, S> = (&'a [i32], &'a [u8], &'a [[S; LANES]]);

impl<S: StorageScalar> Table<S> {
    fn new() -> Self {
        Table { first: vec![0], offset: Vec::new(), mask: Vec::new(), values: Vec::new() }
    }

    fn len(&self) -> usize {
        self.first.len() - 1
    }

    fn bytes(&self) -> usize {
        4 * self.first.len() + self.mask.len() * (5 + LANES * size_of::<S>())
    }

    fn of(&self, slice: usize) -> Range<usize> {
        self.first[slice] as usize..self.first[slice + 1] as usize
    }

    fn slice(&self, slice: usize) -> Slice<'_, S> {
        let strips = self.of(slice);
        (&self.offset[strips.clone()], &self.mask[strips.clone()], &self.values[strips])
    }

    /// The slices of a run: those that differ, and which of them each is.
    fn cut(a: &Csr<f64>, run: usize) -> (Self, Vec<u32>) {
        let (rows, count) = (run * RUN * LANES, rows_of(a.nrows(), run).div_ceil(LANES));
        let (mut table, mut known, mut which) = (Table::new(), HashMap::new(), Vec::with_capacity(count));
        let (mut looks, mut one) = (true, Table::new());
        for k in 0..count {
            let first = rows + k * LANES;
            looks &= table.len() <= MANY + k / 4;
            which.push(match looks {
                true => {
                    one.clear();
                    one.push(a, first);
                    table.place(&mut known, one.slice(0))
                }
                false => {
                    table.push(a, first);
                    table.len() as u32 - 1
                }
            });
        }
        (table, which)
    }

    /// Appends the slice of rows from `first` on: offsets in ascending order, the next one being the least among the rows.
    fn push(&mut self, a: &Csr<f64>, first: usize) {
        const NONE: i32 = i32::MAX;
        let mut rows: [(&[u32], &[f64]); LANES] = Default::default();
        let mut next = [NONE; LANES];
        for (lane, i) in (first..a.nrows().min(first + LANES)).enumerate() {
            rows[lane] = a.row(i);
            next[lane] = rows[lane].0.first().map_or(NONE, |&j| j as i32 - i as i32);
        }
        loop {
            let least = next.iter().fold(NONE, |least, &offset| least.min(offset));
            if least == NONE {
                break;
            }
            let (mut mask, mut values) = (0u8, [S::from_f64(0.0); LANES]);
            for lane in 0..LANES {
                if next[lane] == least {
                    let (columns, numbers) = &mut rows[lane];
                    values[lane] = S::from_f64(numbers[0]);
                    (*columns, *numbers) = (&columns[1..], &numbers[1..]);
                    next[lane] = columns.first().map_or(NONE, |&j| j as i32 - (first + lane) as i32);
                    mask |= 1 << lane;
                }
            }
            self.offset.push(least);
            self.mask.push(mask);
            self.values.push(values);
        }
        self.first.push(self.offset.len() as u32);
    }

    fn clear(&mut self) {
        self.first.truncate(1);
        self.offset.clear();
        self.mask.clear();
        self.values.clear();
    }

    /// Where a slice is in this table; it is appended if it is new.
    fn place(&mut self, known: &mut HashMap<u64, u32>, slice: Slice<'_, S>) -> u32 {
        let number = self.len() as u32;
        let other = *known.entry(hash(slice)).or_insert(number);
        if other != number && are_equal(self.slice(other as usize), slice) {
            return other;
        }
        self.offset.extend(slice.0);
        self.mask.extend(slice.1);
        self.values.extend(slice.2);
        self.first.push(self.offset.len() as u32);
        number
    }
}

fn bits<S: StorageScalar>(value: S) -> u64 {
    value.to_f64().to_bits()
}

fn are_equal<S: StorageScalar>(a: Slice<'_, S>, b: Slice<'_, S>) -> bool {
    let same = |(a, b): (&[S; LANES], &[S; LANES])| (0..LANES).all(|l| bits(a[l]) == bits(b[l]));
    a.0 == b.0 && a.1 == b.1 && a.2.iter().zip(b.2).all(same)
}

fn hash<S: StorageScalar>((offset, mask, values): Slice<'_, S>) -> u64 {
    let mix = |state: u64, word: u64| (state.rotate_left(5) ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let head = offset.iter().zip(mask).fold(0, |h, (&o, &m)| mix(h, (o as u64) << 8 | u64::from(m)));
    values.iter().flatten().fold(head, |h, &value| mix(h, bits(value)))
}

impl<S: StorageScalar> Storage<Threads<f64>> for SharedSlices<S> {
    fn require(&self, a: &Csr<f64>) -> Result<(), SetupError> {
        require_pattern(&self.source, a.pattern())
    }

    fn holds(&self, space: &Threads<f64>, a: &Csr<f64>) -> bool {
        self.seen.is_some_and(|seen| seen.are_those_of(space, a))
    }

    /// Allocates: how many slices differ depends on the values.
    fn set(&mut self, space: &Threads<f64>, a: &Csr<f64>) -> Result<(), SetupError> {
        self.require(a)?;
        if !self.holds(space, a) {
            self.store(a);
            self.seen = Some(SeenValues::of(space, a));
        }
        Ok(())
    }

    fn with_values_of(&self, space: &Threads<f64>, a: &Csr<f64>) -> Result<Self, SetupError> {
        let mut copy = Self::empty(&self.order, &self.source);
        copy.set(space, a).map(|()| copy)
    }

    fn bytes(&self) -> usize {
        self.tables.iter().map(Table::bytes).sum::<usize>() + 4 * self.order.slices()
    }

    fn apply_square(
        &self,
        space: &Threads<f64>,
        x: &Vec<f64>,
        y: &mut Vec<f64>,
        _: &mut (),
    ) -> Result<f64, BackendError> {
        self.apply_sum(space, x, y, |sum, _, y| sum.add_products(y, y))
    }
}

impl<S: StorageScalar> LinearOperator<Threads<f64>> for SharedSlices<S> {
    type Scratch = ();

    fn domain(&self) -> usize {
        self.order.positions()
    }

    fn range(&self) -> usize {
        self.order.positions()
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
        space.team().run(|member| {
            // SAFETY: lengths were checked; the parts of the members do not overlap.
            unsafe { self.multiply(self.part(&member), x, &y) };
        });
        Ok(())
    }

    fn apply_dot(
        &self,
        space: &Threads<f64>,
        x: &Vec<f64>,
        y: &mut Vec<f64>,
        _: &mut (),
    ) -> Result<f64, BackendError> {
        self.apply_sum(space, x, y, BinnedSum::add_products)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gallery::Problem;
    use crate::space::Space;

    fn stored<S: StorageScalar>(a: &Csr<f64>, space: &Threads<f64>) -> SharedSlices<S> {
        let order = Arc::new(LevelOrder::natural(a.nrows()));
        let mut slices = SharedSlices::empty(&order, a.pattern());
        slices.set(space, a).unwrap();
        slices
    }

    /// Products are those of rows, on any number of threads, with and without repetition, and with rows that do not fill the last slice.
    #[test]
    fn products_are_those_of_rows() {
        for (name, repeats) in [
            ("poisson3d:23", true),
            ("hpcg:21", true),
            ("jump3d:13", false),
            ("fem2d:31", false),
            ("circuit:30", false),
        ] {
            let a = name.parse::<Problem>().unwrap().generate().unwrap();
            let n = a.nrows();
            let x: Vec<f64> = (0..n).map(|i| ((i * 7919 % 1009) as f64 - 504.0) / 504.0).collect();
            let mut expected = vec![0.0; n];
            a.apply(&Threads::new(1), &x, &mut expected, &mut ()).unwrap();
            let mut bits: Option<Vec<f64>> = None;
            for threads in [1, 2, 5] {
                let space = Threads::new(threads);
                let slices = stored::<f64>(&a, &space);
                assert_eq!(
                    slices.different()[0] * 4 < slices.len(),
                    repeats,
                    "{name} {:?}",
                    slices.different()
                );
                let padded = |v: &[f64]| [v, &vec![0.0; slices.range() - n]].concat();
                let (x, mut y) = (padded(&x), padded(&expected));
                y.fill(f64::NAN);
                let dot = slices.apply_dot(&space, &x, &mut y, &mut ()).unwrap();
                for (y, e) in y.iter().zip(padded(&expected)) {
                    assert!((y - e).abs() <= 1e-13 * e.abs().max(1.0), "{name}: {y} {e}");
                }
                assert!((dot - space.dot(&x, &y).unwrap()).abs() <= 1e-12 * dot.abs());
                let square = slices.apply_square(&space, &x, &mut y, &mut ()).unwrap();
                assert!((square - space.dot(&y, &y).unwrap()).abs() <= 1e-12 * square);
                assert_eq!(bits.get_or_insert_with(|| y.clone()), &y, "{name}");
                let mut narrow = y.clone();
                stored::<f32>(&a, &space).apply(&space, &x, &mut narrow, &mut ()).unwrap();
                let largest = y.iter().fold(0.0f64, |m, y| m.max(y.abs()));
                assert!(y.iter().zip(&narrow).all(|(y, n)| (y - n).abs() <= 1e-5 * largest), "{name}");
            }
        }
    }

    /// [2 −1; −1 2 −1; …; −1 2] of 20 rows: three slices, the first and the last of their own; one of eight numbers that differs makes another.
    #[test]
    fn slices_of_a_chain() {
        let entries = (0..40usize).flat_map(|i| {
            let left = (i > 0).then(|| (i, i - 1, -1.0));
            let right = (i < 39).then(|| (i, i + 1, -1.0));
            [Some((i, i, 2.0)), left, right].into_iter().flatten()
        });
        let mut a = Csr::from_entries(40, 40, entries).unwrap();
        let space = Threads::new(1);
        let slices = stored::<f64>(&a, &space);
        assert_eq!(slices.different(), [3, 5]);
        assert_eq!(slices.numbers(), [0, 1, 1, 1, 2]);
        assert_eq!(slices.reached(1).collect::<Vec<_>>(), [[0, 1], [1, 1], [1, 2]]);
        assert!(slices.holds(&space, &a));
        let last = a.nnz() - 3;
        a.values_mut()[last - 30] = 3.0;
        let changed = slices.with_values_of(&space, &a).unwrap();
        assert_eq!(changed.different(), [4, 5]);
        assert!(!slices.holds(&space, &a) && changed.holds(&space, &a));
    }
}
