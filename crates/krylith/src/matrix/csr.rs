//! Compressed sparse rows: the matrix that users hand over.

use super::assemble::{FillRows, Triplets, assemble, filled, for_each_row_block_mut, sort_and_sum};
use super::pattern::{Order, check_columns, check_dimensions, check_rows};
use super::version::Version;
use super::{Pattern, Symmetry};
use crate::error::MatrixError;
use crate::parallel;
use crate::scalar::Scalar;
use std::sync::Arc;

/// A sparse matrix by rows: a shared [`Pattern`] and one value per entry.
///
/// ```
/// use krylith::Csr;
/// // [ 2 -1 ]
/// // [-1  2 ]   from entries in any order; those at the same place are summed
/// let a = Csr::from_triplets(2, 2, &[0, 0, 1, 1, 1], &[0, 1, 1, 0, 1], &[2.0, -1.0, 1.5, -1.0, 0.5])?;
/// let mut y = [0.0; 2];
/// a.mul_vec(&[1.0, 2.0], &mut y)?;
/// assert_eq!(y, [0.0, 3.0]);
/// # Ok::<(), krylith::MatrixError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Csr<T> {
    pattern: Arc<Pattern>,
    values: Vec<T>,
    version: Version,
}

impl<T: PartialEq> PartialEq for Csr<T> {
    fn eq(&self, other: &Self) -> bool {
        self.pattern == other.pattern && self.values == other.values
    }
}

/// A borrowed matrix by rows: the caller's own arrays, checked once, never copied.
///
/// ```
/// use krylith::CsrRef;
/// let (row_ptr, col_idx, values) = ([0, 1, 3], [0, 0, 1], [4.0, 1.0, 5.0]);
/// let a = CsrRef::new(2, 2, &row_ptr, &col_idx, &values)?;
/// assert_eq!(a.diagonal()?, [4.0, 5.0]);
/// # Ok::<(), krylith::MatrixError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CsrRef<'a, T> {
    nrows: usize,
    ncols: usize,
    row_ptr: &'a [usize],
    col_idx: &'a [u32],
    values: &'a [T],
}

impl<T: Scalar> Csr<T> {
    /// A matrix from raw parts, every property checked; columns must be strictly increasing in each row.
    pub fn new(
        nrows: usize,
        ncols: usize,
        row_ptr: Vec<usize>,
        col_idx: Vec<u32>,
        values: Vec<T>,
    ) -> Result<Self, MatrixError> {
        Self::with_pattern(Arc::new(Pattern::new(nrows, ncols, row_ptr, col_idx)?), values)
    }

    /// A matrix of a given pattern.
    pub fn with_pattern(pattern: Arc<Pattern>, values: Vec<T>) -> Result<Self, MatrixError> {
        check_length("values", pattern.nnz(), values.len())?;
        Ok(Self::trusted(pattern, values))
    }

    /// A matrix from raw parts whose columns may be in any order within a row; duplicates are summed in the order given.
    pub fn from_unsorted(
        nrows: usize,
        ncols: usize,
        row_ptr: Vec<usize>,
        col_idx: Vec<u32>,
        values: Vec<T>,
    ) -> Result<Self, MatrixError> {
        check_length("values", col_idx.len(), values.len())?;
        check_rows(nrows, ncols, &row_ptr, col_idx.len())?;
        check_columns(ncols, &row_ptr, &col_idx, Order::Any)?;
        Ok(sort_and_sum(nrows, ncols, row_ptr, col_idx, values))
    }

    /// A matrix from entries (row, column, value) in any order; those at the same place are summed in the order given.
    pub fn from_triplets(
        nrows: usize,
        ncols: usize,
        rows: &[u32],
        columns: &[u32],
        values: &[T],
    ) -> Result<Self, MatrixError> {
        check_dimensions(nrows as u64, ncols as u64)?;
        check_length("columns", rows.len(), columns.len())?;
        check_length("values", rows.len(), values.len())?;
        if let Some(entry) = first_outside(rows, nrows) {
            return Err(MatrixError::RowOutOfRange { entry, row: rows[entry], nrows });
        }
        if let Some(entry) = first_outside(columns, ncols) {
            let (row, column) = (rows[entry] as usize, columns[entry]);
            return Err(MatrixError::ColumnOutOfRange { row, column, ncols });
        }
        assemble(nrows, ncols, &Triplets { rows, columns, values })
    }

    /// A matrix built row by row, in parallel: `length(i)` says how many entries row `i` has, `fill(i, columns, values)`
    /// writes them. More entries than columns, columns out of order within a row, or past `ncols`, are an error.
    ///
    /// ```
    /// use krylith::Csr;
    /// // The 1D Laplacian.
    /// let n = 1000;
    /// let a = Csr::from_rows(
    ///     n,
    ///     n,
    ///     |i| 1 + usize::from(i > 0) + usize::from(i + 1 < n),
    ///     |i, columns, values| {
    ///         let mut k = 0;
    ///         for (j, v) in [(i.wrapping_sub(1), -1.0), (i, 2.0), (i + 1, -1.0)] {
    ///             if j < n {
    ///                 (columns[k], values[k]) = (j as u32, v);
    ///                 k += 1;
    ///             }
    ///         }
    ///     },
    /// )?;
    /// assert_eq!(a.nnz(), 2998);
    /// # Ok::<(), krylith::MatrixError>(())
    /// ```
    pub fn from_rows(
        nrows: usize,
        ncols: usize,
        length: impl Fn(usize) -> usize + Sync,
        fill: impl Fn(usize, &mut [u32], &mut [T]) + Sync,
    ) -> Result<Self, MatrixError> {
        let lengths = |first: usize, piece: &mut [usize]| {
            for (i, own) in (first..).zip(piece) {
                *own = length(i);
            }
        };
        let rows = |first: usize, ptr: &[usize], columns: &mut [u32], values: &mut [T]| {
            for (i, w) in (first..).zip(ptr.windows(2)) {
                let range = w[0] - ptr[0]..w[1] - ptr[0];
                fill(i, &mut columns[range.clone()], &mut values[range]);
            }
        };
        Self::from_row_blocks(nrows, ncols, &lengths, &rows)
    }

    /// [`from_rows`](Self::from_rows) with functions of several rows, so that it is compiled once.
    fn from_row_blocks(
        nrows: usize,
        ncols: usize,
        lengths: &(dyn Fn(usize, &mut [usize]) + Sync),
        fill: &FillRows<'_, T>,
    ) -> Result<Self, MatrixError> {
        check_dimensions(nrows as u64, ncols as u64)?;
        let mut row_ptr = filled(0usize, nrows + 1)?;
        parallel::for_each_piece_mut(&mut row_ptr[1..], parallel::PIECE, lengths);
        for row in 0..nrows {
            let length = row_ptr[row + 1];
            if length > ncols {
                return Err(MatrixError::RowTooLong { row, length, ncols });
            }
            row_ptr[row + 1] = row_ptr[row].saturating_add(length);
        }
        let nnz = row_ptr[nrows];
        let (mut col_idx, mut values) = (filled(0u32, nnz)?, filled(T::ZERO, nnz)?);
        for_each_row_block_mut(&row_ptr, &mut col_idx, &mut values, fill);
        check_columns(ncols, &row_ptr, &col_idx, Order::Strict)?;
        let pattern = Pattern::trusted(nrows, ncols, row_ptr, col_idx);
        Ok(Self::trusted(Arc::new(pattern), values))
    }

    /// The identity of order `n`.
    pub fn identity(n: usize) -> Result<Self, MatrixError> {
        Self::from_rows(n, n, |_| 1, |i, c, v| (c[0], v[0]) = (i as u32, T::ONE))
    }

    pub(crate) fn trusted(pattern: Arc<Pattern>, values: Vec<T>) -> Self {
        debug_assert_eq!(pattern.nnz(), values.len());
        Csr { pattern, values, version: Version::new() }
    }

    /// The same for a matrix that is stored once and forgotten: nobody asks whether its values were seen before.
    pub(crate) fn without_hash(self) -> Self {
        Csr { version: Version::without_hash(), ..self }
    }

    /// The pattern, to be shared with `Arc::clone`.
    pub fn pattern(&self) -> &Arc<Pattern> {
        &self.pattern
    }

    /// The values, row by row.
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// The values, to be changed in place: the pattern stays. A [`Prepared`](crate::solver::Prepared) solve compares the values
    /// with those it factored after this was called.
    pub fn values_mut(&mut self) -> &mut [T] {
        self.version = Version::new();
        &mut self.values
    }

    /// The pattern, and the values to be changed in place.
    pub(crate) fn parts_mut(&mut self) -> (&Pattern, &mut [T]) {
        self.version = Version::new();
        (&self.pattern, &mut self.values)
    }

    pub(super) fn version(&self) -> &Version {
        &self.version
    }

    /// Pattern and values.
    pub fn into_parts(self) -> (Arc<Pattern>, Vec<T>) {
        (self.pattern, self.values)
    }

    /// Number of rows.
    pub fn nrows(&self) -> usize {
        self.pattern.nrows()
    }

    /// Number of columns.
    pub fn ncols(&self) -> usize {
        self.pattern.ncols()
    }

    /// Number of entries, explicit zeros included.
    pub fn nnz(&self) -> usize {
        self.pattern.nnz()
    }

    /// Columns and values of row `i`.
    pub fn row(&self, i: usize) -> (&[u32], &[T]) {
        let range = self.pattern.row_range(i);
        (&self.pattern.col_idx()[range.clone()], &self.values[range])
    }

    /// The entry (i, j); zero where the pattern has none.
    pub fn get(&self, i: usize, j: usize) -> T {
        self.pattern.find(i, j).map_or(T::ZERO, |k| self.values[k])
    }

    /// The borrowed view of this matrix, which has the algorithms.
    pub fn view(&self) -> CsrRef<'_, T> {
        CsrRef {
            nrows: self.nrows(),
            ncols: self.ncols(),
            row_ptr: self.pattern.row_ptr(),
            col_idx: self.pattern.col_idx(),
            values: &self.values,
        }
    }

    /// y = A x; see [`CsrRef::mul_vec`].
    pub fn mul_vec(&self, x: &[T], y: &mut [T]) -> Result<(), MatrixError> {
        self.view().mul_vec(x, y)
    }

    /// Aᵀ; see [`CsrRef::transpose`].
    pub fn transpose(&self) -> Csr<T> {
        self.view().transpose()
    }

    /// How A compares with Aᵀ; see [`CsrRef::symmetry`].
    pub fn symmetry(&self) -> Symmetry {
        self.view().symmetry()
    }

    /// How far A is from Aᵀ; see [`CsrRef::asymmetry`].
    pub fn asymmetry(&self) -> f64 {
        self.view().asymmetry()
    }

    /// The diagonal; see [`CsrRef::diagonal`].
    pub fn diagonal(&self) -> Result<Vec<T>, MatrixError> {
        self.view().diagonal()
    }

    /// The same matrix with another kind of number, each value rounded to nearest; the pattern is shared.
    pub fn cast<U: Scalar>(&self) -> Csr<U> {
        let mut values = vec![U::ZERO; self.values.len()];
        parallel::for_each_piece_mut(&mut values, parallel::PIECE, |first, piece| {
            for (to, v) in piece.iter_mut().zip(&self.values[first..]) {
                *to = U::from_f64(v.to_f64());
            }
        });
        Csr::trusted(Arc::clone(&self.pattern), values)
    }

    /// Bytes held by the arrays.
    pub fn bytes(&self) -> usize {
        self.pattern.bytes() + size_of_val(self.values.as_slice())
    }
}

impl<'a, T: Scalar> CsrRef<'a, T> {
    /// A view of raw parts, every property checked; columns must be strictly increasing in each row.
    pub fn new(
        nrows: usize,
        ncols: usize,
        row_ptr: &'a [usize],
        col_idx: &'a [u32],
        values: &'a [T],
    ) -> Result<Self, MatrixError> {
        check_rows(nrows, ncols, row_ptr, col_idx.len())?;
        check_columns(ncols, row_ptr, col_idx, Order::Strict)?;
        check_length("values", col_idx.len(), values.len())?;
        Ok(CsrRef { nrows, ncols, row_ptr, col_idx, values })
    }

    /// Number of rows.
    pub fn nrows(&self) -> usize {
        self.nrows
    }

    /// Number of columns.
    pub fn ncols(&self) -> usize {
        self.ncols
    }

    /// Number of entries, explicit zeros included.
    pub fn nnz(&self) -> usize {
        self.col_idx.len()
    }

    /// Where each row starts.
    pub fn row_ptr(&self) -> &'a [usize] {
        self.row_ptr
    }

    /// The columns, row by row.
    pub fn col_idx(&self) -> &'a [u32] {
        self.col_idx
    }

    /// The values, row by row.
    pub fn values(&self) -> &'a [T] {
        self.values
    }

    /// Columns and values of row `i`.
    #[inline]
    pub fn row(&self, i: usize) -> (&'a [u32], &'a [T]) {
        let range = self.row_ptr[i]..self.row_ptr[i + 1];
        (&self.col_idx[range.clone()], &self.values[range])
    }

    /// The entry (i, j), if the pattern has it.
    #[inline]
    pub fn find(&self, i: usize, j: usize) -> Option<T> {
        let (columns, values) = self.row(i);
        columns.binary_search(&u32::try_from(j).ok()?).ok().map(|k| values[k])
    }

    /// A matrix of its own with the same arrays.
    pub fn to_owned(&self) -> Csr<T> {
        let pattern = Pattern::trusted(self.nrows, self.ncols, self.row_ptr.to_vec(), self.col_idx.to_vec());
        Csr::trusted(Arc::new(pattern), self.values.to_vec())
    }

    /// y = A x, rows in parallel; each row is summed from left to right, so the result is the same on any number of
    /// threads.
    pub fn mul_vec(&self, x: &[T], y: &mut [T]) -> Result<(), MatrixError> {
        check_length("x", self.ncols, x.len())?;
        check_length("y", self.nrows, y.len())?;
        parallel::set(y, |i| {
            let (columns, values) = self.row(i);
            let mut sum = T::ZERO;
            for (&j, &v) in columns.iter().zip(values) {
                sum += v * x[j as usize];
            }
            sum
        });
        Ok(())
    }

    /// The diagonal of a square matrix, zero where the pattern has no entry.
    pub fn diagonal(&self) -> Result<Vec<T>, MatrixError> {
        self.require_square()?;
        Ok(parallel::map_rows(self.nrows, |i| self.find(i, i).unwrap_or(T::ZERO)))
    }

    /// `Err(NotSquare)` unless rows = columns.
    pub fn require_square(&self) -> Result<(), MatrixError> {
        if self.nrows == self.ncols {
            Ok(())
        } else {
            Err(MatrixError::NotSquare { nrows: self.nrows, ncols: self.ncols })
        }
    }
}

/// The position of the first index that is not below `count`.
fn first_outside(indices: &[u32], count: usize) -> Option<usize> {
    // The largest one is found with vector instructions; mostly it is below, and the first one need not be looked for.
    let parts: Vec<&[u32]> = indices.chunks(1 << 14).collect();
    let largest_of = |k: usize| parts[k].iter().fold(0, |a, &b| a.max(b));
    let largest = parallel::map(parts.len(), largest_of).into_iter().max()?;
    if (largest as usize) < count {
        return None;
    }
    parallel::first(indices.len(), |k| indices[k] as usize >= count)
}

pub(crate) fn check_length(what: &'static str, expected: usize, found: usize) -> Result<(), MatrixError> {
    if expected == found { Ok(()) } else { Err(MatrixError::Length { what, expected, found }) }
}
