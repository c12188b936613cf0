//! Facts about a matrix whose rows are divided among ranks, its mesh among them: those that one process finds out, bit for bit, wherever the matrix
//! is cut.

use super::prepared::STORES;
use super::ranks::{PartMatrix, Rank, on_ranks};
use krylith::gallery::Problem;
use krylith::operator::LinearOperator;
use krylith::plan::{Facts, SolvePlan};
use krylith::{Csr, Method, PrecondSpec, SolveError, Solver};

/// The plans of all ranks, each with the block of its own rows as the matrix of the preconditioner.
fn plans(solver: &Solver, a: &Csr<f64>, cuts: &[usize]) -> Vec<Result<SolvePlan, SolveError>> {
    let parts = PartMatrix::split(a, cuts);
    on_ranks(parts.len(), |rank| {
        let part = &parts[rank.rank];
        solver.plan_on(&rank, STORES, part, &part.block())
    })
}

/// Increasing places that cut `n` rows into `parts` parts.
pub(super) fn cuts(n: usize, parts: usize, seed: u64) -> Vec<usize> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % (n + 1)
    };
    let mut cuts: Vec<usize> = (1..parts).map(|_| next()).collect();
    cuts.sort_unstable();
    cuts
}

/// The entries of a problem, changed.
fn changed(name: &str, change: impl Fn(usize, usize, f64) -> Option<f64>) -> Csr<f64> {
    let a = name.parse::<Problem>().unwrap().generate().unwrap();
    let rows = (0..a.nrows())
        .flat_map(|i| a.row(i).0.iter().zip(a.row(i).1).map(move |(&j, &v)| (i, j as usize, v)));
    let entries: Vec<_> = rows.filter_map(|(i, j, v)| Some((i, j, change(i, j, v)?))).collect();
    Csr::from_entries(a.nrows(), a.ncols(), entries).unwrap()
}

/// Each by what is unusual about it.
pub(super) fn systems() -> Vec<(&'static str, Csr<f64>)> {
    let problem = |name: &'static str| (name, changed(name, |_, _, v| Some(v)));
    let mut all: Vec<_> = [
        "poisson2d:150x60",
        "neumann2d:90",
        "neumann3d:20",
        "convection3d:18",
        "circuit:70",
        "elasticity3d-free:7",
        "graph-laplacian:90",
        "fem2d:70",
        "navierstokes3d:6",
    ]
    .map(problem)
    .into();
    // Far from the diagonal, so that nearly every cut is between the rows of both.
    let far = |i: usize, j: usize| i.abs_diff(j) == 90;
    all.push((
        "asymmetric",
        changed("poisson2d:90", |i, j, v| Some(if i == 4000 && far(i, j) { v / 2.0 } else { v })),
    ));
    all.push((
        "symmetric up to rounding",
        changed("poisson2d:90", |i, j, v| Some(if i < j && far(i, j) { v.next_up() } else { v })),
    ));
    all.push((
        "one-sided zeros",
        changed("poisson2d:90", |i, j, v| {
            if i > j && far(i, j) { None } else { Some(if far(i, j) { 0.0 } else { v }) }
        }),
    ));
    all.push((
        "one-sided",
        changed("poisson2d:90", |i, j, v| if i > j && far(i, j) { None } else { Some(v) }),
    ));
    all.push(("an empty column", changed("poisson2d:90", |_, j, v| (j != 5000).then_some(v))));
    all.push((
        "zeros on the diagonal",
        changed("convection3d:18", |i, j, v| (i != j || i % 100 != 7).then_some(v)),
    ));
    // Columns of the transpose sum up to 0 where rows do.
    let entry = |(i, n): (usize, usize)| [(i, i, 3.0), ((i + 1) % n, i, -1.0), ((i + 4500) % n, i, -2.0)];
    let columns = Csr::from_entries(9000, 9000, (0..9000).flat_map(|i| entry((i, 9000)))).unwrap();
    all.push(("columns alone sum up to zero", columns));
    all
}

#[test]
fn facts_in_parts_are_those_of_the_whole() {
    for (name, a) in systems() {
        let expected = Solver::new().plan(&a).unwrap().facts.unwrap();
        assert!(expected.mesh.is_some());
        let n = a.nrows();
        let some = [(2, 1), (3, 2), (5, 3)].map(|(parts, seed)| cuts(n, parts, seed));
        // One process that has all rows, and some that have none or a few.
        for cuts in some.into_iter().chain([vec![], vec![0, 0, 5, 5, n, n]]) {
            for plan in plans(&Solver::new(), &a, &cuts) {
                assert_eq!(plan.unwrap().facts.as_ref(), Some(&expected), "{name} cut at {cuts:?}");
            }
        }
    }
}

/// What the systems are for: their facts are those of their names.
#[test]
fn the_systems_are_what_they_are_called() {
    let systems = systems();
    let facts = |wanted: &str| Facts::of_matrix(&systems.iter().find(|(name, _)| *name == wanted).unwrap().1);
    assert!(facts("neumann2d:90").constant_null_vector && facts("neumann3d:20").constant_left_null_vector);
    assert!(facts("asymmetric").symmetric_pattern && facts("asymmetric").asymmetry == 0.125);
    let rounded = facts("symmetric up to rounding");
    assert!(!rounded.symmetric && rounded.nearly_symmetric);
    let zeros = facts("one-sided zeros");
    assert!(zeros.symmetric && zeros.paired && !zeros.symmetric_pattern);
    assert!(!facts("one-sided").paired);
    assert_eq!(facts("an empty column").structural_rank, 8099);
    let moved = facts("zeros on the diagonal");
    assert!(moved.zero_diagonals > 50 && moved.structural_rank == moved.rows);
    let columns = facts("columns alone sum up to zero");
    assert!(columns.constant_left_null_vector && !columns.symmetric);
    assert!(facts("circuit:70").share_of_sums > 0.0);
}

/// The facts of A are those of A, on one rank and on two, where the preconditioner is made from another matrix.
#[test]
fn the_matrix_of_the_preconditioner_may_be_another() {
    let a = changed("neumann2d:24", |_, _, v| Some(v));
    let other = changed("neumann2d:24", |i, j, v| Some(if i == j { v + 1e-3 } else { v }));
    let expected = Facts::of_matrix(&a);
    for cuts in [vec![], vec![200]] {
        let (parts, others) = (PartMatrix::split(&a, &cuts), PartMatrix::split(&other, &cuts));
        for plan in on_ranks(parts.len(), |rank| {
            let (part, other) = (&parts[rank.rank], &others[rank.rank]);
            Solver::new().plan_on(&rank, STORES, part, &other.block()).unwrap()
        }) {
            let mut facts = plan.facts.unwrap();
            facts.mesh = None;
            assert!(facts.constant_null_vector && !plan.preconditioner_facts.unwrap().constant_null_vector);
            assert_eq!(facts, expected);
        }
    }
}

/// A method by name that needs symmetry: every rank warns of an entry that one of them has.
#[test]
fn a_warning_is_that_of_the_whole() {
    let (_, a) = systems().into_iter().find(|(name, _)| *name == "asymmetric").unwrap();
    let solver = Solver::new().method(Method::Cg).preconditioner(PrecondSpec::ic(0));
    let alone = solver.plan(&a).unwrap().warnings;
    assert!(alone[0].contains("1.2e-1") || alone[0].contains("1.3e-1"), "{alone:?}");
    for plan in plans(&solver, &a, &[4050]) {
        assert_eq!(plan.unwrap().warnings, alone);
    }
}

/// Parts that are no matrix together are an error on every rank.
#[test]
fn parts_of_other_matrices_are_refused() {
    let a = changed("poisson2d:12", |_, _, v| Some(v));
    let (one, other) = (PartMatrix::split(&a, &[60]), PartMatrix::split(&a, &[70]));
    let ends = on_ranks(2, |rank: Rank| {
        let part = if rank.rank == 0 { &one[0] } else { &other[1] };
        assert_eq!(part.own_rows().unwrap().first, if rank.rank == 0 { 0 } else { 70 });
        Solver::new().plan_on(&rank, STORES, part, &part.block())
    });
    for end in ends {
        assert!(end.unwrap_err().to_string().contains("rows that do not follow each other"));
    }
}
