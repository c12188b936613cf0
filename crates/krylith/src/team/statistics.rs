//! How large a team is, and what a user learns about it.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Rows that a thread is worth starting for.
const ROWS_PER_THREAD: usize = 32;

/// Threads that are worth starting, in cores of the machine; and on any machine.
const THREADS_PER_CORE: usize = 4;
const LEAST_LIMIT: usize = 8;

/// Why fewer threads were started than requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ThreadLimit {
    /// The system of equations has too few rows: at most one thread per 32 of them.
    Rows,
    /// The machine has too few cores: at most 4 threads per core, and at least 8.
    Cores,
    /// The operating system refused to start more threads.
    System,
}

impl fmt::Display for ThreadLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ThreadLimit::Rows => write!(f, "at most one thread per {ROWS_PER_THREAD} rows"),
            ThreadLimit::Cores => {
                write!(f, "at most {THREADS_PER_CORE} threads per core, or {LEAST_LIMIT} if that is more")
            }
            ThreadLimit::System => write!(f, "the operating system refused to start more threads"),
        }
    }
}

/// The size of a team of threads, and what its operations made of it. Counts are since
/// [`Threads::reset_statistics`](crate::space::Threads::reset_statistics).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TeamStatistics {
    /// Threads that were requested, the caller's included.
    pub requested: usize,
    /// Threads that were started, the caller's included.
    pub started: usize,
    /// Why fewer were started.
    pub limit: Option<ThreadLimit>,
    /// Operations that the team ran.
    pub operations: u64,
    /// Operations that fewer than all threads ran, because other programs had their cores.
    pub operations_with_fewer: u64,
    /// Threads of the operation that had the fewest.
    pub least_members: usize,
    /// How often the team became smaller because its members waited too long for each other.
    pub shrinks: u64,
}

/// Cores of this machine that the process may use.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The most threads that a space starts on this machine: 4 per core, or 8 if that is more.
pub fn most_threads() -> usize {
    (THREADS_PER_CORE * cores()).max(LEAST_LIMIT)
}

/// How many threads to start of those requested, for so many rows if they are known, and why not all.
pub(crate) fn limit_threads(requested: usize, rows: Option<usize>) -> (usize, Option<ThreadLimit>) {
    let by_cores = most_threads();
    let by_rows = rows.map_or(usize::MAX, |rows| (rows / ROWS_PER_THREAD).max(1));
    let requested = requested.max(1);
    match requested.min(by_cores).min(by_rows) {
        size if size == requested => (size, None),
        size if size == by_rows => (size, Some(ThreadLimit::Rows)),
        size => (size, Some(ThreadLimit::Cores)),
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn no_more_threads_than_rows_and_cores_are_worth() {
        let cores = std::thread::available_parallelism().unwrap().get();
        let most = (4 * cores).max(8);
        assert_eq!(limit_threads(0, None), (1, None));
        assert_eq!(limit_threads(most, None), (most, None));
        assert_eq!(limit_threads(usize::MAX, None), (most, Some(ThreadLimit::Cores)));
        assert_eq!(limit_threads(usize::MAX, Some(usize::MAX)), (most, Some(ThreadLimit::Cores)));
        assert_eq!(limit_threads(8, Some(256)), (8, None));
        assert_eq!(limit_threads(8, Some(255)), (7, Some(ThreadLimit::Rows)));
        for rows in 0..64 {
            assert_eq!(limit_threads(70_000, Some(rows)), (1, Some(ThreadLimit::Rows)));
        }
    }
}
