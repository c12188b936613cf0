//! What the folders of studies have in common: machine, command and the memory's rate at the head, a text and the figures.

use crate::compare::{limited, machine, outcome};
use crate::{Failure, record};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Bytes of the triad: what no cache holds.
const TRIAD: u64 = 1 << 30;
/// Seconds that the triad may take.
const LIMIT: u64 = 60;

/// How a run was made.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Head {
    pub date: String,
    pub command: String,
    pub machine: Vec<String>,
    pub rounds: usize,
    pub triads: Vec<Triad>,
}

/// The memory's rate.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Triad {
    pub threads: usize,
    pub gigabytes_a_second: f64,
}

impl Head {
    /// Of this machine, with the triad on these numbers of threads.
    pub fn of_run(rounds: usize, threads: &[usize]) -> Result<Head, Failure> {
        let mut head = Head {
            date: machine::date(),
            command: machine::command(),
            machine: machine::describe(),
            rounds,
            triads: Vec::new(),
        };
        for &threads in threads {
            head.triads.push(Triad { threads, gigabytes_a_second: rate_of_triad(TRIAD, threads)? });
        }
        Ok(head)
    }

    /// Title, command, machine and triad.
    pub fn markdown(&self, title: &str) -> String {
        let Head { date, command, machine, .. } = self;
        let rate = |t: &Triad| format!("{:.1} GB/s on {}", t.gigabytes_a_second, counted(t.threads));
        let rates: Vec<String> = self.triads.iter().map(rate).collect();
        let triad = if rates.is_empty() { "not measured".into() } else { rates.join(", ") };
        format!("# {title}, {date}\n\n`{command}`; {}; triad: {triad}.\n", machine.join("; "))
    }
}

/// Gigabytes per second of the triad on arrays of so many bytes in all.
pub fn rate_of_triad(bytes: u64, threads: usize) -> Result<f64, Failure> {
    let mut command = limited(LIMIT);
    command.arg(std::env::current_exe()?).arg("compare-triad").arg(bytes.to_string());
    let line = outcome(command.args(["--threads", &threads.to_string()]), LIMIT)??;
    let seconds = line.kernels.get("seconds_a_byte").copied().flatten();
    Ok(1e-9 / seconds.ok_or("the triad has no seconds")?)
}

/// `1 thread`, `2 threads`.
pub fn counted(threads: usize) -> String {
    format!("{threads} thread{}", if threads == 1 { "" } else { "s" })
}

/// `1 round`, `3 rounds`.
pub fn rounds(rounds: usize) -> String {
    format!("{rounds} round{}", if rounds == 1 { "" } else { "s" })
}

/// Where the results of a study go; it is made.
pub fn of_results(output: Option<&Path>, head: &Head, study: &str) -> Result<PathBuf, Failure> {
    let folder = match output {
        Some(folder) => folder.to_owned(),
        None => Path::new("benchmarks/runs").join(format!("{}-{study}", head.date)),
    };
    std::fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// Writes the text and the figures; what was measured so far stays, should the run be interrupted.
pub fn write(folder: &Path, study: &str, record: &impl Serialize, text: &str) -> Result<(), Failure> {
    record::save(&record::path(folder, study), record)?;
    Ok(std::fs::write(folder.join("README.md"), text)?)
}

/// A table of Markdown.
pub fn table(columns: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let head: Vec<String> = columns.iter().map(|&column| column.to_owned()).collect();
    let body: String = rows.into_iter().map(|cells| line(&cells)).collect();
    format!("{}|{}\n{body}", line(&head), "---|".repeat(columns.len()))
}

/// Three digits, or a dash.
pub fn digits(value: Option<f64>) -> String {
    match value {
        None => "–".into(),
        Some(v) if v >= 99.95 => format!("{v:.0}"),
        Some(v) if v >= 9.995 => format!("{v:.1}"),
        Some(v) => format!("{v:.2}"),
    }
}

/// 1,234,567.
pub fn grouped(number: u64) -> String {
    let text = number.to_string();
    let mut grouped = String::new();
    for (k, digit) in text.chars().enumerate() {
        if k > 0 && (text.len() - k).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
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
    fn heads_tables_and_numbers() {
        let text = head().markdown("Powers");
        assert_eq!(
            text,
            "# Powers, 2026-01-31\n\n`krylith-bench fsai`; cores: 2; triad: 12.3 GB/s on 1 thread.\n"
        );
        assert_eq!(table(&["a", "b"], [vec!["1".into(), "2".into()]]), "| a | b |\n|---|---|\n| 1 | 2 |\n");
        assert_eq!([0, 999, 1000, 1234567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([None, Some(123.4), Some(12.34), Some(1.234)].map(digits), ["–", "123", "12.3", "1.23"]);
    }
}
