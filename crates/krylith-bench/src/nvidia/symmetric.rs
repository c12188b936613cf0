//! A symmetric preconditioner from `ilut`, which conjugate gradients need.
//!
//! The paper writes M = RᵀR for definite matrices, and computes factors by MKL's `dcsrilut`, whose L is not the transpose of its U where
//! entries were dropped. So R is taken from U alone: M = (I + Uᵀ) D (I + U). As a matrix P = UᵀD + D + D U that is symmetric
//! Gauss–Seidel on P, which every storage has.

use crate::Failure;
use krylith::precond::threshold::{IlutOptions, Rule, Triangles, ilut};
use krylith::{Csr, SetupError};
use std::time::Instant;

/// P of `ilut(p, tau)`, and the seconds of the factorization.
pub fn from_ilut(a: &Csr<f64>, p: usize, tau: f64) -> Result<Result<(Csr<f64>, f64), String>, Failure> {
    let started = Instant::now();
    let options = IlutOptions { rule: Rule::nvidia(a.view(), p), tau, permtol: None, max_bytes: u64::MAX };
    let triangles = match ilut(a.view(), &options) {
        Ok(triangles) => triangles,
        Err(error) => return Ok(Err(error.to_string())),
    };
    let seconds = started.elapsed().as_secs_f64();
    if let Some(row) = triangles.inverse.iter().position(|&d| d <= 0.0 || d.is_nan()) {
        let error = SetupError::BadPivot { row, value: 1.0 / triangles.inverse[row] };
        return Ok(Err(error.to_string()));
    }
    Ok(Ok((matrix(&triangles)?, seconds)))
}

fn matrix(triangles: &Triangles<f64>) -> Result<Csr<f64>, Failure> {
    let Triangles { inverse, upper, .. } = triangles;
    let mut scaled = upper.clone();
    let (row_ptr, n) = (upper.pattern().row_ptr().to_vec(), inverse.len());
    for i in 0..n {
        scaled.values_mut()[row_ptr[i]..row_ptr[i + 1]].iter_mut().for_each(|u| *u /= inverse[i]);
    }
    let lower = scaled.transpose();
    let (mut rows, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
    for i in 0..n {
        let (before, after) = (lower.row(i), scaled.row(i));
        columns.extend(before.0.iter().copied().chain([i as u32]).chain(after.0.iter().copied()));
        values.extend(before.1.iter().copied().chain([1.0 / inverse[i]]).chain(after.1.iter().copied()));
        rows.push(columns.len());
    }
    Ok(Csr::new(n, n, rows, columns, values)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use krylith::gallery::Problem;
    use krylith::{Method, PrecondSpec, Solver};

    /// Without dropping, M is A: one iteration.
    #[test]
    fn a_complete_factor_needs_one_iteration() {
        let a = "poisson2d:12".parse::<Problem>().unwrap().generate().unwrap();
        let (p, _) = from_ilut(&a, 144, 0.0).unwrap().unwrap();
        let solver = Solver::new().method(Method::Cg).preconditioner(PrecondSpec::ssor(1.0));
        let b = krylith::gallery::random_vector(144);
        let report = solver.prepare_with(&a, &p).unwrap().solve(&a, &b, &mut vec![0.0; 144]).unwrap();
        assert_eq!((report.iterations, report.outcome.name()), (1, "converged"));
    }
}
