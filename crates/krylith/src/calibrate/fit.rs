//! Least squares of relative errors with unknowns that are not negative: coordinate descent on the normal equations (Franc, Hlaváč & Navara 2005,
//! doi:10.1007/11556121_50). The problems here have a dozen unknowns.

const SWEEPS: usize = 20_000;

/// x ≥ 0 with the least Σ (terms · x − sum)². Unknowns that no equation has are 0.
fn fit(equations: &[(Vec<f64>, f64)]) -> Vec<f64> {
    let n = equations.first().map_or(0, |(terms, _)| terms.len());
    let product = |i: usize, j: usize| equations.iter().map(|(terms, _)| terms[i] * terms[j]).sum::<f64>();
    let h: Vec<Vec<f64>> = (0..n).map(|i| (0..n).map(|j| product(i, j)).collect()).collect();
    let f: Vec<f64> =
        (0..n).map(|i| equations.iter().map(|(terms, sum)| terms[i] * sum).sum::<f64>()).collect();
    let mut x = vec![0.0; n];
    for _ in 0..SWEEPS {
        for i in 0..n {
            if h[i][i] > 0.0 {
                let gradient = (0..n).map(|j| h[i][j] * x[j]).sum::<f64>() - f[i];
                x[i] = f64::max(0.0, x[i] - gradient / h[i][i]);
            }
        }
    }
    x
}

/// Terms and what they add up to.
#[derive(Default)]
pub(super) struct Equations(Vec<(Vec<f64>, f64)>);

impl Equations {
    /// Divided by the sum, so that errors are relative.
    pub(super) fn add(&mut self, terms: Vec<f64>, sum: f64) {
        self.0.push((terms.into_iter().map(|term| term / sum).collect(), 1.0));
    }

    /// The terms are about this, which decides only what nothing else does.
    pub(super) fn add_weakly(&mut self, terms: Vec<f64>, sum: f64) {
        self.0.push((terms.into_iter().map(|term| term * WEAK).collect(), sum * WEAK));
    }

    pub(super) fn solve(&self) -> Vec<f64> {
        fit(&self.0)
    }
}

/// The weight of what is believed, beside 1 of what is measured: relative errors are about a tenth.
const WEAK: f64 = 0.5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_systems_and_bounds() {
        // 2 x + y = 5, x + 3 y = 10.
        let x = fit(&[(vec![2.0, 1.0], 5.0), (vec![1.0, 3.0], 10.0)]);
        assert!((x[0] - 1.0).abs() < 1e-9 && (x[1] - 3.0).abs() < 1e-9, "{x:?}");
        // x = -1 is not allowed; then y is the mean.
        let x = fit(&[(vec![1.0, 0.0], -1.0), (vec![0.0, 1.0], 2.0), (vec![0.0, 1.0], 4.0)]);
        assert!(x[0] == 0.0 && (x[1] - 3.0).abs() < 1e-9, "{x:?}");
        assert!(fit(&[]).is_empty());
    }
}
