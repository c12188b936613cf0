//! What can be wrong with a file.

use crate::error::MatrixError;
use std::path::PathBuf;
use thiserror::Error;

/// A file that could not be read or written.
#[derive(Debug, Error)]
#[error("{}: {source}", path.display())]
pub struct FileError {
    /// The file.
    pub path: PathBuf,
    /// What happened.
    #[source]
    pub source: FormatError,
}

/// What is wrong with the content of a file, or what the system said.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FormatError {
    /// The system refused.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// A line of text that is not what it should be.
    #[error("line {line}: {fault}")]
    Line {
        /// Counted from 1.
        line: u64,
        /// What is wrong with it.
        fault: LineFault,
    },
    /// Binary content that is not what it should be.
    #[error("not a valid {format} file: {what}")]
    Binary {
        /// `"npz"`, `"npy"` or `"PETSc binary"`.
        format: &'static str,
        /// What is wrong.
        what: String,
    },
    /// A file that another program shortened while it was read.
    #[error(
        "the file was shortened while it was read: it ended before byte {at} of {length}; read it again when it is complete"
    )]
    Shortened {
        /// A byte that was missing (counted from 0).
        at: u64,
        /// Bytes it had when it was opened.
        length: u64,
    },
    /// A file without content.
    #[error("the file is empty")]
    Empty,
    /// Compressed data that end too early or are damaged.
    #[error("the compressed data are damaged or cut short ({what}); copy the file again")]
    Compressed {
        /// What the decoder said.
        what: String,
    },
    /// A file whose first bytes belong to no known format.
    #[error(
        "unknown format: neither Matrix Market (its first line begins with %%MatrixMarket), \
         nor NumPy .npz or .npy, nor PETSc binary; a vector may also be plain text, one number per line"
    )]
    UnknownFormat,
    /// The content is compressed in a way that this build has left out.
    #[error("this build of krylith has no {feature}: it needs the cargo feature `{feature}`")]
    WithoutFeature {
        /// The feature.
        feature: &'static str,
    },
    /// A file name from which no format to write follows.
    #[error("cannot tell the format to write from the name; it may end in {endings}")]
    UnknownEnding {
        /// The endings there are.
        endings: &'static str,
    },
    /// A valid file of something else than was asked for.
    #[error("this file holds {found}, {wanted} is needed")]
    WrongObject {
        /// What it holds.
        found: &'static str,
        /// What was asked for.
        wanted: &'static str,
    },
    /// Compressed data that grow beyond what was allowed.
    #[error("expands to more than {limit} bytes, which is the limit")]
    Expansion {
        /// The bytes allowed.
        limit: u64,
    },
    /// Far more rows than entries.
    #[error("{rows} rows for {entries} entries, more empty ones than the limit")]
    MostlyEmpty {
        /// Rows.
        rows: u64,
        /// Entries.
        entries: u64,
    },
    /// A number that text has no word for.
    #[error(
        "entry ({row}, {column}) is {value}; text has finite numbers only, .npz, .npy and .petsc have others"
    )]
    NotFinite {
        /// The row (counted from 1).
        row: usize,
        /// The column (counted from 1).
        column: usize,
        /// Its value.
        value: f64,
    },
    /// Arrays that do not form a matrix.
    #[error(transparent)]
    Matrix(#[from] MatrixError),
}

/// What is wrong with a line of text.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LineFault {
    /// The first line is not `%%MatrixMarket matrix …`.
    #[error(
        "the first line must read `%%MatrixMarket matrix <coordinate|array> <real|integer|pattern> \
         <general|symmetric|skew-symmetric>`"
    )]
    Banner,
    /// An unknown word in the first line.
    #[error("unknown {what} `{word}`; known: {known}")]
    Word {
        /// Which of the words.
        what: &'static str,
        /// The word found.
        word: String,
        /// What it may be.
        known: &'static str,
    },
    /// A valid file that Krylith does not read.
    #[error("{what} matrices are not supported{advice}")]
    Unsupported {
        /// Such as "complex".
        what: &'static str,
        /// What to do instead.
        advice: &'static str,
    },
    /// The size line is missing.
    #[error("the file ends before the line of sizes")]
    NoSize,
    /// The size line does not hold what it should.
    #[error("the line of sizes must hold {expected}")]
    Size {
        /// The numbers expected.
        expected: &'static str,
    },
    /// A symmetric matrix that is not square.
    #[error("a {symmetry} matrix must be square, this one is {nrows} x {ncols}")]
    NotSquare {
        /// "symmetric" or "skew-symmetric".
        symmetry: &'static str,
        /// Rows.
        nrows: u64,
        /// Columns.
        ncols: u64,
    },
    /// More entries announced than the file has room for.
    #[error("{declared} entries are announced, but the size of the file allows at most {limit}")]
    TooManyDeclared {
        /// Entries announced.
        declared: u64,
        /// At most so many.
        limit: u64,
    },
    /// Far more rows or columns than entries.
    #[error(
        "{rows} rows or columns are announced for at most {entries} entries, more empty ones than the limit"
    )]
    MostlyEmpty {
        /// Rows or columns.
        rows: u64,
        /// Entries there can be.
        entries: u64,
    },
    /// A row or column that is not a positive whole number.
    #[error("the {what} index is not a whole number from 1 on")]
    Index {
        /// "row" or "column".
        what: &'static str,
    },
    /// A row or column past the end.
    #[error("{what} {index} is outside of 1..={limit}")]
    OutOfRange {
        /// "row" or "column".
        what: &'static str,
        /// The index found.
        index: u64,
        /// The last one.
        limit: u64,
    },
    /// A value that is missing or not a finite number.
    #[error("the value is missing or not a finite {field} number")]
    Value {
        /// "real" or "integer".
        field: &'static str,
    },
    /// Something behind the last number of a line.
    #[error("unexpected text after the last number")]
    Trailing,
    /// Several numbers on a line of a plain text vector.
    #[error("one number per line is needed, and this line has more")]
    Several,
    /// An entry on the diagonal of a skew-symmetric matrix.
    #[error("a skew-symmetric matrix has no entries on the diagonal")]
    SkewDiagonal,
    /// Entries on both sides of the diagonal of a symmetric matrix.
    #[error("a symmetric matrix lists one triangle only; this entry is in the other one")]
    BothTriangles,
    /// More entries than announced.
    #[error("more entries than the {declared} announced")]
    TooMany {
        /// Entries announced.
        declared: u64,
    },
    /// Fewer entries than announced.
    #[error("the file ends after {found} of {declared} entries")]
    TooFew {
        /// Entries found.
        found: u64,
        /// Entries announced.
        declared: u64,
    },
}

impl FormatError {
    /// The limit of [`ReadOptions`](super::ReadOptions) that was exceeded, by its name: if the content is as intended, it may be raised.
    pub fn exceeded_limit(&self) -> Option<&'static str> {
        match self {
            FormatError::Expansion { .. } => Some("max_expansion"),
            FormatError::MostlyEmpty { .. }
            | FormatError::Line { fault: LineFault::MostlyEmpty { .. }, .. } => Some("max_empty_rows"),
            _ => None,
        }
    }

    /// The error together with the file it concerns.
    pub(crate) fn at(self, path: &std::path::Path) -> FileError {
        FileError { path: path.to_owned(), source: self }
    }
}
