//! What `auto` chooses beside the members that an expert would try, on problems of the gallery.
//!
//! Default tolerance, a random right-hand side, set-up and solve; in rounds, contestants taking turns, the least seconds of each count. A member
//! that takes longer than twice the fastest so far is cut off. Problems and sizes are none that constants were read off.

use crate::Failure;
use crate::run::table::table;
use clap::Args;
use krylith::gallery::{Problem, random_vector};
use krylith::observe::Iteration;
use krylith::plan::{Machines, REFERENCE};
use krylith::precond::direct::Direct;
use krylith::precond::registry::Construction;
use krylith::{Csr, Method, Outcome, Precision, PrecondSpec, Solver, Watch};
use krylith_gpu::{Device, DeviceOptions, OnDevice, Selector};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Instant;

#[derive(Args)]
pub struct Options {
    /// Problems, as `krylith gen` names them; twenty by default
    problems: Vec<String>,
    /// Threads
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Rounds; the least seconds count
    #[arg(long, default_value_t = 2)]
    rounds: usize,
    /// On this device, such as opencl:0, in `f64`
    #[arg(long)]
    device: Option<Selector>,
    /// The machine that costs are predicted for: a file that `calibrate` writes
    #[arg(long)]
    machine: Option<PathBuf>,
}

const PROBLEMS: [&str; 20] = [
    "poisson2d:450",
    "poisson3d:55",
    "hpcg:45",
    "jump3d:52",
    "fem2d:300",
    "ecology:520",
    "parabolic:380",
    "apache:48",
    "thermal:420",
    "circuit:260",
    "elasticity2d:180",
    "elasticity3d:22",
    "convection3d:58",
    "atmosmod:50",
    "navierstokes3d:20",
    "euler3d:20",
    "cahnhilliard3d:28",
    "poisson2d:130",
    "jump3d:90",
    "convection3d:90",
];

/// A complete factor that is predicted to take longer is no contestant.
const MOST_SECONDS: f64 = 3.0;

/// With conjugate gradients.
const SYMMETRIC: &[&str] = &[
    "jacobi",
    "ssor",
    "dic",
    "fsai",
    "afsai",
    "ic0",
    "mic(0,0.95)",
    "mic(0,0.99)",
    "mic(0,0.999)",
    "ic(1)",
    "mic(1,0.99)",
    "ic(2)",
    "bic0",
    "cholesky",
];

/// With BiCGStab.
const OTHERS: &[&str] =
    &["jacobi", "fsai", "afsai", "dilu", "ilu0", "ilu(1)", "ilu(2)", "milu0", "bilu0", "lu"];

/// A way to solve, and its least seconds.
struct Contestant {
    name: String,
    solver: Solver,
    seconds: f64,
    is_out: bool,
}

/// Prints a table, and how many are within 1.3 times the best member.
pub fn run(options: &Options) -> Result<(), Failure> {
    rayon::ThreadPoolBuilder::new().num_threads(options.threads).build_global()?;
    let problems = match options.problems.is_empty() {
        true => PROBLEMS.map(String::from).to_vec(),
        false => options.problems.clone(),
    };
    print!("{}", table(&["problem", "auto", "s", "best member", "s", "ratio"], []));
    let mut ratios = Vec::new();
    let device = options.device.as_ref();
    let device = device.map(|selector| Device::open(selector, DeviceOptions::default())).transpose()?;
    for problem in &problems {
        let a = problem.parse::<Problem>()?.generate()?;
        let b: Vec<f64> = random_vector(a.nrows());
        let mut all = contestants(options, device.as_ref(), &a)?;
        for _ in 0..options.rounds {
            let mut limit = f64::INFINITY;
            for contestant in all.iter_mut().filter(|contestant| !contestant.is_out) {
                match seconds_of((device.as_ref(), &contestant.solver), &a, &b, limit)? {
                    Some(seconds) => contestant.seconds = contestant.seconds.min(seconds),
                    None => contestant.is_out = true,
                }
                limit = limit.min(2.0 * contestant.seconds);
            }
        }
        let (auto, members) = all.split_first().ok_or("no contestant")?;
        let best = members.iter().min_by(|a, b| a.seconds.total_cmp(&b.seconds)).ok_or("no member")?;
        let ratio = auto.seconds / best.seconds;
        println!(
            "| {problem} | {} | {:.3} | {} | {:.3} | {ratio:.2} |",
            auto.name, auto.seconds, best.name, best.seconds
        );
        ratios.push(ratio);
    }
    ratios.sort_by(f64::total_cmp);
    println!(
        "\n{} of {} within 1.3 times the best member, worst {:.2}.",
        ratios.iter().filter(|ratio| **ratio <= 1.3).count(),
        ratios.len(),
        ratios.last().copied().unwrap_or(f64::NAN)
    );
    Ok(())
}

/// `auto` first, then members by name and those that its plan has weighed.
fn contestants(options: &Options, device: Option<&Device>, a: &Csr<f64>) -> Result<Vec<Contestant>, Failure> {
    let mut auto = Solver::new().threads(options.threads);
    if let Some(path) = &options.machine {
        let profile: Machines = serde_json::from_str(&std::fs::read_to_string(path)?)?;
        let place = device.map(|device| device.info().name.as_str());
        auto = auto.machine(profile.machine_for(place).ok_or("the file has no figures of this place")?);
    }
    let plan = match device {
        None => auto.plan(a)?,
        Some(device) => auto.clone().on(device).plan(a)?,
    };
    let symmetric = a.symmetry().symmetric;
    let (method, names) = if symmetric { (Method::Cg, SYMMETRIC) } else { (Method::BiCgStab, OTHERS) };
    let mut ways: Vec<(PrecondSpec, Precision)> = Vec::new();
    for name in names {
        let kind: PrecondSpec = name.parse()?;
        if let Construction::Direct(which) = kind.construct() {
            let symbolic = Direct { kind: which, max_bytes: None }.symbolic(a)?;
            if 1e-9 * REFERENCE.direct(a, which, symbolic.cost()) > MOST_SECONDS {
                continue;
            }
        }
        ways.push((kind.clone(), Precision::F64));
        if device.is_none() && !kind.is_complete() && !name.starts_with('b') {
            ways.push((kind, Precision::Mixed));
        }
    }
    ways.extend(plan.proposals.iter().map(|proposal| (proposal.preconditioner.clone(), proposal.precision)));
    let name = format!("{} with {}{}", plan.method, plan.preconditioner, in_f32(plan.precision));
    let mut all = vec![Contestant { name, solver: auto.clone(), seconds: f64::INFINITY, is_out: false }];
    for (kind, precision) in ways {
        let name = format!("{method} with {kind}{}", in_f32(precision));
        if all[1..].iter().any(|other| other.name == name) {
            continue;
        }
        let solver = auto.clone().method(method).preconditioner(kind).precision(precision);
        all.push(Contestant { name, solver, seconds: f64::INFINITY, is_out: false });
    }
    Ok(all)
}

fn in_f32(precision: Precision) -> &'static str {
    if precision == Precision::Mixed { " in f32" } else { "" }
}

/// Seconds of set-up and solve; nothing if it does not converge within the limit.
fn seconds_of(
    (device, solver): (Option<&Device>, &Solver),
    a: &Csr<f64>,
    b: &[f64],
    limit: f64,
) -> Result<Option<f64>, Failure> {
    let started = Instant::now();
    let mut x = vec![0.0; b.len()];
    let mut watch = |_: &Iteration<f64>| match started.elapsed().as_secs_f64() > limit {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    };
    let watch = Watch { observer: Some(&mut watch), stop: None };
    let report = match device {
        None => {
            let Ok(prepared) = solver.prepare(a) else { return Ok(None) };
            prepared.solve_watched(a, b, &mut x, watch)?
        }
        Some(device) => {
            let Ok(prepared) = solver.clone().on(device).prepare(a) else { return Ok(None) };
            prepared.solve_watched(a, b, &mut x, watch)?
        }
    };
    Ok((report.outcome == Outcome::Converged).then(|| started.elapsed().as_secs_f64()))
}
