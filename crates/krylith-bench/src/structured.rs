//! Whole solves on structured grids: six problems, each with the method and the preconditioner of the paper's table 4, by Krylith's
//! paths, PETSc and MKL. `compare` does the work: the same rule for everyone, residuals recomputed, contestants taking turns.
//!
//! | | stencil | unknowns per point | method |
//! |---|---|---|---|
//! | Poisson | Star-7P | 1 | CG with IC(0) |
//! | Poisson | Star-7P, factor Diamond-13P | 1 | CG with IC(1) |
//! | convection and diffusion | Star-7P | 1 | GMRES(30) with ILU(0) |
//! | Navier and Stokes | Box-27P | 4 | GMRES(30) with ILU(0) |
//! | Euler | Star-13P | 5 | GMRES(30) with ILU(0) |
//! | Cahn and Hilliard | Diamond-25P | 2 | GMRES(30) with ILU(0) |
//!
//! Krylith's contestants are runs of the command `krylith solve` with the options given. MKL has no IC(1); its ILU(0) of a symmetric
//! matrix is IC(0). Where there is more than one unknown per point PETSc also takes part with blocks, and Krylith with its block ILU(0).
//!
//! The problems and stencils are those of Luo et al. 2025, doi:10.1145/3721145.3725745.

use crate::Failure;
use crate::compare::{self, Fixed};
use clap::{Args, Subcommand};
use krylith::structured::Stencil;
use std::path::PathBuf;

/// Studies of structured grids.
#[derive(Subcommand)]
pub enum Part {
    /// Whole solves: Poisson, convection and diffusion, Navier and Stokes, Euler, Cahn and Hilliard
    Applications(Options),
}

/// Options of `krylith-bench structured applications`.
#[derive(Args)]
pub struct Options {
    /// Problems, by their names below; all six unless given
    #[arg(long, value_delimiter = ',', default_values_t = APPLICATIONS.map(|a| a.name.to_owned()))]
    problems: Vec<String>,
    /// What the values of a matrix take, about
    #[arg(long, default_value_t = 400.0)]
    megabytes: f64,
    /// Options of `krylith solve` that each make a contestant, `;` in between
    #[arg(long, value_delimiter = ';', default_value = ";--structured off", allow_hyphen_values = true)]
    own: Vec<String>,
    /// Numbers of threads or ranks
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2])]
    threads: Vec<usize>,
    /// Rounds; the least time of each contestant counts
    #[arg(long, default_value_t = 5)]
    repetitions: usize,
    /// Only these: krylith, petsc, mkl
    #[arg(long, value_delimiter = ',', default_values_t = ["krylith", "petsc", "mkl"].map(str::to_owned))]
    only: Vec<String>,
    /// Seconds a run of a contestant at most
    #[arg(long, default_value_t = 300)]
    time_limit: u64,
    /// Iterations at most
    #[arg(long, default_value_t = 10_000)]
    max_iterations: usize,
    /// Tolerance
    #[arg(long, default_value_t = 1e-7)]
    rtol: f64,
    /// The drivers' folder; the one that `just bench-setup` fills, unless given
    #[arg(long)]
    peers: Option<PathBuf>,
    /// Keep the matrix files here; a temporary folder unless given
    #[arg(long)]
    work: Option<PathBuf>,
    /// Name of the run: its results go to benchmarks/runs/DATE-NAME
    #[arg(long, default_value = "structured-applications")]
    name: String,
    /// Results go to this folder instead
    #[arg(long)]
    output: Option<PathBuf>,
}

struct Application {
    /// What `--problems` takes.
    name: &'static str,
    /// The gallery's name.
    problem: &'static str,
    stencil: Shape,
    /// Unknowns per point.
    dof: usize,
    /// Krylith's method and preconditioner; PETSc's and MKL's configurations.
    krylith: [&'static str; 2],
    petsc: &'static str,
    mkl: Option<&'static str>,
}

/// The couplings of a point.
#[derive(Clone, Copy)]
enum Shape {
    Star7,
    Star13,
    Diamond25,
    Box27,
}

impl Shape {
    fn stencil(self) -> Result<Stencil, Failure> {
        Ok(match self {
            Shape::Star7 => Stencil::star(3, 1)?,
            Shape::Star13 => Stencil::star(3, 2)?,
            Shape::Diamond25 => Stencil::diamond(3, 2)?,
            Shape::Box27 => Stencil::cube(3, 1)?,
        })
    }
}

const fn flow(name: &'static str, problem: &'static str, stencil: Shape, dof: usize) -> Application {
    let (krylith, mkl) = (["gmres", "ilu0"], Some("fgmres+ilu0"));
    Application { name, problem, stencil, dof, krylith, petsc: "gmres+ilu0", mkl }
}

const APPLICATIONS: [Application; 6] = [
    Application {
        name: "poisson-ic0",
        problem: "poisson3d",
        stencil: Shape::Star7,
        dof: 1,
        krylith: ["cg", "ic0"],
        petsc: "cg+icc0",
        mkl: Some("cg+ilu0"),
    },
    Application {
        name: "poisson-ic1",
        problem: "poisson3d",
        stencil: Shape::Star7,
        dof: 1,
        krylith: ["cg", "ic(1)"],
        petsc: "cg+icc1",
        mkl: None,
    },
    flow("convection", "convection3d", Shape::Star7, 1),
    flow("navierstokes", "navierstokes3d", Shape::Box27, 4),
    flow("euler", "euler3d", Shape::Star13, 5),
    flow("cahnhilliard", "cahnhilliard3d", Shape::Diamond25, 2),
];

/// Runs the solves and writes their folder.
pub fn run(Part::Applications(options): &Part) -> Result<(), Failure> {
    let fixed = options.problems.iter().map(|name| fixed(name, options)).collect::<Result<_, _>>()?;
    compare::run(&compare::Options {
        threads: options.threads.clone(),
        repetitions: options.repetitions,
        only: options.only.clone(),
        solves_only: true,
        time_limit: options.time_limit,
        max_iterations: options.max_iterations,
        rtol: options.rtol,
        peers: options.peers.clone(),
        work: options.work.clone(),
        name: options.name.clone(),
        output: options.output.clone(),
        fixed,
        ..compare::Options::default()
    })
}

/// Points along an axis: the multiple of eight for which the values of the matrix take about this many bytes.
fn points(application: &Application, bytes: f64) -> Result<usize, Failure> {
    let stencil = application.stencil.stencil()?;
    let entries = |n: usize| -> usize {
        let along = |reach: i32| n - reach.unsigned_abs() as usize;
        let couplings = stencil.offsets().iter().map(|offset| offset.map(along).iter().product::<usize>());
        couplings.sum::<usize>() * application.dof.pow(2)
    };
    let distance = |n: &usize| (8.0 * entries(*n) as f64 - bytes).abs();
    let nearest = (8..=1024).step_by(8).min_by(|a, b| distance(a).total_cmp(&distance(b)));
    Ok(nearest.unwrap_or(8))
}

/// A problem with its size and everyone who solves it.
fn fixed(name: &str, options: &Options) -> Result<Fixed, Failure> {
    let known = || APPLICATIONS.map(|a| a.name).join(", ");
    let found = APPLICATIONS.iter().find(|a| a.name == name);
    let a = found.ok_or_else(|| format!("there is no problem `{name}`; problems: {}", known()))?;
    let [method, preconditioner] = a.krylith;
    let solve = |precond: &str, more: &str| {
        let words = format!("--solver {method} --precond {precond} {more}");
        ("krylith", words.trim_end().to_owned())
    };
    let mut contestants: Vec<_> = options.own.iter().map(|more| solve(preconditioner, more.trim())).collect();
    if a.dof > 1 {
        contestants.push(solve(&format!("b{preconditioner}({})", a.dof), ""));
    }
    contestants.push(("petsc", a.petsc.to_owned()));
    if a.dof > 1 {
        contestants.push(("petsc", format!("{}+baij:{}", a.petsc, a.dof)));
    }
    contestants.extend(a.mkl.map(|config| ("mkl", config.to_owned())));
    let n = points(a, 1e6 * options.megabytes)?;
    Ok(Fixed { spec: format!("{}:{n}", a.problem), contestants })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Typed {
        #[command(flatten)]
        options: Options,
    }

    #[test]
    fn every_problem_has_its_contestants() {
        let options = Typed::parse_from(["applications"]).options;
        let described = |name: &str| {
            let fixed = fixed(name, &options).unwrap();
            let list = fixed.contestants.iter().map(|(peer, config)| format!("{peer} {config}"));
            (fixed.spec.clone(), list.collect::<Vec<_>>())
        };
        let (spec, list) = described("poisson-ic1");
        assert_eq!(spec, "poisson3d:192");
        let own = "krylith --solver cg --precond ic(1)";
        assert_eq!(list, [own.into(), format!("{own} --structured off"), "petsc cg+icc1".into()]);
        let (spec, list) = described("euler");
        assert_eq!(spec, "euler3d:56");
        assert_eq!(
            list[2..],
            [
                "krylith --solver gmres --precond bilu0(5)",
                "petsc gmres+ilu0",
                "petsc gmres+ilu0+baij:5",
                "mkl fgmres+ilu0"
            ]
        );
        assert!(super::fixed("stokes", &options).is_err());
    }

    #[test]
    fn own_options_are_apart_by_semicolons() {
        let options = Typed::parse_from(["applications", "--own", "--layout rows;--precision mixed"]).options;
        assert_eq!(options.own, ["--layout rows", "--precision mixed"]);
    }
}
