//! Fifty right-hand sides with one factor, on all threads.
//!
//! The columns of B stand one after the other. Each thread takes columns of its own, and every column is certified.

use krylith::Solver;
use krylith::gallery::Problem;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let a = "jump3d:40".parse::<Problem>()?.generate()?;
    let (n, count) = (a.nrows(), 50);

    // A source that moves through the domain.
    let mut b = vec![0.0; n * count];
    for (k, column) in b.chunks_mut(n).enumerate() {
        column[k * n / count] = 1.0;
    }

    let prepared = Solver::new().rtol(1e-6).prepare(&a)?;
    let mut x = vec![0.0; n * count];
    let reports = prepared.solve_many(&a, &b, &mut x)?;
    for report in &reports {
        report.require_converged()?;
    }
    let iterations: usize = reports.iter().map(|report| report.iterations).sum();
    println!("{count} solves, {iterations} iterations altogether; the last: {}", reports[count - 1]);

    // The factor is shared by reference as well: any thread may solve with it.
    let mut single = vec![0.0; n];
    std::thread::scope(|scope| {
        scope.spawn(|| prepared.solve(&a, &b[..n], &mut single).map(|report| println!("alone: {report}")));
    });
    assert_eq!(single, x[..n], "the same bits on any thread");
    Ok(())
}
