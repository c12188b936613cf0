//! From the name of a preconditioner to an engine, over whichever store takes the system.

use super::inverse::{Inverse, limited_for};
use super::{FindStore, Found, Kept, Made, Needs, OverStore, Request, Role, Store};
use crate::engine::{DynEngine, InOrder, Matrices, PlacedEngine};
use crate::error::{BackendError, SetupError, SolveError};
use crate::facts::{Facts, Whole};
use crate::operator::{DynPreconditioner, OwnRows, Preconditioner, SolverSpace};
use crate::options::{Method, StorageKind};
use crate::placement::{AsGiven, KeptMatrix, SharedPlacement, Storage};
use crate::plan::SolvePlan;
use crate::precond::PrecondSpec;
use crate::precond::fsai::{Fsai, InParts, InverseRows};
use crate::precond::registry::Construction;
use crate::setup::{Considered, OneFactor, SetupContext, SetupRecorder, SetupSummary, Storing, vector_bytes};
use crate::space::holds_everywhere;
use crate::store::make_by_rows;
use std::sync::Arc;

/// What a preconditioner is made of, but for an approximate inverse, whose matrices come first.
fn needs_of<S: SolverSpace>(
    setup: &SetupContext<'_, S>,
    kind: &PrecondSpec,
) -> Result<Needs<'static>, SolveError> {
    // Least squares multiply by Aᵀ, which compressed rows can.
    let has_order = setup.a.is_some() && setup.other_matrix().is_none() && setup.method != Method::Lsmr;
    Ok(match kind.construct() {
        Construction::Incomplete(recipe) | Construction::Trained { recipe, .. } => {
            Needs::Triangles(setup.limited(recipe))
        }
        Construction::Blocks(kind, size) => Needs::Blocks(kind, size),
        Construction::Nothing | Construction::Recipe(_) | Construction::Own if has_order => Needs::Nothing,
        Construction::Nothing
        | Construction::Recipe(_)
        | Construction::Own
        | Construction::Threshold(_)
        | Construction::Direct(_)
        | Construction::Inverse(_) => Needs::OrderOfA,
        Construction::Chosen => return Err(unsupported()),
    })
}

fn unsupported() -> SolveError {
    BackendError::Unsupported { what: "this preconditioner" }.into()
}

/// Sets up in the first store that takes the system, with rows and columns as they are. Triangles by threshold may have been made before.
pub(crate) fn in_stores<S: SolverSpace>(
    mut setup: SetupContext<'_, S>,
    stores: &[&dyn FindStore<S>],
    (kind, triangles): (&PrecondSpec, Option<OneFactor>),
    recorder: &mut SetupRecorder,
) -> Result<(DynEngine<S>, SetupSummary), SolveError> {
    match made(&mut setup, stores, (kind, triangles), recorder)? {
        InStore::Parts(parts) => finish(&setup, kind, *parts),
        InStore::Engine(engine, summary) => Ok((engine, summary)),
        InStore::Nowhere if kind.is_none() => {
            Ok(no_preconditioner(setup.space, setup.size.clone(), setup.method))
        }
        // What no store has taken must not run without a preconditioner.
        InStore::Nowhere => Err(unsupported()),
    }
}

/// A matrix and a preconditioner made from it, both in one store: a level of a hierarchy.
pub struct Level<S: SolverSpace> {
    /// The order of vectors.
    pub placement: SharedPlacement<S>,
    /// The matrix.
    pub matrix: KeptMatrix<S>,
    /// The preconditioner.
    pub made: Made<S>,
    /// What the store is, in words.
    pub words: String,
}

/// Keeps the source of a set-up, and makes this preconditioner from it, in the first store that takes both.
pub fn level<S: SolverSpace>(
    mut setup: SetupContext<'_, S>,
    stores: &[&dyn FindStore<S>],
    kind: &PrecondSpec,
    recorder: &mut SetupRecorder,
) -> Result<Level<S>, SolveError> {
    // What is recorded are the stores that were asked for the system.
    let asked = std::mem::take(&mut recorder.considered);
    let made = made(&mut setup, stores, (kind, None), recorder);
    recorder.considered = asked;
    let InStore::Parts(parts) = made? else { return Err(unsupported()) };
    let Parts { store, matrices, made, described, .. } = *parts;
    let matrix = match matrices {
        Some(Matrices { a, .. }) => a,
        None => store.keep(&setup, Role::Source, setup.source, recorder)?,
    };
    let placement = store.placement().unwrap_or_else(|| Arc::new(AsGiven(setup.size.clone())));
    Ok(Level { placement, matrix, made, words: described.0 })
}

/// What was made in a store.
struct Parts<S: SolverSpace> {
    store: Box<dyn Store<S>>,
    /// None where A is the caller's own.
    matrices: Option<Matrices<KeptMatrix<S>>>,
    made: Made<S>,
    /// The store in words, and what the prediction of an iteration needs.
    described: (String, Storing),
    /// Its bytes are known once it is there.
    is_unforeseen: bool,
}

/// What came of asking the stores.
enum InStore<S: SolverSpace> {
    Parts(Box<Parts<S>>),
    /// Of a store whose iteration has another space.
    Engine(DynEngine<S>, SetupSummary),
    Nowhere,
}

fn made<S: SolverSpace>(
    setup: &mut SetupContext<'_, S>,
    stores: &[&dyn FindStore<S>],
    (kind, triangles): (&PrecondSpec, Option<OneFactor>),
    recorder: &mut SetupRecorder,
) -> Result<InStore<S>, SolveError> {
    if !kind.is_none() {
        setup.choose_precision(kind, recorder);
    }
    if let Construction::Inverse(recipe) = kind.construct() {
        return by_products(setup, stores, (kind, recipe), recorder).map(Box::new).map(InStore::Parts);
    }
    let request = Request { kind, needs: needs_of(setup, kind)? };
    let Some(taken) = first(setup, stores, &request, recorder)? else { return Ok(InStore::Nowhere) };
    if let Some((engine, summary)) = taken.store.engine(setup, &request, recorder)? {
        recorder.considered.push(taken.considered(kind, None));
        return Ok(InStore::Engine(engine, summary));
    }
    over(taken, setup, (&request, triangles), recorder).map(Box::new).map(InStore::Parts)
}

/// A store that takes a system.
struct Taken<S: SolverSpace> {
    /// Its name.
    name: &'static str,
    store: Box<dyn Store<S>>,
}

/// The first store that takes a system; why others did not is recorded.
fn first<S: SolverSpace>(
    setup: &SetupContext<'_, S>,
    stores: &[&dyn FindStore<S>],
    request: &Request<'_>,
    recorder: &mut SetupRecorder,
) -> Result<Option<Taken<S>>, SolveError> {
    recorder.considered.clear();
    for finder in stores {
        let name = finder.name();
        match finder.find(setup, request, recorder)? {
            Found::Store(store) => return Ok(Some(Taken { name, store })),
            Found::Refused(reason) => {
                recorder.considered.push(Considered { layout: name.into(), taken: false, reason });
            }
            Found::NotAskedFor => {}
        }
    }
    Ok(None)
}

impl<S: SolverSpace> Taken<S> {
    /// The store in words, with the operations of a complete factor.
    fn considered(&self, kind: &PrecondSpec, operations: Option<f64>) -> Considered {
        let layout = self.store.memory().layout;
        let reason = match (kind.construct(), operations) {
            (Construction::Threshold(_), _) => format!("{layout}: the pattern follows the values"),
            (_, Some(operations)) => format!("{layout}: {operations:.1e} operations predicted"),
            (_, None) => layout,
        };
        Considered { layout: self.name.into(), taken: true, reason }
    }
}

/// How the matrices of a system would be kept, by its first store.
pub(crate) fn kind_of_store<S: SolverSpace>(
    mut setup: SetupContext<'_, S>,
    stores: &[&dyn FindStore<S>],
    kind: &PrecondSpec,
    recorder: &mut SetupRecorder,
) -> Result<Option<StorageKind>, SolveError> {
    setup.choose_precision(kind, recorder);
    let request = Request { kind, needs: needs_of(&setup, kind)? };
    Ok(first(&setup, stores, &request, recorder)?.map(|taken| taken.store.kind()))
}

/// The matrices of a system in a store; none where A stays the caller's own.
fn kept<S: SolverSpace>(
    store: &dyn Store<S>,
    setup: &SetupContext<'_, S>,
    recorder: &mut SetupRecorder,
) -> Result<Option<Matrices<KeptMatrix<S>>>, SetupError> {
    if store.placement().is_none() {
        return Ok(None);
    }
    let mut keep = |role, matrix| store.keep(setup, role, matrix, recorder);
    let other = setup.other_matrix().map(|a| keep(Role::OtherA, a)).transpose()?;
    Ok(Some(Matrices::new(keep(Role::Source, setup.source)?, other)))
}

/// A preconditioner that is not an approximate inverse, over a store.
fn over<S: SolverSpace>(
    taken: Taken<S>,
    setup: &SetupContext<'_, S>,
    (request, triangles): (&Request<'_>, Option<OneFactor>),
    recorder: &mut SetupRecorder,
) -> Result<Parts<S>, SolveError> {
    recorder.operations = None;
    let ended = in_store(&*taken.store, setup, (request, triangles), recorder);
    // Whether or not there is a factor.
    recorder.considered.push(taken.considered(request.kind, recorder.operations));
    let (matrices, made) = ended?;
    let shares_off_diagonals = made.shares_off_diagonals;
    let kept = Kept { matrices: matrices.as_ref(), products: &[], shares_off_diagonals };
    let described = taken.store.describe(&kept, setup.is_from_a());
    Ok(Parts { store: taken.store, matrices, made, described, is_unforeseen: false })
}

/// The matrices that are kept in a store, none where A stays the caller's own, and the preconditioner.
type InOneStore<S> = (Option<Matrices<KeptMatrix<S>>>, Made<S>);

fn in_store<S: SolverSpace>(
    store: &dyn Store<S>,
    setup: &SetupContext<'_, S>,
    (request, triangles): (&Request<'_>, Option<OneFactor>),
    recorder: &mut SetupRecorder,
) -> Result<InOneStore<S>, SolveError> {
    if store.has_sweeps() {
        let matrices = kept(store, setup, recorder)?;
        let source = matrices.as_ref().map(Matrices::source);
        let made = store.triangles(setup, request, source, recorder)?;
        Ok((matrices, made))
    } else {
        // What has no room is found out before A is copied.
        let made = match request.kind.is_none() {
            true => {
                let placement = store.placement();
                Made::new(OverStore::identity(placement.as_ref(), setup.size.clone()), 0, 0)
            }
            false => {
                let host = setup.on_host(store.precision_of_host(setup.options.precision));
                let made = make_by_rows(&host, (request.kind, triangles), recorder)?;
                store.adopt(setup, made, recorder)?
            }
        };
        Ok((kept(store, setup, recorder)?, made))
    }
}

/// The engine, and what the report says of it.
fn finish<S: SolverSpace>(
    setup: &SetupContext<'_, S>,
    kind: &PrecondSpec,
    parts: Parts<S>,
) -> Result<(DynEngine<S>, SetupSummary), SolveError> {
    let Parts { store, matrices, made, described: (words, storing), is_unforeseen } = parts;
    let (memory, vectors) = (store.memory(), store.vector_bytes(setup));
    let Made { m, nnz, bytes, predicted, shift, schedule, words: more, .. } = made;
    let copies = matrices.as_ref().map_or(0, |matrices| matrices.bytes(Storage::bytes));
    let held = copies + store.shared_bytes() + bytes + vectors;
    let predicted = match is_unforeseen {
        true => held,
        false => memory.copy + predicted.unwrap_or(memory.factor) + vectors,
    };
    let kind = kind.clone();
    let narrow = setup.narrow && kind.incomplete().is_some();
    let summary = SetupSummary {
        kind,
        nnz,
        bytes,
        shift,
        schedule,
        layout: words + &more,
        ordering: String::new(),
        predicted,
        held,
        storing: Storing { narrow: storing.narrow || narrow, ..storing },
    };
    let engine: DynEngine<S> = match (store.placement(), matrices, m) {
        (Some(placement), Some(matrices), OverStore::Placed(m)) => {
            Box::new(PlacedEngine::new(placement, matrices, m))
        }
        (None, None, OverStore::InOrder(m)) => Box::new(InOrder::new(m)),
        _ => return Err(BackendError::Failed { what: "a factor in another order than A".into() }.into()),
    };
    Ok((engine, summary))
}

/// An approximate inverse: A and its matrices where they take the fewest bytes.
fn by_products<S: SolverSpace>(
    setup: &SetupContext<'_, S>,
    stores: &[&dyn FindStore<S>],
    (kind, recipe): (&PrecondSpec, Fsai),
    recorder: &mut SetupRecorder,
) -> Result<Parts<S>, SolveError> {
    if let Some(own) = setup.own_rows.filter(|_| !setup.space.process().is_alone())
        && let Some(parts) = inverse_in_parts(setup, stores, own, (kind, recipe), recorder)?
    {
        return Ok(parts);
    }
    let inverse = Inverse::new(setup, recipe, recorder)?;
    let considered = products(inverse.expected(setup).0);
    let is_of_a = setup.a.is_some() && setup.other_matrix().is_none();
    let request = Request { kind, needs: Needs::Products(inverse.products(setup.narrow)) };
    let (mut found, mut refusal) = (Vec::new(), String::new());
    for finder in stores {
        match finder.find(setup, &request, recorder)? {
            Found::Store(store) => found.push(store),
            // Rows take it in the end.
            Found::Refused(_) if finder.kind() == StorageKind::Rows => {}
            Found::Refused(reason) => refusal = reason,
            Found::NotAskedFor => {}
        }
    }
    if !is_of_a {
        refusal = "the preconditioner is not made from A".into();
    }
    let bytes = |store: &dyn Store<S>| {
        let memory = store.memory();
        memory.copy + memory.factor
    };
    // Slices are faster than rows of as many bytes, the others are not.
    let has_slices = found.iter().any(|store| store.kind() == StorageKind::Slices);
    let most = if has_slices { usize::MAX } else { setup.source.bytes() + inverse.bytes() };
    found.retain(|store| is_of_a && store.kind() != StorageKind::Rows);
    found.retain(|store| {
        let fits = bytes(&**store) <= most;
        if !fits {
            refusal = format!("{}: more bytes than by rows", store.memory().layout);
        }
        fits
    });
    found.sort_by_key(|store| bytes(&**store));
    for store in found {
        match products_in(&*store, setup, (&request, &inverse), recorder) {
            // On a grid of few points offsets may be taken for others.
            Err(reason) => refusal = reason.to_string(),
            Ok((matrices, products)) => {
                let kept =
                    Kept { matrices: Some(&matrices), products: &products, shares_off_diagonals: false };
                let described = store.describe(&kept, true);
                let made = inverse.over(products);
                recorder.considered = vec![considered];
                return Ok(Parts { store, matrices: Some(matrices), made, described, is_unforeseen: true });
            }
        }
    }
    let request = Request { kind, needs: Needs::OrderOfA };
    let store = first(setup, stores, &request, recorder)?.ok_or_else(unsupported)?.store;
    recorder.considered = vec![considered];
    let made = store.adopt(setup, inverse.in_order(&refusal), recorder)?;
    let matrices = kept(&*store, setup, recorder)?;
    let kept = Kept { matrices: matrices.as_ref(), products: &[], shares_off_diagonals: false };
    let described = store.describe(&kept, setup.is_from_a());
    Ok(Parts { store, matrices, made, described, is_unforeseen: false })
}

/// An approximate inverse of all rows of a matrix that is divided among processes, applied to the caller's vectors; `None` if the preconditioner is to be made
/// from another matrix, or in another order.
fn inverse_in_parts<S: SolverSpace>(
    setup: &SetupContext<'_, S>,
    stores: &[&dyn FindStore<S>],
    own: OwnRows<'_>,
    (kind, recipe): (&PrecondSpec, Fsai),
    recorder: &mut SetupRecorder,
) -> Result<Option<Parts<S>>, SolveError> {
    let space = setup.space;
    let whole = Whole::new(space, own)?;
    let is_of_a = setup.rows.is_none() && whole.has_block(setup.source);
    let request = Request { kind, needs: Needs::OrderOfA };
    let taken = first(setup, stores, &request, recorder)?;
    // Otherwise it is the inverse of what each process has.
    let Some(taken) = taken.filter(|taken| taken.store.placement().is_none() && is_of_a) else {
        holds_everywhere(space, false)?;
        return Ok(None);
    };
    if !holds_everywhere(space, true)? {
        return Ok(None);
    }
    let recipe = limited_for(setup, recipe, || Facts::without_mesh(&whole).map(|facts| facts.symmetric))?;
    let InverseRows { matrices, words } = recorder.factoring(|| InverseRows::new(&whole, recipe))?;
    let nnz = matrices[0].nnz();
    let m = InParts::new(space, matrices, own.first)?;
    let m = DynPreconditioner::new(m);
    let bytes = m.bytes();
    let made = Made { words: format!("; {words}"), ..Made::new(OverStore::InOrder(m), nnz, bytes) };
    recorder.considered = vec![products("products with the own rows of G and its transpose".into())];
    let kept = Kept { matrices: None, products: &[], shares_off_diagonals: false };
    let described = taken.store.describe(&kept, true);
    Ok(Some(Parts { store: taken.store, matrices: None, made, described, is_unforeseen: true }))
}

/// An approximate inverse is not offered to one store after the other.
fn products(reason: String) -> Considered {
    Considered { layout: "products".into(), taken: true, reason }
}

/// A and the matrices of an approximate inverse in a store.
type WithProducts<S> = (Matrices<KeptMatrix<S>>, [KeptMatrix<S>; 2]);

fn products_in<S: SolverSpace>(
    store: &dyn Store<S>,
    setup: &SetupContext<'_, S>,
    (_, inverse): (&Request<'_>, &Inverse),
    recorder: &mut SetupRecorder,
) -> Result<WithProducts<S>, SetupError> {
    let mut keep = |role, matrix| store.keep(setup, role, matrix, recorder);
    let a = keep(Role::Source, setup.source)?;
    let [first, second] = inverse.matrices();
    Ok((Matrices::new(a, None), [keep(Role::Product(0), first)?, keep(Role::Product(1), second)?]))
}

/// Asks one store after the other until one takes the system, for a plan; nothing is factored.
pub(crate) fn look<S: SolverSpace>(
    mut setup: SetupContext<'_, S>,
    stores: &[&dyn FindStore<S>],
    plan: &mut SolvePlan,
    recorder: &mut SetupRecorder,
) -> Result<(), SolveError> {
    let kind = &plan.preconditioner.clone();
    if !kind.is_none() {
        setup.choose_precision(kind, recorder);
    }
    if matches!(kind.construct(), Construction::Inverse(_))
        && setup.own_rows.is_some()
        && !setup.space.process().is_alone()
    {
        plan.considered = vec![products("products with the own rows of G and its transpose".into())];
        return Ok(());
    }
    if let Construction::Inverse(recipe) = kind.construct() {
        let (reason, bytes) = Inverse::analyze(&setup, recipe, recorder)?;
        plan.predicted_bytes = Some(bytes + setup.reserved);
        plan.considered = vec![products(reason)];
        return Ok(());
    }
    let request = Request { kind, needs: needs_of(&setup, kind)? };
    let taken = first(&setup, stores, &request, recorder)?;
    if let Some(taken) = &taken {
        let (bytes, operations) = expected(&*taken.store, &setup, kind, recorder)?;
        plan.predicted_bytes = bytes.map(|bytes| bytes + setup.reserved);
        recorder.considered.push(taken.considered(kind, operations));
    }
    plan.considered = std::mem::take(&mut recorder.considered);
    Ok(())
}

/// The bytes of everything that a solve will hold besides A, b and x, where they are known before, and the operations of a complete factor.
fn expected<S: SolverSpace>(
    store: &dyn Store<S>,
    setup: &SetupContext<'_, S>,
    kind: &PrecondSpec,
    recorder: &mut SetupRecorder,
) -> Result<(Option<u64>, Option<f64>), SolveError> {
    let (memory, vectors) = (store.memory(), store.vector_bytes(setup) as u64);
    let with = |factor: u64| memory.copy as u64 + factor + vectors;
    Ok(match kind.construct() {
        Construction::Threshold(_) => (None, None),
        Construction::Direct(which) => {
            let symbolic = recorder.analyzing(|| setup.findings.complete(which, setup.source, None))?;
            let cost = symbolic.cost();
            (Some(with(cost.bytes())), Some(cost.flops))
        }
        Construction::Recipe(_) | Construction::Own => {
            (kind.predicted_entries(setup.source.pattern()).map(|entries| with(8 * entries)), None)
        }
        _ => (Some(with(memory.factor as u64)), None),
    })
}

/// No preconditioner, in any space.
pub(crate) fn no_preconditioner<S: SolverSpace>(
    space: &S,
    size: S::Size,
    method: Method,
) -> (DynEngine<S>, SetupSummary) {
    let bytes = vector_bytes(method, space.len(&size)) as usize;
    let summary = SetupSummary {
        kind: PrecondSpec::none(),
        nnz: 0,
        bytes: 0,
        shift: 0.0,
        schedule: None,
        layout: "rows as given".into(),
        ordering: String::new(),
        predicted: bytes,
        held: bytes,
        storing: Storing::BY_ROWS,
    };
    let m = DynPreconditioner::new(crate::operator::Identity::<S>::new(size));
    (Box::new(InOrder::new(m)), summary)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::Csr;
    use crate::options::{Layout, Precision};
    use crate::schedule::Schedule;
    use crate::setup::SetupOptions;
    use crate::solver::STORES;
    use crate::space::Threads;

    /// A name that is parsed but not built must not run without a preconditioner.
    #[test]
    fn a_kind_that_nothing_builds_is_an_error() {
        let (space, a) = (Threads::new(1), Csr::<f64>::identity(4).unwrap());
        let options = SetupOptions {
            schedule: Schedule::Auto,
            layout: Layout::Auto,
            precision: Precision::F64,
            recover: true,
            shift: 0.0,
            max_bytes: None,
            max_memory: None,
        };
        let setup = SetupContext::new(options, &space, 4, Some(&a), &a, (Method::Cg, 1.0));
        let built = in_stores(setup, STORES, (&PrecondSpec::auto(), None), &mut SetupRecorder::default());
        assert!(matches!(built.err(), Some(SolveError::Backend(BackendError::Unsupported { .. }))));
    }
}
