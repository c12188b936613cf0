//! `krylith gen`.

use crate::Failure;
use crate::args::Generate;
use crate::input::generate;
use crate::outputs::{self, Output};
use crate::progress::spinner;
use crate::report::{bytes, count, print};
use krylith::gallery::{self, Problem};
use krylith::io;
use std::time::Instant;

pub fn run(options: &Generate) -> Result<(), Failure> {
    let Some(name) = &options.problem else {
        return print(&listing());
    };
    if let Some(path) = &options.output {
        outputs::check(&[Output::moved("-o", path)], &[])?;
        io::check_matrix_name(path)?;
    }
    let started = Instant::now();
    let problem = problem(name.strip_prefix("gen:").unwrap_or(name), options)?;
    let a = generate(&problem, &options.limits)?;
    let seconds = started.elapsed().as_secs_f64();
    let (rows, nnz, size) = (count(a.nrows()), count(a.nnz()), bytes(a.bytes() as u64));
    let made =
        format!("{problem}: {rows} rows, {nnz} entries, {size} in memory, generated in {seconds:.2} s");
    let Some(path) = &options.output else {
        return print(&format!("{made}\nnothing written; -o FILE writes it\n"));
    };
    let started = Instant::now();
    let spinner = spinner(&format!("writing {}", path.display()));
    io::write_matrix(path, &a)?;
    drop(spinner);
    let seconds = started.elapsed().as_secs_f64();
    let size = bytes(std::fs::metadata(path)?.len());
    print(&format!("{made}\n{}: {size}, written in {seconds:.2} s\n", path.display()))
}

/// The problem with the extents given, in whichever way.
fn problem(name: &str, options: &Generate) -> Result<Problem, Failure> {
    let extents = [options.nx, options.ny, options.nz];
    let given: Vec<usize> = match options.n {
        Some(n) => vec![n],
        None => extents.into_iter().flatten().collect(),
    };
    if given.is_empty() {
        return Ok(name.parse()?);
    }
    if name.contains(':') {
        return Err(format!("`{name}` has a size already; give it there or with options, not both").into());
    }
    Ok(Problem::new(name, &given)?)
}

fn listing() -> String {
    let mut text = String::from(
        "Problems (krylith gen NAME --n N -o FILE, or gen:NAME:N wherever a matrix is read):\n\n",
    );
    for problem in gallery::problems() {
        let size: Vec<String> = problem.default_size.iter().map(usize::to_string).collect();
        text.push_str(&format!("  {:14} {}\n", problem.name, problem.description));
        text.push_str(&format!("  {:14}   {}\n", "", problem.formula));
        text.push_str(&format!("  {:14}   {} if no size is given\n", "", size.join("x")));
    }
    text
}
