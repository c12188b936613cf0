//! A vector of small fractions from its digits.
//!
//! The null vectors of a matrix of small integers have entries that are fractions of small integers, up to a common factor and, where rows were scaled, powers of
//! two. Divided by its largest entry and by powers of two, each entry is such a fraction p / q in \[1, 2), which its continued fraction finds from the digits of
//! double-double. Multiplied by the least common multiple of all q, entries are integers times powers of two, exact in `f64`.
//!
//! Reference: Hardy & Wright, An Introduction to the Theory of Numbers, chapter X.

use std::iter::zip;

/// The largest denominator, and the largest common multiple of all: integers stay below 2⁵³.
const MOST: u64 = 1 << 24;
/// Bits behind the point of the digits that fractions are found from.
const BITS: u32 = 96;
/// Bits of them that a fraction may differ in.
const ROUNDED: u32 = 18;
/// An entry this small against the largest one is rounding.
const ZERO: f64 = 1e-28;

/// y + low, multiplied by one number, with exact entries; none where they are no small fractions.
pub(super) fn snapped(y: &[f64], low: &[f64]) -> Option<Vec<f64>> {
    let unit = zip(y, low).max_by(|a, b| a.0.abs().total_cmp(&b.0.abs()))?;
    let mut entries = Vec::with_capacity(y.len());
    let mut common = 1;
    for entry in zip(y, low) {
        if entry.0.abs() <= ZERO * unit.0.abs() {
            entries.push((0.0, 0, 1));
            continue;
        }
        let (ratio, rest) = quotient(entry, unit);
        let power = ratio.abs().log2().floor().exp2();
        let digits = (ratio.abs() / power * (BITS as f64).exp2()) as i128
            + (rest * ratio.signum() / power * (BITS as f64).exp2()) as i128;
        let (p, q) = fraction(u128::try_from(digits).ok()?)?;
        common = common / gcd(common, q) * q;
        if common > MOST {
            return None;
        }
        entries.push((power.copysign(ratio), p, q));
    }
    Some(entries.into_iter().map(|(power, p, q)| power * (p * (common / q)) as f64).collect())
}

/// (a + a_low) / (b + b_low) in two parts.
fn quotient((&a, &a_low): (&f64, &f64), (&b, &b_low): (&f64, &f64)) -> (f64, f64) {
    let first = a / b;
    let rest = (-first).mul_add(b, a) + (a_low - first * b_low);
    (first, rest / b)
}

/// p / q near x / 2^[`BITS`], from the continued fraction of x; none where q would be large.
fn fraction(x: u128) -> Option<(u64, u64)> {
    let one = 1u128 << BITS;
    let (mut above, mut below) = (x, one);
    let (mut before, mut now) = ((0u64, 1u64), (1u64, 0u64));
    while below != 0 {
        let whole = u64::try_from(above / below).ok()?;
        let next = |now: u64, before: u64| whole.checked_mul(now)?.checked_add(before);
        (before, now) = (now, (next(now.0, before.0)?, next(now.1, before.1)?));
        let (p, q) = now;
        if q > MOST || p > 2 * MOST {
            return None;
        }
        if (x * u128::from(q)).abs_diff(one * u128::from(p)) <= u128::from(q) << ROUNDED {
            return Some(now);
        }
        (above, below) = (below, above % below);
    }
    None
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// x in two parts, x = p / q.
    fn parts(p: f64, q: f64) -> (f64, f64) {
        quotient((&p, &0.0), (&q, &0.0))
    }

    #[test]
    fn thirds_and_sevenths() {
        let entries = [parts(2.0, 3.0), parts(-1.0, 7.0), (1.0, 0.0), (0.0, 0.0), parts(5.0, 1024.0 * 3.0)];
        let (y, low): (Vec<f64>, Vec<f64>) = entries.into_iter().unzip();
        assert_eq!(snapped(&y, &low), Some(vec![14.0, -3.0, 21.0, 0.0, 35.0 / 1024.0]));
    }

    #[test]
    fn numbers_without_a_pattern_are_no_fractions() {
        assert_eq!(snapped(&[1.0, 2f64.sqrt()], &[0.0, 0.0]), None);
        // A third that is rounded to f64 is no third.
        assert_eq!(snapped(&[1.0, 1.0 / 3.0], &[0.0, 0.0]), None);
        assert_eq!(snapped(&[], &[]), None);
    }
}
