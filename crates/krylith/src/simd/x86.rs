//! AVX-512 and AVX2.

use super::{Lanes, Simd};
use std::arch::x86_64::*;

/// AVX-512 F and VL.
#[derive(Clone, Copy)]
pub(crate) struct Avx512;

impl Simd for Avx512 {
    type Pack = __m512d;

    #[inline(always)]
    unsafe fn splat(a: f64) -> __m512d {
        // SAFETY: by the caller's promise.
        unsafe { _mm512_set1_pd(a) }
    }

    #[inline(always)]
    unsafe fn add(a: __m512d, b: __m512d) -> __m512d {
        // SAFETY: by the caller's promise.
        unsafe { _mm512_add_pd(a, b) }
    }

    #[inline(always)]
    unsafe fn sub(a: __m512d, b: __m512d) -> __m512d {
        // SAFETY: by the caller's promise.
        unsafe { _mm512_sub_pd(a, b) }
    }

    #[inline(always)]
    unsafe fn mul(a: __m512d, b: __m512d) -> __m512d {
        // SAFETY: by the caller's promise.
        unsafe { _mm512_mul_pd(a, b) }
    }
}

impl Lanes for Avx512 {
    #[inline(always)]
    fn prefetch<T>(at: *const T) {
        // SAFETY: a hint: nothing is read; every processor of this kind has it.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) }
    }

    #[inline(always)]
    unsafe fn load(from: *const f64) -> __m512d {
        // SAFETY: by the caller's promise.
        unsafe { _mm512_loadu_pd(from) }
    }

    #[inline(always)]
    unsafe fn load_some(mask: u8, from: *const f64) -> __m512d {
        // SAFETY: memory and instructions by the caller's promise; a masked load touches the lanes in the mask only.
        unsafe { _mm512_maskz_loadu_pd(mask, from) }
    }

    #[inline(always)]
    unsafe fn load_two(of_a: u8, a: *const f64, of_b: u8, b: *const f64) -> __m512d {
        // SAFETY: as above.
        unsafe { _mm512_mask_loadu_pd(_mm512_maskz_loadu_pd(of_b, b), of_a, a) }
    }

    #[inline(always)]
    unsafe fn keep(mask: u8, pack: __m512d) -> __m512d {
        // SAFETY: by the caller's promise.
        unsafe { _mm512_maskz_mov_pd(mask, pack) }
    }

    #[inline(always)]
    unsafe fn store(to: *mut f64, pack: __m512d) {
        // SAFETY: by the caller's promise.
        unsafe { _mm512_storeu_pd(to, pack) }
    }

    #[inline(always)]
    unsafe fn div(a: __m512d, b: __m512d) -> __m512d {
        // SAFETY: by the caller's promise.
        unsafe { _mm512_div_pd(a, b) }
    }

    #[inline(always)]
    unsafe fn larger(a: __m512d, b: __m512d) -> __m512d {
        // SAFETY: by the caller's promise. Unless the first number is larger the second is taken.
        unsafe { _mm512_max_pd(_mm512_abs_pd(b), a) }
    }

    #[inline(always)]
    unsafe fn sum(pack: __m512d) -> f64 {
        // SAFETY: by the caller's promise.
        unsafe { Avx2::sum([_mm512_castpd512_pd256(pack), _mm512_extractf64x4_pd::<1>(pack)]) }
    }

    #[inline(always)]
    unsafe fn load_f32(from: *const f32) -> __m512d {
        // SAFETY: by the caller's promise.
        unsafe { _mm512_cvtps_pd(_mm256_loadu_ps(from)) }
    }

    #[inline(always)]
    unsafe fn load_some_f32(mask: u8, from: *const f32) -> __m512d {
        // SAFETY: memory and instructions by the caller's promise; a masked load touches the lanes in the mask only.
        unsafe { _mm512_cvtps_pd(_mm256_maskz_loadu_ps(mask, from)) }
    }

    #[inline(always)]
    unsafe fn store_f32(to: *mut f32, pack: __m512d) {
        // SAFETY: by the caller's promise.
        unsafe { _mm256_storeu_ps(to, _mm512_cvtpd_ps(pack)) }
    }
}

/// AVX2: two times four lanes.
#[derive(Clone, Copy)]
pub(crate) struct Avx2;

/// Bit l of the number as the sign of lane l.
const MASKS: [[i64; 4]; 16] = {
    let mut masks = [[0i64; 4]; 16];
    let mut m = 0;
    while m < 16 {
        let mut l = 0;
        while l < 4 {
            masks[m][l] = -((m as i64 >> l) & 1);
            l += 1;
        }
        m += 1;
    }
    masks
};

/// Bit l of the number as the sign of lane l, for lanes of 32 bits.
const MASKS_32: [[i32; 4]; 16] = {
    let mut masks = [[0i32; 4]; 16];
    let mut m = 0;
    while m < 16 {
        let mut l = 0;
        while l < 4 {
            masks[m][l] = MASKS[m][l] as i32;
            l += 1;
        }
        m += 1;
    }
    masks
};

impl Simd for Avx2 {
    type Pack = [__m256d; 2];

    #[inline(always)]
    unsafe fn splat(a: f64) -> Self::Pack {
        // SAFETY: by the caller's promise.
        unsafe { [_mm256_set1_pd(a); 2] }
    }

    #[inline(always)]
    unsafe fn add(a: Self::Pack, b: Self::Pack) -> Self::Pack {
        // SAFETY: by the caller's promise.
        unsafe { [_mm256_add_pd(a[0], b[0]), _mm256_add_pd(a[1], b[1])] }
    }

    #[inline(always)]
    unsafe fn sub(a: Self::Pack, b: Self::Pack) -> Self::Pack {
        // SAFETY: by the caller's promise.
        unsafe { [_mm256_sub_pd(a[0], b[0]), _mm256_sub_pd(a[1], b[1])] }
    }

    #[inline(always)]
    unsafe fn mul(a: Self::Pack, b: Self::Pack) -> Self::Pack {
        // SAFETY: by the caller's promise.
        unsafe { [_mm256_mul_pd(a[0], b[0]), _mm256_mul_pd(a[1], b[1])] }
    }
}

impl Lanes for Avx2 {
    #[inline(always)]
    fn prefetch<T>(at: *const T) {
        // SAFETY: a hint: nothing is read; every processor of this kind has it.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) }
    }

    #[inline(always)]
    unsafe fn load(from: *const f64) -> Self::Pack {
        // SAFETY: by the caller's promise.
        unsafe { [_mm256_loadu_pd(from), _mm256_loadu_pd(from.add(4))] }
    }

    #[inline(always)]
    unsafe fn load_some(mask: u8, from: *const f64) -> Self::Pack {
        if mask == u8::MAX {
            // SAFETY: by the caller's promise.
            return unsafe { Self::load(from) };
        }
        // SAFETY: by the caller's promise.
        unsafe {
            let low = _mm256_loadu_si256(MASKS[usize::from(mask & 15)].as_ptr().cast());
            let high = _mm256_loadu_si256(MASKS[usize::from(mask >> 4)].as_ptr().cast());
            [_mm256_maskload_pd(from, low), _mm256_maskload_pd(from.wrapping_add(4), high)]
        }
    }

    #[inline(always)]
    unsafe fn load_two(of_a: u8, a: *const f64, of_b: u8, b: *const f64) -> Self::Pack {
        // SAFETY: by the caller's promise; of each pair of halves the lanes that are not read are zero.
        unsafe {
            let (b, a) = (Self::load_some(of_b, b), Self::load_some(of_a, a));
            [_mm256_or_pd(a[0], b[0]), _mm256_or_pd(a[1], b[1])]
        }
    }

    #[inline(always)]
    unsafe fn keep(mask: u8, pack: Self::Pack) -> Self::Pack {
        // SAFETY: by the caller's promise.
        unsafe {
            let low = _mm256_loadu_pd(MASKS[usize::from(mask & 15)].as_ptr().cast());
            let high = _mm256_loadu_pd(MASKS[usize::from(mask >> 4)].as_ptr().cast());
            [_mm256_and_pd(pack[0], low), _mm256_and_pd(pack[1], high)]
        }
    }

    #[inline(always)]
    unsafe fn store(to: *mut f64, pack: Self::Pack) {
        // SAFETY: by the caller's promise.
        unsafe {
            _mm256_storeu_pd(to, pack[0]);
            _mm256_storeu_pd(to.add(4), pack[1]);
        }
    }

    #[inline(always)]
    unsafe fn div(a: Self::Pack, b: Self::Pack) -> Self::Pack {
        // SAFETY: by the caller's promise.
        unsafe { [_mm256_div_pd(a[0], b[0]), _mm256_div_pd(a[1], b[1])] }
    }

    #[inline(always)]
    unsafe fn larger(a: Self::Pack, b: Self::Pack) -> Self::Pack {
        // SAFETY: by the caller's promise. Unless the first number is larger the second is taken.
        unsafe {
            let sign = _mm256_set1_pd(-0.0);
            let size = [_mm256_andnot_pd(sign, b[0]), _mm256_andnot_pd(sign, b[1])];
            [_mm256_max_pd(size[0], a[0]), _mm256_max_pd(size[1], a[1])]
        }
    }

    #[inline(always)]
    unsafe fn sum(pack: Self::Pack) -> f64 {
        // SAFETY: by the caller's promise.
        unsafe {
            let four = _mm256_add_pd(pack[0], pack[1]);
            let two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd::<1>(four));
            _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)))
        }
    }

    #[inline(always)]
    unsafe fn load_f32(from: *const f32) -> Self::Pack {
        // SAFETY: by the caller's promise.
        unsafe { [_mm256_cvtps_pd(_mm_loadu_ps(from)), _mm256_cvtps_pd(_mm_loadu_ps(from.add(4)))] }
    }

    #[inline(always)]
    unsafe fn load_some_f32(mask: u8, from: *const f32) -> Self::Pack {
        if mask == u8::MAX {
            // SAFETY: by the caller's promise.
            return unsafe { Self::load_f32(from) };
        }
        // SAFETY: memory by the caller's promise; a masked load touches the lanes in the mask only.
        unsafe {
            let low = _mm_loadu_si128(MASKS_32[usize::from(mask & 15)].as_ptr().cast());
            let high = _mm_loadu_si128(MASKS_32[usize::from(mask >> 4)].as_ptr().cast());
            let (a, b) = (_mm_maskload_ps(from, low), _mm_maskload_ps(from.wrapping_add(4), high));
            [_mm256_cvtps_pd(a), _mm256_cvtps_pd(b)]
        }
    }

    #[inline(always)]
    unsafe fn store_f32(to: *mut f32, pack: Self::Pack) {
        // SAFETY: by the caller's promise.
        unsafe {
            _mm_storeu_ps(to, _mm256_cvtpd_ps(pack[0]));
            _mm_storeu_ps(to.add(4), _mm256_cvtpd_ps(pack[1]));
        }
    }
}
