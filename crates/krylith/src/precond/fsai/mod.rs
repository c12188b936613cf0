//! Factored sparse approximate inverses: M⁻¹ = Gᵀ G, with G lower triangular and sparse. A matrix that is not symmetric has a pair of factors (`pair`).
//!
//! On a given pattern S, G is what minimises the Kaporin number of G A Gᵀ, the arithmetic mean of its eigenvalues over their geometric mean; its rows are
//! those of L⁻¹ restricted to small dense parts of A (`batch`), each independent of the others, and G A Gᵀ has a unit diagonal. Applying
//! M⁻¹ is two products, so there is nothing to wait for, unlike in triangular solves.
//!
//! Phases, each in a span of its own: large entries and their powers (`pattern`) or a pattern that grows (`adaptive`), gather and solve
//! (`rows`), filter and scale (`filter`), transpose.
//!
//! Deviations from the paper's Algorithm 3.1, whose text and equations say otherwise in each: k steps of (3.9) and not k − 1; magnitudes in drop tests; the
//! diagonal is always kept; one scaling per row. The filter is ours too: it compares in units of the diagonal of A, |gⱼ| √aⱼⱼ, the paper |gⱼ|. A pivot that is not positive shrinks the pattern of its row, so a factor is always
//! found, and Gᵀ G is always positive definite.
//!
//! G is computed by rows; A, G and Gᵀ are then stored in whatever store products are fast in (`store::inverse`): as stencils on a grid, in blocks, in slices, by
//! rows. A refactorization keeps the patterns of the first matrix, those after the filter too; unlike those of incomplete factors it allocates, G and Gᵀ by rows.
//!
//! References: Kolotilina & Yeremin 1993, doi:10.1137/0614004; Kaporin 1994, doi:10.1002/nla.1680010208; Bernaschi, Bisson, Fantozzi & Janna 2016,
//! doi:10.1137/15M1027826, whose equations are cited here.

mod adaptive;
mod batch;
mod choose;
mod filter;
mod of_parts;
mod pair;
mod pattern;
mod repeats;
mod rows;

pub use adaptive::Growth;
pub(crate) use choose::LikelySize;
pub(crate) use of_parts::{InParts, InverseRows};

use crate::error::{BackendError, SetupError};
use crate::matrix::require_pattern;
use crate::matrix::{Csr, Pattern};
use crate::memory::large_pages;
use crate::operator::{LinearOperator, Parts, Preconditioner, Recipe, SolverSpace, Symbolic};
use crate::placement::Storage;
use crate::space::{Space, Threads};
use pattern::Most;
use repeats::{Repeats, Rows};
use rows::{Batches, MOST_INDICES, solve_rows};
use std::sync::Arc;
use tracing::{info_span, trace_span};

/// S, G on it, G and Gᵀ after the filter: an index and a number each, at most.
pub(crate) const BYTES_PER_ENTRY: u64 = 4 * 12;

/// How the pattern of G is found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PatternRule {
    /// Powers of the large entries of A; what is not given is chosen from the matrix.
    Powers {
        /// τ: entries up to τ √(aᵢᵢ aⱼⱼ) are not in the pattern that is multiplied.
        tau: Option<f64>,
        /// k: the power.
        power: Option<usize>,
    },
    /// Grown by values.
    Adaptive(Growth),
}

/// The recipe of an approximate inverse.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fsai {
    /// How its pattern is found.
    pub pattern: PatternRule,
    /// δ: entries of a row g of G with |gⱼ| √aⱼⱼ up to δ ‖D½ g‖ are dropped, D the diagonal of A. If not given, τ for powers above the first, otherwise 0.
    pub delta: Option<f64>,
    /// A is not symmetric: a pair of factors, M⁻¹ = G_U G_L.
    pub pair: bool,
    /// Bytes at most.
    pub max_bytes: Option<u64>,
}

/// The pattern of G before the filter.
#[derive(Debug, Clone)]
pub struct FsaiSymbolic {
    source: Arc<Pattern>,
    pattern: Arc<Pattern>,
    /// Rows of the matrix that was analyzed which are copies of others.
    pub(crate) repeats: Option<Arc<Repeats>>,
    /// How it was found.
    rule: Rule,
    delta: f64,
    pair: bool,
}

/// G and Gᵀ in a placement, or G_L and G_U.
#[derive(Debug, Clone)]
pub struct FsaiFactor<K = Csr<f64>> {
    pub(crate) symbolic: FsaiSymbolic,
    pub(crate) kept: Kept,
    pub(crate) g: K,
    pub(crate) second: K,
}

/// The entries of G after the filter, and those of Gᵀ or G_U by columns, which are the same unless there are two factors.
pub(crate) type Kept = [Arc<Pattern>; 2];

/// G and Gᵀ by rows, or G_L and G_U, and the entries that are kept.
type Factors = ([Csr<f64>; 2], Kept);

/// A rule with nothing left to choose.
#[derive(Debug, Clone, Copy)]
enum Rule {
    Powers { tau: f64, power: usize },
    Grown(Growth),
}

impl Rule {
    /// Steps from row to row of A in which a row of the pattern reaches all of its entries.
    fn steps(self) -> usize {
        match self {
            Rule::Powers { power, .. } => power,
            Rule::Grown(growth) => growth.steps,
        }
    }
}

impl Fsai {
    /// The rule and δ for a matrix.
    fn resolved(&self, a: &Csr<f64>) -> (Rule, f64) {
        match self.pattern {
            PatternRule::Powers { tau, power } => {
                let choose = || choose::tau_and_power(a, (tau, power));
                let (tau, power) = info_span!("choose").in_scope(choose);
                let delta = self.delta.unwrap_or(if power > 1 { tau } else { 0.0 });
                (Rule::Powers { tau, power }, delta)
            }
            PatternRule::Adaptive(growth) => (Rule::Grown(growth), self.delta.unwrap_or(0.0)),
        }
    }
}

impl Recipe<Threads<f64>, Csr<f64>> for Fsai {
    type Symbolic = FsaiSymbolic;

    fn analyze(&self, space: &Threads<f64>, a: &Csr<f64>) -> Result<FsaiSymbolic, SetupError> {
        a.pattern().require_square()?;
        let most = self.max_bytes.map_or(u64::MAX, |bytes| bytes / BYTES_PER_ENTRY).min(u32::MAX.into());
        // A pair has the pattern of a symmetric matrix, and is not compared.
        let sizes = self.pair.then(|| pair::sizes(a));
        let (rule, delta) = self.resolved(sizes.as_ref().unwrap_or(a));
        let find = || Repeats::find(space, a, rule.steps());
        let repeats = if self.pair { None } else { info_span!("compare").in_scope(find).map(Arc::new) };
        let (source, a) = (Arc::clone(a.pattern()), sizes.as_ref().unwrap_or(a));
        let rows = repeats.as_ref().map_or(Rows::all(a.nrows()), |repeats| repeats.rows());
        let computed = match rule {
            Rule::Powers { tau, power } => {
                let large = info_span!("prefilter").in_scope(|| pattern::large_entries(space, a, tau));
                let most = Most { of_a_row: MOST_INDICES, in_all: most };
                info_span!("powers").in_scope(|| pattern::powers(space, &large, power, rows, most))?
            }
            Rule::Grown(growth) => {
                info_span!("grow").in_scope(|| adaptive::grow(space, a, growth, rows, most))?
            }
        };
        let pattern = match &repeats {
            Some(repeats) => {
                info_span!("copy").in_scope(|| repeats.expand(space, &computed, most, BYTES_PER_ENTRY))?
            }
            None => computed,
        };
        Ok(FsaiSymbolic { source, pattern: Arc::new(pattern), repeats, rule, delta, pair: self.pair })
    }
}

impl FsaiSymbolic {
    /// Entries of G before the filter.
    pub fn entries(&self) -> usize {
        self.pattern.nnz()
    }

    /// How the pattern was found, in words.
    pub(crate) fn words(&self) -> String {
        match self.rule {
            Rule::Powers { tau, power } if self.delta > 0.0 => {
                format!("power {power} of entries above {tau}, filtered by {}", self.delta)
            }
            Rule::Powers { tau, power } => format!("power {power} of entries above {tau}"),
            Rule::Grown(_) => "a pattern that grew".into(),
        }
    }

    /// The factors of a matrix of the pattern that was analyzed, on the entries that were `kept` before, or on those that the filter keeps.
    pub(crate) fn factors(
        &self,
        space: &Threads<f64>,
        a: &Csr<f64>,
        kept: Option<&Kept>,
    ) -> Result<Factors, SetupError> {
        require_pattern(&self.source, a.pattern())?;
        let transposed = |of: &Csr<f64>| info_span!("transpose").in_scope(|| of.transpose().without_hash());
        if self.pair {
            let ([lower, columns], kept) = self.pair(space, a, kept)?;
            let upper = transposed(&columns);
            return Ok(([lower, upper], kept));
        }
        let g = self.g(space, a, kept.map(|[kept, _]| kept))?;
        let (second, kept) = (transposed(&g), Arc::clone(g.pattern()));
        Ok(([g, second], [Arc::clone(&kept), kept]))
    }

    /// G_L, and G_U by columns.
    fn pair(&self, space: &Threads<f64>, a: &Csr<f64>, kept: Option<&Kept>) -> Result<Factors, SetupError> {
        let solve = info_span!("solve").entered();
        let (mut lower, mut upper) = (
            large_pages::zeros_or_error(self.pattern.nnz())?,
            large_pages::zeros_or_error(self.pattern.nnz())?,
        );
        pair::solve_pairs(space, a, &self.pattern, [&mut lower, &mut upper]);
        drop(solve);
        let _filter = info_span!("filter").entered();
        let filtered = |values: &[f64]| match self.delta == 0.0 {
            true => Arc::clone(&self.pattern),
            false => Arc::new(self.kept_entries(space, a, values)),
        };
        let kept = kept.cloned().unwrap_or_else(|| [filtered(&lower), filtered(&upper)]);
        let stored = |k: usize, values| Csr::trusted(Arc::clone(&kept[k]), values).without_hash();
        if kept.iter().all(|kept| Arc::ptr_eq(kept, &self.pattern)) {
            return Ok(([stored(0, lower), stored(1, upper)], kept));
        }
        let (mut z, mut w) =
            (large_pages::zeros_or_error(kept[0].nnz())?, large_pages::zeros_or_error(kept[1].nnz())?);
        let whole = (&*self.pattern, [&lower[..], &upper[..]]);
        pair::scale_pairs(space, a, whole, [&kept[0], &kept[1]], [&mut z, &mut w]);
        Ok(([stored(0, z), stored(1, w)], kept))
    }

    fn kept_entries(&self, space: &Threads<f64>, a: &Csr<f64>, values: &[f64]) -> Pattern {
        filter::kept_entries(space, &pattern::roots_of_diagonal(a), (&self.pattern, values), self.delta)
    }

    /// G of one factor.
    fn g(
        &self,
        space: &Threads<f64>,
        a: &Csr<f64>,
        kept: Option<&Arc<Pattern>>,
    ) -> Result<Csr<f64>, SetupError> {
        let solve = info_span!("solve").entered();
        let mut whole = large_pages::zeros_or_error(self.pattern.nnz())?;
        let repeats = self.repeats.as_ref().filter(|repeats| repeats.are_of(a));
        let batches = Batches::of(&self.pattern, |i| repeats.is_none_or(|repeats| repeats.has(i)));
        solve_rows(space, a, &self.pattern, &batches, &mut whole);
        if let Some(repeats) = repeats {
            repeats.copy(space, &self.pattern, &mut whole);
        }
        drop(solve);
        let _filter = info_span!("filter").entered();
        let kept = match kept {
            Some(kept) => Arc::clone(kept),
            None if self.delta == 0.0 => Arc::clone(&self.pattern),
            None => Arc::new(self.kept_entries(space, a, &whole)),
        };
        if Arc::ptr_eq(&kept, &self.pattern) {
            return Ok(Csr::trusted(kept, whole).without_hash());
        }
        let mut values = large_pages::zeros_or_error(kept.nnz())?;
        filter::scale_rows(space, a, (&self.pattern, &whole), &kept, &mut values);
        Ok(Csr::trusted(kept, values).without_hash())
    }
}

impl Symbolic<Threads<f64>, Csr<f64>> for FsaiSymbolic {
    type Factor = FsaiFactor;

    fn factor(&self, space: &Threads<f64>, a: &Csr<f64>) -> Result<FsaiFactor, SetupError> {
        let ([g, second], kept) = self.factors(space, a, None)?;
        Ok(FsaiFactor { symbolic: self.clone(), kept, g, second })
    }
}

impl<K> FsaiFactor<K> {
    /// G, or G_L, as it is stored.
    pub fn g(&self) -> &K {
        &self.g
    }

    /// Gᵀ, or G_U, as it is stored.
    pub fn second(&self) -> &K {
        &self.second
    }

    /// What an application reads and writes: both factors, x, G x twice and y.
    fn applied_bytes<S: Space>(&self) -> u64
    where
        K: Storage<S>,
    {
        (self.g.bytes() + self.second.bytes() + 32 * self.symbolic.source.nrows()) as u64
    }
}

impl<S, K, P> Preconditioner<S, K> for FsaiFactor<P>
where
    S: SolverSpace,
    K: Storage<S>,
    P: Storage<S> + 'static,
{
    fn refactor(&mut self, space: &S, a: &K) -> Result<(), SetupError> {
        match a.matrix() {
            Some(rows) => self.refactor_by_rows(space, a, rows),
            None => {
                Err(BackendError::Unsupported { what: "an approximate inverse of a matrix without rows" }
                    .into())
            }
        }
    }

    fn refactor_by_rows(&mut self, space: &S, _: &K, rows: &Csr<f64>) -> Result<(), SetupError> {
        let ([g, second], _) = self.symbolic.factors(space.host(), rows, Some(&self.kept))?;
        self.g.set(space, &g)?;
        self.second.set(space, &second)
    }

    /// Only those by rows.
    fn parts(&self) -> Option<Parts<'_, f64>> {
        Some(Parts::Products([self.g.matrix()?, self.second.matrix()?]))
    }

    fn entries(&self) -> usize {
        self.kept[0].nnz()
    }

    fn bytes(&self) -> usize {
        let FsaiSymbolic { pattern, repeats, .. } = &self.symbolic;
        let own = |k: usize| {
            let is_counted =
                Arc::ptr_eq(&self.kept[k], pattern) || k > 0 && Arc::ptr_eq(&self.kept[0], &self.kept[k]);
            if is_counted { 0 } else { self.kept[k].bytes() }
        };
        let kept = own(0) + own(1);
        let repeats = repeats.as_ref().map_or(0, |repeats| repeats.bytes());
        pattern.bytes() + repeats + kept + self.g.bytes() + self.second.bytes()
    }
}

/// G x, and what both products write.
pub struct FsaiScratch<S: SolverSpace, P: Storage<S>> {
    product: S::Vector,
    own: [P::Scratch; 2],
}

impl<S: SolverSpace, P: Storage<S> + 'static> LinearOperator<S> for FsaiFactor<P> {
    type Scratch = FsaiScratch<S, P>;

    fn domain(&self) -> S::Size {
        self.g.domain()
    }

    fn range(&self) -> S::Size {
        self.second.range()
    }

    fn scratch(&self, space: &S) -> Result<Self::Scratch, BackendError> {
        let own = [self.g.scratch(space)?, self.second.scratch(space)?];
        Ok(FsaiScratch { product: space.zeros(&self.g.range())?, own })
    }

    fn apply(
        &self,
        space: &S,
        x: &S::Vector,
        y: &mut S::Vector,
        scratch: &mut Self::Scratch,
    ) -> Result<(), BackendError> {
        let _span = trace_span!("apply", bytes = self.applied_bytes::<S>()).entered();
        let FsaiScratch { product, own: [of_g, of_second] } = scratch;
        self.g.apply(space, x, product, of_g)?;
        self.second.apply(space, product, y, of_second)
    }

    /// xᵀ Gᵀ G x is ‖G x‖², so with one factor neither x nor y is read again.
    fn apply_dot(
        &self,
        space: &S,
        x: &S::Vector,
        y: &mut S::Vector,
        scratch: &mut Self::Scratch,
    ) -> Result<f64, BackendError> {
        if self.symbolic.pair {
            self.apply(space, x, y, scratch)?;
            return space.dot(x, y);
        }
        let _span = trace_span!("apply", bytes = self.applied_bytes::<S>()).entered();
        let FsaiScratch { product, own: [of_g, of_second] } = scratch;
        let square = self.g.apply_square(space, x, product, of_g)?;
        self.second.apply(space, product, y, of_second)?;
        Ok(square)
    }

    /// Gᵀ G is symmetric.
    fn apply_transpose(
        &self,
        space: &S,
        x: &S::Vector,
        y: &mut S::Vector,
        scratch: &mut Self::Scratch,
    ) -> Result<(), BackendError> {
        match self.symbolic.pair {
            true => Err(BackendError::Unsupported { what: "applying the transpose of a pair of factors" }),
            false => self.apply(space, x, y, scratch),
        }
    }
}
