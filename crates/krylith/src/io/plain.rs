//! Plain text vectors: one number per line.
//!
//! Blank lines and lines that begin with `#` or `%` are left out. There is no header: the vector has as many entries as there are
//! lines with a number. Numbers are read as those of Matrix Market are: Fortran's exponent letter `D` is understood, infinite
//! values and NaN are refused. Several numbers on a line are an error, since nothing says in which order they would be meant.
//!
//! Memory: the text, and 8 bytes for each line that can hold a number. Such a line has at least two bytes, so the vector takes at
//! most four times the text.

use super::error::{FormatError, LineFault};
use super::matrix_market::{number, push_number, write_blocks};
use super::source::Source;
use std::io::Write;

/// What an empty vector is written as: a file without content would not be recognised.
const NO_NUMBERS: &[u8] = b"# no numbers\n";

/// The first bytes may be those of numbers, one per line, or of a comment before them.
pub(crate) fn looks_like(bytes: &[u8]) -> bool {
    match bytes.trim_ascii_start().first() {
        None => true,
        Some(first) => first.is_ascii_digit() || b"+-.#%".contains(first),
    }
}

/// A vector from plain text, one number per line.
///
/// ```
/// use krylith::io::plain;
/// assert_eq!(plain::parse_vector(b"# two numbers\n1.5\n\n-2e-3\n")?, [1.5, -2e-3]);
/// # Ok::<(), krylith::io::FormatError>(())
/// ```
pub fn parse_vector(text: &[u8]) -> Result<Vec<f64>, FormatError> {
    read_vector(&text.into())
}

/// A vector from text that may be in a file.
pub(crate) fn read_vector(text: &Source) -> Result<Vec<f64>, FormatError> {
    let mut buffer = Vec::new();
    let text = text.block(0..text.len(), &mut buffer)?;
    let numbers = || lines(text).filter(|(_, line)| holds_something(line));
    // Counted first: an array that grows would take more than its share meanwhile.
    let mut values = Vec::new();
    values.try_reserve_exact(numbers().count()).map_err(std::io::Error::from)?;
    for (at, line) in numbers() {
        values.push(value(line).map_err(|fault| FormatError::Line { line: at, fault })?);
    }
    Ok(values)
}

/// Lines without blanks around them, numbered from 1.
fn lines(text: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    (1..).zip(text.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii))
}

fn holds_something(line: &[u8]) -> bool {
    !matches!(line.first(), None | Some(b'#' | b'%'))
}

/// The number of a line that holds nothing else.
fn value(line: &[u8]) -> Result<f64, LineFault> {
    let (value, length) = number(line);
    if !value.is_finite() {
        return Err(LineFault::Value { field: "real" });
    }
    let rest = &line[length..];
    let separator = |byte: &u8| byte.is_ascii_whitespace() || b",;".contains(byte);
    let separators = rest.iter().take_while(|&byte| separator(byte)).count();
    match (rest.is_empty(), separators, rest.get(separators)) {
        (true, ..) => Ok(value),
        (false, 1.., None) => Err(LineFault::Several),
        (false, 1.., Some(next)) if next.is_ascii_digit() || b"+-.".contains(next) => Err(LineFault::Several),
        _ => Err(LineFault::Trailing),
    }
}

/// Writes a vector as plain text: one number per line, with the fewest digits that read back to the same bits.
pub fn write_vector(out: &mut dyn Write, x: &[f64]) -> Result<(), FormatError> {
    if x.is_empty() {
        out.write_all(NO_NUMBERS)?;
    }
    write_blocks(out, x.len(), |i, text| {
        push_number(text, x[i]).ok_or(FormatError::NotFinite { row: i + 1, column: 1, value: x[i] })?;
        text.push(b'\n');
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_bytes_of_numbers() {
        for text in ["1\n", " \n\n -1e5", "# x", "% x", ".5", "+2", "", "\n"] {
            assert!(looks_like(text.as_bytes()), "{text:?}");
        }
        for text in ["hello", "nan", "\u{0}\u{1}", "(", "PK"] {
            assert!(!looks_like(text.as_bytes()), "{text:?}");
        }
    }
}
