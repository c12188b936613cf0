//! One kernel for several instruction sets, chosen at run time.

/// Compiles functions for AVX-512, for AVX2 and for any processor, and defines one of the given name that chooses.
///
/// Three forms:
///
/// * `unsafe fn name<G: Bound, …>(arguments) -> R = body;` calls `body::<I, G, …>` with I the instruction set: [`Avx512`], [`Avx2`] or
///   [`Plain`]. The body is `#[inline(always)]`. Generic parameters may be types, or `const N: usize` at the end.
/// * The same with `in half registers` at the end: I is [`Avx2Half`] or [`Plain`], and the only generic parameter may be a `const N: usize`.
/// * `fn name<T: Bound>(arguments) -> R { … }` compiles the same code, in which the compiler finds the vectors, for each.
///
/// [`Avx512`]: super::Avx512
/// [`Avx2`]: super::Avx2
/// [`Avx2Half`]: super::Avx2Half
/// [`Plain`]: super::Plain
macro_rules! dispatch {
    ($($(#[$doc:meta])* $vis:vis unsafe fn $name:ident
        $(<$($t:ident: $bound:ident),* $(; const $n:ident)?>)?
        ($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)? = $body:ident;)*) => {$(
        $(#[$doc])*
        #[inline]
        $vis unsafe fn $name $(<$($t: $bound,)* $(const $n: usize)?>)? ($($arg: $ty),*) $(-> $ret)? {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512vl")]
                unsafe fn avx512 $(<$($t: $bound,)* $(const $n: usize)?>)? ($($arg: $ty),*) $(-> $ret)? {
                    // SAFETY: compiled for the instructions; the rest is the caller's promise.
                    unsafe { $body::<$crate::simd::Avx512 $(, $($t,)* $($n)?)?>($($arg),*) }
                }
                #[target_feature(enable = "avx2")]
                unsafe fn avx2 $(<$($t: $bound,)* $(const $n: usize)?>)? ($($arg: $ty),*) $(-> $ret)? {
                    // SAFETY: as above.
                    unsafe { $body::<$crate::simd::Avx2 $(, $($t,)* $($n)?)?>($($arg),*) }
                }

                if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vl") {
                    // SAFETY: the processor has the instructions; the rest is the caller's promise.
                    return unsafe { avx512 $(::<$($t,)* $($n)?>)? ($($arg),*) };
                }
                if is_x86_feature_detected!("avx2") {
                    // SAFETY: as above.
                    return unsafe { avx2 $(::<$($t,)* $($n)?>)? ($($arg),*) };
                }
            }
            // SAFETY: by the caller's promise.
            unsafe { $body::<$crate::simd::Plain $(, $($t,)* $($n)?)?>($($arg),*) }
        }
    )*};
    ($($(#[$doc:meta])* $vis:vis unsafe fn $name:ident $(<const $n:ident>)?
        ($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)? = $body:ident in half registers;)*) => {$(
        $(#[$doc])*
        #[inline]
        $vis unsafe fn $name $(<const $n: usize>)? ($($arg: $ty),*) $(-> $ret)? {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2")]
                unsafe fn avx2 $(<const $n: usize>)? ($($arg: $ty),*) $(-> $ret)? {
                    // SAFETY: compiled for the instructions; the rest is the caller's promise.
                    unsafe { $body::<$crate::simd::Avx2Half $(, $n)?>($($arg),*) }
                }

                if is_x86_feature_detected!("avx2") {
                    // SAFETY: the processor has the instructions; the rest is the caller's promise.
                    return unsafe { avx2 $(::<$n>)? ($($arg),*) };
                }
            }
            // SAFETY: by the caller's promise.
            unsafe { $body::<$crate::simd::Plain $(, $n)?>($($arg),*) }
        }
    )*};
    ($($(#[$doc:meta])* $vis:vis fn $name:ident<$t:ident: $bound:ident>
        ($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)? $body:block)*) => {$(
        $(#[$doc])*
        #[inline]
        $vis fn $name<$t: $bound>($($arg: $ty),*) $(-> $ret)? {
            #[inline(always)]
            fn plain<$t: $bound>($($arg: $ty),*) $(-> $ret)? $body

            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512vl")]
                fn avx512<$t: $bound>($($arg: $ty),*) $(-> $ret)? { plain($($arg),*) }
                #[target_feature(enable = "avx2")]
                fn avx2<$t: $bound>($($arg: $ty),*) $(-> $ret)? { plain($($arg),*) }

                if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vl") {
                    // SAFETY: the processor has what the function was compiled for.
                    return unsafe { avx512($($arg),*) };
                }
                if is_x86_feature_detected!("avx2") {
                    // SAFETY: as above.
                    return unsafe { avx2($($arg),*) };
                }
            }
            plain($($arg),*)
        }
    )*};
}

pub(crate) use dispatch;
