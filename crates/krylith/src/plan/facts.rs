//! What choices depend on, found once per matrix, in time proportional to its entries.

use super::mesh::Mesh;
use crate::engine::SolverSpace;
use crate::error::BackendError;
use crate::matrix::{Compared, Comparison, Csr};
use crate::parallel;
use crate::transform::structural_rank;
use serde::{Deserialize, Serialize};

/// A diagonal entry of at most this multiple of the largest in its row is tiny.
pub(crate) const TINY: f64 = 1e-8;
/// Rows whose facts are summed up one after the other.
const ROWS_PER_PART: usize = 1 << 12;
/// A sum of a row of at most this multiple of its diagonal entry is small.
const SMALL_SUM: f64 = 1e-3;
/// Rows are few where they are at most one in 16.
const FEW: usize = 16;
/// Shares of sums up to this one do not shorten the way across any mesh that large matrices have.
const SMALL_SHARE: f64 = 1e-2;

/// Facts about a matrix that choices depend on. Counts are those of the rows that this process holds.
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

impl Facts {
    /// A difference of this multiple of the largest entry between aᵢⱼ and aⱼᵢ is rounding.
    pub const ROUNDING: f64 = 8.0 * f64::EPSILON;

    /// The facts about a matrix whose parts are held by the processes of a space.
    pub fn of<S: SolverSpace>(space: &S, a: &Csr<f64>) -> Result<Self, BackendError> {
        // What holds for the parts of all processes.
        let everywhere =
            |holds: bool| Ok::<_, BackendError>(space.first((!holds).then_some((0, 0.0)))?.is_none());
        let own = Self::of_matrix(a);
        Ok(Facts {
            symmetric: everywhere(own.symmetric)?,
            nearly_symmetric: everywhere(own.nearly_symmetric)?,
            symmetric_pattern: everywhere(own.symmetric_pattern)?,
            paired: everywhere(own.paired)?,
            positive_diagonal: everywhere(own.positive_diagonal)?,
            m_matrix_signs: everywhere(own.m_matrix_signs)?,
            constant_null_vector: everywhere(own.constant_null_vector)?,
            constant_left_null_vector: everywhere(own.constant_left_null_vector)?,
            ..own
        })
    }

    /// The facts about a matrix that this process holds, its mesh apart.
    pub fn of_matrix(a: &Csr<f64>) -> Self {
        let n = a.nrows();
        // Sums over the same rows on any number of threads.
        let part = |k: usize| {
            let rows = k * ROWS_PER_PART..n.min((k + 1) * ROWS_PER_PART);
            let (mut sums, mut compared) = (RowFacts::default(), Compared::NONE);
            let mut large = Vec::new();
            for i in rows {
                if !sums.add(a, i) {
                    large.push(i as u32);
                }
                if n == a.ncols() {
                    a.view().compare_row(i, &mut compared);
                }
            }
            (sums, compared, large)
        };
        let parts = parallel::map(n.div_ceil(ROWS_PER_PART), part);
        let (mut sums, mut compared, mut large) = (RowFacts::default(), Compared::NONE, Vec::new());
        for part in parts {
            (sums, compared) = (sums.and(part.0), compared.and(part.1));
            large.extend(part.2);
        }
        let Comparison { symmetry, paired, asymmetry } = match n == a.ncols() {
            true => compared.conclude(a.view(), sums.largest),
            false => Comparison::NONE,
        };
        let symmetric = symmetry.symmetric;
        Facts {
            rows: n,
            entries: a.nnz(),
            symmetric,
            nearly_symmetric: asymmetry <= Self::ROUNDING,
            asymmetry,
            symmetric_pattern: symmetry.pattern,
            paired,
            positive_diagonal: sums.positive == n,
            zero_diagonals: sums.zero,
            tiny_diagonals: sums.tiny,
            m_matrix_signs: sums.m_matrix == n,
            nearly_m_rows: sums.nearly_m,
            dominant_rows: sums.dominant,
            constant_null_vector: n > 0 && sums.zero_sum == n,
            constant_left_null_vector: n > 0
                && match symmetric {
                    true => sums.zero_sum == n,
                    false => sums.may_be_zero(a.nnz()) && has_zero_column_sums(a),
                },
            structural_rank: if sums.zero == 0 { n } else { structural_rank(a) },
            share_of_sums: match sums.share() {
                all if all > SMALL_SHARE && symmetric => all.min(sums.share_without(a, &large)),
                all => all,
            },
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

/// How many rows have what.
#[derive(Debug, Clone, Copy)]
struct RowFacts {
    positive: usize,
    zero: usize,
    tiny: usize,
    m_matrix: usize,
    nearly_m: usize,
    dominant: usize,
    zero_sum: usize,
    /// Of all entries, and of their sizes.
    sum: f64,
    size: f64,
    /// Of the diagonal.
    trace: f64,
    /// Of the rows whose sum is small, and of their diagonal.
    small_sum: f64,
    small_trace: f64,
    least: f64,
    largest: f64,
}

impl Default for RowFacts {
    fn default() -> Self {
        RowFacts {
            positive: 0,
            zero: 0,
            tiny: 0,
            m_matrix: 0,
            nearly_m: 0,
            dominant: 0,
            zero_sum: 0,
            sum: 0.0,
            size: 0.0,
            trace: 0.0,
            small_sum: 0.0,
            small_trace: 0.0,
            least: f64::INFINITY,
            largest: 0.0,
        }
    }
}

impl RowFacts {
    fn of(a: &Csr<f64>, i: usize) -> Self {
        let mut facts = RowFacts::default();
        facts.add(a, i);
        facts
    }

    /// Adds those of a row; whether its sum is small.
    #[inline]
    fn add(&mut self, a: &Csr<f64>, i: usize) -> bool {
        let (columns, values) = a.row(i);
        let (mut diagonal, mut largest, mut others, mut sum) = (0.0, 0.0f64, 0.0, 0.0);
        let mut positive = 0.0;
        for (&j, &v) in columns.iter().zip(values) {
            let size = v.abs();
            (largest, sum) = (largest.max(size), sum + v);
            self.least = if size > 0.0 { self.least.min(size) } else { self.least };
            if j as usize == i {
                diagonal = v;
            } else {
                others += size;
                positive += v.max(0.0);
            }
        }
        let rounding = columns.len() as f64 * f64::EPSILON;
        let size = others + diagonal.abs();
        self.positive += usize::from(diagonal > 0.0);
        self.zero += usize::from(diagonal == 0.0);
        self.tiny += usize::from(diagonal.abs() <= TINY * largest || diagonal.is_nan());
        self.m_matrix += usize::from(positive == 0.0 && diagonal > 0.0);
        self.nearly_m += usize::from(positive <= 0.1 * others && diagonal > 0.0);
        self.dominant += usize::from(diagonal.abs() >= others * (1.0 - rounding));
        self.zero_sum += usize::from(sum.is_finite() && sum.abs() <= rounding * size.min(f64::MAX));
        self.sum += sum;
        self.size += size;
        self.trace += diagonal;
        self.largest = self.largest.max(largest);
        let is_small = sum.abs() <= SMALL_SUM * diagonal;
        if is_small {
            self.small_sum += sum;
            self.small_trace += diagonal;
        }
        is_small
    }

    fn and(self, o: Self) -> Self {
        RowFacts {
            positive: self.positive + o.positive,
            zero: self.zero + o.zero,
            tiny: self.tiny + o.tiny,
            m_matrix: self.m_matrix + o.m_matrix,
            nearly_m: self.nearly_m + o.nearly_m,
            dominant: self.dominant + o.dominant,
            zero_sum: self.zero_sum + o.zero_sum,
            sum: self.sum + o.sum,
            size: self.size + o.size,
            trace: self.trace + o.trace,
            small_sum: self.small_sum + o.small_sum,
            small_trace: self.small_trace + o.small_trace,
            least: self.least.min(o.least),
            largest: self.largest.max(o.largest),
        }
    }

    fn share(&self) -> f64 {
        let share = (self.sum / self.trace).abs();
        if share.is_finite() { share } else { 0.0 }
    }

    /// The Rayleigh quotient of D⁻¹A, for symmetric A, for the vector of ones in the rows whose sum is small, which are all but `large`: a few rows with large sums, as those of the
    /// sources of a circuit, say nothing about the others. Infinite where there are more than a few such rows.
    fn share_without(&self, a: &Csr<f64>, large: &[u32]) -> f64 {
        if FEW * large.len() > a.nrows() {
            return f64::INFINITY;
        }
        // By symmetry, what couples small rows with large ones is in the large ones.
        let between = |sum: f64, &i: &u32| {
            let (columns, values) = a.row(i as usize);
            let is_small = |j: &u32| large.binary_search(j).is_err();
            columns.iter().zip(values).filter(|(j, _)| is_small(j)).fold(sum, |sum, (_, v)| sum + v)
        };
        let share = ((self.small_sum - large.iter().fold(0.0, between)) / self.small_trace).abs();
        if share.is_finite() { share } else { f64::INFINITY }
    }

    /// Whether the sum of all entries is 0 up to rounding: if it is not, some column does not sum up to 0.
    fn may_be_zero(&self, entries: usize) -> bool {
        let rounding = entries as f64 * f64::EPSILON * self.size.min(f64::MAX);
        !self.sum.is_finite() || self.sum.abs() <= rounding
    }
}

/// Whether constants are in the null space of A, and in that of Aᵀ, up to rounding.
pub(crate) fn has_constant_null_vectors(a: &Csr<f64>) -> (bool, bool) {
    let n = a.nrows();
    let right = n > 0 && parallel::all(n, |i| RowFacts::of(a, i).zero_sum == 1);
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
    // The sum, the sum of sizes and the number of entries of each column.
    let mut columns = vec![(0.0, 0.0, 0.0); a.ncols()];
    for (&j, &v) in a.pattern().col_idx().iter().zip(a.values()) {
        let column = &mut columns[j as usize];
        *column = (column.0 + v, column.1 + v.abs(), column.2 + 1.0);
    }
    columns.iter().all(|&(sum, size, count): &(f64, f64, f64)| {
        sum.is_finite() && sum.abs() <= count * f64::EPSILON * size.min(f64::MAX)
    })
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
