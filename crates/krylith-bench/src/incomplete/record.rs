//! What is kept of a study: every contestant on every matrix.

use super::contestants::Study;
use crate::rhs::Rhs;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// A matrix of the study.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Matrix {
    /// Its file in the catalogue.
    pub file: String,
    pub rows: usize,
    pub nnz: usize,
}

/// A matrix that is not of the study.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LeftOut {
    pub file: String,
    pub why: String,
}

/// A contestant that could not take part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Skipped {
    pub contestant: String,
    pub why: String,
}

/// A contestant on a matrix.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Run {
    pub file: String,
    pub contestant: String,
    /// `converged` by the residual that the study recomputed; `set_up`; `false_convergence` where only the contestant says
    /// so; `time_limit`; `crashed`; its own word otherwise.
    pub outcome: String,
    /// What the contestant said.
    pub said: String,
    pub iterations: Option<u64>,
    /// ‖b − A x‖₂ / ‖b‖₂, recomputed from A and x; none where there is no x or it is not finite.
    pub residual: Option<f64>,
    /// Solves, each from the last x: more than one where its own residual met the tolerance and the recomputed one did not.
    pub rounds: u64,
    /// Its message.
    pub detail: String,
    /// Steps of Krylith's report.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub recovery: Vec<Value>,
}

impl Run {
    /// Converged, or set up where nothing more was asked.
    pub fn succeeded(&self) -> bool {
        self.outcome == "converged" || self.outcome == "set_up"
    }
}

/// A whole study.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    pub study: Study,
    #[serde(default)]
    pub rhs: Rhs,
    pub date: String,
    pub command: String,
    pub machine: Vec<String>,
    pub versions: BTreeMap<String, String>,
    pub rtol: f64,
    pub max_iterations: usize,
    pub seconds: u64,
    pub matrices: Vec<Matrix>,
    pub left_out: Vec<LeftOut>,
    pub skipped: Vec<Skipped>,
    pub runs: Vec<Run>,
}

impl Record {
    pub fn run(&self, file: &str, contestant: &str) -> Option<&Run> {
        self.runs.iter().find(|run| run.file == file && run.contestant == contestant)
    }

    /// Runs in the order of matrices and contestants, whoever finished first.
    pub fn sort(&mut self, contestants: &[&str]) {
        let matrix: BTreeMap<&str, usize> =
            self.matrices.iter().enumerate().map(|(k, m)| (m.file.as_str(), k)).collect();
        let place = |run: &Run| {
            (matrix.get(run.file.as_str()).copied(), contestants.iter().position(|c| *c == run.contestant))
        };
        self.runs.sort_by_key(place);
    }

    /// How many matrices a contestant succeeds on, and on how many it was run.
    pub fn total(&self, contestant: &str) -> (usize, usize) {
        let runs = self.runs.iter().filter(|run| run.contestant == contestant);
        runs.fold((0, 0), |(good, all), run| (good + usize::from(run.succeeded()), all + 1))
    }

    /// On how many matrices at least one of these succeeds.
    pub fn best(&self, contestants: &[&str]) -> usize {
        let good = |m: &&Matrix| contestants.iter().any(|c| self.run(&m.file, c).is_some_and(Run::succeeded));
        self.matrices.iter().filter(good).count()
    }

    /// Outcomes of a contestant, counted.
    pub fn outcomes(&self, contestant: &str) -> BTreeMap<&str, usize> {
        let mut counts = BTreeMap::new();
        for run in self.runs.iter().filter(|run| run.contestant == contestant) {
            *counts.entry(run.outcome.as_str()).or_default() += 1;
        }
        counts
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    pub fn run(file: &str, contestant: &str, outcome: &str) -> Run {
        Run {
            file: file.into(),
            contestant: contestant.into(),
            outcome: outcome.into(),
            iterations: Some(7),
            residual: Some(3e-9),
            rounds: 1,
            ..Run::default()
        }
    }

    pub fn record(runs: Vec<Run>) -> Record {
        let matrix = |file: &str| Matrix { file: file.into(), rows: 10, nnz: 28 };
        Record {
            study: Study::Spd,
            rhs: Rhs::Ones,
            date: "2026-01-31".into(),
            command: "krylith-bench incomplete".into(),
            machine: vec!["cores: 2".into()],
            versions: BTreeMap::new(),
            rtol: 1e-8,
            max_iterations: 10_000,
            seconds: 60,
            matrices: vec![matrix("spd/a.mtx.xz"), matrix("spd/b.mtx.xz")],
            left_out: Vec::new(),
            skipped: Vec::new(),
            runs,
        }
    }

    #[test]
    fn totals_and_the_best_of_a_team() {
        let (a, b) = ("spd/a.mtx.xz", "spd/b.mtx.xz");
        let mut record = record(vec![
            run(b, "y", "set_up"),
            run(b, "x", "time_limit"),
            run(a, "y", "breakdown"),
            run(a, "x", "converged"),
        ]);
        record.sort(&["x", "y"]);
        let order: Vec<(&str, &str)> =
            record.runs.iter().map(|r| (r.file.as_str(), r.contestant.as_str())).collect();
        assert_eq!(order, [(a, "x"), (a, "y"), (b, "x"), (b, "y")]);
        assert_eq!((record.total("x"), record.total("y"), record.total("z")), ((1, 2), (1, 2), (0, 0)));
        assert_eq!((record.best(&["x"]), record.best(&["x", "y"])), (1, 2));
        assert_eq!(record.outcomes("x"), BTreeMap::from([("converged", 1), ("time_limit", 1)]));
    }
}
