//! What a probe says: how many iterations of conjugate gradients a goal takes, and whether a solve makes progress at all.

use crate::observe::{Direction, Iteration, Observer};
use crate::outcome::Outcome;
use crate::report::Report;
use std::ops::ControlFlow;

/// How many iterations a relative residual takes, as a solve shows that was to reach it; infinite where it never would have.
pub(crate) fn iterations_to(goal: f64, report: &Report) -> f64 {
    match report.outcome {
        Outcome::Converged | Outcome::MaxIterations => crossing(&report.history, goal),
        // No x would be much better, so it counts by what was reached.
        Outcome::AttainableAccuracy => report.iterations as f64 * missing(report.relative_residual, goal),
        // What broke down would not have gone on as it began.
        _ => f64::INFINITY,
    }
}

/// At which iteration a history falls below a goal, between two of them as the logarithm does. Where it never does, that at which it would with the mean
/// reduction to its least; infinite where it was never reduced.
fn crossing(history: &[f64], goal: f64) -> f64 {
    let Some(k) = history.iter().position(|&r| r <= goal) else {
        let least = history.iter().fold(1.0, |least: f64, &r| least.min(r));
        let taken = history.len().saturating_sub(1).max(1) as f64;
        return taken * missing(least, goal);
    };
    if k == 0 {
        return 0.0;
    }
    let (before, after) = (history[k - 1].ln(), history[k].max(f64::MIN_POSITIVE).ln());
    (k - 1) as f64 + (before - goal.ln()) / (before - after)
}

/// How many times as many iterations a goal takes as what was reached did, if they reduce the residual alike; 1 at least.
fn missing(reached: f64, goal: f64) -> f64 {
    if reached < 1.0 { (goal.ln() / reached.ln()).max(1.0) } else { f64::INFINITY }
}

/// Ends a solve that makes no progress, and shows iterations to another observer.
pub(crate) struct ProgressGuard<'a> {
    pub(crate) observer: &'a mut dyn Observer<f64>,
    /// Iterations in which the residual has to be halved at least once.
    pub(crate) most: usize,
    /// The residual that has to be halved, and when it was reached.
    least: (f64, usize),
    /// It has ended the solve.
    pub(crate) has_ended: bool,
}

impl<'a> ProgressGuard<'a> {
    pub(crate) fn new(observer: &'a mut dyn Observer<f64>, most: usize) -> Self {
        ProgressGuard { observer, most, least: (f64::INFINITY, 0), has_ended: false }
    }
}

impl Observer<f64> for ProgressGuard<'_> {
    fn iterated(&mut self, iteration: &Iteration<f64>) -> ControlFlow<()> {
        let Iteration { index, residual_norm, .. } = *iteration;
        if residual_norm <= 0.5 * self.least.0 {
            self.least = (residual_norm, index);
        }
        self.observer.iterated(iteration)?;
        self.has_ended = index > self.least.1.saturating_add(self.most);
        if self.has_ended { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn wants_directions(&self) -> bool {
        self.observer.wants_directions()
    }

    fn wants_direction(&self, index: usize) -> bool {
        self.observer.wants_direction(index)
    }

    fn direction(&mut self, direction: &Direction<'_, f64, [f64]>) {
        self.observer.direction(direction);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_history_crosses_a_goal_between_iterations() {
        assert_eq!(crossing(&[1.0, 0.1, 1e-3], 1e-2), 1.5);
        assert_eq!(crossing(&[0.0], 1e-2), 0.0);
        // A tenth in one iteration, so two for a hundredth, though it went up in between.
        assert!((crossing(&[1.0, 0.1], 1e-2) - 2.0).abs() < 1e-12);
        for history in [&[1.0, 2.0][..], &[1.0], &[]] {
            assert_eq!(crossing(history, 1e-2), f64::INFINITY);
        }
    }

    #[test]
    fn a_solve_without_progress_is_ended() {
        let end = |norms: &[f64]| {
            let mut nobody = ();
            let mut progress = ProgressGuard::new(&mut nobody, 2);
            let ends = |(index, &residual_norm): (usize, &f64)| {
                progress.iterated(&Iteration { index, residual_norm, rhs_norm: 1.0 }).is_break()
            };
            (norms.iter().enumerate().position(ends), progress.has_ended)
        };
        assert_eq!(end(&[1.0, 0.9, 0.5, 0.4, 0.3, 0.2]), (None, false));
        assert_eq!(end(&[1.0, 0.4, 0.3, 0.3, 0.1]), (None, false));
        assert_eq!(end(&[1.0, 2.0, 1.0, 0.6, 0.1]), (Some(3), true));
    }
}
