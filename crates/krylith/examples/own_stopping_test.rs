//! A stopping test of one's own, which counts as convergence.
//!
//! In a Newton iteration the linear systems need not be solved to a fixed tolerance: the linear residual need only fall to η‖F‖ with
//! η = min(0.1, ‖F‖/‖F₀‖), which keeps quadratic convergence (Eisenstat & Walker 1996, doi:10.1137/0917003). The test sees the
//! residual of the recurrence at every iteration. When it says that this is enough, it is asked again with the residual recomputed
//! from A, x and b.

use krylith::Solver;
use krylith::gallery::Problem;
use krylith::observe::Iteration;

/// Points along each side of the square, and the square of their distance.
const N: usize = 200;
const H2: f64 = 1.0 / ((N + 1) * (N + 1)) as f64;

/// The residual of −Δu + 10 u³ = f on a square, times h², and its norm.
fn nonlinear(
    laplace: &krylith::Csr<f64>,
    u: &[f64],
    f: f64,
    residual: &mut [f64],
) -> Result<f64, krylith::MatrixError> {
    laplace.mul_vec(u, residual)?;
    residual.iter_mut().zip(u).for_each(|(r, u)| *r = H2 * (f - 10.0 * u.powi(3)) - *r);
    Ok(residual.iter().map(|r| r * r).sum::<f64>().sqrt())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let laplace = format!("poisson2d:{N}").parse::<Problem>()?.generate()?;
    let n = laplace.nrows();
    let (mut u, mut residual) = (vec![0.0; n], vec![0.0; n]);
    let mut norm = nonlinear(&laplace, &u, 20.0, &mut residual)?;
    let first = norm;
    let mut jacobian = laplace.clone();
    let mut prepared = Solver::new().prepare(&jacobian)?;
    let mut linear = 0;
    for step in 1..=20 {
        for i in 0..n {
            let place = laplace.pattern().find(i, i).ok_or("a full diagonal")?;
            jacobian.values_mut()[place] = laplace.values()[place] + 30.0 * H2 * u[i] * u[i];
        }
        prepared.refactor(&jacobian)?;

        // As accurate as this step of Newton's method can make use of.
        let enough = norm * (norm / first).min(0.1);
        let mut test = |at: &Iteration<f64>| at.residual_norm <= enough;
        let mut du = vec![0.0; n];
        let report = prepared.solve_until(&jacobian, &residual, &mut du, &mut test)?;
        report.require_converged()?;

        linear += report.iterations;
        u.iter_mut().zip(&du).for_each(|(u, du)| *u += du);
        norm = nonlinear(&laplace, &u, 20.0, &mut residual)?;
        println!("step {step}: {} iterations, nonlinear residual {norm:.2e}", report.iterations);
        if norm <= 1e-9 * first {
            println!("{linear} iterations altogether");
            return Ok(());
        }
    }
    Err("Newton's method has not converged".into())
}
