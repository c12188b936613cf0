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
use super::{Csr, CsrRef};
use crate::disjoint::DisjointSlice;
use crate::operator::{ResidualBounds, ResidualNorms};
use crate::space::{CHUNK, Threads};
use std::ops::Range;

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

/// A bound of the relative error of a 2-norm of `n` numbers: squares are summed by chunks, then the sums of chunks.
pub(crate) fn norm_roundoff(n: usize) -> f64 {
    (CHUNK + n / CHUNK + 16) as f64 * ROUNDOFF
}

/// What a chunk of rows adds.
#[derive(Debug, Clone, Copy, Default)]
struct Chunk {
    squares: f64,
    roundings: f64,
    largest: f64,
    row_sum: f64,
}

/// Computes r = b − A x and its sizes, the same bits on any number of threads.
pub(super) fn residual(
    space: &Threads<f64>,
    a: &Csr<f64>,
    (x, b): (&[f64], &[f64]),
    precise: bool,
    r: &mut [f64],
) -> ResidualNorms<f64> {
    assert!(x.len() == a.ncols() && b.len() == a.nrows() && r.len() == b.len(), "sizes of A, x, b and r");
    let n = b.len();
    let mut scale = 1.0;
    let mut sum = sums(space, a.view(), (x, b), (precise, scale), r);
    // Squares may be out of range where what is squared is not.
    if !(sum.squares + sum.roundings).is_finite() && sum.largest.is_finite() {
        scale = TO_SQUARE;
        sum = sums(space, a.view(), (x, b), (precise, scale), r);
    }
    let correction = 1.0 + norm_roundoff(n);
    let (norm, rounding) = (sum.squares.sqrt() / scale, sum.roundings.sqrt() / scale);
    // Where all terms are zero, so is the error.
    let underflow = if sum.roundings > 0.0 { n as f64 * UNDERFLOW / scale } else { 0.0 };
    let rounding = rounding * correction + norm * norm_roundoff(n) + underflow;
    let certain = Some(ResidualBounds { rounding, row_sum: sum.row_sum, precise });
    ResidualNorms { norm, largest: sum.largest, certain }
}

/// r = b − A x and the sums of all rows, r and its roundings multiplied by a power of two before they are squared.
fn sums(
    space: &Threads<f64>,
    a: CsrRef<'_, f64>,
    (x, b): (&[f64], &[f64]),
    (precise, scale): (bool, f64),
    r: &mut [f64],
) -> Chunk {
    let mut chunks = vec![Chunk::default(); b.len().div_ceil(CHUNK)];
    let (r, parts) = (DisjointSlice::new(r), DisjointSlice::new(&mut chunks));
    space.team().run(|member| {
        let own = part_of_rows(a.row_ptr(), &member);
        for first in own.clone().step_by(CHUNK) {
            let rows = first..(first + CHUNK).min(own.end);
            // SAFETY: members have different rows, in whole chunks.
            let r = unsafe { r.get(rows.clone()) };
            let chunk = match precise {
                false => rows_in_double(a, rows, x, (b, scale), r),
                true => rows_in_double_double(a, rows, x, (b, scale), r),
            };
            // SAFETY: as above, for the number of the chunk.
            unsafe { parts.write(first / CHUNK, chunk) };
        }
    });
    let mut sum = Chunk::default();
    chunks.iter().for_each(|chunk| sum.add(chunk.squares, chunk.roundings, *chunk));
    sum
}

impl Chunk {
    /// Adds squares; the largest entries are those of `other` or these. A NaN stays.
    #[inline(always)]
    fn add(&mut self, square: f64, rounding: f64, other: Chunk) {
        self.squares += square;
        self.roundings += rounding;
        self.largest = larger(self.largest, other.largest);
        self.row_sum = larger(self.row_sum, other.row_sum);
    }

    #[inline(always)]
    fn add_row(&mut self, (r, rounding, scale): (f64, f64, f64), row_sum: f64) {
        let row = Chunk { largest: r.abs(), row_sum, ..Chunk::default() };
        let (r, rounding) = (r * scale, rounding * scale);
        self.add(r * r, rounding * rounding, row);
    }
}

/// The larger one, or the NaN.
#[inline(always)]
pub(super) fn larger(a: f64, b: f64) -> f64 {
    if a.is_nan() || b <= a { a } else { b }
}

fn rows_in_double(
    a: CsrRef<'_, f64>,
    rows: Range<usize>,
    x: &[f64],
    (b, scale): (&[f64], f64),
    r: &mut [f64],
) -> Chunk {
    const LANES: usize = 4;
    let mut chunk = Chunk::default();
    for (i, r) in rows.zip(r) {
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
        let rounding = 1.01 * (values.len() as f64 + 4.0) * ROUNDOFF * size;
        chunk.add_row((*r, rounding, scale), total(|t| t.row_sum));
    }
    chunk
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
    x: &[f64],
    b: (&[f64], f64),
    r: &mut [f64],
) -> Chunk {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "fma")]
        fn with_fma(
            a: CsrRef<'_, f64>,
            rows: Range<usize>,
            x: &[f64],
            b: (&[f64], f64),
            r: &mut [f64],
        ) -> Chunk {
            rows_compensated(a, rows, x, b, r)
        }
        if is_x86_feature_detected!("fma") {
            // SAFETY: the processor has what the function was compiled for.
            return unsafe { with_fma(a, rows, x, b, r) };
        }
    }
    rows_compensated(a, rows, x, b, r)
}

#[inline(always)]
fn rows_compensated(
    a: CsrRef<'_, f64>,
    rows: Range<usize>,
    x: &[f64],
    (b, scale): (&[f64], f64),
    r: &mut [f64],
) -> Chunk {
    let mut chunk = Chunk::default();
    for (i, r) in rows.zip(r) {
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
        let rounding = 1.01 * ROUNDOFF * r.abs() + gamma * gamma * size;
        chunk.add_row((*r, rounding, scale), row_sum);
    }
    chunk
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

    fn norms(a: &Csr<f64>, x: &[f64], b: &[f64], precise: bool) -> (Vec<f64>, ResidualBounds<f64>) {
        let mut r = vec![0.0; b.len()];
        let norms = residual(&Threads::new(2), a, (x, b), precise, &mut r);
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
        let one = rows_in_double_double(a.view(), 0..n, &x, (&b, 1.0), &mut hardware);
        let two = rows_compensated(a.view(), 0..n, &x, (&b, 1.0), &mut software);
        assert_eq!(hardware, software);
        assert_eq!((one.squares, one.roundings), (two.squares, two.roundings));
    }

    #[test]
    fn squares_out_of_range_are_scaled() {
        let a = Csr::from_triplets(2, 2, &[0, 1], &[0, 1], &[1e200, 1.0]).unwrap();
        for precise in [false, true] {
            let norms = residual(&Threads::new(1), &a, (&[-3.0, 1.0], &[0.0, 4e200]), precise, &mut [0.0; 2]);
            assert!((norms.norm / 5e200 - 1.0).abs() < 1e-15, "{norms:?}");
            let rounding = norms.certain.unwrap().rounding;
            assert!(rounding > 0.0 && rounding < 1e-10 * norms.norm, "{norms:?}");
        }
    }

    #[test]
    fn not_a_number_is_not_lost() {
        let a = Csr::identity(3).unwrap();
        let norms = residual(&Threads::new(1), &a, (&[1.0, f64::NAN, 1.0], &[1.0; 3]), false, &mut [0.0; 3]);
        assert!(norms.norm.is_nan() && norms.largest.is_nan() && norms.upper().unwrap().is_nan());
    }
}
