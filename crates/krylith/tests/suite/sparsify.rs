//! Preconditioners made from a sparser matrix than A.

use krylith::gallery::{Problem, random_vector};
use krylith::plan::{MANY_CORE, REFERENCE, SolvePlan};
use krylith::sparsify::{Paper, Sparsify};
use krylith::transform::Ordering;
use krylith::{Csr, Layout, Method, Precision, SolveError, Solver};

fn problem(name: &str) -> Csr<f64> {
    name.parse::<Problem>().unwrap().generate().unwrap()
}

fn cg(kind: &str) -> Solver {
    Solver::new().method(Method::Cg).preconditioner(kind.parse().unwrap())
}

/// The same iterates as with the sparser matrix handed over by the caller, in every storage and order.
#[test]
fn m_is_made_from_the_sparser_matrix_and_the_iteration_is_on_a() {
    let a = problem("fem2d:40");
    let b: Vec<f64> = random_vector(a.nrows());
    let (_, sparser) = Sparsify::Percent(10.0).apply(&a).unwrap();
    assert!(sparser.matrix().nnz() < a.nnz());
    for kind in ["ic0", "ic(1)", "ilu0", "ict(0.01)", "bic0(1)"] {
        for layout in [Layout::Auto, Layout::Slices, Layout::Rows] {
            for reorder in [Ordering::Natural, Ordering::Rcm] {
                let method = if kind.contains("ilu") { Method::BiCgStab } else { Method::Cg };
                let solver = cg(kind).method(method).layout(layout).reorder(reorder).threads(2);
                let report = solver.clone().sparsify(Sparsify::Percent(10.0)).solve(&a, &b).unwrap().report;
                report.require_converged().unwrap();
                let mut x = vec![0.0; a.nrows()];
                let given = solver.prepare_with(&a, sparser.matrix()).unwrap();
                let expected = given.solve(&a, &b, &mut x).unwrap();
                assert_eq!(report.history, expected.history, "{kind} {layout:?} {reorder}");
                assert_eq!(report.preconditioner_nnz, expected.preconditioner_nnz);
                assert!(report.bytes > expected.bytes && report.predicted_bytes > expected.predicted_bytes);
                let found = report.plan.sparsification.unwrap();
                assert_eq!(found.chosen().unwrap().dropped, a.nnz() - sparser.matrix().nnz());
            }
        }
    }
}

/// Values change, the entries that are dropped stay those of the first matrix.
#[test]
fn a_refactorization_follows_the_values() {
    let mut a = problem("fem2d:30");
    let b: Vec<f64> = random_vector(a.nrows());
    let solver = cg("ic0").sparsify(Sparsify::paper()).threads(2);
    let mut prepared = solver.prepare(&a).unwrap();
    let mut x = vec![0.0; a.nrows()];
    let first = prepared.solve(&a, &b, &mut x).unwrap();
    a.values_mut().iter_mut().for_each(|v| *v *= 4.0);
    assert_eq!(prepared.solve(&a, &b, &mut x), Err(SolveError::StaleFactor));
    prepared.refactor(&a).unwrap();
    x.fill(0.0);
    let second = prepared.solve(&a, &b, &mut x).unwrap();
    assert_eq!(second.history, first.history);
    assert!(prepared.refactor(&problem("fem2d:31")).is_err());
}

#[test]
fn the_same_bits_on_any_number_of_threads() {
    let a = problem("thermal:30");
    let b: Vec<f64> = random_vector(a.nrows());
    let solve = |threads| {
        let solver = cg("ic0").sparsify(Sparsify::paper()).threads(threads);
        let solution = solver.solve(&a, &b).unwrap();
        let report = solution.report;
        (solution.x, report.history, report.plan.sparsification)
    };
    let one = solve(1);
    for threads in [2, 3, 8] {
        assert_eq!(solve(threads), one);
    }
}

/// A circuit has long chains of weak links. Where nobody waits for wavefronts it is left alone.
#[test]
fn auto_follows_the_machine() {
    let a = problem("circuit:80");
    let b: Vec<f64> = random_vector(a.nrows());
    let solver = cg("ic0").sparsify(Sparsify::auto());
    let off = cg("ic0").solve(&a, &b).unwrap().report;
    let reference = solver.clone().solve(&a, &b).unwrap().report;
    assert_eq!(reference.history, off.history);
    let many = solver.machine(MANY_CORE);
    let one = many.clone().threads(1).solve(&a, &b).unwrap();
    let found = one.report.plan.sparsification.clone().unwrap();
    assert!(found.chosen().unwrap().wavefronts < found.wavefronts.unwrap());
    let most = off.iterations + off.iterations / 4 + 2;
    assert!(one.report.require_converged().unwrap().iterations <= most);
    let two = many.clone().threads(2).solve(&a, &b).unwrap();
    assert_eq!((&two.x, two.report.plan.sparsification.clone()), (&one.x, Some(found)));
    // Repeated without the machine that it was decided for.
    let again = Solver::new().with_plan(&two.report.replay()).solve(&a, &b).unwrap();
    assert_eq!(again.x, two.x);
    // Chains are those of the order as given, and of a factor without fill.
    for other in [many.clone().reorder(Ordering::Rcm), many.preconditioner("ic(1)".parse().unwrap())] {
        let report = other.solve(&a, &b).unwrap().report;
        assert!(report.plan.sparsification.unwrap().chosen().is_none());
    }
}

/// Without being asked, a factor that is chosen is made from a sparser matrix on a machine that waits, and nowhere else.
#[test]
fn the_default_follows_the_machine_where_it_chooses_the_factor() {
    let a = problem("pflow:20x20x8");
    let b: Vec<f64> = random_vector(a.nrows());
    // Where sweeps wait so much, approximate inverses or complete factors are taken unless their set-up is dear.
    let mut machine = REFERENCE;
    (machine.inverse, machine.grow, machine.analysis) = (1e6, 1e6, 1e6);
    (machine.slices.wavefront, machine.rows.wavefront) = (3000.0, 3000.0);
    let chosen = |solver: Solver| {
        let report = solver.threads(1).solve(&a, &b).unwrap().report;
        report.require_converged().unwrap();
        (report.preconditioner.clone(), report.plan.sparsification.clone())
    };
    let (kind, found) = chosen(Solver::new().machine(machine.clone()));
    assert_eq!(kind, "ic0");
    assert_eq!(Solver::new().machine(machine.clone()).threads(2).plan(&a).unwrap().sparsification, found);
    assert!(found.unwrap().chosen().is_some());
    for other in [
        Solver::new(),
        Solver::new().machine(machine.clone()).sparsify(Sparsify::Off),
        cg("ic0").machine(machine),
    ] {
        assert_eq!(chosen(other).1, None);
    }
}

/// Four rows j, i, k, q after another. In the factor of A l_ij is small, and l_ki is zero since elimination of j has taken away a_ki. Without (i, j) it has not, and the pivot of k is
/// 1 − 0.9999 − 0.0004.
fn needs_what_is_small() -> Csr<f64> {
    let groups = 1500;
    let large = 0.9999f64.sqrt();
    let below = (0..groups).flat_map(|g| {
        let [j, i, k, q] = [0, 1, 2, 3].map(|row| 4 * g + row);
        let link = (g + 1 < groups).then_some((q + 1, q, 1e-3));
        let own = [(i, j, 0.02), (k, j, large), (k, i, 0.02 * large), (q, i, 0.5)];
        own.into_iter().chain(link)
    });
    let off = below.flat_map(|(i, j, v)| [(i, j, v), (j, i, v)]);
    let n = 4 * groups;
    Csr::from_entries(n, n, off.chain((0..n).map(|i| (i, i, 1.0)))).unwrap()
}

/// Where a pivot is bad without what is dropped, nothing is.
#[test]
fn auto_is_withdrawn_where_a_pivot_is_bad() {
    let a = needs_what_is_small();
    let b: Vec<f64> = random_vector(a.nrows());
    // It is that of a grid of one dimension, which would be refused.
    let solver = cg("ic0").machine(MANY_CORE).layout(Layout::Rows);
    let without = solver.clone().solve(&a, &b).unwrap().report;
    let asked = solver.clone().sparsify(Sparsify::chains()).solve(&a, &b).unwrap().report;
    assert!(asked.shift > 0.0 && asked.iterations > without.iterations, "{}", asked.shift);
    let solver = solver.sparsify(Sparsify::auto());
    let mut prepared = solver.prepare(&a).unwrap();
    let found = prepared.plan().sparsification.clone().unwrap();
    assert!(found.chosen().is_none() && found.reason.contains("pivot"), "{found}");
    assert!(prepared.sparsified().is_none() && found.candidates[0].dropped > 0);
    let mut x = vec![0.0; a.nrows()];
    let report = prepared.solve(&a, &b, &mut x).unwrap();
    assert_eq!((report.history, report.shift), (without.history, 0.0));
    assert_eq!(report.recovery.len(), 1);
    assert!(report.recovery[0].action.contains("made from A"));
    prepared.refactor(&a).unwrap();
    // A plan knows of the pivot, since it has made the factor.
    let plan = solver.plan(&a).unwrap();
    assert_eq!((&plan.sparsification, &plan.considered), (&Some(found), &report.plan.considered));
    let followed = Solver::new().with_plan(&plan).solve(&a, &b).unwrap();
    assert_eq!((followed.x, followed.report.shift), (x, 0.0));
}

#[test]
fn a_plan_has_the_step_and_repeats_it() {
    let a = problem("fem2d:30");
    let b: Vec<f64> = random_vector(a.nrows());
    let solver = Solver::new().sparsify(Sparsify::Percent(5.0)).precision(Precision::F64);
    let plan = solver.plan(&a).unwrap();
    assert_eq!(plan.sparsify, Sparsify::Percent(5.0));
    assert!(plan.sparsification.as_ref().unwrap().chosen().is_some());
    let text = serde_json::to_string(&plan).unwrap();
    let read: SolvePlan = serde_json::from_str(&text).unwrap();
    assert_eq!(read.sparsification, plan.sparsification);
    let first = solver.solve(&a, &b).unwrap();
    let again = Solver::new().with_plan(&read).solve(&a, &b).unwrap();
    assert_eq!((first.x, first.report.iterations), (again.x, again.report.iterations));
    // A plan from before there was this step.
    let mut old: serde_json::Value = serde_json::from_str(&text).unwrap();
    old.as_object_mut().unwrap().remove("sparsify");
    old.as_object_mut().unwrap().remove("sparsification");
    assert_eq!(serde_json::from_value::<SolvePlan>(old).unwrap().sparsify, Sparsify::Off);
}

/// Where there are no sweeps, or nothing is small enough to be dropped, A stays as it is.
#[test]
fn what_cannot_be_sparsified_is_left_alone() {
    let a = problem("poisson2d:12");
    let b = vec![1.0; a.nrows()];
    for (kind, sparsify) in
        [("jacobi", Sparsify::paper()), ("fsai", Sparsify::paper()), ("ic0", Sparsify::Percent(0.0))]
    {
        let with = cg(kind).sparsify(sparsify).solve(&a, &b).unwrap().report;
        let without = cg(kind).solve(&a, &b).unwrap().report;
        assert_eq!((with.history, with.bytes), (without.history, without.bytes));
        assert!(with.plan.sparsification.is_some());
    }
    assert!(cg("ic0").solve(&a, &b).unwrap().report.plan.sparsification.is_none());
}

#[test]
fn names_are_read_back() {
    let own = Sparsify::Paper(Paper { tau: 0.5, omega: 20.0 });
    for (name, meant) in [
        ("off", Sparsify::Off),
        ("auto", Sparsify::auto()),
        ("paper", Sparsify::paper()),
        ("chains(0.01)", Sparsify::Chains(0.01)),
        ("paper(0.5,20)", own),
        ("5", Sparsify::Percent(5.0)),
        ("0.5", Sparsify::Percent(0.5)),
    ] {
        assert_eq!(name.parse::<Sparsify>(), Ok(meant));
        assert_eq!(meant.to_string(), name);
    }
    assert_eq!("2.5%".parse(), Ok(Sparsify::Percent(2.5)));
    for wrong in ["papr", "-1", "101", "nan", "paper(1)", ""] {
        let error = wrong.parse::<Sparsify>().unwrap_err().to_string();
        assert!(error.contains("percentage"), "{error}");
    }
    let a = problem("poisson2d:4");
    let wrong = cg("ic0").sparsify(Sparsify::Percent(f64::NAN)).solve(&a, &[1.0; 16]);
    assert!(matches!(wrong, Err(SolveError::Option { name: "sparsify", .. })));
}
