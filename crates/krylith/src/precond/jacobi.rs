//! Jacobi: M = the diagonal of A.
//!
//! The robust form cannot fail and is positive: it takes |aᵢᵢ|, and where that is missing or cannot be divided by, the largest
//! |aᵢⱼ| of the row, or 1.
//!
//! [`ColumnNorms`] takes the norms ‖A eⱼ‖ of the columns, or 1 for a column of zeros: what least-squares methods are scaled by (van der Sluis
//! 1969, doi:10.1007/BF02165096: within a factor of √n of the best diagonal).
#![allow(unsafe_code)]

use crate::disjoint::DisjointSlice;
use crate::error::{BackendError, SetupError};
use crate::matrix::require_pattern;
use crate::matrix::{Csr, Pattern};
use crate::operator::{LinearOperator, Parts, Preconditioner, Recipe, Symbolic, UpdateForm};
use crate::scalar::Scalar;
use crate::space::{Activity, CHUNK, Space, Threads, require_same};
use std::sync::Arc;

/// The recipe.
#[derive(Debug, Clone, Copy, Default)]
pub struct Jacobi {
    /// Takes something else where the diagonal cannot be used, instead of failing.
    pub robust: bool,
}

/// The recipe of a diagonal of the norms of columns.
#[derive(Debug, Clone, Copy, Default)]
pub struct ColumnNorms;

/// No such entry.
const MISSING: usize = usize::MAX;

/// Where the diagonal entries are.
#[derive(Debug, Clone)]
pub struct JacobiSymbolic {
    pattern: Arc<Pattern>,
    places: Arc<[usize]>,
    robust: bool,
    /// The norms of columns instead.
    column_norms: bool,
}

/// The inverse of the diagonal.
#[derive(Debug, Clone)]
pub struct JacobiFactor<T> {
    symbolic: JacobiSymbolic,
    inverse: Vec<T>,
}

impl<T: Scalar> Recipe<Threads<T>, Csr<T>> for Jacobi {
    type Symbolic = JacobiSymbolic;

    fn analyze(&self, _: &Threads<T>, a: &Csr<T>) -> Result<JacobiSymbolic, SetupError> {
        let pattern = a.pattern();
        pattern.require_square()?;
        let missing = |row| if self.robust { Ok(MISSING) } else { Err(SetupError::MissingDiagonal { row }) };
        let place = |row| pattern.find(row, row).map_or_else(|| missing(row), Ok);
        let places = (0..a.nrows()).map(place).collect::<Result<_, _>>()?;
        Ok(JacobiSymbolic { pattern: Arc::clone(pattern), places, robust: self.robust, column_norms: false })
    }
}

impl<T: Scalar> Recipe<Threads<T>, Csr<T>> for ColumnNorms {
    type Symbolic = JacobiSymbolic;

    fn analyze(&self, _: &Threads<T>, a: &Csr<T>) -> Result<JacobiSymbolic, SetupError> {
        a.pattern().require_square()?;
        let places = vec![MISSING; a.nrows()].into();
        Ok(JacobiSymbolic { pattern: Arc::clone(a.pattern()), places, robust: true, column_norms: true })
    }
}

/// 1 / ‖A eⱼ‖, or 1 for a column of zeros.
fn inverse_column_norms<T: Scalar>(a: &Csr<T>, inverse: &mut [T]) {
    let entries =
        || a.pattern().col_idx().iter().zip(a.values()).map(|(&j, v)| (j as usize, v.abs().to_f64()));
    // Relative to the largest, so that no square leaves the range.
    let (mut largest, mut squares) = (vec![0.0f64; inverse.len()], vec![0.0; inverse.len()]);
    entries().for_each(|(j, size)| largest[j] = largest[j].max(size));
    for (j, size) in entries().filter(|&(_, size)| size > 0.0) {
        squares[j] += (size / largest[j]) * (size / largest[j]);
    }
    for ((inverse, square), largest) in inverse.iter_mut().zip(squares).zip(largest) {
        let norm: f64 = largest * f64::sqrt(square);
        let usable = norm > 0.0 && norm.is_finite() && (1.0 / norm).is_finite();
        *inverse = T::from_f64(if usable { 1.0 / norm } else { 1.0 });
    }
}

impl<T: Scalar> Symbolic<Threads<T>, Csr<T>> for JacobiSymbolic {
    type Factor = JacobiFactor<T>;

    fn factor(&self, space: &Threads<T>, a: &Csr<T>) -> Result<JacobiFactor<T>, SetupError> {
        let mut factor = JacobiFactor { symbolic: self.clone(), inverse: vec![T::ZERO; self.places.len()] };
        factor.refactor(space, a)?;
        Ok(factor)
    }
}

impl<T: Scalar> Preconditioner<Threads<T>, Csr<T>> for JacobiFactor<T> {
    fn refactor(&mut self, _: &Threads<T>, a: &Csr<T>) -> Result<(), SetupError> {
        require_pattern(&self.symbolic.pattern, a.pattern())?;
        if self.symbolic.column_norms {
            inverse_column_norms(a, &mut self.inverse);
            return Ok(());
        }
        for (row, (inverse, &place)) in self.inverse.iter_mut().zip(self.symbolic.places.iter()).enumerate() {
            let value = if place == MISSING { T::ZERO } else { a.values()[place] };
            let usable = |v: T| v != T::ZERO && v.is_finite() && (T::ONE / v).is_finite();
            let entry = if self.symbolic.robust {
                let largest = a.row(row).1.iter().map(|v| v.abs().to_f64()).fold(0.0, f64::max);
                let candidates = [T::from_real(value.abs()), T::from_f64(largest)];
                candidates.into_iter().find(|&v| usable(v)).unwrap_or(T::ONE)
            } else {
                value
            };
            if !usable(entry) {
                return Err(SetupError::BadPivot { row, value: value.to_f64() });
            }
            *inverse = T::ONE / entry;
        }
        Ok(())
    }

    fn entries(&self) -> usize {
        self.inverse.len()
    }

    fn bytes(&self) -> usize {
        size_of_val(self.inverse.as_slice()) + size_of_val(&self.symbolic.places[..])
    }

    fn parts(&self) -> Option<Parts<'_, T>> {
        Some(Parts::Diagonal(&self.inverse))
    }
}

/// y = D x.
pub(crate) fn multiply_by_diagonal<T: Scalar>(
    space: &Threads<T>,
    d: &[T],
    x: &[T],
    y: &mut [T],
) -> Result<(), BackendError> {
    require_same("x and the diagonal", &x.len(), &d.len())?;
    require_same("y and the diagonal", &y.len(), &d.len())?;
    let y = DisjointSlice::new(y);
    space.team().run(|member| {
        let part = member.part(d.len(), CHUNK);
        // SAFETY: the parts of the members do not overlap.
        let y = unsafe { y.get(part.clone()) };
        for ((y, x), d) in y.iter_mut().zip(&x[part.clone()]).zip(&d[part]) {
            *y = *x * *d;
        }
    });
    Ok(())
}

impl<T: Scalar> LinearOperator<Threads<T>> for JacobiFactor<T> {
    type Scratch = ();

    fn domain(&self) -> usize {
        self.inverse.len()
    }

    fn range(&self) -> usize {
        self.inverse.len()
    }

    fn scratch(&self, _: &Threads<T>) -> Result<(), BackendError> {
        Ok(())
    }

    fn apply(&self, space: &Threads<T>, x: &Vec<T>, y: &mut Vec<T>, _: &mut ()) -> Result<(), BackendError> {
        multiply_by_diagonal(space, &self.inverse, x, y)
    }

    fn update_form(&self) -> UpdateForm {
        UpdateForm::OnePass
    }

    fn update_apply_dots(
        &self,
        space: &Threads<T>,
        (a, q): (T, &Vec<T>),
        r: &mut Vec<T>,
        z: &mut Vec<T>,
        _: &mut (),
    ) -> Result<[T; 2], BackendError> {
        space.during(Activity::Preconditioner, || space.update_diagonal((a, q), &self.inverse, r, z))
    }

    /// A diagonal of real numbers is its own transpose; one of complex numbers is applied to conjugates.
    fn apply_transpose(
        &self,
        _: &Threads<T>,
        x: &Vec<T>,
        y: &mut Vec<T>,
        _: &mut (),
    ) -> Result<(), BackendError> {
        require_same("x and the diagonal", &x.len(), &self.inverse.len())?;
        require_same("y and the diagonal", &y.len(), &self.inverse.len())?;
        y.iter_mut().zip(x).zip(&self.inverse).for_each(|((y, x), d)| *y = *x * d.conj());
        Ok(())
    }
}
