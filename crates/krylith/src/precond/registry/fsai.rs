//! `fsai` and `afsai`: factored sparse approximate inverses. See [`precond::fsai`](crate::precond::fsai).

use super::{
    Construction, Parameter, PrecondInfo, PrecondSpec, Suits, Value, no_proposals, nothing_weaker,
    unknown_entries,
};
use crate::precond::fsai::{Fsai, Growth, PatternRule};

const DELTA: Parameter = Parameter {
    name: "DELTA",
    meaning: "entries up to DELTA of the norm of their row are dropped",
    whole: false,
    least: 0.0,
    most: 1.0,
    default: Some(Value::Real(0.0)),
};

pub(super) static FSAI: PrecondInfo = PrecondInfo {
    name: "fsai",
    aliases: &[],
    parameters: &[
        Parameter {
            name: "TAU",
            meaning: "entries up to TAU of their diagonal are not in the pattern",
            whole: false,
            least: 0.0,
            most: 1.0,
            default: Some(Value::Real(0.0)),
        },
        Parameter {
            name: "K",
            meaning: "the power of the pattern",
            whole: true,
            least: 1.0,
            most: 20.0,
            default: Some(Value::Count(1)),
        },
        DELTA,
    ],
    level_in_name: false,
    description: "a sparse factor of the inverse on a given pattern: two products, nothing to wait for",
    matrices: Suits::Any,
    symmetric: true,
    can_shift: false,
    examples: &["fsai", "fsai(0.01,2,0.01)"],
    weaker: nothing_weaker,
    predicted_entries: unknown_entries,
    propose: no_proposals,
    construct: |spec| {
        let pattern = PatternRule::Powers { tau: spec.real(0), power: spec.count(1) };
        Construction::Inverse(Fsai { pattern, delta: spec.real(2), pair: false, max_bytes: None })
    },
};

pub(super) static AFSAI: PrecondInfo = PrecondInfo {
    name: "afsai",
    aliases: &[],
    parameters: &[
        Parameter {
            name: "STEPS",
            meaning: "in so many steps the pattern grows at most",
            whole: true,
            least: 1.0,
            most: 100.0,
            default: Some(Value::Count(5)),
        },
        Parameter {
            name: "ENTRIES",
            meaning: "a step adds so many entries to a row at most",
            whole: true,
            least: 1.0,
            most: 100.0,
            default: Some(Value::Count(3)),
        },
        Parameter {
            name: "TOL",
            meaning: "a row that a step improves by less than TOL is left as it is",
            whole: false,
            least: 0.0,
            most: 1.0,
            default: Some(Value::Real(1e-3)),
        },
        DELTA,
    ],
    level_in_name: false,
    description: "a sparse factor of the inverse whose pattern grows where that gains the most",
    matrices: Suits::Any,
    symmetric: true,
    can_shift: false,
    examples: &["afsai", "afsai(8,2,0.01)"],
    weaker: nothing_weaker,
    predicted_entries: unknown_entries,
    propose: no_proposals,
    construct: |spec| {
        let growth = Growth { steps: spec.count(0), entries: spec.count(1), tolerance: spec.real(2) };
        let pattern = PatternRule::Adaptive(growth);
        Construction::Inverse(Fsai { pattern, delta: spec.real(3), pair: false, max_bytes: None })
    },
};

impl PrecondSpec {
    /// A factored sparse approximate inverse on the pattern of the `power`-th power of the entries of A above `tau`, without those below `delta`.
    pub const fn fsai(tau: f64, power: usize, delta: f64) -> Self {
        Self::new(&FSAI, &[Value::Real(tau), Value::Count(power), Value::Real(delta)])
    }
}
