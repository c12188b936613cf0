//! A, G and Gᵀ in a placement: as stencils on a grid, in slices of eight rows, by rows.
//!
//! Products have no order, so G is computed once, by rows, and stored where products are fast. On a grid the stencil of G has the offsets of its entries; it is
//! taken if most of its places are filled. Slices are cut from rows as they are or from the wavefronts of A, whichever takes fewer strips.

use super::{BYTES_PER_ENTRY, Fsai, FsaiFactor, FsaiSymbolic};
use crate::choice::Layout;
use crate::engine::{DynEngine, Matrices, PlacedEngine};
use crate::error::{SetupError, SolveError};
use crate::matrix::Csr;
use crate::operator::{DynPreconditioner, Preconditioner, Recipe};
use crate::placement::{Placed, Placement, Storage};
use crate::precond::PrecondSpec;
use crate::precond::registry::Construction;
use crate::setup::{
    Attempt, Built, LayoutBuilder, Memory, Prospect, SetupContext, SetupRecorder, SetupSummary, Storing,
};
use crate::sliced::{Sliced, SlicedPattern};
use crate::space::Threads;
use crate::structured::{Grid, MOST_OFFSETS, Stencil, StencilMatrix, Structure};
use rayon::prelude::*;
use std::sync::Arc;

type Context<'a> = SetupContext<'a, Threads<f64>>;

/// The part of a stencil's places that are filled at least: by slices an entry takes 8.6 bytes, on a grid 8 for every place.
const LEAST_FULLNESS: f64 = 0.7;

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
        let g = recorder.factoring(|| symbolic.g(setup.space, setup.source, None))?;
        let transposed = recorder.factoring(|| g.transpose().without_hash());
        let made = Made { symbolic, g, transposed };
        if setup.a.is_none() || setup.other_matrix().is_some() {
            return Ok(by_rows(setup, kind, made, "the preconditioner is not made from A"));
        }
        let found = recorder.analyzing(|| on_grid(setup, &made));
        let reason = match found.and_then(|places| with_values(setup, &made, places, recorder)) {
            Ok(places) => return Ok(placed(setup, kind, made, places)),
            Err(reason) => reason,
        };
        let found = recorder.analyzing(|| in_slices(setup, &made));
        let reason = match found.and_then(|places| with_values(setup, &made, places, recorder)) {
            Ok(places) => return Ok(placed(setup, kind, made, places)),
            Err(other) => format!("{reason}; {other}"),
        };
        Ok(by_rows(setup, kind, made, &reason))
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

/// A recipe with the limit of memory of this set-up.
fn limited(setup: &Context<'_>, recipe: Fsai) -> Fsai {
    Fsai { max_bytes: Some(setup.limit()), ..recipe }
}

/// G and Gᵀ by rows.
struct Made {
    symbolic: FsaiSymbolic,
    g: Csr<f64>,
    transposed: Csr<f64>,
}

/// A placement, storages for A, G and Gᵀ, and words about it.
type Places<K> = (Box<dyn Placement<Threads<f64>> + Send + Sync>, [K; 3], String);

/// Stencils for all three, or why not.
fn on_grid(setup: &Context<'_>, made: &Made) -> Result<Places<StencilMatrix>, String> {
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
    let storages = [stored(&structure.stencil)?, stored(&of_g)?, stored(&transposed)?];
    room_for(setup, storages.iter().map(StencilMatrix::predicted_bytes).sum())?;
    let order = Arc::new(storages[0].order());
    Ok((Box::new(Placed(order)), storages, format!("structured: {structure}, G on {of_g}")))
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
        a
    };
    let rows = (0..g.nrows()).into_par_iter().with_min_len(1 << 12);
    let distances = rows.fold(Vec::new, add).reduce(Vec::new, join);
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

/// Strips for all three, or why not.
fn in_slices(setup: &Context<'_>, made: &Made) -> Result<Places<Sliced>, String> {
    if setup.options.layout == Layout::Rows {
        return Err("as asked".into());
    }
    let sources = [setup.source, &made.g, &made.transposed].map(Csr::pattern);
    let found = SlicedPattern::find_for_products(&sources).map_err(|reason| reason.to_string())?;
    let [of_a, of_g] = [0, 1].map(|k| 100.0 * found[k].fullness());
    let words = format!("slices of eight rows: strips of A {of_a:.0} % full, of G {of_g:.0} %");
    let patterns: Vec<_> = found.into_iter().map(Arc::new).collect();
    room_for(setup, patterns.iter().map(|p| p.bytes() + p.bytes_of_values(8) + p.bytes_of_uniform()).sum())?;
    let order = Box::new(Placed(patterns[0].order()));
    Ok((order, std::array::from_fn(|k| Sliced::zeros(&patterns[k])), words))
}

fn room_for(setup: &Context<'_>, bytes: usize) -> Result<(), String> {
    match setup.has_room_for(bytes) {
        true => Ok(()),
        false => Err("copies of A and G would exceed the limit of memory".into()),
    }
}

/// Puts the values of A, G and Gᵀ into their storages, or says why they do not fit: on a grid of few points offsets may be taken for others.
fn with_values<K: Storage<Threads<f64>>>(
    setup: &Context<'_>,
    made: &Made,
    (placement, mut storages, layout): Places<K>,
    recorder: &mut SetupRecorder,
) -> Result<Places<K>, String> {
    let matrices = [setup.source, &made.g, &made.transposed];
    let stored = recorder.factoring(|| {
        storages.iter_mut().zip(matrices).try_for_each(|(storage, matrix)| storage.set(setup.space, matrix))
    });
    stored.map(|()| (placement, storages, layout)).map_err(|error| error.to_string())
}

/// A, G and Gᵀ in a placement.
fn placed<K>(
    setup: &Context<'_>,
    kind: PrecondSpec,
    made: Made,
    (placement, [of_a, of_g, of_transposed], layout): Places<K>,
) -> Attempt<Threads<f64>>
where
    K: Storage<Threads<f64>, Scratch = ()> + 'static,
{
    let Made { symbolic, g, .. } = made;
    let kept = Arc::clone(g.pattern());
    let m = FsaiFactor { symbolic, kept, g: of_g, transposed: of_transposed };
    let (rows, places, copy) = (setup.source.nrows(), placement.layout(), of_a.bytes());
    let m = DynPreconditioner::<_, K>::new(m);
    let memory = Memory::placed(layout, rows, places, copy, m.bytes());
    let held = memory.copy + memory.factor + memory.vectors(setup.method);
    let summary = summary(kind, (m.entries(), m.bytes()), memory.layout, held);
    let engine = PlacedEngine::new(placement, Matrices::new(of_a, None), m);
    Attempt::Built(Built::Placed(DynEngine::new(engine)), summary)
}

/// G and Gᵀ in the order of A, for any A.
fn by_rows(setup: &Context<'_>, kind: PrecondSpec, made: Made, reason: &str) -> Attempt<Threads<f64>> {
    let Made { symbolic, g, transposed } = made;
    let kept = Arc::clone(g.pattern());
    let m = DynPreconditioner::<_, Csr<f64>>::new(FsaiFactor { symbolic, kept, g, transposed });
    let held = m.bytes() + setup.vector_bytes() as usize;
    let summary = summary(kind, (m.entries(), m.bytes()), format!("rows as given: {reason}"), held);
    Attempt::Built(Built::InOrder(m), summary)
}

/// What is reported: its bytes are known once it is there.
fn summary(kind: PrecondSpec, (nnz, bytes): (usize, usize), layout: String, held: usize) -> SetupSummary {
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
        storing: Storing::BY_ROWS,
    }
}
