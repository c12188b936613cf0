//! What parts of a solve will cost, predicted from counts.
//!
//! Costs are nanoseconds of one thread of a machine whose figures are kept here, not of the machine that runs: so a plan is the same
//! everywhere, on any number of threads, and at any time. Only ratios of such costs decide anything, and they are trusted to
//! within a factor of two.

use crate::choice::Method;
use crate::matrix::Csr;
use crate::precond::direct::Cost;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Nanoseconds on one thread.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Machine {
    /// Its name, for plans.
    pub name: Cow<'static, str>,
    /// An entry of A in a product.
    pub product: f64,
    /// An entry of a factor in its two sweeps.
    pub sweep: f64,
    /// A number of a vector that is read or written.
    pub vector: f64,
    /// An entry of A in the analysis of a complete factor.
    pub analysis: f64,
    /// A row in the same.
    pub analysis_row: f64,
    /// An addition or multiplication on dense fronts.
    pub flop: f64,
    /// A number of a complete factor that is made.
    pub factor: f64,
}

/// A server processor with AVX-512, 2 cores, 2026: from `krylith solve --precond lu`, `cholesky`, `ilu0` and `ic0` on matrices of 10⁴ to
/// 10⁶ entries.
pub const REFERENCE: Machine = Machine {
    name: Cow::Borrowed("reference"),
    product: 1.2,
    sweep: 2.0,
    vector: 0.8,
    analysis: 90.0,
    analysis_row: 500.0,
    flop: 0.15,
    factor: 4.0,
};

impl Machine {
    /// An iteration of a method with a factor of this many entries, by rows as given.
    pub fn iteration(&self, method: Method, a: &Csr<f64>, factor_entries: usize) -> f64 {
        let (n, nnz) = (a.nrows() as f64, a.nnz() as f64);
        let both = self.product * nnz + self.sweep * factor_entries as f64;
        match method {
            Method::BiCgStab => 2.0 * both + 20.0 * self.vector * n,
            Method::Gmres(restart) | Method::Fgmres(restart) => {
                // Half of the basis on average, read twice.
                both + (4.0 + restart as f64) * self.vector * n
            }
            _ => both + 12.0 * self.vector * n,
        }
    }

    /// A complete factor, its analysis included, and a few solves with it.
    pub fn direct(&self, a: &Csr<f64>, cost: &Cost) -> f64 {
        self.direct_analysis(a) + self.flop * cost.flops + self.factor * cost.entries as f64
    }

    /// The analysis of a complete factor.
    fn direct_analysis(&self, a: &Csr<f64>) -> f64 {
        self.analysis * a.nnz() as f64 + self.analysis_row * a.nrows() as f64
    }

    /// Less than a complete factor costs, known without an analysis: that of a grid in two dimensions, ordered by nested dissection
    /// (George 1973, doi:10.1137/0710032), has the least fill of what large matrices usually come from.
    pub fn direct_at_least(&self, a: &Csr<f64>) -> f64 {
        let n = a.nrows() as f64;
        let (entries, flops) = (4.0 * n * n.max(2.0).log2(), 10.0 * n * n.sqrt());
        match a.nrows() {
            // Small ones may be trees, or nearly diagonal.
            0..100_000 => self.direct_analysis(a),
            _ => self.direct_analysis(a) + self.flop * flops + self.factor * entries,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gallery::Problem;
    use crate::precond::direct::{Direct, DirectKind};

    #[test]
    fn a_lower_bound_is_one() {
        for name in ["poisson2d:350", "poisson3d:20", "fem2d:60", "circuit:60"] {
            let a = name.parse::<Problem>().unwrap().generate().unwrap();
            let cost = Direct { kind: DirectKind::Lu, max_bytes: None }.cost(&a).unwrap();
            assert!(REFERENCE.direct_at_least(&a) <= REFERENCE.direct(&a, &cost), "{name}: {cost:?}");
        }
    }

    #[test]
    fn iterations_cost_more_with_more_to_do() {
        let a = "poisson2d:50".parse::<Problem>().unwrap().generate().unwrap();
        let cost = |method| REFERENCE.iteration(method, &a, a.nnz());
        assert!(cost(Method::Cg) < cost(Method::Gmres(50)) && cost(Method::Cg) < cost(Method::BiCgStab));
        assert!(REFERENCE.iteration(Method::Cg, &a, 2 * a.nnz()) > cost(Method::Cg));
    }
}
