//! Updates of vectors, with the same bits on every instruction set: products are rounded before they are added.
//!
//! Where products of what is written are summed, too, they are summed from the registers.
#![allow(unsafe_code)]

use super::binned::{BinnedSum, Bins, deposit};
use crate::scalar::Scalar;
use crate::simd::dispatch;

/// Entries of a vector that are visited as one piece, so that they stay in cache from one operation to the next.
pub const CHUNK: usize = 2048;

/// r += a q, and Σ conj(rᵢ) rᵢ of the new r, for at most [`CHUNK`] entries.
pub(super) fn update_square<T: Scalar>(a: T, q: &[T], r: &mut [T], sum: &mut BinnedSum) {
    match sum.magic() {
        Some(magic) => {
            let bins = update_and_square(a, q, r, magic);
            sum.settle(bins, magic, r, r);
        }
        None => {
            axpby(a, q, T::ONE, r);
            sum.add_products(r, r);
        }
    }
}

/// r += a q and z = d r entry by entry, and Σ conj(rᵢ) rᵢ and Σ conj(rᵢ) zᵢ of the new r, for at most [`CHUNK`] entries.
pub(super) fn update_diagonal<T: Scalar>(
    a: T,
    q: &[T],
    d: &[T],
    (r, z): (&mut [T], &mut [T]),
    sums: &mut [BinnedSum; 2],
) {
    match (sums[0].magic(), sums[1].magic()) {
        (Some(first), Some(second)) => {
            let bins = update_and_multiply(a, q, d, r, z, [first, second]);
            sums[0].settle(bins[0], first, r, r);
            sums[1].settle(bins[1], second, r, z);
        }
        _ => {
            axpby(a, q, T::ONE, r);
            z.iter_mut().zip(&*r).zip(d).for_each(|((z, r), d)| *z = *r * *d);
            sums[0].add_products(r, r);
            sums[1].add_products(r, z);
        }
    }
}

dispatch! {
    /// y = a x + b y; with b = 0 the old y is not read.
    pub(super) fn axpby<T: Scalar>(a: T, x: &[T], b: T, y: &mut [T]) {
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
    pub(super) fn bicgstab_direction<T: Scalar>(r: &[T], b: T, c: T, v: &[T], p: &mut [T]) {
        let minus = -c;
        for ((r, v), p) in r.iter().zip(v).zip(p) {
            *p = *r + b * (minus * *v + *p);
        }
    }

    /// The update of [`update_square`].
    fn update_and_square<T: Scalar>(a: T, q: &[T], r: &mut [T], magic: [f64; 2]) -> Bins {
        let mut bins = Bins::default();
        for (q, r) in q.iter().zip(r) {
            *r = a * *q + *r;
            deposit(&mut bins, magic, (r.conj() * *r).to_f64());
        }
        bins
    }

    /// The update of [`update_diagonal`].
    fn update_and_multiply<T: Scalar>(a: T, q: &[T], d: &[T], r: &mut [T], z: &mut [T], magic: [[f64; 2]; 2]) -> [Bins; 2] {
        let [mut rr, mut rz] = [Bins::default(); 2];
        for ((q, d), (r, z)) in q.iter().zip(d).zip(r.iter_mut().zip(z)) {
            *r = a * *q + *r;
            *z = *r * *d;
            deposit(&mut rr, magic[0], (r.conj() * *r).to_f64());
            deposit(&mut rz, magic[1], (r.conj() * *z).to_f64());
        }
        [rr, rz]
    }

    /// x += a p, and then p = z + b p, in the order of two updates.
    pub(super) fn cg_direction<T: Scalar>(a: T, z: &[T], b: T, p: &mut [T], x: &mut [T]) {
        for ((z, p), x) in z.iter().zip(p).zip(x) {
            *x = a * *p + *x;
            *p = *z + b * *p;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn product(x: &[f64], y: &[f64]) -> BinnedSum {
        let mut sum = BinnedSum::new();
        sum.add_products(x, y);
        sum
    }

    #[test]
    fn fused_updates_are_those_in_two_passes() {
        for n in [0, 1, 7, 8, 9, 100, CHUNK] {
            for scale in [1.0, 1e-3, 1e30] {
                let x: Vec<f64> = (0..n).map(|k| ((k * 7919) as f64).sin()).collect();
                let y: Vec<f64> = (0..n).map(|k| scale * ((k * 104_729) as f64).cos()).collect();
                // A sum that is new, and one that has a unit already, which is too small for the largest scale.
                for before in [vec![], vec![0.25; 3]] {
                    let begun = product(&before, &before);
                    let together = |x: &[f64], y: &[f64]| {
                        let mut sum = begun;
                        sum.add_sum(&product(x, y));
                        sum
                    };
                    let (mut r, mut r2, mut square) = (x.clone(), x.clone(), begun);
                    update_square(-0.3, &y, &mut r, &mut square);
                    axpby(-0.3, &y, 1.0, &mut r2);
                    assert_eq!((square, &r), (together(&r2, &r2), &r2));
                    let (d, mut r3, mut z, mut sums) = (&y, x.clone(), vec![0.0; n], [begun; 2]);
                    update_diagonal(-0.3, &y, d, (&mut r3, &mut z), &mut sums);
                    let scaled: Vec<f64> = r2.iter().zip(d).map(|(r, d)| r * d).collect();
                    assert_eq!(sums, [together(&r2, &r2), together(&r2, &scaled)]);
                    assert_eq!((&r3, &z), (&r2, &scaled));
                    let (mut p, mut u, mut p2, mut u2) = (x.clone(), y.clone(), x.clone(), y.clone());
                    cg_direction(0.3, &r, 0.7, &mut p, &mut u);
                    axpby(0.3, &p2, 1.0, &mut u2);
                    axpby(1.0, &r, 0.7, &mut p2);
                    assert_eq!((p, u), (p2, u2));
                }
            }
        }
    }
}
