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

/// A direction of conjugate gradients: the iterate moves along p, and r by a multiple of A p.
#[derive(Debug)]
pub struct Direction<'a, R, V: ?Sized> {
    /// The iteration that the step leads to.
    pub index: usize,
    /// p.
    pub p: &'a V,
    /// A p.
    pub a_p: &'a V,
    /// pᵀ A p.
    pub curvature: R,
}

/// Sees every iteration from number 0 on, the same record for every method, and may end it.
///
/// `V` is what directions are: numbers in the order of A for an observer of [`Solver`](crate::Solver), vectors of the space for one
/// that is handed to a method of [`krylov`](crate::krylov).
pub trait Observer<R, V: ?Sized = [R]> {
    /// `Break` ends the solve with what has been reached.
    fn iterated(&mut self, iteration: &Iteration<R>) -> ControlFlow<()>;

    /// Whether [`direction`](Self::direction) is to be called. An iteration that never forms A p, such as Eisenstat's, is then not
    /// taken; asked once, before a solve.
    fn wants_directions(&self) -> bool {
        false
    }

    /// Whether the direction that leads to this iteration is to be shown; asked before each where directions are wanted. One that is not
    /// is neither copied nor brought into the order of A.
    fn wants_direction(&self, _index: usize) -> bool {
        self.wants_directions()
    }

    /// A direction of conjugate gradients and its product with A, before the step along it. Both are multiplied by the same power of
    /// two where the system is out of range. Other methods have no conjugate directions and do not call this.
    fn direction(&mut self, _: &Direction<'_, R, V>) {}
}

/// Watches nothing.
impl<R, V: ?Sized> Observer<R, V> for () {
    fn iterated(&mut self, _: &Iteration<R>) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

impl<R, V: ?Sized, F: FnMut(&Iteration<R>) -> ControlFlow<()>> Observer<R, V> for F {
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

impl<R: Real, V: ?Sized> Observer<R, V> for History<R> {
    fn iterated(&mut self, iteration: &Iteration<R>) -> ControlFlow<()> {
        self.residual_norms.push(iteration.residual_norm);
        ControlFlow::Continue(())
    }
}
