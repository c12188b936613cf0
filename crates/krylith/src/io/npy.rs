//! NumPy's `.npy`: a magic number, a header that is a Python dictionary, raw numbers.
//! Reference: numpy.lib.format, versions 1.0 to 3.0.

use super::error::FormatError;
use crate::memory::large_pages;
use crate::parallel;
use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};

pub(crate) const MAGIC: &[u8] = b"\x93NUMPY";

/// One array: what its header says, and its raw numbers.
pub(crate) struct Array<'a> {
    kind: Kind,
    /// Bytes a number.
    width: usize,
    big_endian: bool,
    pub(crate) shape: Vec<u64>,
    data: &'a [u8],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Float,
    Signed,
    /// Booleans among them.
    Unsigned,
    Bytes,
    /// Four bytes a character.
    Unicode,
}

fn bad<T>(what: impl Into<String>) -> Result<T, FormatError> {
    Err(FormatError::Binary { format: "npy", what: what.into() })
}

impl<'a> Array<'a> {
    /// Splits a file into header and numbers; there are exactly as many as the shape says.
    pub(crate) fn parse(bytes: &'a [u8]) -> Result<Self, FormatError> {
        let (header_length, start) = match bytes.strip_prefix(MAGIC) {
            Some(&[1, _, a, b, ..]) => (u32::from(u16::from_le_bytes([a, b])), 10),
            Some(&[2 | 3, _, a, b, c, d, ..]) => (u32::from_le_bytes([a, b, c, d]), 12),
            _ => return bad("no valid magic number and version"),
        };
        let end = start + header_length as usize;
        let Some(header) = bytes.get(start..end) else {
            return bad("it ends within its header");
        };
        let header = Header::parse(&String::from_utf8_lossy(header))?;
        let (kind, width, big_endian) = parse_type(&header.descr)?;
        if header.fortran_order && header.shape.iter().filter(|&&n| n != 1).count() > 1 {
            return bad("arrays in Fortran order are not supported");
        }
        let data = &bytes[end..];
        let count = header.shape.iter().try_fold(1u64, |n, &k| n.checked_mul(k));
        if count.and_then(|n| n.checked_mul(width as u64)) != Some(data.len() as u64) {
            let shape = header.shape;
            return bad(format!("shape {shape:?} does not agree with {} bytes of data", data.len()));
        }
        Ok(Array { kind, width, big_endian, shape: header.shape, data })
    }

    /// Numbers in the array.
    pub(crate) fn len(&self) -> usize {
        self.data.len().checked_div(self.width).unwrap_or(0)
    }

    /// An error unless the array is a vector: one dimension, any others of extent 1.
    pub(crate) fn require_vector(&self) -> Result<(), FormatError> {
        if self.shape.iter().filter(|&&n| n != 1).count() <= 1 && !self.shape.is_empty() {
            Ok(())
        } else {
            let wanted = "a vector";
            Err(FormatError::WrongObject { found: "an array of several dimensions", wanted })
        }
    }

    /// The text of a scalar of bytes or characters.
    pub(crate) fn text(&self) -> Result<String, FormatError> {
        if self.len() != 1 {
            return bad("one string was expected");
        }
        match self.kind {
            Kind::Bytes => Ok(String::from_utf8_lossy(self.data).trim_end_matches('\0').to_owned()),
            Kind::Unicode => {
                let code = |c: &[u8]| self.word(c) as u32;
                let text: String =
                    self.data.chunks_exact(4).filter_map(|c| char::from_u32(code(c))).collect();
                Ok(text.trim_end_matches('\0').to_owned())
            }
            _ => bad("a string was expected"),
        }
    }

    /// The bytes of number k.
    fn number(&self, k: usize) -> &[u8] {
        &self.data[k * self.width..(k + 1) * self.width]
    }

    /// Up to eight bytes as an unsigned number.
    fn word(&self, bytes: &[u8]) -> u64 {
        let add = |sum: u64, byte: &u8| sum << 8 | u64::from(*byte);
        if self.big_endian { bytes.iter().fold(0, add) } else { bytes.iter().rev().fold(0, add) }
    }

    /// Real numbers, each the nearest `f64`.
    pub(crate) fn reals(&self) -> Result<Vec<f64>, FormatError> {
        let width = self.width;
        let convert: &(dyn Fn(u64) -> f64 + Sync) = match (self.kind, width) {
            (Kind::Float, 8) => &|w| f64::from_bits(w),
            (Kind::Float, 4) => &|w| f64::from(f32::from_bits(w as u32)),
            (Kind::Signed, _) => &|w| sign_extend(w, width) as f64,
            (Kind::Unsigned, _) => &|w| w as f64,
            _ => return bad("real numbers were expected"),
        };
        if self.kind == Kind::Float && width == 8 && !self.big_endian {
            return Ok(read_numbers(self.data, |c: &[u8; 8]| f64::from_le_bytes(*c)));
        }
        Ok(parallel::map_rows(self.len(), |k| convert(self.word(self.number(k)))))
    }

    /// Indices, whole numbers of four or eight bytes, as `valid` takes them over; or the place of the first that is negative or not valid.
    pub(crate) fn indices<T: Send + Default>(
        &self,
        valid: impl Fn(u64) -> Option<T> + Sync,
    ) -> Result<Result<Vec<T>, usize>, FormatError> {
        let width = self.width;
        if !matches!((self.kind, width), (Kind::Signed | Kind::Unsigned, 4 | 8)) {
            return bad("indices must be whole numbers of 4 or 8 bytes");
        }
        let signed = self.kind == Kind::Signed;
        let first_wrong = AtomicUsize::new(self.len());
        let indices = parallel::map_rows(self.len(), |k| {
            let word = self.word(self.number(k));
            let index = if signed { u64::try_from(sign_extend(word, width)).ok() } else { Some(word) };
            index.and_then(&valid).unwrap_or_else(|| {
                first_wrong.fetch_min(k, Ordering::Relaxed);
                T::default()
            })
        });
        let place = first_wrong.into_inner();
        Ok(if place < self.len() { Err(place) } else { Ok(indices) })
    }
}

/// Numbers of N bytes each, converted in parallel.
pub(crate) fn read_numbers<T: Copy + large_pages::Zero + Send, const N: usize>(
    bytes: &[u8],
    number: impl Fn(&[u8; N]) -> T + Sync,
) -> Vec<T> {
    let (bytes, _) = bytes.as_chunks::<N>();
    let mut numbers = large_pages::zeros(bytes.len());
    parallel::for_each_piece_mut(&mut numbers, 1 << 14, |first, piece| {
        for (to, bytes) in piece.iter_mut().zip(&bytes[first..]) {
            *to = number(bytes);
        }
    });
    numbers
}

fn sign_extend(word: u64, width: usize) -> i64 {
    let shift = 64 - 8 * width as u32;
    ((word << shift) as i64) >> shift
}

/// Kind, width and byte order from NumPy's type string, such as `<f8`.
fn parse_type(descr: &str) -> Result<(Kind, usize, bool), FormatError> {
    let unsupported = || FormatError::Binary {
        format: "npy",
        what: format!("numbers of type `{descr}` are not supported; real and integer types are"),
    };
    let mut characters = descr.chars();
    let big_endian = match characters.next() {
        Some('<' | '|' | '=') => false,
        Some('>') => true,
        _ => return Err(unsupported()),
    };
    let kind = characters.next().ok_or_else(unsupported)?;
    let width: usize = characters.as_str().parse().map_err(|_| unsupported())?;
    match (kind, width) {
        ('f', 4 | 8) => Ok((Kind::Float, width, big_endian)),
        ('i', 1 | 2 | 4 | 8) => Ok((Kind::Signed, width, big_endian)),
        ('u', 1 | 2 | 4 | 8) | ('b', 1) => Ok((Kind::Unsigned, width, big_endian)),
        ('S', 1..=64) => Ok((Kind::Bytes, width, big_endian)),
        ('U', 1..=64) => Ok((Kind::Unicode, 4 * width, big_endian)),
        _ => Err(unsupported()),
    }
}

/// The three entries of the dictionary.
struct Header {
    descr: String,
    fortran_order: bool,
    shape: Vec<u64>,
}

impl Header {
    /// Finds `'descr': '…'`, `'fortran_order': …` and `'shape': (…)`, in whatever order NumPy wrote them.
    fn parse(text: &str) -> Result<Self, FormatError> {
        let value = |key: &str| {
            let (_, rest) = text.split_once(&format!("'{key}':"))?;
            Some(rest.trim_start())
        };
        let found = (|| {
            let descr = value("descr")?.strip_prefix('\'')?.split_once('\'')?.0.to_owned();
            let fortran_order = value("fortran_order")?.starts_with("True");
            let inside = value("shape")?.strip_prefix('(')?.split_once(')')?.0;
            let extents = inside.split(',').map(str::trim).filter(|word| !word.is_empty());
            let shape = extents.map(|word| word.trim_end_matches('L').parse().ok()).collect::<Option<_>>()?;
            Some(Header { descr, fortran_order, shape })
        })();
        found.map_or_else(|| bad("its header cannot be understood"), Ok)
    }
}

/// Writes an array: header, then the numbers that `write` sends.
pub(crate) fn write(
    out: &mut dyn Write,
    descr: &str,
    shape: &str,
    write: impl FnOnce(&mut dyn Write) -> Result<(), FormatError>,
) -> Result<(), FormatError> {
    let mut header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    // Magic, version, length and header together fill a multiple of 64 bytes and end with a line end.
    let total = (MAGIC.len() + 4 + header.len() + 1).next_multiple_of(64);
    while MAGIC.len() + 4 + header.len() + 1 < total {
        header.push(' ');
    }
    header.push('\n');
    out.write_all(MAGIC)?;
    out.write_all(&[1, 0])?;
    out.write_all(&(header.len() as u16).to_le_bytes())?;
    out.write_all(header.as_bytes())?;
    write(out)
}

/// Writes numbers of `N` bytes each through a buffer.
pub(crate) fn write_numbers<const N: usize>(
    out: &mut dyn Write,
    numbers: impl Iterator<Item = [u8; N]>,
) -> Result<(), FormatError> {
    let mut buffer = Vec::with_capacity(1 << 16);
    for number in numbers {
        buffer.extend_from_slice(&number);
        if buffer.len() + N > 1 << 16 {
            out.write_all(&buffer)?;
            buffer.clear();
        }
    }
    out.write_all(&buffer)?;
    Ok(())
}

/// A vector from the bytes of a `.npy` file.
pub(crate) fn parse_vector(bytes: &[u8]) -> Result<Vec<f64>, FormatError> {
    let array = Array::parse(bytes)?;
    array.require_vector()?;
    array.reals()
}

/// A vector as a `.npy` file.
pub(crate) fn write_vector(out: &mut dyn Write, x: &[f64]) -> Result<(), FormatError> {
    write(out, "<f8", &format!("({},)", x.len()), |out| write_numbers(out, x.iter().map(|v| v.to_le_bytes())))
}
