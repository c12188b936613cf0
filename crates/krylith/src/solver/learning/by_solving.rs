//! Training before a solve on the pairs of solves with random right-hand sides: what [`Learned`] does in a sequence, without waiting for one.
//!
//! It begins with IC(0), shifted if need be, or with the diagonal where that is better. The pairs weigh the modes that conjugate gradients struggle with,
//! the probe is the measure that ends it, and no factor is taken with which the probe is predicted to take longer than with the one before.

use super::online::{Learned, Learning, LearningReport};
use crate::elimination::is_symmetric;
use crate::error::{BackendError, MatrixError, SetupError, SolveError};
use crate::gallery::normal;
use crate::matrix::{Csr, Pattern, require_pattern};
use crate::observe::Iteration;
use crate::options::Method;
use crate::outcome::Outcome;
use crate::precond::PrecondSpec;
use crate::solver::Solver;
use crate::sparsify::{Sparsified, Sparsify, with_partner};
use crate::training::model::require_positive;
use crate::transform::Ordering;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Trains a factor on the pattern of a symmetric positive definite A in at most so many rounds, each after a solve with the options of `solver`. The
/// matrix P whose symmetric Gauss–Seidel it is ([the module](crate::learn)), and what the training took. `observe` sees every round, and is asked in every
/// iteration of the solves between them whether to go on: after `Break` the best factor so far is returned, trained in [`LearningReport::rounds`] rounds.
///
/// ```
/// use krylith::learn::train_by_solving;
/// use krylith::{Method, PrecondSpec, Solver, gallery::{Problem, random_vector}};
/// use std::ops::ControlFlow;
/// let a = "fem2d:40".parse::<Problem>()?.generate()?;
/// let solver = Solver::new().method(Method::Cg);
/// let (p, report) = train_by_solving(&solver, &a, 6, |_| ControlFlow::Continue(()))?;
/// println!("{report}");
/// let (b, mut x) = (random_vector(a.nrows()), vec![0.0; a.nrows()]);
/// let trained = solver.clone().preconditioner(PrecondSpec::ssor(1.0)).prepare_with(&a, &p)?.solve(&a, &b, &mut x)?;
/// x.fill(0.0);
/// let plain = solver.preconditioner(PrecondSpec::ic(0)).prepare(&a)?.solve(&a, &b, &mut x)?;
/// assert!(trained.iterations < plain.iterations);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn train_by_solving(
    solver: &Solver,
    a: &Csr<f64>,
    rounds: usize,
    mut observe: impl FnMut(&LearningReport) -> ControlFlow<()>,
) -> Result<(Csr<f64>, LearningReport), SolveError> {
    a.pattern().require_square().map_err(SetupError::from)?;
    if a.asymmetry() > ROUNDING {
        return Err(BackendError::Unsupported { what: "training a factor: it is not symmetric" }.into());
    }
    let paired = (!is_symmetric(a.pattern())).then(|| paired(a)).transpose().map_err(SetupError::from)?;
    let a = paired.as_ref().unwrap_or(a);
    let solver = solver.clone().method(Method::Cg).preconditioner(PrecondSpec::ic(0));
    let solver = solver.sparsify(Sparsify::Off).reorder(Ordering::Natural).recover(true).shift(0.0);
    let learning = Learning { rounds, share: f64::INFINITY, ..Learning::default() };
    let mut sequence = Learned::new(&solver, a, learning)?;
    let n = a.nrows();
    let (mut b, mut x) = (vec![0.0; n], vec![0.0; n]);
    for k in 0..rounds {
        b.iter_mut().enumerate().for_each(|(i, b)| *b = normal(SEED + k as u64, i as u64));
        x.fill(0.0);
        // Its directions are what is wanted, whether or not it converges.
        let before = *sequence.report();
        let mut asked = |_: &Iteration<f64>| observe(&before);
        if sequence.solve_observed(a, &b, &mut x, &mut asked)?.outcome == Outcome::Interrupted {
            break;
        }
        sequence.learn(a)?;
        if observe(sequence.report()).is_break() || sequence.report().finished {
            break;
        }
    }
    let best = sequence.best().expect("nothing runs beside");
    Ok((best.matrix(), *sequence.report()))
}

/// A without the entries that have none across the diagonal: zeros or rounding errors, if it is symmetric.
pub fn paired(a: &Csr<f64>) -> Result<Csr<f64>, MatrixError> {
    a.pattern().require_square()?;
    Ok(Sparsified::new(a, with_partner(a)).matrix().clone())
}

/// A matrix is symmetric if it is so up to this.
const ROUNDING: f64 = 1e-8;
/// Of the right-hand sides.
const SEED: u64 = 1;

/// A trained factor's P, and the diagonal of the A that it was trained for.
#[derive(Debug, Clone)]
pub(crate) struct TrainedMatrix {
    p: Csr<f64>,
    /// Of A.
    pattern: Arc<Pattern>,
    diagonal: Vec<f64>,
}

impl TrainedMatrix {
    pub(crate) fn new(p: Csr<f64>, a: &Csr<f64>) -> Result<Self, SetupError> {
        Ok(TrainedMatrix { p, pattern: Arc::clone(a.pattern()), diagonal: a.diagonal()? })
    }

    pub(crate) fn matrix(&self) -> &Csr<f64> {
        &self.p
    }

    pub(crate) fn bytes(&self) -> usize {
        self.p.bytes() + 8 * self.diagonal.len()
    }

    /// The same factor in the units of another matrix of the pattern, whose diagonal has to be positive.
    pub(crate) fn set(&mut self, a: &Csr<f64>) -> Result<(), SetupError> {
        require_pattern(&self.pattern, a.pattern())?;
        let new = a.diagonal()?;
        require_positive(&new)?;
        let change: Vec<f64> = new.iter().zip(&self.diagonal).map(|(new, old)| (new / old).sqrt()).collect();
        let pattern = self.p.pattern().clone();
        let values = self.p.values_mut();
        for i in 0..pattern.nrows() {
            for (value, &j) in values[pattern.row_range(i)].iter_mut().zip(pattern.row(i)) {
                *value *= change[i] * change[j as usize];
            }
        }
        self.diagonal = new;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gallery::Problem;

    /// A zero on one side only.
    #[test]
    fn a_symmetric_matrix_may_have_a_pattern_that_is_not() {
        let a = Csr::from_triplets(
            3,
            3,
            &[0, 0, 1, 1, 2, 2],
            &[0, 1, 0, 1, 2, 0],
            &[4.0, 1.0, 1.0, 3.0, 2.0, 0.0],
        );
        let a = a.unwrap();
        assert_eq!((a.nnz(), paired(&a).unwrap().nnz()), (6, 5));
        let (p, _) = train_by_solving(&Solver::new(), &a, 1, |_| ControlFlow::Continue(())).unwrap();
        assert_eq!(p.get(0, 0), 4.0);
        let solver = Solver::new().method(Method::Cg).preconditioner(PrecondSpec::learned(1));
        let mut prepared = solver.prepare(&a).unwrap();
        prepared.refactor(&a).unwrap();
        let report = prepared.solve(&a, &[1.0, 2.0, 3.0], &mut [0.0; 3]).unwrap();
        report.require_converged().unwrap();
    }

    #[test]
    fn a_factor_follows_the_units_of_the_matrix() {
        let a = "poisson2d:5".parse::<Problem>().unwrap().generate().unwrap();
        let mut scaled = a.clone();
        let factor = |i: usize| 1.0 + i as f64;
        for i in 0..25 {
            for place in a.pattern().row_range(i) {
                scaled.values_mut()[place] *= factor(i) * factor(a.pattern().col_idx()[place] as usize);
            }
        }
        let mut trained = TrainedMatrix::new(a.clone(), &a).unwrap();
        trained.set(&scaled).unwrap();
        let close = |(x, y): (&f64, &f64)| (x - y).abs() <= 1e-14 * y.abs();
        assert!(trained.matrix().values().iter().zip(scaled.values()).all(close));
        scaled.values_mut()[0] = 0.0;
        assert!(matches!(trained.set(&scaled), Err(SetupError::BadPivot { row: 0, .. })));
    }
}
