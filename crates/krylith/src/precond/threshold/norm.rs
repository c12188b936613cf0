//! Sizes of a row, summed from left to right. None overflows or vanishes where its result can be represented.

use crate::scalar::Real;

/// The larger of two numbers that are not NaN.
pub(super) fn larger<T: Real>(a: T, b: T) -> T {
    if b > a { b } else { a }
}

/// max |vⱼ|.
pub(super) fn max<T: Real>(values: impl Iterator<Item = T>) -> T {
    values.fold(T::ZERO, |largest, v| larger(largest, v.abs()))
}

/// Σ |vⱼ| / len; 0 for no values.
pub(super) fn mean<T: Real>(values: &[T]) -> T {
    let len = T::from_f64(values.len() as f64);
    let sum = values.iter().fold(T::ZERO, |sum, v| sum + v.abs());
    if values.is_empty() {
        T::ZERO
    } else if sum.is_finite() {
        sum / len
    } else {
        values.iter().fold(T::ZERO, |sum, v| sum + v.abs() / len)
    }
}

/// √(Σ vⱼ² / len); 0 for no values.
pub(super) fn rms<T: Real>(values: &[T]) -> T {
    if values.is_empty() {
        return T::ZERO;
    }
    let len = T::from_f64(values.len() as f64);
    let (scale, squares) = squares(values.iter().copied());
    scale * (squares / len).sqrt()
}

/// √(Σ vⱼ²).
pub(super) fn two<T: Real>(values: impl Iterator<Item = T> + Clone) -> T {
    let (scale, squares) = squares(values);
    scale * squares.sqrt()
}

/// (s, Σ (vⱼ / s)²) with s = 1 unless the plain sum leaves the range in which squares are exact to rounding.
fn squares<T: Real>(values: impl Iterator<Item = T> + Clone) -> (T, T) {
    let sum = |scale: T| values.clone().fold(T::ZERO, |sum, v| sum + (v / scale) * (v / scale));
    let plain = sum(T::ONE);
    if plain.is_finite() && plain > T::EPSILON * T::EPSILON {
        return (T::ONE, plain);
    }
    match max(values.clone()) {
        scale if scale > T::ZERO => (scale, sum(scale)),
        zero => (zero, T::ZERO),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_small_and_huge_rows() {
        assert_eq!((max([3.0, -4.0].into_iter()), mean(&[3.0, -4.0])), (4.0, 3.5));
        assert_eq!((rms(&[3.0, -4.0, 0.0, 0.0]), two([3.0, -4.0].into_iter())), (2.5, 5.0));
        assert_eq!((rms::<f64>(&[]), mean::<f64>(&[]), rms(&[0.0])), (0.0, 0.0, 0.0));
        assert_eq!(rms(&[1.5e308, 1.5e308]), 1.5e308);
        assert_eq!(mean(&[1.5e308, 1.5e308]), 1.5e308);
        assert_eq!(rms(&[1e-300, 1e-300]), 1e-300);
        assert_eq!(two([3e-200, 4e-200].into_iter()), 5e-200);
    }
}
