//! `fsai` and `afsai`: factored sparse approximate inverses. See [`precond::fsai`](crate::precond::fsai).

use super::{
    Construction, FROM_MATRIX, Parameter, PrecondInfo, PrecondSpec, Suits, Takes, Value, nothing_weaker,
    unknown_entries,
};
use crate::facts::Facts;
use crate::precond::fsai::{Fsai, Growth, PatternRule};
use crate::precond::registry::Likely;

const DELTA: Parameter = Parameter {
    name: "DELTA",
    meaning: "entries up to DELTA of the norm of their row are dropped, both in units of the diagonal of A",
    takes: Takes::Real { least: 0.0, most: 1.0 },
    default: Some(FROM_MATRIX),
};

pub(super) static FSAI: PrecondInfo = PrecondInfo {
    name: "fsai",
    aliases: &[],
    parameters: &[
        Parameter {
            name: "TAU",
            meaning: "entries up to TAU of their diagonal are not in the pattern",
            takes: Takes::Real { least: 0.0, most: 1.0 },
            default: Some(FROM_MATRIX),
        },
        Parameter {
            name: "K",
            meaning: "the power of the pattern",
            takes: Takes::Count { least: 1, most: 20 },
            default: Some(FROM_MATRIX),
        },
        DELTA,
    ],
    level_in_name: false,
    description: "a sparse factor of the inverse on a power of the large entries: two products, nothing to wait for",
    matrices: Suits::Any,
    symmetric: true,
    can_shift: false,
    examples: &["fsai", "fsai(0,1)", "fsai(0.01,2,0.01)"],
    weaker: nothing_weaker,
    predicted_entries: unknown_entries,
    propose: |facts| propose(facts, FSAI_TIMES, &FSAI),
    construct: |spec| {
        let pattern = PatternRule::Powers { tau: spec.real_if_given(0), power: spec.count_if_given(1) };
        Construction::Inverse(Fsai { pattern, delta: spec.real_if_given(2), pair: false, max_bytes: None })
    },
};

pub(super) static AFSAI: PrecondInfo = PrecondInfo {
    name: "afsai",
    aliases: &[],
    parameters: &[
        Parameter {
            name: "STEPS",
            meaning: "in so many steps the pattern grows at most",
            takes: Takes::Count { least: 1, most: 100 },
            default: Some("5"),
        },
        Parameter {
            name: "ENTRIES",
            meaning: "a step adds so many entries to a row at most",
            takes: Takes::Count { least: 1, most: 100 },
            default: Some("3"),
        },
        Parameter {
            name: "TOL",
            meaning: "a row that a step improves by less than TOL is left as it is",
            takes: Takes::Real { least: 0.0, most: 1.0 },
            default: Some("0.001"),
        },
        Parameter { default: Some("0.05"), ..DELTA },
    ],
    level_in_name: false,
    description: "a sparse factor of the inverse whose pattern grows where that gains the most",
    matrices: Suits::Any,
    symmetric: true,
    can_shift: false,
    examples: &["afsai", "afsai(8,2,0.01)"],
    weaker: nothing_weaker,
    predicted_entries: unknown_entries,
    propose: |facts| propose(facts, AFSAI_TIMES, &AFSAI),
    construct: |spec| {
        let growth = Growth { steps: spec.count(0), entries: spec.count(1), tolerance: spec.real(2) };
        let pattern = PatternRule::Adaptive(growth);
        Construction::Inverse(Fsai { pattern, delta: spec.real_if_given(3), pair: false, max_bytes: None })
    },
};

/// Iterations of CG over N, the steps across a mesh: for M-matrices, what nearly is one, others with one unknown per point, others. Read off runs
/// with default settings on the problems in `docs/inverses.md`, beside those with IC(0).
const FSAI_TIMES: [f64; 4] = [1.4, 2.8, 5.0, 35.0];
const AFSAI_TIMES: [f64; 4] = [1.1, 2.2, 4.0, 21.0];

/// One factor where a matrix may be definite; a pair for flow, since of other matrices it may be of no use at all.
fn propose(facts: &Facts, times: [f64; 4], info: &'static PrecondInfo) -> Vec<Likely> {
    if !facts.may_be_definite() && !facts.is_nearly_m_matrix() {
        return Vec::new();
    }
    let times = match (facts.m_matrix_signs, facts.is_nearly_m_matrix()) {
        (true, _) => times[0],
        (false, true) => times[1],
        (false, false) => times[if facts.has_many_unknowns() { 3 } else { 2 }],
    };
    let defaults = info.parameters.iter().filter_map(Parameter::default_value);
    let iterations = times * facts.across() * facts.times_for_jumps(0.7);
    vec![(PrecondSpec::new(info, Vec::from_iter(defaults)), iterations)]
}

impl PrecondSpec {
    /// A factored sparse approximate inverse on the pattern of the `power`-th power of the entries of A above `tau`, without those below `delta`.
    pub fn fsai(tau: f64, power: usize, delta: f64) -> Self {
        Self::new(&FSAI, [Value::Real(tau), Value::Count(power), Value::Real(delta)])
    }
}
