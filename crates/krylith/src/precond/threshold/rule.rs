//! What is small in a row, and how much of it is kept.

use super::norm;
use crate::matrix::CsrRef;
use crate::scalar::Real;

/// Three definitions of ILUT: what is small, and how much is kept.
///
/// τ is the tolerance; row i of M is made in w, and d is its pivot.
///
/// | | `Mkl` | `Saad` | `FillFactor` |
/// |---|---|---|---|
/// | size of a row, ‖aᵢ‖ | root mean square | mean of the absolute values | largest absolute value |
/// | lᵢₖ = wₖ / dₖ is dropped, and not used, if | \|lᵢₖ\| ≤ τ ‖aᵢ‖ | \|lᵢₖ\| ≤ τ | \|wₖ\| ≤ τ ‖aᵢ‖ |
/// | lᵢₖ dₖ uₖⱼ is not subtracted where w has no entry if | \|lᵢₖ dₖ uₖⱼ\| ≤ τ ‖aᵢ‖ | it is 0 | it is 0 |
/// | wⱼ, j > i, is dropped if | \|wⱼ\| ≤ τ ‖aᵢ‖ | \|wⱼ\| ≤ τ ‖aᵢ‖ | \|wⱼ\| ≤ τ max \|wⱼ\| over j ≥ i |
/// | kept besides the diagonal | `maxfil` of L, `maxfil` of U | `p` of L, `p` of U | what the fill factor leaves |
/// | d is replaced if | \|d\| ≤ τ ‖aᵢ‖ | d = 0 | d = 0 |
/// | by | (10⁻⁴ + τ) ‖aᵢ‖ | the same with the sign of d | the same with the sign of d |
///
/// Where a d is too small for 1 / d to be finite, it counts as 0. Means are over the stored entries of row i of A.
///
/// `Mkl` is what Intel MKL's `dcsrilut(tol, maxfil)` computes with ipar(31) = 1 and dpar(31) = 10⁻⁴ + τ, found by experiment with
/// version 2026.2: its manual says "row norm" and means the 2-norm divided by the root of the number of entries; it says nothing of
/// the second and third line. `krylith-bench ilut` compares. Which of several equal entries is kept differs: MKL's choice depends on
/// how its selection runs. Where pivots are replaced and factors then grow without bound, rounding decides, in MKL as here.
///
/// `Saad` is ILUT(p, τ) of Numer. Linear Algebra Appl. 1 (1994), doi:10.1002/nla.1680010405, with the sizes that SPARSKIT gives
/// it: multipliers are compared with τ alone, U with the mean. SPARSKIT's U part counts the diagonal among its `lfil`; here p does not.
///
/// `FillFactor` follows Li & Shao, ACM TOMS 37 (2011), doi:10.1145/1916461.1916467 (ILU in SuperLU), with the dynamic quota by area:
/// after row i, L, D and U may have K nnz(A, rows 0 to i) entries, so what a row leaves is there for later ones, and every row may
/// have K times its own number of entries. Row and column are exchanged: SuperLU goes by columns, drops uₖⱼ relative to the
/// largest entry of A's column and scales L by the pivot, which partial pivoting makes the largest. Deviations: rows instead of
/// supernodes; a multiplier is dropped before it is used, not after; the quota of a row is shared between L and U as their lengths
/// before the selection are; pivoting only with `permtol`.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Rule {
    /// Intel MKL's `dcsrilut`: everything relative to the root mean square of the row; the `maxfil` largest of L and of U.
    Mkl {
        /// Entries that a row of L, and a row of U besides the diagonal, may have.
        maxfil: usize,
    },
    /// Saad's ILUT(p, τ) as in SPARSKIT: L relative to 1, U relative to the mean absolute value of the row; the `p` largest of each.
    Saad {
        /// Entries that a row of L, and a row of U besides the diagonal, may have.
        p: usize,
    },
    /// Threshold and fill factor as in SuperLU, by rows: L D relative to the largest of A's row, U to the largest of its own row.
    FillFactor {
        /// L, D and U together have at most so many times the entries of A, or one per row.
        factor: f64,
    },
}

impl Rule {
    /// NVIDIA's ilut(p, τ): MKL's with `maxfil` = ⌊nnz / n⌋ + p.
    pub fn nvidia<T: Real>(a: CsrRef<'_, T>, p: usize) -> Rule {
        Rule::Mkl { maxfil: (a.nnz() / a.nrows().max(1)).saturating_add(p) }
    }

    /// What is small in a row of A.
    pub(super) fn limits<T: Real>(&self, row: &[T], tau: T) -> Limits<T> {
        let none = Limits::default();
        match self {
            Rule::Mkl { .. } => {
                let size = norm::rms(row);
                let small = tau * size;
                Limits { size, multiplier: small, fill: small, upper: small, pivot: small, ..none }
            }
            Rule::Saad { .. } => {
                let size = norm::mean(row);
                Limits { size, multiplier: tau, upper: tau * size, ..none }
            }
            Rule::FillFactor { .. } => {
                let size = norm::max(row.iter().copied());
                Limits { size, eliminated: tau * size, upper_to_largest: tau, ..none }
            }
        }
    }

    /// What replaces a bad pivot.
    pub(super) fn replacement<T: Real>(&self, pivot: T, size: T, tau: T) -> T {
        let value = (T::from_f64(1e-4) + tau) * size;
        if pivot < T::ZERO && !matches!(self, Rule::Mkl { .. }) { -value } else { value }
    }

    /// How many of `l` and `u` entries left and right of the diagonal a row may keep. The rows up to this one have `area` entries
    /// in A; the rows before it, and its diagonal, have `used` in the factor.
    pub(super) fn quota(&self, l: usize, u: usize, area: usize, used: usize) -> (usize, usize) {
        match *self {
            Rule::Mkl { maxfil: p } | Rule::Saad { p } => (p, p),
            Rule::FillFactor { factor } => {
                let left = ((factor * area as f64) as usize).saturating_sub(used);
                if l + u <= left {
                    return (l, u);
                }
                let to_l = (left as u128 * l as u128 / (l + u) as u128) as usize;
                (to_l, left - to_l)
            }
        }
    }
}

/// Absolute values up to which numbers of one row are small.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Limits<T> {
    /// ‖aᵢ‖.
    pub(super) size: T,
    /// lᵢₖ.
    pub(super) multiplier: T,
    /// wₖ, k < i.
    pub(super) eliminated: T,
    /// A new entry of w.
    pub(super) fill: T,
    /// wⱼ, j > i.
    pub(super) upper: T,
    /// wⱼ, j > i, relative to the largest.
    pub(super) upper_to_largest: T,
    /// d.
    pub(super) pivot: T,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_row_leaves_is_there_for_later_ones() {
        let rule = Rule::FillFactor { factor: 2.0 };
        // Rows of 3 and 4 entries: 6 in the first row, of which 2 are used; 14 − 2 after the second, its diagonal among them.
        assert_eq!(rule.quota(1, 1, 3, 1), (1, 1));
        assert_eq!(rule.quota(6, 12, 7, 2 + 1), (3, 8));
        assert_eq!(rule.quota(6, 5, 7, 2 + 1), (6, 5));
        assert_eq!(Rule::FillFactor { factor: f64::NAN }.quota(3, 3, 7, 1), (0, 0));
        assert_eq!(Rule::FillFactor { factor: f64::INFINITY }.quota(3, 3, 7, 1), (3, 3));
        assert_eq!(Rule::Saad { p: 4 }.quota(9, 9, 0, 0), (4, 4));
    }

    #[test]
    fn only_mkl_forgets_the_sign_of_a_pivot() {
        assert_eq!(Rule::Saad { p: 1 }.replacement(-0.0, 2.0, 0.1), 2.0 * (1e-4 + 0.1));
        assert_eq!(Rule::Saad { p: 1 }.replacement(-1e-310, 2.0, 0.1), -2.0 * (1e-4 + 0.1));
        assert_eq!(Rule::Mkl { maxfil: 1 }.replacement(-1e-3, 2.0, 0.1), 2.0 * (1e-4 + 0.1));
    }
}
