//! Pairs (p, A p) of conjugate gradients, a bounded number of them spread over a solve.
//!
//! Pairs are taken at a stride until there is no room; then every second one is dropped, and from then on only every second one is taken, and so on. So the
//! pairs of a solve of any length are evenly spread. The first stride follows from how many iterations are expected: a pair that would be dropped is better not copied.

use super::kernels::{Lanes, fill};
use crate::observe::{Direction, Iteration, Observer};
use crate::scalar::Real;
use crate::space::Threads;
use std::ops::ControlFlow;

/// What is 1 for every pair. Smooth directions count for more where it is the energy; which of both leaves fewer iterations differs from matrix to matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// ‖p‖.
    Length,
    /// pᵀ A p.
    Energy,
}

impl Unit {
    pub(crate) fn other(self) -> Self {
        match self {
            Unit::Length => Unit::Energy,
            Unit::Energy => Unit::Length,
        }
    }
}

/// p and A p in the units of the model, with ‖p‖ = 1.
#[derive(Debug, Default)]
struct Pair<T> {
    p: Vec<T>,
    a_p: Vec<T>,
    /// pᵀ A p.
    energy: f64,
}

/// The pairs of a solve.
#[derive(Debug)]
pub(crate) struct Pairs<T> {
    kept: Vec<Pair<T>>,
    /// Of those that were dropped, for those to come.
    spare: Vec<Pair<T>>,
    most: usize,
    stride: usize,
    copied: usize,
}

impl<T: Real> Pairs<T> {
    pub(crate) fn new() -> Self {
        Pairs { kept: Vec::new(), spare: Vec::new(), most: 0, stride: 1, copied: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.kept.len()
    }

    /// Pairs that were copied since [`clear`](Self::clear), also those that were dropped again.
    pub(crate) fn copied(&self) -> usize {
        self.copied
    }

    /// Forgets them.
    pub(crate) fn clear(&mut self) {
        self.spare.append(&mut self.kept);
        self.copied = 0;
    }

    /// Before a solve of at least so many iterations, as far as that can be known: at most so many pairs, of which there are at least two.
    pub(crate) fn begin(&mut self, expected: usize, most: usize) {
        self.clear();
        self.most = most.max(2);
        self.stride = expected.div_ceil(self.most).max(1).next_power_of_two();
    }

    /// Whether the direction that leads to this iteration is one to take.
    fn wants(&self, index: usize) -> bool {
        index.wrapping_sub(1).is_multiple_of(self.stride)
    }

    fn take(&mut self, space: &Threads<f64>, scale: &[f64], direction: &Direction<'_, f64, [f64]>) {
        let Direction { index, p, a_p, curvature } = *direction;
        if !self.wants(index) {
            return;
        }
        if self.kept.len() == self.most {
            let mut place = 0;
            self.spare.extend(self.kept.extract_if(.., |_| {
                place += 1;
                place % 2 == 0
            }));
            self.stride *= 2;
            if !self.wants(index) {
                return;
            }
        }
        let square = space.sum_of(p.len(), |range| range.map(|i| (p[i] * scale[i]).powi(2)).sum());
        let (factor, energy) = (1.0 / square.sqrt(), curvature / square);
        if !(factor.is_finite() && energy > 0.0 && energy.is_finite()) {
            return;
        }
        let mut pair = self.spare.pop().unwrap_or_default();
        pair.p.resize(p.len(), T::ZERO);
        pair.a_p.resize(p.len(), T::ZERO);
        fill(space, &mut pair.p, |i| T::from_f64(p[i] * scale[i] * factor));
        fill(space, &mut pair.a_p, |i| T::from_f64(a_p[i] / scale[i] * factor));
        pair.energy = energy;
        self.kept.push(pair);
        self.copied += 1;
    }

    /// Puts pairs with these numbers side by side.
    pub(crate) fn gather<const B: usize>(
        &self,
        space: &Threads<f64>,
        which: [usize; B],
        unit: Unit,
        [x, y]: [&mut [Lanes<T, B>]; 2],
    ) {
        let pairs = which.map(|k| &self.kept[k]);
        let factors = pairs.map(|pair| match unit {
            Unit::Length => T::ONE,
            Unit::Energy => T::from_f64(1.0 / pair.energy.sqrt()),
        });
        fill(space, x, |i| std::array::from_fn(|k| factors[k] * pairs[k].p[i]));
        fill(space, y, |i| std::array::from_fn(|k| factors[k] * pairs[k].a_p[i]));
    }
}

/// Collects pairs, and shows iterations to another observer.
pub(crate) struct Collector<'a, T> {
    /// Where the solve runs.
    pub(crate) space: &'a Threads<f64>,
    pub(crate) pairs: &'a mut Pairs<T>,
    /// The units of rows.
    pub(crate) scale: &'a [f64],
    pub(crate) observer: &'a mut dyn Observer<f64>,
}

impl<T: Real> Observer<f64> for Collector<'_, T> {
    fn iterated(&mut self, iteration: &Iteration<f64>) -> ControlFlow<()> {
        self.observer.iterated(iteration)
    }

    fn wants_directions(&self) -> bool {
        true
    }

    fn wants_direction(&self, index: usize) -> bool {
        self.pairs.wants(index) || self.observer.wants_directions() && self.observer.wants_direction(index)
    }

    fn direction(&mut self, direction: &Direction<'_, f64, [f64]>) {
        self.pairs.take(self.space, self.scale, direction);
        if self.observer.wants_directions() && self.observer.wants_direction(direction.index) {
            self.observer.direction(direction);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(pairs: &mut Pairs<f64>, index: usize, (p, a_p): ([f64; 2], [f64; 2]), curvature: f64) {
        pairs.take(&Threads::new(1), &[1.0, 2.0], &Direction { index, p: &p, a_p: &a_p, curvature });
    }

    #[test]
    fn pairs_are_evenly_spread_and_scaled() {
        let mut pairs = Pairs::<f64>::new();
        // The second time more iterations are expected, and nothing is copied that is not kept.
        for (expected, copied) in [(0, 7), (5, 5), (11, 3)] {
            pairs.begin(expected, 4);
            for k in 0..11 {
                take(&mut pairs, k + 1, ([0.0, 2.0], [k as f64, 0.0]), 4.0);
            }
            assert_eq!(pairs.copied(), copied);
            // 0, 1, 2, 3; without every second, and with the next: 0, 2, 4, 6; then 0, 4, 8.
            let found: Vec<f64> = pairs.kept.iter().map(|pair| 4.0 * pair.a_p[0]).collect();
            assert_eq!(found, [0.0, 4.0, 8.0]);
            assert_eq!((&pairs.kept[0].p[..], pairs.kept[0].energy), (&[0.0, 1.0][..], 1.0 / 4.0));
        }
        let space = Threads::new(1);
        let (mut x, mut y) = (vec![[0.0; 2]; 2], vec![[0.0; 2]; 2]);
        pairs.gather(&space, [2, 0], Unit::Length, [&mut x, &mut y]);
        assert_eq!((x[1], y[0]), ([1.0, 1.0], [2.0, 0.0]));
        pairs.gather(&space, [2, 0], Unit::Energy, [&mut x, &mut y]);
        assert_eq!((x[1], y[0]), ([2.0, 2.0], [4.0, 0.0]));
        // A direction of zero teaches nothing.
        pairs.begin(0, 4);
        take(&mut pairs, 1, ([0.0; 2], [0.0; 2]), 0.0);
        assert_eq!(pairs.len(), 0);
    }
}
