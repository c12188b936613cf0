//! What every target checks besides not crashing: no single allocation out of proportion to the input, and what was read is
//! a valid matrix.

use krylith::io::ReadOptions;
use krylith::{Csr, Pattern};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

struct Recording;

static LARGEST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Recording {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LARGEST.fetch_max(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promises hold for the system's allocator.
        unsafe { System.alloc(layout) }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        LARGEST.fetch_max(layout.size(), Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }
    unsafe fn realloc(&self, p: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        LARGEST.fetch_max(size, Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.realloc(p, layout, size) }
    }
    unsafe fn dealloc(&self, p: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(p, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Recording = Recording;

/// What a reader may allocate at once beyond four times its input: the rows a text may announce without filling them.
pub const PLAIN: usize = 16 << 20;
/// The same where the input may be compressed: what [`ReadOptions`] allows it to expand to.
pub const COMPRESSED: usize = 64 << 20;

/// Options under which compressed input may expand four times.
pub fn options() -> ReadOptions<'static> {
    ReadOptions { max_expansion: 4, ..ReadOptions::default() }
}

/// Runs a reader and checks its largest allocation.
pub fn bounded<T>(data: &[u8], constant: usize, read: impl FnOnce(&[u8]) -> T) -> T {
    LARGEST.store(0, Ordering::Relaxed);
    let result = read(data);
    let largest = LARGEST.load(Ordering::Relaxed);
    assert!(largest <= 4 * data.len() + constant, "{largest} bytes allocated for {} of input", data.len());
    result
}

/// What was read passes the checked constructor.
pub fn check(a: &Csr<f64>) {
    let p = a.pattern();
    Pattern::new(p.nrows(), p.ncols(), p.row_ptr().to_vec(), p.col_idx().to_vec()).unwrap();
}
