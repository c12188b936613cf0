//! The runs of a solve: the planned method, and after a failure what the plan has for it.

use super::build::SetUp;
use super::certify::{Certifier, Ended, Figures, Why, is_zero};
use super::end::{End, meets_along_null_vectors, shorten};
use super::iterate::{iterate, keep, multiply, polish, take_best};
use super::outside_range::Finding;
use super::prepared::Prepared;
use super::slow_progress::Watcher;
use super::stage::{Stage, enter_next, patience};
use super::winner::Winner;
use super::workspace::Workspace;
use crate::error::{BackendError, SolveError};
use crate::facts::Facts;
use crate::observe::Observer;
use crate::operator::{LinearOperator, SolverSpace};
use crate::options::Method;
use crate::outcome::{Outcome, Recovery};
use crate::plan::Failure;
use crate::report::Rung;
use crate::setup::Findings;
use crate::stop::StoppingCriterion;
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
    pub(super) engine: Option<Arc<SetUp<S>>>,
    /// What later solves may begin with.
    pub(super) found: Option<Winner<S>>,
    /// It ran without products with A.
    pub(super) without_product: bool,
    /// The facts of the plan are those of this A.
    pub(super) is_planned_for: bool,
    pub(super) recovery: Vec<Recovery>,
    pub(super) rungs: Vec<Rung>,
    pub(super) figures: Figures,
}

/// Solves for the b in the workspace; `x` is then the best that was found.
pub(super) fn solve<S: SolverSpace, A: LinearOperator<S>>(
    prepared: &Prepared<A, S>,
    a: &A,
    workspace: &mut Workspace<S, A>,
    x: &mut S::Vector,
    largest_of_guess: f64,
    (watch, known): (Watch<'_>, Option<Arc<Winner<S>>>),
) -> Result<Solved<S>, SolveError> {
    let Workspace { space, engine, vectors, guess, .. } = workspace;
    let space: &S = space;
    let mut nobody = ();
    let observer = watch.observer.unwrap_or(&mut nobody);
    let stop = watch.stop.map(|stop| stop as &mut dyn StoppingCriterion<f64>);
    let null_spaces = prepared.null_spaces_of(space, a)?;
    let is_planned_for = prepared.is_planned_for(space, a)?;
    let mut certifier = Certifier::new(space, a, (vectors, largest_of_guess), &prepared.options, stop)?;
    let removed = match &null_spaces {
        Some(spaces) => spaces.remove_from_rhs(&mut certifier)?,
        None => None,
    };
    if certifier.rhs_norm() == 0.0 || largest_of_guess == 0.0 {
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
        tried: Vec::new(),
        known,
        begins: false,
        steps: Vec::new(),
    };
    let mut rungs = Vec::new();
    let mut recovery = prepared.recovery.clone();
    recovery.extend(removed.as_ref().and_then(|removed| removed.step(space.total(&a.domain()))));
    recovery.extend(stage.begin((prepared, space, a), certifier.b())?);
    multiply(space, x, certifier.scale())?;
    let record = (&mut recovery, &mut rungs);
    let facts = prepared.plan.facts.as_ref().filter(|_| is_planned_for);
    let outcome = run((prepared, facts), x, guess, &mut certifier, &mut stage, record, observer);
    let found = match outcome {
        Ok(Outcome::Converged) => stage.winner(&certifier, &rungs)?,
        _ => None,
    };
    let outcome = outcome.and_then(|outcome| match &null_spaces {
        Some(spaces) => {
            let given = (removed.as_ref(), &prepared.options);
            Ok(spaces.settle(&mut certifier, x, given, outcome)?)
        }
        None if matches!(outcome, Outcome::Converged | Outcome::Interrupted) => Ok(outcome),
        None => match meets_along_null_vectors(&mut certifier, x, &mut recovery)? {
            true => Ok(Outcome::Converged),
            false => Ok(outcome),
        },
    });
    let outcome = match outcome {
        Ok(Outcome::LeastSquares) => {
            // What is known of the null space is most likely all of it.
            let is_shortest = null_spaces.is_some_and(|spaces| spaces.has_right());
            shorten(prepared, &mut certifier, x, (&rungs, is_shortest))?;
            certifier.measure_precisely(x)?;
            Ok(certifier.reconsider()?.outcome())
        }
        other => other,
    };
    multiply(space, x, 1.0 / certifier.scale())?;
    let outcome = outcome?;
    let (engine, own) = stage.parts(&prepared.engine);
    let without_product = engine.is_without_product(own);
    let Stage { method, engine, .. } = stage;
    let figures = certifier.into_figures(outcome)?;
    let found = found.filter(|_| outcome == Outcome::Converged);
    Ok(Solved { outcome, method, engine, found, without_product, is_planned_for, recovery, rungs, figures })
}

/// Runs the method and, as long as the plan has one for how it ended, the next, each from the best x so far.
fn run<'p, S: SolverSpace, A: LinearOperator<S>>(
    (prepared, facts): (&'p Prepared<A, S>, Option<&Facts>),
    x: &mut S::Vector,
    guess: &mut Option<S::Vector>,
    certifier: &mut Certifier<'p, S, A>,
    stage: &mut Stage<'_, S>,
    (recovery, rungs): (&mut Vec<Recovery>, &mut Vec<Rung>),
    observer: &mut dyn Observer<f64>,
) -> Result<Outcome, SolveError> {
    // A method for square systems then finds an x of any size, if it finds one; least squares find a small one.
    let deficient = facts.is_some_and(|facts| facts.structural_rank < facts.rows);
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
        let kind = stage.summary(&prepared.summary).kind.clone();
        // A complete factor of another matrix than A is a preconditioner like any other.
        let complete = kind.is_complete() && (stage.engine.is_some() || prepared.factors_a(certifier.a()));
        let least_squares = stage.method == Method::Lsmr && complete;
        // With a complete factor of such a matrix, a small residual may be that of a large null vector.
        let trusted = !(deficient && complete);
        certifier.next_run(if least_squares { LEAST_SQUARES_ON_COMPLETE } else { usize::MAX });
        let mut watcher = patience(prepared, stage, certifier, &findings).map(Watcher::new);
        let is_fallback = stage.other.is_some();
        let (engine, own) = stage.parts(&prepared.engine);
        let run = iterate((engine, &mut *own), x, certifier, recovery, (observer, watcher.as_mut()));
        let mut can_run = true;
        let mut ended = match run {
            // A fallback is no reason to end a solve that has an answer, of whatever quality.
            Err(SolveError::Backend(BackendError::Unsupported { what })) if is_fallback => {
                certifier.measure(x)?;
                can_run = false;
                Ended { outcome: Outcome::Breakdown, why: Why::Other(what) }
            }
            other => other?,
        };
        if ended.outcome != Outcome::Converged {
            let over = ended.outcome == Outcome::Interrupted
                || certifier.iterations() >= prepared.options.max_iterations;
            if take_best((engine, &*own), x, (start, trusted, from_zero), certifier)? {
                ended = Ended::MET;
            } else if can_run && !over && polish((engine, own), x, certifier, complete)? {
                recovery.push(Recovery {
                    failed: "x: rounding its entries to the nearest numbers misses the tolerance".into(),
                    row: None,
                    value: None,
                    action: "other numbers nearby have a smaller residual".into(),
                });
                ended = Ended::MET;
            }
        }
        rungs.push(Rung {
            method: stage.method,
            preconditioner: kind.clone(),
            precision: stage.precision,
            ordering: stage.ordering,
            iterations: certifier.iterations() - iterations,
            seconds: before + started.elapsed().as_secs_f64(),
            predicted_seconds: stage.predicted_seconds,
            relative_residual: certifier.relative_residual(),
            left: None,
        });
        (started, before) = (Instant::now(), 0.0);
        let failure = Failure::of_method(ended.outcome, ended.why == Why::Slow);
        let over = certifier.iterations() >= prepared.options.max_iterations;
        let failure =
            failure.or((least_squares && ended.outcome == Outcome::MaxIterations).then_some(Failure::Slow));
        let end = End { prepared, ended: &ended, rungs };
        let Some(mut failure) = failure.filter(|_| !over) else {
            return end.conclude(&findings.borrow(), certifier, x);
        };
        if certifier.relative_residual_at_most() <= NO_BETTER {
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
        let failed = format!("{} with {kind}: {}", stage.method, ended.why);
        let known = findings.borrow();
        if !enter_next((prepared, &known), certifier, stage, (failure, failed), recovery)? {
            return end.conclude(&known, certifier, x);
        }
        from_zero = stage.method == Method::Lsmr || failure == Failure::NearlySingular;
        if let Some(rung) = rungs.last_mut() {
            rung.left = Some(ended.why.to_string());
        }
    }
}

/// A relative residual that no other method is likely to improve on.
const NO_BETTER: f64 = 1e-13;
/// With a complete factor, least squares take as many iterations as pivots were replaced and some more, or too many.
const LEAST_SQUARES_ON_COMPLETE: usize = 1000;
