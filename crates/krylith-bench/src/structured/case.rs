//! A matrix of the study: a stencil, unknowns per point, points along each of three axes; made, sized and counted.
//!
//! Unknown c of point (x, y, z) is row d (x + n (y + n z)) + c; every coupling is a full block of d × d entries. Entries off the
//! diagonal are hashes of row and column: sizes in [1/4, 1), either sign. The diagonal entry is one more than the sum of sizes in
//! its row, so ILU(0) exists and its factors do not grow. Point blocks are full, so ILU(0) by entries and by blocks is the same
//! preconditioner.
//!
//! Counts are exact, boundary included. An operation is a product, a sum or a quotient of two numbers.
//!
//! | | operations | bytes at least |
//! |---|---|---|
//! | product | 2 nnz | values, x, y: 8 nnz + 16 rows |
//! | both triangles | 2 nnz − rows | values, and two vectors per sweep: 8 nnz + 32 rows |
//! | ILU(0) | those of elimination by entries | A read, factors written: 16 nnz |
//!
//! Indices are overhead: a matrix on a grid needs none. What is read again from a cache is not counted.

use super::stencil::{Offset, Stencil, is_lower, is_upper, sum};
use crate::Failure;
use krylith::Csr;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A matrix of the study.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Case {
    pub stencil: Stencil,
    /// Unknowns per point.
    pub dof: usize,
    /// Points along each axis.
    pub n: usize,
}

/// Unknowns a point at most: what blocks have.
pub const MOST_DOF: usize = 8;

/// Grids are multiples of this.
const STEP: usize = 8;

/// Points along an axis at most: rows and entries stay far from 2⁶⁴, and drivers have 32-bit counts anyway.
const MOST_POINTS: usize = 1024;

/// What is timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// y = A x.
    Product,
    /// z = U⁻¹ L⁻¹ r.
    Apply,
    /// The numbers of L and U.
    Factor,
}

impl Operation {
    pub const ALL: [Operation; 3] = [Operation::Product, Operation::Apply, Operation::Factor];

    /// The name in a driver's line.
    pub fn key(self) -> &'static str {
        match self {
            Operation::Product => "spmv",
            Operation::Apply => "apply",
            Operation::Factor => "factor",
        }
    }

    /// The name for people.
    pub fn name(self) -> &'static str {
        match self {
            Operation::Product => "product A x",
            Operation::Apply => "both triangles of ILU(0)",
            Operation::Factor => "factorization ILU(0)",
        }
    }
}

impl Case {
    /// The multiple of eight points an axis whose values take about this many bytes.
    pub fn sized(stencil: Stencil, dof: usize, bytes: f64) -> Case {
        let sizes = (STEP..=MOST_POINTS).step_by(STEP).map(|n| Case { stencil, dof, n });
        let distance = |case: &Case| (8.0 * case.nnz() as f64 - bytes).abs();
        let nearest = sizes.min_by(|a, b| distance(a).total_cmp(&distance(b)));
        nearest.unwrap_or(Case { stencil, dof, n: STEP })
    }

    pub fn rows(&self) -> u64 {
        (self.dof * self.n.pow(3)) as u64
    }

    pub fn nnz(&self) -> u64 {
        let points: u64 = self.stencil.offsets().iter().map(|&o| self.points(&[o])).sum();
        points * (self.dof * self.dof) as u64
    }

    /// Points from which all these offsets stay in the grid.
    fn points(&self, offsets: &[Offset]) -> u64 {
        let along = |axis: usize| {
            let reach = |least: i32, most: i32| (most - least) as u64;
            let of = || offsets.iter().map(|o| o[axis]);
            let (least, most) = (of().fold(0, i32::min), of().fold(0, i32::max));
            (self.n as u64).saturating_sub(reach(least, most))
        };
        (0..3).map(along).product()
    }

    pub fn flops(&self, operation: Operation) -> u64 {
        match operation {
            Operation::Product => 2 * self.nnz(),
            Operation::Apply => 2 * self.nnz() - self.rows(),
            Operation::Factor => self.factor_flops(),
        }
    }

    /// A block of d rows: L Uₖₖ = A for every lower block, d³; an update by a product of blocks, 2 d³; the dense LU of the
    /// diagonal block; its L with every upper block, d² (d − 1).
    fn factor_flops(&self) -> u64 {
        let d = self.dof as u64;
        let count = |keep: fn(&Offset) -> bool| -> u64 {
            self.stencil.offsets().iter().filter(|o| keep(o)).map(|&o| self.points(&[o])).sum()
        };
        let updates: u64 = self.stencil.updates().iter().map(|&(l, u)| self.points(&[l, sum(l, u)])).sum();
        let dense: u64 = (0..d).map(|k| k + 2 * k * k).sum();
        let (lower, upper) = (count(is_lower), count(is_upper));
        lower * d.pow(3) + updates * 2 * d.pow(3) + upper * d * d * (d - 1) + (self.n as u64).pow(3) * dense
    }

    pub fn bytes(&self, operation: Operation) -> u64 {
        match operation {
            Operation::Product => 8 * self.nnz() + 16 * self.rows(),
            Operation::Apply => 8 * self.nnz() + 32 * self.rows(),
            Operation::Factor => 16 * self.nnz(),
        }
    }

    /// The matrix, made in parallel; the same bits on any number of threads.
    pub fn matrix(&self) -> Result<Csr<f64>, Failure> {
        let rows = usize::try_from(self.rows())?;
        let offsets = self.stencil.offsets();
        let length = |row: usize| self.neighbours(&offsets, row / self.dof).count() * self.dof;
        let fill = |row: usize, columns: &mut [u32], values: &mut [f64]| {
            let (mut diagonal, mut size, mut k) = (0, 1.0, 0);
            for point in self.neighbours(&offsets, row / self.dof) {
                for column in point * self.dof..(point + 1) * self.dof {
                    (columns[k], values[k]) = (column as u32, entry(row, column));
                    match column == row {
                        true => diagonal = k,
                        false => size += values[k].abs(),
                    }
                    k += 1;
                }
            }
            values[diagonal] = size;
        };
        Ok(Csr::from_rows(rows, rows, length, fill)?)
    }

    /// The points that a point is coupled with, rising.
    fn neighbours(&self, offsets: &[Offset], point: usize) -> impl Iterator<Item = usize> {
        let n = self.n as i32;
        let at = [point % self.n, point / self.n % self.n, point / self.n / self.n].map(|x| x as i32);
        offsets.iter().filter_map(move |&offset| {
            let [x, y, z] = sum(at, offset);
            let inside = [x, y, z].iter().all(|m| (0..n).contains(m));
            inside.then(|| x as usize + n as usize * (y as usize + n as usize * z as usize))
        })
    }

    /// Entry i of the vector that every contestant multiplies once before it is timed; `peers/grid.h` has the same.
    pub fn probe(i: u64) -> f64 {
        ((37 * i) % 101) as f64 / 64.0 - 0.75
    }
}

/// The entry of a row and a column off the diagonal.
fn entry(row: usize, column: usize) -> f64 {
    let bits = hash(hash(row as u64) ^ column as u64);
    let size = 0.25 + 0.75 * (bits >> 11) as f64 / (1u64 << 53) as f64;
    if bits & 1 == 0 { size } else { -size }
}

/// The finalizer of SplitMix64 behind its step. Reference: Steele, Lea & Flood 2014, doi:10.1145/2714064.2660195.
fn hash(k: u64) -> u64 {
    let z = k.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// `Star-7P-2`, as the paper writes it.
impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.stencil.name(), self.dof)
    }
}

/// `Star-7P:2:64`.
impl FromStr for Case {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let words: Vec<&str> = text.split(':').collect();
        let [stencil, dof, n] = words[..] else { return Err("a case is STENCIL:DOF:N".into()) };
        let number = |word: &str, most: usize| match word.parse() {
            Ok(value) if (1..=most).contains(&value) => Ok(value),
            _ => Err(format!("`{word}` is not a number from 1 to {most}")),
        };
        Ok(Case { stencil: stencil.parse()?, dof: number(dof, MOST_DOF)?, n: number(n, MOST_POINTS)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(text: &str) -> Case {
        text.parse().unwrap()
    }

    #[test]
    fn sizes_take_about_the_bytes_asked_for() {
        let n = |stencil, dof| Case::sized(stencil, dof, 400e6).n;
        assert_eq!(n(Stencil::Star7, 1), 192);
        assert_eq!(n(Stencil::Box27, 8), 32);
        // 400 MB are 50 million entries: 25 (x 4, 16, …) a point.
        assert_eq!([1, 2, 4, 6, 8].map(|d| n(Stencil::Diamond25, d)), [128, 80, 48, 40, 32]);
        assert_eq!(Case::sized(Stencil::Star7, 1, 0.0).n, 8);
    }

    /// Star-7P on 2³ points, one unknown each: every point has 3 neighbours. The entries are 8 · 4; a row has 1.5 lower ones on
    /// average: 12 quotients. No two neighbours are coupled, so the only updates are of pivots: 12, each 2 operations.
    #[test]
    fn counts_by_hand() {
        let case = case("star-7p:1:2");
        assert_eq!((case.rows(), case.nnz()), (8, 32));
        assert_eq!(Operation::ALL.map(|o| case.flops(o)), [64, 56, 12 + 24]);
        assert_eq!(Operation::ALL.map(|o| case.bytes(o)), [256 + 128, 256 + 256, 512]);
    }

    /// Elimination by entries within A's pattern, counting as it goes.
    fn eliminate_and_count(a: &Csr<f64>) -> u64 {
        let mut count = 0;
        for i in 0..a.nrows() {
            for &k in a.row(i).0.iter().filter(|&&k| (k as usize) < i) {
                count += 1;
                let later = a.row(k as usize).0.iter().filter(|&&j| j > k);
                count += 2 * later.filter(|&&j| a.row(i).0.binary_search(&j).is_ok()).count() as u64;
            }
        }
        count
    }

    #[test]
    fn flops_of_a_factorization_are_those_of_elimination() {
        for text in ["star-7p:1:4", "star-13p:2:5", "diamond-13p:3:4", "diamond-25p:1:5", "box-27p:2:3"] {
            let case = case(text);
            let a = case.matrix().unwrap();
            assert_eq!(a.nnz() as u64, case.nnz(), "{text}");
            assert_eq!(case.flops(Operation::Factor), eliminate_and_count(&a), "{text}");
        }
    }

    #[test]
    fn matrices_are_dominant_and_not_symmetric() {
        let case = case("box-27p:2:4");
        let a = case.matrix().unwrap();
        for i in 0..a.nrows() {
            let (columns, values) = a.row(i);
            let place = columns.binary_search(&(i as u32)).unwrap();
            let others: f64 = values.iter().map(|v| v.abs()).sum::<f64>() - values[place];
            assert!((values[place] - others - 1.0).abs() < 1e-12);
            assert!(values.iter().all(|v| v.abs() >= 0.25));
        }
        assert_ne!(a.get(0, 1), a.get(1, 0));
    }

    #[test]
    fn a_case_is_read_back() {
        let case = case("Diamond-25P:4:48");
        assert_eq!(case, Case { stencil: Stencil::Diamond25, dof: 4, n: 48 });
        assert_eq!(case.to_string(), "Diamond-25P-4");
        for wrong in ["star-7p:1", "star-7p:9:8", "star-7p:0:8", "star-7p:1:99999", "x:1:8"] {
            assert!(wrong.parse::<Case>().is_err(), "{wrong}");
        }
    }
}
