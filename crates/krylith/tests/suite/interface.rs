//! What users touch: one factor for several threads and right-hand sides, operators that borrow, criteria of one's own, transposes,
//! reports that are read back.

use krylith::gallery::Problem;
use krylith::observe::Iteration;
use krylith::operator::{FnOperator, LinearOperator};
use krylith::plan::ReasonCode;
use krylith::space::Threads;
use krylith::transform::Ordering;
use krylith::{Csr, Layout, Method, Outcome, PrecondSpec, Prepared, Report, SolveError, Solver};

fn problem(name: &str) -> Csr<f64> {
    name.parse::<Problem>().unwrap().generate().unwrap()
}

/// Columns that have nothing in common.
fn columns(n: usize, count: usize) -> Vec<f64> {
    (0..n * count).map(|k| ((k * 7919 % 1000) as f64).sin() + (k / n) as f64).collect()
}

fn residual(a: &Csr<f64>, x: &[f64], b: &[f64]) -> f64 {
    let mut r = vec![0.0; b.len()];
    a.mul_vec(x, &mut r).unwrap();
    let norm = |v: &mut dyn Iterator<Item = f64>| v.map(|v| v * v).sum::<f64>().sqrt();
    norm(&mut r.iter().zip(b).map(|(r, b)| b - r)) / norm(&mut b.iter().copied())
}

#[test]
fn a_factor_is_shared_by_threads() {
    fn shared<T: Send + Sync>(_: &T) {}
    let a = problem("jump3d:14");
    let (n, count) = (a.nrows(), 6);
    let b = columns(n, count);
    for layout in [Layout::Auto, Layout::Slices, Layout::Rows] {
        for (threads, ordering) in [(1, Ordering::Natural), (2, Ordering::Natural), (1, Ordering::Rcm)] {
            let solver = Solver::new().threads(threads).layout(layout).reorder(ordering);
            let prepared: Prepared<Csr<f64>> = solver.prepare(&a).unwrap();
            shared(&prepared);
            let mut expected = vec![0.0; n * count];
            let mut iterations = Vec::new();
            for (b, x) in b.chunks(n).zip(expected.chunks_mut(n)) {
                let report = prepared.solve(&a, b, x).unwrap();
                report.require_converged().unwrap();
                assert!(residual(&a, x, b) < 1.000001e-8);
                iterations.push(report.iterations);
            }
            let mut found = vec![0.0; n * count];
            std::thread::scope(|scope| {
                for (b, x) in b.chunks(n).zip(found.chunks_mut(n)) {
                    let (prepared, a) = (&prepared, &a);
                    scope.spawn(move || {
                        prepared.solve(a, b, x).unwrap().require_converged().map(drop).unwrap()
                    });
                }
            });
            assert!(found == expected, "{layout:?} {threads} {ordering}");
            found.fill(0.0);
            let reports = prepared.solve_many(&a, &b, &mut found).unwrap();
            assert!(found == expected, "{layout:?} {threads} {ordering}");
            assert_eq!(reports.iter().map(|r| r.iterations).collect::<Vec<_>>(), iterations);
            assert!(reports.iter().all(|r| r.certificate.residual_bound.unwrap() <= 1e-8));
        }
    }
}

#[test]
fn columns_that_do_not_fit_are_refused() {
    let a = problem("poisson2d:9");
    let prepared = Solver::new().threads(2).prepare(&a).unwrap();
    let n = a.nrows();
    assert!(prepared.solve_many(&a, &vec![1.0; n + 1], &mut vec![0.0; n]).is_err());
    assert!(prepared.solve_many(&a, &vec![1.0; 2 * n], &mut vec![0.0; n]).is_err());
    assert_eq!(prepared.solve_many(&a, &[], &mut []).unwrap(), []);
    assert!(prepared.solve(&a, &vec![1.0; n], &mut vec![0.0; n - 1]).is_err());
    // An error is that of the first column that has one, and the others are solved.
    let (mut b, mut x) = (vec![1.0; 4 * n], vec![0.0; 4 * n]);
    b[2 * n + 5] = f64::NAN;
    let error = prepared.solve_many(&a, &b, &mut x).unwrap_err();
    assert!(matches!(error, SolveError::NotFinite { what: "b", row: 5, .. }), "{error:?}");
    assert!(residual(&a, &x[3 * n..], &b[3 * n..]) < 1e-8 && x[2 * n..3 * n].iter().all(|&x| x == 0.0));
}

/// A that changes under a factor that stays: each solve sees the values it was given.
#[test]
fn a_stale_factor_is_shared_too() {
    let a = problem("jump3d:12");
    let mut other = a.clone();
    for i in 0..a.nrows() {
        let place = a.pattern().find(i, i).unwrap();
        other.values_mut()[place] *= 1.5;
    }
    let b = columns(a.nrows(), 1);
    for layout in [Layout::Auto, Layout::Slices, Layout::Rows] {
        for ordering in [Ordering::Natural, Ordering::Rcm] {
            let solver = Solver::new().threads(1).layout(layout).reorder(ordering).allow_stale_factor(true);
            let prepared = solver.prepare(&a).unwrap();
            std::thread::scope(|scope| {
                for a in [&a, &other, &a, &other] {
                    let (prepared, b) = (&prepared, &b);
                    scope.spawn(move || {
                        let mut x = vec![0.0; b.len()];
                        prepared.solve(a, b, &mut x).unwrap().require_converged().map(drop).unwrap();
                        assert!(residual(a, &x, b) < 1.000001e-8);
                    });
                }
            });
        }
    }
}

/// The products of a matrix by a closure that borrows it.
#[test]
fn an_operator_borrows_its_mesh() {
    let matrix = problem("poisson2d:25");
    let b = columns(matrix.nrows(), 1);
    let products = std::cell::Cell::new(0);
    let a = FnOperator::new(matrix.nrows(), |x: &[f64], y: &mut [f64]| {
        products.set(products.get() + 1);
        matrix.mul_vec(x, y).unwrap();
    });
    let mut x = vec![0.0; b.len()];
    let without = Solver::new().method(Method::Cg).prepare_operator(&a).unwrap();
    let plain = without.solve(&a, &b, &mut x).unwrap();
    plain.require_converged().unwrap();
    assert_eq!(plain.preconditioner, "none");
    assert_eq!(plain.certificate.arithmetic, "f64 without a bound");
    assert!(products.get() > plain.iterations && residual(&matrix, &x, &b) < 1e-8);
    x.fill(0.0);
    let with = Solver::new().method(Method::Cg).prepare_with(&a, &matrix).unwrap();
    let preconditioned = with.solve(&a, &b, &mut x).unwrap();
    preconditioned.require_converged().unwrap();
    assert_eq!(preconditioned.preconditioner, "ic0");
    assert!(2 * preconditioned.iterations < plain.iterations && residual(&matrix, &x, &b) < 1e-8);
    // Nothing is known of it: a method for any operator, and the reason says so.
    x.fill(0.0);
    let auto = Solver::new().prepare_operator(&a).unwrap().solve(&a, &b, &mut x).unwrap();
    auto.require_converged().unwrap();
    assert_eq!((auto.solver.as_str(), auto.plan.reasons[0].code), ("bicgstab", ReasonCode::NoMatrix));
    let refused = Solver::new().preconditioner(PrecondSpec::ilu(0)).prepare_operator(&a);
    assert!(refused.err().unwrap().to_string().contains("prepare_with"));
}

/// What a criterion says of the recurrence is asked again of the recomputed residual.
#[test]
fn a_criterion_of_ones_own_counts_as_convergence() {
    let a = problem("convection3d:10");
    let b = columns(a.nrows(), 1);
    let prepared = Solver::new().prepare(&a).unwrap();
    let mut x = vec![0.0; b.len()];
    // A thousandth of the first residual.
    let mut first = None;
    let mut fallen = |at: &Iteration<f64>| at.residual_norm <= 1e-3 * *first.get_or_insert(at.residual_norm);
    let report = prepared.solve_until(&a, &b, &mut x, &mut fallen).unwrap();
    report.require_converged().unwrap();
    assert_eq!(report.certificate.criterion, "the caller's");
    assert!(residual(&a, &x, &b) <= 1e-3 && report.relative_residual > 1e-8);
    // One that lies about the recurrence is found out.
    x.fill(0.0);
    let mut asked = 0;
    let mut liar = |at: &Iteration<f64>| {
        asked += 1;
        asked == 1 && at.index == 0
    };
    let report = prepared.solve_until(&a, &b, &mut x, &mut liar).unwrap();
    assert!(report.outcome != Outcome::Converged && report.residual_replacements > 0, "{:?}", report.outcome);
    // One that never says so ends at the limit of the arithmetic or of the iterations.
    let report = prepared.solve_until(&a, &b, &mut x, &mut |_: &Iteration<f64>| false).unwrap();
    assert_ne!(report.outcome, Outcome::Converged);
    assert!(residual(&a, &x, &b) < 1e-12);
}

#[test]
fn transposes_are_applied() {
    let a = Csr::from_triplets(2, 3, &[0, 0, 1], &[0, 2, 1], &[2.0, -1.0, 4.0]).unwrap();
    let space = Threads::<f64>::new(2);
    let mut y = vec![9.0; 3];
    a.apply_transpose(&space, &vec![1.0, 10.0], &mut y, &mut ()).unwrap();
    assert_eq!(y, [2.0, 40.0, -1.0]);
    assert!(a.apply_transpose(&space, &vec![1.0; 3], &mut y, &mut ()).is_err());
}

#[test]
fn transposes_are_solved_with() {
    let mut a = problem("convection3d:9");
    let b = columns(a.nrows(), 1);
    let prepared = Solver::new().threads(2).allow_stale_factor(true).prepare(&a).unwrap();
    for _ in 0..2 {
        let transposed = a.view().transpose();
        for _ in 0..2 {
            let mut x = vec![0.0; b.len()];
            let report = prepared.solve_transposed(&a, &b, &mut x).unwrap();
            report.require_converged().unwrap();
            assert!(residual(&transposed, &x, &b) < 1.000001e-8 && residual(&a, &x, &b) > 1e-3);
        }
        // Other values are transposed anew.
        a.values_mut().iter_mut().enumerate().for_each(|(k, v)| *v *= 1.0 + 0.1 * (k % 3) as f64);
    }
    let spd = problem("poisson2d:12");
    let (b, mut x) = (vec![1.0; spd.nrows()], vec![0.0; spd.nrows()]);
    let report = Solver::new().prepare(&spd).unwrap().solve_transposed(&spd, &b, &mut x).unwrap();
    report.require_converged().unwrap();
    assert!(residual(&spd, &x, &b) < 1.000001e-8);
}

#[test]
fn reports_are_read_back_and_displayed() {
    let a = problem("elasticity2d:8");
    let report = Solver::new().solve(&a, &columns(a.nrows(), 1)).unwrap().report;
    assert!(!report.recovery.is_empty());
    let text = serde_json::to_string(&report).unwrap();
    assert_eq!(serde_json::from_str::<Report>(&text).unwrap(), report);
    let line = report.to_string();
    assert!(
        line.starts_with("converged: ") && line.contains(" iterations of cg with ic0, relative"),
        "{line}"
    );
    // Names that programs rely on.
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    for name in [
        "outcome",
        "solver",
        "preconditioner",
        "choice",
        "threads",
        "team",
        "iterations",
        "relative_residual",
        "backward_error",
        "certificate",
        "normal_residual",
        "residual_replacements",
        "history",
        "preconditioner_nnz",
        "preconditioner_bytes",
        "shift",
        "predicted_bytes",
        "bytes",
        "ordering",
        "layout",
        "schedule",
        "recovery",
        "seconds",
    ] {
        assert!(json.get(name).is_some(), "{name}");
    }
}

/// Figures that are no costs, in any field, and by any way into a solve.
#[test]
fn machines_without_costs_are_refused() {
    use krylith::plan::{DEVICE, MANY_CORE, Machine, PROCESSOR_DEVICE, REFERENCE, Rates};
    assert!(
        [REFERENCE, PROCESSOR_DEVICE, MANY_CORE, DEVICE].iter().all(|machine| machine.validate().is_ok())
    );
    type Named<A, B> = (&'static str, fn(&mut A) -> &mut B);
    let figures: [Named<Machine, f64>; 16] = [
        ("constant_product", |m| &mut m.constant_product),
        ("constant_sweep", |m| &mut m.constant_sweep),
        ("repeated", |m| &mut m.repeated),
        ("vector", |m| &mut m.vector),
        ("analysis", |m| &mut m.analysis),
        ("matching", |m| &mut m.matching),
        ("analysis_row", |m| &mut m.analysis_row),
        ("flop", |m| &mut m.flop),
        ("factor", |m| &mut m.factor),
        ("complete_solve", |m| &mut m.complete_solve),
        ("facts", |m| &mut m.facts),
        ("eliminate", |m| &mut m.eliminate),
        ("inverse", |m| &mut m.inverse),
        ("grow", |m| &mut m.grow),
        ("launch", |m| &mut m.launch),
        ("reduction", |m| &mut m.reduction),
    ];
    let storages: [Named<Machine, Rates>; 4] = [
        ("grid", |m| &mut m.grid),
        ("blocks", |m| &mut m.blocks),
        ("slices", |m| &mut m.slices),
        ("rows", |m| &mut m.rows),
    ];
    let rates: [Named<Rates, f64>; 6] = [
        ("product", |r| &mut r.product),
        ("sweep", |r| &mut r.sweep),
        ("sweep_f32", |r| &mut r.sweep_f32),
        ("copy", |r| &mut r.copy),
        ("set_up", |r| &mut r.set_up),
        ("wavefront", |r| &mut r.wavefront),
    ];
    for bad in [-1.0, 2e9, f64::INFINITY, f64::NEG_INFINITY, f64::NAN] {
        let refused = |machine: Machine, name: String| {
            let error = machine.validate().unwrap_err().to_string();
            assert!(error.starts_with(&format!("{name} is {bad}; ")), "{error}");
        };
        for (name, figure) in figures {
            let mut machine = REFERENCE;
            *figure(&mut machine) = bad;
            refused(machine, name.into());
        }
        for (storage, of) in storages {
            for (rate, figure) in rates {
                let mut machine = REFERENCE;
                *figure(of(&mut machine)) = bad;
                refused(machine, format!("{storage}.{rate}"));
            }
        }
    }
    let mut free = REFERENCE;
    free.flop = 0.0;
    let (solver, a) = (Solver::new().machine(free), krylith::Csr::from_entries(1, 1, [(0, 0, 2.0)]).unwrap());
    let named = |error: Option<SolveError>| matches!(error, Some(SolveError::Option { name: "flop", .. }));
    assert!(named(solver.plan(&a).err()) && named(solver.prepare(&a).err()));
    assert!(named(solver.prepare_operator(&a).err()));
}

/// Whatever names a row or a column can be read with places counted from 1.
#[test]
fn messages_count_from_zero_and_can_count_from_one() {
    use krylith::report::counted_from_one;
    use krylith::structured::NotStructured;
    use krylith::transform::MatchingError;
    use krylith::{MatrixError, SetupError};
    let (row, column) = (40, 8);
    let messages = [
        MatrixError::RowTooLong { row, length: 3, ncols: 2 }.to_string(),
        MatrixError::RowPtrDecreases { row }.to_string(),
        MatrixError::ColumnOutOfRange { row, column: 8, ncols: 2 }.to_string(),
        MatrixError::RowOutOfRange { entry: 3, row: 40, nrows: 2 }.to_string(),
        MatrixError::NotInPattern { entry: 3, row, column: 8 }.to_string(),
        MatrixError::ColumnsUnsorted { row, column: 8 }.to_string(),
        MatrixError::NotTriangular { row, column: 8, triangle: "lower" }.to_string(),
        SetupError::MissingDiagonal { row }.to_string(),
        SetupError::BadPivot { row, value: -1.0 }.to_string(),
        SetupError::NotFinite { row, column, value: f64::NAN }.to_string(),
        SolveError::NotFinite { what: "b", row, value: f64::NAN }.to_string(),
        MatchingError::NotFinite { row, column }.to_string(),
        MatchingError::StructurallySingular { rank: 1, size: 50, row }.to_string(),
        MatchingError::ScaleOutOfRange { row }.to_string(),
        NotStructured::LongRow { row, entries: 900 }.to_string(),
    ];
    for message in messages {
        let from_one = counted_from_one(&message);
        assert!(message.contains("row 40") && message.contains("counted from 0)"), "{message}");
        assert!(from_one.contains("row 41") && from_one.contains("counted from 1)"), "{from_one}");
        assert!(!from_one.contains("counted from 0") && !from_one.contains("row 40"), "{from_one}");
        assert_eq!(from_one.contains("column 9 (both"), message.contains("column 8 (both"), "{from_one}");
    }
    let two = "row 1 (counted from 0), then row 9, column 0 (both counted from 0).";
    assert_eq!(counted_from_one(two), "row 2 (counted from 1), then row 10, column 1 (both counted from 1).");
    // Neither rows nor columns.
    for other in ["number 0 (counted from 0)", "row x (counted from 0)", "arrow 4", "(both counted from 0)"] {
        assert_eq!(counted_from_one(other), other);
    }
}
