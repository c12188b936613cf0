//! Methods and preconditioners by name: the one list that the command and other languages share.

use crate::block::BlockKind;
use crate::precond::{Incomplete, PreservedSums};
use std::fmt::{Display, Formatter};
use std::str::FromStr;
use thiserror::Error;

/// A Krylov method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Method {
    /// Chosen from the matrix.
    Auto,
    /// Conjugate gradients.
    Cg,
    /// BiCGStab.
    BiCgStab,
    /// GMRES with this restart.
    Gmres(usize),
    /// Flexible GMRES with this restart.
    Fgmres(usize),
    /// MINRES.
    Minres,
}

impl Method {
    /// Vectors that its workspace stores.
    pub fn vectors(self) -> usize {
        match self {
            Method::Cg => 5,
            Method::Auto | Method::BiCgStab | Method::Minres => 8,
            Method::Gmres(restart) => restart.saturating_add(3),
            Method::Fgmres(restart) => restart.saturating_mul(2).saturating_add(2),
        }
    }

    /// Bytes of a workspace for `rows` unknowns: vectors, and the small matrix of GMRES.
    pub fn workspace_bytes(self, rows: usize) -> u64 {
        let small = match self {
            Method::Gmres(m) | Method::Fgmres(m) => {
                let m = m as u64;
                (m.saturating_mul(m.saturating_add(1)) / 2).saturating_add(m.saturating_mul(7))
            }
            _ => 0,
        };
        8u64.saturating_mul((rows as u64).saturating_mul(self.vectors() as u64).saturating_add(small))
    }

    /// The restart of GMRES limited to the number of unknowns and of iterations: a longer one is never reached.
    pub(crate) fn limited(self, rows: usize, max_iterations: usize) -> Self {
        let limit = |restart: usize| restart.min(rows).min(max_iterations).max(1);
        match self {
            Method::Gmres(restart) => Method::Gmres(limit(restart)),
            Method::Fgmres(restart) => Method::Fgmres(limit(restart)),
            other => other,
        }
    }
}

/// In which order a solve takes the rows of the matrix. Any order gives the same answer up to rounding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Layout {
    /// On the grid that the matrix is of, if it is; otherwise as `Slices`.
    #[default]
    Auto,
    /// By wavefront in slices of eight where an incomplete factor gains from it, as given otherwise.
    Slices,
    /// As given.
    Rows,
}

/// In which numbers a solve computes. The answer is `f64` and certified in it, whichever is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Precision {
    /// `f64` throughout.
    #[default]
    F64,
    /// The triangles of incomplete factors are stored in `f32`: fewer bytes an iteration.
    Mixed,
}

/// A preconditioner.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum PrecondSpec {
    /// Chosen from the matrix.
    Auto,
    /// None.
    None,
    /// The diagonal.
    Jacobi,
    /// Incomplete Cholesky with this level of fill.
    Ic(usize),
    /// Modified incomplete Cholesky with this level of fill and relaxation ω.
    Mic(usize, f64),
    /// Incomplete Cholesky that updates the diagonal only.
    Dic,
    /// Incomplete LU with this level of fill.
    Ilu(usize),
    /// Modified incomplete LU with this level of fill and relaxation ω.
    Milu(usize, f64, PreservedSums),
    /// Incomplete LU that updates the diagonal only.
    Dilu,
    /// Incomplete Cholesky that drops what is below τ, relative to its column in the scaled matrix.
    Ict(f64),
    /// Incomplete LU by threshold.
    Ilut(Threshold),
    /// A factor of dense blocks of this size, or of the size that the matrix has by nature.
    Block(BlockKind, Option<usize>),
}

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

/// Whether columns are permuted so that large entries come to the diagonal (a maximum-product matching with scaling).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum MatchingMode {
    /// For an incomplete LU of a matrix with diagonal entries that are missing, zero or tiny in their rows.
    #[default]
    Auto,
    /// For any incomplete LU.
    On,
    /// Never.
    Off,
}

impl PrecondSpec {
    /// The recipe of an incomplete factor with levels of fill.
    pub fn incomplete(self) -> Option<Incomplete> {
        Some(match self {
            PrecondSpec::Ic(level) => Incomplete::ic(level),
            PrecondSpec::Ilu(level) => Incomplete::ilu(level),
            PrecondSpec::Mic(level, omega) => Incomplete::mic(level, omega),
            PrecondSpec::Milu(level, omega, sums) => Incomplete::milu(level, omega, sums),
            PrecondSpec::Dic => Incomplete::dic(),
            PrecondSpec::Dilu => Incomplete::dilu(),
            _ => return None,
        })
    }

    /// A positive definite preconditioner of a symmetric matrix, or none.
    pub(crate) fn is_symmetric(self) -> bool {
        use PrecondSpec as P;
        !matches!(
            self,
            P::Auto
                | P::Ilu(_)
                | P::Milu(..)
                | P::Dilu
                | P::Ilut(_)
                | P::Block(BlockKind::Ilu0 | BlockKind::Dilu, _)
        )
    }

    /// One with half of the levels of fill, or none of it.
    pub(crate) fn with_less_fill(self) -> Option<Self> {
        use PrecondSpec as P;
        match self {
            P::Ic(level @ 1..) => Some(P::Ic(level / 2)),
            P::Mic(level @ 1.., omega) => Some(P::Mic(level / 2, omega)),
            P::Ilu(level @ 1..) => Some(P::Ilu(level / 2)),
            P::Milu(level @ 1.., omega, sums) => Some(P::Milu(level / 2, omega, sums)),
            P::Ict(_) => Some(P::Ic(0)),
            P::Ilut(_) => Some(P::Ilu(0)),
            _ => None,
        }
    }

    /// A shift of the diagonal makes a difference.
    pub(crate) fn can_shift(self) -> bool {
        !matches!(self, PrecondSpec::None | PrecondSpec::Jacobi | PrecondSpec::Auto)
    }
}

/// What `mic0` and `milu0` take for ω.
const OMEGA: f64 = 1.0;

/// The restart of GMRES unless another is given.
const RESTART: usize = 30;

/// A name that stands for nothing here.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("unknown {what} `{name}`; known: {known}")]
pub struct UnknownName {
    what: &'static str,
    name: String,
    known: &'static str,
}

impl FromStr for Method {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        match name {
            "auto" => Ok(Method::Auto),
            "cg" => Ok(Method::Cg),
            "bicgstab" => Ok(Method::BiCgStab),
            "gmres" => Ok(Method::Gmres(RESTART)),
            "fgmres" => Ok(Method::Fgmres(RESTART)),
            "minres" => Ok(Method::Minres),
            _ => {
                let known = "auto, cg, bicgstab, gmres, fgmres, minres";
                Err(UnknownName { what: "solver", name: name.into(), known })
            }
        }
    }
}

impl Display for Method {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Method::Auto => "auto",
            Method::Cg => "cg",
            Method::BiCgStab => "bicgstab",
            Method::Gmres(_) => "gmres",
            Method::Fgmres(_) => "fgmres",
            Method::Minres => "minres",
        })
    }
}

/// Names of preconditioners, as an error lists them.
const KNOWN: &str = "auto, none, jacobi, ic0, ic(K), mic0, mic(K), mic(K,OMEGA), dic, ilu0, ilu(K), milu0, milu(K), \
                     milu(K,OMEGA), milu0-columns, milu-columns(K), milu-columns(K,OMEGA), dilu, ict(TOL), \
                     ilut(P,TOL), ilutp(P,TOL), ilut-saad(P,TOL), ilutp-saad(P,TOL), ilut-fill(FACTOR,TOL), \
                     ilutp-fill(FACTOR,TOL), bjacobi, bjacobi(B), bic0, bic0(B), bilu0, bilu0(B), bdic, \
                     bdic(B), bdilu, bdilu(B)";

impl FromStr for PrecondSpec {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        parse(name).ok_or_else(|| UnknownName { what: "preconditioner", name: name.into(), known: KNOWN })
    }
}

/// A name with numbers in parentheses.
fn parse(text: &str) -> Option<PrecondSpec> {
    use PrecondSpec as P;
    let (name, numbers) = match text.split_once('(') {
        Some((name, rest)) => (name, rest.strip_suffix(')')?.split(',').map(str::trim).collect()),
        None => (text, Vec::new()),
    };
    let level = || numbers[0].parse::<usize>().ok();
    let block = || match numbers.first() {
        Some(text) => text.parse::<usize>().ok().filter(|size| (1..=8).contains(size)).map(Some),
        None => Some(None),
    };
    let omega = || match numbers.get(1) {
        Some(text) => text.parse::<f64>().ok().filter(|omega| (0.0..=1.0).contains(omega)),
        None => Some(OMEGA),
    };
    Some(match (name, numbers.len()) {
        ("auto", 0) => P::Auto,
        ("none", 0) => P::None,
        ("jacobi", 0) => P::Jacobi,
        ("ic0", 0) => P::Ic(0),
        ("ic", 1) => P::Ic(level()?),
        ("mic0", 0) => P::Mic(0, OMEGA),
        ("mic", 1 | 2) => P::Mic(level()?, omega()?),
        ("dic", 0) => P::Dic,
        ("ilu0", 0) => P::Ilu(0),
        ("ilu", 1) => P::Ilu(level()?),
        ("milu0", 0) => P::Milu(0, OMEGA, PreservedSums::Rows),
        ("milu", 1 | 2) => P::Milu(level()?, omega()?, PreservedSums::Rows),
        ("milu0-columns", 0) => P::Milu(0, OMEGA, PreservedSums::Columns),
        ("milu-columns", 1 | 2) => P::Milu(level()?, omega()?, PreservedSums::Columns),
        ("dilu", 0) => P::Dilu,
        ("bjacobi", 0 | 1) => P::Block(BlockKind::Jacobi, block()?),
        ("bic0", 0 | 1) => P::Block(BlockKind::Ic0, block()?),
        ("bilu0", 0 | 1) => P::Block(BlockKind::Ilu0, block()?),
        ("bdic", 0 | 1) => P::Block(BlockKind::Dic, block()?),
        ("bdilu", 0 | 1) => P::Block(BlockKind::Dilu, block()?),
        ("ict", 1) => P::Ict(positive(numbers[0])?),
        (name, 2) => {
            let (name, pivoting) = match name.strip_prefix("ilutp") {
                Some(rest) => (rest, true),
                None => (name.strip_prefix("ilut")?, false),
            };
            let keep = match name {
                "" => FillRule::Mean(level()?),
                "-saad" => FillRule::Largest(level()?),
                "-fill" => FillRule::Factor(positive(numbers[0]).filter(|&factor| factor >= 1.0)?),
                _ => return None,
            };
            P::Ilut(Threshold { keep, tau: positive(numbers[1])?, pivoting })
        }
        _ => return None,
    })
}

/// A number from 0 on.
fn positive(text: &str) -> Option<f64> {
    text.parse::<f64>().ok().filter(|number| *number >= 0.0 && number.is_finite())
}

impl Display for PrecondSpec {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        use PrecondSpec as P;
        match *self {
            P::Auto => f.write_str("auto"),
            P::None => f.write_str("none"),
            P::Jacobi => f.write_str("jacobi"),
            P::Ic(level) => levelled(f, "ic", "", level, OMEGA),
            P::Mic(level, omega) => levelled(f, "mic", "", level, omega),
            P::Dic => f.write_str("dic"),
            P::Ilu(level) => levelled(f, "ilu", "", level, OMEGA),
            P::Milu(level, omega, PreservedSums::Rows) => levelled(f, "milu", "", level, omega),
            P::Milu(level, omega, PreservedSums::Columns) => levelled(f, "milu", "-columns", level, omega),
            P::Dilu => f.write_str("dilu"),
            P::Block(kind, size) => {
                f.write_str(match kind {
                    BlockKind::Jacobi => "bjacobi",
                    BlockKind::Ic0 => "bic0",
                    BlockKind::Ilu0 => "bilu0",
                    BlockKind::Dic => "bdic",
                    BlockKind::Dilu => "bdilu",
                })?;
                size.map_or(Ok(()), |size| write!(f, "({size})"))
            }
            P::Ict(tau) => write!(f, "ict({tau})"),
            P::Ilut(Threshold { keep, tau, pivoting }) => {
                f.write_str(if pivoting { "ilutp" } else { "ilut" })?;
                match keep {
                    FillRule::Mean(p) => write!(f, "({p},{tau})"),
                    FillRule::Largest(p) => write!(f, "-saad({p},{tau})"),
                    FillRule::Factor(factor) => write!(f, "-fill({factor},{tau})"),
                }
            }
        }
    }
}

/// `ic0`, `ic(2)`, `mic(2,0.9)`.
fn levelled(f: &mut Formatter<'_>, name: &str, ending: &str, level: usize, omega: f64) -> std::fmt::Result {
    match (level, omega) {
        (0, OMEGA) => write!(f, "{name}0{ending}"),
        (level, OMEGA) => write!(f, "{name}{ending}({level})"),
        (level, omega) => write!(f, "{name}{ending}({level},{omega})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        let names = [
            "auto",
            "none",
            "jacobi",
            "ic0",
            "ic(3)",
            "mic0",
            "mic(2)",
            "mic(0,0.95)",
            "dic",
            "ilu0",
            "ilu(12)",
            "milu0",
            "milu(1,0.5)",
            "milu0-columns",
            "milu-columns(3)",
            "milu-columns(0,0.5)",
            "dilu",
            "bjacobi",
            "bic0(3)",
            "bilu0",
            "bdic",
            "bdic(2)",
            "bdilu",
            "bdilu(8)",
        ];
        for name in names {
            assert_eq!(name.parse::<PrecondSpec>().unwrap().to_string(), name);
        }
        for wrong in [
            "",
            "ic",
            "ic()",
            "ic(-1)",
            "ic(1",
            "ic(1)x",
            "mic(0,2)",
            "mic(0,nan)",
            "ilu(1,2)",
            "Ic0",
            "ict",
            "ict(-1)",
            "ilut(1)",
            "ilut-fill(0.5,0)",
            "ilut(1,inf)",
            "bdic(0)",
            "bdilu(9)",
        ] {
            assert!(wrong.parse::<PrecondSpec>().is_err(), "{wrong}");
        }
    }
}
