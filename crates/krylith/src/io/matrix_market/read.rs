//! Reading entries, in parallel.
//!
//! The text behind the header is cut at line ends into pieces, a few for each thread. A thread takes a piece, reads it block by
//! block if it is in a file, and parses it into arrays of its own; [`assemble`] sorts all of them into rows. A fault is located by its byte and only then turned into a line number; of several
//! faults the first in the file is reported, whatever thread found it.
#![allow(unsafe_code)]

use super::header::{Field, Form, Header, Layout};
use crate::io::error::{FormatError, LineFault};
use crate::io::options::ReadOptions;
use crate::io::source::Source;
use crate::matrix::{Csr, Entries, assemble, check_dimensions};
use crate::memory::large_pages;
use crate::parallel;
use crate::parallel::share;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Bytes read at a time: they and the entries in them stay in the cache until they are parsed.
const BLOCK: usize = 1 << 20;

/// The most bytes parsed as one piece of parallel work, and how many pieces a thread gets if the text is shorter.
const LONGEST_PIECE: usize = 64 << 20;
const PIECES_A_THREAD: usize = 4;

/// Bytes in which the header is looked for first.
const HEADER: usize = 64 << 10;

/// The shortest line an entry can have: `1 1` and its end.
const SHORTEST_ENTRY: u64 = 4;

/// A matrix from the text of a Matrix Market file.
///
/// ```
/// use krylith::io::{ReadOptions, matrix_market};
/// let text = b"%%MatrixMarket matrix coordinate real symmetric\n2 2 3\n1 1 4\n2 1 -1\n2 2 4\n";
/// let a = matrix_market::parse_matrix(text, &ReadOptions::default())?;
/// assert_eq!((a.nnz(), a.get(0, 1)), (4, -1.0));
/// # Ok::<(), krylith::io::FormatError>(())
/// ```
pub fn parse_matrix(text: &[u8], options: &ReadOptions) -> Result<Csr<f64>, FormatError> {
    read_matrix(&text.into(), options)
}

/// A matrix from text that may be in a file.
pub(crate) fn read_matrix(text: &Source, options: &ReadOptions) -> Result<Csr<f64>, FormatError> {
    let header = read_header(text)?;
    if header.layout == Layout::Array {
        return Err(FormatError::WrongObject {
            found: "a dense array",
            wanted: "a sparse (coordinate) matrix",
        });
    }
    check_size(&header, text.len(), options)?;
    let pieces = parse_pieces(text, &header, options)?;
    let entries = Listed::new(pieces, header.form);
    Ok(assemble(header.nrows as usize, header.ncols as usize, &entries)?)
}

/// The header, from as much of the text as it takes: comments may be long.
fn read_header(text: &Source) -> Result<Header, FormatError> {
    let mut buffer = Vec::new();
    let mut length = HEADER;
    loop {
        let all = length >= text.len();
        let block = text.block(0..length.min(text.len()), &mut buffer)?;
        let lines = if all { Some(block.len()) } else { memchr::memrchr(b'\n', block).map(|k| k + 1) };
        if let Some(lines) = lines {
            match Header::parse(&block[..lines]) {
                Err(FormatError::Line { fault: LineFault::NoSize, .. }) if !all => {}
                result => return result,
            }
        }
        length = length.saturating_mul(8);
    }
}

/// Every allocation is in proportion to the file: no announced size is believed beyond what the text can hold.
fn check_size(header: &Header, file: usize, options: &ReadOptions) -> Result<(), FormatError> {
    let fault = |fault| Err(FormatError::Line { line: header.line, fault });
    check_dimensions(header.nrows, header.ncols)?;
    let room = (file - header.data) as u64;
    let shortest = if header.field == Field::Pattern { SHORTEST_ENTRY } else { SHORTEST_ENTRY + 2 };
    // The last line may lack its end.
    let fit = (room + 1) / shortest;
    let declared = header.entries;
    if declared > fit {
        return fault(LineFault::TooManyDeclared { declared, limit: fit });
    }
    let filled = (2 * declared).saturating_add(options.max_empty_rows);
    let rows = header.nrows.max(header.ncols);
    if rows > filled {
        return fault(LineFault::MostlyEmpty { rows, entries: declared });
    }
    Ok(())
}

/// Entries of a piece of the file, indices from 0.
#[derive(Default)]
struct Piece {
    rows: Vec<u32>,
    columns: Vec<u32>,
    /// Empty for a pattern: every value is 1.
    values: Vec<f64>,
    diagonal: usize,
    /// The first entry off the diagonal is below it.
    lower: Option<bool>,
}

impl Piece {
    /// Room for the entries of a piece that has `mean` of them if it is like the rest of the file.
    fn with_room(mean: usize, field: Field) -> Self {
        let mut piece = Piece::default();
        let room = mean + mean / 16 + 8;
        piece.rows.reserve(room);
        piece.columns.reserve(room);
        large_pages::advise_huge_pages(piece.rows.spare_capacity_mut());
        large_pages::advise_huge_pages(piece.columns.spare_capacity_mut());
        if field != Field::Pattern {
            piece.values.reserve(room);
            large_pages::advise_huge_pages(piece.values.spare_capacity_mut());
        }
        piece
    }
}

/// A fault at a byte of the text.
struct Fault {
    at: usize,
    fault: LineFault,
}

impl Fault {
    fn locate(self, text: &Source) -> FormatError {
        match text.line_of(self.at) {
            Ok(line) => FormatError::Line { line, fault: self.fault },
            Err(error) => error,
        }
    }
}

/// The entries of a piece up to its first fault, and the fault.
type Parsed = (Piece, Option<Fault>);

fn parse_pieces(text: &Source, header: &Header, options: &ReadOptions) -> Result<Vec<Piece>, FormatError> {
    let length = text.len() - header.data;
    let pieces = PIECES_A_THREAD * rayon::current_num_threads();
    let piece = length.div_ceil(pieces).next_multiple_of(BLOCK).min(LONGEST_PIECE);
    let ranges: Vec<Range<usize>> = cut(header.data..text.len(), piece).collect();
    let done = AtomicU64::new(header.data as u64);
    let report = |bytes: usize| {
        let before = done.fetch_add(bytes as u64, Ordering::Relaxed);
        options.report(before + bytes as u64, text.len() as u64);
    };
    // No piece behind a faulty one matters.
    let first_faulty = AtomicUsize::new(usize::MAX);
    let parse = |k: usize| -> Result<Parsed, FormatError> {
        let (range, mut buffer) = (&ranges[k], Vec::new());
        let mean = header.entries as u128 * range.len() as u128 / length.max(1) as u128;
        let mut piece = Piece::with_room(mean as usize, header.field);
        for block in cut(range.clone(), BLOCK) {
            if k > first_faulty.load(Ordering::Relaxed) {
                break;
            }
            let read = EntryParser::new(text, &block, header, &mut buffer);
            let fault = read.map(|mut parser| parser.parse_into(&mut piece).err());
            if !matches!(fault, Ok(None)) {
                first_faulty.fetch_min(k, Ordering::Relaxed);
                return fault.map(|fault| (piece, fault));
            }
            report(block.len());
        }
        Ok((piece, None))
    };
    let parsed = parallel::map(ranges.len(), parse);
    check_pieces(text, header, &ranges, parsed)
}

/// Consecutive parts of a range.
fn cut(range: Range<usize>, length: usize) -> impl Iterator<Item = Range<usize>> {
    let end = range.end;
    range.step_by(length.max(1)).map(move |start| start..end.min(start + length))
}

/// The pieces of the whole text; or its first fault, which may be one only in view of other pieces.
fn check_pieces(
    text: &Source,
    header: &Header,
    ranges: &[Range<usize>],
    parsed: Vec<Result<Parsed, FormatError>>,
) -> Result<Vec<Piece>, FormatError> {
    let mut pieces = Vec::with_capacity(parsed.len());
    let mut found = 0u64;
    let mut lower = None;
    for (parsed, range) in parsed.into_iter().zip(ranges) {
        let (piece, fault) = parsed?;
        let mut buffer = Vec::new();
        found += piece.rows.len() as u64;
        let too_many = found.saturating_sub(header.entries);
        let mut excess = None;
        if too_many > 0 {
            let parser = EntryParser::new(text, range, header, &mut buffer)?;
            excess = Some(parser.entry_too_many(piece.rows.len() as u64 - too_many));
        }
        let mut other_side = None;
        if lower.is_some() && piece.lower.is_some() && lower != piece.lower {
            let parser = EntryParser::new(text, range, header, &mut buffer)?;
            other_side = Some(parser.first_off_diagonal());
        }
        let first = [fault, excess, other_side].into_iter().flatten().min_by_key(|fault| fault.at);
        if let Some(fault) = first {
            return Err(fault.locate(text));
        }
        lower = lower.or(piece.lower);
        pieces.push(piece);
    }
    if found < header.entries {
        return Err(too_few(text, found, header.entries));
    }
    Ok(pieces)
}

/// The text ended too early: a fault of its last line.
fn too_few(text: &Source, found: u64, declared: u64) -> FormatError {
    let last = text.len().saturating_sub(1);
    match text.block(last..text.len(), &mut Vec::new()) {
        Ok(end) => {
            let at = if end == b"\n" { last } else { text.len() };
            Fault { at, fault: LineFault::TooFew { found, declared } }.locate(text)
        }
        Err(error) => error,
    }
}

/// A cursor over a piece of the text.
struct EntryParser<'a> {
    piece: &'a [u8],
    /// Where the piece begins in the file.
    start: usize,
    /// Where the cursor is in the piece.
    at: usize,
    header: &'a Header,
}

impl<'a> EntryParser<'a> {
    /// At the lines that begin in a part of the text.
    fn new(
        text: &'a Source,
        part: &Range<usize>,
        header: &'a Header,
        buffer: &'a mut Vec<u8>,
    ) -> Result<Self, FormatError> {
        let (start, piece) = text.lines(part.clone(), buffer)?;
        Ok(EntryParser { piece, start, at: 0, header })
    }

    /// All entries; or those before the first fault, and the fault.
    fn parse_into(&mut self, piece: &mut Piece) -> Result<(), Fault> {
        let field = self.header.field;
        while let Some(line) = self.next_line() {
            let row = self.index("row", self.header.nrows)?;
            let column = self.index("column", self.header.ncols)?;
            if field != Field::Pattern {
                piece.values.push(self.value()?);
            }
            self.end_of_line()?;
            if self.header.form != Form::General {
                self.check_side(line, row, column, piece)?;
            }
            piece.rows.push(row);
            piece.columns.push(column);
        }
        Ok(())
    }

    /// A fault at a byte of the piece.
    fn fault(&self, at: usize, fault: LineFault) -> Fault {
        Fault { at: self.start + at, fault }
    }

    #[inline]
    fn peek(&self) -> Option<u8> {
        self.piece.get(self.at).copied()
    }

    #[inline]
    fn skip_blanks(&mut self) {
        while let Some(b' ' | b'\t' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    /// Moves to the next line that holds something; where it begins.
    #[inline]
    fn next_line(&mut self) -> Option<usize> {
        loop {
            self.skip_blanks();
            match self.peek()? {
                b'\n' => self.at += 1,
                b'%' => self.skip_line(),
                _ => return Some(self.at),
            }
        }
    }

    /// A whole number from 1 to `limit`, less one.
    #[inline]
    fn index(&mut self, what: &'static str, limit: u64) -> Result<u32, Fault> {
        self.skip_blanks();
        let rest = &self.piece[self.at..];
        let (mut index, mut digits) = (0u64, 0);
        while let Some(&byte) = rest.get(digits) {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                break;
            }
            index = index.wrapping_mul(10).wrapping_add(u64::from(digit));
            digits += 1;
        }
        let ends = matches!(rest.get(digits), None | Some(b' ' | b'\t' | b'\r' | b'\n'));
        if digits == 0 || !ends {
            return Err(self.fault(self.at + digits, LineFault::Index { what }));
        }
        // Nineteen digits fit in 64 bits; more may have wrapped around.
        if digits > 19 {
            index = u64::MAX;
        }
        if index == 0 || index > limit {
            return Err(self.fault(self.at, LineFault::OutOfRange { what, index, limit }));
        }
        self.at += digits;
        Ok((index - 1) as u32)
    }

    #[inline(always)]
    fn value(&mut self) -> Result<f64, Fault> {
        self.skip_blanks();
        let (value, length) = number(&self.piece[self.at..]);
        let integer = self.header.field == Field::Integer;
        if !value.is_finite() || (integer && has_fraction(value)) {
            let field = if integer { "integer" } else { "real" };
            return Err(self.fault(self.at, LineFault::Value { field }));
        }
        self.at += length;
        Ok(value)
    }

    #[inline]
    fn end_of_line(&mut self) -> Result<(), Fault> {
        self.skip_blanks();
        match self.peek() {
            None => Ok(()),
            Some(b'\n') => {
                self.at += 1;
                Ok(())
            }
            Some(_) => Err(self.fault(self.at, LineFault::Trailing)),
        }
    }

    /// In a symmetric matrix: nothing on a skew diagonal, everything else on one side.
    #[inline]
    fn check_side(&self, line: usize, row: u32, column: u32, piece: &mut Piece) -> Result<(), Fault> {
        if row == column {
            piece.diagonal += 1;
            if self.header.form == Form::Skew {
                return Err(self.fault(line, LineFault::SkewDiagonal));
            }
        } else if *piece.lower.get_or_insert(row > column) != (row > column) {
            return Err(self.fault(line, LineFault::BothTriangles));
        }
        Ok(())
    }

    /// The fault of a piece whose entries are all in the other triangle. Everything in it has been parsed before.
    fn first_off_diagonal(mut self) -> Fault {
        while let Some(line) = self.next_line() {
            let (row, column) = (self.index("row", u64::MAX), self.index("column", u64::MAX));
            if let (Ok(row), Ok(column)) = (row, column)
                && row != column
            {
                return self.fault(line, LineFault::BothTriangles);
            }
            self.skip_line();
        }
        self.fault(self.piece.len(), LineFault::BothTriangles)
    }

    /// The fault of one entry too many: number `entry` of this piece, counted from 0.
    fn entry_too_many(mut self, entry: u64) -> Fault {
        for _ in 0..entry {
            self.next_line();
            self.skip_line();
        }
        let line = self.next_line().unwrap_or(self.piece.len());
        self.fault(line, LineFault::TooMany { declared: self.header.entries })
    }

    fn skip_line(&mut self) {
        let rest = &self.piece[self.at..];
        self.at += memchr::memchr(b'\n', rest).map_or(rest.len(), |k| k + 1);
    }
}

/// The number that a text begins with, and its length; not a number, and 0, where there is none.
#[inline(always)]
pub(crate) fn number(text: &[u8]) -> (f64, usize) {
    let (value, length) = fast_float2::parse_partial::<f64, _>(text).unwrap_or((f64::NAN, 0));
    match text.get(length) {
        Some(b'd' | b'D') => fortran(text).unwrap_or((f64::NAN, 0)),
        _ => (value, length),
    }
}

/// Not inlined: a processor without an instruction for it calls a function, and would do so for real numbers too.
#[inline(never)]
fn has_fraction(value: f64) -> bool {
    value.fract() != 0.0
}

/// A number with Fortran's exponent letter, `1.5D-3`: its value and its length.
#[cold]
fn fortran(text: &[u8]) -> Option<(f64, usize)> {
    let word = text.iter().take_while(|b| !b.is_ascii_whitespace()).take(64);
    let word: Vec<u8> = word.map(|&b| if b.eq_ignore_ascii_case(&b'd') { b'e' } else { b }).collect();
    fast_float2::parse_partial(&word).ok()
}

/// All entries of a file, those across the diagonal included.
struct Listed {
    pieces: Vec<Piece>,
    form: Form,
    len: usize,
}

impl Listed {
    fn new(pieces: Vec<Piece>, form: Form) -> Self {
        let listed: usize = pieces.iter().map(|p| p.rows.len()).sum();
        let diagonal: usize = pieces.iter().map(|p| p.diagonal).sum();
        let len = if form == Form::General { listed } else { 2 * listed - diagonal };
        Listed { pieces, form, len }
    }
}

// SAFETY: the pieces do not change once they are read.
unsafe impl Entries<f64> for Listed {
    fn len(&self) -> usize {
        self.len
    }

    fn for_each(&self, k: usize, shares: usize, mut visit: impl FnMut(u32, u32, f64)) {
        for piece in &self.pieces[share(self.pieces.len(), k, shares)] {
            let values = piece.values.iter().copied().chain(std::iter::repeat(1.0));
            let entries = piece.rows.iter().zip(&piece.columns).zip(values);
            match self.form {
                Form::General => entries.for_each(|((&i, &j), v)| visit(i, j, v)),
                Form::Symmetric | Form::Skew => entries.for_each(|((&i, &j), v)| {
                    visit(i, j, v);
                    if i != j {
                        visit(j, i, if self.form == Form::Skew { -v } else { v });
                    }
                }),
            }
        }
    }
}

/// A vector from the text of a Matrix Market file: an array of one column, or a sparse matrix of one column.
pub fn parse_vector(text: &[u8], options: &ReadOptions) -> Result<Vec<f64>, FormatError> {
    read_vector(&text.into(), options)
}

/// A vector from text that may be in a file.
pub(crate) fn read_vector(text: &Source, options: &ReadOptions) -> Result<Vec<f64>, FormatError> {
    let header = read_header(text)?;
    if header.ncols != 1 {
        return Err(FormatError::WrongObject { found: "a matrix of several columns", wanted: "a vector" });
    }
    if header.layout == Layout::Coordinate {
        let a = read_matrix(text, options)?;
        return Ok((0..a.nrows()).map(|i| a.row(i).1.first().copied().unwrap_or(0.0)).collect());
    }
    let declared = header.entries;
    let fit = (text.len() - header.data) as u64 / 2 + 1;
    if declared > fit {
        let fault = LineFault::TooManyDeclared { declared, limit: fit };
        return Err(FormatError::Line { line: header.line, fault });
    }
    if header.form != Form::General {
        let what = "a symmetric array";
        return Err(FormatError::WrongObject { found: what, wanted: "a vector" });
    }
    let mut buffer = Vec::new();
    let piece = text.block(header.data..text.len(), &mut buffer)?;
    let mut parser = EntryParser { piece, start: header.data, at: 0, header: &header };
    let mut values = Vec::with_capacity(declared as usize);
    while let Some(line) = parser.next_line() {
        if values.len() as u64 == declared {
            return Err(parser.fault(line, LineFault::TooMany { declared }).locate(text));
        }
        let value = parser.value().and_then(|v| parser.end_of_line().map(|()| v));
        values.push(value.map_err(|fault| fault.locate(text))?);
    }
    if (values.len() as u64) < declared {
        return Err(too_few(text, values.len() as u64, declared));
    }
    Ok(values)
}
