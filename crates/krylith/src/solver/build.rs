//! From a plan and a matrix to an engine, and what follows a failure on the way.

use super::learning::{TrainedMatrix, train_by_solving};
use super::options::Solver;
use super::planned::{Place, divided_rows};
use super::reorder::{Permutations, refused, reordered};
use crate::engine::DynEngine;
use crate::error::{BackendError, SetupError, SolveError};
use crate::matrix::{Csr, exact_scale};
use crate::operator::{LinearOperator, SolverSpace};
use crate::options::{Method, Precision};
use crate::outcome::Recovery;
use crate::plan::{Failure, Remedy, SolvePlan};
use crate::precond::PrecondSpec;
use crate::setup::{Findings, SetupContext, SetupOptions, SetupRecorder, SetupSummary};
use crate::space::agree;
use crate::sparsify::{Paired, Sparsify};
use crate::store::{FindStore, in_stores, no_preconditioner};
use crate::transform::{Ordering, order};
use std::borrow::Cow;
use std::ops::ControlFlow;
use std::sync::Arc;

impl Solver {
    pub(super) fn setup_options(&self, plan: &SolvePlan, precision: Precision) -> SetupOptions {
        let Solver { schedule, layout, max_bytes, max_memory, .. } = *self;
        let (recover, shift) = (plan.shifts(), self.shift);
        SetupOptions { schedule, layout, precision, recover, shift, max_bytes, max_memory }
    }

    /// `Err(Option)` for a number that no solve can work with.
    pub(super) fn validate(&self) -> Result<(), SolveError> {
        let not_negative = |name, value: f64| match value.is_finite() && value >= 0.0 {
            true => Ok(()),
            false => Err(SolveError::Option {
                name,
                value: value.to_string(),
                needed: "a finite number from 0 on is needed".into(),
            }),
        };
        not_negative("rtol", self.rtol)?;
        not_negative("atol", self.atol)?;
        not_negative("shift", self.shift)?;
        self.machine.validate()?;
        self.sparsify.map_or(Ok(()), Sparsify::validate)?;
        self.preconditioner.validate()
    }
}

/// A system to be set up, and where.
pub(super) struct System<'a, S: SolverSpace, A> {
    pub(super) solver: &'a Solver,
    pub(super) place: Place<'a, S>,
    pub(super) a: &'a A,
    pub(super) source: &'a Csr<f64>,
    /// The power of two that brings the source into range.
    pub(super) scale: f64,
    /// Bytes that are taken already, besides A and vectors.
    pub(super) reserved: usize,
    pub(super) method: Method,
    pub(super) plan: &'a SolvePlan,
    /// In which numbers factors are stored.
    pub(super) precision: Precision,
    /// What is known about the source already.
    pub(super) findings: &'a Findings,
    /// A factor that has been trained for the source.
    pub(super) trained: Option<Arc<TrainedMatrix>>,
}

/// What was set up.
pub(super) struct SetUp<S: SolverSpace> {
    pub(super) engine: DynEngine<S>,
    /// What the report says of it.
    pub(super) summary: SetupSummary,
    /// What it was made from instead of a source whose pattern is not symmetric.
    pub(super) paired: Option<Paired>,
    /// What it was made from, where it is trained.
    pub(super) trained: Option<Arc<TrainedMatrix>>,
}

impl<S: SolverSpace, A: LinearOperator<S>> System<'_, S, A> {
    /// Builds the planned preconditioner and, where that fails, what the plan has for the failure.
    pub(super) fn set_up(&self, recorder: &mut SetupRecorder) -> Result<SetUp<S>, SolveError> {
        let (mut wanted, mut tried) = (self.plan.preconditioner.clone(), Vec::new());
        // The stores that the planned preconditioner was offered to.
        let mut considered = None;
        loop {
            let ended = self.set_up_one(&wanted, recorder);
            recorder.considered = considered.unwrap_or_else(|| std::mem::take(&mut recorder.considered));
            let error = match ended {
                Err(SolveError::Setup(error)) => error,
                done => return done,
            };
            considered = Some(std::mem::take(&mut recorder.considered));
            let remedy = Failure::of_setup(&error).and_then(|failure| self.plan.remedy(failure, &tried));
            let next = match &remedy {
                Some(Remedy::Diagonal) => Some(PrecondSpec::robust_jacobi()),
                Some(Remedy::LessFill) => wanted.weaker(),
                _ => None,
            };
            let (Some(remedy), Some(next)) = (remedy, next) else {
                return Err(of_the_whole(self.solver, error).into());
            };
            let action = match &remedy {
                Remedy::LessFill => format!("{next} instead"),
                other => other.to_string(),
            };
            recorder.recovery.push(Recovery::after(format!("{wanted}: {error}"), &error, action));
            tried.push(remedy);
            wanted = next;
        }
    }

    /// Analyzes and factors, adding up the seconds; what fails on the way and is recovered from is recorded. Where a symmetric pattern
    /// is needed and that of the source is not, zeros and rounding errors on one side of the diagonal are left out.
    pub(super) fn set_up_one(
        &self,
        kind: &PrecondSpec,
        recorder: &mut SetupRecorder,
    ) -> Result<SetUp<S>, SolveError> {
        let System { place: Place { space, .. }, source, scale, .. } = *self;
        if let Some(rounds) = kind.training_rounds() {
            let trained = self.trained(rounds, recorder)?;
            let (p, kept) = (trained.matrix(), trained.bytes());
            let from = Source { matrix: p, scale: exact_scale(space.host(), p)?, kept };
            let (engine, summary) = self.set_up_from(from, Findings::default(), kind, recorder)?;
            return Ok(SetUp { engine, summary, paired: None, trained: Some(trained) });
        }
        let steps = recorder.recovery.len();
        // Findings about values are A's.
        let from = Source { matrix: source, scale, kept: 0 };
        let built = self.set_up_from(from, self.findings.clone(), kind, recorder);
        let (built, paired) = match pairs_after(space, &built, source)? {
            None => (built, None),
            Some(paired) => {
                recorder.recovery.truncate(steps);
                let matrix = paired.as_ref().map_or(source, Paired::matrix);
                let from = Source { matrix, scale, kept: paired.as_ref().map_or(0, Paired::bytes) };
                (self.set_up_from(from, self.findings.clone(), kind, recorder), paired)
            }
        };
        let (engine, summary) = built?;
        Ok(SetUp { engine, summary, paired, trained: None })
    }

    /// Analyzes and factors this source.
    fn set_up_from(
        &self,
        Source { matrix: source, scale, kept }: Source<'_>,
        findings: Findings,
        kind: &PrecondSpec,
        recorder: &mut SetupRecorder,
    ) -> Result<(DynEngine<S>, SetupSummary), SolveError> {
        let System { solver, place: Place { space, stores }, a, method, plan, .. } = *self;
        let (options, own) = (solver.setup_options(plan, self.precision), a.matrix());
        let mut setup = SetupContext::new(options, space, a.domain(), own, source, (method, scale));
        setup.own = solver.own.as_ref();
        setup.near_null = Cow::Borrowed(&solver.near_null);
        setup.own_rows = divided_rows(space, a);
        setup.findings = findings;
        setup.reserved = (self.reserved + kept) as u64;
        agree(space, setup.require_room(kind))?;
        let (engine, mut summary) = match set_up_permuted(solver, &setup, stores, kind, recorder)? {
            Some(done) => done,
            None => in_stores(setup, stores, (kind, None), recorder)?,
        };
        let kept = self.reserved + kept;
        summary.predicted += kept;
        summary.held += kept;
        Ok((engine, summary))
    }

    /// The matrix of a factor that is trained for the source, unless it has been trained already. Each process trains that of its own rows.
    fn trained(&self, rounds: usize, recorder: &mut SetupRecorder) -> Result<Arc<TrainedMatrix>, SolveError> {
        if let Some(trained) = &self.trained {
            return Ok(Arc::clone(trained));
        }
        let near_null = Arc::from([]);
        let solver =
            Solver { own: None, near_null, planned: None, precision: Precision::F64, ..self.solver.clone() };
        let solver = solver.threads(self.place.space.host().threads()).profile(false);
        let solver = solver.rtol(self.solver.rtol.max(LEAST_TOLERANCE));
        let trained = recorder.factoring(|| {
            let train = |a: &Csr<f64>| {
                let (p, report) = train_by_solving(&solver, a, rounds, |_| ControlFlow::Continue(()))?;
                tracing::info!(%report, "trained");
                Ok::<_, SolveError>(p)
            };
            if self.solver.reorder == Ordering::Natural {
                return Ok(TrainedMatrix::new(train(self.source)?, self.source)?);
            }
            // A factor is that of the order it was trained in: the one that rows will have.
            let order = order(self.source.pattern(), self.solver.reorder).map_err(refused)?;
            let permuted = self.source.view().permute_symmetric(&order).map_err(SetupError::from)?;
            let p = train(&permuted)?.view().permute_symmetric(&order.inverse()).map_err(SetupError::from)?;
            Ok(TrainedMatrix::new(p, self.source)?)
        });
        // What fails for one process has failed for all.
        let (mut found, mut other) = (None, None);
        let result = match trained {
            Ok(trained) => {
                found = Some(Arc::new(trained));
                Ok(())
            }
            Err(SolveError::Setup(error)) => Err(error),
            Err(error) => {
                let what = error.to_string();
                other = Some(error);
                Err(BackendError::Failed { what }.into())
            }
        };
        let agreed = agree(self.place.space, result);
        other.map_or(Ok(()), Err)?;
        agreed?;
        Ok(found.expect("all processes have one"))
    }
}

/// A matrix to make a preconditioner from.
struct Source<'a> {
    matrix: &'a Csr<f64>,
    /// The power of two that brings it into range.
    scale: f64,
    /// Bytes that it takes besides what is reserved.
    kept: usize,
}

/// Training has nothing from smaller residuals but more iterations.
const LEAST_TOLERANCE: f64 = 1e-10;

/// The matrix to set up from after a set-up for which the pattern of this source was not symmetric: without the entries that have none across the diagonal, as
/// long as they are negligible. The outer option is `None` after any other end, the inner one where all entries of this process have partners.
pub(super) fn pairs_after<S: SolverSpace, T>(
    space: &S,
    ended: &Result<T, SolveError>,
    source: &Csr<f64>,
) -> Result<Option<Option<Paired>>, SolveError> {
    let refused = matches!(ended, Err(SolveError::Setup(SetupError::PatternNotSymmetric)));
    if space.first(refused.then_some((0, 0.0)))?.is_none() {
        return Ok(None);
    }
    let paired = Paired::of(source);
    let is_possible = space.first(paired.is_err().then_some((0, 0.0)))?.is_none();
    Ok(paired.ok().filter(|_| is_possible))
}

/// Sets up the permuted and scaled system, if rows and columns do not stay as they are.
pub(super) fn set_up_permuted<S: SolverSpace>(
    solver: &Solver,
    setup: &SetupContext<'_, S>,
    stores: &[&dyn FindStore<S>],
    kind: &PrecondSpec,
    recorder: &mut SetupRecorder,
) -> Result<Option<(DynEngine<S>, SetupSummary)>, SolveError> {
    let Some(found) = Permutations::find(solver, setup, kind, recorder)? else { return Ok(None) };
    let (engine, summary) = reordered(setup, stores, found, kind, recorder)?;
    Ok(Some((Box::new(engine), summary)))
}

/// No preconditioner, for an operator that is no matrix.
pub(super) fn without<S: SolverSpace>(space: &S, size: S::Size, method: Method) -> SetUp<S> {
    let (engine, summary) = no_preconditioner(space, size, method);
    SetUp { engine, summary, paired: None, trained: None }
}

/// With a limit on the whole solve, an error says what the whole solve takes: `limit` was what vectors had left of it.
fn of_the_whole(options: &Solver, error: SetupError) -> SetupError {
    match (error, options.max_bytes, options.max_memory) {
        (SetupError::MemoryLimit { predicted, limit }, None, Some(whole)) => {
            SetupError::MemoryLimit { predicted: predicted.saturating_add(whole - limit), limit: whole }
        }
        (other, ..) => other,
    }
}
