//! How much memory a solve with an incomplete factor will take, told from the pattern before anything is allocated.

use super::choice::Method;
use crate::matrix::Pattern;
use crate::sliced::SlicedPattern;
use std::sync::Arc;

/// Bytes of what a solve with IC(0) or ILU(0) holds besides A, b and x. Plans of the sweeps, a few per cent of the factor, are
/// not foreseen.
///
/// ```
/// use krylith::{gallery::Problem, solver::{Memory, Method}};
/// let a = "poisson3d:50".parse::<Problem>()?.generate()?;
/// let memory = Memory::foresee(a.pattern());
/// assert!(memory.factor + memory.copy < 2 * 12 * a.nnz() + 64 * a.nrows());
/// assert!(memory.vectors(Method::Cg) < memory.vectors(Method::BiCgStab));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Memory {
    /// In which order the rows will be taken, and why.
    pub layout: String,
    /// A reordered, with its pattern; 0 if rows are taken as given.
    pub copy: usize,
    /// The factor.
    pub factor: usize,
    rows: usize,
    positions: Option<usize>,
}

impl Memory {
    /// What the pattern of a square matrix tells; of one without a full diagonal, what it would take by rows.
    pub fn foresee(pattern: &Arc<Pattern>) -> Self {
        match SlicedPattern::find(pattern) {
            Ok(sliced) => Self::in_slices(&sliced),
            Err(why) => Self::by_rows(pattern, &why.to_string()),
        }
    }

    pub(super) fn in_slices(pattern: &SlicedPattern) -> Self {
        Memory {
            layout: format!("rows by wavefront in slices of eight: {}", pattern.describe()),
            copy: pattern.bytes() + pattern.bytes_of_values() + pattern.bytes_of_uniform(),
            factor: pattern.bytes_of_values(),
            rows: pattern.rows(),
            positions: Some(pattern.positions()),
        }
    }

    /// Strict triangles by rows, 12 bytes an entry and 8 a row each, and the diagonal. IC(0) stores L and its transpose.
    pub(super) fn by_rows(pattern: &Pattern, why: &str) -> Self {
        let n = pattern.nrows();
        Memory {
            layout: format!("rows as given: {why}"),
            copy: 0,
            factor: 12 * pattern.nnz().saturating_sub(n) + 16 * (n + 1) + 8 * n,
            rows: n,
            positions: None,
        }
    }

    /// What the method stores, a copy of b and the recomputed residual; b and x reordered if rows are, a vector between the
    /// sweeps if not.
    pub fn vectors(&self, method: Method) -> usize {
        match self.positions {
            Some(positions) => 8 * positions * (method.vectors() + 2) + 16 * self.rows,
            None => 8 * self.rows * (method.vectors() + 3),
        }
    }
}
