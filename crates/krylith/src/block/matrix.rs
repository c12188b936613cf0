//! A matrix of dense B x B blocks by rows, and its product with a vector.
//!
//! Block row I has its blocks at the columns of row I of a block [`Pattern`], each B² numbers row by row. A block is stored whole if
//! one of its entries is in the matrix it came from; the others are zero. The order of summation stands in `kernels`.
//!
//! Bytes of a product: 8 B² + 4 per block and 8 / B + 16 per row; for B = 3 that is 8.4 per entry where compressed rows have 12.
#![allow(unsafe_code)]

use super::kernels::{self, View};
use crate::disjoint::DisjointSlice;
use crate::error::{BackendError, MatrixError, SetupError};
use crate::matrix::{Csr, Pattern, require_pattern};
use crate::memory::large_pages;
use crate::operator::{LinearOperator, part_by_work};
use crate::parallel;
use crate::simd::SLACK;
use crate::space::{Threads, require_same};
use crate::team::Member;
use std::ops::Range;
use std::sync::Arc;

/// Block rows that a task of the analysis takes.
const ROWS_PER_TASK: usize = 512;

/// Values on a pattern of B x B blocks; B is 1 to 8.
///
/// ```
/// use krylith::block::Bsr;
/// use krylith::{gallery::Problem, operator::LinearOperator, space::Threads};
/// let a = "elasticity3d:6".parse::<Problem>()?.generate()?;
/// let space = Threads::new(2);
/// let blocks = Bsr::<3>::new(&space, &a)?;
/// assert_eq!(9 * blocks.pattern().nnz(), a.nnz());
/// let (x, mut y) = (vec![1.0; a.nrows()], vec![0.0; a.nrows()]);
/// blocks.apply(&space, &x, &mut y, &mut ())?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Bsr<const B: usize> {
    /// Of the matrix that was blocked.
    source: Arc<Pattern>,
    pattern: Arc<Pattern>,
    /// Blocks, and [`SLACK`] zeros.
    values: Vec<f64>,
}

impl<const B: usize> Bsr<B> {
    /// The blocks of a matrix whose rows and columns are multiples of B. Takes up to B² times the entries.
    pub fn new(space: &Threads<f64>, a: &Csr<f64>) -> Result<Self, SetupError> {
        let mut blocks = Self::zeros(a.pattern())?;
        blocks.set(space, a)?;
        Ok(blocks)
    }

    /// The blocks of a pattern, all zero.
    pub fn zeros(source: &Arc<Pattern>) -> Result<Self, MatrixError> {
        let pattern = Arc::new(block_pattern::<B>(source)?);
        let values = large_pages::zeros_or_error(pattern.nnz() * B * B + SLACK)?;
        Ok(Bsr { source: Arc::clone(source), pattern, values })
    }

    /// `Err(PatternChanged)` unless the matrix has the pattern that was blocked.
    pub(super) fn require(&self, a: &Csr<f64>) -> Result<(), SetupError> {
        require_pattern(&self.source, a.pattern())
    }

    /// Takes over the values of a matrix of the pattern that was blocked; allocates nothing.
    pub fn set(&mut self, space: &Threads<f64>, a: &Csr<f64>) -> Result<(), SetupError> {
        self.require(a)?;
        let (pattern, values) = (&*self.pattern, DisjointSlice::new(&mut self.values));
        space.team().run(|member| {
            for i in self::blocks(pattern, &member) {
                let (columns, range) = (pattern.row(i), pattern.row_range(i));
                // SAFETY: the block rows of the members do not overlap.
                let blocks = unsafe { values.get(range.start * B * B..range.end * B * B) };
                blocks.fill(0.0);
                for r in 0..B {
                    let mut k = 0;
                    let (scalar_columns, given) = a.row(i * B + r);
                    for (&j, &value) in scalar_columns.iter().zip(given) {
                        while columns[k] < j / B as u32 {
                            k += 1;
                        }
                        blocks[(k * B + r) * B + j as usize % B] = value;
                    }
                }
            }
        });
        Ok(())
    }

    /// The same matrix by rows, with the pattern it came from.
    pub fn to_csr(&self) -> Csr<f64> {
        let mut values = vec![0.0; self.source.nnz()];
        for i in 0..self.source.nrows() {
            let (mut k, range) = (0, self.pattern.row_range(i / B));
            let columns = self.pattern.row(i / B);
            for (place, &j) in self.source.row_range(i).zip(self.source.row(i)) {
                while columns[k] < j / B as u32 {
                    k += 1;
                }
                values[place] = self.values[((range.start + k) * B + i % B) * B + j as usize % B];
            }
        }
        Csr::trusted(Arc::clone(&self.source), values)
    }

    /// Where the blocks are.
    pub fn pattern(&self) -> &Arc<Pattern> {
        &self.pattern
    }

    /// The blocks, one after the other, each row by row.
    pub fn values(&self) -> &[f64] {
        &self.values[..self.pattern.nnz() * B * B]
    }

    /// Number of scalar rows.
    pub fn nrows(&self) -> usize {
        self.source.nrows()
    }

    /// Number of scalar columns.
    pub fn ncols(&self) -> usize {
        self.source.ncols()
    }

    /// Bytes of blocks and their pattern.
    pub fn bytes(&self) -> usize {
        self.pattern.bytes() + size_of_val(self.values.as_slice())
    }

    pub(super) fn view(&self) -> View<'_> {
        View { pattern: &self.pattern, values: self.values.as_ptr() }
    }

    /// A member's scalar rows: a share of blocks and rows, cut at multiples of `CHUNK`, which may be within a block.
    fn part(&self, member: &Member<'_>) -> Range<usize> {
        let row_ptr = self.pattern.row_ptr();
        part_by_work(self.nrows(), member, |row| row_ptr[row / B] * B + row / B)
    }

    fn check(&self, x: &[f64], y: &[f64]) -> Result<(), BackendError> {
        require_same("x and the columns of A", &x.len(), &self.ncols())?;
        require_same("y and the rows of A", &y.len(), &self.nrows())
    }
}

/// A member's share of block rows.
fn blocks(pattern: &Pattern, member: &Member<'_>) -> Range<usize> {
    member.part(pattern.nrows(), 64)
}

/// `Err` unless rows and columns are multiples of B, which is 1 to 8.
fn require_blocks<const B: usize>(source: &Pattern) -> Result<(), MatrixError> {
    const { assert!(1 <= B && B <= 8, "blocks are of 1 to 8 rows") };
    for (what, count) in [("rows", source.nrows()), ("columns", source.ncols())] {
        if !count.is_multiple_of(B) {
            return Err(MatrixError::NotInBlocks { what, count, size: B });
        }
    }
    Ok(())
}

/// The B x B blocks that have an entry.
fn block_pattern<const B: usize>(source: &Pattern) -> Result<Pattern, MatrixError> {
    require_blocks::<B>(source)?;
    let (nrows, ncols) = (source.nrows() / B, source.ncols() / B);
    let mut row_ptr = vec![0usize; nrows + 1];
    parallel::for_each_piece_mut(&mut row_ptr[1..], ROWS_PER_TASK, |first, counts| {
        for (i, count) in (first..).zip(counts) {
            *count = BlockColumns::new(source, B, i).count();
        }
    });
    for i in 0..nrows {
        row_ptr[i + 1] += row_ptr[i];
    }
    let mut col_idx = vec![0u32; row_ptr[nrows]];
    let mut rest = col_idx.as_mut_slice();
    let mut rows = Vec::with_capacity(nrows.div_ceil(ROWS_PER_TASK));
    for first in (0..nrows).step_by(ROWS_PER_TASK) {
        let range = first..(first + ROWS_PER_TASK).min(nrows);
        let (piece, after) = rest.split_at_mut(row_ptr[range.end] - row_ptr[range.start]);
        rows.push((range, piece));
        rest = after;
    }
    parallel::for_each_of(rows, |(range, piece)| {
        let columns = range.flat_map(|i| BlockColumns::new(source, B, i));
        piece.iter_mut().zip(columns).for_each(|(place, j)| *place = j);
    });
    Ok(Pattern::trusted(nrows, ncols, row_ptr, col_idx))
}

/// The block columns of a block row, increasing: the rows' columns merged.
pub(super) struct BlockColumns<'a> {
    size: u32,
    rows: [&'a [u32]; 8],
}

impl<'a> BlockColumns<'a> {
    /// Of block row i for blocks of `size`, at most 8.
    pub(super) fn new(source: &'a Pattern, size: usize, i: usize) -> Self {
        let rows = std::array::from_fn(|r| if r < size { source.row(i * size + r) } else { &[][..] });
        BlockColumns { size: size as u32, rows }
    }
}

impl Iterator for BlockColumns<'_> {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        let block = self.rows.iter().filter_map(|row| row.first()).min()? / self.size;
        for row in &mut self.rows {
            let same = row.iter().take_while(|&&j| j / self.size == block).count();
            *row = &row[same..];
        }
        Some(block)
    }
}

impl<const B: usize> LinearOperator<Threads<f64>> for Bsr<B> {
    type Scratch = ();

    fn domain(&self) -> usize {
        self.ncols()
    }

    fn range(&self) -> usize {
        self.nrows()
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
            // SAFETY: lengths were checked; the rows of the members do not overlap.
            unsafe { kernels::multiply::<B>(self.view(), self.part(&member), x.as_ptr(), y.as_mut_ptr()) };
        });
        Ok(())
    }

    fn apply_dot(
        &self,
        space: &Threads<f64>,
        x: &Vec<f64>,
        y: &mut Vec<f64>,
        scratch: &mut (),
    ) -> Result<f64, BackendError> {
        if self.nrows() != self.ncols() {
            self.apply(space, x, y, scratch)?;
            return crate::space::Space::dot(space, x, y);
        }
        self.check(x, y)?;
        let y = DisjointSlice::new(y);
        let divide = |member: &Member<'_>| self.part(member);
        let [sum] = space.sums_over(self.nrows(), divide, |rows, [sum]| {
            // SAFETY: lengths were checked; every chunk is visited once, by one member.
            let y = unsafe {
                kernels::multiply::<B>(self.view(), rows.clone(), x.as_ptr(), y.as_mut_ptr());
                std::slice::from_raw_parts(y.as_mut_ptr().add(rows.start), rows.len())
            };
            sum.add_products(&x[rows], y);
        });
        Ok(sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::tests::{blocky, problem};
    use crate::space::Space;

    fn check<const B: usize>() {
        // 2048 is no multiple of 3, 5, 6, 7: chunks of the dot product end within blocks.
        let a = blocky(B, 5000 / B, 6);
        let n = a.nrows();
        let x: Vec<f64> = (0..n).map(|j| ((j * 17) as f64).cos()).collect();
        let (mut y, mut expected) = (vec![f64::NAN; n], vec![0.0; n]);
        a.mul_vec(&x, &mut expected).unwrap();
        let blocks = Bsr::<B>::new(&Threads::new(1), &a).unwrap();
        assert_eq!(blocks.to_csr(), a);
        blocks.apply(&Threads::new(1), &x, &mut y, &mut ()).unwrap();
        for i in 0..n {
            let (columns, values) = a.row(i);
            let size: f64 = columns.iter().zip(values).map(|(&j, v)| (v * x[j as usize]).abs()).sum();
            let bound = f64::EPSILON * values.len() as f64 * size;
            assert!((y[i] - expected[i]).abs() <= bound, "B = {B}, row {i}");
        }
        let dot = Threads::new(1).dot(&x, &y).unwrap();
        for threads in [1, 2, 3, 8] {
            let space = Threads::new(threads);
            let again = Bsr::<B>::new(&space, &a).unwrap();
            assert_eq!(again.values(), blocks.values());
            let mut z = vec![f64::NAN; n];
            again.apply(&space, &x, &mut z, &mut ()).unwrap();
            assert!(z == y, "B = {B}, {threads} threads");
            z.fill(f64::NAN);
            let fused = again.apply_dot(&space, &x, &mut z, &mut ()).unwrap();
            assert_eq!(fused.to_bits(), dot.to_bits(), "B = {B}, {threads} threads");
            assert!(z == y, "B = {B}, {threads} threads, fused");
        }
    }

    #[test]
    fn the_product_is_the_scalar_one_for_every_size() {
        check::<1>();
        check::<2>();
        check::<3>();
        check::<4>();
        check::<5>();
        check::<6>();
        check::<7>();
        check::<8>();
    }

    /// [1 2 | . .]
    /// [. 3 | . 4]   blocks (0, 0), (0, 1) and (1, 1)
    /// [----+----]
    /// [. . | 5 .]
    /// [. . | . 6]
    #[test]
    fn blocks_by_hand() {
        let (rows, columns) = ([0, 0, 1, 1, 2, 3], [0, 1, 1, 3, 2, 3]);
        let a = Csr::from_triplets(4, 4, &rows, &columns, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
        let space = Threads::new(1);
        let blocks = Bsr::<2>::new(&space, &a).unwrap();
        assert_eq!(blocks.pattern().row_ptr(), [0, 2, 3]);
        assert_eq!(blocks.pattern().col_idx(), [0, 1, 1]);
        assert_eq!(blocks.values(), [1.0, 2.0, 0.0, 3.0, 0.0, 0.0, 0.0, 4.0, 5.0, 0.0, 0.0, 6.0]);
        let mut y = vec![0.0; 4];
        blocks.apply(&space, &vec![1.0, 10.0, 100.0, 1000.0], &mut y, &mut ()).unwrap();
        assert_eq!(y, [21.0, 4030.0, 500.0, 6000.0]);
        let wide = Csr::from_triplets(2, 6, &[0, 1], &[5, 0], &[1.0, 2.0]).unwrap();
        let blocks = Bsr::<2>::new(&space, &wide).unwrap();
        assert_eq!(blocks.pattern().col_idx(), [0, 2]);
        assert_eq!(blocks.to_csr(), wide);
    }

    #[test]
    fn an_infinite_entry_stays_in_its_row() {
        let mut a = problem("elasticity3d:3");
        let place = a.pattern().find(4, 3).unwrap();
        a.values_mut()[place] = f64::INFINITY;
        let space = Threads::new(1);
        let (x, mut y) = (vec![1.0; a.nrows()], vec![0.0; a.nrows()]);
        Bsr::<3>::new(&space, &a).unwrap().apply(&space, &x, &mut y, &mut ()).unwrap();
        assert!(y.iter().enumerate().all(|(i, y)| y.is_finite() == (i != 4)), "{y:?}");
    }

    #[test]
    fn sizes_and_patterns_that_do_not_fit_are_refused() {
        let a = problem("poisson2d:5");
        let space = Threads::new(1);
        let error = Bsr::<2>::new(&space, &a).unwrap_err();
        assert_eq!(error, MatrixError::NotInBlocks { what: "rows", count: 25, size: 2 }.into());
        let mut blocks = Bsr::<5>::new(&space, &a).unwrap();
        assert_eq!(blocks.set(&space, &problem("poisson2d:10")), Err(SetupError::PatternChanged));
        let (x, mut y) = (vec![1.0; 24], vec![0.0; 25]);
        assert!(blocks.apply(&space, &x, &mut y, &mut ()).is_err());
        let empty = Csr::from_triplets(0, 0, &[], &[], &[]).unwrap();
        let blocks = Bsr::<4>::new(&space, &empty).unwrap();
        assert_eq!(blocks.apply_dot(&space, &vec![], &mut vec![], &mut ()).unwrap(), 0.0);
    }
}
