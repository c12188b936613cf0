//! The assignment of least cost: each row its own column.
//!
//! Kept all along: dual variables vⱼ and a set of matched entries such that with uᵢ = cᵢⱼ − vⱼ of the matched entry of row i
//! no entry has a reduced cost cᵢⱼ − uᵢ − vⱼ below 0, and matched ones have 0. Three phases:
//!
//!   1. vⱼ = minᵢ cᵢⱼ; each row takes a free column where cᵢⱼ − vⱼ is least, if there is one.
//!   2. A row left takes such a column from a row that can go to another free column at reduced cost 0.
//!   3. From each row left, a shortest path in reduced costs to a free column, by Dijkstra's method:
//!      rows take columns alternately along it, and vⱼ −= d(end) − d(j) for the columns settled before its end.
//!
//! Columns reached at the current distance wait in a list, the others in a heap; of equal distances the smaller column is
//! taken first from the heap, so the result is determined. A search ends as soon as a free column is at the current
//! distance. If a search finds no free column, none can be reached from what it has seen, now or later: its columns are
//! left out of all searches after it. So the matched entries are as many as there can be, and the failed searches together
//! cost no more than one.
//!
//! Cost: O(nnz) for phases 1 and 2, which match most rows of most matrices; O((nnz + n) log n) for each row left at worst.
//! Reference: Duff & Koster 2001, doi:10.1137/S0895479899358443.

use super::Costs;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// No row, no column, no entry.
pub(super) const NONE: usize = usize::MAX;

/// As many matched entries as there can be, at the least cost if that is all rows.
pub(super) struct Assignment {
    /// The place of the matched entry of each row.
    pub(super) entry: Vec<usize>,
    /// vⱼ.
    pub(super) dual: Vec<f64>,
    /// Number of matched rows.
    pub(super) rank: usize,
    /// The first row whose search found no column.
    pub(super) unmatched: Option<usize>,
}

impl Assignment {
    pub(super) fn of_least_cost(costs: &Costs<'_>) -> Self {
        let mut start = Start::new(costs);
        start.take_free_columns();
        start.take_by_one_exchange();
        let mut search = Search::new(start);
        let (mut rank, mut unmatched) = (0, None);
        for i in 0..costs.n() {
            if search.entry[i] != NONE || search.augment(i) {
                rank += 1;
            } else {
                unmatched = unmatched.or(Some(i));
            }
        }
        Assignment { entry: search.entry, dual: search.dual, rank, unmatched }
    }
}

/// Phases 1 and 2.
struct Start<'a> {
    costs: &'a Costs<'a>,
    entry: Vec<usize>,
    row_of: Vec<usize>,
    dual: Vec<f64>,
}

impl<'a> Start<'a> {
    fn new(costs: &'a Costs<'a>) -> Self {
        let n = costs.n();
        let mut dual = vec![f64::INFINITY; n];
        for i in 0..n {
            for (_, j, cost) in costs.row(i) {
                dual[j] = cost.min(dual[j]);
            }
        }
        Start { costs, entry: vec![NONE; n], row_of: vec![NONE; n], dual }
    }

    /// uᵢ: the least cᵢⱼ − vⱼ of a row; infinite for a row of zeros.
    fn least(&self, i: usize) -> f64 {
        self.costs.row(i).map(|(_, j, cost)| cost - self.dual[j]).fold(f64::INFINITY, f64::min)
    }

    fn set(&mut self, i: usize, place: usize, j: usize) {
        (self.entry[i], self.row_of[j]) = (place, i);
    }

    fn take_free_columns(&mut self) {
        for i in 0..self.costs.n() {
            let least = self.least(i);
            let free =
                |&(_, j, cost): &(usize, usize, f64)| cost - self.dual[j] == least && self.row_of[j] == NONE;
            if let Some((place, j, _)) = self.costs.row(i).find(free) {
                self.set(i, place, j);
            }
        }
    }

    fn take_by_one_exchange(&mut self) {
        // Entries of a row before its cursor lead to no free column: columns never become free again.
        let mut cursor: Vec<usize> = self.costs.a.row_ptr()[..self.costs.n()].to_vec();
        for i in 0..self.costs.n() {
            if self.entry[i] != NONE {
                continue;
            }
            let least = self.least(i);
            for (place, j, cost) in self.costs.row(i) {
                if cost - self.dual[j] > least {
                    continue;
                }
                let other = self.row_of[j];
                if other == NONE {
                    self.set(i, place, j);
                    break;
                }
                if let Some((place_of_other, free)) = self.free_column(other, &mut cursor[other]) {
                    self.set(other, place_of_other, free);
                    self.set(i, place, j);
                    break;
                }
            }
        }
    }

    /// A free column that the matched row i can go to at reduced cost 0.
    fn free_column(&self, i: usize, cursor: &mut usize) -> Option<(usize, usize)> {
        let matched = self.entry[i];
        let u = self.costs.cost[matched] - self.dual[self.costs.a.col_idx()[matched] as usize];
        let end = self.costs.a.row_ptr()[i + 1];
        while *cursor < end {
            let (k, j) = (*cursor, self.costs.a.col_idx()[*cursor] as usize);
            *cursor += 1;
            if self.row_of[j] == NONE && self.costs.cost[k] - self.dual[j] == u {
                return Some((k, j));
            }
        }
        None
    }
}

/// Phase 3.
struct Search<'a> {
    costs: &'a Costs<'a>,
    entry: Vec<usize>,
    row_of: Vec<usize>,
    dual: Vec<f64>,
    /// Of the columns reached; infinite for the others.
    distance: Vec<f64>,
    /// The row from which a column was reached.
    from: Vec<usize>,
    state: Vec<State>,
    reached: Vec<usize>,
    settled: Vec<usize>,
    /// Columns at the current distance.
    ready: Vec<usize>,
    heap: BinaryHeap<Waiting>,
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    Open,
    Settled,
    /// No free column can be reached from here.
    Dead,
}

impl<'a> Search<'a> {
    fn new(start: Start<'a>) -> Self {
        let n = start.costs.n();
        Search {
            costs: start.costs,
            entry: start.entry,
            row_of: start.row_of,
            dual: start.dual,
            distance: vec![f64::INFINITY; n],
            from: vec![NONE; n],
            state: vec![State::Open; n],
            reached: Vec::new(),
            settled: Vec::new(),
            ready: Vec::new(),
            heap: BinaryHeap::new(),
        }
    }

    /// Matches one row more, namely `source`; `false` if that cannot be.
    fn augment(&mut self, source: usize) -> bool {
        let (mut row, mut current) = (source, f64::NEG_INFINITY);
        // d(row) − u(row); the source's own dual variable is the length of its path, whatever it was.
        let mut offset = 0.0;
        let (mut end, mut shortest) = (NONE, f64::INFINITY);
        loop {
            let costs = self.costs;
            for (_, j, cost) in costs.row(row) {
                // Never below the current distance, but for rounding.
                let distance = (offset + (cost - self.dual[j])).max(current);
                if self.state[j] != State::Open || distance >= shortest || distance >= self.distance[j] {
                    continue;
                }
                self.reach(j, row, distance, current);
                if self.row_of[j] == NONE {
                    (end, shortest) = (j, distance);
                }
            }
            let next = if shortest > current { self.nearest(shortest) } else { None };
            let Some(j) = next else { break };
            self.state[j] = State::Settled;
            self.settled.push(j);
            current = self.distance[j];
            row = self.row_of[j];
            offset = current - (costs.cost[self.entry[row]] - self.dual[j]);
        }
        if end != NONE {
            for &j in &self.settled {
                self.dual[j] += self.distance[j] - shortest;
            }
            self.exchange(end, source);
        }
        self.forget(if end == NONE { State::Dead } else { State::Open });
        end != NONE
    }

    fn reach(&mut self, j: usize, row: usize, distance: f64, current: f64) {
        if self.distance[j] == f64::INFINITY {
            self.reached.push(j);
        }
        (self.distance[j], self.from[j]) = (distance, row);
        if self.row_of[j] == NONE {
            return;
        }
        if distance == current {
            self.ready.push(j);
        } else {
            self.heap.push(Waiting { distance, column: j });
        }
    }

    /// The next column to settle, if it is nearer than `limit`.
    fn nearest(&mut self, limit: f64) -> Option<usize> {
        if let Some(j) = self.ready.pop() {
            return Some(j);
        }
        while let Some(Waiting { distance, column }) = self.heap.pop() {
            if distance >= limit {
                return None;
            }
            // Otherwise it was reached on a shorter way since.
            if self.state[column] == State::Open && distance == self.distance[column] {
                return Some(column);
            }
        }
        None
    }

    /// Each row on the path from `source` to the free column `end` takes the column after it.
    fn exchange(&mut self, end: usize, source: usize) {
        let mut j = end;
        loop {
            let i = self.from[j];
            let start = self.costs.a.row_ptr()[i];
            let place = self.costs.a.row(i).0.partition_point(|&c| (c as usize) < j);
            self.row_of[j] = i;
            let before = std::mem::replace(&mut self.entry[i], start + place);
            if i == source {
                return;
            }
            j = self.costs.a.col_idx()[before] as usize;
        }
    }

    /// Ready for another search.
    fn forget(&mut self, state: State) {
        for &j in &self.reached {
            (self.distance[j], self.state[j]) = (f64::INFINITY, state);
        }
        self.reached.clear();
        self.settled.clear();
        self.ready.clear();
        self.heap.clear();
    }
}

/// A column in the heap; the greatest is the nearest one, of the smallest index.
struct Waiting {
    distance: f64,
    column: usize,
}

impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> Ordering {
        other.distance.total_cmp(&self.distance).then(other.column.cmp(&self.column))
    }
}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Waiting {}
