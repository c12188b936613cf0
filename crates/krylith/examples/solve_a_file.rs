//! Solve A x = b for a matrix in a file.
//!
//! Run it with a Matrix Market, npz or PETSc file: `cargo run --release --example solve_a_file -- A.mtx`; without one it
//! writes a matrix of its own first. On the command line the same is `krylith solve A.mtx`.

use krylith::gallery::Problem;
use krylith::io;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::temp_dir();
    let path = match std::env::args().nth(1) {
        Some(path) => path.into(),
        None => {
            let path = folder.join("krylith-example.mtx");
            io::write_matrix(&path, &"fem2d:150".parse::<Problem>()?.generate()?)?;
            path
        }
    };
    let a = io::read_matrix(&path)?;
    // A right-hand side whose solution is known: all ones.
    let mut b = vec![0.0; a.nrows()];
    a.mul_vec(&vec![1.0; a.ncols()], &mut b)?;

    let solution = krylith::solve(&a, &b)?;
    let report = solution.report.require_converged()?;
    println!("{} with {} ({})", report.solver, report.preconditioner, report.choice);
    println!("{} iterations, relative residual {:.2e}", report.iterations, report.relative_residual);
    let error = solution.x.iter().map(|x| (x - 1.0).abs()).fold(0.0, f64::max);
    println!("largest error {error:.2e}");
    Ok(())
}
