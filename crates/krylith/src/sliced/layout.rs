//! Systems in slices: incomplete factors that gain from rows by wavefront.

use super::{NotSliced, Sliced, SlicedPattern, SlicedSymbolic, StorageScalar};
use crate::choice::Layout;
use crate::engine::{DynEngine, Matrices, PlacedEngine};
use crate::error::{SetupError, SolveError};
use crate::matrix::{Csr, Pattern};
use crate::operator::DynPreconditioner;
use crate::placement::{Placed, Storage};
use crate::plan::StorageKind;
use crate::precond::PrecondSpec;
use crate::precond::{Form, Kind, require_symmetric};
use crate::setup::{
    Attempt, Built, LayoutBuilder, Memory, Prospect, SetupContext, SetupRecorder, SetupSummary, Storing,
};
use crate::space::Threads;
use std::sync::Arc;

type Context<'a> = SetupContext<'a, Threads<f64>>;

/// Rows by wavefront, in slices of eight.
pub(crate) struct InSlices;

impl LayoutBuilder<Threads<f64>> for InSlices {
    fn build(
        &self,
        setup: &Context<'_>,
        kind: PrecondSpec,
        recorder: &mut SetupRecorder,
    ) -> Result<Attempt<Threads<f64>>, SolveError> {
        let Some(recipe) = setup.recipe(kind) else {
            return Ok(Attempt::Refused("this preconditioner has no form in slices".into()));
        };
        let pattern = setup.filled_pattern(&recipe, recorder)?;
        match recorder.analyzing(|| Patterns::find(setup, recipe.form, &pattern))? {
            Ok(found) if setup.narrow => build::<f32>(setup, found, recipe.form, kind, recorder),
            Ok(found) => build::<f64>(setup, found, recipe.form, kind, recorder),
            Err(reason) => Ok(Attempt::Refused(reason)),
        }
    }

    fn name(&self) -> &'static str {
        "slices"
    }

    fn kind(&self) -> StorageKind {
        StorageKind::Slices
    }

    fn predict(
        &self,
        setup: &Context<'_>,
        kind: PrecondSpec,
        recorder: &mut SetupRecorder,
    ) -> Result<Prospect, SolveError> {
        let Some(recipe) = setup.recipe(kind) else {
            return Ok(Prospect::Refuses("this preconditioner has no form in slices".into()));
        };
        let pattern = setup.filled_pattern(&recipe, recorder)?;
        let number = if setup.narrow { size_of::<f32>() } else { size_of::<f64>() };
        Ok(match recorder.analyzing(|| Patterns::find(setup, recipe.form, &pattern))? {
            Ok(found) => found.memory(number).prospect(setup.method),
            Err(reason) => Prospect::Refuses(reason),
        })
    }
}

/// A, what its factor is made from, and where the factor has its entries, all in the order of the factor. The first two are the
/// same unless the preconditioner is made from another matrix, the last two unless there is fill.
struct Patterns {
    of_a: Arc<SlicedPattern>,
    of_source: Arc<SlicedPattern>,
    of_factor: Arc<SlicedPattern>,
}

impl Patterns {
    /// Slices for a factor of this form on this pattern, or why not.
    fn find(
        setup: &Context<'_>,
        form: Form,
        pattern: &Arc<Pattern>,
    ) -> Result<Result<Self, String>, SetupError> {
        let no = |reason: &str| Ok(Err(reason.into()));
        if setup.options.layout == Layout::Rows {
            return no("as asked");
        }
        if form.transposed() {
            return no("sums of columns are kept");
        }
        if setup.a.is_none() {
            return no("A is not a matrix");
        }
        let source = setup.source.pattern();
        let shared = Arc::ptr_eq(source, pattern);
        let found = match shared {
            true => SlicedPattern::find(pattern),
            false => SlicedPattern::find_for_factor(pattern),
        };
        let of_factor = match found {
            Ok(found) if form.kind == Kind::Cholesky && !found.is_symmetric() => {
                return Err(SetupError::PatternNotSymmetric);
            }
            Ok(found) => Arc::new(found),
            Err(NotSliced::Unfit(error)) => return Err(error),
            Err(reason) => return Ok(Err(reason.to_string())),
        };
        if !shared && form.kind == Kind::Cholesky {
            require_symmetric(source)?;
        }
        let in_order = |pattern: &Arc<Pattern>| match of_factor.in_same_order(pattern) {
            Ok(sliced) => Ok(Arc::new(sliced)),
            Err(NotSliced::Unfit(SetupError::MissingDiagonal { .. })) => {
                Err("the diagonal is not full".into())
            }
            Err(reason) => Err(format!("of A in the order of its factor {reason}")),
        };
        let find = || {
            let of_source = if shared { Arc::clone(&of_factor) } else { in_order(source)? };
            let of_a = match setup.other_matrix() {
                Some(a) => in_order(a.pattern())?,
                None => Arc::clone(&of_source),
            };
            let found = Patterns { of_a, of_source, of_factor: Arc::clone(&of_factor) };
            let memory = found.memory(size_of::<f64>());
            match setup.has_room_for(memory.copy + memory.factor) {
                true => Ok(found),
                false => Err("a copy of A in slices would exceed the limit of memory".into()),
            }
        };
        Ok(find())
    }

    /// What it will take, with numbers of this many bytes in the factor.
    fn memory(&self, number: usize) -> Memory {
        let mut memory = Memory::in_slices(&self.of_a, &self.of_factor, number);
        if !Arc::ptr_eq(&self.of_source, &self.of_a) {
            let values = self.of_source.bytes_of_values(8) + self.of_source.bytes_of_uniform();
            memory.copy += self.bytes_of_source_pattern() + values;
        }
        memory
    }

    /// Bytes of the source's pattern, where it is neither that of A nor that of the factor.
    fn bytes_of_source_pattern(&self) -> usize {
        let counted =
            [&self.of_a, &self.of_factor].into_iter().any(|other| Arc::ptr_eq(other, &self.of_source));
        if counted { 0 } else { self.of_source.bytes_besides(&self.of_a) }
    }
}

fn build<S: StorageScalar>(
    setup: &Context<'_>,
    found: Patterns,
    form: Form,
    kind: PrecondSpec,
    recorder: &mut SetupRecorder,
) -> Result<Attempt<Threads<f64>>, SolveError> {
    let SetupContext { space, options, method, source, .. } = *setup;
    let (memory, bytes_of_source_pattern) = (found.memory(size_of::<S>()), found.bytes_of_source_pattern());
    let Patterns { of_a, of_source, of_factor } = found;
    let plan = || SlicedSymbolic::new(&of_factor, form, space.threads(), options.schedule);
    let mut m = recorder.analyzing(|| plan().map(|symbolic| symbolic.allocate::<S>()))?;
    let stored = |pattern: &Arc<SlicedPattern>, matrix: &Csr<f64>| {
        let mut sliced = Sliced::zeros(pattern);
        Storage::set(&mut sliced, space, matrix).map(|()| sliced)
    };
    let matrices = recorder.factoring(|| {
        let other = setup.other_matrix().map(|a| stored(&of_a, a)).transpose()?;
        Ok::<_, SetupError>(Matrices::new(stored(&of_source, source)?, other))
    })?;
    let shift = recorder.factor_with(space, (options.recover, kind), matrices.source(), &mut m)?;
    let vectors = memory.vectors(method);
    let extra = if Arc::ptr_eq(&of_a, &of_factor) { 0 } else { of_factor.bytes_besides(&of_a) };
    let copies = matrices.bytes(Storage::bytes) + bytes_of_source_pattern;
    let summary = SetupSummary {
        kind,
        nnz: m.nnz(),
        bytes: m.bytes() + extra,
        shift,
        schedule: Some(m.schedule(space.threads())),
        predicted: memory.copy + memory.factor + vectors,
        held: of_a.bytes() + extra + copies + m.bytes() + vectors,
        layout: memory.layout,
        ordering: String::new(),
        storing: Storing::BY_ROWS,
    };
    let placement = Box::new(Placed(Arc::clone(&of_a.order)));
    let engine = PlacedEngine::new(placement, matrices, DynPreconditioner::new(m));
    Ok(Attempt::Built(Built::Placed(DynEngine::new(engine)), summary))
}
