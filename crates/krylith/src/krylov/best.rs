//! The best iterate of a run, kept in case the method loses it again.
//!
//! BiCGStab, and CG on a matrix that is not definite, can jump away from an answer and never come back. So before a method steps
//! to an iterate whose residual is larger than that of x, x is copied, unless the copy that is there already has a residual below
//! twice that of x. While residuals fall nothing is copied; a run that ends at 1e-8 copies at most 27 times.
//!
//! A residual beyond 1/ε times the least of the run ends it ([`Status::Diverged`]): no digit of the least one is left in x. Slow or
//! erratic convergence does not.

use super::{Status, judge};
use crate::error::BackendError;
use crate::observe::{Iteration, Observer};
use crate::scalar::{Real, Scalar};
use crate::space::Space;
use crate::stop::StoppingCriterion;

pub(super) struct Best<S: Space> {
    x: S::Vector,
    /// ‖r‖ of the copy, where there is one.
    kept: Option<S::Real>,
    /// The least ‖r‖ of the run.
    least: Option<S::Real>,
}

impl<S: Space> std::fmt::Debug for Best<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Best").field("kept", &self.kept).field("least", &self.least).finish_non_exhaustive()
    }
}

impl<S: Space> Best<S> {
    pub(super) fn new(space: &S, size: &S::Size) -> Result<Self, BackendError> {
        Ok(Best { x: space.zeros(size)?, kept: None, least: None })
    }

    /// Forgets the run before.
    pub(super) fn start(&mut self) {
        (self.kept, self.least) = (None, None);
    }

    /// The copy and its ‖r‖ by the recurrence.
    pub(super) fn kept(&self) -> Option<(&S::Vector, S::Real)> {
        self.kept.map(|norm| (&self.x, norm))
    }

    /// Before `x`, whose residual is `now`, becomes an iterate whose residual is `next`.
    pub(super) fn guard(
        &mut self,
        space: &S,
        x: &S::Vector,
        now: S::Real,
        next: S::Real,
    ) -> Result<(), BackendError> {
        // A `next` that is not a number counts as larger.
        if next <= now { Ok(()) } else { self.keep(space, x, now, 0.5) }
    }

    /// Copies `x` if its residual is at most `factor` times that of the copy.
    pub(super) fn keep(
        &mut self,
        space: &S,
        x: &S::Vector,
        norm: S::Real,
        factor: f64,
    ) -> Result<(), BackendError> {
        if self.kept.is_none_or(|kept| norm <= S::Real::from_f64(factor) * kept) {
            space.copy(x, &mut self.x)?;
            self.kept = Some(norm);
        }
        Ok(())
    }

    /// Shows an iteration to the observer, then says whether it is the last.
    pub(super) fn judge(
        &mut self,
        at: &Iteration<S::Real>,
        stop: &mut (impl StoppingCriterion<S::Real> + ?Sized),
        observer: &mut (impl Observer<S::Real, S::Vector> + ?Sized),
    ) -> Option<Status> {
        let norm = at.residual_norm;
        let least = self.least.filter(|&least| least <= norm).unwrap_or(norm);
        self.least = Some(least);
        let diverged = || (norm * S::Real::EPSILON > least).then_some(Status::Diverged);
        judge(at, stop, observer).or_else(diverged)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::Threads;
    use crate::stop::IterationLimit;

    #[test]
    fn an_iterate_is_copied_before_a_rise_if_it_is_twice_as_good_as_the_copy() {
        let space = Threads::<f64>::new(1);
        let mut best = Best::new(&space, &1).unwrap();
        let kept = |best: &Best<Threads<f64>>| best.kept().map(|(x, norm)| (x[0], norm));
        best.guard(&space, &vec![1.0], 8.0, 4.0).unwrap();
        assert_eq!(kept(&best), None);
        best.guard(&space, &vec![2.0], 4.0, 5.0).unwrap();
        assert_eq!(kept(&best), Some((2.0, 4.0)));
        best.guard(&space, &vec![3.0], 2.5, 3.0).unwrap();
        assert_eq!(kept(&best), Some((2.0, 4.0)));
        best.guard(&space, &vec![4.0], 2.0, f64::NAN).unwrap();
        assert_eq!(kept(&best), Some((4.0, 2.0)));
    }

    #[test]
    fn only_growth_beyond_all_digits_is_divergence() {
        let space = Threads::<f64>::new(1);
        let mut best = Best::new(&space, &1).unwrap();
        let mut at = |index, residual_norm| {
            best.judge(&Iteration { index, residual_norm, rhs_norm: 1.0 }, &mut IterationLimit(9), &mut ())
        };
        assert_eq!(at(0, 1e3), None);
        assert_eq!(at(1, 1e-3), None);
        assert_eq!(at(2, 4e12), None);
        assert_eq!(at(3, 5e12), Some(Status::Diverged));
    }
}
