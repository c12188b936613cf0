//! The store of systems on a structured grid that was found inside the matrix.
//!
//! Triangular factors are kept here wherever the matrix is that of a grid and the factor one that `structured` has: the preconditioner is the
//! same as by rows, up to rounding. Several unknowns per point need whole blocks, where scalar IC(0) and ILU(0) and those of blocks are one;
//! a block factor asked for by name takes them as they are. Scalar DIC, DILU and SSOR are not those of blocks, and left to slices and rows.

use crate::elimination::{Form, Kind, is_symmetric};
use crate::error::{SetupError, SolveError};
use crate::facts::GridFacts;
use crate::matrix::{Csr, Pattern, require_diagonal};
use crate::options::{Layout, StorageKind};
use crate::parallel;
use crate::placement::{KeptMatrix, Placed, SharedPlacement, Storage};
use crate::plan::Outlook;
use crate::precond::PrecondSpec;
use crate::setup::{Memory, SetupContext, SetupRecorder, Storing};
use crate::simd::StorageScalar;
use crate::space::Threads;
use crate::store::{
    FindStore, Found, Kept, Made, Needs, OverStore, Products, Request, Role, Store, no_sweeps,
};
use crate::structured::{
    Grid, MOST_OFFSETS, Stencil, StencilFactor, StencilMatrix, StencilSymbolic, Structure,
};
use std::ops::Range;
use std::sync::Arc;

type Context<'a> = SetupContext<'a, Threads<f64>>;

/// Places that a arrangement may have for each point. By slices an entry takes 12 bytes with its index, on the grid 8.
const MOST_PADDING: f64 = 1.5;
/// The same for several unknowns per point, where blocks do with hardly any indices.
const MOST_PADDING_OF_BLOCKS: f64 = 1.15;
/// The part of the places of G's stencil that are filled at least.
const LEAST_FULLNESS: f64 = 0.7;

/// The grid that the matrix is of.
pub(crate) struct OnGrid;

impl FindStore<Threads<f64>> for OnGrid {
    fn name(&self) -> &'static str {
        "grid"
    }

    fn kind(&self) -> StorageKind {
        StorageKind::Grid
    }

    fn is_likely(&self, outlook: &Outlook<'_>) -> bool {
        let fits = |grid: &GridFacts| {
            grid.unknowns == 1 && outlook.level.is_some_and(|level| level < grid.offsets.len())
        };
        outlook.layout == Layout::Auto && outlook.mesh.grid.as_ref().is_some_and(fits)
    }

    fn find(
        &self,
        setup: &Context<'_>,
        request: &Request<'_>,
        recorder: &mut SetupRecorder,
    ) -> Result<Found<Threads<f64>>, SolveError> {
        Ok(match recorder.analyzing(|| find(setup, request)) {
            Ok(store) => Found::Store(Box::new(store)),
            Err(reason) => Found::Refused(reason),
        })
    }
}

/// The grid in the matrix, if there is one and what is needed can be had there.
fn find(setup: &Context<'_>, request: &Request<'_>) -> Result<GridStore, String> {
    if setup.options.layout != Layout::Auto {
        return Err("as asked".into());
    }
    if setup.a.is_none() {
        return Err("A is not a matrix".into());
    }
    let pattern = setup.source.pattern();
    let structure = || setup.findings.structure(pattern).map_err(|reason| reason.to_string());
    let store = match request.needs {
        Needs::Triangles(_) | Needs::Blocks(..) => {
            let wanted = Wanted::of(&request.needs).ok_or("this preconditioner has no form on grids")?;
            let wanted = Wanted { narrow: setup.narrow, ..wanted };
            let other = setup.other_matrix().map(|a| &**a.pattern());
            GridStore::for_factor((pattern, structure()?), other, wanted)?
        }
        Needs::Nothing => GridStore::for_matrix(pattern, structure()?)?,
        Needs::Products(products) => GridStore::for_products(structure()?, &products)?,
        Needs::OrderOfA => return Err("the preconditioner is applied in the order of A".into()),
    };
    let bytes = store.memory.copy + store.bytes_of_factor(false);
    match setup.has_room_for(bytes) {
        true => Ok(store),
        false => Err("a copy of A on the grid would exceed the limit of memory".into()),
    }
}

/// A factor that is to be had on a grid.
#[derive(Clone, Copy)]
struct Wanted {
    form: Form,
    level: usize,
    /// The size of the blocks that a block factor was asked for, `None` inside for any.
    blocks: Option<Option<usize>>,
    narrow: bool,
}

impl Wanted {
    fn of(needs: &Needs<'_>) -> Option<Self> {
        let (form, level, blocks) = match *needs {
            Needs::Blocks(block, size) => (block.form()?, 0, Some(size)),
            Needs::Triangles(recipe) => (recipe.form, recipe.level, None),
            _ => return None,
        };
        Some(Wanted { form, level, blocks, narrow: false })
    }
}

/// A grid, and stencils of what is kept there, without coefficients.
pub(crate) struct GridStore {
    structure: Structure,
    /// Of the matrix that is factored.
    source: StencilMatrix,
    /// Of A, if that is another one.
    other: Option<StencilMatrix>,
    /// Of what A is multiplied with.
    products: Option<[StencilMatrix; 2]>,
    /// The form and the fill of a triangular factor.
    factor: Option<(Form, usize)>,
    narrow: bool,
    memory: Memory,
}

fn in_words(error: SetupError) -> String {
    error.to_string()
}

impl GridStore {
    fn new(
        structure: Structure,
        (source, other): (StencilMatrix, Option<StencilMatrix>),
        products: Option<[StencilMatrix; 2]>,
        factor: Option<(Form, usize)>,
        narrow: bool,
    ) -> Result<Self, String> {
        let rows = source.grid().points() * source.unknowns();
        let copy = source.predicted_bytes() + other.as_ref().map_or(0, StencilMatrix::predicted_bytes);
        let layout = format!("structured: {structure}");
        let memory = Memory::placed(layout, rows, source.positions(), copy, 0);
        let mut store = GridStore { structure, source, other, products, factor, narrow, memory };
        store.memory.factor = store.bytes_of_factor(narrow);
        Ok(store)
    }

    /// The grid of a matrix alone.
    fn for_matrix(pattern: &Pattern, structure: Structure) -> Result<Self, String> {
        require_diagonal(pattern).map_err(in_words)?;
        let arrangement =
            StencilMatrix::arrangement_for(structure.grid, &[&structure.stencil], structure.dof);
        let source = StencilMatrix::zeros(&arrangement.map_err(in_words)?, &structure.stencil, structure.dof);
        let source = source.map_err(in_words)?;
        require_little_padding(&source)?;
        Self::new(structure, (source, None), None, None, false)
    }

    /// The grid of the matrix that is factored; `other` is the pattern of A, if that is another one.
    fn for_factor(
        (pattern, structure): (&Pattern, Structure),
        other: Option<&Pattern>,
        wanted: Wanted,
    ) -> Result<Self, String> {
        let Wanted { form, level, blocks, narrow } = wanted;
        if form.transposed() {
            return Err("sums of columns are kept".into());
        }
        let dof = structure.dof;
        let whole = structure.fullness >= 1.0;
        let fits = match blocks {
            Some(size) => size.unwrap_or(dof) == dof && (dof > 1 || whole) && !narrow,
            None if dof > 1 => {
                whole && level == 0 && !narrow && form.omega() == 0.0 && !form.keeps_triangles()
            }
            None => whole || level == 0,
        };
        // By rows these are errors.
        let unfit = !whole
            && (require_diagonal(pattern).is_err() || form.kind == Kind::Cholesky && !is_symmetric(pattern));
        if !fits || unfit {
            return Err(format!("on the grid of {structure} this factor is another one"));
        }
        let filled = structure.stencil.with_fill(level).ok_or("the fill has too many offsets")?;
        let (grid, mut stencils) = (structure.grid, vec![&structure.stencil, &filled]);
        let of_a =
            other.map(Structure::detect).transpose().map_err(|reason| format!("A itself: {reason}"))?;
        if let Some(of_a) = &of_a {
            if of_a.grid != grid || of_a.dof != dof {
                return Err("A is on another grid than the matrix of its preconditioner".into());
            }
            stencils.push(&of_a.stencil);
        }
        let arrangement = StencilMatrix::arrangement_for(grid, &stencils, dof).map_err(in_words)?;
        let source = StencilMatrix::zeros(&arrangement, &structure.stencil, dof).map_err(in_words)?;
        let other = of_a.map(|of_a| StencilMatrix::zeros(&arrangement, &of_a.stencil, dof));
        let other = other.transpose().map_err(in_words)?;
        require_little_padding(&source)?;
        Self::new(structure, (source, other), None, Some((form, level)), narrow)
    }

    /// The grid of A, and the offsets that G and its transpose have there.
    fn for_products(structure: Structure, products: &Products<'_>) -> Result<Self, String> {
        let (grid, dof, [g, _]) = (structure.grid, structure.dof, products.matrices);
        let of_g = offsets_of(g, &grid, dof).ok_or("G has too many offsets")?;
        let places: usize = of_g.offsets().iter().map(|&o| grid.places(o)).sum();
        let fullness = g.nnz() as f64 / (places * dof * dof) as f64;
        if fullness < LEAST_FULLNESS {
            return Err(format!("G fills {:.0} % of the places of {of_g}", 100.0 * fullness));
        }
        let transposed = of_g.mirrored();
        let arrangement =
            StencilMatrix::arrangement_for(grid, &[&structure.stencil, &of_g, &transposed], dof);
        let arrangement = arrangement.map_err(in_words)?;
        let stored = |stencil| StencilMatrix::zeros(&arrangement, stencil, dof).map_err(in_words);
        let (of_a, both) = (stored(&structure.stencil)?, [stored(&of_g)?, stored(&transposed)?]);
        Self::new(structure, (of_a, None), Some(both), None, false)
    }

    /// Bytes of the factor, or of the matrices that A is multiplied with, if every entry is a number of its own.
    fn bytes_of_factor(&self, narrow: bool) -> usize {
        let products = self.products.iter().flatten().map(StencilMatrix::predicted_bytes).sum::<usize>();
        let symbolic = |(form, level)| StencilSymbolic::new(&self.source, form, level, 1);
        let swept = self.factor.map_or(Ok(0), |factor| {
            symbolic(factor).map(|symbolic| match narrow {
                true => symbolic.predicted_bytes::<f32>(),
                false => symbolic.predicted_bytes::<f64>(),
            })
        });
        // Why there is no such factor is said where it is made.
        swept.map_or(products, |swept| swept + products)
    }

    fn factored<R: StorageScalar>(
        &self,
        setup: &Context<'_>,
        kind: &PrecondSpec,
        (source, form, level): (&StencilMatrix, Form, usize),
        recorder: &mut SetupRecorder,
    ) -> Result<Made<Threads<f64>>, SolveError> {
        let SetupContext { space, .. } = *setup;
        let mut m: StencilFactor<R> = recorder.analyzing(|| {
            setup.require_within_limit(self.memory.factor)?;
            StencilSymbolic::new(source, form, level, space.threads()).and_then(|s| s.allocate())
        })?;
        let shift = recorder.factor_with(space, setup.attempts(kind), source, &mut m)?;
        let words = if level > 0 { format!(", factor on {}", m.stencil()) } else { String::new() };
        let (nnz, bytes, shares_off_diagonals) = (m.nnz(), m.bytes(), m.shares_off_diagonals());
        let schedule = Some(m.schedule(space.threads()));
        let made = Made::new(OverStore::new::<StencilMatrix>(m), nnz, bytes);
        Ok(Made { shift, schedule, shares_off_diagonals, words, ..made })
    }
}

fn require_little_padding(source: &StencilMatrix) -> Result<(), String> {
    let most = if source.unknowns() == 1 { MOST_PADDING } else { MOST_PADDING_OF_BLOCKS };
    match source.padding() <= most {
        true => Ok(()),
        false => Err(format!("the grid needs {:.2} places per point, at most {most}", source.padding())),
    }
}

impl Store<Threads<f64>> for GridStore {
    fn kind(&self) -> StorageKind {
        StorageKind::Grid
    }

    fn memory(&self) -> Memory {
        self.memory.clone()
    }

    fn placement(&self) -> Option<SharedPlacement<Threads<f64>>> {
        Some(Arc::new(Placed(Arc::new(self.source.order()))))
    }

    fn keep(
        &self,
        setup: &Context<'_>,
        role: Role,
        matrix: &Csr<f64>,
        recorder: &mut SetupRecorder,
    ) -> Result<KeptMatrix<Threads<f64>>, SetupError> {
        let empty = match (role, &self.other, &self.products) {
            (Role::Source, ..) => Some(&self.source),
            (Role::OtherA, other, _) => other.as_ref(),
            (Role::Product(k), _, products) => products.as_ref().and_then(|products| products.get(k)),
        };
        let mut kept = empty.ok_or(SetupError::PatternChanged)?.clone();
        recorder.factoring(|| Storage::set(&mut kept, setup.space, matrix))?;
        Ok(KeptMatrix::new(kept))
    }

    fn has_sweeps(&self) -> bool {
        self.factor.is_some()
    }

    fn triangles(
        &self,
        setup: &Context<'_>,
        request: &Request<'_>,
        source: Option<&KeptMatrix<Threads<f64>>>,
        recorder: &mut SetupRecorder,
    ) -> Result<Made<Threads<f64>>, SolveError> {
        let source = source.and_then(KeptMatrix::get::<StencilMatrix>);
        let (Some(source), Some((form, level))) = (source, self.factor) else { return Err(no_sweeps()) };
        let of = (source, form, level);
        match self.narrow {
            true => self.factored::<f32>(setup, request.kind, of, recorder),
            false => self.factored::<f64>(setup, request.kind, of, recorder),
        }
    }

    fn adopt(
        &self,
        setup: &Context<'_>,
        made: Made<Threads<f64>>,
        _: &mut SetupRecorder,
    ) -> Result<Made<Threads<f64>>, SolveError> {
        Ok(made.placed(setup.space, self.placement())?)
    }

    fn describe(&self, kept: &Kept<'_, Threads<f64>>, is_from_a: bool) -> (String, Storing) {
        let a = kept.matrices.and_then(|matrices| matrices.a.get::<StencilMatrix>());
        let constant = a.is_some_and(StencilMatrix::is_constant);
        let is_from_a = is_from_a && kept.matrices.is_some_and(|matrices| matrices.are_one());
        let of_g = match &self.products {
            Some([of_g, _]) => format!(", G on {}", of_g.stencil()),
            None => String::new(),
        };
        let words = format!(
            "structured: {}{}{of_g}{}",
            self.structure,
            if constant && self.products.is_none() { ", constant coefficients" } else { "" },
            match (kept.shares_off_diagonals, is_from_a) {
                (true, true) => ", off-diagonals of the factor are those of A",
                (true, false) => ", off-diagonals of the factor are those of the matrix it is made from",
                (false, _) => "",
            },
        );
        let storing = Storing {
            kind: StorageKind::Grid,
            narrow: false,
            without_product: kept.shares_off_diagonals && is_from_a,
            constant,
            constant_factor: constant && kept.shares_off_diagonals,
        };
        (words, storing)
    }
}

/// What ILU(0) of a matrix with this pattern takes on a grid, if it is that of one.
pub(crate) fn predict_memory(pattern: &Pattern) -> Option<Memory> {
    let wanted = Wanted { form: Form::LU, level: 0, blocks: None, narrow: false };
    let structure = Structure::detect(pattern).ok()?;
    GridStore::for_factor((pattern, structure), None, wanted).ok().map(|store| store.memory)
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
