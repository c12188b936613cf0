//! One slice, written by several threads at places that the algorithm keeps apart.
#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::ops::Range;

/// A mutable slice that members of a team share: each writes places that no other member reads or writes at the same time.
pub(crate) struct DisjointSlice<'a, T> {
    start: *mut T,
    len: usize,
    slice: PhantomData<&'a mut [T]>,
}

// SAFETY: every access through a shared reference is unsafe, and its contract keeps places apart; `T: Send` lets values cross threads.
unsafe impl<T: Send> Sync for DisjointSlice<'_, T> {}

impl<'a, T> DisjointSlice<'a, T> {
    pub(crate) fn new(slice: &'a mut [T]) -> Self {
        DisjointSlice { start: slice.as_mut_ptr(), len: slice.len(), slice: PhantomData }
    }

    /// Whether there is nothing to write.
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The first place, for kernels that compute addresses themselves.
    #[inline]
    pub(crate) fn as_mut_ptr(&self) -> *mut T {
        self.start
    }

    /// The piece at `range`, to write.
    ///
    /// # Safety
    /// While the piece is in use, nobody else takes one that overlaps it.
    #[inline]
    #[expect(clippy::mut_from_ref, reason = "the caller keeps pieces apart")]
    pub(crate) unsafe fn get(&self, range: Range<usize>) -> &mut [T] {
        assert!(range.start <= range.end && range.end <= self.len);
        // SAFETY: in bounds by the line above, disjoint from other pieces by the caller's promise; the borrow of the slice
        // is held by `self`.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(range.start), range.len()) }
    }

    /// The piece at `range`, to read.
    ///
    /// # Safety
    /// While the piece is in use, nobody writes within it.
    #[inline]
    pub(crate) unsafe fn get_shared(&self, range: Range<usize>) -> &[T] {
        assert!(range.start <= range.end && range.end <= self.len);
        // SAFETY: in bounds by the line above, not written by the caller's promise.
        unsafe { std::slice::from_raw_parts(self.start.add(range.start), range.len()) }
    }

    /// The entry at `position`.
    ///
    /// # Safety
    /// `position` is within the slice, and whoever writes it is ordered before or after this call.
    #[inline]
    pub(crate) unsafe fn read(&self, position: usize) -> T
    where
        T: Copy,
    {
        debug_assert!(position < self.len);
        // SAFETY: by the caller's promise.
        unsafe { *self.start.add(position) }
    }

    /// Stores `value` at `position`; what was there is not dropped.
    ///
    /// # Safety
    /// `position` is within the slice, and whoever reads or writes it is ordered before or after this call.
    #[inline]
    pub(crate) unsafe fn write(&self, position: usize, value: T) {
        debug_assert!(position < self.len);
        // SAFETY: by the caller's promise; the borrow of the slice is held by `self`.
        unsafe { self.start.add(position).write(value) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rayon::prelude::*;

    #[test]
    fn every_position_is_written_once() {
        let mut v = vec![0u32; 10_000];
        let s = DisjointSlice::new(&mut v);
        (0..10_000usize).into_par_iter().for_each(|i| {
            // SAFETY: i ↦ 7 i mod 10,000 is a permutation of the positions.
            unsafe { s.write(7 * i % 10_000, i as u32) }
        });
        assert!((0..10_000).all(|i| v[7 * i % 10_000] == i as u32));
    }
}
