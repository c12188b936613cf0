//! Which columns are eliminated together, in which order, and how many numbers and operations that takes.
//!
//! Columns of a symmetric graph are ordered by approximate minimum degree and then by the postorder of the elimination tree.
//! Consecutive columns with the same rows below form a *supernode*; its dense *front* has those columns and rows. A supernode that
//! adds few zeros to its parent is merged with it, because dense operations on a few more zeros cost less than another small front.
//! All counts are exact, and known before anything is factored.
//!
//! References: Duff & Reid 1983, doi:10.1145/356044.356047, fronts along a tree; Ashcraft & Grimes 1989, doi:10.1145/76909.76910,
//! merging. The limits of merging are those that CHOLMOD uses (Chen, Davis, Hager & Rajamanickam 2008, doi:10.1145/1391989.1391995).

use super::DirectKind;
use crate::error::SetupError;
use crate::matrix::{Pattern, Permutation};
use crate::transform::elimination::{NONE, column_counts, elimination_tree, postorder};
use crate::transform::graph::{permuted, symmetrized};
use crate::transform::{Ordering, OrderingError, order};

/// No parent.
pub(super) const ROOT: u32 = u32::MAX;

/// The supernodes of a symmetric graph.
#[derive(Debug)]
pub(super) struct Supernodes {
    /// Row and column `order.old()[k]` of the matrix are eliminated at place k.
    pub(super) order: Permutation,
    /// The first column of each, and the number of columns at the end.
    pub(super) first: Vec<usize>,
    /// Where the rows of each begin in `rows`.
    row_ptr: Vec<usize>,
    /// Rows below its own columns, increasing.
    rows: Vec<u32>,
    /// The place of each of `rows` in the front of the parent.
    places: Vec<u32>,
    /// Where it is added to; [`ROOT`] if nowhere.
    pub(super) parent: Vec<u32>,
}

/// What a factorization takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cost {
    /// Numbers of the factor.
    pub entries: u64,
    /// Additions and multiplications.
    pub flops: f64,
    /// Numbers of Schur complements that wait at the same time.
    pub stack: u64,
    /// Numbers of L D of the largest front, for LDLᵀ.
    pub products: u64,
    /// Bytes of indices and scales.
    pub indices: u64,
}

/// The columns and rows of one supernode.
#[derive(Debug, Clone, Copy)]
pub(super) struct Front<'a> {
    /// Its first column.
    pub(super) first: usize,
    /// Its columns.
    pub(super) columns: usize,
    /// Its rows below.
    pub(super) rows: &'a [u32],
    /// Where these are in the front of the parent.
    pub(super) places: &'a [u32],
}

impl Front<'_> {
    /// Columns and rows below.
    pub(super) fn size(&self) -> usize {
        self.columns + self.rows.len()
    }
}

impl Supernodes {
    /// Of a square pattern. Rows that are `partner`s of each other are eliminated together; none are if it is empty.
    pub(super) fn find(pattern: &Pattern, partner: &[u32]) -> Result<Self, SetupError> {
        let mut graph = symmetrized(pattern)?;
        let by_degree = match partner {
            [] => by_degree(&graph)?,
            _ => {
                let groups = Groups::new(partner);
                let between = groups.graph(&graph);
                graph = groups.expanded(&between);
                groups.order(&by_degree(&between)?)?
            }
        };
        let tree = elimination_tree(&permuted(&graph, &by_degree));
        let old = postorder(&tree).into_iter().map(|k| by_degree.old()[k]).collect();
        let order = Permutation::new(old)?;
        let graph = permuted(&graph, &order);
        let parent = elimination_tree(&graph);
        let first = merged(&parent, &column_counts(&graph));
        let mut found = Supernodes {
            order,
            row_ptr: Vec::with_capacity(first.len()),
            parent: Vec::with_capacity(first.len()),
            rows: Vec::new(),
            places: Vec::new(),
            first,
        };
        found.find_rows(&graph);
        Ok(found)
    }

    pub(super) fn len(&self) -> usize {
        self.first.len() - 1
    }

    pub(super) fn front(&self, s: usize) -> Front<'_> {
        let rows = self.row_ptr[s]..self.row_ptr[s + 1];
        Front {
            first: self.first[s],
            columns: self.first[s + 1] - self.first[s],
            rows: &self.rows[rows.clone()],
            places: &self.places[rows],
        }
    }

    /// The supernode of each column.
    pub(super) fn of_columns(&self) -> Vec<u32> {
        let mut of = Vec::with_capacity(self.order.len());
        for s in 0..self.len() {
            of.resize(self.first[s + 1], s as u32);
        }
        of
    }

    /// The rows of each supernode: those of the graph, and those of the supernodes that are added to it. Then where the rows of each
    /// are in the front of its parent.
    fn find_rows(&mut self, graph: &Pattern) {
        let of = self.of_columns();
        let mut seen = vec![u32::MAX; graph.nrows()];
        // The supernodes added to each, as linked lists.
        let (mut head, mut next) = (vec![ROOT; self.len()], vec![ROOT; self.len()]);
        self.row_ptr.push(0);
        for s in 0..self.len() {
            let (begin, end) = (self.rows.len(), self.first[s + 1] as u32);
            let mut add = |i: u32, rows: &mut Vec<u32>| {
                if i >= end && seen[i as usize] != s as u32 {
                    seen[i as usize] = s as u32;
                    rows.push(i);
                }
            };
            for j in self.first[s]..self.first[s + 1] {
                graph.row(j).iter().for_each(|&i| add(i, &mut self.rows));
            }
            let mut child = head[s];
            while child != ROOT {
                for k in self.row_ptr[child as usize]..self.row_ptr[child as usize + 1] {
                    add(self.rows[k], &mut self.rows);
                }
                child = next[child as usize];
            }
            self.rows[begin..].sort_unstable();
            self.row_ptr.push(self.rows.len());
            let parent = self.rows.get(begin).map_or(ROOT, |&i| of[i as usize]);
            self.parent.push(parent);
            if parent != ROOT {
                next[s] = std::mem::replace(&mut head[parent as usize], s as u32);
            }
        }
        self.places = vec![0; self.rows.len()];
        for s in 0..self.len() {
            let Some(&parent) = self.parent.get(s).filter(|&&p| p != ROOT) else { continue };
            let above = self.front(parent as usize);
            let (first, columns, end) = (above.first, above.columns, above.first + above.columns);
            let (below, mut k) = (self.row_ptr[parent as usize]..self.row_ptr[parent as usize + 1], 0);
            for at in self.row_ptr[s]..self.row_ptr[s + 1] {
                let i = self.rows[at] as usize;
                self.places[at] = match i < end {
                    true => (i - first) as u32,
                    false => {
                        k += self.rows[below.start + k..below.end].partition_point(|&row| (row as usize) < i);
                        (columns + k) as u32
                    }
                };
            }
        }
    }

    /// What elimination takes; without indices.
    pub(super) fn cost(&self, kind: DirectKind) -> Cost {
        let symmetric = kind.is_symmetric();
        let (mut entries, mut flops, mut stack, mut most, mut products) = (0u64, 0.0, 0u64, 0u64, 0u64);
        let mut waiting = vec![0u64; self.len()];
        for s in 0..self.len() {
            let front = self.front(s);
            let (c, r) = (front.columns as u64, front.rows.len() as u64);
            // Counts of a matrix too large for any memory stay at the largest number.
            let right = if symmetric { 0 } else { c.saturating_mul(r) };
            entries = entries.saturating_add(c.saturating_mul(c + r)).saturating_add(right);
            let (x, y) = (c as f64, r as f64);
            let both = 2.0 / 3.0 * x * x * x + 2.0 * x * x * y + 2.0 * x * y * y;
            flops += if symmetric { both / 2.0 } else { both };
            // The second column of a pivot may be one that is not taken.
            products = products.max((c + r).saturating_mul(c + 1));
            // Its own complement is made while those of its children are still there.
            let own = r.saturating_mul(r);
            most = most.max(stack.saturating_add(own));
            stack = stack.saturating_add(own).saturating_sub(waiting[s]);
            if self.parent[s] != ROOT {
                let waiting = &mut waiting[self.parent[s] as usize];
                *waiting = waiting.saturating_add(own);
            }
        }
        let products = if kind == DirectKind::Ldlt { products } else { 0 };
        Cost { entries, flops, stack: most, products, indices: 0 }
    }

    pub(super) fn bytes(&self) -> usize {
        8 * self.order.len()
            + 8 * (self.first.len() + self.row_ptr.len())
            + 4 * (self.rows.len() + self.places.len() + self.parent.len())
    }
}

/// An order for little fill.
fn by_degree(graph: &Pattern) -> Result<Permutation, SetupError> {
    order(graph, Ordering::Amd).map_err(|error| match error {
        OrderingError::Matrix(error) => SetupError::from(error),
        other => crate::error::BackendError::Failed { what: other.to_string() }.into(),
    })
}

/// Rows that are eliminated together, as one vertex of a smaller graph.
struct Groups {
    /// The group of each row.
    of: Vec<u32>,
    /// The first row of each group and the last.
    members: Vec<[u32; 2]>,
}

impl Groups {
    fn new(partner: &[u32]) -> Self {
        let (mut of, mut members) = (vec![0; partner.len()], Vec::new());
        for (i, &other) in partner.iter().enumerate().filter(|(i, other)| *i <= **other as usize) {
            (of[i], of[other as usize]) = (members.len() as u32, members.len() as u32);
            members.push([i as u32, other]);
        }
        Groups { of, members }
    }

    fn rows(&self, group: usize) -> &[u32] {
        let [first, last] = &self.members[group];
        if first == last { std::slice::from_ref(first) } else { &self.members[group] }
    }

    /// Groups are neighbours where rows of them are.
    fn graph(&self, graph: &Pattern) -> Pattern {
        let neighbours = |group: usize| {
            let of = |i: &u32| graph.row(*i as usize).iter().map(|&j| self.of[j as usize]);
            self.rows(group).iter().flat_map(of).filter(move |&other| other as usize != group)
        };
        by_rows(self.members.len(), neighbours)
    }

    /// The graph of rows in which all rows of neighbouring groups are neighbours.
    fn expanded(&self, between: &Pattern) -> Pattern {
        let neighbours = |i: usize| {
            let own = self.of[i] as usize;
            let groups = between.row(own).iter().map(|&group| group as usize).chain([own]);
            groups.flat_map(|group| self.rows(group)).copied().filter(move |&j| j as usize != i)
        };
        by_rows(self.of.len(), neighbours)
    }

    /// The order of rows of an order of groups.
    fn order(&self, groups: &Permutation) -> Result<Permutation, SetupError> {
        let rows = groups.old().iter().flat_map(|&group| self.rows(group as usize));
        Ok(Permutation::new(rows.copied().collect())?)
    }
}

/// The pattern of n rows with these columns.
fn by_rows<I: Iterator<Item = u32>>(n: usize, columns: impl Fn(usize) -> I) -> Pattern {
    let (mut row_ptr, mut col_idx) = (vec![0], Vec::new());
    let mut row = Vec::new();
    for i in 0..n {
        row.clear();
        row.extend(columns(i));
        row.sort_unstable();
        row.dedup();
        col_idx.extend_from_slice(&row);
        row_ptr.push(col_idx.len());
    }
    Pattern::trusted(n, n, row_ptr, col_idx)
}

/// A group of consecutive columns while supernodes are merged.
struct Group {
    first: usize,
    end: usize,
    /// Numbers in its columns.
    height: u64,
    /// Zeros among the numbers of its columns.
    zeros: f64,
}

/// The first column of each supernode, and the number of columns at the end, from the elimination tree in postorder and the numbers
/// of entries of columns.
fn merged(parent: &[usize], counts: &[u64]) -> Vec<usize> {
    let n = parent.len();
    let mut groups: Vec<Group> = Vec::new();
    let mut j = 0;
    while j < n {
        let first = j;
        while j + 1 < n && parent[j] == j + 1 && counts[j] == counts[j + 1] + 1 {
            j += 1;
        }
        j += 1;
        groups.push(Group { first, end: j, height: counts[first], zeros: 0.0 });
        while let [.., child, above] = groups.as_slice()
            && parent[child.end - 1] != NONE
            && parent[child.end - 1] < above.end
        {
            let (own, others) = ((child.end - child.first) as u64, (above.end - above.first) as u64);
            let columns = own + others;
            let zeros = child.zeros + above.zeros + own as f64 * (own + above.height - child.height) as f64;
            let all = columns as f64 * (own + above.height) as f64;
            let limit = match columns {
                0..=4 => 1.0,
                5..=16 => 0.4,
                17..=48 => 0.1,
                _ => 0.05,
            };
            if zeros > limit * all {
                break;
            }
            let group = Group { first: child.first, end: above.end, height: own + above.height, zeros };
            groups.truncate(groups.len() - 2);
            groups.push(group);
        }
    }
    groups.iter().map(|group| group.first).chain([n]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gallery::Problem;
    use crate::transform::graph::tests::{from_entries, patterns};
    use proptest::prelude::*;

    /// A path: eliminated from an end, every column has one row below; the last two columns are one supernode, and merging goes on.
    #[test]
    fn a_path_by_hand() {
        assert_eq!(merged(&[1, 2, 3, NONE], &[2, 2, 2, 1]), [0, 4]);
        let found = Supernodes::find(&from_entries(2, &[(0, 1)]), &[]).unwrap();
        assert_eq!((found.len(), found.front(0).size()), (1, 2));
        let cost = found.cost(DirectKind::Lu);
        assert_eq!((cost.entries, cost.stack), (4, 0));
    }

    #[test]
    fn merging_costs_little() {
        let a = "poisson2d:40".parse::<Problem>().unwrap().generate().unwrap();
        let found = Supernodes::find(a.pattern(), &[]).unwrap();
        let p = &found.order;
        let exact: u64 = column_counts(&permuted(&symmetrized(a.pattern()).unwrap(), p)).iter().sum();
        // A front stores the square of its own columns.
        assert!(
            found.cost(DirectKind::Cholesky).entries < 2 * exact,
            "{} {exact}",
            found.cost(DirectKind::Cholesky).entries
        );
        assert!(found.len() < a.nrows() / 3);
    }

    proptest! {
        #[test]
        fn fronts_hold_what_is_added_to_them(a in patterns(30), pairs: bool) {
            let n = a.nrows() as u32;
            let partner: Vec<u32> = (0..n).map(|i| if (i ^ 1) < n { i ^ 1 } else { i }).collect();
            let found = Supernodes::find(&a, if pairs { &partner } else { &[] }).unwrap();
            if pairs {
                let (of, place) = (found.of_columns(), found.order.new_positions());
                for (i, &other) in partner.iter().enumerate() {
                    let (own, other) = (place[i] as usize, place[other as usize] as usize);
                    prop_assert!(own.abs_diff(other) <= 1 && of[own] == of[other]);
                }
            }
            prop_assert_eq!(found.of_columns().len(), a.nrows());
            for s in 0..found.len() {
                let front = found.front(s);
                prop_assert!(front.rows.is_sorted_by(|a, b| a < b));
                if found.parent[s] == ROOT {
                    prop_assert!(front.rows.is_empty());
                    continue;
                }
                let above = found.front(found.parent[s] as usize);
                for (&i, &place) in front.rows.iter().zip(front.places) {
                    let place = place as usize;
                    let there = if place < above.columns { above.first + place } else { above.rows[place - above.columns] as usize };
                    prop_assert_eq!(there, i as usize);
                }
            }
        }
    }
}
