//! y = A x by compressed rows in `f64`: eight rows at a time, two lanes of a row at a time.
//!
//! The eight lanes of a row (`space::lanes`) are four pairs, P₀ to P₃, and the sum is that of the two lanes of (P₀ + P₂) + (P₁ + P₃). A lane that has no entry
//! is +0, and a lane of a sum that begins with +0 is never −0. Here sums begin with the first product, whose zero may be negative; this
//! changes no more than the signs of zeros, and + 0 at the end makes each of them positive. So the bits are those of the definition.
//!
//! Eight rows of one length up to eight have code of their own. In all other rows the entries after the last full eight are read as if there
//! were eight, or four, and the lanes that are not of the row are cleared, because a branch that depends on the length of every row costs more than
//! the entries. Numbers of x are loaded one by one: on the server processor with AVX-512 that this was written on, a gather of
//! eight numbers took longer than eight loads and what joins them, and one with a mask longer still.
#![allow(unsafe_code)]

use super::spmv::multiply_plain;
use crate::matrix::CsrRef;
use crate::simd::{LANES, Pairs, dispatch};
use std::ops::Range;

/// Entries from those in use to those that are asked for: 2 KB of values.
const AHEAD: usize = 256;

/// Ones where lanes are kept: from `LANES - n` on, n of them and then zeros.
#[repr(align(64))]
struct Window([u64; 2 * LANES]);

static WINDOW: Window = Window({
    let mut window = [0; 2 * LANES];
    let mut l = 0;
    while l < LANES {
        window[l] = u64::MAX;
        l += 1;
    }
    window
});

dispatch! {
    /// y = A x for some rows.
    ///
    /// # Safety
    /// Every column of `a` is below `x.len()`.
    pub(super) unsafe fn multiply(a: CsrRef<'_, f64>, rows: Range<usize>, x: &[f64], y: &mut [f64]) = multiply_with in half registers;
}

/// Where a row begins in the arrays, and x.
#[derive(Clone, Copy)]
struct Place {
    columns: *const u32,
    values: *const f64,
    x: *const f64,
}

impl Place {
    /// The place `k` entries further on.
    #[inline(always)]
    fn at(self, k: usize) -> Place {
        let Place { columns, values, x } = self;
        Place { columns: columns.wrapping_add(k), values: values.wrapping_add(k), x }
    }
}

/// # Safety
/// As [`multiply`].
#[inline(always)]
pub(super) unsafe fn multiply_with<I: Pairs>(
    a: CsrRef<'_, f64>,
    rows: Range<usize>,
    x: &[f64],
    y: &mut [f64],
) {
    let first = Place { columns: a.col_idx().as_ptr(), values: a.values().as_ptr(), x: x.as_ptr() };
    let (groups, rest) = y.as_chunks_mut::<LANES>();
    let mut row = rows.start;
    for y in groups {
        let Some(row_ptr) = a.row_ptr()[row..].first_chunk::<{ LANES + 1 }>() else { unreachable!() };
        let (start, end) = (row_ptr[0], row_ptr[LANES]);
        let length = row_ptr[1] - start;
        let mut differ = 0;
        for r in 1..LANES {
            differ |= (row_ptr[r + 1] - row_ptr[r]) ^ length;
        }
        let place = first.at(start);
        // SAFETY: entries from `start` to `end` are within the arrays by the row pointer, and for rows of many lengths eight more; columns
        // are below x.len().
        unsafe {
            match length {
                1 if differ == 0 => equal_rows::<I, 1>(place, y),
                2 if differ == 0 => equal_rows::<I, 2>(place, y),
                3 if differ == 0 => equal_rows::<I, 3>(place, y),
                4 if differ == 0 => equal_rows::<I, 4>(place, y),
                5 if differ == 0 => equal_rows::<I, 5>(place, y),
                6 if differ == 0 => equal_rows::<I, 6>(place, y),
                7 if differ == 0 => equal_rows::<I, 7>(place, y),
                8 if differ == 0 => equal_rows::<I, 8>(place, y),
                _ if end + LANES <= a.nnz() => any_rows::<I>(row_ptr, first, y),
                _ => multiply_plain(a, row..row + LANES, x, y),
            }
        }
        row += LANES;
    }
    multiply_plain(a, row..rows.end, x, rest);
}

/// Asks for the entries [`AHEAD`] of a place: a line of values, and one of columns.
#[inline(always)]
fn prefetch<I: Pairs>(place: Place) {
    let Place { columns, values, .. } = place.at(AHEAD);
    I::prefetch(values);
    I::prefetch(columns);
}

/// Eight rows of `N` entries.
///
/// # Safety
/// The entries of these rows may be read, and x at their columns.
#[inline(always)]
unsafe fn equal_rows<I: Pairs, const N: usize>(place: Place, y: &mut [f64; LANES]) {
    for k in 0..N {
        prefetch::<I>(place.at(k * LANES));
    }
    for r in (0..LANES).step_by(2) {
        // SAFETY: by the caller's promise.
        unsafe {
            let (a, b) = (row_of::<I, N>(place.at(r * N)), row_of::<I, N>(place.at((r + 1) * N)));
            I::store_sums(y.as_mut_ptr().add(r), a, b);
        }
    }
}

/// (P₀ + P₂) + (P₁ + P₃) of a row of `N` entries; pairs that have none are left out.
///
/// # Safety
/// As [`equal_rows`].
#[inline(always)]
unsafe fn row_of<I: Pairs, const N: usize>(place: Place) -> I::Pair {
    // SAFETY: by the caller's promise.
    unsafe {
        let first = half_row_of::<I, N>(place, 0);
        if N > 2 { I::add_pairs(first, half_row_of::<I, N>(place, 1)) } else { first }
    }
}

/// Pair `p` + pair `p + 2` of a row of `N` entries.
///
/// # Safety
/// As [`equal_rows`].
#[inline(always)]
unsafe fn half_row_of<I: Pairs, const N: usize>(place: Place, p: usize) -> I::Pair {
    // SAFETY: by the caller's promise.
    unsafe {
        let pair = pair_of::<I, N>(place, p);
        if 2 * (p + 2) < N { I::add_pairs(pair, pair_of::<I, N>(place, p + 2)) } else { pair }
    }
}

/// Pair `p` of a row of `N` entries, at least one of which it has.
///
/// # Safety
/// As [`equal_rows`].
#[inline(always)]
unsafe fn pair_of<I: Pairs, const N: usize>(place: Place, p: usize) -> I::Pair {
    let Place { columns, values, x } = place.at(2 * p);
    // SAFETY: by the caller's promise.
    unsafe { if 2 * p + 2 <= N { I::products(columns, values, x) } else { I::product(columns, values, x) } }
}

/// Eight rows of any lengths.
///
/// # Safety
/// The entries of these rows and eight more may be read, and x at their columns.
#[inline(always)]
unsafe fn any_rows<I: Pairs>(row_ptr: &[usize; LANES + 1], first: Place, y: &mut [f64; LANES]) {
    for r in (0..LANES).step_by(2) {
        let [start, middle, end] = [row_ptr[r], row_ptr[r + 1], row_ptr[r + 2]];
        // SAFETY: by the caller's promise.
        unsafe {
            let a = any_row::<I>(middle - start, first.at(start));
            let b = any_row::<I>(end - middle, first.at(middle));
            I::store_sums(y.as_mut_ptr().add(r), a, b);
        }
    }
}

/// (P₀ + P₂) + (P₁ + P₃) of a row.
///
/// # Safety
/// The entries of the row and eight more may be read, and x at their columns.
#[inline(always)]
unsafe fn any_row<I: Pairs>(length: usize, place: Place) -> I::Pair {
    prefetch::<I>(place);
    // SAFETY: by the caller's promise.
    unsafe {
        if length <= 4 {
            return I::add_pairs(pair_within::<I>(length, place, 0), pair_within::<I>(length, place, 1));
        }
        if length <= LANES {
            let p = [
                pair::<I>(place, 0),
                pair::<I>(place, 1),
                pair_within::<I>(length, place, 2),
                pair_within::<I>(length, place, 3),
            ];
            return I::add_pairs(I::add_pairs(p[0], p[2]), I::add_pairs(p[1], p[3]));
        }
        let (mut sums, mut k) = ([I::zero(); 4], 0);
        while k + LANES <= length {
            for p in 0..4 {
                sums[p] = I::add_pairs(sums[p], pair::<I>(place.at(k), p));
            }
            k += LANES;
            prefetch::<I>(place.at(k));
        }
        let (rest, place) = (length - k, place.at(k));
        if rest > 0 {
            sums[0] = I::add_pairs(sums[0], pair_within::<I>(rest, place, 0));
            sums[1] = I::add_pairs(sums[1], pair_within::<I>(rest, place, 1));
        }
        if rest > 4 {
            sums[2] = I::add_pairs(sums[2], pair_within::<I>(rest, place, 2));
            sums[3] = I::add_pairs(sums[3], pair_within::<I>(rest, place, 3));
        }
        I::add_pairs(I::add_pairs(sums[0], sums[2]), I::add_pairs(sums[1], sums[3]))
    }
}

/// Pair `p` of eight entries.
///
/// # Safety
/// The pair may be read, and x at its columns.
#[inline(always)]
unsafe fn pair<I: Pairs>(place: Place, p: usize) -> I::Pair {
    let Place { columns, values, x } = place.at(2 * p);
    // SAFETY: by the caller's promise.
    unsafe { I::products(columns, values, x) }
}

/// Pair `p` of eight entries of which the first `count` are of the row; the other lanes are zero.
///
/// # Safety
/// As [`pair`].
#[inline(always)]
unsafe fn pair_within<I: Pairs>(count: usize, place: Place, p: usize) -> I::Pair {
    // SAFETY: by the caller's promise; the window has 16 places, of which eight from one up to the eighth are used.
    unsafe { I::keep_lanes(WINDOW.0.as_ptr().add(LANES - count + 2 * p), pair::<I>(place, p)) }
}
