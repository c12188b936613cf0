//! Pairs (p, A p) of conjugate gradients, a bounded number of them spread over a solve.
//!
//! Pairs are taken at a stride until there is no room; then every second one is dropped, and from then on only every second one is taken, and so on. So the
//! pairs of a solve of any length are evenly spread. The first stride follows from how many iterations are expected: a pair that would be dropped is better not copied.

use super::kernels::{Lanes, fill};
use crate::observe::{Direction, Iteration, Observer};
use crate::scalar::Real;
use crate::space::Threads;
use std::ops::ControlFlow;

/// Pairs in the units of the model, each with pᵀ A p = 1, which no units change. So smooth directions count for more than in pairs of one length: with them
/// fewer iterations are left on most matrices.
#[derive(Debug)]
pub(super) struct Pairs<T> {
    kept: Vec<[Vec<T>; 2]>,
    /// Of those that were dropped, for those to come.
    spare: Vec<[Vec<T>; 2]>,
    most: usize,
    stride: usize,
    copied: usize,
}

impl<T: Real> Pairs<T> {
    pub(super) fn new() -> Self {
        Pairs { kept: Vec::new(), spare: Vec::new(), most: 0, stride: 1, copied: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.kept.len()
    }

    /// Pairs that were copied since [`clear`](Self::clear), also those that were dropped again.
    pub(super) fn copied(&self) -> usize {
        self.copied
    }

    /// Forgets them.
    pub(super) fn clear(&mut self) {
        self.spare.append(&mut self.kept);
        self.copied = 0;
    }

    /// Before a solve of at least so many iterations, as far as that can be known: at most so many pairs, of which there are at least two.
    pub(super) fn begin(&mut self, expected: usize, most: usize) {
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
        let factor = 1.0 / curvature.sqrt();
        if !factor.is_finite() {
            return;
        }
        let [mut x, mut y] = self.spare.pop().unwrap_or_default();
        x.resize(p.len(), T::ZERO);
        y.resize(p.len(), T::ZERO);
        fill(space, &mut x, |i| T::from_f64(p[i] * scale[i] * factor));
        fill(space, &mut y, |i| T::from_f64(a_p[i] / scale[i] * factor));
        self.kept.push([x, y]);
        self.copied += 1;
    }

    /// Puts pairs with these numbers side by side.
    pub(super) fn gather<const B: usize>(
        &self,
        which: [usize; B],
        x: &mut [Lanes<T, B>],
        y: &mut [Lanes<T, B>],
    ) {
        for (lane, &k) in which.iter().enumerate() {
            let [from_x, from_y] = &self.kept[k];
            x.iter_mut().zip(from_x).for_each(|(to, &from)| to[lane] = from);
            y.iter_mut().zip(from_y).for_each(|(to, &from)| to[lane] = from);
        }
    }
}

/// Collects pairs, and shows iterations to another observer.
pub(super) struct Collector<'a, T> {
    /// Where the solve runs.
    pub(super) space: &'a Threads<f64>,
    pub(super) pairs: &'a mut Pairs<T>,
    /// The units of rows.
    pub(super) scale: &'a [f64],
    pub(super) observer: &'a mut dyn Observer<f64>,
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
                take(&mut pairs, k + 1, ([0.0, 2.0], [k as f64, 0.0]), 16.0);
            }
            assert_eq!(pairs.copied(), copied);
            // 0, 1, 2, 3; without every second, and with the next: 0, 2, 4, 6; then 0, 4, 8.
            let found: Vec<f64> = pairs.kept.iter().map(|[_, y]| 4.0 * y[0]).collect();
            assert_eq!(found, [0.0, 4.0, 8.0]);
            assert_eq!(pairs.kept[0][0], [0.0, 1.0]);
        }
        let (mut x, mut y) = (vec![[0.0; 2]; 2], vec![[0.0; 2]; 2]);
        pairs.gather([2, 0], &mut x, &mut y);
        assert_eq!((x[1], y[0]), ([1.0, 1.0], [2.0, 0.0]));
        // A direction of zero teaches nothing.
        pairs.begin(0, 4);
        take(&mut pairs, 1, ([0.0; 2], [0.0; 2]), 0.0);
        assert_eq!(pairs.len(), 0);
    }
}
