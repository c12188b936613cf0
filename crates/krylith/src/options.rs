//! What a solve can be asked for besides a preconditioner (`precond::registry`): method, layout, precision, matching.

use crate::names;
use crate::names::NameError;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt::{Display, Formatter};
use std::str::FromStr;

/// A way to store A and its factor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StorageKind {
    /// Without indices on a structured grid.
    Grid,
    /// In dense blocks.
    Blocks,
    /// By wavefront in slices of eight rows.
    Slices,
    /// By rows as given.
    Rows,
}

impl Display for StorageKind {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            StorageKind::Grid => "on the grid",
            StorageKind::Blocks => "in blocks",
            StorageKind::Slices => "in slices",
            StorageKind::Rows => "by rows",
        })
    }
}

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
    /// LSMR: least squares of any A, by products with A and Aᵀ.
    Lsmr,
}

impl Method {
    /// Vectors that its workspace stores.
    pub fn vectors(self) -> usize {
        match self {
            Method::Cg => 5,
            Method::Lsmr => 7,
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Layout {
    /// On a structured grid if the matrix has one, otherwise as `Slices`.
    #[default]
    Auto,
    /// No grid: in dense blocks where the matrix has them, else in slices of eight rows by wavefront where that is faster, else by rows.
    Slices,
    /// Row by row in the given order: no grid, no slices, and blocks only for a block preconditioner.
    Rows,
}

impl Layout {
    /// The same without grids.
    pub(crate) fn without_grid(self) -> Self {
        if self == Layout::Auto { Layout::Slices } else { self }
    }
}

/// In which numbers a solve computes. The answer is `f64` and certified in it, whichever is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Precision {
    /// `f64`, or factors in `f32` where the preconditioner was not asked for by name and that is predicted to be faster.
    #[default]
    Auto,
    /// `f64` throughout.
    F64,
    /// The triangles of incomplete factors are stored in `f32`: fewer bytes per iteration.
    Mixed,
    /// All of the iteration is in `f32`, refined in `f64` to the tolerance asked for. By rows, with an incomplete factor with levels of
    /// fill or the diagonal; other preconditioners are as with `Mixed`.
    F32,
}

impl Precision {
    /// What is taken for a preconditioner that was asked for by name.
    pub(crate) fn as_asked(self) -> Self {
        if self == Precision::Auto { Precision::F64 } else { self }
    }
}

/// Whether columns are permuted so that large entries come to the diagonal (a maximum-product matching with scaling).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
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

/// The restart of GMRES unless another is given.
const RESTART: usize = 30;

/// The names of methods.
const METHODS: [(&str, Method); 7] = [
    ("auto", Method::Auto),
    ("cg", Method::Cg),
    ("bicgstab", Method::BiCgStab),
    ("gmres", Method::Gmres(RESTART)),
    ("fgmres", Method::Fgmres(RESTART)),
    ("minres", Method::Minres),
    ("lsmr", Method::Lsmr),
];

impl FromStr for Method {
    type Err = NameError;

    fn from_str(name: &str) -> Result<Self, NameError> {
        let lower = name.trim().to_lowercase();
        let (head, restart) = match lower.strip_suffix(')').and_then(|rest| rest.split_once('(')) {
            Some((head, restart)) => (head, restart.trim().parse::<usize>().ok()),
            None => (lower.as_str(), None),
        };
        let found = METHODS.into_iter().find(|(known, _)| *known == head).map(|(_, method)| method);
        let found = match (found, restart) {
            (Some(Method::Gmres(_)), Some(restart)) => Some(Method::Gmres(restart)),
            (Some(Method::Fgmres(_)), Some(restart)) => Some(Method::Fgmres(restart)),
            (found, _) => found.filter(|_| head == lower),
        };
        found.ok_or_else(|| {
            let hint = names::hint(name, &METHODS.map(|(known, _)| known));
            NameError::Unknown { what: "solver", name: name.into(), hint }
        })
    }
}

/// With its restart, as plans keep it: `gmres(30)`.
impl Serialize for Method {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Method::Gmres(restart) | Method::Fgmres(restart) => {
                serializer.collect_str(&format_args!("{self}({restart})"))
            }
            _ => serializer.collect_str(self),
        }
    }
}

impl<'de> Deserialize<'de> for Method {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Cow::<'de, str>::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
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
            Method::Lsmr => "lsmr",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_are_read_back() {
        for (name, method) in METHODS {
            assert_eq!(method.to_string(), name);
            assert_eq!(name.to_uppercase().parse(), Ok(method));
        }
        assert_eq!("GMRES(50)".parse(), Ok(Method::Gmres(50)));
        for wrong in ["cg(3)", "gmres(", "gmres(x)", "gmres()"] {
            assert!(wrong.parse::<Method>().is_err(), "{wrong}");
        }
        let error = "bicgstb".parse::<Method>().unwrap_err().to_string();
        assert!(error.contains("did you mean `bicgstab`?"), "{error}");
    }
}
