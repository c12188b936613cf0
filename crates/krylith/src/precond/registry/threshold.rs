//! Incomplete factors whose pattern follows the values: `ict`, and `ilut` by three rules, with and without column exchanges.

use super::{
    Construction, Parameter, PrecondInfo, PrecondSpec, Suits, Takes, Value, no_proposals, unknown_entries,
};
use crate::precond::threshold::ByThreshold;

/// An incomplete LU whose pattern follows the values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Threshold {
    /// What is kept.
    pub keep: FillRule,
    /// τ: what is smaller, relative to its row, is dropped.
    pub tau: f64,
    /// Whether columns are exchanged for larger pivots.
    pub pivoting: bool,
}

/// How many entries of a row are kept.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FillRule {
    /// nnz / n + p of L and as many of U, as NVIDIA and MKL have it.
    Mean(usize),
    /// p of L and p of U, as Saad has it.
    Largest(usize),
    /// As many as leave the factor within this multiple of the entries of A, as SuperLU has it.
    Factor(f64),
}

const fn tolerance(meaning: &'static str) -> Parameter {
    Parameter { name: "TOL", meaning, takes: Takes::Real { least: 0.0, most: f64::MAX }, default: None }
}

const BY_ROW: Parameter = tolerance("below which entries of a row are dropped");

const fn entries(meaning: &'static str) -> Parameter {
    Parameter { name: "P", meaning, takes: Takes::Count { least: 0, most: usize::MAX }, default: None }
}

const ABOVE_MEAN: Parameter = entries("how many entries of a row are kept beyond the mean of A");
const LARGEST: Parameter = entries("how many entries of a row of L and of U are kept");
const FACTOR: Parameter = Parameter {
    name: "FACTOR",
    meaning: "how many times the entries of A the factor may have",
    takes: Takes::Real { least: 1.0, most: f64::MAX },
    default: None,
};

pub(super) static ICT: PrecondInfo = PrecondInfo {
    name: "ict",
    aliases: &[],
    parameters: &[tolerance("below which entries of a column are dropped")],
    level_in_name: false,
    description: "incomplete Cholesky whose pattern follows the values",
    matrices: Suits::PositiveDefinite,
    symmetric: true,
    can_shift: true,
    examples: &["ict(0.01)"],
    weaker: |_| Some(PrecondSpec::ic(0)),
    predicted_entries: unknown_entries,
    propose: no_proposals,
    construct: |spec| Construction::Threshold(ByThreshold::Ict(spec.real(0))),
};

/// What the six have in common.
const fn ilut(
    name: &'static str,
    parameters: &'static [Parameter],
    description: &'static str,
    examples: &'static [&'static str],
    construct: fn(&PrecondSpec) -> Construction,
) -> PrecondInfo {
    PrecondInfo {
        name,
        aliases: &[],
        parameters,
        level_in_name: false,
        description,
        matrices: Suits::Any,
        symmetric: false,
        can_shift: true,
        examples,
        weaker: |_| Some(PrecondSpec::ilu(0)),
        predicted_entries: unknown_entries,
        propose: no_proposals,
        construct,
    }
}

fn by(keep: FillRule, spec: &PrecondSpec, pivoting: bool) -> Construction {
    Construction::Threshold(ByThreshold::Ilut(Threshold { keep, tau: spec.real(1), pivoting }))
}

pub(super) static ILUT: PrecondInfo = ilut(
    "ilut",
    &[ABOVE_MEAN, BY_ROW],
    "incomplete LU whose pattern follows the values",
    &["ilut(5,0.01)"],
    |spec| by(FillRule::Mean(spec.count(0)), spec, false),
);
pub(super) static ILUTP: PrecondInfo = ilut(
    "ilutp",
    &[ABOVE_MEAN, BY_ROW],
    "ilut with columns exchanged for larger pivots",
    &["ilutp(5,0.01)"],
    |spec| by(FillRule::Mean(spec.count(0)), spec, true),
);
pub(super) static ILUT_SAAD: PrecondInfo = ilut(
    "ilut-saad",
    &[LARGEST, BY_ROW],
    "ilut that keeps at most P entries per row in L and P in U (Saad's ILUT)",
    &["ilut-saad(5,0.01)"],
    |spec| by(FillRule::Largest(spec.count(0)), spec, false),
);
pub(super) static ILUTP_SAAD: PrecondInfo = ilut(
    "ilutp-saad",
    &[LARGEST, BY_ROW],
    "ilut-saad with columns exchanged for larger pivots",
    &["ilutp-saad(5,0.01)"],
    |spec| by(FillRule::Largest(spec.count(0)), spec, true),
);
pub(super) static ILUT_FILL: PrecondInfo = ilut(
    "ilut-fill",
    &[FACTOR, BY_ROW],
    "ilut whose factor has at most FACTOR times the entries of A (as in SuperLU)",
    &["ilut-fill(3,0.01)"],
    |spec| by(FillRule::Factor(spec.real(0)), spec, false),
);
pub(super) static ILUTP_FILL: PrecondInfo = ilut(
    "ilutp-fill",
    &[FACTOR, BY_ROW],
    "ilut-fill with columns exchanged for larger pivots",
    &["ilutp-fill(3,0.01)"],
    |spec| by(FillRule::Factor(spec.real(0)), spec, true),
);

impl PrecondSpec {
    /// Incomplete Cholesky that drops what is below τ, relative to its column in the scaled matrix.
    pub fn ict(tau: f64) -> Self {
        Self::new(&ICT, [Value::Real(tau)])
    }

    /// Incomplete LU by threshold.
    pub fn ilut(threshold: Threshold) -> Self {
        let Threshold { keep, tau, pivoting } = threshold;
        let (info, first) = match (keep, pivoting) {
            (FillRule::Mean(p), false) => (&ILUT, Value::Count(p)),
            (FillRule::Mean(p), true) => (&ILUTP, Value::Count(p)),
            (FillRule::Largest(p), false) => (&ILUT_SAAD, Value::Count(p)),
            (FillRule::Largest(p), true) => (&ILUTP_SAAD, Value::Count(p)),
            (FillRule::Factor(factor), false) => (&ILUT_FILL, Value::Real(factor)),
            (FillRule::Factor(factor), true) => (&ILUTP_FILL, Value::Real(factor)),
        };
        Self::new(info, [first, Value::Real(tau)])
    }
}
