//! Krylov methods, one file each, generic over [`Space`].
//!
//! A method is a workspace: `new` allocates it for a [`System`], and `solve` then runs any number of times without
//! allocating. The guess in `x` is always used.
//!
//! | method | A | M | A | M⁻¹ | synchronisations | updates | vectors stored |
//! |---|---|---|---|---|---|---|---|
//! | [`Cg`] | Hermitian positive definite | the same | 1 | 1 | 3 | 3 | 5 |
//! | [`EisenstatCg`] | the same | (D + L) D⁻¹ (D + U) with A's L and U | 0 | 1 | 3 | 4 | 5 |
//! | [`Minres`] | Hermitian, may be indefinite | Hermitian positive definite | 1 | 1 | 3 | 6 | 8 |
//! | [`BiCgStab`] | any | any, fixed | 2 | 2 | 3 | 6 | 8 |
//! | [`Gmres`] with restart m | any | any, fixed | 1 | 1 | 2 | j + 1 to 2j + 1 | m + 3 |
//! | [`Fgmres`] with restart m | any | any, may change | 1 | 1 | 2 | j + 1 to 2j + 1 | 2m + 2 |
//! | [`Lsmr`] | any, singular too, with Aᴴ | any with M⁻ᴴ | 2 | 2 | 2 | 5 | 7 |
//!
//! The four columns in the middle count what one iteration applies, waits for and updates; j is the number of the step
//! since the restart. A restart costs one A, one synchronisation and m updates and a few more; for `Gmres` also one M⁻¹.
//! An update writes one vector; a space may fuse several into one pass.
//!
//! All of them report ‖b − A x‖₂, not a norm changed by the preconditioner: MINRES carries the residual along, the others
//! are preconditioned from the right or need nothing else.
//!
//! One of the vectors keeps the best iterate in case the method loses it again (`best.rs`): `kept` gives it after a solve.

mod arnoldi;
mod best;
mod bicgstab;
mod cg;
mod eisenstat;
mod fgmres;
mod gmres;
mod hessenberg;
mod lsmr;
mod method;
mod minres;

use best::Best;
pub use bicgstab::BiCgStab;
pub use cg::Cg;
pub use eisenstat::{EisenstatCg, SplitSystem};
pub use fgmres::Fgmres;
pub use gmres::Gmres;
pub use lsmr::Lsmr;
pub use method::{KrylovMethod, Start, for_method};
pub use minres::Minres;

use crate::error::BackendError;
use crate::observe::{Iteration, Observer};
use crate::operator::{AnyOperator, AnyScratch};
use crate::scalar::{Real, Scalar};
use crate::space::{Activity, Space, require_same};
use crate::stop::{StopReason, StoppingCriterion};
use std::ops::ControlFlow;

/// What a solve runs on: a space, the operator A and the preconditioner M⁻¹, all shared.
pub struct System<'a, S: Space> {
    /// Where the vectors live.
    pub space: &'a S,
    /// y = A x.
    pub a: &'a dyn AnyOperator<S>,
    /// y = M⁻¹ x.
    pub m: &'a dyn AnyOperator<S>,
}

impl<S: Space> Clone for System<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S: Space> Copy for System<'_, S> {}

impl<S: Space> System<'_, S> {
    /// A square and M⁻¹ of the same size.
    fn check(&self) -> Result<S::Size, BackendError> {
        let size = self.a.domain();
        require_same("range and domain of A", &self.a.range(), &size)?;
        require_same("domain of M⁻¹ and of A", &self.m.domain(), &size)?;
        require_same("range of M⁻¹ and domain of A", &self.m.range(), &size)?;
        Ok(size)
    }

    /// What every solve begins with: sizes agree; r = b − A x; ‖b‖ and ‖r‖ in one synchronisation.
    fn start(
        &self,
        b: &S::Vector,
        x: &S::Vector,
        r: &mut S::Vector,
        a_scratch: &mut AnyScratch,
    ) -> Result<Iteration<S::Real>, BackendError> {
        let size = self.check()?;
        require_same("b and the domain of A", &self.space.size(b), &size)?;
        require_same("x and the domain of A", &self.space.size(x), &size)?;
        require_same("workspace and the domain of A", &self.space.size(r), &size)?;
        self.space.during(Activity::Product, || self.a.apply(self.space, x, r, a_scratch))?;
        self.space.axpby(S::Scalar::ONE, b, -S::Scalar::ONE, r)?;
        let mut squares = [S::Scalar::ZERO; 2];
        self.space.dots(&[(b, b), (&*r, &*r)], &mut squares)?;
        let [rhs_norm, residual_norm] = squares.map(|s| s.real().sqrt());
        Ok(Iteration { index: 0, residual_norm, rhs_norm })
    }
}

/// How an iteration ended, by its own recurrence: no residual has been recomputed.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Status {
    /// The stopping criterion ended it, or a residual of exactly zero did: that meets any tolerance.
    Stopped(StopReason),
    /// The observer ended it.
    Interrupted,
    /// pᴴ A p ≤ 0: A is not positive definite.
    IndefiniteOperator,
    /// rᴴ M⁻¹ r ≤ 0: M is not positive definite.
    IndefinitePreconditioner,
    /// The recurrence cannot go on: it would divide by zero.
    Breakdown {
        /// What vanished, in the letters of the method's file.
        what: &'static str,
    },
    /// An infinite number or NaN came up.
    NotFinite,
    /// The residual has grown beyond 1/ε times the least of the run.
    Diverged,
}

/// The end of an iteration.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Finish<R> {
    /// How it ended.
    pub status: Status,
    /// Iterations done.
    pub iterations: usize,
    /// ‖r‖₂ of the last one, as the recurrence has it.
    pub residual_norm: R,
}

/// The end at this iteration.
fn finish<R: Real>(at: &Iteration<R>, status: Status) -> Finish<R> {
    Finish { status, iterations: at.index, residual_norm: at.residual_norm }
}

/// Shows an iteration to the observer, then says whether it is the last.
fn judge<R: Real, V>(
    at: &Iteration<R>,
    stop: &mut (impl StoppingCriterion<R> + ?Sized),
    observer: &mut (impl Observer<R, V> + ?Sized),
) -> Option<Status> {
    let observed = observer.iterated(at);
    if !at.residual_norm.is_finite() {
        Some(Status::NotFinite)
    } else if let Some(reason) = stop.check(at) {
        Some(Status::Stopped(reason))
    } else if observed == ControlFlow::Break(()) {
        Some(Status::Interrupted)
    } else if at.residual_norm == R::ZERO {
        Some(Status::Stopped(StopReason::ResidualMet))
    } else {
        None
    }
}
