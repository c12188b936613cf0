//! Preconditioned conjugate gradients for A x = b, A and M symmetric (Hermitian) positive definite.
//!
//!   q = A p;  α = rᵀz / pᵀq;  x += α p;  r −= α q;  z = M⁻¹ r;  β = rᵀz_new / rᵀz_old;  p = z + β p
//!
//! Per iteration: 1 A, 1 M⁻¹, 3 synchronisations (pᵀq, ‖r‖, rᵀz), 3 updates. Stores r z p q.
//! Breakdown: pᵀq ≤ 0 means that A is not positive definite, rᵀz ≤ 0 that M is not.
//! Reference: Hestenes & Stiefel 1952, doi:10.6028/jres.049.044; preconditioned as in Saad, Iterative Methods for Sparse
//! Linear Systems, 2nd ed., algorithm 9.1.

use super::{Finish, Status, System};
use crate::error::BackendError;
use crate::observe::{Iteration, Observer};
use crate::operator::LinearOperator;
use crate::scalar::Scalar;
use crate::space::{Space, require_same};
use crate::stop::{StopReason, StoppingCriterion};
use std::ops::ControlFlow;

/// The workspace of a solve by conjugate gradients; it serves any number of solves of the same layout.
pub struct Cg<S: Space, A: LinearOperator<S>, M: LinearOperator<S>> {
    r: S::Vector,
    z: S::Vector,
    p: S::Vector,
    q: S::Vector,
    a_scratch: A::Scratch,
    m_scratch: M::Scratch,
}

impl<S: Space, A: LinearOperator<S>, M: LinearOperator<S>> Cg<S, A, M> {
    /// Allocates everything that solves of this system need.
    pub fn new(system: System<'_, S, A, M>) -> Result<Self, BackendError> {
        let layout = system.check()?;
        let System { space, a, m } = system;
        Ok(Cg {
            r: space.zeros(&layout)?,
            z: space.zeros(&layout)?,
            p: space.zeros(&layout)?,
            q: space.zeros(&layout)?,
            a_scratch: a.scratch(space)?,
            m_scratch: m.scratch(space)?,
        })
    }

    /// Improves the guess in `x` until the criterion or the observer ends it, or the method breaks down; `x` then holds the
    /// last iterate. Allocates nothing.
    pub fn solve(
        &mut self,
        system: System<'_, S, A, M>,
        b: &S::Vector,
        x: &mut S::Vector,
        stop: &mut impl StoppingCriterion<S::Real>,
        observer: &mut impl Observer<S::Real>,
    ) -> Result<Finish<S::Real>, BackendError> {
        let layout = system.check()?;
        let System { space, a, m } = system;
        require_same("b and the domain of A", &space.layout(b), &layout)?;
        require_same("x and the domain of A", &space.layout(x), &layout)?;
        require_same("workspace and the domain of A", &space.layout(&self.r), &layout)?;
        let Cg { r, z, p, q, a_scratch, m_scratch } = self;
        let one = S::Scalar::ONE;

        // r = b − A x
        a.apply(space, x, r, a_scratch)?;
        space.axpby(one, b, -one, r)?;
        let mut squares = [S::Scalar::ZERO; 2];
        space.dots(&[(b, b), (&*r, &*r)], &mut squares)?;
        let [rhs_norm, mut residual_norm] = squares.map(|s| crate::scalar::Real::sqrt(s.real()));
        let mut rz_old = S::Scalar::ONE;

        for index in 0.. {
            let finish = |status| Ok(Finish { status, iterations: index, residual_norm });
            let iteration = Iteration { index, residual_norm, rhs_norm };
            let observed = observer.iterated(&iteration);
            if !residual_norm.is_finite() {
                return finish(Status::NotFinite);
            }
            if let Some(reason) = stop.check(&iteration) {
                return finish(Status::Stopped(reason));
            }
            if residual_norm == S::Real::ZERO {
                // Nothing is left to improve, whatever the criterion wants.
                return finish(Status::Stopped(StopReason::ResidualMet));
            }
            if observed == ControlFlow::Break(()) {
                return finish(Status::Interrupted);
            }
            // z = M⁻¹ r;  β = rᵀz_new / rᵀz_old;  p = z + β p
            m.apply(space, r, z, m_scratch)?;
            let rz = space.dot(r, z)?;
            if let Some(status) = not_positive::<S>(rz, Status::IndefinitePreconditioner) {
                return finish(status);
            }
            let beta = if index == 0 { S::Scalar::ZERO } else { rz / rz_old };
            space.axpby(one, z, beta, p)?;
            rz_old = rz;
            // q = A p;  α = rᵀz / pᵀq;  x += α p;  r −= α q
            let pq = a.apply_dot(space, p, q, a_scratch)?;
            if let Some(status) = not_positive::<S>(pq, Status::IndefiniteOperator) {
                return finish(status);
            }
            residual_norm = space.step(rz / pq, p, q, x, r)?;
        }
        unreachable!("the loop over all iteration numbers only returns")
    }
}

/// The breakdown that a form which should be positive shows.
fn not_positive<S: Space>(form: S::Scalar, indefinite: Status) -> Option<Status> {
    if !form.is_finite() {
        Some(Status::NotFinite)
    } else if form.real() <= S::Real::ZERO {
        Some(indefinite)
    } else {
        None
    }
}
