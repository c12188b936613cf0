//! `ssor`: symmetric successive over-relaxation as a preconditioner.
//!
//!   M = (D/ω + L) (D/ω)⁻¹ (D/ω + U),  A = L + D + U,  0 < ω < 2
//!
//! Nothing is eliminated: L and U are the triangles of A, and the set-up is one pass over the diagonal. For a symmetric A with a positive
//! diagonal M is symmetric positive definite. The usual factor 1/(2 − ω) is left out: no Krylov method here depends on the
//! scale of M. With ω = 1 this is symmetric Gauss–Seidel.
//!
//! It is an incomplete factor that updates nothing, so every storage that has such factors carries it, and conjugate gradients run without
//! products with A where L and U are A's own ([`EisenstatCg`](crate::krylov::EisenstatCg)), as Eisenstat did for this very M.
//!
//! References: Young 1971, Iterative Solution of Large Linear Systems, 4.1; Axelsson 1972, doi:10.1007/BF01932955, as a
//! preconditioner; Eisenstat 1981, doi:10.1137/0902001.

use super::{
    Construction, Parameter, PrecondInfo, PrecondSpec, Suits, Takes, Value, all_entries, no_proposals,
    nothing_weaker,
};
use crate::elimination::{Form, Incomplete, Kind, Update};

pub(super) static SSOR: PrecondInfo = PrecondInfo {
    name: "ssor",
    aliases: &["sgs"],
    parameters: &[Parameter {
        name: "OMEGA",
        meaning: "the relaxation",
        takes: Takes::Real { least: 0.01, most: 1.99 },
        default: Some("1"),
    }],
    level_in_name: false,
    description: "symmetric successive over-relaxation: uses the triangles of A as they are",
    matrices: Suits::Any,
    symmetric: true,
    can_shift: true,
    examples: &["ssor", "ssor(1.5)"],
    weaker: nothing_weaker,
    predicted_entries: all_entries,
    propose: no_proposals,
    construct: |spec| {
        let update = Update::Keep { diagonal: 1.0 / spec.real(0) };
        Construction::Incomplete(Incomplete::new(Form { kind: Kind::Lu, update }, 0))
    },
};

impl PrecondSpec {
    /// Symmetric successive over-relaxation with this ω.
    pub fn ssor(omega: f64) -> Self {
        Self::new(&SSOR, [Value::Real(omega)])
    }
}
