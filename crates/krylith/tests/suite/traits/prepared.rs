//! `Solver` on a space that is not threads: set-up, choice, recovery, certification and report on two ranks, each of which factors the
//! block of its own rows. Nothing of the library knows this space.

use super::poisson;
use super::ranks::{Layout, Part, PartMatrix, Rank, on_both};
use crate::hierarchy::ByPairs;
use krylith::gallery::Problem;
use krylith::operator::{
    DynOperator, DynPreconditioner, LinearOperator, Preconditioner, Recipe, SolverSpace,
};
use krylith::placement::{KeptMatrix, SharedPlacement, Storage};
use krylith::plan::{MANY_CORE, StorageKind};
use krylith::precond::{Incomplete, IncompleteFactor, IncompleteSymbolic};
use krylith::setup::{Memory, SetupContext, SetupRecorder};
use krylith::space::Threads;
use krylith::sparsify::Sparsify;
use krylith::store::{FindStore, Found, Made, Needs, OverStore, Request, Role, Store};
use krylith::{
    BackendError, Csr, Method, Outcome, PrecondSpec, Prepared, Report, SetupError, SolveError, Solver, Watch,
};

/// Where the matrix is cut.
const CUT: usize = 200;
/// A cut that leaves one rank with fewer rows than a restart.
const UNEVEN: usize = 7;

impl SolverSpace for Rank {
    fn host(&self) -> &Threads<f64> {
        &self.host
    }

    fn operator_of_own_rows(&self, rows: Csr<f64>, first: usize) -> Result<DynOperator<Self>, BackendError> {
        let part = PartMatrix::of_own_rows(self, rows)?;
        assert_eq!(part.rows().start, first);
        Ok(Box::new(part))
    }
}

/// An incomplete factor of the block of the own rows.
struct OwnFactor {
    factor: IncompleteFactor<f64>,
    layout: Layout,
    first: usize,
}

impl LinearOperator<Rank> for OwnFactor {
    type Scratch = <IncompleteFactor<f64> as LinearOperator<Threads<f64>>>::Scratch;

    fn domain(&self) -> Layout {
        self.layout.clone()
    }

    fn range(&self) -> Layout {
        self.layout.clone()
    }

    fn scratch(&self, space: &Rank) -> Result<Self::Scratch, BackendError> {
        self.factor.scratch(&space.host)
    }

    fn apply(
        &self,
        space: &Rank,
        x: &Part,
        z: &mut Part,
        scratch: &mut Self::Scratch,
    ) -> Result<(), BackendError> {
        self.factor.apply(&space.host, &x.own, &mut z.own, scratch)
    }
}

impl Preconditioner<Rank, Csr<f64>> for OwnFactor {
    fn refactor(&mut self, space: &Rank, a: &Csr<f64>) -> Result<(), SetupError> {
        self.factor.refactor(&space.host, a).map_err(|error| match error {
            SetupError::BadPivot { row, value } => SetupError::BadPivot { row: self.first + row, value },
            other => other,
        })
    }

    fn set_shift(&mut self, shift: f64) -> bool {
        Preconditioner::<Threads<f64>, Csr<f64>>::set_shift(&mut self.factor, shift)
    }
}

/// The one store of this space.
struct OwnRows;

const IN_WORDS: &str = "the rows of each rank";

impl FindStore<Rank> for OwnRows {
    fn name(&self) -> &'static str {
        "own rows"
    }

    fn kind(&self) -> StorageKind {
        StorageKind::Rows
    }

    fn find(
        &self,
        _: &SetupContext<'_, Rank>,
        request: &Request<'_>,
        _: &mut SetupRecorder,
    ) -> Result<Found<Rank>, SolveError> {
        Ok(match request.needs {
            Needs::Triangles(recipe) => Found::Store(Box::new(RankStore(recipe))),
            _ => Found::Refused("no incomplete factor".into()),
        })
    }
}

/// Rows as they are divided, with this factor of the block of each.
struct RankStore(Incomplete);

impl Store<Rank> for RankStore {
    fn kind(&self) -> StorageKind {
        StorageKind::Rows
    }

    fn memory(&self) -> Memory {
        Memory::in_order(IN_WORDS.into(), 0, 0, 0)
    }

    fn placement(&self) -> Option<SharedPlacement<Rank>> {
        None
    }

    fn keep(
        &self,
        setup: &SetupContext<'_, Rank>,
        _: Role,
        matrix: &Csr<f64>,
        _: &mut SetupRecorder,
    ) -> Result<KeptMatrix<Rank>, SetupError> {
        Ok(KeptMatrix::new(Block { rows: matrix.clone(), layout: setup.size.clone() }))
    }

    fn has_sweeps(&self) -> bool {
        true
    }

    fn triangles(
        &self,
        setup: &SetupContext<'_, Rank>,
        request: &Request<'_>,
        _: Option<&KeptMatrix<Rank>>,
        recorder: &mut SetupRecorder,
    ) -> Result<Made<Rank>, SolveError> {
        let (space, layout) = (setup.space, setup.size.clone());
        let symbolic: IncompleteSymbolic =
            recorder.analyzing(|| self.0.analyze(&space.host, setup.source))?;
        let first = if space.rank == 0 { 0 } else { layout.global - layout.local };
        let mut m = OwnFactor { factor: symbolic.allocate(), layout, first };
        let shift = recorder.factor_with(space, setup.attempts(request.kind), setup.source, &mut m)?;
        let (nnz, bytes) = (m.factor.nnz(), m.factor.bytes());
        let made = Made::new(OverStore::InOrder(DynPreconditioner::new(m)), nnz, bytes);
        Ok(Made { shift, ..made })
    }
}

/// What each rank keeps of a matrix: what it has of it, without the other's entries.
struct Block {
    rows: Csr<f64>,
    layout: Layout,
}

impl LinearOperator<Rank> for Block {
    type Scratch = ();

    fn domain(&self) -> Layout {
        self.layout.clone()
    }

    fn range(&self) -> Layout {
        self.layout.clone()
    }

    fn scratch(&self, _: &Rank) -> Result<(), BackendError> {
        Ok(())
    }

    fn apply(&self, space: &Rank, x: &Part, y: &mut Part, _: &mut ()) -> Result<(), BackendError> {
        self.rows.apply(&space.host, &x.own, &mut y.own, &mut self.rows.scratch(&space.host)?)
    }
}

impl Storage<Rank> for Block {
    fn require(&self, a: &Csr<f64>) -> Result<(), SetupError> {
        Storage::require(&self.rows, a)
    }

    fn set(&mut self, space: &Rank, a: &Csr<f64>) -> Result<(), SetupError> {
        Storage::set(&mut self.rows, &space.host, a)
    }

    fn holds(&self, space: &Rank, a: &Csr<f64>) -> bool {
        Storage::holds(&self.rows, &space.host, a)
    }

    fn with_values_of(&self, space: &Rank, a: &Csr<f64>) -> Result<Self, SetupError> {
        let rows = Storage::with_values_of(&self.rows, &space.host, a)?;
        Ok(Block { rows, layout: self.layout.clone() })
    }

    fn bytes(&self) -> usize {
        self.rows.bytes()
    }
}

pub(super) static STORES: &[&dyn FindStore<Rank>] = &[&OwnRows];
/// Two levels, of each rank's own rows.
static PAIRS: &[&dyn FindStore<Rank>] = &[&ByPairs { stores: STORES, half }];

fn half(layout: &Layout) -> Layout {
    let local = layout.local.div_ceil(2);
    Layout { local, global: local }
}

fn part(rank: usize, cut: usize, whole: &[f64]) -> Part {
    let own = if rank == 0 { whole[..cut].to_vec() } else { whole[cut..].to_vec() };
    Part { own, global: whole.len() }
}

fn rhs(a: &Csr<f64>) -> Vec<f64> {
    (0..a.nrows()).map(|i| 1.0 + ((i * 37) as f64).sin()).collect()
}

/// Prepares and solves on both ranks from 0; the whole x, and both reports.
fn solve(solver: &Solver, a: &Csr<f64>, b: &[f64]) -> (Vec<f64>, [Result<Report, SolveError>; 2]) {
    solve_in((STORES, CUT), solver, a, b)
}

fn solve_in(
    (stores, cut): (&'static [&'static dyn FindStore<Rank>], usize),
    solver: &Solver,
    a: &Csr<f64>,
    b: &[f64],
) -> (Vec<f64>, [Result<Report, SolveError>; 2]) {
    let parts = PartMatrix::split(a, &[cut]);
    let ends = on_both(|rank| {
        let (part_of_a, number) = (&parts[rank.rank], rank.rank);
        let b = part(number, cut, b);
        let mut x = part(number, cut, &vec![0.0; a.nrows()]);
        let prepared: Result<Prepared<PartMatrix, Rank>, _> =
            solver.prepare_on(rank, stores, part_of_a, &part_of_a.block());
        let report =
            prepared.and_then(|prepared| prepared.solve_vectors(part_of_a, &b, &mut x, Watch::default()));
        (x.own, report)
    });
    let [(head, first), (tail, second)] = ends;
    ([head, tail].concat(), [first, second])
}

/// What both ranks must agree on.
fn agreed(reports: [Result<Report, SolveError>; 2]) -> Report {
    let [first, second] = reports.map(Result::unwrap);
    assert_eq!(
        (first.outcome, first.iterations, &first.solver),
        (second.outcome, second.iterations, &second.solver)
    );
    assert_eq!((&first.history, first.relative_residual), (&second.history, second.relative_residual));
    assert_eq!(
        (&first.recovery, &first.certificate, first.shift),
        (&second.recovery, &second.certificate, second.shift)
    );
    first
}

fn residual(a: &Csr<f64>, x: &[f64], b: &[f64]) -> f64 {
    let mut ax = vec![0.0; b.len()];
    a.mul_vec(x, &mut ax).unwrap();
    let square = |v: &mut dyn Iterator<Item = f64>| v.map(|v| v * v).sum::<f64>().sqrt();
    square(&mut ax.iter().zip(b).map(|(a, b)| a - b)) / square(&mut b.iter().copied())
}

#[test]
fn auto_solves_and_certifies() {
    let a = poisson();
    let b = rhs(&a);
    let (x, reports) = solve(&Solver::new(), &a, &b);
    let report = agreed(reports);
    report.require_converged().unwrap();
    assert_eq!((report.solver.as_str(), report.preconditioner.as_str()), ("cg", "ic0"));
    assert!(residual(&a, &x, &b) <= 1e-8);
    // The bound is that of all rows, not only of one rank.
    assert_eq!(report.certificate.arithmetic, "f64");
    assert!(report.certificate.residual_bound.unwrap() <= 1e-8);
    assert!((report.relative_residual - residual(&a, &x, &b)).abs() < 1e-12);
    assert!(report.backward_error.unwrap() < 1e-8 && report.layout.contains("rows of each rank"));
    // Close to what one process takes with the factor of the whole matrix.
    let alone = Solver::new().solve(&a, &b).unwrap().report;
    assert!(report.iterations >= alone.iterations && report.iterations < 2 * alone.iterations);
}

/// Each rank drops entries of its own block; the iteration is on the whole A.
#[test]
fn every_rank_drops_from_its_own_block() {
    let a = "circuit:110".parse::<Problem>().unwrap().generate().unwrap();
    let b = rhs(&a);
    let cut = a.nrows() / 2;
    for sparsify in [Sparsify::Percent(5.0), Sparsify::paper(), Sparsify::auto()] {
        let solver = Solver::new().method(Method::Cg).preconditioner(PrecondSpec::ic(0));
        let (x, reports) = solve_in((STORES, cut), &solver.machine(MANY_CORE).sparsify(sparsify), &a, &b);
        for report in reports.iter().flatten() {
            assert!(report.plan.sparsification.as_ref().unwrap().chosen().is_some(), "{sparsify}");
        }
        agreed(reports).require_converged().unwrap();
        assert!(residual(&a, &x, &b) <= 1e-8);
    }
}

/// A pivot that is bad on one rank is followed by the same shift on both, and the row is that of the whole matrix.
#[test]
fn a_bad_pivot_of_one_rank_is_recovered_from_by_both() {
    let mut a = poisson();
    let k = a.pattern().find(300, 300).unwrap();
    a.values_mut()[k] = 0.5;
    let b = rhs(&a);
    let (x, reports) = solve(&Solver::new().max_iterations(2000), &a, &b);
    let report = agreed(reports);
    report.require_converged().unwrap();
    assert!(residual(&a, &x, &b) <= 1e-8);
    assert!(report.recovery.iter().any(|r| r.row.is_some_and(|row| row >= 300)), "{:?}", report.recovery);
    // Without recovery it is an error on both, the rank with good pivots included.
    let (_, reports) = solve(&Solver::new().recover(false), &a, &b);
    for report in reports {
        let error = report.unwrap_err();
        assert!(
            matches!(error, SolveError::Setup(SetupError::BadPivot { row, .. }) if row >= 300),
            "{error:?}"
        );
    }
}

#[test]
fn numbers_out_of_range_and_not_finite() {
    let a = poisson();
    let scaled: Vec<f64> = rhs(&a).iter().map(|b| b * 1e250).collect();
    let (x, reports) = solve(&Solver::new(), &a, &scaled);
    agreed(reports).require_converged().unwrap();
    let x: Vec<f64> = x.iter().map(|x| x * 1e-250).collect();
    assert!(residual(&a, &x, &rhs(&a)) <= 1.1e-8);
    let mut b = rhs(&a);
    b[400] = f64::INFINITY;
    let (_, reports) = solve(&Solver::new(), &a, &b);
    for report in reports {
        assert!(matches!(report.unwrap_err(), SolveError::NotFinite { what: "b", row: 400, .. }));
    }
}

/// A limit of iterations, a method by name, and no preconditioner: which needs no layout at all.
#[test]
fn other_methods_and_outcomes() {
    let a = poisson();
    let b = rhs(&a);
    for method in [Method::BiCgStab, Method::Gmres(20), Method::Minres] {
        let solver = Solver::new().method(method).preconditioner(PrecondSpec::none());
        let (x, reports) = solve(&solver, &a, &b);
        agreed(reports).require_converged().unwrap();
        assert!(residual(&a, &x, &b) <= 1e-8);
    }
    let (x, reports) = solve(&Solver::new().max_iterations(3), &a, &b);
    let report = agreed(reports);
    assert_eq!((report.outcome, report.iterations), (Outcome::MaxIterations, 3));
    assert!(residual(&a, &x, &b) <= 1.0, "never worse than 0");
    let (_, reports) = solve(&Solver::new().preconditioner(PrecondSpec::jacobi()), &a, &b);
    assert!(reports.into_iter().all(|report| report.is_err()), "this space has no Jacobi");
}

/// What depends on the number of unknowns depends on all of them: a rank with few rows restarts with the other.
#[test]
fn ranks_of_different_sizes_go_on_alike() {
    let a = poisson();
    let b = rhs(&a);
    for method in [Method::Gmres(30), Method::Cg] {
        let solver = Solver::new().method(method).preconditioner(PrecondSpec::ilu(0));
        let (x, reports) = solve_in((STORES, UNEVEN), &solver, &a, &b);
        agreed(reports).require_converged().unwrap();
        assert!(residual(&a, &x, &b) <= 1e-8);
    }
}

/// An entry that is not finite is in one rank's part: both end, that one with the place.
#[test]
fn an_error_of_one_rank_ends_both() {
    let mut a = poisson();
    let k = a.pattern().find(300, 300).unwrap();
    a.values_mut()[k] = f64::NAN;
    let (_, [first, second]) = solve(&Solver::new(), &a, &rhs(&a));
    assert!(matches!(first.unwrap_err(), SolveError::Setup(SetupError::Backend(_))));
    assert!(matches!(
        second.unwrap_err(),
        SolveError::Setup(SetupError::NotFinite { row: 300, column: 300, .. })
    ));
}

/// Constants are in the null spaces of A and of Aᵀ, which no block of a rank shows.
#[test]
fn a_null_space_of_the_whole_is_found() {
    let a = "neumann2d:24".parse::<Problem>().unwrap().generate().unwrap();
    let mut b = vec![0.0; a.nrows()];
    a.mul_vec(&rhs(&a), &mut b).unwrap();
    let (x, reports) = solve(&Solver::new(), &a, &b);
    let report = agreed(reports);
    report.require_converged().unwrap();
    let facts = report.plan.facts.unwrap();
    assert!(facts.constant_null_vector && facts.constant_left_null_vector && facts.rows == a.nrows());
    assert!(residual(&a, &x, &b) <= 1e-8);
    // Of least norm: without a part along constants.
    let (sum, size) = x.iter().fold((0.0, 0.0), |(sum, size), x| (sum + x, size + x.abs()));
    assert!(f64::abs(sum) <= 1e-12 * size, "{sum:e} of {size:e}");
}

/// What was found about one matrix says nothing about the next, on any rank: A + I is not singular, though A is.
#[test]
fn a_later_matrix_has_facts_of_its_own() {
    let a = "neumann2d:24".parse::<Problem>().unwrap().generate().unwrap();
    let mut shifted = a.clone();
    // One entry, which one rank has.
    let place = a.pattern().find(300, 300).unwrap();
    shifted.values_mut()[place] += 1.0;
    let (mut b, later) = (vec![0.0; a.nrows()], rhs(&a));
    a.mul_vec(&rhs(&a), &mut b).unwrap();
    let (parts, others) = (PartMatrix::split(&a, &[CUT]), PartMatrix::split(&shifted, &[CUT]));
    let solver = Solver::new().allow_stale_factor(true);
    let [first, second] = on_both(|rank| {
        let (number, own, other) = (rank.rank, &parts[rank.rank], &others[rank.rank]);
        let prepared = solver.prepare_on(rank, STORES, own, &own.block()).unwrap();
        [(own, &b), (other, &later)].map(|(part_of_a, b)| {
            let (b, mut x) = (part(number, CUT, b), part(number, CUT, &vec![0.0; a.nrows()]));
            let report = prepared.solve_vectors(part_of_a, &b, &mut x, Watch::default());
            (x.own, report)
        })
    });
    let together = first.into_iter().zip(second).map(|((head, one), (tail, two))| {
        let report = agreed([one, two]);
        report.require_converged().unwrap();
        ([head, tail].concat(), report)
    });
    let [(x, of_a), (y, of_shifted)] = <[_; 2]>::try_from(together.collect::<Vec<_>>()).unwrap();
    assert!(residual(&a, &x, &b) <= 1e-8 && residual(&shifted, &y, &later) <= 1e-8);
    assert!(of_a.plan.facts.is_some() && of_shifted.plan.facts.is_none());
}

/// Every matrix of the pattern of one rank's block is singular, and A is not: both ranks end alike.
#[test]
fn a_block_that_is_singular_by_its_pattern() {
    let whole = poisson();
    let entry = |i: usize, j: usize, v: f64| match (i, j) {
        (10, 300) | (300, 10) => Some((i, j, 4.0)),
        (10, _) | (_, 10) => None,
        _ => Some((i, j, v)),
    };
    let rows = (0..whole.nrows()).flat_map(|i| {
        let (columns, values) = whole.row(i);
        columns.iter().zip(values).map(move |(&j, &v)| (i, j as usize, v))
    });
    let entries = rows.filter_map(|(i, j, v)| entry(i, j, v)).chain([(10, 300, 4.0), (300, 10, 4.0)]);
    let a = Csr::from_entries(whole.nrows(), whole.ncols(), entries).unwrap();
    for solver in [Solver::new(), Solver::new().preconditioner(PrecondSpec::none())] {
        let (_, [first, second]) = solve(&solver, &a, &rhs(&a));
        let words = |end: &Result<Report, SolveError>| end.as_ref().map(|report| report.outcome).is_ok();
        assert_eq!(words(&first), words(&second), "{first:?} {second:?}");
        for report in [&first, &second].into_iter().flatten() {
            assert_eq!(
                report.plan.facts.as_ref().map(|facts| facts.structural_rank),
                solver_rank(&solver, &a)
            );
        }
        if let (Ok(first), Ok(second)) = (first, second) {
            assert!(agreed([Ok(first), Ok(second)]).relative_residual <= 1.0);
        }
    }
}

/// What one process finds out, where anything is left to be chosen.
fn solver_rank(solver: &Solver, a: &Csr<f64>) -> Option<usize> {
    solver.solve(a, &rhs(a)).unwrap().report.plan.facts.map(|facts| facts.structural_rank)
}

/// Each rank has a hierarchy of its own rows, with the smoother by name on both levels.
#[test]
fn two_levels_on_two_ranks() {
    let a = poisson();
    let b = rhs(&a);
    for name in ["ic0", "ssor"] {
        let solver = Solver::new().method(Method::Cg).preconditioner(name.parse().unwrap());
        let [(alone, of_one), (x, of_two)] =
            [STORES, PAIRS].map(|stores| solve_in((stores, CUT), &solver, &a, &b));
        let (of_one, of_two) = (agreed(of_one), agreed(of_two));
        of_two.require_converged().unwrap();
        assert!(residual(&a, &x, &b) <= 1e-8 && residual(&a, &alone, &b) <= 1e-8);
        assert!(
            of_two.iterations < of_one.iterations,
            "{name}: {} and {}",
            of_two.iterations,
            of_one.iterations
        );
        assert!(of_two.layout.contains("pairs: the rows of each rank"), "{}", of_two.layout);
    }
}
