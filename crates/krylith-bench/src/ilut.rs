//! ILUT by MKL's rule beside MKL's `dcsrilut`, number by number: patterns must be equal, entries to 1e-10 of their row's largest.
//!
//! `peers/ilut.c` computes MKL's factor. What is compared is (I + L) (D U), as MKL has it: L relative to the largest of its row with
//! the unit diagonal, D U relative to the largest of its row. Which of equal entries MKL keeps depends on how its selection runs; the
//! matrices here have no equal ones where the quota cuts.

use crate::Failure;
use crate::compare::raw;
use clap::Args;
use krylith::gallery::Problem;
use krylith::precond::threshold::{IlutOptions, Rule, Triangles, ilut};
use krylith::{Csr, io};
use std::path::{Path, PathBuf};
use std::process::Command;

#[derive(Args)]
pub struct Options {
    /// The folder with CATALOGUE.tsv; without it only generated problems are compared
    folder: Option<PathBuf>,
    /// The driver of MKL, as `peers/setup ilut` builds it
    #[arg(long, default_value = "target/peers/ilut")]
    driver: PathBuf,
    /// Only this one of the matrices
    #[arg(long)]
    only: Option<String>,
}

const GENERATED: [&str; 3] = ["jump3d:12", "atmosmod:12", "circuit:30"];

const CATALOGUE: [&str; 10] = [
    "spd/bcsstk16",
    "spd/nos3",
    "spd/nos5",
    "general/fidap001",
    "general/mcfe",
    "general/orsirr_1",
    "general/sherman5",
    "general/steam2",
    "general/utm300",
    "general/watt_1",
];

/// NVIDIA's ilut(p, τ), and one that drops much.
const PARAMETERS: [(usize, f64); 4] = [(5, 1e-3), (10, 1e-5), (20, 1e-7), (0, 3e-2)];

/// Entries may differ by so much of their row's largest.
const BOUND: f64 = 1e-10;

pub fn run(options: &Options) -> Result<(), Failure> {
    println!(
        "| matrix | rows | entries | τ | maxfil | entries of the factor | pivots replaced | largest difference |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    let mut wrong = 0;
    let catalogue = options.folder.iter().flat_map(|_| CATALOGUE);
    for name in GENERATED.into_iter().chain(catalogue) {
        if options.only.as_deref().is_some_and(|only| only != name) {
            continue;
        }
        let a = match (&options.folder, name.split_once('/')) {
            (Some(folder), Some(_)) => io::read_matrix(folder.join(format!("{name}.mtx.xz")))?,
            _ => name.parse::<Problem>()?.generate()?,
        };
        for (p, tau) in PARAMETERS {
            wrong += usize::from(!compare(options, name, &a, p, tau)?);
        }
    }
    match wrong {
        0 => Ok(()),
        _ => Err(format!("{wrong} factors differ from MKL's").into()),
    }
}

/// One factor; whether it is MKL's.
fn compare(options: &Options, name: &str, a: &Csr<f64>, p: usize, tau: f64) -> Result<bool, Failure> {
    let rule = Rule::nvidia(a.view(), p);
    let Rule::Mkl { maxfil } = rule else { return Err("NVIDIA's ILUT is MKL's".into()) };
    let ours = ilut(a.view(), &IlutOptions { rule, tau, permtol: None, max_bytes: 4 << 30 })?;
    let theirs = mkl(&options.driver, a, tau, maxfil)?;
    let difference = difference(&ours, &theirs);
    let word = difference.map_or_else(|row| format!("pattern of row {row}"), |d| format!("{d:.1e}"));
    println!(
        "| {name} | {} | {} | {tau:.0e} | {maxfil} | {} | {} | {word} |",
        a.nrows(),
        a.nnz(),
        ours.nnz(),
        ours.repairs.count
    );
    Ok(difference.is_ok_and(|d| d <= BOUND))
}

/// L and D U by MKL, in one matrix.
fn mkl(driver: &Path, a: &Csr<f64>, tau: f64, maxfil: usize) -> Result<Csr<f64>, Failure> {
    let folder = tempfile::tempdir()?;
    let (input, output) = (folder.path().join("a.csr"), folder.path().join("lu.csr"));
    raw::write(&input, a)?;
    let run = Command::new(driver)
        .arg(&input)
        .args([tau.to_string(), maxfil.to_string(), (1e-4 + tau).to_string()])
        .arg(&output)
        .output()
        .map_err(|e| format!("{}: {e}", driver.display()))?;
    if !run.status.success() {
        return Err(String::from_utf8_lossy(&run.stderr).into_owned().into());
    }
    raw::read(&output)
}

/// The largest difference of entries relative to their row's largest, or the first row whose pattern differs.
fn difference(ours: &Triangles<f64>, theirs: &Csr<f64>) -> Result<f64, usize> {
    let mut largest: f64 = 0.0;
    for i in 0..theirs.nrows() {
        let (columns, values) = theirs.row(i);
        let ((l_columns, l), (u_columns, u)) = (ours.lower.row(i), ours.upper.row(i));
        if !l_columns.iter().chain([&(i as u32)]).chain(u_columns).eq(columns) {
            return Err(i);
        }
        let d = 1.0 / ours.inverse[i];
        let (their_l, their_u) = values.split_at(l.len());
        let our_u = std::iter::once(d).chain(u.iter().map(|u| u * d));
        largest = largest.max(relative(l.iter().copied(), their_l, 1.0)).max(relative(our_u, their_u, 0.0));
    }
    Ok(largest)
}

/// max |x − y| / max(floor, max |y|); infinite if something is not a number.
fn relative(x: impl Iterator<Item = f64>, y: &[f64], floor: f64) -> f64 {
    let largest = y.iter().fold(floor, |m, y| m.max(y.abs()));
    let worst = x
        .zip(y)
        .fold(0.0, |m: f64, (x, y)| if (x - y).is_nan() { f64::INFINITY } else { m.max((x - y).abs()) });
    if worst == 0.0 { 0.0 } else { worst / largest }
}
