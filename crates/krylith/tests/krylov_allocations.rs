//! No method allocates in `solve`: counted by the global allocator of this test alone.

#[path = "suite/sequential.rs"]
mod sequential;

use krylith::gallery::Problem;
use krylith::krylov::{BiCgStab, Cg, Fgmres, Gmres, Minres, System};
use krylith::observe::History;
use krylith::operator::{Identity, LinearOperator};
use krylith::stop::{IterationLimit, Residual};
use sequential::{Alternating, Rows, Sequential, ilu0, jacobi};
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

/// Solves by every method, with restarts, and counts.
fn check<M: LinearOperator<Sequential>>(m: &M) {
    let a = Rows("poisson2d:12".parse::<Problem>().unwrap().generate().unwrap());
    let system = System { space: &Sequential, a: &a, m };
    let b = vec![1.0; a.domain()];
    let mut x = b.clone();
    let mut history = History::with_capacity(500);
    let mut stop = (Residual { rtol: 1e-8, atol: 0.0 }, IterationLimit(80));
    macro_rules! count {
        ($workspace:expr) => {
            let mut workspace = $workspace.unwrap();
            x.fill(0.0);
            history.residual_norms.clear();
            let before = ALLOCATIONS.get();
            assert!(before > 0, "what was allocated so far has been counted");
            let finish = workspace.solve(system, &b, &mut x, &mut stop, &mut history).unwrap();
            let allocations = ALLOCATIONS.get() - before;
            assert_eq!(allocations, 0, "{}", stringify!($workspace));
            assert!(finish.iterations > 7);
        };
    }
    count!(Cg::new(system));
    count!(BiCgStab::new(system));
    count!(Minres::new(system));
    count!(Gmres::new(system, 7));
    count!(Gmres::new(system, 200));
    count!(Fgmres::new(system, 7));
}

#[test]
fn no_solve_allocates() {
    let a: krylith::Csr<f64> = "poisson2d:12".parse::<Problem>().unwrap().generate().unwrap();
    check(&Identity::new(a.nrows()));
    check(&jacobi(&a));
    check(&Alternating(jacobi(&a), ilu0(&a), Cell::new(false)));
}
