//! The judge of `least_squares`, `singular` and of the vector that proves them.
//!
//! A vector y is judged by Aᵀy, each entry summed exactly, and by yᵀb. x is the least squares if r = b − A x is no farther from the least residual than the tolerance. With an
//! exact y and up to eight rows that is known exactly (`rational.rs`). Above, and where Aᵀy is zero up to rounding only, it is judged by the part of r that is not along y.

use super::exact::{ExactSum, Truth};
use super::rational::{least_residual, of_wide, residual_square};
use super::wide::Wide;
use krylith::report::{NullLevel, NullVector};
use krylith::{Csr, Report};

/// What the least squares may miss besides the tolerance: the rounding of a projection of b.
const PROJECTION: f64 = 16.0 * f64::EPSILON;

/// A system, an answer and what was asked for.
pub struct Answer<'a> {
    pub a: &'a Csr<f64>,
    pub b: &'a [f64],
    pub x: &'a [f64],
    pub truth: &'a Truth,
    pub rtol: f64,
    pub atol: f64,
}

impl Answer<'_> {
    /// What is wrong with the vector in the report, if anything.
    pub fn wrong_null_vector(&self, null: &NullVector) -> Option<String> {
        let transposed = self.a.transpose();
        let (mut squares, mut bounds) = (Wide::ZERO, Wide::ZERO);
        let zeros = vec![0.0; null.y.len()];
        let low = if null.y_low.is_empty() { &zeros } else { &null.y_low };
        for j in 0..self.a.ncols() {
            let (rows, values) = transposed.row(j);
            let (mut sum, mut size) = (ExactSum::new(), Wide::ZERO);
            for (&i, &v) in rows.iter().zip(values) {
                let i = i as usize;
                sum.add_product(v, null.y[i]);
                sum.add_product(v, low[i]);
                size = size.add(Wide::from_f64(v).mul(Wide::from_f64(null.y[i])));
            }
            let product = sum.size().1;
            let gamma = Wide::from_f64((2 * rows.len() + 6) as f64 * f64::EPSILON);
            // Products below the least number are lost.
            let underflow = Wide::power_of_two(-1060);
            if null.level == NullLevel::Exact && !product.is_zero() {
                return Some(format!("exact: column {j} of Aᵀy is {product} of {size}"));
            }
            // Columns are divided by the power of two of their largest entries.
            let largest = values.iter().map(|&v| Wide::from_f64(v)).max().unwrap_or(Wide::ZERO);
            if !largest.is_zero() {
                let scale = Wide::power_of_two(-largest.into_parts().1);
                let (product, bound) = (product.mul(scale), gamma.mul(size).add(underflow).mul(scale));
                (squares, bounds) = (squares.add(product.mul(product)), bounds.add(bound.mul(bound)));
            }
        }
        // Such a power is up to half of the entry.
        if null.level == NullLevel::Rounding && squares > bounds.mul(Wide::from_f64(4.0)) {
            return Some(format!("rounding: ‖D⁻¹Aᵀy‖² = {squares}, rounding leaves {bounds}"));
        }
        let norm = norm(&null.y);
        let mut along = ExactSum::new();
        for ((&y, &low), &b) in null.y.iter().zip(low).zip(self.b) {
            along.add_product(y, b);
            along.add_product(low, b);
        }
        let along = along.size().1;
        if along <= self.truth.bound(self.rtol, self.atol).mul(norm) {
            return Some(format!("|yᵀb| = {along} is within the tolerance, ‖y‖ = {norm}"));
        }
        let claimed = Wide::from_f64(null.least_residual).mul(norm).mul(self.truth.rhs);
        let close = claimed.distance(along) <= along.mul(Wide::from_f64(1e-6));
        (!close).then(|| format!("least residual {:e}: |yᵀb| = {along}", null.least_residual))
    }

    /// Why x is not the least squares, or the tolerance can be met, if so.
    pub fn wrong_least_squares(&self, report: &Report) -> Option<String> {
        let allowed = self.truth.bound(self.rtol, self.atol);
        let allowed = allowed.add(self.truth.rhs.mul(Wide::from_f64(PROJECTION)));
        let Some(null) = &report.certificate.null_vector else { return Some("without a proof".into()) };
        let least = least_residual(self.a, self.b).filter(|_| null.level == NullLevel::Exact);
        if let Some(least) = least {
            let above = residual_square(self.a, self.x, self.b) - &least.square;
            let square = of_wide(allowed.mul(allowed));
            return (above > square).then(|| {
                format!(
                    "‖b − A x‖ = {}, and the exact least is less by more than {allowed}",
                    self.truth.residual
                )
            });
        }
        let gap = self.gap(&null.y)?;
        (gap > allowed).then(|| format!("{gap} of the residual is not along y, {allowed} may be"))
    }

    /// Why it is not proven that no x meets the tolerance, if so.
    pub fn wrong_singular(&self, report: &Report) -> Option<String> {
        let exact =
            report.certificate.null_vector.as_ref().is_some_and(|null| null.level == NullLevel::Exact);
        if !exact {
            return Some("without a proof".into());
        }
        let least = least_residual(self.a, self.b)?;
        let bound = of_wide(self.truth.bound(self.rtol, self.atol));
        let reachable = least.square <= &bound * &bound;
        reachable.then(|| {
            format!(
                "rank {} of {}: the exact least residual is within the tolerance",
                least.rank,
                self.a.ncols()
            )
        })
    }

    /// ‖r − y (yᵀr) / (yᵀy)‖; none where numbers are out of the range of this arithmetic.
    fn gap(&self, y: &[f64]) -> Option<Wide> {
        let scale = self.truth.residual;
        let (_, exponent) = scale.into_parts();
        let down = Wide::power_of_two(-exponent - 127);
        let residual: Vec<f64> = (0..self.a.nrows())
            .map(|i| {
                let (columns, values) = self.a.row(i);
                let mut sum = ExactSum::new();
                sum.add(self.b[i]);
                columns.iter().zip(values).for_each(|(&j, &v)| sum.add_product(-v, self.x[j as usize]));
                let (negative, size) = sum.size();
                let size = size.mul(down).to_f64();
                if negative { -size } else { size }
            })
            .collect();
        let dot = |y: &[f64], z: &[f64]| y.iter().zip(z).map(|(y, z)| y * z).sum::<f64>();
        let mut rest = residual;
        for _ in 0..2 {
            let factor = dot(y, &rest) / dot(y, y);
            rest.iter_mut().zip(y).for_each(|(rest, y)| *rest -= factor * y);
        }
        let size = dot(&rest, &rest).sqrt();
        size.is_finite().then(|| Wide::from_f64(size).mul(Wide::power_of_two(exponent + 127)))
    }
}

fn norm(y: &[f64]) -> Wide {
    let square = |sum: Wide, y: &f64| sum.add(Wide::from_f64(*y).mul(Wide::from_f64(*y)));
    y.iter().fold(Wide::ZERO, square).sqrt()
}

#[cfg(test)]
mod tests {
    use super::super::exact::judge;
    use super::*;
    use krylith::{Outcome, Solver};

    /// (1 −1; −1 1) with b = (2, 0): the least residual is √2, with x = (½, −½).
    #[test]
    fn a_pair() {
        let a = Csr::from_entries(2, 2, [(0, 0, 1.0), (0, 1, -1.0), (1, 0, -1.0), (1, 1, 1.0)]).unwrap();
        let b = [2.0, 0.0];
        let solution = Solver::new().solve(&a, &b).unwrap();
        assert_eq!(solution.report.outcome, Outcome::LeastSquares);
        let null = solution.report.certificate.null_vector.clone().unwrap();
        let with = |x: &[f64], test: &dyn Fn(&Answer<'_>) -> Option<String>| {
            let truth = judge(&a, x, &b).unwrap();
            test(&Answer { a: &a, b: &b, x, truth: &truth, rtol: 1e-8, atol: 0.0 }).is_some()
        };
        assert!(!with(&solution.x, &|answer| answer.wrong_least_squares(&solution.report)));
        assert!(with(&[0.5, -0.4], &|answer| answer.wrong_least_squares(&solution.report)));
        assert!(!with(&solution.x, &|answer| answer.wrong_null_vector(&null)));
        assert!(!with(&solution.x, &|answer| answer.wrong_singular(&solution.report)));
        let mut other = null.clone();
        other.y[0] *= 1.0 + 1e-12;
        assert!(with(&solution.x, &|answer| answer.wrong_null_vector(&other)));
        let mut other = null;
        other.y = vec![1.0, -1.0];
        assert!(with(&solution.x, &|answer| answer.wrong_null_vector(&other)));
    }
}
