//! Rows of a square matrix by number, of which other processes may have some.

use super::{Csr, Pattern};
use crate::space::Process;
use std::borrow::Cow;
use std::ops::Range;

/// The rows of a square pattern. Where several processes have parts of them, all ask for the same rows in the same order.
pub(crate) trait Rows {
    /// All rows.
    fn count(&self) -> usize;

    /// All entries.
    fn entries(&self) -> usize;

    /// The columns of a row, whoever has it.
    fn columns(&self, row: usize) -> Cow<'_, [u32]>;

    /// Announces rows that will be asked for, so that they are sent together.
    fn announce(&self, _rows: impl Iterator<Item = usize>) {}

    /// The rows of this process in units of `unit` rows each: the units whose first row it has.
    fn own(&self, unit: usize) -> OwnUnits<'_>;

    /// Which of the processes that have parts of the rows this is.
    fn process(&self) -> Process {
        Process::ALONE
    }

    /// The process that has a row.
    fn owner(&self, _row: usize) -> usize {
        0
    }

    /// Sends message k to process k, and returns what each has sent to this one.
    fn exchange(&self, messages: Vec<Vec<u64>>) -> Vec<Vec<u64>> {
        messages
    }

    /// What each process has, in their order.
    fn everyones(&self, own: Vec<u64>) -> Vec<Vec<u64>> {
        self.exchange(vec![own; self.process().count])
    }
}

/// The same of a matrix.
pub(crate) trait ValuedRows: Rows {
    /// The values of a row, whoever has it.
    fn values(&self, row: usize) -> Cow<'_, [f64]>;

    /// The first rows, in the columns of all.
    fn first_rows(&self, most: usize) -> Cow<'_, Csr<f64>>;
}

/// Units of rows that one process has.
pub(crate) struct OwnUnits<'a> {
    pattern: Cow<'a, Pattern>,
    /// The number of the first row of the pattern.
    first: usize,
    /// Their numbers.
    pub(crate) units: Range<usize>,
}

impl<'a> OwnUnits<'a> {
    /// The pattern has the rows of these units, the first of which has this number.
    pub(crate) fn new(pattern: Cow<'a, Pattern>, first: usize, units: Range<usize>) -> Self {
        OwnUnits { pattern, first, units }
    }

    /// The columns of a row of these units.
    #[inline]
    pub(crate) fn row(&self, row: usize) -> &[u32] {
        self.pattern.row(row - self.first)
    }

    /// Finds the rows that repeat the one before: once, and not by several threads at the same time.
    pub(crate) fn find_repeating(&self) {
        self.pattern.repeats();
    }

    /// How many rows from the first on repeat the one before, without a gap.
    #[inline]
    pub(crate) fn repeating(&self, rows: Range<usize>) -> usize {
        self.pattern.repeats().run(rows.start - self.first..rows.end - self.first)
    }
}

/// Whether this holds for all processes.
pub(crate) fn all_hold(rows: &impl Rows, own: bool) -> bool {
    rows.everyones(vec![u64::from(own)]).iter().all(|theirs| theirs == &[1])
}

impl Rows for Pattern {
    fn count(&self) -> usize {
        self.nrows()
    }

    fn entries(&self) -> usize {
        self.nnz()
    }

    fn columns(&self, row: usize) -> Cow<'_, [u32]> {
        Cow::Borrowed(self.row(row))
    }

    fn own(&self, unit: usize) -> OwnUnits<'_> {
        OwnUnits::new(Cow::Borrowed(self), 0, 0..self.nrows() / unit)
    }
}

impl Rows for Csr<f64> {
    fn count(&self) -> usize {
        self.nrows()
    }

    fn entries(&self) -> usize {
        self.nnz()
    }

    fn columns(&self, row: usize) -> Cow<'_, [u32]> {
        Rows::columns(&**self.pattern(), row)
    }

    fn own(&self, unit: usize) -> OwnUnits<'_> {
        Rows::own(&**self.pattern(), unit)
    }
}

impl ValuedRows for Csr<f64> {
    fn values(&self, row: usize) -> Cow<'_, [f64]> {
        Cow::Borrowed(self.row(row).1)
    }

    fn first_rows(&self, _most: usize) -> Cow<'_, Csr<f64>> {
        Cow::Borrowed(self)
    }
}
