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

use crate::choice::Method;
use crate::error::{BackendError, SetupError, SolveError};
use crate::krylov::{Finish, Start};
use crate::matrix::Csr;
use crate::observe::Observer;
use crate::operator::{AnyOperator, DynOperator, LinearOperator, OwnRows};
use crate::report::DeviceReport;
use crate::space::{Profile, Space, Threads};
use crate::stop::StoppingCriterion;
use std::any::Any;

/// A space that [`Solver`](crate::Solver) sets up and solves systems on.
pub trait SolverSpace:
    Space<Real = f64, Scalar = f64, Vector: Send, Layout: Send + Sync> + Sized + 'static
{
    /// Threads of this process, for work on matrices in its memory: analysis, looking for numbers out of range.
    fn host(&self) -> &Threads<f64>;

    /// A matrix by rows as an operator. Only a space whose vectors are in this process's memory has one; others iterate in a placement.
    fn operator_of_rows<'a>(&self, _a: &'a Csr<f64>) -> Result<&'a dyn AnyOperator<Self>, BackendError> {
        Err(BackendError::Unsupported { what: "an iteration on compressed rows in this space" })
    }

    /// These rows of a matrix as an operator, the first of them with this number: columns are those of the whole, and rows are divided among processes as
    /// vectors are. All processes call it together. Approximate inverses of divided matrices are such operators.
    fn operator_of_own_rows(
        &self,
        _rows: Csr<f64>,
        _first: usize,
    ) -> Result<DynOperator<Self>, BackendError> {
        Err(BackendError::Unsupported { what: "an operator of rows that are divided in this space" })
    }

    /// Ends all work that is queued, so that spaces beside this one see its results: after a set-up, whose matrices and factors they share.
    fn publish(&self) -> Result<(), BackendError> {
        Ok(())
    }

    /// A solve begins, which [`device_report`](Self::device_report) and, where it is asked for, [`profile`](Self::profile) will report.
    fn begin_report(&self, _profile: bool) {}

    /// Where the seconds of the iterations went since the solve began; `None` where that was not measured.
    fn profile(&self) -> Option<Profile> {
        None
    }

    /// Ends all work of a device, and reports what it did since the solve began; `None` where there is no device.
    fn device_report(&self) -> Option<DeviceReport> {
        None
    }

    /// A space for a solve that runs at the same time as one on this space, with the same vectors; `None` where solves have to wait
    /// for each other.
    fn beside(&self) -> Option<Self> {
        None
    }
}

/// The space that [`Solver`](crate::Solver) takes by itself.
pub type DefaultSpace = Threads<f64>;

/// The rows of A that this process has: all of them where it has the whole matrix. None where A is no matrix.
pub(crate) fn rows_of<'a, S: SolverSpace, A: LinearOperator<S>>(space: &S, a: &'a A) -> Option<OwnRows<'a>> {
    let has_all = || space.process().is_alone() && space.total(&a.domain()) == space.len(&a.domain());
    a.own_rows().or_else(|| a.matrix().filter(|_| has_all()).map(|rows| OwnRows::new(rows, 0)))
}

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

    /// Whether the matrix is multiplied by a power of two.
    fn is_scaled(&self) -> bool {
        false
    }

    /// Whether conjugate gradients run without products with A ([`EisenstatCg`](crate::krylov::EisenstatCg)).
    fn is_without_product(&self, _workspace: &EngineWorkspace) -> bool {
        false
    }
}
