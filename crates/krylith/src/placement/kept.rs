//! A matrix in a placement, its type erased: which storage it has was decided at run time.

use super::Storage;
use crate::error::{BackendError, SetupError};
use crate::matrix::Csr;
use crate::operator::LinearOperator;
use crate::space::Space;
use std::any::Any;

/// A matrix in some storage of a space.
pub struct KeptMatrix<S: Space>(Box<dyn Erased<S>>);

/// The object-safe form of [`Storage`]: the scratch is an `Any`.
trait Erased<S: Space>: Any + Send + Sync {
    fn domain(&self) -> S::Layout;
    fn range(&self) -> S::Layout;
    fn scratch(&self, space: &S) -> Result<Box<dyn Any + Send>, BackendError>;
    fn apply(
        &self,
        space: &S,
        x: &S::Vector,
        y: &mut S::Vector,
        scratch: &mut dyn Any,
    ) -> Result<(), BackendError>;
    fn apply_dot(
        &self,
        space: &S,
        x: &S::Vector,
        y: &mut S::Vector,
        scratch: &mut dyn Any,
    ) -> Result<S::Scalar, BackendError>;
    fn apply_square(
        &self,
        space: &S,
        x: &S::Vector,
        y: &mut S::Vector,
        scratch: &mut dyn Any,
    ) -> Result<S::Scalar, BackendError>;
    fn apply_transpose(
        &self,
        space: &S,
        x: &S::Vector,
        y: &mut S::Vector,
        scratch: &mut dyn Any,
    ) -> Result<(), BackendError>;
    fn matrix(&self) -> Option<&Csr<S::Scalar>>;
    fn require(&self, a: &Csr<f64>) -> Result<(), SetupError>;
    fn set(&mut self, space: &S, a: &Csr<f64>) -> Result<(), SetupError>;
    fn holds(&self, space: &S, a: &Csr<f64>) -> bool;
    fn with_values_of(&self, space: &S, a: &Csr<f64>) -> Result<KeptMatrix<S>, SetupError>;
    fn bytes(&self) -> usize;
}

fn own<T: 'static>(scratch: &mut dyn Any) -> Result<&mut T, BackendError> {
    let wrong = || BackendError::Failed { what: "the scratch belongs to another matrix".into() };
    scratch.downcast_mut().ok_or_else(wrong)
}

impl<S: Space + 'static, K: Storage<S, Scratch: Any + Send> + 'static> Erased<S> for K {
    fn domain(&self) -> S::Layout {
        LinearOperator::domain(self)
    }

    fn range(&self) -> S::Layout {
        LinearOperator::range(self)
    }

    fn scratch(&self, space: &S) -> Result<Box<dyn Any + Send>, BackendError> {
        Ok(Box::new(LinearOperator::scratch(self, space)?))
    }

    fn apply(
        &self,
        space: &S,
        x: &S::Vector,
        y: &mut S::Vector,
        scratch: &mut dyn Any,
    ) -> Result<(), BackendError> {
        LinearOperator::apply(self, space, x, y, own(scratch)?)
    }

    fn apply_dot(
        &self,
        space: &S,
        x: &S::Vector,
        y: &mut S::Vector,
        scratch: &mut dyn Any,
    ) -> Result<S::Scalar, BackendError> {
        LinearOperator::apply_dot(self, space, x, y, own(scratch)?)
    }

    fn apply_square(
        &self,
        space: &S,
        x: &S::Vector,
        y: &mut S::Vector,
        scratch: &mut dyn Any,
    ) -> Result<S::Scalar, BackendError> {
        Storage::apply_square(self, space, x, y, own(scratch)?)
    }

    fn apply_transpose(
        &self,
        space: &S,
        x: &S::Vector,
        y: &mut S::Vector,
        scratch: &mut dyn Any,
    ) -> Result<(), BackendError> {
        LinearOperator::apply_transpose(self, space, x, y, own(scratch)?)
    }

    fn matrix(&self) -> Option<&Csr<S::Scalar>> {
        LinearOperator::matrix(self)
    }

    fn require(&self, a: &Csr<f64>) -> Result<(), SetupError> {
        Storage::require(self, a)
    }

    fn set(&mut self, space: &S, a: &Csr<f64>) -> Result<(), SetupError> {
        Storage::set(self, space, a)
    }

    fn holds(&self, space: &S, a: &Csr<f64>) -> bool {
        Storage::holds(self, space, a)
    }

    fn with_values_of(&self, space: &S, a: &Csr<f64>) -> Result<KeptMatrix<S>, SetupError> {
        Storage::with_values_of(self, space, a).map(KeptMatrix::new)
    }

    fn bytes(&self) -> usize {
        Storage::bytes(self)
    }
}

impl<S: Space + 'static> KeptMatrix<S> {
    /// Erases the type of a matrix.
    pub fn new<K: Storage<S, Scratch: Any + Send> + 'static>(matrix: K) -> Self {
        KeptMatrix(Box::new(matrix))
    }

    /// The matrix, if it is of this type.
    pub fn get<K: 'static>(&self) -> Option<&K> {
        (&*self.0 as &dyn Any).downcast_ref()
    }

    /// The matrix, or an error if it is of another type.
    pub(crate) fn require_type<K: 'static>(&self) -> Result<&K, BackendError> {
        let wrong = || BackendError::Failed { what: "the matrix is in another store".into() };
        self.get().ok_or_else(wrong)
    }
}

impl<S: Space + 'static> LinearOperator<S> for KeptMatrix<S> {
    type Scratch = Box<dyn Any + Send>;

    fn domain(&self) -> S::Layout {
        self.0.domain()
    }

    fn range(&self) -> S::Layout {
        self.0.range()
    }

    fn scratch(&self, space: &S) -> Result<Self::Scratch, BackendError> {
        self.0.scratch(space)
    }

    fn apply(
        &self,
        space: &S,
        x: &S::Vector,
        y: &mut S::Vector,
        scratch: &mut Self::Scratch,
    ) -> Result<(), BackendError> {
        self.0.apply(space, x, y, scratch.as_mut())
    }

    fn apply_dot(
        &self,
        space: &S,
        x: &S::Vector,
        y: &mut S::Vector,
        scratch: &mut Self::Scratch,
    ) -> Result<S::Scalar, BackendError> {
        self.0.apply_dot(space, x, y, scratch.as_mut())
    }

    fn apply_transpose(
        &self,
        space: &S,
        x: &S::Vector,
        y: &mut S::Vector,
        scratch: &mut Self::Scratch,
    ) -> Result<(), BackendError> {
        self.0.apply_transpose(space, x, y, scratch.as_mut())
    }

    fn matrix(&self) -> Option<&Csr<S::Scalar>> {
        self.0.matrix()
    }
}

impl<S: Space + 'static> Storage<S> for KeptMatrix<S> {
    fn require(&self, a: &Csr<f64>) -> Result<(), SetupError> {
        self.0.require(a)
    }

    fn set(&mut self, space: &S, a: &Csr<f64>) -> Result<(), SetupError> {
        self.0.set(space, a)
    }

    fn holds(&self, space: &S, a: &Csr<f64>) -> bool {
        self.0.holds(space, a)
    }

    fn with_values_of(&self, space: &S, a: &Csr<f64>) -> Result<Self, SetupError> {
        self.0.with_values_of(space, a)
    }

    fn bytes(&self) -> usize {
        self.0.bytes()
    }

    fn apply_square(
        &self,
        space: &S,
        x: &S::Vector,
        y: &mut S::Vector,
        scratch: &mut Self::Scratch,
    ) -> Result<S::Scalar, BackendError> {
        self.0.apply_square(space, x, y, scratch.as_mut())
    }
}
