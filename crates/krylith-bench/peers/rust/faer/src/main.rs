//! faer: its CG and BiCGStab with Jacobi, and its product with a matrix by rows.
//!
//! The initial guess is declared as possibly nonzero: with `InitialGuessStatus::Zero`, CG of faer 0.24 reads a residual that
//! it has not written.

use faer::dyn_stack::{MemBuffer, MemStack};
use faer::matrix_free::bicgstab::{BicgParams, bicgstab, bicgstab_scratch};
use faer::matrix_free::conjugate_gradient::{CgParams, conjugate_gradient, conjugate_gradient_scratch};
use faer::matrix_free::{IdentityPrecond, InitialGuessStatus};
use faer::sparse::linalg::matmul::sparse_dense_matmul;
use faer::sparse::{SparseRowMatRef, SymbolicSparseRowMatRef};
use faer::{Accum, Mat, Par};
use peer_common::{Csr, Solved, Task, least_seconds, timed};
use serde_json::json;

const VERSION: &str = "0.24";

fn main() -> Result<(), String> {
    let task = Task::read()?;
    let csr = Csr::read(&task.file)?;
    rayon::ThreadPoolBuilder::new().num_threads(task.threads).build_global().map_err(|e| e.to_string())?;
    let par = if task.threads > 1 { Par::rayon(task.threads) } else { Par::Seq };
    let (import, row_ptr) = timed(|| csr.row_ptr.iter().map(|&p| p as u32).collect::<Vec<u32>>());
    let pattern = SymbolicSparseRowMatRef::new_checked(csr.n, csr.n, &row_ptr, None, &csr.col_idx);
    let a = SparseRowMatRef::<u32, f64>::new(pattern, &csr.values);
    let right = csr.right_hand_side();
    let b = Mat::<f64>::from_fn(csr.n, 1, |i, _| right[i]);
    if task.kernels {
        let mut y = Mat::<f64>::zeros(csr.n, 1);
        let spmv =
            least_seconds(|| sparse_dense_matmul(y.as_mut(), Accum::Replace, a, b.as_ref(), 1.0, par));
        task.print_kernels("faer", VERSION, json!({ "spmv": spmv }));
        return Ok(());
    }
    let (setup, inverse) = timed(|| jacobi(&csr, &task));
    let inverse = inverse?;
    let m = faer::diag::DiagRef::from_slice(&inverse);
    let mut x = Mat::<f64>::zeros(csr.n, 1);
    let (solve, ended) = timed(|| match task.method.as_str() {
        "cg" => {
            let mut params = CgParams::<f64>::default();
            params.rel_tolerance = task.rtol;
            params.max_iters = task.max_iterations;
            params.initial_guess = InitialGuessStatus::MaybeNonZero;
            let mut memory = MemBuffer::new(conjugate_gradient_scratch(m, a, 1, par));
            let stack = MemStack::new(&mut memory);
            let result = conjugate_gradient(x.as_mut(), m, a, b.as_ref(), params, |_| {}, par, stack);
            Ok(result.map(|info| info.iter_count).map_err(|e| format!("{e:?}")))
        }
        "bicgstab" => {
            let mut params = BicgParams::<f64>::default();
            params.rel_tolerance = task.rtol;
            params.max_iters = task.max_iterations;
            params.initial_guess = InitialGuessStatus::MaybeNonZero;
            let right = IdentityPrecond { dim: csr.n };
            let mut memory = MemBuffer::new(bicgstab_scratch(m, right, a, 1, par));
            let stack = MemStack::new(&mut memory);
            let result = bicgstab(x.as_mut(), m, right, a, b.as_ref(), params, |_| {}, par, stack);
            Ok(result.map(|info| info.iter_count).map_err(|e| format!("{e:?}")))
        }
        other => Err(format!("methods: cg, bicgstab; not {other}")),
    });
    let (iterations, status) = match ended? {
        Ok(iterations) => (iterations, "converged".into()),
        Err(error) => (task.max_iterations, error),
    };
    let residual = csr.relative_residual(x.col_as_slice(0));
    let solved = Solved { import, setup, solve, iterations, residual, rhs: csr.rhs(), status };
    task.print_solved("faer", VERSION, &solved);
    Ok(())
}

/// 1 / aᵢᵢ.
fn jacobi(csr: &Csr, task: &Task) -> Result<Vec<f64>, String> {
    if task.preconditioner != "jacobi" {
        return Err("preconditioners: jacobi".into());
    }
    let diagonal = |i: usize| {
        let row = csr.row_ptr[i]..csr.row_ptr[i + 1];
        row.into_iter().find(|&k| csr.col_idx[k] as usize == i).map(|k| 1.0 / csr.values[k])
    };
    (0..csr.n).map(|i| diagonal(i).ok_or(format!("row {i} has no diagonal entry"))).collect()
}
