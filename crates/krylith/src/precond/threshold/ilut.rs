//! ILUT and ILUTP: M = (I + L) D (I + U) ≈ A, row by row, without what a [`Rule`] calls small.
//!
//! Row i; w holds the row of A, places in rising order:
//!
//!   1. for k < i while w has wₖ:  lᵢₖ = wₖ / dₖ, unless small;  wⱼ −= lᵢₖ (dₖ uₖⱼ) for j > k, no new wⱼ if small
//!   2. with pivoting, the column of the largest |wⱼ|, j > i, changes places with column i if permtol |wⱼ| > |wᵢ|
//!   3. dᵢ = wᵢ, replaced if bad
//!   4. of lᵢₖ, and of wⱼ, j > i, that are not small, the largest are kept
//!   5. uᵢⱼ = wⱼ / dᵢ, after all rows
//!
//! Cost: a row takes as long as the rows of U that it subtracts, and log of its length for each k, which come from a heap.
//! Selection is linear. Needs 9 bytes per row (f64) of work besides the factor; 8 more for the order of columns.
//!
//! Breakdowns: a bad pivot is replaced and noted in [`Repairs`]; whatever is not finite, and a pivot in a row of zeros, ends in
//! `BadPivot`. A missing diagonal entry counts as zero.
//!
//! Deviation from SPARSKIT's ILUTP: pivots are chosen before entries are dropped, so that |dᵢ| ≥ permtol |wⱼ| for all j; there are no
//! blocks of columns within which pivots are sought.
//! Reference: Saad 1994, doi:10.1002/nla.1680010405; Iterative Methods for Sparse Linear Systems, 2nd ed., 10.4.

use super::columns::{Columns, Exchanged, Given};
use super::norm::larger;
use super::rows::{Budget, Rows};
use super::rule::{Limits, Rule};
use super::select::{Entry, keep_largest};
use super::{Repairs, Triangles};
use crate::error::SetupError;
use crate::matrix::CsrRef;
use crate::scalar::Real;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What [`ilut`] drops, and what it may take.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct IlutOptions {
    /// What is small, and how much is kept.
    pub rule: Rule,
    /// τ; a negative one, or NaN, counts as 0.
    pub tau: f64,
    /// Column pivoting: an entry times this, between 0 and 1, must exceed the pivot to replace it. 0 never does, 1 always takes
    /// the largest; `None` does not pivot.
    pub permtol: Option<f64>,
    /// Bytes that the factor may take.
    pub max_bytes: u64,
}

/// An incomplete factor of a square matrix.
///
/// ```
/// use krylith::precond::threshold::{IlutOptions, Rule, ilut};
/// let a = "convection3d:10".parse::<krylith::gallery::Problem>()?.generate()?;
/// let rule = Rule::nvidia(a.view(), 5); // NVIDIA's ilut(5, 1e-3)
/// let m = ilut(a.view(), &IlutOptions { rule, tau: 1e-3, permtol: None, max_bytes: 1 << 30 })?;
/// assert!(m.nnz() > a.nnz());
/// assert_eq!(m.repairs.count, 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn ilut<T: Real>(a: CsrRef<'_, T>, options: &IlutOptions) -> Result<Triangles<T>, SetupError> {
    a.require_square()?;
    let n = a.nrows();
    let per_row = if options.permtol.is_some() { 8 } else { 0 };
    let budget = Budget::new::<T>(n, 1, per_row, options.max_bytes)?;
    match options.permtol {
        None => Elimination::new(a, options, Given, budget).run(),
        Some(tolerance) => Elimination::new(a, options, Exchanged::new(n, tolerance), budget).run(),
    }
}

/// The rows so far, and the row in the making.
struct Elimination<'a, T, C> {
    a: CsrRef<'a, T>,
    rule: Rule,
    tau: T,
    columns: C,
    budget: Budget,
    /// By places.
    lower: Rows<T>,
    /// D U, by columns of A until the end.
    upper: Rows<T>,
    /// dᵢ.
    pivots: Vec<T>,
    repairs: Repairs,
    /// w by columns of A, and where it has entries.
    w: Vec<T>,
    present: Vec<bool>,
    /// Places before i that w has, smallest first.
    before: BinaryHeap<Reverse<u32>>,
    /// Columns after place i that w has.
    after: Vec<u32>,
    /// Entries to be kept, by places.
    left: Vec<Entry<T>>,
    right: Vec<Entry<T>>,
}

impl<'a, T: Real, C: Columns<T>> Elimination<'a, T, C> {
    fn new(a: CsrRef<'a, T>, options: &IlutOptions, columns: C, budget: Budget) -> Self {
        let n = a.nrows();
        Elimination {
            a,
            rule: options.rule,
            tau: T::from_f64(options.tau.max(0.0)),
            columns,
            budget,
            lower: Rows::new(n),
            upper: Rows::new(n),
            pivots: Vec::with_capacity(n),
            repairs: Repairs::default(),
            w: vec![T::ZERO; n],
            present: vec![false; n],
            before: BinaryHeap::new(),
            after: Vec::new(),
            left: Vec::new(),
            right: Vec::new(),
        }
    }

    fn run(mut self) -> Result<Triangles<T>, SetupError> {
        for i in 0..self.a.nrows() {
            let limits = self.begin(i)?;
            self.eliminate(i, &limits)?;
            let largest = self.choose_pivot(i)?;
            self.settle_pivot(i, &limits)?;
            self.keep(i, larger(limits.upper, limits.upper_to_largest * largest))?;
        }
        self.finish()
    }

    /// w = row i of A.
    fn begin(&mut self, i: usize) -> Result<Limits<T>, SetupError> {
        let (columns, values) = self.a.row(i);
        if let Some(&value) = values.iter().find(|v| !v.is_finite()) {
            return Err(bad(i, value));
        }
        self.after.clear();
        for (&c, &v) in columns.iter().zip(values) {
            self.insert(i, c, v);
        }
        let diagonal = self.columns.column(i as u32);
        if !self.present[diagonal as usize] {
            self.insert(i, diagonal, T::ZERO);
        }
        Ok(self.rule.limits(values, self.tau))
    }

    /// A new entry of w.
    #[inline]
    fn insert(&mut self, i: usize, c: u32, value: T) {
        self.w[c as usize] = value;
        self.present[c as usize] = true;
        match self.columns.place(c) {
            k if (k as usize) < i => self.before.push(Reverse(k)),
            k if k as usize > i => self.after.push(c),
            _ => {}
        }
    }

    /// Step 1.
    fn eliminate(&mut self, i: usize, limits: &Limits<T>) -> Result<(), SetupError> {
        self.left.clear();
        while let Some(Reverse(k)) = self.before.pop() {
            let c = self.columns.column(k) as usize;
            self.present[c] = false;
            if self.w[c].abs() <= limits.eliminated {
                continue;
            }
            let l = self.w[c] / self.pivots[k as usize];
            if !l.is_finite() {
                return Err(bad(i, l));
            }
            if l.abs() <= limits.multiplier {
                continue;
            }
            self.left.push((k, l));
            for at in self.upper.range(k as usize) {
                let (c, change) = (self.upper.col_idx[at], l * self.upper.values[at]);
                if self.present[c as usize] {
                    self.w[c as usize] -= change;
                } else if change.abs() > limits.fill || !change.is_finite() {
                    self.insert(i, c, -change);
                }
            }
        }
        Ok(())
    }

    /// Step 2; the largest |wⱼ|, j ≥ i. Of equal ones the smaller place is taken.
    fn choose_pivot(&mut self, i: usize) -> Result<T, SetupError> {
        let diagonal = self.columns.column(i as u32);
        let pivot = self.w[diagonal as usize];
        if !pivot.is_finite() {
            return Err(bad(i, pivot));
        }
        let (mut largest, mut at) = (T::ZERO, None);
        for (k, &c) in self.after.iter().enumerate() {
            let value = self.w[c as usize];
            if !value.is_finite() {
                return Err(bad(i, value));
            }
            let further_left = |at: Option<usize>| {
                at.is_some_and(|at| self.columns.place(c) < self.columns.place(self.after[at]))
            };
            if value.abs() > largest || (value.abs() == largest && further_left(at)) {
                (largest, at) = (value.abs(), Some(k));
            }
        }
        if let Some(at) = at
            && self.columns.prefers(largest, pivot)
        {
            self.columns.swap(i as u32, self.columns.place(self.after[at]));
            self.after[at] = diagonal;
        }
        Ok(larger(largest, pivot.abs()))
    }

    /// Step 3.
    fn settle_pivot(&mut self, i: usize, limits: &Limits<T>) -> Result<(), SetupError> {
        let diagonal = self.columns.column(i as u32) as usize;
        self.present[diagonal] = false;
        let found = self.w[diagonal];
        let divides = |d: T| d != T::ZERO && d.is_finite() && (T::ONE / d).is_finite();
        let mut pivot = found;
        if found.abs() <= limits.pivot || !divides(found) {
            pivot = self.rule.replacement(found, limits.size, self.tau);
            self.repairs.note(i, found.to_f64());
        }
        if !divides(pivot) {
            return Err(bad(i, found));
        }
        self.pivots.push(pivot);
        Ok(())
    }

    /// Step 4.
    fn keep(&mut self, i: usize, small: T) -> Result<(), SetupError> {
        self.right.clear();
        let inverse = T::ONE / self.pivots[i];
        for &c in &self.after {
            self.present[c as usize] = false;
            let value = self.w[c as usize];
            if value.abs() > small {
                self.right.push((self.columns.place(c), value));
            }
        }
        let used = self.lower.nnz() + self.upper.nnz() + i + 1;
        let (l, u) = self.rule.quota(self.left.len(), self.right.len(), self.a.row_ptr()[i + 1], used);
        keep_largest(&mut self.left, l, |e| e.1.abs());
        keep_largest(&mut self.right, u, |e| e.1.abs());
        if self.right.iter().any(|&(_, value)| !(value * inverse).is_finite()) {
            return Err(bad(i, self.pivots[i]));
        }
        let Elimination { columns, left, right, budget, .. } = self;
        self.lower.push(left.iter().copied(), budget)?;
        self.upper.push(right.iter().map(|&(k, value)| (columns.column(k), value)), budget)
    }

    /// Step 5, and the columns of U by places.
    fn finish(mut self) -> Result<Triangles<T>, SetupError> {
        for i in 0..self.pivots.len() {
            let inverse = T::ONE / self.pivots[i];
            self.pivots[i] = inverse;
            let range = self.upper.range(i);
            let (columns, values) = self.upper.row(i);
            self.right.clear();
            self.right.extend(
                columns.iter().zip(values).map(|(&c, &value)| (self.columns.place(c), value * inverse)),
            );
            self.right.sort_unstable_by_key(|e| e.0);
            for (at, &(k, value)) in range.zip(&self.right) {
                (self.upper.col_idx[at], self.upper.values[at]) = (k, value);
            }
        }
        Ok(Triangles {
            lower: self.lower.finish(),
            inverse: self.pivots,
            upper: self.upper.finish(),
            columns: self.columns.finish()?,
            repairs: self.repairs,
        })
    }
}

fn bad<T: Real>(row: usize, value: T) -> SetupError {
    SetupError::BadPivot { row, value: value.to_f64() }
}
