//! Methods and preconditioners by name: the one list that the command and other languages share.

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
            Method::Cg => 4,
            Method::Auto | Method::BiCgStab | Method::Minres => 7,
            Method::Gmres(restart) => restart + 2,
            Method::Fgmres(restart) => 2 * restart + 1,
        }
    }
}

/// In which order a solve takes the rows of the matrix. Any order gives the same answer up to rounding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Layout {
    /// By wavefront in slices of eight where an incomplete factor gains from it, as given otherwise.
    #[default]
    Auto,
    /// As given.
    Rows,
}

/// A preconditioner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Preconditioning {
    /// Chosen from the matrix.
    Auto,
    /// None.
    None,
    /// The diagonal.
    Jacobi,
    /// Incomplete Cholesky without fill.
    Ic0,
    /// Incomplete LU without fill.
    Ilu0,
}

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

impl FromStr for Preconditioning {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        match name {
            "auto" => Ok(Preconditioning::Auto),
            "none" => Ok(Preconditioning::None),
            "jacobi" => Ok(Preconditioning::Jacobi),
            "ic0" | "ic(0)" => Ok(Preconditioning::Ic0),
            "ilu0" | "ilu(0)" => Ok(Preconditioning::Ilu0),
            _ => {
                let known = "auto, none, jacobi, ic0, ilu0";
                Err(UnknownName { what: "preconditioner", name: name.into(), known })
            }
        }
    }
}

impl Display for Preconditioning {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Preconditioning::Auto => "auto",
            Preconditioning::None => "none",
            Preconditioning::Jacobi => "jacobi",
            Preconditioning::Ic0 => "ic0",
            Preconditioning::Ilu0 => "ilu0",
        })
    }
}
