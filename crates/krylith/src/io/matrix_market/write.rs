//! Writing: rows formatted in parallel, numbers with the fewest digits that read back to the same bits.

use crate::io::error::FormatError;
use crate::matrix::{Csr, ROWS_PER_TASK};
use crate::parallel;
use std::io::Write;

/// Blocks of rows formatted before they are written: enough for all threads, few enough to keep the text small.
const BLOCKS_AT_ONCE: usize = 32;

/// Writes a matrix; a symmetric or skew-symmetric one as its lower triangle.
pub(crate) fn write_matrix(out: &mut dyn Write, a: &Csr<f64>) -> Result<(), FormatError> {
    let form = form(a);
    let lower = form != "general";
    let kept = |i: usize| {
        let (columns, values) = a.row(i);
        let end = if lower { columns.partition_point(|&j| j as usize <= i) } else { columns.len() };
        (&columns[..end], &values[..end])
    };
    let entries = parallel::sum(a.nrows(), |i| kept(i).0.len());
    writeln!(out, "%%MatrixMarket matrix coordinate real {form}")?;
    writeln!(out, "{} {} {entries}", a.nrows(), a.ncols())?;
    write_blocks(out, a.nrows(), |i, text| {
        let (columns, values) = kept(i);
        for (&j, &value) in columns.iter().zip(values) {
            push_integer(text, i as u64 + 1);
            text.push(b' ');
            push_integer(text, u64::from(j) + 1);
            text.push(b' ');
            push_number(text, value).ok_or(FormatError::NotFinite {
                row: i + 1,
                column: j as usize + 1,
                value,
            })?;
            text.push(b'\n');
        }
        Ok(())
    })
}

/// The form in which one triangle stands for both, to the bit and with its explicit zeros; "general" otherwise.
fn form(a: &Csr<f64>) -> &'static str {
    let mirrors = |mirror: fn(f64) -> f64| {
        a.nrows() == a.ncols()
            && parallel::all(a.nrows(), |i| {
                let (columns, values) = a.row(i);
                columns.iter().zip(values).all(|(&j, &v)| {
                    let partner = a.view().find(j as usize, i);
                    partner.is_some_and(|p| p.to_bits() == mirror(v).to_bits())
                })
            })
    };
    if mirrors(|v| v) {
        "symmetric"
    } else if mirrors(|v| -v) {
        // No number is its own negative bit by bit, so there is no diagonal entry.
        "skew-symmetric"
    } else {
        "general"
    }
}

/// Writes a vector as an array of one column.
pub(crate) fn write_vector(out: &mut dyn Write, x: &[f64]) -> Result<(), FormatError> {
    writeln!(out, "%%MatrixMarket matrix array real general")?;
    writeln!(out, "{} 1", x.len())?;
    write_blocks(out, x.len(), |i, text| {
        push_number(text, x[i]).ok_or(FormatError::NotFinite { row: i + 1, column: 1, value: x[i] })?;
        text.push(b'\n');
        Ok(())
    })
}

/// Formats `n` rows in blocks on all threads and writes the blocks in order.
pub(crate) fn write_blocks(
    out: &mut dyn Write,
    n: usize,
    format: impl Fn(usize, &mut Vec<u8>) -> Result<(), FormatError> + Sync,
) -> Result<(), FormatError> {
    let mut texts: Vec<Vec<u8>> = vec![Vec::new(); BLOCKS_AT_ONCE];
    for first in (0..n).step_by(BLOCKS_AT_ONCE * ROWS_PER_TASK) {
        parallel::try_for_each_piece_mut(&mut texts, 1, |block, text| {
            let text = &mut text[0];
            text.clear();
            let start = (first + block * ROWS_PER_TASK).min(n);
            (start..(start + ROWS_PER_TASK).min(n)).try_for_each(|i| format(i, text))
        })?;
        for text in &texts {
            out.write_all(text)?;
        }
    }
    Ok(())
}

fn push_integer(text: &mut Vec<u8>, value: u64) {
    text.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// `None` for what is not finite.
pub(crate) fn push_number(text: &mut Vec<u8>, value: f64) -> Option<()> {
    if !value.is_finite() {
        return None;
    }
    let mut buffer = zmij::Buffer::new();
    let digits = buffer.format_finite(value);
    text.extend_from_slice(digits.strip_suffix(".0").unwrap_or(digits).as_bytes());
    Some(())
}
