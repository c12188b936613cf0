//! A plan is made once, for `--explain` and for a solve, and a set-up builds what it says.
//!
//! What was found out on the way is handed over: a grid, the analysis of a complete factor, a factor that was tried. For
//! [`Solver::plan`] the stores are asked as well, which a set-up does when it builds.

use super::build::{SetUp, System, pairs_after};
use super::options::Solver;
use super::plan::Subject;
use super::reorder::Permutations;
use crate::error::{BackendError, SetupError, SolveError};
use crate::facts::{Facts, Whole};
use crate::matrix::{Csr, Stamp, exact_scale, mix, sizes_of_matrix};
use crate::operator::{LinearOperator, OwnRows, SolverSpace};
use crate::options::Method;
use crate::plan::SolvePlan;
use crate::setup::{Findings, KnownValues, SetupContext, SetupRecorder};
use crate::space::{agree, gather, holds_everywhere, require_same};
use crate::sparsify::{Sparsified, Sparsify};
use crate::store::{FindStore, look};
use std::time::Instant;

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

/// The rows of A that this process has, where it is not one matrix of one process.
pub(super) fn divided_rows<'a, S: SolverSpace, A: LinearOperator<S>>(
    space: &S,
    a: &'a A,
) -> Option<OwnRows<'a>> {
    a.own_rows().filter(|_| a.matrix().is_none() || !space.process().is_alone())
}

/// The facts of A, where its rows are divided among processes.
pub(super) struct DividedFacts {
    pub(super) of_a: Facts,
    /// The matrix of the preconditioner is that of the own rows and columns, on all processes.
    pub(super) has_block: bool,
}

impl DividedFacts {
    /// None where A is one matrix of this process, or none. The mesh is looked for where choices may depend on it.
    fn find<S: SolverSpace, A: LinearOperator<S>>(
        space: &S,
        a: &A,
        matrix: &Csr<f64>,
        has_mesh: bool,
    ) -> Result<Option<Self>, BackendError> {
        let Some(own) = divided_rows(space, a) else { return Ok(None) };
        let whole = Whole::new(space, own)?;
        let has_block = holds_everywhere(space, whole.has_block(matrix))?;
        let of_a = if has_mesh { Facts::of_whole(&whole)? } else { Facts::without_mesh(&whole)? };
        Ok(Some(DividedFacts { of_a, has_block }))
    }
}

/// Nothing of a plan depends on what one process has alone, so that all go on alike; where it does, nobody goes on.
fn agree_on<S: SolverSpace>(space: &S, plan: &SolvePlan) -> Result<(), BackendError> {
    let SolvePlan { method, preconditioner, precision, layout, ordering, matching, fallbacks, .. } = plan;
    let text = format!(
        "{method:?} {preconditioner} {precision:?} {layout:?} {ordering:?} {matching:?} {fallbacks:?}"
    );
    // The same in every process.
    let hash = text.bytes().fold(u128::MAX, |hash, byte| mix(hash, byte.into()));
    let all = gather(space, vec![hash as u64, (hash >> 64) as u64])?;
    match all.iter().all(|theirs| *theirs == all[0]) {
        true => Ok(()),
        false => Err(BackendError::Failed { what: "processes have made different plans".into() }),
    }
}

/// A plan, and all that was found out while it was made.
pub(super) struct Planned<'a, S: SolverSpace> {
    pub(super) plan: SolvePlan,
    /// A, where it is another matrix than that of the preconditioner.
    pub(super) other: Option<&'a Csr<f64>>,
    /// The power of two that brings the matrix of the preconditioner into range.
    scale: f64,
    pub(super) method: Method,
    pub(super) sparsified: Option<Sparsified>,
    findings: Findings,
    /// What was built already, to see whether a sparser matrix has a factor.
    built: Option<SetUp<S>>,
    pub(super) recorder: SetupRecorder,
}

/// Where a system is planned and set up.
pub(super) struct Place<'a, S: SolverSpace> {
    pub(super) space: &'a S,
    /// The ways to keep matrices there, asked in order.
    pub(super) stores: &'a [&'a dyn FindStore<S>],
}

impl<S: SolverSpace> Clone for Place<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S: SolverSpace> Copy for Place<'_, S> {}

impl Solver {
    /// Plans; what only a factor can tell is found out by making it.
    pub(super) fn planned_on<'a, S: SolverSpace, A: LinearOperator<S>>(
        &self,
        place: Place<'_, S>,
        a: &'a A,
        matrix: &Csr<f64>,
    ) -> Result<Planned<'a, S>, SolveError> {
        let space = place.space;
        self.validate()?;
        matrix.pattern().require_square().map_err(SetupError::from)?;
        let unknowns = space.len(&a.domain());
        require_same("A and the matrix of the preconditioner", &unknowns, &matrix.ncols())?;
        self.check_near_null_vectors(space, unknowns)?;
        let started = Instant::now();
        let (mut findings, mut scale) = (Findings::default(), 1.0);
        let asks = self.is_open() || self.needs_symmetry();
        let divided = if asks { DividedFacts::find(space, a, matrix, self.is_open())? } else { None };
        // Of the matrix of the preconditioner, unless that is A's own block.
        let own = self.is_open() && !divided.as_ref().is_some_and(|divided| divided.has_block);
        let facts = own.then(|| Facts::with_sizes(space, matrix)).transpose()?;
        let (facts, sizes) = facts.unzip();
        let first = a.own_rows().map_or(0, |own| own.first);
        let look = || sizes_of_matrix(space.host(), matrix).map_err(|error| error.of_part([first; 2]));
        let sizes = sizes.flatten().map_or_else(look, Ok);
        let values = sizes.map(|sizes| {
            let tiny_diagonal = facts.as_ref().map(|facts| facts.tiny_diagonals > 0);
            findings.keep_values(KnownValues { of: Stamp::of(matrix), sizes, tiny_diagonal });
            scale = sizes.exact_scale();
        });
        agree(space, values)?;
        let other = other_than(space, a, matrix)?;
        let subject = Subject { matrix, other, is_operator: a.matrix().is_none(), divided, facts };
        let (mut plan, findings) = self.plan_for(place, subject, findings)?;
        agree_on(space, &plan)?;
        let sparsified = self.sparsified(place, &mut plan, (a, matrix), &findings);
        let method = plan.method.limited(space.total(&a.domain()), self.max_iterations);
        let mut recorder = SetupRecorder::default();
        recorder.seconds.analyze = started.elapsed().as_secs_f64();
        let mut planned = Planned { plan, other, scale, method, sparsified, findings, built: None, recorder };
        planned.try_sparsified(self, place, a, matrix)?;
        Ok(planned)
    }

    /// As many finite numbers as A has columns; all processes agree on whether they are.
    fn check_near_null_vectors<S: SolverSpace>(&self, space: &S, unknowns: usize) -> Result<(), SolveError> {
        let is_wrong = |v: &Vec<f64>| v.len() != unknowns || !v.iter().all(|v| v.is_finite());
        let wrong = self.near_null.iter().position(is_wrong);
        if self.near_null.is_empty() || space.first(wrong.map(|k| (k, 0.0)))?.is_none() {
            return Ok(());
        }
        let Some(k) = wrong else {
            let what = "near-null vectors of another process are not those of its columns";
            return Err(BackendError::Failed { what: what.into() }.into());
        };
        Err(SolveError::Option {
            name: "near-null vectors",
            value: format!("number {k} of {} numbers", self.near_null[k].len()),
            needed: format!("{unknowns} finite numbers are needed, one for each column of A"),
        })
    }

    /// The plan with the storages that were looked at, and what the one that is taken will need. `a` and `matrix` are those of
    /// [`prepare_on`](Self::prepare_on), which makes the same plan and builds what it says.
    pub fn plan_on<S: SolverSpace, A: LinearOperator<S>>(
        &self,
        space: &S,
        stores: &[&dyn FindStore<S>],
        a: &A,
        matrix: &Csr<f64>,
    ) -> Result<SolvePlan, SolveError> {
        let place = Place { space, stores };
        let Planned { mut plan, other, sparsified, findings, .. } = self.planned_on(place, a, matrix)?;
        let source = sparsified.as_ref().map_or(matrix, Sparsified::matrix);
        let reserved = sparsified.as_ref().map_or(0, Sparsified::bytes);
        if plan.facts.is_none() {
            let divided = DividedFacts::find(space, a, matrix, true)?;
            let is_own = divided.as_ref().map_or(other.is_none(), |divided| divided.has_block);
            plan.facts = Some(match divided {
                Some(divided) => divided.of_a,
                None => Facts::of(space, other.unwrap_or(matrix))?,
            });
            plan.preconditioner_facts = (!is_own).then(|| Facts::of(space, matrix)).transpose()?;
        }
        let ended = self.look_from(place, a, (source, reserved), &findings, &mut plan);
        match pairs_after(space, &ended, source)? {
            None => ended?,
            Some(paired) => {
                let (source, bytes) =
                    paired.as_ref().map_or((source, 0), |paired| (paired.matrix(), paired.bytes()));
                self.look_from(place, a, (source, reserved + bytes), &findings, &mut plan)?;
            }
        }
        Ok(plan)
    }

    /// Looks at the storages for a preconditioner that is made from this source; `reserved` are the bytes that it takes.
    fn look_from<S: SolverSpace, A: LinearOperator<S>>(
        &self,
        Place { space, stores }: Place<'_, S>,
        a: &A,
        (source, reserved): (&Csr<f64>, usize),
        findings: &Findings,
        plan: &mut SolvePlan,
    ) -> Result<(), SolveError> {
        let kind = &plan.preconditioner.clone();
        plan.predicted_entries = kind.predicted_entries(source.pattern());
        let (scale, size) = (exact_scale(space.host(), source)?, a.domain());
        let method = plan.method.limited(space.total(&size), self.max_iterations);
        let options = self.setup_options(plan, plan.precision);
        let mut setup = SetupContext::new(options, space, size, a.matrix(), source, (method, scale));
        setup.own_rows = divided_rows(space, a);
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

impl<S: SolverSpace> Planned<'_, S> {
    /// Builds what the plan says, unless it has been built already.
    pub(super) fn build<A: LinearOperator<S>>(
        &mut self,
        solver: &Solver,
        place: Place<'_, S>,
        a: &A,
        matrix: &Csr<f64>,
    ) -> Result<SetUp<S>, SolveError> {
        let built = match self.built.take() {
            Some(built) => built,
            None => self.set_up(solver, place, a, matrix)?,
        };
        self.plan.considered = std::mem::take(&mut self.recorder.considered);
        Ok(built)
    }

    fn set_up<A: LinearOperator<S>>(
        &mut self,
        solver: &Solver,
        place: Place<'_, S>,
        a: &A,
        matrix: &Csr<f64>,
    ) -> Result<SetUp<S>, SolveError> {
        let space = place.space;
        let source = self.sparsified.as_ref().map_or(matrix, Sparsified::matrix);
        let mut scale = self.scale;
        // Some processes may have dropped nothing.
        if self.plan.sparsify != Sparsify::Off {
            agree(space, exact_scale(space.host(), source).map(|found| scale = found))?;
        }
        let system = System {
            solver,
            place,
            a,
            source,
            scale,
            reserved: self.sparsified.as_ref().map_or(0, Sparsified::bytes),
            method: self.method,
            plan: &self.plan,
            precision: self.plan.precision,
            findings: &self.findings,
            trained: None,
        };
        system.set_up(&mut self.recorder)
    }

    /// Builds from a sparser matrix that nobody asked for: a pivot that was good in A may be bad without what was dropped, and A is taken after all.
    fn try_sparsified<A: LinearOperator<S>>(
        &mut self,
        solver: &Solver,
        place: Place<'_, S>,
        a: &A,
        matrix: &Csr<f64>,
    ) -> Result<(), SolveError> {
        let space = place.space;
        // What was decided, here or by the plan that is followed, and not asked for.
        let is_planned = solver.planned.is_some() && matches!(self.plan.sparsify, Sparsify::Chains(_));
        let is_open = self.plan.sparsify == Sparsify::Auto || is_planned;
        if !is_open || space.first(self.sparsified.is_some().then_some((0, 0.0)))?.is_none() {
            return Ok(());
        }
        let built = self.set_up(solver, place, a, matrix);
        let known = self.plan.sparsification.as_ref().map_or(0.0, |found| found.shift);
        let failed = built.as_ref().is_err_and(|error| matches!(error, SolveError::Setup(_)));
        let is_bad = built.as_ref().is_ok_and(|SetUp { summary, .. }| {
            summary.shift > known || summary.kind != self.plan.preconditioner
        });
        let lost = self.sparsified.is_some() && (failed || is_bad);
        if space.first(lost.then_some((0, 0.0)))?.is_none() {
            self.built = Some(built?);
            return Ok(());
        }
        let reason = match failed {
            true => "there is no factor without what would be dropped",
            false => "a pivot is bad without what would be dropped",
        };
        let withdrawn = self.plan.sparsification.iter_mut().map(|found| found.withdraw(reason));
        (self.recorder.recovery, self.sparsified) = (withdrawn.collect(), None);
        Ok(())
    }
}
