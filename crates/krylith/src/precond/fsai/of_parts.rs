//! An approximate inverse of a matrix whose rows are divided among processes: with the bits of that of one process, wherever they are cut.
//!
//! Row i of G depends on rows up to i, those that it reaches in as many steps as its pattern takes. A process is sent those that it does not have
//! (`facts::neighbours`), computes as if they were its own, and keeps its rows. Gᵀ is sent around entry by entry.

use super::choose::{Counts, MOST_POWER, tau_and_power_by};
use super::pattern::roots_of_diagonal;
use super::{Fsai, PatternRule, pair};
use crate::error::{BackendError, SetupError};
use crate::facts::{Neighbourhood, Whole};
use crate::matrix::Csr;
use crate::operator::{AnyScratch, DynOperator, LinearOperator, Preconditioner, Recipe, SolverSpace};
use crate::space::{agree, gather};

/// The own rows of G and Gᵀ, or of G_L and G_U, with the columns of the whole, and how the pattern was found, in words.
pub(crate) struct InverseRows {
    pub(crate) matrices: [Csr<f64>; 2],
    pub(crate) words: String,
}

impl InverseRows {
    /// All processes call it together.
    pub(crate) fn new<S: SolverSpace>(whole: &Whole<'_, S>, recipe: Fsai) -> Result<Self, SetupError> {
        let steps = match recipe.pattern {
            PatternRule::Powers { tau: Some(_), power: Some(power) } => power.max(1),
            PatternRule::Powers { power, .. } => power.unwrap_or(0).max(MOST_POWER),
            PatternRule::Adaptive(growth) => growth.steps,
        };
        let near = whole.neighbourhood(steps, recipe.pair)?;
        let recipe = resolved(whole, &near, recipe)?;
        let space = whole.space();
        let found = recipe.analyze(space.host(), &near.matrix).and_then(|symbolic| {
            let ([g, second], _) = symbolic.factors(space.host(), &near.matrix, None)?;
            Ok((symbolic.words(), g, second))
        });
        agree(space, found.as_ref().map(|_| ()).map_err(Clone::clone))?;
        let (words, g, second) = found?;
        let rows = |of: &Csr<f64>| near.own_rows(of, whole.rows());
        let lower = rows(&g);
        let second = match recipe.pair {
            true => whole.transposed(&rows(&second.transpose()))?,
            false => whole.transposed(&lower)?,
        };
        Ok(InverseRows { matrices: [lower, second], words })
    }
}

/// The recipe with nothing left to choose: what is not given is chosen from the whole matrix.
fn resolved<S: SolverSpace>(
    whole: &Whole<'_, S>,
    near: &Neighbourhood,
    recipe: Fsai,
) -> Result<Fsai, BackendError> {
    let PatternRule::Powers { tau, power } = recipe.pattern else { return Ok(recipe) };
    let sizes = recipe.pair.then(|| pair::sizes(&near.matrix));
    let matrix = sizes.as_ref().unwrap_or(&near.matrix);
    let roots = roots_of_diagonal(matrix);
    let count = |tau| {
        let own = Counts::sample(whole.rows()).filter(|row| whole.range().contains(row));
        let reached = own.map(|row| Counts::reached(matrix, &roots, tau, near.place(row)));
        let words = reached.flat_map(|counts| counts.map(|count| count as u64)).collect();
        // Sampled rows are in order, and so are processes.
        let all = gather(whole.space(), words)?.concat();
        let all = all.as_chunks().0.iter().map(|counts: &[u64; MOST_POWER]| counts.map(|c| c as usize));
        Ok(Counts::of_sample(whole.rows(), all))
    };
    let (tau, power) = tau_and_power_by((tau, power), count)?;
    let delta = recipe.delta.unwrap_or(if power > 1 { tau } else { 0.0 });
    let pattern = PatternRule::Powers { tau: Some(tau), power: Some(power) };
    Ok(Fsai { pattern, delta: Some(delta), ..recipe })
}

/// G and Gᵀ, or G_L and G_U, as operators between vectors that are divided as rows are.
pub(crate) struct InParts<S: SolverSpace> {
    first: DynOperator<S>,
    second: DynOperator<S>,
    entries: usize,
    bytes: usize,
}

impl<S: SolverSpace> InParts<S> {
    /// All processes call it together, each with its rows, the first of which has this number.
    pub(crate) fn new(space: &S, [g, second]: [Csr<f64>; 2], first: usize) -> Result<Self, SetupError> {
        let (entries, bytes) = (g.nnz(), g.bytes() + second.bytes());
        let operator = |rows| {
            let made = space.operator_of_own_rows(rows, first);
            agree(space, made.as_ref().map(|_| ()).map_err(|error| error.clone().into()))?;
            Ok::<_, SetupError>(made?)
        };
        Ok(InParts { first: operator(g)?, second: operator(second)?, entries, bytes })
    }
}

/// What lies between the two products, and what they need.
pub(crate) struct Scratch<S: SolverSpace> {
    between: S::Vector,
    own: [AnyScratch; 2],
}

impl<S: SolverSpace> LinearOperator<S> for InParts<S> {
    type Scratch = Scratch<S>;

    fn domain(&self) -> S::Size {
        self.first.domain()
    }

    fn range(&self) -> S::Size {
        self.second.range()
    }

    fn scratch(&self, space: &S) -> Result<Scratch<S>, BackendError> {
        let own = [self.first.scratch(space)?, self.second.scratch(space)?];
        Ok(Scratch { between: space.zeros(&self.first.range())?, own })
    }

    fn apply(
        &self,
        space: &S,
        x: &S::Vector,
        y: &mut S::Vector,
        Scratch { between, own: [first, second] }: &mut Scratch<S>,
    ) -> Result<(), BackendError> {
        self.first.apply(space, x, between, first)?;
        self.second.apply(space, between, y, second)
    }
}

impl<S: SolverSpace> Preconditioner<S, Csr<f64>> for InParts<S> {
    fn refactor(&mut self, _: &S, _: &Csr<f64>) -> Result<(), SetupError> {
        let what = "new values for an approximate inverse whose rows are divided: prepare it again";
        Err(BackendError::Unsupported { what }.into())
    }

    fn entries(&self) -> usize {
        self.entries
    }

    fn bytes(&self) -> usize {
        self.bytes
    }
}
