//! Krylith's own driver: one solve in a process of its own, like every other contestant.

use super::contestants::{self, Driver, Study, Way};
use super::trial::Line;
use crate::Failure;
use clap::Args;
use krylith::{Csr, Outcome, io};
use std::path::PathBuf;

/// Options of the hidden subcommand `incomplete-once`.
#[derive(Args)]
pub struct OnceOptions {
    /// With A.npz and b.npy
    folder: PathBuf,
    /// Where x goes
    x: PathBuf,
    rtol: f64,
    max_iterations: usize,
    study: Study,
    /// The contestant
    name: String,
}

/// Solves and prints the line.
pub fn once(options: &OnceOptions) -> Result<(), Failure> {
    let found = contestants::all(options.study).iter().find(|c| c.name == options.name);
    let Some(Driver::Own(way)) = found.map(|c| c.driver) else {
        return Err(format!("Krylith has no configuration `{}`", options.name).into());
    };
    let a = io::read_matrix(options.folder.join("A.npz"))?;
    let b = io::read_vector(options.folder.join("b.npy"))?;
    let (line, x) = solve(&way, &a, &b, options.rtol, options.max_iterations)?;
    if let Some(x) = x {
        io::write_vector(&options.x, &x)?;
    }
    println!("{}", serde_json::to_string(&line)?);
    Ok(())
}

/// What the report says, and x where there is one.
fn solve(
    way: &Way,
    a: &Csr<f64>,
    b: &[f64],
    rtol: f64,
    max_iterations: usize,
) -> Result<(Line, Option<Vec<f64>>), Failure> {
    let mut line = Line { version: concat!("Krylith ", env!("CARGO_PKG_VERSION")).into(), ..Line::default() };
    let limit = if way.set_up_only { 1 } else { max_iterations };
    let solver = way.solver()?.threads(1).rtol(rtol).max_iterations(limit);
    let solution = match solver.solve(a, b) {
        Err(error) => {
            line.said = "setup_failed".into();
            line.detail = error.to_string();
            return Ok((line, None));
        }
        Ok(solution) => solution,
    };
    let report = solution.report;
    // One application shows a factor that exists in name only.
    let useless =
        matches!(report.outcome, Outcome::NotFinite | Outcome::IndefinitePreconditioner | Outcome::Breakdown);
    line.said = if way.set_up_only && !useless { "set_up".into() } else { report.outcome.name().into() };
    line.iterations = report.iterations as u64;
    line.rounds = 1 + report.residual_replacements as u64;
    line.detail = format!("{} with {}", report.solver, report.preconditioner);
    line.recovery = report.recovery.iter().map(serde_json::to_value).collect::<Result<_, _>>()?;
    Ok((line, Some(solution.x)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rhs::Rhs;
    use krylith::gallery::Problem;
    use krylith::solver::Method;

    const IC0: Way = Way {
        method: Method::Cg,
        preconditioner: "ic0",
        matching: false,
        ordering: krylith::transform::Ordering::Natural,
        set_up_only: false,
    };

    #[test]
    fn a_solve_tells_its_outcome() {
        let a = "poisson2d:20".parse::<Problem>().unwrap().generate().unwrap();
        let b = Rhs::Ones.vector(&a);
        let (line, x) = solve(&IC0, &a, &b, 1e-8, 100).unwrap();
        assert_eq!((line.said.as_str(), line.detail.as_str()), ("converged", "cg with ic0"));
        assert!(x.unwrap().iter().all(|x| (x - 1.0).abs() < 1e-6));
        let (line, _) = solve(&Way { set_up_only: true, ..IC0 }, &a, &b, 1e-8, 100).unwrap();
        assert_eq!((line.said.as_str(), line.iterations), ("set_up", 1));
    }

    #[test]
    fn a_factor_that_had_to_be_shifted_says_so() {
        // The second row has no diagonal entry.
        let a = Csr::new(2, 2, vec![0, 2, 3], vec![0, 1, 0], vec![1.0, 2.0, 2.0]).unwrap();
        let (line, _) = solve(&Way { set_up_only: true, ..IC0 }, &a, &[3.0, 2.0], 1e-8, 100).unwrap();
        assert_eq!(line.said, "set_up");
        let first = &line.recovery[0];
        assert_eq!(first["row"], 1);
        assert!(first["action"].as_str().unwrap().contains("shifted"), "{first}");
    }
}
