//! Numbers that are not negative, with 128 bits of mantissa and an exponent without limits: for norms of exact residuals.
//!
//! Every operation cuts off what does not fit: its relative error is below 2⁻¹²⁵ ≈ 2·10⁻³⁸.

use std::cmp::Ordering;
use std::fmt;

/// mantissa · 2^exponent; the highest bit of the mantissa is set, unless the number is zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wide {
    mantissa: u128,
    exponent: i64,
}

impl Wide {
    /// 0.
    pub const ZERO: Wide = Wide { mantissa: 0, exponent: 0 };

    /// mantissa · 2^exponent.
    pub fn new(mantissa: u128, exponent: i64) -> Self {
        if mantissa == 0 {
            return Self::ZERO;
        }
        let shift = mantissa.leading_zeros();
        Wide { mantissa: mantissa << shift, exponent: exponent - i64::from(shift) }
    }

    /// |x| of a finite x, exactly.
    pub fn from_f64(x: f64) -> Self {
        let (_, mantissa, exponent) = parts(x);
        Self::new(mantissa.into(), exponent.into())
    }

    /// 2^exponent.
    pub fn power_of_two(exponent: i64) -> Self {
        Self::new(1, exponent)
    }

    /// m and e of m · 2^e.
    pub fn into_parts(self) -> (u128, i64) {
        (self.mantissa, self.exponent)
    }

    pub fn is_zero(self) -> bool {
        self.mantissa == 0
    }

    pub fn add(self, other: Self) -> Self {
        let (large, small) = if self >= other { (self, other) } else { (other, self) };
        let distance = large.exponent - small.exponent;
        if small.is_zero() || distance >= 128 {
            return large;
        }
        match large.mantissa.overflowing_add(small.mantissa >> distance) {
            (sum, false) => Wide { mantissa: sum, ..large },
            (sum, true) => Wide { mantissa: (sum >> 1) | (1 << 127), exponent: large.exponent + 1 },
        }
    }

    /// |self − other|. The relative error is small only if the two are not nearly equal; the absolute one is below 2⁻¹²⁶ of the
    /// larger.
    pub fn distance(self, other: Self) -> Self {
        let (large, small) = if self >= other { (self, other) } else { (other, self) };
        let distance = large.exponent - small.exponent;
        if small.is_zero() || distance >= 128 {
            return large;
        }
        Self::new(large.mantissa - (small.mantissa >> distance), large.exponent)
    }

    pub fn mul(self, other: Self) -> Self {
        if self.is_zero() || other.is_zero() {
            return Self::ZERO;
        }
        let low = |x: u128| x & u128::from(u64::MAX);
        let (a1, a0) = (self.mantissa >> 64, low(self.mantissa));
        let (b1, b0) = (other.mantissa >> 64, low(other.mantissa));
        let middle = low(a1 * b0) + low(a0 * b1) + ((a0 * b0) >> 64);
        let high = a1 * b1 + ((a1 * b0) >> 64) + ((a0 * b1) >> 64) + (middle >> 64);
        Self::new(high, self.exponent + other.exponent + 128)
    }

    pub fn sqrt(self) -> Self {
        if self.is_zero() {
            return self;
        }
        // value = m · 2^e with e even and m of 127 or 128 bits.
        let odd = self.exponent & 1;
        let (m, e) = (self.mantissa >> odd, self.exponent + odd);
        let root = m.isqrt();
        // sqrt(m) = root + rest / (2 root) − …, the next term being below 2⁻⁶⁴; rest ≤ 2 root.
        let rest = m - root * root;
        let fraction = (rest << 63) / root;
        let whole = (root << 64).saturating_add(fraction);
        Self::new(whole, e / 2 - 64)
    }

    /// The nearest `f64`, nearly; infinity or zero where the range of `f64` ends.
    pub fn to_f64(self) -> f64 {
        let top = (self.mantissa >> 64) as f64;
        // In two steps: the power alone may be out of range where the product is not.
        let e = (self.exponent + 64).clamp(-3000, 3000) as i32;
        let half = super::rng::power_of_two((e / 2).clamp(-1000, 1000));
        let rest = super::rng::power_of_two((e - e / 2).clamp(-1074, 1023));
        top * half * rest
    }

    /// log₁₀, to some 15 digits.
    fn log10(self) -> f64 {
        (self.mantissa as f64).log10() + self.exponent as f64 * std::f64::consts::LOG10_2
    }
}

impl PartialOrd for Wide {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Wide {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.is_zero(), other.is_zero()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            _ => (self.exponent, self.mantissa).cmp(&(other.exponent, other.mantissa)),
        }
    }
}

/// Six digits, such as `1.23456e-412`.
impl fmt::Display for Wide {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_zero() {
            return f.write_str("0");
        }
        let log = self.log10();
        let mut power = log.floor();
        let mut digits = 10f64.powf(log - power);
        if digits >= 9.999_995 {
            (digits, power) = (1.0, power + 1.0);
        }
        write!(f, "{digits:.5}e{power}")
    }
}

/// Sign, mantissa and exponent of a finite number: ± mantissa · 2^exponent.
pub fn parts(x: f64) -> (bool, u64, i32) {
    debug_assert!(x.is_finite());
    let bits = x.to_bits();
    let fraction = bits & ((1 << 52) - 1);
    match ((bits >> 52) & 0x7FF) as i32 {
        0 => (x.is_sign_negative(), fraction, -1074),
        e => (x.is_sign_negative(), fraction | (1 << 52), e - 1075),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn w(x: f64) -> Wide {
        Wide::from_f64(x)
    }

    #[test]
    fn small_numbers_are_exact() {
        assert_eq!(w(3.0).mul(w(5.0)), w(15.0));
        assert_eq!(w(3.0).add(w(5.0)), w(8.0));
        assert_eq!(w(3.0).distance(w(5.0)), w(2.0));
        assert_eq!(w(5.0).distance(w(5.0)), Wide::ZERO);
        assert_eq!(w(0.0), Wide::ZERO);
        assert_eq!(w(-2.0), w(2.0));
        assert_eq!(Wide::ZERO.add(w(7.0)), w(7.0));
        assert_eq!(w(7.0).mul(Wide::ZERO), Wide::ZERO);
        assert!(w(1.0) < w(1.0 + f64::EPSILON) && w(0.0) < w(5e-324));
    }

    #[test]
    fn the_range_is_not_that_of_f64() {
        let huge = w(1e300).mul(w(1e300));
        assert_eq!(huge.to_f64(), f64::INFINITY);
        assert_eq!(huge.to_string(), "1.00000e600");
        assert_eq!(huge.sqrt().to_f64(), 1e300);
        let tiny = w(5e-324).mul(w(5e-324));
        assert_eq!(tiny.sqrt(), w(5e-324));
        assert_eq!(tiny.to_f64(), 0.0);
        assert_eq!(w(5e-324).to_f64(), 5e-324);
        assert_eq!(w(f64::MAX).to_f64(), f64::MAX);
        assert_eq!(w(9.999_999_9).to_string(), "1.00000e1");
    }

    /// Products of integers of up to 60 bits fit into 120 bits, so nothing is cut off.
    #[test]
    fn products_and_sums_agree_with_integers() {
        let mut rng = super::super::rng::Rng::new(&[1]);
        for _ in 0..10_000 {
            let [a, b, c] = [(); 3].map(|()| u128::from(rng.bits() >> rng.below(60) >> 4));
            let [x, y, z] = [a, b, c].map(|m| Wide::new(m, -31));
            assert_eq!(x.mul(y), Wide::new(a * b, -62));
            assert_eq!(x.add(z), Wide::new(a + c, -31));
            assert_eq!(x.distance(z), Wide::new(a.abs_diff(c), -31));
            assert_eq!(x.cmp(&z), a.cmp(&c));
        }
    }

    #[test]
    fn square_roots_of_squares_come_back() {
        let mut rng = super::super::rng::Rng::new(&[2]);
        for _ in 0..10_000 {
            let root = Wide::new(rng.bits().max(1).into(), i64::from(rng.between(-900, 900)));
            assert_eq!(root.mul(root).sqrt(), root);
        }
    }

    #[test]
    fn square_roots_are_good_to_120_bits() {
        let mut rng = super::super::rng::Rng::new(&[3]);
        for k in 0..10_000 {
            let mantissa = (u128::from(rng.bits()) << 64) | u128::from(rng.bits());
            let x = Wide::new(mantissa, k % 5 - 2);
            let root = x.sqrt();
            assert!(root.mul(root).distance(x) <= x.mul(Wide::power_of_two(-120)), "{x:?}");
        }
        let largest = Wide::new(u128::MAX, 0);
        let root = largest.sqrt();
        assert!(root.mul(root).distance(largest) <= largest.mul(Wide::power_of_two(-120)));
    }
}
