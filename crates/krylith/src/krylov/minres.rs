//! Preconditioned MINRES for A x = b, A symmetric (Hermitian), definite or not, M Hermitian positive definite.
//!
//! Lanczos' process in the inner product of M⁻¹ gives u₁ u₂ … with uᵢᴴ M⁻¹ uⱼ = δᵢⱼ and, for qₖ = M⁻¹ uₖ,
//!
//!   β₁ u₁ = r₀;  αₖ = qₖᴴ A qₖ;  β_{k+1} u_{k+1} = A qₖ − αₖ uₖ − βₖ u_{k−1}
//!
//! xₖ = x₀ + Q y with the y that minimises ‖β₁ e₁ − T y‖, T tridiagonal, which is ‖r‖ in the norm of M⁻¹. Rotations
//! Gₖ = [cₖ sₖ; −sₖ cₖ] make T triangular, with γₖ on the diagonal and δₖ, εₖ above, and β₁ e₁ into (φ₁ … φₖ, φ̄ₖ):
//!
//!   εₖ = s_{k−2} βₖ;  δₖ = c_{k−1} c_{k−2} βₖ + s_{k−1} αₖ;  γ̄ = c_{k−1} αₖ − s_{k−1} c_{k−2} βₖ;
//!   γₖ = √(γ̄² + β_{k+1}²);  cₖ = γ̄ / γₖ;  sₖ = β_{k+1} / γₖ;  φₖ = cₖ φ̄_{k−1};  φ̄ₖ = −sₖ φ̄_{k−1};
//!   dₖ = qₖ − (δₖ / γ_{k−1}) d_{k−1} − (εₖ / γ_{k−2}) d_{k−2};  τₖ = φₖ / γₖ;  xₖ = x_{k−1} + τₖ dₖ
//!
//! The stopping rule wants ‖r‖₂, which no scalar of this recurrence gives unless M = I. So the residual itself is carried
//! along. What T leaves is rₖ = U_{k+1} (G₁ᵀ … Gₖᵀ) φ̄ₖ e_{k+1}. Since Gₖᵀ e_{k+1} = −sₖ eₖ + cₖ e_{k+1}, that is
//! rₖ = φ̄ₖ (−sₖ r_{k−1} / φ̄_{k−1} + cₖ u_{k+1}), and with φ̄ₖ = −sₖ φ̄_{k−1} and sₖ = β_{k+1} / γₖ
//!
//!   rₖ = sₖ² r_{k−1} − τₖ (β_{k+1} u_{k+1})
//!
//! It costs one vector, one update and one product per iteration, and divides by nothing. βₖ uₖ and βₖ qₖ are stored without
//! dividing by βₖ, dₖ without γₖ: the factors go into the coefficients.
//!
//! Per iteration: 1 A, 1 M⁻¹, 3 synchronisations (α, β, ‖r‖), 6 updates. Stores βₖuₖ, β_{k−1}u_{k−1}, βₖqₖ, A q, two d, r and the
//! best x.
//!
//! Breakdowns: r₀ᴴ M⁻¹ r₀ ≤ 0, or a later β² < 0, means that M is not positive definite. The other two are a
//! [`Status::Breakdown`]:
//!
//! * A M⁻¹ r_{k−1} = 0: A is singular, b is not in its range, and x_{k−1} is the least-squares solution in the norm of M⁻¹. The
//!   ratio of the norms of A M⁻¹ r_{k−1} and r_{k−1} is ‖(γ̄, c_{k−1} β_{k+1})‖ (Choi, Paige & Saunders 2011,
//!   doi:10.1137/100787921); it counts as zero below 1000 ε of the largest column of T. The bound is that low to leave systems
//!   of condition 1e12 alone. Where a singular system does not fall below it, r stays at the least squares while x drifts, and
//!   the limit of iterations has to end it.
//! * β_{k+1} = 0: the Krylov space is exhausted and xₖ solves the system. If the criterion still wants more, there is nothing
//!   more to be had.
//!
//! ‖r‖₂ may rise now and then when M ≠ I; it is the norm in M⁻¹ that goes down.
//!
//! Reference: Paige & Saunders 1975, doi:10.1137/0712047.

use super::hessenberg::hypot;
use super::{Best, Finish, Status, System, finish};
use crate::error::BackendError;
use crate::observe::Observer;
use crate::operator::AnyScratch;
use crate::scalar::{Real, Scalar};
use crate::space::{Activity, Space};
use crate::stop::StoppingCriterion;
use std::mem::swap;

/// Multiples of ε, relative to T, below which A M⁻¹ r counts as zero.
const SINGULAR: f64 = 1000.0;

/// A M⁻¹ r below this, relative to T and r, may be the least squares of a singular system: x is kept, whenever it has halved.
const NEARLY_SINGULAR: f64 = 1e-6;

/// Residuals of least squares differ by less than this.
const SAME_LEVEL: f64 = 0.999;

/// The workspace of a solve by MINRES; it serves any number of solves of the same size.
pub struct Minres<S: Space> {
    r: S::Vector,
    /// βₖ uₖ.
    u: S::Vector,
    /// β_{k−1} u_{k−1}, and then β_{k+1} u_{k+1}.
    u_old: S::Vector,
    /// βₖ qₖ.
    q: S::Vector,
    /// A times that.
    aq: S::Vector,
    /// d_{k−1}.
    d: S::Vector,
    /// d_{k−2}, and then dₖ.
    d_old: S::Vector,
    a_scratch: AnyScratch,
    m_scratch: AnyScratch,
    best: Best<S>,
}

impl<S: Space> Minres<S> {
    /// Allocates everything that solves of this system need.
    pub fn new(system: System<'_, S>) -> Result<Self, BackendError> {
        let size = system.check()?;
        let System { space, a, m } = system;
        Ok(Minres {
            r: space.zeros(&size)?,
            u: space.zeros(&size)?,
            u_old: space.zeros(&size)?,
            q: space.zeros(&size)?,
            aq: space.zeros(&size)?,
            d: space.zeros(&size)?,
            d_old: space.zeros(&size)?,
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
        // r = b − A x
        let mut now = system.start(b, x, &mut self.r, &mut self.a_scratch)?;
        let mut qr = Tridiagonal::new();
        let mut least_ratio = S::Real::from_f64(NEARLY_SINGULAR);
        // ‖r‖ where the least squares came near: from there on rounding may make the recurrence fall while x drifts away.
        let mut level = None;
        let mut broken = None;
        self.best.start();
        loop {
            if let Some(status) = self.best.judge(&now, stop, observer).or(broken) {
                return Ok(finish(&now, status));
            }
            if now.index == 0 {
                // β₁ u₁ = r₀
                match self.begin(system)? {
                    Ok(beta) => qr.start(beta),
                    Err(status) => return Ok(finish(&now, status)),
                }
            }
            // αₖ, β_{k+1} u_{k+1} (in u), dₖ (in d)
            self.lanczos(system, &mut qr)?;
            let beta = match root(space.dot(&self.u, &self.q)?) {
                Ok(beta) => beta,
                Err(status) => return Ok(finish(&now, status)),
            };
            // γₖ cₖ sₖ φₖ;  τₖ = φₖ / γₖ
            let tau = match qr.rotate(beta) {
                Ok(tau) => S::Scalar::from_real(tau),
                Err(status) => return Ok(finish(&now, status)),
            };
            // rₖ = sₖ² r_{k−1} − τₖ β_{k+1} u_{k+1};  xₖ = x_{k−1} + τₖ dₖ
            space.axpby(-tau, &self.u, S::Scalar::from_real(qr.s * qr.s), &mut self.r)?;
            let norm = space.norm(&self.r)?;
            match level {
                None if qr.normal_ratio >= least_ratio => {
                    self.best.guard(space, x, now.residual_norm, norm)?;
                }
                _ if qr.normal_ratio < least_ratio => {
                    // x_{k−1} is nearer to the least squares than the copy.
                    least_ratio = S::Real::from_f64(0.5) * qr.normal_ratio;
                    let level = *level.get_or_insert(now.residual_norm);
                    if now.residual_norm >= S::Real::from_f64(SAME_LEVEL) * level {
                        self.best.keep(space, x, now.residual_norm, 1.0)?;
                    }
                }
                _ => {}
            }
            space.axpby(tau, &self.d, S::Scalar::ONE, x)?;
            now.residual_norm = norm;
            now.index += 1;
            if beta == S::Real::ZERO {
                broken = Some(Status::Breakdown { what: "β = 0" });
            }
        }
    }

    /// β₁ u₁ = r₀ and β₁ q₁ = M⁻¹ r₀; gives β₁, or says that M is not positive definite.
    fn begin(&mut self, system: System<'_, S>) -> Result<Result<S::Real, Status>, BackendError> {
        let System { space, m, .. } = system;
        space.copy(&self.r, &mut self.u)?;
        for vector in [&mut self.u_old, &mut self.d, &mut self.d_old] {
            space.fill(S::Scalar::ZERO, vector)?;
        }
        space
            .during(Activity::Preconditioner, || m.apply(space, &self.u, &mut self.q, &mut self.m_scratch))?;
        let beta = root(space.dot(&self.u, &self.q)?);
        Ok(beta.and_then(|b| if b > S::Real::ZERO { Ok(b) } else { Err(Status::IndefinitePreconditioner) }))
    }

    /// One step of Lanczos' process, up to M⁻¹ applied to the new vector, and the direction of the step.
    fn lanczos(&mut self, system: System<'_, S>, qr: &mut Tridiagonal<S::Real>) -> Result<(), BackendError> {
        let System { space, a, m } = system;
        let Minres { u, u_old, q, aq, d, d_old, a_scratch, m_scratch, .. } = self;
        let real = S::Scalar::from_real;
        let (beta, one) = (qr.beta, S::Real::ONE);
        // αₖ = qₖᴴ A qₖ
        let alpha =
            space.during(Activity::Product, || a.apply_dot(space, q, aq, a_scratch))?.real() / beta / beta;
        // β_{k+1} u_{k+1} = A qₖ − αₖ uₖ − βₖ u_{k−1}
        space.axpby(real(one / beta), aq, real(-beta / qr.beta_old), u_old)?;
        space.axpby(real(-alpha / beta), u, S::Scalar::ONE, u_old)?;
        swap(u, u_old);
        // dₖ = qₖ − (δₖ / γ_{k−1}) d_{k−1} − (εₖ / γ_{k−2}) d_{k−2}
        let [delta, epsilon] = qr.column(alpha);
        space.axpby(real(one / beta), q, real(-epsilon / qr.gamma_old), d_old)?;
        space.axpby(real(-delta / qr.gamma), d, S::Scalar::ONE, d_old)?;
        swap(d, d_old);
        // β_{k+1} q_{k+1} = M⁻¹ β_{k+1} u_{k+1}
        space.during(Activity::Preconditioner, || m.apply(space, u, q, m_scratch))
    }
}

/// β from β² = uᴴ M⁻¹ u.
fn root<T: Scalar>(square: T) -> Result<T::Real, Status> {
    if !square.is_finite() {
        Err(Status::NotFinite)
    } else if square.real() < T::Real::ZERO {
        Err(Status::IndefinitePreconditioner)
    } else {
        Ok(square.real().sqrt())
    }
}

/// The factorization of T by rotations, one column at a time; the letters are those of the head of the file.
struct Tridiagonal<R> {
    beta: R,
    beta_old: R,
    gamma: R,
    gamma_old: R,
    /// γ̄, between `column` and `rotate`.
    gamma_bar: R,
    c: R,
    s: R,
    c_old: R,
    s_old: R,
    phi_bar: R,
    /// ‖(δₖ, γ̄)‖, between `column` and `rotate`.
    above: R,
    /// The norm of the largest column of T.
    largest: R,
    /// ‖A M⁻¹ r_{k−1}‖ / ‖r_{k−1}‖, relative to that.
    normal_ratio: R,
}

impl<R: Real> Tridiagonal<R> {
    /// No columns. The numbers before the first column are such that the recurrences need no exception: c_old = 0 keeps
    /// β₁, which is no part of T, out of it.
    fn new() -> Self {
        let (zero, one) = (R::ZERO, R::ONE);
        Tridiagonal {
            beta: one,
            beta_old: one,
            gamma: one,
            gamma_old: one,
            gamma_bar: zero,
            c: one,
            s: zero,
            c_old: zero,
            s_old: zero,
            phi_bar: zero,
            above: zero,
            largest: zero,
            normal_ratio: zero,
        }
    }

    /// The right-hand side β₁ e₁.
    fn start(&mut self, beta: R) {
        self.beta = beta;
        self.phi_bar = beta;
    }

    /// The rotations so far on column k, whose β_{k+1} is not known yet: δₖ and εₖ.
    fn column(&mut self, alpha: R) -> [R; 2] {
        let epsilon = self.s_old * self.beta;
        let between = self.c_old * self.beta;
        let delta = self.c * between + self.s * alpha;
        self.gamma_bar = self.c * alpha - self.s * between;
        self.above = hypot(delta.abs(), self.gamma_bar.abs());
        [delta, epsilon]
    }

    /// The rotation that makes β_{k+1} vanish: τₖ.
    fn rotate(&mut self, beta: R) -> Result<R, Status> {
        let gamma = hypot(self.gamma_bar.abs(), beta);
        let norm = hypot(self.above, beta);
        if !norm.is_finite() {
            return Err(Status::NotFinite);
        }
        if norm > self.largest {
            self.largest = norm;
        }
        let normal = hypot(self.gamma_bar.abs(), self.c.abs() * beta);
        self.normal_ratio = normal / self.largest;
        if normal <= R::from_f64(SINGULAR) * R::EPSILON * self.largest {
            return Err(Status::Breakdown { what: "A M⁻¹ r = 0" });
        }
        (self.c_old, self.s_old) = (self.c, self.s);
        (self.c, self.s) = (self.gamma_bar / gamma, beta / gamma);
        (self.beta_old, self.beta) = (self.beta, beta);
        (self.gamma_old, self.gamma) = (self.gamma, gamma);
        let phi = self.c * self.phi_bar;
        self.phi_bar = -self.s * self.phi_bar;
        Ok(phi / gamma)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_columns_by_hand() {
        // T = [3 4; 4 2; 0 …], β₁ = 5: γ₁ = 5, c = 3/5, s = 4/5, φ₁ = 3, φ̄₁ = −4; then δ₂ = 3/5·4 + 4/5·2 = 4 and
        // γ̄ = 3/5·2 − 4/5·4 = −2.
        let mut t = Tridiagonal::<f64>::new();
        t.start(5.0);
        t.column(3.0);
        let tau = t.rotate(4.0).unwrap();
        assert!((tau - 0.6).abs() < 1e-15 && (t.phi_bar + 4.0).abs() < 1e-15);
        let [delta, epsilon] = t.column(2.0);
        assert!((delta - 4.0).abs() < 1e-15 && epsilon == 0.0 && (t.gamma_bar + 2.0).abs() < 1e-15);
        // β₃ = 0: T y = 5 e₁ is solved by y = (−1, 2), so φ₂ / γ₂ = y₂ = 2, and nothing is left
        let tau = t.rotate(0.0).unwrap();
        assert!((tau - 2.0).abs() < 1e-15);
        assert_eq!(t.phi_bar, 0.0);
    }
}
