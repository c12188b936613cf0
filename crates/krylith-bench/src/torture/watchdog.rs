//! Ends the program when a call of the library does not come back.
//!
//! On a machine that others keep busy, a call may take long because it does not run. So what counts is the time in which this
//! process computes; or, if all of its threads sleep, in which nothing can happen any more, the time that passes.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often the watchdog looks.
const INTERVAL: Duration = Duration::from_millis(100);

/// Watches the calls of one thread.
pub struct Watchdog {
    shared: Arc<Watched>,
}

#[derive(Default)]
struct Watched {
    /// Odd while a call runs; twice the number of calls otherwise.
    calls: AtomicU64,
    /// How to run the present case again.
    command: Mutex<String>,
}

impl Watchdog {
    /// `expired` is called, once, with the command of the case whose call is beyond the limit.
    pub fn start(limit: Duration, expired: impl Fn(&str) + Send + 'static) -> Self {
        let shared = Arc::new(Watched::default());
        let watched = Arc::downgrade(&shared);
        std::thread::spawn(move || {
            let (mut last, mut spent) = (0, Duration::ZERO);
            let (mut time, mut computed) = (Instant::now(), processor_time());
            loop {
                std::thread::sleep(INTERVAL);
                let Some(watched) = watched.upgrade() else { return };
                let call = watched.calls.load(Ordering::Acquire);
                let (passed, now) = (time.elapsed(), processor_time());
                let more = match (computed, now) {
                    (Some(before), Some(now)) if !all_sleep() => passed.min(now.saturating_sub(before)),
                    _ => passed,
                };
                (time, computed) = (Instant::now(), now);
                spent = if call % 2 == 1 && call == last { spent + more } else { Duration::ZERO };
                last = call;
                if spent > limit {
                    expired(&watched.command.lock().unwrap_or_else(PoisonError::into_inner));
                    return;
                }
            }
        });
        Watchdog { shared }
    }

    /// The case that the next calls belong to.
    pub fn watch(&self, command: String) {
        *self.shared.command.lock().unwrap_or_else(PoisonError::into_inner) = command;
    }

    /// A call begins.
    pub fn begin(&self) {
        self.shared.calls.fetch_or(1, Ordering::Release);
    }

    /// It has come back.
    pub fn end(&self) {
        self.shared.calls.fetch_add(1, Ordering::Release);
    }
}

/// The fields of a `stat` file in /proc: the name, and what follows it from the state on.
fn stat(path: &std::path::Path) -> Option<(String, Vec<String>)> {
    let text = std::fs::read_to_string(path).ok()?;
    let (head, fields) = text.rsplit_once(')')?;
    let (_, name) = head.split_once('(')?;
    Some((name.into(), fields.split_whitespace().map(str::to_owned).collect()))
}

/// Ticks of Linux, of which there are 100 a second.
fn ticks(fields: &[String]) -> Option<u64> {
    Some(fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?)
}

/// Processor time of this process; none where there is no /proc.
fn processor_time() -> Option<Duration> {
    let (_, fields) = stat("/proc/self/stat".as_ref())?;
    Some(Duration::from_millis(10 * ticks(&fields)?))
}

/// Name, state and ticks of every thread, where there is /proc.
pub fn threads() -> Vec<(String, String, u64)> {
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else { return Vec::new() };
    let describe = |task: std::fs::DirEntry| {
        let (name, fields) = stat(&task.path().join("stat"))?;
        Some((name, fields.first()?.clone(), ticks(&fields)?))
    };
    tasks.filter_map(|task| describe(task.ok()?)).collect()
}

/// No thread but this one computes or could.
fn all_sleep() -> bool {
    threads().iter().filter(|(_, state, _)| state == "R").count() <= 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn a_call_that_does_not_come_back_is_reported_and_short_ones_are_not() {
        let (send, receive) = channel();
        let watchdog = Watchdog::start(Duration::from_millis(500), move |command| {
            let _ = send.send(command.to_owned());
        });
        watchdog.watch("short".into());
        for _ in 0..100 {
            watchdog.begin();
            std::thread::sleep(Duration::from_millis(10));
            watchdog.end();
        }
        assert!(receive.try_recv().is_err());
        watchdog.watch("long".into());
        watchdog.begin();
        // Computes, so that it counts however many threads of other tests sleep or do not.
        let found = loop {
            if let Ok(found) = receive.try_recv() {
                break found;
            }
        };
        watchdog.end();
        assert_eq!(found, "long");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn processor_time_grows_with_work() {
        let before = processor_time().unwrap();
        let started = Instant::now();
        while processor_time().unwrap() < before + Duration::from_millis(50) {
            assert!(started.elapsed() < Duration::from_secs(100));
        }
        assert!(threads().iter().any(|(_, state, _)| state == "R"));
    }
}
