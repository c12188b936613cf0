//! The graph of a square matrix: the pattern of A + Aᵀ without its diagonal.

use crate::error::MatrixError;
use crate::matrix::{Pattern, Permutation};

/// Row i lists the neighbours of i, increasing. A merge of the rows of A and Aᵀ: O(n + nnz), sequential.
pub(crate) fn symmetrized(pattern: &Pattern) -> Result<Pattern, MatrixError> {
    pattern.require_square()?;
    let n = pattern.nrows();
    let transposed = pattern.transpose();
    let mut row_ptr = Vec::with_capacity(n + 1);
    row_ptr.push(0);
    let mut col_idx = Vec::with_capacity(pattern.nnz());
    for i in 0..n {
        merge(pattern.row(i), transposed.row(i), |j| {
            if j as usize != i {
                col_idx.push(j);
            }
        });
        row_ptr.push(col_idx.len());
    }
    Ok(Pattern::trusted(n, n, row_ptr, col_idx))
}

/// Visits the union of two increasing lists in order.
fn merge(mut a: &[u32], mut b: &[u32], mut visit: impl FnMut(u32)) {
    while let (Some(&x), Some(&y)) = (a.first(), b.first()) {
        visit(x.min(y));
        a = &a[usize::from(x <= y)..];
        b = &b[usize::from(y <= x)..];
    }
    a.iter().chain(b).for_each(|&j| visit(j));
}

/// The pattern of P A Pᵀ. Needs as many indices in `p` as the square pattern has rows.
pub(crate) fn permuted(pattern: &Pattern, p: &Permutation) -> Pattern {
    let n = pattern.nrows();
    let mut row_ptr = Vec::with_capacity(n + 1);
    row_ptr.push(0);
    let mut col_idx: Vec<u32> = Vec::with_capacity(pattern.nnz());
    for &old in p.old() {
        let start = col_idx.len();
        col_idx.extend(pattern.row(old as usize).iter().map(|&j| p.new_positions()[j as usize]));
        col_idx[start..].sort_unstable();
        row_ptr.push(col_idx.len());
    }
    Pattern::trusted(n, n, row_ptr, col_idx)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Square patterns of up to `most` rows, from empty to dense, with and without diagonal, in one part or many.
    pub(crate) fn patterns(most: usize) -> impl Strategy<Value = Pattern> {
        (0..=most).prop_flat_map(|n| {
            let last = (n as u32).max(1);
            let entries = if n == 0 { 0..=0 } else { 0..=4 * n };
            prop::collection::vec((0..last, 0..last), entries)
                .prop_map(move |entries| from_entries(n, &entries))
        })
    }

    pub(crate) fn from_entries(n: usize, entries: &[(u32, u32)]) -> Pattern {
        let mut rows = vec![Vec::new(); n];
        for &(i, j) in entries {
            rows[i as usize].push(j);
        }
        let (mut row_ptr, mut col_idx) = (vec![0], Vec::new());
        for mut row in rows {
            row.sort_unstable();
            row.dedup();
            col_idx.extend(row);
            row_ptr.push(col_idx.len());
        }
        Pattern::new(n, n, row_ptr, col_idx).unwrap()
    }

    /// ```text
    /// x x . .      neighbours: 0: 1 3
    /// . . . .                  1: 0 2
    /// . x x .                  2: 1
    /// x . . .                  3: 0
    /// ```
    #[test]
    fn by_hand() {
        let a = from_entries(4, &[(0, 0), (0, 1), (2, 1), (2, 2), (3, 0)]);
        let graph = symmetrized(&a).unwrap();
        assert_eq!(graph.row_ptr(), [0, 2, 4, 5, 6]);
        assert_eq!(graph.col_idx(), [1, 3, 0, 2, 1, 0]);
        let p = Permutation::new(vec![3, 1, 0, 2]).unwrap();
        let b = permuted(&a, &p);
        assert_eq!((b.row(0), b.row(1), b.row(2), b.row(3)), (&[2][..], &[][..], &[1, 2][..], &[1, 3][..]));
    }

    #[test]
    fn a_rectangle_has_no_graph() {
        let p = Pattern::new(1, 2, vec![0, 0], vec![]).unwrap();
        assert_eq!(symmetrized(&p), Err(MatrixError::NotSquare { nrows: 1, ncols: 2 }));
    }

    proptest! {
        #[test]
        fn holds_both_triangles_and_no_diagonal(a in patterns(20)) {
            let graph = symmetrized(&a).unwrap();
            for i in 0..a.nrows() {
                for j in 0..a.nrows() {
                    let expected = i != j && (a.find(i, j).is_some() || a.find(j, i).is_some());
                    prop_assert_eq!(graph.find(i, j).is_some(), expected);
                }
            }
        }
    }
}
