//! Residuals without rounding errors, to judge answers by: independent of the library's own.

use krylith::Csr;

/// A sum of floating-point numbers as a floating-point expansion: no rounding error is lost (Shewchuk 1997,
/// doi:10.1007/PL00009321).
#[derive(Default)]
struct Exact(Vec<f64>);

impl Exact {
    fn add(&mut self, term: f64) {
        let mut carry = term;
        let mut parts = Vec::with_capacity(self.0.len() + 1);
        for &part in &self.0 {
            let sum = carry + part;
            let of_part = sum - carry;
            let error = (carry - (sum - of_part)) + (part - of_part);
            if error != 0.0 {
                parts.push(error);
            }
            carry = sum;
        }
        parts.push(carry);
        self.0 = parts;
    }

    fn add_product(&mut self, a: f64, b: f64) {
        let product = a * b;
        self.add(product);
        self.add(a.mul_add(b, -product));
    }

    fn value(&self) -> f64 {
        self.0.iter().sum()
    }
}

/// ‖v‖₂ without overflow.
pub fn norm(v: &[f64]) -> f64 {
    let largest = v.iter().fold(0.0, |m: f64, v| if v.is_nan() { f64::NAN } else { m.max(v.abs()) });
    if largest == 0.0 || !largest.is_finite() {
        return largest;
    }
    largest * v.iter().map(|v| (v / largest).powi(2)).sum::<f64>().sqrt()
}

/// b − A x, each entry rounded once.
pub fn residual(a: &Csr<f64>, x: &[f64], b: &[f64]) -> Vec<f64> {
    (0..a.nrows())
        .map(|i| {
            let mut sum = Exact::default();
            sum.add(b[i]);
            let (columns, values) = a.row(i);
            for (&j, &v) in columns.iter().zip(values) {
                sum.add_product(-v, x[j as usize]);
            }
            sum.value()
        })
        .collect()
}

/// ‖b − A x‖₂ / ‖b‖₂.
pub fn relative_residual(a: &Csr<f64>, x: &[f64], b: &[f64]) -> f64 {
    norm(&residual(a, x, b)) / norm(b)
}

/// Numbers that look random and are the same everywhere (SplitMix64).
pub struct Random(pub u64);

impl Random {
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// 0 to n − 1.
    pub fn below(&mut self, n: usize) -> usize {
        (self.bits() % n as u64) as usize
    }

    /// From −1 to 1.
    pub fn number(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
}
