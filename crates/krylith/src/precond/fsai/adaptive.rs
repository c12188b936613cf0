//! A pattern that grows where the Kaporin number falls the most.
//!
//! Row i of G on the pattern P minimises ψ(g̃) = g̃ᵀA g̃ with g̃ᵢ = 1; the least is 1 / gᵢᵢ², and the product of all of them is what the Kaporin number of
//! G A Gᵀ is a root of. A new entry k < i that moves alone decreases ψ by (A g̃)ₖ² / aₖₖ. Each step adds the entries of a row for which that is
//! the most, and solves for all entries again. A row is left as it is once a step has decreased its ψ by less than a tolerance times aᵢᵢ.
//!
//! Rows depend on A alone. Eight of them take all of their steps together, one in each lane of a register. The systems are those of the entries below the
//! diagonal, A[P,P] g̃ = −A[P,i], in the order in which entries were added: a step appends rows to the Cholesky factor L and entries to y = L⁻¹ A[P,i], and
//! ψ = aᵢᵢ − ‖y‖². Lanes with fewer entries have rows of zeros, which the kernels leave out.
//!
//! Reference: Janna & Ferronato 2011, doi:10.1137/100810368. Deviation: they add the largest entries of the gradient 2 A g̃; divided by the
//! roots of the diagonal, the choice does not depend on the scales of rows.

use super::batch::{SYSTEMS, append_rows, solve_transposed, triangle};
use super::pattern::{by_blocks_up_to, extrapolated, too_many};
use super::repeats::Rows;
use super::rows::MOST_INDICES;
use crate::error::SetupError;
use crate::matrix::{Csr, Pattern};
use crate::space::Threads;

/// How a pattern grows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Growth {
    /// Steps at most.
    pub steps: usize,
    /// Entries that a step adds to a row at most.
    pub entries: usize,
    /// A row that a step has improved by less than this is left as it is.
    pub tolerance: f64,
}

/// Rows that a member takes at a time: large systems take long.
const GRAIN: usize = 4 * SYSTEMS;
/// Rows that are looked at to predict the size of a pattern.
const SAMPLE: usize = 8 * SYSTEMS;
/// They grow to so many times the mean of a pattern that is as large as it may be.
const CUT: u64 = 4;
/// A pattern that is predicted to be so many times as large as it may be is not begun.
const REFUSED: u64 = 2;

/// The pattern after all steps, each row in order and with its diagonal at its end. An error if it has more than `most` entries; that is predicted from some
/// rows first, which do not take all of their steps: eight rows of a thousand entries take seconds.
pub(crate) fn grow(
    space: &Threads<f64>,
    a: &Csr<f64>,
    growth: Growth,
    rows: Rows<'_>,
    most: u64,
) -> Result<Pattern, SetupError> {
    let n = a.nrows();
    let diagonal: Vec<f64> = (0..n).map(|i| a.get(i, i).abs()).collect();
    let inverses: Vec<f64> = diagonal.iter().map(|d| 1.0 / d).collect();
    let matrix = Matrix { a, diagonal: &diagonal, inverses: &inverses };
    let longest = growth.steps.saturating_mul(growth.entries).saturating_add(1).min(MOST_INDICES);
    if n > 8 * SAMPLE && (n as u64).saturating_mul(longest as u64) > most {
        let mean = most / n as u64;
        let cut = usize::try_from((CUT * mean).max(CUT)).map_or(longest, |cut| cut.min(longest));
        // All over the matrix from the beginning on: multiples of an odd number near the golden section.
        let step = ((n as f64 * 0.618) as usize) | 1;
        let sampled = |k: usize| k.wrapping_mul(step) % n;
        let found = grown(space, matrix, growth, (SAMPLE, &sampled), (u64::MAX, cut))?;
        let predicted = extrapolated(found.nnz() as u64, SAMPLE, n);
        if predicted > most.saturating_mul(REFUSED) {
            return Err(too_many(predicted, most));
        }
    }
    grown(space, matrix, growth, (rows.len(), &|k| rows.row(k)), (most, MOST_INDICES))
}

/// The pattern of some rows, one after the other, each of at most so many entries.
fn grown(
    space: &Threads<f64>,
    matrix: Matrix<'_>,
    growth: Growth,
    (count, row): (usize, &(dyn Fn(usize) -> usize + Sync)),
    (in_all, of_a_row): (u64, usize),
) -> Result<Pattern, SetupError> {
    let sizes = [count, matrix.a.nrows()];
    by_blocks_up_to(
        (in_all, GRAIN),
        space,
        sizes,
        &Group::default,
        &|block, group: &mut Group, columns, lengths| {
            for first in block.clone().step_by(SYSTEMS) {
                let count = SYSTEMS.min(block.end - first);
                group.grow(matrix, count, |k| row(first + k), (growth, of_a_row));
                for lane in &mut group.lanes[..count] {
                    let begin = columns.len();
                    columns.append(&mut lane.added);
                    columns[begin..].sort_unstable();
                    columns.push(lane.row as u32);
                    lengths.push((columns.len() - begin) as u32);
                }
            }
        },
    )
}

#[derive(Clone, Copy)]
struct Matrix<'a> {
    a: &'a Csr<f64>,
    diagonal: &'a [f64],
    inverses: &'a [f64],
}

/// A row that grows, with what its entries reach in numbers of its own.
///
/// Which entries are new and which are in the pattern cannot be predicted, so loops write what they may not need instead of asking. Arrays are longer than
/// what is in them.
#[derive(Default)]
struct Lane {
    row: usize,
    /// Entries below the diagonal, as they were added.
    added: Vec<u32>,
    /// Indices below the diagonal that entries reach in A, with numbers in the order of discovery.
    reached: Numbering,
    /// 1 / aₖₖ of those that may be added, 0 of others.
    weights: Vec<f64>,
    /// One more than their places in the system; 0 of those that have none.
    places: Vec<u32>,
    /// Entries of the rows of A of the diagonal and of all entries below it.
    couplings: Vec<Coupling>,
    /// How many there are.
    coupled: usize,
    /// 1, and g̃ by place.
    g: Vec<f64>,
    /// A row of the system, after a number that is not read.
    line: Vec<f64>,
    /// A g̃, then the decreases of ψ.
    products: Vec<f64>,
    psi: f64,
    /// Nothing is added any more.
    is_done: bool,
}

/// An entry of A.
#[derive(Default, Clone, Copy)]
struct Coupling {
    /// Of its column.
    number: u32,
    /// One more than the place of its row in the system; 0 of the diagonal's.
    place: u32,
    value: f64,
}

/// Eight rows that grow together.
#[derive(Default)]
struct Group {
    lanes: [Lane; SYSTEMS],
    l: Vec<[f64; SYSTEMS]>,
    y: Vec<[f64; SYSTEMS]>,
    g: Vec<[f64; SYSTEMS]>,
    /// Numbers of the largest decreases of ψ, the largest first.
    chosen: Vec<u32>,
}

impl Group {
    /// All steps of some rows, up to a number of entries.
    fn grow(
        &mut self,
        matrix: Matrix<'_>,
        count: usize,
        row: impl Fn(usize) -> usize,
        (growth, of_a_row): (Growth, usize),
    ) {
        let Group { lanes, l, y, g, chosen } = self;
        let lanes = &mut lanes[..count];
        lanes.iter_mut().enumerate().for_each(|(k, lane)| lane.begin(matrix, row(k)));
        l.clear();
        y.clear();
        g.clear();
        for step in 0..growth.steps {
            let before = y.len();
            for (k, lane) in lanes.iter_mut().enumerate().filter(|(_, lane)| !lane.is_done) {
                lane.multiply(g, k);
                lane.choose(growth.entries.min(of_a_row - 1 - before), chosen);
                lane.is_done = chosen.is_empty();
                let m = y.len().max(before + chosen.len());
                y.resize(m, [0.0; SYSTEMS]);
                l.resize(triangle(m), [0.0; SYSTEMS]);
                for (place, &number) in (before..).zip(&*chosen) {
                    y[place][k] = lane.add(matrix, number as usize, place);
                    let line = &mut lane.line[1..place + 2];
                    l[triangle(place)..].iter_mut().zip(line).for_each(|(l, value)| {
                        l[k] = std::mem::take(value);
                    });
                }
            }
            if y.len() == before || step + 1 == growth.steps {
                break;
            }
            append_rows::<f64>(before, y.len(), l, y);
            for (k, lane) in lanes.iter_mut().enumerate().filter(|(_, lane)| !lane.is_done) {
                let decrease: f64 = y[before..].iter().map(|y| y[k] * y[k]).sum();
                lane.psi -= decrease;
                lane.is_done = !(lane.psi > 0.0 && decrease > growth.tolerance * matrix.diagonal[lane.row]);
            }
            g.clear();
            g.extend(y.iter().map(|y| y.map(|y| -y)));
            solve_transposed::<f64>(g.len(), l, g);
        }
    }
}

impl Lane {
    fn begin(&mut self, matrix: Matrix<'_>, row: usize) {
        (self.row, self.psi, self.is_done) = (row, matrix.diagonal[row], false);
        self.added.clear();
        self.reached.count = 0;
        self.coupled = 0;
        self.couple(matrix, row, 0);
    }

    /// Reaches what row j of A has below the diagonal of the lane's row; those in its pattern are put into `line`. The entry at the diagonal.
    fn couple(&mut self, matrix: Matrix<'_>, j: usize, place: u32) -> f64 {
        let (columns, values) = matrix.a.row(j);
        self.reserve(columns.len(), place as usize);
        let mut at_diagonal = 0.0;
        for (&k, &value) in columns.iter().zip(values) {
            if k as usize >= self.row {
                if k as usize == self.row {
                    at_diagonal = value;
                }
                break;
            }
            let next = self.reached.count;
            let number = self.reached.number(k);
            // For those that are not new, this is overwritten by the next one that is.
            self.weights[next] = matrix.inverses[k as usize];
            self.places[next] = 0;
            self.line[self.places[number] as usize] = value;
            self.couplings[self.coupled] = Coupling { number: number as u32, place, value };
            self.coupled += 1;
        }
        at_diagonal
    }

    /// Room for so many more indices, and for places up to this one.
    fn reserve(&mut self, more: usize, place: usize) {
        let most = self.reached.reserve(more);
        if self.weights.len() < most {
            self.weights.resize(most, 0.0);
            self.places.resize(most, 0);
        }
        if self.couplings.len() < self.coupled + more {
            self.couplings.resize(2 * (self.coupled + more), Coupling::default());
        }
        if self.line.len() < place + 1 {
            self.line.resize(2 * (place + 1), 0.0);
        }
    }

    /// Adds an index by its number; its row of the system is then in `line`. The number of the right-hand side.
    fn add(&mut self, matrix: Matrix<'_>, number: usize, place: usize) -> f64 {
        let index = self.reached.indices[number];
        self.added.push(index);
        self.weights[number] = 0.0;
        self.places[number] = place as u32 + 1;
        self.couple(matrix, index as usize, place as u32 + 1)
    }

    /// A g̃ at all that is reached, g̃ in lane k of `g`.
    fn multiply(&mut self, g: &[[f64; SYSTEMS]], k: usize) {
        self.g.clear();
        self.g.push(1.0);
        self.g.extend(g.iter().map(|g| g[k]));
        self.products.clear();
        self.products.resize(self.reached.count.next_multiple_of(SYSTEMS), 0.0);
        for &Coupling { number, place, value } in &self.couplings[..self.coupled] {
            self.products[number as usize] += value * self.g[place as usize];
        }
    }

    /// The `most` numbers for which (A g̃)ₖ² / aₖₖ is the largest; the smaller index first among equals.
    fn choose(&mut self, most: usize, chosen: &mut Vec<u32>) {
        chosen.clear();
        for (product, weight) in self.products.iter_mut().zip(&self.weights[..self.reached.count]) {
            let decrease = *product * *product * weight;
            *product = if decrease <= f64::MAX { decrease } else { 0.0 };
        }
        let (mut least, indices) = (f64::MIN_POSITIVE, &self.reached.indices);
        for (number, &decrease) in (0u32..).zip(&self.products) {
            if decrease < least {
                continue;
            }
            let is_after = |&other: &u32| {
                let before = self.products[other as usize];
                before < decrease || before == decrease && indices[other as usize] > indices[number as usize]
            };
            let place = chosen.iter().position(is_after).unwrap_or(chosen.len());
            if place < most {
                chosen.truncate(most - 1);
                chosen.insert(place, number);
            }
            if chosen.len() == most {
                least = chosen.last().map_or(f64::INFINITY, |&last| self.products[last as usize]);
            }
        }
    }
}

/// Numbers for indices, in the order of their discovery: an open hash table that is never cleared. A place of the table holds a number that is valid if it has
/// been given and its home is this very place.
#[derive(Default)]
struct Numbering {
    table: Vec<u32>,
    /// Longer than what is in them.
    indices: Vec<u32>,
    homes: Vec<u32>,
    count: usize,
}

impl Numbering {
    /// Room for so many more; how many indices there may be then.
    fn reserve(&mut self, more: usize) -> usize {
        let most = self.count + more + 1;
        if self.indices.len() < most {
            let room = (2 * most).next_power_of_two().max(128);
            self.indices.resize(room, 0);
            self.homes.resize(room, 0);
            self.table = vec![0; 2 * room];
            let count = std::mem::take(&mut self.count);
            for number in 0..count {
                self.number(self.indices[number]);
            }
        }
        self.indices.len()
    }

    /// The number of an index; a new one if it has none. There is room for it.
    #[inline]
    fn number(&mut self, index: u32) -> usize {
        let mask = self.table.len() - 1;
        let mut home = hash(index) & mask;
        loop {
            let number = self.table[home] as usize;
            let is_taken = (number < self.count) & (self.homes[number] == home as u32);
            if is_taken & (self.indices[number] != index) {
                home = (home + 1) & mask;
                continue;
            }
            let number = if is_taken { number } else { self.count };
            self.table[home] = number as u32;
            self.indices[self.count] = index;
            self.homes[self.count] = home as u32;
            self.count += usize::from(!is_taken);
            return number;
        }
    }
}

/// Indices that are near each other, and those a multiple of a power of two apart, get different places.
fn hash(index: u32) -> usize {
    (index.wrapping_mul(0x9E37_79B1) >> 12) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gallery::Problem;

    /// [ 4 1 2 ]
    /// [ 1 4 0 ]
    /// [ 2 0 4 ]: row 2 has its largest entry in column 0, and then none, A g̃ at 1 being 1 · (−1/2).
    #[test]
    fn the_largest_first() {
        let entries =
            [(0, 0, 4.0), (0, 1, 1.0), (0, 2, 2.0), (1, 0, 1.0), (1, 1, 4.0), (2, 0, 2.0), (2, 2, 4.0)];
        let a = Csr::from_entries(3, 3, entries).unwrap();
        let grown = |steps, tolerance| {
            grow(&Threads::new(1), &a, Growth { steps, entries: 1, tolerance }, Rows::all(3), u64::MAX)
                .unwrap()
        };
        assert_eq!(grown(1, 0.0).row(2), [0, 2]);
        assert_eq!(grown(2, 0.0).row(2), [0, 1, 2]);
        // The first step has decreased ψ from 4 to 3.
        assert_eq!(grown(2, 0.3).row(2), [0, 2]);
        assert_eq!(grown(2, 0.2).row(2), [0, 1, 2]);
    }

    #[test]
    fn the_same_on_any_number_of_threads() {
        let a = "jump3d:12".parse::<Problem>().unwrap().generate().unwrap();
        let grown = |threads| {
            let growth = Growth { steps: 4, entries: 3, tolerance: 1e-3 };
            grow(&Threads::new(threads), &a, growth, Rows::all(a.nrows()), u64::MAX).unwrap()
        };
        let one = grown(1);
        assert!((2..=8).all(|threads| grown(threads) == one));
        assert!(one.nnz() > 4 * a.nrows() && one.nnz() <= 13 * a.nrows());
    }

    /// Rows of 1024 entries by their steps, and room for 30: 64 rows are grown to 120 at most, and the prediction is nearly 4 times the limit.
    #[test]
    fn a_pattern_that_is_far_too_large_is_not_begun() {
        let a = "poisson3d:24".parse::<Problem>().unwrap().generate().unwrap();
        let (n, growth) = (a.nrows() as u64, Growth { steps: 100, entries: 100, tolerance: 0.0 });
        let refused =
            |threads, most| match grow(&Threads::new(threads), &a, growth, Rows::all(a.nrows()), most) {
                Err(SetupError::MemoryLimit { predicted, .. }) => predicted / super::super::BYTES_PER_ENTRY,
                other => panic!("{:?}", other.map(|found| found.nnz())),
            };
        let one = refused(1, 30 * n);
        assert!(one > 90 * n && one <= 120 * n, "{one}");
        assert!([2, 3].into_iter().all(|threads| refused(threads, 30 * n) == one));
        // Not even the diagonal fits.
        assert!(refused(2, n / 2) > n);
    }

    /// Between the limit and twice the limit rows are counted; below, nothing is refused.
    #[test]
    fn a_pattern_near_its_limit_is_counted() {
        let a = "poisson3d:12".parse::<Problem>().unwrap().generate().unwrap();
        let growth = Growth { steps: 3, entries: 2, tolerance: 0.0 };
        let grown = |threads, most| grow(&Threads::new(threads), &a, growth, Rows::all(a.nrows()), most);
        let all = grown(1, u64::MAX).unwrap();
        let entries = all.nnz() as u64;
        assert_eq!(grown(2, entries).unwrap(), all);
        for part in [entries - 1, 2 * entries / 3] {
            let one = grown(1, part);
            assert!(matches!(one, Err(SetupError::MemoryLimit { predicted, limit }) if predicted > limit));
            assert!((2..=4).all(|threads| grown(threads, part) == one));
        }
    }
}
