//! What iterates: A, a preconditioner M and the workspace of a method, behind one interface.
//!
//! [`PlacedEngine`] has A and M in a placement of their own: b and the guess are brought there before the method runs, and x back
//! after it. [`InOrder`] runs on the caller's operator and vectors. `Reordered` permutes and scales a system and hands it to
//! either. Which one it is depends on the pattern alone, never on the number of threads, so results do not either.
//!
//! Calls through `dyn` happen once per run or per application of an operator, never inside a sweep.

mod in_order;
mod matrices;
mod method;
mod placed;
mod reordered;

pub use in_order::InOrder;
pub use matrices::Matrices;
pub use placed::PlacedEngine;
pub(crate) use reordered::{PermutedMatrix, Reordered, Reordering};

use crate::choice::Method;
use crate::error::{BackendError, SetupError, SolveError};
use crate::krylov::{Finish, Start};
use crate::matrix::Csr;
use crate::observe::Observer;
use crate::operator::{DynPreconditioner, LinearOperator};
use crate::space::{Space, Threads};
use crate::stop::StoppingCriterion;

/// A space that [`Solver`](crate::Solver) sets up and solves systems on.
pub trait SolverSpace: Space<Real = f64, Scalar = f64, Vector: Send> + Sized + 'static {
    /// Threads of this process, for work on matrices in its memory: analysis, looking for numbers out of range.
    fn host(&self) -> &Threads<f64>;

    /// An engine that multiplies by compressed rows as they are. Only a space whose vectors are in this process's memory has one;
    /// others iterate in a placement.
    fn engine_by_rows(
        &self,
        _a: &Csr<f64>,
        _m: DynPreconditioner<Self, Csr<f64>>,
        _method: Method,
    ) -> Result<Box<dyn Engine<Self, Csr<f64>>>, SolveError> {
        Err(BackendError::Unsupported { what: "an iteration on compressed rows in this space" }.into())
    }
}

/// The space that [`Solver`](crate::Solver) takes by itself.
pub type DefaultSpace = Threads<f64>;

/// One run of a method on A x = b, in the order of A. An engine with vectors of its own has b and the guess since
/// [`Engine::begin`], and goes on from its last iterate.
pub struct Run<'r, S: Space, A: ?Sized> {
    /// What the run begins with.
    pub start: Start,
    /// Where the vectors live.
    pub space: &'r S,
    /// The operator.
    pub a: &'r A,
    /// The right-hand side.
    pub b: &'r S::Vector,
    /// The guess, then the last iterate.
    pub x: &'r mut S::Vector,
    /// When to end.
    pub stop: &'r mut dyn StoppingCriterion<f64>,
    /// Who watches.
    pub observer: &'r mut dyn Observer<f64, S::Vector>,
}

/// A system that is set up, for operators of type `A`.
pub trait Engine<S: Space, A: ?Sized>: Send {
    /// Makes the preconditioner of a matrix of the pattern it was made from, its diagonal enlarged by this multiple of the sizes of
    /// rows. Allocates nothing.
    fn refactor(&mut self, space: &S, source: &Csr<f64>, shift: f64) -> Result<(), SetupError>;

    /// Another method with the same preconditioner.
    fn use_method(&mut self, space: &S, a: &A, method: Method) -> Result<(), SolveError>;

    /// Before the first run of a solve: takes over A's values, which may have changed while those of M are kept, b and the guess.
    /// `directions`: the observer wants to see them.
    fn begin(
        &mut self,
        space: &S,
        a: &A,
        b: &S::Vector,
        x: &S::Vector,
        directions: bool,
    ) -> Result<(), SolveError>;

    /// Runs the method.
    fn run(&mut self, run: Run<'_, S, A>) -> Result<Finish<f64>, BackendError>;

    /// Puts the best iterate that the last run left for a worse one into `x`; `false` if there is none.
    fn restore_kept(&self, space: &S, x: &mut S::Vector) -> Result<bool, BackendError>;

    /// Whether the matrix is multiplied by a power of two.
    fn is_scaled(&self) -> bool {
        false
    }

    /// Whether conjugate gradients run without products with A ([`EisenstatCg`](crate::krylov::EisenstatCg)).
    fn is_without_product(&self) -> bool {
        false
    }
}

/// An engine for matrices, used for an operator that is one.
pub(crate) struct OfMatrix<S: Space>(pub(crate) Box<dyn Engine<S, Csr<f64>>>);

fn matrix<S: SolverSpace, A: LinearOperator<S>>(a: &A) -> Result<&Csr<f64>, BackendError> {
    a.matrix().ok_or_else(|| BackendError::Failed { what: "A was a matrix when it was prepared".into() })
}

impl<S: SolverSpace, A: LinearOperator<S>> Engine<S, A> for OfMatrix<S> {
    fn refactor(&mut self, space: &S, source: &Csr<f64>, shift: f64) -> Result<(), SetupError> {
        self.0.refactor(space, source, shift)
    }

    fn use_method(&mut self, space: &S, a: &A, method: Method) -> Result<(), SolveError> {
        self.0.use_method(space, matrix(a)?, method)
    }

    fn begin(
        &mut self,
        space: &S,
        a: &A,
        b: &S::Vector,
        x: &S::Vector,
        directions: bool,
    ) -> Result<(), SolveError> {
        self.0.begin(space, matrix(a)?, b, x, directions)
    }

    fn run(&mut self, run: Run<'_, S, A>) -> Result<Finish<f64>, BackendError> {
        let Run { start, space, a, b, x, stop, observer } = run;
        self.0.run(Run { start, space, a: matrix(a)?, b, x, stop, observer })
    }

    fn restore_kept(&self, space: &S, x: &mut S::Vector) -> Result<bool, BackendError> {
        self.0.restore_kept(space, x)
    }

    fn is_scaled(&self) -> bool {
        self.0.is_scaled()
    }

    fn is_without_product(&self) -> bool {
        self.0.is_without_product()
    }
}
