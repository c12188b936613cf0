//! Incomplete factors M = (I + L) D (I + U) by rows: IC(k), ILU(k), their modified and their diagonal-only variants.
//!
//! The pattern comes from levels of fill (`fill`), the numbers from elimination on that pattern (`eliminate`), both triangles are
//! applied by `ldu`. U = Lᵀ is copied entry by entry for a symmetric factor, so that M is symmetric to the bit and its application
//! too. Row i needs the rows k < i of its pattern: elimination runs along the plan of the forward sweep, and its result does not
//! depend on the plan. Of several bad pivots the smallest row is found on any plan. A symmetric factor needs a symmetric pattern.
//!
//! A factor that keeps sums of columns is the one that keeps sums of rows for Aᵀ, transposed.
#![allow(unsafe_code)]

use super::eliminate::{Rows, transpose_row};
use super::fill;
use super::form::{Form, Kind, Sums, Update};
use super::ldu::{Ldu, LduSymbolic, SweepScratch};
use super::pivot::FirstBadPivot;
use super::threshold::Triangles;
use super::{require_diagonal, require_pattern};
use crate::disjoint::DisjointSlice;
use crate::error::{BackendError, MatrixError, SetupError};
use crate::matrix::{Csr, Pattern};
use crate::operator::{LinearOperator, Preconditioner, Recipe, Symbolic};
use crate::scalar::Real;
use crate::schedule::{Plan, Schedule};
use crate::space::Threads;
use std::sync::Arc;

/// The recipe.
///
/// ```
/// use krylith::operator::{LinearOperator, Recipe, Symbolic};
/// use krylith::precond::Incomplete;
/// use krylith::{gallery::Problem, space::Threads};
///
/// let a = "poisson2d:20".parse::<Problem>()?.generate()?;
/// let space = Threads::new(2);
/// let ic0 = Incomplete::ic(0).analyze(&space, &a)?.factor(&space, &a)?;
/// let ic2 = Incomplete::ic(2).analyze(&space, &a)?.factor(&space, &a)?;
/// assert!(ic0.nnz() < ic2.nnz());
/// // MIC(0) keeps the sums of rows: M 1 = A 1, so M⁻¹ A 1 = 1.
/// let mic0 = Incomplete::mic(0, 1.0).analyze(&space, &a)?.factor(&space, &a)?;
/// let (ones, mut b, mut z) = (vec![1.0; a.nrows()], vec![0.0; a.nrows()], vec![0.0; a.nrows()]);
/// a.mul_vec(&ones, &mut b)?;
/// mic0.apply(&space, &b, &mut z, &mut mic0.scratch(&space)?)?;
/// assert!(z.iter().all(|z| (z - 1.0).abs() < 1e-12));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Incomplete {
    /// What is computed on the pattern.
    pub form: Form,
    /// The level of fill.
    pub level: usize,
    /// How sweeps and factorization are divided.
    pub schedule: Schedule,
    /// The most bytes that the factor may take; what the machine has free if not given.
    pub max_bytes: Option<u64>,
}

impl Incomplete {
    /// This form on the pattern of A with fill up to `level`.
    pub fn new(form: Form, level: usize) -> Self {
        Incomplete { form, level, schedule: Schedule::Auto, max_bytes: None }
    }

    /// IC(k).
    pub fn ic(level: usize) -> Self {
        Self::new(Form::CHOLESKY, level)
    }

    /// ILU(k).
    pub fn ilu(level: usize) -> Self {
        Self::new(Form::LU, level)
    }

    /// MIC(k) with relaxation ω.
    pub fn mic(level: usize, omega: f64) -> Self {
        let update = Update::Modified { omega, sums: Sums::Rows };
        Self::new(Form { kind: Kind::Cholesky, update }, level)
    }

    /// MILU(k) with relaxation ω.
    pub fn milu(level: usize, omega: f64, sums: Sums) -> Self {
        Self::new(Form { kind: Kind::Lu, update: Update::Modified { omega, sums } }, level)
    }

    /// Diagonal-only incomplete Cholesky.
    pub fn dic() -> Self {
        Self::new(Form { kind: Kind::Cholesky, update: Update::Diagonal }, 0)
    }

    /// Diagonal-only incomplete LU.
    pub fn dilu() -> Self {
        Self::new(Form { kind: Kind::Lu, update: Update::Diagonal }, 0)
    }

    /// Divides sweeps and factorization this way.
    pub fn schedule(mut self, schedule: Schedule) -> Self {
        self.schedule = schedule;
        self
    }

    /// Where the factor will have its entries. That of A itself, not a copy, if it has a full diagonal and there is no fill. For
    /// Cholesky the pattern of A is symmetric.
    pub(crate) fn pattern(&self, a: &Arc<Pattern>) -> Result<Arc<Pattern>, SetupError> {
        a.require_square()?;
        let limit = self.max_bytes.or_else(crate::setup::available_memory).unwrap_or(u64::MAX);
        if self.level == 0 && require_diagonal(a).is_ok() {
            let predicted = fill::bytes_by_rows(a.nrows(), (a.nnz() - a.nrows()) as u64);
            return match predicted > limit {
                true => Err(SetupError::MemoryLimit { predicted, limit }),
                false => Ok(Arc::clone(a)),
            };
        }
        fill::levels(a, self.level, self.form.kind == Kind::Cholesky, limit).map(Arc::new)
    }
}

/// An analyzed pattern.
#[derive(Debug, Clone)]
pub struct IncompleteSymbolic {
    form: Form,
    /// Of A.
    source: Arc<Pattern>,
    ldu: Arc<LduSymbolic>,
    /// For a factor that keeps sums of columns: the pattern of Aᵀ, and what is eliminated there.
    transposed: Option<(Arc<Pattern>, Arc<LduSymbolic>)>,
}

impl IncompleteSymbolic {
    /// Plans for this form on a pattern with a full diagonal; that of a symmetric factor is symmetric.
    pub(crate) fn on(
        form: Form,
        source: &Arc<Pattern>,
        pattern: &Pattern,
        threads: usize,
        schedule: Schedule,
    ) -> Result<Self, SetupError> {
        let lower = fill::strict(pattern, true);
        let upper = match form.kind {
            Kind::Cholesky => lower.transpose(),
            Kind::Lu => fill::strict(pattern, false),
        };
        let transposed = if form.transposed() {
            let (below, above) = (upper.transpose(), lower.transpose());
            let ldu = LduSymbolic::new(Arc::new(below), Arc::new(above), threads, schedule)?;
            Some((Arc::new(source.transpose()), Arc::new(ldu)))
        } else {
            None
        };
        let ldu = Arc::new(LduSymbolic::new(Arc::new(lower), Arc::new(upper), threads, schedule)?);
        Ok(IncompleteSymbolic { form, source: Arc::clone(source), ldu, transposed })
    }

    /// Room for a factor stored in `S`, all zero: `refactor` comes before its use.
    pub fn allocate<T: Real, S: Real>(&self) -> IncompleteFactor<T, S> {
        let transposed = self.transposed.as_ref().map(|(pattern, ldu)| {
            let a = Csr::trusted(Arc::clone(pattern), vec![T::ZERO; pattern.nnz()]);
            Box::new(Transposed { a, ldu: ldu.allocate() })
        });
        IncompleteFactor {
            form: self.form,
            source: Arc::clone(&self.source),
            ldu: self.ldu.allocate(),
            transposed,
            shift: 0.0,
        }
    }
}

impl<T: Real> Recipe<Threads<T>, Csr<T>> for Incomplete {
    type Symbolic = IncompleteSymbolic;

    fn analyze(&self, space: &Threads<T>, a: &Csr<T>) -> Result<IncompleteSymbolic, SetupError> {
        if self.form.kind == Kind::Cholesky {
            fill::require_symmetric(a.pattern())?;
        }
        let pattern = self.pattern(a.pattern())?;
        IncompleteSymbolic::on(self.form, a.pattern(), &pattern, space.threads(), self.schedule)
    }
}

impl<T: Real> Symbolic<Threads<T>, Csr<T>> for IncompleteSymbolic {
    type Factor = IncompleteFactor<T>;

    fn factor(&self, space: &Threads<T>, a: &Csr<T>) -> Result<IncompleteFactor<T>, SetupError> {
        let mut factor = self.allocate();
        factor.refactor(space, a)?;
        Ok(factor)
    }
}

/// The factor, with its triangles stored in `S`.
#[derive(Debug)]
pub struct IncompleteFactor<T, S = T> {
    form: Form,
    source: Arc<Pattern>,
    ldu: Ldu<T, S>,
    transposed: Option<Box<Transposed<T, S>>>,
    shift: f64,
}

/// Aᵀ and its factor.
#[derive(Debug)]
struct Transposed<T, S> {
    a: Csr<T>,
    ldu: Ldu<T, S>,
}

impl<T: Real, S: Real> Preconditioner<Threads<T>, Csr<T>> for IncompleteFactor<T, S> {
    fn refactor(&mut self, space: &Threads<T>, a: &Csr<T>) -> Result<(), SetupError> {
        require_pattern(&self.source, a.pattern())?;
        let Some(transposed) = &mut self.transposed else {
            return eliminate(space, a, self.form, self.shift, &mut self.ldu);
        };
        let Transposed { a: at, ldu } = &mut **transposed;
        transpose_into(space, a, at);
        eliminate(space, at, self.form, self.shift, ldu)?;
        transpose_into(space, &ldu.upper, &mut self.ldu.lower);
        transpose_into(space, &ldu.lower, &mut self.ldu.upper);
        self.ldu.inverse.copy_from_slice(&ldu.inverse);
        Ok(())
    }

    fn set_shift(&mut self, shift: f64) -> bool {
        self.shift = shift;
        true
    }
}

/// An error unless all entries are below (or above) the diagonal.
fn require_strict(pattern: &Pattern, below: bool) -> Result<(), MatrixError> {
    let triangle = if below { "strict lower" } else { "strict upper" };
    for row in 0..pattern.nrows() {
        let columns = pattern.row(row);
        let outermost = if below { columns.last() } else { columns.first() };
        match outermost {
            Some(&column) if below && column as usize >= row => {
                return Err(MatrixError::NotTriangular { row, column, triangle });
            }
            Some(&column) if !below && column as usize <= row => {
                return Err(MatrixError::NotTriangular { row, column, triangle });
            }
            _ => {}
        }
    }
    Ok(())
}

/// The numbers of a factor on its pattern.
fn eliminate<T: Real, S: Real>(
    space: &Threads<T>,
    a: &Csr<T>,
    form: Form,
    shift: f64,
    ldu: &mut Ldu<T, S>,
) -> Result<(), SetupError> {
    let Ldu { symbolic, lower, upper, inverse, refactoring } = ldu;
    let run = symbolic.down.begin(refactoring);
    let rows = Rows {
        a,
        form,
        shift,
        lower: &symbolic.lower,
        upper: &symbolic.upper,
        l: DisjointSlice::new(lower.values_mut()),
        u: DisjointSlice::new(upper.values_mut()),
        inverse: DisjointSlice::new(inverse),
        bad: FirstBadPivot::default(),
    };
    space.team().run(|member| {
        // SAFETY: the plan calls each row once, after the rows of its lower pattern.
        run.go(&member, |i| unsafe { rows.eliminate(i) });
        if form.kind == Kind::Cholesky {
            member.barrier();
            for j in member.part(symbolic.upper.nrows(), 256) {
                let columns = symbolic.upper.row(j);
                // SAFETY: every row of U has one member; L is finished since the barrier.
                unsafe {
                    let to = rows.u.get(symbolic.upper.row_range(j));
                    transpose_row(&rows.l, &symbolic.lower, j, columns, to);
                }
            }
        }
    });
    rows.bad.into_result(|row| inverse[row].to_f64())
}

/// Copies the transpose of a matrix into one of the transposed pattern.
fn transpose_into<T: Real, S: Real>(space: &Threads<T>, x: &Csr<S>, to: &mut Csr<S>) {
    let pattern = Arc::clone(to.pattern());
    let to = DisjointSlice::new(to.values_mut());
    space.team().run(|member| {
        for j in member.part(pattern.nrows(), 256) {
            // SAFETY: every row has one member.
            let to = unsafe { to.get(pattern.row_range(j)) };
            for (to, &i) in to.iter_mut().zip(pattern.row(j)) {
                let place = x.pattern().find(i as usize, j).expect("one pattern is the other transposed");
                *to = x.values()[place];
            }
        }
    });
}

impl<T: Real, S: Real> IncompleteFactor<T, S> {
    /// Triangles that were computed elsewhere, such as by threshold, for a matrix with this pattern. `refactor` then eliminates on
    /// their pattern. Column exchanges are the caller's: the triangles belong to the matrix as it is given here.
    pub fn frozen(
        form: Form,
        source: &Arc<Pattern>,
        triangles: Triangles<T>,
        threads: usize,
        schedule: Schedule,
    ) -> Result<Self, SetupError> {
        let Triangles { lower, inverse, upper, .. } = triangles;
        let n = source.nrows();
        source.require_square()?;
        for (what, found) in [
            ("rows of L", lower.nrows()),
            ("columns of L", lower.ncols()),
            ("rows of U", upper.nrows()),
            ("columns of U", upper.ncols()),
            ("D", inverse.len()),
        ] {
            crate::matrix::check_length(what, n, found)?;
        }
        require_strict(lower.pattern(), true)?;
        require_strict(upper.pattern(), false)?;
        if form.kind == Kind::Cholesky && lower.pattern().transpose() != **upper.pattern() {
            return Err(SetupError::PatternNotSymmetric);
        }
        if form.transposed() {
            return Err(BackendError::Unsupported { what: "sums of columns on a frozen pattern" }.into());
        }
        let (below, above) = (Arc::clone(lower.pattern()), Arc::clone(upper.pattern()));
        let ldu = Arc::new(LduSymbolic::new(below, above, threads, schedule)?);
        let symbolic = IncompleteSymbolic { form, source: Arc::clone(source), ldu, transposed: None };
        let mut factor: Self = symbolic.allocate();
        let narrow = |v: &T| S::from_f64(v.to_f64());
        for (to, from) in [(&mut factor.ldu.lower, &lower), (&mut factor.ldu.upper, &upper)] {
            to.values_mut().iter_mut().zip(from.values()).for_each(|(to, from)| *to = narrow(from));
        }
        factor.ldu.inverse = inverse;
        Ok(factor)
    }

    /// Entries of L, D and U; of a symmetric factor those of L and D.
    pub fn nnz(&self) -> usize {
        match self.form.kind {
            Kind::Cholesky => self.ldu.lower.nnz() + self.ldu.inverse.len(),
            Kind::Lu => self.ldu.nnz(),
        }
    }

    /// Bytes of the factor and its plans.
    pub fn bytes(&self) -> usize {
        let transposed = self.transposed.as_ref().map_or(0, |t| t.a.bytes() + t.ldu.bytes());
        self.ldu.bytes() + transposed
    }

    /// The plans of the forward and the backward sweep.
    pub fn plans(&self) -> (&Plan, &Plan) {
        (&self.ldu.symbolic.down, &self.ldu.symbolic.up)
    }

    /// The strict triangles and the inverse of D in M = (I + L) D (I + U).
    pub fn parts(&self) -> (&Csr<S>, &[T], &Csr<S>) {
        (&self.ldu.lower, &self.ldu.inverse, &self.ldu.upper)
    }
}

impl<T: Real, S: Real> LinearOperator<Threads<T>> for IncompleteFactor<T, S> {
    type Scratch = SweepScratch<T>;

    fn domain(&self) -> usize {
        self.ldu.inverse.len()
    }

    fn range(&self) -> usize {
        self.ldu.inverse.len()
    }

    fn scratch(&self, _: &Threads<T>) -> Result<SweepScratch<T>, BackendError> {
        Ok(self.ldu.scratch())
    }

    fn apply(
        &self,
        space: &Threads<T>,
        x: &Vec<T>,
        z: &mut Vec<T>,
        scratch: &mut SweepScratch<T>,
    ) -> Result<(), BackendError> {
        self.ldu.apply(space, x, z, scratch)
    }
}
