//! The numbers a matrix or a vector may hold.
//!
//! [`Scalar`] is what entries are, [`Real`] what norms and tolerances are. They differ only for complex numbers,
//! which are not implemented yet; algorithms already keep the two apart so that they need not change then.

use std::fmt::{Debug, Display};
use std::ops::{Add, AddAssign, Div, Mul, MulAssign, Neg, Sub, SubAssign};

/// An entry of a matrix or a vector: `f32` or `f64`.
pub trait Scalar:
    Copy
    + Default
    + Debug
    + Display
    + PartialEq
    + Send
    + Sync
    + 'static
    + Neg<Output = Self>
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + AddAssign
    + SubAssign
    + MulAssign
{
    /// The type of its absolute value.
    type Real: Real;
    /// 0.
    const ZERO: Self;
    /// 1.
    const ONE: Self;
    /// |a|.
    fn abs(self) -> Self::Real;
    /// The complex conjugate; the number itself where it is real.
    fn conj(self) -> Self;
    /// The real part.
    fn real(self) -> Self::Real;
    /// The real number `a` as a scalar.
    fn from_real(a: Self::Real) -> Self;
    /// The nearest scalar to `a`.
    fn from_f64(a: f64) -> Self;
    /// The nearest `f64` to the real part.
    fn to_f64(self) -> f64;
    /// Neither infinite nor NaN.
    fn is_finite(self) -> bool;
}

/// A real number: what norms, tolerances and eigenvalue bounds are made of.
pub trait Real: Scalar<Real = Self> + PartialOrd {
    /// The distance from 1 to the next larger number.
    const EPSILON: Self;
    /// √a.
    fn sqrt(self) -> Self;
}

macro_rules! real {
    ($t:ty) => {
        impl Scalar for $t {
            type Real = $t;
            const ZERO: $t = 0.0;
            const ONE: $t = 1.0;
            fn abs(self) -> $t {
                <$t>::abs(self)
            }
            fn conj(self) -> $t {
                self
            }
            fn real(self) -> $t {
                self
            }
            fn from_real(a: $t) -> $t {
                a
            }
            fn from_f64(a: f64) -> $t {
                a as $t
            }
            fn to_f64(self) -> f64 {
                self as f64
            }
            fn is_finite(self) -> bool {
                <$t>::is_finite(self)
            }
        }
        impl Real for $t {
            const EPSILON: $t = <$t>::EPSILON;
            fn sqrt(self) -> $t {
                <$t>::sqrt(self)
            }
        }
    };
}

real!(f32);
real!(f64);

/// Numbers below this, and their inverses, are well within the range of `f32`.
pub(crate) const LARGEST_F32: f64 = 1e30;
