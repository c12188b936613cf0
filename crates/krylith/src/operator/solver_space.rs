//! Spaces that systems are set up and solved on.

use super::{AnyOperator, DynOperator, LinearOperator, OwnRows};
use crate::error::BackendError;
use crate::matrix::Csr;
use crate::space::{DeviceReport, Profile, Space, Threads};

/// A space that [`Solver`](crate::Solver) sets up and solves systems on.
pub trait SolverSpace:
    Space<Real = f64, Scalar = f64, Vector: Send, Size: Send + Sync> + Sized + 'static
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
