//! What was found out about a matrix while its solve was planned, kept for the set-up.

use crate::error::SetupError;
use crate::matrix::{Csr, Pattern, Stamp};
use crate::precond::direct::{Direct, DirectKind, DirectSymbolic};
use crate::space::Extremes;
use crate::structured::{NotStructured, Structure};
use std::sync::Arc;

/// What is known about a pattern already.
#[derive(Debug, Clone, Default)]
pub(crate) struct Findings {
    /// A pattern, and its grid or the reason for which no grid was found.
    grid: Option<(Arc<Pattern>, Result<Structure, NotStructured>)>,
    /// The analysis of a complete factor.
    complete: Option<Arc<DirectSymbolic>>,
    values: Option<KnownValues>,
}

/// What is known about the values of a matrix.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KnownValues {
    pub(crate) of: Stamp,
    pub(crate) sizes: Extremes<f64>,
    /// Whether a row has a tiny diagonal entry, if that was looked at.
    pub(crate) tiny_diagonal: Option<bool>,
}

impl Findings {
    /// Keeps what a look for the grid of a pattern has found.
    pub(crate) fn keep_structure(&mut self, pattern: &Arc<Pattern>, found: Result<Structure, NotStructured>) {
        self.grid = Some((Arc::clone(pattern), found));
    }

    /// The grid of a pattern, found now if it is not known.
    pub(crate) fn structure(&self, pattern: &Arc<Pattern>) -> Result<Structure, NotStructured> {
        match &self.grid {
            Some((known, found)) if Arc::ptr_eq(known, pattern) => found.clone(),
            _ => Structure::detect(pattern),
        }
    }

    /// Keeps what is known about the values of a matrix.
    pub(crate) fn keep_values(&mut self, known: KnownValues) {
        self.values = Some(known);
    }

    /// What is known about the values of this matrix.
    pub(crate) fn values(&self, a: &Csr<f64>) -> Option<&KnownValues> {
        self.values.as_ref().filter(|known| known.of == Stamp::of(a))
    }

    /// Keeps the analysis of a complete factor.
    pub(crate) fn keep_complete(&mut self, analysis: Arc<DirectSymbolic>) {
        self.complete = Some(analysis);
    }

    /// The complete factor that was analyzed.
    pub(crate) fn analyzed_kind(&self) -> Option<DirectKind> {
        self.complete.as_ref().map(|known| known.kind())
    }

    /// The analysis of a complete factor, if there is one.
    pub(crate) fn known_complete(&self, kind: DirectKind, a: &Csr<f64>) -> Option<&DirectSymbolic> {
        self.complete.as_deref().filter(|known| known.is_of(kind, a))
    }

    /// The analysis of a complete factor, made now if it is not known; an error if the factor takes more bytes than it may.
    pub(crate) fn complete(
        &self,
        kind: DirectKind,
        a: &Csr<f64>,
        max_bytes: Option<u64>,
    ) -> Result<Arc<DirectSymbolic>, SetupError> {
        match &self.complete {
            Some(known) if known.is_of(kind, a) => {
                known.require_within(max_bytes).map(|()| Arc::clone(known))
            }
            _ => Direct { kind, max_bytes }.symbolic(a),
        }
    }
}
