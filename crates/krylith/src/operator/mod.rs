//! Linear operators, and preconditioners as operators that are analyzed, factored and refactored.
//!
//! An operator is shared by reference: [`LinearOperator::apply`] takes `&self`, and what it needs to write is in a scratch
//! of its own type, owned by the workspace of the solve. So two solves may use one operator at the same time.
//!
//! A preconditioner comes about in three steps, each a type: a [`Recipe`] (options, no matrix) analyzes the pattern into a
//! [`Symbolic`], which factors any matrix of that pattern into a [`Preconditioner`], which refactors in place, without
//! allocating, when only the values have changed.

mod by_rows;
mod closure;
mod erased;
mod solver_space;

pub(crate) use by_rows::{norm_roundoff, part_by_work, precise_dot, transposed_product, two_sum};
pub use closure::{FnOperator, FnPreconditioner};
pub use erased::{AnyOperator, AnyScratch, DynOperator, DynPreconditioner};
pub(crate) use erased::{operator_in_box, own};
pub(crate) use solver_space::rows_of;
pub use solver_space::{DefaultSpace, SolverSpace};

use crate::error::{BackendError, SetupError};
use crate::matrix::Csr;
use crate::scalar::Scalar;
use crate::schedule::Schedule;
use crate::space::{Activity, Space};
use std::any::Any;

/// The sizes of a residual r̂ = b − A x as it was computed.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ResidualNorms<R> {
    /// ‖r̂‖₂.
    pub norm: R,
    /// ‖r̂‖∞.
    pub largest: R,
    /// What an operator with entries knows besides.
    pub certain: Option<ResidualBounds<R>>,
}

/// What is certain of a computed residual.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ResidualBounds<R> {
    /// A bound of ‖r̂ − r‖₂.
    pub rounding: R,
    /// ‖A‖∞.
    pub row_sum: R,
    /// r̂ was computed in twice the digits.
    pub precise: bool,
}

/// The sizes of Aᵀr for some r, evaluated in double-double.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct NormalResidual<R> {
    /// ‖Aᵀr‖₂ / ‖|A|ᵀ|r|‖₂, which does not depend on the scales of rows.
    pub ratio: R,
    /// ‖D⁻¹Aᵀr‖₂, D the largest entries of the columns of A, as a multiple of what rounding alone may leave of it in `f64`: up to 1, r is a left null vector up
    /// to rounding.
    pub in_roundings: R,
    /// Aᵀr = 0 without any rounding.
    pub is_zero: bool,
    /// A bound of the norm of the numbers |aⱼᵀr| / ‖aⱼ‖₂ of all columns aⱼ, so that |rᵀA x|² is at most the square of this times Σ ‖aⱼ‖₂² xⱼ² for every x.
    pub cosines: R,
}

/// What a preconditioner makes of [`LinearOperator::update_apply_dots`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UpdateForm {
    /// The update, the application and the products one after the other.
    #[default]
    InParts,
    /// All of it in about the time of the update and an application: worth it even where z turns out not to be needed.
    OnePass,
    /// As `OnePass`, and z = r is not written: r has to be read instead.
    Identity,
}

/// y = A x, for vectors of the space `S`.
pub trait LinearOperator<S: Space> {
    /// What one application needs to write besides y: halo buffers, narrower vectors, nothing.
    type Scratch: Any + Send;

    /// The size of x.
    fn domain(&self) -> S::Size;

    /// The size of y.
    fn range(&self) -> S::Size;

    /// A scratch for [`apply`](Self::apply), allocated once per solve.
    fn scratch(&self, space: &S) -> Result<Self::Scratch, BackendError>;

    /// y = A x.
    fn apply(
        &self,
        space: &S,
        x: &S::Vector,
        y: &mut S::Vector,
        scratch: &mut Self::Scratch,
    ) -> Result<(), BackendError>;

    /// y = A x and xᴴ y; one pass where the operator overrides it.
    fn apply_dot(
        &self,
        space: &S,
        x: &S::Vector,
        y: &mut S::Vector,
        scratch: &mut Self::Scratch,
    ) -> Result<S::Scalar, BackendError> {
        self.apply(space, x, y, scratch)?;
        space.dot(x, y)
    }

    /// What [`update_apply_dots`](Self::update_apply_dots) does.
    fn update_form(&self) -> UpdateForm {
        UpdateForm::InParts
    }

    /// With z = A r, for a preconditioner A: r += a q, and then z, rᴴr and rᴴz in one synchronisation. z is not written where
    /// [`update_form`](Self::update_form) is [`UpdateForm::Identity`].
    fn update_apply_dots(
        &self,
        space: &S,
        (a, q): (S::Scalar, &S::Vector),
        r: &mut S::Vector,
        z: &mut S::Vector,
        scratch: &mut Self::Scratch,
    ) -> Result<[S::Scalar; 2], BackendError> {
        space.axpby(a, q, S::Scalar::ONE, r)?;
        space.during(Activity::Preconditioner, || self.apply(space, r, z, scratch))?;
        let mut out = [S::Scalar::ZERO; 2];
        space.dots(&[(&*r, &*r), (&*r, &*z)], &mut out)?;
        Ok(out)
    }

    /// r = b − A x and its sizes. Where the operator knows its entries, with a bound of the rounding, in more digits if `precise`.
    fn residual(
        &self,
        space: &S,
        (x, b): (&S::Vector, &S::Vector),
        _precise: bool,
        r: &mut S::Vector,
        scratch: &mut Self::Scratch,
    ) -> Result<ResidualNorms<S::Real>, BackendError> {
        self.apply(space, x, r, scratch)?;
        space.axpby(S::Scalar::ONE, b, -S::Scalar::ONE, r)?;
        let (norm, sizes) = (space.norm(r)?, space.extremes(r)?);
        // Where an entry is not finite, neither is the norm.
        let largest = if sizes.not_finite.is_none() { sizes.largest } else { norm };
        Ok(ResidualNorms { norm, largest, certain: None })
    }

    /// The sizes of Aᵀ(r + low), where the operator knows its entries: near zero only if a residual much smaller than r needs a large x.
    /// `low` has the digits of a vector that `f64` has no room for; without it they are zero.
    fn normal_residual(
        &self,
        _space: &S,
        _r: &S::Vector,
        _low: Option<&S::Vector>,
    ) -> Result<Option<NormalResidual<S::Real>>, BackendError> {
        Ok(None)
    }

    /// The operator as a matrix in this process's memory, if it is one.
    fn matrix(&self) -> Option<&Csr<S::Scalar>> {
        None
    }

    /// The rows of the operator that this process has, where it is a matrix whose rows are divided among processes. What is found out about the
    /// system is found out from them. All processes have rows, which may be none of the matrix, or none of them has.
    fn own_rows(&self) -> Option<OwnRows<'_, S::Scalar>> {
        None
    }

    /// y = Aᴴ x, where the operator can.
    fn apply_transpose(
        &self,
        _space: &S,
        _x: &S::Vector,
        _y: &mut S::Vector,
        _scratch: &mut Self::Scratch,
    ) -> Result<(), BackendError> {
        Err(BackendError::Unsupported { what: "applying its transpose" })
    }
}

/// A way to make preconditioners for matrices of type `A`: options, before any matrix.
pub trait Recipe<S: Space, A: ?Sized> {
    /// What the analysis of a pattern gives.
    type Symbolic: Symbolic<S, A>;

    /// Everything that depends on the pattern alone. A method whose pattern depends on values takes them from this first
    /// matrix and keeps the pattern for `factor` and `refactor`.
    fn analyze(&self, space: &S, a: &A) -> Result<Self::Symbolic, SetupError>;

    /// The same with what is known besides the matrix. The solver calls this one.
    fn analyze_given(&self, space: &S, a: &A, _given: &Given<'_>) -> Result<Self::Symbolic, SetupError> {
        self.analyze(space, a)
    }

    /// Whether M is symmetric positive definite whenever A is, so that conjugate gradients and MINRES may use it.
    fn is_symmetric(&self) -> bool {
        false
    }

    /// Whether a bad pivot is avoided by enlarging the diagonal. If so, override [`Symbolic::factor_shifted`]: the default makes the factor without a shift first, which
    /// fails.
    fn can_shift(&self) -> bool {
        false
    }
}

/// Rows of a matrix that are those of one process; the next process has the rows after them.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct OwnRows<'a, T = f64> {
    /// The rows, with the columns of the whole matrix.
    pub rows: &'a Csr<T>,
    /// The number of the first of them in the whole matrix.
    pub first: usize,
}

impl<'a, T> OwnRows<'a, T> {
    /// These rows, the first of which has this number in the whole matrix.
    pub fn new(rows: &'a Csr<T>, first: usize) -> Self {
        OwnRows { rows, first }
    }
}

/// What is known besides the matrix when a preconditioner is analyzed.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Given<'a> {
    /// Vectors that A takes to small ones, as the caller has named them ([`Solver::near_null_vectors`](crate::Solver::near_null_vectors)), in the order of
    /// the columns of the matrix.
    pub near_null: &'a [Vec<f64>],
    /// How sweeps are to be divided among threads.
    pub schedule: Schedule,
}

impl<'a> Given<'a> {
    /// These vectors and this schedule.
    pub fn new(near_null: &'a [Vec<f64>], schedule: Schedule) -> Self {
        Given { near_null, schedule }
    }
}

/// An analyzed pattern: factors any matrix that has it.
pub trait Symbolic<S: Space, A: ?Sized> {
    /// The preconditioner.
    type Factor: Preconditioner<S, A>;

    /// The factor of a matrix of the analyzed pattern.
    fn factor(&self, space: &S, a: &A) -> Result<Self::Factor, SetupError>;

    /// The factor of A with its diagonal enlarged by this multiple of the sizes of its rows. Unless it is overridden, the factor without a shift is made first, which
    /// has to exist.
    fn factor_shifted(&self, space: &S, a: &A, shift: f64) -> Result<Self::Factor, SetupError> {
        let mut factor = self.factor(space, a)?;
        if shift != 0.0 && factor.set_shift(shift) {
            factor.refactor(space, a)?;
        }
        Ok(factor)
    }
}

/// An approximate inverse: applying it is y = M⁻¹ x.
pub trait Preconditioner<S: Space, A: ?Sized>: LinearOperator<S> {
    /// The factor of another matrix of the same pattern, in place; allocates nothing. After an error the old factor is
    /// gone, and the next `refactor` that succeeds makes the preconditioner usable again.
    fn refactor(&mut self, space: &S, a: &A) -> Result<(), SetupError>;

    /// The same for a matrix whose `rows` are at hand besides: for preconditioners that are computed from rows, wherever they are stored.
    fn refactor_by_rows(&mut self, space: &S, a: &A, _rows: &Csr<f64>) -> Result<(), SetupError> {
        self.refactor(space, a)
    }

    /// From the next `refactor` on the diagonal of A is enlarged by this multiple of the size of its rows, so that pivots stay
    /// away from zero; 0 in the beginning. `false` if this preconditioner cannot do so.
    fn set_shift(&mut self, _shift: f64) -> bool {
        false
    }

    /// Lets go of what is shared with the matrix that was factored, so that new values can take its place without a copy. There is
    /// no factor until the next `refactor`.
    fn release(&mut self) {}

    /// Entries that it stores, for the report.
    fn entries(&self) -> usize {
        0
    }

    /// Bytes that it holds, for the report.
    fn bytes(&self) -> usize {
        0
    }

    /// The sweeps of Eisenstat's trick, if this preconditioner may have the triangles of A.
    fn split_sweeps(&self) -> Option<&dyn SplitSweeps<S, A>> {
        None
    }

    /// The numbers that an application multiplies or divides by, for a place that applies it itself, such as a device; `None` if they are
    /// not those of one of these forms.
    fn parts(&self) -> Option<Parts<'_, S::Scalar>> {
        None
    }
}

/// What z = M⁻¹ x consists of.
#[derive(Debug)]
pub enum Parts<'a, T> {
    /// zᵢ = dᵢ xᵢ.
    Diagonal(&'a [T]),
    /// z = (I + U)⁻¹ D⁻¹ (I + L)⁻¹ x.
    Triangles {
        /// L, strictly lower triangular.
        lower: &'a Csr<T>,
        /// The diagonal of D⁻¹.
        inverse: &'a [T],
        /// U, strictly upper triangular.
        upper: &'a Csr<T>,
    },
    /// z = B A x, of the two matrices A and B in this order.
    Products([&'a Csr<T>; 2]),
}

/// Vectors of an iteration with [`SplitSweeps`], in the letters of [`EisenstatCg`](crate::krylov::EisenstatCg).
#[derive(Debug)]
pub struct SplitVectors<V> {
    /// r̂ = (D + L)⁻¹ r.
    pub r: V,
    /// The direction of the system that is iterated.
    pub p: V,
    /// The direction in x.
    pub t: V,
    /// With t + w = (D + L)⁻¹ A t.
    pub w: V,
}

/// Sweeps of a preconditioner M = (D + L) D⁻¹ (D + U) that has the triangles of A = L + E + U: they apply
/// (D + L)⁻¹ A (D + U)⁻¹ without a product with A ([`EisenstatCg`](crate::krylov::EisenstatCg)).
pub trait SplitSweeps<S: Space, A: ?Sized> {
    /// Whether there is a factor, and L and U are those that A has now.
    fn has_triangles_of(&self, a: &A) -> bool;

    /// What the sweeps need to write besides vectors.
    fn scratch(&self, space: &S) -> Result<Box<dyn Any + Send>, BackendError>;

    /// r̂ = (D + L)⁻¹ t.
    fn enter(
        &self,
        space: &S,
        a: &A,
        v: &mut SplitVectors<S::Vector>,
        scratch: &mut dyn Any,
    ) -> Result<(), BackendError>;

    /// p = D r̂ + β p;  t = (D + U)⁻¹ p;  w = (D + L)⁻¹ (p + (E − 2D) t). Gives pᵀ(t + w) and ‖(D + L) r̂‖².
    fn sweep(
        &self,
        space: &S,
        a: &A,
        beta: S::Scalar,
        v: &mut SplitVectors<S::Vector>,
        scratch: &mut dyn Any,
    ) -> Result<[S::Scalar; 2], BackendError>;

    /// x += α t;  r̂ −= α (t + w). Gives r̂ᵀD r̂.
    fn advance(
        &self,
        space: &S,
        alpha: S::Scalar,
        v: &mut SplitVectors<S::Vector>,
        x: &mut S::Vector,
        scratch: &mut dyn Any,
    ) -> Result<S::Scalar, BackendError>;
}

impl<S: Space, O: LinearOperator<S>> LinearOperator<S> for &O {
    type Scratch = O::Scratch;

    fn domain(&self) -> S::Size {
        (**self).domain()
    }

    fn range(&self) -> S::Size {
        (**self).range()
    }

    fn scratch(&self, space: &S) -> Result<Self::Scratch, BackendError> {
        (**self).scratch(space)
    }

    fn apply(
        &self,
        space: &S,
        x: &S::Vector,
        y: &mut S::Vector,
        scratch: &mut Self::Scratch,
    ) -> Result<(), BackendError> {
        (**self).apply(space, x, y, scratch)
    }

    fn apply_dot(
        &self,
        space: &S,
        x: &S::Vector,
        y: &mut S::Vector,
        scratch: &mut Self::Scratch,
    ) -> Result<S::Scalar, BackendError> {
        (**self).apply_dot(space, x, y, scratch)
    }

    fn update_form(&self) -> UpdateForm {
        (**self).update_form()
    }

    fn update_apply_dots(
        &self,
        space: &S,
        update: (S::Scalar, &S::Vector),
        r: &mut S::Vector,
        z: &mut S::Vector,
        scratch: &mut Self::Scratch,
    ) -> Result<[S::Scalar; 2], BackendError> {
        (**self).update_apply_dots(space, update, r, z, scratch)
    }

    fn residual(
        &self,
        space: &S,
        vectors: (&S::Vector, &S::Vector),
        precise: bool,
        r: &mut S::Vector,
        scratch: &mut Self::Scratch,
    ) -> Result<ResidualNorms<S::Real>, BackendError> {
        (**self).residual(space, vectors, precise, r, scratch)
    }

    fn normal_residual(
        &self,
        space: &S,
        r: &S::Vector,
        low: Option<&S::Vector>,
    ) -> Result<Option<NormalResidual<S::Real>>, BackendError> {
        (**self).normal_residual(space, r, low)
    }

    fn matrix(&self) -> Option<&Csr<S::Scalar>> {
        (**self).matrix()
    }

    fn own_rows(&self) -> Option<OwnRows<'_, S::Scalar>> {
        (**self).own_rows()
    }

    fn apply_transpose(
        &self,
        space: &S,
        x: &S::Vector,
        y: &mut S::Vector,
        scratch: &mut Self::Scratch,
    ) -> Result<(), BackendError> {
        (**self).apply_transpose(space, x, y, scratch)
    }
}

/// y = x: no preconditioner.
#[derive(Debug, Clone)]
pub struct Identity<S: Space> {
    size: S::Size,
}

impl<S: Space> Identity<S> {
    /// The identity on vectors of this size.
    pub fn new(size: S::Size) -> Self {
        Identity { size }
    }
}

impl<S: Space> LinearOperator<S> for Identity<S> {
    type Scratch = ();

    fn domain(&self) -> S::Size {
        self.size.clone()
    }

    fn range(&self) -> S::Size {
        self.size.clone()
    }

    fn scratch(&self, _: &S) -> Result<(), BackendError> {
        Ok(())
    }

    fn apply(&self, space: &S, x: &S::Vector, y: &mut S::Vector, _: &mut ()) -> Result<(), BackendError> {
        space.copy(x, y)
    }

    fn update_form(&self) -> UpdateForm {
        UpdateForm::Identity
    }

    fn update_apply_dots(
        &self,
        space: &S,
        (a, q): (S::Scalar, &S::Vector),
        r: &mut S::Vector,
        _: &mut S::Vector,
        _: &mut (),
    ) -> Result<[S::Scalar; 2], BackendError> {
        Ok([space.update_square(a, q, r)?; 2])
    }

    fn apply_transpose(
        &self,
        space: &S,
        x: &S::Vector,
        y: &mut S::Vector,
        _: &mut (),
    ) -> Result<(), BackendError> {
        space.copy(x, y)
    }
}

impl<S: Space, A: ?Sized> Preconditioner<S, A> for Identity<S> {
    fn refactor(&mut self, _: &S, _: &A) -> Result<(), SetupError> {
        Ok(())
    }
}
