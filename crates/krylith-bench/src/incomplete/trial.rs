//! One contestant on one system, in a process of its own: the run, and the judgement of its x.
//!
//! Converged means ‖b − A x‖₂ ≤ rtol ‖b‖₂ for the residual that is computed here from the file of x, summed from left to
//! right, whatever the contestant says. A crash, a time limit or a wrong file is a failed line, not an end of the study.

use super::contestants::{Contestant, Limits, Places, Study};
use super::record::Run;
use crate::Failure;
use crate::rhs::Rhs;
use krylith::{Csr, io};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::{Duration, Instant};

/// What a driver prints.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Line {
    pub version: String,
    pub said: String,
    pub iterations: u64,
    pub rounds: u64,
    pub detail: String,
    pub recovery: Vec<Value>,
}

/// A system in a folder: `A.npz` and `b.npy`, and the same for PETSc as `A.petsc` and `b.petsc`.
pub struct System {
    pub file: String,
    pub a: Csr<f64>,
    pub b: Vec<f64>,
    folder: PathBuf,
}

impl System {
    /// b, and the files. PETSc's ILU refuses a matrix whose pattern lacks a diagonal entry: where one is missing its
    /// file has a zero there.
    pub fn write(file: &str, a: Csr<f64>, rhs: Rhs, folder: &Path) -> Result<System, Failure> {
        let b = rhs.vector(&a);
        io::write_matrix(folder.join("A.npz"), &a)?;
        io::write_vector(folder.join("b.npy"), &b)?;
        io::write_matrix(folder.join("A.petsc"), &with_diagonal(&a)?)?;
        io::write_vector(folder.join("b.petsc"), &b)?;
        Ok(System { file: file.into(), a, b, folder: folder.into() })
    }

    /// Runs a contestant; the version it tells, and the run.
    pub fn run(
        &self,
        contestant: &Contestant,
        study: Study,
        places: &Places,
        limits: &Limits,
    ) -> Result<(String, Run), Failure> {
        // Readers recognise the content.
        let x = self.folder.join("x.npy");
        if x.exists() {
            std::fs::remove_file(&x)?;
        }
        let began = Instant::now();
        let mut command = contestant.command(study, places, &self.folder, &x, limits)?;
        let output = command.output().map_err(|e| format!("`timeout` cannot be run: {e}"))?;
        let timed_out = began.elapsed() >= Duration::from_secs(limits.seconds);
        let line = heard(&output, timed_out);
        let residual = io::read_vector(&x).ok().and_then(|x| relative_residual(&self.a, &x, &self.b));
        let run = Run {
            file: self.file.clone(),
            contestant: contestant.name.into(),
            outcome: judge(&line.said, residual, contestant.set_up_only(), limits.rtol).into(),
            iterations: (line.rounds > 0).then_some(line.iterations),
            residual,
            rounds: line.rounds,
            detail: self.without_folder(&line.detail),
            recovery: line.recovery,
            said: line.said,
        };
        Ok((line.version, run))
    }

    fn without_folder(&self, text: &str) -> String {
        text.replace(&format!("{}/", self.folder.display()), "")
    }
}

/// The same matrix with every diagonal entry stored.
fn with_diagonal(a: &Csr<f64>) -> Result<Csr<f64>, Failure> {
    let (mut row_ptr, mut col_idx, mut values) = (vec![0], Vec::new(), Vec::new());
    for i in 0..a.nrows() {
        let (columns, row) = a.row(i);
        let split = columns.partition_point(|&j| (j as usize) < i);
        col_idx.extend_from_slice(&columns[..split]);
        values.extend_from_slice(&row[..split]);
        if columns.get(split).is_none_or(|&j| j as usize != i) {
            col_idx.push(u32::try_from(i)?);
            values.push(0.0);
        }
        col_idx.extend_from_slice(&columns[split..]);
        values.extend_from_slice(&row[split..]);
        row_ptr.push(col_idx.len());
    }
    Ok(Csr::new(a.nrows(), a.ncols(), row_ptr, col_idx, values)?)
}

/// ‖b − A x‖₂ / ‖b‖₂ from left to right; none if x has another length or the result is not finite.
fn relative_residual(a: &Csr<f64>, x: &[f64], b: &[f64]) -> Option<f64> {
    if x.len() != a.ncols() {
        return None;
    }
    let residual = |i: usize| {
        let (columns, values) = a.row(i);
        b[i] - columns.iter().zip(values).map(|(&j, v)| v * x[j as usize]).sum::<f64>()
    };
    // Scaled, so that squares neither overflow nor vanish.
    let largest = b.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
    let square: f64 = (0..a.nrows()).map(|i| (residual(i) / largest).powi(2)).sum();
    let relative = (square / b.iter().map(|b| (b / largest).powi(2)).sum::<f64>()).sqrt();
    Some(relative).filter(|r| r.is_finite())
}

/// The line of a driver, or one that says how the process ended.
fn heard(output: &Output, timed_out: bool) -> Line {
    let ended = |said: &str, detail: String| Line { said: said.into(), detail, ..Line::default() };
    let stderr = String::from_utf8_lossy(&output.stderr);
    let last = || stderr.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("").trim().to_owned();
    match output.status.code() {
        Some(0) => {
            let stdout = String::from_utf8_lossy(&output.stdout);
            let line = stdout.lines().rev().find(|line| line.starts_with('{')).unwrap_or_default();
            serde_json::from_str(line).unwrap_or_else(|error| ended("crashed", format!("no result: {error}")))
        }
        Some(124 | 137) if timed_out => ended("time_limit", String::new()),
        // `timeout` passes a signal on as 128 and its number.
        Some(code @ 129..=192) => ended("crashed", format!("signal {}: {}", code - 128, last())),
        _ => ended("crashed", format!("{}: {}", output.status, last())),
    }
}

/// The outcome by what was said and what was recomputed.
fn judge(said: &str, residual: Option<f64>, set_up_only: bool, rtol: f64) -> &str {
    match said {
        _ if set_up_only => said,
        _ if residual.is_some_and(|r| r <= rtol) => "converged",
        "converged" => "false_convergence",
        _ => said,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn only_the_residual_makes_converged() {
        assert_eq!(judge("converged", Some(1e-8), false, 1e-8), "converged");
        assert_eq!(judge("breakdown", Some(1e-9), false, 1e-8), "converged");
        assert_eq!(judge("converged", Some(1.01e-8), false, 1e-8), "false_convergence");
        assert_eq!(judge("converged", None, false, 1e-8), "false_convergence");
        assert_eq!(judge("max_iterations", Some(1.0), false, 1e-8), "max_iterations");
        assert_eq!(judge("set_up", Some(1.0), true, 1e-8), "set_up");
    }

    #[test]
    fn residuals() {
        let a = Csr::new(2, 2, vec![0, 1, 3], vec![0, 0, 1], vec![3.0, 1.0, 3.0]).unwrap();
        let b = [3.0, 4.0];
        // r = b - A (1, 0) = (0, 3), |b| = 5.
        assert!((relative_residual(&a, &[1.0, 0.0], &b).unwrap() - 0.6).abs() < 1e-15);
        assert_eq!(relative_residual(&a, &[1.0, 1.0], &b), Some(0.0));
        assert_eq!(relative_residual(&a, &[1.0, f64::NAN], &b), None);
        assert_eq!(relative_residual(&a, &[1.0], &b), None);
        let tiny = [1e-200, 1e-200];
        assert!((relative_residual(&a, &[0.0, 0.0], &tiny).unwrap() - 1.0).abs() < 1e-15);
    }

    #[test]
    fn missing_diagonals_become_stored_zeros() {
        let a = Csr::new(3, 3, vec![0, 1, 3, 4], vec![1, 0, 1, 0], vec![1.0, 2.0, 3.0, 4.0]).unwrap();
        let full = with_diagonal(&a).unwrap();
        assert_eq!(full.view().row_ptr(), [0, 2, 4, 6]);
        assert_eq!(full.view().col_idx(), [0, 1, 0, 1, 0, 2]);
        assert_eq!(full.values(), [0.0, 1.0, 2.0, 3.0, 4.0, 0.0]);
        assert_eq!(with_diagonal(&full).unwrap(), full);
    }

    #[test]
    fn every_end_of_a_process_is_a_line() {
        let run = |script: &str| Command::new("sh").args(["-c", script]).output().unwrap();
        let line =
            heard(&run("echo noise; echo '{\"said\":\"converged\",\"iterations\":4,\"rounds\":1}'"), false);
        assert_eq!((line.said.as_str(), line.iterations), ("converged", 4));
        assert_eq!(heard(&run("exit 124"), true).said, "time_limit");
        assert_eq!(heard(&run("exit 137"), false).detail, "signal 9: ");
        assert_eq!(heard(&run("echo why >&2; exit 139"), false).detail, "signal 11: why");
        assert!(heard(&run("echo why >&2; exit 3"), false).detail.ends_with("why"));
        assert!(heard(&run("echo nothing"), false).detail.starts_with("no result"));
    }
}
