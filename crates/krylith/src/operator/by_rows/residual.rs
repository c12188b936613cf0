//! r = b − A x with a bound of its own rounding.
//!
//! A row with k entries is a sum of k + 1 terms. Let u = 2⁻⁵³, γ = (k + 1) u / (1 − (k + 1) u) and s = |b| + Σ |aⱼ xⱼ|.
//!
//! * Plain: products and sums in `f64`, in any order: |r̂ − r| ≤ γ s. One pass over A, as a product takes.
//! * Precise, in double-double: every product and sum with its rounding error, which is exact in `f64`, the errors summed
//!   beside: |r̂ − r| ≤ u |r| + γ² s. About five times the work. Errors of products come from a fused multiply-add, in
//!   hardware or in software: both round once, so the bits are the same.
//!
//! The bounds here are a little larger than these, so that their own rounding is covered: (k + 4) u in the place of γ, and a factor
//! of 1.01. A product that underflows adds an error of at most 2⁻¹⁰⁷⁴, and a square that does hides a number below 2⁻⁵³⁷: together
//! less than 2⁻⁵³⁰ per row, which is added at the end. Adding it row by row would be arithmetic on subnormal numbers, which
//! is slow: it was most of the pass.
//!
//! References: Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 3.1; Ogita, Rump & Oishi 2005,
//! doi:10.1137/030601818, algorithm Dot2 and its bound.
#![allow(unsafe_code)]

use super::spmv::part_of_rows;
use crate::disjoint::DisjointSlice;
use crate::error::BackendError;
use crate::matrix::{Csr, CsrRef};
use crate::operator::{ResidualBounds, ResidualNorms};
use crate::space::{BinnedSum, CHUNK, Space, Threads, gather, require_same};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// u: half of the distance from 1 to the next number.
pub(super) const ROUNDOFF: f64 = f64::EPSILON / 2.0;
/// 2⁻⁵³⁰: more than what a row loses to underflow.
const UNDERFLOW: f64 = f64::from_bits((1023 - 530) << 52);

/// 2⁻⁵⁴⁰: multiplied by it, every number has a square.
const TO_SQUARE: f64 = f64::from_bits((1023 - 540) << 52);

impl ResidualNorms<f64> {
    /// No smaller than ‖r‖₂; `None` for an operator that has no bound.
    pub(crate) fn upper(&self) -> Option<f64> {
        self.certain.map(|certain| (self.norm + certain.rounding) * (1.0 + 4.0 * ROUNDOFF))
    }
}

/// A bound of the relative error of a 2-norm of `n` numbers: a [`BinnedSum`] of squares, each of which it rounds to a multiple of 2⁻⁵⁰ of the largest.
pub(crate) fn norm_roundoff(n: usize) -> f64 {
    (2.0 * n as f64 + 8.0) * ROUNDOFF
}

/// The sizes of some rows of a residual, from which those of all rows are made: on any threads and processes, with the same bits.
#[derive(Debug, Clone, Copy)]
struct ResidualSums {
    /// Σ rᵢ², and the squares of the bounds of their roundings.
    squares: BinnedSum,
    roundings: BinnedSum,
    largest: f64,
    row_sum: f64,
    rows: usize,
    precise: bool,
    /// r and its roundings were multiplied by 2⁻⁵⁴⁰ before they were squared.
    scaled: bool,
}

impl ResidualSums {
    fn new(precise: bool, scaled: bool) -> Self {
        let (squares, roundings) = (BinnedSum::new(), BinnedSum::new());
        ResidualSums { squares, roundings, largest: 0.0, row_sum: 0.0, rows: 0, precise, scaled }
    }

    /// Adds the sizes of other rows.
    fn add(&mut self, other: &ResidualSums) {
        self.squares.add_sum(&other.squares);
        self.roundings.add_sum(&other.roundings);
        self.largest = larger(self.largest, other.largest);
        self.row_sum = larger(self.row_sum, other.row_sum);
        self.rows += other.rows;
    }

    /// Adds those of the rows of all other processes.
    fn add_others<S: Space>(&mut self, space: &S) -> Result<(), BackendError> {
        let mut words = [self.squares.to_words(), self.roundings.to_words()].concat();
        words.extend([self.largest.to_bits(), self.row_sum.to_bits(), self.rows as u64]);
        let all = gather(space, words)?;
        *self = ResidualSums::new(self.precise, self.scaled);
        for theirs in all {
            let sums = theirs.as_chunks().0.iter().filter_map(|words| BinnedSum::from_words(*words));
            let (Ok([squares, roundings]), &[largest, row_sum, rows]) =
                (<[BinnedSum; 2]>::try_from(sums.collect::<Vec<_>>()), theirs.as_chunks::<5>().1)
            else {
                return Err(BackendError::Failed {
                    what: "another process sends no sizes of a residual".into(),
                });
            };
            let (largest, row_sum) = (f64::from_bits(largest), f64::from_bits(row_sum));
            let own = ResidualSums::new(self.precise, self.scaled);
            self.add(&ResidualSums { squares, roundings, largest, row_sum, rows: rows as usize, ..own });
        }
        Ok(())
    }

    /// Adds r, bounds of its roundings and the sums of |aᵢⱼ| in at most [`CHUNK`] rows.
    fn add_rows(&mut self, r: &[f64], rows: &mut Rows) {
        let mut scaled = [0.0; CHUNK];
        let mut own = r;
        if self.scaled {
            scaled.iter_mut().zip(r).for_each(|(scaled, r)| *scaled = r * TO_SQUARE);
            rows.roundings.iter_mut().for_each(|rounding| *rounding *= TO_SQUARE);
            own = &scaled[..r.len()];
        }
        let roundings = &rows.roundings[..r.len()];
        self.squares.add_products(own, own);
        self.roundings.add_products(roundings, roundings);
        self.largest = r.iter().fold(self.largest, |largest, r| larger(largest, r.abs()));
        self.row_sum = larger(self.row_sum, rows.row_sum);
        self.rows += r.len();
    }

    /// Whether squares are out of range though what is squared is not: then it takes the sums of scaled numbers.
    fn is_out_of_range(&self) -> bool {
        !self.scaled
            && !(self.squares.value::<f64>() + self.roundings.value::<f64>()).is_finite()
            && self.largest.is_finite()
    }

    /// The sizes, if these are all rows.
    fn norms(&self) -> ResidualNorms<f64> {
        let (n, scale) = (self.rows, if self.scaled { TO_SQUARE } else { 1.0 });
        let correction = 1.0 + norm_roundoff(n);
        let of = |squares: &BinnedSum| squares.value::<f64>().sqrt() / scale;
        let (norm, rounding) = (of(&self.squares), of(&self.roundings));
        // Where all terms are zero, so is the error.
        let underflow = if rounding > 0.0 { n as f64 * UNDERFLOW / scale } else { 0.0 };
        let rounding = rounding * correction + norm * norm_roundoff(n) + underflow;
        let certain = Some(ResidualBounds { rounding, row_sum: self.row_sum, precise: self.precise });
        ResidualNorms { norm, largest: self.largest, certain }
    }
}

/// What some rows have besides r: bounds of its roundings, and the largest sum of |aᵢⱼ|.
struct Rows {
    roundings: [f64; CHUNK],
    row_sum: f64,
}

impl Csr<f64> {
    /// r = b − A x for the rows that this process has of a matrix, and the sizes of all of it: the same bits on any number of threads and processes,
    /// wherever the rows are divided. The columns are those of `x`, for which each process may have an order of its own. With `precise` in
    /// double-double. All processes of `space` call it together.
    pub fn residual_of_rows<S: Space>(
        &self,
        (space, threads): (&S, &Threads<f64>),
        (x, b): (&[f64], &[f64]),
        precise: bool,
        r: &mut [f64],
    ) -> Result<ResidualNorms<f64>, BackendError> {
        require_same("x and the columns of A", &x.len(), &self.ncols())?;
        require_same("b and the rows of A", &b.len(), &self.nrows())?;
        require_same("r and the rows of A", &r.len(), &self.nrows())?;
        let mut sums = residual_sums(threads, self, (x, b), (precise, false), r);
        sums.add_others(space)?;
        if sums.is_out_of_range() {
            sums = residual_sums(threads, self, (x, b), (precise, true), r);
            sums.add_others(space)?;
        }
        Ok(sums.norms())
    }
}

/// Computes r = b − A x for these rows, in double-double where that is asked for, and what sizes are made of.
fn residual_sums(
    space: &Threads<f64>,
    a: &Csr<f64>,
    (x, b): (&[f64], &[f64]),
    (precise, scaled): (bool, bool),
    r: &mut [f64],
) -> ResidualSums {
    assert!(x.len() == a.ncols() && b.len() == a.nrows() && r.len() == b.len(), "sizes of A, x, b and r");
    let members = Mutex::new(ResidualSums::new(precise, scaled));
    let (a, r) = (a.view(), DisjointSlice::new(r));
    space.team().run(|member| {
        let own = part_of_rows(a.row_ptr(), &member);
        let mut sums = ResidualSums::new(precise, scaled);
        let mut of_rows = Rows { roundings: [0.0; CHUNK], row_sum: 0.0 };
        for first in own.clone().step_by(CHUNK) {
            let rows = first..(first + CHUNK).min(own.end);
            // SAFETY: members have different rows.
            let r = unsafe { r.get(rows.clone()) };
            match precise {
                false => rows_in_double(a, rows, (x, b), r, &mut of_rows),
                true => rows_in_double_double(a, rows, (x, b), r, &mut of_rows),
            }
            sums.add_rows(r, &mut of_rows);
        }
        // No order of members changes a bit.
        members.lock().unwrap_or_else(PoisonError::into_inner).add(&sums);
    });
    members.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// The larger one, or the NaN.
#[inline(always)]
pub(super) fn larger(a: f64, b: f64) -> f64 {
    if a.is_nan() || b <= a { a } else { b }
}

fn rows_in_double(
    a: CsrRef<'_, f64>,
    rows: Range<usize>,
    (x, b): (&[f64], &[f64]),
    r: &mut [f64],
    own: &mut Rows,
) {
    const LANES: usize = 4;
    for (i, (r, rounding)) in rows.zip(r.iter_mut().zip(&mut own.roundings)) {
        let (columns, values) = a.row(i);
        // SAFETY: columns are below `ncols`, and x has that length: `residual` checks it.
        let x = |j: u32| unsafe { *x.get_unchecked(j as usize) };
        let (mut lanes, mut rest) = ([Terms::default(); LANES], Terms::default());
        let (c4, c_rest) = columns.as_chunks::<LANES>();
        let (v4, v_rest) = values.as_chunks::<LANES>();
        for (c, v) in c4.iter().zip(v4) {
            (0..LANES).for_each(|l| lanes[l].add(v[l], x(c[l])));
        }
        for (&j, &v) in c_rest.iter().zip(v_rest) {
            rest.add(v, x(j));
        }
        let total = |of: fn(&Terms) -> f64| {
            (of(&lanes[0]) + of(&lanes[2])) + (of(&lanes[1]) + of(&lanes[3])) + of(&rest)
        };
        *r = b[i] - total(|t| t.sum);
        let size = b[i].abs() + total(|t| t.size);
        *rounding = 1.01 * (values.len() as f64 + 4.0) * ROUNDOFF * size;
        own.row_sum = larger(own.row_sum, total(|t| t.row_sum));
    }
}

/// Sums of a row: Σ aⱼ xⱼ, Σ |aⱼ xⱼ| and Σ |aⱼ|.
#[derive(Clone, Copy, Default)]
struct Terms {
    sum: f64,
    size: f64,
    row_sum: f64,
}

impl Terms {
    #[inline(always)]
    fn add(&mut self, value: f64, x: f64) {
        let product = value * x;
        self.sum += product;
        self.size += product.abs();
        self.row_sum += value.abs();
    }
}

/// With a fused multiply-add in hardware where there is one.
fn rows_in_double_double(
    a: CsrRef<'_, f64>,
    rows: Range<usize>,
    of: (&[f64], &[f64]),
    r: &mut [f64],
    own: &mut Rows,
) {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "fma")]
        fn with_fma(
            a: CsrRef<'_, f64>,
            rows: Range<usize>,
            of: (&[f64], &[f64]),
            r: &mut [f64],
            own: &mut Rows,
        ) {
            rows_compensated(a, rows, of, r, own);
        }
        if is_x86_feature_detected!("fma") {
            // SAFETY: the processor has what the function was compiled for.
            return unsafe { with_fma(a, rows, of, r, own) };
        }
    }
    rows_compensated(a, rows, of, r, own);
}

#[inline(always)]
fn rows_compensated(
    a: CsrRef<'_, f64>,
    rows: Range<usize>,
    (x, b): (&[f64], &[f64]),
    r: &mut [f64],
    own: &mut Rows,
) {
    for (i, (r, rounding)) in rows.zip(r.iter_mut().zip(&mut own.roundings)) {
        let (columns, values) = a.row(i);
        let (mut sum, mut errors) = (b[i], 0.0);
        let (mut size, mut row_sum) = (b[i].abs(), 0.0);
        for (&j, &v) in columns.iter().zip(values) {
            let (minus, xj) = (-v, x[j as usize]);
            let (product, product_error) = two_product(minus, xj);
            let (next, sum_error) = two_sum(sum, product);
            sum = next;
            errors += product_error + sum_error;
            size += product.abs();
            row_sum += v.abs();
        }
        *r = sum + errors;
        let terms = values.len() as f64;
        let gamma = 1.01 * (terms + 4.0) * ROUNDOFF;
        *rounding = 1.01 * ROUNDOFF * r.abs() + gamma * gamma * size;
        own.row_sum = larger(own.row_sum, row_sum);
    }
}

/// a b as a product and its rounding error.
#[inline(always)]
pub(crate) fn two_product(a: f64, b: f64) -> (f64, f64) {
    let product = a * b;
    (product, a.mul_add(b, -product))
}

/// a + b as a sum and its rounding error (Knuth).
#[inline(always)]
pub(crate) fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let part = sum - a;
    (sum, (a - (sum - part)) + (b - part))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(
        space: &Threads<f64>,
        a: &Csr<f64>,
        of: (&[f64], &[f64]),
        precise: bool,
        r: &mut [f64],
    ) -> ResidualNorms<f64> {
        a.residual_of_rows((space, space), of, precise, r).unwrap()
    }

    fn norms(a: &Csr<f64>, x: &[f64], b: &[f64], precise: bool) -> (Vec<f64>, ResidualBounds<f64>) {
        let mut r = vec![0.0; b.len()];
        let norms = sizes(&Threads::new(2), a, (x, b), precise, &mut r);
        (r, norms.certain.unwrap())
    }

    /// 1 − (1 + 2⁻³⁰)(1 − 2⁻³⁰) = 2⁻⁶⁰, which `f64` does not see.
    #[test]
    fn cancellation_by_hand() {
        let e = 2f64.powi(-30);
        let a = Csr::from_triplets(1, 1, &[0], &[0], &[1.0 + e]).unwrap();
        let (r, single) = norms(&a, &[1.0 - e], &[1.0], false);
        assert_eq!(r, [0.0]);
        assert!(single.rounding >= e * e && single.rounding < 20.0 * f64::EPSILON, "{single:?}");
        let (r, double) = norms(&a, &[1.0 - e], &[1.0], true);
        assert_eq!(r, [e * e]);
        assert!(double.rounding < 1e-11 * e * e, "{double:?}");
        assert_eq!(double.row_sum, 1.0 + e);
    }

    #[test]
    fn software_and_hardware_give_the_same_bits() {
        let a = "atmosmod:6x6x6".parse::<crate::gallery::Problem>().unwrap().generate().unwrap();
        let n = a.nrows();
        let x: Vec<f64> = (0..n).map(|i| (i as f64).sin() * 10f64.powi(i as i32 % 30 - 15)).collect();
        let b: Vec<f64> = (0..n).map(|i| (i as f64).cos()).collect();
        let (mut hardware, mut software) = (vec![0.0; n], vec![0.0; n]);
        let new = || Rows { roundings: [0.0; CHUNK], row_sum: 0.0 };
        let (mut one, mut two) = (new(), new());
        rows_in_double_double(a.view(), 0..n, (&x, &b), &mut hardware, &mut one);
        rows_compensated(a.view(), 0..n, (&x, &b), &mut software, &mut two);
        assert!(n < CHUNK && hardware == software);
        assert_eq!((one.roundings, one.row_sum), (two.roundings, two.row_sum));
    }

    #[test]
    fn squares_out_of_range_are_scaled() {
        let a = Csr::from_triplets(2, 2, &[0, 1], &[0, 1], &[1e200, 1.0]).unwrap();
        for precise in [false, true] {
            let norms = sizes(&Threads::new(1), &a, (&[-3.0, 1.0], &[0.0, 4e200]), precise, &mut [0.0; 2]);
            assert!((norms.norm / 5e200 - 1.0).abs() < 1e-15, "{norms:?}");
            let rounding = norms.certain.unwrap().rounding;
            assert!(rounding > 0.0 && rounding < 1e-10 * norms.norm, "{norms:?}");
        }
    }

    #[test]
    fn not_a_number_is_not_lost() {
        let a = Csr::identity(3).unwrap();
        let norms = sizes(&Threads::new(1), &a, (&[1.0, f64::NAN, 1.0], &[1.0; 3]), false, &mut [0.0; 3]);
        assert!(norms.norm.is_nan() && norms.largest.is_nan() && norms.upper().unwrap().is_nan());
    }
}
