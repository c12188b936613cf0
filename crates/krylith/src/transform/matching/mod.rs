//! Maximum-product matching with scaling: large entries to the diagonal.
//!
//! Finds columns q such that ∏ |a(i, qᵢ)| is as large as possible, and scales r, c > 0 with
//!
//!   |rᵢ aᵢⱼ cⱼ| ≤ 1 for all entries,  = 1 for j = qᵢ  (up to rounding).
//!
//! With the costs cᵢⱼ = log maxₖ|aᵢₖ| − log|aᵢⱼ| ≥ 0 this is an assignment of least cost, found by shortest augmenting paths
//! (`assign`); its dual variables, uᵢ + vⱼ ≤ cᵢⱼ with equality where matched, are the logarithms of the scales:
//! rᵢ = exp(uᵢ) / maxₖ|aᵢₖ| and cⱼ = exp(vⱼ). They are determined up to a factor for each connected part of the matrix (rows
//! times t, columns over t), which is chosen so that the rows' and the columns' exponents have the same middle.
//!
//! Zeros that are stored count as missing. Cost: see `assign`; stores 8 bytes per entry and some 80 per row.
//! Breakdown: a structurally singular matrix has no such columns; magnitudes may spread so far that the scales are outside
//! of the range of `f64`. Both are reported. Logarithms are those of `libm`, the same on every platform.
//! Deviation from MC64: rows take the part of columns, as the matrix comes by rows.
//! Reference: Duff & Koster 2001, doi:10.1137/S0895479899358443 (option 5 of MC64).

mod assign;
#[cfg(test)]
mod tests;

use super::error::MatchingError;
use crate::error::MatrixError;
use crate::matrix::{Csr, CsrRef, Permutation};
use assign::{Assignment, NONE};

/// Exponents of scales stay within ± this, so that scales and their reciprocals are normal numbers with a margin.
const LARGEST_EXPONENT: f64 = 700.0;

/// Columns to permute and scales to apply, so that the matched entries come to the diagonal with magnitude 1.
///
/// ```
/// use krylith::{Csr, transform::Matching};
/// // [ 1e-9  2 ]
/// // [ 3     1 ]
/// let a = Csr::from_triplets(2, 2, &[0, 0, 1, 1], &[0, 1, 0, 1], &[1e-9, 2.0, 3.0, 1.0])?;
/// let matching = Matching::find(a.view())?;
/// assert_eq!(matching.columns.old(), [1, 0]);
/// let b = matching.apply(a.view())?;
/// assert!((b.get(0, 0) - 1.0).abs() < 1e-15 && (b.get(1, 1) - 1.0).abs() < 1e-15);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Matching {
    /// Column `columns.old()[i]` of A is matched with row i: it comes to place i.
    pub columns: Permutation,
    /// rᵢ, for the rows of A.
    pub row_scale: Vec<f64>,
    /// cⱼ, for the columns of A in their original order.
    pub column_scale: Vec<f64>,
}

impl Matching {
    /// The matching of largest product; of several, always the same one.
    pub fn find(a: CsrRef<'_, f64>) -> Result<Self, MatchingError> {
        a.require_square()?;
        let costs = Costs::new(a)?;
        let assignment = Assignment::of_least_cost(&costs);
        if let Some(row) = assignment.unmatched {
            let (rank, size) = (assignment.rank, a.nrows());
            return Err(MatchingError::StructurallySingular { rank, size, row });
        }
        let columns = Permutation::new(assignment.entry.iter().map(|&e| a.col_idx()[e]).collect())?;
        let (row_scale, column_scale) = scales(&costs, &assignment)?;
        Ok(Matching { columns, row_scale, column_scale })
    }

    /// R A C with the columns permuted: entry (i, j) is rᵢ a(i, qⱼ) c(qⱼ), and magnitude 1 stands on the diagonal.
    pub fn apply(&self, a: CsrRef<'_, f64>) -> Result<Csr<f64>, MatrixError> {
        for (what, expected, scale) in
            [("row_scale", a.nrows(), &self.row_scale), ("column_scale", a.ncols(), &self.column_scale)]
        {
            if scale.len() != expected {
                return Err(MatrixError::Length { what, expected, found: scale.len() });
            }
        }
        let rows = Permutation::identity(a.nrows())?;
        let b = a.permute(&rows, &self.columns)?;
        let (r, c, q) = (&self.row_scale, &self.column_scale, self.columns.old());
        let (pattern, mut values) = b.into_parts();
        for i in 0..pattern.nrows() {
            for k in pattern.row_range(i) {
                let j = pattern.col_idx()[k] as usize;
                values[k] = scaled(values[k], r[i], c[q[j] as usize]);
            }
        }
        Csr::with_pattern(pattern, values)
    }
}

/// r a c, in an order in which nothing overflows on the way to a magnitude of at most 1.
pub(crate) fn scaled(a: f64, r: f64, c: f64) -> f64 {
    let (small, large) = (r.min(c), r.max(c));
    if a.abs() >= 1.0 { a * small * large } else { a * large * small }
}

/// The costs of a square matrix's entries.
struct Costs<'a> {
    a: CsrRef<'a, f64>,
    /// log maxₖ|aᵢₖ| − log|aᵢⱼ|; infinite for a zero.
    cost: Vec<f64>,
    /// log maxₖ|aᵢₖ|; −∞ for a row of zeros.
    log_max: Vec<f64>,
}

impl<'a> Costs<'a> {
    fn new(a: CsrRef<'a, f64>) -> Result<Self, MatchingError> {
        let (mut cost, mut log_max) = (Vec::with_capacity(a.nnz()), Vec::with_capacity(a.nrows()));
        for i in 0..a.nrows() {
            let (columns, values) = a.row(i);
            if let Some(k) = values.iter().position(|v| !v.is_finite()) {
                return Err(MatchingError::NotFinite { row: i, column: columns[k] as usize });
            }
            let start = cost.len();
            cost.extend(values.iter().map(|v| libm::log(v.abs())));
            let largest = cost[start..].iter().copied().fold(f64::NEG_INFINITY, f64::max);
            for c in &mut cost[start..] {
                *c = if *c == f64::NEG_INFINITY { f64::INFINITY } else { largest - *c };
            }
            log_max.push(largest);
        }
        Ok(Costs { a, cost, log_max })
    }

    fn n(&self) -> usize {
        self.log_max.len()
    }

    /// (place, column, cost) of the entries of row i that are not zero.
    fn row(&self, i: usize) -> impl Iterator<Item = (usize, usize, f64)> {
        let range = self.a.row_ptr()[i]..self.a.row_ptr()[i + 1];
        let entries = range.map(|k| (k, self.a.col_idx()[k] as usize, self.cost[k]));
        entries.filter(|&(_, _, cost)| cost < f64::INFINITY)
    }
}

/// r and c from the dual variables of a complete assignment.
fn scales(costs: &Costs<'_>, assignment: &Assignment) -> Result<(Vec<f64>, Vec<f64>), MatchingError> {
    let n = costs.n();
    let column_of = |i: usize| costs.a.col_idx()[assignment.entry[i]] as usize;
    let parts = Parts::new(costs);
    let mut log_r = vec![0.0; n];
    let mut middle = vec![Spread::NONE; n];
    for i in 0..n {
        let (e, j) = (assignment.entry[i], column_of(i));
        log_r[i] = costs.cost[e] - assignment.dual[j] - costs.log_max[i];
        middle[parts.of[j]].add(log_r[i], assignment.dual[j]);
    }
    let (mut row_scale, mut column_scale) = (vec![0.0; n], vec![0.0; n]);
    for i in 0..n {
        let (e, j) = (assignment.entry[i], column_of(i));
        let shift = middle[parts.of[j]].shift();
        let (r, c) = (log_r[i] + shift, assignment.dual[j] - shift);
        if r.abs().max(c.abs()) > LARGEST_EXPONENT {
            return Err(MatchingError::ScaleOutOfRange { row: i });
        }
        row_scale[i] = libm::exp(r);
        // exp(c) up to rounding, but the matched entry comes as close to 1 as it can.
        column_scale[j] = 1.0 / (row_scale[i] * costs.a.values()[e].abs());
    }
    Ok((row_scale, column_scale))
}

/// The ranges of the exponents of a part's rows and columns.
#[derive(Clone, Copy)]
struct Spread {
    rows: (f64, f64),
    columns: (f64, f64),
}

impl Spread {
    const EMPTY: (f64, f64) = (f64::INFINITY, f64::NEG_INFINITY);
    const NONE: Spread = Spread { rows: Spread::EMPTY, columns: Spread::EMPTY };

    fn add(&mut self, row: f64, column: f64) {
        self.rows = (self.rows.0.min(row), self.rows.1.max(row));
        self.columns = (self.columns.0.min(column), self.columns.1.max(column));
    }

    /// What brings both middles together when added to the rows and taken from the columns.
    fn shift(&self) -> f64 {
        (self.columns.0 + self.columns.1 - self.rows.0 - self.rows.1) / 4.0
    }
}

/// Which columns are connected through rows.
struct Parts {
    /// A column that stands for the part of each column.
    of: Vec<usize>,
}

impl Parts {
    fn new(costs: &Costs<'_>) -> Self {
        let mut parts = Parts { of: (0..costs.n()).collect() };
        for i in 0..costs.n() {
            let mut before = NONE;
            for (_, j, _) in costs.row(i) {
                let root = parts.root(j);
                if before != NONE && root != before {
                    // The smaller one stands for both.
                    parts.of[before.max(root)] = before.min(root);
                }
                before = before.min(root);
            }
        }
        for j in 0..costs.n() {
            parts.of[j] = parts.root(j);
        }
        parts
    }

    /// Halves the path on the way.
    fn root(&mut self, mut j: usize) -> usize {
        while self.of[j] != j {
            self.of[j] = self.of[self.of[j]];
            j = self.of[j];
        }
        j
    }
}
