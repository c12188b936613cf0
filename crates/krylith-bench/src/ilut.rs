//! ILUT by MKL's rule beside MKL's `dcsrilut`, number by number: patterns must be equal, entries to 1e-10 of their row's largest.
//!
//! `peers/ilut.c` computes MKL's factor. What is compared is (I + L) (D U), as MKL has it: L relative to the largest of its row with
//! the unit diagonal, D U relative to the largest of its row. Which of equal entries MKL keeps depends on how its selection runs.
//! Where the quota cuts between equal entries the factors part: the rows before are compared, and that the row has the same absolute
//! values in both. The first 13 matrices have no such row; the last six were taken because they have.

use crate::Failure;
use crate::driver::system;
use crate::run::table::table;
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

const MATRICES: [&str; 19] = [
    "jump3d:12",
    "atmosmod:12",
    "circuit:30",
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
    "convection3d:12",
    "spd/1138_bus",
    "spd/bcsstk08",
    "general/add32",
    "general/pores_2",
    "general/sherman2",
];

/// NVIDIA's ilut(p, τ), and one that drops much.
const PARAMETERS: [(usize, f64); 4] = [(5, 1e-3), (10, 1e-5), (20, 1e-7), (0, 3e-2)];

/// Entries may differ by so much of their row's largest.
const BOUND: f64 = 1e-10;

pub fn run(options: &Options) -> Result<(), Failure> {
    let columns = [
        "matrix",
        "rows",
        "entries",
        "τ",
        "maxfil",
        "entries of the factor",
        "pivots replaced",
        "largest difference",
    ];
    print!("{}", table(&columns, []));
    let (mut equal, mut parted, mut wrong) = (0, 0, 0);
    for name in MATRICES {
        let (in_folder, skipped) =
            (name.contains('/'), options.only.as_deref().is_some_and(|only| only != name));
        let a = match &options.folder {
            _ if skipped => continue,
            Some(folder) if in_folder => io::read_matrix(folder.join(format!("{name}.mtx.xz")))?,
            None if in_folder => continue,
            _ => name.parse::<Problem>()?.generate()?,
        };
        for (p, tau) in PARAMETERS {
            match compare(options, name, &a, p, tau)? {
                Verdict { largest, .. } if largest > BOUND => wrong += 1,
                Verdict { other_pattern: None, .. } => equal += 1,
                Verdict { other_pattern: Some((_, tie)), .. } if tie => parted += 1,
                _ => wrong += 1,
            }
        }
    }
    println!();
    println!("{equal} factors are MKL's, {parted} up to a choice between equal entries, {wrong} are not");
    if wrong == 0 && equal > 0 { Ok(()) } else { Err("factors differ from MKL's".into()) }
}

/// How a factor compares with MKL's.
struct Verdict {
    /// The largest difference of entries, in the rows before the patterns part.
    largest: f64,
    /// The first row whose pattern differs, and whether only the choice between equal entries does.
    other_pattern: Option<(usize, bool)>,
}

/// One factor.
fn compare(options: &Options, name: &str, a: &Csr<f64>, p: usize, tau: f64) -> Result<Verdict, Failure> {
    let rule = Rule::nvidia(a.view(), p);
    let Rule::Mkl { maxfil } = rule else { return Err("NVIDIA's ILUT is MKL's".into()) };
    let ours = ilut(a.view(), &IlutOptions { rule, tau, permtol: None, max_bytes: 4 << 30 })?;
    let theirs = mkl(&options.driver, a, tau, maxfil)?;
    let verdict = difference(&ours, &theirs);
    let word = match verdict.other_pattern {
        None => String::new(),
        Some((row, true)) => format!(" before row {row}, which has equal entries"),
        Some((row, false)) => format!(" before row {row}, which has other entries"),
    };
    println!(
        "| {name} | {} | {} | {tau:.0e} | {maxfil} | {} | {} | {:.1e}{word} |",
        a.nrows(),
        a.nnz(),
        ours.nnz(),
        ours.repairs.count,
        verdict.largest
    );
    Ok(verdict)
}

/// L and D U by MKL, in one matrix.
fn mkl(driver: &Path, a: &Csr<f64>, tau: f64, maxfil: usize) -> Result<Csr<f64>, Failure> {
    let folder = tempfile::tempdir()?;
    let (input, output) = (folder.path().join("a.csr"), folder.path().join("lu.csr"));
    system::write(&input, a, None)?;
    let run = Command::new(driver)
        .arg(&input)
        .args([tau.to_string(), maxfil.to_string(), (1e-4 + tau).to_string()])
        .arg(&output)
        .output()
        .map_err(|e| format!("{}: {e}", driver.display()))?;
    if !run.status.success() {
        return Err(String::from_utf8_lossy(&run.stderr).into_owned().into());
    }
    system::read(&output).map(|(factor, _)| factor)
}

/// Row by row until the patterns part.
fn difference(ours: &Triangles<f64>, theirs: &Csr<f64>) -> Verdict {
    let mut largest: f64 = 0.0;
    for i in 0..theirs.nrows() {
        let (columns, values) = theirs.row(i);
        let ((l_columns, l), (u_columns, u)) = (ours.lower.row(i), ours.upper.row(i));
        let d = 1.0 / ours.inverse[i];
        let our_u: Vec<f64> = std::iter::once(d).chain(u.iter().map(|u| u * d)).collect();
        let (their_l, their_u) = values.split_at(columns.partition_point(|&j| (j as usize) < i));
        if !l_columns.iter().chain([&(i as u32)]).chain(u_columns).eq(columns) {
            let tie = same_sizes(l, their_l, 1.0) && same_sizes(&our_u, their_u, 0.0);
            return Verdict { largest, other_pattern: Some((i, tie)) };
        }
        largest = largest.max(relative(l, their_l, 1.0)).max(relative(&our_u, their_u, 0.0));
    }
    Verdict { largest, other_pattern: None }
}

/// The same absolute values in some order.
fn same_sizes(x: &[f64], y: &[f64], floor: f64) -> bool {
    let sizes = |x: &[f64]| {
        let mut sizes: Vec<f64> = x.iter().map(|x| x.abs()).collect();
        sizes.sort_unstable_by(f64::total_cmp);
        sizes
    };
    x.len() == y.len() && relative(&sizes(x), &sizes(y), floor) <= BOUND
}

/// max |x − y| / max(floor, max |y|); infinite if something is not a number.
fn relative(x: &[f64], y: &[f64], floor: f64) -> f64 {
    let largest = y.iter().fold(floor, |m, y| m.max(y.abs()));
    let apart = x.iter().zip(y).map(|(x, y)| if (x - y).is_nan() { f64::INFINITY } else { (x - y).abs() });
    match apart.fold(0.0, f64::max) {
        0.0 => 0.0,
        worst => worst / largest,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_between_equal_entries_is_told_from_a_difference() {
        let a =
            Csr::new(3, 3, vec![0, 3, 4, 5], vec![0, 1, 2, 1, 2], vec![4.0, 1.0, -1.0, 1.0, 1.0]).unwrap();
        let rule = Rule::Mkl { maxfil: 1 };
        let ours =
            ilut(a.view(), &IlutOptions { rule, tau: 0.0, permtol: None, max_bytes: 1 << 20 }).unwrap();
        let verdict = |column: u32, value: f64| {
            let values = vec![4.0, value, 1.0, 1.0];
            difference(&ours, &Csr::new(3, 3, vec![0, 2, 3, 4], vec![0, column, 1, 2], values).unwrap())
        };
        assert_eq!((verdict(1, 1.0).largest, verdict(1, 1.0).other_pattern), (0.0, None));
        assert_eq!((verdict(1, 1.5).largest, verdict(1, 1.5).other_pattern), (0.125, None));
        assert_eq!(verdict(2, -1.0).other_pattern, Some((0, true)));
        assert_eq!(verdict(2, -1.5).other_pattern, Some((0, false)));
        assert_eq!(verdict(1, f64::NAN).largest, f64::INFINITY);
    }
}
