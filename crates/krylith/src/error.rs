//! What can go wrong, one type a stage; every error carries the place.
//!
//! Rows and columns are counted from 0, in data and in messages, and messages say so. [`counted_from_one`] rewrites a message for readers who count
//! as Matrix Market files do.

use thiserror::Error;

/// What follows a row or a column in a message.
const FROM_ZERO: &str = "counted from 0)";

/// A row in a message.
pub(crate) fn row_in_words(row: usize) -> String {
    format!("row {row} ({FROM_ZERO}")
}

/// The place of an entry in a message.
pub(crate) fn place_in_words(row: usize, column: usize) -> String {
    format!("row {row}, column {column} (both {FROM_ZERO}")
}

/// A message of this library, in which rows and columns are counted from 0, with the same rows and columns counted from 1.
///
/// ```
/// use krylith::report::counted_from_one;
/// let error = krylith::SetupError::MissingDiagonal { row: 2 };
/// assert_eq!(error.to_string(), "row 2 (counted from 0) has no diagonal entry");
/// assert_eq!(counted_from_one(&error.to_string()), "row 3 (counted from 1) has no diagonal entry");
/// ```
pub fn counted_from_one(message: &str) -> String {
    let (mut text, mut rest) = (String::with_capacity(message.len()), message);
    while let Some((before, behind)) = rest.split_once(FROM_ZERO) {
        let one = before.strip_suffix(" (").and_then(|words| Some(format!("{} (", one_more(words)?)));
        let two = || {
            let (row, column) = before.strip_suffix(" (both ")?.rsplit_once(", ")?;
            Some(format!("{}, {} (both ", one_more(row)?, one_more(column)?))
        };
        match one.or_else(two) {
            Some(raised) => text += &format!("{raised}counted from 1)"),
            None => text += &format!("{before}{FROM_ZERO}"),
        }
        rest = behind;
    }
    text + rest
}

/// Words that end in the number of a row or a column, with the next number.
fn one_more(words: &str) -> Option<String> {
    let name = words.trim_end_matches(|c: char| c.is_ascii_digit());
    let is_place = name.ends_with("row ") || name.ends_with("column ");
    let number: usize = words[name.len()..].parse().ok().filter(|_| is_place)?;
    Some(format!("{name}{}", number.checked_add(1)?))
}

/// Arrays that do not form a matrix, or an operation that this matrix does not allow.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MatrixError {
    /// More rows or columns than 32-bit indices can name.
    #[error("{count} {what} exceed the limit of 2^32 rows or columns of one local matrix")]
    TooLarge {
        /// `"rows"` or `"columns"`.
        what: &'static str,
        /// How many were asked for.
        count: u64,
    },
    /// A row of more entries than there are columns.
    #[error("{}: {length} entries are announced for {ncols} columns", row_in_words(*row))]
    RowTooLong {
        /// The row (counted from 0).
        row: usize,
        /// Entries announced.
        length: usize,
        /// Columns.
        ncols: usize,
    },
    /// No memory for what was asked for.
    #[error("no memory for {bytes} bytes")]
    OutOfMemory {
        /// Bytes of the array, or of all arrays, that there is no memory for.
        bytes: u64,
    },
    /// A plan for more threads than there can be.
    #[error("{threads} threads; at most {most} can work together")]
    TooManyThreads {
        /// How many were asked for.
        threads: usize,
        /// At most so many.
        most: usize,
    },
    /// The row pointer does not have one entry more than there are rows.
    #[error("row_ptr has {found} entries; {expected} rows + 1 were expected", expected = .expected - 1)]
    RowPtrLength {
        /// Rows + 1.
        expected: usize,
        /// Its length.
        found: usize,
    },
    /// The row pointer starts elsewhere than at zero.
    #[error("row_ptr starts with {first}; it must start with 0")]
    RowPtrStart {
        /// Its first entry.
        first: usize,
    },
    /// The row pointer goes down.
    #[error("row_ptr decreases after {}", row_in_words(*row))]
    RowPtrDecreases {
        /// The first row of negative length (counted from 0).
        row: usize,
    },
    /// The row pointer ends elsewhere than at the number of column indices.
    #[error("row_ptr ends with {end}, but there are {nnz} column indices")]
    RowPtrEnd {
        /// Its last entry.
        end: usize,
        /// The number of column indices.
        nnz: usize,
    },
    /// A column index past the last column.
    #[error("{} is outside of the {ncols} columns", place_in_words(*row, *column as usize))]
    ColumnOutOfRange {
        /// The row (counted from 0).
        row: usize,
        /// The column index found.
        column: u32,
        /// The number of columns.
        ncols: usize,
    },
    /// A row index past the last row.
    #[error("entry {entry}: {} is outside of the {nrows} rows", row_in_words(*row as usize))]
    RowOutOfRange {
        /// The position of the entry (counted from 0).
        entry: usize,
        /// The row index found.
        row: u32,
        /// The number of rows.
        nrows: usize,
    },
    /// An entry for a matrix whose pattern has no place for it.
    #[error("entry {entry}: the pattern has no place at {}", place_in_words(*row, *column as usize))]
    NotInPattern {
        /// The position of the entry (counted from 0).
        entry: usize,
        /// The row (counted from 0).
        row: usize,
        /// The column (counted from 0).
        column: u32,
    },
    /// Columns of a row out of order, or one of them twice.
    #[error(
        "columns are not strictly increasing at {}; `Csr::from_unsorted` sorts them and sums duplicates",
        place_in_words(*row, *column as usize)
    )]
    ColumnsUnsorted {
        /// The row (counted from 0).
        row: usize,
        /// The column that does not exceed its predecessor.
        column: u32,
    },
    /// Two arrays or operands whose lengths should agree.
    #[error("{what}: length {found}, expected {expected}")]
    Length {
        /// Which array.
        what: &'static str,
        /// The length it should have.
        expected: usize,
        /// The length it has.
        found: usize,
    },
    /// A square matrix was needed.
    #[error("a square matrix is needed, this one is {nrows} x {ncols}")]
    NotSquare {
        /// Rows.
        nrows: usize,
        /// Columns.
        ncols: usize,
    },
    /// Rows or columns that are no multiple of the size of blocks.
    #[error("{count} {what} are not a multiple of the block size {size}")]
    NotInBlocks {
        /// `"rows"` or `"columns"`.
        what: &'static str,
        /// How many there are.
        count: usize,
        /// Rows of a block.
        size: usize,
    },
    /// A block size that there is no code for.
    #[error("blocks have 1 to 8 rows, not {size}")]
    BlockSize {
        /// Rows of a block.
        size: usize,
    },
    /// An entry on the wrong side of the diagonal.
    #[error("the entry in {} is outside of the {triangle} triangle", place_in_words(*row, *column as usize))]
    NotTriangular {
        /// The row (counted from 0).
        row: usize,
        /// The column (counted from 0).
        column: u32,
        /// `"lower"` or `"upper"`.
        triangle: &'static str,
    },
    /// A list of indices that is not a permutation.
    #[error("not a permutation: position {position} holds {index}, {why}")]
    NotAPermutation {
        /// The first offending position.
        position: usize,
        /// The index there.
        index: u32,
        /// `"outside of the range"` or `"seen before"`.
        why: &'static str,
    },
}

/// A preconditioner could not be set up.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum SetupError {
    /// The matrix does not have the form the recipe needs.
    #[error(transparent)]
    Matrix(#[from] MatrixError),
    /// The diagonal entry of a row is missing.
    #[error("{} has no diagonal entry", row_in_words(*row))]
    MissingDiagonal {
        /// The smallest such row.
        row: usize,
    },
    /// A pivot that is zero, of the wrong sign, or not a number.
    #[error("bad pivot {value:e} in {}", row_in_words(*row))]
    BadPivot {
        /// The smallest such row.
        row: usize,
        /// Its value.
        value: f64,
    },
    /// An entry of A that is infinite or NaN.
    #[error("A has {value} in {}; every number must be finite", place_in_words(*row, *column))]
    NotFinite {
        /// The row of the first one, counted from 0.
        row: usize,
        /// Its column, counted from 0.
        column: usize,
        /// The number.
        value: f64,
    },
    /// An incomplete Cholesky factor was asked of a pattern that is not symmetric.
    #[error(
        "the pattern is not symmetric, as incomplete Cholesky needs it; take an incomplete LU, or store the entries across the \
         diagonal as well, with zeros if need be"
    )]
    PatternNotSymmetric,
    /// `refactor` was given a matrix of another pattern than `analyze`.
    #[error("the pattern differs from the one that was analyzed; call `analyze` again")]
    PatternChanged,
    /// More memory than may be taken.
    #[error("{} are needed, more than the limit of {}", size(*.predicted), size(*.limit))]
    MemoryLimit {
        /// Bytes that it would take, predicted before they are allocated.
        predicted: u64,
        /// Bytes that it may take.
        limit: u64,
    },
    /// The place where the vectors live failed.
    #[error(transparent)]
    Backend(#[from] BackendError),
}

impl SetupError {
    /// The same, naming the row of A, where rows were permuted: `rows[i]` is the row of A at place i.
    pub(crate) fn in_order_of_a(self, rows: Option<&[u32]>) -> Self {
        match (self, rows) {
            (SetupError::BadPivot { row, value }, Some(rows)) => {
                SetupError::BadPivot { row: rows[row] as usize, value }
            }
            (other, _) => other,
        }
    }

    /// The error about a part of a matrix that begins at this row and column, with the numbers of the whole matrix.
    pub(crate) fn of_part(self, [first_row, first_column]: [usize; 2]) -> Self {
        match self {
            SetupError::NotFinite { row, column, value } => {
                SetupError::NotFinite { row: first_row + row, column: first_column + column, value }
            }
            other => other,
        }
    }
}

/// The place where vectors live (threads, a device, other processes) could not do what was asked.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BackendError {
    /// Operands of different sizes.
    #[error("{what}: sizes differ ({left} and {right})")]
    Size {
        /// The operation.
        what: &'static str,
        /// The size of one operand.
        left: String,
        /// The size of the other.
        right: String,
    },
    /// The operator cannot do this, such as apply its transpose.
    #[error("this operator does not support {what}")]
    Unsupported {
        /// What was asked.
        what: &'static str,
    },
    /// A device or another process failed.
    #[error("{what}")]
    Failed {
        /// Its own words.
        what: String,
    },
    /// There is no device of the kind that was asked for.
    #[error("{wanted}: {why}")]
    NoDevice {
        /// What was asked for.
        wanted: String,
        /// What was looked for and not found, and what to install.
        why: String,
    },
    /// A device has no memory for what was asked for.
    #[error("{device} has no memory for {}", size(*.bytes))]
    OutOfMemory {
        /// The name of the device.
        device: String,
        /// Bytes that were asked for.
        bytes: u64,
    },
    /// A device stopped working; what was in its memory is gone.
    #[error("{device} was lost: {call} ended with code {code}; start again, or solve on threads")]
    DeviceLost {
        /// The name of the device.
        device: String,
        /// The call of the driver that reported it.
        call: &'static str,
        /// The driver's code.
        code: i32,
    },
    /// The kernels could not be compiled for a device.
    #[error("the kernels could not be compiled for {device}: {log}")]
    Compile {
        /// The name of the device.
        device: String,
        /// What its compiler said.
        log: String,
    },
}

/// A solve that could not begin, or was cut short by the place it ran in.
/// Not to converge is an outcome, not an error.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum SolveError {
    /// The values of A are not those that were factored, or factoring failed.
    #[error(
        "there is no factor of this matrix: call `refactor` first, or allow it with `Solver::allow_stale_factor`"
    )]
    StaleFactor,
    /// A number of b or of the guess that is infinite or NaN.
    #[error("{what} has {value} in {}; every number must be finite", row_in_words(*row))]
    NotFinite {
        /// `"b"` or `"the guess x"`.
        what: &'static str,
        /// The row of the first one, counted from 0.
        row: usize,
        /// The number.
        value: f64,
    },
    /// An option that no solve can have.
    #[error("{name} is {value}; {needed}")]
    Option {
        /// Which one.
        name: &'static str,
        /// What it is.
        value: String,
        /// What it must be.
        needed: String,
    },
    /// The preconditioner.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The place where the vectors live.
    #[error(transparent)]
    Backend(#[from] BackendError),
}

/// Bytes for people: 1.23 GB.
fn size(bytes: u64) -> String {
    let units = [(1e9, "GB"), (1e6, "MB"), (1e3, "kB")];
    match units.iter().find(|(unit, _)| bytes as f64 >= *unit) {
        Some((unit, name)) => format!("{:.2} {name}", bytes as f64 / unit),
        None => format!("{bytes} bytes"),
    }
}
