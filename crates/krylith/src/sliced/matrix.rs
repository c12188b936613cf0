//! A matrix in slices, and its product with a vector.
//!
//! Bytes of a product: 69 per strip, that is 8.6 per entry where strips are full, and 24 per row for diagonal, x and y; the same in
//! compressed rows is 12 and 24. A matrix of constant coefficients has strips whose entries are equal; if all are, the product
//! reads one value per strip, 13 bytes, and gives the same bits.
#![allow(unsafe_code)]

use super::LANES;
use super::kernels::{self, Values};
use super::strips::{POSITIONS_A_BASE, SlicedPattern};
use crate::disjoint::DisjointSlice;
use crate::error::{BackendError, SetupError};
use crate::matrix::{Csr, SeenValues, require_pattern};
use crate::memory::large_pages;
use crate::operator::{LinearOperator, part_by_work};
use crate::placement::storage;
use crate::space::{CHUNK, Threads, require_same};
use crate::team::Member;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Values on a sliced pattern.
#[derive(Debug, Clone)]
pub struct Sliced {
    pub(super) pattern: Arc<SlicedPattern>,
    pub(super) lower: Vec<f64>,
    pub(super) diagonal: Vec<f64>,
    pub(super) upper: Vec<f64>,
    uniform: Uniform,
    /// The values that were set last.
    seen: Option<SeenValues>,
}

/// One value per strip, for a matrix of constant coefficients.
#[derive(Debug, Clone)]
struct Uniform {
    lower: Vec<f64>,
    upper: Vec<f64>,
    /// Whether the entries of every strip are equal.
    holds: bool,
}

impl Sliced {
    /// All zero.
    pub fn zeros(pattern: &Arc<SlicedPattern>) -> Self {
        let (lower, upper) =
            (large_pages::zeros(pattern.lower.len()), large_pages::zeros(pattern.upper.len()));
        Sliced {
            pattern: Arc::clone(pattern),
            lower: large_pages::zeros(pattern.lower.len() * LANES),
            diagonal: large_pages::zeros(pattern.positions()),
            upper: large_pages::zeros(pattern.upper.len() * LANES),
            uniform: Uniform { lower, upper, holds: false },
            seen: None,
        }
    }

    /// `Err(PatternChanged)` unless the matrix has the pattern that was sliced.
    pub(crate) fn require(&self, a: &Csr<f64>) -> Result<(), SetupError> {
        require_pattern(&self.pattern.source, a.pattern())?;
        if self.pattern.places.len() == a.nnz() { Ok(()) } else { Err(SetupError::PatternChanged) }
    }

    /// Whether the values are those of this matrix, which has the pattern that was sliced.
    pub(crate) fn holds(&self, space: &Threads<f64>, a: &Csr<f64>) -> bool {
        self.seen.is_some_and(|seen| seen.are_those_of(space, a))
    }

    /// Takes over the values of a matrix of the pattern that was sliced; allocates nothing. Values that are here already are left
    /// where they are.
    pub fn set(&mut self, space: &Threads<f64>, a: &Csr<f64>) -> Result<(), SetupError> {
        self.require(a)?;
        if self.holds(space, a) {
            return Ok(());
        }
        self.scatter(space, a);
        self.find_uniform(space);
        self.seen = Some(SeenValues::of(space, a));
        Ok(())
    }

    fn scatter(&mut self, space: &Threads<f64>, a: &Csr<f64>) {
        let pattern = &*self.pattern;
        let (lower, diagonal, upper) = (
            DisjointSlice::new(&mut self.lower),
            DisjointSlice::new(&mut self.diagonal),
            DisjointSlice::new(&mut self.upper),
        );
        space.team().run(|member| {
            for i in member.part(a.nrows(), 256) {
                let (columns, values) = a.row(i);
                let places = &pattern.places[pattern.source.row_range(i)];
                let position = pattern.order.positions[i] as usize;
                let [below, above] = pattern.bases[position / POSITIONS_A_BASE];
                for ((&j, &value), &place) in columns.iter().zip(values).zip(places) {
                    let side = match pattern.keeps_sides() {
                        true => (j as usize).cmp(&i),
                        false => (pattern.order.positions[j as usize] as usize).cmp(&position),
                    };
                    // SAFETY: every entry has a place of its own within its side, and every row one member.
                    unsafe {
                        match side {
                            std::cmp::Ordering::Less => lower.write(below + place as usize, value),
                            std::cmp::Ordering::Equal => diagonal.write(position, value),
                            std::cmp::Ordering::Greater => upper.write(above + place as usize, value),
                        }
                    }
                }
            }
        });
    }

    /// Looks whether the entries of every strip are equal, and keeps one of each then.
    fn find_uniform(&mut self, space: &Threads<f64>) {
        let Uniform { lower, upper, holds } = &mut self.uniform;
        let all = AtomicBool::new(true);
        for (strips, values, one) in
            [(&self.pattern.lower, &self.lower, lower), (&self.pattern.upper, &self.upper, upper)]
        {
            let (one, values) = (DisjointSlice::new(one), values.as_chunks::<LANES>().0);
            space.team().run(|member| {
                for k in member.part(strips.len(), 1024) {
                    let (mask, values) = (strips.mask[k], values[k]);
                    let value = values[mask.trailing_zeros() as usize % LANES];
                    let differs = |l: usize| mask >> l & 1 == 1 && values[l].to_bits() != value.to_bits();
                    // An infinite number would turn the zeros of empty lanes into NaN.
                    if !value.is_finite()
                        || (0..LANES).any(differs)
                        || k % 1024 == 0 && !all.load(Ordering::Relaxed)
                    {
                        return all.store(false, Ordering::Relaxed);
                    }
                    // SAFETY: the parts of the members do not overlap.
                    unsafe { one.write(k, value) };
                }
            });
        }
        *holds = all.into_inner();
    }

    /// The entries of every strip are equal, as those of constant coefficients.
    pub fn is_uniform(&self) -> bool {
        self.uniform.holds
    }

    /// Bytes of the values.
    pub fn bytes(&self) -> usize {
        let Uniform { lower, upper, .. } = &self.uniform;
        [&self.lower, &self.diagonal, &self.upper, lower, upper]
            .iter()
            .map(|v| size_of_val(v.as_slice()))
            .sum()
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
    unsafe fn multiply(&self, positions: Range<usize>, x: &[f64], y: &DisjointSlice<'_, f64>) {
        let slices = positions.start / LANES..positions.end / LANES;
        // SAFETY: the pattern's positions are those of x and y, its strips those of the values.
        unsafe {
            if self.uniform.holds {
                let Uniform { lower, upper, .. } = &self.uniform;
                let (lower, upper) = (lower.as_ptr(), upper.as_ptr());
                let values = Values { lower, diagonal: self.diagonal.as_ptr(), upper };
                kernels::multiply_uniform(&self.pattern, values, slices, x.as_ptr(), y.as_mut_ptr());
            } else {
                kernels::multiply(&self.pattern, self.values(), slices, x.as_ptr(), y.as_mut_ptr());
            }
        }
    }

    fn check(&self, x: &[f64], y: &[f64]) -> Result<(), BackendError> {
        require_same("x and the columns of A", &x.len(), &self.pattern.positions())?;
        require_same("y and the rows of A", &y.len(), &self.pattern.positions())
    }
}

storage!(Sliced);

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
        let y = DisjointSlice::new(y);
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
        let y = DisjointSlice::new(y);
        debug_assert!(CHUNK.is_multiple_of(LANES));
        let [sum] = space.sums_over(
            n,
            |member| self.part(member),
            |positions, [sum]| {
                // SAFETY: lengths were checked; every chunk is visited once, by one member.
                let y = unsafe {
                    self.multiply(positions.clone(), x, &y);
                    std::slice::from_raw_parts(y.as_mut_ptr().add(positions.start), positions.len())
                };
                sum.add_products(&x[positions], y);
            },
        );
        Ok(sum)
    }
}
