//! The runs of a solve: the planned method, and after a failure what the plan has for it.

use super::build::{SetUp, System, without};
use super::certify::{Certifier, Ended, Figures, TOO_SLOW, Verdict, is_zero};
use super::null_space::Removed;
use super::patience::{Patience, Watcher};
use super::prepared::Prepared;
use super::range::Finding;
use super::workspace::Workspace;
use crate::choice::{Method, Precision};
use crate::engine::{AnyEngine, AnyWorkspace, Engine, Run, SolverSpace};
use crate::error::{BackendError, SolveError};
use crate::krylov::Start;
use crate::matrix::{Csr, exact_scale};
use crate::observe::Observer;
use crate::operator::LinearOperator;
use crate::plan::{Applied, Failure, Remedy, SolvePlan, Work};
use crate::precond::direct::{DirectKind, DirectSymbolic};
use crate::precond::registry::Construction;
use crate::precond::{Kind, PrecondSpec};
use crate::report::{Outcome, Recovery, Rung};
use crate::setup::{Findings, SetupContext, SetupRecorder, SetupSummary, Storing};
use crate::space::Activity;
use crate::stop::{IterationLimit, Residual, StoppingCriterion};
use crate::transform::Ordering;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

/// Who watches a solve, and the caller's own criterion; nobody and none by default.
#[derive(Default)]
pub struct Watch<'w> {
    /// Sees every iteration and may end the solve.
    pub observer: Option<&'w mut dyn Observer<f64>>,
    /// Decides when the answer is good enough, in the place of the tolerance. What it says about the residual of the method's
    /// recurrence is asked again with the recomputed one, and only then counts as convergence.
    pub stop: Option<&'w mut dyn StoppingCriterion<f64>>,
}

/// A solve that has ended.
pub(super) struct Solved<S: SolverSpace> {
    pub(super) outcome: Outcome,
    /// The method that ran last.
    pub(super) method: Method,
    /// The engine that ran last, if not the prepared one.
    pub(super) engine: Option<SetUp<S>>,
    /// It ran without products with A.
    pub(super) without_product: bool,
    pub(super) recovery: Vec<Recovery>,
    pub(super) rungs: Vec<Rung>,
    pub(super) figures: Figures,
}

/// What runs: the prepared engine and method, or others for this right-hand side alone.
struct Stage<'w, S: SolverSpace, A: LinearOperator<S>> {
    method: Method,
    /// Instead of the prepared one.
    engine: Option<SetUp<S>>,
    prepared: &'w mut AnyWorkspace<S, A>,
    /// Of another engine or method.
    other: Option<AnyWorkspace<S, A>>,
    precision: Precision,
    ordering: Ordering,
    /// Seconds of the plan's machine, where they were predicted.
    predicted_seconds: Option<f64>,
    /// What could not be set up, and is not tried again.
    refused: Vec<PrecondSpec>,
}

impl<S: SolverSpace, A: LinearOperator<S>> Stage<'_, S, A> {
    fn parts<'s>(&'s mut self, prepared: &'s AnyEngine<S>) -> (&'s AnyEngine<S>, &'s mut AnyWorkspace<S, A>) {
        let engine = self.engine.as_ref().map_or(prepared, |(engine, _)| engine);
        (engine, self.other.as_mut().unwrap_or(self.prepared))
    }
}

/// Solves for the b in the workspace; `x` is then the best that was found.
pub(super) fn solve<S: SolverSpace, A: LinearOperator<S>>(
    prepared: &Prepared<A, S>,
    a: &A,
    workspace: &mut Workspace<S, A>,
    x: &mut S::Vector,
    guess_is_zero: bool,
    watch: Watch<'_>,
) -> Result<Solved<S>, SolveError> {
    let Workspace { space, engine, vectors, guess, .. } = workspace;
    let space: &S = space;
    let mut nobody = ();
    let observer = watch.observer.unwrap_or(&mut nobody);
    let stop = watch.stop.map(|stop| stop as &mut dyn StoppingCriterion<f64>);
    let null_spaces = prepared.null_spaces_of(space, a)?;
    let removed = match &null_spaces {
        Some(spaces) => spaces.remove_from_rhs(space, &mut vectors.b, &prepared.options)?,
        None => None,
    };
    let mut certifier = Certifier::new(space, a, vectors, &prepared.options, stop)?;
    removed.as_ref().and_then(Removed::aim).into_iter().for_each(|norm| certifier.aim_at(norm));
    if certifier.rhs_norm() == 0.0 || guess_is_zero {
        // With b = 0 nothing is to be found out: A 0 = 0, whatever the guess. A zero with a sign is as good as any.
        space.fill(0.0, x)?;
    }
    let predicted = prepared.plan.predicted.filter(|_| prepared.plan.preconditioner == prepared.summary.kind);
    let mut stage = Stage {
        method: prepared.method,
        engine: None,
        prepared: engine,
        other: None,
        precision: prepared.plan.precision,
        ordering: prepared.plan.ordering,
        predicted_seconds: predicted.map(|predicted| predicted.total),
        refused: Vec::new(),
    };
    let mut rungs = Vec::new();
    let mut recovery = prepared.recovery.clone();
    recovery.extend(removed.as_ref().and_then(|removed| removed.step(space.total(&a.domain()))));
    multiply(space, x, certifier.scale())?;
    let record = (&mut recovery, &mut rungs);
    let outcome = run(prepared, x, guess, &mut certifier, &mut stage, record, observer);
    let outcome = outcome.and_then(|outcome| match &null_spaces {
        Some(spaces) => {
            let given = (removed.as_ref(), &prepared.options);
            Ok(spaces.settle(&mut certifier, x, given, outcome)?)
        }
        None if matches!(outcome, Outcome::Converged | Outcome::Interrupted) => Ok(outcome),
        None => match meets_along_constants(&mut certifier, x, &mut recovery)? {
            true => Ok(Outcome::Converged),
            false => Ok(outcome),
        },
    });
    if matches!(outcome, Ok(Outcome::LeastSquares)) {
        // What is known of the null space is most likely all of it.
        let is_shortest = null_spaces.is_some_and(|spaces| spaces.has_right());
        shorten(prepared, &mut certifier, x, (&rungs, is_shortest))?;
    }
    multiply(space, x, 1.0 / certifier.scale())?;
    let outcome = outcome?;
    let (engine, own) = stage.parts(&prepared.engine);
    let without_product = engine.is_without_product(own);
    let Stage { method, engine, .. } = stage;
    let figures = certifier.into_figures(outcome)?;
    Ok(Solved { outcome, method, engine, without_product, recovery, rungs, figures })
}

/// Runs the method and, as long as the plan has one for how it ended, the next, each from the best x so far.
fn run<'p, S: SolverSpace, A: LinearOperator<S>>(
    prepared: &'p Prepared<A, S>,
    x: &mut S::Vector,
    guess: &mut Option<S::Vector>,
    certifier: &mut Certifier<'p, S, A>,
    stage: &mut Stage<'_, S, A>,
    (recovery, rungs): (&mut Vec<Recovery>, &mut Vec<Rung>),
    observer: &mut dyn Observer<f64>,
) -> Result<Outcome, SolveError> {
    let mut tried = Vec::new();
    // A method for square systems then finds an x of any size, if it finds one; least squares find a small one.
    let deficient = prepared.plan.facts.as_ref().is_some_and(|facts| facts.structural_rank < facts.rows);
    let (mut started, mut before) = (Instant::now(), prepared.seconds.analyze + prepared.seconds.factor);
    // Least squares of least norm, and answers along b, are found from 0.
    let mut from_zero = false;
    // What pricing the next method has found out.
    let findings = Rc::<RefCell<Findings>>::default();
    loop {
        let start = match is_zero(certifier.space(), x)? {
            true => None,
            false => Some(keep(certifier.space(), x, guess)?),
        };
        if from_zero {
            certifier.space().fill(0.0, x)?;
        }
        let iterations = certifier.iterations();
        let kind = stage.engine.as_ref().map_or(prepared.summary.kind, |(_, summary)| summary.kind);
        // A complete factor of another matrix than A is a preconditioner like any other.
        let complete = kind.is_complete() && (stage.engine.is_some() || prepared.factors_a(certifier.a()));
        let least_squares = stage.method == Method::Lsmr && complete;
        // With a complete factor of such a matrix, a small residual may be that of a large null vector.
        let trusted = !(deficient && complete);
        certifier.next_run(if least_squares { LEAST_SQUARES_ON_COMPLETE } else { usize::MAX });
        let mut watcher = patience(prepared, stage, certifier, (&tried, &findings)).map(Watcher::new);
        let is_fallback = stage.other.is_some();
        let (engine, own) = stage.parts(&prepared.engine);
        let run = iterate((engine, &mut *own), x, certifier, recovery, (observer, watcher.as_mut()));
        let mut ended = match run {
            // A fallback is no reason to end a solve that has an answer, of whatever quality.
            Err(SolveError::Backend(BackendError::Unsupported { what })) if is_fallback => {
                Ended { outcome: Outcome::Breakdown, what }
            }
            other => other?,
        };
        let met = Ended { outcome: Outcome::Converged, what: "met" };
        if ended.outcome != Outcome::Converged {
            let over = ended.outcome == Outcome::Interrupted
                || certifier.iterations() >= prepared.options.max_iterations;
            if take_best((engine, &*own), x, (start, trusted, from_zero), certifier)? {
                ended = met;
            } else if !over && polish((engine, own), x, certifier, complete)? {
                recovery.push(Recovery {
                    failed: "x: rounding its entries to the nearest numbers misses the tolerance".into(),
                    row: None,
                    value: None,
                    action: "other numbers nearby have a smaller residual".into(),
                });
                ended = met;
            }
        }
        rungs.push(Rung {
            method: stage.method,
            preconditioner: kind,
            precision: stage.precision,
            ordering: stage.ordering,
            iterations: certifier.iterations() - iterations,
            seconds: before + started.elapsed().as_secs_f64(),
            predicted_seconds: stage.predicted_seconds,
            relative_residual: certifier.relative_residual(),
            left: None,
        });
        (started, before) = (Instant::now(), 0.0);
        let failure = Failure::of_method(ended.outcome, ended.what == TOO_SLOW);
        let over = certifier.iterations() >= prepared.options.max_iterations;
        let failure =
            failure.or((least_squares && ended.outcome == Outcome::MaxIterations).then_some(Failure::Slow));
        let end = End { prepared, ended: &ended, rungs };
        let Some(mut failure) = failure.filter(|_| !over) else {
            return end.conclude(&findings.borrow(), certifier, x);
        };
        if certifier.relative_residual() <= NO_BETTER {
            return Ok(certifier.classify(&ended, x)?);
        }
        // What a complete factor or the least squares cannot improve, nothing can.
        if complete && !deficient || stage.method == Method::Lsmr {
            let outcome = match stage.method == Method::Lsmr {
                true => end.conclude(&findings.borrow(), certifier, x)?,
                false => certifier.classify(&ended, x)?,
            };
            failure = match outcome {
                Outcome::Singular => Failure::Singular,
                Outcome::AttainableAccuracy if certifier.finding() == Finding::NearlySingular => {
                    Failure::NearlySingular
                }
                Outcome::AttainableAccuracy | Outcome::LeastSquares | Outcome::Converged => {
                    return Ok(outcome);
                }
                _ => failure,
            };
        }
        let failed = format!("{} with {kind}: {}", stage.method, ended.what);
        let known = findings.borrow();
        if !enter_next((prepared, &known), certifier, stage, (failure, failed), &mut tried, recovery)? {
            return end.conclude(&known, certifier, x);
        }
        from_zero = stage.method == Method::Lsmr || failure == Failure::NearlySingular;
        if let Some(rung) = rungs.last_mut() {
            rung.left = Some(ended.what.into());
        }
    }
}

/// The end of a run after which nothing more may be tried.
struct End<'e, S: SolverSpace, A: LinearOperator<S>> {
    prepared: &'e Prepared<A, S>,
    ended: &'e Ended,
    rungs: &'e [Rung],
}

impl<S: SolverSpace, A: LinearOperator<S>> End<'_, S, A> {
    /// The outcome. Where neither x nor its residual says why, a complete factor is asked for a proof that there is no answer: those
    /// that ran, or one that costs no more than what was spent where the residual looks like a left null vector.
    fn conclude(
        &self,
        findings: &Findings,
        certifier: &mut Certifier<'_, S, A>,
        x: &S::Vector,
    ) -> Result<Outcome, SolveError> {
        let outcome = certifier.classify(self.ended, x)?;
        let (a, known) = (certifier.a(), certifier.finding());
        let certified =
            [Outcome::Converged, Outcome::Interrupted, Outcome::AttainableAccuracy, Outcome::LeastSquares];
        // What is singular may have its least squares in x, without a proof so far.
        let is_open = !certified.contains(&outcome) || known == Finding::NearlySingular;
        let Some(matrix) = a.matrix().filter(|_| certifier.is_alone() && is_open) else {
            return Ok(outcome);
        };
        for symbolic in factors((self.prepared, findings), certifier, matrix, self.rungs) {
            if certifier.finding() > known.max(Finding::NearlySingular) {
                break;
            }
            certifier.find_witness_by_factor(matrix, &symbolic)?;
        }
        Ok(match certifier.finding() {
            Finding::Nothing => outcome,
            finding => finding.outcome(),
        })
    }
}

/// The complete factors that ran, or LU where it costs no more than what was spent and the residual looks like a left null vector.
fn factors<S: SolverSpace, A: LinearOperator<S>>(
    (prepared, findings): (&Prepared<A, S>, &Findings),
    certifier: &Certifier<'_, S, A>,
    matrix: &Csr<f64>,
    rungs: &[Rung],
) -> Vec<Arc<DirectSymbolic>> {
    let Prepared { options, plan, method, summary, .. } = prepared;
    let (space, layout) = (certifier.space(), certifier.a().domain());
    let setup = options.setup_options(plan, Precision::F64);
    let setup = SetupContext::new(setup, space, layout, Some(matrix), matrix, (*method, 1.0));
    let of_a = |kind: &PrecondSpec| *kind != summary.kind || prepared.factors_a(certifier.a());
    let mut kinds: Vec<_> =
        rungs.iter().map(|rung| rung.preconditioner).filter(|p| p.is_complete() && of_a(p)).collect();
    let ran = !kinds.is_empty();
    kinds.dedup();
    kinds.extend((!ran && certifier.looks_singular()).then(PrecondSpec::lu));
    let iteration = options.machine.iteration(&work(*method, (matrix, plan), summary));
    let spent = f64::max(certifier.iterations() as f64 * iteration, CHEAP);
    let factor = |kind: PrecondSpec| {
        let Construction::Direct(which) = kind.construct() else { return None };
        let symbolic = findings.complete(which, matrix, Some(setup.limit_of_complete())).ok()?;
        let affordable = ran || options.machine.direct(matrix, which, symbolic.cost()) <= spent;
        affordable.then_some(symbolic)
    };
    kinds.into_iter().filter_map(factor).collect()
}

/// Makes the least squares in x the shortest ones, where a factor for it is at hand or cheap.
fn shorten<S: SolverSpace, A: LinearOperator<S>>(
    prepared: &Prepared<A, S>,
    certifier: &mut Certifier<'_, S, A>,
    x: &mut S::Vector,
    (rungs, is_shortest): (&[Rung], bool),
) -> Result<(), SolveError> {
    let a = certifier.a();
    let Some(matrix) = a.matrix().filter(|_| certifier.is_alone()) else { return Ok(()) };
    let cheap = |symbolic: &&Arc<DirectSymbolic>| {
        !is_shortest || prepared.options.machine.direct(matrix, DirectKind::Lu, symbolic.cost()) <= CHEAP
    };
    match factors((prepared, &Findings::default()), certifier, matrix, rungs).iter().find(cheap) {
        Some(symbolic) => Ok(certifier.shorten(matrix, symbolic, x)?),
        None => Ok(()),
    }
}

/// Whether a multiple of a constant, added to x or alone, meets the tolerance where A times it is nearly zero.
fn meets_along_constants<S: SolverSpace, A: LinearOperator<S>>(
    certifier: &mut Certifier<'_, S, A>,
    x: &mut S::Vector,
    recovery: &mut Vec<Recovery>,
) -> Result<bool, SolveError> {
    if certifier.has_own_criterion() {
        return Ok(false);
    }
    let space = certifier.space();
    let mut constant = space.zeros(&space.layout(x))?;
    space.fill(1.0, &mut constant)?;
    let meets = certifier.meets_along(&constant, x)?;
    if meets {
        recovery.push(Recovery {
            failed: "A times a constant vector is nearly zero".into(),
            row: None,
            value: None,
            action: "the constant with the least residual is added to x".into(),
        });
    }
    Ok(meets)
}

/// Sets up the next method that the plan has for this failure, passing over those that cannot be set up; `false` if none is left.
fn enter_next<S: SolverSpace, A: LinearOperator<S>>(
    (prepared, findings): (&Prepared<A, S>, &Findings),
    certifier: &Certifier<'_, S, A>,
    stage: &mut Stage<'_, S, A>,
    (failure, failed): (Failure, String),
    tried: &mut Vec<Remedy>,
    recovery: &mut Vec<Recovery>,
) -> Result<bool, SolveError> {
    let mut step = Recovery { failed, row: None, value: None, action: String::new() };
    while let Some(next) = prepared.plan.next_method(failure, tried) {
        tried.push(next);
        let preconditioner = next.preconditioner();
        if preconditioner.is_some_and(|kind| stage.refused.contains(&kind)) {
            continue;
        }
        recovery.push(Recovery { action: next.to_string(), ..step });
        match enter((prepared, findings), certifier.space(), certifier.a(), next, stage) {
            Ok(steps) => {
                recovery.extend(steps);
                return Ok(true);
            }
            // A remedy is no reason to end a solve that has an answer, of whatever quality.
            Err(SolveError::Setup(error)) => {
                stage.refused.extend(preconditioner);
                step = Recovery::after(format!("{next}: {error}"), &error, String::new());
            }
            Err(SolveError::Backend(
                error @ (BackendError::Unsupported { .. } | BackendError::OutOfMemory { .. }),
            )) => {
                stage.refused.extend(preconditioner);
                let failed = format!("{next}: {error}");
                step = Recovery { failed, row: None, value: None, action: String::new() };
            }
            Err(other) => return Err(other),
        }
    }
    Ok(false)
}

/// What the rest of a run is weighed against, if the plan has something that may be faster.
fn patience<'p, S: SolverSpace, A: LinearOperator<S>>(
    prepared: &'p Prepared<A, S>,
    stage: &Stage<'_, S, A>,
    certifier: &Certifier<'p, S, A>,
    (tried, findings): (&[Remedy], &Rc<RefCell<Findings>>),
) -> Option<Patience<'p>> {
    let (space, a, plan): (&'p S, &'p A, _) = (certifier.space(), certifier.a(), &prepared.plan);
    // The residual of the least squares of a singular system has a limit, and a criterion of the caller's is not known in advance.
    if stage.method == Method::Lsmr || certifier.has_own_criterion() {
        return None;
    }
    let next = plan.next_method(Failure::Slow, tried)?;
    // Processes would have to agree on what each of them predicts.
    let matrix = a.matrix().filter(|_| space.total(&a.domain()) == space.len(&a.domain()))?;
    let summary = stage.engine.as_ref().map_or(&prepared.summary, |(_, summary)| summary);
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
    let Remedy::Method { preconditioner: Some(kind), .. } = next else {
        return times(ITERATIONS_BEFORE_OTHERS);
    };
    let Construction::Direct(which) = kind.construct() else { return times(ITERATIONS_BEFORE_OTHERS) };
    let others = plan.next_method(Failure::Slow, &[tried, &[next]].concat()).is_some_and(
        |other| matches!(other, Remedy::Method { preconditioner: Some(kind), .. } if !kind.is_complete()),
    );
    let options = prepared.options.setup_options(plan, Precision::F64);
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
        at_least: machine.direct_at_least(matrix, which),
        price: Box::new(price),
    })
}

/// What an iteration does.
pub(super) fn work(method: Method, (matrix, plan): (&Csr<f64>, &SolvePlan), summary: &SetupSummary) -> Work {
    let facts = plan.facts_of_factor(summary.kind);
    let wavefronts = facts.map_or(0.0, |facts| facts.wavefronts(summary.kind.level()));
    // Of the planned factor, where it is made from a sparser matrix.
    let sparser = plan.sparsification.as_ref().filter(|_| summary.kind == plan.preconditioner);
    let left = sparser.and_then(|found| Some(found.chosen()?.wavefronts as f64 / found.wavefronts? as f64));
    let wavefronts = wavefronts * left.unwrap_or(1.0);
    let Storing { kind, narrow, without_product, constant, constant_factor } = summary.storing;
    // A symmetric factor has one triangle and is swept twice; what keeps the triangles of A counts both.
    let twice = match summary.kind.construct() {
        Construction::Incomplete(recipe) if recipe.form.kind == Kind::Lu => 1.0,
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

/// Nanoseconds that a factor may take for a proof, however little was spent before.
const CHEAP: f64 = 1e6;
/// Residuals that differ by less than this are the same.
const SAME_RESIDUAL: f64 = 1e-10;
/// A relative residual that no other method is likely to improve on.
const NO_BETTER: f64 = 1e-13;
/// With a complete factor, least squares take as many iterations as pivots were replaced and some more, or too many.
const LEAST_SQUARES_ON_COMPLETE: usize = 1000;
/// A complete factor needs a few iterations, and some more for each pivot that was replaced.
const ITERATIONS_ON_COMPLETE: f64 = 100.0;
/// What is tried after a method whose remainder is longer than this, where its price is not known.
const ITERATIONS_BEFORE_OTHERS: f64 = 2000.0;

/// Corrections of an x that is at its limit, at most; each but the last four has to halve its residual.
const CORRECTIONS: usize = 20;
const LAST_CORRECTIONS: usize = 4;
/// To what part of a residual a correction reduces it.
const ROUGHLY: f64 = 1e-4;
const ITERATIONS_OF_CORRECTION: usize = 20;

/// A copy of the guess, for a solve that may have to go back to it.
fn keep<'g, S: SolverSpace>(
    space: &S,
    x: &S::Vector,
    guess: &'g mut Option<S::Vector>,
) -> Result<&'g S::Vector, BackendError> {
    let guess = match guess {
        Some(guess) => guess,
        none => none.insert(space.zeros(&space.layout(x))?),
    };
    space.copy(x, guess)?;
    Ok(guess)
}

/// Prepares the next run: another method on the prepared factor, or an engine for this solve alone. What went wrong on the way.
fn enter<S: SolverSpace, A: LinearOperator<S>>(
    (prepared, findings): (&Prepared<A, S>, &Findings),
    space: &S,
    a: &A,
    next: Remedy,
    stage: &mut Stage<'_, S, A>,
) -> Result<Vec<Recovery>, SolveError> {
    let Prepared { options, layouts, plan, .. } = prepared;
    let mut recorder = SetupRecorder { trained: prepared.trained.clone(), ..SetupRecorder::default() };
    let mut solver = options.clone();
    let mut precision = options.precision.as_asked();
    let (method, preconditioner) = match next {
        Remedy::Method { method, preconditioner, ordering } => {
            solver.reorder = ordering.unwrap_or(solver.reorder);
            (method, preconditioner)
        }
        Remedy::DoublePrecision => {
            precision = Precision::F64;
            (prepared.method, Some(prepared.summary.kind))
        }
        _ => return Ok(recorder.recovery),
    };
    let method = method.limited(space.total(&a.domain()), solver.max_iterations);
    let built = match (preconditioner, a.matrix()) {
        (None, _) => None,
        (Some(kind), Some(source)) => {
            // What comes after a failure must not fail.
            let kind = if kind == PrecondSpec::jacobi() { PrecondSpec::robust_jacobi() } else { kind };
            let scale = exact_scale(space.host(), source)?;
            let system = System {
                solver: &solver,
                space,
                layouts,
                a,
                source,
                scale,
                reserved: 0,
                method,
                plan,
                precision,
                findings,
            };
            Some(match next {
                Remedy::DoublePrecision => system.set_up(&mut recorder)?,
                _ => system.set_up_one(kind, &mut recorder)?,
            })
        }
        (Some(_), None) => Some(without(space, a.domain(), method)),
    };
    let engine = built.as_ref().map_or(&prepared.engine, |(engine, _)| engine);
    stage.other = Some(engine.workspace(space, a, method)?);
    (stage.engine, stage.method) = (built, method);
    (stage.precision, stage.ordering) = match preconditioner {
        Some(_) => (precision, solver.reorder),
        None => (plan.precision, plan.ordering),
    };
    stage.predicted_seconds = a.matrix().and_then(|matrix| {
        let Construction::Direct(which) = preconditioner?.construct() else { return None };
        Some(1e-9 * options.machine.direct(matrix, which, findings.known_complete(which, matrix)?.cost()))
    });
    Ok(recorder.recovery)
}

/// Runs the method until the recomputed residual meets the tolerance or nothing more can be done.
fn iterate<S: SolverSpace, A: LinearOperator<S>>(
    (engine, workspace): (&AnyEngine<S>, &mut AnyWorkspace<S, A>),
    x: &mut S::Vector,
    certifier: &mut Certifier<'_, S, A>,
    recovery: &mut Vec<Recovery>,
    (observer, mut watcher): (&mut dyn Observer<f64>, Option<&mut Watcher<'_>>),
) -> Result<Ended, SolveError> {
    let (space, a, directions) = (certifier.space(), certifier.a(), observer.wants_directions());
    engine.begin(workspace, space, a, (certifier.b(), x), directions)?;
    let mut start = Start::Fresh;
    loop {
        let finish = certifier.watch((&mut *observer, watcher.as_deref_mut()), |b, stop, observer| {
            let run = Run { start, space, a, b, x: &mut *x, stop, observer };
            space.during(Activity::Iteration, || engine.run(workspace, run))
        })?;
        certifier.round_as_returned(x)?;
        match certifier.judge(finish, x)? {
            Verdict::Ended(ended) => return Ok(ended),
            Verdict::Replace => {
                start = Start::KeepDirection;
                watcher.iter_mut().for_each(|watcher| watcher.restart());
            }
            Verdict::FromZero => {
                recovery.push(Recovery {
                    failed: "the guess: its residual is larger than that of 0 by more than 1/ε".into(),
                    row: None,
                    value: None,
                    action: "the iteration begins at 0".into(),
                });
                watcher.iter_mut().for_each(|watcher| watcher.restart());
                space.fill(0.0, x)?;
                engine.begin(workspace, space, a, (certifier.b(), x), directions)?;
                start = Start::Fresh;
            }
        }
    }
}

/// Leaves in `x` that one of the last iterate, the one kept, the start and 0 which has the least residual, measured last. Whether
/// it meets the tolerance. The first two count only if they meet it, or are `trusted` and not lost: nothing is improved from an x that is.
fn take_best<S: SolverSpace, A: LinearOperator<S>>(
    (engine, workspace): (&AnyEngine<S>, &AnyWorkspace<S, A>),
    x: &mut S::Vector,
    (start, trusted, from_zero): (Option<&S::Vector>, bool, bool),
    certifier: &mut Certifier<'_, S, A>,
) -> Result<bool, SolveError> {
    let space = certifier.space();
    let comparable = |norm: f64| if norm.is_nan() { f64::INFINITY } else { norm };
    let mut measured = trusted && !certifier.is_lost();
    let mut least = if measured { comparable(certifier.residual_norm()) } else { f64::INFINITY };
    let mut met = false;
    let mut kept = space.zeros(&space.layout(x))?;
    let found = engine.restore_kept(workspace, space, &mut kept)?;
    certifier.round_as_returned(&mut kept)?;
    let candidates = found.then_some((&kept, false)).into_iter().chain(start.map(|start| (start, true)));
    for (candidate, is_start) in candidates {
        let meets = certifier.measure(candidate)?;
        let counts = is_start || trusted && !certifier.is_lost();
        // What was found from zero is smaller, and rounding is no reason to go back.
        let norm = comparable(certifier.residual_norm());
        let rounding = if is_start && from_zero { SAME_RESIDUAL * norm } else { 0.0 };
        measured = (counts || meets) && norm + rounding < least;
        if measured {
            least = certifier.residual_norm();
            space.copy(candidate, x)?;
            met = meets;
        }
    }
    if least > certifier.rhs_norm() {
        space.fill(0.0, x)?;
        measured = false;
    }
    // The report is about the x that is returned.
    if measured { Ok(met) } else { Ok(certifier.measure(x)?) }
}

/// Refines an x whose backward error is that of rounding: corrections for a residual in twice the digits where the factor is
/// complete, then numbers nearby. Whether it meets the tolerance then. Iterations of corrections are not counted.
fn polish<S: SolverSpace, A: LinearOperator<S>>(
    (engine, workspace): (&AnyEngine<S>, &mut AnyWorkspace<S, A>),
    x: &mut S::Vector,
    certifier: &mut Certifier<'_, S, A>,
    complete: bool,
) -> Result<bool, SolveError> {
    let (space, a) = (certifier.space(), certifier.a());
    let corrections =
        if complete && certifier.is_at_limit() && !certifier.has_own_criterion() { CORRECTIONS } else { 0 };
    let mut slow = 0;
    for _ in 0..corrections {
        let layout = space.layout(x);
        let (mut r, mut d) = (space.zeros(&layout)?, space.zeros(&layout)?);
        space.copy(certifier.residual(), &mut r)?;
        engine.begin(workspace, space, a, (&r, &d), false)?;
        let mut stop = (Residual { rtol: ROUGHLY, atol: 0.0 }, IterationLimit(ITERATIONS_OF_CORRECTION));
        let run = Run { start: Start::Fresh, space, a, b: &r, x: &mut d, stop: &mut stop, observer: &mut () };
        engine.run(workspace, run)?;
        space.axpby(1.0, x, 1.0, &mut d)?;
        certifier.round_as_returned(&mut d)?;
        let before = certifier.residual_norm();
        if certifier.measure(&d)? {
            space.copy(&d, x)?;
            return Ok(true);
        }
        slow += usize::from(certifier.residual_norm() > before / 2.0);
        if certifier.residual_norm() >= before || slow > LAST_CORRECTIONS {
            certifier.measure(x)?;
            break;
        }
        space.copy(&d, x)?;
    }
    Ok(certifier.meets_by_rounding(x)?)
}

/// Multiplies every number by a power of two.
pub(super) fn multiply<S: SolverSpace>(
    space: &S,
    x: &mut S::Vector,
    factor: f64,
) -> Result<(), BackendError> {
    if factor == 1.0 { Ok(()) } else { space.scale(factor, x) }
}
