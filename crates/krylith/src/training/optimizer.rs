//! How entries move along gradients: AdaGrad and Adam.
//!
//! AdaGrad: h += g²;  l −= α g / √h. Reference: Duchi, Hazan & Singer 2011, JMLR 12.
//! Adam: m = β₁ m + (1 − β₁) g;  v = β₂ v + (1 − β₂) g²;  l −= α m̂ / (√v̂ + ε), m̂ and v̂ without the bias of their start at 0.
//! Reference: Kingma & Ba 2015, arXiv:1412.6980.
//!
//! Deviation: ε is a tenth of the root of the mean of v̂ over all entries after the step before, not a constant near zero. An entry whose gradients are much smaller
//! than those of others moves less: with steps of one size for all entries, those that should stay are moved by noise, and an ill-conditioned factor is
//! spoilt before it is improved. The first step has no such mean yet, so it fills the moments and moves nothing.

use crate::scalar::Real;
use crate::space::Threads;
use std::ops::Range;

/// A rule for the step of every entry.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Optimizer {
    /// Steps shrink with the sum of squared gradients.
    AdaGrad {
        /// The size of a step.
        alpha: f64,
        /// What the sum of squares begins with. The paper does not say; 0.1 is what its framework takes by default.
        initial: f64,
    },
    /// Steps follow a decaying mean of gradients, divided by one of their squares. The step goes down to zero along a cosine.
    Adam {
        /// The size of the first steps.
        alpha: f64,
    },
}

const BETA_1: f64 = 0.9;
const BETA_2: f64 = 0.99;
/// ε over the root of the mean of v̂.
const FLOOR: f64 = 0.1;

/// What one step does to an entry.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Rule<T> {
    AdaGrad { alpha: T },
    Adam { rate: T, unbias: T, floor: T },
}

impl Optimizer {
    /// What both numbers of an entry begin with.
    pub(crate) fn initial<T: Real>(&self) -> T {
        match *self {
            Optimizer::AdaGrad { initial, .. } => T::from_f64(initial),
            Optimizer::Adam { .. } => T::ZERO,
        }
    }

    /// The mean of the second numbers of all entries, which the next step needs; 0 where it does not.
    pub(crate) fn mean_square<T: Real>(&self, space: &Threads<f64>, second: &[T]) -> f64 {
        match self {
            Optimizer::AdaGrad { .. } => 0.0,
            Optimizer::Adam { .. } => {
                let sum = |range: Range<usize>| second[range].iter().map(|v| v.to_f64()).sum();
                space.sum_of(second.len(), sum) / second.len().max(1) as f64
            }
        }
    }

    /// Step `k`, counted from 0, of `steps`; the moments that it begins with are of `before` steps of earlier trainings and have this mean square.
    pub(crate) fn rule<T: Real>(
        &self,
        (k, steps): (usize, usize),
        before: usize,
        mean_square: f64,
    ) -> Rule<T> {
        match *self {
            Optimizer::AdaGrad { alpha, .. } => Rule::AdaGrad { alpha: T::from_f64(alpha) },
            Optimizer::Adam { alpha } => {
                let taken = (before + k + 1) as i32;
                let cosine = 0.5 * (1.0 + libm::cos(std::f64::consts::PI * k as f64 / steps as f64));
                let rate = alpha * cosine / (1.0 - BETA_1.powi(taken));
                let unbias = |taken: i32| 1.0 / (1.0 - BETA_2.powi(taken));
                let floor = FLOOR * (mean_square * unbias((taken - 1).max(1))).sqrt();
                let [rate, unbias, floor] = [rate, unbias(taken), floor].map(T::from_f64);
                Rule::Adam { rate, unbias, floor }
            }
        }
    }
}

impl<T: Real> Rule<T> {
    /// Moves entries along their gradients; `first` and `second` are their moments.
    #[inline]
    pub(crate) fn step(self, gradients: &[T], [values, first, second]: [&mut [T]; 3]) {
        let values = values.iter_mut().zip(gradients);
        match self {
            Rule::AdaGrad { alpha } => {
                for ((value, &gradient), first) in values.zip(first) {
                    *first += gradient * gradient;
                    // An entry that never had a gradient stays.
                    if *first > T::ZERO {
                        *value -= alpha * gradient / first.sqrt();
                    }
                }
            }
            Rule::Adam { rate, unbias, floor } => {
                let (b1, b2) = (T::from_f64(BETA_1), T::from_f64(BETA_2));
                // Without a floor there is no mean of squares yet: moments alone are changed.
                let (rate, floor) = if floor > T::ZERO { (rate, floor) } else { (T::ZERO, T::ONE) };
                for (((value, &gradient), first), second) in values.zip(first).zip(second) {
                    *first = b1 * *first + (T::ONE - b1) * gradient;
                    *second = b2 * *second + (T::ONE - b2) * gradient * gradient;
                    *value -= rate * *first / ((*second * unbias).sqrt() + floor);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Slices of one entry.
    fn one<T>(entry: [&mut T; 3]) -> [&mut [T]; 3] {
        entry.map(std::slice::from_mut)
    }

    #[test]
    fn first_steps_by_hand() {
        let (mut value, mut first, mut second) = (1.0f64, 0.1, 0.1);
        let adagrad = Optimizer::AdaGrad { alpha: 0.1, initial: 0.1 };
        adagrad.rule((0, 10), 0, 0.0).step(&[2.0], one([&mut value, &mut first, &mut second]));
        assert_eq!((value, first), (1.0 - 0.1 * 2.0 / 4.1f64.sqrt(), 4.1));
        // Adam's first step fills the moments. The second has the size of its rate where the gradient is as before and far above the floor, and less below it.
        let adam = Optimizer::Adam { alpha: 0.01 };
        let square = 1e-4;
        let rate = 0.5 * 0.01 * (1.0 + (std::f64::consts::PI / 10.0).cos());
        for gradient in [1e3, -1e3, 1e-2, -1e-3] {
            let (mut value, mut first, mut second) = (1.0f64, 0.0, 0.0);
            adam.rule((0, 10), 0, 0.0).step(&[gradient], one([&mut value, &mut first, &mut second]));
            assert_eq!(value, 1.0);
            let ratios = [first / (0.1 * gradient), second / (0.01 * gradient * gradient)];
            assert!(ratios.iter().all(|ratio| (ratio - 1.0).abs() < 1e-12), "{ratios:?}");
            // v̂ is 0.01 in the mean, so ε is 0.01.
            adam.rule((1, 10), 0, square).step(&[gradient], one([&mut value, &mut first, &mut second]));
            let expected = 1.0 - rate * gradient / (gradient.abs() + 0.01);
            assert!((value - expected).abs() < 1e-12, "{value} {expected}");
        }
    }

    #[test]
    fn a_gradient_of_zero_moves_nothing() {
        for optimizer in [Optimizer::AdaGrad { alpha: 0.1, initial: 0.0 }, Optimizer::Adam { alpha: 0.1 }] {
            let (mut value, mut first, mut second) = (1.0f32, 0.0, 0.0);
            optimizer.rule((1, 10), 0, 1.0).step(&[0.0], one([&mut value, &mut first, &mut second]));
            assert_eq!(value, 1.0);
        }
    }
}
