//! Algorithm 2 beside a few lines of Python that read the same files: the same decision, the same entries dropped.

use super::{Options, definite};
use crate::Failure;
use krylith::io;
use krylith::sparsify::Sparsify;
use serde_json::{Value, json};
use std::process::Command;

/// Matrices that are compared, the smallest ones.
const MATRICES: usize = 20;

pub fn run(options: &Options) -> Result<(), Failure> {
    let scratch = tempfile::tempdir()?;
    let mut entries = definite(&options.matrices)?;
    // Diagonal ones have nothing to drop.
    entries.retain(|entry| entry.nnz > entry.n);
    entries.sort_by_key(|entry| entry.nnz);
    entries.truncate(MATRICES);
    if entries.len() < MATRICES {
        return Err(format!("{} definite matrices are not enough for {MATRICES}", entries.len()).into());
    }
    let mut cases = Vec::new();
    for entry in &entries {
        let path = options.matrices.join(&entry.file);
        let a = io::read_matrix(&path)?;
        let (found, sparser) = Sparsify::paper().apply(&a).ok_or("nothing was decided")?;
        let sparser = sparser.matrix();
        let rows = (0..a.nrows()).flat_map(|i| {
            let kept = sparser.row(i).0;
            let below = a.row(i).0.iter().filter(move |&&j| (j as usize) < i);
            below.filter(|j| kept.binary_search(j).is_err()).map(move |&j| json!([i, j]))
        });
        cases.push(json!({
            "file": path,
            "dropped": rows.collect::<Vec<_>>(),
            "entries": sparser.nnz(),
            "sparsification": found,
        }));
    }
    let list = scratch.path().join("cases.json");
    std::fs::write(&list, format!("{:#}\n", Value::Array(cases)))?;
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/peers/check_sparsify.py");
    match Command::new(&options.python).arg(script).arg(&list).status()?.success() {
        true => Ok(()),
        false => Err("Python decides otherwise".into()),
    }
}
