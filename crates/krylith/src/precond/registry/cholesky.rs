//! Incomplete Cholesky factors on a pattern: `ic`, `mic`, `dic`.

use super::{
    Construction, Parameter, PrecondInfo, PrecondSpec, Suits, Takes, Value, lower_half, no_proposals,
    nothing_weaker,
};
use crate::elimination::Incomplete;
use crate::facts::Facts;
use crate::matrix::Pattern;
use crate::precond::registry::Likely;

/// Levels of fill.
pub(super) const LEVEL: Parameter = Parameter {
    name: "K",
    meaning: "the levels of fill",
    takes: Takes::Count { least: 0, most: usize::MAX },
    default: Some("0"),
};

/// The relaxation of modified factors.
pub(super) const OMEGA: Parameter = Parameter {
    name: "OMEGA",
    meaning: "the share of dropped entries that is subtracted from the diagonal",
    takes: Takes::Real { least: 0.0, most: 1.0 },
    default: Some("1"),
};

pub(super) static IC: PrecondInfo = PrecondInfo {
    name: "ic",
    aliases: &["icc", "ichol"],
    parameters: &[LEVEL],
    level_in_name: true,
    description: "incomplete Cholesky with K levels of fill",
    matrices: Suits::PositiveDefinite,
    symmetric: true,
    can_shift: true,
    examples: &["ic0", "ic(1)", "ic(2)"],
    weaker: |spec| half(spec).map(PrecondSpec::ic),
    predicted_entries: |spec, pattern| without_fill(spec, pattern, lower_half),
    propose: propose_ic,
    construct: |spec| Construction::Incomplete(Incomplete::ic(spec.count(0))),
};

pub(super) static MIC: PrecondInfo = PrecondInfo {
    name: "mic",
    aliases: &[],
    parameters: &[LEVEL, OMEGA],
    level_in_name: true,
    description: "incomplete Cholesky that keeps the sums of rows: often far fewer iterations on diffusion",
    matrices: Suits::PositiveDefinite,
    symmetric: true,
    can_shift: true,
    examples: &["mic0", "mic(1)", "mic(1,0.95)"],
    weaker: |spec| half(spec).map(|level| PrecondSpec::mic(level, spec.real(1))),
    predicted_entries: |spec, pattern| without_fill(spec, pattern, lower_half),
    propose: propose_mic,
    construct: |spec| Construction::Incomplete(Incomplete::mic(spec.count(0), spec.real(1))),
};

pub(super) static DIC: PrecondInfo = PrecondInfo {
    name: "dic",
    aliases: &[],
    parameters: &[],
    level_in_name: false,
    description: "incomplete Cholesky that updates the diagonal only",
    matrices: Suits::PositiveDefinite,
    symmetric: true,
    can_shift: true,
    examples: &["dic"],
    weaker: nothing_weaker,
    predicted_entries: lower_half,
    propose: no_proposals,
    construct: |_| Construction::Incomplete(Incomplete::dic()),
};

/// Without the signs of an M-matrix IC(0) often has bad pivots, and a level of fill is worth more.
fn propose_ic(facts: &Facts) -> Vec<Likely> {
    if !facts.suits_cholesky() {
        return Vec::new();
    }
    let (n, gain) = (facts.across(), facts.gain_of_fill());
    let by_level = match (facts.m_matrix_signs, facts.is_nearly_m_matrix()) {
        (true, _) => [1.0, 0.6 / gain, 0.5 / gain],
        (false, true) => [2.0, 1.0, 0.7],
        // As on `elasticity3d`.
        (false, false) if facts.has_many_unknowns() => [10.0, 3.8, 1.7],
        (false, false) => [4.0, 1.0, 0.6],
    };
    let n = n * facts.times_for_jumps(1.6);
    by_level.into_iter().enumerate().map(|(level, times)| (PrecondSpec::ic(level), times * n)).collect()
}

/// MIC(0) of an M-matrix has good pivots; of one that nearly is one, a level of fill is needed.
fn propose_mic(facts: &Facts) -> Vec<Likely> {
    if !facts.suits_cholesky() || !facts.is_diffusion() {
        return Vec::new();
    }
    let (root, omega) = (facts.across().sqrt(), facts.relaxation());
    match facts.m_matrix_signs {
        true => vec![
            (PrecondSpec::mic(0, omega), 4.0 * root * facts.times_for_jumps(2.5)),
            (PrecondSpec::mic(1, omega), 3.1 * root / facts.gain_of_fill() * facts.times_for_jumps(1.6)),
        ],
        false => vec![(PrecondSpec::mic(1, omega), 10.0 * root)],
    }
}

/// What is predicted where there is no fill; with fill only the analysis finds out.
pub(super) fn without_fill(
    spec: &PrecondSpec,
    pattern: &Pattern,
    predict: fn(&PrecondSpec, &Pattern) -> Option<u64>,
) -> Option<u64> {
    if spec.count(0) == 0 { predict(spec, pattern) } else { None }
}

/// Half of the levels of fill, if there are any.
pub(super) fn half(spec: &PrecondSpec) -> Option<usize> {
    Some(spec.count(0)).filter(|&level| level > 0).map(|level| level / 2)
}

impl PrecondSpec {
    /// Incomplete Cholesky with this level of fill.
    pub fn ic(level: usize) -> Self {
        Self::new(&IC, [Value::Count(level)])
    }

    /// Modified incomplete Cholesky with this level of fill and relaxation ω.
    pub fn mic(level: usize, omega: f64) -> Self {
        Self::new(&MIC, [Value::Count(level), Value::Real(omega)])
    }

    /// Incomplete Cholesky that updates the diagonal only.
    pub fn dic() -> Self {
        Self::plain(&DIC)
    }
}
