//! Loops over the rows of a factor, divided among threads; every row is computed by one of them, in the order of its entries.
#![allow(unsafe_code)]

use super::optimizer::Rule;
use crate::disjoint::DisjointSlice;
use crate::scalar::Real;
use crate::space::Threads;
use std::ops::Range;

/// Rows that a thread takes at once.
const GRAIN: usize = 64;
/// Gradients that are kept before entries are moved along them, many at once.
const BLOCK: usize = 256;

/// The samples of a step at one place.
pub(crate) type Lanes<T, const B: usize> = [T; B];

/// out\[i\] = row(i) for every i.
pub(crate) fn fill<T: Copy + Send>(space: &Threads<f64>, out: &mut [T], row: impl Fn(usize) -> T + Sync) {
    let n = out.len();
    let out = DisjointSlice::new(out);
    space.team().run(|member| {
        let part = member.part(n, GRAIN);
        // SAFETY: members have parts that do not overlap.
        let own = unsafe { out.get(part.clone()) };
        own.iter_mut().zip(part).for_each(|(out, i)| *out = row(i));
    });
}

/// Moves the entries of all rows, with their moments, along their gradients; `gradient` is given a row and the place of an entry.
pub(crate) fn update<T: Real>(
    space: &Threads<f64>,
    rule: Rule<T>,
    row_ptr: &[usize],
    [values, first, second]: [&mut [T]; 3],
    gradient: impl Fn(usize, usize) -> T + Sync,
) {
    let n = row_ptr.len() - 1;
    let all = [values, first, second].map(DisjointSlice::new);
    space.team().run(|member| {
        let part = member.part(n, GRAIN);
        let mut gradients = [T::ZERO; BLOCK];
        let mut block = row_ptr[part.start]..row_ptr[part.start];
        let move_along = |gradients: &[T], block: Range<usize>| {
            // SAFETY: rows do not overlap, and each has one member.
            let own = all.each_ref().map(|slice| unsafe { slice.get(block.clone()) });
            rule.step(&gradients[..block.len()], own);
        };
        for i in part {
            for place in row_ptr[i]..row_ptr[i + 1] {
                gradients[block.len()] = gradient(i, place);
                block.end += 1;
                if block.len() == BLOCK {
                    move_along(&gradients, block.clone());
                    block.start = block.end;
                }
            }
        }
        move_along(&gradients, block);
    });
}

/// A row times vectors side by side.
#[inline]
pub(crate) fn times<T: Real, const B: usize>(
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
pub(crate) fn dot<T: Real, const B: usize>(a: &Lanes<T, B>, b: &Lanes<T, B>) -> T {
    sum::<T, B>(std::array::from_fn(|k| a[k] * b[k]))
}

/// The sum over the samples at a place, a power of two of them, by halves: what the vector units do well.
#[inline]
pub(crate) fn sum<T: Real, const B: usize>(mut a: Lanes<T, B>) -> T {
    const { assert!(B.is_power_of_two()) };
    let mut half = B / 2;
    while half > 0 {
        for k in 0..half {
            let other = a[k + half];
            a[k] += other;
        }
        half /= 2;
    }
    a[0]
}
