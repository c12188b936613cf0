//! Vector instructions, on three kinds of processors.
//!
//! A kernel is written once, generic over an instruction set, and [`dispatch!`] compiles it for each of them and chooses at run time.
//! There are three ways to use a register:
//!
//! * [`Lanes`]: eight numbers that belong to eight rows, each lane by itself; any length of vectors and coefficients.
//! * [`Pairs`]: two numbers of one row of a matrix by rows.
//! * [`BlockRow`]: the B numbers of one row of a dense block, in the first lanes; the lanes are added at the end.
//!
//! Every operation rounds each lane by itself and none is fused, and lanes are added in one order. So all instruction sets give the same
//! bits. Methods are inlined into functions that are compiled for the instruction set: no closure stands around an
//! instruction, because it would be compiled for any processor and every instruction in it become a call.
#![allow(unsafe_code)]

mod dispatch;
mod plain;
mod storage;
#[cfg(target_arch = "x86_64")]
mod x86;
#[cfg(target_arch = "x86_64")]
mod x86_block;

pub(crate) use dispatch::dispatch;
pub(crate) use plain::Plain;
pub use storage::StorageScalar;
pub(crate) use storage::sealed::Access;
#[cfg(target_arch = "x86_64")]
pub(crate) use x86::{Avx2, Avx512};
#[cfg(target_arch = "x86_64")]
pub(crate) use x86_block::Avx2Half;

/// Numbers that vector instructions take at once here, and lanes of a sum.
pub const LANES: usize = 8;

/// The lanes of a sum added, which is what halving a vector register does.
#[inline(always)]
pub(crate) fn combine<T: std::ops::Add<Output = T> + Copy>(l: [T; LANES]) -> T {
    ((l[0] + l[4]) + (l[2] + l[6])) + ((l[1] + l[5]) + (l[3] + l[7]))
}

/// Blocks up to this size are unrolled.
const UNROLLED: usize = 3;

/// `D`, for the outer loops over blocks of D x D numbers. From 4 on the compiler does not know that number, nor a bound of it: D³ operations that are
/// unrolled, for every size and instruction set, would be most of the code of the library, and are no faster.
#[inline(always)]
pub(crate) fn rolled<const D: usize>() -> usize {
    if const { D <= UNROLLED } { D } else { std::hint::black_box(D) }
}

/// An instruction set: arithmetic on packs of numbers.
pub(crate) trait Simd: Copy {
    /// The numbers of a register, or of two.
    type Pack: Copy;

    /// One number in all lanes.
    ///
    /// # Safety
    /// The processor has the instructions.
    unsafe fn splat(a: f64) -> Self::Pack;

    /// # Safety
    /// The processor has the instructions.
    unsafe fn add(a: Self::Pack, b: Self::Pack) -> Self::Pack;

    /// # Safety
    /// The processor has the instructions.
    unsafe fn sub(a: Self::Pack, b: Self::Pack) -> Self::Pack;

    /// # Safety
    /// The processor has the instructions.
    unsafe fn mul(a: Self::Pack, b: Self::Pack) -> Self::Pack;
}

/// Eight lanes of `f64`.
pub(crate) trait Lanes: Simd {
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
    unsafe fn div(a: Self::Pack, b: Self::Pack) -> Self::Pack;

    /// The larger of a and |b|; a where b is not a number.
    ///
    /// # Safety
    /// The processor has the instructions.
    unsafe fn larger(a: Self::Pack, b: Self::Pack) -> Self::Pack;

    /// Eight `f32` from memory, widened.
    ///
    /// # Safety
    /// As [`load`](Self::load).
    unsafe fn load_f32(from: *const f32) -> Self::Pack;

    /// `f32` of the lanes in the mask, widened.
    ///
    /// # Safety
    /// As [`load_some`](Self::load_some).
    unsafe fn load_some_f32(mask: u8, from: *const f32) -> Self::Pack;

    /// `f32` of two places, widened.
    ///
    /// # Safety
    /// As [`load_two`](Self::load_two).
    #[inline(always)]
    unsafe fn load_two_f32(of_a: u8, a: *const f32, of_b: u8, b: *const f32) -> Self::Pack {
        // SAFETY: by the caller's promise. Lanes outside of a mask are zero, so that the sum is the one that is there.
        unsafe { Self::add(Self::load_some_f32(of_a, a), Self::load_some_f32(of_b, b)) }
    }

    /// Eight numbers to memory, rounded to the nearest `f32`.
    ///
    /// # Safety
    /// As [`store`](Self::store).
    unsafe fn store_f32(to: *mut f32, pack: Self::Pack);

    /// Asks for the cache line at an address, which need not exist.
    #[inline(always)]
    fn prefetch<T>(_: *const T) {}

    /// The lanes added: ((0+4)+(2+6)) + ((1+5)+(3+7)).
    ///
    /// # Safety
    /// The processor has the instructions.
    unsafe fn sum(pack: Self::Pack) -> f64;

    /// The eight numbers of a pack.
    ///
    /// # Safety
    /// The processor has the instructions.
    #[inline(always)]
    unsafe fn numbers(pack: Self::Pack) -> [f64; LANES] {
        let mut numbers = [0.0; LANES];
        // SAFETY: room for eight; the processor has the instructions.
        unsafe { Self::store(numbers.as_mut_ptr(), pack) };
        numbers
    }
}

/// Two lanes of `f64`.
pub(crate) trait Pairs: Copy {
    /// Two numbers.
    type Pair: Copy;

    /// Two zeros.
    ///
    /// # Safety
    /// The processor has the instructions.
    unsafe fn zero() -> Self::Pair;

    /// Lane l is `values[l] * x[columns[l]]`.
    ///
    /// # Safety
    /// Two columns and values may be read, and x at these columns; the processor has the instructions.
    unsafe fn products(columns: *const u32, values: *const f64, x: *const f64) -> Self::Pair;

    /// The first lane is `values[0] * x[columns[0]]`, the second +0.
    ///
    /// # Safety
    /// A column and a value may be read, and x at this column; the processor has the instructions.
    unsafe fn product(columns: *const u32, values: *const f64, x: *const f64) -> Self::Pair;

    /// The lanes added, each by itself.
    ///
    /// # Safety
    /// The processor has the instructions.
    unsafe fn add_pairs(a: Self::Pair, b: Self::Pair) -> Self::Pair;

    /// Lane l where `ones[l]` has all bits set; +0 where it has none.
    ///
    /// # Safety
    /// Two numbers may be read; the processor has the instructions.
    unsafe fn keep_lanes(ones: *const u64, pair: Self::Pair) -> Self::Pair;

    /// The sums of the lanes of `a` and of `b`, one after the other, to memory. A zero is +0.
    ///
    /// # Safety
    /// Two numbers may be written; the processor has the instructions.
    unsafe fn store_sums(to: *mut f64, a: Self::Pair, b: Self::Pair);

    /// Asks for the cache line at an address, which need not exist.
    #[inline(always)]
    fn prefetch<T>(_: *const T) {}
}

/// Numbers that must be readable after the last value of a matrix of blocks.
pub(crate) const SLACK: usize = 8;

/// One row of a block of B x B numbers in a pack.
///
/// The lanes are added as halving a register does, (0+2) + (1+3) up to B = 4 and ((0+4)+(2+6)) + ((1+5)+(3+7)) above, lanes past B
/// entering as +0.
///
/// Vectors are read and written in pieces of 4, 2 and 1 numbers: a sweep reads what it stored a moment ago, and the processor
/// hands over a store only to loads that lie within it, and never a masked one. Values of a matrix that nobody writes meanwhile are
/// read in full width where there is room after them; what the last lanes then hold is not used.
pub(crate) trait BlockRow: Simd {
    /// `B` numbers; the lanes after them hold anything.
    ///
    /// # Safety
    /// `from` may be read for `B` numbers and [`SLACK`] more; the processor has the instructions.
    unsafe fn load_wide<const B: usize>(from: *const f64) -> Self::Pack;

    /// `B` numbers; the lanes after them hold zero.
    ///
    /// # Safety
    /// `from` may be read for `B` numbers; the processor has the instructions.
    unsafe fn load_row<const B: usize>(from: *const f64) -> Self::Pack;

    /// The first `B` lanes, to memory.
    ///
    /// # Safety
    /// `to` may be written for `B` numbers; the processor has the instructions.
    unsafe fn store_row<const B: usize>(to: *mut f64, pack: Self::Pack);

    /// Lane r is the sum of the first `B` lanes of row r.
    ///
    /// # Safety
    /// The processor has the instructions.
    unsafe fn sums<const B: usize>(rows: [Self::Pack; B]) -> Self::Pack;
}
