//! Conjugate gradients without the product: Eisenstat's trick.
//!
//! Where the factor has A's own triangles, A = L + E + U and M = (D + L) D⁻¹ (D + U), the method runs on
//!
//!   Â = (D + L)⁻¹ A (D + U)⁻¹   with   A = (D + L) + (D + U) + (E − 2D)
//!
//! so that applying Â takes the two sweeps and nothing else. With r̂ = (D + L)⁻¹ r:
//!
//!   p = D r̂ + β p;  t = (D + U)⁻¹ p
//!   w = (D + L)⁻¹ (p + (E − 2D) t);  then t + w = (D + L)⁻¹ A t
//!   α = r̂ᵀD r̂ / pᵀ(t + w);  x += α t;  r̂ −= α (t + w);  β = r̂ᵀD r̂ new / old
//!
//! These are the iterates of conjugate gradients with M, up to rounding; x needs no map back, because t is the direction in x. The
//! sweep upwards reads r̂ and L anyway and forms ‖r‖₂ = ‖(D + L) r̂‖₂ of the iterate that it starts from: so the true residual
//! decides when to stop, one operator later than x is there, and the last direction is not used.
//!
//! Per iteration: 2 sweeps, each fused with the vector updates before it, and 1 update; 3 synchronisations. Stores r̂ p t w and the
//! best x. When ‖r‖ of an iterate is known its direction is gone, so x is not copied before a rise, as by the other methods, but
//! whenever ‖r‖ has fallen to a tenth. A t is never formed: an observer that wants directions needs [`Cg`](super::Cg).
//! Breakdown: as CG. After the residual was replaced the direction is begun anew.
//!
//! Reference: Eisenstat 1981, doi:10.1137/0902001.

use super::cg::not_positive;
use super::{Best, Finish, Status, System, finish};
use crate::error::BackendError;
use crate::observe::Observer;
use crate::operator::{AnyScratch, LinearOperator, Preconditioner, SplitVectors};
use crate::scalar::{Real, Scalar};
use crate::space::{Activity, Space};
use crate::stop::StoppingCriterion;
use std::any::Any;

/// An iterate is kept when its ‖r‖ is this part of that of the one kept before.
const KEEP: f64 = 0.1;

/// What a solve runs on: a space, A, and a preconditioner that may have the triangles of A.
pub struct SplitSystem<'a, S, A, M> {
    /// Where the vectors live.
    pub space: &'a S,
    /// y = A x.
    pub a: &'a A,
    /// y = M⁻¹ x.
    pub m: &'a M,
}

impl<S, A, M> Clone for SplitSystem<'_, S, A, M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S, A, M> Copy for SplitSystem<'_, S, A, M> {}

impl<'a, S: Space, A: LinearOperator<S>, M: Preconditioner<S, A>> SplitSystem<'a, S, A, M> {
    /// Without the types of A and M.
    pub fn erased(&self) -> System<'a, S> {
        let SplitSystem { space, a, m } = *self;
        System { space, a, m }
    }
}

/// The workspace of conjugate gradients with Eisenstat's trick.
pub struct EisenstatCg<S: Space> {
    vectors: SplitVectors<S::Vector>,
    best: Best<S>,
    a_scratch: AnyScratch,
    sweeps_scratch: Box<dyn Any + Send>,
}

impl<S: Space> EisenstatCg<S> {
    /// Allocates everything; `None` if the factor's triangles are not those of A.
    pub fn new<A: LinearOperator<S>, M: Preconditioner<S, A>>(
        system: SplitSystem<'_, S, A, M>,
    ) -> Result<Option<Self>, BackendError> {
        let SplitSystem { space, a, m } = system;
        let Some(sweeps) = m.split_sweeps().filter(|sweeps| sweeps.has_triangles_of(a)) else {
            return Ok(None);
        };
        let system = system.erased();
        let size = system.check()?;
        let zeros = || space.zeros(&size);
        Ok(Some(EisenstatCg {
            vectors: SplitVectors { r: zeros()?, p: zeros()?, t: zeros()?, w: zeros()? },
            best: Best::new(space, &size)?,
            a_scratch: system.a.scratch(space)?,
            sweeps_scratch: sweeps.scratch(space)?,
        }))
    }

    /// Improves the guess in `x` until the criterion or the observer ends it, or the method breaks down. Allocates nothing. An error if
    /// A's coefficients are no longer those that were factored: the trick needs L and U of both to be the same.
    pub fn solve<A: LinearOperator<S>, M: Preconditioner<S, A>>(
        &mut self,
        system: SplitSystem<'_, S, A, M>,
        b: &S::Vector,
        x: &mut S::Vector,
        stop: &mut (impl StoppingCriterion<S::Real> + ?Sized),
        observer: &mut (impl Observer<S::Real, S::Vector> + ?Sized),
    ) -> Result<Finish<S::Real>, BackendError> {
        let SplitSystem { space, a, m } = system;
        let Some(sweeps) = m.split_sweeps().filter(|sweeps| sweeps.has_triangles_of(a)) else {
            let what = "Eisenstat's trick with a factor whose triangles are not those of A";
            return Err(BackendError::Unsupported { what });
        };
        let EisenstatCg { vectors: v, best, a_scratch, sweeps_scratch } = self;
        let scratch = &mut **sweeps_scratch;
        let zero = S::Scalar::ZERO;
        best.start();

        // r = b − A x, for a moment in t;  r̂ = (D + L)⁻¹ r
        let mut now = system.erased().start(b, x, &mut v.t, a_scratch)?;
        if let Some(status) = best.judge(&now, stop, observer) {
            return Ok(finish(&now, status));
        }
        space.during(Activity::Preconditioner, || sweeps.enter(space, a, v, scratch))?;
        space.fill(zero, &mut v.p)?;
        space.fill(zero, &mut v.t)?;
        space.fill(zero, &mut v.w)?;
        let mut rho = sweeps.advance(space, zero, v, x, scratch)?;
        let mut beta = zero;
        loop {
            // p = D r̂ + β p;  t = (D + U)⁻¹ p;  w = (D + L)⁻¹ (p + (E − 2D) t)
            let [pq, square] =
                space.during(Activity::Preconditioner, || sweeps.sweep(space, a, beta, v, scratch))?;
            if now.index > 0 {
                now.residual_norm = square.real().sqrt();
                if let Some(status) = best.judge(&now, stop, observer) {
                    return Ok(finish(&now, status));
                }
                best.keep(space, x, now.residual_norm, KEEP)?;
            }
            if let Some(status) = not_positive(rho, Status::IndefinitePreconditioner)
                .or_else(|| not_positive(pq, Status::IndefiniteOperator))
            {
                return Ok(finish(&now, status));
            }
            let alpha = rho / pq;
            if !alpha.is_finite() {
                return Ok(finish(&now, Status::NotFinite));
            }
            // x += α t;  r̂ −= α (t + w);  β = r̂ᵀD r̂ new / old
            let new = sweeps.advance(space, alpha, v, x, scratch)?;
            beta = new / rho;
            rho = new;
            now.index += 1;
        }
    }

    /// The best iterate of the last solve, and its residual norm by the recurrence.
    pub fn kept(&self) -> Option<(&S::Vector, S::Real)> {
        self.best.kept()
    }
}
