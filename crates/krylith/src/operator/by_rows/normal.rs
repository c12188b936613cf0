//! Aᵀy in double-double, for vectors that may be orthogonal to the range of A.
//!
//! y is given as y + low, two numbers per entry, so that a null vector whose entries are no `f64` can be written down to about 32 digits. Column j with k
//! entries is a sum of k products, or 2 k with `low`. Let u = 2⁻⁵³ and s = Σ |aᵢⱼ yᵢ|. Products and sums are taken with their rounding
//! errors, which are exact in `f64`, and the errors are summed beside (Dot2 of Ogita, Rump & Oishi 2005, doi:10.1137/030601818): the computed sum ŝ
//! has |ŝ − aⱼᵀy| ≤ u |aⱼᵀy| + γ² s with γ = (k + 4) u. Two questions are answered:
//!
//! * Is Aᵀy zero up to the rounding of `f64`, as it is for a null vector that was rounded to `f64`? ‖D⁻¹ŝ‖₂ ≤ ‖D⁻¹γ s‖₂, D the largest entries of the columns, so
//!   that their scales do not matter.
//!
//! A and y are multiplied by powers of two that bring their largest entries to 1 or nearly so. A product whose rounding error is then no `f64` is off by less than 2⁻¹⁰⁷⁴;
//! [`UNDERFLOW`] per product is added to the bound of a sum, and the sum is taken to be as large as it may be.
//! * Is Aᵀy zero? Where |ŝ| ≤ γ² s, the products of a column are summed once more without any rounding, as expansions (Shewchuk 1997, doi:10.1007/PL00009321).
#![allow(unsafe_code)]

use super::residual::{ROUNDOFF, larger, two_product, two_sum};
use crate::matrix::CsrRef;
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

    /// The largest |aⱼᵀy| that underflow may have hidden.
    fn most(&self) -> f64 {
        self.value().abs() + self.terms * UNDERFLOW
    }

    /// γ
    fn gamma(&self) -> f64 {
        1.01 * (self.terms + 4.0) * ROUNDOFF
    }
}

/// More than a product loses to underflow.
const UNDERFLOW: f64 = f64::from_bits(4);

/// Columns whose largest entry is less than this part of the largest of A may lose digits to underflow.
const LEAST_COLUMN: f64 = f64::from_bits((1023 - 500) << 52);

/// The power of two that brings the largest of these numbers to 1 ≤ |v| < 2, as nearly as a power of two in range does.
fn unit_scale(values: &[f64]) -> f64 {
    let largest = values.iter().fold(0.0, |largest, v| larger(largest, v.abs()));
    let exponent = (largest.to_bits() >> 52) as i32 - 1023;
    if largest > 0.0 && largest.is_finite() { 2f64.powi((-exponent).clamp(-1022, 1022)) } else { 1.0 }
}

/// y and low multiplied by the scale of y, and the scale.
fn scaled(y: &[f64], low: &[f64]) -> (Vec<f64>, Vec<f64>, f64) {
    let scale = unit_scale(y);
    let times = |v: &[f64]| v.iter().map(|v| scale * v).collect();
    (times(y), times(low), scale)
}

/// (s A)ᵀ(y + low) by columns, s = `scale`; `low` is empty where it is zero. Entry after entry on one thread: only for solves that failed, and for null spaces.
fn columns(a: CsrRef<'_, f64>, scale: f64, y: &[f64], low: &[f64]) -> Vec<Column> {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "fma")]
        fn with_fma(a: CsrRef<'_, f64>, scale: f64, y: &[f64], low: &[f64]) -> Vec<Column> {
            columns_compensated(a, scale, y, low)
        }
        if is_x86_feature_detected!("fma") {
            // SAFETY: the processor has what the function was compiled for.
            return unsafe { with_fma(a, scale, y, low) };
        }
    }
    columns_compensated(a, scale, y, low)
}

#[inline(always)]
fn columns_compensated(a: CsrRef<'_, f64>, scale: f64, y: &[f64], low: &[f64]) -> Vec<Column> {
    let mut columns = vec![Column::default(); a.ncols()];
    for (i, &y) in y.iter().enumerate() {
        let (indices, values) = a.row(i);
        let low = low.get(i).copied().filter(|&low| low != 0.0);
        for (&j, &v) in indices.iter().zip(values) {
            let (column, scaled) = (&mut columns[j as usize], scale * v);
            if v != 0.0 && y != 0.0 {
                column.add(scaled, y);
            }
            if v != 0.0 {
                low.iter().for_each(|&low| column.add(scaled, low));
            }
            column.square += scaled * scaled;
            column.largest = larger(column.largest, scaled.abs());
        }
    }
    columns
}

/// Writes Aᵀ(y + low), each entry rounded once.
pub(crate) fn transposed_product(a: CsrRef<'_, f64>, y: &[f64], low: &[f64], product: &mut [f64]) {
    let columns = columns(a, 1.0, y, low);
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
    let (y, low, y_scale) = scaled(y, low);
    let scale = unit_scale(a.values());
    let columns = columns(a, scale, &y, &low);
    let terms = || columns.iter().filter(|column| column.terms > 0.0);
    if terms().next().is_none() {
        return NormalResidual { is_zero: true, ..NormalResidual::default() };
    }
    let norm = |of: &dyn Fn(&Column) -> f64| terms().map(|column| of(column).powi(2)).sum::<f64>().sqrt();
    // A square that is out of range says nothing.
    let cosine = |c: &Column| match (f64::MIN_POSITIVE..=f64::MAX).contains(&c.square) {
        true => (c.most() + c.gamma() * c.size) / c.square.sqrt(),
        false => f64::INFINITY,
    };
    // Columns divided by their largest entries, so that none of them hides another; one that has lost digits to underflow says nothing.
    let relative = |c: &Column| if c.largest < LEAST_COLUMN { f64::INFINITY } else { c.most() / c.largest };
    let rounding = |c: &Column| if c.largest < LEAST_COLUMN { 0.0 } else { c.gamma() * c.size / c.largest };
    let is_nearly_zero = |c: &Column| c.value().abs() <= c.gamma() * c.gamma() * c.size + c.terms * UNDERFLOW;
    NormalResidual {
        ratio: norm(&|c| c.most()) / norm(&|c| c.size),
        in_roundings: norm(&relative) / norm(&rounding),
        is_zero: terms().all(is_nearly_zero) && is_zero(a, scale, &y, &low),
        cosines: norm(&cosine) / y_scale,
    }
}

/// Whether (s A)ᵀ(y + low) = 0 exactly. `false` also where a product is so small that its rounding error is no `f64`.
fn is_zero(a: CsrRef<'_, f64>, scale: f64, y: &[f64], low: &[f64]) -> bool {
    /// The rounding errors of larger products are numbers.
    const LEAST: f64 = f64::from_bits((1023 - 960) << 52);
    let columns = a.transpose();
    (0..columns.nrows()).all(|j| {
        let (rows, values) = columns.row(j);
        let low = |i: usize| low.get(i).copied().unwrap_or(0.0);
        let terms = rows.iter().zip(values).flat_map(|(&i, &v)| [(v, y[i as usize]), (v, low(i as usize))]);
        let mut sum = Expansion::default();
        for (v, y) in terms.filter(|&(v, y)| v != 0.0 && y != 0.0) {
            let (product, error) = two_product(scale * v, y);
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

    /// The columns (2, 1) and (1, 3) are independent, whatever the power of two in front of A and y.
    #[test]
    fn underflow_is_no_zero() {
        // A y that is subnormal among them.
        for (of_a, of_y) in [(-900, -190), (-900, -1000), (900, 600), (-1020, 0), (0, -1070)] {
            let v = 2f64.powi(of_a);
            let entries = [(0, 0, 2.0 * v), (0, 1, v), (1, 0, v), (1, 1, 3.0 * v)];
            let a = Csr::from_entries(2, 2, entries).unwrap();
            let found =
                normal_residual(a.view(), &[2f64.powi(of_y / 2) * 2f64.powi(of_y - of_y / 2), 0.0], &[]);
            assert!(found.in_roundings > 1e14 && !found.is_zero && found.ratio == 1.0, "{found:?}");
        }
        // Of two entries 2⁻¹¹⁰⁰ apart the smaller may be lost, and is then no reason to take the column for zero.
        let a = Csr::from_entries(2, 2, [(0, 0, 2f64.powi(500)), (1, 1, 2f64.powi(-600))]).unwrap();
        let found = normal_residual(a.view(), &[0.0, 1.0], &[]);
        assert!(found.in_roundings > 1.0 && !found.is_zero, "{found:?}");
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
