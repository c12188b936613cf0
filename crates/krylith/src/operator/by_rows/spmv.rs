//! y = A x on a team of threads.
//!
//! Each row is a sum in eight lanes, as `space::lanes` documents it: entry k of the row goes to lane k mod 8. Every instruction
//! set gives the same bits (`row_products` for `f64`). Rows are divided by their entries, at
//! multiples of a chunk of the dot product, so that xᵀ(A x) can be summed on the way.
//!
//! Bytes: 12 per entry, 8 per row pointer, and x and y once each: 12 nnz + 24 n.
#![allow(unsafe_code)]

use super::normal::normal_residual;
use super::row_products;
use crate::disjoint::DisjointSlice;
use crate::error::BackendError;
use crate::matrix::{Csr, CsrRef};
use crate::operator::{LinearOperator, NormalResidual, ResidualNorms};
use crate::scalar::Scalar;
use crate::space::{CHUNK, LANES, Space, Threads, require_same};
use crate::team::Member;
use std::any::TypeId;
use std::ops::Range;

/// A member's rows: a share of entries and rows, cut at multiples of [`CHUNK`].
pub(super) fn part_of_rows(row_ptr: &[usize], member: &Member<'_>) -> Range<usize> {
    part_by_work(row_ptr.len() - 1, member, |row| row_ptr[row] + row)
}

/// A member's share of `n` rows, cut at multiples of [`CHUNK`]; `work_before` is the work of all rows before one.
pub(crate) fn part_by_work(
    n: usize,
    member: &Member<'_>,
    work_before: impl Fn(usize) -> usize,
) -> Range<usize> {
    let chunks = n.div_ceil(CHUNK);
    let work = |chunk: usize| work_before((chunk * CHUNK).min(n));
    let bound = |rank: usize| {
        let wanted = (work(chunks) as u128 * rank as u128 / member.size() as u128) as usize;
        let (mut low, mut high) = (0, chunks);
        while low < high {
            let middle = (low + high) / 2;
            if work(middle) < wanted {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        (low * CHUNK).min(n)
    };
    bound(member.rank())..bound(member.rank() + 1)
}

/// y = A x for some rows; `y` holds these rows only.
pub(crate) fn multiply_rows<T: Scalar>(a: CsrRef<'_, T>, rows: Range<usize>, x: &[T], y: &mut [T]) {
    debug_assert_eq!(x.len(), a.ncols());
    debug_assert_eq!(y.len(), rows.len());
    if TypeId::of::<T>() == TypeId::of::<f64>() {
        // SAFETY: T is f64, as the line above found.
        let (a, x, y) = unsafe {
            (
                std::mem::transmute::<CsrRef<'_, T>, CsrRef<'_, f64>>(a),
                std::mem::transmute::<&[T], &[f64]>(x),
                std::mem::transmute::<&mut [T], &mut [f64]>(y),
            )
        };
        // SAFETY: columns are below x.len() by the invariant of a pattern and the first line.
        return unsafe { row_products::multiply(a, rows, x, y) };
    }
    multiply_plain(a, rows, x, y);
}

/// The definition of the sum of a row: `f32`, and the last rows of a matrix.
pub(super) fn multiply_plain<T: Scalar>(a: CsrRef<'_, T>, rows: Range<usize>, x: &[T], y: &mut [T]) {
    for (i, y) in rows.zip(y) {
        let (columns, values) = a.row(i);
        let mut lanes = [T::ZERO; LANES];
        for (k, (&j, &v)) in columns.iter().zip(values).enumerate() {
            lanes[k % LANES] += v * x[j as usize];
        }
        *y = crate::simd::combine(lanes);
    }
}

/// Products on threads; `also` is what one type of numbers has besides.
macro_rules! operator {
    ($t:ty, $($also:tt)*) => {
        impl LinearOperator<Threads<$t>> for Csr<$t> {
            type Scratch = ();

            fn domain(&self) -> usize {
                self.ncols()
            }

            fn range(&self) -> usize {
                self.nrows()
            }

            fn scratch(&self, _: &Threads<$t>) -> Result<(), BackendError> {
                Ok(())
            }

            fn apply(&self, space: &Threads<$t>, x: &Vec<$t>, y: &mut Vec<$t>, _: &mut ()) -> Result<(), BackendError> {
                require_same("x and the columns of A", &x.len(), &self.ncols())?;
                require_same("y and the rows of A", &y.len(), &self.nrows())?;
                let (a, y) = (self.view(), DisjointSlice::new(y));
                space.team().run(|member| {
                    let rows = part_of_rows(a.row_ptr(), &member);
                    // SAFETY: the rows of the members do not overlap.
                    multiply_rows(a, rows.clone(), x, unsafe { y.get(rows) });
                });
                Ok(())
            }

            fn apply_dot(
                &self,
                space: &Threads<$t>,
                x: &Vec<$t>,
                y: &mut Vec<$t>,
                scratch: &mut (),
            ) -> Result<$t, BackendError> {
                if self.nrows() != self.ncols() {
                    self.apply(space, x, y, scratch)?;
                    return space.dot(x, y);
                }
                require_same("x and the columns of A", &x.len(), &self.ncols())?;
                require_same("y and the rows of A", &y.len(), &self.nrows())?;
                let (a, y) = (self.view(), DisjointSlice::new(y));
                let divide = |member: &Member<'_>| part_of_rows(a.row_ptr(), member);
                let [sum] = space.sums_over(self.nrows(), divide, |rows, [sum]| {
                    // SAFETY: every chunk is visited once, by one member.
                    let y = unsafe { y.get(rows.clone()) };
                    multiply_rows(a, rows.clone(), x, y);
                    sum.add_products(&x[rows], y);
                });
                Ok(sum)
            }

            fn matrix(&self) -> Option<&Csr<$t>> {
                Some(self)
            }

            /// On one thread: the rows of A are scattered into y one after the other. Who needs it often transposes once.
            fn apply_transpose(
                &self,
                _: &Threads<$t>,
                x: &Vec<$t>,
                y: &mut Vec<$t>,
                _: &mut (),
            ) -> Result<(), BackendError> {
                require_same("x and the rows of A", &x.len(), &self.nrows())?;
                require_same("y and the columns of A", &y.len(), &self.ncols())?;
                y.fill(<$t as Scalar>::ZERO);
                for (i, &x) in x.iter().enumerate() {
                    let (columns, values) = self.row(i);
                    for (&j, &v) in columns.iter().zip(values) {
                        y[j as usize] += v.conj() * x;
                    }
                }
                Ok(())
            }

            $($also)*
        }
    };
}

operator! { f32, }
operator! { f64,
    fn residual(
        &self,
        space: &Threads<f64>,
        (x, b): (&Vec<f64>, &Vec<f64>),
        precise: bool,
        r: &mut Vec<f64>,
        _: &mut (),
    ) -> Result<ResidualNorms<f64>, BackendError> {
        self.residual_of_rows((space, space), (x, b), precise, r)
    }

    fn normal_residual(
        &self,
        _: &Threads<f64>,
        r: &Vec<f64>,
        low: Option<&Vec<f64>>,
    ) -> Result<Option<NormalResidual<f64>>, BackendError> {
        require_same("r and the rows of A", &r.len(), &self.nrows())?;
        require_same("r and its low digits", &low.map_or(r.len(), Vec::len), &r.len())?;
        Ok(Some(normal_residual(self.view(), r, low.map_or(&[], |low| low))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of every length from 0 to 40: `run` of a length after each other, so that there are groups of equal rows and of others, at every
    /// place in eight rows. The last rows are the longest or the shortest.
    fn matrix(run: usize, longest_last: bool) -> Csr<f64> {
        let n = 5000;
        let a = Csr::from_rows(
            n,
            n,
            |i| (if longest_last { i } else { n - 1 - i }) / run % 41,
            |i, c, v| {
                for k in 0..c.len() {
                    c[k] = ((i + k * 113) % (n / 41)) as u32 + (k * (n / 41)) as u32;
                    v[k] = ((i * 31 + k) as f64).sin();
                }
            },
        );
        a.unwrap()
    }

    /// Numbers with whose sums and products the sign of a zero, an infinity or the last digits of a denormal number may go wrong.
    const SPECIAL: [f64; 12] = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
        f64::MIN_POSITIVE,
        -f64::MIN_POSITIVE,
        5e-324,
        -5e-324,
        f64::MAX,
    ];

    /// Bits, of which those of a NaN do not count.
    fn bits(y: &[f64]) -> Vec<u64> {
        y.iter().map(|y| if y.is_nan() { f64::NAN } else { *y }.to_bits()).collect()
    }

    fn same_on_every_instruction_set_and_number_of_threads(a: &Csr<f64>, x: &Vec<f64>) {
        let mut expected = vec![0.0; a.nrows()];
        multiply_plain(a.view(), 0..a.nrows(), x, &mut expected);
        let expected = bits(&expected);
        let mut y = vec![f64::NAN; a.nrows()];
        // From several first rows, because rows are taken by eight.
        for first in [0, 1, 7, 8, 4990, 5000] {
            y[first..].fill(f64::NAN);
            // SAFETY: the columns are those of a pattern.
            unsafe {
                row_products::multiply_with::<crate::simd::Plain>(
                    a.view(),
                    first..a.nrows(),
                    x,
                    &mut y[first..],
                )
            };
            assert_eq!(bits(&y), expected, "plain from {first}");
            #[cfg(target_arch = "x86_64")]
            if is_x86_feature_detected!("avx2") {
                y[first..].fill(f64::NAN);
                let rows = first..a.nrows();
                // SAFETY: the processor has AVX2, and the columns are those of a pattern.
                unsafe {
                    row_products::multiply_with::<crate::simd::Avx2Half>(a.view(), rows, x, &mut y[first..])
                };
                assert_eq!(bits(&y), expected, "AVX2 from {first}");
            }
        }
        let dot = bits(&[Threads::new(1).dot(x, &y).unwrap()]);
        for threads in [1, 2, 3, 4, 8] {
            let space = Threads::new(threads);
            y.fill(f64::NAN);
            a.apply(&space, x, &mut y, &mut ()).unwrap();
            assert_eq!(bits(&y), expected, "{threads} threads");
            y.fill(f64::NAN);
            assert_eq!(bits(&[a.apply_dot(&space, x, &mut y, &mut ()).unwrap()]), dot);
            assert_eq!(bits(&y), expected, "{threads} threads, fused");
        }
    }

    #[test]
    fn every_instruction_set_and_number_of_threads_gives_the_same_bits() {
        for (run, longest_last) in [(1, true), (1, false), (3, true), (29, true), (29, false), (121, false)] {
            let a = matrix(run, longest_last);
            let x: Vec<f64> = (0..a.ncols()).map(|j| ((j * 17) as f64).cos()).collect();
            same_on_every_instruction_set_and_number_of_threads(&a, &x);
        }
    }

    #[test]
    fn special_numbers_give_the_same_bits() {
        let pick =
            |seed: usize, among: usize| SPECIAL[(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) % among];
        for run in [1, 29] {
            let mut a = matrix(run, true);
            // Zeros of both signs and ones alone, whose sums are mostly zero; and all.
            for among in [4, SPECIAL.len()] {
                for (k, v) in a.values_mut().iter_mut().enumerate() {
                    *v = pick(k, among);
                }
                let x: Vec<f64> = (0..a.ncols()).map(|j| pick(j + 12345, among)).collect();
                same_on_every_instruction_set_and_number_of_threads(&a, &x);
            }
            // Nothing but −0, and what is not of a row is infinite.
            a.values_mut().fill(1.0);
            same_on_every_instruction_set_and_number_of_threads(&a, &vec![-0.0; a.ncols()]);
            for column in [0, 200, 4000] {
                let mut x = vec![-0.0; a.ncols()];
                x[column] = f64::INFINITY;
                same_on_every_instruction_set_and_number_of_threads(&a, &x);
            }
        }
    }

    #[test]
    fn single_precision_is_the_plain_code() {
        let a = matrix(1, true).cast::<f32>();
        let x = vec![1.0f32; a.ncols()];
        let (mut y, mut expected) = (vec![0.0; a.nrows()], vec![0.0; a.nrows()]);
        a.apply(&Threads::new(2), &x, &mut y, &mut ()).unwrap();
        multiply_plain(a.view(), 0..a.nrows(), &x, &mut expected);
        assert_eq!(y, expected);
    }
}
