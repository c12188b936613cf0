//! ICT: M = (I + L) D (I + L)ᵀ ≈ A, symmetric positive definite, column by column, without small entries.
//!
//! Column j; w holds the column of A from the diagonal down, with aⱼⱼ + shift · sizeⱼ on it, where sizeⱼ = aⱼⱼ if that is positive
//! and the largest entry of the column otherwise (see `form`):
//!
//!   1. for k < j with lⱼₖ:  wᵢ −= lᵢₖ (dₖ lⱼₖ) for i ≥ j
//!   2. dⱼ = wⱼ, which must be positive
//!   3. wᵢ is dropped if |sᵢ wᵢ sⱼ| ≤ τ ‖S A S eⱼ‖₂, where S = diag(size)^(−1/2); of the rest the p largest |sᵢ wᵢ| are kept
//!   4. lᵢⱼ = wᵢ / dⱼ
//!
//! What is small is measured in the matrix scaled to a unit diagonal, so that scaling A symmetrically scales M and nothing else.
//! sⱼ stands on both sides of step 3 and is left out.
//!
//! The columns k of step 1 come from linked lists: a column waits in the list of the next row it has. Each list is last in, first
//! out, which depends on the pattern of L alone. Cost: a column takes as long as the columns it subtracts; selection is linear,
//! and what is kept is sorted. Needs 33 bytes per row (f64) of work besides the factor.
//!
//! Row j of A from the diagonal on is read as the column; A is taken to be symmetric, and its pattern must be. L is the transpose of U, entry by entry.
//! Breakdown: the first dⱼ that is not positive, or not finite, is `BadPivot`; a larger shift (Manteuffel's) avoids it.
//! Reference: Manteuffel 1980, doi:10.1090/S0025-5718-1980-0559197-0; Jones & Plassmann 1995, doi:10.1145/200979.200981.

use super::norm;
use super::rows::{Budget, Rows};
use super::select::{Entry, keep_largest};
use super::{Repairs, Triangles};
use crate::elimination::form::{self, Kind};
use crate::error::SetupError;
use crate::matrix::CsrRef;
use crate::scalar::Real;

/// What [`ict`] drops, and what it may take.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct IctOptions {
    /// τ; a negative one, or NaN, counts as 0.
    pub tau: f64,
    /// Entries that a column of L may have; `None` for any number.
    pub p: Option<usize>,
    /// The diagonal of A is enlarged by this multiple of the size of its rows: where it is positive, it is multiplied by 1 + shift.
    pub shift: f64,
    /// Bytes that the factor may take: both triangles and the diagonal.
    pub max_bytes: u64,
}

/// An incomplete factor of a symmetric positive definite matrix; U = Lᵀ to the bit.
///
/// ```
/// use krylith::precond::threshold::{IctOptions, ict};
/// let a = "poisson2d:30".parse::<krylith::gallery::Problem>()?.generate()?;
/// let m = ict(a.view(), &IctOptions { tau: 1e-3, p: Some(20), shift: 0.0, max_bytes: 1 << 30 })?;
/// assert_eq!(m.lower.transpose(), m.upper);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn ict<T: Real>(a: CsrRef<'_, T>, options: &IctOptions) -> Result<Triangles<T>, SetupError> {
    a.require_square()?;
    if !a.symmetry().pattern {
        return Err(SetupError::PatternNotSymmetric);
    }
    let n = a.nrows();
    let budget = Budget::new::<T>(n, 2, 0, options.max_bytes)?;
    let mut work = Columns::new(a, options, budget)?;
    for j in 0..n {
        work.begin(j)?;
        work.subtract(j);
        work.keep(j)?;
    }
    let upper = work.rows.finish();
    let inverse = work.pivots.into_iter().map(|d| T::ONE / d).collect();
    Ok(Triangles { lower: upper.transpose(), inverse, upper, columns: None, repairs: Repairs::default() })
}

/// No column waits, or no more behind this one. Column 2³² − 1 could only be the last, which has nothing below and never waits.
const END: u32 = u32::MAX;

/// The columns so far, and the one in the making.
struct Columns<'a, T> {
    a: CsrRef<'a, T>,
    tau: T,
    p: usize,
    shift: f64,
    budget: Budget,
    /// sizeᵢ^(−1/2).
    scale: Vec<T>,
    /// The columns of L, which are the rows of U.
    rows: Rows<T>,
    /// dⱼ.
    pivots: Vec<T>,
    /// The first column that waits for row i, the column behind column k, and where column k is.
    first: Vec<u32>,
    next: Vec<u32>,
    at: Vec<usize>,
    /// w, and where it has entries below the diagonal.
    w: Vec<T>,
    present: Vec<bool>,
    below: Vec<u32>,
    kept: Vec<Entry<T>>,
}

impl<'a, T: Real> Columns<'a, T> {
    fn new(a: CsrRef<'a, T>, options: &IctOptions, budget: Budget) -> Result<Self, SetupError> {
        let n = a.nrows();
        let mut scale = Vec::with_capacity(n);
        for row in 0..n {
            let d = a.find(row, row).ok_or(SetupError::MissingDiagonal { row })?;
            scale.push(T::ONE / size(a, row, d).sqrt());
        }
        Ok(Columns {
            a,
            tau: T::from_f64(options.tau.max(0.0)),
            p: options.p.unwrap_or(n),
            shift: options.shift,
            budget,
            scale,
            rows: Rows::new(n),
            pivots: Vec::with_capacity(n),
            first: vec![END; n],
            next: vec![END; n],
            at: vec![0; n],
            w: vec![T::ZERO; n],
            present: vec![false; n],
            below: Vec::new(),
            kept: Vec::new(),
        })
    }

    /// w = column j of A.
    fn begin(&mut self, j: usize) -> Result<(), SetupError> {
        let (columns, values) = self.a.row(j);
        if let Some(&value) = values.iter().find(|v| !v.is_finite()) {
            return Err(bad(j, value));
        }
        self.below.clear();
        for (&i, &v) in columns.iter().zip(values).filter(|&(&i, _)| i as usize >= j) {
            if i as usize == j {
                let size = size(self.a, j, v).to_f64();
                self.w[j] = T::from_f64(form::shifted(Kind::Cholesky, v.to_f64(), self.shift, size));
            } else {
                self.insert(i, v);
            }
        }
        Ok(())
    }

    #[inline]
    fn insert(&mut self, i: u32, value: T) {
        self.w[i as usize] = value;
        self.present[i as usize] = true;
        self.below.push(i);
    }

    /// Step 1; the columns used then wait for their next row.
    fn subtract(&mut self, j: usize) {
        let mut k = self.first[j];
        while k != END {
            let (column, following) = (k as usize, self.next[k as usize]);
            let (at, end) = (self.at[column], self.rows.range(column).end);
            let l = self.rows.values[at];
            let w = self.pivots[column] * l;
            self.w[j] -= l * w;
            for at in at + 1..end {
                let (i, change) = (self.rows.col_idx[at], self.rows.values[at] * w);
                if self.present[i as usize] {
                    self.w[i as usize] -= change;
                } else {
                    self.insert(i, -change);
                }
            }
            self.wait(k, at + 1, end);
            k = following;
        }
    }

    /// Column k waits for the row at this position, if it has one there.
    fn wait(&mut self, k: u32, at: usize, end: usize) {
        if at < end {
            let row = self.rows.col_idx[at] as usize;
            self.at[k as usize] = at;
            self.next[k as usize] = std::mem::replace(&mut self.first[row], k);
        }
    }

    /// Steps 2 to 4.
    fn keep(&mut self, j: usize) -> Result<(), SetupError> {
        let pivot = self.w[j];
        let inverse = T::ONE / pivot;
        if !(pivot > T::ZERO && pivot.is_finite() && inverse.is_finite()) {
            return Err(bad(j, pivot));
        }
        let (columns, values) = self.a.row(j);
        let Columns { scale, w, present, kept, .. } = self;
        let scaled = columns.iter().zip(values).map(|(&i, &v)| v * scale[i as usize]);
        let small = self.tau * norm::two(scaled);
        kept.clear();
        for &i in &self.below {
            present[i as usize] = false;
            let (value, size) = (w[i as usize], w[i as usize].abs() * scale[i as usize]);
            if !value.is_finite() {
                return Err(bad(j, value));
            }
            if size > small {
                kept.push((i, value));
            }
        }
        keep_largest(kept, self.p, |&(i, value)| value.abs() * scale[i as usize]);
        if kept.iter().any(|&(_, value)| !(value * inverse).is_finite()) {
            return Err(bad(j, pivot));
        }
        self.rows.push(kept.iter().map(|&(i, value)| (i, value * inverse)), &mut self.budget)?;
        self.pivots.push(pivot);
        let range = self.rows.range(j);
        self.wait(j as u32, range.start, range.end);
        Ok(())
    }
}

/// What the pivot of a row is measured against: its diagonal entry, if that is positive.
fn size<T: Real>(a: CsrRef<'_, T>, row: usize, diagonal: T) -> T {
    if diagonal > T::ZERO && diagonal.is_finite() {
        return diagonal;
    }
    let largest = norm::max(a.row(row).1.iter().copied());
    T::from_f64(form::size(Kind::Cholesky, diagonal.to_f64(), largest.to_f64()))
}

fn bad<T: Real>(row: usize, value: T) -> SetupError {
    SetupError::BadPivot { row, value: value.to_f64() }
}
