//! Either of the two: a matrix stored by the engine, or the caller's operator as it is.

use super::in_order::Factor;
use super::{DynEngine, Engine, InOrder, Run, SolverSpace};
use crate::choice::Method;
use crate::error::{BackendError, SetupError, SolveError};
use crate::krylov::{AnyMethod, Finish};
use crate::matrix::Csr;
use crate::operator::LinearOperator;
use std::any::Any;

/// The engine of a prepared system.
pub(crate) enum AnyEngine<S: SolverSpace> {
    /// For an operator that is a matrix.
    Stored(DynEngine<S>),
    /// For any operator.
    InOrder(InOrder<S>),
}

/// What it writes.
pub(crate) enum AnyWorkspace<S: SolverSpace, A: LinearOperator<S>> {
    Stored(Box<dyn Any + Send>),
    InOrder(Box<AnyMethod<S, A, Factor<S>>>),
}

fn matrix<S: SolverSpace, A: LinearOperator<S>>(a: &A) -> Result<&Csr<f64>, BackendError> {
    a.matrix().ok_or_else(|| BackendError::Failed { what: "A was a matrix when it was prepared".into() })
}

fn foreign<T>() -> Result<T, BackendError> {
    Err(BackendError::Failed { what: "the workspace belongs to another engine".into() })
}

impl<S: SolverSpace, A: LinearOperator<S>> Engine<S, A> for AnyEngine<S> {
    type Workspace = AnyWorkspace<S, A>;

    fn refactor(&mut self, space: &S, source: &Csr<f64>, shift: f64) -> Result<(), SetupError> {
        match self {
            AnyEngine::Stored(engine) => engine.refactor(space, source, shift),
            AnyEngine::InOrder(engine) => Engine::<S, A>::refactor(engine, space, source, shift),
        }
    }

    fn workspace(&self, space: &S, a: &A, method: Method) -> Result<AnyWorkspace<S, A>, SolveError> {
        Ok(match self {
            AnyEngine::Stored(engine) => AnyWorkspace::Stored(engine.workspace(space, matrix(a)?, method)?),
            AnyEngine::InOrder(engine) => {
                AnyWorkspace::InOrder(Box::new(engine.workspace(space, a, method)?))
            }
        })
    }

    fn begin(
        &self,
        workspace: &mut AnyWorkspace<S, A>,
        space: &S,
        a: &A,
        vectors: (&S::Vector, &S::Vector),
        directions: bool,
    ) -> Result<(), SolveError> {
        match (self, workspace) {
            (AnyEngine::Stored(engine), AnyWorkspace::Stored(own)) => {
                engine.begin(own, space, matrix(a)?, vectors, directions)
            }
            (AnyEngine::InOrder(engine), AnyWorkspace::InOrder(own)) => {
                engine.begin(own, space, a, vectors, directions)
            }
            _ => Ok(foreign()?),
        }
    }

    fn run(
        &self,
        workspace: &mut AnyWorkspace<S, A>,
        run: Run<'_, S, A>,
    ) -> Result<Finish<f64>, BackendError> {
        match (self, workspace) {
            (AnyEngine::Stored(engine), AnyWorkspace::Stored(own)) => {
                let Run { start, space, a, b, x, stop, observer } = run;
                engine.run(own, Run { start, space, a: matrix(a)?, b, x, stop, observer })
            }
            (AnyEngine::InOrder(engine), AnyWorkspace::InOrder(own)) => engine.run(own, run),
            _ => foreign(),
        }
    }

    fn restore_kept(
        &self,
        workspace: &AnyWorkspace<S, A>,
        space: &S,
        x: &mut S::Vector,
    ) -> Result<bool, BackendError> {
        match (self, workspace) {
            (AnyEngine::Stored(engine), AnyWorkspace::Stored(own)) => engine.restore_kept(own, space, x),
            (AnyEngine::InOrder(engine), AnyWorkspace::InOrder(own)) => {
                Engine::<S, A>::restore_kept(engine, own, space, x)
            }
            _ => foreign(),
        }
    }

    fn is_scaled(&self) -> bool {
        matches!(self, AnyEngine::Stored(engine) if engine.is_scaled())
    }

    fn is_without_product(&self, workspace: &AnyWorkspace<S, A>) -> bool {
        match (self, workspace) {
            (AnyEngine::Stored(engine), AnyWorkspace::Stored(own)) => engine.is_without_product(own),
            _ => false,
        }
    }
}
