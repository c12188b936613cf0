//! When an iteration ends.
//!
//! Criteria compose: `(Residual { .. }, IterationLimit(500))` asks one after the other and the first that has an opinion
//! decides.

use crate::observe::Iteration;
use crate::scalar::Real;

/// Why a criterion ends an iteration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum StopReason {
    /// The residual of the recurrence meets the tolerance.
    ResidualMet,
    /// The limit of iterations is reached.
    IterationLimit,
    /// What is left is predicted to take longer than another method.
    Slow,
    /// The guess has no digit in common with an answer.
    WorthlessGuess,
    /// A criterion of the caller's own, in its words.
    Other(&'static str),
}

/// Decides, at every iteration from number 0 on, whether to end.
pub trait StoppingCriterion<R> {
    /// `Some` to end.
    fn check(&mut self, iteration: &Iteration<R>) -> Option<StopReason>;
}

/// A closure that says whether to end.
impl<R, F: FnMut(&Iteration<R>) -> bool> StoppingCriterion<R> for F {
    fn check(&mut self, iteration: &Iteration<R>) -> Option<StopReason> {
        self(iteration).then_some(StopReason::Other("the caller's criterion"))
    }
}

/// ‖r‖₂ ≤ max(rtol ‖b‖₂, atol).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Residual<R> {
    /// Relative to ‖b‖₂.
    pub rtol: R,
    /// Absolute.
    pub atol: R,
}

impl<R: Real> StoppingCriterion<R> for Residual<R> {
    fn check(&mut self, iteration: &Iteration<R>) -> Option<StopReason> {
        let relative = self.rtol * iteration.rhs_norm;
        let bound = if relative > self.atol { relative } else { self.atol };
        (iteration.residual_norm <= bound).then_some(StopReason::ResidualMet)
    }
}

/// At most this many iterations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IterationLimit(pub usize);

impl<R> StoppingCriterion<R> for IterationLimit {
    fn check(&mut self, iteration: &Iteration<R>) -> Option<StopReason> {
        (iteration.index >= self.0).then_some(StopReason::IterationLimit)
    }
}

impl<R, A: StoppingCriterion<R>, B: StoppingCriterion<R>> StoppingCriterion<R> for (A, B) {
    fn check(&mut self, iteration: &Iteration<R>) -> Option<StopReason> {
        self.0.check(iteration).or_else(|| self.1.check(iteration))
    }
}

impl<R, A, B, C> StoppingCriterion<R> for (A, B, C)
where
    A: StoppingCriterion<R>,
    B: StoppingCriterion<R>,
    C: StoppingCriterion<R>,
{
    fn check(&mut self, iteration: &Iteration<R>) -> Option<StopReason> {
        let first = self.0.check(iteration).or_else(|| self.1.check(iteration));
        first.or_else(|| self.2.check(iteration))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(index: usize, residual_norm: f64) -> Iteration<f64> {
        Iteration { index, residual_norm, rhs_norm: 10.0 }
    }

    #[test]
    fn the_larger_of_relative_and_absolute_bound_counts() {
        let mut s = Residual { rtol: 1e-2, atol: 0.05 };
        assert_eq!(s.check(&at(3, 0.1)), Some(StopReason::ResidualMet));
        assert_eq!(s.check(&at(3, 0.11)), None);
        s.atol = 0.2;
        assert_eq!(s.check(&at(3, 0.2)), Some(StopReason::ResidualMet));
    }

    #[test]
    fn nan_never_meets_a_tolerance() {
        assert_eq!(Residual { rtol: 1.0, atol: 1.0 }.check(&at(0, f64::NAN)), None);
    }

    #[test]
    fn the_first_criterion_with_an_opinion_decides() {
        let mut s = (Residual { rtol: 1e-2, atol: 0.0 }, IterationLimit(5));
        assert_eq!(s.check(&at(5, 0.01)), Some(StopReason::ResidualMet));
        assert_eq!(s.check(&at(5, 1.0)), Some(StopReason::IterationLimit));
        assert_eq!(s.check(&at(4, 1.0)), None);
    }
}
