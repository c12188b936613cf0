//! A solve that could not be done: what happened, where, and what to do next.

use crate::args::{Place, Solve};
use crate::report::bytes;
use crate::rhs;
use krylith::precond::registry::Construction;
use krylith::transform::Ordering;
use krylith::{BackendError, Csr, MatrixError, Method, Outcome, PrecondSpec, SetupError, SolveError};
use serde_json::{Value, json};

/// What `--restart` is unless it is given.
const USUAL_RESTART: usize = 30;

/// For people.
pub fn message(options: &Solve, error: &SolveError) -> String {
    let place = match options.precond.is_auto() {
        true => options.input.name().to_owned(),
        false => format!("{}, --precond {}", options.input.name(), options.precond),
    };
    format!("{place}: {}; {}", describe(options, error), remedy(options, error))
}

/// For programs. `outcome` says how far the solve came: `setup_failed` or `solve_failed`.
pub fn report(options: &Solve, a: &Csr<f64>, outcome: &str, error: &SolveError) -> Value {
    let mut value = object(options, outcome, &error.to_string(), &remedy(options, error));
    value["matrix"] = matrix(options, a);
    match error {
        SolveError::Setup(SetupError::BadPivot { row, value: pivot }) => {
            value["row"] = json!(row);
            value["value"] = json!(pivot);
        }
        SolveError::Setup(SetupError::MissingDiagonal { row }) => value["row"] = json!(row),
        SolveError::Setup(SetupError::MemoryLimit { predicted, limit, .. }) => {
            value["predicted_bytes"] = json!(predicted);
            value["limit_bytes"] = json!(limit);
        }
        _ => {}
    }
    value
}

/// What was interrupted before there was anything to keep, in words.
pub const NO_ANSWER: &str = "interrupted before there was an answer; start again to solve it";

/// A solve that was interrupted before there was an answer, for programs; its matrix is left out.
pub fn interrupted(options: &Solve) -> Value {
    let (what, next) = NO_ANSWER.split_once("; ").unwrap_or((NO_ANSWER, ""));
    object(options, Outcome::Interrupted.name(), what, next)
}

/// A matrix for programs.
pub fn matrix(options: &Solve, a: &Csr<f64>) -> Value {
    json!({
        "source": options.input.name(),
        "rows": a.nrows(),
        "columns": a.ncols(),
        "nnz": a.nnz(),
    })
}

fn object(options: &Solve, outcome: &str, error: &str, remedy: &str) -> Value {
    json!({
        "solver": options.solver.to_string(),
        "preconditioner": options.precond.to_string(),
        "rhs": rhs::name(options),
        "outcome": outcome,
        "error": error,
        "remedy": remedy,
    })
}

/// What happened, with sizes and numbers that need no guessing. Rows are counted from 0, as in the library; they are printed counted from 1.
fn describe(options: &Solve, error: &SolveError) -> String {
    match error {
        SolveError::Setup(SetupError::MemoryLimit { limit, .. }) if by_threshold(options) => {
            format!("more than the limit of {} of memory would be needed", bytes(*limit))
        }
        SolveError::Setup(SetupError::MemoryLimit { predicted, limit, .. }) => {
            format!(
                "{} of memory would be needed, more than the limit of {}",
                bytes(*predicted),
                bytes(*limit)
            )
        }
        SolveError::Setup(SetupError::BadPivot { row, value }) => {
            format!("bad pivot {value:.3e} in row {row} (counted from 0)")
        }
        other => other.to_string(),
    }
}

/// What to do next, by the error and by the options that led to it.
fn remedy(options: &Solve, error: &SolveError) -> String {
    let automatic = options.precond.is_auto();
    match error {
        SolveError::Setup(SetupError::Matrix(MatrixError::NotSquare { .. })) => {
            "`krylith solve` takes square systems; a rectangular one is for a least-squares solver, such as \
             scipy.sparse.linalg.lsqr"
                .into()
        }
        SolveError::Setup(SetupError::Matrix(MatrixError::NotInBlocks { count, .. })) => {
            format!("choose a block size that divides {count}, or --precond auto")
        }
        SolveError::Setup(SetupError::MemoryLimit { predicted, .. }) => memory_remedy(options, *predicted),
        SolveError::Setup(SetupError::BadPivot { .. } | SetupError::MissingDiagonal { .. })
            if options.recovery == "on" =>
        {
            "--precond none needs no pivots".into()
        }
        SolveError::Setup(SetupError::BadPivot { .. } | SetupError::MissingDiagonal { .. })
            if options.precond == PrecondSpec::jacobi() =>
        {
            "leave out --recovery off: the largest entry of such a row then takes the place of its diagonal"
                .into()
        }
        SolveError::Setup(SetupError::BadPivot { .. }) => {
            "leave out --recovery off: the diagonal is then shifted until every pivot is good".into()
        }
        SolveError::Setup(SetupError::MissingDiagonal { .. }) => {
            "leave out --recovery off: the diagonal alone is then the preconditioner".into()
        }
        SolveError::Setup(SetupError::PatternNotSymmetric) => {
            "choose a factor for matrices of any pattern, such as --precond ilu0, or --precond auto".into()
        }
        SolveError::Backend(BackendError::DeviceLost { .. } | BackendError::Compile { .. })
        | SolveError::Setup(SetupError::Backend(
            BackendError::DeviceLost { .. } | BackendError::Compile { .. },
        )) => {
            "--device cpu solves on threads".into()
        }
        SolveError::Backend(BackendError::OutOfMemory { .. })
        | SolveError::Setup(SetupError::Backend(BackendError::OutOfMemory { .. })) => {
            "take a preconditioner of less memory, such as --precond jacobi, or solve on threads with --device cpu".into()
        }
        SolveError::Backend(BackendError::Unsupported { .. })
            if options.device != Place::Cpu && options.solver == Method::Lsmr =>
        {
            "take another method than --solver lsmr, or solve on threads with --device cpu".into()
        }
        SolveError::Backend(BackendError::Unsupported { .. }) if options.device != Place::Cpu => {
            format!("take another preconditioner than --precond {}, or solve on threads with --device cpu", options.precond)
        }
        SolveError::Backend(BackendError::Failed { .. }) if options.reorder != Ordering::Natural => {
            format!("choose another ordering than --reorder {}, such as natural or rcm", options.reorder)
        }
        SolveError::Setup(_) if !automatic => "--precond auto chooses one for this matrix".into(),
        _ => format!("`krylith info {}` shows what the matrix is like", options.input.matrix),
    }
}

/// Whether the size of the factor follows from values: it is not known before, and the limit is met on the way.
fn by_threshold(options: &Solve) -> bool {
    matches!(options.precond.construct(), Construction::Threshold(_))
}

fn memory_remedy(options: &Solve, needed: u64) -> String {
    let asked = &options.precond;
    let less = match asked.weaker() {
        _ if by_threshold(options) => "take a larger tolerance, ".into(),
        Some(weaker) => format!("take a lower level of fill, such as --precond {weaker}, "),
        None if asked.is_none() || *asked == PrecondSpec::jacobi() => String::new(),
        None => "take --precond jacobi, which stores one number per row, ".into(),
    };
    let fewer = match options.solver {
        Method::Gmres(_) | Method::Fgmres(_) if options.restart.get() > USUAL_RESTART => {
            "store fewer vectors with a smaller --restart, "
        }
        _ => "",
    };
    let or = if less.is_empty() && fewer.is_empty() { "" } else { "or " };
    let enough = gigabytes_from(needed);
    match options.input.limits.max_memory {
        Some(limit) if by_threshold(options) => format!("{less}{fewer}{or}raise --max-memory above {limit}"),
        Some(_) => format!("{less}{fewer}{or}raise --max-memory to at least {enough}"),
        None => format!("{less}{fewer}{or}allow it with --max-memory {enough}, if the machine has so much"),
    }
}

/// Bytes as gigabytes, rounded up to three digits: what `--max-memory` takes.
fn gigabytes_from(bytes: u64) -> f64 {
    let exact = bytes as f64 / 1e9;
    let digit = 10f64.powi(exact.max(1e-9).log10().floor() as i32 - 2);
    // Through text, so that 0.3 is not 0.30000000000000004.
    format!("{:.2e}", (exact / digit).ceil() * digit).parse().unwrap_or(exact)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enough_gigabytes_are_not_too_few() {
        assert_eq!(gigabytes_from(2_500_000_000), 2.5);
        assert_eq!(gigabytes_from(300_000_001), 0.301);
        assert_eq!(gigabytes_from(1_000_000), 0.001);
        for bytes in [0, 1, 999, 107_010, 9_999_999_999, 123_456_789_012_345] {
            let enough = (gigabytes_from(bytes) * 1e9) as u64;
            assert!(enough >= bytes && enough <= bytes + bytes / 50 + 1, "{enough} for {bytes}");
        }
    }
}
