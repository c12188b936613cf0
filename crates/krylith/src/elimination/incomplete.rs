//! Incomplete factors M = (I + L) D (I + U) by rows: IC(k), ILU(k), their modified and their diagonal-only variants.
//!
//! The pattern comes from levels of fill (`fill`), the numbers from elimination on that pattern (`eliminate`), both triangles are
//! applied by `ldu`. U = Lᵀ is copied entry by entry for a symmetric factor, so that M is symmetric to the bit and its application
//! too. Row i needs the rows k < i of its pattern: elimination runs along the plan of the forward sweep, and its result does not
//! depend on the plan. Of several bad pivots the smallest row is found on any plan. A symmetric factor needs a symmetric pattern.
//!
//! A factor that keeps sums of columns is the one that keeps sums of rows for Aᵀ, transposed.
#![allow(unsafe_code)]

use super::Triangles;
use super::driver::{Factor, FactorScratch, Triangular};
use super::fill;
use super::form::{Form, Kind, PreservedSums, Update};
use super::ldu::{Ldu, LduSymbolic};
use crate::disjoint::DisjointSlice;
use crate::error::{BackendError, MatrixError, SetupError};
use crate::matrix::require_diagonal;
use crate::matrix::{Csr, Pattern};
use crate::operator::{LinearOperator, Parts, Preconditioner, Recipe, Symbolic};
use crate::scalar::Real;
use crate::schedule::{Plan, Schedule};
use crate::space::Threads;
use std::any::Any;
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
        let update = Update::Modified { omega, sums: PreservedSums::Rows };
        Self::new(Form { kind: Kind::Cholesky, update }, level)
    }

    /// MILU(k) with relaxation ω.
    pub fn milu(level: usize, omega: f64, sums: PreservedSums) -> Self {
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
        let limit = self.max_bytes.or_else(crate::memory::available_memory).unwrap_or(u64::MAX);
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
    ldu: Arc<LduSymbolic>,
    /// For a factor that keeps sums of columns: what is eliminated of Aᵀ.
    transposed: Option<Arc<LduSymbolic>>,
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
        let new = |source: &Arc<Pattern>, below, above| {
            LduSymbolic::new(source, Arc::new(below), Arc::new(above), threads, schedule).map(Arc::new)
        };
        let transposed = match form.transposed() {
            true => Some(new(&Arc::new(source.transpose()), upper.transpose(), lower.transpose())?),
            false => None,
        };
        Ok(IncompleteSymbolic { form, ldu: new(source, lower, upper)?, transposed })
    }

    /// Room for a factor stored in `S`, all zero: `refactor` comes before its use.
    pub fn allocate<T: Real, S: Real>(&self) -> IncompleteFactor<T, S> {
        let factor = |ldu: &LduSymbolic| Factor::with_room(ldu.allocate(self.form), Arc::clone(&ldu.plans));
        let transposed = self.transposed.as_ref().map(|ldu| {
            let a = Csr::trusted(Arc::clone(&ldu.source), vec![T::ZERO; ldu.source.nnz()]);
            Box::new(Transposed { a, factor: factor(ldu) })
        });
        IncompleteFactor { factor: factor(&self.ldu), transposed }
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
        self.factor_shifted(space, a, 0.0)
    }

    fn factor_shifted(
        &self,
        space: &Threads<T>,
        a: &Csr<T>,
        shift: f64,
    ) -> Result<IncompleteFactor<T>, SetupError> {
        let mut factor = self.allocate();
        Preconditioner::<Threads<T>, Csr<T>>::set_shift(&mut factor, shift);
        factor.refactor(space, a)?;
        Ok(factor)
    }
}

/// The factor, with its triangles stored in `S`.
#[derive(Debug)]
pub struct IncompleteFactor<T: Real, S: Real = T> {
    factor: Factor<Ldu<T, S>>,
    transposed: Option<Box<Transposed<T, S>>>,
}

/// Aᵀ and its factor.
#[derive(Debug)]
struct Transposed<T: Real, S: Real> {
    a: Csr<T>,
    factor: Factor<Ldu<T, S>>,
}

impl<T: Real, S: Real> Preconditioner<Threads<T>, Csr<T>> for IncompleteFactor<T, S> {
    fn refactor(&mut self, space: &Threads<T>, a: &Csr<T>) -> Result<(), SetupError> {
        let Some(transposed) = &mut self.transposed else { return self.factor.refactor(space, a) };
        let Transposed { a: at, factor: of_at } = &mut **transposed;
        self.factor.kernels().require(a)?;
        self.factor.release();
        transpose_into(space, a, at);
        of_at.refactor(space, at)?;
        let (own, theirs) = (self.factor.kernels_mut(), of_at.kernels());
        transpose_into(space, &theirs.upper, &mut own.lower);
        transpose_into(space, &theirs.lower, &mut own.upper);
        own.inverse.copy_from_slice(&theirs.inverse);
        self.factor.set_computed();
        Ok(())
    }

    fn set_shift(&mut self, shift: f64) -> bool {
        if let Some(transposed) = &mut self.transposed {
            transposed.factor.set_shift(shift);
        }
        self.factor.set_shift(shift)
    }

    fn release(&mut self) {
        self.factor.release();
    }

    fn entries(&self) -> usize {
        self.nnz()
    }

    fn bytes(&self) -> usize {
        self.bytes()
    }

    /// Triangles in `f32` under vectors in `f64` are not among them.
    fn parts(&self) -> Option<Parts<'_, T>> {
        let Ldu { lower, inverse, upper, .. } = self.factor.kernels();
        let wide = |triangle| (triangle as &dyn Any).downcast_ref::<Csr<T>>();
        Some(Parts::Triangles { lower: wide(lower)?, inverse, upper: wide(upper)? })
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
        let ldu = LduSymbolic::new(source, below, above, threads, schedule)?;
        let mut kernels: Ldu<T, S> = ldu.allocate(form);
        let narrow = |v: &T| S::from_f64(v.to_f64());
        for (to, from) in [(&mut kernels.lower, &lower), (&mut kernels.upper, &upper)] {
            to.values_mut().iter_mut().zip(from.values()).for_each(|(to, from)| *to = narrow(from));
        }
        kernels.inverse = inverse;
        Ok(IncompleteFactor { factor: Factor::computed(kernels, ldu.plans), transposed: None })
    }

    /// Entries of L, D and U; of a symmetric factor those of L and D.
    pub fn nnz(&self) -> usize {
        self.factor.nnz()
    }

    /// Bytes of the factor and its plans.
    pub fn bytes(&self) -> usize {
        self.factor.bytes() + self.transposed.as_ref().map_or(0, |t| t.a.bytes() + t.factor.bytes())
    }

    /// The plans of the forward and the backward sweep.
    pub fn plans(&self) -> (&Plan, &Plan) {
        (&self.factor.plans().down, &self.factor.plans().up)
    }

    /// How the forward and the backward sweep are divided on a team of `threads`, and why.
    pub fn schedule(&self, threads: usize) -> [String; 2] {
        self.factor.schedule(threads)
    }

    /// The strict triangles and the inverse of D in M = (I + L) D (I + U).
    pub fn parts(&self) -> (&Csr<S>, &[T], &Csr<S>) {
        let Ldu { lower, inverse, upper, .. } = self.factor.kernels();
        (lower, inverse, upper)
    }
}

impl<T: Real, S: Real> LinearOperator<Threads<T>> for IncompleteFactor<T, S> {
    type Scratch = FactorScratch<Plan>;

    fn domain(&self) -> usize {
        self.factor.domain()
    }

    fn range(&self) -> usize {
        self.factor.range()
    }

    fn scratch(&self, space: &Threads<T>) -> Result<Self::Scratch, BackendError> {
        self.factor.scratch(space)
    }

    fn apply(
        &self,
        space: &Threads<T>,
        x: &Vec<T>,
        z: &mut Vec<T>,
        scratch: &mut Self::Scratch,
    ) -> Result<(), BackendError> {
        self.factor.apply(space, x, z, scratch)
    }
}
