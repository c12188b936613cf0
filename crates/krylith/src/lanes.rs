//! Eight numbers at once, on three kinds of processors.
//!
//! Every operation rounds each lane by itself and none is fused, so all three give the same bits. Methods are inlined into
//! functions that are compiled for the instruction set; see `kernels`.
#![allow(unsafe_code)]

/// Numbers of a pack.
pub(crate) const LANES: usize = 8;

/// An instruction set: eight lanes of `f64`.
pub(crate) trait Lanes: Copy {
    /// Eight numbers.
    type Pack: Copy;

    /// Eight numbers from memory.
    ///
    /// # Safety
    /// `from` may be read for eight numbers; the processor has the instructions.
    unsafe fn load(from: *const f64) -> Self::Pack;

    /// Lane l from `from + l` where bit l of the mask is set, zero elsewhere; nothing else is touched.
    ///
    /// # Safety
    /// The lanes in the mask may be read; the processor has the instructions.
    unsafe fn load_some(mask: u8, from: *const f64) -> Self::Pack;

    /// Lanes in `of_a` from `a`, those in `of_b`, which are others, from `b`, zero elsewhere; nothing else is touched.
    ///
    /// # Safety
    /// Those lanes may be read; the processor has the instructions.
    unsafe fn load_two(of_a: u8, a: *const f64, of_b: u8, b: *const f64) -> Self::Pack;

    /// The lanes in the mask; zero elsewhere.
    ///
    /// # Safety
    /// The processor has the instructions.
    unsafe fn keep(mask: u8, pack: Self::Pack) -> Self::Pack;

    /// Eight numbers to memory.
    ///
    /// # Safety
    /// `to` may be written for eight numbers; the processor has the instructions.
    unsafe fn store(to: *mut f64, pack: Self::Pack);

    /// # Safety
    /// The processor has the instructions.
    unsafe fn add(a: Self::Pack, b: Self::Pack) -> Self::Pack;

    /// # Safety
    /// The processor has the instructions.
    unsafe fn sub(a: Self::Pack, b: Self::Pack) -> Self::Pack;

    /// # Safety
    /// The processor has the instructions.
    unsafe fn mul(a: Self::Pack, b: Self::Pack) -> Self::Pack;

    /// # Safety
    /// The processor has the instructions.
    unsafe fn div(a: Self::Pack, b: Self::Pack) -> Self::Pack;

    /// The larger of a and |b|; a where b is not a number.
    ///
    /// # Safety
    /// The processor has the instructions.
    unsafe fn larger(a: Self::Pack, b: Self::Pack) -> Self::Pack;

    /// One number in all lanes.
    ///
    /// # Safety
    /// The processor has the instructions.
    unsafe fn splat(a: f64) -> Self::Pack;

    /// Eight narrow numbers from memory, widened.
    ///
    /// # Safety
    /// As [`load`](Self::load).
    unsafe fn load_narrow(from: *const f32) -> Self::Pack;

    /// Narrow numbers of the lanes in the mask, widened.
    ///
    /// # Safety
    /// As [`load_some`](Self::load_some).
    unsafe fn load_some_narrow(mask: u8, from: *const f32) -> Self::Pack;

    /// Narrow numbers of two places, widened.
    ///
    /// # Safety
    /// As [`load_two`](Self::load_two).
    #[inline(always)]
    unsafe fn load_two_narrow(of_a: u8, a: *const f32, of_b: u8, b: *const f32) -> Self::Pack {
        // SAFETY: by the caller's promise. Lanes outside of a mask are zero, so that the sum is the one that is there.
        unsafe { Self::add(Self::load_some_narrow(of_a, a), Self::load_some_narrow(of_b, b)) }
    }

    /// Asks for the cache line at an address, which need not exist.
    #[inline(always)]
    fn prefetch<T>(_: *const T) {}

    /// Eight numbers to memory, rounded to the nearest narrow ones.
    ///
    /// # Safety
    /// As [`store`](Self::store).
    unsafe fn store_narrow(to: *mut f32, pack: Self::Pack);
}

/// How the entries of a factor are stored: `f64` or `f32`.
pub trait Stored: sealed::Access {}

impl Stored for f64 {}
impl Stored for f32 {}

pub(crate) mod sealed {
    use super::Lanes;

    /// Access to stored numbers through lanes.
    #[allow(private_interfaces, private_bounds, reason = "nobody outside can name or implement this")]
    pub trait Access: crate::scalar::Real + crate::huge::Zero {
        /// # Safety
        /// As `Lanes::load`.
        unsafe fn load<L: Lanes>(from: *const Self) -> L::Pack;
        /// # Safety
        /// As `Lanes::load_some`.
        unsafe fn load_some<L: Lanes>(mask: u8, from: *const Self) -> L::Pack;
        /// # Safety
        /// As `Lanes::load_two`.
        unsafe fn load_two<L: Lanes>(of_a: u8, a: *const Self, of_b: u8, b: *const Self) -> L::Pack;
        /// # Safety
        /// As `Lanes::store`.
        unsafe fn store<L: Lanes>(to: *mut Self, pack: L::Pack);
    }
}

macro_rules! access {
    ($t:ty, $load:ident, $load_some:ident, $load_two:ident, $store:ident) => {
        #[allow(private_interfaces, private_bounds, reason = "as above")]
        impl sealed::Access for $t {
            #[inline(always)]
            unsafe fn load<L: Lanes>(from: *const $t) -> L::Pack {
                // SAFETY: by the caller's promise.
                unsafe { L::$load(from) }
            }

            #[inline(always)]
            unsafe fn load_some<L: Lanes>(mask: u8, from: *const $t) -> L::Pack {
                // SAFETY: by the caller's promise.
                unsafe { L::$load_some(mask, from) }
            }

            #[inline(always)]
            unsafe fn load_two<L: Lanes>(of_a: u8, a: *const $t, of_b: u8, b: *const $t) -> L::Pack {
                // SAFETY: by the caller's promise.
                unsafe { L::$load_two(of_a, a, of_b, b) }
            }

            #[inline(always)]
            unsafe fn store<L: Lanes>(to: *mut $t, pack: L::Pack) {
                // SAFETY: by the caller's promise.
                unsafe { L::$store(to, pack) }
            }
        }
    };
}

access!(f64, load, load_some, load_two, store);
access!(f32, load_narrow, load_some_narrow, load_two_narrow, store_narrow);

/// Any processor.
#[derive(Clone, Copy)]
pub(crate) struct Plain;

#[inline(always)]
fn each(f: impl Fn(usize) -> f64) -> [f64; LANES] {
    std::array::from_fn(f)
}

impl Lanes for Plain {
    type Pack = [f64; LANES];

    #[inline(always)]
    unsafe fn load(from: *const f64) -> Self::Pack {
        // SAFETY: by the caller's promise.
        unsafe { from.cast::<[f64; LANES]>().read_unaligned() }
    }

    #[inline(always)]
    unsafe fn load_some(mask: u8, from: *const f64) -> Self::Pack {
        if mask == u8::MAX {
            // SAFETY: all lanes may be read.
            return unsafe { Self::load(from) };
        }
        // SAFETY: only lanes in the mask are read; the pointer of the others may be anywhere and is not used.
        each(|l| if mask >> l & 1 == 1 { unsafe { *from.wrapping_add(l) } } else { 0.0 })
    }

    #[inline(always)]
    unsafe fn load_two(of_a: u8, a: *const f64, of_b: u8, b: *const f64) -> Self::Pack {
        each(|l| match (of_a >> l & 1, of_b >> l & 1) {
            // SAFETY: the lane may be read by the caller's promise.
            (1, _) => unsafe { *a.wrapping_add(l) },
            // SAFETY: as above.
            (_, 1) => unsafe { *b.wrapping_add(l) },
            _ => 0.0,
        })
    }

    #[inline(always)]
    unsafe fn keep(mask: u8, pack: Self::Pack) -> Self::Pack {
        each(|l| if mask >> l & 1 == 1 { pack[l] } else { 0.0 })
    }

    #[inline(always)]
    unsafe fn store(to: *mut f64, pack: Self::Pack) {
        // SAFETY: by the caller's promise.
        unsafe { to.cast::<[f64; LANES]>().write_unaligned(pack) }
    }

    #[inline(always)]
    unsafe fn add(a: Self::Pack, b: Self::Pack) -> Self::Pack {
        each(|l| a[l] + b[l])
    }

    #[inline(always)]
    unsafe fn sub(a: Self::Pack, b: Self::Pack) -> Self::Pack {
        each(|l| a[l] - b[l])
    }

    #[inline(always)]
    unsafe fn mul(a: Self::Pack, b: Self::Pack) -> Self::Pack {
        each(|l| a[l] * b[l])
    }

    #[inline(always)]
    unsafe fn div(a: Self::Pack, b: Self::Pack) -> Self::Pack {
        each(|l| a[l] / b[l])
    }

    #[inline(always)]
    unsafe fn larger(a: Self::Pack, b: Self::Pack) -> Self::Pack {
        each(|l| if b[l].abs() > a[l] { b[l].abs() } else { a[l] })
    }

    #[inline(always)]
    unsafe fn splat(a: f64) -> Self::Pack {
        [a; LANES]
    }

    #[inline(always)]
    unsafe fn load_narrow(from: *const f32) -> Self::Pack {
        // SAFETY: by the caller's promise.
        unsafe { from.cast::<[f32; LANES]>().read_unaligned() }.map(f64::from)
    }

    #[inline(always)]
    unsafe fn load_some_narrow(mask: u8, from: *const f32) -> Self::Pack {
        if mask == u8::MAX {
            // SAFETY: all lanes may be read.
            return unsafe { Self::load_narrow(from) };
        }
        // SAFETY: only lanes in the mask are read; the pointer of the others may be anywhere and is not used.
        each(|l| if mask >> l & 1 == 1 { f64::from(unsafe { *from.wrapping_add(l) }) } else { 0.0 })
    }

    #[inline(always)]
    unsafe fn store_narrow(to: *mut f32, pack: Self::Pack) {
        // SAFETY: by the caller's promise.
        unsafe { to.cast::<[f32; LANES]>().write_unaligned(pack.map(|v| v as f32)) }
    }
}

#[cfg(target_arch = "x86_64")]
pub(crate) use x86::{Avx2, Avx512};

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::Lanes;
    use std::arch::x86_64::*;

    /// AVX-512 F and VL.
    #[derive(Clone, Copy)]
    pub(crate) struct Avx512;

    impl Lanes for Avx512 {
        type Pack = __m512d;

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
        unsafe fn splat(a: f64) -> __m512d {
            // SAFETY: by the caller's promise.
            unsafe { _mm512_set1_pd(a) }
        }

        #[inline(always)]
        unsafe fn load_narrow(from: *const f32) -> __m512d {
            // SAFETY: by the caller's promise.
            unsafe { _mm512_cvtps_pd(_mm256_loadu_ps(from)) }
        }

        #[inline(always)]
        unsafe fn load_some_narrow(mask: u8, from: *const f32) -> __m512d {
            // SAFETY: memory and instructions by the caller's promise; a masked load touches the lanes in the mask only.
            unsafe { _mm512_cvtps_pd(_mm256_maskz_loadu_ps(mask, from)) }
        }

        #[inline(always)]
        unsafe fn store_narrow(to: *mut f32, pack: __m512d) {
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

    /// The same for lanes of 32 bits.
    const NARROW_MASKS: [[i32; 4]; 16] = {
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

    impl Lanes for Avx2 {
        type Pack = (__m256d, __m256d);

        #[inline(always)]
        fn prefetch<T>(at: *const T) {
            // SAFETY: a hint: nothing is read; every processor of this kind has it.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) }
        }

        #[inline(always)]
        unsafe fn load(from: *const f64) -> Self::Pack {
            // SAFETY: by the caller's promise.
            unsafe { (_mm256_loadu_pd(from), _mm256_loadu_pd(from.add(4))) }
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
                (_mm256_maskload_pd(from, low), _mm256_maskload_pd(from.wrapping_add(4), high))
            }
        }

        #[inline(always)]
        unsafe fn load_two(of_a: u8, a: *const f64, of_b: u8, b: *const f64) -> Self::Pack {
            // SAFETY: by the caller's promise; of each pair of halves the lanes that are not read are zero.
            unsafe {
                let (b, a) = (Self::load_some(of_b, b), Self::load_some(of_a, a));
                (_mm256_or_pd(a.0, b.0), _mm256_or_pd(a.1, b.1))
            }
        }

        #[inline(always)]
        unsafe fn keep(mask: u8, pack: Self::Pack) -> Self::Pack {
            // SAFETY: by the caller's promise.
            unsafe {
                let low = _mm256_loadu_pd(MASKS[usize::from(mask & 15)].as_ptr().cast());
                let high = _mm256_loadu_pd(MASKS[usize::from(mask >> 4)].as_ptr().cast());
                (_mm256_and_pd(pack.0, low), _mm256_and_pd(pack.1, high))
            }
        }

        #[inline(always)]
        unsafe fn store(to: *mut f64, pack: Self::Pack) {
            // SAFETY: by the caller's promise.
            unsafe {
                _mm256_storeu_pd(to, pack.0);
                _mm256_storeu_pd(to.add(4), pack.1);
            }
        }

        #[inline(always)]
        unsafe fn add(a: Self::Pack, b: Self::Pack) -> Self::Pack {
            // SAFETY: by the caller's promise.
            unsafe { (_mm256_add_pd(a.0, b.0), _mm256_add_pd(a.1, b.1)) }
        }

        #[inline(always)]
        unsafe fn sub(a: Self::Pack, b: Self::Pack) -> Self::Pack {
            // SAFETY: by the caller's promise.
            unsafe { (_mm256_sub_pd(a.0, b.0), _mm256_sub_pd(a.1, b.1)) }
        }

        #[inline(always)]
        unsafe fn mul(a: Self::Pack, b: Self::Pack) -> Self::Pack {
            // SAFETY: by the caller's promise.
            unsafe { (_mm256_mul_pd(a.0, b.0), _mm256_mul_pd(a.1, b.1)) }
        }

        #[inline(always)]
        unsafe fn div(a: Self::Pack, b: Self::Pack) -> Self::Pack {
            // SAFETY: by the caller's promise.
            unsafe { (_mm256_div_pd(a.0, b.0), _mm256_div_pd(a.1, b.1)) }
        }

        #[inline(always)]
        unsafe fn larger(a: Self::Pack, b: Self::Pack) -> Self::Pack {
            // SAFETY: by the caller's promise. Unless the first number is larger the second is taken.
            unsafe {
                let sign = _mm256_set1_pd(-0.0);
                let size = (_mm256_andnot_pd(sign, b.0), _mm256_andnot_pd(sign, b.1));
                (_mm256_max_pd(size.0, a.0), _mm256_max_pd(size.1, a.1))
            }
        }

        #[inline(always)]
        unsafe fn splat(a: f64) -> Self::Pack {
            // SAFETY: by the caller's promise.
            unsafe { (_mm256_set1_pd(a), _mm256_set1_pd(a)) }
        }

        #[inline(always)]
        unsafe fn load_narrow(from: *const f32) -> Self::Pack {
            // SAFETY: by the caller's promise.
            unsafe { (_mm256_cvtps_pd(_mm_loadu_ps(from)), _mm256_cvtps_pd(_mm_loadu_ps(from.add(4)))) }
        }

        #[inline(always)]
        unsafe fn load_some_narrow(mask: u8, from: *const f32) -> Self::Pack {
            if mask == u8::MAX {
                // SAFETY: by the caller's promise.
                return unsafe { Self::load_narrow(from) };
            }
            // SAFETY: memory by the caller's promise; a masked load touches the lanes in the mask only.
            unsafe {
                let low = _mm_loadu_si128(NARROW_MASKS[usize::from(mask & 15)].as_ptr().cast());
                let high = _mm_loadu_si128(NARROW_MASKS[usize::from(mask >> 4)].as_ptr().cast());
                let (a, b) = (_mm_maskload_ps(from, low), _mm_maskload_ps(from.wrapping_add(4), high));
                (_mm256_cvtps_pd(a), _mm256_cvtps_pd(b))
            }
        }

        #[inline(always)]
        unsafe fn store_narrow(to: *mut f32, pack: Self::Pack) {
            // SAFETY: by the caller's promise.
            unsafe {
                _mm_storeu_ps(to, _mm256_cvtpd_ps(pack.0));
                _mm_storeu_ps(to.add(4), _mm256_cvtpd_ps(pack.1));
            }
        }
    }
}
