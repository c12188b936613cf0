//! Complete factors: M = A up to rounding, so that a method needs an iteration or a few.
//!
//! * `cholesky`: L Lᵀ of D A D, with D the inverse roots of the diagonal of a symmetric positive definite A;
//! * `lu`: L U of P R A Q C Pᵀ, with columns permuted (Q) and rows and columns scaled (R, C) so that magnitude 1 stands on the diagonal and nothing is
//!   larger ([`Matching`](crate::transform::Matching)), and with P for little fill;
//! * `ldlt`: L D Lᵀ of P S A S Pᵀ for a symmetric A that is not definite, D with blocks of one or two rows: half the numbers and operations of `lu`.
//!
//! All are multifrontal: supernodes of a symmetric graph, that of A or of A + Aᵀ, are eliminated in dense fronts, children before
//! parents, each adding its Schur complement to the front of its parent. Rows are exchanged for larger pivots within a supernode
//! only, so the storage is known before anything is computed. A pivot of LU or LDLᵀ below 10⁻¹² (of a matrix whose largest entry is 1) becomes 10⁻¹²: then M
//! differs from A by a matrix of that size and of low rank, which the method around it corrects, GMRES in as many iterations as there are
//! such pivots and a few more. An exactly singular A has a factor too. Cholesky ends at a pivot that is not positive.
//!
//! Where the diagonal is good enough as it is (no entry below 10⁻³ after the scaling of the matching), columns stay: a permutation would cost a
//! symmetric pattern, and fill. `scaling` has the details, `indefinite` the pivots of LDLᵀ.
//!
//! Cost: `Cost`, exact for the arithmetic on fronts and for the storage: the factor, complements that wait for their parents during
//! elimination, and indices. One thread, the same bits on every processor.
//!
//! References: Duff & Reid 1983, doi:10.1145/356044.356047, fronts; Li & Demmel 1998, doi:10.1109/SC.1998.10030, static pivots
//! and refinement; Schenk & Gärtner 2006, exchanges within supernodes (ETNA 23, 158–179).

mod analysis;
mod dense;
mod indefinite;
mod numeric;
mod scaling;

pub use analysis::Cost;
pub use dense::Copies;
pub(crate) use dense::{Pivot, eliminate_cholesky};

use crate::error::{BackendError, SetupError};
use crate::matrix::require_pattern;
use crate::matrix::{Csr, Pattern, Permutation};
use crate::operator::{LinearOperator, Preconditioner, Recipe, Symbolic};
use crate::space::{Threads, require_same};
use crate::transform::scaled;
use analysis::Supernodes;
use numeric::Numbers;
use scaling::Scaling;
use std::sync::Arc;

/// Which factor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DirectKind {
    /// L Lᵀ.
    Cholesky,
    /// L D Lᵀ.
    Ldlt,
    /// L U.
    Lu,
}

impl DirectKind {
    /// Whether one triangle is all there is.
    pub fn is_symmetric(self) -> bool {
        self != DirectKind::Lu
    }
}

/// Which pivots of LU and LDLᵀ are too small, and what becomes of them; for a matrix that is scaled to a largest entry of 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SmallPivots {
    /// Those below this.
    pub bound: f64,
    /// What they become, with their sign.
    pub replacement: f64,
}

impl SmallPivots {
    /// M is as close to A as M⁻¹ can be applied accurately: with √ε, cavity21 took an incomplete factor besides.
    pub const DEFAULT: Self = SmallPivots { bound: 1e-12, replacement: 1e-12 };
    /// A singular A has a factor that is well conditioned: A M⁻¹ differs from the identity by a matrix of as low a rank as there are such pivots, which
    /// least squares need few iterations for, and the part of b outside of the range of A does not grow in M⁻¹ b.
    pub const FOR_LEAST_SQUARES: Self = SmallPivots { bound: ROOT_EPSILON, replacement: 1.0 };
    /// M⁻¹ enlarges null vectors of A, but no others.
    pub const FOR_NULL_VECTORS: Self =
        SmallPivots { bound: 64.0 * f64::EPSILON, replacement: 64.0 * f64::EPSILON };
    /// As before, where pivots that belong to null vectors have grown for want of exchanges.
    pub const FOR_GROWN_NULL_VECTORS: Self = SmallPivots { bound: ROOT_EPSILON, replacement: ROOT_EPSILON };
}

const ROOT_EPSILON: f64 = 1.0 / (1u64 << 26) as f64;

/// The recipe of a complete factor.
#[derive(Debug, Clone, Copy)]
pub struct Direct {
    /// Which factor.
    pub kind: DirectKind,
    /// The most bytes that it may take while it is computed.
    pub max_bytes: Option<u64>,
}

/// The order of elimination, and where every entry of A goes.
#[derive(Debug)]
pub struct DirectSymbolic {
    kind: DirectKind,
    pattern: Arc<Pattern>,
    analysis: Analysis,
}

/// A complete factor.
#[derive(Debug)]
pub struct DirectFactor {
    symbolic: Arc<DirectSymbolic>,
    numbers: Numbers,
}

#[derive(Debug)]
struct Analysis {
    nodes: Supernodes,
    /// Position k has column `columns.old()[k]` of A, before both are ordered.
    columns: Permutation,
    row_scale: Vec<f64>,
    column_scale: Vec<f64>,
    scatter: Scatter,
    cost: Cost,
}

/// The entries of A by supernode.
#[derive(Debug)]
struct Scatter {
    /// Where those of each supernode begin.
    ptr: Vec<usize>,
    /// The entry.
    entry: Vec<u32>,
    /// Its row in A.
    row: Vec<u32>,
    /// Its place among the numbers of the supernode.
    place: Vec<u64>,
}

impl DirectSymbolic {
    /// What the factor takes.
    pub fn cost(&self) -> &Cost {
        &self.analysis.cost
    }

    /// `Err(MemoryLimit)` if the factor takes more bytes than it may.
    pub(crate) fn require_within(&self, max_bytes: Option<u64>) -> Result<(), SetupError> {
        self.analysis.cost.require_within(max_bytes)
    }

    /// Room for the factor.
    pub(crate) fn allocate(self: &Arc<Self>) -> Result<DirectFactor, SetupError> {
        let Analysis { nodes, cost, .. } = &self.analysis;
        let numbers = Numbers::allocate(nodes, cost, self.kind)?;
        Ok(DirectFactor { symbolic: Arc::clone(self), numbers })
    }

    pub(crate) fn kind(&self) -> DirectKind {
        self.kind
    }

    /// Whether it is the analysis of such a factor of this matrix.
    pub(crate) fn is_of(&self, kind: DirectKind, a: &Csr<f64>) -> bool {
        self.kind == kind && Arc::ptr_eq(&self.pattern, a.pattern())
    }
}

impl Cost {
    /// Bytes of the factor, of what waits while it is computed, and of indices and scales.
    pub fn bytes(&self) -> u64 {
        let numbers = self.entries.saturating_add(self.stack).saturating_add(self.products);
        numbers.saturating_mul(8).saturating_add(self.indices)
    }

    fn require_within(&self, max_bytes: Option<u64>) -> Result<(), SetupError> {
        match max_bytes.filter(|&limit| self.bytes() > limit) {
            Some(limit) => Err(SetupError::MemoryLimit { predicted: self.bytes(), limit }),
            None => Ok(()),
        }
    }
}

/// Numbers of a complete Cholesky factor.
pub(crate) fn predicted_entries(pattern: &Pattern) -> Option<u64> {
    Supernodes::find(pattern, &[]).ok().map(|nodes| nodes.cost(DirectKind::Cholesky).entries)
}

/// The pattern with its columns permuted.
fn column_permuted(pattern: &Pattern, columns: &Permutation) -> Pattern {
    let places = columns.new_positions();
    let mut col_idx: Vec<u32> = pattern.col_idx().iter().map(|&j| places[j as usize]).collect();
    for i in 0..pattern.nrows() {
        col_idx[pattern.row_range(i)].sort_unstable();
    }
    Pattern::trusted(pattern.nrows(), pattern.ncols(), pattern.row_ptr().to_vec(), col_idx)
}

impl Recipe<Threads<f64>, Csr<f64>> for Direct {
    type Symbolic = Arc<DirectSymbolic>;

    fn analyze(&self, _: &Threads<f64>, a: &Csr<f64>) -> Result<Arc<DirectSymbolic>, SetupError> {
        self.symbolic(a)
    }
}

impl Direct {
    /// Finds the order of elimination; an error if the factor takes more bytes than it may.
    pub fn symbolic(&self, a: &Csr<f64>) -> Result<Arc<DirectSymbolic>, SetupError> {
        a.pattern().require_square()?;
        if u32::try_from(a.nnz()).is_err() {
            return Err(BackendError::Unsupported { what: "a complete factor of 2³² entries or more" }.into());
        }
        let Scaling { columns, row_scale, column_scale, partner } = Scaling::find(self.kind, a)?;
        let nodes = Supernodes::find(&column_permuted(a.pattern(), &columns), &partner)?;
        let mut cost = nodes.cost(self.kind);
        cost.indices = index_bytes(&nodes, a.pattern(), self.kind) as u64;
        cost.require_within(self.max_bytes)?;
        let scatter = Scatter::new(a.pattern(), &columns, &nodes, self.kind.is_symmetric());
        let analysis = Analysis { nodes, columns, row_scale, column_scale, scatter, cost };
        Ok(Arc::new(DirectSymbolic { kind: self.kind, pattern: Arc::clone(a.pattern()), analysis }))
    }
}

impl Scatter {
    fn new(pattern: &Pattern, columns: &Permutation, nodes: &Supernodes, symmetric: bool) -> Self {
        let (of, places) = (nodes.of_columns(), nodes.order.new_positions());
        let place = |i: usize, j: u32| {
            let column = columns.new_positions()[j as usize];
            (places[i] as usize, places[column as usize] as usize)
        };
        let entries = || {
            (0..pattern.nrows()).flat_map(move |i| {
                pattern.row_range(i).filter_map(move |e| {
                    let (row, column) = place(i, pattern.col_idx()[e]);
                    (!symmetric || row >= column).then_some((e, i, row, column))
                })
            })
        };
        let mut ptr = vec![0usize; nodes.len() + 1];
        entries().for_each(|(_, _, row, column)| ptr[of[row.min(column)] as usize + 1] += 1);
        for s in 0..nodes.len() {
            ptr[s + 1] += ptr[s];
        }
        let count = ptr[nodes.len()];
        let mut cursor = ptr.clone();
        let (mut entry, mut rows, mut at) = (vec![0u32; count], vec![0u32; count], vec![0u64; count]);
        for (e, i, row, column) in entries() {
            let s = of[row.min(column)] as usize;
            let front = nodes.front(s);
            let local = |k: usize| match k < front.first + front.columns {
                true => k - front.first,
                false => front.columns + front.rows.partition_point(|&row| (row as usize) < k),
            };
            let to = cursor[s];
            cursor[s] += 1;
            (entry[to], rows[to], at[to]) =
                (e as u32, i as u32, numeric::place(&front, local(row), local(column)) as u64);
        }
        Scatter { ptr, entry, row: rows, place: at }
    }
}

/// Bytes of everything that is not a number of the factor: supernodes, where each entry of A goes, scales, columns, exchanges.
fn index_bytes(nodes: &Supernodes, pattern: &Pattern, kind: DirectKind) -> usize {
    let n = pattern.nrows();
    let entries = if kind.is_symmetric() { (pattern.nnz() + n) / 2 } else { pattern.nnz() };
    let exchanges = if kind == DirectKind::Cholesky { 0 } else { 4 * n };
    nodes.bytes() + 16 * entries + 16 * (nodes.len() + 1) + 24 * n + exchanges
}

impl Symbolic<Threads<f64>, Csr<f64>> for Arc<DirectSymbolic> {
    type Factor = DirectFactor;

    fn factor(&self, space: &Threads<f64>, a: &Csr<f64>) -> Result<DirectFactor, SetupError> {
        let mut factor = self.allocate()?;
        factor.refactor(space, a)?;
        Ok(factor)
    }
}

impl DirectFactor {
    /// Pivots that were replaced because they were too small.
    pub fn replaced_pivots(&self) -> usize {
        self.numbers.replaced
    }

    /// What the next factorization does about pivots that are too small.
    pub fn set_small_pivots(&mut self, small: SmallPivots) {
        self.numbers.small = small;
    }

    /// What the factorization took.
    pub fn cost(&self) -> Cost {
        self.symbolic.analysis.cost
    }
}

impl Preconditioner<Threads<f64>, Csr<f64>> for DirectFactor {
    /// The order and the scales stay those of the first matrix.
    fn refactor(&mut self, _: &Threads<f64>, a: &Csr<f64>) -> Result<(), SetupError> {
        let DirectSymbolic { pattern, analysis, .. } = &*self.symbolic;
        require_pattern(pattern, a.pattern())?;
        let Analysis { nodes, row_scale, column_scale, scatter, .. } = analysis;
        let value = |k: usize| {
            let (e, row) = (scatter.entry[k] as usize, scatter.row[k] as usize);
            scaled(a.values()[e], row_scale[row], column_scale[pattern.col_idx()[e] as usize])
        };
        let assemble = |s: usize, numbers: &mut [f64]| {
            for k in scatter.ptr[s]..scatter.ptr[s + 1] {
                numbers[scatter.place[k] as usize] += value(k);
            }
        };
        let largest = (0..scatter.entry.len()).map(|k| value(k).abs()).fold(0.0, f64::max);
        self.numbers
            .eliminate(nodes, largest, assemble)
            .map_err(|(place, value)| SetupError::BadPivot { row: nodes.order.old()[place] as usize, value })
    }

    fn entries(&self) -> usize {
        self.symbolic.analysis.cost.entries as usize
    }

    fn bytes(&self) -> usize {
        self.symbolic.cost().bytes() as usize
    }
}

impl LinearOperator<Threads<f64>> for DirectFactor {
    type Scratch = Vec<f64>;

    fn domain(&self) -> usize {
        self.symbolic.pattern.nrows()
    }

    fn range(&self) -> usize {
        self.symbolic.pattern.nrows()
    }

    fn scratch(&self, _: &Threads<f64>) -> Result<Self::Scratch, BackendError> {
        Ok(Vec::new())
    }

    fn apply(
        &self,
        _: &Threads<f64>,
        x: &Vec<f64>,
        y: &mut Vec<f64>,
        z: &mut Vec<f64>,
    ) -> Result<(), BackendError> {
        self.check(x, y)?;
        let Analysis { nodes, columns, row_scale, column_scale, .. } = &self.symbolic.analysis;
        z.clear();
        z.extend(nodes.order.old().iter().map(|&i| x[i as usize] * row_scale[i as usize]));
        self.numbers.solve(nodes, z);
        for (k, &position) in nodes.order.old().iter().enumerate() {
            let j = columns.old()[position as usize] as usize;
            y[j] = z[k] * column_scale[j];
        }
        Ok(())
    }

    fn apply_transpose(
        &self,
        _: &Threads<f64>,
        x: &Vec<f64>,
        y: &mut Vec<f64>,
        z: &mut Vec<f64>,
    ) -> Result<(), BackendError> {
        self.check(x, y)?;
        let Analysis { nodes, columns, row_scale, column_scale, .. } = &self.symbolic.analysis;
        z.clear();
        z.extend(nodes.order.old().iter().map(|&position| {
            let j = columns.old()[position as usize] as usize;
            x[j] * column_scale[j]
        }));
        self.numbers.solve_transposed(nodes, z);
        for (k, &i) in nodes.order.old().iter().enumerate() {
            y[i as usize] = z[k] * row_scale[i as usize];
        }
        Ok(())
    }
}

impl DirectFactor {
    fn check(&self, x: &[f64], y: &[f64]) -> Result<(), BackendError> {
        let n = self.symbolic.pattern.nrows();
        require_same("x and the factor", &x.len(), &n)?;
        require_same("y and the factor", &y.len(), &n)
    }
}

#[cfg(test)]
mod tests;
