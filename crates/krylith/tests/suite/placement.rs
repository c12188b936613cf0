//! A store of one's own: rows in reverse order. It is a matrix in that order, a factor of it, and one line in a list of stores; every other
//! preconditioner, the solver, certification and report are the library's.

use krylith::gallery::Problem;
use krylith::observe::{Direction, Iteration, Observer};
use krylith::operator::{LinearOperator, Preconditioner, Recipe};
use krylith::placement::{KeptMatrix, Order, Placed, Placement, SharedPlacement, Storage};
use krylith::plan::StorageKind;
use krylith::precond::{Incomplete, IncompleteFactor};
use krylith::setup::{Memory, SetupContext, SetupRecorder};
use krylith::space::Threads;
use krylith::store::{FindStore, Found, Made, Needs, OverStore, Request, Role, Store};
use krylith::transform::Ordering;
use krylith::{BackendError, Csr, Layout, Method, PrecondSpec, SetupError, SolveError, Solver};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

type Space = Threads<f64>;

/// Row i at place n − 1 − i.
struct Reverse(usize);

// SAFETY: units are chunks of a hundred places; every row is at one place.
#[allow(unsafe_code)]
unsafe impl Order for Reverse {
    fn rows(&self) -> usize {
        self.0
    }
    fn places(&self) -> usize {
        self.0
    }
    fn units(&self) -> usize {
        self.0.div_ceil(100)
    }
    fn span(&self, unit: usize) -> Range<usize> {
        100 * unit..(100 * unit + 100).min(self.0)
    }
    fn for_each_row(&self, unit: usize, mut visit: impl FnMut(usize, usize)) {
        self.span(unit).for_each(|place| visit(self.0 - 1 - place, place));
    }
    fn row_at(&self, place: usize) -> Option<usize> {
        (place < self.0).then(|| self.0 - 1 - place)
    }
}

fn reversed(a: &Csr<f64>) -> Csr<f64> {
    let n = a.nrows();
    let last = |i: usize| n - 1 - i;
    let (mut rows, mut columns, mut values) = (vec![], vec![], vec![]);
    for i in 0..n {
        let (js, vs) = a.row(last(i));
        for (&j, &v) in js.iter().zip(vs).rev() {
            rows.push(i as u32);
            columns.push(last(j as usize) as u32);
            values.push(v);
        }
    }
    Csr::from_triplets(n, n, &rows, &columns, &values).unwrap()
}

/// A matrix in that order.
struct Backwards(Csr<f64>);

impl LinearOperator<Space> for Backwards {
    type Scratch = ();
    fn domain(&self) -> usize {
        self.0.ncols()
    }
    fn range(&self) -> usize {
        self.0.nrows()
    }
    fn scratch(&self, _: &Space) -> Result<(), BackendError> {
        Ok(())
    }
    fn apply(&self, space: &Space, x: &Vec<f64>, y: &mut Vec<f64>, _: &mut ()) -> Result<(), BackendError> {
        self.0.apply(space, x, y, &mut ())
    }
    fn apply_dot(
        &self,
        space: &Space,
        x: &Vec<f64>,
        y: &mut Vec<f64>,
        _: &mut (),
    ) -> Result<f64, BackendError> {
        self.0.apply_dot(space, x, y, &mut ())
    }
}

impl Storage<Space> for Backwards {
    fn require(&self, a: &Csr<f64>) -> Result<(), SetupError> {
        if reversed(a).pattern() == self.0.pattern() { Ok(()) } else { Err(SetupError::PatternChanged) }
    }
    fn set(&mut self, _: &Space, a: &Csr<f64>) -> Result<(), SetupError> {
        self.require(a)?;
        self.0 = reversed(a);
        Ok(())
    }
    fn holds(&self, _: &Space, a: &Csr<f64>) -> bool {
        reversed(a) == self.0
    }
    fn with_values_of(&self, _: &Space, a: &Csr<f64>) -> Result<Self, SetupError> {
        Ok(Backwards(reversed(a)))
    }
    fn bytes(&self) -> usize {
        self.0.bytes()
    }
}

/// A factor of such a matrix.
struct Factor(IncompleteFactor<f64>);

impl LinearOperator<Space> for Factor {
    type Scratch = <IncompleteFactor<f64> as LinearOperator<Space>>::Scratch;
    fn domain(&self) -> usize {
        self.0.domain()
    }
    fn range(&self) -> usize {
        self.0.range()
    }
    fn scratch(&self, space: &Space) -> Result<Self::Scratch, BackendError> {
        self.0.scratch(space)
    }
    fn apply(
        &self,
        space: &Space,
        x: &Vec<f64>,
        z: &mut Vec<f64>,
        scratch: &mut Self::Scratch,
    ) -> Result<(), BackendError> {
        self.0.apply(space, x, z, scratch)
    }
}

impl Preconditioner<Space, Backwards> for Factor {
    fn refactor(&mut self, space: &Space, a: &Backwards) -> Result<(), SetupError> {
        self.0.refactor(space, &a.0)
    }
    fn set_shift(&mut self, shift: f64) -> bool {
        Preconditioner::<Space, Csr<f64>>::set_shift(&mut self.0, shift)
    }
}

/// Rows in reverse, for any system.
struct InReverse;

impl FindStore<Space> for InReverse {
    fn name(&self) -> &'static str {
        "reverse"
    }

    fn kind(&self) -> StorageKind {
        StorageKind::Rows
    }

    fn find(
        &self,
        setup: &SetupContext<'_, Space>,
        request: &Request<'_>,
        _: &mut SetupRecorder,
    ) -> Result<Found<Space>, SolveError> {
        let recipe = match request.needs {
            Needs::Triangles(recipe) => Some(recipe),
            Needs::Nothing | Needs::OrderOfA | Needs::Products(_) => None,
            _ => return Ok(Found::Refused("no blocks".into())),
        };
        Ok(match setup.a {
            Some(_) => Found::Store(Box::new(ReverseStore { rows: setup.source.nrows(), recipe })),
            None => Found::Refused("only matrices".into()),
        })
    }
}

struct ReverseStore {
    rows: usize,
    /// Of the factor that was needed.
    recipe: Option<Incomplete>,
}

impl Store<Space> for ReverseStore {
    fn kind(&self) -> StorageKind {
        StorageKind::Rows
    }

    fn memory(&self) -> Memory {
        Memory::placed("in reverse".into(), self.rows, self.rows, 0, 0)
    }

    fn placement(&self) -> Option<SharedPlacement<Space>> {
        Some(Arc::new(Placed(Arc::new(Reverse(self.rows)))))
    }

    fn keep(
        &self,
        _: &SetupContext<'_, Space>,
        _: Role,
        matrix: &Csr<f64>,
        _: &mut SetupRecorder,
    ) -> Result<KeptMatrix<Space>, SetupError> {
        Ok(KeptMatrix::new(Backwards(reversed(matrix))))
    }

    fn has_sweeps(&self) -> bool {
        self.recipe.is_some()
    }

    fn triangles(
        &self,
        setup: &SetupContext<'_, Space>,
        request: &Request<'_>,
        source: Option<&KeptMatrix<Space>>,
        recorder: &mut SetupRecorder,
    ) -> Result<Made<Space>, SolveError> {
        let (recipe, source) = (self.recipe.unwrap(), source.and_then(KeptMatrix::get).unwrap());
        let Backwards(reversed) = source;
        let mut m = Factor(recorder.analyzing(|| recipe.analyze(setup.space, reversed))?.allocate());
        let shift = recorder.factor_with(setup.space, setup.attempts(request.kind), source, &mut m)?;
        let (nnz, bytes) = (m.0.nnz(), m.0.bytes());
        Ok(Made { shift, ..Made::new(OverStore::new::<Backwards>(m), nnz, bytes) })
    }

    fn adopt(
        &self,
        setup: &SetupContext<'_, Space>,
        made: Made<Space>,
        _: &mut SetupRecorder,
    ) -> Result<Made<Space>, SolveError> {
        Ok(made.placed(setup.space, self.placement())?)
    }
}

static STORES: &[&dyn FindStore<Space>] = &[&InReverse];

fn problem(name: &str) -> Csr<f64> {
    name.parse::<Problem>().unwrap().generate().unwrap()
}

fn rhs(n: usize) -> Vec<f64> {
    (0..n).map(|i| 1.0 + ((i * 37) as f64).sin()).collect()
}

/// The iteration on the reversed system, bit for bit.
#[test]
fn rows_in_reverse() {
    for (name, method) in [("jump3d:9", Method::Cg), ("convection3d:9", Method::BiCgStab)] {
        let a = problem(name);
        let b = rhs(a.nrows());
        let solver = Solver::new().method(method);
        let prepared = solver.prepare_on(Threads::new(2), STORES, &a, &a).unwrap();
        let mut x = vec![0.0; a.nrows()];
        let report = prepared.solve(&a, &b, &mut x).unwrap();
        report.require_converged().unwrap();
        assert_eq!(report.layout, "in reverse");
        let backwards = reversed(&a);
        let b: Vec<f64> = b.into_iter().rev().collect();
        let solution = solver.layout(Layout::Rows).threads(1).solve(&backwards, &b).unwrap();
        assert_eq!(solution.report.iterations, report.iterations, "{name}");
        assert!(solution.x.iter().rev().eq(&x), "{name}");
    }
}

/// The store knows incomplete factors alone; the others come to it from rows.
#[test]
fn every_preconditioner_is_applied_there() {
    let a = problem("jump3d:9");
    let b = rhs(a.nrows());
    let names = ["none", "jacobi", "ssor(1.2)", "ic1", "mic0", "ict(0.01)", "fsai", "cholesky", "ldlt"];
    for name in names {
        let solver = Solver::new().method(Method::Cg).preconditioner(name.parse().unwrap());
        let prepared = solver.prepare_on(Threads::new(2), STORES, &a, &a).unwrap();
        let mut x = vec![0.0; a.nrows()];
        let report = prepared.solve(&a, &b, &mut x).unwrap();
        report.require_converged().unwrap();
        assert!(report.layout.starts_with("in reverse"), "{name}: {}", report.layout);
        let usual = solver.layout(Layout::Rows).solve(&a, &b).unwrap().report;
        assert!(report.iterations.abs_diff(usual.iterations) <= 1 + usual.iterations / 10, "{name}");
    }
}

/// Values change, a factor is made from another matrix, and rows are reordered before they are reversed.
#[test]
fn everything_else_comes_with_it() {
    let mut a = problem("jump3d:9");
    let (b, mut x) = (rhs(a.nrows()), vec![0.0; a.nrows()]);
    let mut prepared = Solver::new().prepare_on(Threads::new(2), STORES, &a, &a).unwrap();
    a.values_mut().iter_mut().for_each(|v| *v *= 3.0);
    assert!(matches!(prepared.solve(&a, &b, &mut x), Err(SolveError::StaleFactor)));
    prepared.refactor(&a).unwrap();
    prepared.solve(&a, &b, &mut x).unwrap().require_converged().unwrap();
    // Bad pivots are shifted away and named by their row of A.
    let mut bad = a.clone();
    let k = bad.pattern().find(200, 200).unwrap();
    bad.values_mut()[k] = -1.0;
    let solver = Solver::new().method(Method::Cg).preconditioner(PrecondSpec::ic(0)).reorder(Ordering::Rcm);
    let prepared = solver.prepare_on(Threads::new(1), STORES, &a, &a).unwrap();
    let report = prepared.solve(&a, &b, &mut x).unwrap();
    report.require_converged().unwrap();
    assert!(report.ordering.contains("rcm") && report.layout == "in reverse", "{report:?}");
    let placement = Placed(Arc::new(Reverse(7)));
    assert_eq!(Placement::<Space>::user_row(&placement, 6), Some(0));
}

/// p, A p and pᵀ A p of every step.
#[derive(Default)]
struct Directions {
    seen: Vec<(Vec<f64>, Vec<f64>, f64)>,
    iterations: usize,
}

impl Observer<f64> for Directions {
    fn iterated(&mut self, iteration: &Iteration<f64>) -> ControlFlow<()> {
        self.iterations = iteration.index;
        ControlFlow::Continue(())
    }
    fn wants_directions(&self) -> bool {
        true
    }
    fn direction(&mut self, direction: &Direction<'_, f64, [f64]>) {
        assert_eq!(direction.index, self.iterations + 1);
        self.seen.push((direction.p.to_vec(), direction.a_p.to_vec(), direction.curvature));
    }
}

fn dot(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| x * y).sum()
}

/// Directions are conjugate and in the order of A in every placement; where they are wanted, products are formed.
#[test]
fn directions_are_seen_in_the_order_of_a() {
    let plain = problem("poisson3d:20");
    let mut small = plain.clone();
    small.values_mut().iter_mut().for_each(|v| *v *= 1e-150);
    let solver = Solver::new().method(Method::Cg).preconditioner(PrecondSpec::ic(0)).threads(2);
    let cases = [
        (&plain, solver.clone(), "structured"),
        (&plain, solver.clone().layout(Layout::Slices), "slices"),
        (&plain, solver.clone().layout(Layout::Rows), "rows as given"),
        (&plain, solver.clone().reorder(Ordering::Rcm), ""),
        (&small, solver.clone(), "structured"),
    ];
    for (a, solver, layout) in cases {
        let (b, mut x) = (rhs(a.nrows()), vec![0.0; a.nrows()]);
        let prepared = solver.prepare(a).unwrap();
        let without = prepared.solve(a, &b, &mut x).unwrap();
        without.require_converged().unwrap();
        assert_eq!(without.layout.contains("Eisenstat"), layout == "structured", "{}", without.layout);
        x.fill(0.0);
        let mut directions = Directions::default();
        let report = prepared.solve_observed(a, &b, &mut x, &mut directions).unwrap();
        report.require_converged().unwrap();
        assert!(report.layout.contains(layout) && !report.layout.contains("Eisenstat"), "{}", report.layout);
        assert!(report.iterations.abs_diff(without.iterations) <= 1);
        assert_eq!(directions.seen.len(), report.iterations);
        let mut product = vec![0.0; a.nrows()];
        for (i, (p, a_p, curvature)) in directions.seen.iter().enumerate() {
            a.mul_vec(p, &mut product).unwrap();
            let size = product.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
            assert!(product.iter().zip(a_p).all(|(e, f)| (e - f).abs() <= 1e-13 * size), "A p {i}");
            assert!((curvature / dot(p, a_p) - 1.0).abs() < 1e-12, "{curvature} and {}", dot(p, a_p));
            if let Some((q, _, of_q)) = directions.seen.get(i + 1) {
                assert!(
                    dot(q, a_p).abs() <= 1e-9 * (curvature * of_q).sqrt(),
                    "{i} is not conjugate to the next"
                );
            }
        }
        // The next solve, without an observer, runs as before.
        let again = prepared.solve(a, &b, &mut x).unwrap();
        assert_eq!(again.layout, without.layout);
    }
}
