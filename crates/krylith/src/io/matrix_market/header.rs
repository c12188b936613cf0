//! The first line, the comments and the line of sizes.

use super::BANNER;
use crate::io::error::{FormatError, LineFault};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    Coordinate,
    Array,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    Real,
    Integer,
    Pattern,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    General,
    Symmetric,
    Skew,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) layout: Layout,
    pub(super) field: Field,
    pub(super) form: Form,
    pub(super) nrows: u64,
    pub(super) ncols: u64,
    /// Entries announced; for an array, those its shape has.
    pub(super) entries: u64,
    /// The line of sizes, counted from 1.
    pub(super) line: u64,
    /// Where the line after the sizes begins.
    pub(super) data: usize,
}

impl Header {
    pub(super) fn parse(text: &[u8]) -> Result<Self, FormatError> {
        let mut lines = Lines { text, next: 0, number: 0 };
        let banner = lines.next().unwrap_or_default();
        let (layout, field, form) = words(banner).map_err(|fault| FormatError::Line { line: 1, fault })?;
        let sizes = loop {
            let at_end = FormatError::Line { line: lines.number + 1, fault: LineFault::NoSize };
            let line = lines.next().ok_or(at_end)?.trim_ascii();
            if !line.is_empty() && line[0] != b'%' {
                break line;
            }
        };
        let line = lines.number;
        let fault = |fault| FormatError::Line { line, fault };
        let (nrows, ncols, entries) = parse_sizes(sizes, layout).map_err(fault)?;
        let symmetry = if form == Form::Symmetric { "symmetric" } else { "skew-symmetric" };
        if form != Form::General && nrows != ncols {
            return Err(fault(LineFault::NotSquare { symmetry, nrows, ncols }));
        }
        Ok(Header { layout, field, form, nrows, ncols, entries, line, data: lines.next })
    }
}

/// The words behind the banner.
fn words(line: &[u8]) -> Result<(Layout, Field, Form), LineFault> {
    let line = std::str::from_utf8(line).map_err(|_| LineFault::Banner)?.to_ascii_lowercase();
    let banner = String::from_utf8_lossy(BANNER).to_ascii_lowercase();
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let [first, object, layout, field, form] = words[..] else {
        return Err(LineFault::Banner);
    };
    if first != banner {
        return Err(LineFault::Banner);
    }
    let unknown = |what, word: &str, known| Err(LineFault::Word { what, word: word.to_owned(), known });
    if object != "matrix" {
        return unknown("object", object, "matrix");
    }
    let layout = match layout {
        "coordinate" => Layout::Coordinate,
        "array" => Layout::Array,
        _ => return unknown("layout", layout, "coordinate, array"),
    };
    let advice = "; their real and imaginary parts may be written as two real files";
    let field = match field {
        "real" | "double" => Field::Real,
        "integer" => Field::Integer,
        "pattern" if layout == Layout::Coordinate => Field::Pattern,
        "complex" => return Err(LineFault::Unsupported { what: "complex", advice }),
        _ => return unknown("field", field, "real, integer, pattern (coordinate only)"),
    };
    let form = match form {
        "general" => Form::General,
        "symmetric" => Form::Symmetric,
        "skew-symmetric" if field != Field::Pattern => Form::Skew,
        "hermitian" => {
            return Err(LineFault::Unsupported {
                what: "hermitian",
                advice: "; a real one is called symmetric",
            });
        }
        _ => return unknown("symmetry", form, "general, symmetric, skew-symmetric (not of a pattern)"),
    };
    Ok((layout, field, form))
}

fn parse_sizes(line: &[u8], layout: Layout) -> Result<(u64, u64, u64), LineFault> {
    let expected = match layout {
        Layout::Coordinate => "three whole numbers: rows, columns, entries",
        Layout::Array => "two whole numbers: rows, columns",
    };
    let numbers: Option<Vec<u64>> = line
        .split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty())
        .take(4)
        .map(|word| std::str::from_utf8(word).ok()?.parse().ok())
        .collect();
    match (numbers.as_deref(), layout) {
        (Some(&[nrows, ncols, entries]), Layout::Coordinate) => Ok((nrows, ncols, entries)),
        (Some(&[nrows, ncols]), Layout::Array) => Ok((nrows, ncols, nrows.saturating_mul(ncols))),
        _ => Err(LineFault::Size { expected }),
    }
}

/// Lines without their end, counted.
struct Lines<'a> {
    text: &'a [u8],
    next: usize,
    number: u64,
}

impl<'a> Lines<'a> {
    fn next(&mut self) -> Option<&'a [u8]> {
        let rest = self.text.get(self.next..).filter(|rest| !rest.is_empty())?;
        let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        self.next = (self.next + end + 1).min(self.text.len());
        self.number += 1;
        Some(&rest[..end])
    }
}
