//! L and U of a matrix that is not symmetric, trained as L Lᵀ is.
//!
//!   z = U x;  e = L z − y;  w = Lᵀ e;  ∂‖e‖²/∂lᵢⱼ = 2 eᵢ zⱼ;  ∂‖e‖²/∂uᵢⱼ = 2 wᵢ xⱼ
//!
//! L has the pattern of the lower triangle of A, U that of the upper, both with a diagonal of their own. A is scaled to a unit diagonal by √aᵢᵢ in rows and
//! columns, so its diagonal has to be positive; both factors begin as the identity. As a matrix P with
//! (D + L̂) D⁻¹ (D + Û) = L U: dᵢ = lᵢᵢ uᵢᵢ, l̂ᵢⱼ = lᵢⱼ uⱼⱼ, ûᵢⱼ = lᵢᵢ uᵢⱼ.

use super::kernels::{Lanes, dot, fill, update};
use super::model::{
    Half, StepVectors, bounded, half, require_countable, require_positive, transposed_places,
};
use super::optimizer::Optimizer;
use super::train::{Progress, Training, multiply, sample, scaled};
use crate::error::SetupError;
use crate::matrix::{Csr, Pattern, require_diagonal};
use crate::scalar::Real;
use crate::space::Threads;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Factors L U of A scaled to a unit diagonal, trained or about to be.
#[derive(Debug, Clone)]
pub struct TrainedLu<T = f64> {
    pattern: Arc<Pattern>,
    /// √aᵢᵢ, the unit of row and column i.
    scale: Vec<f64>,
    /// By rows, the diagonal last.
    lower: Half<T>,
    /// By rows, the diagonal first.
    upper: Half<T>,
    /// Lᵀ by rows.
    transposed: Half<T>,
    /// The place in `lower` of every entry of `transposed`.
    places: Vec<u32>,
    /// Two numbers of the optimizer for every entry of L, and of U.
    moments: [[Vec<T>; 2]; 2],
    /// The mean of the second of them, of L and of U.
    mean_squares: [f64; 2],
}

/// Trains L U ≈ A by the paper's method. `observe` sees every step and may end the training with what it has. An error where A has a diagonal entry that
/// is not positive.
///
/// ```
/// use krylith::learn::{Training, train_lu};
/// use krylith::{Method, PrecondSpec, Solver, gallery::Problem, space::Threads};
/// let a = "convection3d:8".parse::<Problem>()?.generate()?;
/// let training = Training::paper_lu(a.nrows());
/// let factor = train_lu::<f64>(&Threads::new(2), &a, &training, |_| std::ops::ControlFlow::Continue(()))?;
/// let solver = Solver::new().method(Method::Gmres(50)).preconditioner(PrecondSpec::ssor(1.0));
/// let report = solver.prepare_with(&a, &factor.matrix())?.solve(&a, &vec![1.0; a.nrows()], &mut vec![0.0; a.nrows()])?;
/// report.require_converged()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn train_lu<T: Real>(
    space: &Threads<f64>,
    a: &Csr<f64>,
    training: &Training,
    mut observe: impl FnMut(&Progress) -> ControlFlow<()>,
) -> Result<TrainedLu<T>, SetupError> {
    let mut model = TrainedLu::identity(a, &training.optimizer)?;
    let a = scaled::<T>(a, &model.scale);
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

impl<T: Real> TrainedLu<T> {
    fn identity(a: &Csr<f64>, optimizer: &Optimizer) -> Result<Self, SetupError> {
        let pattern = a.pattern();
        require_diagonal(pattern)?;
        let diagonal = a.diagonal()?;
        require_positive(&diagonal)?;
        require_countable(a.nnz())?;
        let (lower, upper) = (half(pattern, true), half(pattern, false));
        let transposed = half(&pattern.transpose(), false);
        let places = transposed_places(&lower, &transposed);
        let moments = |half: &Half<T>| {
            let start = vec![optimizer.initial(); half.values.len()];
            [start.clone(), start]
        };
        Ok(TrainedLu {
            pattern: Arc::clone(pattern),
            scale: diagonal.iter().map(|d| d.sqrt()).collect(),
            moments: [moments(&lower), moments(&upper)],
            mean_squares: [0.0; 2],
            lower,
            upper,
            transposed,
            places,
        })
    }

    /// One step towards y = L U x, of `steps`; ‖y − L U x‖² before it.
    fn step<const B: usize>(
        &mut self,
        space: &Threads<f64>,
        [x, y]: [&[Lanes<T, B>]; 2],
        (optimizer, k, steps): (&Optimizer, usize, usize),
        vectors: &mut StepVectors<T, B>,
    ) -> f64 {
        let StepVectors { z, e, w } = vectors;
        let TrainedLu {
            lower, upper, transposed, places, moments: [of_lower, of_upper], mean_squares, ..
        } = self;
        fill(space, z, |i| upper.times(i, x));
        fill(space, e, |i| {
            let (mut e, y) = (lower.times(i, z), &y[i]);
            e.iter_mut().zip(y).for_each(|(e, &y)| *e -= y);
            e
        });
        fill(space, w, |i| transposed.times(i, e));
        let loss = space.sum_of(e.len(), |range| e[range].iter().map(|e| dot(e, e).to_f64()).sum());
        let halves = [(lower, of_lower, &e[..], &z[..]), (upper, of_upper, &w[..], x)];
        for ((half, [first, second], left, right), mean_square) in halves.into_iter().zip(mean_squares) {
            let rule = optimizer.rule::<T>((k, steps), 0, *mean_square);
            let Half { row_ptr, columns, values } = half;
            update(space, rule, row_ptr, [values, first, second], |i, place| {
                T::from_f64(2.0) * dot(&left[i], &right[columns[place] as usize])
            });
            *mean_square = optimizer.mean_square(space, second);
        }
        let values = &self.lower.values;
        fill(space, &mut self.transposed.values, |k| values[places[k] as usize]);
        loss
    }

    /// The matrix P whose symmetric Gauss–Seidel (`ssor`) is L U, for A as given.
    pub fn matrix(&self) -> Csr<f64> {
        let n = self.scale.len();
        let l: Vec<f64> =
            (0..n).map(|i| bounded(self.lower.values[self.lower.row_ptr[i + 1] - 1].to_f64())).collect();
        let u: Vec<f64> =
            (0..n).map(|i| bounded(self.upper.values[self.upper.row_ptr[i]].to_f64())).collect();
        let mut values = vec![0.0; self.pattern.nnz()];
        for i in 0..n {
            let range = self.pattern.row_range(i);
            let (lower, upper) = (self.lower.row(i).1, self.upper.row(i).1);
            let row = lower[..lower.len() - 1].iter().chain(upper);
            for ((value, &entry), &j) in values[range].iter_mut().zip(row).zip(self.pattern.row(i)) {
                let j = j as usize;
                let entry = match j.cmp(&i) {
                    std::cmp::Ordering::Less => entry.to_f64() * u[j],
                    std::cmp::Ordering::Equal => l[i] * u[i],
                    std::cmp::Ordering::Greater => l[i] * entry.to_f64(),
                };
                *value = self.scale[i] * entry * self.scale[j];
            }
        }
        Csr::trusted(Arc::clone(&self.pattern), values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gallery::{Problem, random_vector};

    fn dense<T: Real>(half: &Half<T>, i: usize, j: usize) -> f64 {
        let (columns, values) = half.row(i);
        columns.iter().position(|&c| c as usize == j).map_or(0.0, |k| values[k].to_f64())
    }

    fn model(a: &Csr<f64>, optimizer: &Optimizer) -> TrainedLu<f64> {
        let mut model = TrainedLu::identity(a, optimizer).unwrap();
        let random = random_vector(2 * a.nnz());
        model.lower.values.iter_mut().zip(&random).for_each(|(v, r)| *v += 0.3 * r);
        model.upper.values.iter_mut().zip(&random[a.nnz()..]).for_each(|(v, r)| *v += 0.3 * r);
        for (value, &place) in model.transposed.values.iter_mut().zip(&model.places) {
            *value = model.lower.values[place as usize];
        }
        model
    }

    /// Of another pattern above the diagonal than below.
    fn matrix() -> Csr<f64> {
        Csr::new(
            4,
            4,
            vec![0, 3, 5, 8, 10],
            vec![0, 1, 3, 1, 2, 0, 2, 3, 1, 3],
            vec![4.0, -1.0, 0.5, 5.0, 1.0, -2.0, 3.0, 1.0, 0.5, 9.0],
        )
        .unwrap()
    }

    fn loss(model: &TrainedLu<f64>, x: &[f64], y: &[f64]) -> f64 {
        let z: Vec<f64> = (0..4).map(|i| (0..4).map(|j| dense(&model.upper, i, j) * x[j]).sum()).collect();
        let row = |i: usize| (0..4).map(|j| dense(&model.lower, i, j) * z[j]).sum::<f64>() - y[i];
        (0..4).map(|i| row(i).powi(2)).sum()
    }

    #[test]
    fn gradients_are_those_of_the_loss() {
        let (a, optimizer) = (matrix(), Optimizer::AdaGrad { alpha: 1e-3, initial: 1e12 });
        let before = model(&a, &optimizer);
        let mut after = before.clone();
        let (x, y) = (random_vector(4), random_vector(8)[4..].to_vec());
        let lanes = |x: &[f64]| x.iter().map(|&x| [x]).collect::<Vec<_>>();
        let samples = [lanes(&x), lanes(&y)];
        let space = Threads::new(2);
        let found =
            after.step(&space, [&samples[0], &samples[1]], (&optimizer, 0, 1), &mut StepVectors::new(4));
        assert!((found - loss(&before, &x, &y)).abs() < 1e-12 * found);
        for upper in [false, true] {
            let of = |model: &mut TrainedLu<f64>, k: usize, by: f64| {
                let half = if upper { &mut model.upper } else { &mut model.lower };
                half.values[k] += by;
                half.values[k]
            };
            for k in 0..if upper { before.upper.values.len() } else { before.lower.values.len() } {
                let moved = |by: f64| {
                    let mut model = before.clone();
                    of(&mut model, k, by);
                    loss(&model, &x, &y)
                };
                let difference = (moved(1e-5) - moved(-1e-5)) / 2e-5;
                let gradient = (of(&mut before.clone(), k, 0.0) - of(&mut after.clone(), k, 0.0)) * 1e9;
                assert!((gradient - difference).abs() < 1e-4 * (1.0 + difference.abs()), "{upper} {k}");
            }
        }
    }

    #[test]
    fn the_matrix_has_the_factors_as_its_gauss_seidel() {
        let (a, optimizer) = (matrix(), Optimizer::AdaGrad { alpha: 0.1, initial: 0.1 });
        let model = model(&a, &optimizer);
        let p = model.matrix();
        for i in 0..4 {
            for j in 0..4 {
                let own: f64 = (0..=i.min(j)).map(|k| p.get(i, k) * p.get(k, j) / p.get(k, k)).sum();
                let l_u: f64 = (0..4).map(|k| dense(&model.lower, i, k) * dense(&model.upper, k, j)).sum();
                assert!((own - model.scale[i] * l_u * model.scale[j]).abs() < 1e-12, "{i} {j}");
            }
        }
    }

    #[test]
    fn training_reduces_the_loss_and_a_bad_diagonal_is_refused() {
        let a = "convection3d:7".parse::<Problem>().unwrap().generate().unwrap();
        let mut losses = Vec::new();
        let training = Training::paper_lu(a.nrows());
        train_lu::<f32>(&Threads::new(1), &a, &training, |progress| {
            losses.push(progress.loss);
            ControlFlow::Continue(())
        })
        .unwrap();
        assert_eq!(losses.len(), 1900);
        let sum = |range: std::ops::Range<usize>| losses[range].iter().sum::<f64>();
        // With steps of 0.001 entries move by a tenth at most.
        let (first, last) = (sum(0..100), sum(1800..1900));
        assert!(last < 0.9 * first, "{first} {last}");
        let mut bad = matrix();
        bad.values_mut()[3] = -1.0;
        let found = TrainedLu::<f64>::identity(&bad, &training.optimizer);
        assert!(matches!(found, Err(SetupError::BadPivot { row: 1, .. })));
    }
}
