//! An engine for matrices whose type, and that of its workspace, are erased.

use super::{Engine, Run};
use crate::choice::Method;
use crate::error::{BackendError, SetupError, SolveError};
use crate::krylov::Finish;
use crate::matrix::Csr;
use crate::space::Space;
use std::any::Any;

/// The object-safe form of [`Engine`]: the workspace is an `Any`.
trait Erased<S: Space>: Send + Sync {
    fn refactor(&mut self, space: &S, source: &Csr<f64>, shift: f64) -> Result<(), SetupError>;
    fn workspace(&self, space: &S, a: &Csr<f64>, method: Method) -> Result<Box<dyn Any + Send>, SolveError>;
    fn begin(
        &self,
        workspace: &mut dyn Any,
        space: &S,
        a: &Csr<f64>,
        vectors: (&S::Vector, &S::Vector),
        directions: bool,
    ) -> Result<(), SolveError>;
    fn run(&self, workspace: &mut dyn Any, run: Run<'_, S, Csr<f64>>) -> Result<Finish<f64>, BackendError>;
    fn restore_kept(&self, workspace: &dyn Any, space: &S, x: &mut S::Vector) -> Result<bool, BackendError>;
    fn is_scaled(&self) -> bool;
    fn is_without_product(&self, workspace: &dyn Any) -> bool;
}

fn foreign() -> BackendError {
    BackendError::Failed { what: "the workspace belongs to another engine".into() }
}

impl<S: Space, E: Engine<S, Csr<f64>, Workspace: Any + Send> + Send + Sync> Erased<S> for E {
    fn refactor(&mut self, space: &S, source: &Csr<f64>, shift: f64) -> Result<(), SetupError> {
        Engine::refactor(self, space, source, shift)
    }

    fn workspace(&self, space: &S, a: &Csr<f64>, method: Method) -> Result<Box<dyn Any + Send>, SolveError> {
        Ok(Box::new(Engine::workspace(self, space, a, method)?))
    }

    fn begin(
        &self,
        workspace: &mut dyn Any,
        space: &S,
        a: &Csr<f64>,
        vectors: (&S::Vector, &S::Vector),
        directions: bool,
    ) -> Result<(), SolveError> {
        let own = workspace.downcast_mut().ok_or_else(foreign)?;
        Engine::begin(self, own, space, a, vectors, directions)
    }

    fn run(&self, workspace: &mut dyn Any, run: Run<'_, S, Csr<f64>>) -> Result<Finish<f64>, BackendError> {
        Engine::run(self, workspace.downcast_mut().ok_or_else(foreign)?, run)
    }

    fn restore_kept(&self, workspace: &dyn Any, space: &S, x: &mut S::Vector) -> Result<bool, BackendError> {
        Engine::restore_kept(self, workspace.downcast_ref().ok_or_else(foreign)?, space, x)
    }

    fn is_scaled(&self) -> bool {
        Engine::is_scaled(self)
    }

    fn is_without_product(&self, workspace: &dyn Any) -> bool {
        workspace.downcast_ref().is_some_and(|own| Engine::is_without_product(self, own))
    }
}

/// An engine for matrices, chosen at run time.
pub struct DynEngine<S: Space>(Box<dyn Erased<S>>);

impl<S: Space> DynEngine<S> {
    /// Erases the type of an engine.
    pub fn new<E: Engine<S, Csr<f64>, Workspace: Any + Send> + Send + Sync + 'static>(engine: E) -> Self {
        DynEngine(Box::new(engine))
    }
}

impl<S: Space> Engine<S, Csr<f64>> for DynEngine<S> {
    type Workspace = Box<dyn Any + Send>;

    fn refactor(&mut self, space: &S, source: &Csr<f64>, shift: f64) -> Result<(), SetupError> {
        self.0.refactor(space, source, shift)
    }

    fn workspace(&self, space: &S, a: &Csr<f64>, method: Method) -> Result<Box<dyn Any + Send>, SolveError> {
        self.0.workspace(space, a, method)
    }

    fn begin(
        &self,
        workspace: &mut Box<dyn Any + Send>,
        space: &S,
        a: &Csr<f64>,
        vectors: (&S::Vector, &S::Vector),
        directions: bool,
    ) -> Result<(), SolveError> {
        self.0.begin(workspace.as_mut(), space, a, vectors, directions)
    }

    fn run(
        &self,
        workspace: &mut Box<dyn Any + Send>,
        run: Run<'_, S, Csr<f64>>,
    ) -> Result<Finish<f64>, BackendError> {
        self.0.run(workspace.as_mut(), run)
    }

    fn restore_kept(
        &self,
        workspace: &Box<dyn Any + Send>,
        space: &S,
        x: &mut S::Vector,
    ) -> Result<bool, BackendError> {
        self.0.restore_kept(workspace.as_ref(), space, x)
    }

    fn is_scaled(&self) -> bool {
        self.0.is_scaled()
    }

    fn is_without_product(&self, workspace: &Box<dyn Any + Send>) -> bool {
        self.0.is_without_product(workspace.as_ref())
    }
}
