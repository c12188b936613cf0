//! What a store needs to know of a system, and how much memory it may take.

use super::{Attempts, Findings, SetupRecorder, available_memory};
use crate::elimination::{Incomplete, Kind, Triangles, bytes_by_rows, require_symmetric};
use crate::error::{SetupError, row_in_words};
use crate::matrix::{Csr, Pattern};
use crate::operator::{OwnRows, SolverSpace};
use crate::options::{Layout, Method, Precision};
use crate::outcome::Recovery;
use crate::precond::PrecondSpec;
use crate::precond::registry::OwnRecipe;
use crate::scalar::LARGEST_F32;
use crate::schedule::Schedule;
use crate::space::Threads;
use std::borrow::Cow;
use std::cell::OnceCell;
use std::ops::Range;
use std::sync::Arc;

/// A factor that nobody set a limit for may be this many times as large as one without fill.
const PROPORTION: u64 = 100;
/// And as large as this in any case.
const SMALL: u64 = 64 << 20;

/// Bytes of a method's workspace, and of b, x and the recomputed residual beside it.
pub(crate) fn vector_bytes(method: Method, rows: usize) -> u64 {
    method.workspace_bytes(rows).saturating_add(AROUND * rows as u64)
}

/// Bytes per row of the vectors around a method: b, x and the recomputed residual.
pub(super) const AROUND: u64 = 24;

/// Options of a set-up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SetupOptions {
    /// How sweeps are divided among threads.
    pub schedule: Schedule,
    /// In which order rows may be taken.
    pub layout: Layout,
    /// In which numbers factors are stored.
    pub precision: Precision,
    /// Whether a bad pivot is followed by a shift.
    pub recover: bool,
    /// The shift that factors begin with, where they can be shifted.
    pub shift: f64,
    /// The most bytes of a factor, if the caller limits them.
    pub max_bytes: Option<u64>,
    /// The most bytes of everything, if the caller limits them.
    pub max_memory: Option<u64>,
}

/// Triangles of a factor whose pattern followed the values, and the shift they needed.
pub(crate) type OneFactor = (Triangles<f64>, f64);

/// A system to be set up.
pub struct SetupContext<'a, S: SolverSpace> {
    /// The options.
    pub options: SetupOptions,
    /// Where vectors live.
    pub space: &'a S,
    /// The size of vectors in the order of A.
    pub size: S::Size,
    /// A, if it is a matrix.
    pub a: Option<&'a Csr<f64>>,
    /// The matrix that the preconditioner is made from.
    pub source: &'a Csr<f64>,
    /// The method that will run.
    pub method: Method,
    /// The recipe of the caller's, if the preconditioner is to be made by one.
    pub(crate) own: Option<&'a OwnRecipe>,
    /// Vectors that A takes to small ones, in the order of its columns.
    pub(crate) near_null: Cow<'a, [Vec<f64>]>,
    /// The power of two that brings the source into range.
    pub(crate) scale: f64,
    /// Bytes that are taken already, besides A and vectors.
    pub(crate) reserved: u64,
    /// Factors are stored in `f32`.
    pub(crate) narrow: bool,
    /// The row of A at each place, where the source is permuted.
    pub(crate) rows: Option<&'a [u32]>,
    /// The rows of A that this process has, where they are divided; the source is made of those of their columns that are its own.
    pub(crate) own_rows: Option<OwnRows<'a>>,
    /// What is known about the source already.
    pub(crate) findings: Findings,
    /// Where the factor has its entries.
    filled: OnceCell<Arc<Pattern>>,
}

impl<'a, S: SolverSpace> SetupContext<'a, S> {
    pub(crate) fn new(
        options: SetupOptions,
        space: &'a S,
        size: S::Size,
        a: Option<&'a Csr<f64>>,
        source: &'a Csr<f64>,
        (method, scale): (Method, f64),
    ) -> Self {
        SetupContext {
            options,
            space,
            size,
            a,
            source,
            method,
            own: None,
            near_null: Cow::Borrowed(&[]),
            scale,
            reserved: 0,
            narrow: false,
            rows: None,
            own_rows: None,
            findings: Findings::default(),
            filled: OnceCell::new(),
        }
    }

    /// The same system for threads of the host, which make what a store adopts, in the order of A.
    pub(crate) fn on_host(&self, precision: Precision) -> SetupContext<'_, Threads<f64>> {
        let options = SetupOptions { precision, ..self.options };
        let (host, rows) = (self.space.host(), self.source.nrows());
        let setup = SetupContext::new(options, host, rows, self.a, self.source, (self.method, self.scale));
        SetupContext {
            own: self.own,
            near_null: self.near_null.clone(),
            reserved: self.reserved,
            narrow: self.narrow && precision != Precision::F64,
            rows: self.rows,
            findings: self.findings.clone(),
            filled: self.filled.clone(),
            ..setup
        }
    }

    /// The same for another matrix, as for a level of a hierarchy: `size` is that of its vectors. Nothing brings its entries into range, and factors are in `f64` where
    /// the whole iteration was to be in `f32`.
    pub fn of_level<'m>(&self, matrix: &'m Csr<f64>, size: S::Size) -> SetupContext<'m, S>
    where
        'a: 'm,
    {
        let SetupContext { options, space, method, reserved, .. } = *self;
        let precision = match options.precision {
            Precision::F32 => Precision::F64,
            other => other,
        };
        let options = SetupOptions { precision, ..options };
        let mut level = SetupContext::new(options, space, size, Some(matrix), matrix, (method, 1.0));
        level.reserved = reserved;
        level.rows = self.rows.filter(|_| std::ptr::eq(matrix, self.source));
        level
    }

    /// How a factor of this kind is attempted.
    pub fn attempts<'k>(&self, kind: &'k PrecondSpec) -> Attempts<'k>
    where
        'a: 'k,
    {
        let SetupOptions { recover, shift, .. } = self.options;
        let begin = if kind.info().can_shift { shift } else { 0.0 };
        Attempts { begin, rows: self.rows, ..Attempts::new(kind, recover) }
    }

    /// A, where it is a matrix of another pattern than the one that the preconditioner is made from.
    pub fn other_matrix(&self) -> Option<&'a Csr<f64>> {
        let (a, source) = (self.a?, self.source);
        let same = Arc::ptr_eq(a.pattern(), source.pattern()) || a.pattern() == source.pattern();
        (!same).then_some(a)
    }

    /// Whether the preconditioner is made from A itself.
    pub(crate) fn is_from_a(&self) -> bool {
        self.a.is_none_or(|a| std::ptr::eq(a, self.source) || a == self.source)
    }

    /// How an incomplete factor with levels of fill is made, if that is what the name means.
    pub(crate) fn recipe(&self, kind: &PrecondSpec) -> Option<Incomplete> {
        kind.incomplete().map(|recipe| self.limited(recipe))
    }

    /// A recipe with the schedule and the limit of memory of this set-up.
    pub(crate) fn limited(&self, recipe: Incomplete) -> Incomplete {
        Incomplete { schedule: self.options.schedule, max_bytes: Some(self.limit()), ..recipe }
    }

    /// The pattern of an incomplete factor, found once for all stores. That the source of a Cholesky factor has a symmetric pattern
    /// is checked here if there is fill, and by each store if there is none.
    pub(crate) fn filled_pattern(
        &self,
        recipe: &Incomplete,
        recorder: &mut SetupRecorder,
    ) -> Result<Arc<Pattern>, SetupError> {
        if let Some(known) = self.filled.get() {
            return Ok(Arc::clone(known));
        }
        let found = recorder.analyzing(|| {
            if recipe.form.kind == Kind::Cholesky && recipe.level > 0 {
                require_symmetric(self.source.pattern())?;
            }
            recipe.pattern(self.source.pattern())
        })?;
        Ok(Arc::clone(self.filled.get_or_init(|| found)))
    }

    /// Decides in which numbers factors are stored: entries of A pass through `f32` while they are eliminated, and where that is too
    /// narrow for them, `f64` is kept, and recorded.
    pub(crate) fn choose_precision(&mut self, kind: &PrecondSpec, recorder: &mut SetupRecorder) {
        if self.options.precision == Precision::F64 {
            return;
        }
        const RANGE: Range<f64> = 1.0 / LARGEST_F32..LARGEST_F32;
        let fits = |v: f64| v == 0.0 || RANGE.contains(&v.abs());
        let known = self.findings.values(self.source).map(|known| known.sizes);
        let misfit = match known {
            Some(sizes) if sizes.least >= RANGE.start && sizes.largest < RANGE.end => None,
            _ => self.source.values().iter().position(|&v| !fits(v)),
        };
        self.narrow = misfit.is_none();
        if let Some(k) = misfit
            && (kind.incomplete().is_some() || self.options.precision == Precision::F32)
        {
            let row = self.source.pattern().row_ptr().partition_point(|&first| first <= k) - 1;
            recorder.recovery.push(Recovery {
                failed: format!(
                    "factors in f32: an entry of {} is out of the range of f32",
                    row_in_words(row)
                ),
                row: Some(row),
                value: Some(self.source.values()[k]),
                action: "factors in f64".into(),
            });
        }
    }

    /// Bytes that a factor, and a copy of A made for it, may take: the caller's limit, and what the vectors leave of the memory that
    /// there is. Without a limit of the caller's, not out of all proportion to A.
    pub fn limit(&self) -> u64 {
        let (limit, a) = (self.limit_of_complete(), self.source);
        match (self.options.max_bytes, self.options.max_memory) {
            (None, None) => limit.min((PROPORTION * bytes_by_rows(a.nrows(), a.nnz() as u64)).max(SMALL)),
            _ => limit,
        }
    }

    /// The same for a complete factor, whose bytes are known exactly: not held to a proportion.
    pub(crate) fn limit_of_complete(&self) -> u64 {
        let max_bytes = self.options.max_bytes;
        let left = self.memory().saturating_sub(self.vector_bytes()).saturating_sub(self.reserved);
        left.min(max_bytes.unwrap_or(u64::MAX))
    }

    /// `Err(MemoryLimit)` if a factor takes more bytes than it may.
    pub fn require_within_limit(&self, predicted: usize) -> Result<(), SetupError> {
        let (predicted, limit) = (predicted as u64, self.limit());
        if predicted > limit { Err(SetupError::MemoryLimit { predicted, limit }) } else { Ok(()) }
    }

    /// Bytes that the whole solve may take.
    fn memory(&self) -> u64 {
        self.options.max_memory.or_else(available_memory).unwrap_or(u64::MAX)
    }

    /// Whether a limit of the caller's on the whole solve leaves room for a copy of A with its factor; by rows there is no copy.
    pub fn has_room_for(&self, bytes: usize) -> bool {
        self.options.max_memory.is_none() || bytes as u64 <= self.limit()
    }

    /// Bytes of the method's workspace, and of the vectors around it.
    pub(crate) fn vector_bytes(&self) -> u64 {
        let rows = self.source.nrows();
        vector_bytes(self.method, rows)
    }

    /// `Err(MemoryLimit)` if vectors, what is taken already, and the least that a factor takes, are more than there is.
    pub(crate) fn require_room(&self, kind: &PrecondSpec) -> Result<(), SetupError> {
        let (a, limit) = (self.source, self.memory());
        let factor = match kind.incomplete() {
            Some(_) => bytes_by_rows(a.nrows(), a.nnz().saturating_sub(a.nrows()) as u64),
            None => 0,
        };
        let predicted = self.vector_bytes().saturating_add(self.reserved).saturating_add(factor);
        if predicted > limit { Err(SetupError::MemoryLimit { predicted, limit }) } else { Ok(()) }
    }
}
