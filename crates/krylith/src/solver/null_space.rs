//! Singular systems whose null space is known: constants, or vectors of the caller's.
//!
//! Let the columns of Q be an orthonormal basis of the null space of A, and those of P one of the null space of Aᵀ; the same where A
//! is symmetric. A x = b has an answer only if Pᵀb = 0. Then it has many, of which x − Q Qᵀx has the least norm.
//!
//! The part P Pᵀb is removed from b for the iteration. x is judged with b as it was given: ‖b − A x‖² = ‖b − P Pᵀb − A x‖² + ‖Pᵀb‖². If ‖Pᵀb‖ is below the tolerance, the
//! iteration aims at what it leaves of the tolerance, and x converges like any other. If not, x is the least squares, the outcome is
//! `least_squares`, and the part is the proof that no x has a smaller residual (`outside_range`).
//!
//! A null space is never believed: a vector z is taken only if ‖A z‖ is within the rounding of that product. Whether Aᵀz = 0 decides which of them
//! are used for b. What was found is remembered with the matrix it was found for, and looked for again where a solve has another one.

use super::certify::{Certifier, Ended, Why};
use super::options::Solver;
use super::outside_range::{Finding, PROJECTION};
use crate::error::{BackendError, SolveError};
use crate::facts::{Facts, Whole, has_constant_null_vectors};
use crate::operator::{LinearOperator, OwnRows, SolverSpace, norm_roundoff, rows_of};
use crate::outcome::{Outcome, Recovery};
use std::sync::Arc;

/// The null space of A, as far as it is known.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub enum NullSpace {
    /// Constants, where A·1 or Aᵀ·1 is zero up to rounding.
    #[default]
    Auto,
    /// It is not looked for.
    Ignore,
    /// Constants.
    Constant,
    /// The span of these vectors.
    Vectors(Arc<Vec<Vec<f64>>>),
}

impl NullSpace {
    /// The span of these vectors, of as many numbers as A has columns each.
    pub fn vectors(vectors: impl IntoIterator<Item = Vec<f64>>) -> Self {
        NullSpace::Vectors(Arc::new(vectors.into_iter().collect()))
    }
}

/// A vector of which orthogonalization leaves less than this is in the span of those before.
const DEPENDENT: f64 = 1e-10;
/// A residual is larger than another if it is by more than this part: less is the rounding of their norms.
const LARGER: f64 = 1e-13;

/// Orthonormal bases.
pub(super) struct NullSpaces<S: SolverSpace> {
    /// Of the null space of A.
    right: Vec<S::Vector>,
    /// Of that of Aᵀ.
    left: Vec<S::Vector>,
}

/// In which null spaces a vector is.
struct Sides {
    /// In that of A.
    right: bool,
    /// In that of Aᵀ.
    left: bool,
    /// ‖A z‖, and the rounding of that product in `f64`, where the operator has a bound of it.
    product: Option<(f64, f64)>,
}

/// What was removed from b.
pub(super) struct Removed<S: SolverSpace> {
    /// b as it was given, multiplied by the scale of the solve.
    given: S::Vector,
    /// P Pᵀb, multiplied likewise.
    part: S::Vector,
    /// ‖P Pᵀb‖ / ‖b‖.
    share: f64,
    /// The residual norm to aim at, where the part is below the tolerance.
    aim: Option<f64>,
}

impl<S: SolverSpace> NullSpaces<S> {
    /// What the options say, or for [`NullSpace::Auto`] the rows of A, if it is a matrix; the facts about it may be known.
    pub(super) fn find<A: LinearOperator<S>>(
        solver: &Solver,
        space: &S,
        a: &A,
        facts: Option<&Facts>,
    ) -> Result<Option<Self>, SolveError> {
        let candidates = match &solver.null_space {
            NullSpace::Ignore => return Ok(None),
            NullSpace::Auto => {
                return match rows_of(space, a) {
                    Some(own) => Ok(Self::recognised(space, a, own, facts)?),
                    None => Ok(None),
                };
            }
            NullSpace::Constant => {
                let mut constant = space.zeros(&a.domain())?;
                space.fill(1.0, &mut constant)?;
                vec![constant]
            }
            NullSpace::Vectors(vectors) => uploaded(space, a, vectors)?,
        };
        // What the caller has named is believed.
        let found = Self::checked(space, a, &candidates, (true, false))?;
        // Of Aᵀ the vectors named are the left ones.
        let is_certain = |sides: &Sides| if solver.is_of_transposed { sides.left } else { sides.right };
        match found.iter().position(|sides| !is_certain(sides)) {
            Some(k) => Err(refused(k, &found[k])),
            None => Ok(Some(Self::spanned(space, &candidates, &found)?)),
        }
    }

    /// Constants, where they are in a null space.
    fn recognised<A: LinearOperator<S>>(
        space: &S,
        a: &A,
        own: OwnRows<'_>,
        facts: Option<&Facts>,
    ) -> Result<Option<Self>, BackendError> {
        let known = match facts {
            Some(facts) => (facts.constant_null_vector, facts.constant_left_null_vector),
            None if a.own_rows().is_none() => has_constant_null_vectors(own.rows),
            None => Whole::new(space, own)?.constant_null_vectors()?,
        };
        if known == (false, false) {
            return Ok(None);
        }
        let mut constants = [space.zeros(&a.domain())?];
        space.fill(1.0, &mut constants[0])?;
        let found = Self::checked(space, a, &constants, known)?;
        Ok(Some(Self::spanned(space, &constants, &found)?))
    }

    /// In which null spaces these vectors are; `known` is what is believed of an operator that cannot say, about A and about Aᵀ.
    fn checked<A: LinearOperator<S>>(
        space: &S,
        a: &A,
        candidates: &[S::Vector],
        known: (bool, bool),
    ) -> Result<Vec<Sides>, BackendError> {
        let sides = |z: &S::Vector| {
            let product = rounded_product(space, a, z)?;
            let normal = a.normal_residual(space, z, None)?;
            let right = product.map_or(known.0, |(norm, rounding)| norm <= rounding);
            let left = normal.map_or(known.1, |normal| normal.in_roundings <= 1.0);
            Ok(Sides { right, left, product })
        };
        candidates.iter().map(sides).collect()
    }

    /// Bases of what the candidates span on either side.
    fn spanned(space: &S, candidates: &[S::Vector], found: &[Sides]) -> Result<Self, BackendError> {
        let basis = |wanted: fn(&Sides) -> bool| {
            let vectors = candidates.iter().zip(found).filter(|(_, sides)| wanted(sides));
            orthonormal(space, vectors.map(|(z, _)| z))
        };
        Ok(NullSpaces { right: basis(|sides| sides.right)?, left: basis(|sides| sides.left)? })
    }

    /// Whether something is known of the null space of A.
    pub(super) fn has_right(&self) -> bool {
        !self.right.is_empty()
    }

    /// Removes from b its component outside of the range of A.
    pub(super) fn remove_from_rhs<A: LinearOperator<S>>(
        &self,
        certifier: &mut Certifier<'_, S, A>,
    ) -> Result<Option<Removed<S>>, BackendError> {
        let (space, norm) = (certifier.space(), certifier.rhs_norm());
        if self.left.is_empty() || norm == 0.0 {
            return Ok(None);
        }
        let size = space.size(certifier.b());
        let (mut given, mut part, mut b) = (space.zeros(&size)?, space.zeros(&size)?, space.zeros(&size)?);
        space.copy(certifier.b(), &mut given)?;
        space.copy(&given, &mut b)?;
        // From its coefficients, so that its rounding is relative to the part, not to b; twice, so that what is left of Pᵀb is rounding.
        for p in self.left.iter().chain(&self.left) {
            let along = space.dot(p, &b)?;
            space.axpby(along, p, 1.0, &mut part)?;
            space.axpby(-along, p, 1.0, &mut b)?;
        }
        let (removed, left) = (space.norm(&part)?, space.norm(&b)?);
        if left <= PROJECTION * norm {
            space.fill(0.0, &mut b)?;
        }
        let safe = 1.0 - 2.0 * norm_roundoff(space.total(&size));
        let tolerance = certifier.certain_tolerance() * safe;
        let aim = (removed < tolerance).then(|| ((tolerance - removed) * (tolerance + removed)).sqrt());
        certifier.iterate_for(&b, aim)?;
        Ok(Some(Removed { given, part, share: removed / norm, aim }))
    }

    /// Makes x the answer of least norm, if that is as good as it was, and judges it with b as it was given.
    pub(super) fn settle<A: LinearOperator<S>>(
        &self,
        certifier: &mut Certifier<'_, S, A>,
        x: &mut S::Vector,
        (removed, options): (Option<&Removed<S>>, &Solver),
        outcome: Outcome,
    ) -> Result<Outcome, BackendError> {
        let space = certifier.space();
        let mut meets = false;
        if !self.right.is_empty() {
            let mut before = space.zeros(&space.size(x))?;
            space.copy(x, &mut before)?;
            if outcome != Outcome::Converged {
                certifier.measure_precisely(x)?;
            }
            let most = certifier.residual_at_most();
            project(space, &self.right, x)?;
            certifier.round_as_returned(x)?;
            meets = certifier.measure(x)?;
            let is_worse = match outcome {
                Outcome::Converged => true,
                // The norm of the residual hardly changes with an x that is close to the least squares.
                Outcome::LeastSquares => !certifier.is_least_squares(x)?,
                _ if meets => false,
                _ => {
                    certifier.measure_precisely(x)?;
                    certifier.residual_at_most() > most * (1.0 + LARGER)
                }
            };
            if !meets && is_worse || certifier.residual_norm().is_nan() {
                space.copy(&before, x)?;
                meets = certifier.measure(x)?;
            }
        }
        let Some(removed) = removed else {
            // Without a large component in the null space x may have digits that it had no room for.
            let met = meets && outcome != Outcome::Interrupted;
            return Ok(if met { Outcome::Converged } else { outcome });
        };
        // What was found of b without the part is not true of b.
        let beside = certifier.take_witness();
        if certifier.judge_by(&removed.given, options, x)? {
            return Ok(Outcome::Converged);
        }
        if outcome == Outcome::Interrupted {
            return Ok(outcome);
        }
        certifier.consider(&removed.part, None)?;
        if let Some((mut y, low)) = beside {
            certifier.consider(&y, low.as_ref())?;
            let along = space.dot(&y, certifier.residual())? / space.dot(&y, &y)?;
            space.axpby(1.0, &removed.part, along, &mut y)?;
            certifier.consider(&y, None)?;
        }
        // Where A z is zero up to rounding only, a large multiple of z may be the answer.
        if certifier.meets_along_any(&self.right, x)? {
            return Ok(Outcome::Converged);
        }
        let open = match outcome {
            // Said of b without the part, and not true of b.
            Outcome::Converged | Outcome::LeastSquares | Outcome::Singular | Outcome::AttainableAccuracy => {
                Ended {
                    outcome: Outcome::Breakdown,
                    why: Why::Other("b has a component outside of the range of A"),
                }
            }
            other => Ended { outcome: other, why: Why::Other("") },
        };
        Ok(match certifier.finding() {
            Finding::Nothing | Finding::NearlySingular => certifier.classify(&open, x)?,
            finding => finding.outcome(),
        })
    }
}

impl<S: SolverSpace> Removed<S> {
    /// What the report says of it; nothing where it is rounding.
    pub(super) fn step(&self, unknowns: usize) -> Option<Recovery> {
        let rounding = (unknowns as f64).sqrt() * f64::EPSILON;
        let action = match self.aim {
            Some(_) if self.share <= rounding => return None,
            Some(_) => "that part stays in the residual, within the tolerance",
            None => "least squares: that part of b stays in the residual",
        };
        let failed =
            format!("b: {:.1e} of it is in the null space of Aᵀ, where no A x has a part", self.share);
        Some(Recovery { failed, row: None, value: Some(self.share), action: action.into() })
    }
}

fn uploaded<S: SolverSpace, A: LinearOperator<S>>(
    space: &S,
    a: &A,
    vectors: &[Vec<f64>],
) -> Result<Vec<S::Vector>, SolveError> {
    let length = space.len(&a.domain());
    let mut found = Vec::new();
    for (k, vector) in vectors.iter().enumerate() {
        let finite = vector.iter().all(|v| v.is_finite()) && vector.iter().any(|&v| v != 0.0);
        if vector.len() != length || !finite {
            return Err(SolveError::Option {
                name: "null_space",
                value: format!("vector {} of {} numbers", k + 1, vector.len()),
                needed: format!("{length} finite numbers, not all zero, are needed"),
            });
        }
        let mut z = space.zeros(&a.domain())?;
        space.upload(vector, &mut z)?;
        found.push(z);
    }
    Ok(found)
}

/// ‖A z‖, and what rounding leaves of that product in `f64` at most, where the operator has a bound of it.
fn rounded_product<S: SolverSpace, A: LinearOperator<S>>(
    space: &S,
    a: &A,
    z: &S::Vector,
) -> Result<Option<(f64, f64)>, BackendError> {
    let (zero, mut product) = (space.zeros(&a.range())?, space.zeros(&a.range())?);
    let mut scratch = a.scratch(space)?;
    let mut norms = |precise| a.residual(space, (z, &zero), precise, &mut product, &mut scratch);
    let Some(bounds) = norms(false)?.certain else { return Ok(None) };
    Ok(Some((norms(true)?.norm, bounds.rounding)))
}

/// Whether ‖A z‖ is at most this multiple of its rounding, where that can be seen.
pub(super) fn is_null_vector<S: SolverSpace, A: LinearOperator<S>>(
    space: &S,
    a: &A,
    z: &S::Vector,
    roundings: f64,
) -> Result<bool, BackendError> {
    Ok(rounded_product(space, a, z)?.is_some_and(|(norm, rounding)| norm <= roundings * rounding))
}

/// Vector k was named and is not a null vector.
fn refused(k: usize, sides: &Sides) -> SolveError {
    let figures = match sides.product {
        Some((norm, rounding)) => {
            format!(", and ‖A z‖ is {norm:.1e} where rounding leaves {rounding:.1e} at most")
        }
        None => String::new(),
    };
    SolveError::Option {
        name: "null_space",
        value: format!("vector {}", k + 1),
        needed: format!("A z = 0 is needed up to rounding{figures}"),
    }
}

/// An orthonormal basis of the span, by Gram and Schmidt twice.
pub(super) fn orthonormal<'v, S: SolverSpace>(
    space: &S,
    vectors: impl IntoIterator<Item = &'v S::Vector>,
) -> Result<Vec<S::Vector>, BackendError>
where
    S::Vector: 'v,
{
    let mut basis: Vec<S::Vector> = Vec::new();
    for vector in vectors {
        let mut q = space.zeros(&space.size(vector))?;
        space.copy(vector, &mut q)?;
        let norm = space.norm(&q)?;
        project(space, &basis, &mut q)?;
        let left = space.norm(&q)?;
        if left > DEPENDENT * norm {
            space.scale(1.0 / left, &mut q)?;
            basis.push(q);
        }
    }
    Ok(basis)
}

/// x − Q Qᵀx, twice, so that what is left of Qᵀx is rounding.
pub(super) fn project<S: SolverSpace>(
    space: &S,
    basis: &[S::Vector],
    x: &mut S::Vector,
) -> Result<(), BackendError> {
    for q in basis.iter().chain(basis) {
        let along = space.dot(q, x)?;
        space.axpby(-along, q, 1.0, x)?;
    }
    Ok(())
}
