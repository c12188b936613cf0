//! Preconditioned conjugate gradients for A x = b, A and M symmetric (Hermitian) positive definite.
//!
//!   q = A p;  α = rᵀz / pᵀq;  x += α p;  r −= α q;  z = M⁻¹ r;  β = rᵀz_new / rᵀz_old;  p = z + β p
//!
//! x is updated together with p: until then it is the iterate before r, which `Best` may have to keep.
//!
//! Per iteration: 1 A, 1 M⁻¹, 3 synchronisations (pᵀq, ‖r‖, rᵀz), 3 updates. Stores r z p q and the best x. Where reading a result is costly,
//! or M⁻¹ is a diagonal that is applied while r is updated, there are 2 synchronisations (pᵀq; ‖r‖ and rᵀz), and one M⁻¹ more at the end,
//! whose z nobody needs.
//! Breakdown: pᵀq ≤ 0 means that A is not positive definite, rᵀz ≤ 0 that M is not.
//! Reference: Hestenes & Stiefel 1952, doi:10.6028/jres.049.044; preconditioned as in Saad, Iterative Methods for Sparse
//! Linear Systems, 2nd ed., algorithm 9.1.

use super::{Best, Finish, Status, System, finish};
use crate::error::BackendError;
use crate::observe::{Direction, Observer};
use crate::operator::{AnyScratch, UpdateForm};
use crate::scalar::{Real, Scalar};
use crate::space::{Activity, Space};
use crate::stop::StoppingCriterion;

/// The workspace of a solve by conjugate gradients; it serves any number of solves of the same size.
pub struct Cg<S: Space> {
    r: S::Vector,
    z: S::Vector,
    p: S::Vector,
    q: S::Vector,
    a_scratch: AnyScratch,
    m_scratch: AnyScratch,
    best: Best<S>,
    /// p and q hold a direction and its product.
    has_direction: bool,
}

impl<S: Space> Cg<S> {
    /// Allocates everything that solves of this system need.
    pub fn new(system: System<'_, S>) -> Result<Self, BackendError> {
        let size = system.check()?;
        let System { space, a, m } = system;
        Ok(Cg {
            r: space.zeros(&size)?,
            z: space.zeros(&size)?,
            p: space.zeros(&size)?,
            q: space.zeros(&size)?,
            a_scratch: a.scratch(space)?,
            m_scratch: m.scratch(space)?,
            best: Best::new(space, &size)?,
            has_direction: false,
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
        self.has_direction = false;
        self.resume(system, b, x, stop, observer)
    }

    /// Goes on from where the last solve ended: the residual is computed anew from `x`, the search direction is kept. For when
    /// the recurrence has drifted from the true residual. The first β is then −qᵀz / qᵀp, which makes the new direction
    /// conjugate to the old one; the usual quotient supposes residuals of one recurrence.
    pub fn resume(
        &mut self,
        system: System<'_, S>,
        b: &S::Vector,
        x: &mut S::Vector,
        stop: &mut (impl StoppingCriterion<S::Real> + ?Sized),
        observer: &mut (impl Observer<S::Real, S::Vector> + ?Sized),
    ) -> Result<Finish<S::Real>, BackendError> {
        let System { space, a, m } = system;
        let Cg { r, z, p, q, a_scratch, m_scratch, best, has_direction } = self;
        best.start();
        let form = m.update_form();

        // r = b − A x
        let mut now = system.start(b, x, r, a_scratch)?;
        let mut rz_old = None;
        // α of the step that r has taken and x has not
        let mut pending = None;
        // rᵀz, where z has been computed together with ‖r‖
        let mut ahead = None;
        loop {
            let mut ended = best.judge(&now, stop, observer);
            // z = M⁻¹ r;  rᵀz
            let mut rz = S::Scalar::ZERO;
            if ended.is_none() {
                rz = match ahead.take() {
                    Some(known) => known,
                    None if form == UpdateForm::Identity => space.dot(r, r)?,
                    None => space.during(Activity::Preconditioner, || m.apply_dot(space, r, z, m_scratch))?,
                };
                ended = not_positive(rz, Status::IndefinitePreconditioner);
            }
            if let Some(status) = ended {
                if let Some(alpha) = pending {
                    space.axpby(alpha, p, S::Scalar::ONE, x)?;
                }
                return Ok(finish(&now, status));
            }
            let z_new = if form == UpdateForm::Identity { &*r } else { &*z };
            // β = rᵀz_new / rᵀz_old;  x += α p;  p = z + β p
            let beta = match rz_old {
                Some(old) => rz / old,
                None if *has_direction => conjugate(space, z_new, p, q)?,
                None => S::Scalar::ZERO,
            };
            match pending.take() {
                Some(alpha) => space.cg_direction(alpha, z_new, beta, p, x)?,
                None => space.axpby(S::Scalar::ONE, z_new, beta, p)?,
            }
            rz_old = Some(rz);
            // q = A p;  α = rᵀz / pᵀq
            let pq = space.during(Activity::Product, || a.apply_dot(space, p, q, a_scratch))?;
            if let Some(status) = not_positive(pq, Status::IndefiniteOperator) {
                return Ok(finish(&now, status));
            }
            if observer.wants_direction(now.index + 1) {
                observer.direction(&Direction { index: now.index + 1, p, a_p: q, curvature: pq.real() });
            }
            let alpha = rz / pq;
            if !alpha.is_finite() {
                return Ok(finish(&now, Status::NotFinite));
            }
            // r −= α q
            let norm = if space.reads_are_costly() || form != UpdateForm::InParts {
                let [rr, rz] = m.update_apply_dots(space, (-alpha, &*q), r, z, m_scratch)?;
                ahead = Some(rz);
                rr.real().sqrt()
            } else {
                space.update_norm(-alpha, q, r)?
            };
            best.guard(space, x, now.residual_norm, norm)?;
            now.residual_norm = norm;
            pending = Some(alpha);
            *has_direction = true;
            now.index += 1;
        }
    }
}

/// −qᵀz / qᵀp with q = A p; zero, which drops the direction, if that is not a number.
fn conjugate<S: Space>(
    space: &S,
    z: &S::Vector,
    p: &S::Vector,
    q: &S::Vector,
) -> Result<S::Scalar, BackendError> {
    let mut forms = [S::Scalar::ZERO; 2];
    space.dots(&[(q, z), (q, p)], &mut forms)?;
    let beta = -(forms[0] / forms[1]);
    Ok(if beta.is_finite() { beta } else { S::Scalar::ZERO })
}

/// The breakdown that a form which should be positive shows.
pub(super) fn not_positive<T: Scalar>(form: T, indefinite: Status) -> Option<Status> {
    if !form.is_finite() {
        Some(Status::NotFinite)
    } else if form.real() <= T::Real::ZERO {
        Some(indefinite)
    } else {
        None
    }
}
