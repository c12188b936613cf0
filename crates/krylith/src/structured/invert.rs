//! The inverses of the diagonal's blocks, and their bad pivots.
//!
//! Gauss and Jordan without pivoting, as eliminating unknown by unknown does, for eight points at once; a pivot below 10⁻¹⁴ of its row
//! is a bad one. It is left in the place of its inverse, and the smallest such row is told.
#![allow(unsafe_code)]
#![allow(
    clippy::needless_range_loop,
    reason = "loops are inlined into functions for an instruction set, closures may not be"
)]

use super::eliminate::{Block, Rows, Task};
use super::kernels::Source;
use crate::precond::form;
use crate::simd::{LANES, Lanes};

/// Inverts the block of the diagonal; zeros where there is no point.
///
/// # Safety
/// As `kernels` says; `to` is the place of this step.
#[inline(always)]
pub(super) unsafe fn finish<L: Lanes, C: Source, E: Source, const D: usize>(
    task: &Task<'_, C, E>,
    step: usize,
    centre: &Block<L, D>,
    size: &Rows<D>,
    to: *mut f64,
) {
    let real = task.layout.real[step];
    let mut a = [[[0.0; LANES]; D]; D];
    for c in 0..D {
        for r in 0..D {
            // SAFETY: the processor has the instructions.
            a[c][r] = unsafe { L::numbers(centre[c][r]) };
        }
    }
    let (pivots, mut bad) = (a, 0);
    // Gauss-Jordan in place: after step k, column k holds that of the inverse.
    for k in 0..D {
        let mut inverse = a[k][k];
        let mut fine = true;
        for l in 0..LANES {
            inverse[l] = if real >> l & 1 == 1 { inverse[l] } else { 1.0 };
            fine &= real >> l & 1 == 0 || form::good(task.form.kind, inverse[l], size[k][l]);
        }
        if !fine {
            // The others go on: what they are decides which of several bad rows is the first.
            bad |= report(task, step, k, &inverse, &size[k], D);
        }
        for l in 0..LANES {
            inverse[l] = 1.0 / inverse[l];
        }
        a[k][k] = [1.0; LANES];
        for c in 0..D {
            for l in 0..LANES {
                a[c][k][l] *= inverse[l];
            }
        }
        for r in 0..D {
            if r == k {
                continue;
            }
            let times = a[k][r];
            a[k][r] = [0.0; LANES];
            for c in 0..D {
                for l in 0..LANES {
                    a[c][r][l] -= times[l] * a[c][k][l];
                }
            }
        }
    }
    for c in 0..D {
        for r in 0..D {
            // SAFETY: the places of this step.
            unsafe { L::store(to.add((c * D + r) * LANES), L::keep(real, L::load(a[c][r].as_ptr()))) };
        }
    }
    if bad != 0 {
        leave_pivots::<D>(&pivots, bad, to);
    }
}

/// Leaves the pivots of bad lanes in the place of their inverses: those that unknown after unknown would have met.
#[cold]
fn leave_pivots<const D: usize>(block: &[[[f64; LANES]; D]; D], bad: u8, to: *mut f64) {
    for l in (0..LANES).filter(|l| bad >> l & 1 == 1) {
        let mut a = [[0.0; D]; D];
        for c in 0..D {
            for r in 0..D {
                a[c][r] = block[c][r][l];
            }
        }
        for k in 0..D {
            // SAFETY: the place of entry (k, k) of this step.
            unsafe { *to.add((k * D + k) * LANES + l) = a[k][k] };
            for r in k + 1..D {
                let times = a[k][r] / a[k][k];
                for c in k + 1..D {
                    a[c][r] -= times * a[c][k];
                }
            }
        }
    }
}

/// Notes the smallest row with a bad pivot; the lanes that have one.
#[cold]
fn report<C, E>(
    task: &Task<'_, C, E>,
    step: usize,
    k: usize,
    pivot: &[f64; LANES],
    size: &[f64; LANES],
    dof: usize,
) -> u8 {
    let mut lanes = 0;
    for l in 0..LANES {
        if let Some(point) = task.layout.point(step, l)
            && !form::good(task.form.kind, pivot[l], size[l])
        {
            task.bad.report(task.layout.grid.number(point) * dof + k);
            lanes |= 1 << l;
        }
    }
    lanes
}
