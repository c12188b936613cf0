//! A matrix from a file or from the gallery.

use crate::Failure;
use crate::args::{Input, Limits};
use crate::progress::{Bar, spinner};
use crate::report::bytes;
use krylith::Csr;
use krylith::gallery::Problem;
use krylith::io::{self, ReadOptions};
use krylith::solver::available_memory;
use std::path::Path;
use std::time::Instant;

/// A matrix, where it came from and how long that took.
pub struct Loaded {
    pub matrix: Csr<f64>,
    pub name: String,
    pub seconds: f64,
}

pub fn load(input: &Input) -> Result<Loaded, Failure> {
    let started = Instant::now();
    let matrix = match input.matrix.strip_prefix("gen:") {
        Some(problem) => generate(&problem.parse()?, &input.limits)?,
        None => read(input)?,
    };
    Ok(Loaded { matrix, name: input.matrix.clone(), seconds: started.elapsed().as_secs_f64() })
}

fn read(input: &Input) -> Result<Csr<f64>, Failure> {
    let bar = Bar::new("reading");
    let progress = |done, total| bar.at(done, total);
    let options = ReadOptions {
        max_expansion: input.max_expansion,
        max_empty_rows: input.max_empty_rows,
        progress: Some(&progress),
    };
    io::read_matrix_with(&input.matrix, &options).map_err(|error| {
        let is_problem = input.matrix.parse::<Problem>().is_ok() && !Path::new(&input.matrix).exists();
        if is_problem { format!("{error}; did you mean gen:{}?", input.matrix).into() } else { error.into() }
    })
}

/// Generates a problem, unless it would need more memory than there is.
pub fn generate(problem: &Problem, limits: &Limits) -> Result<Csr<f64>, Failure> {
    let needed = predicted_bytes(problem.rows(), problem.nnz_estimate());
    let limit = match limits.max_memory {
        Some(gigabytes) => (gigabytes * 1e9) as u64,
        None => available_memory().unwrap_or(u64::MAX),
    };
    if needed > limit {
        let (needed, limit) = (bytes(needed), bytes(limit));
        return Err(format!("{problem} needs about {needed}, the limit is {limit} (--max-memory)").into());
    }
    let _spinner = spinner(&format!("generating {problem}"));
    Ok(problem.generate()?)
}

/// Bytes of a matrix by rows in `f64`, and of one more number a row that some problems need meanwhile.
pub fn predicted_bytes(rows: u64, nnz: u64) -> u64 {
    nnz.saturating_mul(12).saturating_add(rows.saturating_mul(16))
}
