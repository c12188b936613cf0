//! How much memory a solve with an incomplete factor will take, predicted from the pattern before anything is allocated.

use super::context::AROUND;
use crate::elimination::bytes_by_rows;
use crate::matrix::Pattern;
use crate::options::Method;
use crate::sliced::SlicedPattern;
use std::sync::Arc;

/// Bytes of what a solve with IC(0) or ILU(0) holds besides A, b and x. Plans of the sweeps, a few per cent of the factor, are
/// not predicted.
///
/// ```
/// use krylith::Method;
/// use krylith::gallery::Problem;
/// use krylith::setup::Memory;
/// let a = "poisson3d:50".parse::<Problem>()?.generate()?;
/// let memory = Memory::predict(a.pattern());
/// assert!(memory.factor + memory.copy < 2 * 12 * a.nnz() + 64 * a.nrows());
/// assert!(memory.vectors(Method::Cg) < memory.vectors(Method::BiCgStab));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Memory {
    /// In which order the rows will be taken, and why.
    pub layout: String,
    /// A reordered, with its pattern if it needs one; 0 if rows are taken as given.
    pub copy: usize,
    /// The factor.
    pub factor: usize,
    rows: usize,
    positions: Option<usize>,
}

impl Memory {
    /// Of A in a placement with so many places, and of its factor.
    pub fn placed(layout: String, rows: usize, places: usize, copy: usize, factor: usize) -> Self {
        Memory { layout, copy, factor, rows, positions: Some(places) }
    }

    /// Of A in the order of its rows, and of its factor.
    pub fn in_order(layout: String, rows: usize, copy: usize, factor: usize) -> Self {
        Memory { layout, copy, factor, rows, positions: None }
    }

    /// Of A, and of its factor with numbers of this many bytes off the diagonal.
    pub(crate) fn in_slices(
        of_a: &Arc<SlicedPattern>,
        of_factor: &Arc<SlicedPattern>,
        number: usize,
    ) -> Self {
        let own = if Arc::ptr_eq(of_a, of_factor) { 0 } else { of_factor.bytes_besides(of_a) };
        Memory {
            layout: format!("rows by wavefront in slices of eight: {}", of_factor.describe()),
            copy: of_a.bytes() + of_a.bytes_of_values(8) + of_a.bytes_of_uniform(),
            factor: own + of_factor.bytes_of_values(number),
            rows: of_a.rows(),
            positions: Some(of_a.positions()),
        }
    }

    /// Strict triangles by rows, an index of 4 bytes and a number of this many per entry, 8 per row each, and the diagonal. IC
    /// stores L and its transpose.
    pub(crate) fn by_rows(pattern: &Pattern, reason: &str, number: usize) -> Self {
        let n = pattern.nrows();
        let entries = pattern.nnz().saturating_sub(n);
        Memory {
            layout: format!("rows as given: {reason}"),
            copy: 0,
            factor: bytes_by_rows(n, entries as u64) as usize - (8 - number) * entries,
            rows: n,
            positions: None,
        }
    }

    /// What the method stores, copies of b and x and the recomputed residual; b and x reordered if rows are.
    pub fn vectors(&self, method: Method) -> usize {
        let (length, others) = match self.positions {
            Some(positions) => (positions, 16 * positions + AROUND as usize * self.rows),
            None => (self.rows, AROUND as usize * self.rows),
        };
        (method.workspace_bytes(length) as usize).saturating_add(others)
    }
}
