//! From a matrix and the name of a preconditioner to an engine.
//!
//! A *layout* ([`LayoutBuilder`]) is one way to store a system: on a grid, in dense blocks, in slices, by rows. It builds what it can and
//! refuses the rest with a reason. A space has a list of layouts, which are tried in order; one more layout is one folder and one
//! line in such a list.

mod available;
mod context;
mod findings;
mod layouts;
mod memory;
mod recorder;
mod recover;

pub use available::available_memory;
pub use context::{HostBuilt, SetupContext, SetupOptions};
pub(crate) use context::{LARGEST_F32, OneFactor, vector_bytes};
pub(crate) use findings::Findings;
pub(crate) use layouts::{in_layouts, no_preconditioner};
pub use memory::Memory;
pub use recorder::SetupRecorder;
pub(crate) use recorder::agree;

use crate::engine::{DynEngine, SolverSpace};
use crate::error::SolveError;
use crate::matrix::Csr;
use crate::operator::DynPreconditioner;
use crate::plan::StorageKind;
use crate::precond::PrecondSpec;

/// The preconditioner's size and schedule and the order of rows, for the report.
#[derive(Debug, Clone)]
pub struct SetupSummary {
    /// The name of what was built.
    pub kind: PrecondSpec,
    /// Entries of the preconditioner.
    pub nnz: usize,
    /// Its bytes.
    pub bytes: usize,
    /// What the diagonal was enlarged by, in multiples of the sizes of rows.
    pub shift: f64,
    /// How the forward and the backward sweep are divided among threads, and why.
    pub schedule: Option<[String; 2]>,
    /// In which order rows are stored, and why.
    pub layout: String,
    /// The order of rows and columns before that.
    pub ordering: String,
    /// Bytes of everything that a solve holds besides A, b and x, as predicted from the pattern.
    pub predicted: usize,
    /// The same bytes, counted.
    pub held: usize,
    /// What an iteration does, for predicting what it takes.
    pub storing: Storing,
}

/// How A and its factor are stored, for predicting what an iteration takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Storing {
    /// The storage.
    pub kind: StorageKind,
    /// Factors are in `f32`.
    pub narrow: bool,
    /// CG needs no product with A besides the sweeps.
    pub without_product: bool,
    /// A has constant coefficients on a grid, or slices that are stored once for many.
    pub constant: bool,
    /// So has the factor, that of a grid off its diagonal.
    pub constant_factor: bool,
}

impl Storing {
    /// By rows in `f64`.
    pub const BY_ROWS: Storing = Storing {
        kind: StorageKind::Rows,
        narrow: false,
        without_product: false,
        constant: false,
        constant_factor: false,
    };
}

/// What a layout has built.
pub enum Built<S: SolverSpace> {
    /// A preconditioner in the order of A, for any A.
    InOrder(DynPreconditioner<S, Csr<f64>>),
    /// A and its preconditioner in a placement; only where A is a matrix.
    Placed(DynEngine<S>),
}

/// Whether a layout takes a system.
#[expect(clippy::large_enum_variant, reason = "one per set-up")]
pub enum Attempt<S: SolverSpace> {
    /// It does.
    Built(Built<S>, SetupSummary),
    /// It does not, for this reason.
    Refused(String),
}

/// What a layout would do with a system.
pub enum Prospect {
    /// It would take it.
    Takes {
        /// How.
        layout: String,
        /// Bytes of everything that a solve will hold besides A, b and x, where they are known before.
        bytes: Option<u64>,
    },
    /// It would not, for this reason.
    Refuses(String),
    /// It is only taken where it is asked for by name, and was not.
    NotAskedFor,
}

/// One way to store a system on a space.
pub trait LayoutBuilder<S: SolverSpace>: Sync {
    /// Its name, for plans.
    fn name(&self) -> &'static str;

    /// Which storage it is, for predicting what an iteration takes.
    fn kind(&self) -> StorageKind {
        StorageKind::Rows
    }

    /// Whether it has complete factors, which [`Method::Auto`](crate::Method::Auto) may then choose.
    fn has_complete_factors(&self) -> bool {
        false
    }

    /// What [`build`](Self::build) would do, without values being factored.
    fn predict(
        &self,
        setup: &SetupContext<'_, S>,
        kind: PrecondSpec,
        recorder: &mut SetupRecorder,
    ) -> Result<Prospect, SolveError>;

    /// An engine for A alone, where A is stored in a placement even without a preconditioner. Without one, products are those of the caller's
    /// operator.
    fn without_preconditioner(
        &self,
        _setup: &SetupContext<'_, S>,
    ) -> Result<Option<DynEngine<S>>, SolveError> {
        Ok(None)
    }

    /// Analyzes and factors. On a space of several processes all of them build, refuse or fail alike:
    /// [`SetupRecorder::factor`] sees to that for bad pivots. An error ends the set-up, or is recovered from by another preconditioner; a refusal leads on to the
    /// next layout.
    fn build(
        &self,
        setup: &SetupContext<'_, S>,
        kind: PrecondSpec,
        recorder: &mut SetupRecorder,
    ) -> Result<Attempt<S>, SolveError>;
}
