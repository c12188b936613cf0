//! L on its pattern, and a step of its training.
//!
//!   z = Lᵀ x;  e = L z − y;  w = Lᵀ e;  ∂‖e‖²/∂lᵢⱼ = 2 (eᵢ zⱼ + xᵢ wⱼ)
//!
//! The gradient is taken at the entries of L alone: two dense products of vectors, sampled at the pattern (SDDMM). Several samples stand side by
//! side, so that an entry is read once for all of them. Lᵀ is a copy by rows, which follows every step.
//!
//! Storage: L twice, two numbers of the optimizer per entry, five vectors per sample.

use super::kernels::{Lanes, dot, fill, sum, times, update};
use super::optimizer::Optimizer;
use crate::elimination::require_symmetric;
use crate::error::{BackendError, SetupError};
use crate::matrix::{Csr, Pattern, require_diagonal};
use crate::scalar::Real;
use crate::space::Threads;
use std::sync::Arc;

/// The least size of a diagonal entry of a factor, in its units: M can be inverted, or is definite, as long as none of them is zero.
const LEAST_DIAGONAL: f64 = 1e-4;

/// A diagonal entry that can be divided by.
pub(crate) fn bounded(l: f64) -> f64 {
    if l.abs() < LEAST_DIAGONAL || l.is_nan() { LEAST_DIAGONAL } else { l }
}

/// `Err(BadPivot)` with the first diagonal entry that is not positive.
pub(crate) fn require_positive(diagonal: &[f64]) -> Result<(), SetupError> {
    match diagonal.iter().enumerate().find(|&(_, &d)| !(d > 0.0 && d.is_finite())) {
        Some((row, &value)) => Err(SetupError::BadPivot { row, value }),
        None => Ok(()),
    }
}

/// Places of entries are 32-bit numbers.
pub(crate) fn require_countable(entries: usize) -> Result<(), SetupError> {
    match u32::try_from(entries) {
        Ok(_) => Ok(()),
        Err(_) => Err(BackendError::Unsupported { what: "training more than 2³² entries" }.into()),
    }
}

/// A factor L Lᵀ of A scaled to a unit diagonal, trained or about to be.
#[derive(Debug, Clone)]
pub struct Trained<T = f64> {
    /// Of the symmetric matrix whose lower triangle L has.
    pattern: Arc<Pattern>,
    /// Diagonal of A.
    diagonal: Vec<f64>,
    /// √aᵢᵢ, the unit of row i.
    scale: Vec<f64>,
    /// By rows, the diagonal last.
    lower: Half<T>,
    /// Lᵀ by rows, the diagonal first.
    upper: Half<T>,
    /// The place in `lower` of every entry of `upper`.
    places: Vec<u32>,
    /// Two numbers of the optimizer for every entry.
    moments: [Vec<T>; 2],
    /// The mean of the second of them.
    mean_square: f64,
    /// Steps that the moments have seen.
    steps: usize,
}

/// A triangle by rows.
#[derive(Debug, Clone)]
pub(crate) struct Half<T> {
    pub(crate) row_ptr: Vec<usize>,
    pub(crate) columns: Vec<u32>,
    pub(crate) values: Vec<T>,
}

impl<T: Real> Half<T> {
    pub(crate) fn row(&self, i: usize) -> (&[u32], &[T]) {
        let range = self.row_ptr[i]..self.row_ptr[i + 1];
        (&self.columns[range.clone()], &self.values[range])
    }

    /// Row i times vectors side by side.
    pub(crate) fn times<const B: usize>(&self, i: usize, x: &[Lanes<T, B>]) -> Lanes<T, B> {
        let (columns, values) = self.row(i);
        times(columns, values, x)
    }
}

/// Vectors that a step writes.
#[derive(Debug)]
pub(crate) struct StepVectors<T, const B: usize> {
    pub(crate) z: Vec<Lanes<T, B>>,
    pub(crate) e: Vec<Lanes<T, B>>,
    pub(crate) w: Vec<Lanes<T, B>>,
}

impl<T: Real, const B: usize> StepVectors<T, B> {
    pub(crate) fn new(n: usize) -> Self {
        let zeros = || vec![[T::ZERO; B]; n];
        StepVectors { z: zeros(), e: zeros(), w: zeros() }
    }
}

impl<T: Real> Trained<T> {
    /// L = I on the lower triangle of this symmetric pattern, for an A with this positive diagonal.
    pub(crate) fn identity(pattern: &Arc<Pattern>, diagonal: &[f64]) -> Result<Self, SetupError> {
        pattern.require_square()?;
        require_diagonal(pattern)?;
        require_symmetric(pattern)?;
        require_positive(diagonal)?;
        require_countable(pattern.nnz())?;
        let (lower, upper) = (half(pattern, true), half(pattern, false));
        let places = transposed_places(&lower, &upper);
        let entries = lower.columns.len();
        let scale = diagonal.iter().map(|d| d.sqrt()).collect();
        let moments = [vec![T::ZERO; entries], vec![T::ZERO; entries]];
        let diagonal = diagonal.to_vec();
        Ok(Trained {
            pattern: Arc::clone(pattern),
            diagonal,
            scale,
            lower,
            upper,
            places,
            moments,
            mean_square: 0.0,
            steps: 0,
        })
    }

    /// Rows.
    pub fn nrows(&self) -> usize {
        self.scale.len()
    }

    /// Entries of L.
    pub fn nnz(&self) -> usize {
        self.lower.columns.len()
    }

    /// Of the symmetric matrix whose lower triangle L has.
    pub(crate) fn pattern(&self) -> &Arc<Pattern> {
        &self.pattern
    }

    /// The units of rows.
    pub(crate) fn scale(&self) -> &[f64] {
        &self.scale
    }

    /// L from a matrix P as [`matrix`](Self::matrix) gives it, of the pattern of this one.
    pub(crate) fn set(&mut self, p: &Csr<f64>) {
        let diagonal = |i: usize| p.get(i, i).sqrt();
        for i in 0..self.nrows() {
            for k in self.lower.row_ptr[i]..self.lower.row_ptr[i + 1] {
                let j = self.lower.columns[k] as usize;
                self.lower.values[k] = T::from_f64(p.get(i, j) / diagonal(j) / self.scale[i]);
            }
        }
        self.follow(&Threads::new(1));
    }

    /// For an A with another diagonal: the same L in its units.
    pub(crate) fn rescale(&mut self, diagonal: &[f64]) -> Result<(), SetupError> {
        require_positive(diagonal)?;
        let known = self.diagonal.iter_mut().zip(diagonal);
        for (scale, (old, &new)) in self.scale.iter_mut().zip(known) {
            *scale *= (new / std::mem::replace(old, new)).sqrt();
        }
        Ok(())
    }

    /// The moments as they are before the first step.
    pub(crate) fn forget(&mut self, optimizer: &Optimizer) {
        for moment in &mut self.moments {
            moment.fill(optimizer.initial());
        }
        (self.steps, self.mean_square) = (0, 0.0);
    }

    /// Lᵀ becomes that of L.
    fn follow(&mut self, space: &Threads<f64>) {
        let (values, places) = (&self.lower.values, &self.places);
        fill(space, &mut self.upper.values, |k| values[places[k] as usize]);
    }

    /// One step towards y = L Lᵀ x for samples side by side, of `steps`; ‖y − L Lᵀ x‖² before it.
    pub(crate) fn step<const B: usize>(
        &mut self,
        space: &Threads<f64>,
        [x, y]: [&[Lanes<T, B>]; 2],
        (optimizer, k, steps): (&Optimizer, usize, usize),
        vectors: &mut StepVectors<T, B>,
    ) -> f64 {
        let StepVectors { z, e, w } = vectors;
        let (lower, upper) = (&self.lower, &self.upper);
        fill(space, z, |i| upper.times(i, x));
        fill(space, e, |i| {
            let (mut e, y) = (lower.times(i, z), &y[i]);
            e.iter_mut().zip(y).for_each(|(e, &y)| *e -= y);
            e
        });
        fill(space, w, |i| upper.times(i, e));
        let loss = space.sum_of(e.len(), |range| e[range].iter().map(|e| dot(e, e).to_f64()).sum());
        let rule = optimizer.rule::<T>((k, steps), self.steps, self.mean_square);
        let Half { row_ptr, columns, values } = &mut self.lower;
        let [first, second] = &mut self.moments;
        let two = T::from_f64(2.0);
        update(space, rule, row_ptr, [values, first, second], |i, place| {
            let (e, x) = (&e[i], &x[i]);
            let j = columns[place] as usize;
            let (z, w) = (&z[j], &w[j]);
            two * sum::<T, B>(std::array::from_fn(|k| e[k] * z[k] + x[k] * w[k]))
        });
        self.mean_square = optimizer.mean_square(space, second);
        if k + 1 == steps {
            self.steps += steps;
        }
        self.follow(space);
        loss
    }

    /// The matrix P whose symmetric Gauss–Seidel (`ssor`) is this factor, for A as given: see the head of [the module `learn`](crate::learn).
    pub fn matrix(&self) -> Csr<f64> {
        let last = |i: usize| bounded(self.lower.values[self.lower.row_ptr[i + 1] - 1].to_f64());
        let diagonal: Vec<f64> = (0..self.nrows()).map(last).collect();
        let mut values = vec![0.0; self.pattern.nnz()];
        for i in 0..self.nrows() {
            let range = self.pattern.row_range(i);
            let (lower, upper) = (self.lower.row(i).1, self.upper.row(i).1);
            // The row of P is the row of L without its diagonal, then the row of Lᵀ.
            let row = lower[..lower.len() - 1].iter().chain(upper);
            for ((value, &l), &j) in values[range.clone()].iter_mut().zip(row).zip(self.pattern.row(i)) {
                let j = j as usize;
                let l = if i == j { diagonal[i] } else { l.to_f64() };
                // Of a symmetric pair both are computed alike.
                *value = l * diagonal[i.min(j)] * (self.scale[i.max(j)] * self.scale[i.min(j)]);
            }
        }
        Csr::trusted(Arc::clone(&self.pattern), values)
    }

    /// Bytes that it holds.
    pub fn bytes(&self) -> usize {
        let entry = 4 * size_of::<T>() + 12;
        self.nnz() * entry + self.nrows() * 32
    }
}

/// The place in a triangle of every entry of its transposed.
pub(crate) fn transposed_places<T>(lower: &Half<T>, transposed: &Half<T>) -> Vec<u32> {
    let mut next = transposed.row_ptr.clone();
    let mut places = vec![0; transposed.columns.len()];
    // Rows of one in order are the columns of the other in order.
    for (place, &column) in lower.columns.iter().enumerate() {
        let at = &mut next[column as usize];
        places[*at] = place as u32;
        *at += 1;
    }
    places
}

/// A triangle of a pattern with the diagonal, its values those of the identity.
pub(crate) fn half<T: Real>(pattern: &Pattern, below: bool) -> Half<T> {
    let mut row_ptr = vec![0];
    let (mut columns, mut values) = (Vec::new(), Vec::new());
    for i in 0..pattern.nrows() {
        let row = pattern.row(i);
        let at = row.partition_point(|&j| (j as usize) < i);
        let part = if below { &row[..=at] } else { &row[at..] };
        columns.extend_from_slice(part);
        values.extend(part.iter().map(|&j| if j as usize == i { T::ONE } else { T::ZERO }));
        row_ptr.push(columns.len());
    }
    Half { row_ptr, columns, values }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gallery::{Problem, random_vector};

    fn poisson(n: usize) -> Csr<f64> {
        format!("poisson2d:{n}").parse::<Problem>().unwrap().generate().unwrap()
    }

    fn model(a: &Csr<f64>) -> Trained<f64> {
        let mut model = Trained::identity(a.pattern(), &a.diagonal().unwrap()).unwrap();
        let random = random_vector(model.nnz());
        for (value, r) in model.lower.values.iter_mut().zip(random) {
            *value += 0.3 * r;
        }
        model.follow(&Threads::new(1));
        model
    }

    fn loss(model: &Trained<f64>, x: &[f64], y: &[f64]) -> f64 {
        let n = model.nrows();
        let dense = |i: usize, j: usize| {
            let (columns, values) = model.lower.row(i);
            columns.iter().position(|&c| c as usize == j).map_or(0.0, |k| values[k])
        };
        let z: Vec<f64> = (0..n).map(|j| (0..n).map(|i| dense(i, j) * x[i]).sum()).collect();
        (0..n).map(|i| ((0..n).map(|j| dense(i, j) * z[j]).sum::<f64>() - y[i]).powi(2)).sum()
    }

    /// The gradient is what differences of the loss say. A step of AdaGrad with a huge start of its sums is one along the gradient.
    #[test]
    fn the_gradient_is_that_of_the_loss() {
        let (space, a) = (Threads::new(2), poisson(4));
        let n = a.nrows();
        let (x, y) = (random_vector(n), random_vector(2 * n)[n..].to_vec());
        let before = model(&a);
        let mut after = before.clone();
        let optimizer = Optimizer::AdaGrad { alpha: 1e-3, initial: 1e12 };
        after.forget(&optimizer);
        let lanes = |x: &[f64]| x.iter().map(|&x| [x]).collect::<Vec<_>>();
        let samples = [lanes(&x), lanes(&y)];
        let found = after.step(
            &space,
            samples.each_ref().map(Vec::as_slice),
            (&optimizer, 0, 1),
            &mut StepVectors::new(n),
        );
        assert!((found - loss(&before, &x, &y)).abs() < 1e-12 * found, "{found}");
        for k in 0..before.nnz() {
            let moved = |by: f64| {
                let mut model = before.clone();
                model.lower.values[k] += by;
                loss(&model, &x, &y)
            };
            let difference = (moved(1e-5) - moved(-1e-5)) / 2e-5;
            // α g / √initial.
            let gradient = (before.lower.values[k] - after.lower.values[k]) * 1e9;
            assert!(
                (gradient - difference).abs() < 1e-4 * (1.0 + difference.abs()),
                "{k}: {gradient} {difference}"
            );
        }
    }

    /// Symmetric Gauss–Seidel on P is L Lᵀ in the units of A.
    #[test]
    fn the_matrix_has_the_factor_as_its_gauss_seidel() {
        let mut a = poisson(4);
        let scaled: Vec<f64> = a.values().iter().map(|v| 9.0 * v).collect();
        a.values_mut().copy_from_slice(&scaled);
        let model = model(&a);
        let p = model.matrix();
        let n = a.nrows();
        let mut product = vec![vec![0.0; n]; n];
        let mut expected = vec![vec![0.0; n]; n];
        let dense = |i: usize, j: usize| {
            let (columns, values) = model.lower.row(i);
            columns.iter().position(|&c| c as usize == j).map_or(0.0, |k| values[k])
        };
        for i in 0..n {
            for j in 0..n {
                for k in 0..n {
                    // (D + L̂) D⁻¹ (D + L̂ᵀ)
                    if k <= i.min(j) {
                        product[i][j] += p.get(i, k) * p.get(k, j) / p.get(k, k);
                    }
                    expected[i][j] += 36.0 * dense(i, k) * dense(j, k);
                }
                assert!((product[i][j] - expected[i][j]).abs() < 1e-12, "{i} {j}");
                assert_eq!(p.get(i, j), p.get(j, i));
            }
        }
        let mut again = Trained::<f64>::identity(a.pattern(), &a.diagonal().unwrap()).unwrap();
        again.set(&p);
        // A negative diagonal entry of L is a positive one with its column turned round.
        let sizes = |m: &Trained<f64>| m.lower.values.iter().map(|v| v.abs()).collect::<Vec<_>>();
        assert!(sizes(&again).iter().zip(sizes(&model)).all(|(a, b)| (a - b).abs() < 1e-14));
    }

    #[test]
    fn what_has_no_factor_is_refused() {
        let a = poisson(3);
        let mut diagonal = a.diagonal().unwrap();
        diagonal[2] = -1.0;
        let found = Trained::<f64>::identity(a.pattern(), &diagonal);
        assert!(matches!(found, Err(SetupError::BadPivot { row: 2, .. })));
        let lower = Csr::new(2, 2, vec![0, 1, 3], vec![0, 0, 1], vec![1.0; 3]).unwrap();
        assert!(Trained::<f64>::identity(lower.pattern(), &[1.0, 1.0]).is_err());
    }
}
