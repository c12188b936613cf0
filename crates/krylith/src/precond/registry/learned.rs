//! `learned`: an incomplete factor on the pattern of A whose numbers are trained before the solve.
//!
//! The training is that of [`train_by_solving`](crate::learn::train_by_solving). What comes out is symmetric Gauss–Seidel on a matrix of A's pattern, so it is
//! stored and swept as `ssor` is, but made from that matrix instead of A.

use super::{
    Construction, Parameter, PrecondInfo, PrecondSpec, Suits, Value, all_entries, no_proposals,
    nothing_weaker,
};

pub(super) static LEARNED: PrecondInfo = PrecondInfo {
    name: "learned",
    aliases: &[],
    parameters: &[Parameter {
        name: "ROUNDS",
        meaning: "rounds of training, each after a solve",
        whole: true,
        least: 0.0,
        most: 1000.0,
        default: Some(Value::Count(10)),
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
    construct: |_| Construction::Incomplete(PrecondSpec::ssor(1.0).incomplete().expect("ssor is one")),
};

impl PrecondSpec {
    /// Incomplete Cholesky trained in so many rounds.
    pub const fn learned(rounds: usize) -> Self {
        Self::new(&LEARNED, &[Value::Count(rounds)])
    }

    /// Rounds of training, for what is trained.
    pub(crate) fn training_rounds(&self) -> Option<usize> {
        std::ptr::eq(self.info(), &LEARNED).then(|| self.count(0))
    }
}
