//! Greedy multicolouring: rows of one colour are not neighbours, so a triangular solve has as many wavefronts as colours.
//!
//! Row after row in natural order takes the smallest colour that no neighbour has (first fit); the new order is by colour,
//! within a colour as given. At most d + 1 colours, d the largest degree.
//!
//! Cost: O(n + nnz), 4 bytes per row. Sequential, so it is the same on any number of threads; fewer wavefronts usually mean
//! more iterations of an incomplete factor. Reference: Coleman & Moré 1983, doi:10.1137/0720013.

use crate::matrix::Pattern;

/// The rows of a symmetric graph in their new order.
pub(super) fn multicolouring(graph: &Pattern) -> Vec<u32> {
    let (colour, count) = first_fit(graph);
    let mut next = vec![0usize; count + 1];
    for &c in &colour {
        next[c as usize + 1] += 1;
    }
    for c in 0..count {
        next[c + 1] += next[c];
    }
    let mut order = vec![0u32; colour.len()];
    for (i, &c) in colour.iter().enumerate() {
        order[next[c as usize]] = i as u32;
        next[c as usize] += 1;
    }
    order
}

/// The colour of each row, from 0, and the number of colours.
fn first_fit(graph: &Pattern) -> (Vec<u32>, usize) {
    let n = graph.nrows();
    let mut colour = vec![0u32; n];
    // For each colour, 1 + the last row that saw it on a neighbour.
    let mut taken: Vec<usize> = Vec::new();
    for i in 0..n {
        for &j in graph.row(i).iter().take_while(|&&j| (j as usize) < i) {
            taken[colour[j as usize] as usize] = i + 1;
        }
        let free = taken.iter().position(|&row| row != i + 1).unwrap_or(taken.len());
        if free == taken.len() {
            taken.push(0);
        }
        colour[i] = free as u32;
    }
    (colour, taken.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transform::graph::symmetrized;
    use crate::transform::graph::tests::{from_entries, patterns};
    use proptest::prelude::*;

    /// Triangle 0 1 2, and 3 beside 2: colours 0 1 2 0.
    #[test]
    fn by_hand() {
        let graph = symmetrized(&from_entries(4, &[(0, 1), (1, 2), (2, 0), (3, 2)])).unwrap();
        assert_eq!(first_fit(&graph), (vec![0, 1, 2, 0], 3));
        assert_eq!(multicolouring(&graph), [0, 3, 1, 2]);
    }

    proptest! {
        #[test]
        fn is_proper_and_first_fit(a in patterns(30)) {
            let graph = symmetrized(&a).unwrap();
            let (colour, count) = first_fit(&graph);
            let largest = (0..a.nrows()).map(|i| graph.row(i).len()).max();
            prop_assert!(count <= largest.map_or(0, |d| d + 1));
            for i in 0..a.nrows() {
                let before: Vec<u32> =
                    graph.row(i).iter().filter(|&&j| (j as usize) < i).map(|&j| colour[j as usize]).collect();
                prop_assert!(graph.row(i).iter().all(|&j| colour[j as usize] != colour[i]));
                prop_assert!((0..colour[i]).all(|c| before.contains(&c)), "a smaller colour was free");
            }
        }
    }
}
