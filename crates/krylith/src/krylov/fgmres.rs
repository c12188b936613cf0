//! Flexible GMRES(m) for A x = b with any A, and an M that may change from step to step: an inner iteration, for one.
//!
//!   r = b − A x;  β = ‖r‖;  v₁ = r / β;
//!   for j = 1 … m:  zⱼ = Mⱼ⁻¹ vⱼ;  w = A zⱼ;  h = Vᴴw;  w −= V h;  h_{j+1,j} = ‖w‖;  v_{j+1} = w / ‖w‖;
//!   y minimises ‖β e₁ − H y‖;  x += Z y;  start again
//!
//! An iteration is one step j: 1 A, 1 M⁻¹, 2 synchronisations (Gram–Schmidt, see `arnoldi.rs`), j + 1 updates, or 2j + 1; a
//! restart costs one A and one synchronisation more. Stores v₁ … v_{m+1}, z₁ … z_m and the best x: the z are the price of not having to apply
//! M⁻¹ to V y, which would have no meaning. With a fixed M the iterates are those of GMRES(m).
//!
//! What is reported, and breakdowns: as in `gmres.rs`. That H is singular where h_{j+1,j} = 0 may here be the doing of the
//! preconditioner alone.
//!
//! Deviation from the paper: Gram–Schmidt classical and twice where needed instead of modified, for its few synchronisations.
//!
//! Reference: Saad 1993, doi:10.1137/0914028; Saad, Iterative Methods for Sparse Linear Systems, 2nd ed., algorithm 9.6.

use super::arnoldi::Arnoldi;
use super::{Best, Finish, Status, System, finish};
use crate::error::BackendError;
use crate::observe::{Iteration, Observer};
use crate::operator::AnyScratch;
use crate::space::{Activity, Space};
use crate::stop::StoppingCriterion;
use std::ops::ControlFlow;

/// The workspace of a solve by flexible restarted GMRES; it serves any number of solves of the same size.
pub struct Fgmres<S: Space> {
    arnoldi: Arnoldi<S>,
    z: Vec<S::Vector>,
    a_scratch: AnyScratch,
    m_scratch: AnyScratch,
    best: Best<S>,
}

impl<S: Space> Fgmres<S> {
    /// Allocates everything that solves of this system need, for a restart after every `restart` iterations (0 counts as
    /// 1).
    pub fn new(system: System<'_, S>, restart: usize) -> Result<Self, BackendError> {
        let size = system.check()?;
        let System { space, a, m } = system;
        Ok(Fgmres {
            arnoldi: Arnoldi::new(space, &size, restart)?,
            z: (0..restart.max(1)).map(|_| space.zeros(&size)).collect::<Result<_, _>>()?,
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
            // y minimises ‖β e₁ − H y‖;  x += Z y
            let y = self.arnoldi.coefficients();
            system.space.combine(y, &self.z[..y.len()], x)?;
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
            // zⱼ = Mⱼ⁻¹ vⱼ;  w = A zⱼ
            let z = &mut self.z[self.arnoldi.dimension()];
            let (v, w) = self.arnoldi.ends();
            space.during(Activity::Preconditioner, || m.apply(space, v, z, &mut self.m_scratch))?;
            space.during(Activity::Product, || a.apply(space, z, w, &mut self.a_scratch))?;
            // h = Vᴴw;  w −= V h;  h_{j+1,j} = ‖w‖;  v_{j+1} = w / ‖w‖
            if let ControlFlow::Break(ended) = self.arnoldi.advance(space, now, stop, observer)? {
                return Ok(ended);
            }
        }
    }
}
