//! What is computed block row by block row: product, sweeps, elimination.
//!
//! A row of B sums takes its blocks in one order. Entry (r, c) of a block times entry c of the vector goes to lane c of sum r, each
//! lane adds its products block after block, and the lanes are added at the end as `simd` says: a block costs one addition
//! in a chain, not B. Products are rounded before they are added.
//!
//! Vectors and values are raw pointers, because members of a team read what others have written a moment ago; the plan orders
//! these accesses. All functions here need: rows within the pattern, values and vectors as long as it says, [`SLACK`](crate::simd::SLACK) numbers
//! after the values of a [`View`], and for sweeps and elimination that the rows needed are finished.
#![allow(unsafe_code)]

use super::dense::{Blocks, Breakdown, Inverses, invert_definite, invert_general};
use crate::elimination::form::{self, Form};
use crate::matrix::Pattern;
use crate::simd::{BlockRow, dispatch, rolled};
use std::ops::Range;

/// Defines a kernel for rows of blocks: in whole registers from five numbers per row on, in half ones below.
macro_rules! kernels {
    ($($(#[$doc:meta])* unsafe fn $name:ident = $body:ident($($arg:ident: $ty:ty),*) $(-> $ret:ty)?;)*) => {$(
        $(#[$doc])*
        pub(super) unsafe fn $name<const B: usize>($($arg: $ty),*) $(-> $ret)? {
            dispatch! { unsafe fn whole<; const B>($($arg: $ty),*) $(-> $ret)? = $body; }
            dispatch! { unsafe fn half<const B>($($arg: $ty),*) $(-> $ret)? = $body in half registers; }
            // SAFETY: by the caller's promise. A constant condition: what a size does not use is not compiled.
            unsafe { if const { B > 4 } { whole::<B>($($arg),*) } else { half::<B>($($arg),*) } }
        }
    )*};
}

/// A block by rows.
type Block<const B: usize> = [[f64; B]; B];

/// Blocks of a matrix.
#[derive(Clone, Copy)]
pub struct View<'a> {
    pub(super) pattern: &'a Pattern,
    pub(super) values: *const f64,
}

/// A factor in the making. `lower` holds the blocks of A before the diagonal, and unless the factor is symmetric `upper` those after
/// it; for block Jacobi both are empty.
#[derive(Clone, Copy)]
pub struct FactorWriter<'a> {
    pub(super) a: View<'a>,
    pub(super) lower: &'a Pattern,
    pub(super) upper: &'a Pattern,
    pub(super) l: *mut f64,
    pub(super) inverse: *mut f64,
    pub(super) u: *mut f64,
    /// Its kind says how rows are measured and shifted, for block Jacobi as for LU.
    pub(super) form: Form,
    /// Diagonal entries of A are enlarged by this multiple of the size of their rows.
    pub(super) shift: f64,
}

// SAFETY: pointers to numbers, used by members of a team at places that the plan keeps apart.
unsafe impl Sync for View<'_> {}
// SAFETY: as above.
unsafe impl Sync for FactorWriter<'_> {}

kernels! {
    /// y = A x for these scalar rows; no others are written.
    unsafe fn multiply = multiply_with(a: View<'_>, rows: Range<usize>, x: *const f64, y: *mut f64);
    /// zᵢ = xᵢ − Σ lᵢⱼ zⱼ, from left to right.
    unsafe fn forward = forward_with(l: View<'_>, i: usize, x: *const f64, z: *mut f64);
    /// zᵢ = dᵢ⁻¹ zᵢ − Σ uᵢⱼ zⱼ, from right to left.
    unsafe fn backward = backward_with(u: View<'_>, inverse: *const f64, i: usize, z: *mut f64);
    /// zᵢ = dᵢ⁻¹ xᵢ for these block rows.
    unsafe fn scale = scale_with(inverse: *const f64, rows: Range<usize>, x: *const f64, z: *mut f64);
    /// Block i of D⁻¹ of block Jacobi; breakdowns as below.
    unsafe fn invert = invert_with(f: &FactorWriter<'_>, i: usize) -> Result<(), Breakdown>;
    /// Row i of L and of D⁻¹ of block IC(0) or DIC. After a breakdown the pivot stands in its place on the diagonal of D⁻¹.
    unsafe fn eliminate_ic = eliminate_ic_with(f: &FactorWriter<'_>, i: usize) -> Result<(), Breakdown>;
    /// Row i of L, D⁻¹ and U of block ILU(0) or DILU; breakdowns as above.
    unsafe fn eliminate_ilu = eliminate_ilu_with(f: &FactorWriter<'_>, i: usize) -> Result<(), Breakdown>;
}

/// acc ± Σ aᵢⱼ xⱼ over the blocks k of `which`, in lanes.
#[inline(always)]
unsafe fn accumulate<L: BlockRow, const B: usize>(
    a: View<'_>,
    which: impl Iterator<Item = usize>,
    x: *const f64,
    mut acc: [L::Pack; B],
    combine: unsafe fn(L::Pack, L::Pack) -> L::Pack,
) -> [L::Pack; B] {
    for k in which {
        // SAFETY: k is a block of the pattern, its column one of x; values have room after them.
        unsafe {
            let x = L::load_row::<B>(x.add(*a.pattern.col_idx().get_unchecked(k) as usize * B));
            let block = a.values.add(k * B * B);
            for r in 0..B {
                acc[r] = combine(acc[r], L::mul(L::load_wide::<B>(block.add(r * B)), x));
            }
        }
    }
    acc
}

#[inline(always)]
unsafe fn multiply_with<L: BlockRow, const B: usize>(
    a: View<'_>,
    rows: Range<usize>,
    x: *const f64,
    y: *mut f64,
) {
    for i in rows.start / B..rows.end.div_ceil(B) {
        let within = rows.start.max(i * B)..rows.end.min((i + 1) * B);
        // SAFETY: as the module says; of a block row that is cut by the range, only the rows within are written.
        unsafe {
            let acc = accumulate::<L, B>(a, a.pattern.row_range(i), x, [L::splat(0.0); B], L::add);
            let row = L::sums::<B>(acc);
            if within.len() == B {
                L::store_row::<B>(y.add(i * B), row);
            } else {
                let mut sums = [0.0; B];
                L::store_row::<B>(sums.as_mut_ptr(), row);
                for k in within {
                    *y.add(k) = sums[k - i * B];
                }
            }
        }
    }
}

#[inline(always)]
unsafe fn forward_with<L: BlockRow, const B: usize>(l: View<'_>, i: usize, x: *const f64, z: *mut f64) {
    // SAFETY: as the module says.
    unsafe {
        let acc = accumulate::<L, B>(l, l.pattern.row_range(i), z, [L::splat(0.0); B], L::add);
        L::store_row::<B>(z.add(i * B), L::sub(L::load_row::<B>(x.add(i * B)), L::sums::<B>(acc)));
    }
}

#[inline(always)]
unsafe fn backward_with<L: BlockRow, const B: usize>(
    u: View<'_>,
    inverse: *const f64,
    i: usize,
    z: *mut f64,
) {
    // SAFETY: as the module says.
    unsafe {
        let acc = scaled::<L, B>(inverse, i, z);
        let acc = accumulate::<L, B>(u, u.pattern.row_range(i).rev(), z, acc, L::sub);
        L::store_row::<B>(z.add(i * B), L::sums::<B>(acc));
    }
}

#[inline(always)]
unsafe fn scale_with<L: BlockRow, const B: usize>(
    inverse: *const f64,
    rows: Range<usize>,
    x: *const f64,
    z: *mut f64,
) {
    for i in rows {
        // SAFETY: as the module says.
        unsafe { L::store_row::<B>(z.add(i * B), L::sums::<B>(scaled::<L, B>(inverse, i, x))) };
    }
}

/// dᵢ⁻¹ xᵢ in lanes.
#[inline(always)]
unsafe fn scaled<L: BlockRow, const B: usize>(inverse: *const f64, i: usize, x: *const f64) -> [L::Pack; B] {
    // SAFETY: as the module says.
    unsafe {
        let (x, block) = (L::load_row::<B>(x.add(i * B)), inverse.add(i * B * B));
        let mut products = [x; B];
        for r in 0..B {
            products[r] = L::mul(L::load_wide::<B>(block.add(r * B)), x);
        }
        products
    }
}

/// A block, which others may write next to.
#[inline(always)]
unsafe fn load_block<L: BlockRow, const B: usize>(from: *const f64) -> [L::Pack; B] {
    // SAFETY: a block stands there.
    unsafe {
        let mut rows = [L::splat(0.0); B];
        for r in 0..B {
            rows[r] = L::load_row::<B>(from.add(r * B));
        }
        rows
    }
}

#[inline(always)]
unsafe fn store_block<L: BlockRow, const B: usize>(to: *mut f64, block: [L::Pack; B]) {
    for r in 0..B {
        // SAFETY: there is room for a block.
        unsafe { L::store_row::<B>(to.add(r * B), block[r]) };
    }
}

/// Cᵀ for the block at `from`.
#[inline(always)]
unsafe fn transposed<const B: usize>(from: *const f64) -> Block<B> {
    let mut block = [[0.0; B]; B];
    for r in 0..B {
        for s in 0..B {
            // SAFETY: a block stands there.
            block[r][s] = unsafe { *from.add(s * B + r) };
        }
    }
    block
}

#[inline(always)]
fn address<const B: usize>(block: &Block<B>) -> *const f64 {
    block.as_ptr().cast()
}

/// C − A X: each entry subtracts its products from left to right.
#[inline(always)]
unsafe fn minus_product<L: BlockRow, const B: usize>(
    c: [L::Pack; B],
    a: *const f64,
    x: *const f64,
) -> [L::Pack; B] {
    // SAFETY: blocks stand at a and x.
    unsafe {
        let (x, mut c) = (load_block::<L, B>(x), c);
        for (r, row) in c[..rolled::<B>()].iter_mut().enumerate() {
            let mut sums = *row;
            for s in 0..B {
                sums = L::sub(sums, L::mul(L::splat(*a.add(r * B + s)), x[s]));
            }
            *row = sums;
        }
        c
    }
}

/// A X: each entry adds its products from left to right.
#[inline(always)]
unsafe fn product<L: BlockRow, const B: usize>(a: *const f64, x: *const f64) -> [L::Pack; B] {
    // SAFETY: blocks stand at a and x.
    unsafe {
        let x = load_block::<L, B>(x);
        let mut c = x;
        for (r, row) in c[..rolled::<B>()].iter_mut().enumerate() {
            let mut sums = L::mul(L::splat(*a.add(r * B)), x[0]);
            for s in 1..B {
                sums = L::add(sums, L::mul(L::splat(*a.add(r * B + s)), x[s]));
            }
            *row = sums;
        }
        c
    }
}

/// The diagonal block of row i of A, its diagonal shifted.
#[inline(always)]
unsafe fn diagonal<L: BlockRow, const B: usize>(f: &FactorWriter<'_>, i: usize) -> [L::Pack; B] {
    let place = diagonal_place::<B>(f, i);
    let mut block = [[0.0; B]; B];
    for r in 0..B {
        for s in 0..B {
            // SAFETY: the diagonal block of A stands there.
            block[r][s] = unsafe { *f.a.values.add(place + r * B + s) };
        }
        if f.shift != 0.0 {
            // SAFETY: row i of A stands there.
            let size = form::size(f.form.kind, block[r][r], unsafe { largest_in_row::<B>(f, i, r) });
            block[r][r] = form::shifted(f.form.kind, block[r][r], f.shift, size);
        }
    }
    // SAFETY: a block.
    unsafe { load_block::<L, B>(address(&block)) }
}

/// The place of the diagonal block of row i among the values of A.
#[inline(always)]
fn diagonal_place<const B: usize>(f: &FactorWriter<'_>, i: usize) -> usize {
    let before = f.a.pattern.row(i).partition_point(|&j| (j as usize) < i);
    (f.a.pattern.row_ptr()[i] + before) * B * B
}

/// The largest entry of row r of block row i of A.
///
/// # Safety
/// As the module says.
#[cold]
unsafe fn largest_in_row<const B: usize>(f: &FactorWriter<'_>, i: usize, r: usize) -> f64 {
    let mut largest = 0.0;
    for k in f.a.pattern.row_range(i) {
        for s in 0..B {
            // SAFETY: block k of A stands there.
            largest = f64::max(largest, unsafe { *f.a.values.add(k * B * B + r * B + s) }.abs());
        }
    }
    largest
}

/// The largest entry of the diagonal block of A.
///
/// # Safety
/// As the module says.
#[inline(always)]
unsafe fn largest_on_diagonal<const B: usize>(f: &FactorWriter<'_>, i: usize) -> f64 {
    let place = diagonal_place::<B>(f, i);
    let mut largest = 0.0;
    for k in 0..B * B {
        // SAFETY: the diagonal block of A stands there.
        largest = f64::max(largest, unsafe { *f.a.values.add(place + k) }.abs());
    }
    largest
}

/// Inverts the pivot block of row i.
#[inline(always)]
unsafe fn finish<L: BlockRow, const B: usize>(
    f: &FactorWriter<'_>,
    i: usize,
    pivot: [L::Pack; B],
    invert: impl Fn(&Blocks<B, 1>, &[f64; 1]) -> Inverses<B, 1>,
) -> Result<(), Breakdown> {
    let mut block = [[[0.0]; B]; B];
    // SAFETY: a block; the diagonal block of A stands at its place.
    let size = unsafe {
        store_block::<L, B>(block.as_mut_ptr().cast(), pivot);
        largest_on_diagonal::<B>(f, i)
    };
    let inverses = invert(&block, &[size]);
    let place = f.inverse.wrapping_add(i * B * B);
    // SAFETY: the place of row i, which nobody else touches before it is finished.
    unsafe {
        if let Some([Some(breakdown)]) = inverses.breakdowns {
            *place.add(breakdown.step * (B + 1)) = breakdown.pivot;
            return Err(breakdown);
        }
        store_block::<L, B>(place, load_block::<L, B>(inverses.blocks.as_ptr().cast()));
    }
    Ok(())
}

#[inline(always)]
unsafe fn invert_with<L: BlockRow, const B: usize>(f: &FactorWriter<'_>, i: usize) -> Result<(), Breakdown> {
    // SAFETY: as the module says.
    unsafe { finish::<L, B>(f, i, diagonal::<L, B>(f, i), invert_general) }
}

/// Row j of U = Lᵀ, block by block.
///
/// # Safety
/// As the module says; L is finished, and row j of U is the caller's.
pub(super) unsafe fn mirror<const B: usize>(f: &FactorWriter<'_>, j: usize) {
    for (place, &i) in f.upper.row_range(j).zip(f.upper.row(j)) {
        let from = f.lower.find(i as usize, j).expect("the pattern of U is that of L transposed");
        // SAFETY: blocks stand at both places.
        unsafe { *f.u.add(place * B * B).cast::<Block<B>>() = transposed::<B>(f.l.add(from * B * B)) };
    }
}

/// Row i from the first down, with Wₖ = Lᵢₖ Dₖ. The places of row i of L hold Wᵀ until the row is finished, so that all
/// products are of blocks by rows:
///   Wₖᵀ = Aᵢₖᵀ − Σ Lₖₘ Wₘᵀ (m < k in both rows);  Lᵢₖᵀ = Dₖ⁻¹ Wₖᵀ;  Dᵢ = Aᵢᵢ − Σ Wₖ Lᵢₖᵀ
/// Where only diagonal blocks are updated, Wₖ stays that of A.
#[inline(always)]
unsafe fn eliminate_ic_with<L: BlockRow, const B: usize>(
    f: &FactorWriter<'_>,
    i: usize,
) -> Result<(), Breakdown> {
    let (columns, start) = (f.lower.row(i), f.lower.row_ptr()[i]);
    let w = |k: usize| f.l.wrapping_add((start + k) * B * B);
    let given = f.a.values.wrapping_add(f.a.pattern.row_ptr()[i] * B * B);
    let diagonal_only = f.form.keeps_triangles();
    for k in 0..columns.len() {
        let row = columns[k] as usize;
        let subtracted = if diagonal_only { 0..0 } else { f.lower.row_range(row) };
        // SAFETY: row k of L is finished; the places of row i are this caller's.
        unsafe {
            let mut c = load_block::<L, B>(address(&transposed::<B>(given.add(k * B * B))));
            let mut m = 0;
            for (place, &j) in subtracted.zip(f.lower.row(row)) {
                // Ends at k at the latest: j < columns[k].
                while columns[m] < j {
                    m += 1;
                }
                if columns[m] == j {
                    c = minus_product::<L, B>(c, f.l.add(place * B * B), w(m));
                }
            }
            store_block::<L, B>(w(k), c);
        }
    }
    // SAFETY: as above; row i of A has a diagonal block.
    unsafe {
        let mut pivot = diagonal::<L, B>(f, i);
        for (k, &column) in columns.iter().enumerate() {
            let mut l = [[0.0; B]; B];
            let inverse = f.inverse.add(column as usize * B * B);
            store_block::<L, B>(l.as_mut_ptr().cast(), product::<L, B>(inverse, w(k)));
            pivot = minus_product::<L, B>(pivot, address(&transposed::<B>(w(k))), address(&l));
            let l = transposed::<B>(address(&l));
            store_block::<L, B>(w(k), load_block::<L, B>(address(&l)));
        }
        finish::<L, B>(f, i, pivot, invert_definite)
    }
}

/// Row i from the first down; W holds the row of A and is eliminated from left to right:
///   for k < i:  Lᵢₖ = Wₖ Dₖ⁻¹;  Wⱼ −= Wₖ Uₖⱼ for j > k in both patterns;  Dᵢ = Wᵢ;  Uᵢⱼ = Dᵢ⁻¹ Wⱼ
/// Where only diagonal blocks are updated, j is i alone.
#[inline(always)]
unsafe fn eliminate_ilu_with<L: BlockRow, const B: usize>(
    f: &FactorWriter<'_>,
    i: usize,
) -> Result<(), Breakdown> {
    let (l_columns, u_columns) = (f.lower.row(i), f.upper.row(i));
    let l = f.l.wrapping_add(f.lower.row_ptr()[i] * B * B);
    let u = f.u.wrapping_add(f.upper.row_ptr()[i] * B * B);
    let diagonal_only = f.form.keeps_triangles();
    let given = f.a.values.wrapping_add(f.a.pattern.row_ptr()[i] * B * B);
    // SAFETY: the places of row i are this caller's; the rows of its lower pattern are finished.
    unsafe {
        let (left, right) = (l_columns.len() * B * B, u_columns.len() * B * B);
        std::ptr::copy_nonoverlapping(given, l, left);
        std::ptr::copy_nonoverlapping(given.add(left + B * B), u, right);
        let mut pivot = diagonal::<L, B>(f, i);
        for k in 0..l_columns.len() {
            let (row, w) = (l_columns[k] as usize, l.add(k * B * B));
            let (mut m, mut n) = (k + 1, 0);
            for (place, &j) in f.upper.row_range(row).zip(f.upper.row(row)) {
                let above = f.u.add(place * B * B).cast_const();
                if j as usize == i {
                    pivot = minus_product::<L, B>(pivot, w, above);
                    continue;
                }
                if diagonal_only {
                    continue;
                }
                let (columns, at, to) =
                    if (j as usize) < i { (l_columns, &mut m, l) } else { (u_columns, &mut n, u) };
                while *at < columns.len() && columns[*at] < j {
                    *at += 1;
                }
                if columns.get(*at) == Some(&j) {
                    let to = to.add(*at * B * B);
                    store_block::<L, B>(to, minus_product::<L, B>(load_block::<L, B>(to), w, above));
                }
            }
            store_block::<L, B>(w, product::<L, B>(w, f.inverse.add(row * B * B)));
        }
        let result = finish::<L, B>(f, i, pivot, invert_general);
        for n in 0..u_columns.len() {
            let place = u.add(n * B * B);
            store_block::<L, B>(place, product::<L, B>(f.inverse.add(i * B * B), place));
        }
        result
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;
    use crate::block::tests::{KINDS, blocky};
    use crate::block::{BlockKind, BlockRecipe, Bsr};
    use crate::elimination::Kind;
    use crate::simd::{Avx2, Avx2Half, Avx512, Plain, SLACK};
    use crate::space::Threads;

    /// Factor, sweeps and product of one matrix, all with one instruction set.
    ///
    /// # Safety
    /// The processor has the instructions.
    unsafe fn everything<L: BlockRow, const B: usize>(kind: BlockKind) -> Vec<f64> {
        let a = Bsr::<B>::new(&Threads::new(1), &blocky(B, 60, 5)).unwrap();
        let symbolic = BlockRecipe::new(kind).analyze_pattern::<B>(a.pattern(), 1).unwrap();
        let m = symbolic.allocate::<B>();
        let (lower, upper) = m.patterns();
        let room = |blocks: usize| vec![0.0; blocks * B * B + SLACK];
        let (mut l, mut inverse, mut u) = (room(lower.nnz()), room(lower.nrows()), room(upper.nnz()));
        let (n, rows) = (a.nrows(), lower.nrows());
        let b: Vec<f64> = (0..n).map(|i| ((i * 37) as f64).sin()).collect();
        let (mut z, mut y, mut d) = (vec![0.0; n], vec![0.0; n], vec![0.0; n]);
        let f = FactorWriter {
            a: a.view(),
            lower,
            upper,
            l: l.as_mut_ptr(),
            inverse: inverse.as_mut_ptr(),
            u: u.as_mut_ptr(),
            form: kind.form().unwrap_or(Form::LU),
            shift: 0.25,
        };
        let factored = kind.form().map(|form| form.kind);
        // SAFETY: all rows in order; vectors and values of the pattern's lengths.
        unsafe {
            for i in 0..rows {
                match factored {
                    None => invert_with::<L, B>(&f, i),
                    Some(Kind::Cholesky) => eliminate_ic_with::<L, B>(&f, i),
                    Some(Kind::Lu) => eliminate_ilu_with::<L, B>(&f, i),
                }
                .unwrap();
            }
            if factored == Some(Kind::Cholesky) {
                (0..rows).for_each(|j| mirror::<B>(&f, j));
            }
            let (lower, upper) = (View { pattern: lower, values: f.l }, View { pattern: upper, values: f.u });
            (0..rows).for_each(|i| forward_with::<L, B>(lower, i, b.as_ptr(), z.as_mut_ptr()));
            (0..rows).rev().for_each(|i| backward_with::<L, B>(upper, f.inverse, i, z.as_mut_ptr()));
            scale_with::<L, B>(f.inverse, 0..rows, z.as_ptr(), d.as_mut_ptr());
            multiply_with::<L, B>(a.view(), 0..n, z.as_ptr(), y.as_mut_ptr());
        }
        [l, inverse, u, z, d, y].concat()
    }

    fn same<const B: usize>() {
        for kind in KINDS {
            // SAFETY: plain code runs anywhere, the others where they are detected.
            unsafe {
                let expected = everything::<Plain, B>(kind);
                assert!(expected.iter().all(|v| v.is_finite()));
                if const { B <= 4 } && is_x86_feature_detected!("avx2") {
                    assert!(everything::<Avx2Half, B>(kind) == expected, "AVX2, B = {B}, {kind:?}");
                }
                if const { B > 4 } {
                    if is_x86_feature_detected!("avx2") {
                        assert!(everything::<Avx2, B>(kind) == expected, "AVX2, B = {B}, {kind:?}");
                    }
                    if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vl") {
                        assert!(everything::<Avx512, B>(kind) == expected, "AVX-512, B = {B}, {kind:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn every_instruction_set_gives_the_same_bits() {
        same::<1>();
        same::<2>();
        same::<3>();
        same::<4>();
        same::<5>();
        same::<6>();
        same::<7>();
        same::<8>();
    }
}
