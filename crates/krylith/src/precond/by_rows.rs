//! Systems by rows as they are given: every preconditioner that is not in blocks, for any A.

use super::{Form, Incomplete, IncompleteFactor, IncompleteSymbolic, Jacobi, Kind, require_symmetric};
use crate::choice::{Precision, PrecondSpec};
use crate::error::SolveError;
use crate::operator::{DynPreconditioner, Recipe, Symbolic};
use crate::scalar::Real;
use crate::setup::{
    Attempt, Built, LARGEST_F32, LayoutBuilder, Memory, OneFactor, SetupContext, SetupRecorder, SetupSummary,
};
use crate::space::Threads;

type Context<'a> = SetupContext<'a, Threads<f64>>;

/// Rows as given.
pub(crate) struct ByRows;

impl LayoutBuilder<Threads<f64>> for ByRows {
    fn build(
        &self,
        setup: &Context<'_>,
        kind: PrecondSpec,
        recorder: &mut SetupRecorder,
    ) -> Result<Attempt<Threads<f64>>, SolveError> {
        if let Some(threshold) = kind.threshold() {
            let triangles = match setup.triangles.take() {
                Some(found) => found,
                None => threshold.triangles(setup, kind, None, recorder)?,
            };
            return by_threshold(setup, kind, triangles, recorder);
        }
        match (setup.recipe(kind), kind) {
            (Some(recipe), _) if setup.narrow => incomplete::<f32>(setup, &recipe, kind, recorder),
            (Some(recipe), _) => incomplete::<f64>(setup, &recipe, kind, recorder),
            (None, PrecondSpec::Jacobi) => jacobi(setup, kind, recorder),
            (None, _) => Ok(Attempt::Refused("this preconditioner has no form by rows".into())),
        }
    }
}

/// A factor whose pattern followed the values.
fn by_threshold(
    setup: &Context<'_>,
    kind: PrecondSpec,
    triangles: OneFactor,
    recorder: &mut SetupRecorder,
) -> Result<Attempt<Threads<f64>>, SolveError> {
    let values = || triangles.0.lower.values().iter().chain(triangles.0.upper.values());
    let mixed = setup.options.precision == Precision::Mixed;
    match mixed && values().all(|v| v.abs() < LARGEST_F32) {
        true => frozen::<f32>(setup, kind, triangles, recorder),
        false => frozen::<f64>(setup, kind, triangles, recorder),
    }
}

fn frozen<S: Real>(
    setup: &Context<'_>,
    kind: PrecondSpec,
    (triangles, shift): OneFactor,
    recorder: &mut SetupRecorder,
) -> Result<Attempt<Threads<f64>>, SolveError> {
    let (threads, schedule) = (setup.space.threads(), setup.options.schedule);
    let form = if kind.is_symmetric() { Form::CHOLESKY } else { Form::LU };
    let pattern = setup.source.pattern();
    let mut f = recorder
        .analyzing(|| IncompleteFactor::<f64, S>::frozen(form, pattern, triangles, threads, schedule))?;
    crate::operator::Preconditioner::set_shift(&mut f, shift);
    Ok(built(setup, kind, f, shift, "rows as given: the pattern follows the values".into(), None))
}

/// An incomplete factor with levels of fill, stored in `S`.
fn incomplete<S: Real>(
    setup: &Context<'_>,
    recipe: &Incomplete,
    kind: PrecondSpec,
    recorder: &mut SetupRecorder,
) -> Result<Attempt<Threads<f64>>, SolveError> {
    let SetupContext { space, source, options, .. } = *setup;
    let pattern = setup.filled_pattern(recipe, recorder)?;
    if recipe.form.kind == Kind::Cholesky && recipe.level == 0 {
        recorder.analyzing(|| require_symmetric(source.pattern()))?;
    }
    let (threads, schedule) = (space.threads(), recipe.schedule);
    let symbolic = recorder
        .analyzing(|| IncompleteSymbolic::on(recipe.form, source.pattern(), &pattern, threads, schedule))?;
    let mut f: IncompleteFactor<f64, S> = symbolic.allocate();
    let shift = recorder.factor_with(space, (options.recover, kind), source, &mut f)?;
    let reason = setup.refusals.borrow().last().cloned().unwrap_or_default();
    let memory = Memory::by_rows(&pattern, &reason, size_of::<S>());
    // Sums of columns take Aᵀ and its factor besides.
    let twice = if recipe.form.transposed() { memory.factor + source.bytes() } else { 0 };
    Ok(built(setup, kind, f, shift, memory.layout, Some(memory.factor + twice)))
}

/// By rows with this factor; `predicted` bytes of it if they were known before.
fn built<S: Real>(
    setup: &Context<'_>,
    kind: PrecondSpec,
    f: IncompleteFactor<f64, S>,
    shift: f64,
    layout: String,
    predicted: Option<usize>,
) -> Attempt<Threads<f64>> {
    let (nnz, bytes) = (f.nnz(), f.bytes());

    let schedule = Some(f.schedule(setup.space.threads()));
    let n = setup.source.nrows();
    let vectors = (setup.method.workspace_bytes(n) as usize).saturating_add(16 * n);
    let (predicted, held) = (predicted.unwrap_or(bytes) + vectors, bytes + vectors);
    let ordering = String::new();
    let summary = SetupSummary { kind, nnz, bytes, shift, schedule, layout, ordering, predicted, held };
    Attempt::Built(Built::InOrder(DynPreconditioner::new(f)), summary)
}

/// The diagonal.
fn jacobi(
    setup: &Context<'_>,
    kind: PrecondSpec,
    recorder: &mut SetupRecorder,
) -> Result<Attempt<Threads<f64>>, SolveError> {
    let SetupContext { space, source, method, .. } = *setup;
    let robust = recorder.robust;
    let symbolic = recorder.analyzing(|| Jacobi { robust }.analyze(space, source))?;
    let f = recorder.factoring(|| symbolic.factor(space, source))?;
    let (n, bytes) = (source.nrows(), f.bytes());
    let vectors = (method.workspace_bytes(n) as usize).saturating_add(16 * n);
    let summary = SetupSummary {
        kind,
        nnz: n,
        bytes,
        shift: 0.0,
        schedule: None,
        layout: "rows as given".into(),
        ordering: String::new(),
        predicted: 8 * n + vectors,
        held: bytes + vectors,
    };
    Ok(Attempt::Built(Built::InOrder(DynPreconditioner::new(f)), summary))
}
