//! A system in the order of the caller's rows: any operator, with a preconditioner made from a matrix.

use super::method::workspace;
use super::{Engine, Run, SolverSpace};
use crate::choice::Method;
use crate::error::{BackendError, SetupError, SolveError};
use crate::krylov::{Finish, KrylovMethod, System};
use crate::matrix::Csr;
use crate::operator::{DynPreconditioner, LinearOperator, Preconditioner};

type Factor<S> = DynPreconditioner<S, Csr<f64>>;

/// M and the workspace of a method; A is the caller's.
pub struct InOrder<S: SolverSpace, A: LinearOperator<S>> {
    m: Factor<S>,
    workspace: Box<dyn KrylovMethod<S, A, Factor<S>> + Send>,
}

impl<S: SolverSpace, A: LinearOperator<S, Scratch: Send> + 'static> InOrder<S, A> {
    /// Allocates the workspace.
    pub fn new(space: &S, a: &A, m: Factor<S>, method: Method) -> Result<Self, BackendError> {
        let workspace = workspace(method, System { space, a, m: &m })?;
        Ok(InOrder { m, workspace })
    }
}

impl<S: SolverSpace, A: LinearOperator<S, Scratch: Send> + 'static> Engine<S, A> for InOrder<S, A> {
    fn refactor(&mut self, space: &S, source: &Csr<f64>, shift: f64) -> Result<(), SetupError> {
        self.m.set_shift(shift);
        self.m.refactor(space, source)
    }

    fn use_method(&mut self, space: &S, a: &A, method: Method) -> Result<(), SolveError> {
        self.workspace = workspace(method, System { space, a, m: &self.m })?;
        Ok(())
    }

    fn begin(&mut self, _: &S, _: &A, _: &S::Vector, _: &S::Vector, _: bool) -> Result<(), SolveError> {
        Ok(())
    }

    fn run(&mut self, run: Run<'_, S, A>) -> Result<Finish<f64>, BackendError> {
        let Run { start, space, a, b, x, stop, observer } = run;
        self.workspace.run(start, System { space, a, m: &self.m }, b, x, stop, observer)
    }

    fn restore_kept(&self, space: &S, x: &mut S::Vector) -> Result<bool, BackendError> {
        match self.workspace.kept() {
            Some((kept, _)) => space.copy(kept, x).map(|()| true),
            None => Ok(false),
        }
    }
}
