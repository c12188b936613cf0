//! A matrix in a placement, its type erased: which storage it has was decided at run time.

use super::Storage;
use crate::error::{BackendError, SetupError};
use crate::matrix::Csr;
use crate::operator::{AnyOperator, AnyScratch, operator_in_box, own};
use crate::space::Space;
use std::any::Any;

/// A matrix in some storage of a space.
pub struct KeptMatrix<S: Space>(Box<dyn AnyStorage<S>>);

operator_in_box!([S: Space + 'static] KeptMatrix<S>, 0);

/// The object-safe form of [`Storage`].
trait AnyStorage<S: Space>: AnyOperator<S> + Any + Send + Sync {
    fn apply_square(
        &self,
        space: &S,
        x: &S::Vector,
        y: &mut S::Vector,
        scratch: &mut AnyScratch,
    ) -> Result<S::Scalar, BackendError>;
    fn require(&self, a: &Csr<f64>) -> Result<(), SetupError>;
    fn set(&mut self, space: &S, a: &Csr<f64>) -> Result<(), SetupError>;
    fn holds(&self, space: &S, a: &Csr<f64>) -> bool;
    fn with_values_of(&self, space: &S, a: &Csr<f64>) -> Result<KeptMatrix<S>, SetupError>;
    fn bytes(&self) -> usize;
}

impl<S: Space + 'static, K: Storage<S> + 'static> AnyStorage<S> for K {
    fn apply_square(
        &self,
        space: &S,
        x: &S::Vector,
        y: &mut S::Vector,
        scratch: &mut AnyScratch,
    ) -> Result<S::Scalar, BackendError> {
        Storage::apply_square(self, space, x, y, own(scratch)?)
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
    pub fn new<K: Storage<S> + 'static>(matrix: K) -> Self {
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
        self.0.apply_square(space, x, y, scratch)
    }
}
