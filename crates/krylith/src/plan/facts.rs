//! What choices depend on, found once per matrix.

use crate::engine::SolverSpace;
use crate::error::BackendError;
use crate::matrix::{Csr, Symmetry};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// Facts about a matrix that choices depend on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Facts {
    /// Rows that this process holds.
    pub rows: usize,
    /// Entries that it holds.
    pub entries: usize,
    /// aᵢⱼ = aⱼᵢ, explicit zeros being as good as none.
    pub symmetric: bool,
    /// (i, j) is an entry where (j, i) is one.
    pub symmetric_pattern: bool,
    /// aᵢᵢ > 0 everywhere.
    pub positive_diagonal: bool,
}

impl Facts {
    /// The facts about a matrix whose parts are held by the processes of a space.
    pub fn of<S: SolverSpace>(space: &S, a: &Csr<f64>) -> Result<Self, BackendError> {
        // What holds for the parts of all processes.
        let everywhere =
            |holds: bool| Ok::<_, BackendError>(space.first((!holds).then_some((0, 0.0)))?.is_none());
        let Symmetry { symmetric, pattern, .. } = a.view().symmetry();
        let (symmetric, symmetric_pattern) = (everywhere(symmetric)?, everywhere(pattern)?);
        let positive_diagonal = everywhere(symmetric && has_positive_diagonal(a))?;
        Ok(Facts { rows: a.nrows(), entries: a.nnz(), symmetric, symmetric_pattern, positive_diagonal })
    }

    /// Symmetric, and nothing speaks against positive definite.
    pub fn may_be_definite(&self) -> bool {
        self.symmetric && self.positive_diagonal
    }
}

fn has_positive_diagonal(a: &Csr<f64>) -> bool {
    (0..a.nrows()).into_par_iter().with_min_len(1 << 12).all(|i| a.get(i, i) > 0.0)
}
