//! The plainest space, one thread over `Vec<f64>`, in which nothing but `zeros` allocates; and operators on it.

use krylith::operator::LinearOperator;
use krylith::space::{Extremes, Space};
use krylith::{BackendError, Csr};
use std::cell::Cell;

thread_local! {
    /// Synchronisations of this thread's spaces.
    pub static SYNCHRONISATIONS: Cell<usize> = const { Cell::new(0) };
}

pub struct Sequential;

impl Space for Sequential {
    type Real = f64;
    type Scalar = f64;
    type Vector = Vec<f64>;
    type Size = usize;

    fn zeros(&self, n: &usize) -> Result<Vec<f64>, BackendError> {
        Ok(vec![0.0; *n])
    }

    fn size(&self, x: &Vec<f64>) -> usize {
        x.len()
    }

    fn len(&self, n: &usize) -> usize {
        *n
    }

    fn upload(&self, from: &[f64], to: &mut Vec<f64>) -> Result<(), BackendError> {
        to.copy_from_slice(from);
        Ok(())
    }

    fn download(&self, from: &Vec<f64>, to: &mut [f64]) -> Result<(), BackendError> {
        to.copy_from_slice(from);
        Ok(())
    }

    fn extremes(&self, x: &Vec<f64>) -> Result<Extremes<f64>, BackendError> {
        let sizes = || x.iter().map(|x| x.abs());
        Ok(Extremes {
            largest: sizes().fold(0.0, f64::max),
            least: sizes().filter(|&x| x > 0.0).fold(f64::INFINITY, f64::min),
            not_finite: x.iter().position(|x| !x.is_finite()).map(|k| (k, x[k])),
        })
    }

    fn scale(&self, a: f64, x: &mut Vec<f64>) -> Result<(), BackendError> {
        x.iter_mut().for_each(|x| *x *= a);
        Ok(())
    }

    fn fill(&self, a: f64, x: &mut Vec<f64>) -> Result<(), BackendError> {
        x.fill(a);
        Ok(())
    }

    fn copy(&self, x: &Vec<f64>, y: &mut Vec<f64>) -> Result<(), BackendError> {
        y.copy_from_slice(x);
        Ok(())
    }

    fn axpby(&self, a: f64, x: &Vec<f64>, b: f64, y: &mut Vec<f64>) -> Result<(), BackendError> {
        for (x, y) in x.iter().zip(y) {
            *y = if b == 0.0 { a * x } else { a * x + b * *y };
        }
        Ok(())
    }

    fn dots(&self, pairs: &[(&Vec<f64>, &Vec<f64>)], out: &mut [f64]) -> Result<(), BackendError> {
        assert_eq!(pairs.len(), out.len());
        SYNCHRONISATIONS.set(SYNCHRONISATIONS.get() + 1);
        for ((x, y), out) in pairs.iter().zip(out) {
            *out = x.iter().zip(*y).map(|(x, y)| x * y).sum();
        }
        Ok(())
    }
}

/// Compressed rows.
pub struct Rows(pub Csr<f64>);

/// The inverse of a diagonal.
pub struct Diagonal(pub Vec<f64>);

/// A = L U on the pattern of A (Meijerink & van der Vorst 1977), both in one matrix; L has ones on its diagonal.
pub struct Ilu0(Csr<f64>);

/// Two preconditioners by turns.
pub struct Alternating(pub Diagonal, pub Ilu0, pub Cell<bool>);

/// 1 / |aᵢᵢ|.
pub fn jacobi(a: &Csr<f64>) -> Diagonal {
    Diagonal(a.diagonal().unwrap().iter().map(|d| 1.0 / d.abs()).collect())
}

pub fn ilu0(a: &Csr<f64>) -> Ilu0 {
    let mut lu = a.clone();
    for i in 0..a.nrows() {
        let range = a.pattern().row_range(i);
        for k in range.clone() {
            let j = a.pattern().col_idx()[k] as usize;
            if j >= i {
                break;
            }
            let factor = lu.values()[k] / lu.get(j, j);
            lu.values_mut()[k] = factor;
            for l in k + 1..range.end {
                let update = factor * lu.get(j, a.pattern().col_idx()[l] as usize);
                lu.values_mut()[l] -= update;
            }
        }
    }
    Ilu0(lu)
}

macro_rules! operator {
    ($type:ty, $size:expr, $apply:expr) => {
        impl LinearOperator<Sequential> for $type {
            type Scratch = ();
            fn domain(&self) -> usize {
                $size(self)
            }
            fn range(&self) -> usize {
                $size(self)
            }
            fn scratch(&self, _: &Sequential) -> Result<(), BackendError> {
                Ok(())
            }
            fn apply(
                &self,
                _: &Sequential,
                x: &Vec<f64>,
                y: &mut Vec<f64>,
                _: &mut (),
            ) -> Result<(), BackendError> {
                $apply(self, x, y);
                Ok(())
            }
        }
    };
}

operator!(Rows, |a: &Rows| a.0.nrows(), |a: &Rows, x: &[f64], y: &mut [f64]| {
    for i in 0..y.len() {
        let (columns, values) = a.0.row(i);
        y[i] = columns.iter().zip(values).map(|(&j, v)| v * x[j as usize]).sum();
    }
});

operator!(Diagonal, |d: &Diagonal| d.0.len(), |d: &Diagonal, x: &[f64], y: &mut [f64]| {
    for i in 0..y.len() {
        y[i] = d.0[i] * x[i];
    }
});

operator!(Ilu0, |lu: &Ilu0| lu.0.nrows(), |lu: &Ilu0, x: &[f64], y: &mut [f64]| {
    for i in 0..y.len() {
        let (columns, values) = lu.0.row(i);
        let lower = columns.iter().zip(values).filter(|(j, _)| (**j as usize) < i);
        y[i] = x[i] - lower.map(|(&j, v)| v * y[j as usize]).sum::<f64>();
    }
    for i in (0..y.len()).rev() {
        let (columns, values) = lu.0.row(i);
        let upper = columns.iter().zip(values).filter(|(j, _)| (**j as usize) > i);
        y[i] = (y[i] - upper.map(|(&j, v)| v * y[j as usize]).sum::<f64>()) / lu.0.get(i, i);
    }
});

operator!(Alternating, |m: &Alternating| m.0.0.len(), |m: &Alternating, x: &Vec<f64>, y: &mut Vec<f64>| {
    let first = m.2.replace(!m.2.get());
    let done =
        if first { m.0.apply(&Sequential, x, y, &mut ()) } else { m.1.apply(&Sequential, x, y, &mut ()) };
    done.unwrap();
});
