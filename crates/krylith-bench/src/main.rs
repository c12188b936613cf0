//! Studies of Krylith, and comparisons with other systems in the same run.
//!
//! Every study prints tables and keeps its raw figures as JSON: `run` is the frame of all of them. Times are the least of several
//! repetitions, contestants taking turns, because machines are shared. Other systems run in processes of their own: `driver`.

mod calibrate;
mod catalogue;
mod choice;
mod compare;
mod device;
mod driver;
mod fsai;
mod ilut;
mod learn;
mod nvidia;
mod outcomes;
mod peers;
mod profile;
mod rhs;
mod run;
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
    /// Every matrix of a folder with a CATALOGUE.tsv: sizes by `krylith info`, and through every format and back
    Catalogue(catalogue::Options),
    /// The figures of this machine, for `krylith solve --machine`
    Calibrate(calibrate::Options),
    /// `auto` beside the members that an expert would try, on problems of the gallery
    Choice(choice::Options),
    /// Devices beside threads by rows: the seconds of products and solves, or outcomes, iterations and bits
    Device(device::Options),
    /// Preconditioners that learn while solving
    Learn(learn::Options),
    /// Tables 2 to 5 of NVIDIA's paper on incomplete factors: threads, devices and MKL on the gallery's stand-ins of its matrices
    Nvidia(nvidia::Options),
    /// Every square matrix of a folder with a CATALOGUE.tsv, solved in several ways
    Outcomes(outcomes::Options),
    /// Factors, iterates and answers beside those of ilupp and SciPy, number by number
    Peers(peers::Options),
    /// `auto` beside SciPy and PyAMG on the matrices of a folder with a CATALOGUE.tsv: answers, seconds, a performance profile
    Profile(profile::Options),
    /// Factored approximate inverses beside hypre's FSAI and ParaSails
    Fsai(fsai::Options),
    /// ILUT by MKL's rule beside MKL's, number by number
    Ilut(ilut::Options),
    /// Wavefront-aware sparsification on the definite matrices of a folder with a CATALOGUE.tsv
    Spcg(spcg::Options),
    /// Whole solves and single operations beside PETSc, MKL, hypre and others
    Compare(compare::Options),
    /// Whole solves on structured grids beside PETSc and MKL
    #[command(subcommand)]
    Structured(structured::Part),
    /// Random hostile cases against the library, every answer judged in exact arithmetic
    Torture(Box<torture::Options>),
    /// One solve, or the seconds of single operations; what `compare` runs in a process of its own
    #[command(hide = true)]
    CompareOnce(compare::OnceOptions),
    /// One run of `krylith solve`; what `structured applications` runs in a process of its own
    #[command(hide = true)]
    CompareCommand(compare::CommandOptions),
    /// The memory's rate; what `compare` runs in a process of its own
    #[command(hide = true)]
    CompareTriad(driver::triad::TriadOptions),
}

fn main() -> ExitCode {
    let result = match Arguments::parse().study {
        Study::Catalogue(options) => catalogue::run(&options),
        Study::Calibrate(options) => calibrate::run(&options),
        Study::Choice(options) => choice::run(&options),
        Study::Device(options) => device::run(&options),
        Study::Learn(options) => learn::run(&options),
        Study::Nvidia(options) => nvidia::run(&options),
        Study::Outcomes(options) => outcomes::run(&options),
        Study::Peers(options) => peers::run(&options),
        Study::Profile(options) => profile::run(&options),
        Study::Fsai(options) => fsai::run(&options),
        Study::Ilut(options) => ilut::run(&options),
        Study::Spcg(options) => spcg::run(&options),
        Study::Compare(options) => compare::run(&options),
        Study::Structured(options) => structured::run(&options),
        Study::Torture(options) => torture::run(&options),
        Study::CompareOnce(options) => compare::once(&options),
        Study::CompareCommand(options) => compare::command_once(&options),
        Study::CompareTriad(options) => driver::triad::once(&options),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("krylith-bench: {error}");
            ExitCode::FAILURE
        }
    }
}
