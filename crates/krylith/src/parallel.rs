//! Loops over rows on rayon's threads, of which one is compiled.
//!
//! A parallel iterator of rayon is compiled anew for every closure, some two thousand lines of intermediate code each. Here one loop over piece numbers
//! is compiled, which calls its work through a pointer, once per piece; what is generic around it is short. A loop of one piece does not
//! ask for threads.
//!
//! Results come in the order of their pieces and do not depend on who computed them. Sums are not taken here: whoever adds floating-point numbers
//! decides on the pieces.
#![allow(unsafe_code)]

use crate::disjoint::DisjointSlice;
use rayon::prelude::*;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Rows of a piece: enough to hide the cost of a piece, few enough to balance.
pub(crate) const PIECE: usize = 4096;

/// Calls `work` once with each number below `count`, in any order: the only parallel loop of this module.
#[inline(never)]
fn run(count: usize, work: &(dyn Fn(usize) + Sync)) {
    match count {
        0 => {}
        1 => work(0),
        _ => (0..count).into_par_iter().for_each(work),
    }
}

/// Calls `work` once with each number below `count`.
pub(crate) fn for_each(count: usize, work: impl Fn(usize) + Sync) {
    run(count, &work);
}

/// Piece `k` of `n` rows.
fn piece(n: usize, k: usize) -> Range<usize> {
    k * PIECE..n.min((k + 1) * PIECE)
}

/// What `make` makes of each number below `count`, in order.
pub(crate) fn map<T: Send>(count: usize, make: impl Fn(usize) -> T + Sync) -> Vec<T> {
    map_by(count, 1, make)
}

/// What `make` makes of each row, in order: [`PIECE`] rows are made one after the other.
pub(crate) fn map_rows<T: Send>(n: usize, make: impl Fn(usize) -> T + Sync) -> Vec<T> {
    map_by(n, PIECE, make)
}

/// What `make` makes of each row, in order: `length` rows are made one after the other.
pub(crate) fn map_by<T: Send>(n: usize, length: usize, make: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let mut made = Vec::with_capacity(n);
    let places = Places(DisjointSlice::new(&mut made.spare_capacity_mut()[..n]));
    run(n.div_ceil(length), &|k| {
        for i in k * length..n.min((k + 1) * length) {
            // SAFETY: every place is written once, by the piece that it is in.
            unsafe { places.put(i, make(i)) };
        }
    });
    // SAFETY: all n were written; had one panicked, this would not be reached and what was made be leaked.
    unsafe { made.set_len(n) };
    made
}

/// What `make` makes of each number below `count`, in order, or the first error in that order. Numbers behind an error may be left out.
pub(crate) fn try_map<T: Send, E: Send>(
    count: usize,
    make: impl Fn(usize) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    let failed = AtomicUsize::new(count);
    let made = map(count, |k| {
        let wanted = k < failed.load(Ordering::Relaxed);
        wanted.then(|| make(k).inspect_err(|_| _ = failed.fetch_min(k, Ordering::Relaxed)))
    });
    // What was left out stands behind an error.
    made.into_iter().flatten().collect()
}

/// Places of values that need not be copied.
struct Places<'a, T>(DisjointSlice<'a, MaybeUninit<T>>);

impl<T> Places<'_, T> {
    /// # Safety
    /// Nobody else uses the place.
    unsafe fn put(&self, place: usize, value: T) {
        // SAFETY: by the caller's promise.
        unsafe { self.0.write(place, MaybeUninit::new(value)) }
    }
}

/// Sets every number to what `make` makes of its place.
pub(crate) fn set<T: Send + Copy>(values: &mut [T], make: impl Fn(usize) -> T + Sync) {
    for_each_piece_mut(values, PIECE, |first, piece| {
        for (i, value) in (first..).zip(piece) {
            *value = make(i);
        }
    });
}

/// Calls `work` with the first place of each piece of `length` values, and the piece.
pub(crate) fn for_each_piece_mut<T: Send>(
    values: &mut [T],
    length: usize,
    work: impl Fn(usize, &mut [T]) + Sync,
) {
    let (n, values) = (values.len(), DisjointSlice::new(values));
    run(n.div_ceil(length), &|k| {
        let own = k * length..n.min((k + 1) * length);
        // SAFETY: pieces do not overlap, and each has one caller.
        work(own.start, unsafe { values.get(own) });
    });
}

/// Calls `work` with the first place of each piece of `length` values, and the piece, or gives the first error in their order. Pieces behind an
/// error may be left out.
pub(crate) fn try_for_each_piece_mut<T: Send, E: Send>(
    values: &mut [T],
    length: usize,
    work: impl Fn(usize, &mut [T]) -> Result<(), E> + Sync,
) -> Result<(), E> {
    let (n, values) = (values.len(), DisjointSlice::new(values));
    try_map(n.div_ceil(length), |k| {
        let own = k * length..n.min((k + 1) * length);
        // SAFETY: pieces do not overlap, and each has one caller.
        work(own.start, unsafe { values.get(own) })
    })?;
    Ok(())
}

/// Calls `work` with each of these, which it may take apart.
pub(crate) fn for_each_of<T: Send>(items: Vec<T>, work: impl Fn(T) + Sync) {
    let mut items: Vec<Option<T>> = items.into_iter().map(Some).collect();
    for_each_piece_mut(&mut items, 1, |_, own| own.iter_mut().filter_map(Option::take).for_each(&work));
}

/// Whether `holds` is true of every row. Which rows are looked at after one for which it is not may differ.
pub(crate) fn all(n: usize, holds: impl Fn(usize) -> bool + Sync) -> bool {
    let so_far = AtomicBool::new(true);
    run(n.div_ceil(PIECE), &|k| {
        if so_far.load(Ordering::Relaxed) && !piece(n, k).all(&holds) {
            so_far.store(false, Ordering::Relaxed);
        }
    });
    so_far.into_inner()
}

/// Whether `holds` is true of a row.
pub(crate) fn any(n: usize, holds: impl Fn(usize) -> bool + Sync) -> bool {
    !all(n, |i| !holds(i))
}

/// The first row of which `holds` is true.
pub(crate) fn first(n: usize, holds: impl Fn(usize) -> bool + Sync) -> Option<usize> {
    let least = AtomicUsize::new(n);
    run(n.div_ceil(PIECE), &|k| {
        let own = piece(n, k);
        if own.start < least.load(Ordering::Relaxed)
            && let Some(i) = own.clone().find(|&i| holds(i))
        {
            least.fetch_min(i, Ordering::Relaxed);
        }
    });
    Some(least.into_inner()).filter(|&i| i < n)
}

/// What the pieces of `n` rows come to, put together in their order.
pub(crate) fn fold<T: Send>(
    n: usize,
    of_piece: impl Fn(Range<usize>) -> T + Sync,
    together: impl Fn(T, T) -> T,
) -> Option<T> {
    map(n.div_ceil(PIECE), |k| of_piece(piece(n, k))).into_iter().reduce(together)
}

/// The sum of what `count` counts in each row.
pub(crate) fn sum(n: usize, count: impl Fn(usize) -> usize + Sync) -> usize {
    fold(n, |rows| rows.map(&count).sum(), |a: usize, b| a + b).unwrap_or(0)
}

/// The bounds of share `k` of `shares` consecutive shares of `n` items.
pub(crate) fn share(n: usize, k: usize, shares: usize) -> std::ops::Range<usize> {
    let bound = |k: usize| (n as u128 * k as u128 / shares as u128) as usize;
    bound(k)..bound(k + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: [usize; 6] = [0, 1, PIECE - 1, PIECE, PIECE + 1, 5 * PIECE + 7];

    #[test]
    fn every_row_once_and_in_order() {
        for n in SIZES {
            let squares: Vec<usize> = (0..n).map(|i| i * i).collect();
            assert_eq!(map(n, |i| i * i), squares);
            assert_eq!(map_rows(n, |i| vec![i * i]).concat(), squares);
            assert_eq!(map_by(n, 100, |i| i * i), squares);
            assert_eq!(try_map(n, |i| Ok::<_, ()>(i * i)), Ok(squares.clone()));
            let mut values = vec![0; n];
            set(&mut values, |i| i * i);
            assert_eq!(values, squares);
            for_each_piece_mut(&mut values, 100, |first, piece| {
                assert!(first % 100 == 0 && !piece.is_empty() && piece.len() <= 100);
                piece.iter_mut().for_each(|v| *v += first);
            });
            assert!((0..n).all(|i| values[i] == i * i + i / 100 * 100));
            assert_eq!(sum(n, |i| i), n * n.saturating_sub(1) / 2);
            let seen = fold(n, |rows| vec![rows], |a, b| [a, b].concat()).unwrap_or_default();
            assert!(seen.windows(2).all(|w| w[0].end == w[1].start));
            assert_eq!(seen.last().map_or(0, |rows| rows.end), n);
            let taken = AtomicUsize::new(0);
            for_each_of((0..n).map(|i| vec![i]).collect(), |own| {
                taken.fetch_add(own[0], Ordering::Relaxed);
            });
            assert_eq!(taken.into_inner(), n * n.saturating_sub(1) / 2);
        }
    }

    #[test]
    fn the_first_error_of_several() {
        for n in SIZES {
            let mut values = vec![0; n];
            let fails = |i: usize, from: usize| if i >= from && i % 3 == from % 3 { Err(i) } else { Ok(()) };
            for from in [0, n / 2, n.saturating_sub(1), n] {
                let expected = if from < n { Err(from) } else { Ok(()) };
                assert_eq!(try_map(n, |i| fails(i, from)).map(|_| ()), expected);
                let done = try_for_each_piece_mut(&mut values, 100, |first, piece| {
                    (first..).zip(piece).try_for_each(|(i, value)| {
                        *value = i;
                        fails(i, from)
                    })
                });
                assert_eq!(done, expected);
                assert!((0..from).all(|i| values[i] == i));
            }
        }
    }

    #[test]
    fn the_first_of_several() {
        for n in SIZES {
            assert!(all(n, |i| i < n) && !any(n, |i| i >= n));
            assert_eq!(first(n, |_| false), None);
            assert_eq!(first(n, |i| i % 1000 == 999), (n >= 1000).then_some(999));
            for last in n.saturating_sub(2)..n {
                assert_eq!(first(n, |i| i >= last), Some(last));
                assert!(!all(n, |i| i != last) && any(n, |i| i == last));
            }
        }
    }
}
