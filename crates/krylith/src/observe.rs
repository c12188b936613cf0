//! Who watches an iteration.

use crate::scalar::Real;
use std::ops::ControlFlow;

/// What is known at the end of an iteration; iteration 0 is the initial guess.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Iteration<R> {
    /// 0 for the initial guess.
    pub index: usize,
    /// ‖r‖₂ as the method's recurrence has it.
    pub residual_norm: R,
    /// ‖b‖₂.
    pub rhs_norm: R,
}

/// Sees every iteration from number 0 on, the same record for every method, and may end it.
pub trait Observer<R> {
    /// `Break` ends the solve with what has been reached.
    fn iterated(&mut self, iteration: &Iteration<R>) -> ControlFlow<()>;
}

/// Watches nothing.
impl<R> Observer<R> for () {
    fn iterated(&mut self, _: &Iteration<R>) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

impl<R, F: FnMut(&Iteration<R>) -> ControlFlow<()>> Observer<R> for F {
    fn iterated(&mut self, iteration: &Iteration<R>) -> ControlFlow<()> {
        self(iteration)
    }
}

/// Keeps the residual norms, from iteration 0 on.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct History<R> {
    /// ‖r‖₂ by iteration.
    pub residual_norms: Vec<R>,
}

impl<R> History<R> {
    /// A history that takes this many iterations without allocating. If there is no memory for so many, it has room for none and
    /// allocates as it grows.
    pub fn with_capacity(iterations: usize) -> Self {
        let mut residual_norms = Vec::new();
        let _ = residual_norms.try_reserve_exact(iterations.saturating_add(1));
        History { residual_norms }
    }
}

impl<R: Real> Observer<R> for History<R> {
    fn iterated(&mut self, iteration: &Iteration<R>) -> ControlFlow<()> {
        self.residual_norms.push(iteration.residual_norm);
        ControlFlow::Continue(())
    }
}
