//! Which incomplete factor is computed on a pattern, and what becomes of the entries outside of it.

use crate::matrix::Csr;

/// What M = (I + L) D (I + U) is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// U = Lᵀ and D positive; A is taken to be symmetric, and unless the factor is modified its upper triangle is not read. The
    /// pattern of A must be symmetric.
    Cholesky,
    /// L and U differ, D is not zero.
    Lu,
}

/// Which sums of A the factor keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PreservedSums {
    /// M 1 = A 1.
    #[default]
    Rows,
    /// 1ᵀ M = 1ᵀ A.
    Columns,
}

/// What becomes of an entry that elimination would make outside of the pattern.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Update {
    /// It is dropped.
    Drop,
    /// It is subtracted, times ω, from the diagonal of its row or column: with ω = 1 the sums of A are kept, with 0 nothing is
    /// changed. References: Gustafsson 1978, doi:10.1007/BF01931691; with ω, Axelsson & Lindskog 1986,
    /// doi:10.1007/BF01389447.
    Modified {
        /// The relaxation, from 0 to 1.
        omega: f64,
        /// Which sums; for a symmetric factor both at once.
        sums: PreservedSums,
    },
    /// Nothing but the diagonal is updated, so that L D and D U are the triangles of A. Reference: Pommerell & Fichtner 1994,
    /// doi:10.1137/0915032.
    Diagonal,
    /// Nothing is updated: L D and D U are the triangles of A, and D is its diagonal times a number.
    Keep {
        /// What the diagonal of A is multiplied by.
        diagonal: f64,
    },
}

/// A factor to be computed on a pattern.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Form {
    /// Symmetric or not.
    pub kind: Kind,
    /// The fate of entries outside of the pattern.
    pub update: Update,
}

impl Form {
    /// Incomplete Cholesky.
    pub const CHOLESKY: Form = Form { kind: Kind::Cholesky, update: Update::Drop };
    /// Incomplete LU.
    pub const LU: Form = Form { kind: Kind::Lu, update: Update::Drop };

    /// The share of what is dropped that goes to the diagonal.
    pub(crate) fn omega(self) -> f64 {
        match self.update {
            Update::Modified { omega, .. } => omega,
            _ => 0.0,
        }
    }

    /// L D and D U are the triangles of A.
    pub(crate) fn keeps_triangles(self) -> bool {
        matches!(self.update, Update::Diagonal | Update::Keep { .. })
    }

    /// Where nothing is updated: what the diagonal of A is multiplied by to give D.
    pub(crate) fn kept_diagonal(self) -> Option<f64> {
        match self.update {
            Update::Keep { diagonal } => Some(diagonal),
            _ => None,
        }
    }

    /// Both triangles are computed by elimination. A modified symmetric factor needs this, because what a row drops above the
    /// diagonal comes from rows of U.
    pub(crate) fn computes_both(self) -> bool {
        self.kind == Kind::Lu || matches!(self.update, Update::Modified { .. })
    }

    /// Sums of columns are kept: elimination runs on Aᵀ.
    pub(crate) fn transposed(self) -> bool {
        self.kind == Kind::Lu && matches!(self.update, Update::Modified { sums: PreservedSums::Columns, .. })
    }
}

/// A pivot of this size, relative to what its row is measured against, or smaller is a bad one.
pub const SMALLEST_PIVOT: f64 = 1e-14;

/// What a pivot of a row is measured against and shifts are multiples of: for Cholesky the diagonal entry, so that a shifted
/// factor is that of the matrix scaled to a unit diagonal, shifted by a multiple of the identity (Manteuffel 1980,
/// doi:10.1090/S0025-5718-1980-0559197-0), without any scaling; for LU, and where there is no positive diagonal, the largest
/// entry of the row; for a row of zeros 1.
pub(crate) fn size(kind: Kind, diagonal: f64, largest: f64) -> f64 {
    let candidates = match kind {
        Kind::Cholesky => [diagonal, largest],
        Kind::Lu => [largest, 1.0],
    };
    candidates.into_iter().find(|&v| v > 0.0 && v.is_finite()).unwrap_or(1.0)
}

/// The diagonal entry with its shift, away from zero.
pub(crate) fn shifted(kind: Kind, diagonal: f64, shift: f64, size: f64) -> f64 {
    let sign = if kind == Kind::Lu && diagonal < 0.0 { -1.0 } else { 1.0 };
    diagonal + sign * shift * size
}

/// What elimination begins with in every row of A: the diagonal entry with its shift, and what the pivot will be measured against. For a place
/// that eliminates by itself, such as a device.
pub fn starting_pivots(kind: Kind, a: &Csr<f64>, shift: f64, pivots: &mut [f64], sizes: &mut [f64]) {
    for (i, (pivot, to)) in pivots.iter_mut().zip(sizes).enumerate() {
        let (columns, values) = a.row(i);
        let diagonal = columns.binary_search(&(i as u32)).map_or(0.0, |k| values[k]);
        let size = size(kind, diagonal, values.iter().fold(0.0, |largest, v| f64::max(largest, v.abs())));
        (*pivot, *to) = (shifted(kind, diagonal, shift, size), size);
    }
}

/// Whether a pivot may be divided by.
pub(crate) fn good(kind: Kind, pivot: f64, size: f64) -> bool {
    let large = match kind {
        Kind::Cholesky => pivot > SMALLEST_PIVOT * size,
        Kind::Lu => pivot.abs() > SMALLEST_PIVOT * size,
    };
    large && pivot.is_finite() && (1.0 / pivot).is_finite()
}
