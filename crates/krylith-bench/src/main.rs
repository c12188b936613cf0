//! Studies of Krylith, and comparisons with other systems in the same run.
//!
//! Every study prints a table and, with `--output`, keeps its raw figures as JSON. Times are the least of several repetitions,
//! contestants taking turns, because machines are shared.

mod bars;
mod blocks;
mod calibrate;
mod catalogue;
mod choice;
mod compare;
mod device;
mod fit;
mod folder;
mod fsai;
mod grids;
mod handover;
mod ilut;
mod incomplete;
mod learn;
mod nvidia;
mod outcomes;
mod peers;
mod predictions;
mod profile;
mod read;
mod record;
mod refactor;
mod rhs;
mod share;
mod spcg;
mod structured;
mod torture;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

type Failure = Box<dyn std::error::Error>;

#[derive(Parser)]
#[command(name = "krylith-bench", version, about = "Studies of Krylith, and comparisons with other systems")]
struct Arguments {
    #[command(subcommand)]
    study: Study,
}

#[derive(Subcommand)]
enum Study {
    /// Reading a large Matrix Market file, beside SciPy and fast_matrix_market
    Read(read::Options),
    /// Every matrix of a folder with a CATALOGUE.tsv: sizes by `krylith info`, and through every format and back
    Catalogue(catalogue::Options),
    /// Elasticity in 3 x 3 blocks, by rows and in slices, beside MKL's blocks
    Blocks(blocks::Options),
    /// The figures of this machine, for `krylith solve --machine`
    Calibrate(calibrate::Options),
    /// `auto` beside the members that an expert would try, on problems of the gallery
    Choice(choice::Options),
    /// Devices beside threads by rows: the seconds of products and solves, or outcomes, iterations and bits
    Device(device::Options),
    /// Every matrix of a folder with a CATALOGUE.tsv in which there is a structured grid
    Grids(grids::Options),
    /// What handing an operation to the threads costs
    Handover(handover::Options),
    /// Preconditioners that learn: trained factors, and learning while solving
    Learn(learn::Options),
    /// Tables 2 to 5 of NVIDIA's paper on incomplete factors: threads, devices and MKL on the gallery's stand-ins of its matrices
    Nvidia(nvidia::Options),
    /// Every square matrix of a folder with a CATALOGUE.tsv, solved in several ways
    Outcomes(outcomes::Options),
    /// Factors, iterates and answers beside those of ilupp and SciPy, number by number
    Peers(peers::Options),
    /// What plans predict beside what solves take, on the matrices of a folder with a CATALOGUE.tsv
    Predictions(predictions::Options),
    /// `auto` beside SciPy and PyAMG on the matrices of a folder with a CATALOGUE.tsv: answers, seconds, a performance profile
    Profile(profile::Options),
    /// Factored approximate inverses beside hypre's FSAI and ParaSails
    Fsai(fsai::Options),
    /// ILUT by MKL's rule beside MKL's, number by number
    Ilut(ilut::Options),
    /// Preparing a solve beside refactoring it
    Refactor(refactor::Options),
    /// Wavefront-aware sparsification on the definite matrices of a folder with a CATALOGUE.tsv
    Spcg(spcg::Options),
    /// Solves one after the other beside solves at the same time, with one factor
    Share(share::Options),
    /// Whole solves and single operations beside PETSc, MKL, hypre and others
    Compare(compare::Options),
    /// Incomplete factorizations beside those of PETSc, ilupp and SciPy on the matrices of a folder with a CATALOGUE.tsv: outcomes
    Incomplete(incomplete::Options),
    /// Kernels of ILU(0) on matrices of structured grids, beside MKL's and PETSc's; or whole solves on such grids
    Structured(Box<structured::Options>),
    /// Random hostile cases against the library, every answer judged in exact arithmetic
    Torture(Box<torture::Options>),
    /// The operations of one path; what `structured` runs in a process of its own
    #[command(hide = true)]
    StructuredOnce(structured::OnceOptions),
    /// The rate of arithmetic; what `structured` runs in a process of its own
    #[command(hide = true)]
    StructuredPeak(structured::PeakOptions),
    /// One solve of Krylith; what `incomplete` runs in a process of its own
    #[command(hide = true)]
    IncompleteOnce(incomplete::OnceOptions),
    /// One solve, or the seconds of single operations; what `compare` runs in a process of its own
    #[command(hide = true)]
    CompareOnce(compare::OnceOptions),
    /// One run of `krylith solve`; what `structured applications` runs in a process of its own
    #[command(hide = true)]
    CompareCommand(compare::CommandOptions),
    /// The memory's rate; what `compare` runs in a process of its own
    #[command(hide = true)]
    CompareTriad(compare::TriadOptions),
    /// Read one file and print the seconds; what `read` runs in a process of its own
    #[command(hide = true)]
    ReadOnce(read::OnceOptions),
}

fn main() -> ExitCode {
    let result = match Arguments::parse().study {
        Study::Read(options) => read::run(&options),
        Study::Catalogue(options) => catalogue::run(&options),
        Study::Blocks(options) => blocks::run(&options),
        Study::Calibrate(options) => calibrate::run(&options),
        Study::Choice(options) => choice::run(&options),
        Study::Device(options) => device::run(&options),
        Study::Grids(options) => grids::run(&options),
        Study::Handover(options) => handover::run(&options),
        Study::Learn(options) => learn::run(&options),
        Study::Nvidia(options) => nvidia::run(&options),
        Study::Outcomes(options) => outcomes::run(&options),
        Study::Peers(options) => peers::run(&options),
        Study::Predictions(options) => predictions::run(&options),
        Study::Profile(options) => profile::run(&options),
        Study::Fsai(options) => fsai::run(&options),
        Study::Ilut(options) => ilut::run(&options),
        Study::Refactor(options) => refactor::run(&options),
        Study::Spcg(options) => spcg::run(&options),
        Study::Share(options) => share::run(&options),
        Study::Compare(options) => compare::run(&options),
        Study::Incomplete(options) => incomplete::run(&options),
        Study::Structured(options) => structured::run(&options),
        Study::Torture(options) => torture::run(&options),
        Study::StructuredOnce(options) => structured::once(&options),
        Study::StructuredPeak(options) => structured::peak_once(&options),
        Study::IncompleteOnce(options) => incomplete::once(&options),
        Study::CompareOnce(options) => compare::once(&options),
        Study::CompareCommand(options) => compare::command_once(&options),
        Study::CompareTriad(options) => compare::triad_once(&options),
        Study::ReadOnce(options) => read::once(&options),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("krylith-bench: {error}");
            ExitCode::FAILURE
        }
    }
}
