//! Telling whether numbers are the ones seen before.

use super::{CHUNK, Threads};
use std::sync::atomic::{AtomicU64, Ordering};

/// Chains of multiplications that run at the same time.
const LANES: usize = 8;

/// A hash of the bits of numbers and their order, the same on any number of threads.
pub(crate) fn fingerprint(space: &Threads<f64>, values: &[f64]) -> u64 {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix = |hash: u64, bits: u64| (hash ^ bits).wrapping_mul(ODD).rotate_left(29);
    let total = AtomicU64::new(0);
    space.team().run(|member| {
        let mut sum = 0u64;
        let own = member.part(values.len(), CHUNK);
        for first in own.clone().step_by(CHUNK) {
            let chunk = &values[first..(first + CHUNK).min(own.end)];
            // Eight chains, so that one multiplication does not wait for the one before.
            let mut lanes = [first as u64; LANES];
            let (eights, rest) = chunk.as_chunks::<LANES>();
            for eight in eights {
                for l in 0..LANES {
                    lanes[l] = mix(lanes[l], eight[l].to_bits());
                }
            }
            let rest = rest.iter().fold(ODD, |hash, v| mix(hash, v.to_bits()));
            sum = sum.wrapping_add(lanes.into_iter().fold(rest, mix));
        }
        total.fetch_add(sum, Ordering::Relaxed);
    });
    total.into_inner()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_bit_anywhere_is_noticed_on_any_number_of_threads() {
        let x: Vec<f64> = (0..3 * CHUNK + 77).map(|i| (i as f64).sqrt()).collect();
        let expected = fingerprint(&Threads::new(1), &x);
        for threads in [2, 3, 8] {
            let space = Threads::new(threads);
            assert_eq!(fingerprint(&space, &x), expected);
            for k in [0, 1, CHUNK - 1, CHUNK, 2 * CHUNK + 5, x.len() - 1] {
                let mut y = x.clone();
                y[k] = f64::from_bits(y[k].to_bits() ^ 1);
                assert_ne!(fingerprint(&space, &y), expected, "{k}");
            }
            let mut swapped = x.clone();
            swapped.swap(5, CHUNK + 5);
            assert_ne!(fingerprint(&space, &swapped), expected);
        }
    }
}
