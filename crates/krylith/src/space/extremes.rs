//! The sizes of numbers, and whether they are finite.

use super::Threads;
use crate::scalar::Scalar;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Numbers are looked at in pieces of this many.
const GRAIN: usize = 2048;
/// Numbers that are compared at the same time.
const LANES: usize = 8;

/// The sizes of the entries of a vector.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Extremes<R> {
    /// The largest |x|; 0 for a vector of zeros.
    pub largest: R,
    /// The smallest |x| that is not 0; infinite if there is none.
    pub least: R,
    /// The place of the first entry that is infinite or NaN, and the entry. Then the sizes mean nothing.
    pub not_finite: Option<(usize, R)>,
}

impl<T: Scalar> Threads<T> {
    /// The sizes of numbers in this process's memory.
    pub(crate) fn extremes_of(&self, values: &[T]) -> Extremes<T::Real> {
        // Bits of numbers without a sign are in the order of the numbers.
        let (largest, least) = (AtomicU64::new(0), AtomicU64::new(f64::INFINITY.to_bits()));
        let first_bad = AtomicUsize::new(usize::MAX);
        self.team().run(|member| {
            let own = member.part(values.len(), GRAIN);
            let found = Piece::of(&values[own.clone()]);
            largest.fetch_max(found.largest.to_bits(), Ordering::Relaxed);
            least.fetch_min(found.least.to_bits(), Ordering::Relaxed);
            if !found.finite
                && let Some(k) = values[own.clone()].iter().position(|v| !v.is_finite())
            {
                first_bad.fetch_min(own.start + k, Ordering::Relaxed);
            }
        });
        let number = |bits: AtomicU64| T::Real::from_f64(f64::from_bits(bits.into_inner()));
        Extremes {
            largest: number(largest),
            least: number(least),
            not_finite: not_finite(values, first_bad.into_inner()),
        }
    }
}

fn not_finite<T: Scalar>(values: &[T], place: usize) -> Option<(usize, T::Real)> {
    let part = |v: &T| if v.real().is_finite() { v.abs() } else { v.real() };
    values.get(place).map(|v| (place, part(v)))
}

/// The largest |v| and the least that is not 0; meaningless unless all are finite.
struct Piece {
    largest: f64,
    least: f64,
    finite: bool,
}

impl Piece {
    /// In lanes of a form that vector instructions have. Every scalar has its size in `f64`.
    fn of<T: Scalar>(values: &[T]) -> Self {
        let (mut high, mut low, mut zero) = ([0.0; LANES], [f64::INFINITY; LANES], [0.0; LANES]);
        let mut add = |l: usize, v: T| {
            let size = v.abs().to_f64();
            let not_zero = if size == 0.0 { f64::INFINITY } else { size };
            high[l] = if size > high[l] { size } else { high[l] };
            low[l] = if not_zero < low[l] { not_zero } else { low[l] };
            // 0 for finite numbers, NaN for others.
            zero[l] += size * 0.0;
        };
        let (chunks, rest) = values.as_chunks::<LANES>();
        for chunk in chunks {
            (0..LANES).for_each(|l| add(l, chunk[l]));
        }
        rest.iter().for_each(|&v| add(0, v));
        Piece {
            largest: high.into_iter().fold(0.0, f64::max),
            least: low.into_iter().fold(f64::INFINITY, f64::min),
            finite: zero.into_iter().sum::<f64>() == 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_places() {
        let space = Threads::new(3);
        let mut values = vec![0.0; 5 * GRAIN];
        let zeros = Extremes { largest: 0.0, least: f64::INFINITY, not_finite: None };
        assert_eq!(space.extremes_of(&values), zeros);
        (values[7], values[9000]) = (-3.0, 1e-3);
        assert_eq!(space.extremes_of(&values), Extremes { largest: 3.0, least: 1e-3, not_finite: None });
        values[8000] = f64::INFINITY;
        values[4000] = f64::NEG_INFINITY;
        assert_eq!(space.extremes_of(&values).not_finite, Some((4000, f64::NEG_INFINITY)));
        let narrow = Threads::<f32>::new(1).extremes_of(&[1.5f32, -0.25]);
        assert_eq!(narrow, Extremes { largest: 1.5, least: 0.25, not_finite: None });
    }
}
