//! When a run is left for what follows it: its remainder, predicted from the residuals so far, costs more.
//!
//! The slope of the best residual predicts how many more iterations are needed: over the last [`WINDOW`] iterations or since iteration
//! [`SKIPPED`], whichever is steeper, because conjugate gradients often stay on a plateau before they converge. What follows is priced only when that is
//! many, because pricing a complete factor takes its analysis; and a lower bound is tried first. A run that meets its tolerance
//! soon, as it seems, is never left; nor is one before √n iterations, which information needs to cross a mesh in the plane.

use crate::observe::Iteration;

/// Iterations that a slope is taken over.
pub(super) const WINDOW: usize = 50;
/// Iterations in the beginning that say nothing: the first ones often reduce the residual by much, once.
const SKIPPED: usize = 10;
/// A remainder up to this many times as expensive as what follows is gone on with: predictions are good to a factor of two.
const TRUST: f64 = 2.0;

/// Costs in nanoseconds of the reference machine.
pub(super) struct Patience<'a> {
    /// Iterations that are waited for in any case.
    pub(super) begin: usize,
    /// An iteration.
    pub(super) iteration: f64,
    /// Less than what follows costs.
    pub(super) at_least: f64,
    /// What follows; asked once.
    pub(super) price: Box<dyn FnOnce() -> f64 + 'a>,
}

/// A run that is watched.
pub(super) struct Watcher<'a> {
    patience: Patience<'a>,
    /// What was asked.
    price: Option<f64>,
    /// The least residual up to each of the last iterations.
    best: Vec<f64>,
}

impl<'a> Watcher<'a> {
    pub(super) fn new(patience: Patience<'a>) -> Self {
        Watcher { patience, price: None, best: Vec::new() }
    }

    /// Residuals so far say nothing about those to come.
    pub(super) fn restart(&mut self) {
        self.best.clear();
    }

    /// Whether to leave the run, `bound` being the residual that is asked for.
    pub(super) fn is_spent(&mut self, at: &Iteration<f64>, bound: f64) -> bool {
        let least = self.best.last().map_or(at.residual_norm, |best| best.min(at.residual_norm));
        self.best.push(least);
        let last = self.best.len() - 1;
        if last < self.patience.begin.max(SKIPPED + WINDOW) {
            return false;
        }
        let slope_since = |k: usize| (self.best[k] / least).ln() / (last - k) as f64;
        let slope = f64::max(slope_since(last - WINDOW), slope_since(SKIPPED));
        let left = (least / bound).ln();
        let remaining = if slope > 0.0 { left / slope } else { f64::INFINITY };
        let cost = remaining * self.patience.iteration;
        if remaining < WINDOW as f64 || cost <= TRUST * self.patience.at_least {
            return false;
        }
        let price = self.price.get_or_insert_with(|| {
            let price = std::mem::replace(&mut self.patience.price, Box::new(|| f64::INFINITY));
            price()
        });
        cost > TRUST * *price
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left_at(rate: f64, price: f64) -> Option<usize> {
        let patience =
            Patience { begin: 0, iteration: 1.0, at_least: price / 4.0, price: Box::new(move || price) };
        let mut watcher = Watcher::new(patience);
        (0..10_000).find(|&index| {
            let residual_norm = rate.powi(index as i32);
            let at = Iteration { index, residual_norm, rhs_norm: 1.0 };
            residual_norm > 1e-8 && watcher.is_spent(&at, 1e-8)
        })
    }

    #[test]
    fn slow_runs_are_left_as_soon_as_there_is_a_slope() {
        // 10⁻⁸ takes 18,000 iterations.
        assert_eq!(left_at(0.999, 1000.0), Some(SKIPPED + WINDOW));
        assert_eq!(left_at(1.0, 1000.0), Some(SKIPPED + WINDOW));
    }

    #[test]
    fn runs_that_are_cheaper_than_what_follows_are_not() {
        assert_eq!(left_at(0.999, 10_000.0), None);
        assert_eq!(left_at(0.999, f64::INFINITY), None);
        // Fast ones end within the window.
        assert_eq!(left_at(0.8, 1.0), None);
    }
}
