//! Matrices of structured grids: a product, both triangles of ILU(0) and its factorization, by Krylith's paths, MKL and PETSc.
//!
//! Five stencils, one to eight unknowns per point, grids whose values take about the same memory. Every contestant runs in a process
//! of its own; contestants take turns within a round, together with the triad and the rate of arithmetic, which bound what can be
//! had. In the first round all answers are compared, and the study fails where two differ by more than 1e-10.
//!
//! `applications` are whole solves on such grids.
//!
//! Reference: Luo et al. 2025, doi:10.1145/3721145.3725745, whose figures 7, 8 and 10 these are on a processor.

mod applications;
mod case;
mod contestants;
mod own;
mod peak;
mod plot;
mod record;
mod report;
mod stencil;

pub use own::{OnceOptions, once};
pub use peak::{PeakOptions, once as peak_once};

use crate::Failure;
use crate::compare::record::{Entry, Line, Mode};
use crate::compare::{default_peers, limited, machine, outcome, raw};
use crate::record::{load, path};
use case::{Case, MOST_DOF, Operation};
use clap::{Args, Subcommand};
use contestants::{Call, Contestant};
use record::{Check, Record};
use std::path::{Path, PathBuf};
use stencil::Stencil;

/// Options of `krylith-bench structured`.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Options {
    #[command(subcommand)]
    part: Option<Part>,
    #[command(flatten)]
    kernels: Kernels,
}

#[derive(Subcommand)]
enum Part {
    /// Whole solves: Poisson, convection and diffusion, Navier and Stokes, Euler, Cahn and Hilliard
    Applications(applications::Options),
}

#[derive(Args)]
struct Kernels {
    /// Stencils; all five unless given
    #[arg(long, value_delimiter = ',', default_values_t = Stencil::ALL.map(|s| s.name().to_owned()))]
    stencils: Vec<String>,
    /// Unknowns per point
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2, 4, 6, 8])]
    dofs: Vec<usize>,
    /// What the values of a matrix take, about
    #[arg(long, default_value_t = 400.0)]
    megabytes: f64,
    /// Numbers of threads or ranks
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2])]
    threads: Vec<usize>,
    /// Rounds; the least time of each contestant counts
    #[arg(long, default_value_t = 5)]
    repetitions: usize,
    /// Only these contestants, such as `rows,mkl,petsc-baij`
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Own paths whose rates are drawn beside each other, in this order; all unless given
    #[arg(long, value_delimiter = ',')]
    breakdown: Vec<String>,
    /// Seconds a run of a contestant at most
    #[arg(long, default_value_t = 300)]
    time_limit: u64,
    /// The drivers' folder; the one that `just bench-setup` fills, unless given
    #[arg(long)]
    peers: Option<PathBuf>,
    /// Keep the matrix file of the case at work here; a temporary folder unless given
    #[arg(long)]
    work: Option<PathBuf>,
    /// Name of the run: its results go to benchmarks/runs/DATE-NAME
    #[arg(long, default_value = "structured")]
    name: String,
    /// Results go to this folder instead
    #[arg(long)]
    output: Option<PathBuf>,
    /// Write tables and plots of a finished run again, from its structured.json.zst in this folder
    #[arg(long)]
    render: Option<PathBuf>,
}

/// Largest relative difference of two answers.
const TOLERANCE: f64 = 1e-10;

/// Runs the study of kernels, or that of applications.
pub fn run(options: &Options) -> Result<(), Failure> {
    match &options.part {
        Some(Part::Applications(options)) => applications::run(options),
        None => kernels(&options.kernels),
    }
}

fn kernels(options: &Kernels) -> Result<(), Failure> {
    if let Some(folder) = &options.render {
        let mut record: Record = load(&path(folder, "structured"))?;
        if !options.breakdown.is_empty() {
            record.breakdown = options.breakdown.clone();
        }
        return write(folder, &record);
    }
    let cases = cases(options)?;
    let peers = match &options.peers {
        Some(folder) => folder.clone(),
        None => default_peers()?,
    };
    let (list, absent) = contestants::present(&peers, &options.only)?;
    for gone in &absent {
        eprintln!("absent: {} ({})", gone.peer, gone.install);
    }
    let date = machine::date();
    let output = match &options.output {
        Some(folder) => folder.clone(),
        None => Path::new("benchmarks/runs").join(format!("{date}-{}", options.name)),
    };
    std::fs::create_dir_all(&output)?;
    let temporary = tempfile::tempdir()?;
    let work = options.work.as_deref().unwrap_or(temporary.path());
    std::fs::create_dir_all(work)?;
    let record = Record {
        date,
        command: machine::command(),
        machine: machine::describe(),
        repetitions: options.repetitions.max(1),
        breakdown: breakdown(options, &list)?,
        cases,
        absent,
        checks: Vec::new(),
        entries: Vec::new(),
    };
    let mut study = Study { options, peers: &peers, work, list, record };
    study.run(&output)?;
    write(&output, &study.record)?;
    println!("{}", report::markdown(&study.record));
    println!("written to {}", output.display());
    Ok(())
}

/// Stencils down, unknowns across.
fn cases(options: &Kernels) -> Result<Vec<Case>, Failure> {
    if let Some(dof) = options.dofs.iter().find(|dof| !(1..=MOST_DOF).contains(dof)) {
        return Err(format!("{dof} unknowns per point; 1 to {MOST_DOF} can be had").into());
    }
    let mut cases = Vec::new();
    for name in &options.stencils {
        let stencil: Stencil = name.parse()?;
        cases.extend(options.dofs.iter().map(|&dof| Case::sized(stencil, dof, 1e6 * options.megabytes)));
    }
    match cases.iter().find(|case| case.nnz() >= i32::MAX as u64) {
        Some(case) => {
            Err(format!("{case}: drivers take fewer than 2³¹ entries; ask for fewer --megabytes").into())
        }
        None => Ok(cases),
    }
}

/// The own paths that are drawn beside each other.
fn breakdown(options: &Kernels, list: &[Contestant]) -> Result<Vec<String>, Failure> {
    let own = |name: &str| list.iter().any(|c| c.peer == "krylith" && c.config == name);
    if let Some(name) = options.breakdown.iter().find(|name| !own(name)) {
        return Err(format!("`{name}` is none of Krylith's paths in this run").into());
    }
    let all = list.iter().filter(|c| c.peer == "krylith").map(|c| c.config.to_owned());
    Ok(if options.breakdown.is_empty() { all.collect() } else { options.breakdown.clone() })
}

fn write(output: &Path, record: &Record) -> Result<(), Failure> {
    save(output, record)?;
    let pictures = plot::draw(output, record)?;
    let mut text = report::markdown(record);
    for (file, what) in pictures {
        text.push_str(&format!("\n![{what}]({file})\n"));
    }
    Ok(std::fs::write(output.join("README.md"), text)?)
}

fn save(output: &Path, record: &Record) -> Result<(), Failure> {
    crate::record::save(&path(output, "structured"), record)
}

struct Study<'a> {
    options: &'a Kernels,
    peers: &'a Path,
    work: &'a Path,
    list: Vec<Contestant>,
    record: Record,
}

/// One place in a round.
enum Turn {
    Triad,
    Peak,
    Contestant(Contestant),
}

impl Study<'_> {
    fn run(&mut self, output: &Path) -> Result<(), Failure> {
        for case in self.record.cases.clone() {
            let file = self.work.join("structured.csr");
            eprintln!("{case}: {}³ points, {} rows, {} entries", case.n, case.rows(), case.nnz());
            if self.list.iter().any(|c| c.peer != "krylith") {
                raw::write(&file, &case.matrix()?)?;
            }
            let mut expected = None;
            for &threads in &self.options.threads {
                self.rounds(&case, &file, threads, &mut expected)?;
                // What was measured stays, should the run be interrupted.
                save(output, &self.record)?;
            }
            if file.is_file() {
                std::fs::remove_file(&file)?;
            }
        }
        Ok(())
    }

    fn rounds(
        &mut self,
        case: &Case,
        file: &Path,
        threads: usize,
        expected: &mut Option<Vec<f64>>,
    ) -> Result<(), Failure> {
        let takers = self.list.iter().filter(|c| c.takes(case)).cloned().map(Turn::Contestant);
        let turns: Vec<Turn> = [Turn::Triad, Turn::Peak].into_iter().chain(takers).collect();
        let mut entries: Vec<Entry> = turns.iter().map(|turn| turn.entry(case, threads)).collect();
        for round in 1..=self.record.repetitions {
            for (turn, entry) in turns.iter().zip(&mut entries) {
                // Who failed once is not asked again.
                if entry.failure.is_some() {
                    continue;
                }
                let answer = (round == 1).then(|| self.work.join("structured.answer"));
                match self.take(turn, case, file, threads, answer.as_deref())? {
                    Ok(line) => entry.runs.push(line),
                    Err(reason) => entry.failure = Some(reason),
                }
                if let (Some(path), Turn::Contestant(c), None) = (&answer, turn, &entry.failure) {
                    let check = check(c, case, threads, path, expected)?;
                    self.record.checks.push(check);
                }
                eprintln!("{case} {threads} threads, round {round}: {}", described(entry));
            }
        }
        self.record.entries.extend(entries);
        Ok(())
    }

    /// Runs a driver once; the inner error is the contestant's failure.
    fn take(
        &self,
        turn: &Turn,
        case: &Case,
        file: &Path,
        threads: usize,
        answer: Option<&Path>,
    ) -> Result<Result<Line, String>, Failure> {
        let limit = self.options.time_limit;
        let own = |words: [&str; 2]| -> std::io::Result<_> {
            let mut command = limited(limit);
            command.arg(std::env::current_exe()?).args(words.iter().filter(|w| !w.is_empty()));
            command.args(["--threads", &threads.to_string()]);
            Ok(command)
        };
        let mut command = match turn {
            Turn::Triad => own(["compare-triad", &case.bytes(Operation::Product).to_string()])?,
            Turn::Peak => own(["structured-peak", ""])?,
            Turn::Contestant(c) => {
                c.command(&Call { peers: self.peers, case, file, threads, answer, limit })?
            }
        };
        if let Some(path) = answer.filter(|path| path.exists()) {
            std::fs::remove_file(path)?;
        }
        Ok(outcome(&mut command, limit)?.map_err(|reason| self.without_paths(&reason)))
    }

    /// A reason without the folders of this machine.
    fn without_paths(&self, reason: &str) -> String {
        let text = |p: &Path| format!("{}/", p.display());
        reason.replace(&text(self.work), "").replace(&text(self.peers), "")
    }
}

impl Turn {
    fn entry(&self, case: &Case, threads: usize) -> Entry {
        let (mode, peer, config) = match self {
            Turn::Triad => {
                (Mode::Triad, "triad", format!("{:.0} MB", 1e-6 * case.bytes(Operation::Product) as f64))
            }
            Turn::Peak => (Mode::Peak, "peak", "registers".into()),
            Turn::Contestant(c) => (Mode::Kernels, c.peer, c.label(threads)),
        };
        Entry {
            mode,
            problem: case.to_string(),
            threads,
            peer: peer.into(),
            config,
            runs: Vec::new(),
            failure: None,
        }
    }
}

/// Compares what a contestant wrote with the first answer, or makes it the first.
fn check(
    contestant: &Contestant,
    case: &Case,
    threads: usize,
    path: &Path,
    expected: &mut Option<Vec<f64>>,
) -> Result<Check, Failure> {
    let rows = usize::try_from(case.rows())?;
    let own = read_answer(path, 2 * rows)?;
    let other = contestant.is_other_preconditioner(threads);
    let mut check = Check {
        problem: case.to_string(),
        threads,
        contestant: format!("{} {}", contestant.peer, contestant.label(threads)),
        product: 0.0,
        apply: (!other).then_some(0.0),
    };
    match expected {
        Some(expected) => {
            check.product = difference(&own[..rows], &expected[..rows]);
            check.apply = check.apply.map(|_| difference(&own[rows..], &expected[rows..]));
        }
        None if other => {}
        None => *expected = Some(own),
    }
    // A difference that is not a number is one.
    let far = [Some(check.product), check.apply].into_iter().flatten().any(|d| d.is_nan() || d > TOLERANCE);
    match far {
        true => Err(format!(
            "{case}, {threads} threads: {} has other numbers: product {:.1e}, triangles {:.1e}",
            check.contestant,
            check.product,
            check.apply.unwrap_or(0.0)
        )
        .into()),
        false => Ok(check),
    }
}

fn read_answer(path: &Path, count: usize) -> Result<Vec<f64>, Failure> {
    let bytes = std::fs::read(path).map_err(|e| format!("no answer was written: {e}"))?;
    if bytes.len() != 8 * count {
        return Err(format!("an answer of {} bytes instead of {}", bytes.len(), 8 * count).into());
    }
    Ok(bytes.as_chunks::<8>().0.iter().map(|&b| f64::from_le_bytes(b)).collect())
}

/// The largest difference by the largest entry expected; not a number where one of them is not.
fn difference(own: &[f64], expected: &[f64]) -> f64 {
    let largest = expected.iter().fold(0.0f64, |m, v| m.max(v.abs()));
    let pairs = own.iter().zip(expected).map(|(a, b)| (a - b).abs());
    pairs.fold(0.0, |m: f64, d| if d.is_nan() || d > m { d } else { m }) / largest
}

/// A line of progress.
fn described(entry: &Entry) -> String {
    let title = entry.title();
    let figures = |line: &Line| {
        let described = |(name, s): (&String, &Option<f64>)| Some(format!("{name} {:.3e}", (*s)?));
        line.kernels.iter().filter_map(described).collect::<Vec<_>>().join(", ")
    };
    match (&entry.failure, entry.runs.last()) {
        (Some(reason), _) => format!("{title}: {reason}"),
        (None, Some(line)) => format!("{title}: {}", figures(line)),
        (None, None) => title,
    }
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

    fn typed(words: &str) -> Options {
        Typed::parse_from(std::iter::once("structured").chain(words.split_whitespace())).options
    }

    #[test]
    fn cases_follow_the_options() {
        let cases = |words: &str| cases(&typed(words).kernels);
        assert_eq!(cases("").unwrap().len(), 25);
        let some = cases("--stencils star-7p,box-27p --dofs 1,4 --megabytes 400").unwrap();
        let described: Vec<String> = some.iter().map(|c| format!("{c}:{}", c.n)).collect();
        assert_eq!(described, ["Star-7P-1:192", "Star-7P-4:80", "Box-27P-1:120", "Box-27P-4:48"]);
        assert!(cases("--dofs 9").is_err() && cases("--stencils star").is_err());
        assert!(cases("--megabytes 100000").unwrap_err().to_string().contains("2³¹"));
        assert!(matches!(typed("applications").part, Some(Part::Applications(_))));
    }

    #[test]
    fn differences_are_relative_and_never_lost() {
        assert_eq!(difference(&[1.0, 2.0], &[1.0, 4.0]), 0.5);
        assert_eq!(difference(&[3.0], &[3.0]), 0.0);
        assert!(difference(&[f64::NAN, 5.0], &[1.0, 1.0]).is_nan());
    }

    #[test]
    fn answers_are_compared_with_the_first() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("answer");
        let case: Case = "star-7p:1:1".parse().unwrap();
        let write =
            |y: f64, z: f64| std::fs::write(&path, [y.to_le_bytes(), z.to_le_bytes()].concat()).unwrap();
        let own = Contestant { peer: "krylith", config: "rows" };
        let petsc = Contestant { peer: "petsc", config: "aij" };
        let mut expected = None;
        write(2.0, 4.0);
        let first = check(&own, &case, 1, &path, &mut expected).unwrap();
        assert_eq!(
            (first.product, first.apply, expected.as_deref()),
            (0.0, Some(0.0), Some(&[2.0, 4.0][..]))
        );
        write(2.0, 5.0);
        let wrong = check(&petsc, &case, 1, &path, &mut expected).unwrap_err().to_string();
        assert!(wrong.contains("petsc aij has other numbers: product 0.0e0, triangles 2.5e-1"), "{wrong}");
        assert_eq!(check(&petsc, &case, 2, &path, &mut expected).unwrap().apply, None, "block Jacobi");
        write(f64::NAN, 4.0);
        assert!(check(&petsc, &case, 2, &path, &mut expected).is_err());
        std::fs::write(&path, [0; 15]).unwrap();
        assert!(check(&own, &case, 1, &path, &mut expected).unwrap_err().to_string().contains("15 bytes"));
    }
}
