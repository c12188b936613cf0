//! The inverses of the diagonal's blocks, and their bad pivots, for eight points at once.
//!
//! One unknown per point: 1 / d, and the rule for scalar pivots of `precond::form`. Several: the inverses of `block::dense`, so that a
//! factor on a grid is that of the same matrix in blocks. ILU exchanges rows within a block, IC reads the lower triangle of
//! the block alone, and the same blocks are bad with the same row and pivot.
//!
//! In the place of an inverse that does not exist the pivot is left, at its step of the diagonal, among zeros. The smallest bad row
//! is reported.
#![allow(unsafe_code)]
#![allow(
    clippy::needless_range_loop,
    reason = "loops are inlined into functions for an instruction set, closures may not be"
)]

use super::eliminate::{Block, EliminationTask};
use super::kernels::Source;
use crate::block::dense::{Blocks, Breakdown, invert_definite, invert_general};
use crate::elimination::{Kind, form};
use crate::simd::{LANES, Lanes, rolled};

/// Inverts the block of the diagonal; zeros where there is no point. `size` is what the pivot is measured against.
///
/// # Safety
/// As `kernels` says; `to` is the place of this step.
#[inline(always)]
pub(super) unsafe fn finish<L: Lanes, C: Source, E: Source, T: Source, const D: usize>(
    task: &EliminationTask<'_, C, E, T>,
    step: usize,
    centre: &Block<L, D>,
    size: &[f64; LANES],
    to: *mut f64,
) {
    // SAFETY: by the caller's promise.
    unsafe {
        if const { D == 1 } {
            finish_number::<L, C, E, T>(task, step, L::numbers(centre[0][0]), size, to);
        } else {
            finish_block::<L, C, E, T, D>(task, step, centre, size, to);
        }
    }
}

/// One unknown per point.
///
/// # Safety
/// As [`finish`].
#[inline(always)]
unsafe fn finish_number<L: Lanes, C: Source, E: Source, T: Source>(
    task: &EliminationTask<'_, C, E, T>,
    step: usize,
    mut pivot: [f64; LANES],
    size: &[f64; LANES],
    to: *mut f64,
) {
    let real = task.arrangement.real[step];
    let (mut inverse, mut fine) = ([0.0; LANES], true);
    for l in 0..LANES {
        pivot[l] = if real >> l & 1 == 1 { pivot[l] } else { 1.0 };
        fine &= real >> l & 1 == 0 || form::good(task.form.kind, pivot[l], size[l]);
    }
    for l in 0..LANES {
        inverse[l] = 1.0 / pivot[l];
    }
    // SAFETY: the place of this step.
    unsafe { L::store(to, L::keep(real, L::load(inverse.as_ptr()))) };
    if !fine {
        let bad = |l: usize| !form::good(task.form.kind, pivot[l], size[l]);
        let breakdowns = std::array::from_fn(|l| bad(l).then_some(Breakdown { step: 0, pivot: pivot[l] }));
        // SAFETY: as above.
        unsafe { report(task, step, &breakdowns, 1, to) };
    }
}

/// Several unknowns per point.
///
/// # Safety
/// As [`finish`].
#[inline(always)]
unsafe fn finish_block<L: Lanes, C: Source, E: Source, T: Source, const D: usize>(
    task: &EliminationTask<'_, C, E, T>,
    step: usize,
    centre: &Block<L, D>,
    size: &[f64; LANES],
    to: *mut f64,
) {
    let real = task.arrangement.real[step];
    let mut blocks: Blocks<D, LANES> = [[[0.0; LANES]; D]; D];
    let rows = rolled::<D>();
    for c in 0..rows {
        for r in 0..rows {
            // SAFETY: the processor has the instructions.
            blocks[r][c] = unsafe { L::numbers(centre[c][r]) };
        }
    }
    let mut size = *size;
    if real != u8::MAX {
        // Where there is no point, a block that no exchange and no breakdown comes from.
        for l in 0..LANES {
            if real >> l & 1 == 0 {
                size[l] = 1.0;
                for r in 0..rows {
                    for c in 0..rows {
                        blocks[r][c][l] = if r == c { 1.0 } else { 0.0 };
                    }
                }
            }
        }
    }
    let inverses = match task.form.kind {
        Kind::Cholesky => invert_definite(&blocks, &size),
        Kind::Lu => invert_general(&blocks, &size),
    };
    for c in 0..rows {
        for r in 0..rows {
            let inverse = &inverses.blocks[r][c];
            // SAFETY: the places of this step.
            unsafe { L::store(to.add((c * D + r) * LANES), L::keep(real, L::load(inverse.as_ptr()))) };
        }
    }
    if let Some(breakdowns) = &inverses.breakdowns {
        // SAFETY: as above.
        unsafe { report(task, step, breakdowns, D, to) };
    }
}

/// Notes the smallest row with a bad pivot, and leaves the pivots.
///
/// # Safety
/// `to` is the place of this step, with room for its blocks.
#[cold]
unsafe fn report<C, E, T>(
    task: &EliminationTask<'_, C, E, T>,
    step: usize,
    breakdowns: &[Option<Breakdown>; LANES],
    dof: usize,
    to: *mut f64,
) {
    for l in 0..LANES {
        if let (Some(point), Some(breakdown)) = (task.arrangement.point(step, l), breakdowns[l]) {
            task.bad.report(task.arrangement.grid.number(point) * dof + breakdown.step);
            for entry in 0..dof * dof {
                let pivot = if entry == breakdown.step * (dof + 1) { breakdown.pivot } else { 0.0 };
                // SAFETY: an entry of lane l of this step.
                unsafe { *to.add(entry * LANES + l) = pivot };
            }
        }
    }
}
