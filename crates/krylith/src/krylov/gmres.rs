//! GMRES(m), preconditioned from the right, for A x = b with any A and any fixed M.
//!
//!   r = b − A x;  β = ‖r‖;  v₁ = r / β;
//!   for j = 1 … m:  w = A M⁻¹ vⱼ;  h = Vᴴw;  w −= V h;  h_{j+1,j} = ‖w‖;  v_{j+1} = w / ‖w‖;
//!   y minimises ‖β e₁ − H y‖;  x += M⁻¹ V y;  start again
//!
//! An iteration is one step j: 1 A, 1 M⁻¹, 2 synchronisations (Gram–Schmidt, see `arnoldi.rs`), j + 1 updates, or 2j + 1; a
//! restart costs one A, one M⁻¹ and one synchronisation more. Stores v₁ … v_{m+1}, z and the best x. A restart m larger than the number
//! of unknowns wastes memory and does no other harm.
//!
//! What is reported: within a cycle ‖β e₁ − H y‖, which is ‖b − A x‖ up to a factor near 1 (`arnoldi.rs`); for the last step of a cycle the residual
//! itself, as it is computed for the restart. x is only formed at the end of a cycle or of the solve.
//!
//! Breakdowns: h_{j+1,j} = 0 (to 10 ε of the column of H) means that the space is invariant and holds the solution: the
//! cycle ends early, and the true residual decides whether there is another. If H is singular as well
//! (10 ε ‖H‖ ‖R⁻¹ eⱼ‖ ≥ 1, an estimate of its condition), then so is A M⁻¹ on the space: [`Status::Breakdown`], and x is the
//! minimiser over the space before that step.
//!
//! Deviation from the paper: preconditioned from the right, so that the residual is the true one; Gram–Schmidt classical and
//! twice where needed instead of modified, for its few synchronisations.
//!
//! Reference: Saad & Schultz 1986, doi:10.1137/0907058; Saad, Iterative Methods for Sparse Linear Systems, 2nd ed.,
//! algorithm 9.5.

use super::arnoldi::Arnoldi;
use super::{Best, Finish, Status, System, finish};
use crate::error::BackendError;
use crate::observe::{Iteration, Observer};
use crate::operator::AnyScratch;
use crate::scalar::Scalar;
use crate::space::{Activity, Space};
use crate::stop::StoppingCriterion;
use std::ops::ControlFlow;

/// The workspace of a solve by restarted GMRES; it serves any number of solves of the same size.
pub struct Gmres<S: Space> {
    arnoldi: Arnoldi<S>,
    z: S::Vector,
    a_scratch: AnyScratch,
    m_scratch: AnyScratch,
    best: Best<S>,
}

impl<S: Space> Gmres<S> {
    /// Allocates everything that solves of this system need, for a restart after every `restart` iterations (0 counts as
    /// 1).
    pub fn new(system: System<'_, S>, restart: usize) -> Result<Self, BackendError> {
        let size = system.check()?;
        let System { space, a, m } = system;
        Ok(Gmres {
            arnoldi: Arnoldi::new(space, &size, restart)?,
            z: space.zeros(&size)?,
            a_scratch: a.scratch(space)?,
            m_scratch: m.scratch(space)?,
            best: Best::new(space, &size)?,
        })
    }

    /// The best iterate of the last solve that was left for a worse one, and its residual norm by the recurrence.
    pub fn kept(&self) -> Option<(&S::Vector, S::Real)> {
        self.best.kept()
    }

    /// Improves the guess in `x` until the criterion or the observer ends it, or the method breaks down; `x` then holds the
    /// last iterate. Allocates nothing.
    pub fn solve(
        &mut self,
        system: System<'_, S>,
        b: &S::Vector,
        x: &mut S::Vector,
        stop: &mut (impl StoppingCriterion<S::Real> + ?Sized),
        observer: &mut (impl Observer<S::Real, S::Vector> + ?Sized),
    ) -> Result<Finish<S::Real>, BackendError> {
        let mut index = 0;
        self.best.start();
        loop {
            // r = b − A x;  β = ‖r‖;  v₁ = r / β
            let mut now = system.start(b, x, self.arnoldi.first(), &mut self.a_scratch)?;
            now.index = index;
            if let Some(status) = self.best.judge(&now, stop, observer) {
                return Ok(finish(&now, status));
            }
            self.best.keep(system.space, x, now.residual_norm, 0.5)?;
            self.arnoldi.start(system.space, now.residual_norm, b)?;
            let ended = self.cycle(system, &mut now, stop, observer)?;
            self.correct(system, x)?;
            if let Some(status) = ended {
                return Ok(finish(&now, status));
            }
            index = now.index;
        }
    }

    /// Steps until something ends the solve or, with `None`, the cycle.
    fn cycle(
        &mut self,
        system: System<'_, S>,
        now: &mut Iteration<S::Real>,
        stop: &mut (impl StoppingCriterion<S::Real> + ?Sized),
        observer: &mut (impl Observer<S::Real, S::Vector> + ?Sized),
    ) -> Result<Option<Status>, BackendError> {
        let System { space, a, m } = system;
        loop {
            // w = A M⁻¹ vⱼ
            let (v, w) = self.arnoldi.ends();
            space.during(Activity::Preconditioner, || m.apply(space, v, &mut self.z, &mut self.m_scratch))?;
            space.during(Activity::Product, || a.apply(space, &self.z, w, &mut self.a_scratch))?;
            // h = Vᴴw;  w −= V h;  h_{j+1,j} = ‖w‖;  v_{j+1} = w / ‖w‖
            if let ControlFlow::Break(ended) = self.arnoldi.advance(space, now, stop, observer)? {
                return Ok(ended);
            }
        }
    }

    /// y minimises ‖β e₁ − H y‖;  x += M⁻¹ V y.
    fn correct(&mut self, system: System<'_, S>, x: &mut S::Vector) -> Result<(), BackendError> {
        let System { space, m, .. } = system;
        if self.arnoldi.dimension() == 0 {
            return Ok(());
        }
        let combination = self.arnoldi.combination(space)?;
        space.during(Activity::Preconditioner, || {
            m.apply(space, combination, &mut self.z, &mut self.m_scratch)
        })?;
        space.axpby(S::Scalar::ONE, &self.z, S::Scalar::ONE, x)
    }
}
