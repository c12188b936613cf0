//! What parts of a solve will cost, predicted from counts.
//!
//! Costs are nanoseconds of one thread of a machine whose figures are kept here, not of the machine that runs: so a plan is the same
//! everywhere, on any number of threads, and at any time. Only ratios of such costs decide anything, and they are trusted to
//! within a factor of two.

use crate::choice::{Method, Precision};
use crate::matrix::Csr;
use crate::precond::direct::{Cost, DirectKind};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt::{Display, Formatter};

/// A way to store A and its factor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StorageKind {
    /// Without indices on a structured grid.
    Grid,
    /// In dense blocks.
    Blocks,
    /// By wavefront in slices of eight rows.
    Slices,
    /// By rows as given.
    Rows,
}

impl Display for StorageKind {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            StorageKind::Grid => "on the grid",
            StorageKind::Blocks => "in blocks",
            StorageKind::Slices => "in slices",
            StorageKind::Rows => "by rows",
        })
    }
}

/// Nanoseconds per entry on one thread, in one storage.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Rates {
    /// Of A in a product.
    pub product: f64,
    /// Of a factor in a sweep; an entry of a symmetric factor is swept twice.
    pub sweep: f64,
    /// The same of a factor in `f32`.
    pub sweep_f32: f64,
    /// Of A when it is analyzed and copied into this storage.
    pub copy: f64,
    /// Of a factor when it is analyzed and made.
    pub set_up: f64,
}

/// The figures of a machine: nanoseconds on one thread.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Machine {
    /// Its name, for plans.
    pub name: Cow<'static, str>,
    /// On structured grids.
    pub grid: Rates,
    /// A product per entry on a grid with constant coefficients, of which one number per offset is stored.
    pub constant_product: f64,
    /// A sweep per entry of a factor with the off-diagonals of such a matrix.
    pub constant_sweep: f64,
    /// In dense blocks.
    pub blocks: Rates,
    /// In slices of eight rows.
    pub slices: Rates,
    /// By rows.
    pub rows: Rates,
    /// A number of a vector that is read or written.
    pub vector: f64,
    /// An entry of A in the analysis of a complete factor.
    pub analysis: f64,
    /// The same in the matching and scaling of one that is not Cholesky's.
    #[serde(default = "reference_matching")]
    pub matching: f64,
    /// A row in the same.
    pub analysis_row: f64,
    /// An addition or multiplication on dense fronts.
    pub flop: f64,
    /// A number of a complete factor that is made.
    pub factor: f64,
    /// An entry of A when facts are collected.
    #[serde(default = "reference_facts")]
    pub facts: f64,
    /// An entry of an incomplete factor off grids when it is made, for each entry of an average row: rows that are eliminated are that long.
    #[serde(default = "reference_eliminate")]
    pub eliminate: f64,
}

fn reference_matching() -> f64 {
    REFERENCE.matching
}

fn reference_facts() -> f64 {
    REFERENCE.facts
}

fn reference_eliminate() -> f64 {
    REFERENCE.eliminate
}

/// A server processor with AVX-512, as `krylith-bench calibrate` has measured it; blocks are in `f64` only. `analysis`, `matching`, `facts` and
/// `eliminate` were set by hand so that `krylith-bench predictions` comes out right.
pub const REFERENCE: Machine = Machine {
    name: Cow::Borrowed("reference"),
    grid: Rates { product: 0.8, sweep: 1.1, sweep_f32: 0.69, copy: 12.0, set_up: 6.2 },
    constant_product: 0.54,
    constant_sweep: 0.91,
    blocks: Rates { product: 0.45, sweep: 1.3, sweep_f32: 1.3, copy: 0.57, set_up: 22.0 },
    slices: Rates { product: 0.72, sweep: 1.7, sweep_f32: 1.2, copy: 23.0, set_up: 16.0 },
    rows: Rates { product: 1.4, sweep: 2.7, sweep_f32: 2.1, copy: 20.0, set_up: 13.0 },
    vector: 0.071,
    analysis: 100.0,
    matching: 130.0,
    analysis_row: 0.0,
    flop: 0.049,
    factor: 19.0,
    facts: 9.0,
    eliminate: 0.8,
};

/// What one iteration does.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Work {
    /// The method.
    pub method: Method,
    /// How A and its factor are stored.
    pub storage: StorageKind,
    /// In which numbers the factor is.
    pub precision: Precision,
    /// Rows of A.
    pub rows: usize,
    /// Entries of A.
    pub entries: usize,
    /// Entries of the factor that are swept: those of a symmetric factor twice.
    pub swept: f64,
    /// There is no product: it is part of the sweeps.
    pub without_product: bool,
    /// A has constant coefficients on a grid.
    pub constant: bool,
    /// So has the factor, off its diagonal.
    pub constant_factor: bool,
}

impl Machine {
    /// The figures of a storage.
    pub fn rates(&self, storage: StorageKind) -> &Rates {
        match storage {
            StorageKind::Grid => &self.grid,
            StorageKind::Blocks => &self.blocks,
            StorageKind::Slices => &self.slices,
            StorageKind::Rows => &self.rows,
        }
    }

    /// An iteration.
    pub fn iteration(&self, work: &Work) -> f64 {
        let (rates, n) = (self.rates(work.storage), work.rows as f64);
        let product = if work.constant { self.constant_product } else { rates.product };
        let product = if work.without_product { 0.0 } else { product * work.entries as f64 };
        let sweep = match work.precision {
            _ if work.constant_factor => self.constant_sweep,
            Precision::F64 => rates.sweep,
            _ => rates.sweep_f32,
        };
        let (products, vectors) = operations(work.method);
        products * (product + sweep * work.swept) + vectors * self.vector * n
    }

    /// A copy of A and a factor of `filled` entries, which fill has multiplied by `growth`: without a grid, fill is found by a
    /// search that takes longer the more of it there is, and elimination takes longer the longer rows are.
    pub fn set_up(&self, storage: StorageKind, a: (usize, usize), filled: f64, growth: f64) -> f64 {
        let (rates, (rows, entries)) = (self.rates(storage), a);
        let (search, eliminate) = match storage {
            StorageKind::Grid => (1.0, 0.0),
            StorageKind::Blocks => (growth, 0.0),
            StorageKind::Slices | StorageKind::Rows => (growth, self.eliminate * filled / rows.max(1) as f64),
        };
        rates.copy * entries as f64 + (rates.set_up * search + eliminate) * filled
    }

    /// A complete factor, its analysis included, and a few solves with it.
    pub fn direct(&self, a: &Csr<f64>, kind: DirectKind, cost: &Cost) -> f64 {
        self.direct_analysis(a, kind) + self.flop * cost.flops + self.factor * cost.entries as f64
    }

    /// The analysis of a complete factor.
    pub fn direct_analysis(&self, a: &Csr<f64>, kind: DirectKind) -> f64 {
        let matching = if kind == DirectKind::Cholesky { 0.0 } else { self.matching };
        (self.analysis + matching) * a.nnz() as f64 + self.analysis_row * a.nrows() as f64
    }

    /// Less than a complete factor costs, known without an analysis: that of a grid in two dimensions, ordered by nested dissection
    /// (George 1973, doi:10.1137/0710032), has the least fill of what large matrices usually come from.
    pub fn direct_at_least(&self, a: &Csr<f64>, kind: DirectKind) -> f64 {
        let n = a.nrows() as f64;
        let (entries, flops) = (4.0 * n * n.max(2.0).log2(), 10.0 * n * n.sqrt());
        match a.nrows() {
            // Small ones may be trees, or nearly diagonal.
            0..100_000 => self.direct_analysis(a, kind),
            _ => self.direct_analysis(a, kind) + self.flop * flops + self.factor * entries,
        }
    }
}

/// Products with A and solves with M in an iteration, and the vectors that are read or written besides.
pub fn operations(method: Method) -> (f64, f64) {
    match method {
        Method::BiCgStab => (2.0, 20.0),
        // Half of the basis on average, read twice.
        Method::Gmres(restart) | Method::Fgmres(restart) => (1.0, 4.0 + restart as f64),
        _ => (1.0, 12.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gallery::Problem;
    use crate::precond::direct::Direct;

    #[test]
    fn a_lower_bound_is_one() {
        for name in ["poisson2d:350", "poisson3d:20", "fem2d:60", "circuit:60"] {
            let a = name.parse::<Problem>().unwrap().generate().unwrap();
            let kind = DirectKind::Lu;
            let symbolic = Direct { kind, max_bytes: None }.symbolic(&a).unwrap();
            assert!(
                REFERENCE.direct_at_least(&a, kind) <= REFERENCE.direct(&a, kind, symbolic.cost()),
                "{name}: {:?}",
                symbolic.cost()
            );
        }
    }

    #[test]
    fn iterations_cost_more_with_more_to_do() {
        let cg = Work {
            method: Method::Cg,
            storage: StorageKind::Slices,
            precision: Precision::F64,
            rows: 1000,
            entries: 5000,
            swept: 6000.0,
            without_product: false,
            constant: false,
            constant_factor: false,
        };
        let cost = |work: Work| REFERENCE.iteration(&work);
        assert!(cost(cg) < cost(Work { method: Method::BiCgStab, ..cg }));
        assert!(cost(cg) < cost(Work { method: Method::Gmres(50), ..cg }));
        assert!(cost(cg) < cost(Work { swept: 12_000.0, ..cg }));
        assert!(cost(Work { without_product: true, ..cg }) < cost(cg));
        assert!(
            cost(Work { constant: true, constant_factor: true, ..cg })
                < cost(Work { storage: StorageKind::Grid, ..cg })
        );
        assert!(cost(Work { precision: Precision::Mixed, ..cg }) < cost(cg));
    }
}
