//! The store of systems in slices: rows by wavefront for incomplete factors that gain from it, rows as they are for products.

use crate::elimination::{Form, Incomplete, Kind, require_symmetric};
use crate::error::{SetupError, SolveError};
use crate::matrix::{Csr, Pattern};
use crate::options::{Layout, StorageKind};
use crate::placement::{KeptMatrix, Placed, SharedPlacement, Storage};
use crate::plan::Outlook;
use crate::precond::PrecondSpec;
use crate::setup::{Memory, SetupContext, SetupRecorder, Storing};
use crate::sliced::{
    LevelOrder, NotSliced, SharedSlices, Sliced, SlicedPattern, SlicedSymbolic, StorageScalar,
};
use crate::space::Threads;
use crate::store::{
    FindStore, Found, Kept, Made, Needs, OverStore, Products, Request, Role, Store, no_sweeps,
};
use std::sync::Arc;

type Context<'a> = SetupContext<'a, Threads<f64>>;

/// With at least this many slices per stored one, products read hardly more than their vectors.
const MANY_COPIES: usize = 8;

/// Rows in slices of eight.
pub(crate) struct InSlices;

impl FindStore<Threads<f64>> for InSlices {
    fn name(&self) -> &'static str {
        "slices"
    }

    fn kind(&self) -> StorageKind {
        StorageKind::Slices
    }

    /// On a grid neighbouring rows of A have the same offsets, and mostly so have those of an approximate inverse. Elsewhere slices of it are often refused.
    fn is_likely(&self, outlook: &Outlook<'_>) -> bool {
        let alike = outlook.mesh.grid.is_some() || outlook.mesh.repeats;
        outlook.layout != Layout::Rows && (outlook.level.is_some() || alike)
    }

    fn find(
        &self,
        setup: &Context<'_>,
        request: &Request<'_>,
        recorder: &mut SetupRecorder,
    ) -> Result<Found<Threads<f64>>, SolveError> {
        let (products, narrow) = match request.needs {
            Needs::Triangles(recipe) => return by_wavefront(setup, &recipe, recorder),
            Needs::Blocks(..) | Needs::OrderOfA => {
                return Ok(Found::Refused("this preconditioner has no form in slices".into()));
            }
            Needs::Nothing => (None, false),
            Needs::Products(products) => (Some(products), products.narrow),
        };
        let found = recorder.analyzing(|| match narrow {
            true => NaturalSlices::find::<f32>(setup, products),
            false => NaturalSlices::find::<f64>(setup, products),
        });
        Ok(found.map_or_else(Found::Refused, |store| Found::Store(Box::new(store))))
    }
}

fn by_wavefront(
    setup: &Context<'_>,
    recipe: &Incomplete,
    recorder: &mut SetupRecorder,
) -> Result<Found<Threads<f64>>, SolveError> {
    let pattern = setup.filled_pattern(recipe, recorder)?;
    Ok(match recorder.analyzing(|| Patterns::find(setup, recipe.form, &pattern))? {
        Ok(patterns) => {
            Found::Store(Box::new(WavefrontSlices { patterns, form: recipe.form, narrow: setup.narrow }))
        }
        Err(reason) => Found::Refused(reason),
    })
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

/// Rows by wavefront, for a factor of this form.
struct WavefrontSlices {
    patterns: Patterns,
    form: Form,
    /// The factor is in `f32`.
    narrow: bool,
}

impl WavefrontSlices {
    fn factored<R: StorageScalar>(
        &self,
        setup: &Context<'_>,
        (kind, source): (&PrecondSpec, &Sliced),
        recorder: &mut SetupRecorder,
    ) -> Result<Made<Threads<f64>>, SolveError> {
        let (SetupContext { space, options, .. }, Patterns { of_a, of_factor, .. }) = (setup, &self.patterns);
        let plan = || SlicedSymbolic::new(of_factor, self.form, space.threads(), options.schedule);
        let mut m = recorder.analyzing(|| plan().map(|symbolic| symbolic.allocate::<R>()))?;
        let shift = recorder.factor_with(*space, setup.attempts(kind), source, &mut m)?;
        let of_pattern = if Arc::ptr_eq(of_a, of_factor) { 0 } else { of_factor.bytes_besides(of_a) };
        let (nnz, bytes, schedule) = (m.nnz(), m.bytes() + of_pattern, Some(m.schedule(space.threads())));
        Ok(Made { shift, schedule, ..Made::new(OverStore::new::<Sliced>(m), nnz, bytes) })
    }
}

impl Store<Threads<f64>> for WavefrontSlices {
    fn kind(&self) -> StorageKind {
        StorageKind::Slices
    }

    fn memory(&self) -> Memory {
        self.patterns.memory(if self.narrow { size_of::<f32>() } else { size_of::<f64>() })
    }

    fn shared_bytes(&self) -> usize {
        self.patterns.of_a.bytes() + self.patterns.bytes_of_source_pattern()
    }

    fn placement(&self) -> Option<SharedPlacement<Threads<f64>>> {
        Some(Arc::new(Placed(Arc::clone(&self.patterns.of_a.order))))
    }

    fn keep(
        &self,
        setup: &Context<'_>,
        role: Role,
        matrix: &Csr<f64>,
        recorder: &mut SetupRecorder,
    ) -> Result<KeptMatrix<Threads<f64>>, SetupError> {
        let pattern = match role {
            Role::OtherA => &self.patterns.of_a,
            Role::Source => &self.patterns.of_source,
            Role::Product(_) => return Err(SetupError::PatternChanged),
        };
        recorder.factoring(|| {
            let mut kept = Sliced::zeros(pattern);
            Storage::set(&mut kept, setup.space, matrix).map(|()| KeptMatrix::new(kept))
        })
    }

    fn has_sweeps(&self) -> bool {
        true
    }

    fn triangles(
        &self,
        setup: &Context<'_>,
        request: &Request<'_>,
        source: Option<&KeptMatrix<Threads<f64>>>,
        recorder: &mut SetupRecorder,
    ) -> Result<Made<Threads<f64>>, SolveError> {
        let source = source.and_then(KeptMatrix::get::<Sliced>).ok_or_else(no_sweeps)?;
        let of = (request.kind, source);
        match self.narrow {
            true => self.factored::<f32>(setup, of, recorder),
            false => self.factored::<f64>(setup, of, recorder),
        }
    }
}

/// Rows in the order of A; equal slices are kept once.
struct NaturalSlices {
    /// Without values, unless they are there already.
    of_a: SharedSlices,
    products: bool,
    /// What A is multiplied with is in `f32`.
    narrow: bool,
    memory: Memory,
}

impl NaturalSlices {
    /// With products in `R`.
    fn find<R: StorageScalar>(setup: &Context<'_>, products: Option<Products<'_>>) -> Result<Self, String> {
        let source = setup.source;
        match () {
            () if setup.options.layout == Layout::Rows => return Err("as asked".into()),
            () if setup.a.is_none() => return Err("A is not a matrix".into()),
            () => {}
        }
        let scattered = "neighbouring rows differ: slices would have too many empty places";
        let of_rows = |bytes: f64| (bytes * source.nrows() as f64) as usize;
        let copy = of_rows(SharedSlices::<f64>::sampled_bytes(source).ok_or(scattered)?);
        if products.is_none() && copy > source.bytes() {
            return Err("slices would take more bytes than rows".into());
        }
        let of_products = products.iter().flat_map(|products| products.matrices);
        let sampled = of_products.map(SharedSlices::<R>::sampled_bytes).sum::<Option<f64>>();
        let factor = of_rows(sampled.ok_or(scattered)?);
        if !setup.has_room_for(copy + factor) {
            return Err("copies of A and G would exceed the limit of memory".into());
        }
        let of_a = match products.and_then(|products| products.slices) {
            Some(slices) => slices.clone(),
            None => SharedSlices::empty(&Arc::new(LevelOrder::natural(source.nrows())), source.pattern()),
        };
        let positions = of_a.order().positions();
        let memory = Memory::placed("slices of eight rows".into(), source.nrows(), positions, copy, factor);
        let narrow = size_of::<R>() < size_of::<f64>();
        Ok(NaturalSlices { of_a, products: products.is_some(), narrow, memory })
    }

    fn kept<R: StorageScalar>(
        &self,
        setup: &Context<'_>,
        matrix: &Csr<f64>,
    ) -> Result<KeptMatrix<Threads<f64>>, SetupError> {
        let mut kept = SharedSlices::<R>::empty(self.of_a.order(), matrix.pattern());
        kept.set(setup.space, matrix).map(|()| KeptMatrix::new(kept))
    }
}

impl Store<Threads<f64>> for NaturalSlices {
    fn kind(&self) -> StorageKind {
        StorageKind::Slices
    }

    fn memory(&self) -> Memory {
        self.memory.clone()
    }

    fn placement(&self) -> Option<SharedPlacement<Threads<f64>>> {
        Some(Arc::new(Placed(Arc::clone(self.of_a.order()))))
    }

    fn keep(
        &self,
        setup: &Context<'_>,
        role: Role,
        matrix: &Csr<f64>,
        recorder: &mut SetupRecorder,
    ) -> Result<KeptMatrix<Threads<f64>>, SetupError> {
        recorder.factoring(|| match role {
            Role::Source => {
                let mut kept = self.of_a.clone();
                kept.set(setup.space, matrix).map(|()| KeptMatrix::new(kept))
            }
            Role::Product(_) if self.narrow => self.kept::<f32>(setup, matrix),
            Role::Product(_) => self.kept::<f64>(setup, matrix),
            Role::OtherA => Err(SetupError::PatternChanged),
        })
    }

    fn adopt(
        &self,
        setup: &Context<'_>,
        made: Made<Threads<f64>>,
        _: &mut SetupRecorder,
    ) -> Result<Made<Threads<f64>>, SolveError> {
        Ok(made.placed(setup.space, self.placement())?)
    }

    fn describe(&self, kept: &Kept<'_, Threads<f64>>, _: bool) -> (String, Storing) {
        let none = [1, 0];
        let of_a = kept.matrices.and_then(|matrices| matrices.a.get::<SharedSlices>());
        let of_a = of_a.map_or(none, SharedSlices::different);
        let of_g = kept.products.first().and_then(|g| match self.narrow {
            true => g.get::<SharedSlices<f32>>().map(SharedSlices::different),
            false => g.get::<SharedSlices>().map(SharedSlices::different),
        });
        let repeats = |[different, all]: [usize; 2]| MANY_COPIES * different < all;
        let (whose, [different, all]) = match of_g {
            Some(of_g) => ("G", of_g),
            None => ("A", of_a),
        };
        let in_f32 = if self.narrow { " in f32" } else { "" };
        let words = format!("slices of eight rows: {different} of {all} of {whose} differ{in_f32}");
        let storing = Storing {
            kind: StorageKind::Slices,
            narrow: self.narrow,
            constant: repeats(of_a),
            constant_factor: self.products && of_g.is_some_and(repeats),
            ..Storing::BY_ROWS
        };
        (words, storing)
    }
}
