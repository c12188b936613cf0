//! What runs in a solve: the prepared engine and method, or what follows them, and how long it may take.

use super::build::{SetUp, System, without};
use super::certify::Certifier;
use super::planned::Place;
use super::prepared::{Prepared, Seen};
use super::slow_progress::Patience;
use super::winner::{Winner, fingerprint};
use crate::cost::{Applied, Expected, Work};
use crate::elimination::Kind;
use crate::engine::{DynEngine, EngineWorkspace, Operand};
use crate::error::{BackendError, SolveError};
use crate::matrix::{Csr, exact_scale};
use crate::operator::{LinearOperator, SolverSpace};
use crate::options::{Method, Precision};
use crate::outcome::Recovery;
use crate::plan::{Failure, Remedy, SolvePlan};
use crate::precond::PrecondSpec;
use crate::precond::registry::Construction;
use crate::report::Rung;
use crate::setup::{Findings, SetupContext, SetupRecorder, SetupSummary, Storing};
use crate::transform::Ordering;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// What runs: the prepared engine and method, or others for this right-hand side alone.
pub(super) struct Stage<'w, S: SolverSpace> {
    pub(super) method: Method,
    /// Instead of the prepared one.
    pub(super) engine: Option<Arc<SetUp<S>>>,
    pub(super) prepared: &'w mut EngineWorkspace,
    /// Of another engine or method.
    pub(super) other: Option<EngineWorkspace>,
    pub(super) precision: Precision,
    pub(super) ordering: Ordering,
    /// Seconds of the plan's machine, where they were predicted.
    pub(super) predicted_seconds: Option<f64>,
    /// What could not be set up, and is not tried again.
    pub(super) refused: Vec<PrecondSpec>,
    /// What was tried after the planned method.
    pub(super) tried: Vec<Remedy>,
    /// The rung that has won for this A before.
    pub(super) known: Option<Arc<Winner<S>>>,
    /// Whether this solve begins with it.
    pub(super) begins: bool,
    /// What went wrong while the engine was set up.
    pub(super) steps: Vec<Recovery>,
}

impl<S: SolverSpace> Stage<'_, S> {
    pub(super) fn parts<'s>(
        &'s mut self,
        prepared: &'s DynEngine<S>,
    ) -> (&'s DynEngine<S>, &'s mut EngineWorkspace) {
        let engine = self.engine.as_ref().map_or(prepared, |set_up| &set_up.engine);
        (engine, self.other.as_mut().unwrap_or(self.prepared))
    }

    /// The preconditioner that runs.
    pub(super) fn summary<'s>(&'s self, prepared: &'s SetupSummary) -> &'s SetupSummary {
        self.engine.as_ref().map_or(prepared, |set_up| &set_up.summary)
    }

    /// Takes the rung that has won before for the planned method, if it is known to be better for this right-hand side; what the report says of it.
    pub(super) fn begin<A: LinearOperator<S>>(
        &mut self,
        (prepared, space, a): (&Prepared<A, S>, &S, &A),
        b: &S::Vector,
    ) -> Result<Vec<Recovery>, SolveError> {
        let Some(known) = self.known.clone() else { return Ok(Vec::new()) };
        if !known.begins(fingerprint(space, b)?) {
            return Ok(Vec::new());
        }
        self.take(prepared, space, a, &known)?;
        (self.tried, self.begins, self.predicted_seconds) = (known.tried.clone(), true, None);
        Ok(std::iter::once(known.step()).chain(known.steps.iter().cloned()).collect())
    }

    /// Runs what has won before.
    fn take<A: LinearOperator<S>>(
        &mut self,
        prepared: &Prepared<A, S>,
        space: &S,
        a: &A,
        known: &Winner<S>,
    ) -> Result<(), SolveError> {
        let engine = known.engine.as_ref().map_or(&prepared.engine, |set_up| &set_up.engine);
        self.other = Some(engine.workspace(space, Operand::Operator(a), known.method)?);
        (self.engine, self.method) = (known.engine.clone(), known.method);
        (self.precision, self.ordering) = (known.precision, known.ordering);
        self.steps.clone_from(&known.steps);
        Ok(())
    }

    /// What later solves may begin with, after a solve that has an answer: the last of these rungs, where the planned method failed.
    pub(super) fn winner<A: LinearOperator<S>>(
        &self,
        certifier: &Certifier<'_, S, A>,
        rungs: &[Rung],
    ) -> Result<Option<Winner<S>>, BackendError> {
        let Some((first, [.., _])) = rungs.split_first() else { return Ok(None) };
        let matrix = certifier.a().matrix().filter(|_| certifier.is_alone());
        let Some(a) = matrix.filter(|_| !self.begins && !certifier.has_own_criterion()) else {
            return Ok(None);
        };
        Ok(Some(Winner {
            of: Seen::new(certifier.space(), a),
            failed: format!(
                "{} with {}: {}",
                first.method,
                first.preconditioner,
                first.left.as_deref().unwrap_or_default()
            ),
            tried: self.tried.clone(),
            method: self.method,
            engine: self.engine.clone(),
            precision: self.precision,
            ordering: self.ordering,
            steps: self.steps.clone(),
            failures: vec![fingerprint(certifier.space(), certifier.b())?],
        }))
    }
}

/// Sets up the next method that the plan has for this failure, passing over those that cannot be set up; `false` if none is left.
pub(super) fn enter_next<S: SolverSpace, A: LinearOperator<S>>(
    (prepared, findings): (&Prepared<A, S>, &Findings),
    certifier: &Certifier<'_, S, A>,
    stage: &mut Stage<'_, S>,
    (failure, failed): (Failure, String),
    recovery: &mut Vec<Recovery>,
) -> Result<bool, SolveError> {
    let mut step = Recovery { failed, row: None, value: None, action: String::new() };
    while let Some(next) = prepared.plan.next_method(failure, &stage.tried) {
        stage.tried.push(next.clone());
        let preconditioner = next.preconditioner();
        if preconditioner.is_some_and(|kind| stage.refused.contains(kind)) {
            continue;
        }
        recovery.push(Recovery { action: next.to_string(), ..step });
        match enter((prepared, findings), certifier.space(), certifier.a(), &next, stage) {
            Ok(()) => {
                recovery.extend(stage.steps.iter().cloned());
                return Ok(true);
            }
            // A remedy is no reason to end a solve that has an answer, of whatever quality.
            Err(SolveError::Setup(error)) => {
                stage.refused.extend(preconditioner.cloned());
                step = Recovery::after(format!("{next}: {error}"), &error, String::new());
            }
            Err(SolveError::Backend(
                error @ (BackendError::Unsupported { .. } | BackendError::OutOfMemory { .. }),
            )) => {
                stage.refused.extend(preconditioner.cloned());
                let failed = format!("{next}: {error}");
                step = Recovery { failed, row: None, value: None, action: String::new() };
            }
            Err(other) => return Err(other),
        }
    }
    Ok(false)
}

/// Prepares the next run: another method on the prepared factor, or an engine for this solve alone.
fn enter<S: SolverSpace, A: LinearOperator<S>>(
    (prepared, findings): (&Prepared<A, S>, &Findings),
    space: &S,
    a: &A,
    next: &Remedy,
    stage: &mut Stage<'_, S>,
) -> Result<(), SolveError> {
    stage.steps.clear();
    if let Some(known) = stage.known.clone().filter(|known| known.is_of(next)) {
        stage.take(prepared, space, a, &known)?;
        stage.predicted_seconds = None;
        return Ok(());
    }
    let Prepared { options, stores, plan, .. } = prepared;
    let mut recorder = SetupRecorder::default();
    let mut solver = options.clone();
    let mut precision = options.precision.as_asked();
    let (method, preconditioner) = match next {
        Remedy::Method { method, preconditioner, ordering } => {
            solver.reorder = ordering.unwrap_or(solver.reorder);
            // That of the caller is for the planned factor.
            solver.shift = 0.0;
            (*method, preconditioner.as_ref())
        }
        Remedy::DoublePrecision => {
            precision = Precision::F64;
            (prepared.method, Some(&prepared.summary.kind))
        }
        _ => return Ok(()),
    };
    let method = method.limited(space.total(&a.domain()), solver.max_iterations);
    let built = match (preconditioner, a.matrix()) {
        (None, _) => None,
        (Some(kind), Some(source)) => {
            // What comes after a failure must not fail.
            let robust = PrecondSpec::robust_jacobi();
            let kind = if *kind == PrecondSpec::jacobi() { &robust } else { kind };
            let scale = exact_scale(space.host(), source)?;
            let system = System {
                solver: &solver,
                place: Place { space, stores },
                a,
                source,
                scale,
                reserved: 0,
                method,
                plan,
                precision,
                findings,
                trained: prepared.trained.clone(),
            };
            Some(match next {
                Remedy::DoublePrecision => system.set_up(&mut recorder)?,
                _ => system.set_up_one(kind, &mut recorder)?,
            })
        }
        (Some(_), None) => Some(without(space, a.domain(), method)),
    };
    let engine = built.as_ref().map_or(&prepared.engine, |set_up| &set_up.engine);
    stage.other = Some(engine.workspace(space, Operand::Operator(a), method)?);
    (stage.engine, stage.method) = (built.map(Arc::new), method);
    (stage.precision, stage.ordering) = match preconditioner {
        Some(_) => (precision, solver.reorder),
        None => (plan.precision, plan.ordering),
    };
    stage.predicted_seconds = a.matrix().and_then(|matrix| {
        let Construction::Direct(which) = preconditioner?.construct() else { return None };
        Some(1e-9 * options.machine.direct(matrix, which, findings.known_complete(which, matrix)?.cost()))
    });
    stage.steps = recorder.recovery;
    Ok(())
}

/// What the rest of a run is weighed against, if the plan has something that may be faster.
pub(super) fn patience<'p, S: SolverSpace, A: LinearOperator<S>>(
    prepared: &'p Prepared<A, S>,
    stage: &Stage<'_, S>,
    certifier: &Certifier<'p, S, A>,
    findings: &Rc<RefCell<Findings>>,
) -> Option<Patience<'p>> {
    let (space, a, plan): (&'p S, &'p A, _) = (certifier.space(), certifier.a(), &prepared.plan);
    // The residual of the least squares of a singular system has a limit, and a criterion of the caller's is not known in advance.
    if stage.method == Method::Lsmr || certifier.has_own_criterion() {
        return None;
    }
    let tried = &stage.tried[..];
    let next = plan.next_method(Failure::Slow, tried)?;
    // Processes would have to agree on what each of them predicts.
    let matrix = a.matrix().filter(|_| space.total(&a.domain()) == space.len(&a.domain()))?;
    let summary = stage.summary(&prepared.summary);
    let machine = &*prepared.options.machine;
    let iteration = machine.iteration(&work(stage.method, (matrix, plan), summary));
    let begin = matrix.nrows().isqrt();
    let times = |iterations: f64| {
        let price = iterations * iteration;
        Some(Patience { begin, iteration, at_least: price, price: Box::new(move || price) })
    };
    if summary.kind.is_complete() && (stage.engine.is_some() || prepared.factors_a(a)) {
        return times(ITERATIONS_ON_COMPLETE);
    }
    let Remedy::Method { preconditioner: Some(kind), .. } = &next else {
        return times(ITERATIONS_BEFORE_OTHERS);
    };
    let Construction::Direct(which) = kind.construct() else { return times(ITERATIONS_BEFORE_OTHERS) };
    let others = plan.next_method(Failure::Slow, &[tried, std::slice::from_ref(&next)].concat()).is_some_and(
        |other| matches!(other, Remedy::Method { preconditioner: Some(kind), .. } if !kind.is_complete()),
    );
    let options = prepared.options.setup_options(plan, Precision::F64);
    let grid = plan.facts.as_ref().and_then(|facts| facts.mesh.as_ref()?.grid.as_ref());
    let findings = Rc::clone(findings);
    let price = move || {
        let setup = SetupContext::new(options, space, a.domain(), Some(matrix), matrix, (plan.method, 1.0));
        let mut findings = findings.borrow_mut();
        match findings.complete(which, matrix, Some(setup.limit_of_complete())) {
            Ok(analysis) => {
                findings.keep_complete(Arc::clone(&analysis));
                machine.direct(matrix, which, analysis.cost())
            }
            Err(_) if others => ITERATIONS_BEFORE_OTHERS * iteration,
            Err(_) => f64::INFINITY,
        }
    };
    Some(Patience {
        begin,
        iteration,
        at_least: machine.direct_at_least(matrix, which, grid, Expected::default()),
        price: Box::new(price),
    })
}

/// What an iteration does.
pub(super) fn work(method: Method, (matrix, plan): (&Csr<f64>, &SolvePlan), summary: &SetupSummary) -> Work {
    let facts = plan.facts_of_factor(&summary.kind);
    let wavefronts = facts.map_or(0.0, |facts| facts.wavefronts(summary.kind.level()));
    // Of the planned factor, where it is made from a sparser matrix.
    let sparser = plan.sparsification.as_ref().filter(|_| summary.kind == plan.preconditioner);
    let left = sparser.and_then(|found| Some(found.chosen()?.wavefronts as f64 / found.wavefronts? as f64));
    let wavefronts = wavefronts * left.unwrap_or(1.0);
    let Storing { kind, narrow, without_product, constant, constant_factor } = summary.storing;
    // A symmetric factor has one triangle and is swept twice; what keeps the triangles of A counts both.
    let twice = match summary.kind.incomplete() {
        Some(recipe) if recipe.form.kind == Kind::Lu => 1.0,
        _ if summary.kind.info().symmetric => 2.0,
        _ => 1.0,
    };
    Work {
        method,
        storage: kind,
        precision: if narrow { Precision::Mixed } else { Precision::F64 },
        rows: matrix.nrows(),
        entries: matrix.nnz(),
        swept: twice * summary.nnz as f64,
        applied: match summary.kind.construct() {
            Construction::Inverse(_) => Applied::Products,
            kind if kind.sweeps() => Applied::Sweeps { wavefronts },
            _ => Applied::Sweeps { wavefronts: 0.0 },
        },
        without_product: without_product && method == Method::Cg,
        constant,
        constant_factor,
    }
}

/// A complete factor needs a few iterations, and some more for each pivot that was replaced.
const ITERATIONS_ON_COMPLETE: f64 = 100.0;
/// What is tried after a method whose remainder is longer than this, where its price is not known.
const ITERATIONS_BEFORE_OTHERS: f64 = 2000.0;
