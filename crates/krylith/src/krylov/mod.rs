//! Krylov methods, one file each, generic over [`Space`].

mod cg;

pub use cg::Cg;

use crate::operator::LinearOperator;
use crate::space::Space;
use crate::stop::StopReason;

/// What a solve runs on: a space, the operator A and the preconditioner M⁻¹, all shared.
pub struct System<'a, S, A, M> {
    /// Where the vectors live.
    pub space: &'a S,
    /// y = A x.
    pub a: &'a A,
    /// y = M⁻¹ x.
    pub m: &'a M,
}

impl<S, A, M> Clone for System<'_, S, A, M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S, A, M> Copy for System<'_, S, A, M> {}

impl<S: Space, A: LinearOperator<S>, M: LinearOperator<S>> System<'_, S, A, M> {
    /// A square and M⁻¹ of the same layout.
    fn check(&self) -> Result<S::Layout, crate::BackendError> {
        let layout = self.a.domain();
        crate::space::require_same("range and domain of A", &self.a.range(), &layout)?;
        crate::space::require_same("domain of M⁻¹ and of A", &self.m.domain(), &layout)?;
        crate::space::require_same("range of M⁻¹ and domain of A", &self.m.range(), &layout)?;
        Ok(layout)
    }
}

/// How an iteration ended, by its own recurrence: no residual has been recomputed.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Status {
    /// The stopping criterion ended it.
    Stopped(StopReason),
    /// The observer ended it.
    Interrupted,
    /// pᴴ A p ≤ 0: A is not positive definite.
    IndefiniteOperator,
    /// rᴴ M⁻¹ r ≤ 0: M is not positive definite.
    IndefinitePreconditioner,
    /// An infinite number or NaN came up.
    NotFinite,
}

/// The end of an iteration.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Finish<R> {
    /// How it ended.
    pub status: Status,
    /// Iterations done.
    pub iterations: usize,
    /// ‖r‖₂ of the last one, as the recurrence has it.
    pub residual_norm: R,
}
