//! Systems whose whole iteration is in `f32` (`engine::refined`): incomplete factors with levels of fill, and the diagonal, by rows.

use crate::elimination::{IncompleteFactor, IncompleteSymbolic, Kind, bytes_by_rows, require_symmetric};
use crate::engine::{DynEngine, Refined, rounded};
use crate::error::{SetupError, SolveError};
use crate::matrix::{Csr, Pattern};
use crate::operator::{DynPreconditioner, Preconditioner, Recipe, Symbolic};
use crate::options::{Precision, StorageKind};
use crate::placement::SharedPlacement;
use crate::precond::registry::Construction;
use crate::precond::{Jacobi, PrecondSpec};
use crate::setup::{Memory, SetupContext, SetupRecorder, SetupSummary, Storing};
use crate::space::Threads;
use crate::store::{FindStore, Found, Request, Store};
use std::sync::Arc;

type Context<'a> = SetupContext<'a, Threads<f64>>;

/// Everything in `f32`, refined in `f64`.
pub(crate) struct InSingle;

const LAYOUT: &str = "rows as given, all of the iteration in f32, refined in f64";

impl FindStore<Threads<f64>> for InSingle {
    fn name(&self) -> &'static str {
        "f32"
    }

    fn kind(&self) -> StorageKind {
        StorageKind::Rows
    }

    fn find(
        &self,
        setup: &Context<'_>,
        request: &Request<'_>,
        recorder: &mut SetupRecorder,
    ) -> Result<Found<Threads<f64>>, SolveError> {
        if setup.options.precision != Precision::F32 {
            return Ok(Found::NotAskedFor);
        }
        if let Err(reason) = takes(setup, request.kind) {
            return Ok(Found::Refused(reason));
        }
        let recipe = setup.recipe(request.kind);
        let pattern = match &recipe {
            Some(recipe) => setup.filled_pattern(recipe, recorder)?,
            None => Arc::clone(setup.source.pattern()),
        };
        let factor = predicted_factor(&pattern, recipe.is_some());
        Ok(Found::Store(Box::new(Single { around: around(setup), factor })))
    }
}

/// A system whose iteration is in `f32`.
struct Single {
    around: usize,
    factor: usize,
}

impl Store<Threads<f64>> for Single {
    fn kind(&self) -> StorageKind {
        StorageKind::Rows
    }

    fn memory(&self) -> Memory {
        Memory::in_order(LAYOUT.into(), 0, 0, self.factor)
    }

    fn vector_bytes(&self, _: &Context<'_>) -> usize {
        self.around
    }

    fn placement(&self) -> Option<SharedPlacement<Threads<f64>>> {
        None
    }

    fn engine(
        &self,
        setup: &Context<'_>,
        request: &Request<'_>,
        recorder: &mut SetupRecorder,
    ) -> Result<Option<(DynEngine<Threads<f64>>, SetupSummary)>, SolveError> {
        let SetupContext { space, source, .. } = *setup;
        let kind = request.kind;
        let narrow = recorder.factoring(|| rounded(source));
        let inner = Threads::<f32>::new(space.threads());
        let (mut shift, mut schedule) = (0.0, None);
        let (m, nnz, bytes) = match setup.recipe(kind) {
            Some(recipe) => {
                let pattern = setup.filled_pattern(&recipe, recorder)?;
                if recipe.form.kind == Kind::Cholesky && recipe.level == 0 {
                    recorder.analyzing(|| require_symmetric(source.pattern()))?;
                }
                let (threads, planned) = (space.threads(), recipe.schedule);
                let symbolic = recorder.analyzing(|| {
                    IncompleteSymbolic::on(recipe.form, source.pattern(), &pattern, threads, planned)
                })?;
                let mut m: IncompleteFactor<f32> = symbolic.allocate();
                shift = factor(setup, kind, (&inner, &narrow), &mut m, recorder)?;
                schedule = Some(m.schedule(threads));
                let (nnz, bytes) = (m.nnz(), m.bytes());
                (DynPreconditioner::new(m), nnz, bytes)
            }
            None => {
                let robust = *kind == PrecondSpec::robust_jacobi();
                let symbolic = recorder.analyzing(|| Jacobi { robust }.analyze(&inner, &narrow))?;
                let m = recorder.factoring(|| symbolic.factor(&inner, &narrow))?;
                let (nnz, bytes) = (m.entries(), m.bytes());
                (DynPreconditioner::new(m), nnz, bytes)
            }
        };
        let summary = SetupSummary {
            kind: kind.clone(),
            nnz,
            bytes,
            shift,
            schedule,
            layout: LAYOUT.into(),
            ordering: String::new(),
            predicted: self.around + self.factor,
            held: self.around + bytes,
            storing: Storing { narrow: setup.recipe(kind).is_some(), ..Storing::BY_ROWS },
        };
        Ok(Some((Box::new(Refined::new(space, source, narrow, m)), summary)))
    }
}

/// Why this system is not for `f32`.
fn takes(setup: &Context<'_>, kind: &PrecondSpec) -> Result<(), String> {
    let known = match kind.construct() {
        Construction::Incomplete(_) | Construction::Trained { .. } => true,
        _ => *kind == PrecondSpec::jacobi() || *kind == PrecondSpec::robust_jacobi(),
    };
    match () {
        () if setup.options.precision != Precision::F32 => Err("it was not asked for".into()),
        () if setup.a.is_none() => Err("A is not a matrix".into()),
        () if setup.other_matrix().is_some() => Err("A has another pattern than its preconditioner".into()),
        () if !known => Err("this preconditioner has no form in f32".into()),
        () if !setup.narrow => Err("entries of A are out of the range of f32".into()),
        () => Ok(()),
    }
}

fn factor(
    setup: &Context<'_>,
    kind: &PrecondSpec,
    (space, a): (&Threads<f32>, &Csr<f32>),
    m: &mut IncompleteFactor<f32>,
    recorder: &mut SetupRecorder,
) -> Result<f64, SetupError> {
    recorder.factor(setup.space, setup.attempts(kind), |shift| {
        m.set_shift(shift);
        m.refactor(space, a)
    })
}

/// Bytes of A, of the method's vectors and of those around it.
fn around(setup: &Context<'_>) -> usize {
    let (rows, nnz) = (setup.source.nrows(), setup.source.nnz());
    let method = setup.method.workspace_bytes(rows) as usize / 2;
    // b, x and r of the solve; r and x before a step; the right-hand side and the answer of an inner solve.
    4 * nnz + method + (24 + 16 + 8) * rows
}

/// Bytes of a factor with entries on this pattern, or of a diagonal.
fn predicted_factor(pattern: &Pattern, has_triangles: bool) -> usize {
    let n = pattern.nrows();
    let entries = pattern.nnz().saturating_sub(n);
    match has_triangles {
        true => bytes_by_rows(n, entries as u64) as usize - 4 * (entries + n),
        false => 12 * n,
    }
}
