//! Preconditioners by a [`Recipe`] of any kind, the caller's own among them.

use super::{Construction, PrecondInfo, Suits, no_proposals, nothing_weaker, unknown_entries};
use crate::error::SetupError;
use crate::matrix::Csr;
use crate::operator::{DynPreconditioner, Preconditioner, Recipe, Symbolic};
use crate::space::Threads;
use std::any::Any;
use std::fmt::{Debug, Formatter};
use std::sync::Arc;

/// The entry of all recipes of callers: nothing is known of them.
pub(super) static OWN: PrecondInfo = PrecondInfo {
    name: "own",
    aliases: &[],
    parameters: &[],
    level_in_name: false,
    description: "a recipe of the caller's",
    matrices: Suits::Any,
    symmetric: false,
    can_shift: false,
    examples: &[],
    weaker: nothing_weaker,
    predicted_entries: unknown_entries,
    propose: no_proposals,
    construct: |_| Construction::Own,
};

/// The object-safe form of [`Recipe`]: analysis and factorization in one.
pub trait AnyRecipe: Send + Sync {
    /// The preconditioner of a matrix by rows.
    fn build(
        &self,
        space: &Threads<f64>,
        a: &Csr<f64>,
    ) -> Result<DynPreconditioner<Threads<f64>, Csr<f64>>, SetupError>;
}

impl<R> AnyRecipe for R
where
    R: Recipe<Threads<f64>, Csr<f64>> + Send + Sync,
    <R::Symbolic as Symbolic<Threads<f64>, Csr<f64>>>::Factor:
        Preconditioner<Threads<f64>, Csr<f64>, Scratch: Any + Send> + Send + Sync + 'static,
{
    fn build(
        &self,
        space: &Threads<f64>,
        a: &Csr<f64>,
    ) -> Result<DynPreconditioner<Threads<f64>, Csr<f64>>, SetupError> {
        Ok(DynPreconditioner::new(self.analyze(space, a)?.factor(space, a)?))
    }
}

/// A recipe of the caller's and its name.
#[derive(Clone)]
pub struct OwnRecipe {
    pub(crate) name: Arc<str>,
    pub(crate) recipe: Arc<dyn AnyRecipe>,
}

impl Debug for OwnRecipe {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("OwnRecipe").field(&self.name).finish()
    }
}

impl PartialEq for OwnRecipe {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && Arc::ptr_eq(&self.recipe, &other.recipe)
    }
}
