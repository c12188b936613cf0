//! The heat equation ∂u/∂t = κ(t) Δu in implicit steps: one pattern, new values in every step.
//!
//! Analysis and workspace are made once; every step refactors in place and starts from the last answer. A step that forgets to
//! refactor is refused: the factor knows which values it was made from. `allow_stale_factor(true)` permits an old factor
//! where it is good enough.

use krylith::gallery::Problem;
use krylith::{Csr, SolveError, Solver};

/// I + dt κ(t) (−Δ) on the pattern of −Δ.
fn step_matrix(laplacian: &Csr<f64>, t: f64, a: &mut Csr<f64>) {
    let factor = 5.0 * (1.0 + 0.5 * t.sin());
    for i in 0..laplacian.nrows() {
        let range = laplacian.pattern().row_range(i);
        for k in range {
            let diagonal = laplacian.pattern().col_idx()[k] as usize == i;
            a.values_mut()[k] = factor * laplacian.values()[k] + f64::from(u8::from(diagonal));
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let laplacian = "poisson2d:120".parse::<Problem>()?.generate()?;
    let mut a = laplacian.clone();
    step_matrix(&laplacian, 0.0, &mut a);
    let solver = Solver::new().rtol(1e-10);
    let mut prepared = solver.prepare(&a)?;

    // A hot spot in the middle.
    let n = a.nrows();
    let mut u = vec![0.0; n];
    u[n / 2 + 60] = 1.0;
    let mut total = 0;
    for step in 0..20 {
        step_matrix(&laplacian, f64::from(step) * 0.3, &mut a);
        let old = u.clone();
        if step == 1 {
            let forgotten = prepared.solve(&a, &old, &mut u);
            assert_eq!(forgotten.map(|_| ()), Err(SolveError::StaleFactor));
        }
        prepared.refactor(&a)?;
        let report = prepared.solve(&a, &old, &mut u)?;
        report.require_converged()?;
        total += report.iterations;
    }
    let heat: f64 = u.iter().sum();
    let hottest = u.iter().copied().fold(0.0, f64::max);
    println!("20 steps, {total} iterations in all; heat left {heat:.4}, hottest point {hottest:.4}");
    // One more step with the factor of the step before: perhaps more iterations, the same tolerance.
    let kept = solver.allow_stale_factor(true).prepare(&a)?;
    step_matrix(&laplacian, 1.5, &mut a);
    let mut v = vec![0.0; n];
    kept.solve(&a, &u, &mut v)?.require_converged()?;
    // Heat only leaves through the boundary, and the hottest point cools.
    assert!(heat < 1.0 + 1e-9 && heat > 0.0 && hottest < 0.1);
    Ok(())
}
