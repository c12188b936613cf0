//! The head of a run: date, command, machine and the memory's rate.

use super::{machine, table};
use crate::Failure;
use crate::driver::triad;
use serde::{Deserialize, Serialize};

/// Bytes of the triad: what no cache holds.
const TRIAD: u64 = 1 << 30;

/// How a run was made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Head {
    pub date: String,
    pub command: String,
    pub machine: Vec<String>,
    pub rounds: usize,
    #[serde(default)]
    pub triads: Vec<Triad>,
}

/// The memory's rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Triad {
    pub threads: usize,
    pub gigabytes_a_second: f64,
}

impl Head {
    /// Of this machine, with the triad on these numbers of threads.
    pub fn of_run(rounds: usize, threads: &[usize]) -> Result<Head, Failure> {
        let triad = |&threads: &usize| {
            triad::rate(TRIAD, threads).map(|rate| Triad { threads, gigabytes_a_second: rate })
        };
        Ok(Head {
            date: machine::date(),
            command: machine::command(),
            machine: machine::describe(),
            rounds,
            triads: threads.iter().map(triad).collect::<Result<_, _>>()?,
        })
    }

    /// Title, command, machine and triad.
    pub fn markdown(&self, title: &str) -> String {
        let Head { date, command, machine, .. } = self;
        let rate = |t: &Triad| format!("{:.1} GB/s on {}", t.gigabytes_a_second, table::threads(t.threads));
        let rates: Vec<String> = self.triads.iter().map(rate).collect();
        let triad = if rates.is_empty() { "not measured".into() } else { rates.join(", ") };
        format!("# {title}, {date}\n\n`{command}`; {}; triad: {triad}.\n", machine.join("; "))
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A head without a machine.
    pub fn head() -> Head {
        let triads = vec![Triad { threads: 1, gigabytes_a_second: 12.34 }];
        let (date, command) = ("2026-01-31".into(), "krylith-bench fsai".into());
        Head { date, command, machine: vec!["cores: 2".into()], rounds: 3, triads }
    }

    #[test]
    fn a_head_says_how_the_run_was_made() {
        assert_eq!(
            head().markdown("Powers"),
            "# Powers, 2026-01-31\n\n`krylith-bench fsai`; cores: 2; triad: 12.3 GB/s on 1 thread.\n"
        );
    }
}
