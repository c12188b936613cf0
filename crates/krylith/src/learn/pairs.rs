//! Pairs (p, A p) of conjugate gradients, a bounded number of them spread over a solve.
//!
//! Every pair is kept until there is no room; then every second one is dropped, and from then on only every second one is taken, and so on. So the
//! pairs of a solve of any length are evenly spread, and which they are depends on the number of iterations alone.

use super::kernels::Lanes;
use crate::observe::{Direction, Iteration, Observer};
use crate::scalar::Real;
use std::ops::ControlFlow;

/// Pairs in the units of the model, each with ‖p‖ = 1.
#[derive(Debug)]
pub(super) struct Pairs<T> {
    kept: Vec<[Vec<T>; 2]>,
    /// Of those that were dropped, for those to come.
    spare: Vec<[Vec<T>; 2]>,
    most: usize,
    stride: usize,
    seen: usize,
}

impl<T: Real> Pairs<T> {
    /// At most so many pairs, of which there are at least two.
    pub(super) fn new(most: usize) -> Self {
        Pairs { kept: Vec::new(), spare: Vec::new(), most: most.max(2), stride: 1, seen: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.kept.len()
    }

    /// Before a solve.
    pub(super) fn clear(&mut self) {
        self.spare.append(&mut self.kept);
        (self.stride, self.seen) = (1, 0);
    }

    fn take(&mut self, scale: &[f64], p: &[f64], a_p: &[f64]) {
        if !self.seen.is_multiple_of(self.stride) {
            self.seen += 1;
            return;
        }
        self.seen += 1;
        if self.kept.len() == self.most {
            let mut place = 0;
            self.spare.extend(self.kept.extract_if(.., |_| {
                place += 1;
                place % 2 == 0
            }));
            self.stride *= 2;
            if !(self.seen - 1).is_multiple_of(self.stride) {
                return;
            }
        }
        let square: f64 = p.iter().zip(scale).map(|(p, s)| (p * s) * (p * s)).sum();
        let factor = 1.0 / square.sqrt();
        if !factor.is_finite() {
            return;
        }
        let [mut x, mut y] = self.spare.pop().unwrap_or_default();
        x.clear();
        y.clear();
        x.extend(p.iter().zip(scale).map(|(p, s)| T::from_f64(p * s * factor)));
        y.extend(a_p.iter().zip(scale).map(|(y, s)| T::from_f64(y / s * factor)));
        self.kept.push([x, y]);
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

    fn direction(&mut self, direction: &Direction<'_, f64, [f64]>) {
        self.pairs.take(self.scale, direction.p, direction.a_p);
        if self.observer.wants_directions() {
            self.observer.direction(direction);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_evenly_spread_and_scaled() {
        let mut pairs = Pairs::<f64>::new(4);
        for _ in 0..2 {
            pairs.clear();
            for k in 0..11 {
                pairs.take(&[1.0, 2.0], &[0.0, 2.0], &[f64::from(k), 0.0]);
            }
            // 0, 1, 2, 3; without every second, and with the next: 0, 2, 4, 6; then 0, 4, 8.
            let found: Vec<f64> = pairs.kept.iter().map(|[_, y]| 4.0 * y[0]).collect();
            assert_eq!(found, [0.0, 4.0, 8.0]);
            assert_eq!(pairs.kept[0][0], [0.0, 1.0]);
        }
        let (mut x, mut y) = (vec![[0.0; 2]; 2], vec![[0.0; 2]; 2]);
        pairs.gather([2, 0], &mut x, &mut y);
        assert_eq!((x[1], y[0]), ([1.0, 1.0], [2.0, 0.0]));
        // A direction of zero teaches nothing.
        pairs.clear();
        pairs.take(&[1.0, 1.0], &[0.0, 0.0], &[0.0, 0.0]);
        assert_eq!(pairs.len(), 0);
    }
}
