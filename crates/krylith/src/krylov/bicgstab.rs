//! BiCGStab, preconditioned from the right, for A x = b with any A and any fixed M.
//!
//!   p̂ = M⁻¹ p;  v = A p̂;  α = ρ / r̂ᴴv;  s = r − α v;  ŝ = M⁻¹ s;  t = A ŝ;  ω = tᴴs / tᴴt;
//!   x += α p̂ + ω ŝ;  r = s − ω t;  ρ_new = r̂ᴴr;  β = (ρ_new / ρ)(α / ω);  p = r + β (p − ω v)
//!
//! An iteration is both halves: 2 A, 2 M⁻¹, 3 synchronisations (r̂ᴴv; tᴴs tᴴt ‖s‖; ‖r‖ r̂ᴴr), 6 updates.
//! Stores r r̂ p v t p̂ ŝ and the best x; s is kept in r. r̂ is the first residual, or that of the last restart.
//!
//! Breakdowns, each a [`Status::Breakdown`] that leaves x at an iterate whose residual norm is reported:
//!
//! * ρ = 0, when |ρ| ≤ ε² ‖r̂‖ ‖r‖: rounding alone makes ρ larger than that, so only a true zero is caught, and a ρ that is
//!   merely small, as it is in many solves that converge, is not mistaken for one. The iteration is begun again from x, with r̂ = p = r (Sleijpen & van der
//!   Vorst 1995, doi:10.1007/BF02141261, section 4), and breaks down where ρ vanishes again before ‖r‖ is half of what it was. A b whose entries are zero
//!   but on rows of the identity, as of Dirichlet data, loses r̂ in the first iteration: r is then zero wherever r̂ is not;
//! * r̂ᴴv = 0, when α is not finite;
//! * ω = 0, when |tᴴs| ≤ ε² ‖t‖ ‖s‖, which is also where s = 0 ends. The half step x += α p̂, r = s is sound, so it is taken
//!   and counted as an iteration before the method gives up.
//!
//! Deviation from the paper: ‖s‖ is not tested against the tolerance in the middle of an iteration. ω minimises ‖s − ω t‖,
//! so the second half never makes the residual larger than s; the test would cost a synchronisation an iteration to save one
//! A and one M⁻¹ at the end of a solve.
//!
//! Reference: van der Vorst 1992, doi:10.1137/0913035; Saad, Iterative Methods for Sparse Linear Systems, 2nd ed.,
//! algorithm 7.7.

use super::{Best, Finish, Status, System, finish};
use crate::error::BackendError;
use crate::observe::Observer;
use crate::operator::AnyScratch;
use crate::scalar::{Real, Scalar};
use crate::space::{Activity, Space};
use crate::stop::StoppingCriterion;

/// The workspace of a solve by BiCGStab; it serves any number of solves of the same size.
pub struct BiCgStab<S: Space> {
    r: S::Vector,
    r_hat: S::Vector,
    p: S::Vector,
    v: S::Vector,
    t: S::Vector,
    /// p̂ and ŝ.
    hats: [S::Vector; 2],
    a_scratch: AnyScratch,
    m_scratch: AnyScratch,
    best: Best<S>,
}

impl<S: Space> BiCgStab<S> {
    /// Allocates everything that solves of this system need.
    pub fn new(system: System<'_, S>) -> Result<Self, BackendError> {
        let size = system.check()?;
        let System { space, a, m } = system;
        Ok(BiCgStab {
            r: space.zeros(&size)?,
            r_hat: space.zeros(&size)?,
            p: space.zeros(&size)?,
            v: space.zeros(&size)?,
            t: space.zeros(&size)?,
            hats: [space.zeros(&size)?, space.zeros(&size)?],
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
        let System { space, .. } = system;
        let one = S::Scalar::ONE;

        // r = b − A x;  r̂ = r;  p = r;  ρ = r̂ᴴr
        let mut now = system.start(b, x, &mut self.r, &mut self.a_scratch)?;
        space.copy(&self.r, &mut self.r_hat)?;
        space.copy(&self.r, &mut self.p)?;
        let mut shadow_norm = now.residual_norm;
        let mut restarts_below = S::Real::from_f64(f64::INFINITY);
        let mut rho = S::Scalar::from_real(shadow_norm * shadow_norm);
        let mut broken = None;
        self.best.start();
        loop {
            if let Some(status) = self.best.judge(&now, stop, observer).or(broken) {
                return Ok(finish(&now, status));
            }
            // p̂ = M⁻¹ p;  v = A p̂;  α = ρ / r̂ᴴv;  s = r − α v
            let alpha = match self.first_half(system, rho)? {
                Ok(alpha) => alpha,
                Err(status) => return Ok(finish(&now, status)),
            };
            // ŝ = M⁻¹ s;  t = A ŝ;  tᴴs, tᴴt, sᴴs
            let products = self.second_half(system)?;
            if products.iter().any(|d| !d.is_finite()) {
                return Ok(finish(&now, Status::NotFinite));
            }
            let [ts, tt, ss] = products;
            let [t_norm, s_norm] = [tt, ss].map(|d| d.real().sqrt());
            now.index += 1;
            if vanishes::<S>(ts, t_norm, s_norm) {
                // x += α p̂;  r = s
                self.best.guard(space, x, now.residual_norm, s_norm)?;
                space.axpby(alpha, &self.hats[0], one, x)?;
                now.residual_norm = s_norm;
                broken = Some(Status::Breakdown { what: "ω = 0" });
                continue;
            }
            // ω = tᴴs / tᴴt;  r = s − ω t;  ρ_new = r̂ᴴr
            let omega = ts / tt;
            let [rr, rho_new] = space.update_dots(-omega, &self.t, &mut self.r, &self.r_hat)?;
            let norm = rr.real().sqrt();
            // x += α p̂ + ω ŝ
            self.best.guard(space, x, now.residual_norm, norm)?;
            space.combine(&[alpha, omega], &self.hats, x)?;
            now.residual_norm = norm;
            if vanishes::<S>(rho_new, shadow_norm, norm) {
                if norm > restarts_below {
                    broken = Some(Status::Breakdown { what: "ρ = 0" });
                    continue;
                }
                // r̂ = r;  p = r;  ρ = r̂ᴴr
                space.copy(&self.r, &mut self.r_hat)?;
                space.copy(&self.r, &mut self.p)?;
                rho = S::Scalar::from_real(norm * norm);
                (shadow_norm, restarts_below) = (norm, S::Real::from_f64(0.5) * norm);
                continue;
            }
            // β = (ρ_new / ρ)(α / ω);  p = r + β (p − ω v)
            let beta = (rho_new / rho) * (alpha / omega);
            space.bicgstab_direction(&self.r, beta, omega, &self.v, &mut self.p)?;
            rho = rho_new;
        }
    }

    /// p̂ = M⁻¹ p;  v = A p̂;  α = ρ / r̂ᴴv;  s = r − α v. Gives α, or why there is none.
    fn first_half(
        &mut self,
        system: System<'_, S>,
        rho: S::Scalar,
    ) -> Result<Result<S::Scalar, Status>, BackendError> {
        let System { space, a, m } = system;
        let p_hat = &mut self.hats[0];
        space.during(Activity::Preconditioner, || m.apply(space, &self.p, p_hat, &mut self.m_scratch))?;
        space.during(Activity::Product, || a.apply(space, p_hat, &mut self.v, &mut self.a_scratch))?;
        let rv = space.dot(&self.r_hat, &self.v)?;
        if !rv.is_finite() {
            return Ok(Err(Status::NotFinite));
        }
        let alpha = rho / rv;
        if !alpha.is_finite() {
            return Ok(Err(Status::Breakdown { what: "r̂ᴴv = 0" }));
        }
        space.axpby(-alpha, &self.v, S::Scalar::ONE, &mut self.r)?;
        Ok(Ok(alpha))
    }

    /// ŝ = M⁻¹ s;  t = A ŝ. Gives tᴴs, tᴴt and sᴴs.
    fn second_half(&mut self, system: System<'_, S>) -> Result<[S::Scalar; 3], BackendError> {
        let System { space, a, m } = system;
        let BiCgStab { r: s, t, hats: [_, s_hat], a_scratch, m_scratch, .. } = self;
        space.during(Activity::Preconditioner, || m.apply(space, s, s_hat, m_scratch))?;
        space.during(Activity::Product, || a.apply(space, s_hat, t, a_scratch))?;
        let mut products = [S::Scalar::ZERO; 3];
        space.dots(&[(&*t, &*s), (&*t, &*t), (&*s, &*s)], &mut products)?;
        Ok(products)
    }
}

/// |xᴴy| ≤ ε² ‖x‖ ‖y‖.
fn vanishes<S: Space>(product: S::Scalar, x_norm: S::Real, y_norm: S::Real) -> bool {
    product.abs() <= S::Real::EPSILON * x_norm * (S::Real::EPSILON * y_norm)
}
