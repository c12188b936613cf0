//! Systems by rows as they are given: every preconditioner that is not in blocks, for any A.

use super::direct::{DirectKind, SmallPivots};
use super::fsai::Fsai;
use super::registry::{AnyRecipe, Construction};
use super::{Form, Incomplete, IncompleteFactor, IncompleteSymbolic, Kind, require_symmetric};
use crate::choice::{Method, Precision};
use crate::error::{BackendError, SolveError};
use crate::matrix::{Csr, Pattern};
use crate::operator::{DynPreconditioner, Preconditioner};
use crate::precond::PrecondSpec;
use crate::scalar::Real;
use crate::setup::{
    Attempt, Built, HostBuilt, LARGEST_F32, LayoutBuilder, Memory, OneFactor, Prospect, SetupContext,
    SetupRecorder, SetupSummary, Storing,
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
        match kind.construct() {
            Construction::Threshold(threshold) => {
                let triangles = match setup.triangles.take() {
                    Some(found) => found,
                    None => threshold.triangles(setup, kind, None, recorder)?,
                };
                by_threshold(setup, kind, triangles, recorder)
            }
            Construction::Incomplete(recipe) => {
                let recipe = setup.limited(recipe);
                match setup.narrow {
                    true => incomplete::<f32>(setup, &recipe, kind, recorder),
                    false => incomplete::<f64>(setup, &recipe, kind, recorder),
                }
            }
            Construction::Direct(which) => complete(setup, which, kind, recorder),
            Construction::Recipe(recipe) => by_recipe(setup, &*recipe, kind, recorder),
            Construction::Own => match setup.own {
                Some(own) => by_recipe(setup, &*own.recipe, kind, recorder),
                None => Ok(Attempt::Refused("the solver has no recipe of the caller's".into())),
            },
            Construction::Chosen
            | Construction::Nothing
            | Construction::Blocks(..)
            | Construction::Inverse(_) => {
                Ok(Attempt::Refused("this preconditioner has no form by rows".into()))
            }
        }
    }

    fn name(&self) -> &'static str {
        "rows"
    }

    fn has_complete_factors(&self) -> bool {
        true
    }

    fn predict(
        &self,
        setup: &Context<'_>,
        kind: PrecondSpec,
        recorder: &mut SetupRecorder,
    ) -> Result<Prospect, SolveError> {
        Ok(match kind.construct() {
            Construction::Incomplete(recipe) => {
                let recipe = setup.limited(recipe);
                let pattern = setup.filled_pattern(&recipe, recorder)?;
                let number = if setup.narrow { size_of::<f32>() } else { size_of::<f64>() };
                memory(setup, &recipe, &pattern, number).prospect(setup.method)
            }
            Construction::Threshold(_) => Prospect::Takes {
                layout: "rows as given: the pattern follows the values".into(),
                bytes: None,
            },
            Construction::Direct(which) => {
                let symbolic = recorder.analyzing(|| setup.findings.complete(which, setup.source, None))?;
                let cost = symbolic.cost();
                let layout = format!("rows as given: {:.1e} operations predicted", cost.flops);
                Prospect::Takes { layout, bytes: Some(cost.bytes() + setup.vector_bytes()) }
            }
            Construction::Recipe(_) | Construction::Own => {
                let entries = kind.predicted_entries(setup.source.pattern());
                let bytes = entries.map(|entries| 8 * entries + setup.vector_bytes());
                Prospect::Takes { layout: "rows as given".into(), bytes }
            }
            Construction::Chosen
            | Construction::Nothing
            | Construction::Blocks(..)
            | Construction::Inverse(_) => Prospect::Refuses("this preconditioner has no form by rows".into()),
        })
    }
}

/// A preconditioner by rows, approximate inverses included, which on threads have layouts of their own.
pub(crate) fn on_host(
    setup: &Context<'_>,
    kind: PrecondSpec,
    recorder: &mut SetupRecorder,
) -> Result<HostBuilt, SolveError> {
    let attempt = match kind.construct() {
        Construction::Inverse(recipe) => {
            let recipe = Fsai { max_bytes: Some(setup.limit()), ..recipe };
            by_recipe(setup, &recipe, kind, recorder)?
        }
        _ => ByRows.build(setup, kind, recorder)?,
    };
    match attempt {
        Attempt::Built(Built::InOrder(m), summary) => Ok((m, summary)),
        _ => Err(BackendError::Unsupported { what: "this preconditioner" }.into()),
    }
}

/// What an incomplete factor with numbers of this many bytes takes.
fn memory(setup: &Context<'_>, recipe: &Incomplete, pattern: &Pattern, number: usize) -> Memory {
    let reason = setup.refusals.borrow().last().cloned().unwrap_or_default();
    let mut memory = Memory::by_rows(pattern, &reason, number);
    // Sums of columns take Aᵀ and its factor besides.
    memory.factor += if recipe.form.transposed() { memory.factor + setup.source.bytes() } else { 0 };
    memory
}

/// A factor whose pattern followed the values.
fn by_threshold(
    setup: &Context<'_>,
    kind: PrecondSpec,
    triangles: OneFactor,
    recorder: &mut SetupRecorder,
) -> Result<Attempt<Threads<f64>>, SolveError> {
    let values = || triangles.0.lower.values().iter().chain(triangles.0.upper.values());
    let mixed = setup.options.precision != Precision::F64;
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
    let form = if kind.info().symmetric { Form::CHOLESKY } else { Form::LU };
    let pattern = setup.source.pattern();
    let mut f = recorder
        .analyzing(|| IncompleteFactor::<f64, S>::frozen(form, pattern, triangles, threads, schedule))?;
    f.set_shift(shift);
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
    let memory = memory(setup, recipe, &pattern, size_of::<S>());
    Ok(built(setup, kind, f, shift, memory.layout, Some(memory.factor)))
}

/// A complete factor.
fn complete(
    setup: &Context<'_>,
    which: DirectKind,
    kind: PrecondSpec,
    recorder: &mut SetupRecorder,
) -> Result<Attempt<Threads<f64>>, SolveError> {
    let limit = setup.limit_of_complete();
    let symbolic = recorder.analyzing(|| setup.findings.complete(which, setup.source, Some(limit)))?;
    let mut f = symbolic.allocate()?;
    if setup.method == Method::Lsmr {
        f.set_small_pivots(SmallPivots::FOR_LEAST_SQUARES);
    }
    recorder.factor_with(setup.space, (false, kind), setup.source, &mut f)?;
    Ok(in_order(setup, kind, DynPreconditioner::new(f), symbolic.cost().bytes() as usize))
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
    let vectors = setup.vector_bytes() as usize;
    let (predicted, held) = (predicted.unwrap_or(bytes) + vectors, bytes + vectors);
    let ordering = String::new();
    let summary = SetupSummary {
        kind,
        nnz,
        bytes,
        shift,
        schedule,
        layout,
        ordering,
        predicted,
        held,
        storing: Storing::BY_ROWS,
    };
    Attempt::Built(Built::InOrder(DynPreconditioner::new(f)), summary)
}

/// A preconditioner by any recipe.
fn by_recipe(
    setup: &Context<'_>,
    recipe: &dyn AnyRecipe,
    kind: PrecondSpec,
    recorder: &mut SetupRecorder,
) -> Result<Attempt<Threads<f64>>, SolveError> {
    let SetupContext { space, source, .. } = *setup;
    let mut made = None;
    recorder.factor(space, (false, kind), 0.0, |_| {
        made = Some(recipe.build(space, source)?);
        Ok(())
    })?;
    let m = made.expect("the attempt worked");
    let predicted =
        kind.predicted_entries(source.pattern()).map_or(m.bytes(), |entries| 8 * entries as usize);
    Ok(in_order(setup, kind, m, predicted))
}

/// By rows with this preconditioner, of so many bytes as predicted.
fn in_order(
    setup: &Context<'_>,
    kind: PrecondSpec,
    m: DynPreconditioner<Threads<f64>, Csr<f64>>,
    predicted: usize,
) -> Attempt<Threads<f64>> {
    let (bytes, vectors) = (m.bytes(), setup.vector_bytes() as usize);
    let summary = SetupSummary {
        kind,
        nnz: m.entries(),
        bytes,
        shift: 0.0,
        schedule: None,
        layout: "rows as given".into(),
        ordering: String::new(),
        predicted: predicted + vectors,
        held: bytes + vectors,
        storing: Storing::BY_ROWS,
    };
    Attempt::Built(Built::InOrder(m), summary)
}
