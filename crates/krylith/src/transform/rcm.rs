//! Reverse Cuthill–McKee: a small bandwidth.
//!
//! Each connected part of the graph is numbered breadth first, the neighbours of a row by increasing degree (ties by index),
//! then backwards. The first row is a pseudo-peripheral one: from the first row of the part, go to a row of least degree
//! among the farthest ones, as long as that makes the breadth-first tree deeper.
//!
//! Cost: O(n + nnz log d), d the largest degree, and some breadth-first searches a part. Stores 9 bytes per row.
//! Deviations: parts stay in the order of their first rows (each is reversed by itself); a part is searched at most
//! [`SEARCHES`] times for a better first row, so that no graph costs more than that.
//! References: George 1971 (reversal); George & Liu 1979, doi:10.1145/355841.355845 (the first row).

use crate::matrix::Pattern;

/// Breadth-first searches for the first row of a part, at most.
const SEARCHES: usize = 16;

/// The rows of a symmetric graph in their new order.
pub(super) fn reverse_cuthill_mckee(graph: &Pattern) -> Vec<u32> {
    let n = graph.nrows();
    let mut numbered = vec![false; n];
    let mut order: Vec<u32> = Vec::with_capacity(n);
    let mut search = Search { graph, seen: vec![false; n], queue: Vec::new() };
    for first in 0..n {
        if numbered[first] {
            continue;
        }
        let root = search.pseudo_peripheral(first as u32);
        let start = order.len();
        numbered[root as usize] = true;
        order.push(root);
        let mut next = start;
        while next < order.len() {
            let fresh = order.len();
            for &j in graph.row(order[next] as usize) {
                if !numbered[j as usize] {
                    numbered[j as usize] = true;
                    order.push(j);
                }
            }
            order[fresh..].sort_unstable_by_key(|&j| (degree(graph, j), j));
            next += 1;
        }
        order[start..].reverse();
    }
    order
}

fn degree(graph: &Pattern, i: u32) -> usize {
    graph.row_range(i as usize).len()
}

struct Search<'a> {
    graph: &'a Pattern,
    /// All false between searches.
    seen: Vec<bool>,
    queue: Vec<u32>,
}

impl Search<'_> {
    /// A row of the part of `first` whose breadth-first tree is deep.
    fn pseudo_peripheral(&mut self, first: u32) -> u32 {
        let (mut root, mut depth) = (first, 0);
        for _ in 0..SEARCHES {
            let (levels, last) = self.breadth_first(root);
            if levels <= depth {
                break;
            }
            depth = levels;
            let farthest = self.queue[last..].iter().copied();
            root = farthest.min_by_key(|&i| (degree(self.graph, i), i)).unwrap_or(root);
        }
        root
    }

    /// Number of levels, and where the last one starts in `queue`.
    fn breadth_first(&mut self, root: u32) -> (usize, usize) {
        self.queue.clear();
        self.queue.push(root);
        self.seen[root as usize] = true;
        let (mut levels, mut last, mut start) = (0, 0, 0);
        while start < self.queue.len() {
            let end = self.queue.len();
            (levels, last) = (levels + 1, start);
            for k in start..end {
                for &j in self.graph.row(self.queue[k] as usize) {
                    if !self.seen[j as usize] {
                        self.seen[j as usize] = true;
                        self.queue.push(j);
                    }
                }
            }
            start = end;
        }
        for &i in &self.queue {
            self.seen[i as usize] = false;
        }
        (levels, last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transform::graph::symmetrized;
    use crate::transform::graph::tests::from_entries;

    /// The path 2 – 0 – 3 – 1 and the edge 4 – 5: from row 0 the farthest is 1, from there 2, whose tree is no deeper;
    /// numbered from 2, then backwards.
    #[test]
    fn a_path_in_any_order_becomes_a_path_in_order() {
        let graph = symmetrized(&from_entries(6, &[(2, 0), (3, 0), (1, 3), (4, 5)])).unwrap();
        assert_eq!(reverse_cuthill_mckee(&graph), [1, 3, 0, 2, 4, 5]);
    }

    #[test]
    fn neighbours_come_by_degree() {
        // Row 0 is the centre of a star whose leaf 1 has a further neighbour, 4.
        let graph = symmetrized(&from_entries(5, &[(0, 1), (0, 2), (0, 3), (1, 4)])).unwrap();
        // From row 0 the farthest is 4 (3 levels), from there 2 (4 levels), whose tree is no deeper: the root is 2. After 0
        // comes 3 (degree 1), then 1 (degree 2).
        assert_eq!(reverse_cuthill_mckee(&graph), [4, 1, 3, 0, 2]);
    }
}
