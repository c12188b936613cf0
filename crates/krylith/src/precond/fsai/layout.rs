//! A, G and Gᵀ in a placement: as stencils on a grid, in dense blocks, in slices of eight rows, by rows.
//!
//! Products have no order, so G is computed once, by rows, and stored where products are fast and take the fewest bytes. On a grid the stencil of G has the
//! offsets of its entries, and every place of them is stored. Where A consists of dense blocks, so does G if its pattern is that of A; the half of a diagonal
//! block that G does not have is stored as zeros, and so is what prefiltration and the filter leave out. Slices are cut from rows as they are, and equal ones are stored once: where coefficients are
//! constant, most are.

use super::{BYTES_PER_ENTRY, Fsai, FsaiFactor, FsaiSymbolic, Kept};
use crate::block::{BlockMatrix, full_block, matrix_bytes};
use crate::choice::{Layout, Method};
use crate::engine::{DynEngine, Matrices, PlacedEngine};
use crate::error::{SetupError, SolveError};
use crate::matrix::Csr;
use crate::operator::{DynPreconditioner, Preconditioner, Recipe};
use crate::parallel;
use crate::placement::{AsGiven, Placed, Placement, Storage};
use crate::plan::StorageKind;
use crate::precond::PrecondSpec;
use crate::precond::registry::Construction;
use crate::setup::{
    Attempt, Built, LayoutBuilder, Memory, Prospect, SetupContext, SetupRecorder, SetupSummary, Storing,
};
use crate::sliced::{LevelOrder, SharedSlices, StorageScalar};
use crate::space::Threads;
use crate::structured::{Grid, MOST_OFFSETS, Stencil, StencilMatrix, Structure};
use std::ops::Range;
use std::sync::Arc;
use tracing::info_span;

type Context<'a> = SetupContext<'a, Threads<f64>>;

/// The part of a stencil's places that are filled at least.
const LEAST_FULLNESS: f64 = 0.7;

/// With at least this many slices per stored one, products read hardly more than their vectors.
const MANY_COPIES: usize = 8;

/// Factored approximate inverses, in any storage.
pub(crate) struct AsProducts;

impl LayoutBuilder<Threads<f64>> for AsProducts {
    fn build(
        &self,
        setup: &Context<'_>,
        kind: PrecondSpec,
        recorder: &mut SetupRecorder,
    ) -> Result<Attempt<Threads<f64>>, SolveError> {
        let Construction::Inverse(recipe) = kind.construct() else {
            return Ok(Attempt::Refused("this preconditioner is no approximate inverse".into()));
        };
        let symbolic = recorder.analyzing(|| limited(setup, recipe).analyze(setup.space, setup.source))?;
        let ([g, second], kept) = recorder.factoring(|| symbolic.factors(setup.space, setup.source, None))?;
        let made = Made { symbolic, g, second, kept };
        if setup.a.is_none() || setup.other_matrix().is_some() {
            return Ok(by_rows(setup, kind, made, "the preconditioner is not made from A"));
        }
        match setup.narrow && fits_f32(&made.g) {
            true => stored::<f32>(setup, kind, made, recorder),
            false => stored::<f64>(setup, kind, made, recorder),
        }
    }

    fn name(&self) -> &'static str {
        "products"
    }

    fn predict(
        &self,
        setup: &Context<'_>,
        kind: PrecondSpec,
        recorder: &mut SetupRecorder,
    ) -> Result<Prospect, SolveError> {
        let Construction::Inverse(recipe) = kind.construct() else { return Ok(Prospect::NotAskedFor) };
        let symbolic = recorder.analyzing(|| limited(setup, recipe).analyze(setup.space, setup.source))?;
        let entries = symbolic.entries() as u64;
        let layout = format!("products with G, of at most {entries} entries, and its transpose");
        Ok(Prospect::Takes { layout, bytes: Some(entries * BYTES_PER_ENTRY + setup.vector_bytes()) })
    }
}

/// A recipe with the limit of memory of this set-up, for a pair where the method does not need one factor and the matrix is not symmetric.
fn limited(setup: &Context<'_>, recipe: Fsai) -> Fsai {
    let needs_one = matches!(setup.method, Method::Cg | Method::Minres | Method::Lsmr);
    let pair = !needs_one && !setup.source.symmetry().symmetric;
    Fsai { max_bytes: Some(setup.limit()), pair, ..recipe }
}

/// G and Gᵀ by rows, or G_L and G_U.
struct Made {
    symbolic: FsaiSymbolic,
    g: Csr<f64>,
    second: Csr<f64>,
    kept: Kept,
}

/// A placement, storages for A in `K`, for G and Gᵀ in `P`.
struct Places<K, P> {
    placement: Box<dyn Placement<Threads<f64>> + Send + Sync>,
    of_a: K,
    both: [P; 2],
    /// Of all three, predicted.
    bytes: usize,
    layout: String,
    storing: Storing,
}

/// A, G and Gᵀ where they take the fewest bytes, G in slices as `S`.
fn stored<S: StorageScalar>(
    setup: &Context<'_>,
    kind: PrecondSpec,
    made: Made,
    recorder: &mut SetupRecorder,
) -> Result<Attempt<Threads<f64>>, SolveError> {
    let slices = recorder.analyzing(|| info_span!("store").in_scope(|| in_slices::<S>(setup, &made)));
    let bytes_by_rows = || setup.source.bytes() + made.g.bytes() + made.second.bytes();
    let most = slices.as_ref().map_or_else(|_| bytes_by_rows(), |places| places.bytes);
    let blocks = recorder.analyzing(|| info_span!("store").in_scope(|| in_blocks::<S>(setup, &made, most)));
    let most = blocks.as_ref().map_or(most, |places| places.bytes);
    let stencils = recorder.analyzing(|| info_span!("store").in_scope(|| on_grid(setup, &made, most)));
    let reason = match stencils.and_then(|places| with_values(setup, &made, places, recorder)) {
        Ok(places) => return Ok(placed(setup, kind, made, places)),
        Err(reason) => reason,
    };
    if let Ok(places) = blocks.and_then(|places| with_values(setup, &made, places, recorder)) {
        return Ok(placed(setup, kind, made, places));
    }
    match slices.and_then(|places| with_values(setup, &made, places, recorder)) {
        Ok(mut places) => {
            let [different, all] = places.both[0].different();
            let narrow = size_of::<S>() < size_of::<f64>();
            let in_f32 = if narrow { " in f32" } else { "" };
            places.layout = format!("slices of eight rows: {different} of {all} of G differ{in_f32}");
            let repeats = |[different, all]: [usize; 2]| MANY_COPIES * different < all;
            let (constant, constant_factor) = (repeats(places.of_a.different()), repeats([different, all]));
            places.storing = Storing { narrow, constant, constant_factor, ..places.storing };
            Ok(placed(setup, kind, made, places))
        }
        Err(other) => Ok(by_rows(setup, kind, made, &format!("{reason}; {other}"))),
    }
}

/// Dense blocks for all three, if they take at most so many bytes, or why not.
fn in_blocks<S: StorageScalar>(
    setup: &Context<'_>,
    made: &Made,
    most: usize,
) -> Result<Places<BlockMatrix, BlockMatrix>, String> {
    if setup.options.layout == Layout::Rows {
        return Err("as asked".into());
    }
    if size_of::<S>() < size_of::<f64>() {
        return Err("blocks are in f64 only".into());
    }
    let size = full_block(setup.source.pattern()).ok_or("A has no full blocks")?;
    let matrices = [setup.source, &made.g, &made.second];
    let bytes = matrices.iter().map(|a| matrix_bytes(a.pattern(), size) as usize).sum();
    if bytes > most {
        return Err(format!("blocks of {size} x {size} take more bytes than slices"));
    }
    room_for(setup, bytes)?;
    let [of_a, of_g, of_second] =
        matrices.map(|a| BlockMatrix::new(setup.space, a, size).map_err(|error| error.to_string()));
    let placement = Box::new(AsGiven(setup.layout));
    let layout = format!("dense blocks of {size} x {size}, rows as given");
    let storing = Storing { kind: StorageKind::Blocks, ..Storing::BY_ROWS };
    Ok(Places { placement, of_a: of_a?, both: [of_g?, of_second?], bytes, layout, storing })
}

/// Stencils for all three, if they take at most so many bytes, or why not.
fn on_grid(
    setup: &Context<'_>,
    made: &Made,
    most: usize,
) -> Result<Places<StencilMatrix, StencilMatrix>, String> {
    if setup.options.layout != Layout::Auto {
        return Err("as asked".into());
    }
    let structure: Structure =
        setup.findings.structure(setup.source.pattern()).map_err(|reason| reason.to_string())?;
    let (grid, dof) = (structure.grid, structure.dof);
    let of_g = offsets_of(&made.g, &grid, dof).ok_or("G has too many offsets")?;
    let places: usize = of_g.offsets().iter().map(|&o| grid.places(o)).sum();
    let fullness = made.g.nnz() as f64 / (places * dof * dof) as f64;
    if fullness < LEAST_FULLNESS {
        return Err(format!("G fills {:.0} % of the places of {of_g}", 100.0 * fullness));
    }
    let transposed = of_g.mirrored();
    let words = |error: SetupError| error.to_string();
    let layout =
        StencilMatrix::layout_for(grid, &[&structure.stencil, &of_g, &transposed], dof).map_err(words)?;
    let stored = |stencil| StencilMatrix::zeros(&layout, stencil, dof).map_err(words);
    let (of_a, both) = (stored(&structure.stencil)?, [stored(&of_g)?, stored(&transposed)?]);
    let bytes = [&of_a, &both[0], &both[1]].map(StencilMatrix::predicted_bytes).iter().sum();
    if bytes > most {
        return Err("stencils take more bytes than others".into());
    }
    room_for(setup, bytes)?;
    let placement = Box::new(Placed(Arc::new(of_a.order())));
    let layout = format!("structured: {structure}, G on {of_g}");
    let storing = Storing { kind: StorageKind::Grid, ..Storing::BY_ROWS };
    Ok(Places { placement, of_a, both, bytes, layout, storing })
}

/// The offsets that entries of G have on a grid; `None` if there are too many.
fn offsets_of(g: &Csr<f64>, grid: &Grid, dof: usize) -> Option<Stencil> {
    // Distances in numbers of points are few, rows many.
    let add = |mut known: Vec<usize>, i: usize| {
        for &j in g.row(i).0 {
            let distance = i / dof - j as usize / dof;
            if let Err(place) = known.binary_search(&distance)
                && known.len() <= MOST_OFFSETS
            {
                known.insert(place, distance);
            }
        }
        known
    };
    let join = |mut a: Vec<usize>, b: Vec<usize>| {
        a.extend(b);
        a.sort_unstable();
        a.dedup();
        // One too many says that there are too many.
        a.truncate(MOST_OFFSETS + 1);
        a
    };
    let of_piece = |rows: Range<usize>| rows.fold(Vec::new(), add);
    let distances = parallel::fold(g.nrows(), of_piece, join).unwrap_or_default();
    let [nx, ny, _] = grid.extents().map(|extent| extent as i64);
    // Offsets that reach more than half of an axis are taken for others, and the rows will not fit them.
    let offset = |distance: usize| {
        let split = |number: i64, by: i64| {
            let whole = (number + by / 2).div_euclid(by);
            (whole, number - whole * by)
        };
        let (z, rest) = split(-(distance as i64), nx * ny);
        let (y, x) = split(rest, nx);
        [x as i32, y as i32, z as i32]
    };
    Stencil::new(distances.into_iter().map(offset).collect()).ok()
}

/// Whether rows of G keep their relative accuracy in `f32`: their scales are those of 1 / √aᵢᵢ.
fn fits_f32(g: &Csr<f64>) -> bool {
    let scale = |i: usize| g.row(i).1.last().map_or(0.0, |diagonal| diagonal.abs());
    (0..g.nrows()).all(|i| (1e-18..1e18).contains(&scale(i)))
}

/// Slices for all three, those of G in `S`, or why not.
fn in_slices<S: StorageScalar>(
    setup: &Context<'_>,
    made: &Made,
) -> Result<Places<SharedSlices, SharedSlices<S>>, String> {
    if setup.options.layout == Layout::Rows {
        return Err("as asked".into());
    }
    let matrices = [setup.source, &made.g, &made.second];
    let of_rows = |bytes: f64| (bytes * setup.source.nrows() as f64) as usize;
    let sampled = [
        SharedSlices::<f64>::sampled_bytes(matrices[0]),
        SharedSlices::<S>::sampled_bytes(matrices[1]),
        SharedSlices::<S>::sampled_bytes(matrices[2]),
    ];
    let Some(bytes) = sampled.into_iter().map(|bytes| bytes.map(of_rows)).sum::<Option<usize>>() else {
        return Err("neighbouring rows differ: slices would have too many empty places".into());
    };
    room_for(setup, bytes)?;
    let of_a = match &made.symbolic.repeats {
        Some(repeats) => repeats.slices().clone(),
        None => {
            let order = Arc::new(LevelOrder::natural(setup.source.nrows()));
            SharedSlices::empty(&order, matrices[0].pattern())
        }
    };
    let both = [1, 2].map(|k| SharedSlices::empty(of_a.order(), matrices[k].pattern()));
    let placement = Box::new(Placed(Arc::clone(of_a.order())));
    let storing = Storing { kind: StorageKind::Slices, ..Storing::BY_ROWS };
    Ok(Places { placement, of_a, both, bytes, layout: String::new(), storing })
}

fn room_for(setup: &Context<'_>, bytes: usize) -> Result<(), String> {
    match setup.has_room_for(bytes) {
        true => Ok(()),
        false => Err("copies of A and G would exceed the limit of memory".into()),
    }
}

/// Puts the values of A, G and Gᵀ into their storages, or says why they do not fit: on a grid of few points offsets may be taken for others.
fn with_values<K: Storage<Threads<f64>>, P: Storage<Threads<f64>>>(
    setup: &Context<'_>,
    made: &Made,
    mut places: Places<K, P>,
    recorder: &mut SetupRecorder,
) -> Result<Places<K, P>, String> {
    let stored = recorder.factoring(|| {
        let _span = info_span!("store").entered();
        places.of_a.set(setup.space, setup.source)?;
        places.both[0].set(setup.space, &made.g)?;
        places.both[1].set(setup.space, &made.second)
    });
    stored.map(|()| places).map_err(|error| error.to_string())
}

/// A, G and Gᵀ in a placement.
fn placed<K, P>(
    setup: &Context<'_>,
    kind: PrecondSpec,
    made: Made,
    places: Places<K, P>,
) -> Attempt<Threads<f64>>
where
    K: Storage<Threads<f64>, Scratch = ()> + 'static,
    P: Storage<Threads<f64>, Scratch = ()> + 'static,
{
    let Made { symbolic, kept, .. } = made;
    let rule = symbolic.words();
    let Places { placement, of_a, both: [of_g, of_second], layout, storing, .. } = places;
    let m = FsaiFactor { symbolic, kept, g: of_g, second: of_second };
    let (rows, places, copy) = (setup.source.nrows(), placement.layout(), of_a.bytes());
    let m = DynPreconditioner::<_, K>::new(m);
    let layout = format!("{layout}; {rule}");
    let memory = Memory::placed(layout, rows, places, copy, m.bytes());
    let held = memory.copy + memory.factor + memory.vectors(setup.method);
    let summary = summary(kind, (m.entries(), m.bytes()), (memory.layout, storing), held);
    let engine = PlacedEngine::new(placement, Matrices::new(of_a, None), m);
    Attempt::Built(Built::Placed(DynEngine::new(engine)), summary)
}

/// G and Gᵀ in the order of A, for any A.
fn by_rows(setup: &Context<'_>, kind: PrecondSpec, made: Made, reason: &str) -> Attempt<Threads<f64>> {
    let Made { symbolic, g, second, kept } = made;
    let layout = format!("rows as given: {reason}; {}", symbolic.words());
    let m = DynPreconditioner::<_, Csr<f64>>::new(FsaiFactor { symbolic, kept, g, second });
    let held = m.bytes() + setup.vector_bytes() as usize;
    let summary = summary(kind, (m.entries(), m.bytes()), (layout, Storing::BY_ROWS), held);
    Attempt::Built(Built::InOrder(m), summary)
}

/// What is reported: its bytes are known once it is there.
fn summary(
    kind: PrecondSpec,
    (nnz, bytes): (usize, usize),
    (layout, storing): (String, Storing),
    held: usize,
) -> SetupSummary {
    SetupSummary {
        kind,
        nnz,
        bytes,
        shift: 0.0,
        schedule: None,
        layout,
        ordering: String::new(),
        predicted: held,
        held,
        storing,
    }
}
