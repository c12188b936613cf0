//! Operators and preconditioners from closures.

use super::{LinearOperator, Preconditioner};
use crate::error::{BackendError, SetupError};
use crate::matrix::Csr;
use crate::scalar::Scalar;
use crate::space::{Threads, require_same};

/// y = A x by a closure that is given x and writes all of y; it may borrow what it likes.
///
/// ```
/// use krylith::operator::FnOperator;
/// let weights = vec![1.0, 2.0, 4.0];
/// let diagonal = FnOperator::new(3, |x: &[f64], y: &mut [f64]| {
///     for i in 0..3 {
///         y[i] = weights[i] * x[i];
///     }
/// });
/// # let _ = diagonal;
/// ```
#[derive(Debug, Clone)]
pub struct FnOperator<F> {
    rows: usize,
    apply: F,
}

impl<F> FnOperator<F> {
    /// A square operator of so many rows.
    pub fn new<T>(rows: usize, apply: F) -> Self
    where
        F: Fn(&[T], &mut [T]),
    {
        FnOperator { rows, apply }
    }
}

impl<T: Scalar, F: Fn(&[T], &mut [T])> LinearOperator<Threads<T>> for FnOperator<F> {
    type Scratch = ();

    fn domain(&self) -> usize {
        self.rows
    }

    fn range(&self) -> usize {
        self.rows
    }

    fn scratch(&self, _: &Threads<T>) -> Result<(), BackendError> {
        Ok(())
    }

    fn apply(&self, _: &Threads<T>, x: &Vec<T>, y: &mut Vec<T>, _: &mut ()) -> Result<(), BackendError> {
        require_same("x and the operator", &x.len(), &self.rows)?;
        require_same("y and the operator", &y.len(), &self.rows)?;
        (self.apply)(x, y);
        Ok(())
    }
}

/// z = M⁻¹ r by a closure that is given r and writes all of z, for [`Solver::prepare_operator_with`](crate::Solver::prepare_operator_with). What it has been made from
/// is the caller's affair: no refactorization changes it.
#[derive(Debug, Clone)]
pub struct FnPreconditioner<F> {
    operator: FnOperator<F>,
}

impl<F> FnPreconditioner<F> {
    /// A preconditioner of this many rows.
    pub fn new<T>(rows: usize, apply: F) -> Self
    where
        F: Fn(&[T], &mut [T]),
    {
        FnPreconditioner { operator: FnOperator::new(rows, apply) }
    }
}

impl<T: Scalar, F: Fn(&[T], &mut [T])> LinearOperator<Threads<T>> for FnPreconditioner<F> {
    type Scratch = ();

    fn domain(&self) -> usize {
        self.operator.rows
    }

    fn range(&self) -> usize {
        self.operator.rows
    }

    fn scratch(&self, _: &Threads<T>) -> Result<(), BackendError> {
        Ok(())
    }

    fn apply(&self, space: &Threads<T>, r: &Vec<T>, z: &mut Vec<T>, _: &mut ()) -> Result<(), BackendError> {
        self.operator.apply(space, r, z, &mut ())
    }
}

impl<T: Scalar, F: Fn(&[T], &mut [T])> Preconditioner<Threads<T>, Csr<T>> for FnPreconditioner<F> {
    fn refactor(&mut self, _: &Threads<T>, _: &Csr<T>) -> Result<(), SetupError> {
        Ok(())
    }
}
