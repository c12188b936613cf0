//! How much a reader may take, and who hears of its progress.

/// Called with the bytes done and the bytes in all, from whichever thread is at it.
pub type Progress<'a> = &'a (dyn Fn(u64, u64) + Sync);

/// Options of the readers. The defaults suit files from anywhere: no header can make a reader allocate much more than the
/// file itself is worth.
#[derive(Clone, Copy)]
pub struct ReadOptions<'a> {
    /// A compressed file may expand to this many times its size, plus 16 MiB.
    pub max_expansion: u64,
    /// A text file may announce this many rows and columns more than its entries can fill.
    pub max_empty_rows: u64,
    /// Hears of progress.
    pub progress: Option<Progress<'a>>,
}

impl Default for ReadOptions<'_> {
    fn default() -> Self {
        ReadOptions { max_expansion: 256, max_empty_rows: 1 << 20, progress: None }
    }
}

impl std::fmt::Debug for ReadOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReadOptions")
            .field("max_expansion", &self.max_expansion)
            .field("max_empty_rows", &self.max_empty_rows)
            .field("progress", &self.progress.is_some())
            .finish()
    }
}

impl ReadOptions<'_> {
    /// Bytes that compressed data of this many bytes may expand to.
    pub(crate) fn expanded_limit(&self, compressed: u64) -> u64 {
        compressed.saturating_mul(self.max_expansion).saturating_add(16 << 20)
    }

    pub(crate) fn report(&self, done: u64, total: u64) {
        if let Some(progress) = self.progress {
            progress(done, total);
        }
    }
}
