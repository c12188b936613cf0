//! Where unknowns stand while a system is iterated, and matrices stored there.
//!
//! A [`Placement`] is an order of the unknowns with padding: a permutation, wavefronts in slices, the lines of a grid. A
//! [`Storage`] is a matrix in a placement. Any matrix of the right size and pattern may be stored in a placement, not only the one
//! that it was chosen for: the placement follows the pattern of a factor, and A is stored beside it.
//!
//! On threads a placement is given by the place of each row ([`Order`]), and this file has the one loop in each direction.
#![allow(unsafe_code)]

mod kept;

pub use kept::KeptMatrix;

use crate::disjoint::DisjointSlice;
use crate::error::{BackendError, SetupError};
use crate::matrix::{Csr, Permutation, require_pattern};
use crate::operator::LinearOperator;
use crate::space::{CHUNK, Space, Threads, require_same};
use std::ops::Range;
use std::sync::Arc;

/// Which vectors are meant: those that are multiplied by A, or products.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// b, and products with A: one number per row.
    Rows,
    /// x: one number per column.
    Columns,
}

/// An order of unknowns, with padding, in which a system is iterated.
///
/// Places that belong to no unknown hold zeros: [`load`](Self::load) writes them, and operators in the placement leave them.
pub trait Placement<S: Space> {
    /// The size of vectors in this order.
    fn size(&self) -> S::Size;

    /// Brings a vector from the order of A into this one.
    fn load(&self, space: &S, side: Side, from: &S::Vector, to: &mut S::Vector) -> Result<(), BackendError>;

    /// Brings a vector back into the order of A.
    fn store(&self, space: &S, side: Side, from: &S::Vector, to: &mut S::Vector) -> Result<(), BackendError>;

    /// The row of A at a place; `None` where there is none.
    fn user_row(&self, place: usize) -> Option<usize>;

    /// Vectors are those of A: nothing is loaded or stored.
    fn is_identity(&self) -> bool {
        false
    }
}

/// The order of the unknowns in a store, which several of its matrices and preconditioners share.
pub type SharedPlacement<S> = Arc<dyn Placement<S> + Send + Sync>;

/// A matrix in a placement.
pub trait Storage<S: Space>: LinearOperator<S> + Send + Sync + Sized {
    /// `Err(PatternChanged)` unless the matrix has the pattern that was stored.
    fn require(&self, a: &Csr<f64>) -> Result<(), SetupError>;

    /// Takes over the values of a matrix of the stored pattern. Values that are here already are left where they are.
    fn set(&mut self, space: &S, a: &Csr<f64>) -> Result<(), SetupError>;

    /// Whether the values are those of this matrix, which has the stored pattern; `false` if that is not known.
    fn holds(&self, space: &S, a: &Csr<f64>) -> bool;

    /// A copy in the same placement, with the values of another matrix of the stored pattern.
    fn with_values_of(&self, space: &S, a: &Csr<f64>) -> Result<Self, SetupError>;

    /// Bytes of the values, and of indices that are not shared.
    fn bytes(&self) -> usize;

    /// y = A x and ‖y‖²; one pass where the storage overrides it.
    fn apply_square(
        &self,
        space: &S,
        x: &S::Vector,
        y: &mut S::Vector,
        scratch: &mut Self::Scratch,
    ) -> Result<S::Scalar, BackendError> {
        self.apply(space, x, y, scratch)?;
        space.dot(y, y)
    }
}

/// Compressed rows, in the order of A.
impl Storage<Threads<f64>> for Csr<f64> {
    fn require(&self, a: &Csr<f64>) -> Result<(), SetupError> {
        require_pattern(self.pattern(), a.pattern())
    }

    fn set(&mut self, _: &Threads<f64>, a: &Csr<f64>) -> Result<(), SetupError> {
        Storage::require(self, a)?;
        self.values_mut().copy_from_slice(a.values());
        Ok(())
    }

    fn holds(&self, _: &Threads<f64>, a: &Csr<f64>) -> bool {
        self.values() == a.values()
    }

    fn with_values_of(&self, _: &Threads<f64>, a: &Csr<f64>) -> Result<Self, SetupError> {
        Storage::require(self, a).map(|()| a.clone())
    }

    fn bytes(&self) -> usize {
        self.bytes()
    }
}

/// A type's own methods as those of [`Storage`] on threads.
macro_rules! storage {
    ($type:ty) => {
        impl $crate::placement::Storage<$crate::space::Threads<f64>> for $type {
            fn require(&self, a: &$crate::Csr<f64>) -> Result<(), $crate::SetupError> {
                self.require(a)
            }

            fn set(
                &mut self,
                space: &$crate::space::Threads<f64>,
                a: &$crate::Csr<f64>,
            ) -> Result<(), $crate::SetupError> {
                self.set(space, a)
            }

            fn holds(&self, space: &$crate::space::Threads<f64>, a: &$crate::Csr<f64>) -> bool {
                self.holds(space, a)
            }

            fn with_values_of(
                &self,
                space: &$crate::space::Threads<f64>,
                a: &$crate::Csr<f64>,
            ) -> Result<Self, $crate::SetupError> {
                let mut copy = self.clone();
                copy.set(space, a).map(|()| copy)
            }

            fn bytes(&self) -> usize {
                self.bytes()
            }
        }
    };
}

pub(crate) use storage;

/// The order of A itself.
#[derive(Debug, Clone, Copy)]
pub struct AsGiven<L>(pub L);

impl<S: Space<Size = L>, L: Clone> Placement<S> for AsGiven<L> {
    fn size(&self) -> L {
        self.0.clone()
    }

    fn load(&self, space: &S, _: Side, from: &S::Vector, to: &mut S::Vector) -> Result<(), BackendError> {
        space.copy(from, to)
    }

    fn store(&self, space: &S, _: Side, from: &S::Vector, to: &mut S::Vector) -> Result<(), BackendError> {
        space.copy(from, to)
    }

    fn user_row(&self, place: usize) -> Option<usize> {
        Some(place)
    }

    fn is_identity(&self) -> bool {
        true
    }
}

/// A placement on threads: which row stands where.
///
/// # Safety
/// Units do not overlap: each row is visited by one unit, once, at a place of that unit's span, and spans follow each other from 0 to
/// [`places`](Self::places). Threads write the places and the rows of different units at the same time.
pub unsafe trait Order: Sync {
    /// Rows of A.
    fn rows(&self) -> usize;

    /// Places, padding included.
    fn places(&self) -> usize;

    /// Parts that threads take one by one.
    fn units(&self) -> usize;

    /// The places of a unit. Units follow each other and cover all places.
    fn span(&self, unit: usize) -> Range<usize>;

    /// Calls `visit` with the row and the place of every row of a unit.
    fn for_each_row(&self, unit: usize, visit: impl FnMut(usize, usize));

    /// The row at a place; `None` for padding.
    fn row_at(&self, place: usize) -> Option<usize>;
}

/// A placement on threads from the places of rows.
#[derive(Debug, Clone)]
pub struct Placed<O>(pub Arc<O>);

impl<O: Order> Placement<Threads<f64>> for Placed<O> {
    fn size(&self) -> usize {
        self.0.places()
    }

    fn load(
        &self,
        space: &Threads<f64>,
        _: Side,
        from: &Vec<f64>,
        to: &mut Vec<f64>,
    ) -> Result<(), BackendError> {
        gather(space, &*self.0, from, to)
    }

    fn store(
        &self,
        space: &Threads<f64>,
        _: Side,
        from: &Vec<f64>,
        to: &mut Vec<f64>,
    ) -> Result<(), BackendError> {
        scatter(space, &*self.0, from, to)
    }

    fn user_row(&self, place: usize) -> Option<usize> {
        self.0.row_at(place)
    }
}

fn check(order: &impl Order, rows: usize, places: usize) -> Result<(), BackendError> {
    require_same("the vector and the rows", &rows, &order.rows())?;
    require_same("the vector and the placement", &places, &order.places())
}

/// Brings numbers, one per row, to their places; zeros in between.
pub(crate) fn gather(
    space: &Threads<f64>,
    order: &impl Order,
    from: &[f64],
    to: &mut [f64],
) -> Result<(), BackendError> {
    check(order, from.len(), to.len())?;
    let to = DisjointSlice::new(to);
    space.team().run(|member| {
        for unit in member.part(order.units(), 1) {
            let span = order.span(unit);
            // SAFETY: the places of a unit have one member, and units do not overlap.
            let own = unsafe { to.get(span.clone()) };
            own.fill(0.0);
            order.for_each_row(unit, |row, place| own[place - span.start] = from[row]);
        }
    });
    Ok(())
}

/// Brings numbers back from their places.
pub(crate) fn scatter(
    space: &Threads<f64>,
    order: &impl Order,
    from: &[f64],
    to: &mut [f64],
) -> Result<(), BackendError> {
    check(order, to.len(), from.len())?;
    let rows = to.len();
    let to = DisjointSlice::new(to);
    space.team().run(|member| {
        for unit in member.part(order.units(), 1) {
            order.for_each_row(unit, |row, place| {
                assert!(row < rows);
                // SAFETY: within the vector; every row has one place, and every place one member.
                unsafe { to.write(row, from[place]) };
            });
        }
    });
    Ok(())
}

/// Place i holds row `old[i]`.
// SAFETY: units are consecutive chunks of places, and a permutation holds each row once.
unsafe impl Order for Permutation {
    fn rows(&self) -> usize {
        self.old().len()
    }

    fn places(&self) -> usize {
        self.old().len()
    }

    fn units(&self) -> usize {
        self.old().len().div_ceil(CHUNK)
    }

    fn span(&self, unit: usize) -> Range<usize> {
        unit * CHUNK..((unit + 1) * CHUNK).min(self.old().len())
    }

    fn for_each_row(&self, unit: usize, mut visit: impl FnMut(usize, usize)) {
        let span = self.span(unit);
        self.old()[span.clone()].iter().zip(span).for_each(|(&row, place)| visit(row as usize, place));
    }

    fn row_at(&self, place: usize) -> Option<usize> {
        self.old().get(place).map(|&row| row as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three rows to a unit, each followed by a place that belongs to nobody.
    struct Gaps(usize);

    // SAFETY: four places a unit, three of them with rows of this unit.
    unsafe impl Order for Gaps {
        fn rows(&self) -> usize {
            3 * self.0
        }
        fn places(&self) -> usize {
            4 * self.0
        }
        fn units(&self) -> usize {
            self.0
        }
        fn span(&self, unit: usize) -> Range<usize> {
            4 * unit..4 * unit + 4
        }
        fn for_each_row(&self, unit: usize, mut visit: impl FnMut(usize, usize)) {
            (0..3).for_each(|k| visit(3 * unit + k, 4 * unit + k));
        }
        fn row_at(&self, place: usize) -> Option<usize> {
            (place % 4 < 3).then_some(place / 4 * 3 + place % 4)
        }
    }

    #[test]
    fn padding_is_zero_and_rows_come_back() {
        for threads in [1, 3] {
            let (space, order) = (Threads::new(threads), Gaps(50));
            let from: Vec<f64> = (0..150).map(|i| 1.0 + i as f64).collect();
            let (mut placed, mut back) = (vec![f64::NAN; 200], vec![f64::NAN; 150]);
            gather(&space, &order, &from, &mut placed).unwrap();
            for (place, &v) in placed.iter().enumerate() {
                assert_eq!(v, order.row_at(place).map_or(0.0, |row| from[row]));
            }
            scatter(&space, &order, &placed, &mut back).unwrap();
            assert_eq!(back, from);
            assert!(gather(&space, &order, &from[1..], &mut placed).is_err());
        }
    }
}
