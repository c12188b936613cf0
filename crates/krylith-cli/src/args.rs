//! What can be typed.

use clap::{Args, Parser, Subcommand};
use std::num::NonZeroUsize;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  krylith info gen:poisson3d:50              what a generated matrix looks like, no file needed
  krylith gen jump3d --n 100 -o jump.mtx.zst write one to a file
  krylith info jump.mtx.zst --json -         the same facts for a program
  krylith spy jump.mtx.zst -o jump.png       a picture of its entries
  krylith convert jump.mtx.zst jump.npz      for SciPy

Exit status: 0 done, 2 wrong usage or input.";

/// Generate, inspect, draw and convert sparse matrices.
#[derive(Parser)]
#[command(name = "krylith", version, about, after_help = EXAMPLES)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,

    /// Threads to use; all cores if not given
    #[arg(long, global = true, value_name = "N")]
    pub threads: Option<NonZeroUsize>,
}

#[derive(Subcommand)]
pub enum Command {
    /// Generate a problem of the gallery; without a name, list them
    Gen(Generate),
    /// Tell the facts about a matrix: size, symmetry, diagonal, bandwidth, wavefronts, memory
    Info(Info),
    /// Draw where the entries of a matrix are, as SVG or PNG
    Spy(Spy),
    /// Read a matrix and write it in another format
    Convert(Convert),
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

    /// File to write; its ending tells the format: .mtx, .mtx.gz, .mtx.xz, .mtx.zst, .npz, .petsc
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

    /// File to write; its ending tells the format: .mtx, .mtx.gz, .mtx.xz, .mtx.zst, .npz, .petsc
    pub output: PathBuf,
}

/// A matrix to read, and how much it may take.
#[derive(Args)]
pub struct Input {
    /// Matrix file (Matrix Market, SciPy .npz or PETSc binary, recognised by content), or gen:PROBLEM:N
    pub matrix: String,

    /// Compressed files may expand to this many times their size
    #[arg(long, value_name = "TIMES", default_value_t = 256)]
    pub max_expansion: u64,

    /// Rows and columns that a file may announce beyond what its entries can fill
    #[arg(long, value_name = "ROWS", default_value_t = 1 << 20)]
    pub max_empty_rows: u64,

    #[command(flatten)]
    pub limits: Limits,
}

#[derive(Args)]
pub struct Limits {
    /// Most memory that a generated matrix may take, in GB; what the machine has free if not given
    #[arg(long, value_name = "GB", value_parser = gigabytes)]
    pub max_memory: Option<f64>,
}

fn gigabytes(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| "a number is needed")?;
    if number >= 0.0 { Ok(number) } else { Err("a number from 0 on is needed".into()) }
}
