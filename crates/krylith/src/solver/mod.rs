//! The short way: hand over A and b, get an answer whose residual is checked.
//!
//! ```
//! let a = "poisson3d:20".parse::<krylith::gallery::Problem>()?.generate()?;
//! let b = vec![1.0; a.nrows()];
//! let solution = krylith::solve(&a, &b)?;
//! solution.report.require_converged()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`Solver`] has the choices; [`Solver::prepare`] keeps analysis, factor and workspace for many right-hand sides or for
//! matrices whose values change.
//!
//! `auto` is this rule: a matrix that equals its transpose and has a positive diagonal gets CG with IC(0), any other BiCGStab
//! with ILU(0). If CG finds the matrix indefinite or diverges, MINRES goes on without a preconditioner; if BiCGStab breaks down or
//! diverges, GMRES(30) goes on from its best x, with the diagonal if it was the factor that gave numbers that are not finite. A
//! fallback lasts for one solve: the next right-hand side begins with the prepared method again.
//!
//! A bad pivot, of any factor, is followed by a shift of the diagonal, as small as one can be found quickly, and if none works by
//! the diagonal alone, in a form that cannot fail ([`Solver::recover`] turns this off). Every such step is in `report.recovery`.

mod available;
mod build;
mod by_threshold;
mod certify;
mod choice;
mod either;
mod engine;
mod in_blocks;
mod in_slices;
mod log;
mod magnitude;
mod memory;
mod on_grid;
mod prepared;
mod recover;
mod reorder;

pub use available::available_memory;
pub use choice::{Keep, Layout, Match, Method, Precision, Preconditioning, Threshold, UnknownName};
pub use memory::Memory;
pub use prepared::Prepared;

use crate::error::SolveError;
use crate::matrix::Csr;
use crate::observe::Observer;
use crate::report::Report;
use crate::schedule::Schedule;
use crate::transform::Ordering;

/// Options of a solve.
#[derive(Debug, Clone, PartialEq)]
pub struct Solver {
    method: Method,
    preconditioner: Preconditioning,
    schedule: Schedule,
    layout: Layout,
    precision: Precision,
    reorder: Ordering,
    matching: Match,
    recover: bool,
    max_bytes: Option<u64>,
    max_memory: Option<u64>,
    allow_stale: bool,
    threads: Option<usize>,
    rtol: f64,
    atol: f64,
    max_iterations: usize,
}

impl Default for Solver {
    fn default() -> Self {
        Solver {
            method: Method::Auto,
            preconditioner: Preconditioning::Auto,
            schedule: Schedule::Auto,
            layout: Layout::Auto,
            precision: Precision::F64,
            reorder: Ordering::Natural,
            matching: Match::Auto,
            recover: true,
            max_bytes: None,
            max_memory: None,
            allow_stale: false,
            threads: None,
            rtol: 1e-8,
            atol: 0.0,
            max_iterations: 10_000,
        }
    }
}

/// An answer and its report.
#[derive(Debug, Clone, PartialEq)]
pub struct Solution {
    /// The answer; where the solve did not converge, the best iterate that was found.
    pub x: Vec<f64>,
    /// What was done and reached.
    pub report: Report,
}

/// Solves A x = b with default options: ‖b − A x‖₂ ≤ 10⁻⁸ ‖b‖₂ on all cores.
pub fn solve(a: &Csr<f64>, b: &[f64]) -> Result<Solution, SolveError> {
    Solver::new().solve(a, b)
}

impl Solver {
    /// Default options.
    pub fn new() -> Self {
        Self::default()
    }

    /// The Krylov method.
    pub fn method(mut self, method: Method) -> Self {
        self.method = method;
        self
    }

    /// The preconditioner.
    pub fn preconditioner(mut self, preconditioner: Preconditioning) -> Self {
        self.preconditioner = preconditioner;
        self
    }

    /// How triangular sweeps are divided among threads.
    pub fn schedule(mut self, schedule: Schedule) -> Self {
        self.schedule = schedule;
        self
    }

    /// In which order rows are taken.
    pub fn layout(mut self, layout: Layout) -> Self {
        self.layout = layout;
        self
    }

    /// In which numbers incomplete factors are stored.
    pub fn precision(mut self, precision: Precision) -> Self {
        self.precision = precision;
        self
    }

    /// The order of rows and columns in which the system is factored and iterated; x comes back in the order of A.
    pub fn reorder(mut self, ordering: Ordering) -> Self {
        self.reorder = ordering;
        self
    }

    /// Whether columns are permuted so that large entries come to the diagonal.
    pub fn matching(mut self, matching: Match) -> Self {
        self.matching = matching;
        self
    }

    /// Whether a bad pivot is followed by a shift of the diagonal and, if none works, by the diagonal alone; `true` unless told.
    /// [`Prepared::refactor`] shifts too, but ends in an error if no shift works.
    pub fn recover(mut self, recover: bool) -> Self {
        self.recover = recover;
        self
    }

    /// The most bytes that a factor may take: past this the preparation ends in an error that tells them. Unless told, it is what
    /// the machine has free, at most a hundred times a factor without fill, and past that less fill is taken instead.
    pub fn max_factor_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = Some(bytes);
        self
    }

    /// The most bytes that everything a solve allocates may take: factor, copies of A and vectors, those of GMRES with its restart
    /// included. Past this the preparation ends in an error with the predicted bytes. Without a limit it is what the machine, the
    /// control groups and the limits of the process leave ([`available_memory`]).
    pub fn max_memory(mut self, bytes: u64) -> Self {
        self.max_memory = Some(bytes);
        self
    }

    /// Lets a solve use the factor of another matrix, such as that of an earlier step; an error unless told. The answer is checked
    /// against the matrix that is given, so this costs iterations, not accuracy.
    pub fn allow_stale_factor(mut self, allow: bool) -> Self {
        self.allow_stale = allow;
        self
    }

    /// Threads to use; all cores unless told.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// ‖r‖₂ ≤ rtol ‖b‖₂ suffices.
    pub fn rtol(mut self, rtol: f64) -> Self {
        self.rtol = rtol;
        self
    }

    /// ‖r‖₂ ≤ atol suffices.
    pub fn atol(mut self, atol: f64) -> Self {
        self.atol = atol;
        self
    }

    /// Iterations at most.
    pub fn max_iterations(mut self, limit: usize) -> Self {
        self.max_iterations = limit;
        self
    }

    /// Solves A x = b from x = 0.
    pub fn solve(&self, a: &Csr<f64>, b: &[f64]) -> Result<Solution, SolveError> {
        let mut x = vec![0.0; a.ncols()];
        let report = self.solve_from(a, b, &mut x, &mut ())?;
        Ok(Solution { x, report })
    }

    /// Solves A x = b from the guess in `x`, watched by an observer.
    pub fn solve_from(
        &self,
        a: &Csr<f64>,
        b: &[f64],
        x: &mut Vec<f64>,
        observer: &mut impl Observer<f64>,
    ) -> Result<Report, SolveError> {
        self.prepare(a)?.solve(a, b, x, observer)
    }

    /// Analyzes and factors A, and allocates what solving needs.
    pub fn prepare(&self, a: &Csr<f64>) -> Result<Prepared<Csr<f64>>, SolveError> {
        self.prepare_with(a, a)
    }
}
