//! Runs the calls of a case; a panic is an answer like any other.

use super::system::{Call, Preparation, System, Which};
use super::watchdog::Watchdog;
use krylith::observe::Iteration;
use krylith::{Csr, Report, SolveError, Solver};
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// How a call ended.
#[derive(Debug)]
pub enum Ended {
    /// `refactor` or `prepare` worked.
    Done,
    /// A solve with its answer.
    Solved(Box<Report>, Vec<f64>),
    /// A typed error.
    Failed(SolveError),
    /// A panic, with message and place.
    Panicked(String),
}

/// What was called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    Prepare,
    Refactor,
    /// With this matrix or its transpose and right-hand side; whether the solve prepares too, and whether there is no factor of the matrix.
    Solve {
        matrix: Which,
        transposed: bool,
        rhs: usize,
        prepares: bool,
        stale: bool,
    },
}

/// A call and its end.
#[derive(Debug)]
pub struct Made {
    pub what: What,
    /// The initial guess of a solve.
    pub guess: Vec<f64>,
    pub ended: Ended,
}

/// The message of the last panic.
static PANIC: Mutex<String> = Mutex::new(String::new());

/// Whether the library is being called.
static CALLING: AtomicBool = AtomicBool::new(false);

/// From here on panics of the library print nothing; [`call`] finds their messages.
pub fn silence_panics() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| match CALLING.load(Ordering::Relaxed) {
        true => *PANIC.lock().unwrap_or_else(PoisonError::into_inner) = info.to_string(),
        false => usual(info),
    }));
}

/// Runs `work`; a panic becomes its message.
fn call<T>(watchdog: &Watchdog, work: impl FnOnce() -> Result<T, SolveError>) -> Result<T, Ended> {
    watchdog.begin();
    CALLING.store(true, Ordering::Relaxed);
    let result = catch_unwind(AssertUnwindSafe(work));
    CALLING.store(false, Ordering::Relaxed);
    watchdog.end();
    match result {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(Ended::Failed(error)),
        Err(_) => {
            let message = PANIC.lock().unwrap_or_else(PoisonError::into_inner);
            Err(Ended::Panicked(message.split_whitespace().collect::<Vec<_>>().join(" ")))
        }
    }
}

/// All calls of a case on this many threads, up to the first panic.
pub fn run(system: &System, threads: usize, watchdog: &Watchdog) -> Vec<Made> {
    let solver = system.options.solver.clone().threads(threads);
    match system.preparation {
        Preparation::None => vec![solve_at_once(system, &solver, watchdog)],
        Preparation::Own => prepared(system, watchdog, || solver.prepare(&system.a)),
        Preparation::FromOther => {
            prepared(system, watchdog, || solver.prepare_with(&system.a, &system.other))
        }
    }
}

fn observer(stop_at: Option<usize>) -> impl FnMut(&Iteration<f64>) -> ControlFlow<()> {
    move |iteration| match stop_at {
        Some(last) if iteration.index >= last => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    }
}

fn solve_at_once(system: &System, solver: &Solver, watchdog: &Watchdog) -> Made {
    let (a, b, guess) = (&system.a, &system.rhs[0], &system.guess);
    let stop_at = system.options.stop_at;
    let plain = stop_at.is_none() && guess.len() == a.ncols() && guess.iter().all(|x| x.to_bits() == 0);
    let result = call(watchdog, || {
        if plain {
            return solver.solve(a, b).map(|solution| (solution.report, solution.x));
        }
        let mut x = guess.clone();
        let report = solver.prepare(a)?.solve_observed(a, b, &mut x, &mut observer(stop_at))?;
        Ok((report, x))
    });
    let what = What::Solve { matrix: Which::A, transposed: false, rhs: 0, prepares: true, stale: false };
    Made { what, guess: guess.clone(), ended: solved(result) }
}

fn solved(result: Result<(Report, Vec<f64>), Ended>) -> Ended {
    result.map_or_else(|ended| ended, |(report, x)| Ended::Solved(Box::new(report), x))
}

fn prepared(
    system: &System,
    watchdog: &Watchdog,
    prepare: impl FnOnce() -> Result<krylith::Prepared<Csr<f64>>, SolveError>,
) -> Vec<Made> {
    let made = |what, ended| Made { what, guess: Vec::new(), ended };
    let mut prepared = match call(watchdog, prepare) {
        Ok(prepared) => prepared,
        Err(ended) => return vec![made(What::Prepare, ended)],
    };
    let mut all = vec![made(What::Prepare, Ended::Done)];
    // The matrix that there is a factor of.
    let mut factored = match system.preparation {
        Preparation::FromOther => None,
        _ => Some(Which::A),
    };
    let mut last = system.guess.clone();
    for &step in &system.calls {
        match step {
            Call::Refactor(which) => {
                let matrix = system.matrix(which);
                let result = call(watchdog, || Ok(prepared.refactor(matrix)?));
                factored = result.is_ok().then_some(which);
                all.push(made(What::Refactor, result.map_or_else(|ended| ended, |()| Ended::Done)));
            }
            Call::Solve { matrix, transposed, rhs, fresh } => {
                let usable = !fresh && last.iter().all(|x| x.is_finite());
                let guess = if usable { last.clone() } else { system.guess.clone() };
                let mut x = guess.clone();
                let result = call(watchdog, || {
                    let (a, b) = (system.matrix(matrix), &system.rhs[rhs]);
                    match transposed {
                        true => prepared.solve_transposed(a, b, &mut x),
                        false => prepared.solve_observed(a, b, &mut x, &mut observer(system.options.stop_at)),
                    }
                });
                last.clone_from(&x);
                let other = system.preparation == Preparation::FromOther;
                let stale = !other && !transposed && factored != Some(matrix);
                let what = What::Solve { matrix, transposed, rhs, prepares: false, stale };
                all.push(Made { what, guess, ended: solved(result.map(|report| (report, x))) });
            }
        }
        if matches!(all.last(), Some(Made { ended: Ended::Panicked(_), .. })) {
            break;
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_panic_is_an_answer() {
        let watchdog = Watchdog::start(Duration::from_secs(60), |_| {});
        let ended = call::<()>(&watchdog, || panic!("on purpose"));
        assert!(matches!(ended, Err(Ended::Panicked(_))));
    }
}
