//! Preconditioners by name: one [`PrecondInfo`] each, in the file that describes it, and one line in `ALL`.
//!
//! Everything that lists preconditioners iterates over [`preconditioners`]: the parser and `Display` of [`PrecondSpec`], the help of
//! the command, the table in the README, the tests over all members, and the bench crate. All fields of an entry have to be
//! given, so what is forgotten does not compile; an entry without its line is an unknown name.

mod blocks;
mod cholesky;
mod direct;
mod fsai;
mod learned;
mod lu;
mod parse;
mod plain;
mod recipe;
pub(crate) mod spec;
mod ssor;
mod threshold;

pub use crate::block::BlockKind;
pub use recipe::{AnyRecipe, OwnRecipe};
pub(crate) use spec::PrecondSpec;
pub use threshold::{FillRule, Threshold};

use super::Incomplete;
use super::direct::DirectKind;
use super::fsai::Fsai;
use super::threshold::ByThreshold;
use crate::facts::Facts;
use crate::matrix::Pattern;
use std::sync::Arc;

/// A preconditioner and the iterations that it is likely to take.
pub(crate) type Likely = (PrecondSpec, f64);

/// Every preconditioner, in the order of the help text.
static ALL: &[&PrecondInfo] = &[
    &plain::AUTO,
    &plain::NONE,
    &plain::JACOBI,
    &plain::COLUMN_NORMS,
    &ssor::SSOR,
    &cholesky::IC,
    &cholesky::MIC,
    &cholesky::DIC,
    &lu::ILU,
    &lu::MILU,
    &lu::MILU_COLUMNS,
    &lu::DILU,
    &threshold::ICT,
    &threshold::ILUT,
    &threshold::ILUTP,
    &threshold::ILUT_SAAD,
    &threshold::ILUTP_SAAD,
    &threshold::ILUT_FILL,
    &threshold::ILUTP_FILL,
    &fsai::FSAI,
    &fsai::AFSAI,
    &learned::LEARNED,
    &direct::CHOLESKY,
    &direct::LDLT,
    &direct::LU,
    &blocks::BJACOBI,
    &blocks::BIC0,
    &blocks::BILU0,
    &blocks::BDIC,
    &blocks::BDILU,
];

/// Every preconditioner that has a name, in the order of the help text.
///
/// ```
/// let ssor = krylith::precond::registry::preconditioners().iter().find(|info| info.name == "ssor").unwrap();
/// assert_eq!(ssor.usage(), "ssor, ssor(OMEGA)");
/// ```
pub fn preconditioners() -> &'static [&'static PrecondInfo] {
    ALL
}

/// What there is to know about a preconditioner before it has a matrix. Every field has to be given:
///
/// ```compile_fail,E0063
/// use krylith::precond::registry::{PrecondInfo, Suits};
/// static FORGETFUL: PrecondInfo = PrecondInfo { name: "forgetful", matrices: Suits::Any, symmetric: true };
/// ```
#[derive(Debug)]
pub struct PrecondInfo {
    /// Its name. Digits that follow the first word of the name are the first parameter where [`level_in_name`](Self::level_in_name).
    pub name: &'static str,
    /// Other names that are understood.
    pub aliases: &'static [&'static str],
    /// What stands in parentheses.
    pub parameters: &'static [Parameter],
    /// `name3` means `name(3)`, and without numbers it is written `name0`.
    pub level_in_name: bool,
    /// One line on what it is.
    pub description: &'static str,
    /// For which matrices it is.
    pub matrices: Suits,
    /// Whether M is symmetric positive definite whenever A is, so that CG and MINRES may use it.
    pub symmetric: bool,
    /// A bad pivot is avoided by enlarging the diagonal.
    pub can_shift: bool,
    /// Names to try it with: what tests and comparisons run.
    pub examples: &'static [&'static str],
    /// A weaker one that takes less memory.
    pub weaker: fn(&PrecondSpec) -> Option<PrecondSpec>,
    /// Entries of the preconditioner for a matrix of this pattern; `None` where they are known only after the analysis.
    pub predicted_entries: fn(&PrecondSpec, &Pattern) -> Option<u64>,
    /// Which of its members are worth a try on a matrix with these facts, and how many iterations they are likely to take with CG or, if not
    /// [`symmetric`](Self::symmetric), with BiCGStab: only for comparing them (`plan::Proposal`).
    pub propose: fn(&Facts) -> Vec<(PrecondSpec, f64)>,
    /// How it is built.
    pub construct: fn(&PrecondSpec) -> Construction,
}

impl PrecondInfo {
    /// The ways to write it: `ic0, ic(K)`.
    pub fn usage(&self) -> String {
        let required = self.parameters.iter().take_while(|p| p.default.is_none()).count();
        let names = Vec::from_iter(self.parameters.iter().map(|p| p.name));
        let mut ways = Vec::new();
        if required == 0 {
            ways.push(spec::without_numbers(self));
        }
        // All numbers, where there are many of them.
        let fewest = if names.len() > 2 { names.len() } else { required.max(1) };
        for count in fewest..=names.len() {
            ways.push(format!("{}({})", self.name, names[..count].join(",")));
        }
        ways.join(", ")
    }
}

/// For which matrices a preconditioner is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Suits {
    /// Any square matrix.
    Any,
    /// Symmetric ones.
    Symmetric,
    /// Symmetric positive definite ones.
    PositiveDefinite,
}

impl Suits {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Suits::Any => "any",
            Suits::Symmetric => "symmetric",
            Suits::PositiveDefinite => "symmetric positive definite",
        }
    }
}

/// A parameter of a preconditioner.
#[derive(Debug, Clone, Copy)]
pub struct Parameter {
    /// Its name in capitals, such as `K`.
    pub name: &'static str,
    /// What it means.
    pub meaning: &'static str,
    /// What it may be.
    pub takes: Takes,
    /// The default as it would be written; `None` if the value is required.
    pub default: Option<&'static str>,
}

/// What a parameter may be.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Takes {
    /// A whole number of this range.
    Count {
        /// The smallest that makes sense.
        least: usize,
        /// The largest that makes sense.
        most: usize,
    },
    /// A number of this range.
    Real {
        /// The smallest that makes sense.
        least: f64,
        /// The largest that makes sense.
        most: f64,
    },
    /// One of these words.
    Word(&'static [&'static str]),
    /// A preconditioner by name, with parameters of its own.
    Preconditioner,
}

/// The value of a parameter.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// A whole number.
    Count(usize),
    /// Any number.
    Real(f64),
    /// One of the words that there are.
    Word(&'static str),
    /// A preconditioner within the preconditioner.
    Preconditioner(Box<PrecondSpec>),
    /// Found in the matrix.
    FromMatrix,
}

/// How a value is written that is found in the matrix, where that is the default.
pub(crate) const FROM_MATRIX: &str = "matrix";

/// How a preconditioner is built. Layouts build what they have kernels for.
pub enum Construction {
    /// It is chosen before anything is built.
    Chosen,
    /// There is none.
    Nothing,
    /// An incomplete factor on a pattern: on grids, in slices and by rows.
    Incomplete(Incomplete),
    /// An incomplete factor on a pattern whose numbers are trained by solving before they are used: the sweeps are those of `recipe`.
    Trained {
        /// With the trained numbers in the place of those of A.
        recipe: Incomplete,
        /// Rounds of training.
        rounds: usize,
    },
    /// An incomplete factor whose pattern follows the values.
    Threshold(ByThreshold),
    /// A factor of dense blocks of this size, or of that which the matrix has.
    Blocks(BlockKind, Option<usize>),
    /// A complete factor, by rows.
    Direct(DirectKind),
    /// A factored approximate inverse: two products, in any storage.
    Inverse(Fsai),
    /// By rows, by a recipe.
    Recipe(Arc<dyn AnyRecipe>),
    /// By rows, by the recipe that the caller gave to the solver.
    Own,
}

impl Construction {
    /// Whether it is applied by sweeps through A's pattern, whose rows wait for each other.
    pub(crate) fn sweeps(&self) -> bool {
        match self {
            Construction::Incomplete(_) | Construction::Trained { .. } | Construction::Threshold(_) => true,
            Construction::Blocks(kind, _) => *kind != BlockKind::Jacobi,
            _ => false,
        }
    }
}

/// It is taken where it is asked for.
fn no_proposals(_: &Facts) -> Vec<Likely> {
    Vec::new()
}

/// None is weaker.
fn nothing_weaker(_: &PrecondSpec) -> Option<PrecondSpec> {
    None
}

/// L and D of a symmetric pattern.
fn lower_half(_: &PrecondSpec, pattern: &Pattern) -> Option<u64> {
    let n = pattern.nrows() as u64;
    Some((pattern.nnz() as u64).saturating_sub(n) / 2 + n)
}

/// L, D and U.
fn all_entries(_: &PrecondSpec, pattern: &Pattern) -> Option<u64> {
    Some(pattern.nnz() as u64)
}

/// A number for each row.
fn one_per_row(_: &PrecondSpec, pattern: &Pattern) -> Option<u64> {
    Some(pattern.nrows() as u64)
}

/// Only the analysis finds out.
fn unknown_entries(_: &PrecondSpec, _: &Pattern) -> Option<u64> {
    None
}

#[cfg(test)]
mod tests;
