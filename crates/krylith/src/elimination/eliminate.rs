//! Incomplete elimination of one row on a fixed pattern.
//!
//! Row i of M = (I + L) D (I + U), from the first row down. Cholesky, with wₖ = lᵢₖ dₖ:
//!
//!   for k < i in the pattern:  wₖ = aᵢₖ − Σ wₘ lₖₘ (m < k in both rows);  lᵢₖ = wₖ / dₖ
//!   dᵢ = aᵢᵢ − Σ wₖ lᵢₖ
//!
//! LU; w holds the row of A and is eliminated from left to right:
//!
//!   for k < i in the pattern:  wₖ;  lᵢₖ = wₖ / dₖ;  wⱼ −= wₖ uₖⱼ for j > k in both patterns
//!   dᵢ = wᵢ − ω Σ (what fell outside of the pattern);  uᵢⱼ = wⱼ / dᵢ for j > i
//!
//! U is scaled by D, unlike in the usual (I + L)(D U): both triangles then have a unit diagonal and one code applies all
//! factors. Where only diagonals are updated, wₖ and wⱼ stay A's; where nothing is, dᵢ is aᵢᵢ times a number. Entries of A outside of the pattern count as fallen outside.
//! Where L and U are stored narrower than the numbers are computed, a row is rounded whenever an entry of it is stored, that is
//! after every row subtracted from it; pivots are summed in `f64`.
//!
//! References: Meijerink & van der Vorst 1977, doi:10.1090/S0025-5718-1977-0438681-4; Saad, Iterative Methods for Sparse Linear
//! Systems, 2nd ed., algorithms 10.4 and 10.7.
#![allow(unsafe_code)]

use super::form::{self, Form};
use super::pivot::FirstBadPivot;
use crate::disjoint::DisjointSlice;
use crate::matrix::{Csr, Pattern};
use crate::scalar::Real;

/// The matrix and the factor in the making, computed in `T` and stored in `S`.
pub struct Rows<'a, T, S> {
    pub(super) a: &'a Csr<T>,
    pub(super) form: Form,
    pub(super) shift: f64,
    pub(super) lower: &'a Pattern,
    pub(super) upper: &'a Pattern,
    pub(super) l: DisjointSlice<'a, S>,
    pub(super) u: DisjointSlice<'a, S>,
    pub(super) inverse: DisjointSlice<'a, T>,
    pub(super) bad: &'a FirstBadPivot,
}

/// What a row is about to become.
struct Begun {
    pivot: f64,
    size: f64,
    /// What fell outside of the pattern.
    outside: f64,
}

#[inline(always)]
fn wide<S: Real>(value: S) -> f64 {
    value.to_f64()
}

impl<T: Real, S: Real> Rows<'_, T, S> {
    /// Computes row i. A bad pivot is left in the place of its inverse and its row, if it is the smallest so far, in `bad`; rows
    /// after that one are left out, since nothing before it needs them.
    ///
    /// # Safety
    /// Each row is computed once; the rows of its lower pattern are finished and visible to this thread.
    pub(super) unsafe fn eliminate(&self, i: usize) {
        if self.bad.is_before(i) {
            return;
        }
        // SAFETY: these are the places of row i, which nobody else touches before it is finished.
        let (l, u) = unsafe { (self.l.get(self.lower.row_range(i)), self.u.get(self.upper.row_range(i))) };
        let begun = self.begin(i, l, u);
        // SAFETY: the rows of the lower pattern are finished.
        let pivot = unsafe {
            match self.form.computes_both() {
                true => self.lu(i, l, u, &begun),
                false => self.cholesky(i, l, &begun),
            }
        };
        let inverse = 1.0 / pivot;
        let mut finite = l.iter().all(|v| v.is_finite());
        if self.form.computes_both() {
            for v in &mut *u {
                *v = S::from_f64(wide(*v) * inverse);
            }
            finite &= u.iter().all(|v| v.is_finite());
        }
        let good = finite && form::good(self.form.kind, pivot, begun.size);
        if !good {
            self.bad.report(i);
        }
        // SAFETY: the place of row i.
        unsafe { self.inverse.write(i, T::from_f64(if good { inverse } else { pivot })) };
    }

    /// Takes over row i of A.
    fn begin(&self, i: usize, l: &mut [S], u: &mut [S]) -> Begun {
        let (columns, values) = self.a.row(i);
        let (mut diagonal, mut largest, mut outside) = (0.0, 0.0, 0.0);
        l.fill(S::ZERO);
        u.fill(S::ZERO);
        let sides = [(self.lower.row(i), l), (self.upper.row(i), u)];
        let [mut below, mut above] = sides.map(|(columns, to)| Merge { columns, to, at: 0 });
        let both = self.form.computes_both();
        for (&j, &value) in columns.iter().zip(values) {
            let value = value.to_f64();
            largest = f64::max(largest, value.abs());
            let placed = match (j as usize).cmp(&i) {
                std::cmp::Ordering::Less => below.put(j, value),
                std::cmp::Ordering::Equal => {
                    diagonal = value;
                    true
                }
                std::cmp::Ordering::Greater => !both || above.put(j, value),
            };
            if !placed {
                outside -= value;
            }
        }
        let size = form::size(self.form.kind, diagonal, largest);
        Begun { pivot: form::shifted(self.form.kind, diagonal, self.shift, size), size, outside }
    }

    /// # Safety
    /// The rows of the lower pattern are finished and visible to this thread.
    unsafe fn cholesky(&self, i: usize, w: &mut [S], begun: &Begun) -> f64 {
        let columns = self.lower.row(i);
        for k in 0..if self.form.keeps_triangles() { 0 } else { w.len() } {
            let row = columns[k] as usize;
            // SAFETY: row k of the lower pattern is finished.
            let finished = unsafe { self.l.get_shared(self.lower.row_range(row)) };
            // Σ wₘ lₖₘ over the columns m < k of both rows, from left to right.
            let (mut m, mut sum) = (0, wide(w[k]));
            for (&j, &l) in self.lower.row(row).iter().zip(finished) {
                while m < k && columns[m] < j {
                    m += 1;
                }
                if m < k && columns[m] == j {
                    sum -= wide(w[m]) * wide(l);
                }
            }
            w[k] = S::from_f64(sum);
        }
        let mut pivot = begun.pivot;
        for (w, &k) in w.iter_mut().zip(columns) {
            // SAFETY: row k of the lower pattern is finished.
            let l = wide(*w) * unsafe { self.inverse.read(k as usize) }.to_f64();
            pivot -= wide(*w) * l;
            *w = S::from_f64(l);
        }
        self.form.kept_diagonal().map_or(pivot, |share| share * begun.pivot)
    }

    /// # Safety
    /// The rows of the lower pattern are finished and visible to this thread.
    unsafe fn lu(&self, i: usize, l: &mut [S], u: &mut [S], begun: &Begun) -> f64 {
        let (l_columns, u_columns) = (self.lower.row(i), self.upper.row(i));
        let diagonal_only = self.form.keeps_triangles();
        let (mut pivot, mut outside) = (begun.pivot, begun.outside);
        for k in 0..l.len() {
            let row = l_columns[k] as usize;
            let w = wide(l[k]);
            // SAFETY: row k of the lower pattern is finished.
            let (finished, inverse) =
                unsafe { (self.u.get_shared(self.upper.row_range(row)), self.inverse.read(row).to_f64()) };
            let mut below = Merge { columns: l_columns, to: &mut *l, at: k + 1 };
            let mut above = Merge { columns: u_columns, to: &mut *u, at: 0 };
            for (&j, &v) in self.upper.row(row).iter().zip(finished) {
                let change = w * wide(v);
                let placed = match (j as usize).cmp(&i) {
                    std::cmp::Ordering::Equal => {
                        pivot -= change;
                        true
                    }
                    _ if diagonal_only => true,
                    std::cmp::Ordering::Less => below.subtract(j, change),
                    std::cmp::Ordering::Greater => above.subtract(j, change),
                };
                if !placed {
                    outside += change;
                }
            }
            l[k] = S::from_f64(w * inverse);
        }
        match self.form.kept_diagonal() {
            Some(share) => share * begun.pivot,
            None => pivot - self.form.omega() * outside,
        }
    }
}

/// A row of a triangle that another row is merged into, columns going up.
struct Merge<'a, S> {
    columns: &'a [u32],
    to: &'a mut [S],
    at: usize,
}

impl<S: Real> Merge<'_, S> {
    #[inline(always)]
    fn find(&mut self, j: u32) -> Option<&mut S> {
        while self.at < self.columns.len() && self.columns[self.at] < j {
            self.at += 1;
        }
        (self.columns.get(self.at) == Some(&j)).then(|| &mut self.to[self.at])
    }

    #[inline(always)]
    fn put(&mut self, j: u32, value: f64) -> bool {
        self.find(j).map(|to| *to = S::from_f64(value)).is_some()
    }

    #[inline(always)]
    fn subtract(&mut self, j: u32, change: f64) -> bool {
        self.find(j).map(|to| *to = S::from_f64(to.to_f64() - change)).is_some()
    }
}

/// Copies row j of Xᵀ into `to`: entry (i, j) of X for every i in `columns`.
///
/// # Safety
/// X is finished and visible to this thread.
pub(super) unsafe fn transpose_row<S: Real>(
    x: &DisjointSlice<'_, S>,
    pattern: &Pattern,
    j: usize,
    columns: &[u32],
    to: &mut [S],
) {
    for (to, &i) in to.iter_mut().zip(columns) {
        let place = pattern.find(i as usize, j).expect("one pattern is the other transposed");
        // SAFETY: X is finished.
        *to = unsafe { x.read(place) };
    }
}
