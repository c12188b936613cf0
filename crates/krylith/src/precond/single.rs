//! Systems whose whole iteration is in `f32` (`engine::refined`): incomplete factors with levels of fill, and the diagonal, by rows.

use super::registry::Construction;
use super::{
    IncompleteFactor, IncompleteSymbolic, Jacobi, Kind, PrecondSpec, bytes_by_rows, require_symmetric,
};
use crate::choice::Precision;
use crate::engine::{DynEngine, Refined, rounded};
use crate::error::{SetupError, SolveError};
use crate::matrix::{Csr, Pattern};
use crate::operator::{DynPreconditioner, Preconditioner, Recipe, Symbolic};
use crate::setup::{
    Attempt, Built, LayoutBuilder, Prospect, SetupContext, SetupRecorder, SetupSummary, Storing,
};
use crate::space::Threads;
use std::sync::Arc;

type Context<'a> = SetupContext<'a, Threads<f64>>;

/// Everything in `f32`, refined in `f64`.
pub(crate) struct InSingle;

const LAYOUT: &str = "rows as given, all of the iteration in f32, refined in f64";

impl LayoutBuilder<Threads<f64>> for InSingle {
    fn name(&self) -> &'static str {
        "f32"
    }

    fn predict(
        &self,
        setup: &Context<'_>,
        kind: PrecondSpec,
        recorder: &mut SetupRecorder,
    ) -> Result<Prospect, SolveError> {
        if setup.options.precision != Precision::F32 {
            return Ok(Prospect::NotAskedFor);
        }
        if let Err(reason) = takes(setup, kind) {
            return Ok(Prospect::Refuses(reason));
        }
        let pattern = match setup.recipe(kind) {
            Some(recipe) => setup.filled_pattern(&recipe, recorder)?,
            None => Arc::clone(setup.source.pattern()),
        };
        let bytes = around(setup) + predicted_factor(&pattern, setup.recipe(kind).is_some());
        Ok(Prospect::Takes { layout: LAYOUT.into(), bytes: Some(bytes as u64) })
    }

    fn build(
        &self,
        setup: &Context<'_>,
        kind: PrecondSpec,
        recorder: &mut SetupRecorder,
    ) -> Result<Attempt<Threads<f64>>, SolveError> {
        if let Err(reason) = takes(setup, kind) {
            return Ok(Attempt::Refused(reason));
        }
        let SetupContext { space, source, .. } = *setup;
        let narrow = recorder.factoring(|| rounded(source));
        let inner = Threads::<f32>::new(space.threads());
        let mut summary = SetupSummary {
            kind,
            nnz: 0,
            bytes: 0,
            shift: 0.0,
            schedule: None,
            layout: LAYOUT.into(),
            ordering: String::new(),
            predicted: around(setup),
            held: around(setup),
            storing: Storing::BY_ROWS,
        };
        let m = match setup.recipe(kind) {
            Some(recipe) => {
                let pattern = setup.filled_pattern(&recipe, recorder)?;
                if recipe.form.kind == Kind::Cholesky && recipe.level == 0 {
                    recorder.analyzing(|| require_symmetric(source.pattern()))?;
                }
                let (threads, schedule) = (space.threads(), recipe.schedule);
                let symbolic = recorder.analyzing(|| {
                    IncompleteSymbolic::on(recipe.form, source.pattern(), &pattern, threads, schedule)
                })?;
                let mut m: IncompleteFactor<f32> = symbolic.allocate();
                summary.shift = factor(setup, kind, (&inner, &narrow), &mut m, recorder)?;
                (summary.nnz, summary.bytes) = (m.nnz(), m.bytes());
                summary.schedule = Some(m.schedule(threads));
                summary.predicted += predicted_factor(&pattern, true);
                DynPreconditioner::new(m)
            }
            None => {
                let robust = kind == PrecondSpec::robust_jacobi();
                let symbolic = recorder.analyzing(|| Jacobi { robust }.analyze(&inner, &narrow))?;
                let m = recorder.factoring(|| symbolic.factor(&inner, &narrow))?;
                (summary.nnz, summary.bytes) = (m.entries(), m.bytes());
                summary.predicted += predicted_factor(source.pattern(), false);
                DynPreconditioner::new(m)
            }
        };
        summary.held += summary.bytes;
        let engine = Refined::new(space, source, narrow, m);
        Ok(Attempt::Built(Built::Placed(DynEngine::new(engine)), summary))
    }
}

/// Why this system is not for `f32`.
fn takes(setup: &Context<'_>, kind: PrecondSpec) -> Result<(), String> {
    let known = match kind.construct() {
        Construction::Incomplete(_) => true,
        _ => kind == PrecondSpec::jacobi() || kind == PrecondSpec::robust_jacobi(),
    };
    match () {
        () if setup.options.precision != Precision::F32 => Err("it was not asked for".into()),
        () if setup.a.is_none() => Err("A is not a matrix".into()),
        () if setup.other_matrix().is_some() => Err("A has another pattern than its preconditioner".into()),
        () if !setup.narrow => Err("entries of A are out of the range of f32".into()),
        () if !known => Err("this preconditioner has no form in f32".into()),
        () => Ok(()),
    }
}

fn factor(
    setup: &Context<'_>,
    kind: PrecondSpec,
    (space, a): (&Threads<f32>, &Csr<f32>),
    m: &mut IncompleteFactor<f32>,
    recorder: &mut SetupRecorder,
) -> Result<f64, SetupError> {
    recorder.factor(setup.space, (setup.options.recover, kind), 0.0, |shift| {
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
