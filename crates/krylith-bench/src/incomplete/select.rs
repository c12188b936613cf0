//! Which matrices of a catalogue a study takes, and why others are left out.
//!
//! `spd`: the files of the catalogue's folder `spd`. `general`: those of `general` that are square, have at least so many
//! rows, and are structurally nonsingular: some permutation puts entries other than zero on the whole diagonal. A matrix with
//! A·1 = 0 is left out of both, and for every right-hand side: b = A·1 shows nothing there, and another b has no answer.

use super::contestants::Study;
use super::rank::structural_rank;
use super::record::{LeftOut, Matrix};
use crate::Failure;
use crate::catalogue::parse;
use crate::rhs::Rhs;
use krylith::{Csr, io};
use std::path::Path;

pub struct Selection {
    pub matrices: Vec<Matrix>,
    pub left_out: Vec<LeftOut>,
}

pub fn select(study: Study, folder: &Path, least_rows: usize) -> Result<Selection, Failure> {
    let mut selection = Selection { matrices: Vec::new(), left_out: Vec::new() };
    let prefix = format!("{}/", study.name());
    for entry in parse(&std::fs::read_to_string(folder.join("CATALOGUE.tsv"))?)? {
        if !entry.file.starts_with(&prefix) {
            continue;
        }
        let file = entry.file;
        match examine(&folder.join(&file), study, least_rows) {
            Err(why) => selection.left_out.push(LeftOut { file, why }),
            Ok(a) => selection.matrices.push(Matrix { file, rows: a.nrows(), nnz: a.nnz() }),
        }
    }
    Ok(selection)
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
    if Rhs::Ones.vector(a).iter().all(|&b| b == 0.0) {
        return Some("b = A·1 is zero".into());
    }
    let rank = if study == Study::General { structural_rank(a) } else { a.nrows() };
    (rank < a.nrows()).then(|| format!("structurally singular: rank {rank} of {}", a.nrows()))
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
        let empty_row = Csr::new(2, 2, vec![0, 1, 1], vec![1], vec![1.0]).unwrap();
        assert_eq!(general(&empty_row, 1).unwrap(), "structurally singular: rank 1 of 2");
        let infinite = Csr::new(1, 1, vec![0, 1], vec![0], vec![f64::INFINITY]).unwrap();
        assert_eq!(general(&infinite, 1).unwrap(), "an entry is not finite");
    }
}
