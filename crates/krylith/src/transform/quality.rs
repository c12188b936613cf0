//! What an ordering does to a matrix: bandwidth, wavefronts, fill.

use super::elimination::column_counts;
use super::error::OrderingError;
use super::graph::{permuted, symmetrized};
use crate::error::MatrixError;
use crate::matrix::{Pattern, Permutation, Triangle};
use crate::schedule::Wavefronts;

/// Facts about P A Pᵀ. Costs about as much as an ordering; the fill is counted, not computed.
///
/// ```
/// use krylith::{gallery::Problem, transform::{Ordering, OrderingQuality, order}};
/// let a = "poisson2d:20".parse::<Problem>()?.generate()?;
/// let natural = OrderingQuality::new(a.pattern(), &order(a.pattern(), Ordering::Natural)?)?;
/// let amd = OrderingQuality::new(a.pattern(), &order(a.pattern(), Ordering::Amd)?)?;
/// assert_eq!((natural.bandwidth, natural.wavefronts), (20, 39));
/// assert!(amd.cholesky_entries < natural.cholesky_entries / 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OrderingQuality {
    /// Largest |i − j| of an entry of P A Pᵀ.
    pub bandwidth: usize,
    /// Wavefronts of the lower triangle of P A Pᵀ.
    pub wavefronts: usize,
    /// Rows a wavefront, on average.
    pub mean_wavefront: f64,
    /// Entries of the lower triangle of A + Aᵀ with a full diagonal, as IC(0) has them: the same for every ordering.
    pub lower_entries: u64,
    /// Entries of the exact Cholesky factor of a matrix with the pattern of P (A + Aᵀ) Pᵀ.
    pub cholesky_entries: u64,
}

impl OrderingQuality {
    /// The facts of one ordering of a square pattern.
    pub fn new(pattern: &Pattern, p: &Permutation) -> Result<Self, OrderingError> {
        pattern.require_square()?;
        let n = pattern.nrows();
        if p.len() != n {
            return Err(MatrixError::Length { what: "permutation", expected: n, found: p.len() }.into());
        }
        let pattern = permuted(pattern, p);
        let distance = |i: usize| {
            let (first, last) = (pattern.row(i).first(), pattern.row(i).last());
            let to = |j: Option<&u32>| j.map_or(0, |&j| (j as usize).abs_diff(i));
            to(first).max(to(last))
        };
        let bandwidth = (0..n).map(distance).max().unwrap_or(0);
        let wavefronts = Wavefronts::new(&pattern, Triangle::Lower)?;
        let graph = symmetrized(&pattern)?;
        Ok(OrderingQuality {
            bandwidth,
            wavefronts: wavefronts.count(),
            mean_wavefront: wavefronts.mean_size(),
            lower_entries: (n + graph.nnz() / 2) as u64,
            cholesky_entries: column_counts(&graph).iter().sum(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transform::graph::tests::from_entries;

    /// ```text
    /// x . x .      in the order 3 1 2 0:     x . . x
    /// . . . .                                . . . .
    /// . . x .                                . . x .
    /// x . . x                                . . x x
    /// ```
    #[test]
    fn by_hand() {
        let a = from_entries(4, &[(0, 0), (0, 2), (2, 2), (3, 0), (3, 3)]);
        let natural = OrderingQuality::new(&a, &Permutation::identity(4).unwrap()).unwrap();
        let expected = OrderingQuality {
            bandwidth: 3,
            wavefronts: 2,
            mean_wavefront: 2.0,
            lower_entries: 6,
            // Eliminating row 0 connects 2 and 3.
            cholesky_entries: 7,
        };
        assert_eq!(natural, expected);
        let p = Permutation::new(vec![3, 1, 2, 0]).unwrap();
        let reordered = OrderingQuality::new(&a, &p).unwrap();
        assert_eq!(reordered, OrderingQuality { bandwidth: 3, cholesky_entries: 6, ..expected });
        let short = Permutation::identity(3).unwrap();
        let error = MatrixError::Length { what: "permutation", expected: 4, found: 3 };
        assert_eq!(OrderingQuality::new(&a, &short), Err(error.into()));
    }

    #[test]
    fn of_nothing() {
        let nothing =
            OrderingQuality::new(&from_entries(0, &[]), &Permutation::identity(0).unwrap()).unwrap();
        assert_eq!((nothing.wavefronts, nothing.lower_entries, nothing.cholesky_entries), (0, 0, 0));
    }
}
