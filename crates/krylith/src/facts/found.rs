//! What choices depend on, found once per matrix, in time proportional to its entries.

use super::mesh::Mesh;
use super::row_facts::{self, RowFacts};
use crate::error::BackendError;
use crate::matrix::{Comparison, Csr};
use crate::operator::SolverSpace;
use crate::parallel;
use crate::space::{Extremes, holds_everywhere};
use crate::transform::structural_rank;
use serde::{Deserialize, Serialize};

/// Facts about a matrix that choices depend on. Those of A are about all of its rows, also where they are divided among processes; of a matrix of the preconditioner that is
/// not the own block of A each process has counts of its own.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Facts {
    /// Rows.
    pub rows: usize,
    /// Entries.
    pub entries: usize,
    /// aᵢⱼ = aⱼᵢ, explicit zeros being as good as none.
    pub symmetric: bool,
    /// The same up to 8 ε of the largest entry: symmetric before somebody rounded.
    pub nearly_symmetric: bool,
    /// The largest |aᵢⱼ − aⱼᵢ| over the largest |aᵢⱼ|.
    pub asymmetry: f64,
    /// (i, j) is an entry where (j, i) is one.
    pub symmetric_pattern: bool,
    /// The same but for entries that are 0 or rounding errors, of at most 8 ε √|aᵢᵢ aⱼⱼ|: a factor that needs a symmetric pattern is made without them.
    pub paired: bool,
    /// aᵢᵢ > 0 everywhere.
    pub positive_diagonal: bool,
    /// Rows without a diagonal entry, or with a zero there.
    pub zero_diagonals: usize,
    /// Rows whose diagonal entry is at most 10⁻⁸ of their largest entry, those without one included.
    pub tiny_diagonals: usize,
    /// The signs of an M-matrix: aᵢᵢ > 0 and aᵢⱼ ≤ 0 elsewhere.
    pub m_matrix_signs: bool,
    /// Rows with aᵢᵢ > 0 whose positive entries besides are at most a tenth of all besides, in the sum of sizes.
    pub nearly_m_rows: usize,
    /// Rows with |aᵢᵢ| ≥ Σ |aᵢⱼ|, j ≠ i, up to rounding.
    pub dominant_rows: usize,
    /// A·1 = 0 up to rounding: constant vectors are solutions of A x = 0.
    pub constant_null_vector: bool,
    /// Aᵀ·1 = 0 up to rounding: no solution exists unless the numbers of b sum up to 0.
    pub constant_left_null_vector: bool,
    /// The most entries, no two of them in one row or column; less than the rows if every matrix of this pattern is singular.
    pub structural_rank: usize,
    /// vᵀAv / vᵀDv in size, with D the diagonal, which the least eigenvalue of D⁻¹A of a definite A does not exceed: the smaller quotient of two
    /// vectors v, that of ones in all rows and that of ones in the rows whose entries nearly cancel. Near 0 for diffusion, 1 and more for mass
    /// matrices.
    pub share_of_sums: f64,
    /// The least and the largest |aᵢⱼ| that is not zero; 0 if all are.
    pub magnitudes: [f64; 2],
    /// What the pattern is that of, where that was looked for.
    pub mesh: Option<Mesh>,
}

/// What facts are put together from.
pub(super) struct Found {
    pub(super) rows: usize,
    pub(super) entries: usize,
    pub(super) sums: RowFacts,
    pub(super) comparison: Comparison,
    /// Columns sum up to 0; looked at only where the matrix is not symmetric.
    pub(super) zero_columns: bool,
    /// The structural rank.
    pub(super) rank: usize,
    /// The share of sums.
    pub(super) share: f64,
}

impl Facts {
    /// A difference of this multiple of the largest entry between aᵢⱼ and aⱼᵢ is rounding.
    pub const ROUNDING: f64 = 8.0 * f64::EPSILON;

    /// The facts about a matrix whose parts are held by the processes of a space.
    pub fn of<S: SolverSpace>(space: &S, a: &Csr<f64>) -> Result<Self, BackendError> {
        Self::with_sizes(space, a).map(|(facts, _)| facts)
    }

    /// The same, and the sizes of this process's entries if they are certainly finite.
    pub(crate) fn with_sizes<S: SolverSpace>(
        space: &S,
        a: &Csr<f64>,
    ) -> Result<(Self, Option<Extremes<f64>>), BackendError> {
        let everywhere = |holds: bool| holds_everywhere(space, holds);
        let (own, sizes) = Self::of_own(a);
        let some_tiny = usize::from(!everywhere(own.tiny_diagonals == 0)?);
        let facts = Facts {
            tiny_diagonals: own.tiny_diagonals.max(some_tiny),
            symmetric: everywhere(own.symmetric)?,
            nearly_symmetric: everywhere(own.nearly_symmetric)?,
            symmetric_pattern: everywhere(own.symmetric_pattern)?,
            paired: everywhere(own.paired)?,
            positive_diagonal: everywhere(own.positive_diagonal)?,
            m_matrix_signs: everywhere(own.m_matrix_signs)?,
            constant_null_vector: everywhere(own.constant_null_vector)?,
            constant_left_null_vector: everywhere(own.constant_left_null_vector)?,
            ..own
        };
        Ok((facts, sizes))
    }

    /// The facts about a matrix that this process holds, its mesh apart.
    pub fn of_matrix(a: &Csr<f64>) -> Self {
        Self::of_own(a).0
    }

    fn of_own(a: &Csr<f64>) -> (Self, Option<Extremes<f64>>) {
        let n = a.nrows();
        let (sums, compared, large) = row_facts::of_all(a);
        let comparison = match n == a.ncols() {
            true => compared.conclude(a.view(), sums.largest),
            false => Comparison::NONE,
        };
        let symmetric = comparison.symmetry.symmetric;
        let share = match sums.asks_without_large(n, symmetric) {
            true => sums.share().min(sums.share_without(row_facts::sum_between(a, &large))),
            false => sums.share(),
        };
        let facts = Self::found(Found {
            rows: n,
            entries: a.nnz(),
            sums,
            comparison,
            zero_columns: !symmetric && sums.may_be_zero(a.nnz()) && has_zero_column_sums(a),
            rank: if sums.zero == 0 { n } else { structural_rank(a) },
            share,
        });
        (facts, sums.sizes())
    }

    pub(super) fn found(found: Found) -> Self {
        let Found { rows, entries, sums, comparison, zero_columns, rank, share } = found;
        let Comparison { symmetry, paired, asymmetry } = comparison;
        let zero_rows = rows > 0 && sums.zero_sum == rows;
        Facts {
            rows,
            entries,
            symmetric: symmetry.symmetric,
            nearly_symmetric: asymmetry <= Self::ROUNDING,
            asymmetry,
            symmetric_pattern: symmetry.pattern,
            paired,
            positive_diagonal: sums.positive == rows,
            zero_diagonals: sums.zero,
            tiny_diagonals: sums.tiny,
            m_matrix_signs: sums.m_matrix == rows,
            nearly_m_rows: sums.nearly_m,
            dominant_rows: sums.dominant,
            constant_null_vector: zero_rows,
            constant_left_null_vector: rows > 0 && if symmetry.symmetric { zero_rows } else { zero_columns },
            structural_rank: rank,
            share_of_sums: share,
            magnitudes: [if sums.least.is_finite() { sums.least } else { 0.0 }, sums.largest],
            mesh: None,
        }
    }

    /// Whether nearly all rows have the signs of an M-matrix, or nearly so.
    pub fn is_nearly_m_matrix(&self) -> bool {
        self.positive_diagonal && 10 * self.nearly_m_rows >= 9 * self.rows
    }

    /// Symmetric up to rounding, and nothing speaks against positive definite.
    pub fn may_be_definite(&self) -> bool {
        self.nearly_symmetric && self.positive_diagonal
    }

    /// The same, and incomplete Cholesky is to be had, whose pattern is symmetric.
    pub fn suits_cholesky(&self) -> bool {
        self.may_be_definite() && (self.symmetric_pattern || self.paired)
    }

    /// The facts in words, the ones that are worth a line.
    pub fn words(&self) -> Vec<String> {
        let count = |n: usize, what: &str| (n > 0).then(|| format!("{n} {what}"));
        let symmetry = match (self.symmetric, self.nearly_symmetric, self.symmetric_pattern) {
            (true, _, true) => "symmetric".into(),
            (true, _, false) => "symmetric, with explicit zeros on one side".into(),
            (false, true, _) => format!("symmetric up to rounding ({:.1e})", self.asymmetry),
            (false, false, true) => {
                format!("not symmetric ({:.1e}), with a symmetric pattern", self.asymmetry)
            }
            (false, false, false) => "not symmetric, in its pattern neither".into(),
        };
        let dominance = match self.dominant_rows {
            all if all == self.rows => "diagonally dominant".into(),
            rows => format!("{rows} of {} rows diagonally dominant", self.rows),
        };
        let singular = match (self.constant_null_vector, self.constant_left_null_vector) {
            (true, true) => Some("singular: rows and columns sum up to 0".into()),
            (true, false) => Some("singular: rows sum up to 0".into()),
            (false, true) => Some("singular: columns sum up to 0".into()),
            (false, false) => None,
        };
        let rank = (self.structural_rank < self.rows)
            .then(|| format!("singular: rank {} of {} by its pattern", self.structural_rank, self.rows));
        let signs = match (self.m_matrix_signs, self.positive_diagonal) {
            (true, _) => Some("signs of an M-matrix".into()),
            (false, true) => Some("positive diagonal".into()),
            (false, false) => None,
        };
        let tiny = count(self.tiny_diagonals - self.zero_diagonals, "tiny diagonal entries");
        let zero = count(self.zero_diagonals, "diagonal entries that are zero or missing");
        let mesh = self.mesh.as_ref().map(Mesh::words);
        [Some(symmetry), signs, zero, tiny, Some(dominance), singular, rank, mesh]
            .into_iter()
            .flatten()
            .collect()
    }
}

/// Whether constants are in the null space of A, and in that of Aᵀ, up to rounding.
pub(crate) fn has_constant_null_vectors(a: &Csr<f64>) -> (bool, bool) {
    let n = a.nrows();
    let right = n > 0 && parallel::all(n, |i| RowFacts::of(a, i, i).zero_sum == 1);
    (right, n > 0 && (right && a.symmetry().symmetric || may_have_zero_columns(a) && has_zero_column_sums(a)))
}

/// Whether all entries together sum up to 0, up to rounding. In parts that are the same on any number of threads.
fn may_have_zero_columns(a: &Csr<f64>) -> bool {
    const PARTS: usize = 64;
    let n = a.nnz();
    let length = n.div_ceil(PARTS).max(1);
    let parts = parallel::map(PARTS, |k| {
        let values = &a.values()[n.min(k * length)..n.min((k + 1) * length)];
        values.iter().fold((0.0, 0.0), |(sum, size): (f64, f64), v| (sum + v, size + v.abs()))
    });
    let (sum, size) = parts.into_iter().fold((0.0, 0.0), |a: (f64, f64), b| (a.0 + b.0, a.1 + b.1));
    !sum.is_finite() || sum.abs() <= n as f64 * f64::EPSILON * size.min(f64::MAX)
}

/// Whether every column sums up to 0, up to rounding.
fn has_zero_column_sums(a: &Csr<f64>) -> bool {
    let mut columns = vec![ColumnSum::default(); a.ncols()];
    for (&j, &v) in a.pattern().col_idx().iter().zip(a.values()) {
        columns[j as usize].add(v);
    }
    columns.iter().all(ColumnSum::is_zero)
}

/// The sum of a column, entry by entry.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ColumnSum {
    sum: f64,
    /// Of the sizes of entries.
    size: f64,
    entries: f64,
}

impl ColumnSum {
    pub(super) fn add(&mut self, value: f64) {
        let ColumnSum { sum, size, entries } = *self;
        *self = ColumnSum { sum: sum + value, size: size + value.abs(), entries: entries + 1.0 };
    }

    /// Up to rounding.
    pub(super) fn is_zero(&self) -> bool {
        self.sum.is_finite() && self.sum.abs() <= self.entries * f64::EPSILON * self.size.min(f64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(n: usize, entries: &[(usize, usize, f64)]) -> Facts {
        Facts::of_matrix(&Csr::from_entries(n, n, entries.iter().copied()).unwrap())
    }

    /// [ 1 -1 ]
    /// [-1  1 ]
    #[test]
    fn a_graph_of_two_points() {
        let f = facts(2, &[(0, 0, 1.0), (0, 1, -1.0), (1, 0, -1.0), (1, 1, 1.0)]);
        assert!(f.symmetric && f.m_matrix_signs && f.constant_null_vector && f.constant_left_null_vector);
        assert!(f.is_nearly_m_matrix() && f.magnitudes == [1.0, 1.0] && f.share_of_sums == 0.0);
        assert_eq!((f.dominant_rows, f.zero_diagonals, f.structural_rank), (2, 0, 2));
        assert_eq!(f.words()[0], "symmetric");
    }

    /// [ 0  2 ]   [ 1 1 ]
    /// [ 3  0 ]   [ 0 0 ]
    #[test]
    fn zeros_on_the_diagonal_and_a_pattern_that_is_singular() {
        let f = facts(2, &[(0, 1, 2.0), (1, 0, 3.0)]);
        assert_eq!((f.zero_diagonals, f.tiny_diagonals, f.structural_rank), (2, 2, 2));
        assert!(f.symmetric_pattern && !f.nearly_symmetric && (f.asymmetry - 1.0 / 3.0).abs() < 1e-15);
        let f = facts(2, &[(0, 0, 1.0), (0, 1, 1.0)]);
        assert_eq!(f.structural_rank, 1);
        assert!(f.words().iter().any(|line| line.contains("rank 1 of 2")));
    }

    #[test]
    fn symmetric_up_to_rounding() {
        let f = facts(2, &[(0, 0, 2.0), (0, 1, 1.0), (1, 0, 1.0 + f64::EPSILON), (1, 1, 2.0)]);
        assert!(!f.symmetric && f.nearly_symmetric && f.may_be_definite() && f.asymmetry > 0.0);
    }

    /// A path of forty points between two that are held by large entries on the diagonal: all sums together are 200 of 282, and within the forty points
    /// vᵀAv is 2 of a trace of 80.
    #[test]
    fn few_rows_with_large_sums_say_nothing_about_the_others() {
        let path = (0..41).flat_map(|i| [(i, i + 1, -1.0), (i + 1, i, -1.0)]);
        let diagonal = (0..42).map(|i| (i, i, if i == 0 || i == 41 { 101.0 } else { 2.0 }));
        let f = facts(42, &path.chain(diagonal).collect::<Vec<_>>());
        assert_eq!(f.share_of_sums, 0.025);
        // A mass matrix: no sum is small.
        let f = facts(2, &[(0, 0, 2.0), (0, 1, 1.0), (1, 0, 1.0), (1, 1, 2.0)]);
        assert_eq!(f.share_of_sums, 1.5);
    }

    #[test]
    fn columns_alone_may_sum_up_to_zero() {
        let f = facts(2, &[(0, 0, 1.0), (1, 0, -1.0), (0, 1, -2.0), (1, 1, 2.0)]);
        assert!(!f.constant_null_vector && f.constant_left_null_vector);
    }
}
