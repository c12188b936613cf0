//! How large numbers are, whether they are finite, and the power of two that brings them into range.
//!
//! Methods square numbers. Squares of numbers beyond 2^±511 leave the range of `f64`, and certificates need room below that for
//! rounding errors of the size ε² ‖b‖. So where the largest entry of A or of b is beyond 2^±[`RANGE`], the system is multiplied by
//! powers of two, which rounds nothing. Systems in range are left as they are.

use super::Csr;
use crate::error::SetupError;
use crate::space::{Extremes, Threads};

/// Exponents that need no scaling.
const RANGE: i32 = 200;
/// The largest power of two that is used, in either direction.
const LARGEST_SCALE: i32 = 1000;

/// The sizes of the entries of A, or an error that names the place of one that is not finite.
pub(crate) fn sizes_of_matrix(host: &Threads<f64>, a: &Csr<f64>) -> Result<Extremes<f64>, SetupError> {
    let sizes = host.extremes_of(a.values());
    match sizes.not_finite {
        None => Ok(sizes),
        Some((k, value)) => Err(SetupError::NotFinite {
            row: a.pattern().row_ptr().partition_point(|&first| first <= k) - 1,
            column: a.pattern().col_idx()[k] as usize,
            value,
        }),
    }
}

/// The power of two that brings a matrix into range and rounds none of its entries; 1 where it is in range.
pub(crate) fn exact_scale(host: &Threads<f64>, a: &Csr<f64>) -> Result<f64, SetupError> {
    sizes_of_matrix(host, a).map(|sizes| sizes.exact_scale())
}

impl Extremes<f64> {
    /// The power of two that the numbers are to be multiplied by; 1 where they are in range. Numbers that are small beside the
    /// largest one may be rounded.
    pub(crate) fn scale(self) -> f64 {
        power_of_two(-self.exponent_out_of_range())
    }

    /// The same for numbers that a vector is multiplied with whose largest entry is `other`: one that keeps both in range, if there is one.
    pub(crate) fn scale_beside(self, other: f64) -> f64 {
        let scale = self.scale();
        if (other * scale).is_finite() {
            return scale;
        }
        let most = (LARGEST_SCALE - exponent_of(other)).max(-LARGEST_SCALE);
        if exponent_of(self.largest) + most >= -RANGE { power_of_two(most) } else { scale }
    }

    /// A power of two that rounds none of the numbers: the least stays above 2⁻¹⁰²².
    pub(crate) fn exact_scale(self) -> f64 {
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
    fn scales() {
        let space = Threads::new(3);
        let of = |values: &[f64]| space.extremes_of(values);
        assert_eq!(of(&[0.0; 5]).scale(), 1.0);
        assert_eq!((of(&[-3.0, 1e-3]).scale(), of(&[-3.0, 1e-3]).exact_scale()), (1.0, 1.0));
        assert_eq!(of(&[2.0, -1e200]).scale() * 1e200 * 2f64.powi(665), 1e200);
        // Beside 10¹⁸⁰ there is room for 2⁴⁰⁰ or so, and none beside 10³⁰⁰.
        let small = of(&[1e-162]);
        assert_eq!(small.scale_beside(1.0), small.scale());
        let scale = small.scale_beside(1e180);
        assert!((1e180 * scale).is_finite() && 1e-162 * scale > 2f64.powi(-200), "{scale:e}");
        assert_eq!(small.scale_beside(1e300), small.scale());
        // 10⁻³⁰⁰ would underflow with 10³⁰⁰ brought to 1.
        let wide = of(&[1e300, 1e-300]);
        assert_eq!(1e-300 * wide.exact_scale() / wide.exact_scale(), 1e-300);
        assert!(of(&[1e-300, 1e-310]).exact_scale() * 1e-300 > 0.4);
    }
}
