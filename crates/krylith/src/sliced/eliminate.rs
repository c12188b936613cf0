//! Elimination slice by slice, and the mirror image of a triangle.
//!
//! What every function needs, and the order of operations, is said in `kernels`, which chooses the instruction set.
#![allow(unsafe_code)]

use super::LANES;
use super::kernels::{EliminationTask, FactorWriter};
use super::order::EMPTY;
use super::strips::{SlicedPattern, Strips};
use crate::elimination::form;
use crate::simd::{Access, Lanes};
use std::ops::Range;

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
fn is_hopeless(task: &EliminationTask<'_>, s: usize) -> bool {
    // Rows of a slice are in order, the first one is always there.
    task.bad.is_before(task.pattern.order.rows[s * LANES] as usize)
}

/// Takes over a slice of A.
///
/// # Safety
/// As `kernels` says; the values of this slice are this member's.
#[inline(always)]
unsafe fn begin<L: Lanes, S: Access>(task: &EliminationTask<'_>, f: FactorWriter<S>, s: usize) -> Begun {
    let EliminationTask { pattern: p, a_pattern: q, a, form, shift, .. } = *task;
    let mut largest = [0.0; LANES];
    // SAFETY: as `kernels` says.
    unsafe {
        let diagonal: [f64; LANES] = a.diagonal.add(s * LANES).cast::<[f64; LANES]>().read_unaligned();
        embed::<L, S>(&q.lower, a.lower, &p.lower, f.lower, s, &mut largest);
        if form.computes_both() {
            embed::<L, S>(&q.upper, a.upper, &p.upper, f.upper, s, &mut largest);
        } else if diagonal.iter().any(|&d| d <= 0.0) {
            measure(&q.upper, a.upper, s, &mut largest);
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
/// As `kernels` says; the values of this slice are this member's.
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

/// The largest entries of the strips of a slice, where the sizes of rows depend on them.
///
/// # Safety
/// As `kernels` says.
#[cold]
unsafe fn measure(of_a: &Strips, a: *const f64, s: usize, largest: &mut [f64; LANES]) {
    for k in of_a.of(s) {
        // SAFETY: a strip of the pattern, with eight values.
        let value = unsafe { a.add(k * LANES).cast::<[f64; LANES]>().read_unaligned() };
        for l in 0..LANES {
            largest[l] = f64::max(largest[l], value[l].abs());
        }
    }
}

/// Row i from the first down, with wₖ = lᵢₖ dₖ, k in order of positions:
///   wₖ = aᵢₖ − Σ wₘ lₖₘ (m in both rows);  lᵢₖ = wₖ / dₖ;  dᵢ = aᵢᵢ − Σ wₖ lᵢₖ
#[inline(always)]
pub(super) unsafe fn eliminate_cholesky_with<L: Lanes, S: Access>(
    task: &EliminationTask<'_>,
    f: FactorWriter<S>,
    slices: Range<usize>,
) {
    let lower = &task.pattern.lower;
    let diagonal_only = task.form.keeps_triangles();
    for s in slices {
        if is_hopeless(task, s) {
            continue;
        }
        let own = lower.of(s);
        // SAFETY: as `kernels` says; values of this slice are this member's, those of the slices it points to are finished.
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
            pivot = kept::<L>(task, &begun, pivot);
            // What is not finite becomes a pivot that is none.
            L::store(f.diagonal.add(s * LANES), L::add(pivot, check));
            invert(task, f.diagonal, s, &begun.size);
        }
    }
}

/// Row i from the first down, k in order of positions:
///   wₖ;  lᵢₖ = wₖ / dₖ;  wⱼ −= wₖ uₖⱼ for j in both rows;  dᵢ = wᵢ − ω Σ (what fell outside);  uᵢⱼ = wⱼ / dᵢ
#[inline(always)]
pub(super) unsafe fn eliminate_both_with<L: Lanes, S: Access>(
    task: &EliminationTask<'_>,
    f: FactorWriter<S>,
    slices: Range<usize>,
) {
    let (lower, upper) = (&task.pattern.lower, &task.pattern.upper);
    for s in slices {
        if is_hopeless(task, s) {
            continue;
        }
        // SAFETY: as `kernels` says; values of this slice are this member's, those of the slices it points to are finished.
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
            pivot = kept::<L>(task, &begun, pivot);
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

/// Where nothing is updated, a multiple of the diagonal of A.
///
/// # Safety
/// The processor has the instructions.
#[inline(always)]
unsafe fn kept<L: Lanes>(task: &EliminationTask<'_>, begun: &Begun, pivot: L::Pack) -> L::Pack {
    match task.form.kept_diagonal() {
        // SAFETY: eight numbers are read.
        Some(share) => unsafe { L::mul(L::splat(share), L::load(begun.pivot.as_ptr())) },
        None => pivot,
    }
}

/// w −= wₖ uₖ for the rows k that strip k of slice s points to in one slice; what belongs on the diagonal and what falls outside
/// of the pattern is added up.
///
/// # Safety
/// As `kernels` says; values of slice s are this member's, those of the slice pointed to are finished.
#[inline(always)]
unsafe fn subtract<L: Lanes, S: Access>(
    task: &EliminationTask<'_>,
    f: FactorWriter<S>,
    s: usize,
    k: usize,
    there: Neighbours,
    w: L::Pack,
    (mut pivot, mut outside): (L::Pack, L::Pack),
) -> (L::Pack, L::Pack) {
    let (lower, upper) = (&task.pattern.lower, &task.pattern.upper);
    let diagonal_only = task.form.keeps_triangles();
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
unsafe fn invert(task: &EliminationTask<'_>, diagonal: *mut f64, s: usize, size: &[f64; LANES]) {
    for (position, &size) in (s * LANES..).zip(size) {
        // SAFETY: by the caller's promise.
        let place = unsafe { &mut *diagonal.add(position) };
        let row = task.pattern.order.rows[position];
        if row == EMPTY {
            *place = 0.0;
        } else if form::good(task.form.kind, *place, size) {
            *place = 1.0 / *place;
        } else {
            task.bad.report(row as usize);
        }
    }
}

/// uⱼᵢ = lᵢⱼ, copied strip by strip.
#[inline(always)]
pub(super) unsafe fn mirror_with<L: Lanes, S: Access>(
    p: &SlicedPattern,
    f: FactorWriter<S>,
    slices: Range<usize>,
) {
    for s in slices {
        for k in p.upper.of(s) {
            // SAFETY: as `kernels` says; L is finished.
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
