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
use super::lanes::sealed::Access;
use super::lanes::{Lanes, Plain};
use super::order::EMPTY;
use super::strips::{SlicedPattern, Strips};
use crate::precond::form::{self, Form, Update};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Defines a kernel for each instruction set and a function that chooses.
macro_rules! kernels {
    ($($(#[$doc:meta])* unsafe fn $name:ident $(<$s:ident>)? = $body:ident($($arg:ident: $ty:ty),*);)*) => {$(
        $(#[$doc])*
        pub(super) unsafe fn $name $(<$s: Access>)? ($($arg: $ty),*) {
            #[cfg(target_arch = "x86_64")]
            {
                use super::lanes::{Avx2, Avx512};

                #[target_feature(enable = "avx512f,avx512vl")]
                unsafe fn avx512 $(<$s: Access>)? ($($arg: $ty),*) {
                    // SAFETY: compiled for the instructions; the rest is the caller's promise.
                    unsafe { $body::<Avx512 $(, $s)?>($($arg),*) }
                }
                #[target_feature(enable = "avx2")]
                unsafe fn avx2 $(<$s: Access>)? ($($arg: $ty),*) {
                    // SAFETY: as above.
                    unsafe { $body::<Avx2 $(, $s)?>($($arg),*) }
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
            unsafe { $body::<Plain $(, $s)?>($($arg),*) }
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

/// A factor in the making.
#[derive(Clone, Copy)]
pub(super) struct ValuesMut<S> {
    pub(super) lower: *mut S,
    pub(super) diagonal: *mut f64,
    pub(super) upper: *mut S,
}

// SAFETY: pointers to numbers, used by members of a team at places that the plan keeps apart.
unsafe impl Sync for Values {}
// SAFETY: as above.
unsafe impl<S> Sync for ValuesMut<S> {}

/// What is eliminated on which pattern.
#[derive(Clone, Copy)]
pub(super) struct Task<'a> {
    /// Of the factor; that of A is part of it, in the same order.
    pub(super) pattern: &'a SlicedPattern,
    pub(super) a_pattern: &'a SlicedPattern,
    pub(super) a: Values,
    pub(super) form: Form,
    pub(super) shift: f64,
    /// The smallest row with a bad pivot so far.
    pub(super) bad: &'a AtomicUsize,
}

// SAFETY: as above; nothing else in it is a pointer.
unsafe impl Sync for Task<'_> {}

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
    unsafe fn forward<S> = forward_with(p: &Strips, l: *const S, slices: Range<usize>, x: *const f64, y: *mut f64);
    /// z = z / d − U z for these slices, downwards, in place.
    unsafe fn backward<S> = backward_with(p: &Strips, u: *const S, inverse: *const f64, slices: Range<usize>, z: *mut f64);
    /// Rows of L and 1 / D of a Cholesky factor for these slices, upwards. A bad pivot is left in the place of its inverse.
    unsafe fn eliminate_cholesky<S> = eliminate_cholesky_with(task: &Task<'_>, f: ValuesMut<S>, slices: Range<usize>);
    /// Rows of L, 1 / D and U for these slices, upwards; bad pivots as above.
    unsafe fn eliminate_both<S> = eliminate_both_with(task: &Task<'_>, f: ValuesMut<S>, slices: Range<usize>);
    /// U = Lᵀ for these slices.
    unsafe fn mirror<S> = mirror_with(p: &SlicedPattern, f: ValuesMut<S>, slices: Range<usize>);
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
            let value = |k: usize| S::load::<L>(l.add(k * LANES));
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
            let value = |k: usize| S::load::<L>(u.add(k * LANES));
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
    fn values<S>(self, values: *const S, strip: usize) -> *const S {
        values.wrapping_add(strip * LANES).wrapping_offset(self.shift as isize)
    }
}

/// A slice whose values are those of A.
struct Begun {
    pivot: [f64; LANES],
    /// What the pivots are measured against.
    size: [f64; LANES],
}

/// Whether all rows of a slice come after one with a bad pivot: nothing before that one needs them.
#[inline(always)]
fn is_hopeless(task: &Task<'_>, s: usize) -> bool {
    let bad = task.bad.load(Ordering::Relaxed);
    // Rows of a slice are in order, the first one is always there.
    bad != usize::MAX && task.pattern.order.rows[s * LANES] as usize > bad
}

/// Takes over a slice of A.
///
/// # Safety
/// As the module says; the values of this slice are this member's.
#[inline(always)]
unsafe fn begin<L: Lanes, S: Access>(task: &Task<'_>, f: ValuesMut<S>, s: usize) -> Begun {
    let Task { pattern: p, a_pattern: q, a, form, shift, .. } = *task;
    let mut largest = [0.0; LANES];
    // SAFETY: as the module says.
    unsafe {
        let diagonal: [f64; LANES] = a.diagonal.add(s * LANES).cast::<[f64; LANES]>().read_unaligned();
        embed::<L, S>(&q.lower, a.lower, &p.lower, f.lower, s, &mut largest);
        if form.computes_both() {
            embed::<L, S>(&q.upper, a.upper, &p.upper, f.upper, s, &mut largest);
        }
        let size = std::array::from_fn(|l| {
            form::size(form.kind, diagonal[l], f64::max(largest[l], diagonal[l].abs()))
        });
        let pivot = std::array::from_fn(|l| form::shifted(form.kind, diagonal[l], shift, size[l]));
        Begun { pivot, size }
    }
}

/// Copies the strips that A has in a slice, and sets the others to zero.
///
/// # Safety
/// As the module says; the values of this slice are this member's.
#[inline(always)]
unsafe fn embed<L: Lanes, S: Access>(
    of_a: &Strips,
    a: *const f64,
    strips: &Strips,
    f: *mut S,
    s: usize,
    largest: &mut [f64; LANES],
) {
    let mut theirs = of_a.of(s);
    for k in strips.of(s) {
        while !theirs.is_empty() && (of_a.start[theirs.start] as i32) < strips.start[k] as i32 {
            theirs.start += 1;
        }
        let there = !theirs.is_empty() && of_a.start[theirs.start] == strips.start[k];
        // SAFETY: both are strips of their patterns, with eight values each.
        unsafe {
            let value = if there { L::load(a.add(theirs.start * LANES)) } else { L::splat(0.0) };
            S::store::<L>(f.add(k * LANES), value);
            if there {
                let value = a.add(theirs.start * LANES).cast::<[f64; LANES]>().read_unaligned();
                for l in 0..LANES {
                    largest[l] = if value[l].abs() > largest[l] { value[l].abs() } else { largest[l] };
                }
            }
        }
    }
}

/// Row i from the first down, with wₖ = lᵢₖ dₖ, k in order of positions:
///   wₖ = aᵢₖ − Σ wₘ lₖₘ (m in both rows);  lᵢₖ = wₖ / dₖ;  dᵢ = aᵢᵢ − Σ wₖ lᵢₖ
#[inline(always)]
unsafe fn eliminate_cholesky_with<L: Lanes, S: Access>(
    task: &Task<'_>,
    f: ValuesMut<S>,
    slices: Range<usize>,
) {
    let lower = &task.pattern.lower;
    let diagonal_only = task.form.update == Update::Diagonal;
    for s in slices {
        if is_hopeless(task, s) {
            continue;
        }
        let own = lower.of(s);
        // SAFETY: as the module says; values of this slice are this member's, those of the slices it points to are finished.
        unsafe {
            let begun = begin::<L, S>(task, f, s);
            for k in if diagonal_only { own.end..own.end } else { own.clone() } {
                let mut w = S::load::<L>(f.lower.add(k * LANES));
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
                            let l = S::load_some::<L>(lanes, there.values(f.lower, other));
                            w = L::sub(w, L::mul(S::load_some::<L>(lanes, f.lower.add(m * LANES)), l));
                        }
                    }
                }
                S::store::<L>(f.lower.add(k * LANES), w);
            }
            let mut pivot = L::load(begun.pivot.as_ptr());
            let mut check = L::splat(0.0);
            for k in own {
                let w = S::load::<L>(f.lower.add(k * LANES));
                let start = lower.start[k] as i32 as isize;
                let inverse = L::load_some(lower.mask[k], f.diagonal.wrapping_offset(start));
                let l = L::mul(w, inverse);
                pivot = L::sub(pivot, L::mul(w, l));
                S::store::<L>(f.lower.add(k * LANES), l);
                check = L::add(check, L::mul(S::load::<L>(f.lower.add(k * LANES)), L::splat(0.0)));
            }
            // What is not finite becomes a pivot that is none.
            L::store(f.diagonal.add(s * LANES), L::add(pivot, check));
            invert(task, f.diagonal, s, &begun.size);
        }
    }
}

/// Row i from the first down, k in order of positions:
///   wₖ;  lᵢₖ = wₖ / dₖ;  wⱼ −= wₖ uₖⱼ for j in both rows;  dᵢ = wᵢ − ω Σ (what fell outside);  uᵢⱼ = wⱼ / dᵢ
#[inline(always)]
unsafe fn eliminate_both_with<L: Lanes, S: Access>(task: &Task<'_>, f: ValuesMut<S>, slices: Range<usize>) {
    let (lower, upper) = (&task.pattern.lower, &task.pattern.upper);
    for s in slices {
        if is_hopeless(task, s) {
            continue;
        }
        // SAFETY: as the module says; values of this slice are this member's, those of the slices it points to are finished.
        unsafe {
            let begun = begin::<L, S>(task, f, s);
            let mut pivot = L::load(begun.pivot.as_ptr());
            let (mut outside, mut check) = (L::splat(0.0), L::splat(0.0));
            for k in lower.of(s) {
                let w = S::load::<L>(f.lower.add(k * LANES));
                for there in Neighbours::of(lower.start[k], lower.mask[k]) {
                    (pivot, outside) = subtract::<L, S>(task, f, s, k, there, w, (pivot, outside));
                }
                let start = lower.start[k] as i32 as isize;
                let inverse = L::load_some(lower.mask[k], f.diagonal.wrapping_offset(start));
                S::store::<L>(f.lower.add(k * LANES), L::mul(w, inverse));
                check = L::add(check, L::mul(S::load::<L>(f.lower.add(k * LANES)), L::splat(0.0)));
            }
            let omega = task.form.omega();
            if omega != 0.0 {
                pivot = L::sub(pivot, L::mul(L::splat(omega), outside));
            }
            for k in upper.of(s) {
                check = L::add(check, L::mul(S::load::<L>(f.upper.add(k * LANES)), L::splat(0.0)));
            }
            L::store(f.diagonal.add(s * LANES), L::add(pivot, check));
            invert(task, f.diagonal, s, &begun.size);
            let inverse = L::load(f.diagonal.add(s * LANES));
            for k in upper.of(s) {
                let u = L::mul(S::load::<L>(f.upper.add(k * LANES)), inverse);
                S::store::<L>(f.upper.add(k * LANES), u);
            }
        }
    }
}

/// w −= wₖ uₖ for the rows k that strip k of slice s points to in one slice; what belongs on the diagonal and what falls outside
/// of the pattern is added up.
///
/// # Safety
/// As the module says; values of slice s are this member's, those of the slice pointed to are finished.
#[inline(always)]
unsafe fn subtract<L: Lanes, S: Access>(
    task: &Task<'_>,
    f: ValuesMut<S>,
    s: usize,
    k: usize,
    there: Neighbours,
    w: L::Pack,
    (mut pivot, mut outside): (L::Pack, L::Pack),
) -> (L::Pack, L::Pack) {
    let (lower, upper) = (&task.pattern.lower, &task.pattern.upper);
    let diagonal_only = task.form.update == Update::Diagonal;
    let modified = task.form.omega() != 0.0;
    let (mut m, mut n) = (k + 1, upper.of(s).start);
    for other in upper.of(there.slice) {
        let column = there.start(upper.start[other]);
        let lanes = there.lanes_of(upper.mask[other]);
        let from = there.values(f.upper.cast_const(), other);
        let offset = column - (s * LANES) as i32;
        // SAFETY: as the caller promises.
        unsafe {
            if offset == 0 {
                pivot = L::sub(pivot, L::mul(w, S::load_some::<L>(lanes, from)));
                continue;
            }
            if diagonal_only {
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
            let mut inside = 0;
            if *at < end && strips.start[*at] as i32 == column {
                inside = lanes & strips.mask[*at];
                let to = to.add(*at * LANES);
                let change = L::mul(w, S::load_some::<L>(inside, from));
                S::store::<L>(to, L::sub(S::load::<L>(to), change));
            }
            if modified && lanes & !inside != 0 {
                outside = L::add(outside, L::mul(w, S::load_some::<L>(lanes & !inside, from)));
            }
        }
    }
    (pivot, outside)
}

/// Inverts the pivots of a slice; those of empty rows become 0.
///
/// # Safety
/// The diagonal of this slice is this member's.
#[inline(always)]
unsafe fn invert(task: &Task<'_>, diagonal: *mut f64, s: usize, size: &[f64; LANES]) {
    for (position, &size) in (s * LANES..).zip(size) {
        // SAFETY: by the caller's promise.
        let place = unsafe { &mut *diagonal.add(position) };
        let row = task.pattern.order.rows[position];
        if row == EMPTY {
            *place = 0.0;
        } else if form::good(task.form.kind, *place, size) {
            *place = 1.0 / *place;
        } else {
            task.bad.fetch_min(row as usize, Ordering::Relaxed);
        }
    }
}

/// uⱼᵢ = lᵢⱼ, copied strip by strip.
#[inline(always)]
unsafe fn mirror_with<L: Lanes, S: Access>(p: &SlicedPattern, f: ValuesMut<S>, slices: Range<usize>) {
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
                        u = L::add(u, S::load_some::<L>(lanes, there.values(f.lower.cast_const(), other)));
                    }
                }
                S::store::<L>(f.upper.add(k * LANES), u);
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
    use crate::precond::{Kind, Sums};
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
        let (mut lower, mut upper) =
            (crate::huge::zeros::<S>(p.lower.len() * LANES), crate::huge::zeros::<S>(p.upper.len() * LANES));
        let mut diagonal = vec![0.0; p.positions()];
        let all = 0..p.order.slices();
        let f = ValuesMut {
            lower: lower.as_mut_ptr(),
            diagonal: diagonal.as_mut_ptr(),
            upper: upper.as_mut_ptr(),
        };
        let bad = AtomicUsize::new(usize::MAX);
        let mut x = vec![0.0; p.positions()];
        let (mut z, mut q) = (x.clone(), x.clone());
        let b: Vec<f64> = (0..a.nrows()).map(|i| ((i * 37) as f64).sin()).collect();
        p.gather(&b, &mut x);
        let a = sliced.values();
        let task = Task { pattern: &p, a_pattern: &p, a, form, shift: 0.01, bad: &bad };
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
        assert_eq!(bad.into_inner(), usize::MAX);
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
        let modified = Update::Modified { omega: 0.9, sums: Sums::Rows };
        for kind in [Kind::Cholesky, Kind::Lu] {
            for update in [Update::Drop, modified, Update::Diagonal] {
                same_on_all::<f64>(Form { kind, update });
                same_on_all::<f32>(Form { kind, update });
            }
        }
    }
}
