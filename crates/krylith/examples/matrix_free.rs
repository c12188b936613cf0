//! An operator that is never a matrix, with a matrix for its preconditioner.
//!
//! A = −Δ + c u vᵀ has a dense part of rank one; −Δ alone is sparse, and its incomplete factor is a good preconditioner.

use krylith::gallery::Problem;
use krylith::operator::LinearOperator;
use krylith::solver::{Method, PrecondSpec};
use krylith::space::{Space, Threads};
use krylith::{BackendError, Csr, Solver};

struct RankOneUpdate {
    sparse: Csr<f64>,
    u: Vec<f64>,
    v: Vec<f64>,
}

impl LinearOperator<Threads<f64>> for RankOneUpdate {
    type Scratch = ();

    fn domain(&self) -> usize {
        self.sparse.ncols()
    }

    fn range(&self) -> usize {
        self.sparse.nrows()
    }

    fn scratch(&self, _: &Threads<f64>) -> Result<(), BackendError> {
        Ok(())
    }

    fn apply(
        &self,
        space: &Threads<f64>,
        x: &Vec<f64>,
        y: &mut Vec<f64>,
        scratch: &mut (),
    ) -> Result<(), BackendError> {
        // y = (−Δ) x + u (vᵀ x)
        self.sparse.apply(space, x, y, scratch)?;
        let c = space.dot(&self.v, x)?;
        space.axpby(c, &self.u, 1.0, y)
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let sparse = "poisson3d:30".parse::<Problem>()?.generate()?;
    let n = sparse.nrows();
    let wave = |f: f64| (0..n).map(|i| 1e-2 * (f * i as f64).sin()).collect::<Vec<f64>>();
    let a = RankOneUpdate { sparse: sparse.clone(), u: wave(0.1), v: wave(0.17) };
    let b = vec![1.0; n];
    let mut x = vec![0.0; n];
    let solver = Solver::new().method(Method::Gmres(40)).preconditioner(PrecondSpec::ilu(0));
    let report = solver.prepare_with(&a, &sparse)?.solve(&a, &b, &mut x, &mut ())?;
    report.require_converged()?;
    println!("{} iterations, relative residual {:.2e}", report.iterations, report.relative_residual);
    Ok(())
}
