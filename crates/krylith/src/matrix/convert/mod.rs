//! To and from the sparse matrices of other crates.
//!
//! Each direction is a `From` or `TryFrom`, so `.into()` and `.try_into()` do it. What another crate allows and Krylith does
//! not (unsorted rows, duplicates, more than 2³² columns) is repaired or refused as in [`Csr::from_unsorted`].
//!
//! [`Csr::from_unsorted`]: crate::Csr::from_unsorted

#[cfg(feature = "faer")]
mod faer;
#[cfg(feature = "nalgebra-sparse")]
mod nalgebra;
#[cfg(feature = "sprs")]
mod sprs;

#[cfg(any(feature = "faer", feature = "nalgebra-sparse", feature = "sprs"))]
mod indices {
    use crate::error::MatrixError;
    use crate::matrix::check_dimensions;

    /// Wide column indices as narrow ones; all are below `ncols`.
    pub(super) fn narrow<'a>(
        (nrows, ncols): (usize, usize),
        indices: impl IntoIterator<Item = &'a usize>,
    ) -> Result<Vec<u32>, MatrixError> {
        check_dimensions(nrows as u64, ncols as u64)?;
        Ok(indices.into_iter().map(|&j| j as u32).collect())
    }

    /// Narrow column indices as wide ones.
    #[cfg(any(feature = "faer", feature = "nalgebra-sparse"))]
    pub(super) fn widen(indices: &[u32]) -> Vec<usize> {
        indices.iter().map(|&j| j as usize).collect()
    }
}
