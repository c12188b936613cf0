//! Random numbers without state: number k of a stream is a function of the seed and k alone, so rows can be made in any
//! order, on any number of threads, and have the same bits.
//!
//! hash(seed, k) is output k of the generator SplitMix64 started at `seed`. Normal numbers are from Box and Muller.
//! Transcendental functions are those of `libm`, which are the same on every platform.
//! References: Steele, Lea & Flood 2014, doi:10.1145/2714064.2660195; Box & Muller 1958, doi:10.1214/aoms/1177706645.

use crate::parallel;
use std::f64::consts::{LN_10, TAU};

/// The seed of every problem.
pub(super) const SEED: u64 = 42;

const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// Output `k` (counted from 0) of SplitMix64 started at `seed`.
#[inline]
pub(super) fn hash(seed: u64, k: u64) -> u64 {
    let z = seed.wrapping_add(GOLDEN.wrapping_mul(k.wrapping_add(1)));
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// A uniform number in [0, 1) from the upper 53 bits.
#[inline]
pub(super) fn uniform(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1u64 << 53) as f64
}

/// Normal number `k` of a stream: mean 0, variance 1.
pub(crate) fn normal(seed: u64, k: u64) -> f64 {
    // 1 - u lies in (0, 1]: its logarithm is finite.
    let u = 1.0 - uniform(hash(seed, 2 * k));
    let v = uniform(hash(seed, 2 * k + 1));
    libm::sqrt(-2.0 * libm::log(u)) * libm::cos(TAU * v)
}

/// The fixed pseudo-random right-hand side of studies: `n` numbers, uniform in [−1, 1), the same on every machine and any
/// number of threads.
///
/// Number k, counted from 0, is 2 ⌊h/2¹¹⌋ / 2⁵³ − 1 with h output k of the generator SplitMix64 started at 0; no operation
/// rounds. A shorter vector is the head of a longer one. Unlike b = A·1 it favours no preconditioner: A·1 is small wherever
/// the rows of A sum to nearly zero, and its answer is smooth.
///
/// ```
/// let b = krylith::gallery::random_vector(3);
/// assert_eq!(b[0], 2.0 * (0xE220_A839_7B1D_CDAF_u64 >> 11) as f64 / (1_u64 << 53) as f64 - 1.0);
/// ```
pub fn random_vector(n: usize) -> Vec<f64> {
    parallel::map_rows(n, |k| 2.0 * uniform(hash(0, k as u64)) - 1.0)
}

/// 10 to the power of `x`.
pub(super) fn power_of_ten(x: f64) -> f64 {
    libm::exp(LN_10 * x)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_gives_the_published_outputs_of_splitmix64() {
        let outputs = [6457827717110365317, 3203168211198807973, 9817491932198370423];
        assert_eq!([0, 1, 2].map(|k| hash(1234567, k)), outputs);
    }

    #[test]
    fn normals_have_mean_zero_and_variance_one() {
        let n = 100_000;
        let (mut sum, mut squares) = (0.0, 0.0);
        for k in 0..n {
            let x = normal(SEED, k);
            sum += x;
            squares += x * x;
        }
        // Three standard deviations of the estimates.
        assert!((sum / n as f64).abs() < 3.0 / (n as f64).sqrt());
        assert!((squares / n as f64 - 1.0).abs() < 3.0 * (2.0 / n as f64).sqrt());
    }
}
