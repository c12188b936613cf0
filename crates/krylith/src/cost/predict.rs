//! What parts of a solve will cost, predicted from counts.
//!
//! Costs are nanoseconds of a machine whose figures are kept here, with as many threads as it was measured with (one, for the [`REFERENCE`]), not of the
//! machine that runs: so a plan is the same everywhere, on any number of threads, and at any time. Only ratios of such costs decide anything, and they
//! are trusted to within a factor of two.
//!
//! Threads shorten products and vectors by as much as the memory allows. Sweeps also wait at the end of every wavefront, so what they cost has a part that
//! does not depend on the size of wavefronts; on many threads and on devices it is the larger one, and approximate inverses are worth their iterations.

use super::machine::Machine;
use crate::facts::GridFacts;
use crate::matrix::Csr;
use crate::options::{Method, Precision, StorageKind};
use crate::precond::direct::{Cost, DirectKind};

/// What a preconditioner is prepared for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expected {
    /// Right-hand sides.
    pub solves: usize,
    /// Changes of the matrix's values.
    pub refactors: usize,
}

impl Default for Expected {
    /// One solve.
    fn default() -> Self {
        Expected { solves: 1, refactors: 0 }
    }
}

impl Expected {
    /// What an analysis, a factor and a solve cost in all, each being repeated as often as is expected.
    pub fn cost(&self, analysis: f64, factor: f64, solve: f64) -> f64 {
        analysis + (1 + self.refactors) as f64 * factor + self.solves.max(1) as f64 * solve
    }
}

/// How a factor is applied.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Applied {
    /// By two sweeps, each of so many wavefronts.
    Sweeps {
        /// Rows of one do not need each other.
        wavefronts: f64,
    },
    /// By products, as an approximate inverse.
    Products,
}

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
    /// Entries of the factor that are swept or multiplied by: those of a symmetric factor twice.
    pub swept: f64,
    /// How the factor is applied.
    pub applied: Applied,
    /// There is no product: it is part of the sweeps.
    pub without_product: bool,
    /// A has constant coefficients on a grid.
    pub constant: bool,
    /// So has the factor, off its diagonal.
    pub constant_factor: bool,
}

impl Machine {
    /// A product per entry, where coefficients are constant or not.
    fn product(&self, storage: StorageKind, constant: bool) -> f64 {
        match (constant, storage) {
            (false, _) => self.rates(storage).product,
            (true, StorageKind::Grid) => self.constant_product,
            (true, _) => self.repeated,
        }
    }

    /// An iteration.
    pub fn iteration(&self, work: &Work) -> f64 {
        let (rates, n) = (self.rates(work.storage), work.rows as f64);
        let product = match work.without_product {
            true => 0.0,
            false => self.product(work.storage, work.constant) * work.entries as f64,
        };
        let narrow = work.precision != Precision::F64;
        let applied = match work.applied {
            Applied::Sweeps { wavefronts } => {
                let sweep = match narrow {
                    _ if work.constant_factor => self.constant_sweep,
                    false => rates.sweep,
                    true => rates.sweep_f32,
                };
                sweep * work.swept + 2.0 * rates.wavefront * wavefronts
            }
            Applied::Products => {
                // In f32 entries are fewer bytes, by as much as in sweeps.
                let less = if narrow && rates.sweep > 0.0 { rates.sweep_f32 / rates.sweep } else { 1.0 };
                let less = if work.constant_factor { 1.0 } else { less };
                work.swept * less * self.product(work.storage, work.constant_factor)
            }
        };
        let Operations { products, vectors, launches, reductions } = operations(work.method);
        let waits = (launches + products * LAUNCHES_OF_M) * self.launch + reductions * self.reduction;
        products * (product + applied) + vectors * self.vector * n + waits
    }

    /// Whether sweeps wait, so that wavefronts are to be counted.
    pub fn waits(&self) -> bool {
        [&self.grid, &self.blocks, &self.slices, &self.rows].iter().any(|rates| rates.wavefront > 0.0)
    }

    /// Copies of A and an approximate inverse on a pattern of so many entries: they are found, gathered and solved for, which takes longer the more of
    /// them a row has; a system of 32 takes twice as long per entry as one of few. A pattern that grows is a search in rows of A besides.
    pub fn inverse(&self, storage: StorageKind, a: (usize, usize), pattern: f64, grows: bool) -> f64 {
        let (rows, entries) = (a.0.max(1) as f64, a.1 as f64);
        let search = if grows { self.grow * entries / rows } else { 0.0 };
        self.rates(storage).copy * entries + (self.inverse * (1.0 + pattern / rows / 32.0) + search) * pattern
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

    /// A complete factor, its analysis included, and a solve with it.
    pub fn direct(&self, a: &Csr<f64>, kind: DirectKind, cost: &Cost) -> f64 {
        self.direct_for(a, kind, cost, Expected::default())
    }

    /// The same for as many factors and solves as are expected. The numbers of a complete factor are in dense fronts; a solve reads each of them twice.
    pub fn direct_for(&self, a: &Csr<f64>, kind: DirectKind, cost: &Cost, expected: Expected) -> f64 {
        let factor = self.flop * cost.flops + self.factor * cost.entries as f64;
        let solve = self.complete_solve * cost.entries as f64 + self.rows.product * a.nnz() as f64;
        expected.cost(self.direct_analysis(a, kind), factor, solve)
    }

    /// The analysis of a complete factor.
    pub fn direct_analysis(&self, a: &Csr<f64>, kind: DirectKind) -> f64 {
        let matching = if kind == DirectKind::Cholesky { 0.0 } else { self.matching };
        (self.analysis + matching) * a.nnz() as f64 + self.analysis_row * a.nrows() as f64
    }

    /// Less than a complete factor costs, known without an analysis: that of a grid in two dimensions, ordered by nested dissection
    /// (George 1973, doi:10.1137/0710032), has the least fill of what large matrices usually come from. A `grid` that was found has at least that fill
    /// whatever its size.
    pub fn direct_at_least(
        &self,
        a: &Csr<f64>,
        kind: DirectKind,
        grid: Option<&GridFacts>,
        expected: Expected,
    ) -> f64 {
        // Small ones may be trees, or nearly diagonal.
        let is_known = grid.is_some() || a.nrows() >= 100_000;
        match is_known {
            true => self.direct_for(a, kind, &least_fill(a.nrows(), kind, grid), expected),
            false => self.direct_analysis(a, kind),
        }
    }
}

/// Numbers and operations of a complete factor with less fill than that of the grid, or of one in the plane with as many points.
fn least_fill(rows: usize, kind: DirectKind, grid: Option<&GridFacts>) -> Cost {
    let unknowns = grid.map_or(1, |grid| grid.unknowns) as f64;
    let points = rows as f64 / unknowns;
    // Two triangles or one.
    let triangles = if kind == DirectKind::Lu { 2.0 } else { 1.0 };
    let plane = 1.5 * points * points.max(2.0).log2() * unknowns * unknowns;
    // What separates the halves of a grid is a triangle without zeros in the end.
    let separator = 0.7 * unknowns * grid.map_or(0, GridFacts::section) as f64;
    let flops = f64::max(5.0 * points * points.sqrt() * unknowns.powi(3), separator.powi(3) / 3.0);
    Cost {
        entries: (triangles * f64::max(plane, separator * separator / 2.0)) as u64,
        flops: triangles * flops,
        stack: 0,
        products: 0,
        indices: 0,
    }
}

/// What a method does in an iteration.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Operations {
    /// Products with A, and as many solves with M.
    pub products: f64,
    /// Vectors that are read or written besides.
    pub vectors: f64,
    /// Launches on a device, without those of M.
    pub launches: f64,
    /// Sums that the host waits for.
    pub reductions: f64,
}

/// Launches of a solve with M on a device, with those of the sums that no longer are part of others. More levels of a sweep are priced as wavefronts.
pub(crate) const LAUNCHES_OF_M: f64 = 3.0;

/// What a method does in an iteration; launches and sums as devices count them.
pub fn operations(method: Method) -> Operations {
    let of = |products, vectors, launches, reductions| Operations { products, vectors, launches, reductions };
    match method {
        Method::BiCgStab => of(2.0, 20.0, 8.0, 3.0),
        // Half of the basis on average, read twice.
        Method::Gmres(restart) | Method::Fgmres(restart) => of(1.0, 4.0 + restart as f64, 6.0, 2.0),
        Method::Minres => of(1.0, 12.0, 9.0, 3.0),
        _ => of(1.0, 12.0, 3.0, 2.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::{REFERENCE, Rates};
    use crate::facts::Mesh;
    use crate::gallery::Problem;
    use crate::precond::direct::Direct;

    /// CG with a factor in slices.
    const SWEEPS: Work = Work {
        method: Method::Cg,
        storage: StorageKind::Slices,
        precision: Precision::F64,
        rows: 1000,
        entries: 5000,
        swept: 6000.0,
        applied: Applied::Sweeps { wavefronts: 100.0 },
        without_product: false,
        constant: false,
        constant_factor: false,
    };

    #[test]
    fn a_lower_bound_is_one() {
        let names = [
            "poisson2d:20",
            "poisson2d:100",
            "poisson2d:350",
            "poisson3d:8",
            "poisson3d:20",
            "hpcg:12",
            "elasticity2d:30",
            "elasticity3d:6",
            "convection3d:10",
            "fem2d:60",
            "circuit:60",
        ];
        for name in names {
            let a = name.parse::<Problem>().unwrap().generate().unwrap();
            let grid = Mesh::find(&a, false).0.grid;
            for kind in [DirectKind::Cholesky, DirectKind::Lu] {
                let symbolic = Direct { kind, max_bytes: None }.symbolic(&a).unwrap();
                let cost = symbolic.cost();
                for solves in [1, 100] {
                    let expected = Expected { solves, refactors: solves / 10 };
                    let least = REFERENCE.direct_at_least(&a, kind, grid.as_ref(), expected);
                    let known = least_fill(a.nrows(), kind, grid.as_ref());
                    assert!(
                        least <= REFERENCE.direct_for(&a, kind, cost, expected),
                        "{name}: {cost:?} {known:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn iterations_cost_more_with_more_to_do() {
        let cg = SWEEPS;
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
        let inverse = Work { applied: Applied::Products, ..cg };
        assert!(cost(inverse) < cost(cg) && !REFERENCE.waits());
        assert!(cost(Work { precision: Precision::Mixed, ..inverse }) < cost(inverse));
    }

    /// Two sweeps of 100 wavefronts of 50 ns, on a machine that is otherwise the same.
    #[test]
    fn sweeps_wait_for_wavefronts() {
        let slices = Rates { wavefront: 50.0, ..REFERENCE.slices };
        let machine = Machine { slices, ..REFERENCE };
        let more = machine.iteration(&SWEEPS) - REFERENCE.iteration(&SWEEPS);
        assert!((more - 10_000.0).abs() < 1e-6 && machine.waits());
        let products = Work { applied: Applied::Products, ..SWEEPS };
        assert_eq!(machine.iteration(&products), REFERENCE.iteration(&products));
    }
}
