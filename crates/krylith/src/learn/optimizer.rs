//! How entries move along gradients: AdaGrad and Adam.
//!
//! AdaGrad: h += g²;  l −= α g / √h. Reference: Duchi, Hazan & Singer 2011, JMLR 12.
//! Adam: m = β₁ m + (1 − β₁) g;  v = β₂ v + (1 − β₂) g²;  l −= α m̂ / (√v̂ + ε), m̂ and v̂ without the bias of their start at 0.
//! Reference: Kingma & Ba 2015, arXiv:1412.6980.

use crate::scalar::Real;

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
/// Below this a gradient is rounding.
const SMALL: f64 = 1e-12;

/// What one step does to an entry.
#[derive(Debug, Clone, Copy)]
pub(super) enum Rule<T> {
    AdaGrad { alpha: T },
    Adam { rate: T, unbias: T },
}

impl Optimizer {
    /// What both numbers of an entry begin with.
    pub(super) fn initial<T: Real>(&self) -> T {
        match *self {
            Optimizer::AdaGrad { initial, .. } => T::from_f64(initial),
            Optimizer::Adam { .. } => T::ZERO,
        }
    }

    /// Step `k`, counted from 0, of `steps`; `before` steps of earlier trainings have the moments that it begins with.
    pub(super) fn rule<T: Real>(&self, k: usize, steps: usize, before: usize) -> Rule<T> {
        match *self {
            Optimizer::AdaGrad { alpha, .. } => Rule::AdaGrad { alpha: T::from_f64(alpha) },
            Optimizer::Adam { alpha } => {
                let taken = (before + k + 1) as i32;
                let cosine = 0.5 * (1.0 + libm::cos(std::f64::consts::PI * k as f64 / steps as f64));
                let rate = alpha * cosine / (1.0 - BETA_1.powi(taken));
                let unbias = 1.0 / (1.0 - BETA_2.powi(taken));
                Rule::Adam { rate: T::from_f64(rate), unbias: T::from_f64(unbias) }
            }
        }
    }
}

impl<T: Real> Rule<T> {
    /// Moves an entry; `first` and `second` are its numbers.
    #[inline]
    pub(super) fn step(self, gradient: T, value: &mut T, first: &mut T, second: &mut T) {
        match self {
            Rule::AdaGrad { alpha } => {
                *first += gradient * gradient;
                // An entry that never had a gradient stays.
                if *first > T::ZERO {
                    *value -= alpha * gradient / first.sqrt();
                }
            }
            Rule::Adam { rate, unbias } => {
                let (b1, b2) = (T::from_f64(BETA_1), T::from_f64(BETA_2));
                *first = b1 * *first + (T::ONE - b1) * gradient;
                *second = b2 * *second + (T::ONE - b2) * gradient * gradient;
                *value -= rate * *first / ((*second * unbias).sqrt() + T::from_f64(SMALL));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_steps_by_hand() {
        let (mut value, mut first, mut second) = (1.0f64, 0.1, 0.1);
        let adagrad = Optimizer::AdaGrad { alpha: 0.1, initial: 0.1 };
        adagrad.rule(0, 10, 0).step(2.0, &mut value, &mut first, &mut second);
        assert_eq!((value, first), (1.0 - 0.1 * 2.0 / 4.1f64.sqrt(), 4.1));
        // Adam's first step has the size of its rate, whatever the gradient is.
        for gradient in [1e-3, -5.0] {
            let (mut value, mut first, mut second) = (1.0f64, 0.0, 0.0);
            Optimizer::Adam { alpha: 0.01 }.rule(0, 10, 0).step(
                gradient,
                &mut value,
                &mut first,
                &mut second,
            );
            assert!((value - (1.0 - 0.01 * gradient.signum())).abs() < 1e-9, "{value}");
        }
    }

    #[test]
    fn a_gradient_of_zero_moves_nothing() {
        for optimizer in [Optimizer::AdaGrad { alpha: 0.1, initial: 0.0 }, Optimizer::Adam { alpha: 0.1 }] {
            let (mut value, mut first, mut second) = (1.0f32, 0.0, 0.0);
            optimizer.rule(0, 10, 0).step(0.0, &mut value, &mut first, &mut second);
            assert_eq!(value, 1.0);
        }
    }
}
