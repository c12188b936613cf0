//! Matrices on a device: compressed rows, slices, dense blocks.
//!
//! Products have the order of operations of krylith's threads by rows in every storage, so a storage changes speed and never bits. The inner
//! product xᵀ(A x) is summed on the way, except where rows have eight items: then it is a launch of its own.
//!
//! Which storage: dense blocks where the whole matrix is made of them; slices where padding adds no more than a quarter (a half on
//! processors); otherwise compressed rows, with eight items per row on GPUs where rows have 16 entries or more on average.
#![allow(unsafe_code)]

use crate::device::{Argument, Buffer, DeviceScalar, values};
use crate::driver::Shape;
use crate::program::{GROUP_SIZE, Kernel, KernelShape};
use crate::space::DeviceSpace;
use krylith::matrix::{SeenValues, require_pattern};
use krylith::operator::LinearOperator;
use krylith::placement::Storage;
use krylith::space::{LANES, require_same};
use krylith::{BackendError, Csr, Pattern, SetupError};
use std::sync::Arc;

/// Rows of a slice in the shape for GPUs.
const SLICE_ROWS: usize = 32;
/// Rows that are sorted by length together, in the shape for GPUs.
const WINDOW: usize = 1024;
/// Entries per row from which a row has eight items, on GPUs.
const LONG_ROWS: usize = 16;

/// Values of a launch: five buffers, an order or a size, a sum's pieces, and the rows.
const MOST_VALUES: usize = 10;

/// How a matrix is stored on a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceStorage {
    /// Compressed rows, a row for each item.
    Rows,
    /// Compressed rows, eight items for each row.
    Lanes,
    /// Rows in slices, padded.
    Slices,
    /// Dense blocks of this many rows and columns.
    Blocks(usize),
}

/// Where entries are on the device, and from where in A's values each comes.
struct Layout {
    pattern: Arc<Pattern>,
    storage: DeviceStorage,
    /// Starts of rows, slices or rows of blocks.
    starts: Buffer<u64>,
    col_idx: Buffer<u32>,
    /// The row at each place, for slices of GPUs.
    order: Option<Buffer<u32>>,
    /// The entry of A at each place, or `PADDING`; not needed for compressed rows.
    places: Option<Vec<u32>>,
    values: usize,
}

/// No entry of A is here.
const PADDING: u32 = u32::MAX;

/// A matrix on a device.
pub struct DeviceMatrix<T> {
    layout: Arc<Layout>,
    values: Buffer<T>,
    /// Values in the order of the device, on their way there; none for compressed rows, which have the order of A.
    staged: Vec<T>,
    /// What was uploaded last.
    seen: Option<SeenValues>,
}

/// Places of entries, as they are uploaded.
struct Places {
    starts: Vec<u64>,
    col_idx: Vec<u32>,
    order: Option<Vec<u32>>,
    places: Option<Vec<u32>>,
}

/// The rows of a matrix in slices of `height` rows, in this order.
fn slices(pattern: &Pattern, height: usize, order: &[u32]) -> Places {
    let (mut starts, mut col_idx, mut places) = (vec![0u64], Vec::new(), Vec::new());
    for rows in order.chunks(height) {
        let width = rows.iter().map(|&row| pattern.row(row as usize).len()).max().unwrap_or(0);
        for k in 0..width {
            for lane in 0..height {
                let row = rows.get(lane).map(|&row| row as usize);
                let entry = row.and_then(|row| pattern.row(row).get(k).map(|&column| (row, column)));
                match entry {
                    Some((row, column)) => {
                        col_idx.push(column);
                        places.push((pattern.row_range(row).start + k) as u32);
                    }
                    // A column of the same row, so that nothing else is touched; of a row without entries, the first.
                    None => {
                        col_idx.push(row.and_then(|row| pattern.row(row).first().copied()).unwrap_or(0));
                        places.push(PADDING);
                    }
                }
            }
        }
        starts.push(col_idx.len() as u64);
    }
    Places { starts, col_idx, order: None, places: Some(places) }
}

/// Entries of slices with padding.
fn padded(pattern: &Pattern, height: usize, order: &[u32]) -> usize {
    let width = |rows: &[u32]| rows.iter().map(|&row| pattern.row(row as usize).len()).max().unwrap_or(0);
    order.chunks(height).map(|rows| height * width(rows)).sum()
}

/// The order of slices: as given for processors, by length within windows for GPUs.
fn order_of_slices(pattern: &Pattern, shape: KernelShape) -> Vec<u32> {
    let mut order: Vec<u32> = (0..pattern.nrows() as u32).collect();
    if shape == KernelShape::Gpu {
        for window in order.chunks_mut(WINDOW) {
            window.sort_by_key(|&row| std::cmp::Reverse(pattern.row(row as usize).len()));
        }
    }
    order
}

fn height(shape: KernelShape) -> usize {
    match shape {
        KernelShape::Cpu => LANES,
        KernelShape::Gpu => SLICE_ROWS,
    }
}

/// Whether a matrix is made of dense blocks of this size.
fn is_of_blocks(pattern: &Pattern, size: usize) -> bool {
    if size < 2 || !pattern.nrows().is_multiple_of(size) || !pattern.ncols().is_multiple_of(size) {
        return false;
    }
    let is_block = |block: &[u32]| {
        let consecutive = block.iter().zip(block[0]..).all(|(&a, b)| a == b);
        block.len() == size && (block[0] as usize).is_multiple_of(size) && consecutive
    };
    (0..pattern.nrows()).step_by(size).all(|first| {
        let columns = pattern.row(first);
        columns.chunks(size).all(is_block) && (first + 1..first + size).all(|row| pattern.row(row) == columns)
    })
}

/// Dense blocks; `None` where the matrix is not made of them.
fn blocks(pattern: &Pattern, size: usize) -> Option<Places> {
    if !is_of_blocks(pattern, size) {
        return None;
    }
    let (mut starts, mut col_idx, mut places) = (vec![0u64], Vec::new(), Vec::new());
    for first in (0..pattern.nrows()).step_by(size) {
        for (b, block) in pattern.row(first).chunks(size).enumerate() {
            col_idx.push(block[0] / size as u32);
            for row in first..first + size {
                let start = pattern.row_range(row).start + b * size;
                places.extend((start..start + size).map(|k| k as u32));
            }
        }
        starts.push(col_idx.len() as u64);
    }
    Some(Places { starts, col_idx, order: None, places: Some(places) })
}

impl std::fmt::Display for DeviceStorage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            DeviceStorage::Rows => write!(f, "rows"),
            DeviceStorage::Lanes => write!(f, "rows with eight items each"),
            DeviceStorage::Slices => write!(f, "slices"),
            DeviceStorage::Blocks(size) => write!(f, "blocks of {size} x {size}"),
        }
    }
}

impl DeviceStorage {
    /// Bytes that a matrix of this pattern takes in this storage, indices included.
    pub fn bytes(self, pattern: &Pattern, shape: KernelShape) -> usize {
        let (nnz, rows) = (pattern.nnz(), pattern.nrows());
        match self {
            DeviceStorage::Rows | DeviceStorage::Lanes => 12 * nnz + 8 * (rows + 1),
            DeviceStorage::Slices => {
                let order = if shape == KernelShape::Gpu { 4 * rows } else { 0 };
                let padded = padded(pattern, height(shape), &order_of_slices(pattern, shape));
                12 * padded + 8 * (rows.div_ceil(height(shape)) + 1) + order
            }
            DeviceStorage::Blocks(size) => {
                let size = size.max(1);
                8 * nnz + 4 * (nnz / (size * size)) + 8 * (rows / size + 1)
            }
        }
    }

    /// The storage that suits a pattern; the head of this file has the rule.
    pub fn choose(pattern: &Pattern, shape: KernelShape) -> Self {
        // Rows and entries are numbered in 32 bits in what is not by rows.
        let fits = pattern.nnz() < PADDING as usize && pattern.nrows() < PADDING as usize;
        let size = (2..=8).rev().find(|&size| fits && is_of_blocks(pattern, size));
        if let Some(size) = size.filter(|_| pattern.nnz() > 0) {
            return DeviceStorage::Blocks(size);
        }
        if !fits {
            return DeviceStorage::Rows;
        }
        let room = match shape {
            KernelShape::Cpu => pattern.nnz() / 2,
            KernelShape::Gpu => pattern.nnz() / 4,
        };
        let order = order_of_slices(pattern, shape);
        if padded(pattern, height(shape), &order) <= pattern.nnz() + room {
            return DeviceStorage::Slices;
        }
        match shape == KernelShape::Gpu && pattern.nnz() >= LONG_ROWS * pattern.nrows() {
            true => DeviceStorage::Lanes,
            false => DeviceStorage::Rows,
        }
    }
}

impl<T: DeviceScalar> DeviceMatrix<T> {
    /// The pattern in the storage that suits it, without values.
    fn allocate(
        space: &DeviceSpace<T>,
        pattern: &Arc<Pattern>,
        storage: DeviceStorage,
    ) -> Result<Self, BackendError> {
        let shape = space.device().shape();
        let unsuitable = || BackendError::Unsupported { what: "this storage of this matrix" };
        let parts = match storage {
            DeviceStorage::Lanes if shape == KernelShape::Cpu => return Err(unsuitable()),
            DeviceStorage::Rows | DeviceStorage::Lanes => Places {
                starts: pattern.row_ptr().iter().map(|&k| k as u64).collect(),
                col_idx: pattern.col_idx().to_vec(),
                order: None,
                places: None,
            },
            DeviceStorage::Slices if pattern.nnz().max(pattern.nrows()) < PADDING as usize => {
                let order = order_of_slices(pattern, shape);
                let parts = slices(pattern, height(shape), &order);
                Places { order: (shape == KernelShape::Gpu).then_some(order), ..parts }
            }
            DeviceStorage::Slices => return Err(unsuitable()),
            DeviceStorage::Blocks(size) if pattern.nnz() < PADDING as usize => {
                blocks(pattern, size).ok_or_else(unsuitable)?
            }
            DeviceStorage::Blocks(_) => return Err(unsuitable()),
        };
        let queue = space.queue();
        let Places { starts, col_idx, order, places } = parts;
        let count = places.as_ref().map_or(col_idx.len(), Vec::len);
        let layout = Layout {
            pattern: Arc::clone(pattern),
            storage,
            starts: queue.upload_new(&starts)?,
            col_idx: queue.upload_new(&col_idx)?,
            order: order.map(|order| queue.upload_new(&order)).transpose()?,
            places,
            values: count,
        };
        Self::with_layout(space, Arc::new(layout))
    }

    /// Room for values in a layout.
    fn with_layout(space: &DeviceSpace<T>, layout: Arc<Layout>) -> Result<Self, BackendError> {
        let values = space.queue().allocate(layout.values)?;
        let staged = vec![T::ZERO; layout.places.as_ref().map_or(0, Vec::len)];
        Ok(DeviceMatrix { layout, values, staged, seen: None })
    }

    /// A copy of a matrix on the device, in the storage that suits it.
    pub fn new(space: &DeviceSpace<T>, a: &Csr<T>) -> Result<Self, BackendError> {
        Self::in_storage(space, a, DeviceStorage::choose(a.pattern(), space.device().shape()))
    }

    /// A copy in this storage; an error where the pattern does not have it.
    pub fn in_storage(
        space: &DeviceSpace<T>,
        a: &Csr<T>,
        storage: DeviceStorage,
    ) -> Result<Self, BackendError> {
        let mut matrix = Self::allocate(space, a.pattern(), storage)?;
        matrix.upload(space, a.values())?;
        Ok(matrix)
    }

    /// How it is stored.
    pub fn storage(&self) -> DeviceStorage {
        self.layout.storage
    }

    /// Bytes on the device, indices included.
    pub fn bytes(&self) -> usize {
        let Layout { starts, col_idx, order, .. } = &*self.layout;
        let order = order.as_ref().map_or(0, Buffer::len);
        self.values.len() * size_of::<T>() + 8 * starts.len() + 4 * (col_idx.len() + order)
    }

    fn upload(&mut self, space: &DeviceSpace<T>, values: &[T]) -> Result<(), BackendError> {
        let Some(places) = &self.layout.places else { return space.queue().upload(values, &self.values) };
        for (to, &k) in self.staged.iter_mut().zip(places) {
            *to = if k == PADDING { T::ZERO } else { values[k as usize] };
        }
        space.queue().upload(&self.staged, &self.values)
    }

    fn check(&self, x: &Buffer<T>, y: &Buffer<T>) -> Result<(), BackendError> {
        let pattern = &self.layout.pattern;
        if self.layout.starts.is_empty() {
            return Err(BackendError::Unsupported {
                what: "a product with a matrix that is not on the device",
            });
        }
        require_same("x and the columns of A", &x.len(), &pattern.ncols())?;
        require_same("y and the rows of A", &y.len(), &pattern.nrows())
    }

    /// The kernel, with and without the inner product, and its buffers and numbers up to them.
    fn launch(
        &self,
        space: &DeviceSpace<T>,
        (x, y): (&Buffer<T>, &Buffer<T>),
        sum: Option<(&Buffer<u64>, Shape, u64)>,
    ) -> Result<(), BackendError> {
        let Layout { storage, starts, col_idx, order, .. } = &*self.layout;
        let mut values = [0u32.value(); MOST_VALUES];
        values[..5].copy_from_slice(&values![starts, col_idx, &self.values, x, y]);
        let mut count = 5;
        let mut push = |value| {
            values[count] = value;
            count += 1;
        };
        if let Some(order) = order {
            push(order.value());
        }
        if let DeviceStorage::Blocks(size) = storage {
            push((*size as u32).value());
        }
        let n = y.len();
        let (kernel, shape) = match (storage, sum.is_some()) {
            (DeviceStorage::Rows, false) => (Kernel::ProductRows, space.over(n)),
            (DeviceStorage::Lanes, _) => {
                let groups = (n * LANES).div_ceil(GROUP_SIZE).min(1 << 16);
                (Kernel::ProductLanes, Shape { groups, items: GROUP_SIZE })
            }
            (DeviceStorage::Slices, false) => (Kernel::ProductSlices, space.over(n)),
            (DeviceStorage::Blocks(_), false) => (Kernel::ProductBlocks, space.over(n)),
            (DeviceStorage::Rows, true) => (Kernel::ProductRowsDot, space.over(n)),
            (DeviceStorage::Slices, true) => (Kernel::ProductSlicesDot, space.over(n)),
            (DeviceStorage::Blocks(_), true) => (Kernel::ProductBlocksDot, space.over(n)),
        };
        let shape = sum.map_or(shape, |(_, shape, _)| shape);
        if let Some((pieces, _, number)) = sum {
            push(pieces.value());
            push(number.value());
        }
        push((n as u64).value());
        // SAFETY: the kernel's parameters; indices are those of a pattern, whose sizes x and y have.
        unsafe { space.queue().launch(kernel, shape, &values[..count]) }
    }

    /// Whether the product sums its inner product on the way.
    fn is_fused(&self) -> bool {
        self.layout.storage != DeviceStorage::Lanes
    }
}

impl<T: DeviceScalar> LinearOperator<DeviceSpace<T>> for DeviceMatrix<T> {
    type Scratch = ();

    fn domain(&self) -> usize {
        self.layout.pattern.ncols()
    }

    fn range(&self) -> usize {
        self.layout.pattern.nrows()
    }

    fn scratch(&self, _: &DeviceSpace<T>) -> Result<(), BackendError> {
        Ok(())
    }

    fn apply(
        &self,
        space: &DeviceSpace<T>,
        x: &Buffer<T>,
        y: &mut Buffer<T>,
        _: &mut (),
    ) -> Result<(), BackendError> {
        self.check(x, y)?;
        self.launch(space, (x, y), None)
    }

    fn apply_dot(
        &self,
        space: &DeviceSpace<T>,
        x: &Buffer<T>,
        y: &mut Buffer<T>,
        _: &mut (),
    ) -> Result<T, BackendError> {
        self.check(x, y)?;
        let mut out = [T::ZERO];
        let fused = self.is_fused();
        if !fused {
            self.launch(space, (x, y), None)?;
        }
        space.sum(y.len(), &mut out, |pieces, shape, number| match fused {
            true => self.launch(space, (x, y), Some((pieces, shape, number))),
            false => space.launch_dots(&[(x, y)], (pieces, shape, number), 0),
        })?;
        Ok(out[0])
    }
}

impl DeviceMatrix<f64> {
    /// Notes that the values are those of this matrix.
    pub(crate) fn remember(&mut self, space: &DeviceSpace<f64>, a: &Csr<f64>) {
        self.seen = Some(SeenValues::of(space.threads(), a));
    }

    /// The pattern of a matrix of which the device needs no values; it cannot be multiplied by.
    pub(crate) fn pattern_only(space: &DeviceSpace<f64>, a: &Csr<f64>) -> Result<Self, BackendError> {
        let queue = space.queue();
        let layout = Layout {
            pattern: Arc::clone(a.pattern()),
            storage: DeviceStorage::Rows,
            starts: queue.allocate(0)?,
            col_idx: queue.allocate(0)?,
            order: None,
            places: Some(Vec::new()),
            values: 0,
        };
        Self::with_layout(space, Arc::new(layout))
    }
}

impl Storage<DeviceSpace<f64>> for DeviceMatrix<f64> {
    fn require(&self, a: &Csr<f64>) -> Result<(), SetupError> {
        require_pattern(&self.layout.pattern, a.pattern())
    }

    fn set(&mut self, space: &DeviceSpace<f64>, a: &Csr<f64>) -> Result<(), SetupError> {
        self.require(a)?;
        if !self.holds(space, a) {
            self.upload(space, a.values())?;
            self.seen = Some(SeenValues::of(space.threads(), a));
        }
        Ok(())
    }

    fn holds(&self, space: &DeviceSpace<f64>, a: &Csr<f64>) -> bool {
        self.seen.is_some_and(|seen| seen.are_those_of(space.threads(), a))
    }

    fn with_values_of(&self, space: &DeviceSpace<f64>, a: &Csr<f64>) -> Result<Self, SetupError> {
        let mut copy = Self::with_layout(space, Arc::clone(&self.layout))?;
        copy.set(space, a).map(|()| copy)
    }

    fn bytes(&self) -> usize {
        self.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern() -> Pattern {
        Pattern::new(3, 3, vec![0, 1, 3, 3], vec![0, 0, 2]).unwrap()
    }

    #[test]
    fn slices_by_hand() {
        let parts = slices(&pattern(), 2, &[1, 0, 2]);
        // Rows 1 and 0: width 2; row 2 and nobody: width 0.
        assert_eq!(parts.starts, [0, 4, 4]);
        assert_eq!(parts.col_idx, [0, 0, 2, 0]);
        assert_eq!(parts.places.unwrap(), [1, 0, 2, PADDING]);
        assert_eq!(padded(&pattern(), 2, &[1, 0, 2]), 4);
        assert_eq!(order_of_slices(&pattern(), KernelShape::Gpu), [1, 0, 2]);
    }

    #[test]
    fn blocks_by_hand() {
        // One block row: blocks at columns 0 and 2.
        let p = Pattern::new(2, 4, vec![0, 4, 8], vec![0, 1, 2, 3, 0, 1, 2, 3]).unwrap();
        let parts = blocks(&p, 2).unwrap();
        assert_eq!((parts.starts, parts.col_idx), (vec![0, 2], vec![0, 1]));
        assert_eq!(parts.places.unwrap(), [0, 1, 4, 5, 2, 3, 6, 7]);
        assert!(blocks(&p, 4).is_none() && blocks(&pattern(), 3).is_none());
        let ragged = Pattern::new(2, 4, vec![0, 2, 4], vec![0, 1, 2, 3]).unwrap();
        assert!(blocks(&ragged, 2).is_none());
    }
}
