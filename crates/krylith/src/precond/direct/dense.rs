//! Dense operations on fronts, stored by columns: products, triangles, and elimination with row exchanges.
//!
//! Products C −= A B go through tiles of 8 x 6 numbers that stay in registers; A and B are copied so that a tile reads them one number
//! after the other, in pieces that caches hold. Sums run over k from first to last, multiplication and addition rounded one by
//! one: the bits are the same on every processor. References: Goto & van de Geijn 2008, doi:10.1145/1356052.1356053.
#![allow(unsafe_code)]

use super::SmallPivots;
use crate::scalar::Scalar;
use crate::simd::{Lanes, Simd, dispatch};

/// Rows and columns of a tile.
const TILE: (usize, usize) = (8, 6);
/// Rows of A, and columns of A, that are copied at a time.
const PIECE: (usize, usize) = (96, 256);
/// Columns that are eliminated one by one before the rest is updated.
pub(super) const PANEL: usize = 24;
/// Products of fewer columns of A than this are not worth copies.
const SHORT: usize = 4;

/// Numbers by columns: entry (i, j) is `at[i + j * stride]`.
#[derive(Clone, Copy)]
pub(super) struct Block<'a> {
    pub(super) at: &'a [f64],
    pub(super) stride: usize,
    /// The transpose is meant: entry (i, j) is `at[j + i * stride]`.
    pub(super) transposed: bool,
}

impl<'a> Block<'a> {
    pub(super) fn new(at: &'a [f64], stride: usize) -> Self {
        Block { at, stride, transposed: false }
    }

    pub(super) fn transposed(self) -> Self {
        Block { transposed: !self.transposed, ..self }
    }

    fn get(&self, i: usize, j: usize) -> f64 {
        if self.transposed { self.at[j + i * self.stride] } else { self.at[i + j * self.stride] }
    }
}

/// Copies of pieces of A and B, kept from product to product.
#[derive(Debug, Default)]
pub struct Copies {
    a: Vec<f64>,
    b: Vec<f64>,
    /// Rows of a block that is about to be written.
    rows: Vec<f64>,
}

impl Copies {
    /// C −= A B, with A of m x k and B of k x n numbers; C has this stride.
    pub(super) fn subtract_product(
        &mut self,
        (m, n, k): (usize, usize, usize),
        a: Block<'_>,
        b: Block<'_>,
        c: &mut [f64],
        stride: usize,
    ) {
        if m == 0 || n == 0 {
            return;
        }
        if k < SHORT || m < TILE.0 {
            return subtract_short((m, n, k), a, b, c, stride);
        }
        for first in (0..k).step_by(PIECE.1) {
            let depth = PIECE.1.min(k - first);
            self.copy_b(b, first, depth, n);
            for top in (0..m).step_by(PIECE.0) {
                let rows = PIECE.0.min(m - top);
                self.copy_a(a, (top, rows), (first, depth));
                for (tile, left) in (0..n).step_by(TILE.1).enumerate() {
                    let b = &self.b[tile * TILE.1 * depth..][..TILE.1 * depth];
                    for (slab, upper) in (0..rows).step_by(TILE.0).enumerate() {
                        let a = &self.a[slab * TILE.0 * depth..][..TILE.0 * depth];
                        let (height, width) = (TILE.0.min(rows - upper), TILE.1.min(n - left));
                        let c = &mut c[top + upper + left * stride..];
                        subtract_tile(a, b, c, stride, (height, width));
                    }
                }
            }
        }
    }

    /// Some rows of a block, in memory that the caller gives back.
    fn take_rows(
        &mut self,
        block: &[f64],
        (first, rows): (usize, usize),
        stride: usize,
        n: usize,
    ) -> Vec<f64> {
        let mut taken = std::mem::take(&mut self.rows);
        taken.clear();
        taken.extend((0..n).flat_map(|j| &block[first + j * stride..][..rows]));
        taken
    }

    fn copy_a(&mut self, a: Block<'_>, (top, rows): (usize, usize), (first, depth): (usize, usize)) {
        self.a.resize(rows.next_multiple_of(TILE.0) * depth, 0.0);
        for (slab, upper) in (0..rows).step_by(TILE.0).enumerate() {
            let to = &mut self.a[slab * TILE.0 * depth..][..TILE.0 * depth];
            let height = TILE.0.min(rows - upper);
            for (p, to) in to.chunks_exact_mut(TILE.0).enumerate() {
                if height == TILE.0 && !a.transposed {
                    to.copy_from_slice(&a.at[top + upper + (first + p) * a.stride..][..TILE.0]);
                } else {
                    to.fill(0.0);
                    (0..height).for_each(|i| to[i] = a.get(top + upper + i, first + p));
                }
            }
        }
    }

    fn copy_b(&mut self, b: Block<'_>, first: usize, depth: usize, n: usize) {
        self.b.resize(n.next_multiple_of(TILE.1) * depth, 0.0);
        for (tile, left) in (0..n).step_by(TILE.1).enumerate() {
            let to = &mut self.b[tile * TILE.1 * depth..][..TILE.1 * depth];
            let width = TILE.1.min(n - left);
            for (p, to) in to.chunks_exact_mut(TILE.1).enumerate() {
                to.fill(0.0);
                (0..width).for_each(|j| to[j] = b.get(first + p, left + j));
            }
        }
    }
}

/// The same for few columns of A, or few rows, column by column.
fn subtract_short(
    (m, n, k): (usize, usize, usize),
    a: Block<'_>,
    b: Block<'_>,
    c: &mut [f64],
    stride: usize,
) {
    for j in 0..n {
        let c = &mut c[j * stride..][..m];
        for p in 0..k {
            let factor = b.get(p, j);
            if a.transposed {
                c.iter_mut().enumerate().for_each(|(i, c)| *c -= a.get(i, p) * factor);
            } else {
                subtract_multiple::<f64>(c, &a.at[p * a.stride..][..m], factor);
            }
        }
    }
}

dispatch! {
    /// y −= α x.
    pub(super) fn subtract_multiple<T: Scalar>(y: &mut [T], x: &[T], alpha: T) {
        for (y, x) in y.iter_mut().zip(x) {
            *y -= *x * alpha;
        }
    }
}

/// One tile: C −= A B with A 8 x k and B k x 6, both copied, of which `shape` is inside of C.
fn subtract_tile(a: &[f64], b: &[f64], c: &mut [f64], stride: usize, shape: (usize, usize)) {
    let mut sums = [0.0; TILE.0 * TILE.1];
    assert!(a.len() * TILE.1 == b.len() * TILE.0);
    // SAFETY: A and B have as many columns and rows as each other, by the line above.
    unsafe { tile(a, b, &mut sums) };
    for (j, sums) in sums.chunks_exact(TILE.0).take(shape.1).enumerate() {
        for (c, sum) in c[j * stride..][..shape.0].iter_mut().zip(sums) {
            *c -= sum;
        }
    }
}

dispatch! {
    /// The sums of one tile.
    ///
    /// # Safety
    /// `a` has eight numbers where `b` has six.
    unsafe fn tile(a: &[f64], b: &[f64], sums: &mut [f64; TILE.0 * TILE.1]) = tile_with;
}

#[inline(always)]
unsafe fn tile_with<L: Lanes>(a: &[f64], b: &[f64], sums: &mut [f64; TILE.0 * TILE.1]) {
    let (mut a, mut b, depth) = (a.as_ptr(), b.as_ptr(), a.len() / TILE.0);
    // SAFETY: `depth` steps of eight and six numbers are within the slices, by the caller's promise.
    unsafe {
        let mut acc = [<L as Simd>::splat(0.0); TILE.1];
        for _ in 0..depth {
            let column = L::load(a);
            for (j, acc) in acc.iter_mut().enumerate() {
                *acc = L::add(*acc, L::mul(column, L::splat(*b.add(j))));
            }
            (a, b) = (a.add(TILE.0), b.add(TILE.1));
        }
        for (j, acc) in acc.into_iter().enumerate() {
            L::store(sums.as_mut_ptr().add(j * TILE.0), acc);
        }
    }
}

impl SmallPivots {
    /// Replaces a pivot that is too small; whether it was. One that is not a number stays what it is: the answer shows it.
    pub(super) fn replace(self, pivot: &mut f64) -> bool {
        let small = pivot.abs() < self.bound;
        if small {
            *pivot = self.replacement.copysign(*pivot);
        }
        small
    }
}

/// L U of the first columns of a front of `m` rows, with exchanges among its first `columns` rows: `exchanges[j]` is the row that
/// came to row j. How many pivots were replaced.
pub(super) fn eliminate_lu(
    panel: &mut [f64],
    m: usize,
    columns: usize,
    small: SmallPivots,
    exchanges: &mut [u32],
    copies: &mut Copies,
) -> usize {
    let mut replaced = 0;
    for begin in (0..columns).step_by(PANEL) {
        let end = (begin + PANEL).min(columns);
        for j in begin..end {
            let column = &panel[j * m..][..columns];
            let mut row = j;
            for i in j + 1..columns {
                if column[i].abs() > column[row].abs() {
                    row = i;
                }
            }
            exchanges[j] = row as u32;
            if row != j {
                (0..columns).for_each(|k| panel.swap(j + k * m, row + k * m));
            }
            let pivot = &mut panel[j + j * m];
            replaced += usize::from(small.replace(pivot));
            let inverse = 1.0 / *pivot;
            let (left, right) = panel.split_at_mut((j + 1) * m);
            let column = &mut left[j * m + j + 1..];
            column.iter_mut().for_each(|v| *v *= inverse);
            for other in right[..(end - j - 1) * m].chunks_exact_mut(m) {
                let factor = other[j];
                subtract_multiple::<f64>(&mut other[j + 1..], column, factor);
            }
        }
        let (left, right) = panel.split_at_mut(end * m);
        if right.is_empty() {
            break;
        }
        let (lower, n) = (Block::new(&left[begin * m + begin..], m), columns - end);
        solve_unit_lower(lower, end - begin, &mut right[begin..], m, n);
        let upper = copies.take_rows(right, (begin, end - begin), m, n);
        let below = Block::new(&left[begin * m + end..], m);
        let shape = (m - end, n, end - begin);
        copies.subtract_product(shape, below, Block::new(&upper, end - begin), &mut right[end..], m);
        copies.rows = upper;
    }
    replaced
}

/// B := L⁻¹ B with L of n x n numbers, unit lower triangular, column by column of B.
fn solve_unit_lower(l: Block<'_>, n: usize, b: &mut [f64], stride: usize, columns: usize) {
    for c in 0..columns {
        let b = &mut b[c * stride..][..n];
        for j in 0..n {
            let (head, tail) = b.split_at_mut(j + 1);
            subtract_multiple::<f64>(tail, &l.at[j + 1 + j * l.stride..][..n - j - 1], head[j]);
        }
    }
}

/// B := L⁻¹ B for a larger L, in pieces.
pub(super) fn solve_lower(
    l: Block<'_>,
    n: usize,
    b: &mut [f64],
    (stride, columns): (usize, usize),
    copies: &mut Copies,
) {
    if columns == 0 {
        return;
    }
    for begin in (0..n).step_by(PANEL) {
        let size = PANEL.min(n - begin);
        let end = begin + size;
        let part = Block::new(&l.at[begin + begin * l.stride..], l.stride);
        solve_unit_lower(part, size, &mut b[begin..], stride, columns);
        if end < n {
            let done = copies.take_rows(b, (begin, size), stride, columns);
            let below = Block::new(&l.at[end + begin * l.stride..], l.stride);
            copies.subtract_product(
                (n - end, columns, size),
                below,
                Block::new(&done, size),
                &mut b[end..],
                stride,
            );
            copies.rows = done;
        }
    }
}

/// What becomes of a pivot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pivot {
    Taken,
    /// The factor is that of the matrix without this row and column: the column is zero.
    LeftOut,
    /// The elimination ends.
    Refused,
}

impl Pivot {
    /// Taken if it is above 0.
    pub(crate) fn if_positive(pivot: f64) -> Self {
        if pivot > 0.0 { Pivot::Taken } else { Pivot::Refused }
    }
}

/// L of the first columns of a symmetric front of `m` rows, of which the lower triangle is given. The first pivot that is refused, if there is one.
pub(crate) fn eliminate_cholesky(
    panel: &mut [f64],
    m: usize,
    columns: usize,
    copies: &mut Copies,
    mut judge: impl FnMut(usize, f64) -> Pivot,
) -> Result<(), (usize, f64)> {
    for begin in (0..columns).step_by(PANEL) {
        let end = (begin + PANEL).min(columns);
        for j in begin..end {
            let pivot = panel[j + j * m];
            let (left, right) = panel.split_at_mut((j + 1) * m);
            let column = &mut left[j * m + j..];
            match judge(j, pivot) {
                Pivot::Taken => {}
                Pivot::LeftOut => {
                    column.fill(0.0);
                    continue;
                }
                Pivot::Refused => return Err((j, pivot)),
            }
            let inverse = 1.0 / pivot.sqrt();
            column.iter_mut().for_each(|v| *v *= inverse);
            for (k, other) in right[..(end - j - 1) * m].chunks_exact_mut(m).enumerate() {
                let first = j + 1 + k;
                subtract_multiple::<f64>(&mut other[first..], &column[first - j..], column[first - j]);
            }
        }
        let (left, right) = panel.split_at_mut(end * m);
        if right.is_empty() {
            break;
        }
        let below = Block::new(&left[begin * m + end..], m);
        let shape = (m - end, columns - end, end - begin);
        subtract_lower(shape, (below, below), &mut right[end..], m, copies);
    }
    Ok(())
}

/// The lower triangle of C −= A Bᵀ, of its first n columns, in strips of columns.
pub(super) fn subtract_lower(
    (m, n, k): (usize, usize, usize),
    (a, b): (Block<'_>, Block<'_>),
    c: &mut [f64],
    stride: usize,
    copies: &mut Copies,
) {
    const STRIP: usize = 48;
    for left in (0..n).step_by(STRIP) {
        let width = STRIP.min(n - left);
        copies.subtract_product(
            (m - left, width, k),
            Block::new(&a.at[left..], a.stride),
            Block::new(&b.at[left..], b.stride).transposed(),
            &mut c[left + left * stride..],
            stride,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(n: usize, seed: u64) -> Vec<f64> {
        let mut s = seed;
        (0..n)
            .map(|_| {
                s = s.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                (s >> 33) as f64 / (1u64 << 31) as f64 - 0.5
            })
            .collect()
    }

    #[test]
    fn products_of_every_shape() {
        let mut copies = Copies::default();
        for (m, n, k) in [(1, 1, 1), (7, 3, 9), (8, 6, 4), (9, 7, 5), (100, 50, 300), (33, 13, 257)] {
            let (a, b, c) = (numbers(m * k, 1), numbers(k * n, 2), numbers(m * n, 3));
            let b_transposed: Vec<f64> = (0..n * k).map(|e| b[e / n + e % n * k]).collect();
            for b in [Block::new(&b, k), Block::new(&b_transposed, n).transposed()] {
                let mut c = c.clone();
                let before = c.clone();
                copies.subtract_product((m, n, k), Block::new(&a, m), b, &mut c, m);
                for i in 0..m {
                    for j in 0..n {
                        let sum: f64 = (0..k).map(|p| a[i + p * m] * b.get(p, j)).sum();
                        assert!((c[i + j * m] - (before[i + j * m] - sum)).abs() < 1e-12 * k as f64);
                    }
                }
            }
        }
    }

    const NEVER: SmallPivots = SmallPivots { bound: 0.0, replacement: 0.0 };

    /// P F = L U on the columns that are eliminated.
    #[test]
    fn lu_multiplies_back() {
        for (m, columns) in [(1, 1), (5, 3), (40, 40), (70, 61), (130, 100)] {
            let f = numbers(m * columns, 7);
            let (mut lu, mut exchanges) = (f.clone(), vec![0; columns]);
            let replaced = eliminate_lu(&mut lu, m, columns, NEVER, &mut exchanges, &mut Copies::default());
            assert_eq!(replaced, 0);
            let mut pf = f;
            for (j, &row) in exchanges.iter().enumerate() {
                (0..columns).for_each(|k| pf.swap(j + k * m, row as usize + k * m));
            }
            for i in 0..m {
                for j in 0..columns {
                    let l = |i: usize, k: usize| if i == k { 1.0 } else { lu[i + k * m] };
                    let sum: f64 = (0..=i.min(j)).map(|k| l(i, k) * lu[k + j * m]).sum();
                    assert!((sum - pf[i + j * m]).abs() < 1e-10, "{m} {columns}: {i}, {j}");
                }
            }
        }
    }

    #[test]
    fn tiny_pivots_are_replaced_and_counted() {
        let (mut f, mut exchanges) = (vec![0.0, 0.0, 1.0, 0.0], vec![0; 2]);
        let small = SmallPivots { bound: 1e-8, replacement: 1e-7 };
        let replaced = eliminate_lu(&mut f, 2, 2, small, &mut exchanges, &mut Copies::default());
        assert_eq!((replaced, f[0], f[3]), (2, 1e-7, 1e-7));
    }

    #[test]
    fn cholesky_multiplies_back_and_refuses() {
        for (m, columns) in [(1, 1), (60, 30), (130, 100)] {
            let g = numbers(m * m, 5);
            let f: Vec<f64> = (0..m * columns)
                .map(|e| (0..m).map(|k| g[e % m + k * m] * g[e / m + k * m]).sum::<f64>())
                .collect();
            let mut l = f.clone();
            eliminate_cholesky(&mut l, m, columns, &mut Copies::default(), |_, pivot| {
                Pivot::if_positive(pivot)
            })
            .unwrap();
            for j in 0..columns {
                for i in j..m {
                    let sum: f64 = (0..=j).map(|k| l[i + k * m] * l[j + k * m]).sum();
                    assert!((sum - f[i + j * m]).abs() < 1e-9, "{m} {columns}: {i}, {j}");
                }
            }
        }
        let mut f = vec![1.0, 2.0, 2.0, 1.0];
        assert_eq!(
            eliminate_cholesky(&mut f, 2, 2, &mut Copies::default(), |_, pivot| Pivot::if_positive(pivot)),
            Err((1, -3.0))
        );
    }
}
