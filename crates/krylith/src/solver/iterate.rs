//! A run of a method, and what is made of its last iterate.

use super::certify::{Certifier, Ended, Verdict};
use super::slow_progress::Watcher;
use crate::engine::{DynEngine, EngineWorkspace, Operand, Run};
use crate::error::{BackendError, SolveError};
use crate::krylov::Start;
use crate::observe::Observer;
use crate::operator::{LinearOperator, SolverSpace};
use crate::outcome::Recovery;
use crate::space::Activity;
use crate::stop::{IterationLimit, Residual};

/// Residuals that differ by less than this are the same.
const SAME_RESIDUAL: f64 = 1e-10;
/// Corrections of an x that is at its limit, at most; each but the last four has to halve its residual.
const CORRECTIONS: usize = 20;
const LAST_CORRECTIONS: usize = 4;
/// To what part of a residual a correction reduces it.
const ROUGHLY: f64 = 1e-4;
const ITERATIONS_OF_CORRECTION: usize = 20;

/// A copy of the guess, for a solve that may have to go back to it.
pub(super) fn keep<'g, S: SolverSpace>(
    space: &S,
    x: &S::Vector,
    guess: &'g mut Option<S::Vector>,
) -> Result<&'g S::Vector, BackendError> {
    let guess = match guess {
        Some(guess) => guess,
        none => none.insert(space.zeros(&space.size(x))?),
    };
    space.copy(x, guess)?;
    Ok(guess)
}

/// Runs the method until the recomputed residual meets the tolerance or nothing more can be done.
pub(super) fn iterate<S: SolverSpace, A: LinearOperator<S>>(
    (engine, workspace): (&DynEngine<S>, &mut EngineWorkspace),
    x: &mut S::Vector,
    certifier: &mut Certifier<'_, S, A>,
    recovery: &mut Vec<Recovery>,
    (observer, mut watcher): (&mut dyn Observer<f64>, Option<&mut Watcher<'_>>),
) -> Result<Ended, SolveError> {
    let (space, directions) = (certifier.space(), observer.wants_directions());
    let a = Operand::Operator(certifier.a());
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

/// Leaves in `x` that one of the last iterate, the one kept, the start and 0 whose residual is certain to be the least, measured
/// last: a large x may have a computed residual of 0 and any residual within its rounding. Whether it meets the tolerance. The first two
/// count only if they meet it, or are `trusted` and not lost: nothing is improved from an x that is.
pub(super) fn take_best<S: SolverSpace, A: LinearOperator<S>>(
    (engine, workspace): (&DynEngine<S>, &EngineWorkspace),
    x: &mut S::Vector,
    (start, trusted, from_zero): (Option<&S::Vector>, bool, bool),
    certifier: &mut Certifier<'_, S, A>,
) -> Result<bool, SolveError> {
    let space = certifier.space();
    let comparable = |norm: f64| if norm.is_nan() { f64::INFINITY } else { norm };
    certifier.make_precise(x)?;
    let mut met = false;
    let mut measured = trusted && !certifier.is_lost();
    let mut least = if measured { comparable(certifier.residual_at_most()) } else { f64::INFINITY };
    let mut kept = space.zeros(&space.size(x))?;
    let found = engine.restore_kept(workspace, space, &mut kept)?;
    certifier.round_as_returned(&mut kept)?;
    let candidates = found.then_some((&kept, false)).into_iter().chain(start.map(|start| (start, true)));
    for (candidate, is_start) in candidates {
        let meets = certifier.measure_precisely(candidate)?;
        let counts = is_start || trusted && !certifier.is_lost();
        // What was found from zero is smaller, and rounding is no reason to go back.
        let norm = comparable(certifier.residual_at_most());
        let rounding = if is_start && from_zero { SAME_RESIDUAL * norm } else { 0.0 };
        measured = (counts || meets) && norm + rounding < least;
        if measured {
            least = norm;
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
pub(super) fn polish<S: SolverSpace, A: LinearOperator<S>>(
    (engine, workspace): (&DynEngine<S>, &mut EngineWorkspace),
    x: &mut S::Vector,
    certifier: &mut Certifier<'_, S, A>,
    complete: bool,
) -> Result<bool, SolveError> {
    let (space, a) = (certifier.space(), Operand::Operator(certifier.a()));
    let corrections =
        if complete && certifier.is_at_limit() && !certifier.has_own_criterion() { CORRECTIONS } else { 0 };
    let mut slow = 0;
    for _ in 0..corrections {
        let size = space.size(x);
        let (mut r, mut d) = (space.zeros(&size)?, space.zeros(&size)?);
        space.copy(certifier.residual(), &mut r)?;
        engine.begin(workspace, space, a, (&r, &d), false)?;
        let mut stop = (Residual { rtol: ROUGHLY, atol: 0.0 }, IterationLimit(ITERATIONS_OF_CORRECTION));
        let run = Run { start: Start::Fresh, space, a, b: &r, x: &mut d, stop: &mut stop, observer: &mut () };
        engine.run(workspace, run)?;
        space.axpby(1.0, x, 1.0, &mut d)?;
        certifier.round_as_returned(&mut d)?;
        let before = certifier.residual_at_most();
        if certifier.measure(&d)? {
            space.copy(&d, x)?;
            return Ok(true);
        }
        slow += usize::from(certifier.residual_at_most() > before / 2.0);
        // A norm that is not a number is no improvement.
        let improves = certifier.residual_at_most() < before;
        if !improves || slow > LAST_CORRECTIONS {
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
