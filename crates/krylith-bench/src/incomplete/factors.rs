//! ILU(k) and IC(k) equal PETSc's, k = 0 .. 3, in natural order and without a shift: the number of entries exactly, and
//! M⁻¹ v for five vectors to 1e-10 of the largest entry of PETSc's. v = A w with entries of w between 0 and 2, so that M⁻¹ v
//! is of one size throughout however A is scaled. `peers/petsc_factor.c` does PETSc's part and says whether a shift would have
//! changed anything.

use super::contestants::{Places, script};
use crate::Failure;
use crate::compare::machine;
use crate::record::{path, save};
use krylith::gallery::Problem;
use krylith::operator::{LinearOperator, Recipe, Symbolic};
use krylith::precond::Incomplete;
use krylith::space::Threads;
use krylith::{Csr, io};
use serde::{Deserialize, Serialize};
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

const LEVELS: usize = 4;
const VECTORS: usize = 5;
const BOUND: f64 = 1e-10;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Ilu,
    Icc,
}

/// Gallery problems, and files of the catalogue.
const ILU: [&str; 10] = [
    "poisson2d:40",
    "convection3d:12",
    "hpcg:10",
    "atmosmod:12",
    "general/add32",
    "general/orsirr_1",
    "general/pores_2",
    "general/sherman2",
    "general/sherman5",
    "general/wang4",
];
const ICC: [&str; 10] = [
    "poisson2d:40",
    "poisson3d:12",
    "jump3d:12",
    "hpcg:10",
    "spd/1138_bus",
    "spd/bcsstk08",
    "spd/bcsstk16",
    "spd/nos3",
    "spd/gr_30_30",
    "spd/wathen100",
];

/// What `petsc_factor` prints.
#[derive(Debug, Deserialize)]
struct Theirs {
    version: String,
    entries: usize,
    shifted: f64,
}

/// Our factor: its entries, counted as PETSc counts, and M⁻¹ v.
struct Ours {
    entries: usize,
    applied: Vec<Vec<f64>>,
}

/// A comparison.
#[derive(Debug, Serialize)]
struct Case {
    matrix: &'static str,
    kind: Kind,
    levels: usize,
    rows: usize,
    petsc_entries: usize,
    /// How much a factor that may shift differs; 0 where PETSc needs no shift.
    petsc_shifted: f64,
    entries: usize,
    /// The largest of max|z − z_PETSc| / max|z_PETSc|.
    difference: f64,
}

impl Case {
    /// What is wrong, if anything is.
    fn wrong(&self) -> Option<String> {
        if self.petsc_shifted != 0.0 {
            return Some("PETSc shifts: not a case for this comparison".into());
        }
        let Case { entries, petsc_entries, difference, .. } = *self;
        if entries != petsc_entries {
            return Some(format!("{entries} entries, PETSc has {petsc_entries}"));
        }
        (difference.is_nan() || difference > BOUND).then(|| format!("a difference of {difference:.1e}"))
    }

    fn title(&self) -> String {
        format!("{} {:?}({})", self.matrix, self.kind, self.levels).to_lowercase()
    }
}

/// Compares all cases; writes factors.json.zst and factors.md.
pub fn run(folder: &Path, places: &Places, output: &Path) -> Result<(), Failure> {
    let (mut cases, mut versions) = (Vec::new(), Vec::new());
    for (kind, names) in [(Kind::Ilu, ILU), (Kind::Icc, ICC)] {
        for name in names {
            let a = match name.contains(':') {
                true => name.parse::<Problem>()?.generate()?,
                false => io::read_matrix(folder.join(format!("{name}.mtx.xz")))?,
            };
            let scratch = tempfile::tempdir()?;
            let vectors = write(&a, scratch.path())?;
            for levels in 0..LEVELS {
                let theirs = petsc(kind, levels, places, scratch.path())
                    .map_err(|e| format!("{name} {kind:?}({levels}): {e}"))?;
                let ours = factor(kind, levels, &a, &vectors)?;
                let difference = difference(&ours, scratch.path())?;
                cases.push(Case {
                    matrix: name,
                    kind,
                    levels,
                    rows: a.nrows(),
                    petsc_entries: theirs.entries,
                    petsc_shifted: theirs.shifted,
                    entries: ours.entries,
                    difference,
                });
                versions = vec![theirs.version];
            }
        }
    }
    keep(output, &cases, &versions)
}

/// A and the vectors in PETSc's format.
fn write(a: &Csr<f64>, folder: &Path) -> Result<Vec<Vec<f64>>, Failure> {
    io::write_matrix(folder.join("A.petsc"), a)?;
    let mut vectors = Vec::new();
    for k in 0..VECTORS {
        let w: Vec<f64> = (0..a.nrows()).map(|i| 1.0 + ((i * (2 * k + 1)) as f64).sin()).collect();
        let mut v = vec![0.0; a.nrows()];
        a.mul_vec(&w, &mut v)?;
        io::write_vector(folder.join(format!("v{k}.petsc")), &v)?;
        vectors.push(v);
    }
    Ok(vectors)
}

fn petsc(kind: Kind, levels: usize, places: &Places, folder: &Path) -> Result<Theirs, Failure> {
    let driver = places.peers.join("petsc_factor");
    if !driver.is_file() {
        return Err(format!("{} is not built: {} petsc", driver.display(), script("setup").display()).into());
    }
    let word = if kind == Kind::Ilu { "ilu" } else { "icc" };
    let output = Command::new(driver).arg(folder).arg(word).arg(levels.to_string()).output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

fn factor(kind: Kind, levels: usize, a: &Csr<f64>, vectors: &[Vec<f64>]) -> Result<Ours, Failure> {
    let space = Threads::new(2);
    let recipe = match kind {
        Kind::Ilu => Incomplete::ilu(levels),
        Kind::Icc => Incomplete::ic(levels),
    };
    let factor = recipe.analyze(&space, a)?.factor(&space, a)?;
    Ok(Ours { entries: factor.nnz(), applied: applied(&factor, &space, vectors)? })
}

fn applied(
    m: &impl LinearOperator<Threads<f64>>,
    space: &Threads<f64>,
    vectors: &[Vec<f64>],
) -> Result<Vec<Vec<f64>>, Failure> {
    let mut scratch = m.scratch(space)?;
    let apply = |v: &Vec<f64>| {
        let mut z = vec![0.0; v.len()];
        m.apply(space, v, &mut z, &mut scratch)?;
        Ok(z)
    };
    vectors.iter().map(apply).collect()
}

/// The largest difference from the vectors that PETSc wrote.
fn difference(ours: &Ours, folder: &Path) -> Result<f64, Failure> {
    let mut largest: f64 = 0.0;
    for (k, z) in ours.applied.iter().enumerate() {
        let theirs = io::read_vector(folder.join(format!("z{k}.petsc")))?;
        let distance = distance(z, &theirs);
        // A NaN must not be lost in a maximum.
        largest = if distance.is_nan() { f64::NAN } else { largest.max(distance) };
        if largest.is_nan() {
            break;
        }
    }
    Ok(largest)
}

/// max|z − w| / max|w|; NaN if a number is, or lengths differ.
fn distance(z: &[f64], w: &[f64]) -> f64 {
    if z.len() != w.len() || z.iter().chain(w).any(|v| !v.is_finite()) {
        return f64::NAN;
    }
    let most = |figures: &mut dyn Iterator<Item = f64>| figures.fold(0.0, |m: f64, v| m.max(v.abs()));
    most(&mut z.iter().zip(w).map(|(z, w)| z - w)) / most(&mut w.iter().copied())
}

fn keep(output: &Path, cases: &[Case], versions: &[String]) -> Result<(), Failure> {
    let record = serde_json::json!({ "study": "factors", "date": machine::date(), "command": machine::command(),
        "machine": machine::describe(), "versions": versions, "bound": BOUND, "cases": cases });
    save(&path(output, "factors"), &record)?;
    let text = markdown(cases, versions);
    std::fs::write(output.join("factors.md"), &text)?;
    println!("{text}");
    let wrong: Vec<String> =
        cases.iter().filter_map(|case| Some(format!("{}: {}", case.title(), case.wrong()?))).collect();
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n").into()) }
}

fn markdown(cases: &[Case], versions: &[String]) -> String {
    let mut text = format!(
        "# Factors beside those of {}\n\n{}. `{}`. Natural order, no shift; differences of M⁻¹ v, relative to the largest entry.\n\n\
         | matrix | factor | n | entries | PETSc's entries | difference |\n|---|---|---|---|---|---|\n",
        versions.join(", "),
        machine::date(),
        machine::command()
    );
    for case in cases {
        let Case { entries, difference, .. } = *case;
        let kind = if case.kind == Kind::Ilu { "ILU" } else { "IC" };
        let _ = writeln!(
            text,
            "| {} | {kind}({}) | {} | {entries} | {} | {difference:.1e} |",
            case.matrix, case.levels, case.rows, case.petsc_entries
        );
    }
    let wrong = cases.iter().filter(|case| case.wrong().is_some()).count();
    let _ = writeln!(text, "\n{} factors compared, {wrong} differ.", cases.len());
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(entries: usize, difference: f64, petsc_shifted: f64) -> Case {
        Case {
            matrix: "m",
            kind: Kind::Ilu,
            levels: 0,
            rows: 3,
            petsc_entries: 7,
            petsc_shifted,
            entries,
            difference,
        }
    }

    #[test]
    fn entries_differences_and_shifts_are_judged() {
        assert_eq!(case(7, 1e-11, 0.0).wrong(), None);
        assert!(case(8, 0.0, 0.0).wrong().unwrap().contains("8 entries"));
        assert!(case(7, 2e-10, 0.0).wrong().unwrap().contains("2.0e-10"));
        assert!(case(7, f64::NAN, 0.0).wrong().is_some());
        assert!(case(7, 0.0, 1e-3).wrong().unwrap().contains("shifts"));
        let text = markdown(&[case(8, 0.0, 0.0), case(7, 0.0, 0.0)], &["PETSc 9".into()]);
        assert!(text.contains("2 factors compared, 1 differ"), "{text}");
    }

    #[test]
    fn distances() {
        assert_eq!(distance(&[1.0, -4.5], &[1.0, -4.0]), 0.125);
        assert!(distance(&[1.0], &[f64::INFINITY]).is_nan());
        assert!(distance(&[1.0], &[1.0, 2.0]).is_nan());
    }

    #[test]
    fn a_tridiagonal_factor_is_exact() {
        // IC(0) and ILU(0) of a tridiagonal matrix are exact: M⁻¹ A 1 = 1.
        let a =
            Csr::new(3, 3, vec![0, 2, 5, 7], vec![0, 1, 0, 1, 2, 1, 2], vec![2., -1., -1., 2., -1., -1., 2.])
                .unwrap();
        for (kind, entries) in [(Kind::Ilu, 7), (Kind::Icc, 5)] {
            for levels in [0, 1] {
                let ours = factor(kind, levels, &a, &[vec![1.0, 0.0, 1.0]]).unwrap();
                assert_eq!(ours.entries, entries);
                assert!(distance(&ours.applied[0], &[1.0; 3]) < 1e-15);
            }
        }
    }
}
