//! What is kept of a run: settings on matrices, counted, measured and modelled.

use super::protocol::Sweeps;
use crate::run::Run;
use krylith::sparsify::Candidate;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What is timed, without sparsification first; `auto` is beside them.
pub const TIMED: [&str; 5] = ["off", "1", "5", "10", "paper"];
/// What is counted and modelled besides.
pub const COUNTED: [&str; 4] = ["0.5", "15", "20", "50"];
/// The ratios that the oracle of the paper chooses from.
pub const RATIOS: [&str; 3] = ["1", "5", "10"];

/// A whole run.
pub type Record = Run<Case>;

/// What holds for all cases.
#[derive(Debug, Serialize, Deserialize)]
pub struct Setting {
    /// How systems are solved.
    pub protocol: String,
    /// Every column is about matrices on which all settings converge; else about those on which `off` does.
    pub all_converge: bool,
    /// Matrices that were left out, and why.
    pub refused: Vec<(String, String)>,
}

/// A matrix.
#[derive(Debug, Serialize, Deserialize)]
pub struct Case {
    pub name: String,
    /// What it comes from.
    pub kind: String,
    pub rows: usize,
    pub entries: usize,
    pub wavefronts: usize,
    /// Of the factor, where one was chosen.
    pub fill: Option<f64>,
    pub trials: Vec<Trial>,
}

impl Case {
    /// A setting; of `auto` that which was decided for this machine.
    pub fn trial(&self, setting: &str, machine: &str) -> Option<&Trial> {
        let decided = |trial: &&Trial| match setting {
            "auto" => trial.timing(machine).is_some(),
            _ => true,
        };
        self.trials.iter().filter(|trial| trial.setting == setting).find(decided)
    }

    /// Without sparsification.
    pub fn off(&self) -> &Trial {
        &self.trials[0]
    }
}

/// A setting on a matrix.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Trial {
    pub setting: String,
    /// The machine that `auto` has decided for.
    pub decided_for: Option<String>,
    /// A factor of A was made to decide.
    pub has_decided_by_factor: bool,
    /// The last that was tried, of a ratio the only one.
    pub tried: Option<Candidate>,
    /// What is taken; none if A stays as it is.
    pub taken: Option<Candidate>,
    /// Of the matrix that M is made from.
    pub wavefronts: usize,
    pub left: usize,
    pub sweeps: Sweeps,
    pub has_converged: bool,
    pub iterations: usize,
    /// ‖b − A x‖₂ / ‖b‖₂; none if it is not finite.
    pub residual: Option<f64>,
    pub timings: Vec<Timing>,
}

impl Trial {
    /// The setting, and of `auto` the machine that it was decided for.
    pub fn decided(&self) -> (&str, Option<&str>) {
        (&self.setting, self.decided_for.as_deref())
    }

    pub fn timing(&self, machine: &str) -> Option<&Timing> {
        self.timings.iter().find(|timing| timing.machine == machine)
    }
}

/// Seconds on some machine.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Timing {
    /// `1 thread`, `2 threads, levels`, or the name of a model.
    pub machine: String,
    pub is_modelled: bool,
    pub set_up: f64,
    pub iteration: f64,
    pub total: f64,
}

/// Rows were called cases once.
pub fn renewed(mut record: Value) -> Value {
    if let Some(cases) = record.get_mut("cases").map(Value::take) {
        record["rows"] = cases;
    }
    record
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Kept;
    use crate::run::tests::kept;

    /// The older ones have more tables.
    #[test]
    fn kept_runs_are_shown_as_they_were() {
        let runs = kept::<Case>("spcg.json.zst");
        assert!(runs.len() >= 4);
        for (run, text) in runs {
            assert!(Case::text(&run).lines().all(|line| text.contains(line)), "{}", run.head.command);
        }
    }
}
