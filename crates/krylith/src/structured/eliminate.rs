//! Elimination on a stencil, eight points at a time.
//!
//! Row i of the factor, with its blocks L_l, D, U_u and those of the neighbours:
//!
//!   for each lower offset l, in the order of columns
//!     T = L_l D⁻¹(i + l)
//!     for each upper offset u    block l + u of row i  −=  T U_u(i + l)
//!
//! What falls on no offset of the stencil is dropped or, times ω, subtracted from the diagonal (one unknown per point). Which l + u
//! falls where is a list made once from the stencil. L stays undivided: M = (D + L) D⁻¹ (D + U).
//!
//! A number in A that is not finite makes a bad pivot of its row; since zeros times it are not finite either, of a row near it as well.
#![allow(unsafe_code)]
#![allow(
    clippy::needless_range_loop,
    reason = "loops are inlined into functions for an instruction set, closures may not be"
)]

use super::arrangement::{Arrangement, NeighbourShift, NeighbourShifts, Piece};
use super::invert::finish;
use super::kernels::{Coefficients, Sides, Source, for_each_size};
use super::stencil::Stencil;
use crate::elimination::form::{self, Update};
use crate::elimination::{FirstBadPivot, Form};
use crate::simd::{Access, LANES, Lanes, Simd, rolled};

/// What a product of a lower and an upper block changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    Lower(usize),
    Centre,
    Upper(usize),
    Dropped,
}

/// For each lower offset the upper offsets of its row, and what they change.
#[derive(Debug, Clone)]
pub(super) struct Steps(Vec<Vec<(usize, Target)>>);

impl Steps {
    /// The list of a stencil: what is dropped for nothing is left out.
    pub(super) fn new(stencil: &Stencil, update: Update) -> Self {
        let centre = stencil.centre();
        let mut lists = vec![Vec::new(); centre];
        for step in stencil.eliminations() {
            let target = match step.target {
                _ if matches!(update, Update::Keep { .. }) => continue,
                Some(t) if t == centre => Target::Centre,
                Some(_) if update == Update::Diagonal => continue,
                Some(t) if t < centre => Target::Lower(t),
                Some(t) => Target::Upper(t - centre - 1),
                None if matches!(update, Update::Modified { .. }) => Target::Dropped,
                None => continue,
            };
            lists[step.lower].push((step.upper - centre - 1, target));
        }
        Steps(lists)
    }

    /// Whether the diagonal alone is changed.
    pub(super) fn keep_off_diagonals(&self) -> bool {
        self.0.iter().flatten().all(|(_, target)| matches!(target, Target::Centre | Target::Dropped))
    }
}

/// What is eliminated.
pub(super) struct EliminationTask<'a, C, E, T> {
    pub(super) arrangement: &'a Arrangement,
    pub(super) a: Sides<'a, C, E>,
    /// L and U of the factor, as they are read: A's where they stay those of A.
    pub(super) triangles: [T; 2],
    /// Where A has the lower and the upper offsets of the factor.
    pub(super) of_a: [&'a [Option<usize>]; 2],
    /// Which points have which offset of the factor, if not all; `len` bytes per step.
    pub(super) present: Option<&'a [u8]>,
    pub(super) below: &'a NeighbourShifts,
    pub(super) steps: &'a Steps,
    pub(super) form: Form,
    pub(super) shift: f64,
    pub(super) bad: &'a FirstBadPivot,
}

/// The factor in the making; lower and upper are null where they stay those of A.
pub(super) struct FactorWriter<S> {
    pub(super) lower: *mut S,
    pub(super) inverse: *mut f64,
    pub(super) upper: *mut S,
    pub(super) counts: [usize; 2],
}

// SAFETY: pointers to numbers that members of a team write at places that the pipeline keeps apart.
unsafe impl<S> Sync for FactorWriter<S> {}

impl<S> FactorWriter<S> {
    /// L and U as they are read.
    pub(super) fn triangles(&self, dof: usize) -> [Coefficients<S>; 2] {
        let of =
            |values: *mut S, count| Coefficients { values: values.cast_const(), width: count * dof * dof };
        [of(self.lower, self.counts[0]), of(self.upper, self.counts[1])]
    }

    /// Whether L and U stay those of A.
    #[inline(always)]
    pub(super) fn keeps_triangles(&self) -> bool {
        self.lower.is_null()
    }

    /// The block of L with this number at a step.
    ///
    /// # Safety
    /// L is written, and has the step and the block.
    #[inline(always)]
    unsafe fn lower_at<const D: usize>(&self, step: usize, index: usize) -> *mut S {
        // SAFETY: by the caller's promise.
        unsafe { self.lower.add((step * self.counts[0] + index) * D * D * LANES) }
    }

    /// The block of U with this number at a step.
    ///
    /// # Safety
    /// U is written, and has the step and the block.
    #[inline(always)]
    unsafe fn upper_at<const D: usize>(&self, step: usize, index: usize) -> *mut S {
        // SAFETY: by the caller's promise.
        unsafe { self.upper.add((step * self.counts[1] + index) * D * D * LANES) }
    }
}

/// A block to read, entry by entry.
trait Entries<L: Lanes>: Copy {
    /// # Safety
    /// As `Source`.
    unsafe fn get(self, entry: usize) -> L::Pack;
}

/// The block that begins with entry `first` at a step.
#[derive(Clone, Copy)]
struct Here<C> {
    source: C,
    step: usize,
    first: usize,
}

impl<L: Lanes, C: Source> Entries<L> for Here<C> {
    #[inline(always)]
    unsafe fn get(self, entry: usize) -> L::Pack {
        // SAFETY: by the caller's promise.
        unsafe { self.source.entry::<L>(self.step, self.first + entry) }
    }
}

/// The same of the neighbours, in some lanes.
#[derive(Clone, Copy)]
struct There<'a, C> {
    source: C,
    step: usize,
    first: usize,
    reach: &'a NeighbourShift,
    lanes: u8,
}

impl<L: Lanes, C: Source> Entries<L> for There<'_, C> {
    #[inline(always)]
    unsafe fn get(self, entry: usize) -> L::Pack {
        // SAFETY: by the caller's promise.
        unsafe {
            let all = self.source.entry_at::<L>(self.step, self.reach, self.first + entry);
            if self.lanes == u8::MAX { all } else { L::keep(self.lanes, all) }
        }
    }
}

/// A block, column by column.
pub(super) type Block<L, const D: usize> = [[<L as Simd>::Pack; D]; D];

/// Rows of L, D⁻¹ and U for the steps of a piece, upwards; D⁻¹ alone where L and U stay those of A. A bad pivot is left in the place of its inverse.
///
/// # Safety
/// As `kernels` says: the steps that the lower offsets lead to are finished.
#[inline(always)]
pub(super) unsafe fn eliminate_with<L: Lanes, C: Source, E: Source, T: Source, S: Access, const D: usize>(
    task: &EliminationTask<'_, C, E, T>,
    f: &FactorWriter<S>,
    piece: &Piece,
) {
    let squared = D * D;
    let [nl, nu] = f.counts;
    let [own_rows, their_rows] = task.triangles;
    let inverse = Coefficients { values: f.inverse.cast_const(), width: squared };
    let below = task.below.of(piece);
    for step in piece.steps.clone() {
        // SAFETY: as above; the places of this step are this member's. Triangles that are A's have no targets off the diagonal
        // (`Steps::keep_off_diagonals`), so that `lower_at` and `upper_at` are only called where there is what they lead to.
        unsafe {
            let mut size = Sizes::<L, D> { largest: [L::splat(0.0); D], zero: [L::splat(0.0); D] };
            if f.keeps_triangles() {
                measure::<L, C, D>(task.a.lower, nl, step, &mut size);
                measure::<L, C, D>(task.a.upper, nu, step, &mut size);
            } else {
                take_over::<L, C, S, D>(
                    task.a.lower,
                    task.of_a[0],
                    step,
                    f.lower_at::<D>(step, 0),
                    &mut size,
                );
                take_over::<L, C, S, D>(
                    task.a.upper,
                    task.of_a[1],
                    step,
                    f.upper_at::<D>(step, 0),
                    &mut size,
                );
            }
            let mut centre = block::<L, D>(Here { source: task.a.diagonal, step, first: 0 });
            let size = begin::<L, C, E, T, D>(task, &mut centre, size);
            for reach in below {
                let own = Here { source: own_rows, step, first: reach.index * squared };
                let t = divided::<L, D>(own, inverse, step, reach);
                for &(u, target) in &task.steps.0[reach.index] {
                    let theirs =
                        There { source: their_rows, step, first: u * squared, reach, lanes: u8::MAX };
                    let (place, offset) = match target {
                        Target::Centre | Target::Dropped => {
                            let share = if target == Target::Dropped { task.form.omega() } else { 1.0 };
                            subtract_local::<L, D>(&mut centre, &t, theirs, share);
                            continue;
                        }
                        Target::Lower(o) => (f.lower_at::<D>(step, o), o),
                        Target::Upper(o) => (f.upper_at::<D>(step, o), nl + 1 + o),
                    };
                    let lanes = match task.present {
                        Some(present) => present[step * (nl + 1 + nu) + offset],
                        None => u8::MAX,
                    };
                    subtract::<L, S, D>(place, &t, There { lanes, ..theirs });
                    if lanes != u8::MAX && task.form.omega() != 0.0 {
                        let dropped = There { lanes: !lanes, ..theirs };
                        subtract_local::<L, D>(&mut centre, &t, dropped, task.form.omega());
                    }
                }
            }
            finish::<L, C, E, T, D>(task, step, &centre, &size, f.inverse.add(step * squared * LANES));
        }
    }
}

/// The block of these entries.
#[inline(always)]
unsafe fn block<L: Lanes, const D: usize>(entries: impl Entries<L>) -> Block<L, D> {
    // SAFETY: as the module says.
    unsafe {
        let mut block = [[L::splat(0.0); D]; D];
        for (c, column) in block[..rolled::<D>()].iter_mut().enumerate() {
            for r in 0..D {
                column[r] = entries.get(c * D + r);
            }
        }
        block
    }
}

/// Copies the blocks that A has, sets the others to zero, and measures them.
#[inline(always)]
unsafe fn take_over<L: Lanes, C: Source, S: Access, const D: usize>(
    a: C,
    of_a: &[Option<usize>],
    step: usize,
    to: *mut S,
    size: &mut Sizes<L, D>,
) {
    let (ahead, columns) = (a.ahead::<D, false>(), rolled::<D>());
    for (o, there) in of_a.iter().enumerate() {
        for c in 0..columns {
            for r in 0..D {
                let entry = c * D + r;
                // SAFETY: as the module says.
                unsafe {
                    let value = match there {
                        Some(index) => a.next_entry::<L>(step, index * D * D + entry, ahead),
                        None => L::splat(0.0),
                    };
                    S::store::<L>(to.add((o * D * D + entry) * LANES), value);
                    size.see(r, value);
                }
            }
        }
    }
}

/// Measures the blocks of A.
#[inline(always)]
unsafe fn measure<L: Lanes, C: Source, const D: usize>(
    a: C,
    count: usize,
    step: usize,
    size: &mut Sizes<L, D>,
) {
    let ahead = a.ahead::<D, false>();
    for column in 0..count * D {
        for r in 0..D {
            // SAFETY: as the module says.
            unsafe { size.see(r, a.next_entry::<L>(step, column * D + r, ahead)) };
        }
    }
}

/// Of each row of a block: its largest entry, and zero times all of them, which is none if one is not finite.
struct Sizes<L: Lanes, const D: usize> {
    largest: [L::Pack; D],
    zero: [L::Pack; D],
}

impl<L: Lanes, const D: usize> Sizes<L, D> {
    #[inline(always)]
    unsafe fn see(&mut self, r: usize, value: L::Pack) {
        // SAFETY: the processor has the instructions.
        unsafe {
            self.largest[r] = L::larger(self.largest[r], value);
            self.zero[r] = L::add(self.zero[r], L::mul(value, L::splat(0.0)));
        }
    }
}

/// Shifts the diagonal of the block; what its pivot is measured against: for one unknown per point the size of the row, for several
/// the largest entry of the block of A. What is not finite in a row makes a pivot that is none.
#[inline(always)]
unsafe fn begin<L: Lanes, C: Source, E: Source, T: Source, const D: usize>(
    task: &EliminationTask<'_, C, E, T>,
    centre: &mut Block<L, D>,
    mut size: Sizes<L, D>,
) -> [f64; LANES] {
    let kind = task.form.kind;
    // SAFETY: the processor has the instructions.
    let mut block = unsafe { L::splat(0.0) };
    let (mut sizes, rows) = ([[0.0; LANES]; D], rolled::<D>());
    for r in 0..rows {
        // SAFETY: the processor has the instructions; eight numbers are read and written.
        unsafe {
            for c in 0..D {
                block = L::larger(block, centre[c][r]);
            }
            centre[r][r] = L::add(centre[r][r], size.zero[r]);
            for c in 0..D {
                size.largest[r] = L::larger(size.largest[r], centre[c][r]);
            }
            let (mut diagonal, largest) = (L::numbers(centre[r][r]), L::numbers(size.largest[r]));
            for l in 0..LANES {
                sizes[r][l] = form::size(kind, diagonal[l], largest[l]);
                diagonal[l] = form::shifted(kind, diagonal[l], task.shift, sizes[r][l]);
            }
            if task.shift != 0.0 {
                centre[r][r] = L::load(diagonal.as_ptr());
            }
        }
    }
    if let Some(share) = task.form.kept_diagonal() {
        for c in 0..rows {
            for r in 0..D {
                // SAFETY: the processor has the instructions.
                centre[c][r] = unsafe { L::mul(L::splat(share), centre[c][r]) };
            }
        }
    }
    // SAFETY: the processor has the instructions.
    if D == 1 { sizes[0] } else { unsafe { L::numbers(block) } }
}

/// T = L_l D⁻¹ of the neighbour.
#[inline(always)]
unsafe fn divided<L: Lanes, const D: usize>(
    own: impl Entries<L>,
    inverse: Coefficients<f64>,
    step: usize,
    reach: &NeighbourShift,
) -> Block<L, D> {
    let columns = rolled::<D>();
    // SAFETY: as the module says.
    unsafe {
        let mut t = [[L::splat(0.0); D]; D];
        for (c, t) in t[..columns].iter_mut().enumerate() {
            let mut column = [L::splat(0.0); D];
            for k in 0..columns {
                let d = inverse.entry_at::<L>(step, reach, c * D + k);
                for r in 0..D {
                    let product = L::mul(own.get(k * D + r), d);
                    column[r] = if k == 0 { product } else { L::add(column[r], product) };
                }
            }
            *t = column;
        }
        t
    }
}

/// Block −= share · T U, in registers.
#[inline(always)]
unsafe fn subtract_local<L: Lanes, const D: usize>(
    to: &mut Block<L, D>,
    t: &Block<L, D>,
    theirs: impl Entries<L>,
    share: f64,
) {
    let columns = rolled::<D>();
    for (c, to) in to[..columns].iter_mut().enumerate() {
        let mut column = *to;
        for (k, t) in t[..columns].iter().enumerate() {
            // SAFETY: as the module says.
            unsafe {
                let u = theirs.get(c * D + k);
                let u = if share == 1.0 { u } else { L::mul(u, L::splat(share)) };
                for r in 0..D {
                    column[r] = L::sub(column[r], L::mul(t[r], u));
                }
            }
        }
        *to = column;
    }
}

/// The same in memory, for the lanes that have the block.
#[inline(always)]
unsafe fn subtract<L: Lanes, S: Access, const D: usize>(
    to: *mut S,
    t: &Block<L, D>,
    theirs: impl Entries<L>,
) {
    let columns = rolled::<D>();
    for c in 0..columns {
        // SAFETY: as the module says.
        unsafe {
            let to = to.add(c * D * LANES);
            let mut column = [L::splat(0.0); D];
            for r in 0..D {
                column[r] = S::load::<L>(to.add(r * LANES));
            }
            for (k, t) in t[..columns].iter().enumerate() {
                let u = theirs.get(c * D + k);
                for r in 0..D {
                    column[r] = L::sub(column[r], L::mul(t[r], u));
                }
            }
            for r in 0..D {
                S::store::<L>(to.add(r * LANES), column[r]);
            }
        }
    }
}

for_each_size! {
    eliminate = eliminate_with<C: Source, E: Source, T: Source, S: Access>(
        task: &EliminationTask<'_, C, E, T>, f: &FactorWriter<S>, piece: &Piece,
    ) if C::BLOCKS && Coefficients::<S>::BLOCKS
}
