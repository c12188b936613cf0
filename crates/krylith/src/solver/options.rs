//! The options of a solve.

use super::null_space::NullSpace;
use crate::cost::{Expected, Machine, REFERENCE};
use crate::matrix::Csr;
use crate::operator::{DefaultSpace, Preconditioner, Recipe, Symbolic};
use crate::options::{Layout, MatchingMode, Method, Precision};
use crate::plan::Fallback;
use crate::precond::PrecondSpec;
use crate::precond::registry::OwnRecipe;
use crate::schedule::Schedule;
use crate::sparsify::Sparsify;
use crate::transform::Ordering;
use std::sync::Arc;

/// Options of a solve. A method for each, which returns the options changed; what is not called keeps its default.
///
/// ```
/// use krylith::{Method, PrecondSpec, Solver};
/// let solver = Solver::new().method(Method::Gmres(50)).preconditioner(PrecondSpec::ilu(1)).rtol(1e-10);
/// # let _ = solver;
/// ```
#[derive(Debug, Clone, PartialEq)]
#[must_use = "options do nothing until something is solved with them"]
pub struct Solver {
    pub(super) method: Method,
    pub(super) preconditioner: PrecondSpec,
    pub(super) own: Option<OwnRecipe>,
    pub(super) near_null: Arc<[Vec<f64>]>,
    /// The fallbacks of a plan that was given.
    pub(super) planned: Option<Vec<Fallback>>,
    pub(super) null_space: NullSpace,
    /// These are the options for Aᵀ, and the null space is that of A.
    pub(super) is_of_transposed: bool,
    /// Whose figures predict costs.
    pub(super) machine: Arc<Machine>,
    pub(super) has_machine: bool,
    pub(super) expected: Expected,
    pub(super) schedule: Schedule,
    pub(super) layout: Layout,
    pub(super) precision: Precision,
    pub(super) reorder: Ordering,
    pub(super) matching: MatchingMode,
    pub(super) sparsify: Option<Sparsify>,
    pub(super) recover: bool,
    pub(super) shift: f64,
    pub(super) max_bytes: Option<u64>,
    pub(super) max_memory: Option<u64>,
    pub(super) allow_stale: bool,
    pub(super) profile: bool,
    pub(super) threads: Option<usize>,
    pub(super) rtol: f64,
    pub(super) atol: f64,
    pub(super) max_iterations: usize,
}

impl Default for Solver {
    fn default() -> Self {
        Solver {
            method: Method::Auto,
            preconditioner: PrecondSpec::auto(),
            own: None,
            near_null: Arc::from([]),
            planned: None,
            null_space: NullSpace::Auto,
            is_of_transposed: false,
            machine: Arc::new(REFERENCE),
            has_machine: false,
            expected: Expected::default(),
            schedule: Schedule::Auto,
            layout: Layout::Auto,
            precision: Precision::Auto,
            reorder: Ordering::Natural,
            matching: MatchingMode::Auto,
            sparsify: None,
            recover: true,
            shift: 0.0,
            max_bytes: None,
            max_memory: None,
            allow_stale: false,
            profile: false,
            threads: None,
            rtol: 1e-8,
            atol: 0.0,
            max_iterations: 10_000,
        }
    }
}

impl Solver {
    /// Default options.
    pub fn new() -> Self {
        Self::default()
    }

    /// The Krylov method; by default chosen from the matrix.
    pub fn method(mut self, method: Method) -> Self {
        self.method = method;
        self
    }

    /// The preconditioner; by default the one that [`PrecondSpec::auto`] chooses.
    pub fn preconditioner(mut self, preconditioner: PrecondSpec) -> Self {
        self.preconditioner = preconditioner;
        self
    }

    /// A preconditioner of the caller's own, made from the matrix by rows; the name is for the report. It is analyzed, factored,
    /// refactored, reordered and certified as every other, and shifted after a bad pivot if it [can be](Recipe::can_shift).
    pub fn own_preconditioner<R>(mut self, name: impl Into<Arc<str>>, recipe: R) -> Self
    where
        R: Recipe<DefaultSpace, Csr<f64>, Symbolic: 'static> + Send + Sync + 'static,
        <R::Symbolic as Symbolic<DefaultSpace, Csr<f64>>>::Factor:
            Preconditioner<DefaultSpace, Csr<f64>> + Send + Sync + 'static,
    {
        let own = OwnRecipe { name: name.into(), recipe: Arc::new(recipe) };
        self.preconditioner = PrecondSpec::own(&own);
        self.own = Some(own);
        self
    }

    /// Vectors that A takes to small ones, such as the rigid motions of an elastic body, for preconditioners that can make use of them
    /// ([`Recipe::analyze_given`]): each has as many numbers as A has columns. Nothing is concluded from them about the answer, as it is from a
    /// [`null_space`](Self::null_space).
    pub fn near_null_vectors(mut self, vectors: impl Into<Arc<[Vec<f64>]>>) -> Self {
        self.near_null = vectors.into();
        self
    }

    /// How triangular sweeps are divided among threads; by default as predicted to be fastest.
    pub fn schedule(mut self, schedule: Schedule) -> Self {
        self.schedule = schedule;
        self
    }

    /// In which order rows are taken; by default on a grid, in blocks or in slices where the matrix allows it.
    pub fn layout(mut self, layout: Layout) -> Self {
        self.layout = layout;
        self
    }

    /// The null space of a singular A; by default constants are recognised.
    ///
    /// ```
    /// use krylith::gallery::{Problem, random_vector};
    /// use krylith::{NullSpace, Solver};
    /// let a = "neumann2d:30".parse::<Problem>()?.generate()?;
    /// // A times something: it has an answer, and many.
    /// let mut b = vec![0.0; a.nrows()];
    /// a.mul_vec(&random_vector(a.nrows()), &mut b)?;
    /// let solution = Solver::new().null_space(NullSpace::Constant).solve(&a, &b)?;
    /// solution.report.require_converged()?;
    /// // The one of least norm has no mean.
    /// assert!(solution.x.iter().sum::<f64>().abs() < 1e-9);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn null_space(mut self, null_space: NullSpace) -> Self {
        self.null_space = null_space;
        self
    }

    /// The machine whose figures predict what members and methods cost; [`REFERENCE`] by default. A plan is the same wherever it is made. An
    /// error of the solve if one of the figures is not a cost ([`Machine::validate`]).
    pub fn machine(mut self, machine: Machine) -> Self {
        self.machine = Arc::new(machine);
        self.has_machine = true;
        self
    }

    /// How many right-hand sides are to be solved for with the matrix, 1 by default. Choices weigh the cost of the set-up against that of these solves.
    ///
    /// ```
    /// use krylith::{PrecondSpec, Solver, gallery::Problem};
    /// let a = "fem2d:120".parse::<Problem>()?.generate()?;
    /// assert_ne!(Solver::new().plan(&a)?.preconditioner, PrecondSpec::cholesky());
    /// // A complete factor costs more than one solve and less than fifty.
    /// assert_eq!(Solver::new().expect_solves(50).plan(&a)?.preconditioner, PrecondSpec::cholesky());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn expect_solves(mut self, solves: usize) -> Self {
        self.expected.solves = solves;
        self
    }

    /// How often the values of the matrix are to change ([`refactor`](super::Prepared::refactor)), 0 by default; the solves that are expected are those with all of them
    /// together.
    pub fn expect_refactors(mut self, refactors: usize) -> Self {
        self.expected.refactors = refactors;
        self
    }

    /// In which numbers the iteration runs and factors are stored; by default `f64`, or factors in `f32` where the preconditioner was not
    /// asked for by name and that is predicted to be faster.
    pub fn precision(mut self, precision: Precision) -> Self {
        self.precision = precision;
        self
    }

    /// The order of rows and columns in which the system is factored and iterated; x comes back in the order of A. As
    /// given by default.
    pub fn reorder(mut self, ordering: Ordering) -> Self {
        self.reorder = ordering;
        self
    }

    /// Whether columns are permuted so that large entries come to the diagonal; by default where an incomplete LU needs it.
    pub fn matching(mut self, matching: MatchingMode) -> Self {
        self.matching = matching;
        self
    }

    /// Whether the preconditioner is made from a sparser matrix than A, whose sweeps have fewer wavefronts. By default it is made from A, unless
    /// the preconditioner is chosen too and a gain of a tenth or more is predicted for the machine, which the reference never has: its one thread waits for nobody. The iteration
    /// is on A in any case.
    pub fn sparsify(mut self, sparsify: Sparsify) -> Self {
        self.sparsify = Some(sparsify);
        self
    }

    /// Whether a bad pivot is followed by a shift of the diagonal and, if none works, by the diagonal alone; `true` by default.
    /// [`Prepared::refactor`](super::Prepared::refactor) shifts too, but ends in an error if no shift works.
    pub fn recover(mut self, recover: bool) -> Self {
        self.recover = recover;
        self
    }

    /// Enlarges the diagonal by this multiple of its size (of the sizes of rows, for an incomplete LU) before it is factored, as a bad pivot
    /// would; 0 by default. For preconditioners that can be shifted; others ignore it.
    pub fn shift(mut self, shift: f64) -> Self {
        self.shift = shift;
        self
    }

    /// The most bytes that a factor may take: past this the preparation ends in an error that reports them. By default it is what
    /// the machine has free, at most a hundred times a factor without fill, and past that less fill is taken instead.
    pub fn max_factor_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = Some(bytes);
        self
    }

    /// The most bytes that everything a solve allocates may take: factor, copies of A and vectors, those of GMRES with its restart
    /// included. Past this the preparation ends in an error with the predicted bytes. Without a limit it is what the machine, the
    /// control groups and the limits of the process leave ([`available_memory`](crate::setup::available_memory)).
    pub fn max_memory(mut self, bytes: u64) -> Self {
        self.max_memory = Some(bytes);
        self
    }

    /// Lets a solve use the factor of another matrix, such as that of an earlier step; an error by default. The answer is checked
    /// against the matrix that is given, so this costs iterations, not accuracy. While
    /// A differs from what was factored, a solve keeps a copy of it in its storage, which no limit of memory counts.
    pub fn allow_stale_factor(mut self, allow: bool) -> Self {
        self.allow_stale = allow;
        self
    }

    /// Whether the report has a [`Profile`](crate::space::Profile): what products, the preconditioner and work on vectors took of the
    /// iterations; not by default. A device has one if it was opened to be timed.
    ///
    /// ```
    /// use krylith::{Solver, gallery::Problem};
    /// let a = "poisson2d:100".parse::<Problem>()?.generate()?;
    /// let report = Solver::new().profile(true).solve(&a, &vec![1.0; a.nrows()])?.report;
    /// let profile = report.profile.expect("asked for");
    /// assert!(profile.seconds() <= report.seconds.solve);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn profile(mut self, profile: bool) -> Self {
        self.profile = profile;
        self
    }

    /// Threads to use; all cores by default.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// The threads that were asked for.
    pub fn threads_asked_for(&self) -> Option<usize> {
        self.threads
    }

    /// The relative tolerance.
    pub fn tolerance(&self) -> f64 {
        self.rtol
    }

    /// Whether costs are predicted for the reference, and no machine was given.
    pub fn predicts_for_reference(&self) -> bool {
        !self.has_machine
    }

    /// ‖r‖₂ ≤ rtol ‖b‖₂ suffices; 10⁻⁸ by default.
    pub fn rtol(mut self, rtol: f64) -> Self {
        self.rtol = rtol;
        self
    }

    /// ‖r‖₂ ≤ atol suffices; 0 by default.
    pub fn atol(mut self, atol: f64) -> Self {
        self.atol = atol;
        self
    }

    /// Iterations at most; 10,000 by default.
    pub fn max_iterations(mut self, limit: usize) -> Self {
        self.max_iterations = limit;
        self
    }
}
