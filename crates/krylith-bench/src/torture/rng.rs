//! Random numbers of a case: SplitMix64, started from the seed, the number of the case and a label of the part that draws.
//!
//! Each part of a case draws from a stream of its own, so a change in one part leaves the others as they were.
//! Only integer arithmetic and exact scalings are used: a case is the same on every platform.
//! Reference: Steele, Lea & Flood 2014, doi:10.1145/2714064.2660195.

/// A stream of random numbers.
#[derive(Debug, Clone)]
pub struct Rng {
    state: u64,
}

fn mix(z: u64) -> u64 {
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

impl Rng {
    /// The stream of these numbers; any other numbers give another stream.
    pub fn new(labels: &[u64]) -> Self {
        let state = labels.iter().fold(0x9E37_79B9_7F4A_7C15, |state: u64, &label| {
            mix(state.rotate_left(23) ^ mix(label.wrapping_add(0x9E37_79B9_7F4A_7C15)))
        });
        Rng { state }
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix(self.state)
    }

    /// 0 to n − 1; 0 for n = 0.
    pub fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.bits()) * n as u128) >> 64) as usize
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: i32, high: i32) -> i32 {
        low + self.below((high - low + 1) as usize) as i32
    }

    /// True once in `n` draws.
    pub fn once_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// Uniform in [0, 1).
    pub fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Uniform in (−1, −1/8] or [1/8, 1): never zero.
    pub fn signed(&mut self) -> f64 {
        let size = 0.125 + 0.875 * self.uniform();
        if self.once_in(2) { -size } else { size }
    }

    /// One of several.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// An index with a probability in proportion to its weight.
    pub fn weighted(&mut self, weights: impl Iterator<Item = u32> + Clone) -> usize {
        let mut left = self.below(weights.clone().map(|w| w as usize).sum());
        for (index, weight) in weights.enumerate() {
            match left.checked_sub(weight as usize) {
                Some(rest) => left = rest,
                None => return index,
            }
        }
        0
    }

    /// 0 to n − 1 in random order.
    pub fn permutation(&mut self, n: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..n).collect();
        for k in (1..n).rev() {
            order.swap(k, self.below(k + 1));
        }
        order
    }
}

/// 2ᵉ, exactly; 0 below the range of `f64`, infinity above it.
pub fn power_of_two(e: i32) -> f64 {
    match e {
        1024.. => f64::INFINITY,
        -1022..=1023 => f64::from_bits(((e + 1023) as u64) << 52),
        -1074..=-1023 => f64::from_bits(1u64 << (e + 1074)),
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_of_two_are_exact() {
        assert_eq!([0, 1, -1, 10].map(power_of_two), [1.0, 2.0, 0.5, 1024.0]);
        assert_eq!(power_of_two(-1074), f64::from_bits(1));
        assert_eq!(power_of_two(-1023), f64::MIN_POSITIVE / 2.0);
        assert_eq!(power_of_two(1023) * 2.0, f64::INFINITY);
        assert_eq!((power_of_two(-1075), power_of_two(1024)), (0.0, f64::INFINITY));
    }

    #[test]
    fn streams_repeat_and_differ() {
        let first = |labels: &[u64]| Rng::new(labels).bits();
        assert_eq!(first(&[1, 2, 3]), first(&[1, 2, 3]));
        let all =
            [first(&[1, 2, 3]), first(&[1, 3, 2]), first(&[2, 2, 3]), first(&[1, 2]), first(&[1, 2, 0])];
        for (k, one) in all.iter().enumerate() {
            assert!(!all[..k].contains(one), "{all:?}");
        }
    }

    #[test]
    fn draws_stay_in_their_range_and_reach_its_ends() {
        let mut rng = Rng::new(&[7]);
        let draws: Vec<i32> = (0..1000).map(|_| rng.between(-2, 2)).collect();
        assert_eq!((draws.iter().min(), draws.iter().max()), (Some(&-2), Some(&2)));
        let mut counts = [0; 3];
        (0..4000).for_each(|_| counts[rng.weighted([1, 0, 3].into_iter())] += 1);
        assert!(counts[1] == 0 && (900..1100).contains(&counts[0]), "{counts:?}");
        let mut order = rng.permutation(20);
        order.sort_unstable();
        assert!(order.iter().copied().eq(0..20));
    }
}
