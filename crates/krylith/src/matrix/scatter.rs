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
