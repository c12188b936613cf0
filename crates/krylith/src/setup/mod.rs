//! What a set-up is given, and what it reports: the system with its options ([`SetupContext`]), the time of each phase and what was
//! recovered from ([`SetupRecorder`]), memory that is predicted ([`Memory`]), the summary of what was built.
//!
//! How the matrices are kept, and how a preconditioner is made there, is in [`store`](crate::store).

pub(crate) mod considered;
mod context;
mod findings;
mod memory;
mod recorder;
mod recover;

pub use crate::memory::available_memory;
pub(crate) use considered::Considered;
pub(crate) use context::{OneFactor, vector_bytes};
pub use context::{SetupContext, SetupOptions};
pub(crate) use findings::{Findings, KnownValues};
pub use memory::Memory;
pub use recorder::{Attempts, SetupRecorder};

use crate::options::StorageKind;
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
