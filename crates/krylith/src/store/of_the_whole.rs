//! The store for rows that are divided among processes, of what does not depend on how they are: no preconditioner, Jacobi, approximate inverses. A solve has the
//! same iterations and bits wherever rows are divided, and on one process, as long as no entry is so large or small that one process scales the matrix.
//!
//! A stays the caller's own. Jacobi is made, and applied, by threads of the host from the rows and columns that a process has; approximate inverses are
//! made from all rows (`precond::fsai::of_parts`).

use super::{FindStore, Found, Made, OverStore, Request, Store, no_sweeps};
use crate::error::{BackendError, SetupError, SolveError};
use crate::matrix::Csr;
use crate::operator::{DynPreconditioner, Given, LinearOperator, Preconditioner, SolverSpace};
use crate::options::StorageKind;
use crate::placement::{KeptMatrix, SharedPlacement};
use crate::plan::Outlook;
use crate::precond::PrecondSpec;
use crate::precond::registry::Construction;
use crate::setup::{Memory, SetupContext, SetupRecorder};
use crate::space::Threads;
use std::any::Any;

/// What does not depend on how rows are divided among processes, for any space whose vectors are in the memory of processes.
///
/// ```
/// use krylith::{Solver, gallery::Problem, space::Threads, store::OfTheWhole};
/// let a = "poisson2d:150".parse::<Problem>()?.generate()?;
/// let prepared = Solver::new().prepare_on(Threads::new(2), &[&OfTheWhole], &a, &a)?;
/// let (b, mut x) = (vec![1.0; a.nrows()], vec![0.0; a.nrows()]);
/// let report = prepared.solve(&a, &b, &mut x)?;
/// assert_eq!((report.solver.as_str(), report.preconditioner.as_str()), ("cg", "fsai"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct OfTheWhole;

impl<S: SolverSpace> FindStore<S> for OfTheWhole {
    fn name(&self) -> &'static str {
        "divided rows"
    }

    fn kind(&self) -> StorageKind {
        StorageKind::Rows
    }

    fn is_likely(&self, outlook: &Outlook<'_>) -> bool {
        outlook.level.is_none()
    }

    fn has_triangles(&self) -> bool {
        false
    }

    fn is_priced(&self) -> bool {
        true
    }

    fn find(
        &self,
        setup: &SetupContext<'_, S>,
        request: &Request<'_>,
        _: &mut SetupRecorder,
    ) -> Result<Found<S>, SolveError> {
        let kind = request.kind;
        let is_jacobi = *kind == PrecondSpec::jacobi();
        let takes = is_jacobi || kind.is_none() || matches!(kind.construct(), Construction::Inverse(_));
        if !takes {
            return Ok(Found::Refused(format!("{kind} depends on how rows are divided")));
        }
        let rows = setup.source.nrows();
        let factor = if is_jacobi { 8 * rows } else { 0 };
        let memory = Memory::in_order("rows as given".into(), rows, 0, factor);
        Ok(Found::Store(Box::new(DividedRows { is_jacobi, memory })))
    }
}

struct DividedRows {
    is_jacobi: bool,
    memory: Memory,
}

impl<S: SolverSpace> Store<S> for DividedRows {
    fn kind(&self) -> StorageKind {
        StorageKind::Rows
    }

    fn memory(&self) -> Memory {
        self.memory.clone()
    }

    fn placement(&self) -> Option<SharedPlacement<S>> {
        None
    }

    fn has_sweeps(&self) -> bool {
        self.is_jacobi
    }

    /// Jacobi, whose bad pivots are those of all processes.
    fn triangles(
        &self,
        setup: &SetupContext<'_, S>,
        request: &Request<'_>,
        _: Option<&KeptMatrix<S>>,
        recorder: &mut SetupRecorder,
    ) -> Result<Made<S>, SolveError> {
        let Construction::Recipe(recipe) = request.kind.construct() else { return Err(no_sweeps()) };
        let (host, source) = (setup.space.host(), setup.source);
        let first = setup.own_rows.map_or(0, |own| own.first);
        let given = Given::new(&[], setup.options.schedule);
        let mut made = None;
        let shift = recorder.factor(setup.space, setup.attempts(request.kind), |shift| {
            let factored =
                recipe.analyze(host, source, &given).and_then(|known| known.factor(host, source, shift));
            made = Some(factored.map_err(|error| in_whole(error, first))?);
            Ok(())
        })?;
        let host = made.ok_or_else(no_sweeps)?;
        let (nnz, bytes) = (host.entries(), host.bytes());
        let m = OnHost { host, size: setup.size.clone(), first };
        Ok(Made { shift, ..Made::new(OverStore::InOrder(DynPreconditioner::new(m)), nnz, bytes) })
    }

    /// An approximate inverse of one process that has all rows.
    fn adopt(
        &self,
        setup: &SetupContext<'_, S>,
        made: Made<Threads<f64>>,
        _: &mut SetupRecorder,
    ) -> Result<Made<S>, SolveError> {
        let OverStore::InOrder(host) = made.m else {
            return Err(BackendError::Failed { what: "a factor in another order than A".into() }.into());
        };
        let m = OnHost { host, size: setup.size.clone(), first: 0 };
        let Made { nnz, bytes, predicted, shift, words, .. } = made;
        let made = Made::new(OverStore::InOrder(DynPreconditioner::new(m)), nnz, bytes);
        Ok(Made { predicted, shift, words, ..made })
    }
}

/// An error about a row of the whole matrix.
fn in_whole(error: SetupError, first: usize) -> SetupError {
    match error {
        SetupError::BadPivot { row, value } => SetupError::BadPivot { row: first + row, value },
        SetupError::MissingDiagonal { row } => SetupError::MissingDiagonal { row: first + row },
        other => other,
    }
}

/// A preconditioner that threads of the host apply to what a process has of a vector.
struct OnHost<S: SolverSpace> {
    host: DynPreconditioner<Threads<f64>, Csr<f64>>,
    size: S::Size,
    /// The number of the first row.
    first: usize,
}

/// x and z in this process's memory, and what the preconditioner needs.
struct HostScratch {
    x: Vec<f64>,
    z: Vec<f64>,
    own: Box<dyn Any + Send>,
}

impl<S: SolverSpace> LinearOperator<S> for OnHost<S> {
    type Scratch = HostScratch;

    fn domain(&self) -> S::Size {
        self.size.clone()
    }

    fn range(&self) -> S::Size {
        self.size.clone()
    }

    fn scratch(&self, space: &S) -> Result<HostScratch, BackendError> {
        let zeros = || vec![0.0; space.len(&self.size)];
        Ok(HostScratch { x: zeros(), z: zeros(), own: self.host.scratch(space.host())? })
    }

    fn apply(
        &self,
        space: &S,
        x: &S::Vector,
        z: &mut S::Vector,
        scratch: &mut HostScratch,
    ) -> Result<(), BackendError> {
        space.download(x, &mut scratch.x)?;
        self.host.apply(space.host(), &scratch.x, &mut scratch.z, &mut scratch.own)?;
        space.upload(&scratch.z, z)
    }
}

impl<S: SolverSpace> Preconditioner<S, Csr<f64>> for OnHost<S> {
    fn refactor(&mut self, space: &S, a: &Csr<f64>) -> Result<(), SetupError> {
        self.host.refactor(space.host(), a).map_err(|error| in_whole(error, self.first))
    }

    fn set_shift(&mut self, shift: f64) -> bool {
        self.host.set_shift(shift)
    }

    fn entries(&self) -> usize {
        self.host.entries()
    }

    fn bytes(&self) -> usize {
        self.host.bytes()
    }
}
