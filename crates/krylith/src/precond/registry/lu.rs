//! Incomplete LU factors on a pattern: `ilu`, `milu`, `milu-columns`, `dilu`.

use super::cholesky::{LEVEL, OMEGA, half, without_fill};
use super::{
    Construction, PrecondInfo, PrecondSpec, Suits, Value, all_entries, no_proposals, nothing_weaker,
};
use crate::elimination::{Incomplete, PreservedSums};
use crate::facts::Facts;
use crate::precond::registry::Likely;

pub(super) static ILU: PrecondInfo = PrecondInfo {
    name: "ilu",
    aliases: &[],
    parameters: &[LEVEL],
    level_in_name: true,
    description: "incomplete LU with K levels of fill",
    matrices: Suits::Any,
    symmetric: false,
    can_shift: true,
    examples: &["ilu0", "ilu(1)", "ilu(2)"],
    weaker: |spec| half(spec).map(PrecondSpec::ilu),
    predicted_entries: |spec, pattern| without_fill(spec, pattern, all_entries),
    propose: propose_ilu,
    construct: |spec| Construction::Incomplete(Incomplete::ilu(spec.count(0))),
};

pub(super) static MILU: PrecondInfo = PrecondInfo {
    name: "milu",
    aliases: &[],
    parameters: &[LEVEL, OMEGA],
    level_in_name: true,
    description: "incomplete LU that keeps the sums of rows: often far fewer iterations on diffusion and flow",
    matrices: Suits::Any,
    symmetric: false,
    can_shift: true,
    examples: &["milu0", "milu(1)", "milu(1,0.95)"],
    weaker: |spec| half(spec).map(|level| PrecondSpec::milu(level, spec.real(1), PreservedSums::Rows)),
    predicted_entries: |spec, pattern| without_fill(spec, pattern, all_entries),
    propose: propose_milu,
    construct: |spec| {
        Construction::Incomplete(Incomplete::milu(spec.count(0), spec.real(1), PreservedSums::Rows))
    },
};

pub(super) static MILU_COLUMNS: PrecondInfo = PrecondInfo {
    name: "milu-columns",
    aliases: &[],
    parameters: &[LEVEL, OMEGA],
    level_in_name: true,
    description: "incomplete LU that keeps the sums of columns",
    matrices: Suits::Any,
    symmetric: false,
    can_shift: true,
    examples: &["milu0-columns", "milu-columns(1,0.95)"],
    weaker: |spec| half(spec).map(|level| PrecondSpec::milu(level, spec.real(1), PreservedSums::Columns)),
    predicted_entries: |spec, pattern| without_fill(spec, pattern, all_entries),
    propose: no_proposals,
    construct: |spec| {
        Construction::Incomplete(Incomplete::milu(spec.count(0), spec.real(1), PreservedSums::Columns))
    },
};

pub(super) static DILU: PrecondInfo = PrecondInfo {
    name: "dilu",
    aliases: &[],
    parameters: &[],
    level_in_name: false,
    description: "incomplete LU that updates the diagonal only",
    matrices: Suits::Any,
    symmetric: false,
    can_shift: true,
    examples: &["dilu"],
    weaker: nothing_weaker,
    predicted_entries: all_entries,
    propose: no_proposals,
    construct: |_| Construction::Incomplete(Incomplete::dilu()),
};

fn propose_ilu(facts: &Facts) -> Vec<Likely> {
    let n = facts.across();
    match facts.is_diffusion() {
        true => vec![(PrecondSpec::ilu(0), n / 3.0), (PrecondSpec::ilu(1), n / (5.0 * facts.gain_of_fill()))],
        false => vec![(PrecondSpec::ilu(0), n / 3.0)],
    }
}

/// For diffusion and upwind flow, whose rows are diagonally dominant.
fn propose_milu(facts: &Facts) -> Vec<Likely> {
    if !facts.is_diffusion() || 100 * facts.dominant_rows < 99 * facts.rows {
        return Vec::new();
    }
    let (root, omega) = (facts.across().sqrt(), facts.relaxation());
    let milu = |level| PrecondSpec::milu(level, omega, PreservedSums::Rows);
    vec![(milu(0), 1.2 * root), (milu(1), root / facts.gain_of_fill())]
}

impl PrecondSpec {
    /// Incomplete LU with this level of fill.
    pub fn ilu(level: usize) -> Self {
        Self::new(&ILU, [Value::Count(level)])
    }

    /// Modified incomplete LU with this level of fill and relaxation ω, which keeps the sums of rows or of columns.
    pub fn milu(level: usize, omega: f64, sums: PreservedSums) -> Self {
        let info = match sums {
            PreservedSums::Rows => &MILU,
            PreservedSums::Columns => &MILU_COLUMNS,
        };
        Self::new(info, [Value::Count(level), Value::Real(omega)])
    }

    /// Incomplete LU that updates the diagonal only.
    pub fn dilu() -> Self {
        Self::plain(&DILU)
    }
}
