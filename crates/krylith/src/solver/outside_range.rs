//! Vectors outside of the range of A: why a system has no answer, and when x is the least squares.
//!
//! For all x and y, yᵀ(b − A x) = yᵀb − (Aᵀy)ᵀx. So y with Aᵀy = 0 and |yᵀb| > τ ‖y‖, τ being the tolerance, proves that no x meets it. Three statements are told
//! apart (`operator::by_rows::normal`):
//!
//! * *Exact*: Aᵀy = 0 without any rounding. A is singular.
//! * *Rounding*: ‖D⁻¹Aᵀy‖, D the largest entries of the columns, is within the rounding of `f64`, as it is for the null vectors of a matrix that was assembled in `f64`.
//! * *Nearly*: let D now be the norms of the columns of A. By Cauchy and Schwarz every x whose residual is within τ has
//!
//!     ‖D x‖ ≥ (|yᵀb| − τ ‖y‖) / ‖D⁻¹Aᵀy‖.
//!
//!   Rounding each entry of x to the nearest number changes A x by about ε/4 ‖D x‖. Other numbers nearby do better (`rounding`), by two digits in what was
//!   seen; ε ‖D x‖ is larger than τ by [`MARGIN`]. There may be an x within the tolerance all the same, such as one that no rounding changes.
//!
//! Let y be exact and r = b − A x, and let r* be the least residual that there is. yᵀr = yᵀb, so that ‖r*‖ ≥ |yᵀr| / ‖y‖, and A (x* − x) = r − r* is orthogonal to r*:
//!
//!   ‖r − r*‖² = ‖r‖² − ‖r*‖² ≤ ‖r‖² − (yᵀr)² / ‖y‖² = ‖r − y (yᵀr) / (yᵀy)‖².
//!
//! x is the least squares where the right-hand side is within max(rtol ‖b − y (yᵀb) / (yᵀy)‖, atol): it then solves the system whose right-hand side has no part along y.
//!
//! Candidates for y are the residual that no method could reduce, the rows of zeros of A, constants, and vectors from a complete factor
//! M = A + E, E the change of the pivots that were too small, by one of two iterations:
//!
//! * y := M⁻ᵀM⁻¹y is inverse iteration for the least eigenvalue of A Aᵀ, and needs a step or two where one singular value is much smaller than the others.
//! * y := y − M⁻ᵀ(Aᵀy) = M⁻ᵀEᵀy leaves left null vectors as they are and reduces everything else, at once where each of those pivots belongs to
//!   a null vector, however many there are. With Aᵀy and y in double-double it is the refinement of y to twice the digits, from which the fractions of small integers
//!   that its entries may be multiples of are found (`snap`): such a y can be exact.

use super::certify::Certifier;
use super::iterate::multiply;
use super::snap;
use crate::error::BackendError;
use crate::matrix::Csr;
use crate::operator::{
    LinearOperator, Preconditioner, SolverSpace, norm_roundoff, precise_dot, transposed_product, two_sum,
};
use crate::outcome::Outcome;
use crate::precond::direct::{DirectFactor, DirectSymbolic, SmallPivots};
use crate::report::{NullLevel, NullVector};
use crate::space::Threads;
use std::sync::Arc;

/// How many times the tolerance the rounding of x must be: more than what better numbers than the nearest can make up for.
const MARGIN: f64 = 1e4;
/// What takes the place of small pivots, with steps of inverse iteration and of the refinement that follows it. Where M⁻¹ does not enlarge null vectors,
/// refinement leaves the residual of the least squares what it is, however many null vectors there are; so that comes first.
const ITERATIONS: [(SmallPivots, usize, usize); 5] = [
    (SmallPivots::FOR_LEAST_SQUARES, 0, 20),
    (SmallPivots::FOR_NULL_VECTORS, 3, 5),
    (SmallPivots::FOR_NULL_VECTORS, 0, 20),
    (SmallPivots::FOR_GROWN_NULL_VECTORS, 3, 5),
    (SmallPivots::FOR_GROWN_NULL_VECTORS, 0, 20),
];
/// A residual of which this part at most is not along y is one that y explains.
const EXPLAINED: f64 = 0.1;
/// What rounding leaves of a right-hand side without its part along y, relative to that part.
pub(super) const PROJECTION: f64 = 4.0 * f64::EPSILON;
/// ‖A z‖ up to this part of ‖|A| |z|‖ makes z worth a step along it.
const FLAT: f64 = 1e-6;

/// What is known about answers, the weakest statement first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Finding {
    Nothing,
    /// An x within the tolerance, if there is one, is larger than `f64` has digits for, and the residual cannot be reduced by others.
    NearlySingular,
    /// No x meets the tolerance.
    Singular,
    /// No x meets the tolerance, up to rounding, and x is the least squares.
    LeastSquares,
}

impl Finding {
    /// The outcome of a solve that ends with it.
    pub(super) fn outcome(self) -> Outcome {
        match self {
            Finding::Nothing => Outcome::MaxIterations,
            Finding::NearlySingular => Outcome::AttainableAccuracy,
            Finding::Singular => Outcome::Singular,
            Finding::LeastSquares => Outcome::LeastSquares,
        }
    }
}

/// A vector y that says why.
pub(super) struct Witness<V> {
    y: V,
    low: Option<V>,
    finding: Finding,
    level: NullLevel,
    /// ‖Aᵀy‖ / ‖|A|ᵀ|y|‖
    product: f64,
    /// |yᵀb| / ‖y‖
    least: f64,
    /// ‖r − y (yᵀr) / (yᵀy)‖, where x is the least squares.
    gap: Option<f64>,
}

/// The power of two that brings a number near 1, so that products of others with what it belongs to stay in range; 1 where they do anyway, or nothing helps.
fn to_one(largest: f64) -> f64 {
    const FAR: i32 = 64;
    let exponent = ((largest.to_bits() >> 52) & 0x7ff) as i32 - 1023;
    let is_far = largest.is_normal() && exponent.abs() > FAR;
    // The least exponents have no inverse.
    if is_far { 2f64.powi(-exponent.clamp(-1022, 1022)) } else { 1.0 }
}

impl<S: SolverSpace, A: LinearOperator<S>> Certifier<'_, S, A> {
    /// What the witness so far, rows of zeros, the residual that was measured last or constants say about answers.
    pub(super) fn find_witness(&mut self) -> Result<Finding, BackendError> {
        let (space, a) = (self.space(), self.a());
        self.reconsider()?;
        let mut y = space.zeros(&a.range())?;
        if self.picks_zero_rows(&mut y)? && self.consider(&y, None)? == Finding::LeastSquares {
            return Ok(Finding::LeastSquares);
        }
        space.copy(self.residual(), &mut y)?;
        if let Some(normal) = a.normal_residual(space, &y, None)? {
            self.keep_normal_residual(normal.ratio);
        }
        if self.consider(&y, None)? < Finding::Singular {
            space.fill(1.0, &mut y)?;
            self.consider(&y, None)?;
        }
        Ok(self.finding())
    }

    /// What the witness says of the x that was measured last: another x may be the least squares, or no longer be.
    pub(super) fn reconsider(&mut self) -> Result<Finding, BackendError> {
        if let Some((y, low)) = self.take_witness() {
            self.consider(&y, low.as_ref())?;
        }
        Ok(self.finding())
    }

    /// Whether x is the least squares by the witness.
    pub(super) fn is_least_squares(&mut self, x: &S::Vector) -> Result<bool, BackendError> {
        self.measure_precisely(x)?;
        let Some(witness) = &self.witness else { return Ok(false) };
        let (gap, allowed) = self.gap(&witness.y)?;
        Ok(witness.level >= NullLevel::Rounding && gap <= allowed)
    }

    /// The y of the witness.
    pub(super) fn copy_of_witness(&self) -> Result<Option<S::Vector>, BackendError> {
        self.witness.as_ref().map(|witness| self.copy_of(&witness.y)).transpose()
    }

    fn copy_of(&self, v: &S::Vector) -> Result<S::Vector, BackendError> {
        let mut copy = self.space().zeros(&self.space().size(v))?;
        self.space().copy(v, &mut copy).map(|()| copy)
    }

    /// Forgets the witness; its y and low.
    pub(super) fn take_witness(&mut self) -> Option<(S::Vector, Option<S::Vector>)> {
        self.witness.take().map(|witness| (witness.y, witness.low))
    }

    /// The strongest statement so far.
    pub(super) fn finding(&self) -> Finding {
        self.witness.as_ref().map_or(Finding::Nothing, |witness| witness.finding)
    }

    /// What y + low says about answers; kept if it says more than what was known, or the same with fewer doubts.
    pub(super) fn consider(
        &mut self,
        y: &S::Vector,
        low: Option<&S::Vector>,
    ) -> Result<Finding, BackendError> {
        let (space, tolerance) = (self.space(), self.largest_tolerance());
        let factor = to_one(space.extremes(y)?.largest);
        if factor != 1.0 {
            let scaled = |v: &S::Vector| {
                let mut scaled = self.copy_of(v)?;
                multiply(space, &mut scaled, factor).map(|()| scaled)
            };
            let (y, low) = (scaled(y)?, low.map(scaled).transpose()?);
            return self.consider(&y, low.as_ref());
        }
        let Some(normal) = self.a().normal_residual(space, y, low)? else { return Ok(Finding::Nothing) };
        let (along, rounding) = self.along_rhs(y, low)?;
        let low_norm = low.map_or(Ok(0.0), |low| space.norm(low))?;
        // No less than ‖y + low‖.
        let norm = (space.norm(y)? + low_norm) * (1.0 + 4.0 * norm_roundoff(self.unknowns()));
        let least = along - rounding - norm * tolerance;
        let is_normal = norm >= f64::MIN_POSITIVE && norm.is_finite();
        if !is_normal || least.is_nan() || least <= 0.0 {
            return Ok(Finding::Nothing);
        }
        let level = match () {
            () if normal.is_zero => NullLevel::Exact,
            () if normal.in_roundings <= 1.0 => NullLevel::Rounding,
            () if f64::EPSILON * least > MARGIN * tolerance * normal.cosines => NullLevel::Nearly,
            () => return Ok(Finding::Nothing),
        };
        let (gap, allowed) = self.gap(y)?;
        let is_least_squares = level >= NullLevel::Rounding && gap <= allowed;
        let finding = match level {
            _ if is_least_squares => Finding::LeastSquares,
            NullLevel::Exact => Finding::Singular,
            _ if gap <= EXPLAINED * self.residual_norm() => Finding::NearlySingular,
            _ => return Ok(Finding::Nothing),
        };
        let known = self.witness.as_ref().map(|known| (known.finding, known.level));
        if known.is_none_or(|known| (finding, level) > known) {
            let (y, low) = (self.copy_of(y)?, low.map(|low| self.copy_of(low)).transpose()?);
            let gap = is_least_squares.then_some(gap);
            let (product, least) = (normal.ratio, along / norm);
            self.witness = Some(Witness { y, low, finding, level, product, least, gap });
        }
        Ok(finding)
    }

    /// |bᵀ(y + low)|, and a bound of its error.
    fn along_rhs(&self, y: &S::Vector, low: Option<&S::Vector>) -> Result<(f64, f64), BackendError> {
        let space = self.space();
        if !self.is_alone() {
            let rounding = self.unknowns() as f64 * f64::EPSILON * self.rhs_norm() * space.norm(y)?;
            return Ok((space.dot(y, self.b())?.abs(), rounding));
        }
        let own = |v: &S::Vector| {
            let mut own = vec![0.0; space.len(&space.size(v))];
            space.download(v, &mut own).map(|()| own)
        };
        let low = low.map_or(Ok(Vec::new()), own)?;
        let (along, rounding) = precise_dot(&own(self.b())?, &own(y)?, &low);
        Ok((along.abs(), rounding))
    }

    /// ‖r − y (yᵀr) / (yᵀy)‖, its rounding included, for the r that was measured last, and what it may be for the least squares.
    fn gap(&self, y: &S::Vector) -> Result<(f64, f64), BackendError> {
        let (space, square) = (self.space(), self.space().dot(y, y)?);
        let without_y = |v: &S::Vector| {
            let mut rest = space.zeros(&space.size(v))?;
            space.copy(v, &mut rest)?;
            // Twice, so that what is left of y is rounding.
            for _ in 0..2 {
                let along = space.dot(y, &rest)?;
                space.axpby(-along / square, y, 1.0, &mut rest)?;
            }
            space.norm(&rest)
        };
        let rhs = without_y(self.b())?;
        Ok((without_y(self.residual())? + self.rounding_of_residual(), self.least_squares_tolerance(rhs)))
    }

    /// What the residual of a right-hand side without its part outside of the range of A may be, `norm` being the norm of that right-hand side.
    pub(super) fn least_squares_tolerance(&self, norm: f64) -> f64 {
        let tolerance = self.tolerance();
        f64::max(tolerance.rtol * norm, tolerance.atol) + PROJECTION * self.rhs_norm()
    }

    /// What the report says of the witness.
    pub(super) fn null_vector(&self) -> Result<Option<NullVector>, BackendError> {
        let Some(Witness { y, low, level, product, least, .. }) = &self.witness else { return Ok(None) };
        let own = |v: &S::Vector| {
            let mut own = vec![0.0; self.space().len(&self.space().size(v))];
            self.space().download(v, &mut own).map(|()| own)
        };
        let y_low = low.as_ref().map_or(Ok(Vec::new()), own)?;
        let y_low = if y_low.iter().all(|&v| v == 0.0) { Vec::new() } else { y_low };
        let least_residual = least / self.rhs_norm();
        Ok(Some(NullVector { level: *level, y: own(y)?, y_low, product: *product, least_residual }))
    }

    /// The residual of the right-hand side without its part outside of the range of A, relative to b, where x is the least squares.
    pub(super) fn projected_residual(&self) -> Option<f64> {
        Some(self.witness.as_ref()?.gap? / self.rhs_norm())
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

    /// What vectors from a complete factor say about answers, beginning with the residual that was measured last.
    pub(super) fn find_witness_by_factor(
        &mut self,
        matrix: &Csr<f64>,
        symbolic: &Arc<DirectSymbolic>,
    ) -> Result<(), BackendError> {
        let space = self.space();
        let Ok(mut m) = symbolic.allocate() else { return Ok(()) };
        let mut start = vec![0.0; matrix.nrows()];
        space.download(self.residual(), &mut start)?;
        let size = self.a().range();
        let (mut y, mut low) = (space.zeros(&size)?, space.zeros(&size)?);
        let mut factored = None;
        for (small, inverse, refined) in ITERATIONS {
            if factored != Some(small) {
                m.set_small_pivots(small);
                if m.refactor(space.host(), matrix).is_err() {
                    break;
                }
                factored = Some(small);
            }
            let mut iterate = Iterate::new(space.host(), matrix, &m, start.clone())?;
            let steps = std::iter::repeat_n(Step::LeastSingularVector, inverse)
                .chain(std::iter::repeat_n(Step::NullVector, refined));
            for step in steps {
                if !iterate.advance(step)? {
                    break;
                }
                if let Some(snapped) = snap::snapped(&iterate.y, &iterate.low) {
                    space.upload(&snapped, &mut y)?;
                    self.consider(&y, None)?;
                }
                space.upload(&iterate.y, &mut y)?;
                space.upload(&iterate.low, &mut low)?;
                if self.consider(&y, Some(&low))? >= Finding::Singular && self.is_exact() {
                    break;
                }
            }
            if self.finding() >= Finding::Singular {
                break;
            }
        }
        Ok(())
    }

    /// Whether the witness leaves no doubt.
    fn is_exact(&self) -> bool {
        self.witness.as_ref().is_some_and(|witness| witness.level == NullLevel::Exact)
    }

    /// Whether x meets the tolerance with a multiple of one of these vectors, or of the y of the witness, added to it or alone ([`meets_along`](Self::meets_along)). If A
    /// is symmetric, y is close to its null space like these.
    pub(super) fn meets_along_any(
        &mut self,
        vectors: &[S::Vector],
        x: &mut S::Vector,
    ) -> Result<bool, BackendError> {
        let y = self.copy_of_witness()?;
        for z in vectors.iter().chain(&y) {
            if self.meets_along(z, x)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Adds to x the multiple of z that makes its residual the least, or takes that multiple alone, where A z is small; whether x meets the tolerance
    /// then. If not, x is as it was. This reaches the answers of A + δ I with a tiny δ and A z = 0, which are large and along z.
    pub(super) fn meets_along(&mut self, z: &S::Vector, x: &mut S::Vector) -> Result<bool, BackendError> {
        let (space, a) = (self.space(), self.a());
        let Some(product) = self.flat_product(z)? else { return Ok(false) };
        let square = space.dot(&product, &product)?;
        let mut moved = space.zeros(&a.domain())?;
        for from_zero in [false, true] {
            let r = if from_zero { self.b() } else { self.residual() };
            let factor = space.dot(&product, r)? / square;
            if !factor.is_finite() {
                continue;
            }
            space.copy(z, &mut moved)?;
            space.scale(factor, &mut moved)?;
            if !from_zero {
                space.axpby(1.0, x, 1.0, &mut moved)?;
            }
            self.round_as_returned(&mut moved)?;
            if self.measure(&moved)? {
                space.copy(&moved, x)?;
                return Ok(true);
            }
            self.measure_precisely(x)?;
        }
        Ok(false)
    }

    /// A z, where it is not zero and small against its terms.
    fn flat_product(&mut self, z: &S::Vector) -> Result<Option<S::Vector>, BackendError> {
        let space = self.space();
        let mut product = space.zeros(&self.a().range())?;
        let zero = space.zeros(&self.a().range())?;
        let norms = self.residual_of(z, &zero, &mut product)?;
        // Of a sum in `f64`, `rounding` is a few ε of the terms.
        let Some(bounds) = norms.certain else { return Ok(None) };
        let terms = bounds.row_sum * space.extremes(z)?.largest;
        let flat = norms.norm > 0.0 && norms.largest <= FLAT * terms;
        space.scale(-1.0, &mut product)?;
        Ok(flat.then_some(product))
    }
}

#[derive(Clone, Copy)]
enum Step {
    /// y := M⁻ᵀM⁻¹y
    LeastSingularVector,
    /// y := y − M⁻ᵀ(Aᵀy)
    NullVector,
}

/// y + low, multiplied by powers of two so that its largest entry is near 1.
struct Iterate<'m> {
    space: &'m Threads<f64>,
    a: &'m Csr<f64>,
    m: &'m DirectFactor,
    y: Vec<f64>,
    low: Vec<f64>,
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
        let (product, solved, low) = (vec![0.0; a.ncols()], vec![0.0; y.len()], vec![0.0; y.len()]);
        Ok(Iterate { space, a, m, y, low, product, solved, scratch: m.scratch(space)? })
    }

    /// `false` where nothing is left of y, or it is not finite.
    fn advance(&mut self, step: Step) -> Result<bool, BackendError> {
        let Iterate { space, a, m, y, low, product, solved, scratch } = self;
        match step {
            Step::LeastSingularVector => {
                m.apply(space, y, product, scratch)?;
                m.apply_transpose(space, product, y, scratch)?;
                low.fill(0.0);
            }
            Step::NullVector => {
                transposed_product(a.view(), y, low, product);
                m.apply_transpose(space, product, solved, scratch)?;
                for ((y, low), s) in y.iter_mut().zip(low.iter_mut()).zip(solved) {
                    let (sum, error) = two_sum(*y, -*s);
                    (*y, *low) = two_sum(sum, *low + error);
                }
            }
        }
        let largest = self.y.iter().fold(0.0, |largest: f64, v| largest.max(v.abs()));
        let usable = largest > 0.0 && largest.is_finite();
        if usable {
            // A power of two, so that no digit is lost.
            let scale = (-largest.log2().floor().clamp(-1000.0, 1000.0)).exp2();
            self.y.iter_mut().chain(&mut self.low).for_each(|v| *v *= scale);
        }
        Ok(usable)
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
        let normal = a.normal_residual(&space, &y, Some(&steps.low)).unwrap().unwrap();
        assert!(normal.in_roundings <= 1e-14, "{normal:?}");
        let snapped = snap::snapped(&y, &steps.low).unwrap();
        assert!(a.normal_residual(&space, &snapped, None).unwrap().unwrap().is_zero, "{snapped:?}");
    }

    /// A regular matrix has no left null vector, whatever the iteration.
    /// [ 1 3 ]
    /// [ 2 0 ]
    #[test]
    fn vectors_far_from_one_are_scaled() {
        for (largest, scaled) in [(2f64.powi(-531), 1.0), (1.5 * 2f64.powi(900), 1.5), (f64::MAX, 4.0)] {
            assert!(to_one(largest) * largest <= scaled && to_one(largest) * largest > scaled / 2.0);
        }
        for near in [0.0, 1.0, 1e-19, 1e19, f64::INFINITY, 1e-310] {
            assert_eq!(to_one(near), 1.0);
        }
    }

    #[test]
    fn none_where_there_is_none() {
        let a = Csr::from_entries(2, 2, [(0, 0, 1.0), (0, 1, 3.0), (1, 0, 2.0)]).unwrap();
        let symbolic = Direct { kind: DirectKind::Lu, max_bytes: None }.symbolic(&a).unwrap();
        let (space, mut m) = (Threads::new(1), symbolic.allocate().unwrap());
        m.set_small_pivots(SmallPivots::FOR_NULL_VECTORS);
        m.refactor(&space, &a).unwrap();
        for (step, count) in [(Step::LeastSingularVector, 3), (Step::NullVector, 20)] {
            let mut iterate = Iterate::new(&space, &a, &m, vec![1.0, 2.0]).unwrap();
            for _ in 0..count {
                if !iterate.advance(step).unwrap() {
                    break;
                }
                let normal = a.normal_residual(&space, &iterate.y, None).unwrap().unwrap();
                assert!(normal.ratio > 0.1, "{:?}", iterate.y);
            }
        }
    }
}
