//! What iterates: A, a preconditioner M and the workspace of a method, behind one interface.
//!
//! [`PlacedEngine`] has A and M in a [store](crate::store), in its order: b and the guess are brought there before the method runs, and x
//! back after it. [`InOrder`] runs on the caller's operator and vectors. `Reordered` permutes and scales a system and hands it to
//! either. Which one it is depends on the pattern alone, never on the number of threads, so results do not either.
//!
//! An engine is shared by any number of solves at the same time. What a solve writes is in a workspace of its own
//! ([`EngineWorkspace`]).
//!
//! Calls through `dyn` happen once per run or per application of an operator, never inside a sweep.

mod in_order;
mod matrices;
mod placed;
mod refined;
mod reordered;

pub use in_order::InOrder;
pub use matrices::Matrices;
pub use placed::PlacedEngine;
pub(crate) use refined::{Refined, rounded};
pub(crate) use reordered::{PermutedMatrix, Reordered, Reordering};

use crate::error::{BackendError, SetupError, SolveError};
use crate::krylov::{Finish, Start};
use crate::matrix::Csr;
use crate::observe::Observer;
use crate::operator::{AnyOperator, SolverSpace};
use crate::options::Method;
use crate::space::Space;
use crate::stop::StoppingCriterion;
use std::any::Any;

/// A, as an engine is given it.
pub enum Operand<'a, S: Space> {
    /// A matrix by rows.
    Rows(&'a Csr<f64>),
    /// Any operator, which may be a matrix.
    Operator(&'a dyn AnyOperator<S>),
}

impl<S: Space> Clone for Operand<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S: Space> Copy for Operand<'_, S> {}

impl<'a, S: SolverSpace> Operand<'a, S> {
    /// The matrix; an error where the operator is not one.
    fn rows(self) -> Result<&'a Csr<f64>, BackendError> {
        let missing = || BackendError::Failed { what: "A was a matrix when it was prepared".into() };
        match self {
            Operand::Rows(a) => Ok(a),
            Operand::Operator(a) => a.matrix().ok_or_else(missing),
        }
    }

    /// The operator; an error where the space has none for a matrix.
    fn operator(self, space: &S) -> Result<&'a dyn AnyOperator<S>, BackendError> {
        match self {
            Operand::Rows(a) => space.operator_of_rows(a),
            Operand::Operator(a) => Ok(a),
        }
    }
}

/// One run of a method on A x = b, in the order of A. An engine with vectors of its own has b and the guess since
/// [`Engine::begin`], and goes on from its last iterate.
pub struct Run<'r, S: Space> {
    /// What the run begins with.
    pub start: Start,
    /// Where the vectors live.
    pub space: &'r S,
    /// The operator.
    pub a: Operand<'r, S>,
    /// The right-hand side.
    pub b: &'r S::Vector,
    /// The guess, then the last iterate.
    pub x: &'r mut S::Vector,
    /// When to end.
    pub stop: &'r mut dyn StoppingCriterion<f64>,
    /// Who watches.
    pub observer: &'r mut dyn Observer<f64, S::Vector>,
}

/// What one solve of an engine writes.
pub type EngineWorkspace = Box<dyn Any + Send>;

/// The workspace as the type that its engine has made.
fn own<W: 'static>(workspace: &mut EngineWorkspace) -> Result<&mut W, BackendError> {
    workspace.downcast_mut().ok_or_else(foreign)
}

/// The same to look at.
fn own_ref<W: 'static>(workspace: &EngineWorkspace) -> Result<&W, BackendError> {
    workspace.downcast_ref().ok_or_else(foreign)
}

fn foreign() -> BackendError {
    BackendError::Failed { what: "the workspace belongs to another engine".into() }
}

/// An engine, chosen at run time.
pub type DynEngine<S> = Box<dyn Engine<S>>;

/// A system that is set up.
pub trait Engine<S: SolverSpace>: Send + Sync {
    /// Makes the preconditioner of a matrix of the pattern it was made from, its diagonal enlarged by this multiple of the sizes of
    /// rows. Allocates nothing.
    fn refactor(&mut self, space: &S, source: &Csr<f64>, shift: f64) -> Result<(), SetupError>;

    /// Allocates what solves by this method write, one after the other.
    fn workspace(&self, space: &S, a: Operand<'_, S>, method: Method) -> Result<EngineWorkspace, SolveError>;

    /// Before the first run of a solve: takes over A's values, which may have changed while those of M are kept, b and the guess.
    /// `directions`: the observer wants to see them.
    fn begin(
        &self,
        workspace: &mut EngineWorkspace,
        space: &S,
        a: Operand<'_, S>,
        vectors: (&S::Vector, &S::Vector),
        directions: bool,
    ) -> Result<(), SolveError>;

    /// Runs the method.
    fn run(&self, workspace: &mut EngineWorkspace, run: Run<'_, S>) -> Result<Finish<f64>, BackendError>;

    /// Puts the best iterate that the last run left for a worse one into `x`; `false` if there is none.
    fn restore_kept(
        &self,
        workspace: &EngineWorkspace,
        space: &S,
        x: &mut S::Vector,
    ) -> Result<bool, BackendError>;

    /// Allocates what applications of M write, one after the other.
    fn application(&self, space: &S) -> Result<EngineWorkspace, BackendError>;

    /// z = M⁻¹ r, both in the order of A, in an [`application`](Self::application).
    fn precondition(
        &self,
        application: &mut EngineWorkspace,
        space: &S,
        r: &S::Vector,
        z: &mut S::Vector,
    ) -> Result<(), BackendError>;

    /// Whether the matrix is multiplied by a power of two.
    fn is_scaled(&self) -> bool {
        false
    }

    /// Whether conjugate gradients run without products with A ([`EisenstatCg`](crate::krylov::EisenstatCg)).
    fn is_without_product(&self, _workspace: &EngineWorkspace) -> bool {
        false
    }
}
