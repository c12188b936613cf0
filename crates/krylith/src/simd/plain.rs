//! Arrays of eight numbers, for any processor.

use super::{BlockRow, LANES, Lanes, Pairs, Simd};

/// Any processor.
#[derive(Clone, Copy)]
pub(crate) struct Plain;

type Eight = [f64; LANES];

#[inline(always)]
fn each(f: impl Fn(usize) -> f64) -> Eight {
    std::array::from_fn(f)
}

/// The lanes in the mask by a function, zero elsewhere.
#[inline(always)]
fn each_of(mask: u8, f: impl Fn(usize) -> f64) -> Eight {
    each(|l| if mask >> l & 1 == 1 { f(l) } else { 0.0 })
}

impl Simd for Plain {
    type Pack = Eight;

    #[inline(always)]
    unsafe fn splat(a: f64) -> Eight {
        [a; LANES]
    }

    #[inline(always)]
    unsafe fn add(a: Eight, b: Eight) -> Eight {
        each(|l| a[l] + b[l])
    }

    #[inline(always)]
    unsafe fn sub(a: Eight, b: Eight) -> Eight {
        each(|l| a[l] - b[l])
    }

    #[inline(always)]
    unsafe fn mul(a: Eight, b: Eight) -> Eight {
        each(|l| a[l] * b[l])
    }
}

impl Lanes for Plain {
    #[inline(always)]
    unsafe fn load(from: *const f64) -> Eight {
        // SAFETY: by the caller's promise.
        unsafe { from.cast::<Eight>().read_unaligned() }
    }

    #[inline(always)]
    unsafe fn load_some(mask: u8, from: *const f64) -> Eight {
        if mask == u8::MAX {
            // SAFETY: all lanes may be read.
            return unsafe { <Self as Lanes>::load(from) };
        }
        // SAFETY: only lanes in the mask are read; the pointer of the others may be anywhere and is not used.
        each_of(mask, |l| unsafe { *from.wrapping_add(l) })
    }

    #[inline(always)]
    unsafe fn load_two(of_a: u8, a: *const f64, of_b: u8, b: *const f64) -> Eight {
        each(|l| match (of_a >> l & 1, of_b >> l & 1) {
            // SAFETY: the lane may be read by the caller's promise.
            (1, _) => unsafe { *a.wrapping_add(l) },
            // SAFETY: as above.
            (_, 1) => unsafe { *b.wrapping_add(l) },
            _ => 0.0,
        })
    }

    #[inline(always)]
    unsafe fn keep(mask: u8, pack: Eight) -> Eight {
        each_of(mask, |l| pack[l])
    }

    #[inline(always)]
    unsafe fn store(to: *mut f64, pack: Eight) {
        // SAFETY: by the caller's promise.
        unsafe { to.cast::<Eight>().write_unaligned(pack) }
    }

    #[inline(always)]
    unsafe fn div(a: Eight, b: Eight) -> Eight {
        each(|l| a[l] / b[l])
    }

    #[inline(always)]
    unsafe fn larger(a: Eight, b: Eight) -> Eight {
        each(|l| if b[l].abs() > a[l] { b[l].abs() } else { a[l] })
    }

    #[inline(always)]
    unsafe fn sum(l: Eight) -> f64 {
        super::combine(l)
    }

    #[inline(always)]
    unsafe fn load_f32(from: *const f32) -> Eight {
        // SAFETY: by the caller's promise.
        unsafe { from.cast::<[f32; LANES]>().read_unaligned() }.map(f64::from)
    }

    #[inline(always)]
    unsafe fn load_some_f32(mask: u8, from: *const f32) -> Eight {
        if mask == u8::MAX {
            // SAFETY: all lanes may be read.
            return unsafe { Self::load_f32(from) };
        }
        // SAFETY: only lanes in the mask are read; the pointer of the others may be anywhere and is not used.
        each_of(mask, |l| f64::from(unsafe { *from.wrapping_add(l) }))
    }

    #[inline(always)]
    unsafe fn store_f32(to: *mut f32, pack: Eight) {
        // SAFETY: by the caller's promise.
        unsafe { to.cast::<[f32; LANES]>().write_unaligned(pack.map(|v| v as f32)) }
    }
}

impl Pairs for Plain {
    type Pair = [f64; 2];

    #[inline(always)]
    unsafe fn zero() -> [f64; 2] {
        [0.0; 2]
    }

    #[inline(always)]
    unsafe fn products(columns: *const u32, values: *const f64, x: *const f64) -> [f64; 2] {
        // SAFETY: by the caller's promise.
        unsafe { [0, 1].map(|l| *values.add(l) * *x.add(*columns.add(l) as usize)) }
    }

    #[inline(always)]
    unsafe fn product(columns: *const u32, values: *const f64, x: *const f64) -> [f64; 2] {
        // SAFETY: by the caller's promise.
        unsafe { [*values * *x.add(*columns as usize), 0.0] }
    }

    #[inline(always)]
    unsafe fn add_pairs(a: [f64; 2], b: [f64; 2]) -> [f64; 2] {
        [a[0] + b[0], a[1] + b[1]]
    }

    #[inline(always)]
    unsafe fn keep_lanes(ones: *const u64, pair: [f64; 2]) -> [f64; 2] {
        // SAFETY: by the caller's promise.
        unsafe { [0, 1].map(|l| f64::from_bits(pair[l].to_bits() & *ones.add(l))) }
    }

    #[inline(always)]
    unsafe fn store_sums(to: *mut f64, a: [f64; 2], b: [f64; 2]) {
        // SAFETY: by the caller's promise.
        unsafe { to.cast::<[f64; 2]>().write_unaligned([(a[0] + a[1]) + 0.0, (b[0] + b[1]) + 0.0]) }
    }
}

impl BlockRow for Plain {
    #[inline(always)]
    unsafe fn load_wide<const B: usize>(from: *const f64) -> Eight {
        // SAFETY: by the caller's promise.
        unsafe { Self::load_row::<B>(from) }
    }

    #[inline(always)]
    unsafe fn load_row<const B: usize>(from: *const f64) -> Eight {
        // SAFETY: the first B numbers may be read.
        each(|l| if l < B { unsafe { *from.add(l) } } else { 0.0 })
    }

    #[inline(always)]
    unsafe fn store_row<const B: usize>(to: *mut f64, pack: Eight) {
        for (l, value) in pack.into_iter().enumerate().take(B) {
            // SAFETY: the first B numbers may be written.
            unsafe { *to.add(l) = value };
        }
    }

    #[inline(always)]
    unsafe fn sums<const B: usize>(rows: [Eight; B]) -> Eight {
        each(|r| {
            let Some(row) = rows.get(r) else { return 0.0 };
            let a = each(|l| if l < B { row[l] } else { 0.0 });
            let four =
                if B <= 4 { [a[0], a[1], a[2], a[3]] } else { std::array::from_fn(|l| a[l] + a[l + 4]) };
            (four[0] + four[2]) + (four[1] + four[3])
        })
    }
}
