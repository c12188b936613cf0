//! An incomplete Cholesky factor stored and applied in `f32` under an `f64` solver.
//!
//! IC(0): L has the pattern of the lower triangle of A and (L Lᵀ)ᵢⱼ = aᵢⱼ there (Meijerink & van der Vorst 1977).

use super::threads::{Rows, Threads};
use super::{check, poisson, solve};
use krylith::matrix::Triangle;
use krylith::operator::{Identity, LinearOperator, Preconditioner, Recipe, Symbolic};
use krylith::{BackendError, Csr, Pattern, Scalar, SetupError};
use std::sync::Arc;

/// The recipe: which number the factor is stored in.
struct Ic0<T>(std::marker::PhantomData<T>);

/// The pattern of L: that of the lower triangle of A.
struct Ic0Symbolic<T> {
    of_a: Arc<Pattern>,
    of_l: Arc<Pattern>,
    number: std::marker::PhantomData<T>,
}

struct Ic0Factor<T> {
    of_a: Arc<Pattern>,
    l: Csr<T>,
}

impl<T: Scalar<Real = T> + krylith::Real> Recipe<Threads, Csr<f64>> for Ic0<T> {
    type Symbolic = Ic0Symbolic<T>;

    fn analyze(&self, _: &Threads, a: &Csr<f64>) -> Result<Ic0Symbolic<T>, SetupError> {
        let lower = a.view().triangle(Triangle::Lower)?;
        if let Some(row) = (0..a.nrows()).find(|&i| lower.row(i).0.last() != Some(&(i as u32))) {
            return Err(SetupError::MissingDiagonal { row });
        }
        let (of_a, of_l) = (Arc::clone(a.pattern()), Arc::clone(lower.pattern()));
        Ok(Ic0Symbolic { of_a, of_l, number: std::marker::PhantomData })
    }
}

impl<T: Scalar<Real = T> + krylith::Real> Symbolic<Threads, Csr<f64>> for Ic0Symbolic<T> {
    type Factor = Ic0Factor<T>;

    fn factor(&self, space: &Threads, a: &Csr<f64>) -> Result<Ic0Factor<T>, SetupError> {
        let l = Csr::with_pattern(Arc::clone(&self.of_l), vec![T::ZERO; self.of_l.nnz()])?;
        let mut factor = Ic0Factor { of_a: Arc::clone(&self.of_a), l };
        factor.refactor(space, a)?;
        Ok(factor)
    }
}

impl<T: Scalar<Real = T> + krylith::Real> Preconditioner<Threads, Csr<f64>> for Ic0Factor<T> {
    fn refactor(&mut self, _: &Threads, a: &Csr<f64>) -> Result<(), SetupError> {
        if self.of_a != *a.pattern() {
            return Err(SetupError::PatternChanged);
        }
        let pattern = Arc::clone(self.l.pattern());
        for i in 0..pattern.nrows() {
            let range = pattern.row_range(i);
            for k in range.clone() {
                let j = pattern.col_idx()[k] as usize;
                // aᵢⱼ − Σ lᵢₘ lⱼₘ over the common columns m < j, in f64
                let mut sum = a.get(i, j);
                let values = self.l.values();
                for m in range.start..k {
                    if let Some(at) = pattern.find(j, pattern.col_idx()[m] as usize) {
                        sum -= values[m].to_f64() * values[at].to_f64();
                    }
                }
                let value = if j == i {
                    if sum <= 0.0 || !sum.is_finite() {
                        return Err(SetupError::BadPivot { row: i, value: sum });
                    }
                    sum.sqrt()
                } else {
                    sum / self.l.values()[pattern.row_range(j).end - 1].to_f64()
                };
                self.l.values_mut()[k] = T::from_f64(value);
            }
        }
        Ok(())
    }
}

impl<T: Scalar> LinearOperator<Threads> for Ic0Factor<T> {
    /// The vector in the factor's own number: a type that the space of the solve does not have.
    type Scratch = Vec<T>;

    fn domain(&self) -> usize {
        self.l.nrows()
    }

    fn range(&self) -> usize {
        self.l.nrows()
    }

    fn scratch(&self, _: &Threads) -> Result<Vec<T>, BackendError> {
        Ok(vec![T::ZERO; self.l.nrows()])
    }

    fn apply(&self, _: &Threads, x: &Vec<f64>, y: &mut Vec<f64>, t: &mut Vec<T>) -> Result<(), BackendError> {
        // L t = x
        for i in 0..t.len() {
            let (columns, values) = self.l.row(i);
            let last = columns.len() - 1;
            let mut sum = T::from_f64(x[i]);
            for k in 0..last {
                sum -= values[k] * t[columns[k] as usize];
            }
            t[i] = sum / values[last];
        }
        // Lᵀ y = t, column by column
        for i in (0..t.len()).rev() {
            let (columns, values) = self.l.row(i);
            let last = columns.len() - 1;
            t[i] = t[i] / values[last];
            for k in 0..last {
                let update = values[k] * t[i];
                t[columns[k] as usize] -= update;
            }
        }
        for (y, t) in y.iter_mut().zip(t) {
            *y = t.to_f64();
        }
        Ok(())
    }
}

fn factor<T: Scalar<Real = T> + krylith::Real>(a: &Csr<f64>) -> Ic0Factor<T> {
    Ic0(std::marker::PhantomData).analyze(&Threads, a).unwrap().factor(&Threads, a).unwrap()
}

#[test]
fn the_factor_by_hand() {
    // A = [4 2 0; 2 5 2; 0 2 5] has no fill: L is the Cholesky factor [2; 1 2; 0 1 2].
    let a = Csr::from_triplets(
        3,
        3,
        &[0, 0, 1, 1, 1, 2, 2],
        &[0, 1, 0, 1, 2, 1, 2],
        &[4.0, 2.0, 2.0, 5.0, 2.0, 2.0, 5.0],
    )
    .unwrap();
    let m = factor::<f64>(&a);
    assert_eq!(m.l.values(), [2.0, 1.0, 2.0, 1.0, 2.0]);
    let mut y = vec![0.0; 3];
    m.apply(&Threads, &vec![6.0, 9.0, 7.0], &mut y, &mut vec![0.0; 3]).unwrap();
    assert_eq!(y, [1.0, 1.0, 1.0]);
}

#[test]
fn cg_with_a_factor_in_single_precision() {
    let a = Rows(poisson());
    let plain = solve(&Threads, &a, &Identity::new(a.domain())).unwrap().1;
    let (_, wide, _) = solve(&Threads, &a, &factor::<f64>(&a.0)).unwrap();
    let (x, narrow, history) = solve(&Threads, &a, &factor::<f32>(&a.0)).unwrap();
    check(&x, narrow, &history);
    assert!(3 * wide.iterations < 2 * plain.iterations, "{} {}", wide.iterations, plain.iterations);
    assert!(narrow.iterations <= wide.iterations + 1, "{} {}", narrow.iterations, wide.iterations);
}

#[test]
fn an_indefinite_matrix_names_its_first_bad_row() {
    let mut a = poisson();
    let k = a.pattern().find(5, 5).unwrap();
    a.values_mut()[k] = -1.0;
    let symbolic = Ic0::<f32>(std::marker::PhantomData).analyze(&Threads, &a).unwrap();
    assert!(matches!(symbolic.factor(&Threads, &a), Err(SetupError::BadPivot { row: 5, .. })));
}
