//! An iteration allocates nothing on threads, and neither does `refactor`; a report tells the bytes that a solve holds. One
//! test, so that nobody else allocates meanwhile.

use krylith::Layout as Order;
use krylith::gallery::Problem;
use krylith::krylov::{BiCgStab, Cg, Gmres, System};
use krylith::operator::{Preconditioner, Recipe, Symbolic};
use krylith::precond::{Incomplete, Jacobi};
use krylith::schedule::Schedule;
use krylith::space::Threads;
use krylith::stop::IterationLimit;
use krylith::transform::Ordering as Reorder;
use krylith::{Method, Precision, PrecondSpec, Solver};
use std::alloc::{GlobalAlloc, Layout, System as SystemAllocator};
use std::sync::atomic::{AtomicUsize, Ordering};

struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);
static LIVE: AtomicUsize = AtomicUsize::new(0);
static TOTAL: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is passed on to the system's allocator unchanged.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        LIVE.fetch_add(layout.size(), Ordering::Relaxed);
        TOTAL.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promises hold for the system's allocator.
        unsafe { SystemAllocator.alloc(layout) }
    }
    unsafe fn dealloc(&self, p: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { SystemAllocator.dealloc(p, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allocations of some work, the least of three times: beside busy programs a member of the team may be sent away in between, and its
/// unwinding allocates. What the work itself allocates, it does every time.
fn allocations(mut work: impl FnMut()) -> usize {
    let count = |_| {
        let before = ALLOCATIONS.load(Ordering::Relaxed);
        work();
        ALLOCATIONS.load(Ordering::Relaxed) - before
    };
    (0..3).map(count).min().unwrap_or(0)
}

#[test]
fn nothing_is_allocated_while_iterating_or_refactoring() {
    // A thread of rayon's pool allocates when it starts, which under load may be long after its pool did.
    rayon::broadcast(|_| ());
    by_hand();
    for layout in [Order::Auto, Order::Slices, Order::Rows] {
        prepared(layout);
    }
    sequences();
}

/// Every kind of engine, through the solver: with fill, narrow, frozen, reordered, in blocks.
fn sequences() {
    let problem = |name: &str| name.parse::<Problem>().unwrap().generate().unwrap();
    let (spd, general, solid) =
        (problem("poisson3d:12"), problem("convection3d:12"), problem("elasticity3d:4"));
    let cases = [
        (Method::Cg, &spd, ["ic(1)", "mic0", "dic", "ict(0.01)"].as_slice()),
        (
            Method::BiCgStab,
            &general,
            &["ilu(1)", "milu0", "milu0-columns", "dilu", "ilut(5,0.01)", "ilutp(5,0.01)"],
        ),
        (Method::Cg, &solid, &["bic0", "bdic", "bjacobi"]),
    ];
    for (method, a, names) in cases {
        for name in names {
            for (ordering, precision) in [
                (Reorder::Natural, Precision::F64),
                (Reorder::Rcm, Precision::F64),
                (Reorder::Natural, Precision::Mixed),
            ] {
                let solver = Solver::new().threads(2).method(method).reorder(ordering).precision(precision);
                let solver = solver.preconditioner(name.parse().unwrap());
                let mut prepared = solver.prepare(a).unwrap();
                let count = allocations(|| prepared.refactor(a).unwrap());
                assert_eq!(count, 0, "{name} {ordering} {precision:?}");
                let (b, mut x) = (vec![1.0; a.nrows()], vec![0.0; a.nrows()]);
                let report = prepared.solve(a, &b, &mut x).unwrap();
                report.require_converged().unwrap();
                let predicted = report.predicted_bytes;
                let near = predicted.abs_diff(report.bytes) < report.bytes / 10;
                assert!(near, "{name} {ordering} {precision:?}: {predicted} predicted, {}", report.bytes);
            }
        }
    }
}

/// The solver's own way, on the grid, in slices and by rows.
fn prepared(layout: Order) {
    let a = "jump3d:40".parse::<Problem>().unwrap().generate().unwrap();
    let (b, mut x) = (vec![1.0; a.nrows()], vec![0.0; a.nrows()]);
    let solver =
        Solver::new().threads(2).layout(layout).preconditioner(PrecondSpec::ic(0)).method(Method::Cg);
    // The first one also starts threads.
    drop(solver.prepare(&a).unwrap());
    let before = LIVE.load(Ordering::Relaxed);
    let mut prepared = solver.prepare(&a).unwrap();
    let held = LIVE.load(Ordering::Relaxed) - before;
    assert_eq!(allocations(|| prepared.refactor(&a).unwrap()), 0, "refactor, {layout:?}");
    let report = prepared.solve(&a, &b, &mut x).unwrap();
    report.require_converged().unwrap();
    let expected = match layout {
        Order::Auto => "structured",
        Order::Slices => "slices",
        _ => "rows as given",
    };
    assert!(report.layout.contains(expected), "{}", report.layout);
    let reported = report.bytes;
    assert!(held.abs_diff(reported) < reported / 50, "{layout:?}: {held} held, {reported} reported");
    // Another right-hand side, from zero or from a guess, allocates the history and the words of its report.
    for (k, guess) in [1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0].into_iter().enumerate() {
        x.fill(guess);
        let before = TOTAL.load(Ordering::Relaxed);
        prepared.solve(&a, &b, &mut x).unwrap().require_converged().unwrap();
        let allocated = TOTAL.load(Ordering::Relaxed) - before;
        // The first guess that is not zero makes room for a copy of it.
        if k > 0 {
            assert!(allocated < 4 * a.nrows(), "{layout:?}: {allocated} bytes for {} rows", a.nrows());
        }
    }
    let predicted = report.predicted_bytes;
    let near = predicted.abs_diff(report.bytes) < report.bytes / 20;
    assert!(near, "{layout:?}: {predicted} predicted, {} held", report.bytes);
}

/// Method and factor put together by the user.
fn by_hand() {
    let a = "convection3d:14".parse::<Problem>().unwrap().generate().unwrap();
    let spd = "poisson3d:14".parse::<Problem>().unwrap().generate().unwrap();
    let b = vec![1.0; a.nrows()];
    for schedule in [Schedule::Levels, Schedule::PointToPoint] {
        let space = Threads::new(2);
        let mut x = vec![0.0; a.nrows()];
        let mut ilu =
            Incomplete::ilu(0).schedule(schedule).analyze(&space, &a).unwrap().factor(&space, &a).unwrap();
        let mut ic =
            Incomplete::ic(0).schedule(schedule).analyze(&space, &spd).unwrap().factor(&space, &spd).unwrap();
        let mut jacobi = Jacobi::default().analyze(&space, &a).unwrap().factor(&space, &a).unwrap();
        let refactoring = allocations(|| {
            ilu.refactor(&space, &a).unwrap();
            ic.refactor(&space, &spd).unwrap();
            jacobi.refactor(&space, &a).unwrap();
        });
        assert_eq!(refactoring, 0, "refactor, {schedule:?}");

        let system = System { space: &space, a: &spd, m: &ic };
        let mut cg = Cg::new(system).unwrap();
        let iterating = allocations(|| {
            cg.solve(system, &b, &mut x, &mut IterationLimit(10), &mut ()).unwrap();
        });
        assert_eq!(iterating, 0, "cg, {schedule:?}");
        let system = System { space: &space, a: &a, m: &ilu };
        let (mut bicgstab, mut gmres) = (BiCgStab::new(system).unwrap(), Gmres::new(system, 5).unwrap());
        let iterating = allocations(|| {
            bicgstab.solve(system, &b, &mut x, &mut IterationLimit(10), &mut ()).unwrap();
            gmres.solve(system, &b, &mut x, &mut IterationLimit(12), &mut ()).unwrap();
        });
        assert_eq!(iterating, 0, "bicgstab and gmres, {schedule:?}");
    }
}
