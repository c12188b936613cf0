//! A preconditioner of one's own: two terms of the Neumann series, M⁻¹ = D⁻¹ (2 I − A D⁻¹).
//!
//! A recipe analyzes a pattern, factors matrices of that pattern and refactors in place. Given to the solver it is reordered,
//! certified, recovered from and reported as the library's own are.

use krylith::gallery::Problem;
use krylith::operator::{LinearOperator, Preconditioner, Recipe, Symbolic};
use krylith::space::Threads;
use krylith::{BackendError, Csr, PrecondSpec, SetupError, Solver};

/// The recipe.
pub struct Neumann;

/// A and the inverse of its diagonal.
pub struct Terms {
    a: Csr<f64>,
    inverse: Vec<f64>,
}

impl Recipe<Threads<f64>, Csr<f64>> for Neumann {
    type Symbolic = Neumann;

    fn analyze(&self, _: &Threads<f64>, _: &Csr<f64>) -> Result<Neumann, SetupError> {
        Ok(Neumann)
    }
}

impl Symbolic<Threads<f64>, Csr<f64>> for Neumann {
    type Factor = Terms;

    fn factor(&self, space: &Threads<f64>, a: &Csr<f64>) -> Result<Terms, SetupError> {
        let mut terms = Terms { a: a.clone(), inverse: vec![0.0; a.nrows()] };
        terms.refactor(space, a)?;
        Ok(terms)
    }
}

impl Preconditioner<Threads<f64>, Csr<f64>> for Terms {
    fn refactor(&mut self, _: &Threads<f64>, a: &Csr<f64>) -> Result<(), SetupError> {
        self.a = a.clone();
        for (row, inverse) in self.inverse.iter_mut().enumerate() {
            match a.get(row, row) {
                0.0 => return Err(SetupError::BadPivot { row, value: 0.0 }),
                diagonal => *inverse = 1.0 / diagonal,
            }
        }
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.a.bytes() + 8 * self.inverse.len()
    }
}

impl LinearOperator<Threads<f64>> for Terms {
    type Scratch = Vec<f64>;

    fn domain(&self) -> usize {
        self.inverse.len()
    }

    fn range(&self) -> usize {
        self.inverse.len()
    }

    fn scratch(&self, _: &Threads<f64>) -> Result<Vec<f64>, BackendError> {
        Ok(vec![0.0; self.inverse.len()])
    }

    /// y = D⁻¹ (2 x − A D⁻¹ x).
    fn apply(
        &self,
        space: &Threads<f64>,
        x: &Vec<f64>,
        y: &mut Vec<f64>,
        scaled: &mut Vec<f64>,
    ) -> Result<(), BackendError> {
        scaled.iter_mut().zip(x).zip(&self.inverse).for_each(|((s, x), d)| *s = x * d);
        self.a.apply(space, scaled, y, &mut ())?;
        y.iter_mut().zip(x).zip(&self.inverse).for_each(|((y, x), d)| *y = d * (2.0 * x - *y));
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let a = "poisson3d:40".parse::<Problem>()?.generate()?;
    let b = vec![1.0; a.nrows()];
    let neumann = Solver::new().own_preconditioner("neumann", Neumann).solve(&a, &b)?.report;
    neumann.require_converged()?;
    let jacobi = Solver::new().preconditioner(PrecondSpec::jacobi()).solve(&a, &b)?.report;
    println!("{neumann}\n{jacobi}");
    assert!(neumann.iterations < jacobi.iterations);
    Ok(())
}
