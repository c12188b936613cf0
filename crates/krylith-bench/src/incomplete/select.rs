//! Which matrices of a catalogue a study takes, and why others are left out.
//!
//! `spd`: the files of the catalogue's folder `spd`. `general`: those of `general` that are square, have at least so many rows, and are
//! structurally nonsingular: some permutation puts entries other than zero on the whole diagonal. The structural rank comes
//! from SciPy. A matrix with b = A·1 = 0 tells nothing and is left out of both.

use super::contestants::{Places, Study, script};
use super::record::{LeftOut, Matrix};
use super::trial::right_hand_side;
use crate::Failure;
use crate::catalogue::parse;
use krylith::{Csr, io};
use std::path::Path;
use std::process::Command;

pub struct Selection {
    pub matrices: Vec<Matrix>,
    pub left_out: Vec<LeftOut>,
}

pub fn select(study: Study, folder: &Path, least_rows: usize, places: &Places) -> Result<Selection, Failure> {
    let (mut taken, mut left_out) = (Vec::new(), Vec::new());
    let scratch = tempfile::tempdir()?;
    let mut files = Vec::new();
    let prefix = format!("{}/", study.name());
    for entry in parse(&std::fs::read_to_string(folder.join("CATALOGUE.tsv"))?)? {
        if !entry.file.starts_with(&prefix) {
            continue;
        }
        let file = entry.file;
        match examine(&folder.join(&file), study, least_rows) {
            Err(why) => left_out.push(LeftOut { file, why }),
            Ok(a) => {
                let path = scratch.path().join(format!("{}.npz", taken.len()));
                io::write_matrix(&path, &a)?;
                files.push(path);
                taken.push(Matrix { file, rows: a.nrows(), nnz: a.nnz() });
            }
        }
    }
    if study == Study::General {
        let ranks = structural_ranks(&files, places)?;
        let mut kept = Vec::new();
        for (matrix, rank) in taken.into_iter().zip(ranks) {
            match rank == matrix.rows {
                true => kept.push(matrix),
                false => {
                    let why = format!("structurally singular: rank {rank} of {}", matrix.rows);
                    left_out.push(LeftOut { file: matrix.file, why });
                }
            }
        }
        taken = kept;
    }
    Ok(Selection { matrices: taken, left_out })
}

/// The matrix, or why it is left out.
fn examine(path: &Path, study: Study, least_rows: usize) -> Result<Csr<f64>, String> {
    let a = io::read_matrix(path).map_err(|error| {
        // Not the folder of this machine.
        let folder = path.parent().map(|p| format!("{}/", p.display())).unwrap_or_default();
        format!("cannot be read: {}", error.to_string().replace(&folder, ""))
    })?;
    suitable(&a, study, least_rows).map_or(Ok(a), Err)
}

/// Why a matrix is left out, if it is.
fn suitable(a: &Csr<f64>, study: Study, least_rows: usize) -> Option<String> {
    if a.nrows() != a.ncols() {
        return Some("not square".into());
    }
    if study == Study::General && a.nrows() < least_rows {
        return Some(format!("fewer than {least_rows} rows"));
    }
    if !a.values().iter().all(|v| v.is_finite()) {
        return Some("an entry is not finite".into());
    }
    right_hand_side(a).iter().all(|&b| b == 0.0).then(|| "b = A·1 is zero".into())
}

fn structural_ranks(files: &[impl AsRef<Path>], places: &Places) -> Result<Vec<usize>, Failure> {
    let mut command = Command::new(&places.python);
    command.arg(script("structural_rank.py")).args(files.iter().map(AsRef::as_ref));
    let output = command.output().map_err(|e| format!("{}: {e}", places.python.display()))?;
    if !output.status.success() {
        return Err(format!("structural_rank.py: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    let ranks: Vec<usize> =
        String::from_utf8(output.stdout)?.lines().map(str::parse).collect::<Result<_, _>>()?;
    if ranks.len() == files.len() { Ok(ranks) } else { Err("structural_rank.py: lines are missing".into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons() {
        let general = |a: &Csr<f64>, least| suitable(a, Study::General, least);
        let one = Csr::<f64>::identity(3).unwrap();
        assert_eq!(general(&one, 3), None);
        assert_eq!(general(&one, 4).unwrap(), "fewer than 4 rows");
        assert_eq!(suitable(&one, Study::Spd, 4), None);
        let wide = Csr::new(1, 2, vec![0, 1], vec![1], vec![1.0]).unwrap();
        assert_eq!(general(&wide, 1).unwrap(), "not square");
        let ring = Csr::new(2, 2, vec![0, 2, 4], vec![0, 1, 0, 1], vec![1.0, -1.0, -1.0, 1.0]).unwrap();
        assert_eq!(general(&ring, 1).unwrap(), "b = A·1 is zero");
        let infinite = Csr::new(1, 1, vec![0, 1], vec![0], vec![f64::INFINITY]).unwrap();
        assert_eq!(general(&infinite, 1).unwrap(), "an entry is not finite");
    }
}
