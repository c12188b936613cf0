//! A factored approximate inverse for a system: G and Gᵀ by rows, to be kept by whichever store takes the fewest bytes.

use crate::error::SolveError;
use crate::matrix::Csr;
use crate::operator::{DynPreconditioner, Preconditioner, Recipe, SolverSpace};
use crate::options::Method;
use crate::placement::KeptMatrix;
use crate::precond::fsai::{BYTES_PER_ENTRY, Fsai, FsaiFactor, FsaiSymbolic, Kept};
use crate::setup::{SetupContext, SetupRecorder};
use crate::space::Threads;
use crate::store::{Made, OverStore, Products};
use std::convert::Infallible;

/// G and Gᵀ by rows, or G_L and G_U.
pub(crate) struct Inverse {
    symbolic: FsaiSymbolic,
    g: Csr<f64>,
    second: Csr<f64>,
    kept: Kept,
}

impl Inverse {
    /// Computed by threads of the host.
    pub(crate) fn new<S: SolverSpace>(
        setup: &SetupContext<'_, S>,
        recipe: Fsai,
        recorder: &mut SetupRecorder,
    ) -> Result<Self, SolveError> {
        let host = setup.space.host();
        let symbolic = recorder.analyzing(|| limited(setup, recipe).analyze(host, setup.source))?;
        let ([g, second], kept) = recorder.factoring(|| symbolic.factors(host, setup.source, None))?;
        Ok(Inverse { symbolic, g, second, kept })
    }

    /// What it will be, without computing it.
    pub(crate) fn analyze<S: SolverSpace>(
        setup: &SetupContext<'_, S>,
        recipe: Fsai,
        recorder: &mut SetupRecorder,
    ) -> Result<(String, u64), SolveError> {
        let host = setup.space.host();
        let symbolic = recorder.analyzing(|| limited(setup, recipe).analyze(host, setup.source))?;
        Ok(expected(setup, &symbolic))
    }

    /// What was expected of it before it was computed.
    pub(crate) fn expected<S: SolverSpace>(&self, setup: &SetupContext<'_, S>) -> (String, u64) {
        expected(setup, &self.symbolic)
    }

    /// What a store is asked for; in `f32` if that is wanted and rows of G keep their accuracy there.
    pub(crate) fn products(&self, narrow: bool) -> Products<'_> {
        let narrow = narrow && fits_f32(&self.g);
        let slices = self.symbolic.repeats.as_ref().map(|repeats| repeats.slices());
        Products { matrices: [&self.g, &self.second], narrow, slices }
    }

    pub(crate) fn matrices(&self) -> [&Csr<f64>; 2] {
        [&self.g, &self.second]
    }

    /// Bytes of both matrices by rows.
    pub(crate) fn bytes(&self) -> usize {
        self.g.bytes() + self.second.bytes()
    }

    /// Over a store that keeps both matrices.
    pub(crate) fn over<S: SolverSpace>(&self, [g, second]: [KeptMatrix<S>; 2]) -> Made<S> {
        let words = format!("; {}", self.symbolic.words());
        let m = FsaiFactor { symbolic: self.symbolic.clone(), kept: self.kept.clone(), g, second };
        let m = DynPreconditioner::<S, KeptMatrix<S>>::new(m);
        let (nnz, bytes) = (m.entries(), m.bytes());
        Made { words, ..Made::new(OverStore::Placed(m), nnz, bytes) }
    }

    /// In the order of A, by rows, for this reason.
    pub(crate) fn in_order(self, reason: &str) -> Made<Threads<f64>> {
        let Inverse { symbolic, g, second, kept } = self;
        let words = format!(": {reason}; {}", symbolic.words());
        let m = FsaiFactor { symbolic, kept, g, second };
        let m = DynPreconditioner::<Threads<f64>, Csr<f64>>::new(m);
        let (nnz, bytes) = (m.entries(), m.bytes());
        Made { words, predicted: Some(bytes), ..Made::new(OverStore::InOrder(m), nnz, bytes) }
    }
}

/// An inverse in words, and the bytes of everything that a solve will hold besides A, b and x, at most.
fn expected<S: SolverSpace>(setup: &SetupContext<'_, S>, symbolic: &FsaiSymbolic) -> (String, u64) {
    let entries = symbolic.entries() as u64;
    let words = format!("products with G, of at most {entries} entries, and its transpose");
    (words, entries * BYTES_PER_ENTRY + setup.vector_bytes())
}

/// A recipe with the limit of memory of this set-up, for a pair where the method does not need one factor and the matrix is not symmetric.
fn limited<S: SolverSpace>(setup: &SetupContext<'_, S>, recipe: Fsai) -> Fsai {
    limited_for(setup, recipe, || Ok::<_, Infallible>(setup.source.symmetry().symmetric))
        .unwrap_or_else(|never| match never {})
}

/// The same where it takes more to find out whether the matrix is symmetric.
pub(crate) fn limited_for<S: SolverSpace, E>(
    setup: &SetupContext<'_, S>,
    recipe: Fsai,
    is_symmetric: impl FnOnce() -> Result<bool, E>,
) -> Result<Fsai, E> {
    let needs_one = matches!(setup.method, Method::Cg | Method::Minres | Method::Lsmr);
    let pair = !needs_one && !is_symmetric()?;
    Ok(Fsai { max_bytes: Some(setup.limit()), pair, ..recipe })
}

/// Whether rows of G keep their relative accuracy in `f32`: their scales are those of 1 / √aᵢᵢ.
fn fits_f32(g: &Csr<f64>) -> bool {
    let scale = |i: usize| g.row(i).1.last().map_or(0.0, |diagonal| diagonal.abs());
    (0..g.nrows()).all(|i| (1e-18..1e18).contains(&scale(i)))
}
