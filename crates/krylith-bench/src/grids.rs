//! Structured grids in the matrices of a catalogue: which are found, and what looking for them costs beside a product with
//! the matrix.
//!
//! The catalogue has the columns `file`, `n`, `nnz` and, if it likes, `kind`.

use crate::Failure;
use crate::catalogue::parse;
use clap::Args;
use krylith::io;
use krylith::structured::Structure;
use serde_json::json;
use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Instant;

#[derive(Args)]
pub struct Options {
    /// The folder with CATALOGUE.tsv
    folder: PathBuf,
    /// Repetitions; the least time counts
    #[arg(long, default_value_t = 5)]
    runs: usize,
    /// Keep what was found, and why not where nothing was, here
    #[arg(long)]
    output: Option<PathBuf>,
}

pub fn run(options: &Options) -> Result<(), Failure> {
    let table = std::fs::read_to_string(options.folder.join("CATALOGUE.tsv"))?;
    let kinds = kinds(&table);
    let entries = parse(&table)?;
    let (mut results, mut found) = (Vec::new(), 0);
    println!(
        "| matrix | kind | rows | entries | grid | stencil | unknowns | full | levels | detection / product |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    for entry in &entries {
        let a = io::read_matrix(options.folder.join(&entry.file))?;
        let (x, mut y) = (vec![1.0; a.ncols()], vec![0.0; a.nrows()]);
        let (mut product, mut search) = (f64::MAX, f64::MAX);
        let mut outcome = Structure::detect(a.pattern());
        for _ in 0..options.runs {
            let started = Instant::now();
            a.mul_vec(&x, &mut y)?;
            product = product.min(started.elapsed().as_secs_f64());
            let started = Instant::now();
            outcome = Structure::detect(a.pattern());
            search = search.min(started.elapsed().as_secs_f64());
        }
        let kind = kinds.get(entry.file.as_str()).copied().unwrap_or_default();
        let name = entry.file.rsplit('/').next().unwrap_or_default().split('.').next().unwrap_or_default();
        let mut result =
            json!({ "file": entry.file, "product_seconds": product, "detection_seconds": search });
        match outcome {
            Ok(s) => {
                found += 1;
                let (n, nnz, ratio) = (a.nrows(), a.nnz(), search / product);
                println!(
                    "| {name} | {kind} | {n} | {nnz} | {} | {} | {} | {:.3} | {} | {ratio:.1} |",
                    s.grid,
                    s.stencil,
                    s.dof,
                    s.fullness,
                    s.levels(),
                );
                let extents = &s.grid.extents()[..s.grid.dims()];
                result["grid"] = json!({ "extents": extents, "stencil": s.stencil.to_string(),
                    "offsets": s.stencil.offsets(), "dof": s.dof, "fullness": s.fullness, "levels": s.levels() });
            }
            Err(why) => result["none"] = why.to_string().into(),
        }
        results.push(result);
    }
    println!("\n{found} of {} matrices have a grid.", entries.len());
    if let Some(path) = &options.output {
        crate::record::save(path, &results)?;
    }
    Ok(())
}

/// The kind of each file.
fn kinds(table: &str) -> HashMap<&str, &str> {
    let mut lines = table.lines().map(|line| line.split('\t').collect::<Vec<_>>());
    let names = lines.next().unwrap_or_default();
    let column = |name: &str| names.iter().position(|n| *n == name);
    let (Some(file), Some(kind)) = (column("file"), column("kind")) else { return HashMap::new() };
    lines.filter_map(|fields| Some((*fields.get(file)?, *fields.get(kind)?))).collect()
}
