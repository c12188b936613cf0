//! Operators and preconditioners whose types are decided at run time.
//!
//! This is the one way in which types of operators are erased: [`AnyOperator`] is the object-safe form of [`LinearOperator`], whose scratch is an `Any`.
//! Methods and engines take operators as `&dyn AnyOperator`, so they are compiled once for a space. What a preconditioner or a stored matrix has
//! besides is in a trait of its own, with `AnyOperator` above it.

use super::{LinearOperator, Parts, Preconditioner, SplitSweeps, UpdateForm};
use crate::error::{BackendError, SetupError};
use crate::matrix::Csr;
use crate::space::Space;
use std::any::Any;

/// What an application writes, its type erased.
pub type AnyScratch = Box<dyn Any + Send>;

/// The object-safe form of [`LinearOperator`], which every operator has.
pub trait AnyOperator<S: Space> {
    /// The size of x.
    fn domain(&self) -> S::Size;

    /// The size of y.
    fn range(&self) -> S::Size;

    /// A scratch for applications.
    fn scratch(&self, space: &S) -> Result<AnyScratch, BackendError>;

    /// y = A x.
    fn apply(
        &self,
        space: &S,
        x: &S::Vector,
        y: &mut S::Vector,
        scratch: &mut AnyScratch,
    ) -> Result<(), BackendError>;

    /// y = A x and xᴴ y.
    fn apply_dot(
        &self,
        space: &S,
        x: &S::Vector,
        y: &mut S::Vector,
        scratch: &mut AnyScratch,
    ) -> Result<S::Scalar, BackendError>;

    /// What [`update_apply_dots`](Self::update_apply_dots) does.
    fn update_form(&self) -> UpdateForm;

    /// [`LinearOperator::update_apply_dots`].
    fn update_apply_dots(
        &self,
        space: &S,
        update: (S::Scalar, &S::Vector),
        r: &mut S::Vector,
        z: &mut S::Vector,
        scratch: &mut AnyScratch,
    ) -> Result<[S::Scalar; 2], BackendError>;

    /// y = Aᴴ x.
    fn apply_transpose(
        &self,
        space: &S,
        x: &S::Vector,
        y: &mut S::Vector,
        scratch: &mut AnyScratch,
    ) -> Result<(), BackendError>;

    /// The operator as a matrix in this process's memory, if it is one.
    fn matrix(&self) -> Option<&Csr<S::Scalar>>;
}

/// An operator of any type.
pub type DynOperator<S> = Box<dyn AnyOperator<S> + Send + Sync>;

/// The scratch as the type it was made with.
pub(crate) fn own<T: 'static>(scratch: &mut AnyScratch) -> Result<&mut T, BackendError> {
    let wrong = || BackendError::Failed { what: "the scratch belongs to another operator".into() };
    scratch.downcast_mut().ok_or_else(wrong)
}

impl<S: Space, T: LinearOperator<S>> AnyOperator<S> for T {
    fn domain(&self) -> S::Size {
        LinearOperator::domain(self)
    }

    fn range(&self) -> S::Size {
        LinearOperator::range(self)
    }

    fn scratch(&self, space: &S) -> Result<AnyScratch, BackendError> {
        Ok(Box::new(LinearOperator::scratch(self, space)?))
    }

    fn apply(
        &self,
        space: &S,
        x: &S::Vector,
        y: &mut S::Vector,
        scratch: &mut AnyScratch,
    ) -> Result<(), BackendError> {
        LinearOperator::apply(self, space, x, y, own(scratch)?)
    }

    fn apply_dot(
        &self,
        space: &S,
        x: &S::Vector,
        y: &mut S::Vector,
        scratch: &mut AnyScratch,
    ) -> Result<S::Scalar, BackendError> {
        LinearOperator::apply_dot(self, space, x, y, own(scratch)?)
    }

    fn update_form(&self) -> UpdateForm {
        LinearOperator::update_form(self)
    }

    fn update_apply_dots(
        &self,
        space: &S,
        update: (S::Scalar, &S::Vector),
        r: &mut S::Vector,
        z: &mut S::Vector,
        scratch: &mut AnyScratch,
    ) -> Result<[S::Scalar; 2], BackendError> {
        LinearOperator::update_apply_dots(self, space, update, r, z, own(scratch)?)
    }

    fn apply_transpose(
        &self,
        space: &S,
        x: &S::Vector,
        y: &mut S::Vector,
        scratch: &mut AnyScratch,
    ) -> Result<(), BackendError> {
        LinearOperator::apply_transpose(self, space, x, y, own(scratch)?)
    }

    fn matrix(&self) -> Option<&Csr<S::Scalar>> {
        LinearOperator::matrix(self)
    }
}

/// `LinearOperator` for a type with an operator in a box.
macro_rules! operator_in_box {
    ([$($generics:tt)*] $type:ty, $field:tt) => {
        impl<$($generics)*> $crate::operator::LinearOperator<S> for $type {
            type Scratch = $crate::operator::AnyScratch;

            fn domain(&self) -> S::Size {
                self.$field.domain()
            }

            fn range(&self) -> S::Size {
                self.$field.range()
            }

            fn scratch(&self, space: &S) -> Result<Self::Scratch, $crate::BackendError> {
                self.$field.scratch(space)
            }

            fn apply(
                &self,
                space: &S,
                x: &S::Vector,
                y: &mut S::Vector,
                scratch: &mut Self::Scratch,
            ) -> Result<(), $crate::BackendError> {
                self.$field.apply(space, x, y, scratch)
            }

            fn apply_dot(
                &self,
                space: &S,
                x: &S::Vector,
                y: &mut S::Vector,
                scratch: &mut Self::Scratch,
            ) -> Result<S::Scalar, $crate::BackendError> {
                self.$field.apply_dot(space, x, y, scratch)
            }

            fn update_form(&self) -> $crate::operator::UpdateForm {
                self.$field.update_form()
            }

            fn update_apply_dots(
                &self,
                space: &S,
                update: (S::Scalar, &S::Vector),
                r: &mut S::Vector,
                z: &mut S::Vector,
                scratch: &mut Self::Scratch,
            ) -> Result<[S::Scalar; 2], $crate::BackendError> {
                self.$field.update_apply_dots(space, update, r, z, scratch)
            }

            fn apply_transpose(
                &self,
                space: &S,
                x: &S::Vector,
                y: &mut S::Vector,
                scratch: &mut Self::Scratch,
            ) -> Result<(), $crate::BackendError> {
                self.$field.apply_transpose(space, x, y, scratch)
            }

            fn matrix(&self) -> Option<&$crate::Csr<S::Scalar>> {
                self.$field.matrix()
            }
        }
    };
}
pub(crate) use operator_in_box;

/// A preconditioner chosen at run time: its type, and that of its scratch, are erased.
///
/// `A` is the type of matrix it refactors from.
pub struct DynPreconditioner<S: Space, A: ?Sized> {
    inner: Box<dyn AnyPreconditioner<S, A>>,
}

impl<S: Space, A: ?Sized> DynPreconditioner<S, A> {
    /// Erases the type of a preconditioner.
    pub fn new<M: Preconditioner<S, A> + Send + Sync + 'static>(inner: M) -> Self {
        DynPreconditioner { inner: Box::new(inner) }
    }
}

operator_in_box!([S: Space, A: ?Sized] DynPreconditioner<S, A>, inner);

/// The object-safe form of [`Preconditioner`].
trait AnyPreconditioner<S: Space, A: ?Sized>: AnyOperator<S> + Send + Sync {
    fn refactor(&mut self, space: &S, a: &A) -> Result<(), SetupError>;
    fn refactor_by_rows(&mut self, space: &S, a: &A, rows: &Csr<f64>) -> Result<(), SetupError>;
    fn set_shift(&mut self, shift: f64) -> bool;
    fn release(&mut self);
    fn entries(&self) -> usize;
    fn bytes(&self) -> usize;
    fn split_sweeps(&self) -> Option<&dyn SplitSweeps<S, A>>;
    fn parts(&self) -> Option<Parts<'_, S::Scalar>>;
}

impl<S: Space, A: ?Sized, M: Preconditioner<S, A> + Send + Sync> AnyPreconditioner<S, A> for M {
    fn refactor(&mut self, space: &S, a: &A) -> Result<(), SetupError> {
        Preconditioner::refactor(self, space, a)
    }

    fn refactor_by_rows(&mut self, space: &S, a: &A, rows: &Csr<f64>) -> Result<(), SetupError> {
        Preconditioner::refactor_by_rows(self, space, a, rows)
    }

    fn set_shift(&mut self, shift: f64) -> bool {
        Preconditioner::set_shift(self, shift)
    }

    fn release(&mut self) {
        Preconditioner::release(self);
    }

    fn entries(&self) -> usize {
        Preconditioner::entries(self)
    }

    fn bytes(&self) -> usize {
        Preconditioner::bytes(self)
    }

    fn split_sweeps(&self) -> Option<&dyn SplitSweeps<S, A>> {
        Preconditioner::split_sweeps(self)
    }

    fn parts(&self) -> Option<Parts<'_, S::Scalar>> {
        Preconditioner::parts(self)
    }
}

impl<S: Space, A: ?Sized> Preconditioner<S, A> for DynPreconditioner<S, A> {
    fn refactor(&mut self, space: &S, a: &A) -> Result<(), SetupError> {
        self.inner.refactor(space, a)
    }

    fn refactor_by_rows(&mut self, space: &S, a: &A, rows: &Csr<f64>) -> Result<(), SetupError> {
        self.inner.refactor_by_rows(space, a, rows)
    }

    fn set_shift(&mut self, shift: f64) -> bool {
        self.inner.set_shift(shift)
    }

    fn release(&mut self) {
        self.inner.release();
    }

    fn entries(&self) -> usize {
        self.inner.entries()
    }

    fn bytes(&self) -> usize {
        self.inner.bytes()
    }

    fn split_sweeps(&self) -> Option<&dyn SplitSweeps<S, A>> {
        self.inner.split_sweeps()
    }

    fn parts(&self) -> Option<Parts<'_, S::Scalar>> {
        self.inner.parts()
    }
}
