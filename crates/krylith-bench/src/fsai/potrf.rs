//! Small dense systems in the layouts of all who factor them, and MKL's driver; the file's layout stands in `peers/mkl_potrf.c`.

use crate::Failure;
use crate::compare::environment;
use krylith::precond::fsai::phases::{SYSTEMS, triangle};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::Command;

/// A floating-point number of the study.
pub trait Number: krylith::scalar::Real {
    const BYTES: usize;
    /// The name in tables.
    const NAME: &'static str;
    fn to_bytes(self, out: &mut Vec<u8>);
}

impl Number for f64 {
    const BYTES: usize = 8;
    const NAME: &'static str = "f64";
    fn to_bytes(self, out: &mut Vec<u8>) {
        out.extend(self.to_le_bytes());
    }
}

impl Number for f32 {
    const BYTES: usize = 4;
    const NAME: &'static str = "f32";
    fn to_bytes(self, out: &mut Vec<u8>) {
        out.extend(self.to_le_bytes());
    }
}

/// Distinct systems of one size, in two layouts.
pub struct Pool<T> {
    pub m: usize,
    /// Lower triangles by rows, eight systems in the lanes of every number.
    pub in_lanes: Vec<[T; SYSTEMS]>,
    /// Whole squares by columns, one system after the other.
    pub by_columns: Vec<T>,
}

/// What the squares of a pool take at most.
const MOST_BYTES: usize = 256 << 20;
/// Numbers of systems are multiples of the widest register.
const MULTIPLE: usize = 16;

/// Entry (i, j) of system s; a diagonal that is more than the sum of its row.
fn entry(m: usize, s: usize, i: usize, j: usize) -> f64 {
    let (low, high) = (i.min(j), i.max(j));
    match i == j {
        true => 2.0 + m as f64 / 3.0,
        false => 0.6 * ((high * 31 + low * 17 + s * 7919 + high * low) % 1013) as f64 / 1013.0 - 0.3,
    }
}

impl<T: Number> Pool<T> {
    /// For so many systems: as many, or as many as memory is allowed to hold.
    pub fn new(m: usize, systems: usize) -> Self {
        let fit = MOST_BYTES / (m * m * T::BYTES) / MULTIPLE;
        let systems = MULTIPLE * systems.div_ceil(MULTIPLE).min(fit).max(1);
        let number = |s, i, j| T::from_f64(entry(m, s, i, j));
        let (mut in_lanes, mut by_columns) = (Vec::new(), Vec::new());
        for first in (0..systems).step_by(SYSTEMS) {
            for (i, j) in (0..m).flat_map(|i| (0..=i).map(move |j| (i, j))) {
                in_lanes.push(std::array::from_fn(|lane| number(first + lane, i, j)));
            }
        }
        for s in 0..systems {
            by_columns.extend((0..m * m).map(|at| number(s, at % m, at / m)));
        }
        Pool { m, in_lanes, by_columns }
    }

    pub fn systems(&self) -> usize {
        self.by_columns.len() / (self.m * self.m)
    }

    /// Batch b, again and again.
    pub fn batch(&self, b: usize) -> &[[T; SYSTEMS]] {
        let size = triangle(self.m);
        &self.in_lanes[b % (self.systems() / SYSTEMS) * size..][..size]
    }

    /// System s, again and again.
    pub fn system(&self, s: usize) -> &[T] {
        let size = self.m * self.m;
        &self.by_columns[s % self.systems() * size..][..size]
    }

    /// Writes the file of MKL's driver, with the last rows of inverses that it compares with.
    pub fn write(&self, file: &Path, systems: usize, expected: &[T]) -> Result<(), Failure> {
        let mut out = BufWriter::with_capacity(1 << 20, File::create(file)?);
        for head in [self.m, self.systems(), T::BYTES, systems] {
            out.write_all(&(head as i64).to_le_bytes())?;
        }
        let mut bytes = Vec::new();
        for numbers in self.by_columns.chunks(1 << 16).chain(expected.chunks(1 << 16)) {
            bytes.clear();
            numbers.iter().for_each(|number| number.to_bytes(&mut bytes));
            out.write_all(&bytes)?;
        }
        Ok(out.flush()?)
    }
}

/// What MKL's driver says.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    pub version: String,
    /// Seconds of all systems.
    pub potrf: f64,
    pub compact: f64,
    /// The largest difference from what the file expects.
    pub difference: f64,
}

/// Runs the driver once, on one thread. It fails where its numbers are others than the file's.
pub fn turn(driver: &Path, file: &Path) -> Result<Turn, Failure> {
    let mut command = Command::new(driver);
    environment(&mut command, 1);
    let output = command.arg(file).output()?;
    match output.status.success() {
        true => parse(&output.stdout),
        false => Err(String::from_utf8_lossy(&output.stderr).trim().into()),
    }
}

fn parse(line: &[u8]) -> Result<Turn, Failure> {
    let line: serde_json::Value = serde_json::from_slice(line)?;
    let number = |name: &str| line[name].as_f64().ok_or_else(|| format!("no {name} in the driver's line"));
    let version = line["version"].as_str().unwrap_or_default().to_owned();
    Ok(Turn {
        version,
        potrf: number("potrf")?,
        compact: number("compact")?,
        difference: number("difference")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_have_the_same_systems() {
        let pool = Pool::<f32>::new(5, 20);
        assert_eq!(pool.systems(), 32);
        for (s, i, j) in [(0, 4, 2), (13, 3, 3), (31, 4, 0)] {
            let number = pool.system(s)[i + 5 * j];
            assert_eq!(pool.batch(s / SYSTEMS)[triangle(i) + j][s % SYSTEMS], number);
            assert_eq!(pool.system(s)[j + 5 * i], number);
            assert_eq!(pool.system(s + 32)[i + 5 * j], number);
        }
        assert_ne!(pool.system(0), pool.system(1));
    }

    #[test]
    fn the_driver_has_a_line() {
        let turn = parse(br#"{"version":"1.2","potrf":0.5,"compact":0.25,"difference":1e-16}"#).unwrap();
        assert_eq!((turn.potrf, turn.compact, turn.version.as_str()), (0.5, 0.25, "1.2"));
        assert!(parse(br#"{"potrf":0.5}"#).is_err());
    }
}
