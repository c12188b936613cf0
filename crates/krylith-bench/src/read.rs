//! Reading a Matrix Market file into compressed rows: Krylith, `scipy.io.mmread` and PyPI's `fast-matrix-market`.
//!
//! One file of nonsymmetric entries with full-length values, every contestant in a process of its own, taking turns. What is
//! timed is the way from the file (in the system's cache) to sorted compressed rows; for the Python readers, which stop at
//! coordinates, the time without the conversion is given too.

use crate::{Failure, record};
use clap::Args;
use krylith::gallery::Problem;
use krylith::io;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

#[derive(Args)]
pub struct Options {
    /// Size of the file
    #[arg(long, default_value_t = 500)]
    megabytes: u64,
    /// Repetitions; the least time of each contestant counts
    #[arg(long, default_value_t = 5)]
    runs: usize,
    /// Python with scipy and fast-matrix-market; without it only Krylith runs
    #[arg(long)]
    python: Option<PathBuf>,
    /// Numbers of threads
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2])]
    threads: Vec<usize>,
    /// Keep the raw figures here
    #[arg(long)]
    output: Option<PathBuf>,
}

#[derive(Args)]
pub struct OnceOptions {
    file: PathBuf,
    #[arg(long)]
    threads: usize,
}

/// Reads a file once and prints the seconds.
pub fn once(options: &OnceOptions) -> Result<(), Failure> {
    rayon::ThreadPoolBuilder::new().num_threads(options.threads).build_global()?;
    let started = Instant::now();
    let a = io::read_matrix(&options.file)?;
    let seconds = started.elapsed().as_secs_f64();
    println!("{}", json!({ "seconds": seconds, "nnz": a.nnz() }));
    Ok(())
}

struct Contestant {
    name: &'static str,
    threads: usize,
    command: Vec<String>,
    seconds: Vec<f64>,
    coordinates: Vec<f64>,
}

pub fn run(options: &Options) -> Result<(), Failure> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("matrix.mtx");
    let bytes = write_file(&file, options.megabytes)?;
    let mut contestants = contestants(&file, options)?;
    let mut nnz = None;
    for run in 0..options.runs {
        for contestant in &mut contestants {
            let output = Command::new(&contestant.command[0]).args(&contestant.command[1..]).output()?;
            if !output.status.success() {
                return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
            }
            let result: Value = serde_json::from_slice(&output.stdout)?;
            if *nnz.get_or_insert(result["nnz"].as_u64()) != result["nnz"].as_u64() {
                return Err(format!("{} read another number of entries", contestant.name).into());
            }
            contestant.seconds.extend(result["seconds"].as_f64());
            contestant.coordinates.extend(result["coordinates_seconds"].as_f64());
        }
        eprintln!("run {} of {}", run + 1, options.runs);
    }
    println!("| reader | threads | to rows, s | MB/s | spread | coordinates only, MB/s |");
    println!("|---|---|---|---|---|---|");
    let least = |times: &[f64]| times.iter().copied().fold(f64::INFINITY, f64::min);
    for c in &contestants {
        let (best, worst) = (least(&c.seconds), c.seconds.iter().copied().fold(0.0, f64::max));
        let coordinates = match least(&c.coordinates) {
            s if s.is_finite() => format!("{:.0}", bytes as f64 / 1e6 / s),
            _ => String::new(),
        };
        let rate = bytes as f64 / 1e6 / best;
        println!(
            "| {} | {} | {best:.2} | {rate:.0} | {:.2} | {coordinates} |",
            c.name,
            c.threads,
            worst / best
        );
    }
    if let Some(path) = &options.output {
        let results: Vec<Value> = contestants
            .iter()
            .map(|c| {
                json!({ "reader": c.name, "threads": c.threads, "seconds": c.seconds,
                    "coordinates_seconds": c.coordinates })
            })
            .collect();
        record::save(path, &json!({ "bytes": bytes, "nnz": nnz, "results": results }))?;
    }
    Ok(())
}

/// Writes a matrix with variable coefficients of about this size; the bytes it has.
fn write_file(path: &Path, megabytes: u64) -> Result<u64, Failure> {
    // About 205 bytes of text a row.
    let planes = (megabytes * 1_000_000 / 205 / (200 * 200)).max(1);
    let problem: Problem = format!("atmosmod:200x200x{planes}").parse()?;
    io::write_matrix(path, &problem.generate()?)?;
    let bytes = path.metadata()?.len();
    eprintln!("{problem}: {:.0} MB of text", bytes as f64 / 1e6);
    Ok(bytes)
}

fn contestants(file: &Path, options: &Options) -> Result<Vec<Contestant>, Failure> {
    let own = std::env::current_exe()?;
    let text = |p: &Path| p.to_string_lossy().into_owned();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/peers/read_mtx.py");
    let mut list = Vec::new();
    for &threads in &options.threads {
        let t = threads.to_string();
        let mut add = |name, command| {
            list.push(Contestant { name, threads, command, seconds: Vec::new(), coordinates: Vec::new() });
        };
        add("krylith", vec![text(&own), "read-once".into(), text(file), "--threads".into(), t.clone()]);
        if let Some(python) = options.python.as_deref() {
            for reader in ["scipy", "fast_matrix_market"] {
                add(reader, vec![text(python), script.into(), reader.into(), text(file), t.clone()]);
            }
        }
    }
    Ok(list)
}
