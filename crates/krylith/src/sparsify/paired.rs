//! A without the entries that have none across the diagonal, where they are zeros or rounding errors: what a preconditioner that needs a symmetric pattern is made from.
//!
//! Leaving such an entry out changes the pattern alone; filling in the one across would change it as well, and a factor would have entries where A has none. Of exact zeros nothing
//! is lost, and products are with A in any case. An entry of another size means that A is not symmetric, and that stays an error.

use super::Sparsified;
use crate::error::SetupError;
use crate::matrix::Csr;
use crate::parallel;
use std::ops::Range;

/// A on a symmetric pattern, which can follow the values of A.
#[derive(Debug, Clone)]
pub(crate) struct Paired(Sparsified);

impl Paired {
    /// A without those entries; none if there are none, `Err(PatternNotSymmetric)` if one of them is not negligible.
    pub(crate) fn of(a: &Csr<f64>) -> Result<Option<Self>, SetupError> {
        let kept = with_partner(a);
        require_negligible(a, &kept)?;
        Ok(kept.contains(&false).then(|| Paired(Sparsified::new(a, kept))))
    }

    /// Takes over the values of a matrix of the same pattern, which has to be without other values at those places, too. Allocates nothing.
    pub(crate) fn set(&mut self, a: &Csr<f64>) -> Result<(), SetupError> {
        self.0.require(a)?;
        require_negligible(a, &self.0.kept)?;
        self.0.set(a)
    }

    pub(crate) fn sparsified(&self) -> &Sparsified {
        &self.0
    }

    pub(crate) fn matrix(&self) -> &Csr<f64> {
        self.0.matrix()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.0.bytes()
    }
}

/// For every entry, whether there is one across the diagonal.
pub(crate) fn with_partner(a: &Csr<f64>) -> Vec<bool> {
    let pattern = a.pattern();
    let row = |i: usize| pattern.row(i).iter().map(move |&j| pattern.find(j as usize, i).is_some());
    let piece = |rows: Range<usize>| rows.flat_map(row).collect();
    let append = |mut all: Vec<bool>, piece: Vec<bool>| {
        all.extend(piece);
        all
    };
    parallel::fold(a.nrows(), piece, append).unwrap_or_default()
}

fn require_negligible(a: &Csr<f64>, kept: &[bool]) -> Result<(), SetupError> {
    let is_fit = |i: usize| {
        let (columns, values) = a.row(i);
        let mut entries = columns.iter().zip(values).zip(&kept[a.pattern().row_range(i)]);
        entries.all(|((&j, &v), &kept)| kept || a.view().is_negligible(i, j as usize, v))
    };
    if (0..a.nrows()).all(is_fit) { Ok(()) } else { Err(SetupError::PatternNotSymmetric) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix(values: [f64; 6]) -> Csr<f64> {
        let places = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (2, 2)];
        Csr::from_entries(3, 3, places.into_iter().zip(values).map(|((i, j), v)| (i, j, v))).unwrap()
    }

    /// [ 4 -1  0 ]        [ 4 -1    ]
    /// [-1  5    ]  ->    [-1  5    ], the zero stored
    /// [       1 ]        [       1 ]
    #[test]
    fn zeros_and_rounding_errors_are_left_out_and_nothing_else() {
        let with = |v: f64| matrix([4.0, -1.0, v, -1.0, 5.0, 1.0]);
        for negligible in [0.0, -0.0, 1e-16, -3e-15] {
            let paired = Paired::of(&with(negligible)).unwrap().unwrap();
            assert_eq!((paired.matrix().nnz(), paired.matrix().symmetry().pattern), (5, true));
        }
        // 8 ε √4 √1 is 3.6e-15.
        for value in [4e-15, 1.0, f64::NAN] {
            assert_eq!(Paired::of(&with(value)).map(|_| ()), Err(SetupError::PatternNotSymmetric));
        }
        assert!(Paired::of(&Csr::identity(3).unwrap()).unwrap().is_none());
    }

    #[test]
    fn values_follow_as_long_as_those_left_out_are_negligible() {
        let mut paired = Paired::of(&matrix([4.0, -1.0, 0.0, -1.0, 5.0, 1.0])).unwrap().unwrap();
        paired.set(&matrix([8.0, -2.0, 0.0, -2.0, 9.0, 3.0])).unwrap();
        assert_eq!(paired.matrix().values(), [8.0, -2.0, -2.0, 9.0, 3.0]);
        let other = matrix([8.0, -2.0, 1.0, -2.0, 9.0, 3.0]);
        assert_eq!(paired.set(&other), Err(SetupError::PatternNotSymmetric));
        assert_eq!(paired.set(&Csr::identity(3).unwrap()), Err(SetupError::PatternChanged));
    }
}
