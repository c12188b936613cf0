//! Elasticity in 3 x 3 blocks: seconds of a product, of both sweeps and of a factorization, for block IC(0), for IC(0) by rows and in
//! slices, and for MKL's product and triangular solves on blocks, which get our factor (MKL has no block IC(0)).
//!
//! The material is nearly incompressible and IC(0) needs a shift: of 0, 0.001, 0.01, 0.1 and 1 the first with which it exists. The
//! blocks are full, so all factors are the same up to rounding and an iteration costs what a product and the sweeps do, and
//! vector operations that are the same for all. Contestants take turns in every round; the least seconds count.

mod peer;

use crate::Failure;
use clap::Args;
use krylith::block::{BlockFactor, BlockKind, BlockRecipe, Bsr};
use krylith::gallery::Problem;
use krylith::operator::{LinearOperator, Preconditioner, Recipe, Symbolic};
use krylith::precond::{Form, Incomplete, IncompleteFactor};
use krylith::schedule::Schedule;
use krylith::sliced::{Sliced, SlicedFactor, SlicedPattern, SlicedSymbolic};
use krylith::space::{Space, Threads};
use krylith::{Csr, SetupError};
use serde::Serialize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

/// Unknowns per node.
const B: usize = 3;

/// Tried one after the other until the factor exists.
const SHIFTS: [f64; 5] = [0.0, 1e-3, 1e-2, 0.1, 1.0];

#[derive(Args)]
pub struct Options {
    /// Problems, as `krylith gen` names them, with three unknowns per node
    #[arg(default_values_t = ["elasticity3d:40".to_owned()])]
    problems: Vec<String>,
    /// Numbers of threads
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2])]
    threads: Vec<usize>,
    /// Rounds; the least seconds count
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Calls a contestant times in its turn
    #[arg(long, default_value_t = 10)]
    calls: usize,
    /// The folder with the driver `mkl_blocks`, made by `just bench-setup`; without it MKL is left out
    #[arg(long)]
    peers: Option<PathBuf>,
    /// Keep the figures as JSON in this file
    #[arg(long)]
    output: Option<PathBuf>,
}

/// The least seconds of a contestant.
#[derive(Debug, Clone, Serialize)]
struct Figures {
    problem: String,
    threads: usize,
    contestant: &'static str,
    shift: f64,
    product: f64,
    sweeps: f64,
    /// None where there is no such operation.
    factor: Option<f64>,
    /// Why there are no figures.
    failure: Option<String>,
}

pub fn run(options: &Options) -> Result<(), Failure> {
    let mut all = Vec::new();
    println!("| problem | threads | contestant | shift | product ms | sweeps ms | both ms | factor ms |");
    println!("|---|---|---|---|---|---|---|---|");
    for name in &options.problems {
        let a = name.parse::<Problem>()?.generate()?;
        for &threads in &options.threads {
            for figures in measure(options, name, &a, threads)? {
                println!("{}", line(&figures));
                all.push(figures);
            }
        }
    }
    match &options.output {
        Some(file) => crate::record::save(file, &all),
        None => Ok(()),
    }
}

fn line(f: &Figures) -> String {
    let Figures { problem, threads, contestant, shift, .. } = f;
    let head = format!("| {problem} | {threads} | {contestant} | {shift} |");
    if let Some(why) = &f.failure {
        return format!("{head} {why} | | | |");
    }
    let [product, sweeps, both] = [f.product, f.sweeps, f.product + f.sweeps].map(|s| 1e3 * s);
    let factor = f.factor.map_or("none".into(), |s| format!("{:.3}", 1e3 * s));
    format!("{head} {product:.3} | {sweeps:.3} | {both:.3} | {factor} |")
}

/// All contestants on one matrix, taking turns.
fn measure(options: &Options, name: &str, a: &Csr<f64>, threads: usize) -> Result<Vec<Figures>, Failure> {
    let space = Threads::<f64>::new(threads);
    let mut blocks = Blocks::new(&space, a)?;
    let shifted = shifted(a, blocks.shift)?;
    let mut rows = Rows::new(&space, a, &shifted)?;
    let mut slices = Slices::new(&space, a, &shifted);
    let scratch = tempfile::tempdir()?;
    let file = scratch.path().join("blocks");
    let driver = options.peers.as_ref().map(|folder| folder.join("mkl_blocks"));
    if driver.is_some() {
        blocks.write(&space, &file)?;
    }
    let empty = |contestant| Figures {
        problem: name.into(),
        threads,
        contestant,
        shift: blocks.shift,
        product: f64::INFINITY,
        sweeps: f64::INFINITY,
        factor: None,
        failure: None,
    };
    let names = ["blocks", "rows", "slices", "MKL blocks"];
    let mut figures = names.map(empty);
    for _ in 0..options.rounds {
        let [own, by_rows, in_slices, mkl] = &mut figures;
        blocks.turn(&space, a, options.calls, own)?;
        rows.turn(&space, a, &shifted, options.calls, by_rows)?;
        match &mut slices {
            Ok(slices) => slices.turn(&space, &shifted, options.calls, in_slices)?,
            Err(why) => in_slices.failure = Some(why.to_string()),
        }
        match &driver {
            Some(driver) if mkl.failure.is_none() => peer::turn(driver, &file, threads, mkl),
            Some(_) => {}
            None => mkl.failure = Some("absent".into()),
        }
    }
    Ok(figures.into())
}

/// A with its diagonal multiplied by 1 + shift.
fn shifted(a: &Csr<f64>, shift: f64) -> Result<Csr<f64>, Failure> {
    let mut a = a.clone();
    for i in 0..a.nrows() {
        let place = a.pattern().find(i, i).ok_or("a diagonal entry is missing")?;
        a.values_mut()[place] *= 1.0 + shift;
    }
    Ok(a)
}

/// The least seconds of some calls, if less than before.
fn lower<T, E: Into<Failure>>(
    least: &mut f64,
    calls: usize,
    mut call: impl FnMut() -> Result<T, E>,
) -> Result<(), Failure> {
    for _ in 0..calls.max(1) {
        let started = Instant::now();
        let result = call();
        *least = least.min(started.elapsed().as_secs_f64());
        result.map_err(Into::into)?;
    }
    Ok(())
}

/// Product and sweeps of a pair.
fn apply<A: LinearOperator<Threads<f64>>, M: LinearOperator<Threads<f64>>>(
    space: &Threads<f64>,
    a: &A,
    m: &M,
    calls: usize,
    figures: &mut Figures,
) -> Result<(), Failure> {
    let (x, mut y) = (vec![1.0; a.domain()], space.zeros(&a.domain())?);
    let (mut of_a, mut of_m) = (a.scratch(space)?, m.scratch(space)?);
    lower(&mut figures.product, calls, || a.apply(space, &x, &mut y, &mut of_a))?;
    lower(&mut figures.sweeps, calls, || m.apply(space, &x, &mut y, &mut of_m))
}

/// Factorizations are longer: one a turn.
fn refactor(figures: &mut Figures, call: impl FnMut() -> Result<(), SetupError>) -> Result<(), Failure> {
    let mut least = figures.factor.unwrap_or(f64::INFINITY);
    lower(&mut least, 1, call)?;
    figures.factor = Some(least);
    Ok(())
}

struct Blocks {
    a: Bsr<B>,
    m: BlockFactor<B>,
    shift: f64,
}

impl Blocks {
    fn new(space: &Threads<f64>, a: &Csr<f64>) -> Result<Self, Failure> {
        let a = Bsr::new(space, a)?;
        let symbolic = BlockRecipe::new(BlockKind::Ic0).analyze(space, &a)?;
        let mut m = symbolic.allocate();
        for shift in SHIFTS {
            m.set_shift(shift);
            if m.refactor(space, &a).is_ok() {
                return Ok(Blocks { a, m, shift });
            }
        }
        Err("no shift lets IC(0) exist".into())
    }

    fn turn(
        &mut self,
        space: &Threads<f64>,
        matrix: &Csr<f64>,
        calls: usize,
        figures: &mut Figures,
    ) -> Result<(), Failure> {
        apply(space, &self.a, &self.m, calls, figures)?;
        // From the user's values, as a solver does it.
        refactor(figures, || {
            self.a.set(space, matrix)?;
            self.m.refactor(space, &self.a)
        })
    }
}

struct Rows {
    m: IncompleteFactor<f64>,
}

impl Rows {
    fn new(space: &Threads<f64>, a: &Csr<f64>, shifted: &Csr<f64>) -> Result<Self, Failure> {
        Ok(Rows { m: Incomplete::ic(0).analyze(space, a)?.factor(space, shifted)? })
    }

    fn turn(
        &mut self,
        space: &Threads<f64>,
        a: &Csr<f64>,
        shifted: &Csr<f64>,
        calls: usize,
        figures: &mut Figures,
    ) -> Result<(), Failure> {
        apply(space, a, &self.m, calls, figures)?;
        refactor(figures, || self.m.refactor(space, shifted))
    }
}

struct Slices {
    a: Sliced,
    of_factor: Sliced,
    m: SlicedFactor,
}

impl Slices {
    fn new(space: &Threads<f64>, a: &Csr<f64>, shifted: &Csr<f64>) -> Result<Self, Failure> {
        let pattern = Arc::new(SlicedPattern::find(a.pattern())?);
        let mut m =
            SlicedSymbolic::new(&pattern, Form::CHOLESKY, space.threads(), Schedule::Auto)?.allocate();
        let (mut sliced, mut of_factor) = (Sliced::zeros(&pattern), Sliced::zeros(&pattern));
        sliced.set(space, a)?;
        of_factor.set(space, shifted)?;
        m.refactor(space, &of_factor)?;
        Ok(Slices { a: sliced, of_factor, m })
    }

    fn turn(
        &mut self,
        space: &Threads<f64>,
        shifted: &Csr<f64>,
        calls: usize,
        figures: &mut Figures,
    ) -> Result<(), Failure> {
        apply(space, &self.a, &self.m, calls, figures)?;
        refactor(figures, || {
            self.of_factor.set(space, shifted)?;
            self.m.refactor(space, &self.of_factor)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_contestant_has_figures_or_a_reason() {
        let options = Options {
            problems: Vec::new(),
            threads: vec![2],
            rounds: 1,
            calls: 1,
            peers: None,
            output: None,
        };
        let a = "elasticity3d:6".parse::<Problem>().unwrap().generate().unwrap();
        let figures = measure(&options, "elasticity3d:6", &a, 2).unwrap();
        for f in &figures[..2] {
            assert!(f.product < 1.0 && f.sweeps < 1.0 && f.factor.unwrap() < 1.0, "{f:?}");
        }
        assert_eq!(figures[3].failure.as_deref(), Some("absent"));
        assert!(line(&figures[0]).starts_with("| elasticity3d:6 | 2 | blocks |"));
    }
}
