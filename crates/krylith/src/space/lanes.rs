//! Vector kernels, each with one order of operations for every instruction set and every number of threads.
//!
//! A sum over many terms runs in eight lanes: term k goes to lane k mod 8, each lane adds its terms from left to right, and
//! the lanes are combined as ((0+4)+(2+6)) + ((1+5)+(3+7)), which is what halving a vector register does. Products are
//! rounded before they are added (no fused multiply-add), so that AVX-512, AVX2 and plain code give the same bits.
//!
//! A dot product is cut into chunks of [`CHUNK`] entries; the sums of the chunks are added in the same lane order.
#![allow(unsafe_code)]

use crate::scalar::Scalar;
use crate::simd::dispatch;

/// Entries of a dot product that are summed as one piece: part of its definition, not a tuning parameter.
pub const CHUNK: usize = 2048;

pub use crate::simd::LANES;

/// The lanes of a sum combined.
#[inline(always)]
pub(crate) fn combine<T: Scalar>(l: [T; LANES]) -> T {
    ((l[0] + l[4]) + (l[2] + l[6])) + ((l[1] + l[5]) + (l[3] + l[7]))
}

/// Σ conj(xᵢ) yᵢ in lanes, with the instructions of the caller.
#[inline(always)]
fn dot_here<T: Scalar>(x: &[T], y: &[T]) -> T {
    let mut lanes = [T::ZERO; LANES];
    let (xs, x_rest) = x.as_chunks::<LANES>();
    let (ys, y_rest) = y.as_chunks::<LANES>();
    for (x, y) in xs.iter().zip(ys) {
        for l in 0..LANES {
            lanes[l] += x[l].conj() * y[l];
        }
    }
    for (l, (x, y)) in x_rest.iter().zip(y_rest).enumerate() {
        lanes[l] += x.conj() * *y;
    }
    combine(lanes)
}

dispatch! {
    /// Σ conj(xᵢ) yᵢ of one chunk, in lanes.
    pub(crate) fn dot<T: Scalar>(x: &[T], y: &[T]) -> T {
        dot_here(x, y)
    }

    /// Σ xᵢ in eight lanes: term k goes to lane k mod 8, and the lanes are added as ((0+4)+(2+6)) + ((1+5)+(3+7)). So are the sums of
    /// the chunks of a dot product.
    pub fn sum<T: Scalar>(x: &[T]) -> T {
        let mut lanes = [T::ZERO; LANES];
        let (xs, rest) = x.as_chunks::<LANES>();
        for x in xs {
            for l in 0..LANES {
                lanes[l] += x[l];
            }
        }
        for (l, x) in rest.iter().enumerate() {
            lanes[l] += *x;
        }
        combine(lanes)
    }

    /// y = a x + b y; with b = 0 the old y is not read.
    pub(crate) fn axpby<T: Scalar>(a: T, x: &[T], b: T, y: &mut [T]) {
        if b == T::ZERO {
            for (x, y) in x.iter().zip(y) {
                *y = a * *x;
            }
        } else if b == T::ONE {
            for (x, y) in x.iter().zip(y) {
                *y = a * *x + *y;
            }
        } else {
            for (x, y) in x.iter().zip(y) {
                *y = a * *x + b * *y;
            }
        }
    }

    /// p = r + b (p − c v), in the order of two updates.
    pub(crate) fn bicgstab_direction<T: Scalar>(r: &[T], b: T, c: T, v: &[T], p: &mut [T]) {
        let minus = -c;
        for ((r, v), p) in r.iter().zip(v).zip(p) {
            *p = *r + b * (minus * *v + *p);
        }
    }

    /// r += a q, and Σ conj(rᵢ) rᵢ of the new r, of one chunk, in lanes.
    pub(crate) fn update_square<T: Scalar>(a: T, q: &[T], r: &mut [T]) -> T {
        for (q, r) in q.iter().zip(&mut *r) {
            *r = a * *q + *r;
        }
        dot_here(r, r)
    }

    /// r += a q and z = d r entry by entry, and Σ conj(rᵢ) rᵢ and Σ conj(rᵢ) zᵢ of the new r, of one chunk, in lanes.
    pub(crate) fn update_diagonal<T: Scalar>(a: T, q: &[T], d: &[T], r: &mut [T], z: &mut [T]) -> [T; 2] {
        for ((q, d), (r, z)) in q.iter().zip(d).zip(r.iter_mut().zip(&mut *z)) {
            *r = a * *q + *r;
            *z = *r * *d;
        }
        [dot_here(r, r), dot_here(r, z)]
    }

    /// x += a p, and then p = z + b p, in the order of two updates.
    pub(crate) fn cg_direction<T: Scalar>(a: T, z: &[T], b: T, p: &mut [T], x: &mut [T]) {
        for ((z, p), x) in z.iter().zip(p).zip(x) {
            *x = a * *p + *x;
            *p = *z + b * *p;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The documented order, written down naively.
    fn naive(x: &[f64], y: &[f64]) -> f64 {
        let mut lanes = [0.0; LANES];
        for k in 0..x.len() {
            lanes[k % LANES] += x[k] * y[k];
        }
        combine(lanes)
    }

    #[test]
    fn the_order_is_the_documented_one_on_this_processor() {
        for n in [0, 1, 7, 8, 9, 100, CHUNK] {
            let x: Vec<f64> = (0..n).map(|k| ((k * 7919) as f64).sin()).collect();
            let y: Vec<f64> = (0..n).map(|k| ((k * 104_729) as f64).cos()).collect();
            assert_eq!(dot(&x, &y).to_bits(), naive(&x, &y).to_bits(), "{n}");
            assert_eq!(sum(&x).to_bits(), naive(&x, &vec![1.0; n]).to_bits(), "{n}");
            let (mut r, mut r2) = (x.clone(), x.clone());
            let square = update_square(-0.3, &y, &mut r);
            axpby(-0.3, &y, 1.0, &mut r2);
            assert_eq!(square.to_bits(), naive(&r2, &r2).to_bits());
            assert_eq!(r, r2);
            let (d, mut r3, mut z) = (&y, x.clone(), vec![0.0; n]);
            let sums = update_diagonal(-0.3, &y, d, &mut r3, &mut z);
            let scaled: Vec<f64> = r2.iter().zip(d).map(|(r, d)| r * d).collect();
            assert_eq!(sums.map(f64::to_bits), [naive(&r2, &r2), naive(&r2, &scaled)].map(f64::to_bits));
            assert_eq!((r3, z), (r2, scaled));
            let (mut p, mut u, mut p2, mut u2) = (x.clone(), y.clone(), x.clone(), y.clone());
            cg_direction(0.3, &r, 0.7, &mut p, &mut u);
            axpby(0.3, &p2, 1.0, &mut u2);
            axpby(1.0, &r, 0.7, &mut p2);
            assert_eq!((p, u), (p2, u2));
        }
    }
}
