//! Matrices and vectors in files.
//!
//! | format | endings | matrices | vectors |
//! |---|---|---|---|
//! | Matrix Market | `.mtx`, also `.mtx.gz`, `.mtx.xz`, `.mtx.zst` | yes | yes |
//! | SciPy | `.npz` | csr, csc, coo; written as csr | |
//! | NumPy | `.npy` | | yes |
//! | PETSc binary | `.petsc`, `.bin`, `.dat` | yes | yes |
//! | plain text | `.txt` | | one number per line; lines that begin with `#` or `%` are comments |
//!
//! Compression is behind the cargo features `gzip`, `xz` and `zstd`, all on by default.
//!
//! A file to read is recognised by its first bytes, whatever its name; a file to write by its ending. Files from anywhere may be
//! read: nothing in them makes a reader panic, and every allocation is in proportion to the file (see [`ReadOptions`]). A file
//! is written beside its place and moved there when it is complete.
//!
//! ```
//! use krylith::{Csr, io};
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("identity.mtx.zst");
//! io::write_matrix(&path, &Csr::identity(3)?)?;
//! assert_eq!(io::read_matrix(&path)?, Csr::identity(3)?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod compression;
mod error;
pub mod matrix_market;
mod npy;
mod npz;
mod options;
mod petsc;
pub mod plain;
mod sink;
mod source;

pub use error::{FileError, FormatError, LineFault};
pub use options::{Progress, ReadOptions};

use crate::matrix::Csr;
use sink::Format;
use source::Source;
use std::io::Read;
use std::path::Path;

/// Reads a matrix with default options.
pub fn read_matrix(path: impl AsRef<Path>) -> Result<Csr<f64>, FileError> {
    read_matrix_with(path, &ReadOptions::default())
}

/// Reads a matrix.
pub fn read_matrix_with(path: impl AsRef<Path>, options: &ReadOptions) -> Result<Csr<f64>, FileError> {
    let path = path.as_ref();
    let parsed = source::open(path, is_matrix, options).and_then(|source| parse_matrix(source, options));
    parsed.map_err(|e| e.at(path))
}

/// Reads a vector with default options.
pub fn read_vector(path: impl AsRef<Path>) -> Result<Vec<f64>, FileError> {
    read_vector_with(path, &ReadOptions::default())
}

/// Reads a vector.
pub fn read_vector_with(path: impl AsRef<Path>, options: &ReadOptions) -> Result<Vec<f64>, FileError> {
    let path = path.as_ref();
    let parsed = source::open(path, is_vector, options).and_then(|source| parse_vector(source, options));
    parsed.map_err(|e| e.at(path))
}

/// Reads a matrix of any format from a stream, such as standard input, to its end; compressed content is expanded. A stream whose
/// first bytes belong to no format is not read further: it may never end.
///
/// ```
/// use krylith::io::{self, ReadOptions};
/// let stream = &b"%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 5\n"[..];
/// assert_eq!(io::read_matrix_from(stream, &ReadOptions::default())?.values(), [5.0]);
/// # Ok::<(), io::FormatError>(())
/// ```
pub fn read_matrix_from(stream: impl Read, options: &ReadOptions) -> Result<Csr<f64>, FormatError> {
    parse_matrix(Source::from(source::read_stream(stream, is_matrix)?).expand(options)?, options)
}

/// Reads a vector of any format from a stream, as [`read_matrix_from`] does a matrix.
pub fn read_vector_from(stream: impl Read, options: &ReadOptions) -> Result<Vec<f64>, FormatError> {
    parse_vector(Source::from(source::read_stream(stream, is_vector)?).expand(options)?, options)
}

/// A matrix from the content of a file of any format; compressed content is expanded first.
pub fn parse(content: &[u8], options: &ReadOptions) -> Result<Csr<f64>, FormatError> {
    parse_matrix(Source::from(content).expand(options)?, options)
}

/// A vector from the content of a file of any format; compressed content is expanded first.
pub fn parse_as_vector(content: &[u8], options: &ReadOptions) -> Result<Vec<f64>, FormatError> {
    parse_vector(Source::from(content).expand(options)?, options)
}

fn parse_matrix(source: Source, options: &ReadOptions) -> Result<Csr<f64>, FormatError> {
    let (source, first) = begin(source)?;
    if first.starts_with(npz::MAGIC) {
        npz::parse_matrix(&source.whole()?, options)
    } else if petsc::looks_like(&first) {
        petsc::parse_matrix(&source.whole()?)
    } else if first.starts_with(npy::MAGIC) {
        let wanted = "a sparse matrix, such as scipy.sparse.save_npz writes,";
        Err(FormatError::WrongObject { found: "a NumPy array", wanted })
    } else if looks_like_text(&first) {
        matrix_market::read_matrix(&source, options)
    } else {
        Err(FormatError::UnknownFormat)
    }
}

fn parse_vector(source: Source, options: &ReadOptions) -> Result<Vec<f64>, FormatError> {
    let (source, first) = begin(source)?;
    if first.starts_with(npy::MAGIC) {
        npy::parse_vector(&source.whole()?)
    } else if petsc::looks_like(&first) {
        petsc::parse_vector(&source.whole()?)
    } else if first.starts_with(npz::MAGIC) {
        Err(FormatError::WrongObject { found: "an archive of arrays (.npz)", wanted: "a vector" })
    } else if has_banner(&first) {
        matrix_market::read_vector(&source, options)
    } else if plain::looks_like(&first) {
        plain::read_vector(&source)
    } else {
        Err(FormatError::UnknownFormat)
    }
}

/// The mark that some editors put before text.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// The content without an editor's mark, and its first bytes; an error if there is none.
fn begin(mut source: Source) -> Result<(Source, Vec<u8>), FormatError> {
    if source.len() == 0 {
        return Err(FormatError::Empty);
    }
    if source.first_bytes()?.starts_with(MARK) {
        source.skip(MARK.len());
    }
    let first = source.first_bytes()?;
    Ok((source, first))
}

/// The first bytes are of a format that matrices are read from, or one that an error names; compression aside.
fn is_matrix(bytes: &[u8]) -> bool {
    let bytes = bytes.strip_prefix(MARK).unwrap_or(bytes);
    let binary = [npz::MAGIC, npy::MAGIC].iter().any(|magic| bytes.starts_with(magic));
    binary || petsc::looks_like(bytes) || looks_like_text(bytes)
}

/// The same of vectors.
fn is_vector(bytes: &[u8]) -> bool {
    is_matrix(bytes) || plain::looks_like(bytes.strip_prefix(MARK).unwrap_or(bytes))
}

fn looks_like_text(bytes: &[u8]) -> bool {
    bytes.starts_with(b"%")
}

/// The beginning of the banner of Matrix Market, even if the rest is misspelt; a plain text vector may begin with other comments.
fn has_banner(bytes: &[u8]) -> bool {
    let banner = &matrix_market::BANNER[..b"%%Matrix".len()];
    bytes.get(..banner.len()).is_some_and(|first| first.eq_ignore_ascii_case(banner))
}

/// An error if no matrix can be written under this name, before any work is done.
pub fn check_matrix_name(path: impl AsRef<Path>) -> Result<(), FileError> {
    let path = path.as_ref();
    Format::of_matrix(path).map(|_| ()).map_err(|e| e.at(path))
}

/// An error if no vector can be written under this name, before any work is done.
pub fn check_vector_name(path: impl AsRef<Path>) -> Result<(), FileError> {
    let path = path.as_ref();
    Format::of_vector(path).map(|_| ()).map_err(|e| e.at(path))
}

/// Writes a matrix in the format that the name ends in.
pub fn write_matrix(path: impl AsRef<Path>, a: &Csr<f64>) -> Result<(), FileError> {
    let path = path.as_ref();
    let written = Format::of_matrix(path).and_then(|format| match format {
        Format::MatrixMarket(compression) => sink::create(path, |file| {
            sink::compressed(file, compression, |out| matrix_market::write_matrix(out, a))
        }),
        Format::Npz => sink::create(path, |file| npz::write_matrix(file, a)),
        Format::Petsc => sink::create(path, |file| petsc::write_matrix(file, a)),
        Format::Npy | Format::Plain => unreachable!("not a format of matrices"),
    });
    written.map_err(|e| e.at(path))
}

/// Writes a vector in the format that the name ends in.
pub fn write_vector(path: impl AsRef<Path>, x: &[f64]) -> Result<(), FileError> {
    let path = path.as_ref();
    let written = Format::of_vector(path).and_then(|format| match format {
        Format::MatrixMarket(compression) => sink::create(path, |file| {
            sink::compressed(file, compression, |out| matrix_market::write_vector(out, x))
        }),
        Format::Npy => sink::create(path, |file| npy::write_vector(file, x)),
        Format::Plain => sink::create(path, |file| plain::write_vector(file, x)),
        Format::Petsc => sink::create(path, |file| petsc::write_vector(file, x)),
        Format::Npz => unreachable!("not a format of vectors"),
    });
    written.map_err(|e| e.at(path))
}
