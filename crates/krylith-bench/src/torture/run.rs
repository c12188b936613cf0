//! Runs the calls of a case; a panic is an answer like any other, and a call that takes too long ends the program.

use super::system::{Call, Preparation, System, Which};
use krylith::observe::Iteration;
use krylith::{Csr, Report, SolveError, Solver};
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

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
    /// With this matrix and right-hand side; whether the solve prepares too, and whether there is no factor of the matrix.
    Solve {
        matrix: Which,
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

/// From here on panics print nothing; [`call`] finds their messages.
pub fn silence_panics() {
    std::panic::set_hook(Box::new(|info| {
        *PANIC.lock().unwrap_or_else(PoisonError::into_inner) = info.to_string();
    }));
}

/// Runs `work`; a panic becomes its message.
fn call<T>(watchdog: &Watchdog, work: impl FnOnce() -> Result<T, SolveError>) -> Result<T, Ended> {
    watchdog.begin();
    let result = catch_unwind(AssertUnwindSafe(work));
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
        let report = solver.solve_from(a, b, &mut x, &mut observer(stop_at))?;
        Ok((report, x))
    });
    let what = What::Solve { matrix: Which::A, rhs: 0, prepares: true, stale: false };
    Made { what, guess: guess.clone(), ended: solved(result) }
}

fn solved(result: Result<(Report, Vec<f64>), Ended>) -> Ended {
    result.map_or_else(|ended| ended, |(report, x)| Ended::Solved(Box::new(report), x))
}

fn prepared(
    system: &System,
    watchdog: &Watchdog,
    prepare: impl FnOnce() -> Result<krylith::solver::Prepared<Csr<f64>>, SolveError>,
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
            Call::Solve { matrix, rhs, fresh } => {
                let usable = !fresh && last.iter().all(|x| x.is_finite());
                let guess = if usable { last.clone() } else { system.guess.clone() };
                let mut x = guess.clone();
                let result = call(watchdog, || {
                    let (a, b) = (system.matrix(matrix), &system.rhs[rhs]);
                    prepared.solve(a, b, &mut x, &mut observer(system.options.stop_at))
                });
                last.clone_from(&x);
                let other = system.preparation == Preparation::FromOther;
                let stale = !other && factored != Some(matrix);
                let what = What::Solve { matrix, rhs, prepares: false, stale };
                all.push(Made { what, guess, ended: solved(result.map(|report| (report, x))) });
            }
        }
        if matches!(all.last(), Some(Made { ended: Ended::Panicked(_), .. })) {
            break;
        }
    }
    all
}

/// Names, states and processor times of all threads, where the system has them in /proc: whether a call that does not end
/// computes, waits for a processor (R) or sleeps (S) shows there.
pub fn threads_of_this_process() -> Vec<String> {
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else { return Vec::new() };
    let describe = |task: std::fs::DirEntry| {
        let stat = std::fs::read_to_string(task.path().join("stat")).ok()?;
        let (head, fields) = stat.rsplit_once(')')?;
        let (_, name) = head.split_once('(')?;
        let fields: Vec<&str> = fields.split_whitespace().collect();
        let (state, user, system) = (fields.first()?, fields.get(11)?, fields.get(12)?);
        Some(format!("{name}: {state}, {user} ticks in user mode, {system} in the system"))
    };
    tasks.filter_map(|task| describe(task.ok()?)).collect()
}

/// Ends the program when a call takes too long.
pub struct Watchdog {
    shared: Arc<Watched>,
    started: Instant,
}

#[derive(Default)]
struct Watched {
    /// Milliseconds at which the present call began, plus one; 0 between calls.
    since: AtomicU64,
    /// How to run the present case again.
    command: Mutex<String>,
}

impl Watchdog {
    /// Looks ten times a second; `expired` is called with the command of the case.
    pub fn start(limit: Duration, expired: impl Fn(&str) + Send + 'static) -> Self {
        let (shared, started) = (Arc::new(Watched::default()), Instant::now());
        let watched = Arc::downgrade(&shared);
        std::thread::spawn(move || {
            while let Some(watched) = watched.upgrade() {
                let since = watched.since.load(Ordering::Acquire);
                let now = started.elapsed().as_millis() as u64 + 1;
                if since > 0 && u128::from(now.saturating_sub(since)) > limit.as_millis() {
                    expired(&watched.command.lock().unwrap_or_else(PoisonError::into_inner));
                    return;
                }
                drop(watched);
                std::thread::sleep(Duration::from_millis(100));
            }
        });
        Watchdog { shared, started }
    }

    /// The case that the next calls belong to.
    pub fn watch(&self, command: String) {
        *self.shared.command.lock().unwrap_or_else(PoisonError::into_inner) = command;
    }

    fn begin(&self) {
        self.shared.since.store(self.started.elapsed().as_millis() as u64 + 1, Ordering::Release);
    }

    fn end(&self) {
        self.shared.since.store(0, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn a_call_that_takes_too_long_is_reported_and_a_short_one_is_not() {
        let (send, receive) = channel();
        let watchdog = Watchdog::start(Duration::from_millis(150), move |command| {
            let _ = send.send(command.to_owned());
        });
        watchdog.watch("short".into());
        for _ in 0..30 {
            let _ = call(&watchdog, || {
                std::thread::sleep(Duration::from_millis(10));
                Ok(())
            });
        }
        assert!(receive.try_recv().is_err());
        watchdog.watch("long".into());
        let _ = call(&watchdog, || {
            std::thread::sleep(Duration::from_millis(700));
            Ok(())
        });
        assert_eq!(receive.recv().unwrap(), "long");
    }

    #[test]
    fn a_panic_is_an_answer() {
        let watchdog = Watchdog::start(Duration::from_secs(60), |_| {});
        let ended = call::<()>(&watchdog, || panic!("on purpose"));
        assert!(matches!(ended, Err(Ended::Panicked(_))));
    }
}
