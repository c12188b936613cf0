//! A matrix from a file, from standard input or from the gallery.

use crate::Failure;
use crate::args::{Input, Limits, STANDARD_INPUT, is_standard};
use crate::progress::{Bar, spinner};
use crate::report::bytes;
use krylith::Csr;
use krylith::gallery::Problem;
use krylith::io::{self, FileError, FormatError, ReadOptions};
use krylith::setup::available_memory;
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
    Ok(Loaded { matrix, name: input.name().to_owned(), seconds: started.elapsed().as_secs_f64() })
}

fn read(input: &Input) -> Result<Csr<f64>, Failure> {
    let bar = Bar::new("reading");
    let progress = |done, total| bar.at(done, total);
    let options = ReadOptions { progress: Some(&progress), ..input.read_options() };
    if input.is_standard() {
        return io::read_matrix_from(std::io::stdin().lock(), &options).map_err(of_standard_input);
    }
    io::read_matrix_with(&input.matrix, &options).map_err(|error| {
        let is_problem = input.matrix.parse::<Problem>().is_ok() && !Path::new(&input.matrix).exists();
        if is_problem {
            format!("{error}; did you mean gen:{}?", input.matrix).into()
        } else {
            of_file(error)
        }
    })
}

/// A vector from a file or from standard input.
pub fn read_vector(path: &Path, options: &ReadOptions) -> Result<Vec<f64>, Failure> {
    match is_standard(path) {
        true => io::read_vector_from(std::io::stdin().lock(), options).map_err(of_standard_input),
        false => io::read_vector_with(path, options).map_err(of_file),
    }
}

/// What is wrong with standard input.
fn of_standard_input(error: FormatError) -> Failure {
    format!("{STANDARD_INPUT}: {error}{}", how_to_raise(&error)).into()
}

/// What is wrong with a file.
fn of_file(error: FileError) -> Failure {
    match how_to_raise(&error.source).as_str() {
        "" => error.into(),
        how => format!("{error}{how}").into(),
    }
}

/// The option that raises the limit which was exceeded, if one was.
fn how_to_raise(error: &FormatError) -> String {
    let option = error.exceeded_limit().map(|limit| limit.replace('_', "-"));
    option.map_or(String::new(), |option| format!("; if that is intended, raise it with --{option}"))
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

/// Bytes of a matrix by rows in `f64`, and of one more number per row that some problems need meanwhile.
pub fn predicted_bytes(rows: u64, nnz: u64) -> u64 {
    nnz.saturating_mul(12).saturating_add(rows.saturating_mul(16))
}
