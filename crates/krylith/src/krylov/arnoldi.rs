//! Arnoldi's process: an orthonormal basis V of a Krylov space, and the Hessenberg matrix H of the operator on it.
//!
//! Every new vector is made orthogonal to the basis by classical Gram–Schmidt: h = Vᴴw, w −= V h. In the same sweep over V
//! what cancellation left is measured, c = Vᴴw and ‖w‖². Where ‖c‖ > √ε ‖w‖ it is removed as well, w −= V c and h += c, which
//! makes the vector orthogonal to rounding (Giraud, Langou, Rozložník & van den Eshof 2005, doi:10.1007/s00211-005-0615-4).
//!
//! Otherwise it stays, and A V = V H + w e* holds all the same: h is what was removed. A residual V z then has the norm of z up
//! to a relative error of about √ε, at any size of the residual, so neither the iterates nor the accuracy to be had suffer; that
//! √ε is enough is known from Lanczos' process (Simon 1984, doi:10.1090/S0025-5718-1984-0725988-X). A sweep over V is a third of
//! the work.
//!
//! Per step: 2 synchronisations. After a second pass ‖w − V c‖² = ‖w‖² − ‖c‖²; only where that would cancel (‖c‖² > ‖w‖²/4) it
//! is computed by a third one.

use super::hessenberg::{Column, Hessenberg};
use super::{Status, judge};
use crate::error::BackendError;
use crate::memory::large_pages;
use crate::observe::{Iteration, Observer};
use crate::scalar::{Real, Scalar};
use crate::space::Space;
use crate::stop::StoppingCriterion;
use std::ops::ControlFlow;

pub(super) struct Arnoldi<S: Space> {
    /// m + 1 vectors.
    v: Vec<S::Vector>,
    /// The new column of H.
    h: Vec<S::Scalar>,
    /// The coefficients of one pass, and ‖w‖².
    c: Vec<S::Scalar>,
    /// What the first pass removes.
    first: Vec<S::Scalar>,
    least_squares: Hessenberg<S::Scalar>,
}

impl<S: Space> Arnoldi<S> {
    /// Room for a space of dimension m, at least 1.
    pub(super) fn new(space: &S, size: &S::Size, m: usize) -> Result<Self, BackendError> {
        let m = m.max(1);
        // H, the only array that grows with the square of m.
        let entries = m.checked_add(1).and_then(|k| k.checked_mul(m));
        if !entries.is_some_and(|entries| large_pages::has_room::<S::Scalar>(entries / 2)) {
            return Err(BackendError::Failed {
                what: format!("no memory for a restart after {m} iterations"),
            });
        }
        Ok(Arnoldi {
            v: (0..=m).map(|_| space.zeros(size)).collect::<Result<_, _>>()?,
            h: vec![S::Scalar::ZERO; m],
            c: vec![S::Scalar::ZERO; m + 1],
            first: vec![S::Scalar::ZERO; m],
            least_squares: Hessenberg::new(m),
        })
    }

    /// Where the first vector goes, not yet normalised.
    pub(super) fn first(&mut self) -> &mut S::Vector {
        &mut self.v[0]
    }

    /// v₁ /= β, its norm; H without columns. `other` is any finite vector of the size: a space scales by `axpby`.
    pub(super) fn start(&mut self, space: &S, beta: S::Real, other: &S::Vector) -> Result<(), BackendError> {
        self.least_squares.start(beta);
        let scale = S::Scalar::from_real(S::Real::ONE / beta);
        space.axpby(S::Scalar::ZERO, other, scale, &mut self.v[0])
    }

    /// The dimension reached: columns of H.
    pub(super) fn dimension(&self) -> usize {
        self.least_squares.columns()
    }

    /// The last vector of the basis, and where w = A M⁻¹ v goes before [`advance`](Self::advance).
    pub(super) fn ends(&mut self) -> (&S::Vector, &mut S::Vector) {
        let (basis, rest) = self.v.split_at_mut(self.least_squares.columns() + 1);
        (&basis[basis.len() - 1], &mut rest[0])
    }

    /// Ends step j once w = A M⁻¹ vⱼ is there: a column of H, a vector of the basis, a report. `Break` ends the solve or, with
    /// `None`, the cycle; the last step of a cycle is counted, but left to the true residual to report.
    pub(super) fn advance(
        &mut self,
        space: &S,
        now: &mut Iteration<S::Real>,
        stop: &mut (impl StoppingCriterion<S::Real> + ?Sized),
        observer: &mut (impl Observer<S::Real, S::Vector> + ?Sized),
    ) -> Result<ControlFlow<Option<Status>>, BackendError> {
        let column = self.extend(space)?;
        match column {
            Column::NotFinite => return Ok(ControlFlow::Break(Some(Status::NotFinite))),
            Column::Singular => {
                return Ok(ControlFlow::Break(Some(Status::Breakdown { what: "H is singular" })));
            }
            Column::Residual(norm) => now.residual_norm = norm,
            Column::Last => {}
        }
        now.index += 1;
        if column == Column::Last || self.least_squares.is_full() {
            return Ok(ControlFlow::Break(None));
        }
        Ok(match judge(now, stop, observer) {
            Some(status) => ControlFlow::Break(Some(status)),
            None => ControlFlow::Continue(()),
        })
    }

    /// Makes w the next vector of the basis and gives H its column.
    fn extend(&mut self, space: &S) -> Result<Column<S::Real>, BackendError> {
        let k = self.dimension() + 1;
        let Arnoldi { v, h, c, first, least_squares } = self;
        // h = Vᴴw;  w −= V h;  c = Vᴴw, and ‖w‖²
        let (basis, rest) = v.split_at_mut(k);
        space.basis_dots(basis, &rest[0], &mut h[..k])?;
        first.iter_mut().zip(&h[..k]).for_each(|(first, h)| *first = -*h);
        space.combine_dots(&first[..k], basis, &mut rest[0], &mut c[..=k])?;
        // h_{k+1,k} = ‖w‖
        let left = c[..k].iter().fold(S::Real::ZERO, |sum, &c| sum + (c.conj() * c).real());
        let square = c[k].real();
        let mut norm = square.sqrt();
        // Not a number: the norm will tell.
        if left > square * S::Real::EPSILON {
            // w −= V c;  h += c
            for (h, c) in h[..k].iter_mut().zip(&mut *c) {
                *h += *c;
                *c = -*c;
            }
            space.combine(&c[..k], basis, &mut rest[0])?;
            let cancels = left > square * S::Real::from_f64(0.25);
            norm = if cancels { space.norm(&rest[0])? } else { (square - left).sqrt() };
        }
        let column = least_squares.push(&h[..k], norm);
        // v_{k+1} = w / h_{k+1,k}
        if matches!(column, Column::Residual(_)) && !least_squares.is_full() {
            let scale = S::Scalar::from_real(S::Real::ONE / norm);
            space.axpby(S::Scalar::ZERO, &basis[0], scale, &mut rest[0])?;
        }
        Ok(column)
    }

    /// The y that minimises ‖β e₁ − H y‖.
    pub(super) fn coefficients(&mut self) -> &[S::Scalar] {
        self.least_squares.solve()
    }

    /// V y, in the place of the vector after the basis, which is lost.
    pub(super) fn combination(&mut self, space: &S) -> Result<&S::Vector, BackendError> {
        let (basis, rest) = self.v.split_at_mut(self.least_squares.columns());
        space.fill(S::Scalar::ZERO, &mut rest[0])?;
        space.combine(self.least_squares.solve(), basis, &mut rest[0])?;
        Ok(&rest[0])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::Threads;

    /// On a diagonal matrix with eigenvalues from 1 to 10⁻¹², whose Krylov vectors soon point the same way.
    #[test]
    fn the_basis_is_orthogonal_and_the_relation_exact() {
        const N: usize = 300;
        const M: usize = 25;
        let space = Threads::<f64>::new(2);
        let d: Vec<f64> = (0..N).map(|i| 10f64.powf(-12.0 * i as f64 / N as f64)).collect();
        let mut arnoldi = Arnoldi::new(&space, &N, M).unwrap();
        arnoldi.first().fill(1.0);
        arnoldi.start(&space, (N as f64).sqrt(), &vec![0.0; N]).unwrap();
        let dot = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
        for k in 1..M {
            let (v, w) = arnoldi.ends();
            w.iter_mut().zip(v).zip(&d).for_each(|((w, v), d)| *w = d * v);
            let mut rest = w.clone();
            let size = dot(w, w).sqrt();
            assert!(matches!(arnoldi.extend(&space).unwrap(), Column::Residual(_)), "{k}");
            // A v − V h is a multiple of the new vector.
            for (h, v) in arnoldi.h[..k].iter().zip(&arnoldi.v) {
                rest.iter_mut().zip(v).for_each(|(rest, v)| *rest -= h * v);
            }
            let new = &arnoldi.v[k];
            let along = dot(&rest, new);
            rest.iter_mut().zip(new).for_each(|(rest, v)| *rest -= along * v);
            let error = dot(&rest, &rest).sqrt() / size;
            assert!(error <= 1e-14, "{k}: {error:e}");
            assert!((dot(new, new) - 1.0).abs() < 1e-14, "{k}: {}", dot(new, new));
            let off: f64 = arnoldi.v[..k].iter().map(|v| dot(v, new).powi(2)).sum();
            assert!(off.sqrt() <= 1.5e-8, "{k}: {off:e}");
        }
    }
}
