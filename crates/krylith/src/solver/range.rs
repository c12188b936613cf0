//! Proofs that a system has no answer in `f64`.
//!
//! For all x and y, yᵀ(b − A x) = yᵀb − (Aᵀy)ᵀx. Let aⱼ be the columns of A, D the diagonal matrix of their norms, and τ the tolerance. By Cauchy and
//! Schwarz every x whose residual is within τ has
//!
//!   ‖D x‖ ≥ (|yᵀb| − τ ‖y‖) / ‖D⁻¹Aᵀy‖.
//!
//! Rounding each entry of x to the nearest number changes A x by about ε/4 ‖D x‖. Other numbers nearby do better (`rounding`), by two digits in what was
//! seen; where ε ‖D x‖ is larger than τ by [`MARGIN`], none is taken to be within the tolerance, and y is the proof. The bound does not depend on the
//! scales of columns and has its own rounding in it. A small ‖Aᵀr‖ alone proves nothing where r is small as well.
//!
//! Candidates for y are the residual that no method could reduce, the rows of zeros of A, constants, and vectors from a complete factor
//! M = A + E, E the change of the pivots that were too small, by one of two iterations:
//!
//! * y := M⁻ᵀM⁻¹y is inverse iteration for the least eigenvalue of A Aᵀ, and needs a step or two where one singular value is much smaller than the others.
//! * y := y − M⁻ᵀ(Aᵀy) = M⁻ᵀEᵀy leaves left null vectors as they are and reduces everything else, at once where each of those pivots belongs to
//!   a null vector, however many there are. Where no pivot was too small, it has nothing but rounding.

use super::certify::Certifier;
use crate::engine::SolverSpace;
use crate::error::BackendError;
use crate::matrix::Csr;
use crate::operator::{LinearOperator, Preconditioner};
use crate::precond::direct::{DirectFactor, DirectSymbolic, SmallPivots};
use crate::space::Threads;
use std::sync::Arc;

/// How many times the tolerance the rounding of x must be: more than what better numbers than the nearest can make up for.
const MARGIN: f64 = 1e4;
/// The iterations, with steps at most.
const ITERATIONS: [(Step, usize); 2] = [(Step::LeastSingularVector, 3), (Step::NullVector, 20)];

impl<S: SolverSpace, A: LinearOperator<S>> Certifier<'_, S, A> {
    /// Whether the residual that was measured last, rows of zeros or constants prove that there is no answer.
    pub(super) fn has_no_answer(&mut self) -> Result<bool, BackendError> {
        let (space, a) = (self.space(), self.a());
        let mut y = space.zeros(&a.range())?;
        if self.picks_zero_rows(&mut y)? && self.proves_no_answer(&y)? {
            return Ok(true);
        }
        space.copy(self.residual(), &mut y)?;
        let Some((ratio, proven)) = self.weigh(&y)? else { return Ok(false) };
        self.keep_normal_residual(ratio);
        if proven {
            return Ok(true);
        }
        space.fill(1.0, &mut y)?;
        self.proves_no_answer(&y)
    }

    /// Whether y proves that no x has a residual within the tolerance; its ratio is kept if it does.
    fn proves_no_answer(&mut self, y: &S::Vector) -> Result<bool, BackendError> {
        let Some((ratio, true)) = self.weigh(y)? else { return Ok(false) };
        self.keep_normal_residual(ratio);
        Ok(true)
    }

    /// ‖Aᵀy‖ / ‖|A|ᵀ|y|‖, and whether y is a proof; nothing where A has no entries to look at.
    fn weigh(&self, y: &S::Vector) -> Result<Option<(f64, bool)>, BackendError> {
        let (space, n) = (self.space(), self.unknowns() as f64);
        let Some(normal) = self.a().normal_residual(space, y)? else { return Ok(None) };
        let (along, norm, tolerance) = (space.dot(y, self.b())?, space.norm(y)?, self.certain_tolerance());
        let least = along.abs() - norm * (n * f64::EPSILON * self.rhs_norm() + tolerance);
        let proven = least > 0.0 && f64::EPSILON * least > MARGIN * tolerance * normal.cosines;
        Ok(Some((normal.ratio, proven)))
    }

    /// Puts the entries of b for which A has rows of zeros into y; whether there are any.
    fn picks_zero_rows(&self, y: &mut S::Vector) -> Result<bool, BackendError> {
        let (space, Some(matrix)) = (self.space(), self.a().matrix()) else { return Ok(false) };
        let empty = |i: &usize| matrix.row(*i).1.iter().all(|&v| v == 0.0);
        let rows: Vec<usize> = (0..matrix.nrows()).filter(empty).collect();
        let (mut b, mut picked) = (vec![0.0; matrix.nrows()], vec![0.0; matrix.nrows()]);
        space.download(self.b(), &mut b)?;
        rows.iter().for_each(|&i| picked[i] = b[i]);
        space.upload(&picked, y)?;
        // What one process has is a proof for all.
        Ok(space.first((!rows.is_empty()).then_some((0, 0.0)))?.is_some())
    }

    /// Whether inverse iteration with a complete factor, from the residual on, finds a proof that there is no answer.
    pub(super) fn finds_no_answer(
        &mut self,
        matrix: &Csr<f64>,
        symbolic: &Arc<DirectSymbolic>,
    ) -> Result<bool, BackendError> {
        let space = self.space();
        let Ok(mut m) = symbolic.allocate() else { return Ok(false) };
        let mut start = vec![0.0; matrix.nrows()];
        space.download(self.residual(), &mut start)?;
        let mut y = space.zeros(&self.a().range())?;
        for small in [SmallPivots::FOR_NULL_VECTORS, SmallPivots::FOR_GROWN_NULL_VECTORS] {
            m.set_small_pivots(small);
            if m.refactor(space.host(), matrix).is_err() {
                return Ok(false);
            }
            for (step, count) in ITERATIONS {
                let mut iterate = Iterate::new(space.host(), matrix, &m, start.clone())?;
                for _ in 0..count {
                    if !iterate.advance(step)? {
                        break;
                    }
                    space.upload(&iterate.y, &mut y)?;
                    if self.proves_no_answer(&y)? {
                        return Ok(true);
                    }
                }
            }
        }
        Ok(false)
    }
}

#[derive(Clone, Copy)]
enum Step {
    /// y := M⁻ᵀM⁻¹y
    LeastSingularVector,
    /// y := y − M⁻ᵀ(Aᵀy)
    NullVector,
}

/// y, scaled to a largest entry of 1.
struct Iterate<'m> {
    space: &'m Threads<f64>,
    a: &'m Csr<f64>,
    m: &'m DirectFactor,
    y: Vec<f64>,
    product: Vec<f64>,
    solved: Vec<f64>,
    scratch: <DirectFactor as LinearOperator<Threads<f64>>>::Scratch,
}

impl<'m> Iterate<'m> {
    fn new(
        space: &'m Threads<f64>,
        a: &'m Csr<f64>,
        m: &'m DirectFactor,
        y: Vec<f64>,
    ) -> Result<Self, BackendError> {
        let (product, solved) = (vec![0.0; a.ncols()], vec![0.0; y.len()]);
        Ok(Iterate { space, a, m, y, product, solved, scratch: m.scratch(space)? })
    }

    /// `false` where nothing is left of y, or it is not finite.
    fn advance(&mut self, step: Step) -> Result<bool, BackendError> {
        let Iterate { space, a, m, y, product, solved, scratch } = self;
        match step {
            Step::LeastSingularVector => {
                m.apply(space, y, product, scratch)?;
                m.apply_transpose(space, product, y, scratch)?;
            }
            Step::NullVector => {
                LinearOperator::apply_transpose(*a, space, y, product, &mut ())?;
                m.apply_transpose(space, product, solved, scratch)?;
                y.iter_mut().zip(solved).for_each(|(y, s)| *y -= *s);
            }
        }
        let largest = self.y.iter().fold(0.0, |largest: f64, v| largest.max(v.abs()));
        self.y.iter_mut().for_each(|v| *v /= largest);
        Ok(largest > 0.0 && largest.is_finite())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::precond::direct::{Direct, DirectKind};

    /// Row 2 is row 0 plus twice row 1, so that y = (1, 2, −1).
    /// [ 1 2 0 ]
    /// [ 0 1 3 ]
    /// [ 1 4 6 ]
    #[test]
    fn rows_that_depend_on_each_other() {
        let rows = [[1.0, 2.0, 0.0], [0.0, 1.0, 3.0], [1.0, 4.0, 6.0]];
        let a = Csr::from_entries(3, 3, (0..9).map(|e| (e / 3, e % 3, rows[e / 3][e % 3]))).unwrap();
        let symbolic = Direct { kind: DirectKind::Lu, max_bytes: None }.symbolic(&a).unwrap();
        let (space, mut m) = (Threads::new(1), symbolic.allocate().unwrap());
        m.set_small_pivots(SmallPivots::FOR_NULL_VECTORS);
        m.refactor(&space, &a).unwrap();
        let mut steps = Iterate::new(&space, &a, &m, vec![1.0, 2.0, 3.0]).unwrap();
        for _ in 0..3 {
            assert!(steps.advance(Step::NullVector).unwrap());
        }
        let y = steps.y;
        assert!((y[0] + y[2]).abs() < 1e-12 && (y[1] + 2.0 * y[2]).abs() < 1e-12, "{y:?}");
    }

    /// A regular matrix has no left null vector, whatever the iteration.
    /// [ 1 3 ]
    /// [ 2 0 ]
    #[test]
    fn none_where_there_is_none() {
        let a = Csr::from_entries(2, 2, [(0, 0, 1.0), (0, 1, 3.0), (1, 0, 2.0)]).unwrap();
        let symbolic = Direct { kind: DirectKind::Lu, max_bytes: None }.symbolic(&a).unwrap();
        let (space, mut m) = (Threads::new(1), symbolic.allocate().unwrap());
        m.set_small_pivots(SmallPivots::FOR_NULL_VECTORS);
        m.refactor(&space, &a).unwrap();
        for (step, count) in ITERATIONS {
            let mut iterate = Iterate::new(&space, &a, &m, vec![1.0, 2.0]).unwrap();
            for _ in 0..count {
                if !iterate.advance(step).unwrap() {
                    break;
                }
                let normal = a.normal_residual(&space, &iterate.y).unwrap().unwrap();
                assert!(normal.ratio > 0.1, "{:?}", iterate.y);
            }
        }
    }
}
