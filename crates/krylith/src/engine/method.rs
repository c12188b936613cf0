//! A method by name, with its workspace.

use crate::choice::Method;
use crate::error::BackendError;
use crate::krylov::{BiCgStab, Cg, Fgmres, Gmres, KrylovMethod, Minres, System};
use crate::operator::LinearOperator;
use crate::space::Space;

/// Allocates the workspace of a method for a system.
pub(super) fn workspace<S, A, M>(
    method: Method,
    system: System<'_, S, A, M>,
) -> Result<Box<dyn KrylovMethod<S, A, M> + Send>, BackendError>
where
    S: Space<Scalar: Send, Vector: Send> + 'static,
    A: LinearOperator<S, Scratch: Send> + 'static,
    M: LinearOperator<S, Scratch: Send> + 'static,
{
    Ok(match method {
        Method::Cg => Box::new(Cg::new(system)?),
        Method::Gmres(restart) => Box::new(Gmres::new(system, restart)?),
        Method::Fgmres(restart) => Box::new(Fgmres::new(system, restart)?),
        Method::Minres => Box::new(Minres::new(system)?),
        Method::BiCgStab | Method::Auto => Box::new(BiCgStab::new(system)?),
    })
}
