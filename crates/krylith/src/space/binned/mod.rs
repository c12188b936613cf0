//! Sums that have the same bits in every order of their terms.
//!
//! J. Demmel, H. D. Nguyen: Parallel Reproducible Summation. IEEE Transactions on Computers 64 (2015), 2060-2070.
//!
//! Units are powers of two, g = 2^(52 i). Every term p is replaced by q g + l g 2^-52: q is the integer nearest to p / g, and l the one
//! nearest to (p / g - q) 2^52. Σ q and Σ l are sums of integers, so they are exact, and no order and no division into parts changes
//! them. i is the least for which every q is in [-2^50, 2^50), so it depends on the terms alone, too. What has been summed with a smaller unit is
//! carried over exactly: all q of the next unit are 0 there, and its l are the old q; two units further nothing is left.
//!
//! The result is (Σ q + Σ l 2^-52) g, rounded once. So every term is rounded to a multiple of g 2^-52, which is between 2^-102 and 2^-50 of the
//! largest one, and nothing else is.
//!
//! Deviations: two bins of 52 bits where the paper has three or more of 40, so that a sum is about as fast as one without an order; integers
//! instead of floating-point numbers in the bins; infinite terms and NaN are noted beside them. A NaN that a sum returns is always the same one.

#![allow(unsafe_code)]

mod parts;

use super::updates::CHUNK;
use super::{Space, gather};
use crate::error::BackendError;
use crate::scalar::Scalar;
use crate::simd::dispatch;
use parts::Parts;
use std::cmp::Ordering;

/// Bits between a unit and the next.
const WIDTH: i32 = 52;
/// The sizes of q have this many bits.
const RANGE: i32 = 50;
/// All numbers are multiples of g 2^-52 for the least unit, and the greatest is large enough for all of them.
const LEAST: i32 = -20;
const GREATEST: i32 = 19;
/// Units for which the numbers in [`magic`] are finite, and their last bits normal.
const FAST: std::ops::RangeInclusive<i32> = -19..=18;
/// Terms from which the unit of a new sum is guessed.
const PROBE: usize = 16;
/// Words of a sum between processes.
const WORDS: usize = 5;

/// The sum of some terms, from any of which the sum of all can be made: in any order, with the same bits.
///
/// ```
/// use krylith::space::BinnedSum;
/// let (x, y) = ([1e20, 1.0, -1e20, 0.1], [1.0, 0.5, 1.0, 2.0]);
/// let mut all = BinnedSum::new();
/// all.add_products(&x, &y);
/// let (mut first, mut last) = (BinnedSum::new(), BinnedSum::new());
/// first.add_products(&x[..1], &y[..1]);
/// last.add_products(&x[1..], &y[1..]);
/// last.add_sum(&first);
/// assert_eq!(last.value::<f64>().to_bits(), all.value::<f64>().to_bits());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BinnedSum {
    /// The i of the unit.
    index: i32,
    /// Σ q.
    high: i128,
    /// Σ l.
    low: i128,
    seen: Seen,
}

/// Terms that are no finite numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Seen {
    infinite: bool,
    minus_infinite: bool,
    nan: bool,
}

impl Default for BinnedSum {
    fn default() -> Self {
        Self::new()
    }
}

impl BinnedSum {
    /// The sum of no terms.
    pub const fn new() -> Self {
        let seen = Seen { infinite: false, minus_infinite: false, nan: false };
        BinnedSum { index: LEAST, high: 0, low: 0, seen }
    }

    /// Adds conj(xₖ) yₖ for every k; each product is rounded to the type of the numbers, as one by itself.
    ///
    /// # Panics
    /// Where the lengths differ.
    pub fn add_products<T: Scalar>(&mut self, x: &[T], y: &[T]) {
        assert_eq!(x.len(), y.len(), "the factors of a sum of products");
        for (x, y) in x.chunks(CHUNK).zip(y.chunks(CHUNK)) {
            let products = || x.iter().zip(y).map(|(x, y)| (x.conj() * *y).to_f64());
            if self.is_new() && !self.begin(products) {
                continue;
            }
            match self.magic() {
                Some(magic) => self.settle(deposit_products(x, y, magic), magic, x, y),
                None => self.add_slowly(products),
            }
        }
    }

    /// Adds numbers.
    pub fn add_terms<T: Scalar>(&mut self, terms: &[T]) {
        for terms in terms.chunks(CHUNK) {
            let numbers = || terms.iter().map(|t| t.to_f64());
            if self.is_new() && !self.begin(numbers) {
                continue;
            }
            match self.magic() {
                Some(magic) => {
                    let bins = deposit_terms(terms, magic);
                    if !self.take(bins, magic, terms.len()) {
                        self.add_slowly(numbers);
                    }
                }
                None => self.add_slowly(numbers),
            }
        }
    }

    /// Adds another sum.
    pub fn add_sum(&mut self, other: &BinnedSum) {
        let mut other = *other;
        let index = self.index.max(other.index);
        self.raise(index);
        other.raise(index);
        self.high += other.high;
        self.low += other.low;
        self.seen.infinite |= other.seen.infinite;
        self.seen.minus_infinite |= other.seen.minus_infinite;
        self.seen.nan |= other.seen.nan;
    }

    /// The sum, rounded to the nearest `f64` and then to the type. For up to 2^64 terms.
    pub fn value<T: Scalar>(&self) -> T {
        let Seen { infinite, minus_infinite, nan } = self.seen;
        if nan || (infinite && minus_infinite) {
            return T::from_f64(f64::NAN);
        }
        if infinite || minus_infinite {
            return T::from_f64(if infinite { f64::INFINITY } else { f64::NEG_INFINITY });
        }
        let high = self.high + (self.low >> WIDTH);
        let low = self.low & ((1 << WIDTH) - 1);
        // As many bits of the lower part as there is room for, and one bit for all that is left: a result has 53.
        let room = (high.unsigned_abs().leading_zeros() as i32 - 2).clamp(0, WIDTH);
        let left = WIDTH - room;
        let rest = i128::from(low & ((1 << left) - 1) != 0);
        let total = (high << room) + ((low >> left) | rest);
        let exponent = WIDTH * (self.index - 1) + left;
        T::from_f64(total as f64 * power(exponent / 2) * power(exponent - exponent / 2))
    }

    /// The sum as words, to send to another process.
    pub fn to_words(self) -> [u64; WORDS] {
        let Seen { infinite, minus_infinite, nan } = self.seen;
        let flags = u64::from(infinite) | u64::from(minus_infinite) << 1 | u64::from(nan) << 2;
        let index = (self.index - LEAST) as u64;
        let half = |bits: i128, k: u32| (bits >> (64 * k)) as u64;
        [index << 8 | flags, half(self.high, 0), half(self.high, 1), half(self.low, 0), half(self.low, 1)]
    }

    /// The sum that another process has sent; `None` if no process sends that.
    pub fn from_words([first, high, high1, low, low1]: [u64; WORDS]) -> Option<Self> {
        let index = i32::try_from(first >> 8).ok().filter(|index| *index <= GREATEST - LEAST)? + LEAST;
        let whole = |low: u64, high: u64| i128::from(high as i64) << 64 | i128::from(low);
        let seen = Seen { infinite: first & 1 != 0, minus_infinite: first & 2 != 0, nan: first & 4 != 0 };
        Some(BinnedSum { index, high: whole(high, high1), low: whole(low, low1), seen })
    }

    /// Makes sums of the terms of this process those of the terms of all. All processes call it together.
    pub fn add_others<S: Space>(space: &S, sums: &mut [BinnedSum]) -> Result<(), BackendError> {
        let all = gather(space, sums.iter().flat_map(|sum| sum.to_words()).collect())?;
        sums.fill(BinnedSum::new());
        for theirs in all {
            let words = theirs.as_chunks().0;
            if words.len() != sums.len() {
                return Err(BackendError::Failed { what: "another process sends other sums".into() });
            }
            for (sum, words) in sums.iter_mut().zip(words) {
                let no_sum = || BackendError::Failed { what: "another process sends what is no sum".into() };
                sum.add_sum(&BinnedSum::from_words(*words).ok_or_else(no_sum)?);
            }
        }
        Ok(())
    }

    /// Whether the unit is still that of no terms.
    #[inline]
    pub(crate) fn is_new(&self) -> bool {
        self.index == LEAST
    }

    /// The numbers that [`deposit`] needs; `None` where there are none for the unit.
    #[inline]
    pub(crate) fn magic(&self) -> Option<[f64; 2]> {
        // The unit of sums that are 0 so far, or that have tiny terms alone, has no fast way.
        FAST.contains(&self.index).then(|| {
            let top = WIDTH * self.index;
            [1.75 * power(WIDTH + top), 1.5 * power(top)]
        })
    }

    /// Adds what a kernel has made of products; if a term was too large for the unit, does it again.
    #[inline]
    pub(crate) fn settle<T: Scalar>(&mut self, bins: Bins, magic: [f64; 2], x: &[T], y: &[T]) {
        if !self.take(bins, magic, x.len()) {
            self.settle_slowly(x, y);
        }
    }

    /// Adds products whose largest does not fit the unit.
    #[cold]
    fn settle_slowly<T: Scalar>(&mut self, x: &[T], y: &[T]) {
        let products = || x.iter().zip(y).map(|(x, y)| (x.conj() * *y).to_f64());
        self.cover(products());
        let again = self.magic().map(|magic| (deposit_products(x, y, magic), magic));
        if again.is_none_or(|(bins, magic)| !self.take(bins, magic, x.len())) {
            self.add_slowly(products);
        }
    }

    /// Adds what a kernel has made of `terms` terms, at most [`CHUNK`], unless one was out of range.
    #[inline]
    fn take(&mut self, bins: Bins, magic: [f64; 2], terms: usize) -> bool {
        let fits = bins.outside >> (RANGE + 1) == 0;
        if fits {
            let sum =
                |bin: u64, magic: f64| bin.wrapping_sub(magic.to_bits().wrapping_mul(terms as u64)) as i64;
            self.high += i128::from(sum(bins.high, magic[0]));
            self.low += i128::from(sum(bins.low, magic[1]));
        }
        fits
    }

    /// Guesses the unit from the first terms; `false` if all terms are 0.
    fn begin<I: Iterator<Item = f64>>(&mut self, terms: impl Fn() -> I) -> bool {
        self.cover(terms().take(PROBE));
        if self.is_new() {
            self.cover(terms());
        }
        !self.is_new() || terms().any(|term| term != 0.0)
    }

    /// Makes the unit large enough for these terms.
    fn cover(&mut self, terms: impl Iterator<Item = f64>) {
        let (mut least, mut largest) = (0.0f64, 0.0f64);
        for term in terms.filter(|term| term.is_finite()) {
            (least, largest) = (least.min(term), largest.max(term));
        }
        for term in [least, largest] {
            let term = Parts::of(term);
            let fits = |index: &i32| term.fits(*index);
            self.raise((self.index..GREATEST).find(fits).unwrap_or(GREATEST));
        }
    }

    /// Changes to a larger unit.
    fn raise(&mut self, index: i32) {
        match (index - self.index).cmp(&1) {
            Ordering::Less => {}
            Ordering::Equal => (self.high, self.low) = (0, self.high),
            Ordering::Greater => (self.high, self.low) = (0, 0),
        }
        self.index = self.index.max(index);
    }

    /// Adds terms of any kind, one by one, in integers.
    #[cold]
    fn add_slowly<I: Iterator<Item = f64>>(&mut self, terms: impl Fn() -> I) {
        self.cover(terms());
        for term in terms() {
            match term {
                _ if term.is_finite() => {
                    let [high, low] = Parts::of(term).bins(self.index);
                    self.high += high;
                    self.low += low;
                }
                _ if term.is_nan() => self.seen.nan = true,
                _ if term > 0.0 => self.seen.infinite = true,
                _ => self.seen.minus_infinite = true,
            }
        }
    }
}

/// 2^e, for an exponent of normal numbers.
#[inline]
fn power(e: i32) -> f64 {
    f64::from_bits(((e + 1023) as u64) << 52)
}

/// Σ q and Σ l as the last bits of numbers to which they were added, and the bits by which one of them left the range.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Bins {
    high: u64,
    low: u64,
    outside: u64,
}

/// Adds one term: the integer nearest to p / g is the difference of p + 1.75 2^52 g to 1.75 2^52 g in units of the last bit. In range, the sum has
/// the exponent and the first bit of 1.75 2^52 g. The rest is added to 1.5 g in the same way.
#[inline(always)]
pub(crate) fn deposit(bins: &mut Bins, [first, second]: [f64; 2], p: f64) {
    let sum = p + first;
    bins.high = bins.high.wrapping_add(sum.to_bits());
    bins.outside |= sum.to_bits() ^ first.to_bits();
    let rest = p - (sum - first);
    bins.low = bins.low.wrapping_add((rest + second).to_bits());
}

dispatch! {
    /// The bins of Σ conj(xₖ) yₖ, for at most [`CHUNK`] products.
    pub(crate) fn deposit_products<T: Scalar>(x: &[T], y: &[T], magic: [f64; 2]) -> Bins {
        let mut bins = Bins::default();
        for (x, y) in x.iter().zip(y) {
            deposit(&mut bins, magic, (x.conj() * *y).to_f64());
        }
        bins
    }

    /// The bins of Σ xₖ, for at most [`CHUNK`] terms.
    fn deposit_terms<T: Scalar>(x: &[T], magic: [f64; 2]) -> Bins {
        let mut bins = Bins::default();
        for x in x {
            deposit(&mut bins, magic, x.to_f64());
        }
        bins
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of sizes 2^least .. 2^most with signs.
    fn numbers(n: usize, (least, most): (i32, i32), seed: u64) -> Vec<f64> {
        let mut state = seed;
        let mut next = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state >> 11
        };
        let number = |_| {
            let (bits, e) = (next(), least + (next() % (most - least + 1) as u64) as i32);
            let size = (1.0 + (bits >> 1) as f64 / power(52)) * power(e / 2) * power(e - e / 2);
            if bits & 1 == 1 { -size } else { size }
        };
        (0..n).map(number).collect()
    }

    /// The definition, in integers.
    fn definition(terms: &[f64]) -> BinnedSum {
        let index = (LEAST..=GREATEST).find(|&i| terms.iter().all(|&t| Parts::of(t).fits(i))).unwrap();
        let bins = terms.iter().map(|&t| Parts::of(t).bins(index));
        let [high, low] = bins.fold([0, 0], |sum, bins| [sum[0] + bins[0], sum[1] + bins[1]]);
        BinnedSum { index, high, low, seen: Seen::default() }
    }

    fn of(x: &[f64], y: &[f64]) -> BinnedSum {
        let mut sum = BinnedSum::new();
        sum.add_products(x, y);
        sum
    }

    const SIZES: [(i32, i32); 12] = [
        (0, 0),
        (-5, 5),
        (-60, 60),
        (-200, 3),
        (-120, -100),
        (48, 54),
        (-56, -50),
        (-500, 500),
        (-511, -480),
        (480, 511),
        (-538, -500),
        (505, 511),
    ];

    #[test]
    fn any_order_and_any_parts_are_the_definition() {
        for (k, sizes) in SIZES.into_iter().enumerate() {
            for n in [0, 1, 2, 15, 17, 2047, 2048, 2049, 9000] {
                let (x, y) = (numbers(n, sizes, 1 + k as u64), numbers(n, sizes, 77 + k as u64));
                let products: Vec<f64> = x.iter().zip(&y).map(|(x, y)| x * y).collect();
                let finite = products.iter().all(|p| p.is_finite());
                let all = of(&x, &y);
                if finite {
                    assert_eq!(all, definition(&products), "{sizes:?} {n}");
                }
                let mut terms = BinnedSum::new();
                terms.add_terms(&products);
                assert_eq!(terms, all);
                let (back_x, back_y): (Vec<f64>, Vec<f64>) = x.iter().zip(&y).rev().unzip();
                assert_eq!(of(&back_x, &back_y), all, "{sizes:?} {n}");
                for cuts in [[n / 2, n / 2], [n / 3, n - n / 7], [n.min(1), n]] {
                    let mut sum = BinnedSum::new();
                    for (from, to) in [(cuts[1], n), (0, cuts[0]), (cuts[0], cuts[1])] {
                        let part = of(&x[from..to], &y[from..to]);
                        sum.add_sum(&BinnedSum::from_words(part.to_words()).unwrap());
                    }
                    assert_eq!(sum, all, "{sizes:?} {n} {cuts:?}");
                }
            }
        }
    }

    /// The edges of the range, where q is rounded into it or out of it.
    #[test]
    fn the_unit_is_that_of_the_definition_at_the_edges() {
        for index in [-3, 0, 5] {
            let edge = power(RANGE + WIDTH * index);
            for size in [edge, edge - 0.25 * power(WIDTH * index), edge - 0.5 * power(WIDTH * index)] {
                for near in [size.next_down(), size, size.next_up()] {
                    for term in [near, -near] {
                        for fill in [0, 20] {
                            let terms: Vec<f64> = [vec![1e-3; fill], vec![term]].concat();
                            assert_eq!(of(&terms, &vec![1.0; fill + 1]), definition(&terms), "{term:e}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn sums_of_integers_are_exact() {
        let x: Vec<f64> = (0..100_000).map(f64::from).collect();
        assert_eq!(of(&x, &vec![1.0; x.len()]).value::<f64>(), 4_999_950_000.0);
        assert_eq!(of(&[3e-300; 7], &[1e-10; 7]).value::<f64>(), 7.0 * (3e-300 * 1e-10));
        assert_eq!(of(&[f64::MAX, 1.0, f64::MAX], &[1.0, 0.5, -1.0]).value::<f64>(), 0.0);
        assert_eq!(of(&[f64::MAX; 3], &[1.0; 3]).value::<f64>(), f64::INFINITY);
        assert_eq!(of(&[-0.0; 3], &[1.0; 3]).value::<f64>().to_bits(), 0);
        // Far more terms than a vector has: 2^60 times the same.
        let mut many = of(&[-1.5; 5], &[1.0; 5]);
        (0..60).for_each(|_| many.add_sum(&many.clone()));
        assert_eq!(many.value::<f64>(), -7.5 * power(60));
    }

    #[test]
    fn every_term_is_rounded_to_a_part_of_the_largest_and_nothing_else_is() {
        for seed in 0..50 {
            let x = numbers(3000, (-30 - seed, 0), seed as u64);
            // Pairs of opposite terms around a few that are left: the sum is known.
            let (mut terms, kept) =
                ([x.clone(), x.iter().map(|x| -x).collect()].concat(), numbers(5, (-40, -30), 9));
            terms.extend(&kept);
            let exact: f64 =
                kept.iter().map(|x| x * power(60)).map(|x| x as i128).sum::<i128>() as f64 * power(-60);
            let largest = terms.iter().fold(0.0, |a: f64, b| a.max(b.abs()));
            let error = (of(&terms, &vec![1.0; terms.len()]).value::<f64>() - exact).abs();
            assert!(error <= 5.0 * largest * power(-51) + power(-60), "{error:e}");
        }
    }

    #[test]
    fn what_is_not_finite_stays() {
        let value = |terms: &[f64]| of(terms, &vec![1.0; terms.len()]).value::<f64>();
        let many = vec![1.0; 5000];
        for (bad, expected) in [
            (vec![f64::INFINITY], f64::INFINITY),
            (vec![f64::NEG_INFINITY, -1.0], f64::NEG_INFINITY),
            (vec![f64::INFINITY, f64::NEG_INFINITY], f64::NAN),
            (vec![f64::NAN, 1e300], f64::NAN),
            (vec![f64::INFINITY, f64::NAN], f64::NAN),
        ] {
            for terms in [[&bad[..], &many].concat(), [&many[..], &bad].concat(), bad.clone()] {
                assert_eq!(value(&terms).to_bits(), expected.to_bits());
            }
        }
    }

    #[test]
    fn single_precision_is_summed_in_double() {
        let (x, y) = (vec![0.1f32; 4099], vec![0.3f32; 4099]);
        let mut sum = BinnedSum::new();
        sum.add_products(&x, &y);
        assert_eq!(sum.value::<f32>(), (4099.0 * f64::from(0.1f32 * 0.3f32)) as f32);
    }
}
