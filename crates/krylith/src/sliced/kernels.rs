//! What is computed slice by slice: product, sweeps, elimination (`eliminate`).
//!
//! Each kernel has one order of operations: the strips of a slice one after the other, each lane by itself. Lanes outside a mask
//! enter as 0 · 0, which changes no bit of a sum that begins with a number or +0.
//!
//! Vectors are raw pointers, because members of a team read what others have written a moment ago; the plan orders these
//! accesses. All functions here need: positions below the pattern's, values and vectors as long as it says, and for sweeps and
//! elimination that the slices needed are finished.
#![allow(unsafe_code)]

use super::LANES;
use super::eliminate::{eliminate_both_with, eliminate_cholesky_with, mirror_with};
use super::strips::{SlicedPattern, Strips};
use crate::elimination::{FirstBadPivot, Form};
use crate::simd::{Access, Lanes, dispatch};
use std::ops::Range;

/// Values on both sides of the diagonal and on it.
#[derive(Clone, Copy)]
pub struct Values {
    pub(super) lower: *const f64,
    pub(super) diagonal: *const f64,
    pub(super) upper: *const f64,
}

/// Slices that may stand at several places: strips by their offset from the first row of a slice.
#[derive(Clone, Copy)]
pub struct SharedTable<'a, S> {
    pub(super) first: &'a [u32],
    pub(super) offset: &'a [i32],
    pub(super) mask: &'a [u8],
    pub(super) values: &'a [[S; LANES]],
}

/// A factor in the making.
#[derive(Clone, Copy)]
pub struct FactorWriter<S> {
    pub(super) lower: *mut S,
    pub(super) diagonal: *mut f64,
    pub(super) upper: *mut S,
}

// SAFETY: pointers to numbers, used by members of a team at places that the plan keeps apart.
unsafe impl Sync for Values {}
// SAFETY: as above.
unsafe impl<S> Sync for FactorWriter<S> {}

/// What is eliminated on which pattern.
#[derive(Clone, Copy)]
pub struct EliminationTask<'a> {
    /// Of the factor; that of A is part of it, in the same order.
    pub(super) pattern: &'a SlicedPattern,
    pub(super) a_pattern: &'a SlicedPattern,
    pub(super) a: Values,
    pub(super) form: Form,
    pub(super) shift: f64,
    pub(super) bad: &'a FirstBadPivot,
}

// SAFETY: as above; nothing else in it is a pointer.
unsafe impl Sync for EliminationTask<'_> {}

dispatch! {
    /// y = A x for these slices: strips below the diagonal, the diagonal, strips above.
    pub(super) unsafe fn multiply(p: &SlicedPattern, a: Values, slices: Range<usize>, x: *const f64, y: *mut f64) = multiply_with;
    /// The same, bit for bit, where all entries of a strip are equal and stored once.
    pub(super) unsafe fn multiply_uniform(p: &SlicedPattern, a: Values, slices: Range<usize>, x: *const f64, y: *mut f64) = multiply_uniform_with;
    /// y = A x from slice `first` on, by the numbers of the slices in a table.
    pub(super) unsafe fn multiply_shared<S: Access>(table: SharedTable<'_, S>, which: &[u32], first: usize, x: *const f64, y: *mut f64) = multiply_shared_with;
    /// y = x − L y for these slices, upwards.
    pub(super) unsafe fn forward<S: Access>(p: &Strips, l: *const S, slices: Range<usize>, x: *const f64, y: *mut f64) = forward_with;
    /// z = z / d − U z for these slices, downwards, in place.
    pub(super) unsafe fn backward<S: Access>(p: &Strips, u: *const S, inverse: *const f64, slices: Range<usize>, z: *mut f64) = backward_with;
    /// Rows of L and 1 / D of a Cholesky factor for these slices, upwards. A bad pivot is left in the place of its inverse.
    pub(super) unsafe fn eliminate_cholesky<S: Access>(task: &EliminationTask<'_>, f: FactorWriter<S>, slices: Range<usize>) = eliminate_cholesky_with;
    /// Rows of L, 1 / D and U for these slices, upwards; bad pivots as above.
    pub(super) unsafe fn eliminate_both<S: Access>(task: &EliminationTask<'_>, f: FactorWriter<S>, slices: Range<usize>) = eliminate_both_with;
    /// U = Lᵀ for these slices.
    pub(super) unsafe fn mirror<S: Access>(p: &SlicedPattern, f: FactorWriter<S>, slices: Range<usize>) = mirror_with;
}

/// How many strips ahead values are asked for: processors follow few streams by themselves, and not across pages.
const AHEAD: isize = 32;

/// Loads the values of a strip, and asks for those of the strip `AHEAD` further on.
///
/// # Safety
/// The strip has eight values.
#[inline(always)]
unsafe fn load_ahead<L: Lanes, S: Access, const AHEAD: isize>(values: *const S, strip: usize) -> L::Pack {
    let at = values.wrapping_add(strip * LANES);
    L::prefetch(at.wrapping_offset(AHEAD * LANES as isize));
    // SAFETY: by the caller's promise.
    unsafe { S::load::<L>(at) }
}

/// acc ± Σ v x over strips; `value` loads the values of a strip.
///
/// # Safety
/// As the module says.
#[inline(always)]
unsafe fn strips<L: Lanes>(
    p: &Strips,
    which: impl Iterator<Item = usize>,
    value: impl Fn(usize) -> L::Pack,
    x: *const f64,
    mut acc: L::Pack,
    combine: unsafe fn(L::Pack, L::Pack) -> L::Pack,
) -> L::Pack {
    for k in which {
        // SAFETY: k is a strip; lanes in its mask are positions.
        unsafe {
            let start = *p.start.get_unchecked(k) as i32 as isize;
            let x = L::load_some(*p.mask.get_unchecked(k), x.wrapping_offset(start));
            acc = combine(acc, L::mul(value(k), x));
        }
    }
    acc
}

#[inline(always)]
unsafe fn multiply_with<L: Lanes>(
    p: &SlicedPattern,
    a: Values,
    slices: Range<usize>,
    x: *const f64,
    y: *mut f64,
) {
    // SAFETY: every strip has eight values; what is asked for is not read.
    let load = |values: *const f64| move |k: usize| unsafe { load_ahead::<L, f64, AHEAD>(values, k) };
    // SAFETY: as the module says.
    unsafe { multiply_by::<L>(p, load(a.lower), a.diagonal, load(a.upper), slices, x, y) }
}

#[inline(always)]
unsafe fn multiply_uniform_with<L: Lanes>(
    p: &SlicedPattern,
    a: Values,
    slices: Range<usize>,
    x: *const f64,
    y: *mut f64,
) {
    // SAFETY: every strip has one value.
    let load = |values: *const f64| move |k: usize| unsafe { L::splat(*values.add(k)) };
    // SAFETY: as the module says.
    unsafe { multiply_by::<L>(p, load(a.lower), a.diagonal, load(a.upper), slices, x, y) }
}

#[inline(always)]
unsafe fn multiply_shared_with<L: Lanes, S: Access>(
    table: SharedTable<'_, S>,
    which: &[u32],
    first: usize,
    x: *const f64,
    y: *mut f64,
) {
    let SharedTable { first: begins, offset, mask, values } = table;
    for (k, &number) in which.iter().enumerate() {
        let at = (first + k) * LANES;
        // SAFETY: the number is a slice of the table, its strips exist, and lanes in a mask are positions.
        unsafe {
            let begin = *begins.get_unchecked(number as usize) as usize;
            let end = *begins.get_unchecked(number as usize + 1) as usize;
            let product = |strip: usize| {
                let from = x.wrapping_add(at).wrapping_offset(*offset.get_unchecked(strip) as isize);
                let x = L::load_some(*mask.get_unchecked(strip), from);
                L::mul(S::load::<L>(values.get_unchecked(strip).as_ptr()), x)
            };
            // Two sums, so that none waits for the one before.
            let mut sums = [L::splat(0.0); 2];
            let pairs = begin + (end - begin) / 2 * 2;
            for strip in (begin..pairs).step_by(2) {
                sums = [L::add(sums[0], product(strip)), L::add(sums[1], product(strip + 1))];
            }
            if pairs < end {
                sums[0] = L::add(sums[0], product(pairs));
            }
            let acc = L::add(sums[0], sums[1]);
            L::store(y.add(at), acc);
        }
    }
}

#[inline(always)]
unsafe fn multiply_by<L: Lanes>(
    p: &SlicedPattern,
    lower: impl Fn(usize) -> L::Pack,
    diagonal: *const f64,
    upper: impl Fn(usize) -> L::Pack,
    slices: Range<usize>,
    x: *const f64,
    y: *mut f64,
) {
    for s in slices {
        // SAFETY: as the module says.
        unsafe {
            let mut acc = strips::<L>(&p.lower, p.lower.of(s), &lower, x, L::splat(0.0), L::add);
            acc = L::add(acc, L::mul(L::load(diagonal.add(s * LANES)), L::load(x.add(s * LANES))));
            acc = strips::<L>(&p.upper, p.upper.of(s), &upper, x, acc, L::add);
            L::store(y.add(s * LANES), acc);
        }
    }
}

#[inline(always)]
unsafe fn forward_with<L: Lanes, S: Access>(
    p: &Strips,
    l: *const S,
    slices: Range<usize>,
    x: *const f64,
    y: *mut f64,
) {
    for s in slices {
        // SAFETY: as the module says.
        unsafe {
            let value = |k: usize| load_ahead::<L, S, AHEAD>(l, k);
            let acc = strips::<L>(p, p.of(s), value, y, L::load(x.add(s * LANES)), L::sub);
            L::store(y.add(s * LANES), acc);
        }
    }
}

#[inline(always)]
unsafe fn backward_with<L: Lanes, S: Access>(
    p: &Strips,
    u: *const S,
    inverse: *const f64,
    slices: Range<usize>,
    z: *mut f64,
) {
    for s in slices.rev() {
        // SAFETY: as the module says.
        unsafe {
            let acc = L::mul(L::load(z.add(s * LANES)), L::load(inverse.add(s * LANES)));
            let value = |k: usize| load_ahead::<L, S, { -AHEAD }>(u, k);
            let acc = strips::<L>(p, p.of(s).rev(), value, z, acc, L::sub);
            L::store(z.add(s * LANES), acc);
        }
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;
    use crate::elimination::{Kind, PreservedSums, Update};
    use crate::gallery::Problem;
    use crate::simd::{Avx2, Avx512, Plain};
    use crate::sliced::Sliced;
    use crate::space::Threads;
    use std::sync::Arc;

    /// Factor and sweeps of one matrix, all with one instruction set.
    ///
    /// # Safety
    /// The processor has the instructions.
    unsafe fn everything<L: Lanes, S: Access>(form: Form) -> Vec<f64> {
        let a = "hpcg:9".parse::<Problem>().unwrap().generate().unwrap();
        let p = Arc::new(SlicedPattern::find_with(a.pattern(), 4.0, 4.0).unwrap());
        let mut sliced = Sliced::zeros(&p);
        sliced.set(&Threads::new(1), &a).unwrap();
        let (mut lower, mut upper) = (
            crate::memory::large_pages::zeros::<S>(p.lower.len() * LANES),
            crate::memory::large_pages::zeros::<S>(p.upper.len() * LANES),
        );
        let mut diagonal = vec![0.0; p.positions()];
        let all = 0..p.order.slices();
        let f = FactorWriter {
            lower: lower.as_mut_ptr(),
            diagonal: diagonal.as_mut_ptr(),
            upper: upper.as_mut_ptr(),
        };
        let bad = FirstBadPivot::default();
        let mut x = vec![0.0; p.positions()];
        let (mut z, mut q) = (x.clone(), x.clone());
        let b: Vec<f64> = (0..a.nrows()).map(|i| ((i * 37) as f64).sin()).collect();
        p.gather(&Threads::new(1), &b, &mut x).unwrap();
        let a = sliced.values();
        let task = EliminationTask { pattern: &p, a_pattern: &p, a, form, shift: 0.01, bad: &bad };
        // SAFETY: all slices in order; vectors and values of the pattern's lengths.
        unsafe {
            match form.computes_both() {
                true => eliminate_both_with::<L, S>(&task, f, all.clone()),
                false => eliminate_cholesky_with::<L, S>(&task, f, all.clone()),
            }
            if form.kind == Kind::Cholesky {
                mirror_with::<L, S>(&p, f, all.clone());
            }
            forward_with::<L, S>(&p.lower, lower.as_ptr(), all.clone(), x.as_ptr(), z.as_mut_ptr());
            let inverse = diagonal.as_ptr();
            backward_with::<L, S>(&p.upper, upper.as_ptr(), inverse, all.clone(), z.as_mut_ptr());
            multiply_with::<L>(&p, sliced.values(), all, z.as_ptr(), q.as_mut_ptr());
        }
        assert_eq!(bad.into_result(|_| f64::NAN), Ok(()));
        let wide = |v: Vec<S>| v.into_iter().map(|v| v.to_f64()).collect::<Vec<f64>>();
        [wide(lower), diagonal, wide(upper), z, q].concat()
    }

    fn same_on_all<S: Access>(form: Form) {
        // SAFETY: plain code runs anywhere, the others where they are detected.
        unsafe {
            let expected = everything::<Plain, S>(form);
            assert!(expected.iter().all(|v| v.is_finite()));
            if is_x86_feature_detected!("avx2") {
                assert!(everything::<Avx2, S>(form) == expected);
            }
            if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vl") {
                assert!(everything::<Avx512, S>(form) == expected);
            }
        }
    }

    #[test]
    fn every_instruction_set_gives_the_same_bits() {
        let modified = Update::Modified { omega: 0.9, sums: PreservedSums::Rows };
        for kind in [Kind::Cholesky, Kind::Lu] {
            for update in [Update::Drop, modified, Update::Diagonal, Update::Keep { diagonal: 0.8 }] {
                same_on_all::<f64>(Form { kind, update });
                same_on_all::<f32>(Form { kind, update });
            }
        }
    }
}
