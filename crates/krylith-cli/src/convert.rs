//! `krylith convert`.

use crate::Failure;
use crate::args::Convert;
use crate::input::load;
use crate::outputs::{self, Output};
use crate::progress::spinner;
use crate::report::{bytes, count, print};
use krylith::io;
use std::time::Instant;

pub fn run(options: &Convert) -> Result<(), Failure> {
    outputs::check(&[Output::moved("", &options.output)], &options.input.file())?;
    io::check_matrix_name(&options.output)?;
    let loaded = load(&options.input)?;
    let path = &options.output;
    let started = Instant::now();
    let spinner = spinner(&format!("writing {}", path.display()));
    io::write_matrix(path, &loaded.matrix)?;
    drop(spinner);
    print(&format!(
        "{}: {} rows, {} entries, {}, read in {:.2} s, written in {:.2} s\n",
        path.display(),
        count(loaded.matrix.nrows()),
        count(loaded.matrix.nnz()),
        bytes(std::fs::metadata(path)?.len()),
        loaded.seconds,
        started.elapsed().as_secs_f64(),
    ))
}
