//! Preconditioners in the order of A, applied in a placement.

use crate::error::{BackendError, SetupError};
use crate::matrix::Csr;
use crate::operator::{DynPreconditioner, LinearOperator, Parts, Preconditioner, UpdateForm};
use crate::placement::{KeptMatrix, SharedPlacement, Side};
use crate::precond::multiply_by_diagonal;
use crate::space::{Activity, Space, Threads};
use std::any::Any;

/// M in the order of A: x is brought there, and the product back.
pub(super) struct Unplaced<S: Space> {
    m: DynPreconditioner<S, Csr<f64>>,
    placement: SharedPlacement<S>,
}

impl<S: Space> Unplaced<S> {
    pub(super) fn new(m: DynPreconditioner<S, Csr<f64>>, placement: SharedPlacement<S>) -> Self {
        Unplaced { m, placement }
    }
}

/// x and M⁻¹ x in the order of A, if that is another one, and what M needs.
pub(super) struct UnplacedScratch<S: Space> {
    vectors: Option<[S::Vector; 2]>,
    own: Box<dyn Any + Send>,
}

impl<S: Space<Vector: Send> + 'static> LinearOperator<S> for Unplaced<S> {
    type Scratch = UnplacedScratch<S>;

    fn domain(&self) -> S::Size {
        self.placement.size()
    }

    fn range(&self) -> S::Size {
        self.placement.size()
    }

    fn scratch(&self, space: &S) -> Result<Self::Scratch, BackendError> {
        let vectors = match self.placement.is_identity() {
            true => None,
            false => Some([space.zeros(&self.m.domain())?, space.zeros(&self.m.range())?]),
        };
        Ok(UnplacedScratch { vectors, own: self.m.scratch(space)? })
    }

    fn apply(
        &self,
        space: &S,
        x: &S::Vector,
        y: &mut S::Vector,
        scratch: &mut Self::Scratch,
    ) -> Result<(), BackendError> {
        let UnplacedScratch { vectors, own } = scratch;
        let Some([given, product]) = vectors else { return self.m.apply(space, x, y, own) };
        self.placement.store(space, Side::Rows, x, given)?;
        self.m.apply(space, given, product, own)?;
        self.placement.load(space, Side::Columns, product, y)
    }
}

impl<S: Space<Vector: Send> + 'static> Preconditioner<S, KeptMatrix<S>> for Unplaced<S> {
    fn refactor(&mut self, _: &S, _: &KeptMatrix<S>) -> Result<(), SetupError> {
        Err(BackendError::Unsupported { what: "a preconditioner in the order of A without A by rows" }.into())
    }

    fn refactor_by_rows(&mut self, space: &S, _: &KeptMatrix<S>, rows: &Csr<f64>) -> Result<(), SetupError> {
        self.m.refactor(space, rows)
    }

    fn set_shift(&mut self, shift: f64) -> bool {
        self.m.set_shift(shift)
    }

    fn entries(&self) -> usize {
        self.m.entries()
    }

    fn bytes(&self) -> usize {
        self.m.bytes()
    }
}

/// A diagonal M, whose numbers are where the unknowns are.
pub(super) struct PlacedDiagonal {
    m: DynPreconditioner<Threads<f64>, Csr<f64>>,
    placement: SharedPlacement<Threads<f64>>,
    /// 1 / d in the order of A, on its way, and in the placement.
    given: Vec<f64>,
    inverse: Vec<f64>,
}

impl PlacedDiagonal {
    /// Of an M whose parts are a diagonal.
    pub(super) fn new(
        space: &Threads<f64>,
        m: DynPreconditioner<Threads<f64>, Csr<f64>>,
        placement: SharedPlacement<Threads<f64>>,
    ) -> Result<Self, BackendError> {
        let (given, inverse) = (vec![0.0; m.domain()], vec![0.0; placement.size()]);
        let mut diagonal = PlacedDiagonal { m, placement, given, inverse };
        diagonal.place(space)?;
        Ok(diagonal)
    }

    fn place(&mut self, space: &Threads<f64>) -> Result<(), BackendError> {
        let Some(Parts::Diagonal(inverse)) = self.m.parts() else {
            return Err(BackendError::Failed { what: "the preconditioner is no longer a diagonal".into() });
        };
        self.given.copy_from_slice(inverse);
        self.placement.load(space, Side::Rows, &self.given, &mut self.inverse)
    }
}

impl LinearOperator<Threads<f64>> for PlacedDiagonal {
    type Scratch = ();

    fn domain(&self) -> usize {
        self.inverse.len()
    }

    fn range(&self) -> usize {
        self.inverse.len()
    }

    fn scratch(&self, _: &Threads<f64>) -> Result<(), BackendError> {
        Ok(())
    }

    fn apply(
        &self,
        space: &Threads<f64>,
        x: &Vec<f64>,
        y: &mut Vec<f64>,
        _: &mut (),
    ) -> Result<(), BackendError> {
        multiply_by_diagonal(space, &self.inverse, x, y)
    }

    fn update_form(&self) -> UpdateForm {
        UpdateForm::OnePass
    }

    fn update_apply_dots(
        &self,
        space: &Threads<f64>,
        (a, q): (f64, &Vec<f64>),
        r: &mut Vec<f64>,
        z: &mut Vec<f64>,
        _: &mut (),
    ) -> Result<[f64; 2], BackendError> {
        space.during(Activity::Preconditioner, || space.update_diagonal((a, q), &self.inverse, r, z))
    }
}

impl Preconditioner<Threads<f64>, KeptMatrix<Threads<f64>>> for PlacedDiagonal {
    fn refactor(&mut self, _: &Threads<f64>, _: &KeptMatrix<Threads<f64>>) -> Result<(), SetupError> {
        Err(BackendError::Unsupported { what: "a diagonal without A by rows" }.into())
    }

    fn refactor_by_rows(
        &mut self,
        space: &Threads<f64>,
        _: &KeptMatrix<Threads<f64>>,
        rows: &Csr<f64>,
    ) -> Result<(), SetupError> {
        self.m.refactor(space, rows)?;
        Ok(self.place(space)?)
    }

    fn set_shift(&mut self, shift: f64) -> bool {
        self.m.set_shift(shift)
    }

    fn entries(&self) -> usize {
        self.m.entries()
    }

    fn bytes(&self) -> usize {
        self.m.bytes() + 16 * self.inverse.len()
    }
}
