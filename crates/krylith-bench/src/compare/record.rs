//! What is kept of a run: the lines that drivers print, by contestant, and statistics over repetitions.

use crate::driver::Line;
use crate::rhs::Rhs;
use crate::run::Run;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

impl Matrix {
    /// Why a line is not about this system, if it is not.
    pub fn mismatch(&self, line: &Line) -> Option<String> {
        let other = self.rhs != Rhs::Ones && matches!(line.rhs.as_str(), "" | "ones");
        other.then(|| {
            "its driver does not read the right-hand side: build it again with `just bench-setup`".into()
        })
    }
}

/// What a contestant was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// A whole solve.
    Solve,
    /// Seconds a call of single operations.
    Kernels,
    /// The memory's rate at the footprint of the problem's kernels.
    Triad,
    /// The memory's rate at three arrays of 1 GB.
    BigTriad,
}

/// A contestant on a problem with a number of threads: every repetition, or why there is none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    pub mode: Mode,
    pub problem: String,
    pub threads: usize,
    pub peer: String,
    pub config: String,
    pub runs: Vec<Line>,
    pub failure: Option<String>,
}

/// A matrix of the comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Matrix {
    /// P1 and so on.
    pub name: String,
    /// Where it came from: a gallery problem or a file's name.
    pub spec: String,
    pub rows: u64,
    pub nnz: u64,
    pub symmetric: bool,
    #[serde(default)]
    pub rhs: Rhs,
}

/// A peer that is not installed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Absent {
    pub peer: String,
    pub install: String,
}

/// What holds for all entries.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Setting {
    pub rtol: f64,
    pub matrices: Vec<Matrix>,
    pub absent: Vec<Absent>,
}

/// A whole run.
pub type Record = Run<Entry>;

/// Records were without a head once: its fields stood beside the rows, which were called entries.
pub fn renewed(mut record: Value) -> Value {
    if record.get("head").is_none() {
        let mut take = |name: &str| record.get_mut(name).map(Value::take);
        let (date, command, machine) = (take("date"), take("command"), take("machine"));
        let (rounds, rows) = (take("repetitions"), take("entries"));
        record["head"] = json!({ "date": date, "command": command, "machine": machine, "rounds": rounds });
        record["rows"] = json!(rows);
    }
    record
}

/// Bytes that one product with A moves at least.
pub fn spmv_bytes(rows: u64, nnz: u64) -> u64 {
    12 * nnz + 20 * rows
}

/// Bytes that a forward and a backward solve with factors of A's pattern move at least.
pub fn apply_bytes(rows: u64, nnz: u64) -> u64 {
    12 * nnz + 40 * rows
}

/// Shortest total that counts as timed.
pub const SHORTEST: f64 = 0.1;

/// Least, middle and most of some figures.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    pub least: f64,
    pub median: f64,
    pub most: f64,
    pub count: usize,
}

impl Spread {
    /// Of the figures that are numbers; `None` if there are none.
    pub fn of(figures: impl IntoIterator<Item = f64>) -> Option<Spread> {
        let mut sorted: Vec<f64> = figures.into_iter().filter(|f| f.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        let (&least, &most) = (sorted.first()?, sorted.last()?);
        let middle = sorted.len() / 2;
        let median =
            if sorted.len() % 2 == 1 { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2.0 };
        Some(Spread { least, median, most, count: sorted.len() })
    }
}

impl Entry {
    /// The repetition with the least total.
    pub fn best(&self) -> Option<&Line> {
        let timed = self.runs.iter().filter_map(|line| Some((line.total()?, line)));
        timed.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, line)| line)
    }

    /// Totals over the repetitions.
    pub fn totals(&self) -> Option<Spread> {
        Spread::of(self.runs.iter().filter_map(Line::total))
    }

    /// The least total, if the solve succeeded and took long enough to be timed.
    pub fn counted(&self) -> Option<f64> {
        let least = self.totals()?.least;
        (self.failure.is_none() && least >= SHORTEST).then_some(least)
    }

    /// Seconds a call of a kernel over the repetitions.
    pub fn kernel(&self, name: &str) -> Option<Spread> {
        Spread::of(self.runs.iter().filter_map(|line| *line.kernels.get(name)?))
    }

    /// `PETSc cg+icc0`.
    pub fn title(&self) -> String {
        format!("{} {}", self.peer, self.config)
    }
}

impl Record {
    /// Entries of a mode on a problem with a number of threads.
    pub fn on(&self, mode: Mode, problem: &str, threads: usize) -> impl Iterator<Item = &Entry> {
        self.rows.iter().filter(move |e| e.mode == mode && e.problem == problem && e.threads == threads)
    }

    /// Numbers of threads, in order.
    pub fn threads(&self) -> Vec<usize> {
        let mut all: Vec<usize> = self.rows.iter().map(|e| e.threads).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// The triad's GB/s at the footprint of a problem.
    pub fn triad(&self, problem: &str, threads: usize) -> Option<f64> {
        let entry = self.on(Mode::Triad, problem, threads).next()?;
        Some(1e-9 / entry.kernel("seconds_a_byte")?.least)
    }

    /// The least counted total of anyone but Krylith.
    pub fn best_peer(&self, problem: &str, threads: usize) -> Option<f64> {
        let peers = self.on(Mode::Solve, problem, threads).filter(|e| e.peer != "krylith");
        peers.filter_map(Entry::counted).min_by(f64::total_cmp)
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::run::Kept;
    use crate::run::tests::kept;

    pub fn solved(peer: &str, config: &str, totals: &[(f64, f64)]) -> Entry {
        let runs = totals.iter().map(|&(setup, solve)| Line {
            peer: peer.into(),
            config: config.into(),
            status: "converged".into(),
            setup_seconds: Some(setup),
            solve_seconds: Some(solve),
            iterations: Some(83),
            relative_residual: Some(9e-8),
            ..Line::default()
        });
        Entry {
            mode: Mode::Solve,
            problem: "P2".into(),
            threads: 1,
            peer: peer.into(),
            config: config.into(),
            runs: runs.collect(),
            failure: None,
        }
    }

    /// A driver that was built before there was another right-hand side solves with A·1 and says nothing of it.
    #[test]
    fn a_driver_that_solved_another_system_is_found() {
        let matrix = |rhs| Matrix {
            name: "P1r".into(),
            spec: "poisson2d:9".into(),
            rows: 81,
            nnz: 369,
            symmetric: true,
            rhs,
        };
        let line = |rhs: &str| Line { rhs: rhs.into(), ..Line::default() };
        for said in ["", "ones"] {
            assert!(matrix(Rhs::Random).mismatch(&line(said)).unwrap().contains("bench-setup"));
            assert_eq!(matrix(Rhs::Ones).mismatch(&line(said)), None);
        }
        assert_eq!(matrix(Rhs::Random).mismatch(&line("file")), None);
    }

    /// The older ones had no column of right-hand sides.
    #[test]
    fn kept_runs_are_shown_as_they_were() {
        let runs = kept::<Entry>("compare.json.zst");
        assert!(runs.len() >= 5);
        for (run, text) in runs {
            let own = Entry::text(&run);
            let (_, tables) = own.split_once("\nVersions: ").unwrap();
            assert!(text.contains(tables), "{}", run.head.command);
        }
    }

    #[test]
    fn spreads() {
        let odd = Spread::of([3.0, 1.0, 2.0, f64::NAN]).unwrap();
        assert_eq!(odd, Spread { least: 1.0, median: 2.0, most: 3.0, count: 3 });
        assert_eq!(Spread::of([4.0, 1.0]).unwrap().median, 2.5);
        assert_eq!(Spread::of([]), None);
    }

    #[test]
    fn bytes_are_counted_once_each() {
        // Row pointers 4, x 8, y 8 per row; the factors' solves read and write one vector more, and the diagonal.
        assert_eq!(spmv_bytes(10, 28), 12 * 28 + 200);
        assert_eq!(apply_bytes(10, 28), 12 * 28 + 400);
    }

    #[test]
    fn the_best_repetition_has_the_least_total() {
        let entry = solved("petsc", "cg+icc0", &[(0.5, 1.0), (0.1, 1.2), (0.2, 1.2)]);
        assert_eq!(entry.best().unwrap().setup_seconds, Some(0.1));
        assert_eq!(entry.totals().unwrap().most, 1.5);
        assert!(entry.counted().is_some());
        assert_eq!(solved("petsc", "cg+icc0", &[(0.01, 0.02)]).counted(), None, "too short to be timed");
    }
}
