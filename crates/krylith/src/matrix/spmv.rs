//! y = A x on a team of threads.
//!
//! Each row is a sum in eight lanes, as `space::lanes` documents it: entry k of the row goes to lane k mod 8. Every instruction
//! set gives the same bits. Rows are divided by their entries, at
//! multiples of a chunk of the dot product, so that xᵀ(A x) can be summed on the way.
//!
//! Bytes: 12 per entry, 8 per row pointer, and x and y once each: 12 nnz + 24 n.
#![allow(unsafe_code)]

use super::normal::normal_residual;
use super::residual::residual;
use super::{Csr, CsrRef};
use crate::disjoint::DisjointSlice;
use crate::error::BackendError;
use crate::operator::{LinearOperator, NormalResidual, ResidualNorms};
use crate::scalar::Scalar;
use crate::simd::{Lanes, dispatch};
use crate::space::{CHUNK, LANES, Space, Threads, combine_lanes, require_same};
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
    if TypeId::of::<T>() == TypeId::of::<f64>() && a.ncols() <= i32::MAX as usize {
        // SAFETY: T is f64, as the line above found.
        let (a, x, y) = unsafe {
            (
                std::mem::transmute::<CsrRef<'_, T>, CsrRef<'_, f64>>(a),
                std::mem::transmute::<&[T], &[f64]>(x),
                std::mem::transmute::<&mut [T], &mut [f64]>(y),
            )
        };
        // SAFETY: columns are below x.len(), which is below 2³¹, by the invariant of a pattern and the lines above.
        return unsafe { multiply_f64(a, rows, x, y) };
    }
    multiply_plain(a, rows, x, y);
}

fn multiply_plain<T: Scalar>(a: CsrRef<'_, T>, rows: Range<usize>, x: &[T], y: &mut [T]) {
    for (i, y) in rows.zip(y) {
        let (columns, values) = a.row(i);
        let mut lanes = [T::ZERO; LANES];
        for (k, (&j, &v)) in columns.iter().zip(values).enumerate() {
            lanes[k % LANES] += v * x[j as usize];
        }
        *y = combine_lanes(lanes);
    }
}

dispatch! {
    /// y = A x for some rows.
    ///
    /// # Safety
    /// Every column of `a` is below `x.len()`, which is at most 2³¹.
    unsafe fn multiply_f64(a: CsrRef<'_, f64>, rows: Range<usize>, x: &[f64], y: &mut [f64]) = multiply_with;
}

#[inline(always)]
unsafe fn multiply_with<L: Lanes>(a: CsrRef<'_, f64>, rows: Range<usize>, x: &[f64], y: &mut [f64]) {
    let (col_idx, values) = (a.col_idx().as_ptr(), a.values().as_ptr());
    for (i, y) in rows.zip(y) {
        let (mut k, end) = (a.row_ptr()[i], a.row_ptr()[i + 1]);
        // SAFETY: masks leave out what is past the end of the row, which is within the arrays by the row pointer; x is read at
        // columns of the pattern.
        unsafe {
            let mut sum = L::splat(0.0);
            while k < end {
                let mask: u8 = if end - k >= LANES { u8::MAX } else { (1u8 << (end - k)) - 1 };
                let x = L::gather(mask, col_idx.add(k), x.as_ptr());
                sum = L::add(sum, L::mul(L::load_some(mask, values.add(k)), x));
                k += LANES;
            }
            *y = L::sum(sum);
        }
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
                Ok(space.sum_chunks_of(self.nrows(), divide, |rows| {
                    // SAFETY: every chunk is visited once, by one member.
                    let y = unsafe { y.get(rows.clone()) };
                    multiply_rows(a, rows.clone(), x, y);
                    crate::space::dot_chunk(&x[rows], y)
                }))
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
        require_same("x and the columns of A", &x.len(), &self.ncols())?;
        require_same("b and the rows of A", &b.len(), &self.nrows())?;
        require_same("r and the rows of A", &r.len(), &self.nrows())?;
        Ok(residual(space, self, (x, b), precise, r))
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

    /// Rows of every length from 0 to 40.
    fn matrix() -> Csr<f64> {
        let n = 5000;
        let a = Csr::from_rows(
            n,
            n,
            |i| i % 41,
            |i, c, v| {
                for k in 0..c.len() {
                    c[k] = ((i + k * 113) % (n / 41)) as u32 + (k * (n / 41)) as u32;
                    v[k] = ((i * 31 + k) as f64).sin();
                }
            },
        );
        a.unwrap()
    }

    #[test]
    fn every_instruction_set_and_number_of_threads_gives_the_same_bits() {
        let a = matrix();
        let x: Vec<f64> = (0..a.ncols()).map(|j| ((j * 17) as f64).cos()).collect();
        let mut expected = vec![0.0; a.nrows()];
        multiply_plain(a.view(), 0..a.nrows(), &x, &mut expected);
        let mut y = vec![f64::NAN; a.nrows()];
        // SAFETY: the columns are those of a pattern.
        unsafe { multiply_with::<crate::simd::Plain>(a.view(), 0..a.nrows(), &x, &mut y) };
        assert_eq!(y, expected);
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") {
            y.fill(f64::NAN);
            // SAFETY: the processor has AVX2, and the columns are those of a pattern.
            unsafe { multiply_with::<crate::simd::Avx2>(a.view(), 0..a.nrows(), &x, &mut y) };
            assert_eq!(y, expected);
        }
        let dot = Threads::new(1).dot(&x, &expected).unwrap();
        for threads in [1, 2, 3, 4, 8] {
            let space = Threads::new(threads);
            y.fill(f64::NAN);
            a.apply(&space, &x, &mut y, &mut ()).unwrap();
            assert_eq!(y, expected, "{threads} threads");
            y.fill(f64::NAN);
            assert_eq!(a.apply_dot(&space, &x, &mut y, &mut ()).unwrap().to_bits(), dot.to_bits());
            assert_eq!(y, expected, "{threads} threads, fused");
        }
    }

    #[test]
    fn single_precision_is_the_plain_code() {
        let a = matrix().cast::<f32>();
        let x = vec![1.0f32; a.ncols()];
        let (mut y, mut expected) = (vec![0.0; a.nrows()], vec![0.0; a.nrows()]);
        a.apply(&Threads::new(2), &x, &mut y, &mut ()).unwrap();
        multiply_plain(a.view(), 0..a.nrows(), &x, &mut expected);
        assert_eq!(y, expected);
    }
}
