//! A system in the order of the caller's rows: any operator, with a preconditioner made from a matrix.

use super::{Engine, EngineWorkspace, Operand, Run, SolverSpace, own, own_ref};
use crate::error::{BackendError, SetupError, SolveError};
use crate::krylov::{Finish, KrylovMethod, System, for_method};
use crate::matrix::Csr;
use crate::operator::{AnyScratch, DynPreconditioner, LinearOperator, Preconditioner};
use crate::options::Method;

/// M; A is the caller's, and may borrow what it likes.
pub struct InOrder<S: SolverSpace> {
    m: DynPreconditioner<S, Csr<f64>>,
}

impl<S: SolverSpace> InOrder<S> {
    /// With this preconditioner.
    pub fn new(m: DynPreconditioner<S, Csr<f64>>) -> Self {
        InOrder { m }
    }
}

type Iterating<S> = Box<dyn KrylovMethod<S> + Send>;

impl<S: SolverSpace> Engine<S> for InOrder<S> {
    fn refactor(&mut self, space: &S, source: &Csr<f64>, shift: f64) -> Result<(), SetupError> {
        self.m.set_shift(shift);
        self.m.refactor(space, source)
    }

    fn workspace(&self, space: &S, a: Operand<'_, S>, method: Method) -> Result<EngineWorkspace, SolveError> {
        let system = System { space, a: a.operator(space)?, m: &self.m };
        Ok(Box::new(for_method(method, system)?))
    }

    fn begin(
        &self,
        _: &mut EngineWorkspace,
        _: &S,
        _: Operand<'_, S>,
        _: (&S::Vector, &S::Vector),
        _: bool,
    ) -> Result<(), SolveError> {
        Ok(())
    }

    fn run(&self, workspace: &mut EngineWorkspace, run: Run<'_, S>) -> Result<Finish<f64>, BackendError> {
        let Run { start, space, a, b, x, stop, observer } = run;
        let system = System { space, a: a.operator(space)?, m: &self.m };
        own::<Iterating<S>>(workspace)?.run(start, system, b, x, stop, observer)
    }

    fn application(&self, space: &S) -> Result<EngineWorkspace, BackendError> {
        Ok(Box::new(self.m.scratch(space)?))
    }

    fn precondition(
        &self,
        application: &mut EngineWorkspace,
        space: &S,
        r: &S::Vector,
        z: &mut S::Vector,
    ) -> Result<(), BackendError> {
        self.m.apply(space, r, z, own::<AnyScratch>(application)?)
    }

    fn restore_kept(
        &self,
        workspace: &EngineWorkspace,
        space: &S,
        x: &mut S::Vector,
    ) -> Result<bool, BackendError> {
        match own_ref::<Iterating<S>>(workspace)?.kept() {
            Some((kept, _)) => space.copy(kept, x).map(|()| true),
            None => Ok(false),
        }
    }
}
