//! Complete factors: `cholesky`, `ldlt`, `lu`. See [`precond::direct`](crate::precond::direct).

use super::{Construction, PrecondInfo, PrecondSpec, Suits, no_proposals, nothing_weaker, unknown_entries};
use crate::precond::direct::{DirectKind, predicted_entries};

pub(super) static CHOLESKY: PrecondInfo = PrecondInfo {
    name: "cholesky",
    aliases: &["chol", "llt"],
    parameters: &[],
    level_in_name: false,
    description: "complete Cholesky: an iteration or two, and memory for all fill",
    matrices: Suits::PositiveDefinite,
    symmetric: true,
    can_shift: false,
    examples: &["cholesky"],
    weaker: nothing_weaker,
    predicted_entries: |_, pattern| predicted_entries(pattern),
    propose: no_proposals,
    construct: |_| Construction::Direct(DirectKind::Cholesky),
};

pub(super) static LDLT: PrecondInfo = PrecondInfo {
    name: "ldlt",
    aliases: &["ldl"],
    parameters: &[],
    level_in_name: false,
    description: "complete LDLᵀ of a symmetric matrix that is not definite: half of what lu takes",
    matrices: Suits::Symmetric,
    symmetric: true,
    can_shift: false,
    examples: &["ldlt"],
    weaker: nothing_weaker,
    predicted_entries: unknown_entries,
    propose: no_proposals,
    construct: |_| Construction::Direct(DirectKind::Ldlt),
};

pub(super) static LU: PrecondInfo = PrecondInfo {
    name: "lu",
    aliases: &["direct"],
    parameters: &[],
    level_in_name: false,
    description: "complete LU of the matched and scaled matrix: a few iterations, and memory for all fill",
    matrices: Suits::Any,
    symmetric: false,
    can_shift: false,
    examples: &["lu"],
    weaker: nothing_weaker,
    predicted_entries: unknown_entries,
    propose: no_proposals,
    construct: |_| Construction::Direct(DirectKind::Lu),
};

impl PrecondSpec {
    /// Complete Cholesky.
    pub fn cholesky() -> Self {
        Self::plain(&CHOLESKY)
    }

    /// Complete LDLᵀ.
    pub fn ldlt() -> Self {
        Self::plain(&LDLT)
    }

    /// Complete LU.
    pub fn lu() -> Self {
        Self::plain(&LU)
    }
}
