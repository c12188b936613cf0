//! Entries one by one, as a loop over elements produces them, and the matrix that they add up to.
//!
//! The builder keeps the entries (row, column, value) in three arrays. [`build`](TripletBuilder::build) finds the pattern and sums
//! by the counting sort of `assemble`. [`assemble_into`](TripletBuilder::assemble_into) builds too, and copies the sums into the
//! pattern that is there already, row by row. Looking each entry up in the pattern instead would need no second matrix, but where
//! elements come in no order it takes six times as long: the processor waits for each lookup, and not for a store of the sort.
//!
//! Storage: 8 bytes and a value per entry, duplicates included.
//!
//! Reference: T. A. Davis, Direct Methods for Sparse Linear Systems, SIAM 2006, section 2.4.

use super::assemble::{Triplets, assemble};
use super::pattern::check_dimensions;
use super::{Csr, Pattern, check_length};
use crate::error::MatrixError;
use crate::memory::large_pages;
use crate::scalar::Scalar;

/// Collects entries in any order and builds a matrix of them; those at the same place are summed.
///
/// Heat in a rod of linear elements, over two steps of time with a conductivity that changes:
///
/// ```
/// use krylith::TripletBuilder;
/// let elements = 100;
/// let add_elements = |builder: &mut TripletBuilder<f64>, conductivity: f64| {
///     for e in 0..elements {
///         let k = conductivity * elements as f64;
///         for (a, row) in [[k, -k], [-k, k]].into_iter().enumerate() {
///             for (b, value) in row.into_iter().enumerate() {
///                 builder.push(e + a, e + b, value);
///             }
///         }
///     }
/// };
/// let mut builder = TripletBuilder::with_capacity(elements + 1, elements + 1, 4 * elements);
/// add_elements(&mut builder, 1.0);
/// let mut a = builder.build()?;
/// assert_eq!((a.nnz(), a.get(0, 0), a.get(1, 1)), (301, 100.0, 200.0));
///
/// // The next step: other values, the same pattern.
/// builder.clear();
/// add_elements(&mut builder, 3.0);
/// builder.assemble_into(&mut a)?;
/// assert_eq!((a.nnz(), a.get(0, 0), a.get(1, 1)), (301, 300.0, 600.0));
/// # Ok::<(), krylith::MatrixError>(())
/// ```
#[derive(Debug, Clone)]
pub struct TripletBuilder<T> {
    nrows: usize,
    ncols: usize,
    rows: Vec<u32>,
    columns: Vec<u32>,
    values: Vec<T>,
    /// The first index out of range.
    fault: Option<MatrixError>,
}

impl<T: Scalar> TripletBuilder<T> {
    /// A builder without entries, for a matrix of these dimensions.
    pub fn new(nrows: usize, ncols: usize) -> Self {
        TripletBuilder {
            nrows,
            ncols,
            rows: Vec::new(),
            columns: Vec::new(),
            values: Vec::new(),
            fault: None,
        }
    }

    /// A builder without entries, with room for so many, duplicates included. If there is no memory for them all at once, room is
    /// made as they come.
    pub fn with_capacity(nrows: usize, ncols: usize, entries: usize) -> Self {
        let mut builder = Self::new(nrows, ncols);
        builder.reserve(entries);
        large_pages::advise_huge_pages(builder.rows.spare_capacity_mut());
        large_pages::advise_huge_pages(builder.columns.spare_capacity_mut());
        large_pages::advise_huge_pages(builder.values.spare_capacity_mut());
        builder
    }

    /// Room for more entries, if there is memory for it.
    fn reserve(&mut self, entries: usize) {
        // Without it, `push` makes room.
        let _ = self.rows.try_reserve(entries);
        let _ = self.columns.try_reserve(entries);
        let _ = self.values.try_reserve(entries);
    }

    /// Adds an entry. An index out of range is remembered: [`build`](Self::build) and [`assemble_into`](Self::assemble_into)
    /// return the first one as an error, until [`clear`](Self::clear).
    #[inline]
    pub fn push(&mut self, i: usize, j: usize, value: T) {
        match (u32::try_from(i), u32::try_from(j)) {
            (Ok(row), Ok(column)) if i < self.nrows && j < self.ncols => {
                self.rows.push(row);
                self.columns.push(column);
                self.values.push(value);
            }
            _ => self.remember(i, j),
        }
    }

    /// Keeps the error of an entry that is out of range, if it is the first.
    #[cold]
    fn remember(&mut self, i: usize, j: usize) {
        let (entry, nrows, ncols) = (self.len(), self.nrows, self.ncols);
        // The errors hold indices of 32 bits; a larger one is reported as the largest of them.
        let reported = |index: usize| u32::try_from(index).unwrap_or(u32::MAX);
        self.fault.get_or_insert(if i < nrows {
            MatrixError::ColumnOutOfRange { row: i, column: reported(j), ncols }
        } else {
            MatrixError::RowOutOfRange { entry, row: reported(i), nrows }
        });
    }

    /// Number of rows.
    pub fn nrows(&self) -> usize {
        self.nrows
    }

    /// Number of columns.
    pub fn ncols(&self) -> usize {
        self.ncols
    }

    /// Number of entries within range, duplicates included.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Forgets the entries, and an index out of range; the memory is kept for the next ones.
    pub fn clear(&mut self) {
        self.rows.clear();
        self.columns.clear();
        self.values.clear();
        self.fault = None;
    }

    /// The matrix of the entries, duplicates summed in the order in which they came. The entries stay.
    ///
    /// # Errors
    /// More than 2³² rows or columns; the first index out of range (an index of 2³² or more is reported as 2³² − 1); no memory.
    pub fn build(&self) -> Result<Csr<T>, MatrixError> {
        self.check()?;
        let entries = Triplets { rows: &self.rows, columns: &self.columns, values: &self.values };
        assemble(self.nrows, self.ncols, &entries)
    }

    /// The matrix of the entries, written over the values of `a`, whose pattern stays: the bits that [`build`](Self::build) gives,
    /// and 0 at places without an entry. Needs the memory of a second matrix meanwhile. Whoever has factored `a` notices.
    ///
    /// # Errors
    /// Those of `build`, other dimensions, and an entry where the pattern has no place; `a` is then left as it was.
    pub fn assemble_into(&self, a: &mut Csr<T>) -> Result<(), MatrixError> {
        self.check()?;
        check_length("rows", self.nrows, a.nrows())?;
        check_length("columns", self.ncols, a.ncols())?;
        let sums = self.build()?;
        if sums.pattern() != a.pattern() && !contains(a.pattern(), sums.pattern()) {
            return Err(self.first_outside(a.pattern()));
        }
        let (pattern, values) = a.parts_mut();
        for i in 0..self.nrows {
            let places = pattern.row_range(i);
            scatter_row(pattern.row(i), &mut values[places], sums.row(i));
        }
        Ok(())
    }

    /// The error that names the first entry without a place in the pattern; there must be one.
    fn first_outside(&self, pattern: &Pattern) -> MatrixError {
        let entry = (0..self.len())
            .find(|&k| pattern.find(self.rows[k] as usize, self.columns[k] as usize).is_none())
            .expect("a pattern that does not contain the entries lacks one of them");
        MatrixError::NotInPattern { entry, row: self.rows[entry] as usize, column: self.columns[entry] }
    }

    /// Dimensions that indices can name, and indices within them.
    fn check(&self) -> Result<(), MatrixError> {
        check_dimensions(self.nrows as u64, self.ncols as u64)?;
        self.fault.clone().map_or(Ok(()), Err)
    }
}

/// Whether every place of `part` is one of `whole`; both have the same number of rows.
fn contains(whole: &Pattern, part: &Pattern) -> bool {
    (0..part.nrows()).all(|i| {
        let mut places = whole.row(i).iter();
        part.row(i).iter().all(|column| places.any(|place| place == column))
    })
}

/// Writes a row over values of a pattern that contains it, with 0 elsewhere.
fn scatter_row<T: Scalar>(columns: &[u32], values: &mut [T], row: (&[u32], &[T])) {
    if columns.len() == row.0.len() {
        values.copy_from_slice(row.1);
        return;
    }
    let mut entries = row.0.iter().zip(row.1).peekable();
    for (column, value) in columns.iter().zip(values) {
        *value = entries.next_if(|&(j, _)| j == column).map_or(T::ZERO, |(_, &v)| v);
    }
}

impl<T: Scalar> Extend<(usize, usize, T)> for TripletBuilder<T> {
    fn extend<I: IntoIterator<Item = (usize, usize, T)>>(&mut self, entries: I) {
        let entries = entries.into_iter();
        self.reserve(entries.size_hint().0);
        entries.for_each(|(i, j, value)| self.push(i, j, value));
    }
}

impl<T: Scalar> Csr<T> {
    /// A matrix from entries (row, column, value) in any order; those at the same place are summed in the order given.
    /// [`TripletBuilder`] takes them one by one.
    ///
    /// ```
    /// use krylith::Csr;
    /// let a = Csr::from_entries(2, 2, (0..2).flat_map(|i| [(i, i, 2.0), (i, 1 - i, -1.0)]))?;
    /// assert_eq!(a.row(1), ([0, 1].as_slice(), [-1.0, 2.0].as_slice()));
    /// # Ok::<(), krylith::MatrixError>(())
    /// ```
    pub fn from_entries(
        nrows: usize,
        ncols: usize,
        entries: impl IntoIterator<Item = (usize, usize, T)>,
    ) -> Result<Self, MatrixError> {
        let mut builder = TripletBuilder::new(nrows, ncols);
        builder.extend(entries);
        builder.build()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::SeenValues;
    use crate::space::Threads;

    /// [ 3 0 ]
    /// [ 4 8 ]
    fn by_hand() -> TripletBuilder<f64> {
        let mut builder = TripletBuilder::new(2, 2);
        builder.extend([(1, 1, 8.0), (0, 0, 1.0), (1, 0, 4.0), (0, 0, 2.0)]);
        builder
    }

    #[test]
    fn by_hand_and_again() {
        let mut builder = by_hand();
        let mut a = builder.build().unwrap();
        let expected = Csr::new(2, 2, vec![0, 1, 3], vec![0, 0, 1], vec![3.0, 4.0, 8.0]).unwrap();
        assert_eq!(a, expected);
        assert_eq!(builder.build().unwrap(), expected);
        builder.clear();
        assert_eq!((builder.len(), builder.is_empty()), (0, true));
        builder.push(1, 0, -1.0);
        builder.assemble_into(&mut a).unwrap();
        assert_eq!(a.values().iter().map(|v| v.to_bits()).collect::<Vec<_>>(), [0, (-1f64).to_bits(), 0]);
    }

    #[test]
    fn negative_zeros_alone_stay_negative() {
        for values in [[-0.0f64, -0.0], [-0.0, 0.0], [0.0, -0.0], [1.0, -1.0], [-0.0, 2.0]] {
            let mut builder = TripletBuilder::new(1, 2);
            builder.extend(values.map(|v| (0, 1, v)));
            let mut a = Csr::new(1, 2, vec![0, 2], vec![0, 1], vec![5.0, 6.0]).unwrap();
            builder.assemble_into(&mut a).unwrap();
            let expected = builder.build().unwrap().values()[0];
            assert_eq!(a.values()[1].to_bits(), expected.to_bits(), "{values:?}");
            assert_eq!(a.values()[0].to_bits(), 0, "a place without an entry, {values:?}");
        }
    }

    #[test]
    fn the_first_index_out_of_range_is_told_until_cleared() {
        let mut builder = by_hand();
        let mut a = builder.build().unwrap();
        let before = a.clone();
        builder.push(2, 7, 1.0);
        builder.push(0, 2, 1.0);
        let error = MatrixError::RowOutOfRange { entry: 4, row: 2, nrows: 2 };
        assert_eq!(builder.build().unwrap_err(), error);
        assert_eq!(builder.assemble_into(&mut a).unwrap_err(), error);
        assert_eq!(a, before);
        builder.clear();
        builder.push(1, usize::MAX, 1.0);
        let error = MatrixError::ColumnOutOfRange { row: 1, column: u32::MAX, ncols: 2 };
        assert_eq!(builder.build().unwrap_err(), error);
        builder.clear();
        assert_eq!(builder.build().unwrap().nnz(), 0);
        let error = TripletBuilder::<f64>::new(1, (1 << 32) + 1).build().unwrap_err();
        assert_eq!(error, MatrixError::TooLarge { what: "columns", count: (1 << 32) + 1 });
    }

    #[test]
    fn what_does_not_fit_leaves_the_matrix_and_its_stamp() {
        let space = Threads::new(1);
        let mut builder = by_hand();
        let mut a = builder.build().unwrap();
        let (before, seen) = (a.clone(), SeenValues::of(&space, &a));
        builder.push(0, 1, 1.0);
        let error = MatrixError::NotInPattern { entry: 4, row: 0, column: 1 };
        assert_eq!(builder.assemble_into(&mut a).unwrap_err(), error);
        for (m, n, what) in [(3, 2, "rows"), (2, 3, "columns")] {
            let error = TripletBuilder::new(m, n).assemble_into(&mut a).unwrap_err();
            assert_eq!(error, MatrixError::Length { what, expected: 3, found: 2 });
        }
        assert_eq!(a, before);
        assert!(seen.has_stamp_of(&a));
        by_hand().assemble_into(&mut a).unwrap();
        assert_eq!(a, before);
        assert!(!seen.has_stamp_of(&a), "whoever has factored it looks at the values again");
    }

    #[test]
    fn room_that_cannot_be_had_is_made_as_entries_come() {
        let mut builder = TripletBuilder::with_capacity(1, 1, usize::MAX);
        builder.push(0, 0, 1.0f32);
        assert_eq!(builder.build().unwrap().values(), [1.0]);
    }
}
