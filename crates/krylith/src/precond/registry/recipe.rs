//! Preconditioners by a [`Recipe`] of any kind, the caller's own among them.

use super::{Construction, PrecondInfo, Suits, no_proposals, nothing_weaker, unknown_entries};
use crate::error::SetupError;
use crate::matrix::Csr;
use crate::operator::{DynPreconditioner, Given, Preconditioner, Recipe, Symbolic};
use crate::space::Threads;
use std::fmt::{Debug, Formatter};
use std::sync::Arc;

/// The entries of recipes of callers: of a general one, a symmetric one, and those of both kinds that can be shifted.
pub(super) static OWN: [PrecondInfo; 4] =
    [own(false, false), own(true, false), own(false, true), own(true, true)];

const fn own(symmetric: bool, can_shift: bool) -> PrecondInfo {
    PrecondInfo {
        name: "own",
        aliases: &[],
        parameters: &[],
        level_in_name: false,
        description: "a recipe of the caller's",
        matrices: Suits::Any,
        symmetric,
        can_shift,
        examples: &[],
        weaker: nothing_weaker,
        predicted_entries: unknown_entries,
        propose: no_proposals,
        construct: |_| Construction::Own,
    }
}

/// The object-safe form of [`Recipe`].
pub trait AnyRecipe: Send + Sync {
    /// Analyzes a matrix by rows.
    fn analyze(
        &self,
        space: &Threads<f64>,
        a: &Csr<f64>,
        given: &Given<'_>,
    ) -> Result<Box<dyn AnySymbolic>, SetupError>;

    /// What is known of it without a matrix.
    fn info(&self) -> &'static PrecondInfo;
}

/// The object-safe form of [`Symbolic`].
pub trait AnySymbolic {
    /// The preconditioner of a matrix with its diagonal enlarged.
    fn factor(
        &self,
        space: &Threads<f64>,
        a: &Csr<f64>,
        shift: f64,
    ) -> Result<DynPreconditioner<Threads<f64>, Csr<f64>>, SetupError>;
}

impl<R> AnyRecipe for R
where
    R: Recipe<Threads<f64>, Csr<f64>, Symbolic: 'static> + Send + Sync,
    <R::Symbolic as Symbolic<Threads<f64>, Csr<f64>>>::Factor:
        Preconditioner<Threads<f64>, Csr<f64>> + Send + Sync + 'static,
{
    fn analyze(
        &self,
        space: &Threads<f64>,
        a: &Csr<f64>,
        given: &Given<'_>,
    ) -> Result<Box<dyn AnySymbolic>, SetupError> {
        Ok(Box::new(Analyzed(self.analyze_given(space, a, given)?)))
    }

    fn info(&self) -> &'static PrecondInfo {
        &OWN[usize::from(self.is_symmetric()) + 2 * usize::from(self.can_shift())]
    }
}

/// What a recipe has analyzed.
struct Analyzed<T>(T);

impl<T> AnySymbolic for Analyzed<T>
where
    T: Symbolic<Threads<f64>, Csr<f64>>,
    T::Factor: Preconditioner<Threads<f64>, Csr<f64>> + Send + Sync + 'static,
{
    fn factor(
        &self,
        space: &Threads<f64>,
        a: &Csr<f64>,
        shift: f64,
    ) -> Result<DynPreconditioner<Threads<f64>, Csr<f64>>, SetupError> {
        Ok(DynPreconditioner::new(self.0.factor_shifted(space, a, shift)?))
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
