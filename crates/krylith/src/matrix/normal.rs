//! Aᵀy in double-double, for vectors that may be orthogonal to the range of A.
//!
//! y is given as y + low, two numbers per entry, so that a null vector whose entries are no `f64` can be written down to about 32 digits. Column j with k
//! entries is a sum of k products, or 2 k with `low`. Let u = 2⁻⁵³ and s = Σ |aᵢⱼ yᵢ|. Products and sums are taken with their rounding
//! errors, which are exact in `f64`, and the errors are summed beside (Dot2 of Ogita, Rump & Oishi 2005, doi:10.1137/030601818): the computed sum ŝ
//! has |ŝ − aⱼᵀy| ≤ u |aⱼᵀy| + γ² s with γ = (k + 4) u. Two questions are answered:
//!
//! * Is Aᵀy zero up to the rounding of `f64`, as it is for a null vector that was rounded to `f64`? ‖D⁻¹ŝ‖₂ ≤ ‖D⁻¹γ s‖₂, D the largest entries of the columns, so
//!   that their scales do not matter.
//! * Is Aᵀy zero? Where |ŝ| ≤ γ² s, the products of a column are summed once more without any rounding, as expansions (Shewchuk 1997, doi:10.1007/PL00009321).
#![allow(unsafe_code)]

use super::CsrRef;
use super::residual::{ROUNDOFF, larger, two_product, two_sum};
use crate::operator::NormalResidual;

/// What a column adds to Aᵀy.
#[derive(Clone, Copy, Default)]
struct Column {
    /// (Aᵀy)ⱼ without `errors`.
    sum: f64,
    /// The rounding errors of `sum`.
    errors: f64,
    /// (|A|ᵀ|y|)ⱼ
    size: f64,
    /// Σᵢ aᵢⱼ²
    square: f64,
    /// The largest |aᵢⱼ|.
    largest: f64,
    terms: f64,
}

impl Column {
    #[inline(always)]
    fn add(&mut self, value: f64, y: f64) {
        let (product, product_error) = two_product(value, y);
        let (sum, sum_error) = two_sum(self.sum, product);
        self.sum = sum;
        self.errors += product_error + sum_error;
        self.size += product.abs();
        self.terms += 1.0;
    }

    fn value(&self) -> f64 {
        self.sum + self.errors
    }

    /// γ
    fn gamma(&self) -> f64 {
        1.01 * (self.terms + 4.0) * ROUNDOFF
    }
}

/// Aᵀ(y + low) by columns; `low` is empty where it is zero. Entry after entry on one thread: only for solves that failed, and for null spaces.
fn columns(a: CsrRef<'_, f64>, y: &[f64], low: &[f64]) -> Vec<Column> {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "fma")]
        fn with_fma(a: CsrRef<'_, f64>, y: &[f64], low: &[f64]) -> Vec<Column> {
            columns_compensated(a, y, low)
        }
        if is_x86_feature_detected!("fma") {
            // SAFETY: the processor has what the function was compiled for.
            return unsafe { with_fma(a, y, low) };
        }
    }
    columns_compensated(a, y, low)
}

#[inline(always)]
fn columns_compensated(a: CsrRef<'_, f64>, y: &[f64], low: &[f64]) -> Vec<Column> {
    let mut columns = vec![Column::default(); a.ncols()];
    for (i, &y) in y.iter().enumerate() {
        let (indices, values) = a.row(i);
        let low = low.get(i).copied().filter(|&low| low != 0.0);
        for (&j, &v) in indices.iter().zip(values) {
            let column = &mut columns[j as usize];
            column.add(v, y);
            low.iter().for_each(|&low| column.add(v, low));
            column.square += v * v;
            column.largest = larger(column.largest, v.abs());
        }
    }
    columns
}

/// Writes Aᵀ(y + low), each entry rounded once.
pub(crate) fn transposed_product(a: CsrRef<'_, f64>, y: &[f64], low: &[f64], product: &mut [f64]) {
    let columns = columns(a, y, low);
    product.iter_mut().zip(&columns).for_each(|(product, column)| *product = column.value());
}

/// xᵀ(y + low), and a bound of its error; `low` is empty where it is zero.
pub(crate) fn dot(x: &[f64], y: &[f64], low: &[f64]) -> (f64, f64) {
    let mut sum = Column::default();
    let low = low.iter().copied().chain(std::iter::repeat(0.0));
    for ((&x, &y), low) in x.iter().zip(y).zip(low) {
        sum.add(x, y);
        sum.add(x, low);
    }
    (sum.value(), 1.01 * ROUNDOFF * sum.value().abs() + sum.gamma() * sum.gamma() * sum.size)
}

/// The sizes of Aᵀ(y + low); zero where it has no terms.
pub(super) fn normal_residual(a: CsrRef<'_, f64>, y: &[f64], low: &[f64]) -> NormalResidual<f64> {
    let columns = columns(a, y, low);
    let largest = columns.iter().fold(0.0, |largest, column| larger(largest, column.size));
    if largest == 0.0 {
        return NormalResidual { is_zero: true, ..NormalResidual::default() };
    }
    let norm = |of: &dyn Fn(&Column) -> f64| {
        columns.iter().map(|column| (of(column) / largest).powi(2)).sum::<f64>().sqrt()
    };
    // A square that is out of range says nothing.
    let cosine = |c: &Column| match (f64::MIN_POSITIVE..=f64::MAX).contains(&c.square) {
        true => (c.value().abs() + c.gamma() * c.size) / c.square.sqrt(),
        false => f64::INFINITY,
    };
    let terms = || columns.iter().filter(|column| column.size > 0.0);
    let sums = norm(&|c| c.value());
    // Columns divided by their largest entries, so that none of them hides another.
    let scaled = |of: &dyn Fn(&Column) -> f64| {
        terms().map(|column| (of(column) / column.largest).powi(2)).sum::<f64>().sqrt()
    };
    NormalResidual {
        ratio: sums / norm(&|c| c.size),
        in_roundings: scaled(&|c| c.value()) / scaled(&|c| c.gamma() * c.size),
        is_zero: terms().all(|c| c.value().abs() <= c.gamma() * c.gamma() * c.size) && is_zero(a, y, low),
        cosines: terms().fold(0.0, |sum, column| sum + cosine(column) * cosine(column)).sqrt(),
    }
}

/// Whether Aᵀ(y + low) = 0 exactly. `false` also where a product is so small that its rounding error is no `f64`.
fn is_zero(a: CsrRef<'_, f64>, y: &[f64], low: &[f64]) -> bool {
    /// The rounding errors of larger products are numbers.
    const LEAST: f64 = f64::from_bits((1023 - 960) << 52);
    let columns = a.transpose();
    (0..columns.nrows()).all(|j| {
        let (rows, values) = columns.row(j);
        let low = |i: usize| low.get(i).copied().unwrap_or(0.0);
        let terms = rows.iter().zip(values).flat_map(|(&i, &v)| [(v, y[i as usize]), (v, low(i as usize))]);
        let mut sum = Expansion::default();
        for (v, y) in terms.filter(|&(v, y)| v != 0.0 && y != 0.0) {
            let (product, error) = two_product(v, y);
            if product.abs() < LEAST || !product.is_finite() {
                return false;
            }
            sum.add(error);
            sum.add(product);
        }
        sum.is_zero()
    })
}

/// A sum without rounding: its parts do not overlap.
#[derive(Default)]
struct Expansion(Vec<f64>);

impl Expansion {
    fn add(&mut self, term: f64) {
        let mut carry = term;
        self.0.retain_mut(|part| {
            let (sum, error) = two_sum(carry, *part);
            (carry, *part) = (sum, error);
            error != 0.0
        });
        if carry != 0.0 {
            self.0.push(carry);
        }
    }

    fn is_zero(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::Csr;

    /// [ 1  −1 ]
    /// [ −1  d ]
    fn pair(d: f64) -> Csr<f64> {
        Csr::from_triplets(2, 2, &[0, 0, 1, 1], &[0, 1, 0, 1], &[1.0, -1.0, -1.0, d]).unwrap()
    }

    #[test]
    fn a_left_null_vector_has_no_normal_residual() {
        let null = normal_residual(pair(1.0).view(), &[1.0, 1.0], &[]);
        assert_eq!((null.ratio, null.in_roundings, null.is_zero), (0.0, 0.0, true));
        assert!(null.cosines <= 8.0 * f64::EPSILON);
        // Aᵀr = (2, −2), |A|ᵀ|r| = (2, 2), columns of length √2
        let other = normal_residual(pair(1.0).view(), &[1.0, -1.0], &[]);
        assert_eq!((other.ratio, other.is_zero), (1.0, false));
        assert!((other.cosines - 2.0).abs() <= 8.0 * f64::EPSILON);
    }

    /// Aᵀy = (0, δ), and rounding in `f64` may leave up to (2 + 4) u · 2 in each column.
    #[test]
    fn zero_up_to_rounding_and_zero() {
        let nearly = |exponent: i32| {
            let found = normal_residual(pair(1.0 + 2f64.powi(exponent)).view(), &[1.0, 1.0], &[]);
            (found.in_roundings <= 1.0, found.is_zero)
        };
        assert_eq!(nearly(-52), (true, false));
        assert_eq!(nearly(-48), (false, false));
        assert_eq!(nearly(-54), (true, true));
    }

    /// The determinant of (1 + ε, 1; 1, 1 − ε) is −ε²: y = (1, −1 − ε) leaves (0, ε²), which double-double does not tell from zero.
    #[test]
    fn a_determinant_of_thirty_two_digits() {
        let e = f64::EPSILON;
        let a =
            Csr::from_triplets(2, 2, &[0, 0, 1, 1], &[0, 1, 0, 1], &[1.0 + e, 1.0, 1.0, 1.0 - e]).unwrap();
        let found = normal_residual(a.view(), &[1.0, -1.0 - e], &[]);
        assert!(found.in_roundings < 1e-14 && !found.is_zero, "{found:?}");
    }

    /// y = (1/3, −1) for the rows (3, 6) and (1, 2): 1/3 is no `f64`, and its low digits make the product zero to 32 digits.
    #[test]
    fn a_null_vector_that_is_no_f64() {
        let a = Csr::from_triplets(2, 2, &[0, 0, 1, 1], &[0, 1, 0, 1], &[3.0, 6.0, 1.0, 2.0]).unwrap();
        let third = 1.0 / 3.0;
        let low = f64::mul_add(-3.0, third, 1.0) / 3.0;
        let rounded = normal_residual(a.view(), &[third, -1.0], &[]);
        assert!(rounded.in_roundings <= 1.0 && rounded.in_roundings > 1e-3, "{rounded:?}");
        let whole = normal_residual(a.view(), &[third, -1.0], &[low, 0.0]);
        assert!(whole.in_roundings < 1e-14 && !whole.is_zero, "{whole:?}");
        assert!(normal_residual(a.view(), &[1.0, -3.0], &[]).is_zero);
        let (value, bound) = dot(&[3.0, 1.0], &[third, -1.0], &[low, 0.0]);
        assert!(value.abs() <= bound && bound < 1e-29, "{value:e} {bound:e}");
    }

    #[test]
    fn scales_of_columns_do_not_matter() {
        // diag(1, 10⁻⁴⁰) is regular.
        let a = Csr::from_entries(2, 2, [(0, 0, 1.0), (1, 1, 1e-40)]).unwrap();
        let found = normal_residual(a.view(), &[0.0, 1.0], &[]);
        assert!(found.in_roundings > 1e14 && !found.is_zero);
    }

    #[test]
    fn expansions_do_not_round() {
        let mut sum = Expansion::default();
        [1e300, 1.0, -1e300, 1e-300, -1.0].into_iter().for_each(|term| sum.add(term));
        assert!(!sum.is_zero());
        sum.add(-1e-300);
        assert!(sum.is_zero());
    }
}
