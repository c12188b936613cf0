//! The command `krylith solve` as a contestant: what it is given, and its report as a driver's line.
//!
//! Set-up is everything between reading and iterating: what its report has as a total, without reading and solving.

use crate::Failure;
use crate::driver::Line;
use clap::Args;
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;

/// Options of the hidden subcommand `compare-command`.
#[derive(Args)]
pub struct CommandOptions {
    /// A problem of the gallery
    problem: String,
    /// Options of `krylith solve`, with spaces in between
    #[arg(allow_hyphen_values = true)]
    config: String,
    rtol: f64,
    max_iterations: usize,
    #[arg(long)]
    threads: usize,
    /// `ones` or `random`
    #[arg(long, default_value = "ones")]
    rhs: String,
}

/// `krylith` beside this program.
pub fn program() -> Result<PathBuf, Failure> {
    let own = std::env::current_exe()?;
    let program = own.with_file_name(format!("krylith{}", std::env::consts::EXE_SUFFIX));
    match program.is_file() {
        true => Ok(program),
        false => Err("`krylith` is not beside this program: cargo build --release -p krylith-cli".into()),
    }
}

/// Runs the command and prints the line.
pub fn once(options: &CommandOptions) -> Result<(), Failure> {
    let mut command = Command::new(program()?);
    command.arg("solve").arg(format!("gen:{}", options.problem)).args(options.config.split_whitespace());
    command.args(["--json", "-", "--rtol", &options.rtol.to_string()]);
    command.args(["--max-iterations", &options.max_iterations.to_string()]);
    command.args(["--threads", &options.threads.to_string(), "--rhs", &options.rhs]);
    let output = command.output()?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    let described = stderr.lines().find(|line| !line.trim().is_empty()).unwrap_or("no message").trim();
    // 3 is a report of a solve that did not converge, 2 one of a solve that could not begin, if there is a report.
    if !matches!(output.status.code(), Some(0 | 2 | 3)) {
        return Err(format!("krylith: {described}").into());
    }
    let report = serde_json::from_slice(&output.stdout).map_err(|_| format!("krylith: {described}"))?;
    println!("{}", serde_json::to_string(&line(options, &report)?)?);
    Ok(())
}

fn line(options: &CommandOptions, report: &Value) -> Result<Line, Failure> {
    let mut line = Line {
        peer: "krylith".into(),
        version: env!("CARGO_PKG_VERSION").into(),
        config: options.config.clone(),
        problem: options.problem.clone(),
        threads: options.threads,
        rhs: options.rhs.clone(),
        status: report["outcome"].as_str().ok_or("the report has no outcome")?.into(),
        ..Line::default()
    };
    let seconds = |name: &str| report["seconds"][name].as_f64();
    line.solve_seconds = seconds("solve");
    line.setup_seconds = (|| Some(seconds("total")? - seconds("read")? - seconds("solve")?))();
    line.import_seconds = Some(0.0);
    line.iterations = report["iterations"].as_u64();
    line.relative_residual = report["relative_residual"].as_f64();
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_report_becomes_a_line() {
        let options = CommandOptions {
            problem: "poisson3d:8".into(),
            config: "--solver cg".into(),
            rtol: 1e-7,
            max_iterations: 100,
            threads: 2,
            rhs: "ones".into(),
        };
        let report = json!({ "outcome": "converged", "iterations": 12, "relative_residual": 5e-8,
            "seconds": { "read": 1.0, "analyze": 0.1, "factor": 0.2, "solve": 2.0, "total": 3.5 } });
        let own = line(&options, &report).unwrap();
        assert_eq!((own.setup_seconds, own.solve_seconds, own.iterations), (Some(0.5), Some(2.0), Some(12)));
        assert_eq!(own.shortfall(1e-7), None);
        let failed = line(&options, &json!({ "outcome": "setup_failed", "error": "no" })).unwrap();
        assert_eq!((failed.shortfall(1e-7), failed.total()), (Some("ended as setup_failed".into()), None));
        assert!(line(&options, &json!({})).is_err());
    }
}
