//! A system in the order of the caller's rows: any operator, with a preconditioner made from a matrix.

use super::{Engine, Run, SolverSpace};
use crate::choice::Method;
use crate::error::{BackendError, SetupError, SolveError};
use crate::krylov::{AnyMethod, Finish, KrylovMethod, System};
use crate::matrix::Csr;
use crate::operator::{DynPreconditioner, LinearOperator, Preconditioner};

pub(super) type Factor<S> = DynPreconditioner<S, Csr<f64>>;

/// M; A is the caller's, and may borrow what it likes.
pub struct InOrder<S: SolverSpace> {
    m: Factor<S>,
}

impl<S: SolverSpace> InOrder<S> {
    /// With this preconditioner.
    pub fn new(m: Factor<S>) -> Self {
        InOrder { m }
    }
}

/// The workspace of a method that is chosen at run time.
impl<S: SolverSpace, A: LinearOperator<S>> Engine<S, A> for InOrder<S> {
    type Workspace = AnyMethod<S, A, Factor<S>>;

    fn refactor(&mut self, space: &S, source: &Csr<f64>, shift: f64) -> Result<(), SetupError> {
        self.m.set_shift(shift);
        self.m.refactor(space, source)
    }

    fn workspace(&self, space: &S, a: &A, method: Method) -> Result<Self::Workspace, SolveError> {
        Ok(AnyMethod::new(method, System { space, a, m: &self.m })?)
    }

    fn begin(
        &self,
        _: &mut Self::Workspace,
        _: &S,
        _: &A,
        _: (&S::Vector, &S::Vector),
        _: bool,
    ) -> Result<(), SolveError> {
        Ok(())
    }

    fn run(&self, workspace: &mut Self::Workspace, run: Run<'_, S, A>) -> Result<Finish<f64>, BackendError> {
        let Run { start, space, a, b, x, stop, observer } = run;
        workspace.run(start, System { space, a, m: &self.m }, b, x, stop, observer)
    }

    fn restore_kept(
        &self,
        workspace: &Self::Workspace,
        space: &S,
        x: &mut S::Vector,
    ) -> Result<bool, BackendError> {
        match workspace.kept() {
            Some((kept, _)) => space.copy(kept, x).map(|()| true),
            None => Ok(false),
        }
    }
}
