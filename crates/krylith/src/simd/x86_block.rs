//! Rows of blocks in AVX-512 and AVX2: for B from 5 in one register of eight or two of four, up to 4 in one of four; and pairs.

use super::{Avx2, Avx512, BlockRow, Pairs, Simd};
use std::arch::x86_64::*;

/// AVX2, one register of four numbers for B up to 4, or of two.
#[derive(Clone, Copy)]
pub(crate) struct Avx2Half;

/// The first B lanes, zero after them.
#[inline(always)]
unsafe fn first<const B: usize>(a: __m256d) -> __m256d {
    // SAFETY: the caller's processor has AVX.
    unsafe {
        match B {
            1 => _mm256_blend_pd::<0b1110>(a, _mm256_setzero_pd()),
            2 => _mm256_blend_pd::<0b1100>(a, _mm256_setzero_pd()),
            3 => _mm256_blend_pd::<0b1000>(a, _mm256_setzero_pd()),
            _ => a,
        }
    }
}

/// Up to four numbers in pieces of 4, 2 and 1; zero after them.
#[inline(always)]
unsafe fn load_pieces(count: usize, from: *const f64) -> __m256d {
    // SAFETY: the caller may read `count` numbers and has AVX.
    unsafe {
        match count {
            0 => _mm256_setzero_pd(),
            1 => _mm256_zextpd128_pd256(_mm_load_sd(from)),
            2 => _mm256_zextpd128_pd256(_mm_loadu_pd(from)),
            3 => _mm256_set_m128d(_mm_load_sd(from.add(2)), _mm_loadu_pd(from)),
            _ => _mm256_loadu_pd(from),
        }
    }
}

#[inline(always)]
unsafe fn store_pieces(count: usize, to: *mut f64, a: __m256d) {
    // SAFETY: the caller may write `count` numbers and has AVX.
    unsafe {
        match count {
            0 => {}
            1 => _mm_store_sd(to, _mm256_castpd256_pd128(a)),
            2 => _mm_storeu_pd(to, _mm256_castpd256_pd128(a)),
            3 => {
                _mm_storeu_pd(to, _mm256_castpd256_pd128(a));
                _mm_store_sd(to.add(2), _mm256_extractf128_pd::<1>(a));
            }
            _ => _mm256_storeu_pd(to, a),
        }
    }
}

/// (0+2) + (1+3) of two rows.
#[inline(always)]
unsafe fn sums_of_two(a: __m256d, b: __m256d) -> __m128d {
    // SAFETY: the caller's processor has AVX.
    unsafe {
        let a = _mm_add_pd(_mm256_castpd256_pd128(a), _mm256_extractf128_pd::<1>(a));
        let b = _mm_add_pd(_mm256_castpd256_pd128(b), _mm256_extractf128_pd::<1>(b));
        _mm_add_pd(_mm_unpacklo_pd(a, b), _mm_unpackhi_pd(a, b))
    }
}

/// (0+2) + (1+3) of four rows.
#[inline(always)]
unsafe fn sums_of_four(rows: [__m256d; 4]) -> __m256d {
    // SAFETY: the caller's processor has AVX.
    unsafe {
        let low = sums_of_two(rows[0], rows[1]);
        let high = sums_of_two(rows[2], rows[3]);
        _mm256_set_m128d(high, low)
    }
}

/// Row r, or zeros past the last row.
#[inline(always)]
unsafe fn row<const B: usize>(rows: &[__m256d; B], r: usize) -> __m256d {
    // SAFETY: the caller's processor has AVX.
    if r < B { rows[r] } else { unsafe { _mm256_setzero_pd() } }
}

#[inline(always)]
unsafe fn sums_from<const B: usize>(rows: &[__m256d; B], start: usize) -> __m256d {
    // SAFETY: the caller's processor has AVX.
    unsafe {
        sums_of_four([row(rows, start), row(rows, start + 1), row(rows, start + 2), row(rows, start + 3)])
    }
}

impl Simd for Avx2Half {
    type Pack = __m256d;

    #[inline(always)]
    unsafe fn splat(a: f64) -> __m256d {
        // SAFETY: by the caller's promise.
        unsafe { _mm256_set1_pd(a) }
    }

    #[inline(always)]
    unsafe fn add(a: __m256d, b: __m256d) -> __m256d {
        // SAFETY: by the caller's promise.
        unsafe { _mm256_add_pd(a, b) }
    }

    #[inline(always)]
    unsafe fn sub(a: __m256d, b: __m256d) -> __m256d {
        // SAFETY: by the caller's promise.
        unsafe { _mm256_sub_pd(a, b) }
    }

    #[inline(always)]
    unsafe fn mul(a: __m256d, b: __m256d) -> __m256d {
        // SAFETY: by the caller's promise.
        unsafe { _mm256_mul_pd(a, b) }
    }
}

impl Pairs for Avx2Half {
    type Pair = __m128d;

    #[inline(always)]
    unsafe fn zero() -> __m128d {
        // SAFETY: by the caller's promise.
        unsafe { _mm_setzero_pd() }
    }

    #[inline(always)]
    unsafe fn products(columns: *const u32, values: *const f64, x: *const f64) -> __m128d {
        // SAFETY: by the caller's promise. Both columns are read at once.
        unsafe {
            let both = columns.cast::<u64>().read_unaligned();
            let low = _mm_load_sd(x.add((both & u64::from(u32::MAX)) as usize));
            _mm_mul_pd(_mm_loadu_pd(values), _mm_loadh_pd(low, x.add((both >> 32) as usize)))
        }
    }

    #[inline(always)]
    unsafe fn product(columns: *const u32, values: *const f64, x: *const f64) -> __m128d {
        // SAFETY: by the caller's promise; the second lane is that of the first factor, 0.
        unsafe { _mm_mul_sd(_mm_load_sd(values), _mm_load_sd(x.add(*columns as usize))) }
    }

    #[inline(always)]
    unsafe fn add_pairs(a: __m128d, b: __m128d) -> __m128d {
        // SAFETY: by the caller's promise.
        unsafe { _mm_add_pd(a, b) }
    }

    #[inline(always)]
    unsafe fn keep_lanes(ones: *const u64, pair: __m128d) -> __m128d {
        // SAFETY: by the caller's promise.
        unsafe { _mm_and_pd(pair, _mm_loadu_pd(ones.cast())) }
    }

    #[inline(always)]
    unsafe fn store_sums(to: *mut f64, a: __m128d, b: __m128d) {
        // SAFETY: by the caller's promise.
        unsafe {
            let sums = _mm_add_pd(_mm_unpacklo_pd(a, b), _mm_unpackhi_pd(a, b));
            _mm_storeu_pd(to, _mm_add_pd(sums, _mm_setzero_pd()));
        }
    }

    #[inline(always)]
    fn prefetch<T>(at: *const T) {
        // SAFETY: a hint: nothing is read; every processor of this kind has it.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) }
    }
}

impl BlockRow for Avx2Half {
    #[inline(always)]
    unsafe fn load_wide<const B: usize>(from: *const f64) -> __m256d {
        // SAFETY: by the caller's promise.
        unsafe { _mm256_loadu_pd(from) }
    }

    #[inline(always)]
    unsafe fn load_row<const B: usize>(from: *const f64) -> __m256d {
        // SAFETY: by the caller's promise.
        unsafe { load_pieces(B, from) }
    }

    #[inline(always)]
    unsafe fn store_row<const B: usize>(to: *mut f64, pack: __m256d) {
        // SAFETY: by the caller's promise.
        unsafe { store_pieces(B, to, pack) }
    }

    #[inline(always)]
    unsafe fn sums<const B: usize>(rows: [__m256d; B]) -> __m256d {
        // SAFETY: by the caller's promise.
        unsafe {
            let mut rows = rows;
            for r in 0..B {
                rows[r] = first::<B>(rows[r]);
            }
            sums_from(&rows, 0)
        }
    }
}

impl BlockRow for Avx2 {
    #[inline(always)]
    unsafe fn load_wide<const B: usize>(from: *const f64) -> [__m256d; 2] {
        // SAFETY: by the caller's promise.
        unsafe { [_mm256_loadu_pd(from), _mm256_loadu_pd(from.add(4))] }
    }

    #[inline(always)]
    unsafe fn load_row<const B: usize>(from: *const f64) -> [__m256d; 2] {
        // SAFETY: by the caller's promise.
        unsafe { [_mm256_loadu_pd(from), load_pieces(B.saturating_sub(4), from.add(4))] }
    }

    #[inline(always)]
    unsafe fn store_row<const B: usize>(to: *mut f64, pack: [__m256d; 2]) {
        // SAFETY: by the caller's promise.
        unsafe {
            _mm256_storeu_pd(to, pack[0]);
            store_pieces(B.saturating_sub(4), to.add(4), pack[1]);
        }
    }

    #[inline(always)]
    unsafe fn sums<const B: usize>(rows: [[__m256d; 2]; B]) -> [__m256d; 2] {
        // SAFETY: by the caller's promise.
        unsafe {
            let mut four = [_mm256_setzero_pd(); B];
            for r in 0..B {
                let [low, high] = rows[r];
                let high = match B {
                    5 => first::<1>(high),
                    6 => first::<2>(high),
                    7 => first::<3>(high),
                    _ => high,
                };
                four[r] = _mm256_add_pd(low, high);
            }
            [sums_from(&four, 0), sums_from(&four, 4)]
        }
    }
}

impl BlockRow for Avx512 {
    #[inline(always)]
    unsafe fn load_wide<const B: usize>(from: *const f64) -> __m512d {
        // SAFETY: by the caller's promise.
        unsafe { _mm512_loadu_pd(from) }
    }

    #[inline(always)]
    unsafe fn load_row<const B: usize>(from: *const f64) -> __m512d {
        // SAFETY: by the caller's promise.
        unsafe {
            if B == 8 {
                return _mm512_loadu_pd(from);
            }
            let low = _mm512_castpd256_pd512(_mm256_loadu_pd(from));
            _mm512_insertf64x4::<1>(low, load_pieces(B.saturating_sub(4), from.add(4)))
        }
    }

    #[inline(always)]
    unsafe fn store_row<const B: usize>(to: *mut f64, pack: __m512d) {
        // SAFETY: by the caller's promise.
        unsafe {
            if B == 8 {
                return _mm512_storeu_pd(to, pack);
            }
            _mm256_storeu_pd(to, _mm512_castpd512_pd256(pack));
            store_pieces(B.saturating_sub(4), to.add(4), _mm512_extractf64x4_pd::<1>(pack));
        }
    }

    #[inline(always)]
    unsafe fn sums<const B: usize>(rows: [__m512d; B]) -> __m512d {
        // SAFETY: by the caller's promise.
        unsafe {
            let mut halves = [[_mm256_setzero_pd(); 2]; B];
            for r in 0..B {
                halves[r] = [_mm512_castpd512_pd256(rows[r]), _mm512_extractf64x4_pd::<1>(rows[r])];
            }
            let [low, high] = Avx2::sums::<B>(halves);
            _mm512_insertf64x4::<1>(_mm512_castpd256_pd512(low), high)
        }
    }
}
