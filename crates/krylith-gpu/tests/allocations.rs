//! Methods allocate nothing on the host in an iteration on a device either: counted by the global allocator of this test alone.

mod common;

use common::{label, opened};
use krylith::gallery::Problem;
use krylith::krylov::{BiCgStab, Cg, Gmres, System};
use krylith::observe::History;
use krylith::operator::Identity;
use krylith::space::Space;
use krylith::stop::{IterationLimit, Residual};
use krylith::{Csr, Method, PrecondSpec, Solver};
use krylith_gpu::{DeviceMatrix, DeviceOptions, DeviceSpace, OnDevice};
use std::alloc::{GlobalAlloc, Layout, System as SystemAllocator};
use std::cell::Cell;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

#[allow(unsafe_code)]
// SAFETY: every call is passed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|n| n.set(n.get() + 1));
        // SAFETY: the caller's promises are passed on.
        unsafe { SystemAllocator.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are passed on, and `pointer` came from the same allocator.
        unsafe { SystemAllocator.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn matrix() -> Csr<f64> {
    "poisson3d:14".parse::<Problem>().unwrap().generate().unwrap()
}

#[test]
fn no_method_allocates() {
    let a = matrix();
    for device in opened(DeviceOptions::default()) {
        let space = DeviceSpace::<f64>::new(&device).unwrap();
        let (own, m) = (DeviceMatrix::new(&space, &a).unwrap(), Identity::new(a.nrows()));
        let system = System { space: &space, a: &own, m: &m };
        let (mut b, mut x) = (space.zeros(&a.nrows()).unwrap(), space.zeros(&a.nrows()).unwrap());
        space.fill(1.0, &mut b).unwrap();
        let mut history = History::with_capacity(500);
        let mut stop = (Residual { rtol: 1e-8, atol: 0.0 }, IterationLimit(80));
        macro_rules! count {
            ($workspace:expr) => {
                let mut workspace = $workspace.unwrap();
                space.fill(0.0, &mut x).unwrap();
                history.residual_norms.clear();
                let before = ALLOCATIONS.get();
                let finish = workspace.solve(system, &b, &mut x, &mut stop, &mut history).unwrap();
                assert_eq!(ALLOCATIONS.get() - before, 0, "{}, {}", label(&device), stringify!($workspace));
                assert!(finish.iterations > 7);
            };
        }
        count!(Cg::new(system));
        count!(BiCgStab::new(system));
        count!(Gmres::new(system, 40));
    }
}

/// Sweeps, in whole solves: what a solve allocates around its iterations does not grow with them.
#[test]
fn sweeps_do_not_allocate() {
    let a = matrix();
    let b = vec![1.0; a.nrows()];
    for device in opened(DeviceOptions::default()) {
        let allocations = |rtol: f64| {
            let solver = Solver::new().method(Method::Cg).preconditioner(PrecondSpec::ic(0)).rtol(rtol);
            let prepared = solver.on(&device).prepare(&a).unwrap();
            let mut x = vec![0.0; a.nrows()];
            let before = ALLOCATIONS.get();
            let report = prepared.solve(&a, &b, &mut x).unwrap();
            (ALLOCATIONS.get() - before, report.iterations)
        };
        let ((few, short), (many, long)) = (allocations(1e-2), allocations(1e-8));
        assert!(long >= short + 10, "{short} {long}");
        // A launch of a sweep that allocated would add dozens per iteration.
        assert!(many < few + (long - short), "{}: {few} in {short}, {many} in {long}", label(&device));
    }
}
