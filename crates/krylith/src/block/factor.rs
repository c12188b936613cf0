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
//! Breakdown: a diagonal block that is not positive definite (IC(0), DIC), or singular (the others). It is told by the scalar row at
//! which the elimination within the block stops and the pivot there; the smallest such row on any plan, because nothing before
//! it is bad. Where a block is singular this row is that of the step, whatever rows were exchanged before.
//!
//! Bytes of an application: 8 B² + 4 a block of L and U; 8 B + 16 / B a row for D⁻¹ and pointers, and 32 for x and z.
//! References: Meijerink & van der Vorst 1977, doi:10.1090/S0025-5718-1977-0438681-4; Manteuffel 1980,
//! doi:10.1090/S0025-5718-1980-0559197-0, for the shift; Pommerell & Fichtner 1994, doi:10.1137/0915032, for DILU; Saad, Iterative Methods for Sparse Linear Systems, 2nd ed., 10.3 and 12.6.
#![allow(unsafe_code)]

use super::kernels::{self, Making, View};
use super::matrix::Bsr;
use crate::disjoint::DisjointSlice;
use crate::error::{BackendError, MatrixError, SetupError};
use crate::huge;
use crate::matrix::{Pattern, Triangle};
use crate::operator::{LinearOperator, Preconditioner, Recipe, Symbolic};
use crate::precond::{FirstBadPivot, Form, Kind, Update, require_pattern, require_symmetric};
use crate::schedule::{Plan, PlanScratch, Schedule};
use crate::simd::SLACK;
use crate::space::{Threads, require_same};
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
    down: Plan,
    up: Plan,
}

/// The factor.
#[derive(Debug)]
pub struct BlockFactor<const B: usize> {
    /// The diagonal of A is enlarged by this multiple of the size of its rows; `refactor` uses what stands here.
    pub shift: f64,
    kind: BlockKind,
    triangles: Arc<Triangles>,
    /// Blocks of L, D⁻¹ and U, each followed by [`SLACK`] zeros.
    lower: Vec<f64>,
    inverse: Vec<f64>,
    upper: Vec<f64>,
    /// Progress of `refactor`, which runs along the plan of the forward sweep.
    refactoring: PlanScratch,
}

/// Progress of both sweeps.
#[derive(Debug)]
pub struct BlockScratch {
    down: PlanScratch,
    up: PlanScratch,
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
        Ok(Triangles { pattern: Arc::clone(pattern), lower, upper, down, up })
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
        let room = |blocks: usize| huge::zeros(blocks * B * B + SLACK);
        BlockFactor {
            shift: self.shift,
            kind: self.kind,
            lower: room(t.lower.nnz()),
            inverse: room(t.lower.nrows()),
            upper: room(t.upper.nnz()),
            refactoring: t.down.scratch(),
            triangles: Arc::clone(t),
        }
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

impl<const B: usize> Preconditioner<Threads<f64>, Bsr<B>> for BlockFactor<B> {
    fn refactor(&mut self, space: &Threads<f64>, a: &Bsr<B>) -> Result<(), SetupError> {
        let t = &*self.triangles;
        require_pattern(&t.pattern, a.pattern())?;
        let run = t.down.begin(&mut self.refactoring);
        let (form, bad) = (self.kind.form(), FirstBadPivot::default());
        let kind = form.map(|form| form.kind);
        let f = Making {
            a: a.view(),
            lower: &t.lower,
            upper: &t.upper,
            l: self.lower.as_mut_ptr(),
            inverse: self.inverse.as_mut_ptr(),
            u: self.upper.as_mut_ptr(),
            form: form.unwrap_or(Form::LU),
            shift: self.shift,
        };
        space.team().run(|member| {
            let f: &Making<'_> = &f;
            run.go(&member, |i| {
                // SAFETY: the plan calls each row once, after the rows of its lower pattern.
                let result = unsafe {
                    match kind {
                        None => kernels::invert::<B>(f, i),
                        Some(Kind::Cholesky) => kernels::eliminate_ic::<B>(f, i),
                        Some(Kind::Lu) => kernels::eliminate_ilu::<B>(f, i),
                    }
                };
                if let Err(breakdown) = result {
                    bad.report(i * B + breakdown.step);
                }
            });
            if kind == Some(Kind::Cholesky) {
                member.barrier();
                for j in member.part(t.upper.nrows(), 64) {
                    // SAFETY: every row of U has one member; L is finished since the barrier.
                    unsafe { kernels::mirror::<B>(f, j) };
                }
            }
        });
        bad.into_result(|row| self.inverse[row * B + row % B])
    }
}

impl<const B: usize> BlockFactor<B> {
    /// Which preconditioner this is.
    pub fn kind(&self) -> BlockKind {
        self.kind
    }

    /// Entries of L, D and U; for IC(0) and DIC of L and the lower triangle of D: what is stored twice is counted once.
    pub fn nnz(&self) -> usize {
        let (t, n) = (&self.triangles, self.triangles.lower.nrows());
        match self.kind {
            BlockKind::Ic0 | BlockKind::Dic => t.lower.nnz() * B * B + n * B * (B + 1) / 2,
            _ => (t.lower.nnz() + n + t.upper.nnz()) * B * B,
        }
    }

    /// Bytes of the factor, its patterns and its plans.
    pub fn bytes(&self) -> usize {
        let t = &*self.triangles;
        let values: usize =
            [&self.lower, &self.inverse, &self.upper].iter().map(|v| size_of_val(v.as_slice())).sum();
        values + t.lower.bytes() + t.upper.bytes() + t.down.bytes() + t.up.bytes()
    }

    /// The plans of the forward and the backward sweep.
    pub fn plans(&self) -> (&Plan, &Plan) {
        (&self.triangles.down, &self.triangles.up)
    }

    /// The patterns of L and U.
    pub fn patterns(&self) -> (&Pattern, &Pattern) {
        (&self.triangles.lower, &self.triangles.upper)
    }

    /// The blocks of L, D⁻¹ and U in M = (I + L) D (I + U), each row by row.
    pub fn parts(&self) -> (&[f64], &[f64], &[f64]) {
        let blocks = |values: &'_ [f64]| values.len() - SLACK;
        (
            &self.lower[..blocks(&self.lower)],
            &self.inverse[..blocks(&self.inverse)],
            &self.upper[..blocks(&self.upper)],
        )
    }
}

impl<const B: usize> LinearOperator<Threads<f64>> for BlockFactor<B> {
    type Scratch = BlockScratch;

    fn domain(&self) -> usize {
        self.triangles.lower.nrows() * B
    }

    fn range(&self) -> usize {
        self.domain()
    }

    fn scratch(&self, _: &Threads<f64>) -> Result<BlockScratch, BackendError> {
        Ok(BlockScratch { down: self.triangles.down.scratch(), up: self.triangles.up.scratch() })
    }

    fn apply(
        &self,
        space: &Threads<f64>,
        x: &Vec<f64>,
        z: &mut Vec<f64>,
        scratch: &mut BlockScratch,
    ) -> Result<(), BackendError> {
        require_same("x and the factor", &x.len(), &self.domain())?;
        require_same("z and the factor", &z.len(), &self.domain())?;
        let (t, z) = (&*self.triangles, DisjointSlice::new(z));
        if self.kind == BlockKind::Jacobi {
            space.team().run(|member| {
                let rows = member.part(t.lower.nrows(), 64);
                // SAFETY: lengths were checked; the rows of the members do not overlap.
                unsafe { kernels::scale::<B>(self.inverse.as_ptr(), rows, x.as_ptr(), z.as_mut_ptr()) };
            });
            return Ok(());
        }
        let (down, up) = (t.down.begin(&mut scratch.down), t.up.begin(&mut scratch.up));
        space.team().run(|member| {
            let lower = View { pattern: &t.lower, values: self.lower.as_ptr() };
            let upper = View { pattern: &t.upper, values: self.upper.as_ptr() };
            down.go(&member, |i| {
                // SAFETY: lengths were checked; the plan calls each row once, after the rows of its lower pattern.
                unsafe { kernels::forward::<B>(lower, i, x.as_ptr(), z.as_mut_ptr()) };
            });
            member.barrier();
            up.go(&member, |i| {
                // SAFETY: as above for the upper pattern; the forward sweep ended at the barrier.
                unsafe { kernels::backward::<B>(upper, self.inverse.as_ptr(), i, z.as_mut_ptr()) };
            });
        });
        Ok(())
    }
}
