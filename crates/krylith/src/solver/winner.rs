//! The rung of the ladder that later solves with the same matrix begin with.
//!
//! Where the planned method fails and a later rung gives the answer, the factor of that rung is kept, and a later solve that comes to the rung takes it. A solve
//! begins with the rung, without the methods before it, in two cases:
//!
//! * its right-hand side is one for which the planned method has failed;
//! * the planned method has failed for two different right-hand sides: A is the reason then. One hard right-hand side does not change what is done for others.
//!
//! Only solves that converged count: where there is no answer, b may be the reason. What is kept is that of one matrix, and is dropped by `refactor` and when another
//! matrix has a rung of its own. Solves that run at the same time begin with what was known before them; `solve_many` notes what its columns found out in their order,
//! after all of them, so that its bits do not depend on threads.

use super::build::SetUp;
use super::prepared::Seen;
use crate::error::BackendError;
use crate::matrix::{Csr, mix};
use crate::operator::SolverSpace;
use crate::options::{Method, Precision};
use crate::outcome::Recovery;
use crate::plan::Remedy;
use crate::transform::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

/// Right-hand sides for which the planned method has failed, before A is taken to be the reason.
const ENOUGH: usize = 2;

/// A rung that gave an answer after the planned method had failed.
pub(super) struct Winner<S: SolverSpace> {
    /// The A of that solve.
    pub(super) of: Seen,
    /// What failed first, in words.
    pub(super) failed: String,
    /// What was tried after the planned method, this rung last.
    pub(super) tried: Vec<Remedy>,
    pub(super) method: Method,
    /// Its engine, if not the prepared one.
    pub(super) engine: Option<Arc<SetUp<S>>>,
    pub(super) precision: Precision,
    pub(super) ordering: Ordering,
    /// What went wrong while the engine was set up: it may be another preconditioner than the one that `tried` names.
    pub(super) steps: Vec<Recovery>,
    /// Fingerprints of right-hand sides for which the planned method has failed, of the first ones.
    pub(super) failures: Vec<u128>,
}

impl<S: SolverSpace> Winner<S> {
    /// Whether a solve for this right-hand side begins with it.
    pub(super) fn begins(&self, rhs: u128) -> bool {
        self.failures.len() >= ENOUGH || self.failures.contains(&rhs)
    }

    /// Whether this is what the remedy sets up.
    pub(super) fn is_of(&self, remedy: &Remedy) -> bool {
        self.engine.is_some() && self.tried.last() == Some(remedy)
    }

    /// What the report says of a solve that begins with it.
    pub(super) fn step(&self) -> Recovery {
        let when = match self.failures.len() {
            0..ENOUGH => "in an earlier solve for this b",
            _ => "in earlier solves with this A",
        };
        let factor = if self.engine.is_some() { ", whose factor was kept" } else { "" };
        let rung = self.tried.last().map_or_else(|| self.method.to_string(), Remedy::to_string);
        Recovery {
            failed: format!("{when}, {}", self.failed),
            row: None,
            value: None,
            action: format!("the solve begins with {rung}{factor}"),
        }
    }
}

/// What solves know about the ones before.
pub(super) struct Memory<S: SolverSpace>(Mutex<Option<Arc<Winner<S>>>>);

impl<S: SolverSpace> Default for Memory<S> {
    fn default() -> Self {
        Memory(Mutex::new(None))
    }
}

impl<S: SolverSpace> Memory<S> {
    /// What is known of this matrix.
    pub(super) fn of(&self, space: &S, a: Option<&Csr<f64>>) -> Option<Arc<Winner<S>>> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        known.filter(|known| a.is_some_and(|a| known.of.is(space, a)))
    }

    /// Takes over what a solve has found out.
    pub(super) fn note(&self, space: &S, a: Option<&Csr<f64>>, new: Option<Winner<S>>) {
        let Some(mut new) = new else { return };
        let known = self.of(space, a).filter(|known| known.tried.last() == new.tried.last());
        if let Some(known) = known {
            new.failures.extend(&known.failures);
            new.failures.dedup();
            new.failures.truncate(ENOUGH);
        }
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(new));
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        *self.0.get_mut().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// A number that differs for different right-hand sides.
pub(super) fn fingerprint<S: SolverSpace>(space: &S, b: &S::Vector) -> Result<u128, BackendError> {
    let mut own = vec![0.0; space.len(&space.size(b))];
    space.download(b, &mut own)?;
    Ok(own.iter().fold(own.len() as u128, |state, v| mix(state, v.to_bits())))
}
