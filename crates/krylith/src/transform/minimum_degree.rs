//! Approximate minimum degree: little fill in a Cholesky factor. By the crate `amd`.
//!
//! Rows of more than 10 √n neighbours are put last. Cost: near linear on meshes; where many rows share neighbours of degree d,
//! each elimination walks their lists, O(n d), worst for d just below 10 √n. 8-byte indices, some 80 bytes per row and 20 an
//! entry while it runs.
//! Breakdown: in builds that check integer overflow, version 0.2.2 of the crate panics where fewer entries than rows are
//! given, so the diagonal is given too, and where a hash of row indices exceeds 32 bits, which is caught and reported as
//! [`OrderingError::Failed`]. A build without these checks, as a release is, meets neither.
//! Reference: Amestoy, Davis & Duff 1996, doi:10.1137/S0895479894278952.

use super::error::OrderingError;
use crate::matrix::Pattern;
use std::panic::catch_unwind;

/// The rows of a symmetric graph in their new order.
pub(super) fn approximate_minimum_degree(graph: &Pattern) -> Result<Vec<u32>, OrderingError> {
    let (n, entries) = (graph.nrows(), graph.nnz());
    let failed = |why| OrderingError::Failed { ordering: "amd", why };
    if n <= 1 {
        return Ok((0..n as u32).collect());
    }
    // The crate hashes modulo n in 32 bits.
    if n > u32::MAX as usize {
        return Err(OrderingError::TooLarge { ordering: "amd", rows: n, entries });
    }
    let mut starts = Vec::with_capacity(n + 1);
    let mut indices: Vec<usize> = Vec::with_capacity(entries + n);
    starts.push(0);
    for i in 0..n {
        let columns = graph.row(i);
        let (before, after) = columns.split_at(columns.partition_point(|&j| (j as usize) < i));
        indices.extend(before.iter().map(|&j| j as usize));
        indices.push(i);
        indices.extend(after.iter().map(|&j| j as usize));
        starts.push(indices.len());
    }
    let result = catch_unwind(|| amd::order(n, &starts, &indices, &amd::Control::default()));
    match result {
        Ok(Ok((order, _, _))) => Ok(order.into_iter().map(|i| i as u32).collect()),
        Ok(Err(_)) => Err(failed("the graph was refused")),
        Err(_) => Err(failed("an integer overflowed; a release build does not check for this")),
    }
}
