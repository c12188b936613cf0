//! What can be typed.

use clap::builder::PossibleValuesParser;
use clap::{Args, Parser, Subcommand, ValueEnum};
use krylith::io::ReadOptions;
use krylith::precond::registry::{Parameter, preconditioners};
use krylith::solver::{SolverOption, options};
use krylith::sparsify::Sparsify;
use krylith::transform::Ordering;
use krylith::{Method, PrecondSpec};
use krylith_gpu::Selector;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Headings of options that few solves need.
const DETAILS: &str = "Details";
const LIMITS: &str = "Limits";

const EXAMPLES: &str = "\
Examples:
  krylith solve gen:poisson3d:50             solve A x = A 1 and check the answer (--rhs random: another b)
  krylith solve A.mtx -b b.mtx -x x.mtx      the same for a matrix and a right-hand side of yours
  zcat A.mtx.gz | krylith solve - -x x.txt   a matrix from standard input, an answer of one number per line
  krylith info gen:poisson3d:50              what a generated matrix looks like, no file needed
  krylith gen jump3d --n 100 -o jump.mtx.zst write one to a file
  krylith info jump.mtx.zst --json -         the same facts for a program
  krylith spy jump.mtx.zst -o jump.png       a picture of its entries
  krylith convert jump.mtx.zst jump.npz      for SciPy
  krylith train A.mtx -o factor.mtx          train a preconditioner for many solves with A

Exit status: 0 done (solve: converged), 2 wrong usage or input, an output that cannot be written, or a solve
that failed with an error, 3 not converged (the answer is still written),
130 interrupted (the best answer, or trained factor, so far is written).";

/// Solve sparse linear systems; generate, inspect, draw and convert sparse matrices.
#[derive(Parser)]
#[command(name = "krylith", version, after_help = EXAMPLES)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,

    /// Threads to use, at most 8 or four per core, whichever is more; all cores if not given
    #[arg(long, global = true, value_name = "N", display_order = 100)]
    pub threads: Option<NonZeroUsize>,
}

#[derive(Subcommand)]
pub enum Command {
    /// Solve A x = b, and check the answer
    Solve(Box<Solve>),
    /// Report the facts about a matrix: size, symmetry, diagonal, bandwidth, wavefronts, memory
    Info(Info),
    /// Generate a problem of the gallery; without a name, list them
    Gen(Generate),
    /// Read a matrix and write it in another format
    Convert(Convert),
    /// Draw where the entries of a matrix are, as SVG or PNG
    Spy(Spy),
    /// Train a preconditioner for many solves with one matrix, symmetric and positive definite, and save it
    Train(Train),
    /// List the GPUs and other devices of this machine, and what is missing
    Devices(Devices),
}

/// Options appear in the help in this order; those with a heading come behind the others.
#[derive(Args)]
pub struct Solve {
    /// Right-hand side (.mtx, .npy, .txt, .petsc), or - for standard input; if not given, that of --rhs
    #[arg(short, value_name = "FILE")]
    pub b: Option<PathBuf>,

    /// Where to write the answer (.mtx, .npy, .txt, .petsc); - writes one number per line to standard output, and the report
    /// to standard error
    #[arg(short, value_name = "FILE")]
    pub x: Option<PathBuf>,

    /// Right-hand side where -b gives none
    #[arg(long, default_value = "ones", conflicts_with = "b")]
    pub rhs: Rhs,

    #[arg(long, default_value = option("solver").default, help = option("solver").help)]
    pub solver: Method,

    #[arg(long, default_value = option("precond").default, help = short_list(), long_help = long_list())]
    pub precond: PrecondSpec,

    #[arg(long, default_value = option("rtol").default, help = option("rtol").help, value_parser = tolerance, allow_negative_numbers = true)]
    pub rtol: f64,

    /// Say what would be done and why, without solving; with --json as a plan for --plan
    #[arg(long, conflicts_with_all = ["x", "plot"])]
    pub explain: bool,

    /// Follow a plan that --explain --json has written: method, preconditioner, order, layout, precision, fallbacks
    #[arg(long, value_name = "FILE", conflicts_with_all =
        ["solver", "precond", "reorder", "sparsify", "matching", "recovery", "precision", "restart", "layout", "structured"])]
    pub plan: Option<PathBuf>,

    /// Write the report as JSON to a file, or with - to standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Draw the residuals by iteration (.svg or .png)
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,

    /// Report also the ordering, the layout, how sweeps are divided among threads, and the size of the preconditioner
    #[arg(long, short)]
    pub verbose: bool,

    #[arg(long, default_value = option("atol").default, help = option("atol").help, value_parser = tolerance, allow_negative_numbers = true, help_heading = DETAILS)]
    pub atol: f64,

    #[arg(long, value_name = "N", default_value = option("max-iterations").default, help = option("max-iterations").help, help_heading = DETAILS)]
    pub max_iterations: usize,

    /// Steps of GMRES and FGMRES before a restart
    #[arg(long, value_name = "M", default_value = "30", help_heading = DETAILS)]
    pub restart: NonZeroUsize,

    #[arg(long, value_name = "R", default_value = option("reorder").default, help = option("reorder").help, help_heading = DETAILS)]
    pub reorder: Ordering,

    #[arg(long, value_name = "S", help = option("sparsify").help, help_heading = DETAILS)]
    pub sparsify: Option<Sparsify>,

    #[arg(long, default_value = option("matching").default, help = option("matching").help, value_parser = choices("matching"), help_heading = DETAILS)]
    pub matching: String,

    #[arg(long, default_value = option("recovery").default, help = option("recovery").help, value_parser = choices("recovery"), help_heading = DETAILS)]
    pub recovery: String,

    /// Make the preconditioner from this matrix instead of A, such as one that `krylith train` has written: a file, - or gen:PROBLEM:N; the
    /// method is still chosen for A
    #[arg(long, value_name = "MATRIX", help_heading = DETAILS)]
    pub precond_matrix: Option<String>,

    #[arg(long, value_name = "S", default_value = option("shift").default, help = option("shift").help, help_heading = DETAILS)]
    pub shift: f64,

    #[arg(long, default_value = option("precision").default, help = option("precision").help, value_parser = choices("precision"), help_heading = DETAILS)]
    pub precision: String,

    #[arg(long, value_name = "SPACE", default_value = option("null-space").default, help = option("null-space").help, help_heading = DETAILS)]
    pub null_space: Vec<String>,

    #[arg(long, value_name = "NAME|FILE", help = option("machine").help, help_heading = DETAILS)]
    pub machine: Option<PathBuf>,
    #[arg(long, value_name = "N", default_value = option("expect-solves").default, help = option("expect-solves").help, help_heading = DETAILS)]
    pub expect_solves: NonZeroUsize,
    #[arg(long, value_name = "N", default_value = option("expect-refactors").default, help = option("expect-refactors").help, help_heading = DETAILS)]
    pub expect_refactors: usize,

    /// Where to solve: cpu, opencl, opencl:N, cuda, cuda:N, as `krylith devices` lists them; auto takes a GPU if there is one
    #[arg(long, value_name = "D", default_value = "cpu", help_heading = DETAILS)]
    pub device: Place,

    /// On a device: the bits of --device cpu --layout rows --precision f64, in the order of operations that threads have
    #[arg(long, help_heading = DETAILS)]
    pub reproducible: bool,

    #[arg(long, help = option("profile").help, help_heading = DETAILS)]
    pub profile: bool,

    #[arg(long, default_value = option("layout").default, help = option("layout").help, value_parser = choices("layout"), help_heading = DETAILS)]
    pub layout: String,

    #[arg(long, default_value = option("schedule").default, help = option("schedule").help, value_parser = choices("schedule"), help_heading = DETAILS)]
    pub schedule: String,

    /// `off` is what `--layout slices` is
    #[arg(long, default_value = "auto", hide = true)]
    pub structured: Structured,

    #[command(flatten)]
    pub input: Input,
}

/// The preconditioners in one line.
fn short_list() -> String {
    let names =
        preconditioners().iter().map(|info| info.usage().split(", ").last().unwrap_or_default().to_string());
    format!("Preconditioner: {} (--help describes them)", names.collect::<Vec<_>>().join(", "))
}

/// The preconditioners with their numbers, one per line.
fn long_list() -> String {
    let mut text = String::from("Preconditioner, one of\n");
    let all = preconditioners();
    let widest = all.iter().map(|info| info.usage().len()).max().unwrap_or(0);
    // Numbers of one name and one meaning, and whose they are.
    let mut numbers: Vec<(&Parameter, Vec<&str>)> = Vec::new();
    for info in all {
        text += &format!("  {:widest$}  {}\n", info.usage(), info.description);
        for parameter in info.parameters {
            let same = |known: &Parameter| (known.name, known.meaning) == (parameter.name, parameter.meaning);
            match numbers.iter_mut().find(|(known, _)| same(known)) {
                Some((_, of)) => of.push(info.name),
                None => numbers.push((parameter, vec![info.name])),
            }
        }
    }
    text += "where\n";
    let widest = numbers.iter().map(|(known, _)| known.name.len()).max().unwrap_or(0);
    for (known, of) in numbers {
        let (name, meaning, range) = (known.name, known.meaning, known.range());
        text += &format!("  {name:widest$}  of {}: {meaning}; {range}\n", of.join(", "));
    }
    text + "Upper and lower case are the same; ic2 means ic(2), ilu means ilu0."
}

#[derive(Clone, Copy, ValueEnum)]
pub enum Rhs {
    /// b = A 1: every entry of the answer is 1; easier for many preconditioners than other right-hand sides
    Ones,
    /// Fixed pseudo-random numbers, uniform in [-1, 1), the same on every machine
    Random,
    /// A times such numbers: there is an answer even if A is singular
    Product,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
pub enum Structured {
    Auto,
    Off,
}

/// The library's option of this name, whose help, default and values the command has too.
fn option(name: &str) -> &'static SolverOption {
    options().iter().find(|option| option.name == name).expect("an option of the library")
}

/// The values of an option that are names.
fn choices(name: &str) -> PossibleValuesParser {
    PossibleValuesParser::new(option(name).choices)
}

fn tolerance(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| "a number is needed")?;
    if number >= 0.0 && number.is_finite() { Ok(number) } else { Err("a number from 0 on is needed".into()) }
}

#[derive(Args)]
pub struct Generate {
    /// Name of the problem, such as poisson3d, or a whole specification, such as poisson3d:100x100x20
    pub problem: Option<String>,

    /// Points in each direction
    #[arg(long, short, conflicts_with_all = ["nx", "ny", "nz"], requires = "problem")]
    pub n: Option<usize>,

    /// Points in the first direction
    #[arg(long, requires_all = ["problem", "ny"])]
    pub nx: Option<usize>,

    /// Points in the second direction
    #[arg(long, requires = "nx")]
    pub ny: Option<usize>,

    /// Points in the third direction
    #[arg(long, requires = "nx")]
    pub nz: Option<usize>,

    /// File to write; its ending decides the format: .mtx, .mtx.gz, .mtx.xz, .mtx.zst, .npz, .petsc
    #[arg(long, short, value_name = "FILE", requires = "problem")]
    pub output: Option<PathBuf>,

    #[command(flatten)]
    pub limits: Limits,
}

#[derive(Args)]
pub struct Info {
    #[command(flatten)]
    pub input: Input,

    /// Write the facts as JSON to a file, or with - to standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Draw a histogram of row lengths (.svg or .png)
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,

    /// Compare orderings: wavefronts, bandwidth, entries of incomplete and exact Cholesky factors
    #[arg(long)]
    pub orderings: bool,

    /// Show what sparsification would do: entries dropped, wavefronts left, and what the paper's algorithm takes
    #[arg(long)]
    pub sparsify: bool,
}

#[derive(Args)]
pub struct Spy {
    #[command(flatten)]
    pub input: Input,

    /// Picture to write (.svg or .png)
    #[arg(long, short, value_name = "FILE")]
    pub output: PathBuf,
}

#[derive(Args)]
pub struct Convert {
    #[command(flatten)]
    pub input: Input,

    /// File to write; its ending decides the format: .mtx, .mtx.gz, .mtx.xz, .mtx.zst, .npz, .petsc
    pub output: PathBuf,
}

#[derive(Args)]
pub struct Train {
    #[command(flatten)]
    pub input: Input,

    /// Where to write the trained factor, as a matrix of the pattern of A: .mtx, .mtx.gz, .mtx.xz, .mtx.zst, .npz, .petsc
    #[arg(long, short, value_name = "FILE")]
    pub output: PathBuf,

    /// Rounds of training at most, each after a solve with a random right-hand side
    #[arg(long, value_name = "N", default_value = "10")]
    pub rounds: NonZeroUsize,

    /// The tolerance of the solves that the factor is for
    #[arg(long, default_value = "1e-8", value_parser = tolerance, allow_negative_numbers = true)]
    pub rtol: f64,
}

/// Where a solve runs.
#[derive(Clone, Copy, PartialEq)]
pub enum Place {
    /// Threads of the processor.
    Cpu,
    /// A GPU if there is one.
    Auto,
    /// This device.
    Device(Selector),
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "cpu" => Ok(Place::Cpu),
            "auto" => Ok(Place::Auto),
            _ => text.parse().map(Place::Device),
        }
    }
}

#[derive(Args)]
pub struct Devices {
    /// Measure every device that Krylith can run on: updates, products and two solves of a Poisson problem; takes a minute or less on each
    #[arg(long)]
    pub bench: bool,

    /// Measure also what a solve's choices depend on, of the threads and of every device, and write it to a file for `krylith solve --machine`; takes some minutes
    #[arg(long, value_name = "FILE", requires = "bench")]
    pub machine: Option<PathBuf>,

    /// Points per edge of the cube of that problem
    #[arg(long, value_name = "N", default_value = "100", requires = "bench", value_parser = clap::value_parser!(u16).range(1..=400))]
    pub size: u16,

    /// Write the list as JSON to a file, or with - to standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// What standard input is called.
pub const STANDARD_INPUT: &str = "standard input";

/// Whether a name stands for standard input or standard output.
pub fn is_standard(path: &Path) -> bool {
    path == Path::new("-")
}

impl Solve {
    /// The matrix of the preconditioner, read as A is; none where that is A.
    pub fn precond_input(&self) -> Option<Input> {
        self.precond_matrix.clone().map(|matrix| Input { matrix, ..self.input.clone() })
    }
}

/// A matrix to read, and how much it may take.
#[derive(Args, Clone)]
pub struct Input {
    /// Matrix file (Matrix Market, SciPy .npz or PETSc binary, recognised by content), - for standard input, or gen:PROBLEM:N
    pub matrix: String,

    /// Compressed files may expand to this many times their size
    #[arg(long, value_name = "TIMES", default_value_t = 256, help_heading = LIMITS)]
    pub max_expansion: u64,

    /// Rows and columns that a file may announce beyond what its entries can fill
    #[arg(long, value_name = "ROWS", default_value_t = 1 << 20, help_heading = LIMITS)]
    pub max_empty_rows: u64,

    #[command(flatten)]
    pub limits: Limits,
}

impl Input {
    /// The matrix file; nothing for a generated matrix and for standard input.
    pub fn file(&self) -> Vec<&Path> {
        let no_file = self.matrix.starts_with("gen:") || self.is_standard();
        if no_file { Vec::new() } else { vec![Path::new(&self.matrix)] }
    }

    /// Whether the matrix comes from standard input.
    pub fn is_standard(&self) -> bool {
        is_standard(Path::new(&self.matrix))
    }

    /// What the matrix is called in reports and messages.
    pub fn name(&self) -> &str {
        if self.is_standard() { STANDARD_INPUT } else { &self.matrix }
    }

    /// How much a file may take.
    pub fn read_options(&self) -> ReadOptions<'_> {
        let (max_expansion, max_empty_rows) = (self.max_expansion, self.max_empty_rows);
        ReadOptions { max_expansion, max_empty_rows, progress: None }
    }
}

#[derive(Args, Clone)]
pub struct Limits {
    /// Memory limit in GB: for a generated matrix, and for everything a solve allocates besides A, b and x; what the machine has free if not given
    #[arg(long, value_name = "GB", value_parser = gigabytes, help_heading = LIMITS)]
    pub max_memory: Option<f64>,
}

fn gigabytes(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| "a number is needed")?;
    if number >= 0.0 { Ok(number) } else { Err("a number from 0 on is needed".into()) }
}
