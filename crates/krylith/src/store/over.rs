//! A preconditioner that factors one type of matrix, as one that factors what a store keeps.
//!
//! Its sweeps stay those of its own type: what is erased is looked up once per call.

use crate::error::{BackendError, SetupError};
use crate::matrix::Csr;
use crate::operator::{LinearOperator, Parts, Preconditioner, SplitSweeps, SplitVectors, UpdateForm};
use crate::placement::KeptMatrix;
use crate::space::Space;
use std::any::Any;
use std::marker::PhantomData;

/// `M`, which factors a `K`.
pub(super) struct Over<K, M> {
    m: M,
    of: PhantomData<fn() -> K>,
}

impl<K, M> Over<K, M> {
    pub(super) fn new(m: M) -> Self {
        Over { m, of: PhantomData }
    }
}

impl<S: Space, K, M: LinearOperator<S>> LinearOperator<S> for Over<K, M> {
    type Scratch = M::Scratch;

    fn domain(&self) -> S::Size {
        self.m.domain()
    }

    fn range(&self) -> S::Size {
        self.m.range()
    }

    fn scratch(&self, space: &S) -> Result<M::Scratch, BackendError> {
        self.m.scratch(space)
    }

    fn apply(
        &self,
        space: &S,
        x: &S::Vector,
        y: &mut S::Vector,
        scratch: &mut M::Scratch,
    ) -> Result<(), BackendError> {
        self.m.apply(space, x, y, scratch)
    }

    fn apply_dot(
        &self,
        space: &S,
        x: &S::Vector,
        y: &mut S::Vector,
        scratch: &mut M::Scratch,
    ) -> Result<S::Scalar, BackendError> {
        self.m.apply_dot(space, x, y, scratch)
    }

    fn update_form(&self) -> UpdateForm {
        self.m.update_form()
    }

    fn update_apply_dots(
        &self,
        space: &S,
        update: (S::Scalar, &S::Vector),
        r: &mut S::Vector,
        z: &mut S::Vector,
        scratch: &mut M::Scratch,
    ) -> Result<[S::Scalar; 2], BackendError> {
        self.m.update_apply_dots(space, update, r, z, scratch)
    }

    fn apply_transpose(
        &self,
        space: &S,
        x: &S::Vector,
        y: &mut S::Vector,
        scratch: &mut M::Scratch,
    ) -> Result<(), BackendError> {
        self.m.apply_transpose(space, x, y, scratch)
    }
}

impl<S: Space + 'static, K: 'static, M: Preconditioner<S, K>> Preconditioner<S, KeptMatrix<S>>
    for Over<K, M>
{
    fn refactor(&mut self, space: &S, a: &KeptMatrix<S>) -> Result<(), SetupError> {
        self.m.refactor(space, a.require_type()?)
    }

    fn refactor_by_rows(&mut self, space: &S, a: &KeptMatrix<S>, rows: &Csr<f64>) -> Result<(), SetupError> {
        self.m.refactor_by_rows(space, a.require_type()?, rows)
    }

    fn set_shift(&mut self, shift: f64) -> bool {
        self.m.set_shift(shift)
    }

    fn release(&mut self) {
        self.m.release();
    }

    fn entries(&self) -> usize {
        self.m.entries()
    }

    fn bytes(&self) -> usize {
        self.m.bytes()
    }

    fn split_sweeps(&self) -> Option<&dyn SplitSweeps<S, KeptMatrix<S>>> {
        self.m.split_sweeps().is_some().then_some(self)
    }

    fn parts(&self) -> Option<Parts<'_, S::Scalar>> {
        self.m.parts()
    }
}

impl<K: 'static, M> Over<K, M> {
    fn sweeps<S: Space>(&self) -> Result<&dyn SplitSweeps<S, K>, BackendError>
    where
        M: Preconditioner<S, K>,
    {
        let none = || BackendError::Failed { what: "a preconditioner without split sweeps".into() };
        self.m.split_sweeps().ok_or_else(none)
    }
}

impl<S: Space + 'static, K: 'static, M: Preconditioner<S, K>> SplitSweeps<S, KeptMatrix<S>> for Over<K, M> {
    fn has_triangles_of(&self, a: &KeptMatrix<S>) -> bool {
        let own = self.m.split_sweeps().zip(a.get());
        own.is_some_and(|(sweeps, a)| sweeps.has_triangles_of(a))
    }

    fn scratch(&self, space: &S) -> Result<Box<dyn Any + Send>, BackendError> {
        self.sweeps()?.scratch(space)
    }

    fn enter(
        &self,
        space: &S,
        a: &KeptMatrix<S>,
        v: &mut SplitVectors<S::Vector>,
        scratch: &mut dyn Any,
    ) -> Result<(), BackendError> {
        self.sweeps()?.enter(space, a.require_type()?, v, scratch)
    }

    fn sweep(
        &self,
        space: &S,
        a: &KeptMatrix<S>,
        beta: S::Scalar,
        v: &mut SplitVectors<S::Vector>,
        scratch: &mut dyn Any,
    ) -> Result<[S::Scalar; 2], BackendError> {
        self.sweeps()?.sweep(space, a.require_type()?, beta, v, scratch)
    }

    fn advance(
        &self,
        space: &S,
        alpha: S::Scalar,
        v: &mut SplitVectors<S::Vector>,
        x: &mut S::Vector,
        scratch: &mut dyn Any,
    ) -> Result<S::Scalar, BackendError> {
        self.sweeps()?.advance(space, alpha, v, x, scratch)
    }
}
