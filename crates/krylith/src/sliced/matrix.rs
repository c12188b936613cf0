//! A matrix in slices, and its product with a vector.
//!
//! Bytes of a product: 69 a strip, that is 8.6 an entry where strips are full, and 24 a row for diagonal, x and y; the same in
//! compressed rows is 12 and 24.
#![allow(unsafe_code)]

use super::LANES;
use super::kernels::{self, Values, Vector};
use super::strips::SlicedPattern;
use crate::error::{BackendError, SetupError};
use crate::huge;
use crate::matrix::{Csr, Parts, part_by_work};
use crate::operator::LinearOperator;
use crate::precond::require_pattern;
use crate::space::{CHUNK, Threads, dot_chunk, require_same};
use crate::team::Member;
use std::ops::Range;
use std::sync::Arc;

/// Values on a sliced pattern.
#[derive(Debug)]
pub struct Sliced {
    pub(super) pattern: Arc<SlicedPattern>,
    pub(super) lower: Vec<f64>,
    pub(super) diagonal: Vec<f64>,
    pub(super) upper: Vec<f64>,
}

impl Sliced {
    /// All zero.
    pub fn zeros(pattern: &Arc<SlicedPattern>) -> Self {
        Sliced {
            pattern: Arc::clone(pattern),
            lower: huge::zeros(pattern.lower.len() * LANES),
            diagonal: huge::zeros(pattern.positions()),
            upper: huge::zeros(pattern.upper.len() * LANES),
        }
    }

    /// Takes over the values of a matrix of the pattern that was sliced; allocates nothing.
    pub fn set(&mut self, space: &Threads<f64>, a: &Csr<f64>) -> Result<(), SetupError> {
        let pattern = &*self.pattern;
        require_pattern(&pattern.source, a.pattern())?;
        let (lower, diagonal, upper) =
            (Parts::new(&mut self.lower), Parts::new(&mut self.diagonal), Parts::new(&mut self.upper));
        space.team().run(|member| {
            for i in member.part(a.nrows(), 256) {
                let (columns, values) = a.row(i);
                let places = &pattern.places[pattern.source.row_range(i)];
                for ((&j, &value), &place) in columns.iter().zip(values).zip(places) {
                    // SAFETY: every entry has a place of its own within its side, and every row one member.
                    unsafe {
                        match (j as usize).cmp(&i) {
                            std::cmp::Ordering::Less => lower.write(place as usize, value),
                            std::cmp::Ordering::Equal => {
                                diagonal.write(pattern.order.positions[i] as usize, value);
                            }
                            std::cmp::Ordering::Greater => upper.write(place as usize, value),
                        }
                    }
                }
            }
        });
        Ok(())
    }

    /// Bytes of the values.
    pub fn bytes(&self) -> usize {
        [&self.lower, &self.diagonal, &self.upper].iter().map(|v| size_of_val(v.as_slice())).sum()
    }

    pub(super) fn values(&self) -> Values {
        Values { lower: self.lower.as_ptr(), diagonal: self.diagonal.as_ptr(), upper: self.upper.as_ptr() }
    }

    /// A member's positions: a share of strips and slices, cut at multiples of [`CHUNK`].
    fn part(&self, member: &Member<'_>) -> Range<usize> {
        let p = &*self.pattern;
        part_by_work(p.positions(), member, |position| {
            let slice = position / LANES;
            (p.lower.first[slice] + p.upper.first[slice]) as usize + 3 * slice
        })
    }

    /// # Safety
    /// x and y have the pattern's length, and y of these positions is the caller's alone.
    unsafe fn multiply(&self, positions: Range<usize>, x: &[f64], y: &Vector) {
        let slices = positions.start / LANES..positions.end / LANES;
        // SAFETY: the pattern's positions are those of x and y.
        unsafe { kernels::multiply(&self.pattern, self.values(), slices, x.as_ptr(), y.get()) };
    }

    fn check(&self, x: &[f64], y: &[f64]) -> Result<(), BackendError> {
        require_same("x and the columns of A", &x.len(), &self.pattern.positions())?;
        require_same("y and the rows of A", &y.len(), &self.pattern.positions())
    }
}

impl LinearOperator<Threads<f64>> for Sliced {
    type Scratch = ();

    fn domain(&self) -> usize {
        self.pattern.positions()
    }

    fn range(&self) -> usize {
        self.pattern.positions()
    }

    fn scratch(&self, _: &Threads<f64>) -> Result<(), BackendError> {
        Ok(())
    }

    fn apply(
        &self,
        space: &Threads<f64>,
        x: &Vec<f64>,
        y: &mut Vec<f64>,
        _: &mut (),
    ) -> Result<(), BackendError> {
        self.check(x, y)?;
        let y = Vector::new(y);
        space.team().run(|member| {
            // SAFETY: lengths were checked; the parts of the members do not overlap.
            unsafe { self.multiply(self.part(&member), x, &y) };
        });
        Ok(())
    }

    fn apply_dot(
        &self,
        space: &Threads<f64>,
        x: &Vec<f64>,
        y: &mut Vec<f64>,
        _: &mut (),
    ) -> Result<f64, BackendError> {
        self.check(x, y)?;
        let n = y.len();
        let y = Vector::new(y);
        debug_assert!(CHUNK.is_multiple_of(LANES));
        Ok(space.sum_chunks_of(
            n,
            |member| self.part(member),
            |positions| {
                // SAFETY: lengths were checked; every chunk is visited once, by one member.
                let y = unsafe {
                    self.multiply(positions.clone(), x, &y);
                    std::slice::from_raw_parts(y.get().add(positions.start), positions.len())
                };
                dot_chunk(&x[positions], y)
            },
        ))
    }
}
