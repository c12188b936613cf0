//! The preconditioner alone: z = M⁻¹ r, for a caller's own iteration.

use super::prepared::Prepared;
use crate::engine::EngineWorkspace;
use crate::error::SolveError;
use crate::operator::{LinearOperator, SolverSpace};
use crate::space::require_same;
use std::sync::{Arc, PoisonError};

/// What applications on one space write, kept from one to the next.
pub(super) struct Application<S: SolverSpace> {
    space: Arc<S>,
    own: EngineWorkspace,
    /// r and z.
    vectors: [S::Vector; 2],
}

impl<A: LinearOperator<S>, S: SolverSpace> Prepared<A, S> {
    /// z = M⁻¹ r with the preconditioner that was set up, in the order of A, wherever it is stored: on the grid, permuted, scaled, in `f32`, on a device. Of several
    /// processes each has its part of r and z. Without a preconditioner z is r. Not to be called by an observer of a solve on a space that has no other beside it: it would
    /// wait for that solve.
    ///
    /// ```
    /// use krylith::{PrecondSpec, Solver, gallery::Problem};
    /// let a = "poisson2d:30".parse::<Problem>()?.generate()?;
    /// let prepared = Solver::new().preconditioner(PrecondSpec::jacobi()).prepare(&a)?;
    /// let (r, mut z) = (vec![1.0; a.nrows()], vec![0.0; a.nrows()]);
    /// prepared.precondition(&r, &mut z)?;
    /// assert!(z.iter().all(|&z| z == 0.25));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn precondition(&self, r: &[f64], z: &mut [f64]) -> Result<(), SolveError> {
        if self.broken {
            return Err(SolveError::StaleFactor);
        }
        let own = self.space.len(&self.size);
        require_same("r and the domain of A", &r.len(), &own)?;
        require_same("z and the domain of A", &z.len(), &own)?;
        if self.summary.kind.is_none() {
            z.copy_from_slice(r);
            return Ok(());
        }
        // As a solve takes it: the prepared space, or one beside it while others have that.
        let lease = self.pool.idle(&self.space);
        let space = lease.space();
        let mut application = self.application(space)?;
        let [given, made] = &mut application.vectors;
        space.upload(r, given)?;
        self.engine.precondition(&mut application.own, space, given, made)?;
        space.download(made, z)?;
        self.applications.lock().unwrap_or_else(PoisonError::into_inner).push(application);
        Ok(())
    }

    /// One that nobody uses, or a new one.
    fn application(&self, space: &Arc<S>) -> Result<Application<S>, SolveError> {
        let mut idle = self.applications.lock().unwrap_or_else(PoisonError::into_inner);
        // Spaces beside the prepared one come and go.
        idle.retain(|kept| Arc::ptr_eq(&kept.space, &self.space) || Arc::ptr_eq(&kept.space, space));
        if let Some(k) = idle.iter().position(|kept| Arc::ptr_eq(&kept.space, space)) {
            return Ok(idle.swap_remove(k));
        }
        drop(idle);
        let vectors = [space.zeros(&self.size)?, space.zeros(&self.size)?];
        Ok(Application { space: Arc::clone(space), own: self.engine.application(space)?, vectors })
    }
}
