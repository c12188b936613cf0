//! Solves on threads of this process, the space that [`Solver`] takes by itself.

use super::options::Solver;
use super::prepared::Prepared;
use crate::block::InBlocks;
use crate::choice::Method;
use crate::engine::{Engine, InOrder, SolverSpace};
use crate::error::SolveError;
use crate::matrix::Csr;
use crate::observe::Observer;
use crate::operator::{DynPreconditioner, LinearOperator};
use crate::plan::SolvePlan;
use crate::precond::ByRows;
use crate::report::Report;
use crate::setup::LayoutBuilder;
use crate::sliced::InSlices;
use crate::space::{Threads, cores};
use crate::structured::OnGrid;

/// The layouts of systems on threads, in the order in which they are tried.
pub const LAYOUTS: &[&dyn LayoutBuilder<Threads<f64>>] = &[&OnGrid, &InBlocks, &InSlices, &ByRows];

impl SolverSpace for Threads<f64> {
    fn host(&self) -> &Threads<f64> {
        self
    }

    fn engine_by_rows(
        &self,
        a: &Csr<f64>,
        m: DynPreconditioner<Self, Csr<f64>>,
        method: Method,
    ) -> Result<Box<dyn Engine<Self, Csr<f64>>>, SolveError> {
        Ok(Box::new(InOrder::new(self, a, m, method)?))
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

    /// What a solve of this matrix will do, and why. It analyzes, and factors nothing.
    pub fn plan(&self, a: &Csr<f64>) -> Result<SolvePlan, SolveError> {
        let threads = self.threads.unwrap_or_else(cores);
        let space = Threads::for_rows(threads, a.nrows());
        self.plan_on(&space, LAYOUTS, a.nrows(), a)
    }

    /// Analyzes and factors A, and allocates what solving needs.
    pub fn prepare(&self, a: &Csr<f64>) -> Result<Prepared<Csr<f64>>, SolveError> {
        self.prepare_with(a, a)
    }

    /// Analyzes and factors for an A that is only applied (`LinearOperator`), with a matrix for the preconditioner and the choices. Where
    /// A is a matrix too, of any other pattern, both are stored in the order that suits the factor.
    pub fn prepare_with<A: LinearOperator<Threads<f64>, Scratch: Send> + 'static>(
        &self,
        a: &A,
        matrix: &Csr<f64>,
    ) -> Result<Prepared<A>, SolveError> {
        let threads = self.threads.unwrap_or_else(cores);
        self.prepare_on(Threads::for_rows(threads, matrix.nrows()), LAYOUTS, a, matrix)
    }
}

impl<A: LinearOperator<Threads<f64>, Scratch: Send> + 'static> Prepared<A> {
    /// Solves A x = b from the guess in `x`. The answer is judged by the residual recomputed from A, x and b. A matrix with other
    /// values than those factored is refused, unless [`Solver::allow_stale_factor`] says otherwise. Where the solve does not
    /// converge, `x` is that one of the last iterate, the best one kept, the guess and 0 which has the least residual.
    pub fn solve(
        &mut self,
        a: &A,
        b: &[f64],
        x: &mut Vec<f64>,
        observer: &mut impl Observer<f64>,
    ) -> Result<Report, SolveError> {
        self.solve_owned(a, b.to_vec(), x, observer)
    }
}
