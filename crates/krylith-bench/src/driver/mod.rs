//! Drivers: programs that studies run in processes of their own. `peers/README.md` says what they are given, read and print.

mod line;
pub mod system;
pub mod triad;

pub use line::Line;

use crate::Failure;
use std::path::{Path, PathBuf};
use std::process::Command;

/// `peers` beside the folder of this program's profile: `target/peers`.
pub fn default_folder() -> Result<PathBuf, Failure> {
    let own = std::env::current_exe()?;
    let target = own.parent().and_then(Path::parent).ok_or("this program has no target folder")?;
    Ok(target.join("peers"))
}

/// `mpirun` in front of a program, for more than one process.
pub fn on_ranks(command: &mut Command, processes: usize) {
    if processes > 1 {
        command.args(["mpirun", "--bind-to", "none", "--oversubscribe", "-n"]);
        command.arg(processes.to_string());
    }
}

/// Threads of each process, and what Open MPI needs to run in a container.
pub fn environment(command: &mut Command, threads: usize) {
    for name in ["OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"] {
        command.env(name, threads.to_string());
    }
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    // Containers often forbid reading another process's memory, which the faster way needs.
    command.env("OMPI_MCA_btl_vader_single_copy_mechanism", "none");
}

/// `timeout` in front of a command: it also ends the ranks that `mpirun` started.
pub fn limited(seconds: u64) -> Command {
    let mut command = Command::new("timeout");
    command.args(["--kill-after=10", &seconds.to_string()]);
    command
}

/// Runs a command to its end and reads the line it prints. The inner error says why there is no line.
pub fn outcome(command: &mut Command, limit: u64) -> Result<Result<Line, String>, Failure> {
    let output = command.output().map_err(|e| format!("`timeout` cannot be run: {e}"))?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    let last = || stderr.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("no message").trim();
    Ok(match output.status.code() {
        Some(0) => Line::parse(&String::from_utf8_lossy(&output.stdout)).map_err(|e| e.to_string()),
        Some(124 | 137) => Err(format!("exceeded {limit} s")),
        _ => Err(format!("failed ({}): {}", output.status, last())),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_gives_a_line_or_a_reason() {
        let run = |script: &str, limit: u64| {
            let mut command = limited(limit);
            outcome(command.args(["sh", "-c", script]), limit).unwrap()
        };
        let line = run("echo '{\"peer\":\"x\",\"status\":\"converged\"}'", 10).unwrap();
        assert_eq!(line.peer, "x");
        assert!(run("echo why >&2; exit 3", 10).unwrap_err().contains("why"));
        assert!(run("true", 10).unwrap_err().contains("no result"));
        assert_eq!(run("sleep 5", 1).unwrap_err(), "exceeded 1 s");
    }
}
