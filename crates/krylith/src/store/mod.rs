//! How the matrices of a system are kept.
//!
//! A *store* is one way to keep them: on a grid, in dense blocks, in slices, by rows, on a device. It is chosen once for a system, from the
//! pattern, the precision and what the preconditioner [needs](Needs), and then offers what every preconditioner is made of: an order of
//! unknowns, matrices kept in that order, triangular factors with sweeps of its own, and a place for preconditioners in the order of A.
//! A preconditioner is a recipe over any store (`set_up`): one more store is one type with one line in a list of [`FindStore`], one more
//! preconditioner one arm of a match, and neither knows of the other.

mod blocks;
mod by_rows;
mod by_threshold;
mod grid;
mod in_f32;
mod inverse;
mod of_the_whole;
mod over;
mod predict;
mod set_up;
mod slices;
mod unplaced;

pub(crate) use blocks::InBlocks;
pub(crate) use by_rows::{ByRows, make_by_rows};
pub(crate) use by_threshold::Scale;
pub(crate) use grid::OnGrid;
pub(crate) use in_f32::InSingle;
pub use of_the_whole::OfTheWhole;
pub use set_up::{Level, level};
pub(crate) use set_up::{in_stores, kind_of_store, look, no_preconditioner};

use crate::block::BlockKind;
use crate::elimination::Incomplete;
use crate::engine::{DynEngine, Matrices};
use crate::error::{BackendError, SetupError, SolveError};
use crate::matrix::Csr;
use crate::operator::{DynPreconditioner, Identity, Parts, Preconditioner, SolverSpace};
use crate::options::{Precision, StorageKind};
use crate::placement::{KeptMatrix, SharedPlacement};
use crate::plan::Outlook;
use crate::precond::PrecondSpec;
use crate::setup::{Memory, SetupContext, SetupRecorder, SetupSummary, Storing};
use crate::sliced::SharedSlices;
use crate::space::Threads;
use over::Over;
pub(crate) use slices::InSlices;
use unplaced::{PlacedDiagonal, Unplaced};

/// What a store is asked for.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Request<'n> {
    /// The preconditioner.
    pub kind: &'n PrecondSpec,
    /// What it is made of.
    pub needs: Needs<'n>,
}

/// What a preconditioner is made of, besides A.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub enum Needs<'n> {
    /// Nothing that depends on the order of unknowns.
    Nothing,
    /// Triangular factors on a pattern.
    Triangles(Incomplete),
    /// Triangular factors of dense blocks of this size, or of that which the matrix has.
    Blocks(BlockKind, Option<usize>),
    /// Products with two more matrices.
    Products(Products<'n>),
    /// The order of A, in which it is to be applied.
    OrderOfA,
}

/// Two matrices that a preconditioner multiplies by, one after the other.
#[derive(Clone, Copy)]
pub struct Products<'n> {
    /// The matrices by rows.
    pub matrices: [&'n Csr<f64>; 2],
    /// They may be kept in `f32`.
    pub narrow: bool,
    /// A in slices, if it has been stored there.
    pub(crate) slices: Option<&'n SharedSlices>,
}

/// The storage of the first store that is likely to take a system.
pub(crate) fn likely_kind<S: SolverSpace>(
    stores: &[&dyn FindStore<S>],
    outlook: &Outlook<'_>,
) -> Option<StorageKind> {
    stores.iter().find(|store| store.is_likely(outlook)).map(|store| store.kind())
}

/// Which matrix is to be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// What the preconditioner is made from; A itself unless A has another pattern.
    Source,
    /// A, where it has another pattern than the source.
    OtherA,
    /// One of the two of [`Needs::Products`].
    Product(usize),
}

/// Whether a store takes a system.
pub enum Found<S: SolverSpace> {
    /// It does.
    Store(Box<dyn Store<S>>),
    /// It does not, for this reason.
    Refused(String),
    /// It is only taken where it is asked for by name, and was not.
    NotAskedFor,
}

/// One kind of store of a space.
pub trait FindStore<S: SolverSpace>: Sync {
    /// Its name, for plans.
    fn name(&self) -> &'static str;

    /// Which storage it is.
    fn kind(&self) -> StorageKind;

    /// Whether it is likely to take a system, as far as facts about its mesh tell: for prices, before anything is looked at.
    fn is_likely(&self, _: &Outlook<'_>) -> bool {
        false
    }

    /// Whether it has the triangular factors that are chosen where nothing is predicted.
    fn has_triangles(&self) -> bool {
        true
    }

    /// Whether it multiplies by the transposes of matrices and factors, as least squares need it.
    fn has_transposes(&self) -> bool {
        true
    }

    /// Whether what it takes is chosen by predicted cost, for which facts about meshes are looked for.
    fn is_priced(&self) -> bool {
        self.has_complete_factors()
    }

    /// Whether it applies complete factors, which [`Method::Auto`](crate::Method::Auto) may then choose.
    fn has_complete_factors(&self) -> bool {
        false
    }

    /// The store of this kind for a system, no values being stored or factored yet.
    fn find(
        &self,
        setup: &SetupContext<'_, S>,
        request: &Request<'_>,
        recorder: &mut SetupRecorder,
    ) -> Result<Found<S>, SolveError>;
}

/// A store for one system.
///
/// On a space of several processes all of them keep, factor or fail alike: [`SetupRecorder::factor`] sees to that for bad pivots.
pub trait Store<S: SolverSpace> {
    /// Which storage it is, for predicting what an iteration takes.
    fn kind(&self) -> StorageKind;

    /// What it is in words, and the bytes that matrices and triangular factors take, predicted.
    fn memory(&self) -> Memory;

    /// Bytes of patterns and orders that its matrices share.
    fn shared_bytes(&self) -> usize {
        0
    }

    /// Bytes of a method's vectors, and of those around them.
    fn vector_bytes(&self, setup: &SetupContext<'_, S>) -> usize {
        self.memory().vectors(setup.method)
    }

    /// The order of its vectors; none where that is the order of A, and A the caller's own.
    fn placement(&self) -> Option<SharedPlacement<S>>;

    /// Keeps a matrix. Without a placement the matrix of a system is the caller's own, and only those of a [`Level`] are kept.
    fn keep(
        &self,
        _setup: &SetupContext<'_, S>,
        _role: Role,
        _matrix: &Csr<f64>,
        _recorder: &mut SetupRecorder,
    ) -> Result<KeptMatrix<S>, SetupError> {
        Err(BackendError::Unsupported { what: "a copy of this matrix in this store" }.into())
    }

    /// Whether it makes the triangular factors that were needed by itself.
    fn has_sweeps(&self) -> bool {
        false
    }

    /// These factors, of the source that is kept.
    fn triangles(
        &self,
        _setup: &SetupContext<'_, S>,
        _request: &Request<'_>,
        _source: Option<&KeptMatrix<S>>,
        _recorder: &mut SetupRecorder,
    ) -> Result<Made<S>, SolveError> {
        Err(no_sweeps())
    }

    /// The precision in which threads of the host make what is adopted.
    fn precision_of_host(&self, asked: Precision) -> Precision {
        asked
    }

    /// A preconditioner that threads of the host have made in the order of A; no matrix is kept yet.
    fn adopt(
        &self,
        _setup: &SetupContext<'_, S>,
        _made: Made<Threads<f64>>,
        _recorder: &mut SetupRecorder,
    ) -> Result<Made<S>, SolveError> {
        Err(BackendError::Unsupported { what: "this preconditioner in this store" }.into())
    }

    /// What the report says of it: in words, and for predicting what an iteration takes.
    fn describe(&self, _kept: &Kept<'_, S>, _is_from_a: bool) -> (String, Storing) {
        (self.memory().layout, Storing { kind: self.kind(), ..Storing::BY_ROWS })
    }

    /// The whole engine, for a store whose iteration has another space.
    fn engine(
        &self,
        _setup: &SetupContext<'_, S>,
        _request: &Request<'_>,
        _recorder: &mut SetupRecorder,
    ) -> Result<Option<(DynEngine<S>, SetupSummary)>, SolveError> {
        Ok(None)
    }
}

/// There is no factor in a store.
pub(crate) fn no_sweeps() -> SolveError {
    BackendError::Unsupported { what: "triangular factors in this store" }.into()
}

/// What was made in a store.
pub struct Kept<'k, S: SolverSpace> {
    /// A and the source; none where A is the caller's own.
    pub matrices: Option<&'k Matrices<KeptMatrix<S>>>,
    /// The matrices that the preconditioner multiplies by.
    pub products: &'k [KeptMatrix<S>],
    /// The factor has the off-diagonal entries of the matrix that it is made from.
    pub shares_off_diagonals: bool,
}

/// A preconditioner over a store.
pub enum OverStore<S: SolverSpace> {
    /// In the order of the store, made from what the store keeps.
    Placed(DynPreconditioner<S, KeptMatrix<S>>),
    /// In the order of A, made from rows.
    InOrder(DynPreconditioner<S, Csr<f64>>),
}

impl<S: SolverSpace> OverStore<S> {
    /// In the order of a store that keeps matrices as `K`.
    pub fn new<K: 'static>(m: impl Preconditioner<S, K> + Send + Sync + 'static) -> Self {
        OverStore::Placed(DynPreconditioner::new(Over::<K, _>::new(m)))
    }

    /// In the order of A, for a store with this placement.
    pub fn unplaced(m: DynPreconditioner<S, Csr<f64>>, placement: SharedPlacement<S>) -> Self
    where
        S::Vector: Send,
    {
        OverStore::Placed(DynPreconditioner::new(Unplaced::new(m, placement)))
    }

    pub(super) fn identity(placement: Option<&SharedPlacement<S>>, size: S::Size) -> Self {
        match placement {
            Some(placement) => {
                OverStore::Placed(DynPreconditioner::new(Identity::<S>::new(placement.size())))
            }
            None => OverStore::InOrder(DynPreconditioner::new(Identity::<S>::new(size))),
        }
    }
}

/// A preconditioner, and what the report says of it.
pub struct Made<S: SolverSpace> {
    /// The preconditioner.
    pub m: OverStore<S>,
    /// Its entries.
    pub nnz: usize,
    /// Its bytes, with patterns that nothing else has.
    pub bytes: usize,
    /// Its bytes as they were predicted from the pattern; those of [`Store::memory`] if not given.
    pub predicted: Option<usize>,
    /// What the diagonal was enlarged by, in multiples of the sizes of rows.
    pub shift: f64,
    /// How the sweeps are divided among threads.
    pub schedule: Option<[String; 2]>,
    /// The factor has the off-diagonal entries of the matrix that it is made from.
    pub shares_off_diagonals: bool,
    /// More about it, for the report.
    pub words: String,
}

impl<S: SolverSpace> Made<S> {
    /// Of so many entries and bytes.
    pub fn new(m: OverStore<S>, nnz: usize, bytes: usize) -> Self {
        Made {
            m,
            nnz,
            bytes,
            predicted: None,
            shift: 0.0,
            schedule: None,
            shares_off_diagonals: false,
            words: String::new(),
        }
    }
}

impl Made<Threads<f64>> {
    /// In the order of a store with this placement: a diagonal where its numbers belong, others by bringing vectors to the order of A.
    pub fn placed(
        self,
        space: &Threads<f64>,
        placement: Option<SharedPlacement<Threads<f64>>>,
    ) -> Result<Self, BackendError> {
        let (OverStore::InOrder(m), Some(placement)) = (self.m, placement) else {
            return Err(BackendError::Failed { what: "a factor in another order than A".into() });
        };
        let m = if matches!(m.parts(), Some(Parts::Diagonal(_))) {
            OverStore::Placed(DynPreconditioner::new(PlacedDiagonal::new(space, m, placement)?))
        } else {
            OverStore::unplaced(m, placement)
        };
        let bytes = match &m {
            OverStore::Placed(m) => m.bytes().max(self.bytes),
            OverStore::InOrder(_) => self.bytes,
        };
        Ok(Made { m, bytes, ..self })
    }
}
