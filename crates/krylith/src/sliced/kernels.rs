//! What is computed slice by slice: product, sweeps, elimination.
//!
//! Each kernel has one order of operations: the strips of a slice one after the other, each lane by itself. Lanes outside a mask
//! enter as 0 · 0, which changes no bit of a sum that begins with a number or +0.
//!
//! Vectors are raw pointers, because members of a team read what others have written a moment ago; the plan orders these
//! accesses. All functions here need: positions below the pattern's, values and vectors as long as it says, and for sweeps and
//! elimination that the slices needed are finished.
#![allow(unsafe_code)]

use super::LANES;
use super::lanes::{Lanes, Plain};
use super::order::EMPTY;
use super::strips::{SlicedPattern, Strips};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Defines a kernel for each instruction set and a function that chooses.
macro_rules! kernels {
    ($($(#[$doc:meta])* unsafe fn $name:ident = $body:ident($($arg:ident: $ty:ty),*);)*) => {$(
        $(#[$doc])*
        pub(super) unsafe fn $name($($arg: $ty),*) {
            #[cfg(target_arch = "x86_64")]
            {
                use super::lanes::{Avx2, Avx512};

                #[target_feature(enable = "avx512f,avx512vl")]
                unsafe fn avx512($($arg: $ty),*) {
                    // SAFETY: compiled for the instructions; the rest is the caller's promise.
                    unsafe { $body::<Avx512>($($arg),*) }
                }
                #[target_feature(enable = "avx2")]
                unsafe fn avx2($($arg: $ty),*) {
                    // SAFETY: as above.
                    unsafe { $body::<Avx2>($($arg),*) }
                }

                if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vl") {
                    // SAFETY: the processor has the instructions; the rest is the caller's promise.
                    return unsafe { avx512($($arg),*) };
                }
                if is_x86_feature_detected!("avx2") {
                    // SAFETY: as above.
                    return unsafe { avx2($($arg),*) };
                }
            }
            // SAFETY: by the caller's promise.
            unsafe { $body::<Plain>($($arg),*) }
        }
    )*};
}

/// Values on both sides of the diagonal and on it.
#[derive(Clone, Copy)]
pub(super) struct Values {
    pub(super) lower: *const f64,
    pub(super) diagonal: *const f64,
    pub(super) upper: *const f64,
}

/// The same in the making.
#[derive(Clone, Copy)]
pub(super) struct ValuesMut {
    pub(super) lower: *mut f64,
    pub(super) diagonal: *mut f64,
    pub(super) upper: *mut f64,
}

// SAFETY: pointers to numbers, used by members of a team at places that the plan keeps apart.
unsafe impl Sync for Values {}
// SAFETY: as above.
unsafe impl Sync for ValuesMut {}

/// A vector that members of a team write at places that the plan keeps apart.
#[derive(Clone, Copy)]
pub(super) struct Vector(*mut f64);

impl Vector {
    pub(super) fn new(x: &mut [f64]) -> Self {
        Vector(x.as_mut_ptr())
    }

    /// A method, so that a closure shares the vector and not the pointer within.
    pub(super) fn get(&self) -> *mut f64 {
        self.0
    }
}

// SAFETY: as above.
unsafe impl Sync for Vector {}

kernels! {
    /// y = A x for these slices: strips below the diagonal, the diagonal, strips above.
    unsafe fn multiply = multiply_with(p: &SlicedPattern, a: Values, slices: Range<usize>, x: *const f64, y: *mut f64);
    /// The same, bit for bit, where all entries of a strip are equal and stored once.
    unsafe fn multiply_uniform =
        multiply_uniform_with(p: &SlicedPattern, a: Values, slices: Range<usize>, x: *const f64, y: *mut f64);
    /// y = x − L y for these slices, upwards.
    unsafe fn forward = forward_with(p: &Strips, l: *const f64, slices: Range<usize>, x: *const f64, y: *mut f64);
    /// z = z / d − U z for these slices, downwards, in place.
    unsafe fn backward = backward_with(p: &Strips, u: *const f64, inverse: *const f64, slices: Range<usize>, z: *mut f64);
    /// Rows of L and 1 / D of IC(0) for these slices, upwards. A pivot that is not positive is left in the place of its inverse
    /// and its row, if it is the smallest so far, in `bad`.
    unsafe fn eliminate_ic =
        eliminate_ic_with(p: &SlicedPattern, a: Values, f: ValuesMut, slices: Range<usize>, bad: &AtomicUsize);
    /// Rows of L, 1 / D and U of ILU(0) for these slices, upwards; bad pivots as above.
    unsafe fn eliminate_ilu =
        eliminate_ilu_with(p: &SlicedPattern, a: Values, f: ValuesMut, slices: Range<usize>, bad: &AtomicUsize);
    /// U = Lᵀ for these slices.
    unsafe fn mirror = mirror_with(p: &SlicedPattern, f: ValuesMut, slices: Range<usize>);
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
    // SAFETY: every strip has eight values.
    let load = |values: *const f64| move |k: usize| unsafe { L::load(values.add(k * LANES)) };
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
unsafe fn forward_with<L: Lanes>(
    p: &Strips,
    l: *const f64,
    slices: Range<usize>,
    x: *const f64,
    y: *mut f64,
) {
    for s in slices {
        // SAFETY: as the module says.
        unsafe {
            let value = |k: usize| L::load(l.add(k * LANES));
            let acc = strips::<L>(p, p.of(s), value, y, L::load(x.add(s * LANES)), L::sub);
            L::store(y.add(s * LANES), acc);
        }
    }
}

#[inline(always)]
unsafe fn backward_with<L: Lanes>(
    p: &Strips,
    u: *const f64,
    inverse: *const f64,
    slices: Range<usize>,
    z: *mut f64,
) {
    for s in slices.rev() {
        // SAFETY: as the module says.
        unsafe {
            let acc = L::mul(L::load(z.add(s * LANES)), L::load(inverse.add(s * LANES)));
            let value = |k: usize| L::load(u.add(k * LANES));
            let acc = strips::<L>(p, p.of(s).rev(), value, z, acc, L::sub);
            L::store(z.add(s * LANES), acc);
        }
    }
}

/// The rows that a strip points to, eight in a row from some position on, as parts of one or two slices.
#[derive(Clone, Copy)]
struct Neighbours {
    slice: usize,
    /// Our lanes whose neighbour is in that slice.
    lanes: u8,
    /// Our lane l is lane l + shift there.
    shift: i32,
}

impl Neighbours {
    #[inline(always)]
    fn of(start: u32, mask: u8) -> impl Iterator<Item = Neighbours> {
        let start = start as i32;
        let (slice, shift) = (start.div_euclid(LANES as i32), start.rem_euclid(LANES as i32));
        let parts =
            [(slice, u8::MAX >> shift, shift), (slice + 1, !(u8::MAX >> shift), shift - LANES as i32)];
        parts.into_iter().filter(move |&(_, lanes, _)| lanes & mask != 0).map(move |(slice, lanes, shift)| {
            Neighbours { slice: slice as usize, lanes: lanes & mask, shift }
        })
    }

    /// The start of a strip there, as a strip here.
    #[inline(always)]
    fn start(self, start: u32) -> i32 {
        (start as i32).wrapping_add(self.shift)
    }

    /// The lanes of a strip there, as lanes here.
    #[inline(always)]
    fn lanes_of(self, mask: u8) -> u8 {
        self.lanes & if self.shift >= 0 { mask >> self.shift } else { mask << -self.shift }
    }

    /// The values of a strip there, lane by lane here.
    #[inline(always)]
    fn values(self, values: *const f64, strip: usize) -> *const f64 {
        values.wrapping_add(strip * LANES).wrapping_offset(self.shift as isize)
    }
}

/// Row i from the first down, with wₖ = lᵢₖ dₖ, k in order of positions:
///   wₖ = aᵢₖ − Σ wₘ lₖₘ (m in both rows);  lᵢₖ = wₖ / dₖ;  dᵢ = aᵢᵢ − Σ wₖ lᵢₖ
#[inline(always)]
unsafe fn eliminate_ic_with<L: Lanes>(
    p: &SlicedPattern,
    a: Values,
    f: ValuesMut,
    slices: Range<usize>,
    bad: &AtomicUsize,
) {
    let lower = &p.lower;
    for s in slices {
        let own = lower.of(s);
        // SAFETY: as the module says; values of this slice are this member's, those of the slices it points to are finished.
        unsafe {
            for k in own.clone() {
                let mut w = L::load(a.lower.add(k * LANES));
                for there in Neighbours::of(lower.start[k], lower.mask[k]) {
                    // Both lists are ordered: entry (k, m) there meets entry (i, m) here where the columns agree.
                    let mut m = own.start;
                    for other in lower.of(there.slice) {
                        let column = there.start(lower.start[other]);
                        while m < k && (lower.start[m] as i32) < column {
                            m += 1;
                        }
                        if m < k && lower.start[m] as i32 == column {
                            let lanes = lower.mask[m] & there.lanes_of(lower.mask[other]);
                            let l = L::load_some(lanes, there.values(f.lower, other));
                            w = L::sub(w, L::mul(L::load_some(lanes, f.lower.add(m * LANES)), l));
                        }
                    }
                }
                L::store(f.lower.add(k * LANES), w);
            }
            let mut pivot = L::load(a.diagonal.add(s * LANES));
            for k in own {
                let w = L::load(f.lower.add(k * LANES));
                let start = lower.start[k] as i32 as isize;
                let inverse = L::load_some(lower.mask[k], f.diagonal.wrapping_offset(start));
                let l = L::mul(w, inverse);
                pivot = L::sub(pivot, L::mul(w, l));
                L::store(f.lower.add(k * LANES), l);
            }
            L::store(f.diagonal.add(s * LANES), pivot);
            invert(p, f.diagonal, s, bad, |pivot| pivot > 0.0);
        }
    }
}

/// Row i from the first down, k in order of positions:
///   wₖ;  lᵢₖ = wₖ / dₖ;  wⱼ −= wₖ uₖⱼ for j in both rows;  dᵢ = wᵢ;  uᵢⱼ = wⱼ / dᵢ
#[inline(always)]
unsafe fn eliminate_ilu_with<L: Lanes>(
    p: &SlicedPattern,
    a: Values,
    f: ValuesMut,
    slices: Range<usize>,
    bad: &AtomicUsize,
) {
    let (lower, upper) = (&p.lower, &p.upper);
    for s in slices {
        // SAFETY: as the module says; values of this slice are this member's, those of the slices it points to are finished.
        unsafe {
            for k in lower.of(s) {
                L::store(f.lower.add(k * LANES), L::load(a.lower.add(k * LANES)));
            }
            for k in upper.of(s) {
                L::store(f.upper.add(k * LANES), L::load(a.upper.add(k * LANES)));
            }
            let mut pivot = L::load(a.diagonal.add(s * LANES));
            for k in lower.of(s) {
                let w = L::load(f.lower.add(k * LANES));
                for there in Neighbours::of(lower.start[k], lower.mask[k]) {
                    let (mut m, mut n) = (k + 1, upper.of(s).start);
                    for other in upper.of(there.slice) {
                        let column = there.start(upper.start[other]);
                        let lanes = there.lanes_of(upper.mask[other]);
                        let from = there.values(f.upper, other);
                        let offset = column - (s * LANES) as i32;
                        if offset == 0 {
                            pivot = L::sub(pivot, L::mul(w, L::load_some(lanes, from)));
                            continue;
                        }
                        let (strips, at, end, to) = if offset < 0 {
                            (lower, &mut m, lower.of(s).end, f.lower)
                        } else {
                            (upper, &mut n, upper.of(s).end, f.upper)
                        };
                        while *at < end && (strips.start[*at] as i32) < column {
                            *at += 1;
                        }
                        if *at < end && strips.start[*at] as i32 == column {
                            let lanes = lanes & strips.mask[*at];
                            let to = to.add(*at * LANES);
                            L::store(to, L::sub(L::load(to), L::mul(w, L::load_some(lanes, from))));
                        }
                    }
                }
                let start = lower.start[k] as i32 as isize;
                let inverse = L::load_some(lower.mask[k], f.diagonal.wrapping_offset(start));
                L::store(f.lower.add(k * LANES), L::mul(w, inverse));
            }
            L::store(f.diagonal.add(s * LANES), pivot);
            invert(p, f.diagonal, s, bad, |pivot| pivot != 0.0);
            let inverse = L::load(f.diagonal.add(s * LANES));
            for k in upper.of(s) {
                let u = L::mul(L::load(f.upper.add(k * LANES)), inverse);
                L::store(f.upper.add(k * LANES), u);
            }
        }
    }
}

/// Inverts the pivots of a slice; those of empty rows become 0.
///
/// # Safety
/// The diagonal of this slice is this member's.
#[inline(always)]
unsafe fn invert(
    p: &SlicedPattern,
    diagonal: *mut f64,
    s: usize,
    bad: &AtomicUsize,
    sign: impl Fn(f64) -> bool,
) {
    for position in s * LANES..(s + 1) * LANES {
        // SAFETY: by the caller's promise.
        let place = unsafe { &mut *diagonal.add(position) };
        let row = p.order.rows[position];
        let inverse = 1.0 / *place;
        if row == EMPTY {
            *place = 0.0;
        } else if sign(*place) && place.is_finite() && inverse.is_finite() {
            *place = inverse;
        } else {
            bad.fetch_min(row as usize, Ordering::Relaxed);
        }
    }
}

/// uⱼᵢ = lᵢⱼ, copied strip by strip.
#[inline(always)]
unsafe fn mirror_with<L: Lanes>(p: &SlicedPattern, f: ValuesMut, slices: Range<usize>) {
    for s in slices {
        for k in p.upper.of(s) {
            // SAFETY: as the module says; L is finished.
            unsafe {
                let mut u = L::splat(0.0);
                for there in Neighbours::of(p.upper.start[k], p.upper.mask[k]) {
                    // Column 8 s + lane of row start + lane.
                    let wanted = (s * LANES) as i32;
                    let other = p.lower.of(there.slice).find(|&o| there.start(p.lower.start[o]) == wanted);
                    if let Some(other) = other {
                        let lanes = there.lanes_of(p.lower.mask[other]);
                        u = L::add(u, L::load_some(lanes, there.values(f.lower, other)));
                    }
                }
                L::store(f.upper.add(k * LANES), u);
            }
        }
    }
}

/// Whether every strip above the diagonal has its lanes mirrored below it.
pub(super) fn is_mirrored(p: &SlicedPattern, slices: Range<usize>) -> bool {
    slices.into_iter().all(|s| {
        p.upper.of(s).all(|k| {
            let wanted = (s * LANES) as i32;
            let found = Neighbours::of(p.upper.start[k], p.upper.mask[k]).map(|there| {
                let other = p.lower.of(there.slice).find(|&o| there.start(p.lower.start[o]) == wanted);
                other.map_or(0, |o| there.lanes_of(p.lower.mask[o]))
            });
            found.fold(0, |a, b| a | b) == p.upper.mask[k]
        })
    })
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::super::lanes::{Avx2, Avx512};
    use super::*;
    use crate::gallery::Problem;
    use crate::sliced::Sliced;
    use crate::space::Threads;
    use std::sync::Arc;

    /// Factor and sweeps of one matrix, all with one instruction set.
    ///
    /// # Safety
    /// The processor has the instructions.
    unsafe fn everything<L: Lanes>(ilu: bool) -> Vec<f64> {
        let a = "hpcg:9".parse::<Problem>().unwrap().generate().unwrap();
        let p = Arc::new(SlicedPattern::find_with(a.pattern(), 4.0, 4.0).unwrap());
        let (mut sliced, mut f) = (Sliced::zeros(&p), Sliced::zeros(&p));
        sliced.set(&Threads::new(1), &a).unwrap();
        let all = 0..p.order.slices();
        let values = ValuesMut {
            lower: f.lower.as_mut_ptr(),
            diagonal: f.diagonal.as_mut_ptr(),
            upper: f.upper.as_mut_ptr(),
        };
        let bad = AtomicUsize::new(usize::MAX);
        let mut x = vec![0.0; p.positions()];
        let (mut z, mut q) = (x.clone(), x.clone());
        let b: Vec<f64> = (0..a.nrows()).map(|i| ((i * 37) as f64).sin()).collect();
        p.gather(&b, &mut x);
        // SAFETY: all slices in order; vectors and values of the pattern's lengths.
        unsafe {
            if ilu {
                eliminate_ilu_with::<L>(&p, sliced.values(), values, all.clone(), &bad);
            } else {
                eliminate_ic_with::<L>(&p, sliced.values(), values, all.clone(), &bad);
                mirror_with::<L>(&p, values, all.clone());
            }
            forward_with::<L>(&p.lower, f.lower.as_ptr(), all.clone(), x.as_ptr(), z.as_mut_ptr());
            let inverse = f.diagonal.as_ptr();
            backward_with::<L>(&p.upper, f.upper.as_ptr(), inverse, all.clone(), z.as_mut_ptr());
            multiply_with::<L>(&p, sliced.values(), all, z.as_ptr(), q.as_mut_ptr());
        }
        assert_eq!(bad.into_inner(), usize::MAX);
        [f.lower, f.diagonal, f.upper, z, q].concat()
    }

    #[test]
    fn every_instruction_set_gives_the_same_bits() {
        for ilu in [false, true] {
            // SAFETY: plain code runs anywhere, the others where they are detected.
            unsafe {
                let expected = everything::<Plain>(ilu);
                if is_x86_feature_detected!("avx2") {
                    assert!(everything::<Avx2>(ilu) == expected);
                }
                if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vl") {
                    assert!(everything::<Avx512>(ilu) == expected);
                }
            }
        }
    }
}
