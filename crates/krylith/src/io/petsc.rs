//! PETSc's binary format: big-endian, a class number, sizes, row lengths, columns, values.
//!
//! Integers have 4 bytes, or 8 where PETSc was configured with 64-bit indices; the class number says which. A file may hold
//! several objects one after the other, such as a matrix and its right-hand side: reading a matrix takes the first matrix,
//! reading a vector the first vector. Written: 4-byte integers where they suffice.
//! Reference: the manual pages of MatLoad and VecLoad.

use super::error::FormatError;
use super::npy::{read_numbers, write_numbers};
use crate::error::row_in_words;
use crate::matrix::{Csr, check_dimensions};
use crate::parallel;
use std::io::Write;

const MATRIX: u32 = 1_211_216;
const VECTOR: u32 = 1_211_214;

fn bad<T>(what: impl Into<String>) -> Result<T, FormatError> {
    Err(FormatError::Binary { format: "PETSc binary", what: what.into() })
}

/// Begins with the class number of a matrix or a vector.
pub(crate) fn looks_like(bytes: &[u8]) -> bool {
    Cursor::detect(bytes).is_some()
}

/// A position in the file, and the width of its integers.
struct Cursor<'a> {
    rest: &'a [u8],
    width: usize,
}

impl<'a> Cursor<'a> {
    fn detect(bytes: &'a [u8]) -> Option<Self> {
        let narrow = u32::from_be_bytes(bytes.get(..4)?.try_into().ok()?);
        if narrow == MATRIX || narrow == VECTOR {
            return Some(Cursor { rest: bytes, width: 4 });
        }
        let wide = u64::from_be_bytes(bytes.get(..8)?.try_into().ok()?);
        let known = wide == u64::from(MATRIX) || wide == u64::from(VECTOR);
        known.then_some(Cursor { rest: bytes, width: 8 })
    }

    /// The next `count` items of `width` bytes.
    fn take(&mut self, count: u64, width: usize) -> Result<&'a [u8], FormatError> {
        let bytes = count.checked_mul(width as u64).filter(|&b| b <= self.rest.len() as u64);
        let Some(bytes) = bytes else {
            return bad(format!("it ends before {count} announced numbers of {width} bytes"));
        };
        let (taken, rest) = self.rest.split_at(bytes as usize);
        self.rest = rest;
        Ok(taken)
    }

    fn integer(&mut self) -> Result<i64, FormatError> {
        let bytes = self.take(1, self.width)?;
        Ok(integer(bytes))
    }

    fn size(&mut self, what: &str) -> Result<u64, FormatError> {
        let size = self.integer()?;
        u64::try_from(size).or_else(|_| bad(format!("{what} is {size}")))
    }

    fn reals(&mut self, count: u64) -> Result<Vec<f64>, FormatError> {
        let bytes = self.take(count, 8)?;
        Ok(read_numbers(bytes, |c: &[u8; 8]| f64::from_be_bytes(*c)))
    }
}

fn integer(bytes: &[u8]) -> i64 {
    match *bytes {
        [a, b, c, d] => i64::from(i32::from_be_bytes([a, b, c, d])),
        _ => i64::from_be_bytes(bytes.try_into().expect("integers of four or eight bytes")),
    }
}

/// A matrix object behind its class number.
struct MatrixObject<'a> {
    nrows: u64,
    ncols: u64,
    nnz: u64,
    lengths: &'a [u8],
    columns: &'a [u8],
}

impl<'a> MatrixObject<'a> {
    fn begin(cursor: &mut Cursor<'a>) -> Result<Self, FormatError> {
        let (nrows, ncols) = (cursor.size("the number of rows")?, cursor.size("the number of columns")?);
        let nnz = cursor.integer()?;
        if nnz == -1 {
            return Err(FormatError::WrongObject { found: "a dense PETSc matrix", wanted: "a sparse one" });
        }
        let nnz = u64::try_from(nnz).or_else(|_| bad(format!("the number of entries is {nnz}")))?;
        let width = cursor.width;
        let lengths = cursor.take(nrows, width)?;
        let columns = cursor.take(nnz, width)?;
        Ok(MatrixObject { nrows, ncols, nnz, lengths, columns })
    }
}

/// The first matrix of the file.
pub(crate) fn parse_matrix(bytes: &[u8]) -> Result<Csr<f64>, FormatError> {
    let Some(mut cursor) = Cursor::detect(bytes) else {
        return bad("no PETSc class number");
    };
    while cursor.class("a sparse matrix")? == VECTOR {
        let n = cursor.size("the length of the vector")?;
        cursor.take(n, 8)?;
    }
    let object = MatrixObject::begin(&mut cursor)?;
    check_dimensions(object.nrows, object.ncols)?;
    let values = cursor.reals(object.nnz)?;
    let width = cursor.width;
    let mut row_ptr = Vec::with_capacity(object.nrows as usize + 1);
    let mut end = 0u64;
    row_ptr.push(0);
    for (row, length) in object.lengths.chunks_exact(width).map(integer).enumerate() {
        let length =
            u64::try_from(length).or_else(|_| bad(format!("{} has {length} entries", row_in_words(row))))?;
        end = end.saturating_add(length);
        if end > object.nnz {
            return bad(format!(
                "the rows up to {} have more than the {} entries announced",
                row_in_words(row),
                object.nnz
            ));
        }
        row_ptr.push(end as usize);
    }
    let wrong = |k: usize| u32::try_from(integer(&object.columns[k * width..(k + 1) * width])).is_err();
    if let Some(place) = parallel::first(object.columns.len() / width, wrong) {
        return bad(format!("the column of entry {place} (counted from 0) is negative or too large"));
    }
    let col_idx = match width {
        4 => read_numbers(object.columns, |c: &[u8; 4]| u32::from_be_bytes(*c)),
        _ => read_numbers(object.columns, |c: &[u8; 8]| u64::from_be_bytes(*c) as u32),
    };
    let (nrows, ncols) = (object.nrows as usize, object.ncols as usize);
    Ok(Csr::from_unsorted(nrows, ncols, row_ptr, col_idx, values)?)
}

/// The first vector of the file; matrices before it are skipped.
pub(crate) fn parse_vector(bytes: &[u8]) -> Result<Vec<f64>, FormatError> {
    let Some(mut cursor) = Cursor::detect(bytes) else {
        return bad("no PETSc class number");
    };
    while cursor.class("a vector")? == MATRIX {
        let object = MatrixObject::begin(&mut cursor)?;
        cursor.take(object.nnz, 8)?;
    }
    let n = cursor.size("the length of the vector")?;
    cursor.reals(n)
}

impl Cursor<'_> {
    /// The class number of the next object: a matrix or a vector.
    fn class(&mut self, wanted: &'static str) -> Result<u32, FormatError> {
        if self.rest.is_empty() {
            return Err(FormatError::WrongObject { found: "other PETSc objects", wanted });
        }
        match self.integer()? {
            class if class == i64::from(MATRIX) => Ok(MATRIX),
            class if class == i64::from(VECTOR) => Ok(VECTOR),
            class => bad(format!("unknown class number {class}")),
        }
    }
}

/// Writes a matrix; integers of 8 bytes only where 4 do not suffice.
pub(crate) fn write_matrix(out: &mut dyn Write, a: &Csr<f64>) -> Result<(), FormatError> {
    let wide = a.nnz().max(a.nrows()).max(a.ncols()) > i32::MAX as usize;
    let lengths = a.pattern().row_ptr().windows(2).map(|w| (w[1] - w[0]) as u64);
    let columns = a.pattern().col_idx().iter().map(|&j| u64::from(j));
    let head = [u64::from(MATRIX), a.nrows() as u64, a.ncols() as u64, a.nnz() as u64];
    write_integers(out, wide, head.into_iter().chain(lengths).chain(columns))?;
    write_numbers(out, a.values().iter().map(|v| v.to_be_bytes()))
}

/// Writes a vector.
pub(crate) fn write_vector(out: &mut dyn Write, x: &[f64]) -> Result<(), FormatError> {
    let wide = x.len() > i32::MAX as usize;
    write_integers(out, wide, [u64::from(VECTOR), x.len() as u64].into_iter())?;
    write_numbers(out, x.iter().map(|v| v.to_be_bytes()))
}

fn write_integers(
    out: &mut dyn Write,
    wide: bool,
    numbers: impl Iterator<Item = u64>,
) -> Result<(), FormatError> {
    if wide {
        write_numbers(out, numbers.map(u64::to_be_bytes))
    } else {
        write_numbers(out, numbers.map(|n| (n as u32).to_be_bytes()))
    }
}
