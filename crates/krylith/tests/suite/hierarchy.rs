//! A preconditioner that stores a hierarchy: two levels, the coarse one of pairs of rows, with a smoother of the registry by name on both. It shows what multigrid
//! needs of a store, and goes when multigrid comes.
//!
//!   z₁ = S⁻¹ r,   z₂ = z₁ + P S_c⁻¹ Pᵀ (r − A z₁),   z = z₂ + S⁻¹ (r − A z₂)
//!
//! P has a one in row i and column ⌊i / 2⌋, and S_c is the smoother of A_c = Pᵀ A P. Symmetric where S is, and definite where S⁻¹ A has eigenvalues below 2.

use krylith::gallery::Problem;
use krylith::operator::{DynPreconditioner, LinearOperator, Preconditioner, SolverSpace};
use krylith::placement::{KeptMatrix, SharedPlacement, Side, Storage};
use krylith::plan::StorageKind;
use krylith::setup::{Memory, SetupContext, SetupRecorder};
use krylith::solver::STORES;
use krylith::space::Threads;
use krylith::store::{FindStore, Found, Level, Made, OverStore, Request, Role, Store, level};
use krylith::{BackendError, Csr, Layout, Method, PrecondSpec, SetupError, SolveError, Solver};
use std::any::Any;

type Scratch = Box<dyn Any + Send>;

/// Pᵀ A P, explicit zeros included: the pattern is that of A alone.
fn coarse(a: &Csr<f64>) -> Csr<f64> {
    let entries = (0..a.nrows()).flat_map(|i| {
        let (columns, values) = a.row(i);
        columns.iter().zip(values).map(move |(&j, &v)| (i / 2, j as usize / 2, v))
    });
    Csr::from_entries(a.nrows().div_ceil(2), a.ncols().div_ceil(2), entries).unwrap()
}

/// A smoother of either kind.
enum Smoother<S: SolverSpace> {
    Placed(DynPreconditioner<S, KeptMatrix<S>>),
    InOrder(DynPreconditioner<S, Csr<f64>>),
}

impl<S: SolverSpace> Smoother<S> {
    fn scratch(&self, space: &S) -> Result<Scratch, BackendError> {
        match self {
            Smoother::Placed(m) => m.scratch(space),
            Smoother::InOrder(m) => m.scratch(space),
        }
    }

    fn apply(
        &self,
        space: &S,
        r: &S::Vector,
        z: &mut S::Vector,
        own: &mut Scratch,
    ) -> Result<(), BackendError> {
        match self {
            Smoother::Placed(m) => m.apply(space, r, z, own),
            Smoother::InOrder(m) => m.apply(space, r, z, own),
        }
    }
}

/// A matrix with its smoother in a store.
struct Grade<S: SolverSpace> {
    placement: SharedPlacement<S>,
    matrix: KeptMatrix<S>,
    smoother: Smoother<S>,
    /// Of vectors in the order of the rows.
    layout: S::Size,
    rows: usize,
}

impl<S: SolverSpace> Grade<S> {
    fn new(level: Level<S>, layout: S::Size, rows: usize) -> Self {
        let Level { placement, matrix, made, .. } = level;
        let smoother = match made.m {
            OverStore::Placed(m) => Smoother::Placed(m),
            OverStore::InOrder(m) => Smoother::InOrder(m),
        };
        Grade { placement, matrix, smoother, layout, rows }
    }

    fn refactor(&mut self, space: &S, rows: &Csr<f64>) -> Result<(), SetupError> {
        match &mut self.smoother {
            Smoother::Placed(m) => {
                m.release();
                self.matrix.set(space, rows)?;
                m.refactor_by_rows(space, &self.matrix, rows)
            }
            Smoother::InOrder(m) => {
                self.matrix.set(space, rows)?;
                m.refactor(space, rows)
            }
        }
    }

    /// A vector of the store as numbers of this process, in the order of rows.
    fn numbers(&self, space: &S, v: &S::Vector, own: &mut S::Vector) -> Result<Vec<f64>, BackendError> {
        let mut numbers = vec![0.0; self.rows];
        self.placement.store(space, Side::Rows, v, own)?;
        space.download(own, &mut numbers)?;
        Ok(numbers)
    }

    fn vector(
        &self,
        space: &S,
        numbers: &[f64],
        own: &mut S::Vector,
        v: &mut S::Vector,
    ) -> Result<(), BackendError> {
        space.upload(numbers, own)?;
        self.placement.load(space, Side::Rows, own, v)
    }

    fn vectors<const N: usize>(&self, space: &S) -> Result<[S::Vector; N], BackendError> {
        let mut made = Vec::new();
        for _ in 0..N {
            made.push(space.zeros(&self.placement.size())?);
        }
        Ok(made.try_into().ok().expect("as many as asked for"))
    }
}

/// The preconditioner.
struct TwoLevel<S: SolverSpace> {
    fine: Grade<S>,
    coarse: Grade<S>,
}

/// What an application writes.
struct Writes<S: SolverSpace> {
    product: Scratch,
    smoothers: [Scratch; 2],
    /// r − A z and a correction; in the order of rows.
    fine: [S::Vector; 2],
    fine_own: S::Vector,
    coarse: [S::Vector; 2],
    coarse_own: S::Vector,
}

impl<S: SolverSpace> LinearOperator<S> for TwoLevel<S> {
    type Scratch = Writes<S>;

    fn domain(&self) -> S::Size {
        self.fine.placement.size()
    }

    fn range(&self) -> S::Size {
        self.fine.placement.size()
    }

    fn scratch(&self, space: &S) -> Result<Writes<S>, BackendError> {
        Ok(Writes {
            product: self.fine.matrix.scratch(space)?,
            smoothers: [self.fine.smoother.scratch(space)?, self.coarse.smoother.scratch(space)?],
            fine: self.fine.vectors(space)?,
            fine_own: space.zeros(&self.fine.layout)?,
            coarse: self.coarse.vectors(space)?,
            coarse_own: space.zeros(&self.coarse.layout)?,
        })
    }

    fn apply(
        &self,
        space: &S,
        r: &S::Vector,
        z: &mut S::Vector,
        own: &mut Writes<S>,
    ) -> Result<(), BackendError> {
        let Writes {
            product, smoothers: [smooth, smooth_coarse], fine: [left, correction], fine_own, ..
        } = own;
        let [coarse_left, coarse_correction] = &mut own.coarse;
        self.fine.smoother.apply(space, r, z, smooth)?;
        self.fine.matrix.apply(space, z, left, product)?;
        space.axpby(1.0, r, -1.0, left)?;
        let numbers = self.fine.numbers(space, left, fine_own)?;
        let pairs: Vec<f64> = numbers.chunks(2).map(|pair| pair.iter().sum()).collect();
        self.coarse.vector(space, &pairs, &mut own.coarse_own, coarse_left)?;
        self.coarse.smoother.apply(space, coarse_left, coarse_correction, smooth_coarse)?;
        let pairs = self.coarse.numbers(space, coarse_correction, &mut own.coarse_own)?;
        let numbers: Vec<f64> = (0..self.fine.rows).map(|i| pairs[i / 2]).collect();
        self.fine.vector(space, &numbers, fine_own, correction)?;
        space.axpby(1.0, correction, 1.0, z)?;
        self.fine.matrix.apply(space, z, left, product)?;
        space.axpby(1.0, r, -1.0, left)?;
        self.fine.smoother.apply(space, left, correction, smooth)?;
        space.axpby(1.0, correction, 1.0, z)
    }
}

impl<S: SolverSpace> TwoLevel<S> {
    fn of_rows(&mut self, space: &S, rows: &Csr<f64>) -> Result<(), SetupError> {
        self.fine.refactor(space, rows)?;
        self.coarse.refactor(space, &coarse(rows))
    }
}

impl<S: SolverSpace> Preconditioner<S, KeptMatrix<S>> for TwoLevel<S> {
    fn refactor(&mut self, _: &S, _: &KeptMatrix<S>) -> Result<(), SetupError> {
        Err(BackendError::Unsupported { what: "a hierarchy without rows" }.into())
    }

    fn refactor_by_rows(&mut self, space: &S, _: &KeptMatrix<S>, rows: &Csr<f64>) -> Result<(), SetupError> {
        self.of_rows(space, rows)
    }
}

impl<S: SolverSpace> Preconditioner<S, Csr<f64>> for TwoLevel<S> {
    fn refactor(&mut self, space: &S, rows: &Csr<f64>) -> Result<(), SetupError> {
        self.of_rows(space, rows)
    }
}

/// Two levels in whichever of these stores takes the smoother; the layout of half as many numbers.
pub struct ByPairs<S: SolverSpace> {
    pub stores: &'static [&'static dyn FindStore<S>],
    pub half: fn(&S::Size) -> S::Size,
}

impl<S: SolverSpace> FindStore<S> for ByPairs<S> {
    fn name(&self) -> &'static str {
        "pairs"
    }

    fn kind(&self) -> StorageKind {
        StorageKind::Rows
    }

    fn find(
        &self,
        setup: &SetupContext<'_, S>,
        request: &Request<'_>,
        recorder: &mut SetupRecorder,
    ) -> Result<Found<S>, SolveError> {
        for finder in self.stores {
            if let Found::Store(fine) = finder.find(setup, request, recorder)? {
                return Ok(Found::Store(Box::new(PairStore { fine, stores: self.stores, half: self.half })));
            }
        }
        Ok(Found::Refused("no store takes the smoother".into()))
    }
}

/// The store of the fine level, with a factor of two levels.
struct PairStore<S: SolverSpace> {
    fine: Box<dyn Store<S>>,
    stores: &'static [&'static dyn FindStore<S>],
    half: fn(&S::Size) -> S::Size,
}

impl<S: SolverSpace> Store<S> for PairStore<S> {
    fn kind(&self) -> StorageKind {
        self.fine.kind()
    }

    fn memory(&self) -> Memory {
        self.fine.memory()
    }

    fn placement(&self) -> Option<SharedPlacement<S>> {
        self.fine.placement()
    }

    fn keep(
        &self,
        setup: &SetupContext<'_, S>,
        role: Role,
        matrix: &Csr<f64>,
        recorder: &mut SetupRecorder,
    ) -> Result<KeptMatrix<S>, SetupError> {
        self.fine.keep(setup, role, matrix, recorder)
    }

    fn has_sweeps(&self) -> bool {
        true
    }

    fn triangles(
        &self,
        setup: &SetupContext<'_, S>,
        request: &Request<'_>,
        _: Option<&KeptMatrix<S>>,
        recorder: &mut SetupRecorder,
    ) -> Result<Made<S>, SolveError> {
        let (layout, half) = (setup.size.clone(), (self.half)(&setup.size));
        let fine = level(setup.of_level(setup.source, layout.clone()), self.stores, request.kind, recorder)?;
        let pairs = coarse(setup.source);
        let smaller = level(setup.of_level(&pairs, half.clone()), self.stores, request.kind, recorder)?;
        let words = format!("; pairs: {}", smaller.words);
        let (nnz, bytes) = (fine.made.nnz + smaller.made.nnz, fine.made.bytes + smaller.made.bytes);
        let m = TwoLevel {
            fine: Grade::new(fine, layout, setup.source.nrows()),
            coarse: Grade::new(smaller, half, pairs.nrows()),
        };
        let m = match self.placement() {
            Some(_) => OverStore::Placed(DynPreconditioner::new(m)),
            None => OverStore::InOrder(DynPreconditioner::new(m)),
        };
        Ok(Made { words, ..Made::new(m, nnz, bytes) })
    }
}

static PAIRS: &[&dyn FindStore<Threads<f64>>] = &[&ByPairs { stores: STORES, half: |rows| rows.div_ceil(2) }];

/// Any smoother but an approximate inverse, which chooses its store by the bytes of its matrices, in any store: fewer iterations than with the smoother alone, as many in all stores, and the same again after a `refactor`.
#[test]
fn two_levels_in_every_store_with_smoothers_by_name() {
    let a = "poisson2d:48x40".parse::<Problem>().unwrap().generate().unwrap();
    let b: Vec<f64> = (0..a.nrows()).map(|i| 1.0 + ((i * 37) as f64).sin()).collect();
    for name in ["jacobi", "ssor", "ic0", "ic1", "ict(0.01)", "cholesky"] {
        let kind: PrecondSpec = name.parse().unwrap();
        let mut counts = Vec::new();
        for (layout, words) in
            [(Layout::Auto, "structured: 48 x 40 grid"), (Layout::Slices, "slices"), (Layout::Rows, "rows")]
        {
            let solver =
                Solver::new().method(Method::Cg).preconditioner(kind.clone()).layout(layout).threads(2);
            let alone = solver.solve(&a, &b).unwrap().report.iterations;
            let mut prepared = solver.prepare_on(Threads::new(2), PAIRS, &a, &a).unwrap();
            let mut again = a.clone();
            again.values_mut().iter_mut().for_each(|v| *v *= 2.0);
            let mut solve = |a: &Csr<f64>| {
                prepared.refactor(a).unwrap();
                let mut x = vec![0.0; b.len()];
                let report = prepared.solve(a, &b, &mut x).unwrap();
                report.require_converged().unwrap();
                report
            };
            let (first, second) = (solve(&a), solve(&again));
            // Slices refuse what has too few rows in a wavefront.
            let taken = first.layout.contains(words) || !["jacobi", "ssor", "ic0"].contains(&name);
            assert!(taken && first.layout.contains("pairs: "), "{name}: {}", first.layout);
            // The stores of the levels are not those that were asked for the system.
            assert_eq!(first.plan.considered.last().map(|last| last.layout.as_str()), Some("pairs"));
            assert_eq!(first.plan.considered.iter().filter(|considered| considered.taken).count(), 1);
            assert!(
                first.iterations < alone || alone == 1,
                "{name} {layout:?}: {} and {alone}",
                first.iterations
            );
            assert_eq!(first.iterations, second.iterations, "{name} {layout:?}");
            counts.push(first.iterations);
        }
        let (least, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
        assert!(most - least <= 1, "{name}: {counts:?}");
    }
}
