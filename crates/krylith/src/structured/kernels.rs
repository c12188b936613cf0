//! Product and sweeps, step by step.
//!
//! With M = (D + L) D⁻¹ (D + U), D the blocks on the diagonal of the factor:
//!
//!   forward    w = D⁻¹ (x − L w)
//!   backward   z = w − D⁻¹ U z
//!
//! L and U are the factor's triangles before rows are divided by pivots; where elimination leaves them alone they are A's own.
//!
//! Each kernel has one order of operations for each lane: offsets in the order of columns, columns of a block one after the other.
//! So the bits depend on nothing but the numbers. Loops have no branch for the boundary: coefficients that leave the grid are zero,
//! and what they meet there is a finite number of the same sweep.
//!
//! What every function needs: vectors and coefficients of the arrangement's size, and for sweeps that the steps needed are finished.
#![allow(unsafe_code)]
#![allow(clippy::needless_range_loop, reason = "see the note on loops")]

use super::arrangement::{NeighbourShift, NeighbourShifts, Piece};
use crate::simd::{Access, LANES, Lanes};

/// Where the coefficients of one side come from: entry (row r, column c) of the block at offset o is number (o D + c) D + r.
pub(super) trait Source: Copy {
    /// Whether there can be several unknowns per point.
    const BLOCKS: bool;

    /// That entry of the eight points of a step.
    ///
    /// # Safety
    /// Step and entry exist; the processor has the instructions.
    unsafe fn entry<L: Lanes>(self, step: usize, entry: usize) -> L::Pack;

    /// One entry of a run of steps.
    type Run: Copy;

    /// That entry from this step on.
    ///
    /// # Safety
    /// Step and entry exist.
    unsafe fn run(self, step: usize, entry: usize) -> Self::Run;

    /// The entry of the eight points of the run's first step, which is left behind; asks for what is `ahead` bytes from it, as
    /// [`next_entry`](Self::next_entry) does.
    ///
    /// # Safety
    /// The step exists; the processor has the instructions.
    unsafe fn advance<L: Lanes>(self, run: &mut Self::Run, ahead: isize) -> L::Pack;

    /// That entry of the neighbours of the eight points; zero where there are none.
    ///
    /// # Safety
    /// As above, and the reach is one for this step.
    unsafe fn entry_at<L: Lanes>(self, step: usize, reach: &NeighbourShift, entry: usize) -> L::Pack;

    /// Bytes from an entry to one of a later step, or with `DOWN` of an earlier one, that is worth asking for when this one is used:
    /// while a sweep waits for the step before, memory need not.
    #[inline(always)]
    fn ahead<const D: usize, const DOWN: bool>(self) -> isize {
        0
    }

    /// That entry of the eight points of a step; asks for what is `ahead` bytes from it, which need not exist.
    ///
    /// # Safety
    /// As `entry`.
    #[inline(always)]
    unsafe fn next_entry<L: Lanes>(self, step: usize, entry: usize, _ahead: isize) -> L::Pack {
        // SAFETY: by the caller's promise.
        unsafe { self.entry::<L>(step, entry) }
    }
}

/// Bytes that coefficients are asked for ahead of their use.
const BYTES_AHEAD: usize = 4096;

/// All of them in memory, `width` a step.
pub(super) struct Coefficients<S> {
    pub(super) values: *const S,
    pub(super) width: usize,
}

impl<S> Clone for Coefficients<S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for Coefficients<S> {}

// SAFETY: a pointer to numbers that members of a team read, or write at places that the pipeline keeps apart.
unsafe impl<S> Sync for Coefficients<S> {}

impl<S: Access> Source for Coefficients<S> {
    const BLOCKS: bool = size_of::<S>() == size_of::<f64>();

    #[inline(always)]
    unsafe fn entry<L: Lanes>(self, step: usize, entry: usize) -> L::Pack {
        // SAFETY: by the caller's promise.
        unsafe { S::load::<L>(self.values.add((step * self.width + entry) * LANES)) }
    }

    #[inline(always)]
    unsafe fn entry_at<L: Lanes>(self, step: usize, reach: &NeighbourShift, entry: usize) -> L::Pack {
        let from = self.values.wrapping_add((step * self.width + entry) * LANES);
        // SAFETY: by the caller's promise.
        unsafe { neighbour::<L, S>(from, self.width, reach) }
    }

    #[inline(always)]
    fn ahead<const D: usize, const DOWN: bool>(self) -> isize {
        // Upwards memory is read in one piece; downwards each block by itself.
        let block = D * D * LANES * size_of::<S>();
        if DOWN { -((BYTES_AHEAD.div_ceil(block) * block) as isize) } else { BYTES_AHEAD as isize }
    }

    #[inline(always)]
    unsafe fn next_entry<L: Lanes>(self, step: usize, entry: usize, ahead: isize) -> L::Pack {
        // SAFETY: by the caller's promise; what is asked for is not read.
        unsafe {
            let here = self.values.add((step * self.width + entry) * LANES);
            L::prefetch(here.wrapping_byte_offset(ahead));
            S::load::<L>(here)
        }
    }

    type Run = *const S;

    #[inline(always)]
    unsafe fn run(self, step: usize, entry: usize) -> *const S {
        // SAFETY: by the caller's promise.
        unsafe { self.values.add((step * self.width + entry) * LANES) }
    }

    #[inline(always)]
    unsafe fn advance<L: Lanes>(self, run: &mut *const S, ahead: isize) -> L::Pack {
        let here = *run;
        *run = here.wrapping_add(self.width * LANES);
        L::prefetch(here.wrapping_byte_offset(ahead));
        // SAFETY: by the caller's promise; what is asked for is not read.
        unsafe { S::load::<L>(here) }
    }
}

/// One number for all points that have the offset.
#[derive(Clone, Copy)]
pub(super) struct Constant {
    pub(super) values: *const f64,
    /// Which points of a step have it, `width` bytes per step.
    pub(super) present: *const u8,
    pub(super) width: usize,
}

// SAFETY: pointers to numbers that nobody writes meanwhile.
unsafe impl Sync for Constant {}

impl Source for Constant {
    const BLOCKS: bool = false;

    #[inline(always)]
    unsafe fn entry<L: Lanes>(self, step: usize, entry: usize) -> L::Pack {
        // SAFETY: by the caller's promise.
        unsafe {
            let present = *self.present.add(step * self.width + entry);
            L::keep(present, L::splat(*self.values.add(entry)))
        }
    }

    type Run = (*const u8, f64);

    #[inline(always)]
    unsafe fn run(self, step: usize, entry: usize) -> (*const u8, f64) {
        // SAFETY: by the caller's promise.
        unsafe { (self.present.add(step * self.width + entry), *self.values.add(entry)) }
    }

    #[inline(always)]
    unsafe fn advance<L: Lanes>(self, run: &mut (*const u8, f64), _: isize) -> L::Pack {
        let (here, value) = *run;
        run.0 = here.wrapping_add(self.width);
        // SAFETY: by the caller's promise.
        unsafe { L::keep(*here, L::splat(value)) }
    }

    #[inline(always)]
    unsafe fn entry_at<L: Lanes>(self, step: usize, reach: &NeighbourShift, entry: usize) -> L::Pack {
        // SAFETY: steps that the lanes of a reach lead to exist; the rest by the caller's promise.
        unsafe {
            let own = *self.present.add(step.wrapping_add_signed(reach.steps) * self.width + entry);
            let mut lanes = moved(own, reach.lanes) & reach.own;
            if reach.other != 0 {
                let other =
                    *self.present.add(step.wrapping_add_signed(reach.other_steps) * self.width + entry);
                lanes |= moved(other, reach.other_lanes) & reach.other;
            }
            L::keep(lanes, L::splat(*self.values.add(entry)))
        }
    }
}

/// Lane l takes the bit of lane l + `lanes`.
#[inline(always)]
fn moved(bits: u8, lanes: isize) -> u8 {
    if lanes >= 0 { bits.unbounded_shr(lanes as u32) } else { bits.unbounded_shl(-lanes as u32) }
}

/// Eight neighbours of the eight numbers at `from`, in an array of `width` times eight numbers per step.
///
/// # Safety
/// The reach is one for the step of `from`; the processor has the instructions.
#[inline(always)]
pub(super) unsafe fn neighbour<L: Lanes, S: Access>(
    from: *const S,
    width: usize,
    reach: &NeighbourShift,
) -> L::Pack {
    let a_step = (width * LANES) as isize;
    let own = from.wrapping_offset(reach.steps * a_step + reach.lanes);
    // SAFETY: the lanes of a reach lead to places of the arrangement.
    unsafe {
        if reach.own == u8::MAX {
            return S::load::<L>(own);
        }
        let other = from.wrapping_offset(reach.other_steps * a_step + reach.other_lanes);
        S::load_two::<L>(reach.own, own, reach.other, other)
    }
}

/// Both sides of a matrix or a factor, and what its diagonal is.
#[derive(Clone, Copy)]
pub(super) struct Sides<'a, C, E> {
    pub(super) lower: C,
    pub(super) diagonal: E,
    pub(super) upper: C,
    pub(super) below: &'a NeighbourShifts,
    pub(super) above: &'a NeighbourShifts,
}

// Loops below are loops and not closures handed to library functions: only what is inlined into a function compiled for an
// instruction set can use it.

/// acc + Σ C x, or with `MINUS` acc − Σ C x, over one offset.
///
/// # Safety
/// As the module says.
#[inline(always)]
unsafe fn block<L: Lanes, C: Source, const D: usize, const MINUS: bool>(
    coefficients: C,
    ahead: isize,
    reach: &NeighbourShift,
    step: usize,
    x: *const f64,
    acc: &mut [L::Pack; D],
) {
    for c in 0..D {
        // SAFETY: as the module says.
        unsafe {
            let x = neighbour::<L, f64>(x.wrapping_add((step * D + c) * LANES), D, reach);
            for r in 0..D {
                let entry = (reach.index * D + c) * D + r;
                let product = L::mul(coefficients.next_entry::<L>(step, entry, ahead), x);
                acc[r] = if MINUS { L::sub(acc[r], product) } else { L::add(acc[r], product) };
            }
        }
    }
}

/// The product of a block of the diagonal with the numbers of a step.
#[inline(always)]
unsafe fn times<L: Lanes, E: Source, const D: usize>(d: E, step: usize, x: [L::Pack; D]) -> [L::Pack; D] {
    let mut y = x;
    for r in 0..D {
        // SAFETY: as the module says.
        unsafe {
            y[r] = L::mul(d.entry::<L>(step, r), x[0]);
            for c in 1..D {
                y[r] = L::add(y[r], L::mul(d.entry::<L>(step, c * D + r), x[c]));
            }
        }
    }
    y
}

#[inline(always)]
unsafe fn load<L: Lanes, const D: usize>(x: *const f64, step: usize) -> [L::Pack; D] {
    // SAFETY: as the module says.
    unsafe {
        let mut pack = [L::splat(0.0); D];
        for r in 0..D {
            pack[r] = L::load(x.add((step * D + r) * LANES));
        }
        pack
    }
}

#[inline(always)]
unsafe fn store<L: Lanes, const D: usize>(y: *mut f64, step: usize, pack: [L::Pack; D]) {
    for r in 0..D {
        // SAFETY: as the module says.
        unsafe { L::store(y.add((step * D + r) * LANES), pack[r]) };
    }
}

/// acc + C x over one offset, in as many steps as there are sums, with one unknown per point.
///
/// # Safety
/// As the module says.
#[inline(always)]
unsafe fn offset_of_steps<L: Lanes, C: Source, const T: usize>(
    coefficients: C,
    ahead: isize,
    reach: &NeighbourShift,
    x: *const f64,
    step: usize,
    acc: &mut [L::Pack; T],
) {
    let x = x.wrapping_add(step * LANES);
    // SAFETY: as the module says.
    unsafe {
        let mut run = coefficients.run(step, reach.index);
        for t in 0..T {
            let x = neighbour::<L, f64>(x.wrapping_add(t * LANES), 1, reach);
            acc[t] = L::add(acc[t], L::mul(coefficients.advance::<L>(&mut run, ahead), x));
        }
    }
}

/// y = A x in `T` steps, with one unknown per point: what an offset means is looked up once for all of them.
///
/// # Safety
/// As the module says.
#[inline(always)]
unsafe fn multiply_steps<L: Lanes, C: Source, E: Source, const T: usize>(
    a: &Sides<'_, C, E>,
    (below, above): (&[NeighbourShift], &[NeighbourShift]),
    step: usize,
    x: *const f64,
    y: *mut f64,
) {
    let ahead = [a.lower.ahead::<1, false>(), a.upper.ahead::<1, false>()];
    // SAFETY: as the module says.
    unsafe {
        let mut acc = [L::splat(0.0); T];
        for reach in below {
            offset_of_steps::<L, C, T>(a.lower, ahead[0], reach, x, step, &mut acc);
        }
        let (mut run, ahead_of_centre) = (a.diagonal.run(step, 0), a.diagonal.ahead::<1, false>());
        for t in 0..T {
            let x = L::load(x.add((step + t) * LANES));
            acc[t] = L::add(acc[t], L::mul(a.diagonal.advance::<L>(&mut run, ahead_of_centre), x));
        }
        for reach in above {
            offset_of_steps::<L, C, T>(a.upper, ahead[1], reach, x, step, &mut acc);
        }
        for t in 0..T {
            L::store(y.add((step + t) * LANES), acc[t]);
        }
    }
}

/// Steps of a product that are computed together with one unknown per point.
const STEPS_AT_ONCE: usize = 4;

/// y = A x: offsets below the diagonal, the diagonal, offsets above.
///
/// # Safety
/// As the module says.
#[inline(always)]
pub(super) unsafe fn multiply_with<L: Lanes, C: Source, E: Source, const D: usize>(
    a: &Sides<'_, C, E>,
    piece: &Piece,
    x: *const f64,
    y: *mut f64,
) {
    let (below, above) = (a.below.of(piece), a.above.of(piece));
    let ahead = [a.lower.ahead::<D, false>(), a.upper.ahead::<D, false>()];
    let mut steps = piece.steps.clone();
    while D == 1 && steps.len() >= STEPS_AT_ONCE {
        // SAFETY: as the module says.
        unsafe { multiply_steps::<L, C, E, STEPS_AT_ONCE>(a, (below, above), steps.start, x, y) };
        steps.start += STEPS_AT_ONCE;
    }
    for step in steps {
        // SAFETY: as the module says.
        unsafe {
            let mut acc = [L::splat(0.0); D];
            for reach in below {
                block::<L, C, D, false>(a.lower, ahead[0], reach, step, x, &mut acc);
            }
            let centre = times::<L, E, D>(a.diagonal, step, load::<L, D>(x, step));
            for r in 0..D {
                acc[r] = L::add(acc[r], centre[r]);
            }
            for reach in above {
                block::<L, C, D, false>(a.upper, ahead[1], reach, step, x, &mut acc);
            }
            store::<L, D>(y, step, acc);
        }
    }
}

/// w = D⁻¹ (x − L w), upwards.
///
/// # Safety
/// As the module says.
#[inline(always)]
pub(super) unsafe fn forward_with<L: Lanes, C: Source, E: Source, const D: usize>(
    m: &Sides<'_, C, E>,
    piece: &Piece,
    x: *const f64,
    w: *mut f64,
) {
    let (below, ahead) = (m.below.of(piece), m.lower.ahead::<D, false>());
    for step in piece.steps.clone() {
        // SAFETY: as the module says.
        unsafe {
            let mut acc = load::<L, D>(x, step);
            for reach in below {
                block::<L, C, D, true>(m.lower, ahead, reach, step, w, &mut acc);
            }
            store::<L, D>(w, step, times::<L, E, D>(m.diagonal, step, acc));
        }
    }
}

/// z = z − D⁻¹ U z, downwards, in place.
///
/// # Safety
/// As the module says.
#[inline(always)]
pub(super) unsafe fn backward_with<L: Lanes, C: Source, E: Source, const D: usize>(
    m: &Sides<'_, C, E>,
    piece: &Piece,
    z: *mut f64,
) {
    let (above, ahead) = (m.above.of(piece), m.upper.ahead::<D, true>());
    for step in piece.steps.clone().rev() {
        // SAFETY: as the module says.
        unsafe {
            let mut acc = [L::splat(0.0); D];
            for reach in above.iter().rev() {
                block::<L, C, D, false>(m.upper, ahead, reach, step, z, &mut acc);
            }
            let change = times::<L, E, D>(m.diagonal, step, acc);
            let mut new = load::<L, D>(z, step);
            for r in 0..D {
                new[r] = L::sub(new[r], change[r]);
            }
            store::<L, D>(z, step, new);
        }
    }
}

/// Chooses the number of unknowns, more than one only where `$blocks` says so; then the instruction set.
macro_rules! for_each_size {
    ($name:ident = $body:ident <$($g:ident: $bound:ident),*>($($arg:ident: $ty:ty),* $(,)?) if $blocks:expr) => {
        /// # Safety
        /// As the module says, for `dof` unknowns per point.
        pub(super) unsafe fn $name<$($g: $bound),*>(dof: usize, $($arg: $ty),*) {
            $crate::simd::dispatch! {
                unsafe fn of_size<$($g: $bound),*; const D>($($arg: $ty),*) = $body;
            }
            // SAFETY: by the caller's promise.
            unsafe {
                if const { $blocks } {
                    match dof {
                        1 => of_size::<$($g,)* 1>($($arg),*),
                        2 => of_size::<$($g,)* 2>($($arg),*),
                        3 => of_size::<$($g,)* 3>($($arg),*),
                        4 => of_size::<$($g,)* 4>($($arg),*),
                        5 => of_size::<$($g,)* 5>($($arg),*),
                        6 => of_size::<$($g,)* 6>($($arg),*),
                        7 => of_size::<$($g,)* 7>($($arg),*),
                        _ => of_size::<$($g,)* 8>($($arg),*),
                    }
                } else {
                    debug_assert_eq!(dof, 1);
                    of_size::<$($g,)* 1>($($arg),*);
                }
            }
        }
    };
}

pub(super) use for_each_size;

for_each_size! {
    multiply = multiply_with<C: Source, E: Source>(
        a: &Sides<'_, C, E>, piece: &Piece, x: *const f64, y: *mut f64,
    ) if C::BLOCKS
}
for_each_size! {
    forward = forward_with<C: Source, E: Source>(
        m: &Sides<'_, C, E>, piece: &Piece, x: *const f64, w: *mut f64,
    ) if C::BLOCKS
}
for_each_size! {
    backward = backward_with<C: Source, E: Source>(m: &Sides<'_, C, E>, piece: &Piece, z: *mut f64) if C::BLOCKS
}
