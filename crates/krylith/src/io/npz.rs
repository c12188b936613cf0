//! SciPy's sparse `.npz` (`scipy.sparse.save_npz`): a zip archive of `.npy` arrays.
//!
//! Read: compressed rows (`csr`), compressed columns (`csc`) and coordinates (`coo`). Written: `csr`, as SciPy does.

use super::error::FormatError;
use super::npy::{self, Array};
use super::options::ReadOptions;
use super::source::read_within;
use crate::matrix::{Csr, check_dimensions};
use std::io::{Cursor, Seek, Write};

pub(crate) const MAGIC: &[u8] = b"PK\x03\x04";

fn bad<T>(what: impl Into<String>) -> Result<T, FormatError> {
    Err(FormatError::Binary { format: "npz", what: what.into() })
}

/// A matrix from the bytes of an `.npz` file.
pub(crate) fn parse_matrix(bytes: &[u8], options: &ReadOptions) -> Result<Csr<f64>, FormatError> {
    let mut archive = Archive::open(bytes, options)?;
    let format = Array::parse(&archive.member("format")?)?.text()?;
    let shape = archive.member("shape")?;
    let shape = Array::parse(&shape)?.indices(Some)?;
    let Ok(&[nrows, ncols]) = shape.as_deref() else {
        return bad("its shape is not two dimensions");
    };
    check_dimensions(nrows, ncols)?;
    let (nrows, ncols) = (nrows as usize, ncols as usize);
    let values = Array::parse(&archive.member("data")?)?.reals()?;
    // Every row costs memory even when it is empty; only compressed rows bring a number for each.
    let allowed = (2 * values.len() as u64).saturating_add(options.max_empty_rows);
    if format != "csr" && nrows as u64 > allowed {
        return Err(FormatError::MostlyEmpty { rows: nrows as u64, entries: values.len() as u64 });
    }
    match format.as_str() {
        "csr" => {
            let (row_ptr, col_idx) = archive.compressed(nrows, ncols)?;
            Ok(Csr::from_unsorted(nrows, ncols, row_ptr, col_idx, values)?)
        }
        "csc" => {
            let (column_ptr, row_idx) = archive.compressed(ncols, nrows)?;
            Ok(Csr::from_unsorted(ncols, nrows, column_ptr, row_idx, values)?.transpose())
        }
        "coo" => {
            let rows = narrow(&Array::parse(&archive.member("row")?)?, nrows, "row")?;
            let columns = narrow(&Array::parse(&archive.member("col")?)?, ncols, "col")?;
            Ok(Csr::from_triplets(nrows, ncols, &rows, &columns, &values)?)
        }
        other => bad(format!("sparse format `{other}` is not supported; convert it to csr with `.tocsr()`")),
    }
}

/// A zip archive whose members together may only expand so far.
struct Archive<'a> {
    zip: zip::ZipArchive<Cursor<&'a [u8]>>,
    limit: u64,
    used: u64,
}

impl<'a> Archive<'a> {
    fn open(bytes: &'a [u8], options: &ReadOptions) -> Result<Self, FormatError> {
        let zip = zip::ZipArchive::new(Cursor::new(bytes)).or_else(|e| bad(e.to_string()))?;
        Ok(Archive { zip, limit: options.expanded_limit(bytes.len() as u64), used: 0 })
    }

    fn member(&mut self, name: &str) -> Result<Vec<u8>, FormatError> {
        let member = self.zip.by_name(&format!("{name}.npy"));
        let member = member.or_else(|e| bad(format!("member `{name}`: {e}")))?;
        let left = self.limit - self.used;
        let bytes = read_within(member, left).map_err(|e| match e {
            FormatError::Expansion { .. } => FormatError::Expansion { limit: self.limit },
            other => other,
        })?;
        self.used += bytes.len() as u64;
        Ok(bytes)
    }

    /// Pointer and indices of compressed rows or columns: `major` of them, indices below `minor`.
    fn compressed(&mut self, major: usize, minor: usize) -> Result<(Vec<usize>, Vec<u32>), FormatError> {
        let pointer = self.member("indptr")?;
        let pointer = Array::parse(&pointer)?;
        if pointer.len() != major + 1 {
            return bad(format!("indptr has {} entries for {major} rows or columns", pointer.len()));
        }
        let Ok(pointer) = pointer.indices(|p| usize::try_from(p).ok())? else {
            return bad("indptr has a negative entry");
        };
        let indices = self.member("indices")?;
        Ok((pointer, narrow(&Array::parse(&indices)?, minor, "indices")?))
    }
}

/// Indices below `limit`.
fn narrow(array: &Array, limit: usize, what: &str) -> Result<Vec<u32>, FormatError> {
    let valid = |index: u64| (index < limit as u64).then_some(index as u32);
    array
        .indices(valid)?
        .or_else(|place| bad(format!("`{what}` number {place} (counted from 0) is outside of 0..{limit}")))
}

/// A matrix as an `.npz` file that `scipy.sparse.load_npz` reads: 32-bit indices where they suffice.
pub(crate) fn write_matrix(out: impl Write + Seek, a: &Csr<f64>) -> Result<(), FormatError> {
    let mut zip = zip::ZipWriter::new(out);
    if let Err(error) = write_members(&mut zip, a) {
        // Dropping an unfinished writer would try to finish it, and print if it cannot.
        std::mem::forget(zip);
        return Err(error);
    }
    zip.finish().map_err(write_error)?;
    Ok(())
}

fn write_error(error: zip::result::ZipError) -> FormatError {
    match error {
        zip::result::ZipError::Io(error) => FormatError::Io(error),
        other => FormatError::Io(std::io::Error::other(other)),
    }
}

fn write_members<W: Write + Seek>(zip: &mut zip::ZipWriter<W>, a: &Csr<f64>) -> Result<(), FormatError> {
    let options = zip::write::SimpleFileOptions::default()
        .compression_method(zip::CompressionMethod::Deflated)
        .large_file(a.bytes() > 1 << 31);
    let mut member = |name: &str, descr: &str, shape: String, data: Data| {
        zip.start_file(format!("{name}.npy"), options).map_err(write_error)?;
        npy::write(zip, descr, &shape, |out| data.write(out))
    };
    let narrow = a.nnz().max(a.nrows()).max(a.ncols()) <= i32::MAX as usize;
    let index = if narrow { "<i4" } else { "<i8" };
    let (nnz, shape) = (format!("({},)", a.nnz()), [a.nrows() as i64, a.ncols() as i64]);
    member("indices", index, nnz.clone(), Data::Columns(a.pattern().col_idx(), narrow))?;
    member("indptr", index, format!("({},)", a.nrows() + 1), Data::Pointer(a.pattern().row_ptr(), narrow))?;
    member("format", "|S3", "()".into(), Data::Text(b"csr"))?;
    member("shape", "<i8", "(2,)".into(), Data::Shape(shape))?;
    member("data", "<f8", nnz, Data::Values(a.values()))
}

/// What a member of the archive holds; `true` for four bytes an index.
enum Data<'a> {
    Columns(&'a [u32], bool),
    Pointer(&'a [usize], bool),
    Text(&'a [u8]),
    Shape([i64; 2]),
    Values(&'a [f64]),
}

impl Data<'_> {
    fn write(self, out: &mut dyn Write) -> Result<(), FormatError> {
        match self {
            Data::Columns(c, true) => npy::write_numbers(out, c.iter().map(|j| j.to_le_bytes())),
            Data::Columns(c, false) => npy::write_numbers(out, c.iter().map(|&j| u64::from(j).to_le_bytes())),
            Data::Pointer(p, true) => npy::write_numbers(out, p.iter().map(|&p| (p as u32).to_le_bytes())),
            Data::Pointer(p, false) => npy::write_numbers(out, p.iter().map(|&p| (p as u64).to_le_bytes())),
            Data::Text(text) => Ok(out.write_all(text)?),
            Data::Shape(shape) => npy::write_numbers(out, shape.iter().map(|n| n.to_le_bytes())),
            Data::Values(v) => npy::write_numbers(out, v.iter().map(|v| v.to_le_bytes())),
        }
    }
}
