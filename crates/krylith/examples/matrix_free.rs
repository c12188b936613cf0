//! An operator that is never a matrix, and borrows its mesh.
//!
//! A = −Δ + u vᵀ has a dense part of rank one; −Δ alone is sparse, and its incomplete factor is a good preconditioner.

use krylith::gallery::Problem;
use krylith::operator::FnOperator;
use krylith::{Csr, Method, PrecondSpec, Solver};

/// What a simulation has: it lends it to the operator.
struct Mesh {
    laplace: Csr<f64>,
    u: Vec<f64>,
    v: Vec<f64>,
}

impl Mesh {
    /// y = (−Δ) x + u (vᵀ x).
    fn multiply(&self, x: &[f64], y: &mut [f64]) {
        self.laplace.mul_vec(x, y).expect("vectors have the length of the mesh");
        let c: f64 = self.v.iter().zip(x).map(|(v, x)| v * x).sum();
        y.iter_mut().zip(&self.u).for_each(|(y, u)| *y += c * u);
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let laplace = "poisson3d:30".parse::<Problem>()?.generate()?;
    let n = laplace.nrows();
    let wave = |f: f64| (0..n).map(|i| 1e-2 * (f * i as f64).sin()).collect::<Vec<f64>>();
    let mesh = Mesh { laplace, u: wave(0.1), v: wave(0.17) };
    let a = FnOperator::new(n, |x: &[f64], y: &mut [f64]| mesh.multiply(x, y));
    let (b, mut x) = (vec![1.0; n], vec![0.0; n]);

    // Products alone.
    let gmres = Solver::new().method(Method::Gmres(40));
    let plain = gmres.prepare_operator(&a)?.solve(&a, &b, &mut x)?;
    plain.require_converged()?;

    // With a matrix that is near enough for a preconditioner.
    x.fill(0.0);
    let gmres = gmres.preconditioner(PrecondSpec::ilu(0));
    let report = gmres.prepare_with(&a, &mesh.laplace)?.solve(&a, &b, &mut x)?;
    report.require_converged()?;
    println!("{plain}\n{report}");
    Ok(())
}
