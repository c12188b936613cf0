//! The runs of a solve: the planned method, and after a failure what the plan has for it.

use super::build::{SetUp, System, without};
use super::certify::{Certifier, Ended, Figures, Verdict, is_zero};
use super::prepared::Prepared;
use super::workspace::Workspace;
use crate::choice::{Method, Precision};
use crate::engine::{AnyEngine, AnyWorkspace, Engine, Run, SolverSpace};
use crate::error::{BackendError, SolveError};
use crate::krylov::Start;
use crate::matrix::exact_scale;
use crate::observe::Observer;
use crate::operator::LinearOperator;
use crate::plan::{Failure, Remedy};
use crate::precond::PrecondSpec;
use crate::report::{Outcome, Recovery};
use crate::setup::SetupRecorder;
use crate::stop::StoppingCriterion;

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
    let mut certifier = Certifier::new(space, a, vectors, &prepared.options, stop)?;
    if certifier.rhs_norm() == 0.0 || guess_is_zero {
        // With b = 0 nothing is to be found out: A 0 = 0, whatever the guess. A zero with a sign is as good as any.
        space.fill(0.0, x)?;
    }
    let mut stage = Stage { method: prepared.method, engine: None, prepared: engine, other: None };
    let mut recovery = prepared.recovery.clone();
    multiply(space, x, certifier.scale())?;
    let outcome = run(prepared, x, guess, &mut certifier, &mut stage, &mut recovery, observer);
    multiply(space, x, 1.0 / certifier.scale())?;
    let outcome = outcome?;
    let (engine, own) = stage.parts(&prepared.engine);
    let without_product = engine.is_without_product(own);
    let Stage { method, engine, .. } = stage;
    Ok(Solved { outcome, method, engine, without_product, recovery, figures: certifier.into_figures() })
}

/// Runs the method and, where the plan has one, the next.
fn run<S: SolverSpace, A: LinearOperator<S>>(
    prepared: &Prepared<A, S>,
    x: &mut S::Vector,
    guess: &mut Option<S::Vector>,
    certifier: &mut Certifier<'_, S, A>,
    stage: &mut Stage<'_, S, A>,
    recovery: &mut Vec<Recovery>,
    observer: &mut dyn Observer<f64>,
) -> Result<Outcome, SolveError> {
    let (space, a) = (certifier.space(), certifier.a());
    loop {
        let start = match is_zero(space, x)? {
            true => None,
            false => Some(keep(space, x, guess)?),
        };
        let (engine, own) = stage.parts(&prepared.engine);
        let mut ended = iterate((engine, &mut *own), a, x, certifier, recovery, observer)?;
        if ended.outcome != Outcome::Converged && take_best((engine, own), x, start, certifier)? {
            ended = Ended { outcome: Outcome::Converged, what: "met" };
        }
        let next = next_method(prepared, stage, &ended);
        let Some(next) = next.filter(|_| certifier.iterations() < prepared.options.max_iterations) else {
            return Ok(certifier.classify(&ended)?);
        };
        let failed = format!("{}: {}", stage.method, ended.what);
        recovery.push(Recovery { failed, row: None, value: None, action: next.to_string() });
        recovery.extend(enter(prepared, space, a, next, stage)?);
    }
}

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

/// What the plan goes on with after the planned method has failed.
fn next_method<S: SolverSpace, A: LinearOperator<S>>(
    prepared: &Prepared<A, S>,
    stage: &Stage<'_, S, A>,
    ended: &Ended,
) -> Option<Remedy> {
    let first = stage.other.is_none();
    let failure = Failure::of_method(ended.outcome).filter(|_| first)?;
    prepared.plan.remedy(failure, &[])
}

/// Prepares the next run: another method on the prepared factor, or an engine for this solve alone. What went wrong on the way.
fn enter<S: SolverSpace, A: LinearOperator<S>>(
    prepared: &Prepared<A, S>,
    space: &S,
    a: &A,
    next: Remedy,
    stage: &mut Stage<'_, S, A>,
) -> Result<Vec<Recovery>, SolveError> {
    let Prepared { options, layouts, plan, .. } = prepared;
    let mut recorder = SetupRecorder::default();
    let double;
    let (solver, method, preconditioner) = match next {
        Remedy::Method { method, preconditioner } => (options, method, preconditioner),
        Remedy::DoublePrecision => {
            double = options.clone().precision(Precision::F64);
            (&double, prepared.method, Some(prepared.summary.kind))
        }
        _ => return Ok(recorder.recovery),
    };
    stage.method = method.limited(space.total(&a.domain()), solver.max_iterations);
    if let Some(kind) = preconditioner {
        // What comes after a failure must not fail.
        let kind = if kind == PrecondSpec::jacobi() { PrecondSpec::robust_jacobi() } else { kind };
        stage.engine = Some(match a.matrix() {
            Some(source) => {
                let (scale, method) = (exact_scale(space.host(), source)?, stage.method);
                let system = System { solver, space, layouts, a, source, scale, method, plan };
                match next {
                    Remedy::DoublePrecision => system.set_up(&mut recorder)?,
                    _ => system.set_up_one(kind, &mut recorder)?,
                }
            }
            None => without(space, a.domain(), stage.method),
        });
    }
    let engine = stage.engine.as_ref().map_or(&prepared.engine, |(engine, _)| engine);
    stage.other = Some(engine.workspace(space, a, stage.method)?);
    Ok(recorder.recovery)
}

/// Runs the method until the recomputed residual meets the tolerance or nothing more can be done.
fn iterate<S: SolverSpace, A: LinearOperator<S>>(
    (engine, workspace): (&AnyEngine<S>, &mut AnyWorkspace<S, A>),
    a: &A,
    x: &mut S::Vector,
    certifier: &mut Certifier<'_, S, A>,
    recovery: &mut Vec<Recovery>,
    observer: &mut dyn Observer<f64>,
) -> Result<Ended, SolveError> {
    let (space, directions) = (certifier.space(), observer.wants_directions());
    engine.begin(workspace, space, a, (certifier.b(), x), directions)?;
    let mut start = Start::Fresh;
    loop {
        let finish = certifier.watch(observer, |b, stop, observer| {
            engine.run(workspace, Run { start, space, a, b, x: &mut *x, stop, observer })
        })?;
        round_as_returned(space, x, certifier.scale())?;
        match certifier.judge(finish, x)? {
            Verdict::Ended(ended) => return Ok(ended),
            Verdict::Replace => start = Start::KeepDirection,
            Verdict::FromZero => {
                recovery.push(Recovery {
                    failed: "the guess: its residual is larger than that of 0 by more than 1/ε".into(),
                    row: None,
                    value: None,
                    action: "the iteration begins at 0".into(),
                });
                space.fill(0.0, x)?;
                engine.begin(workspace, space, a, (certifier.b(), x), directions)?;
                start = Start::Fresh;
            }
        }
    }
}

/// Leaves in `x` that one of the last iterate, the one kept, the start and 0 which has the least residual, measured last. Whether
/// it meets the tolerance.
fn take_best<S: SolverSpace, A: LinearOperator<S>>(
    (engine, workspace): (&AnyEngine<S>, &AnyWorkspace<S, A>),
    x: &mut S::Vector,
    start: Option<&S::Vector>,
    certifier: &mut Certifier<'_, S, A>,
) -> Result<bool, SolveError> {
    let space = certifier.space();
    let comparable = |norm: f64| if norm.is_nan() { f64::INFINITY } else { norm };
    let mut least = comparable(certifier.residual_norm());
    let (mut measured, mut met) = (true, false);
    let mut kept = space.zeros(&space.layout(x))?;
    let found = engine.restore_kept(workspace, space, &mut kept)?;
    round_as_returned(space, &mut kept, certifier.scale())?;
    for candidate in found.then_some(&kept).into_iter().chain(start) {
        let meets = certifier.measure(candidate)?;
        measured = comparable(certifier.residual_norm()) < least;
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

/// What is judged is what the caller gets: multiplied back, numbers beyond the ends of the range are rounded.
fn round_as_returned<S: SolverSpace>(space: &S, x: &mut S::Vector, scale: f64) -> Result<(), BackendError> {
    multiply(space, x, 1.0 / scale)?;
    multiply(space, x, scale)
}

/// Multiplies every number by a power of two.
fn multiply<S: SolverSpace>(space: &S, x: &mut S::Vector, factor: f64) -> Result<(), BackendError> {
    if factor == 1.0 { Ok(()) } else { space.scale(factor, x) }
}
