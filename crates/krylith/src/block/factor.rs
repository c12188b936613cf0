//! Block Jacobi, and block IC(0), ILU(0), DIC and DILU: M = (I + L) D (I + U) with the block pattern of A. That of IC(0) and ILU(0)
//! equals A on that pattern. DIC and DILU update the diagonal blocks alone, so that L D and D U stay the blocks of A:
//!
//!   M = (D + A_lower) D⁻¹ (D + A_upper);   Dᵢ = Aᵢᵢ − Σ Aᵢₖ Dₖ⁻¹ Aₖᵢ (k < i)
//!
//!   forward:  zᵢ = xᵢ − Σ Lᵢⱼ zⱼ (j < i);   backward:  zᵢ = Dᵢ⁻¹ zᵢ − Σ Uᵢⱼ zⱼ (j > i), in place
//!
//! The formulas are those of `precond`, a block in the place of a number; row i needs the block rows of its lower pattern, and
//! factorization runs along the plan of the forward sweep. D⁻¹ is stored. IC(0) and DIC read the lower blocks of A and the lower
//! triangle of its diagonal blocks; U = Lᵀ is copied, and D⁻¹ is symmetric to the bit, so M is. The others exchange rows within a
//! diagonal block where a pivot asks for it. Jacobi is the factor without L and U.
//!
//! Where all blocks are full IC(0) and ILU(0) are the scalar factors up to rounding; the module's head says why. DIC and DILU
//! are not: they keep whole blocks where the scalar ones keep a diagonal.
//!
//! Before a factorization the entries on the (scalar) diagonal of A are enlarged by a multiple of the size of their rows, as those of
//! scalar factors are (see `precond::form`): a large enough shift lets a factor of any matrix exist.
//!
//! Breakdown: a diagonal block that is not positive definite (IC(0), DIC), or singular (the others). It is reported by the scalar row at
//! which the elimination within the block stops and the pivot there; the smallest such row on any plan, because nothing before
//! it is bad. Where a block is singular this row is that of the step, whatever rows were exchanged before.
//!
//! Bytes of an application: 8 B² + 4 per block of L and U; 8 B + 16 / B a row for D⁻¹ and pointers, and 32 for x and z.
//! References: Meijerink & van der Vorst 1977, doi:10.1090/S0025-5718-1977-0438681-4; Manteuffel 1980,
//! doi:10.1090/S0025-5718-1980-0559197-0, for the shift; Pommerell & Fichtner 1994, doi:10.1137/0915032, for DILU; Saad, Iterative Methods for Sparse Linear Systems, 2nd ed., 10.3 and 12.6.
#![allow(unsafe_code)]

use super::kernels::{self, FactorWriter, View};
use super::matrix::Bsr;
use crate::elimination::driver::{Factor, Plans, Triangular};
use crate::elimination::{FirstBadPivot, Form, Kind, Update, require_symmetric};
use crate::error::{MatrixError, SetupError};
use crate::matrix::{Pattern, Triangle, require_pattern};
use crate::memory::large_pages;
use crate::operator::{Preconditioner, Recipe, Symbolic};
use crate::schedule::{Plan, Schedule};
use crate::simd::SLACK;
use crate::space::Threads;
use std::ops::Range;
use std::sync::Arc;

/// Which preconditioner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockKind {
    /// The diagonal blocks.
    Jacobi,
    /// Incomplete Cholesky on the block pattern.
    Ic0,
    /// Incomplete LU on the block pattern.
    Ilu0,
    /// Incomplete Cholesky that updates the diagonal blocks only.
    Dic,
    /// Incomplete LU that updates the diagonal blocks only.
    Dilu,
}

impl BlockKind {
    /// The scalar factor that this one is with a block in the place of a number; `None` for the diagonal blocks alone.
    pub(crate) fn form(self) -> Option<Form> {
        match self {
            BlockKind::Jacobi => None,
            BlockKind::Ic0 => Some(Form::CHOLESKY),
            BlockKind::Ilu0 => Some(Form::LU),
            BlockKind::Dic => Some(Form { kind: Kind::Cholesky, update: Update::Diagonal }),
            BlockKind::Dilu => Some(Form { kind: Kind::Lu, update: Update::Diagonal }),
        }
    }
}

/// The recipe of any of them.
#[derive(Debug, Clone, Copy)]
pub struct BlockRecipe {
    /// Which one.
    pub kind: BlockKind,
    /// How sweeps and factorization are divided.
    pub schedule: Schedule,
    /// The diagonal of A is enlarged by this multiple of the size of its rows.
    pub shift: f64,
}

impl BlockRecipe {
    /// The usual schedule, no shift.
    pub fn new(kind: BlockKind) -> Self {
        BlockRecipe { kind, schedule: Schedule::Auto, shift: 0.0 }
    }
}

/// An analyzed block pattern.
#[derive(Debug, Clone)]
pub struct BlockSymbolic {
    kind: BlockKind,
    shift: f64,
    triangles: Arc<Triangles>,
}

/// The strict triangles of a block pattern, and how to go through them.
#[derive(Debug)]
struct Triangles {
    pattern: Arc<Pattern>,
    lower: Pattern,
    upper: Pattern,
    plans: Arc<Plans<Plan>>,
}

/// The factor.
pub type BlockFactor<const B: usize> = Factor<BlockKernels<B>>;

/// Values of a factor in blocks.
#[derive(Debug)]
pub struct BlockKernels<const B: usize> {
    kind: BlockKind,
    triangles: Arc<Triangles>,
    /// Blocks of L, D⁻¹ and U, each followed by [`SLACK`] zeros.
    lower: Vec<f64>,
    inverse: Vec<f64>,
    upper: Vec<f64>,
}

/// The blocks below (or above) the diagonal.
fn strict(pattern: &Pattern, below: bool) -> Pattern {
    let piece = |i: usize| {
        let columns = pattern.row(i);
        let split = columns.partition_point(|&j| (j as usize) < i);
        let skip = usize::from(columns.get(split) == Some(&(i as u32)));
        if below { &columns[..split] } else { &columns[split + skip..] }
    };
    let (n, mut row_ptr, mut col_idx) = (pattern.nrows(), vec![0], Vec::with_capacity(pattern.nnz() / 2));
    for i in 0..n {
        col_idx.extend_from_slice(piece(i));
        row_ptr.push(col_idx.len());
    }
    Pattern::trusted(n, n, row_ptr, col_idx)
}

impl Triangles {
    fn new(pattern: &Arc<Pattern>, recipe: &BlockRecipe, threads: usize) -> Result<Self, MatrixError> {
        let n = pattern.nrows();
        let (lower, upper) = match recipe.kind.form().map(|form| form.kind) {
            None => {
                let empty = || Pattern::trusted(n, n, vec![0; n + 1], Vec::new());
                (empty(), empty())
            }
            Some(Kind::Cholesky) => {
                let lower = strict(pattern, true);
                let upper = lower.transpose();
                (lower, upper)
            }
            Some(Kind::Lu) => (strict(pattern, true), strict(pattern, false)),
        };
        let down = Plan::new(&lower, Triangle::Lower, threads, recipe.schedule)?;
        let up = Plan::new(&upper, Triangle::Upper, threads, recipe.schedule)?;
        let plans = Arc::new(Plans { down, up });
        Ok(Triangles { pattern: Arc::clone(pattern), lower, upper, plans })
    }
}

impl BlockRecipe {
    /// Analyzes the pattern of blocks of B rows for a team of `threads`. Incomplete Cholesky needs a symmetric one.
    pub fn analyze_pattern<const B: usize>(
        &self,
        pattern: &Arc<Pattern>,
        threads: usize,
    ) -> Result<BlockSymbolic, SetupError> {
        pattern.require_square()?;
        if let Some(row) = (0..pattern.nrows()).find(|&i| pattern.find(i, i).is_none()) {
            return Err(SetupError::MissingDiagonal { row: row * B });
        }
        if self.kind.form().is_some_and(|form| form.kind == Kind::Cholesky) {
            require_symmetric(pattern)?;
        }
        let triangles = Arc::new(Triangles::new(pattern, self, threads)?);
        Ok(BlockSymbolic { kind: self.kind, shift: self.shift, triangles })
    }
}

impl BlockSymbolic {
    /// Room for a factor, all zero: `refactor` comes before its use.
    pub fn allocate<const B: usize>(&self) -> BlockFactor<B> {
        let t = &self.triangles;
        let room = |blocks: usize| large_pages::zeros(blocks * B * B + SLACK);
        let kernels = BlockKernels {
            kind: self.kind,
            lower: room(t.lower.nnz()),
            inverse: room(t.lower.nrows()),
            upper: room(t.upper.nnz()),
            triangles: Arc::clone(t),
        };
        let mut factor = Factor::with_room(kernels, Arc::clone(&t.plans));
        factor.set_shift(self.shift);
        factor
    }
}

impl<const B: usize> Recipe<Threads<f64>, Bsr<B>> for BlockRecipe {
    type Symbolic = BlockSymbolic;

    fn analyze(&self, space: &Threads<f64>, a: &Bsr<B>) -> Result<BlockSymbolic, SetupError> {
        self.analyze_pattern::<B>(a.pattern(), space.threads())
    }
}

impl<const B: usize> Symbolic<Threads<f64>, Bsr<B>> for BlockSymbolic {
    type Factor = BlockFactor<B>;

    fn factor(&self, space: &Threads<f64>, a: &Bsr<B>) -> Result<BlockFactor<B>, SetupError> {
        let mut factor = self.allocate();
        factor.refactor(space, a)?;
        Ok(factor)
    }
}

impl<const B: usize> BlockFactor<B> {
    /// Which preconditioner this is.
    pub fn kind(&self) -> BlockKind {
        self.kernels().kind
    }

    /// The patterns of L and U.
    pub fn patterns(&self) -> (&Pattern, &Pattern) {
        let triangles = &self.kernels().triangles;
        (&triangles.lower, &triangles.upper)
    }

    /// The blocks of L, D⁻¹ and U in M = (I + L) D (I + U), each row by row.
    pub fn parts(&self) -> (&[f64], &[f64], &[f64]) {
        let BlockKernels { lower, inverse, upper, .. } = self.kernels();
        let blocks = |values: &'_ [f64]| values.len() - SLACK;
        (&lower[..blocks(lower)], &inverse[..blocks(inverse)], &upper[..blocks(upper)])
    }
}

impl<const B: usize> Triangular for BlockKernels<B> {
    type Scalar = f64;
    type Source = Bsr<B>;
    type Plan = Plan;
    type Elimination<'e> = Elimination<'e>;

    fn len(&self) -> usize {
        self.triangles.lower.nrows() * B
    }

    fn require(&self, a: &Bsr<B>) -> Result<(), SetupError> {
        require_pattern(&self.triangles.pattern, a.pattern())
    }

    fn begin<'e>(&'e mut self, a: &'e Bsr<B>, shift: f64, bad: &'e FirstBadPivot) -> Elimination<'e> {
        let form = self.kind.form();
        let writer = FactorWriter {
            a: a.view(),
            lower: &self.triangles.lower,
            upper: &self.triangles.upper,
            l: self.lower.as_mut_ptr(),
            inverse: self.inverse.as_mut_ptr(),
            u: self.upper.as_mut_ptr(),
            form: form.unwrap_or(Form::LU),
            shift,
        };
        Elimination { writer, kind: form.map(|form| form.kind), bad }
    }

    unsafe fn eliminate(e: &Elimination<'_>, i: usize) {
        // SAFETY: by the caller's promise.
        let result = unsafe {
            match e.kind {
                None => kernels::invert::<B>(&e.writer, i),
                Some(Kind::Cholesky) => kernels::eliminate_ic::<B>(&e.writer, i),
                Some(Kind::Lu) => kernels::eliminate_ilu::<B>(&e.writer, i),
            }
        };
        if let Err(breakdown) = result {
            e.bad.report(i * B + breakdown.step);
        }
    }

    fn mirror_parts(&self) -> Option<(usize, usize)> {
        let cholesky = self.kind.form().is_some_and(|form| form.kind == Kind::Cholesky);
        cholesky.then_some((self.triangles.upper.nrows(), 64))
    }

    unsafe fn mirror(e: &Elimination<'_>, parts: Range<usize>) {
        for j in parts {
            // SAFETY: by the caller's promise.
            unsafe { kernels::mirror::<B>(&e.writer, j) };
        }
    }

    fn pivot(&self, row: usize) -> f64 {
        self.inverse[row * B + row % B]
    }

    #[inline]
    unsafe fn forward(&self, i: usize, x: *const f64, z: *mut f64) {
        let lower = View { pattern: &self.triangles.lower, values: self.lower.as_ptr() };
        // SAFETY: by the caller's promise.
        unsafe { kernels::forward::<B>(lower, i, x, z) };
    }

    #[inline]
    unsafe fn backward(&self, i: usize, z: *mut f64) {
        let upper = View { pattern: &self.triangles.upper, values: self.upper.as_ptr() };
        // SAFETY: by the caller's promise.
        unsafe { kernels::backward::<B>(upper, self.inverse.as_ptr(), i, z) };
    }

    fn diagonal_parts(&self) -> Option<(usize, usize)> {
        (self.kind == BlockKind::Jacobi).then_some((self.triangles.lower.nrows(), 64))
    }

    unsafe fn scale(&self, parts: Range<usize>, x: *const f64, z: *mut f64) {
        // SAFETY: by the caller's promise.
        unsafe { kernels::scale::<B>(self.inverse.as_ptr(), parts, x, z) };
    }

    /// What is stored twice is counted once: of a symmetric factor L and the lower triangle of D.
    fn nnz(&self) -> usize {
        let (t, n) = (&self.triangles, self.triangles.lower.nrows());
        match self.kind {
            BlockKind::Ic0 | BlockKind::Dic => t.lower.nnz() * B * B + n * B * (B + 1) / 2,
            _ => (t.lower.nnz() + n + t.upper.nnz()) * B * B,
        }
    }
    fn bytes(&self) -> usize {
        let t = &*self.triangles;
        let values: usize =
            [&self.lower, &self.inverse, &self.upper].iter().map(|v| size_of_val(v.as_slice())).sum();
        values + t.lower.bytes() + t.upper.bytes()
    }
}

/// What members share while they eliminate.
pub struct Elimination<'e> {
    writer: FactorWriter<'e>,
    kind: Option<Kind>,
    bad: &'e FirstBadPivot,
}
