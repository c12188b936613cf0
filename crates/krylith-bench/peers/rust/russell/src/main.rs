//! russell_sparse: its iterative solver, CG, BiCGStab or GMRES with the algebraic multigrid of AMGCL rewritten in Rust.

use peer_common::{Csr, Solved, Task, timed};
use russell_lab::Vector;
use russell_sparse::prelude::*;
use russell_sparse::{AmgCoarsening, AmgSmoother, IterativeMethod, Preconditioner, SolverIterative};

const VERSION: &str = "5.1";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let task = Task::read()?;
    if task.kernels {
        return Err("single operations are not measured".into());
    }
    let csr = Csr::read(&task.file)?;
    let b = csr.right_hand_side();
    let (import, coo) = timed(|| triplets(&csr, task.method == "cg"));
    let coo = coo?;
    let method = match task.method.as_str() {
        "cg" => IterativeMethod::Cg,
        "bicgstab" => IterativeMethod::BiCgStab,
        "gmres" => IterativeMethod::Gmres,
        _ => return Err("methods: cg, bicgstab, gmres".into()),
    };
    let params = parameters(&task)?;
    let mut solver = SolverIterative::new(method)?;
    let (setup, ready) = timed(|| solver.preprocess(&coo, Some(params)));
    ready?;
    let (right, mut x) = (Vector::from(&b), Vector::new(csr.n));
    let (solve, ended) = timed(|| solver.solve(&mut x, &right, false));
    let mut stats = StatsLinSol::new();
    solver.update_stats(&mut stats);
    let counts = stats.iterative.as_ref().and_then(|s| s.iterations_array.last().copied());
    let status = ended.map_or_else(|error| error.to_string(), |()| "converged".into());
    let residual = csr.relative_residual(x.as_data());
    let iterations = counts.map_or(0, |count| count as usize);
    let rhs = csr.rhs();
    task.print_solved("russell", VERSION, &Solved { import, setup, solve, iterations, residual, rhs, status });
    Ok(())
}

fn triplets(csr: &Csr, symmetric: bool) -> Result<CooMatrix, &'static str> {
    let kind = if symmetric { Sym::YesFull } else { Sym::No };
    let mut coo = CooMatrix::new(csr.n, csr.n, csr.values.len(), kind)?;
    for i in 0..csr.n {
        for k in csr.row_ptr[i]..csr.row_ptr[i + 1] {
            coo.put(i, csr.col_idx[k] as usize, csr.values[k])?;
        }
    }
    Ok(coo)
}

fn parameters(task: &Task) -> Result<LinSolParams, String> {
    let mut params = LinSolParams::new();
    let own = &mut params.iterative;
    own.tolerance = task.rtol;
    own.max_iterations = task.max_iterations;
    own.num_threads = task.threads;
    own.amg_coarsening = AmgCoarsening::SmoothedAggregation;
    own.amg_smoother = match task.preconditioner.as_str() {
        "sa-spai0" => AmgSmoother::Spai0,
        "sa-ilu0" => AmgSmoother::Ilu0,
        "sa-gs" => AmgSmoother::GaussSeidel,
        "none" => {
            own.preconditioner = Preconditioner::Identity;
            AmgSmoother::Spai0
        }
        _ => return Err("preconditioners: sa-spai0, sa-ilu0, sa-gs, none".into()),
    };
    Ok(params)
}
