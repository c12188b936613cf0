//! How large numbers are, whether they are finite, and the power of two that brings them into range.
//!
//! Methods square numbers. Squares of numbers beyond 2^±511 leave the range of `f64`, and certificates need room below that for
//! rounding errors of the size ε² ‖b‖. So where the largest entry of A or of b is beyond 2^±[`RANGE`], the system is multiplied by
//! powers of two, which rounds nothing. Systems in range are left as they are.

use crate::error::{SetupError, SolveError};
use crate::matrix::Csr;
use crate::space::Threads;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Exponents that need no scaling.
const RANGE: i32 = 200;
/// The largest power of two that is used, in either direction.
const LARGEST_SCALE: i32 = 1000;
/// Numbers are looked at in pieces of this many.
const GRAIN: usize = 2048;

/// The sizes of some numbers, zeros left out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Magnitude {
    pub(super) largest: f64,
    least: f64,
}

impl Magnitude {
    /// The sizes of finite numbers, or where the first one is that is not.
    pub(super) fn of(space: &Threads<f64>, values: &[f64]) -> Result<Self, usize> {
        // Bits of numbers without a sign are in the order of the numbers.
        let (largest, least) = (AtomicU64::new(0), AtomicU64::new(f64::INFINITY.to_bits()));
        let first_bad = AtomicUsize::new(usize::MAX);
        space.team().run(|member| {
            let own = member.part(values.len(), GRAIN);
            let extremes = Extremes::of(&values[own.clone()]);
            largest.fetch_max(extremes.largest.to_bits(), Ordering::Relaxed);
            least.fetch_min(extremes.least.to_bits(), Ordering::Relaxed);
            if !extremes.finite
                && let Some(k) = values[own.clone()].iter().position(|v| !v.is_finite())
            {
                first_bad.fetch_min(own.start + k, Ordering::Relaxed);
            }
        });
        match first_bad.into_inner() {
            usize::MAX => Ok(Magnitude {
                largest: f64::from_bits(largest.into_inner()),
                least: f64::from_bits(least.into_inner()),
            }),
            k => Err(k),
        }
    }

    /// The sizes of a vector, or an error that names it and the place.
    pub(super) fn of_vector(
        space: &Threads<f64>,
        what: &'static str,
        values: &[f64],
    ) -> Result<Self, SolveError> {
        Self::of(space, values).map_err(|row| SolveError::NotFinite { what, row, value: values[row] })
    }

    /// The sizes of the entries of A, or an error that names the place.
    pub(super) fn of_matrix(space: &Threads<f64>, a: &Csr<f64>) -> Result<Self, SetupError> {
        Self::of(space, a.values()).map_err(|k| SetupError::NotFinite {
            row: a.pattern().row_ptr().partition_point(|&first| first <= k) - 1,
            column: a.pattern().col_idx()[k] as usize,
            value: a.values()[k],
        })
    }

    /// The power of two that the numbers are to be multiplied by; 1 where they are in range. Numbers that are small beside the
    /// largest one may be rounded.
    pub(super) fn scale(self) -> f64 {
        power_of_two(-self.exponent_out_of_range())
    }

    /// A power of two that rounds none of the numbers: the least stays above 2⁻¹⁰²².
    pub(super) fn exact_scale(self) -> f64 {
        let exponent = self.exponent_out_of_range();
        let down = if exponent > 0 { exponent.min(exponent_of(self.least) + 1021).max(0) } else { exponent };
        power_of_two(-down)
    }

    /// The exponent of the largest number, 0 if it is in range.
    fn exponent_out_of_range(self) -> i32 {
        let exponent = if self.largest == 0.0 { 0 } else { exponent_of(self.largest) };
        if exponent.abs() <= RANGE { 0 } else { exponent.clamp(-LARGEST_SCALE, LARGEST_SCALE) }
    }
}

/// The largest |v| and the least that is not 0; meaningless unless all are finite.
struct Extremes {
    largest: f64,
    least: f64,
    finite: bool,
}

impl Extremes {
    /// In lanes of a form that vector instructions have.
    fn of(values: &[f64]) -> Self {
        const LANES: usize = 8;
        let (mut high, mut low, mut zero) = ([0.0; LANES], [f64::INFINITY; LANES], [0.0; LANES]);
        let mut add = |l: usize, v: f64| {
            let size = v.abs();
            let not_zero = if size == 0.0 { f64::INFINITY } else { size };
            high[l] = if size > high[l] { size } else { high[l] };
            low[l] = if not_zero < low[l] { not_zero } else { low[l] };
            // 0 for finite numbers, NaN for others.
            zero[l] += v * 0.0;
        };
        let (chunks, rest) = values.as_chunks::<LANES>();
        for chunk in chunks {
            (0..LANES).for_each(|l| add(l, chunk[l]));
        }
        rest.iter().for_each(|&v| add(0, v));
        Extremes {
            largest: high.into_iter().fold(0.0, f64::max),
            least: low.into_iter().fold(f64::INFINITY, f64::min),
            finite: zero.into_iter().sum::<f64>() == 0.0,
        }
    }
}

/// e with |v| = m 2ᵉ and 1/2 ≤ m < 1, for a finite v other than 0.
fn exponent_of(v: f64) -> i32 {
    let field = |v: f64| (v.to_bits() >> 52 & 0x7ff) as i32;
    match field(v) {
        0 => field(v * power_of_two(64)) - 1022 - 64,
        field => field - 1022,
    }
}

/// 2ᵉ, for |e| ≤ 1022.
fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((1023 + exponent) as u64) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_of_two_by_hand() {
        for e in [-1022, -400, -1, 0, 1, 53, 1000] {
            assert_eq!(power_of_two(e), 2f64.powi(e));
            assert_eq!(exponent_of(-2f64.powi(e)), e + 1);
            assert_eq!(exponent_of(1.5 * 2f64.powi(e)), e + 1);
        }
        assert_eq!(exponent_of(f64::from_bits(1)), -1073);
    }

    #[test]
    fn sizes_scales_and_places() {
        let space = Threads::new(3);
        let of = |values: &[f64]| Magnitude::of(&space, values);
        let mut values = vec![0.0; 5 * GRAIN];
        assert_eq!(of(&values).unwrap().scale(), 1.0);
        (values[7], values[9000]) = (-3.0, 1e-3);
        let sizes = of(&values).unwrap();
        assert_eq!((sizes.largest, sizes.least, sizes.scale(), sizes.exact_scale()), (3.0, 1e-3, 1.0, 1.0));
        values[100] = -1e200;
        assert_eq!(of(&values).unwrap().scale() * 1e200 * 2f64.powi(665), 1e200);
        // 10⁻³⁰⁰ would underflow with 10³⁰⁰ brought to 1.
        let wide = of(&[1e300, 1e-300]).unwrap();
        assert_eq!(1e-300 * wide.exact_scale() / wide.exact_scale(), 1e-300);
        assert!(of(&[1e-300, 1e-310]).unwrap().exact_scale() * 1e-300 > 0.4);
        values[4000] = f64::NAN;
        values[8000] = f64::INFINITY;
        assert_eq!(of(&values), Err(4000));
    }
}
