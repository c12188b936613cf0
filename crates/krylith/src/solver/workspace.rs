//! What solves write, kept from one to the next: one workspace for each solve that runs at the same time.

use super::prepared::Prepared;
use crate::engine::{DynEngine, EngineWorkspace, Operand};
use crate::error::SolveError;
use crate::operator::{LinearOperator, SolverSpace};
use crate::options::Method;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Vectors of a solve in the order of A, and the workspace of its engine.
pub(super) struct Workspace<S: SolverSpace, A: LinearOperator<S>> {
    /// Its own where another solve has the prepared one.
    pub(super) space: Arc<S>,
    pub(super) engine: EngineWorkspace,
    pub(super) vectors: Vectors<S, A>,
    /// x of a caller whose numbers are not vectors of the space; none while a solve has it.
    pub(super) x: Option<S::Vector>,
    /// The guess, for a solve that may have to go back to it; made when one is not zero.
    pub(super) guess: Option<S::Vector>,
}

/// What is needed to recompute residuals.
pub(super) struct Vectors<S: SolverSpace, A: LinearOperator<S>> {
    pub(super) b: S::Vector,
    pub(super) r: S::Vector,
    pub(super) scratch: A::Scratch,
}

impl<S: SolverSpace, A: LinearOperator<S>> Workspace<S, A> {
    pub(super) fn new(
        space: Arc<S>,
        engine: &DynEngine<S>,
        a: &A,
        method: Method,
    ) -> Result<Self, SolveError> {
        let vectors =
            Vectors { b: space.zeros(&a.range())?, r: space.zeros(&a.range())?, scratch: a.scratch(&space)? };
        let x = Some(space.zeros(&a.domain())?);
        Ok(Workspace {
            engine: engine.workspace(&space, Operand::Operator(a), method)?,
            space,
            vectors,
            x,
            guess: None,
        })
    }
}

/// The workspaces that nobody uses now.
pub(super) struct Pool<S: SolverSpace, A: LinearOperator<S>> {
    idle: Mutex<Vec<Workspace<S, A>>>,
    given_back: Condvar,
    /// Some solve has a workspace on the prepared space, or there is one among the idle.
    has_prepared: AtomicBool,
}

/// A workspace on loan.
pub(super) struct Lease<'p, S: SolverSpace, A: LinearOperator<S>> {
    pool: &'p Pool<S, A>,
    workspace: Option<Workspace<S, A>>,
}

impl<S: SolverSpace, A: LinearOperator<S>> Pool<S, A> {
    pub(super) fn new(first: Workspace<S, A>) -> Self {
        Pool {
            idle: Mutex::new(vec![first]),
            given_back: Condvar::new(),
            has_prepared: AtomicBool::new(true),
        }
    }

    /// Forgets all workspaces: those of another engine are needed.
    pub(super) fn clear(&mut self) {
        self.lock().clear();
        self.has_prepared.store(false, Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Workspace<S, A>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A space to work on besides solves, until it is given back: that of an idle workspace, the prepared one first; the prepared space where no workspace has it; one
    /// `beside` it; or the next that is given back.
    pub(super) fn idle(&self, prepared: &Arc<S>) -> Idle<'_, S, A> {
        let mut idle = self.lock();
        loop {
            let is_prepared = |w: &Workspace<S, A>| Arc::ptr_eq(&w.space, prepared);
            if let Some(k) = idle.iter().position(is_prepared).or(idle.len().checked_sub(1)) {
                let workspace = Some(idle.swap_remove(k));
                return Idle::Leased(Lease { pool: self, workspace });
            }
            if !self.has_prepared.swap(true, Ordering::Relaxed) {
                return Idle::Lent(Lent { pool: self, space: Arc::clone(prepared) });
            }
            if let Some(space) = prepared.beside() {
                return Idle::Beside(Arc::new(space));
            }
            idle = self.given_back.wait(idle).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// An idle workspace, the prepared one first; a new one on a space of its own; or, where the space has none beside it, the next that
    /// is given back.
    /// With `beside` the prepared space is left to others where there can be one beside it.
    pub(super) fn take(
        &self,
        prepared: &Prepared<A, S>,
        a: &A,
        beside: bool,
    ) -> Result<Lease<'_, S, A>, SolveError> {
        let mut idle = self.lock();
        let workspace = loop {
            let is_prepared = |w: &Workspace<S, A>| Arc::ptr_eq(&w.space, &prepared.space);
            let found = match beside {
                true => idle.iter().position(|w| !is_prepared(w)),
                false => idle.iter().position(is_prepared).or(idle.len().checked_sub(1)),
            };
            if let Some(k) = found {
                break idle.swap_remove(k);
            }
            let space = match !beside && !self.has_prepared.swap(true, Ordering::Relaxed) {
                true => Some(Arc::clone(&prepared.space)),
                false => prepared.space.beside().map(Arc::new),
            };
            if let Some(space) = space {
                drop(idle);
                break Workspace::new(space, &prepared.engine, a, prepared.method)?;
            }
            if let Some(workspace) = idle.pop() {
                break workspace;
            }
            idle = self.given_back.wait(idle).unwrap_or_else(PoisonError::into_inner);
        };
        Ok(Lease { pool: self, workspace: Some(workspace) })
    }
}

/// A space that nobody else works on.
pub(super) enum Idle<'p, S: SolverSpace, A: LinearOperator<S>> {
    Leased(Lease<'p, S, A>),
    Lent(Lent<'p, S, A>),
    Beside(Arc<S>),
}

/// The prepared space, while no workspace has it.
pub(super) struct Lent<'p, S: SolverSpace, A: LinearOperator<S>> {
    pool: &'p Pool<S, A>,
    space: Arc<S>,
}

impl<S: SolverSpace, A: LinearOperator<S>> Drop for Lent<'_, S, A> {
    fn drop(&mut self) {
        let idle = self.pool.lock();
        self.pool.has_prepared.store(false, Ordering::Relaxed);
        drop(idle);
        self.pool.given_back.notify_one();
    }
}

impl<S: SolverSpace, A: LinearOperator<S>> Idle<'_, S, A> {
    pub(super) fn space(&self) -> &Arc<S> {
        match self {
            Idle::Leased(lease) => &lease.space,
            Idle::Lent(lent) => &lent.space,
            Idle::Beside(space) => space,
        }
    }
}

impl<S: SolverSpace, A: LinearOperator<S>> Deref for Lease<'_, S, A> {
    type Target = Workspace<S, A>;

    fn deref(&self) -> &Workspace<S, A> {
        self.workspace.as_ref().expect("a lease has its workspace until it is dropped")
    }
}

impl<S: SolverSpace, A: LinearOperator<S>> DerefMut for Lease<'_, S, A> {
    fn deref_mut(&mut self) -> &mut Workspace<S, A> {
        self.workspace.as_mut().expect("a lease has its workspace until it is dropped")
    }
}

impl<S: SolverSpace, A: LinearOperator<S>> Drop for Lease<'_, S, A> {
    fn drop(&mut self) {
        self.pool.lock().extend(self.workspace.take());
        self.pool.given_back.notify_one();
    }
}
