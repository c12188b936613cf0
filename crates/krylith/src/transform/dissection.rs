//! Nested dissection: little fill in a Cholesky factor, and an elimination tree that is short. By METIS (feature `metis`).
//!
//! A small set of rows whose removal leaves two parts of about equal size is put last; both parts are ordered likewise.
//! METIS finds these sets on successively coarser graphs. Cost: O(nnz log n) in practice; 32-bit indices, so up to
//! 2³¹ − 1 rows and entries of A + Aᵀ.
//!
//! METIS draws from the C library's `rand`, seeded anew for each call, which is why calls take turns: the result is then a
//! function of the graph and the C library. Foreign code that calls `rand` in the same moment can change it.
//! The interface is that of `metis-sys`, as the crate `metis` 0.2 has partitions but no orderings.
//! Reference: Karypis & Kumar 1998, doi:10.1137/S1064827595287997.

#[cfg(feature = "metis")]
pub(super) use with_metis::nested_dissection;

/// Says which feature to enable.
#[cfg(not(feature = "metis"))]
pub(super) fn nested_dissection(_: &crate::matrix::Pattern) -> Result<Vec<u32>, super::error::OrderingError> {
    Err(super::error::OrderingError::FeatureMissing { ordering: "nd", feature: "metis" })
}

#[cfg(feature = "metis")]
#[allow(unsafe_code)]
mod with_metis {
    use crate::matrix::Pattern;
    use crate::transform::error::OrderingError;
    use metis_sys::{
        METIS_NOPTIONS, METIS_NodeND, METIS_SetDefaultOptions, idx_t, moptions_et_METIS_OPTION_SEED,
        rstatus_et_METIS_ERROR_MEMORY, rstatus_et_METIS_OK,
    };
    use std::ptr::null_mut;
    use std::sync::{Mutex, PoisonError};

    const SEED: idx_t = 1;

    /// METIS's random numbers are the process's.
    static TURN: Mutex<()> = Mutex::new(());

    /// The rows of a symmetric graph in their new order.
    pub(in super::super) fn nested_dissection(graph: &Pattern) -> Result<Vec<u32>, OrderingError> {
        let (n, entries) = (graph.nrows(), graph.nnz());
        if n <= 1 || entries == 0 {
            return Ok((0..n).map(|i| i as u32).collect());
        }
        let too_large = || OrderingError::TooLarge { ordering: "nd", rows: n, entries };
        let mut rows = idx_t::try_from(n).map_err(|_| too_large())?;
        idx_t::try_from(entries).map_err(|_| too_large())?;
        let mut starts: Vec<idx_t> = graph.row_ptr().iter().map(|&p| p as idx_t).collect();
        let mut neighbours: Vec<idx_t> = graph.col_idx().iter().map(|&j| j as idx_t).collect();
        let mut options = [0 as idx_t; METIS_NOPTIONS as usize];
        let (mut order, mut position) = (vec![0 as idx_t; n], vec![0 as idx_t; n]);
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: METIS writes METIS_NOPTIONS options.
        unsafe { METIS_SetDefaultOptions(options.as_mut_ptr()) };
        options[moptions_et_METIS_OPTION_SEED as usize] = SEED;
        // SAFETY: a symmetric graph without loops by 32-bit compressed rows (sizes checked above), n + 1 starts, and two
        // arrays of n places for the result; no weights. METIS keeps none of the pointers.
        let status = unsafe {
            METIS_NodeND(
                &mut rows,
                starts.as_mut_ptr(),
                neighbours.as_mut_ptr(),
                null_mut(),
                options.as_mut_ptr(),
                order.as_mut_ptr(),
                position.as_mut_ptr(),
            )
        };
        drop(turn);
        let failed = |why| Err(OrderingError::Failed { ordering: "nd", why });
        match status {
            s if s == rstatus_et_METIS_OK => Ok(order.into_iter().map(|i| i as u32).collect()),
            s if s == rstatus_et_METIS_ERROR_MEMORY => failed("METIS lacks memory"),
            _ => failed("METIS gives no reason"),
        }
    }
}
