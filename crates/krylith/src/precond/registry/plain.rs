//! `auto`, `none` and `jacobi`.

use super::{
    Construction, PrecondInfo, PrecondSpec, Suits, no_proposals, nothing_weaker, one_per_row, unknown_entries,
};
use crate::precond::{ColumnNorms, Jacobi};
use std::sync::Arc;

pub(super) static AUTO: PrecondInfo = PrecondInfo {
    name: "auto",
    aliases: &[],
    parameters: &[],
    level_in_name: false,
    description: "chosen from the matrix, and the report says why",
    matrices: Suits::Any,
    symmetric: false,
    can_shift: false,
    examples: &["auto"],
    weaker: nothing_weaker,
    predicted_entries: unknown_entries,
    propose: no_proposals,
    construct: |_| Construction::Chosen,
};

pub(super) static NONE: PrecondInfo = PrecondInfo {
    name: "none",
    aliases: &["identity"],
    parameters: &[],
    level_in_name: false,
    description: "no preconditioner",
    matrices: Suits::Any,
    symmetric: true,
    can_shift: false,
    examples: &["none"],
    weaker: nothing_weaker,
    predicted_entries: |_, _| Some(0),
    propose: no_proposals,
    construct: |_| Construction::Nothing,
};

pub(super) static JACOBI: PrecondInfo = PrecondInfo {
    name: "jacobi",
    aliases: &["diagonal", "diag"],
    parameters: &[],
    level_in_name: false,
    description: "the diagonal of A",
    matrices: Suits::Any,
    symmetric: true,
    can_shift: false,
    examples: &["jacobi"],
    weaker: nothing_weaker,
    predicted_entries: one_per_row,
    propose: no_proposals,
    construct: |_| Construction::Recipe(Arc::new(Jacobi { robust: false })),
};

pub(super) static COLUMN_NORMS: PrecondInfo = PrecondInfo {
    name: "column-norms",
    aliases: &[],
    parameters: &[],
    level_in_name: false,
    description: "a diagonal of the norms of columns, for lsmr",
    matrices: Suits::Any,
    symmetric: true,
    can_shift: false,
    examples: &["column-norms"],
    weaker: nothing_weaker,
    predicted_entries: one_per_row,
    propose: no_proposals,
    construct: |_| Construction::Recipe(Arc::new(ColumnNorms)),
};

/// What a failed factor is replaced by: Jacobi in its form that cannot fail. It has no name of its own.
pub(crate) static ROBUST_JACOBI: PrecondInfo = PrecondInfo {
    name: "jacobi",
    aliases: &[],
    parameters: &[],
    level_in_name: false,
    description: "the diagonal of A, or the largest entry of a row where it has none",
    matrices: Suits::Any,
    symmetric: true,
    can_shift: false,
    examples: &[],
    weaker: nothing_weaker,
    predicted_entries: one_per_row,
    propose: no_proposals,
    construct: |_| Construction::Recipe(Arc::new(Jacobi { robust: true })),
};

impl PrecondSpec {
    /// Chosen from the matrix.
    pub fn auto() -> Self {
        Self::plain(&AUTO)
    }

    /// No preconditioner.
    pub fn none() -> Self {
        Self::plain(&NONE)
    }

    /// The diagonal.
    pub fn jacobi() -> Self {
        Self::plain(&JACOBI)
    }

    /// A diagonal of the norms of columns.
    pub fn column_norms() -> Self {
        Self::plain(&COLUMN_NORMS)
    }

    /// The diagonal in a form that cannot fail.
    pub(crate) fn robust_jacobi() -> Self {
        Self::plain(&ROBUST_JACOBI)
    }
}
