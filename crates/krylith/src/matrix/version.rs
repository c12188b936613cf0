//! Whether a matrix has the values that were seen before.
//!
//! Every matrix carries a stamp, a number that no other matrix of this process has; a clone keeps it, and access to the values
//! for writing renews it. So equal stamps mean equal patterns and values. Where stamps differ, the values may still be equal, as
//! after a matrix was assembled again: a hash of 128 bits decides, computed once per stamp.

use super::Csr;
use crate::space::{CHUNK, Threads};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

/// Chains of multiplications that run at the same time.
const LANES: usize = 4;

/// An odd number without a pattern: the first 128 bits of the golden ratio's fraction.
const MULTIPLIER: u128 = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835;

/// The stamp of a matrix, and the hash of its values once somebody has asked for it.
#[derive(Debug, Clone)]
pub(crate) struct Version {
    stamp: u64,
    hash: OnceLock<u128>,
}

impl Version {
    /// A stamp that nothing else has.
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Version { stamp: NEXT.fetch_add(1, Ordering::Relaxed), hash: OnceLock::new() }
    }

    /// The same for values that are not compared with others: no hash is computed, and its place has a number of its own.
    pub(crate) fn without_hash() -> Self {
        let version = Self::new();
        let own = u128::from(version.stamp + 1).wrapping_mul(MULTIPLIER);
        Version { hash: OnceLock::from(own), ..version }
    }
}

/// Names a matrix with its values, without a hash.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Stamp(u64);

impl Stamp {
    pub(crate) fn of(a: &Csr<f64>) -> Self {
        Stamp(a.version().stamp)
    }
}

/// The values of a matrix that were taken over or factored.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SeenValues {
    stamp: u64,
    hash: u128,
}

impl SeenValues {
    /// Those of this matrix.
    pub fn of(space: &Threads<f64>, a: &Csr<f64>) -> Self {
        SeenValues { stamp: a.version().stamp, hash: a.hash(space) }
    }

    /// Whether the stamp is the one seen: then so are pattern and values, and nothing has to be read.
    pub(crate) fn has_stamp_of(&self, a: &Csr<f64>) -> bool {
        self.stamp == a.version().stamp
    }

    /// Whether a matrix of the same pattern has the values that were seen.
    pub fn are_those_of(&self, space: &Threads<f64>, a: &Csr<f64>) -> bool {
        self.has_stamp_of(a) || self.hash == a.hash(space)
    }
}

impl Csr<f64> {
    /// A hash of the bits of the values and their order, the same on any number of threads.
    fn hash(&self, space: &Threads<f64>) -> u128 {
        *self.version().hash.get_or_init(|| hash(space, self.values()))
    }
}

/// One step: a difference in one word reaches the upper half of the state, where the next word cannot undo it.
#[inline(always)]
pub(crate) fn mix(state: u128, word: u64) -> u128 {
    let product = (state ^ u128::from(word)).wrapping_mul(MULTIPLIER);
    product ^ (product >> 71)
}

fn hash(space: &Threads<f64>, values: &[f64]) -> u128 {
    let total = Mutex::new(0u128);
    space.team().run(|member| {
        let mut sum = 0u128;
        let own = member.part(values.len(), CHUNK);
        for first in own.clone().step_by(CHUNK) {
            sum = sum.wrapping_add(hash_chunk(first, &values[first..(first + CHUNK).min(own.end)]));
        }
        let mut total = total.lock().unwrap_or_else(PoisonError::into_inner);
        *total = total.wrapping_add(sum);
    });
    total.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn hash_chunk(first: usize, chunk: &[f64]) -> u128 {
    let mut lanes: [u128; LANES] = std::array::from_fn(|l| mix(MULTIPLIER, (first + l) as u64));
    let (groups, rest) = chunk.as_chunks::<LANES>();
    for group in groups {
        for l in 0..LANES {
            lanes[l] = mix(lanes[l], group[l].to_bits());
        }
    }
    for (lane, v) in lanes.iter_mut().zip(rest) {
        *lane = mix(*lane, v.to_bits());
    }
    let words = lanes.into_iter().flat_map(|lane| [lane as u64, (lane >> 64) as u64]);
    words.fold(mix(MULTIPLIER, chunk.len() as u64), mix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_bit_anywhere_is_noticed_on_any_number_of_threads() {
        let x: Vec<f64> = (0..3 * CHUNK + 77).map(|i| (i as f64).sqrt()).collect();
        let expected = hash(&Threads::new(1), &x);
        for threads in [2, 3, 8] {
            let space = Threads::new(threads);
            assert_eq!(hash(&space, &x), expected);
            for k in [0, 1, CHUNK - 1, CHUNK, 2 * CHUNK + 5, x.len() - 1] {
                let mut y = x.clone();
                y[k] = f64::from_bits(y[k].to_bits() ^ 1);
                assert_ne!(hash(&space, &y), expected, "{k}");
            }
            let mut swapped = x.clone();
            swapped.swap(5, CHUNK + 5);
            assert_ne!(hash(&space, &swapped), expected);
        }
    }

    /// Every bit of one value with every bit of a later one of the same chain.
    #[test]
    fn no_two_bits_cancel() {
        let space = Threads::new(1);
        let x: Vec<f64> = (0..64).map(|i| 1.0 + f64::from(i).sin()).collect();
        let expected = hash(&space, &x);
        for distance in [1, LANES, 2 * LANES] {
            for i in 0..64 {
                for j in 0..64 {
                    let mut y = x.clone();
                    y[9] = f64::from_bits(y[9].to_bits() ^ 1 << i);
                    y[9 + distance] = f64::from_bits(y[9 + distance].to_bits() ^ 1 << j);
                    assert_ne!(hash(&space, &y), expected, "bits {i} and {j} at distance {distance}");
                }
            }
        }
    }
}
