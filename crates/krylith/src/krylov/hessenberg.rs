//! The least-squares problem of GMRES: the y that minimises ‖β e₁ − H y‖, H upper Hessenberg, one column at a time.
//!
//! Givens rotations G = [c̄ s; −s c] with s real turn H into an upper triangular R, and β e₁ into g; the last entry of g is
//! the norm of the residual. The numbers are few and stay with the caller of the space.
//!
//! Reference: Saad & Schultz 1986, doi:10.1137/0907058.

use crate::scalar::{Real, Scalar};

/// Multiples of ε, relative to the column they come from, up to which numbers count as rounding errors.
const ROUNDING: f64 = 10.0;

pub(super) struct Hessenberg<T: Scalar> {
    /// R by columns; column j has j + 1 entries, from j (j + 1) / 2 on.
    r: Vec<T>,
    /// One rotation a column.
    c: Vec<T>,
    s: Vec<T::Real>,
    /// The rotated right-hand side, one entry more than columns.
    g: Vec<T>,
    y: Vec<T>,
    columns: usize,
    /// The norm of the largest column of H.
    largest: T::Real,
}

/// What a new column has brought.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Column<R> {
    /// The residual has this norm now.
    Residual(R),
    /// The entry below the diagonal is zero, the problem is solved exactly, and there can be no further column.
    Last,
    /// The same, but it depends to rounding on the columns before it and was not taken.
    Singular,
    /// It holds an infinite number or NaN and was not taken.
    NotFinite,
}

impl<T: Scalar> Hessenberg<T> {
    /// Room for m columns.
    pub(super) fn new(m: usize) -> Self {
        Hessenberg {
            r: vec![T::ZERO; m * (m + 1) / 2],
            c: vec![T::ZERO; m],
            s: vec![T::Real::ZERO; m],
            g: vec![T::ZERO; m + 1],
            y: vec![T::ZERO; m],
            columns: 0,
            largest: T::Real::ZERO,
        }
    }

    /// No columns, and the right-hand side β e₁.
    pub(super) fn start(&mut self, beta: T::Real) {
        self.columns = 0;
        self.largest = T::Real::ZERO;
        self.g[0] = T::from_real(beta);
    }

    /// Columns taken.
    pub(super) fn columns(&self) -> usize {
        self.columns
    }

    /// No room for another column.
    pub(super) fn is_full(&self) -> bool {
        self.columns == self.c.len()
    }

    /// Another column: `h` down to the diagonal, and the real entry below.
    pub(super) fn push(&mut self, h: &[T], below: T::Real) -> Column<T::Real> {
        let j = self.columns;
        debug_assert_eq!(h.len(), j + 1);
        let norm = h.iter().fold(below, |sum, h| hypot(sum, h.abs()));
        if !norm.is_finite() {
            return Column::NotFinite;
        }
        if norm > self.largest {
            self.largest = norm;
        }
        let rounding = T::Real::from_f64(ROUNDING) * T::Real::EPSILON;
        let tiny = rounding * norm;
        let column = &mut self.r[j * (j + 1) / 2..][..j + 1];
        column.copy_from_slice(h);
        // the rotations so far
        for i in 0..j {
            let (c, s) = (self.c[i], T::from_real(self.s[i]));
            (column[i], column[i + 1]) =
                (c.conj() * column[i] + s * column[i + 1], c * column[i + 1] - s * column[i]);
        }
        let last = below <= tiny;
        let below = if last { T::Real::ZERO } else { below };
        if last && column[j].abs() <= tiny {
            return Column::Singular;
        }
        // the rotation that makes the entry below vanish
        let diagonal = hypot(column[j].abs(), below);
        self.c[j] = column[j] / T::from_real(diagonal);
        self.s[j] = below / diagonal;
        column[j] = T::from_real(diagonal);
        (self.g[j], self.g[j + 1]) = (self.c[j].conj() * self.g[j], -T::from_real(self.s[j]) * self.g[j]);
        self.columns += 1;
        if !last {
            return Column::Residual(self.g[j + 1].abs());
        }
        // the step along this column is a multiple of R⁻¹ eⱼ and carries an error of ε ‖H‖ times its length
        self.y[..j].fill(T::ZERO);
        self.y[j] = T::ONE;
        self.substitute();
        let length = self.y[..=j].iter().fold(T::Real::ZERO, |sum, y| hypot(sum, y.abs()));
        if rounding * self.largest * length < T::Real::ONE {
            return Column::Last;
        }
        self.columns -= 1;
        Column::Singular
    }

    /// R y = g, for the columns taken.
    pub(super) fn solve(&mut self) -> &[T] {
        self.y[..self.columns].copy_from_slice(&self.g[..self.columns]);
        self.substitute();
        &self.y[..self.columns]
    }

    /// y = R⁻¹ y, for the columns taken.
    fn substitute(&mut self) {
        for i in (0..self.columns).rev() {
            let mut sum = self.y[i];
            for j in i + 1..self.columns {
                sum -= self.r[j * (j + 1) / 2 + i] * self.y[j];
            }
            self.y[i] = sum / self.r[i * (i + 1) / 2 + i];
        }
    }
}

/// √(a² + b²) for a, b ≥ 0, without the squares where they would overflow.
pub(super) fn hypot<R: Real>(a: R, b: R) -> R {
    let (large, small) = if a > b { (a, b) } else { (b, a) };
    if large == R::ZERO {
        return a + b; // 0, or the NaN beside it
    }
    let ratio = small / large;
    large * (R::ONE + ratio * ratio).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_columns_by_hand() {
        // β = 5, H = [3 1; 4 2; 0 5]. The first rotation is (3/5, 4/5): g = (3, −4). It turns the second column into
        // (11/5, 2/5, 5), whose residual is 4·5/√(0.16 + 25).
        let mut h = Hessenberg::<f64>::new(2);
        h.start(5.0);
        assert_eq!(h.push(&[3.0], 4.0), Column::Residual(4.0));
        assert_eq!(h.solve(), [0.6]);
        let Column::Residual(norm) = h.push(&[1.0, 2.0], 5.0) else { panic!("a residual") };
        assert!((norm - 20.0 / 25.16_f64.sqrt()).abs() < 1e-14);
        assert!(h.is_full());
        let y = h.solve().to_vec();
        // the normal equations: [25 11; 11 30] y = (15, 5)
        assert!((25.0 * y[0] + 11.0 * y[1] - 15.0).abs() < 1e-13);
        assert!((11.0 * y[0] + 30.0 * y[1] - 5.0).abs() < 1e-13);
    }

    #[test]
    fn the_last_column_and_the_singular_one() {
        let mut h = Hessenberg::<f64>::new(3);
        h.start(2.0);
        assert_eq!(h.push(&[0.0], 1.0), Column::Residual(2.0));
        assert_eq!(h.push(&[-1.0, 0.0], 1e-17), Column::Last);
        assert_eq!(h.solve(), [0.0, -2.0]);

        h.start(2.0);
        assert!(
            matches!(h.push(&[0.5], 0.5), Column::Residual(norm) if (norm - 2.0_f64.sqrt()).abs() < 1e-15)
        );
        assert_eq!(h.push(&[0.5, 0.5], 1e-17), Column::Singular);
        assert_eq!(h.push(&[0.5, f64::NAN], 1.0), Column::NotFinite);
        assert_eq!(h.columns(), 1);
        assert_eq!(h.solve().len(), 1);
    }
}
