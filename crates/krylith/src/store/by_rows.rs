//! The store of systems by rows as they are given, and the preconditioners that threads make from rows.

use crate::elimination::{Form, Incomplete, IncompleteFactor, IncompleteSymbolic, Kind, require_symmetric};
use crate::error::{BackendError, SetupError, SolveError};
use crate::matrix::Csr;
use crate::operator::{DynPreconditioner, Given, Preconditioner};
use crate::options::{Method, Precision, StorageKind};
use crate::placement::{KeptMatrix, SharedPlacement};
use crate::plan::Outlook;
use crate::precond::PrecondSpec;
use crate::precond::direct::{DirectKind, SmallPivots};
use crate::precond::registry::{AnyRecipe, Construction};
use crate::scalar::{LARGEST_F32, Real};
use crate::setup::{Memory, OneFactor, SetupContext, SetupRecorder};
use crate::space::Threads;
use crate::store::{FindStore, Found, Made, Needs, OverStore, Request, Role, Store, no_sweeps};

type Context<'a> = SetupContext<'a, Threads<f64>>;

/// Rows as given.
pub(crate) struct ByRows;

impl FindStore<Threads<f64>> for ByRows {
    fn name(&self) -> &'static str {
        "rows"
    }

    fn kind(&self) -> StorageKind {
        StorageKind::Rows
    }

    fn is_likely(&self, _: &Outlook<'_>) -> bool {
        true
    }

    fn has_complete_factors(&self) -> bool {
        true
    }

    fn find(
        &self,
        setup: &Context<'_>,
        request: &Request<'_>,
        recorder: &mut SetupRecorder,
    ) -> Result<Found<Threads<f64>>, SolveError> {
        let rows = setup.source.nrows();
        let store = match request.needs {
            Needs::Triangles(recipe) => {
                let pattern = setup.filled_pattern(&recipe, recorder)?;
                let reason = recorder.refusal();
                let number = if setup.narrow { size_of::<f32>() } else { size_of::<f64>() };
                let mut memory = Memory::by_rows(&pattern, &reason, number);
                // Sums of columns take Aᵀ and its factor besides.
                memory.factor +=
                    if recipe.form.transposed() { memory.factor + setup.source.bytes() } else { 0 };
                RowStore { recipe: Some(recipe), memory }
            }
            Needs::Nothing | Needs::OrderOfA => {
                RowStore { recipe: None, memory: Memory::in_order("rows as given".into(), rows, 0, 0) }
            }
            Needs::Blocks(..) | Needs::Products(_) => {
                return Ok(Found::Refused("this preconditioner has no form by rows".into()));
            }
        };
        Ok(Found::Store(Box::new(store)))
    }
}

/// Rows as given, for an incomplete factor if there is a recipe of one.
struct RowStore {
    recipe: Option<Incomplete>,
    memory: Memory,
}

impl Store<Threads<f64>> for RowStore {
    fn kind(&self) -> StorageKind {
        StorageKind::Rows
    }

    fn memory(&self) -> Memory {
        self.memory.clone()
    }

    fn placement(&self) -> Option<SharedPlacement<Threads<f64>>> {
        None
    }

    fn keep(
        &self,
        _: &Context<'_>,
        _: Role,
        matrix: &Csr<f64>,
        _: &mut SetupRecorder,
    ) -> Result<KeptMatrix<Threads<f64>>, SetupError> {
        Ok(KeptMatrix::new(matrix.clone()))
    }

    fn has_sweeps(&self) -> bool {
        self.recipe.is_some()
    }

    fn triangles(
        &self,
        setup: &Context<'_>,
        request: &Request<'_>,
        _: Option<&KeptMatrix<Threads<f64>>>,
        recorder: &mut SetupRecorder,
    ) -> Result<Made<Threads<f64>>, SolveError> {
        let recipe = self.recipe.as_ref().ok_or_else(no_sweeps)?;
        match setup.narrow {
            true => incomplete::<f32>(setup, recipe, request.kind, recorder),
            false => incomplete::<f64>(setup, recipe, request.kind, recorder),
        }
    }

    fn adopt(
        &self,
        _: &Context<'_>,
        made: Made<Threads<f64>>,
        _: &mut SetupRecorder,
    ) -> Result<Made<Threads<f64>>, SolveError> {
        Ok(made)
    }
}

/// A preconditioner in the order of A, from rows; of triangles by threshold, if they have been made.
pub(crate) fn make_by_rows(
    setup: &Context<'_>,
    (kind, triangles): (&PrecondSpec, Option<OneFactor>),
    recorder: &mut SetupRecorder,
) -> Result<Made<Threads<f64>>, SolveError> {
    match kind.construct() {
        Construction::Threshold(threshold) => {
            let triangles = match triangles {
                Some(found) => found,
                None => threshold.triangles(setup, kind, None, recorder)?,
            };
            by_threshold(setup, kind, triangles, recorder)
        }
        Construction::Incomplete(recipe) | Construction::Trained { recipe, .. } => {
            incomplete::<f64>(setup, &setup.limited(recipe), kind, recorder)
        }
        Construction::Direct(which) => complete(setup, which, kind, recorder),
        Construction::Recipe(recipe) => by_recipe(setup, &*recipe, kind, recorder),
        Construction::Own => match setup.own {
            Some(own) => by_recipe(setup, &*own.recipe, kind, recorder),
            None => {
                let what = "a recipe of the caller's that the solver was not given";
                Err(BackendError::Unsupported { what }.into())
            }
        },
        Construction::Chosen
        | Construction::Nothing
        | Construction::Blocks(..)
        | Construction::Inverse(_) => {
            Err(BackendError::Unsupported { what: "this preconditioner by rows" }.into())
        }
    }
}

/// A factor whose pattern followed the values.
fn by_threshold(
    setup: &Context<'_>,
    kind: &PrecondSpec,
    triangles: OneFactor,
    recorder: &mut SetupRecorder,
) -> Result<Made<Threads<f64>>, SolveError> {
    let values = || triangles.0.lower.values().iter().chain(triangles.0.upper.values());
    let mixed = setup.options.precision != Precision::F64;
    match mixed && values().all(|v| v.abs() < LARGEST_F32) {
        true => frozen::<f32>(setup, kind, triangles, recorder),
        false => frozen::<f64>(setup, kind, triangles, recorder),
    }
}

fn frozen<S: Real>(
    setup: &Context<'_>,
    kind: &PrecondSpec,
    (triangles, shift): OneFactor,
    recorder: &mut SetupRecorder,
) -> Result<Made<Threads<f64>>, SolveError> {
    let (threads, schedule) = (setup.space.threads(), setup.options.schedule);
    let form = if kind.info().symmetric { Form::CHOLESKY } else { Form::LU };
    let pattern = setup.source.pattern();
    let mut f = recorder
        .analyzing(|| IncompleteFactor::<f64, S>::frozen(form, pattern, triangles, threads, schedule))?;
    f.set_shift(shift);
    Ok(Made { words: ": the pattern follows the values".into(), ..swept(setup, f, shift) })
}

/// An incomplete factor with levels of fill, stored in `S`.
fn incomplete<S: Real>(
    setup: &Context<'_>,
    recipe: &Incomplete,
    kind: &PrecondSpec,
    recorder: &mut SetupRecorder,
) -> Result<Made<Threads<f64>>, SolveError> {
    let SetupContext { space, source, .. } = *setup;
    let pattern = setup.filled_pattern(recipe, recorder)?;
    if recipe.form.kind == Kind::Cholesky && recipe.level == 0 {
        recorder.analyzing(|| require_symmetric(source.pattern()))?;
    }
    let (threads, schedule) = (space.threads(), recipe.schedule);
    let symbolic = recorder
        .analyzing(|| IncompleteSymbolic::on(recipe.form, source.pattern(), &pattern, threads, schedule))?;
    let mut f: IncompleteFactor<f64, S> = symbolic.allocate();
    let shift = recorder.factor_with(space, setup.attempts(kind), source, &mut f)?;
    Ok(Made { predicted: None, ..swept(setup, f, shift) })
}

/// By rows with this factor.
fn swept<S: Real>(setup: &Context<'_>, f: IncompleteFactor<f64, S>, shift: f64) -> Made<Threads<f64>> {
    let (nnz, bytes, schedule) = (f.nnz(), f.bytes(), Some(f.schedule(setup.space.threads())));
    let m = OverStore::InOrder(DynPreconditioner::new(f));
    Made { shift, schedule, predicted: Some(bytes), ..Made::new(m, nnz, bytes) }
}

/// A complete factor.
fn complete(
    setup: &Context<'_>,
    which: DirectKind,
    kind: &PrecondSpec,
    recorder: &mut SetupRecorder,
) -> Result<Made<Threads<f64>>, SolveError> {
    let limit = setup.limit_of_complete();
    let symbolic = recorder.analyzing(|| setup.findings.complete(which, setup.source, Some(limit)))?;
    let cost = symbolic.cost();
    recorder.operations = Some(cost.flops);
    let mut f = symbolic.allocate()?;
    if setup.method == Method::Lsmr {
        f.set_small_pivots(SmallPivots::FOR_LEAST_SQUARES);
    }
    recorder.factor_with(setup.space, setup.attempts(kind).once(), setup.source, &mut f)?;
    Ok(in_order(DynPreconditioner::new(f), cost.bytes() as usize))
}

/// A preconditioner by any recipe.
fn by_recipe(
    setup: &Context<'_>,
    recipe: &dyn AnyRecipe,
    kind: &PrecondSpec,
    recorder: &mut SetupRecorder,
) -> Result<Made<Threads<f64>>, SolveError> {
    let SetupContext { space, source, .. } = *setup;
    let given = Given::new(&setup.near_null, setup.options.schedule);
    let attempts = setup.attempts(kind);
    let attempts = if kind.info().can_shift { attempts } else { attempts.once() };
    let (mut symbolic, mut made) = (None, None);
    let shift = recorder.factor(space, attempts, |shift| {
        let known = symbolic.take().map_or_else(|| recipe.analyze(space, source, &given), Ok)?;
        let factored = known.factor(space, source, shift);
        symbolic = Some(known);
        made = Some(factored?);
        Ok(())
    })?;
    let m = made.expect("the attempt worked");
    let predicted =
        kind.predicted_entries(source.pattern()).map_or(m.bytes(), |entries| 8 * entries as usize);
    Ok(Made { shift, ..in_order(m, predicted) })
}

/// By rows with this preconditioner, of so many bytes as predicted.
fn in_order(m: DynPreconditioner<Threads<f64>, Csr<f64>>, predicted: usize) -> Made<Threads<f64>> {
    let (nnz, bytes) = (m.entries(), m.bytes());
    Made { predicted: Some(predicted), ..Made::new(OverStore::InOrder(m), nnz, bytes) }
}
