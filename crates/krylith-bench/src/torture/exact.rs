//! The judge of answers: ‖b − A x‖₂ and ‖b‖₂ in arithmetic that shares nothing with the library.
//!
//! Every row of b − A x is summed exactly. Products of two `f64` are integers of at most 106 bits times a power of two from 2⁻²¹⁴⁸
//! to 2²⁰⁴⁸; they are added into one fixed-point number of 4352 bits, as Kulisch proposed, which neither rounds nor overflows.
//! The rows are then cut to 128 bits, squared and added, so that norms are good to a relative 10⁻³⁵, for numbers of any size.
//! Reference: Kulisch & Miranker 1986, doi:10.1137/1028001.

use super::wide::{Wide, parts};
use krylith::Csr;

/// Words of the sum, two's complement, the lowest first.
const WORDS: usize = 68;

/// Bit 0 of the sum is 2 to this power.
const LOWEST: i32 = -2176;

/// An exact sum of products of finite `f64`; up to 2⁶³ of them.
pub struct ExactSum {
    words: [u64; WORDS],
}

impl ExactSum {
    /// 0.
    pub fn new() -> Self {
        ExactSum { words: [0; WORDS] }
    }

    /// Adds x.
    pub fn add(&mut self, x: f64) {
        self.add_product(x, 1.0);
    }

    /// Adds x y.
    pub fn add_product(&mut self, x: f64, y: f64) {
        let ((x_negative, x, ex), (y_negative, y, ey)) = (parts(x), parts(y));
        let product = u128::from(x) * u128::from(y);
        if product == 0 {
            return;
        }
        let place = (ex + ey - LOWEST) as usize;
        let (first, shift) = (place / 64, place % 64);
        let low = (product & u128::from(u64::MAX)) << shift;
        let high = (product >> 64) << shift;
        let three = [low as u64, (low >> 64) as u64 | high as u64, (high >> 64) as u64];
        let step = if x_negative == y_negative { u64::carrying_plus } else { u64::borrowing_minus };
        let mut carry = false;
        for (word, part) in self.words[first..].iter_mut().zip(three) {
            (*word, carry) = step(*word, part, carry);
        }
        for word in &mut self.words[first + 3..] {
            if !carry {
                break;
            }
            (*word, carry) = step(*word, 0, true);
        }
    }

    /// The size of the sum, cut to 128 bits, and whether it is negative.
    pub fn size(&self) -> (bool, Wide) {
        let mut words = self.words;
        let negative = words[WORDS - 1] >> 63 == 1;
        if negative {
            let mut carry = true;
            for word in &mut words {
                (*word, carry) = (!*word).overflowing_add(carry.into());
            }
        }
        let Some(top) = words.iter().rposition(|&word| word != 0) else { return (false, Wide::ZERO) };
        let word = |k: usize| if k <= top { u128::from(words[top - k]) } else { 0 };
        let shift = words[top].leading_zeros();
        let mut mantissa = ((word(0) << 64) | word(1)) << shift;
        if shift > 0 {
            mantissa |= word(2) >> (64 - shift);
        }
        let exponent = i64::from(LOWEST) + 64 * top as i64 - 64 - i64::from(shift);
        (negative, Wide::new(mantissa, exponent))
    }
}

/// Addition and subtraction of words with a carry in and out.
trait WithCarry: Sized {
    fn carrying_plus(self, other: Self, carry: bool) -> (Self, bool);
    fn borrowing_minus(self, other: Self, borrow: bool) -> (Self, bool);
}

impl WithCarry for u64 {
    fn carrying_plus(self, other: u64, carry: bool) -> (u64, bool) {
        let (sum, first) = self.overflowing_add(other);
        let (sum, second) = sum.overflowing_add(carry.into());
        (sum, first || second)
    }

    fn borrowing_minus(self, other: u64, borrow: bool) -> (u64, bool) {
        let (rest, first) = self.overflowing_sub(other);
        let (rest, second) = rest.overflowing_sub(borrow.into());
        (rest, first || second)
    }
}

/// What is exactly true of x as an answer to A x = b.
#[derive(Debug, Clone, Copy)]
pub struct Truth {
    /// ‖b − A x‖₂.
    pub residual: Wide,
    /// ‖b‖₂.
    pub rhs: Wide,
    /// ‖ |b| + |A| |x| ‖₂: what rounding errors of a residual are relative to.
    pub magnitude: Wide,
    /// Entries of the longest row.
    pub longest_row: usize,
    /// Rows.
    pub rows: usize,
}

/// The truth about x; none where A, x or b is not finite.
pub fn judge(a: &Csr<f64>, x: &[f64], b: &[f64]) -> Option<Truth> {
    let finite = |v: &[f64]| v.iter().all(|v| v.is_finite());
    if !finite(a.values()) || !finite(x) || !finite(b) {
        return None;
    }
    let mut squares = [Wide::ZERO; 3];
    let mut longest_row = 0;
    for (i, &rhs) in b.iter().enumerate() {
        let (columns, values) = a.row(i);
        longest_row = longest_row.max(columns.len());
        let mut sum = ExactSum::new();
        sum.add(rhs);
        let rhs = Wide::from_f64(rhs);
        let mut magnitude = rhs;
        for (&j, &v) in columns.iter().zip(values) {
            let x = x[j as usize];
            sum.add_product(-v, x);
            magnitude = magnitude.add(Wide::from_f64(v).mul(Wide::from_f64(x)));
        }
        for (square, size) in squares.iter_mut().zip([sum.size().1, rhs, magnitude]) {
            *square = square.add(size.mul(size));
        }
    }
    let [residual, rhs, magnitude] = squares.map(Wide::sqrt);
    Some(Truth { residual, rhs, magnitude, longest_row, rows: b.len() })
}

impl Truth {
    /// max(rtol ‖b‖₂, atol).
    pub fn bound(&self, rtol: f64, atol: f64) -> Wide {
        self.rhs.mul(Wide::from_f64(rtol)).max(Wide::from_f64(atol))
    }

    /// ‖b − A x‖₂ ≤ max(rtol ‖b‖₂, atol), with 10⁻¹⁵ of slack for the rounding of the bound and of the norms.
    pub fn meets(&self, rtol: f64, atol: f64) -> bool {
        let bound = self.bound(rtol, atol);
        self.residual <= bound.add(bound.mul(Wide::from_f64(1e-15)))
    }

    /// How far a residual norm that is computed in `f64`, with careful norms, may be from the true one: each row of k entries is
    /// off by at most (k + 2) ε of its magnitude and k + 2 times the smallest number; sums of squares by n ε relatively.
    pub fn rounding(&self) -> Wide {
        let ulps = |count: usize, of: Wide| of.mul(Wide::from_f64(count as f64 * f64::EPSILON));
        let smallest = Wide::power_of_two(-1073).mul(Wide::from_f64(self.longest_row as f64 + 2.0));
        ulps(self.longest_row + 2, self.magnitude)
            .add(ulps(self.rows + 16, self.residual))
            .add(smallest.mul(Wide::from_f64(self.rows as f64 + 1.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::rng::{Rng, power_of_two};
    use super::*;

    fn sum(products: &[(f64, f64)]) -> (bool, Wide) {
        let mut sum = ExactSum::new();
        products.iter().for_each(|&(x, y)| sum.add_product(x, y));
        sum.size()
    }

    #[test]
    fn everything_cancels_but_the_smallest() {
        let (tiny, huge) = (f64::from_bits(1), f64::MAX);
        assert_eq!(sum(&[(huge, huge), (tiny, tiny), (-huge, huge)]), (false, Wide::power_of_two(-2148)));
        assert_eq!(sum(&[(huge, -huge), (tiny, -tiny), (huge, huge)]), (true, Wide::power_of_two(-2148)));
        assert_eq!(sum(&[(1e300, 1e300), (-1e300, 1e300)]), (false, Wide::ZERO));
        assert_eq!(sum(&[(0.0, -1.0), (-0.0, 1e300)]), (false, Wide::ZERO));
        assert_eq!(
            sum(&[(huge, huge); 4]).1,
            Wide::from_f64(huge).mul(Wide::from_f64(huge)).mul(Wide::from_f64(4.0))
        );
    }

    /// 1 + 2⁻⁵² squared is 1 + 2⁻⁵¹ + 2⁻¹⁰⁴; an f64 loses the last term.
    #[test]
    fn products_are_not_rounded() {
        let x = 1.0 + f64::EPSILON;
        assert_eq!(sum(&[(x, x), (-1.0, 1.0 + 2.0 * f64::EPSILON)]), (false, Wide::power_of_two(-104)));
    }

    #[test]
    fn sums_agree_with_integers() {
        let mut rng = Rng::new(&[4]);
        for _ in 0..2_000 {
            let (up, down) = (rng.between(-500, 400), rng.between(-500, 400));
            let mut exact = 0i128;
            let products: Vec<(f64, f64)> = (0..rng.below(9))
                .map(|_| {
                    let [x, y] = [(); 2].map(|()| (rng.bits() >> 12) as i64 >> rng.below(50));
                    let x = if rng.once_in(2) { -x } else { x };
                    exact += i128::from(x) * i128::from(y);
                    (x as f64 * power_of_two(up), y as f64 * power_of_two(down))
                })
                .collect();
            let expected = Wide::new(exact.unsigned_abs(), (up + down).into());
            assert_eq!(sum(&products), (exact < 0, expected), "{products:?}");
        }
    }

    /// More than 128 bits are between the terms: the size is cut, never rounded up.
    #[test]
    fn sizes_are_cut_to_128_bits() {
        let (_, size) = sum(&[(1.0, 1.0), (power_of_two(-200), 1.0)]);
        assert_eq!(size, Wide::power_of_two(0));
        let (_, size) = sum(&[(1.0, 1.0), (-power_of_two(-200), 1.0)]);
        assert_eq!(size, Wide::new(u128::MAX, -128));
        let (negative, size) = sum(&[(-1.0, 1.0), (power_of_two(-100), power_of_two(-28))]);
        assert_eq!((negative, size), (true, Wide::new(u128::MAX, -128)));
    }

    fn two_by_two(values: [f64; 4]) -> Csr<f64> {
        Csr::new(2, 2, vec![0, 2, 4], vec![0, 1, 0, 1], values.to_vec()).unwrap()
    }

    /// b − A x = (7, 5) − (1·2 + 2·1, −3·2 + 4·1) = (3, 7).
    #[test]
    fn a_system_by_hand() {
        let truth = judge(&two_by_two([1.0, 2.0, -3.0, 4.0]), &[2.0, 1.0], &[7.0, 5.0]).unwrap();
        assert_eq!(truth.residual.mul(truth.residual).to_f64(), 58.0);
        assert_eq!(truth.rhs, Wide::from_f64(74.0).sqrt());
        assert_eq!(truth.magnitude, Wide::from_f64(11.0f64 * 11.0 + 15.0 * 15.0).sqrt());
        assert!(truth.meets((58.0f64 / 74.0).sqrt(), 0.0));
        assert!(!truth.meets((58.0f64 / 74.0).sqrt() * (1.0 - 4e-15), 0.0));
        assert!(truth.meets(0.0, 58.0f64.sqrt()) && !truth.meets(0.0, 7.6));
    }

    /// With x = (1, −1) scaled by 2⁶⁰⁰ an f64 residual is 0 or infinite; the true one is 2¹¹⁴⁸.
    #[test]
    fn cancellation_and_overflow_do_not_hide_a_residual() {
        let scale = power_of_two(600);
        let a = two_by_two([(1.0 + f64::EPSILON) * scale, scale, scale, scale]);
        let truth = judge(&a, &[scale, -scale], &[0.0, 0.0]).unwrap();
        assert_eq!(truth.residual, Wide::power_of_two(1200 - 52));
        assert!(!truth.meets(1.0, 1e300));
    }

    #[test]
    fn zero_meets_a_tolerance_of_zero() {
        let a = two_by_two([1.0, 2.0, 2.0, 4.0]);
        assert!(judge(&a, &[1.0, 1.0], &[3.0, 6.0]).unwrap().meets(0.0, 0.0));
        assert!(!judge(&a, &[1.0, 1.0 + f64::EPSILON], &[3.0, 6.0]).unwrap().meets(0.0, 0.0));
        assert!(judge(&a, &[f64::NAN, 1.0], &[3.0, 6.0]).is_none());
    }

    /// Integer systems of five unknowns, scaled by powers of two: squares of norms in i128.
    #[test]
    fn norms_agree_with_integers() {
        let mut rng = Rng::new(&[5]);
        for _ in 0..500 {
            let n = 1 + rng.below(5);
            let e = rng.between(-490, 490);
            let mut integers = |count: usize| -> Vec<i64> {
                (0..count).map(|_| i64::from(rng.between(-1_000_000, 1_000_000))).collect()
            };
            let (a, x, b) = (integers(n * n), integers(n), integers(n));
            let floats =
                |v: &[i64], e: i32| -> Vec<f64> { v.iter().map(|&v| v as f64 * power_of_two(e)).collect() };
            let columns = (0..n).flat_map(|_| 0..n as u32).collect();
            let matrix = Csr::new(n, n, (0..=n).map(|i| i * n).collect(), columns, floats(&a, e)).unwrap();
            let truth = judge(&matrix, &floats(&x, 7), &floats(&b, e + 7)).unwrap();
            let row = |i: usize| -> i128 {
                let dot: i128 = (0..n).map(|j| i128::from(a[i * n + j]) * i128::from(x[j])).sum();
                i128::from(b[i]) - dot
            };
            let squares: i128 = (0..n).map(|i| row(i) * row(i)).sum();
            let expected = Wide::new(squares.unsigned_abs(), 2 * i64::from(e + 7)).sqrt();
            assert_eq!(truth.residual, expected);
        }
    }

    /// The bound of the rounding error holds for residuals that are summed from left to right.
    #[test]
    fn computed_residuals_are_within_the_bound() {
        let mut rng = Rng::new(&[6]);
        for _ in 0..300 {
            let n = 1 + rng.below(6);
            let mut draw = |count: usize| -> Vec<f64> { (0..count).map(|_| rng.signed()).collect() };
            let (values, x) = (draw(n * n), draw(n));
            let columns = (0..n).flat_map(|_| 0..n as u32).collect();
            let a = Csr::new(n, n, (0..=n).map(|i| i * n).collect(), columns, values).unwrap();
            let dot = |i: usize| a.row(i).1.iter().zip(&x).map(|(v, x)| v * x).sum::<f64>();
            let b: Vec<f64> = (0..n).map(|i| dot(i) * (1.0 + 3e-16)).collect();
            let computed = (0..n).map(|i| (b[i] - dot(i)).powi(2)).sum::<f64>().sqrt();
            let truth = judge(&a, &x, &b).unwrap();
            assert!(truth.residual.distance(Wide::from_f64(computed)) <= truth.rounding());
        }
    }
}
