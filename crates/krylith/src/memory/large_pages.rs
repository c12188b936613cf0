//! Large arrays on large pages.
//!
//! Kernels stream through arrays of hundreds of megabytes. With pages of 4 KB a processor looks up a page every 512 numbers, and in
//! a virtual machine every such look-up walks two tables; and the first touch of each page is a trap into the system. Linux gives
//! pages of 2 MB to whoever asks for them, if it may ([`enabled`] is `madvise` or `always`). Asking changes nothing else: where
//! the system does not know the request, or refuses it, pages stay small.
//!
//! [`enabled`]: https://docs.kernel.org/admin-guide/mm/transhuge.html
#![allow(unsafe_code)]

use crate::error::MatrixError;

/// Arrays smaller than this stay as they are.
const LEAST: usize = 4 << 20;

/// `n` zeros, on large pages if there are many and the system grants it. No page is touched yet.
pub(crate) fn zeros<T: Copy + Zero>(n: usize) -> Vec<T> {
    let mut x = vec![T::ZERO; n];
    advise_huge_pages(&mut x);
    x
}

/// `n` zeros as [`zeros`] gives them, or `None` if there is no memory for them.
pub(crate) fn try_zeros<T: Copy + Zero>(n: usize) -> Option<Vec<T>> {
    has_room::<T>(n).then(|| zeros(n))
}

/// `n` zeros as [`zeros`] gives them, or an error if there is no memory for them.
pub(crate) fn zeros_or_error<T: Copy + Zero>(n: usize) -> Result<Vec<T>, MatrixError> {
    let bytes = (n as u64).saturating_mul(size_of::<T>() as u64);
    try_zeros(n).ok_or(MatrixError::OutOfMemory { bytes })
}

/// Whether there is memory for `n` items: `vec!` ends the process if there is not.
pub(crate) fn has_room<T>(n: usize) -> bool {
    let mut items = Vec::<T>::new();
    let granted = items.try_reserve_exact(n).is_ok();
    // Otherwise the compiler may leave the allocation out, which nothing uses.
    std::hint::black_box(&mut items);
    granted
}

/// Numbers whose zero is all bits zero, so that the system's fresh pages need not be written.
pub(crate) trait Zero {
    /// 0.
    const ZERO: Self;
}

impl Zero for f64 {
    const ZERO: Self = 0.0;
}

impl Zero for f32 {
    const ZERO: Self = 0.0;
}

impl Zero for u32 {
    const ZERO: Self = 0;
}

impl Zero for u8 {
    const ZERO: Self = 0;
}

/// Asks for large pages under an array; best before it is first touched.
pub(crate) fn advise_huge_pages<T>(x: &mut [T]) {
    #[cfg(target_os = "linux")]
    if size_of_val(x) >= LEAST {
        const PAGE: usize = 4096;
        let start = x.as_mut_ptr() as usize;
        let (first, end) = (start.next_multiple_of(PAGE), (start + size_of_val(x)) / PAGE * PAGE);
        // SAFETY: whole pages within an array that is borrowed mutably; the advice does not change what they hold. If the
        // system refuses it, there is nothing to do.
        unsafe { libc::madvise(first as *mut libc::c_void, end - first, libc::MADV_HUGEPAGE) };
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (x, LEAST);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_are_zeros_of_any_length() {
        for n in [0, 1, 1000, LEAST / 8 - 1, LEAST / 8, LEAST] {
            let mut x: Vec<f64> = zeros(n);
            assert_eq!(x.len(), n);
            assert!(x.iter().all(|&x| x == 0.0));
            x.iter_mut().enumerate().for_each(|(i, x)| *x = i as f64);
            advise_huge_pages(&mut x);
            assert!(x.iter().enumerate().all(|(i, &x)| x == i as f64));
            assert_eq!(try_zeros::<u32>(n).unwrap(), vec![0; n]);
        }
        assert!(try_zeros::<u32>(usize::MAX).is_none());
        assert!(try_zeros::<u8>(usize::MAX / 2).is_none());
    }
}
