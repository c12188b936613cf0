//! How a matrix is scaled, and which columns are brought together, before it is eliminated without pivots from afar.
//!
//! * Cholesky: the inverse roots of the diagonal.
//! * LU: the scales of a matching, and its columns where the diagonal is not good enough.
//! * LDLᵀ: the same scale for row and column i, √(rᵢ cᵢ), under which no entry is larger than 1 and the matched ones are 1. Along a cycle of the
//!   matching, rows are taken in twos: a matched entry off the diagonal is then inside of a pivot of two columns, if both are eliminated together.
//!
//! A matrix without a matching is singular, and scaled by the largest entries of rows and columns. Its rows that have no column get one that is left: a zero
//! comes to the diagonal there, and is replaced when it is the pivot.
//!
//! References: Duff & Koster 2001, doi:10.1137/S0895479899358443, matching; Duff & Pralet 2005, doi:10.1137/04061043X, for symmetric matrices.

use super::DirectKind;
use crate::error::SetupError;
use crate::matrix::{Csr, Permutation};
use crate::transform::{Matching, MatchingError, complete_matching, scaled};

/// Diagonal entries of the scaled matrix from here on need no exchange of columns.
const GOOD_DIAGONAL: f64 = 1e-3;

/// Scales, columns, and rows that belong together.
pub(super) struct Scaling {
    /// Position k has column `columns.old()[k]` of A.
    pub(super) columns: Permutation,
    pub(super) row_scale: Vec<f64>,
    pub(super) column_scale: Vec<f64>,
    /// The other row of a pivot of two columns, or the row itself; empty if all pivots have one.
    pub(super) partner: Vec<u32>,
}

impl Scaling {
    pub(super) fn find(kind: DirectKind, a: &Csr<f64>) -> Result<Self, SetupError> {
        let n = a.nrows();
        let columns = Permutation::identity(n)?;
        if kind == DirectKind::Cholesky {
            let mut scale = Vec::with_capacity(n);
            for row in 0..n {
                let value = a.get(row, row);
                if value.is_nan() || value <= 0.0 {
                    return Err(SetupError::BadPivot { row, value });
                }
                scale.push(1.0 / value.sqrt());
            }
            return Ok(Scaling {
                columns,
                row_scale: scale.clone(),
                column_scale: scale,
                partner: Vec::new(),
            });
        }
        let Matching { columns: matched, mut row_scale, mut column_scale } = match Matching::find(a.view()) {
            Ok(matching) => matching,
            Err(MatchingError::StructurallySingular { .. } | MatchingError::ScaleOutOfRange { .. }) => {
                by_largest(a)?
            }
            Err(MatchingError::Matrix(error)) => return Err(error.into()),
            Err(MatchingError::NotFinite { row, .. }) => {
                return Err(SetupError::BadPivot { row, value: f64::NAN });
            }
        };
        if kind == DirectKind::Ldlt {
            for (r, c) in row_scale.iter_mut().zip(&mut column_scale) {
                *r = r.sqrt() * c.sqrt();
                *c = *r;
            }
        }
        let good = |i: usize| scaled(a.get(i, i), row_scale[i], column_scale[i]).abs() >= GOOD_DIAGONAL;
        let keep = (0..n).all(good);
        Ok(match kind {
            DirectKind::Ldlt => {
                let partner = if keep { Vec::new() } else { partners(matched.old()) };
                Scaling { columns, row_scale, column_scale, partner }
            }
            _ => {
                let columns = if keep { columns } else { matched };
                Scaling { columns, row_scale, column_scale, partner: Vec::new() }
            }
        })
    }
}

/// Rows along the cycles of a permutation in twos; one of an odd cycle stays alone.
fn partners(columns: &[u32]) -> Vec<u32> {
    const NONE: u32 = u32::MAX;
    let mut partner = vec![NONE; columns.len()];
    for start in 0..columns.len() as u32 {
        let mut i = start;
        while partner[i as usize] == NONE {
            let next = columns[i as usize];
            partner[i as usize] = i;
            if partner[next as usize] == NONE {
                (partner[i as usize], partner[next as usize]) = (next, i);
                i = columns[next as usize];
            }
        }
    }
    partner
}

/// As many columns as there are for the rows, the rest in order; scales by the largest entries.
fn by_largest(a: &Csr<f64>) -> Result<Matching, SetupError> {
    let inverse =
        |largest: f64| if largest > 0.0 && (1.0 / largest).is_finite() { 1.0 / largest } else { 1.0 };
    let largest = |i: usize| a.row(i).1.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
    let row_scale: Vec<f64> = (0..a.nrows()).map(|i| inverse(largest(i))).collect();
    let mut column_scale = vec![0.0f64; a.ncols()];
    for (i, r) in row_scale.iter().enumerate() {
        for (&j, v) in a.row(i).0.iter().zip(a.row(i).1) {
            column_scale[j as usize] = column_scale[j as usize].max(r * v.abs());
        }
    }
    column_scale.iter_mut().for_each(|c| *c = inverse(*c));
    Ok(Matching { columns: Permutation::new(complete_matching(a))?, row_scale, column_scale })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_cycles_in_twos() {
        // (0 3)(1)(2 4 5)
        assert_eq!(partners(&[3, 1, 4, 0, 5, 2]), [3, 1, 4, 0, 2, 5]);
        assert_eq!(partners(&[1, 2, 3, 0]), [1, 0, 3, 2]);
        assert!(partners(&[]).is_empty());
    }

    /// [ 0 2 ]  scaled by 1/√2: the entries off the diagonal are 1, and one pivot.
    /// [ 2 0 ]
    #[test]
    fn a_symmetric_matrix_without_a_diagonal() {
        let a = Csr::from_entries(2, 2, [(0, 1, 2.0), (1, 0, 2.0)]).unwrap();
        let found = Scaling::find(DirectKind::Ldlt, &a).unwrap();
        assert!(found.row_scale.iter().all(|r| (2.0 * r * r - 1.0).abs() < 1e-15));
        assert_eq!((found.partner, found.columns.old()), (vec![1, 0], &[0, 1][..]));
    }
}
