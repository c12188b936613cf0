//! The structural rank of a matrix: how many entries can be chosen, no two of them in one row or column.
//!
//! Rows with an entry on the diagonal are matched with it, the others with columns one by one. A row takes a column that is free, if it has one, and otherwise looks for a chain of rows
//! that can pass on their columns, depth first, with each row remembering which of its columns were tried for a free one. Zeros count as no
//! entries. Rows of a search that failed are not visited again. Cost: O(n nnz) at worst, near O(nnz) on matrices of applications. Reference: Duff 1981, doi:10.1145/355958.355963.

use crate::matrix::Csr;

const FREE: u32 = u32::MAX;

/// The structural rank of a matrix, entries that are zero left out.
pub(crate) fn structural_rank(a: &Csr<f64>) -> usize {
    let mut search = Search::new(a);
    (0..a.nrows() as u32).filter(|&i| search.has_column(i) || search.augment(i)).count()
}

/// A column for each row of a square matrix, no two of them the same: as many entries that are not zero as possible, and the columns
/// that are left, in order, for the rows that are left.
pub(crate) fn complete_matching(a: &Csr<f64>) -> Vec<u32> {
    let mut search = Search::new(a);
    let mut column_of = vec![FREE; a.nrows()];
    for i in 0..a.nrows() as u32 {
        let _ = search.has_column(i) || search.augment(i);
    }
    let mut left = Vec::new();
    for (j, &row) in search.row_of.iter().enumerate() {
        match row {
            FREE => left.push(j as u32),
            row => column_of[row as usize] = j as u32,
        }
    }
    let rows = column_of.iter_mut().filter(|column| **column == FREE);
    rows.zip(left).for_each(|(column, j)| *column = j);
    column_of
}

struct Search<'a> {
    a: &'a Csr<f64>,
    /// The row that has each column.
    row_of: Vec<u32>,
    /// Entries of each row before this one have columns that are taken, and stay taken.
    tried_free: Vec<usize>,
    /// Rows of this search, and of those that failed: they reach no free column, now or later.
    seen: Vec<bool>,
    /// Rows of this search.
    visited: Vec<u32>,
    /// Rows on the way, and the entry of each that is looked at next.
    stack: Vec<(u32, usize)>,
}

impl<'a> Search<'a> {
    fn new(a: &'a Csr<f64>) -> Self {
        let n = a.nrows();
        // Rows with an entry on the diagonal begin with it: few are left to be matched.
        let on_diagonal = |j: usize| if j < n && a.get(j, j) != 0.0 { j as u32 } else { FREE };
        Search {
            a,
            row_of: (0..a.ncols()).map(on_diagonal).collect(),
            tried_free: a.pattern().row_ptr()[..n].to_vec(),
            seen: vec![false; n],
            visited: Vec::new(),
            stack: Vec::new(),
        }
    }

    /// Whether a row began with a column.
    fn has_column(&self, row: u32) -> bool {
        let i = row as usize;
        i < self.a.ncols() && self.a.get(i, i) != 0.0
    }

    /// Finds a column for one more row.
    fn augment(&mut self, row: u32) -> bool {
        let (pattern, values) = (self.a.pattern(), self.a.values());
        self.stack.clear();
        self.stack.push((row, pattern.row_ptr()[row as usize]));
        self.visited.clear();
        self.visit(row);
        while let Some(&(i, next)) = self.stack.last() {
            let end = pattern.row_range(i as usize).end;
            if let Some(e) = self.free_entry(i as usize, end) {
                self.take(e);
                self.visited.iter().for_each(|&i| self.seen[i as usize] = false);
                return true;
            }
            // The next row of the chain: one that has a column of this row and was not visited.
            let chain = (next..end).find(|&e| {
                let owner = self.row_of[pattern.col_idx()[e] as usize];
                values[e] != 0.0 && owner != FREE && !self.seen[owner as usize]
            });
            match chain {
                Some(e) => {
                    let owner = self.row_of[pattern.col_idx()[e] as usize];
                    self.stack.last_mut().expect("it was just looked at").1 = e + 1;
                    self.visit(owner);
                    self.stack.push((owner, pattern.row_ptr()[owner as usize]));
                }
                None => {
                    self.stack.pop();
                }
            }
        }
        false
    }

    fn visit(&mut self, row: u32) {
        self.seen[row as usize] = true;
        self.visited.push(row);
    }

    /// An entry of the row whose column nobody has.
    fn free_entry(&mut self, i: usize, end: usize) -> Option<usize> {
        while self.tried_free[i] < end {
            let e = self.tried_free[i];
            self.tried_free[i] += 1;
            if self.a.values()[e] != 0.0 && self.row_of[self.a.pattern().col_idx()[e] as usize] == FREE {
                return Some(e);
            }
        }
        None
    }

    /// The last row of the chain takes the free column, and every row before it the column through which the next was reached.
    fn take(&mut self, free: usize) {
        let columns = self.a.pattern().col_idx();
        let mut column = columns[free];
        while let Some((i, _)) = self.stack.pop() {
            self.row_of[column as usize] = i;
            if let Some(&(_, next)) = self.stack.last() {
                column = columns[next - 1];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transform::{Matching, MatchingError};
    use proptest::prelude::*;

    fn matrix(n: usize, entries: &[(usize, usize)]) -> Csr<f64> {
        Csr::from_entries(n, n, entries.iter().map(|&(i, j)| (i % n, j % n, 1.0))).unwrap()
    }

    /// Row 2 needs column 0, which row 0 gives up for column 1, which row 1 gives up for column 2.
    #[test]
    fn a_chain_of_three() {
        assert_eq!(structural_rank(&matrix(3, &[(0, 0), (0, 1), (1, 1), (1, 2), (2, 0)])), 3);
        assert_eq!(structural_rank(&matrix(3, &[(0, 0), (1, 0), (2, 0), (2, 1)])), 2);
        let zero = Csr::from_entries(1, 1, [(0, 0, 0.0)]).unwrap();
        assert_eq!(structural_rank(&zero), 0);
    }

    proptest! {
        #[test]
        fn agrees_with_the_matching(n in 1usize..30, entries in prop::collection::vec((0usize..30, 0usize..30), 0..80)) {
            let a = matrix(n, &entries);
            let expected = match Matching::find(a.view()) {
                Ok(_) => n,
                Err(MatchingError::StructurallySingular { rank, .. }) => rank,
                Err(other) => panic!("{other}"),
            };
            prop_assert_eq!(structural_rank(&a), expected);
            let columns = complete_matching(&a);
            let entries = columns.iter().enumerate().filter(|(i, j)| a.get(*i, **j as usize) != 0.0);
            prop_assert_eq!(entries.count(), expected);
            prop_assert!(crate::matrix::Permutation::new(columns).is_ok());
        }
    }
}
