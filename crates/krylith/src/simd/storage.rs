//! Numbers in memory, as wide as computed or narrower.

use super::Lanes;

/// How the entries of a factor are stored: `f64` or `f32`.
pub trait StorageScalar: sealed::Access {}

impl StorageScalar for f64 {}
impl StorageScalar for f32 {}

pub(crate) mod sealed {
    use super::Lanes;

    /// Access to stored numbers through lanes.
    #[allow(private_interfaces, private_bounds, reason = "nobody outside can name or implement this")]
    pub trait Access: crate::scalar::Real + crate::memory::large_pages::Zero {
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
access!(f32, load_f32, load_some_f32, load_two_f32, store_f32);
