//! Training before a solve, as Booth, Sun & Garnett do it: one random sample per step.
//!
//! Where the paper is silent: L begins as the identity; the matrix is scaled to a unit diagonal; samples are Gaussian; the loss is the sum of
//! squares, not their mean; AdaGrad's sums of squares begin at 0.1, the default of the framework that it uses. With 0 the first step of the normalised variant is
//! α = N^(3/2)/20000 in every entry, whatever the gradient.

use super::kernels::{Lanes, fill, times};
use super::model::{StepVectors, Trained};
use super::optimizer::Optimizer;
use crate::elimination::{Form, IncompleteSymbolic};
use crate::error::SetupError;
use crate::gallery::normal;
use crate::matrix::{Csr, Pattern};
use crate::precond::PrecondSpec;
use crate::scalar::Real;
use crate::schedule::Schedule;
use crate::setup::{Attempts, SetupRecorder};
use crate::space::Threads;
use std::ops::ControlFlow;
use std::sync::Arc;

/// What L is before the first step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Start {
    /// The identity: A has a unit diagonal, so this is Jacobi. It is always there.
    Identity,
    /// The incomplete Cholesky factor on the pattern, with the smallest shift of the diagonal that is found to work; the identity where there is none.
    Incomplete,
}

/// Which x the pairs (x, A x) have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Samples {
    /// Normal numbers.
    Gaussian,
    /// Normal numbers, divided by the 2-norm of the vector.
    Normalised,
}

/// How a factor is trained.
///
/// ```
/// use krylith::learn::{Training, train};
/// use krylith::{Method, PrecondSpec, Solver, gallery::Problem, space::Threads};
/// let a = "poisson2d:32".parse::<Problem>()?.generate()?;
/// let training = Training::paper(a.nrows());
/// let factor = train::<f64>(&Threads::new(2), &a, a.pattern(), &training, |_| std::ops::ControlFlow::Continue(()))?;
/// // The factor is symmetric Gauss–Seidel on a matrix of its own.
/// let solver = Solver::new().method(Method::Cg).preconditioner(PrecondSpec::ssor(1.0));
/// let report = solver.prepare_with(&a, &factor.matrix())?.solve(&a, &vec![1.0; a.nrows()], &mut vec![0.0; a.nrows()])?;
/// report.require_converged()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Training {
    /// Before the first step.
    pub start: Start,
    /// What it learns from.
    pub samples: Samples,
    /// Steps, of one sample each.
    pub steps: usize,
    /// How a step is taken.
    pub optimizer: Optimizer,
    /// Of the random numbers.
    pub seed: u64,
}

/// What AdaGrad's sums of squares begin with.
const INITIAL: f64 = 0.1;

impl Training {
    /// The paper's NN for `n` rows: √n Gaussian samples, AdaGrad with α = 0.1.
    pub fn paper(n: usize) -> Self {
        let optimizer = Optimizer::AdaGrad { alpha: 0.1, initial: INITIAL };
        Training { start: Start::Identity, samples: Samples::Gaussian, steps: root(n), optimizer, seed: 0 }
    }

    /// The paper's NNN for `n` rows: √n samples of norm 1, AdaGrad with α = n^(3/2) / 20000.
    pub fn paper_normalised(n: usize) -> Self {
        let optimizer = Optimizer::AdaGrad { alpha: (n as f64).powf(1.5) / 20_000.0, initial: INITIAL };
        Training { samples: Samples::Normalised, optimizer, ..Self::paper(n) }
    }

    /// The paper's training of L and U for `n` rows ([`train_lu`](super::train_lu)): 100 √n Gaussian samples, AdaGrad with α = 0.001.
    pub fn paper_lu(n: usize) -> Self {
        let optimizer = Optimizer::AdaGrad { alpha: 1e-3, initial: INITIAL };
        Training { steps: 100 * root(n), optimizer, ..Self::paper(n) }
    }
}

fn root(n: usize) -> usize {
    (n as f64).sqrt().ceil() as usize
}

/// A step of a training.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Progress {
    /// Its number, counted from 1.
    pub step: usize,
    /// Steps in all.
    pub steps: usize,
    /// ‖A x − L Lᵀ x‖² of its sample, before it.
    pub loss: f64,
}

/// Trains a factor of A on the lower triangle of a symmetric pattern, such as that of A. `observe` sees every step and may end the training
/// with what it has. An error where A has a diagonal entry that is not positive.
pub fn train<T: Real>(
    space: &Threads<f64>,
    a: &Csr<f64>,
    pattern: &Arc<Pattern>,
    training: &Training,
    mut observe: impl FnMut(&Progress) -> ControlFlow<()>,
) -> Result<Trained<T>, SetupError> {
    let (mut model, _) = start(space, a, pattern, training.start)?;
    model.forget(&training.optimizer);
    let a = scaled::<T>(a, model.scale());
    let n = a.nrows();
    let mut vectors = StepVectors::<T, 1>::new(n);
    let (mut x, mut y) = (vec![[T::ZERO]; n], vec![[T::ZERO]; n]);
    for k in 0..training.steps {
        sample(space, training, k, &mut x);
        multiply(space, &a, &x, &mut y);
        let loss = model.step(space, [&x, &y], (&training.optimizer, k, training.steps), &mut vectors);
        if observe(&Progress { step: k + 1, steps: training.steps, loss }).is_break() {
            break;
        }
    }
    Ok(model)
}

/// The factor before its first step, and the shift of the diagonal that it needed; infinite where no shift was enough.
pub(crate) fn start<T: Real>(
    space: &Threads<f64>,
    a: &Csr<f64>,
    pattern: &Arc<Pattern>,
    start: Start,
) -> Result<(Trained<T>, f64), SetupError> {
    let mut model = Trained::identity(pattern, &a.diagonal()?)?;
    if start == Start::Identity {
        return Ok((model, 0.0));
    }
    let shift = match incomplete(space, a, pattern)? {
        Some((p, shift)) => {
            model.set(&p);
            shift
        }
        None => f64::INFINITY,
    };
    Ok((model, shift))
}

/// The incomplete Cholesky factor on the pattern as a matrix P, and its shift; `None` if no shift gives one.
fn incomplete(
    space: &Threads<f64>,
    a: &Csr<f64>,
    pattern: &Arc<Pattern>,
) -> Result<Option<(Csr<f64>, f64)>, SetupError> {
    let symbolic =
        IncompleteSymbolic::on(Form::CHOLESKY, a.pattern(), pattern, space.threads(), Schedule::Auto)?;
    let mut factor = symbolic.allocate::<f64, f64>();
    let kind = PrecondSpec::ic(0);
    let shift = match SetupRecorder::default().factor_with(space, Attempts::new(&kind, true), a, &mut factor)
    {
        Err(SetupError::BadPivot { .. }) => return Ok(None),
        other => other?,
    };
    // M = (I + L) D (I + Lᵀ) = (D + L D) D⁻¹ (D + D Lᵀ)
    let (lower, inverse, _) = factor.parts();
    let mut p = Csr::trusted(Arc::clone(pattern), vec![0.0; pattern.nnz()]);
    let values = p.values_mut();
    let mut upper: Vec<usize> = diagonal_places(pattern).iter().map(|place| place + 1).collect();
    for i in 0..pattern.nrows() {
        let (columns, entries) = lower.row(i);
        let first = pattern.row_range(i).start;
        values[first + columns.len()] = 1.0 / inverse[i];
        for (k, (&j, &l)) in columns.iter().zip(entries).enumerate() {
            let value = l / inverse[j as usize];
            values[first + k] = value;
            values[upper[j as usize]] = value;
            upper[j as usize] += 1;
        }
    }
    Ok(Some((p, shift)))
}

fn diagonal_places(pattern: &Pattern) -> Vec<usize> {
    let place = |i: usize| pattern.row_range(i).start + pattern.row(i).partition_point(|&j| (j as usize) < i);
    (0..pattern.nrows()).map(place).collect()
}

/// A scaled to a unit diagonal.
pub(crate) fn scaled<T: Real>(a: &Csr<f64>, scale: &[f64]) -> Csr<T> {
    let row = |i: usize| {
        let (columns, values) = a.row(i);
        columns.iter().zip(values).map(move |(&j, v)| T::from_f64(v / scale[i] / scale[j as usize]))
    };
    Csr::trusted(Arc::clone(a.pattern()), (0..a.nrows()).flat_map(row).collect())
}

/// Sample `k`.
pub(crate) fn sample<T: Real>(space: &Threads<f64>, training: &Training, k: usize, x: &mut [Lanes<T, 1>]) {
    let n = x.len() as u64;
    fill(space, x, |i| [T::from_f64(normal(training.seed, k as u64 * n + i as u64))]);
    if training.samples == Samples::Normalised {
        let square = space.sum_of(x.len(), |range| x[range].iter().map(|[x]| x.to_f64() * x.to_f64()).sum());
        let factor = T::from_f64(1.0 / square.sqrt().max(f64::MIN_POSITIVE));
        x.iter_mut().for_each(|[x]| *x *= factor);
    }
}

/// y = A x for vectors side by side.
pub(crate) fn multiply<T: Real, const B: usize>(
    space: &Threads<f64>,
    a: &Csr<T>,
    x: &[Lanes<T, B>],
    y: &mut [Lanes<T, B>],
) {
    fill(space, y, |i| {
        let (columns, values) = a.row(i);
        times(columns, values, x)
    });
}
