//! `krylith train`: a preconditioner that is trained once and used for many solves.

use crate::Failure;
use crate::args::Train;
use crate::input::load;
use crate::outputs::{self, Output};
use crate::progress::spinner;
use crate::report::{bytes, count, print, print_aside};
use krylith::learn::train_by_solving;
use krylith::{Solver, io};
use std::num::NonZeroUsize;
use std::time::Instant;

pub fn run(options: &Train, threads: Option<NonZeroUsize>) -> Result<(), Failure> {
    let path = &options.output;
    outputs::check(&[Output::moved("-o", path)], &options.input.file())?;
    io::check_matrix_name(path)?;
    let loaded = load(&options.input)?;
    let a = &loaded.matrix;
    let mut solver = Solver::new().rtol(options.rtol);
    if let Some(threads) = threads {
        solver = solver.threads(threads.get());
    }
    if let Some(gigabytes) = options.input.limits.max_memory {
        solver = solver.max_memory((gigabytes * 1e9) as u64);
    }
    let started = Instant::now();
    let (p, report) = train_by_solving(&solver, a, options.rounds.get(), |report| {
        let [before, now] = report.probe_iterations;
        // What cannot be shown is no reason to end.
        let _ = print_aside(&format!("round {:3}: {now:.0} iterations, {before:.0} before\n", report.rounds));
    })?;
    let seconds = started.elapsed().as_secs_f64();
    let spinner = spinner(&format!("writing {}", path.display()));
    io::write_matrix(path, &p)?;
    drop(spinner);
    let [before, now] = report.probe_iterations;
    let (name, file, size) = (options.input.name(), path.display(), bytes(std::fs::metadata(path)?.len()));
    print(&format!(
        "{name}: {} rows, {} entries\n\
         trained in {seconds:.2} s and {} rounds: a random right-hand side takes {now:.0} iterations of CG, IC(0) {before:.0}\n\
         {file}: {size}\n\
         use it: krylith solve {name} --solver cg --precond ssor --precond-matrix {file}\n",
        count(a.nrows()),
        count(a.nnz()),
        report.rounds,
    ))
}
