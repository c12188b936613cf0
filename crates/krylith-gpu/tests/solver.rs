//! Whole solves on a device: certified, with the bits of threads by rows, every preconditioner, recovery, several at a time.

mod common;

use common::{label, opened};
use krylith::gallery::Problem;
use krylith::precond::registry::preconditioners;
use krylith::{
    BackendError, Csr, Layout, Method, Outcome, Precision, PrecondSpec, Report, SetupError, SolveError,
    Solver,
};
use krylith_gpu::{Device, DeviceOptions, KernelShape, OnDevice};

fn problem(name: &str) -> Csr<f64> {
    name.parse::<Problem>().unwrap().generate().unwrap()
}

fn rhs(a: &Csr<f64>) -> Vec<f64> {
    let mut b = vec![0.0; a.nrows()];
    a.mul_vec(&vec![1.0; a.ncols()], &mut b).unwrap();
    b
}

fn reproducible() -> Vec<Device> {
    opened(DeviceOptions { reproducible: true, ..DeviceOptions::default() })
}

/// By rows on threads, in the order of operations that the device has.
fn by_rows(method: Method, preconditioner: &str) -> Solver {
    Solver::new()
        .method(method)
        .preconditioner(preconditioner.parse().unwrap())
        .layout(Layout::Rows)
        .precision(Precision::F64)
        .rtol(1e-7)
        .max_iterations(2000)
}

#[test]
fn answers_have_the_bits_of_threads_by_rows() {
    let problems = ["poisson3d:46", "hpcg:37", "convection3d:46"];
    for device in reproducible() {
        for name in problems {
            let a = problem(name);
            let b = rhs(&a);
            for (method, preconditioner) in [
                (Method::Cg, "none"),
                (Method::Cg, "jacobi"),
                (Method::Cg, "ic0"),
                (Method::BiCgStab, "jacobi"),
                (Method::BiCgStab, "ilu0"),
            ] {
                if name.starts_with("convection") && method == Method::Cg {
                    continue;
                }
                let solver = by_rows(method, preconditioner);
                let on_threads = solver.solve(&a, &b).unwrap();
                let on_device = solver.on(&device).solve(&a, &b).unwrap();
                let what = format!("{}: {name}, {method} with {preconditioner}", label(&device));
                on_device.report.require_converged().unwrap();
                assert_eq!(on_device.report.history, on_threads.report.history, "{what}");
                let same = on_device.x.iter().zip(&on_threads.x).all(|(x, y)| x.to_bits() == y.to_bits());
                assert!(same, "{what}");
                assert_eq!(on_device.report.relative_residual, on_threads.report.relative_residual, "{what}");
            }
        }
    }
}

fn device_part(report: &Report) -> &krylith::report::DeviceReport {
    report.device.as_ref().expect("a solve on a device reports it")
}

/// An iteration of CG: two synchronisations, the launches of the sweeps and at most five more (with Jacobi four in all), no allocation.
#[test]
fn an_iteration_is_counted() {
    let a = problem("poisson3d:30");
    let b = rhs(&a);
    for device in reproducible().into_iter().chain(opened(DeviceOptions::default())) {
        for (preconditioner, constant) in [("jacobi", 4), ("ic0", 5)] {
            let count = |exponent: i32| {
                let solver = by_rows(Method::Cg, preconditioner).rtol(10f64.powf(-0.5 * f64::from(exponent)));
                let report = solver.on(&device).solve(&a, &b).unwrap().report;
                report.require_converged().unwrap();
                report
            };
            // Two solves that end alike, with as many residuals recomputed: what differs is the iterations.
            let solves: Vec<Report> = (6..18).map(count).collect();
            let checks = |r: &Report| device_part(r).bytes_to_device;
            let alike =
                |few| solves.iter().rev().find(|many| checks(many) == checks(few)).map(|many| (few, many));
            let (few, many) = solves
                .iter()
                .filter_map(alike)
                .max_by_key(|(few, many)| many.iterations - few.iterations)
                .unwrap();
            let iterations = (many.iterations - few.iterations) as f64;
            assert!(iterations >= 5.0, "{iterations}");
            let per_iteration = |get: fn(&krylith::report::DeviceReport) -> u64| {
                (get(device_part(many)) - get(device_part(few))) as f64 / iterations
            };
            let sweeps = many.schedule.as_ref().map_or(0, |both| {
                let launches = |s: &String| s.split(' ').nth(3).unwrap().parse::<usize>().unwrap();
                both.iter().map(launches).sum::<usize>()
            });
            let what = format!("{}, {preconditioner}", label(&device));
            assert_eq!(per_iteration(|d| d.synchronisations), 2.0, "{what}");
            assert!(
                per_iteration(|d| d.launches) <= (sweeps + constant) as f64,
                "{what}: {}",
                per_iteration(|d| d.launches)
            );
            assert_eq!(per_iteration(|d| d.allocations), 0.0, "{what}");
            assert_eq!(per_iteration(|d| d.bytes_to_device), 0.0, "{what}");
            // The pieces of three sums.
            let pieces = match device.shape() {
                KernelShape::Cpu => a.nrows().div_ceil(krylith::space::CHUNK),
                KernelShape::Gpu => a.nrows().div_ceil(256),
            };
            assert_eq!(per_iteration(|d| d.bytes_from_device), (3 * 40 * pieces) as f64, "{what}");
        }
    }
}

/// Every name of the registry that is not in blocks, on a matrix that suits it; in blocks it is an error that says so.
#[test]
fn every_preconditioner_by_name() {
    let symmetric = problem("poisson3d:12");
    let general = problem("convection3d:12");
    for device in reproducible() {
        for info in preconditioners() {
            for name in info.examples.iter().filter(|name| **name != "auto") {
                let a = if info.symmetric { &symmetric } else { &general };
                let method = if info.symmetric { Method::Cg } else { Method::BiCgStab };
                let method =
                    if *name == "columns" || info.name == "column-norms" { Method::Lsmr } else { method };
                let b = rhs(a);
                let solver = by_rows(method, name);
                let result = solver.clone().on(&device).solve(a, &b);
                let what = format!("{}: {name}", label(&device));
                match result {
                    Err(SolveError::Backend(BackendError::Unsupported { .. })) => {
                        let in_blocks = info.name.starts_with('b');
                        let transposed = method == Method::Lsmr;
                        assert!(in_blocks || transposed, "{what}");
                    }
                    Err(error) => panic!("{what}: {error}"),
                    Ok(solution) => {
                        let on_threads = solver.solve(a, &b).unwrap().report;
                        let (own, theirs) = (solution.report.iterations, on_threads.iterations);
                        assert_eq!(solution.report.outcome, on_threads.outcome, "{what}");
                        assert!(own.abs_diff(theirs) <= 1 + theirs / 20, "{what}: {own} {theirs}");
                    }
                }
            }
        }
    }
}

/// A bad pivot of a device is that of threads, and is followed by the same shift.
#[test]
fn bad_pivots_are_those_of_threads() {
    let a = problem("elasticity3d:8");
    let b = rhs(&a);
    for device in reproducible() {
        let solver = by_rows(Method::Cg, "ic0");
        let (own, theirs) =
            (solver.clone().on(&device).solve(&a, &b).unwrap(), solver.solve(&a, &b).unwrap());
        assert!(own.report.shift > 0.0);
        assert_eq!((own.report.shift, &own.report.recovery), (theirs.report.shift, &theirs.report.recovery));
        assert_eq!(own.report.iterations, theirs.report.iterations);
        let strict = solver.recover(false);
        let errors =
            (strict.clone().on(&device).solve(&a, &b).unwrap_err(), strict.solve(&a, &b).unwrap_err());
        assert!(matches!(errors.0, SolveError::Setup(SetupError::BadPivot { .. })));
        assert_eq!(errors.0, errors.1);
    }
}

#[test]
fn other_values_are_refactored_without_allocation() {
    let a = problem("poisson3d:15");
    let mut other = a.clone();
    for (k, v) in other.values_mut().iter_mut().enumerate() {
        *v *= 1.0 + 1e-3 * ((k % 7) as f64);
    }
    let b = rhs(&a);
    for device in reproducible() {
        for name in ["ic0", "ilu0", "ic(1)", "jacobi", "fsai", "ilut(10,1e-3)"] {
            let method = if name.starts_with("ilu") { Method::BiCgStab } else { Method::Cg };
            let solver = by_rows(method, name);
            let mut prepared = solver.clone().on(&device).prepare(&a).unwrap();
            let before = device.allocations();
            prepared.refactor(&other).unwrap();
            assert_eq!(device.allocations(), before, "{name}");
            let mut x = vec![0.0; a.nrows()];
            let report = prepared.solve(&other, &b, &mut x).unwrap();
            report.require_converged().unwrap();
            let mut on_threads = solver.prepare(&a).unwrap();
            on_threads.refactor(&other).unwrap();
            let mut y = vec![0.0; a.nrows()];
            let theirs = on_threads.solve(&other, &b, &mut y).unwrap();
            assert!(report.iterations.abs_diff(theirs.iterations) <= 1, "{name}");
            assert!(matches!(prepared.solve(&a, &b, &mut x), Err(SolveError::StaleFactor)), "{name}");
        }
        assert_eq!(device.live_buffers(), 0, "everything is given back");
    }
}

#[test]
fn several_threads_solve_on_one_device() {
    let a = problem("poisson3d:15");
    let b = rhs(&a);
    for device in reproducible() {
        let prepared = by_rows(Method::Cg, "ic0").on(&device).prepare(&a).unwrap();
        let solve = || {
            let mut x = vec![0.0; a.nrows()];
            prepared.solve(&a, &b, &mut x).unwrap().require_converged().unwrap();
            x
        };
        let expected = solve();
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..4).map(|_| scope.spawn(solve)).collect();
            for worker in workers {
                assert_eq!(worker.join().unwrap(), expected);
            }
        });
    }
}

/// Constants in the null space are vectors on the device, which every queue must see, also right after a set-up.
#[test]
fn singular_systems_on_several_queues() {
    let a = problem("neumann3d:12");
    let n = a.nrows();
    let mut b = vec![0.0; n];
    a.mul_vec(&krylith::gallery::random_vector(n), &mut b).unwrap();
    for device in reproducible() {
        for _ in 0..5 {
            let mut prepared = by_rows(Method::Cg, "ic0").on(&device).prepare(&a).unwrap();
            let solve = |prepared: &krylith_gpu::DevicePrepared| {
                let mut x = vec![0.0; n];
                prepared.solve(&a, &b, &mut x).unwrap().require_converged().unwrap();
                // The answer of least norm has no mean.
                assert!(x.iter().sum::<f64>().abs() < 1e-8, "{}", label(&device));
                x
            };
            for round in 0..2 {
                let answers: Vec<Vec<f64>> = std::thread::scope(|scope| {
                    let workers: Vec<_> = (0..3).map(|_| scope.spawn(|| solve(&prepared))).collect();
                    workers.into_iter().map(|worker| worker.join().unwrap()).collect()
                });
                assert!(answers.iter().all(|x| *x == answers[0]), "{}", label(&device));
                if round == 0 {
                    prepared.refactor(&a).unwrap();
                }
            }
        }
    }
}

/// What a solve holds on the device is what was predicted.
#[test]
fn predicted_bytes_are_those_that_are_allocated() {
    let a = problem("poisson3d:30");
    let b = rhs(&a);
    for device in reproducible() {
        for name in ["ic0", "ilut(10,1e-3)", "jacobi", "fsai"] {
            let method = if name.starts_with("ilu") { Method::BiCgStab } else { Method::Cg };
            let prepared = by_rows(method, name).on(&device).prepare(&a).unwrap();
            let mut x = vec![0.0; a.nrows()];
            let report = prepared.solve(&a, &b, &mut x).unwrap();
            let ratio = report.predicted_bytes as f64 / device.live_bytes() as f64;
            assert!((0.9..1.15).contains(&ratio), "{}, {name}: {ratio}", label(&device));
        }
    }
}

/// The same bits from run to run, also where the device is not reproducible in the sense of threads.
#[test]
fn runs_repeat() {
    let a = problem("fem2d:40");
    let b = rhs(&a);
    for device in opened(DeviceOptions::default()) {
        let solve = || by_rows(Method::Cg, "ic0").on(&device).solve(&a, &b).unwrap();
        let first = solve();
        first.report.require_converged().unwrap();
        for _ in 0..3 {
            assert_eq!(solve().x, first.x, "{}", label(&device));
        }
    }
}

#[test]
fn memory_is_predicted_and_refused() {
    let a = problem("poisson3d:20");
    let b = rhs(&a);
    for device in reproducible() {
        for name in ["ic0", "ic(2)", "jacobi", "fsai"] {
            let report = by_rows(Method::Cg, name).on(&device).solve(&a, &b).unwrap().report;
            let ratio = report.predicted_bytes as f64 / report.bytes as f64;
            assert!((0.9..1.1).contains(&ratio), "{name}: {ratio}");
            let before = device.allocations();
            let solver = by_rows(Method::Cg, name).max_memory(report.predicted_bytes as u64 - 1);
            let error = solver.on(&device).solve(&a, &b).unwrap_err();
            let refused = matches!(&error, SolveError::Setup(SetupError::MemoryLimit { predicted, .. })
                if *predicted >= report.predicted_bytes as u64);
            assert!(refused, "{name}: {error}");
            assert_eq!(device.allocations(), before, "{name}: nothing is allocated before");
        }
    }
}

#[test]
fn auto_and_other_methods() {
    let (a, general) = (problem("poisson3d:14"), problem("convection3d:14"));
    for device in reproducible() {
        for (a, solver) in [
            (&a, Solver::new()),
            (&general, Solver::new()),
            (&general, Solver::new().method(Method::Gmres(30))),
            (&general, Solver::new().method(Method::Fgmres(10)).preconditioner(PrecondSpec::jacobi())),
            (&a, Solver::new().method(Method::Minres).preconditioner(PrecondSpec::ic(0))),
            (&general, Solver::new().reorder(krylith::transform::Ordering::Rcm)),
        ] {
            let solution = solver.on(&device).solve(a, &rhs(a)).unwrap();
            assert_eq!(solution.report.outcome, Outcome::Converged, "{:?}", solution.report.choice);
            assert!(solution.x.iter().all(|x| (x - 1.0).abs() < 1e-5));
            assert_eq!(device_part(&solution.report).device, device.info().selector());
        }
    }
}

/// On a device `auto` weighs the members of the registry, a complete factor too, by the figures of such a device or those that are given.
#[test]
fn auto_proposes_by_the_machine() {
    use krylith::calibrate::MeasuredPlace;
    use krylith::plan::{PROCESSOR_DEVICE, StorageKind};
    let (cube, plane) = (problem("poisson3d:30"), problem("poisson2d:90"));
    for device in reproducible() {
        let plan = Solver::new().on(&device).plan(&cube).unwrap();
        assert_eq!((plan.machine.as_str(), plan.proposals.len()), ("processor-device", 7), "{plan}");
        let on_device =
            |p: &krylith::plan::Proposal| (p.precision, p.storage) == (Precision::F64, StorageKind::Rows);
        assert!(plan.proposals.iter().all(on_device), "{:?}", plan.proposals);
        assert_eq!(plan.preconditioner, plan.proposals[0].preconditioner);
        // Where sweeps take longer by far, products are faster.
        let mut slow = PROCESSOR_DEVICE;
        (slow.rows.sweep, slow.analysis) = (100.0, 1e5);
        (slow.name, slow.launch, slow.reduction) = ("slow".into(), 0.0, 0.0);
        let plan = Solver::new().machine(slow).on(&device).plan(&cube).unwrap();
        assert!(plan.machine == "slow" && plan.preconditioner.to_string().contains("fsai"), "{plan}");
        // For many solves a plane has a cheap complete factor, which threads of the host apply.
        let solution = Solver::new().expect_solves(100).on(&device).solve(&plane, &rhs(&plane)).unwrap();
        assert_eq!(
            (solution.report.preconditioner.as_str(), solution.report.outcome),
            ("cholesky", Outcome::Converged)
        );
        let overhead = device.overhead().unwrap().unwrap();
        assert_eq!(overhead.device, device.info().name);
        assert!(
            overhead.launch > 0.0 && overhead.reduction > overhead.launch && overhead.vector > 0.0,
            "{overhead:?}"
        );
    }
}

/// Entries are reported of factors that the host has made, too.
#[test]
fn entries_are_those_of_threads() {
    let a = problem("poisson2d:20");
    for device in reproducible() {
        for name in ["jacobi", "ic0", "ic(1)", "ict(0.01)", "fsai", "cholesky"] {
            let solver = by_rows(Method::Cg, name);
            let expected = solver.solve(&a, &rhs(&a)).unwrap().report.preconditioner_nnz;
            let found = solver.on(&device).solve(&a, &rhs(&a)).unwrap().report.preconditioner_nnz;
            assert!(found == expected && found > 0, "{name}: {found}, on threads {expected}");
        }
    }
}

/// The preconditioner alone, with the bits of threads by rows.
#[test]
fn a_preconditioner_alone() {
    let a = problem("poisson3d:12");
    let r: Vec<f64> = krylith::gallery::random_vector(a.nrows());
    for device in reproducible() {
        for name in ["none", "jacobi", "ic0", "ic(1)", "ict(0.01)", "fsai(0,1,0)", "cholesky"] {
            let (mut on_threads, mut on_device) = (vec![0.0; r.len()], vec![f64::NAN; r.len()]);
            by_rows(Method::Cg, name).prepare(&a).unwrap().precondition(&r, &mut on_threads).unwrap();
            by_rows(Method::Cg, name)
                .on(&device)
                .prepare(&a)
                .unwrap()
                .precondition(&r, &mut on_device)
                .unwrap();
            let largest = on_threads.iter().fold(0.0, |largest: f64, z| largest.max(z.abs()));
            let differ =
                on_threads.iter().zip(&on_device).any(|(x, y)| (x - y).abs() > 1e-13 * largest || y.is_nan());
            assert!(!differ, "{name}");
            if name != "fsai(0,1,0)" {
                assert_eq!(on_threads, on_device, "{name}");
            }
        }
    }
}
