//! LSMR for min ‖b − A x‖, for any A: singular, inconsistent, far from normal. Needs products with Aᴴ, and with M⁻ᴴ.
//!
//! The process of Golub and Kahan on A M⁻¹ gives orthonormal u₁ u₂ … and v₁ v₂ …,
//!
//!   β₁ u₁ = r₀;  α₁ v₁ = M⁻ᴴ Aᴴ u₁;  β_{k+1} u_{k+1} = A M⁻¹ vₖ − αₖ uₖ;  α_{k+1} v_{k+1} = M⁻ᴴ Aᴴ u_{k+1} − β_{k+1} vₖ
//!
//! and xₖ = x₀ + M⁻¹ Vₖ yₖ minimises ‖M⁻ᴴ Aᴴ r‖, which is MINRES on the normal equations without forming them. Two sequences of rotations make
//! the bidiagonal matrix and then its square triangular:
//!
//!   ρₖ = √(ᾱ² + β²);  c = ᾱ / ρₖ;  s = β / ρₖ;  θ = s α;  ᾱ = c α
//!   θ̄ = s̄ ρₖ;  ρ̄ₖ = √((c̄ ρₖ)² + θ²);  c̄ = c̄ ρₖ / ρ̄ₖ;  s̄ = θ / ρ̄ₖ;  ζₖ = c̄ ζ̄;  ζ̄ = −s̄ ζ̄
//!   h̄ = h − (θ̄ ρₖ / (ρ_{k−1} ρ̄_{k−1})) h̄;  x = x + (ζₖ / (ρₖ ρ̄ₖ)) h̄;  h = M⁻¹ v_{k+1} − (θ / ρₖ) h
//!
//! with α = α_{k+1}, β = β_{k+1}. h and h̄ are kept multiplied by M⁻¹, which the process has computed anyway. ‖M⁻ᴴ Aᴴ r‖ = |ζ̄|; ‖r‖ comes
//! from a third sequence of rotations (section 5 of the reference), all of it without another product or synchronisation.
//!
//! Per iteration: 1 A, 1 Aᴴ, 1 M⁻¹, 1 M⁻ᴴ, 2 synchronisations, 5 updates. Stores u, v, M⁻¹ v, a product, h, h̄ and the best x. The condition
//! is that of A, not its square, in the arithmetic; the number of iterations is that of the normal equations. M = the norms of the columns of A
//! is what suits it.
//!
//! Ends as a [`Status::Breakdown`] where M⁻ᴴ Aᴴ r is zero to rounding: x is a least-squares solution, and if its residual is not small, b
//! is not in the range of A. From x₀ = 0 and M = I that is the solution of least norm.
//!
//! Reference: Fong & Saunders 2011, doi:10.1137/10079687X.

use super::hessenberg::hypot;
use super::{Best, Finish, Status, System, finish};
use crate::error::BackendError;
use crate::observe::Observer;
use crate::operator::AnyScratch;
use crate::scalar::{Real, Scalar};
use crate::space::{Activity, Space};
use crate::stop::StoppingCriterion;

/// ‖Aᴴ r‖ below this multiple of ε ‖A‖ ‖r‖ is zero.
const LEAST_SQUARES: f64 = 100.0;

/// The workspace of a solve by LSMR; it serves any number of solves of the same size.
pub struct Lsmr<S: Space> {
    u: S::Vector,
    v: S::Vector,
    /// M⁻¹ v.
    w: S::Vector,
    /// A product.
    t: S::Vector,
    h: S::Vector,
    h_bar: S::Vector,
    a_scratch: AnyScratch,
    m_scratch: AnyScratch,
    best: Best<S>,
}

impl<S: Space> Lsmr<S> {
    /// Allocates everything that solves of this system need.
    pub fn new(system: System<'_, S>) -> Result<Self, BackendError> {
        let size = system.check()?;
        let System { space, a, m } = system;
        Ok(Lsmr {
            u: space.zeros(&size)?,
            v: space.zeros(&size)?,
            w: space.zeros(&size)?,
            t: space.zeros(&size)?,
            h: space.zeros(&size)?,
            h_bar: space.zeros(&size)?,
            a_scratch: a.scratch(space)?,
            m_scratch: m.scratch(space)?,
            best: Best::new(space, &size)?,
        })
    }

    /// The best iterate of the last solve that was left for a worse one, and its residual norm by the recurrence.
    pub fn kept(&self) -> Option<(&S::Vector, S::Real)> {
        self.best.kept()
    }

    /// Improves the guess in `x` until the criterion or the observer ends it, or a least-squares solution is reached; `x` then
    /// holds the last iterate. Allocates nothing.
    pub fn solve(
        &mut self,
        system: System<'_, S>,
        b: &S::Vector,
        x: &mut S::Vector,
        stop: &mut (impl StoppingCriterion<S::Real> + ?Sized),
        observer: &mut (impl Observer<S::Real, S::Vector> + ?Sized),
    ) -> Result<Finish<S::Real>, BackendError> {
        let System { space, .. } = system;
        let real = S::Scalar::from_real;
        // u = b − A x
        let mut now = system.start(b, x, &mut self.u, &mut self.a_scratch)?;
        let mut scalars = Rotations::new(now.residual_norm);
        let mut ended = None;
        self.best.start();
        loop {
            if let Some(status) = self.best.judge(&now, stop, observer).or(ended) {
                return Ok(finish(&now, status));
            }
            if now.index == 0 {
                // α₁ v₁ = M⁻ᴴ Aᴴ u₁;  h = M⁻¹ v₁;  h̄ = 0
                normalise(space, &mut self.u, now.residual_norm)?;
                space.fill(S::Scalar::ZERO, &mut self.v)?;
                let alpha = self.backward(system, S::Real::ZERO)?;
                space.copy(&self.w, &mut self.h)?;
                space.fill(S::Scalar::ZERO, &mut self.h_bar)?;
                if let Some(status) = scalars.start(alpha) {
                    return Ok(finish(&now, status));
                }
            }
            let beta = self.forward(system, scalars.alpha)?;
            // M⁻¹ v_{k+1} takes the place of M⁻¹ vₖ, which h has.
            let alpha = self.backward(system, beta)?;
            let step = scalars.rotate(alpha, beta);
            if !step.residual_norm.is_finite() {
                return Ok(finish(&now, Status::NotFinite));
            }
            space.axpby(S::Scalar::ONE, &self.h, real(-step.of_h_bar), &mut self.h_bar)?;
            self.best.guard(space, x, now.residual_norm, step.residual_norm)?;
            space.axpby(real(step.of_x), &self.h_bar, S::Scalar::ONE, x)?;
            space.axpby(S::Scalar::ONE, &self.w, real(-step.of_h), &mut self.h)?;
            now.residual_norm = step.residual_norm;
            now.index += 1;
            ended = scalars
                .is_least_squares(step.residual_norm)
                .then_some(Status::Breakdown { what: "x is a least-squares solution" });
        }
    }

    /// β_{k+1} u_{k+1} = A M⁻¹ vₖ − αₖ uₖ, normalised; β_{k+1}.
    fn forward(&mut self, system: System<'_, S>, alpha: S::Real) -> Result<S::Real, BackendError> {
        let System { space, a, .. } = system;
        space.during(Activity::Product, || a.apply(space, &self.w, &mut self.t, &mut self.a_scratch))?;
        space.axpby(S::Scalar::ONE, &self.t, S::Scalar::from_real(-alpha), &mut self.u)?;
        let beta = space.norm(&self.u)?;
        normalise(space, &mut self.u, beta)?;
        Ok(beta)
    }

    /// α_{k+1} v_{k+1} = M⁻ᴴ Aᴴ u_{k+1} − β_{k+1} vₖ, normalised, and M⁻¹ v_{k+1}; α_{k+1}.
    fn backward(&mut self, system: System<'_, S>, beta: S::Real) -> Result<S::Real, BackendError> {
        let System { space, a, m } = system;
        space.during(Activity::Product, || {
            a.apply_transpose(space, &self.u, &mut self.w, &mut self.a_scratch)
        })?;
        space.during(Activity::Preconditioner, || {
            m.apply_transpose(space, &self.w, &mut self.t, &mut self.m_scratch)
        })?;
        space.axpby(S::Scalar::ONE, &self.t, S::Scalar::from_real(-beta), &mut self.v)?;
        let alpha = space.norm(&self.v)?;
        normalise(space, &mut self.v, alpha)?;
        space
            .during(Activity::Preconditioner, || m.apply(space, &self.v, &mut self.w, &mut self.m_scratch))?;
        Ok(alpha)
    }
}

/// x / norm; 0 stays 0.
fn normalise<S: Space>(space: &S, x: &mut S::Vector, norm: S::Real) -> Result<(), BackendError> {
    match norm > S::Real::ZERO {
        true => space.scale(S::Scalar::from_real(S::Real::ONE / norm), x),
        false => Ok(()),
    }
}

/// The rotations; the letters are those of the head of the file. Those with a dot or a tilde belong to ‖r‖.
struct Rotations<R> {
    alpha: R,
    alpha_bar: R,
    rho: R,
    rho_bar: R,
    c_bar: R,
    s_bar: R,
    zeta: R,
    zeta_bar: R,
    beta_ddot: R,
    beta_dot: R,
    rho_dot: R,
    tau_tilde: R,
    theta_tilde: R,
    /// ‖A M⁻¹‖² from below, in the norm of Frobenius.
    square: R,
    beta_first: R,
}

/// What a rotation means for vectors.
struct Step<R> {
    of_h_bar: R,
    of_x: R,
    of_h: R,
    residual_norm: R,
}

impl<R: Real> Rotations<R> {
    fn new(beta: R) -> Self {
        let (zero, one) = (R::ZERO, R::ONE);
        Rotations {
            alpha: zero,
            alpha_bar: zero,
            rho: one,
            rho_bar: one,
            c_bar: one,
            s_bar: zero,
            zeta: zero,
            zeta_bar: zero,
            beta_ddot: beta,
            beta_dot: zero,
            rho_dot: one,
            tau_tilde: zero,
            theta_tilde: zero,
            square: zero,
            beta_first: beta,
        }
    }

    /// The first α; how it ends if that is zero or no number.
    fn start(&mut self, alpha: R) -> Option<Status> {
        (self.alpha, self.alpha_bar, self.zeta_bar) = (alpha, alpha, alpha * self.beta_first);
        self.square = alpha * alpha;
        match alpha {
            a if a > R::ZERO && a.is_finite() => None,
            a if a == R::ZERO => Some(Status::Breakdown { what: "x is a least-squares solution" }),
            _ => Some(Status::NotFinite),
        }
    }

    fn rotate(&mut self, alpha: R, beta: R) -> Step<R> {
        let (rho_old, rho_bar_old, zeta_old) = (self.rho, self.rho_bar, self.zeta);
        let (c, s, rho) = rotation(self.alpha_bar, beta);
        let theta = s * alpha;
        let theta_bar = self.s_bar * rho;
        let (c_bar, s_bar, rho_bar) = rotation(self.c_bar * rho, theta);
        self.square = self.square + alpha * alpha + beta * beta;
        (self.alpha, self.alpha_bar, self.rho) = (alpha, c * alpha, rho);
        (self.c_bar, self.s_bar, self.rho_bar) = (c_bar, s_bar, rho_bar);
        (self.zeta, self.zeta_bar) = (c_bar * self.zeta_bar, -s_bar * self.zeta_bar);
        // ‖r‖
        let beta_hat = c * self.beta_ddot;
        self.beta_ddot = -s * self.beta_ddot;
        let theta_tilde_old = self.theta_tilde;
        let (c_tilde, s_tilde, rho_tilde) = rotation(self.rho_dot, theta_bar);
        self.theta_tilde = s_tilde * rho_bar;
        self.rho_dot = c_tilde * rho_bar;
        self.beta_dot = -s_tilde * self.beta_dot + c_tilde * beta_hat;
        self.tau_tilde = (zeta_old - theta_tilde_old * self.tau_tilde) / rho_tilde;
        let tau_dot = (self.zeta - self.theta_tilde * self.tau_tilde) / self.rho_dot;
        Step {
            of_h_bar: theta_bar * rho / (rho_old * rho_bar_old),
            of_x: self.zeta / (rho * rho_bar),
            of_h: theta / rho,
            residual_norm: hypot((self.beta_dot - tau_dot).abs(), self.beta_ddot.abs()),
        }
    }

    /// Whether ‖M⁻ᴴ Aᴴ r‖ is zero to rounding.
    fn is_least_squares(&self, residual_norm: R) -> bool {
        let bound = R::from_f64(LEAST_SQUARES * f64::EPSILON) * self.square.sqrt() * residual_norm;
        self.zeta_bar.abs() <= bound
    }
}

/// c, s and r with c a + s b = r.
fn rotation<R: Real>(a: R, b: R) -> (R, R, R) {
    let r = hypot(a.abs(), b.abs());
    if r == R::ZERO { (R::ONE, R::ZERO, R::ZERO) } else { (a / r, b / r, r) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::Csr;
    use crate::operator::Identity;
    use crate::space::Threads;
    use crate::stop::{IterationLimit, Residual};

    fn solve(a: &Csr<f64>, b: &[f64], rtol: f64) -> (Vec<f64>, Finish<f64>) {
        let space = Threads::new(1);
        let m = Identity::<Threads<f64>>::new(a.nrows());
        let system = System { space: &space, a, m: &m };
        let mut x = vec![0.0; b.len()];
        let mut lsmr = Lsmr::new(system).unwrap();
        let mut stop = (Residual { rtol, atol: 0.0 }, IterationLimit(1000));
        let finish = lsmr.solve(system, &b.to_vec(), &mut x, &mut stop, &mut ()).unwrap();
        (x, finish)
    }

    /// [ 1 1 ] x = [ 2 ]: of all solutions the shortest is (1, 1); with b = (2, 0) the least squares are at (½, ½).
    /// [ 1 1 ]     [ 2 ]
    #[test]
    fn singular_by_hand() {
        let a = Csr::from_triplets(2, 2, &[0, 0, 1, 1], &[0, 1, 0, 1], &[1.0; 4]).unwrap();
        let (x, finish) = solve(&a, &[2.0, 2.0], 1e-14);
        assert!(matches!(finish.status, Status::Stopped(_)), "{finish:?}");
        assert!((x[0] - 1.0).abs() < 1e-14 && (x[1] - 1.0).abs() < 1e-14, "{x:?}");
        let (x, finish) = solve(&a, &[2.0, 0.0], 1e-14);
        assert_eq!(finish.status, Status::Breakdown { what: "x is a least-squares solution" });
        assert!((x[0] - 0.5).abs() < 1e-14 && (x[1] - 0.5).abs() < 1e-14, "{x:?}");
        assert!((finish.residual_norm - 2f64.sqrt()).abs() < 1e-14, "{finish:?}");
    }

    /// The residual of the recurrence is that of x, and ‖Aᵀr‖ falls monotonically.
    #[test]
    fn norms_are_those_of_x() {
        let n = 40;
        let entries =
            (0..n).flat_map(|i| [(i, i, 1.0 + i as f64), (i, (7 * i + 3) % n, 2.0), ((5 * i) % n, i, -1.5)]);
        let a = Csr::from_entries(n, n, entries).unwrap();
        let b: Vec<f64> = (0..n).map(|i| (i as f64).sin()).collect();
        let product = |x: &[f64], i: usize| {
            a.row(i).0.iter().zip(a.row(i).1).map(|(&j, v)| v * x[j as usize]).sum::<f64>()
        };
        for rtol in [1e-1, 1e-3, 1e-6, 1e-10] {
            let (x, finish) = solve(&a, &b, rtol);
            assert!(matches!(finish.status, Status::Stopped(_)), "{finish:?}");
            let norm = (0..n).map(|i| (b[i] - product(&x, i)).powi(2)).sum::<f64>().sqrt();
            assert!((norm - finish.residual_norm).abs() <= 1e-8 * norm + 1e-12, "{norm:e} {finish:?}");
        }
    }

    #[test]
    fn nothing_to_do_and_nothing_that_can_be_done() {
        let zero = Csr::from_triplets(2, 2, &[0], &[0], &[0.0]).unwrap();
        let (x, finish) = solve(&zero, &[1.0, 1.0], 1e-8);
        assert_eq!(
            (x, finish.status),
            (vec![0.0; 2], Status::Breakdown { what: "x is a least-squares solution" })
        );
        let (_, finish) = solve(&zero, &[0.0, 0.0], 1e-8);
        assert_eq!(finish.iterations, 0);
    }
}
