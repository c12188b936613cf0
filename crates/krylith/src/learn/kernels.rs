//! Loops over the rows of a factor, divided among threads; every row is computed by one of them, in the order of its entries.
#![allow(unsafe_code)]

use crate::disjoint::DisjointSlice;
use crate::scalar::Real;
use crate::space::Threads;

/// Rows that a thread takes at once.
const GRAIN: usize = 64;

/// The samples of a step at one place.
pub(super) type Lanes<T, const B: usize> = [T; B];

/// out\[i\] = row(i) for every i.
pub(super) fn fill<T: Copy + Send>(space: &Threads<f64>, out: &mut [T], row: impl Fn(usize) -> T + Sync) {
    let n = out.len();
    let out = DisjointSlice::new(out);
    space.team().run(|member| {
        let part = member.part(n, GRAIN);
        // SAFETY: members have parts that do not overlap.
        let own = unsafe { out.get(part.clone()) };
        own.iter_mut().zip(part).for_each(|(out, i)| *out = row(i));
    });
}

/// Changes the entries of every row: their values and two numbers that belong to each.
pub(super) fn update<T: Copy + Send>(
    space: &Threads<f64>,
    row_ptr: &[usize],
    [values, first, second]: [&mut [T]; 3],
    row: impl Fn(usize, [&mut [T]; 3]) + Sync,
) {
    let n = row_ptr.len() - 1;
    let all = [values, first, second].map(DisjointSlice::new);
    space.team().run(|member| {
        for i in member.part(n, GRAIN) {
            let range = row_ptr[i]..row_ptr[i + 1];
            // SAFETY: rows do not overlap, and each has one member.
            let own = all.each_ref().map(|slice| unsafe { slice.get(range.clone()) });
            row(i, own);
        }
    });
}

/// A row times vectors side by side.
#[inline]
pub(super) fn times<T: Real, const B: usize>(
    columns: &[u32],
    values: &[T],
    x: &[Lanes<T, B>],
) -> Lanes<T, B> {
    let mut sum = [T::ZERO; B];
    for (&column, &value) in columns.iter().zip(values) {
        let x = &x[column as usize];
        for (sum, &x) in sum.iter_mut().zip(x) {
            *sum += value * x;
        }
    }
    sum
}

/// Σ aₖ bₖ over the samples at a place.
#[inline]
pub(super) fn dot<T: Real, const B: usize>(a: &Lanes<T, B>, b: &Lanes<T, B>) -> T {
    a.iter().zip(b).fold(T::ZERO, |sum, (&a, &b)| sum + a * b)
}
