//! Writing results: numbers for people, JSON for programs.
//!
//! Everything for people goes through [`print`], [`print_aside`] or [`complain`]. There rows and columns, which the library counts from 0 in its messages
//! as in its data, are counted from 1.

use crate::Failure;
use crate::args::is_standard;
use krylith::Csr;
use krylith::io::{FormatError, plain};
use krylith::report::counted_from_one;
use std::fmt::Display;
use std::io::{ErrorKind, Write};
use std::path::Path;

/// Prints to standard output; a reader that has gone away, as after `| head`, is no error.
pub fn print(text: &str) -> Result<(), Failure> {
    put(&counted_from_one(text))
}

fn put(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    printed(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// Prints to standard error, where standard output holds an answer.
pub fn print_aside(text: &str) -> Result<(), Failure> {
    written("standard error", std::io::stderr().lock().write_all(counted_from_one(text).as_bytes()))
}

/// What came of printing to standard output.
pub fn printed(result: std::io::Result<()>) -> Result<(), Failure> {
    written("standard output", result)
}

fn written(place: &str, result: std::io::Result<()>) -> Result<(), Failure> {
    match result {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => result.map_err(|error| format!("{place} cannot be written: {error}").into()),
    }
}

/// Writes a vector to standard output, one number per line.
pub fn print_vector(x: &[f64]) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    match plain::write_vector(&mut out, x) {
        Err(FormatError::Io(error)) => printed(Err(error)),
        Err(error) => Err(format!("standard output: {error}").into()),
        Ok(()) => printed(out.flush()),
    }
}

/// Prints a message to standard error. Where that is full or closed, the exit status has to do.
pub fn complain(message: impl Display) {
    let message = counted_from_one(&message.to_string());
    let _ = writeln!(std::io::stderr().lock(), "krylith: {message}");
}

/// Writes one JSON object to a file, or to standard output where the name is `-`.
pub fn write_json(path: &Path, value: &serde_json::Value) -> Result<(), Failure> {
    let text = format!("{value:#}\n");
    if is_standard(path) {
        return put(&text);
    }
    std::fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()).into())
}

/// Bytes for people: 1.23 GB.
pub fn bytes(count: u64) -> String {
    let units = [(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")];
    let count = count as f64;
    match units.iter().find(|(unit, _)| count >= *unit) {
        Some((unit, name)) => format!("{:.2} {name}", count / unit),
        None => format!("{count} bytes"),
    }
}

/// A count with its thousands apart: 27,000,000.
pub fn count(n: impl TryInto<u64>) -> String {
    let digits = n.try_into().ok().expect("counts fit in 64 bits").to_string();
    let mut text = String::new();
    for (k, digit) in digits.chars().enumerate() {
        if k > 0 && (digits.len() - k).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A count of things: 1 iteration, 2 iterations.
pub fn counted(n: usize, thing: &str) -> String {
    let plural = if n == 1 { "" } else { "s" };
    format!("{} {thing}{plural}", count(n))
}

/// The entries of a matrix: 1 entry, 2 entries.
pub fn entries(a: &Csr<f64>) -> String {
    if a.nnz() == 1 { "1 entry".into() } else { format!("{} entries", count(a.nnz())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_for_people() {
        assert_eq!(count(0u64), "0");
        assert_eq!(count(999usize), "999");
        assert_eq!(count(1_234_567usize), "1,234,567");
        assert_eq!(counted(0, "row"), "0 rows");
        assert_eq!(counted(1, "row"), "1 row");
        assert_eq!(counted(1_000, "row"), "1,000 rows");
        assert_eq!(bytes(999), "999 bytes");
        assert_eq!(bytes(2_500_000_000), "2.50 GB");
    }
}
