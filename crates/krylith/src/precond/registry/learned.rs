//! `learned`: an incomplete factor on the pattern of A whose numbers are trained before the solve.
//!
//! The training is that of [`train_by_solving`](crate::learn::train_by_solving). What comes out is symmetric Gauss–Seidel on a matrix of A's pattern, so it is
//! stored and swept as `ssor` is, but made from that matrix instead of A.

use super::{
    Construction, Parameter, PrecondInfo, PrecondSpec, Suits, Takes, Value, all_entries, no_proposals,
    nothing_weaker,
};
use crate::elimination::{Form, Incomplete, Kind, Update};

pub(super) static LEARNED: PrecondInfo = PrecondInfo {
    name: "learned",
    aliases: &[],
    parameters: &[Parameter {
        name: "ROUNDS",
        meaning: "rounds of training, each after a solve",
        takes: Takes::Count { least: 0, most: 1000 },
        default: Some("10"),
    }],
    level_in_name: false,
    description: "incomplete Cholesky trained before the solve: pays off for many solves with one matrix",
    matrices: Suits::PositiveDefinite,
    symmetric: true,
    can_shift: false,
    examples: &["learned(2)"],
    weaker: nothing_weaker,
    predicted_entries: all_entries,
    propose: no_proposals,
    construct: |spec| Construction::Trained { recipe: gauss_seidel(), rounds: spec.count(0) },
};

impl PrecondSpec {
    /// Incomplete Cholesky trained in so many rounds.
    pub fn learned(rounds: usize) -> Self {
        Self::new(&LEARNED, [Value::Count(rounds)])
    }
}

/// Symmetric Gauss–Seidel.
fn gauss_seidel() -> Incomplete {
    Incomplete::new(Form { kind: Kind::Lu, update: Update::Keep { diagonal: 1.0 } }, 0)
}
