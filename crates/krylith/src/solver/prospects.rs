//! A plan with what it will take: the stores that the planned preconditioner is offered to, without a factor.

use super::build::pairs_after;
use super::options::Solver;
use super::reorder::Permutations;
use crate::engine::SolverSpace;
use crate::error::{SetupError, SolveError};
use crate::matrix::{Csr, exact_scale};
use crate::operator::LinearOperator;
use crate::plan::{Facts, SolvePlan};
use crate::setup::{Findings, SetupContext, SetupRecorder, agree};
use crate::space::require_same;
use crate::sparsify::Sparsified;
use crate::store::{FindStore, look};

/// A, where it is a matrix and not the one that its preconditioner is made from. All processes agree on whether it is.
pub(super) fn other_than<'a, S: SolverSpace, A: LinearOperator<S>>(
    space: &S,
    a: &'a A,
    matrix: &Csr<f64>,
) -> Result<Option<&'a Csr<f64>>, SolveError> {
    let differs = a.matrix().is_some_and(|a| !std::ptr::eq(a, matrix) && a != matrix);
    let differs = space.first(differs.then_some((0, 0.0)))?.is_some();
    let Some(other) = a.matrix().filter(|_| differs) else { return Ok(None) };
    agree(space, exact_scale(space.host(), other).map(|_| ()))?;
    Ok(Some(other))
}

impl Solver {
    /// The plan with the storages that were looked at, and what the one that is taken will need. `a` and `matrix` are those of
    /// [`prepare_on`](Self::prepare_on), which follows this plan.
    pub fn plan_on<S: SolverSpace, A: LinearOperator<S>>(
        &self,
        space: &S,
        stores: &[&dyn FindStore<S>],
        a: &A,
        matrix: &Csr<f64>,
    ) -> Result<SolvePlan, SolveError> {
        self.validate()?;
        matrix.pattern().require_square().map_err(SetupError::from)?;
        let layout = a.domain();
        require_same("A and the matrix of the preconditioner", &space.len(&layout), &matrix.ncols())?;
        exact_scale(space.host(), matrix)?;
        let other = other_than(space, a, matrix)?;
        let is_operator = a.matrix().is_none();
        let (mut plan, findings) = self.plan_for((space, stores), (other, matrix), is_operator)?;
        let sparsified = self.sparsified((space, stores), &mut plan, (a, matrix), &findings);
        let source = sparsified.as_ref().map_or(matrix, Sparsified::matrix);
        let reserved = sparsified.as_ref().map_or(0, Sparsified::bytes);
        if plan.facts.is_none() {
            plan.facts = Some(Facts::of(space, other.unwrap_or(matrix))?);
            plan.preconditioner_facts = other.map(|_| Facts::of(space, matrix)).transpose()?;
        }
        let ended = self.look_from((space, stores, a), (source, reserved), &findings, &mut plan);
        match pairs_after(space, &ended, source)? {
            None => ended?,
            Some(paired) => {
                plan.considered.clear();
                let (source, bytes) =
                    paired.as_ref().map_or((source, 0), |paired| (paired.matrix(), paired.bytes()));
                self.look_from((space, stores, a), (source, reserved + bytes), &findings, &mut plan)?;
            }
        }
        Ok(plan)
    }

    /// Looks at the storages for a preconditioner that is made from this source; `reserved` are the bytes that it takes.
    fn look_from<S: SolverSpace, A: LinearOperator<S>>(
        &self,
        (space, stores, a): (&S, &[&dyn FindStore<S>], &A),
        (source, reserved): (&Csr<f64>, usize),
        findings: &Findings,
        plan: &mut SolvePlan,
    ) -> Result<(), SolveError> {
        let kind = &plan.preconditioner.clone();
        plan.predicted_entries = kind.predicted_entries(source.pattern());
        let (scale, layout) = (exact_scale(space.host(), source)?, a.domain());
        let method = plan.method.limited(space.total(&layout), self.max_iterations);
        let options = self.setup_options(plan, plan.precision);
        let mut setup = SetupContext::new(options, space, layout, a.matrix(), source, (method, scale));
        setup.findings = findings.clone();
        setup.reserved = reserved as u64;
        let mut recorder = SetupRecorder::default();
        match Permutations::find(self, &setup, kind, &mut recorder)? {
            None => look(setup, stores, plan, &mut recorder),
            Some(found) => {
                let matrices = found.permute(&setup, &mut recorder)?;
                look(found.inner(&setup, &matrices), stores, plan, &mut recorder)
            }
        }
    }
}
