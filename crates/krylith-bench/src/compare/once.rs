//! Krylith's own driver: one solve, or the seconds of single operations, in a process of its own like every other contestant.

use crate::Failure;
use crate::driver::{Line, system};
use crate::rhs::{Rhs, relative_residual};
use clap::Args;
use krylith::operator::{LinearOperator, Preconditioner, Recipe, Symbolic};
use krylith::precond::Incomplete;
use krylith::schedule::Schedule;
use krylith::sliced::{Sliced, SlicedPattern, SlicedSymbolic};
use krylith::space::{Space, Threads};
use krylith::{Csr, Precision, PrecondSpec, Solver};
use std::collections::BTreeMap;
use std::hint::black_box;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Options of the hidden subcommand `compare-once`: those of every driver.
#[derive(Args)]
pub struct OnceOptions {
    file: PathBuf,
    #[arg(value_parser = ["solve", "kernels"])]
    mode: String,
    /// METHOD+PRECONDITIONER, METHOD+PRECONDITIONER+mixed, or auto
    config: String,
    rtol: f64,
    max_iterations: usize,
    #[arg(long)]
    threads: usize,
}

/// Does what is asked and prints the line.
pub fn run(options: &OnceOptions) -> Result<(), Failure> {
    rayon::ThreadPoolBuilder::new().num_threads(options.threads).build_global()?;
    let words: Vec<&str> = options.config.split('+').collect();
    let (method, preconditioner, precision) = match words[..] {
        ["auto"] => ("auto", "auto", Precision::Auto),
        [method, preconditioner] => (method, preconditioner, Precision::F64),
        [method, preconditioner, "mixed"] => (method, preconditioner, Precision::Mixed),
        _ => {
            return Err(
                "a configuration is METHOD+PRECONDITIONER, METHOD+PRECONDITIONER+mixed or auto".into()
            );
        }
    };
    let (method, preconditioner): (_, PrecondSpec) = (method.parse()?, preconditioner.parse()?);
    let solver = Solver::new().method(method).preconditioner(preconditioner.clone()).precision(precision);
    let (a, given) = system::read(&options.file)?;
    let mut line = Line {
        peer: "krylith".into(),
        version: env!("CARGO_PKG_VERSION").into(),
        config: options.config.clone(),
        problem: options.file.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
        threads: options.threads,
        rhs: if given.is_some() { "file" } else { "ones" }.into(),
        ..Line::default()
    };
    if options.mode == "kernels" {
        line.status = "measured".into();
        line.kernels = kernels(&a, preconditioner, options.threads)?;
    } else {
        let b = given.unwrap_or_else(|| right_hand_side(&a));
        solve(&a, &b, solver, options, &mut line)?;
    }
    println!("{}", serde_json::to_string(&line)?);
    Ok(())
}

fn solve(
    a: &Csr<f64>,
    b: &[f64],
    solver: Solver,
    options: &OnceOptions,
    line: &mut Line,
) -> Result<(), Failure> {
    let mut x = vec![0.0; a.nrows()];
    let solver = solver.threads(options.threads).rtol(options.rtol).max_iterations(options.max_iterations);
    let started = Instant::now();
    let prepared = solver.prepare(a)?;
    line.setup_seconds = Some(started.elapsed().as_secs_f64());
    let started = Instant::now();
    let report = prepared.solve(a, b, &mut x)?;
    line.solve_seconds = Some(started.elapsed().as_secs_f64());
    line.import_seconds = Some(0.0);
    line.status = report.outcome.name().into();
    line.iterations = Some(report.iterations as u64);
    line.relative_residual = Some(relative_residual(a, &x, b)).filter(|r| r.is_finite());
    Ok(())
}

fn right_hand_side(a: &Csr<f64>) -> Vec<f64> {
    Rhs::Ones.vector(a)
}

type Figures = BTreeMap<String, Option<f64>>;

fn kernels(a: &Csr<f64>, preconditioner: PrecondSpec, threads: usize) -> Result<Figures, Failure> {
    let space = Threads::<f64>::new(threads);
    let mut figures = Figures::new();
    let mut keep = |name: &str, seconds: f64| figures.insert(name.into(), Some(seconds));
    let (b, mut y) = (right_hand_side(a), space.zeros(&a.nrows())?);
    keep("dot", least_seconds(|| space.dot(&b, &y).map(black_box))?);
    keep("axpy", least_seconds(|| space.axpby(1e-9, &b, 1.0, &mut y))?);
    if preconditioner.is_none() {
        keep("spmv", application(a, &space, &b, &mut y)?);
        return Ok(figures);
    }
    let recipe = preconditioner.incomplete();
    let recipe = recipe.ok_or_else(|| format!("the kernels of {preconditioner} are not measured"))?;
    incomplete(&recipe, &space, a, &mut keep)?;
    Ok(figures)
}

/// What the solver would do: in slices if they pay, by rows otherwise.
fn incomplete(
    kind: &Incomplete,
    space: &Threads<f64>,
    a: &Csr<f64>,
    keep: &mut impl FnMut(&str, f64) -> Option<Option<f64>>,
) -> Result<(), Failure> {
    let analyze = || -> Result<_, Failure> {
        let pattern = Arc::new(SlicedPattern::find(a.pattern())?);
        let factor =
            SlicedSymbolic::new(&pattern, kind.form, space.threads(), Schedule::Auto)?.allocate::<f64>();
        Ok((pattern, factor))
    };
    let sliced = if kind.level == 0 { analyze().ok() } else { None };
    let Some((pattern, mut factor)) = sliced else { return recipe(kind, space, a, keep) };
    keep("analyze", least_seconds(analyze)?);
    let mut sliced = Sliced::zeros(&pattern);
    keep("factor", least_seconds(|| sliced.set(space, a).and_then(|()| factor.refactor(space, &sliced)))?);
    let (mut x, mut y) = (space.zeros(&pattern.positions())?, space.zeros(&pattern.positions())?);
    pattern.gather(space, &right_hand_side(a), &mut x)?;
    keep("spmv", application(&sliced, space, &x, &mut y)?);
    keep("apply", application(&factor, space, &x, &mut y)?);
    Ok(())
}

/// Analysis, factorization and application apart.
fn recipe<R: Recipe<Threads<f64>, Csr<f64>>>(
    recipe: &R,
    space: &Threads<f64>,
    a: &Csr<f64>,
    keep: &mut impl FnMut(&str, f64) -> Option<Option<f64>>,
) -> Result<(), Failure> {
    keep("analyze", least_seconds(|| recipe.analyze(space, a))?);
    let symbolic = recipe.analyze(space, a)?;
    keep("factor", least_seconds(|| symbolic.factor(space, a))?);
    let factor = symbolic.factor(space, a)?;
    let mut y = space.zeros(&a.nrows())?;
    let b = right_hand_side(a);
    keep("spmv", application(a, space, &b, &mut y)?);
    keep("apply", application(&factor, space, &b, &mut y)?);
    Ok(())
}

/// Seconds of y = A x.
fn application(
    a: &impl LinearOperator<Threads<f64>>,
    space: &Threads<f64>,
    x: &Vec<f64>,
    y: &mut Vec<f64>,
) -> Result<f64, Failure> {
    let mut scratch = a.scratch(space)?;
    least_seconds(|| a.apply(space, x, y, &mut scratch))
}

/// The least seconds of a call: at least 20 calls and 0.3 s, but no more than 5 s once there are 3. What a call returns is
/// dropped outside the time.
fn least_seconds<T, E: Into<Failure>>(mut call: impl FnMut() -> Result<T, E>) -> Result<f64, Failure> {
    let (began, mut least, mut calls) = (Instant::now(), f64::INFINITY, 0);
    loop {
        let started = Instant::now();
        let result = call();
        least = least.min(started.elapsed().as_secs_f64());
        result.map_err(Into::into)?;
        calls += 1;
        let spent = began.elapsed();
        let enough = calls >= 20 && spent >= Duration::from_millis(300);
        if enough || calls >= 3 && spent > Duration::from_secs(5) {
            return Ok(least);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use krylith::Method;
    use krylith::gallery::Problem;

    #[test]
    fn a_solve_fills_the_line() {
        let a = "poisson2d:20".parse::<Problem>().unwrap().generate().unwrap();
        let options = OnceOptions {
            file: "P1.csr".into(),
            mode: "solve".into(),
            config: "cg+ic0".into(),
            rtol: 1e-7,
            max_iterations: 100,
            threads: 2,
        };
        let mut line = Line::default();
        let solver = Solver::new().method(Method::Cg).preconditioner(PrecondSpec::ic(0));
        for b in [right_hand_side(&a), Rhs::Random.vector(&a)] {
            solve(&a, &b, solver.clone(), &options, &mut line).unwrap();
            assert_eq!(line.shortfall(1e-7), None);
            assert!(line.iterations.unwrap() > 5 && line.total().unwrap() > 0.0);
        }
    }

    #[test]
    fn all_kernels_are_measured() {
        let a = "poisson2d:10".parse::<Problem>().unwrap().generate().unwrap();
        let figures = kernels(&a, PrecondSpec::ilu(0), 1).unwrap();
        let names: Vec<&str> = figures.keys().map(String::as_str).collect();
        assert_eq!(names, ["analyze", "apply", "axpy", "dot", "factor", "spmv"]);
        assert!(kernels(&a, PrecondSpec::jacobi(), 1).is_err());
    }
}
