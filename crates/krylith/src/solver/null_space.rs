//! Singular systems whose null space is known: constants, or vectors of the caller's.
//!
//! Let the columns of Q be an orthonormal basis of the null space of A, and those of P one of the null space of Aᵀ; the same where A
//! is symmetric. A x = b has an answer only if Pᵀb = 0. Then it has many, of which x − Q Qᵀx has the least norm.
//!
//! The part P Pᵀb is removed from b. If it is at most 10⁻⁶ of b, or half of the tolerance, it is taken to be an error of b: the answer to what is
//! left of b is certified, and the report says how much was removed. If it is more, there is no answer, and no iteration could have
//! found one: x is then the least squares, the residual is that of b as it was given, and the outcome is `singular`.
//!
//! A null space is never believed: A z = 0 is checked for every vector, up to 10⁻⁸ of |A| |z|. Whether Aᵀz = 0 decides which of them
//! are used for b.

use super::certify::Certifier;
use super::options::Solver;
use crate::engine::SolverSpace;
use crate::error::{BackendError, SolveError};
use crate::matrix::Csr;
use crate::operator::LinearOperator;
use crate::plan::{Facts, has_constant_null_vectors};
use crate::report::{Outcome, Recovery};
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

/// A part of b up to this multiple of it is an error of b.
const NEARLY: f64 = 1e-6;
/// What A z may be at most, as a multiple of |A| |z|.
const ZERO: f64 = 1e-8;
/// A vector of which orthogonalization leaves less than this is in the span of those before.
const DEPENDENT: f64 = 1e-10;

/// Orthonormal bases.
pub(super) struct NullSpaces<S: SolverSpace> {
    /// Of the null space of A.
    right: Vec<S::Vector>,
    /// Of that of Aᵀ.
    left: Vec<S::Vector>,
}

/// What was removed from b.
pub(super) struct Removed<S: SolverSpace> {
    /// Its norm, as a part of that of b.
    share: f64,
    /// It, where it is too much for an error of b.
    part: Option<S::Vector>,
}

impl<S: SolverSpace> NullSpaces<S> {
    /// What the options say, or for [`NullSpace::Auto`] the matrix that is A, with its facts if they are known.
    pub(super) fn find<A: LinearOperator<S>>(
        solver: &Solver,
        space: &S,
        a: &A,
        matrix: Option<(&Csr<f64>, Option<&Facts>)>,
    ) -> Result<Option<Self>, SolveError> {
        let candidates = match &solver.null_space {
            NullSpace::Ignore => return Ok(None),
            NullSpace::Auto => {
                return match matrix.filter(|_| own_matrix(space, a).is_some()) {
                    Some((matrix, facts)) => Ok(Self::recognised(space, &a.domain(), matrix, facts)?),
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
        for (k, z) in candidates.iter().enumerate() {
            require_in_null_space(space, a, k, z)?;
        }
        let mut left = Vec::new();
        for z in &candidates {
            if a.normal_residual(space, z)?.is_some_and(|normal| normal.ratio <= ZERO) {
                left.push(z);
            }
        }
        let left = orthonormal(space, left)?;
        Ok(Some(NullSpaces { right: orthonormal(space, &candidates)?, left }))
    }

    /// Constants, where they are in a null space.
    pub(super) fn recognised(
        space: &S,
        layout: &S::Layout,
        matrix: &Csr<f64>,
        facts: Option<&Facts>,
    ) -> Result<Option<Self>, BackendError> {
        let (right, left) = match facts {
            Some(facts) => (facts.constant_null_vector, facts.constant_left_null_vector),
            None => has_constant_null_vectors(matrix),
        };
        if !right && !left {
            return Ok(None);
        }
        let mut constant = space.zeros(layout)?;
        space.fill(1.0, &mut constant)?;
        let basis = |wanted: bool| match wanted {
            true => orthonormal(space, [&constant]),
            false => Ok(Vec::new()),
        };
        Ok(Some(NullSpaces { right: basis(right)?, left: basis(left)? }))
    }

    /// Removes from b what no A x can be.
    pub(super) fn remove_from_rhs(
        &self,
        space: &S,
        b: &mut S::Vector,
        rtol: f64,
    ) -> Result<Option<Removed<S>>, BackendError> {
        let norm = space.norm(b)?;
        if self.left.is_empty() || norm == 0.0 || !norm.is_finite() {
            return Ok(None);
        }
        let mut part = space.zeros(&space.layout(b))?;
        space.copy(b, &mut part)?;
        project(space, &self.left, b)?;
        space.axpby(-1.0, b, 1.0, &mut part)?;
        let share = space.norm(&part)? / norm;
        let nearly = share <= f64::max(NEARLY, rtol / 2.0);
        Ok(Some(Removed { share, part: (!nearly).then_some(part) }))
    }

    /// Makes x the answer of least norm, if that is as good as it was, and judges it with b as it was given.
    pub(super) fn settle<A: LinearOperator<S>>(
        &self,
        certifier: &mut Certifier<'_, S, A>,
        x: &mut S::Vector,
        removed: Option<&Removed<S>>,
        mut outcome: Outcome,
    ) -> Result<Outcome, BackendError> {
        let space = certifier.space();
        if !self.right.is_empty() {
            let mut before = space.zeros(&space.layout(x))?;
            space.copy(x, &mut before)?;
            project(space, &self.right, x)?;
            if !certifier.measure(x)? && outcome == Outcome::Converged {
                space.copy(&before, x)?;
                certifier.measure(x)?;
            }
        }
        if let Some(part) = removed.and_then(|removed| removed.part.as_ref()) {
            certifier.add_to_rhs(part, x)?;
            if outcome == Outcome::Converged {
                outcome = Outcome::Singular;
            }
        }
        Ok(outcome)
    }
}

impl<S: SolverSpace> Removed<S> {
    /// What the report says of it; nothing where it is rounding.
    pub(super) fn step(&self, unknowns: usize) -> Option<Recovery> {
        let rounding = (unknowns as f64).sqrt() * f64::EPSILON;
        let action = match self.part {
            None if self.share <= rounding => return None,
            None => "that part is removed",
            Some(_) => "least squares: that part of b stays in the residual",
        };
        let failed =
            format!("b: {:.1e} of it is in the null space of Aᵀ, where no A x has a part", self.share);
        Some(Recovery { failed, row: None, value: Some(self.share), action: action.into() })
    }
}

/// A as a matrix, where this process has all of it.
fn own_matrix<'a, S: SolverSpace, A: LinearOperator<S>>(space: &S, a: &'a A) -> Option<&'a Csr<f64>> {
    a.matrix().filter(|_| space.total(&a.domain()) == space.len(&a.domain()))
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

/// An error if A z is not zero, where that can be seen.
fn require_in_null_space<S: SolverSpace, A: LinearOperator<S>>(
    space: &S,
    a: &A,
    k: usize,
    z: &S::Vector,
) -> Result<(), SolveError> {
    let Some(matrix) = own_matrix(space, a) else { return Ok(()) };
    let mut host = vec![0.0; space.len(&a.domain())];
    space.download(z, &mut host)?;
    let (mut product, mut sizes) = (0.0f64, 0.0f64);
    for i in 0..matrix.nrows() {
        let (columns, values) = matrix.row(i);
        let terms = columns.iter().zip(values).map(|(&j, v)| v * host[j as usize]);
        let (sum, size) = terms.fold((0.0, 0.0), |(sum, size), term| (sum + term, size + term.abs()));
        (product, sizes) = (product.max(sum.abs()), sizes.max(size));
    }
    if product <= ZERO * sizes {
        return Ok(());
    }
    Err(SolveError::Option {
        name: "null_space",
        value: format!("vector {}", k + 1),
        needed: format!("A z = 0 is needed, and A z is {:.1e} of |A| |z|", product / sizes),
    })
}

/// An orthonormal basis of the span, by Gram and Schmidt twice.
fn orthonormal<'v, S: SolverSpace>(
    space: &S,
    vectors: impl IntoIterator<Item = &'v S::Vector>,
) -> Result<Vec<S::Vector>, BackendError>
where
    S::Vector: 'v,
{
    let mut basis: Vec<S::Vector> = Vec::new();
    for vector in vectors {
        let mut q = space.zeros(&space.layout(vector))?;
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
fn project<S: SolverSpace>(space: &S, basis: &[S::Vector], x: &mut S::Vector) -> Result<(), BackendError> {
    for q in basis.iter().chain(basis) {
        let along = space.dot(q, x)?;
        space.axpby(-along, q, 1.0, x)?;
    }
    Ok(())
}
