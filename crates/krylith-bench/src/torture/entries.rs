//! Matrices being made: entries by place, in any order.

use super::rng::Rng;
use krylith::Csr;
use std::collections::BTreeMap;

/// Entries of a square matrix, one a place.
#[derive(Debug, Clone, Default)]
pub struct Entries {
    pub n: usize,
    map: BTreeMap<(usize, usize), f64>,
}

/// What plain entries are like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Numbers {
    /// Uniform, of either sign.
    Reals,
    /// −3 to 3 without 0: elimination cancels exactly now and then.
    Integers,
    /// ± 1, 1/2, 1/4, 1/8.
    Powers,
}

impl Numbers {
    pub fn draw(rng: &mut Rng) -> Self {
        rng.pick(&[Numbers::Reals, Numbers::Reals, Numbers::Integers, Numbers::Powers])
    }

    pub fn value(self, rng: &mut Rng) -> f64 {
        match self {
            Numbers::Reals => rng.signed(),
            Numbers::Integers => rng.pick(&[-3.0, -2.0, -1.0, 1.0, 2.0, 3.0]),
            Numbers::Powers => rng.pick(&[1.0, 0.5, 0.25, 0.125]) * rng.pick(&[-1.0, 1.0]),
        }
    }
}

impl Entries {
    pub fn new(n: usize) -> Self {
        Entries { n, map: BTreeMap::new() }
    }

    pub fn from_csr(a: &Csr<f64>) -> Self {
        let mut entries = Entries::new(a.nrows());
        for i in 0..a.nrows() {
            let (columns, values) = a.row(i);
            columns.iter().zip(values).for_each(|(&j, &v)| entries.set(i, j as usize, v));
        }
        entries
    }

    pub fn len(&self) -> usize {
        self.map.len()
    }

    pub fn get(&self, i: usize, j: usize) -> Option<f64> {
        self.map.get(&(i, j)).copied()
    }

    pub fn set(&mut self, i: usize, j: usize, value: f64) {
        self.map.insert((i, j), value);
    }

    pub fn remove(&mut self, i: usize, j: usize) {
        self.map.remove(&(i, j));
    }

    /// Place and value of entry `k`, by rows.
    pub fn nth(&self, k: usize) -> ((usize, usize), f64) {
        self.map.iter().nth(k).map_or(((0, 0), 0.0), |(&place, &value)| (place, value))
    }

    /// Changes every value.
    pub fn map_values(&mut self, mut change: impl FnMut(usize, usize, f64) -> f64) {
        self.map.iter_mut().for_each(|(&(i, j), value)| *value = change(i, j, *value));
    }

    /// The entries that are kept, each at its new place.
    pub fn moved(&self, n: usize, to: impl Fn(usize, usize) -> Option<(usize, usize)>) -> Entries {
        let moved = self.map.iter().filter_map(|(&(i, j), &value)| Some((to(i, j)?, value)));
        Entries { n, map: moved.collect() }
    }

    /// Sums of the sizes of entries off the diagonal, by rows.
    pub fn row_sums(&self) -> Vec<f64> {
        let mut sums = vec![0.0; self.n];
        self.map.iter().filter(|((i, j), _)| i != j).for_each(|(&(i, _), value)| sums[i] += value.abs());
        sums
    }

    pub fn to_csr(&self) -> Csr<f64> {
        let mut row_ptr = vec![0; self.n + 1];
        self.map.keys().for_each(|&(i, _)| row_ptr[i + 1] += 1);
        (0..self.n).for_each(|i| row_ptr[i + 1] += row_ptr[i]);
        let columns = self.map.keys().map(|&(_, j)| j as u32).collect();
        let values = self.map.values().copied().collect();
        Csr::new(self.n, self.n, row_ptr, columns, values).expect("places are in order and inside")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matrix_there_and_back() {
        let mut entries = Entries::new(3);
        entries.set(2, 0, 5.0);
        entries.set(0, 1, -1.0);
        entries.set(0, 0, 2.0);
        entries.set(2, 2, 0.0);
        let a = entries.to_csr();
        assert_eq!(a.pattern().row_ptr(), [0, 2, 2, 4]);
        assert_eq!(a.pattern().col_idx(), [0, 1, 0, 2]);
        assert_eq!(a.values(), [2.0, -1.0, 5.0, 0.0]);
        assert_eq!(Entries::from_csr(&a).to_csr(), a);
        assert_eq!(entries.nth(2), ((2, 0), 5.0));
        assert_eq!(entries.row_sums(), [1.0, 0.0, 5.0]);
        let turned = entries.moved(3, |i, j| Some((j, i))).to_csr();
        assert_eq!(turned, a.transpose());
    }
}
