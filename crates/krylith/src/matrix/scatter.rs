//! Writing one slice from several threads at positions that the algorithm keeps apart.
#![allow(unsafe_code)]

use std::marker::PhantomData;

/// A mutable slice that many threads may write at distinct positions.
pub(crate) struct Scatter<'a, T> {
    start: *mut T,
    len: usize,
    slice: PhantomData<&'a mut [T]>,
}

// SAFETY: the only access through a shared reference is `write`, whose contract keeps positions apart; `T: Send` lets
// values cross threads.
unsafe impl<T: Send> Sync for Scatter<'_, T> {}

impl<'a, T: Copy> Scatter<'a, T> {
    pub(crate) fn new(slice: &'a mut [T]) -> Self {
        Scatter { start: slice.as_mut_ptr(), len: slice.len(), slice: PhantomData }
    }

    /// Stores `value` at `position`.
    ///
    /// # Safety
    /// `position` is below the slice's length, and no other thread writes it while this `Scatter` lives.
    #[inline]
    pub(crate) unsafe fn write(&self, position: usize, value: T) {
        debug_assert!(position < self.len);
        // SAFETY: in bounds and not written elsewhere by the caller's promise; the borrow of the slice is held by `self`.
        unsafe { self.start.add(position).write(value) }
    }
}

/// A mutable slice that many threads may take disjoint pieces of.
pub(crate) struct Parts<'a, T>(Scatter<'a, T>);

impl<'a, T: Copy> Parts<'a, T> {
    pub(crate) fn new(slice: &'a mut [T]) -> Self {
        Parts(Scatter::new(slice))
    }

    /// The piece at `range`.
    ///
    /// # Safety
    /// While the piece is in use, nobody else takes one that overlaps it.
    #[inline]
    #[allow(clippy::mut_from_ref)]
    pub(crate) unsafe fn get(&self, range: std::ops::Range<usize>) -> &mut [T] {
        assert!(range.start <= range.end && range.end <= self.0.len);
        // SAFETY: in bounds by the line above, disjoint from other pieces by the caller's promise; the borrow of the slice
        // is held by `self`.
        unsafe { std::slice::from_raw_parts_mut(self.0.start.add(range.start), range.len()) }
    }

    /// Whether there is nothing to write.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.len == 0
    }

    /// The piece at `range`, to read.
    ///
    /// # Safety
    /// While the piece is in use, nobody writes within it.
    #[inline]
    pub(crate) unsafe fn get_shared(&self, range: std::ops::Range<usize>) -> &[T] {
        assert!(range.start <= range.end && range.end <= self.0.len);
        // SAFETY: in bounds by the line above, not written by the caller's promise.
        unsafe { std::slice::from_raw_parts(self.0.start.add(range.start), range.len()) }
    }

    /// The entry at `position`, which may be written by others before or after, but not meanwhile.
    ///
    /// # Safety
    /// `position` is within the slice, and whoever writes it is ordered before or after this call.
    #[inline]
    pub(crate) unsafe fn read(&self, position: usize) -> T {
        debug_assert!(position < self.0.len);
        // SAFETY: by the caller's promise.
        unsafe { *self.0.start.add(position) }
    }

    /// Stores `value` at `position`.
    ///
    /// # Safety
    /// `position` is within the slice, and whoever reads or writes it is ordered before or after this call.
    #[inline]
    pub(crate) unsafe fn write(&self, position: usize, value: T) {
        // SAFETY: by the caller's promise.
        unsafe { self.0.write(position, value) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rayon::prelude::*;

    #[test]
    fn every_position_is_written_once() {
        let mut v = vec![0u32; 10_000];
        let s = Scatter::new(&mut v);
        (0..10_000usize).into_par_iter().for_each(|i| {
            // SAFETY: i ↦ 7 i mod 10,000 is a permutation of the positions.
            unsafe { s.write(7 * i % 10_000, i as u32) }
        });
        assert!((0..10_000).all(|i| v[7 * i % 10_000] == i as u32));
    }
}
