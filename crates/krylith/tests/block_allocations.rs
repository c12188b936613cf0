//! Taking over values, refactoring, products and sweeps of block matrices allocate nothing on threads. One test, so that nobody
//! else allocates meanwhile.

use krylith::block::{BlockKind, BlockMatrix, BlockPreconditioner, BlockRecipe};
use krylith::gallery::Problem;
use krylith::operator::{LinearOperator, Preconditioner};
use krylith::schedule::Schedule;
use krylith::space::{Space, Threads};
use std::alloc::{GlobalAlloc, Layout, System as SystemAllocator};
use std::sync::atomic::{AtomicUsize, Ordering};

struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is passed on to the system's allocator unchanged.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promises hold for the system's allocator.
        unsafe { SystemAllocator.alloc(layout) }
    }
    unsafe fn dealloc(&self, p: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { SystemAllocator.dealloc(p, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allocations of some work, the least of three times: a thread of the team that starts late, or is sent away beside busy programs,
/// allocates once. What the work itself allocates, it does every time.
fn allocations(mut work: impl FnMut()) -> usize {
    let count = |_| {
        let before = ALLOCATIONS.load(Ordering::Relaxed);
        work();
        ALLOCATIONS.load(Ordering::Relaxed) - before
    };
    (0..3).map(count).min().unwrap_or(0)
}

#[test]
fn nothing_is_allocated_after_the_analysis() {
    let mut matrix = "elasticity3d:10".parse::<Problem>().unwrap().generate().unwrap();
    for schedule in [Schedule::Levels, Schedule::PointToPoint] {
        for kind in [BlockKind::Jacobi, BlockKind::Ic0, BlockKind::Ilu0, BlockKind::Dic, BlockKind::Dilu] {
            let space = Threads::new(2);
            let (x, mut y) = (vec![1.0; matrix.nrows()], space.zeros(&matrix.nrows()).unwrap());
            let mut a = BlockMatrix::new(&space, &matrix, 3).unwrap();
            let recipe = BlockRecipe { kind, schedule, shift: 10.0 };
            let mut m = BlockPreconditioner::new(&space, &a, &recipe).unwrap();
            let mut scratch = m.scratch(&space).unwrap();
            let count = allocations(|| {
                // Other values, so that they are taken over.
                matrix.values_mut().iter_mut().for_each(|v| *v *= 1.5);
                a.set(&space, &matrix).unwrap();
                m.refactor(&space, &a).unwrap();
                a.apply(&space, &x, &mut y, &mut ()).unwrap();
                a.apply_dot(&space, &x, &mut y, &mut ()).unwrap();
                m.apply(&space, &x, &mut y, &mut scratch).unwrap();
            });
            assert_eq!(count, 0, "{kind:?}, {schedule:?}");
            assert!(y.iter().all(|y| y.is_finite()));
        }
    }
}
